from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.states import StateSpace, lattice_answers
from dphmm.states.lattice import as_answers, snap


def fewest_steps_plainly(values):
    """Try every m from 1, in plain Python."""
    distinct = sorted(set(values))
    origin, span = distinct[0], distinct[-1] - distinct[0]
    gap = min(b - a for a, b in pairwise(distinct))
    for m in range(1, math.ceil(50 * span / gap) + 1):
        pitch = span / m
        if all(abs((v - origin) - round((v - origin) / pitch) * pitch) <= 0.01 * gap * (1 + 1e-9) for v in distinct):
            return m
    raise AssertionError("ceil(50 span / gap) steps always serve")


@given(st.lists(st.floats(-50, 50), min_size=2, max_size=6, unique=True))
def test_the_pitch_is_the_largest_that_serves(values):
    values = [v + 0.0 for v in values]
    distinct = sorted(set(values))
    assume(len(distinct) > 1 and not all(v == int(v) for v in values))
    gap = min(b - a for a, b in pairwise(distinct))
    assume(gap > 1e-9 and (distinct[-1] - distinct[0]) / gap < 100)
    lattice, frame = snap(as_answers(values))
    m = fewest_steps_plainly(values)
    assert frame.pitch[0] == pytest.approx((distinct[-1] - distinct[0]) / m, rel=1e-12)
    error = np.abs(frame.to_answers(lattice)[:, 0] - values).max()
    assert error <= 0.0101 * gap
    assert len(np.unique(lattice)) == len(distinct)


def test_decimals_get_the_decimal_pitch():
    space = StateSpace([0.1 * k for k in (0, 1, 2, 3, 7)])
    assert space.pitch.tolist() == [0.1]
    assert space.lattice[:, 0].tolist() == [0, 1, 2, 3, 7]
    assert space.is_lattice


def test_integers_stay_as_they_are_axis_by_axis():
    space = StateSpace([[3.0, 0.5], [-7.0, 1.0]])
    assert space.lattice.tolist() == [[3, 0], [-7, 1]]
    assert space.pitch.tolist() == [1.0, 0.5]
    assert space.frame.origin.tolist() == [0.0, 0.5]


def test_an_axis_with_one_value_has_pitch_one():
    space = StateSpace([[0.3, 1], [0.3, 2]])
    assert space.pitch.tolist() == [1.0, 1.0] and space.frame.origin.tolist() == [0.3, 0.0]
    assert space.answers[:, 0].tolist() == [0.3, 0.3]


def test_a_given_pitch_has_origin_zero():
    space = StateSpace([[0.9, 10.2], [2.1, 3.9]], pitch=(1, 5))
    assert space.lattice.tolist() == [[1, 2], [2, 1]]
    assert space.frame.origin.tolist() == [0, 0]
    assert space.snap_error == pytest.approx([0.1, 1.1])
    assert not space.is_lattice
    assert StateSpace([0.0, 0.5, 1.0], pitch=0.5).is_lattice


def test_minus_zero_is_zero():
    assert StateSpace([-0.0, 0.5]).digest == StateSpace([0.0, 0.5]).digest
    assert not np.signbit(StateSpace([-0.0, 0.5]).raw_answers).any()


def test_too_many_steps_are_refused_with_a_remedy_that_works():
    answers = [0.0, 1e-7, 0.5]
    with pytest.raises(InvalidInput, match=r"answers\[:, 0\].*pitch="):
        StateSpace(answers)
    assert StateSpace(answers, pitch=5e-4).lattice[:, 0].tolist() == [0, 0, 1000]


def test_near_collinear_answers_become_collinear_or_are_refused():
    space = StateSpace([[0, 0], [1, 1], [2, 2 + 1e-13]])
    assert space.lattice.tolist() == [[0, 0], [1, 1], [2, 2]]
    with pytest.raises(InvalidInput, match="pitch="):
        StateSpace([[0, 0], [1, 1], [2, 1 + 1e-13]])


def test_large_coordinates_near_together_are_exact():
    assert StateSpace(1e15 + np.arange(10)).lattice[:, 0].tolist() == [10**15 + k for k in range(10)]
    space = StateSpace([1e9 + 0.25, 1e9 + 0.5])
    assert space.answers[:, 0].tolist() == [1e9 + 0.25, 1e9 + 0.5]


@pytest.mark.parametrize(
    ("answers", "field"),
    [
        ([0.0, np.nan], r"answers\[1, 0\]"),
        ([[0, 1], [np.inf, 2]], r"answers\[1, 0\]"),
        ([[1, 2], [3]], "state 1"),
        (np.zeros((0, 2)), "answers"),
        (np.zeros((3, 0)), "answers"),
        (np.zeros((2, 2, 2)), "answers"),
        (["a", "b"], "dtype"),
        ([1e308, -1e308], "rescale"),
        ([0.0, 5e-324], "float64"),
        ([2**60], r"2\*\*53"),
        ([-(2**63)], r"2\*\*53"),
        ([0, 2**29], "steps across"),
    ],
)
def test_bad_answers_are_refused_in_one_line(answers, field):
    with pytest.raises(InvalidInput, match=field) as refused:
        StateSpace(answers)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("pitch", [0, -1, np.nan, np.inf, "1m", True, [1, 2, 3], [[1]]])
def test_bad_pitches_are_refused(pitch):
    with pytest.raises(InvalidInput, match="pitch"):
        StateSpace([[0, 1], [2, 3]], pitch=pitch)


def test_a_pitch_too_fine_for_the_answers_is_refused():
    with pytest.raises(InvalidInput, match="larger pitch"):
        StateSpace([0, 1000], pitch=1e-7)
    with pytest.raises(InvalidInput, match="larger pitch"):
        StateSpace([1e12, 1e12 + 1], pitch=1e-6)


def test_lattice_answers_takes_spaces_and_integers_only():
    space = StateSpace([0.5, 1.0])
    assert lattice_answers(space)[0] is space.lattice and lattice_answers(space)[1] is space.frame
    lattice, frame = lattice_answers([[1.0, 2.0], [3.0, -4.0]])
    assert lattice.dtype == np.int64 and lattice.tolist() == [[1, 2], [3, -4]]
    assert frame.pitch.tolist() == [1, 1]
    assert lattice_answers(np.arange(3, dtype=np.uint8))[0].shape == (3, 1)
    with pytest.raises(InvalidInput, match="StateSpace"):
        lattice_answers([0.5, 1.0])
    with pytest.raises(InvalidInput, match="steps across"):
        lattice_answers([0, 2**29])


def test_searching_a_long_random_axis_ends_soon():
    rng = np.random.default_rng(1)
    values = np.unique(rng.integers(0, 5000, 60)) * 0.37 + rng.uniform(-0.001, 0.001)
    lattice, frame = snap(as_answers(values))
    assert frame.pitch[0] == pytest.approx(0.37)
    assert np.array_equal(frame.to_lattice(frame.to_answers(lattice)), lattice)
