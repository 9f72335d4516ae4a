"""The doubt that is left is never overstated, and what leaves next to none is called no useful limit.

It would fail for a denominator that is rounded down (1 in 8 at epsilon 2, where 1 in 8.39 is left), for a bound of
other odds, and for a useful limit below 1 in 1,000.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import pytest

from dphmm.statement.doubt import LEAST_USEFUL, doubt
from dphmm.statement.sentences import doubt_words


def odds(epsilon):
    """1 + exp(epsilon) to 100 digits: 1 in so many doubt is left."""
    with localcontext() as context:
        context.prec = 100
        return 1 + (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp()


@pytest.mark.parametrize("hundredths", range(1, 700, 3))
def test_the_denominator_is_the_least_whole_number_that_is_no_smaller(hundredths):
    epsilon = Fraction(hundredths, 100)
    left, told = odds(epsilon), doubt(epsilon)
    if told is None:
        assert left > LEAST_USEFUL - 1
    else:
        assert told - 1 < left <= told <= LEAST_USEFUL


def test_the_examples_of_the_page():
    assert doubt(Fraction(2)) == 9, "1 in 8 would say more than is true"
    assert doubt(Fraction(0)) == 2, "even odds stay even"
    assert doubt(Fraction(29, 10)) == 20 and doubt(Fraction(3)) == 22
    assert doubt_words(doubt(Fraction(1))) == "at least 1 in 4 doubt"
    assert doubt_words(doubt(Fraction(10))) == doubt_words(doubt(Fraction(10**9))) == "no useful limit"


def test_just_below_1_in_1000_is_no_useful_limit():
    most = max(Fraction(k, 10_000) for k in range(68_900, 69_200) if doubt(Fraction(k, 10_000)) is not None)
    assert odds(most) <= LEAST_USEFUL < odds(most + Fraction(1, 5_000))
