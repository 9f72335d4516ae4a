"""Lonely states on the command line: what they cost, and --merge-lonely, which answers them as their nearest state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dphmm.cli.options import F, loaded_policy
from dphmm.errors import InvalidInput, Unprotectable

if TYPE_CHECKING:
    from dphmm.evaluation.lonely import LonelyCost, Moved
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.session.options import Options
    from dphmm.session.plan import Plan
    from dphmm.states.space import StateSpace

REMEDY = "dphmm policy ... --merge-lonely"


class Considered(NamedTuple):
    """The policy to write, the space that it is about, and what to say of its lonely states."""

    policy: PolicyGraph
    space: StateSpace
    notes: list[str]
    warnings: list[str]
    facts: dict[str, Any]


def merging(command: F) -> F:
    """--merge-lonely and --scope."""
    scope = click.option(
        "--scope",
        metavar="WORD",
        default="global",
        show_default=True,
        help="Which states are lonely: those that nothing hides (global), or, for releases with --scope component or "
        "--mechanism optimal-table, all without a neighbour (component).",
    )
    merge = click.option(
        "--merge-lonely",
        is_flag=True,
        help="Answer every lonely state as its nearest other state, instead of joining it, which widens the hull.",
    )
    return merge(scope(command))


def unmerged_policy(path: str, model: MarkovModel) -> PolicyGraph:
    """A policy file in which no lonely states are merged."""
    policy, space = loaded_policy(path, model)
    if model.space is None or space.digest != model.space.digest:
        came = f"{path}, in which lonely states are merged"
        raise InvalidInput("POLICY", came, "policies made without --merge-lonely; give it to their union")
    return policy


def considered(policy: PolicyGraph, model: MarkovModel, given: Mapping[str, Any]) -> Considered:
    """The policy with its lonely states merged, if that was asked for; else as it is, and what they cost."""
    from dphmm._checks import one_of
    from dphmm.evaluation.lonely import lonely_cost
    from dphmm.sensitivity.merging import SCOPES
    from dphmm.session.options import Options

    assert model.space is not None
    one_of(given["scope"], SCOPES, "--scope")
    if given["merge_lonely"]:
        return _merged(policy, model, given["scope"])
    if given["scope"] != "global":
        raise InvalidInput("--scope", given["scope"], "--merge-lonely with it; a release has a --scope of its own")
    alone = int((~policy.has_neighbor(None)).sum())
    if not alone:
        return Considered(policy, model.space, [], [], {})
    options = Options.checked("1", dimension=model.space.dimension, start=model.start)
    cost = lonely_cost(model, policy, model.space, options)
    warning = (
        f"{alone} of {policy.n_states} states have no neighbour: a release answers each of them that nothing else "
        "hides as its nearest state, or joins it to that, which raises the noise for everyone, whichever errs less"
    )
    if cost is None:
        return Considered(policy, model.space, [], [warning], {})
    warnings = [warning, f"at epsilon 1, {cost_words(cost, policy, model.space)}"]
    return Considered(policy, model.space, [], warnings, {"lonely": cost_facts(cost)})


def _merged(policy: PolicyGraph, model: MarkovModel, scope: str) -> Considered:
    from dphmm.evaluation.lonely import moved_states
    from dphmm.sensitivity.merging import merge_lonely

    assert model.space is not None
    try:
        found = merge_lonely(policy, model.space, scope)
    except Unprotectable as error:
        raise InvalidInput("--merge-lonely", f"a policy with too few other states ({error})", "none") from None
    if not len(found.pairs):
        return Considered(policy, model.space, ["no lonely states: nothing to merge"], [], {"merged": None})
    moved = moved_states(found.space, found.pairs, model)
    notes = [moved_words(moved, policy, model.space)]
    return Considered(found.policy, found.space, notes, [], {"merged": moved_facts(moved)})


def lonely_sections(
    model: MarkovModel, policy: PolicyGraph, space: StateSpace, options: Options, plan: Plan | None
) -> tuple[dict[str, Any], list[str]]:
    """For inspect: the sections "merged_states" and "lonely_states", each where there are any, and warnings."""
    from dphmm.evaluation.lonely import lonely_cost, moved_states, only_merged

    assert model.space is not None
    sections: dict[str, Any] = {}
    warnings = []
    if len(space.merges):
        by_policy = len(space.merges) > len(model.space.merges)
        facts = moved_facts(moved_states(space, space.merges, model))
        if plan is not None:
            facts["hidden_only_by_merging"] = only_merged(plan, space)
        own = _pairs_of_policy(space, model.space)
        facts["meaning"] = [moved_words(moved_states(space, own, model), policy, space)] if by_policy else []
        if len(model.space.merges):
            facts["meaning"].append(rare_words(moved_states(space, model.space.merges, model), space))
        sections["merged_states"] = facts
    cost = lonely_cost(model, policy, space, options)
    if cost is not None:
        sections["lonely_states"] = cost_facts(cost)
        warnings.append(cost_words(cost, policy, space))
    return sections, warnings


def _pairs_of_policy(space: StateSpace, fitted: StateSpace) -> Any:
    import numpy as np

    return space.merges[~np.isin(space.merges[:, 0], fitted.merges[:, 0])]


def fit_lines(model: MarkovModel) -> tuple[list[str], dict[str, Any]]:
    """For fit: cells that are merged and cells without a neighbouring cell, in sentences and for JSON."""
    from dphmm.evaluation.lonely import cells_alone, moved_states

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
        lines.append(
            f"{_count(len(alone), space)}{_share(_share_of(model, alone))} without a neighbouring cell: a policy "
            f"whose radius reaches no further raises the noise for everyone because of them; remedy: {REMEDY}, or "
            f"{'a larger N in --merge-rare' if len(space.merges) else '--merge-rare N'} or --all-cells with "
            "--smoothing 1 here"
        )
        facts["cells_without_neighbour"] = len(alone)
    return lines, facts


def _share_of(model: MarkovModel, states: Any) -> float | None:
    return float(model.initial[states].sum()) if model.provenance.get("initial") == "occupancy" else None


def cost_words(cost: LonelyCost, policy: PolicyGraph, space: StateSpace) -> str:
    """What lonely states cost, and the remedy where it is one."""
    who = f"{_count(cost.moved.states, space)} without a neighbour{_share(cost.moved.share)}"
    if cost.joined is None or cost.merged is None:
        refused = "joined" if cost.joined is None else "merged"
        return f"{who}; with them {refused} to a nearest one, the first release is refused; remedy: {_other(refused)}"
    raised = f"from {length_words(cost.merged, space)} to {length_words(cost.joined, space)}"
    if cost.helps:
        one = "cell" if space.on_map else "state"
        return (
            f"{who} would raise the error {raised} if they were joined to a partner; a release answers them as their "
            f"nearest {one} instead, which {REMEDY} does for all steps alike"
        )
    less = f"{length_words(cost.joined, space)} to {length_words(cost.merged, space)}"
    return f"{who} are joined to a nearest partner; answering them as that would raise the error from {less}"


def _other(refused: str) -> str:
    return REMEDY if refused == "joined" else "leave them joined, as without --merge-lonely"


def moved_words(moved: Moved, policy: PolicyGraph, space: StateSpace) -> str:
    """What became of lonely states that are merged."""
    from dphmm.policy._radius import Radius

    nothing = f"nothing within {length_words(float(policy.r), space)}" if isinstance(policy, Radius) else "no neighbour"
    have = "has" if moved.states == 1 else "have"
    return f"{_count(moved.states, space)}{_share(moved.share)} {have} {nothing}; {_released(moved, space)}"


def rare_words(moved: Moved, space: StateSpace) -> str:
    """What became of cells that a fit has merged."""
    return f"{_count(moved.states, space)}{_share(moved.share)} rarely visited; {_released(moved, space)}"


def _released(moved: Moved, space: StateSpace) -> str:
    one = "cell" if space.on_map else "state"
    near, far = length_words(moved.nearest, space), length_words(moved.farthest, space)
    away = near if near == far else f"{near} to {far}"
    return f"{'it is' if moved.states == 1 else 'they are'} released as {_their(moved)} nearest {one}, {away} away"


def _their(moved: Moved) -> str:
    return "its" if moved.states == 1 else "their"


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
    return "" if share is None else f" ({100 * share:.2g} % of visits)"


def length_words(value: float, space: StateSpace) -> str:
    """A distance between answers, in metres or kilometres on a map."""
    if not space.on_map:
        return f"{value:.3g}"
    return f"{value / 1000:.3g} km" if value >= 1000 else f"{value:.3g} m"
