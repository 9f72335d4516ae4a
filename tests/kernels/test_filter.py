"""The likelihood of an answer from every state, against the norm of each written out in fractions.

Fails where a facet is left out or taken twice, where a state gets the value of another one, where the last entry of a
table does not serve the steps beyond it, or where several answers are told apart from one.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, floor

import numpy as np
import pytest

from dphmm._kernels import filter as kernels
from dphmm._kernels.lattice import GRADED, STEPS
from dphmm.types import FloatLaw

RATE = 0.75
#: Of a hexagon: normals (m, d), offsets and allowances (m,) of a staircase.
NORMALS = np.array([[1, 0], [0, 1], [1, 1], [2, -1]])
OFFSETS = np.array([3, 4, 5, 7])
ALLOWANCES = np.array([0, 1, 0, 2])
POINTS = np.array([[0, 0], [3, 1], [-4, 9], [2, 2], [11, -6], [1, -3]])
ANSWERS = np.array([[0, 0], [5, -2], [-7, 8]])


def norm_of(point, z):
    """max (|normal·(z - point)| + offset - 1 - allowance)/offset over facets, and at least 0."""
    ratios = [
        Fraction(int(abs(normal @ (z - point)) + offset - 1 - allowance), int(offset))
        for normal, offset, allowance in zip(NORMALS, OFFSETS, ALLOWANCES, strict=True)
    ]
    return max(0, *ratios)


@pytest.mark.parametrize("kind", [kernels.TABLE, STEPS, GRADED])
def test_every_state_has_what_the_law_says_of_its_norm(kind):
    table = np.array([exp(-RATE * step) for step in range(3)] + [0.125])
    by_steps, graded = (lambda norm: exp(-RATE * floor(norm))), (lambda norm: exp(-RATE * norm))
    expected = {kernels.TABLE: lambda norm: table[min(floor(norm), 3)], STEPS: by_steps, GRADED: graded}[kind]
    columns, farthest = kernels.columns_of(POINTS, np.arange(len(POINTS)))
    facets, longest, largest = kernels.facets_of(FloatLaw(NORMALS, OFFSETS, ALLOWANCES, kind, RATE, table))
    assert (farthest, longest, largest) == (abs(POINTS).max(), 3.0, 7.0)
    rows = kernels.likelihood_of_answers(columns, facets, ANSWERS)
    for z, row in zip(ANSWERS, rows, strict=True):
        assert row == pytest.approx([expected(norm_of(point, z)) for point in POINTS], rel=1e-14)
        assert np.array_equal(row, kernels.likelihood_of_points(columns, facets, z))


def test_an_update_is_bayes_rule_over_surrogates():
    """States 1 and 4 are released as state 3; state 5 is impossible, and state 0 is excluded by the answer."""
    plan_states, surrogate = np.array([0, 2, 3]), np.array([0, 3, 2, 3, 3, 0])
    prior, support = np.array([0.2, 0.1, 0.3, 0.15, 0.25, 0.0]), np.arange(6) != 5
    within, z = np.array([False, True, True, True, True, True]), np.array([1, 4])
    posterior, remaining = np.empty(6), np.empty(6, dtype=bool)
    law = FloatLaw(NORMALS, OFFSETS, ALLOWANCES, STEPS, RATE, np.zeros(0))
    released = (POINTS, within, plan_states, surrogate)
    assert kernels.update(prior, support, z, *released, law, 2.0**44, posterior, remaining)
    weights = prior * [exp(-RATE * floor(norm_of(POINTS[s], z))) for s in surrogate] * (support & within)
    assert posterior == pytest.approx(weights / weights.sum(), rel=1e-14)
    assert remaining.tolist() == (support & within).tolist()
    assert not kernels.update(prior, support, z, *released, law, 12.0, posterior, remaining)
