"""A released file, or the lines of a stream, as columns; and what can be said of it by itself.

That is which columns it has, in which order, and on which lattice. Lines of a stream stand in the order in which steps
were asked. A step that was asked again was answered by the same line again.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._cached import cached_property
from dphmm.audit.findings import Findings
from dphmm.audit.replay import Answer
from dphmm.errors import InvalidInput
from dphmm.states.maps import MapSpace
from dphmm.states.space import FORBIDDEN, LONGEST_NAME, StateSpace
from dphmm.states.trajectory import MICROSECONDS
from dphmm.storage.columns import as_text, decimals, integers
from dphmm.storage.json_lines import JsonLine, is_json_lines, read_json_lines
from dphmm.storage.released import text_columns
from dphmm.storage.tables import column_list, open_parquet, read_table, table_format, to_arrow
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


_FORBIDDEN, _HASH = re.compile(FORBIDDEN), re.compile("[0-9a-f]{64}")
#: Estimates are sums of floats.
_RELATIVE = 1e-7
#: How far a place in degrees may be from the answer it is of: rounding, and no more.
_DEGREES = 1e-9


@dataclass(frozen=True, eq=False)
class ReleasedFile:
    """Released rows (n,) in file order. ``z`` (n, d) as floats, ``lattice`` (n, d) the nearest lattice points.

    ``times`` (n,) in microseconds since 1970 UTC; None where none or not all have one (``timed``: some have). A row
    that was not ``asked`` has no plan, "", and 0 on the lattice. ``streamed``: the lines of a stream, each step once.
    ``estimate`` (n, d) and ``estimate_name`` are None where z alone was released. Of labels z and estimate are the
    numbers of states, and ``confidence`` (n,) is how likely the estimate is said to be. ``unasked``: users and steps of
    rows without an answer that were left out of this table.
    """

    users: list[str]
    step: IntArray
    times: IntArray | None
    z: FloatArray
    lattice: IntArray
    estimate: FloatArray | None
    estimate_name: list[str] | None
    epsilon: FloatArray
    cost: FloatArray
    plans: list[str]
    streamed: bool = False
    timed: bool = False
    confidence: FloatArray | None = None
    unasked: frozenset[tuple[str, int]] = frozenset()

    @classmethod
    def read(cls, released: Any, space: StateSpace, findings: Findings) -> ReleasedFile:
        """A file, a stream's lines among them, or a table.

        Raises InvalidInput for one that is no release of this space.
        """
        table = _table(released, space, findings)
        plans = [plan or "" for plan in as_text(table.column("plan"), "plan").to_pylist()]
        asked = np.array([plan != "" for plan in plans])
        estimated = "estimate" in table.column_names
        names = _texts(table, "estimate") if estimated else None
        z, estimate = _points(table, space, asked, names)
        steps, bad = integers(table.column("step"), "step")
        if bad.any() or (steps < 1).any():
            raise InvalidInput("step", "a cell that is no step", "whole numbers from 1, as they were released")
        file = cls(
            users=_users(table),
            step=steps,
            times=times_of(table),
            z=z,
            lattice=_nearest(z, space),
            estimate=estimate,
            estimate_name=names,
            epsilon=numbers_of(table, "epsilon"),
            cost=numbers_of(table, "cost"),
            plans=plans,
            streamed=_is_path(released) and is_json_lines(released),
            timed="t" in table.column_names,
            confidence=numbers_of(table, "confidence") if estimated and space.has_labels else None,
        )
        if (file.cost < 0).any() or (file.epsilon < 0).any():
            raise InvalidInput("released", "an epsilon or a cost below 0", "what releases spent")
        file._judge(table, space, findings)
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

    @cached_property
    def left_out(self) -> dict[str, int]:
        """Of each user how many steps before the last row have no row: other files may have answers there."""
        steps = {user: self.step[rows] for user, rows in self.by_user().items()}
        return {user: int(own[-1]) - len(np.unique(own)) for user, own in steps.items()}

    def other_estimates(
        self, rows: Sequence[int] | IntArray, estimates: FloatArray, states: IntArray, space: StateSpace
    ) -> tuple[BoolArray, BoolArray]:
        """Which rows (n,) have another estimate than (n, d), and which another likeliest state than (n,).

        Of labels the estimates (n, 1) are how likely the states are. None has, where the file has no estimates.
        """
        if self.estimate is None or self.estimate_name is None:
            return np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.bool_)
        said = self.estimate[rows] if self.confidence is None else self.confidence[rows][:, None]
        scale = float(np.abs(space.own_answers).max()) + 1 if self.confidence is None else 1.0
        # Written so that NaN is another estimate.
        away = ~(np.abs(said - estimates).max(axis=1) <= _RELATIVE * scale)
        names = [self.estimate_name[row] for row in rows]
        return away, np.array([name != space.names[state] for name, state in zip(names, states.tolist(), strict=True)])

    def _judge_estimates(self, space: StateSpace, findings: Findings) -> None:
        """What an estimate can be at all: a mean of answers, and the name of a state."""
        if self.estimate is None or self.estimate_name is None:
            return
        odd = {name for name in set(self.estimate_name) if space.index_of(name) < 0}
        findings.require(not odd, "a likeliest state that the model does not have")
        if self.confidence is not None:
            likely = (self.confidence > 0) & (self.confidence <= 1 + _RELATIVE)
            for row in np.flatnonzero(~likely).tolist():
                findings.add("a confidence that is no probability", self.where(row))
            return
        answers = space.own_answers
        low, high = answers.min(axis=0), answers.max(axis=0)
        slack = _RELATIVE * (np.abs(answers).max() + 1)
        among = ((self.estimate >= low - slack) & (self.estimate <= high + slack)).all(axis=1)
        for row in np.flatnonzero(~among).tolist():
            findings.add("an estimate beyond all states", self.where(row))

    def _judge(self, table: pa.Table, space: StateSpace, findings: Findings) -> None:
        if "t" in table.column_names and self.times is None and not self.streamed:
            raise InvalidInput("t", "a row without a time", "a time in every row or in none, as they were released")
        self._judge_estimates(space, findings)
        asked = self.asked
        findings.require(all(map(_HASH.fullmatch, set(self.plans) - {""})), "a plan that is no hash")
        for row in np.flatnonzero(~asked & ((self.epsilon != 0) | (self.cost != 0))).tolist():
            findings.add("a row that was not asked and has an epsilon or a cost", self.where(row))
        exactly = np.all(space.frame.to_answers(self.lattice) == self.z, axis=1)
        for row in np.flatnonzero(~exactly).tolist():
            findings.add("an answer that is no lattice point: its digits may say where it came from", self.where(row))
        keys = list(zip(self.users, self.step.tolist(), strict=True))
        findings.require(len(set(keys)) == len(keys), "a step of a user stands twice")
        blocks = [user for user, _ in itertools.groupby(self.users)]
        ordered = len(set(blocks)) == len(blocks) and all(a[0] != b[0] or a < b for a, b in itertools.pairwise(keys))
        findings.require(
            ordered or self.streamed, "rows are not in the order of user and step: an order can say something"
        )
        if isinstance(space, MapSpace):
            for name, points in (("z", self.z), ("estimate", self.estimate)):
                if points is None:
                    continue
                place = space.to_latlon(points)
                assert place is not None
                told = asked if name == "z" else np.ones(len(self), dtype=np.bool_)
                shown = [_answers(table, f"{name}_{axis}", told) for axis in ("lat", "lon")]
                apart = np.where(told, np.abs(np.stack(shown) - np.stack(place)).max(axis=0), 0.0)
                for row in np.flatnonzero(apart > _DEGREES).tolist():
                    findings.add(f"{name}_lat and {name}_lon are not those of {name}", self.where(row))


def columns_of(space: StateSpace, timed: bool, *, estimated: bool) -> list[str]:
    """The columns that a released file of a space has: all others could say something of the truth."""
    names = ["user", *(["t"] if timed else []), "step"]
    if space.has_labels:
        return [*names, "z", *(["estimate", "confidence"] if estimated else []), "epsilon", "cost", "plan"]
    axes, points = range(space.dimension), ["z", "estimate"] if estimated else ["z"]
    names += [f"{name}_{j}" for name in points for j in axes] + (["estimate"] if estimated else [])
    if isinstance(space, MapSpace):
        names += [f"{name}_{axis}" for name in points for axis in ("lat", "lon")]
    return [*names, "epsilon", "cost", "plan"]


def forms_of(space: StateSpace, timed: bool) -> Forms:
    """The two forms of those columns: with estimates, and without."""
    return columns_of(space, timed, estimated=True), columns_of(space, timed, estimated=False)


def _table(released: Any, space: StateSpace, findings: Findings) -> pa.Table:
    if _is_path(released) and is_json_lines(released):
        table = table_of_lines(released, forms_of(space, timed=True), findings)
        names = list(table.column_names)
    elif _is_path(released):
        _check_name(released)
        table = read_table(released, text=text_columns(space))
        names = list(table.column_names)
        _no_notes(Path(released), findings)
    else:
        names = column_list(released)
        table = None
    expected = form_of(names, forms_of(space, "t" in names))
    missing = [name for name in expected if name not in names]
    if missing:
        came = f"a table without the column {missing[0]!r}"
        raise InvalidInput("released", came, "a released table of this model: " + ", ".join(expected))
    extra = [name for name in names if name not in expected]
    if extra:
        findings.add("columns that no release has, and that may depend on the truth", ", ".join(map(repr, extra)))
    elif names != expected:
        findings.add("the columns are in another order than a release writes them")
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


def _no_notes(path: Path, findings: Findings) -> None:
    """A Parquet file can carry texts of any kind beside its columns."""
    if table_format(path) != ".parquet":
        return
    with open_parquet(path) as opened:
        schema = opened.schema_arrow
        notes = {**(schema.metadata or {}), **(opened.metadata.metadata or {})}
        fields = [name for name in schema.names if schema.field(name).metadata]
    keys = sorted(key.decode("utf-8", "replace") for key in notes if key != b"ARROW:schema")
    if keys or any(set(schema.field(name).metadata) != {b"PARQUET:field_id"} for name in fields):
        findings.add("notes in the Parquet file beside its columns", ", ".join(keys))


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


def _points(
    table: pa.Table, space: StateSpace, asked: BoolArray, names: list[str] | None
) -> tuple[FloatArray, FloatArray | None]:
    """Answers and estimates (n, d); of labels the numbers of their states. A row that was not asked is at 0."""
    nothing = space.frame.to_answers(np.zeros(space.dimension, dtype=np.int64))
    if space.has_labels:
        labels = _labels(table, space, asked)
        z = np.where(asked, labels, 0)[:, None].astype(np.float64)
        known = None if names is None else space.indices_of(names).astype(np.float64)[:, None]
        return z, known
    axes = range(space.dimension)
    z = np.stack([_answers(table, f"z_{j}", asked) for j in axes], axis=1)
    z[~asked] = nothing
    return z, None if names is None else np.stack([numbers_of(table, f"estimate_{j}") for j in axes], axis=1)


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


_TEXTS = ("user", "z", "estimate", "plan")
_EXPECTED = "lines as dphmm release - prints them"
_LARGEST = 2**63 - 1
#: The columns of a release with estimates, and those of a release without.
Forms = tuple[list[str], list[str]]


def table_of_lines(path: str | os.PathLike[str], forms: Forms, findings: Findings) -> pa.Table:
    """The distinct answers of a stream in the order of their first lines, with the columns of a release.

    ``forms``: those columns with estimates, and without; ``t`` is among them, and null where a line has no time. All
    lines have the form of the first one. Findings tell of members that no answer has, of lines that a stream would
    write otherwise, and of steps that were answered twice and not alike. Raises InvalidInput for a line that is no
    answer of this space, and for answers with estimates beside answers without.
    """
    expected, _ = forms
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    for line in read_json_lines(path, "released"):
        form = form_of(line.members, forms)
        if rows and form != expected:
            came = "answers with estimates beside answers without"
            raise InvalidInput(f"line {line.number}", came, "the lines of one run")
        expected = form
        row = _row(line, expected, findings)
        where = f"line {line.number}"
        first = rows.setdefault((row["user"], row["step"]), row)
        findings.require(first == row, "a step of a user that is answered twice, and not alike", where)
    timed = any("t" in row for row in rows.values())
    return _table_of_lines(list(rows.values()), [name for name in expected if timed or name != "t"])


def form_of(names: Collection[str], forms: Forms) -> list[str]:
    """The form that a table or a line with these names must have: with all estimates where it has one of them."""
    estimated, alone = forms
    return alone if set(estimated).difference(alone).isdisjoint(names) else estimated


def _row(line: JsonLine, expected: list[str], findings: Findings) -> dict[str, Any]:
    told, where = line.members, f"line {line.number}"
    names = [name for name in expected if name in told or name != "t"]
    missing = next((name for name in names if name not in told), None)
    if missing is not None:
        raise InvalidInput(where, f"an answer without {missing!r}", "an answer of this model: " + ", ".join(expected))
    extra = [name for name in told if name not in names]
    if extra:
        findings.add("members that no answer has, and that may depend on the truth", f"{where}, {_listed(extra)}")
    unasked = told["plan"] is None
    row = {name: None if unasked and _is_asked(name) else _value(name, told[name], where) for name in names}
    if unasked and any(told[name] is not None for name in names if _is_asked(name)):
        raise InvalidInput(where, "an answer without a plan", _EXPECTED)
    if not extra:
        written = json.dumps({name: _written(value) for name, value in row.items()}, ensure_ascii=True) + "\n"
        kind = "a line that is not written as a stream writes it: spaces, digits and orders can say something"
        findings.require(line.text == written, kind, where)
    return row


def _is_asked(name: str) -> bool:
    """Whether a member is null in a row that was not asked."""
    return name in ("plan", "z") or name.startswith("z_")


def _value(name: str, value: Any, where: str) -> Any:
    if name in _TEXTS:
        return _text(value, name, where)
    if name == "t":
        return _time(value, where)
    if name == "step":
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST:
            raise InvalidInput(where, "a step that is none", "whole numbers from 1, as they were released")
        return value
    return _number(value, name, where)


def _text(value: Any, name: str, where: str) -> str:
    try:
        if isinstance(value, str) and value.encode("utf-8"):
            return value
    except UnicodeEncodeError:
        pass
    raise InvalidInput(where, f"a {name} that is no text", _EXPECTED)


def _number(value: Any, name: str, where: str) -> float:
    try:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise InvalidInput(where, f"a {name} that is no finite number", _EXPECTED)


def _time(value: Any, where: str) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
        # Timestamps have 64 bits.
        if moment.tzinfo is not None and 1678 <= moment.year < 2262:
            return moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InvalidInput(where, "a t that is no time", _EXPECTED)


def _written(value: Any) -> Any:
    """A value as the stream writes it: times as text."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return value


def _listed(names: list[str]) -> str:
    shown = ", ".join(repr(name[:40]) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


def _table_of_lines(rows: list[dict[str, Any]], names: list[str]) -> pa.Table:
    import pyarrow as pa

    kinds = {"step": pa.int64(), "t": pa.timestamp("us", tz="UTC"), **dict.fromkeys(_TEXTS, pa.string())}
    columns = {name: pa.array([row.get(name) for row in rows], kinds.get(name, pa.float64())) for name in names}
    return pa.table(columns)
