"""What a service answers that is asked for the nearest places, and told a published place instead of the true one.

The location-sets paper's second measure (CCS 2015, Section 2.4).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dphmm.audit.resampling import Interval, Subjects, interval, ratio
from dphmm.errors import InvalidInput
from dphmm.evaluation.compared import points
from dphmm.types import FloatArray, IntArray


class PrecisionRecall(NamedTuple):
    """Of the places returned, how many are wanted; of the places wanted, how many are returned."""

    precision: Interval
    recall: Interval


def nearest_places_error(
    truth: ArrayLike,
    released: ArrayLike,
    places: ArrayLike,
    k: int,
    returned: int | None = None,
    subjects: ArrayLike | None = None,
) -> PrecisionRecall:
    """Precision and recall of k-nearest-places queries.

    Parameters
    ----------
    truth, released : places (n, d) where people are, and where they are said to be, in any one unit.
    places : (m, d) in the same unit. Of places equally far those with the lowest numbers are nearest.
    k : the k places nearest to the true place are wanted.
    returned : so many nearest to the published one are returned; k by default, and then precision and recall are equal.
        More of them raise recall and lower precision.
    subjects : as in `dphmm.evaluation.error`.
    """
    true = points(truth, "truth")
    given, known = points(released, "released", true), points(places, "places")
    if known.shape[1] != true.shape[1]:
        raise InvalidInput("places", f"shape {known.shape}", f"(m, {true.shape[1]}), as the truth")
    wanted = nearest(true, known, _number(k, "k", len(known)))
    found = nearest(given, known, _number(k if returned is None else returned, "returned", len(known)))
    both = hits(wanted, found)
    parts = Subjects.of(subjects, len(true)).sums(both, np.ones(len(true)))
    return PrecisionRecall(
        interval(parts, lambda totals: ratio(totals[:, 0], totals[:, 1]) / found.shape[1]),
        interval(parts, lambda totals: ratio(totals[:, 0], totals[:, 1]) / wanted.shape[1]),
    )


def nearest(asked: FloatArray, places: FloatArray, k: int) -> IntArray:
    """The numbers (n, k) of the places nearest to each point, ties to the lowest number."""
    from scipy.spatial import cKDTree

    tree: Any = cKDTree(places)
    found = np.empty((len(asked), k), dtype=np.int64)
    rows, width = np.arange(len(asked)), min(len(places), k + 8)
    while len(rows):
        distance, number = (np.asarray(part).reshape(len(rows), width) for part in tree.query(asked[rows], k=width))
        order = np.lexsort((number, distance), axis=1)
        found[rows] = np.take_along_axis(number, order, axis=1)[:, :k]
        # As far as the last of them as many more may lie, with lower numbers, that were not looked at.
        rows = rows[distance[:, -1] <= distance[:, k - 1]] if width < len(places) else rows[:0]
        width = min(len(places), 2 * width)
    return found


def hits(wanted: IntArray, found: IntArray) -> FloatArray:
    """How many of the wanted places (n, k) are among those found (n, j), row by row."""
    low, high = np.sort(wanted, axis=1), np.sort(found, axis=1)
    shift = 1 + max(int(low.max()), int(high.max()))
    rows = np.arange(len(low))[:, None] * shift
    both = np.isin((low + rows).ravel(), (high + rows).ravel(), assume_unique=True)
    count: FloatArray = both.reshape(low.shape).sum(axis=1).astype(np.float64)
    return count


def _number(value: int, field: str, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= most:
        raise InvalidInput(field, value, f"a number of places from 1 to {most}")
    return int(value)
