"""Geo files in and out: zones and points of GeoJSON, GeoPackage, Shapefile and FlatGeobuf; releases as points.

All goes through geopandas, an optional extra: ``pip install 'dphmm[geo]'``. Places are brought to degrees (WGS84); a
file that does not say in which coordinates it is, is refused. Only plain files are opened: no address, no virtual path.
GDAL goes by what is in a file, and some formats name other files and addresses: a file is of the format that its name
says before GDAL sees it, and GeoJSON is read here.

Points are people's rows, so no row decides how another one is read. GeoJSON declares no types: its properties are the
text that stands in the file, feature by feature, and the names in its first feature are the header. The other formats
declare the type of a column, and times keep the zone that each of them has, or has not.

Proof: docs/proofs/records.md.
"""

from __future__ import annotations

import json
import logging
import re
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.zones import Zones
from dphmm.storage.columns import decimals
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import PathLike, checked_input, checked_output, replacing, steady
from dphmm.storage.json_lines import Number, cell, json_document, part
from dphmm.storage.tables import column_list, read_table, read_whole, to_arrow

if TYPE_CHECKING:
    import geopandas as gpd
    import pyarrow as pa

    from dphmm.states.space import StateSpace
    from dphmm.types import IntArray

#: Bytes of a file of GeoJSON that is read as it is written.
LARGEST = 64_000_000
#: What files are named, and what writes each.
SUFFIXES = (".geojson", ".json", ".gpkg", ".shp", ".fgb")
_WRITTEN = {".geojson": "GeoJSON", ".json": "GeoJSON", ".gpkg": "GPKG", ".fgb": "FlatGeobuf"}
_DEGREES = 4326
#: How files begin that a library opens, which would read one of another format as what it is.
_BEGINS = {
    ".gpkg": ("GeoPackage", b"SQLite format 3\0"),
    ".shp": ("Shapefile", b"\0\0\x27\x0a"),
    ".fgb": ("FlatGeobuf", b"fgb\x03"),
}
#: The application_id of a GeoPackage, by its version.
_GEOPACKAGES = (b"GPKG", b"GP10", b"GP11")
#: What a GeoPackage is made of, as SQLite writes it down: no views, and no virtual tables but indexes of places.
_ORDINARY = re.compile(
    r'CREATE (?:TABLE|INDEX|UNIQUE INDEX|TRIGGER) .*|CREATE VIRTUAL TABLE (?:"[^"]*"|\w+) USING rtree\(.*', re.S
)


def _geopandas(field: str) -> ModuleType:
    try:
        import geopandas
    except ImportError:
        raise InvalidInput(field, "no geopandas package", "it installed: pip install 'dphmm[geo]'") from None
    module: ModuleType = geopandas
    return module


def read_features(path: PathLike, field: str = "source", crs: str | None = None) -> gpd.GeoDataFrame:
    """The features of a geo file, in degrees.

    ``crs`` : in which coordinates a file is that does not say it, such as EPSG:25833. Raises InvalidInput for a file
    that cannot be read, that says no coordinates, or that has no features, and without geopandas.
    """
    file = checked_input(path, field)
    if file.suffix.lower() not in SUFFIXES:
        raise InvalidInput(field, str(file), "a name ending in " + ", ".join(SUFFIXES))
    gpd = _geopandas(field)
    import pyogrio

    with _held(file, field), _unheard():
        _check_format(file, field)
        try:
            if file.suffix.lower() in _BEGINS:
                frame = pyogrio.read_dataframe(_opened(file))
            else:
                frame = _json_features(file, gpd)
        except InvalidInput:
            raise
        except Exception:
            # The libraries below raise errors of many kinds, which quote what they have read.
            raise InvalidInput(field, f"{file}, which cannot be read", "a whole geo file") from None
    if not isinstance(frame, gpd.GeoDataFrame) or not len(frame):
        raise InvalidInput(field, f"{file}, without features", "polygons or points in it")
    if frame.crs is None and crs is None:
        raise InvalidInput("crs", f"none in {file.name}", _CRS_NEEDED)
    try:
        return (frame.set_crs(crs) if frame.crs is None else frame).to_crs(_DEGREES)
    except Exception:
        raise InvalidInput("crs", crs or str(frame.crs), "coordinates that are known, such as EPSG:25833") from None


def written_features(path: PathLike, field: str, expected: str) -> list[dict[str, Any]]:
    """The features of GeoJSON in degrees, as they are written.

    Raises InvalidInput for a file that is too large, or is no such file: then ``expected`` is named.
    """
    file = checked_input(path, field)
    if file.stat().st_size > LARGEST:
        raise InvalidInput(field, f"{file.stat().st_size:,} bytes", f"at most {LARGEST:,}")
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise InvalidInput(field, "a file that is no JSON", expected) from None
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(features, list) or not all(isinstance(feature, dict) for feature in features):
        raise InvalidInput(field, "a file without features", expected)
    return features


@contextmanager
def _held(file: Path, field: str) -> Iterator[None]:
    """Hold a file `steady`, and the files beside a Shapefile that are read with it."""
    beside = (".shx", ".dbf", ".prj", ".cpg") if file.suffix.lower() == ".shp" else ()
    with ExitStack() as stack:
        for each in (file, *map(file.with_suffix, beside)):
            if each.exists():
                stack.enter_context(steady(checked_input(each, field)))
        yield


def _check_format(file: Path, field: str) -> None:
    """Refuse a file that is not of the format that its name says, and a GeoPackage that is more than its tables."""
    suffix = file.suffix.lower()
    if suffix not in _BEGINS:
        return
    kind, begins = _BEGINS[suffix]
    with file.open("rb") as stream:
        header = stream.read(100)
    if not header.startswith(begins) or (suffix == ".gpkg" and header[68:72] not in _GEOPACKAGES):
        raise InvalidInput(field, f"{file}, a file that is not a {kind}", "the format that its name says")
    if suffix != ".gpkg":
        return
    for log in (Path(f"{file}-wal"), Path(f"{file}-journal")):
        if log.exists() and log.stat().st_size:
            raise InvalidInput(field, f"{file}, with {log.name} beside it", "a file that no program has open")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro&immutable=1", uri=True)) as database:
            made = [sql for (sql,) in database.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
    except sqlite3.Error:
        raise InvalidInput(field, f"{file}, which cannot be read", "a whole geo file") from None
    if not all(isinstance(sql, str) and _ORDINARY.fullmatch(sql) for sql in made):
        raise InvalidInput(field, f"{file}, with views or virtual tables", "a GeoPackage of tables and rtree indexes")


def _opened(file: Path) -> Path | bytes:
    """The file for GDAL; for a GeoPackage its bytes, as logs beside the file could change what was checked."""
    if file.suffix.lower() != ".gpkg":
        return file
    data = bytearray(file.read_bytes())
    # No log is left over: versions 1 of its header say that there is none to look for.
    data[18:20] = b"\1\1"
    return bytes(data)


def _json_features(file: Path, gpd: ModuleType) -> gpd.GeoDataFrame:
    """The features of GeoJSON (RFC 7946), with their ids where they have such; errors of many kinds."""
    import shapely.geometry

    document = json.loads(file.read_bytes())
    rows, shapes = list[dict[str, Any]](), list[Any]()
    for feature in document["features"]:
        rows.append({**({"id": feature["id"]} if "id" in feature else {}), **(feature.get("properties") or {})})
        shapes.append(shapely.geometry.shape(feature["geometry"]) if feature.get("geometry") else None)
    return gpd.GeoDataFrame(rows, geometry=shapes, crs=_json_crs(document))


#: Names of coordinates as authorities give them. PROJ also takes definitions, which name files.
_CRS_NAMES = re.compile(r"[\w.:-]+|https?://www\.opengis\.net/[\w.:/#-]+")


def _json_crs(document: Mapping[str, Any]) -> str:
    """The coordinates of GeoJSON by the name that it has for them, else degrees. Raises InvalidInput."""
    name = part(document.get("crs"), "properties", dict).get("name", f"EPSG:{_DEGREES}")
    if not isinstance(name, str) or not _CRS_NAMES.fullmatch(name):
        # What is no text may be a part of some row.
        got = ascii(name[:80]) if isinstance(name, str) else "no text"
        raise InvalidInput("crs", got, "a name of coordinates, such as EPSG:25833")
    return name


@contextmanager
def _unheard() -> Iterator[None]:
    """Warnings and log lines of the libraries below quote what they read, which may be somebody's place."""
    logger = logging.getLogger("pyogrio")
    before = logger.disabled
    logger.disabled = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.disabled = before


def read_zones(
    path: PathLike, id_column: str, *, crs: str | None = None, mend: bool = False, field: str = "zones"
) -> Zones:
    """The zones of a file of polygons, named by a column.

    Raises InvalidInput as `read_features` and `Zones`, and for a column that is not there.
    """
    frame = read_features(path, field, crs)
    columns = [str(name) for name in frame.columns if name != frame.geometry.name]
    if id_column not in columns:
        raise InvalidInput("zone_id", id_column, "one of " + listed(columns))
    return Zones([_label(value) for value in frame[id_column]], list(frame.geometry), mend=mend)


def read_areas(path: PathLike, space: StateSpace, field: str = "areas") -> dict[str, IntArray]:
    """The states whose answer (a cell's centre) lies in each area of a file of polygons, by the area's name.

    An area is called by its property ``name``, else by its number in the file, from 1. Raises InvalidInput as
    `read_features`, for states that are no places, for what is no sound polygon, and for an area without a state.
    """
    if not space.on_map:
        raise InvalidInput(field, str(path), "none: these states are no places")
    frame = read_features(path, field)
    column = frame["name"] if "name" in frame else [None] * len(frame)
    names = [_label(name) if isinstance(name, str) else str(at) for at, name in enumerate(column, start=1)]
    return states_in(list(zip(names, frame.geometry, strict=True)), space, field)


def states_in(shapes: Sequence[tuple[str, Any]], space: StateSpace, field: str = "areas") -> dict[str, IntArray]:
    """The states whose answer lies in each of the named shapes, which are shapely's; errors as `read_areas`."""
    import shapely

    places = space.to_latlon(space.answers)
    assert places is not None
    lat, lon = places
    areas: dict[str, IntArray] = {}
    for name, shape in shapes:
        if name in areas:
            raise InvalidInput(field, f"two areas called {name}", "a name for each")
        if shape is None or shape.geom_type not in ("Polygon", "MultiPolygon") or not shape.is_valid:
            raise InvalidInput(field, f"{name}, which is no polygon without crossings", "polygons")
        areas[name] = np.flatnonzero(shapely.contains_xy(shape, lon, lat))
        if not len(areas[name]):
            raise InvalidInput(field, f"{name}, in which no cell has its centre", "a larger area, or smaller cells")
    return areas


class Points(NamedTuple):
    """The columns of a file of points, with their lat and lon; the columns declared to be times; notes."""

    table: pa.Table
    times: frozenset[str]
    notes: tuple[str, ...]


def read_points(path: PathLike, crs: str | None = None, named: Sequence[str] = ()) -> Points:
    """The points of a file and their columns; a feature that is no point has no place.

    ``named`` : properties that are read of a GeoJSON file although its first feature does not have them.

    Raises InvalidInput as `read_features`, and for a file without points.
    """
    file = checked_input(path, "source")
    if file.suffix.lower() not in SUFFIXES:
        raise InvalidInput("source", str(file), "a name ending in " + ", ".join([*SUFFIXES, ".gpx"]))
    _geopandas("source")
    with _held(file, "source"), _unheard():
        _check_format(file, "source")
        if file.suffix.lower() in (".geojson", ".json"):
            points, there, file_crs = _json_points(file, named)
        else:
            points, there, file_crs = _typed_points(file)
    if not len(points.table):
        raise InvalidInput("source", f"{file}, without features", "polygons or points in it")
    if not there:
        raise InvalidInput("source", f"{path}, without points", "points; polygons are zones: dphmm model zones")
    if file_crs is None and crs is None:
        raise InvalidInput("crs", f"none in {file.name}", _CRS_NEEDED)
    return points._replace(table=_in_degrees(points.table, file_crs or crs))


_CRS_NEEDED = "a file that says its coordinates (.prj of a Shapefile), or crs=EPSG:4326 for degrees"


def _in_degrees(table: pa.Table, crs: str | None) -> pa.Table:
    """The table with its lon and lat in degrees: each place by itself; one that has none is not finite."""
    import pyarrow as pa
    from pyproj import CRS, Transformer

    try:
        known = CRS.from_user_input(crs)
        if known.equals(CRS.from_epsg(_DEGREES), ignore_axis_order=True):
            return table
        change = Transformer.from_crs(known, _DEGREES, always_xy=True)
    except Exception:
        raise InvalidInput("crs", str(crs), "coordinates that are known, such as EPSG:25833") from None
    lon, lat = change.transform(*(table.column(name).to_numpy(zero_copy_only=False) for name in ("lon", "lat")))
    for name, values in (("lon", lon), ("lat", lat)):
        table = table.set_column(table.column_names.index(name), name, pa.array(values, pa.float64()))
    return table


def _with_places(columns: Mapping[str, Any], lon: Any, lat: Any) -> pa.Table:
    """The columns, and the places of the features in place of columns of their names."""
    import pyarrow as pa

    others = {name: column for name, column in columns.items() if name not in ("lat", "lon")}
    return pa.table({**others, "lat": pa.array(lat, pa.float64()), "lon": pa.array(lon, pa.float64())})


def _typed_points(file: Path) -> tuple[Points, bool, str | None]:
    """The points of a format that declares the types of its columns, whether there are any, and the coordinates."""
    import pyarrow as pa
    import shapely
    from pyogrio.raw import open_arrow

    try:
        # Times as text, with the zone of each.
        with open_arrow(_opened(file), use_pyarrow=True, datetime_as_string=True) as (meta, reader):
            table = reader.read_all()
        shapes = shapely.from_wkb(table.column(meta["geometry_name"] or "wkb_geometry").to_numpy(zero_copy_only=False))
    except Exception:
        # The libraries below raise errors of many kinds, which quote what they have read.
        raise InvalidInput("source", f"{file}, which cannot be read", "a whole geo file") from None
    there = (shapely.get_type_id(shapes) == shapely.GeometryType.POINT) & ~shapely.is_empty(shapes)
    points = np.where(there, shapes, None)
    columns, times = dict[str, Any](), set[str]()
    for each in table.schema:
        if pa.types.is_binary(each.type):
            continue
        column = table.column(each.name)
        if pa.types.is_date(each.type) or pa.types.is_time(each.type):
            column = column.cast(pa.string())
        if (each.metadata or {}).get(b"GDAL:OGR:type") == b"DateTime":
            times.add(each.name)
        columns[each.name] = column
    made = _with_places(columns, shapely.get_x(points), shapely.get_y(points))
    return Points(made, frozenset(times), ()), bool(there.any()), meta["crs"]


_NEEDED = "JSON: a FeatureCollection, in UTF-8"
_MORE = "features have properties that the first one does not have: a role option such as time_column= reads one"


def _json_points(file: Path, named: Sequence[str]) -> tuple[Points, bool, str | None]:
    """The same of GeoJSON (RFC 7946), whose features are read one by one."""
    import pyarrow as pa

    with file.open("rb") as stream:
        document = json_document(str(file), stream, _NEEDED)
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(features, list):
        raise InvalidInput("source", f"{file}, which has no list of features", _NEEDED)
    rows = [part(feature, "properties", dict) for feature in features]
    header = [name for name in next((row for row in rows if row), {}) if name.isprintable() and cell(name) == name]
    seen = {name for row in rows for name in row}
    header += [name for name in dict.fromkeys(named) if name in seen and name not in header]
    more = sum(not set(row) <= set(header) for row in rows)
    columns = {name: pa.array([cell(row.get(name)) for row in rows], pa.string()) for name in header}
    places = [_place(part(feature, "geometry", dict)) for feature in features]
    made = _with_places(columns, [lon for lon, _ in places], [lat for _, lat in places])
    crs = _json_crs(document)
    notes = (f"{more} {_MORE}",) if more else ()
    there = any(part(feature, "geometry", dict).get("type") == "Point" for feature in features)
    return Points(made, frozenset(), notes), there, crs


def _place(geometry: Mapping[str, Any]) -> tuple[float, float]:
    """The lon and lat of a point; not finite where there is none, or where its numbers are too large."""
    coordinates = geometry.get("coordinates")
    if geometry.get("type") != "Point" or not isinstance(coordinates, list) or len(coordinates) < 2:
        return np.nan, np.nan
    if not all(isinstance(number, Number) for number in coordinates[:2]):
        return np.nan, np.nan
    return float(coordinates[0]), float(coordinates[1])


def _label(value: Any) -> str:
    """3, 3.0 and "3" are one label; a missing value is none."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


#: Whose places a table has, by the beginning of the names of its columns, in the order in which they are looked for.
PLACES = {"smoothed": "smoothed_", "path": "path_", "z": "z_", "place": ""}


def to_geopandas(table: Any, *, what: str | None = None) -> gpd.GeoDataFrame:
    """A table with places as points in degrees, with all its columns: to draw, or to write with geopandas.

    Parameters
    ----------
    table : a result of `release_many`, `smooth`, `synthesize` or `load_trajectories`: a pandas, polars or Arrow table,
        or `Trajectories`. It stays as it is. A GeoDataFrame without such columns comes back.
    what : the kind of places of the points: smoothed, path, z, or place (lat and lon). Without it the first of these
        that there is.

    Returns
    -------
    A GeoDataFrame (WGS84) of the rows that have such a place: a row that was not asked has no z, and so no point.

    Raises
    ------
    InvalidInput : for a table without such places, and without geopandas (``pip install 'dphmm[geo]'``).

    Examples
    --------
    >>> import dphmm, pandas
    >>> rows = pandas.DataFrame({"user": ["a", "b"], "z_lat": [52.5, None], "z_lon": [13.4, None]})
    >>> points = dphmm.storage.to_geopandas(rows)
    >>> len(points), points.geometry.iloc[0].x
    (1, 13.4)
    """
    rows = read_whole(table)
    names = column_list(rows)
    if hasattr(table, "geometry") and what in (None, "place") and not {"lat", "lon"} <= set(names):
        return table
    return _points(rows, place_columns(names, what, "table"), "table")


def place_columns(names: Sequence[str], what: str | None, field: str) -> str:
    """The kind of places of a table's points, by `PLACES`: ``what``, or the first one there. Raises InvalidInput."""
    if what is not None and what not in PLACES:
        raise InvalidInput("what", what, "one of " + ", ".join(PLACES))
    there = [kind for kind, start in PLACES.items() if {f"{start}lat", f"{start}lon"} <= set(names)]
    if what in there or (what is None and there):
        return what or there[0]
    start = PLACES[what or "z"]
    expected = f"a table of a map, with {start}lat and {start}lon" + (f"; or what={there[0]}" if there else "")
    raise InvalidInput(field, "columns " + listed(names), expected)


def _points(table: Any, what: str, field: str) -> gpd.GeoDataFrame:
    """The rows that have a place, with points of it."""
    gpd = _geopandas(field)
    rows, sides = to_arrow(table), [f"{PLACES[what]}{side}" for side in ("lat", "lon")]
    lat, lon = (decimals(rows.column(side), side)[0] for side in sides)
    known = np.isfinite(lat) & np.isfinite(lon)
    frame = rows.to_pandas()[known].reset_index(drop=True)
    return gpd.GeoDataFrame(frame, geometry=gpd.points_from_xy(lon[known], lat[known]), crs=_DEGREES)


class Written(NamedTuple):
    """The number of points that were written, and the kind of their places."""

    points: int
    what: str


def write_released(
    released: PathLike, output: PathLike, *, what: str | None = None, inputs: Sequence[PathLike] = ()
) -> Written:
    """A released or smoothed table of a map as points in degrees, with all its columns.

    ``what`` : the kind of places of the points, as for `to_geopandas`.

    Raises InvalidInput for a table without places, another suffix, and without geopandas.
    """
    _geopandas("output")
    suffix = Path(output).suffix.lower()
    if suffix not in _WRITTEN:
        raise InvalidInput("output", str(output), "a name ending in " + ", ".join(_WRITTEN))
    checked_output(output, [released, *inputs])
    rows = read_table(released, text={"user"})
    chosen = place_columns(rows.column_names, what, "released")
    made = _points(rows, chosen, "released")
    with replacing(output) as temporary:
        # Drivers go by the suffix, and some will not write over a file.
        written = temporary.with_name(temporary.name + suffix)
        try:
            made.to_file(written, driver=_WRITTEN[suffix], engine="pyogrio", layer="release")
            written.replace(temporary)
        finally:
            written.unlink(missing_ok=True)
    return Written(len(made), chosen)
