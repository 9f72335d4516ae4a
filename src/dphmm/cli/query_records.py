"""Rows of DATA as records of a histogram: whose, at which step from 0, in which public state.

Each row, and each person's rows, are read by themselves: what cannot be read is left out, or counts in a public state,
and no row decides between an answer and an error.

Proof: docs/proofs/contributions.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    from dphmm.cli.query_tables import Aside
    from dphmm.states.space import StateSpace
    from dphmm.storage.assembling import Roles
    from dphmm.storage.private_rows import PrivateRows

#: Steps that are kept apart at most.
MOST_TIMES = 10_000_000
#: The public state that names which are not public count in, where there is one.
OTHER = "other"
_MICROSECONDS = 1_000_000


@dataclass(frozen=True)
class Clock:
    """How steps are numbered from 0 to ``times`` - 1: by time bins of ``seconds``, from ``first`` or each own's first.

    ``first``: a moment in microseconds where there are bins, else a step's number; None: every person's own first row.
    """

    times: int
    seconds: int | None
    first: int | None

    @classmethod
    def of(cls, given: Mapping[str, Any], seconds: int | None, needed: bool) -> Clock:
        """From --times (``needed``, or all steps there are), --step and --from; ``seconds`` is the step of a model."""
        from dphmm.cli.quantities import duration
        from dphmm.cli.query_options import counting

        times = given["times"]
        if needed or times is not None:
            times = counting(times, "--times", f"the public number of steps, 1 to {MOST_TIMES}", 1, MOST_TIMES)
        if given["step"] is not None:
            asked = duration(given["step"], "--step")
            if seconds not in (None, asked):
                raise InvalidInput("--step", given["step"], f"{seconds}s, as the model has it, or no --step")
            seconds = asked
        return cls(times or MOST_TIMES, seconds, _first(given["first"], seconds))

    def check(self, roles: Roles) -> None:
        """InvalidInput where the columns that there are cannot say the steps."""
        if roles.step is not None:
            return
        if self.seconds is None and self.first is not None:
            raise InvalidInput("--from", self.first, "a column step, or times and --step")
        if self.seconds is not None and roles.time is None:
            raise InvalidInput("DATA", "no column of times or steps", f"times, for steps of {self.seconds} s")

    def numbered(self, user: IntArray, time: IntArray | None, step: IntArray | None) -> tuple[IntArray, BoolArray]:
        """The step of each row (n,), which may be out of range, and which rows count: of one step the last in time.

        A row's step follows from its person's rows alone.
        """
        from dphmm.dependent._contributions import last_of_each

        order = np.lexsort((user,) if time is None else (time, user))
        own = user[order]
        if step is None and self.seconds is None:
            ranks = np.empty(len(user), dtype=np.int64)
            ranks[order] = _own_numbers(own)
            return ranks, np.ones(len(user), dtype=np.bool_)
        if step is None:
            assert self.seconds is not None and time is not None
            step = np.floor_divide(time, self.seconds * _MICROSECONDS)
        counts = np.zeros(len(user), dtype=np.bool_)
        counts[order] = last_of_each(own, step[order])
        if self.first is None:
            begun = np.full(int(user.max(initial=-1)) + 1, np.iinfo(np.int64).max)
            np.minimum.at(begun, user, step)
            return step - begun[user], counts
        return step - (self.first if self.seconds is None else self.first // (self.seconds * _MICROSECONDS)), counts


@dataclass(frozen=True, eq=False)
class Records:
    """One entry for each record (n,): whose, at which public step, in which public state, where in the file."""

    user: IntArray
    step: IntArray
    state: IntArray
    place: IntArray

    def frame(self) -> Any:
        """The table that the library asks for."""
        import pandas as pd

        return pd.DataFrame({"user": self.user, "t": self.step, "state": self.state})


def data_roles(path: str, columns: Mapping[str, str | None], space: StateSpace) -> Roles:
    """Which column of DATA is what. InvalidInput where those that there are cannot say the public states."""
    from dphmm.storage.private_rows import private_names
    from dphmm.storage.trajectories import column_roles

    given = {"user": None, "time": None, "order": None, "trip": None, "state": None, "lat": None, "lon": None}
    roles = column_roles(private_names(path), {**given, **columns})
    if roles.state is None and not space.on_map:
        raise InvalidInput("DATA", "places", "a column of states (--state-column): the public states are not places")
    return roles


def records_of(rows: PrivateRows, roles: Roles, clock: Clock, space: StateSpace, aside: Aside) -> Records:
    """The records of the public steps; ``aside`` learns which rows are none, or do not count as they are written.

    A time without a zone is UTC. A place outside all states counts in the nearest. A name that is not public, and a
    place that cannot be read, count in the public state "other", where there is none in the first.
    """
    from dphmm.storage.columns import Numbering, integers
    from dphmm.storage.times import Times

    table = rows.table
    user, bad = Numbering().add(table.column(roles.user), roles.user)
    aside.add(rows.places[bad], "missing_user")
    time = step = None
    if roles.time is not None:
        time, marks = Times(roles.time, assume_utc=True).add(table.column(roles.time))
        for reason, marked in marks.items():
            aside.add(rows.places[marked], reason)
            bad = bad | marked
    if roles.step is not None:
        step, wrong = integers(table.column(roles.step), roles.step)
        aside.add(rows.places[wrong], "invalid_step")
        bad = bad | wrong
    read = np.flatnonzero(~bad)
    steps, counts = clock.numbered(user[read], _at(time, read), _at(step, read))
    aside.add(rows.places[read[~counts]], "same_step")
    inside = (steps >= 0) & (steps < clock.times)
    aside.add(rows.places[read[counts & ~inside]], "outside_the_public_steps")
    kept = read[counts & inside]
    state, public = _states(rows, roles, kept, space)
    aside.add(rows.places[kept[~public]], "invalid_place" if _by_place(roles, space) else "unknown_state")
    return Records(user[kept], steps[counts & inside], state, rows.places[kept])


def _states(rows: PrivateRows, roles: Roles, kept: IntArray, space: StateSpace) -> tuple[IntArray, BoolArray]:
    """The public state (n,) that each of the ``kept`` rows counts in, and which rows say so themselves."""
    from dphmm.states.maps import MapSpace
    from dphmm.storage.assembling import places_of
    from dphmm.storage.columns import as_text

    other = max(space.index_of(OTHER), 0)
    found = np.full(len(kept), -1, dtype=np.int64)
    if _by_place(roles, space):
        assert isinstance(space, MapSpace) and roles.lat is not None and roles.lon is not None
        lat, lon, bad = places_of(rows.table, roles.lat, roles.lon)
        good = np.flatnonzero(~bad[kept])
        at = kept[good]
        states = np.asarray(space.locate(lat[at], lon[at])).astype(np.int64)
        outside = states < 0
        states[outside] = space.nearest(lat[at][outside], lon[at][outside])
        found[good] = states
    else:
        assert roles.state is not None
        cells = as_text(rows.table.column(roles.state), roles.state).take(kept).to_pylist()
        numbers = {name: space.index_of(name) for name in set(cells) if name is not None}
        found[:] = [numbers.get(name, -1) for name in cells]
    return np.where(found < 0, other, found), found >= 0


def _by_place(roles: Roles, space: StateSpace) -> bool:
    return space.on_map and roles.lat is not None


def _at(column: IntArray | None, rows: IntArray) -> IntArray | None:
    return None if column is None else column[rows]


def public_states(text: str | None, model: tuple[Any, StateSpace] | None, data: str) -> tuple[StateSpace, int | None]:
    """The states that are counted, from a list, a table (not ``data``) or a model, and the time step of the model."""
    from dphmm.cli.options import loaded_model
    from dphmm.cli.query_dependence import asked
    from dphmm.states.space import StateSpace

    if model is not None:
        if text is not None:
            raise InvalidInput("--states", text, "none: with --dependence markov:MODEL they are those of MODEL")
        return model[1], model[0].step
    if text is None:
        raise InvalidInput("--states", "nothing", "the public states: a,b,c or a table of names, or a model (.npz)")
    if states_of_a_model(text):
        loaded, space = asked(lambda: loaded_model(text), {"model": "--states"})
        return space, loaded.step
    if text.lower().endswith((".csv", ".csv.gz", ".parquet")):
        from dphmm.storage.public_files import refuse_private

        refuse_private(text, data, "--states")
        return StateSpace.categories(_listed(text)), None
    from dphmm.cli.query_options import names

    if Path(text).exists():
        expected = "names a,b,c, a table of them (.parquet, .csv, .csv.gz) or a model (.npz)"
        raise InvalidInput("--states", f"{text}, a file or a folder", expected)
    return StateSpace.categories(names(text, "--states", "different names of states: a,b,c")), None


def states_of_a_model(text: str | None) -> bool:
    """Whether the states are those of a model."""
    return text is not None and text.lower().endswith(".npz")


def _listed(path: str) -> list[str]:
    """The names in column state of a public table, or in its first."""
    from dphmm.cli.query_tables import columns_of, labels

    columns = columns_of(path, "--states")
    name = "state" if "state" in columns else columns[0]
    found = labels(path, name, "--states")
    if len(set(found)) < len(found):
        raise InvalidInput("--states", f"{Path(path).name}, with a name twice", "different names of states")
    return found


def _first(text: str | None, seconds: int | None) -> int | None:
    if text is None:
        return None
    if seconds is None:
        if not re.fullmatch(r"-?[0-9]{1,15}", text):
            raise InvalidInput("--from", text, "the number of the first step, or a time together with --step")
        return int(text)
    import pyarrow as pa

    from dphmm.storage.times import Times

    moment, marks = Times("--from").add(pa.chunked_array([pa.array([text])]))
    if any(mark[0] for mark in marks.values()):
        raise InvalidInput("--from", text, "a time with a zone: 2024-05-06T00:00:00Z")
    return int(moment[0])


def _own_numbers(user: Any) -> IntArray:
    """0, 1, 2, ... for the rows of each person, which stand together."""
    starts = np.flatnonzero(np.r_[True, user[1:] != user[:-1]])
    counts = np.diff(np.r_[starts, len(user)])
    numbers: IntArray = np.arange(len(user)) - np.repeat(starts, counts)
    return numbers
