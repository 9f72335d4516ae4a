"""Hulls against brute force, in every rank and dimension; certificates; refusals.

Where the answers lie does not matter, only their differences: also where sums of products pass 64 bits.

Claim: the largest norm between states, the factor of the cost, is the same wherever the answers are moved to, up to the
2**53 lattice steps that answers may have. With differences near 2**27 the normals of facets are as large, so products
pass 2**63; it would fail (with a cost that is too small) for sums in 64 bits beyond what they hold. Sums that wrap keep
their differences unless the wrap falls between two states, as it does at the last place.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphmm
import naive
from dphmm.errors import InvalidInput
from dphmm.policy.constraint import Constraint
from dphmm.sensitivity.exact_hull import PolicyDifferences
from dphmm.sensitivity.hull import hull_of, largest_norm, thicken


@st.composite
def bodies(draw, d=2, span=6, masked=False):
    """A hull, its answers, and the edges that count: those between states of the mask, if there is one."""
    n = draw(st.integers(2, 8))
    answers = np.array(draw(st.lists(st.tuples(*[st.integers(-span, span)] * d), min_size=n, max_size=n)))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=10, unique=True))
    mask = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)) if masked else [True] * n)
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges(edges, n), answers, mask if masked else None)
    return hull, answers, [(a, b) for a, b in edges if mask[a] and mask[b]]


@given(bodies(masked=True))
@settings(max_examples=150)
def test_planar_norm_equals_the_gauge(instance):
    hull, answers, edges = instance
    points = naive.differences(edges, answers)
    nonzero = [p for p in points if any(p)]
    assert hull.rank == (naive.rank(nonzero) if nonzero else 0)
    assert hull.lattice_volume == naive.area(points)
    for v in [(0, 0), (1, 0), (2, -3), (5, 5), (-1, 4), *nonzero[:5]]:
        expected = naive.gauge(points, v)
        found = hull.norm_fraction(v)
        assert found == (math.inf if expected is None else expected)
        assert hull.contains(v) == (expected is not None and expected <= 1)


@given(bodies(d=3, span=4, masked=True))
@settings(max_examples=60)
def test_spatial_body_contains_every_difference_and_touches(instance):
    hull, answers, edges = instance
    points = np.array(sorted(naive.differences(edges, answers)), dtype=np.int64).reshape(-1, 3)
    nonzero = [tuple(p) for p in points.tolist() if any(p)]
    assert hull.rank == (naive.rank(nonzero) if nonzero else 0)
    assert hull.certify(points)
    norms = [hull.norm_fraction(p) for p in points]
    assert all(norm <= 1 for norm in norms)
    if hull.rank:
        assert max(norms) == 1
        assert not hull.certify(points * 2)


@given(bodies(d=3, span=4))
@settings(max_examples=40)
def test_spatial_norm_equals_a_linear_program(instance):
    """‖v‖_K = min sum |λ| over v = sum λ_i Δ_i: the gauge of a symmetric hull, by its definition."""
    from scipy.optimize import linprog

    hull, answers, edges = instance
    points = np.array(sorted(naive.differences(edges, answers)), dtype=float).reshape(-1, 3)
    if hull.rank < 3:
        return
    assert hull.exact
    for v in ([1, 0, 0], [1, 2, -1], [3, 3, 1]):
        program = linprog(np.ones(len(points)), A_eq=points.T, b_eq=v, bounds=(0, None))
        assert hull.norm(v) == pytest.approx(program.fun, rel=1e-7)


def test_spatial_volume_and_moment_of_a_box():
    corners = [[3, a, b] for a in (2, -2) for b in (5, -5)]
    answers = np.vstack([[[0, 0, 0]], corners])
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([(0, i) for i in range(1, 5)], 5), answers)
    assert hull.lattice_volume == 6 * 4 * 10
    assert hull.squared_size == Fraction(9 + 4 + 25, 3)
    assert hull.widths == (3, 2, 5)


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_every_dimension_contains_its_differences(d):
    rng = np.random.default_rng(d)
    answers = rng.integers(-9, 10, size=(12, d))
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(12), answers)
    pairs = answers[:, None] - answers[None]
    assert hull.rank == d
    assert hull.certify(pairs.reshape(-1, d))
    assert max(hull.norm_fraction(v) for v in pairs.reshape(-1, d)) == 1


def test_eight_dimensions_use_a_larger_body_and_stay_certified():
    rng = np.random.default_rng(8)
    answers = rng.integers(-5, 6, size=(20, 8))
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(20), answers)
    assert not hull.exact
    assert hull.certify((answers[:, None] - answers[None]).reshape(-1, 8))
    assert all(w >= np.ptp(answers[:, j]) for j, w in enumerate(hull.widths))


def reaches(hull, direction):
    """The largest direction·y over the body, by a linear program over its facets."""
    from scipy.optimize import linprog

    sides = np.vstack([hull.normals, -hull.normals])
    limits = np.concatenate([hull.offsets, hull.offsets])
    return -linprog(-direction, A_ub=sides, b_ub=limits, bounds=(None, None)).fun


def drawn_differences(kind, d, rng):
    """Differences of a clique, of edges anywhere, and of edges with few and equal lengths, which share facets."""
    if kind == "clique":
        points = rng.integers(-4, 5, (d + 2, d))
        return (points[:, None] - points[None]).reshape(-1, d)
    return rng.integers(-5, 6, (2 * d, d)) if kind == "edges" else rng.integers(-1, 2, (2 * d + 2, d))


def spanned(kind, d, seed):
    """± differences that span d dimensions, and their hull."""
    rng = np.random.default_rng(seed)
    rows = np.vstack([drawn_differences(kind, d, rng), np.eye(d, dtype=np.int64)])
    answers = np.vstack([np.zeros(d, dtype=np.int64), rows])
    policy = dphmm.policy.from_edges([(0, i) for i in range(1, len(answers))], len(answers))
    return rows, dphmm.sensitivity.sensitivity_hull(policy, answers)


@pytest.mark.parametrize("kind", ["clique", "edges", "short"])
@pytest.mark.parametrize("d", [4, 5, 6, 7])
def test_bodies_of_many_dimensions_are_their_hulls_and_say_so(kind, d):
    """A body that is its hull reaches in no direction farther than some difference."""
    rows, hull = spanned(kind, d, d)
    assert hull.exact and hull.certify(rows)
    for direction in np.random.default_rng(d).integers(-9, 10, (12, d)):
        assert reaches(hull, direction) == pytest.approx(np.abs(rows @ direction).max(), rel=1e-9)


@pytest.mark.parametrize("d", [3, 4])
@pytest.mark.parametrize("seed", range(4))
def test_a_body_around_a_thin_hull_is_not_called_exact(d, seed):
    """Normals are longer than what is kept exactly, and planes of floats hold corners that are on no common plane."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(-(10**6), 10**6, (2 * d, d))
    rows[:, 0] = rows[:, 1:].sum(axis=1) + rng.integers(-2, 3, 2 * d)
    answers = np.vstack([np.zeros(d, dtype=np.int64), rows])
    hull = dphmm.sensitivity.sensitivity_hull(
        dphmm.policy.from_edges([(0, i) for i in range(1, 2 * d + 1)], 2 * d + 1), answers
    )
    assert hull.certify(rows) and not hull.exact


@pytest.mark.parametrize(("limit", "value"), [("_MOST_POINTS", {7: 20}), ("_MOST_FACETS", 20)])
def test_above_six_dimensions_too_many_points_or_facets_give_a_larger_body(limit, value, monkeypatch):
    d = 7
    rows, hull = spanned("edges", d, 0)
    monkeypatch.setattr(f"dphmm.sensitivity.exact_hull.{limit}", value)
    _, larger = spanned("edges", d, 0)
    assert hull.exact and not larger.exact and larger.certify(rows)
    assert len(larger.normals) == d**2
    assert max(larger.norm_fraction(row) / hull.norm_fraction(row) for row in rows) <= 1
    assert larger.widths == hull.widths


@given(bodies(d=2, span=2**27))
@settings(max_examples=40)
def test_huge_coordinates_do_not_overflow(instance):
    hull, answers, edges = instance
    for point in naive.differences(edges, answers):
        assert hull.norm_fraction(point) <= 1
    if hull.rank == 2:
        assert hull.lattice_volume == naive.area(naive.differences(edges, answers))


@given(bodies())
@settings(max_examples=60)
def test_half_width_is_the_largest_coordinate(instance):
    hull, answers, edges = instance
    points = naive.differences(edges, answers)
    if hull.rank == 2:
        for c in ((1, 0), (0, 1), (2, -1)):
            assert hull.half_width(c) == max(abs(c[0] * x + c[1] * y) for x, y in points)


def test_nearly_flat_spatial_body_is_still_covered():
    """Near-collinear differences, where Qhull's own hull under-covers by percents (docs/proofs/hull.md)."""
    answers = np.array([[0, 0, 0], [10**8, 1, 0], [10**8, 0, 1], [10**8, 1, 1], [-(10**8), 1, 1]])
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(5), answers)
    assert hull.rank == 3
    assert hull.certify((answers[:, None] - answers[None]).reshape(-1, 3))


def test_answer_units_and_closed_boundary():
    space = dphmm.StateSpace([[0.1, 0.0], [0.4, 0.0], [0.1, 0.2]], pitch=0.1)
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(3), space)
    assert hull.norm([0.3, 0.0]) == 1.0
    assert hull.contains([0.3, 0.0])
    assert hull.contains([0.1 * 3, -0.1 * 0])
    assert not hull.contains([0.31, 0.0])
    assert hull.volume == pytest.approx(2 * 0.3 * 0.2 * 1.5)


def test_floats_that_are_not_integers_are_refused():
    with pytest.raises(InvalidInput, match="answers"):
        dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(2), np.array([[0.5, 0.0], [1.0, 1.0]]))


def test_a_policy_over_other_states_is_refused():
    with pytest.raises(InvalidInput, match="3 states"):
        dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(2), np.zeros((3, 2), dtype=int))


def test_no_edges_give_the_point():
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([], 3), np.array([[0, 0], [1, 0], [5, 5]]))
    assert hull.rank == 0
    assert hull.norm([0, 0]) == 0.0
    assert hull.norm([1, 0]) == math.inf
    assert hull.volume == 0.0


def test_contracted_hull_covers_drifted_neighbours():
    """docs/theory.md 6: policy edges of states outside the plan set move to their surrogates."""
    answers = np.array([[0], [1], [2], [10]])
    space = dphmm.StateSpace(answers)
    policy = dphmm.policy.from_edges([(1, 2), (2, 3)], 4)
    support = np.array([True, True, True, True])
    plan = np.array([True, False, False, True])
    within = Constraint.surrogated(support, plan, space)
    hull = dphmm.sensitivity.sensitivity_hull(policy, space, within)
    assert hull.norm_fraction([10]) == 1


def test_flat_hulls_of_long_differences_keep_to_exact_integers():
    # Coordinates of the span are long here: their products with a direction pass 64 bits.
    rng = np.random.default_rng(0)
    for _ in range(60):
        plane = rng.integers(-(2**18), 2**18, size=(2, 4))
        answers = rng.integers(-1, 2, size=(5, 2)) @ plane
        K = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(5), answers)
        norms = [K.norm_fraction(a - b) for a in answers for b in answers]
        assert max(norms) == (1 if K.rank else 0)


@pytest.mark.slow
@pytest.mark.parametrize("d", [3, 4, 5])
@pytest.mark.parametrize("thin", [False, True])
def test_widths_of_skewed_bodies_are_found(d, thin):
    rng = np.random.default_rng(d)
    for _ in range(8):
        answers = 1000 * rng.integers(-9, 10, size=(7, d)) + rng.integers(0, 2, size=(7, d))
        if thin:
            line = 100 * rng.integers(-50, 51, size=d)
            answers = np.outer(rng.integers(-6, 7, size=7), line) + rng.integers(0, 2, size=(7, d))
        K = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(7), answers)
        reached = [max(abs(int(x)) for x in column) for column in K.hull_vertices.T]
        for width, least in zip(K.widths, reached, strict=True):
            assert least <= width <= 2 * least


def test_moment_and_volume_of_a_body_of_few_facets_are_those_of_the_box_around_it(monkeypatch):
    monkeypatch.setattr("dphmm.sensitivity.exact_hull._MOST_POINTS", {})
    widths = [1, 2, 3, 4, 5, 6, 7]
    answers = np.vstack([np.zeros(7, dtype=np.int64), np.diag(widths)])
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([(0, i) for i in range(1, 8)], 8), answers)
    assert hull.hull_vertices is None and list(hull.widths) == widths
    assert hull.squared_size == sum(Fraction(w * w, 3) for w in widths)
    np.testing.assert_allclose(hull.second_moment, np.diag([w * w / 3 for w in widths]), rtol=1e-15)
    assert hull.lattice_volume == math.prod(2 * w for w in widths)


@pytest.mark.parametrize(
    ("end", "pitch", "thickness"),
    [
        ((1000, 0), (10, 1), 50),  # 100 coarse steps: a twentieth of them in answer units, not in steps
        ((20, 10), ("0.5", "0.25"), 1),
        ((3, 0), (1, "0.5"), "0.15"),  # less than a step: one step of each axis
    ],
)
def test_a_flat_hull_is_thickened_by_a_twentieth_of_its_largest_half_width_in_answer_units(end, pitch, thickness):
    space = dphmm.StateSpace([[0.0, 0.0], list(map(float, end))], pitch=list(map(float, pitch)))
    source = PolicyDifferences.of(dphmm.policy.complete(2), space.lattice, Constraint.of(None, 2))
    flat = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(2), space)
    assert flat.rank == 1
    steps = [max(1, math.ceil(Fraction(thickness) / Fraction(p))) for p in pitch]
    found, expected = thicken(source, flat), hull_of(source.with_points(np.diag(steps)), flat.frame)
    np.testing.assert_array_equal(found.normals, expected.normals)
    np.testing.assert_array_equal(found.offsets, expected.offsets)
    assert found.contains_lattice(np.array([*np.diag(steps), space.lattice[1] - space.lattice[0]])).all()


def test_the_cost_of_answers_far_from_the_origin_is_exact():
    steps = np.array([[3518, -886], [-2077, -4709], [-1208, 454], [1992, 613]])
    K = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(4), steps)
    for origin in (0, 2**52):
        assert largest_norm(K, steps + origin) == 1
        assert largest_norm(K, 3 * steps + origin) == 3


@pytest.mark.parametrize(("span", "seeds"), [(4, 10), (2**12, 20)])
def test_many_dimensions_give_a_certified_hull_or_one_line(span, seeds):
    """Bases beyond 64 bits are refused by name, never by a traceback; what comes out is certified."""
    refused = 0
    for seed in range(seeds):
        answers = np.random.default_rng(seed).integers(-span, span, size=(9, 8))
        policy = dphmm.policy.from_edges([(i, i + 1) for i in range(8)], 9)
        try:
            hull = dphmm.sensitivity.sensitivity_hull(policy, answers)
        except InvalidInput as error:
            refused += 1
            assert error.field == "answers"
        else:
            assert hull.certify(np.diff(answers, axis=0))
    assert refused == (0 if span == 4 else seeds)


NEAR = np.array([[0, 0], [2**27 - 1, 3], [5, 2**27 - 3], [2**27 - 7, 2**26 + 1], [2**26, -(2**27) + 9]])
POLICY = dphmm.policy.from_edges([(0, 1), (0, 2), (2, 3)], 5)


@pytest.mark.parametrize(
    "shift", [(2**40, 0), (2**52, -(2**52)), (-(2**52) + 3, 2**51 + 1), (-2750714455511083, 2521518332616990)]
)
def test_norms_do_not_depend_on_where_answers_lie(shift):
    moved = NEAR + np.array(shift)
    near, far = (dphmm.sensitivity.sensitivity_hull(POLICY, answers) for answers in (NEAR, moved))
    np.testing.assert_array_equal(near.normals, far.normals)
    np.testing.assert_array_equal(near.offsets, far.offsets)
    pairs = [near.norm_fraction(a - b) for a in NEAR for b in NEAR]
    assert largest_norm(near, NEAR) == largest_norm(far, moved) == max(pairs)


def test_a_line_whose_coordinates_pass_64_bits_on_the_way():
    """Coordinates on a slanted line are sums of large products: they are Python integers then, and so is the norm."""
    line = np.outer([0, 1, 2, 5], [12345677, 23456789, 33333331])
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([(0, 1), (1, 2)], 4), line)
    assert hull.rank == 1
    assert hull.coordinates_of(line).dtype == object
    assert largest_norm(hull, line) == 5
