"""Gowalla check-ins as SNAP has them (loc-gowalla_totalCheckins.txt): user, time, lat, lon, location by tabs."""

from __future__ import annotations

from typing import IO, cast

from dphmm.states.trajectory import Counts
from dphmm.storage.csv_files import Layout
from dphmm.storage.importers.imported import Imported, Progress, RowReader, finished
from dphmm.storage.inputs import PathLike, checked_input, steady, unpacked
from dphmm.storage.trajectories import Assembler, Cells, Roles

_COLUMNS = ("user", "t", "lat", "lon", "location")
_ROLES = Roles(user="user", time="t", lat="lat", lon="lon")
#: Rows of another number of cells are left out before rows are numbered.
LAYOUT = Layout("\t", header=False, quoted=False, fields=len(_COLUMNS))


def import_gowalla(source: PathLike, *, progress: Progress | None = None) -> Imported:
    """Check-ins of a .txt or .txt.gz file in SNAP's layout, oldest first. Location numbers are not kept.

    Dropped rows: invalid_place, invalid_time, missing_user, ragged_row. Raises InvalidInput if no row can be
    read.
    """
    path = checked_input(source, "source")
    reader = RowReader(_COLUMNS, _COLUMNS[:4], "\t")
    assembler = Assembler(Cells(_ROLES))
    total = path.stat().st_size
    with steady(path), path.open("rb") as raw, unpacked(raw, path) as file:
        for rows in reader.stream(cast("IO[bytes]", file), str(path)):
            assembler.add(rows)
            if progress is not None and not raw.closed:
                progress(min(raw.tell(), total), total)
    return finished("gowalla", assembler.finish(str(path)), 1, Counts({"ragged_row": reader.ragged}))
