"""Importers of rows with a user, a time and a place or a state: any table, Gowalla's check-ins, Geolife's trajectories.

Gowalla check-ins are text as SNAP has it (loc-gowalla_totalCheckins.txt): user, time, lat, lon, location by tabs.

Geolife GPS Trajectories 1.3 (Microsoft Research) are files Data/USER/Trajectory/*.plt in a folder or an archive. A .plt
file is one trip: six header lines, then latitude, longitude, 0, altitude in feet, days since 1899-12-30, date and time.
The user guide says that dates and times are GMT. Lines end in CRLF.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.trajectory import Counts, Trajectories
from dphmm.storage.csv_files import Layout, listed
from dphmm.storage.importers.imported import Imported, Progress, RowReader, finished
from dphmm.storage.inputs import PathLike, checked_input, members, steady, unpacked
from dphmm.storage.tables import delimited_names
from dphmm.storage.trajectories import Assembler, Cells, Roles, load_trajectories

if TYPE_CHECKING:
    import pyarrow as pa


def import_csv(source: PathLike, *, delimiter: str = ",", progress: Progress | None = None, **options: Any) -> Imported:
    """Trajectories of a .csv, .csv.gz or .parquet file; options, reasons and errors as in load_trajectories.

    The report warns where nothing says in which order the rows of a user are.
    """
    loaded = load_trajectories(source, delimiter=delimiter, **options)
    if progress is not None:
        progress(1, 1)
    imported = finished("csv", loaded, 1)
    if loaded.trajectories.time is not None or options.get("order_column") is not None:
        return imported
    names = delimited_names(source, delimiter)
    if "step" in names:
        return imported
    warning = (
        f"no time column found among {listed(names)}: rows are taken in file order, and numbers are no times: models "
        "of a time step refuse them; name one with time_column="
    )
    return imported._replace(report=replace(imported.report, warnings=(warning,)))


_GOWALLA_COLUMNS = ("user", "t", "lat", "lon", "location")
_GOWALLA_ROLES = Roles(user="user", time="t", lat="lat", lon="lon")
#: Rows of another number of cells are left out before rows are numbered.
GOWALLA = Layout("\t", header=False, quoted=False, fields=len(_GOWALLA_COLUMNS))


def import_gowalla(source: PathLike, *, progress: Progress | None = None) -> Imported:
    """Check-ins of a .txt or .txt.gz file in SNAP's layout, oldest first. Location numbers are not kept.

    Dropped rows: invalid_place, invalid_time, missing_user, ragged_row. Raises InvalidInput if no row can be
    read.
    """
    path = checked_input(source, "source")
    reader = RowReader(_GOWALLA_COLUMNS, _GOWALLA_COLUMNS[:4], "\t")
    assembler = Assembler(Cells(_GOWALLA_ROLES))
    total = path.stat().st_size
    with steady(path), path.open("rb") as raw, unpacked(raw, path) as file:
        for rows in reader.stream(cast("IO[bytes]", file), str(path)):
            assembler.add(rows)
            if progress is not None and not raw.closed:
                progress(min(raw.tell(), total), total)
    return finished("gowalla", assembler.finish(str(path)), 1, Counts({"ragged_row": reader.ragged}))


_PLT = re.compile(r"(?:^|/)([^/]+)/Trajectory/([^/]+)\.plt$")
_HEADER_LINES = 6
_PLT_COLUMNS = ("lat", "lon", "zero", "altitude", "days", "date", "clock")
_PLT_ROLES = Roles(user="user", time="t", lat="lat", lon="lon", trip="trip")
# Rows gathered from small files before they are parsed together.
_ENOUGH = 1 << 19


def import_geolife(source: PathLike, *, progress: Progress | None = None) -> Imported:
    """Trajectories of a Geolife folder, .tar, .tar.gz or .zip, read in place; each .plt file is a trip.

    A user's trips are numbered from 0 in the order of their files. Dropped rows: invalid_place (Geolife has a
    latitude of 400), invalid_time, ragged_row, missing_user (a folder whose name is not UTF-8). Raises InvalidInput
    where there is no .plt file.
    """
    reader = RowReader(_PLT_COLUMNS, ("lat", "lon", "date", "clock"), ",")
    assembler = Assembler(Cells(_PLT_ROLES))
    waiting: list[pa.Table] = []
    trips: list[tuple[str, str]] = []
    for member in members(Path(source), _PLT):
        user, stem = _PLT.search(member.name).groups()  # type: ignore[union-attr]
        rows = reader.read(_body(member.data), member.name)
        waiting.append(_with_owner(rows, user, len(trips)))
        trips.append((user, stem))
        if sum(map(len, waiting)) >= _ENOUGH:
            _add_waiting(assembler, waiting)
        if progress is not None:
            progress(member.done, member.total)
    if not trips:
        raise InvalidInput("source", str(source), "Data/USER/Trajectory/*.plt inside")
    _add_waiting(assembler, waiting)
    loaded = assembler.finish(str(source))
    loaded = loaded._replace(trajectories=_number_trips(loaded.trajectories, trips))
    return finished("geolife", loaded, len(trips), Counts({"ragged_row": reader.ragged}))


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
