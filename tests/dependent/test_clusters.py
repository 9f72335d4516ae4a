"""clusters.md: the bound of two values against a linear program over mixing laws, and three values that pass it.

A mixing law is a measure on a grid of chances p. For a mean and a variance of p the largest ratio of two linear
functions is found by bisection over linear programs. It would fail for a bound that is too small by one part in 10^6,
for a cluster of one member less, and for a correlation of another kind.
"""

from __future__ import annotations

from itertools import product
from math import comb, exp, expm1, log

import numpy as np
import pytest
from scipy.optimize import linprog

import dphmm
from dphmm.dependent import cluster_loss, cluster_rate
from dphmm.errors import InvalidInput

GRID = np.concatenate([[0.0], np.geomspace(1e-4, 0.05, 40), np.linspace(0.055, 1, 140)])


def worst_ratio(a, n, icc, pi):
    """The largest E[p h]/pi over E[(1 - p) h]/(1 - pi) of laws on the grid with this mean and at most this variance."""
    h = (1 + expm1(a) * GRID) ** (n - 1)
    upper, lower = GRID * h / pi, (1 - GRID) * h / (1 - pi)
    # A linear-fractional program: weights are scaled so that the denominator is 1, and ``t`` is that scale.
    equal = np.array([[*lower, 0], [*np.ones_like(GRID), -1], [*GRID, -pi]])
    spread = np.array([[*(GRID - pi) ** 2, -icc * pi * (1 - pi)]])
    found = linprog(-np.append(upper, 0), spread, [0], equal, [1, 0, 0])
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize("a", [0.02, 0.16, 0.5])
@pytest.mark.parametrize(("n", "icc"), [(2, 0.3), (5, 0.06), (20, 0.06), (20, 0.5), (30, 0.01)])
def test_no_mixing_law_loses_more_and_one_nearly_as_much(a, n, icc):
    """Of eight means; laws on a grid are laws, so that none may pass it. The smallest mean comes near it."""
    bound = exp(cluster_loss(str(a), n, icc) - a)
    found = [worst_ratio(a, n, icc, pi) for pi in (0.002, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99)]
    assert max(found) <= bound * (1 + 1e-6)
    assert log(max(found)) >= 0.93 * log(bound)


def test_a_correlation_that_is_stated_too_small_is_caught():
    assert worst_ratio(0.16, 20, 0.07, 0.002) > exp(cluster_loss("0.16", 20, 0.06) - 0.16)
    assert worst_ratio(0.16, 21, 0.06, 0.002) > exp(cluster_loss("0.16", 20, 0.06) - 0.16)


def lipschitz(n, a):
    """Functions of n records of two values that one record changes by e^a at most: all whose logs are 0 or a apart."""
    records = list(product((0, 1), repeat=n))
    for steps in product((-1, 1), repeat=n):
        yield {one: exp(a * sum(step * value for step, value in zip(steps, one, strict=True))) for one in records}
    for turn in range(1, n):
        yield {one: exp(a * abs(sum(one) - turn)) for one in records}
        yield {one: exp(-a * abs(sum(one) - turn)) for one in records}


@pytest.mark.parametrize("n", [2, 3, 4])
def test_joint_laws_of_small_clusters_lose_at_most_the_bound(n):
    """200 random laws of two or three hidden kinds, record by record; no formula of the page is used."""
    random = np.random.default_rng(n)
    nearest = 0.0
    for _ in range(200):
        kinds = int(random.integers(2, 4))
        weights, chances = random.dirichlet(np.full(kinds, 0.5)), random.beta(0.4, 0.8, kinds)
        pi = float(weights @ chances)
        icc = float(weights @ (chances - pi) ** 2 / (pi * (1 - pi)))
        a = float(random.choice([0.1, 0.7, 2.0]))
        joint = {
            one: float(weights @ np.prod([chances if value else 1 - chances for value in one], axis=0))
            for one in product((0, 1), repeat=n)
        }
        for answer in lipschitz(n, a):
            given = [
                sum(p * answer[one] for one, p in joint.items() if one[0] == value) / (pi if value else 1 - pi)
                for value in (0, 1)
            ]
            loss = abs(log(given[1] / given[0]))
            bound = cluster_loss(str(a), n, min(1.0, icc + 1e-12))
            assert loss <= bound + 1e-9
            nearest = max(nearest, loss / bound)
    assert nearest > 0.9


def binomial_mean(g, p, m):
    return sum(comb(m, k) * p**k * (1 - p) ** (m - k) * g[k] for k in range(m + 1))


def test_among_all_functions_of_the_others_the_steepest_loses_most():
    """All functions of k ones of five others whose logs are a apart or equal, under random laws."""
    random, a, m = np.random.default_rng(3), 0.6, 5
    for _ in range(20):
        weights, chances = random.dirichlet([1, 1, 1]), random.random(3)
        pi = float(weights @ chances)

        def ratio(g, weights=weights, chances=chances, pi=pi):
            means = np.array([binomial_mean(g, p, m) for p in chances])
            return float(weights @ (chances * means) / pi / (weights @ ((1 - chances) * means) / (1 - pi)))

        steepest = ratio(np.exp(a * np.arange(m + 1)))
        others = (np.exp(a * np.cumsum([0, *steps])) for steps in product((-1, 0, 1), repeat=m))
        assert max(map(ratio, others)) <= steepest * (1 + 1e-12)


def test_three_values_of_that_correlation_lose_nearly_all_of_the_group():
    """Each value has a correlation of at most .06 against the rest; the law is that of clusters.md, written out."""
    n, icc, a, pi, rare = 20, 0.06, 0.16, 0.9, 1e-7
    q = pi * (1 - icc)
    all_first = pi * icc / (1 - q)
    kinds = np.array([[q, 0, 1 - q], [1, 0, 0], [0, 0.99 * icc, 1 - 0.99 * icc]])
    weights = np.array([(1 - all_first) * (1 - rare), all_first * (1 - rare), rare])
    means = weights @ kinds
    correlations = weights @ (kinds - means) ** 2 / (means * (1 - means))
    assert correlations.max() <= icc + 1e-6
    others = (1 + expm1(a) * kinds[:, 0]) ** (n - 1)
    ratio = (weights @ (kinds[:, 0] * others) / means[0]) / (weights @ (kinds[:, 1] * others) / means[1])
    assert ratio == pytest.approx(16.4, abs=0.05)
    assert exp(cluster_loss(str(a), n, icc) - a) == pytest.approx(2.19, abs=0.01)
    assert exp((n - 1) * a) == pytest.approx(20.9, abs=0.01)


def test_the_rate_is_the_largest_that_keeps_epsilon():
    for epsilon, n, icc in ((1, 20, 0.06), (2, 5, 0.3), ("0.5", 100, 0.001), (1, 1, 0.5), (3, 8, 0)):
        rate = cluster_rate(epsilon, n, icc)
        assert cluster_loss(rate, n, icc) <= float(epsilon) + 1e-12
        assert cluster_loss(rate * (1 + 10**-4), n, icc) > float(epsilon)
    assert cluster_rate(1, 20, 1) * 20 <= 1 and abs(float(cluster_rate(1, 20, 1)) * 20 - 1) < 1e-6
    for wrong in ({"most": 0}, {"icc": -0.1}, {"icc": 1.1}, {"icc": float("nan")}):
        with pytest.raises(InvalidInput, match=next(iter(wrong))):
            dphmm.dependent.cluster_rate(**{"epsilon": 1, "most": 5, "icc": 0.1, **wrong})
