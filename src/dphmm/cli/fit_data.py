"""The common parts of all fits: states, time steps and records as the options name them, and messages about them.

With --epsilon nothing without noise is said of the data.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm._checks import exact_epsilon, finite_number
from dphmm.accounting.event import LearningEvent
from dphmm.cli.console import Console, Row, fields_named, option_of
from dphmm.cli.guarantees import guarantee_rows, published_rows
from dphmm.cli.options import (
    check_inside,
    duration,
    length,
    loaded_model,
    parse_box,
    speed,
    spelling_of,
)
from dphmm.errors import InvalidInput
from dphmm.samplers.entropy import ReplayBits
from dphmm.states import H3, Grid, ordered_labels, space_of_names
from dphmm.states.space import ANSWERS_OF_NAMES
from dphmm.storage.csv_files import listed
from dphmm.storage.fits import DEFAULT_SPEED
from dphmm.storage.inputs import steady
from dphmm.storage.private_tables import PrivateTable, refuse_private, rejected_path
from dphmm.storage.public_tables import listed_names, space_of_answers
from dphmm.storage.tables import column_names
from dphmm.storage.trajectories import Loaded, load_trajectories

if TYPE_CHECKING:
    from dphmm.cli.options import Box
    from dphmm.markov.model import MarkovModel
    from dphmm.markov.trajectories import OwnedSequences
    from dphmm.states.space import StateSpace
    from dphmm.states.trajectory import Trajectories
    from dphmm.storage.inputs import PathLike

#: Answers of so many names are printed.
_MOST_NAMES = 12


def jump_rate(given: Mapping[str, Any]) -> float | None:
    """The chance of --jump; None for none, and for 0."""
    from dphmm.markov.stochastic import Jump

    if given["jump"] is None or finite_number(given["jump"], "--jump") == 0:
        return None
    with fields_named({"jump": "--jump"}):
        return Jump.of(given["jump"], 2).rate


#: Fields of the library's messages that are options of this command.
FIELDS = {
    "delta": "--delta", "gap": "--gap", "iterations": "--iterations", "mask": "--moves", "max_length": "--max-length",
    "max_sequences": "--max-sequences", "method": "--method", "n_features": "--symbols-file", "n_iter": "--iterations",
    "n_starts": "--starts", "n_states": "--states", "neighbours": "--neighbours", "noise": "--delta",
    "order": "--order", "random_state": "--seed", "sequences": "TRAJ", "step": "--step", "trajectories": "TRAJ",
    "X": "TRAJ", "merge_rare": "--merge-rare",
}  # fmt: skip


def people_row(model: str) -> Row:
    """The row about the file of a model's people, and its purpose."""
    from dphmm.storage.models import people_path

    purpose = "keyed digests of user names, for you alone: by them dphmm release tells whether it releases these people"
    return "", f"written to {people_path(model)}: {purpose}"


def answers_words(model: MarkovModel) -> str:
    """The answers to the names, in words; the first of them if they are ordinal."""
    from dphmm.mechanisms.table_program import MOST_ANSWERS

    space = model.space
    assert space is not None
    if space.has_labels:
        many = f"; a release takes at most {MOST_ANSWERS} of them" if len(space) > MOST_ANSWERS else ""
        return f"answers are the names themselves, without any order (numbers instead: --answers ordinal or FILE){many}"
    shown = [f"{answer:g} {name}" for name, answer in zip(space.names, space.answers[:, 0].tolist(), strict=True)]
    more = f", ... ({len(shown)} in all: dphmm plan --details --states)" if len(shown) > _MOST_NAMES else ""
    return f"answers in the order of the names: {', '.join(shown[:_MOST_NAMES])}{more}"


#: Of H3 cells every pair is a move that gets noise.
MOST_CELLS = 3_000


def check_states(given: Mapping[str, Any]) -> None:
    """Exactly one kind of states, and nothing that belongs to another."""
    chosen = [name for name in ("grid", "h3", "states_of", "state_column") if given[name] is not None]
    if len(chosen) != 1:
        got = " and ".join(option_of(name) for name in chosen) or "none"
        kinds = "--grid LENGTH --bbox W,S,E,N; --h3 RES; --states-of MODEL; --state-column COL"
        raise InvalidInput("states", got, "one of " + kinds)
    if given["grid"] is not None and given["bbox"] is None:
        raise InvalidInput(
            "--bbox",
            "nothing",
            "W,S,E,N with --grid: taking it from the data would publish the data's extent",
        )
    if given["state_column"] is not None and given["all_cells"]:
        raise InvalidInput("--all-cells", "with --state-column", "--grid, or --h3 with --bbox: names are no cells")
    boxed = given["grid"] is not None or (given["h3"] is not None and (given["epsilon"] or given["all_cells"]))
    if not boxed and given["bbox"] is not None:
        raise InvalidInput("--bbox", given["bbox"], "--grid with it")
    for name in ("answers", "states_file"):
        if given["state_column"] is None and given[name] is not None:
            raise InvalidInput(option_of(name), given[name], "--state-column with it")
    if given["states_file"] is not None and is_table(given["answers"]):
        raise InvalidInput("--states-file", given["states_file"], "none: --answers FILE lists the names already")


def space_of(given: Mapping[str, Any], trajectories: Trajectories) -> StateSpace:
    """The states of a fit without privacy, which may be taken from the data."""
    if given["grid"] is not None:
        grid = _grid(given)
        check_inside(grid, trajectories, given["bbox"])
        return grid
    if given["states_of"] is not None:
        return _states_of(given)
    if given["h3"] is not None and given["all_cells"]:
        return _cells_of_box(given)
    if given["h3"] is not None:
        if trajectories.lat is None or trajectories.lon is None:
            raise InvalidInput("--h3", "rows without places", "columns lat and lon")
        return H3.covering(trajectories.lat, trajectories.lon, given["h3"])
    space = _listed(given)
    if space is not None:
        return space
    assert trajectories.state is not None
    return space_of_names(ordered_labels(trajectories.state.tolist()), given["answers"])


def is_table(answers: str | None) -> bool:
    """True if --answers names a table of numbers."""
    return answers is not None and answers not in ANSWERS_OF_NAMES


def public_space(given: Mapping[str, Any], private: PathLike | PrivateTable) -> StateSpace:
    """The states of a fit with privacy: all of them, and none from the data, the file ``private``."""
    for name in ("states_file", "answers"):
        if given[name] is not None and not (name == "answers" and not is_table(given[name])):
            refuse_private(given[name], private, option_of(name), called="TRAJ")

    if given["grid"] is not None:
        return _grid(given)
    if given["states_of"] is not None:
        public = _states_of(given)
        if public.kind != "grid" and public.n_states > MOST_CELLS:
            expected = f"at most {MOST_CELLS}, of which every pair gets noise"
            raise InvalidInput("--states-of", f"{public.n_states} states", expected)
        return public
    if given["h3"] is not None:
        return _cells_of_box(given)
    space = _listed(given)
    if space is None:
        expected = (
            "a table of the names there can be, with --epsilon: those in the data are not public (or --answers FILE)"
        )
        raise InvalidInput("--states-file", "nothing", expected)
    return space


def _cells_of_box(given: Mapping[str, Any]) -> H3:
    if given["bbox"] is None:
        expected = (
            "W,S,E,N with --h3 and --epsilon or --all-cells: the cells that were visited are not public, "
            "those of a box are"
        )
        raise InvalidInput("--bbox", "nothing", expected)
    return cells_over(parse_box(given["bbox"]), given["h3"])


def cells_over(box: Box, resolution: int, option: str = "--h3", why: str = ", of which every pair gets noise") -> H3:
    """The H3 cells over a box, as `H3.over` gives them; ``why`` they may not be more."""
    try:
        return H3.over(*box, resolution)
    except InvalidInput as error:
        if error.field != "resolution" or "cells in the box" not in str(error):
            raise
        expected = f"at most {MOST_CELLS}{why}: a coarser RES or a smaller --bbox"
        raise InvalidInput(option, f"{resolution}, with more cells in the box", expected) from None


def _grid(given: Mapping[str, Any]) -> Grid:
    return Grid.from_bounds(*parse_box(given["bbox"]), cell=length(given["grid"], "--grid"))


def _states_of(given: Mapping[str, Any]) -> StateSpace:
    """The states of another model; those of people who were counted without noise are not public."""
    model, space = loaded_model(given["states_of"])
    if given["epsilon"] is not None and model.provenance.get("private") is False:
        got = f"{given['states_of']}, which was fitted without privacy"
        raise InvalidInput("--states-of", got, "a model of public states, as dphmm model writes it")
    return space


def _listed(given: Mapping[str, Any]) -> StateSpace | None:
    """The states of --answers FILE or --states-file."""
    if is_table(given["answers"]):
        return space_of_answers(given["answers"], "--answers")
    if given["states_file"] is None:
        return None
    return space_of_names(listed_names(given["states_file"], "--states-file", "state"), given["answers"])


def times(given: Mapping[str, Any]) -> dict[str, Any]:
    """step, gap and hold, in seconds and steps."""
    from dphmm.markov.trajectories import timing_of

    step = None if given["step"] is None else duration(given["step"], "--step")
    gap = None if given["gap"] is None else duration(given["gap"], "--gap")
    with fields_named(FIELDS):
        return timing_of(step, gap, given.get("max_length"))


def loaded_rows(source: Any, given: Mapping[str, Any], column: str | None, names: Sequence[str], **more: Any) -> Loaded:
    """The rows of a table with columns of these names, with states of one ``column``.

    Raises InvalidInput where a time step has neither times nor the numbers of time bins.
    """
    # The column step has the numbers of the time bins if it stands beside times; alone it is refused later.
    bins = times(given)["step"] if "t" in names else None
    spelling = spelling_of(given["spelling"], given["ledger"])
    loaded = load_trajectories(source, state_column=column, bins=bins, spelling=spelling, **more)
    if given["step"] is not None and loaded.trajectories.time is None and "step" not in names:
        expected = "a column t of times (dphmm import csv with --time-column makes it), or no --step: every row is one"
        raise InvalidInput("--step", f"{given['step']}, and columns {listed(list(names))}", expected)
    return loaded


def warn_of_order(path: Path, console: Console) -> None:
    """Say so where no column tells in which order the rows of a user are."""
    if not {"t", "step", "order"} & set(column_names(path)):
        console.warn(
            "no column t or step: rows are taken in file order (dphmm import csv --time-column makes a column t)"
        )


def speed_limit(given: Mapping[str, Any], timed: bool, placed: bool) -> object:
    """Metres per second, or None. The default is for what it fits; asked for, it is refused where it cannot be kept."""
    asked = given["max_speed"]
    if asked == "none":
        return None
    if asked is None:
        there = timed and placed and given["state_column"] is None
        return speed(DEFAULT_SPEED, "--max-speed") if there else None
    return speed(asked, "--max-speed")


LEFT_OUT_PLAINLY = (
    "rows that cannot be read, and rows in no state, are left out; the unreadable ones are listed in {}, for you alone"
)


LEFT_OUT = (
    "rows that cannot be read, and rows in no state, are left out: how many is not told, because that count has no "
    "noise; the unreadable ones, if any, are listed in {}, for you alone"
)


def left_out(sentence: str, output: str) -> str:
    """The sentence about rows that were not counted: the same words whatever the rows are."""
    return sentence.format(rejected_path(output).name)


def source_of(path: Path, given: Mapping[str, Any]) -> Path | PrivateTable:
    """The table of a private fit; for a dry run one of the same columns without a row."""
    return PrivateTable(path).blank() if given["dry_run"] else path


def records_of(
    source: Path | PrivateTable,
    given: Mapping[str, Any],
    space: StateSpace,
    timing: Mapping[str, Any],
    column: str | None,
    shortest: int,
    read: Callable[[Any], Any] = lambda source: source,
) -> tuple[OwnedSequences, Any]:
    """The sequences of a table in the states of a public space, without those that are shorter.

    With them the rows, by number and reason, that could not be read: for the data owner alone.

    Rows are read, left out, cut and numbered by themselves or within one owner: nothing here looks across owners, and
    no row raises. No row at all is data too. ``read``: the source of the rows.
    """
    from dphmm.markov.trajectories import records_of as records_in

    if isinstance(source, PrivateTable):
        loaded = loaded_rows(read(source.source), given, column, source.columns(), may_be_empty=True)
    else:
        with steady(source):
            loaded = loaded_rows(read(source), given, column, column_names(source), may_be_empty=True)
    rows, rejected = loaded.trajectories, loaded.rejected
    limit = speed_limit(given, rows.time is not None, rows.lat is not None)
    with fields_named({**FIELDS, "time": "--max-speed" if limit else "--gap"}):
        return records_in(rows, space, shortest=shortest, max_speed=limit, **timing), rejected


def caps_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """The budget and the public bounds of a record, checked before the data are read."""
    from dphmm.markov.private.sensitivity import RecordBounds

    most = 1 if given["max_sequences"] is None else given["max_sequences"]
    neighbours = given["neighbours"] or "add-remove"
    with fields_named(FIELDS):
        RecordBounds(given["max_length"], most, neighbours)
    return {
        "epsilon": exact_epsilon(given["epsilon"], "--epsilon"),
        "max_length": given["max_length"],
        "max_sequences": most,
        "neighbours": neighbours,
        "bits": None if given["seed"] is None else ReplayBits(given["seed"]),
    }


def promised(event: LearningEvent, choices: Mapping[str, Any]) -> list[Row]:
    """The guarantee, its limits, and what was published for it."""
    from dphmm.statement.learning import Learning, published_words

    return [*guarantee_rows(Learning.of(event), covered=True), *published_rows(published_words(event), choices)]


def warn_replayable(event: LearningEvent, console: Console) -> None:
    """Said whatever else is silenced."""
    from dphmm.statement.learning import Learning

    if not event.secure:
        console.warn(f"--seed: {Learning.of(event).sentence('replayable')}")
