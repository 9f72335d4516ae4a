"""dphmm fit: a model from trajectories, counted or learned, with or without privacy; its options.

Without --states a Markov model is fitted, from counts as they are or (with --epsilon) from counts with noise. Then
nothing without noise is said or written of the data, but for the list of unreadable rows, which is the owner's alone.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dphmm._checks import finite_number
from dphmm.accounting.event import LearningEvent, learning_event
from dphmm.accounting.person import SPELLINGS
from dphmm.cli.console import REJECTED, Console, fields_named, option_of, print_json, reworded
from dphmm.cli.fit_data import (
    FIELDS,
    LEFT_OUT,
    answers_words,
    caps_of,
    check_states,
    is_table,
    jump_rate,
    left_out,
    loaded_rows,
    people_row,
    promised,
    public_space,
    records_of,
    source_of,
    space_of,
    speed_limit,
    times,
    warn_of_order,
    warn_replayable,
)
from dphmm.cli.fit_hidden import fit_hidden
from dphmm.cli.options import (
    FORCE,
    NAMES_ANSWERED,
    SPELLING,
    OneOf,
    argument,
    command,
    flag,
    new_output,
    option,
)
from dphmm.cli.publishing import (
    LedgerOptions,
    check_ledger,
    kept_document,
    kept_rows,
    learned_once,
    owner_rows,
    stored_fit,
    tell_fit,
)
from dphmm.errors import InvalidInput
from dphmm.storage.fits import DEFAULT_SPEED
from dphmm.storage.inputs import checked_input, steady
from dphmm.storage.private_tables import in_words, list_rejected, rejected_path
from dphmm.storage.tables import column_names
from dphmm.storage.trajectories import by_reason

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.markov.slots import Slots
    from dphmm.markov.trajectories import FitSummary, OwnedSequences
    from dphmm.states.space import StateSpace
    from dphmm.storage.publications import AdmitFit
    from dphmm.storage.trajectories import Loaded

NOT_PRIVATE = (
    "fitted without privacy: the model gives no bound for releases about the people it was fitted on, "
    "because its possible moves can show one person's; fit it on other people, or on public data, or with --epsilon"
)


def fit_counted(path: Path, given: dict[str, Any], console: Console) -> int:
    from dphmm.choose.details import fit_lines
    from dphmm.markov.trajectories import Source, fit_trajectories
    from dphmm.storage.models import by_name, save_model, save_people

    check_states(given)
    choices = times(given) | {
        "smoothing": finite_number("0" if given["smoothing"] is None else given["smoothing"], "--smoothing"),
        "initial": given["initial"],
        "min_count": 1 if given["min_count"] is None else given["min_count"],
        "all_cells": bool(given["all_cells"]),
        "merge_rare": given["merge_rare"],
        "slots": _slots(given),
    }
    with console.progress("fit") as progress, steady(path) as sha256:
        loaded = loaded_rows(path, given, given["state_column"], column_names(path))
        rows = loaded.trajectories
        if progress is not None:
            progress(1, 2)
        choices["max_speed"] = speed_limit(given, rows.time is not None, rows.lat is not None)
        space = space_of(given, rows.placed)
        near = "neighbours" if space.kind == "grid" else None
        with fields_named({**FIELDS, "time": "--max-speed" if choices["max_speed"] else "--gap"}):
            source = Source(path.name, sha256)
            model, summary = fit_trajectories(rows, space, smoothing_support=near, source=source, **choices)
        rate = jump_rate(given)
        if rate is not None:
            # A jump leaves no move impossible.
            summary = replace(summary, unseen=0.0)
        model = model if rate is None else model.with_jump(rate)
        stored = stored_fit(given, partial(save_model, model), NOT_PRIVATE)
        save_model(model, given["output"])
        save_people(given["output"], rows.users)
    rejected = by_reason(loaded.rejected)
    lonely, lonely_facts = fit_lines(model)
    if given["as_json"]:
        print_json({**_document(summary, loaded, given["output"]), **lonely_facts, **kept_document(stored)})
    console.say([("", by_name(reworded(line), model.space)) for line in summary.lines()])
    console.say([("", line) for line in lonely])
    console.say([("", by_name(note, model.space)) for note in model.notes if "without privacy" not in note])
    if given["state_column"] is not None and not is_table(given["answers"]):
        console.say([("", answers_words(model))])
    if rejected:
        console.say([("", f"rows that cannot be read, set aside: {in_words(rejected)}")])
    if loaded.without_place:
        console.say([("", f"rows without a place, left out: {loaded.without_place:,}")])
    console.say(kept_rows(stored, given["ledger"]))
    console.say([("", f"written to {given['output']}"), people_row(given["output"])])
    warn_of_order(path, console)
    console.warn(NOT_PRIVATE)
    return REJECTED if rejected else 0


def _slots(given: Mapping[str, Any]) -> Slots | None:
    """The slots that were named, read before the data are."""
    if given["slots"] is None:
        return None
    from dphmm.markov.slots import Slots

    with fields_named(dict.fromkeys(("period", "width", "positions", "zone", "slots"), "--slots")):
        slots = Slots.parse(given["slots"])
    if slots.by_clock and given["step"] is None:
        raise InvalidInput("--slots", given["slots"], "--step beside it: these slots go by the clock")
    return slots


def _document(summary: FitSummary, loaded: Loaded, path: str) -> dict[str, Any]:
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
        "rejected": by_reason(loaded.rejected),
        "without_place": loaded.without_place,
        "private": False,
        "meaning": NOT_PRIVATE,
        "output": path,
        "people": str(people_path(path)),
    }


def fit_private(path: Path, given: Mapping[str, Any], console: Console) -> int:
    """Learn, write and say what was promised; returns the exit code, which depends on no row."""
    from dphmm.markov.private.chain import noisy_moves
    from dphmm.markov.stochastic import beginning
    from dphmm.statement.learning import Learning, published_parts
    from dphmm.statement.parts import document
    from dphmm.storage.models import by_name, remove_people, save_model

    check_states(given)
    source = source_of(path, given)
    space, timing, slots = public_space(given, source), times(given), _slots(given)
    noise = caps_of(given) | {"initial": beginning(given["initial"], given["step"])[0], "source": path.name}
    with fields_named({"moves": "--moves"}):
        mask = noisy_moves(space, given["moves"])
    console.say([("noise", _noise_words(space, noise, mask, slots, timing["step"]))])
    with console.progress("fit") as progress:
        # A sequence of one row has no move; where it matters which row comes first it counts.
        shortest = 1 if noise["initial"] == "first" else 2
        records, rejected = records_of(source, given, space, timing, given["state_column"], shortest)
        if progress is not None:
            progress(1, 2)

        def learn(admit: AdmitFit | None) -> MarkovModel:
            return _learned(records, space, timing["step"], noise, mask, slots, admit)

        if given["dry_run"]:
            return tell_fit(given, learn, console, space.n_states)
        model, stored = learned_once(given, path, learn, save_model)
        event = learning_event(model.provenance)
        assert isinstance(event, LearningEvent)
        remove_people(given["output"])
        rate = jump_rate(given)
        # Chosen without a look at the data, so the fit costs what it did.
        model = model if rate is None else model.with_jump(rate)
        save_model(model, given["output"])
    list_rejected(given["output"], rejected, path)
    if given["as_json"]:
        figures = {
            "private": event.secure,
            "states": model.n_states,
            "possible_transitions": model.n_transitions,
            "moves": model.provenance["mask"],
            "learning": document(Learning.of(event)),
            "published": published_parts(event),
            "left_out": left_out(LEFT_OUT, given["output"]),
            "output": given["output"],
        }
        print_json(figures | kept_document(stored))
    console.say([*kept_rows(stored, given["ledger"]), *owner_rows(stored, given["ledger"])])
    of = "all pairs" if model.provenance["mask"] == "all pairs" else "neighbouring cells"
    moves = f"{model.n_transitions} possible, of {of}"
    console.say([("states", f"{model.n_states}, all public"), ("moves", moves), *promised(event, {})])
    if given["state_column"] is not None and not is_table(given["answers"]):
        console.say([("", answers_words(model))])
    notes = [by_name(note, model.space) for note in model.notes if "without privacy" not in note]
    console.say([("", line) for line in (*notes, left_out(LEFT_OUT, given["output"]), f"written to {given['output']}")])
    warn_replayable(event, console)
    warn_of_order(path, console)
    return 0


def _learned(
    records: OwnedSequences,
    space: StateSpace,
    step: int | None,
    noise: Mapping[str, Any],
    mask: str | None,
    slots: Slots | None,
    admit: AdmitFit | None,
) -> MarkovModel:
    from dphmm.markov.private.chain import end_of, fit_chain

    with fields_named({**FIELDS, "n_states": "--states-file" if space.kind == "labels" else "states"}):
        model, _ = fit_chain(
            records.sequences,
            space.n_states,
            owners=records.owners,
            first_steps=records.first_steps,
            slots=slots,
            space=space,
            step=step,
            mask=mask,
            end=end_of(space, noise["initial"], step),
            admit=admit,
            **noise,
        )
        return model


def _noise_words(
    space: StateSpace, noise: Mapping[str, Any], mask: str | None, slots: Slots | None, step: int | None
) -> str:
    """The effect of the noise on the counts, from public numbers alone: said before the data are read."""
    from dphmm.markov.estimate import lattice_neighbours
    from dphmm.markov.private import sensitivity
    from dphmm.markov.private.chain import end_of

    end = end_of(space, noise["initial"], step) is not None
    caps = sensitivity.RecordBounds(noise["max_length"], noise["max_sequences"], noise["neighbours"])
    with fields_named(FIELDS):
        size = sensitivity.l1(sensitivity.transitions(caps, first=noise["initial"] == "first", end=end), caps)
    scale = float(size / noise["epsilon"])
    moves = space.n_states**2 if mask is None else int(lattice_neighbours(space).nnz)
    counts = moves if slots is None else moves * slots.n
    remedies = ["a larger --epsilon", "a smaller --max-length", "coarser states"]
    if mask is None and space.kind == "grid":
        remedies.insert(2, "--moves neighbours")
    return (
        f"of scale {scale:.3g} on each of {counts:,} counts of moves: a move that is counted fewer than about "
        f"{3 * scale:,.0f} times is lost in it; where rows are few: {', '.join(remedies[:-1])} or {remedies[-1]}"
    )


METHODS = ("ngrams", "every-iteration", "paper-every-iteration", "paper-last-iteration-not-private")


@dataclass(frozen=True, kw_only=True)
class FitOptions(LedgerOptions):
    """The options of dphmm fit."""

    trajectories: str = argument("TRAJ")
    output: str | None = option("The file to write.", "model.npz", "-o", "--output")
    grid: str | None = option("Square cells of this size (340m, 1km) over --bbox.", "LENGTH")
    bbox: str | None = option(
        "The box of the grid, in degrees; public, so never taken from the data. With --epsilon also that of --h3.",
        "W,S,E,N",
    )
    states_of: str | None = option("The states of a model, such as dphmm model zones writes it.", "M")
    h3: int | None = option("H3 cells of this resolution: those visited; with --epsilon those of --bbox.", "RES")
    state_column: str | None = option("States are the names in this column.", "COL")
    slots: str | None = option(
        "Moves of their own for each part of the day (1d/4h), of the week (7d/4h), or of a sequence (1,2,3-5,6+); "
        "by the clock of UTC, or of a zone named after it (1d/4h Europe/Berlin).",
        "RULE",
    )
    answers: str | None = option(NAMES_ANSWERED, "labels|ordinal|FILE")
    states_file: str | None = option("A table whose column state lists the names; with --epsilon needed.", "FILE")
    smoothing: str | None = option(
        "Added to the count of every pair of states; on a grid, of neighbouring cells; not with --epsilon.  "
        "[default: 0]",
        "COUNT",
    )
    initial: Literal["occupancy", "first", "uniform"] | None = option(
        "Where the model begins: as all rows, or as first rows.  [default: first; with --step occupancy]"
    )
    max_speed: str | None = option(
        f"Leave out places that this speed cannot reach; none for no limit  [default: {DEFAULT_SPEED} for places]",
        "SPEED",
    )
    min_count: int | None = option("Drop moves seen fewer times.  [default: 1]", "N")
    all_cells: bool | None = flag("Keep every cell of --bbox, visited or not; as with --epsilon.", default=None)
    merge_rare: int | None = option("Answer cells with fewer than N visits as the nearest cell with as many.", "N")
    jump: str | None = option(
        "The chance to jump to any state alike at each step (0.001), which leaves no path impossible.  [default: none]",
        "P",
    )
    step: str | None = option(
        "Length of a time step (5min), bins from the UTC epoch, the last row of a bin counting. Without it every row "
        "is a step.",
        "TIME",
    )
    gap: str | None = option(
        "With --step: holes up to here are filled with the last state. Without it: rows further apart are cut.  "
        "[default: with --step only the next bin continues a sequence, else every next row does]",
        "TIME",
    )
    states: int | None = option("A hidden Markov model of so many states, seen by --symbols.", "K")
    symbols: str | None = option(
        "With --states, or with --state-column where states are known: what is seen are the names in this column.",
        "COL",
    )
    symbols_file: str | None = option("A table whose column symbol lists the names; with --epsilon needed.", "FILE")
    starts: int | None = option("Random starts, the best is kept.  [default: 5; ngrams 10]", "N")
    iterations: int | None = option("The most iterations; with noise the exact number.  [default: by method]", "N")
    epsilon: str | None = option("Learn with differential privacy: the whole budget of the fit.", "E")
    max_length: int | None = option("With --epsilon: the first L steps of each sequence count.", "L")
    max_sequences: int | None = option("With --epsilon: the first M sequences of a person count.  [default: 1]", "M")
    neighbours: Literal["add-remove", "replace"] | None = option(
        "With --epsilon: neighbours add or remove one person, or replace one.  [default: add-remove]"
    )
    moves: Literal["all", "neighbours"] | None = option(
        "With --epsilon: the moves that can be learned.  [default: all; on grids above 3,000 cells neighbours]"
    )
    delta: str | None = option("Of every-iteration: Gaussian noise, with this delta of the guarantee.", "D")
    method: str | None = option("Of --states with --epsilon.  [default: ngrams]", type=OneOf(METHODS))
    order: int | None = option("Length of the words of ngrams.  [default: by states and symbols]", "N")
    seed: int | None = option("The same fit every time; with --epsilon NOT PRIVATE.", "N")
    spelling: str | None = option(SPELLING, type=OneOf(SPELLINGS))
    force: bool = flag(FORCE)


_ONLY_PRIVATE = ("max_length", "max_sequences", "neighbours", "moves", "delta", "method", "order")


_ONLY_HIDDEN = ("symbols", "symbols_file", "starts", "iterations", "delta", "method", "order")


_ONLY_CHAIN = (
    "grid", "bbox", "h3", "states_of", "state_column", "answers", "states_file",
    "smoothing", "initial", "max_speed", "min_count", "slots",
    "moves", "all_cells", "merge_rare", "jump",
)  # fmt: skip


def known_states(given: Mapping[str, Any]) -> bool:
    """True for the fit of a hidden Markov model whose states are names in a column, beside the symbols."""
    return given["states"] is None and given["symbols"] is not None and given["state_column"] is not None


def check_together(given: Mapping[str, Any]) -> None:
    """Refuse options that the fit asked for would not heed, and private fits without a public cap."""
    known, private = known_states(given), given["epsilon"] is not None
    hidden = known or given["states"] is not None
    others = [name for name in _ONLY_CHAIN if not known or name not in ("state_column", "states_file")]
    climbing = [name for name in _ONLY_HIDDEN if name not in ("symbols", "symbols_file")]
    none = "none with --epsilon"
    refusals = (
        (known, climbing, "none with --state-column: known states are counted"),
        (not hidden, _ONLY_HIDDEN, "--states K with it: it is for hidden Markov models"),
        (hidden, others, "none with --states: a hidden Markov model sees the names of --symbols"),
        (not private, _ONLY_PRIVATE, "--epsilon with it: it is for fits with differential privacy"),
        ((known or not hidden) and not private, ("seed",), "none: counting has nothing random in it"),
        (private, ("min_count",), f"{none}: whether a move is rare is seen in the counts of all people"),
        (private, ("smoothing",), f"{none}: the noise is known, and every move stays possible without it"),
        (private, ("merge_rare",), f"{none}, which keeps all cells: visits are counted over all people, without noise"),
    )
    for refused, names, expected in refusals:
        wrong = next((name for name in names if refused and given[name] is not None), None)
        if wrong is not None:
            raise InvalidInput(option_of(wrong), given[wrong], expected)
    if hidden and given["symbols"] is None:
        raise InvalidInput("--symbols", "nothing", "the column of what was seen, with --states")
    if private and given["max_length"] is None:
        expected = "a number of steps with --epsilon, chosen without a look at the data: the noise is made for it"
        raise InvalidInput("--max-length", "nothing", expected)
    if private and given["all_cells"]:
        raise InvalidInput("--all-cells", "with --epsilon", "none: a fit with --epsilon keeps all cells already")
    jump_rate(given)


@command("fit", FitOptions)
def fit(options: FitOptions) -> int:
    """Fit a Markov model by counting moves, and write it with its states.

    Exactly one of --grid (with --bbox), --h3, --states-of and --state-column says what the states are. Cells that
    nobody visits are left out, unless --all-cells keeps them. Rows outside the box are left out and counted: this
    concerns fitting only.

    With --states K --symbols COL: a hidden Markov model of K states and the symbols of a column, by Baum-Welch. With
    --state-column in place of --states, where the states are known: by counting.

    With --epsilon E --max-length L: learned with differential privacy for every user of TRAJ, from counts with
    noise. Then states and symbols are public (all cells of a box, or the names of a file), and nothing that is
    said of the data but what has noise.

    With --ledger L --id NAME: stored there before it is written, and counted for every person of L; the same id again
    gives the stored model, and nothing is learned again. With --epsilon and --dry-run: how large the noise would be.
    """
    from dphmm.storage.models import check_people

    console, params = Console(options.quiet), vars(options)
    check_together(params)
    path, output = checked_input(options.trajectories, "TRAJ"), options.output
    if options.dry_run and options.epsilon is None:
        raise InvalidInput("--dry-run", "a fit without --epsilon", "--epsilon with it: it tells how large the noise is")
    check_ledger(params)
    if output is not None:
        new_output(output, [path], options.force)
        if options.epsilon is not None:
            new_output(rejected_path(output), [path], options.force)
        check_people(output)
    if options.states is not None or known_states(params):
        return fit_hidden(path, params, console)
    if options.epsilon is not None:
        return fit_private(path, params, console)
    return fit_counted(path, params, console)
