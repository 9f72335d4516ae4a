"""Messages and progress on standard error, data on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from time import monotonic
from typing import Any, Protocol

import click

from dphmm._kernels import process
from dphmm.cli.outcomes import one_line

#: Where standard error is no terminal, progress is a line this often.
SECONDS_BETWEEN_LINES = 10.0
#: (label, text); a row with an empty label is a sentence of its own.
Row = tuple[str, str]


class Work(Protocol):
    """How far a piece of work is: called with (done, total); ``stage`` names what runs, which begins at nothing."""

    def __call__(self, done: int, total: int) -> None: ...

    def stage(self, name: str) -> None: ...


@dataclass
class Lines:
    """The line of a piece of work where standard error is no terminal. All done is no share: work goes on."""

    label: str
    name: str = ""
    share: int | None = 0

    def __call__(self, done: int, total: int) -> None:
        self.share = 100 * done // total if done < total else None if total else 0

    def stage(self, name: str) -> None:
        self.name, self.share = name, None

    def line(self, seconds: float) -> str:
        """What is said after so many seconds."""
        far = "" if self.share is None else f"{self.share} %"
        doing = self.name or ("" if far else "the last steps")
        return f"{self.label}: {', '.join(filter(None, (doing, far)))} after {seconds:.0f} s"


@dataclass(frozen=True)
class Console:
    """What a command says beside its data; ``quiet`` leaves warnings and errors only."""

    quiet: bool = False
    _warned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.quiet:
            # What `compilation_told` began before the options were read.
            process.tell = None

    def say(self, rows: Iterable[Row]) -> None:
        """Label and text, aligned, on standard error."""
        if not self.quiet:
            _on_terminal(list(rows))

    def note(self, text: str) -> None:
        """A line that reassures: nothing is wrong."""
        if not self.quiet:
            click.echo(one_line(f"note: {text}"), err=True)

    def warn(self, text: str) -> None:
        """A line that --quiet does not silence, once."""
        if text not in self._warned:
            self._warned.add(text)
            click.echo(one_line(f"warning: {text}"), err=True)

    def tell(self, text: str) -> None:
        """A line that was asked for by an option of its own, which --quiet does not silence."""
        click.echo(one_line(text), err=True)

    @contextmanager
    def progress(self, label: str) -> Iterator[Work | None]:
        """A callback (done, total) that moves a bar on a terminal, or says a line now and then elsewhere.

        Its ``stage`` names what runs. While the block runs nothing is said to be finished.

        None where nothing is to be said.
        """
        if self.quiet:
            yield None
            return
        if not sys.stderr.isatty():
            with _lines_of_progress(label) as report:
                yield report
            return
        from dphmm.batch import terminal_bar

        with terminal_bar(label) as report:
            yield report


@contextmanager
def compilation_told() -> Iterator[None]:
    """Say on a terminal, once, why nothing seems to happen: kernels that the cache on disk does not have yet."""
    process.tell = _compiling if sys.stderr.isatty() else None
    process.warn = lambda text: click.echo(one_line(f"warning: {text}"), err=True)
    try:
        yield
    finally:
        process.tell = process.warn = None


@contextmanager
def _lines_of_progress(label: str) -> Iterator[Work]:
    """How far the work is, one line every ten seconds: from a thread, because one call may take minutes."""

    begun, ended, work = monotonic(), Event(), Lines(label)

    def tell() -> None:
        # Nobody may read any more: the command itself finds that out.
        with suppress(OSError, ValueError):
            while not ended.wait(SECONDS_BETWEEN_LINES):
                click.echo(work.line(monotonic() - begun), err=True)

    teller = Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield work
    finally:
        ended.set()
        teller.join()


def stage_of(work: Work | None, name: str) -> None:
    """Say what runs now, where anything is to be said."""
    if work is not None:
        work.stage(name)


def aligned(rows: Iterable[Row]) -> list[str]:
    """Lines with the texts in one column."""
    listed = list(rows)
    width = max((len(label) for label, _ in listed), default=0)
    return [f"{label.ljust(width)}  {text}".rstrip() if label else one_line(text) for label, text in listed]


def print_json(document: dict[str, Any]) -> None:
    """One JSON object on one line of standard output."""
    click.echo(json.dumps(document, allow_nan=False))


def _compiling(kept: bool) -> None:
    process.tell = None
    often = "once after an installation or an upgrade" if kept else "every time: their cache cannot be written"
    click.echo(f"note: compiling kernels that this command needs, up to a minute, {often}", err=True)


def _on_terminal(rows: list[Row]) -> None:
    if not sys.stderr.isatty():
        for line in aligned(rows):
            click.echo(line, err=True)
        return
    from rich.console import Console as Rich
    from rich.table import Table
    from rich.text import Text

    rich = Rich(stderr=True)
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for label, text in rows:
        if label:
            table.add_row(Text(label), Text(one_line(text)))
    rich.print(table)
    for label, text in rows:
        if not label:
            rich.print(Text(one_line(text)))
