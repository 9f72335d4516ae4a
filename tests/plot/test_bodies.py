"""Pictures of hulls, policies and degrees show the numbers they are given, and say what they cannot draw.

Fails where a corner, an edge or a degree is drawn somewhere else, or where bad input ends in anything but one clear
line.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput

pytest.importorskip("matplotlib")
from matplotlib.figure import Figure

GRID = dphmm.Grid.from_bounds(0.0, 0.0, 0.02, 0.02, cell=300.0)
LINE = dphmm.StateSpace(np.arange(5))
SOLID = dphmm.StateSpace([[0, 0, 0], [1, 0, 2], [0, 3, 1], [2, 2, 2]])


def lines(ax):
    return {line.get_label(): np.stack(line.get_data(), axis=1) for line in ax.get_lines()}


def test_a_hull_is_its_corners(ax):
    body = dphmm.sensitivity.sensitivity_hull(dphmm.policy.radius(GRID, 700), GRID)
    dphmm.plot.hull(body, around=[100.0, 200.0], ax=ax)
    outline = {tuple(point) for point in np.round(lines(ax)["sensitivity hull"], 6)}
    assert outline == {tuple(point) for point in np.round(body.vertices + np.array([100, 200]), 6)}


def test_hulls_of_one_and_three_numbers_and_flat_ones(ax):
    one = dphmm.sensitivity.sensitivity_hull(dphmm.policy.radius(LINE, 2), LINE)
    assert np.ptp(lines(dphmm.plot.hull(one, ax=ax))["sensitivity hull"][:, 0]) == 4
    three = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(4), SOLID)
    drawn = lines(dphmm.plot.hull(three, ax=Figure().add_subplot()))["sensitivity hull"]
    assert np.allclose(np.abs(drawn).max(axis=0), np.abs(three.vertices[:, :2]).max(axis=0))
    flat = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([(0, 1)], GRID.n_states), GRID)
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
    hull = dphmm.sensitivity.sensitivity_hull(graph, GRID)
    degrees = [
        dphmm.sensitivity.degree_of_protection(hull, GRID, np.arange(GRID.n_states) < n) for n in (9, 20, GRID.n_states)
    ]
    dphmm.plot.degree_of_protection(degrees, ax=ax)
    assert np.allclose(lines(ax)["mean"], [[t, d.mean()] for t, d in enumerate(degrees, 1)])
    band = ax.collections[0].get_paths()[0].vertices
    assert band[:, 1].max() == max(d.max() for d in degrees) and band[:, 1].min() == min(d.min() for d in degrees)
    again = dphmm.plot.degree_of_protection(degrees, steps=[2, 5, 9], ax=Figure().add_subplot())
    assert lines(again)["mean"][:, 0].tolist() == [2, 5, 9]


BAD = {
    "another policy": lambda p: p.policy(dphmm.policy.complete(3), GRID),
    "too many edges": lambda p: p.policy(dphmm.policy.complete(400), dphmm.StateSpace(np.arange(400))),
    "a centre of other numbers": lambda p: p.hull(
        dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(5), LINE), around=[0, 0]
    ),
    "no hull": lambda p: p.hull(3),
    "no degrees": lambda p: p.degree_of_protection([]),
    "a step without degrees": lambda p: p.degree_of_protection([[1], []]),
    "other steps": lambda p: p.degree_of_protection([[1]], steps=[1, 2]),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(name):
    with pytest.raises(InvalidInput) as refused:
        BAD[name](dphmm.plot)
    assert "\n" not in str(refused.value)
