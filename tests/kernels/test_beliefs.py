"""What a belief is worth is what the definitions give: for one with zeros or ties, and for places far apart."""

from __future__ import annotations

import numpy as np
import pytest

from dphmm._kernels import beliefs
from naive import nearest_to_all


@pytest.mark.parametrize("truth", [-1, 0, 3])
def test_a_belief_is_measured_as_the_definitions_say(truth):
    rng = np.random.default_rng(truth + 5)
    belief = np.array([0.0, 0.4, 0.1, 0.4, 0.1])
    answers, distances = rng.normal(size=(5, 2)), rng.random(5)
    error, success, share, bits, mean = beliefs.measured(belief, answers, distances, truth)
    assert error == pytest.approx(belief @ distances)
    # Of the two likeliest states the lower-numbered one is guessed.
    assert success == float(truth == 1)
    assert share == (belief[truth] if truth >= 0 else 0.0)
    seen = belief[belief > 0]
    assert bits == pytest.approx(-(seen * np.log2(seen)).sum())
    np.testing.assert_allclose(mean, belief @ answers)


def test_who_is_certain_has_no_entropy_and_is_right_or_not():
    certain, answers, distances = np.array([0.0, 1.0]), np.array([[0.0], [2.0]]), np.array([3.0, 0.0])
    assert beliefs.measured(certain, answers, distances, 1)[:4] == (0.0, 1.0, 1.0, 0.0)
    assert beliefs.measured(certain, answers, distances, 0)[1:3] == (0.0, 0.0)


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_a_median_is_the_place_of_least_mean_distance(d, seed):
    """Beside a slow iteration and all points; its distance is that of the definition."""
    rng = np.random.default_rng(seed)
    there = np.round(rng.normal(size=(40, d)) * 10.0 ** rng.integers(0, 5), 3)
    weights = rng.dirichlet(np.full(40, 0.1), size=8)
    order = np.ascontiguousarray(np.argsort(there, axis=0, kind="stable").T)
    found, off = np.empty((8, d)), np.empty(8)
    beliefs.medians(weights, there, np.zeros(40), order, 1e-4, 2e-3, 1e-2, 60, found, off)
    slow = nearest_to_all(weights.T, there, rounds=2000)
    for row in range(8):
        own = [float(weights[row] @ np.linalg.norm(there - at, axis=1)) for at in (found[row], slow[row], *there)]
        assert off[row] == pytest.approx(own[0] / weights[row].sum(), rel=1e-12)
        assert own[0] <= 1.01 * min(own)
