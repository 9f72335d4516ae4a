"""The mechanism ``hops`` for labels: an answer is the less likely, the more edges of the policy lie between. Any graph.

If every two answers are joined, it is randomised response.

Proof: docs/proofs/hops.md.
"""

from __future__ import annotations

import hashlib
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dphmm._cached import Recent
from dphmm.mechanisms.answer_table import (
    AnswerTable,
    TableLaw,
    answers_and_edges,
    digits_for,
    margin_of,
    randomised_response,
    require_alike,
    require_certified,
    rounded,
    truthful,
)
from dphmm.mechanisms.base import Words
from dphmm.mechanisms.table_program import hops, require_checkable
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.states.lattice import Lattice
from dphmm.states.space import StateSpace
from dphmm.types import Exact, FloatArray, IntArray, States

#: Above this ε an answer k edges away weighs e^-kε, and the truth all the rest.
LARGEST_EXPONENT = 12
#: Halvings of [ε/2, ε] in the search for the largest exponent that keeps ε.
_HALVINGS = 60

_cache = Recent[str, TableLaw](64)


class Hops(AnswerTable):
    """P(z | answer) proportional to e^(-c·h), h the edges between answer and z; c is the largest that keeps ε.

    c lies between ε/2 and ε. If all answers are joined (a complete policy), c is ε: randomised response, which
    names the truth with probability e^ε / (e^ε + n - 1), as often as any mechanism that keeps ε can where all answers
    are alike likely. An answer without a way to it counts as one edge more than the longest way: a release can
    tell nearly for certain in which connected part of the policy a state is. Nothing is impossible. The weights are
    whole numbers, certified for every edge. But for randomised response they are made from floats and may differ
    between machines, so their sha256 is part of `describe`.

    Parameters
    ----------
    answers : distinct lattice points (n, d), up to 400; their places have no part in the law.
    edges : pairs (m, 2) of rows of ``answers`` that must lose at most ε.
    epsilon : from 2**-20 to 2**10.
    frame : the lattice of the answers; the integers themselves without one.

    Raises
    ------
    InvalidInput : answers that are not distinct, edges of rows that are not there, a table that would be too large.
    Uncertified : weights that could not be proved to keep ε. They are never drawn from.

    Examples
    --------
    >>> table = Hops([[0], [1], [2]], [[0, 1], [0, 2], [1, 2]], epsilon=1)
    >>> round(float(table.law.probabilities[0, 0]), 6)  # e / (e + 2)
    0.576117

    Source: the exponential mechanism on a policy graph (Takagi, Cao, Asano and Yoshikawa 2020); randomised response
    (Warner 1965).
    """

    name: ClassVar[str] = "hops"
    words: ClassVar[Words] = Words(
        noise="A table: every planned answer has a law of its own over the planned answers. A state hides among those "
        "that an edge joins it to, and the less well the more edges lead to another; what no edges lead to counts as "
        "one edge more than the longest way. No release excludes a possible state for certain.",
        not_protected=(
            "States that several edges of the policy lie between, or that no edges lead to: one release tells them "
            "apart better than two states of one edge.",
        ),
    )
    for_labels: ClassVar[bool] = True

    def __init__(self, answers: ArrayLike, edges: ArrayLike, epsilon: Exact, *, frame: Lattice | None = None) -> None:
        super().__init__(answers, edges, epsilon, frame)
        made = _certified(len(self._points), self._edges, self.epsilon)
        self._law = TableLaw(self._points, made.weights, made.bits)

    @classmethod
    def for_policy(
        cls, policy: PolicyGraph, space: StateSpace, epsilon: Exact, *, constraint: States | Constraint = None
    ) -> Self:
        """The table for the answers of the plan states (all without), and the policy's contracted edges between them.

        States with the same answer are one. Raises InvalidInput where policy, space and constraint are not of the same
        states, besides what the class does.
        """
        points, edges, _ = answers_and_edges(policy, space, constraint)
        made = cls(points, edges, epsilon, frame=space.frame)
        made._of_labels = space.has_labels
        return made

    def describe(self) -> dict[str, str]:
        return super().describe() | {"weights": self._law.digest}


def _certified(n: int, edges: IntArray, epsilon: Fraction) -> TableLaw:
    """The weights of n answers in order, whatever their places."""
    key = hashlib.sha256(repr((n, edges.tolist(), str(epsilon))).encode()).hexdigest()
    if (stored := _cache.get(key)) is not None:
        return stored
    if n > 1 and len(edges) == n * (n - 1) // 2:
        weights = randomised_response(n, epsilon)
        require_alike(weights, digits_for(epsilon), epsilon)
        return _cache.keep(key, TableLaw(np.arange(n, dtype=np.int64)[:, None], weights, digits_for(epsilon)))
    require_checkable(n, len(edges))
    if epsilon > LARGEST_EXPONENT or not len(edges):
        weights = truthful(n, edges, epsilon)
    else:
        weights = rounded(_law(n, edges, float(epsilon) - margin_of(epsilon)), edges, epsilon)
    require_certified(weights, digits_for(epsilon), edges, epsilon)
    return _cache.keep(key, TableLaw(np.arange(n, dtype=np.int64)[:, None], weights, digits_for(epsilon)))


def _law(n: int, edges: IntArray, epsilon: float) -> FloatArray:
    """The law (n, n) in floats: with the largest exponent at which no edge loses more than ε."""
    ways = hops(n, edges).astype(np.float64)
    reached = ways < n
    ways[~reached] = ways[reached].max() + 1
    # Half of ε is for the weights of two neighbours, half for their sums; more where the sums are nearly the same.
    low, high = epsilon / 2, epsilon
    if _worst(ways, edges, high) <= epsilon:
        low = high
    for _ in range(_HALVINGS if low < high else 0):
        middle = (low + high) / 2
        low, high = (middle, high) if _worst(ways, edges, middle) <= epsilon else (low, middle)
    weights = np.exp(-low * ways)
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _worst(ways: FloatArray, edges: IntArray, exponent: float) -> float:
    """The largest loss of an edge, in floats."""
    logs = -exponent * ways
    logs -= np.log(np.exp(logs).sum(axis=1, keepdims=True))
    return max(float(np.abs(logs[a] - logs[b]).max()) for a, b in edges.tolist())
