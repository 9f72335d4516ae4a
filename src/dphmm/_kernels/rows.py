"""Loops over the rows of many subjects: requests to a ledger, a speed limit, rows brought together by owner."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel
from dphmm.types import BoolArray, FloatArray, IntArray


@kernel
def lay_out(owner: IntArray, t: IntArray, asked: BoolArray, last: IntArray, most: int, requests: IntArray) -> int:
    """Fill ``requests`` (6, 2n) with a release for each row (n,) after its subject's last step, and a skip before it.

    A row that is not ``asked`` has a skip of its own step instead of a release. A request is: owner, first step, number
    of steps, row, 1 for a skip, 1 if it is of the row's step. Returns how many there are; -1 - row for a row out of
    order, -1 - n - row for one more than ``most`` steps after the one before it.
    """
    count, n = 0, len(t)
    for row in range(n):
        if row > 0 and (owner[row] < owner[row - 1] or (owner[row] == owner[row - 1] and t[row] <= t[row - 1])):
            return -1 - row
        before = last[owner[row]]
        if t[row] <= before:
            continue
        if row > 0 and owner[row] == owner[row - 1]:
            before = max(before, t[row - 1])
        gap = t[row] - before - 1
        if gap > most:
            return -1 - n - row
        if gap > 0:
            _put(requests, count, owner[row], before + 1, gap, row, 1, 0)
            count += 1
        _put(requests, count, owner[row], t[row], 1, row, 0 if asked[row] else 1, 1)
        count += 1
    return count


@kernel
def _put(requests: IntArray, count: int, owner: int, first: int, steps: int, row: int, skips: int, tells: int) -> None:
    """Write one request."""
    requests[0, count], requests[1, count], requests[2, count] = owner, first, steps
    requests[3, count], requests[4, count], requests[5, count] = row, skips, tells


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


@kernel
def places_of_rows(owner: NDArray[Any], following: IntArray) -> None:
    """Write over the owner of each row (n,) the place that the row has when rows are by owner, and else as they stand.

    ``following`` (owners,) is where the rows of each owner begin; it ends where they end.
    """
    for row in range(len(owner)):
        mine = owner[row]
        owner[row] = following[mine]
        following[mine] += 1


@kernel
def move(places: NDArray[Any], column: NDArray[Any]) -> None:
    """Move the value of each row (n,) to the row's place. Places are a permutation, all as they are or all as ~place.

    Each is turned into the other while its value is moved: which one a place is says whether its row was moved.
    """
    if len(places) == 0:
        return
    plain = places[0] >= 0
    for row in range(len(places)):
        if (places[row] >= 0) != plain:
            continue
        value, at = column[row], row
        while True:
            to = places[at] if plain else ~places[at]
            places[at] = ~places[at]
            if to == row:
                column[row] = value
                break
            column[to], value = value, column[to]
            at = to
