"""k-means by DP-Lloyd: noisy sums and counts of every cluster, a fixed number of times.

Noise on finished centroids would not be private: a centroid is a mean over its own cluster, which may be small. Here
the number of iterations, the box and the starting centroids are public, and nothing stops early.

Proof: docs/proofs/dependent-markov.md, docs/proofs/contributions.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dphmm._checks import exact_number, whole
from dphmm.accounting.event import NoisyCounts
from dphmm.dependent._counts import resolved
from dphmm.dependent._dependence import Budget, add_integer_noise
from dphmm.dependent._inputs import (
    BOX,
    MAX_ROWS,
    RELATION,
    SPELLING,
    Option,
    Rejected,
    counting,
    data_numbers,
    feature_columns,
    finite,
    grouped,
    needed,
    numbers,
    owned,
    plain_numbers,
    sequence,
)
from dphmm.dependent._inputs import box as box_of
from dphmm.dependent._question import Answered, AnsweredQuestion, PerPerson, Question, fields
from dphmm.errors import InvalidInput
from dphmm.samplers.entropy import default_bits
from dphmm.storage.private_tables import refuse_private
from dphmm.types import Bits, Exact, FloatArray, IntArray

#: Steps from the middle of the box to its sides.
HALF = 2**15


@dataclass(frozen=True, eq=False)
class _Box:
    """A public box, its middle (d,) and the size of a step on each axis (d,)."""

    low: FloatArray
    high: FloatArray

    @property
    def middle(self) -> FloatArray:
        return (self.low + self.high) / 2

    @property
    def step(self) -> FloatArray:
        return (self.high - self.low) / (2 * HALF)

    def in_steps(self, points: FloatArray) -> IntArray:
        """Points as whole steps from the middle, −HALF to HALF; points outside are moved to the box.

        A coordinate that is no number is that of the middle.
        """
        inside = np.clip(np.where(np.isnan(points), self.middle, points), self.low, self.high)
        steps = np.rint((inside - self.middle) / self.step)
        return np.clip(steps, -HALF, HALF).astype(np.int64)


def kmeans(
    points: Any,
    dependence: Any,
    epsilon: Exact,
    *,
    box: Any,
    start: Any,
    iterations: int = 7,
    users: Any = None,
    max_rows_per_user: int | None = None,
    neighbours: str = "replace",
    mechanism: str | None = None,
    accept_unproved: bool = False,
    bits: Bits | None = None,
) -> Answered:
    """Centroids of ``points`` (n, d), one per record: columns cluster, x0, x1, …, count.

    ``box``: public (low, high), each (d,) or a number. ``start``: public centroids (k, d). The counts are noisy, those
    of the last iteration, and may be negative. ``users`` (n,) and ``max_rows_per_user``, a public number: the first so
    many points of each person count. A coordinate that is no number counts as the middle of the box. ``neighbours``: ε
    is of a point (a group) that is replaced ("replace"), or there or not ("add-remove": half the noise).
    """
    import pandas as pd

    dependence = grouped(dependence, max_rows_per_user)
    rows = _points(points)
    rows = rows[owned(users, len(rows), max_rows_per_user)]
    limits = _checked_box(box, rows.shape[1])
    centres = _centres(start, limits)
    rounds = whole(iterations, "iterations", 1)
    if not isinstance(dependence, (str, tuple)) and dependence.n_tuples != len(rows):
        raise InvalidInput("dependence", repr(dependence), f"one of the {len(rows)} records")
    budget = Budget.of(dependence, epsilon, mechanism, accept_unproved, neighbours)
    source = default_bits(bits)
    steps = limits.in_steps(rows)
    each = budget.per_record / rounds
    # A replaced record leaves one cluster and enters another: 2 in counts, twice the half-widths in sums.
    changes = budget.change(2), budget.change(2 * rows.shape[1] * HALF)
    parts: list[NoisyCounts] = []
    counts = np.zeros(len(centres), dtype=np.int64)
    for _ in range(rounds):
        centres, counts, spent = _round(steps, centres, changes, each, source)
        parts += spent
    places = limits.middle + centres * limits.step
    columns = {f"x{axis}": places[:, axis] for axis in range(places.shape[1])}
    frame = pd.DataFrame({"cluster": np.arange(len(centres)), **columns, "count": counts})
    return Answered(frame, budget.event("k-means", "one point", tuple(parts), source))


class KMeans(Question):
    """`kmeans` of columns of a table, each centroid without digits below its noise."""

    name = "kmeans"
    help = "Centroids of points, with noisy counts: k-means by noisy sums and counts. A record is one point."
    forms = "friends:EDGES, group, group:K or independent."
    functions: ClassVar = {"kmeans": kmeans}
    in_steps = ("sums",)
    options = (
        MAX_ROWS,
        Option("columns", "The columns of coordinates.", "A,B"),
        Option("box", "The public box, LOW:HIGH for each column; values outside move to it.", "BOX"),
        Option("start", "The public start, in the box: 0,0;1,1 or a table with the columns.", "S"),
        Option("iterations", "How often centroids move: a public number.", kind=int, default=7, shown=True),
        Option("user_column", "The column of users, where D needs it  [default: user]", "COL"),
        SPELLING,
        RELATION,
    )

    def check(self, dependence: Any) -> None:
        """Columns, a box, a start inside it, and how often centroids move."""
        self.dependence = self.depends(dependence, ("friends", "group", "independent"))
        self.check_neighbours()
        self.dependence.refuse_data(self.data)
        start, option = self.given["start"], self.called("start")
        self._columns = feature_columns(self.given["columns"], self.called("columns"))
        box_option = self.called("box")
        self._low, self._high = box_of(needed(self.given["box"], box_option, BOX), self._columns, box_option)
        if isinstance(start, str):
            refuse_private(start, self.data, option, self._columns)
        start = needed(start, option, "public centroids: 0,0;1,1 or a table with the columns")
        self._start = _start_of(start, self._columns, option)
        if not all(a <= x <= b for row in self._start for a, x, b in zip(self._low, row, self._high, strict=True)):
            raise InvalidInput(option, start, f"centroids within {box_option}")
        rounds, expected = self.given["iterations"], "a public number of rounds, 1 to 1000"
        self._rounds = counting(rounds, self.called("iterations"), expected, 1, 1000)

    def find(self, bits: Bits | None) -> AnsweredQuestion:
        """Centroids of the points in the box."""
        between = self.between()
        rows = self.rows([(name, self.called("columns")) for name in self._columns])
        rejected = Rejected.of(rows)
        points, whose = data_numbers(rows, self._columns, rejected), self.owned(rows, rejected)
        limits = (self._low, self._high)
        with fields({"start": self.called("start"), "box": self.called("box")}):
            answered = kmeans(
                points,
                between,
                self.epsilon,
                box=limits,
                start=np.array(self._start),
                iterations=self._rounds,
                neighbours=self.given["neighbours"],
                bits=bits,
                **whose,
            )
        answered, lost = rounded(answered, *limits), below_noise(answered)
        taken = {"cluster", "count"} & set(self._columns)
        if taken:
            raise InvalidInput(self.called("columns"), min(taken), "coordinates of other names than cluster and count")
        columns = {f"x{axis}": name for axis, name in enumerate(self._columns)}
        answered = replace(answered, table=answered.table.rename(columns=columns))
        domain = {
            "columns": self._columns,
            "box": {"low": self._low, "high": self._high},
            "start": self._start,
            "iterations": self._rounds,
        }
        warnings = [self._drowned(answered, lost)] if lost else []
        details = {"clusters_below_noise": lost}
        unit = self.dependence.unit(there_or_not=self.there_or_not)
        return AnsweredQuestion(answered, rejected, domain, unit, details=details, warnings=warnings)

    def per_person(self) -> PerPerson:
        """The bound for one person: as many records as the dependence counts."""
        return self.counted_per_person(self.dependence.most)

    def _drowned(self, answered: Answered, lost: Sequence[int]) -> str:
        """One line about all clusters that are noise."""
        listed = ", ".join(map(str, lost[:5])) + (", ..." if len(lost) > 5 else "")
        return (
            f"the noise is larger than the count in {len(lost)} of {len(answered.table)} clusters ({listed}): scale "
            f"{_scale(answered, 'counts'):.4g}; such a centroid may be anywhere in the box. More records, a larger "
            f"epsilon or fewer {self.called('iterations')} help, in another answer that is paid for"
        )


def rounded(answered: Answered, low: Sequence[float], high: Sequence[float]) -> Answered:
    """Centroids to a power of ten that is at most a tenth of the noise in them, or of the box where that is smaller.

    From the noisy answer and the public box alone. A coordinate is a noisy sum, in steps of the box, over a noisy
    count.
    """
    table, scale = answered.table.copy(), _scale(answered, "sums")
    for axis, (least, most) in enumerate(zip(low, high, strict=True)):
        step, name = (most - least) / (2 * HALF), f"x{axis}"
        table[name] = [
            min(max(round(place, _digits(min(scale * step / max(count, 1), most - least))), least), most)
            for place, count in zip(table[name].tolist(), table["count"].tolist(), strict=True)
        ]
    return replace(answered, table=table)


def below_noise(answered: Answered) -> list[int]:
    """The clusters whose noisy count is less than the scale of the noise in it."""
    scale = _scale(answered, "counts")
    return [number for number, count in enumerate(answered.table["count"].tolist()) if count < scale]


def _scale(answered: Answered, name: str) -> float:
    """The scale of the noise in the counts, or in the sums, of every round."""
    return float(next(part.scale for part in answered.event.parts if part.name == name))


def _digits(noise: float) -> int:
    return -math.floor(math.log10(noise / 10))


def _start_of(given: Any, columns: Sequence[str], option: str) -> list[list[float]]:
    """The public start: x,y;x,y or a table with these columns, or centroids (k, d)."""
    if isinstance(given, str) and Path(given).suffix.lower() in (".csv", ".parquet", ".gz"):
        centroids: list[list[float]] = numbers(given, columns, option).tolist()
        return centroids
    rows = [row.split(",") for row in given.split(";")] if isinstance(given, str) else sequence(given)
    if not rows or any(len(sequence(row)) != len(columns) for row in rows):
        raise InvalidInput(option, given, f"a table of centroids, or {len(columns)} numbers for each: 0,0;1,1")
    return [[finite(cell, option) for cell in row] for row in rows]


def _round(
    steps: IntArray, centres: FloatArray, changes: tuple[Fraction, Fraction], epsilon: Fraction, bits: Bits
) -> tuple[FloatArray, IntArray, list[NoisyCounts]]:
    """One iteration in steps from the middle: nearest centroids of records, noisy counts and sums, new centroids.

    ``changes``: the moves of the counts and of the sums by one record.
    """
    k, d = centres.shape
    nearest = _nearest(steps, centres)
    sums = np.stack([np.bincount(nearest, steps[:, axis], minlength=k) for axis in range(d)], axis=1)
    counts = np.bincount(nearest, minlength=k)
    counts, first = add_integer_noise(counts, changes[0], epsilon / (d + 1), "counts", bits)
    sums, second = add_integer_noise(sums.astype(np.int64), changes[1], epsilon * d / (d + 1), "sums", bits)
    moved = np.clip(sums / np.maximum(counts, 1)[:, None], -HALF, HALF)
    return np.where(counts[:, None] >= 1, moved, centres), counts, [first, second]


def _nearest(steps: IntArray, centres: FloatArray) -> IntArray:
    """The nearest centroid of each record, the lowest number among equals."""
    nearest = np.zeros(len(steps), dtype=np.int64)
    least = np.full(len(steps), np.inf)
    for number, centre in enumerate(centres):
        distance = ((steps - centre) ** 2).sum(axis=1)
        nearer = distance < least
        nearest[nearer], least[nearer] = number, distance[nearer]
    return nearest


def _points(points: Any) -> FloatArray:
    rows = plain_numbers(points, "points")
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InvalidInput("points", f"shape {rows.shape}", "numbers (n, d), one row per record")
    return rows


def _checked_box(box: Any, d: int) -> _Box:
    if box is None or not isinstance(box, (tuple, list)) or len(box) != 2:
        raise InvalidInput("box", box, "a public box (low, high): unbounded points cannot be protected")
    low, high = ([exact_number(x, "box") for x in np.ravel(side).tolist()] for side in box)
    if len(low) not in (1, d) or len(high) not in (1, d):
        raise InvalidInput("box", f"{len(low)} and {len(high)} numbers", f"low < high on each of {d} axes")
    for a, b in zip(low * (d // len(low)), high * (d // len(high)), strict=True):
        if not a < b:
            raise InvalidInput("box", f"{a} and {b}", f"low < high on each of {d} axes")
        resolved(a, b, "box")
    least, most = np.array([float(x) for x in low]), np.array([float(x) for x in high])
    return _Box(np.broadcast_to(least, (d,)), np.broadcast_to(most, (d,)))


def _centres(start: Any, limits: _Box) -> FloatArray:
    """The starting centroids, in steps from the middle."""
    rows = np.asarray(start, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != len(limits.low) or len(rows) == 0 or not np.isfinite(rows).all():
        raise InvalidInput("start", f"shape {rows.shape}", f"public centroids (k, {len(limits.low)})")
    steps: FloatArray = (np.clip(rows, limits.low, limits.high) - limits.middle) / limits.step
    return steps
