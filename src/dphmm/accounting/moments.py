"""The moment of each step. An answer belongs to its moment for ever, whatever comes late, twice or in disorder.

A history says what its steps go by in the option ``origin`` of its header. Where steps are numbers (of time bins, of a
column, of a caller) it is the number of step 1, and the moment of step t is that number + t - 1. Where steps are ranks
it is a clock: ``1@times`` (microseconds since 1970 UTC) or ``1@order`` (cells of an order column). Then the ledger
keeps the moment of every step, once for all queries of a person. ``1@rows`` are rows without any mark: a ledger keeps a
keyed digest of those that it has.

Moments are public. No true state is among them.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, IntArray

#: The clocks whose moments a ledger keeps, and rows that have none.
TIMES, ORDER, ROWS = "1@times", "1@order", "1@rows"
#: So many events of one millisecond an order column tells apart.
TIES = 1000
#: No moment: a skip over steps whose moments are known, or are numbers.
NO_MOMENT = -(2**63)
#: No moments, of a person who is new.
NO_MOMENTS: IntArray = np.zeros(0, dtype=np.int64)
_NUMBER = re.compile("(-?[0-9]+)(@.*)?")


def has_moments(origin: str | None) -> bool:
    """True if a ledger keeps the moments of a history's steps, by the ``origin`` in its header."""
    return origin in (TIMES, ORDER)


def event_moments(milliseconds: IntArray, places: IntArray) -> IntArray:
    """Cells (n,) of an order column that tell events of one millisecond apart by their places, from 0 to `TIES` - 1.

    >>> event_moments(np.array([5, 5]), np.array([0, 1])).tolist(), event_times(np.array([5001])).tolist()
    ([5000, 5001], [5000])
    """
    moments: IntArray = milliseconds * TIES + places
    return moments


def event_times(moments: IntArray) -> IntArray:
    """The times (n,) of `event_moments`, in microseconds."""
    times: IntArray = np.floor_divide(moments, TIES) * 1000
    return times


def first_number(origin: str) -> int | None:
    """The number of step 1 of a history; None where its ``origin`` has no number.

    >>> first_number("360402"), first_number("1@times"), first_number("")
    (360402, 1, None)
    """
    match = _NUMBER.fullmatch(origin)
    return None if match is None else int(match[1])


def steps_of(stored: IntArray, moments: IntArray) -> IntArray:
    """The step (n,) of each of one person's ``moments`` (n,), ascending: 0 for a late one, which is never asked.

    ``stored`` (k,) are the moments of steps 1 to k. A moment that is not among them is late if a later one is; others
    are steps k + 1 and so on.

    >>> steps_of(np.array([10, 30]), np.array([10, 20, 30, 40, 50])).tolist()
    [1, 0, 2, 3, 4]
    """
    k = len(stored)
    place = np.searchsorted(stored, moments)
    new = place == k
    steps = np.where(new, k + np.cumsum(new), 0)
    old = np.flatnonzero(~new)
    old = old[stored[place[old]] == moments[old]]
    steps[old] = place[old] + 1
    return steps


def added_moments(first: int, stored: IntArray, t: IntArray, steps: IntArray, moments: IntArray) -> IntArray:
    """The moments that requests for one person's steps add to the ``stored`` ones: those of new steps.

    first, stored : the moments of all steps from ``first`` on; ``first`` is at most that of the requests, or the last.
    t, steps, moments (n,) : requests in order of t; ``NO_MOMENT`` where a skip passes over what is stored.

    Raises InvalidInput where a stored step stands for another moment, a new one has no later moment than the step
    before it, or a moment is missing. It repeats no moment.
    """
    marked: BoolArray = moments != NO_MOMENT
    last = first + len(stored) - 1
    if bool((~marked & (t + steps - 1 > last)).any()) or bool((marked & (steps != 1)).any()):
        raise InvalidInput("moment", "none", "what each step stands for: a time, or the cell of the order column")
    old = marked & (t <= last)
    if bool((stored[t[old] - first] != moments[old]).any()):
        step = int(t[old][stored[t[old] - first] != moments[old]][0])
        raise InvalidInput("moment", f"another one for step {step}", "the one that the step stands for in the ledger")
    added = moments[marked & ~old]
    if bool((np.diff(np.concatenate([stored[-1:], added])) <= 0).any()):
        raise InvalidInput("moment", "one that comes too late", "a later moment than that of the step before it")
    return added


class Prefix(NamedTuple):
    """The first ``rows`` of a person, none of which has a mark: a keyed digest of their states, for their owner alone.

    Whoever has no key cannot tell which rows they were, nor whether two people have the same ones.
    """

    rows: int
    digest: bytes

    @classmethod
    def of(cls, key: bytes, person: str, states: IntArray) -> Prefix:
        """The digest of all these states (n,) of a person, with a ``key`` of 32 bytes.

        >>> Prefix.of(bytes(32), "ann", np.array([3, 1])).rows
        2
        """
        hashed = hashlib.blake2b(key=key, digest_size=16)
        hashed.update(person.encode() + b"\0")
        hashed.update(states.astype("<i8").tobytes())
        return cls(len(states), hashed.digest())


def prefix_of(kept: Sequence[Prefix], steps: int) -> Prefix | None:
    """The person's prefix that is of all stored ``steps``, of those kept; None where there are no steps.

    Raises InvalidInput where there is none: these rows cannot be told from others.
    """
    if not steps:
        return None
    whole = next((prefix for prefix in kept if prefix.rows == steps), None)
    if whole is None:
        expected = "the folder of the ledger's owner that was beside it; or a column t of times or order of numbers"
        raise InvalidInput("ledger", "stored rows without times, and no digest of them", expected)
    return whole
