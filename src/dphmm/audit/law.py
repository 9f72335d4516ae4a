"""The real loss of a mechanism, from its integers alone: nothing here asks `dphmm.sensitivity` or a planner.

A body gives lattice vectors a rational norm N. On answer + (lattice of the span) the probability of z is proportional
to exp(-E(z - answer)), with E(x) = ε·N(x) for the K-norm mechanism and ε·max(0, ⌈N(x) - g⌉) for the staircase of offset
g. The normaliser sums over the same differences for every answer, so two answers that differ by v lose the largest
E(x + v) - E(x): ε·N(v), and ε·⌈N(v)⌉ (docs/theory.md 5). `enumerated` finds it again by looking at every x of a window.

`Table` computes the real loss of a table: rows are found by their answers, quotients are compared as integers.
Written apart from `dphmm.mechanisms`: answers are keys of a dictionary, sums are made again, e^ε is bounded by partial
sums of its own. The loss of two answers is the log of the largest quotient of their rows: as a fraction rounded up,
and stated as ε where the quotients themselves are at most e^ε. A "norm" of two answers is their loss over ε here.

Proof: docs/proofs/optimal-table.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._cached import cached_property
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, IntArray, Loss

KNORM, STAIRCASE, CONSTANT = "discrete-knorm", "staircase", "constant"
#: Partial sums of products stay below this in 64 bits.
_ROOM = 2**62
#: Largest common denominator of the facets that an enumeration works with.
_MOST_COMMON = 2**31


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

    @classmethod
    def of(cls, mechanism: Any) -> Law:
        """Read off a mechanism. Raises InvalidInput for one whose law is not known here."""
        name = getattr(mechanism, "name", type(mechanism).__name__)
        kind = getattr(mechanism, "law_name", None) or name
        if kind not in (KNORM, STAIRCASE, CONSTANT):
            known = "discrete-knorm, staircase or constant, or a plan's table: others by samples"
            raise InvalidInput("mechanism", name, known)
        hull = mechanism.hull
        offset = mechanism.offset if kind == STAIRCASE else Fraction(0)
        parts = (hull.basis, hull.coordinates, hull.normals, hull.offsets)
        basis, coordinates, normals, offsets = (np.asarray(part, dtype=np.int64) for part in parts)
        return cls(kind, mechanism.epsilon, offset, basis, coordinates, normals, offsets)

    def between(self, first: IntArray, second: IntArray) -> Loss:
        """The loss between two answers (d,)."""
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
        return self.kind, self.epsilon, self.offset, str(self.basis.tolist()), frozenset(facets)

    def faults(self) -> list[str]:
        """The faults of the body itself."""
        faults = []
        identity = np.eye(self.rank, dtype=np.int64)
        if not np.array_equal(exact(self.coordinates, self.basis), identity):
            faults.append("the coordinates of the body do not invert its basis")
        if len(self.offsets) and int(self.offsets.min()) <= 0:
            faults.append("a facet without room: the body has no inside")
        if self.rank and np.linalg.matrix_rank(self.normals.astype(np.float64)) < self.rank:
            faults.append("the facets leave a direction unbounded")
        return faults

    def on_span(self, v: IntArray) -> BoolArray:
        """True where noise of this body can be the vector, of (n, d)."""
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
        """The loss between two answers whose difference has this norm."""
        if isinstance(norm, float) or not norm:
            return norm
        return self.epsilon * (norm if self.kind == KNORM else math.ceil(norm))

    def exponents(self, x: IntArray) -> list[Loss]:
        """E (n,) of noises (n, d), one by one in fractions; infinite where none is drawn."""
        exponents: list[Loss] = []
        for row in x:
            norm = self.norm(row)
            if isinstance(norm, float):
                exponents.append(norm)
            else:
                exponents.append(self.epsilon * (norm if self.kind == KNORM else max(0, math.ceil(norm - self.offset))))
        return exponents

    def enumerated(self, v: IntArray, most: int) -> Fraction | None:
        """The largest E(x + v) - E(x), E(x) - E(x + v) over every lattice point x of a window around 0.

        None where the window would have more than ``most`` points, or fractions do not fit 64 bits.
        """
        y = [int(c) for c in self.y_of(np.asarray(v, dtype=np.int64)[None])[0]]
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


KIND = "optimal-table"
_DIGITS = 160
#: Floats of logs are right to much less than this.
_WITHIN = 1e-9


@dataclass(frozen=True, eq=False)
class Table:
    """The rows (n lists of n whole numbers) of answers, and the answers in their order."""

    epsilon: Fraction
    answers: tuple[tuple[int, ...], ...]
    rows: tuple[tuple[int, ...], ...]

    kind = KIND

    @classmethod
    def of(cls, mechanism: Any) -> Table:
        """Read off a mechanism."""
        law = mechanism.law
        return cls(mechanism.epsilon, tuple(map(tuple, law.points.tolist())), tuple(map(tuple, law.weights.tolist())))

    @property
    def rank(self) -> int:
        """The dimension of the answers."""
        return len(self.answers[0])

    @cached_property
    def key(self) -> tuple[object, ...]:
        """Equal for equal tables."""
        return KIND, self.epsilon, self.answers, self.rows

    @cached_property
    def number(self) -> dict[tuple[int, ...], int]:
        """The row of each answer."""
        return {answer: row for row, answer in enumerate(self.answers)}

    def faults(self) -> list[str]:
        """The faults of the table itself."""
        faults = []
        if len(self.number) < len(self.answers) or any(len(row) != len(self.answers) for row in self.rows):
            faults.append("a table that does not have one row and one column for each answer")
        if any(weight < 1 for row in self.rows for weight in row):
            faults.append("a table in which an answer is impossible")
        if len({sum(row) for row in self.rows}) > 1:
            faults.append("a table whose rows have different sums")
        return faults

    def numbers(self, images: IntArray) -> IntArray:
        """The rows (m,) of answers (m, d); -1 for an answer that has none."""
        return np.array([self.number.get(tuple(image), -1) for image in images.tolist()], dtype=np.int64)

    def on_span(self, v: IntArray) -> BoolArray:
        """True for every vector (n, d): the possible outputs are a matter of answers, not of differences."""
        return np.ones(len(v), dtype=np.bool_)

    def told(self, z: IntArray, images: IntArray) -> FloatArray:
        """log Pr(z | answer) for answers (m, d)."""
        column = self.number.get(tuple(z.tolist()))
        if column is None:
            return np.full(len(images), -np.inf)
        rows = [self.rows[row] for row in self.numbers(images).tolist()]
        return np.array([math.log(row[column]) - math.log(sum(row)) for row in rows])

    def between(self, first: IntArray, second: IntArray) -> Loss:
        """The loss between two answers (d,); infinite where one of them has no row."""
        a, b = self.numbers(np.array([first, second])).tolist()
        return self.lost(a, b)

    def lost(self, a: int, b: int) -> Loss:
        """The loss between two rows: never too little."""
        if a < 0 or b < 0 or not self._sound:
            return math.inf
        worst = max(Fraction(max(x, y), min(x, y)) for x, y in zip(self._laws[a], self._laws[b], strict=True))
        above = _log_above(worst)
        return min(above, self.epsilon) if worst <= _exp_below(self.epsilon) else above

    @cached_property
    def _sound(self) -> bool:
        """True if the rows are laws without zeros: of others nothing is worked out."""
        return not self.faults()

    @cached_property
    def _laws(self) -> list[list[int]]:
        """The rows on one scale."""
        scale = math.lcm(*{sum(row) for row in self.rows})
        return [[weight * (scale // sum(row)) for weight in row] for row in self.rows]

    @cached_property
    def rough(self) -> FloatArray:
        """The loss between every two rows (n, n), in floats."""
        if not self._sound:
            return np.where(np.eye(len(self.rows), dtype=np.bool_), 0.0, np.inf)
        return np.array([np.abs(self._logs - row).max(axis=1) for row in self._logs])

    @cached_property
    def _logs(self) -> FloatArray:
        return np.array([[math.log(weight) for weight in row] for row in self._laws])

    @cached_property
    def kept(self) -> BoolArray:
        """True where two rows (n, n) lose at most ε."""
        return self.kept_at(self.epsilon)

    def kept_at(self, epsilon: Fraction) -> BoolArray:
        """True where two rows (n, n) lose at most this ε: by floats if those leave no doubt, else by the integers."""
        limit = float(epsilon)
        within = np.asarray(self.rough <= limit)
        high, low = _exp_below(epsilon).as_integer_ratio()
        doubtful = _WITHIN * (1 + limit)
        for a, b in np.argwhere(np.triu(np.abs(self.rough - limit) <= doubtful, 1)).tolist():
            # Quotients that floats find well below e^ε leave no doubt either.
            columns = np.flatnonzero(np.abs(self._logs[a] - self._logs[b]) >= limit - 2 * doubtful).tolist()
            pairs = [(self._laws[a][z], self._laws[b][z]) for z in columns]
            within[a, b] = within[b, a] = all(max(x, y) * low <= min(x, y) * high for x, y in pairs)
        return within


def farthest(law: Table, pairs: IntArray) -> int:
    """The index of the pair that loses most, of pairs of rows (m, 2), m >= 1, by floats."""
    return int(np.argmax(law.rough[pairs[:, 0], pairs[:, 1]]))


def _exp_below(x: Fraction) -> Fraction:
    """A rational that is not above e^x, by less than 2**-120 of it: a partial sum, each term rounded down."""
    scale = 1 << (_DIGITS + 2 * math.ceil(x))
    term = total = scale
    n = 0
    while term:
        n += 1
        term = term * x.numerator // (x.denominator * n)
        total += term
    return Fraction(total, scale)


def _log_above(ratio: Fraction) -> Fraction:
    """A multiple of 2**-40 that is not below log(ratio), nor much above it."""
    if ratio <= 1:
        return Fraction(0)
    step = math.floor((math.log(ratio.numerator) - math.log(ratio.denominator)) * 2**40)
    while _exp_below(Fraction(step, 2**40)) < ratio:
        step += 1
    return Fraction(step, 2**40)
