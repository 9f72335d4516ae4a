"""Axes for one picture."""

from __future__ import annotations

import pytest


@pytest.fixture
def ax():
    from matplotlib.figure import Figure

    return Figure().add_subplot()
