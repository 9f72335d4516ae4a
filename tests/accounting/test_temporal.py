"""Temporal leakage: bounds hold for every outcome, are reached where that is known, and are computed as they should be.

Twins: every subset of columns (2^n), a linear program, the sorted prefixes pair by pair, the recursion run for long.
Wrong would be: a set of columns missed (a bound too small), marginals other than the chain's in the reversed kernel, a
row that nobody can be in counted, overflow for large losses, an allocation that exceeds its target.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from dphmm import MarkovModel
from dphmm.accounting import Entry, temporal_allocation, temporal_leakage
from dphmm.accounting.leakage_step import LeakageStep, leakage_step, reversed_transition
from dphmm.accounting.temporal import losses_per_step, supremum
from dphmm.errors import InvalidInput
from leakage_programs import rows_of

PAPER = np.array([[0.8, 0.2], [0.0, 1.0]])
SYMMETRIC = np.array([[0.8, 0.2], [0.2, 0.8]])


def test_the_figures_of_the_paper():
    found = temporal_leakage(PAPER, [0.1] * 10, backward=PAPER)
    assert np.round(found.backward, 2).tolist() == [0.10, 0.18, 0.25, 0.30, 0.35, 0.39, 0.42, 0.45, 0.48, 0.50]
    assert np.array_equal(found.forward, found.backward[::-1])
    assert np.round(found.total, 2).tolist() == [0.50, 0.56, 0.60, 0.62, 0.64, 0.64, 0.62, 0.60, 0.56, 0.50]
    assert supremum(PAPER, 0.1) == pytest.approx(0.645907, abs=1e-6)
    assert found.supremum == pytest.approx(2 * supremum(PAPER, 0.1) - 0.1, abs=1e-12)
    assert supremum(PAPER, 0.23) == math.inf


@pytest.mark.parametrize("seed", range(12))
def test_the_supremum_is_where_the_recursion_ends(seed):
    matrix = rows_of(seed, 2 + seed % 5)
    increase = LeakageStep(matrix)
    epsilon = 0.05 + 0.07 * (seed % 4)
    limit = increase.supremum(epsilon)
    a = before = 0.0
    for _ in range(200_000):
        a, before = increase(a) + epsilon, a
        if a == before or a > 1e3:
            break
    assert (limit == math.inf) == (a > 1e3)
    if math.isfinite(limit):
        assert a * (1 - 1e-14) <= limit <= a * (1 + 1e-9) + 1e-12
        assert increase(limit) + epsilon <= limit


def test_there_is_no_supremum_where_a_value_is_remembered_for_ever():
    assert supremum(np.eye(2), 0.1) == math.inf
    assert supremum(SYMMETRIC, 0.0) == 0.0
    assert supremum(SYMMETRIC, math.inf) == math.inf


def joint_loss(start, moves, emissions):
    """(T,): the largest log-ratio over values of s_t and all outcomes, of outputs (y) drawn with emissions[t][s, y]."""
    n, steps = len(start), len(emissions)
    worst = np.zeros(steps)
    for outcome in itertools.product(range(emissions[0].shape[1]), repeat=steps):
        laws = [e[:, y] for e, y in zip(emissions, outcome, strict=True)]
        before = [start]
        for t in range(1, steps):
            before.append((before[-1] * laws[t - 1]) @ moves)
        after = [np.ones(n)]
        for t in range(steps - 1, 0, -1):
            after.insert(0, moves @ (laws[t] * after[0]))
        marginal = start
        for t in range(steps):
            possible = marginal > 0
            logs = np.log((before[t] * laws[t] * after[t])[possible] / marginal[possible])
            worst[t] = max(worst[t], logs.max() - logs.min())
            marginal = marginal @ moves
    return worst


def randomised_response(n, epsilon):
    law = np.ones((n, n)) + np.expm1(epsilon) * np.eye(n)
    return law / law.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(12))
def test_no_outcome_loses_more_than_the_total(seed):
    """Any start, stationary or not; the reversed kernels are of the true marginals."""
    rng = np.random.default_rng(seed)
    n, steps = (2, 6) if seed % 2 else (3, 4)
    start, moves = rng.dirichlet(np.ones(n)), rows_of(seed, n)
    epsilons = rng.choice([0.2, 0.5, 1.1], steps)
    model = MarkovModel(start, moves, start="at")
    found = joint_loss(model.initial, model.transition.toarray(), [randomised_response(n, e) for e in epsilons])
    bound = temporal_leakage(model, epsilons).total
    assert (found <= bound + 1e-13).all()


def test_two_values_and_randomised_response_reach_the_total():
    model = MarkovModel([0.5, 0.5], SYMMETRIC, start="at")
    found = joint_loss(model.initial, SYMMETRIC, [randomised_response(2, 0.4)] * 6)
    assert found == pytest.approx(temporal_leakage(model, [0.4] * 6).total, abs=1e-12)


def test_a_start_before_the_first_release_is_one_move_earlier():
    model = MarkovModel([1.0, 0.0], rows_of(4, 2))
    later = MarkovModel(model.initial @ model.transition.toarray(), model.transition, start="at")
    assert temporal_leakage(model, [0.3] * 5).total == pytest.approx(temporal_leakage(later, [0.3] * 5).total)
    assert temporal_leakage(model, [0.3] * 5).supremum == pytest.approx(temporal_leakage(later, [0.3] * 5).supremum)


def test_the_check_can_fail_with_a_past_of_the_wrong_marginals():
    """The stationary reversed kernel, used for a chain that starts elsewhere, is exceeded by an outcome."""
    start, moves = np.array([0.82, 0.18]), np.array([[0.98, 0.02], [0.82, 0.18]])
    stationary = np.array([0.82, 0.02]) / 0.84
    wrong = temporal_leakage(moves, [1.0, 1.0], backward=reversed_transition(moves, stationary))
    found = joint_loss(start, moves, [randomised_response(2, 1.0)] * 2)
    right = temporal_leakage(MarkovModel(start, moves, start="at"), [1.0, 1.0])
    assert found[1] > wrong.total[1] + 1e-3
    assert found[1] <= right.total[1] + 1e-13


def test_states_nobody_can_be_in_do_not_count():
    moves = np.array([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 1.0]])
    assert temporal_leakage(MarkovModel([0.4, 0.6, 0.0], moves), [0.5] * 4).worst == pytest.approx(0.5)
    possible = MarkovModel([0.4, 0.5, 0.1], moves)
    assert temporal_leakage(possible, [0.5] * 4).worst == pytest.approx(2.0)
    assert temporal_leakage(possible, [0.5] * 4, rows=[0, 1]).worst == pytest.approx(0.5)


def test_skipped_steps_and_unbounded_ones():
    model = MarkovModel([0.5, 0.5], SYMMETRIC)
    once = temporal_leakage(model, [0.0, 1.0, 0.0])
    assert once.total[1] == pytest.approx(1.0)
    assert once.total[[0, 2]] == pytest.approx([leakage_step(SYMMETRIC, 1.0)] * 2)
    certain = temporal_leakage(model, [0.0, math.inf, 0.0])
    assert certain.total == pytest.approx([math.log(4), math.inf, math.log(4)])
    assert certain.supremum == math.inf
    nothing = temporal_leakage(model, [0.0, 0.0])
    assert nothing.worst == nothing.supremum == 0.0
    assert len(temporal_leakage(model, []).total) == 0


def test_a_chain_that_never_settles_has_no_known_supremum():
    # Two classes that take turns: at every time only one of them is possible.
    moves = np.array([[0, 0, 0.3, 0.7], [0, 0, 0.6, 0.4], [0.5, 0.5, 0, 0], [0.1, 0.9, 0, 0]])
    model = MarkovModel([1.0, 0.0, 0.0, 0.0], moves)
    assert math.isnan(temporal_leakage(model, [0.1, 0.1]).supremum)
    with pytest.raises(InvalidInput, match="does not become stationary"):
        temporal_allocation(model, 1.0)


def test_totals_of_any_length_stay_below_the_supremum():
    model = MarkovModel([1.0, 0.0, 0.0], rows_of(2, 3))
    limit = temporal_leakage(model, [0.2]).supremum
    for steps in (2, 10, 300):
        assert temporal_leakage(model, [0.2] * steps).worst <= limit


def test_the_supremum_of_a_stationary_chain_is_approached():
    moves = rows_of(2, 3)
    stationary = np.linalg.matrix_power(moves, 2000)[0]
    found = temporal_leakage(MarkovModel(stationary / stationary.sum(), moves, start="at"), [0.2] * 300)
    assert found.worst <= found.supremum and found.worst == pytest.approx(found.supremum, rel=1e-6)


class TestAllocation:
    def test_the_figures_of_the_paper(self):
        constant = temporal_allocation(SYMMETRIC, 1.0, backward=SYMMETRIC)
        assert constant == pytest.approx(0.2598, abs=1e-4)
        assert temporal_leakage(SYMMETRIC, [constant] * 10, backward=SYMMETRIC).worst == pytest.approx(0.938, abs=1e-3)
        losses = temporal_allocation(SYMMETRIC, 1.0, 10, backward=SYMMETRIC)
        assert losses == pytest.approx([0.6299, *[0.2598] * 8, 0.6299], abs=1e-4)
        total = temporal_leakage(SYMMETRIC, losses, backward=SYMMETRIC).total
        assert (total <= 1.0).all() and total == pytest.approx(np.ones(10), abs=1e-12)

    @pytest.mark.parametrize("seed", range(10))
    def test_no_total_exceeds_the_target(self, seed):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 6))
        model = MarkovModel(rng.dirichlet(np.ones(n)), rows_of(seed, n, zeros=seed % 3 == 0))
        target, steps = float(rng.uniform(0.1, 4)), int(rng.integers(1, 9))
        losses = temporal_allocation(model, target, steps)
        assert len(losses) == steps and (losses >= 0).all()
        found = temporal_leakage(model, losses)
        assert found.worst <= target
        constant = temporal_allocation(model, target)
        found = temporal_leakage(model, [constant] * 50)
        assert found.supremum <= target
        # Not idle: a little more and the limit is passed.
        if constant < target:
            assert temporal_leakage(model, [constant * (1 + 1e-6) + 1e-9]).supremum > target

    def test_independent_values_may_spend_it_all_and_constant_ones_once(self):
        free = MarkovModel([0.5, 0.5], np.full((2, 2), 0.5))
        assert temporal_allocation(free, 1.0) == 1.0
        assert temporal_allocation(free, 1.0, 4).tolist() == [1.0] * 4
        stuck = MarkovModel([0.5, 0.5], np.eye(2))
        assert temporal_allocation(stuck, 1.0) == 0.0
        assert sum(temporal_allocation(stuck, 1.0, 4)) == pytest.approx(1.0)

    def test_one_step_and_nothing_to_spend(self):
        model = MarkovModel([0.5, 0.5], SYMMETRIC)
        assert temporal_allocation(model, 1.5, 1).tolist() == [1.5]
        assert temporal_allocation(model, 0) == 0.0


def entry(t, cost, subject="ann", query="state", steps=1):
    kind = "skip" if cost is None else "release"
    epsilon = None if cost is None else Fraction(1)
    return Entry(subject, query, t, kind, None, epsilon, cost, None, True, False, steps)


def test_losses_of_a_ledger_are_costs_by_step_rounded_up():
    third = Fraction(1, 3)
    found = losses_per_step(
        [entry(1, third), entry(2, None, steps=3), entry(5, Fraction(2)), entry(5, third, query="b")]
    )
    assert found[1:4].tolist() == [0, 0, 0]
    assert Fraction(found[0]) >= third and found[0] == pytest.approx(1 / 3)
    assert Fraction(found[4]) >= 2 + third
    assert losses_per_step([entry(1, math.inf), entry(1, third, query="b")]).tolist() == [math.inf]
    assert losses_per_step([]).tolist() == []
    with pytest.raises(InvalidInput, match="2 subjects"):
        losses_per_step([entry(1, third), entry(1, third, subject="bob")])


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: leakage_step(SYMMETRIC, -1), "alpha"),
        (lambda: leakage_step(SYMMETRIC, math.nan), "alpha"),
        (lambda: leakage_step(SYMMETRIC, True), "alpha"),
        (lambda: leakage_step(SYMMETRIC, "1"), "alpha"),
        (lambda: leakage_step([[0.5, 0.4]], 1), "transition"),
        (lambda: leakage_step([[1.5, -0.5]], 1), "transition"),
        (lambda: leakage_step([[math.nan, 1.0]], 1), "transition"),
        (lambda: leakage_step([1.0], 1), "transition"),
        (lambda: leakage_step("P", 1), "transition"),
        (lambda: leakage_step(SYMMETRIC, 1, [2]), "rows"),
        (lambda: temporal_leakage(SYMMETRIC, [1.0]), "model"),
        (lambda: temporal_leakage(SYMMETRIC, [-1.0], backward=SYMMETRIC), "epsilons"),
        (lambda: temporal_leakage(SYMMETRIC, [math.nan], backward=SYMMETRIC), "epsilons"),
        (lambda: temporal_leakage(SYMMETRIC, 1.0, backward=SYMMETRIC), "epsilons"),
        (lambda: temporal_leakage(SYMMETRIC, ["a"], backward=SYMMETRIC), "epsilons"),
        (lambda: temporal_allocation(SYMMETRIC, -1, backward=SYMMETRIC), "target"),
        (lambda: temporal_allocation(SYMMETRIC, math.inf, backward=SYMMETRIC), "target"),
        (lambda: temporal_allocation(SYMMETRIC, 1, 0, backward=SYMMETRIC), "steps"),
        (lambda: temporal_allocation(SYMMETRIC, 1, 1.5, backward=SYMMETRIC), "steps"),
        (lambda: reversed_transition(SYMMETRIC, [0.5, 0.6]), "marginal"),
        (lambda: reversed_transition(SYMMETRIC, [1.0]), "marginal"),
    ],
)
def test_what_is_wrong_is_named(call, field):
    with pytest.raises(InvalidInput, match=f"^{field}: "):
        call()


@pytest.mark.parametrize("start", ["before", "at"])
@pytest.mark.parametrize("initial", [[1, 0, 0, 0, 0, 0], [1 / 6] * 6])
def test_a_chain_that_does_not_mix_in_one_step_leaks_the_sum(start, initial, monkeypatch):
    """On a line of six states nothing is mixed: what is found without its numbers is what all pairs of rows give."""
    line = np.array([[0.5 if abs(i - j) <= 1 else 0.0 for j in range(6)] for i in range(6)])
    model = MarkovModel(initial, line / line.sum(axis=1, keepdims=True), start=start)
    costs = [0.5, 0.0, 1.0, 0.25, 0.0, 0.0, 2.0, 0.1]
    fast = temporal_leakage(model, costs)
    monkeypatch.setattr("dphmm.accounting.leakage_step.shares_nothing", lambda *given: False)
    slow = temporal_leakage(model, costs)
    for name in ("backward", "forward", "total"):
        assert getattr(fast, name).tolist() == pytest.approx(getattr(slow, name).tolist(), rel=1e-12)
    assert fast.supremum == np.inf
