"""What fitting and releasing take from trajectories: sequences; visits by time step, published times, states."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dphmm.errors import InvalidInput
from dphmm.states.maps import MapSpace
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import MICROSECONDS, Counts, Trajectories, one_of_each
from dphmm.types import BoolArray, IntArray


class Sequences(NamedTuple):
    """``sequences[k]`` int64 states one step apart, owned by user number ``owners[k]``; what was left out or filled.

    One person's many sequences have one owner: a private fit needs ``owners``.
    """

    sequences: list[IntArray]
    owners: IntArray
    counts: Counts


class Visit(NamedTuple):
    """One user's rows in time order: ``steps`` from the user's first step, which is 1, and row numbers."""

    user: str
    steps: IntArray
    rows: IntArray


def state_sequences(
    trajectories: Trajectories, states: ArrayLike, *, gap: float | None = None, hold: int = 0
) -> Sequences:
    """Sequences of states for fitting, cut wherever the next row is not the next step of the same trip.

    ``states`` (n,): state number of each row, -1 outside, which is filtered, counted and cuts. Rows more than
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
    counts = Counts({"outside": int(outside.sum()), "same_step": repeated, "held": held})
    return Sequences(cut, rows.user[first].astype(np.int64), counts)


def visits(trajectories: Trajectories, answer: str = "last") -> tuple[list[Visit], Counts]:
    """Each user's rows for release, by user number; of several rows at one step the ``answer``, "last" or "first".

    That is in time where there are times, and of the same time, or without times, as the rows stand. Gaps stay gaps in
    the steps: a session predicts through them.
    """
    order, steps, repeated = _step_order(trajectories, answer, trajectories.time)
    owners = trajectories.user[order]
    starts = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1]))[: len(order)])
    found = [
        Visit(trajectories.users[owners[rows[0]]], steps[rows] - steps[rows[0]] + 1, order[rows])
        for rows in np.split(np.arange(len(order)), starts[1:])
        if len(rows)
    ]
    return found, Counts({"same_step": repeated})


def _step_order(
    trajectories: Trajectories, answer: str, times: IntArray | None = None
) -> tuple[IntArray, IntArray, int]:
    """Row numbers by user and step, one per step; their steps; and how many rows were left out."""
    owner = trajectories.user
    steps = trajectories.steps()
    order = np.lexsort((steps, owner))
    one = one_of_each(owner[order], steps[order], answer)
    if times is not None and not one.all():
        order = np.lexsort((times, steps, owner))
    kept = order[one]
    return kept, steps[kept], len(order) - len(kept)


def _same_trip(rows: Trajectories) -> BoolArray:
    same: BoolArray = rows.user[1:] == rows.user[:-1]
    return same if rows.trip is None else same & (rows.trip[1:] == rows.trip[:-1])


#: Nobody's rows are of 1970, but numbers that count a user's rows from 0 would be.
_YEAR = 365 * 86_400 * MICROSECONDS


def in_steps(trajectories: Trajectories, step: int | None, answer: str = "last") -> tuple[Trajectories, int]:
    """The rows by time step of the model, the ``answer`` of each step, and how many rows that left out.

    Rows that have a step already stay as they are: `visits` takes one of each.
    """
    if step is None or trajectories.step is not None:
        return trajectories, 0
    if trajectories.time is None:
        raise InvalidInput("t", "no time column", f"times, because the model has steps of {step} s; or a step column")
    stepped, counts = trajectories.resample(step, answer)
    return stepped, sum(dict(counts).values())


def public_times(trajectories: Trajectories, step: int | None) -> IntArray | None:
    """When each row is published to have been: the start of its time step, or its own time where there are no steps.

    Raises InvalidInput for a step so far from 1970 that no timestamp can say its time, and for steps that only count a
    user's rows.
    """
    if step is not None and trajectories.step is not None:
        farthest = _farthest(step)
        if (np.abs(trajectories.step) > farthest).any():
            came = f"a number beyond {farthest}"
            raise InvalidInput("step", came, f"numbers of time bins of {step} s since 1970, in timestamps of 64 bits")
        published = trajectories.step * step * MICROSECONDS
        if trajectories.time is None and _in_1970(published).any():
            raise no_time_bins(step, timed=False)
        return published
    return trajectories.time


def not_of_time_bins(steps: IntArray, times: IntArray | None, step: int) -> BoolArray:
    """Which rows (n,) have a number of a step that is none of a time bin, each judged by itself.

    It is another one than that of the row's time, or without times one that no timestamp can tell or of 1970.
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
    came = f"numbers that steps of {step} s, as the model has them, make times in 1970"
    expected = (
        "times (dphmm import csv with --time-column), numbers of time bins since 1970, or a model of dphmm fit "
        "without --step"
    )
    return InvalidInput("step", came, expected)


def _farthest(step: int) -> int:
    return (2**63 - 1) // (step * MICROSECONDS)


def _in_1970(published: IntArray) -> BoolArray:
    return np.asarray((published >= 0) & (published < _YEAR))


def true_states(trajectories: Trajectories, space: StateSpace) -> tuple[IntArray, BoolArray]:
    """The state (n,) of every row, and which rows (n,) are in none.

    A state is its number, -1 for a name that the space does not have (drift). A place outside every state counts as the
    nearest one: a missing row would publish that its owner was elsewhere. On a map places count where there are any,
    else names.
    """
    placed = trajectories.lat is not None and trajectories.lon is not None
    if trajectories.state is not None and not (placed and space.on_map):
        names = trajectories.state.tolist()
        numbers = {name: space.index_of(name) for name in set(names)}
        named = np.array([numbers[name] for name in names], dtype=np.int64)
        return named, named < 0
    if trajectories.lat is None or trajectories.lon is None:
        raise InvalidInput("columns", ", ".join(trajectories.columns), "lat and lon, or state")
    if not isinstance(space, MapSpace):
        raise InvalidInput("lat, lon", "places", "a state column: the model's states are not places")
    states = np.asarray(space.locate(trajectories.lat, trajectories.lon))
    outside = states < 0
    states[outside] = space.nearest(trajectories.lat[outside], trajectories.lon[outside])
    return states.astype(np.int64), outside
