"""Plans that depend on answers: each is made from where its subject's belief stands, one row of a subject at a time.

Proofs: docs/proofs/promise.md, docs/proofs/support.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dphmm.accounting.ledger import Ledger, Transaction
from dphmm.session.layout import Layout
from dphmm.session.plan import Plan, all_partners
from dphmm.session.rounds import Answered, Drawn, Planned, SubjectState
from dphmm.session.setting import Setting
from dphmm.session.step import Position, estimate
from dphmm.session.walk import walk
from dphmm.types import FloatArray, IntArray


class Stepwise:
    """Plans from beliefs. ``loss`` is that of the estimates."""

    at_once = False

    def __init__(self, setting: Setting, ledger: Ledger, loss: str) -> None:
        self._setting = setting
        self._ledger = ledger
        self._loss = loss

    def plan(self, transaction: Transaction, subjects: Sequence[SubjectState], layout: Layout) -> Planned:
        """The plans of requests. Raises as the planner does, and as `walk` where a stored step has to be passed."""
        plans: dict[str, Plan] = {}
        named: list[str] = []
        before: list[Position] = []
        for number, t, skips in zip(layout.owner.tolist(), layout.t.tolist(), layout.skips.tolist(), strict=True):
            if skips:
                continue
            subject = subjects[number]
            position = self.position(subject)
            if t > position.t:
                position = position.skipping(self._setting.model, t - position.t)
            partners = all_partners(transaction.plans_at(subject.name, t, self._setting.query) if subject.joint else [])
            plan = self._setting.plan(position, partners)
            plans.setdefault(plan.hash, plan)
            named.append(plan.hash)
            before.append(position)
        number_of = {name: number for number, name in enumerate(plans)}
        plan_of = np.full(len(layout.t), -1, dtype=np.int64)
        plan_of[~layout.skips] = [number_of[name] for name in named]
        return Planned(list(plans.values()), plan_of, before=before)

    def update(self, drawn: Drawn) -> Answered:
        """What a round tells; its subjects are moved past their rows."""
        setting, found = self._setting, list[tuple[int, _Seen]]()
        releases = iter(zip(drawn.planned.before, np.flatnonzero(~drawn.layout.skips).tolist(), strict=True))
        for row, number, t in zip(drawn.row.tolist(), *(column.tolist() for column in drawn.rows), strict=True):
            subject = drawn.subjects[number]
            if t <= drawn.past[number]:
                seen = self._pass(subject, t)
            else:
                position, place = next(releases)
                plan, z = drawn.planned.plans[drawn.planned.plan_of[place]], drawn.z[place]
                posterior = position.posterior(plan, z)
                guess = estimate(posterior, setting.space.own_answers, self._loss)
                subject.position, subject.posterior = position.following(setting.model, posterior), posterior
                seen = _Seen(z, plan, guess.answer, guess.state, drawn.secure, True)
            if seen is not None:
                found.append((row, seen))
        for number, steps in _skipped_alone(drawn):
            subject = drawn.subjects[number]
            position = self.position(subject, int(drawn.past[number]))
            subject.posterior = position.passing(setting.model, position.t + steps - 1).prior
            subject.position = position.skipping(setting.model, steps)
        return self._answered(drawn, found)

    def _answered(self, drawn: Drawn, found: Sequence[tuple[int, _Seen]]) -> Answered:
        seen, d = [tells for _, tells in found], self._setting.space.dimension
        plans = {tells.plan.hash: tells.plan for tells in seen}
        number_of = {name: number for number, name in enumerate(plans)}
        return Answered(
            row=np.array([row for row, _ in found], dtype=np.int64),
            z=np.array([tells.z for tells in seen], dtype=np.int64).reshape(-1, d),
            plans=list(plans.values()),
            plan=np.array([number_of[tells.plan.hash] for tells in seen], dtype=np.int64),
            estimates=np.array([tells.estimate for tells in seen], dtype=np.float64).reshape(-1, d),
            states=np.array([tells.state for tells in seen], dtype=np.int64),
            secure=np.array([tells.secure for tells in seen], dtype=np.bool_),
            fresh=np.array([tells.fresh for tells in seen], dtype=np.bool_),
            skipped=int(drawn.layout.steps[drawn.layout.skips].sum()),
            drifted=drawn.drifted,
        )

    def position(self, subject: SubjectState, last: int | None = None) -> Position:
        """Where a subject stands after its last stored step, or another one; it is moved there."""
        self._pass(subject, subject.last if last is None else last)
        assert subject.position is not None
        return subject.position

    def _pass(self, subject: SubjectState, last: int) -> _Seen | None:
        """Move a subject past its stored steps that begin by ``last``; what the release of that step tells, if any."""
        if subject.position is None:
            subject.position = self._setting.first()
        if subject.position.t > last:
            return None
        entries = subject.take(self._ledger, self._setting.query, subject.position.t, last)
        seen = None
        for step in walk(self._setting, subject.position, entries, self._ledger.plan):
            subject.position, subject.posterior, seen = step.after, step.posterior, None
            if step.plan is not None and step.entry.t == last:
                guess = estimate(step.posterior, self._setting.space.own_answers, self._loss)
                z = np.array(step.entry.z, dtype=np.int64)
                seen = _Seen(z, step.plan, guess.answer, guess.state, step.entry.secure, False)
        return seen


class _Seen(NamedTuple):
    """What one release tells."""

    z: IntArray
    plan: Plan
    estimate: FloatArray
    state: int
    secure: bool
    fresh: bool


def _skipped_alone(drawn: Drawn) -> Iterator[tuple[int, int]]:
    """Subjects with a skip and no release after it, and how many steps."""
    released = set(drawn.layout.owner[~drawn.layout.skips].tolist())
    for number, steps in zip(drawn.layout.owner.tolist(), drawn.layout.steps.tolist(), strict=True):
        if number not in released:
            yield number, steps
