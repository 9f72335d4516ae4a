"""account.md by enumeration: releases and publications about the same people, on all pairs of neighbouring data.

Two steps, two states, randomised response as releases, counts with geometric noise as publications. It could fail where
a publication is counted once although a replaced person leaves and enters, where units of one person or a delta are
left out, or where the bound is far from what is lost.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

from dphmm.accounting import Publication, totals
from dphmm.accounting.event import epsilon_of
from dphmm.accounting.publication import delta_of_group, total_present, total_replaced
from dphmm.errors import InvalidInput

STEPS = 2
PATHS = list(product((0, 1), repeat=STEPS))
EPSILON = Fraction(1, 2)
#: Answers of a noisy count, wide enough that both ends are far from all true counts.
ANSWERS = range(-3, 7)
PERSON = "all records of one person"


def answer_law(state, epsilon=EPSILON):
    """Randomised response about one step."""
    kept = math.exp(epsilon) / (1 + math.exp(epsilon))
    return [kept if z == state else 1 - kept for z in (0, 1)]


def histogram(people):
    """How many people are in each state at each step; people who are not there have no path."""
    counts = np.zeros((STEPS, 2), dtype=int)
    for path in people:
        if path is not None:
            counts[np.arange(STEPS), list(path)] += 1
    return counts.ravel()


@cache
def noise(rate):
    """log P of integer noise, P(z) proportional to exp(-|z| rate), up to a constant."""
    return {z: -abs(z) * float(rate) for z in range(-20, 21)}


def loss(mine, other, people, publications, released=True):
    """The worst log-ratio over all outcomes, for one person with either path beside other people."""
    one, two = histogram([*people, mine]), histogram([*people, other])
    worst = 0.0
    for z in product((0, 1), repeat=STEPS) if released else [()]:
        lost = sum(
            math.log(answer_law(a)[answer] / answer_law(b)[answer]) for a, b, answer in zip(mine, other, z, strict=True)
        ) if released else 0.0  # fmt: skip
        for rate in publications:
            # Cells have noise of their own, so the worst outcome is the worst of each cell.
            law = noise(rate)
            for a, b in zip(one.tolist(), two.tolist(), strict=True):
                lost += max(law[z - a] - law[z - b] for z in ANSWERS)
        worst = max(worst, lost)
    return worst


@pytest.mark.parametrize("relation", ["add-remove", "replace"])
@pytest.mark.parametrize("rates", [(), (Fraction(1, 4),), (Fraction(1, 4), Fraction(1, 3))])
def test_replacing_a_path_loses_the_total_and_no_more(relation, rates):
    # Adding a person changes a histogram by a count at each step, replacing one by two.
    changed = STEPS if relation == "add-remove" else 2 * STEPS
    told = [
        Publication(f"p{n}", "query", "", PERSON, relation, epsilon=rate * changed, counts=True)
        for n, rate in enumerate(rates)
    ]
    found = totals(STEPS * EPSILON, told)
    lost = [
        loss(mine, other, [kept], rates) for mine in PATHS for other in PATHS for kept in (None, *PATHS)
    ]  # fmt: skip
    assert max(lost) == pytest.approx(float(found.replaced.value), abs=1e-9)
    assert found.replaced_delta == 0
    there = [loss(mine, None, [kept], rates, released=False) for mine in PATHS for kept in PATHS]
    if relation == "add-remove":
        assert max(there) == pytest.approx(float(found.present.value), abs=1e-9)
    else:
        assert found.present.value == 0
        assert ("2 publications for replacing, have" in found.present.statement) == (len(rates) == 2)


def test_units_smaller_than_a_person_count_as_often_as_one_has_them():
    """A record is one step: adding one changes one count."""
    rate = Fraction(1, 4)
    told = Publication("q", "query", "", "one record", "add-remove", units=STEPS, epsilon=rate)
    lost = max(loss(mine, other, [], [rate], released=False) for mine in PATHS for other in PATHS)
    assert lost == pytest.approx(float(total_replaced([told]).epsilon), abs=1e-9)
    there = max(loss(mine, None, [], [rate], released=False) for mine in PATHS)
    assert there == pytest.approx(float(total_present([told]).epsilon), abs=1e-9)
    unlimited = Publication("q", "query", "", "one record", "add-remove", units=None, epsilon=rate)
    assert total_replaced([unlimited]).epsilon == math.inf


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_delta_of_so_many_steps_is_reached(steps):
    """Laws of which each is as far from the next as (epsilon, delta) lets it be, on one outcome of two."""
    epsilon, delta = Fraction(1, 3), Fraction(1, 100)
    chain = [0.5]
    for _ in range(steps):
        chain.append((chain[-1] - float(delta)) / math.exp(epsilon))
    for a, b in pairwise(chain):
        for p, q in ((a, b), (b, a), (1 - a, 1 - b), (1 - b, 1 - a)):
            assert p <= math.exp(epsilon) * q + float(delta) + 1e-12
    whole = delta_of_group(epsilon, delta, steps)
    assert chain[0] - math.exp(steps * epsilon) * chain[-1] == pytest.approx(float(whole), abs=1e-12)
    exact = sum(math.exp(i * epsilon) for i in range(steps)) * float(delta)
    assert float(whole) == pytest.approx(exact, rel=1e-12)
    told = Publication("q", "query", "", PERSON, "add-remove", epsilon=epsilon, delta=delta)
    assert total_replaced([told]) == (2 * epsilon, delta_of_group(epsilon, delta, 2))
    assert total_present([told]) == (epsilon, delta)


def test_delta_is_rounded_up():
    for epsilon in (Fraction(1, 7), Fraction(5), Fraction(99, 10)):
        found = delta_of_group(epsilon, Fraction(1, 10**9), 2)
        from decimal import Decimal, localcontext

        with localcontext() as context:
            context.prec = 80
            true = (Decimal(epsilon.numerator) / Decimal(epsilon.denominator)).exp() + 1
            assert found >= Fraction(true) * Fraction(1, 10**9)
            assert found <= Fraction(true) * Fraction(1, 10**9) * (1 + Fraction(1, 10**30))
    assert delta_of_group(Fraction(800), Fraction(1, 10**300), 3) == 1


def _log_law(weights):
    return weights - math.log(np.exp(weights).sum())


def divergence(shift, order, variance):
    """The Renyi divergence of discrete Gaussians, coordinates (d,) apart, by summing them up."""
    found = 0.0
    for distance in shift:
        z = np.arange(-100, 101)
        p, q = (_log_law(-((z - centre) ** 2) / (2 * variance)) for centre in (distance, 0))
        found += math.log(np.exp(order * p + (1 - order) * q).sum()) / (order - 1)
    return found


@pytest.mark.parametrize("order", [2, 3, 5])
def test_rho_counts_four_times_and_of_counts_twice(order):
    """Contributions of squared length 1: counts in two cells, or a number of either sign in one."""
    variance = 4.0
    rho = Fraction(1, 8)
    counts = max(
        divergence(np.subtract(one, other), order, variance) for one in ((1, 0), (0, 1)) for other in ((1, 0), (0, 1))
    )
    signed = max(divergence((one - other,), order, variance) for one in (1, -1) for other in (1, -1))
    alone = divergence((1,), order, variance)
    assert alone == pytest.approx(order * float(rho), rel=1e-9)
    for lost, is_counts in ((counts, True), (signed, False)):
        told = Publication("q", "fit", "", PERSON, "add-remove", rho=rho, counts=is_counts)
        assert lost == pytest.approx(order * float(told.of_person(True).rho), rel=1e-9)
        assert told.of_person(False).rho == rho


@pytest.mark.parametrize("units", [2, 3])
def test_rho_of_several_units_is_squared(units):
    told = Publication("q", "fit", "", "one record", "replace", units=units, rho=Fraction(1, 8))
    lost = divergence((units,), 2, 4.0)
    assert lost == pytest.approx(2 * float(told.of_person(True).rho), rel=1e-9)


def test_rho_is_converted_once_and_deltas_add():
    rho, delta = Fraction(1, 8), Fraction(1, 10**6)
    noisy = [Publication(f"p{n}", "fit", "", PERSON, "replace", rho=rho) for n in range(2)]
    other = Publication("o", "query", "", PERSON, "replace", epsilon=Fraction(1), delta=Fraction(1, 10**7))
    found = totals(Fraction(3), [*noisy, other], delta)
    assert found.replaced.value == 3 + 1 + epsilon_of(2 * rho, delta)
    assert found.replaced_delta == delta + Fraction(1, 10**7)
    assert "for a delta of 1.1e-06" in found.replaced.statement
    assert "fixed beforehand" in found.replaced.statement
    with pytest.raises(InvalidInput, match=r"^delta: "):
        totals(Fraction(0), noisy, Fraction(2))


def test_nothing_bounds_what_promises_nothing():
    found = totals(Fraction(3), [Publication("open", "fit", "", PERSON)])
    assert (found.replaced.value, found.present.value) == (math.inf, math.inf)
    assert 'no bound, because of "open"' in found.replaced.statement


@pytest.mark.parametrize(
    "wrong",
    [
        {"epsilon": Fraction(1)}, {"relation": "replace"}, {"relation": "other", "epsilon": Fraction(1)}, {"units": 0},
        {"units": True}, {"name": ""}, {"kind": "release"}, {"relation": "replace", "epsilon": -1},
        {"relation": "replace", "delta": Fraction(1, 2)}, {"relation": "replace", "epsilon": 0.5},
        {"relation": "replace", "epsilon": Fraction(1), "delta": Fraction(1)},
        {"relation": "replace", "epsilon": Fraction(1), "rho": Fraction(1)},
    ],
)  # fmt: skip
def test_what_is_no_publication_is_refused(wrong):
    given = {"name": "q", "kind": "fit", "statement": "", "unit": PERSON, **wrong}
    with pytest.raises(InvalidInput):
        Publication(**given)


@pytest.mark.parametrize("epsilons", [(Fraction(1, 2), Fraction(1, 3)), (Fraction(1), Fraction(1))])
def test_two_members_lose_what_each_loses_and_no_more(epsilons):
    """Any pair of paths of both members at once: factors multiply, and the sum is reached where both change."""
    worst = {}
    for mine, other in product(product(PATHS, repeat=2), repeat=2):
        changed = sum(a != b for a, b in zip(mine, other, strict=True))
        lost = 0.0
        for z in product((0, 1), repeat=2 * STEPS):
            ratio = 0.0
            for member, epsilon in enumerate(epsilons):
                for t in range(STEPS):
                    answer = z[member * STEPS + t]
                    laws = answer_law(mine[member][t], epsilon), answer_law(other[member][t], epsilon)
                    ratio += math.log(laws[0][answer] / laws[1][answer])
            lost = max(lost, ratio)
        worst[changed] = max(worst.get(changed, 0.0), lost)
    assert worst[2] == pytest.approx(float(STEPS * sum(epsilons)), abs=1e-9)
    assert worst[1] == pytest.approx(float(STEPS * max(epsilons)), abs=1e-9)
    assert worst[0] == 0.0
