"""Small worlds: square grids whose true cell has one of a few priors, under the policy of a radius."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dphmm.evaluation.optimum_risk import World
from dphmm.types import FloatArray, IntArray


def _peak(cells: FloatArray, side: int) -> FloatArray:
    """A bell in the middle, of deviation side/3."""
    return _bell(cells, (side - 1) / 2, (side - 1) / 2, side / 3)


def _corner(cells: FloatArray, side: int) -> FloatArray:
    """The same around a corner."""
    return _bell(cells, 0.0, 0.0, side / 3)


def _towns(cells: FloatArray, side: int) -> FloatArray:
    """Two bells, one twice as heavy, and a little everywhere: no motion of the grid leaves it as it is."""
    first = _bell(cells, 0.2 * side, 0.3 * side, side / 6)
    return 2 * first + _bell(cells, 0.7 * side, 0.75 * side, side / 5) + 0.02


def _uniform(cells: FloatArray, side: int) -> FloatArray:
    return np.ones(len(cells))


def _bell(cells: FloatArray, x: float, y: float, deviation: float) -> FloatArray:
    return np.asarray(np.exp(-((cells - [x, y]) ** 2).sum(axis=1) / (2 * deviation**2)))


PRIORS: dict[str, Callable[[FloatArray, int], FloatArray]] = {
    "peak": _peak,
    "uniform": _uniform,
    "corner": _corner,
    "towns": _towns,
}


def cells_of(side: int) -> IntArray:
    """The cells (side², 2) of a grid, row by row."""
    return np.array([(x, y) for y in range(side) for x in range(side)])


def world(side: int, prior: str) -> World:
    """A grid with a named prior."""
    cells = cells_of(side)
    weights = PRIORS[prior](cells.astype(np.float64), side)
    return World(cells, weights / weights.sum())
