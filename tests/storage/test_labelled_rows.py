"""Pairs of a state and a symbol: a number of the public names, and no row decides about another one."""

from __future__ import annotations

import pyarrow as pa
import pytest

from dphmm.errors import InvalidInput
from dphmm.states import StateSpace
from dphmm.storage import labelled_rows
from dphmm.storage.labelled_rows import PAIR, Labelled, names_in
from dphmm.storage.trajectories import load_trajectories

BOTH = Labelled(("place", StateSpace.categories(["b", "a"])), ("seen", StateSpace.categories(["1", "2", "3"])))
ROWS = [("a", 3), ("b", 1), ("x", 1), ("a", 9), ("a", None), (None, 2), ("b", 2)]


def table(rows):
    return pa.table({"user": ["u"] * len(rows), "place": [p for p, _ in rows], "seen": pa.array([s for _, s in rows])})


def test_a_pair_is_a_number_of_public_names_alone():
    assert names_in(table(ROWS), "place").names == ("a", "b", "x")
    found = load_trajectories(BOTH.rows(table(ROWS)), state_column=PAIR)
    read = ["5", "0", "-", "-", None, None, "1"]
    assert found.trajectories.state.tolist() == read
    assert found.rejected.column("row").to_pylist() == [5, 6]
    states, symbols = BOTH.apart([BOTH.space.indices_of(["5", "0", "1"])])
    assert states[0].tolist() == [1, 0, 0] and symbols[0].tolist() == [2, 0, 1]
    for k in range(len(ROWS)):
        # Whatever one row is, the others are what they were.
        others = load_trajectories(BOTH.rows(table([*ROWS[:k], ("x", 7), *ROWS[k + 1 :]])), state_column=PAIR)
        assert others.trajectories.state.tolist() == [*read[:k], "-", *read[k + 1 :]]


def test_a_column_that_is_not_there_and_too_many_pairs_are_refused(monkeypatch):
    with pytest.raises(InvalidInput, match="seen: got no such column; expected one of user, place"):
        BOTH.rows(table(ROWS).drop_columns("seen"))
    monkeypatch.setattr(labelled_rows, "MOST_PAIRS", 5)
    with pytest.raises(InvalidInput, match="states: got 6 pairs with a symbol; expected at most 5"):
        Labelled(BOTH.states, BOTH.symbols)
