"""Expected squared errors and normalisers of the lattice mechanisms.

Exactly, from the few lattice points near the origin, or of the continuous law where even those are many.

The lattice points x with N(x) <= j + g, and the sum of |x|² over them, are polynomials in j of degree k and k + 2 for
every fixed g in [0, 1), because the corners of the hull are lattice points; at -m they tell of the points with
N(x) < m - g (docs/proofs/dilations.md). The points of the first max(2, k) dilations give all the others, and the
infinite sums over them in closed form.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.samplers.body import LatticeBody
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import FloatArray

#: Bodies with more lattice points than this in (k + 3)·body, in space more, are left to the continuous law, which is
#: farther off there; unless the points that have any mass are no more.
MOST_POINTS = 20_000
_IN_SPACE = 20
#: Where no polynomials help, points with ε·N beyond this are left out: about 1e-8 of the mass.
_NEAR = 20.0
#: Offsets of the staircase that are tried where the norm's own are not known.
EVEN_OFFSETS = 32
#: Differences below this share are rounding: the first of equals is taken.
TIE = 1e-9
#: Offsets that add up to less have a table of all their fractions, which their nearest floats tell apart and order.
MOST_FRACTIONS = 2**22
#: No lattice point of a body that is looked at has such a coordinate.
_BEYOND = 2**61


#: Breakpoints (b,), and two tables or rows of them.
Sums: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]


@dataclass(frozen=True)
class LawSums:
    """``error``: E‖noise‖² in answer units squared. ``log_mass``: log of the sum of the unnormalised law."""

    error: float
    log_mass: float


@dataclass(frozen=True)
class Breakpoints:
    """Sums of the staircases at every fraction g at which the points with N <= j + g change.

    ``parts`` (b,) ascending from 0; ``masses`` and ``sizes`` (b,): the sums over j >= 0 of exp(-εj) times how many
    points have N <= j + g, and times their sum of |x|² in answer units. ``denominators`` are those of the fractions.
    """

    parts: FloatArray
    masses: FloatArray
    sizes: FloatArray
    epsilon: Fraction
    denominators: tuple[int, ...]

    @classmethod
    def of(cls, hull: SensitivityHull, body: LatticeBody, epsilon: Fraction) -> Breakpoints | None:
        """None where the points that would have to be looked at are too many."""
        found = _whole(hull, body, float(epsilon)) or _near(hull, body, float(epsilon))
        return None if found is None else cls(*found, epsilon, tuple(set(body.offsets)))

    @cached_property
    def knorm(self) -> LawSums:
        """Of the law exp(-ε·N)."""
        mass, size = _kernels.lattice.graded_sums(self.parts, self.masses, self.sizes, float(self.epsilon))
        return LawSums(size / mass, math.log(mass))

    def staircase(self, offset: Fraction) -> LawSums:
        """Of the staircase at any offset: that of the last breakpoint up to it."""
        return self._staircase_at(bisect_right(range(len(self.parts)), offset, key=self.fraction) - 1)

    def best_staircase(self) -> tuple[Fraction, LawSums]:
        """The first breakpoint whose staircase errs least, up to rounding, and its sums."""
        at = _kernels.lattice.first_least(self.sizes, self.masses, TIE)
        return self.fraction(at), self._staircase_at(at)

    def _staircase_at(self, at: int) -> LawSums:
        mass = float(self.masses[at])
        return LawSums(float(self.sizes[at]) / mass, math.log(mass * -math.expm1(-float(self.epsilon))))

    def fraction(self, at: int) -> Fraction:
        """A breakpoint as the exact fraction that its float stands for."""
        part = float(self.parts[at])
        return next(Fraction(n, b) for b in self.denominators if (n := round(part * b)) / b == part)


def _whole(hull: SensitivityHull, body: LatticeBody, epsilon: float) -> Sums | None:
    """Breakpoints, masses and sizes of a hull of lattice corners, from its first dilations."""
    if not hull.exact or hull.hull_vertices is None:
        return None
    k = body.rank
    points = _points_within(max(2, k), hull, body) if _may_be_few(k + 3, hull, body) else None
    if points is None:
        return None
    parts, counts, squares = points
    if _kernels.lattice.points_of(counts, parts, k, k + 3) > _most(body) + 1:
        return None
    ratio, complement = math.exp(-epsilon), -math.expm1(-epsilon)
    # The leading coefficient of the squares is their integral over the body. Only rank 2 needs it.
    top = math.factorial(k + 2) * float(hull.span_volume) * hull.mean_square
    masses = _kernels.lattice.dilation_sums(counts, parts, k, k, 0.0, ratio, complement)
    return parts, masses, _kernels.lattice.dilation_sums(squares, parts, k, k + 2, top, ratio, complement)


def _near(hull: SensitivityHull, body: LatticeBody, epsilon: float) -> Sums | None:
    """The same of any body, from the points near the origin alone."""
    radius = 2 + math.ceil(_NEAR / epsilon)
    points = _points_within(radius, hull, body) if _may_be_few(radius, hull, body) else None
    if points is None:
        return None
    parts, counts, squares = points
    return parts, held_series(counts, epsilon), held_series(squares, epsilon)


def series(values: FloatArray, epsilon: float) -> FloatArray:
    """sum over j >= 0 of exp(-εj)·P(j) for each polynomial (columns) given by P(0), .., P(degree) (rows).

    It is h(q) / (1 - q)^(degree + 1), q = exp(-ε), with h of that degree. For counts h has no negative coefficient
    (Stanley), so nothing cancels; for squares none was ever seen, and only rounding would suffer.
    """
    sums: FloatArray = _kernels.lattice.polynomial_sums(values, math.exp(-epsilon), -math.expm1(-epsilon))
    return sums


def held_series(values: FloatArray, epsilon: float) -> FloatArray:
    """sum over j >= 0 of exp(-εj)·v(j) for columns v(0), .., v(r - 1) that stay at their last value."""
    falls = np.exp(-epsilon * np.arange(len(values)))
    falls[-1] /= -math.expm1(-epsilon)
    total: FloatArray = falls @ values
    return total


def _most(body: LatticeBody) -> int:
    return MOST_POINTS * _IN_SPACE if body.rank > 2 else MOST_POINTS


def _half_widths(radius: int, body: LatticeBody) -> list[int]:
    return [min(radius * above // below, _BEYOND) for above, below in map(Fraction.as_integer_ratio, body.widths)]


def _may_be_few(radius: int, hull: SensitivityHull, body: LatticeBody) -> bool:
    """Whether volume and rows of radius·body leave it possible that its points are no more than may be looked at."""
    if float(hull.span_volume) * radius**body.rank > 2 * _most(body):
        return False
    return math.prod(2.0 * h + 1.0 for h in _half_widths(radius, body)[:-1]) <= _most(body)


def _points_within(radius: int, hull: SensitivityHull, body: LatticeBody) -> Sums | None:
    """Breakpoints (b,), and counts and squares (radius, b); None where the points are too many."""
    if body.rows.dtype != np.int64 or sum(body.offsets) >= MOST_FRACTIONS:
        return None
    half, offsets, pitch = np.array(_half_widths(radius, body)), np.array(body.offsets), hull.frame.pitch
    points: Sums = _kernels.lattice.dilations(half, body.rows, offsets, pitch, radius, _most(body) // 2)
    return points if len(points[0]) else None


@dataclass(frozen=True)
class Continuous:
    """Expected errors and normalisers of the continuous laws.

    docs/theory.md F2 and F3, and for the staircase its mixture of uniform laws on (j + g)K.
    """

    rank: int
    size: float
    log_volume: float
    epsilon: Fraction

    @classmethod
    def of(cls, hull: SensitivityHull, epsilon: Fraction) -> Continuous:
        return cls(hull.rank, hull.mean_square, math.log(hull.span_volume), epsilon)

    @property
    def knorm(self) -> LawSums:
        k, rate = self.rank, float(self.epsilon)
        mass = self.log_volume + math.lgamma(k + 1) - k * math.log(rate)
        return LawSums(self.size * (k + 1) * (k + 2) / rate**2, mass)

    def staircase(self, offset: Fraction) -> LawSums:
        log_weight, square = _shells(self.rank, float(self.epsilon), float(offset))
        mass = log_weight + math.log(-math.expm1(-float(self.epsilon)))
        return LawSums(self.size * square, self.log_volume + mass)

    def best_staircase(self) -> tuple[Fraction, LawSums]:
        """Of evenly spaced offsets the first that errs least, up to rounding, and its sums."""
        offset = _best_offset(self.rank, float(self.epsilon))
        return offset, self.staircase(offset)


@lru_cache(maxsize=256)
def _shells(rank: int, epsilon: float, offset: float) -> tuple[float, float]:
    """log of the sum over j >= 0 of e^{-εj}(j+g)^k, and the mean of (j+g)² under these weights: of no hull."""
    # Without an offset the first of them is j = 1, whose weight may be too small for a float.
    radii: FloatArray = np.arange(rank + 3, dtype=np.float64)[:, None] + (offset or 1.0)
    weight = float(series(radii[: rank + 1] ** rank, epsilon)[0])
    square = float(series(radii ** (rank + 2), epsilon)[0])
    return math.log(weight) - (0.0 if offset else epsilon), square / weight


@lru_cache(maxsize=256)
def _best_offset(rank: int, epsilon: float) -> Fraction:
    """The first of evenly spaced offsets that errs least, up to rounding: the same for all hulls."""
    errors = np.array([_shells(rank, epsilon, number / EVEN_OFFSETS)[1] for number in range(EVEN_OFFSETS)])
    return Fraction(int((errors <= errors.min() * (1.0 + TIE)).argmax()), EVEN_OFFSETS)


def law_sums(hull: SensitivityHull, body: LatticeBody, epsilon: Fraction) -> Breakpoints | Continuous:
    """The sums of all laws on a hull: exact where its points are few."""
    return Breakpoints.of(hull, body, epsilon) or Continuous.of(hull, epsilon)
