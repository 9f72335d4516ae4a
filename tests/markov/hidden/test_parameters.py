"""What a fit remembers of its parameters: equal numbers are the same however they are stored, others never.

It could fail by taking a copy of learned parameters for a public start (other digests for equal numbers), by taking
changed ones for what the fit left (equal digests for other numbers), or by making a large sparse table dense.
"""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from dphmm.markov.hidden.parameters import _digest

ROWS = np.array([[0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [1 / 3, 1 / 3, 1 / 3]])
TWICE = sparse.coo_array(([0.25, 0.25, 0.5], ([0, 0, 1], [0, 0, 1])), shape=(2, 2))


@pytest.mark.parametrize(
    "stored",
    [
        ROWS.tolist(),
        np.asfortranarray(ROWS),
        ROWS.astype(">f8"),
        np.where(ROWS == 0, -0.0, ROWS),
        sparse.csr_array(ROWS),
        sparse.csc_matrix(ROWS),
        sparse.coo_array(ROWS),
        sparse.csr_array((np.array([0.5, 0.0, 0.5, 1.0, *[1 / 3] * 3]), [0, 1, 2, 2, 2, 1, 0], [0, 3, 4, 7])),
    ],
    ids=["list", "columns first", "big endian", "minus zeros", "csr", "csc", "coo", "kept zeros, out of order"],
)
def test_equal_numbers_have_one_digest(stored):
    assert _digest(stored) == _digest(ROWS)


def test_entries_given_in_parts_are_their_sum():
    assert _digest(TWICE) == _digest(np.diag([0.5, 0.5]))


def test_a_row_of_its_own_is_the_same_dense_and_sparse():
    assert _digest(sparse.coo_array(ROWS[0])) == _digest(ROWS[0])


@pytest.mark.parametrize(
    "other",
    [ROWS.T, ROWS[:2], ROWS[:, :2], ROWS[0], ROWS[None], np.nextafter(ROWS, 1.0), -ROWS, "text", None],
    ids=["turned", "a row less", "a column less", "one row", "one table", "an ulp", "negative", "text", "nothing"],
)
def test_other_numbers_have_another_digest(other):
    assert _digest(other) != _digest(ROWS)


def test_one_row_is_no_table_of_one_row():
    assert _digest(ROWS[0]) != _digest(ROWS[:1])


def test_a_large_sparse_table_is_never_made_dense():
    n = 30_000
    moves = sparse.csr_array((np.ones(n), (np.arange(n), np.arange(n)[::-1])), shape=(n, n))
    tracemalloc.start()
    _digest(moves)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100 * n  # dense, it would be 8 * n * n
