"""Exact Laplace noise: its body by brute force, its law as a product over axes, its promise, and where it differs.

Everything is compared with definitions that are written out here: the l1 sensitivity over listed edges, one-dimensional
two-sided geometric laws, sums of |v_i|/s_i in fractions. Needs to fail for: a body that leaves an edge out, an axis in
another unit, a noise whose axes depend on each other, degrees of the hull instead of the body's, a flat body thickened
before.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphmm
from dphmm import policy
from dphmm.audit.law import Law
from dphmm.errors import InvalidInput
from dphmm.mechanisms import Constant, DiscreteKNorm, DiscreteLaplace, Staircase, choose
from dphmm.mechanisms.discrete_laplace import cross_polytope
from dphmm.samplers.entropy import ReplayBits
from naive_mechanisms import hull_of_points
from running_example import ANSWERS, EDGES_3B

PITCHES = ["1", "0.5", "0.3", "7", "0.1"]


def widths_of(points, pitch):
    """s_i by definition: the largest Σ pitch·|v|, as steps of each axis, rounded up."""
    steps = [Fraction(p) for p in pitch]
    sensitivity = max(sum(p * abs(int(x)) for p, x in zip(steps, v, strict=True)) for v in points)
    return [math.ceil(sensitivity / p) for p in steps]


def norm(widths, v):
    return sum((Fraction(abs(int(x)), s) for x, s in zip(v, widths, strict=True)), Fraction(0))


def random_points(rng, d):
    points = rng.integers(-4, 5, (int(rng.integers(1, 5)), d))
    points[0, int(rng.integers(d))] = 3
    if rng.random() < 0.3:
        points = points[:1] * rng.integers(1, 3, (len(points), 1))
    return points


def some(rng, d, one_pitch=False):
    points = random_points(rng, d)
    pitch = [str(rng.choice(PITCHES))] * d if one_pitch else [str(p) for p in rng.choice(PITCHES, d)]
    return points, pitch, hull_of_points(points, [float(p) for p in pitch])


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2, 3, 4])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=25)
def test_the_body_is_the_cross_polytope_of_the_l1_sensitivity(d, seed):
    rng = np.random.default_rng(seed)
    points, pitch, hull = some(rng, d)
    body = cross_polytope(hull)
    widths = widths_of(points, pitch)
    assert body.rank == body.dimension == d and body.exact
    for v in [*points, *rng.integers(-30, 31, (60, d)), *np.diag(widths), *(np.diag(widths) + np.eye(d, dtype=int))]:
        assert body.norm_fraction(v) == norm(widths, v)
    assert all(body.norm_fraction(v) <= 1 for v in points)
    assert body.contains_lattice(points).all()
    assert body.lattice_volume == Fraction(2**d * math.prod(widths), math.factorial(d))
    assert [body.half_width(row) for row in np.eye(d, dtype=int)] == widths
    # ∫|u|² over the body: E u_i² = 2 s_i²/((d+1)(d+2)).
    squares = sum((Fraction(p) * s) ** 2 for p, s in zip(pitch, widths, strict=True))
    assert body.squared_size == 2 * squares / ((d + 1) * (d + 2))


def geometric(epsilon, s, x):
    """P(x) of the two-sided geometric law with ratio exp(-epsilon/s)."""
    a = math.exp(-epsilon / s)
    return (1 - a) / (1 + a) * a ** abs(int(x))


@pytest.mark.parametrize("d", [1, 2, 3])
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_the_law_is_a_product_of_two_sided_geometric_laws(d, seed):
    """Likelihoods, normaliser and error; epsilon is large, so that the sums over the lattice are short."""
    rng = np.random.default_rng(seed)
    points, pitch, hull = some(rng, d)
    mechanism = DiscreteLaplace.for_hull(hull, 8)
    widths = widths_of(points, pitch)
    answers = rng.integers(-5, 6, (12, d))
    z = rng.integers(-5, 6, d)
    expected = [sum(-8 * abs(int(x)) / s for x, s in zip(z - f, widths, strict=True)) for f in answers]
    assert np.allclose(mechanism.log_likelihood_lattice(z, answers), expected, rtol=1e-12, atol=1e-12)
    if max(widths) <= 12:
        product = [sum(math.log(geometric(8, s, x)) for x, s in zip(z - f, widths, strict=True)) for f in answers]
        found = mechanism.log_likelihood_lattice(z, answers) - mechanism.log_normaliser
        assert np.allclose(found, product, rtol=1e-6)


def test_normaliser_and_error_are_those_of_the_product():
    """Summed over the lattice, not over a continuous law: widths (3, 3), epsilon 3."""
    mechanism = DiscreteLaplace.for_hull(hull_of_points([(1, 2), (2, -1)]), 3)
    a = math.exp(-1)
    assert mechanism.expected_error == pytest.approx(2 * 2 * a / (1 - a) ** 2, rel=1e-9)
    assert mechanism.log_normaliser == pytest.approx(2 * math.log((1 + a) / (1 - a)), rel=1e-9)


@pytest.mark.parametrize("d", [1, 2, 3])
def test_samples_are_independent_geometric_noises(d):
    """20,000 seeded draws: every small cell of the joint law within 5 standard errors of the product."""
    pitch = [1.0, 0.5, 2.0][:d]
    hull = hull_of_points([(2, 1, 1)[:d], (1, -1, 0)[:d]], pitch)
    mechanism = DiscreteLaplace.for_hull(hull, 4)
    widths = widths_of([(2, 1, 1)[:d], (1, -1, 0)[:d]], map(str, pitch))
    m = 20_000
    drawn = mechanism.noise(m, ReplayBits(5))
    for cell in itertools.product(range(-2, 3), repeat=d):
        p = math.prod(geometric(4, s, x) for x, s in zip(cell, widths, strict=True))
        count = int((drawn == cell).all(axis=1).sum())
        assert abs(count - m * p) < 5 * math.sqrt(m * p) + 1


def some_plan(rng):
    """A space, a policy with edges, and the plan of a first release."""
    n, d = int(rng.integers(3, 8)), int(rng.integers(1, 4))
    pitch = [float(p) for p in rng.choice(PITCHES, d)]
    points = rng.integers(-3, 4, (n, d))
    if rng.random() < 0.3:
        points = points[:, :1] * np.ones((1, d), dtype=int)
    space = dphmm.StateSpace(points * pitch, pitch=pitch)
    graph = policy.from_edges(rng.integers(0, n, (int(rng.integers(1, n)), 2)), n)
    initial = rng.random(n) * (rng.random(n) < 0.8)
    initial[: int(not initial.any())] = 1
    model = dphmm.MarkovModel(initial / initial.sum(), np.full((n, n), 1 / n), start="at")
    constraint = str(rng.choice(["support", "delta=0.3"]))
    mechanism = "discrete-laplace"
    return dphmm.ReleaseSession(model, graph, space, 1, mechanism=mechanism, constraint=constraint), graph, space


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_every_required_pair_keeps_epsilon_and_degrees_are_the_bodys(seed):
    rng = np.random.default_rng(seed)
    try:
        session, graph, space = some_plan(rng)
        plan = session.plan
    except dphmm.errors.Unprotectable:
        return
    support = plan.constraint.support
    pairs = [(a, b) for a, b in graph.edges().tolist() if support[a] and support[b]]
    pairs += plan.joins.tolist() + plan.partners.tolist()
    widths = None
    if not isinstance(plan.mechanism, Constant):
        assert isinstance(plan.mechanism, DiscreteLaplace) and plan.mechanism.hull is plan.hull
        widths = [int(w) for w in plan.hull.widths]
        assert plan.hull.rank == space.dimension
    for a, b in pairs:
        v = plan.image[a] - plan.image[b]
        assert not v.any() if widths is None else norm(widths, v) <= 1
        if widths is not None:
            # Every output near both: the product of one-dimensional laws, in fractions of epsilon.
            box = itertools.product(*(range(-5, 6) for _ in v))
            worst = max(norm(widths, np.array(x) + v) - norm(widths, x) for x in box)
            assert worst == plan.mechanism.loss_lattice(v) <= 1
    degrees = plan.degrees()
    for s in np.flatnonzero(support):
        steps = [plan.image[o] - plan.image[s] for o in np.flatnonzero(support)]
        inside = [not v.any() if widths is None else norm(widths, v) <= 1 for v in steps]
        assert degrees[s] == sum(inside) >= 2 or plan.constant
    assert not dphmm.audit.verify(session).convicted


def test_an_audit_convicts_a_body_that_is_too_narrow():
    """It reads the law off the mechanism's integers, whatever the mechanism is called."""
    wide = DiscreteLaplace.for_hull(hull_of_points([(2, 1)]), 1)
    narrow = DiscreteLaplace.for_hull(hull_of_points([(1, 1)]), 1)
    assert Law.of(wide).between(np.array([0, 0]), np.array([2, 1])) == 1
    assert Law.of(narrow).between(np.array([0, 0]), np.array([2, 1])) == Fraction(3, 2)
    assert Law.of(wide).enumerated(np.array([2, 1]), 10**6) == 1
    assert Law.of(wide).key == Law.of(DiscreteKNorm(wide.hull, 1)).key != Law.of(narrow).key


def test_a_flat_hull_is_not_thickened_before():
    """Edges along one axis: S is 3; the thickened hull would have given 4."""
    space = dphmm.StateSpace(np.array([[0, 0], [3, 0], [6, 0]]))
    model = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3))
    graph = policy.from_edges([(0, 1), (1, 2)], 3)
    plan = dphmm.ReleaseSession(model, graph, space, 1, mechanism="discrete-laplace").plan
    assert plan.hull.widths == (3, 3) and plan.cost == 2
    other = dphmm.ReleaseSession(model, graph, space, 1, mechanism="discrete-knorm").plan
    assert other.hull.rank == 2 and len(other.hull.normals) == 2


def test_a_single_point_is_a_flat_body_as_every_other_one():
    """Twins that hide in each other only, and two places: without noise an answer would tell the place."""
    space = dphmm.StateSpace(np.array([[0, 0], [0, 0], [5, 0], [5, 0]]))
    model = dphmm.MarkovModel(np.full(4, 1 / 4), np.full((4, 4), 1 / 4))
    graph = policy.from_edges([(0, 1), (2, 3)], 4)
    plan = dphmm.ReleaseSession(model, graph, space, 1, mechanism="discrete-laplace").plan
    assert plan.mechanism_name == "discrete-laplace" and plan.hull.rank == 2
    alone = dphmm.ReleaseSession(model, graph, dphmm.StateSpace(np.zeros((4, 2), dtype=int)), 1)
    assert alone.plan.mechanism_name == "constant"


def test_erratum_01_it_errs_less_on_a_long_thin_body_in_space():
    """±98, ±1, ±1: the continuous numbers are 64040 and 60000; auto takes the staircase there, and never this one."""
    hull = hull_of_points([(98, s, t) for s, t in itertools.product((1, -1), repeat=2)])
    for epsilon in (Fraction(1), Fraction(1, 10)):
        laplace, knorm = DiscreteLaplace.for_hull(hull, epsilon), DiscreteKNorm(hull, epsilon)
        square = float(epsilon) ** 2
        assert laplace.expected_error * square == pytest.approx(60000, rel=1e-4)
        assert knorm.expected_error * square == pytest.approx(64040, rel=0.01)
        assert isinstance(choose(hull, epsilon), (DiscreteKNorm, Staircase))
        assert not isinstance(choose(hull, epsilon), DiscreteLaplace)


def test_erratum_02_it_hides_a_state_that_the_hull_exposes():
    """Example 6.1: s3 has degree 1 in the hull, and loses 4/5, 3/5 and 4/5 of epsilon to the others here."""
    possible = [2, 3, 4, 5]
    hull = dphmm.sensitivity.sensitivity_hull(policy.from_edges(EDGES_3B, 6), ANSWERS, possible)
    assert dphmm.sensitivity.degree_of_protection(hull, ANSWERS, possible)[0] == 1
    mechanism = DiscreteLaplace.for_hull(hull, 1)
    losses = [mechanism.loss_lattice(ANSWERS[s] - ANSWERS[2]) for s in (3, 4, 5)]
    assert losses == [Fraction(4, 5), Fraction(3, 5), Fraction(4, 5)]
    assert dphmm.sensitivity.degree_of_protection(mechanism.hull, ANSWERS, possible)[0] == 4


def test_a_body_known_by_facets_alone_is_bounded():
    """Six axes are the most; a body around the differences gives a cross-polytope around them."""
    rng = np.random.default_rng(8)
    points = rng.integers(-3, 4, (9, 6))
    body = cross_polytope(hull_of_points(points))
    assert all(body.norm_fraction(v) <= 1 for v in points)
    assert len(body.normals) == 32
    with pytest.raises(InvalidInput, match="mechanism: got discrete-laplace for 7 axes"):
        cross_polytope(hull_of_points(np.eye(7, dtype=int)))


def test_other_bodies_are_refused():
    hull = hull_of_points([(1, -1), (4, 1)])
    for other in (hull, hull_of_points([(1, 0), (0, 1), (1, 1)]), hull_of_points([(1, 0)]), hull_of_points([(0, 0)])):
        with pytest.raises(InvalidInput, match="K: got"):
            DiscreteLaplace(other, 1)
    with pytest.raises(InvalidInput, match="K: got"):
        DiscreteLaplace.for_hull(hull_of_points([(0, 0)]), 1)


def test_axes_without_a_common_measure_are_refused():
    """Widths 2**28 and about 2**27 and 2**26, pairwise prime: their facet has 81 bits."""
    pitch = [1.0, 1.0000000371, 1.9999999901]
    with pytest.raises(InvalidInput, match=r"mechanism: got .* common measure; expected .*one pitch"):
        cross_polytope(hull_of_points([(2**27, 1, 1), (1, 2**27 - 1, 0), (0, 0, 1)], pitch))
