"""The protection of a policy at a model's first step: hull, degrees, errors, costs; and the preview of a release.

All of it is public data, and who has rows at which steps. Nothing is drawn, stored or spent.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np

from dphmm.accounting.event import theorem_6_3
from dphmm.accounting.records import in_short
from dphmm.choose.lonely import (
    LonelyCost,
    Moved,
    cells_alone,
    expected_error,
    lonely_cost,
    moved_states,
    off_within,
    only_merged,
    shown_error,
)
from dphmm.choose.remedies import Remedy, remedies
from dphmm.errors import DphmmError, InvalidInput, Refused
from dphmm.markov.model import MarkovModel
from dphmm.markov.stochastic import percent
from dphmm.mechanisms import NoiseMechanism, chosen_kind
from dphmm.mechanisms.registry import KINDS
from dphmm.policy._radius import Radius
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.release.batch import Batch
from dphmm.sensitivity import exposed_states, sensitivity_hull
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.session.options import Options, ReleaseChoices
from dphmm.session.plan import StepPlan
from dphmm.session.setting import Setting
from dphmm.statement.advice import not_advised
from dphmm.statement.learning import learning_of
from dphmm.statement.parts import Part, document
from dphmm.statement.release import CoveredDistance, ReleaseStatement
from dphmm.statement.sentences import rendered
from dphmm.statement.warnings import plan_warnings, trapped_belief
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import Trajectories
from dphmm.states.visit_table import VisitTable
from dphmm.types import Exact

#: Corners are listed up to here.
_MOST_CORNERS = 12
#: What answers lonely states as their nearest state at all steps.
REMEDY = "dphmm policy ... --merge-lonely"


def protection_facts(
    model: MarkovModel, policy: PolicyGraph, space: StateSpace, epsilon: Exact, **choices: Unpack[ReleaseChoices]
) -> dict[str, Any]:
    """The protection of a policy at a model's first step, its error and cost: the output of `dphmm plan --details`.

    ``choices`` are those of a release: constraint, mechanism, start, protection. Nothing is drawn or
    spent. The sections are "policy", "first_step", "remedies" (changes tried for less error) and "warnings"; if
    the first release is not refused also "release" (errors are root mean squares in answer units; for labels the error
    rate) and "promise"; if there are any, "merged_states" and "lonely_states".

    Raises InvalidInput for choices that no release takes. A refused release is no error: a warning says why.

    >>> import dphmm
    >>> space = dphmm.StateSpace.categories(["a", "b", "c"])
    >>> model = dphmm.MarkovModel([1, 0, 0], [[0.5, 0.5, 0], [0, 0.5, 0.5], [0.5, 0, 0.5]], space=space)
    >>> found = protection_facts(model, dphmm.policy.complete(3), space, 1)
    >>> found["first_step"]["possible_states"], found["release"]["degree_of_protection"]["least"]
    (2, 2)
    """
    setting = Setting.of(model, policy, space, epsilon, **choices)
    options, position = setting.options, setting.first(setting.model.example_origin)
    plan_set = position.constrain(options.constraint)
    within = Constraint.surrogated(position.prior.support, plan_set, space)  # which states are planned, no more
    document: dict[str, Any] = {"policy": _policy(policy, space), "first_step": _step(policy, space, within)}
    first = document["first_step"]
    rank, dimension = first.get("hull_rank", 0), first.get("dimension", 0)
    warnings = [f"flat: the hull has rank {rank} of {dimension}"] if 0 < rank < dimension else []
    plan: StepPlan | None = None
    try:
        plan = setting.plan(position)
    except Refused as refusal:
        exposed = first["exposed_states"]
        warnings += [f"{exposed} states are exposed by the policy at the first step"] if exposed else []
        warnings.append(f"refused: {refusal}")
    else:
        document |= {
            "release": _release(plan, space, options, model),
            "promise": _promise(plan, options, CoveredDistance.of([policy], space)),
        }
        warnings += [*plan_warnings(plan, options), *trapped_belief(model, options)]
        known = off_within(space)
        error = math.hypot(expected_error(plan, space, model), known)
        warnings += [f"not advised: {reason}" for reason in not_advised(options.epsilon, error, known)]
    lonely, costs = lonely_sections(model, policy, space, options, plan)
    document |= lonely
    warnings += costs
    document["remedies"] = [remedy_facts(remedy) for remedy in remedies(model, policy, space, options, plan)]
    return document | {"warnings": warnings}


def remedy_facts(remedy: Remedy) -> dict[str, Any]:
    """A remedy as a section of --json."""
    facts = {name: getattr(remedy, name) for name in ("cause", "remedy", "before", "after")}
    return {**facts, "not_advised": list(remedy.not_advised)}


def remedy_line(facts: Mapping[str, Any], space: StateSpace) -> str:
    """A remedy in a line: the cause, what to do, and the error before and after."""

    def shown(error: float | None) -> str:
        if error is None:
            return "refused"
        return (
            f"{error:.1%} wrong" if space.has_labels or "--answers labels" in facts["remedy"] else f"{error:.4g}{unit}"
        )

    unit = " m" if space.on_map else ""
    words = f"{facts['cause']}; {facts['remedy']}: {shown(facts['before'])} -> {shown(facts['after'])}"
    return words + "".join(f"; not advised: {reason}" for reason in facts["not_advised"])


def _policy(policy: PolicyGraph, space: StateSpace) -> dict[str, Any]:

    return {
        "kind": policy.kind,
        "covered_distance": facts_of(CoveredDistance.of([policy], space)),
        "states_without_neighbour": int((~policy.has_neighbor(None)).sum()),
        "sha256": policy.digest,
        "notes": list(policy.notes),
    }


def _step(policy: PolicyGraph, space: StateSpace, within: Constraint) -> dict[str, Any]:

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


def _release(plan: StepPlan, space: StateSpace, options: Options, model: MarkovModel) -> dict[str, Any]:

    degrees = plan.degrees()[plan.constraint.support]
    facts: dict[str, Any] = {
        "joined": len(plan.joins),
        "answered_as_nearest": len(plan.merged),
    }
    if not space.has_labels:
        facts |= _hull(plan.hull)
    facts["degree_of_protection"] = {
        "least": int(degrees.min()),
        "median": float(np.median(degrees)),
        "most": int(degrees.max()),
    }
    facts["auto" if options.mechanism == "auto" else "mechanism"] = plan.mechanism_name
    facts["expected_error"] = shown_error(plan, space, model)
    if space.has_labels:
        facts["share_wrong"] = facts.pop("expected_error")
    elif not plan.constant:
        bias = facts["expected_error"] ** 2 - plan.expected_error
        facts["expected_errors"] = _errors(plan.hull, options, max(0.0, bias))
        if options.made_from == "answers":
            facts["expected_errors"][plan.mechanism_name] = facts["expected_error"]
    facts |= {"epsilon": str(plan.epsilon), "cost": float(plan.cost)}
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
    """
    errors: dict[str, Any] = {}
    for name, kind in KINDS.items():
        if issubclass(kind, NoiseMechanism) and kind.choosable:
            try:
                errors[name] = math.sqrt(kind.for_hull(hull, options.epsilon).expected_error + bias)
            except (InvalidInput, DphmmError):
                errors[name] = None
    return errors


def _promise(plan: StepPlan, options: Options, covered: CoveredDistance | None) -> dict[str, Any]:
    cost, says = theorem_6_3([plan.cost]), ReleaseStatement.says
    facts = {"epsilon": in_short(options.epsilon), "constraint": str(options.constraint), "whole": {"varies": []}}
    words = {name: " ".join(rendered(says[name], facts)) for name in ("edges", "lonely", "constraint")}
    return {
        "epsilon": f"{words['edges']} {words['lonely']}",
        **({} if covered is None else {"places": covered.sentence(epsilon=options.epsilon)}),
        "cost": f"{cost.statement} ({cost.citation})",
        "noise": chosen_kind(options.mechanism).words.noise,
        "constraint": words["constraint"],
    }


def facts_of(part: Part | None) -> dict[str, Any] | None:
    """A part of a statement for JSON; None without one."""
    return None if part is None else document(part)


def lonely_sections(
    model: MarkovModel, policy: PolicyGraph, space: StateSpace, options: Options, plan: StepPlan | None
) -> tuple[dict[str, Any], list[str]]:
    """The sections "merged_states" and "lonely_states", each where there are any, and warnings."""
    assert model.space is not None
    sections: dict[str, Any] = {}
    warnings = []
    if len(space.merges):
        by_policy = len(space.merges) > len(model.space.merges)
        facts = moved_facts(moved_states(space, space.merges, model))
        if plan is not None:
            facts["hidden_only_by_merging"] = only_merged(plan, space)
        pairs = _pairs_of_policy(space, model.space)
        facts["meaning"] = [moved_words(moved_states(space, pairs, model), policy, space)] if by_policy else []
        if len(model.space.merges):
            facts["meaning"].append(rare_words(moved_states(space, model.space.merges, model), space))
        sections["merged_states"] = facts
    cost = lonely_cost(model, policy, space, options)
    if cost is not None:
        sections["lonely_states"] = cost_facts(cost)
        warnings.append(cost_words(cost, policy, space))
    return sections, warnings


def _pairs_of_policy(space: StateSpace, fitted: StateSpace) -> Any:
    return space.merges[~np.isin(space.merges[:, 0], fitted.merges[:, 0])]


def fit_lines(model: MarkovModel) -> tuple[list[str], dict[str, Any]]:
    """For fit: cells that are merged and cells without a neighbouring cell, in sentences and for JSON."""
    space = model.space
    assert space is not None
    lines: list[str] = []
    facts: dict[str, Any] = {}
    if len(space.merges):
        moved = moved_states(space, space.merges, model)
        lines.append(rare_words(moved, space))
        facts["merged"] = moved_facts(moved)
    alone = cells_alone(space)
    if len(alone):
        share = (
            float(model.summed(model.initial)[alone].sum()) if model.provenance.get("initial") == "occupancy" else None
        )
        lines.append(
            f"{_count(len(alone), space)}{_share(share)} without a neighbouring cell: a policy "
            f"whose radius reaches no further raises the noise for everyone because of them; remedy: {REMEDY}, or "
            f"{'a larger N in --merge-rare' if len(space.merges) else '--merge-rare N'} or --all-cells with "
            "--smoothing 1 here"
        )
        facts["cells_without_neighbour"] = len(alone)
    return lines, facts


def cost_words(cost: LonelyCost, policy: PolicyGraph, space: StateSpace) -> str:
    """The cost of lonely states in words, with the remedy if it lowers the error."""
    who = f"{_count(cost.moved.states, space)} without a neighbour{_share(cost.moved.share)}"
    if cost.joined is None or cost.merged is None:
        refused = "joined" if cost.joined is None else "merged"
        return f"{who}; with them {refused} to a nearest one, the first release is refused; remedy: {_other(refused)}"
    raised = f"from {length_words(cost.merged, space)} to {length_words(cost.joined, space)}"
    if cost.helps:
        noun = "cell" if space.on_map else "state"
        return (
            f"{who} would raise the error {raised} if they were joined to a partner; a release answers them as their "
            f"nearest {noun} instead, which {REMEDY} does for all steps alike"
        )
    less = f"{length_words(cost.joined, space)} to {length_words(cost.merged, space)}"
    return f"{who} are joined to a nearest partner; answering them as that would raise the error from {less}"


def _other(refused: str) -> str:
    return REMEDY if refused == "joined" else "leave them joined, as without --merge-lonely"


def moved_words(moved: Moved, policy: PolicyGraph, space: StateSpace) -> str:
    """The number of lonely states that are merged, and their answers, in words."""
    nothing = f"nothing within {length_words(float(policy.r), space)}" if isinstance(policy, Radius) else "no neighbour"
    have = "has" if moved.states == 1 else "have"
    return f"{_count(moved.states, space)}{_share(moved.share)} {have} {nothing}; {_released(moved, space)}"


def rare_words(moved: Moved, space: StateSpace) -> str:
    """The number of cells that a fit has merged, and their answers, in words."""
    return f"{_count(moved.states, space)}{_share(moved.share)} rarely visited; {_released(moved, space)}"


def _released(moved: Moved, space: StateSpace) -> str:
    noun = "cell" if space.on_map else "state"
    near, far = length_words(moved.nearest, space), length_words(moved.farthest, space)
    away = near if near == far else f"{near} to {far}"
    they = "it is released as its" if moved.states == 1 else "they are released as their"
    return f"{they} nearest {noun}, {away} away"


def moved_facts(moved: Moved) -> dict[str, Any]:
    """For JSON; distances in answer units."""
    return {
        "states": moved.states,
        "share_of_visits": moved.share,
        "nearest_partner": moved.nearest,
        "farthest_partner": moved.farthest,
    }


def cost_facts(cost: LonelyCost) -> dict[str, Any]:
    """For JSON; errors are root mean squares in answer units."""
    errors = {"error_joined": cost.joined, "error_merged": cost.merged}
    return {**moved_facts(cost.moved), **errors, "remedy": REMEDY if cost.helps else None}


def _count(states: int, space: StateSpace) -> str:
    return f"{states} {'cell' if space.on_map else 'state'}{'' if states == 1 else 's'}"


def _share(share: float | None) -> str:
    return "" if share is None else f" ({percent(share)} of visits)"


def length_words(value: float, space: StateSpace) -> str:
    """A distance between answers, in metres or kilometres on a map."""
    if not space.on_map:
        return f"{value:.3g}"
    return f"{value / 1000:.3g} km" if value >= 1000 else f"{value:.3g} m"


#: The plans of so many steps are told.
_STEPS = 3


def release_preview(batch: Batch, rows: Trajectories | VisitTable) -> dict[str, Any]:
    """The preview of a release of these rows: the output of `dphmm release --dry-run`.

    It has the most rows that may be released, their subjects, the plans of the first steps (as far as they do not
    depend on answers) and the largest sum of epsilons. The states of the rows change nothing of it, and no history of a
    ledger is read.

    Parameters
    ----------
    rows : the people's rows, by step.

    Raises
    ------
    InvalidInput : rows that a release refuses.
    Refused : a first step that a release refuses.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.release.batch import Batch
    >>> space = dphmm.StateSpace.categories(["a", "b"])
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.5, 0.5], [0.5, 0.5]], space=space)
    >>> rows = dphmm.states.Trajectories.from_labels(["ann", "ann", "ben"], state=["a", "b", "a"])
    >>> told = release_preview(Batch(model, dphmm.policy.complete(2), space, 1), rows)
    >>> told["would_release"], told["subjects"], told["largest_epsilon_sum"]
    (3, 2, '2')
    """
    setting, schedule = batch.setting, batch.setting.schedule
    asked, most_each = batch.most_asked(rows), batch.subjects.epsilons[1]
    left_out = None if schedule is None else batch.steps_of(rows) - sum(asked)
    return {
        "would_release": sum(asked),
        "not_asked": left_out,
        "schedule": None if schedule is None else str(schedule),
        "subjects": len(asked),
        "answer_unit": setting.space.unit,
        "plans": [_plan_document(step, plan, setting) for step, plan in enumerate(first_plans(setting), start=1)],
        "covered_distance": facts_of(CoveredDistance.of(batch.subjects.policies, setting.space)),
        "largest_epsilon_sum": str(max(asked) * most_each),
        "learning": facts_of(learning_of(setting.model)),
        "sequence": None if batch.caps.promise is None else batch.caps.promise.sentence(),
    }


def first_plans(setting: Setting) -> list[StepPlan]:
    """The plans of the first steps, as far as they do not depend on what is released."""
    position = setting.first(setting.model.example_origin)
    plans: list[StepPlan] = []
    for _ in range(_STEPS):
        plan = setting.plan(position)
        plans.append(plan)
        if not setting.has_public_plans:
            break
        position = position.predict(setting.model, position.prior)
    return plans


def _plan_document(step: int, plan: StepPlan, setting: Setting) -> dict[str, Any]:
    return {
        "step": step,
        "hash": plan.hash,
        "plan_states": int(plan.constraint.plan.sum()),
        "possible_states": int(plan.constraint.support.sum()),
        "mechanism": plan.mechanism_name,
        "expected_error": shown_error(plan, setting.space, setting.model),
        "epsilon": str(plan.epsilon),
        "cost": str(plan.cost),
        "joined": len(plan.joins),
        "constant": plan.constant,
    }
