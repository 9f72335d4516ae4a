"""Moves of people side by side are those of each by the full matrix, and their summaries those of each.

Fails for a sum that takes a number of a neighbour, a jump that is forgotten, and a tie that goes to another state.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dphmm._kernels import smoothing
from dphmm.choose.simulated import _in_fours

N = 13


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("moves", [0, 1, 2, 7])
@pytest.mark.parametrize("jumps", [False, True])
@pytest.mark.parametrize("back", [False, True])
def test_moves_are_those_of_the_full_matrix(n, moves, jumps, back):
    rng = np.random.default_rng(moves)
    full = np.where(rng.random((N, N)) < 0.6, rng.random((N, N)), 0.0) + np.eye(N)
    full /= full.sum(axis=1, keepdims=True)
    rows, stays = rng.random((N, n)), rng.random(n) if jumps else np.ones(n)
    scales, share = 1.0 / rows.sum(axis=0), rng.dirichlet(np.ones(N), n).T[: N if jumps else 0] * (1.0 - stays)
    found = sparse.csr_array(full if back else full.T)
    matrix = (found.indptr.astype(np.uint64), found.indices.astype(np.uint64), found.data)
    spare, out = np.empty((N, n)), np.empty((N, n))
    smoothing.move_many(smoothing.JumpChain(*matrix, stays, share, -1.0), back, moves, scales, rows, spare, out)
    for k in range(n):
        whole = stays[k] * full + (np.ones((N, 1)) * share[:, k] if jumps else 0.0)
        expected = np.linalg.matrix_power(whole if back else whole.T, moves) @ rows[:, k] * scales[k]
        assert out[:, k] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("states", [4, 13, 30])
def test_a_matrix_in_blocks_of_four_rows_multiplies_as_itself(states, monkeypatch):
    """States that fill no four, rows without an entry, numbers of blocks that are no multiple of four."""
    monkeypatch.setattr("dphmm.choose.simulated._FILLED", 9)
    rng = np.random.default_rng(states)
    full = np.where(rng.random((states, states)) < 0.6, rng.random((states, states)), 0.0)
    full[states // 2] = 0.0
    fours = _in_fours(sparse.csr_array(full))
    rows, out = rng.random((states, 16)), np.full((states, 16), np.nan)
    smoothing.times_fours(fours, rows, out)
    assert out == pytest.approx(full @ rows, rel=1e-12)
    smoothing.times_fours(fours, rows * smoothing.LEAST / 1e3, out)
    assert not out.any()


def test_rows_without_common_columns_are_not_put_into_blocks():
    assert _in_fours(sparse.csr_array(np.eye(40))) is None
