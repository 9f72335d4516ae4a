"""Which states the public history leaves possible, as a set that is moved by non-zero entries and by nothing else."""

from __future__ import annotations

import numpy as np

from exactness.case import Case
from exactness.instances import Instance, Query


def at_first(instance: Instance, query: Query) -> np.ndarray:
    initial = instance.initial > 0
    return reach(instance, initial) if query.options["start"] == "before" else initial


def reach(instance: Instance, states: np.ndarray) -> np.ndarray:
    """Where one move leads from any of the chain's states."""
    n = len(instance.initial)
    return np.array([any(states[i] and instance.transition[i, j] > 0 for i in range(n)) for j in range(n)])


def hidden(instance: Instance, states: np.ndarray) -> np.ndarray:
    """What may be hidden where these states of the chain are possible."""
    if instance.secrets is None:
        return states
    return np.array([any(states[instance.secrets == secret]) for secret in range(instance.n)])


def left_by(case: Case) -> np.ndarray:
    """The states that the answer does not exclude: those whose body's lattice, moved to their answer, holds it."""
    z = [int(x) for x in case.step.z]
    left = case.support.copy()
    for s in case.possible:
        noise = [a - b for a, b in zip(z, case.images[s], strict=True)]
        left[s] = case.law.body.coordinates_of(noise) is not None
    return left
