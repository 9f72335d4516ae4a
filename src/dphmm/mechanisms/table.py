"""The best table: for each answer of a set a law over the answers of the same set, of least mean cost for a prior.

Proof: docs/proofs/optimal-table.md.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from dphmm._checks import one_of
from dphmm.accounting.budget import float_above
from dphmm.errors import InvalidInput
from dphmm.mechanisms.base import AnswerMechanism, Words, rows, vector
from dphmm.mechanisms.table_law import TableLaw, digits_for, margin_of, require_certified, rounded, truthful
from dphmm.mechanisms.table_program import (
    Optimum,
    Problem,
    checked_costs,
    checked_edges,
    checked_points,
    checked_prior,
    optimum,
    require_checkable,
    require_room,
)
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import default_bits
from dphmm.samplers.weighted import TableSampler
from dphmm.states.lattice import Lattice
from dphmm.states.space import StateSpace
from dphmm.types import Bits, BoolArray, Exact, FloatArray, IntArray, Loss, States

#: What a cost may be, by name: |named - true|² or |named - true|, in answer units.
LOSSES = ("squared", "euclidean")
_POWERS = {"squared": 2, "euclidean": 1}
#: Above this ε no program is solved: the truth is named but for a share of about e^-12 for each neighbour.
LARGEST_PROGRAM = 12
_MOST_CACHED = 64

_cache: OrderedDict[bytes, tuple[TableLaw, Optimum | None]] = OrderedDict()
_lock = threading.Lock()


class OptimalTable(AnswerMechanism):
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
    loss : what is least in the mean, "squared" or "euclidean".
    frame : the lattice of the answers; the integers themselves without one.
    prior : public weights (n,) of the answers, all alike without them. Never anything computed from a true state.
    costs : instead of a loss, the costs (n, n) of naming each answer (column) where each (row) is true.

    Raises
    ------
    InvalidInput : answers that are not distinct, edges of rows that are not there, a prior or costs that are none, or a
        table that would be too large.
    Uncertified : weights that could not be proved to keep ε. They are never drawn from.
    """

    name: ClassVar[str] = "optimal-table"
    quick: ClassVar[bool] = False
    words: ClassVar[Words] = Words(
        scope="A table: every planned answer has a law of its own over the planned answers. A state is hidden among "
        "those that an edge joins it to, and less well among those that more edges lead to; a release can tell "
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
        loss: str = "squared",
        *,
        frame: Lattice | None = None,
        prior: ArrayLike | None = None,
        costs: ArrayLike | None = None,
    ) -> None:
        super().__init__(epsilon)
        points = checked_points(answers)
        n, d = points.shape
        self._frame = Lattice.unit(d) if frame is None else frame
        if self._frame.dimension != d:
            raise InvalidInput("frame", f"{self._frame.dimension} axes", f"{d}, as the answers have")
        self._loss = one_of(loss, LOSSES, "loss") if costs is None else "custom"
        order = np.lexsort(points.T[::-1])
        number = np.argsort(order)
        # In the order of the points and as seen from the first: the same problem has the same table wherever it lies.
        joined = np.sort(number[checked_edges(edges, n)], axis=1)
        weights = checked_prior(prior, n)
        self._problem = Problem(
            points=points[order] - points[order[0]],
            costs=self._distances(points[order]) if costs is None else checked_costs(costs, n)[np.ix_(order, order)],
            prior=weights[order],
            edges=np.unique(joined, axis=0).reshape(-1, 2),
        )
        self._uniform = prior is None
        law, self._optimum = self._certified()
        self._law = TableLaw(points[order], law.weights, law.bits)

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
        if policy.n_states != space.n_states:
            came = f"{policy.n_states} states in the policy, {space.n_states} in the space"
            raise InvalidInput("policy, space", came, "the same number in both")
        within = Constraint.of(constraint, space.n_states)
        planned = within.plan_states
        points, number = np.unique(space.lattice[planned], axis=0, return_inverse=True)
        checked_points(points)
        place = np.full(space.n_states, -1, dtype=np.int64)
        place[planned] = number.reshape(-1)
        edges = place[policy.edges(within)]
        given = None
        if prior is not None:
            weights = checked_prior(prior, space.n_states)[planned]
            given = np.bincount(place[planned], weights=weights, minlength=len(points))
        return cls(points, edges[edges[:, 0] != edges[:, 1]], epsilon, loss, frame=space.frame, prior=given)

    @property
    def law(self) -> TableLaw:
        """The integers that are sampled; its points are the answers in lexicographic order."""
        return self._law

    @property
    def edges(self) -> IntArray:
        """The pairs (m, 2) of points of the law that lose at most ε."""
        return self._problem.edges

    @property
    def optimum(self) -> Optimum | None:
        """The linear program's solution in floats, for ε less `margin_of`; None where none was solved."""
        return self._optimum

    @property
    def largest_loss(self) -> Fraction:
        """A bound on the loss of any two answers, at most 2**-39 too large."""
        return self._law.largest_loss

    @property
    def mean_cost(self) -> float:
        """The mean cost of what is named, under the prior."""
        return self._mean(self._problem.costs)

    @property
    def expected_error(self) -> float:
        """E‖named - true‖² in answer units squared, under the prior."""
        return self._mean(self._distances(self._law.points, 2))

    @property
    def log_normaliser(self) -> float:
        """0: `log_likelihood` is the log of a probability."""
        return 0.0

    def describe(self) -> dict[str, str]:
        prior = "uniform" if self._uniform else "own"
        return super().describe() | {"loss": self._loss, "prior": prior, "weights": self._law.digest}

    def prepare(self) -> None:
        """Compute now what the first draw would."""
        self._sampler.prepare()

    def answer(self, images: IntArray, bits: Bits | None = None) -> IntArray:
        """What is named (m, d) for lattice answers (m, d). Raises InvalidInput for one that the table does not have."""
        return np.asarray(self._law.points[self._sampler.draw(self._rows(images), default_bits(bits))])

    def sample(self, answer: ArrayLike, bits: Bits | None = None) -> FloatArray:
        """What is named for one answer (d,) or for each row (m, d), in answer units."""
        table, one = rows(answer, self._frame.dimension, "answer")
        z = self._frame.to_answers(self.answer(self._frame.to_lattice(table), bits))
        return z[0] if one else z

    def log_likelihood(self, z: ArrayLike, answers: ArrayLike) -> FloatArray:
        """log P(z | answer) for each row of ``answers`` (N, d); -inf for a z that is none of the table's."""
        d = self._frame.dimension
        point = self._frame.to_lattice(vector(z, d, "z"))
        return self.log_likelihood_lattice(point, self._frame.to_lattice(rows(answers, d, "answers")[0]))

    def log_likelihood_lattice(self, z: IntArray, images: IntArray) -> FloatArray:
        """`log_likelihood` of the lattice point z (d,) for lattice answers (N, d)."""
        named = int(self._law.numbers(np.asarray(z)[None])[0])
        numbers = self._rows(images)
        return np.full(len(numbers), -np.inf) if named < 0 else np.asarray(self._law.logs[numbers, named])

    @property
    def excludes(self) -> bool:
        """Never: a table names any of its answers whatever is true."""
        return False

    def possible(self, z: IntArray, images: IntArray) -> BoolArray:
        """All of the answers (N, d) where the lattice point z (d,) is one of the table's, else none."""
        return np.full(len(images), bool(self._law.numbers(np.asarray(z)[None])[0] >= 0))

    def degrees(self, image: IntArray, targets: IntArray, among: IntArray) -> IntArray:
        """With how many of the states ``among`` each of ``targets`` loses at most ε."""
        weights = np.bincount(self._rows(image[among]), minlength=len(self._law.points))
        return np.asarray((self._law.within(self.epsilon) @ weights)[self._rows(image[targets])])

    def largest_loss_among(self, points: IntArray) -> Fraction:
        """`largest_loss`: the answers (n, d) are those of the table."""
        return self.largest_loss

    def losses_between(self, first: IntArray, second: IntArray) -> FloatArray:
        """The losses (m,) of pairs of lattice answers (m, d), rounded up; no more than ε for edges."""
        return np.asarray(self._losses[self._rows(first), self._rows(second)])

    def loss(self, v: ArrayLike) -> float:
        """The largest log-ratio between two answers of the table that differ by v (d,); inf where no two do."""
        steps = self._frame.steps(vector(v, self._frame.dimension))
        nearest = np.rint(steps)
        return float(self.loss_lattice(nearest.astype(np.int64))) if np.array_equal(steps, nearest) else float("inf")

    def loss_lattice(self, v: ArrayLike) -> Loss:
        """`loss` of a lattice vector (d,) as a fraction: never too small, at most 2**-39 too large."""
        points = self._law.points
        there = self._law.numbers(points + np.asarray(v, dtype=np.int64))
        here = np.flatnonzero(there >= 0)
        if not len(here):
            return float("inf")
        return self._within(here, there[here])

    def _within(self, a: IntArray, b: IntArray) -> Fraction:
        """The loss of pairs of rows; no more than ε where all of them are edges, which is certified."""
        bound = self._law.loss_between(a, b)
        pairs = np.sort(np.stack([a, b], axis=1), axis=1)
        keys, kept = (e[:, 0] * len(self._law.points) + e[:, 1] for e in (pairs, self.edges))
        return min(bound, self.epsilon) if np.isin(keys, kept).all() else bound

    @cached_property
    def _losses(self) -> FloatArray:
        """What every two answers (n, n) lose, rounded up."""
        found = self._law.losses_above
        a, b = self.edges.T
        most = np.minimum(found[a, b], float_above(self.epsilon))
        found[a, b], found[b, a] = most, most
        return found

    def _certified(self) -> tuple[TableLaw, Optimum | None]:
        problem = self._problem
        key = self._key()
        with _lock:
            if key in _cache:
                _cache.move_to_end(key)
                return _cache[key]
        n, bits = len(problem.points), digits_for(self.epsilon)
        best = None
        if self.epsilon > LARGEST_PROGRAM or not len(problem.edges):
            require_checkable(n, len(problem.edges))
            weights = truthful(n, problem.edges, self.epsilon)
        else:
            require_room(n, len(problem.edges), lambda: len(problem.motions))
            best = optimum(problem, float(self.epsilon) - margin_of(self.epsilon))
            weights = rounded(best.law, problem.edges, self.epsilon)
        require_certified(weights, bits, problem.edges, self.epsilon)
        found = TableLaw(problem.points, weights, bits), best
        with _lock:
            _cache[key] = found
            while len(_cache) > _MOST_CACHED:
                _cache.popitem(last=False)
        return found

    def _key(self) -> bytes:
        problem = self._problem
        digest = hashlib.sha256(repr((problem.points.shape, problem.edges.shape, str(self.epsilon))).encode())
        for part in (problem.points, problem.edges, problem.prior, problem.costs):
            digest.update(np.ascontiguousarray(part).data)
        return digest.digest()

    def _rows(self, images: IntArray) -> IntArray:
        numbers = self._law.numbers(np.asarray(images, dtype=np.int64))
        if (numbers < 0).any():
            raise InvalidInput("answers", "one that the table has no row for", "answers that the table was made for")
        return numbers

    def _distances(self, points: IntArray, power: int | None = None) -> FloatArray:
        steps = (points[:, None] - points[None]) * self._frame.pitch
        return np.asarray(np.linalg.norm(steps, axis=2) ** (power or _POWERS[self._loss]))

    def _mean(self, costs: FloatArray) -> float:
        return float(self._problem.prior @ (self._law.probabilities * costs).sum(axis=1))

    @cached_property
    def _sampler(self) -> TableSampler:
        return TableSampler(self._law.weights, self._law.bits)
