"""How policies are made: the papers' examples, bad input, digests, descriptions."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import dphmm
from dphmm import policy
from dphmm.errors import InvalidInput
from dphmm.markov import MarkovModel
from dphmm.policy._radius import LatticeRadius, ListedRadius
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import KINDS
from dphmm.states.space import StateSpace


def test_figure_3b(answers, by_number):
    graph = policy.from_edges(by_number(23, 45, 46, 56), 6)
    rows = graph.spanning_differences(answers)
    # Example 5.1: the hull's vertices are ±(4,1), ±(3,0), ±(-1,1); (1,1) is on its boundary.
    assert {tuple(r) for r in rows} >= {(4, 1), (3, 0), (-1, 1), (-4, -1), (-3, 0), (1, -1)}
    assert graph.extreme_difference(np.array([0, 1]), answers, None)[0] == 1
    assert graph.components().tolist() == [0, 1, 1, 2, 2, 2]
    assert graph.has_neighbor().tolist() == [False, True, True, True, True, True]
    assert graph.edges([1, 2, 4]).tolist() == by_number(23)
    assert graph.neighbors(3).tolist() == [4, 5]


def test_figure_3b_by_categories(by_number):
    assert policy.categorical([0, 1, 1, 2, 2, 2]).edges().tolist() == by_number(23, 45, 46, 56)
    assert policy.categorical(["a", "b", "b", "c", "c", "c"]).edges([1, 2, 4]).tolist() == by_number(23)


def test_transition_policy_of_the_running_example(moves, by_number):
    expected = by_number(12, 24, 25, 35, 46, 56)
    model = MarkovModel(np.full(6, 1 / 6), moves)
    for given_as in (model, moves, sparse.csr_array(moves), sparse.coo_matrix(moves)):
        graph = policy.transition(given_as)
        assert graph.edges().tolist() == expected
        assert graph.digest == policy.transition(model).digest


def test_transition_ignores_stored_zeros():
    stored = sparse.csr_array((np.array([1.0, 0.0, 1.0]), np.array([0, 1, 1]), np.array([0, 2, 3])), (2, 2))
    assert policy.transition(stored).edges().shape == (0, 2)
    assert stored.nnz == 3
    tiny = np.array([[1.0, 5e-324], [0.0, 1.0]])
    assert policy.transition(tiny).edges().tolist() == [[0, 1]]


@pytest.mark.parametrize(
    "matrix",
    [np.ones((2, 3)), np.array([[1.0, np.nan], [0, 1]]), np.array([[1.0, -0.1], [0, 1]]), np.zeros((0, 0))],
)
def test_transition_refuses(matrix):
    with pytest.raises(InvalidInput, match="transition"):
        policy.transition(matrix)


def test_radius_two_and_three_open_and_closed(answers, by_number):
    # Errata 16: pairs 13, 16, 24 at distance exactly 2; 56 at 3.
    near = by_number(12, 14, 23, 26, 46)
    at_two = by_number(13, 16, 24)
    assert policy.radius(answers, 2, closed=False).edges().tolist() == sorted(near)
    assert policy.radius(answers, 2).edges().tolist() == sorted(near + at_two)
    open_three = policy.radius(answers, 3, closed=False).edges().tolist()
    closed_three = policy.radius(answers, 3).edges().tolist()
    assert [e for e in closed_three if e not in open_three] == by_number(56)


def test_radius_means_the_printed_decimals():
    # 3 * 0.1 > 0.3 in floats; 0.1 is one tenth.
    space = StateSpace(np.arange(5) * 0.1, pitch=0.1)
    assert policy.radius(space, 0.3).neighbors(0).tolist() == [1, 2, 3]
    assert policy.radius(space, 0.3, closed=False).neighbors(0).tolist() == [1, 2]
    assert policy.radius(space, "0.3").digest == policy.radius(space, Fraction(3, 10)).digest


def test_radius_decides_on_answers_as_given():
    # Snapping moves these by up to half a pitch; the pair is 1.0 apart only once snapped.
    space = StateSpace(np.array([0.0, 1.04, 2.0]), pitch=0.5)
    assert not space.is_lattice
    graph = policy.radius(space, 1)
    assert isinstance(graph, ListedRadius)
    assert graph.edges().tolist() == [[1, 2]]


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=50)
def test_radius_of_floats_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    answers = rng.random((12, int(rng.integers(1, 4)))) * 7
    answers[3] = answers[4]
    space = StateSpace(answers, pitch=0.25)
    r = float(rng.choice([0.5, 1, 3]))
    distance = np.sqrt(((answers[:, None] - answers[None]) ** 2).sum(axis=2))
    expected = np.argwhere(np.triu(distance <= r, k=1)).tolist()
    assert policy.radius(space, r).edges().tolist() == expected
    constraint = Constraint.surrogated(None, rng.random(12) < 0.7, space)
    by_edges = policy.from_edges(expected, 12)
    assert np.array_equal(policy.radius(space, r).edges(constraint), by_edges.edges(constraint))


def test_radius_boundary_of_floats_is_tolerant():
    answers = np.array([(0.0, 0.0), (0.1 + 0.2, 0.0), (10.05, 3.01)])
    space = StateSpace(answers, pitch=0.25)
    assert not space.is_lattice
    assert policy.radius(space, 0.3).edges().tolist() == [[0, 1]]
    assert policy.radius(space, 0.3, closed=False).edges().tolist() == []
    just_below = StateSpace(np.array([0.0, 0.3 * (1 - 1e-13), 10.05]), pitch=0.25)
    assert policy.radius(just_below, 0.3, closed=False).edges().tolist() == []
    just_above = StateSpace(np.array([0.0, 1 + 1e-12, 10.05]), pitch=0.25)
    assert policy.radius(just_above, 1).edges().tolist() == [[0, 1]]
    well_below = StateSpace(np.array([0.0, 0.3 * (1 - 1e-11), 10.05]), pitch=0.25)
    assert policy.radius(well_below, 0.3, closed=False).edges().tolist() == [[0, 1]]


@pytest.mark.parametrize("closed", [True, False])
def test_sparse_lattices_list_pairs_and_agree(closed, monkeypatch):
    rng = np.random.default_rng(3)
    points = rng.integers(0, 30, (40, 2))
    expected = policy.radius(points, 5, closed=closed)
    assert isinstance(expected, LatticeRadius)
    monkeypatch.setattr("dphmm.policy._radius._OFFSETS", 0)
    monkeypatch.setattr("dphmm.policy._radius._OFFSETS_PER_STATE", 0)
    listed = policy.radius(points, 5, closed=closed)
    assert isinstance(listed, ListedRadius)
    assert np.array_equal(listed.edges(), expected.edges())
    assert listed.digest == expected.digest


def test_far_flung_lattices_are_exact():
    big = 2**27
    points = np.array([(0, 0, 0), (big, 0, 0), (0, big, 1), (big, big, big)])
    graph = policy.radius(points, big)
    assert isinstance(graph, ListedRadius)
    assert graph.edges().tolist() == [[0, 1]]
    assert policy.radius(points, big, closed=False).edges().tolist() == []


def test_pitches_with_long_decimals_are_exact():
    space = StateSpace(np.array([(0, 0), (3, 0), (0, 4), (3, 4)]) * 0.123456789012345, pitch=0.123456789012345)
    r = Fraction("0.123456789012345") * 5
    assert policy.radius(space, r).edges().shape == (6, 2)
    assert policy.radius(space, r, closed=False).edges().tolist() == [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert policy.radius(space, r - Fraction(1, 10**30)).edges().shape == (4, 2)


@pytest.mark.parametrize("n", [4_000_002, 4_000_004, 7_000_002, 8_999_984])
def test_pitches_whose_squares_do_not_fit_64_bits_are_exact(n):
    # Legs m*m - n*n and 2mn, hypotenuse m*m + n*n: the diagonal has exactly the length r.
    m = 9_000_001
    pitch = np.array([m * m - n * n, 2 * m * n], dtype=float)
    assert math.gcd(m * m - n * n, 2 * m * n) == 1
    space = StateSpace(np.array([(0, 0), (1, 1), (1, 0)]) * pitch, pitch=pitch)
    assert space.is_lattice
    r = m * m + n * n
    assert policy.radius(space, r).edges().tolist() == [[0, 1], [0, 2], [1, 2]]
    assert policy.radius(space, r, closed=False).edges().tolist() == [[0, 2], [1, 2]]
    assert policy.radius(space, r - Fraction(1, 10**40)).edges().tolist() == [[0, 2], [1, 2]]


def test_impossible_twins_are_nobodys_neighbours():
    graph = policy.radius(np.array([(0, 0), (0, 0), (5, 0)]), 1)
    constraint = Constraint(np.array([True, False, True]), np.array([True, False, True]), np.array([0, 2, 2]))
    assert not graph.has_neighbor(constraint).any()
    assert graph.edges(constraint).tolist() == []
    lower = policy.radius(np.array([(5, 0), (0, 0), (0, 0)]), 1)
    constraint = Constraint(np.array([True, True, False]), np.array([True, True, False]), np.array([0, 1, 0]))
    assert not lower.has_neighbor(constraint).any()
    assert lower.components(constraint).tolist() == [0, 1, -1]


def test_only_differences_of_answers_matter(answers):
    assert policy.radius(answers + np.array([3, -9]), 2).digest == policy.radius(answers, 2).digest
    assert policy.radius(answers * [2, 1], 2).digest != policy.radius(answers, 2).digest


@pytest.mark.parametrize("r", [0, -1, float("nan"), float("-inf"), True, "far", None, "1e-301", "1e301", 0.0])
def test_radius_is_positive(answers, r):
    with pytest.raises(InvalidInput, match="r: got"):
        policy.radius(answers, r)


def test_radius_refuses_floats_and_nonsense(answers):
    with pytest.raises(InvalidInput, match="StateSpace"):
        policy.radius(answers + 0.5, 1)
    with pytest.raises(InvalidInput, match="closed"):
        policy.radius(answers, 1, closed="yes")


def test_too_many_pairs_are_refused_before_they_are_made():
    space = StateSpace(np.random.default_rng(0).random(11_000), pitch=0.001)
    with pytest.raises(InvalidInput, match="smaller radius"):
        policy.radius(space, 2)


@pytest.mark.parametrize("labels", [[], [1, None], [1.0, float("nan")], [[1], [2]], np.ones((2, 2))])
def test_categorical_refuses(labels):
    with pytest.raises(InvalidInput, match="labels"):
        policy.categorical(labels)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, None, 10**9])
def test_complete_refuses(n):
    with pytest.raises(InvalidInput):
        policy.complete(n)
    with pytest.raises(InvalidInput):
        policy.from_edges([], n)


def test_self_loops_protect_nothing():
    graph = policy.from_edges([(0, 0), (1, 2), (2, 1), (1, 1)], 3)
    assert graph.edges().tolist() == [[1, 2]]
    assert graph.has_neighbor().tolist() == [False, True, True]
    assert graph.notes == ("2 edges from a state to itself were dropped: they protect nothing",)
    assert policy.from_edges([(1, 2)], 3).notes == ()
    assert graph.union(policy.complete(3)).notes == graph.notes


@pytest.mark.parametrize("edge", [(0, 3), (-1, 0)])
def test_unknown_states_name_the_edge(edge):
    with pytest.raises(InvalidInput, match=r"edges\[1\]: got .* states from 0 to 2"):
        policy.from_edges([(0, 1), edge], 3)


@pytest.mark.parametrize("edges", [[(0, 1, 2)], [0, 1], [(0.0, 1.0)], [(True, False)], [("0", "1")]])
def test_from_edges_refuses_other_shapes(edges):
    with pytest.raises(InvalidInput, match="edges"):
        policy.from_edges(edges, 3)


def test_from_adjacency():
    matrix = np.array([[0, 1, 0], [1, 1, 0], [0, 0, 0]])
    for given_as in (
        matrix,
        matrix.astype(bool),
        matrix.astype(float),
        sparse.csr_array(matrix),
        matrix.tolist(),
    ):
        graph = policy.from_adjacency(given_as)
        assert graph.edges().tolist() == [[0, 1]]
        assert len(graph.notes) == 1


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        ([[0, 1], [0, 0]], r"edge \(0, 1\) without \(1, 0\)"),
        ([[0, 0, 1], [0, 0, 0], [0, 1, 0]], r"edge \(0, 2\) without \(2, 0\)"),
        ([[0, np.nan], [np.nan, 0]], r"adjacency\[0, 1\]: got nan"),
        ([[0, 0.5], [0.5, 0]], r"adjacency\[0, 1\]: got 0.5"),
        ([[0, 1, 0]], "square"),
        ([["a"]], "adjacency"),
    ],
)
def test_from_adjacency_refuses(matrix, message):
    with pytest.raises(InvalidInput, match=message):
        policy.from_adjacency(matrix)


def test_from_networkx():
    space = StateSpace(np.arange(4), names=["home", "work", "gym", "park"])
    graph = nx.Graph([("home", "work"), ("gym", "home"), (2, 3)])
    assert policy.from_networkx(graph, space).edges().tolist() == [[0, 1], [0, 2], [2, 3]]
    both = nx.DiGraph([(0, 1), (1, 0)])
    assert policy.from_networkx(both, space).edges().tolist() == [[0, 1]]
    multi = nx.MultiGraph([(0, 1), (0, 1)])
    assert policy.from_networkx(multi, 4).edges().tolist() == [[0, 1]]
    assert policy.from_networkx(nx.path_graph(4), 4).digest == policy.from_edges([(2, 3), (1, 2), (1, 0)], 4).digest
    ones = nx.Graph()
    ones.add_edge(0, 1, weight=1.0)
    assert policy.from_networkx(ones, 4).edges().tolist() == [[0, 1]]


UNKNOWN = {("home", "moon"): "moon", (0, 7): "7", (0, 1.5): "1.5", (0, True): "True", (0, (1, 2)): r"\(1, 2\)"}
WEIGHTS = [float("nan"), 2, 0, -1, None, "heavy", True]


@pytest.mark.parametrize(
    ("edge", "message"),
    [*UNKNOWN.items(), *(((0, 1, {"weight": weight}), "weight") for weight in WEIGHTS)],
)
def test_from_networkx_refuses(edge, message):
    with pytest.raises(InvalidInput, match=message):
        policy.from_networkx(nx.Graph([edge]), StateSpace(np.arange(2), names=["home", "work"]))


def test_union_of_unions():
    a, b, c = policy.from_edges([(0, 1)], 4), policy.from_edges([(2, 3)], 4), policy.categorical([0, 0, 1, 1])
    assert policy.union(a, b, c).digest == c.union(b).union(a.union(b)).digest
    assert a.union(a) is a
    assert len(a.union(b).union(c).parts) == 3
    with pytest.raises(InvalidInput, match="one number of states"):
        a.union(policy.complete(5))
    with pytest.raises(InvalidInput, match="policies"):
        a.union("complete")
    with pytest.raises(InvalidInput, match="policies"):
        policy.union()


def example(kind, answers, moves):
    """One policy of each kind, and another that must not look the same."""
    return {
        "complete": lambda: (policy.complete(6), policy.complete(7)),
        "categorical": lambda: (policy.categorical("abbccc"), policy.categorical("aabccc")),
        "radius": lambda: (policy.radius(answers, 2), policy.radius(answers, 2, closed=False)),
        "knn": lambda: (policy.knn(answers, 1), policy.knn(answers, 3)),
        "transition": lambda: (policy.transition(moves), policy.transition(moves.T)),
        "edges": lambda: (policy.from_edges([(0, 1)], 6), policy.from_edges([(0, 2)], 6)),
        "union": lambda: (
            policy.radius(answers, 2).union(policy.transition(moves)),
            policy.radius(answers, 2).union(policy.complete(6)),
        ),
    }[kind]()


@pytest.mark.parametrize("kind", KINDS)
def test_descriptions_rebuild(kind, answers, moves):
    graph, other = example(kind, answers, moves)
    described = json.loads(json.dumps(graph.describe()))
    assert described["kind"] == kind == graph.kind
    rebuilt = policy.from_description(described, StateSpace(answers), moves)
    assert rebuilt.digest == graph.digest != other.digest
    assert np.array_equal(rebuilt.edges(), graph.edges())
    assert str(graph.n_states) in repr(graph)


@pytest.mark.parametrize("kind", KINDS)
def test_descriptions_are_checked(kind, answers, moves):
    graph, _ = example(kind, answers, moves)
    described = graph.describe()
    for broken in (
        {key: value for key, value in described.items() if key != "n_states"} | {"more": 1},
        {**described, "n_states": "six"},
        {"kind": kind},
        {**described, "kind": "nobody"},
        {**described, "kind": ["complete"]},
        [described],
    ):
        with pytest.raises(InvalidInput):
            policy.from_description(broken, StateSpace(answers), moves)


def test_other_spaces_and_models_are_refused(answers, moves):
    near, follow = policy.radius(answers, 2).describe(), policy.transition(moves).describe()
    for description, space, model, field in (
        (near, StateSpace(answers * 2), None, "space"),
        (near, None, None, "space"),
        (follow, None, moves.T, "model"),
        (follow, None, None, "model"),
    ):
        with pytest.raises(InvalidInput, match=field):
            policy.from_description(description, space, model)
    with pytest.raises(InvalidInput, match="r: got"):
        policy.from_description({**near, "r": "1e999999999"}, StateSpace(answers), None)


def test_unions_are_flat_when_rebuilt():
    nested = {"kind": "union", "n_states": 2, "parts": []}
    for _ in range(5000):
        nested = {"kind": "union", "n_states": 2, "parts": [nested]}
    with pytest.raises(InvalidInput, match="union inside a union"):
        policy.from_description(nested)
    with pytest.raises(InvalidInput):
        policy.from_description({"kind": "union", "n_states": 2, "parts": "ab"})
    with pytest.raises(InvalidInput):
        policy.from_description({"kind": "union", "n_states": 2, "parts": [1]})


@given(st.permutations(range(8)))
@settings(max_examples=25)
def test_order_of_input_does_not_matter(order):
    edges = np.array([(0, 1), (1, 2), (3, 4), (5, 1), (0, 5), (2, 4), (3, 5), (1, 4)])
    flipped = edges[order]
    flipped[::2] = flipped[::2, ::-1]
    assert policy.from_edges(flipped, 6).digest == policy.from_edges(edges, 6).digest
    labels = np.array([0, 1, 0, 2, 1, 2, 2, 0])
    renamed = [f"name {order[label]}" for label in labels]
    assert policy.categorical(renamed).digest == policy.categorical(labels).digest


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="nothing"):
        policy.nothing  # noqa: B018


def test_policies_cannot_change(answers, moves):
    space = StateSpace(answers * 1.01, pitch=0.5)
    labels = np.array([0, 0, 1, 1, 2, 2])
    graphs = [
        policy.from_edges([(0, 1)], 6),
        policy.categorical(labels),
        policy.transition(moves),
        policy.complete(6),
    ]
    graphs += [policy.radius(space, 2), policy.radius(answers, 2)]
    for graph in graphs:
        arrays = [value for value in vars(graph).values() if isinstance(value, np.ndarray)]
        assert arrays
        assert not any(array.flags.writeable for array in arrays)
    labels[0] = 2
    assert graphs[1].edges().tolist() == [[0, 1], [2, 3], [4, 5]]


@pytest.mark.parametrize("seed", range(20))
def test_areas_join_every_two_states_of_one_and_no_others(seed):
    """Areas that overlap, are given twice, or have one state; in any order they are the same policy."""
    rng = np.random.default_rng(seed)
    n = 12
    drawn = [rng.choice(n, rng.integers(1, 6), replace=False) for _ in range(rng.integers(1, 6))]
    policy = dphmm.policy.areas(drawn, n)
    pairs = {(i, j) for area in drawn for i in area.tolist() for j in area.tolist() if i < j}
    assert {tuple(pair) for pair in policy.edges().tolist()} == pairs
    again = [drawn[k][::-1] for k in rng.permutation(len(drawn))]
    assert dphmm.policy.areas([*again, drawn[0]], n).digest == policy.digest


@pytest.mark.parametrize("wrong", [[], [[]], [[0, 12]], [[-1, 2]]])
def test_areas_are_of_states_that_there_are(wrong):
    with pytest.raises(InvalidInput, match="areas: got"):
        dphmm.policy.areas([np.array(one, dtype=np.int64) for one in wrong], 12)
