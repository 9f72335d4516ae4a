"""Loops of the policy layer: what fits together, contracted cliques, components.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import BoolArray, IntArray


@kernel
def misplaced(support: BoolArray, plan: BoolArray, surrogate: IntArray) -> str:
    """What keeps support, plan set and surrogate map from fitting together; "" where they do."""
    for state in range(support.size):
        if plan[state] and not support[state]:
            return "impossible"
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
def contract_cliques(
    indptr: IntArray, indices: IntArray, support: BoolArray, surrogate: IntArray
) -> tuple[IntArray, IntArray]:
    """Cliques after contraction: the distinct surrogates of each clique's supported members, twos and
    more."""
    stamp = np.full(support.size, -1, np.int64)
    ptr = np.zeros(indptr.size, np.int64)
    members = np.empty(indices.size, np.int64)
    kept = 0
    end = 0
    for row in range(indptr.size - 1):
        begin = end
        if all_one(indices, indptr[row], indptr[row + 1], surrogate):
            continue
        for k in range(indptr[row], indptr[row + 1]):
            if support[indices[k]]:
                image = surrogate[indices[k]]
                if stamp[image] != row:
                    stamp[image] = row
                    members[end] = image
                    end += 1
        if end - begin >= 2:
            kept += 1
            ptr[kept] = end
        else:
            end = begin
    return ptr[: kept + 1].copy(), members[:end].copy()


@kernel
def all_one(indices: IntArray, first: int, last: int, surrogate: IntArray) -> bool:
    """Whether the states indices[first:last] have one surrogate, or there are none."""
    k = first + 1
    while k < last and surrogate[indices[k]] == surrogate[indices[first]]:
        k += 1
    return k >= last


@kernel
def marked(members: IntArray, n_states: int) -> BoolArray:
    """The mask (n_states,) of some states."""
    mask = np.zeros(n_states, np.bool_)
    for member in members:
        mask[member] = True
    return mask


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
