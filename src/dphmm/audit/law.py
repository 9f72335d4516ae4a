"""What a mechanism really loses, from its integers alone: nothing here asks `dphmm.sensitivity` or a planner.

A body gives lattice vectors a rational norm N. On answer + (lattice of the span) the probability of z is proportional
to exp(-E(z - answer)), with E(x) = ε·N(x) for the K-norm mechanism and ε·max(0, ⌈N(x) - g⌉) for the staircase of offset
g. The normaliser sums over the same differences for every answer, so two answers that differ by v lose the largest
E(x + v) - E(x): ε·N(v), and ε·⌈N(v)⌉ (docs/theory.md 5). `enumerated` finds it again by looking at every x of a window.
Noise with weights of its own loses at most ε·⌈N(v)⌉ where `faults` finds none in its weights (`dphmm.audit.additive`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm.audit.additive import Weights
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, IntArray, Loss

KNORM, STAIRCASE, CONSTANT, ADDITIVE = "discrete-knorm", "staircase", "constant", "optimal-additive"
#: Partial sums of products stay below this in 64 bits.
_ROOM = 2**62
#: Largest common denominator of the facets that an enumeration works with.
_MOST_COMMON = 2**31
#: Points whose quotients are looked at in fractions are so many times fewer.
_DEARER = 10


@dataclass(frozen=True, eq=False)
class Law:
    """One mechanism: kind, ε, offset, and the body |normals·y| <= offsets on the lattice basis·Zᵏ.

    ``coordinates`` (k, d) is a left inverse of ``basis`` (d, k), which every vector is tested against: a vector is in
    the span if and only if basis·(coordinates·v) = v.
    """

    kind: str
    epsilon: Fraction
    offset: Fraction
    basis: IntArray
    coordinates: IntArray
    normals: IntArray
    offsets: IntArray
    weights: Weights | None = None

    @classmethod
    def of(cls, mechanism: Any) -> Law:
        """Read off a mechanism. Raises InvalidInput for one whose law is not known here."""
        name = getattr(mechanism, "name", type(mechanism).__name__)
        kind = getattr(mechanism, "law_name", None) or name
        if kind not in (KNORM, STAIRCASE, CONSTANT, ADDITIVE):
            known = "discrete-knorm, staircase, optimal-additive or constant, or a plan's table: others by samples"
            raise InvalidInput("mechanism", name, known)
        hull = mechanism.hull
        offset = mechanism.offset if kind == STAIRCASE else Fraction(0)
        parts = (hull.basis, hull.coordinates, hull.normals, hull.offsets)
        weights = Weights.of(mechanism) if kind == ADDITIVE else None
        basis, coordinates, normals, offsets = (np.asarray(part, dtype=np.int64) for part in parts)
        return cls(kind, mechanism.epsilon, offset, basis, coordinates, normals, offsets, weights)

    def between(self, first: IntArray, second: IntArray) -> Loss:
        """What two answers (d,) lose."""
        return self.loss(self.norm(first - second))

    def told(self, z: IntArray, images: IntArray) -> FloatArray:
        """log of the unnormalised Pr(z | answer) for answers (m, d)."""
        return np.array([-float(exponent) for exponent in self.exponents(z - images)])

    @property
    def rank(self) -> int:
        """The dimension of the body."""
        return int(self.basis.shape[1])

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for equal laws, whatever the order of their facets and the sign of a normal."""
        rows = [tuple(row) for row in self.normals.tolist()]
        facets = {(max(row, tuple(-x for x in row)), b) for row, b in zip(rows, self.offsets.tolist(), strict=True)}
        own = None if self.weights is None else self.weights.key
        return self.kind, self.epsilon, self.offset, str(self.basis.tolist()), frozenset(facets), own

    def faults(self) -> list[str]:
        """What is wrong with the body itself."""
        found = []
        identity = np.eye(self.rank, dtype=np.int64)
        if not np.array_equal(exact(self.coordinates, self.basis), identity):
            found.append("the coordinates of the body do not invert its basis")
        if len(self.offsets) and int(self.offsets.min()) <= 0:
            found.append("a facet without room: the body has no inside")
        if self.rank and np.linalg.matrix_rank(self.normals.astype(np.float64)) < self.rank:
            found.append("the facets leave a direction unbounded")
        return found if found or self.weights is None else list(self.weights.faults())

    def on_span(self, v: IntArray) -> BoolArray:
        """Which vectors (n, d) noise of this body can be."""
        if self.kind == CONSTANT or not self.rank:
            return np.asarray(~np.any(v != 0, axis=1))
        return np.asarray(np.all(exact(self.y_of(v), self.basis.T) == v, axis=1))

    def y_of(self, v: IntArray) -> NDArray[Any]:
        """Coordinates (n, k) of vectors (n, d) of the span."""
        return exact(v, self.coordinates.T)

    def widest(self, v: IntArray) -> tuple[Loss, int]:
        """The largest norm of vectors (n, d) and which of them has it; infinite off the span. (0, -1) for none."""
        if not len(v):
            return Fraction(0), -1
        off = ~self.on_span(v)
        if off.any():
            return math.inf, int(np.argmax(off))
        best, at = Fraction(0), 0
        if self.kind == CONSTANT or not self.rank:
            return best, at
        values = np.abs(exact(self.y_of(v), self.normals.T))
        for facet, offset in enumerate(self.offsets.tolist()):
            row = int(np.argmax(values[:, facet]))
            norm = Fraction(int(values[row, facet]), offset)
            if norm > best:
                best, at = norm, row
        return best, at

    def norm(self, v: IntArray) -> Loss:
        """The norm of one vector (d,)."""
        return self.widest(np.asarray(v, dtype=np.int64)[None])[0]

    def loss(self, norm: Loss) -> Loss:
        """What two answers lose whose difference has this norm."""
        if isinstance(norm, float) or not norm:
            return norm
        return self.epsilon * (norm if self.kind == KNORM else math.ceil(norm))

    def exponents(self, x: IntArray) -> list[Loss]:
        """E (n,) of noises (n, d), one by one in fractions; infinite where none is drawn."""
        found: list[Loss] = []
        for row in x:
            norm = self.norm(row)
            if isinstance(norm, float):
                found.append(norm)
            elif self.weights is not None:
                found.append(self.weights.exponent(self._point(row)))
            else:
                found.append(self.epsilon * (norm if self.kind == KNORM else max(0, math.ceil(norm - self.offset))))
        return found

    def enumerated(self, v: IntArray, most: int) -> Fraction | None:
        """The largest E(x + v) - E(x), E(x) - E(x + v) over every lattice point x of a window around 0.

        For noise with weights of its own in whole steps of the shells, rounded up.

        None where the window would have more than ``most`` points, or fractions do not fit 64 bits.
        """
        y = self._point(v)
        if self.weights is not None:
            # A window may be too small for the last step of a bound, and never shows one that is not there.
            steps = self.weights.steps(y, most // _DEARER)
            return None if steps is None or self.epsilon * steps < self.loss(self.norm(v)) else self.epsilon * steps
        common = math.lcm(*self.offsets.tolist()) if len(self.offsets) else 1
        if not self.rank or common * self.offset.denominator > _MOST_COMMON:
            return None
        # The staircase reaches its loss between i·v and (i + 1)·v for some i up to g / (N - ⌈N⌉ + 1).
        norm = self.norm(v)
        if isinstance(norm, float):
            return None
        steps = math.floor(self.offset / (norm - math.ceil(norm) + 1)) + 1 if norm else 1
        reach = [1 + (steps + 1) * abs(c) for c in y]
        if math.prod(2 * r + 1 for r in reach) > most:
            return None
        window = np.stack(np.meshgrid(*(np.arange(-r, r + 1) for r in reach), indexing="ij"), axis=-1)
        x = window.reshape(-1, self.rank)
        here, there = (self._levels(points, common) for points in (x, x + np.array(y, dtype=np.int64)))
        scale = common if self.kind == KNORM else 1
        return self.epsilon * Fraction(int(np.abs(there - here).max()), scale)

    def _point(self, v: IntArray) -> tuple[int, ...]:
        """Coordinates of one vector of the span."""
        return tuple(int(c) for c in self.y_of(np.asarray(v, dtype=np.int64)[None])[0])

    def _levels(self, y: IntArray, common: int) -> IntArray:
        """E/ε of coordinates (n, k): times the common denominator for the K-norm mechanism, else in steps."""
        weights = common // self.offsets
        norms = (np.abs(y @ self.normals.T) * weights).max(axis=1)
        if self.kind == KNORM:
            return np.asarray(norms)
        g = self.offset
        above = norms * g.denominator - g.numerator * common
        return np.asarray(np.maximum(0, -(-above // (common * g.denominator))))


def exact(rows: NDArray[Any], columns: NDArray[Any]) -> NDArray[Any]:
    """rows (n, a) times columns (a, b), exactly: Python integers where 64 bits do not suffice."""
    if rows.size == 0 or columns.size == 0:
        return np.zeros((rows.shape[0], columns.shape[1]), dtype=np.int64)
    largest = [max(abs(int(array.max())), abs(int(array.min()))) for array in (rows, columns)]
    if largest[0] * largest[1] * rows.shape[1] < _ROOM and rows.dtype != object and columns.dtype != object:
        return np.asarray(rows @ columns)
    return np.asarray(rows.astype(object) @ columns.astype(object))
