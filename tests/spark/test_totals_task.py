"""Totals of keys in rows of fixed number and length: nothing that is counted may change how many or how long they are.

It could fail where a key is put in another part, where totals of one part are added to another one's, where a part
without counts is left out, or where the length of a row follows from what was counted.
"""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

from dphmm.spark import totals_task
from dphmm.spark.totals_task import AddTotals, Parts

#: Possible keys, and the sizes that are set: many rows of all keys, or of those that occur.
SIZES = [(1, 7, 100), (7, 7, 100), (50, 7, 100), (99, 7, 100), (101, 7, 100), (10**12, 7, 100)]


@pytest.fixture(params=SIZES, ids=str)
def parts(request, monkeypatch):
    n_keys, size, dense = request.param
    monkeypatch.setattr(totals_task, "_PART_KEYS", size)
    monkeypatch.setattr(totals_task, "MOST_DENSE", dense)
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
    for tasks in some:
        rows = [row for task in tasks for row in parts.rows(*task)]
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
