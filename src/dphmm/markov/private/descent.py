"""Minimise a smooth function: limited-memory quasi-Newton steps with backtracking, by sums of a fixed order.

The same arguments give the same bytes for any number of threads, which a linear-algebra library does not promise.

Source: Nocedal and Wright, Numerical Optimization, 2nd edition, algorithms 3.1 and 7.4.
Proof: docs/proofs/noisy-tables.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dphmm._kernels.descent import dot, downwards
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
    moves, changes, pairs = np.zeros((_MEMORY, len(start))), np.zeros((_MEMORY, len(start))), 0
    values, used, rate = [value], 1, 1.0 / max(1.0, dot(slope, slope) ** 0.5)
    while used < steps:
        direction = downwards(slope, moves, changes, pairs)
        fall = dot(slope, direction)
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
        if dot(move, change) > 1e-12 * dot(change, change):
            moves[pairs % _MEMORY], changes[pairs % _MEMORY] = move, change
            pairs += 1
        point, slope, rate = trial, new_slope, 1.0
        values.append(value)
        if values[-2] - value < tolerance:
            return Minimum(point, values, True)
    return Minimum(point, values, False)
