"""The papers' algorithms written plainly: tests/naive_release.py, held to the library by tests/test_naive_twin.py."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tests"))

import naive_release

__all__ = ["naive_release"]
