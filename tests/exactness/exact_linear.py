"""Linear algebra over the rationals, for a handful of dimensions: elimination and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

Row = Sequence[int]


def dot(a: Sequence, b: Sequence):
    return sum(x * y for x, y in zip(a, b, strict=True))


def independent_rows(rows: Sequence[Row]) -> list[int]:
    """The positions of the first rows that are linearly independent of those before them."""
    kept: list[int] = []
    reduced: list[tuple[int, list[Fraction]]] = []
    for i, row in enumerate(rows):
        left = _reduce([Fraction(x) for x in row], reduced)
        pivot = next((c for c, x in enumerate(left) if x), None)
        if pivot is None:
            continue
        kept.append(i)
        reduced.append((pivot, [x / left[pivot] for x in left]))
        if len(kept) == len(row):
            break
    return kept


def _reduce(row: list[Fraction], reduced: list[tuple[int, list[Fraction]]]) -> list[Fraction]:
    for pivot, other in reduced:
        factor = row[pivot]
        if factor:
            row = [x - factor * y for x, y in zip(row, other, strict=True)]
    return row


def rank(rows: Sequence[Row]) -> int:
    return len(independent_rows(rows))


def transposed(rows: Sequence[Sequence]) -> list[list]:
    return [list(column) for column in zip(*rows, strict=True)]


def inverse(rows: Sequence[Row]) -> tuple[list[list[int]], int]:
    """(adjugate, determinant) of a square integer matrix: its inverse is the one divided by the other.

    Raises ZeroDivisionError for a singular matrix.
    """
    k = len(rows)
    work = [[int(x) for x in row] + [int(i == j) for j in range(k)] for i, row in enumerate(rows)]
    previous = 1
    for i in range(k):
        pivot = next((r for r in range(i, k) if work[r][i]), None)
        if pivot is None:
            raise ZeroDivisionError("a singular matrix")
        if pivot != i:
            work[i], work[pivot] = work[pivot], [-x for x in work[i]]
        lead = work[i][i]
        for r in range(k):
            if r != i:
                factor = work[r][i]
                work[r] = [(lead * x - factor * y) // previous for x, y in zip(work[r], work[i], strict=True)]
        previous = lead
    return [row[k:] for row in work], previous
