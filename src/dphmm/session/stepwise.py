"""Plans that depend on answers: each is made from where its subject's belief stands, one row of a subject at a time.

Proofs: docs/proofs/promise.md, docs/proofs/support.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from dphmm.accounting.ledger import Entry, Ledger, Transaction
from dphmm.markov.filtering import Belief
from dphmm.session.layout import Layout
from dphmm.session.plan import ALGORITHM_VERSION, NO_PARTNERS, Plan
from dphmm.session.rounds import Answered, Drawn, Planned, SubjectState, partners_at, together
from dphmm.session.setting import Setting
from dphmm.session.step import Estimate, Position, estimate
from dphmm.session.walk import Walked, walk
from dphmm.types import IntArray

#: A belief is kept so often; what comes after it is folded when a subject is resumed.
_SNAPSHOT_EVERY = 64
#: Another version of the algorithm may have made other beliefs, and other plans of them.
_SNAPSHOT_VERSION = ALGORITHM_VERSION
#: Bytes that say whose belief, and after which step, a snapshot is.
_WHOSE = 16


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
                partners = partners_at(transaction, subject.name, t, self._setting.query)
            plan = self._setting.plan(position, partners)
            place = numbers.setdefault(plan.hash, len(plans))
            if place == len(plans):
                plans.append(plan)
            plan_of.append(place)
            before.append(position)
        return Planned(plans, np.array(plan_of, dtype=np.int64), before=before)

    def keep(self, transaction: Transaction, drawn: Drawn) -> None:
        """Keep the belief before a release where so many steps have passed since one may have been kept."""
        layout, befores = drawn.layout, drawn.planned.before
        owner = layout.owner if len(befores) == len(layout.t) else layout.owner[~layout.skips]
        for number, before in zip(owner.tolist(), befores, strict=True):
            passed = before.t - 1
            if passed // _SNAPSHOT_EVERY > max(0, drawn.past.item(number) - 1) // _SNAPSHOT_EVERY:
                subject = drawn.subjects[number]
                belief = snapshot_of(before.prior, self._whose(subject, passed))
                transaction.put_snapshot(subject.name, self._setting.query, passed, belief)

    def update(self, drawn: Drawn) -> Answered:
        """What a round tells; its subjects are moved past their rows."""
        if len(drawn.planned.before) == len(drawn.rows.t) == len(drawn.layout.t):
            # Nothing is skipped and nothing was stored before: what nearly every release of a session is.
            return self._fresh(drawn, drawn.row, drawn.layout.owner, drawn.planned.plan_of, drawn.z, 0)
        again = self._again(drawn)
        for number, steps in _skipped_alone(drawn.layout):
            subject = drawn.subjects[number]
            position = self.position(subject, int(drawn.past[number]))
            subject.posterior = position.passing(self._setting.model, position.t + steps - 1).prior
            subject.position = position.skipping(self._setting.model, steps)
        released = np.flatnonzero(~drawn.layout.skips)
        row, owner = drawn.row.take(drawn.layout.row[released]), drawn.layout.owner[released]
        plan, z = drawn.planned.plan_of[released], drawn.z[released].reshape(-1, self._setting.space.dimension)
        fresh = self._fresh(drawn, row, owner, plan, z, int(drawn.layout.steps.sum()) - len(released))
        return fresh if again is None else together([fresh, again])

    def _fresh(
        self, drawn: Drawn, row: IntArray, owner: IntArray, plan: IntArray, z: IntArray, skipped: int
    ) -> Answered:
        """The releases (n,) that were drawn now; each moves its subject from where it was planned."""
        model, answers, planned, n = self._setting.model, self._setting.space.own_answers, drawn.planned, len(z)
        estimates, states = np.empty(z.shape), np.empty(n, dtype=np.int64)
        steps = zip(owner.tolist(), planned.before, plan.tolist(), z, strict=True)
        for place, (number, before, plan_number, answer) in enumerate(steps):
            posterior = before.posterior(planned.plans[plan_number], answer)
            estimates[place], states[place] = estimate(posterior, answers, self._loss)
            subject = drawn.subjects[number]
            subject.position, subject.posterior = before.following(model, posterior), posterior
        secure, fresh = np.array([drawn.secure] * n, np.bool_), np.array([True] * n, np.bool_)
        return Answered(row, z, planned.plans, plan, estimates, states, secure, fresh, skipped, drawn.drifted)

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
            subject.position = self._snapshot(subject, last) or self._setting.first()
        assert isinstance(subject.position, Position)
        if subject.position.t > last:
            return None
        step = None
        entries = subject.take(self._ledger, self._setting.query, subject.position.t, last)
        for step in walk(self._setting, subject.position, entries, self._ledger.plan):
            subject.position, subject.posterior = step.after, step.posterior
        return step

    def _snapshot(self, subject: SubjectState, last: int) -> Position | None:
        """Where the subject's snapshot stands, if that is before step ``last``."""
        # None is kept of an earlier step: whoever begins asks the ledger for nothing.
        found = self._ledger.snapshot(subject.name, self._setting.query) if last > _SNAPSHOT_EVERY else None
        if found is None or found[0] >= last:
            return None
        prior = belief_of(found[1], self._whose(subject, found[0]), self._setting.model.n_states)
        return None if prior is None else Position(found[0] + 1, prior)

    def _whose(self, subject: SubjectState, t: int) -> bytes:
        """Sixteen bytes that a snapshot after step ``t`` begins with: under another session or step it is none."""
        header = self._setting.header(subject.name, subject.origin)
        told = [_SNAPSHOT_VERSION, header.subject, header.query, header.options_text, t]
        return hashlib.sha256(json.dumps(told).encode()).digest()[:_WHOSE]


def snapshot_of(belief: Belief, whose: bytes) -> bytes:
    """A belief as bytes: whose it is, whether in logs, the numbers (N,) and the support, a bit for each state."""
    numbers = belief.log_probability if belief.row is None else belief.row
    kind = whose + bytes([belief.row is None])
    return kind + numbers.astype("<f8").tobytes() + np.packbits(belief.support).tobytes()


def belief_of(snapshot: bytes, whose: bytes, n_states: int) -> Belief | None:
    """The belief of a snapshot, bit by bit; None for what another version wrote, or of another session or step."""
    first, support_from = _WHOSE + 1, _WHOSE + 1 + 8 * n_states
    if snapshot[:_WHOSE] != whose or len(snapshot) != support_from + (n_states + 7) // 8:
        return None
    numbers = np.frombuffer(snapshot[first:support_from], dtype="<f8").astype(np.float64)
    packed = np.frombuffer(snapshot[support_from:], dtype=np.uint8)
    support = np.unpackbits(packed, count=n_states).astype(np.bool_)
    return Belief(numbers, support) if snapshot[_WHOSE] else Belief.of_row(numbers, support)


def _skipped_alone(layout: Layout) -> list[tuple[int, int]]:
    """Subjects with a skip and no release after it, and how many steps."""
    if not layout.skips.any():
        return []
    released = layout.owner[~layout.skips]
    alone = layout.skips & ~np.isin(layout.owner, released)
    return list(zip(layout.owner[alone].tolist(), layout.steps[alone].tolist(), strict=True))
