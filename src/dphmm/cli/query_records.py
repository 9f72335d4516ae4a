"""Rows of trajectories as records of a histogram: whose, at which step from 0, in which public state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.types import IntArray

if TYPE_CHECKING:
    from dphmm.states.space import StateSpace
    from dphmm.states.trajectory import Trajectories

#: Steps that are kept apart at most.
MOST_TIMES = 10_000_000


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

    def numbered(self, rows: Trajectories) -> tuple[Trajectories, IntArray]:
        """The rows, one for each time bin, and their steps (n,), which may be out of range."""
        from dphmm.states.observed import in_steps

        if self.seconds is None and rows.step is None:
            if self.first is not None:
                raise InvalidInput("--from", self.first, "a column step, or times and --step")
            rows, _ = rows.sort()
            return rows, _own_numbers(rows.user)
        rows, _ = in_steps(rows, self.seconds)
        steps = rows.step
        assert steps is not None
        if self.first is None:
            begun = np.full(len(rows.users), np.iinfo(np.int64).max)
            np.minimum.at(begun, rows.user, steps)
            return rows, steps - begun[rows.user]
        first = self.first if self.seconds is None else self.first // (self.seconds * 1_000_000)
        return rows, steps - first


@dataclass(frozen=True, eq=False)
class Records:
    """One entry for each record (n,), the people, and how many rows were outside the public steps."""

    user: IntArray
    step: IntArray
    state: IntArray
    users: tuple[str, ...]
    outside: int

    def frame(self) -> Any:
        """The table that the library asks for."""
        import pandas as pd

        return pd.DataFrame({"user": self.user, "t": self.step, "state": self.state})

    @property
    def per_user(self) -> IntArray:
        """How many records each person has."""
        return np.bincount(self.user, minlength=len(self.users))


def records_of(rows: Trajectories, clock: Clock, space: StateSpace, path: str, column: str = "state") -> Records:
    """The records of the public steps.

    A place outside all states counts in the nearest. InvalidInput, with its line and without the name, where a row's
    state, in ``column`` of the file, is none of the public ones.
    """
    from dphmm.states.observed import true_states

    if space.on_map and rows.lat is not None:
        rows = replace(rows, state=None)
    kept, steps = clock.numbered(rows)
    inside = (steps >= 0) & (steps < clock.times)
    if not inside.any():
        raise InvalidInput(Path(path).name, "no row within the public steps", "rows there: see --from and --times")
    outside = int((~inside).sum())
    kept, steps = kept.take(inside), steps[inside]
    state, _ = true_states(kept, space)
    if (state < 0).any():
        expected = f"one of the {space.n_states} public states: --states must name all that can occur"
        raise InvalidInput(_first_unknown(path, column, space), "a name that is not public", expected)
    return Records(kept.user.astype(np.int64), steps, state, kept.users, outside)


def _first_unknown(path: str, column: str, space: StateSpace) -> str:
    """Where the file has its first name that is no state."""
    from dphmm.cli.query_tables import place
    from dphmm.storage.columns import as_text
    from dphmm.storage.tables import read_table

    cells = as_text(read_table(path, columns=[column], text=[column]).column(column), column).to_pylist()
    known = {None, "", *space.names}
    row = next((number for number, cell in enumerate(cells) if cell not in known), None)
    return column if row is None else f"{column}, {place(path, row)}"


def public_states(text: str | None, model: tuple[Any, StateSpace] | None) -> tuple[StateSpace, int | None]:
    """The states that are counted, from a list, a table or a model, and the time step of the model."""
    from dphmm.cli.options import loaded_model
    from dphmm.cli.query_dependence import asked
    from dphmm.states.space import StateSpace

    if model is not None:
        if text is not None:
            raise InvalidInput("--states", text, "none: with --dependence markov:MODEL they are those of MODEL")
        return model[1], model[0].step
    if text is None:
        raise InvalidInput("--states", "nothing", "the public states: a,b,c or a table of names, or a model (.npz)")
    if text.lower().endswith(".npz"):
        loaded, space = asked(lambda: loaded_model(text), {"model": "--states"})
        return space, loaded.step
    if text.lower().endswith((".csv", ".csv.gz", ".parquet")):
        return StateSpace.categories(_listed(text)), None
    from dphmm.cli.query_options import names

    if Path(text).exists():
        expected = "names a,b,c, a table of them (.parquet, .csv, .csv.gz) or a model (.npz)"
        raise InvalidInput("--states", f"{text}, a file or a folder", expected)
    return StateSpace.categories(names(text, "--states", "different names of states: a,b,c")), None


def _listed(path: str) -> list[str]:
    """The names in column state of a public table, or in its first."""
    from dphmm.cli.query_tables import columns_of, labels

    columns = columns_of(path, "--states")
    name = "state" if "state" in columns else columns[0]
    found: list[str] = labels(path, name, "--states", "--states").tolist()
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
