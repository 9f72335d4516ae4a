"""The public side of a release does not depend on the truth: plan, hash, cost, refusals, messages, random words.

Claim, for random instances and every truth (each state, inside and outside of the constraint, a name and a place that
are no state). With the same past answers, all fields of an observation are equal. A fresh answer is
z = f(g(s)) + noise, g the surrogate map, with the same noise from the same bits whatever s.

It would fail for a hull, cost, refusal, message, belief or number of random words that looks at the truth; the
leaks of ``planted`` are caught one by one.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.mechanisms import registry
from dphmm.mechanisms.knorm import DiscreteKNorm
from dphmm.policy import graph
from dphmm.policy._cliques import Complete
from independence.instances import (
    CONSTRAINTS,
    MADE,
    MECHANISMS,
    POLICIES,
    STEPS,
    TABLES,
    Instance,
    instance,
    truths_at,
)
from independence.observing import COMPUTED, Observation, differing, observe
from independence.planted import LEAKS, planted
from registered import left_out, policy_kinds, release_mechanisms

SEEDS = range(13)
ALL = [*SEEDS, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(len(SEEDS), 200))]


def some_history(case: Instance) -> Observation:
    """What the first of all histories of truths shows: the past answers that the others are given."""
    return observe(case, next(truths_at(case, 0)))


def found_by_any_truth(case: Instance, past: Observation, step: int, free: bool) -> set[str]:
    """The fields that depend on the truth at a step whose answer is drawn freely, or is given too."""
    end, setting = (step + 1, case.setting()) if free else (STEPS, None)
    given = past["answers"][: step if free else end]
    runs = [observe(case, truths[:end], given=given, setting=setting) for truths in truths_at(case, step)]
    return {name for run in runs for name in differing(runs[0], run, COMPUTED if free else ("noise",))}


@pytest.mark.parametrize("seed", ALL)
def test_given_the_same_answers_nothing_differs(seed):
    """Every plan is made anew for every truth."""
    case = instance(seed)
    past = some_history(case)
    for step in range(STEPS):
        assert found_by_any_truth(case, past, step, free=False) == set()


@pytest.mark.parametrize("seed", ALL)
def test_a_fresh_answer_differs_by_the_answer_of_the_surrogate_alone(seed):
    """Plans are shared, as subjects of a batch share them."""
    case = instance(seed)
    past = some_history(case)
    for step in range(len(past["answers"])):
        assert found_by_any_truth(case, past, step, free=True) == set()


@pytest.mark.parametrize("seed", SEEDS[::5])
def test_whole_histories_of_truths_do_not_matter(seed):
    """Not one step at a time: all at once."""
    case = instance(seed)
    past = some_history(case)
    rng = np.random.default_rng(seed)
    for _ in range(6):
        truths = [case.truths[k] for k in rng.integers(0, len(case.truths), STEPS)]
        run = observe(case, truths, given=past["answers"])
        assert differing(observe(case, truths[::-1], given=past["answers"]), run, but=("noise",)) == []


def test_drift_is_answered_as_its_surrogate():
    """A state outside the constraint, an unknown name and a place nowhere: the very answer of a possible state."""
    drifted = 0
    for seed in SEEDS:
        case = instance(seed, cap_epsilon=None, cap_cost=None)
        runs = {truth: observe(case, [truth]) for truth in case.truths}
        _, chosen, surrogates = runs[0]["plans"][0]["sets"]
        for truth in case.truths:
            number = case.space.index_of(truth) if isinstance(truth, str) else truth
            surrogate = surrogates[number] if number >= 0 else chosen.index(True)
            assert chosen[surrogate]
            assert runs[truth]["answers"] == runs[surrogate]["answers"]
            drifted += surrogate != number
    assert drifted > 3 * len(SEEDS)


def test_the_seeds_meet_every_choice():
    """The instances are not all of one kind, and drift, refusals and constants do occur."""
    cases = [instance(seed) for seed in SEEDS]
    runs = [some_history(case) for case in cases]
    plans = [plan for run in runs for plan in run["plans"]]
    assert {case.space.dimension for case in cases} == {1, 2, 3}
    assert {case.choices["constraint"] for case in cases} == set(CONSTRAINTS)
    assert {case.policy.describe()["kind"] for case in cases} == set(POLICIES)
    assert sum(len(run["refusals"]) > 0 for run in runs) >= 3
    used = [getattr(case.choices["mechanism"], "name", case.choices["mechanism"]) for case in cases]
    assert set(used) == {*MECHANISMS, *TABLES, MADE}
    assert sum(case.choices["mechanism"] in TABLES for case in cases) >= 3
    assert sum(plan["constant"] for plan in plans) >= 3
    supports, sets, _ = zip(*(plan["sets"] for plan in plans), strict=True)
    assert sum(not all(support) for support in supports) > 10
    assert sum(support != chosen for support, chosen in zip(supports, sets, strict=True)) > 10


_POLICY = "how it is drawn to independence/instances.POLICIES"
_MECHANISM = "its name to independence/instances.MECHANISMS, or to the seeds that it can be made for"


def kinds_and_mechanisms_left_out():
    met = (*MECHANISMS, *TABLES, MADE, "constant")
    tried = [name for name in met if name != "auto"]
    return left_out(policy_kinds(), POLICIES, _POLICY) + left_out(release_mechanisms(), tried, _MECHANISM)


def test_no_registered_kind_or_mechanism_is_left_out():
    """A constant is no choice: plans of one answer are met above."""
    assert kinds_and_mechanisms_left_out() == []


def test_a_new_kind_and_a_new_mechanism_are_told_of(monkeypatch):
    monkeypatch.setitem(graph.KINDS, "rings", Complete)
    monkeypatch.setitem(registry.KINDS, "geometric", DiscreteKNorm)
    told = [f"rings is registered and not tried here: add {_POLICY}"]
    assert kinds_and_mechanisms_left_out() == [*told, f"geometric is registered and not tried here: add {_MECHANISM}"]


@pytest.fixture(scope="module")
def simple() -> Instance:
    """A small instance with drift and without caps."""
    return instance(6, constraint="delta=0.1", cap_epsilon=None, cap_cost=None)


def test_without_a_leak_nothing_is_found(simple):
    past = some_history(simple)
    assert found_by_any_truth(simple, past, 0, free=True) | found_by_any_truth(simple, past, 1, free=False) == set()


@pytest.mark.parametrize("name", LEAKS)
def test_a_planted_leak_is_found(simple, name):
    """The check can fail: with the leak planted, the field that it is in differs."""
    plant, field = LEAKS[name]
    past = some_history(simple)
    with planted(plant):
        found = found_by_any_truth(simple, past, 0, free=True) | found_by_any_truth(simple, past, 1, free=False)
    assert field in found
