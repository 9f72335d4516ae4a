"""Loops that find the few differences of a planar policy which others cannot exceed: the ends of each column.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.points import bounds, column_ends
from dphmm.types import BoolArray, IntArray

#: One column per possible x difference: at most this many per state, and so many more.
COLUMNS_PER_STATE = 4
COLUMNS = 2**12
#: Below this span y differences and their negatives stay far from the marks of an empty column.
HEIGHT = 2**40
EMPTY = 2**62


@kernel
def empty_columns(lattice: IntArray, states: IntArray) -> tuple[int, IntArray, IntArray]:
    """As `columns_within`, for answers whose bounds are not known."""
    least, largest = bounds(lattice)
    return columns_within(lattice, states, least, largest)


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
    left, low, high = empty_columns(lattice, plan_states)
    found = low.size > 0 and widen_by_cliques(ptr, members, lattice, left, low, high)
    return found, column_ends(low, high, 0)


@kernel
def differences_of_cells(
    linear: IntArray,
    order: IntArray,
    bands: IntArray,
    support: BoolArray,
    surrogate: IntArray,
    plan_states: IntArray,
    lattice: IntArray,
) -> tuple[bool, IntArray]:
    """As `differences_within`, for answers whose bounds are not known."""
    least, largest = bounds(lattice)
    return differences_within(linear, order, bands, support, surrogate, plan_states, lattice, least, largest)


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
    """For each point the last of those after it up to which x stays the same and y does not fall."""
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
        own = np.flatnonzero(top > -EMPTY)
        if own.size * own.size > 64 * (end - begin):
            return False
        for i in range(own.size):
            for j in range(i, own.size):
                a, b = own[i], own[j]
                high[b - a] = max(high[b - a], top[b] - bottom[a])
                low[b - a] = min(low[b - a], bottom[b] - top[a])
    return True
