"""Loops of the policy layer: contracted cliques, neighbouring cells of a lattice, components.

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
def column_ends(low: IntArray, high: IntArray) -> IntArray:
    """(x, y) of the lowest and the highest of every column that has any."""
    ends = np.empty((2 * low.size, 2), np.int64)
    size = 0
    for x in range(low.size):
        if low[x] <= high[x]:
            ends[size] = (x, low[x])
            ends[size + 1] = (x, high[x])
            size += 2
    return ends[:size].copy()
