"""Exact noise on the lattice points of a symmetric body, by refusal from boxes (ADR 0002).

Words. An attempt reads k + 1 words, or k + 2 where a last acceptance may refuse: [level, x_1 .. x_k, last]. A
decision that its word leaves open reads more words from right after the attempt's own, in the order of the
decisions; a decision that is not reached reads none. Attempts follow each other in one stream, and no word is
fetched that will not be read. So ``draw(m)`` equals m calls of ``draw(1)`` and the plain path, word by word,
from the same bits.

Noise for counts is here too: discrete Laplace and discrete Gaussian, with exactly the stated probabilities. The
noise of a count is an integer, so the sum has no low-order bits to tell which count it came from.

Proofs: docs/proofs/sampling.md, docs/proofs/discrete-noise.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

import numpy as np

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm._checks import exact_number
from dphmm.errors import InvalidInput
from dphmm.samplers.rows import Matrix, identity, outline, reduced_plane, reduced_rows
from dphmm.samplers.uniform import LazyUniform, Levels, WordReader
from dphmm.types import Bits, BoolArray, Exact, FloatArray, IntArray, WordArray

#: Noise is kept within ±2**62 per axis; add it with ``add_noise`` so that the bound is post-processing of the
#: sum.
NOISE_BOUND = 2**62
GUARD = 2.0**61
#: A staircase with a smaller ε takes several steps per level; K-norm levels are this fine.
_FINEST_RATE = Fraction(1, 8)
_MOST_ATTEMPTS_AT_ONCE = 2**16


@dataclass(frozen=True)
class LatticeBody:
    """A body {x : |normals·x| <= offsets} in reduced coordinates x (k,).

    With bounds on |x_i|, and the way back to the answer lattice.

    ``normals`` (m, k), ``offsets`` (m,) positive, ``widths`` (k,), ``embedding`` (d, k): lattice vector =
    embedding·x. Python integers, so nothing here overflows.
    """

    normals: tuple[tuple[int, ...], ...]
    offsets: tuple[int, ...]
    widths: tuple[Fraction, ...]
    embedding: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls,
        normals: IntArray,
        offsets: IntArray,
        vertices: IntArray | None,
        half_width: Callable[[Sequence[int]], Fraction],
        basis: IntArray,
    ) -> LatticeBody:
        """The body |normals·y| <= offsets (m, k), with certified ``half_width`` of any direction, and basis (d, k)."""
        planar = None if vertices is None else reduced_plane(normals, vertices)
        if planar is not None:
            turned, back, reach = planar
            rows, bounds = tuple(map(tuple, turned.tolist())), tuple(offsets.tolist())
            return cls(rows, bounds, tuple(map(Fraction, reach)), _product(basis.tolist(), back))
        change, inverse = reduced_rows(outline(normals, offsets, vertices))
        return cls(
            normals=_product(normals.tolist(), inverse),
            offsets=tuple(offsets.tolist()),
            widths=tuple(half_width(row) for row in change),
            embedding=_product(basis.tolist(), inverse),
        )

    @property
    def rank(self) -> int:
        return len(self.widths)

    @cached_property
    def rows(self) -> IntArray:
        """Normals and embedding (m + d, k), as Python integers where 64 bits do not hold them."""
        return np.array([*self.normals, *self.embedding])

    def scaled(self, factor: Fraction) -> LatticeBody:
        """factor·body."""
        above, below = factor.as_integer_ratio()
        return LatticeBody(
            tuple([tuple([a * below for a in row]) for row in self.normals]),
            tuple([b * above for b in self.offsets]),
            tuple(w * factor for w in self.widths),
            self.embedding,
        )

    def values(self, x: Sequence[int]) -> list[int]:
        """|normals·x|."""
        return [abs(sum(a * c for a, c in zip(row, x, strict=True))) for row in self.normals]


@dataclass(frozen=True)
class _Compiled:
    """The part of a sampler that 64 bits hold: its first levels."""

    low: FloatArray
    high: FloatArray
    half_widths: IntArray
    normals: IntArray
    offsets: IntArray
    allowances: IntArray
    stride: int
    kind: int
    rate: float
    embedding: IntArray


#: Bounds of an answer; as arrays, because NumPy takes longer for a Python integer than for the rest of one answer.
_LOWEST, _HIGHEST = np.array(-(2**61)), np.array(2**61)


class LatticeSampler:
    """Lattice points v with probability ∝ exp(-ε·E(v)), E graded (K-norm) or in steps (staircase).
    Immutable.
    """

    def __init__(
        self,
        body: LatticeBody,
        levels: Levels,
        stride: int,
        offset: Fraction,
        last: Fraction | None,
        graded: bool,
    ) -> None:
        self._body = body
        self._levels = levels
        self._stride = stride
        above, below = offset.as_integer_ratio()
        self._allowances = [above * b // below for b in body.offsets]
        self._last = last
        self._graded = graded

    @classmethod
    def staircase(cls, body: LatticeBody, epsilon: Fraction, offset: Fraction) -> LatticeSampler:
        """P(v) ∝ exp(-ε·ceil+(N(v) - offset)), 0 <= offset < 1. Small ε: several steps to a level."""
        stride = staircase_stride(epsilon)
        levels = Levels(body.widths, epsilon * stride, stride, offset)
        return cls(body, levels, stride, offset, epsilon if stride > 1 else None, graded=False)

    @classmethod
    def knorm(cls, body: LatticeBody, epsilon: Fraction) -> LatticeSampler:
        """P(v) ∝ exp(-ε·N(v)): levels of height h, a power of two with ε·h in (1/8, 1/4]."""
        height = knorm_height(epsilon)
        rate = epsilon * height
        scaled = body.scaled(height)
        return cls(scaled, Levels(scaled.widths, rate, 1, Fraction(0)), 1, Fraction(0), rate, graded=True)

    @property
    def dimension(self) -> int:
        return len(self._body.embedding)

    @property
    def words_per_attempt(self) -> int:
        return self._body.rank + 1 + (self._last is not None)

    def draw(self, m: int, bits: Bits) -> IntArray:
        """m independent noises (m, d), within ±2**62 per axis."""
        out = np.empty((m, self.dimension), dtype=np.int64)
        plan = self._compiled
        arrays = (plan.low, plan.high, plan.half_widths, plan.normals, plan.offsets, plan.allowances)
        words = np.empty(0, dtype=np.uint64)
        done = 0
        while done < m:
            words = self._fetch(words, m - done, bits)
            used, written, left_open = _kernels.lattice.draw(
                words, *arrays, plan.stride, plan.kind, plan.rate, plan.embedding, out[done:]
            )
            done += written
            words = words[used:]
            if left_open:
                reader = WordReader(bits, words)
                noise = self.attempt(reader)
                words = reader.left()
                if noise is not None:
                    out[done] = noise
                    done += 1
        return out

    def draw_plainly(self, m: int, bits: Bits) -> IntArray:
        """The same as ``draw``, attempt by attempt in Python integers: the definition, and the twin in tests."""
        reader = WordReader(bits)
        noises: list[list[int]] = []
        while len(noises) < m:
            noise = self.attempt(reader)
            if noise is not None:
                noises.append(noise)
        return np.array(noises, dtype=np.int64).reshape(m, self.dimension)

    def attempt(self, reader: WordReader) -> list[int] | None:
        """One attempt, exactly: a noise (d,), or None when refused."""
        words = [reader.word() for _ in range(self.words_per_attempt)]
        level = self._levels.choose(LazyUniform(words[0], reader))
        x = [
            LazyUniform(word, reader).scaled(2 * half + 1) - half
            for word, half in zip(words[1:], self._levels.half_widths(level), strict=False)
        ]
        values = self._body.values(x)
        for value, offset, allowance in zip(values, self._body.offsets, self._allowances, strict=True):
            if value > self._stride * level * offset + allowance:
                return None
        if self._last is not None and not LazyUniform(words[-1], reader).below_exp(self._last_exponent(values)):
            return None
        lattice = (sum(e * c for e, c in zip(row, x, strict=True)) for row in self._body.embedding)
        return [max(-NOISE_BOUND, min(NOISE_BOUND, component)) for component in lattice]

    def _last_exponent(self, values: Sequence[int]) -> Fraction:
        """x >= 0 of the last acceptance exp(-x): the factor from the level's weight to the law asked for."""
        assert self._last is not None
        if self._graded:
            norm = max(Fraction(v, b) for v, b in zip(values, self._body.offsets, strict=True))
            return self._last * (1 + norm - math.ceil(norm))
        steps = max(v // b + (v % b > a) for v, b, a in zip(values, self._body.offsets, self._allowances, strict=True))
        level = -(-steps // self._stride)
        return self._last * (steps - self._stride * level + self._stride - 1)

    def _fetch(self, words: np.ndarray, missing: int, bits: Bits) -> np.ndarray:
        """Words for as many attempts as are sure to be made: every noise that is missing takes at least one."""
        wanted = min(missing, _MOST_ATTEMPTS_AT_ONCE) * self.words_per_attempt - len(words)
        if wanted <= 0:
            return words
        fresh = bits.uint64(wanted)
        return np.concatenate([words, fresh]) if len(words) else fresh

    @cached_property
    def _compiled(self) -> _Compiled:
        table = self._levels.table
        offsets, m = self._body.offsets, len(self._body.offsets)
        rows = self._body.rows
        farthest = self._stride * float(max(offsets))
        first = _kernels.lattice.levels_below(GUARD, table.half_widths, rows.astype(np.float64), farthest)
        # Where no level fits, nothing reads the rows.
        rows = rows if first else np.zeros(rows.shape, dtype=np.int64)
        decides = _kernels.lattice
        kind = decides.NOTHING if self._last is None else decides.GRADED if self._graded else decides.STEPS
        return _Compiled(
            low=table.low[:first],
            high=table.high[:first],
            half_widths=table.half_widths[:first],
            normals=rows[:m],
            offsets=_int64(offsets, first),
            allowances=_int64(self._allowances, first),
            stride=self._stride if first else 1,
            kind=kind,
            rate=float(self._last or 0),
            embedding=rows[m:],
        )


def staircase_stride(epsilon: Fraction) -> int:
    """The number of staircase steps in one level of its proposals."""
    stride = 1
    while epsilon * stride <= _FINEST_RATE:
        stride *= 2
    return stride


def knorm_height(epsilon: Fraction) -> Fraction:
    """The height of a level of the proposals of K-norm noise: a power of two."""
    height = Fraction(1)
    while epsilon * height <= _FINEST_RATE:
        height *= 2
    while epsilon * height > 2 * _FINEST_RATE:
        height /= 2
    return height


def add_noise(images: IntArray, noise: IntArray) -> IntArray:
    """images + noise (m, d), kept within ±2**61 per axis.

    The bound makes the kept noise's own bound harmless: |images| <= 2**53, so any noise at ±2**62 would have
    ended at ±2**61 whatever the image, as would the noise before it was kept. Probability below exp(-2**10)
    always.
    """
    return np.asarray(np.minimum(np.maximum(images + noise, _LOWEST), _HIGHEST))


def _product(left: Matrix, right: Matrix) -> tuple[tuple[int, ...], ...]:
    if right == identity(len(right)):
        return tuple(map(tuple, left))
    columns = list(zip(*right, strict=True))
    return tuple(tuple([sum(map(mul, row, column)) for column in columns]) for row in left)


def _int64(values: Sequence[int], first: int) -> IntArray:
    """As 64-bit integers; zeros where no level fits, for then nothing reads them."""
    return np.array(values if first else [0] * len(values), dtype=np.int64)


#: Largest scale of the noise in steps: kept noise (2**62) is then further out than 2**12 times the scale.
LARGEST_SCALE = 2**50
#: Smallest: below, the noise is 0 but for one draw in e**1024.
SMALLEST_SCALE = Fraction(1, 2**10)
_ULP = 2.0**-53
#: Room for the rounding of an exponent and of exp, of which a few hundred times 2**-53 is needed.
_MARGIN = 2.0**-40


class LaplaceSampler:
    """Integers z with P(z) = (1 - q)/(1 + q)·q**|z|, q = exp(-1/scale), for a rational scale. Immutable."""

    def __init__(self, scale: Exact) -> None:
        self.scale = _between(exact_number(scale, "scale"), "scale", SMALLEST_SCALE, Fraction(LARGEST_SCALE))
        # |z| / scale = epsilon·N(z) on the interval ±width, with an epsilon the lattice sampler is proved for.
        width = math.ceil(self.scale)
        interval = LatticeBody(((1,),), (width,), (Fraction(width),), ((1,),))
        self._sampler = LatticeSampler.knorm(interval, width / self.scale)

    @property
    def deviation(self) -> float:
        """The standard deviation, sqrt(2q)/(1 - q)."""
        rate = float(1 / self.scale)
        return math.sqrt(2.0 * math.exp(-rate)) / -math.expm1(-rate)

    def draw(self, m: int, bits: Bits) -> IntArray:
        """m independent integers (m,), within ±2**62; add them with ``add_noise``."""
        return self._sampler.draw(m, bits)[:, 0]


class DiscreteGaussian:
    """Integers z with P(z) ∝ exp(-z²/(2·variance)), for a rational variance. Immutable.

    By refusal from a discrete Laplace of scale t = floor(sigma) + 1: z is kept with probability
    exp(-(|z| - variance/t)²/(2·variance)) (Canonne, Kamath and Steinke 2020, Algorithm 3).
    """

    def __init__(self, variance: Exact) -> None:
        least, most = SMALLEST_SCALE**2, Fraction(LARGEST_SCALE) ** 2 / 4
        self.variance = _between(exact_number(variance, "variance"), "variance", least, most)
        self._t = math.isqrt(math.floor(self.variance)) + 1
        self._proposals = LaplaceSampler(Fraction(self._t))

    @property
    def deviation(self) -> float:
        """The square root of ``variance``; the true standard deviation is never larger."""
        return math.sqrt(self.variance)

    def draw(self, m: int, bits: Bits) -> IntArray:
        """m independent integers (m,), within ±2**62; add them with ``add_noise``."""
        parts = [np.empty(0, dtype=np.int64)]
        missing = m
        while missing:
            proposed = self._proposals.draw(missing, bits)
            parts.append(proposed[self._kept(proposed, bits)])
            missing -= len(parts[-1])
        return np.concatenate(parts)

    def _kept(self, proposed: IntArray, bits: Bits) -> BoolArray:
        """A mask of the proposals that are kept: one word decides each, and later words where one leaves it open."""
        words = bits.uint64(len(proposed))
        accepted, open_ = self._certain(words, proposed)
        reader = WordReader(bits)
        for i in np.flatnonzero(open_).tolist():
            accepted[i] = LazyUniform(int(words[i]), reader).below_exp(self.exponent(int(proposed[i])))
        return accepted

    def exponent(self, z: int) -> Fraction:
        """x of the acceptance exp(-x) of a proposal."""
        distance = abs(z) - self.variance / self._t
        return distance * distance / (2 * self.variance)

    def _certain(self, words: WordArray, proposed: IntArray) -> tuple[BoolArray, BoolArray]:
        """(surely kept, left open) by floats."""
        low = (words >> np.uint64(11)).astype(np.float64) * _ULP
        size = np.abs(proposed).astype(np.float64)
        chance = np.exp(-self._exponents(size))
        accepted = low + _ULP <= chance - _MARGIN
        return accepted, ~accepted & (low < chance + _MARGIN)

    def _exponents(self, size: FloatArray) -> FloatArray:
        distance = (size - float(self.variance / self._t)) / self.deviation
        return np.asarray(0.5 * distance * distance)


def _between(value: Fraction, field: str, least: Fraction, most: Fraction) -> Fraction:
    if not least <= value <= most:
        raise InvalidInput(field, value, f"a number from {float(least):g} to {float(most):g}")
    return value
