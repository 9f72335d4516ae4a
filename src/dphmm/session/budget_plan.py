"""What a number of releases lose between the ends of a policy edge, from public data alone; and epsilon from that.

Proof: docs/proofs/budget-split.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._checks import exact_epsilon
from dphmm.accounting.records import in_short, shown
from dphmm.errors import InvalidInput, Refused
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.session.plan import Plan
from dphmm.session.scheduled import PlanSchedule
from dphmm.session.setting import Setting

if TYPE_CHECKING:
    from dphmm.accounting.edge_leakage import PolicyLeakage

#: Steps that are looked at, at most, and numbers kept: steps times edges.
MOST_STEPS = 10_000
_MOST_NUMBERS = 2**26
MEANING = (
    "policy leakage: the two ends of a policy edge at any one of these steps are at most this far apart (log-ratio) "
    "for an adversary who sees the answers of all of them and believes the model"
)
PROOF = "docs/proofs/policy-leakage.md"
#: Epsilons that the search tries, unless the first ones lose too much: the least of three digits, then by bisection.
_TRIED = 12
#: Moves of pairs of states that take minutes on one core: each takes some 0.1 microseconds.
_MANY_MOVES = 5 * 10**9


def checked_steps(steps: int) -> int:
    """A number of steps that can be looked at."""
    if not 1 <= steps <= MOST_STEPS:
        raise InvalidInput("steps", steps, f"a number of steps from 1 to {MOST_STEPS}")
    return steps


def may_take_long(setting: Setting, steps: int) -> bool:
    """Whether the search for an epsilon goes through so many moves of pairs of states that it may take minutes."""
    model = setting.model
    return model.jump is None and 2 * _TRIED * steps * model.n_states * model.n_transitions > _MANY_MOVES


def check_public(setting: Setting) -> None:
    """Refuse a setting in which plans depend on what is released."""
    if not setting.has_public_plans:
        came = f"constraint {setting.options.constraint}, flat {setting.options.flat}"
        expected = "constraint support, and flat not allow: plans that do not depend on answers"
        raise InvalidInput("steps", came, expected)


def coming_plans(setting: Setting, steps: int) -> list[Plan]:
    """The plans of the first steps; InvalidInput where they depend on what is released."""
    check_public(setting)
    schedule = PlanSchedule(setting)
    return [schedule.plan(number) for number in schedule.numbers(np.arange(1, steps + 1)).tolist()]


def leakage_of(model: MarkovModel, start: str, steps: Sequence[Any], policy: PolicyGraph) -> PolicyLeakage:
    """The policy leakage of steps under a model whose initial distribution is of before, or at, step 1."""
    edges = np.asarray(policy.edges())
    if len(edges) * len(steps) > _MOST_NUMBERS:
        came = f"{len(edges)} edges over {len(steps)} steps"
        raise InvalidInput("policy", came, f"fewer: {_MOST_NUMBERS} numbers at most")
    from dphmm.accounting.edge_leakage import policy_leakage

    return policy_leakage(started(model, start), steps, edges)


def started(model: MarkovModel, start: str) -> MarkovModel:
    """The model, its initial distribution taken as of before, or at, step 1."""
    return model.starting(start)


def planned_losses(setting: Setting, steps: int) -> dict[str, Any]:
    """What a release at every one of these steps loses, in three ways."""
    plans = coming_plans(setting, checked_steps(steps))
    found = leakage_of(setting.model, setting.options.start, plans, setting.policy)
    costs = [plan.cost for plan in plans]
    return {
        "steps": steps,
        "epsilon_sum": shown(sum((plan.promised for plan in plans), Fraction(0))),
        "cost_sum": None if math.inf in costs else float(sum(costs)),
        "policy_leakage": bounded(found.worst),
        "policy_leakage_of_first_and_last": [bounded(_worst(found.total[t])) for t in (0, -1)],
        "meaning": f"{MEANING} ({PROOF})",
    }


@dataclass(frozen=True)
class BudgetPlan:
    """An epsilon per step, found so that ``steps`` releases of one subject lose at most ``total`` at a policy edge."""

    total: Fraction
    steps: int
    epsilon: Fraction
    worst: float

    @classmethod
    def allocated(
        cls,
        setting: Setting,
        total: str,
        steps: int,
        progress: Callable[[int, int], None] | None = None,
    ) -> BudgetPlan:
        """The largest epsilon of three digits; Refused where there is none. The setting's own epsilon does not matter.

        ``progress``: told how much of the steps of all epsilons that are tried is done, and how much there will be.
        """
        target, count = exact_epsilon(total, "total_epsilon"), checked_steps(steps)
        tried = 0

        def plans_of(epsilon: Fraction) -> list[Plan]:
            nonlocal tried
            tried += 1
            return coming_plans(setting.with_epsilon(epsilon), count)

        def told(done: int, of: int) -> None:
            if progress is not None:
                progress((tried - 1) * of + done, max(tried, _TRIED) * of)

        limit = math.nextafter(float(target), 0.0) if Fraction(float(target)) > target else float(target)
        start, edges = setting.options.start, np.asarray(setting.policy.edges())
        chain = started(setting.model, start)
        if len(edges) * count > _MOST_NUMBERS:
            raise InvalidInput("steps", f"{len(edges)} edges over {count} steps", f"{_MOST_NUMBERS} numbers at most")
        from dphmm.accounting.edge_leakage import policy_allocation

        epsilon = policy_allocation(chain, plans_of, edges, limit, told)
        if epsilon is None:
            raise Refused(f"total_epsilon: no epsilon of 2**-20 or more keeps {count} steps at {total}")
        worst = leakage_of(setting.model, start, plans_of(epsilon), setting.policy).worst
        return cls(target, count, epsilon, worst)

    @classmethod
    def total_of(cls, setting: Setting, epsilon: Fraction, steps: int) -> str | None:
        """A total, as it would be typed, for which `allocated` finds this epsilon; None where it finds another."""

        def lost(each: Fraction) -> float:
            plans = coming_plans(setting.with_epsilon(each), checked_steps(steps))
            return leakage_of(setting.model, setting.options.start, plans, setting.policy).worst

        # The search looks at epsilons of three digits.
        digit = Fraction(10) ** (math.floor(math.log10(epsilon)) - 2)
        try:
            worst = lost(epsilon)
        except InvalidInput:
            # More steps, or edges, than are looked at.
            return None
        if (epsilon / digit).denominator != 1 or not math.isfinite(worst):
            return None
        total = in_short(Fraction(worst))
        return total if lost(epsilon + digit) > Fraction(total) else None

    def document(self) -> dict[str, Any]:
        """For the privacy statement."""
        return {
            "total_epsilon": shown(self.total),
            "steps": self.steps,
            "epsilon_per_step": shown(self.epsilon),
            "policy_leakage": self.worst,
            "meaning": f"{MEANING}. It is about steps 1 to {self.steps} of a subject, and about this query alone.",
            "proved_in": PROOF,
        }


def bounded(value: float) -> float | None:
    """A number for JSON; None where there is no bound, or no number."""
    return float(value) if math.isfinite(value) else None


def _worst(totals: Any) -> float:
    return float(np.max(totals, initial=0.0, where=~np.isnan(totals)))
