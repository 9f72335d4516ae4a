"""dphmm fit: a model from trajectories, counted or learned, with or without privacy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console, print_json
from dphmm.cli.fit_options import FIELDS, answers_words, check_together, fit_options, jump_rate, people_row
from dphmm.cli.options import CONTEXT, force, messages, new_output, output
from dphmm.cli.outcomes import SET_ASIDE
from dphmm.cli.publishing import check_ledger, kept_document, kept_rows, ledger_options
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.markov.trajectories import FitSummary
    from dphmm.states.space import StateSpace
    from dphmm.states.trajectory import Trajectories

NOT_PRIVATE = (
    "fitted without privacy: the model gives no bound for releases about the people it was fitted on, "
    "because its possible moves can show one person's; fit it on other people, or on public data, or with --epsilon"
)


@click.command("fit", context_settings=CONTEXT)
@click.argument("trajectories", metavar="TRAJ")
@output("model.npz")
@fit_options
@ledger_options
@force
@messages
def fit(trajectories: str, output: str, force: bool, as_json: bool, quiet: bool, **given: Any) -> int:
    """Fit a Markov model by counting moves, and write it with its states.

    Exactly one of --grid (with --bbox), --h3 and --state-column says what the states are. Cells that nobody
    visits are left out, unless --all-cells keeps them. Rows outside the box are left out and counted: this
    concerns fitting only.

    With --states K --symbols COL: a hidden Markov model of K states and the symbols of a column, by Baum-Welch.

    With --epsilon E --max-length L: learned with differential privacy for every user of TRAJ, from counts with
    noise. Then states and symbols are public (all cells of a box, or the names of a file), and nothing that is
    said of the data but what has noise.

    With --ledger L: stored there before it is written, and counted for every person of L; the same again is given, not
    learned again.
    """
    from dphmm.storage.inputs import checked_input
    from dphmm.storage.learned import check_people

    console = Console(quiet)
    check_together(given)
    path = checked_input(trajectories, "TRAJ")
    new_output(output, [path], force)
    if given["epsilon"] is not None:
        from dphmm.cli.owner_view import rejected_path

        new_output(rejected_path(output), [path], force)
    check_people(output)
    check_ledger({**given, "output": output})
    job = {**given, "output": output, "as_json": as_json}
    if given["states"] is not None:
        from dphmm.cli.fit_hidden import fit_hidden

        return fit_hidden(path, job, console)
    if given["epsilon"] is not None:
        from dphmm.cli.fit_private import fit_private

        return fit_private(path, job, console)
    return _fit_counted(path, job, console)


def _fit_counted(path: Path, given: dict[str, Any], console: Console) -> int:
    from dphmm.cli.fit_spaces import check_states, is_table, space_of
    from dphmm.cli.fit_times import bins_of, check_times, speed_limit, times, warn_of_order
    from dphmm.cli.lonely import fit_lines
    from dphmm.cli.outcomes import reworded
    from dphmm.cli.owner_view import by_reason, in_words
    from dphmm.cli.portrait import by_name
    from dphmm.cli.publishing import stored_fit
    from dphmm.storage.inputs import steady
    from dphmm.storage.learned import save_people
    from dphmm.storage.models import save_model
    from dphmm.storage.tables import column_names
    from dphmm.storage.trajectories import load_trajectories

    check_states(given)
    choices = {**times(given), **_counting(given)}
    with console.progress("fit") as progress, steady(path) as sha256:
        bins = bins_of(choices["step"], column_names(path))
        loaded = load_trajectories(path, state_column=given["state_column"], bins=bins)
        rows = loaded.trajectories
        check_times(given["step"], rows.time is not None, column_names(path))
        if progress is not None:
            progress(1, 2)
        choices["max_speed"] = speed_limit(given, rows.time is not None, rows.lat is not None)
        model, summary = _fitted(rows, space_of(given, rows), (path.name, sha256), choices)
        rate = jump_rate(given)
        if rate is not None:
            # A jump leaves no move impossible.
            summary = replace(summary, unseen=0.0)
        model = model if rate is None else model.with_jump(rate)
        kept = stored_fit(given, path.name, partial(save_model, model), NOT_PRIVATE)
        save_model(model, given["output"])
        save_people(given["output"], rows.users)
    set_aside = by_reason(loaded.rejected)
    lonely, lonely_facts = fit_lines(model)
    if given["as_json"]:
        print_json({**_document(summary, set_aside, given["output"]), **lonely_facts, **kept_document(kept)})
    console.say([("", by_name(reworded(line), model.space)) for line in summary.lines()])
    console.say([("", line) for line in lonely])
    console.say([("", by_name(note, model.space)) for note in model.notes if "without privacy" not in note])
    if given["state_column"] is not None and not is_table(given["answers"]):
        console.say([("", answers_words(model))])
    if set_aside:
        console.say([("", f"rows that cannot be read, set aside: {in_words(set_aside)}")])
    console.say(kept_rows(kept, given["ledger"]))
    console.say([("", f"written to {given['output']}"), people_row(given["output"])])
    warn_of_order(path, console)
    console.warn(NOT_PRIVATE)
    return SET_ASIDE if set_aside else 0


def _fitted(
    rows: Trajectories, space: StateSpace, source: tuple[str, str], choices: dict[str, Any]
) -> tuple[MarkovModel, FitSummary]:
    from dphmm.cli.outcomes import named
    from dphmm.markov.trajectories import Source, fit_trajectories

    near = "neighbours" if space.kind == "grid" else None
    try:
        return fit_trajectories(rows, space, smoothing_support=near, source=Source(*source), **choices)
    except InvalidInput as error:
        times = "--max-speed" if choices["max_speed"] else "--gap"
        raise named(error, {**FIELDS, "time": times}) from None


def _counting(given: dict[str, Any]) -> dict[str, Any]:
    from dphmm._checks import finite_number

    return {
        "smoothing": finite_number("0" if given["smoothing"] is None else given["smoothing"], "--smoothing"),
        "initial": given["initial"] or "occupancy",
        "min_count": 1 if given["min_count"] is None else given["min_count"],
        "all_cells": bool(given["all_cells"]),
        "merge_rare": given["merge_rare"],
    }


def _document(summary: FitSummary, set_aside: dict[str, int], path: str) -> dict[str, Any]:
    from dphmm.storage.learned import people_path

    report = summary.report
    return {
        "rows": summary.rows,
        "users": summary.users,
        "states": report.n_states,
        "states_not_visited": summary.n_cells - summary.n_visited,
        "sequences": report.n_sequences,
        "transitions": report.n_transitions,
        "possible_transitions": report.possible,
        "rare_transitions_dropped": report.dropped_transitions,
        "states_never_left": len(report.never_left),
        "dropped": dict(summary.dropped),
        "share_outside": summary.share_outside,
        "held": summary.held,
        "set_aside": set_aside,
        "private": False,
        "meaning": NOT_PRIVATE,
        "output": path,
        "people": str(people_path(path)),
    }
