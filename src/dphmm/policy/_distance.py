"""Distances between lattice points, compared exactly: floats only make shortlists, integers decide.

With pitch p_j (a decimal) and lattice steps v_j, the squared distance is sum (p_j v_j)^2. Scaling by the
common denominator of the pitches makes every p_j an integer weight.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm.types import BoolArray, FloatArray, IntArray

#: Squared float distances are trusted outside this relative band around the bound.
SHORTLIST = 1e-9
_INT64 = 2**62


@dataclass(frozen=True)
class LatticeDistance:
    """The metric of a lattice: distance = sqrt(sum (weights_j * steps_j)^2) * unit."""

    weights: tuple[int, ...]
    unit: Fraction

    @classmethod
    def of(cls, pitch: tuple[Fraction, ...]) -> LatticeDistance:
        common = math.lcm(*(p.denominator for p in pitch))
        integers = [int(p * common) for p in pitch]
        divisor = math.gcd(*integers)
        return cls(tuple(i // divisor for i in integers), Fraction(divisor, common))

    def fits(self, spans: Sequence[int]) -> bool:
        """Whether squared distances of steps up to ``spans`` fit into 64 bits."""
        return self.squared([max(1, span) for span in spans]) < _INT64

    def squared(self, steps: Any) -> int:
        """The squared distance of one difference, an integer."""
        return sum((w * int(v)) ** 2 for w, v in zip(self.weights, steps, strict=True))

    def largest_square(self, radius: Fraction, closed: bool) -> int:
        """The largest squared distance that counts as within ``radius`` (<= when closed, < when open)."""
        bound = (radius / self.unit) ** 2
        return math.floor(bound) if closed else math.ceil(bound) - 1

    def within(self, steps: IntArray, largest: int) -> BoolArray:
        """Which differences (m, d) have a squared distance of at most ``largest``, exactly."""
        if len(steps) == 0:
            return np.zeros(0, dtype=np.bool_)
        spans = self._spans(steps)
        if self.squared(spans) <= largest:
            return np.ones(len(steps), dtype=np.bool_)
        if self.fits(spans):
            return np.asarray(self.squares(steps) <= largest)
        square = self.approximate(steps)
        inside = square <= largest
        for k in np.flatnonzero(np.abs(square - largest) <= SHORTLIST * square):
            inside[k] = self.squared(steps[k]) <= largest
        return inside

    def squares(self, steps: IntArray) -> Any:
        """Squared distances of differences (..., d), in 64 bits where they fit, in Python integers where not."""
        exact = steps if self.fits(self._spans(steps)) else steps.astype(object)
        return sum((exact[..., j] * weight) ** 2 for j, weight in enumerate(self.weights))

    def approximate(self, steps: IntArray) -> FloatArray:
        """Squared distances of differences (m, d) in float64."""
        scaled = steps.astype(np.float64) * np.array([float(w) for w in self.weights])
        square: FloatArray = (scaled**2).sum(axis=1)
        return square

    @staticmethod
    def _spans(steps: IntArray) -> tuple[int, ...]:
        return tuple(int(np.abs(steps[..., j]).max(initial=0)) for j in range(steps.shape[-1]))
