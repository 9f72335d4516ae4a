"""The audits' figures on one core: a plan of 3,600 states under 1 s, a million draws under 5 s, trackers by the second.

Wall-clock limits are generous multiples of what was measured, so that only a change of order fails.
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import dphmm
from dphmm.audit import attack, black_box, verify

SIDE = 60


def city():
    side = np.arange(SIDE)
    cells = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    n = len(cells)
    one = sparse.diags_array([np.ones(SIDE - 1), np.ones(SIDE), np.ones(SIDE - 1)], offsets=[-1, 0, 1])
    moves = sparse.csr_array(sparse.kron(one, one))
    moves = sparse.csr_array(sparse.diags_array(1 / moves.sum(axis=1)) @ moves)
    model = dphmm.MarkovModel(np.full(n, 1 / n), moves)
    return model, dphmm.policy.radius(cells, 3), dphmm.StateSpace(cells)


@pytest.mark.long
def test_a_plan_of_3600_states():
    model, policy, space = city()
    plan = dphmm.ReleaseSession(model, policy, space, 1).plan
    verify(plan, policy, space)
    begun = time.perf_counter()
    verdict = verify(plan, policy, space)
    assert time.perf_counter() - begun < 1
    assert verdict.pairs == len(policy.edges()) > 48_000 and not verdict.convicted


@pytest.mark.long
def test_a_million_draws():
    rng = np.random.default_rng(1)
    draws = [np.rint(centre + rng.laplace(0, 2, (10**6, 2))) for centre in (0, 1)]
    begun = time.perf_counter()
    assert 0.8 < black_box([tuple(draws)], 1).lower <= 1
    assert time.perf_counter() - begun < 5


@pytest.mark.long
@pytest.mark.replayed_words
def test_a_tracker_of_fifty_people():
    """A thousand of them, 100 steps each, should take a minute at most; here is a twentieth."""
    model, policy, space = city()
    rng = np.random.default_rng(2)
    truth = pd.DataFrame({"user": np.repeat([f"u{i}" for i in range(50)], 100), "step": np.tile(np.arange(100), 50)})
    truth["state"] = rng.integers(0, SIDE**2, len(truth)).astype(str)
    released = dphmm.release_many(truth, model, policy, space, 1, progress=False)
    begun = time.perf_counter()
    attack(released, truth, model, policy, space, 1, adversaries=["tracker"])
    assert time.perf_counter() - begun < 3
