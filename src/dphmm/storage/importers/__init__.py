"""Importers: a function for each format, registered here under the name the command line knows it by.

Published sets that are a layout of rows are registered in `RECIPES`, and formats of documents in `DOCUMENTS`.
"""

from inspect import signature
from typing import Any

from dphmm._checks import one_of
from dphmm.errors import InvalidInput
from dphmm.storage.importers.events import import_events
from dphmm.storage.importers.google import GOOGLE
from dphmm.storage.importers.imported import Imported, Importer, ImportReport
from dphmm.storage.importers.intervals import import_intervals
from dphmm.storage.importers.jsonl import JSONL
from dphmm.storage.importers.kml import KML
from dphmm.storage.importers.owntracks import OWNTRACKS
from dphmm.storage.importers.published import RECIPES
from dphmm.storage.importers.rows import import_csv, import_geo, import_geolife
from dphmm.storage.importers.sequences import import_sequences
from dphmm.storage.importers.trips import import_trips
from dphmm.storage.importers.xes import XES
from dphmm.storage.inputs import PathLike
from dphmm.storage.layouts import Progress

DOCUMENTS = {"jsonl": JSONL, "xes": XES, "kml": KML, "google": GOOGLE, "owntracks": OWNTRACKS}
IMPORTERS: dict[str, Importer] = {
    "csv": import_csv,
    "events": import_events,
    "geo": import_geo,
    "intervals": import_intervals,
    "sequences": import_sequences,
    "geolife": import_geolife,
    "trips": import_trips,
    **{name: kind.importer(name) for name, kind in (DOCUMENTS | RECIPES).items()},
}


def import_trajectories(
    source: PathLike, format: str = "csv", *, progress: Progress | None = None, **options: Any
) -> Imported:
    """Read trajectories of another format, as ``dphmm import FORMAT SRC`` does.

    Parameters
    ----------
    source : a file; for most formats also a folder or an archive of files.
    format : csv (any rows), events (cases of event logs), jsonl, geo (points), kml, xes (event logs), intervals, trips,
        sequences, google, owntracks, or a published set such as geolife or cabspotting.
    options : those of the command, with underscores: user_column, time_format, delimiter, user, user_from, step, ...

    Returns
    -------
    An `Imported`: ``trajectories``; ``rejected``, an Arrow table of the rows that were left out, each with its reason,
    for the data owner alone; and ``report``, what to tell of it.

    Raises
    ------
    InvalidInput : for a format that there is not, for options that do not fit, and for a source without rows that can
        be read.

    Examples
    --------
    >>> import tempfile, pathlib, dphmm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "rows.txt")
    ...     _ = path.write_text("52.5 13.4 1700000000\\n52.6 13.4 1700000600\\n")
    ...     how = {"names": "lat,lon,t", "delimiter": "space", "user": "ann", "time_format": "unix-s"}
    ...     found = dphmm.storage.import_trajectories(path, **how)
    >>> found.trajectories
    Trajectories(rows=2, users=1, columns=user, time, lat, lon)

    Source: docs/your-data.md.
    """
    importer = IMPORTERS[one_of(format, tuple(IMPORTERS), "format")]
    try:
        signature(importer).bind(source, progress=progress, **options)
    except TypeError as wrong:
        names = [name for name in signature(importer).parameters if name not in ("source", "progress", "options")]
        raise InvalidInput(
            "options", f"{sorted(options)}: {wrong}", f"those of dphmm import {format}: {', '.join(names) or 'none'}"
        ) from None
    return importer(source, progress=progress, **options)


__all__ = [
    "DOCUMENTS",
    "IMPORTERS",
    "RECIPES",
    "ImportReport",
    "Imported",
    "Importer",
    "Progress",
    "import_trajectories",
]
