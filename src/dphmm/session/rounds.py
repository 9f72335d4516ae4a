"""Algorithm 2 of the DPHMM paper, once, over columns: its lines in order in `Engine._round`.

=====  ==================================  ======================  ==================================================
line   in the paper                        of a round              the formula
=====  ==================================  ======================  ==================================================
1      p⁻ ← p⁺ M (Markov transition)       `Beliefs.predict`       `Position.predict`; `Position.skip` through gaps
2      C ← {s : p⁻[s] > 0} (constraint)    `Beliefs.constrain`     `Position.constrain`
3      G ← Algorithm 1 (protectable)       `Beliefs.plan`          `dphmm.sensitivity.protection.protect`
4      K(G), and its mechanism             `Beliefs.plan`          `dphmm.mechanisms.registry.mechanism_for`
4      z ← mechanism(f(s*), K(G))          ``answer``              `dphmm.session.answer.answer_under`
5      p⁺ by Equation 2 (inference)        `Beliefs.condition`     `Position.condition`
=====  ==================================  ======================  ==================================================

The transition of line 1 is made at the end of the step before, so that a session shows its prior. Only line 4 is given
true states. Before it the ledger admits the requests of a round (`Transaction.admit_many`), and after it stores them
(`Transaction.add_many`). Nothing is shown before the commit: until then beliefs are ahead of the ledger, and they are
folded from it again where the commit fails. Estimates are no part of it, they are views. The δ-sets of several subjects
go through lines 2 to 5 together, to the same bits, in `dphmm.session.block`.

A round is a set of rows whose plans are known before any of them is answered. If plans are public in advance, one
round holds every row; if they depend on answers, a round holds at most one row of each subject. A session is a table
of one row.

Words: noise is drawn plan by plan, in the order of the first row (by subject, then step) that uses each; within a plan
row by row.

Several queries of one subject: the corrected Theorem 7.1 keeps a state without an edge hidden behind one partner. That
needs the same steps, the same policy and model, and partners for every possible state (so no δ-sets).

Rows of many subjects become requests (`StepRequests`): a release for each new row, and before it a skip where steps lie
between.

Proofs: docs/proofs/promise.md, docs/proofs/ledger.md, docs/proofs/joint-queries.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from dphmm import _kernels
from dphmm.accounting.budget import UNLIMITED
from dphmm.accounting.ledger import Caps, Entry, Ledger, Request, Requests, SequencePromise, SessionHeader, Transaction
from dphmm.accounting.moments import NO_MOMENT, first_number
from dphmm.accounting.person import person_key
from dphmm.accounting.promise import Schedule
from dphmm.accounting.records import of_space
from dphmm.errors import DphmmError, InvalidInput
from dphmm.markov.filtering import Belief
from dphmm.samplers.entropy import is_secure
from dphmm.session.answer import answer
from dphmm.session.block import Blocked
from dphmm.session.options import StepChoice, check_same_policy
from dphmm.session.plan import Position, StepPlan, all_partners
from dphmm.session.setting import Setting, as_kept, option_words
from dphmm.types import Bits, BoolArray, IntArray

#: Most steps that one skip may pass over: a belief is moved through each of them.
MOST_SKIPPED = 2**26

#: The columns of one request for the next step.
_ONE_STEP, FIRST_ROW = np.ones(1, np.int64), np.zeros(1, np.int64)
ONE_ASKED, _NO_SKIP = np.ones(1, np.bool_), np.zeros(1, np.bool_)
for _column in (_ONE_STEP, FIRST_ROW, ONE_ASKED, _NO_SKIP):
    _column.setflags(write=False)


def alike(value: bool, n: int) -> BoolArray:
    """A column (n,) of one value, not to be written to."""
    if n == 1:
        return ONE_ASKED if value else _NO_SKIP
    return np.full(n, value)


def check_gap(steps: int) -> None:
    """Refuse to skip so many steps."""
    if steps > MOST_SKIPPED:
        raise InvalidInput("t", f"a gap of {steps} steps", f"at most {MOST_SKIPPED} steps without a release")


class StepRows(NamedTuple):
    """Rows (n,) by subject and step: the number of the subject, the step, and whether a schedule lets it be asked.

    ``choices`` (n,) are what was chosen for single steps; None where nothing may be. ``moment`` (n,) is what the steps
    stand for where they are ranks (`dphmm.accounting.moments`), else None. No true state is among them.
    """

    owner: IntArray
    t: IntArray
    asked: BoolArray
    choices: Sequence[StepChoice | None] | None = None
    moment: IntArray | None = None

    def take(self, row: IntArray) -> StepRows:
        """Some of the rows."""
        choices = None if self.choices is None else [self.choices[place] for place in row.tolist()]
        moment = None if self.moment is None else self.moment[row]
        return StepRows(self.owner[row], self.t[row], self.asked[row], choices, moment)


class StepRequests(NamedTuple):
    """Requests (m,) to the ledger: the subject, its first step, how many steps, the row it serves, whether it skips.

    ``served`` (k,) are the requests of a row's own step: neither a skip ahead of a row nor one without a row.
    ``choices`` and ``moment`` are those of the rows.
    """

    owner: IntArray
    t: IntArray
    steps: IntArray
    row: IntArray
    skips: BoolArray
    served: IntArray
    choices: Sequence[StepChoice | None] | None = None
    moment: IntArray | None = None

    @property
    def moments(self) -> IntArray | None:
        """The moments of the requests' steps (m,); None if they are not kept."""
        if self.moment is None:
            return None
        moments = np.full(len(self.t), NO_MOMENT)
        moments[self.served] = self.moment[self.row[self.served]]
        return moments

    def choice(self, row: int) -> StepChoice | None:
        """The choice for a row; None if there is none."""
        return None if self.choices is None else self.choices[row]

    @classmethod
    def of(cls, rows: StepRows, last: IntArray) -> StepRequests:
        """The requests of the rows after the ``last`` step of each subject.

        Raises InvalidInput for rows out of order, and for a gap of too many steps.
        """
        n = len(rows.t)
        if n == 1 and rows.t.item() == last.item(rows.owner.item()) + 1:
            # The next step of one subject: what nearly every release of a session is.
            return cls(rows.owner, rows.t, _ONE_STEP, FIRST_ROW, _NO_SKIP if rows.asked[0] else ONE_ASKED, FIRST_ROW)
        requests = np.empty((6, 2 * n), dtype=np.int64)
        count = _kernels.rows.lay_out(rows.owner, rows.t, rows.asked, last, MOST_SKIPPED, requests)
        if count < -n:
            check_gap(int(rows.t[-1 - n - count] - _before(rows, last, -1 - n - count) - 1))
        if count < 0:
            raise InvalidInput("rows", f"row {-1 - count} out of order", "rows by subject and step, each step once")
        owner, t, steps, row, skips, tells = requests[:, :count]
        return cls(owner, t, steps, row, skips.astype(np.bool_), np.flatnonzero(tells))


def _before(rows: StepRows, last: IntArray, row: int) -> int:
    """The last step before a row."""
    before = int(last[rows.owner[row]])
    same = row > 0 and rows.owner[row] == rows.owner[row - 1]
    return max(before, int(rows.t[row - 1])) if same else before


_SHARED = ("origin", "model", "policy", "start", "initial")


def check_joint(header: SessionHeader, other: SessionHeader) -> None:
    """Refuse a query beside another one of the same subject when the two together would promise less."""
    beside = f"because the subject has the query {other.query!r} too"
    for name in _SHARED:
        option, stored = header.options.get(name), other.options.get(name)
        if option != stored:
            raise InvalidInput(name, option_words(name, option), f"{option_words(name, stored)}, {beside}")
    rules = [options.get("answer") for options in (header.options, other.options)]
    if None not in rules and rules[0] != rules[1]:
        # Both would be about one step, and about two states.
        raise InvalidInput("answer", str(rules[0]), f"{rules[1]}, {beside}")
    for options in (header.options, other.options):
        if options.get("constraint") != "support":
            raise InvalidInput("constraint", str(options.get("constraint")), f"support in both, {beside}")


def caps_of(caps: Caps, setting: Setting, origin: str) -> Caps:
    """The caps for a subject whose step 1 is ``origin``."""
    return caps if caps.promise is None else replace(caps, promise=promise_of(caps.promise, setting, origin))


def promise_of(promise: SequencePromise, setting: Setting, origin: str) -> SequencePromise:
    """A promise in numbers of steps, for a subject whose step 1 is ``origin``. Raises as `SequencePromise.in_steps`."""
    if not isinstance(promise.per, str):
        return promise
    number = first_number(origin)
    if number is None or "@" in origin:
        expected = "the number of step 1's time bin since 1970: blocks of a time begin by the clock"
        raise InvalidInput("origin", origin or "nothing", expected)
    return promise.in_steps(setting.model.step, number)


def schedule_of(
    setting: Setting, origin: str, ledger: Ledger | Transaction | None = None, subject: str | None = None
) -> Schedule | None:
    """The schedule of a setting in numbers of steps, for a subject whose step 1 is ``origin``; None for every step.

    Its blocks of local days are those that the ledger has. Staggered it needs the ``subject``, whose own it is. Raises
    as `promise_of` does, and where a block has fewer steps than the schedule names.
    """
    schedule = setting.schedule
    if schedule is None:
        return None
    schedule = schedule.of(person_key(subject)) if schedule.seed and subject is not None else schedule
    if not isinstance(schedule.promise.per, str):
        return schedule
    promise_of(schedule.promise, setting, origin)
    placed = schedule.in_steps(setting.model.step, int(origin))
    if ledger is None or subject is None or placed.promise.local is None:
        return placed
    return placed.beside(ledger.blocks(subject))


def partners_at(
    ledger: Ledger | Transaction, subject: str, t: int, setting: Setting, choice: StepChoice | None = None
) -> IntArray:
    """The partners (p, 2) that a subject's other queries have fixed for a step.

    Raises InvalidInput where one of them was released under another policy than this step would be.
    """
    plans = ledger.plans_at(subject, t, setting.query)
    for plan in plans:
        check_same_policy(setting.under(choice).policy.digest, plan, setting.policy.digest, t)
    return all_partners(plans)


#: A version that no account has.
_UNKNOWN = -1
NO_NUMBERS: IntArray = np.zeros(0, dtype=np.int64)
_NONE: BoolArray = np.zeros(0, dtype=np.bool_)


@dataclass(eq=False)
class SubjectState:
    """The state of a subject; all of it can be folded from the ledger again.

    ``last`` is its last stored step as of the last look; ``joint`` is True if it has other queries. ``position`` is the
    belief before its next step, None before step 1; ``posterior`` is the belief given the step before. Both stay None
    if no belief is kept. ``stored`` are steps that were read and not yet passed. ``version`` is that of its account at
    the last committed transaction: while the ledger has the same version, there is nothing new to read. ``ahead``: the
    belief includes rounds that are not committed yet; their transaction may be rolled back.
    """

    name: str
    origin: str = ""
    version: int = _UNKNOWN
    ahead: bool = False
    last: int = 0
    opened: bool = False
    joint: bool = False
    position: Position | None = None
    posterior: Belief | None = None
    stored: deque[Entry] = field(default_factory=deque)

    def fold_again_before(self, t: int) -> None:
        """Forget a belief of a later step than ``t``; it is folded from the ledger when somebody asks for it."""
        if self.position is not None and self.position.t > t:
            self.position, self.posterior = None, None
            self.stored.clear()

    def take(self, ledger: Ledger, query: str, first: int, last: int) -> list[Entry]:
        """The stored steps that begin at ``first`` to ``last``, in order; each is handed out once."""
        if not self.stored or self.stored[0].t > first or self.stored[-1].through < last:
            self.stored = deque(ledger.entries(self.name, query, first))
        while self.stored and self.stored[0].t < first:
            self.stored.popleft()
        taken = []
        while self.stored and self.stored[0].t <= last:
            taken.append(self.stored.popleft())
        return taken


class PlannedRequests(NamedTuple):
    """The plans of a round, and of each request (m,) the number of its plan among them, -1 where none is asked.

    If plans follow beliefs, ``before`` (k,) is the position of the subject of each told request before its step, and
    ``blocked`` the plans that were made together.
    """

    plans: Sequence[StepPlan]
    plan_of: IntArray
    before: Sequence[Position] = ()
    blocked: Blocked | None = None


class StoredRows(NamedTuple):
    """The stored plans and entries of rows ``row`` (k,); the plan is None for the skip of a row that was not asked.

    Late rows are not among them.
    """

    row: IntArray
    plans: Sequence[StepPlan | None]
    entries: Sequence[Entry]


class AnsweredRows(NamedTuple):
    """The results of rows: the caller's ``row`` (n,) has a release or was not asked, and all others came too late.

    ``plan`` (n,) are numbers of ``plans``, -1 for a row that was not asked, whose ``z`` is 0 and says nothing.
    ``fresh``: stored now. ``skipped`` steps without a row and ``drifted`` rows are counted among those stored now.
    """

    row: IntArray
    z: IntArray
    plans: Sequence[StepPlan]
    plan: IntArray
    secure: BoolArray
    fresh: BoolArray
    skipped: int = 0
    drifted: int = 0

    def among(self, rows: BoolArray) -> AnsweredRows:
        """Without all but some of the caller's ``rows`` (n,)."""
        here = rows[self.row]
        return AnsweredRows(
            self.row[here], self.z[here], self.plans, self.plan[here], self.secure[here], self.fresh[here], *self[6:]
        )


class Stored(NamedTuple):
    """Rounds of one transaction, nothing of which may be shown before its commit.

    ``past`` is the last step of each subject before them. ``version`` is that of the account after them, where they are
    of one subject. ``refused`` is the error that stopped the rounds after them. It is raised once these have been
    committed, because it may depend on their answers.
    """

    subjects: Sequence[SubjectState]
    past: IntArray
    answered: Sequence[AnsweredRows]
    version: int
    refused: DphmmError | None = None


#: What is predicted of requests, and what they are planned on: each way has its own form.
P = TypeVar("P")
C = TypeVar("C")


class Beliefs(Protocol[P, C]):
    """The protocol that plans rows and moves beliefs: `dphmm.session.scheduled`, or `dphmm.session.stepwise`."""

    @property
    def at_once(self) -> bool:
        """True if rows are planned before earlier rows of their subject have been answered."""
        ...

    @property
    def paces(self) -> bool:
        """True if beliefs decide which rows are asked: those with a plan."""
        ...

    def predict(self, transaction: Transaction, subjects: Sequence[SubjectState], layout: StepRequests) -> P:
        """The public knowledge before each request's step. No subject is moved. Raises as `walk` for stored steps."""
        ...

    def constrain(self, predicted: P) -> C:
        """The states that each request is planned on."""
        ...

    def plan(
        self, transaction: Transaction, subjects: Sequence[SubjectState], layout: StepRequests, constrained: C
    ) -> PlannedRequests:
        """The plans of requests that are asked. Raises as the planner does."""
        ...

    def keep(
        self,
        transaction: Transaction,
        subjects: Sequence[SubjectState],
        layout: StepRequests,
        planned: PlannedRequests,
        past: IntArray,
    ) -> None:
        """Keep snapshots of beliefs before a round, so that subjects can be resumed without their whole history.

        ``past`` is the last step of each subject before it.
        """
        ...

    def condition(
        self, subjects: Sequence[SubjectState], layout: StepRequests, planned: PlannedRequests, z: IntArray
    ) -> None:
        """Move subjects past the requests of a round, given their answers (m, d)."""
        ...

    def stored(self, subjects: Sequence[SubjectState], rows: StepRows, old: IntArray) -> StoredRows:
        """The stored plans and entries of rows ``old`` (k,), whose steps were stored before."""
        ...


@dataclass(frozen=True, eq=False)
class Engine:
    """Releases rows of many subjects under one setting."""

    setting: Setting
    beliefs: Beliefs[Any, Any]
    caps: Caps
    bits: Bits

    def release(
        self, transaction: Transaction, subjects: Sequence[SubjectState], rows: StepRows, states: IntArray
    ) -> Stored:
        """Draw and store the rows that are not stored yet, in a transaction of the caller's; `show` comes after it.

        ``states`` (n,) are the true states of the rows, -1 for a place that the space does not have. Raises as the
        planner and `Transaction.admit_many` do, before anything is drawn; the refusal of a later round than one
        with an answer is told as ``refused``.
        """
        past = self._look(transaction, subjects)
        for place in _first_rows(rows.owner).tolist():
            # It was moved past a row whose answer its session never had: an interrupt came after the commit.
            subjects[rows.owner.item(place)].fold_again_before(rows.t.item(place))
        answered: list[AnsweredRows] = []
        refused: DphmmError | None = None
        for row, round_rows, true in self._rounds(rows, states):
            try:
                answered.append(self._round(transaction, subjects, row, round_rows, true))
            except DphmmError as error:
                if not any((answers.fresh & (answers.plan >= 0)).any() for answers in answered):
                    raise
                # No rollback: whoever tried again would draw answers until none leads here, and so select among them.
                refused = error
                break
        return Stored(subjects, past, answered, self._version(transaction, subjects), refused)

    def skip(self, transaction: Transaction, subject: SubjectState, steps: int) -> Stored:
        """Store that the coming steps of a subject are skipped."""
        past = self._look(transaction, [subject])
        t, many = np.array([[subject.last + 1], [steps]], dtype=np.int64)
        layout = StepRequests(FIRST_ROW, t, many, FIRST_ROW, ONE_ASKED, NO_NUMBERS)
        rows, states = StepRows(NO_NUMBERS, NO_NUMBERS, _NONE), NO_NUMBERS
        answered = self._round(transaction, [subject], NO_NUMBERS, rows, states, layout)
        return Stored([subject], past, [answered], self._version(transaction, [subject]))

    def show(self, stored: Stored) -> AnsweredRows:
        """The answers of the rounds of a committed transaction, by row."""
        for subject in stored.subjects:
            subject.ahead = False
        if stored.version != _UNKNOWN:
            stored.subjects[0].version = stored.version
        return together(stored.answered) if len(stored.answered) > 1 else stored.answered[0]

    def _look(self, transaction: Transaction, subjects: Sequence[SubjectState]) -> IntArray:
        """Bring what is known of subjects up to date with the ledger, and open their sessions; their last steps."""
        version = self._version(transaction, subjects)
        if version != _UNKNOWN:
            # What this transaction stores is known as soon as it has been told, and not if it is rolled back.
            known, subjects[0].version = subjects[0].version, _UNKNOWN
            if known == version:
                subjects[0].ahead = True
                return np.array([subjects[0].last], dtype=np.int64)
        looked = transaction.look([subject.name for subject in subjects], self.setting.query)
        for subject, history in zip(subjects, looked, strict=True):
            if history.header is None or not subject.opened:
                header = self.setting.header(subject.name, subject.origin)
                if history.header is not None:
                    header = as_kept(header, history.header.options)
                for other in history.others:
                    check_joint(header, other)
                transaction.open_session(header)
                if self.caps != UNLIMITED:
                    transaction.bind(subject.name, caps_of(self.caps, self.setting, subject.origin))
                subject.opened = True
            subject.joint, subject.last = bool(history.others), history.last
            if subject.ahead:
                # Another session may have stored as many steps as were rolled back: none of its belief is kept.
                subject.fold_again_before(0)
            subject.fold_again_before(subject.last + 1)
            subject.ahead = True
        return np.array([subject.last for subject in subjects], dtype=np.int64)

    def _version(self, transaction: Transaction, subjects: Sequence[SubjectState]) -> int:
        """The version of the account of one subject; many are not asked for theirs, as each is looked at anyway."""
        return transaction.version(subjects[0].name) if len(subjects) == 1 else _UNKNOWN

    def _rounds(self, rows: StepRows, states: IntArray) -> list[tuple[IntArray, StepRows, IntArray]]:
        """The rounds of the rows: the row numbers of each, the rows, and their true states."""
        n = len(rows.owner)
        if self.beliefs.at_once or n == 1:
            return [(FIRST_ROW if n == 1 else np.arange(n), rows, states)]
        first = _first_rows(rows.owner)
        rank = np.arange(n) - np.repeat(first, np.diff(first, append=n))
        order = np.argsort(rank, kind="stable")
        parts = np.split(order, np.flatnonzero(np.diff(rank[order])) + 1)
        return [(row, rows.take(row), states[row]) for row in parts]

    def _round(
        self,
        transaction: Transaction,
        subjects: Sequence[SubjectState],
        row: IntArray,
        rows: StepRows,
        states: IntArray,
        layout: StepRequests | None = None,
    ) -> AnsweredRows:
        """Lines 1 to 5 for the requests of a round, in the order that leaves no answer unpaid; return its answers.

        ``row`` are the caller's rows. Stored answers are told, too.
        """
        beliefs, secure, dimension = self.beliefs, is_secure(self.bits), self.setting.space.dimension
        past = np.array([subject.last for subject in subjects], dtype=np.int64)
        layout = layout or StepRequests.of(rows, past)
        if rows.choices is not None or rows.moment is not None:
            layout = layout._replace(choices=rows.choices, moment=rows.moment)
        predicted = beliefs.predict(transaction, subjects, layout)
        constrained = beliefs.constrain(predicted)
        planned = beliefs.plan(transaction, subjects, layout, constrained)
        if beliefs.paces:
            layout = layout._replace(skips=planned.plan_of < 0)
        if len(layout.t) == 1:
            z, drifted = self._one(transaction, subjects, layout, planned, states, secure)
        else:
            admitted = transaction.admit_many(_requests(self.setting, subjects, layout, planned, secure), self.caps)
            wanted = admitted.wanted
            inputs = planned.plan_of[wanted], states[layout.row[wanted]]
            z, drifted = answer(planned.plans, *inputs, self.bits, planned.blocked)
            z = transaction.add_many(admitted, z).z
            z = z if len(wanted) else np.zeros((len(z), dimension), dtype=np.int64)
            for number, t, steps in zip(layout.owner.tolist(), layout.t.tolist(), layout.steps.tolist(), strict=True):
                subjects[number].last = t + steps - 1
        beliefs.keep(transaction, subjects, layout, planned, past)
        beliefs.condition(subjects, layout, planned, z)
        served, plan_of, answers_of = layout.served, planned.plan_of, row
        if not len(served) == len(layout.t) == len(row):
            answers_of, z, plan_of = row[layout.row[served]], z[served], plan_of[served]
        fresh = AnsweredRows(
            row=answers_of,
            z=z.reshape(-1, dimension),
            plans=planned.plans,
            plan=plan_of,
            secure=alike(secure, len(served)),
            fresh=alike(True, len(served)),
            skipped=sum(layout.steps.tolist()) - len(served),
            drifted=drifted.tolist().count(True),
        )
        if len(served) == len(row):
            return fresh
        stored = beliefs.stored(subjects, rows, np.flatnonzero(rows.t <= past[rows.owner]))
        if not stored.entries:
            return fresh
        answers = [of_space(entry.z or (0,) * dimension, dimension) for entry in stored.entries]
        plans = {id(plan): plan for plan in stored.plans if plan is not None}
        number_of = {identity: number for number, identity in enumerate(plans)}
        again = AnsweredRows(
            row=row[stored.row],
            z=np.array(answers, dtype=np.int64),
            plans=list(plans.values()),
            plan=np.array([number_of.get(id(plan), -1) for plan in stored.plans], dtype=np.int64),
            secure=np.array([entry.secure for entry in stored.entries], dtype=np.bool_),
            fresh=alike(False, len(answers)),
        )
        return together([fresh, again])

    def _one(
        self,
        transaction: Transaction,
        subjects: Sequence[SubjectState],
        layout: StepRequests,
        planned: PlannedRequests,
        states: IntArray,
        secure: bool,
    ) -> tuple[IntArray, BoolArray]:
        """Line 4 for one request: the ledger takes it without columns, in a third of the time."""
        subject, query, t = subjects[layout.owner.item()], self.setting.query, layout.t.item()
        moments = layout.moments
        moment = NO_MOMENT if moments is None else moments.item()
        if layout.skips.item():
            skip = Request(subject.name, query, t, "skip", None, None, None, secure, False, layout.steps.item(), moment)
            subject.last = transaction.add(transaction.admit(skip, self.caps), None).through
            return np.zeros((1, self.setting.space.dimension), dtype=np.int64), _NONE
        admitted = transaction.admit(_release_of(planned.plans[0], secure, subject.name, query, t, moment), self.caps)
        state = states if len(states) == 1 else states.take(layout.row)
        z, drifted = answer(planned.plans, planned.plan_of, state, self.bits)
        drawn = tuple(z[0].tolist())
        entry = transaction.add(admitted, drawn)
        subject.last = t
        # What is told is what was recorded.
        return z if entry.z == drawn else np.array([entry.z], dtype=np.int64), drifted


def _first_rows(owner: IntArray) -> IntArray:
    """The number of the first row of each subject."""
    if len(owner) == 1:
        return FIRST_ROW
    return np.flatnonzero(np.diff(owner, prepend=-1))


def _requests(
    setting: Setting, subjects: Sequence[SubjectState], layout: StepRequests, planned: PlannedRequests, secure: bool
) -> Requests:
    """The requests to a ledger; the last of the terms is that of skips."""
    query = setting.query
    terms = [_release_of(plan, secure) for plan in planned.plans]
    terms.append(Request("", query, 1, "skip", None, None, None, secure, False))
    return Requests(
        query=query,
        subjects=[subject.name for subject in subjects],
        terms=terms,
        subject=layout.owner,
        term=np.where(layout.skips, len(terms) - 1, planned.plan_of),
        t=layout.t,
        steps=layout.steps,
        moment=layout.moments,
    )


def _release_of(
    plan: StepPlan, secure: bool, subject: str = "", query: str = "", t: int = 1, moment: int = NO_MOMENT
) -> Request:
    """The release of a step under a plan, as a ledger is asked for it."""
    return plan.request.of_step(subject, query, t, secure, moment)


def together(parts: Sequence[AnsweredRows]) -> AnsweredRows:
    """Several rounds as one, by row."""
    row = np.concatenate([part.row for part in parts])
    order = np.argsort(row, kind="stable")
    plans: dict[str, StepPlan] = {}
    for part in parts:
        plans |= {plan.hash: plan for plan in part.plans}
    number_of = {name: number for number, name in enumerate(plans)}
    # The last number is that of a row that was not asked.
    plan = [np.array([*(number_of[p.hash] for p in part.plans), -1], dtype=np.int64)[part.plan] for part in parts]

    def joined(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])[order]

    return AnsweredRows(
        row=row[order],
        z=joined("z"),
        plans=list(plans.values()),
        plan=np.concatenate(plan)[order],
        secure=joined("secure"),
        fresh=joined("fresh"),
        skipped=sum(part.skipped for part in parts),
        drifted=sum(part.drifted for part in parts),
    )
