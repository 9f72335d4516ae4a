"""Moves of people side by side are those of each by the full matrix, and their summaries those of each.

Fails for a sum that takes a number of a neighbour, a jump that is forgotten, and a tie that goes to another state.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dphmm._kernels import smoothing

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
