"""What the pages of docs/proofs say is *not* claimed, each with the instance that shows why."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import dphmm
import naive
from dphmm.session.options import Options
from dphmm.session.planner import Planner


def test_rechecking_can_enlarge_the_hull_of_min_error():
    """protection.md: only "nearest" joins a subset of the printed loop's joins."""
    answers = np.array([(1, 0), (3, 4), (4, 4), (1, 3), (7, 6), (1, 2), (6, 2), (3, 2), (6, 0)])
    policy = dphmm.policy.from_edges([(0, 1)], 9)

    def area(recheck):
        graph = dphmm.sensitivity.protectable_graph(policy, answers, method="min-error", recheck=recheck)
        assert len(dphmm.sensitivity.exposed_states(graph, answers)) == 0
        return naive.area(naive.differences(graph.edges().tolist(), answers))

    assert (area(True), area(False)) == (26, 20)


def test_the_sum_of_epsilons_is_no_bound_over_time():
    """composition.md: states p, q, their neighbours, then a, b next to each other: 11ε for Σε = 2ε."""
    # p, p', q, q', a, b with answers 0, 1, 10, 9, 0, 1; p can only go to a, q only to b.
    answers = np.array([[0], [1], [10], [9], [0], [1]])
    move = np.zeros((6, 6))
    move[[0, 1, 2, 3, 4, 5], [4, 4, 5, 5, 4, 5]] = 1.0
    model = dphmm.MarkovModel(np.array([0.25] * 4 + [0.0] * 2), move)
    policy = dphmm.policy.from_edges([(0, 1), (2, 3), (4, 5)], 6)
    planner = Planner(policy, dphmm.StateSpace(answers), Options.checked(1, mechanism="discrete-knorm"))
    first = np.array([True] * 4 + [False] * 2)
    plans = [planner.plan(first, first), planner.plan(~first, ~first)]
    assert [plan.mechanism_name for plan in plans] == ["discrete-knorm"] * 2
    now = [plan.log_likelihood(np.array([0])) for plan in plans]
    start = np.log(model.initial[:4])
    # z = (0, 0). Given a, the past is p or p'; given b, it is q or q'.
    given_a = np.logaddexp(*(start + now[0][:4])[:2]) + now[1][4]
    given_b = np.logaddexp(*(start + now[0][:4])[2:]) + now[1][5]
    assert given_a - given_b > 9
    # With p and q alone, as in the statement: ε·10 + ε·1.
    assert (now[0][0] + now[1][4]) - (now[0][2] + now[1][5]) == pytest.approx(11)
    assert [plan.promised for plan in plans] == [Fraction(1)] * 2


def test_a_state_outside_the_support_is_its_surrogate_and_no_more():
    """promise.md: 2 and 99 are joined, called impossible, answered from 1 and 100: their edge loses 99ε."""
    answers = np.array([[0], [1], [2], [99], [100], [101]])
    policy = dphmm.policy.from_edges([(0, 1), (2, 3), (4, 5)], 6)
    support = np.array([True, True, False, False, True, True])
    planner = Planner(policy, dphmm.StateSpace(answers), Options.checked(1, mechanism="discrete-knorm"))
    plan = planner.plan(support, support)
    assert plan.constraint.surrogate[[2, 3]].tolist() == [1, 4]
    losses = [abs(logs[2] - logs[3]) for z in range(-20, 130) if np.isfinite(logs := plan.log_likelihood([z])).all()]
    assert max(losses) == pytest.approx(99)
    for z in range(-5, 110):
        logs = plan.log_likelihood([z])
        assert np.array_equal(logs[[2, 3]], logs[[1, 4]])


def test_floats_tell_the_answer():
    """knorm.md: f = 0 against f = 1. A small z that is no multiple of 2**-53 came from 0."""
    mechanism = dphmm.mechanisms.KNorm(
        dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(2), np.array([[0], [1]])), 1
    )
    z = [mechanism.sample(np.full((20_000, 1), f), dphmm.ReplayBits(53))[:, 0] for f in (0.0, 1.0)]
    small = [x[np.abs(x) < 0.5] for x in z]
    multiples = [(x * 2.0**53 == np.rint(x * 2.0**53)).mean() for x in small]
    assert multiples[1] == 1.0 and multiples[0] < 0.9
    assert math.isclose(mechanism.loss(1), 1.0)
