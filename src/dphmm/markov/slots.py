"""Slots: which of K transition matrices moves a step, by the clock or by the position in a sequence.

A step has a number: of its time bin since 1970 where slots go by a clock, of its position from 1 where they go by
positions. The slot of a move is that of the step it *leaves*, in models, fits and releases alike. It is a function of
that person's own times and of public data.

A zone by name is read from the machine's zone table once, when slots are made: its changes from 1970 to 2100. They are
part of the model, of its digest and of its file, so another zone table changes no slot of a model that exists. What
clocks show twice is in one slot both times; what they leave out is in none.

Source: docs/learning.md; the DPHMM paper names time-heterogeneous models as an extension.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from dphmm.accounting.clock import DAY, named_zone, zone_changes
from dphmm.errors import InvalidInput
from dphmm.states.maps import parse_duration
from dphmm.types import IntArray

#: Most slots of a model; each has a matrix.
MOST_SLOTS = 1024
#: The first Monday since 1970: periods of whole weeks begin on Mondays.
_MONDAY = 4 * DAY
#: Moments of which a zone's changes are kept.
_MOMENTS = (0, 4_102_444_800)
_OFFSET = re.compile("[+-](0[0-9]|1[0-4]):[0-5][0-9]")
_POSITIONS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9})|(\+))?")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Slots:
    """A rule for which of K matrices moves a step. Immutable; give a period, or positions.

    Parameters
    ----------
    period : the time until slots come again: "1d" for hours of the day, "7d" for hours of the week, from Monday.
    width : the length of a slot, a part of the period.
    begins : in place of ``width``, the beginnings of slots in the period: ("6h", "570min"). The last slot lasts until
        the first begins again.
    zone : the clock's zone: "Europe/Berlin", or an offset from UTC as "+08:00".
    positions : slots by the position since the start of a sequence: "1, 2, 3, 4-6, 7+".

    Raises InvalidInput naming the field.

    Examples
    --------
    >>> Slots(period="1d", width="4h", zone="Europe/Berlin").n
    6
    >>> Slots(positions="1, 2, 3, 4-6, 7+").of_steps(np.array([1, 2, 5, 6, 7, 100]), None).tolist()
    [0, 1, 3, 3, 4, 4]

    Source: docs/learning.md.
    """

    def __init__(
        self,
        *,
        period: object = None,
        width: object = None,
        begins: Sequence[object] | None = None,
        zone: str = "+00:00",
        positions: str | None = None,
    ) -> None:
        self.zone = zone
        #: Seconds of a period; None where slots go by positions.
        self.period: int | None = None
        #: The changes (m, 2) of the zone: a moment, and how many seconds ahead of UTC clocks are from then on.
        self.changes: IntArray = np.zeros((1, 2), dtype=np.int64)
        if positions is not None:
            if period is not None or width is not None or begins is not None or zone != "+00:00":
                raise InvalidInput("positions", "a clock beside them", "positions, or a period of a clock")
            #: Where slots begin: seconds in the period, or positions.
            self.begins = _first_positions(positions)
        else:
            self.period = parse_duration(period, "period")
            if (width is None) == (begins is None):
                raise InvalidInput("width", "none, or begins beside it", "width, or begins")
            self.begins = _every(self.period, width) if begins is None else _given(self.period, begins)
            self.changes = _changes_of(zone)
        if len(self.begins) > MOST_SLOTS:
            raise InvalidInput("slots", f"{len(self.begins)}", f"at most {MOST_SLOTS}: longer ones")
        self.changes.setflags(write=False)
        self._moments, self._ahead = (self.changes[:, column].tolist() for column in (0, 1))

    @classmethod
    def parse(cls, text: str) -> Slots:
        """Slots as a command line names them: "1d/4h" or "7d/4h Europe/Berlin" by a clock, positions "1,2,3,4-6,7+".

        >>> Slots.parse("7d/12h").n, Slots.parse("1d/4h Europe/Berlin").zone
        (14, 'Europe/Berlin')
        """
        rule, _, zone = text.strip().partition(" ")
        period, slash, width = rule.partition("/")
        return cls(period=period, width=width, zone=zone.strip() or "+00:00") if slash else cls(positions=text)

    _moments: list[int]
    _ahead: list[int]

    @classmethod
    def described(cls, written: Any, changes: IntArray) -> Slots:
        """The slots that `describe` and ``changes`` were of, whatever this machine's zone table says.

        Raises InvalidInput for anything else.
        """
        slots = cls.__new__(cls)
        try:
            slots.period, slots.zone = written["period"], str(written["zone"])
            slots.begins = tuple(int(begin) for begin in written["begins"])
            slots.changes = np.array(changes, dtype=np.int64)
            known = slots.period is None or (type(slots.period) is int and slots.period > 0)
        except (KeyError, TypeError, ValueError):
            known = False
        if not known or slots.changes.ndim != 2 or slots.changes.shape[1] != 2 or not len(slots.changes):
            raise InvalidInput("slots", "a description that is none", "a model file as save_model writes it")
        _check_begins(slots.begins, slots.period)
        if (np.diff(slots.changes[:, 0]) <= 0).any() or (abs(slots.changes[:, 1]) >= 2 * DAY).any():
            raise InvalidInput("slots", "changes of a zone that are none", "a model file as save_model writes it")
        slots.changes.setflags(write=False)
        slots._moments, slots._ahead = (slots.changes[:, column].tolist() for column in (0, 1))
        return slots

    def describe(self) -> dict[str, Any]:
        """The rule but for the zone's changes, as `described` reads it; for JSON."""
        return {"period": self.period, "begins": list(self.begins), "zone": self.zone}

    @property
    def n(self) -> int:
        """K, the number of slots."""
        return len(self.begins)

    @property
    def by_clock(self) -> bool:
        """True if slots go by a clock, and numbers of steps are those of time bins since 1970."""
        return self.period is not None

    def of_steps(self, steps: IntArray, seconds: int | None) -> IntArray:
        """The slot (n,) of each step, by its number; ``seconds``: of a time bin, read where slots go by a clock.

        A step before position 1 has the slot of the first. Raises InvalidInput for times before 1970 or after 2099.
        """
        begins = np.array(self.begins, dtype=np.int64)
        if self.period is None:
            return np.maximum(np.searchsorted(begins, steps, side="right") - 1, 0)
        moments = np.asarray(steps, dtype=np.int64) * _whole(seconds)
        if len(moments):
            _check_moment(int(moments.min()))
            _check_moment(int(moments.max()))
        shown = moments + self.changes[np.searchsorted(self.changes[:, 0], moments, side="right") - 1, 1]
        # -1 is the last slot, which lasts until the first begins again.
        return np.asarray((np.searchsorted(begins, (shown - _MONDAY) % self.period, side="right") - 1) % self.n)

    def of_step(self, step: int, seconds: int | None) -> int:
        """The slot of one step, as `of_steps`."""
        if self.period is None:
            return max(bisect_right(self.begins, step) - 1, 0)
        moment = step * _whole(seconds)
        _check_moment(moment)
        shown = moment + self._ahead[bisect_right(self._moments, moment) - 1]
        return (bisect_right(self.begins, (shown - _MONDAY) % self.period) - 1) % self.n

    def within(self, steps: IntArray, seconds: int | None) -> IntArray:
        """Steps (n,), those before 1970 or after 2099 as the first or the last that has a slot: never refused."""
        if self.period is None:
            return steps
        return np.clip(steps, 0, (_MOMENTS[1] - 1) // _whole(seconds))

    def monday(self, seconds: int) -> int:
        """The number of the first step since the first Monday of 1970 began by the clock."""
        return -(-(_MONDAY - self._ahead[0]) // seconds)

    def name(self, slot: int) -> str:
        """A slot in words.

        >>> Slots(period="7d", width="12h").name(3), Slots(positions="1,2-3,4+").name(1)
        ('Tue 12:00-00:00', '2-3')
        """
        begin, end = self.begins[slot], self.begins[(slot + 1) % self.n]
        if self.period is None:
            last = slot == self.n - 1
            return f"{begin}+" if last else f"{begin}" if end == begin + 1 else f"{begin}-{end - 1}"
        day = f"{_WEEKDAYS[begin // DAY]} " if self.period == 7 * DAY else ""
        return f"{day}{_clock(begin)}-{_clock(end)}"

    @property
    def digest(self) -> bytes:
        """SHA-256 of the rule, the zone's name and its changes."""
        rule = repr((self.period, self.begins, self.zone)).encode()
        return hashlib.sha256(rule + np.ascontiguousarray(self.changes, dtype="<i8").tobytes()).digest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slots) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        if self.period is None:
            return f"Slots({self.n} by position: {', '.join(map(self.name, range(self.n)))})"
        return f"Slots({self.n} in {self.period} s, zone={self.zone!r})"


def _whole(seconds: int | None) -> int:
    if seconds is None:
        raise InvalidInput("step", "none", "seconds between two steps: slots go by the clock")
    return seconds


def _check_moment(moment: int) -> None:
    if not _MOMENTS[0] <= moment < _MOMENTS[1]:
        expected = "numbers of time bins since 1970, of years to 2099: slots go by the clock"
        raise InvalidInput("t", f"a step {moment} seconds after 1970", expected)


def _every(period: int, width: object) -> tuple[int, ...]:
    seconds = parse_duration(width, "width")
    if seconds > period or period % seconds:
        raise InvalidInput("width", width, f"a part of the period of {period} s, such as {period // 2} s")
    if period // seconds > MOST_SLOTS:
        raise InvalidInput("width", width, f"at most {MOST_SLOTS} slots in the period of {period} s")
    return tuple(range(0, period, seconds))


def _given(period: int, begins: Sequence[object]) -> tuple[int, ...]:
    if isinstance(begins, str):
        raise InvalidInput("begins", begins, 'a list of times in the period, as ("6h", "18h")')
    # Midnight is 0, which is no duration.
    seconds = tuple(0 if begin in (0, "0", "0h") else parse_duration(begin, "begins") for begin in begins)
    _check_begins(seconds, period)
    return seconds


def _check_begins(begins: tuple[int, ...], period: int | None) -> None:
    least, most = (1, None) if period is None else (0, period)
    ascending = all(a < b for a, b in pairwise(begins))
    if not begins or not ascending or begins[0] < least or (most is not None and begins[-1] >= most):
        raise InvalidInput("begins", str(begins)[:60], "times of the period, ascending, each once")
    if period is None and begins[0] != 1:
        raise InvalidInput("positions", f"{begins[0]} first", "1 first")


def _first_positions(text: str) -> tuple[int, ...]:
    """The first position of each of "1, 2, 3, 4-6, 7+"."""
    expected = "positions without a gap from 1, the last open: 1, 2, 3, 4-6, 7+"
    begins, coming = list[int](), 1
    for part in str(text).split(","):
        match = _POSITIONS.fullmatch(part.strip())
        if match is None or int(match[1]) != coming:
            raise InvalidInput("positions", text, expected)
        begins.append(coming)
        last = int(match[2] or match[1])
        coming = 0 if match[3] else last + 1
        if coming and last < begins[-1]:
            raise InvalidInput("positions", text, expected)
    if coming:
        raise InvalidInput("positions", text, expected)
    return tuple(begins)


def _changes_of(zone: str) -> IntArray:
    if isinstance(zone, str) and _OFFSET.fullmatch(zone):
        sign, hours, minutes = -1 if zone[0] == "-" else 1, int(zone[1:3]), int(zone[4:])
        return np.array([[_MOMENTS[0], sign * (hours * 3600 + minutes * 60)]], dtype=np.int64)
    if named_zone(zone) is None:
        raise InvalidInput("zone", zone, "an offset from UTC, as +08:00, or a name as Europe/Berlin")
    return zone_changes(zone, *_MOMENTS).copy()


def _clock(seconds: int) -> str:
    return f"{seconds % DAY // 3600:02d}:{seconds % 3600 // 60:02d}"
