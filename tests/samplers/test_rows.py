"""Lattice points by rows against their definition, one at a time in fractions.

Claims: `steps` is the least whole j with N(y) <= radius + j; the rows of a body are its points; a shell's points by
number are those between two radii, each once. Off by one at a boundary, a row that is cut on the wrong side, or 64 bits
that overflow, and a shell would have a point too many or too few: noise of another law.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.mechanisms.optimal import facets_of
from dphmm.samplers.rows import Facets
from naive_mechanisms import SHAPES, hull_of_points, shape

FLAT = [name for name in SHAPES if shape(name).rank <= 2]
points = st.tuples(st.integers(-4, 4), st.integers(-4, 4)).filter(any)
radii = st.fractions(Fraction(1, 3), 4, max_denominator=7)


def norm(facets, y):
    return max(
        Fraction(abs(sum(int(a) * c for a, c in zip(row, y, strict=True))), b)
        for row, b in zip(facets.normals, facets.offsets, strict=True)
    )


def box(facets, radius):
    half = [math.floor(radius * w) + 1 for w in facets.widths]
    return itertools.product(*(range(-h, h + 1) for h in half))


def check(facets, radius):
    k = facets.normals.shape[1]
    inside = [y for y in box(facets, radius) if norm(facets, y) <= radius]
    rows = facets.within(radius)
    assert rows.size == len(inside) and list(map(tuple, rows.points(k).tolist())) == inside
    for j in (1, 2):
        shell = facets.shell(radius, j)
        between = [y for y in box(facets, radius + j) if radius + j - 1 < norm(facets, y) <= radius + j]
        assert [tuple(shell.point(i, k)) for i in range(shell.size)] == between
    some = np.array(list(box(facets, radius + 2)))
    steps = [max(0, math.ceil(norm(facets, y) - radius)) for y in some.tolist()]
    assert facets.steps(some, radius).tolist() == steps


@pytest.mark.parametrize("name", FLAT)
def test_shells_are_those_of_the_definition(name):
    for radius in (Fraction(0), Fraction(1), Fraction(7, 3)):
        check(facets_of(shape(name)), radius)


@settings(max_examples=40, deadline=None)
@given(st.lists(points, min_size=2, max_size=4), radii)
def test_shells_of_any_hull(required, radius):
    check(facets_of(hull_of_points(required)), radius)


def test_numbers_beyond_64_bits_are_exact():
    facets = Facets(np.array([[1, 0], [0, 1]]), (3, 5), (Fraction(3), Fraction(5)))
    far = Fraction(2**62) + Fraction(1, 3)
    y = np.array([[2**61, 0], [0, 2**62]], dtype=object)
    sizes = (Fraction(2**61, 3), Fraction(2**62, 5))
    assert facets.steps(y, Fraction(1, 2)).tolist() == [math.ceil(size - Fraction(1, 2)) for size in sizes]
    interval = Facets(np.array([[1]]), (7,), (Fraction(7),))
    assert interval.within(far).size == 2 * (7 * far).__floor__() + 1
    shell = interval.shell(far, 1)
    assert shell.size == 14 and shell.point(13, 1) == [(7 * (far + 1)).__floor__()]
    assert shell.point(0, 1) == [-(7 * (far + 1)).__floor__()]
