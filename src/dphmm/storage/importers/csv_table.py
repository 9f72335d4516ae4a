"""Any table of rows user, time, place or state: CSV or Parquet with the names of its columns."""

from __future__ import annotations

from dataclasses import replace

from dphmm.storage.csv_files import listed
from dphmm.storage.importers.imported import Imported, Progress, finished
from dphmm.storage.inputs import PathLike
from dphmm.storage.tables import delimited_names
from dphmm.storage.trajectories import load_trajectories


def import_csv(
    source: PathLike,
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
    progress: Progress | None = None,
) -> Imported:
    """Trajectories of a .csv, .csv.gz or .parquet file; options, reasons and errors as in load_trajectories.

    The report warns where nothing says in which order the rows of a user are.
    """
    loaded = load_trajectories(
        source,
        user_column=user_column,
        time_column=time_column,
        order_column=order_column,
        trip_column=trip_column,
        state_column=state_column,
        lat_column=lat_column,
        lon_column=lon_column,
        assume_utc=assume_utc,
        timezone=timezone,
        delimiter=delimiter,
    )
    if progress is not None:
        progress(1, 1)
    imported = finished("csv", loaded, 1)
    if loaded.trajectories.time is not None or order_column is not None:
        return imported
    names = delimited_names(source, delimiter)
    if "step" in names:
        return imported
    warning = f"no time column found among {listed(names)}: rows are taken in file order; name one with time_column="
    return imported._replace(report=replace(imported.report, warnings=(warning,)))
