"""True states beside released rows: for the data owner alone."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from dphmm.audit.released_file import ReleasedFile
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.states.observed import in_steps, true_states
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import Trajectories
from dphmm.types import IntArray


def truth_of(file: ReleasedFile, truth: Any, model: MarkovModel, space: StateSpace) -> IntArray:
    """The true state (n,) of each released row, -1 for a name that no state has.

    ``truth`` : trajectories as they were released, a file or a table. Raises InvalidInput, without any of it, where it
    does not have every released row.
    """
    stepped, _ = in_steps(_loaded(truth), model.step)
    states, _ = true_states(stepped, space)
    visits, _ = stepped.visits()
    known = {
        (visit.user, int(step)): int(states[row])
        for visit in visits
        for step, row in zip(visit.steps.tolist(), visit.rows.tolist(), strict=True)
    }
    keys = list(zip(file.users, file.step.tolist(), strict=True))
    missing = sum(key not in known for key in keys)
    if missing:
        came = f"no row for {missing} of {len(keys)} released rows"
        raise InvalidInput("truth", came, "the trajectories that were released, all of them")
    return np.array([known[key] for key in keys], dtype=np.int64)


def _loaded(truth: Any) -> Trajectories:
    from dphmm.storage.trajectories import load_trajectories, trajectories_from_table

    if isinstance(truth, Trajectories):
        return truth
    loaded = load_trajectories(truth) if isinstance(truth, (str, os.PathLike)) else trajectories_from_table(truth)
    return loaded.trajectories
