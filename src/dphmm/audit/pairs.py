"""The pairs of states under a release's promise, their losses, and the number of states that hide a state.

The pairs follow from the definitions: policy, surrogates, joins, partners. Nothing is contracted. A policy edge ab
promises something wherever a and b are both possible, whatever they are answered as (docs/theory.md 1), so the states
that a planner merged are still told apart from their neighbours. The reach of pairs in the body that answers them is
found per facet, exactly, with the pair that is farthest. Degrees of protection (Def. 5.2 of the DPHMM paper) are
counted pair by pair in integers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from dphmm.audit.law import CONSTANT, KIND, STAIRCASE, Law, Table, exact, farthest
from dphmm.policy.graph import PolicyGraph
from dphmm.session.plan import StepPlan
from dphmm.types import BoolArray, IntArray, Loss


@dataclass(frozen=True, eq=False)
class PairList:
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


Pairs = PairList | Clique


def required_pairs(policy: PolicyGraph, plan: StepPlan) -> Iterator[Pairs]:
    """All required pairs of one release, by kind; the same pair may be required for several reasons."""
    constraint = plan.constraint
    yield from policy_pairs(policy, constraint.support)
    for kind, pairs in (("joined", plan.joins), ("partner", plan.partners), ("earlier partner", plan.joint_edges)):
        if len(pairs):
            yield PairList(kind, pairs[:, 0].astype(np.int64), pairs[:, 1].astype(np.int64))
    moved = np.flatnonzero(constraint.support & (constraint.surrogate != np.arange(len(constraint.support))))
    if len(moved):
        yield PairList("surrogate", moved, constraint.surrogate[moved])


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
        yield PairList("policy", a[inside], b[inside])


def has_edge(pairs: list[Pairs], n: int) -> BoolArray:
    """True where a state (n,) has a policy edge to another possible state."""
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


_AT_ONCE = 2**19


def law_of(mechanism: object) -> Law | Table:
    """The law of a plan's mechanism. Raises InvalidInput for one whose law is not known."""
    kind = getattr(mechanism, "law_name", None) or getattr(mechanism, "name", "")
    return Table.of(mechanism) if kind == KIND else Law.of(mechanism)


class Pair(NamedTuple):
    """Two states, the reason why they are a pair, the norm of their difference, and their loss."""

    kind: str
    a: int
    b: int
    norm: Loss
    loss: Loss


@dataclass
class Reach:
    """The reach of pairs in one law: how far each facet was reached and by whom; a pair that shares no answer."""

    law: Law
    values: list[int] = field(init=False)
    by: list[tuple[str, int, int] | None] = field(init=False)
    apart: tuple[str, int, int] | None = None
    seen: int = 0

    def __post_init__(self) -> None:
        self.values = [0] * len(self.law.offsets)
        self.by = [None] * len(self.law.offsets)

    def add(self, kind: str, a: IntArray, b: IntArray, images: IntArray) -> None:
        """Look at pairs (n,) of states with their answers (N, d)."""
        self.seen += len(a)
        for first in range(0, len(a), _AT_ONCE):
            some = slice(first, first + _AT_ONCE)
            self._look(kind, a[some], b[some], images[a[some]] - images[b[some]])

    def add_clique(self, kind: str, members: IntArray, images: IntArray) -> None:
        """Look at every two of some states: along a facet only the two farthest apart count."""
        if len(members) < 2:
            return
        from_first = images[members] - images[members[0]]
        self.seen += len(members) * (len(members) - 1) // 2
        apart = ~self.law.on_span(from_first)
        if apart.any():
            self.apart = self.apart or (kind, int(members[0]), int(members[np.argmax(apart)]))
            return
        if self._flat:
            return
        values = exact(self.law.y_of(from_first), self.law.normals.T)
        for facet in range(values.shape[1]):
            low, high = int(np.argmin(values[:, facet])), int(np.argmax(values[:, facet]))
            self._reached(facet, int(values[high, facet]) - int(values[low, facet]), kind, members[low], members[high])

    def _look(self, kind: str, a: IntArray, b: IntArray, v: IntArray) -> None:
        apart = ~self.law.on_span(v)
        if apart.any():
            at = int(np.argmax(apart))
            self.apart = self.apart or (kind, int(a[at]), int(b[at]))
            a, b, v = a[~apart], b[~apart], v[~apart]
        if self._flat or not len(v):
            return
        values = np.abs(exact(self.law.y_of(v), self.law.normals.T))
        for facet in range(values.shape[1]):
            at = int(np.argmax(values[:, facet]))
            self._reached(facet, int(values[at, facet]), kind, a[at], b[at])

    def _reached(self, facet: int, value: int, kind: str, a: np.int64, b: np.int64) -> None:
        if value > self.values[facet] or self.by[facet] is None:
            self.values[facet], self.by[facet] = value, (kind, int(a), int(b))

    @property
    def _flat(self) -> bool:
        return self.law.kind == CONSTANT or not self.law.rank

    @property
    def worst(self) -> Pair | None:
        """The pair that loses most; None where there was none."""
        if self.apart is not None:
            return Pair(*self.apart, math.inf, math.inf)
        best: Pair | None = None
        for value, offset, by in zip(self.values, self.law.offsets.tolist(), self.by, strict=True):
            norm = Fraction(value, offset)
            if by is not None and (best is None or norm > best.norm):
                best = Pair(*by, norm, self.law.loss(norm))
        return best

    def farthest(self) -> Iterator[tuple[int, int, float]]:
        """The pair that reaches farthest along each facet, and its reach."""
        for value, offset, by in zip(self.values, self.law.offsets.tolist(), self.by, strict=True):
            if by is not None and value:
                yield by[1], by[2], value / offset

    @property
    def met(self) -> int:
        """The number of facets that a required difference lies on: if it is all, no smaller body would do."""
        return sum(value == offset for value, offset in zip(self.values, self.law.offsets.tolist(), strict=True))


@dataclass
class TableReach:
    """The reach of pairs in a table: the number of pairs ``seen``, and the pair that loses most."""

    law: Table
    worst: Pair | None = None
    seen: int = 0
    met: int = 0

    def add(self, kind: str, a: IntArray, b: IntArray, images: IntArray) -> None:
        """Look at pairs (n,) of states with their answers (N, d)."""
        self.seen += len(a)
        if not len(a):
            return
        rows = np.stack([self.law.numbers(images[a]), self.law.numbers(images[b])], axis=1)
        without = (rows < 0).any(axis=1)
        if without.any():
            at = int(np.argmax(without))
            self._take(Pair(kind, int(a[at]), int(b[at]), math.inf, math.inf))
            return
        too_much = np.flatnonzero(~self.law.kept[rows[:, 0], rows[:, 1]])
        # Floats say which pair loses most; integers which of all lose too much.
        for at in [farthest(self.law, rows), *too_much[:1].tolist()]:
            self._take(self._pair(kind, int(a[at]), int(b[at]), *rows[at].tolist()))

    def add_clique(self, kind: str, members: IntArray, images: IntArray) -> None:
        """Every two of some states."""
        answers, first = np.unique(images[members], axis=0, return_index=True)
        if len(answers) > 1:
            a, b = np.triu_indices(len(answers), 1)
            before = self.seen
            self.add(kind, members[first[a]], members[first[b]], images)
            self.seen = before
        elif len(members) > 1:
            self.add(kind, members[:1], members[1:2], images)
            self.seen -= 1
        self.seen += len(members) * (len(members) - 1) // 2

    def farthest(self) -> Iterator[tuple[int, int, float]]:
        """The pair that loses most, with its loss over ε."""
        if self.worst is not None and self.worst.norm:
            yield self.worst.a, self.worst.b, float(self.worst.norm)

    def _pair(self, kind: str, a: int, b: int, first: int, second: int) -> Pair:
        loss = self.law.lost(first, second)
        return Pair(kind, a, b, loss / self.law.epsilon, loss)

    def _take(self, pair: Pair) -> None:
        if self.worst is None or pair.loss > self.worst.loss:
            self.worst = pair


def reached(law: Law | Table, groups: Iterable[Pairs], images: IntArray) -> Reach | TableReach:
    """The reach of groups of pairs in a law."""
    reach = TableReach(law) if isinstance(law, Table) else Reach(law)
    for group in groups:
        if isinstance(group, Clique):
            reach.add_clique(group.kind, group.members, images)
        else:
            reach.add(group.kind, group.a, group.b, images)
    return reach


_ROOM = 2**61


def degrees(law: Law | Table, images: IntArray, support: BoolArray, epsilon: Fraction) -> IntArray:
    """The number of possible states that each of them (N,) loses at most ε against, itself counted; 0 for others."""
    degree = np.zeros(len(images), dtype=np.int64)
    points, back, counts = np.unique(images[support], axis=0, return_inverse=True, return_counts=True)
    degree[support] = _among(law, points, counts, epsilon)[back.reshape(-1)]
    return degree


def _among(law: Law | Table, points: IntArray, counts: IntArray, epsilon: Fraction) -> IntArray:
    if isinstance(law, Table):
        rows = law.numbers(points)
        near = law.kept_at(epsilon)[np.ix_(rows, rows)] & (rows >= 0) & (rows >= 0)[:, None]
        return np.asarray(np.maximum(near @ counts, counts))
    if law.kind == CONSTANT or not law.rank:
        return counts
    values = exact(law.y_of(points - points[0]), law.normals.T)
    # The largest norm at which two answers lose no more than epsilon.
    norm = math.floor(epsilon / law.epsilon) if law.kind == STAIRCASE else epsilon / law.epsilon
    limits = [math.floor(offset * norm) for offset in law.offsets.tolist()]
    return _counted(values, limits, counts)


def _counted(values: IntArray, limits: list[int], weights: IntArray) -> IntArray:
    if values.dtype == object or max(limits) >= _ROOM or int(np.abs(values).max()) >= _ROOM:
        wide, within = values.astype(object), np.array(limits, dtype=object)
        inside = [np.all(np.abs(wide - row) <= within, axis=1).astype(np.bool_) for row in wide]
        return np.array([int(weights[near].sum()) for near in inside], dtype=np.int64)
    from dphmm._kernels.points import count_within

    # The facet that leaves fewest others near goes first.
    spread = np.ptp(values, axis=0) / np.maximum(np.array(limits, dtype=np.float64), 0.5)
    facets = np.argsort(-spread, kind="stable")
    order = np.argsort(values[:, facets[0]], kind="stable")
    counts = np.zeros(len(values), dtype=np.int64)
    rows = np.ascontiguousarray(values[order][:, facets])
    count_within(rows, np.array(limits, dtype=np.int64)[facets], weights[order], counts)
    by_point = np.empty_like(counts)
    by_point[order] = counts
    return by_point
