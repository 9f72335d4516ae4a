"""The worth of a fit is said from public numbers: the same each time, more with more people, and in one line."""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.errors import InvalidInput
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private.worth import CHAIN, EVEN, HIDDEN, INDEPENDENT, START, expected_worth, worth_words


def test_it_is_a_function_of_public_numbers():
    asked = (4, 1.0, 12, 150, 2)
    assert expected_worth(*asked) == expected_worth(*asked)
    assert set(expected_worth(*asked)) == {EVEN, INDEPENDENT, CHAIN, HIDDEN}
    assert expected_worth(*asked)[EVEN] == pytest.approx(-np.log(4))


def test_more_people_and_a_larger_epsilon_are_worth_more():
    few, many = (expected_worth(5, 0.1, 10, people) for people in (20, 20_000))
    assert many[CHAIN] > few[CHAIN] + 0.1
    tight, wide = (expected_worth(4, epsilon, 10, 300, 2) for epsilon in (0.01, 10.0))
    assert wide[HIDDEN] > tight[HIDDEN]


def test_a_public_start_is_one_of_the_methods():
    start = Parameters(np.array([0.5, 0.5]), np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([[0.8, 0.2], [0.1, 0.9]]))
    found = expected_worth(2, 1.0, 10, 500, 2, start)
    assert set(found) == {EVEN, INDEPENDENT, CHAIN, START, HIDDEN}
    assert found[HIDDEN] > found[START] - 0.05


def test_the_line_names_what_is_better():
    assert worth_words({EVEN: -2.0, CHAIN: -1.0, HIDDEN: -1.5}).endswith("; chain is better here than the hidden model")
    assert "better" not in worth_words({EVEN: -2.0, CHAIN: -1.0})


def test_a_number_of_people_that_is_none_is_refused():
    with pytest.raises(InvalidInput, match="about: got 0"):
        expected_worth(3, 1.0, 5, 0)
