"""Uniform real numbers, read 64 binary digits at a time and only as far as a decision needs (ADR 0002).

A decision is a function of a uniform real U in [0, 1). What is known of U after n digits with value u is that
it lies in [u, u+1) / 2**n; where all of that interval gives one answer, that is the answer, and otherwise
more digits are read. So every decision has exactly the law it would have had on the real number.

Proof: docs/proofs/sampling.md.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from dphmm.samplers.exponential import exp_bracket
from dphmm.types import Bits, WordArray

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
