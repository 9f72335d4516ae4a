"""Errata of the dependent differential privacy paper (Liu, Chakraborty and Mittal, NDSS 2016), D1 to D9, exactly.

Bits with a known joint law, the query is their sum, the noise Laplace of scale σ. The dependence coefficient is read
as the pair's own loss over σ's, ρ_ij = σ·sup |ln Pr(s | X_i = 1) / Pr(s | X_i = 0)| for the query X_j alone, and σ is
the fixed point of max_i Σ_j ρ_ij(σ) = σ·ε. Between two integers the ratio of the two densities of s is monotone, so the
worst s is an integer. Nothing here is part of the package.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest


def worst(law, other, scale):
    """sup over s of |ln E e^{-|S-s|/σ} / E' e^{-|S-s|/σ}| for two laws of an integer S."""
    s = np.arange(len(law))
    kernel = np.exp(-np.abs(s[:, None] - s) / scale)
    return float(np.abs(np.log((kernel @ law) / (kernel @ other))).max())


def given(joint, i, x, seen):
    """The law of ``seen`` of the tuples, given X_i = x."""
    n = len(next(iter(joint)))
    law = np.zeros(n + 1)
    for bits, p in joint.items():
        if bits[i] == x:
            law[seen(bits)] += p
    return law / law.sum()


def true_loss(joint, scale):
    n = len(next(iter(joint)))
    return max(worst(given(joint, i, 0, sum), given(joint, i, 1, sum), scale) for i in range(n))


def dependent_sensitivity(joint, scale):
    n = len(next(iter(joint)))

    def coefficient(i, j):
        laws = [given(joint, i, x, lambda bits: bits[j]) for x in (0, 1)]
        return 1.0 if i == j else scale * worst(*laws, scale)

    return max(sum(coefficient(i, j) for j in range(n)) for i in range(n))


def fixed_point(sensitivity, epsilon):
    low, high = 1e-3, 1e4
    for _ in range(100):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if sensitivity(middle) / middle > epsilon else (low, middle)
    return high


def conditional(p, q):
    return q if p else 1 - q


@pytest.mark.parametrize("epsilon", [1, 5])
def test_erratum_D1_coefficients_of_pairs_miss_joint_dependence(epsilon):
    xor = {(a ^ b, a, b): 0.25 for a in (0, 1) for b in (0, 1)}
    scale = fixed_point(lambda s: dependent_sensitivity(xor, s), epsilon)
    assert scale == pytest.approx(1 / epsilon)  # every coefficient is 0
    assert true_loss(xor, scale) == pytest.approx(epsilon + math.log(math.cosh(epsilon)))
    # What is not wrong: independent bits keep ε at the same scale.
    independent = dict.fromkeys(itertools.product((0, 1), repeat=3), 0.125)
    assert true_loss(independent, scale) == pytest.approx(epsilon)


def test_erratum_D1_pairwise_independent_bits_lose_by_the_dozen():
    # Code words of the simplex code, all equally likely: given one bit, half of the other words, all with 64 ones.
    k, epsilon = 7, 1.0
    words = {tuple(bin(w & c).count("1") % 2 for c in range(1, 2**k)): 2.0**-k for w in range(2**k)}
    pairs = {(a[i], a[j]) for a in words for i, j in ((0, 1), (3, 77), (5, 126))}
    assert len(pairs) == 4
    for i, j in ((0, 1), (3, 77), (5, 126)):
        assert given(words, i, 0, lambda bits, j=j: bits[j]) == pytest.approx(
            given(words, i, 1, lambda bits, j=j: bits[j])
        )
    loss = worst(given(words, 0, 0, sum), given(words, 0, 1, sum), 1 / epsilon)
    assert loss == pytest.approx(59.8, abs=0.05)


def test_erratum_D2_the_coefficient_depends_on_the_noise_it_sets():
    pair = {(x, y): 0.5 * conditional(y, 0.95 if x else 0.05) for x in (0, 1) for y in (0, 1)}
    once = dependent_sensitivity(pair, 1 / 5) / 5
    assert true_loss(pair, once) == pytest.approx(5.566, abs=1e-3)
    assert true_loss(pair, fixed_point(lambda s: dependent_sensitivity(pair, s), 5)) == pytest.approx(5)


@pytest.mark.parametrize(("leaves", "loss"), [(2, 5.280), (3, 5.511), (5, 5.873)])
def test_erratum_D3_the_leaves_of_a_star_are_not_covered(leaves, loss):
    star = {}
    for bits in itertools.product((0, 1), repeat=leaves + 1):
        leaf = 0.1 if bits[0] else 1e-7
        star[bits] = conditional(bits[0], 1e-6) * math.prod(conditional(x, leaf) for x in bits[1:])
    scale = fixed_point(lambda s: dependent_sensitivity(star, s), 5)
    assert true_loss(star, scale) == pytest.approx(loss, abs=1e-3)


def chain_losses(up, down, length, epsilon, factor=1.0):
    """The mechanism's scale on a stationary binary chain, and what its first and middle tuple lose by it.

    ``factor``: by how much the coefficients of different tuples are over-estimated.
    """
    move = np.array([[1 - up, up], [down, 1 - down]])
    powers = [np.linalg.matrix_power(move, k) for k in range(length)]

    def sensitivity(scale):
        # A stationary binary chain is reversible: one coefficient for each distance.
        rho = [1.0] + [factor * scale * worst(*powers[k], scale) for k in range(1, length)]
        sums = np.cumsum(rho)
        return float((sums + sums[::-1] - 1.0).max())

    scale = fixed_point(sensitivity, epsilon)
    laws = chain_laws(move, length)
    return scale, max(worst(*law, scale) for law in laws)


def chain_laws(move, length):
    """The laws of the sum given the first and the middle tuple's value."""
    onward = [[np.ones(1), np.ones(1)]]
    for _ in range(1, length):
        onward.append([_next_law(move[x], onward[-1]) for x in (0, 1)])

    def law(i, x):
        rest = np.convolve(onward[i][x], onward[length - 1 - i][x])
        return np.r_[np.zeros(x), rest, np.zeros(1 - x)]

    return [(law(i, 0), law(i, 1)) for i in (0, length // 2)]


def _next_law(row, following):
    law = np.zeros(len(following[0]) + 1)
    for y in (0, 1):
        law[y : y + len(following[y])] += row[y] * following[y]
    return law


@pytest.mark.parametrize(("up", "down", "loss"), [(0.01, 0.1, 1.209), (0.05, 0.5, 1.125)])
def test_erratum_D4_chains_that_are_not_symmetric_are_not_covered(up, down, loss):
    assert chain_losses(up, down, 100, 1)[1] == pytest.approx(loss, abs=1e-3)


@pytest.mark.parametrize(("length", "loss"), [(100, 6.95), (200, 11.67)])
def test_erratum_D4_longer_chains_lose_ever_more(length, loss):
    assert chain_losses(1e-6, 0.1, length, 3)[1] == pytest.approx(loss, abs=5e-3)


def test_erratum_D4_symmetric_chains_keep_the_promise():
    for change in (0.3, 0.1):
        assert 0.9 < chain_losses(change, change, 60, 1)[1] <= 1


def test_erratum_D5_signs_are_ignored():
    scale, loss = chain_losses(0.9, 0.9, 100, 1)
    assert scale == pytest.approx(8.994, abs=1e-3) and loss < 0.07


def test_erratum_D6_leaked_information_is_not_what_a_mechanism_decides():
    # Two equal fair bits. An adversary who holds the other one knows this one before anything is released:
    # H(D_i) - H(D_i | output, D_-i) is a whole bit for an output that is constant.
    prior = {(0, 0): 0.5, (1, 1): 0.5}
    entropy = -sum(p * math.log2(p) for p in prior.values())
    remaining = -sum(p * math.log2(p / 0.5) for p in prior.values())
    assert (entropy, remaining) == (1.0, 0.0)


def test_erratum_D7_noise_on_finished_centroids_is_not_private():
    def centroids(points, start):
        """Lloyd's algorithm in one dimension, to its end."""
        centres = np.array(start, dtype=float)
        for _ in range(100):
            nearest = np.abs(points[:, None] - centres).argmin(axis=1)
            moved = np.array([points[nearest == k].mean() if (nearest == k).any() else centres[k] for k in (0, 1)])
            if np.array_equal(moved, centres):
                return centres
            centres = moved
        raise AssertionError("Lloyd's algorithm did not settle")

    crowd = np.array([0.0] * 50)
    far, near = centroids(np.r_[crowd, 1.0], [0.2, 0.8]), centroids(np.r_[crowd, 0.0], [0.2, 0.8])
    # One record of 51 moves a centroid by a fifth of the domain, ten times the 1/n of a mean over all.
    assert np.abs(far - near).max() > 10 / 51


@pytest.mark.parametrize(("factor", "loss"), [(0.8, 1.55), (0.9, 1.36), (1.1, 1.09)])
def test_erratum_D8_over_estimated_coefficients_are_not_always_enough(factor, loss):
    assert chain_losses(0.01, 0.1, 100, 1, factor)[1] == pytest.approx(loss, abs=5e-3)


def test_erratum_D9_two_queries_lose_more_than_the_sum():
    # Two answers s, t of the same sum: the densities multiply, and the worst pair of answers is s = t.
    laws = chain_laws(np.array([[0.99, 0.01], [0.1, 0.9]]), 100)
    scale = fixed_point(lambda s: max(worst(*law, s) for law in laws) * s, 1)
    assert max(worst(*law, scale) for law in laws) == pytest.approx(1)
    assert max(worst(*law, scale / 2) for law in laws) == pytest.approx(2.31, abs=5e-3)
