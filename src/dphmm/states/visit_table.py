"""The rows that a release answers: one for each user and step, by user and step, in few bytes a row.

`Gathering` takes rows as they come, in any order and in parts of any size, and keeps a user, a state and a time or a
step of each: 12 to 20 bytes. Rows are put in order in the memory that they are in, so that no more is needed for it.

Rows are private: nothing here puts one into a message or a repr.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm._checks import one_of
from dphmm.accounting.moments import ORDER, ROWS, TIMES, event_times
from dphmm.errors import InvalidInput
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import (
    ANSWERS,
    MICROSECONDS,
    NOWHERE,
    Trajectories,
    in_steps,
    one_of_each,
    public_times,
    true_states,
)
from dphmm.types import BoolArray, IntArray

#: Most rows: places of rows are kept in 32 bits.
MOST_ROWS = 10**9
#: To how many microseconds times of events are published.
SHOWN = {"none": 0, "day": 86_400 * MICROSECONDS, "exact": 1}
#: Rows that are looked at together, where no more than a constant of memory may be used.
_PART = 2**18
#: A column grows by so much of its length, and at least by so many rows.
_SHARE, _LEAST = 16, 2**16


class UserRows(NamedTuple):
    """A user, which rows of the table are its, and the step of the first of them."""

    user: str
    rows: range
    begins: int


class Numbers:
    """A column of numbers (n,) that are computed where they are looked at: ``column[range(3, 8)]``, ``column[3]``."""

    def __init__(self, table: VisitTable, published: bool = False) -> None:
        self._table, self._published = table, published

    def __getitem__(self, rows: int | range) -> Any:
        if isinstance(rows, range):
            return self._of(rows.start, rows.stop)
        return int(self._of(rows, rows + 1)[0])

    def _of(self, first: int, end: int) -> IntArray:
        return self._table.times_of(first, end) if self._published else self._table.steps_of(first, end)


@dataclass(frozen=True, eq=False, repr=False)
class VisitTable(Sequence[UserRows]):
    """The rows (n,) of a release, by user and step; as a sequence it gives each user and which rows it has.

    users : those that have rows. first (users + 1,) : where the rows of each begin, and the end.
    codes (n,) : the state of each row, see `Gathering`; ``states`` reads them.
    time (n,) : microseconds since 1970 UTC, or None; step (n,) : numbers of steps, or None. Without ``step`` a step is
    the time bin of ``seconds``, or where there are none the rank of the row among its user's, from 0. ``ordered``: what
    is in ``time`` are cells of an order column, which are no times. ``shown``: microseconds that times of events are
    published to, where these cells are their moments; 0 where no times are published of them.
    in_bins : rows were brought into time bins, which counts as reading another table: see `dphmm.states.trajectory`.
    A row without a place has a step and no answer.
    n_rows, same_step, outside : the numbers of rows of a place or name, of those left out, and of those outside, for
    the data owner alone.
    """

    users: tuple[str, ...]
    first: IntArray
    codes: NDArray[np.int32]
    time: IntArray | None
    step: NDArray[Any] | None
    seconds: int | None
    in_bins: bool
    n_rows: int
    same_step: int
    outside: int
    n_states: int
    answer: str
    ordered: bool = False
    shown: int = 0

    @classmethod
    def of(cls, rows: Trajectories, space: StateSpace, seconds: int | None, answer: str = "last") -> VisitTable:
        """The table of trajectories under a model with steps of so many ``seconds``, or without a length of a step.

        Raises InvalidInput as `in_steps`, `true_states` and `public_times` do.
        """
        stepped, repeated = in_steps(rows, seconds, answer)
        states, outside = true_states(stepped, space)
        public_times(stepped, seconds)
        gathering = Gathering(space, seconds, answer)
        # Those of time bins are the bins of their times.
        step = None if stepped is not rows or (stepped.counted and seconds is None) else stepped.step
        ordered = stepped.order is not None and step is None and seconds is None
        moments = stepped.order if ordered else stepped.time
        for part in _parts(len(stepped)):
            gathering.add(
                stepped.user[part],
                gathering.codes_of(states[part], outside[part]),
                None if moments is None else moments[part],
                None if step is None else step[part],
            )
        return gathering.finish(stepped.users, repeated, ordered=ordered)

    @property
    def steps(self) -> Numbers:
        """The number of the step of each row (n,)."""
        return Numbers(self)

    @property
    def times(self) -> Numbers | None:
        """The published time of each row (n,); None without times. See `public_times`."""
        timed = self.time is not None or (self.seconds is not None and self.step is not None)
        return Numbers(self, published=True) if timed and (self.shown or not self.ordered) else None

    def showing(self, times: str) -> VisitTable:
        """The same rows, of which the times of events are published: "exact", their "day" (UTC), or "none".

        Raises InvalidInput for times of rows that have no moments of events.
        """
        shown = SHOWN[one_of(times, tuple(SHOWN), "times")]
        if not shown:
            return self
        events = "moments of events, as dphmm import events makes them of times"
        if self.clock != ORDER or self.time is None:
            raise InvalidInput("times", f"{times}, of rows without such an order", events)
        if bool((self.time == self.steps_of(0, self.n_visits) + 1).all()):
            raise InvalidInput("times", f"{times}, of rows whose order are positions", f"none; or {events}")
        return replace(self, shown=shown)

    @property
    def clock(self) -> str | None:
        """The clock of steps that are only the ranks of rows; None where steps are numbers.

        One of `dphmm.accounting.moments`: times, an order column, or the rows alone.
        """
        if self.step is not None or self.seconds is not None:
            return None
        if self.time is None:
            return ROWS
        return ORDER if self.ordered else TIMES

    def __len__(self) -> int:
        return len(self.users)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[place] for place in range(*number.indices(len(self)))]
        rows = range(int(self.first[number]), int(self.first[number + 1]))
        return UserRows(self.users[number], rows, int(self.ends[0][number]))

    def __iter__(self) -> Iterator[UserRows]:
        return (self[number] for number in range(len(self)))

    @property
    def n_visits(self) -> int:
        """The number of rows, each of a step."""
        return len(self.codes)

    @property
    def n_placed(self) -> int:
        """The number of rows to answer: those of a place or name."""
        return self.n_rows - self.same_step

    @property
    def in_states(self) -> int:
        """The number of rows to answer that have a place or name in a state of the model."""
        return sum(int((self.codes[first:end] >= 0).sum()) for first, end in self.parts())

    @property
    def in_steps(self) -> int:
        """The number of rows after those of a time bin have become one; those of one step count all."""
        return self.n_placed if self.in_bins else self.n_rows

    def owners(self, first: int, end: int) -> IntArray:
        """The number of the user of each row from ``first`` to before ``end``, or to the last row."""
        return _owners(self.first, first, end)

    def states(self, first: int, end: int) -> IntArray:
        """The true state of each row from ``first`` to before ``end``, -1 for a name that the space does not have."""
        codes = self.codes[first:end].astype(np.int64)
        states = np.where(codes < 0, ~codes, codes)
        states[states >= self.n_states] = -1
        return states

    def placed(self, first: int, end: int) -> BoolArray:
        """True where a row from ``first`` to before ``end`` has a place or name, so that it is answered."""
        return np.asarray(self.codes[first:end] != ~(self.n_states + 1))

    def steps_of(self, first: int, end: int) -> IntArray:
        """The step of each row from ``first`` to before ``end``."""
        if self.step is not None:
            return self.step[first:end].astype(np.int64)
        if self.seconds is not None and self.time is not None:
            return np.asarray(np.floor_divide(self.time[first:end], self.seconds * MICROSECONDS))
        return np.arange(first, end) - self.first[self.owners(first, end)]

    def times_of(self, first: int, end: int) -> IntArray:
        """The published time of each row from ``first`` to before ``end``."""
        if self.seconds is not None:
            return self.steps_of(first, end) * (self.seconds * MICROSECONDS)
        assert self.time is not None
        if self.ordered:
            return event_times(self.time[first:end]) // self.shown * self.shown
        return self.time[first:end]

    def check_made_for(self, space: StateSpace, seconds: int | None, answer: str) -> None:
        """Raises InvalidInput unless the table was made for so many states, a step of ``seconds`` and this rule."""
        made, wanted = (self.n_states, self.seconds, self.answer), (space.n_states, seconds, answer)
        if made != wanted:
            template = "rows of {} states, steps of {} s, answer {}"
            raise InvalidInput("table", template.format(*made), template.format(*wanted))

    def parts(self) -> Iterator[tuple[int, int]]:
        """All rows in parts, each its first row and its end, for loops over all of them."""
        return ((part.start, part.stop) for part in _parts(self.n_visits))

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """The first and the last step of every user (users,)."""
        first, last = self.first[:-1], self.first[1:] - 1
        if self.step is not None:
            return self.step[first].astype(np.int64), self.step[last].astype(np.int64)
        if self.seconds is not None and self.time is not None:
            width = self.seconds * MICROSECONDS
            return np.floor_divide(self.time[first], width), np.floor_divide(self.time[last], width)
        return np.zeros(len(first), dtype=np.int64), last - first

    def __repr__(self) -> str:
        return f"VisitTable(rows={self.n_visits}, users={len(self)})"


class Gathering:
    """Rows in columns that grow, and then one for each user and step, in order.

    A state is kept as its number; of a place outside every state as ~number, of an unknown name as ~N, and without a
    place as ~(N + 1).
    """

    def __init__(self, space: StateSpace, seconds: int | None, answer: str = "last") -> None:
        self._n_states, self._seconds = space.n_states, seconds
        self._answer = one_of(answer, ANSWERS, "answer")
        self._user, self._codes = _Column(np.int32), _Column(np.int32)
        self._time, self._step = _Column(np.int64), _Column(np.int32)
        self._in_order = True

    def codes_of(self, states: IntArray, outside: BoolArray) -> IntArray:
        """The stored codes of states (n,), of which some (n,) are ``outside``, as `true_states` gives them."""
        known = np.where(states < 0, self._n_states, states)
        return np.where(states == NOWHERE, ~(known + 1), np.where(outside, ~known, known))

    def add(
        self, user: NDArray[Any], codes: NDArray[Any], time: NDArray[Any] | None, step: NDArray[Any] | None
    ) -> None:
        """More rows: the number of the user, `codes_of` the states, microseconds and numbers of steps."""
        if len(self._user) + len(user) > MOST_ROWS:
            raise InvalidInput("rows", f"more than {MOST_ROWS}", "fewer: release the users in several tables")
        if self._in_order and len(user):
            before = self._user.values[-1:]
            self._in_order = bool((before <= user[:1]).all() and (user[1:] >= user[:-1]).all())
        self._user.add(user)
        self._codes.add(codes)
        for column, values in ((self._time, time), (self._step, step)):
            if values is not None:
                column.add(values)

    def finish(
        self, users: Sequence[str], same_step: int = 0, in_bins: bool | None = None, ordered: bool = False
    ) -> VisitTable:
        """The table of all rows; ``users[number]`` are the names. ``same_step`` rows were left out before.

        ``in_bins``, ``ordered``: see `VisitTable`; the former by default where there is a length of a step and no
        number of a step.
        """
        n = len(self._user)
        counts = np.zeros(len(users), dtype=np.int64)
        for part in _parts(n):
            counts += np.bincount(self._user.values[part], minlength=len(users))
        seen = np.flatnonzero(counts)
        first = np.concatenate([[0], np.cumsum(counts)])
        if not self._in_order:
            _kernels.rows.places_of_rows(self._user.values, first[:-1].copy())
            for column in self._columns:
                _kernels.rows.move(self._user.values, column.values)
        self._user = _Column(np.int32)
        first = np.append(first[seen], n)
        for part in _of_whole_users(first):
            self._sort(part, first)
        placed = self._count(self._placed)
        binned = self._seconds is not None and not len(self._step) if in_bins is None else in_bins
        outside = self._count(self._outside)
        kept_first = self._one_of_each(first)
        return VisitTable(
            users=tuple(users) if len(seen) == len(users) else tuple(users[number] for number in seen.tolist()),
            first=kept_first,
            codes=self._codes.finished(),
            time=self._time.finished() if len(self._time) or not n else None,
            step=self._step.finished() if len(self._step) else None,
            seconds=self._seconds,
            in_bins=binned,
            n_rows=placed + same_step,
            same_step=placed - self._count(self._placed) + same_step,
            outside=self._count(self._outside) if binned else outside,
            n_states=self._n_states,
            answer=self._answer,
            ordered=ordered,
        )

    @property
    def _columns(self) -> list[_Column]:
        return [column for column in (self._codes, self._time, self._step) if len(column)]

    def _sort(self, part: slice, first: IntArray) -> None:
        """Put the rows of each user in a part in order of step and time, and where these are the same as they stand.

        Of one moment those without a place come where `_one_of_each` keeps none of them beside another.
        """
        keys = [column.values[part] for column in (self._time, self._step) if len(column)]
        if not keys:
            return
        placed = self._placed(part)
        if not placed.all():
            keys.insert(0, placed if self._answer == "last" else ~placed)
        owner = _owners(first, part.start, part.stop)
        if _ordered(keys, owner):
            return
        order = np.lexsort((*keys, owner))
        for column in self._columns:
            column.values[part] = column.values[part][order]

    def _placed(self, part: slice) -> BoolArray:
        return np.asarray(self._codes.values[part] != ~(self._n_states + 1))

    def _outside(self, part: slice) -> BoolArray:
        return (self._codes.values[part] < 0) & self._placed(part)

    def _count(self, mask: Callable[[slice], BoolArray]) -> int:
        return sum(int(mask(part).sum()) for part in _parts(len(self._codes)))

    def _one_of_each(self, first: IntArray) -> IntArray:
        """Keep one row of each user and step; returns where the rows of each user begin then, and the end."""
        bins = self._step if len(self._step) else self._time
        if not len(bins):
            # Rows without any mark are different.
            return first
        width = 1 if len(self._step) or self._seconds is None else self._seconds * MICROSECONDS
        n, end = len(bins), 0
        kept_of = np.zeros(len(first) - 1, dtype=np.int64)
        for part in _parts(n):
            # One row more on each side says whether the outermost ones are the first and the last of their step.
            around = slice(max(0, part.start - 1), min(n, part.stop + 1))
            owner = _owners(first, around.start, around.stop)
            mask = one_of_each(owner, np.floor_divide(bins.values[around], width), self._answer)
            mask = mask[part.start - around.start :][: part.stop - part.start]
            owner = owner[part.start - around.start :][: part.stop - part.start]
            kept_of[owner[0] : owner[-1] + 1] += np.bincount(owner[mask] - owner[0], minlength=owner[-1] - owner[0] + 1)
            if end == part.start and mask.all():
                end = part.stop
                continue
            end_of_part = end + int(mask.sum())
            for column in self._columns:
                column.values[end:end_of_part] = column.values[part][mask]
            end = end_of_part
        for column in self._columns:
            column.cut(end)
        return np.concatenate([[0], np.cumsum(kept_of)])


class _Column:
    """Values (n,) of one type in memory that grows as they come: 32 bits become 64 where a value needs them."""

    def __init__(self, dtype: Any) -> None:
        self._room: NDArray[Any] = np.empty(0, dtype=dtype)
        self._n = 0

    def __len__(self) -> int:
        return self._n

    @property
    def values(self) -> NDArray[Any]:
        """The values, to be read and written."""
        return self._room[: self._n]

    def add(self, values: NDArray[Any]) -> None:
        """Some more at the end."""
        if self._room.dtype == np.int32 and len(values) and not _in_32_bits(values):
            self._room = self._room.astype(np.int64)
        n = self._n + len(values)
        if n > len(self._room):
            # In place where the system can: values are not in memory twice.
            self._room.resize(max(n, self._n + max(_LEAST, self._n // _SHARE)), refcheck=False)
        self._room[self._n : n] = values
        self._n = n

    def cut(self, n: int) -> None:
        """Only the first ``n``."""
        self._n = n

    def finished(self) -> NDArray[Any]:
        """The values, in no more memory than they need, to be read only."""
        self._room.resize(self._n, refcheck=False)
        self._room.flags.writeable = False
        return self._room


def _in_32_bits(values: NDArray[Any]) -> bool:
    limits = np.iinfo(np.int32)
    return int(values.min()) >= limits.min and int(values.max()) <= limits.max


def _parts(n: int) -> Iterator[slice]:
    return (slice(first, min(first + _PART, n)) for first in range(0, n, _PART))


def _of_whole_users(first: IntArray) -> Iterator[slice]:
    """Parts of the rows that begin and end with a user's, whose rows begin at ``first`` (users + 1,)."""
    start, number = 0, 0
    while start < first[-1]:
        number = max(number + 1, int(np.searchsorted(first, start + _PART, side="right")) - 1)
        yield slice(start, int(first[number]))
        start = int(first[number])


def _owners(ends: IntArray, first: int, end: int) -> IntArray:
    """The number of the user of each row from ``first`` to before ``end``, where those of each begin at ``ends``."""
    end = min(end, int(ends[-1]))
    if first >= end:
        return np.zeros(0, dtype=np.int64)
    low, high = (np.searchsorted(ends, [first, end - 1], side="right") - 1).tolist()
    around = np.clip(ends[low : high + 2], first, end)
    return np.repeat(np.arange(low, high + 1), around[1:] - around[:-1])


def _ordered(keys: Sequence[NDArray[Any]], owner: IntArray) -> bool:
    """True if rows of each owner never come before an earlier one; the last key counts most."""
    later = np.zeros(max(0, len(owner) - 1), dtype=np.bool_)
    same = owner[1:] == owner[:-1]
    for key in reversed(keys):
        if (same & ~later & (key[1:] < key[:-1])).any():
            return False
        later |= key[1:] > key[:-1]
    return True
