"""Loops over lattice points: bounds, planar hulls, nearest points.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import BoolArray, IntArray


@kernel
def bounds(points: IntArray) -> tuple[IntArray, IntArray]:
    """The least and the largest of each column of points (n, d), n > 0."""
    low, high = points[0].copy(), points[0].copy()
    for j in range(points.shape[1]):
        least, most = low[j], high[j]
        for i in range(points.shape[0]):
            least = min(least, points[i, j])
            most = max(most, points[i, j])
        low[j], high[j] = least, most
    return low, high


@kernel
def all_equal(points: IntArray, some: IntArray) -> bool:
    """Whether the points (n, d) numbered ``some`` are all the same."""
    for i in some:
        for j in range(points.shape[1]):
            if points[i, j] != points[some[0], j]:
                return False
    return True


@kernel
def convex_chain(x: IntArray, y: IntArray) -> IntArray:
    """Positions of the vertices of a planar hull, counter-clockwise from the lexicographically least.

    Spans must stay below 2**29, so that keys and cross products stay below 2**62.
    """
    height = y.max() - y.min() + 1
    order = np.argsort((x - x.min()) * height + (y - y.min()))
    chain = np.empty(2 * x.size + 1, np.int64)
    size = 0
    floor = 2
    for step in range(2 * x.size - 1):
        point = order[step] if step < x.size else order[2 * x.size - 2 - step]
        if step == x.size:
            floor = size + 1
        while size >= floor:
            a = chain[size - 2]
            b = chain[size - 1]
            if (x[b] - x[a]) * (y[point] - y[a]) - (y[b] - y[a]) * (x[point] - x[a]) > 0:
                break
            size -= 1
        if size > 0 and x[chain[size - 1]] == x[point] and y[chain[size - 1]] == y[point]:
            continue
        chain[size] = point
        size += 1
    if size > 1:
        size -= 1
    return chain[:size].copy()


@kernel
def row_difference_polygons(ptr: IntArray, members: IntArray, x: IntArray, y: IntArray) -> IntArray:
    """Vertices of P - P for the points P of every row, row after row (docs/theory.md (h)):
    conv(A - A) = conv A - conv A."""
    out = np.empty((2 * members.size + 2 * ptr.size, 2), np.int64)
    size = 0
    for row in range(ptr.size - 1):
        px = x[members[ptr[row] : ptr[row + 1]]]
        py = y[members[ptr[row] : ptr[row + 1]]]
        ring = convex_chain(px, py)
        h = ring.size
        if h < 2:
            continue
        top = 0
        for k in range(h):
            if px[ring[k]] > px[ring[top]] or (px[ring[k]] == px[ring[top]] and py[ring[k]] > py[ring[top]]):
                top = k
        i = 0
        j = 0
        while i < h or j < h:
            a = ring[i % h]
            b = ring[(top + j) % h]
            out[size, 0] = px[a] - px[b]
            out[size, 1] = py[a] - py[b]
            size += 1
            a_next = ring[(i + 1) % h]
            b_next = ring[(top + j + 1) % h]
            turn = (px[a_next] - px[a]) * (py[b] - py[b_next]) - (py[a_next] - py[a]) * (px[b] - px[b_next])
            if j >= h or (i < h and turn >= 0):
                i += 1
            if i > h or (j < h and turn <= 0):
                j += 1
    return out[:size].copy()


@kernel
def outermost(points: IntArray, left: int, width: int) -> IntArray:
    """The lowest and the highest of planar points (n, 2) in each column x = left .. left + width - 1 that has any."""
    low = np.full(width, 2**62)
    high = np.full(width, -(2**62))
    for i in range(points.shape[0]):
        at = points[i, 0] - left
        low[at] = min(low[at], points[i, 1])
        high[at] = max(high[at], points[i, 1])
    return column_ends(low, high, left)


@kernel
def column_ends(low: IntArray, high: IntArray, left: int) -> IntArray:
    """(x, y) of the lowest and the highest of every column that has any; the first column is x = left."""
    ends = np.empty((2 * low.size, 2), np.int64)
    size = 0
    for x in range(low.size):
        if low[x] <= high[x]:
            ends[size] = (left + x, low[x])
            ends[size + 1] = (left + x, high[x])
            size += 2
    return ends[:size].copy()


@kernel
def largest_sum(rows: IntArray) -> float:
    """The largest sum of absolute values in a row of (n, d)."""
    largest = 0.0
    for i in range(rows.shape[0]):
        size = 0.0
        for j in range(rows.shape[1]):
            size += abs(float(rows[i, j]))
        largest = max(largest, size)
    return largest


@kernel
def extents(points: IntArray, directions: IntArray) -> IntArray:
    """Largest minus smallest of points·direction (n, d) for each direction (m, d).

    None where 64 bits may not hold them.
    """
    out = np.empty(directions.shape[0], np.int64)
    if largest_sum(points) * largest_sum(directions) >= 2.0**61:
        return out[:0]
    values = np.empty(points.shape[0], np.int64)
    for i in range(directions.shape[0]):
        values[:] = 0
        for j in range(points.shape[1]):
            for s in range(points.shape[0]):
                values[s] += points[s, j] * directions[i, j]
        low, high = values[0], values[0]
        for s in range(points.shape[0]):
            low, high = min(low, values[s]), max(high, values[s])
        out[i] = high - low
    return out


@kernel
def nearest_sweep(queries: IntArray, points: IntArray, states: IntArray, weights: IntArray, axis: int) -> IntArray:
    """The nearest point of each query, equal distances to the lowest state number.

    ``points`` are sorted along ``axis``; ``weights`` are integers and every squared distance fits int64.
    """
    out = np.empty(queries.shape[0], np.int64)
    count = points.shape[0]
    for q in range(queries.shape[0]):
        here = queries[q, axis]
        right = np.searchsorted(points[:, axis], here)
        left = right - 1
        best = -1
        winner = -1
        while left >= 0 or right < count:
            if left < 0 or (right < count and points[right, axis] - here <= here - points[left, axis]):
                k = right
                right += 1
            else:
                k = left
                left -= 1
            along = (points[k, axis] - here) * weights[axis]
            if best >= 0 and along * along > best:
                break
            distance = 0
            for j in range(points.shape[1]):
                step = (points[k, j] - queries[q, j]) * weights[j]
                distance += step * step
            if best < 0 or distance < best or (distance == best and states[k] < winner):
                best = distance
                winner = states[k]
        out[q] = winner
    return out


@kernel
def spread_along_columns(near: IntArray, y: IntArray) -> Any:
    """Put into each place of a column the nearest of its states, ties to the lowest number; the columns with any.

    ``near`` (height, width) has the states in their own places, and -1 elsewhere; ``y`` tells the row of each.
    """
    height, width = near.shape
    some = np.zeros(width, np.bool_)
    for row in range(height):
        for column in range(width):
            some[column] |= near[row, column] >= 0
    occupied: Any = np.flatnonzero(some)
    for row in range(1, height):
        for column in occupied:
            if near[row, column] < 0:
                near[row, column] = near[row - 1, column]
    for row in range(height - 2, -1, -1):
        for column in occupied:
            below, above = near[row, column], near[row + 1, column]
            if below != above:
                gain = abs(y[below] - row) - abs(y[above] - row) if below >= 0 else height
                if gain > 0 or (gain == 0 and above < below):
                    near[row, column] = above
    return occupied


@kernel
def nearest_in_columns(
    x: IntArray, y: IntArray, plan: BoolArray, wx: int, wy: int, width: int, height: int
) -> IntArray:
    """As nearest_sweep in a box of width x height lattice points, for every state; x and y start at 0.

    Felzenszwalb and Huttenlocher's distance transform in integers: in its own column a point's nearest is found by
    two sweeps, across columns it is on the lower envelope of parabolas. Parabolas that only touch the envelope stay
    on it, so that equal distances are seen and go to the lowest state number.
    """
    near = np.full((height, width), -1, np.int64)
    for s in range(plan.size - 1, -1, -1):
        if plan[s]:
            near[y[s], x[s]] = s
    occupied = spread_along_columns(near, y)
    nearest = np.empty((height, width), np.int64)
    columns = np.empty(occupied.size, np.int64)
    lifts = np.empty(occupied.size, np.int64)
    for row in range(height):
        size = 0
        for column in occupied:
            state = near[row, column]
            rise = wy * (y[state] - row)
            lift = rise * rise + (wx * column) * (wx * column)
            while size > 1:
                before, last = columns[size - 2], columns[size - 1]
                # The last one lies above the envelope where the new one crosses it before the one before does.
                if (lift - lifts[size - 1]) * (last - before) >= (lifts[size - 1] - lifts[size - 2]) * (column - last):
                    break
                size -= 1
            columns[size] = column
            lifts[size] = lift
            size += 1
        at = 0
        for column in range(width):
            winner = near[row, columns[at]]
            least = lifts[at] - 2 * wx * wx * columns[at] * column
            while at + 1 < size:
                value = lifts[at + 1] - 2 * wx * wx * columns[at + 1] * column
                if value > least:
                    break
                at += 1
                state = near[row, columns[at]]
                winner = state if value < least else min(winner, state)
                least = value
            nearest[row, column] = winner
    out = np.empty(x.size, np.int64)
    for s in range(x.size):
        out[s] = s if plan[s] else nearest[y[s], x[s]]
    return out
