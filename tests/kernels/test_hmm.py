"""Products of rows of records: dense or sparse, one row or many, they are those of the matrix.

Fails where rows beyond a multiple of 8 are left out, where columns are taken for rows, where an entry that is stored as
0 counts as possible, and where a state of probability 0 is drawn.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dphmm._kernels import hmm
from dphmm._kernels.hmm import Matrix, times
from dphmm.markov.hidden import Parameters, expected_counts, observations


def parameters_of(dense, kind):
    n = len(dense)
    emission = np.full((n, 2), 0.5)
    return Parameters(np.full(n, 1 / n), sparse.csr_array(dense) if kind == "sparse" else dense, emission)


@pytest.mark.parametrize("count", [0, 1, 2, 7, 8, 9, 20])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_rows_times_the_matrix_and_its_transposed(kind, count):
    rng = np.random.default_rng(count)
    dense = np.where(rng.random((6, 6)) < 0.5, rng.random((6, 6)), 0.0)
    parameters, rows = parameters_of(dense, kind), rng.random((count + 2, 6))
    for matrix, whole in ((parameters.forward, dense), (parameters.backward, dense.T)):
        out = np.full((count + 3, 6), -1.0)
        times(rows, 2, count, matrix, out, 1)
        assert out[1 : count + 1] == pytest.approx(rows[2:] @ whole, rel=1e-13)
        assert (np.delete(out, range(1, count + 1), axis=0) == -1.0).all()


def test_a_transition_that_became_impossible_stays_so_in_logs():
    """Learning may leave a stored 0 in a sparse matrix. The symbol 1 is 1e-300 likely, so this record needs logs."""
    moves = sparse.csr_array((np.array([0.0, 1.0, 1.0]), np.array([0, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    emission = np.array([[1.0, 0.0, 0.0], [1e-300, 1e-300, 1.0]])
    found = expected_counts(Parameters(np.array([1.0, 0.0]), moves, emission), observations([[0, 1, 0, 1, 0]]))
    assert found.transition.toarray() == pytest.approx(np.array([[0.0, 2.0], [2.0, 0.0]]))
    assert found.log_likelihood == pytest.approx(2 * np.log(1e-300), rel=1e-13)


def test_an_entry_is_picked_where_the_uniform_number_falls():
    weights = np.array([0.0, 0.5, 0.0, 1.5, 0.0])
    assert [hmm.pick(weights, u) for u in (0.0, 0.24, 0.26, 1 - 2.0**-53)] == [1, 1, 3, 3]


def test_simulated_states_follow_the_entries_of_a_row():
    """From state 0 one goes to 2 only, and from 2 to 0 or 1: no state is left by a move that is not stored."""
    rows = sparse.csr_array(np.array([[0, 0, 1.0], [0, 1.0, 0], [0.5, 0.5, 0]]))
    matrix = Matrix(np.zeros((0, 0)), rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
    uniforms = np.array([[0.0, 0.9], [0.3, 0.1], [0.4, 0.2], [0.3, 0.3], [0.6, 0.4], [0.9, 0.5]])
    states, symbols = np.zeros(6, dtype=np.int64), np.zeros(6, dtype=np.int64)
    hmm.simulate(matrix, np.eye(3), uniforms, states, symbols)
    assert states.tolist() == [0, 2, 0, 2, 1, 1]
    assert symbols.tolist() == states.tolist()
