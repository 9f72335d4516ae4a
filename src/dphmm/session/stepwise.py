"""Rounds of a release whose plans depend on earlier answers: each has one row of a subject, planned from its belief.

Proofs: docs/proofs/promise.md, docs/proofs/support.md.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from dphmm.accounting.ledger import Entry, Ledger, PlanRecord, Transaction
from dphmm.accounting.promise import Schedule
from dphmm.accounting.records import of_space
from dphmm.errors import DphmmError
from dphmm.markov.filtering import Belief
from dphmm.session.block import Block, Blocked, Blocks
from dphmm.session.options import StepChoice
from dphmm.session.plan import (
    ALGORITHM_VERSION,
    NO_PARTNERS,
    Plan,
    Position,
    check_made_again,
    spread,
)
from dphmm.session.rounds import (
    FIRST_ROW,
    NO_NUMBERS,
    NO_PLAN,
    ONE_ASKED,
    Answered,
    Drawn,
    Layout,
    Planned,
    SubjectState,
    alike,
    partners_at,
    schedule_of,
    together,
)
from dphmm.session.setting import Setting
from dphmm.types import IntArray

#: A belief is kept so often; what comes after it is folded when a subject is resumed.
_SNAPSHOT_EVERY = 64
#: Another version of the algorithm may have made other beliefs, and other plans of them; so does another end of a gap.
_SNAPSHOT_VERSION = f"{ALGORITHM_VERSION}.2"
#: Bytes that say whose belief, and after which step, a snapshot is.
_WHOSE = 16


class _Told(NamedTuple):
    """A request that tells: whose, the step, what was chosen for it, where the subject stands, whether it is asked."""

    request: int
    subject: SubjectState
    t: int
    choice: StepChoice | None
    position: Position
    asks: bool

    @property
    def alone(self) -> bool:
        """Whether more than the belief decides its plan."""
        return self.choice is not None or self.subject.joint


class Stepwise:
    """Plans from beliefs."""

    at_once = False

    def __init__(self, setting: Setting, ledger: Ledger) -> None:
        self.paces = setting.paces
        self._setting = setting
        self._ledger = ledger
        self._blocks = Blocks.of(setting.planner)
        self._schedules: dict[str, Schedule | None] = {}
        #: An origin, and the options of a header with it.
        self._options: tuple[str, str] | None = None

    def plan(self, transaction: Transaction, subjects: Sequence[SubjectState], layout: Layout) -> Planned:
        """The plans of requests that are asked. Raises as the planner does, and as `walk` for a stored step to pass."""
        if len(layout.t) == 1 and layout.tells.item():
            # One row of one subject: what nearly every release of a session is.
            subject, choice = subjects[layout.owner.item()], None if layout.choices is None else layout.choices[0]
            position, plan = self._planned(transaction, subject, layout.t.item(), layout.skips.item(), choice)
            if plan is None:
                return Planned((), NO_PLAN, NO_NUMBERS, (position,))
            return Planned((plan,), FIRST_ROW, NO_NUMBERS, (position,))
        told = [self._told(transaction, subjects, layout, request) for request in np.flatnonzero(layout.tells).tolist()]
        block, row_of = self._together(one.position.prior for one in told if one.asks and not one.alone)
        numbers: dict[str, int] = {}
        plans: list[Plan] = []
        rows: list[int] = []
        plan_of = np.full(len(layout.t), -1, dtype=np.int64)
        beliefs = np.full(len(told), -1, dtype=np.int64)
        for at, one in enumerate(told):
            if not one.asks:
                continue
            row = -1 if one.alone else row_of.get(id(one.position.prior), -1)
            plan = None if block is None or row < 0 else block.plans[row]
            if plan is None:
                row, plan = -1, self._plan_of(transaction, one.subject, one.t, one.position, one.choice)
            number = numbers.setdefault(plan.hash, len(plans))
            if number == len(plans):
                plans.append(plan)
                rows.append(row)
            plan_of[one.request], beliefs[at] = number, row
        blocked = None if block is None else Blocked(block, np.array(rows, dtype=np.int64), beliefs)
        return Planned(plans, plan_of, before=[one.position for one in told], blocked=blocked)

    def _told(self, transaction: Transaction, subjects: Sequence[SubjectState], layout: Layout, request: int) -> _Told:
        """A request that tells, and where its subject stands."""
        subject, t = subjects[layout.owner[request]], int(layout.t[request])
        position, asks = self._stands(transaction, subject, t, bool(layout.skips[request]))
        return _Told(request, subject, t, layout.choice(int(layout.row[request])), position, asks)

    def _together(self, priors: Iterable[Belief]) -> tuple[Block | None, dict[int, int]]:
        """A block for priors, where there are several that floats hold, and the row of each by its id."""
        fit = [prior for prior in {id(prior): prior for prior in priors}.values() if prior.row is not None]
        if self._blocks is None or len(fit) < 2:
            return None, {}
        return self._blocks.plan(fit), {id(prior): row for row, prior in enumerate(fit)}

    def _planned(
        self, transaction: Transaction, subject: SubjectState, t: int, skips: bool, choice: StepChoice | None
    ) -> tuple[Position, Plan | None]:
        """Where a subject stands before step ``t``, and its plan there; None where it is not asked."""
        position, asks = self._stands(transaction, subject, t, skips)
        return position, self._plan_of(transaction, subject, t, position, choice) if asks else None

    def _stands(self, transaction: Transaction, subject: SubjectState, t: int, skips: bool) -> tuple[Position, bool]:
        """Where a subject stands before step ``t``, and whether it is asked."""
        position = subject.position
        if not isinstance(position, Position) or position.t <= subject.last:
            position = self.position(subject)
        if t > position.t:
            position = position.skip(self._setting.model, t - position.t)
        return position, not skips and (not self.paces or self._asks(transaction, subject, position))

    def _plan_of(
        self, transaction: Transaction, subject: SubjectState, t: int, position: Position, choice: StepChoice | None
    ) -> Plan:
        partners = NO_PARTNERS
        if subject.joint:
            partners = partners_at(transaction, subject.name, t, self._setting, choice)
        return self._setting.plan(position, partners, choice)

    def keep(self, transaction: Transaction, drawn: Drawn) -> None:
        """Keep the belief before a row where so many steps have passed since one may have been kept."""
        layout, befores = drawn.layout, drawn.planned.before
        if len(layout.t) == 1 and befores and (befores[0].t - 1) % _SNAPSHOT_EVERY:
            return
        owner = layout.owner if len(befores) == len(layout.t) else layout.owner[layout.tells]
        for number, before in zip(owner.tolist(), befores, strict=True):
            passed = before.t - 1
            if passed // _SNAPSHOT_EVERY > max(0, drawn.past.item(number) - 1) // _SNAPSHOT_EVERY:
                subject = drawn.subjects[number]
                belief = snapshot_of(before.prior, self._whose(subject, passed))
                transaction.put_snapshot(subject.name, self._setting.query, passed, belief)

    def update(self, drawn: Drawn) -> Answered:
        """What a round tells; its subjects are moved past their rows."""
        if len(drawn.planned.before) == len(drawn.rows.t) == len(drawn.layout.t) == 1:
            # One row, which was not stored before: what nearly every release of a session is.
            return self._one(drawn)
        again = self._again(drawn)
        for number, steps in _skipped_alone(drawn.layout):
            subject = drawn.subjects[number]
            position = self.position(subject, int(drawn.past[number]))
            subject.posterior = position.predict_through(self._setting.model, position.t + steps - 1).prior
            subject.position = position.skip(self._setting.model, steps)
        told = np.flatnonzero(drawn.layout.tells)
        row, owner = drawn.row.take(drawn.layout.row[told]), drawn.layout.owner[told]
        z = drawn.z[told].reshape(-1, self._setting.space.dimension)
        fresh = self._fresh(drawn, row, owner, drawn.planned.plan_of[told], z)
        return fresh if again is None else together([fresh, again])

    def _one(self, drawn: Drawn) -> Answered:
        """`_fresh` for the only row, which is of the only request."""
        layout, planned = drawn.layout, drawn.planned
        plan = planned.plans[0] if planned.plans else None
        self._move(drawn.subjects[layout.owner.item()], planned.before[0], plan, drawn.z[0])
        return Answered(
            row=drawn.row,
            z=drawn.z,
            plans=planned.plans,
            plan=planned.plan_of,
            secure=alike(drawn.secure, 1),
            fresh=ONE_ASKED,
            skipped=layout.steps.item() - 1,
            drifted=drawn.drifted,
        )

    def _fresh(self, drawn: Drawn, row: IntArray, owner: IntArray, plan: IntArray, z: IntArray) -> Answered:
        """The rows (n,) that were stored now; each moves its subject from where it was planned."""
        planned, n = drawn.planned, len(z)
        told = [(drawn.subjects[number], before) for number, before in zip(owner.tolist(), planned.before, strict=True)]
        left: Iterable[int] = range(n)
        if planned.blocked is not None:
            left = self._move_together(planned.blocked, told, z)
        for place in left:
            self._move(*told[place], planned.plans[plan[place]] if plan[place] >= 0 else None, z[place])
        skipped = sum(drawn.layout.steps.tolist()) - n
        secure, fresh = alike(drawn.secure, n), alike(True, n)
        return Answered(row, z, planned.plans, plan, secure, fresh, skipped, drawn.drifted)

    def _move_together(self, blocked: Blocked, told: list[tuple[SubjectState, Position]], z: IntArray) -> list[int]:
        """Move the subjects whose beliefs are in a block; the rows that are left."""
        model, row = self._setting.model, blocked.beliefs
        own, left = np.flatnonzero(row >= 0), np.flatnonzero(row < 0).tolist()
        moved = blocked.block.move(row[own], z[own], model)
        for at, place in enumerate(own.tolist()):
            posterior, prior = moved.beliefs(at)
            if posterior is None:
                left.append(place)
                continue
            subject, before = told[place]
            subject.position, subject.posterior = self._after(before, posterior, prior), posterior
        return left

    def _after(self, before: Position, posterior: Belief, prior: Belief | None) -> Position:
        """Where a subject stands after a step; ``prior`` is what a block says, None where floats do not serve."""
        model = self._setting.model
        if prior is None or not model.time_homogeneous:
            return before.predict(model, posterior)
        return Position(before.t + 1, prior)

    def _move(self, subject: SubjectState, before: Position, plan: Plan | None, z: IntArray) -> None:
        """Move a subject past a step. Without a plan z says nothing."""
        posterior = before.prior if plan is None else before.posterior(plan, z)
        subject.position, subject.posterior = before.predict(self._setting.model, posterior), posterior

    def _again(self, drawn: Drawn) -> Answered | None:
        """The rows that were stored before, None where there is none; each moves its subject past stored steps."""
        old = np.flatnonzero(drawn.rows.t <= drawn.past[drawn.rows.owner]).tolist()
        owners, steps = drawn.rows.owner[old].tolist(), drawn.rows.t[old].tolist()
        passed = self._passed([(drawn.subjects[number], t) for number, t in zip(owners, steps, strict=True)])
        found: list[tuple[int, Plan | None, Entry]] = []
        for place, t, step in zip(old, steps, passed, strict=True):
            if step is not None and self._is_of(step, t, bool(drawn.rows.asked[place])):
                found.append((int(drawn.row[place]), step.plan, step.entry))
        if not found:
            return None
        row, plans, entries = zip(*found, strict=True)
        nothing, asked = (0,) * self._setting.space.dimension, np.array([plan is not None for plan in plans])
        return Answered(
            row=np.array(row, dtype=np.int64),
            z=np.array([entry.z or nothing for entry in entries], dtype=np.int64),
            plans=[plan for plan in plans if plan is not None],
            plan=np.where(asked, np.cumsum(asked) - 1, -1),
            secure=np.array([entry.secure for entry in entries], dtype=np.bool_),
            fresh=np.zeros(len(plans), dtype=np.bool_),
        )

    def _asks(self, transaction: Transaction, subject: SubjectState, position: Position) -> bool:
        """Whether a paced schedule asks at the step that a subject stands before: published values alone decide."""
        if subject.origin not in self._schedules:
            self._schedules[subject.origin] = schedule_of(self._setting, subject.origin)
        schedule = self._schedules[subject.origin]
        if schedule is not None and schedule.promise.local is not None:
            schedule = schedule.beside(transaction.blocks(subject.name))
        room = transaction.room(subject.name, position.t)
        if schedule is None or room is None:
            raise DphmmError("release: a paced schedule without the promise that it paces; nothing was drawn")
        return schedule.asks(position.t, spread(position.prior, self._setting.space), room)

    def _is_of(self, step: Walked, t: int, asked: bool) -> bool:
        """Whether a stored step is the release of row ``t``, or the skip of one that was not asked."""
        if step.plan is not None:
            return step.entry.t == t
        return step.entry.through == t and (self.paces or not asked)

    def position(self, subject: SubjectState, last: int | None = None) -> Position:
        """Where a subject stands after its last stored step, or another one; it is moved there."""
        self._passed([(subject, subject.last if last is None else last)])
        assert isinstance(subject.position, Position)
        return subject.position

    def _passed(self, asked: Sequence[tuple[SubjectState, int]]) -> list[Walked | None]:
        """Move subjects, each named once, past their stored steps that begin by a step; the last one of each."""
        left = [deque(self._stored(subject, last)) for subject, last in asked]
        steps: list[Walked | None] = [None] * len(asked)
        while numbers := [number for number, entries in enumerate(left) if entries]:
            coming = [(asked[number][0], left[number].popleft()) for number in numbers]
            for number, step in zip(numbers, self._walked(coming), strict=True):
                steps[number], subject = step, asked[number][0]
                subject.position, subject.posterior = step.after, step.posterior
        return steps

    def _stored(self, subject: SubjectState, last: int) -> list[Entry]:
        """The stored steps from where a subject stands that begin by ``last``."""
        if subject.position is None:
            subject.position = self._snapshot(subject, last) or self._setting.first()
        assert isinstance(subject.position, Position)
        if subject.position.t > last:
            return []
        return subject.take(self._ledger, self._setting.query, subject.position.t, last)

    def _walked(self, coming: Sequence[tuple[SubjectState, Entry]]) -> list[Walked]:
        """The next stored step of each of some subjects."""
        found: dict[int, Walked] = {}
        before = [self._place(subject) for subject, _ in coming]
        entries = [entry for _, entry in coming]
        block, row_of = self._together(
            place.prior for place, entry in zip(before, entries, strict=True) if entry.z is not None
        )
        if block is not None:
            found = self._walked_together(block, row_of, before, entries)
        return [
            found.get(number) or next(walk(self._setting, place, [entry], self._ledger.plan))
            for number, (place, entry) in enumerate(zip(before, entries, strict=True))
        ]

    def _walked_together(
        self, block: Block, row_of: dict[int, int], before: list[Position], entries: list[Entry]
    ) -> dict[int, Walked]:
        """The steps, by number, whose plans a block has made as they were recorded: the same hash.

        Their records are not read, so a damaged one is not found here.
        """
        own: list[tuple[int, int, Plan]] = []
        z: list[tuple[int, ...]] = []
        for number, (place, entry) in enumerate(zip(before, entries, strict=True)):
            row = row_of.get(id(place.prior), -1)
            made = None if row < 0 else block.plans[row]
            if made is not None and entry.z is not None and made.hash == entry.plan_hash:
                own.append((number, row, made))
                z.append(of_space(entry.z, self._setting.space.dimension))
        if not own:
            return {}
        rows = np.array([row for _, row, _ in own])
        moved = block.move(rows, np.array(z, dtype=np.int64), self._setting.model)
        found: dict[int, Walked] = {}
        for at, (number, _, plan) in enumerate(own):
            posterior, prior = moved.beliefs(at)
            if posterior is not None:
                after = self._after(before[number], posterior, prior)
                found[number] = Walked(entries[number], plan, posterior, after)
        return found

    @staticmethod
    def _place(subject: SubjectState) -> Position:
        assert isinstance(subject.position, Position)
        return subject.position

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
        if self._options is None or self._options[0] != subject.origin:
            self._options = subject.origin, self._setting.header(subject.name, subject.origin).options_text
        told = [_SNAPSHOT_VERSION, subject.name, self._setting.query, self._options[1], t]
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
    """Subjects with a skip and no row after it, and how many steps."""
    if layout.tells.all():
        return []
    alone = ~layout.tells & ~np.isin(layout.owner, layout.owner[layout.tells])
    return list(zip(layout.owner[alone].tolist(), layout.steps[alone].tolist(), strict=True))


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
        z = of_space(entry.z, setting.space.dimension)
        posterior = position.posterior(made, np.array(z, dtype=np.int64))
        position = position.predict(setting.model, posterior)
        yield Walked(entry, made, posterior, position)
