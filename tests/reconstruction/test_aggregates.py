"""`dphmm.reconstruction.population`: released tables in, densities out, from public data alone.

Fails where the truth or anything but published rows and public files has a part, where periods are mixed, where a
schedule that earlier answers chose is taken for a public one, and where a release on delta-sets is answered though its
plans tell too few states apart.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.reconstruction.aggregates import expected_errors, public_guess
from dphmm.reconstruction.answers import answers_of
from dphmm.session.setting import Setting, Subjects
from dphmm.states.space import END
from dphmm.storage.released import released_rows


def walks(board, people, steps, seed, side=4):
    space, model, policy = board(side)
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(people):
        state = int(rng.integers(0, side))
        for step in range(1, steps + 1):
            rows.append((f"p{person}", step, state))
            state = int(rng.choice(side * side, p=model.matrix_at(1).toarray()[state]))
    return space, model, policy, pd.DataFrame(rows, columns=["user", "step", "state"])


def released(board, people=60, steps=3, seed=1, epsilon=2, **choices):
    space, model, policy, truth = walks(board, people, steps, seed)
    trips = pd.DataFrame({"user": truth.user, "state": [space.names[state] for state in truth.state]})
    given = {"bits": dphmm.ReplayBits(seed), "progress": False, **choices}
    table = dphmm.release_many(trips, model, policy, space, epsilon, **given)
    return space, model, policy, table, truth


def test_shares_are_those_of_the_people(board):
    _space, model, policy, table, truth = released(board, people=600, steps=2)
    found = dphmm.reconstruction.population(table, model, policy, regions={"row": range(4), "rest": range(4, 16)})
    row = truth.groupby("user").state.apply(lambda states: (states < 4).mean()).mean()
    one, rest = found.regions
    assert one.linear == pytest.approx(row, abs=3.3 * one.standard_error) and one.standard_error < 0.05
    assert one.estimate == pytest.approx(row, abs=0.1)
    assert one.linear + rest.linear == pytest.approx(1) and one.estimate + rest.estimate == pytest.approx(1)
    assert (found.n, found.answers) == (600, 1200) and found.public and not found.notes


def test_shares_by_position_and_over_rows_cover():
    """Cases of 1 or 3 rows, filled up with END or not: of 10 releases at most 1 in 10 intervals misses.

    Power: the share of persons, which is another one, lies outside the intervals of rows in more than 9 of 10 releases.
    """
    space = dphmm.StateSpace.labels(["a", "b", END])
    model = dphmm.MarkovModel([0.5, 0.4, 0.1], [[0.2, 0.4, 0.4], [0.4, 0.2, 0.4], [0, 0, 1]], space=space, start="at")
    policy, missed, wrong = dphmm.policy.complete(3), {}, []
    rng = np.random.default_rng(58)
    lengths = rng.choice([1, 3], 1_000, p=[0.7, 0.3])
    # Short cases are of a, long ones of b: shares of rows are other ones than those of cases.
    cases = ["a" if length == 1 or rng.random() < 0.1 else "b" for length in lengths]
    for seed, filled in product(range(5), (False, True)):
        rows = [
            (f"c{case:04}", step, label if step <= length else END)
            for case, (label, length) in enumerate(zip(cases, lengths.tolist(), strict=True))
            for step in range(1, (3 if filled else length) + 1)
        ]
        truth = pd.DataFrame(rows, columns=["user", "step", "state"])
        table = dphmm.release_many(truth, model, policy, space, 3, bits=dphmm.ReplayBits(seed), progress=False)
        by_step = dphmm.reconstruction.population(table, model, policy, per="step").densities
        over_rows = dphmm.reconstruction.population(table, model, policy, per="rows")
        assert [one.period for one in by_step] == ["step 1", "step 2", "step 3"]
        assert any("not ended" in note for note in over_rows.notes) and over_rows.densities[0].period == "rows"
        for density, own in [
            *((one, truth[truth.step == k]) for k, one in enumerate(by_step, 1)),
            (over_rows.densities[0], truth),
        ]:
            going = own[own.state != END]
            for share in density.regions:
                of = own if share.region == END else going
                exact = (of.state == share.region).mean()
                kind = density.period == "rows", filled
                missed.setdefault(kind, []).append(not share.low <= exact <= share.high)
        of_cases = np.mean([case == "a" for case in cases])
        wrong.append(not over_rows.regions[0].low <= of_cases <= over_rows.regions[0].high)
    assert len(missed) == 4 and max(map(np.mean, missed.values())) <= 0.1 and np.mean(wrong) > 0.9


def test_nothing_reads_the_truth(board):
    """A table with the states beside it gives the same as one without, in whatever order its rows are."""
    space, model, policy, table, truth = released(board)
    beside = table.assign(state=truth.state.to_numpy(), true_z_0=1.0)
    one, other = (dphmm.reconstruction.population(each, model, policy, space, flows=True) for each in (table, beside))
    assert one.to_pandas().to_csv() == other.to_pandas().to_csv()
    assert one.to_pandas(flows=True).to_csv() == other.to_pandas(flows=True).to_csv()
    mixed = dphmm.reconstruction.population(table.sample(frac=1, random_state=1), model, policy, space)
    assert mixed.q.tobytes() == one.q.tobytes()


def test_flows_of_a_period_begin_in_it_and_end_with_the_next_answer(board):
    """Answers at 23:30, 0:30 and 23:30 again: one pair crosses midnight, the other joins two answers of one hour."""
    _space, model, policy, table, truth = released(board, people=300, steps=3, epsilon=4)
    day = pd.Timestamp("2024-05-06T23:30:00Z")
    table["t"] = day + pd.to_timedelta(table.step.map({1: 0, 2: 60, 3: 1440}), unit="min")
    in_row = {step: (own.sort_values("user").state < 4).to_numpy() for step, own in truth.groupby("step")}
    options = {"regions": {"row": range(4)}, "flows": True}
    begins = {"hour-of-day": {"23:00": 1, "00:00": 2}, "day": {"2024-05-06": 1, "2024-05-07": 2}}
    for per, first in begins.items():
        found = dphmm.reconstruction.population(table, model, policy, per=per, **options)
        assert found.people == 300
        for one in found.densities:
            share = (in_row[first[one.period]] & in_row[first[one.period] + 1]).mean()
            assert one.region_flows[0].linear == pytest.approx(share, abs=0.1)


def test_the_estimates_of_few_people_leave_everything_open(board):
    _space, model, policy, table, _ = released(board, people=1, steps=1, epsilon=1)
    found = dphmm.reconstruction.population(table, model, policy, regions={"row": range(4)}, flows=True)
    (one,) = found.regions
    assert one.low == 0 and one.high == 1
    assert any("say nothing: 1 of 1" in note for note in found.notes)
    assert any(note.startswith("no flows: nobody has two answers") for note in found.notes)
    assert one.standard_error is None


def test_each_period_has_its_people(board):
    _space, model, policy, table, truth = released(board, people=200, steps=2, epsilon=4)
    day = pd.Timestamp("2024-05-06T23:30:00Z")
    table["t"] = day + pd.to_timedelta((table.step - 1) * 60, unit="min")
    regions = {"row": range(4)}
    for per, zone, names in (
        ("day", "+00:00", ["2024-05-06", "2024-05-07"]),
        ("day", "+01:00", ["2024-05-07"]),
        ("hour-of-day", "+00:00", ["00:00", "23:00"]),
        ("hour-of-day", "-02:30", ["21:00", "22:00"]),
    ):
        found = dphmm.reconstruction.population(table, model, policy, regions=regions, per=per, zone=zone)
        assert [one.period for one in found.densities] == names
    by_step = {"23:00": 1, "00:00": 2}
    for one in dphmm.reconstruction.population(table, model, policy, regions=regions, per="hour-of-day").densities:
        share = (truth[truth.step == by_step[one.period]].state < 4).mean()
        assert one.n == 200 and one.regions[0].linear == pytest.approx(share, abs=0.1)
    with pytest.raises(AttributeError, match="2 periods"):
        found.q  # noqa: B018
    for wrong in ("1", "+1:00", "+15:00", "+00:60", "local"):
        with pytest.raises(InvalidInput, match="zone"):
            dphmm.reconstruction.population(table, model, policy, per="day", zone=wrong)
    with pytest.raises(InvalidInput, match="no column t"):
        dphmm.reconstruction.population(table.drop(columns="t"), model, policy, per="day")
    with pytest.raises(InvalidInput, match="per"):
        dphmm.reconstruction.population(table, model, policy, per="week")


def test_rows_that_were_not_asked_make_answers_count_alike(board):
    space, model, policy, table, _ = released(board)
    asked = table.copy()
    silent = asked.index[(asked.step == 2) & (asked.user == "p1")]
    asked.loc[silent, ["z_0", "z_1", "plan"]] = None
    asked.loc[silent, ["epsilon", "cost"]] = 0.0
    found = dphmm.reconstruction.population(asked, model, policy, space)
    assert not found.public and "answers count alike" in found.notes[0] and found.answers == len(table) - 1
    assert "normal approximation" in found.notes[1]
    planned = dphmm.reconstruction.population(asked, model, policy, space, schedule="planned")
    assert planned.public and not any("approximation" in note for note in planned.notes)
    assert not dphmm.reconstruction.population(table, model, policy, space, schedule="paced").public
    with pytest.raises(InvalidInput, match="schedule"):
        dphmm.reconstruction.population(table, model, policy, space, schedule="sometimes")
    with pytest.raises(InvalidInput, match="no row with an answer"):
        dphmm.reconstruction.population(asked.loc[silent], model, policy, space, 2)


def test_another_model_or_changed_plan_is_refused(board):
    space, model, policy, table, _ = released(board, people=3)
    with pytest.raises(InvalidInput, match="under plan"):
        dphmm.reconstruction.population(table, model, policy, space, 1)
    with pytest.raises(InvalidInput, match="none, and the model has none"):
        dphmm.reconstruction.population(table, dphmm.MarkovModel(model.initial, model.matrix_at(1)), policy)


def test_delta_sets_refuse_what_their_plans_cannot_tell(board):
    """States outside a delta-set are answered as others: regions that part them are refused, with no density."""
    space, model, policy, table, _ = released(board, people=8, steps=3, constraint="delta=0.4")
    halves = {"left": [0, 1, 4, 5, 8, 9, 12, 13], "corner": [0]}
    found = dphmm.reconstruction.population(table, model, policy, space, constraint="delta=0.4", regions=halves)
    assert found.q is None and "plans hang on earlier answers" in found.notes[0]
    assert "no likeliest density" in found.notes[1]
    assert all(share.why for share in found.regions) and "separates states with one law" in found.regions[0].why
    assert all(share.estimate is None and share.low is None for share in found.regions)
    (whole,) = dphmm.reconstruction.population(
        table, model, policy, space, constraint="delta=0.4", regions={"all": range(16)}
    ).regions
    assert whole.why == "" and whole.linear == pytest.approx(1)


def test_more_laws_than_can_be_kept_are_refused(board, monkeypatch):
    space, model, policy, table, _ = released(board, people=8, steps=3, constraint="delta=0.4")
    monkeypatch.setattr("dphmm.reconstruction.answers.LAWS_AT_HAND", 2)
    with pytest.raises(InvalidInput, match="more than 2 different laws"):
        dphmm.reconstruction.population(table, model, policy, space, constraint="delta=0.4")


def test_answers_are_those_of_the_table(board):
    space, model, policy, table, _ = released(board, people=5)
    rows = released_rows(table, space)
    found = answers_of(rows, Subjects(Setting.of(model, policy, space, 2), None, None))
    assert found.people == sorted(set(table.user)) and len(found.plans) == 1
    assert np.array_equal(found.z, rows.z[found.row]) and np.array_equal(found.step, rows.step[found.row])
    assert [found.people[person] for person in found.person] == [rows.users[row] for row in found.row]
    assert found.weights() == pytest.approx(1 / 15) and found.take(found.person == 0).weights() == pytest.approx(1 / 3)


def test_errors_before_are_those_after(board, answers_from):
    """Of people who are where the guess has them; against the spread of estimates of 60 samples."""
    from dphmm.reconstruction.regions import checked_regions
    from dphmm.reconstruction.shares import LinearEstimates, region_shares

    space, model, policy = board(4)
    regions = checked_regions({"row": range(4), "cell": [5]}, space)
    before = expected_errors(model, policy, space, 1, 200, regions)
    plan = dphmm.ReleaseSession(model, policy, space, epsilon=1).plan
    linear = LinearEstimates([plan], regions, public_guess(model), space)
    rng = np.random.default_rng(3)
    samples = [region_shares(answers_from([plan], rng.choice(16, 200), 50 + n), linear, None) for n in range(60)]
    for place, one in enumerate(before):
        spread = np.std([sample[place].linear for sample in samples])
        assert one.standard_error == pytest.approx(spread, rel=0.3)
        assert one.linear == pytest.approx(np.sum(list(regions.values())[place]) / 16)


def test_errors_before_want_people_and_regions_that_can_be_answered(board):
    space, model, policy = board(3)
    with pytest.raises(InvalidInput, match="people"):
        expected_errors(model, policy, space, 1, 0)
    space, model = dphmm.StateSpace([0, 1, 2, 9]), dphmm.MarkovModel(np.full(4, 0.25), np.full((4, 4), 0.25))
    lone = dphmm.policy.from_edges([(0, 1), (1, 2)], 4)
    found = expected_errors(model, lone, space, 1, 10, {"far": [3], "all": range(4)}, protection="merge")
    assert "separates states with one law" in found[0].why and found[0].standard_error is None
    assert found[1].standard_error == pytest.approx(0, abs=1e-6)
    assert expected_errors(model, lone, space, 1, 10, {"far": [3]}, protection="merge")[0] == found[0]


def test_a_table_and_a_page_of_the_result(board):
    _space, model, policy, table, _ = released(board, people=5)
    found = dphmm.reconstruction.population(table, model, policy, regions={"<row>": range(4), "b": [9]}, flows=True)
    frame = found.to_pandas()
    assert frame.region.tolist() == ["<row>", "b"] and frame.answerable.tolist() == ["yes", "yes"]
    flows = found.to_pandas(flows=True)
    assert flows.origin.tolist() == ["<row>", "<row>", "b", "b"] and flows.estimate.between(0, 1).all()
    assert "&lt;row&gt;" in found._repr_html_() and "<row>" not in found._repr_html_()
    assert "p1" not in repr(found) and repr(found).startswith("Population(Density(all, 5 people")


def test_densities_are_points_of_their_states():
    pytest.importorskip("geopandas")
    grid = dphmm.Grid.from_bounds(0.0, 0.0, 0.02, 0.02, cell=1000.0)
    n = grid.n_states
    model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), space=grid)
    policy = dphmm.policy.complete(n)
    trips = pd.DataFrame(
        {"user": [f"u{i}" for i in range(60)], "step": 0, "state": [grid.names[i % 2] for i in range(60)]}
    )
    table = dphmm.release_many(trips, model, policy, grid, 2, bits=dphmm.ReplayBits(1), progress=False)
    found = dphmm.reconstruction.population(table, model, policy)
    points = dphmm.storage.to_geopandas(found.density_table())
    assert list(points["state"]) == list(grid.names) and np.array_equal(points["share"], found.q)
    lat, lon = grid.to_latlon(grid.own_answers)
    assert np.array_equal(points.geometry.x, lon) and np.array_equal(points.geometry.y, lat)
    assert str(points.crs) == "EPSG:4326"
    space = dphmm.StateSpace(np.arange(n), list(grid.names))
    plain = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), space=space)
    table = dphmm.release_many(trips, plain, policy, space, 2, bits=dphmm.ReplayBits(1), progress=False)
    with pytest.raises(InvalidInput, match="a table of a map"):
        dphmm.storage.to_geopandas(dphmm.reconstruction.population(table, plain, policy).density_table())


def test_progress_is_told(board):
    _space, model, policy, table, _truth = released(board)
    seen = []
    dphmm.reconstruction.population(table, model, policy, progress=lambda done, total: seen.append((done, total)))
    assert seen and seen[-1][0] == seen[-1][1]
