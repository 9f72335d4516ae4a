"""Norms in exact fractions, twice: from the facets of a body, and from the differences that it must contain.

The second is a linear program, min sum |l_j| with sum l_j p_j = v, whose dual is max v·y with |p_j·y| <= 1. It is
solved by the simplex method in integers, and every answer comes with both solutions, so `proves` can confirm it by weak
duality without trusting a single pivot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from exactness.exact_linear import Row, dot, independent_rows, inverse, rank, transposed

_PIVOTS_BEFORE_BLAND = 60


@dataclass(frozen=True)
class Optimum:
    """max c·y over {|rows·y| <= limits}: the value, a point y that has it, and weights that prove nothing has more."""

    value: Fraction
    point: tuple[Fraction, ...]
    weights: dict[int, Fraction]


def proves(optimum: Optimum, rows: Sequence[Row], limits: Sequence[int], c: Row) -> bool:
    """Whether an optimum is one: y is allowed and has the value; c = sum w_i rows_i with sum |w_i| limits_i = value."""
    allowed = all(abs(dot(row, optimum.point)) <= limit for row, limit in zip(rows, limits, strict=True))
    reached = dot(c, optimum.point) == optimum.value
    written = [sum(w * rows[i][axis] for i, w in optimum.weights.items()) for axis in range(len(c))]
    bound = sum(abs(w) * limits[i] for i, w in optimum.weights.items())
    return allowed and reached and written == list(c) and bound == optimum.value


def largest(rows: Sequence[Row], limits: Sequence[int], c: Row) -> Optimum:
    """max c·y over {y : |rows_i·y| <= limits_i}, for rows that span the space and limits above 0."""
    basis = independent_rows(rows)
    if len(basis) < len(c):
        raise ValueError("rows that do not span the space bound nothing")
    signs = [0] * len(c)
    for pivots in range(10_000):
        adjugate, determinant = inverse([rows[i] for i in basis])
        weights = [dot(c, column) for column in transposed(adjugate)]
        signs = [(1 if w * determinant > 0 else -1) if w else (s or 1) for w, s in zip(weights, signs, strict=True)]
        target = [s * limits[i] for s, i in zip(signs, basis, strict=True)]
        point = [dot(line, target) for line in adjugate]
        entering, sign = _violated(rows, limits, point, determinant, first=pivots > _PIVOTS_BEFORE_BLAND)
        if entering is None:
            used = {i: Fraction(w, determinant) for i, w in zip(basis, weights, strict=True)}
            return Optimum(Fraction(dot(c, point), determinant), tuple(Fraction(x, determinant) for x in point), used)
        leaving = _leaving(rows[entering], sign, adjugate, determinant, weights, signs, basis)
        basis[leaving], signs[leaving] = entering, sign
    raise ArithmeticError("the simplex method did not end")


def _violated(
    rows: Sequence[Row], limits: Sequence[int], point: Sequence[int], determinant: int, first: bool
) -> tuple[int | None, int]:
    """The row that point/determinant violates most (or the first it violates), and on which side."""
    worst, value, limit, sign = None, abs(determinant), 1, 0
    for i, (row, bound) in enumerate(zip(rows, limits, strict=True)):
        here = dot(row, point)
        if abs(here) * limit > value * bound:
            worst, value, limit = i, abs(here), bound
            sign = 1 if here * determinant > 0 else -1
            if first:
                break
    return worst, sign


def _leaving(
    row: Row,
    sign: int,
    adjugate: list[list[int]],
    determinant: int,
    weights: Sequence[int],
    signs: Sequence[int],
    basis: Sequence[int],
) -> int:
    """Which of the basis reaches weight 0 first as the entering row takes weight; ties to the lowest row."""
    entering = [sign * dot(row, column) for column in transposed(adjugate)]
    candidates = []
    for at, (w, m, s) in enumerate(zip(weights, entering, signs, strict=True)):
        falls = s * m * (1 if determinant > 0 else -1)
        if falls > 0:
            candidates.append((Fraction(abs(w), falls), basis[at], at))
    return min(candidates)[2]


@dataclass(frozen=True)
class PointHull:
    """conv of ± integer points (the required differences), known by nothing but the points."""

    points: tuple[tuple[int, ...], ...]
    dimension: int

    @classmethod
    def of(cls, differences: Sequence[Sequence[int]], dimension: int) -> PointHull:
        distinct = {max(tuple(p), tuple(-x for x in p)) for p in differences if any(p)}
        return cls(tuple(sorted(distinct)), dimension)

    @cached_property
    def rank(self) -> int:
        return len(self._axes)

    @cached_property
    def _axes(self) -> list[int]:
        """Coordinates onto which the span projects one to one."""
        return independent_rows(transposed(self.points)) if self.points else []

    @cached_property
    def _projected(self) -> list[list[int]]:
        return [[p[axis] for axis in self._axes] for p in self.points]

    def norm(self, v: Sequence[int]) -> Fraction | None:
        """The gauge of v; None off the span."""
        if not any(v):
            return Fraction(0)
        if not self.points or (self.rank < self.dimension and rank([*self.points, v]) > self.rank):
            return None
        ones = [1] * len(self.points)
        target = [v[axis] for axis in self._axes]
        optimum = largest(self._projected, ones, target)
        if not proves(optimum, self._projected, ones, target):
            raise ArithmeticError("a norm without a proof")
        return optimum.value

    def support(self, direction: Sequence[int]) -> int:
        """max direction·x over the hull, by looking at every point."""
        return max((abs(dot(direction, p)) for p in self.points), default=0)


@dataclass(frozen=True)
class FacetBody:
    """{x = basis·y : |normals·y| <= offsets}, a body on the lattice basis·Z^k inside Z^d."""

    basis: tuple[tuple[int, ...], ...]
    coordinates: tuple[tuple[int, ...], ...]
    normals: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]

    @property
    def rank(self) -> int:
        return len(self.coordinates)

    def coordinates_of(self, v: Sequence[int]) -> list[int] | None:
        """The y with basis·y = v; None where there is none, which is decided by multiplying back."""
        y = [dot(row, v) for row in self.coordinates]
        return y if all(dot(line, y) == x for line, x in zip(self.basis, v, strict=True)) else None

    def norm(self, v: Sequence[int]) -> Fraction | None:
        """max |normal·y| / offset; None off the span, where no noise of this body ever is."""
        y = self.coordinates_of(v)
        if y is None:
            return None
        top, bottom = 0, 1
        for normal, offset in zip(self.normals, self.offsets, strict=True):
            value = abs(dot(normal, y))
            if value * bottom > top * offset:
                top, bottom = value, offset
        return Fraction(top, bottom)

    def support(self, direction: Sequence[int]) -> Fraction:
        """max direction·x over the body, in exact fractions and proved."""
        along = [dot(direction, column) for column in transposed(self.basis)] if self.rank else []
        return widest(self.normals, self.offsets, along)


def widest(normals: Sequence[Row], offsets: Sequence[int], along: Sequence[int]) -> Fraction:
    """max along·y over {|normals·y| <= offsets}, proved."""
    if not any(along):
        return Fraction(0)
    optimum = largest(normals, offsets, along)
    if not proves(optimum, normals, offsets, along):
        raise ArithmeticError("a support without a proof")
    return optimum.value
