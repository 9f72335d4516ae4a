"""Fewer points with the same convex hull. Only points that are certainly no vertices are left out.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import numpy as np

from dphmm import _kernels
from dphmm.types import IntArray

#: Widest span for which the planar chain's products stay below 2**62.
CHAIN_SPAN = 2**29
_MANY = 64


def hull_points(points: IntArray) -> IntArray:
    """Some of ``points`` (n, d), with the same hull: the vertices for d <= 2, few more for d >= 3."""
    if len(points) <= 2:
        return points
    d = points.shape[1]
    if d == 1:
        return points[[int(points[:, 0].argmin()), int(points[:, 0].argmax())]]
    if d == 2 and np.all(np.ptp(points, axis=0) < CHAIN_SPAN):
        columns = np.ascontiguousarray(points.T)
        vertices: IntArray = points[_kernels.points.convex_chain(columns[0], columns[1])]
        return vertices
    kept = np.unique(points, axis=0)
    for axis in range(d):
        kept = _line_ends(kept, axis)
    return _without_interior(kept) if len(kept) > _MANY else kept


def _line_ends(points: IntArray, axis: int) -> IntArray:
    """On every line parallel to an axis the first and the last point: what lies between is no vertex."""
    others = [points[:, j] for j in range(points.shape[1]) if j != axis]
    order = np.lexsort((points[:, axis], *others))
    ranked = points[order]
    rest = np.delete(ranked, axis, axis=1)
    starts = np.r_[True, np.any(rest[1:] != rest[:-1], axis=1)]
    ends = np.r_[starts[1:], True]
    kept: IntArray = ranked[starts | ends]
    return kept


def _without_interior(points: IntArray) -> IntArray:
    """Without the points well inside Qhull's hull, which is never larger than the true one."""
    from scipy.spatial import ConvexHull, QhullError

    centred = (points - points.min(axis=0)).astype(np.float64)
    scaled = centred / np.maximum(centred.max(axis=0), 1.0)
    try:
        hull = ConvexHull(scaled)
    except QhullError:
        return points
    depth = np.full(len(points), -np.inf)
    for equation in hull.equations:
        np.maximum(depth, scaled @ equation[:-1] + equation[-1], out=depth)
    return points[depth > -1e-6]
