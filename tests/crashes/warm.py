"""Import and compile, in one process, everything that the works will need in their forks."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import dphmm
from crashes import world
from crashes.work import WORK, constraint_of, release_arguments


def warm_up(folder: Path) -> None:
    """Import here what every work imports (seen in a child that may have threads), and compile the kernels."""
    world.write_files(folder)
    for name, args in (
        ("batch", {"folder": str(folder)}),
        ("many", {"folder": str(folder)}),
        ("session", {"folder": str(folder), "subject": "dora", "constraint": "0.05", "steps": 4}),
        ("command", {"arguments": release_arguments(), "folder": str(folder)}),
    ):
        for module in _modules_of(folder, name, args):
            # Some modules are made by others and cannot be imported by name.
            with suppress(ImportError):
                importlib.import_module(module)
        (folder / "ledger.db").unlink(missing_ok=True)
        for made in ("out", "out.owner"):
            shutil.rmtree(folder / made, ignore_errors=True)
    _in_this_process(folder)


def _modules_of(folder: Path, name: str, args: dict[str, Any]) -> list[str]:
    listed = folder / "modules.txt"
    pid = os.fork()
    if pid == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            WORK[name](**args)
        except SystemExit as leave:
            assert not leave.code
        finally:
            listed.write_text("\n".join(sys.modules))
            os._exit(0)
    os.waitpid(pid, 0)
    return listed.read_text().splitlines()


def _in_this_process(folder: Path) -> None:
    """Load the compiled kernels once, so that no child does."""
    model, policy, space = world.parts()
    for constraint in ("support", "0.05"):
        warm = dphmm.ReleaseSession(model, policy, space, Fraction(1, 10), constraint=constraint_of(constraint))
        for t in range(1, 6):
            warm.release(world.truth("warm", t))
