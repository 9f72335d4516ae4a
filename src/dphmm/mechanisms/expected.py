"""Expected squared errors and normalisers of the lattice mechanisms: summed over the lattice, or of the
continuous law where that takes too many points.

One walk over the lattice points serves the graded law and every offset of the staircase at once, because N
and its position among the offsets are all that any of them needs of a point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm.samplers.body import LatticeBody
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.sensitivity.moment import volume
from dphmm.types import FloatArray, IntArray

#: A walk takes in about this many lattice points at most (half are visited, half are mirror images).
MOST_POINTS = 100_000
MOST_OFFSETS = 32
#: What the sums may leave out, as a share of the result: the first of these that MOST_POINTS allows.
_TAIL_SHARES = (1e-12, 1e-6, 1e-3)
#: Beyond this exponent every weight is 0 in floats.
_UNDERFLOW = 1400.0
#: Differences below this share are rounding: the first of equals is taken.
_TIE = 1e-9
_MOST_BREAKPOINT_POINTS = 20_000


@dataclass(frozen=True)
class LawSums:
    """``error``: E‖noise‖² in answer units squared. ``log_mass``: log of the sum of the unnormalised law."""

    error: float
    log_mass: float


@dataclass(frozen=True)
class ErrorSums:
    """Sums of the graded law and of the staircase at each offset; ``summed``: over the lattice."""

    knorm: LawSums
    staircase: tuple[LawSums, ...]
    summed: bool

    @classmethod
    def of(
        cls, hull: SensitivityHull, body: LatticeBody, epsilon: Fraction, offsets: tuple[Fraction, ...]
    ) -> ErrorSums:
        """For increasing ``offsets`` in [0, 1)."""
        walked = _lattice_errors(hull, body, float(epsilon), offsets)
        return walked if walked is not None else _continuous_errors(hull, float(epsilon), offsets)

    def best(self) -> int:
        """The first offset whose error is least, up to rounding."""
        least = min(law.error for law in self.staircase)
        return next(i for i, law in enumerate(self.staircase) if law.error <= least * (1.0 + _TIE))


def candidate_offsets(body: LatticeBody) -> tuple[Fraction, ...]:
    """At most 32 offsets, 0 among them: the law changes only at fractional parts of N on lattice points.

    They are read off the points with N <= 2; where those are many, even steps serve as well.
    """
    half = [math.floor(2 * w) for w in body.widths]
    few = math.prod(2 * h + 1 for h in half) <= _MOST_BREAKPOINT_POINTS
    if not few or not _within_64_bits(body, half, 2):
        return tuple(Fraction(i, MOST_OFFSETS) for i in range(MOST_OFFSETS))
    axes = np.meshgrid(*(np.arange(-h, h + 1) for h in half), indexing="ij")
    points = np.stack([axis.ravel() for axis in axes], axis=1)
    values = np.abs(points @ np.array(body.normals, dtype=np.int64).T)
    offsets = np.array(body.offsets, dtype=np.int64)
    norms = values / offsets
    facet = np.argmax(norms, axis=1)
    near = norms[np.arange(len(points)), facet] <= 2.0
    tops, bottoms = values[np.arange(len(points)), facet][near], offsets[facet][near]
    rests = tops % bottoms
    divisor = np.gcd(rests, bottoms)
    found = np.unique(np.stack([rests // divisor, bottoms // divisor], axis=1), axis=0)
    found = found[np.argsort(found[:, 0] / found[:, 1], kind="stable")]
    if len(found) > MOST_OFFSETS:
        found = found[np.linspace(0, len(found) - 1, MOST_OFFSETS).round().astype(int)]
    return tuple(sorted(Fraction(int(a), int(b)) for a, b in found))


def _lattice_errors(
    hull: SensitivityHull, body: LatticeBody, epsilon: float, offsets: tuple[Fraction, ...]
) -> ErrorSums | None:
    for share in _TAIL_SHARES:
        errors = _summed_errors(hull, body, epsilon, offsets, share)
        if errors is not None:
            return errors
    return None


def _summed_errors(
    hull: SensitivityHull, body: LatticeBody, epsilon: float, offsets: tuple[Fraction, ...], share: float
) -> ErrorSums | None:
    """Errors that leave out at most this share of themselves, or None where that takes too many points."""
    radius = _first_radius(len(body.widths), epsilon, share)
    units = np.array(body.embedding, dtype=np.float64) * hull.frame.pitch[:, None]
    while True:
        half = np.array([math.floor(radius * w) for w in body.widths], dtype=np.int64)
        if _points(hull, half, radius) > MOST_POINTS or not _within_64_bits(body, half, radius):
            return None
        graded, counts, squares, complete = _walk(body, half, offsets, units, epsilon, radius)
        if not complete:
            return None
        least = min([float(graded[1]), *(_staircase_square(squares, c, epsilon) for c in range(len(offsets)))])
        if _tail(body, units, epsilon, radius) <= share * least or epsilon * radius > _UNDERFLOW:
            knorm = LawSums(float(graded[1] / graded[0]), math.log(graded[0]))
            steps = tuple(_staircase_sums(counts, squares, c, epsilon) for c in range(len(offsets)))
            return ErrorSums(knorm, steps, summed=True)
        radius += 1 + radius // 12


def _first_radius(k: int, epsilon: float, share: float) -> int:
    """About where x^(k+1)·exp(-x), the law of ε·N times |v|² in the continuous case, has that share left."""
    least = 7.0 - math.log(share)
    x = least
    for _ in range(20):
        x = least + (k + 1) * math.log(x) - math.lgamma(k + 2)
    return 1 + math.ceil(max(x, least) / epsilon)


def _points(hull: SensitivityHull, half: IntArray, radius: int) -> float:
    """About how many lattice points radius·body holds, or rows, where those are more."""
    sides = [2.0 * float(h) + 1.0 for h in half]
    if hull.rank < hull.dimension or not hull.exact:
        return math.prod(sides)
    return max(float(hull.lattice_volume) * float(radius) ** hull.rank, math.prod(sides[:-1]))


def _within_64_bits(body: LatticeBody, half: Sequence[int] | IntArray, radius: int) -> bool:
    rows = [*body.normals, *body.embedding]
    reach = max(sum(abs(a) * int(h) for a, h in zip(row, half, strict=True)) for row in rows)
    return max(reach, *(radius * b for b in body.offsets)) < 2**61


def _walk(
    body: LatticeBody,
    half: IntArray,
    offsets: tuple[Fraction, ...],
    units: FloatArray,
    epsilon: float,
    radius: int,
) -> tuple[FloatArray, FloatArray, FloatArray, bool]:
    from dphmm._kernels.lattice import lattice_sums

    allowances = [[g.numerator * b // g.denominator for g in offsets] for b in body.offsets]
    return lattice_sums(
        half,
        np.array(body.normals, dtype=np.int64),
        np.array(body.offsets, dtype=np.int64),
        np.array(allowances, dtype=np.int64).reshape(len(body.offsets), len(offsets)),
        units,
        epsilon,
        radius,
        2 * MOST_POINTS,
    )


def _weights(table: FloatArray, c: int, epsilon: float) -> tuple[FloatArray, FloatArray]:
    """Sums of the points at steps 0..radius and at 1..radius + 1, with their weights, for offset number c."""
    falls = np.exp(-epsilon * np.arange(len(table) + 1))
    return table[:, : c + 1].sum(axis=1) * falls[:-1], table[:, c + 1 :].sum(axis=1) * falls[1:]


def _staircase_square(squares: FloatArray, c: int, epsilon: float) -> float:
    return math.fsum(np.concatenate(_weights(squares, c, epsilon)))


def _staircase_sums(counts: FloatArray, squares: FloatArray, c: int, epsilon: float) -> LawSums:
    mass = math.fsum(np.concatenate(_weights(counts, c, epsilon)))
    return LawSums(_staircase_square(squares, c, epsilon) / mass, math.log(mass))


def _tail(body: LatticeBody, units: FloatArray, epsilon: float, radius: int) -> float:
    """A bound on sum w|x|² over the points with N > radius, for every law: w <= exp(-ε(n - 1)) where n - 1
    < N <= n.
    """
    widths = [float(w) for w in body.widths]
    size = float(((np.abs(units) @ np.array(widths)) ** 2).sum())

    def term(n: int) -> float:
        return math.prod(2.0 * n * w + 1.0 for w in widths) * size * n * n

    ratio = math.exp(-epsilon) * term(radius + 2) / term(radius + 1)
    return math.inf if ratio >= 1.0 else math.exp(-epsilon * radius) * term(radius + 1) / (1.0 - ratio)


def _continuous_errors(hull: SensitivityHull, epsilon: float, offsets: tuple[Fraction, ...]) -> ErrorSums:
    """docs/theory.md F2 and F3, and for the staircase its mixture of uniform laws on (j + g)K."""
    size, k = float(np.trace(hull.second_moment)), hull.rank
    log_volume = math.log(volume(hull.body))
    knorm = LawSums(size * (k + 1) * (k + 2) / epsilon**2, log_volume + math.lgamma(k + 1) - k * math.log(epsilon))
    steps = []
    for offset in offsets:
        weight = _power_sum(k, epsilon, float(offset))
        error = size * _power_sum(k + 2, epsilon, float(offset)) / weight
        steps.append(LawSums(error, log_volume + math.log(weight * -math.expm1(-epsilon))))
    return ErrorSums(knorm, tuple(steps), summed=False)


def _power_sum(p: int, epsilon: float, g: float) -> float:
    """sum over j >= 0 of e^{-εj}(j+g)^p, by Eulerian numbers: every term is positive, so nothing cancels."""
    q, gap = math.exp(-epsilon), -math.expm1(-epsilon)
    total = g**p / gap
    for i in range(1, p + 1):
        series = q * sum(a * q**n for n, a in enumerate(_eulerian(i))) / gap ** (i + 1)
        total += math.comb(p, i) * g ** (p - i) * series
    return total


def _eulerian(n: int) -> list[int]:
    """Eulerian numbers A(n, 0..n-1): sum j^n q^j = q·sum A(n, m) q^m / (1 - q)^(n+1)."""
    row = [1]
    for size in range(2, n + 1):
        row = [(m + 1) * (row[m] if m < size - 1 else 0) + (size - m) * (row[m - 1] if m else 0) for m in range(size)]
    return row
