"""What kinds of plans were judged: a check that met no drift has said nothing about drift."""

from __future__ import annotations

from collections import Counter

import numpy as np

from exactness.case import Case
from registered import policy_kinds, release_mechanisms

#: Mechanisms whose laws are integers and no multiples of eps: the tests that enumerate those.
JUDGED_ELSEWHERE = {
    "hops": "tests/mechanisms/test_hops.py::test_every_edge_keeps_epsilon_in_whole_numbers",
    "made-table": "tests/choose/test_optimizing.py::test_every_required_pair_of_random_worlds_keeps_epsilon",
    "optimal-table": "tests/session/test_optimal_table.py"
    "::test_every_required_pair_of_random_plans_keeps_epsilon_and_everybody_has_one",
}
#: A slice or a run that lacks one of these has not tested what it says.
EXPECTED = (
    *(f"d={d}" for d in (1, 2, 3, 4)),
    *policy_kinds(),
    *(name for name in release_mechanisms() if name not in JUDGED_ELSEWHERE),
    *("delta-set", "true state outside the plan set", "contracted edge moved by a surrogate"),
    *("joined edge", "min-volume", "min-error", "hidden without a join"),
    *("merged state", "merged in a delta-set", "merged beside another query"),
    *("thickened", "two queries", "partner fixed by another query", "twins", "beyond 2**40"),
)


def features(case: Case) -> Counter:
    plan, options = case.step.plan, case.step.query.options
    kinds = {kind for kind, _, _ in case.required}
    state = case.instance.walk[case.step.t - 1]
    d = len(case.images[0])
    joined = {int(s) for pair in plan.joins for s in pair}
    held = {
        f"d={d}": True,
        case.instance.policy.kind: True,
        case.law.kind: True,
        "delta-set": not (plan.constraint.plan == case.support).all(),
        "true state outside the plan set": state == -1 or not plan.constraint.plan[state],
        "contracted edge moved by a surrogate": any(
            {a, b} - set(case.planned) and case.difference(a, b) != (0,) * d
            for kind, a, b in case.required
            if kind == "policy"
        ),
        "joined edge": "joined" in kinds,
        options["protection"]: "joined" in kinds,
        "hidden without a join": any(int(a) not in joined for a, _ in plan.partners),
        "merged state": bool(case.merged),
        "merged in a delta-set": bool(case.merged) and options["constraint"] != "support",
        "merged beside another query": bool(case.merged) and bool(case.step.earlier),
        "thickened": np.linalg.matrix_rank([case.difference(a, b) for _, a, b in case.required] or [(0,) * d]) < d,
        "two queries": bool(case.step.earlier),
        "partner fixed by another query": bool(case.fixed_earlier),
        "twins": len({case.images[s] for s in case.planned}) < len(case.planned),
        "beyond 2**40": max(abs(x) for image in case.images for x in image) > 2**40,
    }
    return Counter(name for name, present in held.items() if present)
