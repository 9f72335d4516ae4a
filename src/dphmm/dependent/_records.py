"""States of people over time, as tables or arrays, beside what is public: states, times, who depends.

No row of a table decides between an answer and an error. A state that is none of the public ones counts as state 0, a
row without a person or a time counts nowhere, of two rows of one person at one time the last one counts.

Proof: docs/proofs/contributions.md, docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dphmm._checks import whole
from dphmm.dependent._chain import Chain
from dphmm.dependent._contributions import first_of_each, last_of_each, people, whole_numbers
from dphmm.errors import InvalidInput
from dphmm.types import IntArray


@dataclass(frozen=True, eq=False)
class Records:
    """One row for each record: whose, when (from 0, below ``n_times``), and the state."""

    user: IntArray
    time: IntArray
    state: IntArray
    n_states: int
    n_times: int

    @classmethod
    def of(cls, table: Any, n_states: int, n_times: int | None = None, most: int | None = None) -> Records:
        """From a DataFrame with columns user, t, state; or states (T,) of one person, or (U, T), −1 for none.

        ``n_times``: the public number of times, records at others are left out; without it that of the table.
        ``most``: only so many records of each person count, the first ones in time.
        """
        k = whole(n_states, "n_states", 1)
        if hasattr(table, "columns"):
            user, time, state, there = _of_a_frame(table)
        else:
            user, time, state, there = _of_an_array(table)
        if n_times is None:
            n_times = max(there, 1)
        else:
            n_times = whole(n_times, "n_times", 1)
            inside = time < n_times
            user, time, state = user[inside], time[inside], state[inside]
        if most is not None:
            kept = first_of_each(user, most, time)
            user, time, state = user[kept], time[kept], state[kept]
        return cls(user, time, np.where((state < 0) | (state >= k), 0, state), k, n_times)

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


def _of_a_frame(table: Any) -> tuple[IntArray, IntArray, IntArray, int]:
    """Whose each record is, when, which state (any number), and how many times there are."""
    # Of an Arrow table ``columns`` are the cells.
    names = list(table.column_names if hasattr(table, "column_names") else table.columns)
    for column in ("user", "t", "state"):
        if column not in names:
            raise InvalidInput("table", f"columns {names}", "columns user, t, state")
    user = people(table["user"])
    time, timed = whole_numbers(table["t"], "t")
    state, named = whole_numbers(table["state"], "state")
    counts = (user >= 0) & timed & (time >= 0)
    user, time, state = user[counts], time[counts], np.where(named, state, -1)[counts]
    last = last_of_each(user, time)
    return user[last], time[last], state[last], int(time.max(initial=-1)) + 1


def _of_an_array(table: Any) -> tuple[IntArray, IntArray, IntArray, int]:
    given = np.asarray(table)
    if given.ndim not in (1, 2) or given.dtype.kind not in "biufO":
        raise InvalidInput("table", f"shape {given.shape}, {given.dtype}", "integer states (T,) or (U, T)")
    found, named = whole_numbers(np.atleast_2d(given), "table")
    # What is no number is a record of some state; only −1 says that there is none.
    states = np.where(named, found, -2)
    user, time = np.nonzero(states != -1)
    return user.astype(np.int64), time.astype(np.int64), states[user, time], states.shape[1]
