"""Accepted rows are divided by their exact sum once; matrices that are none are refused before scipy reads them.

Fails where a row is divided twice, or by a rounded sum, and where a number of the smallest size is lost. Bad values are
in the catalogue (tests/faults).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.markov import MarkovModel
from dphmm.markov.hidden.parameters import checked
from dphmm.markov.stochastic import distribution, stochastic_matrix

FAIR = [[0.5, 0.5], [0.5, 0.5]]
COUNTS = st.integers(2, 6).flatmap(
    lambda n: st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n).filter(any), min_size=n, max_size=n).map(
        np.array
    )
)


@settings(max_examples=80, deadline=None)
@given(COUNTS, st.floats(-9e-10, 9e-10))
def test_rows_are_divided_by_their_exact_sum_once(counts, error):
    rows = counts / counts.sum(axis=1, keepdims=True) * (1 + error)
    found = stochastic_matrix(rows).matrix
    for exact, stored in zip(rows, found.toarray(), strict=True):
        total = sum(map(Fraction, exact))
        assert abs(sum(map(Fraction, stored)) - 1) < Fraction(1, 2**50)
        for x, y in zip(exact, stored, strict=True):
            assert abs(Fraction(x) / total - Fraction(y)) <= Fraction(y) / 2**50
    again = stochastic_matrix(found)
    assert again.matrix.data.tobytes() == found.data.tobytes()
    assert again.n_rescaled == 0
    assert distribution(distribution(rows[0], len(rows)), len(rows)).tobytes() == found.toarray()[0].tobytes()


def test_the_smallest_number_survives_rescaling():
    assert stochastic_matrix([[1 + 9e-10, 5e-324], [0.5, 0.5]]).matrix.nnz == 4
    assert distribution([1 + 9e-10, 5e-324], 2).tolist() == [1.0, 5e-324]


def test_what_was_rescaled_is_counted():
    found = stochastic_matrix(np.float32([[0.1, 0.9], [0.5, 0.5]]))
    assert found.n_rescaled == 1
    assert 1e-9 < found.worst < 1e-6
    with pytest.raises(InvalidInput, match=r"transition\[0\]: got row sum 1\.0000"):
        stochastic_matrix([[0.1, 0.9 + 1e-8], [0.5, 0.5]])


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csc_array, sparse.csr_matrix])
@pytest.mark.parametrize("within", [10**6, -(10**6)])
def test_index_pointers_that_return_to_nothing_are_refused(kind, within):
    """With the last of them 0 scipy takes the matrix for an empty one, and writes as many entries as the others say."""
    matrix = kind((2, 2))
    matrix.indptr = np.array([0, within, 0])
    with pytest.raises(InvalidInput, match="transition: got a broken sparse matrix"):
        MarkovModel([1, 0], matrix)
    with pytest.raises(InvalidInput, match="transmat_: got a sparse matrix with wrong index arrays"):
        checked(np.array([1.0, 0.0]), matrix, np.array(FAIR), 2, 2)
