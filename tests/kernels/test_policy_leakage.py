"""Couplings of policy leakage against linear programs: they are least, and above the programs that they bound."""

from __future__ import annotations

import numpy as np
import pytest

from dphmm._kernels.policy_leakage import bottleneck
from leakage_programs import by_coupling, by_linear_program, program

pytestmark = pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")


@pytest.mark.parametrize("seed", range(60))
def test_a_coupling_is_least_and_above_the_program(seed):
    q, d, limits = program(seed)
    coupled = bottleneck(np.log(q), np.log(d), limits)
    assert by_linear_program(q, d, limits) <= coupled + 1e-9
    assert coupled == pytest.approx(by_coupling(q, d, limits), abs=1e-9)


def test_limits_beyond_the_range_of_floats():
    """e^2000 is no float: all of q = (1, 0) or half of it goes to d = (0, 1) over the limit itself."""
    limits = np.array([[0.0, 2000.0], [1.0, 0.0]])
    for q in ([1.0, 0.0], [0.5, 0.5]):
        assert bottleneck(np.log(q), np.log([0.0, 1.0]), limits) == pytest.approx(2000, abs=1e-6)
