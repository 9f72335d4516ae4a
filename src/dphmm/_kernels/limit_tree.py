"""Spanning trees of tight limits: a corner of {u : u_k - u_l <= limits[k, l]}, and the way from one to the next.

``parent`` (n,) is -1 at the root, ``up`` (n,) says whether a state is as high above its parent as the limits allow, or
as far below it.

Proof: docs/proofs/policy-leakage.md.
"""

from __future__ import annotations

import math

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
