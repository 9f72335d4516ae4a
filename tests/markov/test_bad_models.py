"""Options of a model that are wrong. Bad matrices and distributions are in the catalogue (tests/faults)."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.markov import MarkovModel
from dphmm.markov.hidden.parameters import checked

NAN = float("nan")
FAIR = [[0.5, 0.5], [0.5, 0.5]]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("start", "now"),
        ("step", 0),
        ("step", 1.5),
        ("step", True),
        ("step", "5min"),
        ("step", 10**13),
        ("provenance", []),
    ],
)
def test_options_are_checked(field, value):
    with pytest.raises(InvalidInput, match=field):
        MarkovModel([1, 0], FAIR, **{field: value})


@pytest.mark.parametrize("provenance", [{"x": NAN}, {"x": object()}])
def test_provenance_must_be_json(provenance):
    with pytest.raises(InvalidInput, match="provenance"):
        MarkovModel([1, 0], FAIR, provenance=provenance)


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
