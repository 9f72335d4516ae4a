"""Small worlds that the audits' tests share: the papers' running example."""

from __future__ import annotations

import numpy as np

import dphmm
from running_example import ANSWERS, EDGES_3B, TRANSITION

MODEL = dphmm.MarkovModel(np.full(6, 1 / 6), TRANSITION)
POLICY = dphmm.policy.from_edges(EDGES_3B, 6)
SPACE = dphmm.StateSpace(ANSWERS)


def session(epsilon=1, policy=POLICY, space=SPACE, model=MODEL, seed=1, **options):
    return dphmm.ReleaseSession(
        model, policy, space, epsilon, bits=dphmm.ReplayBits(seed), **{"protection": "nearest", **options}
    )


def everywhere(n=6):
    """A model in which every state can follow every state."""
    return dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
