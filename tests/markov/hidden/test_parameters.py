"""What a fit remembers of its parameters: equal numbers are the same however they are stored, others never.

It could fail by taking a copy of learned parameters for a public start (other digests for equal numbers), by taking
changed ones for what the fit left (equal digests for other numbers), or by making a large sparse table dense.

What is taken for sequences of symbols, and what is refused: by place, without the symbol.

Claims: every form of the same sequences gives the same observations; bad input is one line that names the field or
the sequence and position, and never holds a symbol. Fails with lengths cut off by one, or with a symbol in a message.
"""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.markov.hidden.parameters import _digest, observations

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


RAGGED = st.lists(st.lists(st.integers(0, 9), min_size=2, max_size=6), min_size=1, max_size=9)


@given(RAGGED)
def test_every_form_of_the_same_sequences(sequences):
    flat, lengths = np.concatenate(sequences), [len(sequence) for sequence in sequences]
    forms = [
        observations(sequences),
        observations(tuple(np.array(sequence, dtype=np.uint8) for sequence in sequences)),
        observations(flat, lengths),
        observations(flat[:, None], np.array(lengths)),
        observations(flat.astype(np.int16).tolist(), lengths),
    ]
    for found in forms:
        assert found.symbols.dtype == np.int64
        assert found.lengths.tolist() == lengths
        assert [found.sequence(k).tolist() for k in range(found.n_sequences)] == sequences
        assert found.n_symbols == max(flat) + 1


def test_object_arrays_are_lists_of_sequences():
    given = np.empty(2, dtype=object)
    given[:] = [[0, 1], [2]]
    assert observations(given).lengths.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("x", "lengths", "field"),
    [
        ([], None, "X"),
        ([[0, 1], []], None, "X[1]"),
        ([[0, 1], [77, -1]], None, "X, sequence 1, position 0 (from 0)"),
        ([[0, 1], [0.5, 77.0]], None, "X[1], position 0 (from 0)"),
        ([[0, 1], "ab"], None, "X"),
        ([77, 0, -1], [1, 2], "X, sequence 0, position 0 (from 0)"),
        ([7, 0, -1], [1, 2], "X, sequence 1, position 1 (from 0)"),
        (np.zeros((3, 2), dtype=int), None, "X"),
        (np.array([2**63 + 77], dtype=np.uint64), None, "X"),
        ("0101", None, "X"),
        (None, None, "X"),
        ([0, 1], [3], "lengths"),
        ([0, 1], [], "lengths"),
        ([0, 1], [2, 0], "lengths[1]"),
        ([0, 1], [1.0, 1.0], "lengths"),
        ([0, 1], 2, "lengths"),
        ([0, 1], [[1], [1, 2]], "lengths"),
        ([[0, 1], [1]], [2, 1], "X"),
    ],
)
def test_bad_input_is_one_line_that_names_the_field(x, lengths, field):
    with pytest.raises(InvalidInput) as caught:
        observations(x, lengths, 10)
    assert caught.value.field == field
    assert "\n" not in str(caught.value)
    assert "77" not in str(caught.value)
    assert "99" not in str(caught.value)
