"""Blocks of whole days by a clock that is put forward and back: of 23, 24 or 25 hours, and now and then of others.

A day begins at the first moment at which the clock of its zone shows its date, or a later one: at midnight, where
clocks have one that day. So the days of any zone follow one another without a gap, whatever its clocks do: of a date
that occurs twice the second time is part of the day after which it comes, and one that is left out has no moment. A
step belongs to the day in which it begins.

Bounds that a ledger has stored win over what a newer zone table says, and blocks between them end where they begin.

Proof: docs/proofs/schedules.md.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.types import IntArray

DAY = 86400
_FIRST = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Days since 1970 that calendars and zone tables are read for: from year 2 to year 9998.
_DAYS = (date(2, 1, 1).toordinal() - _FIRST, date(9998, 1, 1).toordinal() - _FIRST)
#: A name with its region: "UTC" and "localtime" are other things on other machines.
_NAME = re.compile("(?!posix/|right/)[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+){1,2}")
#: Most days of a block.
LONGEST = 366
_HOUR = re.compile("([01][0-9]|2[0-3]):([0-5][0-9])")

#: The first bin of a block, and the one after its last.
Bounds = tuple[int, int]


def is_name(zone: object) -> bool:
    """True if a zone has the form of a name with a region, as Europe/Berlin, and is no offset."""
    return isinstance(zone, str) and _NAME.fullmatch(zone) is not None


def named_zone(name: str) -> ZoneInfo | None:
    """The zone of such a name; None for anything else, and where the zone table has none."""
    try:
        return ZoneInfo(name) if is_name(name) else None
    except (LookupError, ValueError, OSError):
        return None


def hour_seconds(text: str) -> int:
    """Seconds from midnight of a time of day. Raises InvalidInput for a text that is not written as 08:00."""
    digits = _HOUR.fullmatch(text) if isinstance(text, str) else None
    if digits is None:
        raise InvalidInput("hours", text, "times of a day from 00:00 to 23:59, as 08:00")
    return int(digits[1]) * 3600 + int(digits[2]) * 60


@lru_cache(maxsize=2**15)
def day_begins(zone: str, number: int) -> int:
    """The first second since 1970 UTC at which clocks show day ``number`` after 1970-01-01, or a later date."""
    clock, shown = ZoneInfo(zone), datetime.fromordinal(_FIRST + number)
    # Two readings of midnight: the same one, both of them where clocks show it twice, and the two sides of a gap.
    readings = [_moment(shown.replace(tzinfo=clock, fold=fold)) for fold in (0, 1)]
    earliest, latest = min(readings), max(readings)

    def has_begun(second: int) -> bool:
        return _shown(clock, second).toordinal() - _FIRST >= number

    if has_begun(earliest):
        return earliest
    return earliest + bisect_left(range(earliest, latest), True, key=has_begun)


def _moment(shown: datetime) -> int:
    """Seconds since 1970 UTC of a reading of clocks."""
    return (shown.astimezone(UTC) - _EPOCH) // timedelta(seconds=1)


def _shown(clock: ZoneInfo, second: int) -> datetime:
    return (_EPOCH + timedelta(seconds=second)).astimezone(clock)


def seconds_ahead(zone: str, moments: IntArray) -> IntArray:
    """The seconds by which the clocks of a zone, or of "+08:00", are ahead of UTC at each moment (n,), since 1970."""
    if not is_name(zone):
        always = datetime.strptime(zone, "%z").utcoffset() or timedelta()
        return np.full(len(moments), always // timedelta(seconds=1))
    clock, (known, place) = ZoneInfo(zone), np.unique(moments, return_inverse=True)
    offsets = [_shown(clock, second).utcoffset() or timedelta() for second in known.tolist()]
    return np.array([offset // timedelta(seconds=1) for offset in offsets], dtype=np.int64)[place]


@lru_cache(maxsize=64)
def zone_changes(zone: str, first: int, end: int) -> IntArray:
    """The changes (m, 2) of the clocks of a named zone, from a moment to another: [since when, seconds ahead of UTC].

    The first row is of ``first``. Changes that last less than a day may be left out.
    """
    clock, pairs = ZoneInfo(zone), list[tuple[int, int]]()

    def ahead(second: int) -> int:
        return (_shown(clock, second).utcoffset() or timedelta()) // timedelta(seconds=1)

    for day in range(first, end, DAY):
        if not pairs or ahead(day) != pairs[-1][1]:
            before = day - DAY if pairs else day
            change = before + bisect_left(range(before, day), True, key=lambda second: ahead(second) == ahead(day))
            pairs.append((change, ahead(day)))
    changes = np.array(pairs, dtype=np.int64)
    changes.setflags(write=False)
    return changes


@dataclass(frozen=True)
class LocalDays:
    """Blocks of days of a zone, in the steps of a subject whose step 1 is the ``origin``-th of ``step`` seconds.

    days : in one block; blocks are counted from 1970-01-01.
    stored : the bounds, in bins since 1970, of the blocks that a ledger has of the subject: ascending.
    """

    zone: str
    days: int
    step: int
    origin: int
    stored: tuple[Bounds, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if not 1 <= self.days <= LONGEST:
            raise InvalidInput("per", f"{self.days}d", f"at most {LONGEST} days of a zone by name")
        if type(self.step) is not int or self.step < 1 or type(self.origin) is not int:
            raise InvalidInput("step", self.step, "a whole number of seconds, and of the steps before step 1")

    def beside(self, stored: Sequence[Bounds]) -> LocalDays:
        """The same blocks, but for those that are stored."""
        return replace(self, stored=tuple(sorted(stored)))

    def bounds(self, t: IntArray) -> tuple[IntArray, IntArray]:
        """The first step of the block of each step t (n,), and the one after its last.

        Raises InvalidInput for steps of no year that a calendar has.
        """
        bins = np.asarray(t, dtype=np.int64) + (self.origin - 1)
        first, end = self._by_the_table(bins)
        if self.stored:
            begins, ends = np.array(self.stored, dtype=np.int64).T
            # The last stored block that begins at a bin or before, and the first one after it.
            last = np.searchsorted(begins, bins, side="right") - 1
            ended = np.where(last >= 0, ends[last], first)
            following = np.where(last + 1 < len(begins), begins[(last + 1) % len(begins)], end)
            inside = (last >= 0) & (bins < ended)
            first = np.where(inside, begins[last], np.maximum(first, ended))
            end = np.where(inside, ended, np.minimum(end, following))
        return first - (self.origin - 1), end - (self.origin - 1)

    def _by_the_table(self, bins: IntArray) -> tuple[IntArray, IntArray]:
        lowest, highest = (day * DAY // self.step for day in _DAYS)
        if len(bins) and not lowest < int(bins.min()) <= int(bins.max()) < highest:
            raise InvalidInput("t", "a step of a year beyond 9997", "steps of years that clocks can show")
        # Clocks are less than two days from UTC.
        near = np.unique(np.unique(bins * self.step // DAY)[:, None] + np.arange(-2, 3)) // self.days
        numbers = np.unique(np.concatenate([near, near + 1])).tolist()
        begins = np.array([-(-day_begins(self.zone, n * self.days) // self.step) for n in numbers], dtype=np.int64)
        place = np.searchsorted(begins, bins, side="right")
        return begins[place - 1], begins[place]

    def stored_as(self, t: Sequence[int]) -> list[Bounds]:
        """The bounds in bins of the blocks of these steps that are not stored yet."""
        first, end = self.bounds(np.array(t, dtype=np.int64))
        bounds = zip((first + self.origin - 1).tolist(), (end + self.origin - 1).tolist(), strict=True)
        return sorted({*bounds} - {*self.stored})

    def at_hours(self, first: int, end: int, hours: Sequence[int]) -> list[int]:
        """The steps of a block, from step ``first`` to ``end``, that times of day name (seconds after midnight).

        Each names the step of the block that begins when clocks show it, or next, and at most one: the first where
        clocks show it twice, none where they leave it out.
        """
        shift = self.origin - 1
        bins = _bins_at_hours(self.zone, self.step, first + shift, end + shift, tuple(hours))
        return [number - shift for number in bins]


@lru_cache(maxsize=2**14)
def _bins_at_hours(zone: str, step: int, first: int, end: int, hours: Sequence[int]) -> list[int]:
    """`LocalDays.at_hours` in bins since 1970."""
    clock, bins = ZoneInfo(zone), set[int]()
    ends = [_shown(clock, number * step).toordinal() for number in (first, end)]
    for hour in hours:
        named = []
        for day in range(min(ends), max(ends) + 1):
            shown = datetime.fromordinal(day) + timedelta(seconds=hour)
            for fold in (0, 1):
                moment = _moment(shown.replace(tzinfo=clock, fold=fold))
                number = -(-moment // step)
                if first <= number < end and _shown(clock, moment).replace(tzinfo=None) == shown:
                    named.append(number)
        if named:
            bins.add(min(named))
    return sorted(bins)


def overlap(blocks: Sequence[Bounds]) -> bool:
    """True if ascending blocks overlap, or one has no bin."""
    return any(first >= end for first, end in blocks) or any(end > begins for (_, end), (begins, _) in pairwise(blocks))
