"""Places on the sphere, one after another: which points a speed limit leaves."""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import BoolArray, FloatArray, IntArray


@kernel
def keep_below_speed(
    owner: IntArray, microseconds: IntArray, lat: FloatArray, lon: FloatArray, limit: float, radius: float
) -> BoolArray:
    """Mask (n,) of the points reached from the last kept point of the same owner at ``limit`` m/s or less.

    Rows are sorted by owner and time; lat and lon in radians, ``radius`` of the sphere in metres. The
    distance is the haversine's; a point that is not finite is kept and not measured from.
    """
    n = len(owner)
    keep = np.ones(n, dtype=np.bool_)
    last = -1
    for i in range(n):
        if not (math.isfinite(lat[i]) and math.isfinite(lon[i])):
            continue
        if last >= 0 and owner[last] == owner[i]:
            half_north = math.sin((lat[i] - lat[last]) / 2)
            half_east = math.sin((lon[i] - lon[last]) / 2)
            chord = half_north * half_north + math.cos(lat[i]) * math.cos(lat[last]) * half_east * half_east
            metres = 2 * radius * math.asin(min(1.0, math.sqrt(chord)))
            if metres > limit * (microseconds[i] - microseconds[last]) * 1e-6:
                keep[i] = False
                continue
        last = i
    return keep
