"""Edges in tasks, without Spark: the edges and the order of one process, whatever batches they come in.

It could fail where an end that is nobody is taken for a person, where an edge is written in two ways, where edges are
taken in another order than in one process, or where the cap begins anew in another batch.

Totals of keys in rows of fixed number and length: nothing that is counted may change how many or how long they are.

It could fail where a key is put in another part, where totals of one part are added to another one's, where a part
without counts is left out, or where the length of a row follows from what was counted.

Counting records of a histogram as sorted rows pass: the counts of plain loops, whatever parts the rows come in.

It could fail where a person's first step or number of records begins anew in another part, where records beyond the
bound count, where a row that is left out takes a place of the bound, where the second row of a step counts, where
windows that overlap share a record, or where memory grows with the rows of one person.
"""

from __future__ import annotations

import pickle
import traceback
import tracemalloc
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from dphmm.dependent._degrees import _fixed_order, histogram_of_degrees, simple_edges
from dphmm.spark import tasks
from dphmm.spark.tasks import (
    AddTotals,
    EdgesOfPeople,
    KeepEdges,
    Parts,
    RecordCounter,
    WithoutValues,
    counts_of_intervals,
    edges_of,
)
from plain_rows import N, in_order, rows_of

NAMES = ["first", "second", "place"]


def batches_of(rows, names, kind, parts=()):
    for first, end in pairwise([0, *sorted(parts), len(rows)]):
        columns = list(zip(*rows[first:end], strict=True)) or [()] * len(names)
        yield pa.RecordBatch.from_arrays([pa.array(cells, kind) for cells in columns], names)


def rows_back(task, batches):
    return [tuple(row.values()) for batch in task(batches) for row in batch.to_pylist()]


def edges_back(rows, people, parts=()):
    return rows_back(EdgesOfPeople(people), batches_of(rows, ["a", "b"], pa.string(), parts))


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
    found = edges_back(rows, 4, parts)
    assert [row[:2] for row in found] == [(0, 1), (0, 1), (1, 2)] and found[0] == found[1]
    named = [("bob", "ann"), ("ann", "zoe"), ("", "ann"), ("cid", "cid"), ("cid", "ann")]
    assert [row[:2] for row in edges_back(named, ["ann", "bob", "cid"])] == [(0, 1), (0, 2)]


def test_the_order_is_that_of_one_process():
    pairs = simple_edges(np.random.default_rng(1).integers(0, 50, (400, 2)), 50)
    given = edges_back([(str(a), str(b)) for a, b in pairs.tolist()], 50)
    expected = pairs[_fixed_order(pairs[:, 0], pairs[:, 1])].tolist()
    assert [list(row[:2]) for row in sorted(given, key=lambda row: row[2])] == expected
    assert any(row[2] < 0 for row in given) and any(row[2] > 0 for row in given)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cap", [1, 2, 5])
def test_edges_that_are_kept_have_the_degrees_of_one_process(seed, cap):
    pairs = simple_edges(np.random.default_rng(seed).integers(0, 12, (60, 2)) ** 2 // 10, 13)
    given = sorted(edges_back([(str(a), str(b)) for a, b in pairs.tolist()], 13), key=lambda row: (row[2], row[:2]))
    for parts in ([], [1], [5, 5, 9]):
        kept = rows_back(KeepEdges(cap), batches_of(given, NAMES, pa.int64(), parts))
        found = np.array([row[:2] for row in kept])
        assert (np.bincount(found.ravel()) <= cap).all()
        degrees = histogram_of_degrees(found, 13, cap, "edge").tolist()
        assert degrees == histogram_of_degrees(pairs, 13, cap, "node").tolist()


@pytest.mark.parametrize("parts", [[], [1]])
@pytest.mark.parametrize("rows", [[(0, 1, 5), (0, 2, 4)], [(0, 1, 5), (0, 1, 5)], [(1, 2, 5), (0, 1, 5)]])
def test_edges_out_of_order_or_twice_are_refused_and_not_shown(rows, parts):
    with pytest.raises(ValueError, match=r"^edges are out of order: sort them by place and ends, each once$"):
        rows_back(KeepEdges(3), batches_of(rows, NAMES, pa.int64(), parts))


def test_they_can_be_sent():
    for task in (KeepEdges(3), EdgesOfPeople(["ann", "bob"])):
        assert pickle.loads(pickle.dumps(task)) == task


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


def test_a_task_without_values_can_be_sent():
    task = pickle.loads(pickle.dumps(WithoutValues(KeepEdges(2))))
    assert task == WithoutValues(KeepEdges(2))


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


def test_it_can_be_sent(parts):
    assert pickle.loads(pickle.dumps(AddTotals(parts))) == AddTotals(parts)


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
    table = np.array(sorted(rows, key=lambda row: row[:2]), dtype=np.int64).reshape(-1, 3)
    last = None
    for part in np.split(table, sorted(parts)):
        owner = part[:, 0]
        before = np.concatenate([[-1 if last is None else last], owner[:-1]])[: len(owner)]
        counter.add(owner != before, part[:, 1], part[:, 2])
        last = owner[-1] if len(owner) else last
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


def test_memory_does_not_grow_with_the_rows_of_one_person():
    def peak(parts):
        counter = RecordCounter(((0, 10**6), (10**6, 10**7)), N, 10**7, None, 3, 0)
        tracemalloc.start()
        for part in range(parts):
            step = np.arange(10_000) + 10_000 * part
            counter.add(np.zeros(10_000, dtype=np.bool_), step, step % N)
        keys, totals = counter.found()
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert totals.sum() == 3 and keys.max() < N
        return highest

    assert peak(300) < 1.1 * peak(20) + 100_000
