"""The base of mechanisms that are tables: for each answer of a set a law over the same answers, in whole numbers.

A kind of table says how its weights are made, and proves them; all else follows from the integers. One kind is here:
`MadeTable`, whose weights were made before, which is what `dphmm.choose.optimize` gives.

A `TableLaw` is a table in integers: ``points`` (n, d) are distinct lattice points in lexicographic order; ``weights``
(n, n) are whole numbers, and every row sums to 2**bits. So what one answer makes more likely than another is a quotient
of integers, and can be decided. What is proved: no two answers that an edge joins name anything with probabilities that
differ by a factor above e^ε. `rounded` mends what a solver proposes, `truthful` needs no solver; `require_certified`
decides, from the integers.

Proofs: docs/proofs/optimal-table.md, docs/proofs/made-table.md.
"""

from __future__ import annotations

import hashlib
import math
import threading
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm._cached import cached_property
from dphmm.accounting.budget import float_above
from dphmm.errors import InvalidInput, Unprotectable
from dphmm.mechanisms.base import AnswerMechanism, Uncertified, Words, vector
from dphmm.mechanisms.table_program import checked_edges, checked_points, checked_prior, hops
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import default_bits
from dphmm.samplers.table import TableSampler
from dphmm.samplers.uniform import exp_bracket
from dphmm.states.lattice import Lattice
from dphmm.states.space import StateSpace
from dphmm.types import Bits, BoolArray, Exact, FloatArray, IntArray, Loss, States

#: Part of the digest: raise it when the same numbers would mean another law.
LAW_VERSION = 1
#: Losses are bounded to this many binary digits after the point.
_LOSS_DIGITS = 40
#: Differences of `logs` are right to much less than this.
_LOGS_WITHIN = 2.0**-30


@dataclass(frozen=True, eq=False)
class TableLaw:
    """Pr(points[z] | points[s]) = weights[s, z] / 2**bits. The points of one law may be moved together."""

    points: IntArray
    weights: NDArray[np.object_]
    bits: int

    @cached_property
    def digest(self) -> str:
        """sha256 of every integer that decides the law, the points as seen from the first of them."""
        integers = [LAW_VERSION, (self.points - self.points[0]).tolist(), self.weights.tolist(), self.bits]
        return hashlib.sha256(repr(integers).encode()).hexdigest()

    def numbers(self, y: IntArray) -> IntArray:
        """The index in ``points`` of each lattice point (m, d); -1 for a point that is not among them."""
        codes, known = np.zeros(len(y), dtype=np.int64), np.ones(len(y), dtype=np.bool_)
        for (values, pairs), axis in zip(self._ranks, np.asarray(y).T, strict=True):
            place, there = _found(values, axis)
            pair, both = _found(pairs, codes * len(values) + place)
            codes, known = pair, known & there & both
        return np.where(known, codes, -1)

    @cached_property
    def _ranks(self) -> list[tuple[IntArray, IntArray]]:
        """For each axis its values, and the pairs of them with the rank by all axes before.

        The last rank of a point is its number: points are in lexicographic order.
        """
        ranks = []
        codes = np.zeros(len(self.points), dtype=np.int64)
        for axis in self.points.T:
            values = np.unique(axis)
            joined = codes * len(values) + np.searchsorted(values, axis)
            pairs, codes = np.unique(joined, return_inverse=True)
            ranks.append((values, pairs))
        return ranks

    @cached_property
    def probabilities(self) -> FloatArray:
        """(n, n) as floats."""
        total = 1 << self.bits
        return np.array([[weight / total for weight in row] for row in self.weights.tolist()])

    @cached_property
    def logs(self) -> FloatArray:
        """Their logs (n, n), however small they are."""
        total = self.bits * math.log(2)
        return np.array([[math.log(weight) - total for weight in row] for row in self.weights.tolist()])

    def loss_between(self, a: IntArray, b: IntArray) -> Fraction:
        """A bound, at most 2**-39 too large, on the loss of any pair of rows (a[k], b[k])."""
        most = 0.0
        near: list[tuple[float, int, int]] = []
        for first, second in zip(a.tolist(), b.tolist(), strict=True):
            value = float(np.abs(self.logs[first] - self.logs[second]).max())
            most = max(most, value)
            near.append((value, first, second))
        worst = Fraction(1)
        for value, first, second in near:
            if value >= most - _LOGS_WITHIN:
                worst = max(worst, self._largest_ratio(first, second, most))
        return log_above(worst)

    def _largest_ratio(self, a: int, b: int, most: float) -> Fraction:
        """The largest quotient of two weights, one of each row, where floats find it near e^most."""
        columns = np.flatnonzero(np.abs(self.logs[a] - self.logs[b]) >= most - _LOGS_WITHIN)
        pairs = ((self.weights[a][z], self.weights[b][z]) for z in columns.tolist())
        return max((Fraction(max(x, y), min(x, y)) for x, y in pairs), default=Fraction(1))

    @cached_property
    def losses_above(self) -> FloatArray:
        """An upper bound (n, n), in floats, on the loss between every two rows."""
        spread = np.array([np.abs(self.logs - row).max(axis=1) for row in self.logs]) + _LOGS_WITHIN
        np.fill_diagonal(spread, 0.0)
        return spread

    def within(self, epsilon: Fraction) -> NDArray[np.bool_]:
        """True where two rows (n, n) lose at most ε: decided by floats where they can, elsewhere by the integers."""
        losses, limit = self.losses_above - _LOGS_WITHIN, float(epsilon)
        within = np.asarray(losses <= limit)
        ratio, digits = falling_ratio(epsilon)
        doubtful = _LOGS_WITHIN * (1.0 + limit)
        for a, b in np.argwhere(np.triu(np.abs(losses - limit) <= doubtful, 1)).tolist():
            # Where the floats are well below the limit there is no doubt.
            columns = np.flatnonzero(np.abs(self.logs[a] - self.logs[b]) >= limit - 2.0 * doubtful)
            here, there = self.weights[a, columns], self.weights[b, columns]
            steep = (here * ratio > there << digits).any() or (there * ratio > here << digits).any()
            within[a, b] = within[b, a] = not steep
        np.fill_diagonal(within, True)
        return within

    @cached_property
    def largest_loss(self) -> Fraction:
        """The same bound for any two rows."""
        most, least = self.weights.max(axis=0).tolist(), self.weights.min(axis=0).tolist()
        ratio = max(Fraction(high, low) for high, low in zip(most, least, strict=True))
        return log_above(ratio)


def log_above(ratio: Fraction) -> Fraction:
    """A multiple of 2**-40 that is not below log(ratio), for a ratio of at least 1, and at most two steps above it."""
    if ratio == 1:
        return Fraction(0)
    scale = 1 << _LOSS_DIGITS
    step = max(1, math.floor((math.log(ratio.numerator) - math.log(ratio.denominator)) * scale) - 1)
    while True:
        bound = Fraction(step, scale)
        digits = 2 * _LOSS_DIGITS + math.ceil(bound * 3 / 2)
        if exp_bracket(bound, digits)[1] * ratio <= 1 << digits:
            return bound
        step += 1


def _found(values: IntArray, wanted: IntArray) -> tuple[IntArray, NDArray[np.bool_]]:
    """The positions (m,) of numbers among sorted ones, and a mask of the numbers that are there."""
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return place, np.asarray(values[place] == wanted)


#: Rows sum to 2**(this + 3/2·ε): a neighbour's e^-ε of a row still has this many digits.
_DIGITS = 128
#: Digits of the ratio by which the weights of neighbours may fall, beside the same 3/2·ε.
_RATIO_DIGITS = 80
#: What every answer has at least, times the number of answers: far below any error of a solver, far above a unit.
_LEAST_DIGITS = 40
#: How much less than ε a program is solved for, relative and at least: more than its errors, and those of rounding.
_MARGIN, _LEAST_MARGIN = 2.0**-28, 2.0**-43


def digits_for(epsilon: Fraction) -> int:
    """Binary digits of the sum of every row."""
    return _DIGITS + math.ceil(epsilon * 3 / 2)


def falling_ratio(epsilon: Fraction) -> tuple[int, int]:
    """(ratio, digits) with e^-ε <= ratio / 2**digits < 1, as close as is worth having."""
    digits = _RATIO_DIGITS + math.ceil(epsilon * 3 / 2)
    return exp_bracket(epsilon, digits)[1], digits


def margin_of(epsilon: Fraction) -> float:
    """The margin below ε for which a program is solved: half of it for the solver, half for rounding."""
    return max(_MARGIN * float(epsilon), _LEAST_MARGIN)


def rounded(law: FloatArray, edges: IntArray, epsilon: Fraction) -> NDArray[np.object_]:
    """Whole weights (n, n) near a law in floats, in sound rows without zeros, mended where edges lose too much."""
    bits = digits_for(epsilon)
    margin = margin_of(epsilon)
    raised = _raised(law, edges, float(epsilon) - margin)
    scaled = np.ldexp(_mixed(raised, edges, float(epsilon) - margin / 2), bits)
    whole = np.array([[int(weight) for weight in row] for row in scaled.tolist()], dtype=object)
    weights = np.asarray((whole << bits) // whole.sum(axis=1, keepdims=True))
    for row in weights:
        row[int(np.argmax(row))] += (1 << bits) - sum(row)
    return weights


def _raised(law: FloatArray, edges: IntArray, epsilon: float) -> FloatArray:
    """The least law that is nowhere below a little, nor below e^-ε of what a neighbour has; its rows made sum to 1."""
    raised = np.clip(np.nan_to_num(law, nan=0.0), 2.0**-_LEAST_DIGITS / len(law), 1.0)
    for _ in range(len(law)):
        before = raised.copy()
        for a, b in ((0, 1), (1, 0)):
            np.maximum.at(raised, edges[:, a], before[edges[:, b]] * math.exp(-epsilon))
        if np.array_equal(before, raised):
            break
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def _mixed(law: FloatArray, edges: IntArray, epsilon: float) -> FloatArray:
    """The law mixed with one row for all, by as little as makes every edge lose at most ε: mostly not at all."""
    aim = math.expm1(epsilon)
    common = law.max(axis=0) / law.max(axis=0).sum()
    excess = 0.0
    for a, b in ((0, 1), (1, 0)):
        for start in range(0, len(edges), 4096):
            part = edges[start : start + 4096]
            here, there = law[part[:, a]], law[part[:, b]]
            excess = max(excess, float(((here - there - aim * there) / common).max()))
    share = excess / (aim + excess)
    return np.asarray((1.0 - share) * law + share * common)


def truthful(n: int, edges: IntArray, epsilon: Fraction) -> NDArray[np.object_]:
    """The truth but for what its neighbours need: an answer k edges away weighs e^-kε. Best where ε is large."""
    bits = digits_for(epsilon)
    ratio, digits = falling_ratio(epsilon)
    level, levels = 1 << bits, []
    for _ in range(n):
        levels.append(level)
        level = max(1, -(-(level * ratio) >> digits))
    levels.append(max(1, min(level, (1 << bits - _LEAST_DIGITS) // n)))  # what no way leads to
    weights = np.array(levels, dtype=object)[hops(n, edges)]
    for number, row in enumerate(weights):
        row[number] += (1 << bits) - sum(row)
    return weights


def randomised_response(n: int, epsilon: Fraction) -> NDArray[np.object_]:
    """Whole weights (n, n) that name the truth as often as any can where all answers are joined: two numbers.

    They are the same on every machine. Every other answer weighs w = ⌈2ᵇr / (1 + (n - 1)r)⌉ with r >= e^-ε, and the
    truth the rest, which is at most w/r.
    """
    bits, (ratio, digits) = digits_for(epsilon), falling_ratio(epsilon)
    other = -(-(ratio << bits) // ((1 << digits) + (n - 1) * ratio))
    weights = np.full((n, n), other, dtype=object)
    np.fill_diagonal(weights, (1 << bits) - (n - 1) * other)
    return weights


def require_alike(weights: NDArray[np.object_], bits: int, epsilon: Fraction) -> None:
    """`require_certified` of a table of two numbers for all pairs of answers, which one pair stands for."""
    n = len(weights)
    truth, other = (weights[0, 0], weights[0, 1]) if n > 1 else (weights[0, 0], weights[0, 0])
    alike = np.full((n, n), other, dtype=object)
    np.fill_diagonal(alike, truth)
    if not (weights == alike).all():
        raise Uncertified("a table of more than two numbers")
    digits = falling_ratio(epsilon)[1]
    ratio = exp_bracket(epsilon, digits)[1]
    if any(type(weight) is not int or weight < 1 for weight in (truth, other)) or truth + (n - 1) * other != 1 << bits:
        raise Uncertified("a table that is not one of whole numbers with one sum")
    if truth * ratio > other << digits or other * ratio > truth << digits:
        raise Uncertified("answers joined by an edge that lose more than epsilon")


def require_certified(weights: NDArray[np.object_], bits: int, edges: IntArray, epsilon: Fraction) -> None:
    """Raise Uncertified unless the weights are laws, and no edge loses more than ε whatever is named.

    Looked at again from nothing but the integers and the edges.
    """
    n = len(weights)
    if weights.shape != (n, n) or any(type(weight) is not int or weight < 1 for weight in weights.ravel().tolist()):
        raise Uncertified("a table that is not one of whole numbers, 1 or more")
    if any(sum(row) != 1 << bits for row in weights.tolist()):
        raise Uncertified("a row of another sum than the others")
    digits = falling_ratio(epsilon)[1]
    ratio = exp_bracket(epsilon, digits)[1]
    for a, b in edges.tolist():
        for here, there in ((weights[a], weights[b]), (weights[b], weights[a])):
            if (here * ratio > there << digits).any():
                raise Uncertified("answers joined by an edge that lose more than epsilon")


#: How a release names one: this, a colon, and the SHA-256 of its contents.
PREFIX = "made-table"

_known: dict[str, MadeTable] = {}
_lock = threading.Lock()


class AnswerTable(AnswerMechanism):
    """P(z | answer) for answers and outputs of one set; every pair of answers that an edge joins loses at most ε.

    A kind of table sets ``_law`` to certified integers for ``_points``, which are in lexicographic order (``_order`` of
    what was given), and for ``_edges`` between them. Nothing is impossible.
    """

    law_name: ClassVar[str | None] = "optimal-table"
    words: ClassVar[Words] = Words(
        noise="A table: every planned answer has a law of its own over the planned answers. A state is hidden among "
        "those that an edge joins it to, and less well among those that more edges lead to; a release can tell "
        "nearly for certain in which connected part of the policy it is. No release excludes a possible state for "
        "certain.",
        not_protected=(
            "The component of the policy that a subject is in: one release can tell it nearly for certain.",
        ),
    )

    _law: TableLaw
    #: Whether answers are names: then errors are right or wrong.
    _of_labels: bool = False

    def __init__(self, answers: ArrayLike, edges: ArrayLike, epsilon: Exact, frame: Lattice | None) -> None:
        super().__init__(epsilon)
        points = checked_points(answers)
        n, d = points.shape
        self._frame = Lattice.unit(d) if frame is None else frame
        if self._frame.dimension != d:
            raise InvalidInput("frame", f"{self._frame.dimension} axes", f"{d}, as the answers have")
        self._order = np.lexsort(points.T[::-1])
        self._points: IntArray = points[self._order]
        joined = np.sort(np.argsort(self._order)[checked_edges(edges, n)], axis=1)
        self._edges: IntArray = np.unique(joined, axis=0).reshape(-1, 2)

    @property
    def frame(self) -> Lattice:
        """The lattice of the answers."""
        return self._frame

    @property
    def of_labels(self) -> bool:
        """True if the answers are names."""
        return self._of_labels

    @property
    def edges(self) -> IntArray:
        """The pairs (m, 2) of points of the law that lose at most ε."""
        return self._edges

    @property
    def expected_error(self) -> float:
        """E‖named - true‖² in answer units squared, under the prior; for labels, the error rate."""
        if self._of_labels:
            return self._mean(1.0 - np.eye(len(self._points)))
        return self._mean(self._distances(self._points, 2))

    def _mean(self, costs: FloatArray) -> float:
        """The mean of costs (n, n) of naming each answer (column) where each (row) is true; all are alike likely."""
        return float((self._law.probabilities * costs).sum(axis=1).mean())

    def _distances(self, points: IntArray, power: int) -> FloatArray:
        steps = (points[:, None] - points[None]) * self._frame.pitch
        return np.asarray(np.linalg.norm(steps, axis=2) ** power)

    @property
    def law(self) -> TableLaw:
        """The integers that are sampled; its points are the answers in lexicographic order."""
        return self._law

    @property
    def largest_loss(self) -> Fraction:
        """A bound on the loss of any two answers, at most 2**-39 too large."""
        return self._law.largest_loss

    @property
    def log_normaliser(self) -> float:
        """0: `log_likelihood` is the log of a probability."""
        return 0.0

    def answer(self, images: IntArray, bits: Bits | None = None) -> IntArray:
        """Draw the named answers (m, d) for lattice answers (m, d). Raises InvalidInput for answers without a row."""
        return np.asarray(self._law.points[self._sampler.draw(self._rows(images), default_bits(bits))])

    def log_likelihood_lattice(self, z: IntArray, images: IntArray) -> FloatArray:
        """`log_likelihood` of the lattice point z (d,) for lattice answers (N, d)."""
        named = int(self._law.numbers(np.asarray(z)[None])[0])
        numbers = self._rows(images)
        return np.full(len(numbers), -np.inf) if named < 0 else np.asarray(self._law.logs[numbers, named])

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
        keys, edge_keys = (e[:, 0] * len(self._law.points) + e[:, 1] for e in (pairs, self.edges))
        return min(bound, self.epsilon) if np.isin(keys, edge_keys).all() else bound

    @cached_property
    def _losses(self) -> FloatArray:
        """The loss between every two answers (n, n), rounded up."""
        losses = self._law.losses_above
        a, b = self.edges.T
        most = np.minimum(losses[a, b], float_above(self.epsilon))
        losses[a, b], losses[b, a] = most, most
        return losses

    def _rows(self, images: IntArray) -> IntArray:
        numbers = self._law.numbers(np.asarray(images, dtype=np.int64))
        if (numbers < 0).any():
            raise InvalidInput("answers", "one that the table has no row for", "answers that the table was made for")
        return numbers

    @cached_property
    def _sampler(self) -> TableSampler:
        return TableSampler(self._law.weights, self._law.bits)


def answers_and_edges(
    policy: PolicyGraph, space: StateSpace, constraint: States | Constraint
) -> tuple[IntArray, IntArray, IntArray]:
    """The distinct answers (n, d) of the plan states, the contracted edges (m, 2) between them, and each state's row.

    A state outside the plan has the row -1. Raises InvalidInput where policy, space and constraint are not of the same
    states, and for too many answers.
    """
    if policy.n_states != space.n_states:
        got = f"{policy.n_states} states in the policy, {space.n_states} in the space"
        raise InvalidInput("policy, space", got, "the same number in both")
    within = Constraint.of(constraint, space.n_states)
    planned = within.plan_states
    points, number = np.unique(space.lattice[planned], axis=0, return_inverse=True)
    checked_points(points)
    place = np.full(space.n_states, -1, dtype=np.int64)
    place[planned] = number.reshape(-1)
    edges = place[policy.edges(within)]
    return points, edges[edges[:, 0] != edges[:, 1]], place


@dataclass(frozen=True)
class Making:
    """The loss, cost, bound and method that a table was made with. None of it has a part in the promise.

    ``loss``: "squared", "distance", "label", or "custom" if the costs came from a file. ``cost``: the mean cost of the
    table's answers under the prior, from its whole numbers. ``bound``: a lower bound on that cost for every mechanism
    that keeps ε on the table's edges, followed by any choice of an answer; 0 if unknown. ``method``: "program",
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
    """P(z | answer) in whole numbers that somebody made before any release, certified again from those numbers.

    A linear program's solution depends on solver and machine. So such a table is not solved for when a release is
    planned: its whole numbers are the mechanism, and a plan, a ledger and a statement name it by their SHA-256.

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
    making : the figures of its making, if known.
    labels : True if the answers are names.

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
        noise="A table that was made before: every answer has a law of its own over the answers. A state is hidden "
        "among those that an edge joins it to, and less well among those that more edges lead to; a release can tell "
        "nearly for certain in which connected part of the policy it is. No release excludes a possible state for "
        "certain.",
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
        parts = [str(self.epsilon), space, self._points.tolist(), self._edges.tolist(), labels, self._law.digest]
        self._digest = hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def digest(self) -> str:
        """The SHA-256 of all that decides what is released: ε, space, answers, edges and weights."""
        return self._digest

    @property
    def reference(self) -> str:
        """The name of the table in options, ledgers and statements."""
        return f"{PREFIX}:{self._digest}"

    @property
    def space_digest(self) -> str:
        """The SHA-256 of the state space whose answers are the table's."""
        return self._space

    @property
    def prior(self) -> FloatArray:
        """The probability (n,) of each answer under which errors are computed."""
        return self._prior

    @property
    def making(self) -> Making | None:
        """The figures of its making; None if unknown."""
        return self._making

    @classmethod
    def for_policy(cls, policy: PolicyGraph, space: StateSpace, epsilon: Exact, *, constraint: Constraint) -> Self:
        """Refused: a made table is one of those there are (`known_table`)."""
        raise InvalidInput("mechanism", cls.name, "the table itself, as dphmm.storage.load_table reads it")

    def for_plan(self, policy: PolicyGraph, space: StateSpace, epsilon: Fraction, constraint: Constraint) -> MadeTable:
        """The table, where it may answer a plan of this policy; else an error from public data alone.

        Raises InvalidInput for another space or ε, Unprotectable where an answer of the plan has no row, or an edge
        that the plan must keep is none of the table's.
        """
        if space.digest != self._space:
            got = f"table {self._digest[:12]}, made for another space ({self._space[:12]})"
            raise InvalidInput("mechanism", got, f"a table made for this one ({space.digest[:12]}): dphmm optimize")
        if epsilon != self.epsilon:
            got = f"table {self._digest[:12]}, made for epsilon {self.epsilon}"
            raise InvalidInput("mechanism", got, f"epsilon {self.epsilon}, or a table made for epsilon {epsilon}")
        points, edges, _ = answers_and_edges(policy, space, constraint)
        rows = self._law.numbers(points)
        missing = int((rows < 0).sum())
        if missing:
            raise Unprotectable(
                f"table {self._digest[:12]} has no row for {missing} of the {len(points)} answers of the plan: "
                "make it with the options of the release (dphmm optimize --policy, the same setting)"
            )
        needed = np.sort(rows[edges].reshape(-1, 2), axis=1)
        n = len(self._law.points)
        held = np.isin(needed[:, 0] * n + needed[:, 1], self._edges[:, 0] * n + self._edges[:, 1])
        if not held.all():
            raise Unprotectable(
                f"table {self._digest[:12]} was not made for {int((~held).sum())} of the {len(needed)} edges that the "
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
    """True if a mechanism's name is that of a made table."""
    return mechanism.startswith(f"{PREFIX}:")


def known_table(reference: str) -> MadeTable:
    """The table of that reference. Raises InvalidInput where its file has not been read."""
    with _lock:
        table = _known.get(reference)
    if table is None:
        short = reference.removeprefix(f"{PREFIX}:")[:12]
        expected = "its file with it: the policy says mechanism table.npz, or dphmm.storage.load_table(path) before"
        raise InvalidInput("mechanism", f"made table {short}, which has not been read", expected)
    return table
