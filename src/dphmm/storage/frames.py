"""Tables of other libraries: pandas, polars and Arrow in and out in kind; mobility libraries' frames recognised.

Nothing here changes what it is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.storage.columns import Times
from dphmm.storage.csv_files import listed, repeated_name

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def table_kind(table: Any) -> str:
    """ "pandas", "polars" or "arrow"; InvalidInput for anything else."""
    module = type(table).__module__.split(".")[0]
    if module in ("pandas", "geopandas") and hasattr(table, "columns"):
        return "pandas"
    if module == "polars" and hasattr(table, "select"):
        return "polars"
    if module == "pyarrow" and hasattr(table, "column_names"):
        return "arrow"
    # Subclasses of data frames that other libraries define.
    for base in type(table).__mro__[1:]:
        if base.__name__ == "DataFrame" and base.__module__.split(".")[0] == "pandas":
            return "pandas"
    if hasattr(table, "__arrow_c_stream__"):
        return "arrow"
    raise InvalidInput("table", type(table).__name__, "a pandas, polars or Arrow table")


def column_list(table: Any) -> list[str]:
    """Column names in order; InvalidInput if one is not text or stands twice."""
    kind = table_kind(table)
    if hasattr(table, "collect_schema"):
        names = list(table.collect_schema().names())
    else:
        names = list(table.columns if kind != "arrow" else _arrow(table).column_names)
    odd = next((name for name in names if not isinstance(name, str)), None)
    if odd is not None:
        raise InvalidInput("columns", odd, "names that are text")
    repeated = repeated_name(names)
    if repeated is not None:
        raise InvalidInput("columns", repeated, "distinct column names")
    return names


def to_arrow(table: Any, columns: Sequence[str] | None = None) -> pa.Table:
    """An Arrow table of some columns (default all). A pandas column of mixed objects becomes text."""
    import pyarrow as pa

    kept = column_list(table) if columns is None else list(columns)
    kind = table_kind(table)
    if kind == "pandas":
        return pa.table({name: _arrow_column(table[name]) for name in kept})
    if kind == "polars":
        chosen = table.select(kept)
        return _arrow(chosen.collect() if hasattr(chosen, "collect") else chosen)
    return _arrow(table).select(kept)


def to_kind(table: pa.Table, like: Any) -> Any:
    """An Arrow table as the kind of table ``like`` is; pandas gets its index too if there are as many rows."""
    kind = table_kind(like)
    if kind == "pandas":
        frame = table.to_pandas()
        if len(frame) == len(like):
            frame.index = like.index
        return frame
    if kind == "polars":
        import polars as pl

        frame = pl.DataFrame(table)
        return frame.lazy() if isinstance(like, pl.LazyFrame) else frame
    return table


def convert_frame(frame: Any, *, assume_utc: bool = False) -> pd.DataFrame:
    """A frame of a mobility library as a new pandas frame with the canonical columns user, t, lat, lon (trip).

    Recognised by their columns: scikit-mobility (uid, lat, lng, datetime; its naive times are UTC by that
    library's convention and become so), trackintel positionfixes (user_id, tracked_at, a geometry of points)
    and movingpandas (a DatetimeIndex, a geometry of points, traj_id). movingpandas strips time zones, so its
    naive times need ``assume_utc=True``. A projected geometry is brought to degrees where the frame knows its
    CRS; a shape that is no point is no place, and a time in text that cannot be read is none. traj_id is the user, or
    the trip where there is a column user_id, user or obj_id.

    Raises InvalidInput for any other frame and for a column of timestamps without a zone.
    """
    import pandas as pd

    names = set(column_list(frame))
    if table_kind(frame) != "pandas":
        raise InvalidInput("frame", type(frame).__name__, "a pandas or geopandas frame")
    if {"uid", "lat", "lng", "datetime"} <= names:
        columns = {
            "user": frame["uid"],
            "t": _utc(frame["datetime"], True),
            "lat": frame["lat"],
            "lon": frame["lng"],
        }
        return pd.DataFrame(columns | ({"trip": frame["tid"]} if "tid" in names else {}))
    if {"user_id", "tracked_at"} <= names:
        lat, lon = _coordinates(frame)
        times = _utc(frame["tracked_at"], assume_utc)
        return pd.DataFrame({"user": frame["user_id"], "t": times, "lat": lat, "lon": lon}, index=frame.index)
    if "traj_id" in names and isinstance(frame.index, pd.DatetimeIndex):
        lat, lon = _coordinates(frame)
        owner = next((name for name in ("user_id", "user", "obj_id") if name in names), None)
        times = _utc(frame.index.to_series(), assume_utc)
        columns = {"user": frame[owner or "traj_id"], "t": times, "lat": lat, "lon": lon}
        plain = {name: column.to_numpy() if name != "t" else column.array for name, column in columns.items()}
        return pd.DataFrame(plain | ({"trip": frame["traj_id"].to_numpy()} if owner else {}))
    raise InvalidInput(
        "frame",
        "columns " + listed(sorted(names)),
        "uid, lat, lng, datetime; or user_id, tracked_at, geometry; or a DatetimeIndex, geometry and traj_id",
    )


def _utc(times: Any, assume_utc: bool) -> Any:
    import pandas as pd

    if not pd.api.types.is_datetime64_any_dtype(times.dtype):
        # Cell by cell: pandas would read all of them in the format of the first one.
        micros, marks = Times("t", assume_utc).add(_arrow_column(times))
        read = pd.Series(pd.to_datetime(micros, unit="us", utc=True), index=times.index)
        return read.mask(np.logical_or.reduce(list(marks.values())))
    if times.dt.tz is None:
        if not assume_utc:
            raise InvalidInput("t", "times without a zone", "tz-aware times (timezone), or assume_utc=True")
        return times.dt.tz_localize("UTC")
    return times.dt.tz_convert("UTC")


def _coordinates(frame: Any) -> tuple[Any, Any]:
    """Latitudes and longitudes of a frame's points."""
    import pandas as pd

    name = getattr(frame, "_geometry_column_name", None) or next(
        (name for name in ("geometry", "geom") if name in frame.columns), None
    )
    if name is None or name not in frame.columns:
        raise InvalidInput("geometry", "no such column", "a column of points")
    points = frame[name]
    crs = getattr(points, "crs", None)
    if crs is not None and not crs.is_geographic:
        points = points.to_crs(4326)
    there = [getattr(point, "geom_type", None) == "Point" and not point.is_empty for point in points]
    if not any(there) and points.notna().any():
        raise InvalidInput("geometry", "shapes that are not points", "points (positionfixes)")
    lat = [point.y if fine else None for point, fine in zip(points, there, strict=True)]
    lon = [point.x if fine else None for point, fine in zip(points, there, strict=True)]
    return pd.Series(lat, frame.index, dtype=float), pd.Series(lon, frame.index, dtype=float)


def _arrow_column(column: pd.Series[Any]) -> pa.ChunkedArray:
    import pyarrow as pa

    if column.dtype == object:
        # Cell by cell: Arrow would give all of them the type that fits the oddest one.
        cells = [None if missing else _text(cell) for cell, missing in zip(column, column.isna(), strict=True)]
        array = pa.array(cells, pa.string())
    else:
        array = pa.array(column, from_pandas=True)
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _text(cell: Any) -> str:
    """A cell as text that Arrow takes; 3, 3.0 and "3" are one label."""
    text = str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
    return text.encode(errors="backslashreplace").decode()


def _arrow(table: Any) -> pa.Table:
    import pyarrow as pa

    return table if isinstance(table, pa.Table) else pa.table(table)
