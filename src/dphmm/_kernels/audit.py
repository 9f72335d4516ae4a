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
def measured(belief: FloatArray, answers: FloatArray, truth: int) -> tuple[float, float, float, float, float]:
    """Mean distance to the true answer, distance of the mean, success of the likeliest state, truth's share, bits.

    ``belief`` (N,) sums to 1, ``answers`` (N, d). Of equally likely states the lowest number is guessed.
    """
    n, d = answers.shape
    mean = np.zeros(d)
    error, entropy, likeliest = 0.0, 0.0, 0
    for state in range(n):
        p = belief[state]
        if p <= 0.0:
            continue
        square = 0.0
        for axis in range(d):
            mean[axis] += p * answers[state, axis]
            step = answers[state, axis] - answers[truth, axis]
            square += step * step
        error += p * math.sqrt(square)
        entropy -= p * math.log2(p)
        if p > belief[likeliest]:
            likeliest = state
    off = 0.0
    for axis in range(d):
        off += (mean[axis] - answers[truth, axis]) ** 2
    success = 1.0 if likeliest == truth else 0.0
    return error, math.sqrt(off), success, belief[truth], max(entropy, 0.0)
