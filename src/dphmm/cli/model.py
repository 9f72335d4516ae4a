"""dphmm model: models that no data is fitted to, from geometry alone or from a matrix of moves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from dphmm._checks import finite_number
from dphmm.cli.console import Console, fields_named, named, print_json
from dphmm.cli.fit_data import cells_over, is_table
from dphmm.cli.help import CONTEXT, Command, Kinds
from dphmm.cli.options import (
    NAMES_ANSWERED,
    duration,
    force,
    length,
    messages,
    new_output,
    output,
    parse_box,
    speed,
    together,
    zone_options,
    zones_of,
)
from dphmm.errors import InvalidInput
from dphmm.states import Grid, space_of_names
from dphmm.storage.public_tables import listed_names, space_of_answers

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.states.space import StateSpace

NO_DATA = "made from geometry alone: nobody's data is in it, so it loses nothing about anybody"
PUBLIC = "the file is taken to be public: if it was counted from people, the model can show their moves"
_COUPLES = (
    "moves of at most two cells: the model couples along every radius policy, so a promise over paths bounds what is "
    "told of two neighbouring states of any one step, too"
)
_JUMPS = "at every step {rate:g} jump to any state alike: no path is impossible, and all steps have one plan"
_FIELDS = {"cell": "--cell", "resolution": "--resolution", "max_speed": "--max-speed", "step": "--step",
           "stay": "--stay", "jump": "--jump", "space": "--bbox", "initial": "FILE", "transition": "FILE"}  # fmt: skip


@click.group("model", cls=Kinds, context_settings=CONTEXT)
def model() -> None:
    """Write a model that is fitted to nobody's data.

    grid and h3 need a box only, zones a file of polygons: from every cell the same law of moves, with guessed numbers.
    How well they fit decides errors, and no promise. matrix and edges take moves from a public file.
    """


_common = together(
    output("model.npz"),
    click.option(
        "--jump",
        metavar="P",
        default="0.001",
        show_default=True,
        help="The chance to jump to any state alike, which leaves no path impossible; 0 for none.",
    ),
    force,
    messages,
)
_moves = together(
    click.option("--step", metavar="TIME", required=True, help="Length of a time step (5min)."),
    click.option("--max-speed", metavar="SPEED", required=True, help="How fast anybody moves between cells: 60km/h."),
    click.option(
        "--stay", metavar="P", default="0.9", show_default=True, help="The chance to stay in a cell for a step."
    ),
)
_on_a_map = together(
    click.option(
        "--bbox", metavar="W,S,E,N", required=True, help="The box, in degrees; public, never taken from the data."
    ),
    _moves,
)
_of_a_file = together(
    click.argument("file", metavar="FILE"),
    click.option("--step", metavar="TIME", help="Length of a time step (5min); without it every row is a step."),
    click.option("--answers", metavar="labels|ordinal|FILE", help=NAMES_ANSWERED),
)


@model.command("grid", cls=Command, context_settings=CONTEXT)
@_common
@_on_a_map
@click.option("--cell", metavar="LENGTH", required=True, help="Square cells of this size (340m, 1km) over --bbox.")
def grid(cell: str, **given: Any) -> None:
    """Square cells over a box, and the same law of moves from each.

    A subject stays in its cell, or moves to one within reach: --max-speed times --step. Weights fall with the
    distance d as exp(-3 d / reach). A move that would leave the box is not made, axis by axis.
    """
    size, box = length(cell, "--cell"), parse_box(given["bbox"])
    try:
        space = Grid.from_bounds(*box, cell=size)
    except InvalidInput as error:
        if error.field == "cell":
            raise InvalidInput(
                "--cell", cell, "at most 10**7 cells in the box; greater ones, or a smaller box"
            ) from None
        raise named(error, _FIELDS) from None
    if space.n_states < 2:
        raise InvalidInput("--cell", f"{cell}, no smaller than the box: one cell", "smaller cells, or a larger --bbox")
    _from_geometry(space, given)


@model.command("h3", cls=Command, context_settings=CONTEXT)
@_common
@_on_a_map
@click.option("--resolution", type=int, metavar="RES", required=True, help="H3 cells of this resolution over --bbox.")
def h3(resolution: int, **given: Any) -> None:
    """H3 cells over a box, and the same law of moves from each, as of dphmm model grid.

    Distances are rings of cells, each as far as neighbours' centres are apart.
    """
    with fields_named(_FIELDS):
        space = cells_over(parse_box(given["bbox"]), resolution, "--resolution", "")
    if space.n_states < 2:
        raise InvalidInput("--resolution", f"{resolution}: one cell covers the box", "a finer one, or a larger --bbox")
    _from_geometry(space, given)


@model.command("zones", cls=Command, context_settings=CONTEXT)
@_common
@_moves
@zone_options
@click.argument("file", metavar="FILE")
def zones(file: str, **given: Any) -> None:
    """Polygons as states, and the same law of moves between them, as of dphmm model grid.

    Distances are those between points inside the zones; the zone with the most others within reach moves as often as
    --stay says, the others stay more.
    """
    space = zones_of(file, given, "FILE")
    if space.n_states < 2:
        raise InvalidInput("FILE", f"{file}, with one polygon", "two or more: a model of one state has no moves")
    _from_geometry(space, given, [file])


@model.command("matrix", cls=Command, context_settings=CONTEXT)
@_common
@_of_a_file
def matrix(file: str, **given: Any) -> None:
    """From a table of weights: a column and a row for each state, named by the columns.

    Each row is divided by its sum. A column called state may name the rows, in the order of the columns.
    """
    from dphmm.storage.public_tables import read_matrix

    _from_file(file, given, lambda names: read_matrix(file))


@model.command("edges", cls=Command, context_settings=CONTEXT)
@_common
@_of_a_file
@click.option(
    "--states-file", metavar="FILE", help="A table whose column state lists the names.  [default: those in FILE]"
)
@click.option("--stay", metavar="P", default="0", show_default=True, help="The chance to stay in a state for a step.")
def edges(file: str, stay: str, states_file: str | None, **given: Any) -> None:
    """From a table of moves: columns from and to, and weight where moves are not all alike.

    The weights of the moves out of each state are divided by their sum.
    """
    from dphmm.storage.public_tables import read_moves

    stays = finite_number(stay, "--stay")
    if not 0 <= stays < 1:
        raise InvalidInput("--stay", stay, "a probability, less than 1")
    if states_file is not None and is_table(given["answers"]):
        raise InvalidInput("--states-file", states_file, "none: --answers FILE lists the names already")
    names = None if states_file is None else tuple(listed_names(states_file, "--states-file", "state"))
    _from_file(file, given, lambda listed: read_moves(file, stays, names if listed is None else listed))


def _from_geometry(space: StateSpace, given: dict[str, Any], inputs: Sequence[str] = ()) -> None:
    from dphmm.markov.model import MarkovModel, couples_along_radius

    step, most = duration(given["step"], "--step"), speed(given["max_speed"], "--max-speed")
    new_output(given["output"], inputs, given["force"])
    with fields_named(_FIELDS):
        made = MarkovModel.from_geometry(space, step, most, stay=given["stay"], jump=given["jump"])
    couples = couples_along_radius(made)
    _save(made, given, [NO_DATA, *([_COUPLES] if couples else [])], {"couples_along_radius": couples})


def _from_file(file: str, given: dict[str, Any], read: Any) -> None:
    from dphmm.markov.model import MarkovModel, uniform_parts

    step = None if given["step"] is None else duration(given["step"], "--step")
    space = space_of_answers(given["answers"], "--answers") if is_table(given["answers"]) else None
    new_output(given["output"], [file], given["force"])
    moves = read(None if space is None else space.names)
    if space is None:
        space = space_of_names(moves.names, given["answers"])
    elif space.names != moves.names:
        got = f"{len(space.names)} names, which are not the {len(moves.names)} columns of {file} in their order"
        raise InvalidInput("--answers", got, "a row for each column, in the same order")
    with fields_named(_FIELDS):
        made = MarkovModel(**uniform_parts(space, moves.matrix, step, given["jump"], {"method": "given"})._asdict())
    _save(made, given, [PUBLIC], {})


def _save(made: MarkovModel, given: dict[str, Any], said: list[str], facts: dict[str, Any]) -> None:
    from dphmm.statement.origin import made_without_data
    from dphmm.storage.models import by_name, remove_people, save_model

    path, console = given["output"], Console(given["quiet"])
    remove_people(path)
    save_model(made, path)
    rate = None if made.jump is None else made.jump.rate
    notes = [by_name(note, made.space) for note in made.notes]
    if given["as_json"]:
        document: dict[str, Any] = {
            "states": made.n_states,
            "possible_moves": made.n_transitions,
            "step_seconds": made.step,
        }
        document |= {"jump": rate, "made_without_data": made_without_data(made.provenance), **facts}
        print_json({**document, "notes": notes, "output": str(path)})
    jumps = [] if rate is None else [_JUMPS.format(rate=rate)]
    size = (
        f"{made.n_states} states, {made.n_transitions} moves beside jumps"
        if jumps
        else (f"{made.n_states} states, {made.n_transitions} moves")
    )
    console.say([("", line) for line in (size, *jumps, *said, *notes, f"written to {path}")])
