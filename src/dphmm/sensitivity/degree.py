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
    return lattice[constraint.surrogate]


def degree_among(hull: SensitivityHull, image: IntArray, targets: IntArray, among: IntArray) -> IntArray:
    """For each target state, the number of states of ``among`` whose image lies within the hull of its own."""
    if hull.rank == hull.dimension == 2 and len(among) > 0:
        degrees = _by_rows(hull, image[among], image[targets])
        if degrees is not None:
            return degrees
    points, counts = np.unique(image[among], axis=0, return_counts=True)
    wanted, back = np.unique(image[targets], axis=0, return_inverse=True)
    return _by_pairs(hull, points, counts, wanted)[back.reshape(-1)]


def _by_rows(hull: SensitivityHull, points: IntArray, wanted: IntArray) -> IntArray | None:
    """Rows of the hull are runs of lattice points, and a run's count is a difference of two running sums.

    None where a picture of the points' box would be mostly empty.
    """
    from dphmm._kernels.points import bounds, count_in_runs

    low, high = bounds(points)
    width, height = (int(s) + 1 for s in high - low)
    if width * height > _CELLS_PER_POINT * len(points) + 4096:
        return None
    tallest = min(int(hull.widths[1]), 2 * height)
    runs = np.array([_row(hull, dy) for dy in range(-tallest, tallest + 1)], dtype=np.int64)
    return count_in_runs(points, wanted, low, width, height, runs)


def _row(hull: SensitivityHull, dy: int) -> tuple[int, int]:
    """The first and last dx with (dx, dy) in the hull, exactly; (0, -1) where the row is empty."""
    first, last = -int(hull.widths[0]), int(hull.widths[0])
    for (a, c), b in zip(hull.normals.tolist(), hull.offsets.tolist(), strict=True):
        if a == 0:
            if abs(c * dy) > b:
                return 0, -1
            continue
        low, high = -b - c * dy, b - c * dy
        if a < 0:
            a, low, high = -a, -high, -low
        first, last = max(first, -(-low // a)), min(last, high // a)
    return (first, last) if first <= last else (0, -1)


def _by_pairs(hull: SensitivityHull, points: IntArray, counts: IntArray, wanted: IntArray) -> IntArray:
    chunk = max(1, _PAIRS_AT_ONCE // max(1, len(points)))
    degrees = np.zeros(len(wanted), dtype=np.int64)
    for start in range(0, len(wanted), chunk):
        some = wanted[start : start + chunk]
        steps = (points[None] - some[:, None]).reshape(-1, points.shape[1])
        inside = hull.contains_lattice(steps).reshape(len(some), len(points))
        degrees[start : start + chunk] = inside @ counts
    return degrees
