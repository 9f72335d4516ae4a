"""dphmm fit: a model from trajectories, counted or learned, with or without privacy; its options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dphmm.cli.console import Console
from dphmm.cli.fit_chain import fit_counted, fit_private
from dphmm.cli.fit_data import DEFAULT_SPEED, jump_rate
from dphmm.cli.fit_hidden import fit_hidden
from dphmm.cli.options import (
    CONTEXT,
    force,
    messages,
    new_output,
    output,
    zone_options,
)
from dphmm.cli.publishing import check_ledger, ledger_options
from dphmm.errors import InvalidInput
from dphmm.storage.inputs import checked_input
from dphmm.storage.private_tables import rejected_path

if TYPE_CHECKING:
    pass

F = TypeVar("F", bound=Callable[..., Any])


METHODS = ("ngrams", "every-iteration", "paper-every-iteration", "paper-last-iteration-not-private")


_CHAIN = (
    click.option("--grid", metavar="LENGTH", help="Square cells of this size (340m, 1km) over --bbox."),
    click.option(
        "--bbox",
        metavar="W,S,E,N",
        help="The box of the grid, in degrees; public, so never taken from the data. With --epsilon also that of --h3.",
    ),
    click.option("--zones", metavar="FILE", help="Polygons as states (.geojson, .gpkg, .shp, .fgb), by --zone-id."),
    click.option(
        "--h3",
        type=int,
        metavar="RES",
        help="H3 cells of this resolution: those visited; with --epsilon those of --bbox.",
    ),
    click.option("--state-column", metavar="COL", help="States are the names in this column."),
    click.option(
        "--answers",
        metavar="labels|ordinal|FILE",
        help="What the names are answered with: themselves, 0, 1, ... in order, or a table of numbers.  "
        "[default: labels; ordinal where all names are numbers]",
    ),
    click.option(
        "--states-file", metavar="FILE", help="A table whose column state lists the names; with --epsilon needed."
    ),
    click.option(
        "--smoothing",
        metavar="COUNT",
        help="Added to the count of every pair of states; without --epsilon, on a grid, of neighbouring cells.  "
        "[default: 0; with --epsilon 1]",
    ),
    click.option("--initial", type=click.Choice(["occupancy", "first", "uniform"]), help="[default: occupancy]"),
    click.option(
        "--max-speed",
        metavar="SPEED",
        help=f"Leave out places that this speed cannot reach; none for no limit  [default: {DEFAULT_SPEED} for places]",
    ),
    click.option("--min-count", type=int, metavar="N", help="Drop moves seen fewer times.  [default: 1]"),
    click.option(
        "--all-cells",
        is_flag=True,
        default=None,
        help="Keep every cell of --bbox, visited or not; as with --epsilon.",
    ),
    click.option(
        "--merge-rare",
        type=int,
        metavar="N",
        help="Answer cells with fewer than N visits as the nearest cell with as many.",
    ),
)


_JUMP = (
    click.option(
        "--jump",
        metavar="P",
        help="The chance to jump to any state alike at each step (0.001), which leaves no path impossible.  "
        "[default: none]",
    ),
)


_TIMES = (
    click.option(
        "--step",
        metavar="TIME",
        help="Length of a time step (5min), bins from the UTC epoch, the last row of a bin "
        "counting. Without it every row is a step.",
    ),
    click.option(
        "--gap",
        metavar="TIME",
        help="With --step: holes up to here are filled with the last state. Without it: rows further apart are "
        "cut.  [default: with --step only the next bin continues a sequence, else every next row does]",
    ),
)


_HIDDEN = (
    click.option("--states", type=int, metavar="K", help="A hidden Markov model of so many states, seen by --symbols."),
    click.option("--symbols", metavar="COL", help="With --states: what is seen are the names in this column."),
    click.option(
        "--symbols-file", metavar="FILE", help="A table whose column symbol lists the names; with --epsilon needed."
    ),
    click.option("--starts", type=int, metavar="N", help="Random starts, the best is kept.  [default: 5; ngrams 10]"),
    click.option(
        "--iterations",
        type=int,
        metavar="N",
        help="At most so many iterations; noisy ones exactly so many.  [default: by method]",
    ),
)


_PRIVATE = (
    click.option("--epsilon", metavar="E", help="Learn with differential privacy: the whole budget of the fit."),
    click.option("--max-length", type=int, metavar="L", help="With --epsilon: of a sequence its first L steps count."),
    click.option(
        "--max-sequences",
        type=int,
        metavar="M",
        help="With --epsilon: of a person the first M sequences.  [default: 1]",
    ),
    click.option(
        "--neighbours",
        type=click.Choice(["add-remove", "replace"]),
        help="With --epsilon: whether a person is added or removed, or replaced.  [default: add-remove]",
    ),
    click.option(
        "--moves",
        type=click.Choice(["all", "neighbours"]),
        help="With --epsilon: the moves that can be learned.  [default: all; on grids above 3,000 cells neighbours]",
    ),
    click.option("--delta", metavar="D", help="With --noise gaussian: the delta of the guarantee."),
    click.option("--method", type=click.Choice(METHODS), help="Of --states with --epsilon.  [default: ngrams]"),
    click.option("--noise", type=click.Choice(["laplace", "gaussian"]), help="Of every-iteration.  [default: laplace]"),
    click.option(
        "--order", type=int, metavar="N", help="Length of the words of ngrams.  [default: by states and symbols]"
    ),
    click.option("--seed", type=int, metavar="N", help="The same fit every time; with --epsilon NOT PRIVATE."),
)


def fit_options(command: F) -> F:
    """All of them, in the order of the help."""
    command = zone_options(command)
    for option in reversed((*_CHAIN, *_JUMP, *_TIMES, *_HIDDEN, *_PRIVATE)):
        command = option(command)
    return command


_ONLY_PRIVATE = ("max_length", "max_sequences", "neighbours", "moves", "delta", "method", "noise", "order")


_ONLY_HIDDEN = ("symbols", "symbols_file", "starts", "iterations", "delta", "method", "noise", "order")


_ONLY_CHAIN = (
    "grid", "bbox", "h3", "zones", "zone_id", "zone_crs", "mend_zones", "state_column", "answers", "states_file",
    "smoothing", "initial", "max_speed", "min_count",
    "moves", "all_cells", "merge_rare", "jump",
)  # fmt: skip


def check_together(given: Mapping[str, Any]) -> None:
    """Refuse options that the fit asked for would not heed, and private fits without a public cap."""
    hidden, private = given["states"] is not None, given["epsilon"] is not None
    refusals = (
        (not hidden, _ONLY_HIDDEN, "--states K with it: it is for hidden Markov models"),
        (hidden, _ONLY_CHAIN, "none with --states: a hidden Markov model sees the names of --symbols"),
        (not private, _ONLY_PRIVATE, "--epsilon with it: it is for fits with differential privacy"),
        (not hidden and not private, ("seed",), "none: counting moves has nothing random in it"),
    )
    for refused, names, expected in refusals:
        wrong = next((name for name in names if refused and given[name] is not None), None)
        if wrong is not None:
            raise InvalidInput(option_of(wrong), given[wrong], expected)
    if hidden and given["symbols"] is None:
        raise InvalidInput("--symbols", "nothing", "the column of what was seen, with --states")
    if private:
        _check_private(given)
    jump_rate(given)


def _check_private(given: Mapping[str, Any]) -> None:
    if given["max_length"] is None:
        expected = "a number of steps with --epsilon, chosen without a look at the data: the noise is made for it"
        raise InvalidInput("--max-length", "nothing", expected)
    if given["min_count"] is not None:
        expected = "none with --epsilon: whether a move is rare is seen in the counts of all people"
        raise InvalidInput("--min-count", given["min_count"], expected)
    if given["all_cells"]:
        raise InvalidInput("--all-cells", "with --epsilon", "none: a fit with --epsilon keeps all cells already")
    if given["merge_rare"] is not None:
        expected = "none with --epsilon, which keeps all cells: visits are counted over all people, without noise"
        raise InvalidInput("--merge-rare", given["merge_rare"], expected)


def option_of(name: str) -> str:
    """--max-length for max_length."""
    return "--" + name.replace("_", "-")


@click.command("fit", context_settings=CONTEXT)
@click.argument("trajectories", metavar="TRAJ")
@output("model.npz")
@fit_options
@ledger_options
@force
@messages
def fit(trajectories: str, output: str, force: bool, as_json: bool, quiet: bool, **given: Any) -> int:
    """Fit a Markov model by counting moves, and write it with its states.

    Exactly one of --grid (with --bbox), --h3, --zones and --state-column says what the states are. Cells that nobody
    visits are left out, unless --all-cells keeps them. Rows outside the box are left out and counted: this
    concerns fitting only.

    With --states K --symbols COL: a hidden Markov model of K states and the symbols of a column, by Baum-Welch.

    With --epsilon E --max-length L: learned with differential privacy for every user of TRAJ, from counts with
    noise. Then states and symbols are public (all cells of a box, or the names of a file), and nothing that is
    said of the data but what has noise.

    With --ledger L: stored there before it is written, and counted for every person of L; the same again is given, not
    learned again.
    """
    from dphmm.storage.models import check_people

    console = Console(quiet)
    check_together(given)
    path = checked_input(trajectories, "TRAJ")
    new_output(output, [path], force)
    if given["epsilon"] is not None:
        new_output(rejected_path(output), [path], force)
    check_people(output)
    check_ledger({**given, "output": output})
    job = {**given, "output": output, "as_json": as_json}
    if given["states"] is not None:
        return fit_hidden(path, job, console)
    if given["epsilon"] is not None:
        return fit_private(path, job, console)
    return fit_counted(path, job, console)
