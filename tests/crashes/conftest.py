"""One warmed process for all tests of a worker."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from crashes import world
from crashes.arena import Arena
from crashes.arena import arena as opened


@pytest.fixture(scope="session")
def arena() -> Iterator[Arena]:
    """Starts works in forked children."""
    if not hasattr(os, "fork"):
        pytest.skip("the crashed processes are forks")
    with opened() as ready:
        yield ready


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files of the world, and no ledger yet."""
    world.write_files(tmp_path)
    return tmp_path
