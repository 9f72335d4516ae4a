"""States with equal answers hide each other in the policy's eyes, but not from whoever sees the answer.

Claim: where every state has a twin of the same answer as its only neighbour, nobody is exposed (degree of protection
2), the hull is a point, and yet answers differ. A release must not say which answer it was: the point is
thickened and every pair loses a finite amount. It would fail where a hull of rank 0 is taken to mean that there is
nothing to protect.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import dphmm
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from single_answers import answered

ANSWERS = {d: np.array([[0] * d, [0] * d, [5, 1, 2][:d], [5, 1, 2][:d]]) for d in (1, 2, 3)}
EVERYWHERE = np.ones(4, dtype=np.bool_)


def plan(dimension: int):
    options = Options.checked(1)
    space = dphmm.StateSpace(ANSWERS[dimension])
    return Planner(dphmm.policy.from_edges([(0, 1), (2, 3)], 4), space, options).plan(EVERYWHERE, EVERYWHERE)


@pytest.mark.parametrize("dimension", ANSWERS)
def test_twins_of_one_answer_are_not_told_from_twins_of_another(dimension):
    made = plan(dimension)
    assert len(made.joins) == 0  # nobody is exposed
    assert not made.constant
    assert made.hull.rank == dimension
    assert made.cost < math.inf
    answers = {answered(made, 0, bits) for bits in (dphmm.ReplayBits(seed) for seed in range(40))}
    assert len(answers) > 1
    for z in answers:
        logs = made.log_likelihood(np.array(z))
        assert np.isfinite(logs).all()
        assert np.ptp(logs) <= float(made.cost) + 1e-9
        assert made.still_possible(np.array(z)).all()
