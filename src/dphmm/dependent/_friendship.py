"""Friends who live near each other: P(D_j = y | D_i = x) ∝ a (|x − y| + b)^−c over a public state space."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dphmm._checks import finite_number
from dphmm.dependent._joint import connected
from dphmm.dependent._kernel import law
from dphmm.dependent._tree import Tree
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray, IntArray

#: Backstrom, Sun and Marlow (WWW 2010), in miles; the factor a = 0.0019 falls out when the law is normalised.
NEARNESS, DECAY = 0.196, 1.05
METRES_PER_MILE = 1609.344


class Friendship:
    """Friends' places, pair by pair; of three or more people who form no tree, no joint law is said.

    ``places`` (k, d): coordinates of the public state space, in ``unit`` metres (1609.344: miles). ``edges`` (m, 2):
    pairs of people 0..n−1. ``prior``: the law of one person's place (uniform if not given), used where the friendships
    form trees and a joint law can be made of the pairs.
    """

    def __init__(
        self,
        places: Any,
        edges: Any,
        n: int,
        *,
        b: float = NEARNESS,
        c: float = DECAY,
        unit: float = METRES_PER_MILE,
        prior: Any = None,
    ) -> None:
        self.places = _places(places)
        self.n = _people(n)
        self.edges = _edges(edges, self.n)
        ones = np.ones(len(self.edges))
        graph = sparse.csr_array((ones, (self.edges[:, 0], self.edges[:, 1])), shape=(self.n, self.n))
        self.graph = sparse.csr_array(graph + graph.T)
        self.kernel_between_friends = distance_law(self.places, b, c, unit)
        k = len(self.places)
        self.prior = law(np.full(k, 1 / k) if prior is None else prior, k, "prior")

    @property
    def n_tuples(self) -> int:
        """How many people there are."""
        return self.n

    @property
    def is_forest(self) -> bool:
        """Whether the friendships have no loops."""
        return len(self.edges) == self.n - self.components()[0]

    def components(self) -> tuple[int, IntArray]:
        """How many connected parts there are, and which one each person is in; the parts are independent."""
        return connected(self.graph)

    def tree(self, root: int = 0) -> Tree:
        """The joint law in which places spread from one person outwards: only where friendships have no loops."""
        if not self.is_forest:
            raise InvalidInput("edges", "friendships with loops", "friendships that form trees")
        if not 0 <= root < self.n:
            raise InvalidInput("root", root, f"a person from 0 to {self.n - 1}")
        parents = np.full(self.n, -2)
        for start in [root, *range(self.n)]:
            if parents[start] == -2:
                order, before = sparse.csgraph.breadth_first_order(self.graph, start, directed=False)
                parents[order] = before[order]
                parents[start] = -1
        return Tree(parents.tolist(), self.prior, self.kernel_between_friends)

    def __repr__(self) -> str:
        return f"friendships of {self.n} people, {len(self.edges)} edges, over {len(self.places)} places"


def distance_law(
    places: FloatArray, b: float = NEARNESS, c: float = DECAY, unit: float = METRES_PER_MILE
) -> FloatArray:
    """P(D_j = y | D_i = x) over the places (k, k)."""
    near, decay, metres = finite_number(b, "b"), finite_number(c, "c"), finite_number(unit, "unit")
    if near <= 0 or decay < 0 or metres <= 0:
        raise InvalidInput("b, c, unit", (near, decay, metres), "b > 0, c >= 0 and unit > 0")
    distances = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2)) / metres
    weights = (distances + near) ** -decay
    found: FloatArray = weights / weights.sum(axis=1, keepdims=True)
    return found


def _places(places: Any) -> FloatArray:
    found = np.asarray(places, dtype=np.float64)
    if found.ndim == 1:
        found = found[:, None]
    if found.ndim != 2 or len(found) < 2 or not np.isfinite(found).all():
        raise InvalidInput("places", f"shape {found.shape}", "finite coordinates (k, d) of at least 2 places")
    return found


def _people(n: int) -> int:
    if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
        raise InvalidInput("n", n, "how many people there are, at least 1")
    return int(n)


def _edges(edges: Any, n: int) -> IntArray:
    given = np.asarray(edges)
    if given.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or not np.issubdtype(given.dtype, np.integer):
        raise InvalidInput("edges", f"shape {given.shape}, {given.dtype}", "pairs of people (m, 2)")
    unknown = (given < 0) | (given >= n)
    if unknown.any():
        raise InvalidInput("edges", f"unknown user {int(given[unknown][0])}", f"people from 0 to {n - 1}")
    if (given[:, 0] == given[:, 1]).any():
        at = int(np.argmax(given[:, 0] == given[:, 1]))
        raise InvalidInput(f"edges[{at}]", f"{int(given[at, 0])} with themselves", "pairs of different people")
    found: IntArray = np.unique(np.sort(given.astype(np.int64), axis=1), axis=0)
    return found
