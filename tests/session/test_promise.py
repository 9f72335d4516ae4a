"""The promise itself, by enumeration: every required pair, every output near enough to matter (Def. 4.4)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphmm
import naive
from dphmm.session.options import Options
from dphmm.session.planner import Planner

SLACK = 1e-9


@st.composite
def instances(draw, span=4):
    n = draw(st.integers(2, 7))
    answers = np.array(draw(st.lists(st.tuples(*[st.integers(-span, span)] * 2), min_size=n, max_size=n)))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=6, unique=True))
    support = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    plan = support & np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    if not plan.any():
        support[0] = plan[0] = True
    epsilon = draw(st.sampled_from(["0.3", "1", "2.5"]))
    mechanism = draw(st.sampled_from(["auto", "discrete-knorm", "staircase", "discrete-laplace"]))
    scope = draw(st.sampled_from(["global", "component"]))
    flat = draw(st.sampled_from(["thicken", "allow"]))
    return answers, edges, support, plan, epsilon, mechanism, scope, flat


def plan_of(instance):
    answers, edges, support, plan, epsilon, mechanism, scope, flat = instance
    options = Options.checked(epsilon, dimension=2, mechanism=mechanism, scope=scope, flat=flat)
    policy = dphmm.policy.from_edges(edges, len(answers))
    return Planner(policy, dphmm.StateSpace(answers), options).plan(support, plan)


def window(answers, reach=7):
    low, high = answers.min(axis=0) - reach, answers.max(axis=0) + reach
    return [np.array(z) for z in itertools.product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))]


def largest_losses(plan, answers):
    """max over z of log Pr(z|a)/Pr(z|b) for all pairs of states; inf where only one of them can give z."""
    n = len(answers)
    worst = np.full((n, n), -np.inf)
    for z in window(answers):
        logs = plan.log_likelihood(z)
        finite = np.isfinite(logs)
        gap = np.where(finite, logs, 0.0)[:, None] - np.where(finite, logs, 0.0)[None]
        gap[np.ix_(finite, ~finite)] = np.inf
        gap[~finite] = -np.inf
        worst = np.maximum(worst, gap)
    return np.maximum(worst, worst.T)


@given(instances())
@settings(max_examples=150, deadline=None)
def test_every_required_pair_keeps_epsilon(instance):
    """Policy edges between possible states, drifted ones included; and someone to hide with for everybody."""
    answers, edges, support, _, epsilon, *_ = instance
    plan = plan_of(instance)
    losses = largest_losses(plan, answers)
    for a, b in edges:
        if support[a] and support[b]:
            assert losses[a, b] <= float(epsilon) + SLACK
    if not plan.constant:
        for s in np.flatnonzero(support):
            others = [o for o in np.flatnonzero(support) if o != s]
            assert min(losses[s, o] for o in others) <= float(epsilon) + SLACK


@given(instances())
@settings(max_examples=80, deadline=None)
def test_cost_bounds_every_pair(instance):
    answers, _, support, *_ = instance
    plan = plan_of(instance)
    losses = largest_losses(plan, answers)
    possible = np.flatnonzero(support)
    assert losses[np.ix_(possible, possible)].max() <= float(plan.cost) + SLACK


@given(instances())
@settings(max_examples=60, deadline=None)
def test_states_outside_the_plan_set_are_their_surrogates(instance):
    answers, *_ = instance
    plan = plan_of(instance)
    assert np.all(plan.constraint.plan[plan.constraint.surrogate])
    logs = plan.log_likelihood(answers[0])
    assert np.array_equal(logs, logs[plan.constraint.surrogate])


@given(instances())
@settings(max_examples=60, deadline=None)
def test_noise_and_plan_do_not_depend_on_the_true_state(instance):
    """With the noise bits fixed, z - f(g(s)) is the same for every state (docs/proofs/promise.md)."""
    _, _, _, _, _, _, scope, _ = instance
    plan = plan_of(instance)
    noises = {}
    for state in range(len(plan.image)):
        z = np.array(plan.draw(state, dphmm.ReplayBits(7)))
        noises.setdefault(int(plan.body_of[state]), set()).add(tuple(z - plan.image[state]))
    assert all(len(found) == 1 for found in noises.values())
    if scope == "global":
        assert len(noises) == 1


@given(instances())
@settings(max_examples=60, deadline=None)
def test_a_plan_is_a_function_of_its_inputs(instance):
    first, again = plan_of(instance), plan_of(instance)
    assert first.hash == again.hash
    assert first.record == again.record


def test_other_inputs_give_another_hash():
    answers = np.array([[0, 0], [1, 0], [5, 5], [2, 1]])
    everyone = np.ones(4, dtype=bool)
    three = np.array([True, True, True, False])
    base = {"epsilon": "1", "mechanism": "auto", "scope": "global", "flat": "thicken", "protection": "nearest"}

    def digest(policy=((0, 1),), support=everyone, plan=everyone, answers=answers, thickness=None, **changed):
        choices = {**base, **changed}
        options = Options.checked(choices.pop("epsilon"), dimension=2, thickness=thickness, **choices)
        graph = dphmm.policy.from_edges(list(policy), 4)
        return Planner(graph, dphmm.StateSpace(answers), options).plan(support, plan).hash

    found = [
        digest(),
        digest(epsilon="2"),
        digest(mechanism="staircase"),
        digest(scope="component"),
        digest(flat="allow"),
        digest(thickness=3),
        digest(protection="min-error"),
        digest(policy=((0, 2),)),
        digest(support=everyone, plan=three),
        digest(support=three, plan=three),
        digest(answers=answers + np.array([[0, 0], [0, 0], [0, 0], [1, 0]])),
    ]
    assert len(set(found)) == len(found)


def test_epsilon_is_reached():
    """The bound is tight: a policy edge of norm 1 loses ε exactly."""
    answers = np.array([[0, 0], [3, 0], [0, 2]])
    options = Options.checked("0.7", dimension=2)
    plan = Planner(dphmm.policy.complete(3), dphmm.StateSpace(answers), options).plan(*[np.ones(3, bool)] * 2)
    assert largest_losses(plan, answers).max() == pytest.approx(0.7, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_sequences_lose_at_most_the_sum_of_costs(seed):
    """Theorem 7.2 on all pairs of possible histories of two steps, plans fixed by the first answer."""
    rng = np.random.default_rng(seed)
    n = 4
    answers = rng.integers(-3, 4, size=(n, 2))
    moves = rng.random((n, n)) * (rng.random((n, n)) < 0.7) + np.eye(n)
    model = dphmm.MarkovModel(np.full(n, 1 / n), moves / moves.sum(axis=1, keepdims=True))
    policy = dphmm.policy.from_edges([(0, 1), (2, 3)], n)
    session = dphmm.ReleaseSession(model, policy, dphmm.StateSpace(answers), 1, bits=dphmm.ReplayBits(seed))
    plans = []
    for state in (0, 1):
        plans.append(session.plan)
        session.release(state)
    total = sum(float(plan.cost) for plan in plans)
    each = [largest_losses(plan, answers) for plan in plans]
    for first, second in itertools.product(itertools.product(range(n), repeat=2), repeat=2):
        assert each[0][first[0], second[0]] + each[1][first[1], second[1]] <= total + SLACK


def test_a_float_prior_would_have_lost_states():
    """docs/theory.md 3: on a corridor the support is reachability, whatever the belief's floats say."""
    n = 301
    moves = np.zeros((n, n))
    for i in range(n):
        for j in (i - 1, i, i + 1):
            moves[i, min(max(j, 0), n - 1)] += 1 / 3
    space = dphmm.StateSpace(np.arange(n)[:, None])
    model = dphmm.MarkovModel(np.eye(n)[0], moves)
    session = dphmm.ReleaseSession(model, dphmm.policy.radius(space, 1), space, 1, bits=dphmm.ReplayBits(1))
    for t in range(1, 61):
        assert np.flatnonzero(session.support).tolist() == list(range(min(n, t + 1)))
        session.release(0)
    assert np.isfinite(session.posterior.log_probability[session.posterior.support]).all()


def test_component_scope_prints_unbounded():
    answers = np.array([[0, 0], [1, 0], [0, 1], [20, 20], [23, 20], [20, 23]])
    options = Options.checked(1, dimension=2, scope="component")
    policy = dphmm.policy.categorical([0, 0, 0, 1, 1, 1])
    plan = Planner(policy, dphmm.StateSpace(answers), options).plan(*[np.ones(6, bool)] * 2)
    assert len(plan.hulls) == 2
    assert plan.cost == math.inf
    whole = Options.checked(1, dimension=2)
    together = Planner(policy, dphmm.StateSpace(answers), whole).plan(*[np.ones(6, bool)] * 2)
    assert plan.expected_error < together.expected_error


def test_naive_twin_is_the_contracted_graph():
    assert naive.contracted_edges([(0, 1), (1, 2)], [True] * 3, [0, 0, 2]) == [(0, 2)]
