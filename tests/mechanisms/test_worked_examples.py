"""Every figure of the worked examples that concerns mechanisms (docs/theory.md 10), and a measured table."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphmm.mechanisms import DiscreteKNorm, KNorm, Laplace, PlanarIsotropic, Staircase, choose
from naive_mechanisms import hull_of_points
from running_example import ANSWERS, EDGES_3B


def hull(*edges, answers=ANSWERS):
    return hull_of_points([answers[b] - answers[a] for a, b in edges])


def test_example_5_1():
    body = hull(*EDGES_3B)
    assert KNorm(body, 1).expected_error == pytest.approx(472 / 11, rel=1e-15)
    assert PlanarIsotropic(body, 2).expected_error == pytest.approx(472 / 44, rel=1e-15)
    laplace = Laplace(body, 1)
    assert laplace.sensitivity == 5.0 and laplace.expected_error == 100.0
    pairs = [ANSWERS[j] - ANSWERS[i] for i in range(6) for j in range(i)]
    assert max(DiscreteKNorm(body, 1).loss_lattice(v) for v in pairs) == 2  # the factor of Theorem 6.3


def test_example_5_2():
    segment = hull((1, 2))
    laplace = Laplace(segment, 1)
    assert laplace.sensitivity == 2.0
    assert [laplace.loss(ANSWERS[4] - ANSWERS[s]) for s in (1, 2)] == [1.5, 1.5]
    assert KNorm(hull((1, 2), (1, 4)), 1).expected_error == pytest.approx(14)


def test_figure_9a():
    body = hull((3, 4), (3, 5), (4, 5))
    assert KNorm(body, 1).expected_error == pytest.approx(140 / 3)
    losses = [DiscreteKNorm(body, 3).loss_lattice(ANSWERS[1] - ANSWERS[s]) for s in (3, 4, 5)]
    assert losses == [2, 3, 5]
    stairs = [Staircase(body, 3, 0).loss_lattice(ANSWERS[1] - ANSWERS[s]) for s in (3, 4, 5)]
    assert stairs == [3, 3, 6]


@pytest.mark.parametrize(("partner", "error"), [(3, 54), (4, 47), (5, 50)])
def test_example_6_1(partner, error):
    body = hull((3, 4), (3, 5), (4, 5), (2, partner))
    assert KNorm(body, 1).expected_error == pytest.approx(error, rel=1e-15)


def test_example_5_3():
    body = hull_of_points([(1, 0), (-1, 1)])
    assert KNorm(body, 1).expected_error == pytest.approx(6)
    assert Laplace(body, 1).expected_error == pytest.approx(16)
    rows = [(1, 0), (0, 0), (1, 0), (0, 1), (1, 0), (0, 1)]
    losses = [DiscreteKNorm(body, 1).loss_lattice(v) for v in rows]
    assert losses == [1, 0, 1, 2, 1, 2]
    assert [Laplace(body, 1).loss(v) for v in rows] == [0.5, 0.0, 0.5, 0.5, 0.5, 0.5]


def test_algorithm_2_replay():
    """Two steps of Algorithm 2 after a known s1: posteriors to five places."""
    first = KNorm(hull((1, 3)), 1).log_likelihood((1.5, 1.0), ANSWERS[[1, 3]])
    posterior = np.exp(first) / np.exp(first).sum()
    np.testing.assert_allclose(posterior, [0.62246, 0.37754], atol=5e-6)
    s2, s4 = posterior
    prior = np.array([s4 / 2, s2 / 2, (s2 + s4) / 2])  # s2, s3, s5
    second = KNorm(hull((1, 2), (1, 4)), 1).log_likelihood((3.0, 1.0), ANSWERS[[1, 2, 4]])
    posterior = prior * np.exp(second)
    np.testing.assert_allclose(posterior / posterior.sum(), [0.24514, 0.28960, 0.46525], atol=5e-6)


def test_three_dimensions_where_laplace_is_better():
    """theory (f): the box ±98, ±1, ±1 with S_f = 100 has error 64040/ε² against Laplace's 60000/ε²."""
    box = hull_of_points([(98, 1, 1), (98, 1, -1), (98, -1, 1), (98, -1, -1)])
    assert KNorm(box, 1).expected_error == pytest.approx(64040)
    assert Laplace(box, 1).sensitivity == 100.0 and Laplace(box, 1).expected_error == pytest.approx(60000)


TABLE = [
    # grid side, squared radius, ε; E‖noise‖ of the continuous K-norm, the discrete one, the best staircase
    (6, 2, 1, 2.294, 2.220, 2.220),
    (6, 2, 2, 1.147, 0.922, 0.922),
    (6, 2, 4, 0.573, 0.165, 0.165),
    (7, 5, 1, 4.226, 4.209, 4.179),
    (7, 5, 2, 2.113, 2.036, 1.980),
    (7, 5, 3, 1.409, 1.235, 1.070),
    (7, 5, 4, 1.057, 0.777, 0.516),
    (8, 10, 2, 2.988, 2.950, 2.830),
    (8, 10, 3, 1.992, 1.898, 1.780),
]


@pytest.mark.slow
@pytest.mark.replayed_words
@pytest.mark.parametrize(("side", "radius2", "epsilon", "continuous", "discrete", "staircase"), TABLE)
def test_the_measured_table_of_mechanisms(side, radius2, epsilon, continuous, discrete, staircase):
    """docs/theory.md 5: mean distances of the mechanisms for a radius policy on a grid, from samples."""
    reach = range(-3, 4)
    body = hull_of_points([(x, y) for x in reach for y in reach if 0 < x * x + y * y <= radius2])

    def mean_distance(mechanism):
        noise = mechanism.sample(np.zeros((200_000, 2)))
        return np.sqrt((noise**2).sum(axis=1)).mean()

    tolerance = 0.012 * continuous
    assert mean_distance(KNorm(body, epsilon)) == pytest.approx(continuous, abs=tolerance)
    assert mean_distance(DiscreteKNorm(body, epsilon)) == pytest.approx(discrete, abs=tolerance)
    best = min(mean_distance(Staircase(body, epsilon, Fraction(i, 20))) for i in range(0, 20, 2))
    assert best <= staircase + 2 * tolerance
    assert choose(body, epsilon).expected_error <= DiscreteKNorm(body, epsilon).expected_error
