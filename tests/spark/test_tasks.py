"""Edges in tasks, without Spark: the edges and the order of one process, whatever batches they come in.

It could fail where an end that is nobody is taken for a person, where an edge is written in two ways, where edges are
taken in another order than in one process, where the cap begins anew in another batch, or where how many rows a task
gives, or how long they are together, follows from which edges there are.

Totals of keys in rows of fixed number and length: nothing that is counted may change how many or how long they are.

It could fail where a key is put in another part, where totals of one part are added to another one's, where a part
without counts is left out, or where the length of a row follows from what was counted.

Counting records of a histogram as sorted rows pass: the counts of plain loops, whatever parts the rows come in.

It could fail where a person's first step or number of records begins anew in another part, where records beyond the
bound count, where a row that is left out takes a place of the bound, where the second row of a step counts, where
windows that overlap share a record, or where memory grows with the rows of one person.
"""

from __future__ import annotations

import traceback
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from dphmm.dependent._degrees import _fixed_order, histogram_of_degrees, simple_edges
from dphmm.spark import tasks
from dphmm.spark.tasks import (
    AddTotals,
    OrderEdges,
    PackEdges,
    Parts,
    RecordCounter,
    TakeEdges,
    WithoutValues,
    counts_of_intervals,
    edges_of,
)
from plain_rows import N, add_in_parts, in_order, rows_of


def batches_of(rows, names, kind, parts=()):
    for first, end in pairwise([0, *sorted(parts), len(rows)]):
        columns = list(zip(*rows[first:end], strict=True)) or [()] * len(names)
        yield pa.RecordBatch.from_arrays([pa.array(cells, kind) for cells in columns], names)


def sorted_rows(batches, name):
    """Rows of batches as Spark brings them: by one column, in batches of 300."""
    rows = [batch.slice(k, 1) for batch in batches for k in range(len(batch))]
    rows.sort(key=lambda row: row.column(name)[0].as_py())
    return pa.Table.from_batches(rows).combine_chunks().to_batches(max_chunksize=300)


def packed_edges(rows, people, parts=(), kind=None):
    """What two tasks pack of rows (a, b)."""
    given = list(batches_of(rows, ["a", "b"], kind or pa.string(), parts))
    return [batch for own in (given[::2], given[1::2]) for batch in PackEdges(people)(iter(own))]


def in_turn(rows, people, parts=(), kind=None):
    """The rows that come to the task which takes edges; buckets of two tasks."""
    placed = sorted_rows(packed_edges(rows, people, parts, kind), "bucket")
    cut = [batch.filter(pc.less(batch.column("bucket"), 500)) for batch in placed]
    rest = [batch.filter(pc.greater_equal(batch.column("bucket"), 500)) for batch in placed]
    return sorted_rows([row for own in (rest, cut) for row in OrderEdges()(iter(own))], "turn")


def edges_of_rows(batches):
    """The edges in packed rows, -1 for rows that are none."""
    return [
        cell for batch in batches for row in batch.column("edges").to_pylist() for cell in np.frombuffer(row, "<i8")
    ]


def ends_of(edges):
    return [[int(edge) // 2**32, int(edge) % 2**32] for edge in edges if edge >= 0]


def degrees_of(batches, n, cap, most):
    (found,) = TakeEdges(n, cap, most)(iter(batches))
    return np.frombuffer(found.column("people")[0].as_py(), "<i8").tolist()


def as_rows(pairs):
    return [(str(a), str(b)) for a, b in pairs.tolist()]


@pytest.mark.parametrize("parts", [[], [0], [3], range(1, 9)])
def test_only_edges_of_two_people_are_given(parts):
    rows = [
        ("1", "0"),
        ("0", "1"),
        ("+2", "1"),
        ("3", "3"),
        ("4", "1"),
        ("-1", "0"),
        (None, "0"),
        ("x", "1"),
        ("1.5", "0"),
    ]
    assert sorted(ends_of(edges_of_rows(packed_edges(rows, 4, parts)))) == [[0, 1], [0, 1], [1, 2]]
    assert sorted(ends_of(edges_of_rows(in_turn(rows, 4, parts)))) == [[0, 1], [1, 2]]
    named = [("bob", "ann"), ("ann", "zoe"), ("", "ann"), ("cid", "cid"), ("cid", "ann")]
    assert sorted(ends_of(edges_of_rows(in_turn(named, ["ann", "bob", "cid"])))) == [[0, 1], [0, 2]]
    numbers = [(7, 5), (5, 9), (None, 5), (5, 5)]
    assert ends_of(edges_of_rows(in_turn(numbers, ["5", "6", "7"], kind=pa.int64()))) == [[0, 2]]
    assert sorted(ends_of(edges_of_rows(in_turn(numbers, 8, kind=pa.int64())))) == [[5, 7]]


def test_the_order_is_that_of_one_process():
    pairs = simple_edges(np.random.default_rng(1).integers(0, 50, (400, 2)), 50)
    expected = pairs[_fixed_order(pairs[:, 0], pairs[:, 1])].tolist()
    twice = np.concatenate([pairs, pairs[::3, ::-1]])
    for seed in range(3):
        rows = as_rows(twice[np.random.default_rng(seed).permutation(len(twice))])
        assert ends_of(edges_of_rows(in_turn(rows, 50, [100 * seed]))) == expected


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 5))])
@pytest.mark.parametrize("cap", [1, 2, 5])
def test_edges_that_are_kept_have_the_degrees_of_one_process(seed, cap):
    pairs = np.random.default_rng(seed).integers(0, 12, (60, 2)) ** 2 // 10
    known = simple_edges(pairs, 13)
    for parts in ([], [1], [5, 5, 9]):
        given = in_turn(as_rows(pairs), 13, parts)
        for level, most in (("node", cap), ("edge", 13)):
            expected = histogram_of_degrees(known, 13, cap, level).tolist()
            assert degrees_of(given, 13, cap, most) == expected
            assert degrees_of([row.slice(0) for batch in given for row in single(batch)], 13, cap, most) == expected


def single(batch):
    return [batch.slice(k, 1) for k in range(len(batch))]


def test_a_bucket_of_many_rows_and_of_edges_that_stand_twice(monkeypatch):
    """Edges are packed three at a time, and those of a bucket made different and written a few at a time."""
    for name, most in {"_PACKED_TOGETHER": 3, "_EDGES_TOGETHER": 2, "_TURNS_TOGETHER": 2}.items():
        monkeypatch.setattr(tasks, name, most)
    pairs = np.concatenate([np.full((40, 2), [3, 5]), np.random.default_rng(2).integers(0, 9, (20, 2))])
    given = in_turn(as_rows(pairs), 9, [7])
    found = edges_of_rows(given)
    assert sorted(ends_of(found)) == simple_edges(pairs, 9).tolist() and len(found) == len(pairs)
    assert degrees_of(given, 9, 2, 2) == histogram_of_degrees(simple_edges(pairs, 9), 9, 2, "node").tolist()


def test_how_many_rows_and_how_long_they_are_says_nothing_of_the_edges():
    """As many rows in all, and as long together, of nobody's, of one edge many times, and of many edges."""
    source = np.random.default_rng(3)
    tables = [[("x", "y")] * 500, [("1", "2")] * 500, as_rows(source.integers(0, 30, (500, 2)))]
    shapes = []
    for rows in tables:
        steps = packed_edges(rows, 30, [200]), in_turn(rows, 30, [200])
        shapes.append([(len(edges_of_rows(step)), sum(map(len, step))) for step in steps])
        assert shapes[-1] == [(500, 2 * 1024)] * 2
        assert len(degrees_of(steps[1], 30, 4, 4)) == 5


EDGES = [0 * 2**32 + 1, 0 * 2**32 + 2, 1 * 2**32 + 2]


def turns_of(edges, at):
    """Edges in this order, in two batches."""
    for own in (edges[:at], edges[at:]):
        cells = [np.array([edge], dtype="<i8").tobytes() for edge in own]
        turns = pa.array(range(len(own)), pa.int64())
        yield pa.RecordBatch.from_arrays([turns, pa.array(cells, pa.binary())], ["turn", "edges"])


@pytest.mark.parametrize("at", [0, 1, 2])
def test_edges_out_of_order_or_twice_are_refused_and_not_shown(at):
    pairs = np.array(ends_of(EDGES))
    good = [EDGES[k] for k in _fixed_order(pairs[:, 0], pairs[:, 1])]
    assert degrees_of(turns_of(good, at), 3, 2, 2) == [0, 0, 3]
    for bad in ([good[1], good[0], good[2]], [good[0], good[0], good[1]], [good[0], good[2], good[1]]):
        with pytest.raises(ValueError, match=r"^edges are out of order: sort them by turn, each edge once$"):
            degrees_of(turns_of(bad, at), 3, 2, 2)


def test_two_edges_of_one_place_are_taken_as_they_increase(monkeypatch):
    """None are known whose places are equal: here all are."""
    monkeypatch.setattr(tasks, "mixed", lambda first, second: np.full(len(first), 7, dtype=np.uint64))
    assert edges_of_rows(in_turn([("1", "2"), ("2", "0"), ("0", "1")], 3)) == EDGES
    assert degrees_of(turns_of(EDGES, 1), 3, 1, 1) == [1, 2]
    with pytest.raises(ValueError, match=r"^edges are out of order"):
        degrees_of(turns_of(EDGES[::-1], 1), 3, 1, 1)


def test_buckets_of_edges_out_of_order_are_refused():
    """A bucket that comes twice would give its edges twice."""
    batches = sorted_rows(packed_edges([("0", "1")], 2), "bucket")
    with pytest.raises(ValueError, match=r"^edges are out of order: sort them by bucket$"):
        list(OrderEdges()(iter([*batches, *batches])))


def test_an_error_in_a_task_shows_its_kind_and_place_and_no_value():
    def task(batches):
        yield next(batches)
        raise ValueError("where ann sleeps")

    batches = batches_of([(1, 2), (3, 4)], ["a", "b"], pa.int64(), [1])
    found = WithoutValues(task)(batches)
    assert next(found).to_pylist() == [{"a": 1, "b": 2}]
    with pytest.raises(RuntimeError, match=r"^ValueError at test_tasks.py:\d+; nothing of this task") as raised:
        next(found)
    told = "".join(traceback.format_exception(raised.value))
    assert "where ann sleeps" not in told.replace('raise ValueError("where ann sleeps")', "")


#: Possible keys, and the sizes that are set: many rows of all keys, or of those that occur.
SIZES = [(1, 7, 100), (7, 7, 100), (50, 7, 100), (99, 7, 100), (101, 7, 100), (10**12, 7, 100)]


@pytest.fixture(params=SIZES, ids=str)
def parts(request, monkeypatch):
    n_keys, size, dense = request.param
    monkeypatch.setattr(tasks, "_PART_KEYS", size)
    monkeypatch.setattr(tasks, "MOST_DENSE", dense)
    return Parts(n_keys)


def drawn(source, n_keys, most=40):
    """Increasing keys and totals of them."""
    keys = np.unique(source.integers(0, n_keys, source.integers(0, most)))
    return keys, source.integers(1, 2**40, len(keys))


def totals_of(parts, batches):
    """{key: total}, and whether any row asks for another order."""
    rows = list(parts.read(batches))
    found = {part * parts.size + key: total for part, _, *pair in rows for key, total in zip(*pair, strict=True)}
    return found, any(again for _, again, _, _ in rows)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_written_is_read(parts, seed):
    keys, totals = drawn(np.random.default_rng(seed), parts.n_keys)
    for again in (False, True):
        found = totals_of(parts, parts.rows(keys, totals, again))
        assert found == (dict(zip(keys.tolist(), totals.tolist(), strict=True)), again)


@pytest.mark.parametrize("seed", range(3))
def test_totals_of_tasks_are_added_in_any_order_and_batches(parts, seed):
    source = np.random.default_rng(seed)
    tasks = [drawn(source, parts.n_keys) for _ in range(5)]
    expected: dict[int, int] = {}
    for keys, totals in tasks:
        for key, total in zip(keys.tolist(), totals.tolist(), strict=True):
            expected[key] = expected.get(key, 0) + total
    rows = [row for task in tasks for row in parts.rows(*task)]
    mixed = [rows[k] for k in source.permutation(len(rows))]
    together = pa.Table.from_batches(mixed).combine_chunks().to_batches()
    for batches in (mixed, together):
        added = list(AddTotals(parts)(iter(batches)))
        assert totals_of(parts, added) == (expected, False)
        assert len(added) == parts.count


def test_one_task_that_asks_for_another_order_is_heard(parts):
    none = np.zeros(0, dtype=np.int64)
    rows = [*parts.rows(*drawn(np.random.default_rng(1), parts.n_keys)), *parts.rows(none, none, True)]
    assert totals_of(parts, AddTotals(parts)(iter(rows)))[1]
    assert list(AddTotals(parts)(iter([]))) == []


def shape_of(batches):
    """All that Spark can measure of rows: how many, of which types, and how long."""
    return [(batch.schema, len(batch), batch.nbytes) for batch in batches]


def test_how_many_rows_and_how_long_they_are_says_nothing_of_the_totals(parts):
    """Above the most keys of which all are written, rows are of any length: their number stays."""
    source = np.random.default_rng(5)
    some = [[drawn(source, parts.n_keys, most) for _ in range(3)] for most in (1, 2, 40)]
    shapes, added = [], []
    for several in some:
        rows = [row for task in several for row in parts.rows(*task)]
        shapes.append(shape_of(rows))
        added.append(shape_of(AddTotals(parts)(iter(rows))))
    for found in (shapes, added):
        assert {len(each) for each in found} == {len(found[0])}
        assert (found[0] == found[1] == found[2]) == parts.dense


def test_sizes_of_today():
    """400 states are one row a task; 4,095 states the most of which all keys are written, in rows of 2 MiB."""
    assert (Parts(400**2 + 402).count, Parts(400**2 + 402).dense) == (1, True)
    assert Parts(4095**2 + 4097).dense and not Parts(4096**2 + 4098).dense
    assert (Parts(4096**2 + 4098).count, Parts(10**12).count) == (64, 64)
    keys, totals = np.array([2**18 - 1, 2**18]), np.array([3, 4])
    first, second, *_ = Parts(3600**2 + 3602).rows(keys, totals)
    assert first.column("totals")[0].as_buffer().size == 2**21 == second.column("totals")[0].as_buffer().size


SPANS = [
    ((0, 10),),
    ((0, 3), (3, 6), (6, 10)),
    ((2, 5), (4, 9), (0, 10), (2, 5)),
    ((7, 8), (1, 2)),
]
OTHER = 2


def expected_of(rows, spans, n_times, first, most):
    """By plain loops."""
    steps = {}
    for owner, step, state in in_order(rows):
        steps.setdefault(owner, {}).setdefault(step, state if 0 <= state < N else OTHER)
    counts = np.zeros((len(spans), N), dtype=np.int64)
    for own in steps.values():
        begun = min(own) if first is None else first
        records = [(step - begun, state) for step, state in sorted(own.items()) if 0 <= step - begun < n_times]
        for number, state in records[:most]:
            for w, (least, end) in enumerate(spans):
                counts[w, state] += least <= number < end
    return counts.tolist()


def counted(rows, spans, n_times, first, most, parts=()):
    """The counts of sorted rows that come in parts which end at these places."""
    counter = RecordCounter(spans, N, n_times, first, most, OTHER)
    add_in_parts(counter, sorted(rows, key=lambda row: row[:2]), parts)
    return counts_of_intervals(*counter.found(), spans, N).tolist()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spans", SPANS)
@pytest.mark.parametrize(("first", "most"), [(None, None), (-3, None), (None, 2), (2, 1), (-5, 3)])
def test_counts_in_any_parts_are_those_of_plain_loops(seed, spans, first, most):
    source, rows = np.random.default_rng(seed), rows_of(seed)
    expected = expected_of(rows, spans, 10, first, most)
    for parts in ([], range(1, len(rows)), [1], source.integers(0, len(rows), 9).tolist(), [7] * 3):
        shuffled = [rows[k] for k in source.permutation(len(rows))]
        assert counted(shuffled, spans, 10, first, most, parts) == expected


@pytest.mark.parametrize("most", [1, 2, 5])
def test_nobody_changes_a_window_by_more_than_the_bound(most):
    """All rows of one person, there or not: at most ``most`` in L1 in windows that do not overlap."""
    for seed in range(8):
        rows = rows_of(seed)
        for spans in SPANS[:2]:
            whole = np.array(counted(rows, spans, 10, None, most))
            for owner in range(5):
                without = np.array(counted([row for row in rows if row[0] != owner], spans, 10, None, most))
                assert 0 <= (whole - without).sum() == np.abs(whole - without).sum() <= most


def test_no_row_and_no_record():
    for rows in ([], [(1, 50, 0)]):
        assert counted(rows, SPANS[1], 10, 0, None) == [[0] * N] * 3
    assert edges_of(SPANS[2]).tolist() == [0, 2, 4, 5, 9, 10]


def test_the_last_window_and_what_is_after_all_windows():
    rows = [(1, step, 0) for step in range(10)]
    assert counted(rows, ((9, 10),), 10, 0, None) == [[1, 0, 0, 0]]
    assert counted(rows, ((0, 1),), 10, 0, None) == [[1, 0, 0, 0]]


def test_rows_out_of_order_are_refused():
    counter = RecordCounter(SPANS[0], N, 10, None, None, 0)
    with pytest.raises(ValueError, match="out of order"):
        counter.add(np.array([True, False]), np.array([2, 1]), np.array([0, 0]))
    assert repr(counter) == "RecordCounter(...)"
