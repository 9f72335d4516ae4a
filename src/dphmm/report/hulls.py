"""Whom one state hides among: its policy neighbours and the sensitivity hull around it."""

from __future__ import annotations

import numpy as np

from dphmm.report.content import ReleaseReport
from dphmm.report.svg import Drawing
from dphmm.report.view import PANEL, View, draw_states, spacing
from dphmm.states.space import StateSpace


def hull_figure(report: ReleaseReport) -> Drawing | None:
    """Around one cell: its policy neighbours and the states inside the hull; None without a planar hull."""
    hull, policy, space = report.hull, report.policy, report.space
    if hull is None or policy is None or not hull.rank == hull.dimension == 2:
        return None
    state = _central(space)
    centre = space.answers[state]
    side = spacing(space)
    reach = np.abs(hull.vertices).max() + 2.5 * side
    near = np.flatnonzero(np.all(np.abs(space.own_answers - centre) <= reach, axis=1))
    inside = near[hull.contains_lattice(space.lattice[near] - space.lattice[state])]
    neighbors = np.intersect1d(policy.neighbors(state), near)
    joined = f"shares a policy edge with {len(policy.neighbors(state))} cells"
    words = (
        f"Cell {space.names[state]} {joined}; {len(inside)} cells, itself included, lie inside the "
        "sensitivity hull around it."
    )
    drawing = Drawing("hull", PANEL, PANEL, "Whom one state hides among", words)
    view = View.around(centre + np.array([[-reach, -reach], [reach, reach]]), 0.0, 0.0, PANEL, 0.0)
    for states, style in (
        (near, "cell"),
        (np.setdiff1d(inside, neighbors), "cell covered"),
        (np.setdiff1d(neighbors, [state]), "cell neighbor"),
        (np.array([state]), "cell self"),
    ):
        draw_states(drawing, view, space, states, style)
    drawing.line(view(centre + hull.vertices), "hull", close=True)
    return drawing


def _central(space: StateSpace) -> int:
    middle = (space.answers.min(axis=0) + space.answers.max(axis=0)) / 2
    # The hull lies around the answer, so around a state that is at its own.
    distance = np.linalg.norm(space.answers - middle, axis=1)
    distance[space.merges[:, 0]] = np.inf
    return int(np.argmin(distance))
