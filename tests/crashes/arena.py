"""Start works in forked children of one warmed process, record what escapes through their pipes, end them.

A start costs milliseconds instead of the seconds of an import. What counts as having escaped is every byte that came
out of a pipe, whether or not anybody acknowledged it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crashes.death import Death, Points
from crashes.syscalls import AVAILABLE, WATCHED
from system_words import guard

LONGEST = 60.0
#: A statement that comes more often than this in one run comes in later ones too.
OFTEN = 3


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code (negative for a signal), the lines that escaped, its standard error."""

    code: int
    lines: list[str]
    errors: str


class Child:
    """A running child."""

    def __init__(self, arena: Arena, pid: int, out: int, errors: Any, death: Death) -> None:
        self.pid = pid
        self._arena, self._out, self._errors, self._death = arena, out, errors, death
        self._escaped = b""
        self._closed = False
        self._began = time.monotonic()

    def read(self, until: float, lines: int | None = None) -> None:
        """Take what escapes until a moment (of the monotonic clock), a number of lines, or the end."""
        while not self._closed and (lines is None or self._escaped.count(b"\n") < lines):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._out], [], [], left)[0]:
                return
            data = os.read(self._out, 1 << 16)
            self._escaped += data
            self._closed = not data

    def wait_until(self, happened: Callable[[], bool]) -> None:
        """Take what escapes until something has happened, or the child has ended."""
        last = time.monotonic() + LONGEST
        while not self._closed and not happened():
            assert time.monotonic() < last, "nothing happened"
            self.read(time.monotonic() + 0.001)

    def is_stopped(self) -> bool:
        """Whether it has been stopped by a signal (Linux)."""
        return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"

    def wait_for(self, lines: int) -> list[str]:
        """The first lines, once they are there."""
        self.read(time.monotonic() + LONGEST, lines)
        got = self._escaped.decode().splitlines()
        assert len(got) >= lines, (got, self.finish().errors)
        return got

    def send(self, number: int) -> None:
        """Send a signal. The child is reaped only by `finish`, so its number cannot belong to another."""
        os.kill(self.pid, number)

    def finish(self) -> Ended:
        """Strike if its death is a delay, then wait for the end."""
        if self._death.kind == "delay":
            self.read(self._began + self._death.seconds)
            self.send(self._death.signal)
        self.read(time.monotonic() + LONGEST)
        if not self._closed:
            self.send(signal.SIGKILL)
        code = int(self._arena.ask({"do": "wait", "pid": self.pid})["status"])
        self.read(time.monotonic() + LONGEST)
        assert self._closed, "its pipe is held by another process"
        os.close(self._out)
        self._errors.seek(0)
        with self._errors:
            errors = self._errors.read().decode(errors="replace")
        return Ended(code, _whole_lines(self._escaped), errors)


class Arena:
    """A handle of the warmed process."""

    def __init__(self) -> None:
        #: What each trial came to in an undisturbed run.
        self.learnt: dict[int, Any] = {}
        here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Threads of libraries would make the forks unsafe.
        alone = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        alone["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
        script = Path(__file__).with_name("arena_process.py")
        self._process = subprocess.Popen(
            [sys.executable, str(script)], stdin=there, env={**os.environ, **alone, "NO_COLOR": "1"}
        )
        there.close()
        self._socket = here
        ready = self._socket.recv(1 << 16)
        assert ready, "the warmed process did not start"
        assert json.loads(ready) == {"threads": 1}, ready

    def ask(self, request: dict[str, Any], descriptors: tuple[int, ...] = ()) -> dict[str, Any]:
        """One request and its answer."""
        socket.send_fds(self._socket, [json.dumps(request).encode()], descriptors)
        answer: dict[str, Any] = json.loads(self._socket.recv(1 << 16))
        return answer

    def start(
        self,
        work: str,
        death: Death | None = None,
        *,
        stdin: Path | int | None = None,
        limits: dict[str, int] | None = None,
        **args: Any,
    ) -> Child:
        """Start a work under limits. ``stdin`` is a file, or a descriptor that the caller closes."""
        death = Death() if death is None else death
        out, theirs = os.pipe()
        errors = tempfile.TemporaryFile()  # noqa: SIM115
        source = stdin if isinstance(stdin, int) else os.open(stdin or os.devnull, os.O_RDONLY)
        request = {
            "do": "start",
            "work": work,
            "args": _plain(args),
            "death": asdict(death),
            "limits": limits or {},
            "words": guard.for_child(),
        }
        try:
            pid = int(self.ask(request, (source, theirs, errors.fileno()))["pid"])
        finally:
            os.close(theirs)
            if not isinstance(stdin, int):
                os.close(source)
        return Child(self, pid, out, errors, death)

    def run(self, work: str, death: Death | None = None, **args: Any) -> Ended:
        """Start a work and wait for its end."""
        return self.start(work, death, **args).finish()

    def learn(self, work: str, folder: Path, beside: Path, good: tuple[int, ...] = (0,), **args: Any) -> Points:
        """The points of a work: run it in a folder to list its statements, in another to list its calls."""
        seen = folder / "seen.txt"
        began = time.monotonic()
        done = self.run(work, Death("record", seen=str(seen)), folder=folder, **args)
        seconds = time.monotonic() - began
        assert done.code in good, done.errors
        statements = Counter(seen.read_text().splitlines())
        later = self._later(work, statements, folder, good, **args)
        if not AVAILABLE:
            return Points(seconds, statements, later=later)
        every = Death("syscall", calls=tuple(WATCHED), seen=str(beside / "seen.txt"))
        done = self.run(work, every, folder=beside, **args)
        assert done.code in good, done.errors
        return Points(seconds, statements, Counter((beside / "seen.txt").read_text().splitlines()), later)

    def _later(
        self, work: str, statements: Counter[str], folder: Path, good: tuple[int, ...], **args: Any
    ) -> frozenset[str]:
        """What a run after the first comes to: statements of every opening, and those that come often."""
        seen = folder / "later.txt"
        done = self.run(work, Death("record", seen=str(seen)), folder=folder, **args)
        assert done.code in good, done.errors
        opening = statements.keys() & set(seen.read_text().splitlines())
        return frozenset(opening | {name for name, times in statements.items() if times > OFTEN})

    def close(self) -> None:
        """Let the process go."""
        self._socket.close()
        self._process.wait(LONGEST)


@contextmanager
def arena() -> Iterator[Arena]:
    """An arena that is closed at the end."""
    opened = Arena()
    try:
        yield opened
    finally:
        opened.close()


def _plain(args: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value) if isinstance(value, Path) else value for name, value in args.items()}


def _whole_lines(escaped: bytes) -> list[str]:
    # A line is one write below the size that a pipe takes at once: half a line would be a fault of the harness.
    assert not escaped or escaped.endswith(b"\n"), escaped[-200:]
    return escaped.decode().splitlines()
