"""What tasks do on executors: rows of owners and edges in, totals of counters out. No Spark is needed here.

A task has all rows of its owners. Spark puts them in order by the owner alone, which is fast, and the task puts each
owner's rows in order by step; or Spark does both, where an owner has more rows than a task holds. Records of a
histogram are counted from sorted rows that come in parts of any size, in memory that does not grow with their number.

Ends of edges become numbers of people, and edges are taken one after the other.

Spark shows how many rows each task gave, in its pages, its event log and its metrics. One row for each key that occurs
would tell how many do, exactly and without noise. So a task gives one row for each part of all possible keys. Up to
``MOST_DENSE`` keys a row holds the totals of all keys of its part, the zeros too, and has the same length as well.

Proofs: docs/proofs/learning.md, docs/proofs/contributions.md, docs/proofs/dependent-markov.md.
Decision: docs/adr/0030.
"""

from __future__ import annotations

import gc
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from dphmm.dependent._degrees import People, ends_among_people, mixed
from dphmm.dependent._records import states_of_places
from dphmm.markov.private.sensitivity import Caps
from dphmm.markov.private.transition_counts import UNSORTED, KeyTotals, RowCounter, Rows, SortedRows
from dphmm.storage.columns import EARLIEST, LATEST
from dphmm.storage.trajectories import places_of
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: Whether this process has taken what it loaded out of garbage collection.
_kept = False
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
    global _kept
    # Python would tell, too, but counts all frozen objects each time.
    if "pyspark.worker" in sys.modules and not _kept:
        gc.collect()
        gc.freeze()
        _kept = True


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


EDGES = "first long, second long, place long"
_ENDS = ["first", "second", "place"]


@dataclass(frozen=True)
class EdgesOfPeople:
    """Edges of two different public people: numbers first < second, and the place in the order of `mixed`.

    Rows that are none are passed over. An edge that stands twice is given twice.
    """

    people: People

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches (first, second, place) of batches of text (a, b)."""
        import pyarrow as pa

        for batch in batches:
            pairs = ends_among_people(pa.Table.from_batches([batch]), self.people)
            pairs = pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])]
            first, second = pairs.min(axis=1, initial=2**62), pairs.max(axis=1, initial=-1)
            # Spark compares signed numbers.
            place = (mixed(first, second) ^ np.uint64(2**63)).view(np.int64)
            yield pa.RecordBatch.from_arrays([pa.array(first), pa.array(second), pa.array(place)], _ENDS)


@dataclass(frozen=True)
class KeepEdges:
    """The edges whose ends both have fewer than ``cap`` edges when their turn comes.

    All edges come to one task, by place, first and second. It holds one number for each of their ends.
    """

    cap: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Some rows of batches (first, second, place). Raises ValueError for rows that are out of order."""
        import pyarrow as pa

        cap, degrees, last = self.cap, dict[int, int](), (-(2**63), -1, -1)
        for batch in batches:
            kept = []
            for a, b, place in zip(*(batch.column(name).to_pylist() for name in _ENDS), strict=True):
                if (place, a, b) <= last:
                    raise ValueError("edges are out of order: sort them by place and ends, each once")
                last = (place, a, b)
                one, other = degrees.get(a, 0), degrees.get(b, 0)
                room = one < cap and other < cap
                if room:
                    degrees[a], degrees[b] = one + 1, other + 1
                kept.append(room)
            yield batch.filter(pa.array(kept, pa.bool_()))


#: The columns of what comes back. ``again``: nothing was counted, as the rows must be in another order.
TOTALS = "part int, again boolean, totals binary"
#: Up to so many possible keys a row holds the totals of all of them: 4,095 states. Above, of those that occur.
MOST_DENSE = 2**24
#: Keys of a part, where a row holds all of them: 2 MiB.
_PART_KEYS = 2**18
#: Parts, where a row holds the keys that occur.
_PARTS = 64
_TOTALS = ["part", "again", "totals"]


@dataclass(frozen=True)
class Parts:
    """Keys 0..n_keys-1 in parts of ``size`` keys that follow each other: public."""

    n_keys: int

    @property
    def dense(self) -> bool:
        """Whether a row holds the totals of all keys of its part."""
        return self.n_keys <= MOST_DENSE

    @property
    def size(self) -> int:
        """Keys of each part but the last one."""
        return _PART_KEYS if self.dense else -(-self.n_keys // _PARTS)

    @property
    def count(self) -> int:
        """How many parts there are."""
        return -(-self.n_keys // self.size)

    def rows(self, keys: IntArray, totals: IntArray, again: bool = False) -> Iterator[pa.RecordBatch]:
        """A row for each part, of increasing keys (k,) that occur and their totals (k,)."""
        ends = np.searchsorted(keys, self.size * np.arange(self.count + 1))
        for part in range(self.count):
            own = slice(ends[part], ends[part + 1])
            yield self.row(part, keys[own] - part * self.size, totals[own], again)

    def row(self, part: int, keys: IntArray, totals: IntArray, again: bool) -> pa.RecordBatch:
        """One row, of keys that are counted from the first one of the part."""
        import pyarrow as pa

        if self.dense:
            cell = np.zeros(min(self.size, self.n_keys - part * self.size), dtype="<i8")
            cell[keys] = totals
        else:
            cell = np.concatenate([keys, totals]).astype("<i8")
        columns = [pa.array([part], pa.int32()), pa.array([again]), pa.array([cell.tobytes()], pa.binary())]
        return pa.RecordBatch.from_arrays(columns, _TOTALS)

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, bool, IntArray, IntArray]]:
        """Part, ``again``, keys (k,) from the first one of the part, and totals (k,), of every row."""
        for batch in batches:
            for part, again, cell in zip(*(batch.column(name) for name in _TOTALS), strict=True):
                found = np.frombuffer(cell.as_buffer(), dtype="<i8")
                keys = np.flatnonzero(found) if self.dense else found[: len(found) // 2]
                yield part.as_py(), again.as_py(), keys, found[keys] if self.dense else found[len(found) // 2 :]


@dataclass(frozen=True)
class AddTotals:
    """Add up the rows of each part, those of all tasks: one row a part comes out."""

    parts: Parts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches (part, again, totals) of such batches."""
        sums, asked = dict[int, KeyTotals](), dict[int, bool]()
        for part, again, keys, totals in self.parts.read(batches):
            sums.setdefault(part, KeyTotals(self.parts.size)).add(keys, totals)
            asked[part] = asked.get(part, False) or again
        for part, found in sums.items():
            yield self.parts.row(part, *found.found(), asked[part])


Spans = Sequence[tuple[int, int]]


class RecordCounter(SortedRows):
    """Counts rows (person, step, state) as a histogram does, part by part: one record of each person and step.

    A person's first ``most`` records count (None: all) of those at the public steps 0 to ``n_times`` - 1, which begin
    at step ``first`` (None: at the person's own first one). A row in no state counts in the state ``other``. Keys are
    ``interval * n_states + state``, an interval being from one of `edges_of` to the next.
    """

    def __init__(
        self, spans: Spans, n_states: int, n_times: int, first: int | None, most: int | None, other: int
    ) -> None:
        self._edges, self._n_times, self._first, self._most, self._other = edges_of(spans), n_times, first, most, other
        super().__init__(n_states, len(self._edges) * n_states)
        # Of the last person: the first step, and how many records count.
        self._begun = self._records = 0

    def leave_out(self, rows: int) -> None:
        """These rows count nowhere."""

    def _take(self, rows: Rows) -> None:
        if len(rows.step) == 0:
            return
        places = np.arange(len(rows.step))
        begins = np.maximum.accumulate(np.where(rows.new_owner, places, -1))
        begun = np.where(begins < 0, self._begun, rows.step[begins])
        number = rows.step - (begun if self._first is None else self._first)
        inside = (number >= 0) & (number < self._n_times)
        passed = np.cumsum(inside)
        before = np.maximum.accumulate(np.where(rows.new_owner, passed - inside, -self._records))
        rank: IntArray = passed - before
        kept = inside if self._most is None else inside & (rank <= self._most)
        between = np.searchsorted(self._edges, number[kept], side="right") - 1
        state = np.where(rows.state < self._n, rows.state, self._other)[kept]
        # What is before all windows is in none.
        counted = between >= 0
        self._totals.add(between[counted] * self._n + state[counted])
        self._begun, self._records = int(begun[-1]), int(rank[-1])


def edges_of(spans: Spans) -> IntArray:
    """Where a window begins or ends, each place once, increasing."""
    return np.unique(np.array(spans, dtype=np.int64))


def counts_of_intervals(keys: IntArray, totals: IntArray, spans: Spans, n_states: int) -> IntArray:
    """The counts (W, N) of windows, which may overlap, from added keys (k,) and totals of `RecordCounter.found`."""
    edges = edges_of(spans)
    # Row i is what is before edge i.
    before = np.zeros((len(edges) + 1, n_states), dtype=np.int64)
    np.add.at(before, (keys // n_states + 1, keys % n_states), totals)
    np.cumsum(before, axis=0, out=before)
    first, end = (np.searchsorted(edges, side) for side in np.array(spans, dtype=np.int64).T)
    found: IntArray = before[end] - before[first]
    return found
