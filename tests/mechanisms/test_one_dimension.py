"""In one dimension a number and a vector of one number are the same answer, for every mechanism.

Claim: ``loss``, ``log_likelihood`` and ``sample`` take 3.0 and [3.0] alike where d = 1, and refuse a bare number where
d = 2. It would fail where the shortcut for numbers also caught, or no longer caught, vectors of one.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.mechanisms import Constant, DiscreteKNorm, KNorm, Laplace, Staircase
from dphmm.samplers import ReplayBits

SPACE = dphmm.StateSpace([[0.0], [1.0], [3.0]])
HULL = dphmm.sensitivity_hull(dphmm.policy.complete(3), SPACE)
POINT = dphmm.sensitivity_hull(dphmm.policy.from_edges([], 3), SPACE)
PLANE = dphmm.sensitivity_hull(dphmm.policy.complete(3), np.array([[0, 0], [1, 0], [0, 1]]))
ONE = [kind(HULL, 1) for kind in (DiscreteKNorm, Staircase, KNorm, Laplace)] + [Constant(POINT, 1)]


@pytest.mark.parametrize("mechanism", ONE, ids=lambda mechanism: type(mechanism).__name__)
def test_a_number_is_a_vector_of_one(mechanism):
    assert mechanism.loss(1.0) == mechanism.loss([1.0])
    one, other = (mechanism.log_likelihood(z, [[0.0], [1.0]]) for z in (1.0, [1.0]))
    np.testing.assert_array_equal(one, other)
    first, second = (mechanism.sample(answer, ReplayBits(1)) for answer in (3.0, [3.0]))
    np.testing.assert_array_equal(first, second)
    assert first.shape == (1,)


@pytest.mark.parametrize("kind", [DiscreteKNorm, Staircase, KNorm])
def test_a_number_is_no_vector_of_two(kind):
    for call in (lambda m: m.loss(1.0), lambda m: m.log_likelihood(1.0, [[0.0, 0.0]]), lambda m: m.sample(1.0)):
        with pytest.raises(InvalidInput, match="shape"):
            call(kind(PLANE, 1))
