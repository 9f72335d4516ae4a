"""The law of one tuple given the value of another: a matrix, which of its rows are possible, and how exact it is.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dphmm.dependent._increase import LeakageCurve, Scan
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray

_TOLERANCE = 1e-9
#: Probabilities below this are too near to underflow for their quotients to mean anything.
LEAST = 1e-280


@dataclass(frozen=True, eq=False)
class Kernel:
    """``matrix`` (k, m): rows are laws given the k values; ``possible`` (k,): values of positive probability.

    ``error`` bounds the relative error of the entries in possible rows. A ``stand_in`` is not the law itself, which
    floats cannot hold, but loses at least as much. ``often``: whether its curve is asked for more than a few times.
    """

    matrix: FloatArray
    possible: BoolArray
    error: float = 0.0
    stand_in: bool = False
    often: bool = True

    @property
    def law(self) -> FloatArray:
        """The matrix (k, m) of the law itself: a stand-in bounds losses of all values, not those that a query sees."""
        if self.stand_in:
            raise InvalidInput("model", "chances below 1e-280", "a model whose chances floats can hold")
        return self.matrix

    @cached_property
    def curve(self) -> LeakageCurve | Scan:
        """How much a loss grows along this dependence."""
        if self.often:
            return LeakageCurve.of(self.matrix, self.possible, self.error)
        return Scan(self.matrix, self.possible, self.error)


def too_rare(together: FloatArray, kernel: FloatArray, before: BoolArray, after: FloatArray) -> bool:
    """Whether a reversed kernel would be made of numbers near underflow.

    ``together`` (k, m): P(D_i, D_j), of a ``kernel`` and a law with values possible as in ``before`` (k,). ``after``:
    the probabilities of what is possible for D_j.
    """
    happens = before[:, None] & (kernel > 0)
    return bool(min(together[happens].min(), after.min()) < LEAST)


def equal_rows(rows: FloatArray) -> bool:
    """Whether all rows (k, m) are the same: what comes next does not depend on what was."""
    return bool((rows == rows[0]).all())


def stochastic(given: Any, field_name: str) -> FloatArray:
    """A dense matrix of laws (k, m), rows summing to 1 within 1e-9 and divided by their sum once."""
    if hasattr(given, "toarray"):
        given = given.toarray()
    try:
        matrix = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(field_name, type(given).__name__, "a matrix of probabilities") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidInput(field_name, f"shape {matrix.shape}", "a matrix of probabilities, one row per value")
    wrong = ~np.isfinite(matrix) | (matrix < 0) | (matrix > 1 + _TOLERANCE)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise InvalidInput(f"{field_name}[{i}, {j}]", matrix[i, j].item(), "a probability from 0 to 1")
    sums = matrix.sum(axis=1)
    off = np.abs(sums - 1.0) > _TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise InvalidInput(f"{field_name}[{row}]", f"row sum {sums[row].item()!r}", "a sum of 1 (within 1e-9)")
    divided: FloatArray = matrix / sums[:, None]
    divided.setflags(write=False)
    return divided


def law(given: Any, k: int, field_name: str) -> FloatArray:
    """One distribution over k values."""
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(field_name, type(given).__name__, f"{k} probabilities") from None
    if values.shape != (k,):
        raise InvalidInput(field_name, f"shape {values.shape}", f"({k},): one probability per value")
    settled: FloatArray = stochastic(values[None], field_name)[0]
    return settled
