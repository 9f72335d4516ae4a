"""Exact counts of capped records on executors: rows of an owner together, counted as they pass, summed as integers.

An owner that is a name is a person by its key (`dphmm.accounting.person.person_key`): spellings of one name are one
owner. All rows of an owner come to one task by a hash of its key, which puts them in an order that follows from the
rows: a task that runs again, with rows that arrive in another order, counts the same. The sums come to the driver, no
row does.

Proof: docs/proofs/learning.md. Decision: docs/adr/0030.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dphmm.accounting.person import key_by
from dphmm.errors import InvalidInput
from dphmm.markov.private.sensitivity import RecordBounds
from dphmm.markov.private.transition_counts import TransitionCounts, counts_of_keys
from dphmm.spark.settings import require_fixed
from dphmm.spark.tasks import (
    PACKED,
    TOTALS,
    AddTotals,
    ByName,
    ByNumber,
    ByPlace,
    CountLabelled,
    CountRecords,
    CountRows,
    CountWords,
    KeyOwners,
    PackRows,
    WithoutValues,
)
from dphmm.states.space import FORBIDDEN, LONGEST_NAME
from dphmm.types import IntArray

if TYPE_CHECKING:
    from dphmm.markov.slots import Slots
    from dphmm.states.space import StateSpace

_ROLES = ("user", "step", "state", "t", "lat", "lon")
INTEGERS = ("ByteType", "ShortType", "IntegerType", "LongType")
TEXT = ("StringType", "VarcharType", "CharType")
#: Moments. A TIMESTAMP_NTZ is none: which one it means, only the caller knows.
MOMENTS = ("TimestampType",)
_OWNERS = (*INTEGERS, *TEXT)
_TIMES = (*INTEGERS, *MOMENTS, "DateType")
NUMBERS = (*INTEGERS, "FloatType", "DoubleType")
#: How to make a column of another type what is wanted, where the type says it.
_REMEDIES = {
    "BinaryType": "hex({name}) makes text of bytes",
    "TimestampNTZType": "it has no time zone: CAST({name} AS TIMESTAMP) reads it in that of the session",
}
Task: TypeAlias = CountRows | CountWords | CountLabelled | CountRecords
#: More tasks than cores: where one has more rows than others, the rest are shared.
_TASKS_PER_CORE = 4


def count_transitions(
    frame: Any,
    space: StateSpace,
    *,
    max_length: int,
    max_sequences: int = 1,
    columns: Mapping[str, str] | None = None,
    shortest: int = 2,
    spelling: str = "same",
) -> TransitionCounts:
    """Count the transitions of a Spark frame on its executors, exactly and without noise.

    Parameters
    ----------
    frame : rows with columns user, step (whole numbers, one apart where rows follow each other) and state: a name of
        the space, or a number 0..N-1. On a map also lat and lon instead of state. A column t is the time of a row.
    space : the public states.
    max_length, max_sequences : public; a user's first sequences of at least ``shortest`` rows (1 or 2) count, each cut
        to its first rows.
    columns : names of columns by role ("user", "step", "state", "t", "lat", "lon") where they differ.
    spelling : "same" if different spellings of a name are one person, "exact" if they are several.

    A user's rows are taken by step. Of several rows at one step the latest counts, and of those the one in the state
    of the least number. A row without a user, step or time that a file reader takes counts nowhere (docs/spark.md); one
    in no state too, and it ends a sequence.

    The result is private: it stays on the driver, shows nothing of itself, and is for
    `dphmm.markov.private.fit_counts`. Raises InvalidInput for public options, before any job starts.

    Examples
    --------
    ``counts = dphmm.spark.count_transitions(spark.read.parquet("walks"), space, max_length=24)``

    Source: docs/proofs/learning.md.
    """
    caps = RecordBounds(max_length, max_sequences)
    key_by(spelling)
    return counted(frame, FrameColumns.of(frame, space, columns), space, caps, checked_shortest(shortest), spelling)


def checked_shortest(shortest: int) -> int:
    """The least number of rows of a sequence. Raises InvalidInput for another number than 1 or 2."""
    if isinstance(shortest, bool) or shortest not in (1, 2):
        raise InvalidInput("shortest", shortest, "1 or 2 rows")
    return int(shortest)


def counted(
    frame: Any,
    roles: FrameColumns,
    space: StateSpace,
    caps: RecordBounds,
    shortest: int,
    spelling: str,
    slots: Slots | None = None,
    seconds: int | None = None,
    end: int | None = None,
) -> TransitionCounts:
    """The counts of checked public options: one job, and a second one where an owner has very many rows."""
    task = CountRows(space.n_states, caps, shortest, roles.states(space), False, slots, seconds, end)
    keys, totals = key_totals(roles.columns(frame), task, spelling)
    return counts_of_keys(keys, totals, space.n_states, caps, slots, end)


def key_totals(columns: Any, task: Task, spelling: str) -> tuple[IntArray, IntArray]:
    """The counts of the tasks over columns owner, step and others: keys (k,) and totals (k,). One job, or two."""
    require_fixed(columns)
    again, keys, totals = _sums(columns, task, spelling)
    if again:
        again, keys, totals = _sums(columns, replace(task, by_step=True), spelling)
    return keys, totals


def _sums(columns: Any, task: Task, spelling: str) -> tuple[bool, IntArray, IntArray]:
    """The sums over tasks: True if one wants its rows in another order, keys (k,) and totals (k,).

    Every row of it is of one part of all possible keys: the number of rows says nothing of the counts.
    """
    parts = task.parts
    placed = in_order(columns, spelling) if task.by_step else packed(columns, task, spelling)
    counted = placed.mapInArrow(WithoutValues(task), TOTALS)
    adding = counted.repartitionById(min(parts.count, tasks_of(columns)), "part")
    rows = list(parts.read(adding.mapInArrow(WithoutValues(AddTotals(parts)), TOTALS).toArrow().to_batches()))
    none = np.zeros(0, dtype=np.int64)
    keys = np.concatenate([none, *(part * parts.size + keys for part, _, keys, _ in rows)])
    return any(again for _, again, _, _ in rows), keys, np.concatenate([none, *(totals for *_, totals in rows)])


def packed(columns: Any, task: Task, spelling: str) -> Any:
    """The rows packed by buckets of owners, each bucket in one partition and one after the other.

    Where an owner is no number, the bucket is that of a hash; the keys come along, and are compared.
    """
    rows = columns.mapInArrow(WithoutValues(PackRows(task, spelling)), PACKED)
    return rows.repartition(tasks_of(columns), "bucket").sortWithinPartitions("bucket")


def in_order(columns: Any, spelling: str) -> Any:
    """All rows of an owner in one partition, by owner and step."""
    from pyspark.sql import functions

    columns = columns.mapInArrow(WithoutValues(KeyOwners(spelling)), columns.schema)
    # Rows of nobody would otherwise all be in one partition.
    nobody = functions.when(functions.isnull("owner"), functions.col("step"))
    return columns.repartition(tasks_of(columns), "owner", nobody).sortWithinPartitions("owner", "step")


def tasks_of(frame: Any) -> int:
    """The number of tasks that count. With a number of its own Spark neither joins nor splits them: all cores work."""
    from pyspark.sql.utils import is_remote

    session = frame.sparkSession
    if is_remote():
        # A remote session does not tell how many cores there are.
        return int(session.conf.get("spark.sql.shuffle.partitions"))
    return _TASKS_PER_CORE * int(session.sparkContext.defaultParallelism)


def types_of(frame: Any) -> dict[str, str]:
    """The columns of a frame and their types: public. Raises InvalidInput for a name that stands twice."""
    fields = frame.schema.fields
    types = {field.name: type(field.dataType).__name__ for field in fields}
    if len(types) < len(fields):
        raise InvalidInput("columns", ", ".join(field.name for field in fields), "different names")
    return types


def text_of(frame: Any, name: str) -> Any:
    """A column of labels as text that is compared by its bytes, whatever collation it has.

    Bytes that are no text are nothing: replaced, those of two people could be one name, under which they share a cap.
    """
    from pyspark.sql import functions

    return functions.try_validate_utf8(frame[f"`{name}`"].cast("string"))


def readable_user(frame: Any, types: Mapping[str, str], name: str) -> Any:
    """A column of users: whole numbers, or the bytes of names. Without a name that a file reader takes: nobody."""
    from pyspark.sql import functions

    if types[name] in INTEGERS:
        return frame[f"`{name}`"].cast("long")
    text = text_of(frame, name)
    good = (functions.length(text) >= 1) & (functions.length(text) <= LONGEST_NAME) & ~text.rlike(FORBIDDEN)
    return functions.when(good, text).cast("binary")


def checked_type(types: Mapping[str, str], name: str, allowed: tuple[str, ...]) -> None:
    """InvalidInput for a column of another type."""
    if types[name] not in allowed:
        remedy = _REMEDIES.get(types[name], "cast it: frame.withColumn({name!r}, ...cast(TYPE))").format(name=name)
        raise InvalidInput(f"column {name}", types[name], f"one of {', '.join(allowed)}; {remedy}")


def named_columns(types: Mapping[str, str], given: Mapping[str, str] | None, roles: tuple[str, ...]) -> dict[str, str]:
    """The names of columns that were given, by role. Raises InvalidInput for other roles and unknown names."""
    named = dict(given or {})
    for role, name in named.items():
        if role not in roles:
            raise InvalidInput("columns", role, f"a role, one of {', '.join(roles)}")
        if name not in types:
            raise InvalidInput(f"columns[{role!r}]", name, f"one of the columns {', '.join(types)}")
    return named


@dataclass(frozen=True)
class FrameColumns:
    """The columns of a frame by role, and their types: public."""

    user: str
    step: str
    state: str | None
    time: str | None
    lat: str | None
    lon: str | None
    types: Mapping[str, str]
    #: The column of known states, beside that of their symbols.
    known: str | None = None

    @classmethod
    def of(cls, frame: Any, space: StateSpace, given: Mapping[str, str] | None) -> FrameColumns:
        """The roles of the frame's columns, from their types. Raises InvalidInput for a missing or unfit one."""
        types = types_of(frame)
        named = named_columns(types, given, _ROLES)

        def needed(role: str, allowed: tuple[str, ...]) -> str:
            name = named.get(role, role)
            if name not in types:
                raise InvalidInput("columns", ", ".join(types), f"a column {role}, or columns={{{role!r}: NAME}}")
            checked_type(types, name, allowed)
            return name

        user, step = needed("user", _OWNERS), needed("step", INTEGERS)
        time = needed("t", _TIMES) if "t" in named or "t" in types else None
        if space.on_map and "state" not in named and ("lat" in types or "lat" in named):
            return cls(user, step, None, time, needed("lat", NUMBERS), needed("lon", NUMBERS), types)
        return cls(user, step, needed("state", (*INTEGERS, *TEXT)), time, None, None, types)

    def states(self, space: StateSpace) -> ByNumber | ByName | ByPlace:
        """The rule by which a task finds the number of a state."""
        if self.state is None:
            return ByPlace(space)
        return ByNumber() if self.types[self.state] in INTEGERS else ByName(tuple(space.names))

    def columns(self, frame: Any) -> Any:
        """The columns that are counted: owner, step, time if there is one, and state, or lat and lon.

        Text is compared by its bytes: under a collation two owners could be equal, and their rows mixed.
        """
        chosen = {"owner": self.user, "step": self.step, "time": self.time, "state": self.state}
        chosen |= {"lat": self.lat, "lon": self.lon, "known": self.known}
        columns = []
        for role, name in chosen.items():
            if name is not None:
                column = frame[f"`{name}`"]
                if role == "owner":
                    column = readable_user(frame, self.types, name)
                elif role in ("lat", "lon"):
                    column = column.cast("double")
                elif self.types[name] in INTEGERS:
                    column = column.cast("long")
                elif self.types[name] in TEXT:
                    column = column.cast("binary")
                columns.append(column.alias(role))
        return frame.select(*columns)
