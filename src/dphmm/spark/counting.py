"""Exact counts of capped records on executors: rows of an owner together, in a total order, counted as they pass.

All rows of an owner come to one task by a hash of the owner, sorted by values of the rows alone. A task that runs
again, with rows that arrive in another order, counts the same. Counts are summed as integers and come to the driver.

Proof: docs/proofs/learning.md. Decision: docs/adr/0030.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.private.row_counter import RowCounter, counts_of_keys
from dphmm.markov.private.sensitivity import Caps
from dphmm.markov.private.transition_counts import TransitionCounts
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

    from dphmm.states.space import StateSpace

_ROLES = ("user", "step", "state", "time", "lat", "lon")
_INTEGERS = ("ByteType", "ShortType", "IntegerType", "LongType")
_OWNERS = (*_INTEGERS, "StringType", "BinaryType", "VarcharType", "CharType")
_TIMES = (*_INTEGERS, "TimestampType", "TimestampNTZType", "DateType")
_NUMBERS = (*_INTEGERS, "FloatType", "DoubleType")
#: Keys of one batch that a task gives back.
_ROWS_BACK = 2**16


def count_transitions(
    frame: Any,
    space: StateSpace,
    *,
    max_length: int,
    max_sequences: int = 1,
    columns: Mapping[str, str] | None = None,
    shortest: int = 2,
) -> TransitionCounts:
    """Count the transitions of a Spark frame on its executors, exactly and without noise.

    Parameters
    ----------
    frame : rows with columns user, step (whole numbers, one apart where rows follow each other) and state: a name of
        the space, or a number 0..N-1. On a map also lat and lon instead of state. A column t is the time of a row.
    space : the public states.
    max_length, max_sequences : public; a user's first sequences of at least ``shortest`` rows (1 or 2) count, each cut
        to its first rows.
    columns : names of columns by role ("user", "step", "state", "time", "lat", "lon") where they differ.

    A user's rows are taken by step. Of several rows at one step the latest counts, and of those the least state (name
    or number). A row without a user or a step counts nowhere; one in no state counts nowhere and ends a sequence.

    The result is private: it stays on the driver, shows nothing of itself, and is for
    `dphmm.markov.private.fit_counts`. Raises InvalidInput for public options, before any job starts.

    Examples
    --------
    ``counts = dphmm.spark.count_transitions(spark.read.parquet("walks"), space, max_length=24)``

    Source: docs/proofs/learning.md.
    """
    caps = Caps(max_length, max_sequences)
    return counted(frame, Roles.of(frame, space, columns), space, caps, checked_shortest(shortest))


def checked_shortest(shortest: int) -> int:
    """How many rows a sequence has at least. Raises InvalidInput for another number than 1 or 2."""
    if isinstance(shortest, bool) or shortest not in (1, 2):
        raise InvalidInput("shortest", shortest, "1 or 2 rows")
    return int(shortest)


def counted(frame: Any, roles: Roles, space: StateSpace, caps: Caps, shortest: int) -> TransitionCounts:
    """The counts of checked public options: one job."""
    from pyspark.sql import functions

    count = CountRows(space.n_states, caps, shortest, roles.states(space))
    sums = (
        roles.sorted(frame)
        .mapInArrow(count, "key long, total long")
        .groupBy("key")
        .agg(functions.sum("total").alias("total"))
        .toArrow()
    )
    keys, totals = (sums.column(name).to_numpy().astype(np.int64) for name in ("key", "total"))
    return counts_of_keys(keys, totals, space.n_states, caps)


@dataclass(frozen=True)
class Roles:
    """Which column of a frame is what: names of columns, which are public."""

    user: str
    step: str
    state: str | None
    time: str | None
    lat: str | None
    lon: str | None
    by_name: bool

    @classmethod
    def of(cls, frame: Any, space: StateSpace, given: Mapping[str, str] | None) -> Roles:
        """From the frame's columns and their types. Raises InvalidInput for those that cannot say what is needed."""
        types = {field.name: type(field.dataType).__name__ for field in frame.schema.fields}
        named = dict(given or {})
        for role, name in named.items():
            if role not in _ROLES:
                raise InvalidInput("columns", role, f"a role, one of {', '.join(_ROLES)}")
            if name not in types:
                raise InvalidInput(f"columns[{role!r}]", name, f"one of the columns {', '.join(types)}")

        def found(role: str, default: str, allowed: tuple[str, ...], needed: bool = True) -> str | None:
            name = named.get(role, default if default in types else None)
            if name is None and needed:
                raise InvalidInput("columns", ", ".join(types), f"a column {default}, or columns={{{role!r}: NAME}}")
            if name is not None and types[name] not in allowed:
                raise InvalidInput(f"column {name}", types[name], f"one of {', '.join(allowed)}")
            return name

        user, step = found("user", "user", _OWNERS), found("step", "step", _INTEGERS)
        time = found("time", "t", _TIMES, needed=False)
        by_place = "state" not in named and space.on_map and ("lat" in types or "lat" in named)
        state = None if by_place else found("state", "state", (*_INTEGERS, "StringType", "VarcharType", "CharType"))
        lat, lon = (found(role, role, _NUMBERS) if by_place else None for role in ("lat", "lon"))
        assert user is not None and step is not None
        return cls(user, step, state, time, lat, lon, state is not None and types[state] not in _INTEGERS)

    def states(self, space: StateSpace) -> ByName | ByPlace | None:
        """How an executor tells states, None where the column has their numbers."""
        if self.state is None:
            return ByPlace(space)
        return ByName(tuple(space.names)) if self.by_name else None

    def sorted(self, frame: Any) -> Any:
        """Columns owner, step and what says the state: all rows of an owner in one partition, in a total order.

        The order is that of the values alone. Owners are compared by their bytes: two that some order calls equal
        would be two owners in one run of rows, and each would be capped for itself, again and again.
        """
        from pyspark.sql import functions

        column = {name: frame[f"`{name}`"] for name in frame.columns}
        owner = column[self.user]
        owner = owner.cast("long" if isinstance_of(frame, self.user, _INTEGERS) else "binary")
        states = {"state": self.state} if self.state is not None else {"lat": self.lat, "lon": self.lon}
        kept = {role: column[name] for role, name in states.items() if name is not None}
        if self.state is not None:
            kept["state"] = kept["state"].cast("binary" if self.by_name else "long")
        else:
            kept = {role: value.cast("double") for role, value in kept.items()}
        time = {} if self.time is None else {"time": column[self.time]}
        chosen = {"owner": owner, "step": column[self.step].cast("long"), **time, **kept}
        rows = frame.select(*[value.alias(role) for role, value in chosen.items()])
        # Rows of nobody would otherwise all be in one partition.
        nobody = functions.when(functions.isnull("owner"), functions.col("step"))
        order = ["owner", "step", *[functions.desc(role) for role in time], *kept]
        return rows.repartition("owner", nobody).sortWithinPartitions(*order).drop("time")


def isinstance_of(frame: Any, name: str, types: tuple[str, ...]) -> bool:
    """Whether a column has one of these types."""
    return type(frame.schema[name].dataType).__name__ in types


@dataclass(frozen=True)
class ByName:
    """Numbers of states from their names."""

    names: tuple[str, ...]

    def __call__(self, batch: pa.RecordBatch) -> IntArray:
        import pyarrow as pa
        import pyarrow.compute as pc

        column = batch.column("state")
        known = pa.array([name.encode() for name in self.names], type=column.type)
        return np.asarray(pc.fill_null(pc.index_in(column, value_set=known), -1)).astype(np.int64)


@dataclass(frozen=True)
class ByPlace:
    """Numbers of states from places."""

    space: Any

    def __call__(self, batch: pa.RecordBatch) -> IntArray:
        lat, lon = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("lat", "lon"))
        good = np.isfinite(lat) & np.isfinite(lon) & (np.abs(lat) <= 90) & (np.abs(lon) <= 180)
        found = np.full(len(lat), -1, dtype=np.int64)
        found[good] = self.space.locate(lat[good], lon[good])
        return found


def _by_number(batch: pa.RecordBatch) -> IntArray:
    import pyarrow.compute as pc

    return np.asarray(pc.fill_null(batch.column("state"), -1))


@dataclass(frozen=True)
class CountRows:
    """What a task does with its sorted rows: one batch after the other, and the totals at the end."""

    n_states: int
    caps: Caps
    shortest: int
    states: ByName | ByPlace | None

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches (key, total) of what `RowCounter` found."""
        import pyarrow as pa

        counter, owners = RowCounter(self.n_states, self.caps, self.shortest), OwnerChanges()
        for batch in batches:
            known = _owned(batch)
            counter.leave_out(len(batch) - len(known))
            step = np.asarray(known.column("step"))
            counter.add(owners.of(known.column("owner")), step, (self.states or _by_number)(known))
        keys, totals = counter.found()
        for first in range(0, len(keys), _ROWS_BACK):
            part = slice(first, first + _ROWS_BACK)
            yield pa.RecordBatch.from_arrays([pa.array(keys[part]), pa.array(totals[part])], ["key", "total"])


class OwnerChanges:
    """Where sorted rows that come in batches pass from one owner to the next."""

    def __init__(self) -> None:
        self._last: Any = None

    def of(self, owner: Any) -> BoolArray:
        """Whether each row (n,) has another owner than the row before it. Raises ValueError for unsorted owners."""
        import pyarrow.compute as pc

        if len(owner) == 0:
            return np.zeros(0, dtype=np.bool_)
        begun, self._last = (owner[0].as_py(), self._last), owner[-1].as_py()
        first = begun[1] is None or begun[0] != begun[1]
        one, other = owner.slice(0, len(owner) - 1), owner.slice(1)
        if (first and begun[1] is not None and begun[0] < begun[1]) or pc.any(pc.greater(one, other)).as_py():
            raise ValueError("rows are out of order: sort them by owner and step")
        return np.concatenate([[first], np.asarray(pc.not_equal(one, other))])


def _owned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with an owner and a step."""
    import pyarrow.compute as pc

    owner, step = batch.column("owner"), batch.column("step")
    if owner.null_count == 0 and step.null_count == 0:
        return batch
    return batch.filter(pc.and_(pc.is_valid(owner), pc.is_valid(step)))
