"""Loops that find the few differences of a planar policy which others cannot exceed: the ends of each column.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import BoolArray, IntArray


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
