"""Loops over neighbouring cells of a lattice: states by where they lie, pairs a vector apart, who is linked.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm._kernels.policy import join
from dphmm.types import BoolArray, IntArray


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
