"""What a step is planned on: exactly what the model's structure reaches by that step, and no other set of its size.

Claims. Without a δ-set the plan set of every step is its whole support, the states that the structure of the model
can reach in so many moves, however unlikely they have become. A planner that many subjects share gives each support
the plan that a fresh planner would make for it, even where another support of the same size was planned before. It
would fail for a plan set cut at some small probability, for the support of the step before, and for a cache that
takes one set for another. And the hull is of the answers as they are released, on their lattice: every policy edge
between released answers is in it, exactly, though the answers as given are not on the lattice; it would fail for a
hull of any other rounding.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import dphmm
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from running_example import ANSWERS, EDGES_3B

CELLS = 301


def corridor(chance):
    """A model that moves by one cell at most, and its policy and space."""
    moves = np.zeros((CELLS, CELLS))
    for i in range(CELLS):
        for j, p in ((i - 1, chance), (i, 1 - 2 * chance), (i + 1, chance)):
            moves[i, min(max(j, 0), CELLS - 1)] += p
    space = dphmm.StateSpace(np.arange(CELLS)[:, None])
    return dphmm.MarkovModel(np.eye(CELLS)[0], moves), dphmm.policy.radius(space, 1), space


@pytest.mark.parametrize("chance", [1 / 3, 1e-3, 1e-9])
def test_every_step_is_planned_on_all_that_can_be_reached_by_it(chance):
    session = dphmm.ReleaseSession(*corridor(chance=chance), 1, bits=dphmm.ReplayBits(1))
    for t in range(1, 40):
        reached = np.arange(CELLS) <= t
        plan = session.plan
        np.testing.assert_array_equal(plan.constraint.support, reached)
        np.testing.assert_array_equal(plan.constraint.plan, reached)
        assert session.release(0).plan_hash == plan.hash
    assert np.isfinite(session.posterior.log_probability[session.posterior.support]).all()
    assert session.prior.log_probability[40] < 40 * np.log(chance) + 40  # unlikely indeed


def test_a_shared_planner_never_takes_one_set_for_another_of_its_size():
    policy, space = dphmm.policy.from_edges(EDGES_3B, 6), dphmm.StateSpace(ANSWERS)
    options = Options.checked(1, protection="nearest")
    shared = Planner(policy, space, options)
    for size in (2, 3, 5):
        for states in itertools.combinations(range(6), size):
            support = np.isin(np.arange(6), states)
            for plan_set in (support, support & (np.arange(6) != states[0])):
                made = shared.plan(support, plan_set)
                np.testing.assert_array_equal(made.constraint.support, support)
                np.testing.assert_array_equal(made.constraint.plan, plan_set)
                assert made.hash == Planner(policy, space, options).plan(support, plan_set).hash


@pytest.mark.parametrize("seed", range(5))
def test_the_hull_is_that_of_the_answers_as_they_are_released(seed):
    rng = np.random.default_rng(seed)
    space = dphmm.StateSpace(rng.uniform(-3, 3, (12, 2)), pitch=0.25)
    assert not space.is_lattice
    policy = dphmm.policy.from_edges(rng.integers(0, 12, (10, 2)), 12)
    everywhere = np.ones(12, dtype=np.bool_)
    plan = Planner(policy, space, Options.checked(1, protection="nearest")).plan(everywhere, everywhere)
    np.testing.assert_array_equal(plan.image, space.lattice)
    for a, b in np.vstack([policy.edges(), plan.joins]).tolist():
        assert plan.hull.norm_fraction(space.lattice[a] - space.lattice[b]) <= 1
