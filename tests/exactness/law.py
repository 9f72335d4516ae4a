"""The log-ratios of the mechanism that a plan really samples, derived here and nowhere else.

A body gives a norm N, rational on lattice vectors. On answer + (lattice of the span) the probability of z is
proportional to exp(-E(z - answer)), with the exponent

    discrete K-norm      E(x) = eps·N(x); discrete Laplace too, of a cross-polytope
    staircase, offset g  E(x) = eps·max(0, ceil(N(x) - g))

The normaliser sums over the same set of differences for every answer, so it cancels in a ratio. The worst log-ratio of
answers that differ by v is the largest step E(x + v) - E(x):

    K-norm     eps·N(v): at most by the triangle inequality, and E(v) - E(0) is just that;
    staircase  eps·m, m = ceil N(v): at most because ceil of two numbers that differ by at most m differ by at most m.
               With x_i = i·v the exponents are max(0, ceil(i·N(v) - g)); were every step below m, the i-th would be at
               most i(m - 1), and the first i above g / (N(v) - m + 1) is more: `reached_at` returns it.

Off the lattice of the span one of the two answers cannot give z: the ratio is unbounded (None).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from exactness.exact_norm import FacetBody

KNOWN = KNORM, STAIRCASE, LAPLACE, CONSTANT = "discrete-knorm", "staircase", "discrete-laplace", "constant"
#: Laplace noise is the K-norm mechanism of a body of its own, which is what is read off.
GRADED = KNORM, LAPLACE


@dataclass(frozen=True)
class Law:
    """What one mechanism of a plan does: a body, a kind, eps and (staircase) an offset."""

    kind: str
    epsilon: Fraction
    offset: Fraction
    body: FacetBody

    @classmethod
    def of(cls, mechanism: Any) -> Law:
        """Read off a mechanism: its integers and its two parameters, nothing that it computes."""
        kind = mechanism.name
        if kind not in KNOWN:
            raise ValueError(f"no law is known here for the mechanism {kind}")
        offset = mechanism.offset if kind == STAIRCASE else Fraction(0)
        return cls(kind, mechanism.epsilon, offset, facet_body(mechanism.hull))

    def exponent(self, x: Sequence[int]) -> Fraction | None:
        """-log of the unnormalised probability of noise x; None where it is 0."""
        if self.kind == CONSTANT:
            return None if any(x) else Fraction(0)
        norm = self.body.norm(x)
        if norm is None:
            return None
        return self.epsilon * (norm if self.kind in GRADED else max(0, math.ceil(norm - self.offset)))

    def worst(self, v: Sequence[int]) -> Fraction | None:
        """The largest log-ratio of two answers that differ by v; None when unbounded."""
        if self.kind == CONSTANT:
            return None if any(v) else Fraction(0)
        norm = self.body.norm(v)
        if norm is None:
            return None
        return self.epsilon * (norm if self.kind in GRADED else math.ceil(norm))

    def reached_at(self, v: Sequence[int]) -> tuple[list[int], list[int]]:
        """Noises x, x' with x - x' = v whose exponents differ by `worst`(v): the bound is no over-estimate."""
        steps = 1
        norm = self.body.norm(v)
        if self.kind == STAIRCASE and norm:
            steps = math.floor(self.offset / (norm - math.ceil(norm) + 1)) + 1
        return [steps * c for c in v], [(steps - 1) * c for c in v]


def facet_body(hull: Any) -> FacetBody:
    """The integers of a hull as plain Python numbers."""
    return FacetBody(
        basis=_integers(hull.basis),
        coordinates=_integers(hull.coordinates),
        normals=_integers(hull.normals),
        offsets=tuple(int(b) for b in hull.offsets),
    )


def _integers(rows: Any) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(int(x) for x in row) for row in rows)
