"""Edges in tasks, without Spark: the edges and the order of one process, whatever batches they come in.

It could fail where an end that is nobody is taken for a person, where an edge is written in two ways, where edges are
taken in another order than in one process, or where the cap begins anew in another batch.
"""

from __future__ import annotations

import pickle
import traceback
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from dphmm.dependent._degrees import _fixed_order, histogram_of_degrees, simple_edges
from dphmm.spark.counting_task import WithoutValues
from dphmm.spark.edges_task import EdgesOfPeople, KeepEdges

NAMES = ["first", "second", "place"]


def batches_of(rows, names, kind, parts=()):
    for first, end in pairwise([0, *sorted(parts), len(rows)]):
        columns = list(zip(*rows[first:end], strict=True)) or [()] * len(names)
        yield pa.RecordBatch.from_arrays([pa.array(cells, kind) for cells in columns], names)


def rows_back(task, batches):
    return [tuple(row.values()) for batch in task(batches) for row in batch.to_pylist()]


def edges_of(rows, people, parts=()):
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
    found = edges_of(rows, 4, parts)
    assert [row[:2] for row in found] == [(0, 1), (0, 1), (1, 2)] and found[0] == found[1]
    named = [("bob", "ann"), ("ann", "zoe"), ("", "ann"), ("cid", "cid"), ("cid", "ann")]
    assert [row[:2] for row in edges_of(named, ["ann", "bob", "cid"])] == [(0, 1), (0, 2)]


def test_the_order_is_that_of_one_process():
    pairs = simple_edges(np.random.default_rng(1).integers(0, 50, (400, 2)), 50)
    given = edges_of([(str(a), str(b)) for a, b in pairs.tolist()], 50)
    expected = pairs[_fixed_order(pairs[:, 0], pairs[:, 1])].tolist()
    assert [list(row[:2]) for row in sorted(given, key=lambda row: row[2])] == expected
    assert any(row[2] < 0 for row in given) and any(row[2] > 0 for row in given)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("cap", [1, 2, 5])
def test_edges_that_are_kept_have_the_degrees_of_one_process(seed, cap):
    pairs = simple_edges(np.random.default_rng(seed).integers(0, 12, (60, 2)) ** 2 // 10, 13)
    given = sorted(edges_of([(str(a), str(b)) for a, b in pairs.tolist()], 13), key=lambda row: (row[2], row[:2]))
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
    with pytest.raises(RuntimeError, match=r"^ValueError at test_edges_task.py:\d+; nothing of this task") as raised:
        next(found)
    told = "".join(traceback.format_exception(raised.value))
    assert "where ann sleeps" not in told.replace('raise ValueError("where ann sleeps")', "")


def test_a_task_without_values_can_be_sent():
    task = pickle.loads(pickle.dumps(WithoutValues(KeepEdges(2))))
    assert task == WithoutValues(KeepEdges(2))
