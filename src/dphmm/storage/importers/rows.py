"""Importers of rows with a user, a time and a place or a state: any table, and Geolife's trajectories.

Geolife GPS Trajectories 1.3 (Microsoft Research) are files Data/USER/Trajectory/*.plt in a folder or an archive. A .plt
file is one trip: six header lines, then latitude, longitude, 0, altitude in feet, days since 1899-12-30, date and time.
The user guide says that dates and times are GMT. Lines end in CRLF.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.trajectory import Trajectories
from dphmm.storage.csv_files import listed
from dphmm.storage.geo_files import gpx_points, read_points
from dphmm.storage.importers.documents import Document, read_documents, short_digest, unless_named
from dphmm.storage.importers.imported import Imported, RowReader, imported_rows
from dphmm.storage.inputs import Member, PathLike, members
from dphmm.storage.layouts import (
    Layout,
    Progress,
    RowsByFile,
    SourceRows,
    files_told,
    is_many,
    read_rows_of,
    read_source,
)
from dphmm.storage.trajectories import Assembler, Cells, Roles

if TYPE_CHECKING:
    import pyarrow as pa


def import_csv(source: PathLike, *, progress: Progress | None = None, **options: Any) -> Imported:
    """Trajectories of a table (delimited text or .parquet), or of a folder or an archive of such texts.

    ``options`` as `Layout.changed` takes them; reasons and errors as in load_trajectories. The report warns where
    nothing says in which order the rows of a user are, and says in which unit Unix times were taken.
    """
    layout = Layout().changed(**options)
    found = read_source(source, layout, progress=progress)
    imported = imported_rows("csv", found, layout, source)
    rows = found.loaded.trajectories
    if rows.time is not None or layout.no_times or layout.columns.get("order") is not None:
        return imported
    if found.stepped:
        return imported
    warning = (
        f"no time column found among {listed(found.names)}: rows are taken in file order, and numbers are no times: "
        "models of a time step refuse them; name one with time_column="
    )
    return imported._replace(report=replace(imported.report, warnings=(warning,)))


def import_geo(
    source: PathLike, *, crs: str | None = None, progress: Progress | None = None, **options: Any
) -> Imported:
    """Trajectories of the points of a geo file (GeoJSON, GeoPackage, Shapefile, FlatGeobuf, GPX), in degrees.

    Of a folder or an archive all GPX files are read.

    Columns beside the geometry are found as those of a table; of GPX the time is ``time`` and a trip a track. Those of
    GeoJSON are the properties of its first feature, and what ``options`` name. ``crs`` : the coordinates of a file that
    does not say them. Raises InvalidInput as `read_points` and `read_source`.
    """
    layout = Layout(unswapping=_UNSWAPPING, files=_GPX).changed(**options)
    if is_many(source):
        layout = layout.changed(**unless_named(options, _GPX_COLUMNS))
        found = read_documents(source, layout, _tracks, _GPX_FILES, progress)
        return imported_rows("geo", found, None, source)
    points = read_points(source, crs, [name for name in layout.columns.values() if name is not None])
    table = points.table
    if Path(source).suffix.lower() == ".gpx":
        tracks = unless_named(options, _GPX_COLUMNS)
        layout = layout.changed(**{name: column for name, column in tracks.items() if column in table.column_names})
    found = read_rows_of(table, layout, source, points.times)
    found = found._replace(notes=(*found.notes, *points.notes))
    if progress is not None:
        progress(1, 1)
    return imported_rows("geo", found, None, source)


def _tracks(name: str, stream: IO[bytes]) -> Document:
    """The points of a GPX file, whose tracks are named by it too."""
    import pyarrow.compute as pc

    table = gpx_points(name, stream.read())
    tracks = pc.binary_join_element_wise(table.column("track_fid"), short_digest(name), " ")
    return Document(table.set_column(table.column_names.index("track_fid"), "track_fid", tracks))


_GPX = re.compile(r"(?:^|/)[^./][^/]*\.gpx$", re.IGNORECASE)
_GPX_FILES = "*.gpx; other points from one file"


#: GeoJSON, GPX and the other formats say which number is which: nothing here can take them the other way round.
_UNSWAPPING = "the file has to be written again; GeoJSON has the longitude first"
_GPX_COLUMNS = {"time_column": "time", "trip_column": "track_fid"}


_PLT = re.compile(r"(?:^|/)([^/]+)/Trajectory/([^/]+)\.plt$")
_HEADER_LINES = 6
_PLT_COLUMNS = ("lat", "lon", "zero", "altitude", "days", "date", "clock")
#: How lines of a .plt file are counted where rows of it are listed.
_PLT_LAYOUT = Layout(names=_PLT_COLUMNS, skip=_HEADER_LINES, quoted=False, files=_PLT)
_PLT_ROLES = Roles(user="user", time="t", lat="lat", lon="lon", trip="trip")
# Rows gathered from small files before they are parsed together.
_ENOUGH = 1 << 19


def import_geolife(source: PathLike, *, progress: Progress | None = None) -> Imported:
    """Trajectories of a Geolife folder, .tar, .tar.gz or .zip, read in place; each .plt file is a trip.

    A user's trips are numbered from 0 in the order of their files. Dropped rows: invalid_place (Geolife has a
    latitude of 400), invalid_time, ragged_row, missing_user (a folder whose name is not UTF-8), unreadable_file. Files
    without a row, and files that end within a line, are told. Raises InvalidInput where there is no .plt file.
    """
    reader = RowReader(_PLT_COLUMNS, ("lat", "lon", "date", "clock"), ",")
    assembler, by_file, read = Assembler(Cells(_PLT_ROLES)), RowsByFile(), 0
    waiting: list[pa.Table] = []
    trips, empty, cut = list[tuple[str, str]](), list[str](), list[str]()
    for member in members(Path(source), _PLT):
        user, stem = _PLT.search(member.name).groups()  # type: ignore[union-attr]
        rows, ragged = _rows_of(reader, member)
        if not len(rows) and not ragged:
            empty.append(member.name)
        elif not member.data.endswith(b"\n"):
            cut.append(member.name)
        waiting.append(_with_owner(rows, user, len(trips)))
        trips.append((user, stem))
        read += len(rows)
        by_file.end_of_file(member.name, read, ragged)
        if sum(map(len, waiting)) >= _ENOUGH:
            _add_waiting(assembler, waiting)
        if progress is not None:
            progress(member.done, member.total)
    if not trips:
        raise InvalidInput("source", str(source), "Data/USER/Trajectory/*.plt inside")
    _add_waiting(assembler, waiting)
    loaded = assembler.finish(str(source))
    notes = (*files_told(empty, "without a row"), *files_told(cut, "whose last line is cut off"))
    left_out = loaded.rejected.column("row").to_numpy().astype(np.int64) - 1
    loaded = loaded._replace(
        trajectories=_number_trips(loaded.trajectories, trips),
        rejected=by_file.rejected(left_out, loaded.rejected.column("reason").to_pylist()),
    )
    found = SourceRows(loaded, read + by_file.lost, len(trips), notes, _PLT_COLUMNS, stepped=False)
    return imported_rows("geolife", found, _PLT_LAYOUT, source)


def _rows_of(reader: RowReader, member: Member) -> tuple[pa.Table, dict[int, str]]:
    """The rows of a .plt file, and those that are none by their number; of one that cannot be read none."""
    try:
        return reader.read(_body(member.data), member.name), dict.fromkeys(reader.ragged, "ragged_row")
    except InvalidInput:
        # It is one person's, and decides about nobody else's rows.
        return reader.read(b"", member.name), {1: "unreadable_file"}


def _body(data: bytes) -> bytes:
    """What follows the header lines; nothing in a shorter file."""
    at = 0
    for _ in range(_HEADER_LINES):
        at = data.find(b"\n", at) + 1
        if at == 0:
            return b""
    return data[at:]


def _with_owner(rows: pa.Table, user: str, trip: int) -> pa.Table:
    import pyarrow as pa

    rows = rows.append_column("user", pa.repeat(pa.scalar(_name_of(user), pa.string()), len(rows)))
    return rows.append_column("trip", pa.repeat(pa.scalar(trip, pa.int32()), len(rows)))


def _name_of(folder: str) -> str | None:
    """The name of a user's folder; none where its bytes are not UTF-8, which no table holds."""
    try:
        folder.encode()
    except UnicodeEncodeError:
        return None
    return folder


def _add_waiting(assembler: Assembler, waiting: list[pa.Table]) -> None:
    """Parse the waiting rows and forget them."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows = pa.concat_tables(waiting)
    waiting.clear()
    moment = pc.binary_join_element_wise(rows.column("date"), rows.column("clock"), "T")
    assembler.add(rows.append_column("t", pc.binary_join_element_wise(moment, "Z", "")))


def _number_trips(rows: Trajectories, trips: list[tuple[str, str]]) -> Trajectories:
    """Trips by the order of their files within a user, whatever order the archive had."""
    number = np.empty(len(trips), dtype=np.int32)
    before: dict[str, int] = {}
    for user, _, arrived in sorted((user, stem, at) for at, (user, stem) in enumerate(trips)):
        number[arrived] = before.setdefault(user, 0)
        before[user] += 1
    return replace(rows, trip=None if rows.trip is None else number[rows.trip])
