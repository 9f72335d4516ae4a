"""Events of private learning: true totals, no way to a total for what is not private, and what adds up with releases.

Totals are compared with the formulas as rationals; the sum with releases is compared with a joint mechanism that is
small enough to enumerate, where it is reached.

The corrected theorems and the conversion of zCDP, against worked examples and brute force.
"""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.accounting import event as module
from dphmm.accounting import theorem_5_3, theorem_6_3, theorem_7_1, theorem_7_2
from dphmm.accounting.event import (
    ComposedEvents,
    LearningEvent,
    NoisyCounts,
    NotPrivateEvent,
    compose,
    described,
    epsilon_of,
    event_from,
    learned,
    rho_for,
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

    def test_replayable_noise_promises_nothing(self):
        assert "nothing is promised" in together(event(secure=False), Fraction(1)).statement
        assert "nothing is promised" in learned(event(secure=False)).statement
        assert "nothing is promised" not in together(event(), Fraction(1)).statement

    @pytest.mark.parametrize("cost", [-1, math.nan, math.inf, True, None, "one"])
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


RUNNING = [(1, 0), (2, 1), (3, 0), (0, 1), (4, 2), (1, 2)]
#: Vertices of the running example's hull, counter-clockwise (example 5.1, all states).
HULL = [(3, 0), (4, 1), (-1, 1), (-3, 0), (-4, -1), (1, -1)]

losses = st.one_of(st.fractions(min_value=0, max_value=50, max_denominator=60), st.just(math.inf))


def gauge(v: tuple[int, int]) -> Fraction:
    """The norm of v under HULL: the largest of v over each facet."""
    best = Fraction(0)
    for (ax, ay), (bx, by) in zip(HULL, HULL[1:] + HULL[:1], strict=True):
        nx, ny = by - ay, ax - bx
        best = max(best, Fraction(nx * v[0] + ny * v[1], nx * ax + ny * ay))
    return best


def test_theorem_6_3_on_the_running_example() -> None:
    pairs = [gauge((a[0] - b[0], a[1] - b[1])) for a, b in product(RUNNING, RUNNING)]
    assert theorem_6_3(pairs).value == 2


def test_theorem_5_3_on_example_5_3() -> None:
    guarantee = theorem_5_3(Fraction(1, 2), [Fraction(n) for n in (1, 0, 1, 2, 1, 2)])
    assert guarantee.value == 1
    assert "adding or removing" in guarantee.statement
    assert "5.3(2)" in guarantee.citation


def test_an_answer_off_the_span_of_a_flat_body_has_no_bound() -> None:
    assert not theorem_5_3(Fraction(1), [Fraction(1), math.inf]).bounded
    assert not theorem_6_3([Fraction(1), math.inf]).bounded
    assert not theorem_7_2([Fraction(1), math.inf, Fraction(2)]).bounded


def test_theorem_7_2_is_reached_by_two_histories() -> None:
    """Three states on a line, edges between neighbours, a geometric mechanism: loss ε|i − j|, cost 2ε."""
    epsilon = Fraction(1, 3)
    histories = list(product(range(3), repeat=2))
    outputs = list(product(range(-2, 5), repeat=2))

    def log_likelihood(z: tuple[int, ...], history: tuple[int, ...]) -> Fraction:
        return -epsilon * sum(abs(a - b) for a, b in zip(z, history, strict=True))

    worst = max(
        log_likelihood(z, one) - log_likelihood(z, other) for z in outputs for one in histories for other in histories
    )
    assert worst == theorem_7_2([2 * epsilon, 2 * epsilon]).value == 4 * epsilon
    assert worst > 2 * epsilon  # the sum of the epsilons is no bound for any two histories


#: The counter-example to Theorem 7.1 as printed: K = [−1, 1] for both queries, edges kn and lm, a alone.
COUNTER = {"f1": {"a": 0, "k": 1, "l": 10, "m": 11, "n": 2}, "f2": {"a": 0, "k": 10, "l": 1, "m": 2, "n": 11}}


def test_theorem_7_1_gives_nothing_when_partners_differ() -> None:
    joint = [sum(abs(f["a"] - f[s]) for f in COUNTER.values()) for s in "klmn"]
    assert sorted(joint) == [11, 11, 13, 13]  # the printed theorem would claim 2 with one of them
    ones, costs = dict.fromkeys(COUNTER, Fraction(1)), dict.fromkeys(COUNTER, Fraction(11))
    result = theorem_7_1(ones, costs, {"f1": {0: 1}, "f2": {0: 2}})
    assert result.isolated is None
    assert result.edges.value == 2
    assert result.any_pair.value == 22 >= max(joint)


def test_theorem_7_1_holds_with_one_partner() -> None:
    # k is a's partner in both queries: the edge widens the second body to [-10, 10].
    bodies = {"f1": 1, "f2": 10}
    joint = sum(Fraction(abs(f["a"] - f["k"]), bodies[q]) for q, f in COUNTER.items())
    ones = dict.fromkeys(COUNTER, Fraction(1))
    result = theorem_7_1(ones, ones, {"f1": {0: 1}, "f2": {0: 1}})
    assert result.isolated is not None
    assert joint <= result.isolated.value == 2
    assert "one partner" in result.isolated.statement


@pytest.mark.parametrize("partners", [{}, {"f1": {0: 1}}, {"f1": {0: 1}, "f2": {}}])
def test_theorem_7_1_gives_nothing_for_unknown_partners(partners: dict[str, dict[int, int]]) -> None:
    ones = dict.fromkeys(COUNTER, Fraction(1))
    assert theorem_7_1(ones, ones, partners).isolated is None


def test_theorem_7_1_refuses_nonsense() -> None:
    one = {"f": Fraction(1)}
    with pytest.raises(InvalidInput, match="itself"):
        theorem_7_1(one, one, {"f": {3: 3}})
    with pytest.raises(InvalidInput, match="costs"):
        theorem_7_1(one, {"g": Fraction(1)}, {})
    with pytest.raises(InvalidInput, match="costs"):
        theorem_7_1({}, {}, {})


@given(st.lists(losses, max_size=6))
@settings(max_examples=60)
def test_theorem_7_2_is_the_sum_in_any_order(costs: list[Fraction | float]) -> None:
    total = Fraction(0)
    for cost in costs:
        total = math.inf if cost == math.inf or total == math.inf else total + Fraction(cost)
    assert theorem_7_2(costs).value == theorem_7_2(costs[::-1]).value == total


@pytest.mark.parametrize("wrong", [0.5, -math.inf, math.nan, Fraction(-1), True, "1"])
def test_losses_are_exact(wrong: object) -> None:
    with pytest.raises(InvalidInput):
        theorem_7_2([wrong])  # type: ignore[list-item]
    with pytest.raises(InvalidInput):
        theorem_6_3([wrong])  # type: ignore[list-item]


def test_a_guarantee_prints_which_statement_it_is() -> None:
    assert str(theorem_7_2([Fraction(1, 2), Fraction(1, 4)])).startswith("0.75 (bounds the loss of any two hist")
    assert str(theorem_7_2([math.inf])).startswith("unbounded (")
    assert "Theorem 7.2" in str(theorem_7_2([]))


DELTAS = [Fraction(1, 100), Fraction(1, 10**6), Fraction(1, 10**9)]


def true_delta(epsilon, variance, shift):
    """sum over z of (P(z) - e**epsilon·P(z + shift))+ for the discrete Gaussian, from its definition."""
    reach = range(-int(40 * math.sqrt(variance)) - 40, int(40 * math.sqrt(variance)) + 41)
    total = math.fsum(math.exp(-(z**2) / (2 * variance)) for z in reach)

    def term(z):
        # P(z)·(1 - exp(epsilon - loss)), with the loss of z in closed form.
        loss = ((z + shift) ** 2 - z**2) / (2 * variance)
        return -math.expm1(epsilon - loss) * math.exp(-(z**2) / (2 * variance)) if loss > epsilon else 0.0

    return math.fsum(term(z) for z in reach) / total


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize(("variance", "shift"), [(1, 1), (4, 1), (50, 3), (400, 20), (2000, 3)])
def test_the_true_delta_stays_below_the_stated_one_and_not_far(variance, shift, delta):
    stated = float(epsilon_of(Fraction(shift**2, 2 * variance), delta))
    assert true_delta(stated, variance, shift) <= delta
    not_far = 0.85 if delta <= Fraction(1, 10**6) else 0.63
    assert true_delta(not_far * stated, variance, shift) > delta


def test_a_conversion_that_is_too_small_is_found_out():
    stated = float(epsilon_of(Fraction(1, 8), Fraction(1, 10**6)))
    assert true_delta(0.85 * stated, 4, 1) > 1e-6


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rho", [Fraction(1, 10**6), Fraction(1, 100), Fraction(1), Fraction(50)])
def test_it_is_never_worse_than_the_simple_formula(rho, delta):
    simple = float(rho) + 2 * math.sqrt(float(rho) * math.log(1 / delta))
    assert float(epsilon_of(rho, delta)) <= simple
    assert epsilon_of(rho, delta) <= epsilon_of(rho * Fraction(101, 100), delta)


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2**20), Fraction(1, 10), Fraction(1), Fraction(7), Fraction(1024)])
def test_rho_is_the_largest_that_fits(epsilon, delta):
    rho = rho_for(epsilon, delta)
    assert epsilon_of(rho, delta) <= epsilon
    assert epsilon_of(rho * (1 + Fraction(1, 2**12)), delta) > epsilon or epsilon < Fraction(1, 1000)


def test_any_order_gives_a_bound_and_none_is_better_than_the_one_taken():
    rho, delta = Fraction(1, 10), Fraction(1, 10**6)
    taken = epsilon_of(rho, delta)
    assert all(module._bound(rho, delta, 1 + 1.1**k) >= taken - Fraction(1, 10**9) for k in range(-60, 60))


def test_rounding_is_towards_privacy():
    """A bound that 60 digits put between two units of 1e-12 is the upper one."""
    rho, delta = Fraction(1, 10), Fraction(1, 10**6)
    order = 1 + math.exp(module._best_log_excess(0.1, math.log(1e-6)))
    log = math.log(10**6)
    plain = order * 0.1 + (log + (order - 1) * math.log(1 - 1 / order) - math.log(order)) / (order - 1)
    stated = epsilon_of(rho, delta)
    assert 0 <= float(stated) - plain < 2e-12
    assert stated.denominator <= 10**12


def test_no_noise_asked_costs_nothing_and_bad_deltas_are_refused():
    assert epsilon_of(Fraction(0), Fraction(1, 10)) == 0
    for delta in (Fraction(0), Fraction(1), Fraction(-1), Fraction(1, 10**301)):
        with pytest.raises(InvalidInput, match="delta: got"):
            epsilon_of(Fraction(1), delta)
