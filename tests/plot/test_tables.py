"""Pictures of released tables show their numbers, on the axes that are given, and say what they cannot draw.

Fails where a line or a mark is somewhere else than its numbers, where a name is taken for a formula, or where bad input
ends in anything but one clear line.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

GRID = dphmm.Grid.from_bounds(0.0, 0.0, 0.02, 0.02, cell=300.0)
LINE = dphmm.StateSpace(np.arange(5))
SOLID = dphmm.StateSpace([[0, 0, 0], [1, 0, 2], [0, 3, 1], [2, 2, 2]])
STEPS = 12


def released(space, users=("ann",), steps=STEPS):
    rows = [(user, step) for user in users for step in range(1, steps + 1)]
    truth = space.answers[np.arange(len(rows)) % space.n_states]
    columns = {"user": [user for user, _ in rows], "step": [step for _, step in rows]}
    for j in range(space.dimension):
        columns |= {f"z_{j}": truth[:, j] + 40.0 * (j + 1)}
    return pd.DataFrame({**columns, "epsilon": 1.0, "cost": 3.5}), truth


def lines(ax):
    return {line.get_label(): np.stack(line.get_data(), axis=1) for line in ax.get_lines()}


def words(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("space", [GRID, SOLID])
def test_the_map_has_every_answer(space, ax):
    table, truth = released(space)
    assert dphmm.plot.release_map(table, space, truth=truth, smoothed=truth + 1, ax=ax) is ax
    drawn = lines(ax)
    assert np.allclose(drawn["truth"], truth[:, :2]) and np.allclose(drawn["smoothed"], truth[:, :2] + 1)
    assert np.allclose(drawn["released"], truth[:, :2] + [40, 80])
    assert words(ax) == ["truth", "released", "smoothed"]


@pytest.mark.replayed_words
def test_answers_of_one_number_are_drawn_over_the_steps(ax):
    table, truth = released(LINE)
    dphmm.plot.release_map(table.sample(frac=1, random_state=1), LINE, ax=ax)
    assert np.allclose(lines(ax)["released"], np.stack([np.arange(1, STEPS + 1), truth[:, 0] + 40], axis=1))
    assert words(ax) == ["released"]


def test_a_user_is_chosen_and_named_plainly(ax):
    table, _ = released(GRID, users=("ann", "$x^2$"))
    dphmm.plot.release_map(table, GRID, user="$x^2$", ax=ax)
    assert len(lines(ax)["released"]) == STEPS
    ax.figure.canvas.draw()
    assert ax.get_title() == r"One subject: \$x^2\$"


def test_the_error_is_the_distance_and_its_mean(ax):
    table, truth = released(GRID, users=("ann", "ben"))
    states = np.arange(2 * STEPS) % GRID.n_states
    dphmm.plot.error_over_time(table, truth, GRID, ax=ax)
    again = dphmm.plot.error_over_time(table, states, GRID, ax=Figure().add_subplot())
    for drawn in (lines(ax), lines(again)):
        assert np.allclose(drawn["released"], [[t, np.hypot(40, 80)] for t in range(1, STEPS + 1)])
    assert ax.get_ylabel() == "mean error, m"


def test_rows_without_a_true_state_count_in_no_error(ax):
    table, _ = released(GRID)
    states = np.full(STEPS, -1)
    states[3] = 3
    dphmm.plot.error_over_time(table, states, GRID, ax=ax)
    assert lines(ax)["released"][:, 0].tolist() == [4]
    with pytest.raises(InvalidInput, match="no row with a true state"):
        dphmm.plot.error_over_time(table, np.full(STEPS, -1), GRID, ax=ax)


def test_what_was_spent_adds_up(ax):
    table, _ = released(GRID, users=("ann", "ben"))
    dphmm.plot.spent(table, ax=ax)
    drawn = lines(ax)
    assert drawn["sum of costs"][-1].tolist() == [STEPS, 3.5 * STEPS]
    assert drawn["sum of epsilons: neighbouring paths"][-1].tolist() == [STEPS, STEPS]
    cost = lines(dphmm.plot.spent(table, user="ben", ax=Figure().add_subplot()))["sum of costs"][:, 1]
    assert cost.tolist() == [3.5 * step for step in range(1, STEPS + 1)]


@pytest.mark.replayed_words
@pytest.mark.parametrize("kind", ["pandas", "arrow", "labels"])
def test_what_decode_gives_is_drawn_by_itself_and_beside_its_release(kind, ax):
    import pyarrow as pa

    space = dphmm.StateSpace.labels(list("abcde")) if kind == "labels" else LINE
    model = dphmm.MarkovModel(np.full(5, 0.2), np.full((5, 5), 0.2), space=space)
    table = pd.DataFrame({"user": ["ann"] * 6, "step": range(6), "state": [space.names[i] for i in (0, 1, 1, 2, 4, 3)]})
    world = (model, dphmm.policy.complete(5), space)
    table = dphmm.release_many(pa.Table.from_pandas(table) if kind == "arrow" else table, *world, 2, progress=False)
    smoothed = dphmm.smooth(table, *world)
    alone = lines(dphmm.plot.release_map(smoothed, space, ax=ax))
    both = lines(dphmm.plot.release_map(table, space, smoothed=smoothed, ax=Figure().add_subplot()))
    assert set(alone) == {"smoothed"} and set(both) == {"released", "smoothed"}
    assert np.array_equal(alone["smoothed"], both["smoothed"])
    if kind == "labels":
        assert [space.names[int(n)] for n in alone["smoothed"][:, 1]] == list(smoothed["smoothed"])
    else:
        assert np.array_equal(alone["smoothed"][:, 1], np.array(smoothed["smoothed_0"]))
    if kind == "pandas":
        with pytest.raises(InvalidInput, match="smoothed: got a table of another column step"):
            dphmm.plot.release_map(table, space, smoothed=smoothed.iloc[::-1])
    truth = np.array([0, 1, 1, 2, 4, 3])
    errors = lines(dphmm.plot.error_over_time(smoothed, truth, space, ax=Figure().add_subplot()))
    assert list(errors) == ["smoothed"]


@pytest.mark.replayed_words
def test_shares_of_a_population_have_their_intervals(ax):
    space = dphmm.StateSpace([0, 1, 2], ["a", "b", "c"])
    model = dphmm.MarkovModel([0.5, 0.25, 0.25], [[0.8, 0.2, 0], [0.1, 0.8, 0.1], [0, 0.2, 0.8]])
    policy = dphmm.policy.complete(3)
    plan = dphmm.ReleaseSession(model, policy, space, epsilon=2).plan
    rows = {"user": [f"u{i}" for i in range(90)], "step": 1, "z_0": [0.0, 2.0, 2.0] * 30, "epsilon": 2.0}
    table = pd.DataFrame(rows).assign(plan=plan.hash)
    found = dphmm.population(table, model, policy, space)
    assert dphmm.plot.shares(found, ax=ax) is ax
    told = {}
    for line in ax.get_lines():
        told.setdefault(line.get_label(), []).append(np.stack(line.get_data(), axis=1).tolist())
    for place, share in enumerate(found.regions):
        assert told["90 % interval"][place] == [[100 * share.low, place], [100 * share.high, place]]
        assert told["linear estimate"][place] == [[100 * share.linear, place]]
        assert told["likeliest"][place] == [[100 * share.estimate, place]]
    assert sorted(words(ax)) == ["90 % interval", "likeliest", "linear estimate"]
    assert ax.get_title() == "Where 90 people are"
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b", "c"]
    with pytest.raises(InvalidInput, match="period: got day; expected one of all"):
        dphmm.plot.shares(found, "day")


@pytest.mark.replayed_words
def test_attacks_are_drawn_with_the_numbers_of_their_report(ax):
    model = dphmm.MarkovModel(np.full(5, 0.2), np.full((5, 5), 0.2), space=LINE)
    truth = pd.DataFrame({"user": ["ann"] * 4 + ["ben"] * 4, "step": [*range(4)] * 2, "state": list("01234012")})
    world = (model, dphmm.policy.complete(5), LINE, 1)
    report = dphmm.audit.attack(dphmm.release_many(truth, *world, progress=False), truth, *world)
    assert dphmm.plot.attacks(report, ax=ax) is ax
    drawn = lines(ax)
    assert list(drawn) == [one.name for one in report.measured]
    for one in report.measured:
        told = one.per_step()
        assert np.array_equal(drawn[one.name], np.stack([told["t"], told["expected_error"]], axis=1))
    assert ax.get_title().startswith("FOR THE OWNER ALONE") and ax.get_ylabel().endswith(report.unit)


BAD = {
    "no population": lambda p, t: p.shares(t),
    "no attack": lambda p, t: p.attacks(t),
    "no answers": lambda p, t: p.release_map(t[["user", "step", "cost"]], GRID),
    "no table": lambda p, t: p.release_map(pd.DataFrame({"user": ["a"]}), GRID),
    "no rows": lambda p, t: p.release_map(t.iloc[:0], GRID),
    "no column": lambda p, t: p.release_map(t.drop(columns="z_1"), GRID),
    "words": lambda p, t: p.spent(t.assign(cost="x")),
    "another user": lambda p, t: p.release_map(t, GRID, user="nobody"),
    "truth of other rows": lambda p, t: p.release_map(t, GRID, truth=np.zeros((3, 2))),
    "states that are none": lambda p, t: p.release_map(t, GRID, truth=np.full(STEPS, GRID.n_states)),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name):
    with pytest.raises(InvalidInput) as refused:
        BAD[name](dphmm.plot, released(GRID)[0])
    assert "\n" not in str(refused.value)
