"""A released file, a released table, or the lines of a stream as columns.

Whether it is what was released is told by `dphmm.audit.verify_release`; here it is read, and what no release has is
refused. Lines of a stream stand in the order in which steps were asked, and a step that was asked again was answered by
the same line again.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.audit.replay import Answer
from dphmm.errors import InvalidInput
from dphmm.states.maps import MapSpace
from dphmm.states.space import FORBIDDEN, LONGEST_NAME, StateSpace
from dphmm.states.trajectory import MICROSECONDS
from dphmm.storage.columns import as_text, decimals, integers
from dphmm.storage.json_lines import is_json_lines, read_json_lines
from dphmm.storage.released import answer_columns, text_columns
from dphmm.storage.tables import column_list, read_table, table_format, to_arrow
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


_FORBIDDEN, _HASH = re.compile(FORBIDDEN), re.compile("[0-9a-f]{64}")
#: How far a place in degrees may be from the answer it is of: rounding, and no more.
_DEGREES = 1e-9


@dataclass(frozen=True, eq=False)
class ReleasedFile:
    """Released rows (n,) in file order. ``z`` (n, d) as floats, ``lattice`` (n, d) the nearest lattice points.

    ``times`` (n,) in microseconds since 1970 UTC; None where none or not all have one (``timed``: some have). A row
    that was not ``asked`` has no plan, "", and 0 on the lattice. ``streamed``: the lines of a stream, each step once.
    Of labels z are the numbers of states. ``unasked``: users and steps of rows without an answer that were left out of
    this table.
    """

    users: list[str]
    step: IntArray
    times: IntArray | None
    z: FloatArray
    lattice: IntArray
    epsilon: FloatArray
    cost: FloatArray
    plans: list[str]
    streamed: bool = False
    timed: bool = False
    unasked: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def read(cls, released: Any, space: StateSpace) -> ReleasedFile:
        """A file, a stream's lines among them, or a table.

        Raises InvalidInput for one that is no release of this space.
        """
        table = _table(released, space)
        plans = [plan or "" for plan in as_text(table.column("plan"), "plan").to_pylist()]
        asked = np.array([plan != "" for plan in plans])
        z = _points(table, space, asked)
        steps, bad = integers(table.column("step"), "step")
        if bad.any() or (steps < 1).any():
            raise InvalidInput("step", "a cell that is no step", "whole numbers from 1, as they were released")
        file = cls(
            users=_users(table),
            step=steps,
            times=times_of(table),
            z=z,
            lattice=_nearest(z, space),
            epsilon=numbers_of(table, "epsilon"),
            cost=numbers_of(table, "cost"),
            plans=plans,
            streamed=_is_path(released) and is_json_lines(released),
            timed="t" in table.column_names,
        )
        if (file.cost < 0).any() or (file.epsilon < 0).any():
            raise InvalidInput("released", "an epsilon or a cost below 0", "what releases spent")
        file._check(table, space)
        return file

    def __len__(self) -> int:
        return len(self.users)

    @property
    def asked(self) -> BoolArray:
        """Which rows (n,) have an answer."""
        return np.array([plan != "" for plan in self.plans], dtype=np.bool_)

    def answered(self) -> ReleasedFile:
        """The rows that have an answer, alone. Raises InvalidInput where none has."""
        rows = np.flatnonzero(self.asked)
        if len(rows) == len(self):
            return self
        if not len(rows):
            raise InvalidInput("released", f"{len(self)} rows without an answer", "a release of at least one answer")

        def of(column: Any) -> Any:
            return [column[row] for row in rows.tolist()] if isinstance(column, list) else column[rows]

        told = {field.name: getattr(self, field.name) for field in fields(self)}
        columns = {name: column for name, column in told.items() if isinstance(column, (list, np.ndarray))}
        left = np.flatnonzero(~self.asked).tolist()
        unasked = frozenset((self.users[row], int(self.step[row])) for row in left)
        return replace(self, unasked=unasked, **{name: of(column) for name, column in columns.items()})

    def where(self, row: int) -> str:
        """What a finding calls a row."""
        return f"user {self.users[row]!r}, step {int(self.step[row])}"

    def origin(self, row: int, step: int | None) -> str:
        """What step 1 of a row's user stands for, in steps of so many seconds since 1970; "" without times."""
        if step is None or self.times is None:
            return ""
        return str(int(self.times[row] // (step * MICROSECONDS)) - int(self.step[row]) + 1)

    def answers(self, rows: list[int]) -> list[Answer]:
        """Some rows, of one user and by step, as a history."""
        told = (self.step[rows].tolist(), rows, self.epsilon[rows].tolist())
        return [Answer(t, self.lattice[row], self.plans[row], epsilon) for t, row, epsilon in zip(*told, strict=True)]

    def by_user(self) -> dict[str, list[int]]:
        """Each user's rows, by step."""
        rows: dict[str, list[int]] = {}
        for row in np.argsort(self.step, kind="stable").tolist():
            rows.setdefault(self.users[row], []).append(row)
        return rows

    def _check(self, table: pa.Table, space: StateSpace) -> None:
        """Raises InvalidInput for an answer off the lattice, a plan that is no hash, or places of other answers."""
        if not all(map(_HASH.fullmatch, set(self.plans) - {""})):
            raise InvalidInput("plan", "a text that is no hash", "plans as they were released")
        if not np.array_equal(space.frame.to_answers(self.lattice), self.z):
            raise InvalidInput("z", "an answer off the lattice of the space", "answers as they were released")
        if isinstance(space, MapSpace):
            shown = [_answers(table, name, self.asked) for name in ("z_lat", "z_lon")]
            apart = np.abs(np.stack(shown) - np.stack(space.to_latlon(self.z))).max(axis=0)
            if not (np.where(self.asked, apart, 0.0) <= _DEGREES).all():
                raise InvalidInput("z_lat", "places that are not those of z", "places as released")


def columns_of(space: StateSpace, timed: bool) -> list[str]:
    """The columns that a released file of a space has: all others could say something of the truth."""
    places = ["z_lat", "z_lon"] if isinstance(space, MapSpace) else []
    return ["user", *(["t"] if timed else []), "step", *answer_columns(space), *places, "epsilon", "cost", "plan"]


def _table(released: Any, space: StateSpace) -> pa.Table:
    if _is_path(released) and is_json_lines(released):
        table = _table_of_lines(released, space)
    elif _is_path(released):
        _check_name(released)
        table = read_table(released, text=text_columns(space))
    else:
        table = None
    names = column_list(released) if table is None else list(table.column_names)
    expected = columns_of(space, "t" in names)
    missing = [name for name in expected if name not in names]
    if missing:
        came = f"a table without the column {missing[0]!r}"
        raise InvalidInput("released", came, "a released table of this model: " + ", ".join(expected))
    if table is None:
        table = to_arrow(released, expected)
    if not len(table):
        raise InvalidInput("released", "0 rows", "at least one released row")
    return table.select(expected)


def _is_path(released: Any) -> bool:
    return isinstance(released, (str, os.PathLike))


def _check_name(path: str | os.PathLike[str]) -> None:
    try:
        table_format(path, "released")
    except InvalidInput:
        expected = "a name ending in .parquet, .csv or .csv.gz; .jsonl or .ndjson for the lines of a stream"
        raise InvalidInput("released", str(path), expected) from None


def numbers_of(table: pa.Table, name: str) -> FloatArray:
    values, bad = decimals(table.column(name), name)
    if bad.any():
        raise InvalidInput(name, f"{int(bad.sum())} cells that cannot be read", "a number in every row, as released")
    return np.asarray(values, dtype=np.float64)


def _answers(table: pa.Table, name: str, asked: BoolArray) -> FloatArray:
    """Numbers in the rows that were asked, and 0 in the others, which must have none."""
    values, bad = decimals(table.column(name), name)
    if (bad & asked).any():
        came = f"{int((bad & asked).sum())} cells that cannot be read"
        raise InvalidInput(name, came, "a number in every row that has a plan, as released")
    if (~bad & ~asked).any():
        came = f"{int((~bad & ~asked).sum())} numbers in rows without a plan"
        raise InvalidInput(name, came, "none in a row that was not asked, as released")
    return np.where(asked, values, 0.0)


def _points(table: pa.Table, space: StateSpace, asked: BoolArray) -> FloatArray:
    """Answers (n, d); of labels the numbers of their states. A row that was not asked is at 0."""
    if space.has_labels:
        return np.where(asked, _labels(table, space, asked), 0)[:, None].astype(np.float64)
    z = np.stack([_answers(table, name, asked) for name in answer_columns(space)], axis=1)
    z[~asked] = space.frame.to_answers(np.zeros(space.dimension, dtype=np.int64))
    return z


def _labels(table: pa.Table, space: StateSpace, asked: BoolArray) -> IntArray:
    """The numbers (n,) of the labels in the column z; -1 in rows that were not asked, which must have none."""
    cells = as_text(table.column("z"), "z").to_pylist()
    if any(cell for cell, wanted in zip(cells, asked.tolist(), strict=True) if not wanted):
        raise InvalidInput("z", "labels in rows without a plan", "none in a row that was not asked, as released")
    numbers = space.indices_of([cell or "" for cell in cells])
    if (numbers[asked] < 0).any():
        came = f"{int((numbers[asked] < 0).sum())} cells that are no label of this space"
        raise InvalidInput("z", came, "labels as they were released, from this space")
    return numbers


def _texts(table: pa.Table, name: str) -> list[str]:
    cells = as_text(table.column(name), name).to_pylist()
    if any(cell is None for cell in cells):
        raise InvalidInput(name, "an empty cell", "a value in every row, as released")
    return [str(cell) for cell in cells]


def _users(table: pa.Table) -> list[str]:
    """Names as a release takes them: others could reorder what stands around them, or be as long as a book."""
    users = _texts(table, "user")
    if not all(0 < len(user) <= LONGEST_NAME and not _FORBIDDEN.search(user) for user in set(users)):
        expected = f"names of 1 to {LONGEST_NAME} characters, without control characters or text-direction marks"
        raise InvalidInput("released", "the name of a user that no release has", expected)
    return users


def times_of(table: pa.Table) -> IntArray | None:
    """Microseconds since 1970 UTC. A column of anything else could say anything."""
    import pyarrow as pa

    if "t" not in table.column_names:
        return None
    column = table.column("t")
    if not pa.types.is_timestamp(column.type):
        raise InvalidInput("t", f"a column of type {column.type}", "times, as they were released")
    try:
        micros = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    except pa.ArrowInvalid:
        raise InvalidInput("t", "a time that is no whole microsecond", "times, as they were released") from None
    return None if micros.null_count else np.asarray(micros.to_numpy())


def _nearest(z: FloatArray, space: StateSpace) -> IntArray:
    steps = np.rint((z - space.frame.origin) / space.frame.pitch)
    if not (np.abs(steps) <= 2.0**53).all():
        raise InvalidInput("z_0", "an answer too far away", "answers as they were released, from this space")
    return np.asarray(steps.astype(np.int64))


_TEXTS = ("user", "z", "plan")


def _table_of_lines(path: str | os.PathLike[str], space: StateSpace) -> pa.Table:
    """The distinct answers of a stream in the order of their first lines.

    Raises InvalidInput for a line that is no answer of this space, and for a step that was answered twice.
    """
    import pyarrow as pa

    rows: dict[tuple[Any, Any], dict[str, Any]] = {}
    for line in read_json_lines(path, "released"):
        told = line.members
        # What has no place in a row is no key either.
        if any(isinstance(value, (dict, list)) for value in told.values()):
            raise InvalidInput(f"line {line.number}", "an answer with parts", "lines as dphmm release - prints them")
        if rows.setdefault((told.get("user"), told.get("step")), told) != told:
            raise InvalidInput(f"line {line.number}", "another answer to a step", "the answer that it had before")
    names = list(next(iter(rows.values()), {}))
    kinds = {"step": pa.int64(), "t": pa.string(), **dict.fromkeys(_TEXTS, pa.string())}
    try:
        columns = {
            name: pa.array([row.get(name) for row in rows.values()], kinds.get(name, pa.float64())) for name in names
        }
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        raise InvalidInput("released", "lines that are no answers", "lines as dphmm release - prints them") from None
    if "t" in columns:
        columns["t"] = _times(columns["t"])
    return pa.table(columns)


def _times(texts: Any) -> Any:
    import pyarrow as pa

    try:
        moments = [None if text is None else datetime.fromisoformat(text) for text in texts.to_pylist()]
        return pa.array(moments, pa.timestamp("us", tz="UTC"))
    except (ValueError, OverflowError, pa.ArrowInvalid):
        raise InvalidInput("t", "a text that is no time", "times, as they were released") from None
