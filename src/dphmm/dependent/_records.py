"""States of people over time, as tables or arrays, checked against what is public: states, times, who depends.

Which (person, time) pairs there are is public; only the states are not. So a message may name a place in the table,
and never what stands there.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dphmm._checks import whole
from dphmm.dependent._chain import Chain
from dphmm.errors import InvalidInput
from dphmm.types import IntArray


@dataclass(frozen=True, eq=False)
class Records:
    """One row for each record: whose, when (from 0), and the state."""

    user: IntArray
    time: IntArray
    state: IntArray
    n_states: int

    @classmethod
    def of(cls, table: Any, n_states: int) -> Records:
        """From a DataFrame with columns user, t, state; or states (T,) of one person, or (U, T), −1 for none."""
        k = whole(n_states, "n_states", 1)
        if hasattr(table, "columns"):
            user, time, state = _of_a_frame(table)
        else:
            user, time, state = _of_an_array(table)
        if len(state) == 0:
            raise InvalidInput("table", "0 records", "at least 1")
        wrong = (state < 0) | (state >= k)
        if wrong.any():
            raise InvalidInput(f"state, row {int(np.argmax(wrong))}", "no state", f"states from 0 to {k - 1}")
        if time.min() < 0:
            raise InvalidInput(f"t, row {int(np.argmin(time))}", int(time.min()), "times from 0")
        once = len(np.unique(np.stack([user, time]), axis=1).T)
        if once < len(state):
            raise InvalidInput("table", "a person with two states at one time", "one row for each person and time")
        return cls(user, time, state, k)

    @property
    def n_times(self) -> int:
        """Times are below this."""
        return int(self.time.max()) + 1

    def check_against(self, dependence: Any) -> None:
        """InvalidInput where the model of dependence is of other records."""
        if isinstance(dependence, Chain):
            if dependence.n < self.n_times or dependence.n_values != self.n_states:
                came = f"a {dependence!r}"
                raise InvalidInput("dependence", came, f"one of {self.n_times} times and {self.n_states} states")
        elif not isinstance(dependence, (str, tuple)) and dependence.n_tuples != len(self.state):
            raise InvalidInput("dependence", f"a {dependence!r}", f"one of the {len(self.state)} records")


def windows_of(windows: Any, n_times: int) -> list[tuple[int, int]]:
    """Time windows [first, end): None for one of all times, a length, or a list of pairs."""
    if windows is None:
        return [(0, n_times)]
    if isinstance(windows, (int, np.integer)) and not isinstance(windows, bool):
        length = whole(windows, "windows", 1)
        return [(first, min(first + length, n_times)) for first in range(0, n_times, length)]
    if not isinstance(windows, Sequence) or not windows:
        raise InvalidInput("windows", windows, "a length, or pairs (first, end)")
    found = []
    for pair in windows:
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise InvalidInput("windows", pair, "pairs (first, end)")
        first, end = whole(pair[0], "windows", 0), whole(pair[1], "windows", 1)
        if first >= end:
            raise InvalidInput("windows", (first, end), "a first time before the end")
        found.append((first, end))
    return found


def _of_a_frame(table: Any) -> tuple[IntArray, IntArray, IntArray]:
    # Of an Arrow table ``columns`` are the cells.
    names = list(table.column_names if hasattr(table, "column_names") else table.columns)
    for column in ("user", "t", "state"):
        if column not in names:
            raise InvalidInput("table", f"columns {names}", "columns user, t, state")
    user = np.unique(np.asarray(table["user"]).astype(str), return_inverse=True)[1]
    return user.astype(np.int64), _integers(table["t"], "t"), _integers(table["state"], "state")


def _of_an_array(table: Any) -> tuple[IntArray, IntArray, IntArray]:
    states = np.asarray(table)
    if states.ndim not in (1, 2) or not np.issubdtype(states.dtype, np.integer):
        raise InvalidInput("table", f"shape {states.shape}, {states.dtype}", "integer states (T,) or (U, T)")
    states = np.atleast_2d(states)
    user, time = np.nonzero(states != -1)
    return user.astype(np.int64), time.astype(np.int64), states[user, time].astype(np.int64)


def _integers(column: Any, field: str) -> IntArray:
    values = np.asarray(column)
    if not np.issubdtype(values.dtype, np.integer):
        raise InvalidInput(field, f"dtype {values.dtype}", "integers")
    return values.astype(np.int64)
