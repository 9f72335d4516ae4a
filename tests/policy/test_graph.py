"""Every question of every kind of policy against brute force over its contracted edges."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_policy as naive
from dphmm import policy
from dphmm.errors import InvalidInput
from dphmm.policy._points import Cells, hull_points
from dphmm.policy._radius import _autocorrelated
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import KINDS, projected, refuse_too_many
from dphmm.states.space import StateSpace
from random_seeds import seeds


def make_complete(rng, points):
    return policy.complete(len(points)), naive.complete_edges(len(points))


def make_categorical(rng, points):
    labels = rng.integers(0, 3, len(points))
    return policy.categorical(labels), naive.label_edges(labels)


def make_transition(rng, points):
    n = len(points)
    matrix = (rng.random((n, n)) < rng.choice([0.1, 0.3])) * rng.random((n, n))
    return policy.transition(matrix), naive.transition_edges(matrix)


def make_radius(rng, points):
    pitch = rng.choice([1.0, 0.3, 2.5], points.shape[1])
    r, closed = float(rng.choice([0.3, 1, 1.5, 2.5, 5, 13])), bool(rng.integers(2))
    space = StateSpace(points * pitch, pitch=pitch)
    assert space.is_lattice
    edges = naive.radius_edges(space.lattice, [Fraction(str(p)) for p in pitch], Fraction(str(r)), closed)
    return policy.radius(space, r, closed=closed), edges


def make_knn(rng, points):
    if len(points) == 1:
        return policy.complete(1), set()
    pitch = rng.choice([1.0, 0.3, 2.5], points.shape[1])
    k = int(rng.integers(1, len(points)))
    space = StateSpace(points * pitch, pitch=pitch)
    edges = naive.knn_edges(space.lattice, [Fraction(str(p)) for p in pitch], k)
    return policy.knn(space, k), edges


def make_edges(rng, points):
    n = len(points)
    pairs = rng.integers(0, n, (int(rng.integers(0, 2 * n)), 2))
    return policy.from_edges(pairs, n), {(min(a, b), max(a, b)) for a, b in pairs.tolist() if a != b}


def make_union(rng, points):
    (a, first), (b, second) = make_radius(rng, points), make_edges(rng, points)
    return a.union(b), first | second


MAKERS = {
    "complete": make_complete,
    "categorical": make_categorical,
    "transition": make_transition,
    "radius": make_radius,
    "knn": make_knn,
    "edges": make_edges,
    "union": make_union,
}


def test_every_kind_is_questioned():
    assert MAKERS.keys() == KINDS.keys()
    assert [(kind, cls) for kind, cls in KINDS.items() if kind != cls.kind] == []


def random_points(rng):
    n, d = int(rng.integers(1, 12)), int(rng.integers(1, 4))
    points = rng.integers(-3, 4, (n, d))
    if rng.random() < 0.3:
        points[:, -1] = points[:, 0]
    return points


def random_constraint(rng, points):
    n = len(points)
    support = rng.random(n) < rng.choice([0.5, 0.9, 1.0])
    if rng.random() < 0.4 or not support.any():
        return Constraint.of(support, n)
    plan = support & (rng.random(n) < 0.6)
    if not plan.any():
        plan[np.flatnonzero(support)[0]] = True
    if rng.random() < 0.5:
        return Constraint.surrogated(support, plan, StateSpace(points))
    surrogate = rng.choice(np.flatnonzero(plan), n)
    surrogate[plan] = np.flatnonzero(plan)
    surrogate[~support & (rng.random(n) < 0.5)] = -1
    return Constraint(support, plan, surrogate.astype(np.int64))


def directions(rng, d):
    return [*np.eye(d, dtype=np.int64), *rng.integers(-4, 5, (8, d)), rng.integers(-(2**40), 2**40, d)]


def check_hull(graph, expected, lattice, constraint, rng):
    rows = naive.differences(expected, lattice)
    few = graph.spanning_differences(lattice, constraint)
    assert {tuple(r) for r in few} <= {tuple(r) for r in rows}
    assert {tuple(r) for r in few} == {tuple(-r) for r in few}
    one_pass = graph.hull_candidates(lattice, constraint)
    if one_pass is not None:
        assert {tuple(r) for r in one_pass if r.any()} <= {tuple(r) for r in rows}
    for direction in directions(rng, lattice.shape[1]):
        if one_pass is not None:
            assert naive.largest(direction, [*one_pass, *-one_pass]) == naive.largest(direction, rows)
        value, difference = graph.extreme_difference(direction, lattice, constraint)
        assert isinstance(value, int)
        assert value == naive.largest(direction, rows) == naive.largest(direction, few)
        assert value == naive.largest(direction, [difference])
        assert not len(rows) or value == 0 or tuple(difference) in {tuple(r) for r in rows}


@pytest.mark.parametrize("kind", MAKERS)
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_brute_force(kind, seed):
    rng = np.random.default_rng(seed)
    points = random_points(rng)
    graph, edges = MAKERS[kind](rng, points)
    constraint = random_constraint(rng, points)
    expected = naive.contracted(edges, constraint)
    n = len(points)
    assert graph.edges().tolist() == sorted(map(list, edges))
    assert graph.edges(constraint).tolist() == sorted(map(list, expected))
    for i in range(n):
        near = sorted({a + b - i for a, b in expected if i in (a, b)})
        assert graph.neighbors(i, constraint).tolist() == near
    has = graph.has_neighbor(constraint)
    assert has.tolist() == [any(i in edge for edge in expected) for i in range(n)]
    assert graph.isolated(constraint).tolist() == np.flatnonzero(constraint.plan & ~has).tolist()
    assert graph.components(constraint).tolist() == naive.components(expected, constraint).tolist()
    check_hull(graph, expected, points, constraint, rng)
    check_hull(graph, expected, points + 7, constraint, rng)
    other = rng.integers(-5, 6, (n, int(rng.integers(1, 4))))
    check_hull(graph, expected, other, constraint, rng)
    assert len(graph.digest) == 64


@pytest.mark.parametrize("kind", MAKERS)
def test_exact_beyond_64_bits(kind):
    rng = np.random.default_rng(5)
    points = rng.integers(-3, 4, (9, 2))
    graph, edges = MAKERS[kind](rng, points)
    wide = rng.integers(-(2**53), 2**53, (9, 2))
    constraint = Constraint.of(None, 9)
    rows = naive.differences(naive.contracted(edges, constraint), wide)
    for _ in range(10):
        direction = rng.integers(-(2**60), 2**60, 2)
        assert graph.extreme_difference(direction, wide, constraint)[0] == naive.largest(direction, rows)
        longer = np.array([int(x) * 2**20 + 1 for x in direction], dtype=object)
        assert graph.extreme_difference(longer, wide, constraint)[0] == naive.largest(longer, rows)


@pytest.mark.parametrize("kind", MAKERS)
def test_sizes_must_fit(kind):
    rng = np.random.default_rng(5)
    points = rng.integers(-3, 4, (9, 2))
    graph, _ = MAKERS[kind](rng, points)
    for call in (
        lambda: graph.edges(Constraint.of(None, 8)),
        lambda: graph.edges(np.ones(8, dtype=bool)),
        lambda: graph.has_neighbor([9]),
        lambda: graph.extreme_difference(np.array([1, 0]), points[:8], None),
        lambda: graph.extreme_difference(np.array([1, 0, 0]), points, None),
        lambda: graph.extreme_difference(np.array([0.5, 0]), points, None),
        lambda: graph.spanning_differences(points + 0.5),
        lambda: graph.union(policy.complete(8)),
        lambda: graph.neighbors(9),
        lambda: graph.neighbors(-1),
        lambda: graph.neighbors(True),
    ):
        with pytest.raises(InvalidInput) as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.slow
@pytest.mark.parametrize("surrogates", ["themselves", "nearest", "any"])
@pytest.mark.parametrize("kind", MAKERS)
def test_one_pass_over_a_whole_grid(kind, surrogates):
    """Planar grids are what the one pass is for: it answers for every kind, for large cliques too.

    Nearest surrogates come in order along a line of the grid; nothing may rest on that.
    """
    rng = np.random.default_rng(5)
    points = np.argwhere(np.ones((11, 9)))
    graph, expected = MAKERS[kind](rng, points)
    plan = rng.random(99) < 0.2
    constraint = Constraint.of(None, 99)
    if surrogates == "nearest":
        constraint = Constraint.surrogated(None, plan, StateSpace(points))
    elif surrogates == "any":
        others = np.where(plan, np.arange(99), rng.choice(np.flatnonzero(plan)[:3], 99))
        constraint = Constraint(np.ones(99, dtype=bool), plan, others)
    edges = naive.contracted(expected, constraint)
    assert graph.hull_candidates(points, constraint) is not None
    check_hull(graph, edges, points, constraint, rng)
    assert np.flatnonzero(graph.has_neighbor(constraint)).tolist() == sorted({s for pair in edges for s in pair})


@seeds(40)
def test_segments_of_a_grid_have_the_extreme_differences_of_all_edges(seed):
    """Of each x the least and the largest y, and who has a neighbour: surrogates nearest, falling along a line, or any.

    It could fail where a segment, or a stretch of rising ones, is cut too early or too late, and where a plan state has
    a neighbour only beside those that it stands for.
    """
    rng = np.random.default_rng(seed)
    points = np.argwhere(np.ones(rng.integers(2, 8, 2)))
    n = len(points)
    graph = policy.radius(points, float(rng.choice([1, 1.5, 2, 3])))
    support = rng.random(n) < 0.8
    support[rng.integers(n)] = True
    plan = support & (rng.random(n) < rng.choice([0.05, 0.5]))
    plan[rng.choice(np.flatnonzero(support))] = True
    constraint = Constraint.surrogated(support, plan, StateSpace(points))
    order = rng.integers(3)
    if order > 0:
        others = rng.choice(np.flatnonzero(plan), n)
        others = np.sort(others)[::-1] if order == 1 else others
        constraint = Constraint(support, plan, np.where(plan, np.arange(n), others))
    edges = naive.contracted(graph.edges().tolist(), constraint)
    assert columns(graph.hull_candidates(points, constraint)) == columns(naive.differences(edges, points))
    assert np.flatnonzero(graph.has_neighbor(constraint)).tolist() == sorted({s for pair in edges for s in pair})


def columns(differences):
    """The least and the largest y of the differences at each x > 0, and the largest of those at x = 0."""
    found = {}
    for x, y in differences.tolist():
        if x > 0 or (x == 0 and y > 0):
            least, largest = found.get(x, (y, y))
            found[x] = (min(least, y), max(largest, y))
    return {x: ends if x else ends[1] for x, ends in found.items()}


def test_answers_in_too_many_columns_are_left_to_asking():
    points = np.stack([np.arange(40) ** 3, np.arange(40)], axis=1)
    assert policy.complete(40).hull_candidates(points) is None
    assert policy.complete(40).hull_candidates(points[:, :1]) is None
    assert policy.complete(40).hull_candidates(points % 7) is not None


def test_listing_is_bounded(monkeypatch):
    with pytest.raises(InvalidInput, match="pairs of states"):
        policy.complete(20_000).edges()
    assert policy.complete(20_000).neighbors(7).size == 19_999
    dense = policy.radius(np.argwhere(np.ones((11, 11))), 4)
    twins = policy.radius(np.zeros((30, 1), dtype=int), 1)
    monkeypatch.setattr("dphmm.policy.graph.MOST_EDGES", 400)
    for graph in (dense, twins):
        with pytest.raises(InvalidInput, match="pairs of states"):
            graph.edges()
    # Only what is listed at once is bounded, not what is computed with.
    plan = Constraint.surrogated(None, [0, 60, 120], StateSpace(np.argwhere(np.ones((11, 11)))))
    assert dense.spanning_differences(dense.points, plan).size


def test_as_many_pairs_are_listed_as_is_said():
    refuse_too_many(50_000_000, "policy", "fewer")
    with pytest.raises(InvalidInput, match=r"^policy: got 50000001 pairs of states; expected at most 50000000: fewer"):
        refuse_too_many(50_000_001, "policy", "fewer")


@pytest.mark.parametrize("seed", range(5))
def test_far_points_along_the_diagonal_keep_their_hull(seed):
    """Their coordinates are nearly equal and their products pass 64 bits: only the span of each axis tells."""
    rng = np.random.default_rng(seed)
    along, across = rng.integers(0, 2**40, 30), rng.integers(-(2**27), 2**27, 30)
    points = np.stack([along, along + across], axis=1)
    few = hull_points(points)
    assert {tuple(p) for p in few} <= {tuple(p) for p in points}
    directions = [*rng.integers(-50, 51, (20, 2)), *np.stack([across, -across - rng.integers(-9, 10, 30)], axis=1)]
    for direction in directions:
        for sign in (1, -1):
            assert naive.largest(sign * direction, few) == naive.largest(sign * direction, points)


def test_of_a_box_of_lattice_points_the_corners_are_left():
    points = np.argwhere(np.ones((4, 5, 6)))
    corners = {(x, y, z) for x in (0, 3) for y in (0, 4) for z in (0, 5)}
    assert {tuple(p) for p in hull_points(points)} == corners


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_convex_chain_and_polygons(seed):
    from scipy.spatial import ConvexHull

    from dphmm._kernels.points import convex_chain, row_difference_polygons

    rng = np.random.default_rng(seed)
    points = rng.integers(0, rng.choice([2, 4, 1000]), (int(rng.integers(1, 30)), 2))
    x, y = points.T.copy()
    chain = points[convex_chain(x, y)]
    assert len(np.unique(chain, axis=0)) == len(chain)
    distinct = np.unique(points, axis=0)
    if np.linalg.matrix_rank(distinct - distinct[0]) == 2:
        corners = distinct[ConvexHull(distinct).vertices]
        assert {tuple(p) for p in chain} == {tuple(p) for p in corners}
        turns = np.roll(chain, -1, axis=0) - chain
        after = np.roll(turns, -1, axis=0)
        assert (turns[:, 0] * after[:, 1] - turns[:, 1] * after[:, 0] > 0).all()
    else:
        assert len(chain) == min(2, len(distinct))
    polygon = row_difference_polygons(np.array([0, len(x)]), np.arange(len(x)), x, y)
    brute = (points[:, None] - points[None]).reshape(-1, 2)
    for direction in rng.integers(-50, 51, (20, 2)):
        assert naive.largest(direction, polygon) == naive.largest(direction, brute)
    assert len(polygon) <= 2 * len(chain)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_occurring_offsets_by_transform(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 4))
    points = np.unique(rng.integers(0, 6, (int(rng.integers(1, 25)), d)), axis=0)
    offsets = np.argwhere(np.ones((7,) * d)) - 3
    offsets = offsets[np.all(np.abs(offsets) <= np.ptp(points, axis=0), axis=1)]
    places = {tuple(p) for p in points}
    expected = [any(tuple(p + o) in places for p in points) for o in offsets]
    assert _autocorrelated(points, offsets).tolist() == expected


def test_large_radius_uses_the_transform(monkeypatch):
    rng = np.random.default_rng(2)
    points = np.argwhere(rng.random((12, 12)) < 0.5)
    support = rng.random(len(points)) < 0.7
    plain = policy.radius(points, 7).spanning_differences(points, support)
    monkeypatch.setattr("dphmm.policy._radius._LOOKUPS", 0)
    assert np.array_equal(policy.radius(points, 7).spanning_differences(points, support), plain)


@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40)
def test_sparse_cells_answer_like_dense_ones(seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 8, (10, 2))
    offsets = np.array([(0, 1), (1, -1), (1, 0), (2, 3)])
    dense, sparse = Cells(points, offsets), Cells(points, offsets)
    sparse.table = sparse.table[:0]
    every = np.arange(len(dense.linear))
    for k, offset in enumerate(offsets):
        for sign in (1, -1):
            beside = dense.beside(every, sign * int(dense.deltas[k]))
            assert np.array_equal(beside, sparse.beside(every, sign * int(dense.deltas[k])))
            for cell, other in zip(every, beside, strict=True):
                target = dense.points[cell] + sign * offset
                places = np.flatnonzero((dense.points == target).all(axis=1))
                assert ([] if other < 0 else [other]) == places.tolist()


def test_projection_is_wide_only_when_it_must_be():
    lattice = np.array([[0, 0], [1, 2**30]])
    assert projected(np.array([1, 2**31]), lattice).dtype == np.int64
    assert projected(np.array([1, 2**32]), lattice).dtype == object
    far = np.array([[2**53, 0], [2**53 + 1, 0]])
    assert projected(np.array([2**40, 1]), far).dtype == np.int64


def test_what_is_remembered_belongs_to_one_constraint():
    points = np.argwhere(np.ones((3, 3)))
    graph = policy.radius(points, 1)
    first, second = Constraint.of([0, 1], 9), Constraint.of([0, 3], 9)
    assert graph.extreme_difference(np.array([1, 0]), points, first)[0] == 0
    assert graph.extreme_difference(np.array([1, 0]), points, second)[0] == 1
    assert not first.answers.keys() - second.answers.keys()
    other = policy.radius(points, 2)
    assert other.edges(first).tolist() == [[0, 1]]
    assert other.isolated(second).tolist() == graph.isolated(first).tolist() == []
    assert {graph, other} == {asked for asked, _ in first.answers} | {asked for asked, _ in second.answers}
