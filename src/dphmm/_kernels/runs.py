"""How many lattice points lie in a planar body around each of some points: rows of the body are runs of points.

Runs that are the same in successive rows are a rectangle, and the points in a rectangle are counted by the four corners
of a summed-area table. Where many points ask, whole rows of them are counted at once.

Proof: docs/proofs/degree.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import IntArray

#: Facets whose values could pass this are left to exact integers.
_MOST = 2**62
#: Asking for every cell of the picture takes as long as asking for one of so many.
_CELLS_AT_ONCE = 8


@kernel
def box_of(points: IntArray, some: IntArray) -> tuple[int, int, int, int]:
    """The least x and y and the largest x and y of the points (n, 2) numbered ``some``, at least one."""
    left, bottom = points[some[0], 0], points[some[0], 1]
    right, top = left, bottom
    for i in some:
        x, y = points[i, 0], points[i, 1]
        left, right = min(left, x), max(right, x)
        bottom, top = min(bottom, y), max(top, y)
    return left, bottom, right, top


@kernel
def runs_of_body(normals: IntArray, offsets: IntArray, width: int, height: int) -> IntArray:
    """The first and the last dx, within ±(width - 1), with (dx, dy) in the body, for the rows dy = 0..height - 1.

    The body is |normals·(dx, dy)| <= offsets. An empty row has first > last; no rows where 64 bits do not hold it.
    """
    runs = np.empty((height, 2), np.int64)
    for i in range(len(offsets)):
        if abs(normals[i, 1]) > (_MOST - offsets[i]) // height:
            return runs[:0]
    for dy in range(height):
        first, last = 1 - width, width - 1
        for i in range(len(offsets)):
            a, low, high = normals[i, 0], -offsets[i] - normals[i, 1] * dy, offsets[i] - normals[i, 1] * dy
            if a == 0:
                last = last if low <= 0 <= high else first - 1
            elif a > 0:
                first, last = max(first, -(-low // a)), min(last, high // a)
            else:
                first, last = max(first, -(high // -a)), min(last, -low // -a)
        runs[dy, 0], runs[dy, 1] = first, last
    return runs


@kernel
def rectangles(runs: IntArray) -> IntArray:
    """The body as rectangles (m, 4): first and last dy, first and last dx; below by symmetry."""
    height = len(runs)
    out = np.empty((2 * height, 4), np.int64)
    size = 0
    for dy in range(1 - height, height):
        first, last = runs[abs(dy), 0], runs[abs(dy), 1]
        if first > last:
            continue
        if dy < 0:
            first, last = -last, -first
        # The body is convex: rows between two with one run have it too.
        if size > 0 and out[size - 1, 2] == first and out[size - 1, 3] == last:
            out[size - 1, 1] = dy
        else:
            out[size] = (dy, dy, first, last)
            size += 1
    return out[:size]


@kernel
def count_in_runs(
    points: IntArray, wanted: IntArray, among: IntArray, left: int, bottom: int, width: int, runs: IntArray
) -> IntArray:
    """For each of the points (n, 2) numbered ``wanted`` how many of those numbered ``among`` lie in the body around it.

    They are all in the box of ``width`` columns from x = left, and of as many rows from y = bottom as ``runs`` has:
    those of the body in it, and in the rows below by symmetry.
    """
    height = len(runs)
    table = _summed_areas(points, among, left, bottom, width, height)
    parts = rectangles(runs)
    everywhere = len(wanted) * _CELLS_AT_ONCE >= width * height
    counts = _counted_everywhere(table, parts) if everywhere else table[:0]
    out = np.zeros(len(wanted), np.int64)
    for i in range(len(wanted)):
        x, y = points[wanted[i], 0] - left, points[wanted[i], 1] - bottom
        if everywhere:
            out[i] = counts[y, x]
            continue
        for k in range(len(parts)):
            low, high = _rows_between(parts[k], y, height)
            first, end = width + x + parts[k, 2], width + x + parts[k, 3] + 1
            out[i] += table[high, end] - table[high, first] - table[low, end] + table[low, first]
    return out


@kernel
def _summed_areas(points: IntArray, among: IntArray, left: int, bottom: int, width: int, height: int) -> Any:
    """At [y, width + x]: how many of the points stand in the box below row y and to the left of column x.

    For x from -width to 2 width, as far as a body in the box reaches. In 32 bits: there are fewer states.
    """
    table = np.zeros((height + 1, 3 * width + 1), np.int32)
    for i in among:
        table[points[i, 1] - bottom + 1, width + points[i, 0] - left + 1] += 1
    for y in range(1, height + 1):
        here, below = table[y], table[y - 1]
        for x in range(width + 1, 2 * width + 1):
            here[x] += here[x - 1]
        here[2 * width + 1 :] = here[2 * width]
        for x in range(len(here)):
            here[x] += below[x]
    return table


@kernel
def _rows_between(part: IntArray, y: int, height: int) -> tuple[int, int]:
    """The rows of a box that a rectangle around row y covers: the first, and the first that it does not cover."""
    return min(max(y + part[0], 0), height), min(max(y + part[1] + 1, 0), height)


@kernel
def _counted_everywhere(table: Any, parts: IntArray) -> Any:
    """The count around every cell (height, width) of the box."""
    height, width = table.shape[0] - 1, table.shape[1] // 3
    counts = np.zeros((height, width), np.int32)
    for y in range(height):
        here = counts[y]
        for k in range(len(parts)):
            low, high = _rows_between(parts[k], y, height)
            if low < high:
                first, end = width + parts[k, 2], width + parts[k, 3] + 1
                upper_end, lower_end = table[high, end:], table[low, end:]
                upper_first, lower_first = table[high, first:], table[low, first:]
                for x in range(width):
                    here[x] += upper_end[x] - upper_first[x] - lower_end[x] + lower_first[x]
    return counts
