"""The staircase mechanism on a lattice: constant on shells of the hull (docs/theory.md 5).

It is the lattice version of the general staircase mechanism of Kulesza, Suresh and Wang (AISTATS 2025); in one
dimension it is Geng and Viswanath's. On the lattice its optimality is not proved.

Proof: docs/proofs/staircase.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from dphmm import _kernels
from dphmm._checks import exact_number
from dphmm._kept import kept
from dphmm.errors import InvalidInput
from dphmm.mechanisms.base import FloatLaw, described_fraction, written_epsilon
from dphmm.mechanisms.expected import LawSums, law_sums
from dphmm.mechanisms.lattice import BodyMechanism, exact_product, falling_steps, fits_int64
from dphmm.samplers.body import LatticeSampler
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import Exact, FloatArray, IntArray, Loss


class Staircase(BodyMechanism):
    """P(z | answer) ∝ exp(-ε·ceil+(‖z - answer‖_K - offset)) on the lattice, ceil+(x) = max(0, ceil x).

    The loss of a pair is ε·ceil(its norm): ε for policy edges and for every pair nearer than that.

    Parameters
    ----------
    K : SensitivityHull of rank 1 or more.
    epsilon : from 2**-20 to 2**10.
    offset : in [0, 1); None takes the one of least expected error among at most 32 (public) breakpoints of
        the norm.

    Raises
    ------
    InvalidInput : a hull of rank 0, or an ε or offset out of range.
    """

    name: ClassVar[str] = "staircase"

    def __init__(self, K: SensitivityHull, epsilon: Exact, offset: Exact | None = None) -> None:
        super().__init__(K, epsilon)
        self._offset = self._best_offset() if offset is None else _checked_offset(offset)

    @classmethod
    def described(cls, K: SensitivityHull, description: Mapping[str, str]) -> Self:
        """The staircase of that epsilon and offset."""
        return cls(K, written_epsilon(description), described_fraction(description["offset"]))

    @property
    def offset(self) -> Fraction:
        return self._offset

    @kept
    def float_law(self) -> FloatLaw | None:
        """Steps beyond each facet; None on a flat body."""
        hull = self._hull
        if hull.rank < hull.dimension:
            return None
        return FloatLaw(hull.normals, hull.offsets, self._allowances, *falling_steps(float(self.epsilon)))

    def _make_sums(self) -> LawSums:
        return law_sums(self._hull, self._body, self.epsilon).staircase(self._offset)

    def describe(self) -> dict[str, str]:
        return super().describe() | {"offset": str(self._offset)}

    def _best_offset(self) -> Fraction:
        offset, sums = law_sums(self._hull, self._body, self.epsilon).best_staircase()
        self.knowing(self._body, sums)
        return offset

    def _make_sampler(self) -> LatticeSampler:
        return LatticeSampler.staircase(self._body, self.epsilon, self._offset)

    def _log_weights(self, y: IntArray) -> FloatArray:
        normals, offsets = self._hull.normals, self._hull.offsets
        if fits_int64(y, normals):
            steps = _kernels.lattice.facet_steps(y, normals, offsets, self._allowances)
        else:
            values = np.abs(exact_product(y, normals))
            steps = (values // offsets + (values % offsets > self._allowances)).max(axis=1)
        return np.asarray(-float(self.epsilon) * steps.astype(np.float64))

    @cached_property
    def _allowances(self) -> IntArray:
        g = self._offset
        return np.array([g.numerator * int(b) // g.denominator for b in self._hull.offsets], dtype=np.int64)

    def loss_of_norm(self, norm: Loss) -> Loss:
        """ε times the norm rounded up."""
        # Attained: along z = i·v the exponent rises by floor or ceil of the norm at every i, and by the norm
        # on average.
        return math.inf if isinstance(norm, float) else self.epsilon * math.ceil(norm)


def _checked_offset(offset: Exact) -> Fraction:
    value = exact_number(offset, "offset")
    if not 0 <= value < 1:
        raise InvalidInput("offset", offset, "a number from 0 up to, but not including, 1")
    return value
