"""The experiment on synthesis: its measures against plain arithmetic, and a small city from end to end.

It would fail for a divergence that is not symmetric or bounded, for measures that look at the wrong side, and for
people who are learned from and judged by at once.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from experiments import synthesis as experiment
from experiments.experiment import Settings, seed_of
from experiments.synthesis import divergence, measures

GRID = dphmm.Grid.from_bounds(west=13.3, south=52.48, east=13.36, north=52.52, cell=600.0)


def test_a_divergence_is_that_of_its_definition():
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.0, 0.5, 0.5])
    assert divergence(p, p) == 0 and divergence(np.eye(3)[0], np.eye(3)[1]) == 1
    assert divergence(p, q) == divergence(q, p) == pytest.approx(0.5)


def test_people_who_are_the_same_have_no_error_and_others_have_theirs():
    stretches = [np.array([0, 1, 2]), np.array([3, 3])]
    assert measures(stretches, stretches, GRID) == {"density": 0.0, "trips": 0.0, "length": 0.0, "hotspots": 1.0}
    found = measures([np.array([0, 1]), np.array([3, 3])], stretches, GRID)
    # A trip of 0 to 1 in place of 0 to 2, and 300 m in the mean in place of 600 m.
    assert found["trips"] == pytest.approx(0.5) and found["length"] == pytest.approx(0.5)


@pytest.mark.slow
def test_a_small_city_from_end_to_end():
    cell = {"part": "city", "data": "city of 20", "people": 40, "split": 0}
    rows = experiment.measure(Settings(), cell, seed_of(Settings(), "synthesis", cell))
    by = {(row["method"], row["epsilon"]): row for row in rows}
    assert len(by) == 6
    assert by[experiment.COUNTED, None]["density"] < by[experiment.UNIFORM, None]["density"]
    assert rows == experiment.measure(Settings(), cell, seed_of(Settings(), "synthesis", cell))
