"""Uniform real numbers, read 64 binary digits at a time and only as far as a decision needs (ADR 0002); levels.

A decision is a function of a uniform real U in [0, 1). After n digits with value u, U is known
to lie in [u, u+1) / 2**n; where all of that interval gives one answer, that is the answer, and otherwise
more digits are read. So every decision has exactly the law it would have had on the real number.

The level j = 0, 1, 2, ... of a proposal has a probability proportional to exp(-rate·j)·|Box_j|; there is no last one.
Box_j is the box of integer half-widths floor(r_j·w_i) around the body of radius r_j = stride·j + offset. The level is
the least j with U < C_j, C the cumulative probabilities. A float table decides it for nearly every U: its error is
bounded, and only a U inside the margin of a threshold is left open. Those are decided from integer bounds of C_j as
tight as U is known, over as many levels as that takes. The law is that of the infinite sum, not of a truncated one.

exp(-x) of a rational x lies between two integers as close as asked: rigorous, in integer arithmetic only.

Continuous floats are for simulation and for reproducing the papers, never for a release: the low-order bits of a float
sum say which float was added (docs/theory.md 5).

Proofs: docs/proofs/sampling.md, docs/proofs/knorm.md.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.types import Bits, FloatArray, IntArray, WordArray

_WORD_BITS = 64
#: How much finer than the digits of U a threshold is computed.
GUARD_BITS = 64


class WordReader:
    """Words one at a time: those already fetched first, then as many more as are asked for."""

    def __init__(self, bits: Bits, words: WordArray | None = None) -> None:
        self._bits = bits
        self._words = np.empty(0, dtype=np.uint64) if words is None else words
        self.position = 0

    def word(self) -> int:
        if self.position == len(self._words):
            self._words = self._bits.uint64(1)
            self.position = 0
        self.position += 1
        return int(self._words[self.position - 1])

    def left(self) -> WordArray:
        """The fetched words that have not been read."""
        return self._words[self.position :]


class LazyUniform:
    """A uniform real number in [0, 1), known to ``digits`` binary digits.

    It lies in [prefix, prefix + 1) / 2**digits.
    """

    def __init__(self, first_word: int, reader: WordReader) -> None:
        self.prefix = first_word
        self.digits = _WORD_BITS
        self._reader = reader

    def extend(self) -> None:
        """Read 64 more digits."""
        self.prefix = (self.prefix << _WORD_BITS) | self._reader.word()
        self.digits += _WORD_BITS

    def scaled(self, n: int) -> int:
        """floor(U·n): uniform on 0..n-1."""
        while True:
            least = (self.prefix * n) >> self.digits
            largest = ((self.prefix + 1) * n - 1) >> self.digits
            if least == largest:
                return least
            self.extend()

    def below_exp(self, x: Fraction) -> bool:
        """True if U < exp(-x), which has probability exactly exp(-x), for rational x >= 0."""
        while True:
            low, high = exp_bracket(x, self.digits + GUARD_BITS)
            if (self.prefix + 1) << GUARD_BITS <= low:
                return True
            if self.prefix << GUARD_BITS >= high:
                return False
            self.extend()


def exp_bracket(x: Fraction, bits: int) -> tuple[int, int]:
    """Integers (lo, hi) with lo / 2**bits <= exp(-x) <= hi / 2**bits and hi - lo <= 2, for rational x >= 0.

    exp(-x) = exp(-x / 2**s)**(2**s) with x / 2**s <= 1/2: the alternating series brackets the inner value by
    two partial sums, and every squaring is rounded outward.
    """
    if x < 0:
        raise ValueError("exp_bracket is for x >= 0")
    if x == 0:
        return 1 << bits, 1 << bits
    if x >= bits + 1:
        return 0, 1  # exp(-x) < 2**-x
    halvings = max(0, int(x).bit_length() + 1)
    scale = bits + 2 * halvings + 16
    low, high = _series(x / (1 << halvings), scale)
    for _ in range(halvings):
        low, high = _squares(low, high, scale)
    drop = scale - bits
    return low >> drop, -(-high >> drop)


def _squares(low: int, high: int, scale: int) -> tuple[int, int]:
    """The squares of two numbers over 2**scale, the first rounded down and the second up."""
    return (low * low) >> scale, -((-high * high) >> scale)


def _series(x: Fraction, scale: int) -> tuple[int, int]:
    """exp(-x) for 0 < x <= 1/2 between integers over 2**scale: sums of the alternating series, rounded outward."""
    low_sum = high_sum = low_term = high_term = 1 << scale
    n = 0
    while high_term > 0:
        n += 1
        low_term = low_term * x.numerator // (x.denominator * n)
        high_term = -(-high_term * x.numerator // (x.denominator * n))
        if high_term == 1:
            break
        if n % 2:
            low_sum -= high_term
            high_sum -= low_term
        else:
            low_sum += low_term
            high_sum += high_term
    # What is left out alternates and shrinks, so it is at most its first term, which is at most 1.
    return low_sum - 1, min(high_sum + 1, 1 << scale)


def unit_floats(bits: Bits, n: int) -> FloatArray:
    """n floats uniform on the midpoints of 2**53 equal parts of (0, 1)."""
    top = (bits.uint64(n) >> np.uint64(11)).astype(np.float64)
    return np.asarray((top + 0.5) * 2.0**-53)


def exponentials(bits: Bits, n: int) -> FloatArray:
    """n floats of the exponential law of mean 1."""
    return np.asarray(-np.log(unit_floats(bits, n)))


def choices(bits: Bits, weights: FloatArray, n: int) -> IntArray:
    """n indices with probability proportional to ``weights``."""
    cumulative = np.cumsum(weights) / np.sum(weights)
    chosen = np.searchsorted(cumulative, unit_floats(bits, n), side="right")
    return np.minimum(chosen, len(weights) - 1).astype(np.int64)


#: Widths and offset are rounded up to short binary fractions: a box may be larger than the body, never
#: smaller.
WIDTH_BITS = 16
OFFSET_BITS = 12
#: The float table ends where less than about this share of the mass is left.
TAIL = 2.0**-50


@dataclass(frozen=True)
class LevelTable:
    """Float bounds of the cumulative probabilities of the first L levels, and their boxes.

    ``low`` (L,) <= C_j <= ``high`` (L,); ``half_widths`` (L, k), at most 2**62, from where on nobody draws by
    them.
    """

    low: FloatArray
    high: FloatArray
    half_widths: IntArray


class Levels:
    """The law of the level for one body.

    ``widths``: bounds on |y_i| over the body. ``rate`` > 0, per level. ``stride`` >= 1 and ``offset`` in [0,
    1): r_j.
    """

    def __init__(self, widths: Sequence[Fraction], rate: Fraction, stride: int, offset: Fraction) -> None:
        self.rate = rate
        self._stride = stride
        self._offset = _rounded_up(offset, OFFSET_BITS)
        self._shifts = [_shift(w) for w in widths]
        self._widths = [_rounded_up(w, s) for w, s in zip(widths, self._shifts, strict=True)]
        self._sums: dict[int, _Sums] = {}
        self._float_rate = float(rate)

    def half_widths(self, level: int) -> tuple[int, ...]:
        """Half-widths of Box_level."""
        radius = ((self._stride * level) << OFFSET_BITS) + self._offset
        return tuple((radius * w) >> (OFFSET_BITS + s) for w, s in zip(self._widths, self._shifts, strict=True))

    def box_size(self, level: int) -> int:
        """|Box_level|, the number of its lattice points."""
        return math.prod(2 * h + 1 for h in self.half_widths(level))

    def choose(self, u: LazyUniform) -> int:
        """The level that U falls on, whatever number of its digits that takes."""
        while True:
            level = self._sums_for(u.digits).find(u.prefix)
            if level is not None:
                return level
            u.extend()

    @cached_property
    def table(self) -> LevelTable:
        """The float table; its margins are derived in ADR 0002."""
        if max(self._widths, default=0) < 2**61 and max(self._shifts, default=0) < 2 * WIDTH_BITS:
            widths = np.array([self._widths, self._shifts], dtype=np.int64)
            rest = self._offset, self._stride, OFFSET_BITS, self._float_rate, TAIL
            table = LevelTable(*_kernels.lattice.level_table(widths, *rest))
            if len(table.low):
                return table
        length, log_tail = _kernels.lattice.table_length(*self._real_boxes, self._float_rate, TAIL)
        boxes = np.array([self.half_widths(level) for level in range(length)], dtype=object)
        low, high = _kernels.lattice.level_bounds(boxes.astype(np.float64), self._float_rate, log_tail)
        return LevelTable(low, high, np.minimum(boxes, 2**62).astype(np.int64))

    @cached_property
    def _real_boxes(self) -> tuple[FloatArray, float, float]:
        """Half-widths per radius (k,), stride and offset: all that a real box takes."""
        widths = np.array([w / 2**s for w, s in zip(self._widths, self._shifts, strict=True)])
        return widths, float(self._stride), self._offset / 2**OFFSET_BITS

    def log_tail(self, level: int) -> float:
        """log of a bound on the mass of this level and all above."""
        return float(_kernels.lattice.log_tail(level, *self._real_boxes, self._float_rate))

    def _sums_for(self, digits: int) -> _Sums:
        if digits not in self._sums:
            self._sums[digits] = _Sums.of(self, digits)
        return self._sums[digits]


@dataclass(frozen=True)
class _Sums:
    """Integer bounds, over a common denominator, of the partial sums of exp(-rate·j)|Box_j| and of the whole sum."""

    digits: int
    low: list[int]
    high: list[int]
    total_low: int
    total_high: int

    @classmethod
    def of(cls, levels: Levels, digits: int) -> _Sums:
        wanted = digits + GUARD_BITS
        length = _length_for(levels, wanted)
        scale = wanted + levels.box_size(length).bit_length() + 2 * length.bit_length() + 8
        factor_low, factor_high = exp_bracket(levels.rate, scale)
        power_low = power_high = 1 << scale
        low, high = [], []
        sum_low = sum_high = 0
        for level in range(length):
            size = levels.box_size(level)
            sum_low += power_low * size
            sum_high += power_high * size
            low.append(sum_low)
            high.append(sum_high)
            power_low = (power_low * factor_low) >> scale
            power_high = -((-power_high * factor_high) >> scale)
        tail = _tail_bound(levels, length, Fraction(factor_high, 1 << scale)) * power_high
        return cls(digits, low, high, sum_low, sum_high + math.ceil(tail))

    def find(self, prefix: int) -> int | None:
        """The level of every U in [prefix, prefix + 1) / 2**digits, or None where they have several."""
        enough = -(-(prefix + 1) * self.total_high >> self.digits)
        level = bisect_left(self.low, enough)
        if level == len(self.low):
            return None
        if level and (prefix * self.total_low) >> self.digits < self.high[level - 1]:
            return None
        return level


def _length_for(levels: Levels, bits: int) -> int:
    """Levels until the bound on the rest is below 2**-bits."""
    length = 1 + math.ceil(bits * math.log(2) / float(levels.rate))
    while levels.log_tail(length) > -bits * math.log(2):
        length += 1 + length // 4
    return length


def _tail_bound(levels: Levels, level: int, factor: Fraction) -> Fraction:
    """sum over j >= level of factor**(j - level)·|Box_j|, bounded exactly by a geometric series."""
    radius = levels._stride * level + Fraction(levels._offset, 2**OFFSET_BITS)
    widths = [Fraction(w, 2**s) for w, s in zip(levels._widths, levels._shifts, strict=True)]
    here = math.prod((2 * radius * w + 1 for w in widths), start=Fraction(1))
    following = math.prod((2 * (radius + levels._stride) * w + 1 for w in widths), start=Fraction(1))
    ratio = factor * following / here
    if ratio >= 1:
        raise ArithmeticError("the level sum was cut before its terms shrink")
    return here / (1 - ratio)


def _rounded_up(number: Fraction, bits: int) -> int:
    """The least whole number of 2**-bits that is at least a number >= 0."""
    above, below = number.as_integer_ratio()
    return -((-above << bits) // below)


def _shift(width: Fraction) -> int:
    """Binary digits after the point that keep WIDTH_BITS of a width."""
    above, below = width.as_integer_ratio()
    return max(0, WIDTH_BITS - above.bit_length() + below.bit_length())
