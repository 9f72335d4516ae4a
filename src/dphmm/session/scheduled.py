"""Rounds of a release whose plans do not depend on answers: all rows of a table are one round.

With constraint="support" no answer excludes a state, so what is possible at step t is what
the model reaches in t steps, for every subject alike: their plans are shared, and known before anything is drawn.

Proofs: docs/proofs/support.md, docs/proofs/joint-queries.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from dphmm.accounting.ledger import Entry, Ledger, Transaction
from dphmm.session.plan import (
    NO_PARTNERS,
    StepPlan,
    check_made_again,
)
from dphmm.session.plan_schedule import PlanSchedule
from dphmm.session.rounds import PlannedRequests, StepRequests, StepRows, StoredRows, SubjectState, partners_at
from dphmm.session.setting import Setting
from dphmm.types import IntArray


class Scheduled:
    """Plans by a schedule; no belief is kept."""

    at_once = True
    paces = False

    def __init__(self, setting: Setting, ledger: Ledger) -> None:
        self._setting = setting
        self._ledger = ledger
        self.schedule = PlanSchedule(setting)

    def predict(self, transaction: Transaction, subjects: Sequence[SubjectState], layout: StepRequests) -> IntArray:
        """The numbers (m,) of what the model can have reached by each request's step."""
        return self.schedule.numbers(layout.t)

    def constrain(self, predicted: IntArray) -> IntArray:
        """The same: all that is possible is planned on."""
        return predicted

    def plan(
        self, transaction: Transaction, subjects: Sequence[SubjectState], layout: StepRequests, constrained: IntArray
    ) -> PlannedRequests:
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
            return PlannedRequests([self.schedule.plan(asked.item(0))], -layout.skips.astype(np.int64))
        plan_of = np.full(len(numbers), -1, dtype=np.int64)
        distinct, plan_of[~layout.skips] = np.unique(asked, return_inverse=True)
        return PlannedRequests([self.schedule.plan(number) for number in distinct.tolist()], plan_of)

    def keep(
        self,
        transaction: Transaction,
        subjects: Sequence[SubjectState],
        layout: StepRequests,
        planned: PlannedRequests,
        past: IntArray,
    ) -> None:
        """Nothing: no plan needs a belief."""

    def condition(
        self, subjects: Sequence[SubjectState], layout: StepRequests, planned: PlannedRequests, z: IntArray
    ) -> None:
        """Nothing: the ledger has the answers for any later reader."""

    def stored(self, subjects: Sequence[SubjectState], rows: StepRows, old: IntArray) -> StoredRows:
        """The stored plans and entries of rows ``old`` (k,); late rows have none."""
        owner, t, asked = rows.owner[old].tolist(), rows.t[old].tolist(), rows.asked[old].tolist()
        first, last = (dict(zip(owner[::way], t[::way], strict=True)) for way in (-1, 1))
        ends_at: dict[tuple[int, int], Entry] = {}
        for number, begins in first.items():
            for entry in subjects[number].take(self._ledger, self._setting.query, begins, last[number]):
                # A skip is of its last step, a row's own: the steps before it had no row.
                ends_at[number, entry.through] = entry
        ending = list(map(ends_at.get, zip(owner, t, strict=True)))
        fits = [entry is not None and (entry.z is not None) == was for entry, was in zip(ending, asked, strict=True)]
        entries = [entry for entry, fit in zip(ending, fits, strict=True) if fit and entry is not None]
        return StoredRows(old[fits], list(self.plans_of(entries)), entries)

    def check(self, entries: Sequence[Entry]) -> None:
        """Raises InvalidInput for a stored release whose plan the schedule does not make."""
        for _ in self.plans_of(entries):
            pass

    def plans_of(self, entries: Sequence[Entry]) -> Iterator[StepPlan | None]:
        """The plans of stored steps, None for a skip. Raises InvalidInput for one that the schedule does not make."""
        numbers = self.schedule.numbers(np.array([entry.t for entry in entries], dtype=np.int64)).tolist()
        known: dict[tuple[int, str], StepPlan] = {}
        for number, entry in zip(numbers, entries, strict=True):
            if entry.z is None:
                yield None
                continue
            key = number, str(entry.plan_hash)
            if key not in known:
                known[key] = self._plan_of(number, entry)
            yield known[key]

    def _plan_of(self, number: int, entry: Entry) -> StepPlan:
        """The plan of an entry: the step's own, or that beside the partners that were recorded."""
        plan = self.schedule.plan(number)
        if plan.hash != entry.plan_hash:
            plan = self.schedule.plan(self.schedule.recorded(number, self._ledger.plan(str(entry.plan_hash))))
            check_made_again(entry, plan.hash)
        return plan
