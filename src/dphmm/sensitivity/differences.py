"""Where a sensitivity hull gets its points: the largest difference of answers in a direction, exactly.

A hull needs nothing else of a policy, so no policy is ever expanded into edges (docs/theory.md (h):
conv(A - A) = conv A - conv A).

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity.integers import null_lattice
from dphmm.types import IntArray


class Differences(Protocol):
    """A finite symmetric set of integer difference vectors, known by its support function."""

    @property
    def dimension(self) -> int: ...

    def extreme(self, direction: IntArray) -> tuple[int, IntArray]:
        """The largest ``direction``·difference and a difference that attains it; (0, zeros) for the empty set."""
        ...

    def few(self) -> IntArray | None:
        """Rows (m, d) with the same hull as the whole set, one of each ± pair, where they are known."""
        ...


@dataclass(frozen=True)
class PointDifferences:
    """± the rows of ``points`` (m, d)."""

    points: IntArray

    @property
    def dimension(self) -> int:
        return int(self.points.shape[1])

    def extreme(self, direction: IntArray) -> tuple[int, IntArray]:
        if len(self.points) == 0:
            return 0, np.zeros(self.dimension, dtype=np.int64)
        values = dot(self.points, direction)
        at = int(np.argmax(np.abs(values)))
        value = int(values[at])
        return abs(value), self.points[at] if value >= 0 else -self.points[at]

    def few(self) -> IntArray | None:
        return self.points


@dataclass(frozen=True)
class _Edges:
    """± the answer differences along the edges of a policy in force under a constraint.

    ``lattice`` (N, d) holds the answers in lattice steps; only their differences count.
    """

    policy: PolicyGraph
    lattice: IntArray
    constraint: Constraint

    def extreme(self, direction: IntArray) -> tuple[int, IntArray]:
        if self.few is not None:
            return self.few.extreme(direction)
        return self.policy.extreme_difference(direction, self._centred, self.constraint)

    @cached_property
    def _centred(self) -> IntArray:
        return self.lattice - _kernels.points.bounds(self.lattice)[0]

    @cached_property
    def few(self) -> PointDifferences | None:
        """A few of them with the same hull, where the policy can tell."""
        rows = self.policy.hull_candidates(self.lattice, self.constraint)
        return None if rows is None else PointDifferences(rows)


@dataclass(frozen=True)
class PolicyDifferences:
    """± the answer differences along the edges of a policy in force under a constraint, and extra differences."""

    edges: _Edges
    extra: PointDifferences

    @classmethod
    def of(cls, policy: PolicyGraph, lattice: IntArray, constraint: Constraint) -> PolicyDifferences:
        none = np.zeros((0, lattice.shape[1]), dtype=np.int64)
        return cls(_Edges(policy, lattice, constraint), PointDifferences(none))

    @property
    def dimension(self) -> int:
        return int(self.edges.lattice.shape[1])

    def extreme(self, direction: IntArray) -> tuple[int, IntArray]:
        of_policy = self.edges.extreme(direction)
        of_extra = self.extra.extreme(direction)
        return of_policy if of_policy[0] >= of_extra[0] else of_extra

    def few(self) -> IntArray | None:
        """Rows (m, d) with the same hull as the whole set, one of each ± pair, where they are known."""
        few = self.edges.few
        if few is None or len(self.extra.points) == 0:
            return None if few is None else few.points
        return np.vstack([few.points, self.extra.points])

    def with_points(self, points: IntArray) -> PolicyDifferences:
        """The same set and ± more rows."""
        return replace(self, extra=PointDifferences(np.vstack([self.extra.points, points])))


def independent(source: Differences) -> list[list[int]]:
    """As many independent differences as the set has: found by asking, so the rank is never a matter of tolerance."""
    found: list[list[int]] = []
    while True:
        for orthogonal in null_lattice(found, source.dimension):
            value, point = source.extreme(np.array(orthogonal, dtype=np.int64))
            if value:
                found.append([int(x) for x in point])
                break
        else:
            return found


def dot(points: IntArray, direction: IntArray) -> IntArray:
    """points·direction, exactly: in 64 bits where they suffice, in Python integers where not."""
    if len(points) == 0:
        return np.zeros(0, dtype=np.int64)
    bound = int(np.abs(points).max()) * sum(abs(int(x)) for x in direction)
    if bound < 2**62:
        return points @ direction
    exact: IntArray = points.astype(object) @ np.array([int(x) for x in direction], dtype=object)
    return exact
