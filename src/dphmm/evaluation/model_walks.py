"""Sequences that a model could have made: to see what a release would do, without anybody's data."""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm.markov.jump import Jump
from dphmm.markov.model import MarkovModel
from dphmm.types import FloatArray, IntArray


def walks(model: MarkovModel, runs: int, steps: int, generator: np.random.Generator) -> IntArray:
    """States (runs, steps) at t = 1, 2, ... of independent walks, begun as the model says."""
    state = generator.choice(model.n_states, size=runs, p=model.initial / model.initial.sum())
    paths = np.empty((runs, steps), dtype=np.int64)
    for t in range(1, steps + 1):
        if t > 1 or model.start == "before":
            chance = generator.random(runs)
            if model.jump is None:
                state = _moved(model.matrix_at(t), state, chance)
            else:
                state = _jumped(model.jump, model.matrix_at(t), state, chance)
        paths[:, t - 1] = state
    return paths


def _jumped(jump: Jump, matrix: Any, state: IntArray, chance: FloatArray) -> IntArray:
    """The next states: chances below the rate of the jump say where to, all others which move."""
    running = np.cumsum(jump.into)
    jumps = chance < jump.rate
    places = np.searchsorted(running, chance[jumps] / jump.rate * running[-1], side="right")
    following = np.empty_like(state)
    following[jumps] = np.minimum(places, len(running) - 1)
    following[~jumps] = _moved(matrix, state[~jumps], (chance[~jumps] - jump.rate) / jump.stays)
    return following


def _moved(transition: Any, state: IntArray, chance: FloatArray) -> IntArray:
    """The next states: in each row the first entry at which the running sum passes its chance."""
    following = np.empty_like(state)
    for walk, (now, u) in enumerate(zip(state.tolist(), chance.tolist(), strict=True)):
        first, end = transition.indptr[now], transition.indptr[now + 1]
        running = np.cumsum(transition.data[first:end])
        place = int(np.searchsorted(running, u * running[-1], side="right"))
        following[walk] = transition.indices[first + min(place, end - first - 1)]
    return following
