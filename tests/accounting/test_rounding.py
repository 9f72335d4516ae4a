"""Money does not pass through floats: amounts just above a billionth, and totals that floats cannot hold, are exact.

Claim. A cost is charged the least whole number of billionths that is not below it, a cap counts the greatest that is
not above it, and sums of epsilon are the sums of the fractions. Every amount here lies so near to a multiple of a
billionth, or is so large, that its float is another number; it would fail for any detour through a float, in one
rounding or a sum.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from dphmm.accounting import Caps
from dphmm.accounting.budget import EMPTY, NANO, nanos_down, nanos_up

HAIR = Fraction(1, 10**30)
WHOLE = [0, 1, 7, 10**9, 10**17 + 1, 3 * 10**25 + 7]


@pytest.mark.parametrize("nanos", WHOLE)
def test_a_hair_above_a_billionth_is_charged_as_the_next_and_capped_as_this_one(nanos: int) -> None:
    exact = Fraction(nanos, NANO)
    assert (nanos_up(exact), nanos_down(exact)) == (nanos, nanos)
    assert (nanos_up(exact + HAIR), nanos_down(exact + HAIR)) == (nanos + 1, nanos)
    assert float(exact + HAIR) == float(exact) or nanos == 0  # a float would not have noticed


@pytest.mark.parametrize("start", [Fraction(0), Fraction(10**20), Fraction(1, 3)])
def test_small_amounts_are_not_lost_in_large_totals(start: Fraction) -> None:
    tiny = Fraction(1, 2**20)
    one_by_one = EMPTY._replace(epsilon=start, nanos=nanos_up(start))
    at_once = one_by_one.plus_times(tiny, tiny, 1000)
    for _ in range(1000):
        one_by_one = one_by_one.plus(tiny, tiny)
    assert one_by_one == at_once
    assert one_by_one.epsilon == start + 1000 * tiny
    assert one_by_one.nanos == nanos_up(start) + 1000 * 954  # 2**-20 is 953.67 billionths


def test_a_cap_that_only_floats_would_hold_is_passed() -> None:
    """0.1 + 0.2 of floats is 0.30000000000000004, and 10**20 + 1/2 is 10**20."""
    tenth, fifth = Fraction(1, 10), Fraction(1, 5)
    assert EMPTY.plus(tenth, tenth).plus(fifth, fifth).within(Caps(Fraction(3, 10), Fraction(3, 10)))
    large = EMPTY.plus(Fraction(10**20), Fraction(10**20)).plus(Fraction(1, 2), Fraction(1, 2))
    assert large.over_epsilon(Caps(Fraction(10**20), None))
    assert large.over_cost(Caps(None, Fraction(10**20)))
