"""Dependence that is given outright: a joint table of few tuples, and coefficients that somebody supplies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, IntArray

#: Rows of a joint table: every loss is computed over all of them.
MOST_OUTCOMES = 2**16


class JointTable:
    """The joint law of n tuples, as a table of those outcomes that can happen.

    ``outcomes`` (m, n) of integer values, or {outcome: probability} with tuples as outcomes. ``probabilities`` (m,),
    positive, summing to 1 within 1e-9.
    """

    is_forest = False

    def __init__(self, outcomes: Any, probabilities: Any = None) -> None:
        if isinstance(outcomes, Mapping):
            outcomes, probabilities = list(outcomes), list(outcomes.values())
        rows = np.asarray(outcomes)
        chances = np.asarray(probabilities, dtype=np.float64)
        if rows.ndim != 2 or not np.issubdtype(rows.dtype, np.integer) or rows.size == 0:
            raise InvalidInput("outcomes", f"shape {rows.shape}, {rows.dtype}", "integers (m, n): one row per outcome")
        if len(rows) > MOST_OUTCOMES:
            raise InvalidInput("outcomes", f"{len(rows)} rows", f"at most {MOST_OUTCOMES}")
        if chances.shape != (len(rows),) or not (np.isfinite(chances).all() and (chances >= 0).all()):
            raise InvalidInput("probabilities", f"shape {chances.shape}", f"{len(rows)} probabilities")
        if abs(chances.sum() - 1.0) > 1e-9:
            raise InvalidInput("probabilities", f"sum {chances.sum().item()!r}", "a sum of 1 (within 1e-9)")
        if rows.min() < 0:
            raise InvalidInput("outcomes", int(rows.min()), "values counted from 0")
        if len(np.unique(rows, axis=0)) < len(rows):
            raise InvalidInput("outcomes", "the same outcome twice", "each outcome once")
        self.outcomes: IntArray = rows[chances > 0].astype(np.int64)
        self.probabilities: FloatArray = chances[chances > 0] / chances.sum()
        self.n: int = int(rows.shape[1])
        self._pairs: dict[tuple[int, int], FloatArray] = {}

    @property
    def n_tuples(self) -> int:
        """How many tuples there are."""
        return self.n

    def n_values(self, i: int) -> int:
        """Values of tuple i are below this."""
        return int(self.outcomes[:, i].max()) + 1

    def possible(self, i: int) -> BoolArray:
        """Which values D_i can have."""
        mask = np.zeros(self.n_values(i), dtype=np.bool_)
        mask[self.outcomes[:, i]] = True
        return mask

    def pair(self, i: int, j: int) -> FloatArray:
        """P(D_j | D_i) over possible values of D_i, rows in their order."""
        if (i, j) not in self._pairs:
            joint = np.zeros((self.n_values(i), self.n_values(j)))
            np.add.at(joint, (self.outcomes[:, i], self.outcomes[:, j]), self.probabilities)
            joint = joint[joint.sum(axis=1) > 0]
            self._pairs[i, j] = joint / joint.sum(axis=1, keepdims=True)
        return self._pairs[i, j]

    def __repr__(self) -> str:
        return f"joint table of {self.n} tuples, {len(self.outcomes)} outcomes"


class Coefficients:
    """Coefficients ρ_ij that somebody supplies: a square matrix in [0, 1], dense or sparse; the diagonal counts as 1.

    Nothing is known of the law behind them, so of what is made with them only group privacy is proved: over all
    tuples, for a coefficient of 0 does not make tuples independent, or over connected parts if ``parts_independent``
    says that these are.
    """

    is_forest = False

    def __init__(self, matrix: Any, *, parts_independent: bool = False) -> None:
        self.parts_independent = parts_independent
        try:
            given = sparse.csr_array(matrix, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("coefficients", type(matrix).__name__, "a square matrix, tuples × tuples") from None
        given.sum_duplicates()
        if given.ndim != 2 or given.shape[0] != given.shape[1] or given.shape[0] == 0:
            raise InvalidInput("coefficients", f"shape {given.shape}", "a square matrix, tuples × tuples")
        wrong = ~((given.data >= 0) & (given.data <= 1))
        if wrong.any():
            k = int(np.argmax(wrong))
            row = int(np.searchsorted(given.indptr, k, side="right")) - 1
            where = f"coefficients[{row}, {int(given.indices[k])}]"
            raise InvalidInput(where, given.data[k].item(), "a coefficient from 0 to 1")
        given = given - sparse.diags_array(given.diagonal()) + sparse.eye_array(given.shape[0])
        self.matrix = sparse.csr_array(given)
        self.matrix.eliminate_zeros()
        self.n: int = given.shape[0]

    @property
    def n_tuples(self) -> int:
        """How many tuples there are."""
        return self.n

    def scaled(self, factor: float) -> Coefficients:
        """The coefficients off the diagonal times ``factor``: those of somebody who under-estimates dependence."""
        between = self.matrix - sparse.eye_array(self.n)
        return Coefficients(between * factor, parts_independent=self.parts_independent)

    def components(self) -> tuple[int, IntArray]:
        """How many connected parts there are, and which one each tuple is in (n,)."""
        return connected(self.matrix)

    def __repr__(self) -> str:
        return f"given coefficients of {self.n} tuples"


def connected(matrix: Any) -> tuple[int, IntArray]:
    """The connected parts of a graph."""
    count, part = sparse.csgraph.connected_components(matrix, directed=False)
    return int(count), part.astype(np.int64)
