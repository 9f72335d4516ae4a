"""Outcome tables of plans: their probabilities are those of the mechanism, however outcomes are put together.

Fails for a probability that another sum over the lattice does not give, for a row that does not add up to 1, for boxes
that count a point twice or not at all, and for an answer that is taken for another outcome than it is.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.reconstruction import answers
from dphmm.reconstruction.answers import law_key, outcome_table


def even_model(n, space=None):
    return dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), space=space)


def plan_of(points, edges, epsilon=1, **choices):
    space = dphmm.StateSpace(points)
    policy = dphmm.policy.from_edges(edges, space.n_states)
    return dphmm.ReleaseSession(even_model(space.n_states), policy, space, epsilon=epsilon, **choices).plan


SQUARE = [[0, 0], [1, 0], [0, 1], [1, 1], [3, 2]]
ALL = [(a, b) for a in range(5) for b in range(a)]


def test_noise_on_a_line_has_its_closed_form():
    """P(z | x) is proportional to exp(-ε|z - x|/2) where answers differ by up to 2."""
    found = outcome_table(plan_of([0, 1, 2], [(0, 1), (1, 2), (0, 2)], mechanism="discrete-knorm"))
    q = math.exp(-0.5)
    expected = (1 - q) / (1 + q) * q ** np.abs(found.low[0] + np.arange(found.shape[0]) - np.arange(3)[:, None])
    assert found.table[:, :-1] == pytest.approx(expected, abs=1e-12)
    assert found.table[:, -1] == pytest.approx(1 - expected.sum(axis=1), abs=1e-12)


@pytest.mark.parametrize("mechanism", ["discrete-knorm", "staircase", "discrete-laplace"])
@pytest.mark.parametrize("side", [1, 2, 3])
def test_probabilities_are_sums_of_likelihoods(mechanism, side, monkeypatch):
    """Against every lattice point by itself, added up over a wide square."""
    monkeypatch.setattr(answers, "_side", lambda span, laws: side)
    plan = plan_of(SQUARE, ALL, 2, mechanism=mechanism)
    found = outcome_table(plan)
    points = np.array(list(product(range(-60, 64), repeat=2)))
    weights = np.exp(np.stack([plan.log_likelihood(z) for z in points], axis=1))
    weights /= weights.sum(axis=1, keepdims=True)
    expected = np.zeros(found.table.shape)
    np.add.at(expected.T, found.numbers(points), weights[np.unique(found.law_of, return_index=True)[1]].T)
    assert found.table == pytest.approx(expected, abs=1e-9)
    assert found.table.sum(axis=1) == pytest.approx(1, abs=1e-12)


def test_answers_of_a_table_are_outcomes():
    space = dphmm.StateSpace.labels(["a", "b", "c"])
    plan = dphmm.ReleaseSession(even_model(3), dphmm.policy.complete(3), space, epsilon=1).plan
    found, e = outcome_table(plan), math.e
    assert found.table == pytest.approx((np.ones((3, 3)) + np.eye(3) * (e - 1)) / (e + 2), abs=1e-9)
    assert found.numbers(np.array([[2], [0]])).tolist() == [2, 0]
    with pytest.raises(InvalidInput, match="an answer that its table does not have"):
        found.numbers(np.array([[3]]))


def test_a_state_that_is_answered_as_another_has_its_law():
    plan = plan_of([0, 1, 2, 9], [(0, 1), (1, 2)], protection="merge")
    found = outcome_table(plan)
    assert len(found.table) == 3 and found.law_of.tolist() == [0, 1, 2, 2]
    assert found.split(np.array([0.0, 0, 1, 0])).tolist() == [2]
    assert found.split(np.array([0.0, 0, 1, 1])).tolist() == []


def test_far_answers_are_one_outcome():
    found = outcome_table(plan_of([0, 1], [(0, 1)]))
    last = found.table.shape[1] - 1
    assert found.numbers(np.array([[-(10**6)], [10**6], [0]])).tolist() == [last, last, -found.low[0]]


def test_noise_too_wide_is_refused(monkeypatch):
    monkeypatch.setattr(answers, "MOST_POINTS", 100)
    with pytest.raises(InvalidInput, match=r"noise over .* lattice steps"):
        outcome_table(plan_of(SQUARE, ALL))


def test_plans_of_one_law_have_one_key():
    one, other = plan_of([0, 1, 2], [(0, 1), (1, 2)]), plan_of([0, 1, 2], [(0, 1), (1, 2)])
    assert law_key(one) == law_key(other)
    assert (
        len({law_key(one), law_key(plan_of([0, 1, 2], [(0, 1), (1, 2)], 2)), law_key(plan_of([0, 1, 3], ALL[:3]))}) == 3
    )
