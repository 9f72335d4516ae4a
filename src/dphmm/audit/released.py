"""A released file, a released table, or the lines of a stream as columns.

`dphmm.audit.verify_release` decides if it is the released file; here it is read, and values that no release has are
refused. Lines of a stream stand in the order in which steps were asked, and a step that was asked again was answered by
the same line again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.audit import verify_release
from dphmm.audit.replay import Answer
from dphmm.errors import InvalidInput
from dphmm.states.maps import MapSpace
from dphmm.states.space import FORBIDDEN, LONGEST_NAME, StateSpace
from dphmm.states.trajectory import MICROSECONDS
from dphmm.storage.columns import decimals, finite
from dphmm.storage.json_lines import is_json_lines
from dphmm.storage.released import answer_columns, as_times, released_rows, text_columns
from dphmm.storage.tables import column_list, is_path, read_table, read_whole, table_format, to_arrow
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


_FORBIDDEN, _HASH = re.compile(FORBIDDEN), re.compile("[0-9a-f]{64}")
#: How many last places of a float a place in degrees may be from the answer it is of: rounding, and no more.
_LAST_PLACES = 4


@dataclass(frozen=True, eq=False)
class ReleasedFile:
    """Released rows (n,) in file order; ``lattice`` (n, d) are the lattice points of their answers.

    ``times`` (n,) in microseconds since 1970 UTC; None where none or not all have one. A row that was not ``asked`` has
    no plan, "", and 0 on the lattice. ``streamed``: the lines of a stream, each step once. ``unasked``: users and steps
    of rows without an answer that were left out of this table.
    """

    users: list[str]
    step: IntArray
    times: IntArray | None
    lattice: IntArray
    epsilon: FloatArray
    cost: FloatArray
    plans: list[str]
    streamed: bool = False
    unasked: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def read(cls, released: Any, space: StateSpace) -> ReleasedFile:
        """A file, a stream's lines among them, or a table.

        Raises InvalidInput for one that is no release of this space.
        """
        streamed = is_path(released) and is_json_lines(released)
        if streamed:
            source = table_of_lines(released)
        elif is_path(released):
            source = read_table(_named(released), text=text_columns(space))
        else:
            source = read_whole(released)
        names = column_list(source)
        places = ["z_lat", "z_lon"] if isinstance(space, MapSpace) else []
        expected = ["user", *(["t"] if "t" in names else []), "step", *answer_columns(space), *places]
        expected += ["epsilon", "cost", "plan"]
        missing = next((name for name in expected if name not in names), None)
        if missing is not None:
            got = f"a table without the column {missing!r}"
            raise InvalidInput("released", got, "a released table of this model: " + ", ".join(expected))
        table = to_arrow(source, expected)
        rows = released_rows(table, space)
        file = cls(
            users=rows.users,
            step=rows.step,
            times=times_of(table),
            lattice=rows.z,
            epsilon=rows.epsilon,
            cost=finite(table.column("cost"), "cost"),
            plans=rows.plans,
            streamed=streamed,
        )
        file._check(table, space)
        return file

    def __len__(self) -> int:
        return len(self.users)

    @property
    def asked(self) -> BoolArray:
        """True where a row (n,) has an answer."""
        return np.array([plan != "" for plan in self.plans], dtype=np.bool_)

    def answered(self) -> ReleasedFile:
        """The rows that have an answer, alone. Raises InvalidInput where none has."""
        rows, others = np.flatnonzero(self.asked), np.flatnonzero(~self.asked).tolist()
        if not len(rows):
            raise InvalidInput("released", f"{len(self)} rows without an answer", "a release of at least one answer")
        return replace(
            self,
            users=[self.users[row] for row in rows.tolist()],
            step=self.step[rows],
            times=None if self.times is None else self.times[rows],
            lattice=self.lattice[rows],
            epsilon=self.epsilon[rows],
            cost=self.cost[rows],
            plans=[self.plans[row] for row in rows.tolist()],
            unasked=frozenset((self.users[row], int(self.step[row])) for row in others),
        )

    def where(self, row: int) -> str:
        """The words for a row in a finding."""
        return f"user {self.users[row]!r}, step {int(self.step[row])}"

    def origin(self, row: int, step: int | None) -> str:
        """The number of step 1 of a row's user, in steps of so many seconds since 1970; "" without times."""
        if step is None or self.times is None:
            return ""
        return str(int(self.times[row] // (step * MICROSECONDS)) - int(self.step[row]) + 1)

    def answers(self, rows: list[int]) -> list[Answer]:
        """Some rows, of one user and by step, as a history."""
        cells = (self.step[rows].tolist(), rows, self.epsilon[rows].tolist())
        return [Answer(t, self.lattice[row], self.plans[row], epsilon) for t, row, epsilon in zip(*cells, strict=True)]

    def by_user(self) -> dict[str, list[int]]:
        """Each user's rows, by step."""
        rows: dict[str, list[int]] = {}
        for row in np.argsort(self.step, kind="stable").tolist():
            rows.setdefault(self.users[row], []).append(row)
        return rows

    def _check(self, table: pa.Table, space: StateSpace) -> None:
        """Raises InvalidInput for values that no release has, in the columns that `released_rows` takes as they are."""
        if (self.step < 1).any():
            raise InvalidInput("step", "a cell that is no step", "whole numbers from 1, as they were released")
        if (self.cost < 0).any() or (self.epsilon < 0).any():
            raise InvalidInput("released", "an epsilon or a cost below 0", "what releases spent")
        if not all(0 < len(user) <= LONGEST_NAME and not _FORBIDDEN.search(user) for user in set(self.users)):
            # Others could reorder the text around them, or be as long as a book.
            expected = f"names of 1 to {LONGEST_NAME} characters, without control characters or text-direction marks"
            raise InvalidInput("released", "the name of a user that no release has", expected)
        if not all(map(_HASH.fullmatch, set(self.plans) - {""})):
            raise InvalidInput("plan", "a text that is no hash", "plans as they were released")
        if space.has_labels:
            return
        asked = self.asked
        z = space.frame.to_answers(self.lattice[asked])
        for j, name in enumerate(answer_columns(space)):
            if not np.array_equal(finite(table.column(name), name, asked), z[:, j]):
                raise InvalidInput(name, "an answer off the lattice of the space", "answers as they were released")
        if isinstance(space, MapSpace):
            for name, due in zip(("z_lat", "z_lon"), space.to_latlon(z), strict=True):
                places, none = decimals(table.column(name), name)
                near = np.abs(places[asked] - due) <= _LAST_PLACES * np.spacing(np.abs(due))
                if not near.all() or not none[~asked].all():
                    raise InvalidInput(name, "places that are not those of z", "places as released")


def read_text(path: Path) -> verify_release.ReleaseColumns:
    """The rows of a file of text as `verify_release` reads them. Raises InvalidInput for one that it cannot read."""
    try:
        return verify_release.ReleaseColumns(path)
    except verify_release.Unreadable as error:
        got = str(error).partition(": got ")[2].partition("; expected")[0]
        raise InvalidInput("released", got or "rows that cannot be read", "rows as dphmm released them") from None


def table_of_lines(path: Any) -> pa.Table:
    """The distinct answers of a stream, in the order of their first lines, as text."""
    import pyarrow as pa

    rows = read_text(Path(path))
    try:
        columns = {name: pa.array([cell or None for cell in cells], pa.string()) for name, cells in rows.cells.items()}
        if "t" in columns:
            columns["t"] = pa.array(rows.moments, pa.timestamp("us", tz="UTC"))
    except (verify_release.Unreadable, verify_release.Unknown, UnicodeEncodeError):
        raise InvalidInput("released", "lines that are no answers", "lines as dphmm release - prints them") from None
    return pa.table(columns)


def _named(path: Any) -> Any:
    """A path whose suffix is that of a table. Raises InvalidInput for another one."""
    try:
        table_format(path, "released")
    except InvalidInput:
        expected = "a name ending in .parquet, .csv or .csv.gz; .jsonl or .ndjson for the lines of a stream"
        raise InvalidInput("released", str(path), expected) from None
    return path


def times_of(table: pa.Table) -> IntArray | None:
    """Microseconds since 1970 UTC. A column of any other type has no defined meaning."""
    import pyarrow as pa

    if "t" not in table.column_names:
        return None
    column = as_times(table.column("t"))
    if not pa.types.is_timestamp(column.type):
        raise InvalidInput("t", f"a column of type {column.type}", "times, as they were released")
    micros = column.cast(pa.int64())
    return None if micros.null_count else np.asarray(micros.to_numpy())
