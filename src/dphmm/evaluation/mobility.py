"""What a release says of how people move: how long they stay, and how far they get about."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dphmm.audit.resampling import Interval, Subjects, counted, interval, ratio
from dphmm.errors import InvalidInput
from dphmm.evaluation.compared import points, states
from dphmm.evaluation.densities import follows
from dphmm.types import FloatArray, IntArray


def visit_lengths(visited: ArrayLike, subjects: ArrayLike, steps: ArrayLike | None = None) -> tuple[IntArray, IntArray]:
    """How many rows each visit lasts: a run of one state of one subject, rows one step apart where ``steps`` are given.

    ``visited`` are state numbers (n,), the rows of a subject in order of time. Returns lengths (v,) and the number of
    each visit's subject, in order of first appearance.
    """
    given = states(visited, "visited", 2**62)
    who = Subjects.of(subjects, len(given))
    order = np.argsort(who.number, kind="stable")
    ordered = given[order]
    goes_on = follows(who, order, steps) & (ordered[1:] == ordered[:-1])
    begins = np.flatnonzero(np.concatenate(([True], ~goes_on)))
    return np.diff(np.append(begins, len(given))), who.number[order][begins]


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
    given = points(places, "places")
    who = Subjects.of(subjects, len(given))
    rows = np.bincount(who.number, minlength=who.count)[:, None]
    middle = who.sums(*given.T) / rows
    return np.asarray(np.sqrt(who.sums(((given - middle[who.number]) ** 2).sum(axis=1))[:, 0] / rows[:, 0]))


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
