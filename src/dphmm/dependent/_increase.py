"""How much a loss about one value can grow on its way to a value that depends on it.

L(α) = sup log (q·x / d·x) over ordered pairs of rows q, d of a kernel and weights x > 0 with log x_j − log x_k ≤ α
(Cao, Yoshikawa, Xiao and Xiong, ICDE 2017). For two rows the best weights are e^α on a prefix of the values sorted by
falling q/d, so L(α) is the largest log [(1 + q E) / (1 + d E)], E = e^α − 1, over the points (d, q) of all prefixes.
The lines on which that is constant all pass through (−1/E, −1/E): for every α the maximum is at a corner of the upper
left hull of the points. The hull is computed once; an evaluation looks at its corners.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphmm.accounting.leakage_step import LeakageStep
from dphmm.types import BoolArray, FloatArray

_UNIT = 2.0**-53


@dataclass(frozen=True, eq=False)
class LeakageCurve:
    """L of one kernel. ``shares`` (2, h): d and q − d of the corners; ``error`` bounds relative errors of d and q."""

    shares: FloatArray
    error: float

    @classmethod
    def of(cls, kernel: FloatArray, possible: BoolArray | None = None, error: float = 0.0) -> LeakageCurve:
        """The curve of a kernel (k, m), rows outside ``possible`` left out; ``error``: relative, of its entries."""
        rows = np.unique(kernel if possible is None else kernel[possible], axis=0)
        if len(rows) < 2:
            return cls(np.zeros((2, 1)), error)
        points = np.zeros((1, 2))
        for row in rows:
            if len(points) == 1 and points[0, 1] == 1.0:
                break
            points = _front(np.concatenate([points, _prefixes(row, rows)]))
        corners, excess = _hull(points)
        summed = (kernel.shape[1] + 2) * _UNIT
        return cls(np.array([corners[:, 0], corners[:, 1] - corners[:, 0]]), summed + 2 * error + excess)

    def __call__(self, alpha: float) -> float:
        """L(alpha), as computed; alpha may be infinite."""
        from dphmm._kernels.recursion import increase

        d, more = self.shares
        return float(increase(d, more, alpha))

    def above(self, alpha: float) -> float:
        """A number that is not below L(alpha), rounding and the error of the kernel included; at most alpha."""
        from dphmm._kernels.recursion import increase_above

        d, more = self.shares
        return float(increase_above(d, more, self.error, alpha))


class Scan:
    """The same for a kernel that is asked a few times only: all pairs of rows are looked at each time."""

    def __init__(self, kernel: FloatArray, possible: BoolArray, error: float) -> None:
        rows = kernel[possible]
        self._same = bool((rows == rows[0]).all())
        self._increase = LeakageStep(rows)
        self._error = error

    def above(self, alpha: float) -> float:
        """As of an `LeakageCurve`."""
        from dphmm._kernels.recursion import moved_by

        if alpha <= 0.0:
            return 0.0
        found = 0.0 if self._same else self._increase(alpha)
        return min(alpha, found + moved_by(self._error, alpha))


def _prefixes(row: FloatArray, others: FloatArray) -> FloatArray:
    """Points (d, q) of all prefixes of ``row`` against each of ``others``, sorted by falling quotient."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotients = np.where(row > 0.0, row / others, -1.0)
    order = np.argsort(-quotients, axis=1)
    q = np.cumsum(row[order], axis=1)
    d = np.cumsum(np.take_along_axis(others, order, axis=1), axis=1)
    return np.stack([np.minimum(d, 1.0).ravel(), np.minimum(q, 1.0).ravel()], axis=1)


def _front(points: FloatArray) -> FloatArray:
    """Points that no other beats in both coordinates, by rising d and rising q."""
    points = points[np.lexsort((-points[:, 1], points[:, 0]))]
    best = np.maximum.accumulate(points[:, 1])
    kept = np.r_[True, points[1:, 1] > best[:-1]]
    front: FloatArray = points[kept]
    return front


def _hull(front: FloatArray) -> tuple[FloatArray, float]:
    """Corners of the least concave curve over a front, and by how much rounding left a point above it (relative)."""
    corners: list[tuple[float, float]] = []
    for d, q in front.tolist():
        while len(corners) > 1 and _under(corners[-2], corners[-1], (d, q)):
            corners.pop()
        corners.append((d, q))
    hull = np.array(corners)
    over = np.interp(front[:, 0], hull[:, 0], hull[:, 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(front[:, 1] > over, front[:, 1] / over - 1.0, 0.0)
    return hull, float(excess.max()) + 8 * _UNIT


def _under(first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]) -> bool:
    across = (middle[0] - first[0]) / (last[0] - first[0])
    return middle[1] <= first[1] + (last[1] - first[1]) * across
