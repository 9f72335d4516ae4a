"""Brute force: plain edge lists and their contraction, by definition and without any shortcut."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np


def complete_edges(n):
    return set(itertools.combinations(range(n), 2))


def label_edges(labels):
    return {(i, j) for i, j in itertools.combinations(range(len(labels)), 2) if labels[i] == labels[j]}


def transition_edges(matrix):
    n = len(matrix)
    return {
        (i, j)
        for i, j in itertools.combinations(range(n), 2)
        if any(matrix[q][i] > 0 and matrix[q][j] > 0 for q in range(n))
    }


def radius_edges(points, pitch, r, closed):
    found = set()
    for i, j in itertools.combinations(range(len(points)), 2):
        square = sum(
            (Fraction(p) * (int(a) - int(b))) ** 2 for p, a, b in zip(pitch, points[i], points[j], strict=True)
        )
        if square < Fraction(r) ** 2 or (closed and square == Fraction(r) ** 2):
            found.add((i, j))
    return found


def knn_edges(points, pitch, k):
    """Each state and all others as near as its k-th, by sorting all exact distances."""
    found = set()
    for i in range(len(points)):
        squares = {
            j: sum((Fraction(p) * (int(a) - int(b))) ** 2 for p, a, b in zip(pitch, points[i], points[j], strict=True))
            for j in range(len(points))
            if j != i
        }
        farthest = sorted(squares.values())[k - 1]
        found |= {(min(i, j), max(i, j)) for j, square in squares.items() if square <= farthest}
    return found


def contracted(edges, constraint):
    """THEORY 6: {g(a)g(b) : ab an edge inside the support, g(a) != g(b)}."""
    found = set()
    for a, b in edges:
        if constraint.support[a] and constraint.support[b]:
            i, j = int(constraint.surrogate[a]), int(constraint.surrogate[b])
            if i != j:
                found.add((min(i, j), max(i, j)))
    return found


def differences(edges, lattice):
    """± the answer differences along edges."""
    rows = [sign * (lattice[j] - lattice[i]) for i, j in edges for sign in (1, -1)]
    return np.array(rows, dtype=np.int64).reshape(-1, lattice.shape[1])


def largest(direction, rows):
    return max((sum(int(a) * int(x) for a, x in zip(direction, row, strict=True)) for row in rows), default=0)


def components(edges, constraint):
    number = np.full(constraint.n_states, -1)
    neighbours = {int(s): set() for s in constraint.plan_states}
    for i, j in edges:
        neighbours[i].add(j)
        neighbours[j].add(i)
    count = 0
    for start in neighbours:
        if number[start] >= 0:
            continue
        todo = [start]
        while todo:
            state = todo.pop()
            if number[state] < 0:
                number[state] = count
                todo.extend(neighbours[state])
        count += 1
    return number


def nearest(lattice, pitch, plan):
    """The surrogate map by definition: exact distances to all plan states, ties to the lowest number."""
    out = []
    for s in range(len(lattice)):
        ranked = [
            (
                sum(
                    (Fraction(p) * (int(a) - int(b))) ** 2
                    for p, a, b in zip(pitch, lattice[s], lattice[q], strict=True)
                ),
                q,
            )
            for q in np.flatnonzero(plan)
        ]
        out.append(s if plan[s] else int(min(ranked)[1]))
    return np.array(out)
