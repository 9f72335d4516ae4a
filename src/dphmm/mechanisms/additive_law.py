"""An additive law in integers: a weight for every lattice point near the origin, and geometric shells beyond.

On the lattice Zᵏ of a body with norm N: ``weights`` where N(y) <= ``radius``, and ``tail``·qʲ⁻¹ on the shell radius +
j - 1 < N(y) <= radius + j for j = 1, 2, .., with q = ``ratio`` / 2**``bits``. All of it are integers, so what one
answer makes more likely than another is a quotient of integers, and can be decided.

Proof: docs/proofs/optimal-additive.md.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from dphmm.samplers.rows import Facets
from dphmm.types import FloatArray, IntArray

#: Part of the digest: raise it when the same numbers would mean another law.
LAW_VERSION = 1


@dataclass(frozen=True, eq=False)
class AdditiveLaw:
    """The weights of additive noise: a table near the origin, and shells that fall by one ratio beyond it.

    ``points`` (n, k) are all y with N(y) <= radius, in lexicographic order; ``weights`` (n) and ``tail`` positive
    integers; 0 < ratio < 2**bits.
    """

    facets: Facets
    radius: Fraction
    points: IntArray
    weights: tuple[int, ...]
    tail: int
    ratio: int
    bits: int

    @cached_property
    def digest(self) -> str:
        """sha256 of every integer that decides the law."""
        told = [LAW_VERSION, self.facets.normals.tolist(), self.facets.offsets, str(self.radius), self.points.tolist()]
        numbers = [self.weights, self.tail, self.ratio, self.bits]
        return hashlib.sha256(repr([*told, *numbers]).encode()).hexdigest()

    @property
    def q(self) -> Fraction:
        """What a shell weighs to the one before it."""
        return Fraction(self.ratio, 1 << self.bits)

    @cached_property
    def inside(self) -> int:
        """The sum of the weights near the origin."""
        return sum(self.weights)

    @cached_property
    def outside(self) -> Fraction:
        """The sum of all shells, exactly: their sizes are a polynomial in j of degree k - 1 (dilations.md)."""
        return self.tail * summed(self._sizes[: self.rank], self.q)

    @property
    def has_whole_mass(self) -> bool:
        """Whether the next two shells have the sizes that ``outside`` takes them to have."""
        steps = np.diff(np.array(self._sizes, dtype=object), n=self.rank)
        return not np.any(steps)

    @cached_property
    def _sizes(self) -> list[int]:
        return [self.facets.shell(self.radius, j).size for j in range(1, self.rank + 3)]

    @property
    def rank(self) -> int:
        return int(self.points.shape[1])

    def shells(self, y: IntArray) -> IntArray:
        """j of points (n, k): 0 near the origin."""
        return self.facets.steps(y, self.radius)

    @cached_property
    def log_mass(self) -> float:
        """log of the sum of `log_weights`."""
        return log(self.inside + self.outside) - self._log_centre

    def log_weights(self, y: IntArray) -> FloatArray:
        """log of the weight of points (n, k) to that of the origin."""
        shells = self.shells(y)
        falls = self._log_tail + (shells.astype(np.float64) - 1.0) * log(self.q)
        near = shells == 0
        falls[near] = self._logs[self.numbers(y[near].astype(np.int64))]
        return np.asarray(falls - self._log_centre)

    def numbers(self, y: IntArray) -> IntArray:
        """Which of ``points`` each of (n, k) points near the origin is."""
        return np.asarray(self._table[tuple((y + self._reach).T)])

    @cached_property
    def _reach(self) -> IntArray:
        return np.asarray(np.abs(self.points).max(axis=0))

    @cached_property
    def _table(self) -> IntArray:
        table = np.full(tuple(2 * self._reach + 1), -1, dtype=np.int64)
        table[tuple((self.points + self._reach).T)] = np.arange(len(self.points))
        return table

    @cached_property
    def _logs(self) -> FloatArray:
        return np.array([math.log(w) for w in self.weights])

    @cached_property
    def _log_tail(self) -> float:
        return math.log(self.tail)

    @cached_property
    def _log_centre(self) -> float:
        return float(self._logs[self.numbers(np.zeros((1, self.rank), dtype=np.int64))[0]])

    def mean(self, near: FloatArray, shells: Sequence[float]) -> float:
        """The mean of a function, from its values (n,) at ``points`` and its sums over the first shells.

        The sums are a polynomial in j, of the degree that they decide.
        """
        total = math.ceil(self.inside + self.outside)
        weights = np.array([w / total for w in self.weights])
        return math.fsum(weights * near) + self.tail / total * float(summed([Fraction(s) for s in shells], self.q))


def summed(first: Sequence[Any], q: Fraction) -> Fraction:
    """sum over i >= 0 of qⁱ·P(i), for the polynomial with these values P(0), .., P(degree).

    By Newton: P(i) = sum of Δᵐ·C(i, m), and qⁱ·C(i, m) sums to qᵐ / (1 - q)ᵐ⁺¹.
    """
    differences, row = [], [Fraction(value) for value in first]
    while row:
        differences.append(row[0])
        row = [b - a for a, b in itertools.pairwise(row)]
    return sum((d * q**m / (1 - q) ** (m + 1) for m, d in enumerate(differences)), Fraction(0))


def log(x: Fraction | int) -> float:
    """log of a positive rational, however large its integers."""
    value = Fraction(x)
    near = value.numerator - value.denominator
    if abs(near) << 20 < value.denominator:
        return math.log1p(near / value.denominator)
    return math.log(value.numerator) - math.log(value.denominator)
