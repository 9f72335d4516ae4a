"""The optimal additive mechanism: what it loses, by enumeration in fractions; what it gains; and that it says the truth
about both.

Claims: noises that differ by a vector of the body lose at most ε, wherever they are (it would fail for weights rounded
the wrong way, a tail that is not tied to the window, one sign of a difference forgotten); `loss_lattice` bounds what
any difference loses, and no whole step less would; normaliser, mean error and likelihood are those of the definition;
no law of noise errs less, by a relaxed program without symmetries, and the best staircase errs no less.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.mechanisms import OptimalAdditive, Staircase
from dphmm.mechanisms.additive_law import log
from dphmm.mechanisms.optimal import facets_of
from naive_additive import least_mean, table, weight, worst_ratio
from naive_mechanisms import hull_of_points, norm, shape

points = st.tuples(st.integers(-2, 2), st.integers(-2, 2)).filter(any)
epsilons = st.fractions(1, 5, max_denominator=4)


def vectors_of_body(hull):
    y = facets_of(hull).within(Fraction(1)).points(hull.rank)
    return [tuple(v) for v in (y @ hull.basis.T).tolist() if any(v)]


def exp_below(epsilon):
    """A rational below e^ε, by less than 1e-30 of it: a partial sum of its series."""
    total = term = Fraction(1)
    for n in range(1, 200):
        term *= epsilon / n
        total += term
    return total


@settings(max_examples=15, deadline=None)
@given(st.lists(points, min_size=1, max_size=3), epsilons)
def test_no_two_noises_that_differ_by_a_vector_of_the_body_lose_more_than_epsilon(required, epsilon):
    hull = hull_of_points(required)
    mechanism = OptimalAdditive(hull, epsilon)
    radius, most = mechanism.law.radius, exp_below(epsilon)
    body = vectors_of_body(hull)
    half = body[: len(body) // 2]
    assert {tuple(-x for x in v) for v in half} | set(half) == set(body)
    assert all(worst_ratio(mechanism, v, min(radius, Fraction(4))) <= most for v in half[:: max(1, len(half) // 3)])


@pytest.mark.parametrize(("name", "epsilon"), [("interval", 1), ("running", 3), ("square", 2), ("plane in space", 3)])
def test_the_whole_window_and_two_shells_keep_epsilon(name, epsilon):
    hull = shape(name)
    mechanism = OptimalAdditive(hull, epsilon)
    most = exp_below(Fraction(epsilon))
    worst = [worst_ratio(mechanism, v, mechanism.law.radius + 2) for v in vectors_of_body(hull)]
    assert max(worst) <= most < max(worst) * Fraction(1001, 1000)


@pytest.mark.parametrize(("name", "epsilon"), [("interval", 2), ("running", 3), ("square", 3)])
def test_the_stated_loss_bounds_every_enumerated_one_and_is_reached_in_whole_steps(name, epsilon):
    hull = shape(name)
    mechanism = OptimalAdditive(hull, epsilon)
    step = 1 / mechanism.law.q
    some = facets_of(hull).within(Fraction(3)).points(hull.rank) @ hull.basis.T
    for v in some[:: 1 + len(some) // 12].tolist():
        m = math.ceil(norm(hull, v))
        assert mechanism.loss_lattice(v) == epsilon * m == mechanism.loss(np.array(v, float))
        worst = worst_ratio(mechanism, v, mechanism.law.radius + 4)
        assert worst <= step**m and (m == 0 or worst > step ** (m - 1))
    assert mechanism.loss_of_norm(math.inf) == math.inf


@pytest.mark.parametrize("name", ["interval", "square", "running", "flat slanted", "plane in space"])
def test_masses_are_the_brute_force_sums(name):
    """Sum, mean square and logs of the weights over seven shells more, beyond which is a millionth of all shells."""
    hull = shape(name)
    mechanism = OptimalAdditive(hull, 3)
    vectors, weights = table(mechanism, mechanism.law.radius + 7)
    beyond = sum(weights) - mechanism.law.inside
    assert 1 - Fraction(1, 10**6) < beyond / mechanism.law.outside < 1
    assert sum(w for w in weights) < mechanism.law.inside + mechanism.law.outside
    shares = np.array([float(w / (mechanism.law.inside + mechanism.law.outside)) for w in weights])
    assert mechanism.expected_error == pytest.approx(shares @ (vectors**2).sum(axis=1), rel=1e-7)
    logs = mechanism.log_likelihood_lattice(np.zeros(hull.dimension, dtype=np.int64), vectors)
    np.testing.assert_allclose(np.exp(logs - mechanism.log_normaliser), shares, rtol=1e-9)


def test_the_law_goes_on_for_ever_and_stays_on_the_span():
    mechanism = OptimalAdditive(shape("flat slanted"), 2)
    zero = np.zeros(2, dtype=np.int64)
    far = np.array([[2 * 10**6, -3 * 10**6], [1, 0], [0, 0]])
    logs = mechanism.log_likelihood_lattice(zero, far)
    assert logs[0] == pytest.approx(-(10**6), rel=1e-4) and logs[1] == -math.inf and logs[2] == 0.0
    assert weight(mechanism, (1, 0)) == 0 and weight(mechanism, (20, -30)) > 0
    assert mechanism.loss_lattice((1, 0)) == math.inf


def disc(square):
    reach = range(-4, 5)
    return hull_of_points([(x, y) for x in reach for y in reach if 0 < x * x + y * y <= square])


#: Mean distances of the best additive noise for radius sqrt(square), to the digits that are known for certain.
KNOWN = [(5.29, 2, 1.9801), (5.29, 3, 1.0701), (5.29, 4, 0.5163), (10.24, 3, 1.7314)]


def mean_distance(mechanism):
    law = mechanism.law
    shells = mechanism._shells(law.facets, law.radius)
    lengths = [float(np.linalg.norm(v, axis=1).sum()) for v in shells]
    return law.mean(np.linalg.norm(law.points, axis=1), lengths)


@pytest.mark.parametrize(("square", "epsilon", "expected"), KNOWN)
def test_known_optima_come_out(square, epsilon, expected):
    assert mean_distance(OptimalAdditive(disc(square), epsilon, "euclidean")) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "epsilon", "radius"), [("interval", 2, 9), ("square", 2, 9), ("example", 3, 6), ("running", 3, 6)]
)
def test_it_is_between_a_relaxation_and_the_best_staircase(name, epsilon, radius):
    hull = shape(name)
    ours = OptimalAdditive(hull, epsilon).expected_error
    below = least_mean(hull, float(epsilon), radius, lambda v: v @ v)
    assert below * (1 - 1e-7) <= ours <= below * 1.0005
    assert ours <= Staircase(hull, epsilon).expected_error * (1 + 1e-9)


def test_it_can_beat_every_staircase():
    assert OptimalAdditive(shape("example"), 1).expected_error < 0.92 * Staircase(shape("example"), 1).expected_error


def test_in_one_dimension_the_staircase_is_the_optimum():
    """Geng and Viswanath, on the integers."""
    for epsilon in ("0.3", 1, 4):
        pair = [kind(shape("odd interval"), epsilon).expected_error for kind in (OptimalAdditive, Staircase)]
        assert pair[0] == pytest.approx(pair[1], rel=1e-6)


def test_costs_of_ones_own_decide_what_is_least():
    """Only the first axis costs: the second is made to carry the noise, and is left wide."""
    even = OptimalAdditive(shape("square"), 2)
    steered = OptimalAdditive(shape("square"), 2, costs=lambda v: np.abs(v[:, 0]) + 0.01 * np.abs(v[:, 1]))
    means = [[float(np.abs(m.law.points[:, axis]) @ np.array(m.law.weights, float)) / m.law.inside for axis in (0, 1)]
             for m in (even, steered)]  # fmt: skip
    assert means[0][0] == pytest.approx(means[0][1]) and means[1][0] <= means[0][0] + 1e-9
    assert steered.describe()["loss"] == "custom"


def test_units_are_those_of_the_answers():
    """A stretched axis: its noise costs more, so it is kept shorter; errors are in answer units squared."""
    hull = hull_of_points([(2, 0), (0, 2), (1, 1)], pitch=(1.0, 4.0))
    mechanism = OptimalAdditive(hull, 2)
    vectors, weights = table(mechanism, mechanism.law.radius + 5)
    shares = np.array([float(w / (mechanism.law.inside + mechanism.law.outside)) for w in weights])
    in_units = ((vectors * np.array([1.0, 4.0])) ** 2).sum(axis=1)
    assert mechanism.expected_error == pytest.approx(shares @ in_units, rel=1e-6)
    assert shares @ vectors[:, 1] ** 2 < shares @ vectors[:, 0] ** 2


@pytest.mark.replayed_words
@pytest.mark.parametrize("epsilon", [Fraction(1, 2**20), 13, 2**10])
def test_the_ends_of_the_range_of_epsilon(epsilon):
    """Above 12 it is the staircase; a tiny ε needs too large a window and is refused, in words."""
    hull = shape("square")
    if epsilon < 1:
        with pytest.raises(InvalidInput, match="larger epsilon"):
            OptimalAdditive(hull, epsilon)
        return
    both = [kind(hull, epsilon).expected_error for kind in (OptimalAdditive, Staircase)]
    assert both[0] == pytest.approx(both[1], rel=1e-9)
    assert OptimalAdditive(hull, epsilon).noise(50).shape == (50, 2)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(InvalidInput, match="rank 3"):
        OptimalAdditive(shape("octahedron"), 1)
    with pytest.raises(InvalidInput, match="loss"):
        OptimalAdditive(shape("square"), 1, "absolute")
    with pytest.raises(InvalidInput, match="smaller body"):
        OptimalAdditive(hull_of_points([(90, 0), (0, 90)]), 1)


@pytest.mark.parametrize("denominator", [7, 2**40, 10**30, 3**700])
def test_logs_of_rationals_next_to_one_lose_no_digits(denominator):
    """Against log(1 + x) = x - x²/2 + x³/3 - .. in fractions; the difference of two logs would keep none of them."""
    for numerator in (1, -1, denominator // 2**25 + 1, -(denominator // 2**25 + 1)):
        x = Fraction(numerator, denominator)
        expected = math.log1p(float(x)) if abs(x) > Fraction(1, 100) else float(x - x**2 / 2 + x**3 / 3 - x**4 / 4)
        assert log(1 + x) == pytest.approx(expected, rel=1e-15 if abs(x) < Fraction(1, 2**20) else 1e-7)
