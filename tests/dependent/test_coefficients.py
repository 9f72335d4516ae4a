"""Coefficients of pairs: closed forms for two states, and the supremum over all answers by enumeration."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from dependent_models import binary
from dphmm.accounting.leakage_step import LeakageCurve
from dphmm.dependent import (
    Sum,
    coefficient,
    coefficients,
    sensitivity,
)


@pytest.mark.parametrize("seed", range(20))
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
