"""Policies whose nodes are state names: from a networkx graph, or from what a file lists."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._checks import exact_number
from dphmm.errors import InvalidInput
from dphmm.policy._edges import EdgeGraph, check_symmetric, from_edges
from dphmm.policy.graph import count_of_states

if TYPE_CHECKING:
    import networkx

    from dphmm.states.space import StateSpace


def from_networkx(graph: networkx.Graph[Any], space: StateSpace | int) -> EdgeGraph:
    """The policy of a networkx graph: string nodes are state names, integer nodes state numbers.

    ``space`` : a StateSpace, or the number of states. Raises InvalidInput for a directed graph that is not
    symmetric, an unknown node (naming its edge, if it has one), or a ``weight`` other than 1.
    """
    edges = ((f"edge ({a!r}, {b!r})", a, b, data.get("weight", 1)) for a, b, data in graph.edges(data=True))
    return named_policy(edges, space, graph.nodes, directed=graph.is_directed())


def named_policy(
    edges: Iterable[tuple[str, object, object, object]],
    space: Any,
    nodes: Iterable[object] | None = None,
    directed: bool = False,
) -> EdgeGraph:
    """The policy of edges (place in the input, node, node, weight); where ``nodes`` are listed, edges use only them."""
    states = _States(space)
    declared = None if nodes is None else {states.of(node, f"node {k}") for k, node in enumerate(nodes)}
    pairs = np.zeros((0, 2), dtype=np.int64)
    found: list[tuple[int, int]] = []
    for place, a, b, weight in edges:
        if not _is_one(weight, place):
            raise InvalidInput(place, f"weight {weight!r}", "no weight, or 1: a policy has none")
        pair = states.of(a, place), states.of(b, place)
        for node, state in zip((a, b), pair, strict=True):
            if declared is not None and state not in declared:
                raise InvalidInput(place, node, "a node listed among the nodes")
        found.append(pair)
    if found:
        pairs = np.array(found, dtype=np.int64)
    if directed:
        check_symmetric(pairs[:, 0], pairs[:, 1], states.count, "graph")
    return from_edges(pairs, states.count)


class _States:
    """Which state a node of the input is."""

    def __init__(self, space: Any) -> None:
        if isinstance(space, (int, np.integer)):
            self.count = count_of_states(space)
            self._index = None
        else:
            self.count = space.n_states
            self._index = space.index_of

    def of(self, node: object, place: str) -> int:
        state = -1
        if isinstance(node, str):
            state = self._by_name(node)
        elif isinstance(node, (int, np.integer)) and not isinstance(node, bool) and 0 <= node < self.count:
            state = int(node)
        if state < 0:
            raise InvalidInput(place, node, "a state name, or a state number below " + str(self.count))
        return state

    def _by_name(self, name: str) -> int:
        if self._index is not None:
            return int(self._index(name))
        plain = name.isascii() and name.isdigit() and (name == "0" or not name.startswith("0")) and len(name) < 12
        return int(name) if plain and int(name) < self.count else -1


def _is_one(weight: object, place: str) -> bool:
    # Files give "1.0", graphs 1.0; NaN and text that is no number are refused by name.
    return weight is not None and exact_number(weight, f"{place} weight") == 1
