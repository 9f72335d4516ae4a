"""Where rows that are left out stand in their files, and which column is what.

Claims: rows are told by the number that they have in their own file, whatever was left out before them and in which
part they came; columns are found by name unless they are named.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.states.space import StateSpace
from dphmm.storage.cells import Places, Roles, column_roles, delimiter_within
from dphmm.storage.layouts import Layout

#: Of each file its rows: read and kept, read and rejected, or in no part.
FILES = st.lists(st.lists(st.sampled_from(["kept", "rejected", "ragged"]), max_size=6), min_size=1, max_size=5)


@given(FILES)
def test_rows_that_are_left_out_have_the_numbers_that_they_have_in_their_files(files):
    places, read, rejected, expected = Places(), 0, [], []
    for number, rows in enumerate(files):
        for row, kind in enumerate(rows, start=1):
            if kind == "rejected":
                rejected.append(read)
            if kind != "kept":
                expected.append((f"f{number}", row, "ragged_row" if kind == "ragged" else "missing_state"))
            read += kind != "ragged"
        ragged = {row: "ragged_row" for row, kind in enumerate(rows, start=1) if kind == "ragged"}
        places.end_of_file(f"f{number}", read, ragged)
    reasons = ["missing_state"] * len(rejected)
    several = places.rejected(np.array(rejected, dtype=np.int64), reasons, several=True)
    assert [tuple(row.values()) for row in several.to_pylist()] == expected
    assert places.lost == sum(row[2] == "ragged_row" for row in expected)
    alone = places.rejected(np.array(rejected, dtype=np.int64), reasons, several=False)
    assert alone.column_names == ["row", "reason"] and len(alone) == len(expected)


def test_a_row_that_is_left_out_for_two_reasons_is_told_with_both_and_each_once():
    places = Places()
    places.end_of_file("f", 2, {})
    found = places.rejected(np.array([1, 1, 1]), ["invalid_time", "missing_state", "invalid_time"], several=False)
    assert [tuple(row.values()) for row in found.to_pylist()] == [(2, "invalid_time"), (2, "missing_state")]


NAMED = [
    (("user", "t", "lat", "lng"), {}, Roles("user", "t", None, None, "lat", "lng")),
    (("user", "t", "step", "lat", "lon", "state"), {}, Roles("user", "t", "step", None, "lat", "lon", "state")),
    (("user", "order", "state", "trip"), {}, Roles("user", None, None, "order", None, None, "state", "trip")),
    (("user", "t", "order", "state"), {}, Roles("user", "t", state="state")),
    (("who", "when", "state"), {"user": "who", "time": "when"}, Roles("who", "when", state="state")),
    (("user", "t", "lat", "lon", "room"), {"state": "room"}, Roles("user", "t", state="room")),
    (("user", "t", "k", "state"), {"order": "k"}, Roles("user", None, None, "k", state="state")),
]


@pytest.mark.parametrize(("names", "columns", "roles"), NAMED)
def test_columns_are_found_by_name_unless_they_are_named(names, columns, roles):
    assert column_roles(names, Layout(columns=columns)) == roles


def test_of_a_space_without_places_only_names_are_read():
    space = StateSpace.labels(["a", "b"])
    names = ("user", "t", "lat", "lon", "state")
    assert column_roles(names, space=space) == Roles("user", "t", state="state")
    with pytest.raises(InvalidInput, match="the model's states are not places"):
        column_roles(names[:-1], space=space)


@pytest.mark.parametrize(("name", "delimiter"), [("user;t", "semicolon"), ("user\tt", "tab"), ("user|t", "|")])
def test_a_column_alone_that_another_delimiter_cuts_is_told(name, delimiter):
    assert delimiter_within([name]) == delimiter and delimiter_within([name, "t"]) is None
    with pytest.raises(InvalidInput, match=r"one column alone; expected cells that are separated by"):
        column_roles([name])
