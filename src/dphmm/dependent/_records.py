"""Records of people over time: states as numbers or from a table, with public states, public times and caps per person.

No row of a table decides between an answer and an error. Of numbers one that is no public state counts as state 0; of
names and places whatever names no public state counts in a last cell of its own. A row without a person or a time
counts nowhere. Of two rows of one person at one time the last one counts. Each person's rows are read by themselves.

Proofs: docs/proofs/contributions.md, docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._checks import whole
from dphmm.accounting.person import key_by
from dphmm.dependent._chain import Chain
from dphmm.dependent._inputs import Called, Rejected, counting, first_of_each, last_of_each, people, whole_numbers
from dphmm.errors import InvalidInput
from dphmm.states.maps import MapSpace, parse_duration
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import MICROSECONDS, ranks
from dphmm.storage.cells import Roles, places_of
from dphmm.storage.columns import Numbering, Times, as_text, integers, plain_type
from dphmm.storage.private_tables import PrivateRows
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd


#: Steps that are kept apart at most.
MOST_TIMES = 10_000_000
#: The cell in which rows count that name no public state.
OTHER = "other"


@dataclass(frozen=True, eq=False)
class Records:
    """One row for each record: the person, the time (from 0, below ``n_times``), and the state."""

    user: IntArray
    time: IntArray
    state: IntArray
    n_states: int
    n_times: int

    @classmethod
    def of(cls, table: Any, n_states: int, n_times: int | None = None, most: int | None = None) -> Records:
        """The records of a DataFrame with columns user, t, state; or of states (T,) of one person, or (U, T), −1: none.

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
            first = first_of_each(user, most, time)
            user, time, state = user[first], time[first], state[first]
        return cls(user, time, np.where((state < 0) | (state >= k), 0, state), k, n_times)

    def check_against(self, dependence: Any) -> None:
        """InvalidInput where the model of dependence is of other records."""
        if isinstance(dependence, Chain):
            if dependence.n < self.n_times or dependence.n_values != self.n_states:
                got = f"a {dependence!r}"
                raise InvalidInput("dependence", got, f"one of {self.n_times} times and {self.n_states} states")
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
    spans = []
    for pair in windows:
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise InvalidInput("windows", pair, "pairs (first, end)")
        first, end = whole(pair[0], "windows", 0), whole(pair[1], "windows", 1)
        if first >= end:
            raise InvalidInput("windows", (first, end), "a first time before the end")
        spans.append((first, end))
    return spans


def windows(given: Any, times: int, option: str) -> list[tuple[int, int]]:
    """Time windows [first, end) within the public times: all of them, a length, or pairs; as text FIRST:END,FIRST:END.

    Raises InvalidInput for a window that is not within 0 to ``times``.
    """
    what = f"a number of steps, or windows FIRST:END,FIRST:END within 0:{times}"
    if given is None:
        return [(0, times)]
    text = str(given) if isinstance(given, (str, int, np.integer)) else ",".join(_pair(pair) for pair in given)
    if re.fullmatch(r"[0-9]{1,9}", text.strip()):
        length = int(text)
        if not 1 <= length <= times:
            raise InvalidInput(option, text, what)
        return [(first, min(first + length, times)) for first in range(0, times, length)]
    spans = []
    for part in text.split(","):
        ends = re.fullmatch(r"\s*([0-9]{1,9}):([0-9]{1,9})\s*", part)
        if ends is None or not int(ends[1]) < int(ends[2]) <= times:
            raise InvalidInput(option, part, what)
        spans.append((int(ends[1]), int(ends[2])))
    return spans


@dataclass(frozen=True)
class Clock:
    """The numbering of steps from 0 to ``times`` - 1: by time bins of ``seconds``, from ``first`` or each own's first.

    ``first``: a moment in microseconds where there are bins, else a step's number; None: every person's own first row.
    ``timezone``: the zone of times without one; None: such rows have no time.
    """

    times: int
    seconds: int | None
    first: int | None
    called: Called
    timezone: str | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any], seconds: int | None, needed: bool, called: Called) -> Clock:
        """From ``times`` (``needed``, or all steps there are), ``step``, ``first``; ``seconds``: those of a model."""
        times, step = given["times"], given["step"]
        if needed or times is not None:
            expected = f"the public number of steps, 1 to {MOST_TIMES}"
            times = counting(times, called("times"), expected, 1, MOST_TIMES)
        if step is not None:
            asked = _seconds(step, called("step"))
            if seconds not in (None, asked):
                raise InvalidInput(called("step"), step, f"{seconds}s, as the model has it, or no {called('step')}")
            seconds = asked
        # Refused before a row is read.
        Times(called("timezone"), given["timezone"])
        return cls(times or MOST_TIMES, seconds, _first(given["first"], seconds, called), called, given["timezone"])

    @property
    def first_step(self) -> int | None:
        """The number of the step that is 0, None where it is each person's own first one."""
        if self.first is None or self.seconds is None:
            return self.first
        return self.first // (self.seconds * MICROSECONDS)

    def check(self, roles: Roles) -> None:
        """Raises InvalidInput if the columns cannot give the steps."""
        if roles.step is not None:
            return
        if self.seconds is None and self.first is not None:
            raise InvalidInput(self.called("first"), self.first, f"a column step, or times and {self.called('step')}")
        if self.seconds is not None and roles.time is None:
            raise InvalidInput("DATA", "no column of times or steps", f"times, for steps of {self.seconds} s")

    def numbered(self, user: IntArray, time: IntArray | None, step: IntArray | None) -> tuple[IntArray, BoolArray]:
        """The step of each row (n,), which may be out of range, and which rows count: of one step the last in time.

        A row's step follows from its person's rows alone.
        """
        order = np.lexsort((user,) if time is None else (time, user))
        person = user[order]
        if step is None and self.seconds is None:
            number = np.empty(len(user), dtype=np.int64)
            number[order] = ranks(person)
            return number, np.ones(len(user), dtype=np.bool_)
        if step is None:
            assert self.seconds is not None and time is not None
            step = np.floor_divide(time, self.seconds * MICROSECONDS)
        counts = np.zeros(len(user), dtype=np.bool_)
        counts[order] = last_of_each(person, step[order])
        if self.first_step is None:
            begun = np.full(int(user.max(initial=-1)) + 1, np.iinfo(np.int64).max)
            np.minimum.at(begun, user, step)
            return step - begun[user], counts
        return step - self.first_step, counts


def records_of(
    rows: PrivateRows, roles: Roles, clock: Clock, space: StateSpace, most: int | None, rejected: Rejected
) -> pd.DataFrame:
    """The records of the public steps, as `Records.of` takes them: user, t, state, all numbers from 0.

    A row that names no public state (another name, none, a place that cannot be read) is in the state after the last
    one. A place outside all states is in the nearest.

    ``rejected`` receives the invalid rows, and those that do not count as they are written; rows beyond the first
    ``most`` of a person are in the table, and are listed.

    Steps that are no bins of times order the rows of a person, and so do whole numbers in their place.
    """
    import pandas as pd

    table = rows.table
    user, bad = Numbering(key_by(rows.spelling)).add(table.column(roles.user), roles.user)
    rejected.add(rows.places[bad], "missing_user")
    time = step = None
    if roles.time is not None:
        moments = roles.step is None and clock.seconds is not None
        column = table.column(roles.time)
        times = Times(roles.time, clock.timezone)
        time, marks = times.add(column) if moments else _order(column, roles.time, clock.timezone)
        for reason, marked in marks.items():
            rejected.add(rows.places[marked], reason)
            bad = bad | marked
    if roles.step is not None:
        step, wrong = integers(table.column(roles.step), roles.step)
        rejected.add(rows.places[wrong], "invalid_step")
        bad = bad | wrong
    read = np.flatnonzero(~bad)
    steps, counts = clock.numbered(user[read], _at(time, read), _at(step, read))
    rejected.add(rows.places[read[~counts]], "same_step")
    inside = (steps >= 0) & (steps < clock.times)
    rejected.add(rows.places[read[counts & ~inside]], "outside_the_public_steps")
    counted = read[counts & inside]
    state, public = _states(rows, roles, counted, space)
    rejected.add(rows.places[counted[~public]], "invalid_place" if by_place(roles, space) else "unknown_state")
    whose, when = user[counted], steps[counts & inside]
    if most is not None:
        rejected.add(rows.places[counted][~first_of_each(whose, most, when)], "beyond_max_rows")
    return pd.DataFrame({"user": whose, "t": when, "state": state})


def _order(column: Any, field: str, timezone: str | None) -> tuple[IntArray, dict[str, BoolArray]]:
    """Numbers (n,) that rows of one person are ordered by: times, or whole numbers; marked as of `Times.add`.

    A cell is read by itself. Raises InvalidInput for a column whose type has neither.
    """
    import pyarrow as pa

    kind = plain_type(column).type
    if pa.types.is_integer(kind):
        numbers, bad = integers(column, field)
        return numbers, {"invalid_time": bad}
    # Every zone puts times without a zone in the same order.
    time, marks = Times(field, timezone or "UTC").add(column)
    if not pa.types.is_string(kind):
        return time, marks
    numbers, bad = integers(column, field)
    plain = ~bad & np.logical_or.reduce(list(marks.values()))
    return np.where(plain, numbers, time), {reason: marked & ~plain for reason, marked in marks.items()}


def _states(rows: PrivateRows, roles: Roles, counted: IntArray, space: StateSpace) -> tuple[IntArray, BoolArray]:
    """The state (n,) that each of the ``counted`` rows is in, and True where the row itself gives it."""
    states = np.full(len(counted), -1, dtype=np.int64)
    if by_place(roles, space):
        assert isinstance(space, MapSpace) and roles.lat is not None and roles.lon is not None
        lat, lon, bad = places_of(rows.table, roles.lat, roles.lon)
        good = np.flatnonzero(~bad[counted])
        states[good] = states_of_places(space, lat[counted[good]], lon[counted[good]])
    else:
        assert roles.state is not None
        cells = as_text(rows.table.column(roles.state), roles.state).take(counted).to_pylist()
        numbers = {name: space.index_of(name) for name in set(cells) if name is not None}
        states[:] = [numbers.get(name, -1) for name in cells]
    return np.where(states < 0, space.n_states, states), states >= 0


def other_cell(names: Sequence[str]) -> str:
    """The name of the last cell: "other", in brackets as often as it takes to be the name of no public state.

    >>> other_cell(["home"]), other_cell(["home", "other"])
    ('other', '(other)')
    """
    return new_name(names, OTHER)


def new_name(names: Sequence[str], name: str) -> str:
    """A name in brackets as often as it takes to be none of these names."""
    taken = set(names)
    while name in taken:
        name = f"({name})"
    return name


def states_of_places(space: MapSpace, lat: FloatArray, lon: FloatArray) -> IntArray:
    """The state (n,) of each place; of one outside all states the nearest."""
    states = np.asarray(space.locate(lat, lon)).astype(np.int64)
    outside = states < 0
    states[outside] = space.nearest(lat[outside], lon[outside])
    return states


def by_place(roles: Roles, space: StateSpace) -> bool:
    """True if places say the states."""
    return space.on_map and roles.lat is not None


def _at(column: IntArray | None, rows: IntArray) -> IntArray | None:
    return None if column is None else column[rows]


def _of_a_frame(table: Any) -> tuple[IntArray, IntArray, IntArray, int]:
    """The person, the time and the state (any number) of each record, and the number of times."""
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
    cells = np.asarray(table)
    if cells.ndim not in (1, 2) or cells.dtype.kind not in "biufO":
        raise InvalidInput("table", f"shape {cells.shape}, {cells.dtype}", "integer states (T,) or (U, T)")
    numbers, named = whole_numbers(np.atleast_2d(cells), "table")
    # A cell without a number is a record of some state; only −1 is no record.
    states = np.where(named, numbers, -2)
    user, time = np.nonzero(states != -1)
    return user.astype(np.int64), time.astype(np.int64), states[user, time], states.shape[1]


def _pair(pair: Any) -> str:
    return ":".join(map(str, pair)) if isinstance(pair, (tuple, list)) else str(pair)


def _seconds(given: Any, option: str) -> int:
    """Whole seconds; of a text the unit must be there."""
    if isinstance(given, str) and re.fullmatch(r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?", given.strip()):
        raise InvalidInput(option, given, "a unit after the number, s, min, h or d: 30s or 5min")
    return parse_duration(given, option)


def first_text(given: Any) -> str | None:
    """Step 0 as text: a number or a time; None if it is not set."""
    if given is None:
        return None
    return given.isoformat() if isinstance(given, datetime.datetime) else str(given)


def _first(given: Any, seconds: int | None, called: Called) -> int | None:
    option, text = called("first"), first_text(given)
    if text is None:
        return None
    if seconds is None:
        if not re.fullmatch(r"-?[0-9]{1,15}", text):
            expected = f"the number of the first step, or a time together with {called('step')}"
            raise InvalidInput(option, text, expected)
        return int(text)
    import pyarrow as pa

    moment, marks = Times(option).add(pa.chunked_array([pa.array([text])]))
    if any(mark[0] for mark in marks.values()):
        raise InvalidInput(option, text, "a time with a zone: 2024-05-06T00:00:00Z")
    return int(moment[0])
