"""The direction of a limited-memory quasi-Newton step, by sums of a fixed order.

Source: Nocedal and Wright, Numerical Optimization, 2nd edition, algorithm 7.4.
"""

from __future__ import annotations

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import FloatArray


@kernel
def dot(first: FloatArray, second: FloatArray) -> float:
    """The inner product of two vectors (d,)."""
    total = 0.0
    for k in range(len(first)):
        total += first[k] * second[k]
    return total


@kernel
def downwards(slope: FloatArray, moves: FloatArray, changes: FloatArray, pairs: int) -> FloatArray:
    """The step (d,) from a point with this ``slope`` (d,).

    moves, changes : (memory, d) earlier steps, and the change of the slope in each. Row ``pairs`` modulo memory is
        written next; the last ``pairs`` of them count.
    """
    memory = len(moves)
    direction, factors, curvatures = -slope, np.zeros(memory), np.ones(memory)
    for age in range(1, min(pairs, memory) + 1):
        k = (pairs - age) % memory
        curvatures[k] = dot(moves[k], changes[k])
        factors[k] = dot(moves[k], direction) / curvatures[k]
        direction -= factors[k] * changes[k]
    if pairs > 0:
        k = (pairs - 1) % memory
        direction *= curvatures[k] / dot(changes[k], changes[k])
    for age in range(min(pairs, memory), 0, -1):
        k = (pairs - age) % memory
        direction += (factors[k] - dot(changes[k], direction) / curvatures[k]) * moves[k]
    return direction
