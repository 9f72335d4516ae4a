"""What grids and H3 covers share: a projection, places to states, the nearest state of a place outside."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm.errors import InvalidInput
from dphmm.states.projection import Projection, ground_distance
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray, IntArray

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
    """Latitudes and longitudes of one shape, at least 1-D, and whether both were scalars."""
    latitudes = _degrees(lat, "lat")
    longitudes = _degrees(lon, "lon")
    scalar = latitudes.ndim == 0 and longitudes.ndim == 0
    if latitudes.shape != longitudes.shape:
        try:
            latitudes, longitudes = np.broadcast_arrays(latitudes, longitudes)
        except ValueError:
            came = f"shapes {latitudes.shape} and {longitudes.shape}"
            raise InvalidInput("lat, lon", came, "as many of each") from None
    return np.atleast_1d(latitudes), np.atleast_1d(longitudes), scalar


def _degrees(values: ArrayLike, field: str) -> NDArray[np.float64]:
    given = np.asarray(values)
    if given.dtype.kind not in "iuf" and given.size:
        raise InvalidInput(field, f"dtype {given.dtype}", "numbers, in degrees")
    return given.astype(np.float64, copy=False)
