"""Walks of invented people follow the model, and a seed says which."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import dphmm
from dphmm.choose.simulated import walks

MOVES = np.array([[0.5, 0.5, 0.0, 0.0], [0.25, 0.5, 0.25, 0.0], [0.0, 0.0, 0.25, 0.75], [0.1, 0.0, 0.6, 0.3]])
SPACE = dphmm.StateSpace(np.array([[0], [1], [2], [4]]))
MODEL = dphmm.MarkovModel(np.array([0.1, 0.2, 0.3, 0.4]), MOVES, space=SPACE)


@pytest.mark.parametrize("start", ["before", "at"])
def test_walks_follow_the_model(start):
    """Chi-square of pairs (t = 1, 2) at level 1e-4 with 20,000 walks: 5 % off in one move is seen with power > 0.99."""
    model = dphmm.MarkovModel(MODEL.initial, MOVES, space=SPACE, start=start)
    paths = walks(model, 20_000, 2, np.random.default_rng(11))
    first = MODEL.initial @ MOVES if start == "before" else MODEL.initial
    expected = (first[:, None] * MOVES).ravel() * len(paths)
    seen = np.bincount(paths[:, 0] * 4 + paths[:, 1], minlength=16)
    assert not seen[expected == 0].any()
    statistic = stats.chisquare(seen[expected > 0], expected[expected > 0]).pvalue
    assert statistic > 1e-4


def test_walks_are_the_same_for_the_same_seed_only():
    one, two, other = (walks(MODEL, 5, 9, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
