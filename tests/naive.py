"""Brute-force twins: the definitions written down, with no regard for time. Everything is exact."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np


def contracted_edges(edges, support, surrogate):
    """THEORY 6: {g(a)g(b) : ab an edge, a, b possible, g(a) != g(b)}."""
    pairs = set()
    for a, b in edges:
        if support[a] and support[b]:
            x, y = int(surrogate[a]), int(surrogate[b])
            if x != y:
                pairs.add((min(x, y), max(x, y)))
    return sorted(pairs)


def differences(edges, answers):
    """± f_j - f_k over the edges, as tuples."""
    found = set()
    for a, b in edges:
        step = tuple(int(x) for x in np.asarray(answers[b]) - np.asarray(answers[a]))
        found |= {step, tuple(-x for x in step)}
    return found


def planar_facets(points):
    """All (normal, offset) pairs of lines through two points with every point on one side: O(n³)."""
    facets = set()
    for p, q in itertools.permutations(points, 2):
        a = (q[1] - p[1], p[0] - q[0])
        if a == (0, 0):
            continue
        b = a[0] * p[0] + a[1] * p[1]
        if b > 0 and all(a[0] * x + a[1] * y <= b for x, y in points):
            facets.add((a, b))
    return facets


def planar_norm(points, v):
    """The gauge of conv(points) at v, for points that span the plane."""
    return max(Fraction(a[0] * int(v[0]) + a[1] * int(v[1]), b) for a, b in planar_facets(points))


def rank(points):
    rows = [list(map(Fraction, p)) for p in points]
    r = 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((i for i in range(r, len(rows)) if rows[i][column]), None)
        if pivot is None:
            continue
        rows[r], rows[pivot] = rows[pivot], rows[r]
        for i in range(len(rows)):
            if i != r and rows[i][column]:
                factor = rows[i][column] / rows[r][column]
                rows[i] = [x - factor * y for x, y in zip(rows[i], rows[r], strict=True)]
        r += 1
    return r


def segment_norm(points, v):
    """The gauge of a segment through 0: None off its line."""
    tip = max(points, key=lambda p: sum(x * x for x in p))
    axis = next(i for i, x in enumerate(tip) if x)
    ratio = Fraction(int(v[axis]), tip[axis])
    if all(ratio * t == int(x) for t, x in zip(tip, v, strict=True)):
        return abs(ratio)
    return None


def gauge(points, v):
    """The exact gauge of the planar symmetric hull of points, whatever its rank; None for infinite."""
    points = [p for p in points if any(p)]
    if not points:
        return Fraction(0) if not any(v) else None
    return segment_norm(points, v) if rank(points) == 1 else planar_norm(points, v)


def degree(points, answers, support):
    """Definition 5.2 by |C|² tests."""
    found = []
    for i in support:
        inside = 0
        for j in support:
            norm = gauge(points, tuple(np.asarray(answers[j]) - np.asarray(answers[i])))
            inside += norm is not None and norm <= 1
        found.append(inside)
    return found


def distance2(answers, i, j):
    return sum(int(x) ** 2 for x in np.asarray(answers[i]) - np.asarray(answers[j]))


def algorithm_1(edges, answers, states, recheck):
    """Algorithm 1 with errata 7 and 15: the joins, in order."""
    within = [(a, b) for a, b in edges if a in states and b in states]
    joins = []
    first = degree(differences(within, answers), answers, states)
    exposed = [s for s, d in zip(states, first, strict=True) if d == 1]
    for s in exposed:
        if recheck and joins:
            now = degree(differences(within + joins, answers), answers, states)
            if now[states.index(s)] > 1:
                continue
        others = [o for o in states if o != s]
        joins.append((s, min(others, key=lambda o: (distance2(answers, s, o), o))))
    return joins


def area(points):
    """The area of the planar hull of a symmetric point set: 0 when flat."""
    points = [p for p in points if any(p)]
    if not points or rank(points) < 2:
        return Fraction(0)
    corners = _corners(points)
    double = sum(p[0] * q[1] - p[1] * q[0] for p, q in zip(corners, corners[1:] + corners[:1], strict=True))
    return Fraction(abs(double), 2)


def _corners(points):
    ordered = sorted(set(points))

    def chain(sequence):
        kept = []
        for p in sequence:
            while len(kept) > 1 and _turn(kept[-2], kept[-1], p) <= 0:
                kept.pop()
            kept.append(p)
        return kept[:-1]

    return chain(ordered) + chain(ordered[::-1])


def _turn(o, a, b):
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])


def algorithm_3(edges, answers, states):
    """Algorithm 3 with erratum 6 (absolute areas), rechecking as we do."""
    within = [(a, b) for a, b in edges if a in states and b in states]
    joins = []
    first = degree(differences(within, answers), answers, states)
    for s in [s for s, d in zip(states, first, strict=True) if d == 1]:
        if joins:
            now = degree(differences(within + joins, answers), answers, states)
            if now[states.index(s)] > 1:
                continue
        others = [o for o in states if o != s]
        joins.append((s, min(others, key=lambda o: (area(differences([*within, *joins, (s, o)], answers)), o))))
    return joins


def second_moment(points):
    """E|u|² of u uniform on the planar hull, by the fan formula of theory F3."""
    corners = _corners([p for p in points if any(p)])
    total = weight = Fraction(0)
    for a, b in zip(corners, corners[1:] + corners[:1], strict=True):
        w = abs(a[0] * b[1] - a[1] * b[0])
        total += Fraction(w * (a[0] ** 2 + a[1] ** 2 + b[0] ** 2 + b[1] ** 2 + a[0] * b[0] + a[1] * b[1]), 6)
        weight += w
    return total / weight


def nearest_to_all(weights, points, rounds=300):
    """The points (n, d) of least mean distance from points (N, d) under each column of weights (N, n): Weiszfeld's."""
    found = weights.T @ points / weights.sum(axis=0)[:, None]
    for _ in range(rounds):
        pull = weights / np.maximum(np.linalg.norm(points[:, None] - found[None], axis=2), 1e-9)
        found = pull.T @ points / pull.sum(axis=0)[:, None]
    return found
