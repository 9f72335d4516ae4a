"""Confidence bounds on epsilon, and the events that they are about.

Claims: Clopper-Pearson bounds cover at their level, checked exactly by summing binomial laws; the number of draws that
is needed gives the power; an event is learned before it is judged. It would fail for a bound that spends alpha twice.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from dphmm.audit import events
from dphmm.audit.events import epsilon_below, fewest_that_could_convict, highest, last_bit, lowest, samples_needed


@pytest.mark.parametrize("n", [1, 2, 5, 20, 60])
@pytest.mark.parametrize("alpha", [0.4, 0.05, 1e-3])
def test_clopper_pearson_covers(n, alpha):
    """For every p the chance that the bound passes it is at most alpha: summed exactly over all counts."""
    counts = np.arange(n + 1)
    low, high = lowest(counts, n, alpha), highest(counts, n, alpha)
    for p in np.linspace(0, 1, 201):
        law = binom.pmf(counts, n, p)
        assert law[low > p].sum() <= alpha * (1 + 1e-9)
        assert law[high < p].sum() <= alpha * (1 + 1e-9)
    assert (low <= counts / n).all() and (counts / n <= high).all()
    # Not idle: between its steps a bound is passed with nearly that chance.
    assert max(binom.sf(k - 1, n, low[k]) for k in counts[1:]) > 0.99 * alpha


def test_two_bounds_share_alpha():
    n, alpha = 30, 0.3
    for p in np.linspace(0.05, 1, 20):
        q = p / math.e
        wrong = 0.0
        for k1, k0 in itertools.product(range(n + 1), repeat=2):
            if float(epsilon_below(k1, n, k0, n, alpha)) > 1:
                wrong += binom.pmf(k1, n, p) * binom.pmf(k0, n, q)
        assert wrong <= alpha


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("alpha", [0.1, 1e-6])
def test_the_fewest_draws_that_could_convict(epsilon, alpha):
    n = fewest_that_could_convict(epsilon, alpha)
    assert float(epsilon_below(n + 1, n + 1, 0, n + 1, alpha)) > epsilon
    assert n == 1 or float(epsilon_below(n - 1, n - 1, 0, n - 1, alpha)) <= epsilon


def test_the_draws_that_are_needed_give_the_power():
    n = samples_needed(1, 2, 0.1, 1e-4)
    rng = np.random.default_rng(3)
    k1, k0 = rng.binomial(n, 0.1, 4000), rng.binomial(n, 0.1 * math.exp(-2), 4000)
    assert (epsilon_below(k1, n, k0, n, 1e-4) > 1).mean() > 0.985
    m = n // 2
    k1, k0 = rng.binomial(m, 0.1, 4000), rng.binomial(m, 0.1 * math.exp(-2), 4000)
    assert (epsilon_below(k1, m, k0, m, 1e-4) > 1).mean() < 0.9


def test_the_last_bit_of_a_float():
    values = np.array([0.0, 1.0, 1.5, -0.25, 3.0, 2.0**60, 0.1, 1 + 2.0**-52])
    assert last_bit(values).tolist() == [64, 0, -1, -2, 0, 60, -55, -52]


def test_an_event_is_fixed_before_it_is_judged():
    rng = np.random.default_rng(0)
    one, other = rng.normal(0, 1, (3000, 2)), rng.normal(1, 1, (3000, 2))
    ahead, back = events.learn(one, other, 1e-3)
    fresh = rng.normal(0, 1, (1000, 2)), rng.normal(1, 1, (1000, 2))
    assert ahead.contains(fresh[0]).mean() > 2 * ahead.contains(fresh[1]).mean()
    assert back.contains(fresh[1]).mean() > 2 * back.contains(fresh[0]).mean()
    assert ahead.contains(fresh[0][:7]).tolist() == ahead.contains(fresh[0])[:7].tolist()
