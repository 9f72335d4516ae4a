"""A table in integers, and its proof: for every answer of a set, how often each answer of the set is named.

``points`` (n, d) are distinct lattice points in lexicographic order; ``weights`` (n, n) are whole numbers, and every
row sums to 2**bits. So what one answer makes more likely than another is a quotient of integers, and can be decided.

What is proved: no two answers that an edge joins name anything with probabilities that differ by a factor above e^ε.

`rounded` mends what a solver proposes, `truthful` needs no solver; `require_certified` decides, from the integers.

Proof: docs/proofs/optimal-table.md.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphmm._cached import cached_property
from dphmm.mechanisms.additive_law import Uncertified, falling_ratio
from dphmm.mechanisms.table_program import hops
from dphmm.samplers.uniform import exp_bracket
from dphmm.types import FloatArray, IntArray

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
        told = [LAW_VERSION, (self.points - self.points[0]).tolist(), self.weights.tolist(), self.bits]
        return hashlib.sha256(repr(told).encode()).hexdigest()

    def numbers(self, y: IntArray) -> IntArray:
        """Which of ``points`` each of lattice points (m, d) is; -1 for none of them."""
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
        found = []
        codes = np.zeros(len(self.points), dtype=np.int64)
        for axis in self.points.T:
            values = np.unique(axis)
            joined = codes * len(values) + np.searchsorted(values, axis)
            pairs, codes = np.unique(joined, return_inverse=True)
            found.append((values, pairs))
        return found

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
        """What every two rows (n, n) lose, in floats that are not below it."""
        spread = np.array([np.abs(self.logs - row).max(axis=1) for row in self.logs]) + _LOGS_WITHIN
        np.fill_diagonal(spread, 0.0)
        return spread

    def within(self, epsilon: Fraction) -> NDArray[np.bool_]:
        """Which two rows (n, n) lose at most ε: as floats say where they can, elsewhere by the integers."""
        losses, limit = self.losses_above - _LOGS_WITHIN, float(epsilon)
        found = np.asarray(losses <= limit)
        ratio, digits = falling_ratio(epsilon)
        doubtful = _LOGS_WITHIN * (1.0 + limit)
        for a, b in np.argwhere(np.triu(np.abs(losses - limit) <= doubtful, 1)).tolist():
            # Where the floats are well below the limit there is no doubt.
            columns = np.flatnonzero(np.abs(self.logs[a] - self.logs[b]) >= limit - 2.0 * doubtful)
            here, there = self.weights[a, columns], self.weights[b, columns]
            steep = (here * ratio > there << digits).any() or (there * ratio > here << digits).any()
            found[a, b] = found[b, a] = not steep
        np.fill_diagonal(found, True)
        return found

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
    """Where (m,) numbers stand among sorted ones, and which of them stand there."""
    place = np.minimum(np.searchsorted(values, wanted), len(values) - 1)
    return place, np.asarray(values[place] == wanted)


#: Rows sum to 2**(this + 3/2·ε): a neighbour's e^-ε of a row still has this many digits.
_DIGITS = 128
#: What every answer has at least, times the number of answers: far below any error of a solver, far above a unit.
_LEAST_DIGITS = 40
#: How much less than ε a program is solved for, relative and at least: more than its errors, and those of rounding.
_MARGIN, _LEAST_MARGIN = 2.0**-28, 2.0**-43


def digits_for(epsilon: Fraction) -> int:
    """Binary digits of the sum of every row."""
    return _DIGITS + math.ceil(epsilon * 3 / 2)


def margin_of(epsilon: Fraction) -> float:
    """How much less than ε to solve a program for: half of it is for the solver, half for rounding."""
    return max(_MARGIN * float(epsilon), _LEAST_MARGIN)


def rounded(law: FloatArray, edges: IntArray, epsilon: Fraction) -> NDArray[np.object_]:
    """Whole weights (n, n) near a law in floats: of sound rows, without zeros, mended where edges lose too much."""
    bits = digits_for(epsilon)
    margin = margin_of(epsilon)
    raised = _raised(law, edges, float(epsilon) - margin)
    scaled = np.ldexp(_mixed(raised, edges, float(epsilon) - margin / 2), bits)
    given = np.array([[int(weight) for weight in row] for row in scaled.tolist()], dtype=object)
    weights = np.asarray((given << bits) // given.sum(axis=1, keepdims=True))
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
