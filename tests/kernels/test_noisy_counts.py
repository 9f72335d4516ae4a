"""The closed forms of a noisy count against sums over every true count, which share no code with them.

It could fail at a noisy count below 0, where both series have one ratio (the prior falls as fast as the noise), for
means far from the noise's scale, and where a slope belongs to another factor.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dphmm._kernels.noisy_counts import count_given, rates_given


def summed(value, log_mean, decay):
    """(log-likelihood, expected count) by a sum over true counts from 0 up."""
    counts = np.arange(40_000)
    mean = math.exp(log_mean)
    logs = counts * (log_mean - math.log1p(mean)) - math.log1p(mean) - np.abs(value - counts) * decay
    likelihood = np.logaddexp.reduce(logs)
    return likelihood, float((np.exp(logs - likelihood) * counts).sum())


@pytest.mark.parametrize("value", [-60.0, -1.0, 0.0, 1.0, 7.0, 300.0])
@pytest.mark.parametrize("log_mean", [-8.0, -1.0, 0.0, 3.0, 6.0])
@pytest.mark.parametrize("scale", [0.2, 1.0, 7.0, 60.0])
def test_a_count_is_a_sum_over_true_counts(value, log_mean, scale):
    np.testing.assert_allclose(count_given(value, log_mean, 1 / scale), summed(value, log_mean, 1 / scale), rtol=1e-9)


@pytest.mark.parametrize("near", [0.0, 1e-13, 1e-9, 1e-6, 1e-5])
def test_where_both_series_fall_alike(near):
    decay = 0.1
    log_mean = -math.log(math.expm1(decay)) + near
    for value in (0.0, 3.0, 50.0):
        np.testing.assert_allclose(count_given(value, log_mean, decay), summed(value, log_mean, decay), rtol=1e-9)


def test_no_argument_leaves_the_floats():
    for value in (-(2.0**53), -1.0, 0.0, 2.0**53):
        for log_mean in (-30.0, 0.0, 60.0):
            for scale in (1e-3, 1.0, 2.0**40):
                found = count_given(value, log_mean, 1 / scale)
                assert np.isfinite(found).all() and found[1] >= 0


def test_slopes_are_those_of_the_likelihood():
    random = np.random.default_rng(0)
    rows, columns = np.repeat(np.arange(3), 3), np.tile(np.arange(3), 3)
    values, base = random.integers(-20, 60, 9).astype(float), random.normal(size=9)
    factors, chances = random.normal(size=7), np.log([0.2, 0.5, 0.3])
    multiples = np.array([-3.0, 0.0, 2.0])

    def likelihood(factors):
        slopes, rates = np.zeros(7), np.empty(9)
        of_cells = values, base, rows, columns, factors[0], factors[1:4], factors[4:], 0.1
        return rates_given(*of_cells, multiples, chances, slopes, rates), slopes, rates

    total, slopes, rates = likelihood(factors)
    by_cell = 0.0
    for c in range(9):
        log_mean = base[c] + factors[0] + factors[1 + rows[c]] + factors[4 + columns[c]]
        logliks, counts = np.transpose([summed(values[c], log_mean + multiple, 0.1) for multiple in multiples])
        loglik = np.logaddexp.reduce(logliks + chances)
        by_cell += loglik
        # Exponential with mean mu, then a Poisson count: a gamma law; of several means by how likely each is.
        each = (counts + 1) / (1 + np.exp(-log_mean - multiples))
        assert rates[c] == pytest.approx(np.exp(logliks + chances - loglik) @ each, rel=1e-9)
    assert total == pytest.approx(by_cell, rel=1e-10)
    for place in range(7):
        step = np.zeros(7)
        step[place] = 1e-5
        slope = (likelihood(factors + step)[0] - likelihood(factors - step)[0]) / 2e-5
        assert slopes[place] == pytest.approx(slope, rel=1e-5, abs=1e-6)
