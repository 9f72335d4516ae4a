"""The promise itself, by enumeration: every required pair, every output near enough to matter (Def. 4.4)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dphmm
import naive
import naive_policy
from dphmm.mechanisms import MECHANISM_CHOICES
from dphmm.policy import graph as kinds
from dphmm.policy._cliques import Complete
from dphmm.session.answer import answer_under
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from registered import chosen_mechanisms, left_out, policy_kinds

SLACK = 1e-9
KINDS, MECHANISMS = policy_kinds(), chosen_mechanisms()
#: Where there is a program for many pairs: answers of a span this small, at an epsilon that needs a small window.


def listed(pick, answers):
    pairs = list(itertools.combinations(range(len(answers)), 2))
    edges = {pairs[pick(0, len(pairs) - 1)] for _ in range(pick(0, 6))}
    return dphmm.policy.from_edges(sorted(edges), len(answers)), edges


def complete(pick, answers):
    return dphmm.policy.complete(len(answers)), naive_policy.complete_edges(len(answers))


def categorical(pick, answers):
    labels = [pick(0, 2) for _ in answers]
    return dphmm.policy.categorical(labels), naive_policy.label_edges(labels)


def radius(pick, answers):
    r, closed = (2, 5, 8)[pick(0, 2)], bool(pick(0, 1))
    graph = dphmm.policy.radius(dphmm.StateSpace(answers), r, closed=closed)
    return graph, naive_policy.radius_edges(answers, [1, 1], r, closed)


def knn(pick, answers):
    k = pick(1, len(answers) - 1)
    return dphmm.policy.knn(dphmm.StateSpace(answers), k), naive_policy.knn_edges(answers, [1, 1], k)


def transition(pick, answers):
    moves = np.array([[float(pick(0, 2) == 0) for _ in answers] for _ in answers])
    return dphmm.policy.transition(moves), naive_policy.transition_edges(moves)


def union(pick, answers):
    (one, its), (other, others) = listed(pick, answers), categorical(pick, answers)
    return one.union(other), its | others


#: A policy of each kind, and its edges by definition.
POLICIES = {
    "complete": complete,
    "categorical": categorical,
    "radius": radius,
    "knn": knn,
    "transition": transition,
    "edges": listed,
    "union": union,
}


def made(pick, kind, mechanism):
    """An instance of whole numbers, each picked from a first one to a last one."""
    n = pick(2, 7)
    answers = np.array([[pick(-4, 4), pick(-4, 4)] for _ in range(n)])
    policy, edges = POLICIES[kind](pick, answers)
    support = np.array([pick(0, 3) < 3 for _ in range(n)])
    plan = support & np.array([pick(0, 3) < 3 for _ in range(n)])
    if not plan.any():
        support[0] = plan[0] = True

    def one_of(choices):
        return choices[pick(0, len(choices) - 1)]

    epsilon = one_of(["0.3", "1", "2.5"])
    return answers, (policy, edges), support, plan, epsilon, mechanism


def drawn(number, kind, mechanism):
    """An instance by its number. Seeded, not searched: every kind and mechanism is sure to be met as often."""
    rng = np.random.default_rng([number, *kind.encode(), 0, *mechanism.encode()])
    return made(lambda first, last: int(rng.integers(first, last + 1)), kind, mechanism)


def instances(times):
    for number, kind, mechanism in itertools.product(range(times), KINDS, MECHANISMS):
        yield drawn(number, kind, mechanism)


def plan_of(instance):
    answers, (policy, _), support, plan, epsilon, mechanism = instance
    options = Options.checked(epsilon, mechanism=mechanism)
    return Planner(policy, dphmm.StateSpace(answers), options).plan(support, plan)


def window(answers, reach=7):
    low, high = answers.min(axis=0) - reach, answers.max(axis=0) + reach
    return [np.array(z) for z in itertools.product(*(range(a, b + 1) for a, b in zip(low, high, strict=True)))]


def largest_losses(plan, answers):
    """max over z of log Pr(z|a)/Pr(z|b) for all pairs of states; inf where only one of them can give z."""
    logs = np.array([plan.log_likelihood(z) for z in window(answers)])
    finite = np.isfinite(logs)
    logs = np.where(finite, logs, 0.0)
    gaps = np.where(finite[:, None], logs[:, :, None] - logs[:, None], np.inf)
    worst = np.where(finite[:, :, None], gaps, -np.inf).max(axis=0)
    return np.maximum(worst, worst.T)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_required_pair_keeps_epsilon(kind, mechanism):
    """Policy edges between possible states, drifted ones included; and someone to hide with for everybody."""
    hidden = 0
    for number in range(60):
        if number >= 10 and hidden >= 5:
            break
        instance = drawn(number, kind, mechanism)
        answers, (policy, edges), support, _, epsilon, *_ = instance
        plan = plan_of(instance)
        losses = largest_losses(plan, answers)
        assert policy.kind == kind
        for a, b in edges:
            if support[a] and support[b]:
                assert losses[a, b] <= float(epsilon) + SLACK
                hidden += not plan.constant
        if not plan.constant:
            assert plan.mechanism_name in ("constant", *(MECHANISMS if mechanism == "auto" else [mechanism]))
            for s in np.flatnonzero(support):
                others = [o for o in np.flatnonzero(support) if o != s]
                assert min(losses[s, o] for o in others) <= float(epsilon) + SLACK
    assert hidden >= 5


_POLICY = "a policy and its edges by definition to POLICIES, in tests/session/test_promise.py"


def test_every_kind_of_policy_is_drawn(monkeypatch):
    """Mechanisms are those of the registry, and one that cannot be made for an instance fails."""
    assert left_out(policy_kinds(), POLICIES, _POLICY) == []
    assert set(MECHANISMS) == set(MECHANISM_CHOICES)
    monkeypatch.setitem(kinds.KINDS, "rings", Complete)
    assert left_out(policy_kinds(), POLICIES, _POLICY) == [f"rings is registered and not tried here: add {_POLICY}"]


def test_cost_bounds_every_pair():
    for instance in instances(3):
        answers, _, support, *_ = instance
        plan = plan_of(instance)
        losses = largest_losses(plan, answers)
        possible = np.flatnonzero(support)
        assert losses[np.ix_(possible, possible)].max() <= float(plan.cost) + SLACK


def test_states_outside_the_plan_set_are_their_surrogates():
    drifted = 0
    for instance in instances(2):
        plan = plan_of(instance)
        assert np.all(plan.constraint.plan[plan.constraint.surrogate])
        logs = plan.log_likelihood(instance[0][0])
        assert np.array_equal(logs, logs[plan.constraint.surrogate])
        drifted += not plan.constraint.plan.all()
    assert drifted > 30


def test_noise_and_plan_do_not_depend_on_the_true_state():
    """With the noise bits fixed, z - f(g(s)) is the same for every state (docs/proofs/promise.md).

    A law that is made for answers adds no noise: with the bits fixed, its answer is a function of f(g(s)).
    """
    for instance in instances(2):
        plan = plan_of(instance)
        additive = plan.mechanism.made_from == "hull"
        found = {}
        for state in range(len(plan.image)):
            z, image = answer_under(plan, np.array([state]), dphmm.ReplayBits(7))[0][0], plan.image[state]
            key, told = ((), z - image) if additive else (tuple(image), z)
            found.setdefault(key, set()).add(tuple(told))
        assert [values for values in found.values() if len(values) != 1] == []


def test_a_plan_is_a_function_of_its_inputs():
    for instance in instances(2):
        first, again = plan_of(instance), plan_of(instance)
        assert first.hash == again.hash
        assert first.record == again.record


def test_other_inputs_give_another_hash():
    answers = np.array([[0, 0], [1, 0], [5, 5], [2, 1]])
    everyone = np.ones(4, dtype=bool)
    three = np.array([True, True, True, False])
    base = {"epsilon": "1", "mechanism": "auto", "protection": "nearest"}

    def digest(policy=((0, 1),), support=everyone, plan=everyone, answers=answers, **changed):
        choices = {**base, **changed}
        options = Options.checked(choices.pop("epsilon"), **choices)
        graph = dphmm.policy.from_edges(list(policy), 4)
        return Planner(graph, dphmm.StateSpace(answers), options).plan(support, plan).hash

    found = [
        digest(),
        digest(epsilon="2"),
        digest(mechanism="staircase"),
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
    options = Options.checked("0.7")
    plan = Planner(dphmm.policy.complete(3), dphmm.StateSpace(answers), options).plan(*[np.ones(3, bool)] * 2)
    assert largest_losses(plan, answers).max() == pytest.approx(0.7, abs=1e-9)


@pytest.mark.parametrize("seed", range(2 * len(MECHANISMS)))
def test_sequences_lose_at_most_the_sum_of_costs(seed):
    """Theorem 7.2 on all pairs of possible histories of two steps, plans fixed by the first answer."""
    rng, mechanism = np.random.default_rng(seed), MECHANISMS[seed % len(MECHANISMS)]
    n = 4
    answers = rng.integers(-3, 4, size=(n, 2))
    moves = rng.random((n, n)) * (rng.random((n, n)) < 0.7) + np.eye(n)
    model = dphmm.MarkovModel(np.full(n, 1 / n), moves / moves.sum(axis=1, keepdims=True))
    policy = dphmm.policy.from_edges([(0, 1), (2, 3)], n)
    space, bits = dphmm.StateSpace(answers), dphmm.ReplayBits(seed)
    session = dphmm.ReleaseSession(model, policy, space, 1, mechanism=mechanism, bits=bits)
    plans = []
    for state in (0, 1):
        plans.append(session.plan)
        session.release(state)
    total = sum(float(plan.cost) for plan in plans)
    each = [largest_losses(plan, answers) for plan in plans]
    for first, second in itertools.product(itertools.product(range(n), repeat=2), repeat=2):
        assert each[0][first[0], second[0]] + each[1][first[1], second[1]] <= total + SLACK


def test_naive_twin_is_the_contracted_graph():
    assert naive.contracted_edges([(0, 1), (1, 2)], [True] * 3, [0, 0, 2]) == [(0, 2)]
