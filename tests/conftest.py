"""Where the tests find real data, and how they skip without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real data: DPHMM_DATA, or ../shared/data beside the project."""
    given = os.environ.get("DPHMM_DATA")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real data here: set DPHMM_DATA to its folder")
    return folder
