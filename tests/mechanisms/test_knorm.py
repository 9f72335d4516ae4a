"""Expected errors: sums against brute force, continuous laws where points are many, samples against both."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm._kernels.lattice import continued, points_of, polynomial_sums
from dphmm.mechanisms import DiscreteKNorm, KNorm, Laplace, PlanarIsotropic, Staircase, choose
from dphmm.mechanisms import knorm as module
from dphmm.mechanisms.knorm import Breakpoints, Continuous, lattice_body, law_sums
from dphmm.samplers import ReplayBits
from naive_mechanisms import SHAPES, expected_error, exponents, hull_of_points, norm_table, shape

OFFSETS = (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(19, 20))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SHAPES))
@pytest.mark.parametrize("epsilon", [2, 9])
def test_sums_are_the_brute_force_sums(name, epsilon):
    hull = shape(name)
    radius = 4 + 30 // epsilon
    for mechanism in (DiscreteKNorm(hull, epsilon), *(Staircase(hull, epsilon, g) for g in OFFSETS)):
        assert mechanism.expected_error == pytest.approx(expected_error(mechanism, radius), rel=1e-9)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)).filter(any), min_size=1, max_size=3),
    st.fractions(0, Fraction(9, 10), max_denominator=10),
)
def test_sums_of_random_bodies_at_random_offsets(points, offset):
    hull = hull_of_points(points)
    for mechanism in (DiscreteKNorm(hull, 3), Staircase(hull, 3, offset)):
        assert mechanism.expected_error == pytest.approx(expected_error(mechanism, 13), rel=1e-9)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_points_of_the_dilations_are_polynomials(name):
    """The claim behind the sums, in integers: counts and squares at j = 0.. have vanishing higher differences.

    Looked at for k + 7 values of j, of which the library sees k + 3 at most.
    """
    hull = shape(name)
    k = hull.rank
    vectors, tops, common = norm_table(hull, k + 7)
    squares = (vectors**2).sum(axis=1)
    for part in sorted({int(t) % common for t in tops})[:12]:
        inside = [tops <= j * common + part for j in range(k + 7)]
        counts = [int(mask.sum()) for mask in inside]
        moments = [int(squares[mask].sum()) for mask in inside]
        assert not np.any(np.diff(np.array(counts, dtype=object), n=k + 1))
        assert not np.any(np.diff(np.array(moments, dtype=object), n=k + 3))


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_points_of_a_large_dilation_are_counted_from_small_ones(name):
    hull = shape(name)
    k = hull.rank
    parts, counts, _ = module._points_within(max(2, k), hull, lattice_body(hull))
    for radius in (1, 3, k + 3):
        assert points_of(counts, parts, k, radius) == len(norm_table(hull, radius)[0])


def test_a_body_whose_corners_are_not_lattice_points_has_no_such_polynomials():
    """The precondition matters: half a square counts 1, 1, 9, 9, 25, .. points."""
    counts = [(2 * math.floor(j / 2) + 1) ** 2 for j in range(8)]
    assert np.any(np.diff(counts, n=3))


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)).filter(any), min_size=1, max_size=6),
    st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(5)]),
)
def test_breakpoints_are_all_the_fractions_of_the_norm(points, epsilon):
    hull = hull_of_points(points)
    sums = Breakpoints.of(hull, lattice_body(hull), epsilon)
    _, tops, common = norm_table(hull, hull.rank + 3)
    found = [sums.fraction(i) for i in range(len(sums.parts))]
    assert found == sorted({Fraction(int(t) % common, common) for t in tops if t < (hull.rank + 3) * common})
    assert sums.best_staircase()[0] in found


@settings(max_examples=40)
@given(
    st.lists(st.tuples(*[st.integers(-4, 4)] * 2).filter(any), min_size=1, max_size=4)
    | st.lists(st.tuples(*[st.integers(-2, 2)] * 3).filter(any), min_size=1, max_size=4),
)
def test_at_negative_dilations_the_polynomials_tell_of_points_nearer_than_that(points):
    """Reciprocity, in integers: continued backwards from their values at j >= 0, counts and squares at -m are those of
    the points with N < m - g, with the sign of (-1)^k. And squares differ k + 2 times by (k + 2)! their integral."""
    hull = hull_of_points(points)
    k = hull.rank
    vectors, tops, common = norm_table(hull, k + 4)
    squares = (vectors**2).sum(axis=1)
    steps = np.arange(k + 4)
    top = Fraction(math.factorial(k + 2)) * hull.span_volume * hull.squared_size
    for part in sorted({int(t) % common for t in tops})[:8]:
        inside = [tops <= j * common + part for j in steps]
        for degree, weights in ((k, np.ones_like(squares)), (k + 2, squares)):
            values = [int(weights[mask].sum()) for mask in inside]
            for m in range(1, 4):
                values.insert(0, _before(values, degree))
                nearer = tops < m * common - part
                assert values[0] == (-1) ** k * int(weights[nearer].sum())
            if degree == k + 2:
                assert set(np.diff(np.array(values, dtype=object), n=degree)) == {top}


def _before(values, degree):
    """The value before those of a polynomial: its difference of order degree + 1 is 0."""
    terms = ((-1) ** i * math.comb(degree + 1, i) * values[i - 1] for i in range(1, degree + 2))
    return -sum(terms)


@settings(max_examples=60)
@given(
    st.integers(1, 3),
    st.lists(st.integers(0, 99), min_size=7, max_size=7),
    st.sampled_from([1e-6, 0.01, 1.0, 9.0]),
)
def test_polynomials_are_continued_and_summed(radius, h, epsilon):
    """Values at -r .. r - 1, and one difference where they are one too few, give the sum over all j >= 0.

    The polynomials are made from h, as those of dilations are: P(j) = sum of h_i C(j - i + D, D), D the degree.
    """
    q, complement = math.exp(-epsilon), -math.expm1(-epsilon)
    for degree in range(1, 2 * radius + 1):
        own = h[: degree + 1]
        values = [
            float(sum(c * math.prod(range(j - i + 1, j - i + degree + 1)) for i, c in enumerate(own)))
            / math.factorial(degree)
            for j in range(-radius, max(radius, degree + 1))
        ]
        found = continued(np.array(values[: 2 * radius])[:, None], degree, float(sum(own)), degree)
        assert found[:, 0].tolist() == values[radius : radius + degree + 1]
        summed = polynomial_sums(found, q, complement)[0]
        expected = math.fsum(c * q**i for i, c in enumerate(own)) / complement ** (degree + 1)
        assert summed == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("epsilon", [5, 10, 20, 100])
def test_a_large_body_in_space_is_summed_near_the_origin(epsilon, monkeypatch):
    """An octahedron of radius 9: N = |x|₁/9, so sums over the cubic lattice factor. The continuous law was off by 2.

    By its polynomials, and, where it is not known that the corners are lattice points, by the points near the origin.
    """
    hull = hull_of_points([(9, 0, 0), (0, 9, 0), (0, 0, 9)])
    q = math.exp(-epsilon / 9)
    mass = ((1 + q) / (1 - q)) ** 3
    error = 6 * q / (1 - q) ** 2
    for known in (hull, replace(hull, body=replace(hull.body, exact=False))):
        sums = law_sums(known, lattice_body(known), Fraction(epsilon))
        assert isinstance(sums, Breakpoints)
        assert sums.knorm.log_mass == pytest.approx(math.log(mass), abs=1e-6)
        assert sums.knorm.error == pytest.approx(error, rel=1e-5)
        assert sums.staircase(Fraction(0)).log_mass >= 0.0


@pytest.mark.parametrize("epsilon", [744, 746, 1024])
def test_continuous_laws_hold_where_a_step_weighs_less_than_any_float(epsilon):
    """exp(-ε) is 0 in floats: the best staircase has all but nothing on its first shell, and K-norm noise is small."""
    hull = hull_of_points([(300, 7), (5, 400), (-295, 393)])
    law = Continuous.of(hull, Fraction(epsilon))
    assert isinstance(law_sums(hull, lattice_body(hull), Fraction(epsilon)), Continuous)
    assert law.staircase(Fraction(0)).error == pytest.approx(law.size)
    assert law.staircase(Fraction(0)).log_mass == pytest.approx(law.log_volume - epsilon)
    assert law.staircase(Fraction(1, 2)).error == pytest.approx(law.size / 4)
    assert choose(hull, epsilon).expected_error <= law.knorm.error


def test_units_are_those_of_the_answers():
    points = [(3, 0), (2, 2), (0, 3), (-2, 2)]
    stretched = DiscreteKNorm(hull_of_points(points, pitch=(0.5, 20.0)), 2)
    vectors, tops, common = norm_table(stretched.hull, 20)
    weights = np.exp(-2 * tops / common)
    expected = (weights * ((vectors * (0.5, 20.0)) ** 2).sum(axis=1)).sum() / weights.sum()
    assert stretched.expected_error == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["interval", "disc", "flat", "octahedron", "plane in space"])
def test_continuous_laws_take_over_where_points_are_many(name, monkeypatch):
    hull = shape(name)
    # The finer the lattice beside 1/ε, the nearer the laws; a walk in space can only go so far.
    epsilon, near = (Fraction(1, 3), 0.3) if hull.rank == 3 else (Fraction(1, 10), 0.06)
    body = lattice_body(hull)
    summed = law_sums(hull, body, epsilon)
    monkeypatch.setattr(module, "MOST_POINTS", 0)
    closed = law_sums(hull, body, epsilon)
    assert isinstance(summed, Breakpoints) and isinstance(closed, Continuous)
    for g in OFFSETS:
        short, long = closed.staircase(g), summed.staircase(g)
        assert short.error == pytest.approx(long.error, rel=near)
        assert short.log_mass == pytest.approx(long.log_mass, abs=near)
    assert closed.knorm.error == pytest.approx(summed.knorm.error, rel=near)
    assert closed.knorm.error == pytest.approx(KNorm(hull, epsilon).expected_error)
    assert closed.knorm.log_mass == pytest.approx(summed.knorm.log_mass, abs=near)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_normalisers_are_the_brute_force_sums(name):
    hull = shape(name)
    vectors, tops, common = norm_table(hull, 11)
    kinds = [DiscreteKNorm(hull, 3), *(Staircase(hull, 3, g) for g in OFFSETS)]
    for mechanism in kinds:
        direct = math.log(np.exp(-exponents(mechanism, tops, common)).sum())
        assert mechanism.log_normaliser == pytest.approx(direct, abs=1e-8)
    origin = np.zeros(hull.dimension, dtype=np.int64)
    likelihoods = [float(np.exp(kinds[0].log_likelihood_lattice(origin, vectors)).sum())]
    assert math.log(likelihoods[0]) == pytest.approx(kinds[0].log_normaliser, abs=1e-8)


def test_small_and_large_epsilon_have_finite_errors():
    for name in SHAPES:
        hull = shape(name)
        for epsilon in (Fraction(1, 2**20), Fraction(2**10)):
            for mechanism in (DiscreteKNorm(hull, epsilon), Staircase(hull, epsilon)):
                assert math.isfinite(mechanism.expected_error) and mechanism.expected_error >= 0.0
        tiny = Fraction(1, 2**20)
        assert DiscreteKNorm(hull, tiny).expected_error == pytest.approx(KNorm(hull, tiny).expected_error, rel=1e-6)
        assert Staircase(hull, tiny, "0.7").expected_error == pytest.approx(KNorm(hull, tiny).expected_error, rel=1e-5)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_samples_have_the_expected_error(name):
    hull, n = shape(name), 200_000
    kinds = [DiscreteKNorm(hull, "1.5"), Staircase(hull, "1.5"), KNorm(hull, "1.5"), Laplace(hull, "1.5")]
    if hull.rank == hull.dimension:
        kinds.append(PlanarIsotropic(hull, "1.5"))
    for mechanism in kinds:
        noise = mechanism.sample(np.zeros((n, hull.dimension)), ReplayBits(5))
        squares = (noise**2).sum(axis=1)
        assert abs(squares.mean() - mechanism.expected_error) < 4 * squares.std() / math.sqrt(n) + 1e-3 * squares.mean()


def test_an_offset_between_breakpoints_is_as_the_one_before():
    hull = shape("interval")
    sums = Breakpoints.of(hull, lattice_body(hull), Fraction(1))
    assert [sums.fraction(i) for i in range(3)] == [0, Fraction(1, 3), Fraction(2, 3)]
    assert sums.staircase(Fraction(1, 2)) == sums.staircase(Fraction(1, 3))
    just_below = Fraction(1, 3) - Fraction(1, 10**30)
    assert sums.staircase(just_below) == sums.staircase(Fraction(0))
