"""Smooth finished releases: a table of releases in, a table of the same rows out, from public data alone.

A release was made knowing the answers before it; smoothing knows those after it too. It is post-processing: no true
state is there to be used, and nothing is spent.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm.batch import Progress, shown
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.constraint import DeltaSet, Support
from dphmm.policy.graph import PolicyGraph
from dphmm.session.retrospect import Hindsight, Published, Smoothed
from dphmm.session.setting import Setting, check_same_states
from dphmm.states.space import StateSpace
from dphmm.storage.smoothed import ReleasedRows, released_rows, smoothed_table
from dphmm.types import Exact, FloatArray

__all__ = ["decode", "epsilon_of", "smooth_rows"]

#: Most numbers that marginals may be: two gigabytes.
_MOST_MARGINALS = 2**28


def decode(
    released: Any,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact | None = None,
    *,
    constraint: str | DeltaSet | Support = "support",
    mechanism: str = "auto",
    scope: str = "global",
    flat: str = "thicken",
    thickness: Exact | Sequence[Exact] | None = None,
    protection: str = "nearest",
    start: str | None = None,
    marginals: bool = False,
    progress: bool | Progress = True,
) -> Any:
    """Smooth a finished release: what all answers of a subject together say of each of its steps.

    Parameters
    ----------
    released : what `release_many` or ``dphmm release`` gave: a pandas, polars or Arrow table with user, step, z_0..,
        epsilon and plan, and t where there are times; rows in any order, steps without a row are predicted through.
    model, policy, space, epsilon and the other choices : those of the release; ``epsilon`` is read from the table
        by default.
    marginals : add the probability of every state to every row.
    progress : show a bar on a terminal, or call (done, total).

    Returns
    -------
    A table of the same kind, its rows in the same order: user, t, step, smoothed_0.. (the posterior mean answer,
    the estimate of least expected squared error), smoothed (the likeliest state of the step), probability (of that
    state), path (the state on the likeliest path, Viterbi), for maps smoothed_lat, smoothed_lon, path_lat, path_lon,
    and with ``marginals`` a list of N numbers.

    Raises
    ------
    InvalidInput : a column that is missing or cannot be read; an answer that was drawn under another plan than model,
        policy, epsilon and options make.
    """
    from dphmm.storage.frames import to_kind

    check_same_states(model, policy, space)
    rows = released_rows(released, space)
    setting = Setting.of(
        *(model, policy, space),
        epsilon_of(rows) if epsilon is None else epsilon,
        constraint=constraint,
        mechanism=mechanism,
        scope=scope,
        flat=flat,
        thickness=thickness,
        protection=protection,
        start=start,
    )
    with shown(progress, "smooth") as report:
        smoothed = smooth_rows(rows, setting, marginals=marginals, progress=report)
    return to_kind(smoothed_table(rows, smoothed, space), released)


def smooth_rows(
    rows: ReleasedRows,
    setting: Setting,
    *,
    marginals: bool = False,
    progress: Progress | None = None,
) -> Smoothed:
    """The rows smoothed user by user, in their own order. Raises as `decode` does."""
    n, whole, space = len(rows.users), None, setting.space
    if marginals:
        whole = _room(n, space.n_states)
    mean, probability = np.empty((n, space.dimension)), np.empty(n)
    state, path = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    hindsight, done = Hindsight(setting), 0
    for user, own in rows.by_user():
        published = Published(user, rows.step[own], rows.z[own], [rows.plans[row] for row in own.tolist()])
        part = hindsight.smooth(published, marginals=marginals)
        mean[own], probability[own], state[own], path[own] = part.mean, part.probability, part.state, part.path
        if whole is not None:
            whole[own] = part.marginals
        done += len(own)
        if progress is not None:
            progress(done, n)
    return Smoothed(mean, state, probability, path, whole)


def epsilon_of(rows: ReleasedRows) -> Fraction:
    """The epsilon of the rows, as the decimal it prints as. Raises InvalidInput unless it is one and the same.

    Rows of a public constant have none.
    """
    found = np.unique(rows.epsilon[rows.epsilon != 0])
    if len(found) != 1:
        came = f"{len(found)} different ones in the table" if len(found) else "none in the table, public constants only"
        raise InvalidInput("epsilon", came, "one; give the epsilon of the release")
    return Fraction(repr(float(found[0])))


def _room(rows: int, n_states: int) -> FloatArray:
    if rows * n_states > _MOST_MARGINALS:
        came = f"{rows} rows of {n_states} states"
        raise InvalidInput("marginals", came, f"at most {_MOST_MARGINALS} numbers; smooth some users at a time")
    return np.empty((rows, n_states))
