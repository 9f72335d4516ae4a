"""Degrees of protection without |C|² containment tests: along the rows of a lattice they are sums of runs.

Proof: docs/proofs/degree.md.
"""

from __future__ import annotations

import numpy as np

from dphmm.policy.constraint import Constraint
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import IntArray

#: A dense picture of the lattice is worth its memory up to this many cells per distinct answer.
_CELLS_PER_POINT = 64
_PAIRS_AT_ONCE = 2**22


def images(lattice: IntArray, constraint: Constraint) -> IntArray:
    """f(g(s)) (N, d): where each state is answered from; rows of states without a surrogate are meaningless."""
    return lattice[np.maximum(constraint.surrogate, 0)]


def degree_among(hull: SensitivityHull, image: IntArray, targets: IntArray, among: IntArray) -> IntArray:
    """For each target state, the number of states of ``among`` whose image lies within the hull of its own."""
    points, counts = np.unique(image[among], axis=0, return_counts=True)
    wanted, back = np.unique(image[targets], axis=0, return_inverse=True)
    if hull.rank == hull.dimension == 2 and _fits(points):
        degrees = _by_rows(hull, points, counts, wanted)
    else:
        degrees = _by_pairs(hull, points, counts, wanted)
    return degrees[back.reshape(-1)]


def _fits(points: IntArray) -> bool:
    spans = np.ptp(points, axis=0) + 1
    return int(spans[0]) * int(spans[1]) <= _CELLS_PER_POINT * len(points) + 4096


def _by_rows(hull: SensitivityHull, points: IntArray, counts: IntArray, wanted: IntArray) -> IntArray:
    """Rows of the hull are runs of lattice points, and a run's count is a difference of two running sums."""
    low = points.min(axis=0)
    width, height = (np.ptp(points, axis=0) + 1).tolist()
    table = np.zeros((height, width + 1), dtype=np.int64)
    table[points[:, 1] - low[1], points[:, 0] - low[0] + 1] = counts
    table = table.cumsum(axis=1)
    x, y = (wanted - low).T
    degrees = np.zeros(len(wanted), dtype=np.int64)
    tallest = int(hull.widths[1])
    for dy in range(-min(tallest, 2 * height), min(tallest, 2 * height) + 1):
        run = _row(hull, dy)
        rows = y + dy
        ok = (rows >= 0) & (rows < height)
        if run is None or not ok.any():
            continue
        first = np.clip(x[ok] + run[0], 0, width)
        last = np.clip(x[ok] + run[1] + 1, 0, width)
        degrees[ok] += table[rows[ok], last] - table[rows[ok], first]
    return degrees


def _row(hull: SensitivityHull, dy: int) -> tuple[int, int] | None:
    """The first and last dx with (dx, dy) in the hull, exactly; None where the row is empty."""
    first, last = -int(hull.widths[0]), int(hull.widths[0])
    for (a, c), b in zip(hull.normals.tolist(), hull.offsets.tolist(), strict=True):
        if a == 0:
            if abs(c * dy) > b:
                return None
            continue
        low, high = -b - c * dy, b - c * dy
        if a < 0:
            a, low, high = -a, -high, -low
        first, last = max(first, -(-low // a)), min(last, high // a)
    return (first, last) if first <= last else None


def _by_pairs(hull: SensitivityHull, points: IntArray, counts: IntArray, wanted: IntArray) -> IntArray:
    chunk = max(1, _PAIRS_AT_ONCE // max(1, len(points)))
    degrees = np.zeros(len(wanted), dtype=np.int64)
    for start in range(0, len(wanted), chunk):
        some = wanted[start : start + chunk]
        steps = (points[None] - some[:, None]).reshape(-1, points.shape[1])
        inside = hull.contains_lattice(steps).reshape(len(some), len(points))
        degrees[start : start + chunk] = inside @ counts
    return degrees
