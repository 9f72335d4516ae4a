"""Statements and files that were changed after the release, to make a page promise more than holds.

Claims: facts that are not those of the file, of the policy or of the plans, or that other facts contradict, are refused
in one line; what cannot be checked without the policy is not shown. It would fail for a page that believes the
statement beside the file, as pages did.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import choosing
import dphmm
from commands import run, write_rows
from dphmm.audit import check
from dphmm.choose.planning import World, error_of_known_states
from dphmm.choose.simulated import ModelGuesses, laws_of_steps, places_of_states
from dphmm.errors import InvalidInput
from dphmm.report.assembling import prospects_of
from dphmm.report.content import OTHER_TIMES
from dphmm.report.over_steps import OverSteps
from dphmm.statement.verdict import LINES
from naive import nearest_to_all
from report.spoken import spoken
from report.worlds import public, read, released, report, without_policy

pytestmark = pytest.mark.usefixtures("few_invented_people")

LIE = "ZZZ nothing can be learned from this file"


def refused(folder, tmp_path, ledger=False):
    result = report(folder, tmp_path / "page.html", ledger=ledger, code=2)
    assert not (tmp_path / "page.html").exists()
    lines = [line for line in result.stderr.splitlines() if not line.startswith("warning: ")]
    assert len(lines) == 1
    return lines[0]


UNKNOWN = {"model.people": "unknown", "model.people_known_by": None}
DOUBTED = {"private": "unknown", "reasons": ["fitted on unknown people"]}


@pytest.mark.parametrize(
    ("members", "named"),
    [
        (UNKNOWN, "private is"),
        (DOUBTED, "private is"),
        (UNKNOWN | DOUBTED | {"reasons": ["unknown origin"]}, "reasons is"),
        ({"reasons": ["replayable bits"]}, "private True, and other reasons"),
        ({"private": False, "reasons": ["nobody said"]}, "reasons 'nobody said'"),
        ({"not_protected": ["presence"] * 6}, "not_protected"),
        ({"not_protected": ["nothing"] * 6}, "not_protected 'nothing'"),
    ],
)
def test_truths_and_codes_follow_from_the_other_facts(members, named, doctored, tmp_path):
    folder = doctored("grid", members)
    assert named in refused(folder, tmp_path)
    with pytest.raises(InvalidInput, match=named):
        dphmm.audit.read(folder / "released" / "released.parquet")


@pytest.mark.slow
def test_what_is_not_known_is_not_called_private(doctored, tmp_path):
    """Whatever the statement says of privacy, of a model without privacy that may be of these very people."""
    made = report(doctored("grid", UNKNOWN | DOUBTED), tmp_path / "page.html", "--json")
    said = (tmp_path / "page.html").read_text()
    assert json.loads(made.stdout)["private"] == "unknown"
    assert "<strong>NOT KNOWN TO BE PRIVATE:</strong> the model was fitted without privacy, and nobody said" in said
    assert said.count("It is not known whether this holds: the model was fitted without privacy, and nobody said") == 1
    assert "<strong>NOT PRIVATE:" not in said


@pytest.mark.slow
@pytest.mark.parametrize("known_by", ["owner", "names"])
def test_a_page_says_how_it_is_known_whom_the_model_is_of(known_by, doctored, tmp_path):
    folder = doctored("grid", {"model.people": "others", "model.people_known_by": known_by})
    assert json.loads(report(folder, tmp_path / "page.html", "--json").stdout)["private"] is True
    said = (tmp_path / "page.html").read_text()
    assert {"owner": "as the data owner says", "names": "as far as user names tell"}[known_by] in said
    assert "NOT KNOWN TO BE PRIVATE" not in said


@pytest.mark.parametrize("moved", [1, None], ids=["one row", "all rows"])
def test_mechanisms_are_those_of_the_plans(moved, doctored, world, tmp_path):
    """Names that exist and as many rows as were asked: only the plans that are made again tell."""
    own = json.loads((world("grid") / "released" / "released.parquet.privacy.json").read_text())["mechanism"]["chosen"]
    (name, rows), *_ = own.items()
    moved = moved or rows
    other = {one: count for one, count in {**own, name: rows - moved, "hops": moved}.items() if count}
    assert name != "hops" and sum(other.values()) == sum(own.values())
    said = refused(doctored("grid", {"mechanism.chosen": other}), tmp_path)
    assert "another mechanism.chosen than its plans'" in said


def test_replayable_noise_is_not_private(doctored, tmp_path):
    folder = doctored("grid", {"randomness.replayable_rows": 1})
    assert "private is False" in refused(folder, tmp_path)
    with pytest.raises(InvalidInput, match="private is False"):
        dphmm.audit.read(folder / "released" / "released.parquet")


@pytest.mark.parametrize("column", ["epsilon", "cost"])
@pytest.mark.parametrize("name", ["grid", "delta"])
def test_no_number_of_a_row_is_believed(column, name, doctored, tmp_path):
    """The statement's sums changed with them."""
    sums = {"totals.cost_sum": "0.0012"} if column == "cost" else {}
    line = refused(doctored(name, sums, column, 0.0001), tmp_path)
    assert "epsilon" in line or "cost" in line


def test_a_policy_that_is_not_the_hash_s_is_not_shown(doctored, world, tmp_path):
    """With the policy it is refused; without, neither its kind nor its reach is told as if it were known."""
    folder = doctored("grid", {"policy.parameters": {"radius": "99999 km"}, "policy.kind": "radius"})
    without_policy(folder, tmp_path / "without.html")
    said = (tmp_path / "without.html").read_text()
    assert "99999 km" not in said and "radius, as released.parquet.privacy.json says" in said
    assert "policy.parame" in refused(folder, tmp_path)


def test_rows_that_the_ledger_calls_replayable_are_not_called_private(doctored, world, tmp_path, monkeypatch):
    """Nor is what is told of them taken from the statement alone."""
    own = check.ledger_rows

    def replayable(ledger, users):
        told = own(ledger, users)
        return told | {"releases": [[*row[:-1], False] for row in told["releases"]]}

    monkeypatch.setattr(check, "ledger_rows", replayable)
    line = refused(doctored("grid", {}), tmp_path, ledger=True)
    assert "ledger: randomness.replayable_rows" in line


def test_a_covered_distance_that_no_policy_confirms_is_not_told(doctored, world, tmp_path):
    """The statement names the hash of its policy alone, and a distance that nobody can check."""
    ground = dphmm.storage.load_model(world("grid") / "model.npz").space.on_the_ground(99_000.0)
    far = {"covered_distance": {"metres": 99_000.0, "ground_metres": ground}}
    made = without_policy(doctored("grid", far | {"policy.parameters": None}), tmp_path / "page.html")
    said, told = (tmp_path / "page.html").read_text(), made.story.document()
    assert "99.0 km" not in said + "".join(made.story.words("guaranteed")) and "99 km" not in said
    assert told["guaranteed"]["covered_distance"] is None
    assert "two cells that the policy joins" in said


def stated(folder):
    return json.loads((folder / "released" / "released.parquet.privacy.json").read_text())


@pytest.mark.slow
def test_a_promise_that_was_pasted_in_is_not_believed_beside_a_ledger(doctored, world, tmp_path):
    """Without the ledger the page says whose cap it is, and nothing is called kept."""
    sequence = stated(world("planned"))["sequence"] | {"total": "12"}
    folder = doctored("grid", {"sequence": sequence})
    line = refused(folder, tmp_path, ledger=True)
    assert "promise: the ledger keeps 'u1' to none" in line
    report(folder, tmp_path / "page.html")
    said = (tmp_path / "page.html").read_text()
    assert said.count("The cap is the statement's; the ledger can check it.") == 1
    assert (
        "12 an hour, as the statement says" in said
        and "enforced" not in said.partition("Per person")[2].partition("</table>")[0]
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("members", "named"),
    [
        ({"sequence.total": "40"}, "promise: the ledger ke"),
        ({"schedule.at": "3"}, "schedule: room for 2 answers in a block is stated, and it is 1"),
        ({"schedule.name": "paced", "schedule.spreads": [100.0]}, "schedule: the ledger asks by another one"),
    ],
)
def test_another_promise_or_schedule_than_the_ledger_s_is_refused(members, named, doctored, world, tmp_path):
    line = refused(doctored("planned", members), tmp_path, ledger=True)
    assert line.startswith("error: ") and named in line
    report(world("planned"), tmp_path / "page.html", ledger=True)
    said = (tmp_path / "page.html").read_text()
    assert "can check it" not in said and "4 an hour, enforced by the ledger" in said


def test_learning_that_the_model_does_not_record_is_refused(doctored, tmp_path):
    learned = json.loads((Path(__file__).parents[1] / "statement/kept/learned.json").read_text())["learning"]
    assert "learning is N" in refused(doctored("grid", {"learning": learned}), tmp_path)


@pytest.mark.parametrize(
    ("spread", "told"), [(1e6, "a schedule that does not ask at step"), (1e-9, "leaves out steps that the stated")]
)
def test_a_schedule_that_was_called_paced_is_followed(spread, told, doctored, tmp_path):
    """Under wide spreads nobody would have been asked; under narrow ones at once, and nothing is expected of that."""
    members = {"schedule.name": "paced", "schedule.spreads": [spread, spread], "schedule.at": "1-12"}
    folder = doctored("planned", members)
    (folder / "released" / "plan.json").unlink()
    if spread > 1:
        assert told in refused(folder, tmp_path)
        return
    found = json.loads(report(folder, tmp_path / "page.html", "--json").stdout)
    assert found["found"] is None and told in (tmp_path / "page.html").read_text()


@pytest.mark.slow
def test_a_paced_release_is_as_its_schedule_says(world, tmp_path):
    """And its figures are told: what follows a schedule is not called off it."""
    copied(world("planned"), tmp_path)
    public = (tmp_path / "model.npz", "--policy", tmp_path / "policy.json")
    paced = ("--path-epsilon", 4, "--per", "1h", "--people", 20, "--schedule", "paced")
    run("plan", *public, *paced, "-o", tmp_path / "plan.json")
    released(tmp_path, "--plan", tmp_path / "plan.json", epsilon=None)
    found = report(tmp_path, tmp_path / "page.html", "--json").stdout
    assert json.loads(found)["found"]["error"] > 0


def copied(folder, into):
    """What a release of a world is made from, to be released otherwise."""
    for name in ("model.npz", "policy.json", "walks.csv"):
        shutil.copy(folder / name, into / name)


def chosen(folder, *users):
    """The report of a folder, made for some users."""
    return read(folder, users=users)


@pytest.mark.slow
def test_whoever_is_shown_the_figures_are_of_all_people(world):
    """Of half a block: what is believed of everybody's rows, and not of those who make a better figure."""
    folder = world("grid")
    every = chosen(folder)
    for user in every.rows.by_user:
        one = chosen(folder, user)
        assert one.found.error == every.found.error
        assert one.further == every.further and [person.name for person in one.persons] == [user]
        both = [OverSteps(told).believed[0] for told in (one, every)]
        assert both[0] == pytest.approx(both[1], nan_ok=True)


def test_what_answers_tell_of_places_further_apart_is_of_every_plan(world, tmp_path):
    """One person has rows of epsilon 1 alone, others of 3: whoever is shown, it is the most."""
    copied(world("grid"), tmp_path)
    run("policy", "radius", tmp_path / "model.npz", "-o", tmp_path / "policy.json", "--covers", "1km", "--force")
    times = {f"2024-05-06T08:{5 * step:02d}:00Z": {"epsilon": 3} for step in range(3, 12)}
    chosen = {"step_choices": choosing.steps_of(tmp_path, times)}
    rows = (tmp_path / "walks.csv").read_text().splitlines()
    short = [row for row in rows if not row.startswith("u1") or row in rows[:4]]
    (tmp_path / "walks.csv").write_text("\n".join(short) + "\n")
    (tmp_path / "released").mkdir()
    choosing.release(tmp_path, "released/released.parquet", **chosen)
    pages = []
    for user in ("u1", "u2"):
        one = read(tmp_path, users=[user], progress=False, **chosen)
        dphmm.report.write_report(tmp_path / f"{user}.html", one)
        pages.append(
            re.findall(
                r"apart on the map one answer can multiply the odds by ([0-9,.]+)[;.]",
                (tmp_path / f"{user}.html").read_text(),
            )
        )
    assert pages[0] == pages[1] and pages[0]
    assert float(pages[0][0].replace(",", "")) > np.exp(3)


def test_a_step_has_the_policy_that_was_chosen_for_it_and_no_other(world, tmp_path):
    """All answers are under the narrow policy; the statement is edited to say so of the first step alone."""
    copied(world("grid"), tmp_path)
    run("policy", "radius", tmp_path / "model.npz", "-o", tmp_path / "narrow.json", "--covers", "1km")
    run("policy", "complete", tmp_path / "model.npz", "-o", tmp_path / "policy.json", "--force")
    times = pd.read_csv(tmp_path / "walks.csv").t.drop_duplicates().tolist()
    narrow = {"policy": choosing.public(tmp_path, "narrow.json")[1]}
    chosen = choosing.steps_of(tmp_path, dict.fromkeys(times, narrow))
    choosing.release(tmp_path, "released.parquet", step_choices=chosen)
    given = (tmp_path / "released.parquet", *public(tmp_path))
    dphmm.report.read_report(*given, progress=False, step_choices=chosen)
    place = tmp_path / "released.parquet.privacy.json"
    told = json.loads(place.read_text())
    (one,) = told["varied"]["chosen"]
    one["steps"] = [[one["steps"][0][0]] * 2]
    place.write_text(json.dumps(told))
    with pytest.raises(InvalidInput, match="got an answer drawn under plan"):
        dphmm.report.read_report(*given, progress=False, step_choices=choosing.steps_of(tmp_path, {times[0]: narrow}))


def test_nobody_is_nearer_than_who_knows_the_cell(world, tmp_path):
    """However large epsilon is: what is believed leaves out the place in a cell, which nobody is told."""
    copied(world("grid"), tmp_path)
    released(tmp_path, "--path-epsilon", 480, "--steps", 24, epsilon=None)
    found = chosen(tmp_path)
    assert found.found.error > 0.9 * error_of_known_states(found.space) > 300


def two_towns(folder):
    """People of a row of 28 cells who are in the four westernmost, 65 of 100, or the four easternmost, as it comes."""
    space = dphmm.Grid(10.0, 50.0, 10.195, 50.0044, 500)
    shares = np.zeros(space.n_states)
    shares[:4], shares[-4:] = 0.65 / 4, 0.35 / 4
    moves = np.tile(shares, (space.n_states, 1))
    dphmm.storage.save_model(dphmm.MarkovModel(shares, moves, space=space, start="at", step=3600), folder / "model.npz")
    run("policy", "radius", folder / "model.npz", "-o", folder / "policy.json", "--covers", "500m")
    cells = np.random.default_rng(4).choice(space.n_states, (30, 6), p=shares)
    lat, lon = space.to_latlon(space.own_answers[cells])
    rows = [
        [f"u{user:02d}", f"2024-05-06T{hour:02d}:00:00Z", lat[user, hour], lon[user, hour]]
        for user in range(30)
        for hour in range(6)
    ]
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], rows)
    return released(folder, epsilon="0.1", smoothed=False)


@pytest.mark.slow
def test_a_reader_guesses_the_place_that_is_near_and_not_the_mean_of_two_towns(tmp_path):
    """What is expected of rows, and what is measured: no more than the weighted median errs, far less than the mean."""
    folder = two_towns(tmp_path)
    found = chosen(folder)
    model, policy = public(folder)
    rows = pq.read_table(folder / "released" / "released.parquet").to_pandas()
    smoothed = dphmm.reconstruction.smooth(rows, model, policy, model.space, marginals=True, progress=False)
    marginals = np.stack(smoothed.marginals.to_numpy())
    there, points = places_of_states(model.space), model.space.own_answers
    means, medians = marginals @ points, nearest_to_all(marginals.T, points)
    mean, best = (
        np.mean(
            [row @ model.space.distances(there, one).mean(axis=1) for row, one in zip(marginals, each, strict=True)]
        )
        for each in (means, medians)
    )
    assert best < 0.85 * mean
    assert found.found.error == pytest.approx(best, rel=0.01)
    assert found.found.error == pytest.approx(np.mean([person.spread.mean() for person in found.persons]))
    measured = dphmm.report.read_report(
        folder / "released" / "released.parquet", model, policy, truth=folder / "walks.csv"
    )
    places = measured.truth.places
    by_median, by_mean = (float(model.space.distances(each, places).mean()) for each in (medians, means))
    assert measured.truth.mean == pytest.approx(by_median, rel=0.03) and by_median < 0.85 * by_mean
    assert measured.found == found.found


def test_of_people_who_are_easier_to_find_figures_are_of_the_file(tmp_path):
    """The model has people anywhere on a long line; those of the file stay at its one state far away."""
    space = dphmm.StateSpace([0, *range(60, 80)])
    moves = 0.98 * np.eye(21) + 0.02 / 21
    model = dphmm.MarkovModel(np.full(21, 1 / 21), moves, space=space, step=3600)
    dphmm.storage.save_model(model, tmp_path / "model.npz")
    dphmm.storage.save_policy(dphmm.policy.complete(21), tmp_path / "policy.json", space)
    rows = [[f"u{user}", f"2024-05-06T{hour:02d}:00:00Z", 0] for user in range(4) for hour in range(24)]
    write_rows(tmp_path / "walks.csv", ["user", "t", "state"], rows)
    found = chosen(released(tmp_path, "--path-epsilon", 72, "--per", "1d", epsilon=None, smoothed=False))
    expected = found.prospects.expected
    assert found.found.error < 0.5 * expected.found.error
    assert found.found.error == pytest.approx(np.mean([person.spread.mean() for person in found.persons]))
    # Of who stays at the places of the model, this one among them.
    assert found.found.stays == expected.found.stays


@pytest.mark.slow
def test_who_stays_is_told_of_where_people_are_when_blocks_of_the_file_begin(tmp_path):
    """At one step of 24 people are far away, at late blocks at any: of them it is told, and not of step 1 alone."""
    length, slip = 24, 2e-5
    answers = [-1000, 1000, *np.tile([-1, 0, 1], length - 1).tolist()]
    phase = np.r_[0, 0, np.repeat(np.arange(1, length), 3)]
    moves = np.zeros((len(phase), len(phase)))
    for at, here in enumerate(phase):
        for to in range(length):
            there = np.flatnonzero(phase == to)
            moves[at, there] = (slip / length + (1 - slip) * (to == (here + 1) % length)) / len(there)
    space = dphmm.StateSpace(answers, [f"{p}:{at}" for p, at in zip(phase, answers, strict=True)])
    begin = np.where(phase == 0, 0.5, 1e-9)
    model = dphmm.MarkovModel(begin / begin.sum(), moves, space=space, start="at")
    dphmm.storage.save_model(model, tmp_path / "model.npz")
    dphmm.storage.save_policy(dphmm.policy.complete(len(phase)), tmp_path / "policy.json", space)
    late = [1, *range(4000 * length + 1, 4010 * length + 1)]
    rows = [[user, step, space.names[step % 7]] for user in ("ann", "ben") for step in late]
    write_rows(tmp_path / "walks.csv", ["user", "step", "state"], rows)
    found = chosen(released(tmp_path, "--path-epsilon", 2, "--per", 24, epsilon=None, smoothed=False))
    steps = found.begins(length)
    assert steps.tolist() == [1, *range(4000 * length + 1, 4010 * length + 1, length)]
    laws = laws_of_steps(model, steps)
    due = np.mean([min(law @ np.abs(np.subtract(answers, guess)) for guess in answers) for law in laws])
    assert found.begins_alike and found.found.stays_without == pytest.approx(due, rel=1e-3) and due < 300


TOWNS = np.array([0, 1, 2, 1000, 1001, 1002])
ANYWHERE = np.full((3, 3), 1 / 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "moves", "answers", "told"),
    [
        # Everybody is in the first town at step 1, and later in the second.
        ([1 / 3] * 3 + [0] * 3, np.kron([[0.9, 0.1], [0, 1]], ANYWHERE), TOWNS, True),
        # A few have left by then, who are all of an error.
        ([1 / 3] * 3 + [0] * 3, np.kron([[0.9989, 0.0011], [0.02, 0.98]], ANYWHERE), TOWNS, True),
        # A state is possible at step 1 alone: its plan is another one.
        ([0.49, 0.49, 0, 0, 0.02 - 1e-9, 1e-9], np.eye(6)[[2, 3, 0, 1, 5, 5]], [0, 10, 1, 11, 5, 6], True),
        # A far state is possible at step 1 alone, and the noise of its plan is as large as it is far.
        ([0.5, 0.5 - 1e-9, 1e-9], [[0.5, 0.5, 0], [0.5, 0.5, 0], [1, 0, 0]], [0, 1, 3000], True),
        # One side is reached later alone: noise is small in the first block, and wide in later ones.
        (
            [0.5, 0.5 - 1e-9, 0, 1e-9],
            [[0.5, 0.5, 0, 0], [0.45, 0.5, 0.05, 0], [0, 0.05, 0.95, 0], [0, 1, 0, 0]],
            [0, 1, 2000, 1],
            True,
        ),
        ([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [0, 1], True),
    ],
)
def test_who_stays_is_told_as_blocks_of_the_file_are_planned(begin, moves, answers, told, tmp_path, monkeypatch):
    """Of people as the model has them when blocks begin, and under the plans from there on."""
    monkeypatch.setattr("dphmm.choose.planning.STAYERS", 20_000)
    space = dphmm.StateSpace(answers)
    begin = np.array(begin)
    if begin[-1] != 1e-9:
        # A little of all states, so that plans are alike.
        begin = 0.999_999 * begin + 1e-6 / len(begin)
    model = dphmm.MarkovModel(begin / begin.sum(), moves, space=space, start="at")
    policy, promise = dphmm.policy.complete(len(begin)), dphmm.SequencePromise(2, per=24)
    dphmm.storage.save_model(model, tmp_path / "model.npz")
    dphmm.storage.save_policy(policy, tmp_path / "policy.json", space)
    rows = [[user, step, answers[step % 2]] for user in ("ann", "ben") for step in (1, *range(2401, 2425))]
    write_rows(tmp_path / "walks.csv", ["user", "step", "state"], rows)
    run("plan", tmp_path / "model.npz", "--policy", tmp_path / "policy.json", "--path-epsilon", 2, "--per", 24,
        "--people", 6, "-o", tmp_path / "plan.json")  # fmt: skip
    found = chosen(released(tmp_path, "--plan", tmp_path / "plan.json", epsilon=None, smoothed=False))
    assert found.begins(24).tolist() == [1, 2401]
    # Where nobody can stay nothing is told of them.
    assert found.begins_alike and told == bool(found.found.stays)
    if told:
        each = [World(model, policy, space, promise, begins=np.array([step])) for step in (1, 2401)]
        due = np.mean([planner.stays(found.schedule).found[0].error for planner in each])
        # Few people are most of some errors.
        assert found.found.own_stay.error == pytest.approx(due, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("begin", "moves", "answers"),
    [
        # Everybody is in the first town at step 1, and later in the second.
        ([1 / 3] * 3 + [0] * 3, np.kron([[0.9, 0.1], [0, 1]], ANYWHERE), TOWNS),
        # A few have left by then, who are all of an error.
        ([1 / 3] * 3 + [0] * 3, np.kron([[0.9989, 0.0011], [0.02, 0.98]], ANYWHERE), TOWNS),
        # Most are at another place nearby, and a few far away are all of the error.
        ([0.9, 0, 0.05, 0.05], 0.99 * np.eye(4)[[1, 1, 2, 3]] + 0.01 * np.eye(4)[[0, 0, 2, 3]], [0, 5, 1000, 1001]),
    ],
)
def test_who_stays_is_not_told_of_other_beginnings_where_plans_hang_on_beliefs(begin, moves, answers, tmp_path):
    """People are followed from step 1 on: of those who are elsewhere later nothing is known."""
    space, n = dphmm.StateSpace(answers), len(answers)
    law = 0.999_999 * np.array(begin) + 1e-6 / n
    model = dphmm.MarkovModel(law / law.sum(), moves, space=space, start="at")
    dphmm.storage.save_model(model, tmp_path / "model.npz")
    dphmm.storage.save_policy(
        dphmm.policy.complete(n), tmp_path / "policy.json", space, setting={"constraint": "delta=0.01"}
    )
    for steps, told in (((1, *range(2401, 2425)), False), (range(1, 25), True)):
        write_rows(
            tmp_path / "walks.csv", ["user", "step", "state"], [["ann", step, answers[step % 2]] for step in steps]
        )
        for old in (*tmp_path.glob("released*"), *tmp_path.glob("ledger*")):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        options = ("--path-epsilon", 2, "--per", 24)
        found = chosen(released(tmp_path, *options, epsilon=None, smoothed=False))
        assert found.prospects.expected.follows and found.begins_alike == told
        assert told or f"is found is not known: {OTHER_TIMES}." in found.story.verdict.about_stays


def test_without_times_blocks_of_a_clock_may_begin_at_any_step(tmp_path):
    """At midnights people are at one of three places, at noons at one of two far away; step 1 is a noon."""
    folder, rows = tmp_path, []
    moves = np.zeros((5, 5))
    moves[:2, 2:], moves[2:, :2] = 1 / 3, 1 / 2
    begin = np.array([0.5, 0.5, 1e-9, 1e-9, 1e-9])
    space = dphmm.StateSpace([-1000, 1000, -1, 0, 1])
    model = dphmm.MarkovModel(begin / begin.sum(), moves + 1e-12, space=space, start="at", step=43_200)
    dphmm.storage.save_model(model, folder / "model.npz")
    dphmm.storage.save_policy(dphmm.policy.complete(5), folder / "policy.json", space)
    for day in range(1, 12):
        rows += [["ann", f"2024-05-{day:02d}T12:00:00Z", 1000], ["ann", f"2024-05-{day + 1:02d}T00:00:00Z", 0]]
    write_rows(folder / "walks.csv", ["user", "t", "state"], rows)
    released(folder, "--path-epsilon", 1, "--per", "1d", epsilon=None, smoothed=False)
    timed = chosen(folder)
    assert timed.begins(2).tolist() == list(range(2, 23, 2))
    assert timed.prospects.stays.without == pytest.approx(2 / 3, rel=1e-4)
    found = replace(timed, rows=replace(timed.rows, time=None))
    assert found.begins(2).tolist() == list(range(1, 23))
    without = prospects_of(found.made, None, found.begins).stays.without
    assert without == pytest.approx((1000 + 2 / 3) / 2, rel=1e-4)


def test_an_answer_that_surprises_leaves_more_open_than_there_was(tmp_path):
    """Seven of ten are at home by the model, and the answer is "away": by Bayes 46 of 100 such guesses are wrong.

    A guess without the file is judged by the same answers, and is no better than one with it.
    """
    space = dphmm.StateSpace.labels(["home", "away"])
    model = dphmm.MarkovModel([0.7, 0.3], [[0.7, 0.3], [0.7, 0.3]], space=space, start="at")
    dphmm.storage.save_model(model, tmp_path / "model.npz")
    dphmm.storage.save_policy(dphmm.policy.complete(2), tmp_path / "policy.json", space)
    write_rows(tmp_path / "walks.csv", ["user", "step", "state"], [[f"u{user}", 1, "away"] for user in range(40)])
    every = chosen(released(tmp_path, epsilon=1, smoothed=False))
    away = every.rows.z[:, 0] == 1
    told = np.exp(1) / (1 + np.exp(1))
    due = {
        True: 0.7 * (1 - told) / (0.7 * (1 - told) + 0.3 * told),
        False: 0.3 * (1 - told) / (0.3 * (1 - told) + 0.7 * told),
    }
    assert 10 < away.sum() < 40 and every.spreads == pytest.approx(
        [min(due[one], 1 - due[one]) for one in away.tolist()]
    )
    assert every.found.error == pytest.approx(np.mean([due[one] for one in away.tolist()])) and every.found.error > 0.3
    # Who reads no file guesses home.
    alone = [1 - due[True] if one else due[False] for one in away.tolist()]
    assert every.found.without == pytest.approx(np.mean(alone)) and np.mean(alone) > every.found.error


def test_of_times_that_are_easier_to_tell_figures_are_of_the_file(tmp_path):
    """The model begins in the middle and spreads slowly: on its first day a reader is far nearer than in the week."""
    space = dphmm.Grid(10.0, 50.0, 10.056, 50.036, 500)
    middle = np.argsort(np.linalg.norm(space.own_answers - space.own_answers.mean(axis=0), axis=1))[:4]
    apart = np.linalg.norm(space.own_answers[:, None] - space.own_answers[None], axis=-1)
    moves = np.where(apart < 750, 0.02, 0.0)
    moves[np.diag_indices(space.n_states)] = 0.0
    moves[np.diag_indices(space.n_states)] = 1.0 - moves.sum(axis=1)
    initial = np.zeros(space.n_states)
    initial[middle] = 1 / len(middle)
    model = dphmm.MarkovModel(initial, moves, space=space, start="at", step=3600)
    dphmm.storage.save_model(model, tmp_path / "model.npz")
    run("policy", "complete", tmp_path / "model.npz", "-o", tmp_path / "policy.json")
    rng, rows = np.random.default_rng(3), []
    for user in range(12):
        state = rng.choice(space.n_states, p=initial)
        for hour in range(24):
            lat, lon = space.to_latlon(space.own_answers[[state]])
            rows.append([f"u{user:02d}", f"2024-05-06T{hour:02d}:00:00Z", float(lat[0]), float(lon[0])])
            state = rng.choice(space.n_states, p=moves[state])
    write_rows(tmp_path / "walks.csv", ["user", "t", "lat", "lon"], rows)
    found = chosen(released(tmp_path, epsilon="1/3", smoothed=False))
    believed, expected = np.mean([person.spread.mean() for person in found.persons]), found.prospects.expected
    # Of eight days of the model it was 1.5 times as much.
    assert found.found.error == pytest.approx(believed) and expected.found.error > 1.3 * believed
    # Step 1 begins the day, with everybody in the middle.
    assert found.begins(24).tolist() == [1] and found.found.stays == expected.found.stays
    # Without the file: a guess for each step of the rows, and not the one of most days, which is further off. Of what
    # the answers say it is as far off, but for the chance of twelve people.
    law, alone = model.initial, []
    for _ in range(24):
        alone.append(ModelGuesses(space).off(law))
        law = law @ model.matrix_at(1).toarray()
    assert found.found.without == pytest.approx(np.mean(alone), rel=0.02)
    drawn, without = OverSteps(found).believed
    assert drawn.mean() == pytest.approx(believed, rel=0.01)
    assert without == pytest.approx(alone, rel=0.03)


def test_a_table_is_no_released_file_with_a_statement_beside_it(world):
    with pytest.raises(InvalidInput, match="released: got a DataFrame; expected the path of a released file"):
        dphmm.report.read_report(pd.DataFrame({"user": ["u1"]}), dphmm.storage.load_model(world("grid") / "model.npz"))


def travellers(folder):
    """Thirty people who cross a map in straight lines, under a model that has everybody anywhere at every step."""
    grid = dphmm.Grid.from_bounds(10.0, 50.0, 10.0 + 20 * 0.0139, 50.0 + 20 * 0.0089, 1000.0)
    n, rng, rows = grid.n_states, np.random.default_rng(6), []
    moves = np.full((n, n), 1 / n)
    dphmm.storage.save_model(dphmm.MarkovModel(np.full(n, 1 / n), moves, space=grid), folder / "model.npz")
    run("policy", "radius", folder / "model.npz", "-o", folder / "policy.json", "--radius", "1.5km")
    for user in range(30):
        begin, end = rng.uniform(0.05, 0.95, (2, 2))
        for step in range(1, 26):
            place = begin + (end - begin) * step / 25
            rows.append([f"u{user:02}", step, 50.0 + place[1] * 20 * 0.0089, 10.0 + place[0] * 20 * 0.0139])
    write_rows(folder / "walks.csv", ["user", "step", "lat", "lon"], rows)
    public = (folder / "model.npz", "--policy", folder / "policy.json")
    limit = ("--path-epsilon", 20, "--steps", 25, "--epsilon", 4, "--people", 6)
    run("plan", *public, *limit, "-o", folder / "plan.json")
    return released(folder, "--plan", folder / "plan.json", epsilon=None, smoothed=False)


def test_where_people_move_straight_the_best_reader_draws_lines(tmp_path, monkeypatch):
    """Told by answers that were held out: the figure is near what is measured, and no true place decides it."""
    # The answers stay at the middles of equal parts: to move each where it helps most takes most of the time.
    monkeypatch.setattr("dphmm.choose.planning._MOST_POSITIONS", 0)
    folder = travellers(tmp_path)
    own, measured = read(folder), read(folder, truth=folder / "walks.csv")
    assert own.found.reader == LINES and own.found == measured.found
    assert "with straight lines between answers (" in own.found.lines[0]
    assert "of whose answers one at a time was held out" in spoken(own, "found_note")[0]
    rows, truth, off = own.rows, measured.truth.places, []
    for at in rows.by_user.values():
        asked = at[rows.asked[at]]
        line = [np.interp(rows.step[at], rows.step[asked], rows.z[asked, axis]) for axis in range(2)]
        off.append(np.linalg.norm(np.stack(line, axis=1) - truth[at], axis=1).mean())
    # 30 people of five answers each: their mean differs from its expectation by a fifth at most.
    assert own.found.error == pytest.approx(np.mean(off), rel=0.2)
    assert own.found.error < 0.8 * own.believed[1].mean()


def test_where_plans_hang_on_answers_none_is_held_out(world, monkeypatch):
    """An answer that chose a later plan is no answer of that moment alone."""
    seen = []
    monkeypatch.setattr("dphmm.report.assembling.nearer_than_guesses", lambda people, *more: seen.append(len(people)))
    read(world("delta"))
    assert seen == []
    read(world("grid"))
    assert seen == [3]
