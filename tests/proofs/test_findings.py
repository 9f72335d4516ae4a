"""Preconditions of the proof pages that code once did not keep, each by the smallest instance that showed it.

promise.md: a plan is a function
of public data, so nothing that a caller does with an answer of the policy may change what is planned next.
"""

from __future__ import annotations

import numpy as np

import dphmm
from dphmm.mechanisms import choose
from dphmm.policy.constraint import Constraint


def test_a_chosen_mechanism_is_on_the_lattice_it_was_chosen_for():
    """Two spaces with equal steps and other origins have equal hulls, and each its own answers."""
    first = dphmm.StateSpace(np.array([[0.0], [0.5], [1.0], [1.7]]))
    second = dphmm.StateSpace(first.answers + 0.123)
    policy = dphmm.policy.complete(4)
    for space in (first, second):
        mechanism = choose(dphmm.sensitivity.sensitivity_hull(policy, space), 1)
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
