"""The owner's errors are metres on the ground from the true places, of rows in a state and in none apart.

Claim: `report --truth` and `audit --truth` agree with a plain computation from the coordinates of the truth and of the
released file by another formula (Vincenty's), wherever on earth the rows are; rows in no state are counted, their share
is said, and they are in no figure but their own. It would fail for an error that is measured from the middle of a cell,
or of the cell nearest to somebody far away: that gave 864 m for 2,336 m.
"""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import dphmm
from commands import BBOX, run, walk_rows, write_rows
from dphmm.audit import attack
from dphmm.session import estimate
from dphmm.session.stepwise import walk
from dphmm.states.maps import ground_distance
from geodesic import metres
from report.worlds import grid, of_places, pages, report

#: Commands and files draw here: each test replays words of its own.
pytestmark = pytest.mark.replayed_words

#: What the formula of the package promises up to 5,000 km, and everywhere.
NEAR, FAR = 2e-6, 5e-3


@pytest.mark.parametrize(("spread", "within"), [(1e-5, NEAR), (1e-3, NEAR), (0.1, NEAR), (30, NEAR), (180, FAR)])
def test_distances_on_the_ground_are_those_of_another_formula(spread, within):
    rng = np.random.default_rng(4)
    ends = rng.uniform([-90, -180], [90, 180], (500, 2))
    moved = ends + rng.uniform(-spread, spread, (500, 2)) * [0.5, 1]
    others = np.stack([moved[:, 0].clip(-90, 90), (moved[:, 1] + 180) % 360 - 180], axis=1)
    found, compared = ground_distance(*ends.T, *others.T), 0
    for distance, end, other in zip(found, ends.tolist(), others.tolist(), strict=True):
        try:
            true = metres(*end, *other)
        except ValueError:
            continue
        # The other formula stops at 1e-13 of a radian.
        assert distance == pytest.approx(true, rel=within, abs=1e-6)
        compared += 1
    assert compared > 450


def test_distances_between_special_places():
    quarter = 10_001_965.729
    assert ground_distance(0, 0, 90, 0) == pytest.approx(quarter, rel=1e-4)
    assert ground_distance(90, 5, -90, 80) == pytest.approx(2 * quarter, rel=FAR)
    assert ground_distance(12.5, 179.99, 12.5, -179.99) == pytest.approx(metres(12.5, 179.99, 12.5, -179.99), rel=NEAR)
    assert ground_distance(0, 0, 0, 180) == pytest.approx(2 * quarter, rel=FAR)
    assert ground_distance(48.1, 11.5, 48.1, 11.5) == 0
    assert ground_distance(90, 5, 90, 80) == pytest.approx(0, abs=1e-6)
    shaped = ground_distance(np.zeros((3, 1)), 0.0, np.zeros(4), np.arange(4.0))
    assert shaped.shape == (3, 4) and shaped[2, 1] == ground_distance(0, 0, 0, 1)


#: Where the third person is: out of the box all the time, near to it and on the other side of the earth.
OUTSIDE = [(49.98, 10.02), (50.01, 10.3), (50.3, 10.01), (52.5, 13.4), (-33.87, 151.21), (50.01, -170.0)] * 2


def places(folder, people, fit, radius):
    """Two walkers inside and one outside of the cells."""
    rows = walk_rows(["u1", "u2"], 12, 7)
    rows += [["u3", row[1], lat, lon] for row, (lat, lon) in zip(rows[:12], OUTSIDE, strict=True)]
    # Nobody stands in the middle of a cell.
    rng = np.random.default_rng(8)
    rows = [
        [user, t, float(lat) + up, float(lon) + on]
        for (user, t, lat, lon), (up, on) in zip(rows, rng.uniform(-0.003, 0.003, (36, 2)).tolist(), strict=True)
    ]
    return of_places(folder, rows, people, fit, radius)


KINDS = {
    "grid": (("--grid", "1km", "--bbox", BBOX, "--step", "5min"), "1.5km"),
    "hexagons": (("--h3", 8, "--step", "5min"), "2km"),
}


@pytest.fixture(scope="module", params=KINDS)
def world(request, tmp_path_factory):
    return places(
        tmp_path_factory.mktemp("world"), walk_rows([f"p{i}" for i in range(12)], 24, 3), *KINDS[request.param]
    )


@pytest.fixture(scope="module")
def joined(world):
    """Truth and release side by side, and whether the true place is in a cell of the model."""
    truth = pd.read_csv(world / "walks.csv", parse_dates=["t"])
    truth["t"] = truth.t.dt.floor("5min")
    both = pd.read_parquet(world / "released" / "released.parquet").merge(
        truth, on=["user", "t"], validate="one_to_one"
    )
    assert len(both) == 36
    smoothed = pd.read_parquet(world / "smoothed.parquet")
    both[["later_lat", "later_lon"]] = smoothed[["smoothed_lat", "smoothed_lon"]].to_numpy()
    space = dphmm.storage.load_model(world / "model.npz").space
    return both.assign(inside=space.locate(both.lat.to_numpy(), both.lon.to_numpy()) >= 0)


def plainly(both, kind):
    """The distance of every row by the other formula, from nothing but coordinates."""
    ends = both[["lat", "lon", f"{kind}_lat", f"{kind}_lon"]].to_numpy().tolist()
    return np.array([metres(*end) for end in ends])


@pytest.mark.slow
def test_the_page_s_errors_are_those_of_a_plain_computation(world, joined, tmp_path):
    page = tmp_path / "owner.html"
    told = json.loads(report(world, page, "--truth", world / "walks.csv", "--json").stdout)
    text = page.read_text()
    outside = int((~joined.inside).sum())
    assert outside >= 12 and told["rows_in_no_state"] == outside
    model = dphmm.storage.load_model(world / "model.npz")
    policy = dphmm.storage.load_policy(world / "policy.json", model=model)
    persons = dphmm.report.read_report(world / "released" / "released.parquet", model, policy).persons
    guesses = model.space.to_latlon(np.concatenate([person.guess for person in persons]))
    distances = plainly(joined.assign(guess_lat=guesses[0], guess_lon=guesses[1]), "guess")
    assert told["measured"]["error"] == pytest.approx(distances[joined.inside].mean(), rel=NEAR)
    assert f"{100 * outside / 36:.1f} % of rows lie outside every state; they are in no error." in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text)[1])
    shown = [one for person in data["people"] for one in person["off"]]
    for one, distance in zip(shown, distances, strict=True):
        number, unit = one.replace(",", "").split()
        least = {"m": 5.0, "km": 50.0}[unit]
        assert float(number) * {"m": 1, "km": 1000}[unit] == pytest.approx(distance, rel=FAR, abs=least + 0.01)
    said = report(world, tmp_path / "again.html", "--truth", world / "walks.csv").stderr
    assert f"{outside} rows ({100 * outside / 36:.1f} %), in none of the errors" in said


def test_the_nearest_cell_would_have_given_another_figure(world, joined):
    """The check can fail: measured from the cells that rows are answered from, somebody far away is near."""
    space = dphmm.storage.load_model(world / "model.npz").space
    nearest = space.to_latlon(space.answers[space.nearest(joined.lat.to_numpy(), joined.lon.to_numpy())])
    wrong = plainly(joined.assign(lat=nearest[0], lon=nearest[1]), "z")
    true = plainly(joined, "z")
    assert wrong[~joined.inside].mean() < true[~joined.inside].mean() / 10
    middle = abs(wrong[joined.inside].mean() / true[joined.inside].mean() - 1)
    assert middle > 100 * NEAR


def estimates_of(world, model):
    """Where a reader's belief has its mean after each answer, row by row."""
    policy, found = dphmm.storage.load_policy(world / "policy.json", model=model), []
    with dphmm.open_ledger(world / "ledger.db") as ledger:
        for user, _ in sorted(ledger.sessions()):
            setting = dphmm.ReleaseSession.resume(ledger, user, model, policy, model.space).setting
            walked = walk(setting, setting.first(), ledger.entries(user, "state"), ledger.plan)
            found += [estimate(step.posterior, model.space).answer for step in walked if step.plan is not None]
    lat, lon = model.space.to_latlon(np.array(found))
    return {"estimate_lat": lat, "estimate_lon": lon}


def test_the_audit_s_errors_are_those_of_a_plain_computation(world, joined):
    """The prior and the tracker, whose beliefs are computed here or are those of sessions."""
    attacked = ("report", world / "released", "--truth", world / "walks.csv")
    document = json.loads(run(*attacked, "--json").stdout)["attacks"]
    model = dphmm.storage.load_model(world / "model.npz")
    cells = np.stack(model.space.to_latlon(model.space.answers), axis=1).tolist()
    moves, belief = model.transition, model.initial
    beliefs = {}
    for t in range(1, int(joined.step.max()) + 1):
        if t > 1 or model.start == "before":
            belief = belief @ moves
        beliefs[t] = belief
    true = joined[["lat", "lon"]].to_numpy().tolist()
    apart = np.array([[metres(*place, *cell) for cell in cells] for place in true])
    expected = np.array([distances @ beliefs[t] for t, distances in zip(joined.step, apart, strict=True)])
    inside = joined.inside.to_numpy()
    prior, tracker = document["prior"], document["tracker"]
    assert prior["overall"]["expected_error"] == pytest.approx(expected[inside].mean(), rel=NEAR)
    assert prior["outside"]["expected_error"] == pytest.approx(expected[~inside].mean(), rel=FAR)
    estimate = plainly(joined.assign(**estimates_of(world, model)), "estimate")
    assert tracker["overall"]["guess_error"] == pytest.approx(estimate[inside].mean(), rel=NEAR)
    assert tracker["outside"]["guess_error"] == pytest.approx(estimate[~inside].mean(), rel=FAR)
    assert (prior["rows"], prior["rows_outside"]) == (36, (~inside).sum())
    assert prior["outside"]["success"] == prior["outside"]["probability"] == prior["outside"]["degree"] == 0
    said = run(*attacked).stderr
    assert f"{(~inside).sum()} of 36 rows ({100 * (~inside).mean():.1f} %) are in no state of the model" in said
    error = f"{prior['outside']['expected_error']:,.0f}"
    assert f"prior, of these: expected error {error} m from the true place" in said


def test_states_without_places_keep_their_answers(tmp_path):
    """Names: the error is between answers, and a name that no state has is in none."""
    folder = pages(tmp_path)
    rows = pd.read_csv(folder / "walks.csv")
    rows.loc[3, "state"] = "elsewhere"
    rows.to_csv(folder / "other.csv", index=False)
    model, policy = dphmm.storage.load_model(folder / "model.npz"), dphmm.storage.load_policy(folder / "policy.json")
    public = (model, policy, model.space, 1)
    found = attack(folder / "released" / "released.parquet", folder / "other.csv", *public, adversaries=["prior"])
    assert (found.outside, found.rows, found.elsewhere) == (1, 90, ())
    assert found.lines[-1] == "  1 of 90 rows (1.1 %) are in no state of the model, and in none of the figures above"
    states = rows.state.map({name: state for state, name in enumerate(model.space.names)}).drop(3).to_numpy(dtype=int)
    steps = rows.groupby("user").cumcount().drop(3).to_numpy()
    answers, belief, expected = model.space.answers[:, 0], model.initial, {}
    for step in range(15):
        belief = belief @ model.transition if step or model.start == "before" else belief
        expected[step] = belief
    errors = [np.abs(answers - answers[s]) @ expected[t] for s, t in zip(states, steps, strict=True)]
    assert found["prior"].overall()["expected_error"] == pytest.approx(np.mean(errors), rel=1e-9)


def test_names_of_cells_are_as_good_as_places_of_their_middles(tmp_path):
    """A truth of cell names: the middle of the cell is all that is known."""
    folder = grid(tmp_path)
    model = dphmm.storage.load_model(folder / "model.npz")
    walks_ = pd.read_csv(folder / "walks.csv")
    states = model.space.locate(walks_.lat.to_numpy(), walks_.lon.to_numpy())
    assert (states >= 0).all()
    middles = model.space.to_latlon(model.space.answers[states])
    named = walks_[["user", "t"]].assign(state=[model.space.names[state] for state in states])
    named.to_csv(folder / "named.csv", index=False)
    walks_.assign(lat=middles[0], lon=middles[1]).to_csv(folder / "middles.csv", index=False)
    public = (model, dphmm.storage.load_policy(folder / "policy.json", model=model), model.space, 1)
    released = folder / "released" / "released.parquet"
    overall = [
        attack(released, folder / name, *public, adversaries=["prior"])["prior"].overall()
        for name in ("named.csv", "middles.csv")
    ]
    assert overall[0] == pytest.approx(overall[1], rel=1e-9)
    named.assign(state="home").to_csv(folder / "labels.csv", index=False)
    said = report(folder, folder / "r.html", "--truth", folder / "labels.csv", code=2).stderr
    assert "36 invalid_state" in said and "home" not in said


def test_a_fit_says_the_share_of_rows_in_no_state(tmp_path):
    rows = walk_rows(["a", "b", "c"], 12, 7)
    rows = rows[:24] + [[user, t, "49.0", lon] for user, t, _, lon in rows[24:]]
    write_rows(tmp_path / "people.csv", ["user", "t", "lat", "lon"], rows)
    fit = ("fit", tmp_path / "people.csv", "-o", tmp_path / "m.npz", "--grid", "1km", "--bbox", BBOX, "--step", "5min")
    told = run(*fit, "--json")
    assert json.loads(told.stdout)["share_outside"] == pytest.approx(1 / 3)
    assert "12 rows left out: outside, 33.3 % of those that count" in told.stderr
    write_rows(tmp_path / "names.csv", ["user", "state"], [[f"u{k}", name] for k in range(4) for name in "abza"])
    write_rows(tmp_path / "symbols.csv", ["symbol"], [["a"], ["b"]])
    hidden = ("--states", 2, "--symbols", "state", "--symbols-file", tmp_path / "symbols.csv", "--seed", 1)
    told = run("fit", tmp_path / "names.csv", "-o", tmp_path / "h.npz", *hidden, "--json")
    assert json.loads(told.stdout)["share_outside"] == 0.25
    assert "4 rows left out: outside, 25.0 % of those that count" in told.stderr
