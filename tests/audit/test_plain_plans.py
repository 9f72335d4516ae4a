"""The plans of a release in plain form have the hash of the plans that its rows name.

Claim: for every kind of option, `plain_hash` and `verify_release.py` make the hash of each plan again from the parts
that are written, and the second reads the same states, answers, epsilon and cost from them.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import dphmm
from audit.small import MODEL, POLICY, SPACE
from dphmm.audit import check_release
from dphmm.audit.plain_plans import plain_hash, plain_plans
from dphmm.session.setting import Setting

OPTIONS = [
    {},
    {"constraint": "delta=0.2"},
    {"protection": "nearest"},
    {"protection": "min-error", "start": "at"},
    {"mechanism": "discrete-laplace"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("merged", [[], [[0, 1]]], ids=["whole", "merged"])
def test_hashes_states_and_costs_are_those_of_the_plans(program, options, merged):
    space = SPACE.merged(merged) if merged else SPACE
    setting = Setting.of(MODEL, POLICY, space, 1, **options)
    sets = [np.ones(6, dtype=bool), np.arange(6) != 3, np.arange(6) > 1]
    made = [
        setting.planner.plan(support, support & chosen) for support in sets for chosen in (support, np.arange(6) > 2)
    ]
    text = json.dumps(plain_plans((plan, setting.planner) for plan in made), allow_nan=False)
    for told, plan in zip(json.loads(text)["plans"], made, strict=True):
        found = program.PlainPlan(told)
        assert plain_hash(told) == found.made == found.hash == plan.hash
        assert sorted(found.support) == np.flatnonzero(plan.constraint.support).tolist()
        assert sorted(found.plan_set) == np.flatnonzero(plan.plan_set).tolist()
        assert [space.lattice[s].tolist() for s in found.answered_as] == plan.image.tolist()
        assert (found.epsilon, found.cost) == (plan.epsilon, plan.cost)


def test_hashes_of_plans_of_names_and_of_many_axes_are_made_again(program):
    names = dphmm.StateSpace.labels(list("abc"))
    solid = dphmm.StateSpace(np.array(list(np.ndindex(2, 2, 2))))
    for space in (names, solid):
        n = space.n_states
        model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
        setting = Setting.of(model, dphmm.policy.complete(n), space, 1)
        plan = setting.first_plan()
        [told] = json.loads(json.dumps(plain_plans([(plan, setting.planner)])))["plans"]
        assert plain_hash(told) == program.PlainPlan(told).made == plan.hash


def test_a_verdict_has_the_plans_that_it_verified(program):
    states = [{"user": "a", "step": t, "state": str(t % 6)} for t in range(5)]
    import pandas as pd

    released = dphmm.release_many(pd.DataFrame(states), MODEL, POLICY, SPACE, 1, bits=dphmm.ReplayBits(1))
    verdict = check_release(released, MODEL, POLICY, SPACE, 1)
    told = verdict.plain_plans()["plans"]
    assert {plan["hash"] for plan in told} == set(released["plan"]) and len(told) == verdict.plans
