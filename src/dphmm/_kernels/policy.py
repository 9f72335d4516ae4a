"""Loops over graphs, as cliques, as lists of pairs and as cells of a lattice that some vectors join.

What fits together, contracted cliques, components, degrees with a cap; states by where they lie, pairs a vector apart.

And loops over the masses of a prior, for delta-sets: their sum, the large ones among them, the heaviest states.

Proofs: docs/proofs/hull.md, docs/proofs/delta-sets.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import BoolArray, FloatArray, IntArray


@kernel
def cell_at(target: int, linear: IntArray, table: IntArray) -> int:
    """The number of the cell with a linear index, or -1: from the dense table, or by bisection where there is none."""
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
def within_extent(points: IntArray, active: BoolArray, offsets: IntArray) -> BoolArray:
    """Which offsets (m, d) are on no axis longer than the active ones of the points (n, d) extend; none without any."""
    near = np.full(offsets.shape[0], active.any())
    for j in range(offsets.shape[1]):
        least, most = 2**62, -(2**62)
        for i in range(points.shape[0]):
            if active[i]:
                least, most = min(least, points[i, j]), max(most, points[i, j])
        for k in range(offsets.shape[0]):
            near[k] &= abs(offsets[k, j]) <= most - least
    return near


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
    linear: IntArray,
    cell_of: IntArray,
    order: IntArray,
    deltas: IntArray,
    table: IntArray,
    support: BoolArray,
    surrogate: IntArray,
    plan_states: IntArray,
) -> BoolArray:
    """As linked_cells for cells of one state each: the plan states that have another surrogate beside one of theirs.

    Most have one beside themselves; only where some have none all states are asked what is beside them.
    """
    linked = np.zeros(support.size, np.bool_)
    steps = np.concatenate((deltas, -deltas))
    found = 0
    asked = plan_states
    for _ in range(2):
        for state in asked:
            image = surrogate[state]
            if not support[state] or linked[image]:
                continue
            for step in steps:
                cell = cell_at(linear[cell_of[state]] + step, linear, table)
                if cell < 0 or not support[order[cell]]:
                    continue
                other = surrogate[order[cell]]
                if other != image:
                    found += 1 if linked[other] else 2
                    linked[image] = linked[other] = True
                    break
        if found == plan_states.size:
            break
        asked = np.arange(support.size)
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
def planned(support: BoolArray, plan: BoolArray) -> tuple[IntArray, bool, int]:
    """The numbers of the plan states, whether other states are possible, and the first impossible plan state or -1."""
    states = np.empty(plan.size, np.int64)
    count = 0
    others = False
    impossible = -1
    for state in range(plan.size):
        if plan[state]:
            states[count] = state
            count += 1
            if impossible < 0 and not support[state]:
                impossible = state
        elif support[state]:
            others = True
    return states[:count].copy(), others, impossible


@kernel
def misplaced(support: BoolArray, plan: BoolArray, surrogate: IntArray) -> str:
    """What keeps a surrogate map from fitting support and plan set; "" where it does."""
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
def unmarked(states: IntArray, mask: BoolArray) -> IntArray:
    """Those of the states (m,) that a mask (N,) leaves out."""
    out = np.empty(states.size, np.int64)
    size = 0
    for state in states:
        if not mask[state]:
            out[size] = state
            size += 1
    return out[:size].copy()


@kernel
def in_one_row(ptr: IntArray, rows: IntArray, a: IntArray, b: IntArray) -> BoolArray:
    """Which pairs of states a, b (m,) share a row; state s is in the ascending rows[ptr[s]:ptr[s + 1]]."""
    out = np.zeros(a.size, np.bool_)
    for k in range(a.size):
        i, j = ptr[a[k]], ptr[b[k]]
        while i < ptr[a[k] + 1] and j < ptr[b[k] + 1] and not out[k]:
            out[k] = rows[i] == rows[j]
            if rows[i] < rows[j]:
                i += 1
            else:
                j += 1
    return out


@kernel
def runs_of_rows(ptr: IntArray, members: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Rows of states as rows of runs of successive states: where the runs of each row begin, and their two ends."""
    run_ptr = np.zeros(ptr.size, np.int64)
    first = np.empty(members.size, np.int64)
    last = np.empty(members.size, np.int64)
    size = 0
    for row in range(ptr.size - 1):
        for k in range(ptr[row], ptr[row + 1]):
            if k == ptr[row] or members[k] != members[k - 1] + 1:
                first[size] = members[k]
                size += 1
            last[size - 1] = members[k]
        run_ptr[row + 1] = size
    return run_ptr, first[:size].copy(), last[:size].copy()


@kernel
def contract_cliques(
    ptr: IntArray, first: IntArray, last: IntArray, longest: int, support: BoolArray, surrogate: IntArray
) -> tuple[IntArray, IntArray]:
    """Cliques, as rows of runs, after contraction: the distinct surrogates of each one's possible members.

    Only of two and more, and not of those that have what the one before them has. ``longest``: members of all rows.
    """
    image = np.empty(support.size, np.int64)
    # The last state up to which all have the same image.
    same = np.empty(support.size, np.int64)
    for state in range(support.size - 1, -1, -1):
        image[state] = surrogate[state] if support[state] else -1
        alike = state + 1 < support.size and image[state] == image[state + 1]
        same[state] = same[state + 1] if alike else state
    stamp = np.full(support.size, -1, np.int64)
    kept_ptr = np.zeros(ptr.size, np.int64)
    members = np.empty(longest, np.int64)
    kept, before, end = 0, 0, 0
    for row in range(ptr.size - 1):
        begin = end
        latest = -1
        for k in range(ptr[row], ptr[row + 1]):
            state = first[k]
            while state <= last[k]:
                if image[state] != latest:
                    latest = image[state]
                    if latest >= 0 and stamp[latest] != row:
                        stamp[latest] = row
                        members[end] = latest
                        end += 1
                state = same[state] + 1
        if end - begin < 2 or repeated(members, before, begin, end):
            end = begin
        else:
            before = begin
            kept += 1
            kept_ptr[kept] = end
    return kept_ptr[: kept + 1].copy(), members[:end].copy()


@kernel
def repeated(members: IntArray, before: int, begin: int, end: int) -> bool:
    """Whether members[begin:end] are members[before:begin]."""
    k = 0
    while k < end - begin and members[before + k] == members[begin + k]:
        k += 1
    return begin - before == end - begin == k


@kernel
def marked(members: IntArray, n_states: int) -> BoolArray:
    """The mask (n_states,) of some states."""
    mask = np.zeros(n_states, np.bool_)
    for member in members:
        mask[member] = True
    return mask


@kernel
def outside_rows(states: IntArray, members: IntArray, n_states: int) -> IntArray:
    """Those of the states (m,) that are no members."""
    return unmarked(states, marked(members, n_states))


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
def capped_degrees(first: IntArray, second: IntArray, order: IntArray, cap: int, degrees: IntArray) -> None:
    """Add to ``degrees`` (n,): edge by edge in ``order``, an edge counts if neither end has ``cap`` edges yet."""
    for at in order:
        a, b = first[at], second[at]
        if degrees[a] < cap and degrees[b] < cap:
            degrees[a] += 1
            degrees[b] += 1


@kernel
def total_mass(masses: FloatArray, within: BoolArray) -> tuple[float, int]:
    """The sum of the masses (N,) of the states ``within``, NaN where one is negative, and how many states they are."""
    total = 0.0
    count = 0
    for state in range(masses.size):
        if within[state]:
            total += masses[state] if masses[state] >= 0.0 else np.nan
            count += 1
    return total, count


@kernel
def least_of_fewest(
    masses: FloatArray, within: BoolArray, large: float, enough: float, drift: float
) -> tuple[float, int]:
    """As `holding`, of the masses (N,) of the states ``within``; those below ``large`` are not among them."""
    candidates = np.empty(masses.size)
    size = 0
    for state in range(masses.size):
        if within[state] and masses[state] >= large:
            candidates[size] = masses[state]
            size += 1
    return holding(candidates[:size], enough, drift)


#: Halving as good pivots do, a million masses need some twenty.
MOST_PIVOTS = 48


@kernel
def holding(masses: FloatArray, enough: float, drift: float) -> tuple[float, int]:
    """The least of the fewest masses (n,) that hold ``enough`` together, and how many they are. Reorders the masses.

    (0.0, 0) where a sum that decides comes as near to it as ``drift``, all of them do not hold it, or pivots were bad:
    they are then to be sorted.
    """
    first, last = 0, masses.size
    held = 0.0
    for _ in range(MOST_PIVOTS):
        if first >= last:
            break
        quarter = (last - first) // 4
        pivot = middle_of(masses[first + quarter], masses[(first + last) // 2], masses[last - 1 - quarter])
        larger, smaller, more = split(masses, first, last, pivot)
        if held + more >= enough + drift:
            last = larger
            continue
        held += more
        count = larger
        while held < enough - drift and count < smaller:
            held += pivot
            count += 1
        if held >= enough - drift:
            return (pivot, count) if count > larger and held >= enough + drift else (0.0, 0)
        first = smaller
    return 0.0, 0


@kernel
def middle_of(a: float, b: float, c: float) -> float:
    """The middle one of three numbers."""
    return max(min(a, b), min(max(a, b), c))


@kernel
def split(masses: FloatArray, first: int, last: int, pivot: float) -> tuple[int, int, float]:
    """Reorder masses[first:last] into those larger than the pivot, equal ones, smaller ones.

    Returns where the equal and where the smaller ones begin, and the sum of the larger ones.
    """
    larger, at, smaller = first, first, last
    more = 0.0
    while at < smaller:
        mass = masses[at]
        if mass > pivot:
            masses[at], masses[larger] = masses[larger], mass
            more += mass
            larger += 1
            at += 1
        elif mass < pivot:
            smaller -= 1
            masses[at], masses[smaller] = masses[smaller], mass
        else:
            at += 1
    return larger, smaller, more


@kernel
def heaviest(masses: FloatArray, within: BoolArray, least: float, count: int, tolerance: float) -> BoolArray:
    """So many of the states ``within`` (N,): those above ``least``, then those equal to it, by lowest number.

    Masses within the relative tolerance are equal.
    """
    out = np.zeros(masses.size, np.bool_)
    above, equal = least * (1 + tolerance), least * (1 - tolerance)
    missing = count
    for state in range(masses.size):
        if within[state] and masses[state] > above:
            out[state] = True
            missing -= 1
    for state in range(masses.size):
        if missing <= 0:
            break
        if within[state] and not out[state] and masses[state] >= equal:
            out[state] = True
            missing -= 1
    return out
