"""Sequences that a model could have made: to see what a release would do, without anybody's data."""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm.markov.model import MarkovModel
from dphmm.types import FloatArray, IntArray


def walks(model: MarkovModel, runs: int, steps: int, generator: np.random.Generator) -> IntArray:
    """States (runs, steps) at t = 1, 2, ... of independent walks, begun as the model says."""
    state = generator.choice(model.n_states, size=runs, p=model.initial / model.initial.sum())
    paths = np.empty((runs, steps), dtype=np.int64)
    for t in range(1, steps + 1):
        if t > 1 or model.start == "before":
            state = _moved(model.transition_at(t), state, generator.random(runs))
        paths[:, t - 1] = state
    return paths


def _moved(transition: Any, state: IntArray, chance: FloatArray) -> IntArray:
    """The next states: in each row the first entry at which the running sum passes its chance."""
    following = np.empty_like(state)
    for walk, (now, u) in enumerate(zip(state.tolist(), chance.tolist(), strict=True)):
        first, end = transition.indptr[now], transition.indptr[now + 1]
        running = np.cumsum(transition.data[first:end])
        place = int(np.searchsorted(running, u * running[-1], side="right"))
        following[walk] = transition.indices[first + min(place, end - first - 1)]
    return following
