"""Estimates of the public belief after a release. They are computed from answers, so they cost nothing.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dphmm._checks import one_of
from dphmm.markov.filtering import Belief
from dphmm.states.space import Labels, StateSpace
from dphmm.types import FloatArray

#: What an estimate may minimise: mean squared error, mean distance, or the chance of naming a wrong state.
ESTIMATE_LOSSES = ("squared", "euclidean", "state")


class Estimate(NamedTuple):
    """A guess: the ``answer`` (d,), of labels a name; the likeliest ``state``, and its ``probability``."""

    answer: Any
    state: int
    probability: float


def estimate(posterior: Belief, space: StateSpace, loss: str = "squared") -> Estimate:
    """The Bayes estimate: the posterior mean answer, the Euclidean median, or the answer of the likeliest state.

    For labels it is the name of the likeliest state, whatever the loss. Ties between likeliest states, to 1e-12, go to
    the lowest number. Raises InvalidInput for another loss than `ESTIMATE_LOSSES`.
    """
    one_of(loss, ESTIMATE_LOSSES, "loss")
    p, answers = posterior.probability, space.own_answers
    point, state = p @ answers, int(np.argmax(p >= p.max() * (1.0 - 1e-12)))
    probability = min(1.0, float(p.max()))
    if isinstance(space, Labels):
        return Estimate(space.label_of(state), state, probability)
    if loss == "euclidean":
        point = _euclidean_median(p, answers)
    elif loss == "state":
        point = answers[state].copy()
    return Estimate(point, state, probability)


def _euclidean_median(p: FloatArray, answers: FloatArray) -> FloatArray:
    """Weiszfeld's iteration for argmin_y sum p_s |y - f_s|, from the mean."""
    used = p > 0
    weights, points = p[used], answers[used]
    y: FloatArray = weights @ points
    for _ in range(200):
        distance = np.maximum(np.linalg.norm(points - y, axis=1), 1e-12)
        pull = weights / distance
        moved: FloatArray = pull @ points / pull.sum()
        if np.linalg.norm(moved - y) <= 1e-9 * (1 + np.linalg.norm(y)):
            return moved
        y = moved
    return y
