"""A search tries distances that neighbours have, and recommends what it tried."""

from __future__ import annotations

import math

import numpy as np

import dphmm
from dphmm.choose.search import usual_radii


def test_usual_radii_reach_neighbours_and_leave_somebody_out():
    grid = dphmm.Grid.from_bounds(10, 50, 10.1, 50.05, cell=340.0)
    radii = usual_radii(grid)
    first = dphmm.policy.radius(grid, radii[0])
    assert first.has_neighbor(None).all()
    assert radii[0] < 340 * math.sqrt(2)
    far = np.linalg.norm(np.ptp(grid.answers, axis=0))
    assert list(radii) == sorted(radii) and radii[-1] < far
