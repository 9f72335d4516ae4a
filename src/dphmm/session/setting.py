"""The public inputs of a release, checked once: model, policy, space, options, schedule. All that releases takes them.

`Setting` is that of one subject; `Subjects` has the settings of all subjects of a release, and what was chosen for its
steps.

Proof: docs/proofs/promise.md.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from dphmm._cached import cached_property
from dphmm._checks import exact_epsilon, one_of, written_fraction
from dphmm.accounting.budget import quoted
from dphmm.accounting.ledger import PlanRecord, SessionHeader
from dphmm.accounting.promise import Schedule
from dphmm.accounting.records import in_short, shown
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.mechanisms.answer_table import is_reference
from dphmm.policy.constraint import Support
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.protection import AUTO, MERGE, PROTECTIONS, Partner
from dphmm.session.options import CHOICES, Options, Partners, PlanChoices, StepChoice, checked_varies, recorded_choice
from dphmm.session.plan import (
    NO_PARTNERS,
    Position,
    StepPlan,
    plan_states,
    recorded_joins,
    recorded_joint_edges,
    recorded_merges,
)
from dphmm.session.planner import JOIN, Planner
from dphmm.states.maps import MapSpace
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import ANSWERS
from dphmm.types import BoolArray, Exact, IntArray

#: Settings of single steps whose plans are kept at hand.
_MOST_VARIANTS = 64


@dataclass(frozen=True, eq=False)
class Setting:
    """Model, policy, space, options, and the name of the query that is answered. All of it is public.

    ``answer`` is the rule of tables and streams for several rows of one subject in one step: "last" or "first". None is
    for sessions, which are given one state a step. ``schedule`` says which steps are asked, None for every step.
    ``varies`` names what may be chosen for single steps, and ``policies`` (by digest) are those that steps may have
    instead. ``began`` is set where a subject is known to begin elsewhere than the model says: digests of the model
    as it was, and of where that is. ``weights`` (N,) are how often people are in each state, for protection="auto";
    those of the model when None. Everything made from one setting shares its plans.
    """

    model: MarkovModel
    policy: PolicyGraph
    space: StateSpace
    options: Options
    query: str = "state"
    answer: str | None = None
    schedule: Schedule | None = None
    varies: tuple[str, ...] = ()
    policies: dict[str, PolicyGraph] = field(default_factory=dict)
    began: tuple[str, str] | None = None
    weights: IntArray | None = None

    @classmethod
    def of(
        cls,
        model: MarkovModel,
        policy: PolicyGraph,
        space: StateSpace,
        epsilon: Exact | None,
        *,
        query: str = "state",
        answer: str | None = None,
        schedule: Schedule | None = None,
        varies: Sequence[str] = (),
        **choices: Unpack[PlanChoices],
    ) -> Setting:
        """A setting from what a user passes; ``start`` is the model's own when None. Choices: see `ReleaseSession`.

        With a schedule ``epsilon`` may be None: it is the schedule's. Raises InvalidInput naming the field, also for a
        choice that there is not.
        """
        check_same_states(model, policy, space)
        known = PlanChoices.__optional_keys__
        for name in choices:
            if name not in known:
                raise InvalidInput(name, "an unknown choice", f"one of {', '.join(sorted(known))}")
        start = choices.get("start")
        chosen: PlanChoices = {**choices, "start": model.start if start is None else start}
        each: Any = epsilon if schedule is None else epsilon_of_schedule(epsilon, schedule)
        options = Options.checked(each, labels=space.has_labels, **chosen)
        if is_reference(options.mechanism) and "epsilon" in varies:
            raise InvalidInput(
                "varies", "epsilon", f"no other epsilon than {shown(options.epsilon)}: the table is for it"
            )
        return cls(model, policy, space, options, query, _rule(answer), schedule, checked_varies(varies))

    @property
    def excludes_no_state(self) -> bool:
        """True if every state is possible at every step, whatever was answered before.

        Only then the promise is about every pair of the policy: a state that is excluded is answered as its surrogate,
        and may lose any amount to its own policy neighbours. True of a model with a jump, and of one whose every state
        may be the first and is reached from some state.
        """
        if self.began:
            return False
        model = self.model
        everywhere = bool((model.initial > 0).all())
        if model.jump is not None:
            return everywhere or self.options.start == "before"
        return everywhere and bool((np.asarray(model.moves.sum(axis=0)) > 0).all())

    @classmethod
    def read(
        cls,
        written: Mapping[str, str],
        model: MarkovModel,
        policy: PolicyGraph,
        space: StateSpace,
        query: str = "state",
        policies: Sequence[PolicyGraph] = (),
    ) -> Setting:
        """The setting whose options a ledger or a statement recorded. ``policies``: others that single steps had."""
        check_same_states(model, policy, space)
        schedule = None if "schedule" not in written else Schedule.read(written["schedule"])
        options, rule = Options.read(written, space.has_labels), _rule(written.get("answer"))
        varies = checked_varies(written["varies"].split(",") if "varies" in written else ())
        others = {other.digest: other for other in policies}
        return cls(model, policy, space, options, query, rule, schedule, varies, others)

    @cached_property
    def planner(self) -> Planner:
        """Makes and keeps the plans."""
        return Planner(self.policy, self.space, self.options, weights=self._weighed)

    @cached_property
    def _weighed(self) -> IntArray | None:
        return self.model.occupancy_weights if self.weights is None else self.weights

    def with_model(self, model: MarkovModel) -> Setting:
        """The same setting under another model of the same states, such as another start; plans are shared."""
        other = replace(self, model=model)
        other.__dict__["planner"] = self.planner
        return other

    def beginning(self, initial: Any, field: str = "initial") -> Setting:
        """The setting of a subject that is publicly known to begin elsewhere than the model says; None for the same.

        ``initial``: a state, by number or name, or probabilities (N,). Plans are shared. Raises InvalidInput.
        """
        if initial is None:
            return self
        if isinstance(initial, str):
            number = self.space.index_of(initial)
            if number < 0:
                raise InvalidInput(field, initial, "the name of a state")
            initial = number
        model = self.model.beginning(initial, field)
        digest = hashlib.sha256(model.initial.astype("<f8").tobytes()).hexdigest()
        before = self.model.digest if self.began is None else self.began[0]
        other = replace(self, model=model, began=(before, digest), weights=self._weighed)
        other.__dict__["planner"] = self.planner
        return other

    def with_epsilon(self, epsilon: Fraction) -> Setting:
        """The same setting at another epsilon."""
        return replace(self, options=replace(self.options, epsilon=epsilon))

    def under(self, choice: StepChoice | None) -> Setting:
        """The setting of one step: with the epsilon and the policy that were chosen for it."""
        if choice is None or (choice.epsilon is None and choice.policy is None):
            return self
        policy = self.policy if choice.policy is None else choice.policy
        epsilon = self.options.epsilon if choice.epsilon is None else choice.epsilon
        key = policy.digest, epsilon
        with self._lock:
            if key not in self._variants:
                made = replace(self, policy=policy, options=replace(self.options, epsilon=epsilon))
                chosen = replace(choice, partners=None, protection=None, joins=None).told
                made.__dict__["planner"] = Planner(policy, self.space, made.options, chosen, self._weighed)
                self._variants[key] = made
            self._variants.move_to_end(key)
            while len(self._variants) > _MOST_VARIANTS:
                self._variants.popitem(last=False)
            return self._variants[key]

    @cached_property
    def _variants(self) -> OrderedDict[tuple[str, Fraction], Setting]:
        return OrderedDict()

    @cached_property
    def _lock(self) -> threading.Lock:
        return threading.Lock()

    @property
    def has_public_plans(self) -> bool:
        """True if no answer changes the plans, as they are on the support."""
        return isinstance(self.options.constraint, Support)

    @property
    def paces(self) -> bool:
        """True if a paced schedule decides from beliefs which steps are asked."""
        return self.schedule is not None and self.schedule.kind == "paced"

    @property
    def needs_beliefs(self) -> bool:
        """True if earlier answers decide the plans, or the steps that are asked."""
        return not self.has_public_plans or self.paces

    def first(self, origin: str = "") -> Position:
        """Before step 1 of a subject, whose ``origin`` is read where the model's slots go by a clock.

        Raises InvalidInput for an origin that is no number of a time bin then.
        """
        ahead = self.model.number_of_first(origin) - 1
        # The slot of the move to step 1 says where a subject may be; of what follows the number decides.
        slot = 0 if self.options.start == "at" else self.model.slots_of(np.array([ahead])).item()
        if slot not in self._firsts:
            self._firsts[slot] = Position.first(self.model, self.options.start, ahead)
        return self._firsts[slot]._replace(ahead=ahead)

    @cached_property
    def _firsts(self) -> dict[int, Position]:
        """Positions before step 1, by the slot of the move to it."""
        return {}

    def plan(self, position: Position, partners: IntArray = NO_PARTNERS, choice: StepChoice | None = None) -> StepPlan:
        """The plan of the step that a subject stands before; ``partners`` (p, 2) are fixed by its other queries."""
        planner = self.planner if choice is None else self.under(choice).planner
        return planner.plan(position.prior.support, position.constrain(self.options.constraint), partners, choice)

    def made_again(self, support: BoolArray, record: PlanRecord) -> StepPlan:
        """The plan that a record makes on a support (N,), whatever was chosen for its step.

        Raises InvalidInput for a damaged record, and for a policy that is not among ``policies``.
        """
        choice = self.choice_of(record)
        return self.under(choice).planner.plan(support, plan_states(record), recorded_joint_edges(record), choice)

    def choice(
        self,
        epsilon: Exact | None = None,
        policy: PolicyGraph | None = None,
        partners: Partners | None = None,
        protection: str | Partner | None = None,
    ) -> StepChoice | None:
        """The choice of a step from what a user passes; None where it is the setting's own.

        Raises InvalidInput naming the field, also for a choice that the setting does not let vary.
        """
        choices = {"epsilon": epsilon, "partners": partners, "policy": policy, "protection": protection}
        for name, value in choices.items():
            if value is not None and name not in self.varies:
                expected = f'nothing, or a session that was made with varies=("{name}",)'
                raise InvalidInput(name, "a choice for one step", expected)
        if epsilon is not None and self.schedule is not None:
            expected = f"nothing beside the schedule, whose releases have {shown(self.schedule.exact)} each"
            raise InvalidInput("epsilon", str(epsilon), expected)
        if policy is not None and not isinstance(policy, PolicyGraph):
            raise InvalidInput("policy", type(policy).__name__, "a PolicyGraph")
        if policy is not None and policy.n_states != self.space.n_states:
            raise InvalidInput("policy", f"{policy.n_states} states", f"the {self.space.n_states} of the space")
        if protection is not None and not callable(protection) and protection not in PROTECTIONS:
            expected = f"{', '.join(PROTECTIONS)}, or a callable (state, others) -> partner"
            raise InvalidInput("protection", str(protection), expected)
        if policy is not None:
            # Whoever reads this step again needs it.
            self.policies[policy.digest] = policy
        exact = None if epsilon is None else exact_epsilon(epsilon)
        choice = StepChoice(
            epsilon=None if exact == self.options.epsilon else exact,
            policy=None if policy is not None and policy.digest == self.policy.digest else policy,
            partners=None if not partners else _numbers_of(self.space, partners),
            protection=None if protection == self.options.protection else protection,
        )
        return None if choice.is_none else choice

    def choice_of(self, record: PlanRecord) -> StepChoice | None:
        """The choice for the step of a recorded plan, or None. Raises InvalidInput as `made_again`."""
        choice = recorded_choice(record, recorded_joins(record), self.varies, self.policies)
        if self.options.protection != AUTO and choice is None:
            return None
        split = MERGE if len(recorded_merges(record)) else JOIN
        return replace(StepChoice() if choice is None else choice, split=split)

    def may_be(self, choice: StepChoice | None) -> list[StepChoice | None]:
        """The choices that a plan may have been made under if its step had this choice, the likeliest first.

        protection="auto" decides in floats: another machine may have decided otherwise.
        """
        if self.options.protection != AUTO and (choice is None or not choice.joined):
            return [choice]
        base = StepChoice() if choice is None else choice
        return [choice, replace(base, split=JOIN), replace(base, split=MERGE)]

    def first_plan(self) -> StepPlan:
        """The plan of step 1, which is everybody's; with slots and δ-sets, an example's."""
        return self.plan(self.first(self.model.example_origin))

    def header(self, subject: str, origin: str) -> SessionHeader:
        """The header of all steps of one subject, as a ledger keeps and compares it."""
        model = self.model.digest if self.began is None else self.began[0]
        digests = {"model": model, "space": self.space.digest, "policy": self.policy.digest}
        rule = {} if self.answer is None else {"answer": self.answer}
        if self.schedule is not None:
            rule["schedule"] = self.schedule.written()
        if self.varies:
            rule["varies"] = ",".join(self.varies)
        if self.began is not None:
            rule["initial"] = self.began[1]
        return SessionHeader(subject, self.query, {**digests, "origin": origin, **rule, **self.options.written()})


#: Every option of a header: `Setting.header` writes no other.
HEADER_OPTIONS = frozenset(
    {"model", "space", "policy", "origin", "answer", "schedule", "varies", "initial"}
    | {"epsilon", "constraint", "mechanism", "protection", "start"}
)


def check_header(own: SessionHeader, kept: SessionHeader) -> None:
    """Raises InvalidInput naming the first parameter in which a history differs.

    A history that a session began has no rule for several rows of a step. Tables and streams continue it as "last", so
    that it is not continued under both rules.
    """
    stored = {"answer": "last", **kept.options} if "answer" in own.options else kept.options
    options = as_kept(own, stored).options
    for name in {**options, **dict.fromkeys(sorted(set(stored) & {"initial", "schedule", "varies"}))}:
        value = options.get(name)
        if stored.get(name) != value:
            asked, before = option_words(name, value), option_words(name, stored.get(name))
            raise InvalidInput(name, asked, f"the {name} of the history, {before}")


def as_kept(own: SessionHeader, stored: Mapping[str, str]) -> SessionHeader:
    """The own header; where it or the history has no rule for several rows of a step, with what the history has.

    A session has no rule, which is not another rule than that of a table or a stream.
    """
    if (own.options.get("answer") is None) == (stored.get("answer") is None):
        return own
    rule = {name: value for name, value in stored.items() if name == "answer"}
    others = {name: value for name, value in own.options.items() if name != "answer"}
    return SessionHeader(own.subject, own.query, {**others, **rule})


def epsilon_of_schedule(epsilon: Exact | None, schedule: Schedule) -> Exact:
    """The epsilon of a schedule's releases; raises InvalidInput where another one is given beside it."""
    if not isinstance(schedule, Schedule):
        expected = "a dphmm.accounting.Schedule, as dphmm.choose.plan(...).schedule; nothing for every step"
        raise InvalidInput("schedule", type(schedule).__name__, expected)
    if epsilon is not None and exact_epsilon(epsilon) != schedule.exact:
        raise InvalidInput("epsilon", str(epsilon), f"{shown(schedule.exact)}, the epsilon of the schedule")
    return schedule.exact


def _rule(answer: str | None) -> str | None:
    return None if answer is None else one_of(answer, ANSWERS, "answer")


def option_words(name: str, value: str | None) -> str:
    """An option of a header for people: an epsilon as a decimal, a schedule in short."""
    try:
        if name == "schedule":
            return "every step" if value is None else str(Schedule.read(value))
        if name == "varies":
            return value or "nothing"
        if name == "initial":
            return "that of the model" if value is None else value[:12]
        if name == "mechanism" and value is not None and is_reference(value):
            return f"the made table {value.partition(':')[2][:12]}"
        return in_short(written_fraction(str(value))) if name == "epsilon" else str(value)
    except ValueError:
        return str(value)


def check_same_states(model: MarkovModel, policy: PolicyGraph, space: StateSpace) -> None:
    """Model, policy and space must be what they are called, and speak of the same number of states."""
    kinds = (("model", model, MarkovModel), ("policy", policy, PolicyGraph), ("space", space, StateSpace))
    for name, argument, kind in kinds:
        if not isinstance(argument, kind):
            raise InvalidInput(name, type(argument).__name__, f"a {kind.__name__}")
    if not model.n_secrets == policy.n_states == space.n_states:
        states = f"{model.n_secrets} {'states' if model.secrets is None else 'secrets'}"
        fault = f"{states} in the model, {policy.n_states} in the policy, {space.n_states} in the space"
        raise InvalidInput("space", fault, "the same number in all three")
    maps = isinstance(space, MapSpace) and isinstance(model.space, MapSpace)
    if maps and model.space is not None and model.space.unmerged.digest != space.unmerged.digest:
        raise InvalidInput("space", "another map than the model's", "the model's own: model.space")
    # Another query has other answers, but the same states in the same order.
    names, others = space.given_names, model.space.given_names if model.space is not None else None
    if names is not None and others is not None and names != others:
        state = next(i for i, (a, b) in enumerate(zip(names, others, strict=True)) if a != b)
        expected = f"{others[state]!r}, as the model calls it: the same states in the same order"
        raise InvalidInput("space", f"state {state} called {names[state]!r}", expected)


#: {number of a step in tables, or of its time bin since 1970: what is chosen for it, by name}.
StepChoices = Mapping[int, Mapping[str, Any]]


class Subjects:
    """The settings of the subjects of a release, and what was chosen for its steps. All of it is public.

    ``setting`` is everybody's but of those whom ``initials`` {subject: state or N probabilities} lets begin elsewhere.
    Raises InvalidInput for choices that are none, and for those that the setting does not let vary.
    """

    def __init__(
        self, setting: Setting, initials: Mapping[str, Any] | None = None, step_choices: StepChoices | None = None
    ) -> None:
        self.setting = setting
        self.initials = dict(initials or {})
        self.given = checked_steps(step_choices or {})
        self.chosen = {step: _checked(setting, step, each) for step, each in self.given.items()}
        self._begun: dict[bytes, Setting] = {}
        self._different = _different(self.chosen.values())

    def of(self, subject: str) -> Setting:
        """The setting of a subject. Raises InvalidInput naming the subject."""
        initial = self.initials.get(subject)
        if initial is None:
            return self.setting
        # A name may look like a number: the state "3" is not state 3.
        key = repr(initial).encode() if np.ndim(initial) == 0 else np.asarray(initial, dtype=np.float64).tobytes()
        if key not in self._begun:
            self._begun[key] = self.setting.beginning(initial, f"initials of {quoted(subject)}")
        return self._begun[key]

    @property
    def policies(self) -> list[PolicyGraph]:
        """The policies that a step may have, the setting's first."""
        policies = [choice.policy for choice in self._different if choice is not None and choice.policy is not None]
        return list({policy.digest: policy for policy in (self.setting.policy, *policies)}.values())

    @property
    def epsilons(self) -> tuple[Fraction, Fraction]:
        """The smallest and the largest epsilon that a step may have."""
        epsilons = [self._epsilon_of(choice) for choice in self._different or (None,)]
        return min(epsilons), max(epsilons)

    def grouped(self) -> list[tuple[StepChoice, list[int]]]:
        """Each choice that is not the setting's own with the numbers of its steps, in order of the first."""
        steps: dict[str, list[int]] = {}
        for step in sorted(self.chosen):
            choice = self.chosen[step]
            if choice is not None:
                steps.setdefault(choice.key, []).append(step)
        choices = {other.key: other for other in self._different if other is not None}
        return [(choices[key], numbers) for key, numbers in steps.items()]

    @property
    def initials_digest(self) -> str:
        """SHA-256 (hex) of who begins where, as JSON: [[subject, SHA-256 of the probabilities], ...] by name."""
        beginnings = [(subject, self.of(subject).began) for subject in sorted(self.initials)]
        pairs = [(subject, began[1]) for subject, began in beginnings if began is not None]
        return hashlib.sha256(json.dumps(pairs, separators=(",", ":")).encode()).hexdigest()

    def may_have(self, epsilon: float | None = None, number: int | None = None) -> Sequence[StepChoice | None]:
        """The choices that a published row may have been released under; the hash of its plan decides.

        ``number`` is that of its step in tables, where it is known. ``epsilon``, the row's, leaves others out; that of
        a public constant is 0, which says nothing.
        """
        if number is not None:
            return (self.chosen.get(number),)
        if not epsilon:
            return self._different or (None,)
        fitting = [choice for choice in self._different if float(self._epsilon_of(choice)) == epsilon]
        return fitting or (None,)

    def epsilon_at(self, step: int) -> Fraction:
        """The epsilon of a release, by the number of its step in tables."""
        return self._epsilon_of(self.chosen.get(step))

    def _epsilon_of(self, choice: StepChoice | None) -> Fraction:
        epsilon = self.setting.options.epsilon
        return epsilon if choice is None or choice.epsilon is None else choice.epsilon


def _numbers_of(space: StateSpace, partners: Partners) -> IntArray:
    if not isinstance(partners, Mapping):
        raise InvalidInput("partners", type(partners).__name__, "a dictionary {state: partner}")
    pairs = [(_state(space, state), _state(space, partner)) for state, partner in partners.items()]
    numbers = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    if len(set(numbers[:, 0].tolist())) < len(numbers):
        raise InvalidInput("partners", "a state twice", "one partner for a state")
    return numbers


def _state(space: StateSpace, state: Any) -> int:
    number = space.index_of(state) if isinstance(state, str) else state
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise InvalidInput("partners", type(state).__name__, "numbers or names of states")
    if not 0 <= number < space.n_states:
        raise InvalidInput("partners", str(state), f"a state: 0 to {space.n_states - 1}, or a name")
    return int(number)


def _checked(setting: Setting, step: int, each: Mapping[str, Any]) -> StepChoice | None:
    try:
        return setting.choice(**each)
    except InvalidInput as error:
        text, _, expected = str(error).removeprefix(f"{error.field}: got ").rpartition("; expected ")
        raise InvalidInput(f"step_choices, step {step}, {error.field}", text, expected) from None


def names_chosen(step_choices: StepChoices) -> list[str]:
    """The names of what is chosen for some step."""
    return sorted({name for each in step_choices.values() for name in each})


def checked_steps(given: StepChoices) -> dict[int, dict[str, Any]]:
    """The choices at steps, by number. Raises InvalidInput for steps that are not numbers, and for unknown choices."""
    for step, chosen in given.items():
        if isinstance(step, bool) or not isinstance(step, (int, np.integer)):
            raise InvalidInput(
                "step_choices", str(step), "numbers of steps, as in the table, or of time bins since 1970"
            )
        for name in chosen:
            if name not in CHOICES:
                raise InvalidInput(f"step_choices of step {step}", name, f"one of {', '.join(CHOICES)}")
    return {int(step): dict(chosen) for step, chosen in given.items()}


def _different(chosen: Any) -> list[StepChoice | None]:
    """The setting's own, and each other choice once; nothing where there is no other."""
    by_key: dict[Any, StepChoice | None] = {}
    for choice in chosen:
        if choice is not None:
            by_key.setdefault(choice.key, choice)
    return [None, *by_key.values()] if by_key else []
