"""The public choices of a release: `Options` of all its steps, `StepChoice` of one step.

Both are checked once and written the same way everywhere they are recorded. A step's choice replaces its setting's. It
is made from public data and recorded with the plan. A step's promise is that of its own policy and epsilon. Over a
sequence the epsilons add up between paths that are neighbours, at every step, under that step's own policy.

Proof: docs/proofs/choices.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, TypedDict

import numpy as np

from dphmm._checks import exact_epsilon, exact_number, one_of, written_fraction
from dphmm.accounting.ledger import Caps, Ledger, MemoryLedger, PlanRecord, SequencePromise
from dphmm.accounting.promise import Schedule
from dphmm.errors import InvalidInput
from dphmm.mechanisms import AUTO, MECHANISM_CHOICES, Hops, MadeTable, chosen_kind, make_known
from dphmm.mechanisms.answer_table import is_reference, known_table
from dphmm.policy.constraint import Constraint, DeltaSet, Support, parse_constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.protection import PROTECTIONS, Partner
from dphmm.session.plan import chosen_of, damaged
from dphmm.types import Exact, IntArray

STARTS = ("before", "at")


class PlanChoices(TypedDict, total=False):
    """The choices that plans are made under, beside epsilon: keywords of `Options.checked`, see `ReleaseSession`."""

    constraint: str | DeltaSet | Support
    mechanism: str | MadeTable
    protection: str
    start: str | None


#: Their names, as a policy's file and a pipeline have them.
PLAN_CHOICES = tuple(PlanChoices.__annotations__)


class ReleaseChoices(PlanChoices, total=False):
    """The keywords of a release that everybody needs who reads it, as `Setting.of` has them."""

    query: str
    answer: str | None
    schedule: Schedule | None


@dataclass(frozen=True)
class Options:
    """The choices that decide a plan, beside model, policy and space."""

    epsilon: Fraction
    constraint: Support | DeltaSet
    mechanism: str = "auto"
    protection: str = "auto"
    start: str = "before"

    @classmethod
    def checked(
        cls,
        epsilon: Exact,
        *,
        constraint: str | DeltaSet | Support = "support",
        mechanism: str | MadeTable = "auto",
        protection: str = "auto",
        start: str | None = "before",
        labels: bool = False,
    ) -> Options:
        """Options from a user's choices; ``labels``: True if answers are names. Raises InvalidInput naming the field.

        For names "auto" is the table by hops: there is no noise to add. ``mechanism`` may be a made table, or the
        reference of one that has been read.
        """
        chosen, states = _mechanism(mechanism), parse_constraint(constraint)
        if labels:
            chosen = _for_labels(chosen)
        if is_reference(chosen) and isinstance(states, DeltaSet):
            table = chosen[: len(MadeTable.name) + 13]
            raise InvalidInput("constraint", str(states), f"support with {table}: it was made for all states")
        return cls(
            epsilon=exact_epsilon(epsilon),
            constraint=states,
            mechanism=chosen,
            protection=one_of(protection, PROTECTIONS, "protection"),
            start=one_of("before" if start is None else start, STARTS, "start"),
        )

    @property
    def made_from(self) -> str:
        """The source of the mechanism: a "hull", or the plan's "answers" and the edges between them."""
        return chosen_kind(self.mechanism).made_from

    @property
    def choices(self) -> PlanChoices:
        """The keywords that make them again, but for epsilon."""
        return {
            "constraint": self.constraint,
            "mechanism": self.mechanism,
            "protection": self.protection,
            "start": self.start,
        }

    def written(self) -> dict[str, str]:
        """The options as strings, as a ledger records and compares them."""
        return {
            "epsilon": str(self.epsilon),
            "constraint": str(self.constraint),
            "mechanism": self.mechanism,
            "protection": self.protection,
            "start": self.start,
        }

    @classmethod
    def read(cls, written: Mapping[str, str], labels: bool = False) -> Options:
        """The options that a ledger recorded. Raises InvalidInput for others than `written` makes."""
        try:
            choices = {name: written[name] for name in ("constraint", "mechanism", "protection", "start")}
            epsilon = written_fraction(written["epsilon"])
        except (KeyError, TypeError, ValueError, ZeroDivisionError):
            expected = "those of a ledger or a statement as dphmm wrote it"
            raise InvalidInput("options", "some missing, or not as they are written", expected) from None
        return cls.checked(epsilon, labels=labels, **choices)


def _mechanism(given: str | MadeTable) -> str:
    """The name of a mechanism; for a made table its reference, which identifies its contents. Raises InvalidInput."""
    if isinstance(given, MadeTable):
        return make_known(given)
    if isinstance(given, str) and is_reference(given):
        return known_table(given).reference
    return one_of(given, MECHANISM_CHOICES, "mechanism")


def _for_labels(mechanism: str) -> str:
    """The mechanism of labels. Raises InvalidInput for one that adds noise."""
    chosen = Hops.name if mechanism == AUTO else mechanism
    if chosen_kind(chosen).made_from != "answers" or not chosen_kind(chosen).for_labels:
        expected = f"auto or {Hops.name}: the answers are names, to which no noise can be added"
        raise InvalidInput("mechanism", mechanism, expected)
    return chosen


def checked_ledger(ledger: Ledger | None) -> Ledger:
    """The ledger that was given, or one in memory. Raises InvalidInput for a path."""
    if ledger is None:
        return MemoryLedger()
    if not hasattr(ledger, "transaction"):
        raise InvalidInput("ledger", type(ledger).__name__, "a ledger: dphmm.open_ledger(path)")
    return ledger


def promise_beside(promise: SequencePromise | None, schedule: Schedule | None) -> SequencePromise | None:
    """The promise of a subject's account: a schedule has its own. Raises InvalidInput for two that differ."""
    if schedule is not None:
        if promise is not None and promise != schedule.promise:
            raise InvalidInput("promise", str(promise), f"nothing beside the schedule, or its own {schedule.promise}")
        promise = schedule.promise
    check_begins(promise)
    return promise


def check_begins(promise: SequencePromise | None) -> None:
    """Refuse blocks that have begun before step 1: a privacy statement says of none where they begin."""
    if isinstance(promise, SequencePromise) and promise.passed:
        expected = "a promise without it: blocks of steps begin at step 1, and those of a time by the clock"
        raise InvalidInput("promise", f"passed={promise.passed}", expected)


def checked_caps(epsilon: Exact | None, cost: Exact | None, promise: SequencePromise | None = None) -> Caps:
    """Caps from what a user passes. Raises InvalidInput naming the cap."""
    if promise is not None and not isinstance(promise, SequencePromise):
        raise InvalidInput("promise", type(promise).__name__, "a dphmm.SequencePromise")
    return Caps(_cap(epsilon, "cap_epsilon"), _cap(cost, "cap_cost"), promise)


def epsilon_of_step(
    epsilon: Exact | None, promise: SequencePromise | None, step: float | None, schedule: Schedule | None = None
) -> Exact | None:
    """The epsilon of a release: the user's, else the share of a promise for each step if all are asked.

    With a schedule it is left to that where a user passes none.
    """
    if epsilon is not None or schedule is not None:
        return epsilon
    if not isinstance(promise, SequencePromise):
        raise InvalidInput("epsilon", None, "a number, the promise of each release; or a promise over the sequence")
    return promise.each(step)


def _cap(value: Exact | None, field: str) -> Fraction | None:
    if value is None:
        return None
    cap = exact_number(value, field)
    if cap < 0:
        raise InvalidInput(field, str(value), "0 or more")
    return cap


#: What may be chosen step by step.
CHOICES = ("epsilon", "partners", "policy", "protection")
#: A partner for states, by number or name.
Partners: TypeAlias = Mapping[int, int] | Mapping[str, str] | Mapping[int | str, int | str]


@dataclass(frozen=True, eq=False)
class StepChoice:
    """The choices for one step; None stands for the setting's own.

    ``partners`` (p, 2): states without an edge, each with the state that it hides with. ``protection``: a method,
    or a callable (state, other plan states) -> partner. ``joins`` (m, 2), of a recorded plan: all edges that
    protection added, in the order in which it did; no partner is chosen again. ``split``, of a recorded plan: "merge"
    or "join", whichever protection="auto" decided.
    """

    epsilon: Fraction | None = None
    policy: PolicyGraph | None = None
    partners: IntArray | None = None
    protection: str | Partner | None = None
    joins: IntArray | None = None
    split: str | None = None

    @property
    def is_none(self) -> bool:
        """True if nothing is chosen."""
        return all(value is None for value in vars(self).values())

    @property
    def key(self) -> str:
        """Text that two choices of one plan have in common."""
        partners, joins = (None if pairs is None else pairs.tolist() for pairs in (self.partners, self.joins))
        split = "" if self.split is None else f" {self.split}"
        return f"{self.epsilon} {self.policy and self.policy.digest} {self.protection} {partners} {joins}{split}"

    @property
    def told(self) -> dict[str, str]:
        """The choices as plans record them; those of joins are "given"."""
        choices = {} if self.epsilon is None else {"epsilon": str(self.epsilon)}
        choices |= {} if self.policy is None else {"policy": self.policy.digest}
        return choices | ({"joins": "given"} if self.joined else {})

    @property
    def joined(self) -> bool:
        """True if partners, a protection or recorded joins decide how states without an edge are joined."""
        return not (self.partners is None and self.protection is None and self.joins is None)

    def fixed(self, policy: PolicyGraph, constraint: Constraint, given: IntArray) -> IntArray | None:
        """The edges (m, 2) that are fixed before protection joins what is left; None for none.

        ``policy`` has the edges ``given`` by other queries. Partners are of plan states without an edge; a state with
        one needs none. Raises InvalidInput for a partner on which the step does not plan, or another than was given.
        """
        if self.joins is not None or self.partners is None:
            return self.joins
        theirs = dict(given.tolist())
        for state, partner in self.partners.tolist():
            if state in theirs and theirs[state] != partner:
                expected = f"state {theirs[state]}, its partner in another query of this step"
                raise InvalidInput("partners", f"state {partner} for state {state}", expected)
        alone = set(policy.isolated(constraint).tolist())
        pairs = [(state, partner) for state, partner in self.partners.tolist() if state in alone]
        for state, partner in pairs:
            if partner == state or not constraint.plan[partner]:
                expected = "another state, and one on which the step plans"
                raise InvalidInput("partners", f"state {partner} for state {state}", expected)
        return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def checked_varies(varies: Any) -> tuple[str, ...]:
    """The names of choices that vary, in order. Raises InvalidInput for others than `CHOICES`."""
    names = (varies,) if isinstance(varies, str) else tuple(varies)
    for name in names:
        if name not in CHOICES:
            raise InvalidInput("varies", str(name), f"of {', '.join(CHOICES)}")
    return tuple(sorted(set(names)))


def recorded_choice(
    record: PlanRecord, joins: IntArray, varies: Sequence[str], policies: Mapping[str, PolicyGraph]
) -> StepChoice | None:
    """The choice that a record tells of; None where its step had the setting's own.

    Raises InvalidInput for a choice that does not vary, and for a policy that is not among ``policies`` (by digest).
    """
    chosen = chosen_of(record)
    if not chosen:
        return None
    may = {*varies, *("joins" for name in varies if name in ("partners", "protection"))}
    if not may.issuperset(chosen):
        fault = f"a step with its own {next(name for name in chosen if name not in may)} at plan {record.hash[:12]}"
        raise InvalidInput("ledger", fault, "a history whose header says that it varies")
    digest = chosen.get("policy")
    if digest is not None and digest not in policies:
        expected = "all policies that steps of this history were released under: policies=[...]"
        raise InvalidInput("policies", f"none of digest {digest[:12]}", expected)
    try:
        epsilon = None if "epsilon" not in chosen else written_fraction(chosen["epsilon"])
    except (ValueError, ZeroDivisionError):
        raise damaged(record) from None
    policy = None if digest is None else policies[digest]
    return StepChoice(epsilon, policy, joins=joins if "joins" in chosen else None)


def check_same_policy(own: str, other: PlanRecord, default: str, t: int) -> None:
    """All queries of a subject have one policy at a step: compared by digest. Raises InvalidInput.

    ``default`` is that of the headers, which all queries share.
    """
    theirs = chosen_of(other).get("policy", default)
    if theirs != own:
        expected = f"{theirs[:12]}, that of another query of this subject at step {t}"
        raise InvalidInput("policy", own[:12], expected)
