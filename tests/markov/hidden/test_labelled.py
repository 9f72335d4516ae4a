"""Plain fits to known states: counts by loops, rows that nobody was in, zeros and frozen letters, and bad labels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.markov.hidden import CategoricalHMM
from dphmm.markov.hidden.labelled import labelled_counts


def drawn(seed, n=3, v=4):
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 6, size=7)
    return [random.integers(0, n, k) for k in lengths], [random.integers(0, v, k) for k in lengths]


@pytest.mark.parametrize("seed", range(5))
def test_counts_are_those_of_loops(seed):
    states, symbols = drawn(seed)
    bounds = np.concatenate([[0], np.cumsum([len(s) for s in states])])
    starts, moves, emissions = np.zeros(3, int), np.zeros((3, 3), int), np.zeros((3, 4), int)
    for path, seen in zip(states, symbols, strict=True):
        starts[path[0]] += 1
        for i, j in itertools.pairwise(path):
            moves[i, j] += 1
        for i, symbol in zip(path, seen, strict=True):
            emissions[i, symbol] += 1
    found = labelled_counts(np.concatenate(states), np.concatenate(symbols), bounds, 3, 4)
    for counts, plain in zip(found, (starts, moves, emissions), strict=True):
        np.testing.assert_array_equal(counts, plain)
    hmm = CategoricalHMM(3, n_features=4).fit(symbols, states=states)
    for rows, plain in ((hmm.startprob_[None], starts[None]), (hmm.transmat_, moves), (hmm.emissionprob_, emissions)):
        total = plain.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(rows, np.where(total > 0, plain / np.maximum(total, 1), 1 / rows.shape[1]))
    assert hmm.monitor_.converged and hmm.monitor_.history == []


def test_a_flat_array_with_lengths_is_the_list():
    states, symbols = drawn(1)
    lengths = [len(path) for path in states]
    flat = CategoricalHMM(3, n_features=4).fit(np.concatenate(symbols), lengths, states=np.concatenate(states))
    listed = CategoricalHMM(3, n_features=4).fit(symbols, states=states)
    np.testing.assert_array_equal(flat.transmat_, listed.transmat_)


def test_priors_frozen_letters_zeros_and_sparse_moves_are_heeded():
    hmm = CategoricalHMM(2, n_features=2, params="te", init_params="se", transmat_prior=2.0)
    hmm.transmat_ = sparse.csr_array(np.array([[0.5, 0.5], [0.0, 1.0]]))
    hmm.fit([[0, 1, 1]], states=[[0, 1, 0]])
    assert sparse.issparse(hmm.transmat_)
    np.testing.assert_allclose(hmm.transmat_.toarray(), [[1 / 3, 2 / 3], [0, 1]])
    np.testing.assert_allclose(hmm.emissionprob_, [[0.5, 0.5], [0, 1]])
    np.testing.assert_allclose(hmm.startprob_, [0.5, 0.5])


@pytest.mark.parametrize(
    ("states", "told"),
    [
        ([[0, 1], [0]], "states: got sequences of other lengths"),
        ([[0, 1, 2]], "X, sequence 0, position 2"),
        ([[0, 1, -1]], "a negative number"),
    ],
)
def test_labels_that_do_not_fit_are_refused_in_one_line(states, told):
    with pytest.raises(InvalidInput, match=told) as error:
        CategoricalHMM(2, n_features=2).fit([[0, 1, 1]], states=states)
    assert "\n" not in str(error.value)
