"""The promise of one release: every required pair, somebody to hide with for everybody, and the price."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np

from exactness.case import Case
from exactness.findings import Findings
from exactness.law import facet_body


def check_promise(case: Case, findings: Findings) -> None:
    _public_sets(case, findings)
    _required_pairs(case, findings)
    if not case.constant:
        _everybody_hides(case, findings)
        _partners(case, findings)
    _cost(case, findings)


def _public_sets(case: Case, findings: Findings) -> None:
    """Support, plan set and surrogates: what they must be, from the model and the definitions."""
    plan, where = case.step.plan, case.where
    support, plan_set = plan.constraint.support, np.isin(np.arange(len(case.support)), case.whole)
    findings.require(np.array_equal(support, case.support), where, "the support is not what the history leaves")
    findings.require(
        bool(plan_set.any() and not (plan_set & ~case.support).any()), where, "a plan set outside the support"
    )
    findings.require(case.plain(plan.constraint.surrogate) == case.surrogate, where, "another surrogate map")
    findings.require([tuple(row) for row in case.plain(plan.image)] == case.images, where, "another answer for a state")
    findings.require(plan.mechanism.epsilon == case.epsilon, where, "another epsilon")
    findings.require(case.law.body == facet_body(plan.hull), where, "a plan shows another body than it samples")
    if case.step.query.options["constraint"] != "support":
        delta = float(case.step.query.options["constraint"].partition("=")[2])
        mass = math.fsum(case.step.prior.probability[plan_set])
        findings.require(mass >= 1 - delta - 1e-9, where, "a plan set with too little of the prior")


def _required_pairs(case: Case, findings: Findings) -> None:
    for kind, a, b in case.required:
        findings.counts["pairs"] += 1
        worst = case.worst(a, b)
        loss = math.inf if worst is None else worst
        findings.require(
            loss <= case.epsilon, case.where, f"the {kind} pair ({a}, {b}) loses {loss}, not {case.epsilon}"
        )
        if kind == "surrogate":
            findings.require(loss == 0, case.where, f"state {a} is told from its surrogate")
        if worst is not None:
            _norm_within_one(case, findings, kind, a, b)
            findings.ratio.show(worst / case.epsilon, f"{case.where}, {kind} pair ({a}, {b})")


def _norm_within_one(case: Case, findings: Findings, kind: str, a: int, b: int) -> None:
    if case.law.body.rank:
        norm = case.law.body.norm(case.difference(a, b))
        findings.require(norm is not None and norm <= 1, case.where, f"the {kind} pair ({a}, {b}) has norm {norm}")


def _everybody_hides(case: Case, findings: Findings) -> None:
    """Every possible state has *another* possible state that it cannot be told from beyond eps."""
    for s in case.possible:
        losses = [case.worst(s, o) for o in case.possible if o != s]
        hidden = any(loss is not None and loss <= case.epsilon for loss in losses)
        findings.require(hidden, case.where, f"state {s} is exposed")


def _partners(case: Case, findings: Findings) -> None:
    """A plan state without an edge has one fixed partner, another possible state; joins are between plan states."""
    plan = case.step.plan
    joined = {s for edge in case.in_force_before for s in edge}
    listed = {int(a): int(b) for a, b in plan.partners}
    findings.require(set(listed) == set(case.whole) - joined, case.where, "partners for other states than those alone")
    for a, b in case.merged.items():
        findings.require(b in case.planned and a not in case.planned, case.where, f"state {a} merged into {b}")
        findings.require(case.worst(a, b) == 0, case.where, f"states {a} and {b} are merged and can be told apart")
        own = dict(case.fixed_earlier).get(a, listed.get(a))
        findings.require(own == b, case.where, f"state {a} merged into {b}, and its partner is {own}")
    for a, b in listed.items():
        findings.require(a != b and b in case.possible, case.where, f"state {a} has the partner {b}")
    for a, b in case.plain(plan.joins):
        findings.require(a != b and {a, b} <= set(case.planned), case.where, f"joined {a} to {b}")


def _cost(case: Case, findings: Findings) -> None:
    """The price is the largest loss of any two plan states, over all of them."""
    losses = [case.worst(a, b) for a, b in itertools.combinations(case.planned, 2)]
    largest = math.inf if None in losses else max(losses, default=Fraction(0))
    findings.require(case.step.plan.cost == largest, case.where, f"costs {case.step.plan.cost}, loses {largest}")
    promised = Fraction(0) if case.constant else case.epsilon
    findings.require(case.step.epsilon == promised, case.where, f"charged {case.step.epsilon}, not {promised}")
