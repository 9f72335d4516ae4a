"""A file read in parts of any size gives the rows that the whole file gives, in 12 to 20 bytes a row."""

from __future__ import annotations

import gzip
import inspect
import io
import threading
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dphmm
from dphmm.batch import Batch
from dphmm.errors import InvalidInput
from dphmm.states import visit_table
from dphmm.states.grid import Grid
from dphmm.states.visit_table import VisitTable
from dphmm.storage import csv_files, inputs, tables, visits
from dphmm.storage.ledger import open_ledger
from dphmm.storage.trajectories import load_trajectories
from dphmm.storage.visits import load_visits

NAMES = dphmm.StateSpace.categories(("a", "b", "c"))
MAP = Grid.from_bounds(0.0, 0.0, 0.1, 0.1, cell=4000)
MINUTE = 60


@pytest.fixture(params=[(64, 1), (97, 7), (2**24, 2**18)], ids=["1", "7", "whole"])
def in_parts(request, monkeypatch):
    """Text is read in blocks of so many bytes, and rows are looked at in parts of so many."""
    block, rows = request.param
    monkeypatch.setattr(tables, "_BLOCK", block)
    monkeypatch.setattr(visit_table, "_PART", rows)
    whole = tables.read_batches
    monkeypatch.setattr(tables, "read_batches", lambda path, **how: whole(path, **how, rows=rows))


def told(table: VisitTable) -> tuple:
    n = table.n_visits
    times = None if table.times is None else table.times[range(n)].tolist()
    columns = (table.owners(0, n), table.states(0, n), table.steps[range(n)])
    counts = (table.n_rows, table.same_step, table.outside, table.in_steps, table.in_bins, table.ranked)
    return (table.users, times, *(column.tolist() for column in columns), *counts)


def read(path, space, seconds, answer):
    """What was read in parts, or the error, beside the same of the whole file."""
    found = []
    for in_turn in (True, False):
        try:
            if in_turn:
                table, rejected = load_visits(path, space, seconds, answer)
            else:
                loaded = load_trajectories(path, bins=seconds, space=space)
                table, rejected = VisitTable.of(loaded.trajectories, space, seconds, answer), loaded.rejected
            found.append((told(table), rejected.to_pydict(), rejected.schema))
        except InvalidInput as error:
            found.append(str(error))
    return found


def some_rows(columns: str, n: int = 90) -> list[dict[str, object]]:
    """Rows of a few users in no order: several of one step and of one time, gaps, and some that cannot be read."""
    rng = np.random.default_rng(8)
    rows = []
    for _ in range(n):
        minute = int(rng.integers(0, 60)) + 20 * int(rng.integers(0, 2)) * 1440
        second = 20 * int(rng.integers(0, 3))
        day, hour = f"2024-05-{6 + minute // 1440:02d}", f"{8 + minute % 1440 // 60:02d}:{minute % 60:02d}"
        at = int(np.datetime64(f"{day}T{hour}").astype("datetime64[s]").astype(int)) // MINUTE
        row = {"user": f"u{rng.integers(0, 4)}", "t": f"{day}T{hour}:{second:02d}Z", "step": str(at)}
        row |= {"state": "abcx"[rng.integers(0, 4)], "trip": str(rng.integers(0, 9))}
        row |= {"lat": str(round(float(rng.uniform(0, 0.12)), 3)), "lon": str(round(float(rng.uniform(0, 0.12)), 3))}
        broken = {"user": "", "t": "noon", "step": "1.5", "state": "", "lat": "91", "lon": "no"}
        if rng.random() < 0.15:
            name = list(broken)[rng.integers(0, len(broken))]
            row[name] = broken[name]
        rows.append({name: row[name] for name in columns.split()})
    return rows


def write(path, rows, in_order):
    """The rows as CSV, packed or not, or as Parquet."""
    rows = sorted(rows, key=lambda row: (row["user"], row.get("t", ""), row.get("step", ""))) if in_order else rows
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=11)
        return
    lines = [",".join(row.values()) for row in rows]
    text = "\n".join([",".join(rows[0]), *lines]).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz", "rows.parquet"])
@pytest.mark.parametrize(
    ("columns", "seconds"),
    [
        ("user t state", MINUTE),
        ("user t state", None),
        ("user t step state trip", MINUTE),
        ("user t step state", None),
        ("user step state", MINUTE),
        ("user step state", None),
        ("user state", None),
        ("user t lat lon", MINUTE),
        ("user t step lat lon state", None),
    ],
)
def test_a_file_in_parts_is_the_whole_file(in_parts, tmp_path, name, columns, seconds):
    space = MAP if "lat" in columns else NAMES
    for in_order in (False, True):
        write(tmp_path / name, some_rows(columns), in_order)
        for answer in ("last", "first"):
            in_turn, whole = read(tmp_path / name, space, seconds, answer)
            assert in_turn == whole and isinstance(whole, tuple)
            assert 0 < len(whole[1]["row"]) < 90


HEAD = "user,step,state\n"
LINES = [f"u{k % 3},{k},a" for k in range(40)]


@pytest.mark.parametrize(
    "text",
    [
        HEAD + "\n".join(f'"u\n{k % 3}",{k},b' for k in range(40)),
        HEAD + "\n".join([*LINES, "u1,3"]),
        HEAD + "\n".join(["u1", *LINES, "u1,1,a,b", *LINES]) + "\n",
        HEAD + "\n".join([*LINES, 'u1,3,"a', *LINES]),
        HEAD + "\n".join([*LINES, "u1", 'u1,"3']),
        HEAD + "\r\n\r\n".join(LINES) + "\r\n",
        HEAD + "\n".join(["u1,x,a", "u1"] * 20),
        HEAD,
        "user,state\n" + "\n".join(["u1,a,b"] * 20),
    ],
    ids=["line ends in quotes", "torn line", "ragged rows", "open quote", "torn quote", "empty lines", "none left",
         "no rows", "all ragged"],
)  # fmt: skip
def test_hostile_text_over_the_end_of_a_part_is_read_as_in_the_whole(in_parts, tmp_path, text):
    for name, data in (("rows.csv", text.encode()), ("rows.csv.gz", gzip.compress(text.encode()))):
        (tmp_path / name).write_bytes(data)
        in_turn, whole = read(tmp_path / name, NAMES, None, "last")
        assert in_turn == whole
    if 'u1,3,"a' not in text:
        # Arrow reads a quote that nothing closes on to the end of the block that it is in.
        tables._BLOCK = 2**24
        assert read(tmp_path / name, NAMES, None, "last")[1] == whole


def test_rows_set_aside_have_the_numbers_that_they_have_in_the_file(in_parts, tmp_path):
    (tmp_path / "rows.csv").write_text(HEAD + "u1\nu1,1,a\nu1,2,\nu1\nu1\nu1,3,\nu1,4,a\nu1\n")
    rejected = load_visits(tmp_path / "rows.csv", NAMES).rejected
    ragged = [(row, "ragged_row") for row in (1, 4, 5, 8)]
    expected = sorted([*ragged, (3, "missing_state"), (6, "missing_state")])
    assert list(zip(*rejected.to_pydict().values(), strict=True)) == expected


def test_a_torn_archive_and_a_file_that_changes_are_refused(in_parts, tmp_path, monkeypatch):
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress((HEAD + "\n".join(LINES)).encode())[:-6])
    with pytest.raises(InvalidInput, match="damaged or truncated gzip"):
        load_visits(tmp_path / "rows.csv.gz", NAMES)
    path, cells = tmp_path / "rows.csv", visits.Cells.read
    path.write_text(HEAD + "\n".join(LINES))

    def changed(self, table):
        with path.open("a") as file:
            file.write("\nu9,9,a")
        return cells(self, table)

    monkeypatch.setattr(visits.Cells, "read", changed)
    with pytest.raises(InvalidInput, match="changed while it was read"):
        load_visits(path, NAMES)


def growth(measured, sizes=(30_000, 60_000)) -> float:
    """Bytes of peak memory that each further row takes, as Python and NumPy count what they ask for."""
    peaks = []
    for n in sizes:
        tracemalloc.start()
        measured(n)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return (peaks[1] - peaks[0]) / (sizes[1] - sizes[0])


def large(path, n):
    """Rows of 500 steps of each user by time, as people's rows come: everybody's rows are all over the file."""
    k, users = np.arange(n), n // 500
    stamps = pa.array(1_700_000_000_000_000 + k // users * 60_000_000, pa.timestamp("us", "UTC"))
    names = pa.array([f"u{number}" for number in (k % users).tolist()])
    table = pa.table({"user": names, "t": stamps, "state": pa.array(np.array(list("abc"))[k % 3].tolist())})
    tables.write_table(path, table)


@pytest.fixture
def small_parts(monkeypatch):
    """So little at a time that what is held for a part is far below what is held of all rows."""
    monkeypatch.setattr(visit_table, "_PART", 2**10)
    monkeypatch.setattr(visit_table, "_LEAST", 2**10)
    monkeypatch.setattr(tables, "_BLOCK", 2**14)
    monkeypatch.setattr(csv_files, "_LONGEST_HEADER", 2**12)
    whole = tables.read_batches
    monkeypatch.setattr(tables, "read_batches", lambda path, **how: whole(path, **how, rows=2**10))
    monkeypatch.setattr(Batch, "_chunk", property(lambda self: 2**10))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_row_takes_no_more_than_twenty_bytes(small_parts, tmp_path, monkeypatch, suffix):
    cells, arrow = visits.Cells.read, list[int]()

    def watched(self, part):
        arrow.append(pa.total_allocated_bytes())
        return cells(self, part)

    monkeypatch.setattr(visits.Cells, "read", watched)
    for n in (1000, 30_000, 60_000):
        large(tmp_path / f"{n}{suffix}", n)
    load_visits(tmp_path / f"1000{suffix}", NAMES, MINUTE)
    arrow.clear()
    assert 12 < growth(lambda n: load_visits(tmp_path / f"{n}{suffix}", NAMES, MINUTE)) <= 20
    # What Arrow holds while a part is read does not grow, but for what is read ahead.
    assert max(arrow) - min(arrow) < 2**19


def test_a_release_holds_no_row_after_it_has_been_told(small_parts, tmp_path):
    model = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), step=MINUTE)
    policy = dphmm.policy.complete(3)
    for n in (5_000, 30_000, 60_000):
        large(tmp_path / f"{n}.parquet", n)

    def released(n):
        with open_ledger(tmp_path / f"{n}.db") as ledger:
            batch = Batch(model, policy, NAMES, 1, ledger=ledger, estimates=False, bits=dphmm.ReplayBits(1))
            rows = load_visits(tmp_path / f"{n}.parquet", NAMES, MINUTE).visits
            assert sum(len(chunk) for chunk in batch.run(rows)) == n

    released(5_000)
    assert 12 < growth(released) <= 20


def test_a_reader_does_not_run_ahead_of_who_takes_its_parts(monkeypatch):
    monkeypatch.setattr(inputs, "_PATIENCE", 3600)
    paced, reads, three = inputs.Paced(io.BytesIO(bytes(10))), [], threading.Event()

    def read():
        while paced.read(1):
            reads.append(1)
            if len(reads) == 3:
                three.set()

    thread = threading.Thread(target=read)
    thread.start()
    taken = paced.taken(iter("ab"))
    assert next(taken) == "a" and three.wait()
    # Two ahead and one that was taken; the next one waits until somebody takes more, or nobody will.
    assert len(reads) == 3 and thread.is_alive()
    taken.close()
    thread.join()
    assert len(reads) == 10


def test_a_part_that_needs_many_reads_gets_them(monkeypatch):
    monkeypatch.setattr(inputs, "_PATIENCE", 0)
    paced = inputs.Paced(io.BytesIO(bytes(40)))
    assert [len(part) for part in paced.taken(b"".join(paced.read(1) for _ in range(8)) for _ in range(5))] == [8] * 5


def test_the_reading_of_parts_has_no_option_that_the_whole_reading_lacks():
    named = set(inspect.signature(load_visits).parameters) - {"seconds", "answer"}
    assert named <= set(inspect.signature(load_trajectories).parameters)
