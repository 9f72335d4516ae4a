"""A proposed table made integers, and the proof by which it is released.

What is proved: no two answers that an edge joins name anything with probabilities that differ by a factor above e^ε.

`rounded` mends what a solver proposes, `truthful` needs no solver; `require_certified` decides, from the integers.

Proof: docs/proofs/optimal-table.md.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dphmm.mechanisms.additive_certificate import Uncertified, falling_ratio
from dphmm.mechanisms.table_program import hops
from dphmm.samplers.exponential import exp_bracket
from dphmm.types import FloatArray, IntArray

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
