"""Lattice points of dilations of a body in one or two dimensions, row by row: counted, listed, and found by number.

A thin or slanted body fills its box in other coordinates: a unimodular change of basis of the lattice. A body {y} is
seen in coordinates x = R y, R integer with determinant ±1, so lattice points stay lattice points. The rows of R are
made short as seen from points that outline the body (Lagrange in two dimensions, LLL in more). How well that is done
decides only how often a proposal is refused; that R is unimodular is exact.

Proofs: docs/proofs/optimal-additive.md, docs/proofs/sampling.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm import _kernels
from dphmm.types import FloatArray, IntArray

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


Matrix = list[list[int]]
_LOVASZ = 0.99
_HALF = 0.5 + 1e-9
_MOST_STEPS = 10_000
PLANAR_SPAN = 2**28


def identity(k: int) -> Matrix:
    """The matrix that changes nothing."""
    return [[int(i == j) for j in range(k)] for i in range(k)]


def reduced_plane(normals: IntArray, vertices: IntArray) -> tuple[IntArray, Matrix, list[int]] | None:
    """Of a planar body with its corners: the normals (m, 2) in reduced coordinates x = R·y, R⁻¹, the largest |x_i|.

    None for other bodies, and for corners outside ±2**28.
    """
    if vertices.shape[1] != 2 or vertices.dtype != np.int64:
        return None
    turned, inverse, widths = _kernels.points.reduced_coordinates(normals, vertices, PLANAR_SPAN)
    return (turned, inverse.tolist(), widths.tolist()) if len(widths) else None


def reduced_rows(outline: FloatArray) -> tuple[Matrix, Matrix]:
    """(R, R⁻¹) with R (k, k) unimodular and its rows short and nearly orthogonal on the points ``outline`` (v, k)."""
    k = outline.shape[1]
    change = _Change(outline)
    if k == 2:
        _lagrange(change)
    elif k > 2:
        _lll(change)
    return change.rows, change.inverse


def outline(normals: IntArray, offsets: IntArray, vertices: IntArray | None) -> FloatArray:
    """Points (v, k) spread like the body |normals·y| <= offsets: its vertices, or the axes of an inner ellipsoid."""
    if vertices is not None:
        return vertices.astype(np.float64)
    scaled = normals / offsets[:, None]
    lengths, axes = np.linalg.eigh(scaled.T @ scaled)
    return np.asarray(axes / np.sqrt(lengths)).T


class _Change:
    """R, its inverse, and the outline seen in the new coordinates, changed together."""

    def __init__(self, outline: FloatArray) -> None:
        k = outline.shape[1]
        self.rows, self.inverse = identity(k), identity(k)
        self.seen = outline / max(float(np.abs(outline).max()), 1e-300)

    def subtract(self, i: int, j: int, q: int) -> None:
        """Row i minus q times row j."""
        self.rows[i] = [a - q * b for a, b in zip(self.rows[i], self.rows[j], strict=True)]
        for line in self.inverse:
            line[j] += q * line[i]
        self.seen[:, i] -= q * self.seen[:, j]

    def swap(self, i: int, j: int) -> None:
        self.rows[i], self.rows[j] = self.rows[j], self.rows[i]
        for line in self.inverse:
            line[i], line[j] = line[j], line[i]
        self.seen[:, [i, j]] = self.seen[:, [j, i]]


def _lagrange(change: _Change) -> None:
    for _ in range(_MOST_STEPS):
        gram = change.seen.T @ change.seen
        if gram[0, 0] > gram[1, 1]:
            change.swap(0, 1)
            gram = gram[::-1, ::-1]
        # At a half both rows are as short as they get: rounding would subtract and add the same row for ever.
        if gram[0, 0] <= 0.0 or abs(gram[0, 1]) <= _HALF * gram[0, 0]:
            return
        change.subtract(1, 0, round(float(gram[0, 1] / gram[0, 0])))


def _lll(change: _Change) -> None:
    """The reduction of Lenstra, Lenstra and Lovász; floats decide, integers move.

    Cohen, Computational Algebraic Number Theory, 2.6.3.
    """
    k = len(change.rows)
    at = 1
    for _ in range(_MOST_STEPS):
        if at >= k:
            return
        for j in range(at - 1, -1, -1):
            q = round(float(_orthogonal(change.seen)[0][at, j]))
            if q:
                change.subtract(at, j, q)
        mu, lengths = _orthogonal(change.seen)
        if lengths[at] >= (_LOVASZ - mu[at, at - 1] ** 2) * lengths[at - 1]:
            at += 1
        else:
            change.swap(at, at - 1)
            at = max(at - 1, 1)


def _orthogonal(seen: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gram-Schmidt coefficients and squared lengths of the columns."""
    triangle = np.linalg.qr(seen, mode="r")
    diagonal = np.where(np.abs(np.diag(triangle)) > 1e-300, np.diag(triangle), 1e-300)
    return np.asarray((triangle / diagonal[:, None]).T), np.asarray(np.diag(triangle) ** 2)
