"""An additive law: proposed by a linear program, made integers, and proved.

The law has a weight for every lattice point near the origin, and geometric shells beyond. On the lattice Zᵏ of a body
with norm N: ``weights`` where N(y) <= ``radius``, and ``tail``·qʲ⁻¹ on the shell radius + j - 1 < N(y) <= radius + j
for j = 1, 2, .., with q = ``ratio`` / 2**``bits``. All of it are integers, so what one answer makes more likely than
another is a quotient of integers, and can be decided.

What is proved: no two points that differ by a vector of the body weigh more than e^ε times as much as each other.

`rounded` proposes, and raises weights that are too small for a neighbour. `require_certified` decides, from the
integers of a law alone: every pair with a point near the origin is looked at, and those farther out are a lemma.

The linear program minimises the mean of a cost, where points that differ by a vector of the body weigh at most e^ε
times as much as each other.

Points near the origin have weights of their own; all beyond are tied to the first shell outside (see `AdditiveLaw`).
Weights are written relative to those of a staircase, which is one of the program's points, and points that a symmetry
of body and costs maps onto each other are one variable. What comes out are floats: a proposal, nothing more.

Linear programs for noise on the integers are Ghosh, Roughgarden and Sundararajan's (STOC 2009).

Proof: docs/proofs/optimal-additive.md.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm._cached import cached_property
from dphmm.errors import DphmmError
from dphmm.samplers.rows import Facets
from dphmm.samplers.uniform import exp_bracket
from dphmm.types import BoolArray, FloatArray, IntArray

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


#: Binary digits of the smallest weight, and of the ratio of shells.
_DIGITS = 80
_FLOAT_DIGITS = 53
_MOST_ROUNDS = 10_000


class Uncertified(DphmmError):
    """Weights that lose more than ε, or could not be shown not to: they are never drawn from."""


def falling_ratio(epsilon: Fraction) -> tuple[int, int]:
    """(ratio, bits) with e^-ε <= ratio / 2**bits < 1, as close as is worth having."""
    bits = _DIGITS + math.ceil(epsilon * 3 / 2)
    return exp_bracket(epsilon, bits)[1], bits


def rounded(window: Window, relative: FloatArray, epsilon: Fraction) -> AdditiveLaw:
    """The law in integers nearest to weights (r + 1,) relative to a staircase, raised where a neighbour needs it."""
    ratio, bits = falling_ratio(epsilon)
    scale = _DIGITS + math.ceil(epsilon * int(window.levels.max()) * 3 / 2)
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
