"""dphmm fit without --states: a Markov model, from counts as they are or (with --epsilon) from counts with noise.

With --epsilon nothing without noise is said or written of the data, but for the list of unreadable rows, which is the
owner's alone.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm._checks import finite_number
from dphmm.accounting.event import LearningEvent
from dphmm.cli.console import REJECTED, Console, named, print_json, reworded
from dphmm.cli.fit_data import (
    FIELDS,
    LEFT_OUT,
    Records,
    answers_words,
    bins_of,
    caps_of,
    check_states,
    check_times,
    is_table,
    jump_rate,
    left_out,
    people_row,
    promised,
    public_space,
    records_of,
    space_of,
    speed_limit,
    times,
    warn_of_order,
    warn_replayable,
)
from dphmm.cli.publishing import kept_document, kept_rows, learned_once, stored_fit
from dphmm.errors import InvalidInput
from dphmm.storage.inputs import steady
from dphmm.storage.private_tables import by_reason, in_words, list_rejected
from dphmm.storage.tables import column_names
from dphmm.storage.trajectories import load_trajectories

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.markov.trajectories import FitSummary
    from dphmm.states.space import StateSpace
    from dphmm.states.trajectory import Trajectories
    from dphmm.storage.publications import AdmitFit

NOT_PRIVATE = (
    "fitted without privacy: the model gives no bound for releases about the people it was fitted on, "
    "because its possible moves can show one person's; fit it on other people, or on public data, or with --epsilon"
)


def fit_counted(path: Path, given: dict[str, Any], console: Console) -> int:
    from dphmm.evaluation.inspection import fit_lines
    from dphmm.storage.models import by_name, save_model, save_people

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
    rejected = by_reason(loaded.rejected)
    lonely, lonely_facts = fit_lines(model)
    if given["as_json"]:
        print_json({**_document(summary, rejected, given["output"]), **lonely_facts, **kept_document(kept)})
    console.say([("", by_name(reworded(line), model.space)) for line in summary.lines()])
    console.say([("", line) for line in lonely])
    console.say([("", by_name(note, model.space)) for note in model.notes if "without privacy" not in note])
    if given["state_column"] is not None and not is_table(given["answers"]):
        console.say([("", answers_words(model))])
    if rejected:
        console.say([("", f"rows that cannot be read, set aside: {in_words(rejected)}")])
    console.say(kept_rows(kept, given["ledger"]))
    console.say([("", f"written to {given['output']}"), people_row(given["output"])])
    warn_of_order(path, console)
    console.warn(NOT_PRIVATE)
    return REJECTED if rejected else 0


def _fitted(
    rows: Trajectories, space: StateSpace, source: tuple[str, str], choices: dict[str, Any]
) -> tuple[MarkovModel, FitSummary]:
    from dphmm.markov.trajectories import Source, fit_trajectories

    near = "neighbours" if space.kind == "grid" else None
    try:
        return fit_trajectories(rows, space, smoothing_support=near, source=Source(*source), **choices)
    except InvalidInput as error:
        option = "--max-speed" if choices["max_speed"] else "--gap"
        raise named(error, {**FIELDS, "time": option}) from None


def _counting(given: dict[str, Any]) -> dict[str, Any]:
    return {
        "smoothing": finite_number("0" if given["smoothing"] is None else given["smoothing"], "--smoothing"),
        "initial": given["initial"] or "occupancy",
        "min_count": 1 if given["min_count"] is None else given["min_count"],
        "all_cells": bool(given["all_cells"]),
        "merge_rare": given["merge_rare"],
    }


def _document(summary: FitSummary, rejected: dict[str, int], path: str) -> dict[str, Any]:
    from dphmm.storage.models import people_path

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
        "rejected": rejected,
        "private": False,
        "meaning": NOT_PRIVATE,
        "output": path,
        "people": str(people_path(path)),
    }


def fit_private(path: Path, given: Mapping[str, Any], console: Console) -> int:
    """Learn, write and say what was promised; returns the exit code, which depends on no row."""
    from dphmm.storage.learned import learning_event
    from dphmm.storage.models import remove_people, save_model

    check_states(given)
    space, timing, noise = public_space(given, path), times(given), _noise(given, path)
    console.say([("noise", _noise_words(space, noise, _mask(given, space)))])
    with console.progress("fit") as progress:
        # A sequence of one row has no move; where it matters which row comes first it counts.
        shortest = 1 if given["initial"] == "first" else 2
        records, rejected = records_of(path, given, space, timing, given["state_column"], shortest)
        if progress is not None:
            progress(1, 2)
        mask = _mask(given, space)
        model, kept = learned_once(
            given, path.name, lambda admit: _learned(records, space, timing["step"], noise, mask, admit), save_model
        )
        event = learning_event(model.provenance)
        assert isinstance(event, LearningEvent)
        remove_people(given["output"])
        rate = jump_rate(given)
        # Chosen without a look at the data, so the fit costs what it did.
        model = model if rate is None else model.with_jump(rate)
        save_model(model, given["output"])
    list_rejected(given["output"], rejected, path)
    if given["as_json"]:
        print_json({**_private_document(model, event, given["output"]), **kept_document(kept)})
    console.say(kept_rows(kept, given["ledger"]))
    _say_private(model, event, given, console)
    warn_of_order(path, console)
    return 0


def _learned(
    records: Records,
    space: StateSpace,
    step: int | None,
    noise: Mapping[str, Any],
    mask: str | None,
    admit: AdmitFit | None,
) -> MarkovModel:
    from dphmm.markov.private import fit_chain

    try:
        model, _ = fit_chain(
            records.sequences,
            space.n_states,
            owners=records.owners,
            space=space,
            step=step,
            mask=mask,
            admit=admit,
            **noise,
        )
        return model
    except InvalidInput as error:
        raise named(error, {**FIELDS, "n_states": "states"}) from None


def _noise(given: Mapping[str, Any], path: Path) -> dict[str, Any]:
    smoothing = "1" if given["smoothing"] is None else given["smoothing"]
    return {
        **caps_of(given),
        "initial": given["initial"] or "occupancy",
        "smoothing": finite_number(smoothing, "--smoothing"),
        "source": path.name,
    }


def _noise_words(space: StateSpace, noise: Mapping[str, Any], mask: str | None) -> str:
    """What the noise will do to the counts, from public numbers alone: said before the data are read."""
    from dphmm.markov.estimate import lattice_neighbours
    from dphmm.markov.private import sensitivity

    caps = sensitivity.Caps(noise["max_length"], noise["max_sequences"], noise["neighbours"])
    try:
        size = sensitivity.l1(sensitivity.transitions(caps, first=noise["initial"] == "first"), caps)
    except InvalidInput as error:
        raise named(error, FIELDS) from None
    scale = float(size / noise["epsilon"])
    counts = space.n_states**2 if mask is None else int(lattice_neighbours(space).nnz)
    remedies = ["a larger --epsilon", "a smaller --max-length", "coarser states"]
    if mask is None and space.kind == "grid":
        remedies.insert(2, "--moves neighbours")
    return (
        f"of scale {scale:.3g} on each of {counts:,} counts of moves: a move that is counted fewer than about "
        f"{3 * scale:,.0f} times is lost in it; where rows are few: {', '.join(remedies[:-1])} or {remedies[-1]}"
    )


def _mask(given: Mapping[str, Any], space: StateSpace) -> str | None:
    """Which moves get noise: those to neighbouring cells, or all of them."""
    from dphmm.markov.estimate import ALL_PAIRS_STATES

    if given["moves"] == "neighbours" and space.kind != "grid":
        raise InvalidInput("--moves", "neighbours", "all: only cells of a --grid have neighbours")
    many = given["moves"] is None and space.kind == "grid" and space.n_states > ALL_PAIRS_STATES
    return "neighbours" if many or given["moves"] == "neighbours" else None


def _say_private(model: MarkovModel, event: LearningEvent, given: Mapping[str, Any], console: Console) -> None:
    from dphmm.storage.models import by_name

    console.say([("states", f"{model.n_states}, all public"), ("moves", _moves(model)), *promised(event, {})])
    if given["state_column"] is not None and not is_table(given["answers"]):
        console.say([("", answers_words(model))])
    notes = [by_name(note, model.space) for note in model.notes if "without privacy" not in note]
    console.say([("", line) for line in (*notes, left_out(LEFT_OUT, given["output"]), f"written to {given['output']}")])
    warn_replayable(event, console)


def _moves(model: MarkovModel) -> str:
    mask = model.provenance["mask"]
    return f"{model.n_transitions} possible, of {'all pairs' if mask == 'all pairs' else 'neighbouring cells'}"


def _private_document(model: MarkovModel, event: LearningEvent, path: str) -> dict[str, Any]:
    from dphmm.storage.learned import learning_document, published_parts

    return {
        "private": event.secure,
        "states": model.n_states,
        "possible_transitions": model.n_transitions,
        "moves": model.provenance["mask"],
        "learning": learning_document(event),
        "published": published_parts(event),
        "left_out": left_out(LEFT_OUT, path),
        "output": path,
    }
