"""What a table really loses, from its integers: rows are found by their answers, quotients are compared as integers.

Written apart from `dphmm.mechanisms`: answers are keys of a dictionary, sums are made again, e^ε is bounded by partial
sums of its own. What two answers lose is the log of the largest quotient of their rows; as a fraction it is rounded up,
and stated as ε where the quotients themselves are at most e^ε. A "norm" of two answers is their loss over ε here.

Proof: docs/proofs/optimal-table.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm._cached import cached_property
from dphmm.types import BoolArray, FloatArray, IntArray, Loss

KIND = "optimal-table"
_DIGITS = 160
#: Floats of logs are right to much less than this.
_WITHIN = 1e-9
Point = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Table:
    """The rows (n lists of n whole numbers) of answers, and the answers in their order."""

    epsilon: Fraction
    answers: tuple[Point, ...]
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
    def number(self) -> dict[Point, int]:
        """The row of each answer."""
        return {answer: row for row, answer in enumerate(self.answers)}

    def faults(self) -> list[str]:
        """What is wrong with the table itself."""
        found = []
        if len(self.number) < len(self.answers) or any(len(row) != len(self.answers) for row in self.rows):
            found.append("a table that does not have one row and one column for each answer")
        if any(weight < 1 for row in self.rows for weight in row):
            found.append("a table in which an answer is impossible")
        if len({sum(row) for row in self.rows}) > 1:
            found.append("a table whose rows have different sums")
        return found

    def numbers(self, images: IntArray) -> IntArray:
        """The rows (m,) of answers (m, d); -1 for an answer that has none."""
        return np.array([self.number.get(tuple(image), -1) for image in images.tolist()], dtype=np.int64)

    def on_span(self, v: IntArray) -> BoolArray:
        """No vector (n, d) is excluded: what can come out is a matter of answers, not of differences."""
        return np.ones(len(v), dtype=np.bool_)

    def told(self, z: IntArray, images: IntArray) -> FloatArray:
        """log Pr(z | answer) for answers (m, d)."""
        column = self.number.get(tuple(z.tolist()))
        if column is None:
            return np.full(len(images), -np.inf)
        rows = [self.rows[row] for row in self.numbers(images).tolist()]
        return np.array([math.log(row[column]) - math.log(sum(row)) for row in rows])

    def between(self, first: IntArray, second: IntArray) -> Loss:
        """What two answers (d,) lose; infinite where one of them has no row."""
        a, b = self.numbers(np.array([first, second])).tolist()
        return self.lost(a, b)

    def lost(self, a: int, b: int) -> Loss:
        """What two rows lose: never too little."""
        if a < 0 or b < 0 or not self._sound:
            return math.inf
        worst = max(Fraction(max(x, y), min(x, y)) for x, y in zip(self._laws[a], self._laws[b], strict=True))
        above = _log_above(worst)
        return min(above, self.epsilon) if worst <= _exp_below(self.epsilon) else above

    @cached_property
    def _sound(self) -> bool:
        """Whether the rows are laws without zeros: of others nothing is worked out."""
        return not self.faults()

    @cached_property
    def _laws(self) -> list[list[int]]:
        """The rows on one scale."""
        scale = math.lcm(*{sum(row) for row in self.rows})
        return [[weight * (scale // sum(row)) for weight in row] for row in self.rows]

    @cached_property
    def rough(self) -> FloatArray:
        """What every two rows (n, n) lose, in floats."""
        if not self._sound:
            return np.where(np.eye(len(self.rows), dtype=np.bool_), 0.0, np.inf)
        return np.array([np.abs(self._logs - row).max(axis=1) for row in self._logs])

    @cached_property
    def _logs(self) -> FloatArray:
        return np.array([[math.log(weight) for weight in row] for row in self._laws])

    @cached_property
    def kept(self) -> BoolArray:
        """Which two rows (n, n) lose at most ε."""
        return self.kept_at(self.epsilon)

    def kept_at(self, epsilon: Fraction) -> BoolArray:
        """Which two rows (n, n) lose at most another ε: by floats where those leave no doubt, else by the integers."""
        limit = float(epsilon)
        found = np.asarray(self.rough <= limit)
        high, low = _exp_below(epsilon).as_integer_ratio()
        doubtful = _WITHIN * (1 + limit)
        for a, b in np.argwhere(np.triu(np.abs(self.rough - limit) <= doubtful, 1)).tolist():
            # Quotients that floats find well below e^ε leave no doubt either.
            columns = np.flatnonzero(np.abs(self._logs[a] - self._logs[b]) >= limit - 2 * doubtful).tolist()
            pairs = [(self._laws[a][z], self._laws[b][z]) for z in columns]
            found[a, b] = found[b, a] = all(max(x, y) * low <= min(x, y) * high for x, y in pairs)
        return found


def farthest(law: Table, pairs: IntArray) -> int:
    """Which of pairs of rows (m, 2), m >= 1, loses most, as floats tell."""
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
