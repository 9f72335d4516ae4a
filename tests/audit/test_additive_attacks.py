"""Wrong noise with weights of its own: one unit off where a quotient is tight, shells one unit too steep, and a sampler
on another basis or with other weights than its law; right ones are acquitted.

It would fail for an audit in floats, and for one that believes the law where only samples can tell.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np

import dphmm
from audit.test_additive import with_law
from dphmm.audit.black_box import black_box
from dphmm.audit.law import Law
from dphmm.mechanisms import OptimalAdditive
from dphmm.mechanisms.additive_law import falling_ratio
from naive_mechanisms import shape


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
