"""Zones: polygons of the map as states, such as wards or postal areas; an optional extra: ``pip install 'dphmm[geo]'``.

The answer of a zone is a point inside it that depends on its outline alone (shapely's point on surface), in metres of
the same projection as a grid's or H3 cells'. A place belongs to the zone that it lies in, borders included; on a border
the zone with the lowest number has it. Zones do not overlap, but by what rounding leaves along a common border.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm._cached import cached_property
from dphmm.errors import InvalidInput
from dphmm.states.lattice import snap
from dphmm.states.maps import LARGEST_LATITUDE, MapSpace, Projection
from dphmm.states.space import Description, check_names, registered
from dphmm.types import FloatArray, IntArray

#: Two zones may share this part of the smaller one's area: coordinates of a common border are rounded.
BORDER_SHARE = 1e-6
#: In square degrees, less than 1 cm²: of smaller polygons corners are nearer to each other than floats can tell.
_LEAST_AREA = 1e-15
_KINDS = ("Polygon", "MultiPolygon")
_MULTIPOLYGON = 6
_AT_ONCE = 1 << 18
#: Multiples of these, without their whole part, are even in a square however many there are (M. Roberts, 2018).
_STRIDES = np.array([0.7548776662466927, 0.5698402909980532])
#: A drawn outline leaves out what is smaller than this part of the map, or more where there are too many corners.
_GRAINS, _MOST_CORNERS = 1000, 20_000
_PARTS = ("coordinates", "rings", "polygons", "zones")


@registered
class Zones(MapSpace):
    """Polygons as states, named by their ids, in the order given.

    ``polygons`` : N shapely polygons or multipolygons in degrees, longitude first. Answers are points inside the zones,
    in metres east and north of the middle of all (N, 2). ``mend`` : mend outlines that cross themselves with
    shapely.make_valid. Everything here is public.

    >>> from shapely import box
    >>> zones = Zones(["west", "east"], [box(13.3, 52.4, 13.4, 52.5), box(13.4, 52.4, 13.5, 52.5)])
    >>> zones.names[zones.locate(52.45, 13.47)]
    'east'

    Raises InvalidInput, with the zone's name, for an outline that is empty, no polygon, not in degrees or crosses
    itself, for two zones that overlap, for two of one name, and without the shapely package.
    """

    kind: ClassVar[str] = "zones"

    #: Corners float64 (m, 2) in degrees, longitude first; and where rings, polygons and zones begin among the corners,
    #: the rings and the polygons.
    outlines: Mapping[str, NDArray[Any]]

    def __init__(
        self, names: Sequence[str], polygons: Sequence[Any], *, mend: bool = False, pitch: ArrayLike | None = None
    ) -> None:
        shapely = _shapely()
        labels = check_names(names, len(polygons))
        if not labels:
            raise InvalidInput("zones", "no polygon", "at least 1")
        shapes = _checked(shapely, labels, np.array(list(polygons), dtype=object), mend)
        _check_apart(shapely, labels, shapes)
        inside = shapely.point_on_surface(shapes)
        lon, lat = shapely.get_x(inside), shapely.get_y(inside)
        self.projection = Projection.about_the_middle(lat, lon)
        raw = self.projection.to_metres(lat, lon)
        lattice, frame = snap(raw, pitch)
        self._set_outlines(shapely, shapes)
        self._place(lattice, frame, raw, labels)

    def _set_outlines(self, shapely: ModuleType, shapes: Any) -> None:
        many = [shape if shape.geom_type == "MultiPolygon" else shapely.multipolygons([shape]) for shape in shapes]
        _, coordinates, (rings, polygons, zones) = shapely.to_ragged_array(np.array(many, dtype=object))
        counts = (np.asarray(part, dtype=np.int64) for part in (rings, polygons, zones))
        self.outlines = dict(zip(_PARTS, (np.asarray(coordinates, np.float64), *counts), strict=True))

    @cached_property
    def polygons(self) -> Any:
        """The polygons (N,), as shapely has them. Raises InvalidInput without the shapely package."""
        shapely = _shapely()
        coordinates, *counts = (self.outlines[name] for name in _PARTS)
        return shapely.from_ragged_array(shapely.GeometryType(_MULTIPOLYGON), coordinates, tuple(counts))

    @cached_property
    def rings(self) -> tuple[FloatArray, ...]:
        """A line (k, 2) around each zone in metres, which closes itself, to be drawn: of fewer corners than the zone.

        Holes and separate parts are joined to it by lines of no width, there and back; holes go the other way round.
        Raises InvalidInput without the shapely package.
        """
        shapely = _shapely()
        lon, lat = self.outlines["coordinates"].T
        east = lon - self.projection.middle
        # Zones on both sides of the antimeridian lie together.
        east = np.where(np.abs(east) > 180.0, east - np.copysign(360.0, east), east)
        across = float(max(np.ptp(east), np.ptp(lat)))
        grain = across / _GRAINS
        shapes = shapely.simplify(self.polygons, grain)
        # Every ring keeps some corners, so many small ones may stay above the number.
        while shapely.get_num_coordinates(shapes).sum() > _MOST_CORNERS and grain < across:
            grain *= 2
            shapes = shapely.simplify(self.polygons, grain)
        rings = []
        for shape in shapely.orient_polygons(shapes):
            line, *others = map(shapely.get_coordinates, shapely.get_rings(shapely.get_parts([shape])))
            joined = np.concatenate([line, *(part for other in others for part in (other, line[:1]))])[:-1]
            rings.append(self.projection.to_metres(joined[:, 1], joined[:, 0]))
        return tuple(rings)

    @cached_property
    def _index(self) -> Any:
        shapely = _shapely()
        shapely.prepare(self.polygons)
        return shapely.STRtree(self.polygons)

    def _locate(self, lat: FloatArray, lon: FloatArray) -> IntArray:
        shapely = _shapely()
        latitudes, longitudes = lat.ravel(), lon.ravel()
        # Only what lies beyond is turned: it would be rounded, off a border perhaps.
        turned = np.mod(longitudes + 180.0, 360.0) - 180.0
        longitudes = np.where(np.abs(longitudes) > 180.0, turned, longitudes)
        states = np.full(len(latitudes), -1, dtype=np.int64)
        for start in range(0, len(latitudes), _AT_ONCE):
            part = slice(start, start + _AT_ONCE)
            point, zone = self._index.query(shapely.points(longitudes[part], latitudes[part]), predicate="intersects")
            # The lowest number is written last.
            order = np.argsort(-zone, kind="stable")
            states[part][point[order]] = zone[order]
        return states.reshape(lat.shape)

    def draw(self, states: IntArray, generator: np.random.Generator) -> FloatArray:
        """A uniform place in each of the zones (n,), in metres (n, 2).

        Raises InvalidInput without the shapely package.
        """
        chance = generator.random((len(states), 3))
        return self._triangles.places(self.projection, states, chance[:, 0], chance[:, 1:])

    def places(self, count: int) -> FloatArray:
        """The same number of places (N, count, 2) in every zone, in metres, evenly spread.

        Raises InvalidInput without the shapely package.
        """
        number = np.tile(np.arange(count), self.n_states)
        even = np.mod((number[:, None] + 0.5) * _STRIDES, 1.0)
        states = np.repeat(np.arange(self.n_states), count)
        places = self._triangles.places(self.projection, states, (number + 0.5) / count, even)
        return places.reshape(self.n_states, count, 2)

    @cached_property
    def _triangles(self) -> _Triangles:
        shapely = _shapely()
        parts, zone = shapely.get_parts(shapely.constrained_delaunay_triangles(self.polygons), return_index=True)
        areas, corners = shapely.area(parts), shapely.get_coordinates(parts).reshape(-1, 4, 2)[:, :3]
        whole = np.bincount(zone, areas)[zone]
        west, south, east, north = shapely.bounds(self.polygons).T
        low, sides = np.stack([west, south], axis=1), np.stack([east - west, north - south], axis=1)
        order = np.lexsort((_along_a_curve((corners.mean(axis=1) - low[zone]) / sides[zone]), zone))
        sums = np.concatenate([[0.0], np.cumsum((areas / whole)[order])])
        return _Triangles(corners[order], sums, np.searchsorted(zone[order], np.arange(self.n_states + 1)))

    def _whereabouts(self) -> str:
        sha = hashlib.sha256()
        for name in _PARTS:
            part = self.outlines[name]
            sha.update(np.ascontiguousarray(part).astype(part.dtype.newbyteorder("<")).tobytes())
        return f"{super()._whereabouts()}\n{sha.hexdigest()}"

    def _share_with(self, part: Self, kept: IntArray) -> None:
        super()._share_with(part, kept)
        coordinates, rings, polygons, zones = (self.outlines[name] for name in _PARTS)
        chosen = _spans(zones, kept), _spans(polygons, _spans(zones, kept))
        corners = _spans(rings, chosen[1])
        part.outlines = {
            "coordinates": coordinates[corners],
            "rings": _offsets(np.diff(rings)[chosen[1]]),
            "polygons": _offsets(np.diff(polygons)[chosen[0]]),
            "zones": _offsets(np.diff(zones)[kept]),
        }

    def describe(self) -> Description:
        """The outlines, the answers and the projection: enough to restore without the shapely package."""
        meta, arrays = super().describe()
        place = self.projection
        meta |= {"latitude": place.south, "longitude": place.west}
        return meta, arrays | {name: self.outlines[name] for name in _PARTS}

    @classmethod
    def _restore(cls, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> Self:
        space = super()._restore(meta, arrays)
        latitude, longitude = float(meta["latitude"]), float(meta["longitude"])
        space.projection = Projection.about(latitude, longitude, latitude, longitude)
        space.outlines = {name: arrays[name] for name in _PARTS}
        _check_outlines(space.outlines, space.n_states)
        return space


class _Triangles(NamedTuple):
    """The triangles (m, 3, 2) that zones are made of, in degrees: those of zone k are ``begins[k]`` to ``begins[k+1]``.

    Those of a zone in the order of a curve that fills its box. ``sums`` (m + 1,) are of the areas before each, in areas
    of their zones.
    """

    corners: FloatArray
    sums: FloatArray
    begins: IntArray

    def places(self, projection: Projection, zones: IntArray, share: FloatArray, chance: FloatArray) -> FloatArray:
        """A place in each of the zones (n,), in metres (n, 2), in the triangle at a ``share`` (n,) of the zone's area.

        ``chance`` (n, 2), which says where in it, is in the unit square, whose upper half is turned onto its lower one.
        """
        first, last = self.begins[zones], self.begins[zones + 1]
        passed = self.sums[first] + share * (self.sums[last] - self.sums[first])
        number = np.clip(np.searchsorted(self.sums, passed, side="right") - 1, first, last - 1)
        a, b = np.where(chance.sum(axis=1) > 1, 1 - chance.T, chance.T)[..., None]
        origin, second, other = self.corners[number].transpose(1, 0, 2)
        lon, lat = (origin + a * (second - origin) + b * (other - origin)).T
        return projection.to_metres(lat, lon)


def _along_a_curve(points: FloatArray) -> IntArray:
    """The distance of points (n, 2) of the unit square along Hilbert's curve: near on it is near in the square."""
    side = 1 << 16
    x, y = (points.clip(0, 1) * (side - 1)).astype(np.int64).T
    along, half = np.zeros(len(points), dtype=np.int64), side // 2
    while half:
        right, upper = (x & half > 0).astype(np.int64), (y & half > 0).astype(np.int64)
        along += half * half * ((3 * right) ^ upper)
        turned, flipped = upper == 0, (upper == 0) & (right == 1)
        x, y = np.where(flipped, side - 1 - x, x), np.where(flipped, side - 1 - y, y)
        x, y = np.where(turned, y, x), np.where(turned, x, y)
        half //= 2
    return along


def _spans(offsets: IntArray, chosen: IntArray) -> IntArray:
    """The members of the chosen groups, one group after the other."""
    many = np.diff(offsets)[chosen]
    return np.repeat(offsets[chosen] - (np.cumsum(many) - many), many) + np.arange(int(many.sum()))


def _offsets(counts: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _check_outlines(outlines: Mapping[str, NDArray[Any]], n: int) -> None:
    """Arrays of a file that are not those of N outlines are refused before any library reads them."""
    corners = outlines["coordinates"]
    size = corners.shape[0] if corners.ndim else 0
    fine = corners.dtype == np.float64 and corners.shape == (size, 2) and bool(np.isfinite(corners).all())
    for name in _PARTS[1:]:
        offsets = outlines[name]
        fine = fine and offsets.dtype == np.int64 and offsets.ndim == 1 and len(offsets) > 1
        fine = fine and offsets[0] == 0 and offsets[-1] == size and bool((np.diff(offsets) > 0).all())
        size = len(offsets) - 1
    if not fine or size != n:
        raise InvalidInput("zones", "outlines that do not fit together", f"those of {n} zones")
    starts, ends = outlines["rings"][:-1], outlines["rings"][1:] - 1
    if (ends - starts < 3).any() or (corners[starts] != corners[ends]).any():
        raise InvalidInput("zones", "a ring that is not closed", "4 corners or more, the last one the first")


def _shapely() -> ModuleType:
    try:
        import shapely
    except ImportError:
        raise InvalidInput("zones", "no shapely package", "it installed: pip install 'dphmm[geo]'") from None
    module: ModuleType = shapely
    return module


def _checked(shapely: ModuleType, names: Sequence[str], shapes: Any, mend: bool) -> Any:
    """The polygons, whole and in degrees."""
    for state, (name, shape) in enumerate(zip(names, shapes, strict=True)):
        field = f"zone {name!r}"
        kind = getattr(shape, "geom_type", None)
        if kind not in _KINDS:
            raise InvalidInput(field, kind or "nothing", "a polygon, or several of one zone")
        if shape.is_empty:
            raise InvalidInput(field, "an empty polygon", "an outline of at least 3 corners")
        west, south, east, north = shape.bounds
        # Written so that NaN is refused too.
        if not (max(abs(south), abs(north)) <= LARGEST_LATITUDE and max(abs(west), abs(east)) <= 180):
            swapped = max(abs(south), abs(north)) > 90 >= max(abs(west), abs(east))
            expected = "degrees, longitude first, within 89.9 north and south and 180 east and west"
            raise InvalidInput(field, "corners that are none", expected + ("; are they swapped?" if swapped else ""))
        if not shape.is_valid:
            mended = _areas_of(shapely, shapely.make_valid(shape)) if mend else None
            if mended is None or mended.is_empty:
                expected = "an outline that does not cross itself; mend=True mends it with shapely.make_valid"
                raise InvalidInput(field, "an outline that crosses itself", expected)
            shapes[state] = mended
        whole = all(part.area > _LEAST_AREA for part in shapely.get_parts(shapes[state]))
        if mend and not whole:
            shapes[state] = _areas_of(shapely, shapes[state])
            whole = not shapes[state].is_empty
        if not whole:
            expected = "an outline of at least 3 corners, and 1 cm²; mend=True leaves out parts that are smaller"
            raise InvalidInput(field, "a polygon without an area", expected)
    return shapely.force_2d(shapes)


def _areas_of(shapely: ModuleType, shape: Any) -> Any:
    """The polygons among the parts of a shape, as one, without those that are too small."""
    parts = [part for part in shapely.get_parts(shape) if part.geom_type in _KINDS and part.area > _LEAST_AREA]
    return shapely.union_all(parts)


def _check_apart(shapely: ModuleType, names: Sequence[str], shapes: Any) -> None:
    a, b = shapely.STRtree(shapes).query(shapes, predicate="intersects")
    a, b = a[a < b], b[a < b]
    if not len(a):
        return
    shared = shapely.area(shapely.intersection(shapes[a], shapes[b]))
    areas = shapely.area(shapes)
    over = np.flatnonzero(shared > BORDER_SHARE * np.minimum(areas[a], areas[b]))
    if len(over):
        zone, other = names[a[over[0]]], names[b[over[0]]]
        more = f", and {len(over) - 1} more pairs" if len(over) > 1 else ""
        raise InvalidInput("zones", f"{zone!r} and {other!r}, which overlap{more}", "zones that share borders at most")
