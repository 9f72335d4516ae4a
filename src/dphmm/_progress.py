"""The progress of a long piece of work: a callback of the caller's, or a bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Progress = Callable[[int, int], None]


@contextmanager
def shown(progress: bool | Progress, label: str) -> Iterator[Progress | None]:
    """A callback to report to: the caller's own, or a bar on a terminal."""
    if callable(progress):
        yield progress
    elif progress and sys.stderr.isatty():
        with terminal_bar(label) as report:
            yield report
    else:
        yield None


@contextmanager
def terminal_bar(label: str) -> Iterator[TerminalBar]:
    """A progress bar on standard error; call it with (done, total)."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    )  # fmt: skip
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        yield TerminalBar(bars, label)


class TerminalBar:
    """A bar for one piece of work: call it with (done, total). While work goes on it never looks finished."""

    def __init__(self, bars: Any, label: str) -> None:
        self._bars, self._label = bars, label
        self._task = bars.add_task(label, total=None)

    def __call__(self, done: int, total: int) -> None:
        if done < total:
            self._bars.update(self._task, completed=done, total=total)
        elif self._bars.tasks[-1].total is not None:
            self._begin(self._bars.tasks[-1].description)

    def stage(self, name: str) -> None:
        """Say what runs now."""
        self._begin(f"{self._label}: {name}")

    def _begin(self, words: str) -> None:
        # A bar that has an end cannot lose it again: another one takes its place.
        self._bars.remove_task(self._task)
        self._task = self._bars.add_task(words, total=None)
