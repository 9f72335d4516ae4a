"""`PYTHONPATH=tests python -m system_words` runs every test that draws the system's own words 200 times, alone.

Each is marked with how often it may be wrong, less than once in 1e9 runs: one failure of 200 says that the mark is not
true. Exit 1 if any fails. ``--times`` runs them more or less often, ``--long`` also those of `make test-long`.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from fractions import Fraction
from typing import Any

import pytest

from system_words import guard, hooks

ROOT = guard.TESTS.parent


class _Marked:
    """Takes note of marked tests: {file::test without its parameters: the largest error stated}."""

    def __init__(self) -> None:
        self.found: dict[str, Fraction] = {}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            mark = item.get_closest_marker("system_words")
            if mark is not None:
                name = item.nodeid.partition("[")[0]
                self.found[name] = max(self.found.get(name, Fraction(0)), hooks.error_of(mark))


def marked(chosen: str) -> dict[str, Fraction]:
    """The marked tests of an expression for -m."""
    notes: Any = _Marked()
    pytest.main(["-n", "0", "-qq", "--collect-only", "--no-summary", "-m", chosen, str(guard.TESTS)], plugins=[notes])
    return notes.found


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="system_words", description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--long", action="store_true", help="the long tests too")
    given = parser.parse_args(arguments)
    chosen = "system_words" if given.long else "system_words and not long"
    failed = 0
    for name, error in marked(chosen).items():
        started = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", "-m", chosen]
        done = subprocess.run(
            [*command, "--times", str(given.times), name], cwd=ROOT, capture_output=True, text=True, check=False
        )
        failed += done.returncode != 0
        last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else done.stderr
        print(f"{name}: may be wrong once in {_runs(error)}; {last}, {time.monotonic() - started:.0f} s", flush=True)
    return int(failed > 0)


def _runs(error: Fraction) -> str:
    return "no number of runs" if error == 0 else f"{float(1 / error):.0e}"


if __name__ == "__main__":
    sys.exit(main())
