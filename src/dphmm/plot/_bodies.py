"""Policies, hulls, and how many states hide a state."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.plot.axes import BLUE, GREY, VERMILION, axes, ground, in_plane, plain
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.hull import SensitivityHull, as_constraint
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray, States

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dphmm.policy.constraint import Constraint

#: More edges than these are a smear.
MOST_EDGES = 50_000


def hull(body: SensitivityHull, *, around: Any = None, ax: Axes | None = None) -> Axes:
    """A sensitivity hull in answer units: the shape of the noise.

    ``around`` (d,): the answer it is drawn around, the origin by default. Hulls of one number are an interval; for more
    than two the outline in the first two is drawn. Raises InvalidInput for a hull without listed corners.
    """
    if not isinstance(body, SensitivityHull):
        raise InvalidInput("body", type(body).__name__, "a hull, such as sensitivity_hull gives")
    corners = np.asarray(body.vertices, dtype=np.float64)
    centre = np.zeros(body.dimension) if around is None else np.asarray(around, dtype=np.float64).reshape(-1)
    if centre.shape != (body.dimension,):
        raise InvalidInput("around", f"shape {np.shape(around)}", f"an answer of {body.dimension} numbers")
    points = corners + centre
    if body.dimension == 1:
        low, high = float(points.min()), float(points.max())
        box = np.array([[low, -0.2], [high, -0.2], [high, 0.2], [low, 0.2]])
    else:
        box = _outline(points[:, :2])
    ax = axes(ax)
    ax.fill(box[:, 0], box[:, 1], facecolor=VERMILION, alpha=0.12, zorder=1)
    ax.plot(*np.vstack([box, box[:1]]).T, color=VERMILION, linewidth=1.6, label="sensitivity hull", zorder=4)
    ax.plot(centre[0], centre[1] if body.dimension > 1 else 0.0, "+", color=VERMILION, markersize=9)
    return ax


def policy(
    graph: PolicyGraph, space: StateSpace, constraint: States | Constraint = None, *, ax: Axes | None = None
) -> Axes:
    """The states of a constraint and the policy edges between them, at their answers.

    ``constraint``: a mask (N,), state numbers, a Constraint (whose contracted graph is drawn), or None for all states.
    Raises InvalidInput for a policy of other states, and for more than 50,000 edges.
    """
    from matplotlib.collections import LineCollection

    if graph.n_states != space.n_states:
        raise InvalidInput("policy", f"{graph.n_states} states", f"the {space.n_states} of the space")
    within = as_constraint(constraint, graph.n_states)
    edges = graph.edges(within)
    if len(edges) > MOST_EDGES:
        raise InvalidInput("policy", f"{len(edges)} edges", f"at most {MOST_EDGES} to look at; a smaller constraint")
    ax = ground(space, axes(ax))
    points = in_plane(space, space.own_answers)
    lines = [_bent(*points[pair]) for pair in edges] if space.dimension == 1 else list(points[edges])
    ax.add_collection(LineCollection(lines, colors=GREY, linewidths=0.7, zorder=1, label="policy edges"))
    planned = points[within.plan_states]
    ax.plot(planned[:, 0], planned[:, 1], "o", color=BLUE, markersize=4, linestyle="none", label="planned states")
    if space.dimension == 1:
        ax.autoscale_view()
    return ax


def degree_of_protection(degrees: Sequence[Any], steps: Sequence[int] | None = None, *, ax: Axes | None = None) -> Axes:
    """Among how many states a state is hidden, step by step.

    ``degrees``: for each step the degrees of its states, as `degree_of_protection` gives them. ``steps``: the
    numbers of the steps, from 1 by default. The line is the mean, the band reaches from the least to the most.
    """
    each = [np.atleast_1d(np.asarray(values, dtype=np.float64)) for values in degrees]
    if not each or any(values.size == 0 for values in each):
        raise InvalidInput("degrees", "no degrees, or a step without any", "the degrees of the states of every step")
    bands = np.array([[values.min(), values.mean(), values.max()] for values in each])
    at = np.arange(1, len(each) + 1) if steps is None else np.asarray(steps)
    if len(at) != len(bands):
        raise InvalidInput("steps", f"{len(at)} numbers", f"{len(bands)}, one for each step")
    ax = plain(axes(ax))
    ax.fill_between(at, bands[:, 0], bands[:, 2], color=BLUE, alpha=0.18, linewidth=0, label="least to most")
    # A line of one value would not be seen without a mark.
    ax.plot(at, bands[:, 1], color=BLUE, marker="o" if len(bands) == 1 else "", label="mean")
    ax.set(xlabel="time step", ylabel="states that hide a state", title="Degree of protection")
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    return ax


def _outline(points: FloatArray) -> FloatArray:
    """The corners of the convex outline; a flat one has two."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return np.asarray(points[ConvexHull(points).vertices])
    except (QhullError, ValueError):
        along = points[:, int(np.ptp(points, axis=0).argmax())]
        return np.asarray(points[[int(along.argmin()), int(along.argmax())]])


def _bent(a: FloatArray, b: FloatArray) -> FloatArray:
    """An arc between two answers on a line."""
    turn = np.linspace(0, np.pi, 25)
    middle, half = (a[0] + b[0]) / 2, abs(b[0] - a[0]) / 2
    return np.stack([middle - half * np.cos(turn), half * np.sin(turn)], axis=1)
