"""The losses of mechanisms from their integers, which share no code with what makes and certifies them.

Claims: the loss of a body is found again over every answer of a window, huge numbers do not overflow; a right plan of
noise with weights of its own is acquitted, with every required loss bounded by ε; laws that are wrong in one number are
convicted, with the reason: one unit off where a quotient is tight, shells one unit too steep, and a sampler on another
basis or with other weights than its law. It would fail for an audit in floats, for one that believes the mechanism's
own certificate, or looks at the window and not at the shells.

The audit's own reading of a table: losses from integers, never rounded down.

Claims: two rows lose the log of their largest quotient, as a fraction that is not below it; a table that is wrong in
its integers has a fault and no bound. It would fail for losses in floats, which may be a digit too small.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from audit.small import POLICY, SPACE, everywhere, session
from dphmm.audit import verify
from dphmm.audit.black_box import black_box
from dphmm.audit.law import Law, Table, Weights, _exp_above, _exp_below, _log_above, farthest
from dphmm.mechanisms import DiscreteKNorm, OptimalAdditive, Staircase
from dphmm.mechanisms.base import falling_ratio
from dphmm.mechanisms.optimal import facets_of
from naive_mechanisms import SHAPES, shape


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
@pytest.mark.parametrize("offset", [None, Fraction(0), Fraction(1, 3), Fraction(9, 10)])
def test_enumeration_finds_the_loss_again(epsilon, offset):
    """Over a window of answers the largest ratio is ε·N(v), or ε·⌈N(v)⌉: for norms below 1, at 1, above."""
    hull = dphmm.sensitivity_hull(POLICY, SPACE)
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


FLAT = [name for name in SHAPES if shape(name).rank <= 2]


def with_law(mechanism, law):
    """The mechanism with another law; its certificate is not asked."""
    other = object.__new__(OptimalAdditive)
    other.__dict__.update(mechanism.__dict__, _law=law)
    return other


def test_a_right_plan_is_acquitted():
    verdict = verify(session(3, mechanism="optimal-additive", model=everywhere()))
    assert not verdict.convicted and verdict.loss == 3 and verdict.enumerated > 0
    assert verdict.cost == 6 and "optimal-additive" in verdict.lines[2]


@pytest.mark.parametrize("name", FLAT)
def test_right_weights_have_no_faults(name):
    for epsilon in (2, 100):
        law = Law.of(OptimalAdditive(shape(name), epsilon))
        assert law.faults() == []
        assert law.weights.exponent((0,) * law.rank) == 0.0


def wrong(law):
    weights = list(law.weights)

    def put(place, factor):
        return replace(law, weights=(*weights[:place], int(weights[place] * factor), *weights[place + 1 :]))

    centre, last = len(weights) // 2, len(weights) - 1
    yield put(centre, 3), "required difference"
    yield put(centre + 1, Fraction(1, 30)), "required difference"
    yield put(last, 9), "required difference"
    yield put(0, Fraction(1, 30)), "required difference"
    yield replace(law, tail=law.tail * 30), "required difference"
    yield replace(law, tail=law.tail // 30), "required difference"
    yield replace(law, tail=0), "without weight"
    yield replace(law, ratio=law.ratio - 2**30), "e^-epsilon"
    yield replace(law, ratio=1 << law.bits), "e^-epsilon"
    yield replace(law, points=law.points[1:], weights=law.weights[1:]), "other noises"
    yield replace(law, radius=law.radius + 1), "other noises"


@pytest.mark.parametrize("number", range(11))
def test_a_wrong_law_is_convicted(number):
    made = session(2, mechanism="optimal-additive", model=everywhere())
    plan = made.plan
    law, told = list(wrong(plan.mechanisms[0].law))[number]
    bad = replace(plan, mechanisms=(with_law(plan.mechanisms[0], law),))
    # What beliefs are told would convict some of them too; the law's own integers must.
    assert any(told in finding for finding in Law.of(bad.mechanisms[0]).faults())
    if "other noises" not in told and law.tail and law.ratio < 1 << law.bits:
        verdict = verify(bad, POLICY, SPACE)
        assert verdict.convicted and any(told in finding for finding in verdict.findings)


def test_beliefs_of_another_law_are_noticed(monkeypatch):
    made = session(2, mechanism="optimal-additive", model=everywhere())
    other = made.plan.mechanisms[0].law.log_weights
    monkeypatch.setattr(type(made.plan.mechanisms[0].law), "log_weights", lambda self, y: other(2 * y))
    assert any("another law" in finding for finding in verify(made.plan, POLICY, SPACE).findings)


def test_steps_are_counted_in_whole_ones():
    mechanism = OptimalAdditive(shape("running"), 3)
    weights = Weights.of(mechanism)
    for v in facets_of(shape("running")).within(Fraction(2)).points(2)[::5].tolist():
        assert weights.steps(tuple(v), 20_000) == -(-weights.norm(v) // 1)
    assert weights.steps((4, 1), 10) is None
    steep = replace(weights, near={y: w * (1 if y != (0, 0) else 1000) for y, w in weights.near.items()})
    assert steep.steps((4, 1), 20_000) > 1


def test_a_window_that_is_too_small_convicts_nobody(monkeypatch):
    """The last step of a bound may be reached far out alone: fewer steps are not another loss, more are."""
    law = Law.of(OptimalAdditive(shape("running"), 3))
    v = np.array([4, 1])
    assert law.enumerated(v, 20_000) == law.loss(law.norm(v)) == 3
    for steps, told in ((None, None), (0, None), (1, 3), (2, 6)):
        monkeypatch.setattr(Weights, "steps", lambda self, y, most, steps=steps: steps)
        assert law.enumerated(v, 20_000) == told


def test_points_of_a_window_are_found_by_trying_a_box():
    for name in FLAT:
        mechanism = OptimalAdditive(shape(name), 2)
        weights = Weights.of(mechanism)
        found = {y for y in weights._box(weights.radius) if weights.norm(y) <= weights.radius}
        assert found == set(map(tuple, mechanism.law.points.tolist()))


def test_the_bound_of_the_exponential_is_above_it():
    for epsilon in (Fraction(1, 2**20), Fraction(1, 2), Fraction(3), Fraction(100)):
        upper, more = _exp_above(epsilon), _exp_above(epsilon / 2) ** 2
        assert upper < 1 and abs(upper - more) < upper * Fraction(1, 2**60)
        assert float(upper) == pytest.approx(np.exp(-float(epsilon)), rel=1e-14)


def test_one_unit_too_little_is_seen_wherever_it_is_too_little():
    """Every weight of two bodies, one unit less or more: convicted if and only if a quotient in fractions says so."""
    convicted = 0
    for name in ("interval", "flat slanted"):
        made = OptimalAdditive(shape(name), 3)
        law = made.law
        near = dict(zip(map(tuple, law.points.tolist()), law.weights, strict=True))
        weights = Law.of(made).weights
        for place, y in enumerate(near):
            for unit in (-1, 1):
                other = (*law.weights[:place], law.weights[place] + unit, *law.weights[place + 1 :])
                found = Law.of(with_law(made, replace(law, weights=other))).faults()
                around = [tuple(a + b for a, b in zip(y, v, strict=True)) for v in weights._body]
                here, q = Fraction(near[y] + unit), law.q
                wrong = any(here * q > weights.weight(z) or weights.weight(z) * q > here for z in around)
                assert bool(found) == wrong
                convicted += wrong
    assert convicted > 0


def test_a_ratio_one_unit_below_e_to_minus_epsilon_is_seen():
    """The bracket is a few units wide, so a handful of units below its upper end is too steep for certain."""
    for epsilon in (1, Fraction(5, 3), 12, 100):
        made = OptimalAdditive(shape("interval"), epsilon)
        ratio, bits = falling_ratio(Fraction(epsilon))
        assert (made.law.ratio, made.law.bits) == (ratio, bits) and Law.of(made).faults() == []
        steep = Law.of(with_law(made, replace(made.law, ratio=ratio - 2**10))).faults()
        assert any("e^-epsilon" in fault for fault in steep)


def test_a_sampler_that_is_not_its_law_s_is_seen_in_samples():
    """A stretched basis gives answers of one state alone; the right sampler is acquitted of the same draws."""
    made, bits = OptimalAdditive(shape("square"), 1), dphmm.ReplayBits(4)
    v = np.array([1, 1])

    def two(mechanism):
        return (lambda n: mechanism.noise(n, bits).astype(float)), (
            lambda n: (v + mechanism.noise(n, bits)).astype(float)
        )

    assert not black_box([two(made)], 1, draws=40_000).convicted
    wrong = OptimalAdditive(shape("square"), 1)
    wrong._sampler._basis = np.array([[2, 0], [0, 2]])
    wrong._sampler.__dict__.pop("_vectors", None)
    assert black_box([two(wrong)], 1, draws=40_000).convicted


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
