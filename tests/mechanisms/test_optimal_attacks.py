"""Attacks on the optimal additive mechanism: bodies that are not meant for it, costs that are no costs, words that were
made to fall on borders, twins of its law that know only its integers.

Claims: no vector of the body loses more than ε, near the window's border and far in the tail; a longer one no more than
is stated; what is drawn is the definition, word by word; a body that does not fit into memory is refused before
anything is listed; costs that are no costs are refused in one line.
Each says how many instances it runs.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from dphmm.errors import InvalidInput
from dphmm.mechanisms import OptimalAdditive, Staircase
from naive_mechanisms import hull_of_points

EPSILONS = [Fraction(*e) for e in ((5, 3), (2, 1), (5, 1), (12, 1), (25, 2), (100, 1), (1024, 1))]


def exp_below(epsilon):
    """A rational below e^ε, by less than 2**-180 of it."""
    scale, term, total = 2 ** (200 + 2 * math.ceil(epsilon)), Fraction(1), Fraction(1)
    for n in range(1, 4 * math.ceil(epsilon) + 200):
        term = Fraction(math.floor(term * epsilon / n * scale), scale)
        total += term
    return total


def by_definition(mechanism):
    """Norm and weight of points of the span, from the law's integers and the hull's facets alone."""
    law, hull = mechanism.law, mechanism.hull
    near = dict(zip(map(tuple, law.points.tolist()), law.weights, strict=True))
    facets = list(zip(map(tuple, hull.normals.tolist()), map(int, hull.offsets), strict=True))

    def norm(y):
        return max(Fraction(abs(sum(a * c for a, c in zip(n, y, strict=True))), b) for n, b in facets)

    def weight(y):
        size = norm(y)
        if size <= law.radius:
            return Fraction(near[y])
        return law.tail * Fraction(law.ratio, 2**law.bits) ** (math.ceil(size - law.radius) - 1)

    return norm, weight, list(near)


def lopsided(v):
    return np.maximum(0, v.sum(axis=1)) + 0.1 * np.linalg.norm(v, axis=1)


def wavy(v):
    return np.linalg.norm(v, axis=1) * (1 + 0.5 * np.sin(v @ np.arange(1, v.shape[1] + 1) * 7.0))


def points_of(kind, rng):
    """Required differences: thin, slanted, flat, in one and three dimensions."""
    if kind == "small":
        return [(rng.randint(-3, 3), rng.randint(-3, 3)) for _ in range(rng.randint(2, 4))]
    if kind == "thin":
        return [(rng.randint(5, 15), rng.randint(-1, 1)), (rng.randint(-2, 2), 1)]
    if kind == "slanted":
        a = rng.randint(5, 15)
        return [(a, a + 1), (a - 1, a), (1, 1)]
    if kind == "flat":
        a, b = rng.randint(-5, 5), rng.randint(1, 5)
        return [(a * k, b * k) for k in (2, 3)]
    if kind == "interval":
        return [(rng.randint(1, 30),)]
    if kind == "line in space":
        return [(rng.randint(-4, 4), rng.randint(-4, 4), rng.randint(1, 3))]
    return [(1, rng.randint(-2, 2), rng.randint(-2, 2)), (rng.randint(-2, 2), 1, rng.randint(-2, 2))]


KINDS = ("small", "thin", "slanted", "flat", "interval", "line in space", "plane in space")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_vector_loses_more_than_is_stated_anywhere(kind):
    """5 bodies of each kind, ε and costs at random: 30 points near the border, 20 far beyond it, 8 vectors each."""
    rng, made = random.Random(f"{kind} 5"), 0
    for _ in range(5):
        points, epsilon = points_of(kind, rng), rng.choice(EPSILONS)
        costs = rng.choice([None, None, lopsided, wavy])
        if not any(map(any, points)):
            continue
        try:
            mechanism = OptimalAdditive(
                hull_of_points(points), epsilon, rng.choice(["squared", "euclidean"]), costs=costs
            )
        except InvalidInput:
            continue
        made += 1
        norm, weight, window = by_definition(mechanism)
        radius, most = mechanism.law.radius, exp_below(epsilon)
        body = [y for y in window if any(y) and norm(y) <= 1]
        border = [y for y in window if norm(y) > radius - 1]
        some = rng.sample(border, min(len(border), 30))
        some += [tuple(c * rng.randint(2, 5) + rng.randint(-1, 1) for c in y) for y in some[:20]]
        for y in some:
            for v in rng.sample(body, min(len(body), 8)):
                here, there = weight(y), weight(tuple(a + b for a, b in zip(y, v, strict=True)))
                assert max(here, there) <= most * min(here, there), (points, epsilon, y, v)
        for u in rng.sample(window, min(len(window), 10)):
            stated = mechanism.loss_lattice(mechanism.hull.basis @ np.array(u)) / epsilon
            for y in some[:8] + some[-4:]:
                here, there = weight(y), weight(tuple(a + b for a, b in zip(y, u, strict=True)))
                assert max(here / there, there / here) <= mechanism.law.q ** -int(stated), (points, epsilon, y, u)
        y = rng.choice(some)
        told = mechanism.log_likelihood_lattice(
            mechanism.hull.basis @ np.array(y), np.zeros((1, mechanism.hull.dimension), int)
        )
        ratio = weight(y) / weight((0,) * len(y))
        assert told[0] == pytest.approx(math.log(ratio.numerator) - math.log(ratio.denominator), rel=1e-9, abs=1e-9)
    assert made >= 2


class Crafted:
    """Given words, then some others that depend on their place alone."""

    def __init__(self, words):
        self._words, self.used = list(words), 0

    def uint64(self, n):
        at = range(self.used, self.used + n)
        self.used += n
        return np.array([self._word(i) for i in at], dtype=np.uint64)

    def _word(self, i):
        return self._words[i] if i < len(self._words) else (i * 0x9E3779B97F4A7C15 + 12345) * 0xBF58476D1CE4E5B9 % 2**64


class Defined:
    """The law as a map of three real numbers, in fractions: each read 64 digits at a time, as far as it is decided."""

    def __init__(self, mechanism, bits):
        self._bits, self._law = bits, mechanism.law
        self._norm, _, self._window = by_definition(mechanism)
        self._ends = list(itertools.accumulate(self._law.weights))
        self._q, self._shells, self._basis = self._law.q, {}, mechanism.hull.basis
        first, second = len(self._shell(1)), len(self._shell(2))
        self._first, self._slope = first, second - first
        assert len(self._shell(3)) == second + self._slope
        self._total = self._ends[-1] + self._beyond(0)

    def draw(self):
        """A noise, or None for a shell that is too far to be listed."""
        i = self._decide(self._ends, self._total)
        if i < len(self._ends):
            y = self._window[i]
        else:
            j = self._decide_shell()
            size = self._first + (j - 1) * self._slope
            number = self._decide(range(1, size), size)
            if j > 12:
                return None
            y = self._shell(j)[number]
        return [sum(int(b) * c for b, c in zip(row, y, strict=True)) for row in self._basis]

    def _digits(self):
        prefix, digits = 0, 0
        while True:
            prefix, digits = prefix << 64 | int(self._bits.uint64(1)[0]), digits + 64
            yield Fraction(prefix, 2**digits), Fraction(prefix + 1, 2**digits)

    def _decide(self, ends, total):
        for low, high in self._digits():
            i = next((i for i, end in enumerate(ends) if low * total < end), len(ends))
            if high * total <= (ends[i] if i < len(ends) else total):
                return i
        raise AssertionError

    def _decide_shell(self):
        whole = self._beyond(0)
        for low, high in self._digits():
            j = next(j for j in itertools.count(1) if low * whole < whole - self._beyond(j))
            if high * whole <= whole - self._beyond(j):
                return j
        raise AssertionError

    def _beyond(self, j):
        """The weight of all shells after j."""
        size, q = self._first + j * self._slope, self._q
        return self._law.tail * q**j * (size / (1 - q) + self._slope * q / (1 - q) ** 2)

    def _shell(self, j):
        if j not in self._shells:
            reach = [max(abs(y[i]) for y in self._window) for i in range(self._law.rank)]
            body = [max(abs(y[i]) for y in self._window if self._norm(y) <= 1) + 1 for i in range(self._law.rank)]
            box = itertools.product(
                *(range(-r - (j + 1) * b, r + (j + 1) * b + 1) for r, b in zip(reach, body, strict=True))
            )
            self._shells[j] = [y for y in box if j - 1 < self._norm(y) - self._law.radius <= j]
        return self._shells[j]


@pytest.mark.parametrize(
    "points", [[(3,)], [(1, 1), (1, -1)], [(2, -3), (4, -6)], [(1, 2, 3), (1, 0, -1)], [(2, 1), (-1, 2)]]
)
@pytest.mark.parametrize("epsilon", [Fraction(3), Fraction(1024)])
def test_draws_are_the_definition_word_by_word(points, epsilon):
    """2 streams of words on, beside and far from thresholds: drawn one by one, at once, plainly, and as defined."""
    mechanism, rng = OptimalAdditive(hull_of_points(points), epsilon), random.Random(3)
    sampler = mechanism._sampler
    borders = [int(x) for x in sampler._thresholds]
    for _ in range(2):
        words = []
        for _ in range(rng.randint(1, 30)):
            near = (rng.choice(borders) + rng.choice([-1, 0, 0, 1])) % 2**64
            words.append(rng.choice([near, near, rng.choice([0, 1, 2**63, 2**64 - 1]), rng.getrandbits(64)]))
        many, plain, single, defined = (Crafted(words) for _ in range(4))
        drawn = sampler.draw(20, many).tolist()
        assert drawn == sampler.draw_plainly(20, plain).tolist()
        assert drawn == [sampler.draw(1, single)[0].tolist() for _ in range(20)]
        twin = Defined(mechanism, defined)
        expected = [twin.draw() for _ in range(20)]
        assert [a for a, b in zip(drawn, expected, strict=True) if b is not None] == [
            b for b in expected if b is not None
        ]
        assert many.used == plain.used == single.used == defined.used


@pytest.mark.parametrize(
    "points",
    [
        [(10**12,)],
        [(2**62,)],
        [(10**6,)],
        [(10**4, 10**4 - 1), (1, 1)],
        [(10**9, 10**9 + 1), (1, 0)],
        [(10**6, 1), (0, 1)],
    ],
)
def test_a_body_that_memory_does_not_hold_is_refused_at_once(points):
    """Twice the body was listed before its size was looked at: an interval of 10**12 steps asked for 29 TiB."""
    import tracemalloc

    hull = hull_of_points(points)
    tracemalloc.start()
    with pytest.raises(InvalidInput, match="K: got"):
        OptimalAdditive(hull, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**30


@pytest.mark.parametrize(
    "costs",
    [
        lambda v: np.full(len(v), np.nan),
        lambda v: np.full(len(v), np.inf),
        lambda v: -np.linalg.norm(v, axis=1),
        lambda v: v,
        lambda v: 1.0,
        lambda v: np.array(["x"] * len(v)),
    ],
)
def test_costs_that_are_no_costs_are_refused(costs):
    """NaN ended in the solver's own error; negative ones turned the program round, and the best staircase came out."""
    with pytest.raises(InvalidInput, match="costs: got"):
        OptimalAdditive(hull_of_points([(2,)]), 2, costs=costs)


def test_costs_of_nothing_leave_the_staircase():
    """They ended in the solver's own error."""
    hull = hull_of_points([(2, 1), (0, 1)])
    mechanism = OptimalAdditive(hull, 2, costs=lambda v: np.zeros(len(v)))
    offset = mechanism.law.radius % 1
    own = mechanism._log_weights(mechanism.law.points) - Staircase(hull, 2, offset)._log_weights(mechanism.law.points)
    assert np.ptp(own) < 1e-9


def test_a_window_that_would_take_minutes_is_refused_at_once():
    """One step of noise at ε = 1/1000 took minutes: 16,000 levels of integers, each raised by its neighbour."""
    with pytest.raises(InvalidInput, match="K: got 3 vectors of the body"):
        OptimalAdditive(hull_of_points([(2, 1)]), Fraction(1, 1000))
