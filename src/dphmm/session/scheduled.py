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
from dphmm.errors import DphmmError, InvalidInput
from dphmm.session.plan import (
    NO_PARTNERS,
    Plan,
    check_made_again,
)
from dphmm.session.plan_schedule import PlanSchedule
from dphmm.session.rounds import Answered, Drawn, Layout, Planned, Rows, SubjectState, partners_at
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

    def plan(self, transaction: Transaction, subjects: Sequence[SubjectState], layout: Layout) -> Planned:
        """The plans of requests. Raises as the planner does."""
        numbers = self.schedule.numbers(layout.t)
        apart = _joint(subjects, layout)
        if layout.choices is not None:
            apart |= np.array([choice is not None for choice in layout.choices], dtype=np.bool_)[layout.row]
        for place in np.flatnonzero(~layout.skips & apart).tolist():
            subject, t = subjects[layout.owner[place]], int(layout.t[place])
            choice, partners = layout.choice(layout.row.item(place)), NO_PARTNERS
            if subject.joint:
                partners = partners_at(transaction, subject.name, t, self._setting, choice)
            numbers[place] = self.schedule.beside(int(numbers[place]), partners, choice)
        plan_of = np.full(len(numbers), -1, dtype=np.int64)
        found, plan_of[~layout.skips] = np.unique(numbers[~layout.skips], return_inverse=True)
        return Planned([self.schedule.plan(number) for number in found.tolist()], plan_of, numbers)

    def keep(self, transaction: Transaction, drawn: Drawn) -> None:
        """Nothing: no plan needs a belief."""

    def update(self, drawn: Drawn) -> Answered:
        """What a round tells."""
        steps = Steps.of(drawn, self._histories(drawn))
        at = steps.find(drawn.rows)
        if np.any((drawn.rows.t > drawn.past[drawn.rows.owner]) & (at < 0)):
            raise DphmmError("release: a row that was stored now was not found again; nothing of it is shown")
        found, asked = np.flatnonzero(at >= 0), drawn.rows.asked[at >= 0]
        at = at[found]
        plan = np.full(len(at), -1, dtype=np.int64)
        numbers, plan[asked] = np.unique(steps.numbers[at[asked]], return_inverse=True)
        return Answered(
            row=drawn.row[found],
            z=steps.z[at],
            plans=[self.schedule.plan(number) for number in numbers.tolist()],
            plan=plan,
            secure=steps.secure[at],
            fresh=steps.fresh[at],
            skipped=int(drawn.layout.steps.sum() - np.count_nonzero(drawn.layout.tells)),
            drifted=drawn.drifted,
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

    def _histories(self, drawn: Drawn) -> list[tuple[int, History]]:
        """The stored steps that rows come to again, by number of the subject."""
        t, found = drawn.rows.t, []
        for number, (first, end) in enumerate(_places(drawn.rows.owner, len(drawn.subjects))):
            if first < end and int(t[first]) <= drawn.past[number]:
                last = min(int(drawn.past[number]), int(t[end - 1]))
                entries = drawn.subjects[number].take(self._ledger, self._setting.query, int(t[first]), last)
                found.append((number, self._history(entries)))
        return found

    def _history(self, entries: Sequence[Entry]) -> History:
        return History.of(entries, self._setting.space.dimension, self.schedule, self._ledger.plan)


class Steps(NamedTuple):
    """Steps (n,) as a `History` has them, with whose they are, and whether they were drawn now."""

    owner: IntArray
    t: IntArray
    skipped: IntArray
    z: IntArray
    numbers: IntArray
    fresh: BoolArray
    secure: BoolArray

    @classmethod
    def of(cls, drawn: Drawn, before: Sequence[tuple[int, History]]) -> Steps:
        """The requests of a round, after what each subject had ``before``."""
        layout = drawn.layout
        now = np.ones(len(layout.t), dtype=np.bool_)
        columns = [layout.owner, layout.t, np.where(layout.skips, layout.steps, 0), drawn.z, drawn.planned.numbers]
        columns += [now, now & drawn.secure]
        if before:
            parts = [
                (np.full(len(h.t), n), h.t, h.skipped, h.z, h.number, np.zeros(len(h.t), dtype=np.bool_), h.secure)
                for n, h in before
            ]
            columns = [np.concatenate(some) for some in zip(columns, *parts, strict=True)]
            order = np.lexsort((columns[1], columns[0]))
            columns = [column[order] for column in columns]
        return cls(*columns)

    def find(self, rows: Rows) -> IntArray:
        """Where each row's release is among the steps, or the skip that ends with it if it is not asked; -1 if late."""
        if not len(self.t):
            return np.full(len(rows.t), -1, dtype=np.int64)
        last = self.t + np.maximum(self.skipped - 1, 0)
        # Ranks of steps, not steps: a key of owner and step would pass 64 bits for a step far away.
        steps, rank = np.unique(np.concatenate([last, rows.t]), return_inverse=True)
        keys = self.owner * len(steps) + rank[: len(last)]
        wanted = rows.owner * len(steps) + rank[len(last) :]
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        same = (keys[place] == wanted) & ((self.skipped[place] == 0) == rows.asked)
        return np.where(same, place, -1)


def _joint(subjects: Sequence[SubjectState], layout: Layout) -> BoolArray:
    return np.array([subject.joint for subject in subjects], dtype=np.bool_)[layout.owner]


def _places(owner: IntArray, subjects: int) -> list[tuple[int, int]]:
    """The first row of each subject, and the one after its last."""
    numbers = np.arange(subjects)
    ends = np.searchsorted(owner, numbers), np.searchsorted(owner, numbers, side="right")
    return list(zip(*(end.tolist() for end in ends), strict=True))


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
