"""The likelihoods that beliefs are made of, and what an observer's odds do, against the exact law."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from exactness.case import Case, Vector
from exactness.check_body import noises
from exactness.findings import Findings

#: Of a difference of logs; beside it, the rounding of doubles of that size.
_ABSOLUTE = 1e-9
_RELATIVE = 4e-15
_WIDEST = 2**61


def check_likelihood(case: Case, findings: Findings) -> None:
    for z in _outputs(case):
        _agrees(case, findings, z)
    _losses_are_reached(case, findings)
    _odds(case, findings)


def _outputs(case: Case) -> list[Vector]:
    """The answer that was given, and others near to and far from the answers of some states."""
    rng = case.rng(3000)
    found = [tuple(int(x) for x in case.step.z)]
    image = case.images[int(rng.choice(case.planned))]
    found += [tuple(a + b for a, b in zip(image, v, strict=True)) for v in noises(case, case.law)]
    return [z for z in found if max(map(abs, z)) < _WIDEST]


def _exponents(case: Case, z: Vector) -> list[Fraction | None]:
    found = {image: case.law.exponent([a - b for a, b in zip(z, image, strict=True)]) for image in set(case.images)}
    return [found[image] for image in case.images]


def _agrees(case: Case, findings: Findings, z: Vector) -> None:
    """log-likelihoods of two states differ by what the law says; -inf exactly where the law has 0."""
    logs = case.step.plan.log_likelihood(np.array(z, dtype=np.int64)).tolist()
    first: tuple[float, Fraction] | None = None
    for log, exponent in zip(logs, _exponents(case, z), strict=True):
        findings.require((log == -math.inf) == (exponent is None), case.where, f"z = {z} is possible, or not")
        if exponent is None or log == -math.inf:
            continue
        first = (log, exponent) if first is None else first
        base_log, base = first
        slack = _ABSOLUTE + _RELATIVE * float(max(exponent, base))
        difference = (log - base_log) + float(exponent - base)
        findings.require(abs(difference) <= slack, case.where, f"likelihoods at z = {z} are off by {difference:.3g}")


def _losses_are_reached(case: Case, findings: Findings) -> None:
    """The worst log-ratio of a pair is one that a lattice point has: the bound on it is no over-estimate."""
    for _, a, b in case.required[:2]:
        worst = case.worst(a, b)
        if worst is None:
            continue
        further, nearer = case.law.reached_at(case.difference(a, b))
        exponents = [case.law.exponent(x) for x in (further, nearer)]
        reached = None not in exponents and exponents[0] - exponents[1] == worst
        findings.require(reached, case.where, f"the loss {worst} of ({a}, {b}) is not reached")


def _odds(case: Case, findings: Findings) -> None:
    """From prior to posterior the odds of two joined states move by at most eps, and by what the law says."""
    prior, posterior = case.step.prior.log_probability, case.step.posterior.log_probability
    exponents = _exponents(case, tuple(int(x) for x in case.step.z))
    for a, b in itertools.combinations(case.possible, 2):
        if exponents[a] is None or exponents[b] is None:
            continue
        known = all(math.isfinite(x) for x in (*prior[[a, b]], *posterior[[a, b]]))
        findings.require(known, case.where, f"a belief has lost one of the possible states ({a}, {b})")
        if not known:
            continue
        moved = (posterior[a] - posterior[b]) - (prior[a] - prior[b])
        size = max(abs(x) for x in (*prior[[a, b]], *posterior[[a, b]], float(exponents[a]), float(exponents[b])))
        slack = _ABSOLUTE + _RELATIVE * size
        off = abs(moved - float(exponents[b] - exponents[a]))
        findings.require(off <= slack, case.where, f"the odds of ({a}, {b}) are off by {off:.3g}")
        if (a, b) in case.edges:
            bound = float(case.epsilon) + slack
            findings.require(abs(moved) <= bound, case.where, f"the odds of the edge ({a}, {b}) move by {moved:.6g}")
