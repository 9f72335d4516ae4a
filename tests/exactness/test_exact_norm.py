"""The tools of this folder against worked examples, brute force and a float solver: a judge must be right first."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import linprog

from exactness.exact_linear import inverse, rank
from exactness.exact_norm import FacetBody, Optimum, PointHull, largest, proves
from exactness.law import KNORM, STAIRCASE, Law

#: Differences of the running example (docs/theory.md 10, example 5.1), one of each sign.
EXAMPLE = [(1, -1), (4, 1), (1, 1), (-3, 0)]


def test_norms_of_the_running_example():
    hull = PointHull.of(EXAMPLE, 2)
    assert [hull.norm(v) for v in ((4, 1), (3, 0), (1, 1), (-1, 1))] == [1, 1, 1, 1]
    assert hull.norm((1, 0)) == Fraction(1, 3)
    assert hull.support((0, 1)) == 1


def test_norms_off_and_on_a_flat_span():
    hull = PointHull.of([(2, -4), (1, -2)], 2)
    assert hull.norm((3, -6)) == Fraction(3, 2)
    assert hull.norm((1, 0)) is None
    assert PointHull.of([], 2).norm((0, 0)) == 0
    assert PointHull.of([], 2).norm((1, 0)) is None


@pytest.mark.parametrize("seed", range(60))
def test_the_simplex_method_agrees_with_a_float_solver(seed):
    rng = random.Random(seed)
    d, m, span = rng.randint(1, 4), rng.randint(1, 20), rng.choice([2, 10, 10**6])
    hull = PointHull.of([[rng.randint(-span, span) for _ in range(d)] for _ in range(m)], d)
    v = [rng.randint(-span, span) for _ in range(d)]
    norm = hull.norm(v)
    if not hull.points:
        assert norm is None or not any(v)
        return
    both = np.hstack([np.array(hull.points).T, -np.array(hull.points).T])
    program = linprog(np.ones(both.shape[1]), A_eq=both, b_eq=v)
    assert (norm is None) == (program.status == 2)
    if norm is not None:
        assert program.fun == pytest.approx(float(norm), rel=1e-6)


def test_a_wrong_optimum_is_not_proved():
    rows, limits, c = [(1, 0), (0, 1), (1, 1)], [2, 2, 3], (1, 2)
    found = largest(rows, limits, c)
    assert found.value == 5
    assert proves(found, rows, limits, c)
    assert not proves(Optimum(found.value - 1, found.point, found.weights), rows, limits, c)
    assert not proves(Optimum(found.value, (Fraction(2), Fraction(2)), found.weights), rows, limits, c)
    assert not proves(Optimum(found.value, found.point, {0: Fraction(5)}), rows, limits, c)


@pytest.mark.parametrize("seed", range(40))
def test_inverses_are_exact(seed):
    rng = random.Random(seed)
    k = rng.randint(1, 4)
    matrix = [[rng.randint(-4, 4) for _ in range(k)] for _ in range(k)]
    if rank(matrix) < k:
        with pytest.raises(ZeroDivisionError):
            inverse(matrix)
        return
    adjugate, determinant = inverse(matrix)
    product = np.array(matrix, dtype=object) @ np.array(adjugate, dtype=object)
    assert (product == determinant * np.eye(k, dtype=int)).all()


@pytest.mark.parametrize("kind", [KNORM, STAIRCASE])
@pytest.mark.parametrize("offset", [Fraction(0), Fraction(2, 3)])
def test_the_worst_loss_is_the_largest_of_all_points(kind, offset):
    """By enumeration of a window around the hexagon of the running example."""
    facets = ((1, -1), 3, (0, 1), 1, (2, -5), 7)
    body = FacetBody(((1, 0), (0, 1)), ((1, 0), (0, 1)), facets[::2], facets[1::2])
    law = Law(kind, Fraction(1, 2), offset, body)
    window = list(itertools.product(range(-25, 26), repeat=2))
    for v in ((1, 0), (2, 1), (4, 1), (5, -1)):
        steps = [law.exponent(x) - law.exponent((x[0] - v[0], x[1] - v[1])) for x in window]
        assert max(steps) <= law.worst(v)
        further, nearer = law.reached_at(v)
        assert law.exponent(further) - law.exponent(nearer) == law.worst(v)
