"""Numbers as people read them: a bound is rounded upwards, an error to the nearest.

It would fail for an error or an epsilon of another rounding.
"""

from __future__ import annotations

from fractions import Fraction

from dphmm.accounting.records import in_short
from dphmm.statement.sentences import epsilon_words, every_nth, off, wrapped_row
from dphmm.states.space import LABELS_WRONG


def test_errors_are_said_to_ten_metres_and_small_ones_to_two_digits() -> None:
    due = {
        (1028.4, "m"): "1,030 m",
        (404.0, "m"): "400 m",
        (104.9, "m"): "100 m",
        (99.6, "m"): "100 m",
        (42.4, "m"): "42 m",
        (9.96, "m"): "10 m",
        (4.31, "m"): "4.3 m",
        (0.86, "m"): "0.9 m",
        (0.0, "m"): "0 m",
        (9994.0, "m"): "9,990 m",
        (9996.0, "m"): "10.0 km",
        (12_345.0, "m"): "12.3 km",
        (0.12345, "answer units"): "0.123",
        (0.004, LABELS_WRONG): "less than 1 % wrong",
        (0.996, LABELS_WRONG): "more than 99 % wrong",
        (0.0, LABELS_WRONG): "0 % wrong",
        (1.0, LABELS_WRONG): "100 % wrong",
        (0.994, LABELS_WRONG): "99 % wrong",
    }
    assert {what: off(*what) for what in due} == due


def test_tiny_figures_are_said_to_be_small() -> None:
    assert [off(value, "answer units") for value in (3.04e-9, 0.0009, 0.001, 1.284, 1e-10)] == [
        "less than 0.001", "less than 0.001", "0.001", "1.28", "0",
    ]  # fmt: skip


def test_numbers_of_an_order_are_words() -> None:
    due = {2: "every second", 3: "every third", 10: "every tenth", 11: "every 11th", 12: "every 12th", 21: "every 21st",
           22: "every 22nd", 113: "every 113th", 1003: "every 1,003rd"}  # fmt: skip
    assert {number: every_nth(number) for number in due} == due


def test_an_epsilon_is_exact_where_that_is_short() -> None:
    """Three of a third that is rounded up would pass their total; what has no short fraction stays rounded up."""
    due = {Fraction(10, 3): "10/3", Fraction(3, 2): "1.5", Fraction(2): "2", Fraction(20, 13): "20/13"}
    assert {epsilon: epsilon_words(epsilon) for epsilon in due} == due
    assert epsilon_words(Fraction(10**7, 3 * 10**6 + 1)) == in_short(Fraction(10**7, 3 * 10**6 + 1))


def test_lines_of_a_terminal_are_no_longer_than_it() -> None:
    rows = wrapped_row("epsilon sum", "a word " * 40, "another sentence")
    assert rows[0][0] == "epsilon sum" and {label for label, _ in rows[1:]} == {" "}
    assert all(len(line) <= 64 for _, line in rows) and rows[-1][1] == "another sentence"
