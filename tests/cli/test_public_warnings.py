"""What is said of a release before anything is drawn."""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.batch import Batch
from dphmm.cli.public_warnings import trapped_belief


@pytest.mark.parametrize(
    ("absorbing", "constraint", "said"),
    [(True, "delta=0.01", 1), (True, "support", 0), (False, "delta=0.01", 0)],
)
def test_a_delta_set_beside_absorbing_states_is_warned_of(absorbing, constraint, said):
    moves = np.full((3, 3), 1 / 3)
    if absorbing:
        moves[2] = [0, 0, 1]
    model = dphmm.MarkovModel(np.full(3, 1 / 3), moves)
    space = dphmm.StateSpace(np.arange(3)[:, None])
    found = trapped_belief(Batch(model, dphmm.policy.complete(3), space, 1, constraint=constraint))
    assert len(found) == said
    assert all("1 absorbing states" in sentence for sentence in found)
