"""Which pairs of states a promise covers, from its definitions alone (docs/theory.md 1, 4 and 6): plain double loops.

Given the support S (states that the public history leaves possible), the plan set inside it and the surrogate map g,

    policy     a, b in S joined by an edge of the policy, which are answered from g(a), g(b)
    joined     the edges that protection added, between plan states
    partner    every plan state without an edge in force, and the one state it hides with; the partners that another
               query of the same step has fixed
    surrogate  a state outside the plan set, and g of it: no difference at all
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np

from exactness.instances import Instance, PolicySpec, Query

Edges = set[tuple[int, int]]
#: Float answers are compared with a radius up to this share of it (its documented tolerance).
_TOLERANCE = Fraction(1, 10**12)


def radius_of(spec: PolicySpec, query: Query) -> Fraction:
    """The radius of a spec: a share of a typical distance between answers, as a fraction."""
    spread = max(float(np.ptp(query.answers, axis=0).max()) / 2, 1.0)
    return Fraction(spec.parameters["share"]) * Fraction(round(spread * 8), 8)


def policy_edges(spec: PolicySpec, instance: Instance, space: Any) -> Edges:
    """All edges (i, j), i < j, of a policy, by its definition. A radius policy measures the first query's answers."""
    if spec.kind == "union":
        return set().union(*(policy_edges(part, instance, space) for part in spec.parts))
    if spec.kind == "edges":
        return {(min(e), max(e)) for e in spec.parameters["edges"] if e[0] != e[1]}
    if spec.kind == "knn":
        return _nearest(spec.parameters["k"], instance.n, space)
    followers = _followers(instance)
    joined = {
        "complete": lambda i, j: True,
        "categorical": lambda i, j: spec.parameters["labels"][i] == spec.parameters["labels"][j],
        "transition": lambda i, j: any(i in one and j in one for one in followers),
        "radius": lambda i, j: _within(spec, instance.queries[0], space, i, j),
    }[spec.kind]
    return {(i, j) for i, j in itertools.combinations(range(instance.n), 2) if joined(i, j)}


def _followers(instance: Instance) -> list[set[int]]:
    """What each state may be followed by; of a chain with states of its own, each of what is hidden."""
    secrets = range(instance.n) if instance.secrets is None else instance.secrets.tolist()
    found: list[set[int]] = [set() for _ in range(instance.n)]
    for before, row in zip(secrets, instance.transition, strict=True):
        found[before] |= {after for after, chance in zip(secrets, row, strict=True) if chance > 0}
    return found


def _within(spec: PolicySpec, query: Query, space: Any, i: int, j: int) -> bool:
    """On lattice points the pitch is the decimal it prints as; other answers are the floats that they are."""
    r, closed = radius_of(spec, query), spec.parameters["closed"]
    square = _square(space, i, j)
    if closed or space.is_lattice:
        return square <= r**2 if closed else square < r**2
    return square < (r * (1 - _TOLERANCE)) ** 2


def _nearest(k: int, n: int, space: Any) -> Edges:
    """Each state and all others as near as its k-th; float answers within the documented tolerance."""
    share = 1 if space.is_lattice else (1 + _TOLERANCE) ** 2
    found = set()
    for i in range(n):
        squares = {j: _square(space, i, j) for j in range(n) if j != i}
        farthest = sorted(squares.values())[k - 1] * share
        found |= {(min(i, j), max(i, j)) for j, square in squares.items() if square <= farthest}
    return found


def _square(space: Any, i: int, j: int) -> Fraction:
    """The squared distance of two answers: of lattice points exactly, of others that of the floats that they are."""
    if space.is_lattice:
        return squared_distance(space.lattice, pitches(space), i, j)
    raw = [[Fraction(float(x)) for x in space.raw_answers[s]] for s in (i, j)]
    return sum(((a - b) ** 2 for a, b in zip(*raw, strict=True)), Fraction(0))


def pitches(space: Any) -> list[Fraction]:
    return [Fraction(repr(float(p))) for p in space.pitch]


def squared_distance(lattice: Any, pitch: list[Fraction], i: int, j: int) -> Fraction:
    steps = (int(a) - int(b) for a, b in zip(lattice[i], lattice[j], strict=True))
    return sum(((p * s) ** 2 for p, s in zip(pitch, steps, strict=True)), Fraction(0))


def surrogates(space: Any, plan_set: Any) -> list[int]:
    """Each state's nearest plan state in answer units, ties to the lowest number; itself on the plan set."""
    planned = [int(s) for s in np.flatnonzero(plan_set)]
    pitch = pitches(space)
    return [
        s if plan_set[s] else min(planned, key=lambda q: (squared_distance(space.lattice, pitch, s, q), q))
        for s in range(len(plan_set))
    ]


def contracted(edges: Edges, support: Any, surrogate: list[int]) -> Edges:
    """{g(a)g(b) : ab an edge inside the support, g(a) != g(b)}."""
    images = {(surrogate[a], surrogate[b]) for a, b in edges if support[a] and support[b]}
    return {(min(pair), max(pair)) for pair in images if pair[0] != pair[1]}


def pairs(edges: Edges, support: Any, surrogate: list[int], joins: Any, partners: Any) -> list[tuple[str, int, int]]:
    """All required pairs (kind, a, b) of one release; the same pair may be required for several reasons."""
    found = [("policy", a, b) for a, b in sorted(edges) if support[a] and support[b]]
    found += [("joined", int(a), int(b)) for a, b in joins]
    found += [("partner", int(a), int(b)) for a, b in partners]
    found += [("surrogate", s, g) for s, g in enumerate(surrogate) if s != g]
    return found
