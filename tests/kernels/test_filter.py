"""Moves of one filter: the same numbers for one row and for eight, in floats and in logs, with and without a jump.

Each product is compared with one written out with a dense matrix. Fails where a row of eight is summed in another
order, where a jump lands on the wrong side, or where a possible state becomes 0 in floats or -inf in logs.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dphmm._kernels import filter as kernels

N = 23


def columns_of(dense):
    found = sparse.csc_array(dense)
    return found.indptr.astype(np.uint64), found.indices.astype(np.uint64), found.data


def chain(seed):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((N, N)) < 0.3, rng.random((N, N)), 0.0) + np.eye(N) * 0.1
    return rng, dense / dense.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(3))
def test_eight_rows_have_the_bits_of_one(seed):
    rng, dense = chain(seed)
    rows, together, alone = rng.random((8, N)), np.empty((8, N)), np.empty(N)
    assert kernels.times_interleaved(*columns_of(dense), np.ascontiguousarray(rows.T), together, 1e-290)
    assert together == pytest.approx(rows @ dense, rel=1e-13)
    for row, found in zip(rows, together, strict=True):
        kernels.times_sparse(*columns_of(dense), row, alone)
        assert np.array_equal(found, alone)


@pytest.mark.parametrize("rate", [0.0, 0.25])
@pytest.mark.parametrize("seed", range(3))
def test_floats_and_logs_predict_the_same(seed, rate):
    rng, dense = chain(seed)
    row = np.where(rng.random(N) < 0.5, rng.random(N), 0.0)
    share = rate * rng.dirichlet(np.ones(N)) if rate else np.zeros(0)
    matrix = (*columns_of((1 - rate) * dense), share)
    expected = (1 - rate) * row @ dense + (row.sum() * share if rate else 0.0)
    out, reached = np.empty(N), np.empty(N, dtype=bool)
    assert kernels.predict(*matrix, row, row > 0, out, reached)
    assert out == pytest.approx(expected, rel=1e-13)
    assert np.array_equal(reached, expected > 0)
    with np.errstate(divide="ignore"):
        logs = kernels.predict_logs(*matrix, np.log(row))
    assert np.array_equal(logs > -np.inf, expected > 0)
    assert np.exp(logs) == pytest.approx(expected, rel=1e-12)


def test_what_floats_lose_logs_keep():
    """A state of 1e-300 moves to a state that nothing else leads to: floats refuse it, logs have it."""
    dense = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    row, out, reached = np.array([1.0, 1e-300, 0.0]), np.empty(3), np.empty(3, dtype=bool)
    matrix = (*columns_of(dense), np.zeros(0))
    assert not kernels.predict(*matrix, row, row > 0, out, reached)
    with np.errstate(divide="ignore"):
        logs = kernels.predict_logs(*matrix, np.log(row))
    assert logs.tolist() == [0.0, -np.inf, pytest.approx(np.log(1e-300), rel=1e-14)]


@pytest.mark.parametrize("seed", range(3))
def test_a_jump_is_one_rank_in_both_directions(seed):
    """Forward (sum of p) share, backward 1 (share·row): the two products of one matrix with a row and a column."""
    rng, dense = chain(seed)
    share, none, row = 0.2 * rng.dirichlet(np.ones(N)), np.zeros(0), rng.random(N)
    whole, out = 0.8 * dense + share, np.empty(N)
    assert not kernels.propagate(*columns_of(0.8 * dense), none, share, row, False, out)
    assert out == pytest.approx(row @ whole, rel=1e-13)
    assert not kernels.propagate(*columns_of(0.8 * dense.T), share, np.ones(N), row, False, out)
    assert out == pytest.approx(whole @ row, rel=1e-13)
