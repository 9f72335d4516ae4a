"""What one step is released under in place of its setting's: chosen from public data, and recorded with the plan.

A step's promise is that of its own policy and epsilon. Over a sequence the epsilons add up between paths that are
neighbours, at every step, under that step's own policy.

Proof: docs/proofs/choices.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dphmm._checks import exact_epsilon, written_fraction
from dphmm.accounting.ledger import PlanRecord
from dphmm.accounting.records import shown
from dphmm.errors import InvalidInput
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.protection import PROTECTIONS, Partner
from dphmm.session.plan import chosen_of, damaged
from dphmm.types import Exact, IntArray

if TYPE_CHECKING:
    from dphmm.session.setting import Setting

#: What may be chosen step by step.
CHOICES = ("epsilon", "partners", "policy", "protection")
#: A partner for states, by number or name.
Partners: TypeAlias = Mapping[int, int] | Mapping[str, str] | Mapping[int | str, int | str]


@dataclass(frozen=True, eq=False)
class StepChoice:
    """What is chosen for one step; None is what the setting has.

    ``partners`` (p, 2): the state that each of some states hides with where it has no edge. ``protection``: a method,
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

    @classmethod
    def checked(
        cls,
        setting: Setting,
        epsilon: Exact | None = None,
        policy: PolicyGraph | None = None,
        partners: Partners | None = None,
        protection: str | Partner | None = None,
    ) -> StepChoice | None:
        """The choice of a step from what a user passes; None where it is the setting's own.

        Raises InvalidInput naming the field, also for a choice that the setting does not let vary.
        """
        given = {"epsilon": epsilon, "partners": partners, "policy": policy, "protection": protection}
        for name, value in given.items():
            if value is not None and name not in setting.varies:
                expected = f'nothing, or a session that was made with varies=("{name}",)'
                raise InvalidInput(name, "a choice for one step", expected)
        if epsilon is not None and setting.schedule is not None:
            expected = f"nothing beside the schedule, whose releases have {shown(setting.schedule.exact)} each"
            raise InvalidInput("epsilon", str(epsilon), expected)
        if policy is not None and not isinstance(policy, PolicyGraph):
            raise InvalidInput("policy", type(policy).__name__, "a PolicyGraph")
        if policy is not None and policy.n_states != setting.space.n_states:
            raise InvalidInput("policy", f"{policy.n_states} states", f"the {setting.space.n_states} of the space")
        if protection is not None and not callable(protection) and protection not in PROTECTIONS:
            expected = f"{', '.join(PROTECTIONS)}, or a callable (state, others) -> partner"
            raise InvalidInput("protection", str(protection), expected)
        if policy is not None:
            # Whoever reads this step again needs it.
            setting.policies[policy.digest] = policy
        exact = None if epsilon is None else exact_epsilon(epsilon)
        choice = cls(
            epsilon=None if exact == setting.options.epsilon else exact,
            policy=None if policy is not None and policy.digest == setting.policy.digest else policy,
            partners=None if not partners else _numbers_of(setting, partners),
            protection=None if protection == setting.options.protection else protection,
        )
        return None if choice.is_none else choice

    @property
    def is_none(self) -> bool:
        """Whether nothing is chosen."""
        return all(value is None for value in vars(self).values())

    @property
    def key(self) -> str:
        """Text that two choices of one plan have in common."""
        partners, joins = (None if pairs is None else pairs.tolist() for pairs in (self.partners, self.joins))
        split = "" if self.split is None else f" {self.split}"
        return f"{self.epsilon} {self.policy and self.policy.digest} {self.protection} {partners} {joins}{split}"

    @property
    def told(self) -> dict[str, str]:
        """What plans record of it, in the same words; that of joins is "given"."""
        found = {} if self.epsilon is None else {"epsilon": str(self.epsilon)}
        found |= {} if self.policy is None else {"policy": self.policy.digest}
        return found | ({"joins": "given"} if self.joined else {})

    @property
    def joined(self) -> bool:
        """Whether it says how states without an edge are joined."""
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
    given = (varies,) if isinstance(varies, str) else tuple(varies)
    for name in given:
        if name not in CHOICES:
            raise InvalidInput("varies", str(name), f"of {', '.join(CHOICES)}")
    return tuple(sorted(set(given)))


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
        came = f"a step with its own {next(name for name in chosen if name not in may)} at plan {record.hash[:12]}"
        raise InvalidInput("ledger", came, "a history whose header says that it varies")
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


def _numbers_of(setting: Setting, partners: Partners) -> IntArray:
    if not isinstance(partners, Mapping):
        raise InvalidInput("partners", type(partners).__name__, "a dictionary {state: partner}")
    pairs = [(_state(setting, state), _state(setting, partner)) for state, partner in partners.items()]
    found = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    if len(set(found[:, 0].tolist())) < len(found):
        raise InvalidInput("partners", "a state twice", "one partner for a state")
    return found


def _state(setting: Setting, state: Any) -> int:
    number = setting.space.index_of(state) if isinstance(state, str) else state
    if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
        raise InvalidInput("partners", type(state).__name__, "numbers or names of states")
    if not 0 <= number < setting.space.n_states:
        raise InvalidInput("partners", str(state), f"a state: 0 to {setting.space.n_states - 1}, or a name")
    return int(number)
