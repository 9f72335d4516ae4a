"""Importers of published sets of rows: each is a layout, registered in `RECIPES` under its name.

- Gowalla check-ins as SNAP has them (loc-gowalla_totalCheckins.txt): user, time, lat, lon, location by tabs.
- Cabspotting (CRAWDAD epfl/mobility): a file new_CAB.txt per cab: latitude, longitude, occupied, Unix seconds by
  blanks, newest first. The user is the cab in the file's name; other files, such as _cabs.txt, are left out.
- T-Drive (Microsoft Research): a file per taxi: taxi, local time of Beijing, longitude, latitude.
- Foursquare (TSMC2014, New York and Tokyo): user, venue, category id, category, latitude, longitude, offset from UTC in
  minutes, and the time in UTC, by tabs, in Latin-1.
- Porto taxis (ECML/PKDD 2015, UCI): a trip a row; POLYLINE is a JSON list of [longitude, latitude], one point each 15
  seconds from TIMESTAMP (Unix seconds); empty in some trips. The points of a trip with MISSING_DATA have no
  times, so it is rejected: missing_points.
- Movebank's CSV of animals, by the names of its columns; its timestamps are UTC.
- Ships by AIS, as MarineCadastre and the Danish Maritime Authority write them, in UTC.
- Positions of vehicles (AVL), as tables of GTFS-realtime have them.

docs/your-data.md says where each is published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.storage.cells import Roles
from dphmm.storage.columns import Times, as_text, as_words, matches
from dphmm.storage.csv_files import listed
from dphmm.storage.importers.fixes import Dialect, fixes
from dphmm.storage.importers.folders import is_many, read_files
from dphmm.storage.importers.imported import Imported, Importer, imported_rows
from dphmm.storage.inputs import PathLike
from dphmm.storage.layouts import Layout, Progress
from dphmm.storage.trajectories import Expanding, Expansion
from dphmm.types import IntArray

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Recipe:
    """A published set: its layout, what one line of help says, and the options that its command has."""

    layout: Layout
    help: str
    options: tuple[str, ...] = ()
    expanding: Expanding | None = None
    #: The columns by which fixes are read, where the set is of those.
    dialects: tuple[Dialect, ...] = ()
    #: Why it is read from one file alone, where it is.
    alone: str | None = None
    #: The noun for whom its rows are about, where that is no person.
    noun: str = ""

    def importer(self, name: str) -> Importer:
        """The importer of this recipe."""

        def read(source: PathLike, *, progress: Progress | None = None, **options: Any) -> Imported:
            unknown = set(options) - set(self.options)
            if unknown:
                raise InvalidInput("options", min(unknown), "one of " + listed(self.options or ("none",)))
            if self.alone is not None and is_many(source):
                raise InvalidInput("source", str(source), self.alone)
            layout = self.layout.changed(**options)
            left_out = Counter[str]()
            expanding = partial(fixes, self.dialects, left_out) if self.dialects else self.expanding
            reading = read_files(source, layout, expanding=expanding, progress=progress)
            notes = (f"left out: {rows:,} {words}" for words, rows in left_out.items() if rows)
            return imported_rows(name, reading._replace(notes=(*reading.notes, *notes)), layout, source)

        read.__name__ = f"import_{name}"
        return read


_POINT = r"\[-?[0-9]{1,3}(?:\.[0-9]{1,20})?, ?-?[0-9]{1,3}(?:\.[0-9]{1,20})?\]"
_POLYLINE = rf"^\[(?:{_POINT}(?:, ?{_POINT})*)?\]$"
_SECONDS_BETWEEN_POINTS = 15
_TRIP_COLUMNS = ("TAXI_ID", "TRIP_ID", "TIMESTAMP", "MISSING_DATA", "POLYLINE")


def points_of_trips(names: Sequence[str], layout: Layout) -> Expansion:
    """Porto's trips as points: the k-th of a trip is 15 k seconds after its TIMESTAMP.

    Raises InvalidInput for a table without the columns of trips.
    """
    missing = next((name for name in _TRIP_COLUMNS if name not in names), None)
    if missing is not None:
        raise InvalidInput("source", f"no column {missing} among {listed(names)}", "train.csv of the Porto taxis")
    times = Times("TIMESTAMP", format=layout.time_format)

    def expand(trips: pa.Table) -> tuple[pa.Table, IntArray, dict[str, IntArray]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        micros, marks = times.add(trips.column("TIMESTAMP"))
        lines = as_text(trips.column("POLYLINE"), "POLYLINE")
        lost = {reason: np.flatnonzero(mark) for reason, mark in marks.items()}
        lost["invalid_place"] = np.flatnonzero(~matches(lines, _POLYLINE))
        lost["missing_points"] = np.flatnonzero(
            ~matches(as_words(trips.column("MISSING_DATA"), "MISSING_DATA"), "^(?i:false)$")
        )
        valid = np.ones(len(trips), dtype=np.bool_)
        valid[np.concatenate(list(lost.values()))] = False
        # An empty trip has no point.
        some = valid & np.asarray(pc.greater(pc.fill_null(pc.binary_length(lines), 0), 2)).astype(np.bool_)
        chosen = np.flatnonzero(some)
        inner = pc.utf8_slice_codeunits(lines.take(pa.array(chosen)), 2, -2)
        points = pc.split_pattern_regex(inner, r"\], ?\[").combine_chunks()
        origin = chosen[np.asarray(pc.list_parent_indices(points)).astype(np.int64)]
        numbers = pc.split_pattern_regex(pc.list_flatten(points), ", ?")
        nth = np.arange(len(origin)) - np.searchsorted(origin, origin)
        at = micros[origin] + nth * _SECONDS_BETWEEN_POINTS * 10**6
        of = pa.array(origin)
        table = {
            "user": trips.column("TAXI_ID").take(of), "trip": trips.column("TRIP_ID").take(of), "t": pa.array(at),
            "lat": pc.list_element(numbers, 1), "lon": pc.list_element(numbers, 0),
        }  # fmt: skip
        return pa.table(table), origin, lost

    roles = Roles(user="user", time="t", lat="lat", lon="lon", trip="trip")
    return Expansion(_TRIP_COLUMNS, roles, expand, times)


#: Columns of Movebank by which a fix is an outlier, in its files and those of its programs.
_OUTLIERS = (
    ("visible", "false"),
    *((f"{who}{dash}marked{dash}outlier", "true") for who in ("manually", "algorithm", "import") for dash in "-_"),
)


#: The published sets by the names of their importers.
RECIPES = {
    "gowalla": Recipe(
        Layout("\t", names=("user", "t", "lat", "lon", "location"), quoted=False, time_format="iso"),
        "Gowalla check-ins in SNAP's layout: .txt or .txt.gz.",
    ),
    "cabspotting": Recipe(
        Layout(
            " ", names=("lat", "lon", "occupied", "t"), quoted=False, runs=True, user_from="file-name",
            user_pattern=".*new_(.+)", time_format="unix-s",
        ),
        "Cabspotting, San Francisco: the folder or archive of new_CAB.txt files.",
    ),
    "tdrive": Recipe(
        Layout(names=("user", "t", "lon", "lat"), quoted=False, timezone="Asia/Shanghai", time_format="iso"),
        "T-Drive, Beijing: a folder or archive of one file per taxi, or one such file.",
    ),
    "foursquare": Recipe(
        Layout(
            "\t", names=("user", "venue", "category_id", "category", "lat", "lon", "offset", "t"), quoted=False,
            encoding="latin-1", time_format="%a %b %d %H:%M:%S %z %Y",
        ),
        "Foursquare check-ins of TSMC2014: the .txt or .txt.gz file of one city.",
        options=("state_column",),
        alone="the file of one city: both cities number their users from 1",
    ),
    "porto": Recipe(
        Layout(time_format="unix-s"),
        "Porto taxi trips: train.csv, also packed; each trip has a point per 15 s.",
        options=("delimiter",),
        expanding=points_of_trips,
    ),
    "movebank": Recipe(
        Layout(timezone="UTC"),
        "Movebank's CSV of animals: outliers and rows without a place are left out.",
        dialects=(
            Dialect("individual-local-identifier", "timestamp", "location-lat", "location-long", "iso", _OUTLIERS),
            Dialect("individual_local_identifier", "timestamp", "location_lat", "location_long", "iso", _OUTLIERS),
        ),
        noun="animal",
    ),
    "ais": Recipe(
        Layout(timezone="UTC"),
        "Ships by AIS: the CSV of MarineCadastre, or of the Danish Maritime Authority.",
        dialects=(
            Dialect("mmsi", "basedatetime", "lat", "lon"),
            Dialect("mmsi", "base_date_time", "latitude", "longitude"),
            Dialect("mmsi", "# timestamp", "latitude", "longitude", "%d/%m/%Y %H:%M:%S"),
        ),
        noun="vessel",
    ),
    "avl": Recipe(
        Layout(),
        "Positions of vehicles: the CSV of a GTFS-realtime feed.",
        options=("fold", "timezone"),
        dialects=(
            *(Dialect(user, "timestamp", "latitude", "longitude") for user in ("vehicle_id", "vehicle.id")),
            Dialect(
                "vehicle.vehicle.id", "vehicle.timestamp", "vehicle.position.latitude", "vehicle.position.longitude"
            ),
        ),
        noun="vehicle",
    ),
}  # fmt: skip
