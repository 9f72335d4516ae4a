"""Measures with intervals: subjects are resampled, never their rows.

Claims: numbers of subjects follow their first appearance; a statistic of sums is that of the rows; the interval of a
single subject is unknown; resamples are the same every time. The intervals against resamples put together row by row:
tests/evaluation/test_metrics.py.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.audit.resampling import RowSubjects, interval, ratio
from dphmm.errors import InvalidInput


def test_subjects_are_numbered_by_first_appearance():
    whose = RowSubjects.of(["b", "a", "b", "c"], 4)
    assert whose.number.tolist() == [0, 1, 0, 2] and whose.count == 3
    assert whose.sums(np.array([1.0, 2, 4, 8])).tolist() == [[5], [2], [8]]
    assert whose.counts(np.array([0, 1, 0, 1]), 2).toarray().tolist() == [[2, 0], [0, 1], [0, 1]]
    assert RowSubjects.of(None, 3).number.tolist() == [0, 1, 2]


def test_intervals_are_of_subjects_and_the_same_every_time():
    """One subject of a hundred rows and one of a single row count alike in a resample."""
    whose = RowSubjects.of(["a"] * 100 + ["b"], 101)
    parts = whose.sums(np.concatenate([np.ones(100), [0.0]]), np.ones(101))
    found = interval(parts, lambda sums: ratio(sums[:, 0], sums[:, 1]))
    assert found == interval(parts, lambda sums: ratio(sums[:, 0], sums[:, 1]))
    assert (found.value, found.low, found.high) == (100 / 101, 0.0, 1.0)
    alone = interval(parts[:1], lambda sums: sums[:, 0])
    assert alone.value == 100 and np.isnan([alone.low, alone.high]).all()


def test_wrong_lengths_are_refused():
    with pytest.raises(InvalidInput, match="subjects"):
        RowSubjects.of(["a"], 2)
    with pytest.raises(InvalidInput, match="truth"):
        RowSubjects.of(None, 0)
