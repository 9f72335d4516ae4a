"""The output of `dphmm plan --details`: a model's states, and a policy's protection, with error and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dphmm.accounting.records import in_short
from dphmm.cli.console import Row, aligned, one_line, reworded
from dphmm.statement.advice import not_advised

if TYPE_CHECKING:
    from dphmm.cli.options import PlanOptions
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace


def details(
    model: MarkovModel,
    policy: PolicyGraph | None,
    space: StateSpace,
    options: PlanOptions,
    choices: Mapping[str, Any],
) -> dict[str, Any]:
    """The facts for JSON, by section: of the model that a file has, and with a policy what that protects.

    Of the options: epsilon, the number of steps that are taken together, and whether every state is listed.
    """
    from dphmm.choose.details import protection_facts
    from dphmm.reconstruction.aggregates import expected_errors
    from dphmm.reconstruction.regions import read_regions
    from dphmm.session.planned_losses import planned_losses
    from dphmm.session.setting import Setting
    from dphmm.statement import parts
    from dphmm.statement.learning import learning_of
    from dphmm.storage.models import model_facts, space_facts, state_list

    assert model.space is not None
    learning = learning_of(model, options.model)
    facts = model_facts(model) | {"learning": None if learning is None else parts.document(learning)}
    document: dict[str, Any] = {"space": space_facts(model.space), "model": facts}
    epsilon = options.epsilon or "1"
    if policy is not None:
        document |= protection_facts(model, policy, space, epsilon, **choices)
        # A refusal has the library's words for options.
        document["warnings"] = [
            reworded(warning) if warning.startswith("refused: ") else warning for warning in document["warnings"]
        ]
        if options.steps is not None:
            setting = Setting.of(model, policy, space, epsilon, **choices)
            document["over_time"] = planned_losses(setting, options.steps)
        if options.by is not None:
            named, people = options.by
            regions = None if named == "blocks" else read_regions(named, space, "--by")
            shares = expected_errors(model, policy, space, epsilon, people, regions, **choices)
            document["shares"] = [
                {"region": share.region, "off": share.standard_error, "why": share.why} for share in shares
            ]
    if options.states:
        document["states"] = state_list(model, space)
    return document


_LABELS = {
    "expected_error": "root mean square error",
    "expected_errors": "root mean square error of each",
    "moves_impossible_for_others": "impossible moves",
    "share_wrong": "labels wrong as released",
    "exposed_states": "exposed states, before any is joined",
}


def lines(document: Mapping[str, Any], space: StateSpace, limited: bool = False) -> list[str]:
    """The facts for people, but for warnings. ``limited``: True if a total is planned for."""
    from dphmm.choose.details import remedy_line

    written: list[str] = []
    for section, facts in document.items():
        if section == "warnings":
            continue
        if section == "remedies":
            remedies = [f"  {remedy_line(remedy, space)}" for remedy in facts]
            if facts and all(remedy["not_advised"] for remedy in facts):
                remedies.append(
                    "  none of it is advised; a smaller epsilon is, with larger cells or a policy of shorter edges"
                )
            for reason in not_advised(0, limited=limited) if facts else ():
                remedies.append(f"  {reason} with any of it: dphmm plan --path-epsilon E --per 1d sets a limit")
            remedies.append("  other distances, cells, totals and numbers of answers: dphmm plan --target-error LENGTH")
            written += ["what would help, tried on the first step", *remedies]
            continue
        if section == "shares":
            off = [(f"  {share['region']}", share["why"] or f"+- {share['off']:.2%}") for share in facts]
            written += ["standard errors of shares, from one answer of each person", *aligned(off)]
            continue
        if section == "states":
            written += ["states", *aligned([_state(state) for state in facts])]
            continue
        unit = document["space"]["answer_unit"]
        if facts.get("learning") is not None and facts["fitted_on_people"] is None:
            facts = {**facts, "fitted_on_people": "not told (learned privately)"}
        shown = {name: fact for name, fact in facts.items() if not (name == "answer_unit" and "answers" in facts)}
        rows = [_row(name, fact, unit) for name, fact in shown.items() if fact != []]
        written += [section.replace("_", " "), *aligned(rows)]
    return written


def _row(name: str, fact: Any, unit: str) -> Row:
    label = _LABELS.get(name, name.replace("_", " "))
    if name == "expected_error":
        return f"  {label}", f"{_shown(fact)} {unit}"
    if name == "moves_impossible_for_others":
        share = "not known" if fact is None else f"{fact:.2%} of people's moves, by a model of all others"
        return f"  {label}", share
    if name == "share_wrong":
        return f"  {label}", f"{fact:.1%}"
    if name == "expected_errors":
        return f"  {label}", ", ".join(_error(mechanism, error, unit) for mechanism, error in fact.items())
    if name == "covered_distance":
        from dphmm.statement.parts import typed
        from dphmm.statement.release import CoveredDistance

        none = "none: the states are no cells of a map"
        return f"  {label}", none if fact is None else typed(fact, CoveredDistance).places
    if name == "epsilon":
        return f"  {label}", in_short(fact)
    return f"  {label}", _shown(fact)


def _error(mechanism: str, error: float | None, unit: str) -> str:
    return f"{mechanism} cannot be used" if error is None else f"{mechanism} {_shown(error)} {unit}"


def _state(state: Mapping[str, Any]) -> Row:
    place = f", at {state['lat']:.6f} {state['lon']:.6f}" if "lat" in state else ""
    said = f"answer {_vector(state['answer'])}{place}{', absorbing' if state['absorbing'] else ''}"
    return f"  {state['number']} {one_line(state['name'])}", said


def _shown(fact: Any) -> str:
    if isinstance(fact, Mapping):
        return ", ".join(f"{name} {_shown(value)}" for name, value in fact.items())
    if isinstance(fact, list):
        if all(isinstance(value, float) for value in fact):
            return _vector(fact)
        return "; ".join(_shown(value) for value in fact)
    if isinstance(fact, bool):
        return "yes" if fact else "no"
    if isinstance(fact, float):
        return f"{fact:.6g}"
    return "none" if fact is None else str(fact)


def _vector(fact: list[float]) -> str:
    return "(" + ", ".join(f"{value:.6g}" for value in fact) + ")"
