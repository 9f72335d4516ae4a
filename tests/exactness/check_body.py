"""The body that is sampled against the differences it must contain, and the sampler against the body."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from exactness.case import Case, Vector
from exactness.exact_linear import dot
from exactness.exact_norm import PointHull
from exactness.findings import Findings
from exactness.law import CONSTANT, LAPLACE, Law
from exactness.required_pairs import components, pitches
from exactness.sampled_law import SampledLaw

_DIRECTIONS = 3
_DIFFERENCES = 3


def check_body(case: Case, findings: Findings) -> None:
    for number, law in enumerate(case.laws):
        findings.counts["bodies"] += 1
        _symmetric(case, findings, number)
        _contains_its_differences(case, findings, number)
        if law.kind != CONSTANT:
            _sampler_is_the_law(case, findings, number)


def _symmetric(case: Case, findings: Findings, number: int) -> None:
    hull = case.step.plan.hulls[number]
    a, b = hull.facets
    facets = {(tuple(row), int(offset)) for row, offset in zip((0.0 + a).tolist(), b, strict=True)}
    mirrored = {(tuple(0.0 - x for x in row), offset) for row, offset in facets}
    findings.require(facets == mirrored, case.where, "facets without their mirror images")
    identity = [[int(i == j) for j in range(hull.rank)] for i in range(hull.rank)]
    findings.require(case.plain(hull.coordinates @ hull.basis) == identity, case.where, "a basis without an inverse")


def _contains_its_differences(case: Case, findings: Findings, number: int) -> None:
    """K' reaches at least as far as K in every direction tried, and as far as it says where it says so."""
    where = case.where
    required, intended = _differences(case, number)
    body = case.laws[number].body
    probes = _Probes(
        [(u, body.support(u)) for u in _directions(case, number)],
        [(v, body.norm(v)) for v in _some_differences(case, number)],
    )
    least, _ = probes.compared(required)
    findings.require(least >= 1, where, f"body {number} does not contain its differences")
    inflations = (probes.compared(points) for points in intended)
    inflation = min((most for least, most in inflations if least >= 1), default=math.inf)
    findings.require(inflation < math.inf, where, f"body {number} is not the one that was to be made")
    if case.step.plan.hulls[number].exact:
        findings.counts["exact bodies"] += 1
        findings.require(
            inflation == 1, where, f"body {number} is called exact, is {float(inflation):.6g} times as large"
        )
    if inflation < math.inf:
        findings.inflation.show(Fraction(inflation), where)


@dataclass(frozen=True)
class _Probes:
    """Directions with a body's support, and vectors with its norm."""

    supports: list[tuple[list[int], Fraction]]
    norms: list[tuple[Vector, Fraction | None]]

    def compared(self, points: list[Vector]) -> tuple[Fraction | float, Fraction | float]:
        """The least and the largest factor by which the body reaches farther than the hull of ± some points."""
        hull = PointHull.of(points, len(self.supports[0][0]))
        ratios = [_ratio(reach, Fraction(hull.support(u))) for u, reach in self.supports]
        ratios += [_ratio(hull.norm(v), norm) for v, norm in self.norms]
        return min(ratios), max(ratios)


def _ratio(one: Fraction | None, other: Fraction | None) -> Fraction | float:
    """one / other, where None is infinity and 0 / 0 as well as infinity / infinity are 1."""
    if one == other:
        return Fraction(1)
    if one is None or other == 0:
        return math.inf
    return Fraction(0) if other is None else Fraction(one) / other


def _differences(case: Case, number: int) -> tuple[list[Vector], list[list[Vector]]]:
    """The differences that a body must contain; and the sets whose hull it may be: a component may use the body of all
    states instead of its own."""
    edges = case.in_force | {(min(j), max(j)) for j in case.plain(case.step.plan.joins)}
    everything = [case.difference(a, b) for a, b in edges]
    if case.step.query.options["scope"] == "global":
        return everything, [_made_from(case, everything, number)]
    part = components(case.planned, edges)
    own = [case.difference(a, b) for a, b in edges if case.body_of[part[a]] == number]
    return own, [_made_from(case, own, number), _made_from(case, everything, number)]


def _made_from(case: Case, differences: list[Vector], number: int) -> list[Vector]:
    """Differences, thickened where flat; for Laplace noise the corners of the l1 body around them, never flat."""
    if case.laws[number].kind != LAPLACE:
        return _thickened(case, differences)
    spread = differences if any(map(any, differences)) else _thickened(case, differences)
    pitch = pitches(case.step.space)
    sensitivity = max(sum(p * abs(x) for p, x in zip(pitch, v, strict=True)) for v in spread)
    return [tuple(math.ceil(sensitivity / p) * int(i == j) for j in range(len(pitch))) for i, p in enumerate(pitch)]


def _thickened(case: Case, differences: list[Vector]) -> list[Vector]:
    """A flat set and a step along every axis: the thickness asked for, or 5 % of the largest half-width."""
    options, d = case.step.query.options, len(case.images[0])
    hull = PointHull.of(differences, d)
    if hull.rank == d or options["flat"] == "allow" or case.constant:
        return differences
    pitch = pitches(case.step.space)
    axes = [[int(i == j) for j in range(d)] for i in range(d)]
    widest = max(hull.support(axis) * p for axis, p in zip(axes, pitch, strict=True))
    wanted = options.get("thickness", widest / 20)
    steps = [max(1, math.ceil(wanted / p)) for p in pitch]
    return [*differences, *(tuple(s * x for x in axis) for s, axis in zip(steps, axes, strict=True))]


def _directions(case: Case, number: int) -> list[list[int]]:
    d = len(case.images[0])
    rng = case.rng(number)
    return rng.integers(-50, 51, size=(_DIRECTIONS, d)).tolist()


def _some_differences(case: Case, number: int) -> list[Vector]:
    """Differences of planned answers: the vectors whose norms decide degrees and costs."""
    rng = case.rng(1000 + number)
    found = [case.difference(*rng.choice(case.planned, size=2).tolist()) for _ in range(_DIFFERENCES)]
    return [v for v in found if any(v)]


def _sampler_is_the_law(case: Case, findings: Findings, number: int) -> None:
    """The sampler's own numbers give every noise tried the exponent of the law, up to one constant."""
    law = case.laws[number]
    sampled = SampledLaw(case.step.plan.mechanisms[number]._sampler)
    findings.require(sampled.boxes_hold_the_body(), case.where, f"a box of sampler {number} cuts its body")
    constants = set()
    for v in noises(case, law, number):
        own, exact = sampled.exponent(v), law.exponent(v)
        constants.add(None if own is None or exact is None else own - exact)
    findings.require(len(constants) == 1 and None not in constants, case.where, f"sampler {number} has another law")


def noises(case: Case, law: Law, number: int) -> list[Vector]:
    """Vectors of the body's lattice: 0, near, far, and where the loss of a pair is reached."""
    rng = case.rng(2000 + number)
    k = law.body.rank
    inside = [np.zeros(k, dtype=np.int64), *rng.integers(-3, 4, size=(2, k)), rng.integers(-(2**40), 2**40, size=k)]
    found = [tuple(dot(row, y.tolist()) for row in law.body.basis) for y in inside]
    for v in _some_differences(case, number)[:1]:
        if law.worst(v) is not None:
            found += [tuple(x) for x in law.reached_at(v)]
    return found
