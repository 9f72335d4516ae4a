"""Where the answers lie does not matter, only their differences: also where sums of products pass 64 bits.

Claim: the largest norm between states, the factor of the cost, is the same wherever the answers are moved to, up to the
2**53 lattice steps that answers may have. With differences near 2**27 the normals of facets are as large, so products
pass 2**63; it would fail (with a cost that is too small) for sums in 64 bits beyond what they hold. Sums that wrap keep
their differences unless the wrap falls between two states, as it does at the last place.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.sensitivity import largest_norm

NEAR = np.array([[0, 0], [2**27 - 1, 3], [5, 2**27 - 3], [2**27 - 7, 2**26 + 1], [2**26, -(2**27) + 9]])
POLICY = dphmm.policy.from_edges([(0, 1), (0, 2), (2, 3)], 5)


@pytest.mark.parametrize(
    "shift", [(2**40, 0), (2**52, -(2**52)), (-(2**52) + 3, 2**51 + 1), (-2750714455511083, 2521518332616990)]
)
def test_norms_do_not_depend_on_where_answers_lie(shift):
    moved = NEAR + np.array(shift)
    near, far = (dphmm.sensitivity_hull(POLICY, answers) for answers in (NEAR, moved))
    np.testing.assert_array_equal(near.normals, far.normals)
    np.testing.assert_array_equal(near.offsets, far.offsets)
    pairs = [near.norm_fraction(a - b) for a in NEAR for b in NEAR]
    assert largest_norm(near, NEAR) == largest_norm(far, moved) == max(pairs)


def test_a_line_whose_coordinates_pass_64_bits_on_the_way():
    """Coordinates on a slanted line are sums of large products: they are Python integers then, and so is the norm."""
    line = np.outer([0, 1, 2, 5], [12345677, 23456789, 33333331])
    hull = dphmm.sensitivity_hull(dphmm.policy.from_edges([(0, 1), (1, 2)], 4), line)
    assert hull.rank == 1
    assert hull.coordinates_of(line).dtype == object
    assert largest_norm(hull, line) == 5
