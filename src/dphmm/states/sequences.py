"""From rows to what algorithms take: state sequences for fitting, visits for releasing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dphmm.errors import InvalidInput
from dphmm.states.counts import Counts
from dphmm.states.trajectory import MICROSECONDS, Trajectories
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
    order, steps, repeated = _step_order(trajectories)
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


def visits(trajectories: Trajectories) -> tuple[list[Visit], Counts]:
    """Each user's rows for release, by user number; of several rows at one step the first wins.

    Gaps stay gaps in the steps: a session predicts through them.
    """
    order, steps, repeated = _step_order(trajectories)
    owners = trajectories.user[order]
    starts = np.flatnonzero(np.concatenate(([True], owners[1:] != owners[:-1]))[: len(order)])
    found = [
        Visit(trajectories.users[owners[rows[0]]], steps[rows] - steps[rows[0]] + 1, order[rows])
        for rows in np.split(np.arange(len(order)), starts[1:])
        if len(rows)
    ]
    return found, Counts({"same_step": repeated})


def _step_order(trajectories: Trajectories) -> tuple[IntArray, IntArray, int]:
    """Row numbers by user and step, one per step; their steps; and how many rows were left out."""
    owner = trajectories.user
    steps = trajectories.steps()
    order = np.lexsort((steps, owner))
    ordered = steps[order]
    again = np.zeros(len(order), dtype=np.bool_)
    again[1:] = (ordered[1:] == ordered[:-1]) & (owner[order][1:] == owner[order][:-1])
    return order[~again], ordered[~again], int(again.sum())


def _same_trip(rows: Trajectories) -> BoolArray:
    same: BoolArray = rows.user[1:] == rows.user[:-1]
    return same if rows.trip is None else same & (rows.trip[1:] == rows.trip[:-1])
