"""One subject over time: a thin object around the pure step, and a fold over the subject's ledger.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dphmm._checks import one_of
from dphmm.accounting.ledger import (
    Caps,
    Entry,
    Ledger,
    PlanRecord,
    Request,
    SessionHeader,
    Spent,
    Transaction,
)
from dphmm.errors import InvalidInput
from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel
from dphmm.policy.constraint import DeltaSet, Support
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import default_bits, is_secure
from dphmm.session.answer import answer
from dphmm.session.asking import check_gap
from dphmm.session.joint import check_joint
from dphmm.session.options import checked_caps, checked_ledger
from dphmm.session.plan import ALGORITHM_VERSION, Plan, all_partners, given_partners, plan_states
from dphmm.session.release import Release
from dphmm.session.setting import Setting, check_header
from dphmm.session.step import ESTIMATE_LOSSES, Position, estimate
from dphmm.states.space import StateSpace
from dphmm.types import Bits, BoolArray, Exact, IntArray

#: One row, under the one plan there is.
_FIRST_PLAN: IntArray = np.zeros(1, dtype=np.int64)
_FIRST_PLAN.setflags(write=False)


class Outcome(NamedTuple):
    """A step that has been stored but not yet moved past: nothing of it may be shown before its commit."""

    release: Release | None
    following: Position
    posterior: Belief


class ReleaseSession:
    """Releases of one subject's states under one policy (Algorithm 2 of the DPHMM paper, corrected).

    Parameters
    ----------
    model, policy, space : what the adversary knows, over the same N states.
    epsilon : the promise of each release given the past; a number, Fraction or decimal string.
    constraint : "support", or a `DeltaSet`.
    mechanism, scope, flat, thickness, protection, start : see the guide; the defaults are the safe ones.
    subject, query : the key of the releases together with t; two sessions of one key share one history.
    ledger : where releases are stored before anyone sees them; in memory when None.
    cap_epsilon, cap_cost : refuse a release that would bring the subject's totals over a cap.
    bits : None for the system's secure randomness; releases with any other bits are marked (`secure` is False).
    origin : what step 1 stands for, such as the number of its time bin; recorded, not interpreted.
    estimate_loss : "squared" (posterior mean), "euclidean" (median) or "state" (likeliest state).
    """

    def __init__(
        self,
        model: MarkovModel,
        policy: PolicyGraph,
        space: StateSpace,
        epsilon: Exact,
        *,
        constraint: str | DeltaSet | Support = "support",
        mechanism: str = "auto",
        scope: str = "global",
        flat: str = "thicken",
        thickness: Exact | Sequence[Exact] | None = None,
        protection: str = "nearest",
        start: str | None = None,
        subject: str = "",
        query: str = "state",
        ledger: Ledger | None = None,
        cap_epsilon: Exact | None = None,
        cap_cost: Exact | None = None,
        bits: Bits | None = None,
        estimate_loss: str = "squared",
        origin: str = "",
    ) -> None:
        setting = Setting.of(
            *(model, policy, space, epsilon),
            query=query,
            constraint=constraint,
            mechanism=mechanism,
            scope=scope,
            flat=flat,
            thickness=thickness,
            protection=protection,
            start=start,
        )
        caps = checked_caps(cap_epsilon, cap_cost)
        self._begin(setting, subject, ledger, caps, bits, estimate_loss, origin)

    @classmethod
    def of(
        cls,
        setting: Setting,
        *,
        subject: str = "",
        ledger: Ledger | None = None,
        caps: Caps | None = None,
        bits: Bits | None = None,
        estimate_loss: str = "squared",
        origin: str = "",
    ) -> ReleaseSession:
        """A session that shares its plans with all others of the same setting."""
        session = cls.__new__(cls)
        session._begin(setting, subject, ledger, caps or Caps(), bits, estimate_loss, origin)
        return session

    def _begin(
        self,
        setting: Setting,
        subject: str,
        ledger: Ledger | None,
        caps: Caps,
        bits: Bits | None,
        estimate_loss: str,
        origin: str,
    ) -> None:
        self._setting = setting
        self._ledger = checked_ledger(ledger)
        self._subject = subject
        self._query = setting.query
        self._origin = origin
        self._caps = caps
        self._bits = default_bits(bits)
        self._loss = one_of(estimate_loss, ESTIMATE_LOSSES, "estimate_loss")
        self._position = setting.first()
        self._posterior: Belief | None = None
        self._past: dict[int, Release] = {}
        self._drifted = 0
        self._opened = False

    # -- what anybody may know ------------------------------------------------------------------------------------

    @property
    def setting(self) -> Setting:
        """What all steps are released under."""
        return self._setting

    @property
    def t(self) -> int:
        """The coming step."""
        return self._position.t

    @property
    def origin(self) -> str:
        """What step 1 stands for."""
        return self._origin

    @property
    def prior(self) -> Belief:
        """The public belief about the coming step."""
        return self._position.prior

    @property
    def support(self) -> BoolArray:
        """The states (N,) that the public history does not exclude at the coming step."""
        return self._position.prior.support

    @property
    def posterior(self) -> Belief | None:
        """The public belief after the last step; None before the first."""
        return self._posterior

    @property
    def spent(self) -> Spent:
        """(epsilon, cost) of the subject over all queries; see `dphmm.accounting` for what the totals mean."""
        return self._ledger.spent(self._subject)

    @property
    def plan(self) -> Plan:
        """The plan of the coming step: a function of public data."""
        return self._plan(self._ledger.plans_at(self._subject, self.t, self._query))

    @property
    def releases(self) -> tuple[Release, ...]:
        """The releases so far, in order."""
        return tuple(self._past.values())

    def has_released(self, t: int) -> bool:
        """Whether step t was released, rather than skipped or yet to come."""
        return t in self._past

    def released(self, t: int) -> Release:
        """The release of an earlier step. Raises InvalidInput for a skipped or a coming one."""
        if t in self._past:
            return self._past[int(t)]
        expected = "a step that was released; this one was skipped"
        raise InvalidInput("t", t, expected if 1 <= t < self.t else f"a step before {self.t}")

    def owner_view(self) -> dict[str, int]:
        """For the data owner alone, never to be published: how often the true state was outside the plan set."""
        return {"releases": len(self.releases), "drifted": self._drifted}

    # -- releasing ------------------------------------------------------------------------------------------------

    def release(self, state: int | str, t: int | None = None) -> Release:
        """Publish an answer about the true state of the coming step, or return the stored one of an earlier step.

        Parameters
        ----------
        state : state number, or its name. A name that the space does not have, and the -1 that ``locate`` gives for
            a place outside every state, are drift: answered from the lowest-numbered plan state, and nothing shows
            (`Grid.nearest` gives the nearest state of such a place).
        t : the step, from 1; the coming one by default. For a stored step the state passed is not looked at.

        Raises
        ------
        BudgetExceeded, DegenerateHull, Unprotectable : decided from public data, before anything is drawn.
        InvalidInput : other public parameters for a stored step, or a step that is neither stored nor next.
        """
        if t is not None and t != self.t:
            return self._stored(t)
        with self._ledger.transaction() as transaction:
            outcome = self.release_within(transaction, state)
        self.accept(outcome)
        assert outcome.release is not None
        return outcome.release

    def skip(self, steps: int = 1) -> None:
        """Let steps pass without publishing: recorded, because the support moves."""
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
            raise InvalidInput("steps", steps, "a number of steps, 1 or more")
        with self._ledger.transaction() as transaction:
            outcome = self.skip_within(transaction, int(steps))
        self.accept(outcome)

    def release_within(self, transaction: Transaction, state: int | str) -> Outcome:
        """Store the coming release in a transaction of the caller's, who shows nothing before it is committed."""
        self._open(transaction)
        stored = self._stored_entry(transaction)
        if stored is not None and stored.kind == "release":
            return self._replayed(stored)
        plan = self._plan(transaction.plans_at(self._subject, self.t, self._query))
        request = Request(
            subject=self._subject,
            query=self._query,
            t=self.t,
            kind="release",
            epsilon=plan.promised,
            cost=plan.cost,
            plan=plan.record,
            secure=is_secure(self._bits),
            constant=plan.constant,
        )
        admitted = transaction.admit(request, self._caps)
        if admitted.stored is not None:
            return self._after(admitted.stored, plan)
        states = np.array([self._state_number(state)])
        z, drifted = answer((plan,), _FIRST_PLAN, states, self._bits)
        self._drifted += int(drifted[0])
        return self._after(transaction.add(admitted, tuple(z[0].tolist())), plan)

    def skip_within(self, transaction: Transaction, steps: int = 1) -> Outcome:
        """Record that the coming steps are skipped, in a transaction of the caller's."""
        check_gap(steps)
        self._open(transaction)
        request = Request(
            subject=self._subject,
            query=self._query,
            t=self.t,
            kind="skip",
            epsilon=None,
            cost=None,
            plan=None,
            secure=is_secure(self._bits),
            constant=False,
            steps=steps,
        )
        admitted = transaction.admit(request, self._caps)
        return self._after_skip(admitted.stored or transaction.add(admitted, None))

    def accept(self, outcome: Outcome) -> None:
        """Move on by a step whose transaction has been committed."""
        self._opened = True
        if outcome.release is not None:
            self._past[outcome.release.t] = outcome.release
        self._position, self._posterior = outcome.following, outcome.posterior

    # -- from a ledger --------------------------------------------------------------------------------------------

    @classmethod
    def resume(
        cls,
        ledger: Ledger,
        subject: str,
        model: MarkovModel,
        policy: PolicyGraph,
        space: StateSpace,
        *,
        query: str = "state",
        cap_epsilon: Exact | None = None,
        cap_cost: Exact | None = None,
        bits: Bits | None = None,
        estimate_loss: str = "squared",
    ) -> ReleaseSession:
        """The session that wrote a subject's history, rebuilt from it: it continues exactly where it was.

        Raises
        ------
        InvalidInput : no such history, or another model, policy or space than it was written with.
        """
        header = ledger.header(subject, query)
        if header is None:
            raise InvalidInput("subject", f"no history of query {query!r} in the ledger", "one that was released")
        setting = Setting.read(header.options, model, policy, space, query)
        caps = checked_caps(cap_epsilon, cap_cost)
        return cls.resumed(ledger, header, setting, caps=caps, bits=bits, estimate_loss=estimate_loss)

    @classmethod
    def resumed(
        cls,
        ledger: Ledger,
        header: SessionHeader,
        setting: Setting,
        *,
        caps: Caps | None = None,
        bits: Bits | None = None,
        estimate_loss: str = "squared",
    ) -> ReleaseSession:
        """As `resume`, for a setting that other sessions share; its options must be those of the history."""
        session = cls.of(
            setting,
            subject=header.subject,
            ledger=ledger,
            caps=caps,
            bits=bits,
            estimate_loss=estimate_loss,
            origin=header.options.get("origin", ""),
        )
        check_header(session._header, header)
        session._catch_up()
        return session

    def _catch_up(self) -> None:
        """Move past every step that the ledger already holds."""
        for entry in self._ledger.entries(self._subject, self._query):
            if entry.t >= self.t:
                self.accept(self._after_skip(entry) if entry.kind == "skip" else self._replayed(entry))

    def _replayed(self, entry: Entry) -> Outcome:
        """The outcome of a recorded release, under the plan set that was recorded (float arithmetic may differ)."""
        recorded = self._ledger.plan(str(entry.plan_hash))
        plan = self._setting.planner.plan(self.support, plan_states(recorded), given_partners(recorded))
        if plan.hash != entry.plan_hash:
            made = f"{plan.hash}, made from the record by version {ALGORITHM_VERSION} of the algorithm"
            raise InvalidInput("ledger", f"plan {entry.plan_hash} at t={entry.t}", made)
        return self._after(entry, plan)

    # -- inside ---------------------------------------------------------------------------------------------------

    def _open(self, transaction: Transaction) -> None:
        if not self._opened:
            header = self._header
            for other in transaction.headers(self._subject):
                if other.query != self._query:
                    check_joint(header, other)
            transaction.open_session(header)

    @property
    def _header(self) -> SessionHeader:
        return self._setting.header(self._subject, self._origin)

    def _stored_entry(self, transaction: Transaction) -> Entry | None:
        if transaction.last_step(self._subject, self._query) < self.t:
            return None
        return transaction.entry(self._subject, self._query, self.t)

    def _plan(self, others: list[PlanRecord]) -> Plan:
        return self._setting.plan(self._position, all_partners(others))

    def _after(self, entry: Entry, plan: Plan) -> Outcome:
        assert entry.z is not None
        z = np.array(entry.z, dtype=np.int64)
        posterior = self._position.posterior(plan, z)
        guess = estimate(posterior, self._setting.space.own_answers, self._loss)
        release = Release(
            t=entry.t,
            z=self._setting.space.frame.to_answers(z),
            z_lattice=z,
            estimate=guess.answer,
            estimate_state=guess.state,
            epsilon=plan.promised,
            cost=plan.cost,
            plan_hash=plan.hash,
            mechanism=plan.mechanism,
            constant=entry.constant,
            secure=entry.secure,
        )
        return Outcome(release, self._position.following(self._setting.model, posterior), posterior)

    def _after_skip(self, entry: Entry) -> Outcome:
        last = self._position.passing(self._setting.model, entry.through)
        return Outcome(None, last.following(self._setting.model, last.prior), last.prior)

    def _stored(self, t: int) -> Release:
        if isinstance(t, (int, np.integer)) and 1 <= t < self.t:
            return self.released(t)
        raise InvalidInput("t", t, f"the coming step {self.t} or a stored one before it; skip() lets steps pass")

    def _state_number(self, state: int | str) -> int:
        """The number of a true state, -1 for a name or a place that no state has. Errors never repeat it."""
        if isinstance(state, str):
            return self._setting.space.index_of(state)
        number = int(state) if isinstance(state, (int, np.integer)) and not isinstance(state, bool) else -2
        if not -1 <= number < self._setting.space.n_states:
            expected = f"a number 0 to {self._setting.space.n_states - 1}, a name, or -1 for elsewhere"
            raise InvalidInput("state", "a value that is no state", expected)
        return number

    def __repr__(self) -> str:
        return f"ReleaseSession(subject={self._subject!r}, query={self._query!r}, t={self.t})"
