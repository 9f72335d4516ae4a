"""The direction of a step against the dense inverse Hessian of BFGS, which is updated pair by pair.

It could fail where a full memory is read in another order than it was written in, or where the oldest pair counts on.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm._kernels.descent import downwards


@pytest.mark.parametrize("pairs", [0, 1, 3, 4, 7, 9])
def test_it_is_that_of_the_last_updates_of_the_inverse_hessian(pairs):
    random, memory, d = np.random.default_rng(pairs), 4, 5
    half = random.normal(size=(d, d))
    steps = random.normal(size=(pairs, d))
    falls = steps @ (half @ half.T + np.eye(d))
    moves, changes = np.zeros((memory, d)), np.zeros((memory, d))
    for k in range(pairs):
        moves[k % memory], changes[k % memory] = steps[k], falls[k]
    inverse = np.eye(d)
    if pairs:
        inverse *= steps[-1] @ falls[-1] / (falls[-1] @ falls[-1])
    for s, y in zip(steps[-memory:], falls[-memory:], strict=True):
        away = np.eye(d) - np.outer(s, y) / (s @ y)
        inverse = away @ inverse @ away.T + np.outer(s, s) / (s @ y)
    slope = random.normal(size=d)
    np.testing.assert_allclose(downwards(slope, moves, changes, pairs), -inverse @ slope, rtol=1e-9)
