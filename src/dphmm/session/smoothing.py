"""Smoothing: estimates of every step from all answers of a finished release, of one query or several.

Computed from what is public: model, policy, space, options, and the published answers. The plans under which these were
drawn are made again, step by step as a session makes them, and their hashes compared with the published ones: under any
other plan the likelihoods would be wrong. No true state is there to be used, so nothing is spent.

Each query of a subject has a session of its own, whose belief knows its own answers alone. All of them are about one
state at each step, and drawn with words of their own: given the state they are independent, so likelihoods multiply.

Proof: docs/proofs/joint-queries.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dphmm._kernels.filter import TRUSTED
from dphmm.accounting.ledger import Entry, Ledger
from dphmm.errors import DphmmError, InvalidInput
from dphmm.markov.filtering import Belief, LikelihoodRows, likeliest_path
from dphmm.markov.model import MarkovModel
from dphmm.markov.smoothing import KEPT, Observed, smooth
from dphmm.policy.graph import PolicyGraph
from dphmm.session.believing import SettingReader, belief_after, believed_model
from dphmm.session.options import StepChoice
from dphmm.session.own_places import OwnPlaces, PersonObservations, own_jumps
from dphmm.session.plan import NO_PARTNERS, Position, StepPlan, check_made_again, likelihood_of, spread
from dphmm.session.plan_schedule import PlanSchedule
from dphmm.session.rounds import check_gap, check_joint
from dphmm.session.setting import Setting, Subjects, check_header
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class AnswerHistory:
    """One subject's rows (n,) by step: ``t`` from 1 ascending, ``z`` (n, d) in lattice steps, plan hashes.

    A row that was not asked has the hash "", and nothing is read of its z. The choice for a row is known by its
    step's number in tables, ``numbers`` (n,); if that is None, any choice of the row's ``epsilon`` (n,) may be its.
    ``origin``: the number of step 1's time bin since 1970, read where slots of the model go by a clock.
    """

    subject: str
    t: IntArray
    z: IntArray
    plans: Sequence[str]
    epsilon: FloatArray | None = None
    numbers: Sequence[int | None] | None = None
    origin: str = ""

    def may_have(self, n: int, subjects: Subjects | None) -> Sequence[StepChoice | None]:
        """The possible choices for the n-th row."""
        if subjects is None:
            return (None,)
        number = None if self.numbers is None else self.numbers[n]
        return subjects.may_have(None if self.epsilon is None else float(self.epsilon[n]), number)

    def at(self, step: int) -> str:
        """The name of a step of this subject in errors."""
        return f"step {step} of {self.subject!r}"


@dataclass(frozen=True, eq=False)
class SmoothedSteps:
    """The estimates of each step (n,), given all answers.

    ``mean`` (n, d): the posterior mean answer, the estimate of least expected squared error. ``state``: the likeliest
    state of each step by itself (ties within 1e-12 to the lowest number), ``probability``: of that state. If they were
    asked for, ``path``: the states of the single likeliest path (Viterbi), and ``marginals`` (n, N). For a model with
    secrets all of these are secrets; the likeliest path is one of latent states, and these are its secrets.
    """

    mean: FloatArray
    state: IntArray
    probability: FloatArray
    path: IntArray | None = None
    marginals: FloatArray | None = None

    def at(self, steps: IntArray) -> SmoothedSteps:
        """Some of the steps."""
        path = None if self.path is None else self.path[steps]
        marginals = None if self.marginals is None else self.marginals[steps]
        return SmoothedSteps(self.mean[steps], self.state[steps], self.probability[steps], path, marginals)


class Smoother:
    """Smooths the releases of many subjects that were made under one setting.

    ``subjects``: the possible choices for single steps; the hash of a row's plan tells which one it was.
    ``believed``: the belief model of the reader, as `dphmm.session.believing.believed_model` gives it.
    """

    def __init__(self, setting: Setting, subjects: Subjects | None = None, believed: MarkovModel | None = None) -> None:
        self.setting, self.model, self.reading = setting, setting.model, SettingReader(setting, believed)
        self._chosen = subjects if subjects is not None and subjects.chosen else None
        shared = setting.has_public_plans and self._chosen is None
        self._schedule = PlanSchedule(setting) if shared else None

    def smooth(
        self,
        published: AnswerHistory,
        *,
        marginals: bool = False,
        path: bool = False,
        beside: Sequence[tuple[Smoother, AnswerHistory]] = (),
    ) -> SmoothedSteps:
        """The estimates from all answers of one subject, as `smooth_people` for several."""
        return next(smooth_people([(self, published, beside)], marginals=marginals, path=path))

    def person(
        self, published: AnswerHistory, beside: Sequence[tuple[Smoother, AnswerHistory]] = ()
    ) -> PersonObservations:
        """One subject's answers, and those of its other queries, to learn places from; raises as `smooth` does."""
        steps = self.observed(published, beside)
        return PersonObservations(published.subject, steps.reading.model, observed_of(steps), steps.asked)

    def planned(self, support: BoolArray, published: AnswerHistory, n: int, partners: IntArray) -> StepPlan | None:
        """The plan of the n-th row beside partners (p, 2) that other queries fixed; None where no plan has its hash."""
        may = published.may_have(n, self._chosen)
        for choice in (variant for each in may for variant in self.setting.may_be(each)):
            try:
                plan = self.setting.under(choice).planner.plan(support, support, partners, choice)
            except DphmmError:
                # It was another choice's step: this one cannot be planned here.
                continue
            if plan.hash == published.plans[n]:
                return plan
        return None

    def observed(
        self, published: AnswerHistory, beside: Sequence[tuple[Smoother, AnswerHistory]] = ()
    ) -> Steps | JointSteps:
        """The answers of one subject as observations, with those of its other queries. Raises as `smooth` does."""
        return JointSteps([(self, published), *beside]) if beside else self.steps(published)

    def steps(self, published: AnswerHistory) -> Steps:
        """The answers of one subject as observations of the chain; raises as `smooth` does."""
        plans = self.made_again(published)
        steps = Steps(self.reading, published, plans)
        if isinstance(plans, OwnPlans):
            # The planner has these plans still.
            _share_rows([steps])
        return steps

    def spreads(self, published: AnswerHistory, steps: Steps) -> FloatArray:
        """The spreads (n,) of the beliefs before rows, by which a paced schedule decides.

        ``steps``: the same answers as `steps` has them.
        """
        position, spreads = self.setting.first(published.origin), list[float]()
        for at, t in enumerate(published.t.tolist()):
            position = _skipped_to(position, t, self.model)
            spreads.append(spread(position.prior, self.setting.space))
            known = position.prior
            if published.plans[at]:
                known = position.condition(steps.made_again.at(at), published.z[at])
            position = position.predict(self.model, known)
        return np.array(spreads)

    def made_again(self, published: AnswerHistory) -> SharedPlans | OwnPlans:
        """The plans of one subject's answers, compared with the published hashes; raises as `smooth` does."""
        check_steps(published)
        return self._shared(published) if self._schedule is not None else self._own(published)

    def _shared(self, published: AnswerHistory) -> SharedPlans:
        assert self._schedule is not None
        numbers = self._schedule.numbers(published.t)
        hashes = {number: self._schedule.plan(number).hash for number in np.unique(numbers).tolist()}
        for place, (t, plan_hash) in enumerate(zip(published.t.tolist(), published.plans, strict=True)):
            number = int(numbers[place])
            if plan_hash not in ("", hashes[number]):
                numbers[place] = self._otherwise(number, plan_hash)
                if numbers[place] < 0:
                    raise another_plan(published.at(t), plan_hash, hashes[number])
        return SharedPlans(self._schedule, numbers)

    def _otherwise(self, number: int, came: str) -> int:
        """The number of a plan of the same support that another machine may have made; -1 where none has the hash."""
        assert self._schedule is not None
        for choice in self.setting.may_be(None)[1:]:
            other = self._schedule.beside(number, NO_PARTNERS, choice)
            if self._schedule.plan(other).hash == came:
                return other
        return -1

    def _own(self, published: AnswerHistory) -> OwnPlans:
        """Follow the belief as the session did: each plan hangs on the answers before it."""
        options, model = self.setting.options, self.model
        position, sets, choices = self.setting.first(published.origin), [], list[StepChoice | None]()
        for n, (t, z, hash_) in enumerate(zip(published.t.tolist(), published.z, published.plans, strict=True)):
            position = _skipped_to(position, t, model)
            if not hash_:
                sets.append(_NO_SETS)
                choices.append(None)
                position = position.predict(model, position.prior)
                continue
            support, plan_set = position.prior.support, position.constrain(options.constraint)
            plan, choice = self._drawn_under(position, published, n)
            sets.append((np.packbits(support), np.packbits(plan_set)))
            choices.append(choice)
            if not (plan.still_possible(z) & support).any():
                raise _impossible(published.at(t))
            # Where no answer changes what is planned, none has to be learned from.
            known = position.prior if self.setting.has_public_plans else position.condition(plan, z)
            position = position.predict(model, known)
        return OwnPlans(self.setting, sets, choices, np.arange(len(sets)))

    def _drawn_under(self, position: Position, published: AnswerHistory, n: int) -> tuple[StepPlan, StepChoice | None]:
        """The plan of the n-th row, which has the row's hash, and what was chosen for its step."""
        may, made = published.may_have(n, self._chosen), ""
        for choice in (variant for each in may for variant in self.setting.may_be(each)):
            try:
                plan = self.setting.plan(position, NO_PARTNERS, choice)
            except DphmmError:
                # It was another choice's step: this one cannot be planned here.
                if len(may) == 1:
                    raise
                continue
            if plan.hash == published.plans[n]:
                return plan, choice
            made = made or plan.hash
        raise another_plan(published.at(int(published.t[n])), published.plans[n], made or "none")


def smooth_people(
    people: Iterable[tuple[Smoother, AnswerHistory, Sequence[tuple[Smoother, AnswerHistory]]]],
    *,
    marginals: bool = False,
    path: bool = False,
    places: OwnPlaces | None = None,
) -> Iterator[SmoothedSteps]:
    """The estimates from all answers of each subject and of its other queries, some subjects at a time.

    ``places``: the parameters of own places, which are learned from the same answers.

    Raises InvalidInput for steps that do not ascend from 1, for answers that were not drawn under these plans, and
    for those that no possible state gives.
    """
    waiting, numbers = list[tuple[IntArray, Steps | JointSteps]](), 0
    for smoother, published, beside in people:
        waiting.append((published.t, smoother.observed(published, beside)))
        numbers += len(published.t) * smoother.reading.model.n_states
        if numbers >= KEPT:
            yield from _smoothed(smoother, waiting, marginals, path, places)
            waiting, numbers = [], 0
    if waiting:
        yield from _smoothed(smoother, waiting, marginals, path, places)


def _smoothed(
    smoother: Smoother,
    people: Sequence[tuple[IntArray, Steps | JointSteps]],
    marginals: bool,
    path: bool,
    places: OwnPlaces | None,
) -> Iterator[SmoothedSteps]:
    """Some people smoothed together, at some of the steps (n,) of each."""
    _share_rows([steps for _, steps in people if isinstance(steps, Steps)])
    model, observed = smoother.reading.model, [observed_of(steps) for _, steps in people]
    if places is not None:
        jumps = own_jumps(model, [(person, places) for person in observed])
        observed = [person._replace(jump=jump) for person, jump in zip(observed, jumps, strict=True)]
    posteriors = smooth(model, observed, smoother.setting.space.own_answers, marginals=marginals)
    for (t, steps), person, said in zip(people, observed, posteriors, strict=True):
        way = likeliest_path(person.chain(model), person.prior, steps, t=person.t) if path else None
        if way is not None and model.secrets is not None:
            way = model.secrets[way]
        smoothed = SmoothedSteps(said.mean, said.state, said.probability, way, said.marginals if marginals else None)
        yield smoothed if isinstance(steps, Steps) else smoothed.at(np.searchsorted(steps.t, t))


def observed_of(steps: Steps | JointSteps) -> Observed:
    """A subject's answers beside the belief before the first."""
    return Observed(steps.prior.latent, steps, int(steps.t[0]) + steps.ahead)


def _share_rows(people: Sequence[Steps]) -> None:
    """Make the likelihoods of people with the same plans together, where they are few enough to be kept."""
    alike: dict[int, list[Steps]] = {}
    for steps in people:
        if steps.whole is None and len(steps.t) * steps.prior.latent.n_states <= KEPT:
            plans = steps.made_again
            alike.setdefault(id(plans.schedule if isinstance(plans, SharedPlans) else plans), []).append(steps)
    for some in alike.values():
        for steps, rows in zip(some, _rows_of([(steps, 0, len(steps.t)) for steps in some]), strict=True):
            steps.whole = rows


class Smoothers:
    """The smoother of each subject of a release: one for all who begin alike.

    ``believed``: the belief model of the reader, as `Smoother` takes it.
    """

    def __init__(self, subjects: Subjects, believed: MarkovModel | None = None) -> None:
        self._subjects, self._believed = subjects, believed
        self._of: dict[Setting, Smoother] = {}

    def of(self, subject: str) -> Smoother:
        """The smoother of a subject. Raises InvalidInput for a beginning that is none."""
        setting = self._subjects.of(subject)
        if setting not in self._of:
            self._of[setting] = Smoother(setting, self._subjects, self._believed)
        return self._of[setting]


#: Of a row that was not asked.
_NO_SETS = (np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.uint8))


@dataclass(frozen=True, eq=False)
class SharedPlans:
    """The plans of steps whose supports follow from the model alone."""

    schedule: PlanSchedule
    numbers: IntArray

    def at(self, step: int) -> StepPlan:
        """The plan of the n-th answer."""
        return self.schedule.plan(int(self.numbers[step]))


@dataclass(frozen=True, eq=False)
class OwnPlans:
    """The plans of one subject's steps, kept as what they are made from."""

    setting: Setting
    sets: list[tuple[np.ndarray[tuple[int], np.dtype[np.uint8]], np.ndarray[tuple[int], np.dtype[np.uint8]]]]
    choices: list[StepChoice | None]
    numbers: IntArray

    def at(self, step: int) -> StepPlan:
        """The plan of the n-th answer."""
        n, choice = self.setting.space.n_states, self.choices[step]
        support, plan_set = (np.unpackbits(bits, count=n).astype(np.bool_) for bits in self.sets[step])
        return self.setting.under(choice).planner.plan(support, plan_set, NO_PARTNERS, choice)


class Steps:
    """A subject's answers as observations of the chain; ``prior`` is the belief of ``reading`` before the first.

    ``ahead`` is as of `Position`.

    For each of the answers (n,): its step ``t``, the ``moves`` from the one before, and True in ``asked`` if it was
    asked. ``whole``: the likelihoods of all of them, where they are made already.
    """

    whole: LikelihoodRows | None = None

    def __init__(self, reading: SettingReader, published: AnswerHistory, made_again: SharedPlans | OwnPlans) -> None:
        self.reading, self.published, self.made_again = reading, published, made_again
        before = reading.before(int(published.t[0]), published.origin)
        self.prior, self.ahead = before.prior, before.ahead
        self.t = published.t
        self.moves = np.diff(published.t, prepend=published.t[:1])
        self.asked = np.array([plan != "" for plan in published.plans], dtype=np.bool_)

    @property
    def plans(self) -> list[tuple[int, StepPlan]]:
        """The plan of every answer, with its step."""
        return [(int(self.t[n]), self.made_again.at(n)) for n in np.flatnonzero(self.asked).tolist()]

    def rows(self, first: int, last: int) -> LikelihoodRows:
        """The likelihood of the answers first..last, given each state of the model."""
        if self.whole is None:
            return _rows_of([(self, first, last)])[0]
        return LikelihoodRows(self.whole.values, self.whole.logged, self.whole.which[first:last])


def _rows_of(parts: Sequence[tuple[Steps, int, int]]) -> list[LikelihoodRows]:
    """The answers first..last of some people, whose plans are of one schedule: equal answers have one row in all."""
    sizes = [last - first for _, first, last in parts]
    owner, place = np.repeat(np.arange(len(parts)), sizes), np.concatenate([np.arange(a, b) for _, a, b in parts])
    numbers = np.concatenate([steps.made_again.numbers[a:b] for steps, a, b in parts])
    z = np.concatenate([steps.published.z[a:b] for steps, a, b in parts])
    asked = np.flatnonzero(np.concatenate([steps.asked[a:b] for steps, a, b in parts]))
    which, values, logged, count = np.full(len(z), -1), [], [], 0
    order = asked[np.argsort(numbers[asked], kind="stable")]
    for group in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
        if len(group):
            plan = parts[owner[group[0]]][0].made_again.at(int(place[group[0]]))
            rows = likelihood_rows(plan, z[group], parts[0][0].reading.everywhere)
            never = group[np.isneginf(rows.values.max(axis=1))[rows.which]]
            if len(never):
                published = parts[owner[never[0]]][0].published
                raise _impossible(published.at(int(published.t[place[never[0]]])))
            which[group] = count + rows.which
            values.append(rows.values)
            logged.append(rows.logged)
            count += len(rows.values)
    prior = parts[0][0].prior
    table = np.concatenate(values or [np.empty((0, prior.n_states))]), np.concatenate(logged or [np.zeros(0, np.bool_)])
    table = prior.lifted(table[0]), table[1]
    return [LikelihoodRows(*table, part) for part in np.split(which, np.cumsum(sizes)[:-1])]


def likelihood_rows(plan: StepPlan, answers: IntArray, everywhere: bool = False) -> LikelihoodRows:
    """The likelihood of a plan's answers (k, d), given each state, up to constants; equal answers have one row.

    ``everywhere``: states outside the plan's support count too, with the answer of their surrogate; else these
    are excluded. A likelihood that underflows is not impossible. An answer that no state gives has a row of -inf.
    """
    different, which = different_rows(answers)
    known, support = likelihood_of(plan), plan.constraint.support
    if everywhere:
        support = np.ones_like(support)
    values = None if known is None else known.of_answers(different)
    if values is None:
        values, logged = np.empty((len(different), len(support))), np.ones(len(different), dtype=np.bool_)
    else:
        # What has a law in floats may come from every state of the support.
        values[:, ~support] = 0.0
        logged = values.min(axis=1, where=support, initial=np.inf) < TRUSTED
    for number in np.flatnonzero(logged):
        possible = support & plan.mechanism.possible(different[number], plan.image)
        logs = plan.log_likelihood(different[number])
        values[number] = np.where(possible & np.isfinite(logs[possible]).all(), logs, -np.inf)
    return LikelihoodRows(values, logged, which)


def different_rows(z: IntArray) -> tuple[IntArray, IntArray]:
    """The different rows of z (k, d) in lexical order, and the number (k,) of each row among them."""
    if len(z) == 1:
        return z, np.zeros(1, dtype=np.int64)
    least = z.min(axis=0)
    spans = [int(most) - int(few) + 1 for most, few in zip(z.max(axis=0), least, strict=True)]
    if math.prod(spans) >= 2**62:
        different, which = np.unique(z, axis=0, return_inverse=True)
        return different, which.ravel()
    # Rows as numbers, which are sorted many times faster.
    numbers = np.ravel_multi_index(tuple((z - least).T), spans)
    _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    return z[first], which


def _skipped_to(position: Position, t: int, model: MarkovModel) -> Position:
    return position.skip(model, t - position.t) if t > position.t else position


def check_steps(published: AnswerHistory) -> None:
    t = published.t
    if not len(t):
        raise InvalidInput("step", "none", "at least one published answer")
    if t[0] < 1:
        raise InvalidInput(published.at(int(t[0])), "a step before 1", "numbers from 1, as they were released")
    gaps = np.diff(t)
    if (gaps < 1).any():
        raise InvalidInput(published.at(int(t[1:][gaps < 1][0])), "two rows", "one answer per step, in order")
    check_gap(int(max(gaps.max(initial=1), t[0]) - 1))


def another_plan(step: str, came: str, expected: str) -> InvalidInput:
    return InvalidInput(
        step,
        f"an answer drawn under plan {came[:12]}",
        f"plan {expected[:12]}, which model, policy, epsilon and options make: one of them is not the release's, or "
        "rows before this one are missing or changed, or the subject has another query whose partners it shares",
    )


def _impossible(step: str) -> InvalidInput:
    return InvalidInput(step, "an answer that no possible state gives", "the answer that was released")


class JointSteps:
    """The published answers of several queries of one subject as observations of the chain, step by step.

    Attributes as of `Steps`; the first query's smoother has the reader. A step is asked if some query is. Raises
    InvalidInput for queries that no subject can have together, and as `Smoother.steps` does.
    """

    def __init__(self, queries: Sequence[tuple[Smoother, AnswerHistory]]) -> None:
        subject, setting = queries[0][1].subject, queries[0][0].setting
        for smoother, published in queries:
            check_steps(published)
            if smoother is not queries[0][0]:
                check_joint(smoother.setting.header(subject, ""), setting.header(subject, ""))
        self.t: IntArray = np.unique(np.concatenate([published.t for _, published in queries]))
        self.moves = np.diff(self.t, prepend=self.t[:1])
        self._schedule = PlanSchedule(setting)
        self.reading = queries[0][0].reading
        before = self.reading.before(int(self.t[0]), queries[0][1].origin)
        self.prior, self.ahead = before.prior, before.ahead
        rows: dict[int, list[tuple[Smoother, AnswerHistory, int]]] = {t: [] for t in self.t.tolist()}
        for smoother, published in queries:
            for n, t in enumerate(published.t.tolist()):
                if published.plans[n]:
                    rows[t].append((smoother, published, n))
        self._answers = [self._drawn(self._schedule.support(t), waiting) for t, waiting in rows.items()]
        self.asked = np.array([len(answers) > 0 for answers in self._answers], dtype=np.bool_)

    def rows(self, first: int, last: int) -> LikelihoodRows:
        """The log likelihood of all answers of the steps first..last, given each state of the model."""
        values = np.zeros((last - first, self.prior.n_states))
        for place, answers in enumerate(self._answers[first:last]):
            for plan, published, row in answers:
                likelihood = likelihood_rows(plan, published.z[row : row + 1], self.reading.everywhere)
                if np.isneginf(likelihood.values.max()):
                    raise _impossible(published.at(int(published.t[row])))
                values[place] += likelihood.logs[0]
        return LikelihoodRows(self.prior.lifted(values), np.ones(len(values), dtype=np.bool_), np.arange(len(values)))

    @property
    def plans(self) -> list[tuple[int, StepPlan]]:
        """The plan of every answer, with its step."""
        pairs = zip(self.t.tolist(), self._answers, strict=True)
        return [(t, plan) for t, answers in pairs for plan, _, _ in answers]

    def _drawn(
        self, support: BoolArray, waiting: list[tuple[Smoother, AnswerHistory, int]]
    ) -> list[tuple[StepPlan, AnswerHistory, int]]:
        """The plans of one step's answers: each was made beside the partners that those before it had fixed."""
        drawn: list[tuple[StepPlan, AnswerHistory, int]] = []
        while waiting:
            partners = NO_PARTNERS
            if drawn:
                partners = np.unique(np.vstack([plan.partners for plan, _, _ in drawn]), axis=0)
            for place, (smoother, published, n) in enumerate(waiting):
                plan = smoother.planned(support, published, n, partners)
                if plan is not None:
                    drawn.append((plan, published, n))
                    del waiting[place]
                    break
            else:
                _, published, n = waiting[0]
                raise another_plan(published.at(int(published.t[n])), published.plans[n], "")
        return drawn


def joint_belief(
    ledger: Ledger,
    subject: str,
    model: MarkovModel,
    policy: PolicyGraph,
    spaces: StateSpace | Mapping[str, StateSpace],
    *,
    t: int | None = None,
    initial: Any = None,
    policies: Sequence[PolicyGraph] = (),
    believe: MarkovModel | None = None,
) -> Belief:
    """The public belief about a subject given the answers of all its queries.

    Parameters
    ----------
    ledger, subject : where the answers are, and whose they are.
    model, policy : those of the releases.
    spaces : the space of each query, by its name; one for all queries of the same.
    t : the step that the belief is about, given all answers up to it; the last stored one by default. Later steps are
        predicted.
    initial, policies : as for `ReleaseSession.resume`.
    believe : another model to read the answers with, as for `dphmm.reconstruction.smooth`.

    Returns
    -------
    A Belief: ``probability`` (N,) and ``support`` (N,).

    Raises
    ------
    InvalidInput : no history, a query without a space, another model, policy or space than it was released under.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.accounting.ledger import MemoryLedger
    >>> space, ledger, bits = dphmm.StateSpace.labels(["home", "work"]), MemoryLedger(), dphmm.ReplayBits(2)
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], start="at")
    >>> given = {"ledger": ledger, "subject": "a", "bits": bits}
    >>> for query in ("first", "second"):
    ...     session = dphmm.ReleaseSession(model, dphmm.policy.complete(2), space, 1, query=query, **given)
    ...     _ = session.release("home")
    >>> both = dphmm.session.joint_belief(ledger, "a", model, dphmm.policy.complete(2), space)
    >>> round(float(session.posterior.probability.max()), 3), round(float(both.probability.max()), 3)
    (0.731, 0.881)

    Source: docs/proofs/joint-queries.md.
    """
    stored: dict[int, list[tuple[Setting, Entry]]] = {}
    last, start, origin, answers = 0, None, "", list[tuple[int, StepPlan, IntArray]]()
    for _, query in ledger.sessions_of([subject]):
        header = ledger.header(subject, query)
        space = spaces if isinstance(spaces, StateSpace) else spaces.get(query)
        if header is None or space is None:
            raise InvalidInput("spaces", f"none for the query {query!r}", "a space for every query of the subject")
        setting = Setting.read(header.options, model, policy, space, query, policies).beginning(initial)
        origin = header.options.get("origin", "")
        check_header(setting.header(subject, origin), header)
        start = setting.first(origin) if start is None else start
        reads = SettingReader(setting, believed_model(setting, believe))
        for entry in ledger.entries(subject, query):
            last = max(last, entry.through)
            if entry.z is not None and (t is None or entry.t <= t):
                stored.setdefault(entry.t, []).append((setting, entry))
    if start is None:
        raise InvalidInput("subject", "one that the ledger does not know", "a subject of the ledger")
    if t is not None and (isinstance(t, bool) or not isinstance(t, (int, np.integer)) or t < 1):
        raise InvalidInput("t", str(t), "the number of a step, from 1")
    until, position = last if t is None else int(t), start
    belief = position.prior
    for step in sorted(stored):
        position = _skipped_to(position, step, model)
        belief = position.prior
        for setting, entry in stored[step]:
            plan = setting.made_again(position.prior.support, ledger.plan(str(entry.plan_hash)))
            check_made_again(entry, plan.hash)
            z = np.array(entry.z, dtype=np.int64)
            answers.append((step, plan, z))
            belief = belief.condition(plan.log_likelihood(z), plan.still_possible(z))
        position = position.predict(model, belief)
    if reads.believed is not None:
        return belief_after(reads, answers, until, origin)
    return belief if position.t > until else position.predict_through(model, until).prior
