"""Tables: files (Parquet or CSV by suffix: .parquet, .csv, .csv.gz) and frames of other libraries, to Arrow and back.

Files are written at once or not at all. Parquet has plain columns: no extension types, no metadata taken from the file.
`read_rows` reads people's records: one row never decides how another is read (`dphmm.storage.csv_files`). Frames of
pandas, polars and Arrow go in and out in kind and stay unchanged; `convert_frame` recognises those of mobility
libraries.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import math
import os
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.storage.columns import Times, without_views
from dphmm.storage.csv_files import (
    CSV,
    TextMember,
    chosen_columns,
    csv_names,
    escape_columns,
    listed,
    repeated_name,
    text_parts,
    typed,
)
from dphmm.storage.inputs import PathLike, checked_input, checked_output, replacing, steady
from dphmm.storage.layouts import PLAIN, Layout

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


#: Most rows of a file: a few bytes of Parquet can claim any number of equal ones.
MOST_ROWS = 10**9
_MAGIC = b"PAR1"
#: Degrees by which a point and the columns beside it may differ: a few metres, as columns are rounded.
_SAME_DEGREES = 1e-4


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """A pyarrow ParquetFile with distinct plain columns; InvalidInput for anything else."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    _check_ends(path)
    try:
        file = pq.ParquetFile(path)
    except UnicodeEncodeError:
        raise InvalidInput("path", ascii(path.name), "a name in UTF-8, which Parquet files need") from None
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        raise InvalidInput(str(path), "a damaged Parquet file", "a whole one") from None
    with file:
        try:
            schema = file.schema_arrow
            names = list(schema.names)
            # Zones too are text of the file.
            _ = [field.type.tz for field in schema if pa.types.is_timestamp(field.type)]
        except (pa.ArrowException, OSError, UnicodeDecodeError):
            raise InvalidInput(str(path), "a damaged Parquet file", "a whole one") from None
        repeated = repeated_name(names)
        if repeated is not None:
            raise InvalidInput(str(path), repeated, "distinct column names")
        extended = next((field.name for field in schema if _has_extension(field)), None)
        if extended is not None:
            raise InvalidInput(extended, "an extension type", "a plain column of text, numbers or times")
        if file.metadata.num_rows > MOST_ROWS:
            raise InvalidInput(str(path), f"{file.metadata.num_rows} rows", f"at most {MOST_ROWS}")
        yield file


def read_parquet(path: Path, columns: Sequence[str] | None, rows: int) -> Iterator[pa.Table]:
    """Tables of up to ``rows`` rows each, one row group at a time in memory; at least one, perhaps empty."""
    import pyarrow as pa

    with open_parquet(path) as file:
        chosen = chosen_columns(list(file.schema_arrow.names), columns)
        plain = pa.schema([file.schema_arrow.field(name).remove_metadata() for name in chosen])
        yielded = False
        try:
            for batch in file.iter_batches(rows, columns=chosen):
                yielded = True
                part = pa.table([batch.column(name) for name in chosen], schema=plain)
                # Text that is not UTF-8 would only be noticed where it is used.
                part.validate(full=True)
                yield without_views(part)
        except (pa.ArrowException, OSError):
            raise InvalidInput(str(path), "a damaged Parquet file", "a whole one") from None
        if not yielded:
            yield without_views(plain.empty_table())


def _check_ends(path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(4)
        file.seek(max(0, size - 4))
        end = file.read(4)
    if size == 0:
        raise InvalidInput(str(path), "an empty file (0 rows)", "a Parquet file")
    if start == b"PARE" or end == b"PARE":
        raise InvalidInput(str(path), "an encrypted Parquet file", "a plain one")
    if start != _MAGIC:
        raise InvalidInput(str(path), "a file that is not Parquet", "a Parquet file")
    if size < 12 or end != _MAGIC:
        raise InvalidInput(str(path), "a truncated Parquet file", "a whole one")


def _has_extension(field: pa.Field) -> bool:
    import pyarrow as pa

    if isinstance(field.type, pa.BaseExtensionType) or b"ARROW:extension:name" in (field.metadata or {}):
        return True
    inner = [field.type.field(i) for i in range(field.type.num_fields)]
    return any(_has_extension(child) for child in inner)


SUFFIXES = (".parquet", ".csv", ".csv.gz")
#: Rows in memory at a time where a table is streamed.
ROWS = 1 << 20
#: Rows of Parquet that are looked at together: what is made of them on the way takes 100 bytes of each.
READ_ROWS = 1 << 18


def table_format(path: PathLike, field: str = "path") -> str:
    """The suffix that says how a table is stored; InvalidInput for any other."""
    name = Path(path).name.lower()
    suffix = next((suffix for suffix in SUFFIXES[::-1] if name.endswith(suffix)), None)
    if suffix is None:
        raise InvalidInput(field, str(path), "a name ending in .parquet, .csv or .csv.gz")
    return suffix


def column_names(path: PathLike) -> list[str]:
    """Names of a table's columns, in order."""
    file = checked_input(path)
    if table_format(file) != ".parquet":
        return csv_names(file)
    with open_parquet(file) as opened:
        return list(opened.schema_arrow.names)


def read_table(path: PathLike, *, columns: Sequence[str] | None = None, text: Collection[str] | None = ()) -> pa.Table:
    """A whole table. In CSV the columns named in ``text`` (None: all) stay text; others get the type they look like.

    Raises InvalidInput, in one line and without a value of a row, for: a missing, truncated or changing file;
    a folder, device or pipe; a pickle; an extension type; a missing or repeated column; ragged rows; a wrong
    encoding.
    """
    import pyarrow as pa

    return pa.concat_tables(read_batches(path, columns=columns, text=text))


def read_batches(
    path: PathLike,
    *,
    columns: Sequence[str] | None = None,
    text: Collection[str] | None = (),
    rows: int = ROWS,
) -> Iterator[pa.Table]:
    """The table in parts of at most ``rows`` rows, at least one part. Parquet is streamed, CSV is read whole.

    The file is hashed before the first part and after the last; InvalidInput if it changed.
    """
    file = checked_input(path)
    suffix = table_format(file)
    import pyarrow as pa

    with steady(file):
        if suffix == ".parquet":
            yield from read_parquet(file, columns, rows)
            return
        table = typed(pa.concat_tables(text_parts(file, CSV, columns, [], strict=True)), text)
        for start in range(0, max(1, len(table)), rows):
            yield table.slice(start, rows)


def write_table(path: PathLike, table: pa.Table, *, inputs: Iterable[PathLike] = ()) -> None:
    """Write a table, replacing none of ``inputs``; ids in CSV that look like formulas are escaped."""
    with table_writer(path, table.schema, inputs=inputs) as write:
        write(table)


@contextmanager
def table_writer(
    path: PathLike, schema: pa.Schema, *, inputs: Iterable[PathLike] = ()
) -> Iterator[Callable[[pa.Table], None]]:
    """A function that appends tables of one schema; the file appears when the block ends without an error."""
    suffix = table_format(path, "output")
    checked_output(path, inputs)
    import pyarrow as pa
    from pyarrow import csv, parquet

    with replacing(path) as temporary:
        if suffix == ".parquet":
            with parquet.ParquetWriter(temporary, schema.remove_metadata(), compression="zstd") as writer:
                yield lambda table: writer.write_table(table.replace_schema_metadata(None), row_group_size=ROWS)
            return
        packing: Any = "gzip" if suffix.endswith(".gz") else None
        with (
            pa.output_stream(str(temporary), compression=packing) as stream,
            csv.CSVWriter(stream, escape_columns(schema.empty_table()).schema) as writer,
        ):
            yield lambda table: writer.write_table(escape_columns(table))


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """The rows of a source: ``name``, for messages, names of its columns, and some columns in parts.

    ``types`` : those that the source declares for its columns; text declares none. ``ragged`` : the numbers, from 1, of
    rows with another number of cells, which are in no part; complete when the last part has been taken. ``text`` : the
    text whose rows they are.
    """

    name: str
    names: tuple[str, ...]
    types: Mapping[str, pa.DataType]
    parts: Callable[[Sequence[str]], Iterator[pa.Table]]
    ragged: list[int]
    text: Path | TextMember | None = None


def read_rows(source: Any, layout: Layout = PLAIN, *, private: bool = False, field: str = "path") -> Rows:
    """The rows of a CSV or Parquet file, of a text in memory, or of a pandas, polars or Arrow table: read once.

    All cells of text are text. A GeoDataFrame without columns of places or states has those of its points, in degrees.
    If rows are ``private``, the cells of a pandas frame are read one by one, as the text that they print as (the type
    of such a column follows from all of its cells), and no shape is refused.

    Raises InvalidInput for a file that is none, a header that cannot be read, and names of columns that repeat; parts
    raise it as `read_table` does for Parquet and `text_parts` for text.
    """
    import pyarrow as pa

    ragged = list[int]()
    if isinstance(source, TextMember) or is_path(source):
        text = source if isinstance(source, TextMember) else checked_input(source, field)
        name = text.name if isinstance(text, TextMember) else str(text)
        if isinstance(text, Path) and text.suffix.lower() == ".parquet":
            return _parquet_rows(text, layout)
        names = tuple(csv_names(text, layout))

        def lines(columns: Sequence[str]) -> Iterator[pa.Table]:
            with steady(text) if isinstance(text, Path) else nullcontext():
                yield from text_parts(text, layout, columns, ragged)

        return Rows(name, names, {}, lines, ragged, text)
    table = read_whole(source)
    if not any(layout.columns.get(role) for role in ("lat", "lon", "state")):
        table = located(table, each=private)
    names = tuple(column_list(table))
    kind, types = table_kind(table), dict[str, Any]()
    if kind != "pandas":
        rowless = to_arrow(table if kind == "arrow" else table[:0], names)
        types = {each.name: each.type for each in rowless.schema}

    def parts(columns: Sequence[str]) -> Iterator[pa.Table]:
        if private and kind == "pandas":
            cells = pa.table({name: _arrow_column(table[name].astype(object)) for name in columns})
        else:
            cells = to_arrow(table, columns)
        try:
            cells.validate(full=True)
        except pa.ArrowInvalid:
            # A Parquet file with such bytes is damaged, too.
            raise InvalidInput("table", "a damaged Arrow table", "text in UTF-8, and offsets within it") from None
        yield cells

    return Rows("table", names, types, parts, ragged)


def _parquet_rows(file: Path, layout: Layout) -> Rows:
    """The rows of a Parquet file. Raises InvalidInput for options of text, of which it has no use."""
    for name in ("delimiter", "names", "encoding", "comment", "skip"):
        if getattr(layout, name) != getattr(PLAIN, name):
            option = "skip_lines" if name == "skip" else name
            raise InvalidInput(option, getattr(layout, name), "a text with it: Parquet has columns of its own")
    with open_parquet(file) as opened:
        types = {each.name: each.type for each in opened.schema_arrow}

    def parts(columns: Sequence[str]) -> Iterator[pa.Table]:
        return read_batches(file, columns=columns, rows=READ_ROWS)

    return Rows(str(file), tuple(types), types, parts, [])


def table_kind(table: Any) -> str:
    """ "pandas", "polars" or "arrow", as which `Trajectories` count; InvalidInput for anything else."""
    module = type(table).__module__.split(".")[0]
    # Subclasses of data frames that other libraries define are such, too.
    if any(base.__name__ == "DataFrame" and base.__module__.split(".")[0] == "pandas" for base in type(table).__mro__):
        return "pandas"
    if module == "polars" and hasattr(table, "select"):
        return "polars"
    if module == "pyarrow" and hasattr(table, "column_names"):
        return "arrow"
    if hasattr(table, "__arrow_c_stream__"):
        return "arrow"
    inside = ", such as its .trajectories" if hasattr(table, "trajectories") else ""
    raise InvalidInput("table", type(table).__name__, f"a pandas, polars or Arrow table, or Trajectories{inside}")


def read_whole(table: Any) -> Any:
    """A table that can be read again: an Arrow stream, which gives its rows once, is read here; all else stays.

    Raises InvalidInput for a stream that cannot be read, or that was read here before.
    """
    import pyarrow as pa

    if is_path(table) or table_kind(table) != "arrow" or hasattr(table, "column_names"):
        return table
    if isinstance(table, pa.RecordBatchReader):
        # Once read it looks like a table without rows.
        if table in _READ:
            raise InvalidInput("table", "an Arrow stream that was read before", _A_TABLE)
        _READ.add(table)
    try:
        return pa.table(table)
    except (pa.ArrowException, OSError):
        raise InvalidInput("table", "an Arrow stream that cannot be read", _A_TABLE) from None


#: Streams that were read here.
_READ: weakref.WeakSet[Any] = weakref.WeakSet()
_A_TABLE = "a table, which can be read more than once: reader.read_all()"


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

    names = column_list(table) if columns is None else list(columns)
    kind = table_kind(table)
    if kind == "pandas":
        return pa.table({name: _arrow_column(table[name]) for name in names})
    if kind == "polars":
        chosen = table.select(names)
        frame = chosen.collect() if hasattr(chosen, "collect") else chosen
        try:
            return without_views(pa.table(frame))
        except pa.ArrowInvalid:
            types = ", ".join(dict.fromkeys(str(kind) for kind in frame.schema.values()))
            raise InvalidInput("table", f"columns of types {types}", "types that Arrow has, such as Int64") from None
    return without_views(_arrow(table).select(names))


def is_path(given: Any) -> bool:
    """True for the path of a file."""
    return isinstance(given, (str, os.PathLike))


def is_table(given: Any) -> bool:
    """True for the path of a table, and for a frame of any kind."""
    shapes = ("columns", "column_names", "collect_schema", "__arrow_c_stream__")
    return is_path(given) or any(hasattr(given, name) for name in shapes)


def table_of(given: Any, *, text: Collection[str] = ()) -> pa.Table:
    """The Arrow table of a file, of which CSV has these columns as ``text``, or of a frame with its columns checked."""
    if is_path(given):
        return read_table(given, text=text)
    table = read_whole(given)
    return to_arrow(table, column_list(table))


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


def convert_frame(frame: Any, *, timezone: str | None = None) -> pd.DataFrame:
    """A frame of a mobility library as a new pandas frame with the canonical columns user, t, lat, lon (trip).

    Recognised by their columns: scikit-mobility (uid, lat, lng, datetime), trackintel positionfixes (user_id,
    tracked_at, a geometry of points) and movingpandas (a DatetimeIndex, a geometry of points, traj_id). Times without a
    zone, as scikit-mobility and movingpandas have them, are what the clocks of ``timezone`` showed ("UTC",
    "Asia/Shanghai"). A projected geometry is brought to degrees where the frame knows its CRS; a shape that is no point
    is no place, and a time that cannot be read is none. traj_id is the user, or the trip where there is a column
    user_id, user or obj_id.

    Raises InvalidInput for any other frame and for a column of timestamps without a zone.
    """
    import pandas as pd

    names = set(column_list(frame))
    if table_kind(frame) != "pandas":
        raise InvalidInput("frame", type(frame).__name__, "a pandas or geopandas frame")
    times = Times("t", timezone)
    index = frame.index
    if {"uid", "lat", "lng", "datetime"} <= names:
        columns = {"user": "uid", "t": "datetime", "lat": "lat", "lon": "lng"} | (
            {"trip": "tid"} if "tid" in names else {}
        )
        cells = {role: frame[name] for role, name in columns.items()}
    elif {"user_id", "tracked_at"} <= names:
        lat, lon = _coordinates(frame)
        cells = {"user": frame["user_id"], "t": frame["tracked_at"], "lat": lat, "lon": lon}
    elif "traj_id" in names and isinstance(index, pd.DatetimeIndex):
        lat, lon = _coordinates(frame)
        owner = next((name for name in ("user_id", "user", "obj_id") if name in names), None)
        cells = {"user": frame[owner or "traj_id"], "t": index.to_series(), "lat": lat, "lon": lon}
        cells |= {"trip": frame["traj_id"]} if owner else {}
        index = None
    else:
        raise InvalidInput(
            "frame",
            "columns " + listed(sorted(names)),
            "uid, lat, lng, datetime; or user_id, tracked_at, geometry; or a DatetimeIndex, geometry and traj_id",
        )
    # Cell by cell: pandas would read all of them in the format of the first one.
    micros, marks = times.add(_arrow_column(cells["t"]))
    bad = np.logical_or.reduce(list(marks.values()))
    if bad.all() and marks.get("time_without_zone", ~bad).any():
        raise times.zone_missing()
    stamps = pd.to_datetime(micros, unit="us", utc=True).to_series().reset_index(drop=True)
    cells["t"] = stamps.mask(bad)
    return pd.DataFrame({role: column.array for role, column in cells.items()}, index=index)


#: Columns that say where somebody is.
_SAYING = ("lat", "latitude", "lon", "lng", "long", "longitude", "state")


def located(table: Any, *, each: bool = False) -> Any:
    """A table as it is; a GeoDataFrame without columns of places or states with lat and lon of its points, in degrees.

    Raises InvalidInput where it has points and columns lat and lon that are elsewhere: which of both is meant? And for
    shapes none of which is a point. With ``each`` every row is read by itself, and none raises: a known column counts,
    and a shape that is no point is no place.
    """
    if not hasattr(table, "geometry"):
        return table
    names = set(column_list(table))
    if names & set(_SAYING):
        if not each and {"lat", "lon"} <= names and (table.geometry.geom_type == "Point").all():
            for name, of_points in zip(("lat", "lon"), _coordinates(table), strict=True):
                column = table[name].to_numpy()
                numbers = np.issubdtype(column.dtype, np.number)
                if numbers and (np.abs(column - of_points.to_numpy()) > _SAME_DEGREES).any():
                    fault = "a column beside points that are elsewhere"
                    raise InvalidInput(name, fault, "one of both: the columns lat and lon, or the geometry of points")
        return table
    lat, lon = _coordinates(table, each)
    import pandas as pd

    plain = {name: table[name] for name in table.columns if name != table.geometry.name}
    return pd.DataFrame(plain | {"lat": lat, "lon": lon})


def _coordinates(frame: Any, each: bool = False) -> tuple[Any, Any]:
    """Latitudes and longitudes of a frame's points; unless ``each`` is read by itself one shape has to be one."""
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
    if not each and not any(there) and points.notna().any():
        raise InvalidInput("geometry", "shapes that are not points", "points (positionfixes)")
    # Another shape is no place; a missing one is an empty cell.
    others = np.where(points.isna(), math.nan, math.inf)
    lat = [point.y if fine else other for point, fine, other in zip(points, there, others, strict=True)]
    lon = [point.x if fine else other for point, fine, other in zip(points, there, others, strict=True)]
    return pd.Series(lat, frame.index, dtype=float), pd.Series(lon, frame.index, dtype=float)


def _printed(cell: Any) -> str | None:
    """A cell as text: 3 and 3.0 are one, an infinite number is beyond all floats; None for what cannot be printed."""
    if isinstance(cell, (float, np.floating)):
        number = float(cell)
        if math.isinf(number):
            return "1e999" if number > 0 else "-1e999"
        return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)
    if isinstance(cell, bytes):
        return None
    try:
        return str(cell).encode().decode()
    except Exception:
        # Whatever one cell raises, the rows of others are read.
        return None


def _arrow_column(column: pd.Series[Any]) -> pa.ChunkedArray:
    import pandas as pd
    import pyarrow as pa

    kind = column.dtype
    inner = kind.categories.dtype if isinstance(kind, pd.CategoricalDtype) else kind
    if pd.api.types.is_object_dtype(inner) or isinstance(inner, pd.StringDtype):
        # Cell by cell: Arrow would give all of them the type that fits the oddest one.
        cells = [None if missing else _printed(cell) for cell, missing in zip(column, column.isna(), strict=True)]
        array = pa.array(cells, pa.string())
    else:
        try:
            array = pa.array(column, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError):
            raise InvalidInput(str(column.name), f"a column of type {kind}", "text, numbers or times") from None
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def _arrow(table: Any) -> pa.Table:
    import pyarrow as pa

    if not hasattr(table, "column_names"):
        # Its rows would be there for the first reader alone.
        raise InvalidInput("table", type(table).__name__, _A_TABLE)
    return table if isinstance(table, pa.Table) else pa.table(table)
