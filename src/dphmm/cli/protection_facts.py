"""What a policy protects at the first step of a model: hull, degrees of protection, errors, costs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import DphmmError, InvalidInput, Refused

if TYPE_CHECKING:
    from dphmm.evaluation.remedies import Remedy
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.constraint import Constraint
    from dphmm.policy.graph import PolicyGraph
    from dphmm.sensitivity.hull import SensitivityHull
    from dphmm.session.options import Options
    from dphmm.session.plan import Plan
    from dphmm.states.space import StateSpace

#: Corners are listed up to here.
_MOST_CORNERS = 12


def protection_facts(
    model: MarkovModel, policy: PolicyGraph, space: StateSpace, epsilon: str, choices: Mapping[str, Any]
) -> dict[str, Any]:
    """Sections "policy", "first_step", if released "release" and "promise", "remedies", and "warnings"."""
    from dphmm.cli.lonely import lonely_sections
    from dphmm.cli.outcomes import reworded
    from dphmm.cli.public_warnings import plan_warnings, trapped_belief
    from dphmm.evaluation.remedies import remedies
    from dphmm.policy.constraint import Constraint
    from dphmm.session.setting import Setting

    chosen = {"start": model.start, **choices}
    setting = Setting.of(model, policy, space, epsilon, **chosen)
    options, position = setting.options, setting.first()
    plan_set = position.plan_set(options)
    within = Constraint.surrogated(position.prior.support, plan_set, space)  # which states are planned, no more
    document: dict[str, Any] = {"policy": _policy(policy, space), "first_step": _step(policy, space, within)}
    warnings = _warnings(document["first_step"], options)
    plan: Plan | None = None
    try:
        plan = setting.plan(position)
    except Refused as refusal:
        exposed = document["first_step"]["exposed_states"]
        warnings += [f"{exposed} states are exposed by the policy at the first step"] if exposed else []
        warnings.append(f"refused: {reworded(str(refusal))}")
    else:
        document |= {
            "release": _release(plan, space, options, model),
            "promise": _promise(plan, options, document["policy"]["covered_distance"]),
        }
        warnings += [*plan_warnings(plan, options), *trapped_belief(model, options)]
    lonely, costs = lonely_sections(model, policy, space, options, plan)
    document |= lonely
    warnings += costs
    document["remedies"] = [remedy_facts(one) for one in remedies(model, policy, space, options, plan)]
    return document | {"warnings": warnings}


def remedy_facts(remedy: Remedy) -> dict[str, Any]:
    """A remedy as a section of --json."""
    return {name: getattr(remedy, name) for name in ("cause", "remedy", "before", "after")}


def remedy_line(facts: Mapping[str, Any], space: StateSpace) -> str:
    """A remedy in a line: the cause, what to do, and the error before and after."""

    def shown(error: float | None) -> str:
        if error is None:
            return "refused"
        return (
            f"{error:.1%} wrong" if space.has_labels or "--answers labels" in facts["remedy"] else f"{error:.4g}{unit}"
        )

    unit = " m" if space.on_map else ""
    return f"{facts['cause']}; {facts['remedy']}: {shown(facts['before'])} -> {shown(facts['after'])}"


def _policy(policy: PolicyGraph, space: StateSpace) -> dict[str, Any]:
    from dphmm.storage.promises import covered_facts

    return {
        "kind": policy.kind,
        "covered_distance": covered_facts(policy, space),
        "states_without_neighbour": int((~policy.has_neighbor(None)).sum()),
        "sha256": policy.digest,
        "notes": list(policy.notes),
    }


def _step(policy: PolicyGraph, space: StateSpace, within: Constraint) -> dict[str, Any]:
    from dphmm.sensitivity import exposed_states, sensitivity_hull

    if space.has_labels:
        alone = len(policy.isolated(within))
        states = {"possible_states": int(within.support.sum()), "plan_states": int(within.plan.sum())}
        return {**states, "exposed_states": alone}
    hull = sensitivity_hull(policy, space, within)
    return {
        "possible_states": int(within.support.sum()),
        "plan_states": int(within.plan.sum()),
        "exposed_states": len(exposed_states(policy, space, within)),
        "hull_rank": hull.rank,
        "dimension": hull.dimension,
    }


def _warnings(step: Mapping[str, Any], options: Options) -> list[str]:
    said = []
    if 0 < step.get("hull_rank", 0) < step["dimension"]:
        said.append(f"flat: the hull has rank {step['hull_rank']} of {step['dimension']} (--flat {options.flat})")
    return said


def _release(plan: Plan, space: StateSpace, options: Options, model: MarkovModel) -> dict[str, Any]:
    from dphmm.evaluation.lonely import shown_error

    hulls = {hull.digest: hull for hull in plan.hulls}
    degrees = plan.degrees()[plan.constraint.support]
    facts: dict[str, Any] = {
        "bodies": len(plan.hulls),
        "joined": len(plan.joins),
        "answered_as_nearest": len(plan.merged),
    }
    if len(hulls) == 1 and not space.has_labels:
        facts |= _hull(plan.hulls[0])
    facts["degree_of_protection"] = {
        "least": int(degrees.min()),
        "median": float(np.median(degrees)),
        "most": int(degrees.max()),
    }
    facts["auto" if options.mechanism == "auto" else "mechanism"] = plan.mechanism
    facts["expected_error"] = shown_error(plan, space, model)
    if space.has_labels:
        facts["share_wrong"] = facts.pop("expected_error")
    elif len(hulls) == 1 and not plan.constant:
        bias = facts["expected_error"] ** 2 - plan.expected_error
        facts["expected_errors"] = _errors(plan.hulls[0], options, max(0.0, bias))
        if options.made_from == "answers":
            facts["expected_errors"][plan.mechanism] = facts["expected_error"]
    facts |= {"epsilon": str(plan.epsilon), "cost": None if plan.cost == math.inf else float(plan.cost)}
    facts |= {"constant": plan.constant, "plan": plan.hash}
    return facts


def _hull(hull: SensitivityHull) -> dict[str, Any]:
    corners = hull.hull_vertices
    listed = corners is not None and len(corners) <= _MOST_CORNERS and hull.rank > 0
    return {
        "rank": hull.rank,
        "volume": hull.volume,
        "vertices": [[float(x) for x in corner] for corner in hull.vertices] if listed else [],
        "facets": 2 * len(hull.normals),
    }


def _errors(hull: SensitivityHull, options: Options, bias: float) -> dict[str, Any]:
    """Root mean square error of every mechanism on this hull, answer units; null where it cannot be used.

    ``bias`` is the mean square distance of merged states to their partners, which comes to each.
    One that takes seconds to make only where it was asked for.
    """
    from dphmm.mechanisms import MECHANISMS, LatticeMechanism, mechanism

    errors: dict[str, Any] = {}
    for name, kind in MECHANISMS.items():
        if issubclass(kind, LatticeMechanism) and not (kind.choosable and (kind.quick or options.mechanism == name)):
            continue
        try:
            error = math.sqrt(mechanism(name, hull, options.epsilon).expected_error + bias)
        except (InvalidInput, DphmmError):
            error = None
        errors[name if kind.exact else f"{name} (not for release)"] = error
    return errors


def _promise(plan: Plan, options: Options, covered: dict[str, Any] | None) -> dict[str, Any]:
    from dphmm.accounting.composition import theorem_6_3
    from dphmm.accounting.records import shown
    from dphmm.storage.promises import (
        LONELY_PROMISE,
        constraint_words,
        cost_unbounded_because,
        covered_distance_of,
        edge_promise,
        scope_words,
    )

    cost = theorem_6_3([plan.cost])
    because = f"unbounded: {cost_unbounded_because(options)}" if plan.cost == math.inf else cost.statement
    places = covered_distance_of(covered, options.epsilon)
    return {
        "epsilon": f"{edge_promise(shown(options.epsilon))} {LONELY_PROMISE}",
        **({} if places is None else {"places": places.meaning}),
        "cost": f"{because} ({cost.citation})",
        "scope": scope_words(options),
        "constraint": constraint_words(options),
    }
