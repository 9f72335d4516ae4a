"""The exact loss of noise with weights of its own: decided from its integers, point by point.

One required vector is decided at a time.

Written apart from `dphmm.mechanisms`: weights are a dictionary, points are found by trying a box, quotients are
fractions. Beyond the window the weight is tail·qʲ⁻¹ where radius + j - 1 < N <= radius + j; two points there whose
difference has norm at most 1 are at most one shell apart, so they lose at most log 1/q.

Proof: docs/proofs/optimal-additive.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

Point = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Weights:
    """The weights of one mechanism on the lattice Zᵏ of the body |normals·y| <= offsets."""

    epsilon: Fraction
    normals: tuple[Point, ...]
    offsets: Point
    near: dict[Point, int]
    radius: Fraction
    tail: int
    q: Fraction

    @classmethod
    def of(cls, mechanism: Any) -> Weights:
        """Read off a mechanism."""
        law, hull = mechanism.law, mechanism.hull
        normals = tuple(tuple(row) for row in hull.normals.tolist())
        near = dict(zip(map(tuple, law.points.tolist()), law.weights, strict=True))
        numbers = (law.radius, law.tail, Fraction(law.ratio, 2**law.bits))
        return cls(mechanism.epsilon, normals, tuple(hull.offsets.tolist()), near, *numbers)

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for equal weights."""
        return self.epsilon, self.radius, self.tail, self.q, frozenset(self.near.items())

    def norm(self, y: Sequence[int]) -> Fraction:
        """The norm of a point of the lattice."""
        values = (abs(sum(a * c for a, c in zip(row, y, strict=True))) for row in self.normals)
        return max(Fraction(value, offset) for value, offset in zip(values, self.offsets, strict=True))

    def weight(self, y: Point) -> Fraction:
        """How much a noise weighs."""
        found = self.near.get(y)
        if found is not None:
            return Fraction(found)
        return self.tail * self.q ** (math.ceil(self.norm(y) - self.radius) - 1)

    def exponent(self, y: Point) -> float:
        """-log of its weight to that of no noise."""
        ratio = self.weight(y) / self.near[(0,) * len(y)]
        return math.log(ratio.denominator) - math.log(ratio.numerator)

    def faults(self) -> Iterator[str]:
        """What is wrong with the weights: too steep anywhere, or not of every point they should be of."""
        if not 0 < self.q < 1 or self.q < _exp_above(self.epsilon):
            yield "the shells of the noise fall by more than e^-epsilon"
        if self.tail <= 0 or any(weight <= 0 for weight in self.near.values()):
            yield "a noise without weight"
        window = {y for y in self._box(self.radius) if self.norm(y) <= self.radius}
        if window != set(self.near):
            yield "weights of other noises than those near the origin"
            return
        steep = next((y for y in self.near if self._too_steep(y)), None)
        if steep is not None:
            yield f"noises that differ by a required difference lose more than epsilon, one of them {list(steep)}"

    def steps(self, v: Point, most: int) -> int | None:
        """The least m for which answers that differ by v lose at most m·log 1/q over every point of a window.

        None where the window would have more than ``most`` points.
        """
        size = self.norm(v)
        reach = self.radius + 2 * (1 + size.denominator)
        if self._count(reach) > most:
            return None
        worst = max((self._apart(y, v) for y in self._box(reach)), default=Fraction(1))
        m, bound = 0, Fraction(1)
        while bound < worst:
            m, bound = m + 1, bound / self.q
        return m

    def _apart(self, y: Point, v: Point) -> Fraction:
        here, there = self.weight(y), self.weight(tuple(a + b for a, b in zip(y, v, strict=True)))
        return max(here / there, there / here)

    def _too_steep(self, y: Point) -> bool:
        here = self.near[y]
        for step in self._body:
            there = tuple(a + b for a, b in zip(y, step, strict=True))
            other = self.near.get(there)
            if other is None:
                other = self.tail if self.norm(there) <= self.radius + 1 else 0
            if here * self.q > other or other * self.q > here:
                return True
        return False

    @cached_property
    def _body(self) -> list[Point]:
        return [y for y in self._box(Fraction(1)) if any(y) and self.norm(y) <= 1]

    def _box(self, radius: Fraction) -> Iterator[Point]:
        return itertools.product(*(range(-h, h + 1) for h in self._half(radius)))

    def _count(self, radius: Fraction) -> int:
        return math.prod(2 * h + 1 for h in self._half(radius))

    def _half(self, radius: Fraction) -> list[int]:
        """Bounds of the coordinates of points within a radius, from two facets that meet: by Cramer's rule."""
        if len(self.normals[0]) == 1:
            return [min(math.floor(radius * b / abs(n[0])) for n, b in zip(self.normals, self.offsets, strict=True))]
        pairs = [
            ((n, b), (m, c))
            for (n, b), (m, c) in itertools.combinations(list(zip(self.normals, self.offsets, strict=True)), 2)
            if n[0] * m[1] != n[1] * m[0]
        ]
        return [
            min(
                math.floor(radius * Fraction(abs(m[1 - i]) * b + abs(n[1 - i]) * c, abs(n[0] * m[1] - n[1] * m[0])))
                for (n, b), (m, c) in pairs
            )
            for i in (0, 1)
        ]


def _exp_above(epsilon: Fraction) -> Fraction:
    """A rational that is not below e^-ε, by less than 2**-60 of it: 1 / (a partial sum of e^ε, which is below it)."""
    term = total = Fraction(1)
    n, scale = 0, 2 ** (96 + 2 * math.ceil(epsilon))
    while term * 2**90 > total:
        n += 1
        term = Fraction(math.floor(term * epsilon / n * scale), scale)
        total += term
    return 1 / total
