"""Learning a model from ten million observed transitions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, below
from benchmarks.speed.timing import timed

TRANSITIONS = 10_000_000
_STEPS = 1000
TARGET = below(3.0)


def figures(effort: Effort) -> Iterator[Figure]:
    """The same number of transitions over few and over many states."""
    for side in effort.pick((60,), (10, 60, 316)):
        sequences = _walks(side)
        taken = timed(lambda given=sequences, n=side**2: dphmm.MarkovModel.fit(given, n_states=n), effort.pick(1, 5))
        name = f"{TRANSITIONS:,} transitions, {side**2:,} states"
        yield Figure("fit", name, taken, "s", TARGET, f"{len(sequences):,} sequences")


def _walks(side: int) -> list[np.ndarray]:
    """Walks on the grid to one of nine cells at a step; at the border a person stays where a move would lead out."""
    chance = np.random.default_rng(1)
    people = TRANSITIONS // _STEPS
    place = chance.integers(0, side, size=(people, 2))
    path = np.empty((people, _STEPS + 1), dtype=np.int64)
    for t in range(_STEPS + 1):
        path[:, t] = place[:, 1] * side + place[:, 0]
        place = np.clip(place + chance.integers(-1, 2, size=place.shape), 0, side - 1)
    return list(path)
