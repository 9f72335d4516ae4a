"""Answer units to picture units: north up, one scale, and states drawn as cells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dphmm.report.svg import Drawing
from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray, IntArray

#: Side of a square map in picture units.
PANEL = 300.0
#: Shades of a map, from least to most expected.
SHADES = 4


@dataclass(frozen=True)
class View:
    """Where answers (..., 2) lie in a picture."""

    left: float
    top: float
    west: float
    north: float
    scale: float

    @classmethod
    def around(cls, points: FloatArray, left: float, top: float, size: float, margin: float) -> View:
        low, high = points.min(axis=0), points.max(axis=0)
        extent = float((high - low).max()) * (1 + 2 * margin) or 1.0
        middle = (low + high) / 2
        return cls(left, top, float(middle[0] - extent / 2), float(middle[1] + extent / 2), size / extent)

    def __call__(self, points: Any) -> FloatArray:
        given = np.asarray(points, dtype=np.float64)
        x = self.left + (given[..., 0] - self.west) * self.scale
        y = self.top + (self.north - given[..., 1]) * self.scale
        return np.stack([x, y], axis=-1)


def spacing(space: StateSpace) -> float:
    """The side of a grid's cells; elsewhere how far apart neighbouring states typically are."""
    if isinstance(space, Grid):
        return space.cell
    from scipy.spatial import cKDTree

    points = np.unique(space.own_answers, axis=0)
    apart = cKDTree(points).query(points, k=2)[0][:, 1] if len(points) > 1 else np.ones(1)
    return 0.8 * float(np.median(apart))


def outline(space: StateSpace) -> FloatArray:
    """The south-west and north-east corner (2, 2) of all cells, by the first two numbers of their answers."""
    half = spacing(space) / 2
    low, high = space.own_answers.min(axis=0) - half, space.own_answers.max(axis=0) + half
    return np.stack([low, high])[:, :2]


def corners(space: StateSpace) -> tuple[FloatArray, ...] | None:
    """The corners (k, 2) of each state's cell around its answer, answer units; None where cells are no polygons."""
    return space.corners if isinstance(space, H3) else None


def draw_states(drawing: Drawing, view: View, space: StateSpace, states: IntArray, style: str) -> None:
    """The cells of some states, a hair apart: of H3 as they are, else squares around the answers."""
    shapes, centres = corners(space), view(space.own_answers[states])
    if shapes is None:
        side = spacing(space) * view.scale
        drawing.squares(centres - side / 2 + 0.4, side - 0.8, style)
        return
    across = spacing(space) * view.scale
    flipped = np.array([1.0, -1.0]) * view.scale * max(0.5, 1 - 0.8 / across)
    drawing.polygons([at + shapes[state] * flipped for state, at in zip(states.tolist(), centres, strict=True)], style)


def shades(weights: FloatArray | None, n_states: int) -> IntArray:
    """How dark each cell is drawn, 0..SHADES: by the logarithm of what the public model expects."""
    if weights is None or not np.any(weights > 0):
        return np.zeros(n_states, dtype=np.int64)
    logs = np.log(np.maximum(weights, weights.max() * 1e-3) / weights.max()) / np.log(1e-3)
    return np.asarray(np.ceil((1 - logs) * SHADES).astype(np.int64))
