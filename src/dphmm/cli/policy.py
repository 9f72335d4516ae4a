"""dphmm policy: which states must not be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, print_json
from dphmm.cli.lonely import considered, length_words, merging, unmerged_policy
from dphmm.cli.options import CONTEXT, F, force, loaded_model, messages, new_output, output
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace


@click.group("policy", context_settings=CONTEXT)
def policy() -> None:
    """Write a policy: a graph whose neighbouring states must not be told apart.

    A release keeps its epsilon between neighbours. A state that ends up without a neighbour at some step is
    joined to another one, so that no state is ever alone.
    """


def _common(command: F) -> F:
    model = click.argument("model", metavar="MODEL")
    return model(output("policy.json")(merging(force(messages(command)))))


@policy.command("complete", context_settings=CONTEXT)
@_common
def complete(model: str, **given: Any) -> None:
    """Every two states are neighbours."""
    from dphmm.policy import complete as build

    states, _ = loaded_model(model)
    _save(build(states.n_states), states, given, [model])


@policy.command("categorical", context_settings=CONTEXT)
@_common
@click.option("--labels", required=True, metavar="FILE", help="Table of state names and labels (.csv, .parquet).")
def categorical(model: str, labels: str, **given: Any) -> None:
    """States with the same label are neighbours."""
    from dphmm.cli.answers import labels_by_state
    from dphmm.policy import categorical as build

    states, space = loaded_model(model)
    _save(build(labels_by_state(labels, space)), states, given, [model, labels])


@policy.command("radius", context_settings=CONTEXT)
@_common
@click.option("--covers", metavar="LENGTH", help="On a map: hide all places up to so far apart: 680m, 1km.")
@click.option("--radius", metavar="LENGTH", help="Instead: join cells whose centres are so near; else answer units.")
@click.option("--open", "is_open", is_flag=True, help="Leave out pairs at exactly this distance.")
def radius(model: str, covers: str | None, radius: str | None, is_open: bool, **given: Any) -> None:
    """States whose answers lie within a distance are neighbours.

    Answers are the centres of cells, and people are at places: --covers takes the distance between places, and the
    smallest radius that hides all of them up to it, wherever they lie in their cells.
    """
    from dphmm.cli.outcomes import named
    from dphmm.policy import radius as build

    _one_distance(covers, radius, is_open)
    states, space = loaded_model(model)
    try:
        if radius is not None:
            graph = build(space, _distance(radius, space), closed=not is_open)
        else:
            graph = build(space, covers=_covers(str(covers), space))
    except InvalidInput as error:
        raise named(error, {"r": "--radius", "covers": "--covers"}) from None
    _save(graph, states, given, [model], [] if covers is None else _radius_words(graph, space, covers))


def _radius_words(graph: PolicyGraph, space: StateSpace, covers: str) -> list[str]:
    """The radius that a distance takes, and what it would be if no cell were answered as another one."""
    from dphmm.policy import radius as build

    r = graph.describe().get("r")
    if r is None:
        return []
    words = f"radius {length_words(float(Fraction(r)), space)} between centres of cells, the least that covers {covers}"
    if not len(space.merges):
        return [words]
    apart = build(space.unmerged, covers=_covers(covers, space)).describe().get("r", r)
    if Fraction(apart) == Fraction(r):
        return [words]
    less = f"without merged cells {length_words(float(Fraction(apart)), space)} would do, with less noise"
    return [f"{words}: {len(space.merges)} merged cells are answered from farther away; {less}"]


@policy.command("knn", context_settings=CONTEXT)
@_common
@click.option("--k", "k", type=int, required=True, metavar="K", help="How many nearest states each is joined to.")
def knn(model: str, k: int, **given: Any) -> None:
    """Every state and its K nearest others are neighbours."""
    from dphmm.cli.outcomes import named
    from dphmm.policy import knn as build

    states, space = loaded_model(model)
    try:
        graph = build(space, k)
    except InvalidInput as error:
        raise named(error, {"k": "--k"}) from None
    _save(graph, states, given, [model])


@policy.command("transition", context_settings=CONTEXT)
@_common
def transition(model: str, **given: Any) -> None:
    """States that one state can move to are neighbours."""
    from dphmm.policy import transition as build

    states, _ = loaded_model(model)
    _save(build(states), states, given, [model])


@policy.command("edges", context_settings=CONTEXT)
@_common
@click.option(
    "--graph", required=True, metavar="FILE", help=".graphml, .json (node-link) or .csv (two columns of names)."
)
def edges(model: str, graph: str, **given: Any) -> None:
    """The edges of a graph file."""
    from dphmm.policy import from_edge_list, from_graphml, from_node_link

    readers = {".graphml": from_graphml, ".json": from_node_link, ".csv": from_edge_list}
    read = readers.get(Path(graph).suffix.lower())
    if read is None:
        raise InvalidInput("--graph", graph, "a name ending in " + ", ".join(readers))
    states, space = loaded_model(model)
    _save(read(graph, space), states, given, [model, graph])


@policy.command("union", context_settings=CONTEXT)
@click.argument("model", metavar="MODEL")
@click.argument("policies", metavar="POLICY POLICY...", nargs=-1, required=True)
@output("policy.json")
@merging
@force
@messages
def union(model: str, policies: tuple[str, ...], **given: Any) -> None:
    """The edges of several policies of one model."""
    from dphmm.policy import union as build

    if len(policies) < 2:
        raise InvalidInput("POLICY", "one policy", "two or more to unite")
    states, _ = loaded_model(model)
    parts = [unmerged_policy(path, states) for path in policies]
    _save(build(*parts), states, given, [model, *policies])


def _one_distance(covers: str | None, radius: str | None, is_open: bool) -> None:
    """Exactly one of --covers and --radius, and --open with --radius alone."""
    if (covers is None) == (radius is None):
        came = "nothing" if covers is None else f"{covers} beside --radius {radius}"
        raise InvalidInput("--covers", came, "a distance between places, 1km; or --radius instead, not both")
    if covers is not None and is_open:
        raise InvalidInput("--open", "--covers with it", "--radius: it leaves out pairs at exactly the radius")


def _covers(text: str, space: StateSpace) -> object:
    """Metres on a map."""
    from dphmm.cli.quantities import length

    if not space.on_map:
        raise InvalidInput("--covers", text, "--radius, in answer units: these states are no places")
    return length(text, "--covers")


def _distance(text: str, space: StateSpace) -> object:
    """Metres on a map, answer units elsewhere."""
    from dphmm._checks import exact_number
    from dphmm.cli.quantities import length

    if space.on_map:
        return length(text, "--radius")
    try:
        return exact_number(text, "--radius")
    except InvalidInput:
        raise InvalidInput("--radius", text, "a number of answer units: these states are no places") from None


def _save(
    graph: PolicyGraph, states: MarkovModel, given: Mapping[str, Any], inputs: Sequence[str], said: Sequence[str] = ()
) -> None:
    from dphmm.cli.public_warnings import covered_rows
    from dphmm.storage.policies import save_policy
    from dphmm.storage.promises import covered_facts

    path = given["output"]
    new_output(path, inputs, given["force"])
    lonely = considered(graph, states, given)
    graph, notes = lonely.policy, [*graph.notes, *lonely.notes]
    save_policy(graph, path, lonely.space, states)
    alone = int((~graph.has_neighbor(None)).sum())
    covered = None if states.space is None else covered_facts(graph, states.space)
    if given["as_json"]:
        document = {"kind": graph.kind, "states": graph.n_states, "states_without_neighbour": alone, **lonely.facts}
        document["covered_distance"] = covered
        print_json({**document, "notes": notes, "output": path})
    console = Console(given["quiet"])
    summary = f"{graph.kind} policy on {graph.n_states} states, {alone} of them without a neighbour"
    reach = [f"hides {words} from each other" for _, words in covered_rows(covered)]
    console.say([("", line) for line in (summary, *said, *reach, *notes, f"written to {path}")])
    for warning in lonely.warnings:
        console.warn(warning)
