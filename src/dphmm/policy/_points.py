"""Lattice points: as numbered cells, their exact distances, and those that their convex hull needs.

No pair of states is ever stored. Each distinct point is a cell with a linear index; an offset is a difference of linear
indices. Axes are padded by the longest offset, so that stepping over an edge of the box lands on an index that no cell
has.

Distances are compared exactly: floats only make shortlists, integers decide. With pitch p_j (a decimal) and lattice
steps v_j, the squared distance is sum (p_j v_j)^2. Scaling by the common denominator of the pitches makes every p_j an
integer weight.

For a hull, only points that are certainly no vertices are left out.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.types import BoolArray, FloatArray, IntArray

#: A dense table of cell numbers is kept while it has at most this many entries, or this many per cell.
_DENSE = 2**20
_DENSE_PER_CELL = 8
_INT64 = 2**62


class Cells:
    """The cells of lattice points (N, d), neighbouring along ``offsets`` (m, d), one of each ± pair, none zero.

    ``order`` lists the states cell by cell, those of cell c at ``starts[c]:starts[c + 1]``; ``cell_of`` (N,)
    the other way round. ``linear`` ascends; ``deltas`` are the offsets as linear steps; ``table`` is empty
    where too sparse.
    """

    def __init__(self, points: IntArray, offsets: IntArray) -> None:
        self.offsets = offsets
        low = points.min(axis=0)
        sides = padded_sides(points, np.abs(offsets).max(axis=0, initial=0))
        strides = np.array([math.prod(sides[j + 1 :]) for j in range(len(sides))], dtype=np.int64)
        self.deltas: IntArray = offsets @ strides
        guard = int(np.abs(self.deltas).max(initial=0))
        keys = (points - low) @ strides + guard
        self.linear, first, self.cell_of = np.unique(keys, return_index=True, return_inverse=True)
        self.points: IntArray = points[first]
        self.order: IntArray = np.argsort(self.cell_of, kind="stable")
        self.starts: IntArray = np.searchsorted(self.cell_of[self.order], np.arange(len(first) + 1))
        size = int(self.linear[-1]) + guard + 1
        self.table: IntArray = np.zeros(0, dtype=np.int64)
        if size <= max(_DENSE, _DENSE_PER_CELL * len(points)):
            self.table = np.full(size, -1, dtype=np.int64)
            self.table[self.linear] = np.arange(len(first))

    @cached_property
    def bands(self) -> IntArray:
        """``deltas`` as runs (b, 2) of successive steps, the first and the last of each."""
        steps = np.sort(self.deltas)
        after = np.flatnonzero(np.diff(steps) != 1) + 1
        runs = [run[[0, -1]] for run in np.split(steps, after) if len(run)]
        return np.array(runs, dtype=np.int64).reshape(-1, 2)

    @property
    def singles(self) -> bool:
        """True if every cell holds one state."""
        return len(self.linear) == len(self.order)

    def beside(self, cells: IntArray, delta: int) -> IntArray:
        """The cell a step of ``delta`` away from each of ``cells``, -1 where there is none."""
        targets = self.linear[cells] + delta
        if len(self.table):
            beside: IntArray = self.table[targets]
            return beside
        place = np.minimum(np.searchsorted(self.linear, targets), len(self.linear) - 1)
        return np.where(self.linear[place] == targets, place, -1)

    def least(self, values: IntArray) -> IntArray:
        """The least of the values (N,) of each cell's states."""
        ordered = values.take(self.order)
        least: IntArray = ordered if self.singles else np.minimum.reduceat(ordered, self.starts[:-1])
        return least

    def most(self, values: IntArray) -> IntArray:
        """The largest of the values (N,) of each cell's states."""
        ordered = values.take(self.order)
        most: IntArray = ordered if self.singles else np.maximum.reduceat(ordered, self.starts[:-1])
        return most

    def any(self, mask: BoolArray) -> BoolArray:
        """True where a cell holds a state of the mask."""
        ordered = mask.take(self.order)
        held: BoolArray = ordered if self.singles else np.logical_or.reduceat(ordered, self.starts[:-1])
        return held

    def states_in(self, cells: IntArray) -> tuple[IntArray, IntArray]:
        """All states of each of ``cells``, and for each of these states the position of its cell in ``cells``."""
        sizes = self.starts[cells + 1] - self.starts[cells]
        position = np.repeat(np.arange(len(cells)), sizes)
        within = np.arange(len(position)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self.order[self.starts[cells][position] + within], position


def padded_sides(points: IntArray, longest: IntArray) -> list[int]:
    """Sides of the box of the points, padded by the longest offset on each axis."""
    return [int(s) + 1 + int(p) for s, p in zip(np.ptp(points, axis=0), longest, strict=True)]


def indexable(points: IntArray, longest: IntArray) -> bool:
    """True if linear indices of the padded box fit into 64 bits."""
    return 4 * math.prod(padded_sides(points, longest)) < _INT64


#: Squared float distances are trusted outside this relative band around the bound.
SHORTLIST = 1e-9


@dataclass(frozen=True)
class LatticeDistance:
    """The metric of a lattice: distance = sqrt(sum (weights_j * steps_j)^2) * unit."""

    weights: tuple[int, ...]
    unit: Fraction

    @classmethod
    def of(cls, pitch: tuple[Fraction, ...]) -> LatticeDistance:
        common = math.lcm(*(p.denominator for p in pitch))
        integers = [int(p * common) for p in pitch]
        divisor = math.gcd(*integers)
        return cls(tuple(i // divisor for i in integers), Fraction(divisor, common))

    def fits(self, spans: Sequence[int]) -> bool:
        """True if squared distances of steps up to ``spans`` fit into 64 bits."""
        return self.squared([max(1, span) for span in spans]) < _INT64

    def squared(self, steps: Any) -> int:
        """The squared distance of one difference, an integer."""
        return sum((w * int(v)) ** 2 for w, v in zip(self.weights, steps, strict=True))

    def largest_square(self, radius: Fraction, closed: bool) -> int:
        """The largest squared distance that counts as within ``radius`` (<= when closed, < when open)."""
        bound = (radius / self.unit) ** 2
        return math.floor(bound) if closed else math.ceil(bound) - 1

    def within(self, steps: IntArray, largest: int) -> BoolArray:
        """True where a difference (m, d) has a squared distance of at most ``largest``, exactly."""
        if len(steps) == 0:
            return np.zeros(0, dtype=np.bool_)
        spans = self._spans(steps)
        if self.squared(spans) <= largest:
            return np.ones(len(steps), dtype=np.bool_)
        if self.fits(spans):
            return np.asarray(self.squares(steps) <= largest)
        square = self.approximate(steps)
        inside = square <= largest
        for k in np.flatnonzero(np.abs(square - largest) <= SHORTLIST * square):
            inside[k] = self.squared(steps[k]) <= largest
        return inside

    def squares(self, steps: IntArray) -> Any:
        """Squared distances of differences (..., d), in 64 bits where they fit, in Python integers where not."""
        exact = steps if self.fits(self._spans(steps)) else steps.astype(object)
        return sum((exact[..., j] * weight) ** 2 for j, weight in enumerate(self.weights))

    def approximate(self, steps: IntArray) -> FloatArray:
        """Squared distances of differences (m, d) in float64."""
        scaled = steps.astype(np.float64) * np.array([float(w) for w in self.weights])
        square: FloatArray = (scaled**2).sum(axis=1)
        return square

    @staticmethod
    def _spans(steps: IntArray) -> tuple[int, ...]:
        return tuple(int(np.abs(steps[..., j]).max(initial=0)) for j in range(steps.shape[-1]))


#: Widest span for which the planar chain's products stay below 2**62.
CHAIN_SPAN = 2**29
_MANY = 64


def hull_points(points: IntArray) -> IntArray:
    """Some of ``points`` (n, d), with the same hull: the vertices for d <= 2, few more for d >= 3."""
    if len(points) <= 2:
        return points
    d = points.shape[1]
    if d == 1:
        return points[[int(points[:, 0].argmin()), int(points[:, 0].argmax())]]
    if d == 2 and np.all(np.ptp(points, axis=0) < CHAIN_SPAN):
        columns = np.ascontiguousarray(points.T)
        vertices: IntArray = points[_kernels.points.convex_chain(columns[0], columns[1])]
        return vertices
    candidates = np.unique(points, axis=0)
    for axis in range(d):
        candidates = _line_ends(candidates, axis)
    return _without_interior(candidates) if len(candidates) > _MANY else candidates


def _line_ends(points: IntArray, axis: int) -> IntArray:
    """The first and the last point on every line parallel to an axis: points between them are no vertices."""
    others = [points[:, j] for j in range(points.shape[1]) if j != axis]
    order = np.lexsort((points[:, axis], *others))
    ranked = points[order]
    rest = np.delete(ranked, axis, axis=1)
    starts = np.r_[True, np.any(rest[1:] != rest[:-1], axis=1)]
    ends = np.r_[starts[1:], True]
    extreme: IntArray = ranked[starts | ends]
    return extreme


def _without_interior(points: IntArray) -> IntArray:
    """The points without those well inside Qhull's hull, which is never larger than the true one."""
    from scipy.spatial import ConvexHull, QhullError

    centred = (points - points.min(axis=0)).astype(np.float64)
    scaled = centred / np.maximum(centred.max(axis=0), 1.0)
    try:
        hull = ConvexHull(scaled)
    except QhullError:
        return points
    depth = np.full(len(points), -np.inf)
    for equation in hull.equations:
        np.maximum(depth, scaled @ equation[:-1] + equation[-1], out=depth)
    return points[depth > -1e-6]
