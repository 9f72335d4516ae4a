"""Trips with an origin and a destination in one row, of shared bikes and taxis, as two rows of one trip.

The columns are a start and an end each of times, and of places or of names of states, as the options say or by the
names of published sets: Citi Bike, Divvy and other systems of Lyft (started_at, ended_at, start_lat, ...), Citi Bike
before 2021, and the taxis of New York (tpep_pickup_datetime, PULocationID, ...). Places are taken where there are both.

A trip with an unreadable time, or one that ends before it begins, is rejected whole; a trip with one end that is
nowhere keeps the other end. A column names the person of a trip, or each trip has a person of its own, who is called by
the number of the row. Then one row more moves the numbers after it, and nothing else.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.storage.cells import Roles, times_of, user_column
from dphmm.storage.columns import LATEST, as_text, decimals
from dphmm.storage.csv_files import listed
from dphmm.storage.importers.folders import read_files
from dphmm.storage.importers.imported import Imported, imported_rows
from dphmm.storage.importers.intervals import plain_names, read_ends
from dphmm.storage.inputs import PathLike
from dphmm.storage.layouts import IMPORTED, Layout, Progress
from dphmm.storage.trajectories import Expansion
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa


#: Letters and digits of the names of both columns, as published sets have them, in the order in which they are tried.
_KNOWN = {
    "time": (
        "startedat endedat", "starttime stoptime", "starttime endtime", "pickupdatetime dropoffdatetime",
        "tpeppickupdatetime tpepdropoffdatetime", "lpeppickupdatetime lpepdropoffdatetime",
    ),
    "lat": ("startlat endlat", "startstationlatitude endstationlatitude", "pickuplatitude dropofflatitude"),
    "lon": (
        "startlng endlng", "startlon endlon", "startstationlongitude endstationlongitude",
        "pickuplongitude dropofflongitude",
    ),
    "state": ("startstationname endstationname", "pulocationid dolocationid"),
}  # fmt: skip
_Pair = tuple[str, str]


def import_trips(
    source: PathLike,
    *,
    time_column: str | None = None,
    state_column: str | None = None,
    lat_column: str | None = None,
    lon_column: str | None = None,
    each_trip: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> Imported:
    """Trips of a table, a folder or an archive, each as a row where it starts and one where it ends.

    ``time_column`` and so on are "START,END"; ``each_trip`` : each row is of a person of its own; other ``options`` as
    `Layout.changed` takes them. Dropped besides the reasons of times and places: invalid_interval (it ends before it
    begins). Raises InvalidInput as `read_source`, and for a table without such columns.
    """
    layout = IMPORTED.changed(**options)
    chosen = {"time": time_column, "lat": lat_column, "lon": lon_column, "state": state_column}
    rule = layout.columns.get("user") or layout.user_name or layout.user_from
    if each_trip and rule is not None:
        raise InvalidInput("each_trip", f"another rule beside it: {rule}", "one rule of whose rows they are")

    def expanding(names: Sequence[str], layout: Layout) -> Expansion:
        return _both_ends(names, layout, _pairs(names, chosen), each_trip)

    rows = read_files(source, layout, expanding=expanding, progress=progress)
    return imported_rows("trips", rows, layout, source)


def _pairs(names: Sequence[str], chosen: Mapping[str, str | None]) -> dict[str, _Pair]:
    """The columns of times, and of places or states. Raises InvalidInput where some are not there."""
    plain, pairs = plain_names(names), dict[str, _Pair]()
    for role, known in _KNOWN.items():
        if (text := chosen[role]) is not None:
            start, _, end = (part.strip() for part in text.partition(","))
            if start not in names or end not in names:
                raise InvalidInput(f"{role}_column", text, "START,END, two of " + listed(names))
            pairs[role] = start, end
        for start, end in map(str.split, known):
            if role not in pairs and {start, end} <= plain.keys():
                pairs[role] = plain[start], plain[end]
    by_name = chosen["state"] is not None and chosen["lat"] is None
    where = ("lat", "lon") if {"lat", "lon"} <= pairs.keys() and not by_name else ("state",)
    for role in ("time", *where):
        if role not in pairs:
            raise InvalidInput(f"{role}_column", "nothing", "START,END, two of " + listed(names))
    return {role: pairs[role] for role in ("time", *where)}


def _both_ends(names: Sequence[str], layout: Layout, pairs: dict[str, _Pair], each_trip: bool) -> Expansion:
    """Trips as two rows each, the start before the end."""
    rule = layout.columns.get("user") or layout.user_name or layout.user_from
    if rule is None and "user" not in names and not each_trip and len(names) > 1:
        expected = "user_column=, or each_trip=True where each trip is of a person of its own"
        raise InvalidInput("user", "no such column among " + listed(names), expected)
    user = None if each_trip else user_column(names, layout)
    begins, ends = (times_of(layout, name) for name in pairs.pop("time"))
    read = [begins.field, ends.field, *(name for pair in pairs.values() for name in pair)]
    before = 0

    def expand(trips: pa.Table) -> tuple[pa.Table, IntArray, dict[str, IntArray]]:
        import pyarrow as pa

        nonlocal before
        first, last, lost, right = read_ends(trips, begins, ends, longest=LATEST)
        origin = np.repeat(np.flatnonzero(right), 2)
        # Rows of both columns below each other, taken in turn.
        turn = origin + np.tile([0, len(trips)], len(origin) // 2)
        numbers = list(map(str, (origin + before + 1).tolist()))
        before += len(trips)
        made: dict[str, Any] = {"t": np.concatenate([first, last])[turn]}
        # A number among everybody's: as a name it is numbered within each person.
        made["trip"] = pa.array(["0" if user is None else f"trip {number}" for number in numbers], pa.string())
        made["user"] = pa.array(numbers, pa.string()) if user is None else trips.column(user).take(pa.array(origin))
        for role, pair in pairs.items():
            if role == "state":
                both = [chunk for name in pair for chunk in as_text(trips.column(name), name).chunks]
                made[role] = pa.chunked_array(both, pa.string()).take(pa.array(turn))
            else:
                made[role] = np.concatenate([decimals(trips.column(name), name)[0] for name in pair])[turn]
        return pa.table(made), origin, lost

    roles = Roles(user="user", time="t", trip="trip", **{role: role for role in pairs})
    return Expansion(tuple(dict.fromkeys([*read, *([user] if user else [])])), roles, expand, begins)
