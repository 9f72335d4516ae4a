"""Any table of rows user, time, place or state: CSV or Parquet with the names of its columns."""

from __future__ import annotations

from dphmm.storage.importers.imported import Imported, Progress, finished
from dphmm.storage.inputs import PathLike
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
    progress: Progress | None = None,
) -> Imported:
    """Trajectories of a .csv, .csv.gz or .parquet file; options, reasons and errors as in
    load_trajectories.
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
    )
    if progress is not None:
        progress(1, 1)
    return finished("csv", loaded, 1)
