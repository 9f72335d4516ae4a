"""Promises over a whole sequence, and schedules that keep them.

A promise bounds the sum of the epsilons of all queries over some steps. A schedule names the steps at which a subject
is asked, and the epsilon, from public values alone. A step that is not asked costs nothing: its row keeps the estimate
that the answers so far give.

Proofs: docs/proofs/paths.md, docs/proofs/ledger.md, docs/proofs/schedules.md.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import accumulate, chain, islice, pairwise
from typing import Any

import numpy as np

from dphmm._cached import cached_property
from dphmm._checks import exact_epsilon, written_fraction
from dphmm.accounting.clock import DAY, Bounds, LocalDays, hour_seconds, is_name, named_zone
from dphmm.accounting.records import Spending, check_exact, shown
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, Exact, IntArray

#: Longest sequence, window or block, in steps.
MOST_STEPS = 2**53
_SECONDS = {"min": 60, "h": 3600, "d": 86400}
_TIME = re.compile(r"([1-9][0-9]{0,5})(min|h|d)")
#: A spread is a sum of floats in an order that a kernel chooses.
_RELATIVE = 1e-7
_ZONE = re.compile(r"([+-])([0-9]{2}):([0-5][0-9])")


@dataclass(frozen=True)
class SequencePromise:
    """Two neighbouring paths of a subject lose at most ``total``, over all of its queries together.

    Neighbouring: at every step the states of the two are equal, or hide each other under the policy of that step. The
    steps are those of exactly one of:

    steps : a sequence of so many steps; nothing is released after them.
    window : any so many steps in a row, of a sequence without an end: the two paths differ within them alone.
    per : one block of so many steps, or of a time, as "1d", "12h" or "7d": the two paths differ within one block. Two
        paths that differ in m blocks lose at most m times ``total``.

    Blocks of a time begin at midnight, and at its multiples since 1970-01-01, of the clock ``zone`` ("+00:00", UTC).
    ``passed`` steps of the first block lie before step 1; `in_steps` sets it.

    Blocks of whole days may be by clocks that are put forward and back: ``zone="Europe/Berlin"``. A day is from local
    midnight to the next, 23, 24 or 25 hours. ``local`` places them in the steps of a subject; `in_steps` sets it, too.

    Raises
    ------
    InvalidInput : a total that is not greater than 0, no steps or two kinds of them, a time that cannot be read, a zone
        by name with anything but days.

    Examples
    --------
    >>> import dphmm
    >>> dphmm.SequencePromise(10, per="1d").in_steps(300, 12).per
    288

    Source: docs/proofs/paths.md.
    """

    total: Exact
    steps: int | None = None
    window: int | None = None
    per: int | str | None = None
    passed: int = 0
    zone: str = "+00:00"
    local: LocalDays | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", exact_epsilon(self.total, "total"))
        check_exact(self.total, "total")
        names = [name for name in ("steps", "window", "per") if getattr(self, name) is not None]
        if len(names) != 1:
            fault = " and ".join(names) or "none of steps, window and per"
            raise InvalidInput("promise", fault, "exactly one of steps, window and per")
        length = getattr(self, names[0])
        if isinstance(length, str) and names == ["per"]:
            _seconds_of(length)
        elif not _is_count(length, 1):
            raise InvalidInput(names[0], length, f"a number of steps, 1 to 2**53{_OR_TIME * (names == ['per'])}")
        if not self.is_local:
            _zone_seconds(self.zone)
        elif not isinstance(self.per, str) or self.per[-1] != "d":
            expected = "an offset as +01:00; or per in days, as 1d: only days have the length that clocks give them"
            raise InvalidInput("zone", self.zone, expected)
        if not _is_count(self.passed, 0) or (isinstance(self.per, int) and self.passed >= self.per):
            raise InvalidInput("passed", self.passed, "steps of the first block, fewer than it has")

    def in_steps(self, step: float | None, origin: int) -> SequencePromise:
        """The promise in numbers of steps, for a subject whose step 1 is the ``origin``-th of ``step`` seconds.

        ``origin`` counts from 0 at 1970-01-01 UTC where blocks are of a time. Raises InvalidInput for a time where the
        model has no step, and for one that is no whole number of steps.
        """
        if not isinstance(self.per, str):
            return self
        if step is None:
            raise InvalidInput("per", self.per, "a number of steps: this model has no time step")
        if self.is_local:
            days = _seconds_of(self.per) // DAY
            return replace(self, local=LocalDays(self.zone, days, int(step), origin))
        length, before = _seconds_of(self.per), _zone_seconds(self.zone)
        for name, written, seconds in (("per", self.per, length), ("zone", self.zone, before)):
            if seconds % step:
                raise InvalidInput(name, written, f"a whole number of the model's steps of {step:g} s")
        block = int(length // step)
        return replace(self, per=block, passed=(origin + int(before // step)) % block, zone="+00:00")

    @property
    def is_local(self) -> bool:
        """True if blocks are days of clocks that are put forward and back."""
        return named_zone(self.zone) is not None

    def beside(self, stored: Sequence[Bounds]) -> SequencePromise:
        """The promise in numbers of steps, with the blocks that a ledger has of its subject."""
        return self if self.local is None else replace(self, local=self.local.beside(stored))

    def length(self, step: float | None) -> int:
        """Steps of the sequence, window or block; of local days as if each had 24 hours. Raises as `in_steps`."""
        length = self.steps or self.window or self.in_steps(step, 0).per
        return length if isinstance(length, int) else _bins(self, step, 0)

    def each(self, step: float | None) -> Fraction:
        """The epsilon of every step where all steps that it is for are asked alike. Raises as `in_steps`.

        Local days have an hour's steps more: those of a day on which clocks are put back.
        """
        longer = 3600 if self.is_local else 0
        return self.exact / (_bins(self, step, longer) if longer else self.length(step))

    def holds(self, spent: Sequence[Spending]) -> bool:
        """True if these (step, epsilon), in any order, keep the promise; blocks must be in steps."""
        rows = sorted(spent)
        if self.steps is not None:
            return _sum(rows) <= self.exact and (not rows or rows[-1][0] <= self.steps)
        if not rows:
            return True
        t, sums, scale = self._sums(rows)
        # Any window holds at most what the one that begins at its first row does.
        last = t + self.window if self.window is not None else self.bounds(t)[1]
        ends = np.searchsorted(t, last).tolist()
        return all(sums[end] - sums[first] <= self.exact * scale for first, end in enumerate(ends))

    def refused(self, spent: Sequence[Spending], asked: Sequence[Spending]) -> int | None:
        """The number of the first of the ``asked`` (step, epsilon) that would break the promise; None for none."""
        if self.holds([*spent, *asked]):
            return None
        # Totals only grow.
        return bisect_left(range(len(asked)), True, key=lambda last: not self.holds([*spent, *asked[: last + 1]]))

    def reach(self, first: int, last: int) -> tuple[int, int]:
        """The first and the last step whose releases count beside those of the steps ``first`` to ``last``."""
        if self.window is not None:
            return max(1, first - self.window + 1), last + self.window - 1
        if self.steps is not None:
            return 1, MOST_STEPS
        begins, ends = self.bounds(np.array([first, last], dtype=np.int64))
        return max(1, int(begins[0])), int(ends[1]) - 1

    def room(self, spent: Sequence[Spending], t: int) -> Fraction:
        """The largest epsilon that step ``t`` may still have beside the spending so far; 0 where it may have none."""
        low, high = self.reach(t, t)
        return min(self.rooms([row for row in spent if low <= row[0] <= high], [t]), default=Fraction(0))

    def rooms(self, spent: Sequence[Spending], steps: Sequence[int]) -> list[Fraction]:
        """The room of each block with one of these steps, in order of blocks; of windows that of each step, in theirs.

        A step after the end of a sequence lies in no block.
        """
        t, sums, scale = self._sums(sorted(spent))
        asked = np.array(steps, dtype=np.int64)

        def within(first: IntArray, end: IntArray) -> list[int]:
            places = zip(np.searchsorted(t, first).tolist(), np.searchsorted(t, end).tolist(), strict=True)
            return [sums[after] - sums[before] for before, after in places]

        if self.steps is not None:
            most = sums[-1:] * bool((asked <= self.steps).any())
        elif self.window is not None:
            # A window that begins at no row holds at most what one does that begins later, at a row or at the step.
            sums_from, most = within(t, t + self.window), within(asked, asked + self.window)
            first, end = np.searchsorted(t, asked - self.window + 1).tolist(), np.searchsorted(t, asked).tolist()
            most = [max([most[k], *sums_from[first[k] : end[k]]]) for k in range(len(most))]
        else:
            most = within(*np.unique(self.bounds(asked), axis=1))
        return [max(Fraction(0), self.exact - Fraction(each, scale)) for each in most]

    def _sums(self, rows: Sequence[Spending]) -> tuple[IntArray, list[int], int]:
        """The steps (n,) of ascending rows, sums of the first 0 to n of them in whole units, and the units in 1."""
        scale = math.lcm(self.exact.denominator, *{epsilon.denominator for _, epsilon in rows})
        sums = [0, *accumulate(int(epsilon * scale) for _, epsilon in rows)]
        return np.array([step for step, _ in rows], dtype=np.int64), sums, scale

    @property
    def exact(self) -> Fraction:
        """The total as an exact number."""
        assert isinstance(self.total, Fraction)
        return self.total

    def __str__(self) -> str:
        if self.steps is not None:
            return f"{shown(self.exact)} over {self.steps} steps"
        if self.window is not None:
            return f"{shown(self.exact)} in any {self.window} steps"
        whose = f" by the clock of {self.zone}" if self.is_local else ""
        return f"{shown(self.exact)} per {self.per}" + " steps" * isinstance(self.per, int) + whose

    def sentence(self) -> str:
        """The promise in one sentence."""
        bound = f"two neighbouring paths lose at most {shown(self.exact)}"
        if self.steps is not None:
            return f"Over the whole sequence of {self.steps} steps {bound}."
        if self.window is not None:
            within = f"{self.window} steps in a row" if self.window > 1 else "one step"
            return f"Where they differ within {within} alone, {bound}."
        block = f"block of {self.per} steps" if isinstance(self.per, int) else f"block of {self.per}"
        if self.is_local:
            days = "day" if self.per == "1d" else f"block of {str(self.per)[:-1]} days"
            return (
                f"Where they differ within one {days} by the clock of {self.zone} alone, {bound}; over several the "
                "totals add. A day is from one local midnight to the next: 24 hours, or 23 or 25 where clocks are "
                "put forward or back."
            )
        return f"Where they differ within one {block} alone, {bound}; over several blocks the totals add."

    def written(self) -> str:
        """The promise as a ledger keeps it: JSON with its names in order."""
        document: dict[str, str | int] = {"total": str(self.exact)}
        for name in ("steps", "window", "per"):
            if (length := getattr(self, name)) is not None:
                document[name] = length
        if self.local is not None:
            document |= {"zone": self.zone, "step": self.local.step, "origin": self.local.origin}
        elif self.per is not None:
            document["passed"] = self.passed
        return json.dumps(document, sort_keys=True)

    @classmethod
    def read(cls, text: str) -> SequencePromise:
        """The promise that `written` wrote. Raises InvalidInput for anything else, and for a zone that is not known."""
        try:
            document = json.loads(text)
            zone = document.get("zone")
            placed = document.pop("step", None), document.pop("origin", 0)
            promise = cls(written_fraction(document.pop("total")), **document)
            if placed[0] is not None:
                promise = promise.in_steps(*placed)
        except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError) as error:
            if isinstance(error, InvalidInput) and error.field == "zone" and is_name(zone):
                raise InvalidInput("zone", zone, "one of this machine's zone table: pip install tzdata") from None
            promise = None
        if promise is None or promise.written() != text:
            raise InvalidInput("promise", "a text that is none", "a promise as a ledger keeps it")
        return promise

    def bounds(self, t: IntArray) -> tuple[IntArray, IntArray]:
        """The first step of the block of each step (n,), which may lie before step 1, and the one after its last."""
        if self.local is not None:
            return self.local.bounds(t)
        assert isinstance(self.per, int)
        end = np.asarray(t + self.per - (t - 1 + self.passed) % self.per)
        return end - self.per, end


def _bins(promise: SequencePromise, step: float | None, longer: int) -> int:
    """Steps that begin in blocks of local days, which are so many seconds ``longer`` than days of 24 hours."""
    local = promise.in_steps(step, 0).local
    assert local is not None
    return -(-(local.days * DAY + longer) // local.step)


_OR_TIME = ", or a time as 1d, 12h or 30min"


def _sum(rows: Sequence[Spending]) -> Fraction:
    return sum((epsilon for _, epsilon in rows), Fraction(0))


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST_STEPS


def _seconds_of(length: str) -> int:
    match = _TIME.fullmatch(length)
    if match is None:
        raise InvalidInput("per", length, "a number of steps, or a time as 1d, 12h or 30min")
    return int(match[1]) * _SECONDS[match[2]]


def _zone_seconds(zone: str) -> int:
    match = _ZONE.fullmatch(zone) if isinstance(zone, str) else None
    if match is None or int(match[2]) > 14:
        raise InvalidInput("zone", zone, "an offset from UTC, as +08:00, or a name as Europe/Berlin")
    seconds = int(match[2]) * 3600 + int(match[3]) * 60
    return -seconds if match[1] == "-" else seconds


#: Steps of the longest block or sequence that a schedule names one by one.
MOST_SCHEDULED = 2**20
#: Kinds of schedules; in those of the public kinds no answer decides who is asked when.
PUBLIC_KINDS = ("planned", "staggered")
KINDS = (*PUBLIC_KINDS, "paced")
_SEED = re.compile("[0-9A-Za-z._-]{1,64}")


@dataclass(frozen=True)
class Schedule:
    """The steps to ask at, so that a promise is kept: planned ahead, alike or staggered, or paced by published answers.

    promise : the promise that the epsilons of all asked steps keep.
    epsilon : of each release.
    at : steps, from 1, of the sequence of the promise, of each of its blocks, or of each of its windows, one after
        another. Planned: exactly these are asked. Paced: of these some are.
    hours : in place of ``at``, for blocks of a day: times of day, as "08:00", of the clock of the promise. Each names
        the step that begins then, or next, at most once a day: the first time where clocks are put back over it, not
        at all where they are put forward over it.
    spreads : empty for planned. Paced: a step is asked where the spread of the belief is at least
        ``spreads[due - 1]``, in answer units, the last one for longer; ``due`` are the steps of ``at`` that are left
        for each release that is left, rounded up. None is asked where the promise leaves less than ``epsilon``.
    seed : empty, or a public text: planned and staggered. The named steps of a sequence or block move together, by an
        offset that follows from the seed, the person's key and the number of the block's first step (since 1970 where
        blocks are of a time): by less than half the least distance of two of them, past an end of the block to its
        other end. So everybody has as many answers, and no row decides when.

    Raises
    ------
    InvalidInput : steps that do not ascend or lie outside the sequence, an epsilon that the promise has no room for, a
        planned schedule that spends more than its promise, a seed beside spreads or a window.

    Examples
    --------
    >>> import dphmm
    >>> day = dphmm.accounting.Schedule(dphmm.SequencePromise(12, per=144), 2, at=range(12, 144, 24))
    >>> day.releases
    6

    Source: docs/proofs/schedules.md (sequence promises: docs/proofs/paths.md).
    """

    promise: SequencePromise
    epsilon: Exact
    at: Sequence[int] = ()
    spreads: Sequence[float] = ()
    hours: Sequence[str] = ()
    seed: str = ""
    #: Of a schedule of one person: the person's key, and the number of step 1 since 1970.
    person: str | None = field(default=None, compare=False, repr=False)
    origin: int = field(default=1, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.promise, SequencePromise):
            raise InvalidInput("promise", type(self.promise).__name__, "a dphmm.SequencePromise")
        epsilon = exact_epsilon(self.epsilon, "epsilon")
        check_exact(epsilon, "epsilon")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "hours", self._checked_hours())
        object.__setattr__(self, "at", () if self.hours else _steps(self.at, self._length))
        object.__setattr__(self, "spreads", tuple(_spread(value) for value in self.spreads))
        if self.seed and (self.spreads or self.promise.window is not None):
            beside = "spreads" if self.spreads else "a window"
            raise InvalidInput("seed", f"one beside {beside}", "planned steps of a sequence or of blocks")
        if self.seed and not _SEED.fullmatch(self.seed):
            raise InvalidInput(
                "seed", ascii(self.seed)[:40], "at most 64 letters, digits, dots, dashes and underscores"
            )
        if epsilon > self.promise.exact:
            raise InvalidInput("epsilon", shown(epsilon), f"at most {self.promise}, the promise")
        if not self.spreads and self._most * epsilon > self.promise.exact:
            asked = f"{self._most} releases of {shown(epsilon)}"
            raise InvalidInput("hours" if self.hours else "at", asked, f"at most {self.promise}, the promise")

    def _checked_hours(self) -> tuple[str, ...]:
        hours = tuple(self.hours) if not isinstance(self.hours, str) else (self.hours,)
        seconds = [hour_seconds(hour) for hour in hours]
        if hours and (self.promise.per != "1d" or len(tuple(self.at))):
            times = f"{len(hours)} times of a day" + " beside steps" * (self.promise.per == "1d")
            raise InvalidInput("hours", times, "them alone, with a promise per 1d; or steps of its blocks")
        if seconds != sorted(set(seconds)):
            raise InvalidInput("hours", ", ".join(hours)[:60], "times of a day, ascending")
        return hours

    @property
    def _most(self) -> int:
        """The largest number of steps that are named in a sequence, block or window."""
        return len(self.hours or self.at)

    @property
    def exact(self) -> Fraction:
        """The epsilon of each release as an exact number."""
        assert isinstance(self.epsilon, Fraction)
        return self.epsilon

    @property
    def kind(self) -> str:
        """One of `KINDS`."""
        return "paced" if self.spreads else "staggered" if self.seed else "planned"

    @property
    def releases(self) -> int:
        """Releases in the sequence, or in a block or window: all of them where planned, at most where paced."""
        fit = self.promise.exact // self.exact
        return min(self._most, int(fit))

    def of(self, person: str) -> Schedule:
        """The schedule of the person of this key, as `dphmm.accounting.person.person_key` makes it of a name."""
        return replace(self, person=person)

    def in_steps(self, step: float | None, origin: int) -> Schedule:
        """The schedule in numbers of steps, as `SequencePromise.in_steps`, for a subject whose step 1 is ``origin``.

        Raises InvalidInput where a block of a time has fewer steps than the schedule names, and for times of day that
        are in one step.
        """
        promise = self.promise.in_steps(step, origin)
        if not self.hours:
            if promise.local is not None and self.at[-1] > (longest := _bins(promise, step, 3600)):
                raise InvalidInput("at", self.at[-1], f"steps 1 to {longest}, of a day of 25 hours")
            return replace(self, promise=promise, origin=origin)
        assert step is not None
        if promise.local is not None:
            self._steps_of_hours(step)
            return replace(self, promise=promise, origin=origin)
        return replace(self, promise=promise, at=self._steps_of_hours(step), hours=(), origin=origin)

    def of_regular_blocks(self, step: float | None, length: int) -> Schedule:
        """The schedule for a subject whose step 1 begins a block, where each block of a time has so many steps."""
        if not isinstance(self.promise.per, str):
            return self
        promise = replace(self.promise, per=length, passed=0, zone="+00:00", local=None)
        if not self.hours:
            at = tuple(step for step in self.at if step <= length) if self.promise.is_local else self.at
            return replace(self, promise=promise, at=at)
        assert step is not None
        return replace(self, promise=promise, at=self._steps_of_hours(step), hours=())

    def beside(self, stored: Sequence[Bounds]) -> Schedule:
        """The schedule in numbers of steps, with the blocks that a ledger has of its subject."""
        return replace(self, promise=self.promise.beside(stored))

    def _steps_of_hours(self, step: float) -> tuple[int, ...]:
        """The steps that times of day name in a day of 24 hours. Raises InvalidInput where two are in one step."""
        seconds = [hour_seconds(hour) for hour in self.hours]
        if seconds[-1] > DAY - step:
            raise InvalidInput("hours", self.hours[-1], f"times at which a step of {step:g} s begins before midnight")
        if any(later - before < step for before, later in pairwise(seconds)):
            raise InvalidInput("hours", ", ".join(self.hours)[:60], f"times at least a step of {step:g} s apart")
        return tuple(int(-(-second // step)) + 1 for second in seconds)

    def may_ask(self, t: IntArray) -> BoolArray:
        """True where the schedule names the step of one subject, of the steps t (n,); blocks must be in steps.

        Raises InvalidInput for a staggered schedule that is not `of` a person.
        """
        if not self.seed and not (self.promise.local is not None and self.hours):
            return np.isin(self.places(t), self._named)
        whole = np.array([[1, self._length + 1]])
        blocks = whole if self.promise.steps else np.unique(np.stack(self.promise.bounds(t), axis=1), axis=0)
        return np.isin(t, [step for block in blocks.tolist() for step in self._named_in(*block)])

    def places(self, t: IntArray) -> IntArray:
        """The steps t (n,) of one subject, from 1 in the sequence or in their block; blocks must be in steps."""
        if self.promise.local is not None:
            return t - self.promise.bounds(t)[0] + 1
        return t if self.promise.steps is not None else (t - 1 + self.promise.passed) % self._length + 1

    def _named_in(self, first: int, end: int) -> list[int]:
        """The steps of a sequence or block, from step ``first`` to ``end``, that are named."""
        local = self.promise.local
        steps = [step for place in self.at if (step := first + place - 1) < end]
        if self.hours and local is not None:
            steps = local.at_hours(first, end, [hour_seconds(hour) for hour in self.hours])
        if not self.seed or not steps:
            return steps
        if self.person is None:
            raise InvalidInput("schedule", "a staggered one of nobody", "Schedule.of(person): each has other times")
        apart = min(later - step for step, later in pairwise([*steps, steps[0] + end - first]))
        text = json.dumps([self.seed, self.person, first + self.origin - 1])
        offset = int.from_bytes(hashlib.sha256(text.encode()).digest()) % apart - apart // 2
        return [first + (step + offset - first) % (end - first) for step in steps]

    def asks(self, t: int, spread: float, room: Fraction) -> bool:
        """True if a paced schedule asks at step ``t``, where the promise leaves ``room``; blocks must be in steps.

        ``spread`` : root of the mean squared distance of the belief from its mean, in answer units.
        """
        left = room // self.exact
        if left < 1 or not self.may_ask(np.array([t]))[0]:
            return False
        due = math.ceil(Fraction(self._steps_left(t), int(left)))
        return spread >= self.spreads[min(due, len(self.spreads)) - 1]

    def may_choose(self, t: int, spread: float, room: Fraction, *, shared: bool = False) -> set[bool]:
        """The decisions that `asks` may have made at step ``t`` of a paced schedule, from a spread computed again.

        ``shared``: other queries of the subject, which are not known, may have taken any part of the ``room``.
        """
        rooms = [room] if not shared else [self.exact * releases for releases in range(int(room // self.exact) + 1)]
        near = [spread * (1 + slack) for slack in (-_RELATIVE, 0, _RELATIVE)]
        return {self.asks(t, shifted, left) for left in rooms for shifted in near}

    def _steps_left(self, t: int) -> int:
        """The named steps from t to the end of the sequence or block, t among them; all of a window."""
        if self.promise.window is not None:
            return len(self.at)
        if self.promise.local is not None:
            first, end = self.promise.bounds(np.array([t]))
            return sum(step >= t for step in self._named_in(int(first[0]), int(end[0])))
        place = t if self.promise.steps is not None else (t - 1 + self.promise.passed) % self._length + 1
        return len(self._named) - int(np.searchsorted(self._named, place))

    @cached_property
    def _named(self) -> IntArray:
        return np.array(self.at, dtype=np.int64)

    @property
    def _length(self) -> int:
        """Steps of the sequence, block or window; as many as there may be where blocks are of a time."""
        promise = self.promise
        length = promise.steps or promise.window or promise.per
        return length if isinstance(length, int) else MOST_SCHEDULED

    @property
    def ranges(self) -> str:
        """The steps ``at``, ascending, as "1-3,7", which `_range` reads."""
        parts = np.split(self._named, np.flatnonzero(np.diff(self._named) != 1) + 1)
        return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)

    def __str__(self) -> str:
        most = "at most " * (self.kind == "paced")
        return f"{self.kind}, {most}{self.releases} releases of {shown(self.exact)} for {self.promise}"

    def document(self) -> dict[str, Any]:
        """The schedule for JSON: ``at`` as ranges of steps."""
        promise = {name: getattr(self.promise, name) for name in ("steps", "window", "per")}
        lengths = {name: value for name, value in promise.items() if value is not None}
        if isinstance(self.promise.per, str):
            lengths["zone"] = self.promise.zone
        document: dict[str, Any] = {"schedule": self.kind, "total": str(self.promise.exact), **lengths}
        document |= {"epsilon": str(self.exact)} | ({"hours": list(self.hours)} if self.hours else {"at": self.ranges})
        optional = {"seed": self.seed, "spreads": list(self.spreads)}
        return document | {name: value for name, value in optional.items() if value}

    def written(self) -> str:
        """The schedule as a ledger keeps it: JSON with its names in order."""
        return json.dumps(self.document(), sort_keys=True)

    @classmethod
    def of_document(cls, told: Mapping[str, Any]) -> Schedule:
        """The schedule of a `document`. Raises InvalidInput for anything else."""
        expected = "a schedule as dphmm plan writes it"
        try:
            lengths = {name: told[name] for name in ("steps", "window", "per", "zone") if name in told}
            promise = SequencePromise(written_fraction(told["total"]), **lengths)
            # Ranges can be written shorter than they are.
            hours = tuple(told["hours"]) if "hours" in told else ()
            ranges = [] if hours else map(_range, told["at"].split(","))
            at = list(islice(chain.from_iterable(ranges), MOST_SCHEDULED + 1))
            spreads, seed = tuple(told.get("spreads", ())), told.get("seed", "")
            schedule = cls(promise, written_fraction(told["epsilon"]), at, spreads, hours, seed)
            same = schedule.document() == dict(told)
        except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            if isinstance(error, InvalidInput):
                raise
            raise InvalidInput("schedule", "a member that is missing or not as it is written", expected) from None
        if not same:
            raise InvalidInput("schedule", "members that are not as they are written", expected)
        return schedule

    @classmethod
    def read(cls, text: str) -> Schedule:
        """The schedule that `written` wrote. Raises InvalidInput for anything else."""
        try:
            document = json.loads(text)
            schedule = cls.of_document(document) if isinstance(document, dict) else None
        except (ValueError, RecursionError) as error:
            if isinstance(error, InvalidInput):
                raise
            schedule = None
        if schedule is None or schedule.written() != text:
            raise InvalidInput("schedule", "a text that is none", "a schedule as a ledger keeps it")
        return schedule


def _steps(at: Sequence[int], length: int) -> tuple[int, ...]:
    steps = tuple(at)
    if any(isinstance(step, bool) or not isinstance(step, (int, np.integer)) for step in steps):
        raise InvalidInput("at", "a step that is no whole number", "steps from 1, ascending")
    if not steps or len(steps) > MOST_SCHEDULED:
        raise InvalidInput("at", f"{len(steps)} steps", f"1 to {MOST_SCHEDULED}")
    if steps[0] < 1 or steps[-1] > length or any(before >= after for before, after in pairwise(steps)):
        raise InvalidInput(
            "at", "steps that do not ascend from 1 on or pass the end", f"steps 1 to {length}, ascending"
        )
    return tuple(int(step) for step in steps)


def _spread(value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise InvalidInput("spreads", value, "finite numbers, 0 or more")
    return float(value)


def _range(text: str) -> range:
    first, dash, last = text.partition("-")
    low = int(first)
    high = int(last) if dash else low
    if high - low > MOST_SCHEDULED:
        raise ValueError("too many steps")
    return range(low, high + 1)
