"""Degrees of protection and Algorithms 1 and 3 against brute force; what min-error is for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphmm
import naive
from dphmm.errors import InvalidInput, Unprotectable
from dphmm.policy.constraint import Constraint
from dphmm.sensitivity.protection import degree_among


@st.composite
def instances(draw, span=5):
    n = draw(st.integers(2, 9))
    answers = np.array(draw(st.lists(st.tuples(*[st.integers(-span, span)] * 2), min_size=n, max_size=n)))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=8, unique=True))
    states = sorted(draw(st.sets(st.integers(0, n - 1), min_size=2)))
    return answers, edges, states


@given(instances())
@settings(max_examples=120, deadline=None)
def test_degree_equals_the_definition(instance):
    answers, edges, states = instance
    within = [(a, b) for a, b in edges if a in states and b in states]
    hull = dphmm.sensitivity_hull(dphmm.policy.from_edges(edges, len(answers)), answers, states)
    found = dphmm.degree_of_protection(hull, answers, states)
    assert found.tolist() == naive.degree(naive.differences(within, answers), answers, states)


@given(instances(), st.booleans())
@settings(max_examples=120, deadline=None)
def test_algorithm_1(instance, recheck):
    answers, edges, states = instance
    policy = dphmm.policy.from_edges(edges, len(answers))
    joined = dphmm.protectable_graph(policy, answers, states, recheck=recheck)
    expected = naive.algorithm_1(edges, answers, states, recheck)
    within = {(a, b) for a, b in edges if a in states and b in states}
    wanted = within | {(min(p), max(p)) for p in expected}
    assert set(map(tuple, joined.edges(states).tolist())) == wanted
    assert len(dphmm.exposed_states(joined, answers, states)) == 0


@given(instances(span=4))
@settings(max_examples=80, deadline=None)
def test_algorithm_3(instance):
    answers, edges, states = instance
    policy = dphmm.policy.from_edges(edges, len(answers))
    joined = dphmm.protectable_graph(policy, answers, states, method="min-volume")
    within = {(a, b) for a, b in edges if a in states and b in states}
    expected = within | {(min(p), max(p)) for p in naive.algorithm_3(edges, answers, states)}
    assert set(map(tuple, joined.edges(states).tolist())) == expected


@pytest.mark.parametrize("seed", range(40))
def test_min_error_of_a_single_exposed_state_is_the_least(seed):
    """A clique and one far state: whatever its partner, the hull is planar, and the least exact error wins."""
    rng = np.random.default_rng(seed)
    answers = np.vstack([[0, 0], [2, 0], [0, 2], rng.integers(-3, 4, size=(3, 2)), rng.integers(9, 14, size=(1, 2))])
    clique = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    policy = dphmm.policy.from_edges(clique, 7)
    error = {o: naive.second_moment(naive.differences([*clique, (6, o)], answers)) for o in range(6)}
    joined = dphmm.protectable_graph(policy, answers, method="min-error")
    assert dphmm.exposed_states(policy, answers).tolist() == [6]
    assert joined.neighbors(6).tolist() == [min(error, key=lambda o: (error[o], o))]


def test_dense_and_pairwise_degrees_agree_on_a_grid():
    rng = np.random.default_rng(3)
    x, y = np.meshgrid(np.arange(25), np.arange(20))
    answers = np.column_stack([x.ravel(), y.ravel()])
    states = np.flatnonzero(rng.random(500) < 0.6)
    space = dphmm.StateSpace(answers)
    hull = dphmm.sensitivity_hull(dphmm.policy.radius(space, 4), space, states)
    dense = dphmm.degree_of_protection(hull, space, states)
    points = answers[states]
    plain = [int(hull.contains_lattice(points - p).sum()) for p in points]
    assert dense.tolist() == plain


def test_degree_on_far_scattered_answers():
    answers = np.array([[0, 0], [10**8, 0], [10**8 + 1, 0], [0, 10**8]])
    hull = dphmm.sensitivity_hull(dphmm.policy.from_edges([(1, 2), (0, 3)], 4), answers)
    assert degree_among(hull, answers, np.arange(4), np.arange(4)).tolist() == [2, 2, 2, 2]


def test_twins_are_never_exposed():
    """Theory (c): equal answers hide each other although the hull is a point."""
    answers = np.array([[0, 0], [0, 0], [5, 5], [5, 5]])
    policy = dphmm.policy.from_edges([], 4)
    hull = dphmm.sensitivity_hull(policy, answers)
    assert dphmm.degree_of_protection(hull, answers, None).tolist() == [2, 2, 2, 2]
    assert dphmm.exposed_states(policy, answers).tolist() == []
    assert len(dphmm.protectable_graph(policy, answers).edges()) == 0


def test_states_of_the_support_count_through_their_surrogate():
    space = dphmm.StateSpace(np.array([[0], [1], [9]]))
    policy = dphmm.policy.from_edges([], 3)
    within = Constraint.surrogated(np.array([True, True, True]), np.array([True, False, True]), space)
    hull = dphmm.sensitivity_hull(policy, space, within)
    assert dphmm.degree_of_protection(hull, space, within).tolist() == [2, 2, 1]
    assert dphmm.exposed_states(policy, space, within).tolist() == [2]


def test_empty_policy_joins_everybody():
    answers = np.array([[0, 0], [3, 0], [0, 4], [9, 9]])
    joined = dphmm.protectable_graph(dphmm.policy.from_edges([], 4), answers)
    assert len(dphmm.exposed_states(joined, answers)) == 0


def test_a_single_state_cannot_be_protected():
    with pytest.raises(Unprotectable, match="constraint"):
        dphmm.protectable_graph(dphmm.policy.complete(3), np.array([[0], [1], [2]]), [1])


def test_ties_go_to_the_lowest_number():
    answers = np.array([[0, 0], [2, 0], [0, 2], [-2, 0]])
    joined = dphmm.protectable_graph(dphmm.policy.from_edges([], 4), answers, [0, 1, 2])
    assert [0, 1] in joined.edges([0, 1, 2]).tolist()


def test_nearest_is_in_answer_units():
    """A step of 1 on a coarse axis is farther than 3 on a fine one."""
    space = dphmm.StateSpace([[0.0, 0.0], [10.0, 0.0], [0.0, 3.0]], pitch=[10.0, 1.0])
    joined = dphmm.protectable_graph(dphmm.policy.from_edges([], 3), space)
    assert [0, 2] in joined.edges().tolist()


def test_a_callable_may_not_choose_the_state_itself():
    with pytest.raises(InvalidInput, match="partner"):
        dphmm.protectable_graph(
            dphmm.policy.from_edges([], 2), np.array([[0], [4]]), method=lambda state, others: state
        )


def test_unknown_method_lists_the_known():
    with pytest.raises(InvalidInput, match="nearest, min-volume, min-error"):
        dphmm.protectable_graph(dphmm.policy.complete(2), np.array([[0], [4]]), method="best")
