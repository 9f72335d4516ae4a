"""Bounds of policy leakage: couplings of rows of a transition matrix, and pairs by way of a third state.

The loss between two states by later or earlier steps is the largest log (q·x / d·x) over x > 0 with log x_k - log x_l
<= D[k, l], q and d their two rows. A coupling that carries q onto d over limits of at most r bounds it by r. Equal
pairs of rows are bounded once. `next_pairs` and `by_way_of` say which pairs of states are needed, and bound a pair by
way of a third state.

Proofs: docs/proofs/policy-leakage.md, docs/proofs/couplings.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel


@kernel
def next_pairs(
    indptr: Any,
    columns: Any,
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    level: NDArray[np.int32],
    number: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The pairs of states that rows first[p], second[p] have between them and ``level`` has not; they are entered."""
    n = len(level)
    size = 1024
    found_i, found_j = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    count = 0
    seen = np.full(n, -1, dtype=np.int64)
    used = np.empty(n, dtype=np.int64)
    for p in range(len(first)):
        together = 0
        for row in (first[p], second[p]):
            for k in range(indptr[row], indptr[row + 1]):
                if seen[columns[k]] != p:
                    seen[columns[k]] = p
                    used[together] = columns[k]
                    together += 1
        for k in range(together):
            for m in range(k):
                i, j = used[k], used[m]
                if level[i, j] <= number:
                    continue
                level[i, j] = level[j, i] = number
                if count == size:
                    size *= 2
                    larger_i, larger_j = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
                    larger_i[:count] = found_i
                    larger_j[:count] = found_j
                    found_i, found_j = larger_i, larger_j
                found_i[count], found_j[count] = i, j
                count += 1
    return found_i[:count], found_j[:count]


@kernel
def by_way_of(
    known: NDArray[np.float64],
    near_start: NDArray[np.int64],
    near: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    otherwise: float,
) -> NDArray[np.float64]:
    """The least known[i, m] + known[m, j], m near i, for pairs (first[p], second[p]); at most ``otherwise``."""
    bounds = np.full(len(first), otherwise)
    for p in range(len(first)):
        i, j = first[p], second[p]
        least = math.inf
        for k in range(near_start[i], near_start[i + 1]):
            least = min(least, known[i, near[k]] + known[near[k], j])
        bounds[p] = min(otherwise, least)
    return bounds


#: Rows that can be carried onto each other but for rounding are: room is larger by this factor, in logs, and paid for.
ROOM = 2.0**-34


@kernel
def bottleneck(log_q: NDArray[np.float64], log_d: NDArray[np.float64], limits: NDArray[np.float64]) -> Any:
    """The least r such that q can be carried onto d over limits of at most r: a bound on the largest log (q·x / d·x).

    Rounding, which every push leaves relative to what a state has or takes, is added.
    """
    n = len(log_q)
    reached, pushes = least(np.exp(log_q), np.exp(log_d + ROOM), limits, 0.0)
    return reached + ROOM + pushes * 2.0**-50 + (n + 64) * 2.0**-46


@kernel
def fewest(q: NDArray[np.float64], d: NDArray[np.float64], limits: NDArray[np.float64]) -> Any:
    """The least r such that q can be carried onto d, and d onto q, over limits of at most r, with `ROOM` for rounding.

    Nothing is left over, however little it is.
    """
    larger = math.exp(ROOM)
    there, _ = least(q.copy(), d * larger, limits, 0.0)
    back, _ = least(d.copy(), q * larger, limits.T.copy(), 0.0)
    return max(there, back)


@kernel
def least(
    supply: NDArray[np.float64], room: NDArray[np.float64], limits: NDArray[np.float64], left_over: float
) -> tuple[float, int]:
    """The least limit within which all but ``left_over`` of the supply finds room; the largest where none does.

    Also how often something was pushed.
    """
    n = len(supply)
    flow = np.zeros((n, n))
    before = np.empty(2 * n, dtype=np.int64)
    queue = np.empty(2 * n, dtype=np.int64)
    reached, pushes = 0.0, 0
    for threshold in np.unique(limits):
        reached = threshold
        while supply.sum() > left_over:
            end = augmenting(supply, room, flow, limits, threshold, before, queue)
            if end < 0:
                break
            push(supply, room, flow, before, end)
            pushes += 1
        if supply.sum() <= left_over:
            break
    return reached, pushes


@kernel
def augmenting(
    supply: NDArray[np.float64],
    room: NDArray[np.float64],
    flow: NDArray[np.float64],
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
    supply: NDArray[np.float64],
    room: NDArray[np.float64],
    flow: NDArray[np.float64],
    before: NDArray[np.int64],
    end: int,
) -> None:
    """Send as much as goes along the way found."""
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


#: Results are rounded up to multiples of this: programs that differ by rounding alone become equal.
STEP = 2.0**-32


@kernel
def gather(
    indptr: Any,
    columns: Any,
    logs: NDArray[np.float64],
    limits: NDArray[np.float64],
    i: int,
    j: int,
    place: NDArray[np.int64],
    used: NDArray[np.int64],
    out: NDArray[np.float64],
) -> int:
    """Write the program of rows i and j to ``out``: log q, log d, and the limits row by row.

    Returns how many states it has. ``place``: -1 everywhere; ``used``: room for the states.
    """
    count = 0
    for row in (i, j):
        for k in range(indptr[row], indptr[row + 1]):
            if place[columns[k]] < 0:
                place[columns[k]] = count
                used[count] = columns[k]
                count += 1
    out[: 2 * count] = -math.inf
    for k in range(indptr[i], indptr[i + 1]):
        out[place[columns[k]]] = logs[k]
    for k in range(indptr[j], indptr[j + 1]):
        out[count + place[columns[k]]] = logs[k]
    for k in range(count):
        for m in range(count):
            out[(2 + k) * count + m] = limits[used[k], used[m]]
    for k in range(count):
        place[used[k]] = -1
    return count


@kernel
def shorten(limits: NDArray[np.float64]) -> None:
    """Lower every limit to that of the shortest way round, which x obeys all the same."""
    n = len(limits)
    for by in range(n):
        for k in range(n):
            for m in range(n):
                limits[k, m] = min(limits[k, m], limits[k, by] + limits[by, m])


@kernel
def digest(words: NDArray[np.uint64]) -> np.uint64:
    """FNV-1a over whole words, stirred: it finds programs again, equality is tested on all of them."""
    state = np.uint64(14695981039346656037)
    for word in words:
        state = (state ^ word) * np.uint64(1099511628211)
        state ^= state >> np.uint64(29)
    return state


@kernel
def onward(
    indptr: Any,
    columns: Any,
    logs: NDArray[np.float64],
    limits: NDArray[np.float64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    metric: bool,
    result: NDArray[np.float64],
) -> int:
    """Fill ``result[i, j]``, a bound on log (M_i·x / M_j·x), for pairs of rows i = first[p], j = second[p].

    Results are in multiples of STEP. Equal pairs of rows with equal limits are bounded once. ``metric``: the limits
    obey the triangle inequality already. Returns how many couplings were looked for.
    """
    widest = 0
    for row in range(len(indptr) - 1):
        widest = max(widest, int(indptr[row + 1] - indptr[row]))
    widest = min(2 * widest, len(limits))
    place, used = np.full(len(limits), -1, dtype=np.int64), np.empty(widest, dtype=np.int64)
    program, other = np.empty((widest + 2) * widest), np.empty((widest + 2) * widest)
    slots = 1024
    while slots < 2 * len(first):
        slots *= 2
    table = np.full(slots, -1, dtype=np.int64)
    solved = 0
    for p in range(len(first)):
        count = gather(indptr, columns, logs, limits, first[p], second[p], place, used, program)
        size = (count + 2) * count
        slot = np.int64(digest(program[:size].view(np.uint64)) & np.uint64(slots - 1))
        while table[slot] >= 0:
            known = table[slot]
            same = count == gather(indptr, columns, logs, limits, first[known], second[known], place, used, other)
            if same and np.array_equal(program[:size], other[:size]):
                break
            slot = (slot + 1) & (slots - 1)
        if table[slot] >= 0:
            result[first[p], second[p]] = result[first[table[slot]], second[table[slot]]]
            continue
        table[slot] = p
        solved += 1
        log_q, log_d = program[:count], program[count : 2 * count]
        costs = program[2 * count : size].reshape(count, count)
        if not metric:
            shorten(costs)
        bound = bottleneck(log_q, log_d, costs)
        result[first[p], second[p]] = math.ceil(bound / STEP) * STEP
    return solved
