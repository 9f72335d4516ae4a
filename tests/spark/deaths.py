"""Drivers that die before or after a commit: each a process of its own, forked from one that has loaded everything."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

from dphmm.storage.ledger import open_ledger

ROOT = Path(__file__).parents[2]


def ended(driver: str, folder: Path, *whens: str) -> list[tuple[int, str]]:
    """How drivers ended, one after the other: exit code and what was printed.

    The text of a driver calls `in_turn`; its arguments are a ledger, a file for what was drawn, and when to die.
    """
    command = [sys.executable, "-c", textwrap.dedent(driver), str(folder / "ledger.db"), str(folder / "drawn"), *whens]
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])
    environment = {"PYTHONPATH": paths, "PATH": "/usr/bin:/bin"}
    # Compiled kernels that are there already.
    environment |= {
        name: os.environ[name] for name in ("HOME", "DPHMM_KERNELS", "XDG_CACHE_HOME") if name in os.environ
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    found, printed = list[tuple[int, str]](), ""
    for line in done.stdout.splitlines():
        if line.startswith("exit "):
            found.append((int(line.removeprefix("exit ")), printed))
        printed = line
    assert len(found) == len(whens), done.stdout + done.stderr
    return found


def drawn_by_dying_drivers(driver: str, folder: Path) -> list[str]:
    """What was drawn by drivers of which one dies before its commit, the next after it, and two more find it stored."""

    def drawn() -> list[str]:
        return (folder / "drawn").read_text().split()

    ((code, _),) = ended(driver, folder, "before")
    assert (code, len(drawn())) == (9, 1)
    with open_ledger(folder / "ledger.db") as ledger:
        assert ledger.publications() == []
    after, *others = ended(driver, folder, "after", "never", "never")
    assert after[0] == 9 and others == [(0, drawn()[1])] * 2
    return drawn()


def in_turn(job: Callable[[str], str], whens: list[str]) -> None:
    """Run the job in a forked process for each of the times, and print what it returned and how the process ended."""
    for when in whens:
        child = os.fork()
        if not child:
            code = 1
            try:
                print(job(when), flush=True)
                code = 0
            finally:
                os._exit(code)
        print("exit", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
