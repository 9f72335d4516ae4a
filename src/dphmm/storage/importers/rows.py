"""Importers of rows with a user, a time and a place or a state: any table, and Geolife's trajectories.

Geolife GPS Trajectories 1.3 (Microsoft Research) are files Data/USER/Trajectory/*.plt in a folder or an archive. A .plt
file is one trip: six header lines, then latitude, longitude, 0, altitude in feet, days since 1899-12-30, date and time.
The user guide says that dates and times are GMT. Lines end in CRLF.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.trajectory import Trajectories
from dphmm.storage.csv_files import TextMember, listed, text_parts
from dphmm.storage.geo_files import read_points
from dphmm.storage.importers.documents import read_documents, unless_named
from dphmm.storage.importers.folders import files_told, is_many, read_files
from dphmm.storage.importers.gpx import GPX_COLUMNS, gpx_points
from dphmm.storage.importers.imported import Imported, imported_rows
from dphmm.storage.inputs import PathLike, members
from dphmm.storage.layouts import IMPORTED, PLAIN, Layout, Progress
from dphmm.storage.tables import Rows
from dphmm.storage.trajectories import Reader, legible_name, read_source

if TYPE_CHECKING:
    pass


def import_csv(source: PathLike, *, progress: Progress | None = None, **options: Any) -> Imported:
    """Trajectories of a table (delimited text or .parquet), or of a folder or an archive of such texts.

    ``options`` as `Layout.changed` takes them; reasons and errors as in load_trajectories. The report warns where
    nothing says in which order the rows of a user are, and says in which unit Unix times were taken.
    """
    layout = IMPORTED.changed(**options)
    reading = read_files(source, layout, progress=progress)
    imported = imported_rows("csv", reading, layout, source)
    rows = reading.loaded.trajectories
    if rows.time is not None or layout.no_times or layout.columns.get("order") is not None:
        return imported
    if reading.stepped:
        return imported
    warning = (
        f"no time column found among {listed(reading.names)}: rows are taken in file order, and numbers are no times: "
        "models of a time step refuse them; name one with time_column="
    )
    return imported._replace(report=replace(imported.report, warnings=(warning,)))


def import_geo(
    source: PathLike, *, crs: str | None = None, progress: Progress | None = None, **options: Any
) -> Imported:
    """Trajectories of the points of a geo file (GeoJSON, GeoPackage, Shapefile, FlatGeobuf, GPX), in degrees.

    All GPX files in a folder or an archive are read; GPX needs no geopandas.

    Columns beside the geometry are found as those of a table; in GPX the time is ``time`` and a trip a track. Those of
    GeoJSON are the properties of its first feature, and what ``options`` name. ``crs`` : the coordinates of a file that
    does not say them. Raises InvalidInput as `read_points` and `read_source`.
    """
    layout = replace(IMPORTED, unswapping=_UNSWAPPING, files=_GPX).changed(**options)
    if is_many(source) or Path(source).suffix.lower() == ".gpx":
        layout = layout.changed(**unless_named(options, GPX_COLUMNS))
        named = "*.gpx; other points from one file" if is_many(source) else "points of tracks, waypoints or routes"
        reading = read_documents(source, layout, gpx_points, named, progress)
        return imported_rows("geo", reading, None, source)
    points = read_points(source, crs, [name for name in layout.columns.values() if name is not None])
    table = points.table
    import pyarrow as pa

    types = {each.name: pa.timestamp("us") if each.name in points.times else each.type for each in table.schema}
    rows = Rows(str(source), tuple(types), types, lambda columns: iter([table.select(columns)]), [])
    reading = read_source(rows, layout, progress=progress)
    return imported_rows("geo", reading._replace(notes=(*reading.notes, *points.notes)), None, source)


_GPX = re.compile(r"(?:^|/)[^./][^/]*\.gpx$", re.IGNORECASE)


#: GeoJSON, GPX and the other formats say which number is which: nothing here can take them the other way round.
_UNSWAPPING = "the file has to be written again; GeoJSON has the longitude first"


_PLT = re.compile(r"(?:^|/)([^/]+)/Trajectory/([^/]+)\.plt$")
_HEADER_LINES = 6
_PLT_COLUMNS = ("lat", "lon", "zero", "altitude", "days", "date", "clock")
#: How lines of a .plt file are counted where rows of it are listed.
_PLT_LAYOUT = Layout(names=_PLT_COLUMNS, skip=_HEADER_LINES, quoted=False, files=_PLT)


def import_geolife(source: PathLike, *, progress: Progress | None = None) -> Imported:
    """Trajectories of a Geolife folder, .tar, .tar.gz or .zip, read in place; each .plt file is a trip.

    A user's trips are numbered from 0 in the order of their files. Dropped rows: invalid_place (Geolife has a
    latitude of 400), invalid_time, ragged_row, missing_user (a folder whose name is not UTF-8), unreadable_file. Files
    without a row, and files that end within a line, are told. Raises InvalidInput where there is no .plt file.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    reader = Reader(("user", "t", "lat", "lon", "trip"), {}, PLAIN, str(source))
    trips, empty, cut = list[tuple[str, str]](), list[str](), list[str]()
    for member in members(Path(source), _PLT):
        user, stem = _PLT.search(member.name).groups()  # type: ignore[union-attr]
        ragged, why = list[int](), dict[int, str]()
        try:
            cells = ("date", "clock", "lat", "lon")
            rows = pa.concat_tables(text_parts(TextMember(member.name, member.data), _PLT_LAYOUT, cells, ragged))
            why = dict.fromkeys(ragged, "ragged_row")
            times = pc.binary_join_element_wise(rows.column("date"), rows.column("clock"), "T")
            owner, trip = pa.scalar(legible_name(user), pa.string()), pa.scalar(len(trips), pa.int32())
            table = {
                "user": pa.repeat(owner, len(rows)), "t": pc.binary_join_element_wise(times, "Z", ""),
                "lat": rows.column("lat"), "lon": rows.column("lon"), "trip": pa.repeat(trip, len(rows)),
            }  # fmt: skip
            reader.add(pa.table(table), None)
            if not len(rows) and not ragged:
                empty.append(member.name)
            elif not member.data.endswith(b"\n"):
                cut.append(member.name)
        except InvalidInput:
            # It is one person's, and decides about nobody else's rows.
            why = {1: "unreadable_file"}
        trips.append((user, stem))
        reader.end_of_file(member.name, why)
        if progress is not None:
            progress(member.done, member.total)
    if not trips:
        raise InvalidInput("source", str(source), "Data/USER/Trajectory/*.plt inside")
    notes = (*files_told(empty, "without a row"), *files_told(cut, "whose last line is cut off"))
    reading = reader.finish(notes, several=True)
    loaded = reading.loaded._replace(trajectories=_number_trips(reading.loaded.trajectories, trips))
    return imported_rows("geolife", reading._replace(loaded=loaded), _PLT_LAYOUT, source)


def _number_trips(rows: Trajectories, trips: list[tuple[str, str]]) -> Trajectories:
    """Trips by the order of their files within a user, whatever order the archive had."""
    number = np.empty(len(trips), dtype=np.int32)
    before: dict[str, int] = {}
    for user, _, arrived in sorted((user, stem, at) for at, (user, stem) in enumerate(trips)):
        number[arrived] = before.setdefault(user, 0)
        before[user] += 1
    return replace(rows, trip=None if rows.trip is None else number[rows.trip])
