"""Trajectories of tables, files, folders and archives: user, t (UTC), step, lat, lon, state, trip, order.

`read_source` goes through a source once: parts of its rows (`read_rows`) get the names of people where files have them,
and `CellReader` judges each cell. `load_trajectories` keeps every column; `load_visits` keeps of each row what a
release answers, a user, a state and a time or step, in the order in which it is answered. No row decides about another
one.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphmm.errors import InvalidInput
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import NOWHERE, Counts, Trajectories, ranks, true_states
from dphmm.states.visit_table import Gathering, VisitTable
from dphmm.storage import columns
from dphmm.storage.cells import OWNER, CellReader, Places, Roles, as_utf8, column_roles, nothing_left
from dphmm.storage.columns import Times
from dphmm.storage.csv_files import listed, looks_like_data
from dphmm.storage.inputs import PathLike
from dphmm.storage.layouts import Layout, Progress
from dphmm.storage.tables import Rows, read_rows, write_table
from dphmm.types import BoolArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


class Loaded(NamedTuple):
    """Trajectories in the order of the rows, and ``rejected`` (row, reason): row numbers from 1, no values.

    ``alike``: spellings of names that were taken for other ones, and these. ``without_place``: the number of rows with
    empty cells there that are not rejected.
    """

    trajectories: Trajectories
    rejected: pa.Table
    alike: Mapping[str, str] = {}
    without_place: int = 0

    @property
    def dropped(self) -> Counts:
        """Rejected rows, by reason."""
        return Counts(by_reason(self.rejected))


class LoadedVisits(NamedTuple):
    """The rows of a release, and ``rejected``, ``alike`` and ``without_place`` as in `Loaded`."""

    visits: VisitTable
    rejected: pa.Table
    alike: Mapping[str, str] = {}
    without_place: int = 0


def by_reason(rejected: pa.Table) -> dict[str, int]:
    """The number of rejected rows, by reason."""
    counted = rejected.column("reason").value_counts().to_pylist()
    return {each["values"]: each["counts"] for each in sorted(counted, key=lambda each: str(each["values"]))}


def load_trajectories(
    source: Any,
    *,
    user_column: str | None = None,
    time_column: str | None = None,
    order_column: str | None = None,
    trip_column: str | None = None,
    state_column: str | None = None,
    lat_column: str | None = None,
    lon_column: str | None = None,
    timezone: str | None = None,
    fold: str | None = None,
    delimiter: str | None = None,
    decimal: str | None = None,
    bins: int | None = None,
    may_be_empty: bool = False,
    space: StateSpace | None = None,
    spelling: str = "same",
) -> Loaded:
    """Trajectories of a Parquet or CSV file, or of a pandas, polars or Arrow table, and the rejected rows.

    Rejected rows are told by number and reason, without values; rows count from 1 after the header.

    The reading of a row depends on the names and types of columns, on the arguments, and on the rows of its user. All
    rows of one user can be added or removed, and nothing changes for the others (docs/proofs/records.md).

    Columns default to user, t, step, trip, state, lat (latitude) and lon (lng, longitude) where they exist; a
    GeoDataFrame without columns of places or states has those of its points, in degrees.
    Times are timestamps with a zone or ISO 8601 text with one. Those without are what the clocks of
    ``timezone`` ("UTC", "Europe/Berlin") showed; without it they are rejected. ``fold``: the "first" or
    "second" of an hour that clocks show twice; without it such times are rejected.
    ``delimiter`` separates the cells of CSV, ``decimal`` ("point" or "comma") the fraction of degrees. ``order_column``
    says which row of a user (of a trip) comes first: rows are sorted by it and numbered, and the time is read only if
    ``time_column`` is given. Without times or steps a column ``order`` is one. Without time, step or order every row of
    a user is a step. Where steps are ranks of rows, by time, by order or as they stand, a row without a place is a step
    too, with an empty place. It is rejected unless its cells there are empty. ``state_column`` makes places
    unnecessary. Rejected: missing_user, time_without_zone, nonexistent_time and ambiguous_time (clocks were put forward
    or back), invalid_time, invalid_step, invalid_order, invalid_place,
    missing_state. ``space``: of whose states the rows are; then only what says where somebody is in it is read (on a
    map places, or without them names of cells; elsewhere names), and a name that cannot be one of its kind is rejected
    too: invalid_state. ``bins``: steps have to be time bins of so many seconds. ``spelling``: by which rule names are
    of one person, `dphmm.accounting.person.SPELLINGS`; a person is called as in the first of its rows.

    Raises InvalidInput as read_table does, for a column that is not there or cannot be meant, for times of which
    none has a zone, and, unless it ``may_be_empty``, if no row is left.
    """
    named = {
        "user": user_column, "time": time_column, "order": order_column, "trip": trip_column,
        "state": state_column, "lat": lat_column, "lon": lon_column,
    }  # fmt: skip
    layout = Layout(columns=named, timezone=timezone, fold=fold, spelling=spelling)
    layout = layout.changed(delimiter=delimiter, decimal=decimal)
    return read_source(source, layout, space=space, bins=bins, may_be_empty=may_be_empty).loaded


def save_trajectories(path: PathLike, trajectories: Trajectories, *, inputs: Sequence[PathLike] = ()) -> None:
    """Write the canonical columns that there are, at once or not at all; ``inputs`` must not be replaced."""
    write_table(Path(path), trajectories.to_arrow(), inputs=inputs)


#: Looks at the columns of each part of a table, and at the names that numbers of states stand for.
Watch = Callable[[Mapping[str, NDArray[Any]], Sequence[str]], None]


def load_visits(
    source: Any,
    space: StateSpace,
    seconds: int | None = None,
    answer: str = "last",
    *,
    state_column: str | None = None,
    timezone: str | None = None,
    spelling: str = "same",
    may_be_empty: bool = False,
    watch: Watch | None = None,
) -> LoadedVisits:
    """The rows of a table that a model with steps of so many ``seconds`` answers.

    As ``VisitTable.of(load_trajectories(source, ...).trajectories, space, seconds, answer)``, without holding the rows:
    12 to 20 bytes are kept of each. A column of steps that are those of the times, as they must be, is not kept.
    ``watch`` is called with each part that is read, and all names of states so far.

    Raises InvalidInput as `load_trajectories` and `VisitTable.of`.
    """
    rows = read_rows(source)
    layout = Layout(columns={"state": state_column}, timezone=timezone, spelling=spelling)
    roles = column_roles(rows.names, layout, space)
    if roles.trip is not None:
        # An order within trips does not say which rows of a user come first.
        roles = replace(roles, order=None)
    cells = CellReader(roles, layout, bins=seconds, well_formed=space.well_formed, ranked=False)
    stepped = roles.step is not None and (roles.time is None or seconds is None)
    gathering = Gathering(space, seconds, answer)
    for table in rows.parts(roles.names):
        part = cells.read(table)
        if watch is not None:
            watch(part, cells.states.labels)
        codes = gathering.codes_of(*_states(part, cells.states.labels, space))
        gathering.add(part["user"], codes, part.get("order", part.get("time")), part["step"] if stepped else None)
    in_bins = seconds is not None and roles.step is None
    visits = gathering.finish(cells.users.labels, in_bins=in_bins, ordered=roles.order is not None)
    places = Places()
    places.end_of_file(rows.name, cells.n_rows, dict.fromkeys(rows.ragged, "ragged_row"))
    rejected = places.rejected(*cells.rejected(), several=False)
    if not visits.n_placed and not may_be_empty:
        total = cells.n_rows + places.lost
        raise nothing_left(rows.name, total, rejected.column("reason").to_pylist(), cells, cells.times, None, ())
    return LoadedVisits(visits, rejected, cells.alike, cells.without_place)


def _states(part: dict[str, NDArray[Any]], labels: tuple[str, ...], space: StateSpace) -> tuple[IntArray, BoolArray]:
    """The states of the rows (n,) of a part, and which of them are in none."""
    if "state" in part and not ("lat" in part and space.on_map):
        numbers = np.array([space.index_of(label) for label in labels], dtype=np.int64)
        # Number -1, of a row without a state, is the last place.
        states = np.append(numbers, NOWHERE)[part["state"]]
        return states, states < 0
    rows = Trajectories(("",), np.zeros(len(part["user"]), np.int32), lat=part.get("lat"), lon=part.get("lon"))
    return true_states(rows, space)


@dataclass(frozen=True)
class Expansion:
    """The expansion of trips or intervals to other rows, with the columns of ``roles``.

    ``read`` : the columns that it takes. ``expand`` gives a table, for each of its rows the number of the row, from 0,
    that it is of, and the rows, by reason, that make none. ``times`` : the reader of its times.
    """

    read: tuple[str, ...]
    roles: Roles
    expand: Callable[[pa.Table], tuple[pa.Table, IntArray, dict[str, IntArray]]]
    times: Times


#: Of the names of the columns and a layout, the expansion.
Expanding = Callable[[Sequence[str], Layout], Expansion]


class SourceRows(NamedTuple):
    """The rows that were read of a source: the numbers of ``rows`` and of ``files``, and ``notes`` on the reading."""

    loaded: Loaded
    rows: int
    files: int
    notes: tuple[str, ...]
    #: The names of the columns, and whether one of them numbers steps.
    names: tuple[str, ...]
    stepped: bool


def read_source(
    source: Any,
    layout: Layout,
    *,
    expanding: Expanding | None = None,
    progress: Progress | None = None,
    space: StateSpace | None = None,
    bins: int | None = None,
    may_be_empty: bool = False,
) -> SourceRows:
    """The rows of a table or a file of one layout; with ``expanding``, their expansion.

    ``rejected`` has (row, reason); rows count from 1 after the header. Raises InvalidInput for a source without rows
    that can be read, with the commonest reason, and as `load_trajectories`.
    """
    rows = source if isinstance(source, Rows) else read_rows(source, layout)
    owner = _owner_of_all(Path(rows.name).name, layout)
    reader = Reader(rows.names, rows.types, layout, rows.name, expanding, space, bins)
    for part in rows.parts(reader.read):
        reader.add(part, owner)
    reader.end_of_file(rows.name, dict.fromkeys(rows.ragged, "ragged_row"))
    if progress is not None:
        progress(1, 1)
    return reader.finish((), several=False, may_be_empty=may_be_empty)


def _owner_of_all(name: str, layout: Layout) -> str | None:
    """The user of all rows of one file, where no column says it."""
    if layout.user_from is None:
        return layout.user_name
    if layout.user_from == "folder-name":
        raise InvalidInput("user_from", layout.user_from, "a folder or an archive with it; file-name for one file")
    owner = layout.owner_of(name)
    if owner is None:
        raise InvalidInput("user_pattern", layout.user_pattern, "one that the name of the file matches")
    return owner


# Rows gathered from small files before their cells are read together.
_ENOUGH = 1 << 19
#: Rows that are looked at for the form of what cannot be read.
_SAMPLE = 200


class Reader:
    """Gathers the rows of a source: numbers them by file, gives them their users, and reads their cells."""

    def __init__(
        self,
        names: Sequence[str],
        types: Mapping[str, Any],
        layout: Layout,
        source: str,
        expanding: Expanding | None = None,
        space: StateSpace | None = None,
        bins: int | None = None,
    ) -> None:
        self._source, self._names, self._layout = source, tuple(names), layout
        self._notes = list[str]()
        self._expansion = None if expanding is None else expanding(names, layout)
        if self._expansion is None:
            self.roles = column_roles(names, layout, space)
            if layout.importing:
                self._notes += _unnamed_times(names, types, self.roles, layout)
            well_formed = None if space is None else space.well_formed
            self._cells = CellReader(self.roles, layout, bins=bins, well_formed=well_formed)
            self._times, wanted = self._cells.times, self.roles.names
        else:
            self.roles = self._expansion.roles
            self._cells = CellReader(
                self.roles, Layout(time_format="unix-us", spelling=layout.spelling, importing=True)
            )
            self._times, wanted = self._expansion.times, list(self._expansion.read)
        self.read = [name for name in wanted if name != OWNER]
        #: Columns that a file of a folder may lack.
        self.optional = {self.roles.trip} - {None} if self._expansion is None else set[str | None]()
        self._needs_owner = OWNER in wanted
        self._parts = list[dict[str, NDArray[Any]]]()
        self._waiting, self._gathered = list[Any](), 0
        self._sample: Any = None
        # Of every row that was read its number in the source, where these are not the same.
        self._origins, self._lost = list[IntArray](), list[tuple[int, str]]()
        self._rows, self._places = 0, Places()

    def add(self, part: pa.Table, owner: str | None) -> None:
        """The next rows of a file, and whose they are where no column says it."""
        import pyarrow as pa

        if self._needs_owner:
            name = pa.scalar(legible_name(owner), pa.string())
            part = part.append_column(OWNER, pa.repeat(name, len(part)))
        self._waiting.append(part)
        self._gathered += len(part)
        if self._gathered >= _ENOUGH:
            self._read_cells()

    def end_of_file(self, name: str, ragged: Mapping[int, str]) -> None:
        """End a file: the next rows are of another one. ``ragged`` are the rows of this one in no part, and why."""
        self._places.end_of_file(name, self._rows + self._gathered, ragged)

    def _read_cells(self) -> None:
        import pyarrow as pa

        if not self._waiting:
            empty = pa.table({name: pa.array([], pa.string()) for name in [*self.read, OWNER]})
            self._waiting.append(empty.select([*self.read, OWNER][: len(self.read) + self._needs_owner]))
        rows = pa.concat_tables(self._waiting)
        self._waiting.clear()
        self._gathered = 0
        if self._sample is None:
            self._sample = rows.slice(0, _SAMPLE)
        first = self._rows
        self._rows += len(rows)
        if self._expansion is not None:
            rows, origin, lost = self._expansion.expand(rows)
            self._origins.append(origin + first)
            self._lost += [(first + int(row), reason) for reason, of in lost.items() for row in of]
        self._parts.append(self._cells.read(rows))

    def finish(self, notes: Sequence[str], several: bool, may_be_empty: bool = False) -> SourceRows:
        """All rows, and what to tell of them. Raises InvalidInput where none is left, unless it ``may_be_empty``."""
        self._read_cells()
        joined = {name: np.concatenate([p.pop(name) for p in self._parts]) for name in list(self._parts[0])}
        rows, reasons = self._cells.rejected()
        if self._expansion is not None:
            rows = np.concatenate(
                [np.concatenate(self._origins)[rows], np.array([row for row, _ in self._lost], np.int64)]
            )
            reasons += [reason for _, reason in self._lost]
        rejected = self._places.rejected(rows, reasons, several)
        total = self._rows + self._places.lost
        swapped = _swapped(self._sample, self.roles, self._layout)
        trajectories = self._trajectories(joined)
        if trajectories.blank.all() and not may_be_empty:
            causes = rejected.column("reason").to_pylist()
            raise nothing_left(self._source, total, causes, self._cells, self._times, self._sample, swapped)
        units = " and ".join(f"{called} ({rows} rows)" for called, rows in self._times.units.items())
        field = "times" if self.roles.time == OWNER else self._times.field
        taken = [f"{field}: taken as {units}"] if units else []
        if of_others := self._cells.of_others:
            named = f"of another {self.roles.lifecycle} than {self._cells.lifecycle}"
            taken.append(f"left out: {of_others:,} rows {named}; lifecycle=all keeps them")
        loaded = Loaded(trajectories, rejected, self._cells.alike, self._cells.without_place)
        notes = (*self._notes, *notes, *taken, *swapped)
        return SourceRows(loaded, total, len(self._places.files), notes, self._names, self.roles.step is not None)

    def _trajectories(self, joined: dict[str, NDArray[Any]]) -> Trajectories:
        cells = self._cells
        if "trip" in joined:
            joined["trip"] = _trip_numbers(joined["user"], joined["trip"], cells.trips.labels)
        if "order" in joined:
            in_order = np.lexsort([joined[name] for name in ("order", "trip", "user") if name in joined])
            joined = {name: column[in_order] for name, column in joined.items()}
            joined["step"] = ranks(joined["user"])
            if "trip" in joined:
                # Where the order begins anew in every trip, it does not say which rows of a user come first.
                del joined["order"]
        # A label that only rejected rows have is no user.
        seen, user = np.unique(joined["user"], return_inverse=True)
        state = joined.get("state")
        return Trajectories(
            tuple(np.array(cells.users.labels, dtype=object)[seen]),
            user.astype(np.int32),
            time=joined.get("time"),
            step=joined.get("step"),
            lat=joined.get("lat"),
            lon=joined.get("lon"),
            # Number -1, of a row without a state, is the last place.
            state=None if state is None else np.array([*cells.states.labels, None], dtype=object)[state],
            trip=joined.get("trip"),
            order=joined.get("order"),
            counted="order" in joined or self.roles.order is not None,
        )


def legible_name(name: str | None) -> str | None:
    """The name of a file as a user; none where its bytes are not UTF-8, which no table holds."""
    return name if name is None or as_utf8(name) == name else None


_TIME_WORDS = frozenset({"t", "ts", "time", "times", "date", "day", "when", "moment", "epoch", "unix", "utc"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def looks_like_times(name: str) -> bool:
    """True if a column's name suggests times: t_local, timestamp, pickup_datetime, eventTime."""
    words = [word.lower() for word in _WORD.findall(name)]
    return any(word in _TIME_WORDS or word.endswith(("time", "stamp", "times")) for word in words)


def _unnamed_times(names: Sequence[str], types: Mapping[str, Any], roles: Roles, layout: Layout) -> list[str]:
    """The notes on columns that likely have times, and are not read.

    Raises InvalidInput if nothing else gives the order of rows.
    """
    import pyarrow as pa

    likely = [
        name
        for name in names
        if name not in roles.names and (looks_like_times(name) or pa.types.is_timestamp(types.get(name, pa.null())))
    ]
    if not likely or looks_like_data(names) or (layout.no_times and not layout.header):
        return []
    if layout.no_times:
        return [f"{listed(likely)}: not read, rows are in the order of the file"]
    if roles.time is not None or layout.columns.get("order") is not None:
        return []
    first = listed(likely[:1])
    if roles.step is None:
        expected = f"time_column={first}, or no_times=True to take rows in the order of the file"
        raise InvalidInput("time", f"no column t, but {listed(likely)}", expected)
    return [f"{listed(likely)}: not read, steps count; time_column={first} takes it"]


def _swapped(sample: pa.Table | None, roles: Roles, layout: Layout) -> list[str]:
    """A hint, where most latitudes are beyond 90 and their longitudes are not."""
    if sample is not None and roles.lat in sample.column_names and roles.lon in sample.column_names:
        lat, lon = (
            columns.decimals(sample.column(name), str(name), layout.decimal)[0] for name in (roles.lat, roles.lon)
        )
        with np.errstate(invalid="ignore"):
            odd = (np.abs(lat) > 90) & (np.abs(lat) <= 360) & (np.abs(lon) <= 90)
        if 2 * odd.sum() > len(sample):
            return [f"{roles.lat} is beyond 90 where {roles.lon} is not: are they swapped ({layout.unswapping})?"]
    return []


# -1 is what import writes for no trip.
_TRIP_NUMBER = re.compile(r"-1|0|[1-9][0-9]{0,8}")


def _trip_numbers(user: IntArray, codes: IntArray, labels: tuple[str, ...]) -> NDArray[np.int32]:
    """Trips of a user that are all numbers keep them; another user's are numbered by first appearance.

    Rows without a trip share trip -1.
    """
    plain = [_TRIP_NUMBER.fullmatch(label) is not None for label in labels]
    numbers = np.array([*(int(label) if fine else -1 for label, fine in zip(labels, plain, strict=True)), -1])
    trips = numbers[codes].astype(np.int32)
    odd = np.unique(user[~np.array([*plain, True])[codes]])
    renumbered = np.flatnonzero(np.isin(user, odd) & (codes >= 0))
    if len(renumbered):
        trips[renumbered] = _by_appearance(user[renumbered], codes[renumbered])
    return trips


def _by_appearance(user: IntArray, codes: IntArray) -> IntArray:
    """The number of other codes of the same user that appear before each row's code (n,)."""
    pairs = user * (int(codes.max()) + 1) + codes
    _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    in_turn = np.argsort(first)
    rank = np.empty(len(first), dtype=np.int64)
    rank[in_turn] = ranks(user[first[in_turn]])
    return rank[which]
