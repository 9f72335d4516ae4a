"""The law of a sampler's accepted attempts, from the numbers that the sampler itself compares.

A level j is proposed with weight exp(-rate·j)·|Box_j| and a point of its box uniformly; x is kept where every
|normal·x| <= stride·j·offset + allowance, and then with probability exp(-xi(x)). So x comes out with a probability
proportional to exp(-rate·j(x) - xi(x)), j(x) the least level that keeps it, provided that Box_j holds every point that
level j keeps: otherwise points that another answer can give are never drawn, and no finite eps holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

from exactness.exact_linear import dot, independent_rows, inverse
from exactness.exact_norm import widest

#: Levels whose boxes are compared with the body they must hold.
_LEVELS = (0, 1, 2, 7, 1000)


@dataclass(frozen=True)
class SampledLaw:
    """What the sampler of a mechanism does, in exact fractions."""

    sampler: Any

    @cached_property
    def _chosen(self) -> tuple[list[int], list[list[int]], int]:
        embedding = self.sampler._body.embedding
        rows = independent_rows(embedding)
        return rows, *inverse([embedding[i] for i in rows])

    def coordinates_of(self, v: Sequence[int]) -> list[int] | None:
        """The integers x with embedding·x = v; None where there are none."""
        rows, adjugate, determinant = self._chosen
        scaled = [dot(line, [v[i] for i in rows]) for line in adjugate]
        if any(x % determinant for x in scaled):
            return None
        x = [value // determinant for value in scaled]
        return x if all(dot(row, x) == c for row, c in zip(self.sampler._body.embedding, v, strict=True)) else None

    def exponent(self, v: Sequence[int]) -> Fraction | None:
        """rate·j(v) + xi(v); None where the sampler never gives v."""
        x = self.coordinates_of(v)
        if x is None:
            return None
        values = [abs(dot(row, x)) for row in self.sampler._body.normals]
        refusal = Fraction(0) if self.sampler._last is None else self.sampler._last_exponent(values)
        return self.sampler._levels.rate * self.least_level(values) + refusal

    def least_level(self, values: Sequence[int]) -> int:
        """The least level that keeps a point with these |normals·x|."""
        level = 0
        for value, b, allowed in zip(values, self.sampler._body.offsets, self.sampler._allowances, strict=True):
            level = max(level, -((allowed - value) // (self.sampler._stride * b)))
        return level

    def boxes_hold_the_body(self) -> bool:
        """Whether Box_j reaches as far as the points that level j keeps, along every axis."""
        body = self.sampler._body
        for axis in range(body.rank):
            along = [int(i == axis) for i in range(body.rank)]
            reach = widest(body.normals, body.offsets, along)
            for level in _LEVELS:
                radius = self.sampler._stride * level + self._offset
                if self.sampler._levels.half_widths(level)[axis] < (radius * reach).__floor__():
                    return False
        return True

    @property
    def _offset(self) -> Fraction:
        """The largest offset that no allowance contradicts: level j keeps at most radius stride·j + this."""
        pairs = zip(self.sampler._allowances, self.sampler._body.offsets, strict=True)
        return max(Fraction(allowed, b) for allowed, b in pairs)
