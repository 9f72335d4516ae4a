"""Geo files in and out: zones and points of GeoJSON, GeoPackage, Shapefile, FlatGeobuf and GPX; releases as points.

All goes through geopandas, an optional extra: ``pip install 'dphmm[geo]'``. Places are brought to degrees (WGS84); a
file that does not say in which coordinates it is, is refused. Only plain files are opened: no address, no virtual path.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.states.zones import Zones
from dphmm.storage.csv_files import listed
from dphmm.storage.inputs import PathLike, checked_input, checked_output, replacing, steady
from dphmm.storage.tables import read_table, to_arrow

if TYPE_CHECKING:
    import geopandas as gpd

#: What files are named, and what writes each.
SUFFIXES = (".geojson", ".json", ".gpkg", ".shp", ".fgb", ".gpx")
_WRITTEN = {".geojson": "GeoJSON", ".json": "GeoJSON", ".gpkg": "GPKG", ".fgb": "FlatGeobuf"}
_DEGREES = 4326
#: Layers of a GPX file that have points, in the order in which they are looked for.
_GPX_LAYERS = ("track_points", "waypoints", "route_points")


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
    with steady(file), _unheard():
        try:
            frame = _read(gpd, file)
        except Exception:
            # The libraries below raise errors of many kinds, which quote what they have read.
            raise InvalidInput(field, f"{file}, which cannot be read", "a whole geo file") from None
    if not isinstance(frame, gpd.GeoDataFrame) or not len(frame):
        raise InvalidInput(field, f"{file}, without features", "polygons or points in it")
    if frame.crs is None and crs is None:
        expected = "a file that says its coordinates (.prj of a Shapefile), or crs=EPSG:4326 for degrees"
        raise InvalidInput("crs", f"none in {file.name}", expected)
    try:
        return (frame.set_crs(crs) if frame.crs is None else frame).to_crs(_DEGREES)
    except Exception:
        raise InvalidInput("crs", crs or str(frame.crs), "coordinates that are known, such as EPSG:25833") from None


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


def _read(gpd: ModuleType, file: Path) -> Any:
    if file.suffix.lower() != ".gpx":
        return gpd.read_file(file, engine="pyogrio")
    for layer in _GPX_LAYERS:
        frame = gpd.read_file(file, engine="pyogrio", layer=layer)
        if len(frame):
            return frame
    return frame


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


def read_points(path: PathLike, crs: str | None = None) -> Any:
    """The columns of a file of points, with their lat and lon, as an Arrow table; what is no point has no place.

    Raises InvalidInput as `read_features`, and for a file without points.
    """
    frame = read_features(path, "source", crs)
    shapes = frame.geometry
    there = (shapes.geom_type == "Point") & ~shapes.is_empty
    if not there.any():
        raise InvalidInput("source", f"{path}, without points", "points; polygons are zones: dphmm fit --zones")
    columns = frame.drop(columns=[frame.geometry.name, "lat", "lon"], errors="ignore")
    points = shapes.where(there)
    return to_arrow(columns.assign(lat=points.y, lon=points.x))


def _label(value: Any) -> str:
    """3, 3.0 and "3" are one label; what is missing is none."""
    if value is None or value != value:
        return ""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def write_released(
    released: PathLike, output: PathLike, *, what: str = "estimate", inputs: Sequence[PathLike] = ()
) -> int:
    """A released table of a map as points in degrees with all its columns; how many there are.

    ``what`` : of which answers the points are, estimate or z; a row that was not asked has no z, and so no point.

    Raises InvalidInput for a table without places, another suffix, and without geopandas.
    """
    gpd = _geopandas("output")
    suffix = Path(output).suffix.lower()
    if suffix not in _WRITTEN:
        raise InvalidInput("output", str(output), "a name ending in " + ", ".join(_WRITTEN))
    if what not in ("estimate", "z"):
        raise InvalidInput("what", what, "estimate or z")
    checked_output(output, [released, *inputs])
    frame = read_table(released, text={"user"}).to_pandas()
    places = [f"{what}_lat", f"{what}_lon"]
    if not set(places) <= set(frame.columns):
        other = "z" if what == "estimate" else "estimate"
        expected = f"a released file of a map, with {places[0]} and {places[1]}; or what={other}"
        raise InvalidInput("released", "columns " + listed(list(frame.columns)), expected)
    frame = frame[np.isfinite(frame[places].to_numpy(np.float64)).all(axis=1)]
    points = gpd.points_from_xy(frame[places[1]], frame[places[0]])
    made = gpd.GeoDataFrame(frame, geometry=points, crs=_DEGREES)
    with replacing(output) as temporary:
        # Drivers go by the suffix, and some will not write over a file.
        written = temporary.with_name(temporary.name + suffix)
        try:
            made.to_file(written, driver=_WRITTEN[suffix], engine="pyogrio", layer="release")
            written.replace(temporary)
        finally:
            written.unlink(missing_ok=True)
    return len(made)
