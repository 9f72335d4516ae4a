"""What a task does with the rows of its owners: Arrow batches in, totals of a counter out. No Spark is needed here.

A task has all rows of its owners. Spark puts them in order by the owner alone, which is fast, and the task puts each
owner's rows in order by step; or Spark does both, where an owner has more rows than a task holds.

Proof: docs/proofs/learning.md, docs/proofs/contributions.md. Decision: docs/adr/0030.
"""

from __future__ import annotations

import gc
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from dphmm.dependent._record_counter import RecordCounter
from dphmm.dependent._records import states_of_places
from dphmm.markov.private.sensitivity import Caps
from dphmm.markov.private.transition_counts import UNSORTED, RowCounter, SortedRows
from dphmm.spark.totals_task import Parts
from dphmm.storage.columns import EARLIEST, LATEST
from dphmm.storage.trajectories import places_of
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: Rows of one owner that a task holds and puts in order itself.
MOST_HELD = 2**20
#: Steps that are numbers, least and largest.
_STEPS = (-(2**53), 2**53)
#: A time that is missing, before all others.
_MISSING = -(2**63)

#: Numbers (m,) of the states of rows, -1 where there is none.
States: TypeAlias = "Callable[[pa.RecordBatch], IntArray]"


@dataclass(frozen=True)
class WithoutValues:
    """What a task does, with errors that show nothing of its rows: what a library says may, and Spark logs it."""

    task: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches that the task makes. Raises RuntimeError with the kind and the place of what it raises."""
        try:
            yield from self.task(batches)
        except Exception as error:
            raise without_values(error) from None
        keep_loaded()


def keep_loaded() -> None:
    """Take all that a worker of Spark has loaded out of garbage collection, once in the life of its process.

    Spark collects after every task, which goes over all objects of all libraries: a seventh of a second for each task,
    however few its rows are. What is loaded stays anyway.
    """
    if "pyspark.worker" in sys.modules and not gc.get_freeze_count():
        gc.collect()
        gc.freeze()


def without_values(error: Exception) -> RuntimeError:
    """An error with the kind of another one, and the file and line that it comes from; raise it ``from None``."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = "an unknown line" if trace is None else f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    return RuntimeError(f"{type(error).__name__} at {at}; nothing of this task is shown")


class NotInOrder(Exception):
    """An owner has too many rows to be put in order here, or stands among the rows of another one."""


class Part(NamedTuple):
    """Rows (m,), all of one owner together. ``changed``: whether the row before it, in any part, is another owner's."""

    changed: BoolArray
    step: IntArray
    state: IntArray
    time: IntArray | None


@dataclass(frozen=True)
class ByNumber:
    """Numbers of states as they are."""

    def __call__(self, batch: pa.RecordBatch) -> IntArray:
        import pyarrow.compute as pc

        return np.asarray(pc.fill_null(batch.column("state"), -1))


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
        lat, lon = (_floats(batch.column(name)) for name in ("lat", "lon"))
        # A null is none of these.
        good = (np.abs(lat) <= 90) & (np.abs(lon) <= 180)
        found = np.full(len(lat), -1, dtype=np.int64)
        found[good] = self.space.locate(lat[good], lon[good])
        return found


@dataclass(frozen=True)
class ByNearestPlace:
    """Numbers of states from places: of one outside all states the nearest, none of what is no place."""

    space: Any

    def __call__(self, batch: pa.RecordBatch) -> IntArray:
        import pyarrow as pa

        lat, lon, bad = places_of(pa.Table.from_batches([batch]), "lat", "lon")
        found = np.full(len(lat), -1, dtype=np.int64)
        found[~bad] = states_of_places(self.space, lat[~bad], lon[~bad])
        return found


class CountOwners(ABC):
    """Count the rows of a task as they pass, and give the totals at the end."""

    #: How a task tells the number of a state.
    states: States
    #: Whether the rows are in order by owner and step, and not by ``key`` (or owner) alone.
    by_step: bool

    @abstractmethod
    def counter(self) -> SortedRows:
        """What counts the rows of this task."""

    @property
    def parts(self) -> Parts:
        """In which parts its totals come back: public."""
        return Parts(self.counter().n_keys)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What the counter found, as `Parts.rows`; ``again`` and nothing where the rows are not in order enough."""
        counter, again = self.counter(), False
        parts = self._parts(batches, counter)
        try:
            for part in parts if self.by_step else in_order(parts):
                counter.add(*part)
            keys, totals = counter.found()
        except NotInOrder:
            keys, totals, again = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), True
        yield from self.parts.rows(keys, totals, again)

    def _parts(self, batches: Iterator[pa.RecordBatch], counter: SortedRows) -> Iterator[Part]:
        """The rows that have an owner and a step."""
        owners = OwnerChanges()
        for batch in batches:
            known = self.owned(batch)
            counter.leave_out(len(batch) - len(known))
            if len(known):
                yield Part(owners.of(known), *self.when(known))

    def owned(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows with an owner and a step, and a time where there is one, in the ranges that a file reader takes."""
        import pyarrow as pa

        known = _owned(batch)
        good = np.ones(len(known), dtype=np.bool_)
        for name in {"step", "time"} & set(known.schema.names):
            values = _integers(known.column(name))
            if pa.types.is_timestamp(known.column(name).type):
                least, most = EARLIEST, LATEST - 1
            else:
                least, most = _STEPS if name == "step" else (_MISSING + 1, -_MISSING - 1)
            good &= (values >= least) & (values <= most)
        return known if good.all() else known.filter(pa.array(good))

    def when(self, known: pa.RecordBatch) -> tuple[IntArray, IntArray, IntArray | None]:
        """Step, state and time of rows that have an owner and a step."""
        time = _integers(known.column("time")) if "time" in known.schema.names else None
        return np.asarray(known.column("step")), self.states(known), time


@dataclass(frozen=True)
class CountRows(CountOwners):
    """Count transitions."""

    n_states: int
    caps: Caps
    shortest: int
    states: States
    by_step: bool

    def counter(self) -> RowCounter:
        """One of transitions."""
        return RowCounter(self.n_states, self.caps, self.shortest)


@dataclass(frozen=True)
class CountRecords(CountOwners):
    """Count records of a histogram. ``bin``: microseconds of a step, where the column of steps has times."""

    spans: tuple[tuple[int, int], ...]
    n_states: int
    n_times: int
    first: int | None
    most: int | None
    other: int
    bin: int | None
    states: States
    by_step: bool

    def counter(self) -> RecordCounter:
        """One of records."""
        return RecordCounter(self.spans, self.n_states, self.n_times, self.first, self.most, self.other)

    def when(self, known: pa.RecordBatch) -> tuple[IntArray, IntArray, IntArray | None]:
        """Times are numbered by their bins, and are the times of their rows."""
        if self.bin is None:
            return super().when(known)
        time = _integers(known.column("step"))
        return np.floor_divide(time, self.bin), self.states(known), time


class OwnerChanges:
    """Where rows that come in batches pass from one owner to the next: in order by key, or by owner without one."""

    def __init__(self) -> None:
        self._last: Any = None
        self._last_key: int | None = None

    def of(self, batch: pa.RecordBatch) -> BoolArray:
        """Whether each row (n,) of a batch has another owner than the row before it.

        Raises ValueError for rows that are out of order, and NotInOrder for two owners under one key.
        """
        import pyarrow.compute as pc

        owner, last = batch.column("owner"), self._last
        begun, self._last = owner[0].as_py(), owner[-1].as_py()
        one, other = owner.slice(0, len(owner) - 1), owner.slice(1)
        changed = np.concatenate([[last is None or begun != last], np.asarray(pc.not_equal(one, other))])
        if "key" in batch.schema.names:
            self._check_keys(np.asarray(batch.column("key")), changed)
        elif (last is not None and begun < last) or pc.any(pc.greater(one, other)).as_py():
            raise ValueError(UNSORTED)
        return changed

    def _check_keys(self, key: IntArray, changed: BoolArray) -> None:
        fresh = self._last_key is None
        before = np.concatenate([[key[0] if fresh else self._last_key], key[:-1]])
        if (key < before).any():
            raise ValueError(UNSORTED)
        if ((key == before) & changed)[1 if fresh else 0 :].any():
            raise NotInOrder
        self._last_key = int(key[-1])


def in_order(parts: Iterator[Part]) -> Iterator[Part]:
    """The same rows, those of each owner by step. Raises NotInOrder for an owner of more than ``MOST_HELD`` rows."""
    held: list[Part] = []
    for part in parts:
        begins = np.flatnonzero(part.changed)
        if len(begins) == 0:
            held.append(part)
        else:
            # All owners but the last one are complete.
            last = int(begins[-1])
            yield from _sorted([*held, _of(part, slice(last))])
            held = [_of(part, slice(last, None))]
        if sum(len(each.step) for each in held) > MOST_HELD:
            raise NotInOrder
    yield from _sorted(held)


def _of(part: Part, rows: slice) -> Part:
    time = None if part.time is None else part.time[rows]
    return Part(part.changed[rows], part.step[rows], part.state[rows], time)


def _sorted(parts: list[Part]) -> Iterator[Part]:
    if sum(len(part.step) for part in parts) == 0:
        return
    changed = np.concatenate([part.changed for part in parts])
    step, state = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    owner = np.cumsum(changed)
    least = int(step.min())
    span = int(step.max()) - least + 1
    # One number for owner and step where there is room: it is sorted faster than two.
    if (int(owner[-1]) + 1) * span < 2**62:
        order = np.argsort(owner * span + (step - least))
    else:
        order = np.lexsort((step, owner))
    time = None if parts[0].time is None else np.concatenate([part.time for part in parts if part.time is not None])
    # Each owner's rows stay where they are together, so owners change where they did.
    yield Part(changed, step[order], state[order], None if time is None else time[order])


def _owned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with an owner and a step."""
    import pyarrow.compute as pc

    owner, step = batch.column("owner"), batch.column("step")
    if owner.null_count == 0 and step.null_count == 0:
        return batch
    return batch.filter(pc.and_(pc.is_valid(owner), pc.is_valid(step)))


def _integers(column: Any) -> IntArray:
    """Steps or times as numbers in their own order; none is before all."""
    import pyarrow as pa
    import pyarrow.compute as pc

    whole = column.cast(pa.int32()) if pa.types.is_date32(column.type) else column
    return np.asarray(pc.fill_null(whole.cast(pa.int64()), _MISSING))


def _floats(column: Any) -> FloatArray:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
