"""The likeliest path of a chain, one move at a time, is that of a record; paths are drawn in proportion.

Both loops are held against all paths written out. Fails where one of them takes a row for a column, forgets the symbol
of the first position, or follows pointers of another position; or where a state of probability 0 is drawn.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import sparse

import naive_hmm
from dphmm._kernels import paths
from dphmm._kernels.hmm import Matrix

S, V, T = 4, 3, 6


def logs(values):
    with np.errstate(divide="ignore"):
        return np.log(values)


def made(seed):
    rng = np.random.default_rng(seed)
    initial, transition, emission = naive_hmm.random_model(rng, S, V, zeros=0.3)
    # A symbol that every state can emit keeps some path possible.
    return initial, transition, emission, rng.integers(0, V, T)


def of_record(initial, transition, emission, symbols):
    """`best_paths` and `trace` over a dense matrix."""
    none = np.zeros(0, dtype=np.int64)
    best, pointers, path = logs(initial), np.zeros((T, S), dtype=np.int64), np.empty(T, dtype=np.int64)
    moves = Matrix(logs(transition), none, none, np.zeros(0))
    assert paths.best_paths(best, moves, logs(np.ascontiguousarray(emission.T)), symbols, 1, pointers) == -1
    paths.trace(pointers, int(np.argmax(best)), path)
    return path


def of_chain(initial, transition, emission, symbols):
    """`observe`, `viterbi` and `trace_moves` over compressed columns, one move between observations."""
    columns = sparse.csc_array(transition)
    table, logged = logs(np.ascontiguousarray(emission.T)), np.ones(V, dtype=bool)
    row = logs(initial)
    assert paths.observe(row, table[symbols[0]], True) > -np.inf
    pointers, path = np.zeros((T - 1, S), dtype=np.int32), np.zeros(T, dtype=np.int64)
    cycles, ends = np.zeros((T - 1, 2), dtype=np.int64), np.zeros(T - 1, dtype=np.int64)
    matrix = (columns.indptr.astype(np.uint64), columns.indices.astype(np.uint64), logs(columns.data), np.zeros(0), 0.0)
    moves = np.ones(T - 1, dtype=np.int64)
    count, reached, moved = paths.viterbi(*matrix, table, logged, symbols[1:], moves, row, 0, pointers, cycles, ends)
    assert (count, reached, moved) == (T - 1, T - 1, 0)
    path[0] = paths.trace_moves(pointers, cycles, ends, count, int(np.argmax(row)), path[1:])
    return path


@pytest.mark.parametrize("find", [of_record, of_chain])
@pytest.mark.parametrize("seed", range(6))
def test_no_path_is_likelier(seed, find):
    *model, symbols = made(seed)
    every = [naive_hmm.path_probability(*model, symbols, path) for path in product(range(S), repeat=T)]
    found = find(*model, symbols)
    assert max(every) > 0
    assert naive_hmm.path_probability(*model, symbols, found) == pytest.approx(max(every), rel=1e-12)


def test_an_entry_is_picked_where_the_uniform_number_falls():
    weights = np.array([0.0, 0.5, 0.0, 1.5, 0.0])
    assert [paths.pick(weights, u) for u in (0.0, 0.24, 0.26, 1 - 2.0**-53)] == [1, 1, 3, 3]


def test_simulated_states_follow_the_entries_of_a_row():
    """From state 0 one goes to 2 only, and from 2 to 0 or 1: no state is left by a move that is not stored."""
    rows = sparse.csr_array(np.array([[0, 0, 1.0], [0, 1.0, 0], [0.5, 0.5, 0]]))
    matrix = Matrix(np.zeros((0, 0)), rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data)
    uniforms = np.array([[0.0, 0.9], [0.3, 0.1], [0.4, 0.2], [0.3, 0.3], [0.6, 0.4], [0.9, 0.5]])
    states, symbols = np.zeros(6, dtype=np.int64), np.zeros(6, dtype=np.int64)
    paths.simulate(matrix, np.eye(3), uniforms, states, symbols)
    assert states.tolist() == [0, 2, 0, 2, 1, 1]
    assert symbols.tolist() == states.tolist()
