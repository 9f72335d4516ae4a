"""Shares of a population from noisy answers: unbiased whatever the truth is, with intervals that cover.

Fails for an estimate that leans to the guess, for intervals that are too narrow, and for regions that no answer tells
apart and that are answered all the same.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.population import linear_estimates, shares, shares_of_outcomes
from dphmm.report.assembling import outcome_table


def noisy(n, stay):
    """Randomised response over n labels."""
    table = np.full((n, n), (1 - stay) / (n - 1))
    np.fill_diagonal(table, stay)
    return table


@pytest.mark.parametrize("seed", range(5))
def test_estimates_are_unbiased_from_every_state(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 9))
    table = rng.dirichlet(np.full(n + 2, 0.7), n)
    regions = np.column_stack([np.eye(n), rng.integers(0, 2, n)])
    guess = rng.dirichlet(np.ones(n))
    assert table @ linear_estimates(table, regions, guess) == pytest.approx(regions, abs=1e-8)


def test_no_unbiased_estimate_varies_less_under_the_guess():
    """Against a general solver of the same problem: least variance, linear constraints."""
    from scipy.optimize import minimize

    rng = np.random.default_rng(3)
    table, guess = rng.dirichlet(np.ones(5), 3), np.array([0.5, 0.3, 0.2])
    chance, region = guess @ table, np.array([1.0, 0.0, 0.0])
    found = linear_estimates(table, region[:, None], guess)[:, 0]
    limits = {"type": "eq", "fun": lambda g: table @ g - region}
    best = minimize(lambda g: chance @ g**2, np.zeros(5), constraints=limits, options={"ftol": 1e-15, "maxiter": 500})
    assert chance @ found**2 == pytest.approx(best.fun, rel=1e-6)


def test_the_expected_share_is_the_true_one_by_enumeration():
    """Three people, every combination of their outcomes."""
    table, truth = noisy(3, 0.6), (0, 0, 2)
    expected = np.zeros(3)
    for outcomes in product(range(3), repeat=3):
        chance = np.prod([table[state, z] for state, z in zip(truth, outcomes, strict=True)])
        expected += chance * shares_of_outcomes(table, np.array(outcomes)).share
    assert expected == pytest.approx([2 / 3, 0, 1 / 3])


def test_intervals_cover_nine_times_in_ten():
    """2,000 populations of 300 people: between 0.87 and 0.93 of the intervals hold the share that people are drawn by.

    A right interval fails this with probability below 1e-5 (the standard error of the coverage is 0.0067).
    """
    rng = np.random.default_rng(11)
    table, population = noisy(4, 0.55), np.array([0.5, 0.25, 0.15, 0.1])
    estimates = linear_estimates(table, np.eye(4))
    covered = 0
    for _ in range(2000):
        states = rng.choice(4, 300, p=population)
        outcomes = (rng.random((300, 1)) > np.cumsum(table[states], axis=1)).sum(axis=1)
        found = shares(estimates[outcomes])
        covered += bool(found.low[1] <= population[1] <= found.high[1])
    assert 0.87 <= covered / 2000 <= 0.93


def test_states_that_no_outcome_tells_apart_are_refused_apart_and_answered_together():
    table = np.array([[0.7, 0.3], [0.7, 0.3], [0.2, 0.8]])
    with pytest.raises(InvalidInput, match="region 0, which splits states"):
        linear_estimates(table, np.eye(3))
    found = linear_estimates(table, np.array([[1.0], [1.0], [0.0]]))
    assert table @ found == pytest.approx(np.array([[1.0], [1.0], [0.0]]))


def test_one_person_alone_has_no_interval():
    found = shares_of_outcomes(noisy(3, 0.5), np.array([1]))
    assert np.isneginf(found.low).all() and np.isposinf(found.high).all()


def test_the_table_of_a_plan_is_its_law():
    """Rows add up to one, and no two differ by more than the promise."""
    space = dphmm.StateSpace.labels(["a", "b", "c"])
    model = dphmm.MarkovModel([0.4, 0.3, 0.3], np.full((3, 3), 1 / 3), space=space)
    plan = dphmm.ReleaseSession(model, dphmm.policy.complete(3), space, epsilon=1).plan
    table = outcome_table(plan, 1)
    assert table.sum(axis=1) == pytest.approx(1) and (table.argmax(axis=1) == np.arange(3)).all()
    assert np.log(table.max(axis=0) / table.min(axis=0)).max() == pytest.approx(1, abs=1e-6)
