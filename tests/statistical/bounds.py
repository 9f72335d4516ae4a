"""P-values that are theorems: bounds that hold at every n and every level, with no normal approximation in the tail.

A check at α = 10⁻⁹ is worth what its tail is known to be. Each function returns a number that the stated law exceeds in
rareness: Pr(bound <= α) <= α for every α and n.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp
from scipy.stats import binom, gamma

#: The level of every assertion of this folder.
ALPHA = 1e-9


def mean_bound(values, masses, mean, n):
    """Of the mean of n draws of ``values`` (ascending) with probabilities ``masses``: Chernoff, both sides.

    Any tilt gives a valid bound, so how well the best one is found decides power only.
    """
    if not values[0] < mean < values[-1]:
        end = masses[0] if mean == values[0] else masses[-1] if mean == values[-1] else 0.0
        return min(1.0, 2.0 * float(end) ** n)
    logs = np.log(masses)

    def slope(tilt):
        weights = np.exp(logs + tilt * values - logsumexp(logs + tilt * values))
        return float(weights @ values) - mean

    gap = -slope(0.0)
    if gap == 0.0:
        return 1.0
    reach = gap / float(masses @ (values - values @ masses) ** 2)
    while np.sign(slope(reach)) == -np.sign(gap):
        reach *= 2
    tilt = brentq(slope, *sorted((0.0, reach)), xtol=1e-6 * abs(reach))
    rate = tilt * mean - float(logsumexp(logs + tilt * values))
    return min(1.0, 2.0 * math.exp(-n * max(0.0, rate)))


def gathered(values, masses):
    """A law on distinct values, without those that have no probability (or less than floats can hold)."""
    distinct, same = np.unique(values, return_inverse=True)
    gathered_masses = np.bincount(same, masses)
    possible = gathered_masses > 0
    return distinct[possible].astype(np.float64), gathered_masses[possible]


def cells_bound(counts, masses):
    """Of a multinomial with k cells: e^{-t} (et/(k-1))^{k-1} at t = n·KL(found ‖ law) >= k - 1.

    Agrawal 2020, Finite-sample concentration of the multinomial in relative entropy, Theorem 1.2.
    """
    n, free = counts.sum(), len(counts) - 1
    some = counts > 0
    if (masses[some] <= 0).any():
        return 0.0
    t = float((counts[some] * np.log(counts[some] / (n * masses[some]))).sum())
    return 1.0 if free == 0 or t <= free else min(1.0, math.exp(free * (1 + math.log(t / free)) - t))


def ks_bound(distance, n):
    """Of the Kolmogorov-Smirnov distance, for any law with atoms or without: 2 exp(-2n·distance²) (Massart 1990)."""
    return min(1.0, 2.0 * math.exp(-2.0 * n * max(0.0, distance) ** 2))


def share_bound(successes, n, p=0.5):
    """Of the number of successes in n trials of probability p, exactly."""
    if n == 0:
        return 1.0
    return float(min(1.0, 2.0 * min(binom.cdf(successes, n, p), binom.sf(successes - 1, n, p))))


def gamma_sum_bound(total, shape):
    """Of a sum that is Gamma(shape, 1), exactly."""
    return float(min(1.0, 2.0 * min(gamma.cdf(total, shape), gamma.sf(total, shape))))


def uniform_distance(u):
    """The Kolmogorov-Smirnov distance of numbers in [0, 1] from the uniform law."""
    ordered, n = np.sort(u), len(u)
    return float(max((np.arange(1, n + 1) / n - ordered).max(), (ordered - np.arange(n) / n).max()))


class Family:
    """The laws p_s(cell) ∝ count·exp(-s·exponent): s = 1 is the law of a mechanism, s = 1.05 that of 5 % more ε."""

    def __init__(self, exponents, log_counts):
        self.exponents, self.log_counts = exponents, log_counts

    def log_sum(self, s):
        return float(logsumexp(self.log_counts - s * self.exponents))

    def mean(self, s):
        return float(np.exp(self.log_counts - s * self.exponents - self.log_sum(s)) @ self.exponents)

    def divergence(self, a, b):
        """KL(p_a ‖ p_b)."""
        return max((b - a) * self.mean(a) + self.log_sum(b) - self.log_sum(a), 1e-300)

    def draws_needed(self, s, alpha=ALPHA, beta=0.01):
        """The n at which `mean_bound` of the exponent rejects p_s at level alpha with power 1 - beta, both by theorem.

        The critical mean is that of some p_c between: n·KL(p_c ‖ p_1) >= ln(2/alpha) makes the level, and
        n·KL(p_c ‖ p_s) >= ln(1/beta) the power.
        """
        level, miss = math.log(2 / alpha), math.log(1 / beta)
        low, high = sorted((1 + 1e-6 * (s - 1), s - 1e-6 * (s - 1)))
        c = brentq(lambda c: self.divergence(c, 1.0) * miss - self.divergence(c, s) * level, low, high)
        return math.ceil(level / self.divergence(c, 1.0))
