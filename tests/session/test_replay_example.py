"""THEORY 10: Algorithm 2 replayed on the running example, with a known start s1 at t = 0."""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
import naive
from dphmm.mechanisms import DiscreteKNorm
from dphmm.session.options import Options
from dphmm.session.plan import Position
from dphmm.session.planner import Planner
from running_example import ANSWERS, EDGES_3B, TRANSITION


@pytest.fixture
def replay():
    model = dphmm.MarkovModel(np.eye(6)[0], TRANSITION)
    space = dphmm.StateSpace(ANSWERS, pitch=0.5)
    options = Options.checked(1, mechanism="discrete-knorm", protection="nearest")
    planner = Planner(dphmm.policy.from_edges(EDGES_3B, 6), space, options)
    return model, space, options, planner


def expected(prior, steps, space, z):
    """The posterior after z, by the gauge of the hull of these differences; one of rank 1 is widened by a step."""
    points = [tuple(sign * x for x in step) for step in steps for sign in (1, -1)]
    if len(steps) == 1:
        points += [(1, 0), (-1, 0), (0, 1), (0, -1)]
    gauges = [naive.gauge(points, tuple((z - answer).tolist())) for answer in space.lattice]
    weights = prior * np.exp([-float(gauge) for gauge in gauges])
    return weights / weights.sum()


def test_posteriors_and_cost(replay):
    model, space, options, planner = replay
    position = Position.first(model, options.start)
    assert np.flatnonzero(position.prior.support).tolist() == [1, 3]
    first = planner.plan(position.prior.support, position.constrain(options.constraint))
    z = space.frame.to_lattice([1.5, 1.0])
    posterior = position.condition(first, z)
    due = expected(position.prior.probability, [space.lattice[3] - space.lattice[1]], space, z)
    assert posterior.probability == pytest.approx(due, abs=1e-12)

    position = position.predict(model, posterior)
    assert np.flatnonzero(position.prior.support).tolist() == [1, 2, 4]
    second = planner.plan(position.prior.support, position.constrain(options.constraint))
    graph = planner.policy.union(dphmm.policy.from_edges(second.joins, 6))
    assert graph.edges(second.constraint).tolist() == [[1, 2], [1, 4]]
    z = space.frame.to_lattice([3.0, 1.0])
    posterior = position.condition(second, z)
    steps = [space.lattice[b] - space.lattice[a] for a, b in ((1, 2), (1, 4))]
    due = expected(position.prior.probability, steps, space, z)
    assert posterior.probability == pytest.approx(due, abs=1e-12)
    assert first.cost + second.cost == 3


def test_a_flat_body_excludes_the_other_coset(replay):
    """Theory (b): C = {1,2,3,4} has a segment hull, and one answer on it tells {s1, s4} from {s2, s3}."""
    _, space, _, planner = replay
    support = np.array([True, True, True, True, False, False])
    flat = DiscreteKNorm(dphmm.sensitivity.sensitivity_hull(planner.policy, space, support), 1)
    z = space.frame.to_lattice([1.0, 0.0])
    assert flat.hull.rank == 1
    assert np.flatnonzero(flat.possible(z, space.lattice) & support).tolist() == [0, 3]
    # A release widens it: nothing is excluded, and the cost is finite.
    plan = planner.plan(support, support)
    assert plan.hull.rank == 2 and plan.still_possible(z).tolist() == support.tolist()
    assert plan.cost < float("inf")
