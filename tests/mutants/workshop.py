"""A copy of the project in which one change at a time is made, tested and taken back.

The copy stays in one place and keeps what it compiles in a folder of its own, so what was compiled for unchanged
kernels is found again; files there are named by the kernels' sources, so a changed one never runs another's code.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

_PARTS = ("src", "tests", "experiments", "docs", "examples", "benchmarks", "pyproject.toml", "README.md", "Makefile")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", ".hypothesis", ".pytest_cache")


@dataclass(frozen=True)
class Run:
    """How a run of tests ended: pytest's exit code (None: it took too long), and each test's outcome and last words."""

    code: int | None
    outcomes: dict[str, tuple[str, str]]
    output: str

    def of(self, killer: str) -> list[tuple[str, str]]:
        """Outcomes of a test, of all its parameters where it is named without any."""
        return [
            result
            for name, result in self.outcomes.items()
            if name == killer or name.startswith((killer + "[", killer + "::"))
        ]

    @property
    def failures(self) -> list[str]:
        """Tests that failed."""
        return [name for name, (outcome, _) in self.outcomes.items() if outcome == "failed"]


class Workshop:
    """One copy of the project."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.copy, self._cache, self._outcomes = folder / "project", folder / "cache", folder / "outcomes"
        self._root = root
        self._moments = count(1)
        for part in _PARTS:
            source, target = root / part, self.copy / part
            if source.is_dir():
                shutil.copytree(source, target, ignore=_LEFT_OUT)
            elif source.exists():
                self.copy.mkdir(exist_ok=True, parents=True)
                shutil.copy2(source, target)

    @contextmanager
    def changed(self, texts: Mapping[str, str]) -> Iterator[None]:
        """Files with other text, until the block ends."""
        kept = {name: ((self.copy / name).read_text(), (self.copy / name).stat()) for name in texts}
        try:
            for name, text in texts.items():
                (self.copy / name).write_text(text)
                # Python tells stale bytecode by whole seconds and size: each change gets a second of its own.
                os.utime(self.copy / name, (next(self._moments),) * 2)
            yield
        finally:
            for name, (text, stat) in kept.items():
                (self.copy / name).write_text(text)
                os.utime(self.copy / name, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def run(self, tests: Sequence[str], seconds: float, *options: str) -> Run:
        """Run tests of the copy."""
        self._outcomes.write_text("")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "mutants.outcomes"]
        process = subprocess.Popen(
            [*command, "--hypothesis-seed=0", *options, *tests],
            cwd=self.copy,
            env=self._environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=seconds)
            code: int | None = process.returncode
        except subprocess.TimeoutExpired:
            output, code = "", None
        finally:
            # What the tests started goes with them: the session is ours alone.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        lines = map(json.loads, self._outcomes.read_text().splitlines())
        return Run(code, {name: (outcome, said) for name, outcome, said in lines}, output)

    def _environment(self) -> dict[str, str]:
        paths = os.pathsep.join(str(self.copy / part) for part in ("src", "tests"))
        own = {
            "PYTHONPATH": paths,
            "XDG_CACHE_HOME": str(self._cache),
            "DPHMM_KERNELS": str(self._cache / "kernels"),
            "MUTANTS_COPY": str(self.copy),
            "MUTANTS_OUTCOMES": str(self._outcomes),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self._cache / "hypothesis"),
        }
        return {**os.environ, **own}


@contextmanager
def workshops(number: int, root: Path) -> Iterator[list[Workshop]]:
    """Some workshops, which are cleared away at the end."""
    with TemporaryDirectory(prefix="dphmm-mutants-", ignore_cleanup_errors=True) as folder:
        yield [Workshop(Path(folder) / str(at), root) for at in range(number)]
