"""The plans of the first steps, as far as they are known before anything is released."""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm.audit.history import first_support, moved
from dphmm.audit.verdict import Verdict
from dphmm.audit.verify import verify
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.constraint import Support
from dphmm.policy.graph import PolicyGraph
from dphmm.session.plan import Plan
from dphmm.session.setting import Setting
from dphmm.states.space import StateSpace
from dphmm.types import Exact


def verify_steps(
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact,
    steps: int = 1,
    *,
    start: str | None = None,
    **choices: Any,
) -> list[tuple[int, Plan, Verdict]]:
    """Verify the distinct plans of the first steps: (the first step of each, the plan, its verdict).

    With a δ-set, or flat bodies allowed, the plans after step 1 hang on what is released: only the first is there.
    Choices are those of `ReleaseSession`.
    """
    if steps < 1:
        raise InvalidInput("steps", steps, "a number of steps, 1 or more")
    setting = Setting.of(model, policy, space, epsilon, start=start, **choices)
    options, planner = setting.options, setting.planner
    support = first_support(model, options.start)
    plan = setting.first_plan()
    found = [(1, plan, verify(plan, policy, space, support=support))]
    if not isinstance(options.constraint, Support) or options.flat == "allow":
        return found
    seen = {plan.hash}
    for t in range(2, steps + 1):
        following = moved(model, support, t)
        if model.time_homogeneous and np.array_equal(following, support):
            break
        support = following
        plan = planner.plan(support, support)
        if plan.hash not in seen:
            seen.add(plan.hash)
            found.append((t, plan, verify(plan, policy, space, support=support)))
    return found
