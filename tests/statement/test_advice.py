"""One rule says which settings are no advice: too strong an answer, the cell told, no limit.

It would fail for a doubt that is not that of even odds, a bound on the other side, a figure of another measure, and
where two commands have a rule each.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dphmm.statement.advice import LEAST_DOUBT, MOST_EPSILON, finds_state, not_advised

STRONG, CELL, ENDLESS = (
    "one answer leaves less than 1 in 20 doubt",
    "it tells where somebody is, to the cell",
    "nothing limits the sum of all answers",
)


@pytest.mark.parametrize("tenths", range(1, 100))
def test_an_answer_is_too_strong_where_the_odds_leave_less_than_1_in_20_doubt(tenths):
    epsilon = Fraction(tenths, 10)
    doubt = 1 / (1 + math.exp(epsilon))
    assert not_advised(epsilon) == ((STRONG,) if doubt < LEAST_DOUBT else ())
    assert (epsilon <= MOST_EPSILON) == (doubt >= LEAST_DOUBT), "the largest tenth that is advised"


def test_the_bound_is_the_logarithm_of_19():
    assert not_advised(Fraction(294, 100)) == () and not_advised(Fraction(295, 100)) == (STRONG,)


def test_figures_that_floats_cannot_exponentiate_are_too_strong():
    assert not_advised(Fraction(10**6)) == (STRONG,)


@pytest.mark.parametrize(
    ("error", "known", "finds"), [(110, 100, True), (110.1, 100, False), (0, 0, False), (50, 100, True)]
)
def test_a_cell_is_told_within_a_tenth_of_who_knows_it_and_where_states_are_no_places_none_is(error, known, finds):
    assert finds_state(error, known) == finds
    assert not_advised(1, error, known) == ((CELL,) if finds else ())


def test_all_reasons_are_told_and_a_limit_is_one():
    assert not_advised(3, 1, 1, limited=False) == (STRONG, CELL, ENDLESS)
    assert not_advised(1, limited=False) == (ENDLESS,)
