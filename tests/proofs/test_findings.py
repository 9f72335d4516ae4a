"""Preconditions of the proof pages that code once did not keep, each by the smallest instance that showed it.

components.md: what is done for a release must not depend on the state beyond its look-up and its noise; a sampler that
is made at the first draw of its own component tells by time which component that was. promise.md: a plan is a function
of public data, so nothing that a caller does with an answer of the policy may change what is planned next.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.mechanisms import choose
from dphmm.policy.constraint import Constraint
from dphmm.session.answer import answer_under
from dphmm.session.options import Options
from dphmm.session.planner import Planner


@pytest.mark.parametrize("scope", ["global", "component"])
def test_the_same_samplers_are_made_whatever_state_is_released(scope):
    answers = np.array([(x, y) for y in range(4) for x in range(9)])
    policy = dphmm.policy.categorical(np.digitize(answers[:, 0], [2, 5]))
    everywhere = np.ones(len(answers), dtype=np.bool_)
    made = []
    for state, last in ((0, 331), (len(answers) - 1, 337)):
        # An ε of its own, so that no sampler has been made for another plan.
        options = Options.checked(Fraction(last, 1000), dimension=2, scope=scope)
        plan = Planner(policy, dphmm.StateSpace(answers), options).plan(everywhere, everywhere)
        answer_under(plan, np.array([state]), dphmm.ReplayBits(1))
        made.append(["_sampler" in vars(mechanism) for mechanism in plan.mechanisms])
    assert made[0] == made[1]


def test_a_chosen_mechanism_is_on_the_lattice_it_was_chosen_for():
    """Two spaces with equal steps and other origins have equal hulls, and each its own answers."""
    first = dphmm.StateSpace(np.array([[0.0], [0.5], [1.0], [1.7]]))
    second = dphmm.StateSpace(first.answers + 0.123)
    policy = dphmm.policy.complete(4)
    for space in (first, second):
        mechanism = choose(dphmm.sensitivity_hull(policy, space), 1)
        assert np.isfinite(mechanism.log_likelihood(space.answers[0], space.answers)).all()


def test_what_a_policy_answered_cannot_be_changed_for_the_next_who_asks():
    policy = dphmm.policy.from_edges([(0, 1)], 3)
    within = Constraint.of(None, 3)
    neighbours = policy.has_neighbor(within)
    try:
        neighbours[2] = True
    except ValueError:
        return
    assert policy.has_neighbor(within).tolist() == [True, True, False]
