"""Events of private learning: true totals, no way to a total for what is not private, and what adds up with releases.

Totals are compared with the formulas as rationals; the sum with releases is compared with a joint mechanism that is
small enough to enumerate, where it is reached.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction

import pytest

from dphmm.accounting.composition import epsilon_of
from dphmm.accounting.event import (
    ComposedEvents,
    LearningEvent,
    NoisyCounts,
    NotPrivateEvent,
    compose,
    described,
    event_from,
    learned,
    together,
)
from dphmm.errors import InvalidInput

TINY = Fraction(1, 10**6)


def laplace(sensitivity=19, scale=20):
    return NoisyCounts("counts", "laplace", Fraction(sensitivity), Fraction(scale))


def gaussian(squared=9, variance=100):
    return NoisyCounts("counts", "gaussian", Fraction(squared), Fraction(variance))


def event(*parts, neighbours="add-remove", delta=Fraction(0), secure=True):
    return LearningEvent(parts or (laplace(),), neighbours, 20, 1, secure, delta, unit="owner")


NOT_PRIVATE = NotPrivateEvent("noise in the last iteration only")


def test_pure_totals_are_exact_sums():
    assert event(laplace(19, 20), laplace(20, 20)).epsilon == Fraction(39, 20)
    assert event(laplace(1, 3), laplace(1, 7)).epsilon == Fraction(1, 3) + Fraction(1, 7)
    assert event().delta == 0 and event().pure


def test_gaussian_totals_are_those_of_the_summed_rho():
    both = event(gaussian(9, 100), gaussian(9, 50), delta=TINY)
    assert both.rho == Fraction(9, 200) + Fraction(9, 100)
    assert both.epsilon == epsilon_of(both.rho, TINY)
    assert not both.pure


def test_laplace_beside_gaussian_counts_as_half_its_square():
    mixed = event(gaussian(9, 100), laplace(1, 2), delta=TINY)
    assert mixed.rho == Fraction(9, 200) + Fraction(1, 8)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: event(gaussian()),
        lambda: event(laplace(), delta=TINY),
        lambda: event(neighbours="anyone"),
        lambda: LearningEvent((), "replace", 20, 1, True, unit="owner"),
        lambda: LearningEvent((laplace(),), "replace", 0, 1, True, unit="owner"),
        lambda: LearningEvent((laplace(),), "replace", 5, True, True, unit="owner"),
        lambda: LearningEvent((laplace(),), "replace", 5, 1, 1, unit="owner"),
        lambda: LearningEvent((NOT_PRIVATE,), "replace", 5, 1, True, unit="owner"),
        lambda: NoisyCounts("x", "uniform", Fraction(1), Fraction(1)),
        lambda: NoisyCounts("x", "laplace", Fraction(1), Fraction(0)),
        lambda: NoisyCounts("x", "laplace", 1.0, Fraction(1)),
        lambda: gaussian().epsilon,
    ],
)
def test_wrong_events_are_refused_in_one_line(wrong):
    with pytest.raises(InvalidInput) as told:
        wrong()
    assert "\n" not in str(told.value)


class TestNotPrivate:
    def test_it_has_no_epsilon(self):
        for name in ("epsilon", "rho", "delta", "parts", "for_replacement"):
            assert not hasattr(NOT_PRIVATE, name)

    @pytest.mark.parametrize(
        "add_up",
        [
            lambda: learned(NOT_PRIVATE),
            lambda: learned([event(), NOT_PRIVATE]),
            lambda: together(NOT_PRIVATE, Fraction(1)),
            lambda: compose([NOT_PRIVATE]),
            lambda: ComposedEvents((NOT_PRIVATE,)),
            lambda: LearningEvent((NOT_PRIVATE,), "add-remove", 20, 1, True, unit="owner"),
        ],
    )
    def test_whatever_adds_up_refuses_it(self, add_up):
        with pytest.raises(InvalidInput):
            add_up()

    def test_its_description_says_so_and_cannot_be_read_as_private(self):
        description = described(NOT_PRIVATE)
        assert description["private"] is False and "epsilon" not in description
        assert event_from(json.loads(json.dumps(description))) == NOT_PRIVATE
        with pytest.raises(InvalidInput):
            event_from(description | {"private": True})
        with pytest.raises(InvalidInput):
            event_from(description | {"private": True, "epsilon": "1", "parts": []})


class TestDescriptions:
    @pytest.mark.parametrize(
        "given",
        [
            event(),
            event(laplace(1, 3), neighbours="replace"),
            event(gaussian(), gaussian(1, 7), delta=TINY),
            event(secure=False),
        ],
    )
    def test_they_come_back_exactly(self, given):
        description = json.loads(json.dumps(described(given)))
        assert event_from(description) == given
        assert description["private"] is given.secure

    @pytest.mark.parametrize(
        "change",
        [
            {"epsilon": "0.5"},
            {"private": False},
            {"parts": []},
            {"parts": [{"name": "x"}]},
            {"parts": [{"name": "x", "noise": "laplace", "sensitivity": "1/0", "scale": "1"}]},
            {"parts": [{"name": "x", "noise": "laplace", "sensitivity": "1e", "scale": "1"}]},
            {"neighbours": "others"},
            {"secure": "yes"},
            {"max_length": "20"},
            {"delta": "1e-6"},
        ],
    )
    def test_changed_ones_are_refused(self, change):
        with pytest.raises(InvalidInput):
            event_from(described(event()) | change)

    @pytest.mark.parametrize("nothing", [None, 3, "x", [], {}, {"private": False}, {"private": True}])
    def test_what_is_none_is_refused(self, nothing):
        with pytest.raises(InvalidInput):
            event_from(nothing)


class TestTogether:
    def test_add_remove_counts_twice_and_replacement_once(self):
        assert together(event(), Fraction(3)).value == 2 * Fraction(19, 20) + 3
        assert together(event(neighbours="replace"), Fraction(3)).value == Fraction(19, 20) + 3

    def test_gaussian_noise_for_replacement_has_twice_the_rho_at_the_same_delta(self):
        given = event(gaussian(), delta=TINY)
        assert together(given, Fraction(3)).value == epsilon_of(2 * given.rho, TINY) + 3
        assert "delta of 1e-06" in together(given, Fraction(3)).statement

    def test_an_unbounded_cost_is_unbounded(self):
        assert together(event(), math.inf).value == math.inf

    def test_replayable_noise_promises_nothing(self):
        assert "nothing is promised" in together(event(secure=False), Fraction(1)).statement
        assert "nothing is promised" in learned(event(secure=False)).statement
        assert "nothing is promised" not in together(event(), Fraction(1)).statement

    @pytest.mark.parametrize("cost", [-1, math.nan, -math.inf, True, None, "one"])
    def test_costs_are_numbers_of_0_or_more(self, cost):
        with pytest.raises(InvalidInput):
            together(event(), cost)

    @pytest.mark.parametrize("cost", [1.5, "1.5", Fraction(3, 2)])
    def test_a_cost_is_the_decimal_that_it_prints_as(self, cost):
        assert together(event(), cost).value == together(event(), 0).value + Fraction(3, 2)

    def test_it_is_reached_by_a_mechanism_that_can_be_enumerated(self):
        """Counts of a 2-cell vector with Laplace noise, then an answer whose law depends on the noisy counts.

        Life a is the record (1, 0), life b the record (0, 1). The answer is a coin that shows the life, with a loss of
        2 where the noisy counts differ in one direction and 1/2 elsewhere: adaptive, as releases with a model are.
        """
        scale = Fraction(2)
        fit = event(NoisyCounts("counts", "laplace", Fraction(1), scale))
        reach = range(-6, 7)

        def exponent(z, life):
            counts = (1, 0) if life == "a" else (0, 1)
            return sum(abs(x - c) for x, c in zip(z, counts, strict=True)) / scale

        worst = Fraction(0)
        for z in itertools.product(reach, reach):
            cost = Fraction(2) if z[0] > z[1] else Fraction(1, 2)
            loss = exponent(z, "b") - exponent(z, "a") + cost
            assert loss <= together(fit, cost).value
            worst = max(worst, loss)
        assert worst == together(fit, Fraction(2)).value


def test_fits_add_up_for_one_kind_of_neighbours():
    total = learned([event(), event(gaussian(), delta=TINY)])
    assert total.value == event().epsilon + event(gaussian(), delta=TINY).epsilon
    assert "adding or removing" in total.statement and "delta of 1e-06" in total.statement
    assert "replacing" in learned(event(neighbours="replace")).statement
    for wrong in ([event(), event(neighbours="replace")], [], [3]):
        with pytest.raises(InvalidInput):
            learned(wrong)
