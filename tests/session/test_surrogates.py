"""From where a state is answered, one by one and in columns: its own surrogate, whatever its number.

Claim. A possible state outside the plan set is answered from its surrogate, the nearest plan state, and only -1, a
place that is no state, from the lowest-numbered plan state. State 0 is a state like any other: here its surrogate is
the last plan state, so it would show if 0 were taken for "none". With the same words a column of one gives what
one answer by itself gives.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.session.answer import answer_under
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from single_answers import answered

ANSWERS = np.array([[9, 9], [0, 0], [1, 0], [0, 1], [8, 8], [8, 9]])
PLAN_SET = np.array([False, True, True, True, True, False])
EDGES = [(1, 2), (2, 3), (3, 4)]


def plan(plan_set=PLAN_SET):
    options = Options.checked(1)
    planner = Planner(dphmm.policy.from_edges(EDGES, 6), dphmm.StateSpace(ANSWERS), options)
    return planner.plan(np.ones(6, dtype=np.bool_), plan_set)


def drifted(plan, states):
    return int(answer_under(plan, states, dphmm.ReplayBits(1))[1].sum())


def test_every_state_is_answered_from_its_surrogate():
    made = plan()
    surrogates = [4, 1, 2, 3, 4, 4]
    assert made.constraint.surrogate.tolist() == surrogates
    for state, surrogate in [*enumerate(surrogates), (-1, 1)]:
        drawn = answer_under(made, np.array([state]), dphmm.ReplayBits(3))[0][0]
        assert drawn.tolist() == list(answered(made, surrogate, dphmm.ReplayBits(3)))
        noise = made.mechanism.noise(1, dphmm.ReplayBits(3))[0]
        np.testing.assert_array_equal(drawn - noise, ANSWERS[surrogate])


@pytest.mark.parametrize("plan_set", [np.ones(6, dtype=np.bool_), PLAN_SET])
def test_many_are_answered_as_one_by_one(plan_set):
    made, states, bits = plan(plan_set), np.array([0, 5, 2, -1, 3, 3, 1, -1, 4]), dphmm.ReplayBits(4)
    lowest = int(np.argmax(plan_set))
    single = [answered(made, state if state >= 0 else lowest, bits) for state in states.tolist()]
    assert list(map(tuple, answer_under(made, states, dphmm.ReplayBits(4))[0].tolist())) == single


def test_drift_is_all_that_is_outside_the_plan_set():
    assert [drifted(plan(), np.array([state])) for state in (-1, 0, 1, 2, 3, 4, 5)] == [1, 1, 0, 0, 0, 0, 1]
    everybody = plan(plan_set=np.ones(6, dtype=np.bool_))
    assert drifted(everybody, np.array([0, 5, -1, 0])) == 1


def test_a_planner_is_of_one_number_of_states():
    with pytest.raises(InvalidInput, match="answers"):
        Planner(dphmm.policy.from_edges(EDGES, 7), dphmm.StateSpace(ANSWERS), Options.checked(1))
