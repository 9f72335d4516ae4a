"""Loops over lattice points: bounds, planar hulls, nearest points; facets and triangles of a planar body; points in it.

The points in a body around each of some points are counted in rows of the body, which are runs of points.
Runs that are the same in successive rows are a rectangle, and the points in a rectangle are counted by the four corners
of a summed-area table. Where many points ask, whole rows of them are counted at once.

Proofs: docs/proofs/hull.md, docs/proofs/protection.md (second moments), docs/proofs/degree.md (counts).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import IntArray


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
    """True if the points (n, d) numbered ``some`` are all the same."""
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
def nearest_within(
    points: IntArray, weights: IntArray, targets: IntArray, among: IntArray, rows: IntArray, limits: IntArray
) -> IntArray:
    """The nearest other state to each target, of ``among``, whose difference v has |rows·v| <= limits, -1 if none has.

    ``among`` is ascending: equal distances go to the lowest number. Sums and squared distances must fit int64.
    """
    out = np.full(targets.size, -1, np.int64)
    for k in range(targets.size):
        target = targets[k]
        best = -1
        for other in among:
            distance = 0
            for j in range(weights.size):
                step = (points[other, j] - points[target, j]) * weights[j]
                distance += step * step
            if other == target or (best >= 0 and distance >= best):
                continue
            inside = True
            for i in range(limits.size):
                value = 0
                for j in range(weights.size):
                    value += rows[i, j] * (points[other, j] - points[target, j])
                if abs(value) > limits[i]:
                    inside = False
                    break
            if inside:
                best = distance
                out[k] = other
    return out


@kernel
def nearest_rows(states: IntArray) -> tuple[IntArray, IntArray]:
    """The row of the nearest state in the column of each place of a box (height, width), and the columns with any.

    ``states`` has states in their places, -1 elsewhere. Of two rows as near the one with the lower state counts; where
    a column has no state its rows mean nothing.
    """
    height, width = states.shape
    some = np.zeros(width, np.bool_)
    for row in range(height):
        for x in range(width):
            some[x] |= states[row, x] >= 0
    occupied = np.flatnonzero(some)
    nearest = np.full((height, width), -1, np.int64)
    for row in range(height):
        for column in occupied:
            if states[row, column] >= 0:
                nearest[row, column] = row
            elif row > 0:
                nearest[row, column] = nearest[row - 1, column]
    for row in range(height - 2, -1, -1):
        for column in occupied:
            below, above = nearest[row, column], nearest[row + 1, column]
            if below != above:
                gain = (row - below) - (above - row) if below >= 0 else height
                if gain > 0 or (gain == 0 and states[above, column] < states[below, column]):
                    nearest[row, column] = above
    return nearest, occupied


@kernel
def nearest_in_columns(
    places: IntArray, whole: bool, plan_states: IntArray, wx: int, wy: int, width: int, height: int
) -> IntArray:
    """The nearest states as by nearest_sweep, in a box of width x height lattice points, for every state.

    ``places``: y * width + x of each state, x and y from 0; ``whole``: the states are all places in turn.

    Felzenszwalb and Huttenlocher's distance transform in integers: in its own column a point's nearest is found by
    two sweeps, across columns it is on the lower envelope of parabolas. Parabolas that only touch the envelope stay
    on it, so that equal distances are seen and go to the lowest state number.
    """
    placed = np.full(height * width, -1, np.int64)
    for k in range(plan_states.size - 1, -1, -1):
        placed[places[plan_states[k]]] = plan_states[k]
    states = placed.reshape((height, width))
    rows, occupied = nearest_rows(states)
    nearest = np.empty((height, width), np.int64)
    columns = np.empty(occupied.size, np.int64)
    lifts = np.empty(occupied.size, np.int64)
    owners = np.empty(occupied.size, np.int64)
    # From one parabola of the envelope to the next; the next is the lower one at x where 2 wx² gap x > rise.
    gaps = np.empty(occupied.size, np.int64)
    rises = np.empty(occupied.size, np.int64)
    for row in range(height):
        size = 0
        for column in occupied:
            up = wy * (rows[row, column] - row)
            lift = up * up + (wx * column) * (wx * column)
            while size > 0:
                gaps[size - 1], rises[size - 1] = column - columns[size - 1], lift - lifts[size - 1]
                # The last one lies above the envelope where the new one crosses it before the one before does.
                if size == 1 or rises[size - 1] * gaps[size - 2] >= rises[size - 2] * gaps[size - 1]:
                    break
                size -= 1
            columns[size] = column
            lifts[size] = lift
            owners[size] = states[rows[row, column], column]
            size += 1
        # After the last one there is none.
        gaps[size - 1], rises[size - 1] = 0, 1
        at = 0
        owner, fall, rise = owners[0], 2 * wx * wx * gaps[0], rises[0]
        for x in range(width):
            winner = owner
            while fall * x >= rise:
                at += 1
                owner = owners[at]
                winner = owner if fall * x > rise else min(winner, owner)
                fall, rise = 2 * wx * wx * gaps[at], rises[at]
            nearest[row, x] = winner
    if whole:
        return nearest.ravel()
    out = nearest.ravel()[places]
    for state in plan_states:
        out[state] = state
    return out


#: Each step makes a row shorter; no body with corners in 64 bits takes so many.
_MOST_STEPS = 10_000


@kernel
def polygon_around(half_points: IntArray, span: int) -> tuple[IntArray, IntArray, IntArray]:
    """Normals and offsets of half the facets, and all vertices (counter-clockwise), of the hull of ± points (n, 2).

    No facets where the points lie on a line, or where one is not within ±span, at most 2**28.
    """
    points = np.concatenate((half_points, -half_points))
    if points.max() >= span:
        return points[:0], points[:0, 0].copy(), points[:0]
    chain = convex_chain(points[:, 0].copy(), points[:, 1].copy())
    vertices = points[chain]
    half = chain.size // 2 if chain.size > 2 else 0
    normals = np.empty((half, 2), np.int64)
    offsets = np.zeros(half, np.int64)
    for i in range(half):
        dx = vertices[i + 1, 0] - vertices[i, 0]
        dy = vertices[i + 1, 1] - vertices[i, 1]
        divisor = math.gcd(dx, dy)
        normals[i, 0] = dy // divisor
        normals[i, 1] = -dx // divisor
        # Not of the facet's own vertex: the largest over all points certifies the facet against every one of them.
        for k in range(points.shape[0]):
            offsets[i] = max(offsets[i], normals[i, 0] * points[k, 0] + normals[i, 1] * points[k, 1])
    return normals, offsets, vertices


@kernel
def reduced_coordinates(normals: IntArray, vertices: IntArray, span: int) -> tuple[IntArray, IntArray, IntArray]:
    """Lagrange reduction: x = R·y, R unimodular, its rows short and nearly orthogonal as seen from the vertices (v, 2).

    Returns the normals (m, 2) in these coordinates, R⁻¹, and the largest |x_i| (2,) of the body: none of them where a
    vertex is not within ±span, at most 2**28.
    """
    seen = vertices.copy()
    inverse = np.eye(2, dtype=np.int64)
    if seen.max() >= span or seen.min() <= -span:
        return normals[:0], inverse[:0], seen[:0, 0].copy()
    for _ in range(_MOST_STEPS):
        xx, xy, yy = 0.0, 0.0, 0.0
        for i in range(len(seen)):
            x, y = float(seen[i, 0]), float(seen[i, 1])
            xx += x * x
            xy += x * y
            yy += y * y
        if xx > yy:
            seen = seen[:, ::-1].copy()
            inverse = inverse[:, ::-1].copy()
            xx, yy = yy, xx
        # Where it is a half both rows are as short as they get: rounding would go to and fro for ever.
        if abs(xy) <= (0.5 + 1e-9) * xx:
            break
        q = int(np.rint(xy / xx))
        seen[:, 1] -= q * seen[:, 0]
        inverse[:, 0] += q * inverse[:, 1]
    turned = np.empty_like(normals)
    for i in range(len(normals)):
        for j in range(2):
            turned[i, j] = normals[i, 0] * inverse[0, j] + normals[i, 1] * inverse[1, j]
    widths = np.array([np.abs(seen[:, 0]).max(), np.abs(seen[:, 1]).max()])
    return turned, inverse, widths


@kernel
def outer_extents(points: IntArray, directions: IntArray) -> IntArray:
    """As `extents`; of planar points in few columns the ends of the columns suffice, for the corners are there."""
    if points.shape[1] == 2 and len(points):
        low, high = bounds(points)
        width = high[0] - low[0] + 1
        if width < len(points):
            return extents(outermost(points, low[0], width), directions)
    return extents(points, directions)


@kernel
def fan_sums(vertices: IntArray, span: int) -> tuple[int, int, int, int]:
    """The sums over the triangles (0, a, b) of neighbouring vertices (v, 2): w, and w·(aaᵀ + bbᵀ + ttᵀ) as xx, xy, yy.

    w = |det(a, b)|, t = a + b. A weight of -1 where a vertex is not within ±span; 2**14 keeps all sums within 64 bits.
    """
    if vertices.max() >= span or vertices.min() <= -span:
        return -1, 0, 0, 0
    weight, xx, xy, yy = 0, 0, 0, 0
    for i in range(vertices.shape[0]):
        ax, ay, bx, by = vertices[i - 1, 0], vertices[i - 1, 1], vertices[i, 0], vertices[i, 1]
        w = abs(ax * by - ay * bx)
        weight += w
        xx += w * (ax * ax + bx * bx + (ax + bx) * (ax + bx))
        xy += w * (ax * ay + bx * by + (ax + bx) * (ay + by))
        yy += w * (ay * ay + by * by + (ay + by) * (ay + by))
    return weight, xx, xy, yy


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
    """The number of points (n, 2) numbered ``among`` in the body around each of those numbered ``wanted``.

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
    """At [y, width + x]: the number of the points in the box below row y and to the left of column x.

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


@kernel
def count_within(values: IntArray, offsets: IntArray, weights: IntArray, counts: IntArray) -> None:
    """Add to ``counts`` (n,) the ``weights`` of all points j with |values_i - values_j| <= offsets on every facet.

    ``values`` (n, m): points times facet normals, sorted by their first column.
    """
    n, m = values.shape
    for i in range(n):
        for j in range(i, n):
            if values[j, 0] - values[i, 0] > offsets[0]:
                break
            inside = True
            for k in range(1, m):
                if abs(values[j, k] - values[i, k]) > offsets[k]:
                    inside = False
                    break
            if inside:
                counts[i] += weights[j]
                if i != j:
                    counts[j] += weights[i]
