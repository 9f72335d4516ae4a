"""Brackets of exp(-x), and decisions that read as many digits of U as they need and no more.

Floats from words, at the ends of what words can be: nothing leaves its range.

Claim. Whatever the words, floats are above 0 and at most 1, exponentials are finite and not negative, and a choice is
one of those given. The word of all ones is rounded to 1 itself, which no cumulative weight is above: without a last
bound the choice would be one too many. It happens once in 2**53 words, so only crafted words show it.
"""

from __future__ import annotations

import math
from decimal import Decimal, getcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.samplers.uniform import (
    LazyUniform,
    WordReader,
    _series,
    _squares,
    choices,
    exp_bracket,
    exponentials,
    unit_floats,
)


class GivenWords:
    """Bits that are a given list of words; asking for more is an error."""

    def __init__(self, words):
        self.words = list(words)
        self.served = 0

    def uint64(self, n):
        assert self.served + n <= len(self.words), "more words were read than the decision needs"
        self.served += n
        return np.array(self.words[self.served - n : self.served], dtype=np.uint64)


def lazy(words):
    bits = GivenWords(words)
    reader = WordReader(bits)
    return LazyUniform(reader.word(), reader), bits


def decimal_exp(x: Fraction, digits: int) -> Fraction:
    getcontext().prec = digits
    return Fraction((Decimal(-x.numerator) / Decimal(x.denominator)).exp())


@given(st.fractions(0, 3000, max_denominator=10**6), st.integers(1, 700))
def test_exp_bracket_holds_and_is_tight(x, bits):
    low, high = exp_bracket(x, bits)
    true = decimal_exp(x, 240) * 2**bits
    slack = Fraction(1, 10**20)  # of the decimal's own rounding
    assert low <= true + slack and true - slack <= high
    assert 0 <= low <= high <= 2**bits and high - low <= 2


@settings(max_examples=200)
@given(st.fractions(Fraction(1, 10**6), Fraction(1, 2), max_denominator=10**6), st.integers(8, 200))
def test_partial_sums_bracket_and_not_by_luck(x, scale):
    """Before anything is rounded away: each bound on its own side, by a few units at most."""
    low, high = _series(x, scale)
    true = decimal_exp(x, 120) * 2**scale
    assert low <= true + Fraction(1, 10**40) and true - Fraction(1, 10**40) <= high
    assert high - low <= 4 + scale


def test_sums_of_many_roundings_stay_on_their_side():
    for numerator in range(1, 200):
        x = Fraction(numerator, 401)
        for scale in (3, 4, 5, 6, 7, 9, 12):
            low, high = _series(x, scale)
            assert low <= decimal_exp(x, 50) * 2**scale <= high


@given(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(1, 40))
def test_squares_are_rounded_outward(low, high, scale):
    down, up = _squares(low, high, scale)
    assert down == math.floor(Fraction(low * low, 2**scale)) and up == math.ceil(Fraction(high * high, 2**scale))


def test_exp_bracket_at_its_ends():
    assert exp_bracket(Fraction(0), 100) == (2**100, 2**100)
    low, high = exp_bracket(Fraction(1, 2**200), 100)
    assert low >= 2**100 - 2 and high == 2**100
    assert exp_bracket(Fraction(10**9), 64) == (0, 1)
    with pytest.raises(ValueError):
        exp_bracket(Fraction(-1), 64)


words = st.integers(0, 2**64 - 1)


@given(st.lists(words, min_size=6, max_size=6), st.integers(1, 2**90))
def test_scaled_is_the_floor_of_u_times_n(expansion, n):
    u, _ = lazy(expansion)
    whole = sum(w << (64 * (5 - i)) for i, w in enumerate(expansion))
    assert u.scaled(n) == (whole * n) >> 384


def test_scaled_reads_on_exactly_where_the_first_word_leaves_it_open():
    third = 2**64 // 3  # 0.0101..: U = 1/3 - tiny or + tiny
    u, bits = lazy([third, 0])
    assert u.scaled(3) == 0 and bits.served == 2
    u, bits = lazy([third, 2**64 - 1])
    assert u.scaled(3) == 1 and bits.served == 2
    u, bits = lazy([third, third, third, 2**64 - 1])
    assert u.scaled(3) == 1 and bits.served == 4
    u, bits = lazy([third - 1])
    assert u.scaled(3) == 0
    u, bits = lazy([2**64 - 1])
    assert u.scaled(2**63) == 2**63 - 1  # a power of two never reads on


def test_scaled_is_uniform_over_all_first_bytes():
    """Over 65,536 evenly spread U, each of 5 outcomes comes equally often."""
    counts = np.zeros(5, dtype=int)
    for byte in range(256):
        for following in range(0, 256, 1):
            u, _ = lazy([(byte << 56) | (following << 48), 2**63])
            counts[u.scaled(5)] += 1
    assert counts.sum() == 65536 and counts.max() - counts.min() <= 1


@pytest.mark.parametrize("x", [Fraction(1), Fraction(1, 3), Fraction(1, 10**12), Fraction(40), Fraction(7, 2)])
def test_below_exp_follows_the_digits_of_its_threshold(x):
    digits = exp_bracket(x, 640)[0]
    own = [(digits >> (64 * (9 - i))) & (2**64 - 1) for i in range(10)]
    for depth in (1, 2, 4):
        head, at = own[:depth], own[depth]
        u, bits = lazy([*head, at - 1])
        assert u.below_exp(x) is True and bits.served == depth + 1
        u, bits = lazy([*head, at + 1])
        assert u.below_exp(x) is False and bits.served == depth + 1
    u, bits = lazy([own[0] - 1])
    assert u.below_exp(x) is True
    u, bits = lazy([own[0] + 1])
    assert u.below_exp(x) is False


def test_below_exp_of_zero_is_certain_and_of_much_is_nearly_never():
    u, _ = lazy([2**64 - 1])
    assert u.below_exp(Fraction(0)) is True
    u, _ = lazy([1])
    assert u.below_exp(Fraction(1000)) is False
    u, bits = lazy([0] * 23 + [1])
    assert u.below_exp(Fraction(1000)) is True and bits.served == 23  # exp(-1000) = 2**-1442.7
    assert math.isclose(1000 / math.log(2), 1442.695, rel_tol=1e-6)


class Words:
    """The same word again and again."""

    def __init__(self, word: int) -> None:
        self.word = word

    def uint64(self, n: int):
        return np.full(n, self.word, dtype=np.uint64)


@pytest.mark.parametrize("word", [0, 1, 2**11, 2**63, 2**64 - 2**11, 2**64 - 1])
def test_ends_stay_in_range(word):
    assert 0 < unit_floats(Words(word), 1)[0] <= 1
    assert 0 <= exponentials(Words(word), 1)[0] < 40
    for weights in ([1.0], [0.1] * 10, [1e-300, 1.0], [3.0, 2.0, 1e-9]):
        assert choices(Words(word), np.array(weights), 3).tolist() in [[k] * 3 for k in range(len(weights))]


def test_the_ends_choose_the_ends():
    weights = np.array([0.1] * 10)
    assert choices(Words(0), weights, 1).tolist() == [0]
    assert choices(Words(2**64 - 1), weights, 1).tolist() == [9]
