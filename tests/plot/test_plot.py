"""`dphmm.plot`: every picture shows the numbers it was given, on the axes it was given, and says what it cannot draw.

Fails where a line or a mark is somewhere else than its numbers, where a name is taken for a formula, where matplotlib
is loaded before a picture is drawn, or where bad input ends in anything but one clear line.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.dependent import Chain, Sum, compare
from dphmm.errors import InvalidInput

pytest.importorskip("matplotlib")
from matplotlib.axes import Axes
from matplotlib.figure import Figure

GRID = dphmm.Grid.from_bounds(0.0, 0.0, 0.02, 0.02, cell=300.0)
LINE = dphmm.StateSpace(np.arange(5))
SOLID = dphmm.StateSpace([[0, 0, 0], [1, 0, 2], [0, 3, 1], [2, 2, 2]])
STEPS = 12


@pytest.fixture
def ax():
    return Figure().add_subplot()


def released(space, users=("ann",), steps=STEPS):
    rows = [(user, step) for user in users for step in range(1, steps + 1)]
    truth = space.answers[np.arange(len(rows)) % space.n_states]
    columns = {"user": [user for user, _ in rows], "step": [step for _, step in rows]}
    for j in range(space.dimension):
        columns |= {f"z_{j}": truth[:, j] + 40.0 * (j + 1), f"estimate_{j}": truth[:, j] + 10.0}
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
    assert np.allclose(drawn["released"], truth[:, :2] + [40, 80]) and np.allclose(drawn["estimate"], truth[:, :2] + 10)
    assert words(ax) == ["truth", "released", "estimate", "smoothed"]


def test_a_release_of_z_alone_is_drawn_without_estimates(ax):
    table, truth = released(GRID)
    table = table.drop(columns=["estimate_0", "estimate_1"])
    dphmm.plot.release_map(table, GRID, truth=truth, ax=ax)
    assert words(ax) == ["truth", "released"]
    assert words(dphmm.plot.error_over_time(table, truth, GRID, ax=Figure().add_subplot())) == ["released"]


@pytest.mark.replayed_words
def test_answers_of_one_number_are_drawn_over_the_steps(ax):
    table, truth = released(LINE)
    dphmm.plot.release_map(table.sample(frac=1, random_state=1), LINE, ax=ax)
    assert np.allclose(lines(ax)["estimate"], np.stack([np.arange(1, STEPS + 1), truth[:, 0] + 10], axis=1))
    assert words(ax) == ["released", "estimate"]


def test_without_axes_there_is_a_new_figure():
    from matplotlib import pyplot

    made = dphmm.plot.hull(dphmm.sensitivity_hull(dphmm.policy.radius(GRID, 700), GRID))
    assert isinstance(made, Axes)
    pyplot.close(made.figure)


def test_a_user_is_chosen_and_named_plainly(ax):
    table, _ = released(GRID, users=("ann", "$x^2$"))
    dphmm.plot.release_map(table, GRID, user="$x^2$", ax=ax)
    assert len(lines(ax)["estimate"]) == STEPS
    ax.figure.canvas.draw()
    assert ax.get_title() == r"One subject: \$x^2\$"


def test_other_kinds_of_tables_give_the_same(ax):
    import pyarrow as pa

    table, _ = released(GRID)
    first = lines(dphmm.plot.release_map(table, GRID, ax=ax))
    again = lines(dphmm.plot.release_map(pa.Table.from_pandas(table), GRID, ax=Figure().add_subplot()))
    assert all(np.array_equal(first[name], again[name]) for name in ("released", "estimate"))


def test_the_error_is_the_distance_and_its_mean(ax):
    table, truth = released(GRID, users=("ann", "ben"))
    states = np.arange(2 * STEPS) % GRID.n_states
    dphmm.plot.error_over_time(table, truth, GRID, ax=ax)
    again = dphmm.plot.error_over_time(table, states, GRID, ax=Figure().add_subplot())
    for drawn in (lines(ax), lines(again)):
        assert np.allclose(drawn["released"], [[t, np.hypot(40, 80)] for t in range(1, STEPS + 1)])
        assert np.allclose(drawn["estimate"][:, 1], np.hypot(10, 10))
    assert ax.get_ylabel() == "mean error, m"


def test_rows_without_a_true_state_count_in_no_error(ax):
    table, _ = released(GRID)
    states = np.full(STEPS, -1)
    states[3] = 3
    dphmm.plot.error_over_time(table, states, GRID, ax=ax)
    assert lines(ax)["estimate"][:, 0].tolist() == [4]
    with pytest.raises(InvalidInput, match="no row with a true state"):
        dphmm.plot.error_over_time(table, np.full(STEPS, -1), GRID, ax=ax)


def test_what_was_spent_adds_up_and_ends_where_it_is_unbounded(ax):
    table, _ = released(GRID, users=("ann", "ben"))
    table.loc[STEPS + 5, "cost"] = np.inf
    dphmm.plot.spent(table, ax=ax)
    drawn = lines(ax)
    assert drawn["sum of costs"][-1].tolist() == [STEPS, 3.5 * STEPS]
    assert drawn["sum of epsilons: neighbouring paths"][-1].tolist() == [STEPS, STEPS]
    cost = lines(dphmm.plot.spent(table, user="ben", ax=Figure().add_subplot()))["sum of costs"][:, 1]
    assert np.isnan(cost[5:]).all() and cost[4] == 17.5


def test_a_hull_is_its_corners(ax):
    body = dphmm.sensitivity_hull(dphmm.policy.radius(GRID, 700), GRID)
    dphmm.plot.hull(body, around=[100.0, 200.0], ax=ax)
    outline = {tuple(point) for point in np.round(lines(ax)["sensitivity hull"], 6)}
    assert outline == {tuple(point) for point in np.round(body.vertices + np.array([100, 200]), 6)}


def test_hulls_of_one_and_three_numbers_and_flat_ones(ax):
    one = dphmm.sensitivity_hull(dphmm.policy.radius(LINE, 2), LINE)
    assert np.ptp(lines(dphmm.plot.hull(one, ax=ax))["sensitivity hull"][:, 0]) == 4
    three = dphmm.sensitivity_hull(dphmm.policy.complete(4), SOLID)
    drawn = lines(dphmm.plot.hull(three, ax=Figure().add_subplot()))["sensitivity hull"]
    assert np.allclose(np.abs(drawn).max(axis=0), np.abs(three.vertices[:, :2]).max(axis=0))
    flat = dphmm.sensitivity_hull(dphmm.policy.from_edges([(0, 1)], GRID.n_states), GRID)
    assert len(np.unique(lines(dphmm.plot.hull(flat, ax=Figure().add_subplot()))["sensitivity hull"], axis=0)) == 2


@pytest.mark.parametrize("space", [GRID, LINE, SOLID])
def test_a_policy_has_its_edges(space, ax):
    graph, constraint = (
        dphmm.policy.radius(space, (4 if space is SOLID else 2) * float(space.pitch.max())),
        np.arange(space.n_states) != 1,
    )
    dphmm.plot.policy(graph, space, constraint, ax=ax)
    drawn = [np.asarray(path.vertices) for path in ax.collections[0].get_paths()]
    edges = graph.edges(constraint)
    assert len(drawn) == len(edges) > 0
    ends = [space.answers[pair][:, 0].tolist() for pair in edges]
    assert [sorted([round(p[0][0], 6), round(p[-1][0], 6)]) for p in drawn] == [sorted(np.round(e, 6)) for e in ends]
    assert len(lines(ax)["planned states"]) == space.n_states - 1
    ax.figure.canvas.draw()


def test_degrees_of_protection_from_least_to_most(ax):
    graph = dphmm.policy.radius(GRID, 700)
    hull = dphmm.sensitivity_hull(graph, GRID)
    degrees = [dphmm.degree_of_protection(hull, GRID, np.arange(GRID.n_states) < n) for n in (9, 20, GRID.n_states)]
    dphmm.plot.degree_of_protection(degrees, ax=ax)
    assert np.allclose(lines(ax)["mean"], [[t, d.mean()] for t, d in enumerate(degrees, 1)])
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == max(d.max() for d in degrees) and band[:, 1].min() == min(d.min() for d in degrees)
    again = dphmm.plot.degree_of_protection(degrees, steps=[2, 5, 9], ax=Figure().add_subplot())
    assert lines(again)["mean"][:, 0].tolist() == [2, 5, 9]


def test_scales_side_by_side(ax):
    found = compare(Chain([[0.9, 0.1], [0.2, 0.8]], 5), Sum([0, 1]), 1)
    assert dphmm.plot.scales(found, ax=ax) is ax
    assert len(ax.patches) == len(found)
    assert sorted(patch.get_width() for patch in ax.patches) == sorted(float(row.scale) for row in found)


BAD = {
    "no table": lambda p, t: p.release_map(pd.DataFrame({"user": ["a"]}), GRID),
    "no rows": lambda p, t: p.release_map(t.iloc[:0], GRID),
    "no column": lambda p, t: p.release_map(t.drop(columns="z_1"), GRID),
    "words": lambda p, t: p.spent(t.assign(cost="x")),
    "another user": lambda p, t: p.release_map(t, GRID, user="nobody"),
    "truth of other rows": lambda p, t: p.release_map(t, GRID, truth=np.zeros((3, 2))),
    "states that are none": lambda p, t: p.release_map(t, GRID, truth=np.full(STEPS, GRID.n_states)),
    "another policy": lambda p, t: p.policy(dphmm.policy.complete(3), GRID),
    "too many edges": lambda p, t: p.policy(dphmm.policy.complete(400), dphmm.StateSpace(np.arange(400))),
    "a centre of other numbers": lambda p, t: p.hull(
        dphmm.sensitivity_hull(dphmm.policy.complete(5), LINE), around=[0, 0]
    ),
    "no hull": lambda p, t: p.hull(3),
    "no degrees": lambda p, t: p.degree_of_protection([]),
    "a step without degrees": lambda p, t: p.degree_of_protection([[1], []]),
    "other steps": lambda p, t: p.degree_of_protection([[1]], steps=[1, 2]),
    "no comparison": lambda p, t: p.scales({"scale": 1}),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name):
    with pytest.raises(InvalidInput) as refused:
        BAD[name](dphmm.plot, released(GRID)[0])
    assert "\n" not in str(refused.value)


def test_matplotlib_is_loaded_when_a_picture_is_drawn():
    code = "import sys, dphmm, dphmm.plot; dphmm.plot.hull; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_without_matplotlib_there_is_a_hint(monkeypatch):
    from dphmm.plot import _axes

    monkeypatch.setattr(_axes, "find_spec", lambda name: None)
    with pytest.raises(InvalidInput, match=r"dphmm\[plot\]"):
        dphmm.plot.spent(released(GRID)[0])
