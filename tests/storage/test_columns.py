"""Whole numbers are read exactly. Times without a zone: set aside, taken as UTC, or read off the clocks of a place."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.storage import columns
from dphmm.storage.columns import Times, integers
from dphmm.storage.trajectories import load_trajectories

ZONED = "2024-05-06T08:00:00Z"
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def read(*written, **options):
    """Microseconds, and the reason of each cell that has none."""
    reader = Times("t", **options)
    micros, marks = reader.add(pa.chunked_array([pa.array(written, pa.string())]))
    return micros, [next((reason for reason, bad in marks.items() if bad[i]), "") for i in range(len(written))]


#: Every kind of cell: several zones, none, digits that are cut off, no such moment, clocks that were changed, no time.
CELLS = (
    ZONED, "2024-05-06 08:00+02", "2024-05-06T08:00:00.25-0330", "2024-05-06T08:00:00.123456789Z",
    "2024-05-06T08:00:00", "2024-05-06 08:00:00.1234567", "2024-03-31T02:30:00", "2024-10-27T02:30",
    "2024-02-30T00:00:00Z", "2023-02-29T00:00:00", "2024-02-29T00:00:00Z", "1900-02-29T00:00Z", "2000-02-29T00:00Z",
    "2016-12-31T23:59:60Z", "2024-05-06T24:00:00Z", "2024-05-06T08:00:00+24:00", "0001-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z", "2262-01-01T00:00:00Z", "1677-12-31T23:59:59Z", "1715000000", "06/05/2024 08:00", "never",
    "", None,
)  # fmt: skip


@pytest.mark.parametrize("options", [{}, {"timezone": "UTC"}, {"timezone": "Europe/Berlin"}])
def test_no_cell_decides_how_another_one_is_read(options):
    """One person's odd time would else decide for everybody, as it did where a whole column had no zone."""

    def alone(cell):
        micros, (why,) = read(cell, **options)
        return int(micros[0]), why

    expected = [alone(cell) for cell in CELLS]
    assert {"", "invalid_time"} < {why for _, why in expected} | {"assumed"}
    for a, first in zip(CELLS, expected, strict=True):
        for b, second in zip(CELLS, expected, strict=True):
            micros, why = read(a, b, a, **options)
            assert list(zip(micros.tolist(), why, strict=True)) == [first, second, first]


def test_moments_that_are_read_are_those_of_the_calendar():
    days = [
        f"{year}-{month:02d}-{day:02d}" for year in (1900, 2000, 2023, 2024) for month in range(14) for day in range(33)
    ]

    def exists(day):
        try:
            return bool(dt.date.fromisoformat(day))
        except ValueError:
            return False

    _, why = read(*(f"{day}T00:00Z" for day in days))
    assert [reason == "" for reason in why] == [exists(day) for day in days]


def test_zones_that_are_written_win_over_the_one_assumed():
    for options in ({"timezone": "UTC"}, {"timezone": "Asia/Tokyo"}):
        micros, why = read("2024-05-06T10:00:00+02:00", "2024-05-06T08:00", **options)
        assert why == ["", ""]
        moved = 0 if options["timezone"] == "UTC" else 9 * 3600 * 10**6
        assert micros[0] - micros[1] == moved


def test_clocks_put_forward_or_back_are_set_aside_with_a_reason():
    clocks = (
        "2024-03-31T01:59:59",
        "2024-03-31T02:30:00",
        "2024-10-27T02:30:00",
        "2024-10-27T03:00:00",
        "2024-02-30T01:00",
    )
    micros, why = read(*clocks, timezone="Europe/Berlin")
    assert why == ["", "nonexistent_time", "ambiguous_time", "", "invalid_time"]
    assert [EPOCH + dt.timedelta(microseconds=int(m)) for m in micros[[0, 3]]] == [
        dt.datetime(2024, 3, 31, 0, 59, 59, tzinfo=dt.UTC),
        dt.datetime(2024, 10, 27, 2, 0, tzinfo=dt.UTC),
    ]


@settings(max_examples=60)
@given(
    st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata"]),
    st.datetimes(dt.datetime(1980, 1, 1), dt.datetime(2030, 1, 1)).map(lambda t: t.replace(microsecond=0)),
)
def test_local_times_are_those_of_the_standard_library(name, clock):
    micros, (why,) = read(clock.isoformat(), timezone=name)
    both = [clock.replace(tzinfo=ZoneInfo(name), fold=fold) for fold in (0, 1)]
    exists = both[0].astimezone(dt.UTC).astimezone(ZoneInfo(name)).replace(tzinfo=None) == clock
    if not exists:
        assert why == "nonexistent_time"
    elif both[0].utcoffset() != both[1].utcoffset():
        assert why == "ambiguous_time"
    else:
        assert why == ""
        assert EPOCH + dt.timedelta(microseconds=int(micros[0])) == both[0].astimezone(dt.UTC)


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_on_local_clocks(unit):
    clocks = np.array(["2024-05-06T10:00:00", "2024-03-31T02:30:00", "NaT"], f"datetime64[{unit}]")
    micros, marks = Times("t", timezone="Europe/Berlin").add(pa.chunked_array([pa.array(clocks)]))
    assert micros[0] == read(ZONED)[0][0]
    assert marks["nonexistent_time"].tolist() == [False, True, False]
    assert marks["invalid_time"].tolist() == [False, False, True]


@pytest.mark.parametrize("name", ["Mars/Olympus", "Europe", "../etc/passwd", "", "/etc/localtime"])
def test_a_zone_there_is_not_is_refused(name):
    with pytest.raises(InvalidInput, match="IANA"):
        Times("t", timezone=name)


@pytest.mark.parametrize("kind", [pa.uint64(), pa.decimal128(30, 0)])
@pytest.mark.parametrize("format", ["auto", "unix-s", "unix-us"])
def test_numbers_beyond_all_times_are_of_no_unit_and_decide_about_no_other(kind, format):
    cells = pa.array(["1700000000", "18446744073709551615", None]).cast(kind)
    micros, marks = Times("t", format=format).add(pa.chunked_array([cells]))
    read = format != "unix-us"
    assert micros[0] == 1_700_000_000 * (10**6 if read else 1) and micros[1:].tolist() == [0, 0]
    assert marks["unclear_unit"].tolist()[1] and marks["invalid_time"].tolist()[2]


def test_files_and_tables_take_a_zone(tmp_path):
    (tmp_path / "x.csv").write_text("user,t,lat,lon\na,2024-05-06T10:00:00,1,2\na,2024-03-31T02:30:00,1,2\n")
    loaded = load_trajectories(tmp_path / "x.csv", timezone="Europe/Berlin")
    assert loaded.dropped == {"nonexistent_time": 1}
    table = pa.table({"user": ["a"], "t": ["2024-05-06T10:00:00"], "state": ["x"]})
    same = load_trajectories(table, timezone="Europe/Berlin")
    assert same.trajectories.time[0] == loaded.trajectories.time[0] == read(ZONED)[0][0]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_typed_times_are_rejected_at_both_ends_of_what_is_kept(unit):
    """In every unit: the first and the last second that are kept, and those beside them."""
    first, last = -(-columns.EARLIEST // 10**6), columns.LATEST // 10**6
    per_second = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
    seconds = [first, last, *([] if unit == "ns" else [first - 1, last + 1])]
    column = pa.chunked_array([pa.array([second * per_second for second in seconds], pa.timestamp(unit))])
    counts, bad = columns._counted(column)
    assert bad.tolist() == [False, False, True, True][: len(seconds)]
    assert counts.tolist()[:2] == [first * 10**6, last * 10**6]


MOST = 2**53
#: Numbers about the largest that is read, and beyond 64 bits.
WHOLE = [0, 1, -1, 7, *(sign * (MOST + k) for sign in (1, -1) for k in (-2, -1, 0, 1, 2)), 2**62, 2**63 - 1, -(2**63)]
NATURAL = [0, 1, 7, *range(MOST - 2, MOST + 3), 2**63, 2**64 - 1]
DECIMAL = [*WHOLE, Decimal("3.5"), Decimal("3.0000000001"), MOST - Decimal("0.5"), MOST + Decimal("0.5"), 10**20]


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        (pa.int64(), WHOLE),
        (pa.uint64(), NATURAL),
        (pa.int8(), [-128, 0, 127]),
        (pa.decimal128(38, 0), [*WHOLE, 10**20]),
        (pa.decimal128(38, 10), DECIMAL),
        (pa.decimal256(76, 40), DECIMAL),
        (pa.decimal128(20, -1), [10, -10, 2**53 - 2**53 % 10, 2**53 - 2**53 % 10 + 10, 10**20]),
        (pa.dictionary(pa.int32(), pa.int64()), WHOLE),
        (pa.string(), [str(number) for number in [*WHOLE, 10**20]]),
        (pa.large_string(), [f"{number:+d}" for number in WHOLE]),
    ],
    ids=lambda value: "" if isinstance(value, list) else str(value),
)
def test_whole_numbers_are_read_exactly_or_not_at_all(kind, cells):
    """Read as floats, 2**53 + 1 was 2**53: two steps of a person became one."""
    exact = [Decimal(cell) for cell in cells]
    readable = [value == int(value) and abs(value) <= MOST for value in exact]
    assert any(readable)
    column = pa.chunked_array([pa.array([*cells[:2], None], kind), pa.array(cells[2:], kind)])
    values, bad = integers(column, "step")
    readable.insert(2, False)
    exact.insert(2, Decimal(0))
    assert bad.tolist() == [not good for good in readable]
    assert values.tolist() == [int(value) if good else 0 for value, good in zip(exact, readable, strict=True)]


@pytest.mark.skipif(not hasattr(pa, "decimal64"), reason="this pyarrow has no small decimals")
def test_small_decimals_are_whole_numbers_too():
    values, bad = integers(
        pa.chunked_array([pa.array([Decimal("3.0"), Decimal("3.5"), None], pa.decimal64(5, 1))]), "t"
    )
    assert values.tolist() == [3, 0, 0] and bad.tolist() == [False, True, True]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_floats_that_stand_for_several_whole_numbers_are_none(kind):
    cells = [0.0, -3.0, 2.5, float("nan"), float("inf"), 2.0**52, -(2.0**53), 2.0**53, 2.0**60, None]
    values, bad = integers(pa.chunked_array([pa.array(cells, kind)]), "step")
    assert values.tolist() == [0, -3, 0, 0, 0, 2**52, 0, 0, 0, 0]
    assert np.flatnonzero(~bad).tolist() == [0, 1, 5]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_step_beyond_the_largest_is_nobodys_neighbour(tmp_path, kind):
    """Files that differ in one step, 2**53 or 2**53 + 1: the second is set aside, not read as the first."""
    read = []
    for step in (MOST, MOST + 1):
        table = pa.table({"user": ["ann", "ann", "bob"], "step": [MOST - 1, step, 1], "state": ["a", "b", "c"]})
        path = tmp_path / f"{step}.{kind}"
        pq.write_table(table, path) if kind == "parquet" else pa.csv.write_csv(table, path)
        file, memory = load_trajectories(path), load_trajectories(table)
        assert file.rejected.equals(memory.rejected)
        assert file.trajectories.step.tolist() == memory.trajectories.step.tolist()
        read.append((file.trajectories.step.tolist(), file.rejected.to_pylist()))
    assert read == [([MOST - 1, MOST, 1], []), ([MOST - 1, 1], [{"row": 2, "reason": "invalid_step"}])]


@settings(max_examples=200)
@given(st.floats(1.6e9, 1.8e9))
def test_a_unix_time_is_one_moment_as_a_float_and_as_the_text_that_a_table_prints(seconds):
    """Parquet has the float and CSV its digits: a row that is delivered in both has one time."""
    told = []
    for column in (pa.array([seconds]), pa.array([repr(seconds)])):
        micros, marks = Times("t", format="auto").add(pa.chunked_array([column]))
        assert not any(mark.any() for mark in marks.values())
        told.append(int(micros[0]))
    assert told[0] == told[1]
