"""The optimal additive mechanism: what it loses, by enumeration in fractions; what it gains; and that it says the truth
about both.

Claims: noises that differ by a vector of the body lose at most ε, wherever they are (it would fail for weights rounded
the wrong way, a tail that is not tied to the window, one sign of a difference forgotten); `loss_lattice` bounds what
any difference loses, and no whole step less would; normaliser, mean error and likelihood are those of the definition;
no law of noise errs less, by a relaxed program without symmetries, and the best staircase errs no less.

The certificate: every way in which the integers of a law could be wrong is refused, and the right ones are not.

It would fail for a certificate that trusts the solver, looks at one sign of a difference, leaves the shells out, or
takes a ratio of shells that is rounded down. The solver is replaced by ones that lie.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.mechanisms import OptimalAdditive, Staircase, optimal
from dphmm.mechanisms.base import Uncertified, falling_ratio
from dphmm.mechanisms.optimal import AdditiveLaw, facets_of, log, require_certified
from dphmm.samplers.rows import Facets
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


@pytest.mark.slow
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


EPSILON = Fraction(2)


@pytest.fixture(scope="module")
def law():
    return OptimalAdditive(shape("running"), EPSILON).law


def changed(law, place, factor):
    weights = list(law.weights)
    weights[place] = max(0, int(weights[place] * factor))
    return replace(law, weights=tuple(weights))


def at(law, y):
    return int(law.numbers(np.array([y]))[0])


def edge(law):
    """A point of the window within one vector of the first shell."""
    return max(range(len(law.points)), key=lambda i: float(np.abs(law.points[i]).sum()))


def wrong(law):
    """Laws with one thing wrong each."""
    up, down = Fraction(3), Fraction(1, 3)
    yield "the centre too heavy", changed(law, at(law, (0, 0)), up)
    yield "the centre too light", changed(law, at(law, (0, 0)), Fraction(1, 20))
    for y in ((2, 1), (-2, -1), (0, 2), (-3, 1)):
        yield f"{y} too heavy", changed(law, at(law, y), up * 9)
        yield f"{y} too light", changed(law, at(law, y), down / 9)
    yield "a point at the edge too heavy", changed(law, edge(law), up * 9)
    yield "a point at the edge too light", changed(law, edge(law), down / 9)
    yield "a tail too heavy", replace(law, tail=law.tail * 9)
    yield "a tail too light", replace(law, tail=law.tail // 9)
    yield "no tail", replace(law, tail=0)
    yield "a noise without weight", changed(law, at(law, (0, 0)), Fraction(0))
    yield "shells too steep", replace(law, ratio=law.ratio - 2**10)
    yield "shells that do not fall", replace(law, ratio=1 << law.bits)
    yield "shells that grow", replace(law, ratio=law.ratio << 4)
    yield "shells without weight", replace(law, ratio=0)
    yield "a point left out", replace(law, points=law.points[1:], weights=law.weights[1:])
    yield "a smaller window", replace(law, radius=law.radius - 1)
    yield "a larger window", replace(law, radius=law.radius + 1)


def test_the_right_law_is_certified(law):
    require_certified(law, EPSILON)
    require_certified(law, EPSILON + Fraction(1, 10))


def test_a_law_that_is_wrong_in_one_number_is_refused(law):
    for name, other in wrong(law):
        with pytest.raises(Uncertified):
            require_certified(other, EPSILON)
            pytest.fail(name)


def test_for_a_smaller_epsilon_it_is_refused(law):
    with pytest.raises(Uncertified):
        require_certified(law, EPSILON - Fraction(1, 2**60))


def pair_law(weights, ratio=Fraction(1, 8), tail=8):
    """Weights on -2 .. 2 of the interval of half-width 1, ε just above log 8."""
    from dphmm.mechanisms.optimal import facets_of
    from naive_mechanisms import hull_of_points

    facets = facets_of(hull_of_points([(1,)]))
    points = np.array([[y] for y in range(-2, 3)])
    return AdditiveLaw(facets, Fraction(2), points, tuple(weights), tail, ratio.numerator, 3)


EIGHT = Fraction(208, 100)  # e^2.08 = 8.004


@pytest.mark.parametrize(
    ("weights", "tail", "right"),
    [
        ((64, 512, 4096, 512, 64), 8, True),
        ((64, 512, 4096, 512, 64), 7, False),  # the shell is lighter than an eighth of its neighbour
        ((64, 511, 4096, 512, 64), 8, False),  # to the left alone
        ((64, 512, 4096, 511, 64), 8, False),  # to the right alone
        ((64, 512, 4096, 512, 63), 8, False),
        ((64, 512, 4097, 512, 64), 8, False),  # by one
        ((1, 8, 64, 8, 1), 8, True),  # a shell may be heavier than the window, up to the same ratio
        ((1, 8, 64, 8, 1), 9, False),
    ],
)
def test_every_pair_counts_to_the_last_integer(weights, tail, right):
    law = pair_law(weights, tail=tail)
    if right:
        require_certified(law, EIGHT)
        return
    with pytest.raises(Uncertified):
        require_certified(law, EIGHT)


def test_the_ratio_of_shells_is_never_below_e_to_minus_epsilon():
    for epsilon in (Fraction(1, 2**20), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(100), Fraction(2**10)):
        ratio, bits = falling_ratio(epsilon)
        total = term = Fraction(1)
        n = 0
        while n < 4 * epsilon or term > Fraction(1, 2**200):
            n += 1
            term = Fraction(math.floor(term * epsilon / n * 2**400), 2**400)
            total += term
        # total is below e^ε by next to nothing, so ratio·total >= 1 for nothing below e^-ε but what 2**-80 hides.
        q = Fraction(ratio, 2**bits)
        assert q < 1 and q * (total + Fraction(1, 2**100)) >= 1 and q * total < 1 + Fraction(1, 2**70)


def lies():
    """What a solver might return instead of a solution."""
    rng = np.random.default_rng(1)
    yield lambda n: np.ones(n) * 1e-300
    yield lambda n: np.append(np.full(n - 1, 1e9), 1.0)
    yield lambda n: np.append(1.0, np.full(n - 1, 1e-12))
    yield lambda n: rng.exponential(size=n)
    yield lambda n: np.zeros(n) + (np.arange(n) == 0)
    yield lambda n: -rng.exponential(size=n) + 0.5


@pytest.mark.parametrize("lie", [*lies()])
def test_whatever_the_solver_says_what_comes_out_is_certified(lie, monkeypatch):
    """Rounding raises what is too low, so even nonsense ends in a law that keeps ε: a worse one."""
    best = OptimalAdditive(shape("running"), EPSILON)
    monkeypatch.setattr(optimal, "proposed", lambda window, *rest: lie(len(window.levels)))
    optimal._cache.clear()
    mechanism = OptimalAdditive(shape("running"), EPSILON)
    optimal._cache.clear()
    require_certified(mechanism.law, EPSILON)
    assert mechanism.expected_error > best.expected_error * (1 - 1e-9)


def test_without_repair_a_lie_is_not_drawn_from(monkeypatch):
    """The certificate alone, in the place where it counts: what rounding leaves wrong stops the mechanism."""

    monkeypatch.setattr(optimal, "_raised", lambda given, *rest: given)
    monkeypatch.setattr(optimal, "proposed", lambda window, *rest: 1.0 + (np.arange(len(window.levels)) % 2))
    optimal._cache.clear()
    with pytest.raises(Uncertified):
        OptimalAdditive(shape("running"), EPSILON)
    optimal._cache.clear()


def test_a_body_without_lattice_corners_is_refused():
    """Half-width 3/2: shells of 2, 4, 2, 4, .. points, whose mass is not that of the polynomial."""
    law = pair_law((64, 512, 4096, 512, 64))
    facets = Facets(np.array([[2]]), (3,), (Fraction(3, 2),))
    other = replace(law, facets=facets, radius=Fraction(4, 3))
    assert [facets.shell(other.radius, j).size for j in (1, 2, 3)] == [2, 4, 2] and law.has_whole_mass
    with pytest.raises(Uncertified, match="lattice points as corners"):
        require_certified(other, EIGHT)


def test_the_digest_is_of_every_number(law):
    digests = {name: other.digest for name, other in wrong(law)}
    assert len({law.digest, *digests.values()}) == len(digests) + 1
    again = replace(law)
    assert again.digest == law.digest
