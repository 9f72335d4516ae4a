"""Couplings of q and d: upper bounds on log (q·x / d·x) over x > 0 with log x_k - log x_l <= D[k, l].

Proofs: docs/proofs/policy-leakage.md, docs/proofs/couplings.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel


@kernel
def bottleneck(log_q: NDArray[np.float64], log_d: NDArray[np.float64], limits: NDArray[np.float64]) -> Any:
    """An upper bound on the same: the least r such that q can be carried onto d over limits of at most r.

    In integers, units of 2^-50. What q and d differ by through rounding is put where d is largest.
    """
    n = len(log_q)
    units = 2.0**50
    supply, room = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    top = 0
    for k in range(n):
        supply[k] = math.ceil(math.exp(log_q[k]) * units)
        room[k] = math.floor(math.exp(log_d[k]) * units)
        if log_d[k] > log_d[top]:
            top = k
    room[top] += max(0, supply.sum() - room.sum())
    added = room[top] / (math.exp(log_d[top]) * units)
    return least(supply, room, limits, 0) + max(0.0, math.log(added)) + (n + 64) * 2.0**-46


@kernel
def fewest(q: NDArray[np.float64], d: NDArray[np.float64], limits: NDArray[np.float64], left_over: float) -> Any:
    """The least r such that all but ``left_over`` of q can be carried onto d over limits of at most r.

    q and d are probabilities, counted in units of 2^-50.
    """
    n = len(q)
    units = 2.0**50
    supply, room = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    for k in range(n):
        supply[k] = math.floor(q[k] * units)
        room[k] = math.floor(d[k] * units)
    return least(supply, room, limits, math.floor(left_over * units))


@kernel
def least(supply: NDArray[np.int64], room: NDArray[np.int64], limits: NDArray[np.float64], left_over: int) -> Any:
    """The least limit within which all but ``left_over`` of the supply finds room; the largest where none does."""
    n = len(supply)
    flow = np.zeros((n, n), dtype=np.int64)
    left = supply.sum()
    before = np.empty(2 * n, dtype=np.int64)
    queue = np.empty(2 * n, dtype=np.int64)
    reached = 0.0
    for threshold in np.unique(limits):
        reached = threshold
        while left > left_over:
            end = augmenting(supply, room, flow, limits, threshold, before, queue)
            if end < 0:
                break
            left -= push(supply, room, flow, before, end)
        if left <= left_over:
            break
    return reached


@kernel
def augmenting(
    supply: NDArray[np.int64],
    room: NDArray[np.int64],
    flow: NDArray[np.int64],
    limits: NDArray[np.float64],
    threshold: float,
    before: NDArray[np.int64],
    queue: NDArray[np.int64],
) -> Any:
    """A column with room that a row with supply reaches, over limits within the threshold and back over flow; or -1.
    Rows are 0 .. n - 1, columns n .. 2n - 1; ``before``: where each was reached from.
    """
    n = len(supply)
    before[:] = -2
    head = tail = 0
    for k in range(n):
        if supply[k] > 0:
            before[k] = -1
            queue[tail] = k
            tail += 1
    while head < tail:
        at = queue[head]
        head += 1
        if at >= n and room[at - n] > 0:
            return at
        for k in range(n):
            to = n + k if at < n else k
            open_ = limits[at, k] <= threshold if at < n else flow[k, at - n] > 0
            if open_ and before[to] == -2:
                before[to] = at
                queue[tail] = to
                tail += 1
    return -1


@kernel
def push(
    supply: NDArray[np.int64], room: NDArray[np.int64], flow: NDArray[np.int64], before: NDArray[np.int64], end: int
) -> Any:
    """Send as much as goes along the way found; returns how much."""
    n = len(supply)
    amount, at = room[end - n], end
    while before[at] >= 0:
        if at < n:
            amount = min(amount, flow[at, before[at] - n])
        at = before[at]
    amount = min(amount, supply[at])
    supply[at] -= amount
    room[end - n] -= amount
    at = end
    while before[at] >= 0:
        if at >= n:
            flow[before[at], at - n] += amount
        else:
            flow[at, before[at] - n] -= amount
        at = before[at]
    return amount
