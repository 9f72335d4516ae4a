"""The steps of one subject walked again: from what was recorded to plans, beliefs and estimates.

`History` is what a ledger holds of one subject, as columns, under the numbers of the plans of a schedule.

Proofs: docs/proofs/promise.md, docs/proofs/ledger.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dphmm.accounting.ledger import Entry, PlanRecord
from dphmm.errors import InvalidInput
from dphmm.markov.filtering import Belief
from dphmm.session.filter import Observations
from dphmm.session.plan import ALGORITHM_VERSION, Plan
from dphmm.session.schedule import PlanSchedule
from dphmm.session.setting import Setting
from dphmm.session.step import Position
from dphmm.types import BoolArray, IntArray


class History(NamedTuple):
    """Stored steps (n,): ``skipped`` is 0 for a release of ``z`` (n, d) under plan ``number``, else how many steps."""

    t: IntArray
    skipped: IntArray
    z: IntArray
    secure: BoolArray
    number: IntArray

    @classmethod
    def of(
        cls, entries: Sequence[Entry], dimension: int, schedule: PlanSchedule, plan: Callable[[str], PlanRecord]
    ) -> History:
        """The columns of entries; ``plan`` finds the record of a hash.

        Raises InvalidInput for answers that are not of this dimension and 64 bits, and for plans that the schedule does
        not make of what was recorded.
        """
        t = np.array([entry.t for entry in entries], dtype=np.int64)
        return cls(
            t=t,
            skipped=np.array([0 if entry.z is not None else entry.steps for entry in entries], dtype=np.int64),
            z=_answers(entries, dimension),
            secure=np.array([entry.secure for entry in entries], dtype=np.bool_),
            number=_numbers(entries, t, schedule, plan),
        )

    def observed(self) -> Observations:
        """The steps of this one subject, for the filter."""
        no_estimate = np.zeros(len(self.t), dtype=np.bool_)
        return Observations(np.arange(len(self.t)) == 0, self.t, self.skipped, self.z, self.number, no_estimate)


def _answers(entries: Sequence[Entry], dimension: int) -> IntArray:
    nothing = (0,) * dimension
    answers = [nothing if entry.z is None else entry.z for entry in entries]
    if any(len(answer) != dimension or max(map(abs, answer)).bit_length() > 63 for answer in answers):
        raise InvalidInput("ledger", "an answer of another space", f"{dimension} coordinates of 64 bits")
    return np.array(answers, dtype=np.int64).reshape(-1, dimension)


def _numbers(
    entries: Sequence[Entry], t: IntArray, schedule: PlanSchedule, plan: Callable[[str], PlanRecord]
) -> IntArray:
    numbers = schedule.numbers(t)
    found: dict[tuple[int, str], int] = {}
    for place, (number, entry) in enumerate(zip(numbers.tolist(), entries, strict=True)):
        if entry.z is None:
            continue
        key = number, str(entry.plan_hash)
        if key not in found:
            found[key] = _number(number, entry, schedule, plan)
        numbers[place] = found[key]
    return numbers


def _number(number: int, entry: Entry, schedule: PlanSchedule, plan: Callable[[str], PlanRecord]) -> int:
    """The number of the plan of an entry: the step's own, or that beside the partners that were recorded."""
    if schedule.plan(number).hash == entry.plan_hash:
        return number
    beside = schedule.recorded(number, plan(str(entry.plan_hash)))
    check_made_again(entry, schedule.plan(beside).hash)
    return beside


def check_made_again(entry: Entry, made: str) -> None:
    """Raises InvalidInput where a recorded plan is not the one that the record makes today."""
    if made != entry.plan_hash:
        expected = f"{made}, made from the record by version {ALGORITHM_VERSION} of the algorithm"
        raise InvalidInput("ledger", f"plan {entry.plan_hash} at t={entry.t}", expected)


class Walked(NamedTuple):
    """A stored step: its plan (None for a skip), the belief given it, and where the subject stands after it."""

    entry: Entry
    plan: Plan | None
    posterior: Belief
    after: Position


def walk(
    setting: Setting, position: Position, entries: Iterable[Entry], plan: Callable[[str], PlanRecord]
) -> Iterator[Walked]:
    """Each entry from ``position`` on, under the plan set that was recorded.

    Float arithmetic may differ between machines, so a delta-set is not made again. ``plan`` finds the record of a hash.
    Raises InvalidInput where a record does not make the plan that it names.
    """
    for entry in entries:
        if entry.z is None:
            last = position.predict_through(setting.model, entry.through)
            position = last.predict(setting.model, last.prior)
            yield Walked(entry, None, last.prior, position)
            continue
        record = plan(str(entry.plan_hash))
        made = setting.made_again(position.prior.support, record)
        check_made_again(entry, made.hash)
        posterior = position.posterior(made, np.array(entry.z, dtype=np.int64))
        position = position.predict(setting.model, posterior)
        yield Walked(entry, made, posterior, position)
