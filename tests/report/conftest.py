"""Releases of every kind of states, made once."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from report.worlds import WORLDS


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a world: world("grid")."""

    @cache
    def made(name: str) -> Path:
        return WORLDS[name](tmp_path_factory.mktemp(name))

    return made
