"""One subject over time: a thin object around the pure step, and a fold over the subject's ledger.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from dphmm._cached import cached_property
from dphmm._checks import exact_epsilon, written_fraction
from dphmm.accounting.ledger import Caps, Entry, Ledger, SequencePromise, SessionHeader, Spent
from dphmm.accounting.moments import NO_MOMENT, has_moments
from dphmm.accounting.promise import Schedule
from dphmm.accounting.records import in_short
from dphmm.errors import InvalidInput
from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel
from dphmm.policy.constraint import DeltaSet, Support
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import default_bits
from dphmm.sensitivity.protection import Partner
from dphmm.session.believing import SettingReader, belief_after, believed_model
from dphmm.session.estimates import Estimate, estimate
from dphmm.session.options import Partners, checked_caps, checked_ledger, epsilon_of_step, promise_beside
from dphmm.session.plan import Position, StepPlan, chosen_of
from dphmm.session.releases import NOT_ASKED, Release
from dphmm.session.rounds import (
    FIRST_ROW,
    ONE_ASKED,
    AnsweredRows,
    Engine,
    StepRows,
    SubjectState,
    check_gap,
    partners_at,
    schedule_of,
)
from dphmm.session.scheduled import Scheduled
from dphmm.session.setting import Setting, check_header
from dphmm.session.stepwise import Stepwise, walk
from dphmm.states.space import Labels, StateSpace
from dphmm.types import Bits, BoolArray, Exact, IntArray

#: Releases that a session keeps at hand; older ones are made again from the ledger.
_RECENT = 64


def engine_of(setting: Setting, ledger: Ledger, caps: Caps, bits: Bits) -> Engine:
    """The engine of a session or a table; beliefs are kept only where plans need them."""
    keeps = Stepwise if setting.needs_beliefs else Scheduled
    return Engine(setting, keeps(setting, ledger), caps, bits)


class ReleaseSession:
    """Releases of one subject's states under one policy (Algorithm 2 of the DPHMM paper, corrected).

    Parameters
    ----------
    model, policy, space : the adversary's knowledge, over the same N states.
    epsilon : the promise of each release given the past; a number, Fraction or decimal string. With a promise, None is
        what that leaves to each step where all steps are asked alike.
    promise : a `SequencePromise`, which stays with the subject: all of its queries are held to it, whoever asks.
    schedule : a `Schedule` of the steps that are asked, with its own promise and epsilon; None for every step. A step
        that is not asked has a `Release` without z, costs nothing, and is stored as skipped.
    constraint : "support", or a `DeltaSet`.
    initial : where the subject is publicly known to begin, in place of the model's initial distribution: a state, or
        probabilities (N,). A place that was taken from what is to be hidden breaks the promise.
    varies : the choices for single steps in `release`, from "epsilon", "policy", "partners", "protection".
    mechanism, protection, start : see the guide; the defaults are the safe ones.
    subject, query : the key of the releases together with t; two sessions of one key share one history.
    ledger : where releases are stored before anyone sees them; in memory when None.
    cap_epsilon, cap_cost : refuse a release that would bring the subject's totals over a cap.
    bits : None for the system's secure randomness; releases with any other bits are marked (`secure` is False).
    origin : the meaning of step 1, such as the number of its time bin; recorded, and read only where the blocks of a
        promise are of a time.

    A release publishes z. `prior`, `posterior` and `estimate` are views of the answers, computed when they are read:
    the first read folds the history, and later ones go on from there.

    Threads may share a session: each call of `release` or `skip` takes its turn. Callers that need a
    particular step name it.
    """

    def __init__(
        self,
        model: MarkovModel,
        policy: PolicyGraph,
        space: StateSpace,
        epsilon: Exact | None = None,
        *,
        promise: SequencePromise | None = None,
        schedule: Schedule | None = None,
        constraint: str | DeltaSet | Support = "support",
        mechanism: str = "auto",
        protection: str = "auto",
        start: str | None = None,
        initial: Any = None,
        varies: Sequence[str] = (),
        subject: str = "",
        query: str = "state",
        ledger: Ledger | None = None,
        cap_epsilon: Exact | None = None,
        cap_cost: Exact | None = None,
        bits: Bits | None = None,
        origin: str = "",
    ) -> None:
        setting = Setting.of(
            *(model, policy, space, epsilon_of_step(epsilon, promise, model.step, schedule)),
            query=query,
            schedule=schedule,
            constraint=constraint,
            mechanism=mechanism,
            protection=protection,
            start=start,
            varies=varies,
        ).beginning(initial)
        caps = checked_caps(cap_epsilon, cap_cost, promise_beside(promise, schedule))
        self._begin(setting, subject, ledger, caps, bits, origin)

    @classmethod
    def of(
        cls,
        setting: Setting,
        *,
        subject: str = "",
        ledger: Ledger | None = None,
        caps: Caps | None = None,
        bits: Bits | None = None,
        origin: str = "",
    ) -> ReleaseSession:
        """A session that shares its plans with all others of the same setting."""
        session = cls.__new__(cls)
        session._begin(setting, subject, ledger, caps or Caps(), bits, origin)
        return session

    def _begin(
        self,
        setting: Setting,
        subject: str,
        ledger: Ledger | None,
        caps: Caps,
        bits: Bits | None,
        origin: str,
    ) -> None:
        self._setting = setting
        self._ledger = checked_ledger(ledger)
        self._engine = engine_of(setting, self._ledger, caps, default_bits(bits))
        self._subject = SubjectState(self._ledger.names_of([subject])[0], origin)
        self._schedule = schedule_of(setting, origin, self._ledger, self._subject.name)
        self._t = 1
        # One step at a time: an answer is shown under the step that it was drawn for.
        self._turn = threading.RLock()
        self._recent: OrderedDict[int, Release] = OrderedDict()
        self._drifted = 0

    # -- what anybody may know ------------------------------------------------------------------------------------

    @property
    def setting(self) -> Setting:
        """The setting that all steps are released under."""
        return self._setting

    @property
    def t(self) -> int:
        """The coming step."""
        return self._t

    @property
    def origin(self) -> str:
        """The number that step 1 stands for, or the clock that the steps go by; empty if unknown."""
        return self._subject.origin

    @property
    def prior(self) -> Belief:
        """The public belief about the coming step."""
        return self._position.prior

    @property
    def support(self) -> BoolArray:
        """The states (N,) that the public history does not exclude at the coming step."""
        beliefs = self._engine.beliefs
        return beliefs.schedule.support(self._t) if isinstance(beliefs, Scheduled) else self._position.prior.support

    @property
    def posterior(self) -> Belief | None:
        """The public belief after the last step, given the answers of this query; None before the first.

        The answers of the subject's other queries are not in it: `joint_belief` knows the answers of all of them.
        """
        with self._turn:
            return self._reader[1].posterior if self._position.t > 1 else None

    def estimate(self, loss: str = "squared", believe: MarkovModel | None = None) -> Estimate:
        """The best guess about the last step, given the answers so far; `smooth` has those of earlier steps.

        ``loss``: the error to minimise: "squared" (posterior mean), "euclidean" (median), or "state" (likeliest). For
        labels it is the likeliest state whatever the loss. ``believe``: another model to read with, as for
        `dphmm.reconstruction.smooth`. Raises InvalidInput for another loss or such a model, and before step 1.

        Examples
        --------
        >>> import dphmm
        >>> space = dphmm.StateSpace.labels(["home", "work"])
        >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]])
        >>> session = dphmm.ReleaseSession(model, dphmm.policy.complete(2), space, 2, bits=dphmm.ReplayBits(1))
        >>> _ = session.release("home")
        >>> session.estimate().answer, round(session.estimate().probability, 2)
        ('home', 0.88)
        """
        posterior = self.posterior
        if posterior is None:
            raise InvalidInput("t", "no step so far", "an estimate after the first release or skip")
        reading = SettingReader(self._setting, believed_model(self._setting, believe))
        if reading.believed is not None:
            stored = self._stored_plans(self._t - 1)
            answers = [(entry.t, plan, np.array(entry.z, dtype=np.int64)) for entry, plan in stored if plan is not None]
            posterior = belief_after(reading, answers, self._t - 1, self.origin)
        return estimate(posterior, self._setting.space, loss)

    @property
    def spent(self) -> Spent:
        """(epsilon, cost) of the subject over all queries; see `dphmm.accounting` for what the totals mean."""
        return self._ledger.spent(self._subject.name)

    @property
    def plan(self) -> StepPlan:
        """The plan of the coming step: a function of public data."""
        partners = partners_at(self._ledger, self._subject.name, self._t, self._setting)
        support = plan_set = self.support
        if isinstance(self._engine.beliefs, Stepwise):
            plan_set = self._position.constrain(self._setting.options.constraint)
        return self._setting.planner.plan(support, plan_set, partners)

    @property
    def releases(self) -> tuple[Release, ...]:
        """The releases so far, in order: made again from the ledger where they are not at hand.

        With a schedule, single steps that were not asked are among them.
        """
        return tuple(self._recent.get(release.t, release) for release in self._stored_releases(self._t - 1))

    def has_released(self, t: int) -> bool:
        """True if step t was released; False if it was skipped, not asked, or is yet to come."""
        if t in self._recent:
            return self._recent[t].asked
        with self._ledger.transaction([self._subject.name]) as transaction:
            entry = transaction.entry(self._subject.name, self._setting.query, t) if 1 <= t < self._t else None
        return entry is not None and entry.kind == "release"

    def released(self, t: int) -> Release:
        """The release of an earlier step. Raises InvalidInput for a skipped or a coming one."""
        if t in self._recent:
            return self._recent[int(t)]
        if not 1 <= t < self._t:
            raise InvalidInput("t", t, f"a step before {self._t}")
        for release in self._stored_releases(int(t)):
            if release.t == t:
                return release
        raise InvalidInput("t", t, "a step that was released; this one was skipped")

    def owner_view(self) -> dict[str, int]:
        """For the data owner alone, never to be published: the times that the true state was outside the plan set."""
        entries = self._ledger.entries(self._subject.name, self._setting.query)
        released = sum(entry.kind == "release" and entry.t < self._t for entry in entries)
        return {"releases": released, "drifted": self.drifted}

    @property
    def drifted(self) -> int:
        """For the data owner alone: the number of this session's releases with the true state outside the plan set."""
        return self._drifted

    # -- releasing ------------------------------------------------------------------------------------------------

    def release(
        self,
        state: int | str,
        t: int | None = None,
        *,
        epsilon: Exact | None = None,
        policy: PolicyGraph | None = None,
        partners: Partners | None = None,
        protection: str | Partner | None = None,
        moment: int | None = None,
    ) -> Release:
        """Publish an answer about the true state of the coming step, or return the stored one of an earlier step.

        Parameters
        ----------
        state : state number, or its name. A name that the space does not have, and the -1 that ``locate`` gives for
            a place outside every state, are drift: answered from the lowest-numbered plan state, and nothing shows
            (`Grid.nearest` gives the nearest state of such a place).
        t : the step, from 1; the coming one by default. For a stored step the state passed is not looked at.
        epsilon, policy, partners, protection : for this step alone, in place of the session's; each must be among what
            ``varies``. The promise of the step is then that of its own policy and epsilon, and paths are neighbours
            where they are under every step's own policy. ``partners``, as {state: partner}: for states
            without an edge at this step. ``protection``: a method, or a callable (state, other plan states) -> partner,
            which is given public data alone. All queries of a subject must have one policy at a step. Whoever lets any
            of these depend on the true state breaks the promise; a `Schedule` spares the choice.
        moment : the moment of the step, in a history that goes by times (microseconds since 1970 UTC) or by the cells
            of an order column, as tables and streams write them; it must be later than that of the step before.

        Raises
        ------
        BudgetExceeded, Unprotectable : decided from public data, before anything is drawn.
        InvalidInput : another epsilon or policy for a stored step, a step that is neither stored nor next, and a
            ``moment`` that is missing, or too early.
        """
        choice = None
        if epsilon is not None or policy is not None or partners is not None or protection is not None:
            choice = self._setting.choice(epsilon, policy, partners, protection)
        with self._turn:
            if moment is not None:
                self._check_moment(moment, t)
            if t is not None and t != self._t:
                return self._stored(t, epsilon, policy)
            states = np.array([self._state_number(state)])
            t_now = np.array([self._t])
            asked = ONE_ASKED if self._schedule is None else self._schedule.may_ask(t_now)
            moments = None if moment is None else np.array([moment], dtype=np.int64)
            rows = StepRows(FIRST_ROW, t_now, asked, None if choice is None else (choice,), moments)
            with self._ledger.transaction([self._subject.name]) as transaction:
                stored = self._engine.release(transaction, [self._subject], rows, states)
                if t is None and self._t <= stored.past[0]:
                    raise self._overtaken(int(stored.past[0]))
            answered = self._engine.show(stored)
            release = self._accept(answered)
            if not answered.fresh.item(0):
                self._check_stored(release, epsilon, policy)
            return release

    def _check_moment(self, moment: int, t: int | None) -> None:
        """Raises InvalidInput for a moment that cannot be, or is not that of a stored step ``t``."""
        if not has_moments(self.origin):
            raise InvalidInput("moment", str(moment), f"none: steps of the origin {self.origin!r} go by their numbers")
        if isinstance(moment, bool) or not isinstance(moment, (int, np.integer)) or not NO_MOMENT < moment < 2**63:
            raise InvalidInput("moment", str(moment), "a whole number of 64 bits")
        if t is not None and 1 <= t < self._t:
            stored = self._ledger.moments_of([self._subject.name])[0][t - 1]
            if stored != moment:
                raise InvalidInput("moment", f"another one for step {t}", "the one that it stands for in the ledger")

    def skip(self, steps: int = 1, *, moment: int | None = None) -> None:
        """Let steps pass without publishing: recorded, because the support moves.

        ``moment`` : the moment of one step, as for `release`. Raises as `release` does for it.
        """
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
            raise InvalidInput("steps", steps, "a number of steps, 1 or more")
        check_gap(int(steps))
        with self._turn:
            if moment is not None:
                self._check_moment(moment, None)
            with self._ledger.transaction([self._subject.name]) as transaction:
                if moment is None:
                    stored = self._engine.skip(transaction, self._subject, int(steps))
                else:
                    moments = np.array([moment], dtype=np.int64)
                    row = StepRows(FIRST_ROW, np.array([self._t]), ~ONE_ASKED, None, moments)
                    stored = self._engine.release(transaction, [self._subject], row, np.array([-1]))
                if self._t <= stored.past[0]:
                    raise self._overtaken(int(stored.past[0]))
            self._engine.show(stored)
            self._t += int(steps)

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
        policies: Sequence[PolicyGraph] = (),
        initial: Any = None,
        promise: SequencePromise | None = None,
        cap_epsilon: Exact | None = None,
        cap_cost: Exact | None = None,
        bits: Bits | None = None,
    ) -> ReleaseSession:
        """The session that wrote a subject's history, rebuilt from it: it continues exactly where it was.

        ``policies`` are those that single steps were released under in place of ``policy``; ``initial`` is where the
        subject was known to begin, as it was given then.

        Raises
        ------
        InvalidInput : no such history, or another model, policy or space than it was written with.
        """
        header = ledger.header(subject, query)
        if header is None:
            raise InvalidInput("subject", f"no history of query {query!r} in the ledger", "one that was released")
        setting = Setting.read(header.options, model, policy, space, query, policies).beginning(initial)
        caps = checked_caps(cap_epsilon, cap_cost, promise_beside(promise, setting.schedule))
        return cls.resumed(ledger, header, setting, caps=caps, bits=bits)

    @classmethod
    def resumed(
        cls,
        ledger: Ledger,
        header: SessionHeader,
        setting: Setting,
        *,
        caps: Caps | None = None,
        bits: Bits | None = None,
    ) -> ReleaseSession:
        """As `resume`, for a setting that other sessions share; its options must be those of the history."""
        session = cls.of(
            setting,
            subject=header.subject,
            ledger=ledger,
            caps=caps,
            bits=bits,
            origin=header.options.get("origin", ""),
        )
        check_header(setting.header(header.subject, session.origin), header)
        session._catch_up()
        return session

    def _catch_up(self) -> None:
        """Move past every step that the ledger already holds."""
        with self._ledger.transaction([self._subject.name]) as transaction:
            self._subject.last = transaction.last_step(self._subject.name, self._setting.query)
            last = transaction.entry(self._subject.name, self._setting.query, max(1, self._subject.last))
        self._t = self._subject.last + 1
        beliefs = self._engine.beliefs
        if isinstance(beliefs, Stepwise):
            beliefs.position(self._subject)
        elif isinstance(beliefs, Scheduled):
            # One stored plan that is still made shows that this version of the algorithm wrote the history.
            beliefs.check([] if last is None else [last])

    # -- inside ---------------------------------------------------------------------------------------------------

    @property
    def _position(self) -> Position:
        with self._turn:
            beliefs, subject = self._reader
            if subject.ahead:
                # A commit failed: what it would have stored is not there.
                subject.fold_again_before(0)
                subject.ahead = False
            return beliefs.position(subject, self._t - 1)

    @cached_property
    def _reader(self) -> tuple[Stepwise, SubjectState]:
        """Beliefs, and the subject that they follow: its own, where plans need none."""
        beliefs = self._engine.beliefs
        if isinstance(beliefs, Stepwise):
            return beliefs, self._subject
        return Stepwise(self._setting, self._ledger), SubjectState(self._subject.name, self.origin)

    def _accept(self, answered: AnsweredRows) -> Release:
        """Move past the step that was answered; nothing of it was shown before its commit."""
        t, release = self._t, self._release_of(answered)
        if release is None:
            self._t = self._subject.last + 1
            raise InvalidInput("t", t, "a step that was released; this one was skipped")
        self._t += 1
        self._drifted += answered.drifted
        self._recent[t] = release
        if len(self._recent) > _RECENT:
            self._recent.popitem(last=False)
        return release

    def _release_of(self, answered: AnsweredRows) -> Release | None:
        if not len(answered.row):
            return None
        number = answered.plan.item(0)
        plan = answered.plans[number] if number >= 0 else None
        return _release(self._setting, plan, self._t, answered.z[0], answered.secure.item(0))

    def _stored(self, t: int, epsilon: Exact | None, policy: PolicyGraph | None) -> Release:
        if isinstance(t, (int, np.integer)) and 1 <= t < self._t:
            release = self.released(t)
            self._check_stored(release, epsilon, policy)
            return release
        raise InvalidInput("t", t, f"the coming step {self._t} or a stored one before it; skip() lets steps pass")

    def _check_stored(self, release: Release, epsilon: Exact | None, policy: PolicyGraph | None) -> None:
        """Raises InvalidInput where a stored step was released under another epsilon or policy than is asked for."""
        if not release.asked or (epsilon is None and policy is None):
            return
        chosen = chosen_of(self._ledger.plan(release.plan_hash))
        had = chosen.get("epsilon", str(self._setting.options.epsilon))
        if epsilon is not None and exact_epsilon(epsilon) != written_fraction(had):
            raise InvalidInput("epsilon", str(epsilon), f"{in_short(had)}, with which step {release.t} was released")
        under = chosen.get("policy", self._setting.policy.digest)
        if policy is not None and policy.digest != under:
            raise InvalidInput("policy", policy.digest[:12], f"{under[:12]}, under which step {release.t} was released")

    def _stored_releases(self, last: int) -> Iterator[Release]:
        """The releases and the steps that were not asked through step ``last``, made again from the ledger."""
        for entry, plan in self._stored_plans(last):
            if entry.kind == "release" or (self._schedule is not None and entry.steps == 1):
                yield _release(self._setting, plan, entry.t, np.array(entry.z), entry.secure)

    def _stored_plans(self, last: int) -> Iterator[tuple[Entry, StepPlan | None]]:
        """The ledger's steps through ``last``, in order, each with its plan, made again; None of one without answer."""
        setting, beliefs = self._setting, self._engine.beliefs
        entries = [entry for entry in self._ledger.entries(self._subject.name, setting.query) if entry.t <= last]
        if isinstance(beliefs, Scheduled):
            yield from zip(entries, beliefs.plans_of(entries), strict=True)
            return
        for step in walk(setting, setting.first(self.origin), entries, self._ledger.plan):
            yield step.entry, step.plan

    def _overtaken(self, last: int) -> InvalidInput:
        expected = (
            f"release(state, t={self._t}) for the stored answer, or ReleaseSession.resume to go on after step {last}"
        )
        return InvalidInput("t", f"no step, while the ledger has moved on to step {last}", expected)

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
        return f"ReleaseSession(subject={self._subject.name!r}, query={self._setting.query!r}, t={self._t})"


def _release(setting: Setting, plan: StepPlan | None, t: int, z: IntArray, secure: bool) -> Release:
    """The release of a step; without a plan it was not asked, and z is nothing."""
    if plan is None:
        return Release(t, None, None, *NOT_ASKED, secure)
    space = setting.space
    return Release(
        t=t,
        z=space.label_of(z.item(0)) if isinstance(space, Labels) else space.frame.to_answers(z),
        z_lattice=z,
        epsilon=plan.promised,
        cost=plan.cost,
        plan_hash=plan.hash,
        mechanism=plan.mechanism_name,
        constant=plan.constant,
        secure=secure,
    )
