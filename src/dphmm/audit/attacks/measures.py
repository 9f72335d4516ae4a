"""How well an adversary does: Shokri's expected error, the chance of being right, entropy, degree of protection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dphmm.audit.resampling import Interval, Subjects, interval, ratio
from dphmm.states.space import StateSpace
from dphmm.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Measured:
    """What an adversary's belief was worth, answer by answer (n,), in the order of ``users`` and ``t``.

    expected_error : the mean distance, under the belief, to the true answer (answer units; on a map metres on the
    ground to the true place). guess_error : the distance of its mean. success : whether the likeliest state is the true
    one. probability : of the true state. entropy : of the belief, in bits. degree : how many possible states the truth
    was hidden among (0 where it was not possible).
    """

    name: str
    users: tuple[str, ...]
    t: IntArray
    expected_error: FloatArray
    guess_error: FloatArray
    success: FloatArray
    probability: FloatArray
    entropy: FloatArray
    degree: FloatArray

    def overall(self) -> dict[str, float]:
        """The mean of each measure over all answers."""
        return {name: float(getattr(self, name).mean()) for name in MEASURES}

    def intervals(self) -> dict[str, Interval]:
        """The same with 95 % bootstrap intervals: what would come out for other subjects like these."""
        whose = Subjects.of(self.users, len(self.t))
        once = np.ones(len(self.t))
        return {
            name: interval(whose.sums(getattr(self, name), once), lambda sums: ratio(sums[:, 0], sums[:, 1]))
            for name in MEASURES
        }

    def per_step(self) -> dict[str, Any]:
        """The mean of each measure at each step: ``t``, how many answers, and the measures."""
        steps, at, counts = np.unique(self.t, return_inverse=True, return_counts=True)
        table: dict[str, Any] = {"t": steps, "answers": counts}
        for name in MEASURES:
            table[name] = np.bincount(at.reshape(-1), weights=getattr(self, name)) / counts
        return table


MEASURES = ("expected_error", "guess_error", "success", "probability", "entropy", "degree")


class Target(NamedTuple):
    """What an adversary looks for at one step.

    The true answer (d,), its distance (N,) from every state's answer (on a map metres on the ground), the true state,
    -1 where it is in none, and how many states hide it.
    """

    answer: FloatArray
    distances: FloatArray
    state: int
    degree: int


class Scores:
    """Collects the measures of beliefs, one at a time."""

    def __init__(self, space: StateSpace) -> None:
        self._space = space
        self._answers = np.ascontiguousarray(space.own_answers)
        self._rows: list[tuple[float, ...]] = []
        self._keys: list[tuple[str, int]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, user: str, t: int, belief: FloatArray, target: Target) -> None:
        """One belief (N,) about a step whose truth is known here."""
        from dphmm._kernels.audit import measured

        error, success, share, bits, mean = measured(belief, self._answers, target.distances, target.state)
        off = float(self._space.distances(mean, target.answer))
        self._rows.append((error, off, success, share, bits, float(target.degree)))
        self._keys.append((user, t))

    def done(self, name: str) -> Measured:
        """The measures of all."""
        columns = np.array(self._rows, dtype=np.float64).reshape(-1, len(MEASURES)).T
        users, t = tuple(user for user, _ in self._keys), np.array([t for _, t in self._keys], dtype=np.int64)
        return Measured(name, users, t, *columns)
