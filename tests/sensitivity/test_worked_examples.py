"""Every figure of the papers' worked examples that concerns hulls and protection (THEORY 10)."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.markov.model import MarkovModel
from dphmm.sensitivity.hull import largest_norm
from running_example import ANSWERS, EDGES_3B, TRANSITION


@pytest.fixture
def policy():
    return dphmm.policy.from_edges(EDGES_3B, 6)


def states(*numbers):
    return np.array(numbers) - 1


def error(hull):
    """ε²·E‖noise‖² of the K-norm mechanism (theory F3)."""
    return (hull.rank + 1) * (hull.rank + 2) * hull.squared_size


def vertex_set(hull):
    return {tuple(int(x) for x in v) for v in hull.vertices}


def test_example_5_1(policy):
    hull = dphmm.sensitivity.sensitivity_hull(policy, ANSWERS)
    assert vertex_set(hull) == {(4, 1), (-4, -1), (3, 0), (-3, 0), (-1, 1), (1, -1)}
    assert hull.norm([1, 1]) == 1.0
    assert hull.contains([1, 1])
    assert hull.volume == 11.0
    assert dphmm.sensitivity.l1_sensitivity(policy, ANSWERS) == 5.0
    assert error(hull) == Fraction(472, 11)
    assert np.trace(hull.second_moment) * 12 == pytest.approx(472 / 11, rel=1e-14)
    assert dphmm.sensitivity.degree_of_protection(hull, ANSWERS, None).tolist() == [4, 6, 3, 5, 4, 4]
    assert largest_norm(hull, ANSWERS) == 2


def test_example_5_2(policy):
    within = states(2, 3, 5)
    hull = dphmm.sensitivity.sensitivity_hull(policy, ANSWERS, within)
    assert hull.rank == 1
    assert vertex_set(hull) == {(-1, 1), (1, -1)}
    assert dphmm.sensitivity.l1_sensitivity(policy, ANSWERS, within) == 2.0
    assert dphmm.sensitivity.degree_of_protection(hull, ANSWERS, within).tolist() == [2, 2, 1]
    assert dphmm.sensitivity.exposed_states(policy, ANSWERS, within).tolist() == [4]
    joined = dphmm.sensitivity.protectable_graph(policy, ANSWERS, within)
    assert joined.edges(within).tolist() == [[1, 2], [1, 4]]
    protected = dphmm.sensitivity.sensitivity_hull(joined, ANSWERS, within)
    assert protected.volume == 6.0
    assert error(protected) == 14


def test_figure_9a(policy):
    within = states(2, 4, 5, 6)
    hull = dphmm.sensitivity.sensitivity_hull(policy, ANSWERS, within)
    assert hull.volume == 9.0
    assert error(hull) == Fraction(140, 3)
    assert dphmm.sensitivity.degree_of_protection(hull, ANSWERS, within).tolist()[0] == 3
    from_s2 = [hull.norm_fraction(ANSWERS[s] - ANSWERS[1]) for s in states(4, 5, 6)]
    assert from_s2 == [Fraction(2, 3), 1, Fraction(5, 3)]


def test_example_6_1(policy):
    within = states(3, 4, 5, 6)
    assert dphmm.sensitivity.sensitivity_hull(policy, ANSWERS, within).volume == 9.0
    assert dphmm.sensitivity.exposed_states(policy, ANSWERS, within).tolist() == [2]
    outcomes = {}
    for partner in states(4, 5, 6):
        joined = dphmm.sensitivity.protectable_graph(policy, ANSWERS, within, method=lambda s, others, p=partner: p)
        hull = dphmm.sensitivity.sensitivity_hull(joined, ANSWERS, within)
        outcomes[partner + 1] = (hull.volume, error(hull), float(largest_norm(hull, ANSWERS[within])))
    assert [outcomes[s][:2] for s in (4, 5, 6)] == [(14.0, 54), (16.0, 47), (20.0, 50)]
    assert [outcomes[s][2] for s in (4, 5)] == [2.0, 2.0]
    assert outcomes[6][2] == pytest.approx(1.3, abs=0.05)


def test_example_6_1_methods(policy):
    within = states(3, 4, 5, 6)
    partners = {
        method: dphmm.sensitivity.protectable_graph(policy, ANSWERS, within, method=method)
        .neighbors(2, within)
        .tolist()
        for method in ("nearest", "min-volume", "min-error")
    }
    assert partners == {"nearest": [4], "min-volume": [3], "min-error": [4]}


def test_example_5_3():
    """K = conv ±{(1,0), (-1,1)}: unbounded losses per state, areas and errors, against Laplace."""
    policy = dphmm.policy.from_edges([(0, 1), (2, 3)], 4)
    hull = dphmm.sensitivity.sensitivity_hull(policy, np.array([[0, 0], [1, 0], [0, 0], [-1, 1]]))
    assert hull.volume == 2.0
    assert error(hull) == 6


def test_transition_policy_area():
    model = MarkovModel(np.full(6, 1 / 6), TRANSITION)
    policy = dphmm.policy.transition(model)
    assert policy.edges().tolist() == [[0, 1], [1, 3], [1, 4], [2, 4], [3, 5], [4, 5]]
    assert dphmm.sensitivity.sensitivity_hull(policy, ANSWERS).volume == 12.0


def test_recheck_never_joins_more_and_differs_on_1345(policy):
    """Theory (d): the only difference is C = {1,3,4,5}: once adds s1s3 and s1s4 ... recheck only one of them."""
    within = states(1, 3, 4, 5)
    once = dphmm.sensitivity.protectable_graph(policy, ANSWERS, within, recheck=False).edges(within)
    again = dphmm.sensitivity.protectable_graph(policy, ANSWERS, within).edges(within)
    assert len(again) < len(once)
    assert set(map(tuple, again)) <= set(map(tuple, once))


def test_k_norm_errs_more_than_laplace_in_three_dimensions():
    """Theory (f), erratum 1: the box ±98, ±1, ±1 from four edges; 64040 > 60000."""
    corners = np.array([[98, a, b] for a in (1, -1) for b in (1, -1)])
    answers = np.vstack([np.zeros((1, 3), dtype=int), corners])
    policy = dphmm.policy.from_edges([(0, i) for i in range(1, 5)], 5)
    hull = dphmm.sensitivity.sensitivity_hull(policy, answers)
    assert dphmm.sensitivity.l1_sensitivity(policy, answers) == 100.0
    assert hull.volume == 196 * 2 * 2
    assert error(hull) == 64040
