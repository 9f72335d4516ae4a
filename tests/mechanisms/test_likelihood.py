"""Likelihoods against the definition, exactly where a ceiling decides, and sampling in answer units.

In one dimension a number and a vector of one number are the same answer, for every mechanism.

Claim: ``loss``, ``log_likelihood`` and ``sample`` take 3.0 and [3.0] alike where d = 1, and refuse a bare number where
d = 2. It would fail where the shortcut for numbers also caught, or no longer caught, vectors of one.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphmm
from dphmm.errors import InvalidInput
from dphmm.mechanisms import Constant, DiscreteKNorm, DiscreteLaplace, KNorm, Laplace, PlanarIsotropic, Staircase
from dphmm.mechanisms import knorm as module
from dphmm.policy import complete
from dphmm.samplers import ReplayBits
from dphmm.sensitivity import sensitivity_hull
from dphmm.sensitivity.exact_hull import Body
from naive_mechanisms import SHAPES, exponent, hull_of_points, norm, shape

#: What draws by default replays words here, each test its own.
pytestmark = pytest.mark.replayed_words


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(SHAPES)),
    st.lists(st.integers(-30, 30), min_size=3, max_size=3),
    st.fractions(0, Fraction(9, 10), max_denominator=10),
)
def test_lattice_likelihoods_are_the_exponents(name, z, offset):
    hull = shape(name)
    d = hull.dimension
    images = np.random.default_rng(0).integers(-6, 7, size=(30, d))
    for mechanism in (DiscreteKNorm(hull, "0.7"), Staircase(hull, "0.7", offset)):
        found = mechanism.log_likelihood_lattice(np.array(z[:d]), images)
        for value, image in zip(found, images, strict=True):
            size = norm(hull, np.array(z[:d]) - image)
            expected = -math.inf if size is None else -float(exponent(mechanism, size))
            assert value == pytest.approx(expected, rel=1e-14, abs=1e-14)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_stairs_are_decided_on_their_edges(name):
    """On multiples of a corner N is a whole number, however large: no float decides the stair."""
    hull = shape(name)
    corner = (np.asarray(hull.hull_vertices) @ hull.basis.T)[0]
    for g in (Fraction(0), Fraction(1, 3), Fraction(1, 7)):
        stairs = Staircase(hull, 1, g)
        for multiple in (1, 2, 7, 10**6, 3 * 10**9):
            z = multiple * corner
            expected = math.ceil(multiple - g)
            assert stairs.log_likelihood_lattice(z, np.zeros((1, hull.dimension), dtype=np.int64))[0] == -expected


def test_likelihoods_beyond_64_bits_are_exact(monkeypatch):
    hull = hull_of_points([(2**20, 1), (3, 2**19)])
    z = np.array([2**60, -(2**59)])
    images = np.array([[0, 0], [2**20, 1], [-(2**52), 2**52]])
    for mechanism in (DiscreteKNorm(hull, 1), Staircase(hull, 1, Fraction(1, 3))):
        assert not module.fits_int64(z - images, hull.normals)
        found = mechanism.log_likelihood_lattice(z, images)
        expected = [-float(exponent(mechanism, norm(hull, z - image))) for image in images]
        np.testing.assert_allclose(found, expected, rtol=1e-15)
    near = np.array([2**10, 77])
    for mechanism in (DiscreteKNorm(hull, 1), Staircase(hull, 1, Fraction(1, 3))):
        fast = mechanism.log_likelihood_lattice(near, images)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_INT64_ROOM", 0.0)
            np.testing.assert_allclose(mechanism.log_likelihood_lattice(near, images), fast, rtol=1e-15)


@pytest.mark.parametrize("room", [2.0**62, 0.0])
def test_stairs_begin_where_the_norm_meets_the_offset(room, monkeypatch):
    """N = j + g is still step j, in 64 bits and in Python integers."""
    monkeypatch.setattr(module, "_INT64_ROOM", room)
    hull, zero = shape("interval"), np.zeros((1, 1), dtype=np.int64)
    for g in (Fraction(0), Fraction(1, 3), Fraction(2, 3), Fraction(1, 2)):
        stairs = Staircase(hull, 1, g)
        found = [stairs.log_likelihood_lattice(np.array([z]), zero)[0] for z in range(-20, 21)]
        assert found == [-max(0, math.ceil(Fraction(abs(z), 3) - g)) for z in range(-20, 21)]


def test_likelihoods_in_answer_units_are_those_of_the_lattice():
    hull = hull_of_points([(3, 1), (1, 2)], pitch=(0.25, 340.0), origin=(7.0, -1.0))
    lattice = np.array([[0, 0], [4, -3], [100, 2]])
    answers = hull.frame.to_answers(lattice)
    for mechanism in (DiscreteKNorm(hull, 2), Staircase(hull, 2, "0.4")):
        z = mechanism.sample(answers[1], ReplayBits(1))
        assert z.shape == (2,)
        steps = hull.frame.to_lattice(z)
        np.testing.assert_array_equal(
            mechanism.log_likelihood(z, answers), mechanism.log_likelihood_lattice(steps, lattice)
        )
        assert (hull.frame.to_answers(steps) == z).all()  # nothing but a lattice point ever comes out


def test_samples_are_answer_plus_noise_in_integers():
    """The same words give the same noise bit for bit, whatever the answer (docs/proofs/sampling.md, 4)."""
    hull = hull_of_points([(3, 1), (1, 2)], pitch=(0.1, 0.3), origin=(0.05, 0.0))
    for mechanism in (DiscreteKNorm(hull, 1), Staircase(hull, 1)):
        noise = mechanism.noise(5, ReplayBits(3))
        for state in ((0, 0), (1000, -77), (-5, 2**40)):
            answers = hull.frame.to_answers(np.tile(state, (5, 1)))
            z = mechanism.sample(answers, ReplayBits(3))
            np.testing.assert_array_equal(z, hull.frame.to_answers(np.array(state) + noise))


def test_flat_hulls_exclude_other_cosets():
    hull = shape("flat")
    z, images = np.array([2, -4]), np.array([[0, 0], [1, -2], [1, -1], [0, 2]])
    for mechanism in (DiscreteKNorm(hull, 1), Staircase(hull, 1, 0)):
        found = mechanism.log_likelihood_lattice(z, images)
        assert np.isfinite(found).tolist() == [True, True, False, False]
        noise = mechanism.noise(1000, ReplayBits(4))
        assert (noise[:, 1] == -2 * noise[:, 0]).all() and (noise[:, 0] % 2 == 1).any()


def test_continuous_likelihoods():
    hull = shape("example")
    z, answers = np.array([0.3, -2.0]), np.array([(1.0, 0.0), (0.0, 0.0), (3.0, 3.0)])
    for kind in (KNorm, PlanarIsotropic):
        found = kind(hull, 2).log_likelihood(z, answers)
        np.testing.assert_allclose(found, [-2 * hull.norm(z - a) for a in answers])
    np.testing.assert_allclose(Laplace(5, 2).log_likelihood(z, answers), -np.abs(z - answers).sum(axis=1) * 2 / 5)


def test_the_constant_says_its_answer_and_nothing_else():
    mechanism = Constant(hull_of_points([(0, 0)], pitch=(2.0, 2.0)), 1)
    np.testing.assert_array_equal(mechanism.sample((4.0, -6.0)), (4.0, -6.0))
    assert mechanism.noise(3).tolist() == [[0, 0]] * 3
    assert mechanism.log_likelihood((4.0, -6.0), [(4.0, -6.0), (4.0, -4.0)]).tolist() == [0.0, -math.inf]
    assert mechanism.expected_error == 0.0


EXACT = {
    "constant": Constant,
    "discrete-knorm": DiscreteKNorm,
    "discrete-laplace": DiscreteLaplace.for_hull,
    "staircase": Staircase,
}
MADE = {**EXACT, "knorm": KNorm, "laplace": Laplace, "planar-isotropic": PlanarIsotropic}


@pytest.mark.parametrize("name", MADE)
def test_bad_input_is_refused_in_one_line_without_the_answer(name):
    hull = hull_of_points([(0, 0)]) if name == "constant" else shape("disc")
    mechanism = MADE[name](hull, 1)
    secret = 7219.4375
    for wrong in ((secret,), (secret, 1.0, 2.0), [[[secret, 1.0]]], (secret, math.nan), (math.inf, secret)):
        with pytest.raises(InvalidInput) as caught:
            mechanism.sample(wrong)
        assert "7219" not in str(caught.value) and "\n" not in str(caught.value)
    if name in EXACT:
        with pytest.raises(InvalidInput) as caught:
            mechanism.sample((secret, 0.0))
        assert "7219" not in str(caught.value)


@pytest.mark.parametrize("name", MADE)
def test_bad_parameters_are_refused(name):
    hull = hull_of_points([(0, 0)]) if name == "constant" else shape("disc")
    for epsilon in (0, -1, math.nan, math.inf, True, "1_000", "x", 2**21, Fraction(1, 2**21), None):
        with pytest.raises(InvalidInput, match="epsilon"):
            MADE[name](hull, epsilon)
    with pytest.raises(InvalidInput):
        MADE[name]([[1, 0]], 1)
    other_rank = shape("disc") if name == "constant" else hull_of_points([(0, 0)])
    with pytest.raises(InvalidInput):
        MADE[name](other_rank, 1)


def test_offsets_and_sensitivities_are_checked():
    for wrong in (-0.1, 1, "1", math.nan, True, "x"):
        with pytest.raises(InvalidInput, match="offset"):
            Staircase(shape("disc"), 1, wrong)
    for wrong in (0, -1, math.nan, "x"):
        with pytest.raises(InvalidInput, match="sensitivity"):
            Laplace(wrong, 1)
    with pytest.raises(InvalidInput, match="dimension"):
        _ = Laplace(5, 1).expected_error
    assert Laplace(5, 1, dimension=2).expected_error == 100.0


def test_the_planar_mechanism_refuses_flat_hulls_and_the_continuous_one_does_not():
    with pytest.raises(InvalidInput, match="K: got a hull of rank 1"):
        PlanarIsotropic(shape("flat"), 1)
    z = KNorm(shape("flat"), 1).sample((0.0, 0.0), ReplayBits(1))
    assert z[1] == pytest.approx(-2 * z[0])


def test_the_continuous_mechanism_refuses_a_body_that_is_larger_than_its_hull(monkeypatch):
    """Its noise is drawn on the hull's corners: around a body of few facets these are none, or not all."""
    monkeypatch.setattr("dphmm.sensitivity.exact_hull._MOST_POINTS", {})
    answers = np.vstack([np.zeros(7, dtype=np.int64), np.eye(7, dtype=np.int64)])
    of_few_facets = sensitivity_hull(complete(8), answers)
    assert of_few_facets.hull_vertices is None
    known = shape("octahedron")
    body = Body(known.normals, known.offsets, known.body.vertices, known.body.simplices, exact=False)
    for hull in (of_few_facets, replace(known, body=body)):
        assert not hull.exact
        with pytest.raises(InvalidInput, match=r"^K: .*DiscreteKNorm"):
            KNorm(hull, 1)
        DiscreteKNorm(hull, 1)


def test_shapes_of_samples():
    for mechanism in (DiscreteKNorm(shape("disc"), 1), KNorm(shape("disc"), 1), Laplace(3, 1)):
        assert mechanism.sample((1.0, 2.0)).shape == (2,)
        assert mechanism.sample(np.zeros((7, 2))).shape == (7, 2)
        assert mechanism.sample(np.zeros((0, 2))).shape == (0, 2)
    assert DiscreteKNorm(shape("interval"), 1).sample(4).shape == (1,)


def test_more_draws_use_new_words():
    """The stream goes on: no draw repeats the one before (docs/proofs/randomness.md)."""
    mechanism, bits = DiscreteKNorm(shape("disc"), Fraction(1, 100)), ReplayBits(9)
    draws = [tuple(mechanism.noise(3, bits).ravel()) for _ in range(50)]
    assert len(set(draws)) == 50
    assert mechanism.noise(3, ReplayBits(9)).ravel().tolist() == list(draws[0])
    assert len({tuple(mechanism.noise(3).ravel()) for _ in range(20)}) == 20


SPACE = dphmm.StateSpace([[0.0], [1.0], [3.0]])
HULL = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(3), SPACE)
POINT = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([], 3), SPACE)
PLANE = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(3), np.array([[0, 0], [1, 0], [0, 1]]))
ONE = [kind(HULL, 1) for kind in (DiscreteKNorm, Staircase, KNorm, Laplace)] + [Constant(POINT, 1)]


@pytest.mark.parametrize("mechanism", ONE, ids=lambda mechanism: type(mechanism).__name__)
def test_a_number_is_a_vector_of_one(mechanism):
    assert mechanism.loss(1.0) == mechanism.loss([1.0])
    one, other = (mechanism.log_likelihood(z, [[0.0], [1.0]]) for z in (1.0, [1.0]))
    np.testing.assert_array_equal(one, other)
    first, second = (mechanism.sample(answer, ReplayBits(1)) for answer in (3.0, [3.0]))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (1,)


@pytest.mark.parametrize("kind", [DiscreteKNorm, Staircase, KNorm])
def test_a_number_is_no_vector_of_two(kind):
    for call in (lambda m: m.loss(1.0), lambda m: m.log_likelihood(1.0, [[0.0, 0.0]]), lambda m: m.sample(1.0)):
        with pytest.raises(InvalidInput, match="shape"):
            call(kind(PLANE, 1))
