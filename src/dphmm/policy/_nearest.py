"""The nearest plan state of every state, exactly: the surrogate map (docs/theory.md 6).

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dphmm import _kernels
from dphmm.policy._distance import LatticeDistance
from dphmm.types import BoolArray, IntArray

#: Up to this many comparisons a compiled sweep beats building a tree.
SWEEP = 2**26
#: Planar answers get a table of the box around them, up to this many lattice points per state, and so many more.
BOX_PER_STATE = 16
BOX = 2**16
_SHORTLIST = 8
_CHUNK = 2**16


@dataclass(frozen=True, eq=False)
class Surroundings:
    """Lattice answers (N, d), ready to be asked for nearest states: moved to the origin, with their ``sides`` (d)."""

    centred: IntArray
    metric: LatticeDistance
    sides: tuple[int, ...]

    @classmethod
    def of(cls, lattice: IntArray, pitch: tuple[Fraction, ...]) -> Surroundings:
        """Of answers whose steps have these lengths."""
        low, high = _kernels.points.bounds(lattice)
        return cls(lattice - low, LatticeDistance.of(pitch), tuple(int(s) + 1 for s in high - low))

    def nearest(self, plan_states: IntArray) -> IntArray:
        """For each state (N,) the plan state nearest to it in answer units; itself if planned.

        Ties go to the lowest number.
        """
        if self._places is None:
            return _of_others(self.centred, self.metric, plan_states)
        return _kernels.points.nearest_in_columns(*self._places, plan_states, *self.metric.weights, *self.sides)

    @cached_property
    def _places(self) -> tuple[IntArray, bool] | None:
        """Each state's place (N,) in the box around planar answers, and whether that is its number.

        None where a table of the box is large, or 64 bits may not hold its distances.
        """
        sides = self.sides
        small = math.prod(sides) <= BOX_PER_STATE * len(self.centred) + BOX
        if len(sides) != 2 or not small or self.metric.squared(sides) * max(sides) >= 2**60:
            return None
        places = self.centred[:, 1] * sides[0] + self.centred[:, 0]
        return places, np.array_equal(places, np.arange(math.prod(sides)))


def nearest_states(lattice: IntArray, pitch: tuple[Fraction, ...], plan: BoolArray) -> IntArray:
    """`Surroundings.nearest` of answers that are asked for once."""
    return Surroundings.of(lattice, pitch).nearest(np.flatnonzero(plan))


def _of_others(centred: IntArray, metric: LatticeDistance, states: IntArray) -> IntArray:
    # Of planned states with one answer only the lowest-numbered can win.
    points, first = np.unique(centred[states], axis=0, return_index=True)
    out = np.arange(len(centred), dtype=np.int64)
    others = np.delete(out, states)
    if len(others) == 0:
        return out
    fits = metric.fits(tuple(int(s) for s in centred.max(axis=0)))
    if fits and len(others) * len(points) <= SWEEP:
        out[others] = _sweep(centred[others], points, states[first], metric)
    else:
        out[others] = _by_tree(centred[others], points, states[first], metric)
    return out


def _sweep(queries: IntArray, points: IntArray, states: IntArray, metric: LatticeDistance) -> IntArray:
    weights = np.array(metric.weights, dtype=np.int64)
    axis = int(np.argmax(np.ptp(points, axis=0) * weights.astype(np.float64)))
    order = np.argsort(points[:, axis], kind="stable")
    return _kernels.points.nearest_sweep(queries, points[order], states[order], weights, axis)


def _by_tree(queries: IntArray, points: IntArray, states: IntArray, metric: LatticeDistance) -> IntArray:
    from scipy.spatial import KDTree

    scale = np.array([float(w) for w in metric.weights])
    tree = KDTree(points * scale)
    # Coordinates are rounded relative to the whole span, distances only to themselves.
    slack = float(max((np.abs(points).max(axis=0) * scale).max(), (np.abs(queries).max(axis=0) * scale).max()))
    out = np.empty(len(queries), dtype=np.int64)
    k = min(_SHORTLIST, len(points))
    for start in range(0, len(queries), _CHUNK):
        asked = queries[start : start + _CHUNK]
        distance, near = tree.query(asked * scale, k=np.arange(1, k + 1))
        reach = distance[:, :1] * (1 + 1e-9) + slack * 2.0**-48
        contenders = distance <= reach
        winner = states[near[:, 0]]
        several = np.flatnonzero(contenders.sum(axis=1) > 1)
        winner[several] = _closest(asked[several], points, states, near[several], contenders[several], metric)
        # More may tie than were asked for.
        for row in np.flatnonzero(contenders.all(axis=1)) if k < len(points) else ():
            ball = np.array([tree.query_ball_point(asked[row] * scale, reach[row, 0])])
            winner[row] = _closest(asked[row][None], points, states, ball, np.ones_like(ball, bool), metric)[0]
        out[start : start + _CHUNK] = winner
    return out


def _closest(
    queries: IntArray,
    points: IntArray,
    states: IntArray,
    near: IntArray,
    contenders: BoolArray,
    metric: LatticeDistance,
) -> IntArray:
    """For each query the contender of least exact distance, then of least state number."""
    steps = points[near] - queries[:, None]
    square = metric.squares(steps)
    least = np.where(contenders, square, metric.squared(np.abs(steps).max(axis=(0, 1), initial=0))).min(axis=1)
    winners = contenders & (square == least[:, None])
    closest: IntArray = np.where(winners, states[near], states.max()).min(axis=1)
    return closest
