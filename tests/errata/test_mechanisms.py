"""Errata of the DPHMM paper about noise and error (1, 9, 10, 12, 17): each statement, its counter-example, what holds.

Everything is computed here from definitions, in fractions or by enumeration; the package's own numbers are compared
where it has them. A test fails if the counter-example is none, or if what the page says instead does not hold.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import naive
from dphmm.mechanisms import KNorm, Laplace
from naive_mechanisms import hull_of_points


def knorm_error(points):
    """ε²·E‖noise‖² of the K-norm mechanism on the planar hull of ± points: 12·E|u|², or 2|a|² of a segment."""
    both = {tuple(p) for p in points} | {tuple(-x for x in p) for p in points}
    both.discard((0, 0))
    if not both:
        return Fraction(0)
    if naive.rank(sorted(both)) == 1:
        return 2 * max(Fraction(x * x + y * y) for x, y in both)
    return 12 * naive.second_moment(sorted(both))


def test_erratum_01_laplace_errs_less_in_three_dimensions():
    edges = [(98, s, t) for s, t in itertools.product((1, -1), repeat=2)]
    # Uniform on the box ±98, ±1, ±1: E|u|² = (98² + 1 + 1)/3, times (k+1)(k+2) = 20.
    box = 20 * Fraction(98**2 + 2, 3)
    laplace = 2 * 3 * 100**2
    assert (box, laplace) == (64040, 60000)
    hull = hull_of_points(edges)
    assert np.isclose(KNorm(hull, 1).expected_error, 64040)
    assert np.isclose(Laplace(hull, 1).expected_error, 60000)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=6))
def test_erratum_01_laplace_never_errs_less_in_the_plane(points):
    largest = max(abs(x) + abs(y) for x, y in points)
    assert knorm_error(points) <= 4 * largest**2


def test_erratum_09_the_printed_density_has_variance_two():
    # ∫ x² e^{-|x|}/2 dx = Γ(3) = 2. Read as "variance 1", the scale would be S_f/(√2 ε): a pair at S_f loses √2·ε.
    x = np.linspace(-60, 60, 240_001)
    assert math.isclose(np.trapezoid(x**2 * np.exp(-np.abs(x)) / 2, x), math.gamma(3), rel_tol=1e-6)
    sensitivity, epsilon = 5.0, 1.0
    scale_of_variance_one = sensitivity / epsilon / math.sqrt(2)
    assert sensitivity / scale_of_variance_one > 1.41 * epsilon
    assert Laplace(sensitivity, epsilon, 1).loss(sensitivity) == epsilon
    assert Laplace(sensitivity, epsilon, 1).expected_error == 2 * sensitivity**2


def staircase_error(width, epsilon, offset):
    """E v² of P(v) ∝ exp(-ε·max(0, ⌈|v|/width - offset⌉)) on the integers, summed until nothing is left."""
    v = np.arange(-80 * width, 80 * width + 1)
    tops = np.abs(v) * offset.denominator - offset.numerator * width
    steps = np.maximum(0, -(-tops // (width * offset.denominator)))
    weights = np.exp(-float(epsilon) * steps)
    assert weights[0] < 1e-60
    return float((weights * v**2).sum() / weights.sum())


def test_erratum_10_laplace_is_not_the_best_of_all_in_one_dimension():
    # Differences up to 3, ε = 2: Laplace (the K-norm mechanism of [-3, 3]) has 2·3²/2² = 4.5.
    errors = {g: staircase_error(3, 2, Fraction(g, 3)) for g in range(3)}
    assert KNorm(hull_of_points([(3,)]), 2).expected_error == 4.5
    assert math.isclose(min(errors.values()), 3.92, abs_tol=0.005)
    # It keeps the same promise: two answers up to 3 apart lose at most ε.
    for g in errors:
        n = [max(0, math.ceil(Fraction(abs(v), 3) - Fraction(g, 3))) for v in range(-60, 61)]
        assert max(abs(n[i] - n[i - step]) for step in (1, 2, 3) for i in range(step, 121)) == 1


def test_erratum_12_the_density_of_a_flat_hull():
    # A segment ±a: rank 1, Vol_2 = 0, so Eq. (1) divides by 0. ∫ e^{-ε|t|/|a|} dt = Γ(k+1)·Vol_k/ε^k with k = 1.
    points = [(-1, 1), (1, -1)]
    assert naive.area(points) == 0
    length, epsilon = 2 * math.sqrt(2), 0.7
    t = np.linspace(-90, 90, 180_001)
    total = np.trapezoid(np.exp(-epsilon * np.abs(t) / math.sqrt(2)), t)
    assert math.isclose(total, math.gamma(2) * length / epsilon, rel_tol=1e-6)
    assert not math.isclose(total, math.gamma(3) * length / epsilon**2, rel_tol=0.1)
    hull = hull_of_points(points)
    assert (hull.rank, hull.volume) == (1, 0.0)


def test_erratum_17_a_root_mean_square_is_no_mean():
    # Laplace noise of scale b on one axis: Eq. (3) gives b·√2, the mean distance of Section 8 is b.
    b = 3.0
    x = np.linspace(-200, 200, 400_001)
    density = np.exp(-np.abs(x) / b) / (2 * b)
    mean, square = np.trapezoid(np.abs(x) * density, x), np.trapezoid(x**2 * density, x)
    assert math.isclose(mean, b, rel_tol=1e-6) and math.isclose(math.sqrt(square), b * math.sqrt(2), rel_tol=1e-6)
    assert Laplace(b, 1, 1).expected_error == 2 * b**2
