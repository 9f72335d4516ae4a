"""Policies given edge by edge, and the questions of a policy answered from a list of edges.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.errors import InvalidInput
from dphmm.policy._cliques import array_hash
from dphmm.policy._points import hull_points
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph, count_of_states, projected, read_only, registered, sorted_edges
from dphmm.types import BoolArray, IntArray

Ends = tuple[IntArray, IntArray]


class Listed(PolicyGraph):
    """A policy that keeps its edges: ``listed`` (m, 2), i < j, sorted, distinct."""

    listed: IntArray

    def _extreme(self, direction: NDArray[Any], lattice: IntArray, within: Constraint) -> tuple[int, IntArray]:
        a, b = self._ends(within)
        if len(a) == 0:
            return 0, np.zeros(lattice.shape[1], dtype=np.int64)
        values = projected(direction, lattice)
        rises = values[b] - values[a]
        k = int(np.argmax(np.abs(rises)))
        difference = lattice[b[k]] - lattice[a[k]]
        return abs(int(rises[k])), difference if rises[k] >= 0 else -difference

    def _has_neighbor(self, within: Constraint) -> BoolArray:
        mask = np.zeros(self.n_states, dtype=np.bool_)
        for ends in self._ends(within):
            mask[ends] = True
        return mask

    def _join(self, parent: IntArray, within: Constraint) -> None:
        _kernels.policy.join_pairs(parent, *self._ends(within))

    def _edges(self, within: Constraint) -> IntArray:
        return sorted_edges(*self._ends(within))

    def _around(self, states: IntArray) -> IntArray:
        chosen = np.zeros(self.n_states, dtype=np.bool_)
        chosen[states] = True
        a, b = self.listed.T
        return np.unique(np.concatenate([b[chosen[a]], a[chosen[b]]]))

    def _joins(self, a: IntArray, b: IntArray) -> BoolArray:
        keys = np.minimum(a, b) * self.n_states + np.maximum(a, b)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.asarray(self._keys[at] == keys) if len(self._keys) else np.zeros(len(keys), dtype=np.bool_)

    @cached_property
    def _keys(self) -> IntArray:
        """The edges as ascending numbers."""
        return self.listed[:, 0] * self.n_states + self.listed[:, 1]

    def _spanning(self, lattice: IntArray, within: Constraint) -> IntArray:
        a, b = self._ends(within)
        return hull_points(lattice[b] - lattice[a])

    def _few(self, lattice: IntArray, within: Constraint) -> IntArray | None:
        return self._spanning(lattice, within) if lattice.shape[1] <= 2 else None

    def _ends(self, within: Constraint) -> Ends:
        """The contracted edges, unsorted and with repetitions."""
        return self._remember(within, "ends", self._contracted)

    def _contracted(self, within: Constraint) -> Ends:
        a, b = self.listed.T
        inside = within.support[a] & within.support[b]
        a, b = within.surrogate[a[inside]], within.surrogate[b[inside]]
        apart = a != b
        return a[apart], b[apart]


@registered
class EdgeGraph(Listed):
    """A policy of explicit edges."""

    kind: ClassVar[str] = "edges"

    def __init__(self, n_states: int, listed: IntArray, notes: tuple[str, ...] = ()) -> None:
        super().__init__(n_states, notes)
        self.listed = read_only(listed)

    def describe(self) -> dict[str, Any]:
        return {"kind": self.kind, "n_states": self.n_states, "edges": self.listed.tolist()}

    def _identity(self) -> dict[str, Any]:
        return {"kind": self.kind, "n_states": self.n_states, "edges": array_hash(self.listed)}

    @classmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> EdgeGraph:
        return from_edges(description["edges"], description["n_states"])


def from_edges(edges: ArrayLike, N: int) -> EdgeGraph:
    """The policy with the given edges, pairs (m, 2) of states 0..N-1 in any order.

    Repeated edges count once. An edge from a state to itself protects nothing: it is dropped, and ``notes``
    says so. Raises InvalidInput naming the edge for an unknown state.
    """
    n = count_of_states(N)
    given = np.asarray(edges)
    if given.size == 0:
        return EdgeGraph(n, np.zeros((0, 2), dtype=np.int64))
    if given.ndim != 2 or given.shape[1] != 2:
        raise InvalidInput("edges", f"an array of shape {given.shape}", "pairs of states (m, 2)")
    if given.dtype.kind not in "iu":
        raise InvalidInput("edges", f"dtype {given.dtype}", "integer state numbers")
    outside = np.flatnonzero(np.any((given < 0) | (given >= n), axis=1))
    if len(outside):
        k = int(outside[0])
        pair = f"({given[k, 0]}, {given[k, 1]})"
        raise InvalidInput(f"edges[{k}]", pair, f"states from 0 to {n - 1}")
    a, b = given.astype(np.int64).T
    loops = int((a == b).sum())
    notes = (f"{loops} edges from a state to itself were dropped: they protect nothing",) if loops else ()
    return EdgeGraph(n, sorted_edges(a, b), notes)


def from_adjacency(matrix: Any) -> EdgeGraph:
    """The policy of a symmetric matrix (N, N) of zeros and ones, or booleans, dense or scipy.sparse.

    Raises InvalidInput naming the first entry that is no 0 or 1 (a policy has no weights), and the first pair
    of a matrix that is not symmetric.
    """
    try:
        square = sparse.coo_array(matrix)
    except (TypeError, ValueError):
        raise InvalidInput("adjacency", type(matrix).__name__, "a matrix of zeros and ones") from None
    if square.ndim != 2 or square.shape[0] != square.shape[1]:
        raise InvalidInput("adjacency", f"a matrix of shape {square.shape}", "a square one")
    rows, columns = (np.asarray(c, dtype=np.int64) for c in square.coords)
    # Written so that NaN is refused too.
    odd = np.flatnonzero(~((square.data == 0) | (square.data == 1)))
    if len(odd):
        k = odd[0]
        raise InvalidInput(f"adjacency[{rows[k]}, {columns[k]}]", square.data[k].item(), "0 or 1")
    edge = square.data == 1
    check_symmetric(rows[edge], columns[edge], square.shape[0], "adjacency")
    return from_edges(np.stack([rows[edge], columns[edge]], axis=1), square.shape[0])


def check_symmetric(a: IntArray, b: IntArray, n: int, field: str) -> None:
    """InvalidInput naming the first directed edge that has no opposite."""
    forward, backward = np.unique(a * n + b), np.unique(b * n + a)
    alone = np.setdiff1d(forward, backward)
    if len(alone):
        i, j = divmod(int(alone[0]), n)
        raise InvalidInput(field, f"an edge ({i}, {j}) without ({j}, {i})", "an undirected graph")
