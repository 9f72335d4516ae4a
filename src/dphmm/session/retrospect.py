"""A finished release seen from its end: what all its answers together say of every step.

Computed from what is public: model, policy, space, options, and the published answers. The plans under which these were
drawn are made again, step by step as a session makes them, and their hashes compared with the published ones: under any
other plan the likelihoods would be wrong. No true state is there to be used, so nothing is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from dphmm._kernels.markov import TRUSTED
from dphmm.errors import DphmmError, InvalidInput
from dphmm.markov.filtering import Belief
from dphmm.markov.model import MarkovModel
from dphmm.markov.retrospect import Rows, likeliest_path, smooth
from dphmm.session.choice import StepChoice
from dphmm.session.layout import check_gap
from dphmm.session.plan import NO_PARTNERS, Plan
from dphmm.session.schedule import PlanSchedule
from dphmm.session.setting import Setting
from dphmm.session.step import Position, likelihood_of
from dphmm.session.subjects import Subjects
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm.session.joint import JointSteps

#: Likelihoods of so many states together are kept between the two passes and the path.
_KEPT = 2**22


@dataclass(frozen=True, eq=False)
class Published:
    """One subject's rows (n,) by step: ``t`` from 1 ascending, ``z`` (n, d) in lattice steps, plan hashes.

    A row that was not asked has the hash "", and nothing is read of its z. ``epsilon`` (n,), where it is known, tells
    what may have been chosen for a row.
    """

    subject: str
    t: IntArray
    z: IntArray
    plans: Sequence[str]
    epsilon: FloatArray | None = None

    def at(self, step: int) -> str:
        """What an error calls a step of this subject."""
        return f"step {step} of {self.subject!r}"


@dataclass(frozen=True, eq=False)
class Smoothed:
    """What all answers say of each step (n,).

    ``mean`` (n, d): the posterior mean answer, the estimate of least expected squared error. ``state``: the likeliest
    state of each step by itself (ties within 1e-12 to the lowest number), ``probability``: how likely. ``path``: the
    states of the single likeliest path (Viterbi). ``marginals`` (n, N), where they were asked for.
    """

    mean: FloatArray
    state: IntArray
    probability: FloatArray
    path: IntArray
    marginals: FloatArray | None

    def at(self, steps: IntArray) -> Smoothed:
        """Some of the steps."""
        marginals = None if self.marginals is None else self.marginals[steps]
        return Smoothed(self.mean[steps], self.state[steps], self.probability[steps], self.path[steps], marginals)


class Hindsight:
    """Smooths the releases of many subjects that were made under one setting.

    ``subjects``: what may have been chosen for single steps; which it was is told by the hash of a row's plan.
    """

    def __init__(self, setting: Setting, subjects: Subjects | None = None) -> None:
        self._setting = setting
        self._model = setting.model
        self._chosen = subjects if subjects is not None and subjects.chosen else None
        shared = setting.has_public_plans and self._chosen is None
        self._schedule = PlanSchedule(setting) if shared else None

    @property
    def model(self) -> MarkovModel:
        """The chain whose steps were released."""
        return self._model

    @property
    def setting(self) -> Setting:
        """What the answers were released under."""
        return self._setting

    def smooth(
        self,
        published: Published,
        *,
        marginals: bool = False,
        beside: Sequence[tuple[Hindsight, Published]] = (),
    ) -> Smoothed:
        """What the answers of one subject say together; ``beside``: those of its other queries.

        Raises InvalidInput for steps that do not ascend from 1, for answers that were not drawn under these plans, and
        for those that no possible state gives.
        """
        steps = self.observed(published, beside)
        prior = steps.prior
        n, space = len(steps.moves), self._setting.space
        mean, state = np.empty((n, space.dimension)), np.empty(n, dtype=np.int64)
        probability = np.empty(n)
        whole = np.empty((n, self._model.n_states)) if marginals else None

        def take(first: int, part: FloatArray) -> None:
            rows = slice(first, first + len(part))
            mean[rows] = part @ space.own_answers
            largest = part.max(axis=1)
            state[rows] = np.argmax(part >= largest[:, None] * (1 - 1e-12), axis=1)
            probability[rows] = largest
            if whole is not None:
                whole[rows] = part

        smooth(self._model, prior, steps, take)
        path = likeliest_path(self._model, prior, steps)
        found = Smoothed(mean, state, np.minimum(probability, 1.0), path, whole)
        return found if isinstance(steps, Steps) else found.at(np.searchsorted(steps.t, published.t))

    def planned(self, support: BoolArray, published: Published, n: int, partners: IntArray) -> Plan | None:
        """The plan of the n-th row beside partners (p, 2) that other queries fixed; None where no plan has its hash."""
        may: Sequence[StepChoice | None] = (None,)
        if self._chosen is not None:
            may = self._chosen.may_have(None if published.epsilon is None else float(published.epsilon[n]))
        for choice in (one for each in may for one in self._setting.may_be(each)):
            try:
                plan = self._setting.under(choice).planner.plan(support, support, partners, choice)
            except DphmmError:
                # It was another choice's step: this one cannot be planned here.
                continue
            if plan.hash == published.plans[n]:
                return plan
        return None

    def observed(self, published: Published, beside: Sequence[tuple[Hindsight, Published]] = ()) -> Steps | JointSteps:
        """The answers of one subject as observations, with those of its other queries. Raises as `smooth` does."""
        from dphmm.session.joint import JointSteps

        return JointSteps([(self, published), *beside]) if beside else self.steps(published)

    def steps(self, published: Published) -> Steps:
        """The answers of one subject as observations of the chain; raises as `smooth` does."""
        check_steps(published)
        plans = self._shared(published) if self._schedule is not None else self._own(published)
        first = _skipped_to(self._setting.first(), int(published.t[0]), self._model)
        return Steps(first.prior, published, plans)

    def _shared(self, published: Published) -> SharedPlans:
        assert self._schedule is not None
        numbers = self._schedule.numbers(published.t)
        hashes = {number: self._schedule.plan(number).hash for number in np.unique(numbers).tolist()}
        for place, (t, came) in enumerate(zip(published.t.tolist(), published.plans, strict=True)):
            number = int(numbers[place])
            if came not in ("", hashes[number]):
                numbers[place] = self._otherwise(number, came)
                if numbers[place] < 0:
                    raise another_plan(published.at(t), came, hashes[number])
        return SharedPlans(self._schedule, numbers)

    def _otherwise(self, number: int, came: str) -> int:
        """The number of a plan of the same support that another machine may have made; -1 where none has the hash."""
        assert self._schedule is not None
        for choice in self._setting.may_be(None)[1:]:
            other = self._schedule.beside(number, NO_PARTNERS, choice)
            if self._schedule.plan(other).hash == came:
                return other
        return -1

    def _own(self, published: Published) -> OwnPlans:
        """Follow the belief as the session did: each plan hangs on the answers before it."""
        options, model = self._setting.options, self._model
        position, sets, choices = self._setting.first(), [], list[StepChoice | None]()
        for n, (t, z, hash_) in enumerate(zip(published.t.tolist(), published.z, published.plans, strict=True)):
            position = _skipped_to(position, t, model)
            if not hash_:
                sets.append(_NO_SETS)
                choices.append(None)
                position = position.following(model, position.prior)
                continue
            support, plan_set = position.prior.support, position.plan_set(options)
            plan, choice = self._drawn_under(position, published, n)
            sets.append((np.packbits(support), np.packbits(plan_set)))
            choices.append(choice)
            _check_possible(plan, z, support, published.at(t))
            # Where no answer changes what is planned, none has to be learned from.
            known = position.prior if self._setting.has_public_plans else position.posterior(plan, z)
            position = position.following(model, known)
        return OwnPlans(self._setting, sets, choices)

    def _drawn_under(self, position: Position, published: Published, n: int) -> tuple[Plan, StepChoice | None]:
        """The plan of the n-th row, which has the row's hash, and what was chosen for its step."""
        may: Sequence[StepChoice | None] = (None,)
        if self._chosen is not None:
            may = self._chosen.may_have(None if published.epsilon is None else float(published.epsilon[n]))
        made = ""
        for choice in (one for each in may for one in self._setting.may_be(each)):
            try:
                plan = self._setting.plan(position, NO_PARTNERS, choice)
            except DphmmError:
                # It was another choice's step: this one cannot be planned here.
                if len(may) == 1:
                    raise
                continue
            if plan.hash == published.plans[n]:
                return plan, choice
            made = made or plan.hash
        raise another_plan(published.at(int(published.t[n])), published.plans[n], made or "none")


class Hindsights:
    """The hindsight of each subject of a release: one for all who begin alike."""

    def __init__(self, subjects: Subjects) -> None:
        self._subjects = subjects
        self._of: dict[Setting, Hindsight] = {}

    def of(self, subject: str) -> Hindsight:
        """The hindsight of a subject. Raises InvalidInput for a beginning that is none."""
        setting = self._subjects.of(subject)
        if setting not in self._of:
            self._of[setting] = Hindsight(setting, self._subjects)
        return self._of[setting]


#: Of a row that was not asked.
_NO_SETS = (np.zeros(0, dtype=np.uint8), np.zeros(0, dtype=np.uint8))


@dataclass(frozen=True, eq=False)
class SharedPlans:
    """The plans of steps whose supports follow from the model alone."""

    schedule: PlanSchedule
    numbers: IntArray

    def at(self, step: int) -> Plan:
        """The plan of the n-th answer."""
        return self.schedule.plan(int(self.numbers[step]))


@dataclass(frozen=True, eq=False)
class OwnPlans:
    """The plans of one subject's steps, kept as what they are made from."""

    setting: Setting
    sets: list[tuple[np.ndarray[tuple[int], np.dtype[np.uint8]], np.ndarray[tuple[int], np.dtype[np.uint8]]]]
    choices: list[StepChoice | None]

    def at(self, step: int) -> Plan:
        """The plan of the n-th answer."""
        n, choice = self.setting.model.n_states, self.choices[step]
        support, plan_set = (np.unpackbits(bits, count=n).astype(np.bool_) for bits in self.sets[step])
        return self.setting.under(choice).planner.plan(support, plan_set, NO_PARTNERS, choice)


class Steps:
    """A subject's answers as observations of the chain; ``prior`` is the belief before the first."""

    def __init__(self, prior: Belief, published: Published, plans: SharedPlans | OwnPlans) -> None:
        self.prior = prior
        self._published = published
        self._plans = plans
        self._moves = np.diff(published.t, prepend=published.t[:1])
        self._whole: Rows | None = None
        if len(published.t) * prior.n_states <= _KEPT:
            self._whole = self._made(0, len(published.t))

    @property
    def moves(self) -> IntArray:
        """Moves (n,) between each answer and the one before."""
        return self._moves

    @property
    def t(self) -> IntArray:
        """The steps (n,) of the answers."""
        return self._published.t

    @property
    def plans(self) -> list[tuple[int, Plan]]:
        """The plan of every answer, with its step."""
        steps, asked = self._published.t.tolist(), self._published.plans
        return [(steps[n], self._plans.at(n)) for n, plan in enumerate(asked) if plan]

    def rows(self, first: int, last: int) -> Rows:
        """How likely each state makes the answers first..last."""
        if self._whole is None:
            return self._made(first, last)
        values, logged, _ = self._whole
        return Rows(values[first:last], logged[first:last], np.arange(last - first))

    def _made(self, first: int, last: int) -> Rows:
        values = np.empty((last - first, self.prior.n_states))
        logged = np.empty(last - first, dtype=np.bool_)
        for at in range(first, last):
            if not self._published.plans[at]:
                values[at - first], logged[at - first] = 1.0, False
                continue
            step, z = self._published.at(int(self._published.t[at])), self._published.z[at]
            logged[at - first] = likelihood_row(self._plans.at(at), z, values[at - first], step)
        return Rows(values, logged, np.arange(last - first))


def likelihood_row(plan: Plan, z: IntArray, out: FloatArray, step: str) -> bool:
    """How likely a plan makes an answer from each state (N,), up to a constant; whether ``out`` is in logs.

    Only states that the answer excludes by its coset are impossible: a likelihood that underflows is not.
    """
    possible = plan.still_possible(z)
    fast = likelihood_of(plan)
    weights = None if fast is None else fast.at(z)
    if weights is not None and weights.min(where=possible, initial=np.inf) >= TRUSTED:
        out[:] = np.where(possible, weights, 0.0)
        return False
    logs = plan.log_likelihood(z)
    if not possible.any() or not np.isfinite(logs[possible]).all():
        raise _impossible(step)
    out[:] = np.where(possible, logs, -np.inf)
    return True


def _skipped_to(position: Position, t: int, model: MarkovModel) -> Position:
    return position.skipping(model, t - position.t) if t > position.t else position


def check_steps(published: Published) -> None:
    t = published.t
    if not len(t):
        raise InvalidInput("step", "none", "at least one published answer")
    if t[0] < 1:
        raise InvalidInput(published.at(int(t[0])), "a step before 1", "numbers from 1, as they were released")
    gaps = np.diff(t)
    if (gaps < 1).any():
        raise InvalidInput(published.at(int(t[1:][gaps < 1][0])), "two rows", "one answer per step, in order")
    check_gap(int(max(gaps.max(initial=1), t[0]) - 1))


def _check_possible(plan: Plan, z: IntArray, support: BoolArray, step: str) -> None:
    if not (plan.still_possible(z) & support).any():
        raise _impossible(step)


def another_plan(step: str, came: str, expected: str) -> InvalidInput:
    return InvalidInput(
        step,
        f"an answer drawn under plan {came[:12]}",
        f"plan {expected[:12]}, which model, policy, epsilon and options make: one of them is not the release's, or "
        "rows before this one are missing or changed, or the subject has another query whose partners it shares",
    )


def _impossible(step: str) -> InvalidInput:
    return InvalidInput(step, "an answer that no possible state gives", "the answer that was released")
