"""The rows of trajectories, in columns (who, where, when), and the forms that fitting and releasing take.

A Trajectories is frozen; every operation gives a new one and the number of rows that it changed. Its rows are
private: nothing here puts one into a message or a repr.

`Counts` are numbers of changed rows, by reason. Fitting takes `Sequences`, releasing takes a `Visit` of each user;
`true_states` finds the state of every row. Order among the rows of many users needs no loop over rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm._checks import exact_number, finite_number, one_of
from dphmm.errors import InvalidInput
from dphmm.states.maps import MEAN_RADIUS, MapSpace
from dphmm.states.space import END, StateSpace
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def ranks(owner: NDArray[Any]) -> IntArray:
    """The number of rows of the same owner before each row (n,)."""
    order, positions = np.argsort(owner, kind="stable"), np.arange(len(owner))
    together = owner[order]
    # The position at which the run of each owner's rows starts.
    starts = positions.copy()
    starts[1:][together[1:] == together[:-1]] = 0
    result = np.empty(len(owner), dtype=np.int64)
    result[order] = positions - np.maximum.accumulate(starts)
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
    mask = np.ones(len(user), dtype=np.bool_)
    other = (step[1:] != step[:-1]) | (user[1:] != user[:-1])
    mask[slice(None, -1) if last else slice(1, None)] = other
    return mask


MICROSECONDS = 1_000_000
#: The state of a row without a place.
NOWHERE = -2

#: Which of several rows of one user in one time bin, or one step, is answered: the last in time, or the first.
ANSWERS = ("last", "first")


@dataclass(frozen=True, eq=False, repr=False)
class Trajectories:
    """n rows of columns; ``users[user[i]]`` owns row i.

    ``time`` microseconds since 1970 UTC; ``step`` the number of a time step; ``lat``, ``lon`` degrees;
    ``state`` the name of a state (strings); ``trip`` the number of one of the user's trips; ``order`` the cell of a
    column that says which row comes first. All but ``users`` and ``user`` may be None. A user's many trips are one
    user. ``counted``: steps only count a user's rows, so that they stand for nothing and are not written. Raises
    InvalidInput for columns that do not fit together.
    """

    users: tuple[str, ...]
    user: NDArray[np.int32]
    time: IntArray | None = None
    step: IntArray | None = None
    lat: FloatArray | None = None
    lon: FloatArray | None = None
    state: NDArray[np.object_] | None = None
    trip: NDArray[np.int32] | None = None
    order: IntArray | None = None
    counted: bool = False

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

    @property
    def blank(self) -> BoolArray:
        """True where a row (n,) has no place (latitude and longitude NaN, state None): it has a step all the same.

        No answer is given to such a row, and no model learns a move over it.
        """
        nowhere = np.zeros(len(self), dtype=np.bool_)
        if self.lat is not None:
            nowhere |= np.isnan(self.lat)
        if self.state is not None:
            nowhere |= np.equal(self.state, np.array(None)).astype(np.bool_)
        return nowhere

    @property
    def placed(self) -> Self:
        """The rows that are not `blank`."""
        blank = self.blank
        return self.take(~blank) if blank.any() else self

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
        """The trajectories without rows that repeat an earlier row in every column."""
        keep = first_of_each([_as_key(getattr(self, name)) for name in self.columns])
        return self._keep(keep, "duplicate")

    def padded(self, length: int) -> Self:
        """So many rows of states for each user: its first ones as they stand, and END after the last.

        ``order`` is their position, from 1; other columns are left out. Raises InvalidInput without states.

        >>> rows = Trajectories.from_labels(["a", "a", "a", "b"], state=["x", "y", "z", "y"]).padded(2)
        >>> rows.state.tolist(), rows.order.tolist()
        (['x', 'y', 'y', 'END'], [1, 2, 1, 2])
        """
        if self.state is None:
            raise InvalidInput("length", "rows without names of states", "a state column: END is a name")
        position = ranks(self.user)
        within = position < length
        before = np.bincount(self.user[within], minlength=self.n_users)
        ended = np.repeat(np.arange(self.n_users), np.where(before > 0, length - before, 0))
        user = np.concatenate([self.user[within], ended])
        order = np.concatenate([position[within], before[ended] + ranks(ended)])
        state = np.concatenate([self.state[within], np.full(len(ended), END, dtype=object)])
        at = np.lexsort((order, user))
        events = type(self)(self.users, user[at].astype(np.int32), state=state[at], order=order[at] + 1)
        return replace(events, counted=True)

    def resample(self, step_seconds: int, answer: str = "last") -> tuple[Self, Counts]:
        """One row per user and time bin, the last in time; ``step`` is the bin's number from the UTC epoch.

        Sorted by user and time; of two rows at the same time the later row wins. With ``answer`` "first" the first in
        time, and of two at the same time the earlier row. Raises InvalidInput without times.
        """
        width = _microseconds(step_seconds)
        ordered, _ = self.placed.sort()
        bins = np.floor_divide(ordered.times_for("resample"), width)
        mask = one_of_each(ordered.user, bins, answer)
        return replace(ordered, step=bins)._keep(mask, "same_step")

    def drop_faster_than(self, metres_per_second: object) -> tuple[Self, Counts]:
        """The sorted trajectories without points that are too far from the last kept one for this speed.

        Great-circle distances. A point at the time of the last one and elsewhere is dropped. For fitting
        only: what is released must not depend on where somebody seems to have been. Raises InvalidInput
        without times or places.
        """
        from dphmm._kernels.rows import keep_below_speed

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
        """State sequences for fitting; see ``dphmm.states.trajectory.state_sequences``."""
        return state_sequences(self, states, gap=gap, hold=hold)

    def visits(self, answer: str = "last") -> tuple[list[Visit], Counts]:
        """Each user's steps and rows for release; see ``dphmm.states.trajectory.visits``."""
        return visits(self, answer)

    def _keep(self, keep: BoolArray, reason: str) -> tuple[Self, Counts]:
        dropped = len(keep) - int(keep.sum())
        return (self.take(keep) if dropped else self), Counts({reason: dropped})

    def times_for(self, what: str) -> IntArray:
        """The times (n,); without any, raises InvalidInput with the operation that needs them."""
        if self.time is None:
            raise InvalidInput("time", "no times", f"a time column, which {what} needs")
        return self.time

    def places_for(self, what: str) -> tuple[FloatArray, FloatArray]:
        """Latitudes and longitudes (n,); without any, raises InvalidInput with the operation that needs them."""
        if self.lat is None or self.lon is None:
            raise InvalidInput("lat, lon", "no places", f"columns lat and lon, which {what} needs")
        return self.lat, self.lon

    def to_arrow(self) -> pa.Table:
        """The canonical Arrow table: user text, t timestamp[us, UTC], step, lat, lon, state, trip, order."""
        import pyarrow as pa

        users = pa.array(self.users, pa.string())
        columns: dict[str, Any] = {"user": pa.DictionaryArray.from_arrays(self.user, users).cast(pa.string())}
        if self.time is not None:
            columns["t"] = pa.array(self.time, pa.int64()).cast(pa.timestamp("us", "UTC"))
        for name in ("step", "lat", "lon", "state", "trip", "order"):
            column = getattr(self, name)
            if column is not None and not (name == "step" and self.counted):
                kind = pa.string() if name == "state" else pa.from_numpy_dtype(column.dtype)
                columns[name] = pa.array(column, kind, mask=self.blank if name in ("lat", "lon") else None)
        return pa.table(columns)

    def to_pandas(self) -> pd.DataFrame:
        """The same as a pandas frame."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The stream that makes an Arrow table of these rows wherever one is taken: by `fit`, polars and pandas."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """The number of rows and users, and the columns; rows are people's, so a notebook shows none of them."""
        columns = ", ".join(("t" if name == "time" else name) for name in self.columns)
        return f"<p>{len(self):,} rows of {self.n_users:,} users; columns {columns}</p>"

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
    "order": np.int64,
}


def _column(values: Any, dtype: Any, name: str) -> NDArray[Any] | None:
    if values is None:
        return None
    array = np.asarray(values)
    if array.ndim != 1:
        raise InvalidInput(name, f"an array of shape {array.shape}", "one value per row")
    wanted = np.dtype(dtype)
    if wanted.kind == "i" and array.size and array.dtype.kind not in "iu":
        raise InvalidInput(name, f"dtype {array.dtype}", "integers")
    if wanted.kind == "f" and array.size and array.dtype.kind not in "iuf":
        raise InvalidInput(name, f"dtype {array.dtype}", "numbers")
    limits = np.iinfo(wanted) if wanted.kind == "i" else None
    if limits is not None and array.size and (array.min() < limits.min or array.max() > limits.max):
        raise InvalidInput(name, "a number beyond its type", f"{wanted} integers")
    view = array.astype(wanted, copy=False).view()
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
        counts = {} if rows is None else rows
        self._rows = {reason: int(counts[reason]) for reason in sorted(counts) if counts[reason]}

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


class Sequences(NamedTuple):
    """``sequences[k]``: int64 states one step apart, of user number ``owners[k]``; ``counts``: rows left out or filled.

    ``first_steps[k]``: the number of its first step.

    One person's many sequences have one owner: a private fit needs ``owners``.
    """

    sequences: list[IntArray]
    owners: IntArray
    counts: Counts
    first_steps: IntArray


class Visit(NamedTuple):
    """One user's rows in time order: ``steps`` from the user's first step, which is 1, and row numbers."""

    user: str
    steps: IntArray
    rows: IntArray


def state_sequences(
    trajectories: Trajectories, states: ArrayLike, *, gap: float | None = None, hold: int = 0
) -> Sequences:
    """Sequences of states for fitting, cut wherever the next row is not the next step of the same trip.

    ``states`` (n,): state number of each row, -1 outside, which is filtered, counted and cuts; a row without a place
    cuts and is not counted. Rows more than
    ``gap`` seconds apart are cut (needs times). A hole of at most ``hold`` steps is filled with the state
    before it; a row outside is not a hole. A row that repeats its user's step is left out and counted.
    """
    numbers = np.asarray(states)
    if numbers.shape != trajectories.user.shape or (numbers.size and numbers.dtype.kind not in "iu"):
        raise InvalidInput("states", f"{numbers.dtype} {numbers.shape}", f"integers ({len(trajectories)},)")
    if isinstance(hold, bool) or not isinstance(hold, (int, np.integer)) or hold < 0:
        raise InvalidInput("hold", hold, "a number of steps, 0 or more")
    order, steps, repeated = _step_order(trajectories, "first")
    rows = trajectories.take(order)
    ordered = numbers[order].astype(np.int64)
    ahead = np.diff(steps)
    joined = _same_trip(rows) & (ahead <= 1 + hold) & (ordered[1:] >= 0) & (ordered[:-1] >= 0)
    if gap is not None:
        joined &= np.diff(rows.times_for("gap")) <= gap * MICROSECONDS
    times_each = np.ones(len(order), dtype=np.int64)
    times_each[:-1][joined] = ahead[joined]
    outside = ordered < 0
    times_each[outside] = 0
    first = np.flatnonzero(np.concatenate(([True], ~joined))[: len(order)] & ~outside)
    ends = np.concatenate(([0], np.cumsum(times_each)))
    cut = np.split(np.repeat(ordered, times_each), ends[first][1:]) if len(first) else []
    held = int(times_each.sum()) - int((~outside).sum())
    counts = Counts({"outside": int((outside & ~rows.blank).sum()), "same_step": repeated, "held": held})
    return Sequences(cut, rows.user[first].astype(np.int64), counts, steps[first])


def visits(trajectories: Trajectories, answer: str = "last") -> tuple[list[Visit], Counts]:
    """Each user's rows for release, by user number; of several rows at one step the ``answer``, "last" or "first".

    That is in time where there are times, and of the same time, or without times, as the rows stand. Gaps stay gaps in
    the steps: a session predicts through them.
    """
    order, steps, repeated = _step_order(trajectories, answer, trajectories.time)
    owners = trajectories.user[order]
    starts = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1]))[: len(order)])
    per_user = [
        Visit(trajectories.users[owners[rows[0]]], steps[rows] - steps[rows[0]] + 1, order[rows])
        for rows in np.split(np.arange(len(order)), starts[1:])
        if len(rows)
    ]
    return per_user, Counts({"same_step": repeated})


def _step_order(
    trajectories: Trajectories, answer: str, times: IntArray | None = None
) -> tuple[IntArray, IntArray, int]:
    """Row numbers by user and step, one per step; their steps; and the number of rows left out."""
    owner = trajectories.user
    steps = trajectories.steps()
    # Of rows of one step, or of one time in it, one with a place is kept.
    last = trajectories.blank == (answer == "first")
    order = np.lexsort((last, steps, owner))
    mask = one_of_each(owner[order], steps[order], answer)
    if times is not None and not mask.all():
        order = np.lexsort((last, times, steps, owner))
    rows = order[mask]
    return rows, steps[rows], len(order) - len(rows)


def _same_trip(rows: Trajectories) -> BoolArray:
    same: BoolArray = rows.user[1:] == rows.user[:-1]
    return same if rows.trip is None else same & (rows.trip[1:] == rows.trip[:-1])


#: Nobody's rows are of 1970, but numbers that count a user's rows from 0 would be.
_YEAR = 365 * 86_400 * MICROSECONDS


def in_steps(trajectories: Trajectories, step: int | None, answer: str = "last") -> tuple[Trajectories, int]:
    """The rows by time step of the model, the ``answer`` of each step, and the number of rows that this left out.

    Rows that have a step already stay as they are: `visits` takes one of each.
    """
    if step is None or trajectories.step is not None:
        return trajectories, 0
    if trajectories.time is None:
        raise InvalidInput("t", "no time column", f"times, because the model has steps of {step} s; or a step column")
    stepped, counts = trajectories.resample(step, answer)
    return stepped, sum(dict(counts).values())


def public_times(trajectories: Trajectories, step: int | None) -> IntArray | None:
    """The published time of each row: the start of its time step, or its own time where there are no steps.

    Raises InvalidInput for a step so far from 1970 that no timestamp can say its time, and for steps that only count a
    user's rows.
    """
    if step is not None and trajectories.step is not None:
        farthest = _farthest(step)
        if (np.abs(trajectories.step) > farthest).any():
            fault = f"a number beyond {farthest}"
            raise InvalidInput("step", fault, f"numbers of time bins of {step} s since 1970, in timestamps of 64 bits")
        published = trajectories.step * step * MICROSECONDS
        if trajectories.time is None and _in_1970(published).any():
            raise no_time_bins(step, timed=False)
        return published
    return trajectories.time


def not_of_time_bins(steps: IntArray, times: IntArray | None, step: int) -> BoolArray:
    """True where the number of a row's step (n,) is none of a time bin, each judged by itself.

    The number is not that of the row's time; without times, it is in 1970, or beyond what a timestamp can tell.
    """
    if times is not None:
        return np.asarray(np.floor_divide(times, step * MICROSECONDS) != steps)
    beyond = np.abs(steps) > _farthest(step)
    return np.asarray(beyond | _in_1970(np.where(beyond, 0, steps) * step * MICROSECONDS))


def no_time_bins(step: int, timed: bool) -> InvalidInput:
    """The error of steps that count something else: they would be published as times in 1970."""
    if timed:
        expected = f"the number of the time bin of {step} s since 1970 in every row, or no column step"
        return InvalidInput("step", "steps that are not those of the times", expected)
    fault = f"numbers that steps of {step} s, as the model has them, make times in 1970"
    expected = (
        "times (dphmm import csv with --time-column), numbers of time bins since 1970, or a model of dphmm fit "
        "without --step"
    )
    return InvalidInput("step", fault, expected)


def _farthest(step: int) -> int:
    return (2**63 - 1) // (step * MICROSECONDS)


def _in_1970(published: IntArray) -> BoolArray:
    return np.asarray((published >= 0) & (published < _YEAR))


def true_states(trajectories: Trajectories, space: StateSpace) -> tuple[IntArray, BoolArray]:
    """The state (n,) of every row, and which rows (n,) are in none.

    A state is its number, -1 for a name that the space does not have (drift), `NOWHERE` for a row without a place. A
    place outside every state counts as the nearest one: a missing row would publish that its owner was elsewhere. On a
    map places count where there are any, else names.
    """
    placed = trajectories.lat is not None and trajectories.lon is not None
    if trajectories.state is not None and not (placed and space.on_map):
        names = trajectories.state.tolist()
        numbers = {name: NOWHERE if name is None else space.index_of(name) for name in set(names)}
        named = np.array([numbers[name] for name in names], dtype=np.int64)
        return named, named == -1
    if trajectories.lat is None or trajectories.lon is None:
        raise InvalidInput("columns", ", ".join(trajectories.columns), "lat and lon, or state")
    if not isinstance(space, MapSpace):
        raise InvalidInput("lat, lon", "places", "a state column: the model's states are not places")
    states, here = np.full(len(trajectories), NOWHERE, dtype=np.int64), ~trajectories.blank
    states[here] = space.locate(trajectories.lat[here], trajectories.lon[here])
    outside = states == -1
    states[outside] = space.nearest(trajectories.lat[outside], trajectories.lon[outside])
    return states, outside
