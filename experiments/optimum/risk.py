"""Small worlds, and mean distances of additive mechanisms in them: of what comes out, and of the best cell to name.

A world is a square grid whose true cell has one of a few priors, under the policy of a radius. Lattice mechanisms are
summed over the lattice out to where next to no noise is; continuous ones over the middles of small squares, by the same
rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dphmm.mechanisms import LatticeMechanism
from dphmm.sensitivity import SensitivityHull
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


#: Noise of a norm beyond this over ε is left out: about 1e-9 of the mass.
_FAR = 24.0
#: Largest side of a square over the least half-width of the body times ε, and in cells.
_FINE, _FINEST = 0.2, 1.0 / 3.0
_AT_ONCE = 2**14

#: log densities (m,) of noises (m, 2), up to a constant.
Density = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class World:
    """Cells (n, 2) of a grid, the prior (n,) of the true one, and the distances (n, n) between them."""

    cells: IntArray
    prior: FloatArray

    @property
    def lengths(self) -> FloatArray:
        return np.asarray(np.linalg.norm(self.cells[:, None] - self.cells[None], axis=2))


@dataclass(frozen=True, eq=False)
class Noise:
    """``steps`` (m, 2): noises on a square lattice of some side around 0; ``weights`` (m,): their probabilities."""

    side: float
    steps: FloatArray
    weights: FloatArray

    @classmethod
    def on_lattice(cls, mechanism: LatticeMechanism, hull: SensitivityHull) -> Noise:
        """The noise of a lattice mechanism."""
        steps = _square(hull, float(mechanism.epsilon), 1.0)
        logs = mechanism.log_likelihood_lattice(np.zeros(2, dtype=np.int64), -steps.astype(np.int64))
        return cls(1.0, steps, np.exp(logs - mechanism.log_normaliser))

    @classmethod
    def continuous(cls, density: Density, hull: SensitivityHull, epsilon: float) -> Noise:
        """The noise of a continuous mechanism, by the middles of small squares; cells are middles too."""
        least = min(float(b) / float(np.linalg.norm(n)) for n, b in zip(hull.normals, hull.offsets, strict=True))
        parts = math.ceil(1.0 / min(_FINEST, _FINE * least / epsilon)) | 1
        steps = _square(hull, epsilon, 1.0 / parts)
        weights = np.exp(density(steps))
        return cls(1.0 / parts, steps, weights / weights.sum())

    @property
    def raw(self) -> float:
        """E|noise|, in cells."""
        return float(self.weights @ np.linalg.norm(self.steps, axis=1))


@dataclass(frozen=True, eq=False)
class Naming:
    """Which cell is named after an output.

    ``cells`` (a, b) are of a box of places from ``low`` on, in steps of ``side``; outputs beyond it are taken to its
    edge.
    """

    side: float
    low: IntArray
    cells: IntArray

    @classmethod
    def best(cls, noise: Noise, world: World) -> Naming:
        """The cell of least mean distance to the true one, given the output; the first of equals."""
        keys, places = _keys(noise.steps, noise.side), _keys(world.cells, noise.side)
        low, high = keys.min(axis=0) + places.min(axis=0), keys.max(axis=0) + places.max(axis=0)
        shape = tuple((high - low + 1).tolist())
        outputs = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1) + low
        reach = np.abs(keys).max(axis=0)
        weights = np.zeros(tuple(2 * reach + 1))
        weights[tuple((keys + reach).T)] = noise.weights
        prices = world.prior[:, None] * world.lengths
        named = np.empty(len(outputs), dtype=np.int64)
        for first in range(0, len(outputs), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            away = outputs[some, None] - places[None] + reach
            inside = ((away >= 0) & (away <= 2 * reach)).all(axis=2)
            away[~inside] = 0
            likelihood = np.where(inside, weights[away[..., 0], away[..., 1]], 0.0)
            named[some] = np.argmin(likelihood @ prices, axis=1)
        return cls(noise.side, low, named.reshape(shape))

    def costs(self, steps: FloatArray | IntArray, world: World) -> FloatArray:
        """What each noise (m, 2) costs in the mean: the distance between the true cell and the named one, given it."""
        keys, last = _keys(steps, self.side), np.array(self.cells.shape) - 1
        total, lengths = np.zeros(len(keys)), world.lengths
        for state, place in enumerate(_keys(world.cells, self.side)):
            at = np.clip(keys + place - self.low, 0, last)
            total += world.prior[state] * lengths[state, self.cells[at[:, 0], at[:, 1]]]
        return total


def named(noise: Noise, world: World) -> float:
    """The mean distance between the true cell and the best one to name after the output."""
    return float(noise.weights @ Naming.best(noise, world).costs(noise.steps, world))


def _keys(points: FloatArray | IntArray, side: float) -> IntArray:
    return np.asarray(np.rint(np.asarray(points) / side), dtype=np.int64)


def _square(hull: SensitivityHull, epsilon: float, side: float) -> FloatArray:
    """Multiples (m, 2) of a side out to a norm of `_FAR` over epsilon, and two cells more."""
    reach = np.ceil((hull.axis_half_widths * (2.0 + _FAR / epsilon)) / side).astype(np.int64)
    axes = [np.arange(-r, r + 1) for r in reach.tolist()]
    steps = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2) * side
    norms = np.abs(steps @ hull.normals.T / hull.offsets).max(axis=1)
    return np.asarray(steps[norms <= 2.0 + _FAR / epsilon])
