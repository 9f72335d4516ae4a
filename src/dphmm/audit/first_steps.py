"""Search, for rows without times, a first step of each person from which they keep what a statement says.

A row without a time tells how far it is from the other rows of its person, and neither where in a block of a time it
is nor which step of a table of choices. Statements are held against all first steps at once: exactly, as sets and
intervals of them. A statement of anybody's making can name a million steps, so the work has a limit, and how many
people were not compared is told.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dphmm.accounting.promise import Schedule
from dphmm.types import BoolArray, IntArray

#: How many bytes of sets of places are touched; what takes as long as so many: a person, a set, and for each place of
#: a block that it is laid out, and that intervals of places are.
_MOST_BYTES, _OF_A_PERSON, _OF_A_SET, _LAID_OUT, _INTERVALS = 3 * 10**10, 10**5, 10**4, 10, 200
#: In steps: a year of seconds is shorter.
_LONGEST_BLOCK = 2**25
#: How many intervals of first steps are looked at, in all and of people at once; each round takes as many as so many.
_MOST_INTERVALS, _AT_ONCE, _OF_A_ROUND = 10**7, 10**6, 500
#: How many of a person's are tried first: choices that come again day by day are kept from most of them.
_FEW = 4
#: Steps of a table are within 2**53 of 0, so a first step that rows have is nearer than this. No piece ends nearer than
#: twice as far.
_FAR = 2**54


class Compared(NamedTuple):
    """The ``person`` whose rows fit from no first step, None of nobody, and ``what`` they break.

    ``left``: how many people were not looked at.
    """

    person: int | None
    what: str = ""
    left: int = 0


def compared_with_blocks(
    person: IntArray, step: IntArray, asked: BoolArray, units: Any, total: int, per: int, schedule: Schedule | None
) -> Compared:
    """Whether rows (n,), by person and step, keep a schedule and the total of blocks from some place of each person.

    Each block has ``per`` steps, and a person's place says where in the first one their steps begin.
    ``units`` (n,): what each row adds to the total, whole numbers. The place q of a person says that step s is the
    (s + q) mod per of its block, from 0.
    """
    people = int(person[-1]) + 1
    who, low, length = _over_full(person, step, units, total, per)
    if schedule is None and not asked.all():
        return Compared(int(person[~asked][0]), "schedule")
    chosen = np.unique(who) if schedule is None else np.arange(people)
    if per > _LONGEST_BLOCK:
        return Compared(None, left=len(chosen))
    named = np.zeros(per, dtype=np.bool_)
    if schedule is not None:
        named[np.array(schedule.at) - 1] = True
    rows, full = (np.searchsorted(of, np.arange(people + 1)) for of in (person, who))
    touched = 0
    for done, one in enumerate(chosen.tolist()):
        own, over = slice(rows[one], rows[one + 1]), slice(full[one], full[one + 1])
        pairs = []
        if schedule is not None:
            place = step[own] % per
            pairs.append((np.unique(place[asked[own]]), ~named))
            # Of a paced schedule a named step may be left out.
            pairs += [(np.unique(place[~asked[own]]), named)] * (schedule.kind == "planned")
        sets = sum(min(len(members), int(others.sum())) for members, others in pairs)
        laid_out = _LAID_OUT + (_INTERVALS if over.stop > over.start else 0)
        touched += _OF_A_PERSON + laid_out * per + sets * (per + _OF_A_SET)
        if touched > _MOST_BYTES:
            return Compared(None, left=len(chosen) - done)
        broken = np.zeros(per, dtype=np.bool_)
        for members, others in pairs:
            _add_meeting(broken, members, others)
        if broken.all():
            return Compared(one, "schedule")
        _add_intervals(broken, low[over], length[over])
        if broken.all():
            return Compared(one, "sequence")
    return Compared(None)


def _over_full(person: IntArray, step: IntArray, units: Any, total: int, per: int) -> tuple[IntArray, IntArray, Any]:
    """Persons, and runs of places (first, length) from which one block of theirs holds more than the total.

    The sum of the block that begins at step t changes where a row enters it and where one leaves it, so it is constant
    between; a block begins at t from the places -t mod per.
    """
    at, who = np.concatenate([step - per + 1, step + 1]), np.concatenate([person, person])
    order = np.lexsort((at, who))
    held = np.cumsum(np.concatenate([units, -units])[order])
    at, who = at[order], who[order]
    # After the last row of a person nothing is held.
    bad = np.flatnonzero((held[:-1] > total).astype(np.bool_) & (at[1:] > at[:-1]))
    return who[bad], (1 - at[bad + 1]) % per, np.minimum(at[bad + 1] - at[bad], per)


def _add_meeting(broken: BoolArray, members: IntArray, others: BoolArray) -> None:
    """Mark the places from which a member, moved by the place, is among the others (per,), round the block."""
    per = len(others)
    if len(members) <= others.sum():
        shifted, moves = others, members
    else:
        shifted, moves = np.zeros(per, dtype=np.bool_), -np.flatnonzero(others) % per
        shifted[-members % per] = True
    twice = np.concatenate([shifted, shifted])
    for move in moves.tolist():
        np.logical_or(broken, twice[move : move + per], out=broken)


def _add_intervals(broken: BoolArray, low: IntArray, length: IntArray) -> None:
    """Mark runs of places, round the block."""
    if not len(low):
        return
    per, end = len(broken), low + length
    change = np.zeros(per + 1, dtype=np.int32)
    np.add.at(change, low, 1)
    np.add.at(change, np.minimum(end, per), -1)
    change[0] += int((end > per).sum())
    np.add.at(change, end[end > per] - per, -1)
    broken |= np.cumsum(change[:-1]) > 0


def have_values(step: IntArray, value: IntArray, runs: list[tuple[int, int, int]], other: int) -> bool:
    """Whether rows (n,) whose steps of the table are known have the values of these, as `compared_with_runs`."""
    if not runs:
        return bool((value == other).all())
    first, last, chosen = (np.array(one, dtype=np.int64) for one in zip(*runs, strict=True))
    at = np.searchsorted(first, step, side="right") - 1
    return bool((value == np.where((at >= 0) & (step <= last[at]), chosen[at], other)).all())


def compared_with_runs(
    person: IntArray, step: IntArray, value: IntArray, runs: list[tuple[int, int, int]], other: int
) -> Compared:
    """Whether rows (n,), by person and step, have the value of their step of a table for some first step of each.

    ``runs``: first and last step and value, ascending and apart; all other steps have the value ``other``.
    """
    if not len(person):
        return Compared(None)
    if 2 * len(runs) > _AT_ONCE:
        return Compared(None, left=len(np.unique(person)))
    pieces = _Pieces.of(runs, other)
    # A row that follows the one before and has its value is in the same piece.
    new = np.ones(len(person), dtype=np.bool_)
    new[1:] = (person[1:] != person[:-1]) | (value[1:] != value[:-1]) | (step[1:] > step[:-1] + 1)
    begins = np.flatnonzero(new)
    ends = np.append(begins[1:], len(person)) - 1
    owner, low, high, own = person[begins], step[begins], step[ends], value[begins]
    people, count = np.unique(owner, return_counts=True)
    first = np.cumsum(count) - count
    # People whose rows are as far apart and have the same values are compared once.
    alike: dict[bytes, list[int]] = {}
    for n, (at, many) in enumerate(zip(first.tolist(), count.tolist(), strict=True)):
        part = slice(at, at + many)
        kind = np.stack([low[part] - low[at], high[part] - low[at], own[part]]).tobytes()
        alike.setdefault(kind, []).append(n)
    each_kind = list(alike.values())
    different = np.array([kind[0] for kind in each_kind], dtype=np.int64)
    looked, each = 0, max(1, _AT_ONCE // len(pieces.low))
    for done in range(0, len(different), each):
        some = different[done : done + each]
        for few in (_FEW, None):
            segments = first[some], count[some], low, high, own
            wrong, took = _fits_nowhere(pieces, *segments, few, _MOST_INTERVALS - looked)
            looked += took
            if looked > _MOST_INTERVALS:
                return Compared(None, left=sum(map(len, each_kind[done:])))
            some = some[wrong]
            if not len(some):
                break
        if len(some):
            return Compared(int(people[some[0]]))
    return Compared(None)


class _Pieces(NamedTuple):
    """All steps, in pieces (m,) of one value next to those of others; ``order``: by value, ``key`` of each of these."""

    low: IntArray
    high: IntArray
    order: IntArray
    key: IntArray

    @classmethod
    def of(cls, runs: list[tuple[int, int, int]], other: int) -> _Pieces:
        most = 2 * _FAR
        found = [(-most, other)]
        for first, last, value in runs:
            found += [(first, value), (last + 1, other)]
        low, value = np.array(found, dtype=np.int64).T
        # Of pieces that begin at one step all but the last are empty.
        kept = np.append(low[1:] > low[:-1], True)
        low, value = low[kept], value[kept]
        kept = np.append(True, value[1:] != value[:-1])
        low, value = low[kept], value[kept]
        order = np.argsort(value, kind="stable")
        return cls(low, np.append(low[1:] - 1, most), order, value[order] * len(low) + order)


def _fits_nowhere(
    pieces: _Pieces,
    first: IntArray,
    count: IntArray,
    low: IntArray,
    high: IntArray,
    own: IntArray,
    few: int | None,
    most: int,
) -> tuple[IntArray, int]:
    """Which of some people (by number here) fit from no first step, and how many intervals were looked at.

    With ``few`` no more intervals of each than so many are followed after the first round.

    The segments of a person are ``low``, ``high``, ``own`` from ``first`` on. Each round keeps the intervals of first
    steps from which one more segment of each person is in a piece of its value.
    """
    who, begin, end = np.arange(len(first)), np.full(len(first), -_FAR), np.full(len(first), _FAR)
    fits, looked = np.zeros(len(first), dtype=np.bool_), 0
    for number in range(int(count.max())):
        at = first[who] + number
        # A piece that holds a whole segment from a first step of the interval lies at least so far.
        since = np.searchsorted(pieces.high, begin + high[at])
        until = np.searchsorted(pieces.low, end + low[at], side="right")
        value = own[at] * len(pieces.low)
        since, until = (np.searchsorted(pieces.key, value + one) for one in (since, until))
        many = np.maximum(until - since, 0)
        looked += int(many.sum()) + _OF_A_ROUND
        if looked > most:
            break
        which = np.repeat(np.arange(len(who)), many)
        piece = pieces.order[since[which] + np.arange(len(which)) - (np.cumsum(many) - many)[which]]
        begin = np.maximum(begin[which], pieces.low[piece] - low[at[which]])
        end = np.minimum(end[which], pieces.high[piece] - high[at[which]])
        kept = begin <= end
        if few is not None and number == 0:
            # As far apart as may be, the first among them: a record may be as long as the table.
            rank = np.arange(len(which)) - (np.cumsum(many) - many)[which]
            kept &= (rank * few) // many[which] != ((rank - 1) * few) // many[which]
        who, begin, end = who[which][kept], begin[kept], end[kept]
        done = count[who] == number + 1
        fits[who[done]] = True
        who, begin, end = who[~done], begin[~done], end[~done]
    return np.flatnonzero(~fits), looked
