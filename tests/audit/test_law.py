"""The losses of mechanisms from their integers, which share no code with what makes and certifies them.

Claims: the loss of a body is found again over every answer of a window, huge numbers do not overflow. It would fail for
an audit in floats.

The audit's own reading of a table: losses from integers, never rounded down.

Claims: two rows lose the log of their largest quotient, as a fraction that is not below it; a table that is wrong in
its integers has a fault and no bound. It would fail for losses in floats, which may be a digit too small.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from audit.small import POLICY, SPACE, everywhere, session
from dphmm.audit import verify
from dphmm.audit.law import Law, Table, _exp_below, _log_above, farthest
from dphmm.mechanisms import DiscreteKNorm, Staircase


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("offset", [None, Fraction(0), Fraction(1, 3), Fraction(9, 10)])
def test_enumeration_finds_the_loss_again(epsilon, offset):
    """Over a window of answers the largest ratio is ε·N(v), or ε·⌈N(v)⌉: for norms below 1, at 1, above."""
    hull = dphmm.sensitivity.sensitivity_hull(POLICY, SPACE)
    law = Law.of(DiscreteKNorm(hull, epsilon) if offset is None else Staircase(hull, epsilon, offset))
    for v in itertools.product(range(-3, 4), range(-2, 3)):
        vector = np.array(v)
        assert law.enumerated(vector, 10**6) == law.loss(law.norm(vector))
    smaller = Law(law.kind, epsilon, law.offset, law.basis, law.coordinates, 2 * law.normals, 2 * law.offsets - 1)
    assert smaller.enumerated(np.array([4, 1]), 10**6) > epsilon


def test_huge_numbers_do_not_overflow():
    space = dphmm.StateSpace([[0, 0], [2**27, 1], [1, 2**27], [2**28 - 1, 2**28 - 3]], pitch=1)
    verdict = verify(session(model=everywhere(4), policy=dphmm.policy.from_edges([(0, 1), (2, 3)], 4), space=space))
    assert not verdict.convicted and verdict.loss == 1


POINTS = ((0,), (1,), (2,))
ROWS = ((6, 1, 1), (2, 4, 2), (1, 1, 6))


def test_losses_are_the_largest_quotients_and_never_too_little():
    table = Table(Fraction(1), POINTS, ROWS)
    for a, b, quotient in ((0, 1, 4), (1, 2, 4), (0, 2, 6)):
        loss = table.lost(a, b)
        assert math.log(quotient) <= float(loss) <= math.log(quotient) + 1e-11
        assert _exp_below(loss) >= quotient
    assert table.lost(1, 1) == 0 and table.lost(-1, 0) == math.inf
    assert table.between(np.array([0]), np.array([2])) == table.lost(0, 2)
    assert farthest(table, np.array([[0, 1], [0, 2], [1, 2]])) == 1


def test_rows_that_lose_at_most_epsilon_are_decided_by_integers():
    """At ε one step above log 4 the quotient 4 is kept, one step below it is not: floats cannot tell the two."""
    table = Table(Fraction(1), POINTS, ROWS)
    above = _log_above(Fraction(4))
    below = above - Fraction(2, 2**40)
    assert table.kept_at(above)[0, 1] and not table.kept_at(below)[0, 1]
    assert not table.kept_at(above)[0, 2]


@pytest.mark.parametrize(
    ("answers", "rows", "words"),
    [
        (POINTS, ((6, 1, 1), (2, 4, 2), (1, 1)), "one column for each answer"),
        (POINTS, ((7, 0, 1), (2, 4, 2), (1, 1, 6)), "an answer is impossible"),
        (POINTS, ((6, 1, 1), (2, 4, 2), (1, 1, 7)), "different sums"),
        (((0,), (0,), (2,)), ROWS, "one row"),
    ],
)
def test_wrong_integers_have_a_fault_and_no_bound(answers, rows, words):
    table = Table(Fraction(1), answers, rows)
    assert any(words in fault for fault in table.faults())
    assert table.lost(0, 1) == math.inf and table.rough[0, 1] == np.inf
