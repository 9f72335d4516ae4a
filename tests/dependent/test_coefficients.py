"""Coefficients of pairs: closed forms for two states, and the supremum over all answers by enumeration.

Coefficients, the growth of a loss along a kernel, the recursion and exact losses, against enumeration.

All joint tables here are small enough to multiply out. If the recursion or a coefficient were below what enumeration
finds, or an exact loss differed from it, a model here would show it; where a bound is called tight, it must be reached.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dependent_models import binary, joint_of, true_loss
from dphmm.accounting.leakage_step import LeakageCurve
from dphmm.dependent import (
    AnyQuery,
    Chain,
    JointTable,
    Sum,
    Tree,
    calibrate,
    coefficient,
    coefficients,
    exact_loss,
    sensitivity,
)
from dphmm.dependent._coefficients import tuple_losses
from random_seeds import seeds


@seeds(20)
def test_the_two_state_coefficient_in_closed_form(seed):
    rng = np.random.default_rng(seed)
    up, down, sigma = rng.uniform(0.01, 0.99, 3) * (1, 1, 4)
    lag = int(rng.integers(1, 6))
    power = np.linalg.matrix_power(np.array([[1 - up, up], [down, 1 - down]]), lag)
    high, low = power[:, 1].max(), power[:, 1].min()
    em = math.expm1(1 / sigma)
    expected = sigma * max(
        math.log((1 + high * em) / (1 + low * em)), math.log((1 + (1 - low) * em) / (1 + (1 - high) * em))
    )
    model = [[1 - up, up], [down, 1 - down]]
    assert coefficient(model, lag, sigma, values=[0, 1]) == pytest.approx(expected, abs=1e-12)
    # A stationary chain of two states is reversible, and for two values no query is worse than the value itself.
    assert coefficient(model, -lag, sigma, values=[0, 1]) == pytest.approx(expected, abs=1e-12)
    assert coefficient(model, lag, sigma) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_coefficients_with_values_are_the_supremum_over_all_answers(seed):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(2, 5))
    matrix, values = rng.dirichlet(np.full(k, 0.5), k), rng.choice(9, k, replace=False)
    sigma, lag = float(rng.uniform(0.3, 6)), int(rng.integers(1, 4))
    s = np.linspace(values.min() - 3, values.max() + 3, 4001)
    density = np.linalg.matrix_power(matrix, lag) @ np.exp(-np.abs(values[:, None] - s) / sigma)
    found = np.log(density.max(axis=0) / density.min(axis=0)).max() * sigma / np.ptp(values)
    rho = coefficient(matrix, lag, sigma, values=values)
    assert found <= rho + 1e-12 and rho == pytest.approx(found, abs=2e-3)
    assert rho <= coefficient(matrix, lag, sigma / np.ptp(values)) + 1e-12


def test_limits_of_the_coefficient():
    assert coefficient([[0.5, 0.5], [0.5, 0.5]], 1, 1.0) == 0
    assert coefficient([[0, 1], [1, 0]], 3, 1.0, values=[0, 1]) == pytest.approx(1)
    assert coefficient([[0.7, 0.3], [0.3, 0.7]], 0, 1.0) == 1
    # Much noise: total variation, which for two symmetric states is λ^lag. Less noise may give more.
    assert coefficient([[0.7, 0.3], [0.3, 0.7]], 2, 1e6, values=[0, 1]) == pytest.approx(0.16, abs=1e-6)
    bursty = [[0.99, 0.01], [0.1, 0.9]]
    assert coefficient(bursty, 1, 1.0, values=[0, 1]) > 0.89 + 0.01


def test_the_symmetric_binary_semigroup():
    for lam, alpha in itertools.product((0.2, 0.9, -0.6), (0.1, 1.0, 5.0)):
        p = (1 - lam) / 2
        loss = LeakageCurve.of(np.array([[1 - p, p], [p, 1 - p]]))(alpha)
        assert math.tanh(loss / 2) == pytest.approx(abs(lam) * math.tanh(alpha / 2), abs=1e-14)


def test_the_matrix_of_coefficients():
    model = binary(0.2, 0.3, 4)
    rho = coefficients(model, Sum([0, 1]), 2.0)
    for i, j in itertools.product(range(4), repeat=2):
        assert rho[i, j] == pytest.approx(coefficient(model, j - i, 2.0, values=[0, 1], at=i), abs=1e-13)
    assert sensitivity(rho, 3.0) == pytest.approx(3 * rho.sum(axis=1).max())
    assert sensitivity([[1, 0.5], [0.25, 1]], [1.0, 2.0]) == pytest.approx(2.25)


def random_tree(rng):
    n = int(rng.integers(2, 6))
    parents = [-1] + [int(rng.integers(0, i)) for i in range(1, n)]
    sizes = [int(rng.integers(2, 4)) for _ in range(n)]
    kernels = {i: rng.dirichlet(np.full(sizes[i], 0.4), sizes[parents[i]]) for i in range(1, n)}
    return Tree(parents, rng.dirichlet(np.ones(sizes[0])), kernels)


def random_chain(rng):
    k, n = int(rng.integers(2, 4)), int(rng.integers(2, 6))
    kind = rng.integers(3)
    if kind == 0:
        return Chain(rng.dirichlet(np.full(k, 0.5), k), n)
    if kind == 1:
        return Chain(rng.dirichlet(np.full(k, 0.5), k), n, start=rng.dirichlet(np.ones(k)))
    return Chain(list(rng.dirichlet(np.full(k, 0.5), (n - 1, k))), start=rng.dirichlet(np.ones(k)))


@seeds(25)
@pytest.mark.parametrize("make", [random_chain, random_tree])
def test_exact_losses_and_the_recursion_against_enumeration(make, seed):
    rng = np.random.default_rng(seed)
    model = make(rng)
    values = [rng.integers(0, 4, len(model.marginal(i))) for i in range(model.n)]
    if all(np.ptp(f) == 0 for f in values):
        values[0][0] += 1
    table = joint_of(model)
    rate = float(rng.uniform(0.05, 1.0))
    expected = true_loss(table, lambda x: sum(f[v] for f, v in zip(values, x, strict=True)), rate)
    assert exact_loss(model, Sum(values)).at(1 / rate) == pytest.approx(expected, abs=1e-11)
    as_table = exact_loss(JointTable(list(table), list(table.values())), Sum(values))
    assert as_table.at(1 / rate) == pytest.approx(expected, abs=1e-11)
    single = np.array([np.ptp(f) * rate for f in values])
    assert expected <= tuple_losses(model, single).max() + 1e-12


def test_the_recursion_bounds_histograms_too():
    losses = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        k = int(rng.integers(2, 4))
        model = Chain(rng.dirichlet(np.full(k, 0.5), k), 4, start=rng.dirichlet(np.ones(k)))
        found = calibrate(model, AnyQuery(2), 1, "markov")

        def answer(values, k=k):
            return np.bincount(values, minlength=k)

        losses.append(true_loss(joint_of(model), answer, float(found.rate)))
    assert 0.9 < max(losses) <= 1


def test_looking_only_forward_would_not_do():
    """The check can fail: without the messages from earlier tuples the last tuple loses more than the bound."""
    model = binary(0.1, 0.2, 6)
    table, single = joint_of(model), np.full(6, 0.4)
    onward = 0.4
    for _ in range(5):
        onward = 0.4 + model.kernel(0, 1).curve(onward)
    true = true_loss(table, sum, 0.4)
    assert onward < true <= tuple_losses(model, single).max() + 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_tight_for_positively_correlated_binary_chains(seed):
    rng = np.random.default_rng(seed)
    up = rng.uniform(0.01, 0.5)
    model = binary(up, rng.uniform(0.01, 1 - up), int(rng.integers(2, 40)))
    assert calibrate(model, Sum([0, 1]), 1).true_epsilon == pytest.approx(1, abs=1e-6)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.floats(0.05, 20.0))
def test_more_noise_never_loses_more(seed, scale):
    rng = np.random.default_rng(seed)
    model = random_chain(rng)
    losses = exact_loss(model, Sum(np.arange(model.n_values)))
    assert losses.at(scale * 1.1) <= losses.at(scale) + 1e-12
