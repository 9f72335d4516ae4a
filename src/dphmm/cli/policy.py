"""dphmm policy: the pairs of states that must not be told apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from dphmm._checks import exact_number
from dphmm.cli.console import Console, fields_named, print_json
from dphmm.cli.guarantees import covered_rows
from dphmm.cli.help import CONTEXT, Command, Kinds
from dphmm.cli.options import force, length, loaded_model, loaded_policy, messages, new_output, output, together
from dphmm.errors import InvalidInput, Unprotectable
from dphmm.session.options import PLAN_CHOICES
from dphmm.storage.geo_files import read_areas
from dphmm.storage.public_tables import labels_by_state

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace


class Considered(NamedTuple):
    """The policy to write, the space that it is about, and what to say of its lonely states."""

    policy: PolicyGraph
    space: StateSpace
    notes: list[str]
    warnings: list[str]
    facts: dict[str, Any]


_beside = together(
    click.option(
        "--merge-lonely",
        is_flag=True,
        help="Answer every lonely state as its nearest other state, instead of joining it, which widens the hull. For "
        "mechanism optimal-table that is every state without a neighbour.",
    ),
    click.option(
        "--setting",
        nargs=2,
        multiple=True,
        metavar="NAME VALUE",
        help="What else decides plans, kept in the file: constraint support or delta=0.01; mechanism, by name or "
        "table.npz (dphmm optimize); protection auto, merge, nearest, min-volume or min-error of states that nothing "
        "hides; start before or at. May be repeated.",
    ),
)


def _setting(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
    """The members of --setting, by name. Raises InvalidInput for a name that is none, and for one that comes twice."""
    setting = dict(pairs)
    for name in setting:
        if name not in PLAN_CHOICES:
            raise InvalidInput("--setting", name, f"one of {', '.join(PLAN_CHOICES)}")
    if len(setting) < len(pairs):
        raise InvalidInput("--setting", " and ".join(" ".join(pair) for pair in pairs), "each of them once")
    return setting


def unmerged_policy(path: str, model: MarkovModel) -> PolicyGraph:
    """A policy file in which no lonely states are merged."""
    policy, space = loaded_policy(path, model)
    if model.space is None or space.digest != model.space.digest:
        got = f"{path}, in which lonely states are merged"
        raise InvalidInput("POLICY", got, "policies made without --merge-lonely; give it to their union")
    return policy


def considered(policy: PolicyGraph, model: MarkovModel, merge: bool, setting: Mapping[str, str]) -> Considered:
    """The policy with its lonely states merged, if that was asked for; else as it is, and what they cost."""
    from dphmm.choose.details import cost_facts, cost_words
    from dphmm.choose.lonely import lonely_cost
    from dphmm.session.options import Options

    assert model.space is not None
    if merge:
        return _merged(policy, model, isolated=setting.get("mechanism") == "optimal-table")
    alone = int((~policy.has_neighbor(None)).sum())
    if not alone:
        return Considered(policy, model.space, [], [], {})
    options = Options.checked("1", start=model.start)
    cost = lonely_cost(model, policy, model.space, options)
    warning = (
        f"{alone} of {policy.n_states} states have no neighbour: a release answers each of them that nothing else "
        "hides as its nearest state, or joins it to that, which raises the noise for everyone, whichever errs less"
    )
    if cost is None:
        return Considered(policy, model.space, [], [warning], {})
    warnings = [warning, f"at epsilon 1, {cost_words(cost, policy, model.space)}"]
    return Considered(policy, model.space, [], warnings, {"lonely": cost_facts(cost)})


def _merged(policy: PolicyGraph, model: MarkovModel, isolated: bool) -> Considered:
    from dphmm.choose.details import moved_facts, moved_words
    from dphmm.choose.lonely import moved_states
    from dphmm.sensitivity.protection import merge_lonely

    assert model.space is not None
    try:
        merged = merge_lonely(policy, model.space, isolated=isolated)
    except Unprotectable as error:
        raise InvalidInput("--merge-lonely", f"a policy with too few other states ({error})", "none") from None
    if not len(merged.pairs):
        return Considered(policy, model.space, ["no lonely states: nothing to merge"], [], {"merged": None})
    moved = moved_states(merged.space, merged.pairs, model)
    notes = [moved_words(moved, policy, model.space)]
    return Considered(merged.policy, merged.space, notes, [], {"merged": moved_facts(moved)})


@click.group("policy", cls=Kinds, context_settings=CONTEXT)
def policy() -> None:
    """Write a policy: a graph whose neighbouring states must not be told apart.

    A release keeps its epsilon between neighbours. A state that ends up without a neighbour at some step is
    joined to another one, so that no state is ever alone.
    """


_common = together(click.argument("model", metavar="MODEL"), output("policy.json"), _beside, force, messages)


@policy.command("complete", cls=Command, context_settings=CONTEXT)
@_common
def complete(model: str, **given: Any) -> None:
    """Every two states are neighbours."""
    from dphmm.policy import complete as build

    states, _ = loaded_model(model)
    _save(build(states.n_states), states, given, [model])


@policy.command("categorical", cls=Command, context_settings=CONTEXT)
@_common
@click.option("--labels", required=True, metavar="FILE", help="Table of state names and labels (.csv, .parquet).")
def categorical(model: str, labels: str, **given: Any) -> None:
    """States with the same label are neighbours."""
    from dphmm.policy import categorical as build

    states, space = loaded_model(model)
    _save(build(labels_by_state(labels, space, "--labels")), states, given, [model, labels])


@policy.command("radius", cls=Command, context_settings=CONTEXT)
@_common
@click.option("--covers", metavar="LENGTH", help="On a map: hide all places up to so far apart: 680m, 1km.")
@click.option("--radius", metavar="LENGTH", help="Instead: join cells whose centres are so near; else answer units.")
def radius(model: str, covers: str | None, radius: str | None, **given: Any) -> None:
    """States whose answers lie within a distance are neighbours.

    Answers are the centres of cells, and people are at places: --covers takes the distance between places, and the
    smallest radius that hides all of them up to it, wherever they lie in their cells.
    """
    from dphmm.policy import radius as build

    if (covers is None) == (radius is None):
        got = "nothing" if covers is None else f"{covers} beside --radius {radius}"
        raise InvalidInput("--covers", got, "a distance between places, 1km; or --radius instead, not both")
    states, space = loaded_model(model)
    with fields_named({"r": "--radius", "covers": "--covers"}):
        if radius is not None:
            graph = build(space, _distance(radius, space))
        else:
            graph = build(space, covers=_covers(str(covers), space))
    _save(graph, states, given, [model], [] if covers is None else _radius_words(graph, space, covers))


def _radius_words(graph: PolicyGraph, space: StateSpace, covers: str) -> list[str]:
    """The radius that a distance takes, and what it would be if no cell were answered as another one."""
    from dphmm.choose.details import length_words
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


@policy.command("areas", cls=Command, context_settings=CONTEXT)
@_common
@click.option("--areas", required=True, metavar="FILE", help="Polygons (.geojson, ...), each called by its name.")
@click.option("--covers", metavar="LENGTH", help="On a map: hide all places up to so far apart: 680m, 1km.")
def areas(model: str, areas: str, covers: str | None, **given: Any) -> None:
    """All cells whose centre lies in an area are neighbours; with --covers also all places up to so far apart.

    Areas are drawn elsewhere, and may overlap: a cell of two has the neighbours of both. One in which no cell has its
    centre is refused by name.
    """
    from dphmm.policy import areas as build
    from dphmm.policy import radius as near
    from dphmm.policy import union

    states, space = loaded_model(model)
    drawn = read_areas(areas, space, "--areas")
    parts = [build(list(drawn.values()), space.n_states)]
    parts += [] if covers is None else [near(space, covers=_covers(covers, space))]
    counts = [f"{name}: {len(cells)} cells" for name, cells in drawn.items()]
    _save(union(*parts), states, given, [model, areas], counts)


@policy.command("knn", cls=Command, context_settings=CONTEXT)
@_common
@click.option("--k", "k", type=int, required=True, metavar="K", help="How many nearest states each is joined to.")
def knn(model: str, k: int, **given: Any) -> None:
    """Every state and its K nearest others are neighbours."""
    from dphmm.policy import knn as build

    states, space = loaded_model(model)
    with fields_named({"k": "--k"}):
        graph = build(space, k)
    _save(graph, states, given, [model])


@policy.command("transition", cls=Command, context_settings=CONTEXT)
@_common
def transition(model: str, **given: Any) -> None:
    """States that one state can move to are neighbours."""
    from dphmm.policy import transition as build

    states, _ = loaded_model(model)
    _save(build(states), states, given, [model])


@policy.command("edges", cls=Command, context_settings=CONTEXT)
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


@policy.command("union", cls=Command, context_settings=CONTEXT)
@click.argument("model", metavar="MODEL")
@click.argument("policies", metavar="POLICY POLICY...", nargs=-1, required=True)
@output("policy.json")
@_beside
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


def _covers(text: str, space: StateSpace) -> object:
    """Metres on a map."""
    if not space.on_map:
        raise InvalidInput("--covers", text, "--radius, in answer units: these states are no places")
    if space.kind == "zones":
        raise InvalidInput("--covers", text, f"--radius {text}, between centres: zones have no covered distance")
    return length(text, "--covers")


def _distance(text: str, space: StateSpace) -> object:
    """Metres on a map, answer units elsewhere."""
    if space.on_map:
        return length(text, "--radius")
    try:
        return exact_number(text, "--radius")
    except InvalidInput:
        raise InvalidInput("--radius", text, "a number of answer units: these states are no places") from None


def _save(
    graph: PolicyGraph, states: MarkovModel, given: Mapping[str, Any], inputs: Sequence[str], said: Sequence[str] = ()
) -> None:
    from dphmm.policy import with_end
    from dphmm.statement.parts import document as facts
    from dphmm.statement.release import CoveredDistance
    from dphmm.storage.policies import save_policy

    path, setting = given["output"], _setting(given["setting"])
    new_output(path, inputs, given["force"])
    if states.space is not None and (ended := with_end(graph, states.space)) is not graph:
        graph, said = ended, [*said, "END is joined to every label, so any two labels are at most two edges apart"]
    lonely = considered(graph, states, given["merge_lonely"], setting)
    graph, notes = lonely.policy, [*graph.notes, *lonely.notes]
    with fields_named({"table": "--setting mechanism"}):
        save_policy(graph, path, lonely.space, states, setting)
    alone = int((~graph.has_neighbor(None)).sum())
    covered = None if states.space is None else CoveredDistance.of([graph], states.space)
    if given["as_json"]:
        document = {"kind": graph.kind, "states": graph.n_states, "states_without_neighbour": alone, **lonely.facts}
        document["covered_distance"] = None if covered is None else facts(covered)
        print_json({**document, "notes": notes, "output": path})
    console = Console(given["quiet"])
    summary = f"{graph.kind} policy on {graph.n_states} states, {alone} of them without a neighbour"
    reach = [f"hides {words} from each other" for _, words in covered_rows(covered)]
    console.say([("", line) for line in (summary, *said, *reach, *notes, f"written to {path}")])
    for warning in lonely.warnings:
        console.warn(warning)
