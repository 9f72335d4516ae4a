"""At which steps a subject is asked, and how strongly: a schedule looks at public values alone.

A step that is not asked costs nothing: its row is kept, with the estimate that the answers so far give.

Proof: docs/proofs/schedules.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np

from dphmm._checks import exact_epsilon, written_fraction
from dphmm.accounting.promise import SequencePromise
from dphmm.accounting.records import check_exact, shown
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, Exact, IntArray

#: Steps of the longest block or sequence that a schedule names one by one.
MOST_SCHEDULED = 2**20


@dataclass(frozen=True)
class Schedule:
    """When to ask, so that a promise over the sequence is kept: planned ahead, or paced by what was published.

    promise : what the epsilons of all asked steps keep.
    epsilon : of each release.
    at : steps, from 1, of the sequence of the promise, of each of its blocks, or of each of its windows, one after
        another. Planned: exactly these are asked. Paced: of these some are.
    spreads : empty for planned. Paced: a step is asked where the spread of the belief is at least
        ``spreads[due - 1]``, in answer units, the last one for longer; ``due`` are the steps of ``at`` that are left
        for each release that is left, rounded up. None is asked where the promise leaves less than ``epsilon``.

    Raises
    ------
    InvalidInput : steps that do not ascend or lie outside the sequence, an epsilon that the promise has no room for, a
        planned schedule that spends more than its promise.

    Examples
    --------
    >>> import dphmm
    >>> day = dphmm.Schedule(dphmm.SequencePromise(12, per=144), 2, at=range(12, 144, 24))
    >>> day.releases
    6

    Source: docs/proofs/schedules.md (sequence promises: docs/proofs/paths.md).
    """

    promise: SequencePromise
    epsilon: Exact
    at: Sequence[int]
    spreads: Sequence[float] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.promise, SequencePromise):
            raise InvalidInput("promise", type(self.promise).__name__, "a dphmm.SequencePromise")
        epsilon = exact_epsilon(self.epsilon, "epsilon")
        check_exact(epsilon, "epsilon")
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "at", _steps(self.at, self._length))
        object.__setattr__(self, "spreads", tuple(_spread(value) for value in self.spreads))
        if epsilon > self.promise.exact:
            raise InvalidInput("epsilon", shown(epsilon), f"at most {self.promise}, the promise")
        if not self.spreads and len(self.at) * epsilon > self.promise.exact:
            came = f"{len(self.at)} releases of {shown(epsilon)}"
            raise InvalidInput("at", came, f"at most {self.promise}, the promise")

    @property
    def exact(self) -> Fraction:
        """The epsilon of each release as an exact number."""
        assert isinstance(self.epsilon, Fraction)
        return self.epsilon

    @property
    def kind(self) -> str:
        """ "planned" or "paced"."""
        return "paced" if self.spreads else "planned"

    @property
    def releases(self) -> int:
        """Releases in the sequence, or in a block or window: all of them where planned, at most where paced."""
        fit = self.promise.exact // self.exact
        return min(len(self.at), int(fit))

    def in_steps(self, step: float | None, origin: int) -> Schedule:
        """The schedule in numbers of steps, as `SequencePromise.in_steps`, for a subject whose step 1 is ``origin``.

        Raises InvalidInput where a block of a time has fewer steps than the schedule names.
        """
        return replace(self, promise=self.promise.in_steps(step, origin))

    def may_ask(self, t: IntArray) -> BoolArray:
        """Which of the steps t (n,) of one subject are named; blocks must be in steps."""
        place = t - 1
        if self.promise.steps is None:
            place = (place + self.promise.passed) % self._length
        return np.isin(place + 1, self._named)

    def asks(self, t: int, spread: float, room: Fraction) -> bool:
        """Whether a paced schedule asks at step ``t``, where the promise leaves ``room``; blocks must be in steps.

        ``spread`` : root of the mean squared distance of the belief from its mean, in answer units.
        """
        left = room // self.exact
        if left < 1 or not self.may_ask(np.array([t]))[0]:
            return False
        due = math.ceil(Fraction(self._steps_left(t), int(left)))
        return spread >= self.spreads[min(due, len(self.spreads)) - 1]

    def _steps_left(self, t: int) -> int:
        """The named steps from t to the end of the sequence or block, t among them; all of a window."""
        if self.promise.window is not None:
            return len(self.at)
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

    def __str__(self) -> str:
        most = "at most " * (self.kind == "paced")
        return f"{self.kind}, {most}{self.releases} releases of {shown(self.exact)} for {self.promise}"

    def document(self) -> dict[str, Any]:
        """The schedule for JSON: ``at`` as ranges of steps."""
        promise = {name: getattr(self.promise, name) for name in ("steps", "window", "per")}
        kept = {name: value for name, value in promise.items() if value is not None}
        if isinstance(self.promise.per, str):
            kept["zone"] = self.promise.zone
        told: dict[str, Any] = {"schedule": self.kind, "total": str(self.promise.exact), **kept}
        told |= {"epsilon": str(self.exact), "at": _ranges(self._named)}
        return told | ({"spreads": list(self.spreads)} if self.spreads else {})

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
            at = list(islice(chain.from_iterable(map(_range, told["at"].split(","))), MOST_SCHEDULED + 1))
            schedule = cls(promise, written_fraction(told["epsilon"]), at, tuple(told.get("spreads", ())))
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
            told = json.loads(text)
            schedule = cls.of_document(told) if isinstance(told, dict) else None
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


def _ranges(steps: IntArray) -> str:
    """Ascending steps as "1-3,7": what `_range` reads."""
    cuts = np.flatnonzero(np.diff(steps) != 1) + 1
    parts = np.split(steps, cuts)
    return ",".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def _range(text: str) -> range:
    first, dash, last = text.partition("-")
    low = int(first)
    high = int(last) if dash else low
    if high - low > MOST_SCHEDULED:
        raise ValueError("too many steps")
    return range(low, high + 1)
