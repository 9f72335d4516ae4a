"""dphmm fit --epsilon: a Markov model from counts with noise.

Of the data, nothing without noise is said or written, but for the list of unreadable rows, which is the owner's alone.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dphmm.cli.console import Console, Row, print_json
from dphmm.cli.fit_options import FIELDS, jump_rate
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.accounting.event import LearningEvent
    from dphmm.markov.model import MarkovModel
    from dphmm.states.space import StateSpace
    from dphmm.storage.publications import AdmitFit
    from dphmm.types import Bits, IntArray

LEFT_OUT_PLAINLY = (
    "rows that cannot be read, and rows in no state, are left out; the unreadable ones are listed in {}, for you alone"
)
LEFT_OUT = (
    "rows that cannot be read, and rows in no state, are left out: how many is not told, because that count has no "
    "noise; the unreadable ones, if any, are listed in {}, for you alone"
)


def left_out(sentence: str, output: str) -> str:
    """What became of rows that were not counted: the same words whatever the rows are."""
    from dphmm.cli.owner_view import rejected_path

    return sentence.format(rejected_path(output).name)


class Records(NamedTuple):
    """Sequences of numbered states, and whose each one is. Not public."""

    sequences: list[IntArray]
    owners: IntArray

    def __repr__(self) -> str:
        return "Records(...)"


def fit_private(path: Path, given: Mapping[str, Any], console: Console) -> int:
    """Learn, write and say what was promised; returns the exit code, which depends on no row."""
    from dphmm.accounting.event import LearningEvent
    from dphmm.cli.fit_spaces import check_states, public_space
    from dphmm.cli.fit_times import times, warn_of_order
    from dphmm.cli.owner_view import list_rejected
    from dphmm.cli.publishing import kept_document, kept_rows, learned_once
    from dphmm.storage.learned import learning_event, remove_people
    from dphmm.storage.models import save_model

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
        print_json({**_document(model, event, given["output"]), **kept_document(kept)})
    console.say(kept_rows(kept, given["ledger"]))
    _say(model, event, given, console)
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
    from dphmm.cli.outcomes import named
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


def records_of(
    path: Path,
    given: Mapping[str, Any],
    space: StateSpace,
    timing: Mapping[str, Any],
    column: str | None,
    shortest: int,
) -> tuple[Records, Any]:
    """The sequences of a table in the states of a public space, without those that are shorter.

    With them the rows, by number and reason, that could not be read: for the data owner alone.

    Rows are read, left out, cut and numbered by themselves or within one owner: nothing here looks across owners, and
    no row raises. No row at all is data too.
    """
    from dphmm.cli.fit_times import bins_of, check_times, speed_limit
    from dphmm.cli.outcomes import named
    from dphmm.markov.trajectories import state_sequences
    from dphmm.storage.inputs import steady
    from dphmm.storage.tables import column_names
    from dphmm.storage.trajectories import load_trajectories

    names = column_names(path)
    with steady(path):
        bins = bins_of(timing["step"], names)
        rows, rejected = load_trajectories(path, state_column=column, bins=bins, may_be_empty=True)
    timed = rows.time is not None
    check_times(given["step"], timed, names)
    limit = speed_limit(given, timed, rows.lat is not None)
    try:
        _, found, _ = state_sequences(rows, space, max_speed=limit, **timing)
    except InvalidInput as error:
        raise named(error, {**FIELDS, "time": "--max-speed" if limit else "--gap"}) from None
    kept = [k for k, sequence in enumerate(found.sequences) if len(sequence) >= shortest]
    return Records([found.sequences[k] for k in kept], found.owners[kept]), rejected


def bits_of(seed: int | None) -> Bits | None:
    """Replayable noise for a seed, else that of the system."""
    from dphmm.samplers.entropy import ReplayBits

    return None if seed is None else ReplayBits(seed)


def caps_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The budget and the public bounds of a record, checked before the data are read."""
    from dphmm._checks import exact_epsilon
    from dphmm.cli.outcomes import named
    from dphmm.markov.private.sensitivity import Caps

    most = 1 if given["max_sequences"] is None else given["max_sequences"]
    neighbours = given["neighbours"] or "add-remove"
    try:
        Caps(given["max_length"], most, neighbours)
    except InvalidInput as error:
        raise named(error, FIELDS) from None
    return {
        "epsilon": exact_epsilon(given["epsilon"], "--epsilon"),
        "max_length": given["max_length"],
        "max_sequences": most,
        "neighbours": neighbours,
        "bits": bits_of(given["seed"]),
    }


def _noise(given: Mapping[str, Any], path: Path) -> dict[str, Any]:
    from dphmm._checks import finite_number

    smoothing = "1" if given["smoothing"] is None else given["smoothing"]
    return {
        **caps_of(given),
        "initial": given["initial"] or "occupancy",
        "smoothing": finite_number(smoothing, "--smoothing"),
        "source": path.name,
    }


def _noise_words(space: StateSpace, noise: Mapping[str, Any], mask: str | None) -> str:
    """What the noise will do to the counts, from public numbers alone: said before the data are read."""
    from dphmm.cli.outcomes import named
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


def promised(event: LearningEvent, choices: Mapping[str, Any]) -> list[Row]:
    """The guarantee, its limits, and what was published for it."""
    from dphmm.cli.public_warnings import guarantee_rows, published_rows
    from dphmm.storage.learned import learning_document, published_words

    return [*guarantee_rows(learning_document(event), covered=True), *published_rows(published_words(event), choices)]


def warn_replayable(event: LearningEvent, console: Console) -> None:
    """Said whatever else is silenced."""
    from dphmm.storage.learned import REPLAYABLE

    if not event.secure:
        console.warn(f"--seed: {REPLAYABLE}")


def _say(model: MarkovModel, event: LearningEvent, given: Mapping[str, Any], console: Console) -> None:
    from dphmm.cli.fit_options import answers_words
    from dphmm.cli.fit_spaces import is_table
    from dphmm.cli.portrait import by_name

    console.say([("states", f"{model.n_states}, all public"), ("moves", _moves(model)), *promised(event, {})])
    if given["state_column"] is not None and not is_table(given["answers"]):
        console.say([("", answers_words(model))])
    notes = [by_name(note, model.space) for note in model.notes if "without privacy" not in note]
    console.say([("", line) for line in (*notes, left_out(LEFT_OUT, given["output"]), f"written to {given['output']}")])
    warn_replayable(event, console)


def _moves(model: MarkovModel) -> str:
    mask = model.provenance["mask"]
    return f"{model.n_transitions} possible, of {'all pairs' if mask == 'all pairs' else 'neighbouring cells'}"


def _document(model: MarkovModel, event: LearningEvent, path: str) -> dict[str, Any]:
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
