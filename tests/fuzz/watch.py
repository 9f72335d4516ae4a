"""Looks over a reader's shoulder: what it raises, says, writes, runs, and how long and how much memory it takes.

A reader may load a file or raise one of the library's own errors, in one line without a private value. Anything else
is a Fault.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Seconds and bytes that one small file may take.
MOST_SECONDS = 10.0
MOST_BYTES = 256 * 2**20

_FORBIDDEN = {
    "pickle.find_class",
    "os.system",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "socket.connect",
    "shutil.rmtree",
}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Fault(AssertionError):
    """What no reader may do."""


class TooLong(BaseException):
    """Raised by the clock inside a reader: no ``except Exception`` may swallow it."""


class _Ear:
    """An audit hook cannot be taken away, so there is one, which listens only while a reader runs."""

    def __init__(self) -> None:
        self.folder: str | None = None
        self.heard: list[str] = []
        self.installed = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event in _FORBIDDEN:
            self.heard.append(f"{event} {arguments!r:.80}")
        elif event == "open" and self._is_written(arguments):
            self.heard.append(f"{arguments[0]} opened for writing")

    def _is_written(self, arguments: tuple[Any, ...]) -> bool:
        path, mode, flags = (*arguments, None, None)[:3]
        writes = any(c in mode for c in "wax+") if isinstance(mode, str) else bool((flags or 0) & _WRITING)
        return writes and str(path).startswith(str(self.folder))


_EAR = _Ear()


@contextmanager
def _listening(folder: Path) -> Iterator[list[str]]:
    if not _EAR.installed:
        sys.addaudithook(_EAR)
        _EAR.installed = True
    _EAR.heard, _EAR.folder = [], str(folder)
    try:
        yield _EAR.heard
    finally:
        _EAR.folder = None


@contextmanager
def _on_time(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise TooLong

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _restart_peak() -> None:
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _peak() -> int:
    """Most memory held since the last restart, in bytes; since the process began where there is no /proc."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM:"))


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under a folder."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def examine(
    read: Callable[[], object],
    folder: Path,
    errors: tuple[type[Exception], ...],
    secrets: tuple[str, ...] = (),
    writes: bool = False,
    seconds: float = MOST_SECONDS,
) -> bool:
    """Run a reader of a file in ``folder``; True if it loaded, False if it refused. Raises Fault for anything else."""
    before = {} if writes else contents(folder)
    _restart_peak()
    held = _peak()
    loaded, said = True, ""
    with _listening(folder) as heard:
        try:
            with _on_time(seconds):
                read()
        except errors as error:
            loaded, said = False, str(error)
        except TooLong:
            raise Fault(f"still reading after {seconds} s") from None
        except Exception as error:
            raise Fault(f"{type(error).__name__}: {error}") from error
    _check_words(said, secrets)
    happened = [event for event in heard if not (writes and "opened for writing" in event)]
    if happened:
        raise Fault(happened[0])
    if not writes and contents(folder) != before:
        raise Fault("a file was written or changed")
    grown = _peak() - held
    if grown > MOST_BYTES:
        raise Fault(f"{grown >> 20} MB of memory")
    return loaded


def _check_words(said: str, secrets: tuple[str, ...]) -> None:
    if "\n" in said or "\r" in said:
        raise Fault(f"more than one line: {said!r:.200}")
    if len(said) > 4000:
        raise Fault(f"a message of {len(said)} characters")
    for secret in secrets:
        if secret in said:
            raise Fault(f"{secret!r} is told: {said:.200}")
