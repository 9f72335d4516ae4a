"""The compiled loops of planning say what their plain twins say: moments, extents, masses, likelihoods.

Each could fail by a sum that overflows, a corner that is left out, or a state that is counted twice or not at all.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm._kernels.masses import heaviest, total_mass
from dphmm.sensitivity import moment, spread
from dphmm.session.likelihood import Likelihood
from dphmm.session.options import Options
from dphmm.session.planner import Planner


@pytest.mark.parametrize("reach", [3, 40, 2**14 - 1])
def test_moments_of_a_polygon_are_those_of_its_triangles(reach):
    rng = np.random.default_rng(reach)
    for _ in range(20):
        points = rng.integers(-reach, reach + 1, (12, 2))
        points[0] = (reach, 1 - reach)
        hull = dphmm.sensitivity_hull(
            dphmm.policy.from_edges([(0, i) for i in range(1, 13)], 13), np.vstack([0 * points[:1], points])
        )
        if hull.rank < 2:
            continue
        total, weight = moment._sums(hull.body)
        assert moment._planar_sums(hull.hull_vertices) == (total, weight)
        assert moment.second_moment(hull.body)[0][1] == Fraction(total[0][1], 12 * weight)
        assert moment.volume(hull.body) == Fraction(weight, 2)


def test_far_corners_are_summed_in_python_integers():
    square = 2**27 * np.array([[0, 0], [1, 0], [0, 1], [1, 1]])
    body = dphmm.sensitivity_hull(dphmm.policy.complete(4), square).body
    assert moment.volume(body) == 2**56
    assert moment.second_moment(body) == [[Fraction(2**54, 3), 0], [0, Fraction(2**54, 3)]]


@pytest.mark.parametrize("seed", range(20))
def test_extents_are_those_of_all_points(seed):
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 300)), int(rng.integers(1, 4))
    points, directions = rng.integers(-30, 30, (n, d)), rng.integers(-9, 10, (5, d))
    expected = np.ptp(points @ directions.T, axis=0).tolist()
    assert spread._extents(points, directions) == expected
    assert spread._extents(spread._corners(points), directions) == expected
    assert spread._extents(spread._corners(points * 2**40), directions) == [x * 2**40 for x in expected]


def test_corners_are_fewer_than_the_points_of_a_grid():
    y, x = np.divmod(np.arange(900), 30)
    assert len(spread._corners(np.stack([x, y], axis=1))) == 60


def test_masses_of_impossible_states_are_not_looked_at():
    masses, within = np.array([0.5, np.nan, 0.25, -1.0]), np.array([True, False, True, False])
    assert total_mass(masses, within) == (0.75, 2)
    assert np.isnan(total_mass(masses, np.ones(4, dtype=np.bool_))[0])
    equal = np.full(4, 0.25)
    assert heaviest(equal, np.array([False, True, True, True]), 0.25, 2, 1e-12).tolist() == [False, True, True, False]
    assert heaviest(np.array([0.1, 0.2, 0.4, 0.2]), within | True, 0.2, 2, 1e-12).tolist() == [False, True, True, False]


@pytest.mark.parametrize("mechanism", ["staircase", "discrete-knorm"])
def test_states_are_as_likely_as_the_plan_state_they_are_released_as(mechanism):
    y, x = np.divmod(np.arange(64), 8)
    space = dphmm.StateSpace(np.stack([x, y], axis=1))
    options = Options.checked(1, dimension=2, constraint="delta=0.1", mechanism=mechanism, scope="global",
                              flat="thicken", thickness=None, protection="nearest", start="before")  # fmt: skip
    planner = Planner(dphmm.policy.complete(64), space, options)
    support = np.ones(64, dtype=np.bool_)
    plan = planner.plan(support, (x < 4) & (y < 3))
    z = np.array([9, -2])
    law = Likelihood.of(plan)
    assert law.projected.shape[1] == 12
    assert np.allclose(np.log(law.at(z)), plan.log_likelihood(z), rtol=0, atol=1e-12)
    whole = Likelihood.of(planner.plan(support, support))
    assert whole.places is None and whole.projected.shape[1] == 64


def test_a_policy_of_many_places_in_a_large_clique_keeps_to_its_rows():
    """Rows of more members than are paired one by one, far from the first column of the answers."""
    y, x = np.divmod(np.arange(1600), 40)
    labels = x // 10 + 4 * (y // 10)
    hull = dphmm.sensitivity_hull(dphmm.policy.categorical(labels), np.stack([x + 1000, y], axis=1))
    assert sorted(map(tuple, hull.vertices.tolist())) == [(-9, -9), (-9, 9), (9, -9), (9, 9)]


def test_no_surroundings_are_taken_for_those_of_another_space():
    plan = np.array([True, False, False, True])
    near = dphmm.StateSpace(np.array([[0], [1], [2], [9]]))
    far = dphmm.StateSpace(np.array([[0], [6], [7], [9]]))
    support = np.ones(4, dtype=np.bool_)
    found = [dphmm.policy.Constraint.surrogated(support, plan, space).surrogate.tolist() for space in (near, far, near)]
    assert found == [[0, 0, 0, 3], [0, 3, 3, 3], [0, 0, 0, 3]]
