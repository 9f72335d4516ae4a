"""A Markov model of the rows of a table, with privacy or without; people in two parts, one to fit and one to release.

`fit` makes a model of a table as `dphmm fit` makes it of a file. With privacy no row decides whether it is refused:
unreadable rows are left out, each person's by themselves. `split_people` puts each person in the first part by
a coin of its own: a keyed hash of the name, whose key nobody keeps. So all rows of a person are in one part, whatever
other people there are. Names are compared as `person_key` says, as everywhere where people are compared; somebody
under two names is two people. Rows without a name are in neither part.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from contextlib import nullcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dphmm._checks import exact_number, whole
from dphmm.accounting.forecast import Forecast, event_before, forecast_of_fit
from dphmm.accounting.person import key_by, person_key
from dphmm.errors import InvalidInput
from dphmm.states.maps import parse_duration, parse_speed
from dphmm.states.space import StateSpace
from dphmm.storage.cells import column_roles
from dphmm.storage.columns import Numbering
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import PathLike, checked_output
from dphmm.storage.layouts import Layout
from dphmm.storage.private_tables import PrivateTable
from dphmm.storage.tables import (
    column_list,
    column_names,
    read_batches,
    read_rows,
    read_whole,
    table_kind,
    table_writer,
    to_arrow,
    to_kind,
)
from dphmm.storage.trajectories import load_trajectories, read_source
from dphmm.types import Bits, BoolArray, Exact

if TYPE_CHECKING:
    import pyarrow as pa

    from dphmm.markov.model import MarkovModel
    from dphmm.markov.slots import Slots
    from dphmm.markov.trajectories import OwnedSequences
    from dphmm.states.trajectory import Trajectories
    from dphmm.storage.publications import AdmitFit


#: Faster than this nobody is taken to move, where rows have places and times.
DEFAULT_SPEED = "150km/h"


def fit(
    table: Any,
    space: StateSpace,
    *,
    step: object = None,
    max_speed: object = DEFAULT_SPEED,
    smoothing: float | None = None,
    initial: str | None = None,
    min_count: int = 1,
    all_cells: bool = False,
    merge_rare: int | None = None,
    gap: float | None = None,
    timezone: str | None = None,
    spelling: str = "same",
    epsilon: Exact | None = None,
    max_length: int | None = None,
    max_sequences: int = 1,
    neighbours: str = "add-remove",
    moves: str | None = None,
    slots: Slots | None = None,
    bits: Bits | None = None,
    admit: AdmitFit | None = None,
) -> MarkovModel:
    """A Markov model fitted to the rows of a pandas, polars, Arrow table or GeoDataFrame; PRIVATE with epsilon alone.

    Without ``epsilon`` its possible moves can show one person's: fit it on other people than those who are released
    (`split_people`). With it all rows of a person are hidden, and the model has all states of the space, which is
    public. The table stays as it is.

    Parameters
    ----------
    table : rows of ``user``, a time ``t`` or none, and ``lat`` and ``lon``, points, or ``state``.
    space : the states there are; the model's are those that were visited, all with ``all_cells``.
    step : seconds, or "5min": rows become time bins. None: every row is a step.
    max_speed : rows that cannot be reached at this speed are left out, where rows have places and times; None: none.
    smoothing : added to the counts of moves, on a grid of those to the same and neighbouring cells, else of all pairs;
        with epsilon none.
    initial : where the model begins: by default at "first" rows without a ``step``, else at the "occupancy" of all.
    min_count, merge_rare, gap, spelling : as `dphmm fit` has them.
    timezone : times without a zone are what its clocks showed: "UTC", "Europe/Berlin".
    epsilon : the privacy loss of the whole fit. max_length, max_sequences, neighbours, moves go with it, as ``dphmm
        fit --epsilon`` has them: so many steps of so many sequences of a person count. Without a ``step`` a state
        called END ends each sequence.
    slots : `Slots`, for a matrix for each part of the day or of the week, or of a sequence; with epsilon, too.
    bits : the noise; by default the system's. Replayable bits are for tests, and promise nothing.
    admit : that of `fit_once`, which keeps the model in a ledger and counts what it costs.

    Raises
    ------
    InvalidInput : a table of another kind or without its columns; without epsilon also rows that cannot be read or are
        in no state, which are left out with it.

    Examples
    --------
    >>> import dphmm, pandas as pd
    >>> rows = pd.DataFrame({"user": ["ann"] * 4, "step": range(4), "state": ["a", "b", "a", "a"]})
    >>> model = dphmm.storage.fit(rows, dphmm.StateSpace.labels(["a", "b"]))
    >>> model.n_states, model.provenance["private"]
    (2, False)
    >>> learned = dphmm.storage.fit(rows, model.space, epsilon=1, max_length=10, bits=dphmm.ReplayBits(1))
    >>> learned.provenance["privacy"]["unit"]
    'owner'

    Source: docs/learning.md.
    """
    if not isinstance(space, StateSpace):
        raise InvalidInput("space", type(space).__name__, "a StateSpace, such as dphmm.Grid")
    table_kind(table)
    width = None if step is None else parse_duration(step, "step")
    if epsilon is not None:
        plain = {"min_count": min_count != 1, "all_cells": all_cells, "merge_rare": merge_rare is not None}
        plain["smoothing"] = smoothing is not None
        # It loads much more than it takes to split people.
        from dphmm.markov.stochastic import beginning

        _refuse(plain, "it with epsilon", "no such choice with epsilon")
        caps = {"max_sequences": max_sequences, "neighbours": neighbours, "initial": initial, "admit": admit}
        caps |= {"slots": slots}
        most = whole(max_length, "max_length", 1)
        begins = beginning(initial, width)[0]
        layout = Layout(timezone=timezone, spelling=spelling)
        records = _records(table, space, width, max_speed, gap, most, begins, layout)
        return _learned(records, space, epsilon, most, moves, step=width, bits=bits, **caps)
    others = {"max_length": max_length is not None, "moves": moves is not None, "max_sequences": max_sequences != 1}
    others |= {"neighbours": neighbours != "add-remove", "bits": bits is not None, "admit": admit is not None}
    _refuse(others, "it without epsilon", "epsilon with it: it belongs to a fit with privacy")
    loaded = load_trajectories(table, space=space, timezone=timezone, spelling=spelling)
    if len(loaded.rejected):
        unreadable = f"{len(loaded.rejected)} rows that cannot be read"
        raise InvalidInput("table", unreadable, "a user, a time and a place or state in every row")
    # It loads much more than it takes to split people.
    from dphmm.markov.trajectories import fit_trajectories

    model, _ = fit_trajectories(
        loaded.trajectories,
        space,
        step=width,
        max_speed=_speed(max_speed, loaded.trajectories),
        smoothing=0.0 if smoothing is None else smoothing,
        # Of a grid moves to cells nearby become possible, not to every cell there is.
        smoothing_support="neighbours" if space.kind == "grid" else None,
        initial=initial,
        min_count=min_count,
        all_cells=all_cells,
        merge_rare=merge_rare,
        gap=gap,
        slots=slots,
    )
    return model


def forecast_fit(
    table: Any, space: StateSpace, *, about: int | None = None, ledger: Any = None, event_id: Any = None, **options: Any
) -> Forecast:
    """The forecast of `fit` with epsilon, from names and types of columns alone: no row of the table is read.

    Nothing is drawn, spent, stored or written. ``about``: the number of people in it, on your word. ``ledger``,
    ``event_id``: where `fit_once` would keep the model; it is only read. ``options``: those of `fit`, epsilon among
    them.

    Examples
    --------
    >>> import dphmm, pandas as pd
    >>> rows = pd.DataFrame({"user": ["ann"] * 4, "step": range(4), "state": ["a", "b", "a", "a"]})
    >>> states = dphmm.StateSpace.labels(["a", "b"])
    >>> found = dphmm.storage.forecast_fit(rows, states, epsilon=1, max_length=10, about=50)
    >>> [(noise.part.name, str(noise.part.scale), round(noise.share, 2)) for noise in found.noise]
    [('transitions and starts', '10', 0.2)]
    """
    # It loads much more than it takes to split people.
    from dphmm.storage.publications import digest_of_settings

    people = None if about is None else whole(about, "about", 1)
    if options.get("epsilon") is None:
        raise InvalidInput("epsilon", None, "that of a private fit: without noise there is nothing to forecast")
    blank = PrivateTable(table).blank().source
    event = event_before(lambda admit: fit(blank, space, **{**options, "admit": admit}))
    return forecast_of_fit(event, people, ledger, event_id, lambda: digest_of_settings("fit", {}, event))


def _refuse(given: Mapping[str, bool], came: str, expected: str) -> None:
    """Refuse the first choice that is there, which belongs to the other kind of fit."""
    if name := next((name for name, there in given.items() if there), None):
        raise InvalidInput(name, came, expected)


def _speed(max_speed: object, rows: Trajectories) -> float | None:
    moving = rows.time is not None and rows.lat is not None
    return None if max_speed is None or not moving else float(parse_speed(max_speed, "max_speed"))


def _records(
    table: Any,
    space: StateSpace,
    step: int | None,
    max_speed: object,
    gap: float | None,
    most: int,
    initial: str,
    layout: Layout,
) -> OwnedSequences:
    """The person of each sequence of a table; no row raises. Raises InvalidInput for public options and columns."""
    from dphmm.markov.trajectories import records_of, timing_of

    # Cells of a frame are read one by one: the type of a column would follow from all of them.
    source = read_rows(table, private=True)
    bins = None if column_roles(source.names).time is None else step
    rows = read_source(source, layout, bins=bins, may_be_empty=True).loaded.trajectories
    timing = timing_of(step, gap, most)
    # A sequence of one row has no move; where it matters which row comes first it counts.
    shortest = 1 if initial == "first" else 2
    return records_of(rows, space, max_speed=_speed(max_speed, rows), shortest=shortest, **timing)


def _learned(
    records: OwnedSequences, space: StateSpace, epsilon: Exact, most: int, moves: str | None, **options: Any
) -> MarkovModel:
    from dphmm.markov.private.chain import end_of, fit_chain, noisy_moves

    options |= {"mask": noisy_moves(space, moves), "end": end_of(space, options["initial"], options["step"])}
    whose = {"owners": records.owners, "first_steps": records.first_steps}
    model, _ = fit_chain(records.sequences, space.n_states, epsilon, most, **whose, space=space, **options)
    return model


#: Keys that are drawn until both parts have somebody.
_MOST_KEYS = 1000
_BITS = 64


class Split(NamedTuple):
    """People in each part, and rows in neither, which have no name that can be read."""

    first: int
    second: int
    nameless: int


def split_file(
    path: PathLike,
    share: object,
    first: PathLike,
    second: PathLike,
    *,
    user_column: str = "user",
    spelling: str = "same",
    seed: int | None = None,
    grow: bool = False,
) -> Split:
    """Write the rows of a table (.parquet, .csv, .csv.gz) into two, by person; each file appears whole or not at all.

    ``share`` : the chance of a person to be in the first one, above 0 and below 1. The system draws the key; with a
    ``seed``, for tests, anybody can draw the same. All columns stay as they are.
    ``grow`` : the first file was written before, and stays; everybody who is not in it is in the second one. So new
    rows and new people are released, and nobody who was fitted on.

    Raises InvalidInput for a share that is none, a column that is not there, outputs that are one or the input, where
    fewer than two people are named, and where ``grow`` leaves nobody for the second file.
    """
    chance = _share(share)
    names = column_names(path)
    if user_column not in names:
        raise InvalidInput("user_column", user_column, "one of " + listed(names))
    if not grow:
        checked_output(first, [path, second], "first")
    checked_output(second, [path, first], "second")
    if checked_output(first) == checked_output(second):
        raise InvalidInput("second", str(second), "another file than the first")
    people = Numbering(key_by(spelling))
    for file in [first] * grow + [path]:
        fitted = len(people.labels)
        for part in read_batches(file, columns=[user_column], text={user_column}):
            people.add(part.column(user_column), user_column)
    if grow and len(people.labels) == fitted:
        raise InvalidInput("user", f"{fitted} people, all of them in {first}", "somebody who is not in it")
    chosen = np.arange(len(people.labels)) < fitted if grow else _chosen(people.labels, spelling, chance, seed)
    nameless, parts = 0, read_batches(path, text=None)
    head = next(parts)
    opened: Any = nullcontext(lambda part: None) if grow else table_writer(first, head.schema, inputs=[path])
    with opened as to_first, table_writer(second, head.schema, inputs=[path]) as to_second:
        for part in _all(head, parts):
            number = people.find(part.column(user_column), user_column)
            named = number >= 0
            nameless += int((~named).sum())
            to_first(part.filter(_mask(chosen[number] & named)))
            to_second(part.filter(_mask(~chosen[number] & named)))
    many = int(chosen.sum())
    return Split(many, len(chosen) - many, nameless)


def split_people(
    table: Any, share: object, *, user_column: str = "user", spelling: str = "same", seed: int | None = None
) -> tuple[Any, Any]:
    """Put the people of a table in two tables by chance, to fit a model to one and release the other.

    Parameters
    ----------
    table : pandas, polars or Arrow table, or GeoDataFrame; it stays as it is.
    share : the share of people in the first table, more than 0 and less than 1: 0.5, "0.5" or a Fraction.
    user_column : the column that says whose a row is. Rows without a user are in neither table.
    spelling : "same" if different spellings of a name are one person, "exact" if they are several.
    seed : the same people again; None draws anew.

    Returns two tables of the same kind, each with all rows of its people in their order.

    Raises InvalidInput for a table without the column, and for another share.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"user": ["ann", "bob", "ann", "eve"], "state": ["a", "b", "b", "a"]})
    >>> fitted, released = split_people(rows, "0.5", seed=1)
    >>> set(fitted["user"]) & set(released["user"])
    set()
    >>> len(fitted) + len(released)
    4

    Source: docs/commands.md.
    """
    chance, table = _share(share), read_whole(table)
    names = column_list(table)
    if user_column not in names:
        raise InvalidInput("user_column", user_column, "one of " + listed(names))
    shaped = hasattr(table, "geometry")
    rows = to_arrow(table, [user_column] if shaped else None)
    people = Numbering(key_by(spelling))
    number, missing = people.add(rows.column(user_column), user_column)
    chosen = _chosen(people.labels, spelling, chance, seed)[number]
    if shaped:
        first, second = (table[mask].reset_index(drop=True) for mask in (chosen & ~missing, ~chosen & ~missing))
        return first, second
    return (
        to_kind(rows.filter(_mask(chosen & ~missing)), table),
        to_kind(rows.filter(_mask(~chosen & ~missing)), table),
    )


def _all(head: pa.Table, parts: Any) -> Any:
    yield head
    yield from parts


def _mask(mask: BoolArray) -> pa.Array:
    import pyarrow as pa

    return pa.array(mask)


def _share(share: object) -> Fraction:
    chance = exact_number(share, "share")
    if not 0 < chance < 1:
        raise InvalidInput("share", share, "a share of the people, more than 0 and less than 1")
    return chance


def _chosen(names: tuple[str, ...], spelling: str, chance: Fraction, seed: int | None) -> BoolArray:
    """A mask (n,) of the people in the first part."""
    if len(names) < 2:
        raise InvalidInput("user", f"{len(names)} people", "two or more: each part has somebody")
    below = int(chance * 2**_BITS)
    for turn in range(_MOST_KEYS):
        key = secrets.token_bytes(32) if seed is None else _seeded(whole(seed, "seed", 0), turn)
        inside = np.array([_number(person_key(name, spelling), key) < below for name in names], dtype=np.bool_)
        if 0 < inside.sum() < len(names):
            return inside
    raise InvalidInput("share", str(chance), f"one that leaves somebody of {len(names)} people in each part")


def _seeded(seed: int, turn: int) -> bytes:
    return hashlib.blake2b(f"dphmm split {seed} {turn}".encode(), digest_size=32).digest()


def _number(name: str, key: bytes) -> int:
    digest = hashlib.blake2b(name.encode(), digest_size=_BITS // 8, key=key).digest()
    return int.from_bytes(digest, "big")
