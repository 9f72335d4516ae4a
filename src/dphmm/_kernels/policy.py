"""Loops of the policy layer: contracted cliques, neighbouring cells of a lattice, components, nearest plan
states.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import BoolArray, IntArray


@kernel
def misplaced(support: BoolArray, plan: BoolArray, surrogate: IntArray) -> str:
    """What keeps support, plan set and surrogate map from fitting together; "" where they do."""
    for state in range(support.size):
        image = surrogate[state]
        if image < (0 if support[state] else -1) or image >= support.size:
            return "missing"
        if image >= 0 and not plan[image]:
            return "outside"
        if plan[state] and image != state:
            return "moved"
    return ""


@kernel
def contract_cliques(
    indptr: IntArray, indices: IntArray, support: BoolArray, surrogate: IntArray
) -> tuple[IntArray, IntArray]:
    """Cliques after contraction: the distinct surrogates of each clique's supported members, twos and
    more."""
    stamp = np.full(support.size, -1, np.int64)
    ptr = np.zeros(indptr.size, np.int64)
    members = np.empty(indices.size, np.int64)
    kept = 0
    end = 0
    for row in range(indptr.size - 1):
        begin = end
        for k in range(indptr[row], indptr[row + 1]):
            if support[indices[k]]:
                image = surrogate[indices[k]]
                if stamp[image] != row:
                    stamp[image] = row
                    members[end] = image
                    end += 1
        if end - begin >= 2:
            kept += 1
            ptr[kept] = end
        else:
            end = begin
    return ptr[: kept + 1].copy(), members[:end].copy()


@kernel
def widest_row(ptr: IntArray, members: IntArray, values: IntArray) -> tuple[int, int]:
    """The members with the largest and the smallest value of the row where they differ most."""
    best = -1
    best_high = -1
    best_low = -1
    for row in range(ptr.size - 1):
        high = members[ptr[row]]
        low = high
        for k in range(ptr[row] + 1, ptr[row + 1]):
            member = members[k]
            if values[member] > values[high]:
                high = member
            elif values[member] < values[low]:
                low = member
        if values[high] - values[low] > best:
            best = values[high] - values[low]
            best_high = high
            best_low = low
    return best_high, best_low


@kernel
def root(parent: IntArray, node: int) -> int:
    """The root of a node's tree; the path is halved on the way."""
    while parent[node] != node:
        parent[node] = parent[parent[node]]
        node = parent[node]
    return node


@kernel
def join(parent: IntArray, a: int, b: int) -> None:
    """Put two nodes into one tree, under the lower-numbered root."""
    first = root(parent, a)
    second = root(parent, b)
    if first < second:
        parent[second] = first
    else:
        parent[first] = second


@kernel
def join_pairs(parent: IntArray, a: IntArray, b: IntArray) -> None:
    """Join the ends of every edge."""
    for k in range(a.size):
        join(parent, a[k], b[k])


@kernel
def join_rows(parent: IntArray, ptr: IntArray, members: IntArray) -> None:
    """Join the members of every row."""
    for row in range(ptr.size - 1):
        for k in range(ptr[row] + 1, ptr[row + 1]):
            join(parent, members[ptr[row]], members[k])


@kernel
def number_components(parent: IntArray, plan: BoolArray) -> IntArray:
    """Component numbers in the order of their lowest members; -1 outside the plan set."""
    number = np.full(parent.size, -1, np.int64)
    out = np.full(parent.size, -1, np.int64)
    count = 0
    for state in range(parent.size):
        if plan[state]:
            top = root(parent, state)
            if number[top] < 0:
                number[top] = count
                count += 1
            out[state] = number[top]
    return out


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
def cell_at(target: int, linear: IntArray, table: IntArray) -> int:
    """The number of the cell with a linear index, or -1: from the dense table, or by bisection where there is
    none."""
    if table.size > 0:
        return int(table[target])
    low = 0
    high = linear.size
    while low < high:
        middle = (low + high) // 2
        if linear[middle] < target:
            low = middle + 1
        else:
            high = middle
    return low if low < linear.size and linear[low] == target else -1


@kernel
def translated(points: IntArray, others: IntArray) -> bool:
    """Whether two arrays of points differ by one constant vector."""
    for j in range(points.shape[1]):
        shift = others[0, j] - points[0, j]
        for i in range(points.shape[0]):
            if others[i, j] - points[i, j] != shift:
                return False
    return True


@kernel
def occurring(linear: IntArray, active: BoolArray, deltas: IntArray, table: IntArray) -> BoolArray:
    """Which offsets join two active cells."""
    found = np.zeros(deltas.size, np.bool_)
    for k in range(deltas.size):
        for cell in range(linear.size):
            if active[cell]:
                other = cell_at(linear[cell] + deltas[k], linear, table)
                if other >= 0 and active[other]:
                    found[k] = True
                    break
    return found


@kernel
def widest_pair(
    linear: IntArray, active: BoolArray, deltas: IntArray, table: IntArray, low: IntArray, high: IntArray
) -> tuple[int, int]:
    """Cells (one with the high value, one with the low) of the adjacent or equal pair that differ most."""
    best = -1
    best_high = -1
    best_low = -1
    for cell in range(linear.size):
        if not active[cell]:
            continue
        if high[cell] - low[cell] > best:
            best = high[cell] - low[cell]
            best_high = cell
            best_low = cell
        for k in range(deltas.size):
            other = cell_at(linear[cell] + deltas[k], linear, table)
            if other < 0 or not active[other]:
                continue
            if high[other] - low[cell] > best:
                best = high[other] - low[cell]
                best_high = other
                best_low = cell
            if high[cell] - low[other] > best:
                best = high[cell] - low[other]
                best_high = cell
                best_low = other
    return best_high, best_low


@kernel
def widen_by_cells(
    linear: IntArray,
    active: BoolArray,
    deltas: IntArray,
    table: IntArray,
    image: IntArray,
    x: IntArray,
    y: IntArray,
    low: IntArray,
    high: IntArray,
) -> None:
    """Take into the columns the differences between the images of adjacent active cells."""
    dense = table.size > 0
    for k in range(deltas.size):
        for cell in range(linear.size):
            if active[cell]:
                target = linear[cell] + deltas[k]
                other = table[target] if dense else cell_at(target, linear, table)
                if other >= 0 and active[other] and image[other] != image[cell]:
                    dx = x[image[other]] - x[image[cell]]
                    dy = y[image[other]] - y[image[cell]]
                    if dx < 0 or (dx == 0 and dy < 0):
                        dx = -dx
                        dy = -dy
                    if dy < low[dx]:
                        low[dx] = dy
                    if dy > high[dx]:
                        high[dx] = dy


@kernel
def widen_by_cliques(ptr: IntArray, members: IntArray, x: IntArray, y: IntArray, low: IntArray, high: IntArray) -> bool:
    """Take into the columns the differences within every row; False where a row has too many columns of its own."""
    bottom = np.empty(low.size, np.int64)
    top = np.empty(low.size, np.int64)
    for row in range(ptr.size - 1):
        begin, end = ptr[row], ptr[row + 1]
        if end - begin <= 16:
            for i in range(begin, end):
                for j in range(begin, i):
                    dx = x[members[j]] - x[members[i]]
                    dy = y[members[j]] - y[members[i]]
                    if dx < 0 or (dx == 0 and dy < 0):
                        dx = -dx
                        dy = -dy
                    if dy < low[dx]:
                        low[dx] = dy
                    if dy > high[dx]:
                        high[dx] = dy
            continue
        bottom[:] = 2**62
        top[:] = -(2**62)
        for i in range(begin, end):
            at = x[members[i]]
            bottom[at] = min(bottom[at], y[members[i]])
            top[at] = max(top[at], y[members[i]])
        own = np.flatnonzero(top > -(2**62))
        if own.size * own.size > 64 * (end - begin):
            return False
        for i in range(own.size):
            for j in range(i, own.size):
                left, right = own[i], own[j]
                high[right - left] = max(high[right - left], top[right] - bottom[left])
                low[right - left] = min(low[right - left], bottom[right] - top[left])
    return True


@kernel
def linked_cells(
    linear: IntArray, active: BoolArray, deltas: IntArray, table: IntArray, least: IntArray, most: IntArray
) -> BoolArray:
    """Cells one of whose surrogates has another surrogate beside it or in the same cell."""
    linked: BoolArray = active & (least != most)
    for cell in range(linear.size):
        if active[cell]:
            for k in range(deltas.size):
                other = cell_at(linear[cell] + deltas[k], linear, table)
                if other >= 0 and active[other] and (least[other] != most[cell] or most[other] != least[cell]):
                    linked[cell] = True
                    linked[other] = True
    return linked


@kernel
def linked_images(linear: IntArray, active: BoolArray, deltas: IntArray, table: IntArray, image: IntArray) -> BoolArray:
    """As linked_cells for cells of one state each: the images that have another image beside them."""
    linked = np.zeros(linear.size, np.bool_)
    dense = table.size > 0
    for k in range(deltas.size):
        for cell in range(linear.size):
            if active[cell]:
                target = linear[cell] + deltas[k]
                other = table[target] if dense else cell_at(target, linear, table)
                if other >= 0 and active[other] and image[other] != image[cell]:
                    linked[image[cell]] = True
                    linked[image[other]] = True
    return linked


@kernel
def join_cells(
    parent: IntArray,
    linear: IntArray,
    active: BoolArray,
    deltas: IntArray,
    table: IntArray,
    image: IntArray,
) -> None:
    """Join one surrogate of every active cell with one of each cell beside it."""
    for cell in range(linear.size):
        if active[cell]:
            for k in range(deltas.size):
                other = cell_at(linear[cell] + deltas[k], linear, table)
                if other >= 0 and active[other]:
                    join(parent, image[cell], image[other])


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
    for row in range(1, height):
        for column in range(width):
            if near[row, column] < 0:
                near[row, column] = near[row - 1, column]
    for row in range(height - 2, -1, -1):
        for column in range(width):
            below, above = near[row, column], near[row + 1, column]
            if above >= 0 and below != above:
                gain = abs(y[below] - row) - abs(y[above] - row) if below >= 0 else height
                if gain > 0 or (gain == 0 and above < below):
                    near[row, column] = above
    nearest = np.empty((height, width), np.int64)
    columns = np.empty(width, np.int64)
    lifts = np.empty(width, np.int64)
    for row in range(height):
        size = 0
        for column in range(width):
            state = near[row, column]
            if state < 0:
                continue
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


@kernel
def bounds(points: IntArray) -> tuple[IntArray, IntArray]:
    """The least and the largest of each column of points (n, d), n > 0."""
    low, high = points[0].copy(), points[0].copy()
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            low[j] = min(low[j], points[i, j])
            high[j] = max(high[j], points[i, j])
    return low, high


@kernel
def count_in_runs(
    points: IntArray, wanted: IntArray, low: IntArray, width: int, height: int, runs: IntArray
) -> IntArray:
    """For each wanted point how many of ``points`` lie within the runs around it.

    ``runs`` (2r + 1, 2): first and last dx of the rows dy = -r..r. The box of the points begins at ``low``.
    """
    table = np.zeros((height, width + 1), np.int64)
    for i in range(points.shape[0]):
        table[points[i, 1] - low[1], points[i, 0] - low[0] + 1] += 1
    for y in range(height):
        for x in range(width):
            table[y, x + 1] += table[y, x]
    reach = runs.shape[0] // 2
    out = np.zeros(wanted.shape[0], np.int64)
    for i in range(wanted.shape[0]):
        x = wanted[i, 0] - low[0]
        y = wanted[i, 1] - low[1]
        for row in range(max(0, y - reach), min(height - 1, y + reach) + 1):
            first = min(max(x + runs[row - y + reach, 0], 0), width)
            last = min(max(x + runs[row - y + reach, 1] + 1, 0), width)
            out[i] += table[row, last] - table[row, first]
    return out
