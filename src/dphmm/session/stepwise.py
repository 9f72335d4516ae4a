"""Rounds of a release whose plans depend on earlier answers: each has one row of a subject, planned from its belief.

Proofs: docs/proofs/promise.md, docs/proofs/support.md.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dphmm.accounting.ledger import Entry, Ledger, PlanRecord, Transaction
from dphmm.accounting.promise import Schedule
from dphmm.accounting.records import of_space
from dphmm.errors import DphmmError
from dphmm.markov.filtering import Belief
from dphmm.session.block import Block, Blocked, Blocks, DeltaSets
from dphmm.session.options import StepChoice
from dphmm.session.plan import (
    ALGORITHM_VERSION,
    NO_PARTNERS,
    Position,
    StepPlan,
    check_made_again,
    spread,
)
from dphmm.session.rounds import (
    PlannedRequests,
    StepRequests,
    StepRows,
    StoredRows,
    SubjectState,
    partners_at,
    schedule_of,
)
from dphmm.session.setting import Setting
from dphmm.types import BoolArray, IntArray

#: A belief is kept so often; what comes after it is folded when a subject is resumed.
_SNAPSHOT_EVERY = 64
#: Another version of the algorithm may have made other beliefs, and other plans of them; so does another end of a gap.
_SNAPSHOT_VERSION = f"{ALGORITHM_VERSION}.2"
#: Bytes that say whose belief, and after which step, a snapshot is.
_WHOSE = 16


@dataclass(eq=False, slots=True)
class Pending:
    """A request of a row's own step, and where its subject stands before it; ``choice`` is what was chosen for it.

    ``plan_set`` is None where it is not ``asked``. ``row`` is its place in δ-sets that are found together, -1 for none.
    """

    request: int
    subject: SubjectState
    position: Position
    choice: StepChoice | None
    asked: bool
    plan_set: BoolArray | None = None
    row: int = -1

    @property
    def alone(self) -> bool:
        """True if more than the belief decides its plan."""
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

    def predict(
        self, transaction: Transaction, subjects: Sequence[SubjectState], layout: StepRequests
    ) -> list[Pending]:
        """The told requests and the positions of their subjects before the steps. Raises as `walk` for stored steps."""
        pending = []
        for request in layout.served.tolist():
            subject, t = subjects[layout.owner.item(request)], layout.t.item(request)
            position = subject.position
            if position is None or position.t <= subject.last:
                position = self.position(subject)
            if t > position.t:
                position = position.skip(self._setting.model, t - position.t)
            asked = not layout.skips[request] and (not self.paces or self._asks(transaction, subject, position))
            pending.append(Pending(request, subject, position, layout.choice(layout.row.item(request)), asked))
        return pending

    def constrain(self, predicted: list[Pending]) -> tuple[list[Pending], DeltaSets | None]:
        """Fill the plan sets of requests that are asked; the δ-sets of several are found together."""
        rule = self._setting.options.constraint
        together, row_of = self._together([step.position.prior for step in predicted if step.asked and not step.alone])
        for step in predicted:
            if together is not None and not step.alone:
                step.row = row_of.get(id(step.position.prior), -1)
            if together is not None and step.row >= 0 and together.decided[step.row]:
                step.plan_set = together.plan[step.row]
            elif step.asked:
                step.plan_set = step.position.constrain(rule)
        return predicted, together

    def plan(
        self,
        transaction: Transaction,
        subjects: Sequence[SubjectState],
        layout: StepRequests,
        constrained: tuple[list[Pending], DeltaSets | None],
    ) -> PlannedRequests:
        """The plans of requests that are asked. Raises as the planner does."""
        pending, together = constrained
        block = None if together is None else together.blocks.plan(together)
        numbers: dict[str, int] = {}
        plans: list[StepPlan] = []
        rows: list[int] = []
        plan_of, beliefs = [-1] * len(layout.t), [-1] * len(pending)
        for at, step in enumerate(pending):
            plan_set, row = step.plan_set, step.row
            if plan_set is None:
                continue
            plan: StepPlan | None = None if block is None or row < 0 else block.plans[row]
            if plan is None:
                # A plan is kept: of a copy, so as not to keep the plan sets of the whole block.
                plan_set, row = plan_set if row < 0 else plan_set.copy(), -1
                partners, planner = NO_PARTNERS, self._setting.under(step.choice).planner
                if step.subject.joint:
                    where = step.subject.name, step.position.t
                    partners = partners_at(transaction, *where, self._setting, step.choice)
                plan = planner.plan(step.position.prior.support, plan_set, partners, step.choice)
            number = numbers.setdefault(plan.hash, len(plans))
            if number == len(plans):
                plans.append(plan)
                rows.append(row)
            plan_of[step.request], beliefs[at] = number, row
        blocked = None
        if block is not None:
            blocked = Blocked(block, np.array(rows, dtype=np.int64), np.array(beliefs, dtype=np.int64))
        return PlannedRequests(plans, np.array(plan_of, dtype=np.int64), [step.position for step in pending], blocked)

    def _together(self, priors: Sequence[Belief]) -> tuple[DeltaSets | None, dict[int, int]]:
        """The plan sets of priors, where there are several that floats hold, and the row of each by its id."""
        if self._blocks is None or len(priors) < 2:
            return None, {}
        fit = [prior for prior in {id(prior): prior for prior in priors}.values() if prior.latent.row is not None]
        if len(fit) < 2:
            return None, {}
        return self._blocks.constrain(fit), {id(prior): row for row, prior in enumerate(fit)}

    def keep(
        self,
        transaction: Transaction,
        subjects: Sequence[SubjectState],
        layout: StepRequests,
        planned: PlannedRequests,
        past: IntArray,
    ) -> None:
        """Keep the belief before a row where so many steps have passed since one may have been kept."""
        befores = planned.before
        if len(layout.t) == 1 and befores and (befores[0].t - 1) % _SNAPSHOT_EVERY:
            return
        for number, before in zip(layout.owner[layout.served].tolist(), befores, strict=True):
            passed = before.t - 1
            if passed // _SNAPSHOT_EVERY > max(0, past.item(number) - 1) // _SNAPSHOT_EVERY:
                subject = subjects[number]
                belief = snapshot_of(before.prior.latent, self._whose(subject, passed))
                transaction.put_snapshot(subject.name, self._setting.query, passed, belief)

    def condition(
        self, subjects: Sequence[SubjectState], layout: StepRequests, planned: PlannedRequests, z: IntArray
    ) -> None:
        """Move subjects past the requests of a round, each from where it was planned, given its answer."""
        model = self._setting.model
        for number, steps in _skipped_alone(layout) if len(layout.served) < len(layout.t) else ():
            subject = subjects[number]
            position = self.position(subject, subject.last - steps)
            subject.posterior = position.predict_through(model, position.t + steps - 1).prior
            subject.position = position.skip(model, steps)
        served = layout.served
        owner, plan_of = layout.owner[served].tolist(), planned.plan_of[served].tolist()
        left: Iterable[int] = range(len(served))
        if planned.blocked is not None:
            row = planned.blocked.beliefs
            together, left = np.flatnonzero(row >= 0), np.flatnonzero(row < 0).tolist()
            positions = [planned.before[place] for place in together.tolist()]
            moved = self._moved(planned.blocked.block, row[together], z[served[together]], positions)
            for place, after in zip(together.tolist(), moved, strict=True):
                if after is None:
                    left.append(place)
                else:
                    subject = subjects[owner[place]]
                    subject.posterior, subject.position = after
        for place in left:
            subject, before, number = subjects[owner[place]], planned.before[place], plan_of[place]
            subject.posterior = (
                before.condition(planned.plans[number], z[served.item(place)]) if number >= 0 else before.prior
            )
            subject.position = before.predict(model, subject.posterior)

    def _moved(
        self, block: Block, rows: IntArray, z: IntArray, before: Sequence[Position]
    ) -> list[tuple[Belief, Position] | None]:
        """The beliefs of rows (m,) given answers (m, 2), and their subjects' next positions; None where floats fail."""
        model, positions = self._setting.model, list[tuple[Belief, Position] | None]()
        moved = block.move(rows, z, model, np.array([place.t + 1 + place.ahead for place in before], np.int64))
        for at, place in enumerate(before):
            posterior, prior = (belief and place.prior.of_latent(belief) for belief in moved.beliefs(at))
            if posterior is None:
                positions.append(None)
            elif prior is None:
                positions.append((posterior, place.predict(model, posterior)))
            else:
                positions.append((posterior, Position(place.t + 1, prior, place.ahead)))
        return positions

    def stored(self, subjects: Sequence[SubjectState], rows: StepRows, old: IntArray) -> StoredRows:
        """The stored plans and entries of rows ``old`` (k,); each moves its subject past its step."""
        owners, t, asked = (column[old].tolist() for column in (rows.owner, rows.t, rows.asked))
        passed = self._passed([(subjects[number], step) for number, step in zip(owners, t, strict=True)])
        # Late rows have no step that ends at theirs; a row that was not asked has the skip of it.
        fits = [
            step is not None and step.entry.through == end and (step.plan is not None or self.paces or not was)
            for step, end, was in zip(passed, t, asked, strict=True)
        ]
        steps = [step for step, fit in zip(passed, fits, strict=True) if fit and step is not None]
        return StoredRows(old[fits], [step.plan for step in steps], [step.entry for step in steps])

    def _asks(self, transaction: Transaction, subject: SubjectState, position: Position) -> bool:
        """True if a paced schedule asks at the step of a subject's position: published values alone decide."""
        if subject.origin not in self._schedules:
            self._schedules[subject.origin] = schedule_of(self._setting, subject.origin)
        schedule = self._schedules[subject.origin]
        if schedule is not None and schedule.promise.local is not None:
            schedule = schedule.beside(transaction.blocks(subject.name))
        room = transaction.room(subject.name, position.t)
        if schedule is None or room is None:
            raise DphmmError("release: a paced schedule without the promise that it paces; nothing was drawn")
        return schedule.asks(position.t, spread(position.prior, self._setting.space), room)

    def position(self, subject: SubjectState, last: int | None = None) -> Position:
        """The position of a subject after its last stored step, or another one; it is moved there."""
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
            subject.position = self._snapshot(subject, last) or self._setting.first(subject.origin)
        assert isinstance(subject.position, Position)
        if subject.position.t > last:
            return []
        return subject.take(self._ledger, self._setting.query, subject.position.t, last)

    def _walked(self, coming: Sequence[tuple[SubjectState, Entry]]) -> list[Walked]:
        """The next stored step of each of some subjects."""
        walked: dict[int, Walked] = {}
        before = [subject.position for subject, _ in coming if subject.position is not None]
        entries = [entry for _, entry in coming]
        together, row_of = self._together(
            [place.prior for place, entry in zip(before, entries, strict=True) if entry.z is not None]
        )
        if together is not None:
            walked = self._walked_together(together.blocks.plan(together), row_of, before, entries)
        return [
            walked.get(number) or next(walk(self._setting, place, [entry], self._ledger.plan))
            for number, (place, entry) in enumerate(zip(before, entries, strict=True))
        ]

    def _walked_together(
        self, block: Block, row_of: dict[int, int], before: list[Position], entries: list[Entry]
    ) -> dict[int, Walked]:
        """The steps, by number, whose plans a block has made as they were recorded: the same hash.

        Their records are not read, so a damaged one is not found here.
        """
        recorded: list[tuple[int, int, StepPlan]] = []
        z: list[tuple[int, ...]] = []
        for number, (place, entry) in enumerate(zip(before, entries, strict=True)):
            row = row_of.get(id(place.prior), -1)
            made = None if row < 0 else block.plans[row]
            if made is not None and entry.z is not None and made.hash == entry.plan_hash:
                recorded.append((number, row, made))
                z.append(of_space(entry.z, self._setting.space.dimension))
        if not recorded:
            return {}
        rows, places = np.array([row for _, row, _ in recorded]), [before[number] for number, _, _ in recorded]
        moved = self._moved(block, rows, np.array(z, dtype=np.int64), places)
        walked: dict[int, Walked] = {}
        for (number, _, plan), after in zip(recorded, moved, strict=True):
            if after is not None:
                walked[number] = Walked(entries[number], plan, *after)
        return walked

    def _snapshot(self, subject: SubjectState, last: int) -> Position | None:
        """The position after the subject's snapshot, if the snapshot is of a step before ``last``."""
        # None is kept of an earlier step: whoever begins asks the ledger for nothing.
        snapshot = self._ledger.snapshot(subject.name, self._setting.query) if last > _SNAPSHOT_EVERY else None
        if snapshot is None or snapshot[0] >= last:
            return None
        prior = belief_of(snapshot[1], self._whose(subject, snapshot[0]), self._setting.model.n_states)
        first = self._setting.first(subject.origin)
        return None if prior is None else Position(snapshot[0] + 1, first.prior.of_latent(prior), first.ahead)

    def _whose(self, subject: SubjectState, t: int) -> bytes:
        """Sixteen bytes that a snapshot after step ``t`` begins with: under another session or step it is none."""
        if self._options is None or self._options[0] != subject.origin:
            self._options = subject.origin, self._setting.header(subject.name, subject.origin).options_text
        facts = [_SNAPSHOT_VERSION, subject.name, self._setting.query, self._options[1], t]
        return hashlib.sha256(json.dumps(facts).encode()).digest()[:_WHOSE]


def snapshot_of(belief: Belief, whose: bytes) -> bytes:
    """A belief as bytes: its owner, its scale (logs or not), the numbers (N,) and the support, a bit for each state."""
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


def _skipped_alone(layout: StepRequests) -> list[tuple[int, int]]:
    """Subjects with a skip and no row after it, and how many steps."""
    alone = ~np.isin(layout.owner, layout.owner[layout.served])
    return list(zip(layout.owner[alone].tolist(), layout.steps[alone].tolist(), strict=True))


class Walked(NamedTuple):
    """A stored step: its plan (None for a skip), the belief given it, and where the subject stands after it."""

    entry: Entry
    plan: StepPlan | None
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
        posterior = position.condition(made, np.array(z, dtype=np.int64))
        position = position.predict(setting.model, posterior)
        yield Walked(entry, made, posterior, position)
