"""The certificate: every way in which the integers of a law could be wrong is refused, and the right ones are not.

It would fail for a certificate that trusts the solver, looks at one sign of a difference, leaves the shells out, or
takes a ratio of shells that is rounded down. The solver is replaced by ones that lie.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dphmm.mechanisms import OptimalAdditive, optimal
from dphmm.mechanisms.additive_law import AdditiveLaw, Uncertified, falling_ratio, require_certified
from dphmm.samplers.rows import Facets
from naive_mechanisms import shape

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
    from dphmm.mechanisms import additive_law

    monkeypatch.setattr(additive_law, "_raised", lambda given, *rest: given)
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
