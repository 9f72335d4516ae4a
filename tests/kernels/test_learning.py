"""Moves that are foreseen of each kind: of every row its share of the total, entry by entry."""

from __future__ import annotations

import numpy as np

from dphmm._kernels import learning


def test_moves_of_a_kind_are_the_shares_of_their_rows():
    rng = np.random.default_rng(1)
    public, kind, other = rng.random(6), np.array([0, 1, 1, 0, 2, 2]), np.array([1, 0, 1, 1, 0, 0])
    starts, factors, others = np.array([0, 2, 5, 6]), rng.random((2, 3)), rng.random((2, 2))
    totals, got = np.array([[3.0, 0.0, 2.0], [1.0, 5.0, 0.0]]), np.zeros((2, 3))
    learning.foreseen(public, starts, kind, other, factors, others, totals, got)
    want = np.zeros((2, 3))
    for slot in range(2):
        for row in range(3):
            entries = range(starts[row], starts[row + 1])
            weights = [public[e] * factors[slot, kind[e]] * others[slot, other[e]] for e in entries]
            for e, weight in zip(entries, weights, strict=True):
                want[slot, kind[e]] += totals[slot, row] * weight / sum(weights)
    assert np.allclose(got, want, rtol=0, atol=1e-14) and np.allclose(got.sum(axis=1), totals.sum(axis=1))
