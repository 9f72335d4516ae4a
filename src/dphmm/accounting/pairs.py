"""Pairs of states: what a release loses between them, and which pairs matter for some policy edges.

Proof: docs/proofs/policy-leakage.md.
"""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dphmm.accounting.rounding import float_above
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray, IntArray, LosesByAnswers, PairLosses, ReleasePlan

#: No level: the pair is never needed.
NEVER = np.iinfo(np.int32).max


def losses_between(step: Any, i: IntArray, j: IntArray, n: int) -> FloatArray:
    """What one step loses for the pairs (i[k], j[k]): a Plan, a matrix (n, n), `PairLosses`, or None for a skip."""
    if step is None:
        return np.zeros(len(i))
    if hasattr(step, "loss_between"):
        found = np.asarray(cast(PairLosses, step).loss_between(i, j), dtype=np.float64)
    elif hasattr(step, "body_of") and hasattr(step, "image"):
        found = _of_plan(cast(ReleasePlan, step), i, j, n)
    else:
        found = _of_matrix(step, n)[i, j]
    if found.shape != i.shape or not (found >= 0).all():
        raise InvalidInput("losses", f"shape {found.shape}, or a negative or missing loss", "losses of at least 0")
    return np.where(i == j, 0.0, found)


def largest_loss(step: Any) -> float:
    """The largest loss of any pair of states at one step, where it is known; else ``math.inf``."""
    if step is None:
        return 0.0
    cost = getattr(step, "cost", None)
    if cost is not None:
        return float_above(cost)
    if hasattr(step, "loss_between"):
        return math.inf
    return float(np.max(step, initial=0.0))


def levels(structure: Any, edges: IntArray, most: int, enough: int) -> tuple[NDArray[np.int32], int]:
    """(n, n): after how many moves a pair is first needed, NEVER if not; and the last level that is asked for exactly.

    The edges are needed at once, then pairs of states that the ends of needed pairs can move to. Up to ``most`` moves;
    once more than ``enough`` pairs are needed, the level that made them too many is the last, and not exact.
    """
    from dphmm._kernels.pairs import next_pairs

    n = int(structure.shape[0])
    level = np.full((n, n), NEVER, dtype=np.int32)
    level[edges[:, 0], edges[:, 1]] = level[edges[:, 1], edges[:, 0]] = 0
    first, second = edges[:, 0].copy(), edges[:, 1].copy()
    total = len(first)
    for number in range(1, most + 1):
        first, second = next_pairs(structure.indptr, structure.indices, first, second, level, number)
        total += len(first)
        if len(first) == 0:
            break
        if total > enough:
            return level, number - 1
    return level, most


def _of_matrix(step: Any, n: int) -> FloatArray:
    try:
        matrix = np.asarray(step, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("losses", type(step).__name__, f"plans, or matrices ({n}, {n})") from None
    if matrix.shape != (n, n):
        raise InvalidInput("losses", f"shape {matrix.shape}", f"({n}, {n})")
    if not np.array_equal(matrix, matrix.T):
        raise InvalidInput("losses", "a matrix that is not symmetric", "the same loss for (i, j) and (j, i)")
    return matrix


def _of_plan(plan: ReleasePlan, i: IntArray, j: IntArray, n: int) -> FloatArray:
    """By difference of answers, where one law answers both; unbounded where two do."""
    image, number = np.asarray(plan.image), _laws(plan)[plan.body_of]
    if len(image) != n:
        raise InvalidInput("losses", f"a plan of {len(image)} states", f"one of {n}")
    found = np.full(len(i), math.inf)
    for law in np.unique(number).tolist():
        both = np.flatnonzero((number[i] == law) & (number[j] == law))
        if len(both) == 0:
            continue
        mechanism = plan.mechanisms[law]
        if isinstance(mechanism, LosesByAnswers):
            found[both] = mechanism.losses_between(image[i[both]], image[j[both]])
            continue
        differences, which = np.unique(image[i[both]] - image[j[both]], axis=0, return_inverse=True)
        losses = np.array([float_above(mechanism.loss_lattice(v)) for v in differences])
        found[both] = losses[which.ravel()]
    return found


def _laws(plan: ReleasePlan) -> IntArray:
    """For each mechanism the first that is equal to it."""
    known: dict[tuple[Any, ...], int] = {}
    numbers = []
    for position, mechanism in enumerate(plan.mechanisms):
        hull = getattr(getattr(mechanism, "hull", None), "digest", id(mechanism))
        numbers.append(known.setdefault((hull, *sorted(mechanism.describe().items())), position))
    return np.array(numbers, dtype=np.int64)
