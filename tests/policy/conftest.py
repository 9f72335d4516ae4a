"""The running example of the DPHMM paper as fixtures; states s1..s6 are 0..5."""

from __future__ import annotations

import pytest

from running_example import ANSWERS, TRANSITION


@pytest.fixture
def answers():
    return ANSWERS


@pytest.fixture
def moves():
    """The running example's transition matrix, all entries one half (THEORY 10)."""
    return TRANSITION


@pytest.fixture
def by_number():
    """Edges as the paper numbers them: 12 is the edge s1s2."""
    return lambda *pairs: [[p // 10 - 1, p % 10 - 1] for p in pairs]
