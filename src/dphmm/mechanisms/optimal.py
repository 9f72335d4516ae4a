"""The best additive mechanism on a lattice: the noise of least mean cost that any law of noise can have.

An additive law is proposed by a linear program, made integers, and proved. It has a weight for every lattice point near
the origin, and geometric shells beyond. On the lattice Zᵏ of a body with norm N: ``weights`` where N(y) <= ``radius``,
and ``tail``·qʲ⁻¹ on the shell radius + j - 1 < N(y) <= radius + j for j = 1, 2, .., with q = ``ratio`` / 2**``bits``.
All of it are integers, so what one answer makes more likely than another is a quotient of integers, and can be decided.

What is proved: no two points that differ by a vector of the body weigh more than e^ε times as much as each other.

`rounded` proposes, and raises weights that are too small for a neighbour. `require_certified` decides, from the
integers of a law alone: every pair with a point near the origin is looked at, and those farther out are a lemma.

The linear program minimises the mean of a cost, where points that differ by a vector of the body weigh at most e^ε
times as much as each other. Points near the origin have weights of their own; all beyond are tied to the first shell
outside (see `AdditiveLaw`). Weights are written relative to those of a staircase, which is one of the program's points,
and points that a symmetry of body and costs maps onto each other are one variable. What comes out are floats: a
proposal, nothing more. Linear programs for noise on the integers are Ghosh, Roughgarden and Sundararajan's (STOC 2009).

Proof: docs/proofs/optimal-additive.md.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np

from dphmm._cached import Recent, cached_property
from dphmm._checks import one_of
from dphmm.errors import InvalidInput
from dphmm.mechanisms.base import DIGITS, Uncertified, falling_ratio, written_epsilon
from dphmm.mechanisms.knorm import BodyMechanism, LawSums
from dphmm.samplers.rows import Facets
from dphmm.samplers.uniform import exp_bracket
from dphmm.samplers.weighted import WeightedSampler
from dphmm.sensitivity.hull import SensitivityHull
from dphmm.types import BoolArray, Exact, FloatArray, IntArray, Loss

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


_FLOAT_DIGITS = 53
_MOST_ROUNDS = 10_000


def rounded(window: Window, relative: FloatArray, epsilon: Fraction) -> AdditiveLaw:
    """The law in integers nearest to weights (r + 1,) relative to a staircase, raised where a neighbour needs it."""
    ratio, bits = falling_ratio(epsilon)
    scale = DIGITS + math.ceil(epsilon * int(window.levels.max()) * 3 / 2)
    falls = [exp_bracket(epsilon * level, scale)[0] for level in range(int(window.levels.max()) + 1)]
    shares = np.maximum(relative / relative.max(), 2.0**-_FLOAT_DIGITS)
    given = [
        max(1, round(share * 2.0**_FLOAT_DIGITS) * falls[level] >> _FLOAT_DIGITS)
        for share, level in zip(shares.tolist(), window.levels.tolist(), strict=True)
    ]
    weights = _raised(given, window.pairs, ratio, bits)
    return AdditiveLaw(
        window.facets,
        window.radius,
        window.points,
        tuple(weights[orbit] for orbit in window.orbits.tolist()),
        weights[-1],
        ratio,
        bits,
    )


def _raised(given: list[int], pairs: IntArray, ratio: int, bits: int) -> list[int]:
    """The least integers that are not below the given ones nor, for any pair, below ratio / 2**bits of the other's."""
    weights = np.array(given, dtype=object)
    both = np.concatenate([pairs, pairs[:, ::-1]])
    for _ in range(_MOST_ROUNDS):
        floors = -((-weights * ratio) >> bits)
        low = weights[both[:, 1]] < floors[both[:, 0]]
        if not low.any():
            return [int(w) for w in weights]
        for a, b in both[low].tolist():
            weights[b] = max(weights[b], floors[a])
    raise Uncertified("weights that do not settle")


def require_certified(law: AdditiveLaw, epsilon: Fraction) -> None:
    """Raise Uncertified unless no two points that differ by a vector of the body lose more than ε, of all there are.

    Looked at again from nothing but the law's integers: its points, its shells, the vectors of its body, its ratio.
    """
    k = law.rank
    if not 0 < law.ratio < 1 << law.bits or law.ratio < exp_bracket(epsilon, law.bits)[1]:
        raise Uncertified("shells that fall faster than e^-epsilon")
    if min(law.weights) <= 0 or law.tail <= 0:
        raise Uncertified("weights that are not positive")
    if not np.array_equal(law.points, law.facets.within(law.radius).points(k)):
        raise Uncertified("points that are not those of the window")
    if not law.has_whole_mass:
        raise Uncertified("shells whose sizes are not those of a body with lattice points as corners")
    weights = np.array(law.weights, dtype=object)
    least = weights * law.ratio
    most = weights << law.bits
    for step in law.facets.within(Fraction(1)).points(k):
        there, beyond = _moved(law, step)
        other = np.where(beyond, law.tail, weights[there])
        if (least > other << law.bits).any() or (other * law.ratio > most).any():
            raise Uncertified("weights that lose more than epsilon between points of a required difference")


def _moved(law: AdditiveLaw, step: IntArray) -> tuple[IntArray, BoolArray]:
    """Where points + step are (n,) among the points, and which (n,) are beyond: on the first shell, by the lemma."""
    moved = law.points + step
    shells = law.shells(moved)
    if int(shells.max()) > 1:
        raise Uncertified("points farther out than the first shell")
    beyond = np.asarray(shells == 1)
    there = np.zeros(len(moved), dtype=np.int64)
    there[~beyond] = law.numbers(moved[~beyond])
    return there, beyond


#: Above this ε the staircase is proposed as it is: all but about e^-12 of the mass is on its first level.
LARGEST_PROGRAM = 12
#: Floats of costs that differ by less, relative to the largest, are the same.
_SAME = 1e-9
_MOST_OFFSETS = 32


@dataclass(frozen=True, eq=False)
class Window:
    """``points`` (n, k) near the origin by orbit: ``orbits`` (n,) numbers 0 .. r - 1; r is the first shell beyond.

    ``levels`` (r + 1,): the staircase's exponents. ``pairs`` (p, 2): orbits with points that differ by a vector of the
    body, each pair once.
    """

    facets: Facets
    radius: Fraction
    points: IntArray
    orbits: IntArray
    levels: IntArray
    pairs: IntArray

    @classmethod
    def of(cls, facets: Facets, radius: Fraction, costs: FloatArray) -> Window:
        """The window of a radius; ``costs`` (n,) of its points decide which symmetries there are."""
        k = facets.normals.shape[1]
        points = facets.within(radius).points(k)
        orbits = _orbits(facets, points, costs)
        count = int(orbits.max()) + 1
        levels = np.empty(count + 1, dtype=np.int64)
        levels[orbits] = facets.steps(points, radius - math.floor(radius))
        levels[count] = math.floor(radius) + 1
        return cls(facets, radius, points, orbits, levels, _pairs(facets, points, orbits))


def proposed(window: Window, epsilon: Fraction, costs: FloatArray, beyond: tuple[float, float]) -> FloatArray:
    """Weights (r + 1,) of the orbits and the first shell beyond, relative to the staircase's.

    ``costs`` (n,) of the points; ``beyond``: how much the shells beyond weigh, and cost, when the first point of them
    weighs 1 each.
    """
    if epsilon > LARGEST_PROGRAM:
        return np.ones(len(window.levels))
    from scipy import sparse
    from scipy.optimize import linprog

    falls = np.exp(-float(epsilon) * window.levels)
    masses = np.append(np.bincount(window.orbits), beyond[0]) * falls
    prices = np.append(np.bincount(window.orbits, weights=costs), beyond[1]) * falls
    if not prices.any():
        return np.ones(len(prices))
    both = np.concatenate([window.pairs, window.pairs[:, ::-1]])
    rises = np.exp(float(epsilon) * (1 + window.levels[both[:, 0]] - window.levels[both[:, 1]]))
    rows = np.arange(len(both))
    shape = (len(both), len(masses))
    ratios = sparse.csr_matrix((np.ones(len(both)), (rows, both[:, 0])), shape)
    ratios = ratios - sparse.csr_matrix((rises, (rows, both[:, 1])), shape)
    total = masses.sum()
    found = linprog(
        prices / prices.sum(),
        A_ub=ratios,
        b_ub=np.zeros(len(both)),
        A_eq=masses[None] / total,
        b_eq=[1.0],
        bounds=(0, None),
        method="highs-ipm",
    )
    better = found.x is not None and prices @ found.x * total < prices.sum() * (masses @ found.x)
    return np.asarray(found.x) if better else np.ones(len(masses))


def best_offset(facets: Facets, epsilon: Fraction, points: IntArray, costs: FloatArray) -> Fraction:
    """The offset of the staircase of least mean cost over ``points`` (n, k), among at most 32 breakpoints."""
    near = points[facets.steps(points, Fraction(2)) == 0]
    values = np.abs(near @ facets.normals.T).tolist()
    norms = {max(Fraction(v, b) for v, b in zip(row, facets.offsets, strict=True)) % 1 for row in values}
    offsets = sorted(norms)[:: -(-len(norms) // _MOST_OFFSETS)]
    means = []
    for offset in offsets:
        weights = np.exp(-float(epsilon) * facets.steps(points, offset).astype(np.float64))
        means.append(float(weights @ costs / weights.sum()))
    return offsets[int(np.argmin(np.round(np.array(means) / max(*means, 1e-300), 9)))]


def _pairs(facets: Facets, points: IntArray, orbits: IntArray) -> IntArray:
    """Orbits (p, 2) of points that differ by a vector of the body; those beyond the window have the last number."""
    k = points.shape[1]
    body = facets.within(Fraction(1)).points(k)
    beyond = int(orbits.max()) + 1
    reach = np.abs(points).max(axis=0) + np.abs(body).max(axis=0)
    table = np.full(tuple(2 * reach + 1), beyond, dtype=np.int64)
    table[tuple((points + reach).T)] = orbits
    some = points[np.unique(orbits, return_index=True)[1]]
    there = table[tuple((some[:, None, :] + body[None] + reach).reshape(-1, k).T)]
    pairs = np.sort(np.stack([np.repeat(np.arange(beyond), len(body)), there], axis=1), axis=1)
    pairs = np.unique(pairs, axis=0)
    return np.asarray(pairs[pairs[:, 0] != pairs[:, 1]])


def _orbits(facets: Facets, points: IntArray, costs: FloatArray) -> IntArray:
    """Numbers (n,) of the orbits of points, in the order of their first points."""
    reach = np.abs(points).max()
    keys = _keys(points, reach)
    order = np.argsort(keys)
    least = np.arange(len(points))
    for symmetry in _motions(facets):
        images = order[np.searchsorted(keys[order], _keys(points @ symmetry.T, reach))]
        if np.abs(costs[images] - costs).max() <= _SAME * np.abs(costs).max():
            least = np.minimum(least, images)
    return np.unique(least, return_inverse=True)[1].reshape(-1)


def _keys(points: IntArray, reach: int) -> IntArray:
    return np.asarray((points + reach) @ (2 * int(reach) + 1) ** np.arange(points.shape[1])[::-1])


def symmetries(facets: Facets, costs: Callable[[IntArray], FloatArray]) -> int:
    """How many symmetries body and costs have together, by the points of twice the body."""
    points = facets.within(Fraction(2)).points(facets.normals.shape[1])
    own = costs(points)
    return sum(bool(np.abs(costs(points @ s.T) - own).max() <= _SAME * np.abs(own).max()) for s in _motions(facets))


def _motions(facets: Facets) -> list[IntArray]:
    """Signed permutations of the coordinates that map the body onto itself, as matrices."""
    k = facets.normals.shape[1]
    body = _facet_set(facets.normals, facets.offsets)
    found = []
    for order in itertools.permutations(range(k)):
        for signs in itertools.product((1, -1), repeat=k):
            matrix = np.eye(k, dtype=np.int64)[list(order)] * np.array(signs)[:, None]
            if _facet_set(facets.normals @ matrix, facets.offsets) == body:
                found.append(matrix)
    return found


def _facet_set(normals: IntArray, offsets: tuple[int, ...]) -> set[tuple[tuple[int, ...], int]]:
    rows = [tuple(row) for row in normals.tolist()]
    return {(max(row, tuple(-x for x in row)), b) for row, b in zip(rows, offsets, strict=True)}


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
