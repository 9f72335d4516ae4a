"""What a table is made from, checked before memory or minutes are spent on it.

Proof: docs/proofs/optimal-table.md.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dphmm.errors import InvalidInput
from dphmm.types import FloatArray, IntArray

#: Answers: there is a whole number of some hundred digits for every two of them.
MOST_ANSWERS = 400
#: Rows of the program, two for each edge and answer, and its unknowns: up to about half a minute of one core, most for
#: long paths. Symmetries divide both.
MOST_ROWS = 120_000
MOST_UNKNOWNS = 20_000
#: Quotients that the certificate looks at where no program is solved: some seconds.
MOST_QUOTIENTS = 4_000_000
_SMALLER = "fewer states, fewer edges, or another mechanism"


def checked_points(answers: ArrayLike) -> IntArray:
    """Distinct lattice points (n, d), at most `MOST_ANSWERS`."""
    points = np.asarray(answers)
    if points.ndim != 2 or not points.size:
        raise InvalidInput("answers", f"shape {points.shape}", "(n, d), at least one answer")
    if not np.issubdtype(points.dtype, np.integer):
        raise InvalidInput("answers", f"dtype {points.dtype}", "integers: lattice points")
    if len(points) > MOST_ANSWERS:
        expected = f"at most {MOST_ANSWERS} for the optimal table: fewer states, or another mechanism"
        raise InvalidInput("answers", f"{len(points)} answers", expected)
    if int(np.abs(points.astype(object)).max()) > 2**53:
        raise InvalidInput("answers", "a point too far away", "at most 2**53 steps")
    if len(np.unique(points, axis=0)) < len(points):
        raise InvalidInput(
            "answers", "the same answer twice", "distinct answers: OptimalTable.for_policy joins equal ones"
        )
    return points.astype(np.int64)


def checked_edges(edges: ArrayLike, n: int) -> IntArray:
    """Pairs (m, 2) of two different numbers from 0 to n - 1."""
    given = np.asarray(edges)
    if not given.size:
        return np.zeros((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or not np.issubdtype(given.dtype, np.integer):
        raise InvalidInput("edges", f"shape {given.shape} of {given.dtype}", "(m, 2) integers")
    if int(given.min()) < 0 or int(given.max()) >= n:
        raise InvalidInput("edges", "a row that is not there", f"numbers from 0 to {n - 1}")
    if (given[:, 0] == given[:, 1]).any():
        raise InvalidInput("edges", "an edge from an answer to itself", "pairs of two answers")
    return given.astype(np.int64)


def checked_prior(prior: ArrayLike | None, n: int) -> FloatArray:
    """Weights (n,) that sum to 1; all alike for None."""
    if prior is None:
        return np.full(n, 1.0 / n)
    weights = _floats(prior, "prior", (n,))
    total = float(weights.sum())
    if not 0 < total < np.inf:
        raise InvalidInput("prior", f"weights with the sum {total:g}", "a sum greater than 0")
    return np.asarray(weights / total)


def checked_costs(costs: ArrayLike, n: int) -> FloatArray:
    """Costs (n, n), 0 or more."""
    return _floats(costs, "costs", (n, n))


def _floats(values: ArrayLike, field: str, shape: tuple[int, ...]) -> FloatArray:
    try:
        given = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(field, type(values).__name__, "numbers") from None
    if given.shape != shape:
        raise InvalidInput(field, f"shape {given.shape}", f"{shape}: one for each answer")
    if not np.isfinite(given).all() or (given < 0).any():
        raise InvalidInput(field, "NaN, an infinity or a negative number", "finite numbers, 0 or more")
    return given


def require_checkable(n: int, edges: int) -> None:
    """Raise InvalidInput where a certificate of n answers and so many edges would take minutes."""
    if n * edges > MOST_QUOTIENTS:
        expected = f"answers times edges up to {MOST_QUOTIENTS} for the optimal table: {_SMALLER}"
        raise InvalidInput("answers", f"{n} answers and {edges} edges", expected)


def require_room(n: int, edges: int, symmetries: Callable[[], int]) -> None:
    """Raise InvalidInput unless the program of n answers and so many edges is small enough, by symmetry if need be."""
    size = max(Fraction(2 * n * edges, MOST_ROWS), Fraction(n * n, MOST_UNKNOWNS))
    if size > 1 and size > symmetries():
        expected = (
            f"a program of {MOST_ROWS} rows and {MOST_UNKNOWNS} unknowns at most for the optimal table: {_SMALLER}"
        )
        raise InvalidInput("answers", f"{n} answers and {edges} edges", expected)
