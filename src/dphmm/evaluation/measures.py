"""The error of a release against the truth, for one step and for all people together.

- errors of places: both means are in use. Eq. (3) of the DPHMM paper and Eq. (2) of the location-sets paper are root
  mean squares, Section 8 of the former plots means of the norm (errata 17).
- nearest places: the answer of a service for nearest places that gets a published place instead of the
  true one (location sets, CCS 2015, Section 2.4)
- densities and flows: the number of people at each place, and between every two places. Errors are total variation
  distances between two distributions: from 0 (the same) to 1 (nothing in common).
- mobility: the lengths of stays, and the radius of gyration

Every measure has a 95 % bootstrap interval over subjects. Inputs are checked, and never echoed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._checks import one_of
from dphmm.audit.resampling import Interval, RowSubjects, counted, interval, ratio
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, IntArray

#: The mean radius of the earth, km: a sphere is within 0.6 % of the distances on it.
EARTH_KM = 6371.0088
BETWEEN = ("steps", "ends")


def points(values: ArrayLike, field: str, like: FloatArray | None = None) -> FloatArray:
    """Finite points (n, d), shaped ``like`` others. Raises InvalidInput; values are never echoed."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or array.ndim != 2:
        raise InvalidInput(field, f"{array.dtype} of shape {array.shape}", "numbers of shape (n, d)")
    if like is not None and array.shape != like.shape:
        raise InvalidInput(field, f"shape {array.shape}", f"{like.shape}, as the truth")
    finite = array.astype(np.float64)
    if not np.isfinite(finite).all():
        raise InvalidInput(field, "NaN or an infinity", "finite numbers")
    return finite


def states(values: ArrayLike, field: str, n_states: int, like: IntArray | None = None) -> IntArray:
    """State numbers (n,) from 0 to ``n_states`` - 1. Raises InvalidInput; values are never echoed."""
    if isinstance(n_states, bool) or not isinstance(n_states, (int, np.integer)) or n_states < 1:
        raise InvalidInput("n_states", type(n_states).__name__, "the number of states, 1 or more")
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise InvalidInput(field, f"{array.dtype} of shape {array.shape}", "state numbers of shape (n,)")
    if like is not None and array.shape != like.shape:
        raise InvalidInput(field, f"shape {array.shape}", f"{like.shape}, as the truth")
    numbers = array.astype(np.int64)
    if len(numbers) and not 0 <= numbers.min() <= numbers.max() < n_states:
        raise InvalidInput(field, "a number that is no state", f"state numbers from 0 to {n_states - 1}")
    return numbers


class Error(NamedTuple):
    """Distances of published places from true ones: their mean, and the root of their mean square."""

    mean: Interval
    rms: Interval


def error(truth: ArrayLike, released: ArrayLike, subjects: ArrayLike | None = None) -> Error:
    """Euclidean distances between true and published answers, in answer units (metres for maps).

    Parameters
    ----------
    truth, released : answers (n, d), row by row: z, estimates or smoothed answers against f(true state).
    subjects : label (n,) of each row, which intervals resample; every row its own subject without.

    Source: DPHMM 2016, Eq. (3) and Section 8; location sets CCS 2015, Eq. (2).
    """
    true = points(truth, "truth")
    return of_distances(np.linalg.norm(points(released, "released", true) - true, axis=1), subjects)


def error_km(
    lat: ArrayLike,
    lon: ArrayLike,
    released_lat: ArrayLike,
    released_lon: ArrayLike,
    subjects: ArrayLike | None = None,
) -> Error:
    """Great-circle distances in km between true and published places (n,) in degrees; ``subjects`` as in `error`."""
    true, published = _places(lat, lon, "lat, lon"), _places(released_lat, released_lon, "released_lat, released_lon")
    if true.shape != published.shape:
        raise InvalidInput("released_lat", f"{len(published)} places", f"{len(true)}, as the truth")
    half = np.sin((published - true) / 2) ** 2
    inner = half[:, 0] + np.cos(true[:, 0]) * np.cos(published[:, 0]) * half[:, 1]
    return of_distances(2 * EARTH_KM * np.arcsin(np.sqrt(np.minimum(inner, 1.0))), subjects)


def of_distances(distances: ArrayLike, subjects: ArrayLike | None = None) -> Error:
    """The error of distances (n,) that are known already, in their own unit."""
    lengths = points(np.asarray(distances)[:, None], "distances")[:, 0]
    parts = RowSubjects.of(subjects, len(lengths)).sums(lengths, lengths**2, np.ones(len(lengths)))
    return Error(
        interval(parts, lambda totals: ratio(totals[:, 0], totals[:, 2])),
        interval(parts, lambda totals: np.sqrt(ratio(totals[:, 1], totals[:, 2]))),
    )


def _places(lat: ArrayLike, lon: ArrayLike, field: str) -> FloatArray:
    both = [np.asarray(lat), np.asarray(lon)]
    if both[0].ndim != 1 or both[0].shape != both[1].shape:
        raise InvalidInput(field, f"shapes {both[0].shape} and {both[1].shape}", "degrees (n,), as many of each")
    return np.radians(points(np.stack(both, axis=1), field))


class PrecisionRecall(NamedTuple):
    """The share of returned places that are wanted, and the share of wanted places that are returned."""

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
    places : (m, d) in the same unit. Among places equally far, the lowest numbers are nearest.
    k : the k places nearest to the true place are wanted.
    returned : so many nearest to the published one are returned; k by default, and then precision and recall are equal.
        More of them raise recall and lower precision.
    subjects : as in `dphmm.evaluation.error`.
    """
    true = points(truth, "truth")
    published, known = points(released, "released", true), points(places, "places")
    if known.shape[1] != true.shape[1]:
        raise InvalidInput("places", f"shape {known.shape}", f"(m, {true.shape[1]}), as the truth")
    wanted = nearest(true, known, _number(k, "k", len(known)))
    answered = nearest(published, known, _number(k if returned is None else returned, "returned", len(known)))
    both = hits(wanted, answered)
    parts = RowSubjects.of(subjects, len(true)).sums(both, np.ones(len(true)))
    return PrecisionRecall(
        interval(parts, lambda totals: ratio(totals[:, 0], totals[:, 1]) / answered.shape[1]),
        interval(parts, lambda totals: ratio(totals[:, 0], totals[:, 1]) / wanted.shape[1]),
    )


def nearest(asked: FloatArray, places: FloatArray, k: int) -> IntArray:
    """The numbers (n, k) of the places nearest to each point, ties to the lowest number."""
    from scipy.spatial import cKDTree

    tree: Any = cKDTree(places)
    numbers = np.empty((len(asked), k), dtype=np.int64)
    rows, width = np.arange(len(asked)), min(len(places), k + 8)
    while len(rows):
        distance, number = (np.asarray(part).reshape(len(rows), width) for part in tree.query(asked[rows], k=width))
        order = np.lexsort((number, distance), axis=1)
        numbers[rows] = np.take_along_axis(number, order, axis=1)[:, :k]
        # As far as the last of them as many more may lie, with lower numbers, that were not looked at.
        rows = rows[distance[:, -1] <= distance[:, k - 1]] if width < len(places) else rows[:0]
        width = min(len(places), 2 * width)
    return numbers


def hits(wanted: IntArray, found: IntArray) -> FloatArray:
    """The number of wanted places (n, k) among those found (n, j), row by row."""
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


def density_error(truth: ArrayLike, released: ArrayLike, n_states: int, subjects: ArrayLike | None = None) -> Interval:
    """The total variation between how often each state is visited in truth and as published.

    Parameters
    ----------
    truth, released : state numbers (n,), row by row: true states, and estimated, smoothed or snapped ones.
    n_states : N.
    subjects : label (n,) of each row, which intervals resample; every row its own subject without.
    """
    true = states(truth, "truth", n_states)
    published = states(released, "released", n_states, true)
    who = RowSubjects.of(subjects, len(true))
    return _variation(who.counts(true, n_states), who.counts(published, n_states))


def flow_error(
    truth: ArrayLike,
    released: ArrayLike,
    n_states: int,
    subjects: ArrayLike,
    *,
    steps: ArrayLike | None = None,
    regions: ArrayLike | None = None,
    between: str = "steps",
) -> Interval:
    """The total variation between two origin-destination matrices.

    Parameters
    ----------
    truth, released, n_states : as in `density_error`; the rows of a subject in order of time.
    subjects : label (n,) of each row; a move is between rows of one subject, and intervals resample subjects.
    steps : number (n,) of each row's step. Only rows one step apart are a move then.
    regions : label (N,) of every state; moves between regions are counted instead of states.
    between : "steps": from each row to the next one of its subject. "ends": from a subject's first row to its last.
    """
    true = states(truth, "truth", n_states)
    published = states(released, "released", n_states, true)
    who = RowSubjects.of(subjects, len(true))
    one_of(between, BETWEEN, "between")
    region = _regions(regions, n_states)
    order = np.argsort(who.number, kind="stable")
    if between == "ends":
        _, first, rows = np.unique(who.number[order], return_index=True, return_counts=True)
        origin, destination = order[first], order[first + rows - 1]
    else:
        at = np.flatnonzero(follows(who, order, steps)) + 1
        origin, destination = order[at - 1], order[at]
    if not len(origin):
        raise InvalidInput("subjects", "no subject with two rows", "moves to compare")
    moves = [region[part[origin]] * n_states + region[part[destination]] for part in (true, published)]
    kinds, number = np.unique(np.concatenate(moves), return_inverse=True)
    tables = np.split(number.reshape(-1), 2)
    shape = (who.count, len(kinds))
    return _variation(*(counted(who.number[origin], table, shape) for table in tables))


def follows(who: RowSubjects, order: IntArray, steps: ArrayLike | None) -> BoolArray:
    """True where an ordered row but the first (n - 1,) is of the subject of the row before it, one step later.

    Without ``steps`` the subject alone counts. Raises InvalidInput for steps that do not ascend.
    """
    owner = who.number[order]
    same: BoolArray = owner[1:] == owner[:-1]
    if steps is None:
        return same
    numbers = np.asarray(steps)
    if numbers.shape != owner.shape or numbers.dtype.kind not in "iu":
        raise InvalidInput("steps", f"{numbers.dtype} of shape {numbers.shape}", f"integers ({len(owner)},)")
    ahead = np.diff(numbers[order].astype(np.int64))
    if (ahead[same] <= 0).any():
        raise InvalidInput("steps", "a step that is not after the one before", "the rows of a subject in order of time")
    next_step: BoolArray = same & (ahead == 1)
    return next_step


def _regions(regions: ArrayLike | None, n_states: int) -> IntArray:
    if regions is None:
        return np.arange(n_states, dtype=np.int64)
    labels = np.asarray(regions)
    if labels.shape != (n_states,):
        raise InvalidInput("regions", f"shape {labels.shape}", f"({n_states},), a label for every state")
    return np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _variation(true: sparse.csr_array, given: sparse.csr_array) -> Interval:
    width = true.shape[1]

    def distance(totals: FloatArray) -> FloatArray:
        rows = totals[:, :width].sum(axis=1)
        variation: FloatArray = ratio(np.abs(totals[:, :width] - totals[:, width:]).sum(axis=1), 2 * rows)
        return variation

    return interval(sparse.hstack([true, given], format="csr"), distance, centred=True)


def visit_lengths(visited: ArrayLike, subjects: ArrayLike, steps: ArrayLike | None = None) -> tuple[IntArray, IntArray]:
    """The lengths of visits in rows: runs of one state of one subject, one step apart if ``steps`` are given.

    ``visited`` are state numbers (n,), the rows of a subject in order of time. Returns lengths (v,) and the number of
    each visit's subject, in order of first appearance.
    """
    numbers = states(visited, "visited", 2**62)
    who = RowSubjects.of(subjects, len(numbers))
    order = np.argsort(who.number, kind="stable")
    ordered = numbers[order]
    goes_on = follows(who, order, steps) & (ordered[1:] == ordered[:-1])
    begins = np.flatnonzero(np.concatenate(([True], ~goes_on)))
    return np.diff(np.append(begins, len(numbers))), who.number[order][begins]


def visit_length_error(
    truth: ArrayLike, released: ArrayLike, subjects: ArrayLike, steps: ArrayLike | None = None
) -> Interval:
    """The Wasserstein distance, in steps, between the distributions of true and published lengths of visits.

    ``truth`` and ``released`` are state numbers (n,), ``subjects`` and ``steps`` as in `visit_lengths`; intervals
    resample subjects.
    """
    true = states(truth, "truth", 2**62)
    both = [visit_lengths(part, subjects, steps) for part in (true, states(released, "released", 2**62, true))]
    people = 1 + max(int(owner.max()) for _, owner in both)
    longest = max(int(length.max()) for length, _ in both)
    table = np.hstack([counted(owner, length - 1, (people, longest)).toarray() for length, owner in both])

    def distance(totals: FloatArray) -> FloatArray:
        laws = [np.cumsum(part, axis=1) for part in (totals[:, :longest], totals[:, longest:])]
        return np.asarray(np.abs(laws[0] / laws[0][:, -1:] - laws[1] / laws[1][:, -1:]).sum(axis=1))

    return interval(table, distance, centred=True)


def radius_of_gyration(places: ArrayLike, subjects: ArrayLike) -> FloatArray:
    """The root mean square distance of each subject's places (n, d) from their middle, in answer units.

    One number for each subject, in order of first appearance. Places on a plane: answers, not degrees.
    """
    positions = points(places, "places")
    who = RowSubjects.of(subjects, len(positions))
    rows = np.bincount(who.number, minlength=who.count)[:, None]
    middle = who.sums(*positions.T) / rows
    return np.asarray(np.sqrt(who.sums(((positions - middle[who.number]) ** 2).sum(axis=1))[:, 0] / rows[:, 0]))


def gyration_error(truth: ArrayLike, released: ArrayLike, subjects: ArrayLike) -> Interval:
    """The mean over subjects of how far the published radius of gyration is from the true one, in answer units.

    ``truth`` and ``released`` are places (n, d), ``subjects`` as in `radius_of_gyration`.
    """
    true = points(truth, "truth")
    if subjects is None:
        raise InvalidInput("subjects", "None", "a label for every row: a subject of one row goes nowhere")
    radii = [radius_of_gyration(part, subjects) for part in (true, points(released, "released", true))]
    off = np.abs(radii[1] - radii[0])
    parts = np.stack([off, np.ones(len(off))], axis=1)
    return interval(parts, lambda totals: ratio(totals[:, 0], totals[:, 1]))


def bootstrap_mean(values: ArrayLike) -> tuple[float, float, float]:
    """The mean of independent numbers (n,), and the ends of its 95 % bootstrap interval.

    2,000 resamples of fixed randomness.

    >>> bootstrap_mean([1.0, 1.0, 1.0])
    (1.0, 1.0, 1.0)
    """
    sample = np.asarray(values, dtype=np.float64)
    generator = np.random.default_rng(len(sample))
    means = sample[generator.integers(len(sample), size=(2000, len(sample)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(sample.mean()), float(low), float(high)
