"""Minimise a smooth function: limited-memory quasi-Newton steps with backtracking, by sums of a fixed order.

The same arguments give the same bytes for any number of threads, which a linear-algebra library does not promise.

Source: Nocedal and Wright, Numerical Optimization, 2nd edition, algorithms 3.1 and 7.4.
Proof: docs/proofs/noisy-tables.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dphmm.types import FloatArray

#: Steps that are remembered; the share of the expected decrease that a step must reach.
_MEMORY, _DECREASE = 10, 1e-4


class Minimum(NamedTuple):
    """The last point (d,), the values at it and at the points before, and whether the last step gained too little."""

    point: FloatArray
    values: list[float]
    settled: bool


def minimised(
    cost: Callable[[FloatArray], tuple[float, FloatArray]], start: FloatArray, steps: int, tolerance: float
) -> Minimum:
    """The minimum that is reached from ``start``: a step gained less than ``tolerance``, or ``steps`` costs were asked.

    cost : gives value and gradient (d,) at a point.

    Examples
    --------
    >>> import numpy as np
    >>> found = minimised(lambda x: (float((x - 3.0) @ (x - 3.0)), 2.0 * (x - 3.0)), np.zeros(2), 50, 1e-12)
    >>> found.point.round(6).tolist(), found.settled
    ([3.0, 3.0], True)
    """
    point = start
    value, slope = cost(point)
    memory: deque[tuple[FloatArray, FloatArray, float]] = deque(maxlen=_MEMORY)
    values, used, rate = [value], 1, 1.0 / max(1.0, float(np.sqrt(_dot(slope, slope))))
    while used < steps:
        direction, factors = -slope, list[float]()
        for move, change, curvature in reversed(memory):
            factors.append(_dot(move, direction) / curvature)
            direction = direction - factors[-1] * change
        if memory:
            _, change, curvature = memory[-1]
            direction = direction * (curvature / _dot(change, change))
        for (move, change, curvature), factor in zip(memory, reversed(factors), strict=True):
            direction = direction + (factor - _dot(change, direction) / curvature) * move
        fall = _dot(slope, direction)
        while used < steps:
            trial = point + rate * direction
            value, new_slope = cost(trial)
            used += 1
            if value <= values[-1] + _DECREASE * rate * fall:
                break
            rate *= 0.5
        else:
            break
        move, change = trial - point, new_slope - slope
        if (curvature := _dot(move, change)) > 1e-12 * _dot(change, change):
            memory.append((move, change, curvature))
        point, slope, rate = trial, new_slope, 1.0
        values.append(value)
        if values[-2] - value < tolerance:
            return Minimum(point, values, True)
    return Minimum(point, values, False)


def _dot(first: FloatArray, second: FloatArray) -> float:
    return float((first * second).sum())
