"""Every bad input of RELIABILITY 5.1 that concerns the model, by its number, refused in one line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.markov import MarkovModel

NAN, INF = float("nan"), float("inf")
FAIR = [[0.5, 0.5], [0.5, 0.5]]


def three(row: int, values: list[float]) -> list[list[float]]:
    rows = [[0.5, 0.25, 0.25] for _ in range(3)]
    rows[row] = values
    return rows


def broken_sparse() -> sparse.csr_array:
    matrix = sparse.csr_array(np.eye(2))
    matrix.indices[1] = 7
    return matrix


def broken_columns() -> sparse.csc_array:
    matrix = sparse.csc_array(np.eye(2))
    matrix.indices[1] = -3
    return matrix


# number: (initial, transition, what the one line must contain)
REFUSED = {
    "1 sum": ([1, 0, 0], three(1, [0.5, 0.25, 0.23]), ["transition[1]", "row sum 0.98", "sum of 1"]),
    "1 sum above": ([1, 0, 0], three(2, [0.5, 0.25, 0.25 + 3e-9]), ["transition[2]", "1.000000003"]),
    "3 negative": ([1, 0, 0], three(2, [1.0, -1e-17, 0.0]), ["transition[2, 1]", "-1e-17"]),
    "3 negative single": ([1, 0], np.float32([[1, 0], [-1e-30, 1]]), ["transition[1, 0]", "e-30"]),
    "3 above one": ([1, 0], [[3, 1], [1, 1]], ["transition[0, 0]", "got 3", "at most 1"]),
    "4 nan": ([1, 0, 0], three(0, [NAN, 0.5, 0.5]), ["transition[0, 0]", "nan"]),
    "5 inf": ([1, 0, 0], three(1, [0.5, INF, 0.5]), ["transition[1, 1]", "inf"]),
    "5 minus inf": ([1, 0, 0], three(1, [0.5, 0.5, -INF]), ["transition[1, 2]", "-inf"]),
    "5 overflow": ([1, 0, 0], three(1, [1e308, 1e308, 1e308]), ["transition[1, 0]", "1e+308"]),
    "6 zero row": ([1, 0, 0], three(2, [0, 0, 0]), ["transition[2]", "zeros", "transition[2, 2] = 1"]),
    "12 one state": ([1], [[1.0]], ["1 state", "no other state to hide among"]),
    "13 no state": ([], [], ["0 states"]),
    "13 no state, square": ([], np.zeros((0, 0)), ["0 states"]),
    "13 no state, one row": ([], [[]], ["0 states"]),
    "15 not square": ([1, 0], [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0]], ["shape (2, 3)", "square"]),
    "15 ragged": ([1, 0], [[0.5, 0.5], [1.0]], ["transition", "different lengths"]),
    "15 flat": ([1, 0], [1.0, 0.0], ["shape (2,)", "square"]),
    "15 cube": ([1, 0], np.full((2, 2, 2), 0.5), ["shape (2, 2, 2)"]),
    "15 sparse": ([1, 0], sparse.csr_array((2, 3)), ["shape (2, 3)"]),
    "19 sum": ([0.5, 0.4], FAIR, ["initial", "sum 0.9"]),
    "19 zeros": ([0, 0], FAIR, ["initial", "sum 0"]),
    "19 negative": ([1.0, -1e-17], FAIR, ["initial[1]", "-1e-17"]),
    "19 nan": ([NAN, 1.0], FAIR, ["initial[0]", "nan"]),
    "19 inf": ([INF, 1.0], FAIR, ["initial[0]", "inf"]),
    "19 shape": ([1, 0, 0], FAIR, ["initial", "shape (3,)", "(2,)"]),
    "19 column": ([[1], [0]], FAIR, ["initial", "shape (2, 1)"]),
    "19 ragged": ([[1], [0, 1]], FAIR, ["initial", "different lengths"]),
    "19 text": (["1", "0"], FAIR, ["initial", "dtype"]),
    "19 bool": ([True, False], FAIR, ["initial", "dtype bool"]),
    "23 object": ([1, 0], np.array(FAIR, dtype=object), ["transition", "dtype object"]),
    "23 text": ([1, 0], [["1", "0"], ["0", "1"]], ["transition", "dtype <U1"]),
    "23 bool": ([1, 0], np.eye(2, dtype=bool), ["transition", "dtype bool"]),
    "23 sparse bool": ([1, 0], sparse.csr_array(np.eye(2, dtype=bool)), ["transition", "dtype bool"]),
    "23 complex": ([1, 0], np.eye(2, dtype=complex), ["transition", "dtype complex128"]),
    "23 half": ([1, 0], np.eye(2, dtype=np.float16), ["transition", "dtype float16"]),
    "23 none": ([1, 0], None, ["transition", "dtype object"]),
    "23 masked": ([1, 0], np.ma.masked_equal(np.eye(2), 0), ["transition", "masked"]),
    "24 dense": ([1], np.broadcast_to(0.0, (20_001, 20_001)), ["20001", "3.2 GB", "scipy.sparse"]),
    "25 hidden negative": (
        [1, 0],
        sparse.coo_array(([0.6, -0.1, 0.5, 1.0], ([0, 0, 0, 1], [0, 0, 1, 0])), shape=(2, 2)),
        ["transition[0, 0]", "-0.1"],
    ),
    "25 stored nan": ([1, 0], sparse.csr_array(np.array([[NAN, 1.0], [0, 1]])), ["transition[0, 0]"]),
    "25 explicit zero row": (
        [1, 0],
        sparse.coo_array(([1.0, 0.0], ([0, 1], [1, 1])), shape=(2, 2)),
        ["transition[1]", "zeros"],
    ),
    "25 broken rows": ([1, 0], broken_sparse(), ["transition", "broken sparse matrix"]),
    "25 broken columns": ([1, 0], broken_columns(), ["transition", "broken sparse matrix"]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_line(case):
    initial, transition, said = REFUSED[case]
    with pytest.raises(InvalidInput) as refusal:
        MarkovModel(initial, transition)
    message = str(refusal.value)
    assert "\n" not in message
    for part in said:
        assert part in message


# number: (initial, transition, sentences the notes must contain; none means none at all)
ACCEPTED = {
    "2 nearly one": ([1, 0], [[0.5, 0.5 + 1e-12], [0.5, 0.5]], ["1 row of the transition matrix rescaled"]),
    "7 absorbing": ([1, 0], [[0.5, 0.5], [0, 1]], ["1 absorbing state (1)"]),
    "8 identity": ([1, 0], np.eye(2), ["every state is absorbing", "2 closed classes", "1 state (1)"]),
    "9 classes": (
        [0.5, 0, 0.5, 0],
        np.kron(np.eye(2), np.full((2, 2), 0.5)),
        ["2 closed classes"],
    ),
    "10 unreachable": ([0, 1, 0], [[0, 1, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]], ["1 state (0) that no path"]),
    "11 periodic": ([1, 0], [[0, 1], [1, 0]], []),
    "14 two states": ([0.5, 0.5], FAIR, []),
    "20 unit start": ([0, 1], FAIR, []),
    "22 single": ([1, 0], np.full((2, 2), 0.5, dtype=np.float32) + np.float32(6e-8), ["2 rows"]),
    "23 integers": ([1, 0], [[0, 1], [1, 0]], []),
    "28 not private": ([1, 0], FAIR, ["fitted without privacy"]),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted_with_these_notes(case):
    initial, transition, said = ACCEPTED[case]
    provenance = {"private": False} if case.startswith("28") else None
    model = MarkovModel(initial, transition, provenance=provenance)
    assert len(model.notes) == len(said)
    for sentence, part in zip(model.notes, said, strict=True):
        assert part in sentence


def test_single_precision_has_its_own_tolerance_and_double_has_not():
    rows = np.float32([[0.5, 0.5 + 5e-7], [0.5, 0.5]])
    model = MarkovModel([1, 0], rows)
    assert model.transition.sum(axis=1) == pytest.approx([1, 1], abs=1e-15)
    with pytest.raises(InvalidInput, match=r"transition\[0\]"):
        MarkovModel([1, 0], rows.astype(np.float64))
    with pytest.raises(InvalidInput, match=r"transition\[0\]"):
        MarkovModel([1, 0], np.float32([[0.5, 0.5 + 2e-6], [0.5, 0.5]]))


@pytest.mark.parametrize(
    ("field", "value"),
    [("start", "now"), ("step", 0), ("step", 1.5), ("step", True), ("step", "5min"), ("provenance", [])],
)
def test_options_are_checked(field, value):
    with pytest.raises(InvalidInput, match=field):
        MarkovModel([1, 0], FAIR, **{field: value})


@pytest.mark.parametrize("provenance", [{"x": NAN}, {"x": object()}])
def test_provenance_must_be_json(provenance):
    with pytest.raises(InvalidInput, match="provenance"):
        MarkovModel([1, 0], FAIR, provenance=provenance)
