"""THEORY 10: Algorithm 2 replayed on the running example, with a known start s1 at t = 0."""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.session.options import Options
from dphmm.session.plan import Position
from dphmm.session.planner import Planner
from running_example import ANSWERS, EDGES_3B, TRANSITION


@pytest.fixture
def replay():
    model = dphmm.MarkovModel(np.eye(6)[0], TRANSITION)
    space = dphmm.StateSpace(ANSWERS, pitch=0.5)
    options = Options.checked(1, dimension=2, mechanism="discrete-knorm", flat="allow", protection="nearest")
    planner = Planner(dphmm.policy.from_edges(EDGES_3B, 6), space, options)
    return model, space, options, planner


def test_posteriors_and_cost(replay):
    model, space, options, planner = replay
    position = Position.first(model, options)
    assert np.flatnonzero(position.prior.support).tolist() == [1, 3]
    first = planner.plan(position.prior.support, position.plan_set(options))
    posterior = position.posterior(first, space.frame.to_lattice([1.5, 1.0]))
    assert posterior.probability[[1, 3]] == pytest.approx([0.62246, 0.37754], abs=5e-6)

    position = position.predict(model, posterior)
    assert np.flatnonzero(position.prior.support).tolist() == [1, 2, 4]
    second = planner.plan(position.prior.support, position.plan_set(options))
    graph = planner.policy.union(dphmm.policy.from_edges(second.joins, 6))
    assert graph.edges(second.constraint).tolist() == [[1, 2], [1, 4]]
    posterior = position.posterior(second, space.frame.to_lattice([3.0, 1.0]))
    assert posterior.probability[[1, 2, 4]] == pytest.approx([0.24514, 0.28960, 0.46525], abs=5e-6)
    assert first.cost + second.cost == 3


def test_a_flat_release_excludes_the_other_coset(replay):
    """Theory (b): C = {1,2,3,4} has a segment hull, and one release tells {s1, s4} from {s2, s3}."""
    _, space, _, planner = replay
    support = np.array([True, True, True, True, False, False])
    plan = planner.plan(support, support)
    assert plan.hulls[0].rank == 1
    assert plan.narrows_support
    z = space.frame.to_lattice([1.0, 0.0])
    assert np.flatnonzero(plan.still_possible(z)).tolist() == [0, 3]
    assert plan.cost == float("inf")
