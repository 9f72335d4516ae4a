"""The union of policies: every question is asked of each part.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dphmm.errors import InvalidInput
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph, sorted_edges
from dphmm.types import BoolArray, IntArray


class Union(PolicyGraph):
    """States are neighbours iff they are in some part. Parts are distinct and in the order of their digests."""

    kind: ClassVar[str] = "union"

    def __init__(self, parts: tuple[PolicyGraph, ...]) -> None:
        super().__init__(parts[0].n_states, tuple(note for part in parts for note in part.notes))
        self.parts = parts

    def describe(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "n_states": self.n_states,
            "parts": [part.describe() for part in self.parts],
        }

    def _identity(self) -> dict[str, Any]:
        return {"kind": self.kind, "n_states": self.n_states, "parts": [part.digest for part in self.parts]}

    @classmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> PolicyGraph:
        from dphmm.policy._kinds import from_description

        parts = [from_description(part, space, model) for part in description["parts"]]
        return union(*parts)

    def _extreme(self, direction: NDArray[Any], lattice: IntArray, within: Constraint) -> tuple[int, IntArray]:
        return max((part._extreme(direction, lattice, within) for part in self.parts), key=lambda e: e[0])

    def _has_neighbor(self, within: Constraint) -> BoolArray:
        mask: BoolArray = np.logical_or.reduce([part._has_neighbor(within) for part in self.parts])
        return mask

    def _join(self, parent: IntArray, within: Constraint) -> None:
        for part in self.parts:
            part._join(parent, within)

    def _edges(self, within: Constraint) -> IntArray:
        edges = np.vstack([part._edges(within) for part in self.parts])
        return sorted_edges(edges[:, 0], edges[:, 1])

    def _around(self, states: IntArray) -> IntArray:
        return np.unique(np.concatenate([part._around(states) for part in self.parts]))

    def _joins(self, a: IntArray, b: IntArray) -> BoolArray:
        found: BoolArray = np.logical_or.reduce([part._joins(a, b) for part in self.parts])
        return found

    def _few(self, lattice: IntArray, within: Constraint) -> IntArray | None:
        found = [part._few(lattice, within) for part in self.parts]
        few = [rows for rows in found if rows is not None]
        return np.vstack(few) if len(few) == len(found) else None

    def _spanning(self, lattice: IntArray, within: Constraint) -> IntArray:
        return np.vstack([part._spanning(lattice, within) for part in self.parts])


def union(*policies: PolicyGraph) -> PolicyGraph:
    """The policy with the edges of all ``policies``; nested unions are flattened and repetitions dropped.

    Raises InvalidInput unless all are policies on one number of states.
    """
    if not policies:
        raise InvalidInput("policies", "none", "at least one policy")
    parts: dict[str, PolicyGraph] = {}
    for policy in policies:
        if not isinstance(policy, PolicyGraph):
            raise InvalidInput("policies", type(policy).__name__, "policies")
        if policy.n_states != policies[0].n_states:
            came = f"policies on {policies[0].n_states} and on {policy.n_states} states"
            raise InvalidInput("policies", came, "one number of states")
        for part in policy.parts if isinstance(policy, Union) else (policy,):
            parts[part.digest] = part
    if len(parts) == 1:
        return next(iter(parts.values()))
    return Union(tuple(part for _, part in sorted(parts.items())))
