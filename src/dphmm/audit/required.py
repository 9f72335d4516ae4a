"""Which pairs of states a release promises something about, from the definitions: policy, surrogates, joins, partners.

Nothing is contracted here. A policy edge ab promises something wherever a and b are both possible, whatever they are
answered as (docs/theory.md 1), so the states that a planner merged are still told apart from their neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dphmm.policy.graph import PolicyGraph
from dphmm.session.plan import Plan
from dphmm.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Listed:
    """Pairs (a, b) (n,), all of one kind."""

    kind: str
    a: IntArray
    b: IntArray

    def __len__(self) -> int:
        return len(self.a)


@dataclass(frozen=True, eq=False)
class Clique:
    """Every two of some states (n,)."""

    kind: str
    members: IntArray

    def __len__(self) -> int:
        return len(self.members) * (len(self.members) - 1) // 2


Pairs = Listed | Clique


def required_pairs(policy: PolicyGraph, plan: Plan) -> Iterator[Pairs]:
    """All required pairs of one release, by kind; the same pair may be required for several reasons."""
    constraint = plan.constraint
    yield from policy_pairs(policy, constraint.support)
    for kind, pairs in (("joined", plan.joins), ("partner", plan.partners), ("earlier partner", plan.given_partners)):
        if len(pairs):
            yield Listed(kind, pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64))
    moved = np.flatnonzero(constraint.support & (constraint.surrogate != np.arange(len(constraint.support))))
    if len(moved):
        yield Listed("surrogate", moved, constraint.surrogate[moved])


def policy_pairs(policy: PolicyGraph, support: BoolArray) -> Iterator[Pairs]:
    """The edges of a policy between possible states. Cliques are kept as cliques: their pairs need not be listed."""
    parts = getattr(policy, "parts", None)
    if policy.kind == "union" and parts is not None:
        for part in parts:
            yield from policy_pairs(part, support)
    elif policy.kind == "complete":
        yield Clique("policy", np.flatnonzero(support))
    elif policy.kind == "categorical":
        labels = np.asarray(policy.describe()["labels"])
        for label in np.unique(labels[support]):
            yield Clique("policy", np.flatnonzero(support & (labels == label)))
    else:
        a, b = policy.edges(None).T
        inside = support[a] & support[b]
        yield Listed("policy", a[inside], b[inside])


def has_edge(pairs: list[Pairs], n: int) -> BoolArray:
    """Which states (n,) have a policy edge to another possible state."""
    mask = np.zeros(n, dtype=np.bool_)
    for group in pairs:
        if group.kind != "policy":
            continue
        if isinstance(group, Clique):
            if len(group.members) > 1:
                mask[group.members] = True
        else:
            mask[group.a] = mask[group.b] = True
    return mask
