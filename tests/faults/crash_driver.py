"""A release that kills itself after a given number of calls: run by the tests in a process of its own.

``python crash_driver.py FOLDER [N ...]`` runs the same release in a forked child for each N, killed (SIGKILL) at the
N-th call of a function of dphmm; 0 lets it finish and prints how many calls there were. The noise of a transaction is a
function of what is stored before it, so that an interrupted release can be compared with an uninterrupted one.
"""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

COMMAND = "release visits.csv --model pages.npz --policy pages.json --epsilon 1 -o out --ledger l.db --yes"


class Countdown:
    """Kills the process at the N-th call of a function under dphmm; counts all calls if N is 0."""

    def __init__(self, at: int) -> None:
        import dphmm

        self.at = at
        self.calls = 0
        self._root = str(Path(dphmm.__file__).parent)

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(self._root):
            return
        self.calls += 1
        if self.calls == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def keyed_noise() -> None:
    """Draw every transaction from words that the number of steps stored before it decides."""
    from dphmm import ReplayBits
    from dphmm.samplers import entropy
    from dphmm.storage.ledger.sqlite import SqliteLedger

    words = [ReplayBits(0)]
    original = SqliteLedger.transaction

    @contextmanager
    def keyed(self: Any, subjects: Sequence[str] = ()) -> Iterator[Any]:
        connection = sqlite3.connect(self.path)
        (stored,) = connection.execute("SELECT count(*) FROM release").fetchone()
        connection.close()
        words[0] = ReplayBits(int(stored))
        with original(self, subjects) as transaction:
            yield transaction

    SqliteLedger.transaction = keyed  # type: ignore[method-assign]
    served = entropy._Words.serve
    entropy._Words.serve = lambda self, n: served(words[0]._words, n)  # type: ignore[method-assign]


def run(at: int, arguments: list[str]) -> None:
    """The command, counted; never returns."""
    import dphmm.release.batch
    from dphmm.cli.app import app

    dphmm.release.batch.CHUNK = 3
    keyed_noise()
    countdown = Countdown(at)
    sys.setprofile(countdown)
    try:
        app.main(arguments)
    except SystemExit as done:
        sys.setprofile(None)
        if at == 0:
            print(countdown.calls, flush=True)
        os._exit(int(done.code or 0))


def forked(at: int, folder: Path, arguments: list[str]) -> int:
    """The exit status of a run in a child."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        run(at, arguments)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def warm_up(folder: Path) -> None:
    """Load and compile everything once, before forking: a release whose file and ledger are not looked at again."""
    from click.testing import CliRunner

    from dphmm.cli.app import app

    before = Path.cwd()
    with tempfile.TemporaryDirectory() as spare:
        shutil.copytree(folder, spare, dirs_exist_ok=True)
        os.chdir(spare)
        result = CliRunner().invoke(app, COMMAND.split())
        os.chdir(before)
    assert result.exit_code == 0, result.stderr


def main() -> None:
    """For each number a folder: FOLDER-N; prints the exit status of every run."""
    folder, numbers = Path(sys.argv[1]), [int(number) for number in sys.argv[2:]]
    warm_up(folder)
    for number in numbers:
        place = folder if number == 0 else Path(f"{folder}-{number}")
        print(number, forked(number, place, COMMAND.split()), flush=True)
        if number:
            print(-number, forked(-1, place, COMMAND.split()), flush=True)


if __name__ == "__main__":
    main()
