"""Expected squared errors and normalisers of the lattice mechanisms: exactly, from the few lattice points near the
origin, or of the continuous law where even those are many.

The lattice points x with N(x) <= j + g, and the sum of |x|² over them, are polynomials in j = 0, 1, 2, .. of degree k
and k + 2 for every fixed g in [0, 1), because the corners of the hull are lattice points (docs/proofs/dilations.md).
Their values at k + 3 places give all the others, and the infinite sums over them in closed form.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from operator import mul

import numpy as np

from dphmm.samplers.body import LatticeBody
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import FloatArray

#: At most this many lattice points are looked at (half of them, the others being mirror images), in space more: there
#: the continuous law is farther off.
MOST_POINTS = 20_000
_IN_SPACE = 20
#: Where all others are too many, points with ε·N beyond this are left out: about 1e-8 of the mass.
_NEAR = 20.0
#: Offsets of the staircase that are tried where the norm's own are not known.
EVEN_OFFSETS = 32
_EVENLY = tuple(number / EVEN_OFFSETS for number in range(EVEN_OFFSETS))
_ONE = np.ones(1)
#: Differences below this share are rounding: the first of equals is taken.
_TIE = 1e-9
#: Fractions of smaller denominators are told apart, and put in order, by their nearest floats.
_LARGEST_OFFSET = 2**26


@dataclass(frozen=True)
class LawSums:
    """``error``: E‖noise‖² in answer units squared. ``log_mass``: log of the sum of the unnormalised law."""

    error: float
    log_mass: float


@dataclass(frozen=True)
class Breakpoints:
    """How many lattice points have N <= j + g, and their sum of |x|² in answer units, for every fraction g at which
    that changes.

    ``parts`` (b,) ascending from 0; ``counts`` and ``squares`` (r, b) for j = 0..r - 1: either the k + 1 and k + 3
    values that tell all others, or, not ``whole``, those of the points near the origin alone.
    """

    parts: FloatArray
    counts: FloatArray
    squares: FloatArray
    epsilon: Fraction
    denominators: tuple[int, ...]
    whole: bool

    @classmethod
    def of(cls, hull: SensitivityHull, body: LatticeBody, epsilon: Fraction) -> Breakpoints | None:
        """None where the points that would have to be looked at are too many."""
        k = body.rank
        if hull.exact and hull.hull_vertices is not None:
            table = _points_within(k + 3, hull, body)
            if table is not None:
                parts, counts, squares = table
                return cls(parts, counts[: k + 1], squares, epsilon, tuple(set(body.offsets)), whole=True)
        near = _points_within(2 + math.ceil(_NEAR / epsilon), hull, body)
        return None if near is None else cls(*near, epsilon, tuple(set(body.offsets)), whole=False)

    @cached_property
    def knorm(self) -> LawSums:
        """Of the law exp(-ε·N): between two breakpoints the points weigh what the next of them weighs."""
        rate = float(self.epsilon)
        gaps = np.concatenate((self.parts[1:], _ONE)) - self.parts
        falls = np.exp(-rate * self.parts) * -np.expm1(-rate * gaps)
        mass = math.fsum((falls * self._masses).tolist())
        return LawSums(math.fsum((falls * self._sizes).tolist()) / mass, math.log(mass))

    @cached_property
    def staircase_errors(self) -> FloatArray:
        """E‖noise‖² (b,) of the staircase at every breakpoint."""
        return np.asarray(self._sizes / self._masses)

    def staircase(self, offset: Fraction) -> LawSums:
        """Of the staircase at any offset: that of the last breakpoint up to it."""
        return self._staircase_at(bisect_right(range(len(self.parts)), offset, key=self.fraction) - 1)

    def best_staircase(self) -> tuple[Fraction, LawSums]:
        """The first breakpoint whose staircase errs least, up to rounding, and its sums."""
        errors = self.staircase_errors
        at = int((errors <= errors.min() * (1.0 + _TIE)).argmax())
        return self.fraction(at), self._staircase_at(at)

    def _staircase_at(self, at: int) -> LawSums:
        mass = float(self._masses[at]) * -math.expm1(-float(self.epsilon))
        return LawSums(float(self.staircase_errors[at]), math.log(mass))

    def fraction(self, at: int) -> Fraction:
        """A breakpoint as the exact fraction that its float stands for."""
        part = float(self.parts[at])
        near = (Fraction(round(part * b), b) for b in self.denominators)
        return next(g for g in near if g.numerator / g.denominator == part)

    @cached_property
    def _masses(self) -> FloatArray:
        return self._summed(self.counts)

    @cached_property
    def _sizes(self) -> FloatArray:
        return self._summed(self.squares)

    def _summed(self, values: FloatArray) -> FloatArray:
        return series(values, float(self.epsilon)) if self.whole else held_series(values, float(self.epsilon))


def series(values: FloatArray, epsilon: float) -> FloatArray:
    """sum over j >= 0 of exp(-εj)·P(j) for each polynomial (columns) given by P(0), .., P(degree) (rows).

    It is h(q) / (1 - q)^(degree + 1), q = exp(-ε), with h of that degree. For counts h has no negative coefficient
    (Stanley), so nothing cancels; for squares none was ever seen, and only rounding would suffer.
    """
    degree = len(values) - 1
    falls, scale = _falls(degree, epsilon)
    total: FloatArray = falls @ (_numerator(degree) @ values)
    return total / scale


def held_series(values: FloatArray, epsilon: float) -> FloatArray:
    """sum over j >= 0 of exp(-εj)·v(j) for columns v(0), .., v(r - 1) that stay at their last value."""
    falls = np.exp(-epsilon * np.arange(len(values)))
    falls[-1] /= -math.expm1(-epsilon)
    total: FloatArray = falls @ values
    return total


@lru_cache(maxsize=64)
def _falls(degree: int, epsilon: float) -> tuple[FloatArray, float]:
    """q^0, .., q^degree and (1 - q)^(degree + 1) of q = exp(-ε)."""
    falls = np.asarray(math.exp(-epsilon) ** np.arange(degree + 1), dtype=np.float64)
    falls.setflags(write=False)
    return falls, (-math.expm1(-epsilon)) ** (degree + 1)


@cache
def _numerator(degree: int) -> FloatArray:
    """The coefficients of h from P(0), .., P(degree): h_i = sum over m <= i of (-1)^(i-m) C(degree + 1, i - m) P(m)."""
    steps = range(degree + 1)
    rows = [[(-1) ** (i - m) * math.comb(degree + 1, i - m) if m <= i else 0 for m in steps] for i in steps]
    return np.array(rows, dtype=np.float64)


def _points_within(
    radius: int, hull: SensitivityHull, body: LatticeBody
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Breakpoints (b,), and counts and squares (radius, b); None where the points are too many."""
    half = [radius * w.numerator // w.denominator for w in body.widths]
    most = MOST_POINTS if body.rank <= 2 else MOST_POINTS * _IN_SPACE
    if math.prod(2.0 * h + 1.0 for h in half[:-1]) > most or float(hull.span_volume) * radius**body.rank > 2 * most:
        return None
    reach = max(sum(map(mul, map(abs, row), half)) for row in (*body.normals, *body.embedding))
    if reach >= 2**61 or max(body.offsets) >= _LARGEST_OFFSET:
        return None
    from dphmm._kernels.lattice import dilations

    units = np.array(body.embedding, dtype=np.float64) * hull.frame.pitch[:, None]
    normals, offsets = np.array(body.normals, dtype=np.int64), np.array(body.offsets, dtype=np.int64)
    parts, counts, squares = dilations(np.array(half, dtype=np.int64), normals, offsets, units, radius, most // 2)
    return (parts, counts, squares) if len(parts) else None


@dataclass(frozen=True)
class Continuous:
    """The same of the continuous laws: docs/theory.md F2 and F3, and for the staircase its mixture of uniform laws on
    (j + g)K.
    """

    rank: int
    size: float
    log_volume: float
    epsilon: Fraction

    @classmethod
    def of(cls, hull: SensitivityHull, epsilon: Fraction) -> Continuous:
        return cls(hull.rank, float(np.trace(hull.second_moment)), math.log(hull.span_volume), epsilon)

    @property
    def knorm(self) -> LawSums:
        k, rate = self.rank, float(self.epsilon)
        mass = self.log_volume + math.lgamma(k + 1) - k * math.log(rate)
        return LawSums(self.size * (k + 1) * (k + 2) / rate**2, mass)

    def staircase(self, offset: Fraction) -> LawSums:
        weights, squares = _shells(self.rank, float(self.epsilon), (float(offset),))
        weight = float(weights[0]) * -math.expm1(-float(self.epsilon))
        return LawSums(self.size * float(squares[0]) / float(weights[0]), self.log_volume + math.log(weight))

    def best_staircase(self) -> tuple[Fraction, LawSums]:
        """Of evenly spaced offsets the first that errs least, up to rounding, and its sums."""
        weights, squares = _shells(self.rank, float(self.epsilon), _EVENLY)
        errors = self.size * squares / weights
        offset = Fraction(int((errors <= errors.min() * (1.0 + _TIE)).argmax()), EVEN_OFFSETS)
        return offset, self.staircase(offset)


@lru_cache(maxsize=256)
def _shells(rank: int, epsilon: float, offsets: tuple[float, ...]) -> tuple[FloatArray, FloatArray]:
    """For offsets g (n,): sum over j >= 0 of e^{-εj}(j+g)^k, and of e^{-εj}(j+g)^{k+2}. No hull comes into it."""
    radii = np.arange(rank + 3)[:, None] + np.array(offsets)
    weights, squares = series(radii[: rank + 1] ** rank, epsilon), series(radii ** (rank + 2), epsilon)
    weights.setflags(write=False)
    squares.setflags(write=False)
    return weights, squares


def law_sums(hull: SensitivityHull, body: LatticeBody, epsilon: Fraction) -> Breakpoints | Continuous:
    """The sums of all laws on a hull: exact where its points are few."""
    return Breakpoints.of(hull, body, epsilon) or Continuous.of(hull, epsilon)
