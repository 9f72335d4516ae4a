"""The mechanism ``optimal-table``: for each answer a distribution over all answers, of least mean cost for a prior.

Proof: docs/proofs/optimal-table.md.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dphmm._cached import Recent
from dphmm._checks import one_of
from dphmm.mechanisms.answer_table import (
    AnswerTable,
    TableLaw,
    answers_and_edges,
    digits_for,
    margin_of,
    require_certified,
    rounded,
    truthful,
)
from dphmm.mechanisms.table_program import (
    Optimum,
    Problem,
    Round,
    checked_costs,
    checked_prior,
    optimum,
    optimum_by_columns,
    require_checkable,
    require_room,
)
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.states.lattice import Lattice
from dphmm.states.space import StateSpace
from dphmm.types import Exact, FloatArray, States

#: What a cost may be, by name: |named - true|² or |named - true|, in answer units.
LOSSES = ("squared", "euclidean")
_POWERS = {"squared": 2, "euclidean": 1}
#: Above this ε no program is solved: the truth is named but for a share of about e^-12 for each neighbour.
LARGEST_PROGRAM = 12
#: How its weights are found: the whole program, or columns of it until value and bound are near each other.
METHODS = ("program", "columns")

_cache = Recent[bytes, tuple[TableLaw, Optimum | None]](64)


class OptimalTable(AnswerTable):
    """P(z | answer) for answers and outputs of one set, the solution of a linear program made integers and certified.

    Every pair of answers that an edge joins loses at most ε. Of all mechanisms that keep ε on those edges and name
    answers of the set, as they are or by an estimate, none has a smaller mean cost under the prior, up to rounding
    (above ε = 12 it names the truth but for what neighbours need, and that is not claimed). Nothing is impossible:
    every answer of the set can come out where any other is true. Other pairs may lose much more than ε, up to
    ``largest_loss``: an answer without an edge is told nearly as it is. The weights come from a float solver and may
    differ between machines: their sha256 is part of `describe`.

    Parameters
    ----------
    answers : distinct lattice points (n, d); their order has no part in the law.
    edges : pairs (m, 2) of rows of ``answers`` that must lose at most ε. Both orders, and repeats, are one pair.
    epsilon : from 2**-20 to 2**10.
    loss : the error that is least in the mean, "squared" or "euclidean".
    frame : the lattice of the answers; the integers themselves without one.
    prior : public weights (n,) of the answers, all alike without them. Never anything computed from a true state.
    costs : instead of a loss, the costs (n, n) of naming each answer (column) where each (row) is true.
    method : "program", one linear program; or "columns", parts of it until the mean cost is within ``gap`` of what is
        proved of all mechanisms. With None the program where it is small enough, and else nothing: a release does not
        wait for columns (`dphmm.choose.optimize` does).
    gap : where columns stop, as a ratio.
    progress : with columns, called with every round (`table_program.Round`).

    Raises
    ------
    InvalidInput : answers that are not distinct, edges of rows that are not there, a prior or costs that are none, or a
        table that would be too large.
    Uncertified : weights that could not be proved to keep ε. They are never drawn from.
    """

    name: ClassVar[str] = "optimal-table"

    def __init__(
        self,
        answers: ArrayLike,
        edges: ArrayLike,
        epsilon: Exact,
        loss: str = "squared",
        *,
        frame: Lattice | None = None,
        prior: ArrayLike | None = None,
        costs: ArrayLike | None = None,
        method: str | None = None,
        gap: float = 1.01,
        progress: Callable[[Round], None] | None = None,
    ) -> None:
        super().__init__(answers, edges, epsilon, frame)
        self._method = None if method is None else one_of(method, METHODS, "method")
        self._gap, self._progress = float(gap), progress
        points, order = self._points, self._order
        n = len(points)
        self._loss = one_of(loss, LOSSES, "loss") if costs is None else "custom"
        named = self._distances(points, _POWERS.get(self._loss, 2))
        # As seen from the first point: the same problem has the same table wherever it lies.
        self._problem = Problem(
            points=points - points[0],
            costs=named if costs is None else checked_costs(costs, n)[np.ix_(order, order)],
            prior=checked_prior(prior, n)[order],
            edges=self._edges,
        )
        self._uniform = prior is None
        law, self._optimum = self._certified()
        self._law = TableLaw(points, law.weights, law.bits)

    @classmethod
    def for_policy(
        cls,
        policy: PolicyGraph,
        space: StateSpace,
        epsilon: Exact,
        loss: str = "squared",
        *,
        constraint: States | Constraint = None,
        prior: ArrayLike | None = None,
    ) -> Self:
        """The table for the answers of the plan states (all without), and the policy's contracted edges between them.

        States with the same answer are one, and their weights in ``prior`` (N,) are added up. Raises InvalidInput
        where policy, space and constraint are not of the same states, besides what the class does.
        """
        points, edges, place = answers_and_edges(policy, space, constraint)
        masses = None
        if prior is not None:
            planned = place >= 0
            weights = checked_prior(prior, space.n_states)[planned]
            masses = np.bincount(place[planned], weights=weights, minlength=len(points))
        return cls(points, edges, epsilon, loss, frame=space.frame, prior=masses)

    @property
    def optimum(self) -> Optimum | None:
        """The linear program's solution in floats, for ε less `margin_of`; None where none was solved."""
        return self._optimum

    @property
    def mean_cost(self) -> float:
        """The mean cost of what is named, under the prior, from the whole numbers."""
        return self._mean(self._problem.costs)

    @property
    def prior(self) -> FloatArray:
        """The weights (n,) of the answers in lexicographic order, which sum to 1."""
        return self._problem.prior

    @property
    def certified_ratio(self) -> float | None:
        """At most so many times the least mean cost of all mechanisms that keep ε on the edges.

        They may put out anything, followed by any choice of an answer of the set. None where nothing is known of them.
        """
        if self._optimum is None or self._optimum.bound <= 0:
            return None
        return self.mean_cost / self._optimum.bound

    def describe(self) -> dict[str, str]:
        prior = "uniform" if self._uniform else "own"
        return super().describe() | {"loss": self._loss, "prior": prior, "weights": self._law.digest}

    def _certified(self) -> tuple[TableLaw, Optimum | None]:
        problem = self._problem
        key = self._key()
        if (stored := _cache.get(key)) is not None:
            return stored
        n, bits = len(problem.points), digits_for(self.epsilon)
        best = None
        if self.epsilon > LARGEST_PROGRAM or not len(problem.edges):
            require_checkable(n, len(problem.edges))
            weights = truthful(n, problem.edges, self.epsilon)
        else:
            best = self._solved(problem)
            weights = rounded(best.law, problem.edges, self.epsilon)
        require_certified(weights, bits, problem.edges, self.epsilon)
        return _cache.keep(key, (TableLaw(problem.points, weights, bits), best))

    def _solved(self, problem: Problem) -> Optimum:
        n, m = len(problem.points), len(problem.edges)
        if self._method == "columns":
            require_checkable(n, m)
            return optimum_by_columns(problem, float(self.epsilon), gap=self._gap, told=self._progress)
        require_room(n, m, lambda: len(problem.motions))
        return optimum(problem, float(self.epsilon) - margin_of(self.epsilon), float(self.epsilon))

    def _key(self) -> bytes:
        problem = self._problem
        how = (self._gap,) if self._method == "columns" else ()
        digest = hashlib.sha256(repr((problem.points.shape, problem.edges.shape, str(self.epsilon), *how)).encode())
        for part in (problem.points, problem.edges, problem.prior, problem.costs):
            digest.update(np.ascontiguousarray(part).data)
        return digest.digest()

    def _mean(self, costs: FloatArray) -> float:
        return float(self._problem.prior @ (self._law.probabilities * costs).sum(axis=1))
