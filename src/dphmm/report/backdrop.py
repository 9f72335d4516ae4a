"""A public map to lie under a page's own: water, roads and names from a GeoJSON file, embedded and simplified."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.report.content import Backdrop
from dphmm.states.maps import MapSpace
from dphmm.states.space import FORBIDDEN, LONGEST_NAME
from dphmm.storage.geo_files import written_features
from dphmm.storage.inputs import PathLike
from dphmm.types import FloatArray

#: What may be left of a file on a page.
_EMBEDDED = 300_000
#: Shapes are simplified to this share of the box of all cells.
_GRAIN = 1e-3
#: Characters that a corner takes on a page, and a name beside its letters.
_CORNER, _NAME = 12, 80
#: Corners of one shape within the box, before it is simplified in a time that may grow with their square.
_MOST_CORNERS = 50_000
_EXPECTED = "GeoJSON: a FeatureCollection of polygons (water), lines (roads) and points with a name, in degrees"


def read_backdrop(path: PathLike, space: Any) -> Backdrop:
    """The water, roads and names of a GeoJSON file within the box of a map's states.

    Polygons are water, lines are roads, points with a property ``name`` are places. Coordinates are longitude and
    latitude. Raises InvalidInput for a file that is none, is too large, or has nothing within the box; for states that
    are on no map; and where shapely is not installed.
    """
    if not isinstance(space, MapSpace):
        raise InvalidInput("backdrop", f"states of kind {space.kind}", "states on a map: a grid or H3")
    if find_spec("shapely") is None:
        raise InvalidInput("backdrop", "a Python without shapely", "pip install 'dphmm[geo]'")
    import shapely

    points = space.own_answers
    margin = float(np.ptp(points, axis=0).max()) * 0.2 + 1.0
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    water, roads, names = list[FloatArray](), list[FloatArray](), list[tuple[str, float, float]]()
    for shape, name in _placed(path, space):
        west, south, east, north = shape.bounds
        if (np.array([east, north]) < low).any() or (np.array([west, south]) > high).any():
            continue
        if shape.geom_type in ("Point", "MultiPoint"):
            at = shapely.get_coordinates(shape)[0]
            if name and ((at >= low) & (at <= high)).all():
                names.append((name, float(at[0]), float(at[1])))
            continue
        for part in shapely.get_parts(shape):
            if part.geom_type == "Polygon":
                rings = [_ring(shapely.get_coordinates(ring), low, high) for ring in (part.exterior, *part.interiors)]
                if len(rings[0]):
                    gap = np.full((1, 2), np.nan)
                    holes = [corners for hole in rings[1:] if len(hole) for corners in (gap, hole)]
                    water.append(np.concatenate([rings[0], *holes]))
            elif part.geom_type in ("LineString", "LinearRing"):
                for line in shapely.get_parts(shapely.clip_by_rect(part, *low, *high)):
                    roads.append(_simple(shapely.get_coordinates(line), float((high - low).max()) * _GRAIN))
    if not (water or roads or names):
        raise InvalidInput("backdrop", "nothing within the box of the states", _EXPECTED)
    corners, letters = sum(map(len, (*water, *roads))), sum(len(name) for name, _, _ in names)
    if corners * _CORNER + len(names) * _NAME + letters > _EMBEDDED:
        got = f"{corners:,} corners after it was simplified and {len(names):,} names"
        raise InvalidInput(
            "backdrop", got, f"at most {_EMBEDDED // _CORNER:,} corners: fewer or larger shapes and names"
        )
    return Backdrop(water, roads, names)


def box_of(path: PathLike) -> tuple[float, float, float, float]:
    """West, south, east and north of all shapes of a GeoJSON file. Raises InvalidInput for a file without shapes."""
    import shapely

    west, south, east, north = shapely.GeometryCollection([shape for shape, _ in _geometries(path)]).bounds
    if not np.isfinite([west, south, east, north]).all():
        raise InvalidInput("backdrop", "a file without coordinates", _EXPECTED)
    return (float(west), float(south), float(east), float(north))


def _ring(corners: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """A ring cut to a box, side by side, and simplified; it may cross itself, and is filled by the even-odd rule."""
    for axis, sign, limit in ((0, 1, low[0]), (0, -1, -high[0]), (1, 1, low[1]), (1, -1, -high[1])):
        if not len(corners):
            break
        over = sign * corners[:, axis] - limit
        last, before = np.roll(over, 1), np.roll(corners, 1, axis=0)
        crosses = (over >= 0) != (last >= 0)
        share = np.where(crosses, last / np.where(crosses, last - over, 1.0), 0.0)
        cut = before + share[:, None] * (corners - before)
        both = np.stack([cut, corners], axis=1).reshape(-1, 2)
        corners = both[np.stack([crosses, over >= 0], axis=1).ravel()]
    ring = _simple(corners, float((high - low).max()) * _GRAIN)
    return ring if len(ring) > 2 else np.empty((0, 2))


def _simple(corners: FloatArray, grain: float) -> FloatArray:
    """A line in fewer corners. Raises InvalidInput where that would take long."""
    import shapely

    # Corners nearer to the one before than a grain cannot be seen.
    apart = (np.diff(np.rint(corners / grain), axis=0) != 0).any(axis=1)
    corners = corners[np.append(True, apart)[: len(corners)]]
    if len(corners) > _MOST_CORNERS:
        got = f"a shape of {len(corners):,} corners within the box"
        raise InvalidInput("backdrop", got, f"at most {_MOST_CORNERS:,} for each shape")
    if len(corners) < 3:
        return corners
    return np.array(shapely.LineString(corners).simplify(grain, preserve_topology=False).coords)


def _placed(path: PathLike, space: MapSpace) -> Iterator[tuple[Any, str]]:
    """Each geometry in metres of the map, and its name: as it is, and once around the earth either way.

    So a shape stays whole where a map lies over the antimeridian, and one that crosses the far side of the earth too.
    """
    import shapely

    place = space.projection
    scale = np.array([place.metres_east, place.metres_north])
    for shape, properties in _geometries(path):
        corners = shapely.get_coordinates(shape)
        if not np.isfinite(corners).all() or (np.abs(corners) > [360, 90]).any():
            raise InvalidInput("backdrop", "coordinates that are no degrees", _EXPECTED)
        name = str(properties.get("name") or "") if isinstance(properties, dict) else ""
        name = re.sub(FORBIDDEN, "", name)[:LONGEST_NAME]
        for turn in (-360.0, 0.0, 360.0) if len(corners) else ():
            origin = np.array([place.west + turn, place.south])
            placed = (corners - origin) * scale
            yield shapely.set_coordinates(shapely.force_2d(shape), placed), name


def _geometries(path: PathLike) -> Iterator[tuple[Any, Any]]:
    """The geometry of each feature that has one, in degrees, and its properties."""
    import shapely

    for feature in written_features(path, "backdrop", _EXPECTED):
        if not isinstance(feature.get("geometry"), dict):
            continue
        try:
            shape = shapely.geometry.shape(feature["geometry"])
        except Exception:
            # Shapely has an error of its own for each fault of the numbers.
            raise InvalidInput("backdrop", "a geometry that cannot be read", _EXPECTED) from None
        yield shape, feature.get("properties")
