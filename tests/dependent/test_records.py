"""Records of a table: windows, the numbering of steps, and what a row that cannot be used counts as.

It fails where a window is cut at another step, where a person's first step depends on somebody else's rows, or where an
odd row raises or moves another one.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dphmm.dependent._records import MICROSECONDS, Clock, Records, windows, windows_of
from dphmm.errors import InvalidInput


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, [(0, 10)]),
        (4, [(0, 4), (4, 8), (8, 10)]),
        ("4", [(0, 4), (4, 8), (8, 10)]),
        ("0:3, 2:10", [(0, 3), (2, 10)]),
        ([(0, 3), (2, 10)], [(0, 3), (2, 10)]),
    ],
)
def test_windows_of_a_text_are_those_of_values(given, expected):
    assert windows(given, 10, "--windows") == expected
    if not isinstance(given, str):
        assert windows_of(given, 10) == expected


@pytest.mark.parametrize("given", ["3:3", "0:11", "0", "a:b", "4:2"])
def test_windows_outside_the_public_steps_are_refused(given):
    with pytest.raises(InvalidInput, match="--windows"):
        windows(given, 10, "--windows")


def test_a_person_s_steps_follow_from_that_person_s_rows():
    clock = Clock(10, 60, None, str)
    time = np.array([0, 59, 120, 600, 660]) * MICROSECONDS
    steps, counts = clock.numbered(np.array([0, 0, 0, 1, 1]), time, None)
    assert steps.tolist() == [0, 0, 2, 0, 1]
    # Of two rows in one bin the last one counts.
    assert counts.tolist() == [False, True, True, True, True]
    alone, _ = clock.numbered(np.array([0, 0]), time[3:], None)
    assert alone.tolist() == steps[3:].tolist()


def test_steps_of_a_public_start_may_lie_outside():
    clock = Clock(3, None, 5, str)
    steps, counts = clock.numbered(np.array([0, 0, 1]), None, np.array([4, 5, 9]))
    assert steps.tolist() == [-1, 0, 4]
    assert counts.all()


def test_an_array_and_a_frame_are_the_same_records():
    states = np.array([[0, 1, -1], [7, 1, 0]])
    frame = pd.DataFrame({"user": [0, 0, 1, 1, 1], "t": [0, 1, 0, 1, 2], "state": [0, 1, 7, 1, 0]})
    one, two = Records.of(states, 2), Records.of(frame, 2)
    assert one.n_times == two.n_times == 3
    for column in ("user", "time", "state"):
        assert getattr(one, column).tolist() == getattr(two, column).tolist()
    # A state that is not public is a record of state 0.
    assert one.state.tolist() == [0, 1, 0, 1, 0]


def test_only_the_first_records_of_a_person_in_time_count():
    frame = pd.DataFrame({"user": ["b", "a", "a", "a"], "t": [0, 2, 0, 1], "state": [1, 1, 0, 0]})
    kept = Records.of(frame, 2, most=2)
    assert sorted(zip(kept.user.tolist(), kept.time.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 0)]
