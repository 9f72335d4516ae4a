from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.states import Lattice

pitches = st.floats(1e-3, 1e4)
origins = st.floats(-1e4, 1e4)
integers = st.integers(-(2**20), 2**20)


@given(pitches, origins, st.lists(integers, min_size=1, max_size=5))
def test_points_go_to_answers_and_back(pitch, origin, points):
    frame = Lattice(np.array([pitch]), np.array([origin]))
    column = np.array(points)[:, None]
    assert np.array_equal(frame.to_lattice(frame.to_answers(column)), column)


def test_equal_by_value_and_hashed_alike():
    one, two = Lattice(np.array([0.5, 2]), np.array([0.0, -0.0])), Lattice(np.array([0.5, 2]), np.zeros(2))
    assert one == two and hash(one) == hash(two)
    assert one != Lattice.unit(2)
    assert one != "a lattice"


def test_it_cannot_be_changed_from_outside():
    pitch = np.ones(1)
    frame = Lattice(pitch, np.zeros(1))
    pitch[0] = 7
    assert frame.pitch[0] == 1
    with pytest.raises(ValueError):
        frame.pitch[0] = 7


def test_the_pitch_is_the_decimal_it_prints_as():
    assert Lattice(np.array([0.1, 340]), np.array([0.2, 0])).exact_pitch == (Fraction(1, 10), Fraction(340))


def test_steps_have_no_origin_and_are_rounded_only_next_to_integers():
    frame = Lattice(np.array([0.1]), np.array([5.0]))
    assert frame.steps([0.30000000000000004]).item() == 3.0
    assert frame.steps([0.35]).item() == pytest.approx(3.5)
    assert frame.steps([0.3001]).item() != 3.0


@pytest.mark.parametrize("answer", [0.30001, np.nan, np.inf, 1e300])
def test_a_point_off_the_lattice_is_refused_without_being_named(answer):
    with pytest.raises(InvalidInput, match=r"^answers") as refused:
        Lattice(np.array([0.1]), np.zeros(1)).to_lattice([answer])
    assert "3000" not in str(refused.value) and "1e+300" not in str(refused.value)


@pytest.mark.parametrize(
    ("pitch", "origin"),
    [
        ([0.0], [0.0]),
        ([-1.0], [0.0]),
        ([np.nan], [0.0]),
        ([1.0], [np.inf]),
        ([1e101], [0.0]),
        ([1.0], [-1e101]),
        ([1, 1], [0]),
        (1, 0),
        ("x", [0]),
    ],
)
def test_bad_frames_are_refused(pitch, origin):
    with pytest.raises(InvalidInput):
        Lattice(pitch, origin)


def test_the_wrong_number_of_axes_is_refused():
    with pytest.raises(InvalidInput, match="shape"):
        Lattice.unit(2).to_answers(np.zeros((3, 1), dtype=int))
    with pytest.raises(InvalidInput, match="shape"):
        Lattice.unit(2).steps(1.0)
