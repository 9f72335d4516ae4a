"""dphmm fit: a Markov model from trajectories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, print_json
from dphmm.cli.options import CONTEXT, force, messages, new_output, output
from dphmm.cli.outcomes import SET_ASIDE
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.markov.trajectories import FitSummary
    from dphmm.states.space import StateSpace
    from dphmm.states.trajectory import Trajectories

DEFAULT_SPEED = "150km/h"
_MOST_NAMES = 12
NOT_PRIVATE = (
    "fitted without privacy: the model gives no bound for releases about the people it was fitted on, "
    "because its possible moves can show one person's; fit it on other people, or on public data"
)


@click.command("fit", context_settings=CONTEXT)
@click.argument("trajectories", metavar="TRAJ")
@output("model.npz")
@click.option("--grid", metavar="LENGTH", help="Square cells of this size (340m, 1km) over --bbox.")
@click.option(
    "--bbox", metavar="W,S,E,N", help="The box of the grid, in degrees; public, so never taken from the data."
)
@click.option("--h3", type=int, metavar="RES", help="H3 cells of this resolution: those that were visited.")
@click.option("--state-column", metavar="COL", help="States are the names in this column.")
@click.option(
    "--answers", metavar="ordinal|FILE", help="Numbers for the names: 0, 1, ... in order, or a table of them."
)
@click.option(
    "--step",
    metavar="TIME",
    help="Length of a time step (5min), bins from the UTC epoch, the last row of a bin "
    "counting. Without it every row is a step.",
)
@click.option(
    "--gap",
    metavar="TIME",
    help="With --step: holes up to here are filled with the last state. Without it: rows further apart are "
    "cut.  [default: with --step only the next bin continues a sequence, else every next row does]",
)
@click.option(
    "--smoothing",
    default="0",
    show_default=True,
    metavar="COUNT",
    help="Added to the count of every pair of states; on a grid, of neighbouring cells.",
)
@click.option("--initial", type=click.Choice(["occupancy", "first", "uniform"]), default="occupancy", show_default=True)
@click.option(
    "--max-speed",
    metavar="SPEED",
    help=f"Leave out places that this speed cannot reach; none for no limit  [default: {DEFAULT_SPEED} for places]",
)
@click.option("--min-count", type=int, default=1, show_default=True, metavar="N", help="Drop moves seen fewer times.")
@force
@messages
def fit(trajectories: str, output: str, force: bool, as_json: bool, quiet: bool, **given: Any) -> int:
    """Fit a Markov model by counting moves, and write it with its states.

    Exactly one of --grid (with --bbox), --h3 and --state-column says what the states are. Cells that nobody
    visits are left out. Rows outside the box are left out and counted: this concerns fitting only.
    """
    from dphmm.cli.portrait import by_name
    from dphmm.cli.set_aside import by_reason, in_words
    from dphmm.storage.inputs import checked_input, steady
    from dphmm.storage.models import save_model
    from dphmm.storage.tables import column_names
    from dphmm.storage.trajectories import load_trajectories

    console = Console(quiet)
    _check_states(given)
    choices = {**_times(given), **_counting(given)}
    path = checked_input(trajectories, "TRAJ")
    new_output(output, [path], force)
    with console.progress("fit") as progress, steady(path) as sha256:
        loaded = load_trajectories(path, state_column=given["state_column"])
        _check_times(given["step"], loaded.trajectories, column_names(path))
        if progress is not None:
            progress(1, 2)
        choices["max_speed"] = _speed(given, loaded.trajectories)
        model, summary = _fitted(loaded.trajectories, _space(given, loaded.trajectories), (path.name, sha256), choices)
        save_model(model, output)
    set_aside = by_reason(loaded.rejected)
    if as_json:
        print_json(_document(summary, set_aside, output))
    console.say([("", line) for line in summary.lines()])
    console.say([("", by_name(note, model.space)) for note in model.notes if "without privacy" not in note])
    if given["state_column"] is not None and given["answers"] in (None, "ordinal"):
        console.say([("", _order(model))])
    if set_aside:
        console.say([("", f"rows that cannot be read, set aside: {in_words(set_aside)}")])
    console.say([("", f"written to {output}")])
    console.warn(NOT_PRIVATE)
    return SET_ASIDE if set_aside else 0


def _fitted(
    rows: Trajectories, space: StateSpace, source: tuple[str, str], choices: dict[str, Any]
) -> tuple[MarkovModel, FitSummary]:
    from dphmm.cli.wording import named
    from dphmm.markov.trajectories import Source, fit_trajectories

    near = "neighbours" if space.kind == "grid" else None
    try:
        return fit_trajectories(rows, space, smoothing_support=near, source=Source(*source), **choices)
    except InvalidInput as error:
        times = "--max-speed" if choices["max_speed"] else "--gap"
        raise named(error, {"step": "--step", "time": times, "trajectories": "TRAJ", "sequences": "TRAJ"}) from None


def _order(model: MarkovModel) -> str:
    """The ordinal answers of the first names."""
    space = model.space
    assert space is not None
    shown = [f"{answer:g} {name}" for name, answer in zip(space.names, space.answers[:, 0].tolist(), strict=True)]
    more = f", ... ({len(shown)} in all: dphmm inspect --states)" if len(shown) > _MOST_NAMES else ""
    return f"answers in the order of the names: {', '.join(shown[:_MOST_NAMES])}{more}"


def _check_states(given: dict[str, Any]) -> None:
    chosen = [name for name in ("grid", "h3", "state_column") if given[name] is not None]
    if len(chosen) != 1:
        came = " and ".join("--" + name.replace("_", "-") for name in chosen) or "none"
        raise InvalidInput("states", came, "one of --grid LENGTH --bbox W,S,E,N; --h3 RES; --state-column COL")
    if given["grid"] is not None and given["bbox"] is None:
        raise InvalidInput(
            "--bbox",
            "nothing",
            "W,S,E,N with --grid: taking it from the data would publish the data's extent",
        )
    if given["grid"] is None and given["bbox"] is not None:
        raise InvalidInput("--bbox", given["bbox"], "--grid with it")
    if given["state_column"] is None and given["answers"] is not None:
        raise InvalidInput("--answers", given["answers"], "--state-column with it")


def _space(given: dict[str, Any], trajectories: Trajectories) -> StateSpace:
    from dphmm.states import H3, Grid, StateSpace, ordered_labels

    if given["grid"] is not None:
        from dphmm.cli.box import check_inside, parse_box
        from dphmm.cli.quantities import length

        grid = Grid.from_bounds(*parse_box(given["bbox"]), cell=length(given["grid"], "--grid"))
        check_inside(grid, trajectories, given["bbox"])
        return grid
    if given["h3"] is not None:
        if trajectories.lat is None or trajectories.lon is None:
            raise InvalidInput("--h3", "rows without places", "columns lat and lon")
        return H3.covering(trajectories.lat, trajectories.lon, given["h3"])
    if given["answers"] not in (None, "ordinal"):
        from dphmm.cli.answers import space_of_answers

        return space_of_answers(given["answers"])
    assert trajectories.state is not None
    return StateSpace.categories(ordered_labels(trajectories.state.tolist()))


def _times(given: dict[str, Any]) -> dict[str, Any]:
    """step, gap and hold, in seconds and steps."""
    from dphmm.cli.quantities import duration

    step = None if given["step"] is None else duration(given["step"], "--step")
    gap = None if given["gap"] is None else duration(given["gap"], "--gap")
    if step is None or gap is None:
        return {"step": step, "gap": gap}
    if gap < step:
        raise InvalidInput("--gap", given["gap"], f"at least the step, {given['step']}")
    return {"step": step, "hold": gap // step - 1}


def _check_times(step: str | None, rows: Trajectories, columns: list[str]) -> None:
    from dphmm.storage.headers import listed

    if step is not None and rows.time is None and "step" not in columns:
        expected = "a column t of times (dphmm import csv with --time-column makes it), or no --step: every row is one"
        raise InvalidInput("--step", f"{step}, and columns {listed(columns)}", expected)


def _speed(given: dict[str, Any], trajectories: Trajectories) -> object:
    from dphmm.cli.quantities import speed

    asked = given["max_speed"]
    if asked == "none":
        return None
    if asked is None:
        # A default for what it fits; asked for, it is refused where it cannot be kept.
        there = trajectories.time is not None and trajectories.lat is not None and given["state_column"] is None
        return speed(DEFAULT_SPEED, "--max-speed") if there else None
    return speed(asked, "--max-speed")


def _counting(given: dict[str, Any]) -> dict[str, Any]:
    from dphmm._checks import finite_number

    smoothing = finite_number(given["smoothing"], "--smoothing")
    return {"smoothing": smoothing, "initial": given["initial"], "min_count": given["min_count"]}


def _document(summary: FitSummary, set_aside: dict[str, int], path: str) -> dict[str, Any]:
    report = summary.report
    return {
        "rows": summary.rows,
        "users": summary.users,
        "states": summary.n_visited,
        "states_not_visited": summary.n_cells - summary.n_visited,
        "sequences": report.n_sequences,
        "transitions": report.n_transitions,
        "possible_transitions": report.possible,
        "rare_transitions_dropped": report.dropped_transitions,
        "states_never_left": len(report.never_left),
        "dropped": dict(summary.dropped),
        "held": summary.held,
        "set_aside": set_aside,
        "private": False,
        "meaning": NOT_PRIVATE,
        "output": path,
    }
