"""Records refuse wrong fields by name, and numbers are shown exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.accounting import Caps, PlanRecord, Request, SessionHeader
from dphmm.accounting.records import in_short, lattice_answer, shown
from dphmm.errors import InvalidInput
from dphmm.types import Loss

PLAN = PlanRecord("p1", b"\xf0", 5, "{}")
GOOD = Request("ann", "state", 1, "release", Fraction(1), Fraction(2), PLAN, True, False)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("t", {"t": 0}),
        ("t", {"t": True}),
        ("t", {"t": 1.0}),
        ("kind", {"kind": "peek"}),
        ("kind", {"kind": "skip"}),
        ("epsilon", {"epsilon": None}),
        ("epsilon", {"epsilon": Fraction(0)}),
        ("epsilon", {"epsilon": Fraction(-1)}),
        ("epsilon", {"epsilon": 0.1}),
        ("epsilon", {"epsilon": True}),
        ("epsilon", {"epsilon": Fraction(1, 2**1024)}),
        ("cost", {"cost": None}),
        ("cost", {"cost": math.nan}),
        ("cost", {"cost": math.inf}),
        ("cost", {"cost": 1.5}),
        ("plan", {"plan": None}),
        ("plan", {"plan": "p1"}),
    ],
)
def test_a_request_names_its_wrong_field(field: str, changes: dict[str, object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        replace(GOOD, **changes)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_a_constant_may_cost_nothing() -> None:
    assert replace(GOOD, epsilon=Fraction(0), cost=Fraction(0), constant=True).epsilon == 0


def test_a_request_of_another_step_is_the_one_that_would_be_made_of_it() -> None:
    other = GOOD.of_step("bob", "place", 7, secure=False)
    assert other == Request("bob", "place", 7, "release", Fraction(1), Fraction(2), PLAN, False, False)
    assert GOOD.subject == "ann" and GOOD.t == 1
    for t in (0, True, 1.0):
        with pytest.raises(InvalidInput, match="t:"):
            GOOD.of_step("bob", "place", t, secure=False)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("subject", lambda: SessionHeader("\ud800", "q", {})),
        ("query", lambda: SessionHeader("s", 3, {})),  # type: ignore[arg-type]
        ("flat", lambda: SessionHeader("s", "q", {"flat": None})),  # type: ignore[dict-item]
        ("plan", lambda: PlanRecord("h", b"\xff\xff", 8, "{}")),
        ("plan", lambda: PlanRecord("", b"\xff", 8, "{}")),
        ("plan", lambda: PlanRecord("h", b"", 0, "{}")),
        ("cap_epsilon", lambda: Caps(epsilon=Fraction(-1))),
        ("cap_cost", lambda: Caps(cost=math.inf)),  # type: ignore[arg-type]
    ],
)
def test_other_records_name_their_wrong_field(field: str, make: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput) as caught:
        make()
    assert caught.value.field == field


def test_options_are_kept_in_one_order() -> None:
    given_options = {"start": "at", "mechanism": "auto"}
    header = SessionHeader("s", "q", given_options)
    given_options["start"] = "before"
    assert header.options == {"start": "at", "mechanism": "auto"}
    other = SessionHeader("s", "q", {"mechanism": "auto", "start": "at"})
    assert header.options_text == other.options_text == '{"mechanism":"auto","start":"at"}'


@pytest.mark.parametrize("wrong", [(), (1.5,), ("7",), None, (2**5000,)])
def test_a_wrong_draw_is_refused_without_being_shown(wrong: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        lattice_answer(wrong)  # type: ignore[arg-type]
    assert "1.5" not in str(caught.value) and "7" not in str(caught.value)
    assert len(str(caught.value)) < 200


@given(st.integers(-(10**12), 10**12), st.integers(0, 12))
def test_decimals_are_shown_exactly(digits: int, places: int) -> None:
    value = Fraction(digits, 10**places)
    assert Fraction(Decimal(shown(value))) == value


def test_what_is_no_short_decimal() -> None:
    assert shown(Fraction(1, 3)) == "1/3"
    assert shown(Fraction(-7, 2)) == "-3.5"
    assert shown(math.inf) == "unbounded"
    assert shown(Fraction(1, 3**400)).startswith("about ")
    assert shown(Fraction(1, 2**20)) == "0.00000095367431640625"


@given(st.fractions(min_value=0, max_value=10**6), st.booleans())
@settings(max_examples=200)
def test_a_number_for_people_errs_on_the_side_it_should(value: Fraction, down: bool) -> None:
    told = Fraction(in_short(value, down))
    assert told <= value if down else told >= value
    assert abs(told - value) <= value / 10**5


@pytest.mark.parametrize(
    ("value", "up", "down"),
    [
        (Fraction(1, 10), "0.1", "0.1"),
        (Fraction(1, 3), "0.333334", "0.333333"),
        (Fraction(2475880078570761, 1125899906842624), "2.19903", "2.19902"),
        (Fraction(10**7, 3), "3333340", "3333330"),
        (Fraction(1, 3 * 10**7), "0.0000000333334", "0.0000000333333"),
        (0.1 + 0.2, "0.300001", "0.3"),
        (Fraction(0), "0", "0"),
        (math.inf, "unbounded", "unbounded"),
        ("18/5", "3.6", "3.6"),
        ("unbounded", "unbounded", "unbounded"),
        ("about 1.2e-9", "about 1.2e-9", "about 1.2e-9"),
        ("none", "none", "none"),
    ],
)
def test_numbers_for_people(value: Loss | str, up: str, down: str) -> None:
    assert (in_short(value), in_short(value, down=True)) == (up, down)
