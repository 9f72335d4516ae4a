"""Which times a release publishes: time bins of steps that are bins, and never those of rows that were only counted."""

import re

import numpy as np
import pytest

from dphmm.errors import InvalidInput
from dphmm.states import Trajectories
from dphmm.states.trajectory import MICROSECONDS, public_times

NAMES = np.array(["a", "b"], dtype=object)


def rows(step):
    owners = np.zeros(len(step), dtype=np.int32)
    return Trajectories(users=("u",), user=owners, step=np.array(step), state=NAMES)


def test_steps_of_a_timed_model_are_bins_since_1970():
    bins = [5_600_000, 5_600_001]
    np.testing.assert_array_equal(public_times(rows(bins), 300), np.array(bins) * 300 * MICROSECONDS)
    assert public_times(rows([0, 1]), None) is None


@pytest.mark.parametrize("step", [[0, 5_600_000], [105_119, 5_600_000]])
def test_rows_that_were_only_counted_are_refused(step):
    """105,120 bins of five minutes are the year 1970."""
    with pytest.raises(InvalidInput, match=re.escape("make times in 1970; expected times (dphmm import csv with")):
        public_times(rows(step), 300)
    public_times(rows([105_120, 5_600_000]), 300)
