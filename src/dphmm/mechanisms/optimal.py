"""The best additive mechanism on a lattice: the noise of least mean cost that any law of noise can have.

Proof: docs/proofs/optimal-additive.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dphmm._cached import Recent
from dphmm._checks import one_of
from dphmm.errors import InvalidInput
from dphmm.mechanisms.additive_law import (
    AdditiveLaw,
    Window,
    best_offset,
    falling_ratio,
    proposed,
    require_certified,
    rounded,
    summed,
    symmetries,
)
from dphmm.mechanisms.base import written_epsilon
from dphmm.mechanisms.lattice import BodyMechanism, LawSums
from dphmm.samplers.rows import Facets
from dphmm.samplers.weighted import WeightedSampler
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import Exact, FloatArray, IntArray, Loss

#: What a cost may be, by name: |noise|² or |noise|, in answer units.
LOSSES = ("squared", "euclidean")
_POWERS = {"squared": 2, "euclidean": 1}
#: Costs (n,) of lattice noises (n, d).
Costs = Callable[[IntArray], FloatArray]

#: ε·levels of the window: what lies beyond weighs about e^-16, and is the best staircase's.
_DEPTH = 16
#: Pairs that the program is about, and the share of the noise beyond its window, at most.
_MOST_PAIRS = 40_000
_MOST_BEYOND = 0.3
#: Cells of the box around the window's points, which tables have one entry for: a thin slanted body has few points.
_MOST_CELLS = 2**24
#: Levels of the window: the integers are as long as it is deep, and time grows by the cube.
_MOST_LEVELS = 2**11
_SMALLER = "a smaller body or a larger epsilon for the optimal additive mechanism"

_cache = Recent[tuple[str, Fraction, str], AdditiveLaw](64)


class OptimalAdditive(BodyMechanism):
    """P(z | answer) ∝ g(z - answer) on the lattice, g the solution of a linear program made integers and certified.

    Every pair whose difference lies in K loses at most ε; the loss of a pair is at most ε·ceil(its norm). Of all such
    laws of noise it has the least mean cost, up to rounding and what is tied beyond a window. The weights come from
    a float solver and may differ between machines: their sha256 is part of `describe`, so of every plan's hash.

    Parameters
    ----------
    K : SensitivityHull of rank 1 or 2 and not too large.
    epsilon : from 2**-20 to 2**10; small ones need a window that is too large.
    loss : what is least in the mean, "squared" or "euclidean".
    costs : instead, any costs (n,) of lattice noises (n, d), 0 or more, bounded by a multiple of 1 + \\|noise\\|.

    Raises
    ------
    InvalidInput : another rank, or a program that would be too large: Staircase is near the optimum there.
    Uncertified : weights that could not be proved to keep ε. They are never drawn from.
    """

    name: ClassVar[str] = "optimal-additive"
    quick: ClassVar[bool] = False

    def __init__(self, K: SensitivityHull, epsilon: Exact, loss: str = "squared", *, costs: Costs | None = None):
        super().__init__(K, epsilon)
        if K.rank > 2 or K.hull_vertices is None:
            raise InvalidInput("K", f"a hull of rank {K.rank}", "rank 1 or 2 for the optimal additive mechanism")
        self._loss = one_of(loss, LOSSES, "loss") if costs is None else "custom"
        self._law = self._certified_law(costs)

    @classmethod
    def described(cls, K: SensitivityHull, description: Mapping[str, str]) -> Self:
        """As described, if its program has the solution here that it had there.

        Raises InvalidInput for optimal weights that another machine found and this one does not.
        """
        made = cls(K, written_epsilon(description), description["loss"])
        weights = description["weights"]
        if made.law.digest != weights:
            came = f"weights {weights[:12]}"
            raise InvalidInput("mechanism", came, f"{made.law.digest[:12]}, as the linear program is solved here")
        return made

    @property
    def law(self) -> AdditiveLaw:
        """The integers that are sampled."""
        return self._law

    def describe(self) -> dict[str, str]:
        return super().describe() | {"loss": self._loss, "weights": self._law.digest}

    def loss_of_norm(self, norm: Loss) -> Loss:
        """ε times the norm rounded up: a bound, reached up to the last step."""
        return math.inf if isinstance(norm, float) else self.epsilon * math.ceil(norm)

    def _certified_law(self, costs: Costs | None) -> AdditiveLaw:
        if costs is not None:
            return self._solved(lambda v: _checked(costs, v))
        key = (self._hull.digest, self.epsilon, self._loss)
        if (law := _cache.get(key)) is not None:
            return law
        return _cache.keep(key, self._solved(lambda v: self._lengths(v) ** _POWERS[self._loss]))

    def _solved(self, costs: Costs) -> AdditiveLaw:
        facets = facets_of(self._hull)
        radius = self._radius(facets, costs)
        near = costs(self._lattice(facets.within(radius).points(self._hull.rank)))
        window = Window.of(facets, radius, near)
        relative = proposed(window, self.epsilon, near, self._beyond(facets, radius, costs))
        law = rounded(window, relative, self.epsilon)
        require_certified(law, self.epsilon)
        return law

    def _radius(self, facets: Facets, costs: Costs) -> Fraction:
        """Whole levels and the offset of the best staircase, which so is one of the laws of the window."""
        if _cells(facets, 4) > _MOST_CELLS:
            # Before anything is listed: the body may have more points than there is memory.
            raise InvalidInput("K", f"a body {_cells(facets, 1)} lattice points across", _SMALLER)
        body = facets.within(Fraction(1)).size
        most = _MOST_PAIRS * symmetries(facets, lambda y: costs(self._lattice(y))) // body
        # Of k independent vectors of the body come at least 2·levelsᵏ points.
        fitting = min(_MOST_LEVELS, most if self._hull.rank == 1 else math.isqrt(most))
        levels = max(1, min(math.ceil(_DEPTH / self.epsilon), fitting))
        while levels > 1 and (
            _cells(facets, levels + 3) > _MOST_CELLS or facets.within(Fraction(levels + 1)).size > most
        ):
            levels = levels * 9 // 10
        # Of the noise of the staircase about this much is farther out: e^-x (1 + x) for continuous noise in the plane.
        depth = float(self.epsilon) * levels
        if facets.within(Fraction(levels + 1)).size > most or math.exp(-depth) * (1 + depth) > _MOST_BEYOND:
            came = f"{body} vectors of the body at epsilon {float(self.epsilon):g}"
            raise InvalidInput("K", came, _SMALLER)
        points = facets.within(Fraction(levels + 1)).points(self._hull.rank)
        return levels + best_offset(facets, self.epsilon, points, costs(self._lattice(points)))

    def _beyond(self, facets: Facets, radius: Fraction, costs: Costs) -> tuple[float, float]:
        """What the shells beyond weigh and cost where every point of the first weighs 1."""
        groups = self._shells(facets, radius)
        sizes = [Fraction(len(group)) for group in groups]
        sums = [Fraction(float(costs(group).sum())) for group in groups]
        if self._loss != "squared":
            # Neither is it a polynomial: a mean that grows evenly is near enough for what weighs so little.
            first, second = (total / size for total, size in zip(sums[:2], sizes[:2], strict=True))
            sums = [size * (first + j * (second - first)) for j, size in enumerate(sizes)]
        q = Fraction(*_quotient(self.epsilon))
        return float(summed(sizes, q)), float(summed(sums, q))

    def _shells(self, facets: Facets, radius: Fraction) -> list[IntArray]:
        """The lattice noises (n, d) of the first shells beyond a radius, as many as polynomials in j need."""
        points = facets.within(radius + self._hull.rank + 2).points(self._hull.rank)
        shells = facets.steps(points, radius)
        return [self._lattice(points[shells == j]) for j in range(1, self._hull.rank + 3)]

    def _lattice(self, y: IntArray) -> IntArray:
        return np.asarray(y @ self._hull.basis.T)

    def _lengths(self, v: IntArray) -> FloatArray:
        return np.asarray(np.linalg.norm(v * self._hull.frame.pitch, axis=1))

    def _make_sums(self) -> LawSums:
        law = self._law
        shells = [float((self._lengths(v) ** 2).sum()) for v in self._shells(law.facets, law.radius)]
        return LawSums(law.mean(self._lengths(self._lattice(law.points)) ** 2, shells), law.log_mass)

    def _make_sampler(self) -> WeightedSampler:
        law = self._law
        return WeightedSampler(
            law.facets, law.radius, law.points, law.weights, law.tail, law.q, law.outside, self._hull.basis
        )

    def _log_weights(self, y: IntArray) -> FloatArray:
        return self._law.log_weights(y)


def facets_of(hull: SensitivityHull) -> Facets:
    """The body of a hull as `AdditiveLaw` wants it."""
    return Facets(hull.normals, tuple(int(b) for b in hull.offsets), hull.widths)


def _cells(facets: Facets, radius: int) -> int:
    """How many lattice points the box around the body of that radius has."""
    return math.prod(2 * math.floor(radius * width) + 1 for width in facets.widths)


def _checked(costs: Costs, v: IntArray) -> FloatArray:
    """The costs (n,) of lattice noises (n, d). Raises InvalidInput."""
    found = np.asarray(costs(v))
    if found.shape != (len(v),) or found.dtype.kind not in "iuf":
        raise InvalidInput("costs", f"{found.dtype} of shape {found.shape}", f"numbers of shape {(len(v),)}")
    found = found.astype(np.float64)
    if not (np.isfinite(found).all() and found.min(initial=0.0) >= 0):
        raise InvalidInput("costs", "costs that are negative, infinite or no numbers", "finite costs of 0 or more")
    return found


def _quotient(epsilon: Fraction) -> tuple[int, int]:
    ratio, bits = falling_ratio(epsilon)
    return ratio, 1 << bits
