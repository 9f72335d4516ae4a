"""Trajectories as files and tables. Canonical columns: user, t (UTC), step, lat, lon, state, trip, order.

Parts of a table become one Trajectories and a list of rejected rows; no row decides about another user's.
`load_visits` reads what a release answers: of each row it keeps a user, a state and a time or step. It puts the rows in
order in the memory that they are in.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dphmm.accounting.person import key_by
from dphmm.errors import InvalidInput
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import Counts, Trajectories, no_time_bins, not_of_time_bins, ranks, true_states
from dphmm.states.visit_table import Gathering, VisitTable
from dphmm.storage import columns
from dphmm.storage.columns import REASONS as TIME_REASONS
from dphmm.storage.columns import Numbering, Times
from dphmm.storage.csv_files import TextLayout, listed
from dphmm.storage.inputs import PathLike
from dphmm.storage.tables import column_list, delimited_names, read_rows, read_whole, to_arrow, with_places, write_table
from dphmm.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa


#: Why a row is rejected, in the order of the checks.
REASONS = (
    "",
    "missing_user",
    *TIME_REASONS,
    "invalid_step",
    "invalid_order",
    "invalid_place",
    "missing_state",
    "ragged_row",
    "invalid_state",
    "wrong_encoding",
    "missing_points",
    "invalid_interval",
    "too_many_steps",
)

#: What a reason does not say by its name.
_MEANINGS = {"invalid_place": "lat -90..90, lon -180..180 or 0..360"}
# -1 is what import writes for no trip.
_TRIP_NUMBER = re.compile(r"-1|0|[1-9][0-9]{0,8}")
_NAMES = "; columns lat and lon, or names such as the model's cells have: dphmm inspect --states lists them"


def explained(reason: str) -> str:
    """A reason for people: with the ranges of places, which its name does not tell."""
    return f"{reason} (not {_MEANINGS[reason]})" if reason in _MEANINGS else reason


class Loaded(NamedTuple):
    """Trajectories in the order of the rows, and ``rejected`` (row, reason): row numbers from 1, no values.

    ``alike``: spellings of names that were taken for other ones, and these.
    """

    trajectories: Trajectories
    rejected: pa.Table
    alike: Mapping[str, str] = {}

    @property
    def dropped(self) -> Counts:
        """Rejected rows, by reason."""
        return _by_reason(self.rejected)


@dataclass(frozen=True)
class Roles:
    """Which column of the table is what; None where there is none."""

    user: str
    time: str | None = None
    step: str | None = None
    order: str | None = None
    lat: str | None = None
    lon: str | None = None
    state: str | None = None
    trip: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns to read, each once."""
        given = (self.user, self.time, self.step, self.order, self.lat, self.lon, self.state, self.trip)
        return list(dict.fromkeys(name for name in given if name is not None))


class Cells:
    """Reads the parts of one table in turn, and records the rejected rows of all of them.

    ``bins`` and ``spelling`` as in load_trajectories. Without ``trips`` only the type of their column is checked.
    """

    def __init__(
        self,
        roles: Roles,
        assume_utc: bool = False,
        timezone: str | None = None,
        bins: int | None = None,
        well_formed: Callable[[str], bool] | None = None,
        trips: bool = True,
        time_format: str = "iso",
        spelling: str = "same",
    ) -> None:
        self._roles = roles
        self._keeps_trips = trips
        self._bins = bins
        self._well_formed = well_formed
        self.times = Times(roles.time or "t", assume_utc, timezone, time_format)
        self.users, self.states, self.trips = Numbering(key_by(spelling)), Numbering(), Numbering()
        self._n = 0
        # Of each user how many rows there were so far, those that are rejected among them.
        self._rows_of = np.zeros(0, dtype=np.int64)
        # Numbers of the rejected rows, from 0, and the reasons.
        self._rejected: list[IntArray] = []
        self._why: list[NDArray[np.int8]] = []

    def read(self, table: pa.Table) -> dict[str, NDArray[Any]]:
        """The columns of the next rows, without the rejected ones; users, states and trips by number.

        Raises InvalidInput for a column of a wrong type or of timestamps without a zone.
        """
        part: dict[str, NDArray[Any]] = {}
        why = np.zeros(len(table), dtype=np.int8)

        def mark(bad: BoolArray, reason: str) -> None:
            why[bad & (why == 0)] = REASONS.index(reason)

        roles = self._roles
        part["user"], bad = self.users.add(table.column(roles.user), roles.user)
        mark(bad, "missing_user")
        if roles.time is not None:
            part["time"], marks = self.times.add(table.column(roles.time))
            for reason in TIME_REASONS:
                mark(marks.get(reason, why > 0), reason)
        for role, name in (("step", roles.step), ("order", roles.order)):
            if name is not None:
                part[role], bad = columns.integers(table.column(name), name)
                mark(bad, f"invalid_{role}")
        if self._bins is not None and "step" in part:
            mark(not_of_time_bins(part["step"], part.get("time"), self._bins), "invalid_step")
        if roles.lat is not None and roles.lon is not None:
            part["lat"], part["lon"], bad = places_of(table, roles.lat, roles.lon)
            mark(bad, "invalid_place")
        if roles.state is not None:
            part["state"], bad = self.states.add(table.column(roles.state), roles.state)
            mark(bad, "missing_state")
            mark(self._ill_formed(part["state"]), "invalid_state")
        if roles.trip is not None:
            trips = table.column(roles.trip)
            part["trip"], _ = self.trips.add(trips if self._keeps_trips else trips.slice(0, 0), roles.trip)
        if not self._keeps_trips:
            part.pop("trip", None)
        if roles.time is roles.step is roles.order is None:
            part["place"] = self._places(part["user"])
        rejected = np.flatnonzero(why)
        if len(rejected):
            why[rejected[_illegible(table.select(roles.names).take(rejected))]] = REASONS.index("wrong_encoding")
        self._rejected.append(rejected + self._n)
        self._why.append(why[rejected])
        self._n += len(why)
        return {name: column[why == 0] for name, column in part.items()} if len(rejected) else part

    def _places(self, users: IntArray) -> IntArray:
        """How many rows of the same user stand before each row (n,): one that is rejected leaves a gap."""
        rows_of = np.bincount(users[users >= 0], minlength=len(self.users.labels))
        before = np.zeros(len(rows_of), dtype=np.int64)
        before[: len(self._rows_of)] = self._rows_of
        self._rows_of = before + rows_of
        places: IntArray = ranks(users) + np.append(before, 0)[users]
        return places

    def _ill_formed(self, states: IntArray) -> BoolArray:
        """Names (n,), by number, that do not have the required form; a missing one (-1) does not."""
        if self._well_formed is None:
            return np.zeros(len(states), dtype=np.bool_)
        ill = [not self._well_formed(label) for label in self.states.labels]
        return np.array([*ill, True], dtype=np.bool_)[states]

    @property
    def alike(self) -> dict[str, str]:
        """Spellings of names that were taken for other ones, and these."""
        return {other: self.users.labels[number] for other, number in self.users.others.items()}

    def rejected(self, source: str, ragged: Sequence[int] = (), may_be_empty: bool = False) -> pa.Table:
        """The rejected rows; ``ragged`` are the numbers of rows that are in no part.

        Raises InvalidInput, naming ``source``, where no row is left, unless it ``may_be_empty``.
        """
        import pyarrow as pa

        rejected = np.concatenate([*self._rejected, np.empty(0, np.int64)])
        why = np.concatenate([*self._why, np.empty(0, np.int8)])
        lost = np.asarray(ragged, dtype=np.int64) - 1
        if len(lost):
            # Rows of the parts are numbered without the ragged rows before them.
            rejected = rejected + np.searchsorted(lost - np.arange(len(lost)), rejected, side="right")
            rejected = np.concatenate([rejected, lost])
            why = np.concatenate([why, np.full(len(lost), REASONS.index("ragged_row"), np.int8)])
            order = np.argsort(rejected)
            rejected, why = rejected[order], why[order]
        if len(rejected) == self._n + len(lost) and not may_be_empty:
            raise self._nothing_left(source, why)
        reasons = pa.array(REASONS, pa.string()).take(pa.array(why))
        return pa.table({"row": pa.array(rejected + 1, pa.int64()), "reason": reasons})

    def _nothing_left(self, source: str, why: NDArray[np.int8]) -> InvalidInput:
        counted = {reason: int((why == code).sum()) for code, reason in enumerate(REASONS) if code}
        if not len(why):
            return InvalidInput(source, "0 rows", "at least one row with its columns, below the header if there is one")
        if counted["time_without_zone"]:
            return self.times.zone_missing()
        if counted["invalid_step"] and self._bins is not None:
            return no_time_bins(self._bins, self._roles.time is not None)
        by_reason = ", ".join(f"{rows} {explained(reason)}" for reason, rows in counted.items() if rows)
        expected = f"rows ({by_reason}){_NAMES if counted['invalid_state'] else ''}"
        return InvalidInput(source, f"0 rows that can be read of {len(why)}", expected)


class Assembler:
    """Takes parts of one table in turn; ``finish`` joins them."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._parts: list[dict[str, NDArray[Any]]] = []

    def add(self, table: pa.Table) -> None:
        """Read the next rows. Raises InvalidInput as `Cells.read`."""
        self._parts.append(self._cells.read(table))

    def finish(self, source: str, ragged: Sequence[int] = (), may_be_empty: bool = False) -> Loaded:
        """All rows. Raises InvalidInput as `Cells.rejected`."""
        rejected = self._cells.rejected(source, ragged, may_be_empty)
        joined = {name: np.concatenate([p.pop(name) for p in self._parts]) for name in list(self._parts[0])}
        return Loaded(self._trajectories(joined), rejected, self._cells.alike)

    def _trajectories(self, joined: dict[str, NDArray[Any]]) -> Trajectories:
        # A label that only rejected rows have is no user.
        seen, user = np.unique(joined["user"], return_inverse=True)
        users = tuple(np.array(self._cells.users.labels, dtype=object)[seen])
        state = joined.get("state")
        labels = None if state is None else np.array(self._cells.states.labels, dtype=object)[state]
        trip = joined.get("trip")
        trips = None if trip is None else _trip_numbers(user, trip, self._cells.trips.labels)
        order = joined.get("order")
        found = Trajectories(
            users, user.astype(np.int32), joined.get("time"), joined.get("step"), joined.get("lat"),
            joined.get("lon"), labels, trips,
        )  # fmt: skip
        if order is not None:
            found = _in_order(found, order)
        elif found.time is None and found.step is None:
            found = replace(found, step=joined["place"], counted=True)
        return found


def _illegible(table: pa.Table) -> BoolArray:
    """Rows (n,) with bytes, in a column of text, that are not of the text's encoding."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = np.zeros(len(table), dtype=np.bool_)
    for column in table.columns:
        plain = columns.plain_type(column)
        if pa.types.is_string(plain.type):
            found |= np.asarray(pc.fill_null(pc.match_substring(plain, "\x1a"), False)).astype(np.bool_)
    return found


def places_of(table: pa.Table, lat: str, lon: str) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Latitudes and longitudes (n,) in degrees, the latter from -180 to 180, and which of them are no places."""
    latitudes, bad = columns.decimals(table.column(lat), lat)
    longitudes, also_bad = columns.decimals(table.column(lon), lon)
    bad = bad | also_bad
    with np.errstate(invalid="ignore"):
        # Longitudes may be written from 0 to 360.
        bad |= ~(np.abs(latitudes) <= 90) | ~((longitudes >= -180) & (longitudes <= 360))
        longitudes = np.where(longitudes > 180, longitudes - 360, longitudes)
    return latitudes, longitudes, bad


def _trip_numbers(user: IntArray, codes: IntArray, labels: tuple[str, ...]) -> NDArray[np.int32]:
    """Trips of a user that are all numbers keep them; another user's are numbered by first appearance.

    Only that user's rows count. Rows without one share trip -1.
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
    """How many other codes of the same user appear before each row's code does (n,)."""
    pairs = user * (int(codes.max()) + 1) + codes
    _, first, which = np.unique(pairs, return_index=True, return_inverse=True)
    in_turn = np.argsort(first)
    rank = np.empty(len(first), dtype=np.int64)
    rank[in_turn] = ranks(user[first[in_turn]])
    return rank[which]


def _in_order(rows: Trajectories, order: IntArray) -> Trajectories:
    """Sorted by user, trip and order, stable; the rank becomes the step.

    Where the order begins anew in every trip, it does not say which rows of a user come first: it is not kept.
    """
    keys = (order, rows.user) if rows.trip is None else (order, rows.trip, rows.user)
    kept = None if rows.trip is not None else order
    return _with_ranks(replace(rows, order=kept).take(np.lexsort(keys)))


def _with_ranks(rows: Trajectories) -> Trajectories:
    return replace(rows, step=ranks(rows.user), counted=True)


# Names under which a place is found when none is given.
_LATITUDES = ("lat", "latitude")
_LONGITUDES = ("lon", "lng", "long", "longitude")


def load_trajectories(
    path: PathLike,
    *,
    user_column: str | None = None,
    time_column: str | None = None,
    order_column: str | None = None,
    trip_column: str | None = None,
    state_column: str | None = None,
    lat_column: str | None = None,
    lon_column: str | None = None,
    assume_utc: bool = False,
    timezone: str | None = None,
    delimiter: str = ",",
    bins: int | None = None,
    may_be_empty: bool = False,
    space: StateSpace | None = None,
    spelling: str = "same",
) -> Loaded:
    """Trajectories of a Parquet or CSV file, and the rejected rows (row number and reason, no values).

    Rows count from 1 after the header, as in the table that the file holds.

    How a row is read depends on the names and types of the columns, on the arguments, and on the rows of its user. All
    rows of one user can be added or removed, and nothing changes for the others (docs/proofs/records.md).

    Columns default to user, t, step, trip, state, lat (latitude) and lon (lng, longitude) where they exist.
    Times are timestamps with a zone or ISO 8601 text with one. Those without are UTC with ``assume_utc``, and what
    the clocks of ``timezone`` ("Europe/Berlin") showed; without either they are rejected.
    ``delimiter`` separates the cells of CSV. ``order_column`` says which row of a user (of a trip) comes first: rows
    are sorted by it and numbered, and the time is read only if ``time_column`` is given. Without times or steps a
    column ``order`` is one. Without time, step or order every row of a user is a step; one that is rejected leaves a
    gap.
    ``state_column`` makes places unnecessary. Rejected: missing_user, time_without_zone, nonexistent_time and
    ambiguous_time (clocks were put forward or back), invalid_time, invalid_step, invalid_order, invalid_place,
    missing_state. ``space``: of whose states the rows are; then only what says where somebody is in it is read (on a
    map places, or without them names of cells; elsewhere names), and a name that cannot be one of its kind is rejected
    too: invalid_state. ``spelling``: by which rule names are of one person, `dphmm.accounting.person.SPELLINGS`; a
    person is called as in the first of its rows.

    Raises InvalidInput as read_table does, for a column that is not there or cannot be meant, for times of which
    none has a zone, and if no row is left.
    """
    given = {
        "user": user_column, "time": time_column, "order": order_column, "trip": trip_column,
        "state": state_column, "lat": lat_column, "lon": lon_column,
    }  # fmt: skip
    layout = TextLayout(delimiter)
    roles = needed_roles(column_roles(delimited_names(path, layout), given), space)
    well_formed = None if space is None else space.well_formed
    assembler = Assembler(Cells(roles, assume_utc, timezone, bins, well_formed, spelling=spelling))
    rows = read_rows(path, roles.names, layout)
    for part in rows.parts:
        assembler.add(part)
    return assembler.finish(str(path), rows.ragged, may_be_empty)


def save_trajectories(path: PathLike, trajectories: Trajectories, *, inputs: Iterable[PathLike] = ()) -> None:
    """Write the canonical columns that there are, at once or not at all; ``inputs`` must not be replaced."""
    write_table(Path(path), trajectories.to_arrow(), inputs=inputs)


def trajectories_from_table(
    table: Any,
    *,
    assume_utc: bool = False,
    timezone: str | None = None,
    space: StateSpace | None = None,
    may_be_empty: bool = False,
    spelling: str = "same",
    **columns: str | None,
) -> Loaded:
    """The same from a pandas, polars or Arrow table, which stays as it is.

    ``space``, ``spelling`` and ``columns`` as in load_trajectories. ``may_be_empty``: no row needs to be one that can
    be read. A GeoDataFrame without columns of places or states has those of its points, in degrees.
    """
    unknown = set(columns) - {f"{role}_column" for role in ROLES}
    if unknown:
        raise InvalidInput("columns", min(unknown), "one of " + ", ".join(f"{role}_column" for role in ROLES))
    given = {role: columns.get(f"{role}_column") for role in ROLES}
    table = read_whole(table)
    if not any(given[role] for role in ("lat", "lon", "state")):
        table = located(table)
    roles = needed_roles(column_roles(column_list(table), given), space)
    well_formed = None if space is None else space.well_formed
    cells = Cells(roles, assume_utc, timezone, well_formed=well_formed, spelling=spelling)
    assembler = Assembler(cells)
    assembler.add(to_arrow(table, roles.names))
    return assembler.finish("table", may_be_empty=may_be_empty)


def located(table: Any, *, each: bool = False) -> Any:
    """A table as it is; a GeoDataFrame without columns of places or states with those of its points, in degrees.

    Raises, and ``each``, as `with_places`.
    """
    return with_places(table, (*_LATITUDES, *_LONGITUDES, "state"), each=each)


#: What a column may be.
ROLES = ("user", "time", "order", "trip", "state", "lat", "lon")


def column_roles(names: Sequence[str], given: dict[str, str | None]) -> Roles:
    """Which column is what, from the names there are and those that were given."""
    for role, name in given.items():
        if name is not None and name not in names:
            raise InvalidInput(f"{role}_column", name, "one of " + listed(names))
    order = given["order"]
    if order is None and given["time"] is None and not {"t", "step"} & set(names):
        order = _first(names, ("order",))
    ordered = order is not None
    user = given["user"] or _first(names, ("user",))
    if user is None:
        raise InvalidInput("user", "no such column among " + listed(names), "a column user, or user_column=")
    time = given["time"] or (None if ordered else _first(names, ("t",)))
    step = None if ordered else _first(names, ("step",))
    lat, lon = given["lat"] or _first(names, _LATITUDES), given["lon"] or _first(names, _LONGITUDES)
    if given["state"] is not None and given["lat"] is None:
        lat = lon = None
    state = given["state"] or _first(names, ("state",))
    if (lat is None or lon is None) and state is None:
        raise InvalidInput("place", "columns " + listed(names), "lat and lon, or state (state_column=)")
    trip = given["trip"] or _first(names, ("trip",))
    if lat is None or lon is None:
        lat = lon = None
    return Roles(user, time, step, order, lat, lon, state, trip)


def needed_roles(roles: Roles, space: StateSpace | None) -> Roles:
    """The columns that say where somebody is in a space; InvalidInput for a table that cannot be of its states."""
    if space is None:
        return roles
    if space.on_map:
        return roles if roles.lat is None else replace(roles, state=None)
    if roles.state is None:
        raise InvalidInput("lat, lon", "places", "a state column: the model's states are not places")
    return replace(roles, lat=None, lon=None)


def _first(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    return next((name for name in wanted if name in names), None)


#: Looks at the columns of each part of a table, and at the names that numbers of states stand for.
Watch = Callable[[Mapping[str, NDArray[Any]], Sequence[str]], None]


class LoadedVisits(NamedTuple):
    """The rows to answer, and ``rejected`` (row, reason): row numbers from 1, no values.

    ``alike``: spellings that were taken for other ones, and these.
    """

    visits: VisitTable
    rejected: pa.Table
    alike: Mapping[str, str] = {}

    @property
    def dropped(self) -> Counts:
        """Rejected rows, by reason."""
        return _by_reason(self.rejected)


def _by_reason(rejected: pa.Table) -> Counts:
    reasons = rejected.column("reason").to_pylist()
    return Counts({reason: reasons.count(reason) for reason in set(reasons)})


def load_visits(
    path: PathLike,
    space: StateSpace,
    seconds: int | None = None,
    answer: str = "last",
    *,
    state_column: str | None = None,
    spelling: str = "same",
    watch: Watch | None = None,
) -> LoadedVisits:
    """The rows of a Parquet or CSV file that a model with steps of so many ``seconds`` answers.

    As ``VisitTable.of(load_trajectories(path, ...).trajectories, space, seconds, answer)``, without holding the rows:
    12 to 20 bytes are kept of each. A column of steps that are those of the times, as they must be, is not kept.
    ``watch`` is called with each part that is read, and all names of states so far.

    Raises InvalidInput as `load_trajectories` and `VisitTable.of`.
    """
    given = dict.fromkeys(ROLES) | {"state": state_column}
    roles = needed_roles(column_roles(delimited_names(path), given), space)
    if roles.trip is not None:
        # An order within trips does not say which rows of a user come first.
        roles = replace(roles, order=None)
    cells = Cells(roles, bins=seconds, well_formed=space.well_formed, trips=False, spelling=spelling)
    rows = read_rows(path, roles.names)
    stepped = roles.step is not None and (roles.time is None or seconds is None)
    gathering = _gathered(rows.parts, cells, stepped, space, seconds, answer, watch)
    rejected = cells.rejected(str(path), rows.ragged)
    in_bins = seconds is not None and roles.step is None
    visits = gathering.finish(cells.users.labels, in_bins=in_bins, ordered=roles.order is not None)
    return LoadedVisits(visits, rejected, cells.alike)


def visits_from_table(
    table: pa.Table, space: StateSpace, seconds: int | None = None, answer: str = "last", spelling: str = "same"
) -> LoadedVisits:
    """The rows of an Arrow table with user, t or step, and state or place, that such a model answers.

    As ``VisitTable.of(trajectories_from_table(table, space=space, may_be_empty=True).trajectories, space, seconds,
    answer)``, without making trajectories where no row's step is judged by those of others.

    Raises InvalidInput as these do.
    """
    roles = needed_roles(column_roles(table.column_names, dict.fromkeys(ROLES)), space)
    if roles.trip is not None:
        roles = replace(roles, order=None)
    if (roles.step is not None and seconds is not None) or (roles.step is roles.time is roles.order is None):
        loaded = trajectories_from_table(table, space=space, may_be_empty=True, spelling=spelling)
        return LoadedVisits(VisitTable.of(loaded.trajectories, space, seconds, answer), loaded.rejected)
    cells = Cells(roles, well_formed=space.well_formed, trips=False, spelling=spelling)
    gathering = _gathered([table], cells, roles.step is not None, space, seconds, answer)
    visits = gathering.finish(cells.users.labels, ordered=roles.order is not None)
    return LoadedVisits(visits, cells.rejected("table", may_be_empty=True))


def _gathered(
    tables: Iterable[pa.Table],
    cells: Cells,
    stepped: bool,
    space: StateSpace,
    seconds: int | None,
    answer: str,
    watch: Watch | None = None,
) -> Gathering:
    """The rows of the parts of a table; the numbers of steps where these count."""
    gathering = Gathering(space, seconds, answer)
    for table in tables:
        part = cells.read(table)
        if watch is not None:
            watch(part, cells.states.labels)
        codes = gathering.codes_of(*_states(part, cells.states.labels, space))
        gathering.add(part["user"], codes, part.get("order", part.get("time")), part["step"] if stepped else None)
    return gathering


def _states(part: dict[str, NDArray[Any]], labels: tuple[str, ...], space: StateSpace) -> tuple[IntArray, BoolArray]:
    """The states of the rows (n,) of a part, and which of them are in none."""
    if "state" in part and not ("lat" in part and space.on_map):
        numbers = np.array([space.index_of(label) for label in labels], dtype=np.int64)
        states = numbers[part["state"]]
        return states, states < 0
    rows = Trajectories(("",), np.zeros(len(part["user"]), np.int32), lat=part.get("lat"), lon=part.get("lon"))
    return true_states(rows, space)
