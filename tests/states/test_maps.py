from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphmm.errors import InvalidInput
from dphmm.states import StateSpace, category_space, ordered_labels, parse_duration, parse_length, parse_speed


@pytest.mark.parametrize(
    ("parse", "written", "value"),
    [
        (parse_length, "340m", 340),
        (parse_length, "1km", 1000),
        (parse_length, "0.34km", 340),
        (parse_length, " 0.34 km ", 340),
        (parse_length, 340, 340),
        (parse_length, 0.1, Fraction(1, 10)),
        (parse_length, np.float64(2.5), Fraction(5, 2)),
        (parse_duration, "5min", 300),
        (parse_duration, "30s", 30),
        (parse_duration, "1h", 3600),
        (parse_duration, "1d", 86400),
        (parse_duration, "0.5min", 30),
        (parse_duration, 60, 60),
        (parse_speed, "150km/h", Fraction(125, 3)),
        (parse_speed, "40m/s", 40),
        (parse_speed, 40, 40),
    ],
)
def test_quantities_are_exact(parse, written, value):
    assert parse(written) == value


@pytest.mark.parametrize("parse", [parse_length, parse_duration, parse_speed])
@pytest.mark.parametrize(
    "written",
    [
        "",
        "-1m",
        "0",
        "1e3m",
        "1_000",
        "3 miles",
        "nan",
        0,
        True,
        None,
        float("nan"),
    ],
)
def test_other_quantities_are_refused(parse, written):
    with pytest.raises(InvalidInput):
        parse(written)


def test_a_duration_is_whole_seconds():
    with pytest.raises(InvalidInput, match="whole seconds"):
        parse_duration("0.5s")


def test_categories_are_ordinal_or_have_a_table():
    assert StateSpace.categories(["b", "a"]).lattice[:, 0].tolist() == [0, 1]
    space = category_space(["b", "a"], {"a": (1, 2), "b": (3, 4)})
    assert space.answers.tolist() == [[3, 4], [1, 2]] and space.index_of("a") == 1
    assert category_space(["b", "a"], [5, 7]).answers[:, 0].tolist() == [5, 7]


@pytest.mark.parametrize("answers", ["nominal", {"a": 1}, {"a": 1, "b": 2, "c": 3}, [1, 2, 3]])
def test_tables_must_match_the_names(answers):
    with pytest.raises(InvalidInput):
        category_space(["b", "a"], answers)


def test_labels_that_are_numbers_are_ordered_by_value():
    assert ordered_labels(["10", "9", "10", "-1", "2.5"]) == ("-1", "2.5", "9", "10")
    assert ordered_labels(["b", "10", "9"]) == ("10", "9", "b")
