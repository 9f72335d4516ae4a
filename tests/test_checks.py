"""Numbers that users pass are read exactly as they print, or refused in one line that names the field."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, seed
from hypothesis import strategies as st

from dphmm._checks import (
    EPSILON_MAX,
    EPSILON_MIN,
    LONGEST_NUMBER,
    exact_epsilon,
    exact_number,
    finite_number,
    one_of,
    state_mask,
    stated_epsilon,
    whole,
    written_fraction,
)
from dphmm.errors import InvalidInput


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (0.1, Fraction(1, 10)),
        (np.float32(0.25), Fraction(1, 4)),
        ("0.25", Fraction(1, 4)),
        ("1e-3", Fraction(1, 1000)),
        (Decimal("0.3"), Fraction(3, 10)),
        (np.int64(7), Fraction(7)),
        (Fraction(1, 3), Fraction(1, 3)),
    ],
)
def test_a_number_is_what_it_prints(value, exact):
    assert exact_number(value, "epsilon") == exact


NO_NUMBERS = [True, np.True_, math.nan, -math.inf, Decimal("NaN"), None, "", "1/3", "0x1", "1_000", "١", "nan", [1], 1j]


@pytest.mark.parametrize("value", [*NO_NUMBERS, "1" * (LONGEST_NUMBER + 1), "1e99999"], ids=repr)
def test_what_is_no_plain_number_is_refused_by_the_name_of_its_field(value):
    with pytest.raises(InvalidInput, match=r"^--cap: got .*; expected ") as refused:
        exact_number(value, "--cap")
    assert refused.value.field == "--cap"


@seed(1)
@given(st.fractions())
def test_fractions_come_back_as_they_were_written(fraction):
    assert written_fraction(str(fraction)) == fraction


@pytest.mark.parametrize("text", ["1e9", " 1", "1/-3", "1/", "+1", "1.5", "1/2/3"])
def test_no_other_text_is_a_written_fraction(text):
    with pytest.raises(ValueError, match="no fraction"):
        written_fraction(text)


def test_a_statement_may_have_the_share_of_a_step_as_epsilon():
    assert stated_epsilon("1/12") == Fraction(1, 12)
    assert [stated_epsilon(text) for text in ("0.5", "1/0", "a/b")] == ["0.5", "1/0", "a/b"]


def test_a_float_neither_becomes_infinite_nor_vanishes():
    assert finite_number("0.5", "x") == 0.5 and finite_number(0, "x") == 0.0
    for value in ("1e400", "-1e400", "1e-400"):
        with pytest.raises(InvalidInput, match="float64"):
            finite_number(value, "x")


def test_whole_numbers_have_both_ends():
    assert [whole(value, "n", 2, 4) for value in (2, np.int8(3), 4)] == [2, 3, 4]
    for value in (1, 5, 3.0, True, "3", None):
        with pytest.raises(InvalidInput, match="a whole number from 2 to 4"):
            whole(value, "n", 2, 4)


def test_both_ends_of_epsilon_are_accepted_and_nothing_beyond():
    assert (exact_epsilon(EPSILON_MIN), exact_epsilon(EPSILON_MAX)) == (EPSILON_MIN, EPSILON_MAX)
    beyond = (EPSILON_MIN * Fraction(2**40 - 1, 2**40), EPSILON_MAX + Fraction(1, 2**40), 0, -1)
    for value in beyond:
        with pytest.raises(InvalidInput, match=r"^epsilon: got "):
            exact_epsilon(value)


@pytest.mark.parametrize("states", [[3, 0, 3], np.array([0, 3], dtype=np.uint8), np.array([True, False, False, True])])
def test_states_are_a_mask_whatever_they_were_given_as(states):
    assert state_mask(states, 4).tolist() == [True, False, False, True]


def test_a_mask_is_a_copy_none_is_all_and_an_empty_list_is_none_of_them():
    mask = np.array([True, False])
    state_mask(mask, 2)[1] = True
    assert mask.tolist() == [True, False]
    assert state_mask(None, 2).all() and not state_mask([], 2).any()
    # Of two states [0, 1] can only be meant as both, and fewer numbers than states are no mask.
    assert state_mask([0, 1], 2).all() and state_mask([0, 1, 1], 4).tolist() == [True, True, False, False]


@pytest.mark.parametrize("states", [[-1], [4], [0.0], [[0]], [True], ["a"], [0, 1, 1, 0], [0, 0, 0, 0]], ids=repr)
def test_states_that_are_none_are_refused(states):
    with pytest.raises(InvalidInput, match=r"^constraint: got "):
        state_mask(states, 4)


def test_a_choice_is_one_of_its_names():
    assert one_of("before", ("before", "at"), "start") == "before"
    for value in ("Before", "", None, ["at"]):
        with pytest.raises(InvalidInput, match="one of before, at"):
            one_of(value, ("before", "at"), "start")
