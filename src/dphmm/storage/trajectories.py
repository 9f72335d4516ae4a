"""Trajectories as files and tables. Canonical columns: user, t (UTC), step, lat, lon, state, trip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.errors import InvalidInput
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import Trajectories
from dphmm.storage.assembling import Assembler, Loaded, Roles
from dphmm.storage.delimited import delimited_names, read_rows
from dphmm.storage.headers import listed
from dphmm.storage.inputs import PathLike
from dphmm.storage.tables import write_table

if TYPE_CHECKING:
    import pyarrow as pa

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
) -> Loaded:
    """Trajectories of a Parquet or CSV file, and the rows that were set aside (row number and reason, no values).

    Rows count from 1 after the header, as in the table that the file holds.

    What becomes of a row depends on the names and types of the columns, on the arguments, and on the rows of its user:
    adding or removing everything of one user changes nothing of the others (docs/proofs/records.md).

    Columns default to user, t, step, trip, state, lat (latitude) and lon (lng, longitude) where they exist.
    Times are timestamps with a zone or ISO 8601 text with one. Those without are UTC with ``assume_utc``, and what
    the clocks of ``timezone`` ("Europe/Berlin") showed; without either they are set aside.
    ``delimiter`` separates the cells of CSV. ``order_column`` says which row of a user (of a trip) comes first: rows
    are sorted by it and numbered, and the time is read only if ``time_column`` is given. Without time, step or order
    every row is a step.
    ``state_column`` makes places unnecessary. Set aside: missing_user, time_without_zone, nonexistent_time and
    ambiguous_time (clocks were put forward or back), invalid_time, invalid_step, invalid_order, invalid_place,
    missing_state. ``space``: of whose states the rows are; then only what says where somebody is in it is read (on a
    map places, or without them names of cells; elsewhere names), and a name that cannot be one of its kind is set aside
    too: invalid_state.

    Raises InvalidInput as read_table does, for a column that is not there or cannot be meant, for times of which
    none has a zone, and if no row is left.
    """
    given = {
        "user": user_column, "time": time_column, "order": order_column, "trip": trip_column,
        "state": state_column, "lat": lat_column, "lon": lon_column,
    }  # fmt: skip
    roles = _needed(column_roles(delimited_names(path, delimiter), given), space)
    assembler = Assembler(roles, assume_utc, timezone, bins, None if space is None else space.well_formed)
    rows = read_rows(path, roles.names, delimiter)
    for part in rows.parts:
        assembler.add(part)
    return assembler.finish(str(path), rows.ragged, may_be_empty)


def save_trajectories(path: PathLike, trajectories: Trajectories, *, inputs: Iterable[PathLike] = ()) -> None:
    """Write the canonical columns that there are, at once or not at all; ``inputs`` must not be replaced."""
    write_table(Path(path), trajectories_table(trajectories), inputs=inputs)


def trajectories_table(trajectories: Trajectories) -> pa.Table:
    """The canonical Arrow table: user text, t timestamp[us, UTC], step, lat, lon, state, trip."""
    import pyarrow as pa

    users = pa.array(trajectories.users, pa.string())
    columns: dict[str, Any] = {"user": pa.DictionaryArray.from_arrays(trajectories.user, users).cast(pa.string())}
    if trajectories.time is not None:
        columns["t"] = pa.array(trajectories.time, pa.int64()).cast(pa.timestamp("us", "UTC"))
    for name in ("step", "lat", "lon", "state", "trip"):
        column = getattr(trajectories, name)
        if column is not None:
            columns[name] = pa.array(column, pa.string() if name == "state" else pa.from_numpy_dtype(column.dtype))
    return pa.table(columns)


def trajectories_from_table(
    table: Any,
    *,
    assume_utc: bool = False,
    timezone: str | None = None,
    space: StateSpace | None = None,
    **columns: str | None,
) -> Loaded:
    """The same from a pandas, polars or Arrow table, which stays as it is.

    ``space`` and ``columns`` as in load_trajectories.
    """
    from dphmm.storage.frames import column_list, to_arrow

    unknown = set(columns) - {f"{role}_column" for role in _ROLES}
    if unknown:
        raise InvalidInput("columns", min(unknown), "one of " + ", ".join(f"{role}_column" for role in _ROLES))
    given = {role: columns.get(f"{role}_column") for role in _ROLES}
    roles = _needed(column_roles(column_list(table), given), space)
    assembler = Assembler(roles, assume_utc, timezone, well_formed=None if space is None else space.well_formed)
    assembler.add(to_arrow(table, roles.names))
    return assembler.finish("table")


_ROLES = ("user", "time", "order", "trip", "state", "lat", "lon")


def column_roles(names: Sequence[str], given: dict[str, str | None]) -> Roles:
    """Which column is what, from the names there are and those that were given."""
    for role, name in given.items():
        if name is not None and name not in names:
            raise InvalidInput(f"{role}_column", name, "one of " + listed(names))
    ordered = given["order"] is not None
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
    return Roles(user, time, step, given["order"], lat, lon, state, trip)


def _needed(roles: Roles, space: StateSpace | None) -> Roles:
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
