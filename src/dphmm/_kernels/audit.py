"""Counting the points within a body around each of some points, and what a belief is worth against the truth."""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import FloatArray, IntArray


@kernel
def count_within(values: IntArray, offsets: IntArray, weights: IntArray, counts: IntArray) -> None:
    """Add to ``counts`` (n,) the ``weights`` of all points j with |values_i - values_j| <= offsets on every facet.

    ``values`` (n, m): points times facet normals, sorted by their first column.
    """
    n, m = values.shape
    for i in range(n):
        for j in range(i, n):
            if values[j, 0] - values[i, 0] > offsets[0]:
                break
            inside = True
            for k in range(1, m):
                if abs(values[j, k] - values[i, k]) > offsets[k]:
                    inside = False
                    break
            if inside:
                counts[i] += weights[j]
                if i != j:
                    counts[j] += weights[i]


@kernel
def measured(
    belief: FloatArray, answers: FloatArray, distances: FloatArray, truth: int
) -> tuple[float, float, float, float, FloatArray]:
    """Mean distance to the truth, success of the likeliest state, the true state's share, bits, and the mean answer.

    ``belief`` (N,) sums to 1, ``answers`` (N, d), ``distances`` (N,) of each state's answer to the truth; ``truth`` is
    the true state, -1 where it is none. Of equally likely states the lowest number is guessed.
    """
    n, d = answers.shape
    mean = np.zeros(d)
    error, entropy, likeliest = 0.0, 0.0, 0
    for state in range(n):
        p = belief[state]
        if p <= 0.0:
            continue
        for axis in range(d):
            mean[axis] += p * answers[state, axis]
        error += p * distances[state]
        entropy -= p * math.log2(p)
        if p > belief[likeliest]:
            likeliest = state
    success = 1.0 if likeliest == truth else 0.0
    share = belief[truth] if truth >= 0 else 0.0
    return error, success, share, max(entropy, 0.0), mean
