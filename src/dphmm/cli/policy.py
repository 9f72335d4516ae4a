"""dphmm policy: which states must not be told apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from dphmm.cli.console import Console, print_json
from dphmm.cli.options import CONTEXT, F, loaded_model, messages, output
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
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
    return model(output("policy.json")(messages(command)))


@policy.command("complete", context_settings=CONTEXT)
@_common
def complete(model: str, output: str, as_json: bool, quiet: bool) -> None:
    """Every two states are neighbours."""
    from dphmm.policy import complete as build

    states, _ = loaded_model(model)
    _save(build(states.n_states), model, output, as_json, quiet)


@policy.command("categorical", context_settings=CONTEXT)
@_common
@click.option(
    "--labels", required=True, metavar="FILE", help="Table of state names and labels (.csv, .parquet)."
)
def categorical(model: str, output: str, as_json: bool, quiet: bool, labels: str) -> None:
    """States with the same label are neighbours."""
    from dphmm.cli.answers import labels_by_state
    from dphmm.policy import categorical as build

    _, space = loaded_model(model)
    _save(build(labels_by_state(labels, space)), model, output, as_json, quiet, inputs=(labels,))


@policy.command("radius", context_settings=CONTEXT)
@_common
@click.option(
    "--radius", required=True, metavar="LENGTH", help="1km or 500m on a map; else a number of answer units."
)
@click.option("--open", "is_open", is_flag=True, help="Leave out pairs at exactly this distance.")
def radius(model: str, output: str, as_json: bool, quiet: bool, radius: str, is_open: bool) -> None:
    """States whose answers lie within a distance are neighbours."""
    from dphmm.policy import radius as build

    _, space = loaded_model(model)
    _save(build(space, _distance(radius, space), closed=not is_open), model, output, as_json, quiet)


@policy.command("transition", context_settings=CONTEXT)
@_common
def transition(model: str, output: str, as_json: bool, quiet: bool) -> None:
    """States that one state can move to are neighbours."""
    from dphmm.policy import transition as build

    _save(build(loaded_model(model)[0]), model, output, as_json, quiet)


@policy.command("edges", context_settings=CONTEXT)
@_common
@click.option(
    "--graph",
    required=True,
    metavar="FILE",
    help=".graphml, .json (node-link) or .csv (two columns of names).",
)
def edges(model: str, output: str, as_json: bool, quiet: bool, graph: str) -> None:
    """The edges of a graph file."""
    from dphmm.policy import from_edge_list, from_graphml, from_node_link

    readers = {".graphml": from_graphml, ".json": from_node_link, ".csv": from_edge_list}
    read = readers.get(Path(graph).suffix.lower())
    if read is None:
        raise InvalidInput("--graph", graph, "a name ending in " + ", ".join(readers))
    _, space = loaded_model(model)
    _save(read(graph, space), model, output, as_json, quiet, inputs=(graph,))


@policy.command("union", context_settings=CONTEXT)
@click.argument("model", metavar="MODEL")
@click.argument("policies", metavar="POLICY POLICY...", nargs=-1, required=True)
@output("policy.json")
@messages
def union(model: str, policies: tuple[str, ...], output: str, as_json: bool, quiet: bool) -> None:
    """The edges of several policies of one model."""
    from dphmm.policy import union as build
    from dphmm.storage.policies import load_policy

    if len(policies) < 2:
        raise InvalidInput("POLICY", "one policy", "two or more to unite")
    states, _ = loaded_model(model)
    parts = [load_policy(path, model=states) for path in policies]
    _save(build(*parts), model, output, as_json, quiet, inputs=policies)


def _distance(text: str, space: StateSpace) -> object:
    """Metres on a map, answer units elsewhere."""
    from dphmm._checks import exact_number
    from dphmm.states.units import parse_length

    return parse_length(text, "--radius") if hasattr(space, "locate") else exact_number(text, "--radius")


def _save(
    graph: PolicyGraph, model: str, output: str, as_json: bool, quiet: bool, inputs: tuple[str, ...] = ()
) -> None:
    from dphmm.storage.inputs import checked_output
    from dphmm.storage.policies import save_policy

    states, space = loaded_model(model)
    checked_output(output, [model, *inputs])
    save_policy(graph, output, space, states)
    alone = int((~graph.has_neighbor(None)).sum())
    if as_json:
        document = {"kind": graph.kind, "states": graph.n_states, "states_without_neighbour": alone}
        print_json({**document, "notes": list(graph.notes), "output": output})
    console = Console(quiet)
    console.say(
        [("", f"{graph.kind} policy on {graph.n_states} states, {alone} of them without a neighbour")]
    )
    console.say([("", note) for note in graph.notes])
    console.say([("", f"written to {output}")])
