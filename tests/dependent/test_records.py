"""Records of a table: windows, the numbering of steps, and what a row that cannot be used counts as.

It fails where a window is cut at another step, where a person's first step depends on somebody else's rows, or where an
odd row raises or moves another one.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphmm
from dphmm.dependent._records import MICROSECONDS, Clock, Records, windows, windows_of
from dphmm.errors import InvalidInput
from noisy_numbers import replaced


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, [(0, 10)]),
        (4, [(0, 4), (4, 8), (8, 10)]),
        ("4", [(0, 4), (4, 8), (8, 10)]),
        ("0:3, 2:10", [(0, 3), (2, 10)]),
        ([(0, 3), (2, 10)], [(0, 3), (2, 10)]),
    ],
)
def test_windows_of_a_text_are_those_of_values(given, expected):
    assert windows(given, 10, "--windows") == expected
    if not isinstance(given, str):
        assert windows_of(given, 10) == expected


@pytest.mark.parametrize("given", ["3:3", "0:11", "0", "a:b", "4:2"])
def test_windows_outside_the_public_steps_are_refused(given):
    with pytest.raises(InvalidInput, match="--windows"):
        windows(given, 10, "--windows")


def test_a_person_s_steps_follow_from_that_person_s_rows():
    clock = Clock(10, 60, None, str)
    time = np.array([0, 59, 120, 600, 660]) * MICROSECONDS
    steps, counts = clock.numbered(np.array([0, 0, 0, 1, 1]), time, None)
    assert steps.tolist() == [0, 0, 2, 0, 1]
    # Of two rows in one bin the last one counts.
    assert counts.tolist() == [False, True, True, True, True]
    alone, _ = clock.numbered(np.array([0, 0]), time[3:], None)
    assert alone.tolist() == steps[3:].tolist()


def test_steps_of_a_public_start_may_lie_outside():
    clock = Clock(3, None, 5, str)
    steps, counts = clock.numbered(np.array([0, 0, 1]), None, np.array([4, 5, 9]))
    assert steps.tolist() == [-1, 0, 4]
    assert counts.all()


def test_an_array_and_a_frame_are_the_same_records():
    states = np.array([[0, 1, -1], [7, 1, 0]])
    frame = pd.DataFrame({"user": [0, 0, 1, 1, 1], "t": [0, 1, 0, 1, 2], "state": [0, 1, 7, 1, 0]})
    one, two = Records.of(states, 2), Records.of(frame, 2)
    assert one.n_times == two.n_times == 3
    for column in ("user", "time", "state"):
        assert getattr(one, column).tolist() == getattr(two, column).tolist()
    # A state that is not public is a record of state 0.
    assert one.state.tolist() == [0, 1, 0, 1, 0]


@pytest.mark.parametrize(("timezone", "moves"), [("Europe/Berlin", [[0, 1], [0, 0]]), ("UTC", [[0, 0], [1, 0]])])
def test_times_without_a_zone_order_rows_by_the_clock_that_is_said(timezone, moves):
    """12:00 in Berlin is before 11:00 of Greenwich."""
    rows = pd.DataFrame(
        {"user": ["ann", "ann"], "t": ["2024-06-01T12:00:00", "2024-06-01T11:00:00Z"], "state": ["h", "w"]}
    )
    asked = {"states": "h,w", "timezone": timezone, "bits": dphmm.ReplayBits(1)}
    table = dphmm.query("flows", rows, "group:1", 1000, **asked).table
    counts = table[table.origin.isin(["h", "w"]) & table.destination.isin(["h", "w"])]["count"]
    assert counts.to_numpy().reshape(2, 2).tolist() == moves


def test_only_the_first_records_of_a_person_in_time_count():
    frame = pd.DataFrame({"user": ["b", "a", "a", "a"], "t": [0, 2, 0, 1], "state": [1, 1, 0, 0]})
    kept = Records.of(frame, 2, most=2)
    assert sorted(zip(kept.user.tolist(), kept.time.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 0)]


#: Leaves of four people at two workplaces, of an event log whose column t numbers the events of a workplace.
LEAVES = [("1", "quota"), ("1", "no leave"), ("2", "quota"), ("2", "quota"), ("3", "quota"), ("3", "no leave")]
NUMBERS = [0, 1, 0, 1, 0, 1]


def leaves(folder, kind, t):
    """The table with this column t, as a file or a frame."""
    columns = {"workplace": [user for user, _ in LEAVES], "leave": [state for _, state in LEAVES], "t": t}
    if kind == "csv":
        pd.DataFrame(columns).to_csv(folder / "leaves.csv", index=False)
        return folder / "leaves.csv"
    if kind == "parquet":
        pq.write_table(pa.table(columns), folder / "leaves.parquet")
        return folder / "leaves.parquet"
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}[kind](columns)


def counts_of(numbers, table, question="histogram", dependence="independent", **options):
    named = {"user_column": "workplace", "state_column": "leave", "states": "quota,no leave"}
    dphmm.query(question, table, dependence, 1, bits=dphmm.ReplayBits(1), **named, **options)
    ((_, _, _, counts),) = numbers.taken()
    return counts


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars", "arrow"])
@pytest.mark.parametrize("t", [NUMBERS, ["soon"] * 6, [0.5] * 6, [True] * 6, [None] * 6])
def test_a_column_of_times_is_not_looked_at_where_no_order_is_needed(monkeypatch, tmp_path, kind, t):
    """A column t of whole numbers made every row one that counts nowhere: 0 and 0 for 4 and 2."""
    assert counts_of(replaced(monkeypatch), leaves(tmp_path, kind, t)) == (4, 2, 0)


@pytest.mark.parametrize("kind", ["csv", "parquet", "pandas", "polars", "arrow"])
def test_whole_numbers_order_the_rows_of_a_person_as_times_do(monkeypatch, tmp_path, kind):
    numbers = replaced(monkeypatch)
    for backwards in (False, True):
        table = leaves(tmp_path, kind, [9 - n for n in NUMBERS] if backwards else NUMBERS)
        assert counts_of(numbers, table, dependence="group:2") == (4, 2, 0)
        assert counts_of(numbers, table, dependence="group:1") == ((1, 2, 0) if backwards else (3, 0, 0))
        trips = (1, 0, 0, 2, 0, 0, 0, 0, 0) if backwards else (1, 2, 0, 0, 0, 0, 0, 0, 0)
        assert counts_of(numbers, table, "flows", "group:1") == trips


@pytest.mark.parametrize("kind", ["parquet", "polars", "arrow"])
@pytest.mark.parametrize("question", ["histogram", "flows"])
def test_a_type_that_orders_nothing_is_refused_as_a_type(monkeypatch, tmp_path, kind, question):
    """By the type alone, with or without a row; whole numbers are no moments for bins of time."""
    numbers = replaced(monkeypatch)
    for t, options in (([True] * 6, {}), ([0.5] * 6, {}), (NUMBERS, {"step": "5min", "times": 3})):
        table = leaves(tmp_path, kind, t)
        with pytest.raises(InvalidInput, match=r"^t: got a column of type"):
            counts_of(numbers, table, question, "group:1", **options)
    assert numbers.taken() == []


def test_a_cell_that_is_no_time_says_nothing_of_the_order_of_others(monkeypatch, tmp_path):
    """In a text each cell is a time, a whole number, or its row counts nowhere."""
    table = leaves(tmp_path, "csv", ["5", "x", "2024-05-06T08:00:00Z", "7", "", "1"])
    assert counts_of(replaced(monkeypatch), table, dependence="group:1") == (2, 1, 0)
