"""The dependence paper: Definition 6, and the sensitivities of Section IX.

Definition 6 adds δ to dependent differential privacy. What is computed is named: "exact" is the law of a noisy sum over
a chain, by recursion over the chain and integration over answers; "by the recursion" is a bound for every mechanism.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dphmm.dependent import Chain, Sum, calibrate
from experiments.dependence.mechanisms import chain_of, mistaken_rate

LENGTH, DELTA = 100, 1e-6


def test_definition_6_output_by_output_promises_nothing():
    """ "P(A(D) = S) ≤ e^ε P(A(D') = S) + δ for any output S": a record beside a random tag keeps it at ε = 0."""
    delta = Fraction(1, 10**6)
    tags = 10**6
    # The record r is published with one of so many equally likely tags: every single output has chance 1/tags.
    assert all(Fraction(published == record, tags) <= delta for published in (0, 1) for record in (0, 1))
    # As sets: all outputs that show record 0 have probability 1 under it and 0 under the other.
    assert tags * Fraction(1, tags) == 1 > 0 + delta


def transitions(up, down):
    return np.array([[1 - up, up], [down, 1 - down]])


def sum_laws(up, down, length, i):
    """The law (2, length + 1) of the number of ones in a stationary chain, given tuple i."""
    moves = transitions(up, down)  # a stationary chain of two states is its own reversal

    def beside(steps):
        found = np.ones((2, 1))
        for _ in range(steps):
            longer = np.zeros((2, found.shape[1] + 1))
            for a, b in itertools.product((0, 1), repeat=2):
                longer[a, b : b + found.shape[1]] += moves[a, b] * found[b]
            found = longer
        return found

    left, right = beside(i), beside(length - 1 - i)
    rows = [np.convolve(left[s], right[s]) for s in (0, 1)]
    return np.array([np.pad(row, (s, 1 - s)) for s, row in enumerate(rows)])


def excess(laws, density, epsilon, width, step):
    """The least δ at ε of a sum with noise of this density, by integration over answers."""
    z = np.arange(-width, laws.shape[1] + width, step)
    p, q = laws @ density(z[:, None] - np.arange(laws.shape[1])).T
    return step * max(np.maximum(a - math.exp(epsilon) * b, 0).sum() for a, b in ((p, q), (q, p)))


def gaussian(sigma):
    return lambda x: norm.pdf(x / sigma) / sigma


def exact_gaussian(up, down):
    """The σ at which the noisy sum is (1, 1e-6)-dependent differentially private for the tuple in the middle."""
    laws = sum_laws(up, down, LENGTH, LENGTH // 2)
    return brentq(
        lambda s: math.log(max(excess(laws, gaussian(s), 1, 12 * s, s / 40), 1e-300) / DELTA), 10, 200, xtol=1e-3
    )


def gaussian_alone(epsilon, delta):
    """The σ at which one number with Gaussian noise is (ε, δ)-private for a change of 1 (Balle and Wang, 2018)."""

    def least(s):
        return norm.cdf(0.5 / s - epsilon * s) - math.exp(epsilon) * norm.cdf(-0.5 / s - epsilon * s)

    return brentq(lambda s: math.log(max(least(s), 1e-300) / delta), 1, 1000)


@pytest.mark.parametrize(
    ("up", "down", "laplace", "needed", "by_recursion", "from_answers"),
    [(0.1, 0.1, 12.2, 34.2, 41.6, 12), (0.01, 0.1, 28.8, 84.6, 94.5, 11)],
)
def test_what_definition_6_pays(up, down, laplace, needed, by_recursion, from_answers):
    """ε = 1, δ = 1e-6, 100 tuples, deviation of the noise of each of k sums: k·laplace, √k·by_recursion."""
    rate = float(calibrate(chain_of(up, down, LENGTH), Sum([0, 1]), 1, "markov").rate)
    assert math.sqrt(2) / rate == pytest.approx(laplace, abs=0.05)
    # k equal questions are one, with noise of σ/√k: the mean of their answers says all that they say.
    assert exact_gaussian(up, down) == pytest.approx(needed, abs=0.05)
    # The recursion with δ: a = ε₀ for all queries together, and δ₀ at most δ/(n·e^ε).
    sigma = gaussian_alone(rate, DELTA / (LENGTH * math.e))
    assert sigma == pytest.approx(by_recursion, abs=0.05)
    assert math.ceil((sigma / (math.sqrt(2) / rate)) ** 2) == from_answers


@pytest.mark.parametrize(
    ("up", "down", "factor", "least"),
    [(0.1, 0.1, 0.8, 0.0037), (0.1, 0.1, 0.9, 0.00097), (0.01, 0.1, 0.8, 0.0517), (0.01, 0.1, 0.9, 0.0331)],
)
def test_definition_6_does_not_excuse_under_estimated_coefficients(up, down, factor, least):
    """The δ that "dpm" with smaller coefficients needs at ε = 1 is nothing that anybody would grant."""
    rate = float(mistaken_rate(chain_of(up, down, LENGTH), Sum([0, 1]), Fraction(1), factor))
    laws = sum_laws(up, down, LENGTH, LENGTH // 2)
    found = excess(laws, lambda x: rate / 2 * np.exp(-rate * np.abs(x)), 1, 40 / rate, 0.005 / rate)
    assert found == pytest.approx(least, rel=0.02)


def largest(rows, alpha):
    """L(α) of a kernel: the largest log quotient of means of numbers that differ by a factor of e^α, over subsets."""
    grow, found = math.exp(alpha) - 1, 0.0
    for q, d in itertools.permutations(rows, 2):
        for chosen in itertools.product((False, True), repeat=len(q)):
            up, down = q[list(chosen)].sum(), d[list(chosen)].sum()
            found = max(found, math.log((1 + up * grow) / (1 + down * grow)))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_recursion_carries_a_delta(seed):
    """Any mechanism that is (ε₀, δ₀)-private for one tuple: events of three tuples in a chain, all mechanisms' sets.

    A bound φ(v) ≤ e^m φ(v') + δ on the means over a branch goes through a kernel as e^{L(m)} and the same δ (cut the
    numbers at e^m times their least: at most δ is lost); replacing the tuple itself adds e^{L(m)} δ₀.
    """
    random = np.random.default_rng(seed)
    moves = random.dirichlet((1, 1), size=2)
    start = np.linalg.matrix_power(moves, 200)[0]
    data = list(itertools.product((0, 1), repeat=3))
    weight = {d: start[d[0]] * moves[d[0], d[1]] * moves[d[1], d[2]] for d in data}
    law = {d: random.dirichlet(np.full(5, 0.7)) for d in data}
    epsilon0 = 0.5
    neighbours = [(d, e) for d in data for e in data if sum(a != b for a, b in zip(d, e, strict=True)) == 1]
    delta0 = max(np.maximum(law[d] - math.exp(epsilon0) * law[e], 0).sum() for d, e in neighbours)
    forward, back = moves, (start[:, None] * moves).T / start[:, None]

    def branch(kernels):
        """(m, δ) of the tuple next to tuple i, from the far end inwards."""
        m, delta = epsilon0, delta0
        for kernel in kernels:
            m, delta = epsilon0 + largest(kernel, m), delta + math.exp(largest(kernel, m)) * delta0
        return m, delta

    for i in range(3):
        total, added, factor = epsilon0, 0.0, 1.0
        for kernel, steps in ((forward, 2 - i), (back, i)):
            if steps:
                m, delta = branch([kernel] * (steps - 1))
                added += factor * delta
                total, factor = total + largest(kernel, m), factor * math.exp(largest(kernel, m))
        added += factor * delta0
        given = [
            sum(weight[d] * law[d] for d in data if d[i] == v) / sum(weight[d] for d in data if d[i] == v)
            for v in (0, 1)
        ]
        for p, q in (given, given[::-1]):
            assert np.maximum(p - math.exp(total) * q, 0).sum() <= added + 1e-12
        assert added <= 3 * math.exp(total) * delta0 + 1e-12


def majority(data):
    return int(sum(data) >= 2)


def local_sensitivity(data):
    around = [(*data[:j], 1 - data[j], *data[j + 1 :]) for j in range(len(data))]
    return max(abs(majority(data) - majority(other)) for other in around)


def test_noise_for_the_local_sensitivity_is_not_private():
    """000 is answered exactly, its neighbour 100 with noise: any answer but 0 names the second, without a bound."""
    assert local_sensitivity((0, 0, 0)) == 0 and local_sensitivity((1, 0, 0)) == 1
    assert majority((0, 0, 0)) == majority((1, 0, 0)) == 0


def test_smooth_sensitivity_goes_through_the_recursion():
    """Section IX announces it. Noise 6·S/ε₀ of density ∝ 1/(1 + x²) (Nissim et al., 2007) is ε₀-private, not additive.

    On 4,001 answers, a chain of three (.1, .1): one tuple alone loses at most ε₀, under dependence at most the ε that
    the recursion makes of ε₀.
    """
    epsilon, chain = 1, Chain(transitions(0.1, 0.1), 3)
    epsilon0 = float(calibrate(chain, Sum([0, 1]), epsilon, "markov").rate)
    data = list(itertools.product((0, 1), repeat=3))

    def smooth(d):
        apart = {e: sum(a != b for a, b in zip(d, e, strict=True)) for e in data}
        return max(math.exp(-epsilon0 / 6 * apart[e]) * local_sensitivity(e) for e in data)

    z = np.linspace(-200, 200, 4001)
    scale = {d: 6 * smooth(d) / epsilon0 for d in data}
    law = {d: 1 / (np.pi * scale[d] * (1 + ((z - majority(d)) / scale[d]) ** 2)) for d in data}
    alone = [np.log(law[d] / law[e]).max() for d in data for e in data if sum(map(int.__ne__, d, e)) == 1]
    assert 0 < max(alone) <= epsilon0
    moves = transitions(0.1, 0.1)
    weight = {d: 0.5 * moves[d[0], d[1]] * moves[d[1], d[2]] for d in data}
    for i in range(3):
        given = [sum(2 * weight[d] * law[d] for d in data if d[i] == v) for v in (0, 1)]
        assert 0 < np.abs(np.log(given[0] / given[1])).max() <= epsilon
