"""Which rows can be read: the same ones from a file, from a table in memory and from a frame of Spark.

It could fail where one of them takes a row that another one sets aside, or counts somebody's row as another person's.
"""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dphmm
import dphmm.spark
from dphmm.accounting import MemoryLedger
from dphmm.errors import InvalidInput
from dphmm.samplers.entropy import ReplayBits
from dphmm.spark import counting, queries
from dphmm.storage.trajectories import load_trajectories
from spark.worlds import MODEL, POLICY, SPACE

pytestmark = pytest.mark.replayed_words

NOON = datetime(2024, 5, 6, 12, tzinfo=UTC)
#: Rows (user, time, step), and why one of them cannot be read.
ROWS = [
    ("u", NOON, 1, ""),
    ("é", NOON, 1, ""),
    ("n" * 200, NOON, 1, ""),
    ("u", NOON, 2**53, ""),
    ("v", NOON, -(2**53), ""),
    ("u", None, 2, "invalid_time"),
    ("w", None, 1, "invalid_time"),
    ("u", datetime(3001, 1, 1, tzinfo=UTC), 3, "invalid_time"),
    ("u", NOON, None, "invalid_step"),
    ("u", NOON, 2**53 + 1, "invalid_step"),
    ("v", NOON, -(2**53) - 1, "invalid_step"),
    ("u", NOON, 2**54, "invalid_step"),
    (None, NOON, 1, "missing_user"),
    ("", NOON, 1, "missing_user"),
    ("n" * 201, NOON, 1, "missing_user"),
    ("q\n", NOON, 1, "missing_user"),
    ("q\x7f", NOON, 1, "missing_user"),
    ("q\u202e", NOON, 1, "missing_user"),
    ("q\u2028", NOON, 1, "missing_user"),
]
WHY = [row[3] for row in ROWS]
GOOD = WHY.count("")
KINDS = {"user": pa.string(), "t": pa.timestamp("us", "UTC"), "step": pa.int64()}


@pytest.fixture
def table():
    found = {name: pa.array([row[k] for row in ROWS], kind) for k, (name, kind) in enumerate(KINDS.items())}
    return pa.table({**found, "state": pa.array(["a"] * len(ROWS))})


def told(loaded):
    """Why each row was set aside."""
    why = [""] * len(ROWS)
    for row in loaded.rejected.to_pylist():
        why[row["row"] - 1] = row["reason"]
    return why


def test_a_table_in_memory(table):
    loaded = load_trajectories(table, space=SPACE)
    assert told(loaded) == WHY and len(loaded.trajectories) == GOOD


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file(table, tmp_path, kind):
    if kind == "parquet":
        pq.write_table(table, tmp_path / "rows.parquet")
    else:
        pa.csv.write_csv(table, tmp_path / "rows.csv")
    assert told(load_trajectories(tmp_path / f"rows.{kind}", space=SPACE)) == WHY


def test_a_frame_that_is_released_refuses_by_the_same_reasons(spark, table, tmp_path):
    counts = {reason: WHY.count(reason) for reason in sorted(set(WHY) - {""})}
    words = ", ".join(f"{count} {reason}" for reason, count in counts.items())
    frame, into = spark.createDataFrame(table), tmp_path / "table"
    with pytest.raises(InvalidInput) as refused:
        dphmm.spark.release(frame, MODEL, POLICY, SPACE, 1, into=into, buckets=2)
    assert f"got {len(ROWS) - GOOD} rows that cannot be read ({words});" in str(refused.value)


def test_frames_that_are_counted(spark, table):
    frame = spark.createDataFrame(table)
    counts = counting.count_transitions(frame, SPACE, max_length=1, max_sequences=9, shortest=1)
    assert (counts.starts.sum(), counts.left_out, counts.n_owners) == (GOOD, len(ROWS) - GOOD, 4)
    options = {"states": "a,b", "max_rows_per_user": 9, "ledger": MemoryLedger(), "bits": ReplayBits(5)}
    answer = queries.histogram(frame, "group", 1000, event_id="one", **options)
    # A step of 2^53 is behind all windows of who began at step 1; nobody has another name.
    assert answer.table["count"].tolist() == [GOOD - 1, 0, 0]
    one = dphmm.query("histogram", table, "group", 1000, states="a,b", max_rows_per_user=9, bits=ReplayBits(5))
    assert one.table["count"].tolist() == [GOOD - 1, 0, 0]


def test_users_that_are_bytes_are_refused_with_a_remedy(spark):
    frame = spark.sql("SELECT X'FF61' AS user, 1L AS step, 0L AS state")
    with pytest.raises(InvalidInput, match=r"^column user: got BinaryType; .*; hex\(user\) makes text of bytes$"):
        counting.count_transitions(frame, SPACE, max_length=2)


def test_times_without_a_zone_are_refused_everywhere_with_a_remedy(spark, tmp_path):
    """One of the functions took them for UTC, whatever the zone of the session was."""
    frame = spark.sql("SELECT 'u' AS user, 1L AS step, 'a' AS state, TIMESTAMP_NTZ'2024-05-06 12:00:00' AS seen")
    named = frame.withColumnRenamed("seen", "t")
    ledger = MemoryLedger()
    given = {"states": "a,b", "times": 2, "step": "1h", "ledger": ledger, "event_id": "one"}

    def release(rows, **more):
        dphmm.spark.release(rows, MODEL, POLICY, SPACE, 1, into=tmp_path / "table", **more)

    fit = {"ledger": ledger, "event_id": "two"}
    stepless = frame.drop("step")
    for call in (
        lambda: release(frame, columns={"t": "seen"}),
        lambda: counting.count_transitions(frame, SPACE, max_length=3, columns={"t": "seen"}),
        lambda: dphmm.spark.fit_private(frame, SPACE, 1, 3, columns={"t": "seen"}, **fit),
        lambda: queries.histogram(stepless, "independent", 1, time_column="seen", **given),
    ):
        with pytest.raises(InvalidInput) as refused:
            call()
        assert str(refused.value) == (
            "column seen: got TimestampNTZType; expected one of "
            + ("TimestampType" if "LongType" not in str(refused.value) else ", ".join(counting._TIMES))
            + "; it has no time zone: CAST(seen AS TIMESTAMP) reads it in that of the session"
        )
    with pytest.raises(InvalidInput, match=r"^column t: .*CAST\(t AS TIMESTAMP\)"):
        release(named)
    assert ledger.publications() == [] and not (tmp_path / "table").exists()


def test_the_time_of_a_row_is_called_t_by_every_function(spark):
    frame = spark.sql("SELECT 'u' AS user, 1L AS step, 'a' AS state, 5L AS seen")
    for call in (
        lambda: dphmm.spark.release(frame, MODEL, POLICY, SPACE, 1, into="nowhere", columns={"time": "seen"}),
        lambda: counting.count_transitions(frame, SPACE, max_length=3, columns={"time": "seen"}),
    ):
        with pytest.raises(InvalidInput, match=r"^columns: got time; expected a role, one of .*\bt\b"):
            call()
