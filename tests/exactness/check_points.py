"""Probabilities point by point, for bodies so small that every lattice point can be visited.

The exponents are fractions; the probabilities are decimals of 50 digits, so that a ratio is compared with e^eps itself
and not with a float near it. The window is every point with eps·(N - 1) <= 40: what lies
beyond has less than 1e-12 of the mass.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

import dphmm
from dphmm.session.answer import answer_under
from exactness.case import Case, Vector
from exactness.exact_linear import dot
from exactness.findings import Findings
from exactness.law import CONSTANT, Law
from exactness.sampled_law import SampledLaw

DIGITS = 50
_REACH = 40
_MOST_POINTS = 3000
#: What rounding may add to a ratio of decimals.
_SLACK = Decimal(10) ** (8 - DIGITS)


def check_points(case: Case, findings: Findings) -> None:
    _draws_are_the_samplers(case, findings)
    law = case.law
    points = None if law.kind == CONSTANT else _window(law)
    if points is None:
        return
    findings.counts["enumerated bodies"] += 1
    findings.counts["enumerated points"] += len(points)
    with localcontext() as context:
        context.prec = DIGITS
        _normalised(case, findings, law, points)
        _levels_are_bracketed(case, findings)
    _sampler_is_the_law_everywhere(case, findings, law, points)


def _draws_are_the_samplers(case: Case, findings: Findings) -> None:
    """A release is the answer of the surrogate and what the plain path of the sampler draws from the same bits."""
    plan = case.step.plan
    for s, image in enumerate(case.images):
        mechanism = plan.mechanism
        if mechanism.name != CONSTANT:
            bits = case.instance.bits + s
            noise = mechanism._sampler.draw_plainly(1, dphmm.ReplayBits(bits))[0].tolist()
            drawn = tuple(answer_under(plan, np.array([s]), dphmm.ReplayBits(bits))[0][0].tolist())
            expected = tuple(a + b for a, b in zip(image, noise, strict=True))
            findings.require(drawn == expected, case.where, f"state {s} is not answered by its sampler")


def decimal(x: Fraction) -> Decimal:
    return Decimal(x.numerator) / Decimal(x.denominator)


def _window(law: Law) -> list[Vector] | None:
    """All lattice points with eps·(N - 1) <= 40; None where they are too many."""
    radius = Fraction(_REACH) / law.epsilon + 1
    d = len(law.body.basis)
    axes = [[int(i == j) for j in range(d)] for i in range(d)]
    half = [math.floor(radius * law.body.support(axis)) for axis in axes]
    if math.prod(2 * h + 1 for h in half) > _MOST_POINTS:
        return None
    box = itertools.product(*(range(-h, h + 1) for h in half))
    norms = ((v, law.body.norm(v)) for v in box)
    return [v for v, norm in norms if norm is not None and norm <= radius]


def _normalised(case: Case, findings: Findings, law: Law, points: list[Vector]) -> None:
    """P(z | a) <= e^eps P(z | b) at every point of the window, for every required pair; and the mass is what beliefs
    use."""
    weights = {v: (-decimal(law.exponent(v))).exp() for v in points}
    total = sum(weights.values())
    stated = case.step.plan.mechanism.log_normaliser
    off = abs(float(total.ln()) - stated)
    findings.require(off <= 1e-9, case.where, f"the normaliser of the body is off by {off:.3g}")
    allowed = decimal(case.epsilon).exp() * (1 + _SLACK)
    for v in {case.difference(a, b) for _, a, b in case.required}:
        for x, weight in weights.items():
            other = weights.get(tuple(p + q for p, q in zip(x, v, strict=True)))
            if other is not None and not weight / total <= allowed * (other / total):
                findings.require(False, case.where, f"answers {v} apart: a point {weight / other:.12g} times as likely")
    findings.require(True, case.where, "")


def _levels_are_bracketed(case: Case, findings: Findings) -> None:
    """The sampler's table holds the cumulative weights exp(-rate·j)·|Box_j| between its bounds, over all levels."""
    levels = case.step.plan.mechanism._sampler._levels
    factor = (-decimal(levels.rate)).exp()
    masses, power = [], Decimal(1)
    table = levels.table
    for j in range(max(len(table.low), math.ceil(130 / levels.rate))):
        masses.append(power * math.prod(2 * h + 1 for h in levels.half_widths(j)))
        power *= factor
    total, so_far = sum(masses), Decimal(0)
    for j, (low, high) in enumerate(zip(table.low.tolist(), table.high.tolist(), strict=True)):
        so_far += masses[j]
        within = Decimal(low) <= so_far / total <= Decimal(high) + _SLACK and high - low < 1e-9
        findings.require(within, case.where, f"level {j} of the sampler is outside its bounds")


def _sampler_is_the_law_everywhere(case: Case, findings: Findings, law: Law, points: list[Vector]) -> None:
    """At every point: the exponent of the law, and a place in each box that may propose it."""
    sampled = SampledLaw(case.step.plan.mechanism._sampler)
    start = sampled.exponent(points[len(points) // 2])
    zero = law.exponent(points[len(points) // 2])
    same = all(sampled.exponent(v) - start == law.exponent(v) - zero for v in points)
    findings.require(same, case.where, "the sampler has another law")
    held = all(_in_its_box(sampled, v) for v in points)
    findings.require(held, case.where, "a point of the body is outside the box of its level")


def _in_its_box(sampled: SampledLaw, v: Vector) -> bool:
    x = sampled.coordinates_of(v)
    assert x is not None
    level = sampled.least_level([abs(dot(row, x)) for row in sampled.sampler._body.normals])
    return all(abs(c) <= h for c, h in zip(x, sampled.sampler._levels.half_widths(level), strict=True))
