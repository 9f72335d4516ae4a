"""What an audit counts and measures is what the definitions give, point by point.

It could fail for a pair that is counted once instead of twice, a facet at its bound, equal first columns, and a belief
with zeros or ties.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm._kernels import audit


@pytest.mark.parametrize("seed", range(30))
def test_points_within_a_body_are_counted_as_pairs_say(seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(-6, 7, size=(25, 2))
    values = points @ rng.integers(-3, 4, size=(2, 3))
    values = values[np.argsort(values[:, 0], kind="stable")]
    offsets, weights = rng.integers(0, 9, 3), rng.integers(0, 5, 25)
    counts = np.arange(25)
    audit.count_within(values, offsets, weights, counts)
    near = (np.abs(values[:, None] - values[None]) <= offsets).all(axis=2)
    assert counts.tolist() == (np.arange(25) + near @ weights).tolist()


@pytest.mark.parametrize("truth", [-1, 0, 3])
def test_a_belief_is_measured_as_the_definitions_say(truth):
    rng = np.random.default_rng(truth + 5)
    belief = np.array([0.0, 0.4, 0.1, 0.4, 0.1])
    answers, distances = rng.normal(size=(5, 2)), rng.random(5)
    error, success, share, bits, mean = audit.measured(belief, answers, distances, truth)
    assert error == pytest.approx(belief @ distances)
    # Of the two likeliest states the lower-numbered one is guessed.
    assert success == float(truth == 1)
    assert share == (belief[truth] if truth >= 0 else 0.0)
    seen = belief[belief > 0]
    assert bits == pytest.approx(-(seen * np.log2(seen)).sum())
    np.testing.assert_allclose(mean, belief @ answers)


def test_who_is_certain_has_no_entropy_and_is_right_or_not():
    certain, answers, distances = np.array([0.0, 1.0]), np.array([[0.0], [2.0]]), np.array([3.0, 0.0])
    assert audit.measured(certain, answers, distances, 1)[:4] == (0.0, 1.0, 1.0, 0.0)
    assert audit.measured(certain, answers, distances, 0)[1:3] == (0.0, 0.0)
