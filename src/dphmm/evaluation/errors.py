"""How far what was published is from the truth.

Both means are in use: Eq. (3) of the DPHMM paper and Eq. (2) of the location-sets paper are root mean squares, Section
8 of the former plots means of the norm (errata 17).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dphmm.audit.resampling import Interval, Subjects, interval, ratio
from dphmm.errors import InvalidInput
from dphmm.evaluation.compared import points
from dphmm.types import FloatArray

#: The mean radius of the earth, km: a sphere is within 0.6 % of the distances on it.
EARTH_KM = 6371.0088


class Error(NamedTuple):
    """Distances of published places from true ones: their mean, and the root of their mean square."""

    mean: Interval
    rms: Interval


def error(truth: ArrayLike, released: ArrayLike, subjects: ArrayLike | None = None) -> Error:
    """Euclidean distances between true and published answers, in answer units (metres for maps).

    Parameters
    ----------
    truth, released : answers (n, d), row by row: z, estimates or smoothed answers against f(true state).
    subjects : label (n,) of each row, which intervals resample; every row its own subject without.

    Source: DPHMM 2016, Eq. (3) and Section 8; location sets CCS 2015, Eq. (2).
    """
    true = points(truth, "truth")
    return of_distances(np.linalg.norm(points(released, "released", true) - true, axis=1), subjects)


def error_km(
    lat: ArrayLike,
    lon: ArrayLike,
    released_lat: ArrayLike,
    released_lon: ArrayLike,
    subjects: ArrayLike | None = None,
) -> Error:
    """Great-circle distances in km between true and published places (n,) in degrees; ``subjects`` as in `error`."""
    true, given = _places(lat, lon, "lat, lon"), _places(released_lat, released_lon, "released_lat, released_lon")
    if true.shape != given.shape:
        raise InvalidInput("released_lat", f"{len(given)} places", f"{len(true)}, as the truth")
    half = np.sin((given - true) / 2) ** 2
    inner = half[:, 0] + np.cos(true[:, 0]) * np.cos(given[:, 0]) * half[:, 1]
    return of_distances(2 * EARTH_KM * np.arcsin(np.sqrt(np.minimum(inner, 1.0))), subjects)


def of_distances(distances: ArrayLike, subjects: ArrayLike | None = None) -> Error:
    """The error of distances (n,) that are known already, in their own unit."""
    found = points(np.asarray(distances)[:, None], "distances")[:, 0]
    parts = Subjects.of(subjects, len(found)).sums(found, found**2, np.ones(len(found)))
    return Error(
        interval(parts, lambda totals: ratio(totals[:, 0], totals[:, 2])),
        interval(parts, lambda totals: np.sqrt(ratio(totals[:, 1], totals[:, 2]))),
    )


def _places(lat: ArrayLike, lon: ArrayLike, field: str) -> FloatArray:
    both = [np.asarray(lat), np.asarray(lon)]
    if both[0].ndim != 1 or both[0].shape != both[1].shape:
        raise InvalidInput(field, f"shapes {both[0].shape} and {both[1].shape}", "degrees (n,), as many of each")
    return np.radians(points(np.stack(both, axis=1), field))
