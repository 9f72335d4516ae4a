"""Policies of nearest states: all ties, whatever the order and however far; floats within their tolerance; refusals.

Brute force over random lattices is in test_graph.py. Needs to fail for: a tie that is cut where k are enough, a
distance told from floats, an order of states that decides, a pitch that is taken for a float.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphmm
import naive_policy as naive
from dphmm import policy
from dphmm.errors import InvalidInput
from dphmm.policy._radius import Knn
from dphmm.states.space import StateSpace


def edges(graph):
    return {tuple(edge) for edge in graph.edges().tolist()}


def test_every_state_as_near_as_the_kth_is_joined():
    """On a grid k = 1 joins all four neighbours of a cell, and none of them is picked."""
    points = np.stack(np.divmod(np.arange(25), 5), axis=1)
    assert edges(policy.knn(points, 1)) == edges(policy.radius(points, 1))
    assert edges(policy.knn(points, 5)) >= edges(policy.radius(points, 1.5))


def test_either_way():
    """9 is nobody's nearest state, and 3 is its."""
    assert edges(policy.knn([0, 1, 3, 9], 1)) == {(0, 1), (1, 2), (2, 3)}
    assert edges(policy.knn([0, 1, 3, 9], 3)) == edges(policy.complete(4))


def test_states_with_equal_answers_are_nearest():
    assert edges(policy.knn([4, 4, 7, 9], 1)) == {(0, 1), (2, 3)}
    assert edges(policy.knn([4, 4, 4, 5], 1)) == {(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)}
    assert edges(policy.knn(np.zeros((3, 2), dtype=int), 1)) == edges(policy.complete(3))


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_the_order_of_states_decides_nothing(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 20))
    points = rng.integers(-3, 4, (n, int(rng.integers(1, 4))))
    k = int(rng.integers(1, n))
    order = rng.permutation(n)
    again = {tuple(sorted((int(order[a]), int(order[b])))) for a, b in edges(policy.knn(points[order], k))}
    assert again == edges(policy.knn(points, k))


def test_ties_are_those_of_the_printed_decimals():
    """0.1 + 0.2 is 0.3: in floats the two sides of the state at 0.3 differ."""
    space = StateSpace(np.array([0, 3, 6]) * 0.1, pitch=0.1)
    assert space.is_lattice
    assert edges(policy.knn(space, 1)) == {(0, 1), (1, 2)}


@pytest.mark.parametrize(("shift", "near"), [(-1, {3, 4}), (0, {1, 2, 3, 4}), (1, {1, 2})])
def test_distances_whose_squares_do_not_fit_64_bits_are_exact(shift, near):
    """Legs m*m - n*n and 2mn, hypotenuse m*m + n*n: state 0 has two pairs of twins, equally far or one unit nearer."""
    m, n = 9_000_001, 4_000_002
    pitch = np.array([m * m - n * n, 2 * m * n, m * m + n * n + shift], dtype=float)
    space = StateSpace(np.array([(0, 0, 0), (1, 1, 0), (1, 1, 0), (0, 0, 1), (0, 0, 1)]) * pitch, pitch=pitch)
    assert space.is_lattice
    assert edges(policy.knn(space, 1)) == {(0, state) for state in near} | {(1, 2), (3, 4)}


def test_many_states_come_in_runs(monkeypatch):
    points = np.random.default_rng(3).integers(0, 60, (300, 2))
    whole = edges(policy.knn(points, 4))
    monkeypatch.setattr("dphmm.policy._radius._CANDIDATES_AT_ONCE", 50)
    assert edges(policy.knn(points, 4)) == whole == naive.knn_edges(points, [1, 1], 4)


def test_floats_tie_within_their_tolerance():
    space = StateSpace(np.array([0.0, 1.0, 2.0 + 1e-13, 10.05]), pitch=0.25)
    assert not space.is_lattice
    assert {(0, 1), (1, 2)} <= edges(policy.knn(space, 1))
    apart = StateSpace(np.array([0.0, 1.0, 2.0 + 1e-11, 2.5, 10.05]), pitch=0.25)
    assert (1, 2) not in edges(policy.knn(apart, 1))


@pytest.mark.parametrize("size", [1e-90, 1.0, 1e90])
def test_floats_of_any_size(size):
    answers = np.random.default_rng(4).random((30, 2))
    expected = naive.knn_edges((answers * 2**53).astype(int).tolist(), [1, 1], 3)
    space = StateSpace(answers * size, pitch=size / 1000)
    assert not space.is_lattice
    assert edges(policy.knn(space, 3)) == expected


def test_a_described_policy_needs_its_own_answers():
    space = StateSpace(np.array([[0, 0], [1, 0], [3, 0], [3, 4]]))
    graph = policy.knn(space, 2)
    described = graph.describe()
    assert isinstance(policy.from_description(described, space), Knn)
    for field, description, other in (
        ("space", described, None),
        ("space", described, StateSpace(space.lattice * 2)),
        ("k: got 9", {**described, "k": 9}, space),
        ("space", {**described, "k": 3}, StateSpace(space.lattice * [1, 3])),
    ):
        with pytest.raises(InvalidInput, match=field):
            policy.from_description(description, other)
    assert policy.knn(space, 3).digest != graph.digest


@pytest.mark.parametrize("k", [0, -1, 4, 1.0, True, "two", None])
def test_k_is_a_whole_number_of_other_states(k):
    with pytest.raises(InvalidInput, match=r"k: got .* a whole number from 1 to 3"):
        policy.knn([0, 1, 3, 9], k)


def test_one_state_has_no_other():
    with pytest.raises(InvalidInput, match="space: got one state"):
        policy.knn([5], 1)


def test_too_many_pairs_are_refused_before_they_are_made():
    with pytest.raises(InvalidInput, match=r"k: got .* at most 50000000"):
        policy.knn(np.zeros(7100, dtype=int), 1)


def test_everybody_has_a_neighbour_and_a_release_hides_it():
    """Each state and all that are its neighbours lose at most epsilon."""
    grid = dphmm.Grid.from_bounds(13.30, 52.48, 13.36, 52.52, cell=700)
    graph = policy.knn(grid, 5)
    assert graph.has_neighbor(None).all()
    n = grid.n_states
    model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
    plan = dphmm.ReleaseSession(model, graph, grid, 1).plan
    a, b = graph.edges().T
    losses = [plan.mechanism.loss_lattice(v) for v in grid.lattice[a] - grid.lattice[b]]
    assert max(losses) == Fraction(1)
