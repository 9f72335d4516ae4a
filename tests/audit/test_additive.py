"""The audit of noise with weights of its own, which shares no code with what makes and certifies them.

Claims: a right plan is acquitted, with every required loss bounded by ε; laws that are wrong in one number are
convicted, with the reason. It would fail for an audit that believes the mechanism's own certificate, or looks at the
window and not at the shells.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from audit.small import POLICY, SPACE, everywhere, session
from dphmm.audit import verify
from dphmm.audit.law import Law, Weights, _exp_above
from dphmm.mechanisms import OptimalAdditive
from dphmm.mechanisms.optimal import facets_of
from naive_mechanisms import SHAPES, shape

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
