"""What a subject may spend: caps on its totals, and a promise over its whole sequence.

A promise says what the epsilons of all queries' steps may add up to, and over which steps.

Proofs: docs/proofs/paths.md, docs/proofs/ledger.md.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from dphmm._checks import exact_epsilon, written_fraction
from dphmm.accounting.records import check_exact, check_text, shown
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.types import Exact, IntArray

#: A step and the epsilon of a release at it.
Spending: TypeAlias = tuple[int, Fraction]
#: Longest sequence, window or block, in steps.
MOST_STEPS = 2**53
_SECONDS = {"min": 60, "h": 3600, "d": 86400}
_TIME = re.compile(r"([1-9][0-9]{0,5})(min|h|d)")
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

    Raises
    ------
    InvalidInput : a total that is not greater than 0, no steps or two kinds of them, a time that cannot be read.

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

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", exact_epsilon(self.total, "total"))
        check_exact(self.total, "total")
        given = [name for name in ("steps", "window", "per") if getattr(self, name) is not None]
        if len(given) != 1:
            came = " and ".join(given) or "none of steps, window and per"
            raise InvalidInput("promise", came, "exactly one of steps, window and per")
        length = getattr(self, given[0])
        if isinstance(length, str) and given == ["per"]:
            _seconds_of(length)
        elif not _is_count(length, 1):
            raise InvalidInput(given[0], length, f"a number of steps, 1 to 2**53{_OR_TIME * (given == ['per'])}")
        _zone_seconds(self.zone)
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
        length, before = _seconds_of(self.per), _zone_seconds(self.zone)
        if length % step or before % step:
            raise InvalidInput("per", self.per, f"a whole number of the model's steps of {step:g} s")
        block = int(length // step)
        return replace(self, per=block, passed=(origin + int(before // step)) % block, zone="+00:00")

    def each(self, step: float | None) -> Fraction:
        """The epsilon of every step where all steps that it is for are asked alike. Raises as `in_steps`."""
        length = self.steps or self.window or self.in_steps(step, 0).per
        assert isinstance(length, int)
        return self.exact / length

    def holds(self, spent: Sequence[Spending]) -> bool:
        """Whether these (step, epsilon), in any order, keep the promise; blocks must be in steps."""
        rows = sorted(spent)
        if self.steps is not None:
            return _sum(rows) <= self.exact and (not rows or rows[-1][0] <= self.steps)
        if not rows:
            return True
        scale = math.lcm(self.exact.denominator, *{epsilon.denominator for _, epsilon in rows})
        sums = [0, *accumulate(int(epsilon * scale) for _, epsilon in rows)]
        t = np.array([step for step, _ in rows], dtype=np.int64)
        # Any window holds at most what the one that begins at its first row does.
        last = t + self.window if self.window is not None else self._block_end(t)
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
        ends = self._block_end(np.array([first, last], dtype=np.int64))
        assert isinstance(self.per, int)
        return max(1, int(ends[0]) - self.per), int(ends[1]) - 1

    def room(self, spent: Sequence[Spending], t: int) -> Fraction:
        """The largest epsilon that step ``t`` may still have beside what is spent; 0 where it may have none."""
        if self.steps is not None and t > self.steps:
            return Fraction(0)
        low, high = self.reach(t, t)
        near = sorted(row for row in spent if low <= row[0] <= high)
        # A window that begins at no row holds at most what one does that begins later, at a row or at t.
        starts = {low} if self.window is None else {t, *(step for step, _ in near if step <= t)}
        length = high - low + 1 if self.window is None else self.window
        most = max(_sum([row for row in near if start <= row[0] < start + length]) for start in starts)
        return max(Fraction(0), self.exact - most)

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
        return f"{shown(self.exact)} per {self.per}" + " steps" * isinstance(self.per, int)

    def sentence(self) -> str:
        """What is promised, in one sentence."""
        bound = f"two neighbouring paths lose at most {shown(self.exact)}"
        if self.steps is not None:
            return f"Over the whole sequence of {self.steps} steps {bound}."
        if self.window is not None:
            return f"Where they differ within {self.window} steps in a row alone, {bound}."
        block = f"block of {self.per} steps" if isinstance(self.per, int) else f"block of {self.per}"
        return f"Where they differ within one {block} alone, {bound}; over several blocks the totals add."

    def written(self) -> str:
        """The promise as a ledger keeps it: JSON with its names in order."""
        kept: dict[str, str | int] = {"total": str(self.exact)}
        for name in ("steps", "window", "per"):
            if (length := getattr(self, name)) is not None:
                kept[name] = length
        if self.per is not None:
            kept["passed"] = self.passed
        return json.dumps(kept, sort_keys=True)

    @classmethod
    def read(cls, text: str) -> SequencePromise:
        """The promise that `written` wrote. Raises InvalidInput for anything else."""
        try:
            kept = json.loads(text)
            promise = cls(written_fraction(kept.pop("total")), **kept)
        except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError, RecursionError):
            promise = None
        if promise is None or promise.written() != text:
            raise InvalidInput("promise", "a text that is none", "a promise as a ledger keeps it")
        return promise

    def _block_end(self, t: IntArray) -> IntArray:
        """The first step after the block of each step."""
        assert isinstance(self.per, int)
        return np.asarray(t + self.per - (t - 1 + self.passed) % self.per)


@dataclass(frozen=True)
class Horizon:
    """All that a subject may be asked: one query, at its first ``steps`` steps.

    A total of the policy leakage is worked out for so many releases of one query; more of them, or another query, would
    take it above that. Raises InvalidInput for a number that is none.

    Source: docs/proofs/budget-split.md.
    """

    query: str
    steps: int

    def __post_init__(self) -> None:
        if type(self.steps) is not int or self.steps < 1:
            raise InvalidInput("horizon", self.steps, "a number of steps, 1 or more")

    def keep(self, subject: str, query: str, t: int) -> None:
        """Raises BudgetExceeded for a release of another query, or of a later step; nothing has been drawn."""
        if query != self.query or t > self.steps:
            raise BudgetExceeded(
                f"horizon: step {t} of query {query!r} for subject {subject!r}, of whom a total was promised for "
                f"{self.steps} steps of query {self.query!r} alone; nothing was drawn or spent"
            )

    def written(self) -> str:
        """The horizon as a ledger keeps it: JSON with its names in order."""
        return json.dumps(vars(self), sort_keys=True)

    @classmethod
    def read(cls, text: str) -> Horizon:
        """The horizon that `written` wrote. Raises InvalidInput for anything else."""
        try:
            found = cls(**json.loads(text))
        except (TypeError, ValueError, RecursionError):
            found = None
        if found is None or type(found.query) is not str or found.written() != text:
            raise InvalidInput("horizon", "a text that is none", "a horizon as a ledger keeps it")
        return found


@dataclass(frozen=True)
class Caps:
    """What one subject may spend over all queries and all time; None is no limit.

    All of it stays with the subject's account once it is given (`Transaction.bind`).
    """

    epsilon: Fraction | None = None
    cost: Fraction | None = None
    promise: SequencePromise | None = None
    horizon: Horizon | None = None

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            check_exact(self.epsilon, "cap_epsilon")
        if self.cost is not None:
            check_exact(self.cost, "cap_cost")

    def joined(self, given: Caps, whose: str, raised: bool = False) -> Caps:
        """These caps of a subject and those that are given now. ``raised``: a higher cap takes the place of one.

        Raises InvalidInput for a promise or a cap other than that which there is.
        """
        if None not in (self.promise, given.promise) and self.promise != given.promise:
            stays = f"{self.promise}, which was promised to {whose} and stays for all of its queries"
            raise InvalidInput("promise", str(given.promise), stays)
        return Caps(
            _one_cap("cap_epsilon", self.epsilon, given.epsilon, whose, raised),
            _one_cap("cap_cost", self.cost, given.cost, whose, raised),
            self.promise or given.promise,
            _one_horizon(self.horizon, given.horizon, whose, raised),
        )

    def within(self, other: Caps) -> Caps:
        """The lower of each two caps, and this promise and horizon."""
        lower = _lower(self.epsilon, other.epsilon), _lower(self.cost, other.cost)
        return Caps(*lower, self.promise, self.horizon)

    def written(self) -> str:
        """The caps as a ledger keeps what changed: JSON with its names in order."""
        caps = {"cap_epsilon": self.epsilon, "cap_cost": self.cost}
        kept = {name: str(cap) for name, cap in caps.items() if cap is not None}
        if self.promise is not None:
            kept["promise"] = self.promise.written()
        if self.horizon is not None:
            kept["horizon"] = self.horizon.written()
        return json.dumps(kept, sort_keys=True)


#: No limit at all.
UNLIMITED = Caps()


@dataclass(frozen=True)
class Group:
    """Subjects whose paths are hidden together, and what the epsilons of all their releases may sum to.

    Two sets of paths of the members, one path each, neighbouring for every member, lose at most ``cap``. Raises
    InvalidInput for a cap that is not greater than 0, and for no members.

    Source: docs/proofs/paths.md.
    """

    name: str
    cap: Fraction
    members: tuple[str, ...]

    def __post_init__(self) -> None:
        check_text(self.name, "groups")
        if not self.name:
            raise InvalidInput("groups", "a group without a name", "a name for each group")
        check_exact(self.cap, "cap_group")
        if not self.cap:
            raise InvalidInput("cap_group", 0, "a number greater than 0")
        if not self.members:
            raise InvalidInput("groups", f"{self.name}, without members", "at least one subject in a group")
        for member in self.members:
            check_text(member, "groups")
        object.__setattr__(self, "members", tuple(sorted(set(self.members))))

    def joined(self, given: Group) -> Group:
        """This group and the members that are given now. Raises InvalidInput for another cap."""
        if given.cap != self.cap:
            stays = f"{shown(self.cap)}, the cap of group {self.name!r}, which stays"
            raise InvalidInput("cap_group", shown(given.cap), stays)
        return Group(self.name, self.cap, (*self.members, *given.members))


def _one_cap(field: str, kept: Fraction | None, given: Fraction | None, whose: str, raised: bool) -> Fraction | None:
    if given is None or kept is None or given == kept or (raised and given > kept):
        return kept if given is None else given
    stays = f"{shown(kept)}, the cap of {whose}, which stays for all of its queries"
    raise InvalidInput(field, shown(given), stays if raised else f"{stays}; --raise-cap raises it")


def _one_horizon(kept: Horizon | None, given: Horizon | None, whose: str, raised: bool) -> Horizon | None:
    if given is None or kept is None or given == kept:
        return kept if given is None else given
    if raised and given.query == kept.query and given.steps > kept.steps:
        return given
    stays = f"{kept.steps} of query {kept.query!r}, which a total was promised for to {whose}"
    came = f"{given.steps} of query {given.query!r}"
    raise InvalidInput("steps", came, stays if raised else f"{stays}; --raise-cap raises it, and the total with it")


def _lower(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return one if other is None else other if one is None else min(one, other)


_OR_TIME = ", or a time as 1d, 12h or 30min"


def _sum(rows: Sequence[Spending]) -> Fraction:
    return sum((epsilon for _, epsilon in rows), Fraction(0))


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= MOST_STEPS


def _seconds_of(length: str) -> int:
    found = _TIME.fullmatch(length)
    if found is None:
        raise InvalidInput("per", length, "a number of steps, or a time as 1d, 12h or 30min")
    return int(found[1]) * _SECONDS[found[2]]


def _zone_seconds(zone: str) -> int:
    found = _ZONE.fullmatch(zone) if isinstance(zone, str) else None
    if found is None or int(found[2]) > 14:
        raise InvalidInput("zone", zone, "an offset from UTC, as +08:00")
    seconds = int(found[2]) * 3600 + int(found[3]) * 60
    return -seconds if found[1] == "-" else seconds
