"""Noise that is not there, for tests of the answers before it."""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.dependent import _dependence


@pytest.fixture
def silent(monkeypatch):
    """Discrete Laplace noise that is always 0: what is left is the answer before noise."""

    class Nothing:
        def __init__(self, scale):
            assert scale > 0

        def draw(self, m, bits):
            return np.zeros(m, dtype=np.int64)

    monkeypatch.setattr(_dependence, "LaplaceSampler", Nothing)
