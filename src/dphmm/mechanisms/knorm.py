"""The mechanisms that "auto" chooses among: K-norm and staircase on lattice bodies, and no noise for a constant.

On a body a noise v has a probability that depends on N(v) = ‖v‖_K alone, N(v) rational (docs/theory.md 5). Sampling is
exact (ADR 0002), with the primitives of Canonne, Kamath and Steinke (NeurIPS 2020). The graded mechanism is the K-norm
mechanism of Hardt and Talwar (STOC 2010). The staircase is constant on shells of the hull: the lattice version of the
general staircase mechanism of Kulesza, Suresh and Wang (AISTATS 2025), in one dimension Geng and Viswanath's. On the
lattice its optimality is not proved. A plan set whose answers are one public constant needs no noise.

Expected squared errors and normalisers come exactly from the few lattice points near the origin, or from the continuous
law where even those are many. The lattice points x with N(x) <= j + g, and the sum of |x|² over them, are polynomials
in j of degree k and k + 2 for every fixed g in [0, 1), because the corners of the hull are lattice points; at -m they
tell of the points with N(x) < m - g (docs/proofs/dilations.md). The points of the first max(2, k) dilations give all
the others, and the infinite sums over them in closed form.

Proofs: docs/proofs/discrete-knorm.md, docs/proofs/staircase.md, docs/proofs/constant.md, docs/proofs/dilations.md.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Protocol, Self, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm._checks import exact_number
from dphmm.errors import InvalidInput
from dphmm.mechanisms.base import NoiseMechanism, vector
from dphmm.samplers.body import LatticeBody, LatticeSampler
from dphmm.samplers.entropy import default_bits
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import Bits, Exact, FloatArray, FloatLaw, IntArray, Loss

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
        parts = _whole(hull, body, float(epsilon)) or _near(hull, body, float(epsilon))
        return None if parts is None else cls(*parts, epsilon, tuple(set(body.offsets)))

    @cached_property
    def knorm(self) -> LawSums:
        """The sums of the law exp(-ε·N)."""
        mass, size = _kernels.lattice.graded_sums(self.parts, self.masses, self.sizes, float(self.epsilon))
        return LawSums(size / mass, math.log(mass))

    def staircase(self, offset: Fraction) -> LawSums:
        """The sums of the staircase at any offset: those of the last breakpoint up to it."""
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
    """True if volume and rows of radius·body leave it possible that its points are few enough to be looked at."""
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
        """The first of evenly spaced offsets with the least error, up to rounding, and its sums."""
        offset = _best_offset(self.rank, float(self.epsilon))
        return offset, self.staircase(offset)


@lru_cache(maxsize=256)
def _shells(rank: int, epsilon: float, offset: float) -> tuple[float, float]:
    """log of the sum over j >= 0 of e^{-εj}(j+g)^k, and the mean of (j+g)² under these weights, for any hull."""
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


_INT64_ROOM = 2.0**62
#: exp(-x) is far too small to be trusted from here on.
_NOTHING = 700.0
_LONGEST_TABLE = 4096
_NO_TABLE: FloatArray = np.zeros(1)
_NO_TABLE.setflags(write=False)


class Sampler(Protocol):
    """Draws m independent noises (m, d), within ±2**62 per axis."""

    def draw(self, m: int, bits: Bits) -> IntArray: ...


class BodyMechanism(NoiseMechanism):
    """A lattice mechanism on a hull of rank 1 or more, whose noise is on the lattice of its span."""

    def __init__(self, K: SensitivityHull, epsilon: Exact) -> None:
        super().__init__(K, epsilon)
        if K.rank == 0:
            raise InvalidInput("K", "a hull of rank 0", "a hull with an edge; mechanisms.Constant for one answer")

    @cached_property
    def _body(self) -> LatticeBody:
        return lattice_body(self._hull)

    @cached_property
    def _sampler(self) -> Sampler:
        return self._make_sampler()

    @cached_property
    def _sums(self) -> LawSums:
        return self._make_sums()

    @property
    def expected_error(self) -> float:
        """E‖noise‖² in answer units squared.

        Summed over the lattice where that is small, else of the continuous law.
        """
        return self._sums.error

    @property
    def log_normaliser(self) -> float:
        """log of the sum of exp(`log_likelihood_lattice`) over all z, as exact as ``expected_error``."""
        return self._sums.log_mass

    def knowing(self, body: LatticeBody, sums: LawSums) -> Self:
        """This mechanism, its body and sums computed already."""
        self.__dict__.update(_body=body, _sums=sums)
        return self

    @abstractmethod
    def _make_sums(self) -> LawSums: ...

    @abstractmethod
    def _make_sampler(self) -> Sampler: ...

    @abstractmethod
    def _log_weights(self, y: IntArray) -> FloatArray:
        """log of the unnormalised probability of noises (n, k) in coordinates of the span."""

    def noise(self, m: int, bits: Bits | None = None) -> IntArray:
        """m independent noises (m, d) in lattice steps, within ±2**62; add them with `samplers.add_noise`."""
        return self._sampler.draw(m, default_bits(bits))

    def log_likelihood_lattice(self, z: IntArray, images: IntArray) -> FloatArray:
        """`log_likelihood` of the lattice point z (d,) for lattice answers (N, d)."""
        v = np.asarray(z, dtype=np.int64) - np.asarray(images, dtype=np.int64)
        if self._hull.rank == self._hull.dimension:
            return self._log_weights(v)
        result = np.full(len(v), -np.inf)
        on_span = ~np.any(exact_product(v, self._hull.equations) != 0, axis=1)
        result[on_span] = self._log_weights(exact_product(v[on_span], self._hull.coordinates))
        return result

    def loss(self, v: ArrayLike) -> float:
        """The largest log-ratio between two answers that differ by v (d,); inf off the span of the hull."""
        difference = vector(v, self._hull.dimension)
        steps = self._hull.frame.steps(difference)
        nearest = np.rint(steps)
        if np.array_equal(steps, nearest) and float(np.abs(nearest).max()) < 2.0**53:
            return float(self.loss_lattice(nearest.astype(np.int64)))
        norm = self._hull.norm(difference)
        return float(self.loss_of_norm(math.inf if math.isinf(norm) else Fraction(norm)))

    def loss_lattice(self, v: ArrayLike) -> Loss:
        """`loss` of a lattice vector (d,), exactly; ``math.inf`` off the span."""
        norm = self._hull.norm_fraction(v)
        return self.loss_of_norm(norm)


class DiscreteKNorm(BodyMechanism):
    """P(z | answer) ∝ exp(-ε·‖z - answer‖_K) on the lattice: the K-norm mechanism (Eq. 1), exactly.

    The loss of a pair is ε times its norm: at most ε for policy edges, less for nearer pairs.
    Raises InvalidInput for a hull of rank 0 or an ε outside 2**-20..2**10.
    """

    name: ClassVar[str] = "discrete-knorm"
    law_name: ClassVar[str | None] = "discrete-knorm"

    def _make_sums(self) -> LawSums:
        return law_sums(self._hull, self._body, self.epsilon).knorm

    def _make_sampler(self) -> LatticeSampler:
        return LatticeSampler.knorm(self._body, self.epsilon)

    def _log_weights(self, y: IntArray) -> FloatArray:
        hull = self._hull
        if fits_int64(y, hull.normals):
            return np.asarray(-float(self.epsilon) * _kernels.lattice.facet_norms(y, hull.normals, hull.offsets))
        exact = np.abs(exact_product(y, hull.normals)).astype(np.float64) / hull.offsets
        return np.asarray(-float(self.epsilon) * exact.max(axis=1))

    def loss_of_norm(self, norm: Loss) -> Loss:
        """ε times the norm."""
        return self.epsilon * norm

    @cached_property
    def float_law(self) -> FloatLaw | None:
        """Graded by the norm; None on a flat body."""
        hull = self._hull
        if hull.rank < hull.dimension:
            return None
        # A shift of (o - 1 - allowance)/o is none with an allowance of o - 1.
        graded = _kernels.lattice.GRADED, float(self.epsilon), _NO_TABLE
        return FloatLaw(hull.normals, hull.offsets, hull.offsets - 1, *graded)


@lru_cache(maxsize=64)
def falling_steps(rate: float) -> tuple[int, float, FloatArray]:
    """The likelihood of a staircase step by step: the kind, the rate, and the table if it is short."""
    if _NOTHING / rate > _LONGEST_TABLE:
        return _kernels.lattice.STEPS, rate, _NO_TABLE
    # exp(-rate·i) for i = 0, 1, .. until it is next to nothing, and 0 for all later ones.
    falls = np.zeros(int(_NOTHING / rate) + 3)
    np.exp(-rate * np.arange(len(falls) - 1), out=falls[:-1])
    falls.setflags(write=False)
    return _kernels.filter.TABLE, rate, falls


def lattice_body(hull: SensitivityHull) -> LatticeBody:
    """The hull as a sampler wants it."""
    # Planar bodies are boxed in by their corners.
    assert hull.exact or hull.rank != 2
    return LatticeBody.of(hull.normals, hull.offsets, hull.hull_vertices, hull.half_width, hull.basis)


def fits_int64(v: IntArray, rows_: IntArray) -> bool:
    """True if every partial sum of v·row stays within 64 bits."""
    if v.dtype == object or v.size == 0 or rows_.size == 0:
        return v.dtype != object
    return float(np.abs(v.astype(np.float64)).max()) * float(np.abs(rows_).sum(axis=1).max()) < _INT64_ROOM


def exact_product(v: IntArray, rows_: IntArray) -> IntArray:
    """v (n, a) times rows (b, a) transposed, exactly: Python integers where 64 bits do not suffice."""
    if fits_int64(v, rows_):
        return np.asarray(v @ rows_.T)
    return np.asarray(v.astype(object) @ rows_.T.astype(object))


class Staircase(BodyMechanism):
    """P(z | answer) ∝ exp(-ε·ceil+(‖z - answer‖_K - offset)) on the lattice, ceil+(x) = max(0, ceil x).

    The loss of a pair is ε·ceil(its norm): ε for policy edges and for every pair nearer than that.

    Parameters
    ----------
    K : SensitivityHull of rank 1 or more.
    epsilon : from 2**-20 to 2**10.
    offset : in [0, 1); None takes the one of least expected error among at most 32 (public) breakpoints of
        the norm.

    Raises
    ------
    InvalidInput : a hull of rank 0, or an ε or offset out of range.
    """

    name: ClassVar[str] = "staircase"

    def __init__(self, K: SensitivityHull, epsilon: Exact, offset: Exact | None = None) -> None:
        super().__init__(K, epsilon)
        self._offset = self._best_offset() if offset is None else _checked_offset(offset)

    @property
    def offset(self) -> Fraction:
        return self._offset

    @cached_property
    def float_law(self) -> FloatLaw | None:
        """Steps beyond each facet; None on a flat body."""
        hull = self._hull
        if hull.rank < hull.dimension:
            return None
        return FloatLaw(hull.normals, hull.offsets, self._allowances, *falling_steps(float(self.epsilon)))

    def _make_sums(self) -> LawSums:
        return law_sums(self._hull, self._body, self.epsilon).staircase(self._offset)

    def describe(self) -> dict[str, str]:
        return super().describe() | {"offset": str(self._offset)}

    def _best_offset(self) -> Fraction:
        offset, sums = law_sums(self._hull, self._body, self.epsilon).best_staircase()
        self.knowing(self._body, sums)
        return offset

    def _make_sampler(self) -> LatticeSampler:
        return LatticeSampler.staircase(self._body, self.epsilon, self._offset)

    def _log_weights(self, y: IntArray) -> FloatArray:
        normals, offsets = self._hull.normals, self._hull.offsets
        if fits_int64(y, normals):
            steps = _kernels.lattice.facet_steps(y, normals, offsets, self._allowances)
        else:
            values = np.abs(exact_product(y, normals))
            steps = (values // offsets + (values % offsets > self._allowances)).max(axis=1)
        return np.asarray(-float(self.epsilon) * steps.astype(np.float64))

    @cached_property
    def _allowances(self) -> IntArray:
        g = self._offset
        return np.array([g.numerator * int(b) // g.denominator for b in self._hull.offsets], dtype=np.int64)

    def loss_of_norm(self, norm: Loss) -> Loss:
        """ε times the norm rounded up."""
        # Attained: along z = i·v the exponent rises by floor or ceil of the norm at every i, and by the norm
        # on average.
        return math.inf if isinstance(norm, float) else self.epsilon * math.ceil(norm)


def _checked_offset(offset: Exact) -> Fraction:
    value = exact_number(offset, "offset")
    if not 0 <= value < 1:
        raise InvalidInput("offset", offset, "a number from 0 up to, but not including, 1")
    return value


class Constant(NoiseMechanism):
    """Releases the answer itself.

    Safe only where all answers of the plan set are equal, which is the planner's to check.

    Raises InvalidInput for a hull that has an edge between different answers.
    """

    name: ClassVar[str] = "constant"
    choosable: ClassVar[bool] = False

    def __init__(self, K: SensitivityHull, epsilon: Exact) -> None:
        super().__init__(K, epsilon)
        if K.rank != 0:
            raise InvalidInput("K", f"a hull of rank {K.rank}", "a hull of rank 0, without different answers")

    @property
    def expected_error(self) -> float:
        return 0.0

    @property
    def log_normaliser(self) -> float:
        return 0.0

    def noise(self, m: int, bits: Bits | None = None) -> IntArray:
        """Zeros (m, d). No bits are read."""
        return np.zeros((m, self._hull.dimension), dtype=np.int64)

    def log_likelihood_lattice(self, z: IntArray, images: IntArray) -> FloatArray:
        """0 for the lattice answers (N, d) equal to z, -inf for others."""
        return np.where(np.all(np.asarray(images) == np.asarray(z), axis=1), 0.0, -np.inf)

    def loss(self, v: ArrayLike) -> float:
        """0 for v = 0, else inf."""
        return math.inf if np.any(vector(v, self._hull.dimension) != 0.0) else 0.0

    def loss_of_norm(self, norm: Loss) -> Loss:
        """0 for equal answers, else inf."""
        return math.inf if norm else Fraction(0)

    def loss_lattice(self, v: ArrayLike) -> Loss:
        """0 for v = 0, else inf."""
        return math.inf if np.any(np.asarray(v) != 0) else Fraction(0)
