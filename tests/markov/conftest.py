"""The running example of the papers with its transition matrix (THEORY 10)."""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.markov import MarkovModel

#: From each of s1..s6 to two others, probability one half each.
MOVES = {1: (2, 4), 2: (3, 5), 3: (1, 2), 4: (2, 5), 5: (4, 6), 6: (5, 6)}


@pytest.fixture
def example_matrix() -> np.ndarray:
    matrix = np.zeros((6, 6))
    for source, targets in MOVES.items():
        for target in targets:
            matrix[source - 1, target - 1] = 0.5
    return matrix


@pytest.fixture
def example(example_matrix: np.ndarray) -> MarkovModel:
    return MarkovModel([1, 0, 0, 0, 0, 0], example_matrix)
