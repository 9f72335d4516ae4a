"""One subject's releases followed as anybody can follow them: their plans, and the beliefs that they leave.

The history is the ledger's where there is one, else the released rows. Supports are moved here by sets; beliefs, which
δ-sets and paced steps hang on, are the session's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dphmm.accounting.ledger import Entry, Ledger
from dphmm.accounting.moments import first_number
from dphmm.audit.findings import Findings
from dphmm.audit.history import first_support, hidden, left_possible, moved_through
from dphmm.audit.verify import Verdict, verify
from dphmm.errors import DphmmError, InvalidInput
from dphmm.policy.constraint import DeltaSet
from dphmm.session.plan import Position, StepPlan, plan_states, recorded_joint_edges, spread
from dphmm.session.planner import Planner
from dphmm.session.rounds import check_gap
from dphmm.session.setting import Setting, Subjects
from dphmm.types import BoolArray, IntArray

#: Masses of δ-sets may differ by this between machines.
_MASS = 1e-9
#: Lattice coordinates are integers of 64 bits.
_FARTHEST = 2**63 - 1
_NO_PARTNERS = np.zeros((0, 2), dtype=np.int64)


class Answer(NamedTuple):
    """One published row of a history; ``plan`` is "" where it was not asked, and nothing is read of its z.

    ``epsilon`` is the row's, None where it is not at hand.
    """

    t: int
    z: IntArray
    plan: str
    epsilon: float | None = None

    @classmethod
    def of(cls, entry: Entry, dimension: int) -> Answer:
        """The answer of a release in a ledger. Raises InvalidInput for one that no space of this dimension has."""
        if entry.kind == "skip":
            return cls(entry.through, np.zeros(dimension, dtype=np.int64), "")
        z = () if entry.z is None else entry.z
        if len(z) != dimension or not all(abs(coordinate) <= _FARTHEST for coordinate in z):
            raise InvalidInput("ledger", "an answer that this space does not have", "the ledger of this release")
        return cls(entry.t, np.array(z, dtype=np.int64), str(entry.plan_hash))


@dataclass(frozen=True, eq=False)
class Replayed:
    """The plan of one answer, None where it was not asked, and the ``spread`` of the belief before it."""

    plan: StepPlan | None
    spread: float


class _AuditedStep(NamedTuple):
    """The words for a step in a finding, its number in tables where known, and whether a step before it has no row."""

    where: str
    number: int | None
    gaps: bool = False


@dataclass(eq=False)
class Replay:
    """Follows the subjects of a release; every plan that it meets is verified once, ``most`` at most."""

    subjects: Subjects
    ledger: Ledger | None
    findings: Findings
    most: int
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)
    #: Each plan that was verified, with the planner that made it again.
    plans_made: dict[str, tuple[StepPlan, Planner]] = field(default_factory=dict)
    #: Partners, states and choices of plans, as the ledger has them.
    _recorded: dict[str, Any] = field(default_factory=dict)
    #: What only a ledger could decide.
    untold: Findings = field(default_factory=Findings)
    #: By beginning and step; equal ones once, and those that a move leaves as they are.
    _supports: dict[tuple[Setting, int], BoolArray] = field(default_factory=dict)
    _distinct: dict[bytes, BoolArray] = field(default_factory=dict)
    _still: set[bytes] = field(default_factory=set)

    @property
    def setting(self) -> Setting:
        """The setting of the release; a subject may begin elsewhere."""
        return self.subjects.setting

    def follow(self, user: str, history: Sequence[Answer], origin: str = "") -> list[Replayed] | None:
        """The plan and spread of each answer; None, with a finding, if public data do not lead to a plan.

        ``origin``: the moment of the subject's step 1, "" where nothing states it.
        """
        setting = self.subjects.of(user)
        position = setting.first(origin)
        support = first_support(setting.model, setting.options.start)
        replayed: list[Replayed] = []
        for answer in history:
            where = f"user {user!r}, step {answer.t}"
            check_gap(answer.t - position.t)
            if answer.t > position.t:
                support = self._moved(setting, support, position.t, answer.t)
                position = position.skip(setting.model, answer.t - position.t)
            before = spread(position.prior, self.setting.space) if self.setting.paces else 0.0
            if not answer.plan:
                replayed.append(Replayed(None, before))
                position = position.predict(setting.model, position.prior)
                support = self._moved(setting, support, answer.t, answer.t + 1)
                continue
            step = _AuditedStep(where, number_of(origin, answer.t), len(replayed) < answer.t - 1)
            possible = hidden(setting.model, support)
            plan = self._plan(position.prior.support, position, possible, answer, step)
            if plan is None:
                return None
            if not self.findings.require(bool((left_possible(plan, answer.z) & possible).any()), _IMPOSSIBLE, where):
                return None
            posterior = position.condition(plan, answer.z)
            replayed.append(Replayed(plan, before))
            position = position.predict(setting.model, posterior)
            support = self._moved(setting, support, answer.t, answer.t + 1)
        return replayed

    def plans(self, user: str, history: Sequence[Answer], origin: str = "") -> list[StepPlan] | None:
        """The plans of `follow` alone: plans that depend on no answer need no belief."""
        setting = self.subjects.of(user)
        if not setting.has_public_plans or self.ledger is not None or self.subjects.chosen:
            replayed = self.follow(user, history, origin)
            return None if replayed is None else [step.plan for step in replayed if step.plan is not None]
        support, t, plans = first_support(setting.model, setting.options.start), 1, []
        for answer in history:
            support, t = self._moved(setting, support, t, answer.t), answer.t
            possible = hidden(setting.model, support)
            plan = setting.planner.plan(possible, possible)
            for choice in setting.may_be(None)[1:] if plan.hash != answer.plan else ():
                other = setting.planner.plan(possible, possible, _NO_PARTNERS, choice)
                plan = other if other.hash == answer.plan else plan
            if not self.findings.require(plan.hash == answer.plan, _ANOTHER_PLAN, f"user {user!r}, step {t}"):
                return None
            plans.append(plan)
        return plans

    def plan_of(self, user: str, answer: Answer, origin: str = "") -> StepPlan | None:
        """The plan of one answer where none hangs on an answer before it: made again and verified; None as `follow`."""
        setting = self.subjects.of(user)
        support = self._moved(setting, first_support(setting.model, setting.options.start), 1, answer.t)
        support, where = hidden(setting.model, support), f"user {user!r}, step {answer.t}"
        return self._plan(support, None, support, answer, _AuditedStep(where, number_of(origin, answer.t)))

    def _moved(self, setting: Setting, support: BoolArray, t: int, until: int) -> BoolArray:
        """The support at a later step: one for all subjects who begin alike."""
        before = support.tobytes()
        if before in self._still:
            return support
        if (setting, until) not in self._supports:
            after = moved_through(setting.model, support, t, until)
            key = after.tobytes()
            if key == before and until == t + 1:
                self._still.add(key)
            self._supports[setting, until] = self._distinct.setdefault(key, after)
        return self._supports[setting, until]

    def _plan(
        self,
        support: BoolArray,
        position: Position | None,
        moved: BoolArray,
        answer: Answer,
        step: _AuditedStep,
    ) -> StepPlan | None:
        """The plan of an answer, verified on the support (N,) that was ``moved`` by sets; None, with a finding.

        ``position`` is None where plans are on the support.
        """
        where, number, gaps = step
        partners, recorded = _NO_PARTNERS, None
        may = self.subjects.may_have(answer.epsilon, number)
        if self.ledger is not None:
            try:
                if answer.plan not in self._recorded:
                    record = self.ledger.plan(answer.plan)
                    chosen_of = recorded_joint_edges(record), plan_states(record), self.setting.choice_of(record)
                    self._recorded[answer.plan] = chosen_of
                partners, recorded, stored_choice = self._recorded[answer.plan]
            except (InvalidInput, RecursionError):
                self.findings.add("a plan that the ledger does not hold, or holds damaged", where)
                return None
            # The ledger must have the choice that a table names for a step; without a table its record names it.
            may = may if self.subjects.chosen and number is not None else (stored_choice,)
        refused, alone = "", False
        for choice in (allowed for each in may for allowed in self.setting.may_be(each)):
            planner = self.setting.under(choice).planner
            for chosen in [support] if position is None else self._sets(position, recorded):
                try:
                    plan = planner.plan(support, chosen, partners, choice)
                except DphmmError as error:
                    refused = str(error)
                    break
                if plan.hash == answer.plan:
                    self._verify(plan, planner, moved)
                    return plan
                alone |= len(plan.partners) > 0
        if refused and len(may) == 1:
            self.findings.add(f"a step that cannot be planned ({refused})", where)
        elif alone and self.ledger is None:
            self.untold.add(_PARTNERS, where)
        elif gaps and self.ledger is None and not self.setting.has_public_plans:
            self.untold.add(f"an answer whose plan does not follow from the rows before it: {OTHER_FILES}", where)
        else:
            self.findings.add(_ANOTHER_PLAN, where)
        return None

    def _sets(self, position: Position, recorded: BoolArray | None) -> Iterator[BoolArray]:
        """The plan set of a step; then the recorded one, where it is as good."""
        yield position.constrain(self.setting.options.constraint)
        if recorded is not None and self._as_good(position, recorded):
            yield recorded

    def _as_good(self, position: Position, plan_set: BoolArray) -> bool:
        """True if a recorded δ-set is right but for the rounding of another machine."""
        constraint, p = self.setting.options.constraint, position.prior.probability
        if not isinstance(constraint, DeltaSet) or len(plan_set) != len(p):
            return False
        delta_set = position.constrain(self.setting.options.constraint)
        mass = math.fsum(p[plan_set])
        return bool(mass >= 1 - constraint.delta - _MASS) and abs(int(delta_set.sum()) - int(plan_set.sum())) <= 1

    def _verify(self, plan: StepPlan, planner: Planner, support: BoolArray) -> None:
        self.met.add(plan.hash)
        if plan.hash not in self.verdicts and len(self.verdicts) < self.most:
            self.plans_made[plan.hash] = plan, planner
            self.verdicts[plan.hash] = verify(plan, planner.policy, self.setting.space, support=support)


def number_of(origin: str, t: int) -> int | None:
    """The number in tables of a subject's step t, None where its ``origin`` has no number."""
    first = first_number(origin)
    return None if first is None else first + t - 1


_IMPOSSIBLE = "an answer that no possible state gives"
_PARTNERS = (
    "an answer whose plan is not the one that is made here: it may have partners that other queries of the same people "
    "fixed, which a ledger tells"
)
OTHER_FILES = "steps before it have no row here, and other files may have answers to them: give --ledger"
_ANOTHER_PLAN = (
    "an answer whose plan is not the one that model, policy, epsilon and options make: one of them is another, or "
    "answers before it are missing or changed"
)
