"""Small programs: the largest log (q·x / d·x) over x > 0 with log x_k - log x_l <= D[k, l], solved on trees.

At a corner x is given by a spanning tree of tight limits. With u = log x the shares a_k = q_k x_k / q·x and
b_k = d_k x_k / d·x are two distributions, and the corner is the best one if a can be carried onto b along the tree,
from high ends to low ends only. Where it cannot, the part of the tree behind that limit is moved until another limit is
tight: the quotient grows all the while. What cannot be carried in the end, by rounding or for want of time, is carried
straight to one state, at its price: so every answer is an upper bound, however the search went.

A corner is that of {u : u_k - u_l <= limits[k, l]}. Of its tree ``parent`` (n,) is -1 at the root, and ``up`` (n,) says
whether a state is as high above its parent as the limits allow, or as far below it.

Proof: docs/proofs/policy-leakage.md.
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
