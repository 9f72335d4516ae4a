"""Exact linear algebra over the integers, in as many dimensions as an answer has: a handful.

Matrices are lists of rows of Python ints, so nothing overflows and nothing rounds.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import gcd

import numpy as np

from dphmm.types import IntArray

Matrix = list[list[int]]


def identity(d: int) -> Matrix:
    return [[int(i == j) for j in range(d)] for i in range(d)]


def column_hermite(rows: Sequence[Sequence[int]], d: int) -> tuple[Matrix, Matrix, int]:
    """Unimodular U (d, d), its inverse, and the rank r, such that only the first r columns of rows·U are non-zero."""
    work = [list(map(int, row)) for row in rows]
    u, inverse, rank = identity(d), identity(d), 0
    for row in work:
        while True:
            nonzero = [j for j in range(rank, d) if row[j]]
            if len(nonzero) <= 1:
                break
            pivot = min(nonzero, key=lambda j: abs(row[j]))
            for j in nonzero:
                if j != pivot:
                    _add_column(work, u, inverse, j, pivot, -(row[j] // row[pivot]))
        if nonzero:
            _swap_columns(work, u, inverse, rank, nonzero[0])
            rank += 1
    return u, inverse, rank


def _add_column(work: Matrix, u: Matrix, inverse: Matrix, j: int, pivot: int, q: int) -> None:
    for matrix in (work, u):
        for row in matrix:
            row[j] += q * row[pivot]
    inverse[pivot] = [a - q * b for a, b in zip(inverse[pivot], inverse[j], strict=True)]


def _swap_columns(work: Matrix, u: Matrix, inverse: Matrix, i: int, j: int) -> None:
    for matrix in (work, u):
        for row in matrix:
            row[i], row[j] = row[j], row[i]
    inverse[i], inverse[j] = inverse[j], inverse[i]


def null_lattice(rows: Sequence[Sequence[int]], d: int) -> Matrix:
    """A basis, as rows, of the integer vectors orthogonal to all ``rows``."""
    u, _, rank = column_hermite(rows, d)
    return [[u[i][j] for i in range(d)] for j in range(rank, d)]


def span_lattice(equations: Sequence[Sequence[int]], d: int) -> tuple[IntArray, IntArray]:
    """A primitive basis (d, k) of {x in Z^d : equations·x = 0}, and an integer left inverse (k, d) of it."""
    u, inverse, rank = column_hermite(equations, d)
    basis = np.array([row[rank:] for row in u], dtype=np.int64).reshape(d, d - rank)
    return basis, np.array(inverse[rank:], dtype=np.int64).reshape(d - rank, d)


def solve(columns: Sequence[Sequence[int]], target: Sequence[int]) -> list[Fraction] | None:
    """The exact x with sum x_i columns_i = target for a square system, or None when it is singular."""
    k = len(target)
    work = [[Fraction(int(c[i])) for c in columns] + [Fraction(int(target[i]))] for i in range(k)]
    for i in range(k):
        pivot = next((r for r in range(i, k) if work[r][i]), None)
        if pivot is None:
            return None
        work[i], work[pivot] = work[pivot], work[i]
        lead = work[i][i]
        work[i] = [x / lead for x in work[i]]
        for r in range(k):
            if r != i and work[r][i]:
                factor = work[r][i]
                work[r] = [a - factor * b for a, b in zip(work[r], work[i], strict=True)]
    return [row[k] for row in work]


def determinant(rows: Sequence[Sequence[int]]) -> int:
    """The determinant of a square integer matrix (Bareiss: every division is exact)."""
    work, sign, previous = [list(map(int, row)) for row in rows], 1, 1
    n = len(work)
    for i in range(n - 1):
        pivot = next((r for r in range(i, n) if work[r][i]), None)
        if pivot is None:
            return 0
        if pivot != i:
            work[i], work[pivot], sign = work[pivot], work[i], -sign
        for r in range(i + 1, n):
            for c in range(i + 1, n):
                work[r][c] = (work[r][c] * work[i][i] - work[r][i] * work[i][c]) // previous
        previous = work[i][i]
    return sign * work[-1][-1] if n else 1


def primitive(vector: Sequence[int]) -> list[int]:
    """The shortest integer vector in the same direction."""
    divisor = gcd(*map(int, vector))
    return [int(x) // divisor for x in vector] if divisor else [0] * len(vector)
