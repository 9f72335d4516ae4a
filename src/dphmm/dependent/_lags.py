"""What one tuple of a stationary chain says about another, for every distance in time between them.

Proof: docs/proofs/dependent-dpm.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import count

import numpy as np

from dphmm.accounting.leakage_step import FAR, Corners
from dphmm.types import BoolArray, FloatArray


def laws_by_lag(matrix: FloatArray, possible: BoolArray, start: FloatArray) -> Iterator[FloatArray]:
    """Means (k, m) of ``start`` (n, m) after 1, 2, … moves by ``matrix`` (n, n), given each possible value."""
    rows = start
    while True:
        rows = matrix @ rows
        yield rows[possible]


class LagCurves:
    """L(α) of the laws after 1, 2, … moves by ``matrix`` (n, n), given each ``possible`` value.

    Of each law is kept what settles the next α, and not the law itself.
    """

    def __init__(self, matrix: FloatArray, possible: BoolArray) -> None:
        self._matrix, self._possible = matrix, possible
        self._corners: list[Corners] = []
        self._laws, self._rows = self._anew(), (0, matrix)

    def __call__(self, alpha: float) -> Iterator[float]:
        """L(alpha) at every lag from 1 on."""
        return (self.at(lag, alpha) for lag in count(1))

    def at(self, lag: int, alpha: float) -> float:
        """L(alpha) of the law after ``lag`` moves, as computed; alpha may be infinite."""
        if alpha <= 0:
            return 0.0
        if FAR < alpha < math.inf:
            return min(alpha, self.at(lag, FAR) + (alpha - FAR), self.at(lag, math.inf))
        while len(self._corners) < lag:
            self._corners.append(Corners())
        corners, s, e = self._corners[lag - 1], -math.expm1(-alpha), math.exp(-alpha)
        rho, corner, sure = corners.best(s, e)
        if not sure:
            rho, corner = self._scanned(lag, s, e, (rho, *corner))
            corners.learn(rho, corner)
        return min(alpha, math.log1p(rho))

    def _scanned(
        self, lag: int, s: float, e: float, known: tuple[float, float, float]
    ) -> tuple[float, tuple[float, float]]:
        from dphmm._kernels.leakage import worst_of_all

        rows = self._law(lag)
        rho, gain, below = worst_of_all(rows, rows.T.copy(), s, e, known)
        return float(rho), (float(gain), float(below))

    def _law(self, lag: int) -> FloatArray:
        if self._rows[0] > lag:
            self._laws, self._rows = self._anew(), (0, self._matrix)
        while self._rows[0] < lag:
            self._rows = self._rows[0] + 1, next(self._laws)
        return self._rows[1]

    def _anew(self) -> Iterator[FloatArray]:
        return laws_by_lag(self._matrix, self._possible, np.eye(len(self._matrix)))
