"""What a release says of all people together: how many are where, and how many go from where to where.

Errors are total variation distances between two distributions: the share of the whole that is in the wrong place, from
0 (the same) to 1 (nothing in common).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from dphmm._checks import one_of
from dphmm.audit.resampling import Interval, Subjects, counted, interval, ratio
from dphmm.errors import InvalidInput
from dphmm.evaluation.compared import states
from dphmm.types import BoolArray, FloatArray, IntArray

BETWEEN = ("steps", "ends")


def density_error(truth: ArrayLike, released: ArrayLike, n_states: int, subjects: ArrayLike | None = None) -> Interval:
    """The total variation between how often each state is visited in truth and as published.

    Parameters
    ----------
    truth, released : state numbers (n,), row by row: true states, and estimated, smoothed or snapped ones.
    n_states : N.
    subjects : label (n,) of each row, which intervals resample; every row its own subject without.
    """
    true = states(truth, "truth", n_states)
    given = states(released, "released", n_states, true)
    who = Subjects.of(subjects, len(true))
    return _variation(who.counts(true, n_states), who.counts(given, n_states))


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
    given = states(released, "released", n_states, true)
    who = Subjects.of(subjects, len(true))
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
    moves = [region[part[origin]] * n_states + region[part[destination]] for part in (true, given)]
    kinds, number = np.unique(np.concatenate(moves), return_inverse=True)
    tables = np.split(number.reshape(-1), 2)
    shape = (who.count, len(kinds))
    return _variation(*(counted(who.number[origin], table, shape) for table in tables))


def follows(who: Subjects, order: IntArray, steps: ArrayLike | None) -> BoolArray:
    """Whether each ordered row but the first (n - 1,) is of the subject of the one before it, one step later."""
    owner = who.number[order]
    same: BoolArray = owner[1:] == owner[:-1]
    if steps is None:
        return same
    given = np.asarray(steps)
    if given.shape != owner.shape or given.dtype.kind not in "iu":
        raise InvalidInput("steps", f"{given.dtype} of shape {given.shape}", f"integers ({len(owner)},)")
    ahead = np.diff(given[order].astype(np.int64))
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
        found: FloatArray = ratio(np.abs(totals[:, :width] - totals[:, width:]).sum(axis=1), 2 * rows)
        return found

    return interval(sparse.hstack([true, given], format="csr"), distance, centred=True)
