"""What pytest does about words: a test draws the system's only where it is marked, and says how seldom it is wrong."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from system_words import guard

#: Commands take no seed: tests below these places replay the system's words, each test its own.
COMMANDS_BELOW = (
    "tests/cli/", "tests/crashes/", "tests/faults/", "tests/real/", "tests/report/", "tests/test_examples.py",
)  # fmt: skip
#: A test that draws the system's words is wrong less often than this.
LARGEST_ERROR = Fraction(1, 10**9)
HINT = """
Everyday tests draw no words that nobody seeded. Give the library bits=ReplayBits(seed), and NumPy and random a seed;
where a command or a default draws, mark the test with pytest.mark.replayed_words; a test of the system's words
themselves with pytest.mark.system_words(error="1e-10", because="..") (tests/system_words)."""


def start() -> None:
    """Answer for the system in this process and in all that it starts."""
    os.environ[guard.FOLDER] = tempfile.mkdtemp(prefix="dphmm-words-")
    paths = [str(guard.SPAWNED), *filter(None, [os.environ.get("PYTHONPATH")])]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    guard.install()
    _watch_processes()
    _watch_generators()


def end() -> None:
    """Remove what processes left."""
    shutil.rmtree(os.environ[guard.FOLDER], ignore_errors=True)


def how_of(item: pytest.Item) -> str:
    """Whose words a test draws. Raises ValueError for a mark that says too little."""
    mark = item.get_closest_marker("system_words")
    if mark is not None:
        error_of(mark)
        return guard.SYSTEM
    replayed = item.nodeid.startswith(COMMANDS_BELOW) or item.get_closest_marker("replayed_words") is not None
    return guard.REPLAYED if replayed else guard.REFUSED


def error_of(mark: pytest.Mark) -> Fraction:
    """How often a test with ``system_words(error=.., because=..)`` may be wrong. Raises ValueError."""
    told = mark.kwargs
    if mark.args or set(told) != {"error", "because"} or not isinstance(told["error"], str) or not told["because"]:
        raise ValueError('system_words: expected system_words(error="1e-10", because="why it needs them")')
    error = Fraction(told["error"])
    if not 0 <= error < LARGEST_ERROR:
        raise ValueError(f"system_words: got error {told['error']}; expected less than 1e-9, or a test with a seed")
    return error


def no_words(key: str) -> AbstractContextManager[None]:
    """Nobody draws: while modules of tests are loaded."""
    return guard.drawing(guard.REFUSED, key)


def words_of(item: pytest.Item) -> AbstractContextManager[None]:
    """The words of a test, from before its fixtures are made; generators that all libraries share are seeded."""
    random.seed(item.nodeid)
    np.random.seed(random.getrandbits(32))  # noqa: NPY002
    return guard.drawing(how_of(item), item.nodeid)


def words_of_fixture(fixture: Any, request: Any) -> AbstractContextManager[None]:
    """The words of a fixture that tests share: its own, whichever test comes first."""
    parameter = getattr(request, "param", "")
    system = request.node.get_closest_marker("system_words") if request.scope != "session" else None
    how = guard.SYSTEM if system else guard.REPLAYED
    return guard.drawing(how, f"{fixture.baseid}::{fixture.argname} {parameter}")


def checked() -> Iterator[None]:
    """Fail where somebody asked for words in vain, though the error went nowhere."""
    guard.refusals()
    try:
        yield
    except BaseException:
        _fail_for(guard.refusals())
        raise
    _fail_for(guard.refusals())


def _fail_for(asked: list[str]) -> None:
    if asked:
        pytest.fail("; ".join(dict.fromkeys(asked)) + HINT, pytrace=False)


def _watch_processes() -> None:
    """Every process of a test looks where `guard` is, whatever environment the test gives it."""
    popen = subprocess.Popen.__init__

    def watched(self: Any, args: Any, *rest: Any, env: Any = None, **options: Any) -> None:
        guard.check_command([str(args)] if isinstance(args, (str, Path)) else [str(part) for part in args])
        popen(self, args, *rest, env=guard.child_environment(env), **options)

    subprocess.Popen.__init__ = watched  # type: ignore[method-assign]


def _watch_generators() -> None:
    """``random.Random()`` is seeded by the system past ``os.urandom``: here, when ours, by way of it."""
    seed = random.Random.seed

    def seeded(self: random.Random, a: Any = None, version: int = 2) -> None:
        frame = sys._getframe(1)
        while frame.f_back is not None and frame.f_globals.get("__name__") == "random":
            frame = frame.f_back
        seed(self, int.from_bytes(os.urandom(32)) if a is None and guard.is_ours(frame) else a, version)

    random.Random.seed = seeded  # type: ignore[method-assign]
