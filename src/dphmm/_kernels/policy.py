"""Loops over graphs, as cliques, as lists of pairs and as cells of a lattice that some vectors join.

Checks that parts fit, contracted cliques, components, degrees with a cap; states by place, pairs a vector apart.

And loops over the masses of a prior, for delta-sets: their sum, the large ones among them, the heaviest states; and
those that find the few differences of a planar policy which others cannot exceed: the ends of each column.

Proofs: docs/proofs/hull.md, docs/proofs/delta-sets.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.points import bounds, column_ends
from dphmm.types import BoolArray, FloatArray, IntArray

#: One column per possible x difference: at most this many per state, and so many more.
COLUMNS_PER_STATE = 4
COLUMNS = 2**12
#: Below this span y differences and their negatives stay far from the marks of an empty column.
HEIGHT = 2**40
EMPTY = 2**62


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
    """True if two arrays of points differ by one constant vector."""
    for j in range(points.shape[1]):
        shift = others[0, j] - points[0, j]
        for i in range(points.shape[0]):
            if others[i, j] - points[i, j] != shift:
                return False
    return True


@kernel
def within_extent(points: IntArray, active: BoolArray, offsets: IntArray) -> BoolArray:
    """True where an offset (m, d) exceeds the extent of the active points (n, d) on no axis; False without any."""
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
    """True where an offset joins two active cells."""
    joined = np.zeros(deltas.size, np.bool_)
    for k in range(deltas.size):
        for cell in range(linear.size):
            if active[cell]:
                other = cell_at(linear[cell] + deltas[k], linear, table)
                if other >= 0 and active[other]:
                    joined[k] = True
                    break
    return joined


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
    count = 0
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
                    count += 1 if linked[other] else 2
                    linked[image] = linked[other] = True
                    break
        if count == plan_states.size:
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
    """The numbers of the plan states, True if other states are possible, and the first impossible plan state or -1."""
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
    """The reason why a surrogate map does not fit support and plan set; "" where it does."""
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
def in_one_row(ptr: IntArray, rows: IntArray, a: IntArray, b: IntArray) -> BoolArray:
    """True where a pair of states a, b (m,) shares a row; state s is in the ascending rows[ptr[s]:ptr[s + 1]]."""
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
    rows, before, end = 0, 0, 0
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
            rows += 1
            kept_ptr[rows] = end
    return kept_ptr[: rows + 1].copy(), members[:end].copy()


@kernel
def repeated(members: IntArray, before: int, begin: int, end: int) -> bool:
    """True if members[begin:end] are members[before:begin]."""
    k = 0
    while k < end - begin and members[before + k] == members[begin + k]:
        k += 1
    return begin - before == end - begin == k


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
    """The sum of the masses (N,) of the states ``within``, NaN where one is negative, and the states' number."""
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
    """The least of the fewest masses (n,) that hold ``enough`` together, and their number. Reorders the masses.

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


@kernel
def columns_within(
    lattice: IntArray, states: IntArray, least: IntArray, largest: IntArray
) -> tuple[int, IntArray, IntArray]:
    """The least x of the answers (N, 2) of some states, and columns for their differences: the least y and the largest.

    ``least`` and ``largest`` (2,) bound all answers. One column for each x >= 0, with EMPTY and -EMPTY. No columns
    where those of all answers would be too many or too high: which way a hull is found does not depend on the states.
    """
    too_many = largest[0] - least[0] >= COLUMNS_PER_STATE * lattice.shape[0] + COLUMNS
    if too_many or largest[1] - least[1] >= HEIGHT:
        return 0, np.empty(0, np.int64), np.empty(0, np.int64)
    left, right = largest[0], least[0]
    for state in states:
        left, right = min(left, lattice[state, 0]), max(right, lattice[state, 0])
    right = max(left, right)
    return left, np.full(right - left + 1, EMPTY), np.full(right - left + 1, -EMPTY)


@kernel
def differences_of_cliques(
    ptr: IntArray, members: IntArray, lattice: IntArray, plan_states: IntArray
) -> tuple[bool, IntArray]:
    """Few differences (m, 2) with the hull of all between members of a row; False where columns are too many."""
    left, low, high = columns_within(lattice, plan_states, *bounds(lattice))
    fits = low.size > 0 and widen_by_cliques(ptr, members, lattice, left, low, high)
    return fits, column_ends(low, high, 0)


@kernel
def differences_within(
    linear: IntArray,
    order: IntArray,
    bands: IntArray,
    support: BoolArray,
    surrogate: IntArray,
    plan_states: IntArray,
    lattice: IntArray,
    least: IntArray,
    largest: IntArray,
) -> tuple[bool, IntArray]:
    """Few differences (m, 2) with the hull of all between surrogates of cells (of one state each) a step apart.

    False where columns are too many. A step is in one of the ``bands``, as for `widen_by_segments`. ``least`` and
    ``largest`` (2,) bound the answers.
    """
    _, low, high = columns_within(lattice, plan_states, least, largest)
    if low.size > 0:
        first, last, image = segments(linear, order, support, surrogate)
        widen_by_segments(first, last, image, bands, lattice, low, high)
    return low.size > 0, column_ends(low, high, 0)


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
    following, latest = -1, -1
    for cell in range(linear.size):
        state = order[cell]
        if not support[state]:
            continue
        if surrogate[state] != latest or linear[cell] != following:
            latest = surrogate[state]
            first[size] = linear[cell]
            image[size] = latest
            size += 1
        last[size - 1] = linear[cell]
        following = linear[cell] + 1
    return first[:size], last[:size], image[:size]


@kernel
def rising(x: IntArray, y: IntArray) -> IntArray:
    """The last point after each one up to which x stays the same and y does not fall."""
    end = np.arange(x.size)
    for k in range(x.size - 2, -1, -1):
        if x[k + 1] == x[k] and y[k + 1] >= y[k]:
            end[k] = end[k + 1]
    return end


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
    Of the segments in it whose images rise in one column the first and the last have the extreme differences.
    """
    x, y = lattice[:, 0][image], lattice[:, 1][image]
    top = rising(x, y)
    middle = low.size - 1
    least = np.full(2 * low.size - 1, EMPTY)
    most = np.full(2 * low.size - 1, -EMPTY)
    for k in range(bands.shape[0]):
        reached, beyond = 0, 0
        for here in range(first.size):
            nearest, farthest = first[here] + bands[k, 0], last[here] + bands[k, 1]
            while reached < first.size and last[reached] < nearest:
                reached += 1
            while beyond < first.size and first[beyond] <= farthest:
                beyond += 1
            left, level = x[here] - middle, y[here]
            there = reached
            while there < beyond:
                highest = min(top[there], beyond - 1)
                at = x[there] - left
                # Rarely anything is stored.
                if y[there] - level < least[at]:
                    least[at] = y[there] - level
                if y[highest] - level > most[at]:
                    most[at] = y[highest] - level
                there = highest + 1
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
def numbered_places(lattice: IntArray) -> IntArray:
    """A number for each of the points (N, 2): two points are as far apart as two others iff their numbers are.

    None where 64 bits may not hold them.
    """
    least, largest = bounds(lattice)
    step = 2 * (largest[1] - least[1]) + 1
    if float(largest[0] - least[0] + 1) * float(step) >= 2.0**62:
        return np.empty(0, np.int64)
    places = np.empty(lattice.shape[0], np.int64)
    for state in range(lattice.shape[0]):
        places[state] = (lattice[state, 0] - least[0]) * step + lattice[state, 1] - least[1]
    return places


@kernel
def widen_by_cliques(
    ptr: IntArray, members: IntArray, lattice: IntArray, left: int, low: IntArray, high: IntArray
) -> bool:
    """Widen the columns by the differences within every row.

    False where a row has too many columns of its own, or answers lie too far apart.

    A row that is the one before it, state by state, moved by one vector, has the same differences.
    """
    bottom = np.empty(low.size, np.int64)
    top = np.empty(low.size, np.int64)
    longest = 0
    for row in range(ptr.size - 1):
        longest = max(longest, ptr[row + 1] - ptr[row])
    shape = np.zeros(longest, np.int64)
    size = 0
    places = numbered_places(lattice)
    if places.size < lattice.shape[0]:
        return False
    for row in range(ptr.size - 1):
        begin, end = ptr[row], ptr[row + 1]
        same = end - begin == size
        if same:
            for i in range(size):
                same &= places[members[begin + i]] - places[members[begin]] == shape[i]
        if same:
            continue
        size = end - begin
        for i in range(size):
            shape[i] = places[members[begin + i]] - places[members[begin]]
        if size <= 16:
            for i in range(begin, end):
                for j in range(begin, i):
                    a, b = members[i], members[j]
                    widen(lattice[b, 0] - lattice[a, 0], lattice[b, 1] - lattice[a, 1], low, high)
            continue
        bottom[:] = EMPTY
        top[:] = -EMPTY
        for i in range(begin, end):
            at = lattice[members[i], 0] - left
            bottom[at] = min(bottom[at], lattice[members[i], 1])
            top[at] = max(top[at], lattice[members[i], 1])
        columns = np.flatnonzero(top > -EMPTY)
        if columns.size * columns.size > 64 * (end - begin):
            return False
        for i in range(columns.size):
            for j in range(i, columns.size):
                a, b = columns[i], columns[j]
                high[b - a] = max(high[b - a], top[b] - bottom[a])
                low[b - a] = min(low[b - a], bottom[b] - top[a])
    return True
