"""Expected errors: sums against brute force, closed forms where sums are long, samples against both."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.mechanisms import DiscreteKNorm, KNorm, Laplace, PlanarIsotropic, Staircase
from dphmm.mechanisms import expected as module
from dphmm.mechanisms.expected import ErrorSums, candidate_offsets
from dphmm.mechanisms.lattice import lattice_body
from dphmm.samplers import ReplayBits
from naive_mechanisms import SHAPES, expected_error, exponents, hull_of_points, norm_table, shape

OFFSETS = (Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(2, 3), Fraction(19, 20))


@pytest.mark.parametrize("name", sorted(SHAPES))
@pytest.mark.parametrize("epsilon", [2, 9])
def test_sums_are_the_brute_force_sums(name, epsilon):
    hull = shape(name)
    radius = 4 + 30 // epsilon
    rel = 1e-6 if name == "slanted box" and epsilon == 2 else 1e-9  # too many points for the shorter tail
    for mechanism in (DiscreteKNorm(hull, epsilon), *(Staircase(hull, epsilon, g) for g in OFFSETS)):
        assert mechanism.expected_error == pytest.approx(expected_error(mechanism, radius), rel=rel)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)).filter(any), min_size=1, max_size=3),
    st.fractions(0, Fraction(9, 10), max_denominator=10),
)
def test_sums_of_random_bodies_at_random_offsets(points, offset):
    hull = hull_of_points(points)
    for mechanism in (DiscreteKNorm(hull, 3), Staircase(hull, 3, offset)):
        assert mechanism.expected_error == pytest.approx(expected_error(mechanism, 13), rel=1e-9)


def test_sums_leave_out_less_than_they_say():
    """A walk twice as far changes nothing beyond 1e-12."""
    hull = shape("disc")
    body = lattice_body(hull)
    for epsilon in (Fraction(3, 2), Fraction(4), Fraction(40)):
        errors = ErrorSums.of(hull, body, epsilon, OFFSETS)
        assert errors.summed
        for g, law in zip((None, *OFFSETS), (errors.knorm, *errors.staircase), strict=True):
            mechanism = DiscreteKNorm(hull, epsilon) if g is None else Staircase(hull, epsilon, g)
            assert law.error == pytest.approx(expected_error(mechanism, 60), rel=2e-12)


def test_a_walk_that_stops_too_soon_goes_on(monkeypatch):
    hull = shape("disc")
    right = ErrorSums.of(hull, lattice_body(hull), Fraction(2), OFFSETS)
    monkeypatch.setattr(module, "_first_radius", lambda k, epsilon, share: 2)
    again = ErrorSums.of(hull, lattice_body(hull), Fraction(2), OFFSETS)
    assert again.knorm.error == pytest.approx(right.knorm.error, rel=2e-12)
    for a, b in zip(again.staircase, right.staircase, strict=True):
        assert a.error == pytest.approx(b.error, rel=2e-12)


def test_units_are_those_of_the_answers():
    points = [(3, 0), (2, 2), (0, 3), (-2, 2)]
    stretched = DiscreteKNorm(hull_of_points(points, pitch=(0.5, 20.0)), 2)
    vectors, tops, common = norm_table(stretched.hull, 20)
    weights = np.exp(-2 * tops / common)
    expected = (weights * ((vectors * (0.5, 20.0)) ** 2).sum(axis=1)).sum() / weights.sum()
    assert stretched.expected_error == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", ["interval", "disc", "flat", "octahedron", "plane in space"])
def test_closed_forms_take_over_where_sums_are_long(name, monkeypatch):
    hull = shape(name)
    # The finer the lattice beside 1/ε, the nearer the laws; a walk in space can only go so far.
    epsilon, near = (Fraction(1, 3), 0.3) if hull.rank == 3 else (Fraction(1, 10), 0.06)
    body = lattice_body(hull)
    monkeypatch.setattr(module, "MOST_POINTS", 10**8)
    summed = ErrorSums.of(hull, body, epsilon, OFFSETS)
    monkeypatch.setattr(module, "MOST_POINTS", 0)
    closed = ErrorSums.of(hull, body, epsilon, OFFSETS)
    assert summed.summed and not closed.summed
    for short, long in zip(closed.staircase, summed.staircase, strict=True):
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


@pytest.mark.parametrize("p", [0, 1, 2, 5, 8])
@pytest.mark.parametrize("g", [0.0, 0.25, 0.9])
@pytest.mark.parametrize("epsilon", [0.05, 1.0, 6.0])
def test_power_sums(p, g, epsilon):
    direct = math.fsum(math.exp(-epsilon * j) * (j + g) ** p for j in range(4000))
    assert module._power_sum(p, epsilon, g) == pytest.approx(direct, rel=1e-12)


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


def test_the_best_offset_is_the_best_of_all_breakpoints():
    """Where breakpoints of N are few, no offset at or between them does better than the one chosen."""
    for name in ("interval", "odd interval", "square", "flat", "octahedron"):
        hull = shape(name)
        for epsilon in (1, 3, 6):
            best = Staircase(hull, epsilon)
            others = [Staircase(hull, epsilon, Fraction(i, 84)).expected_error for i in range(84)]
            assert best.expected_error <= min(others) * (1 + 1e-9)


def test_candidate_offsets_are_breakpoints_of_the_norm():
    body = lattice_body(shape("interval"))
    assert candidate_offsets(body) == (0, Fraction(1, 3), Fraction(2, 3))
    many = candidate_offsets(lattice_body(hull_of_points([(97, 1), (3, 50)])))
    assert len(many) == 32 and many[0] == 0 and list(many) == sorted(set(many)) and max(many) < 1
    wide = candidate_offsets(lattice_body(hull_of_points([(1000, 1), (3, 500)])))
    assert wide == tuple(Fraction(i, 32) for i in range(32))
