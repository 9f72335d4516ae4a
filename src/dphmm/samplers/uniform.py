"""Uniform real numbers, read 64 binary digits at a time and only as far as a decision needs (ADR 0002).

A decision is a function of a uniform real U in [0, 1). What is known of U after n digits with value u is that
it lies in [u, u+1) / 2**n; where all of that interval gives one answer, that is the answer, and otherwise
more digits are read. So every decision has exactly the law it would have had on the real number.

exp(-x) of a rational x lies between two integers as close as asked: rigorous, in integer arithmetic only.

Continuous floats are for simulation and for reproducing the papers, never for a release: the low-order bits of a float
sum say which float was added (docs/theory.md 5).

Proofs: docs/proofs/sampling.md, docs/proofs/knorm.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

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
        """Whether U < exp(-x): True with probability exactly exp(-x), for rational x >= 0."""
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
