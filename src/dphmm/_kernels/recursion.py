"""How much a loss grows from tuple to tuple of a chain: the corners of one curve looked at again and again.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.compiled import kernel

#: A rounding, outwards: of a sum of two floats.
OUTWARD = 1.0 + 2.0**-50
_UNIT = 2.0**-53
#: Weights further apart than this underflow; L rises by no more than its argument does.
FAR = 600.0


@kernel
def steepest(d: NDArray[np.float64], more: NDArray[np.float64], weight: float, heavy: float) -> float:
    """The largest quotient minus 1 over corners (d, q = d + more).

    A search would be led astray by corners a rounding apart: all are looked at.
    """
    most = 0.0
    for k in range(len(d)):
        below = d[k] * heavy + weight
        if below > 0.0:
            most = max(most, more[k] / below * heavy)
        elif more[k] > 0.0:
            return math.inf
    return most


@kernel
def increase(d: NDArray[np.float64], more: NDArray[np.float64], alpha: float) -> float:
    """L(alpha) as computed; alpha may be infinite."""
    if alpha <= 0.0:
        return 0.0
    near = math.log1p(steepest(d, more, math.exp(-min(alpha, FAR)), -math.expm1(-min(alpha, FAR))))
    if alpha <= FAR:
        return near
    limit = math.log1p(steepest(d, more, 0.0, 1.0))
    return limit if alpha == math.inf else min(near + (alpha - FAR), limit)


@kernel
def moved_by(error: float, alpha: float) -> float:
    """By how much L(alpha) moves at most when all entries move by a relative ``error``."""
    return 2.0 * error * (math.expm1(alpha) if alpha < 0.69 else 1.0)


@kernel
def increase_above(d: NDArray[np.float64], more: NDArray[np.float64], error: float, alpha: float) -> float:
    """A number that is not below L(alpha), rounding and relative errors of the kernel included; at most alpha."""
    if alpha <= 0.0:
        return 0.0
    return min(alpha, increase(d, more, alpha) * (1.0 + 16 * _UNIT) + moved_by(error, alpha))


@kernel
def carry(
    d: NDArray[np.float64],
    more: NDArray[np.float64],
    error: float,
    single: NDArray[np.float64],
    carried: NDArray[np.float64],
    first: int,
    last: int,
    step: int,
) -> None:
    """Fill ``carried`` from tuple ``first`` to ``last`` by ``step``, along one kernel throughout.

    It says what each tuple loses through the tuple before it.
    """
    known, found = math.nan, 0.0
    for i in range(first, last + step, step):
        before = i - step
        message = single[before] + carried[before]
        if message != known:
            known = message
            found = increase_above(d, more, error, message * OUTWARD if carried[before] != 0.0 else message)
        carried[i] = found
