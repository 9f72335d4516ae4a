"""Sums never lose, caps are exact, every rounding goes towards privacy."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.accounting import Caps, PlanRecord, Request
from dphmm.accounting.budget import EMPTY, NANO, admit, nanos_down, nanos_up
from dphmm.accounting.promise import SequencePromise
from dphmm.errors import BudgetExceeded, InvalidInput

PLAN = PlanRecord("p1", b"\xf0", 5, "{}")
GOOD = Request("ann", "state", 1, "release", Fraction(1, 10), Fraction(1, 10), PLAN, True, False)
amounts = st.fractions(min_value=0, max_value=1000, max_denominator=10**12)


@given(amounts)
def test_spends_round_up_and_caps_down_by_less_than_one_nano(amount: Fraction) -> None:
    assert 0 <= Fraction(nanos_up(amount), NANO) - amount < Fraction(1, NANO)
    assert 0 <= amount - Fraction(nanos_down(amount), NANO) < Fraction(1, NANO)


@given(st.lists(amounts.filter(bool), min_size=1, max_size=12), amounts)
def test_what_is_admitted_fits_the_cap(costs: list[Fraction], cap: Fraction) -> None:
    account, admitted = EMPTY, Fraction(0)
    for cost in costs:
        try:
            account = admit(account, replace(GOOD, cost=cost), Caps(cost=cap))
        except BudgetExceeded:
            # Refused only if the true sum is over the cap, or within the roundings of it.
            assert admitted + cost > cap - Fraction(len(costs) + 1, NANO)
        else:
            admitted += cost
            assert admitted <= account.spent.cost <= cap


def test_three_tenths_fit_and_a_fourth_does_not() -> None:
    account, caps = EMPTY, Caps(epsilon=Fraction(3, 10), cost=Fraction(3, 10))
    for _ in range(3):
        account = admit(account, GOOD, caps)
    assert account.spent.epsilon == account.spent.cost == Fraction(3, 10)
    with pytest.raises(BudgetExceeded) as caught:
        admit(account, GOOD, caps)
    assert str(caught.value) == (
        'epsilon: step 1 of query "state" for subject "ann" requested 0.1; spent 0.3, remaining 0, cap 0.3; '
        "nothing was drawn or spent"
    )


def test_thirds_fit_one_in_epsilon_but_not_in_cost() -> None:
    third = replace(GOOD, epsilon=Fraction(1, 3), cost=Fraction(1, 3))
    account = EMPTY
    for _ in range(3):
        account = admit(account, third, Caps(epsilon=Fraction(1)))
    assert account.spent.epsilon == 1
    assert account.spent.cost == Fraction(1_000_000_002, NANO)
    two = admit(admit(EMPTY, third, Caps()), third, Caps())
    with pytest.raises(BudgetExceeded, match=r"^cost: .*requested 0\.333333334; spent 0\.666666668"):
        admit(two, third, Caps(cost=Fraction(1)))


def test_tiny_costs_are_never_free() -> None:
    account = EMPTY
    for _ in range(10):
        account = admit(account, replace(GOOD, cost=Fraction(1, 10**30)), Caps())
    assert account.nanos == 10


def test_a_lowered_cap_leaves_nothing() -> None:
    account = admit(EMPTY, GOOD, Caps())
    with pytest.raises(BudgetExceeded, match=r"remaining 0, cap 0\.05"):
        admit(account, GOOD, Caps(epsilon=Fraction(1, 20)))


def test_a_total_of_endless_fractions_is_stopped() -> None:
    account = EMPTY
    with pytest.raises(InvalidInput, match="very long fraction"):
        for k in range(20):
            account = admit(account, replace(GOOD, epsilon=Fraction(1, 2**1000 + 2 * k + 1)), Caps())
    assert all(len(part) < 4300 for part in str(account.epsilon).split("/"))


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


@pytest.mark.parametrize(
    ("caps", "step", "limits"),
    [
        (Caps(), None, False),
        (Caps(epsilon=Fraction(99_999)), None, True),
        (Caps(epsilon=Fraction(100_000)), None, False),
        (Caps(cost=Fraction(99_999)), None, True),
        (Caps(promise=SequencePromise(1, window=1)), None, False),
        (Caps(promise=SequencePromise(1, window=2)), None, True),
        (Caps(promise=SequencePromise(1, per="10min")), 600, False),
        (Caps(promise=SequencePromise(1, per="1d")), 86_400, True),
        (Caps(Fraction(5), promise=SequencePromise(1, window=1)), None, True),
    ],
)
def test_what_every_file_keeps_is_no_limit(caps: Caps, step: int | None, limits: bool) -> None:
    """A promise of single steps shorter than a day, and a total of 100,000 answers."""
    assert caps.limit(Fraction(1), step) is limits
