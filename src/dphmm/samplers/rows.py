"""Lattice points of dilations of a body in one or two dimensions, row by row: counted, listed, and found by number.

Proof: docs/proofs/optimal-additive.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm.types import IntArray

#: Sums of products stay below this in 64 bits; beyond it Python integers are used.
_ROOM = 2**61


@dataclass(frozen=True, eq=False)
class Facets:
    """The facets |normals·y| <= offsets of a body.

    ``normals`` (m, k) with k = 1 or 2, ``offsets`` (m) positive, ``widths`` (k) bounds of |y_i| over the body.
    """

    normals: IntArray
    offsets: tuple[int, ...]
    widths: tuple[Fraction, ...]

    def steps(self, y: IntArray, radius: Fraction) -> IntArray:
        """The least whole j >= 0 with N(y) <= radius + j, for points (n, k)."""
        p, s = radius.numerator, radius.denominator
        values = np.abs(self._products(y, s))
        room = np.array([p * b for b in self.offsets], dtype=object)
        unit = np.array([s * b for b in self.offsets], dtype=object)
        if values.dtype != object and max(int(room.max()), int(unit.max())) < _ROOM:
            room, unit = room.astype(np.int64), unit.astype(np.int64)
        else:
            values = values.astype(object)
        return np.asarray(np.maximum(0, (-((room - values) // unit)).max(axis=1)))

    def within(self, radius: Fraction) -> Rows:
        """The points with N(y) <= radius."""
        return Rows.of(self, radius)

    def shell(self, radius: Fraction, j: int) -> Shell:
        """The points with radius + j - 1 < N(y) <= radius + j, for j >= 1."""
        return Shell(self.within(radius + j), self.within(radius + j - 1))

    def _products(self, y: IntArray, scale: int) -> NDArray[Any]:
        largest = max(1, int(np.abs(y).max(initial=0))) * int(np.abs(self.normals).sum(axis=1).max(initial=1)) * scale
        if y.dtype != object and largest < _ROOM:
            return np.asarray(y @ self.normals.T * scale)
        return np.asarray(y.astype(object) @ self.normals.T.astype(object) * scale)


@dataclass(frozen=True, eq=False)
class Rows:
    """For each first coordinate ``first``, ``first`` + 1, .. the least and largest second one.

    Empty where low > high. In one dimension one row, of the only coordinate.
    """

    first: int
    low: NDArray[Any]
    high: NDArray[Any]

    @classmethod
    def of(cls, facets: Facets, radius: Fraction) -> Rows:
        """The rows of the body of that radius."""
        bounds = [(radius * b).__floor__() for b in facets.offsets]
        if facets.normals.shape[1] == 1:
            reach = min(b // abs(int(n)) for (n,), b in zip(facets.normals.tolist(), bounds, strict=True))
            return cls(0, np.array([-reach]), np.array([reach]))
        half = [(radius * w).__floor__() for w in facets.widths]
        kind = np.int64 if max(*half, *bounds) * (1 + int(np.abs(facets.normals).max())) < _ROOM else object
        x = np.arange(-half[0], half[0] + 1).astype(kind)
        low, high = np.full(len(x), -half[1], dtype=kind), np.full(len(x), half[1], dtype=kind)
        for (a, b), bound in zip(facets.normals.tolist(), bounds, strict=True):
            if b < 0:
                a, b = -a, -b
            if b == 0:
                outside = np.abs(a * x) > bound
                low[outside], high[outside] = 1, 0
            else:
                low = np.maximum(low, -((bound + a * x) // b))
                high = np.minimum(high, (bound - a * x) // b)
        return cls(-half[0], low, high)

    @property
    def sizes(self) -> NDArray[Any]:
        """How many points each row has."""
        return np.asarray(np.maximum(0, self.high - self.low + 1))

    @property
    def size(self) -> int:
        return int(self.sizes.sum())

    def points(self, k: int) -> IntArray:
        """All of them (n, k), in lexicographic order."""
        listed = [
            np.stack([np.full(high - low + 1, self.first + i), np.arange(low, high + 1)], axis=1)
            for i, (low, high) in enumerate(zip(self.low.tolist(), self.high.tolist(), strict=True))
            if low <= high
        ]
        return np.concatenate(listed).astype(np.int64)[:, 2 - k :]


@dataclass(frozen=True, eq=False)
class Shell:
    """The points of ``outer`` that ``inner``, which lies inside, does not have."""

    outer: Rows
    inner: Rows

    @property
    def size(self) -> int:
        return self.outer.size - self.inner.size

    def point(self, number: int, k: int) -> Sequence[int]:
        """One of them by its number, in lexicographic order."""
        cut = np.zeros_like(self.outer.sizes)
        start = self.inner.first - self.outer.first
        cut[start : start + len(self.inner.low)] = self.inner.sizes
        ends = np.cumsum(self.outer.sizes - cut)
        row = int(np.searchsorted(ends, number, side="right"))
        place = number - (int(ends[row - 1]) if row else 0)
        y = int(self.outer.low[row]) + place
        if cut[row] and y >= int(self.inner.low[row - start]):
            y += int(cut[row])
        return [y] if k == 1 else [self.outer.first + row, y]


@lru_cache(maxsize=256)
def shell_of(facets: Facets, radius: Fraction, j: int) -> Shell:
    """`Facets.shell`, the last few kept."""
    return facets.shell(radius, j)
