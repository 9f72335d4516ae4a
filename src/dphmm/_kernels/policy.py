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
        if plan[state] and not support[state]:
            return "impossible"
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
        if all_one(indices, indptr[row], indptr[row + 1], surrogate):
            continue
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
def all_one(indices: IntArray, first: int, last: int, surrogate: IntArray) -> bool:
    """Whether the states indices[first:last] have one surrogate, or there are none."""
    k = first + 1
    while k < last and surrogate[indices[k]] == surrogate[indices[first]]:
        k += 1
    return k >= last


@kernel
def marked(members: IntArray, n_states: int) -> BoolArray:
    """The mask (n_states,) of some states."""
    mask = np.zeros(n_states, np.bool_)
    for member in members:
        mask[member] = True
    return mask


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
def segments(
    linear: IntArray, order: IntArray, support: BoolArray, surrogate: IntArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Cells of successive indices whose states (one each) have one surrogate: first and last index, and surrogate.

    Cells of impossible states are in no segment.
    """
    first = np.empty(linear.size, np.int64)
    last = np.empty(linear.size, np.int64)
    image = np.empty(linear.size, np.int64)
    size = 0
    for cell in range(linear.size):
        state = order[cell]
        if support[state]:
            if size > 0 and last[size - 1] == linear[cell] - 1 and image[size - 1] == surrogate[state]:
                last[size - 1] = linear[cell]
            else:
                first[size] = linear[cell]
                last[size] = linear[cell]
                image[size] = surrogate[state]
                size += 1
    return first[:size], last[:size], image[:size]


@kernel
def widen_by_segments(
    first: IntArray,
    last: IntArray,
    image: IntArray,
    bands: IntArray,
    lattice: IntArray,
    low: IntArray,
    high: IntArray,
) -> None:
    """Take into the columns the differences between the images of segments that a step of some band leads between.

    A band (b, 2) is all steps from its first to its last; a segment's cells together reach an interval of indices.
    """
    x, y = lattice[:, 0][image], lattice[:, 1][image]
    middle = low.size - 1
    least = np.full(2 * low.size - 1, 2**62)
    most = np.full(2 * low.size - 1, -(2**62))
    for k in range(bands.shape[0]):
        reached = 0
        for here in range(first.size):
            while reached < first.size and last[reached] < first[here] + bands[k, 0]:
                reached += 1
            there = reached
            while there < first.size and first[there] <= last[here] + bands[k, 1]:
                at = middle + x[there] - x[here]
                dy = y[there] - y[here]
                least[at] = min(least[at], dy)
                most[at] = max(most[at], dy)
                there += 1
    fold(least, most, low, high)


@kernel
def fold(least: IntArray, most: IntArray, low: IntArray, high: IntArray) -> None:
    """Take columns of differences of either sign, x = 0 in the middle, into those of one of each ± pair."""
    middle = low.size - 1
    for dx in range(1, low.size):
        low[dx] = min(low[dx], least[middle + dx], -most[middle - dx])
        high[dx] = max(high[dx], most[middle + dx], -least[middle - dx])
    tallest = max(most[middle], -least[middle])
    if tallest > 0:
        low[0] = min(low[0], tallest)
        high[0] = max(high[0], tallest)


@kernel
def widen(dx: int, dy: int, low: IntArray, high: IntArray) -> None:
    """Take a difference into the columns, unless it is zero."""
    if dx < 0 or (dx == 0 and dy < 0):
        dx = -dx
        dy = -dy
    if dx > 0 or dy > 0:
        low[dx] = min(low[dx], dy)
        high[dx] = max(high[dx], dy)


@kernel
def reshaped(shape: IntArray, size: int, states: IntArray, lattice: IntArray) -> bool:
    """Put where states lie, seen from the first of them, into ``shape`` (n, 2); whether its ``size`` rows differed."""
    x, y = lattice[states[0], 0], lattice[states[0], 1]
    changed = states.size != size
    for i in range(states.size):
        dx, dy = lattice[states[i], 0] - x, lattice[states[i], 1] - y
        if shape[i, 0] != dx or shape[i, 1] != dy:
            shape[i, 0] = dx
            shape[i, 1] = dy
            changed = True
    return changed


@kernel
def widen_by_cliques(
    ptr: IntArray, members: IntArray, lattice: IntArray, left: int, low: IntArray, high: IntArray
) -> bool:
    """Take into the columns the differences within every row; False where a row has too many columns of its own.

    A row that is the one before it, state by state, moved by one vector, has the same differences.
    """
    bottom = np.empty(low.size, np.int64)
    top = np.empty(low.size, np.int64)
    shape = np.zeros((members.size, 2), np.int64)
    size = 0
    for row in range(ptr.size - 1):
        begin, end = ptr[row], ptr[row + 1]
        if not reshaped(shape, size, members[begin:end], lattice):
            continue
        size = end - begin
        if size <= 16:
            for i in range(size):
                for j in range(i):
                    widen(shape[j, 0] - shape[i, 0], shape[j, 1] - shape[i, 1], low, high)
            continue
        bottom[:] = 2**62
        top[:] = -(2**62)
        for i in range(begin, end):
            at = lattice[members[i], 0] - left
            bottom[at] = min(bottom[at], lattice[members[i], 1])
            top[at] = max(top[at], lattice[members[i], 1])
        own = np.flatnonzero(top > -(2**62))
        if own.size * own.size > 64 * (end - begin):
            return False
        for i in range(own.size):
            for j in range(i, own.size):
                a, b = own[i], own[j]
                high[b - a] = max(high[b - a], top[b] - bottom[a])
                low[b - a] = min(low[b - a], bottom[b] - top[a])
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
def linked_images(
    linear: IntArray, order: IntArray, support: BoolArray, deltas: IntArray, table: IntArray, surrogate: IntArray
) -> BoolArray:
    """As linked_cells for cells of one state each: the surrogates that have another surrogate beside them."""
    linked = np.zeros(support.size, np.bool_)
    for cell in range(linear.size):
        state = order[cell]
        if support[state] and not linked[surrogate[state]]:
            other = another_beside(linear[cell], surrogate[state], linear, order, support, deltas, table, surrogate)
            if other >= 0:
                linked[surrogate[state]] = True
                linked[other] = True
    return linked


@kernel
def another_beside(
    index: int,
    image: int,
    linear: IntArray,
    order: IntArray,
    support: BoolArray,
    deltas: IntArray,
    table: IntArray,
    surrogate: IntArray,
) -> int:
    """The surrogate of the first possible state beside a cell that has another one than ``image``, or -1."""
    for k in range(deltas.size):
        for target in (index + deltas[k], index - deltas[k]):
            cell = cell_at(target, linear, table)
            if cell >= 0 and support[order[cell]] and surrogate[order[cell]] != image:
                return int(surrogate[order[cell]])
    return -1


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
