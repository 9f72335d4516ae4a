"""The losses of the first releases, from public data alone: sum of epsilons, sum of costs and policy leakage.

Proof: docs/proofs/policy-leakage.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.accounting.records import shown
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.session.plan import StepPlan
from dphmm.session.plan_schedule import PlanSchedule
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


def checked_steps(steps: int) -> int:
    """A number of steps that can be looked at."""
    if not 1 <= steps <= MOST_STEPS:
        raise InvalidInput("steps", steps, f"a number of steps from 1 to {MOST_STEPS}")
    return steps


def check_public(setting: Setting) -> None:
    """Refuse a setting in which plans depend on what is released."""
    if not setting.has_public_plans:
        expected = "constraint support: plans that do not depend on answers"
        raise InvalidInput("steps", f"constraint {setting.options.constraint}", expected)


def coming_plans(setting: Setting, steps: int) -> list[StepPlan]:
    """The plans of the first steps; InvalidInput where they depend on what is released."""
    check_public(setting)
    schedule = PlanSchedule(setting)
    return [schedule.plan(number) for number in schedule.numbers(np.arange(1, steps + 1)).tolist()]


def leakage_of(model: MarkovModel, start: str, steps: Sequence[Any], policy: PolicyGraph) -> PolicyLeakage:
    """The policy leakage of steps under a model whose initial distribution is of before, or at, step 1."""
    edges = np.asarray(policy.edges())
    if len(edges) * len(steps) > _MOST_NUMBERS:
        fault = f"{len(edges)} edges over {len(steps)} steps"
        raise InvalidInput("policy", fault, f"fewer: {_MOST_NUMBERS} numbers at most")
    from dphmm.accounting.edge_leakage import policy_leakage

    return policy_leakage(model.starting(start), steps, edges)


def planned_losses(setting: Setting, steps: int) -> dict[str, Any]:
    """The losses of a release at every one of these steps: sum of epsilons, sum of costs, and policy leakage."""
    plans = coming_plans(setting, checked_steps(steps))
    leakage = leakage_of(setting.model, setting.options.start, plans, setting.policy)
    return {
        "steps": steps,
        "epsilon_sum": shown(sum((plan.promised for plan in plans), Fraction(0))),
        "cost_sum": float(sum(plan.cost for plan in plans)),
        "policy_leakage": bounded(leakage.worst),
        "policy_leakage_of_first_and_last": [bounded(_worst(leakage.total[t])) for t in (0, -1)],
        "meaning": f"{MEANING} ({PROOF})",
    }


def bounded(value: float) -> float | None:
    """A number for JSON; None where there is no bound, or no number."""
    return float(value) if math.isfinite(value) else None


def _worst(totals: Any) -> float:
    return float(np.max(totals, initial=0.0, where=~np.isnan(totals)))
