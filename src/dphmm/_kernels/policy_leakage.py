"""The programs of policy leakage: for pairs of rows of a transition matrix, solved where small and bounded where not.

A program is the largest log (q·x / d·x) over x > 0 with log x_k - log x_l <= D[k, l], q and d two rows. Equal programs
are solved once. A coupling of q and d bounds a large program from above. `next_pairs` and
`by_way_of` say which pairs of states are needed, and bound a pair by way of a third state.

A small program is solved on trees. At a corner x is given by a spanning tree of tight limits. With u = log x the shares
a_k = q_k x_k / q·x and b_k = d_k x_k / d·x are two distributions, and the corner is the best one if a can be carried
onto b along the tree, from high ends to low ends only. Where it cannot, the part of the tree behind that limit is moved
until another limit is tight: the quotient grows all the while. What cannot be carried in the end, by rounding or for
want of time, is carried straight to one state, at its price: so every answer is an upper bound, however the search
went. A corner is that of {u : u_k - u_l <= limits[k, l]}. Of its tree ``parent`` (n,) is -1 at the root, and ``up``
(n,) says whether a state is as high above its parent as the limits allow, or as far below it.

Proofs: docs/proofs/policy-leakage.md, docs/proofs/couplings.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel


@kernel
def start_tree(
    limits: NDArray[np.float64],
    log_q: NDArray[np.float64],
    log_d: NDArray[np.float64],
    u: NDArray[np.float64],
    parent: NDArray[np.int64],
    up: NDArray[np.bool_],
) -> None:
    """States of larger d as far below one state as the limits allow, the others as high above them as that leaves room.

    Within all limits if these obey the triangle inequality.
    """
    n = len(u)
    root, most = 0, -math.inf
    for k in range(n):
        more = math.exp(log_q[k]) - math.exp(log_d[k])
        if more > most:
            root, most = k, more
    parent[root] = -1
    u[root] = 0.0
    for k in range(n):
        if k != root and log_q[k] <= log_d[k]:
            u[k] = -limits[root, k]
            parent[k] = root
            up[k] = False
    for k in range(n):
        if k != root and log_q[k] > log_d[k]:
            u[k] = limits[k, root]
            parent[k] = root
            up[k] = True
            for m in range(n):
                if log_q[m] <= log_d[m] and limits[k, m] + u[m] < u[k]:
                    u[k] = limits[k, m] + u[m]
                    parent[k] = m


@kernel
def outward(parent: NDArray[np.int64], order: NDArray[np.int64]) -> None:
    """``order``: the states of a tree, parents before children."""
    n = len(parent)
    first = np.full(n, -1, dtype=np.int64)
    following = np.full(n, -1, dtype=np.int64)
    count = 0
    for k in range(n):
        if parent[k] < 0:
            order[0] = k
            count = 1
        else:
            following[k] = first[parent[k]]
            first[parent[k]] = k
    for place in range(n):
        if place >= count:
            break
        child = first[order[place]]
        while child >= 0:
            order[count] = child
            count += 1
            child = following[child]


@kernel
def hang(parent: NDArray[np.int64], up: NDArray[np.bool_], top: int) -> None:
    """Turn the tree that ``top`` is in, so that it hangs from ``top``."""
    child, above, rises = top, parent[top], up[top]
    parent[top] = -1
    while above >= 0:
        next_above, next_rises = parent[above], up[above]
        parent[above] = child
        up[above] = not rises
        child, above, rises = above, next_above, next_rises


@kernel
def move(
    limits: NDArray[np.float64],
    u: NDArray[np.float64],
    parent: NDArray[np.int64],
    up: NDArray[np.bool_],
    order: NDArray[np.int64],
    cut: int,
    part: NDArray[np.bool_],
) -> None:
    """Free the limit above ``cut``; move what is behind it (down, if it was high) until another limit is tight."""
    n = len(u)
    part[:] = False
    part[cut] = True
    for place in range(n):
        k = order[place]
        if parent[k] >= 0 and part[parent[k]]:
            part[k] = True
    falls = up[cut]
    inner, outer, least = -1, -1, math.inf
    for k in range(n):
        if not part[k]:
            continue
        for m in range(n):
            if part[m]:
                continue
            slack = limits[m, k] - (u[m] - u[k]) if falls else limits[k, m] - (u[k] - u[m])
            if slack < least:
                inner, outer, least = k, m, slack
    for k in range(n):
        if part[k]:
            u[k] += -least if falls else least
    # What is behind the cut hangs from `inner` from now on, and that from `outer`.
    parent[cut] = -1
    hang(parent, up, inner)
    parent[inner] = outer
    up[inner] = not falls


#: Limits are moved apart by up to this (relative to the largest) so that ties do not send the search round in circles.
APART = 2.0**-41
#: Shares below this many units per state count as carried.
SHARE = 2.0**-52
#: Moves per state before the search gives up.
MOST_MOVES = 60


@kernel
def shares(
    log_q: NDArray[np.float64],
    log_d: NDArray[np.float64],
    u: NDArray[np.float64],
    a: NDArray[np.float64],
    b: NDArray[np.float64],
) -> float:
    """Fill the two distributions; returns log (q·x / d·x)."""
    top_a = top_b = -math.inf
    for k in range(len(u)):
        top_a = max(top_a, log_q[k] + u[k])
        top_b = max(top_b, log_d[k] + u[k])
    sum_a = sum_b = 0.0
    for k in range(len(u)):
        a[k] = math.exp(log_q[k] + u[k] - top_a)
        b[k] = math.exp(log_d[k] + u[k] - top_b)
        sum_a += a[k]
        sum_b += b[k]
    for k in range(len(u)):
        a[k] /= sum_a
        b[k] /= sum_b
    return top_a - top_b + math.log(sum_a) - math.log(sum_b)


@kernel
def not_carried(
    a: NDArray[np.float64],
    b: NDArray[np.float64],
    parent: NDArray[np.int64],
    up: NDArray[np.bool_],
    order: NDArray[np.int64],
    below: NDArray[np.float64],
) -> tuple[int, float]:
    """The limit that is worst by what would have to cross it in the wrong direction.

    Returns its lower end in the tree and how much would cross, or (-1, 0) if none is. ``below``: what every state and
    those behind it have too much.
    """
    worst, most = -1, 0.0
    for k in range(len(a)):
        below[k] = a[k] - b[k]
    for place in range(len(a) - 1, 0, -1):
        k = order[place]
        wrong = -below[k] if up[k] else below[k]
        if wrong > most:
            worst, most = k, wrong
        below[parent[k]] += below[k]
    return worst, most


@kernel
def added(a: float, b: float) -> float:
    """log (e^a + e^b)."""
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


@kernel
def lessened(a: float, b: float) -> float:
    """log (e^a - e^b), a > b."""
    return a if b == -math.inf else a + math.log(-math.expm1(b - a))


@kernel
def log_shares(logs: NDArray[np.float64], u: NDArray[np.float64], found: NDArray[np.float64]) -> None:
    """The logs of the shares that a distribution has at u: where those are too small for floats, too."""
    top, total = -math.inf, 0.0
    for k in range(len(u)):
        found[k] = logs[k] + u[k]
        top = max(top, found[k])
    for k in range(len(u)):
        total += math.exp(found[k] - top)
    for k in range(len(u)):
        found[k] -= top + math.log(total)


@kernel
def surely_not_carried(
    more: NDArray[np.float64],
    less: NDArray[np.float64],
    parent: NDArray[np.int64],
    up: NDArray[np.bool_],
    order: NDArray[np.int64],
    margin: float,
) -> int:
    """The limit that is worst by what would have to cross it in the wrong direction, or -1, on logs of shares.

    Nothing is too small to count, but sums that differ by less than a factor e^margin, which rounding could do.
    """
    worst, most = -1, -math.inf
    for place in range(len(more) - 1, 0, -1):
        k = order[place]
        one, other = (less[k], more[k]) if up[k] else (more[k], less[k])
        if one > other + margin:
            wrong = lessened(one, other)
            if wrong > most:
                worst, most = k, wrong
        more[parent[k]] = added(more[parent[k]], more[k])
        less[parent[k]] = added(less[parent[k]], less[k])
    return worst


@kernel
def price(
    limits: NDArray[np.float64],
    u: NDArray[np.float64],
    more: NDArray[np.float64],
    less: NDArray[np.float64],
    parent: NDArray[np.int64],
    up: NDArray[np.bool_],
    order: NDArray[np.int64],
    margin: float,
) -> float:
    """By how much the log of the best quotient can exceed that of ``u``.

    The shares of ``u`` have the logs ``more`` (of q) and ``less`` (of d).

    What is not carried along the tree goes straight to the state of the largest share of d. All in logs, and with
    every share of d larger by e^margin, paid for in the end: no share is lost for being small, or by cancellation.
    """
    n = len(u)
    root = 0
    for k in range(n):
        if less[k] > less[root]:
            root = k
    hang(parent, up, root)
    outward(parent, order)
    room = less[root]
    for k in range(n):
        less[k] += margin
    extra = -math.inf
    for place in range(n - 1, 0, -1):
        k = order[place]
        above = parent[k]
        if more[k] > less[k]:
            surplus = lessened(more[k], less[k])
            if up[k]:
                more[above] = added(more[above], surplus + max(0.0, limits[k, above] - (u[k] - u[above])))
            else:
                extra = added(extra, surplus + max(0.0, limits[k, root] - (u[k] - u[root])))
        elif less[k] > more[k] and not up[k]:
            less[above] = added(
                less[above], lessened(less[k], more[k]) - max(0.0, limits[above, k] - (u[above] - u[k]))
            )
    if more[root] > less[root]:
        extra = added(extra, lessened(more[root], less[root]))
    return 2 * margin + added(0.0, extra + (n + 1) * margin - room)


@kernel
def largest_ratio(log_q: NDArray[np.float64], log_d: NDArray[np.float64], limits: NDArray[np.float64]) -> Any:
    """An upper bound on log (q·x / d·x), exact but for rounding. ``limits`` (n, n) finite, at least 0."""
    n = len(log_q)
    u = np.empty(n)
    parent = np.empty(n, dtype=np.int64)
    order = np.empty(n, dtype=np.int64)
    up = np.empty(n, dtype=np.bool_)
    part = np.empty(n, dtype=np.bool_)
    a, b, below = np.empty(n), np.empty(n), np.empty(n)

    apart, largest = np.empty((n, n)), 0.0
    for k in range(n):
        for m in range(n):
            largest = max(largest, limits[k, m])
    unit, state = APART * (1.0 + largest), 1
    for k in range(n):
        for m in range(n):
            state = (state * 48271) % 2147483647
            apart[k, m] = limits[k, m] + unit * (state / 2147483647)
    start_tree(apart, log_q, log_d, u, parent, up)

    bound, margin = math.inf, (largest + 4 * n + 64) * 2.0**-46
    for careful in (False, True):
        for _ in range(MOST_MOVES * n):
            outward(parent, order)
            if careful:
                log_shares(log_q, u, a)
                log_shares(log_d, u, b)
                cut = surely_not_carried(a, b, parent, up, order, margin)
            else:
                shares(log_q, log_d, u, a, b)
                cut, wrong = not_carried(a, b, parent, up, order, below)
                if wrong <= n * SHARE:
                    break
            if cut < 0:
                break
            move(apart, u, parent, up, order, cut, part)
        value = shares(log_q, log_d, u, a, b)
        log_shares(log_q, u, a)
        log_shares(log_d, u, b)
        excess = price(limits, u, a, b, parent, up, order, margin)
        bound = min(bound, value + excess)
        if excess <= 1e-9:
            break
        # A small share in the wrong place may be worth much far away: now none is too small.
    return min(max(bound, 0.0) + margin, largest)


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
    """For pairs (first[p], second[p]) the least known[i, m] + known[m, j], m near i; at most ``otherwise``."""
    bounds = np.full(len(first), otherwise)
    for p in range(len(first)):
        i, j = first[p], second[p]
        least = math.inf
        for k in range(near_start[i], near_start[i + 1]):
            least = min(least, known[i, near[k]] + known[near[k], j])
        bounds[p] = min(otherwise, least)
    return bounds


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
    """Every limit becomes that of the shortest way round, which x obeys all the same."""
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
    most: int,
    metric: bool,
    result: NDArray[np.float64],
) -> tuple[int, int]:
    """Fill ``result[i, j]``, the largest log (M_i·x / M_j·x), for pairs of rows i = first[p], j = second[p].

    Results are in multiples of STEP. Equal programs are solved once. ``metric``: the limits obey the triangle
    inequality already. Returns how many programs were solved, and how many pairs, of more than ``most`` states, have a
    coupling bound.
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
    solved = coupled = 0
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
        if count > most:
            coupled += 1
        if table[slot] >= 0:
            result[first[p], second[p]] = result[first[table[slot]], second[table[slot]]]
            continue
        table[slot] = p
        solved += 1
        log_q, log_d = program[:count], program[count : 2 * count]
        own = program[2 * count : size].reshape(count, count)
        if not metric:
            shorten(own)
        found = bottleneck(log_q, log_d, own) if count > most else largest_ratio(log_q, log_d, own)
        result[first[p], second[p]] = math.ceil(found / STEP) * STEP
    return solved, coupled
