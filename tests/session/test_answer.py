"""Answers to many states are the answers to each by itself: the same words, the same answers."""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.session.answer import answer_under
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from single_answers import answered

POINTS = np.array([[0, 0], [1, 0], [1, 1], [30, 30], [31, 30], [31, 32]])


def plan_of(plan_set=(True,) * 6):
    space = dphmm.StateSpace(POINTS)
    planner = Planner(dphmm.policy.radius(space, 2), space, Options.checked(1))
    support = np.ones(6, dtype=np.bool_)
    return planner.plan(support, np.array(plan_set, dtype=np.bool_))


@pytest.mark.parametrize("plan_set", [(True,) * 6, (False, True, True, False, True, False)])
def test_one_by_one_gives_the_same(plan_set):
    plan = plan_of(plan_set=plan_set)
    states = np.array([0, 5, 2, -1, 3, 3, 1, -1, 4])
    bits = dphmm.ReplayBits(4)
    lowest = int(np.argmax(plan.constraint.plan))
    single = [answered(plan, state if state >= 0 else lowest, bits) for state in states.tolist()]
    assert list(map(tuple, answer_under(plan, states, dphmm.ReplayBits(4))[0].tolist())) == single
