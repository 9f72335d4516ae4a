"""Rounds of a release whose plans do not depend on answers: all rows of a table are one round.

With constraint="support" no answer excludes a state, so what is possible at step t is what
the model reaches in t steps, for every subject alike: their plans are shared, and known before anything is drawn.

Proofs: docs/proofs/support.md, docs/proofs/joint-queries.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dphmm.accounting.ledger import Entry, Ledger, PlanRecord, Transaction
from dphmm.errors import InvalidInput
from dphmm.session.plan import (
    NO_PARTNERS,
    Plan,
    check_made_again,
)
from dphmm.session.plan_schedule import PlanSchedule
from dphmm.session.rounds import Answered, Drawn, Layout, Planned, SubjectState, alike, partners_at
from dphmm.session.setting import Setting
from dphmm.types import BoolArray, IntArray


class Scheduled:
    """Plans by a schedule; no belief is kept."""

    at_once = True
    paces = False

    def __init__(self, setting: Setting, ledger: Ledger) -> None:
        self._setting = setting
        self._ledger = ledger
        self.schedule = PlanSchedule(setting)

    def predict(self, transaction: Transaction, subjects: Sequence[SubjectState], layout: Layout) -> IntArray:
        """The numbers (m,) of what the model can have reached by each request's step."""
        return self.schedule.numbers(layout.t)

    def constrain(self, predicted: IntArray) -> IntArray:
        """The same: all that is possible is planned on."""
        return predicted

    def plan(
        self, transaction: Transaction, subjects: Sequence[SubjectState], layout: Layout, constrained: IntArray
    ) -> Planned:
        """The plans of requests. Raises as the planner does."""
        apart = np.array([subject.joint for subject in subjects], dtype=np.bool_)[layout.owner]
        if layout.choices is not None:
            apart |= np.array([choice is not None for choice in layout.choices], dtype=np.bool_)[layout.row]
        numbers = constrained
        for place in np.flatnonzero(~layout.skips & apart).tolist():
            subject, t = subjects[layout.owner[place]], int(layout.t[place])
            choice, partners = layout.choice(layout.row.item(place)), NO_PARTNERS
            if subject.joint:
                partners = partners_at(transaction, subject.name, t, self._setting, choice)
            numbers[place] = self.schedule.beside(int(numbers[place]), partners, choice)
        asked = numbers[~layout.skips]
        if len(asked) and (asked == asked[0]).all():
            # Without a sort: from some step on nearly every model reaches all its states, and all rows have one plan.
            return Planned([self.schedule.plan(asked.item(0))], -layout.skips.astype(np.int64))
        plan_of = np.full(len(numbers), -1, dtype=np.int64)
        found, plan_of[~layout.skips] = np.unique(asked, return_inverse=True)
        return Planned([self.schedule.plan(number) for number in found.tolist()], plan_of)

    def keep(self, transaction: Transaction, drawn: Drawn) -> None:
        """Nothing: no plan needs a belief."""

    def condition(self, drawn: Drawn) -> None:
        """Nothing: who wants to know what answers say reads it from the ledger."""

    def stored(self, drawn: Drawn, old: IntArray) -> Answered | None:
        """The releases of rows ``old`` (k,), and the skips of those that were not asked; late rows have neither."""
        owner, t = drawn.rows.owner[old].tolist(), drawn.rows.t[old].tolist()
        first, last = (dict(zip(owner[::way], t[::way], strict=True)) for way in (-1, 1))
        entries: list[Entry] = []
        place_of: dict[tuple[int, int], int] = {}
        for number, begins in first.items():
            for entry in drawn.subjects[number].take(self._ledger, self._setting.query, begins, last[number]):
                # A skip is of its last step, a row's own: the steps before it had no row.
                place_of[number, entry.through] = len(entries)
                entries.append(entry)
        history = self._history(entries)
        at = np.array([place_of.get(row, -1) for row in zip(owner, t, strict=True)], dtype=np.int64)
        rows, at = old[at >= 0], at[at >= 0]
        same = (history.skipped[at] == 0) == drawn.rows.asked[rows]
        rows, at = rows[same], at[same]
        if not len(rows):
            return None
        asked, plan = drawn.rows.asked[rows], np.full(len(rows), -1, dtype=np.int64)
        numbers, plan[asked] = np.unique(history.number[at[asked]], return_inverse=True)
        return Answered(
            row=drawn.row[rows],
            z=history.z[at],
            plans=[self.schedule.plan(each) for each in numbers.tolist()],
            plan=plan,
            secure=history.secure[at],
            fresh=alike(False, len(rows)),
        )

    def check(self, entries: Sequence[Entry]) -> None:
        """Raises InvalidInput for a stored release whose plan the schedule does not make."""
        for _ in self.plans_of(entries):
            pass

    def plans_of(self, entries: Sequence[Entry]) -> Iterator[tuple[Entry, Plan]]:
        """The plan of each stored release. Raises InvalidInput for one that the schedule does not make."""
        numbers = self._history(entries).number.tolist()
        for entry, number in zip(entries, numbers, strict=True):
            if entry.z is not None:
                yield entry, self.schedule.plan(number)

    def _history(self, entries: Sequence[Entry]) -> History:
        return History.of(entries, self._setting.space.dimension, self.schedule, self._ledger.plan)


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
