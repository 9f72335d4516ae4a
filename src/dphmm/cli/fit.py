"""dphmm fit: a Markov model from trajectories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, print_json
from dphmm.cli.options import CONTEXT, messages, output
from dphmm.cli.outcomes import SET_ASIDE
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.markov.trajectories import FitSummary
    from dphmm.states.space import StateSpace
    from dphmm.states.trajectory import Trajectories

DEFAULT_SPEED = "150km/h"
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
@messages
def fit(trajectories: str, output: str, as_json: bool, quiet: bool, **given: Any) -> int:
    """Fit a Markov model by counting moves, and write it with its states.

    Exactly one of --grid (with --bbox), --h3 and --state-column says what the states are. Cells that nobody
    visits are left out. Rows outside the box are left out and counted: this concerns fitting only.
    """
    from dphmm.cli.set_aside import by_reason, in_words
    from dphmm.markov.trajectories import Source, fit_trajectories
    from dphmm.storage.inputs import checked_input, checked_output, steady
    from dphmm.storage.models import save_model
    from dphmm.storage.trajectories import load_trajectories

    console = Console(quiet)
    _check_states(given)
    times = _times(given)
    path = checked_input(trajectories, "TRAJ")
    checked_output(output, [path])
    with console.progress("fit") as progress, steady(path) as sha256:
        loaded = load_trajectories(path, state_column=given["state_column"])
        if progress is not None:
            progress(1, 2)
        space = _space(given, loaded.trajectories)
        model, summary = fit_trajectories(
            loaded.trajectories,
            space,
            smoothing=_smoothing(given["smoothing"]),
            smoothing_support="neighbours" if space.kind == "grid" else None,
            initial=given["initial"],
            max_speed=_speed(given, loaded.trajectories),
            min_count=given["min_count"],
            source=Source(path.name, sha256),
            **times,
        )
        save_model(model, output)
    set_aside = by_reason(loaded.rejected)
    if as_json:
        print_json(_document(summary, set_aside, output))
    console.say([("", line) for line in summary.lines()])
    console.say([("", note) for note in model.notes if "without privacy" not in note])
    if set_aside:
        console.say([("", f"rows that cannot be read, set aside: {in_words(set_aside)}")])
    console.say([("", f"written to {output}")])
    console.warn(NOT_PRIVATE)
    return SET_ASIDE if set_aside else 0


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
        west, south, east, north = _corners(given["bbox"])
        return Grid.from_bounds(west, south, east, north, cell=given["grid"])
    if given["h3"] is not None:
        if trajectories.lat is None or trajectories.lon is None:
            raise InvalidInput("--h3", "rows without places", "columns lat and lon")
        return H3.covering(trajectories.lat, trajectories.lon, given["h3"])
    if given["answers"] not in (None, "ordinal"):
        from dphmm.cli.answers import space_of_answers

        return space_of_answers(given["answers"])
    assert trajectories.state is not None
    return StateSpace.categories(ordered_labels(trajectories.state.tolist()))


def _corners(bbox: str) -> list[float]:
    from dphmm._checks import exact_number

    parts = bbox.split(",")
    if len(parts) != 4:
        raise InvalidInput("--bbox", bbox, "four numbers W,S,E,N in degrees")
    return [float(exact_number(part.strip(), f"--bbox {side}")) for side, part in zip("WSEN", parts, strict=True)]


def _times(given: dict[str, Any]) -> dict[str, Any]:
    """step, gap and hold, in seconds and steps."""
    from dphmm.states.units import parse_duration

    step = None if given["step"] is None else parse_duration(given["step"], "--step")
    gap = None if given["gap"] is None else parse_duration(given["gap"], "--gap")
    if step is None or gap is None:
        return {"step": step, "gap": gap}
    if gap < step:
        raise InvalidInput("--gap", given["gap"], f"at least the step, {given['step']}")
    return {"step": step, "hold": gap // step - 1}


def _speed(given: dict[str, Any], trajectories: Trajectories) -> object:
    from dphmm.states.units import parse_speed

    asked = given["max_speed"]
    if asked == "none":
        return None
    if asked is None:
        # A default for what it fits; asked for, it is refused where it cannot be kept.
        there = trajectories.time is not None and trajectories.lat is not None and given["state_column"] is None
        return parse_speed(DEFAULT_SPEED) if there else None
    return parse_speed(asked, "--max-speed")


def _smoothing(text: str) -> float:
    from dphmm._checks import exact_number

    return float(exact_number(text, "--smoothing"))


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
