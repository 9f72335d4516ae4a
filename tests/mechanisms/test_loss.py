"""The guarantee: exact pair losses by enumeration, against the promise and against what is stated."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dphmm.mechanisms import Constant, DiscreteKNorm, KNorm, Laplace, Staircase, choose
from naive_mechanisms import SHAPES, enumerated_loss, hull_of_points, norm, shape

points = st.tuples(st.integers(-2, 2), st.integers(-2, 2)).filter(any)
offsets = st.fractions(0, Fraction(9, 10), max_denominator=10)
epsilons = st.fractions(Fraction(1, 10), 5, max_denominator=10)


@settings(max_examples=40)
@given(st.lists(points, min_size=1, max_size=4), epsilons, offsets)
def test_no_required_pair_loses_more_than_epsilon_and_one_loses_all_of_it(required, epsilon, offset):
    hull = hull_of_points(required)
    for mechanism in (DiscreteKNorm(hull, epsilon), Staircase(hull, epsilon, offset), choose(hull, epsilon)):
        losses = [enumerated_loss(mechanism, v, 2) for v in required]
        assert max(losses) == epsilon
        for v, loss in zip(required, losses, strict=True):
            assert loss <= mechanism.loss_lattice(v) <= epsilon


@settings(max_examples=40)
@given(st.lists(points, min_size=1, max_size=3), points, offsets)
def test_the_stated_loss_of_any_pair_is_the_enumerated_one(required, v, offset):
    hull = hull_of_points(required)
    knorm, staircase = DiscreteKNorm(hull, 1), Staircase(hull, 1, offset)
    size = norm(hull, v)
    if size is None:
        assert knorm.loss_lattice(v) == staircase.loss_lattice(v) == math.inf
        assert enumerated_loss(knorm, v, 1) == math.inf
        return
    assume(size <= 4)
    assert knorm.loss_lattice(v) == size == enumerated_loss(knorm, v, 1)
    assert staircase.loss_lattice(v) == math.ceil(size)
    assert enumerated_loss(staircase, v, 3) <= math.ceil(size)
    # Attained along multiples of v, within as many steps as the norm has parts.
    steps = [math.ceil(max(Fraction(0), i * size - offset)) for i in range(size.denominator + 2)]
    assert max(b - a for a, b in itertools.pairwise(steps)) == math.ceil(size)


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_every_corner_of_every_shape_loses_epsilon_exactly(name):
    hull = shape(name)
    for v in np.asarray(hull.hull_vertices) @ hull.basis.T:
        assert DiscreteKNorm(hull, "0.3").loss_lattice(v) == Fraction(3, 10)
        assert Staircase(hull, "0.3", 0).loss_lattice(v) == Fraction(3, 10)
        assert Staircase(hull, "0.3", 0).loss_lattice(2 * v) == Fraction(6, 10)


def test_losses_in_answer_units():
    hull = hull_of_points([(3, 1), (1, 2)], pitch=(0.5, 20.0), origin=(100.0, -3.0))
    knorm, staircase = DiscreteKNorm(hull, 2), Staircase(hull, 2, "0.25")
    assert knorm.loss((1.5, 20.0)) == 2.0
    assert knorm.loss((3.0, 40.0)) == 4.0
    assert staircase.loss((0.5, 0.0)) == 2.0 and knorm.loss((0.5, 0.0)) == pytest.approx(2 * 3 / 5)
    assert staircase.loss((1.5000001, 20.0)) == 4.0  # off the lattice: by the norm in floats
    assert KNorm(hull, 2).loss((3.0, 40.0)) == pytest.approx(4.0)
    assert Laplace(hull, 2).loss((1.5, 20.0)) == pytest.approx(2 * 21.5 / 40.5)
    flat = DiscreteKNorm(hull_of_points([(1, 1)]), 1)
    assert flat.loss((2, 2)) == 2.0 and flat.loss((1, 0)) == math.inf
    assert flat.loss_lattice((1, 0)) == math.inf


def test_losses_of_no_noise():
    constant = Constant(hull_of_points([(0, 0)]), 1)
    assert constant.loss((0.0, 0.0)) == 0.0 and constant.loss((1.0, 0.0)) == math.inf
    assert constant.loss_lattice((0, 0)) == 0 and constant.loss_lattice((0, 1)) == math.inf
    assert constant.loss_of_norm(Fraction(0)) == 0
    assert constant.loss_of_norm(Fraction(1, 9)) == constant.loss_of_norm(math.inf) == math.inf


def test_the_wrong_shape_of_a_difference_is_refused():
    from dphmm.errors import InvalidInput

    for mechanism in (DiscreteKNorm(shape("disc"), 1), KNorm(shape("disc"), 1)):
        for wrong in ((1.0,), (1.0, 2.0, 3.0), 1.0, (math.nan, 0.0)):
            with pytest.raises(InvalidInput, match="v: "):
                mechanism.loss(wrong)
