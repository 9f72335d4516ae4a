"""The exact hull of a symmetric planar set of integer differences.

From a few points, or from its support function alone.

Asked, each edge of the polygon is confirmed by asking for the largest difference along its own outward normal; a larger
one becomes a vertex and splits the edge. So every facet that comes out has been certified against all differences.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

from collections.abc import Callable
from math import gcd

from dphmm import _kernels
from dphmm.policy._hull_points import CHAIN_SPAN
from dphmm.types import IntArray

#: Support function in plane coordinates: direction -> (value, a point attaining it).
PlaneSupport = Callable[[tuple[int, int]], tuple[int, tuple[int, int]]]
Point = tuple[int, int]


def polygon_of(points: IntArray | None) -> tuple[IntArray, IntArray, IntArray] | None:
    """Normals and offsets of half the facets, and all vertices (counter-clockwise), of the hull of ± points (m, 2).

    None where there are no points, where they lie on a line, or where products would pass 64 bits.
    """
    if points is None or len(points) < 2:
        return None
    normals, offsets, vertices = _kernels.polygon.polygon_around(points, CHAIN_SPAN // 2)
    return (normals, offsets, vertices) if len(normals) else None


def symmetric_polygon(support: PlaneSupport) -> tuple[list[Point], list[tuple[Point, int]]]:
    """Vertices of half the boundary (counter-clockwise, without their negatives) and its facets (normal, offset).

    The set must span the plane. A facet says normal·y <= offset; its mirror image is implied.
    """
    right = support((1, 0))[1]
    corners = [right, *_between(right, (-right[0], -right[1]), support)]
    corners = _without_flat_corners(corners)
    facets = []
    for i, corner in enumerate(corners):
        following = corners[i + 1] if i + 1 < len(corners) else (-corners[0][0], -corners[0][1])
        normal = _outward(corner, following)
        facets.append((normal, normal[0] * corner[0] + normal[1] * corner[1]))
    return corners, facets


def _between(start: Point, end: Point, support: PlaneSupport) -> list[Point]:
    """The corners strictly between two boundary points, counter-clockwise."""
    found: list[Point] = []
    pending = [(start, end)]
    while pending:
        p, q = pending.pop()
        normal = _outward(p, q)
        value, point = support(normal)
        if value == normal[0] * p[0] + normal[1] * p[1]:
            if q != end:
                found.append(q)
            continue
        pending.append((point, q))
        pending.append((p, point))
    return found


def _outward(p: Point, q: Point) -> Point:
    x, y = q[1] - p[1], p[0] - q[0]
    divisor = gcd(x, y)
    return x // divisor, y // divisor


def _without_flat_corners(corners: list[Point]) -> list[Point]:
    """Drop points inside an edge; the half boundary is closed by the negative of its first corner."""
    kept = []
    n = len(corners)
    for i, corner in enumerate(corners):
        before = corners[i - 1] if i else (-corners[-1][0], -corners[-1][1])
        after = corners[i + 1] if i + 1 < n else (-corners[0][0], -corners[0][1])
        turn = (corner[0] - before[0]) * (after[1] - corner[1]) - (corner[1] - before[1]) * (after[0] - corner[0])
        if turn != 0:
            kept.append(corner)
    return kept
