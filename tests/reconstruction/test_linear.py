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
from dphmm.reconstruction.linear import linear_estimates, shares, shares_of_outcomes
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


@pytest.mark.parametrize("stay", [0.4, 0.55, 0.9, 0.999])
@pytest.mark.parametrize("people", [1, 2, 3, 5])
def test_intervals_cover_the_people_s_own_share_by_enumeration(people, stay):
    """Every combination of true labels and of outcomes, of few people: the worst coverage is never below 0.9."""
    table = noisy(3, stay)
    estimates = linear_estimates(table, np.eye(3))
    ends = estimates.min(axis=0), estimates.max(axis=0)
    found = {outcomes: shares(estimates[list(outcomes)], *ends) for outcomes in product(range(3), repeat=people)}
    for states in product(range(3), repeat=people):
        truth = np.bincount(states, minlength=3) / people
        covered = np.zeros(3)
        for outcomes, (_, low, high) in found.items():
            chance = np.prod([table[state, z] for state, z in zip(states, outcomes, strict=True)])
            covered += chance * ((low <= truth) & (truth <= high))
        assert (covered >= 0.9).all(), (states, covered)


@pytest.mark.parametrize("stay", [0.6, 0.9, 0.999])
@pytest.mark.parametrize("people", [1, 4, 20, 60])
def test_intervals_cover_the_population_s_share_exactly(people, stay):
    """How many outcomes name a label is binomial, whatever its share: coverage summed over all counts."""
    from scipy.stats import binom

    estimates = linear_estimates(noisy(2, stay), np.eye(2))
    ends = estimates.min(axis=0), estimates.max(axis=0)
    found = [shares(estimates[[0] * n + [1] * (people - n)], *ends) for n in range(people + 1)]
    for rho in np.linspace(0, 1, 41):
        chance = rho * stay + (1 - rho) * (1 - stay)
        held = [bool(low[0] <= rho <= high[0]) for _, low, high in found]
        assert binom.pmf(np.arange(people + 1), people, chance) @ held >= 0.9


def test_intervals_of_few_people_are_wide_and_between_0_and_1():
    """Few people who all answer alike: the normal approximation had intervals of no width, far below 0 or above 1."""
    for outcomes in ([0], [0, 0], [1, 1, 1], [0, 1]):
        _, low, high = shares_of_outcomes(noisy(3, 0.4), np.array(outcomes))
        assert (low >= 0).all() and (high <= 1).all() and (high - low > 0.5).all()
    _, low, high = shares_of_outcomes(noisy(3, 0.9), np.repeat([0, 1, 2], [3600, 200, 200]))
    assert 0.95 < low[0] < high[0] == 1 and low[1] == 0 and (high - low < 0.1).all()


def test_what_no_outcome_counts_for_is_refused():
    for counts in (np.zeros((0, 1)), np.array([[2.0]]), np.array([[-1.0]])):
        with pytest.raises(InvalidInput, match="counts_for"):
            shares(counts, np.array([-0.5]), np.array([1.5]))


def test_states_that_no_outcome_tells_apart_are_refused_apart_and_answered_together():
    table = np.array([[0.7, 0.3], [0.7, 0.3], [0.2, 0.8]])
    with pytest.raises(InvalidInput, match="region 0, which splits states"):
        linear_estimates(table, np.eye(3))
    found = linear_estimates(table, np.array([[1.0], [1.0], [0.0]]))
    assert table @ found == pytest.approx(np.array([[1.0], [1.0], [0.0]]))


def test_the_table_of_a_plan_is_its_law():
    """Rows add up to one, and no two differ by more than the promise."""
    space = dphmm.StateSpace.labels(["a", "b", "c"])
    model = dphmm.MarkovModel([0.4, 0.3, 0.3], np.full((3, 3), 1 / 3), space=space)
    plan = dphmm.ReleaseSession(model, dphmm.policy.complete(3), space, epsilon=1).plan
    table = outcome_table(plan, 1)
    assert table.sum(axis=1) == pytest.approx(1) and (table.argmax(axis=1) == np.arange(3)).all()
    assert np.log(table.max(axis=0) / table.min(axis=0)).max() == pytest.approx(1, abs=1e-6)
