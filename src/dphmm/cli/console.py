"""The messages and the end of a command: progress on standard error, exit codes, signals.

The library's messages are told in the words of the command line: --min-count for min_count.

Ctrl-C and SIGTERM, answered alike: open files are closed, commits stay.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib import _bootstrap
from threading import Event, Thread
from time import monotonic
from types import FrameType
from typing import Any, Protocol

import click

from dphmm._kernels import process
from dphmm._progress import terminal_bar
from dphmm.cli.meant import value_meant
from dphmm.errors import DphmmError, InvalidInput

FAILED = 1
BAD_INPUT = 2
REJECTED = 3
INTERRUPTED = 130
CLOSED = 141
TERMINATED = 143


class Terminated(KeyboardInterrupt):
    """SIGTERM: answered like Ctrl-C, with an exit code of its own."""


class OutputClosed(Exception):
    """Whoever read the output has gone away, as head does: no error, and nothing more to say."""


class Interrupted(Exception):
    """Ctrl-C or SIGTERM (``stop``), with what was kept and how to go on."""

    def __init__(self, message: str, stop: BaseException | None = None) -> None:
        super().__init__(message)
        self.exit_code = stopped_code(stop)


def stopped_code(stop: BaseException | None) -> int:
    """The exit code of Ctrl-C or of SIGTERM."""
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def one_line(text: str) -> str:
    """A message on one line, with nothing in it that a terminal would obey."""
    joined = " ".join(text.split())
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in joined)


#: Fields of the library that are options; --cap-epsilon and others with an underscore follow by themselves.
_FIELDS = {
    **{name: f"--{name}" for name in (
        "answer", "delimiter", "epsilon", "hours", "noun", "people", "per", "query", "reserve", "smoothing", "spelling",
        "steps", "timezone", "window", "zone",
    )},
    **{name: f"--setting {name}" for name in ("constraint", "mechanism", "protection", "start")},
    **{side: f"--bbox {side}" for side in ("west", "south", "east", "north")},
    **{f"target_{name}": f"--target-{name}" for name in ("error", "doubt", "stay")},
    "cell": "--grid", "delta": "--setting constraint delta", "event_id": "--id", "max speed": "--max-speed",
    "output": "-o", "promise": "--path-epsilon", "resolution": "--h3", "source": "SRC",
}  # fmt: skip
_UNDERSCORED = re.compile(
    r"\b(cap_epsilon|cap_cost|min_count|min_people|max_speed"
    r"|(?:user|time|order|trip|state|lat|lon)_column"
    r"|user_from|user_pattern|gap_label|skip_lines|no_times|time_format)\b(?:(=)(?=\w)|=)?"
)
_COMMANDS = {"model": "fit", "policy": "policy"}
#: What the library says, and what a user of the command line can do.
_PHRASES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    (r"timezone='([^']*)' or '([^']*)'", r"--timezone \1 or \2 of dphmm import"),
    (r"or names=False for", "or --no-names for"),
    (r"\bresume to continue them\b", "the same without --new, which continues them"),
    (r"; skip\(\) lets steps pass", ""),
    (r" written by save_(model|policy)", lambda found: f" written by dphmm {_COMMANDS[found[1]]}"),
    (r", or user_column=", ", or dphmm import csv with --user-column"),
    (r"\b(no_times|each_trip|although)=True\b", lambda found: option_of(found[1])),
    (r"\bdphmm\.evaluation\.check_table\(\)", "dphmm check"),
    (r"\bmend=True\b", "--mend-zones"),
    (r"\bcrs=(?=\S)", "--zone-crs "),
    (r"\buser_name=", "--user"),
    (
        r"\b(?:(lat|lon|user)_column=|(user_pattern|delimiter|names|skip_lines|step)=)(?=[ ,;:)]|$)",
        lambda found: option_of(found[2] or f"{found[1]}_column"),
    ),
    (r"\b(time_column|time_format|user_from)=(?=\S)", lambda found: option_of(found[1]) + " "),
    (r"\b(encoding|decimal|lifecycle)=(?=\S)", r"--\1 "),
    (r"a number, a Fraction or a decimal string", "a number"),
    (r"(.*) or a DeltaSet", lambda found: found[1].replace('", "', '" or "').replace('"', "")),
    (r"remedy: smoothing=1,", "remedy: --smoothing 1,"),
    (r"\ba larger cell\b", "a larger --grid"),
    (r"\b(?:give )?a larger pitch=", "answers with larger gaps"),
    (r"; give pitch=, such as \S+", ": answers with larger gaps, or a smaller span"),
    (r'smoothing_support="neighbours" or a sparse mask above', "--smoothing 0 above"),
)


#: Says in a sentence what options are called: as they are typed, or in a pipeline as members of its tables.
_called: ContextVar[Callable[[str], str]] = ContextVar("called", default=str)


@contextmanager
def options_called(called: Callable[[str], str]) -> Iterator[None]:
    """Inside the block options are called so, in what a command says and in the errors that leave the block."""
    before = _called.set(called)
    try:
        yield
    except InvalidInput as error:
        field, _, rest = on_the_command_line(error).partition(": got ")
        got, _, expected = rest.rpartition("; expected ")
        raise InvalidInput(field, got, expected) from None
    finally:
        _called.reset(before)


def on_the_command_line(error: DphmmError) -> str:
    """The message of an error with options where the library has arguments. The user's own words stay as they are."""
    if not isinstance(error, InvalidInput):
        return reworded(str(error))
    got, expected = _parts(error)
    # Other fields are options already, columns, or files: they stay as they are.
    named_first, comma, rest = error.field.partition(", ")
    first = option_of(named_first) if _UNDERSCORED.fullmatch(named_first) else _FIELDS.get(named_first, named_first)
    field = f"{first}{comma}{rest}"
    expected = reworded(expected)
    near = "" if "did you mean" in expected else value_meant(got, expected)
    return f"{_called.get()(field)}: got {got}; expected {expected}{f'; did you mean {near}?' if near else ''}"


def named(error: InvalidInput, names: Mapping[str, str]) -> InvalidInput:
    """The same error about another field: the option that one command has for an argument of the library."""
    return InvalidInput(names.get(error.field, error.field), *_parts(error))


@contextmanager
def fields_named(names: Mapping[str, str]) -> Iterator[None]:
    """Inside the block errors of the library are about the options that one command has for its arguments."""
    try:
        yield
    except InvalidInput as error:
        raise named(error, names) from None


#: What a file must be, by the option that it was given for.
_WANTED = {
    "--model": "a model, as dphmm fit or dphmm model writes it",
    "MODEL": "a model, as dphmm fit or dphmm model writes it",
    "--policy": "a policy, as dphmm policy writes it",
    "--plan": "a plan, as dphmm plan writes it",
    "--truth": "the trajectories, as they were released",
}
#: Fields of the library that are some file: which one it is, is seen from its value.
_SOME_FILE = ("path", "model", "policy", "plan", "statement", "file")


def of_its_option(error: InvalidInput, typed: Mapping[str, Sequence[str]]) -> InvalidInput:
    """The same error about the option that its file was typed for, with what this option wants.

    ``typed``: of each value of the command line the options and arguments that it was given for.
    """
    got, expected = _parts(error)
    if error.field in typed and any(name.startswith("-") for name in typed[error.field]):
        names, file = typed[error.field], f" {error.field}"
    elif error.field in _SOME_FILE and got in (
        short := {_parts(InvalidInput("", text, ""))[0]: text for text in typed}
    ):
        names, file = typed[short[got]], ""
    else:
        return error
    wanted = _WANTED.get(names[0], "") if len(names) == 1 and "dphmm" not in reworded(expected) else ""
    return InvalidInput(f"{' or '.join(names)}{file}", got, f"{expected}: {wanted}" if wanted else expected)


def reworded(text: str) -> str:
    """A sentence of the library in the words of the command line."""
    for pattern, words in _PHRASES:
        text = re.sub(pattern, words, text)
    return _called.get()(_UNDERSCORED.sub(lambda found: option_of(found[1]) + " " * bool(found[2]), text))


def option_of(name: str) -> str:
    """--max-length for max_length."""
    return "--" + name.replace("_", "-")


def _parts(error: InvalidInput) -> tuple[str, str]:
    """The received value and the expected one."""
    got, _, expected = str(error).removeprefix(f"{error.field}: got ").rpartition("; expected ")
    return got, expected


@contextmanager
def answered_like_an_interrupt() -> Iterator[None]:
    """Inside the block the first SIGTERM raises Terminated; later ones do not disturb the tidying up."""
    _asked.clear()
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    # Only the main thread may set handlers, and what a parent chose to ignore stays ignored.
    if threading.current_thread() is not threading.main_thread() or before[signal.SIGTERM] is signal.SIG_IGN:
        yield
        return
    others = sys.unraisablehook

    def forgotten(lost: sys.UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            _ask_for_the_lost(lost.exc_type)
        elif not _asked:
            # What an interrupt left half made may fail while it is freed, of which there is nothing to tell.
            others(lost)

    sys.unraisablehook = forgotten
    signal.signal(signal.SIGTERM, _stop)
    if before[signal.SIGINT] is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)
    try:
        yield
    finally:
        sys.unraisablehook = others
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def asked_to_stop() -> KeyboardInterrupt | None:
    """The interrupt that was asked for, even where a library made another error of it."""
    return _asked[0]() if _asked else None


#: The kind alone: an error that is kept keeps what every function on its way held, open files and ledgers too.
_asked: list[type[KeyboardInterrupt]] = []
#: Seconds until a signal that came where an exception would be lost is looked at again.
_MOMENT = 0.02


def _stop(number: int, frame: FrameType | None) -> None:
    """Answer SIGINT or SIGTERM, of which the second is answered once."""
    # LLVM, and compiled code that imports a module, drop an exception of code that they call.
    if process.llvm_calls > 0 or _importing():
        _ask_again(number)
        return
    if number == signal.SIGTERM:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _asked.append(Terminated if number == signal.SIGTERM else KeyboardInterrupt)
    raise _asked[-1]


def _ask_for_the_lost(kind: type[BaseException]) -> None:
    """Python forgets what is raised while it frees an object: an interrupt that came just then comes again."""
    if issubclass(kind, Terminated):
        signal.signal(signal.SIGTERM, _stop)
        _ask_again(signal.SIGTERM)
    else:
        _ask_again(signal.SIGINT)


def _importing() -> bool:
    """True if a module is being imported: Python holds a lock of each until it is there."""
    locks = [reference() for reference in list(_bootstrap._module_locks.values())]  # type: ignore[attr-defined]
    return any(lock is not None and lock.owner is not None for lock in locks)


def _ask_again(number: int) -> None:
    """The same signal to the main thread, a moment later."""
    main = threading.main_thread().ident
    assert main is not None
    timer = threading.Timer(_MOMENT, signal.pthread_kill, (main, number))
    timer.daemon = True
    timer.start()


#: Where standard error is no terminal, progress is a line this often.
SECONDS_BETWEEN_LINES = 10.0
#: (label, text); a row with an empty label is a sentence of its own.
Row = tuple[str, str]


class Work(Protocol):
    """The progress of a piece of work: called with (done, total); ``stage`` names a part, which begins at nothing."""

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
        """The line of progress after so many seconds."""
        far = "" if self.share is None else f"{self.share} %"
        doing = self.name or ("" if far else "the last steps")
        return f"{self.label}: {', '.join(filter(None, (doing, far)))} after {seconds:.0f} s"


@dataclass(frozen=True)
class Console:
    """The messages of a command beside its data; ``quiet`` leaves warnings and errors only."""

    quiet: bool = False
    _warned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if self.quiet:
            # What `compilation_told` began before the options were read.
            process.tell = None

    def say(self, rows: Iterable[Row]) -> None:
        """Label and text, aligned, on standard error."""
        if not self.quiet:
            _on_terminal([(label, _called.get()(text)) for label, text in rows])

    def note(self, text: str) -> None:
        """A line that reassures: nothing is wrong."""
        if not self.quiet:
            click.echo(one_line(f"note: {_called.get()(text)}"), err=True)

    def warn(self, text: str) -> None:
        """A line that --quiet does not silence, once."""
        if text not in self._warned:
            self._warned.add(text)
            click.echo(one_line(f"warning: {_called.get()(text)}"), err=True)

    def tell(self, text: str) -> None:
        """A line that was asked for by an option of its own, which --quiet does not silence."""
        click.echo(one_line(text), err=True)

    @property
    def can_ask(self) -> bool:
        """True if standard input and standard error are terminals, at which somebody can answer a question."""
        # Python has no standard input where the file is closed.
        return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()

    def agrees(self, words: str, question: str) -> bool | None:
        """The answer to a question after some words, which --quiet does not silence; None where nobody can be asked."""
        if not self.can_ask:
            return None
        _on_terminal([("", _called.get()(words))])
        return click.confirm(question, err=True)

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
    """Print the progress of work every ten seconds: from a thread, because one call may take minutes."""

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


def in_columns(rows: Sequence[Sequence[str]], sides: str) -> list[str]:
    """Lines with a column for each cell, aligned to the left or right ("l", "r")."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    places = list(zip(widths, sides, strict=True))
    padded = (
        [
            cell.rjust(width) if side == "r" else cell.ljust(width)
            for cell, (width, side) in zip(row, places, strict=True)
        ]
        for row in rows
    )
    return ["  ".join(row).rstrip() for row in padded]


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
