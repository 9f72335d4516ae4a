"""k-means by DP-Lloyd: noisy sums and counts of every cluster, a fixed number of times.

Noise on finished centroids would not be private: a centroid is a mean over its own cluster, which may be small. Here
the number of iterations, the box and the starting centroids are public, and nothing stops early.

Proof: docs/proofs/dependent-markov.md, docs/proofs/contributions.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm._checks import exact_number, whole
from dphmm.accounting.learning import NoisyCounts
from dphmm.dependent._budget import Budget, add_integer_noise
from dphmm.dependent._contributions import grouped, owned, plain_numbers
from dphmm.dependent._counts import Answered, resolved
from dphmm.errors import InvalidInput
from dphmm.samplers.entropy import default_bits
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
    mechanism: str | None = None,
    accept_unproved: bool = False,
    bits: Bits | None = None,
) -> Answered:
    """Centroids of ``points`` (n, d), one per record: columns cluster, x0, x1, …, count.

    ``box``: public (low, high), each (d,) or a number. ``start``: public centroids (k, d). The counts are noisy, those
    of the last iteration, and may be negative. ``users`` (n,) and ``max_rows_per_user``, a public number: the first so
    many points of each person count. A coordinate that is no number counts as the middle of the box.
    """
    import pandas as pd

    dependence = grouped(dependence, max_rows_per_user)
    given = _points(points)
    given = given[owned(users, len(given), max_rows_per_user)]
    limits = _checked_box(box, given.shape[1])
    centres = _centres(start, limits)
    rounds = whole(iterations, "iterations", 1)
    if not isinstance(dependence, (str, tuple)) and dependence.n_tuples != len(given):
        raise InvalidInput("dependence", repr(dependence), f"one of the {len(given)} records")
    budget = Budget.of(dependence, epsilon, mechanism, accept_unproved)
    source = default_bits(bits)
    steps = limits.in_steps(given)
    each = budget.per_record / rounds
    parts: list[NoisyCounts] = []
    counts = np.zeros(len(centres), dtype=np.int64)
    for _ in range(rounds):
        centres, counts, spent = _round(steps, centres, each, source)
        parts += spent
    places = limits.middle + centres * limits.step
    columns = {f"x{axis}": places[:, axis] for axis in range(places.shape[1])}
    frame = pd.DataFrame({"cluster": np.arange(len(centres)), **columns, "count": counts})
    return Answered(frame, budget.event("k-means", "one point", tuple(parts), source))


def _round(
    steps: IntArray, centres: FloatArray, epsilon: Fraction, bits: Bits
) -> tuple[FloatArray, IntArray, list[NoisyCounts]]:
    """One iteration in steps from the middle: where records are nearest to, noisy counts and sums, new centroids."""
    k, d = centres.shape
    nearest = _nearest(steps, centres)
    sums = np.stack([np.bincount(nearest, steps[:, axis], minlength=k) for axis in range(d)], axis=1)
    counts = np.bincount(nearest, minlength=k)
    # A replaced record leaves one cluster and enters another: 2 in counts, twice the half-widths in sums.
    counts, first = add_integer_noise(counts, Fraction(2), epsilon / (d + 1), "counts", bits)
    sums, second = add_integer_noise(sums.astype(np.int64), Fraction(2 * d * HALF), epsilon * d / (d + 1), "sums", bits)
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
    given = plain_numbers(points, "points")
    if given.ndim != 2 or given.shape[1] == 0:
        raise InvalidInput("points", f"shape {given.shape}", "numbers (n, d), one row per record")
    return given


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
    given = np.asarray(start, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] != len(limits.low) or len(given) == 0 or not np.isfinite(given).all():
        raise InvalidInput("start", f"shape {given.shape}", f"public centroids (k, {len(limits.low)})")
    found: FloatArray = (np.clip(given, limits.low, limits.high) - limits.middle) / limits.step
    return found
