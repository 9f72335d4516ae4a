"""Floats from words, at the ends of what words can be: nothing leaves its range.

Claim. Whatever the words, floats are above 0 and at most 1, exponentials are finite and not negative, and a choice is
one of those given. The word of all ones is rounded to 1 itself, which no cumulative weight is above: without a last
bound the choice would be one too many. It happens once in 2**53 words, so only crafted words show it.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.samplers.uniform import choices, exponentials, unit_floats


class Words:
    """The same word again and again."""

    def __init__(self, word: int) -> None:
        self.word = word

    def uint64(self, n: int):
        return np.full(n, self.word, dtype=np.uint64)


@pytest.mark.parametrize("word", [0, 1, 2**11, 2**63, 2**64 - 2**11, 2**64 - 1])
def test_ends_stay_in_range(word):
    assert 0 < unit_floats(Words(word), 1)[0] <= 1
    assert 0 <= exponentials(Words(word), 1)[0] < 40
    for weights in ([1.0], [0.1] * 10, [1e-300, 1.0], [3.0, 2.0, 1e-9]):
        assert choices(Words(word), np.array(weights), 3).tolist() in [[k] * 3 for k in range(len(weights))]


def test_the_ends_choose_the_ends():
    weights = np.array([0.1] * 10)
    assert choices(Words(0), weights, 1).tolist() == [0]
    assert choices(Words(2**64 - 1), weights, 1).tolist() == [9]
