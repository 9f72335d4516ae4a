"""A table that was made once, before any release, and is named by its contents: what `dphmm.optimize` makes.

A linear program's solution depends on solver and machine. So such a table is not solved for when a release is planned:
its whole numbers are the mechanism, and a plan, a ledger and a statement name it by their SHA-256.

Proof: docs/proofs/made-table.md.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm.errors import InvalidInput, Unprotectable
from dphmm.mechanisms.answer_table import AnswerTable, answers_and_edges
from dphmm.mechanisms.base import Words
from dphmm.mechanisms.table_law import TableLaw, digits_for, require_certified
from dphmm.mechanisms.table_program import checked_prior
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.states.lattice import Lattice
from dphmm.states.space import StateSpace
from dphmm.types import Exact, FloatArray

#: How a release names one: this, a colon, and the SHA-256 of its contents.
PREFIX = "made-table"

_known: dict[str, MadeTable] = {}
_lock = threading.Lock()


@dataclass(frozen=True)
class Making:
    """What is known of how a table was made. None of it has a part in the promise.

    ``loss``: "squared", "distance", "label", or "custom" where the costs came from a file. ``cost``: the mean cost of
    what the table names, under the prior, from its whole numbers. ``bound``: what no mechanism that keeps ε on the
    table's edges is below, followed by any choice of an answer; 0 where nothing is known. ``method``: "program",
    "columns", or "truth" for large ε.
    """

    loss: str
    cost: float
    bound: float
    method: str

    @property
    def certified_ratio(self) -> float | None:
        """At most so many times the least cost there is; None where nothing is known of that."""
        if self.cost == 0:
            return 1.0
        return self.cost / self.bound if self.bound > 0 else None


class MadeTable(AnswerTable):
    """P(z | answer) in whole numbers that somebody made before, certified again from those numbers.

    Every pair of answers that one of its edges joins loses at most ε. A release may use it where the plan's answers
    are among its answers, and the edges that the plan must keep are among its edges. It is equal to itself on every
    machine: it has nothing to solve.

    Parameters
    ----------
    answers : distinct lattice points (n, d), up to 400, in lexicographic order.
    edges : pairs (m, 2) of rows of ``answers`` that lose at most ε.
    epsilon : from 2**-20 to 2**10.
    weights : whole numbers (n, n), 1 or more; every row sums to 2**`digits_for` (ε).
    space : the SHA-256 of the state space whose answers they are (`StateSpace.digest`).
    frame : the lattice of the answers; the integers themselves without one.
    prior : public weights (n,) of the answers, all alike without them; only errors are told by them.
    making : how it was made, where that is known.
    labels : whether the answers are names.

    Raises
    ------
    InvalidInput : answers that are not distinct or not in order, edges of rows that are not there.
    Uncertified : weights that are no laws, or lose more than ε on an edge. They are never drawn from.

    Source: docs/proofs/made-table.md; made tables are solutions of the linear program of Bordenabe, Chatzikokolakis and
    Palamidessi (2014) with the edges of a policy.
    """

    name: ClassVar[str] = PREFIX
    choosable: ClassVar[bool] = False
    for_labels: ClassVar[bool] = True
    words: ClassVar[Words] = Words(
        scope="A table that was made before: every answer has a law of its own over the answers. A state is hidden "
        "among those that an edge joins it to, and less well among those that more edges lead to; a release can tell "
        "nearly for certain in which connected part of the policy it is.",
        flat="A table of answers has no direction: no release excludes a possible state for certain.",
        not_protected=(
            "The component of the policy that a subject is in: one release can tell it nearly for certain.",
        ),
    )

    def __init__(
        self,
        answers: ArrayLike,
        edges: ArrayLike,
        epsilon: Exact,
        weights: NDArray[np.object_],
        *,
        space: str,
        frame: Lattice | None = None,
        prior: ArrayLike | None = None,
        making: Making | None = None,
        labels: bool = False,
    ) -> None:
        super().__init__(answers, edges, epsilon, frame)
        if not np.array_equal(self._order, np.arange(len(self._points))):
            raise InvalidInput("answers", "answers in another order", "answers in lexicographic order")
        bits = digits_for(self.epsilon)
        require_certified(weights, bits, self._edges, self.epsilon)
        self._law = TableLaw(self._points, weights, bits)
        self._space = space
        self._prior = checked_prior(prior, len(self._points))
        self._making = making
        self._of_labels = labels
        told = [str(self.epsilon), space, self._points.tolist(), self._edges.tolist(), labels, self._law.digest]
        self._digest = hashlib.sha256(repr(told).encode()).hexdigest()

    @property
    def digest(self) -> str:
        """The SHA-256 of all that decides what is released: ε, space, answers, edges and weights."""
        return self._digest

    @property
    def reference(self) -> str:
        """How a release names the table: in options, ledgers and statements."""
        return f"{PREFIX}:{self._digest}"

    @property
    def space_digest(self) -> str:
        """The SHA-256 of the state space whose answers are the table's."""
        return self._space

    @property
    def frame(self) -> Lattice:
        """The lattice of the answers."""
        return self._frame

    @property
    def prior(self) -> FloatArray:
        """How likely each answer (n,) was taken to be when errors were told."""
        return self._prior

    @property
    def making(self) -> Making | None:
        """How it was made; None where that is not known."""
        return self._making

    @property
    def of_labels(self) -> bool:
        """Whether the answers are names."""
        return self._of_labels

    @classmethod
    def for_policy(cls, policy: PolicyGraph, space: StateSpace, epsilon: Exact, *, constraint: Constraint) -> Self:
        """Refused: a made table is one of those there are (`known_table`)."""
        raise InvalidInput("mechanism", cls.name, "the table itself, as dphmm.load_table reads it")

    def for_plan(self, policy: PolicyGraph, space: StateSpace, epsilon: Fraction, constraint: Constraint) -> MadeTable:
        """The table, where it may answer a plan of this policy; else an error from public data alone.

        Raises InvalidInput for another space or ε, Unprotectable where an answer of the plan has no row, or an edge
        that the plan must keep is none of the table's.
        """
        if space.digest != self._space:
            came = f"table {self._digest[:12]}, made for another space ({self._space[:12]})"
            raise InvalidInput("mechanism", came, f"a table made for this one ({space.digest[:12]}): dphmm optimize")
        if epsilon != self.epsilon:
            came = f"table {self._digest[:12]}, made for epsilon {self.epsilon}"
            raise InvalidInput("mechanism", came, f"epsilon {self.epsilon}, or a table made for epsilon {epsilon}")
        points, edges, _ = answers_and_edges(policy, space, constraint)
        rows = self._law.numbers(points)
        missing = int((rows < 0).sum())
        if missing:
            raise Unprotectable(
                f"table {self._digest[:12]} has no row for {missing} of the {len(points)} answers of the plan: "
                "make it with the options of the release (dphmm optimize --policy, --protection)"
            )
        needed = np.sort(rows[edges].reshape(-1, 2), axis=1)
        n = len(self._law.points)
        kept = np.isin(needed[:, 0] * n + needed[:, 1], self._edges[:, 0] * n + self._edges[:, 1])
        if not kept.all():
            raise Unprotectable(
                f"table {self._digest[:12]} was not made for {int((~kept).sum())} of the {len(needed)} edges that the "
                "plan must keep: make it for this policy and model, with the options of the release (dphmm optimize)"
            )
        return self

    def describe(self) -> dict[str, str]:
        return super().describe() | {"table": self._digest}

    def _mean(self, costs: FloatArray) -> float:
        return float(self._prior @ (self._law.probabilities * costs).sum(axis=1))


def make_known(table: MadeTable) -> str:
    """Keep a table where releases find it by its reference, which is returned. Its contents are the reference."""
    with _lock:
        _known.setdefault(table.reference, table)
    return table.reference


def is_reference(mechanism: str) -> bool:
    """Whether a mechanism's name is that of a made table."""
    return mechanism.startswith(f"{PREFIX}:")


def known_table(reference: str) -> MadeTable:
    """The table of that reference. Raises InvalidInput where its file has not been read."""
    with _lock:
        found = _known.get(reference)
    if found is None:
        short = reference.removeprefix(f"{PREFIX}:")[:12]
        expected = "its file with it: --mechanism table.npz, or dphmm.load_table(path) before"
        raise InvalidInput("mechanism", f"made table {short}, which has not been read", expected)
    return found
