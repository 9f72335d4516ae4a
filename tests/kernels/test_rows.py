"""Rows of many subjects: each loop gives what a plain walk over the rows gives.

It could fail for a skip that is missing or too long, a row out of order that passes, a place that is measured from a
point that was left out, and rows of one owner that lose their order.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dphmm._kernels import rows
from random_seeds import seeds

RADIUS = 6_371_000.0


def requested(owner, t, asked, last, most):
    """What `rows.lay_out` fills in, row by row."""
    found, n = [], len(t)
    for row in range(n):
        alike = row > 0 and owner[row] == owner[row - 1]
        if row > 0 and (owner[row] < owner[row - 1] or (alike and t[row] <= t[row - 1])):
            return -1 - row, found
        before = last[owner[row]]
        if t[row] <= before:
            continue
        if alike:
            before = max(before, t[row - 1])
        if t[row] - before - 1 > most:
            return -1 - n - row, found
        if t[row] > before + 1:
            found.append((owner[row], before + 1, t[row] - before - 1, row, 1, 0))
        found.append((owner[row], t[row], 1, row, int(not asked[row]), 1))
    return len(found), found


@seeds(40)
def test_requests_are_those_of_a_plain_walk(seed):
    rng = np.random.default_rng(seed)
    n, owners = int(rng.integers(0, 12)), 3
    owner, t = rng.integers(0, owners, n), rng.integers(1, 15, n)
    if seed % 4:
        order = np.lexsort((t, owner))
        owner, t = owner[order], t[order]
    asked, last, most = rng.random(n) < 0.7, rng.integers(0, 6, owners), int(rng.integers(2, 12))
    requests = np.full((6, 2 * n), -7)
    count, found = requested(owner.tolist(), t.tolist(), asked.tolist(), last.tolist(), most)
    assert rows.lay_out(owner, t, asked, last, most, requests) == count
    assert [tuple(one) for one in requests[:, : len(found)].T.tolist()] == found


def test_a_row_that_is_stored_asks_for_nothing_and_one_out_of_order_is_named():
    requests = np.zeros((6, 6), dtype=np.int64)
    asked, none, owner = np.ones(3, dtype=bool), np.array([0]), np.zeros(3, dtype=np.int64)
    assert rows.lay_out(owner, np.array([1, 2, 3]), asked, np.array([3]), 9, requests) == 0
    assert rows.lay_out(owner, np.array([1, 3, 3]), asked, none, 9, requests) == -1 - 2
    assert rows.lay_out(owner, np.array([1, 2, 99]), asked, none, 9, requests) == -1 - 3 - 2


def reached(owner, microseconds, lat, lon, limit):
    """Which points are kept, with distances from the angle between vectors."""
    kept, last = [], None
    for i in range(len(owner)):
        if not (math.isfinite(lat[i]) and math.isfinite(lon[i])):
            kept.append(True)
            continue
        if last is not None and owner[last] == owner[i]:
            a, b = (
                np.array([math.cos(lat[k]) * math.cos(lon[k]), math.cos(lat[k]) * math.sin(lon[k]), math.sin(lat[k])])
                for k in (last, i)
            )
            metres = RADIUS * 2 * math.asin(min(1.0, float(np.linalg.norm(a - b)) / 2))
            if metres > limit * (microseconds[i] - microseconds[last]) / 1e6:
                kept.append(False)
                continue
        kept.append(True)
        last = i
    return kept


@seeds(20)
def test_a_speed_limit_leaves_what_a_plain_walk_leaves(seed):
    rng = np.random.default_rng(seed)
    owner, microseconds = np.sort(rng.integers(0, 3, 30)), np.sort(rng.integers(0, 10**10, 30))
    lat, lon = rng.normal(0.9, 0.002, 30), rng.normal(0.2, 0.002, 30)
    lat[rng.random(30) < 0.1] = np.nan
    kept = rows.keep_below_speed(owner, microseconds, lat, lon, 25.0, RADIUS)
    assert kept.tolist() == reached(owner, microseconds, lat, lon, 25.0)
    assert 0 < kept.sum() < 30


@pytest.mark.parametrize("width", [np.int8, np.int32, np.int64])
def test_rows_are_brought_together_by_owner_in_the_order_that_they_had(width):
    rng = np.random.default_rng(3)
    owner = rng.integers(0, 5, 60).astype(width)
    columns = [np.arange(60), rng.normal(size=60), rng.integers(0, 9, 60).astype(np.int16)]
    order = np.argsort(owner, kind="stable")
    expected = [column[order] for column in columns]
    begins = np.searchsorted(owner[order], np.arange(5))
    rows.places_of_rows(owner, begins)
    for column, moved in zip(columns, expected, strict=True):
        rows.move(owner, column)
        np.testing.assert_array_equal(column, moved)


def test_no_rows_are_moved_nowhere():
    nothing = np.zeros(0, dtype=np.int64)
    rows.move(nothing, nothing)
