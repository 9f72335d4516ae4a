"""The tasks on executors: rows of owners and edges in, totals of counters out. No Spark is needed here.

An owner that is a name is a person by its key (`person_key`): rows under several spellings of one name are one owner's.
Owners fall into buckets. Where rows are read, a task packs those of one bucket into one row, so that Spark moves and
sorts few rows; where they are counted, a task has all rows of its buckets, and puts those of a bucket in order by owner
and step. Or Spark does that with the rows as they are, where a bucket has more of them than a task holds. Transitions,
and records of a histogram, are counted from sorted rows that come in parts of any size, in memory that does not grow
with their number.

Ends of edges become numbers of people. Edges are packed in the same way; a task puts those of its buckets in the order
of one process, each once, and one task takes them all, one after the other.

Spark shows how many rows each task gave, in its pages, its event log and its metrics. One row for each key that occurs
would tell how many do, exactly and without noise. So a task gives one row for each part of all possible keys. Up to
``MOST_DENSE`` keys a row holds the totals of all keys of its part, the zeros too, and has the same length as well.

Proofs: docs/proofs/learning.md, docs/proofs/contributions.md, docs/proofs/dependent-markov.md.
Decision: docs/adr/0030.
"""

from __future__ import annotations

import gc
import hashlib
import itertools
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dphmm import _kernels
from dphmm.accounting.person import key_by
from dphmm.dependent._degrees import People, ends_among, mixed
from dphmm.dependent._records import states_of_places
from dphmm.errors import InvalidInput
from dphmm.markov.private.sensitivity import RecordBounds
from dphmm.markov.private.transition_counts import (
    UNSORTED,
    KeyTotals,
    LabelledCounter,
    OwnerSteps,
    RowCounter,
    SortedRows,
    WordCounter,
)
from dphmm.markov.slots import Slots
from dphmm.states.space import StateSpace
from dphmm.storage.cells import places_of
from dphmm.storage.columns import EARLIEST, LATEST, as_text
from dphmm.storage.private_tables import Members
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

#: Whether this process has taken what it loaded out of garbage collection.
_kept = False
#: Owners fall into two to this power of buckets, as many for all data.
_BUCKET_BITS = 10
#: Rows that are packed together; rows of whole buckets that are put in order together.
_PACKED_TOGETHER, _SORTED_TOGETHER = 2**18, 2**16
#: Rows of one bucket that a task holds and puts in order itself.
MOST_HELD = 2**22
#: Steps that are numbers, least and largest.
_STEPS = (-(2**53), 2**53)
#: A time that is missing, before all others.
_MISSING = -(2**63)

#: Numbers (m,) of the states of rows, -1 where there is none.
States: TypeAlias = "Callable[[pa.RecordBatch], IntArray]"


@dataclass(frozen=True)
class WithoutValues:
    """A task whose errors show nothing of its rows: a library's message may, and Spark logs it."""

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
    however few its rows are. Loaded objects stay anyway.
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


def hash_of_key(key: bytes) -> int:
    """The 64-bit hash of a person's key, which decides the bucket of its rows."""
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little", signed=True)


def keys_of(names: pa.Array, spelling: str) -> tuple[pa.Array, IntArray]:
    """The key (n,) of the person of each name, as bytes, and its hash (n,); null and 0 where there is no key."""
    import pyarrow as pa

    key_of, keys = key_by(spelling), list[bytes | None]()
    encoded = names.cast(pa.string()).dictionary_encode()
    for name in encoded.dictionary.to_pylist():
        try:
            keys.append(key_of(name).encode())
        except InvalidInput:
            keys.append(None)
    hashes = np.array([0 if key is None else hash_of_key(key) for key in keys] + [0], dtype=np.int64)
    number = encoded.indices.fill_null(len(keys)).to_numpy(zero_copy_only=False)
    return pa.array([*keys, None], pa.binary()).take(pa.array(number)), hashes[number]


@dataclass(frozen=True)
class PlaceUsers:
    """Add to rows the bucket of their user, by the key of the name; rows of nobody are in the first one."""

    buckets: int
    spelling: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches with a column ``bucket`` behind the others."""
        import pyarrow as pa

        for batch in batches:
            _, hashes = keys_of(batch.column("user"), self.spelling)
            yield batch.append_column("bucket", pa.array((hashes % self.buckets).astype(np.int32)))


@dataclass(frozen=True)
class KeyOwners:
    """Put the key of a person in the place of each name; owners that are numbers stay, and those without a key go."""

    spelling: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches, as many rows of the same columns."""
        for batch in batches:
            yield self.with_hash(batch).select(batch.schema.names)

    def with_hash(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A batch, where owners are names with a column ``key`` too: the hashes of their keys."""
        import pyarrow as pa

        owner = batch.column("owner")
        if pa.types.is_integer(owner.type):
            return batch
        keys, hashes = keys_of(owner, self.spelling)
        place = batch.schema.get_field_index("owner")
        return batch.set_column(place, "owner", keys).append_column("key", pa.array(hashes))


class NotInOrder(Exception):
    """A bucket has too many rows to be put in order here, or two owners have one key."""


class OwnerRows(NamedTuple):
    """Rows (m,), all of one owner together. ``changed``: True where the row before, in any part, is another owner's."""

    changed: BoolArray
    step: IntArray
    state: IntArray
    time: IntArray | None


@dataclass(frozen=True)
class ByNumber:
    """Numbers of states as they are, in a column."""

    column: str = "state"

    def __call__(self, batch: pa.RecordBatch) -> IntArray:
        import pyarrow.compute as pc

        return np.asarray(pc.fill_null(batch.column(self.column), -1))


@dataclass(frozen=True)
class ByName:
    """Numbers of states from their names, in a column of bytes."""

    names: tuple[str, ...]
    column: str = "state"

    @cached_property
    def _space(self) -> StateSpace:
        return StateSpace.labels(self.names)

    def __call__(self, batch: pa.RecordBatch) -> IntArray:
        import pyarrow.compute as pc

        cells = batch.column(self.column).dictionary_encode()
        # Bytes that are not of the encoding become characters that no name has.
        names = [cell.decode(errors="surrogateescape") for cell in cells.dictionary.to_pylist()]
        states = np.append(self._space.indices_of(names), -1)
        return np.asarray(states[np.asarray(pc.fill_null(cells.indices, -1))])


@dataclass(frozen=True)
class ByPair:
    """Numbers of pairs, ``state * n_symbols + symbol``, where both are one."""

    states: ByNumber | ByName
    n_states: int
    symbols: States
    n_symbols: int

    def __call__(self, batch: pa.RecordBatch) -> IntArray:
        state, symbol = self.states(batch), self.symbols(batch)
        good = (state >= 0) & (state < self.n_states) & (symbol >= 0) & (symbol < self.n_symbols)
        return np.where(good, state * self.n_symbols + symbol, -1)


@dataclass(frozen=True)
class ByPlace:
    """Numbers of states from places."""

    space: Any

    def __call__(self, batch: pa.RecordBatch) -> IntArray:
        lat, lon = (_floats(batch.column(name)) for name in ("lat", "lon"))
        # A null is none of these.
        good = (np.abs(lat) <= 90) & (np.abs(lon) <= 180)
        states = np.full(len(lat), -1, dtype=np.int64)
        states[good] = self.space.locate(lat[good], lon[good])
        return states


@dataclass(frozen=True)
class ByNearestPlace:
    """Numbers of states from places: the nearest for one outside all states, none for an invalid place."""

    space: Any

    def __call__(self, batch: pa.RecordBatch) -> IntArray:
        import pyarrow as pa

        lat, lon, bad = places_of(pa.Table.from_batches([batch]), "lat", "lon")
        states = np.full(len(lat), -1, dtype=np.int64)
        states[~bad] = states_of_places(self.space, lat[~bad], lon[~bad])
        return states


class CountOwners(ABC):
    """Count the rows of a task as they pass, and give the totals at the end."""

    #: How a task tells the number of a state.
    states: States
    #: Whether rows come in order by owner and step, as they are, and not packed by `PackRows`.
    by_step: bool
    n_states: int

    @abstractmethod
    def counter(self) -> SortedRows:
        """The counter of this task's rows."""

    @property
    def parts(self) -> Parts:
        """The parts in which its totals come back: public."""
        return Parts(self.counter().n_keys)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The counter's result, as `Parts.rows`; ``again`` and nothing where the rows cannot be put in order."""
        counter, again = self.counter(), False
        try:
            for part in self._as_they_are(batches, counter) if self.by_step else unpacked(batches, counter):
                counter.add(*part)
            keys, totals = counter.found()
        except NotInOrder:
            keys, totals, again = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), True
        yield from self.parts.rows(keys, totals, again)

    def _as_they_are(self, batches: Iterator[pa.RecordBatch], counter: SortedRows) -> Iterator[OwnerRows]:
        """The rows that have an owner and a step."""
        owners = OwnerChanges()
        for batch in batches:
            known = self.owned(batch)
            counter.leave_out(len(batch) - len(known))
            if len(known):
                yield OwnerRows(owners.of(known), *self.when(known))

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
    caps: RecordBounds
    shortest: int
    states: States
    by_step: bool
    slots: Slots | None = None
    seconds: int | None = None
    end: int | None = None

    def counter(self) -> RowCounter:
        """A counter of transitions."""
        return RowCounter(self.n_states, self.caps, self.shortest, self.slots, self.seconds, self.end)


@dataclass(frozen=True)
class CountWords(CountOwners):
    """Count words of ``order`` symbols."""

    n_states: int
    order: int
    caps: RecordBounds
    states: States
    by_step: bool = False

    def counter(self) -> WordCounter:
        """One of words."""
        return WordCounter(self.n_states, self.order, self.caps)


@dataclass(frozen=True)
class CountLabelled(CountOwners):
    """Count starts, moves and emissions of known states; a row's state is its pair."""

    states: ByPair
    caps: RecordBounds
    by_step: bool = False

    @property
    def n_states(self) -> int:  # type: ignore[override]
        """The number of pairs."""
        return self.states.n_states * self.states.n_symbols

    def counter(self) -> LabelledCounter:
        """A counter of known states."""
        return LabelledCounter(self.states.n_states, self.states.n_symbols, self.caps)


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
        """A counter of records."""
        return RecordCounter(self.spans, self.n_states, self.n_times, self.first, self.most, self.other)

    def when(self, known: pa.RecordBatch) -> tuple[IntArray, IntArray, IntArray | None]:
        """Times are numbered by their bins, and are the times of their rows."""
        if self.bin is None:
            return super().when(known)
        time = _integers(known.column("step"))
        return np.floor_divide(time, self.bin), self.states(known), time


class OwnerChanges:
    """The changes of owner in rows that come in batches, in order by owner."""

    def __init__(self) -> None:
        self._last: Any = None

    def of(self, batch: pa.RecordBatch) -> BoolArray:
        """True where a row (n,) of a batch has another owner than the row before it. Raises ValueError out of order."""
        import pyarrow.compute as pc

        owner, last = batch.column("owner"), self._last
        begun, self._last = owner[0].as_py(), owner[-1].as_py()
        earlier, later = owner.slice(0, len(owner) - 1), owner.slice(1)
        if (last is not None and begun < last) or pc.any(pc.greater(earlier, later)).as_py():
            raise ValueError(UNSORTED)
        return np.concatenate([[last is None or begun != last], np.asarray(pc.not_equal(earlier, later))])


#: The columns of packed rows: rows of one bucket, each column of theirs as bytes. ``left_out``: rows that had no owner
#: or no step. ``length`` and ``name``: where keys are hashes, whose rows they are. Spark fills cells up to eight bytes.
#: A number has eight, and names are followed by what each lacks, so that sums do not tell which rows came together.
PACKED = "bucket int, left_out long, key binary, step binary, state binary, time binary, length binary, name binary"
_NUMBERS = ("key", "step", "state", "time", "length")


class Columns(NamedTuple):
    """Rows (m,) that have an owner and a step. ``name`` (m,) and ``time`` (m,) may be None."""

    key: IntArray
    step: IntArray
    state: IntArray
    time: IntArray | None
    name: Any


@dataclass(frozen=True)
class PackRows:
    """Pack rows as they come: of so many that come, those of each bucket go into one row, also where there are none.

    The bucket follows from the hash of its owner's key by the rule of ``spelling``, or the owner itself where that is a
    number. A state that is none is -1. So Spark, which shows how many rows come out, and how long they are, shows
    nothing of states.
    """

    task: CountOwners
    spelling: str = "same"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches of the columns ``PACKED``."""
        keyed = KeyOwners(self.spelling).with_hash
        for parts in _packs(batches):
            yield _packed([self._columns(self.task.owned(keyed(part))) for part in parts], sum(map(len, parts)))

    def _columns(self, known: pa.RecordBatch) -> Columns:
        step, state, time = self.task.when(known)
        state = np.where((state >= 0) & (state < self.task.n_states), state, -1)
        hashed = "key" in known.schema.names
        key = np.asarray(known.column("key" if hashed else "owner"))
        return Columns(key, step, state, time, known.column("owner") if hashed else None)


def _packs(batches: Iterator[pa.RecordBatch]) -> Iterator[list[pa.RecordBatch]]:
    """The rows of batches, in lists of ``_PACKED_TOGETHER`` rows in all; the last one has fewer.

    Not by batches: Spark ends those by bytes, too, which depend on names.
    """
    held, count = list["pa.RecordBatch"](), 0
    for batch in batches:
        first = 0
        while first < len(batch):
            part = batch.slice(first, _PACKED_TOGETHER - count)
            held.append(part)
            first, count = first + len(part), count + len(part)
            if count == _PACKED_TOGETHER:
                yield held
                held, count = [], 0
    if held:
        yield held


def _packed(held: list[Columns], came: int) -> pa.RecordBatch:
    """The columns ``PACKED`` of rows, of ``came`` rows that came."""
    import pyarrow as pa
    import pyarrow.compute as pc

    key, step, state, time, name = _joined(held)
    # An odd factor changes no number into that of another; its high bits depend on all bits of the key.
    mixed_key = key.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    bucket = (mixed_key >> np.uint64(64 - _BUCKET_BITS)).astype(np.uint16)
    # Of numbers this short NumPy's stable order is a fast one.
    order = np.argsort(bucket, kind="stable")
    bounds = np.searchsorted(bucket[order], np.arange(2**_BUCKET_BITS + 1))
    placed = {"key": key[order], "step": step[order], "state": state[order]}
    names = pa.nulls(2**_BUCKET_BITS, pa.binary())
    if time is not None:
        placed["time"] = time[order]
    if name is not None:
        name = name.take(pa.array(order))
        placed["length"] = np.asarray(pc.binary_length(name)).astype(np.int64)
        names = _filled_up(b"".join(name.to_pylist()), placed["length"], bounds)
    cells = [_cells(placed.get(column), bounds) for column in _NUMBERS]
    left_out = np.zeros(2**_BUCKET_BITS, dtype=np.int64)
    left_out[0] = came - len(key)
    leading = [pa.array(np.arange(2**_BUCKET_BITS, dtype=np.int32)), pa.array(left_out)]
    return pa.RecordBatch.from_arrays([*leading, *cells, names], ["bucket", "left_out", *_NUMBERS, "name"])


def _joined(held: list[Columns]) -> Columns:
    """The rows of all of them, one after the other."""
    import pyarrow as pa

    key, step, state = (np.concatenate([columns[k] for columns in held]) for k in range(3))
    time = None if held[0].time is None else np.concatenate([part.time for part in held if part.time is not None])
    name = None if held[0].name is None else pa.chunked_array([part.name for part in held]).combine_chunks()
    return Columns(key, step, state, time, name)


def _cells(values: IntArray | None, bounds: IntArray) -> Any:
    """Bytes of the values between the bounds (k + 1,), as a column (k,); nulls for None."""
    import pyarrow as pa

    if values is None:
        return pa.nulls(len(bounds) - 1, pa.binary())
    content = np.ascontiguousarray(values, dtype="<i8")
    buffers = [None, pa.py_buffer((bounds * 8).astype(np.int32)), pa.py_buffer(content)]
    return pa.BinaryArray.from_buffers(pa.binary(), len(bounds) - 1, buffers)


def _filled_up(content: bytes, lengths: IntArray, bounds: IntArray) -> Any:
    """Names of these lengths (m,), those between the bounds (k + 1,) in a cell, which zeros b."""
    import pyarrow as pa

    ends = np.append(0, np.cumsum(lengths))[bounds].tolist()
    sizes = np.diff(np.append(0, np.cumsum(-(-lengths // 8) * 8))[bounds]).tolist()
    cells = [content[a:b].ljust(size, b"\0") for (a, b), size in zip(itertools.pairwise(ends), sizes, strict=True)]
    return pa.array(cells, pa.binary())


def unpacked(batches: Iterator[pa.RecordBatch], counter: SortedRows) -> Iterator[OwnerRows]:
    """The rows that were packed, by bucket, in order by owner and step.

    Raises ValueError for buckets that are out of order, and NotInOrder for a bucket of more than ``MOST_HELD`` rows, or
    two owners of one key.
    """
    held, rows, last = list[Columns](), 0, -1
    for batch in batches:
        counter.leave_out(int(np.sum(np.asarray(batch.column("left_out")))))
        for bucket, columns in _unpacked(batch):
            # An owner whose bucket came before would be two, with caps of their own.
            if bucket < last:
                raise ValueError(UNSORTED)
            if bucket != last and rows and rows >= _SORTED_TOGETHER:
                yield _in_order(_joined(held))
                held, rows = [], 0
            last = bucket
            if len(columns.key):
                held.append(columns)
                rows += len(columns.key)
            if rows > MOST_HELD + _SORTED_TOGETHER:
                raise NotInOrder
    if rows:
        yield _in_order(_joined(held))


def _unpacked(batch: pa.RecordBatch) -> Iterator[tuple[int, Columns]]:
    """Each bucket of a batch, and its rows there."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if len(batch) == 0:
        return
    bucket, cell = np.asarray(batch.column("bucket")), {name: _values(batch.column(name)) for name in _NUMBERS}
    rows = np.append(0, np.cumsum(np.asarray(pc.binary_length(batch.column("key"))) // 8))
    name = None
    if cell["length"] is not None:
        offsets = np.append(0, np.cumsum(cell["length"]))
        used = np.diff(offsets[rows]).tolist()
        content = b"".join(text.as_buffer()[:size] for text, size in zip(batch.column("name"), used, strict=True))
        buffers = [None, pa.py_buffer(offsets), pa.py_buffer(content)]
        name = pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)
    begins = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1])).tolist()
    for first, end in itertools.pairwise([*begins, len(bucket)]):
        part = slice(int(rows[first]), int(rows[end]))
        time = None if cell["time"] is None else cell["time"][part]
        names = None if name is None else name.slice(part.start, part.stop - part.start)
        yield int(bucket[first]), Columns(cell["key"][part], cell["step"][part], cell["state"][part], time, names)


def _values(column: Any) -> Any:
    """The numbers that the cells of a column hold, one after the other; None for nulls."""
    if column.null_count:
        return None
    _, offsets, content = column.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(content or b"", dtype=np.uint8)[bounds[0] : bounds[-1]].view("<i8")


def _in_order(rows: Columns) -> OwnerRows:
    """Rows of whole buckets by key and step. Raises NotInOrder for two owners of one key."""
    import pyarrow as pa
    import pyarrow.compute as pc

    key, step = rows.key, rows.step
    least, begun = int(key.min()), int(step.min())
    span = int(step.max()) - begun + 1
    if (int(key.max()) - least + 1) * span >= 2**62:
        # Smaller numbers in the same order.
        key, least = np.unique(key, return_inverse=True)[1], 0
    # One number for owner and step where there is room: it is sorted faster than two.
    if (int(key.max()) - least + 1) * span < 2**62:
        order = np.argsort((key - least) * span + (step - begun))
    else:
        order = np.lexsort((step, key))
    key = key[order]
    changed = np.append(True, key[1:] != key[:-1])
    if rows.name is not None:
        name = rows.name.take(pa.array(order))
        if (np.asarray(pc.not_equal(name.slice(1), name.slice(0, len(name) - 1))) & ~changed[1:]).any():
            raise NotInOrder
    return OwnerRows(changed, step[order], rows.state[order], None if rows.time is None else rows.time[order])


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


#: Edges as they are moved: of one bucket as they come, then of all buckets in their order, then people by their degree.
BUCKETS, TURNS, DEGREES = "bucket int, edges binary", "turn long, edges binary", "people binary"
#: An edge is one number, the smaller end times this and the other end. A row that is no edge of two people is -1.
_END = 2**32
#: Edges of one bucket that are held before those that stand twice are left out; rows of edges in one batch, 2 MiB each.
_EDGES_TOGETHER, _TURNS_TOGETHER = 2**20, 512


@dataclass(frozen=True)
class PackEdges:
    """Pack the edges of two different public people as they come, as `PackRows` does with rows.

    Buckets follow the order of `mixed`. A row that is no edge goes along as -1: so numbers of rows and their bytes,
    which Spark shows, follow from how many rows came.
    """

    people: People
    spelling: str = "same"

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches of the columns ``BUCKETS`` of batches (a, b) of whole numbers or text."""
        import pyarrow as pa

        people = self.people if isinstance(self.people, int) else Members(self.people, self.spelling)
        every = np.arange(2**_BUCKET_BITS, dtype=np.int32)
        for parts in _packs(batches):
            edges = np.concatenate([_edges(part, people) for part in parts])
            bucket = (_places(edges) >> np.uint64(64 - _BUCKET_BITS)).astype(np.uint16)
            # Rows that are no edges would otherwise all be in one bucket.
            bucket = np.where(edges < 0, np.arange(len(edges)) % len(every), bucket).astype(np.uint16)
            order = np.argsort(bucket, kind="stable")
            cells = _cells(edges[order], np.searchsorted(bucket[order], np.arange(len(every) + 1)))
            yield pa.RecordBatch.from_arrays([pa.array(every), cells], ["bucket", "edges"])


def _edges(batch: pa.RecordBatch, people: int | Members) -> IntArray:
    """The edge (n,) of each row."""
    import pyarrow as pa

    table = pa.Table.from_batches([batch])
    if not isinstance(people, int):
        table = pa.table([as_text(column, "DATA") for column in table.columns], names=table.column_names)
    pairs = ends_among(table, people)
    joined = (pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])
    return np.where(joined, pairs.min(axis=1) * _END + pairs.max(axis=1), -1)


@dataclass(frozen=True)
class OrderEdges:
    """The different edges of each bucket, in the order of one process.

    Edges of a bucket are given in as many rows as they came in, each as long as it was: where an edge stands twice, -1
    takes the place of one of them. It holds the different edges of one bucket.
    """

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Batches of the columns ``TURNS``, of ``BUCKETS``. Raises ValueError for buckets that are out of order."""
        last, edges, lengths = -1, DifferentEdges(), list[IntArray]()
        for batch in batches:
            for bucket, content, rows in _edges_by_bucket(batch):
                if bucket < last:
                    raise ValueError("edges are out of order: sort them by bucket")
                if bucket != last and lengths:
                    yield from _turns(last, edges.in_order(), np.concatenate(lengths))
                    edges, lengths = DifferentEdges(), []
                last = bucket
                edges.add(content)
                lengths.append(rows)
        if lengths:
            yield from _turns(last, edges.in_order(), np.concatenate(lengths))


class DifferentEdges:
    """Edges of one bucket, each once."""

    def __init__(self) -> None:
        self._known = np.zeros(0, dtype=np.int64)
        self._held, self._n_held = list[IntArray](), 0

    def add(self, edges: IntArray) -> None:
        """These edges (m,), too; -1 is none."""
        self._held.append(edges)
        self._n_held += len(edges)
        if self._n_held >= max(_EDGES_TOGETHER, len(self._known)):
            self._fold()

    def in_order(self) -> IntArray:
        """All edges (k,) by `mixed`; equal ones as they increase."""
        self._fold()
        edges: IntArray = self._known[np.argsort(_places(self._known), kind="stable")]
        return edges

    def _fold(self) -> None:
        edges = np.unique(np.concatenate([self._known, *self._held]))
        self._known, self._held, self._n_held = edges[edges >= 0], [], 0


@dataclass(frozen=True)
class TakeEdges:
    """The number of ``n`` people with 0, 1, 2, ... edges, or ``cap`` and more, of edges that are taken one by one.

    An edge is left out where an end has ``most`` edges already. All edges come to one task, in the order of their
    turns. It holds a number for each person.
    """

    n: int
    cap: int
    most: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """One row of the column ``DEGREES``, of ``TURNS``. Raises ValueError for edges that are out of order."""
        import pyarrow as pa

        degrees, before = np.zeros(self.n, dtype=np.int64), np.zeros(0, dtype=np.int64)
        for batch in batches:
            content = _values(batch.column("edges")) if len(batch) else before[:0]
            edges = np.concatenate([before, content[content >= 0]])
            if not _increase(edges):
                raise ValueError("edges are out of order: sort them by turn, each edge once")
            new = edges[len(before) :]
            _kernels.policy.capped_degrees(new // _END, new % _END, np.arange(len(new)), self.most, degrees)
            before = edges[-1:]
        people = np.bincount(np.minimum(degrees, self.cap), minlength=self.cap + 1).astype("<i8")
        yield pa.RecordBatch.from_arrays([pa.array([people.tobytes()], pa.binary())], ["people"])


def _places(edges: IntArray) -> NDArray[np.uint64]:
    """The place (m,) of each edge in the order of one process."""
    return mixed(edges // _END, edges % _END)


def _increase(edges: IntArray) -> bool:
    """True if edges (m,) are in the order of one process, each once."""
    place = _places(edges)
    later, equal = place[1:] > place[:-1], place[1:] == place[:-1]
    return bool((later | (equal & (edges[1:] > edges[:-1]))).all())


def _edges_by_bucket(batch: pa.RecordBatch) -> Iterator[tuple[int, IntArray, IntArray]]:
    """Each bucket of a batch, its edges (m,), and the number of edges of each of its rows."""
    import pyarrow.compute as pc

    if len(batch) == 0:
        return
    bucket, content = np.asarray(batch.column("bucket")), _values(batch.column("edges"))
    lengths = np.asarray(pc.binary_length(batch.column("edges"))).astype(np.int64) // 8
    bounds = np.append(0, np.cumsum(lengths))
    begins = np.flatnonzero(np.append(True, bucket[1:] != bucket[:-1])).tolist()
    for first, end in itertools.pairwise([*begins, len(bucket)]):
        yield int(bucket[first]), content[bounds[first] : bounds[end]], lengths[first:end]


def _turns(bucket: int, edges: IntArray, lengths: IntArray) -> Iterator[pa.RecordBatch]:
    """Edges (k,) of a bucket in rows of these lengths (r,), which -1 fills up, and the turn of each row among all."""
    import pyarrow as pa

    bounds = np.append(0, np.cumsum(lengths))
    for first in range(0, len(lengths), _TURNS_TOGETHER):
        cuts = bounds[first : first + _TURNS_TOGETHER + 1]
        content = np.full(cuts[-1] - cuts[0], -1, dtype=np.int64)
        part = edges[cuts[0] : cuts[-1]]
        content[: len(part)] = part
        turn = bucket * 2**32 + first + np.arange(len(cuts) - 1)
        yield pa.RecordBatch.from_arrays([pa.array(turn), _cells(content, cuts - cuts[0])], ["turn", "edges"])


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
        """True if a row holds the totals of all keys of its part."""
        return self.n_keys <= MOST_DENSE

    @property
    def size(self) -> int:
        """Keys of each part but the last one."""
        return _PART_KEYS if self.dense else -(-self.n_keys // _PARTS)

    @property
    def count(self) -> int:
        """The number of parts."""
        return -(-self.n_keys // self.size)

    def rows(self, keys: IntArray, totals: IntArray, again: bool = False) -> Iterator[pa.RecordBatch]:
        """A row for each part, of increasing keys (k,) that occur and their totals (k,)."""
        ends = np.searchsorted(keys, self.size * np.arange(self.count + 1))
        for part in range(self.count):
            inside = slice(ends[part], ends[part + 1])
            yield self.row(part, keys[inside] - part * self.size, totals[inside], again)

    def row(self, part: int, keys: IntArray, totals: IntArray, again: bool) -> pa.RecordBatch:
        """One row of the column; its keys are counted from the first one of the part."""
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
                numbers = np.frombuffer(cell.as_buffer(), dtype="<i8")
                keys = np.flatnonzero(numbers) if self.dense else numbers[: len(numbers) // 2]
                yield part.as_py(), again.as_py(), keys, numbers[keys] if self.dense else numbers[len(numbers) // 2 :]


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
        for part, added in sums.items():
            yield self.parts.row(part, *added.found(), asked[part])


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

    def _take(self, rows: OwnerSteps) -> None:
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
        within = inside if self._most is None else inside & (rank <= self._most)
        between = np.searchsorted(self._edges, number[within], side="right") - 1
        state = np.where(rows.state < self._n, rows.state, self._other)[within]
        # What is before all windows is in none.
        counted = between >= 0
        self._totals.add(between[counted] * self._n + state[counted])
        self._begun, self._records = int(begun[-1]), int(rank[-1])


def edges_of(spans: Spans) -> IntArray:
    """The steps at which a window begins or ends, each once, increasing."""
    return np.unique(np.array(spans, dtype=np.int64))


def counts_of_intervals(keys: IntArray, totals: IntArray, spans: Spans, n_states: int) -> IntArray:
    """The counts (W, N) of windows, which may overlap, from added keys (k,) and totals of `RecordCounter.found`."""
    edges = edges_of(spans)
    # Row i is what is before edge i.
    before = np.zeros((len(edges) + 1, n_states), dtype=np.int64)
    np.add.at(before, (keys // n_states + 1, keys % n_states), totals)
    np.cumsum(before, axis=0, out=before)
    first, end = (np.searchsorted(edges, side) for side in np.array(spans, dtype=np.int64).T)
    counts: IntArray = before[end] - before[first]
    return counts
