"""Who was where, when: columns of rows, and what fitting and releasing need of them.

A Trajectories is frozen; every operation gives a new one and says how many rows it changed. Its rows are
private: nothing here puts one into a message or a repr.

`Counts` say how many rows something happened to, by reason. Order among the rows of many users needs no loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm._checks import exact_number, finite_number, one_of
from dphmm.errors import InvalidInput
from dphmm.states.maps import MEAN_RADIUS
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm.states.observed import Sequences, Visit


def ranks(owner: NDArray[Any]) -> IntArray:
    """How many rows of the same owner stand before each row (n,)."""
    n = len(owner)
    result = np.empty(n, dtype=np.int64)
    order = np.argsort(owner, kind="stable")
    result[order] = np.arange(n) - _run_starts(owner[order])
    return result


def out_of_order(owner: NDArray[Any], keys: Sequence[IntArray]) -> int:
    """Rows whose key is less than that of the row before them of the same owner."""
    order = np.argsort(owner, kind="stable")
    same = owner[order][1:] == owner[order][:-1]
    return sum(int((same & (key[order][1:] < key[order][:-1])).sum()) for key in keys)


def first_of_each(columns: Sequence[IntArray]) -> BoolArray:
    """Mask of the rows that differ in some column from every earlier row."""
    n = len(columns[0])
    order = np.lexsort(tuple(columns))
    new = np.zeros(n, dtype=np.bool_)
    new[:1] = True
    for column in columns:
        ordered = column[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    first = np.zeros(n, dtype=np.bool_)
    first[order[new]] = True
    return first


def one_of_each(user: NDArray[Any], step: IntArray, answer: str) -> BoolArray:
    """Mask (n,) of the last, or the first, of every run of rows of one user and step. InvalidInput for another word."""
    last = one_of(answer, ANSWERS, "answer") == "last"
    kept = np.ones(len(user), dtype=np.bool_)
    other = (step[1:] != step[:-1]) | (user[1:] != user[:-1])
    kept[slice(None, -1) if last else slice(1, None)] = other
    return kept


def _run_starts(values: NDArray[Any]) -> IntArray:
    """Position at which the run of equal values around each position starts."""
    starts = np.arange(len(values))
    starts[1:][values[1:] == values[:-1]] = 0
    return np.maximum.accumulate(starts)


MICROSECONDS = 1_000_000

#: Which of several rows of one user in one time bin, or one step, is answered: the last in time, or the first.
ANSWERS = ("last", "first")


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories:
    """n rows of columns; ``users[user[i]]`` owns row i.

    ``time`` microseconds since 1970 UTC; ``step`` the number of a time step; ``lat``, ``lon`` degrees;
    ``state`` the name of a state (strings); ``trip`` the number of one of the user's trips. All but ``users``
    and ``user`` may be None. A user's many trips are one user. Raises InvalidInput for columns that do not
    fit together.
    """

    users: tuple[str, ...]
    user: NDArray[np.int32]
    time: IntArray | None = None
    step: IntArray | None = None
    lat: FloatArray | None = None
    lon: FloatArray | None = None
    state: NDArray[np.object_] | None = None
    trip: NDArray[np.int32] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "users", tuple(self.users))
        for name, dtype in _DTYPES.items():
            object.__setattr__(self, name, _column(getattr(self, name), dtype, name))
        for name in _DTYPES:
            column = getattr(self, name)
            if column is not None and len(column) != len(self.user):
                raise InvalidInput(name, f"{len(column)} rows", f"{len(self.user)}, as many as user")
        if (self.lat is None) != (self.lon is None):
            raise InvalidInput("lat, lon", "one of them", "both or neither")
        if len(self.user) and not 0 <= self.user.min() <= self.user.max() < len(self.users):
            raise InvalidInput("user", "a number outside users", f"0 to {len(self.users) - 1}")
        if len(set(self.users)) != len(self.users):
            raise InvalidInput("users", "a name twice", "distinct names")

    @classmethod
    def from_labels(cls, user: Sequence[str] | NDArray[Any], **columns: Any) -> Trajectories:
        """Trajectories from one user name per row, numbered by first appearance, and the other columns."""
        numbers: dict[str, int] = {}
        codes = [numbers.setdefault(str(name), len(numbers)) for name in user]
        return cls(tuple(numbers), np.array(codes, dtype=np.int32), **columns)

    def __len__(self) -> int:
        return len(self.user)

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.users)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that are there, without ``users``."""
        return tuple(name for name in _DTYPES if getattr(self, name) is not None)

    def take(self, rows: ArrayLike) -> Self:
        """The rows of a mask or of row numbers, in that order; users stay as they are."""
        at = np.asarray(rows)
        return replace(self, **{name: getattr(self, name)[at] for name in self.columns})

    def sort(self) -> tuple[Self, Counts]:
        """Rows by user and then time (else step, else as they stand), stable; counts rows that came too early."""
        key = self.step if self.time is None else self.time
        keys = () if key is None else (key,)
        wrong = out_of_order(self.user, keys)
        scattered = bool((np.diff(self.user) < 0).any())
        counts = Counts({"out_of_order": wrong})
        if not wrong and not scattered:
            return self, counts
        return self.take(np.lexsort((*keys, self.user))), counts

    def drop_duplicates(self) -> tuple[Self, Counts]:
        """Without rows that repeat an earlier row in every column."""
        keep = first_of_each([_as_key(getattr(self, name)) for name in self.columns])
        return self._keep(keep, "duplicate")

    def resample(self, step_seconds: int, answer: str = "last") -> tuple[Self, Counts]:
        """One row per user and time bin, the last in time; ``step`` is the bin's number from the UTC epoch.

        Sorted by user and time; of two rows at the same time the later row wins. With ``answer`` "first" the first in
        time, and of two at the same time the earlier row. Raises InvalidInput without times.
        """
        width = _microseconds(step_seconds)
        ordered, _ = self.sort()
        bins = np.floor_divide(ordered.times_for("resample"), width)
        kept = one_of_each(ordered.user, bins, answer)
        return replace(ordered, step=bins)._keep(kept, "same_step")

    def drop_faster_than(self, metres_per_second: object) -> tuple[Self, Counts]:
        """Without points that their user could not reach from the last kept point at this speed; sorted.

        Great-circle distances. A point at the time of the last one and elsewhere is dropped. For fitting
        only: what is released must not depend on where somebody seems to have been. Raises InvalidInput
        without times or places.
        """
        from dphmm._kernels.locate import keep_below_speed

        limit = finite_number(metres_per_second, "max speed")
        if limit <= 0:
            raise InvalidInput("max speed", limit, "more than 0 m/s")
        ordered, _ = self.sort()
        lat, lon = ordered.places_for("a speed limit")
        owner = ordered.user.astype(np.int64)
        times = ordered.times_for("a speed limit")
        keep = keep_below_speed(owner, times, np.radians(lat), np.radians(lon), limit, MEAN_RADIUS)
        return ordered._keep(keep, "too_fast")

    def steps(self) -> IntArray:
        """The step (n,) of every row: the ``step`` column, else its rank among its user's rows, from 0.

        Rows rank by time where there are times (ties, and rows without times, as they stand).
        """
        if self.step is not None:
            return self.step
        if self.time is None:
            return ranks(self.user)
        order = np.lexsort((self.time, self.user))
        steps = np.empty(len(self), dtype=np.int64)
        steps[order] = ranks(self.user[order])
        return steps

    def sequences(self, states: ArrayLike, *, gap: float | None = None, hold: int = 0) -> Sequences:
        """State sequences for fitting; see ``dphmm.states.observed.state_sequences``."""
        from dphmm.states.observed import state_sequences

        return state_sequences(self, states, gap=gap, hold=hold)

    def visits(self, answer: str = "last") -> tuple[list[Visit], Counts]:
        """Each user's steps and rows for release; see ``dphmm.states.observed.visits``."""
        from dphmm.states.observed import visits

        return visits(self, answer)

    def _keep(self, keep: BoolArray, reason: str) -> tuple[Self, Counts]:
        dropped = len(keep) - int(keep.sum())
        return (self.take(keep) if dropped else self), Counts({reason: dropped})

    def times_for(self, what: str) -> IntArray:
        """The times (n,), or InvalidInput saying what needs them."""
        if self.time is None:
            raise InvalidInput("time", "no times", f"a time column, which {what} needs")
        return self.time

    def places_for(self, what: str) -> tuple[FloatArray, FloatArray]:
        """Latitudes and longitudes (n,), or InvalidInput saying what needs them."""
        if self.lat is None or self.lon is None:
            raise InvalidInput("lat, lon", "no places", f"columns lat and lon, which {what} needs")
        return self.lat, self.lon

    def __repr__(self) -> str:
        return f"Trajectories(rows={len(self)}, users={self.n_users}, columns={', '.join(self.columns)})"


_DTYPES: dict[str, Any] = {
    "user": np.int32,
    "time": np.int64,
    "step": np.int64,
    "lat": np.float64,
    "lon": np.float64,
    "state": np.object_,
    "trip": np.int32,
}


def _column(values: Any, dtype: Any, name: str) -> NDArray[Any] | None:
    if values is None:
        return None
    given = np.asarray(values)
    if given.ndim != 1:
        raise InvalidInput(name, f"an array of shape {given.shape}", "one value per row")
    wanted = np.dtype(dtype)
    if wanted.kind == "i" and given.size and given.dtype.kind not in "iu":
        raise InvalidInput(name, f"dtype {given.dtype}", "integers")
    if wanted.kind == "f" and given.size and given.dtype.kind not in "iuf":
        raise InvalidInput(name, f"dtype {given.dtype}", "numbers")
    limits = np.iinfo(wanted) if wanted.kind == "i" else None
    if limits is not None and given.size and (given.min() < limits.min or given.max() > limits.max):
        raise InvalidInput(name, "a number beyond its type", f"{wanted} integers")
    view = given.astype(wanted, copy=False).view()
    view.flags.writeable = False
    return view


def _as_key(column: NDArray[Any]) -> IntArray:
    """Integers that are equal where the column's values are, NaN to NaN included."""
    if column.dtype == np.object_:
        codes: dict[Any, int] = {}
        return np.fromiter((codes.setdefault(v, len(codes)) for v in column), np.int64, len(column))
    if column.dtype == np.float64:
        return (column + 0.0).view(np.int64)
    return column.astype(np.int64)


def _microseconds(step_seconds: object) -> int:
    width = exact_number(step_seconds, "step") * MICROSECONDS
    if width.denominator != 1 or not 0 < width <= 2**62:
        raise InvalidInput("step", step_seconds, "a number of seconds greater than 0, in whole microseconds")
    return int(width)


class Counts(Mapping[str, int]):
    """A frozen mapping reason -> number of rows; reasons with 0 rows are left out. They add up with ``+``."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Mapping[str, int] | None = None) -> None:
        given = {} if rows is None else rows
        self._rows = {reason: int(given[reason]) for reason in sorted(given) if given[reason]}

    @property
    def total(self) -> int:
        """Rows over all reasons."""
        return sum(self._rows.values())

    def __getitem__(self, reason: str) -> int:
        return self._rows.get(reason, 0)

    def __contains__(self, reason: object) -> bool:
        return reason in self._rows

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __add__(self, other: Mapping[str, int]) -> Counts:
        return Counts({reason: self[reason] + other.get(reason, 0) for reason in {*self, *other}})

    def __hash__(self) -> int:
        return hash(tuple(self._rows.items()))

    def __repr__(self) -> str:
        return f"Counts({self._rows})"
