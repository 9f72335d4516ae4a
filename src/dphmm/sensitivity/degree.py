"""Degrees of protection without |C|² containment tests: along the rows of a lattice they are sums of runs.

Proof: docs/proofs/degree.md.
"""

from __future__ import annotations

import numpy as np

from dphmm import _kernels
from dphmm.policy.constraint import Constraint
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import IntArray

#: A dense picture of the lattice is worth its memory up to this many cells per distinct answer.
_CELLS_PER_POINT = 64
_PAIRS_AT_ONCE = 2**22


def images(lattice: IntArray, constraint: Constraint) -> IntArray:
    """f(g(s)) (N, d): where each state is answered from; rows of states without a surrogate are meaningless."""
    return lattice.take(constraint.surrogate, axis=0)


def degree_among(hull: SensitivityHull, image: IntArray, targets: IntArray, among: IntArray) -> IntArray:
    """For each target state, the number of states of ``among`` whose image lies within the hull of its own."""
    if hull.rank == hull.dimension == 2 and len(among) > 0:
        degrees = _by_rows(hull, image, targets, among)
        if degrees is not None:
            return degrees
    points, counts = np.unique(image[among], axis=0, return_counts=True)
    wanted, back = np.unique(image[targets], axis=0, return_inverse=True)
    return _by_pairs(hull, points, counts, wanted)[back.reshape(-1)]


def _by_rows(hull: SensitivityHull, image: IntArray, targets: IntArray, among: IntArray) -> IntArray | None:
    """Rows of the hull are runs of lattice points, and a run's count is a difference of two running sums.

    None where a picture of the box of all these points would be mostly empty, or numbers are too large.
    """
    left, bottom, right, top = _kernels.runs.box_of(
        image, among if targets is among else np.concatenate([targets, among])
    )
    width, height = right - left + 1, top - bottom + 1
    if width * height > _CELLS_PER_POINT * len(among) + 4096:
        return None
    runs = _kernels.runs.runs_of_body(hull.normals, hull.offsets, width, height)
    return _kernels.runs.count_in_runs(image, targets, among, left, bottom, width, runs) if len(runs) else None


def _by_pairs(hull: SensitivityHull, points: IntArray, counts: IntArray, wanted: IntArray) -> IntArray:
    chunk = max(1, _PAIRS_AT_ONCE // max(1, len(points)))
    degrees = np.zeros(len(wanted), dtype=np.int64)
    for start in range(0, len(wanted), chunk):
        some = wanted[start : start + chunk]
        steps = (points[None] - some[:, None]).reshape(-1, points.shape[1])
        inside = hull.contains_lattice(steps).reshape(len(some), len(points))
        degrees[start : start + chunk] = inside @ counts
    return degrees
