"""Places on the map: units as people write them, projection, distances, gaps between cells, the nearest state.

The common part of grids and H3 covers. The projection is equirectangular about a place: metres east and north, with the
WGS84 radii of that latitude.

The gap of two cells is the least distance between a point of one and a point of another. Grid cells are squares of the
projection; their gaps are decided in integers. H3 cells are polygons of great-circle arcs
(https://h3geo.org/docs/core-library/overview); their gaps are angles at the earth's centre.

Proof: docs/proofs/covered-distance.md.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm._cached import cached_property
from dphmm._checks import LONGEST_NUMBER, exact_number
from dphmm.errors import InvalidInput
from dphmm.states.space import StateSpace
from dphmm.types import BoolArray, FloatArray, IntArray

_WRITTEN = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+) ?([a-z/]*)", re.ASCII)

_LENGTHS = {"": Fraction(1), "m": Fraction(1), "km": Fraction(1000)}
_DURATIONS = {
    "": Fraction(1),
    "s": Fraction(1),
    "min": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
}
_SPEEDS = {"": Fraction(1), "m/s": Fraction(1), "km/h": Fraction(1000, 3600)}


def parse_length(value: object, field: str = "length") -> Fraction:
    """Exact metres, more than 0: "340m", "1km", "0.34km"; a bare number is metres."""
    return _parse(value, _LENGTHS, field, "a length such as 340m or 1km")


def parse_duration(value: object, field: str = "duration") -> int:
    """Whole seconds, more than 0: "30s", "5min", "1h", "1d"; a bare number is seconds."""
    seconds = _parse(value, _DURATIONS, field, "a duration such as 30s, 5min or 1h")
    if seconds.denominator != 1:
        raise InvalidInput(field, value, "whole seconds")
    return int(seconds)


def parse_speed(value: object, field: str = "speed") -> Fraction:
    """Exact metres per second, more than 0: "150km/h", "40m/s"; a bare number is metres per second."""
    return _parse(value, _SPEEDS, field, "a speed such as 150km/h or 40m/s")


def _parse(value: object, units: dict[str, Fraction], field: str, expected: str) -> Fraction:
    if isinstance(value, str):
        match = _WRITTEN.fullmatch(value.strip()) if len(value) <= LONGEST_NUMBER else None
        if match is None or match[2] not in units:
            raise InvalidInput(field, value, expected)
        amount = Fraction(match[1]) * units[match[2]]
    elif isinstance(value, (int, float, Fraction, np.number)) and not isinstance(value, bool):
        amount = exact_number(value, field)
    else:
        raise InvalidInput(field, type(value).__name__, expected)
    if amount <= 0:
        raise InvalidInput(field, value, "more than 0")
    return amount


# WGS84 (NIMA TR8350.2): semi-major axis in metres and first eccentricity squared.
_SEMI_MAJOR = 6_378_137.0
_ECCENTRICITY2 = 6.694_379_990_141_317e-3
_FLATTENING = 1 - math.sqrt(1 - _ECCENTRICITY2)
#: Radius of the sphere of equal volume, metres: great-circle distances.
MEAN_RADIUS = 6_371_000.8
#: Farthest latitude on which a degree of longitude is still long enough to divide by.
LARGEST_LATITUDE = 89.9


def metres_per_degree(latitude: float) -> tuple[float, float]:
    """Length in metres of a degree of latitude and of a degree of longitude at a latitude in degrees."""
    phi = math.radians(latitude)
    curvature = 1 - _ECCENTRICITY2 * math.sin(phi) ** 2
    meridian = _SEMI_MAJOR * (1 - _ECCENTRICITY2) / curvature**1.5
    parallel = _SEMI_MAJOR / math.sqrt(curvature) * math.cos(phi)
    return math.radians(meridian), math.radians(parallel)


def least_metres_north(latitude: float) -> float:
    """The least length in metres of a degree northwards at any place at least this far from the equator.

    On the WGS84 ellipsoid it grows towards the poles; on the sphere of the mean radius it is the same everywhere.
    """
    return min(metres_per_degree(latitude)[0], math.radians(MEAN_RADIUS))


def least_metres_east(latitude: float) -> float:
    """The least length in metres of a degree eastwards at any place at most this far from the equator.

    It shrinks towards the poles, and is shorter on the sphere of the mean radius than on the WGS84 ellipsoid.
    """
    return math.radians(MEAN_RADIUS) * math.cos(math.radians(latitude))


def ground_distance(lat: ArrayLike, lon: ArrayLike, to_lat: ArrayLike, to_lon: ArrayLike) -> FloatArray:
    """Metres on the WGS84 ellipsoid between places in degrees, broadcast, by Lambert's formula for long lines.

    Within two millionths up to 5,000 km, 0.01 % up to 15,000 km, and 0.5 % anywhere on earth.

    >>> int(ground_distance(0.0, 0.0, 0.0, 1.0))
    111319

    Source: W. D. Lambert, J. Washington Academy of Sciences 32(5), 1942.
    """
    phi, psi = (np.arctan((1 - _FLATTENING) * np.tan(np.radians(np.asarray(deg, np.float64)))) for deg in (lat, to_lat))
    turn = np.radians(np.asarray(to_lon, dtype=np.float64) - np.asarray(lon, dtype=np.float64))
    along, across = (psi - phi) / 2, (psi + phi) / 2
    half = np.clip(np.sin(along) ** 2 + np.cos(phi) * np.cos(psi) * np.sin(turn / 2) ** 2, 0.0, 1.0)
    arc = 2 * np.arcsin(np.sqrt(half))
    # Both quotients are bounded; where the divisor is 0, so is the dividend.
    east = _quotient((arc - np.sin(arc)) * (np.sin(across) * np.cos(along)) ** 2, 1 - half)
    north = _quotient((arc + np.sin(arc)) * (np.cos(across) * np.sin(along)) ** 2, half)
    return np.asarray(_SEMI_MAJOR * (arc - _FLATTENING / 2 * (east + north)))


def _quotient(dividend: FloatArray, divisor: FloatArray) -> FloatArray:
    return np.asarray(dividend / np.where(divisor > 0, divisor, 1.0))


@dataclass(frozen=True)
class Projection:
    """Degrees to metres east and north of (south, west); longitudes are cut opposite to the middle.

    ``middle`` is the longitude of the middle of the map, degrees; the cut lies at ``middle`` + 180.
    """

    south: float
    west: float
    middle: float
    metres_north: float
    metres_east: float

    def __post_init__(self) -> None:
        if not all(math.isfinite(value) for value in asdict(self).values()):
            raise InvalidInput("projection", "NaN or an infinity", "finite numbers")
        if not (self.metres_north > 0 and self.metres_east > 0):
            raise InvalidInput("projection", "a degree without length", "more than 0 metres per degree")

    @classmethod
    def about(cls, south: float, west: float, latitude: float, middle: float) -> Projection:
        """Metres from the corner (south, west), true to scale at ``latitude``."""
        north, east = metres_per_degree(latitude)
        return cls(south, west, middle, north, east)

    @classmethod
    def about_the_middle(cls, lat: FloatArray, lon: FloatArray) -> Projection:
        """About the middle of places in degrees; longitudes are opened at their widest gap."""
        latitude = float((lat.min() + lat.max()) / 2)
        around = np.sort(np.mod(lon, 360.0))
        gaps = np.diff(around, append=around[0] + 360.0)
        widest = int(np.argmax(gaps))
        first = around[(widest + 1) % len(around)]
        longitude = float(np.mod(first + (360.0 - gaps[widest]) / 2 + 180.0, 360.0) - 180.0)
        return cls.about(latitude, longitude, latitude, longitude)

    def to_metres(self, lat: ArrayLike, lon: ArrayLike) -> FloatArray:
        """Places in degrees to metres (n, 2): east, north."""
        degrees_east = np.mod(np.asarray(lon, dtype=np.float64) - self.middle + 180.0, 360.0) - 180.0
        east = (degrees_east + (self.middle - self.west)) * self.metres_east
        north = (np.asarray(lat, dtype=np.float64) - self.south) * self.metres_north
        return np.stack([east, north], axis=-1)

    def to_degrees(self, metres: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Metres (n, 2) to latitudes in [-90, 90] and longitudes in [-180, 180), degrees.

        A point beyond a pole comes to lie on it.
        """
        points = np.asarray(metres, dtype=np.float64)
        if points.ndim == 0 or points.shape[-1] != 2:
            raise InvalidInput("answers", f"an array of shape {points.shape}", "(n, 2): metres east and north")
        lat = np.clip(points[..., 1] / self.metres_north + self.south, -90.0, 90.0)
        lon = np.mod(points[..., 0] / self.metres_east + self.west + 180.0, 360.0) - 180.0
        return lat, lon


# Two states this near to being equally far count as tied: the lowest number wins.
_TIE = 1e-9


class MapSpace(StateSpace):
    """A StateSpace of places on the map; answers are metres east and north (N, 2)."""

    on_map = True
    unit = "m"
    projection: Projection

    def _whereabouts(self) -> str:
        return f"\n{self.projection!r}"

    @abstractmethod
    def _locate(self, lat: FloatArray, lon: FloatArray) -> IntArray:
        """States of finite places; -1 outside."""

    def locate(self, lat: ArrayLike, lon: ArrayLike) -> Any:
        """State of each place in degrees: int64 (n,), or an int for scalars; -1 outside every state.

        -1 also for NaN and for what is no place (a latitude beyond 90, a longitude beyond 360).

        Latitudes and longitudes must broadcast to one shape.
        """
        latitudes, longitudes, scalar = as_places(lat, lon)
        states = np.full(latitudes.shape, -1, dtype=np.int64)
        # False for NaN and infinities too.
        finite = (np.abs(latitudes) <= 90) & (np.abs(longitudes) <= 360)
        if finite.all():
            states = self._locate(latitudes, longitudes)
        elif finite.any():
            states[finite] = self._locate(latitudes[finite], longitudes[finite])
        return int(states[0]) if scalar else states

    def nearest(self, lat: ArrayLike, lon: ArrayLike) -> Any:
        """The state whose own answer as given is nearest (metres of the projection); ties to the lowest number.

        Raises InvalidInput, without naming it, for a place that is not finite.
        """
        latitudes, longitudes, scalar = as_places(lat, lon)
        if not (np.isfinite(latitudes) & np.isfinite(longitudes)).all():
            raise InvalidInput("lat, lon", "a place that is not finite", "degrees")
        points = self.projection.to_metres(latitudes, longitudes)
        flat = points.reshape(-1, 2)
        distance = self._tree.query(flat)[0]
        tied = self._tree.query_ball_point(flat, distance * (1 + _TIE) + _TIE)
        states = np.fromiter((min(near) for near in tied), np.int64, len(flat)).reshape(latitudes.shape)
        return int(states[0]) if scalar else states

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self.unmerged.raw_answers)

    def to_latlon(self, answers: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Latitudes and longitudes in degrees of answers (n, 2) in metres."""
        return self.projection.to_degrees(answers)

    def on_the_ground(self, metres: float) -> float:
        """A distance on the ground up to which two places of cells are at most ``metres`` apart as cells are measured:
        never more than ``metres``, rounded down to a millimetre.

        A grid's cells are measured on its map, in the metres that they are cut in; H3 cells on the ground. Distances
        on the ground are those on the WGS84 ellipsoid and on the sphere of the earth's mean radius alike.
        """
        return metres

    def distances(self, answers: ArrayLike, others: ArrayLike) -> FloatArray:
        """Metres on the ground, on the WGS84 ellipsoid, between the places of answers (..., 2), broadcast."""
        return ground_distance(*self.to_latlon(answers), *self.to_latlon(others))

    def _share_with(self, part: Self, kept: IntArray) -> None:
        part.projection = self.projection


def as_places(lat: ArrayLike, lon: ArrayLike) -> tuple[FloatArray, FloatArray, bool]:
    """Latitudes and longitudes of one shape, at least 1-D, and True if both were scalars."""
    latitudes = _degrees(lat, "lat")
    longitudes = _degrees(lon, "lon")
    scalar = latitudes.ndim == 0 and longitudes.ndim == 0
    if latitudes.shape != longitudes.shape:
        try:
            latitudes, longitudes = np.broadcast_arrays(latitudes, longitudes)
        except ValueError:
            fault = f"shapes {latitudes.shape} and {longitudes.shape}"
            raise InvalidInput("lat, lon", fault, "as many of each") from None
    return np.atleast_1d(latitudes), np.atleast_1d(longitudes), scalar


def _degrees(values: ArrayLike, field: str) -> NDArray[np.float64]:
    degrees = np.asarray(values)
    if degrees.dtype.kind not in "iuf" and degrees.size:
        raise InvalidInput(field, f"dtype {degrees.dtype}", "numbers, in degrees")
    return degrees.astype(np.float64, copy=False)


#: Pairs of polygons that are measured at once.
_BLOCK = 2048
#: Chords of the unit sphere are at most 2 long.
_ACROSS = 2.0


def offsets_by_gap(columns: int, rows: int, cell: Fraction) -> Iterator[tuple[float, tuple[int, int]]]:
    """Offsets (columns, rows) between two cells of a grid, one of each ± pair, by the gap of such cells in metres.

    Two square cells (i, j) apart leave max(\\|i\\| - 1, 0) and max(\\|j\\| - 1, 0) cells between them, so their gap is
    the length of that vector. It is rounded down, exactly where it is a whole number of cells.
    """
    farthest = max(columns - 2, 0) ** 2 + max(rows - 2, 0) ** 2
    done, reach = -1, 0
    while done < farthest:
        across, up = min(reach + 1, columns - 1), min(reach + 1, rows - 1)
        i, j = (axis.ravel() for axis in np.mgrid[0 : across + 1, -up : up + 1])
        squares = np.maximum(i - 1, 0) ** 2 + np.maximum(np.abs(j) - 1, 0) ** 2
        new = ((i > 0) | (j > 0)) & (squares > done) & (squares <= reach**2)
        order = np.flatnonzero(new)[np.argsort(squares[new], kind="stable")]
        for k in order.tolist():
            yield _root_below(int(squares[k]), cell), (int(i[k]), int(j[k]))
        done, reach = reach**2, max(1, 2 * reach)


def _root_below(square: int, cell: Fraction) -> float:
    root = math.isqrt(square)
    if root * root == square:
        return float(root * cell)
    return math.nextafter(math.sqrt(square) * float(cell) * (1 - 2**-50), 0.0)


class Polygons:
    """Small polygons on the unit sphere, by their corners in degrees: rings (k, 2) of latitudes and longitudes."""

    def __init__(self, rings: Sequence[FloatArray]) -> None:
        from scipy.spatial import cKDTree

        most = max(map(len, rings))
        # A ring that ends on its last corner again and again has arcs of no length there.
        self._corners = np.stack([unit_vectors(*np.vstack([r, *[r[-1:]] * (most - len(r))]).T) for r in rings])
        middles = self._corners.mean(axis=1)
        self._middles = middles / np.linalg.norm(middles, axis=1, keepdims=True)
        self._reach = np.linalg.norm(self._corners - self._middles[:, None], axis=2).max(axis=1)
        self._tree = cKDTree(self._middles)

    def least_gap(self, chosen: Callable[[IntArray, IntArray], BoolArray]) -> float:
        """The least gap of a pair that is ``chosen``, an angle in radians; inf where none is."""
        widest = float(self._reach.max())
        reach = 4 * widest
        while True:
            a, b = self._pairs(reach)
            mask = chosen(a, b)
            a, b = a[mask], b[mask]
            least = math.inf
            if len(a):
                apart = np.linalg.norm(self._middles[a] - self._middles[b], axis=1)
                near = apart - self._reach[a] - self._reach[b] <= apart.min()
                least = float(self._gaps(a[near], b[near]).min())
            # Chords are at most as long as their arcs: no pair beyond the reach has a smaller gap.
            if 2 * math.sin(min(least, math.pi) / 2) <= reach - 2 * widest or reach - 2 * widest > _ACROSS:
                return least
            reach = 2 * reach if least == math.inf else min(least, _ACROSS) + 2 * widest + 1e-9

    def nearer(self, angle: float) -> tuple[IntArray, IntArray]:
        """The pairs of polygons whose gap is less than an angle in radians."""
        chord = 2 * math.sin(min(angle, math.pi) / 2)
        a, b = self._pairs(chord + 2 * float(self._reach.max()) + 1e-12)
        near = self._gaps(a, b) < angle
        return a[near], b[near]

    def _pairs(self, chord: float) -> tuple[IntArray, IntArray]:
        pairs = self._tree.query_pairs(chord, output_type="ndarray").astype(np.int64)
        return pairs[:, 0], pairs[:, 1]

    def _gaps(self, a: IntArray, b: IntArray) -> FloatArray:
        """Gaps (m,) in radians; polygons do not overlap, so they are nearest at a corner of one of them."""
        parts = [np.zeros(0)]
        for at in range(0, len(a), _BLOCK):
            left, right = self._corners[a[at : at + _BLOCK]], self._corners[b[at : at + _BLOCK]]
            parts.append(np.minimum(_corner_gaps(left, right), _corner_gaps(right, left)))
        return np.concatenate(parts)


def unit_vectors(lat: FloatArray, lon: FloatArray) -> FloatArray:
    """Places in degrees as points (n, 3) of the unit sphere."""
    phi, lam = np.radians(lat), np.radians(lon)
    return np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)], axis=-1)


def _corner_gaps(corners: FloatArray, ring: FloatArray) -> FloatArray:
    """The least angle (m,) from a corner (m, k, 3) to a side of a ring (m, k, 3)."""
    chords = np.linalg.norm(corners[:, :, None] - ring[:, None], axis=3)
    ends = 2 * np.arcsin(np.minimum(chords / 2, 1.0)).min(axis=(1, 2))
    after = np.roll(ring, -1, axis=1)
    normal = np.cross(ring, after)
    length = np.linalg.norm(normal, axis=2, keepdims=True)
    normal = np.divide(normal, length, out=np.zeros_like(normal), where=length > 0)
    beside = _dots(corners, np.cross(normal, ring)) > 0, _dots(corners, np.cross(after, normal)) > 0
    feet = np.arcsin(np.minimum(np.abs(_dots(corners, normal)), 1.0))
    inside = beside[0] & beside[1]
    gaps: FloatArray = np.minimum(ends, np.where(inside, feet, math.inf).min(axis=(1, 2)))
    return gaps


def _dots(corners: FloatArray, vectors: FloatArray) -> Any:
    return np.einsum("mic,mjc->mij", corners, vectors)
