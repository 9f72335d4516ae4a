"""Lattice points as numbered cells, and which cells lie an offset apart: no pair of states is ever stored.

Each distinct point is a cell with a linear index; an offset is a difference of linear indices. Axes are
padded by the longest offset, so that stepping over an edge of the box lands on an index that no cell has.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from dphmm.types import BoolArray, IntArray

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
        """Whether every cell holds one state."""
        return len(self.linear) == len(self.order)

    def beside(self, cells: IntArray, delta: int) -> IntArray:
        """The cell a step of ``delta`` away from each of ``cells``, -1 where there is none."""
        targets = self.linear[cells] + delta
        if len(self.table):
            beside: IntArray = self.table[targets]
            return beside
        found = np.minimum(np.searchsorted(self.linear, targets), len(self.linear) - 1)
        return np.where(self.linear[found] == targets, found, -1)

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
        """Which cells hold a state of the mask."""
        ordered = mask.take(self.order)
        found: BoolArray = ordered if self.singles else np.logical_or.reduceat(ordered, self.starts[:-1])
        return found

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
    """Whether linear indices of the padded box fit into 64 bits."""
    return 4 * math.prod(padded_sides(points, longest)) < _INT64
