"""What is taken for sequences of symbols, and what is refused: by place, without the symbol.

Claims: every form of the same sequences gives the same observations; bad input is one line that names the field or
the sequence and position, and never holds a symbol. Fails with lengths cut off by one, or with a symbol in a message.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.markov.hidden import observations

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
        (np.zeros(0, dtype=int), None, "X"),
        ([[0, 1], []], None, "X[1]"),
        ([[0, 1], [77, -1]], None, "X, sequence 1, position 0 (from 0)"),
        ([[0, 1], [0, -99]], None, "X, sequence 1, position 1 (from 0)"),
        ([[0, 1], [0.5, 77.0]], None, "X[1], position 0 (from 0)"),
        ([[0, 1], "ab"], None, "X"),
        ([[0], [1]], None, "X"),
        ([77, 0, -1], [1, 2], "X, sequence 0, position 0 (from 0)"),
        ([7, 0, -1], [1, 2], "X, sequence 1, position 1 (from 0)"),
        ([0.0, 1.0], None, "X"),
        ([True, False], None, "X"),
        (np.zeros((3, 2), dtype=int), None, "X"),
        (np.array([2**63 + 77], dtype=np.uint64), None, "X"),
        ("0101", None, "X"),
        (None, None, "X"),
        ([0, 1], [3], "lengths"),
        ([0, 1], [1], "lengths"),
        ([0, 1], [], "lengths"),
        ([0, 1], [2, 0], "lengths[1]"),
        ([0, 1], [3, -1], "lengths[1]"),
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
