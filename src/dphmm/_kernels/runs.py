"""How many lattice points lie in a planar body around each of some points: rows of the body are runs of points.

The count of a run is a difference of two running sums of its row. Where many points ask, whole rows are summed at once.

Proof: docs/proofs/degree.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import IntArray

#: Facets whose values could pass this are left to exact integers.
_MOST = 2**62
#: Asking for every cell of the picture takes as long as asking for one of so many.
_CELLS_AT_ONCE = 8


@kernel
def box_of(points: IntArray, some: IntArray, others: IntArray) -> IntArray:
    """The least (2,) and the largest (2,) coordinates of the points (n, 2) numbered ``some`` and ``others``."""
    first = some[0] if len(some) > 0 else others[0]
    x, y = points[first, 0], points[first, 1]
    box = np.array([x, y, x, y])
    stretch(box, points, some)
    stretch(box, points, others)
    return box


@kernel
def stretch(box: IntArray, points: IntArray, numbers: IntArray) -> None:
    """Make a box (4,) as large as it must be to hold the points (n, 2) so numbered."""
    left, bottom, right, top = box
    for i in numbers:
        x, y = points[i, 0], points[i, 1]
        left, right = min(left, x), max(right, x)
        bottom, top = min(bottom, y), max(top, y)
    box[:] = np.array([left, bottom, right, top])


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
def count_in_runs(points: IntArray, wanted: IntArray, among: IntArray, box: IntArray, runs: IntArray) -> IntArray:
    """For each of the points (n, 2) numbered ``wanted`` how many of those numbered ``among`` lie in the body around it.

    ``box`` holds them all; ``runs`` are those of the body in it, and in the rows below by symmetry.
    """
    height, width = len(runs), box[2] - box[0] + 1
    sums = _running_sums(points, among, box)
    out = np.zeros(len(wanted), np.int64)
    if len(wanted) * _CELLS_AT_ONCE >= width * height:
        counts = _counted_everywhere(sums, runs)
        for i in range(len(wanted)):
            out[i] = counts[points[wanted[i], 1] - box[1], points[wanted[i], 0] - box[0]]
        return out
    for i in range(len(wanted)):
        x, y = points[wanted[i], 0] - box[0], points[wanted[i], 1] - box[1]
        for row in range(height):
            first, last = _run(runs, row - y)
            if first <= last:
                out[i] += sums[row, min(max(x + last + 1, 0), width)] - sums[row, min(max(x + first, 0), width)]
    return out


@kernel
def _running_sums(points: IntArray, among: IntArray, box: IntArray) -> IntArray:
    """In row y, column x: how many of the points stand in that row to the left of x (height, width + 1)."""
    sums = np.zeros((box[3] - box[1] + 1, box[2] - box[0] + 2), np.int64)
    for i in among:
        sums[points[i, 1] - box[1], points[i, 0] - box[0] + 1] += 1
    for y in range(sums.shape[0]):
        for x in range(1, sums.shape[1]):
            sums[y, x] += sums[y, x - 1]
    return sums


@kernel
def _run(runs: IntArray, dy: int) -> tuple[int, int]:
    """The run of a row of the body; the body is symmetric."""
    if dy >= 0:
        return runs[dy, 0], runs[dy, 1]
    return -runs[-dy, 1], -runs[-dy, 0]


@kernel
def _counted_everywhere(sums: IntArray, runs: IntArray) -> IntArray:
    """The count around every cell (height, width) of the picture."""
    height, width = sums.shape[0], sums.shape[1] - 1
    counts = np.zeros((height, width), np.int64)
    for y in range(height):
        for row in range(height):
            first, last = _run(runs, row - y)
            if first <= last:
                _add_shifted(counts[y], sums[row], last + 1, 1)
                _add_shifted(counts[y], sums[row], first, -1)
    return counts


@kernel
def _add_shifted(counts: IntArray, sums: IntArray, shift: int, sign: int) -> None:
    """Add sign·sums[x + shift] to each of counts (width,); beyond its ends a row of sums stays as it ends."""
    width = len(counts)
    begin, end = min(max(-shift, 0), width), min(max(width - shift, 0), width)
    inner, shifted = counts[begin:end], sums[begin + shift : end + shift]
    for x in range(len(inner)):
        inner[x] += sign * shifted[x]
    beyond = counts[end:]
    for x in range(len(beyond)):
        beyond[x] += sign * sums[width]
