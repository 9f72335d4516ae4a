"""The body that is sampled against the differences it must contain, and the sampler against the body."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm.sensitivity.exact_hull import PointDifferences
from dphmm.sensitivity.hull import hull_of
from exactness.case import Case, Vector
from exactness.exact_linear import dot
from exactness.exact_norm import PointHull
from exactness.findings import Findings
from exactness.law import CONSTANT, LAPLACE, Law
from exactness.required_pairs import pitches
from exactness.sampled_law import SampledLaw

_DIRECTIONS = 3
_DIFFERENCES = 3


def check_body(case: Case, findings: Findings) -> None:
    findings.counts["bodies"] += 1
    _symmetric(case, findings)
    _contains_its_differences(case, findings)
    if case.law.kind != CONSTANT:
        _sampler_is_the_law(case, findings)


def _symmetric(case: Case, findings: Findings) -> None:
    hull = case.step.plan.hull
    a, b = hull.facets
    facets = {(tuple(row), int(offset)) for row, offset in zip((0.0 + a).tolist(), b, strict=True)}
    mirrored = {(tuple(0.0 - x for x in row), offset) for row, offset in facets}
    findings.require(facets == mirrored, case.where, "facets without their mirror images")
    identity = [[int(i == j) for j in range(hull.rank)] for i in range(hull.rank)]
    findings.require(case.plain(hull.coordinates @ hull.basis) == identity, case.where, "a basis without an inverse")


def _contains_its_differences(case: Case, findings: Findings) -> None:
    """K' reaches at least as far as K in every direction tried, and as far as it says where it says so."""
    where = case.where
    edges = case.in_force | {(min(j), max(j)) for j in case.plain(case.step.plan.joins)}
    required, body = [case.difference(a, b) for a, b in edges], case.law.body
    probes = _Probes(
        [(u, body.support(u)) for u in _directions(case)], [(v, body.norm(v)) for v in _some_differences(case)]
    )
    least, _ = probes.compared(required)
    findings.require(least >= 1, where, "the body does not contain its differences")
    least, most = probes.compared(_made_from(case, required))
    inflation = most if least >= 1 else math.inf
    findings.require(inflation < math.inf, where, "the body is not the one that was to be made")
    if _is_called_exact(case, required):
        findings.counts["exact bodies"] += 1
        findings.require(inflation == 1, where, f"the body is called exact, is {float(inflation):.6g} times as large")
    if inflation < math.inf:
        findings.inflation.show(Fraction(inflation), where)


def _is_called_exact(case: Case, differences: list[Vector]) -> bool:
    """True where the plan calls its body the least one.

    Laplace noise takes its widths from the hull of the differences: that hull has to be called exact, too.
    """
    hull = case.step.plan.hull
    if case.law.kind != LAPLACE or not any(map(any, differences)):
        return hull.exact
    return hull.exact and hull_of(PointDifferences(np.array(differences, dtype=np.int64)), hull.frame).exact


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


def _made_from(case: Case, differences: list[Vector]) -> list[Vector]:
    """Differences, thickened where flat; for Laplace noise the corners of the l1 body around them, never flat."""
    if case.law.kind != LAPLACE:
        return _thickened(case, differences)
    spread = differences if any(map(any, differences)) else _thickened(case, differences)
    pitch = pitches(case.step.space)
    sensitivity = max(sum(p * abs(x) for p, x in zip(pitch, v, strict=True)) for v in spread)
    return [tuple(math.ceil(sensitivity / p) * int(i == j) for j in range(len(pitch))) for i, p in enumerate(pitch)]


def _thickened(case: Case, differences: list[Vector]) -> list[Vector]:
    """A flat set and a step along every axis: 5 % of the largest half-width."""
    d = len(case.images[0])
    hull = PointHull.of(differences, d)
    if hull.rank == d or case.constant:
        return differences
    pitch = pitches(case.step.space)
    axes = [[int(i == j) for j in range(d)] for i in range(d)]
    widest = max(hull.support(axis) * p for axis, p in zip(axes, pitch, strict=True))
    steps = [max(1, math.ceil(widest / 20 / p)) for p in pitch]
    return [*differences, *(tuple(s * x for x in axis) for s, axis in zip(steps, axes, strict=True))]


def _directions(case: Case) -> list[list[int]]:
    d = len(case.images[0])
    rng = case.rng(0)
    return rng.integers(-50, 51, size=(_DIRECTIONS, d)).tolist()


def _some_differences(case: Case) -> list[Vector]:
    """Differences of planned answers: the vectors whose norms decide degrees and costs."""
    rng = case.rng(1000)
    found = [case.difference(*rng.choice(case.planned, size=2).tolist()) for _ in range(_DIFFERENCES)]
    return [v for v in found if any(v)]


def _sampler_is_the_law(case: Case, findings: Findings) -> None:
    """The sampler's own numbers give every noise tried the exponent of the law, up to one constant."""
    law = case.law
    sampled = SampledLaw(case.step.plan.mechanism._sampler)
    findings.require(sampled.boxes_hold_the_body(), case.where, "a box of the sampler cuts its body")
    constants = set()
    for v in noises(case, law):
        own, exact = sampled.exponent(v), law.exponent(v)
        constants.add(None if own is None or exact is None else own - exact)
    findings.require(len(constants) == 1 and None not in constants, case.where, "the sampler has another law")


def noises(case: Case, law: Law) -> list[Vector]:
    """Vectors of the body's lattice: 0, near, far, and where the loss of a pair is reached."""
    rng = case.rng(2000)
    k = law.body.rank
    inside = [np.zeros(k, dtype=np.int64), *rng.integers(-3, 4, size=(2, k)), rng.integers(-(2**40), 2**40, size=k)]
    found = [tuple(dot(row, y.tolist()) for row in law.body.basis) for y in inside]
    for v in _some_differences(case)[:1]:
        if law.worst(v) is not None:
            found += [tuple(x) for x in law.reached_at(v)]
    return found
