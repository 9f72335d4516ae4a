"""Counting records of a histogram as sorted rows pass: the counts of plain loops, whatever parts the rows come in.

It could fail where a person's first step or number of records begins anew in another part, where records beyond the
bound count, where a row that is left out takes a place of the bound, where the second row of a step counts, where
windows that overlap share a record, or where memory grows with the rows of one person.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from dphmm.dependent._record_counter import RecordCounter, counts_of_intervals, edges_of
from plain_rows import N, in_order, rows_of

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
