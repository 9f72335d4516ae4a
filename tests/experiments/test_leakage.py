"""Exact policy leakage: programs against all spanning trees, the recursion against outcomes and the package's bound.

It could fail by a program that stops below its maximum, by a past of other marginals than the chain's, or by a bound of
the package that is below the exact figure.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dphmm import MarkovModel
from dphmm.accounting import policy_leakage, temporal_leakage
from dphmm.accounting.leakage_step import leakage_step
from experiments.dphmm.leakage import exact_leakage, largest_ratio, walk_of_two
from leakage_programs import exact_ratio, many_digits, outcomes, program


@pytest.mark.parametrize("seed", range(20))
def test_a_program_is_solved_to_its_maximum(seed):
    q, d, limits = program(seed, most=5)
    with many_digits():
        assert largest_ratio(q, d, limits) == pytest.approx(exact_ratio(q, d, limits), abs=1e-7)


def test_constant_limits_are_the_temporal_increase():
    q, d = np.random.default_rng(0).dirichlet(np.full(6, 0.5), 2)
    for alpha in (0.1, 1.0, 10.0):
        limits = alpha * (1 - np.eye(6))
        both = max(largest_ratio(q, d, limits), largest_ratio(d, q, limits))
        assert both == pytest.approx(leakage_step(np.vstack([q, d]), alpha), abs=1e-7)


def test_complete_losses_stay_below_temporal_leakage():
    rng = np.random.default_rng(3)
    start, moves = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), 4)
    epsilons = (0.4, 1.0, 0.2, 0.7)
    exact = exact_leakage(start, moves, [a * (1 - np.eye(4)) for a in epsilons])
    bound = temporal_leakage(MarkovModel(start, moves, start="at"), epsilons).total
    assert (exact.max(axis=(1, 2)) <= bound + 1e-8).all()


def test_infinite_limits_that_have_to_be_passed():
    apart = np.array([[0.0, math.inf], [math.inf, 0.0]])
    assert largest_ratio(np.array([1.0, 0.0]), np.array([0.0, 1.0]), apart) == math.inf
    assert largest_ratio(np.array([0.4, 0.6]), np.array([0.8, 0.2]), apart) == pytest.approx(math.log(3))


@pytest.mark.slow
def test_the_walk_near_a_wall():
    """Two cells left or right on 11 cells, epsilon 1, K = [-1, 1]: the figures of docs/leakage.md."""
    law, moves = walk_of_two(11)
    loss = np.abs(np.subtract.outer(np.arange(11), np.arange(11))).astype(float)
    edges = np.array([(i, i + 1) for i in range(10)])

    def worst(steps):
        found = exact_leakage(law, moves, [loss] * steps)
        return np.maximum(found[:, edges[:, 0], edges[:, 1]], found[:, edges[:, 1], edges[:, 0]])

    two, three = worst(2), worst(3)
    assert two.max(axis=0) == pytest.approx([2, 3.434, 2, 2, 2, 2, 2, 2, 3.434, 2], abs=1e-3)
    # First and last step; the one between loses more.
    assert three[[0, 2]].max() == pytest.approx(4.947, abs=1e-3) and three.max() == pytest.approx(5.868, abs=1e-3)
    assert worst(4).max() == pytest.approx(7.426, abs=1e-3)
    laws = [np.exp(-np.abs(np.subtract.outer(np.arange(11), np.arange(-6, 17))))] * 2
    found = outcomes(law, moves, laws)
    lost = max(found[:, i, j].max() for i, j in [*edges, *edges[:, ::-1]])
    assert lost == pytest.approx(3.325, abs=1e-3) and lost <= two.max()


@pytest.mark.parametrize("seed", range(6))
def test_no_outcome_loses_more_and_the_package_bounds_it(seed):
    rng = np.random.default_rng(seed)
    n, steps = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    start, moves = rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 0.4), n)
    answers, epsilons = rng.integers(0, 5, n), rng.choice([0.3, 0.7, 1.5], steps)
    grid = np.arange(answers.min() - 3, answers.max() + 4)
    losses = [e * np.abs(np.subtract.outer(answers, answers)) for e in epsilons]
    exact = exact_leakage(start, moves, losses)
    found = outcomes(start, moves, [np.exp(-e * np.abs(np.subtract.outer(answers, grid))) for e in epsilons])
    assert (found <= exact + 1e-6).all()
    edges = np.array(list(itertools.combinations(range(n), 2)))
    bound = policy_leakage(MarkovModel(start, moves, start="at"), losses, edges).total
    pairs = np.maximum(exact, exact.transpose(0, 2, 1))[:, edges[:, 0], edges[:, 1]]
    assert (pairs <= bound + 1e-6).all()
