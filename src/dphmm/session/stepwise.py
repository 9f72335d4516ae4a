"""Plans that depend on answers: each is made from where its subject's belief stands, one row of a subject at a time.

Proofs: docs/proofs/promise.md, docs/proofs/support.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dphmm.accounting.ledger import Entry, Ledger, Transaction
from dphmm.session.layout import Layout
from dphmm.session.plan import NO_PARTNERS, Plan, all_partners
from dphmm.session.rounds import Answered, Drawn, Planned, SubjectState, together
from dphmm.session.setting import Setting
from dphmm.session.step import Estimate, Position, estimate
from dphmm.session.walk import Walked, walk


class Stepwise:
    """Plans from beliefs. ``loss`` is that of the estimates."""

    at_once = False

    def __init__(self, setting: Setting, ledger: Ledger, loss: str) -> None:
        self._setting = setting
        self._ledger = ledger
        self._loss = loss

    def plan(self, transaction: Transaction, subjects: Sequence[SubjectState], layout: Layout) -> Planned:
        """The plans of requests. Raises as the planner does, and as `walk` where a stored step has to be passed."""
        numbers: dict[str, int] = {}
        plans: list[Plan] = []
        plan_of: list[int] = []
        before: list[Position] = []
        for number, t, skips in zip(layout.owner.tolist(), layout.t.tolist(), layout.skips.tolist(), strict=True):
            if skips:
                plan_of.append(-1)
                continue
            subject = subjects[number]
            position = self.position(subject)
            if t > position.t:
                position = position.skipping(self._setting.model, t - position.t)
            partners = NO_PARTNERS
            if subject.joint:
                partners = all_partners(transaction.plans_at(subject.name, t, self._setting.query))
            plan = self._setting.plan(position, partners)
            if plan.hash not in numbers:
                numbers[plan.hash] = len(plans)
                plans.append(plan)
            plan_of.append(numbers[plan.hash])
            before.append(position)
        return Planned(plans, np.array(plan_of, dtype=np.int64), before=before)

    def update(self, drawn: Drawn) -> Answered:
        """What a round tells; its subjects are moved past their rows."""
        again = self._again(drawn)
        for number, steps in _skipped_alone(drawn.layout):
            subject = drawn.subjects[number]
            position = self.position(subject, int(drawn.past[number]))
            subject.posterior = position.passing(self._setting.model, position.t + steps - 1).prior
            subject.position = position.skipping(self._setting.model, steps)
        fresh = self._fresh(drawn)
        return fresh if again is None else together([fresh, again])

    def _fresh(self, drawn: Drawn) -> Answered:
        """The releases that were drawn now; each moves its subject from where it was planned."""
        layout, setting = drawn.layout, self._setting
        places = np.flatnonzero(~layout.skips)
        plan = drawn.planned.plan_of[places]
        estimates, states = np.empty((len(places), setting.space.dimension)), np.empty(len(places), dtype=np.int64)
        steps = zip(layout.owner[places].tolist(), drawn.planned.before, plan.tolist(), drawn.z[places], strict=True)
        for place, (number, before, plan_number, z) in enumerate(steps):
            posterior = before.posterior(drawn.planned.plans[plan_number], z)
            estimates[place], states[place] = estimate(posterior, setting.space.own_answers, self._loss)
            subject = drawn.subjects[number]
            subject.position, subject.posterior = before.following(setting.model, posterior), posterior
        return Answered(
            row=drawn.row[layout.row[places]],
            z=drawn.z[places].reshape(-1, setting.space.dimension),
            plans=drawn.planned.plans,
            plan=plan,
            estimates=estimates,
            states=states,
            secure=np.full(len(places), drawn.secure),
            fresh=np.ones(len(places), dtype=np.bool_),
            skipped=int(layout.steps[layout.skips].sum()),
            drifted=drawn.drifted,
        )

    def _again(self, drawn: Drawn) -> Answered | None:
        """The releases that were stored before, None where there is none; each moves its subject past stored steps."""
        old = np.flatnonzero(drawn.rows.t <= drawn.past[drawn.rows.owner]).tolist()
        found: list[tuple[int, Plan, Entry, Estimate]] = []
        for place in old:
            subject, t = drawn.subjects[drawn.rows.owner[place]], int(drawn.rows.t[place])
            step = self._pass(subject, t)
            if step is not None and step.plan is not None and step.entry.t == t:
                guess = estimate(step.posterior, self._setting.space.own_answers, self._loss)
                found.append((int(drawn.row[place]), step.plan, step.entry, guess))
        if not found:
            return None
        row, plans, entries, guesses = zip(*found, strict=True)
        return Answered(
            row=np.array(row, dtype=np.int64),
            z=np.array([entry.z for entry in entries], dtype=np.int64),
            plans=plans,
            plan=np.arange(len(plans)),
            estimates=np.array([guess.answer for guess in guesses]),
            states=np.array([guess.state for guess in guesses], dtype=np.int64),
            secure=np.array([entry.secure for entry in entries], dtype=np.bool_),
            fresh=np.zeros(len(plans), dtype=np.bool_),
        )

    def position(self, subject: SubjectState, last: int | None = None) -> Position:
        """Where a subject stands after its last stored step, or another one; it is moved there."""
        self._pass(subject, subject.last if last is None else last)
        assert isinstance(subject.position, Position)
        return subject.position

    def _pass(self, subject: SubjectState, last: int) -> Walked | None:
        """Move a subject past its stored steps that begin by ``last``; the last of them."""
        if subject.position is None:
            subject.position = self._setting.first()
        assert isinstance(subject.position, Position)
        if subject.position.t > last:
            return None
        step = None
        entries = subject.take(self._ledger, self._setting.query, subject.position.t, last)
        for step in walk(self._setting, subject.position, entries, self._ledger.plan):
            subject.position, subject.posterior = step.after, step.posterior
        return step


def _skipped_alone(layout: Layout) -> list[tuple[int, int]]:
    """Subjects with a skip and no release after it, and how many steps."""
    if not layout.skips.any():
        return []
    released = layout.owner[~layout.skips]
    alone = layout.skips & ~np.isin(layout.owner, released)
    return list(zip(layout.owner[alone].tolist(), layout.steps[alone].tolist(), strict=True))
