"""dphmm release -: lines of standard input, each answered on standard output after it has been stored."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import Console
from dphmm.cli.outcomes import SET_ASIDE, Interrupted
from dphmm.cli.release_job import Job
from dphmm.cli.stream_statement import Names, check_statement, stated
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.states.space import StateSpace
    from dphmm.stream import BadLine, Line, Stream

_LONGEST_LINE = 65536


@dataclass
class _Lines:
    """The lines of standard input that can be read; the others are answered by number and reason, and counted."""

    space: StateSpace
    timed: bool
    number: int = 0
    set_aside: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Line]:
        from dphmm.stream import BadLine, checked_line, parse_line

        for self.number, text in _lines():
            try:
                yield checked_line(parse_line(text, self.space.on_map), self.space, self.timed)
            except BadLine as error:
                self.refuse(error)

    def refuse(self, error: BadLine) -> None:
        """Answer the line that was read last."""
        self.set_aside[error.reason] += 1
        click.echo(f"line {self.number}: {error.reason}", err=True)


def release_stream(job: Job, given: Mapping[str, Any], console: Console) -> int:
    """Answer lines of standard input until it ends; returns the exit code."""
    from dphmm.cli.covered import covered_rows
    from dphmm.cli.learned_words import coming_rows
    from dphmm.cli.owner_view import name_counts, owner_path, write_counts
    from dphmm.cli.public_warnings import first_step_warnings
    from dphmm.storage.covered import covered_facts
    from dphmm.storage.ledger import open_ledger
    from dphmm.stream import BadLine, Stream, answered_line

    _check(given)
    lines = _Lines(job.space, job.model.step is not None)
    readable = iter(lines)
    # Nothing that can be read leaves no ledger behind.
    first = next(readable, None)
    if first is None and lines.set_aside:
        raise InvalidInput("TRAJ", f"{lines.set_aside.total()} lines, none of which can be read", "lines of its model")
    counts = owner_path(given["ledger"])
    with open_ledger(given["ledger"]) as ledger, ledger.exclusive():
        stream = Stream(job.batch(ledger), given["resume"])
        names = Names(job, given, console)
        console.say(covered_rows(covered_facts(job.policy, job.space), stream.batch.setting.options.epsilon))
        if coming := coming_rows(job.model, given["model_people"] or "unknown"):
            console.say(coming)
        for warning in first_step_warnings(stream.batch):
            console.warn(warning)
        with ExitStack() as at_end:
            at_end.callback(lambda: write_counts(counts, _counts(stream, lines.set_aside)))
            answered = at_end.enter_context(stated(stream.batch, given, names))
            at_end.enter_context(_kept(stream, given))
            for asked in chain([] if first is None else [first], readable):
                try:
                    released = stream.answer(asked)
                except BadLine as error:
                    lines.refuse(error)
                    continue
                line = answered_line(released, job.space)
                # Before it is printed: an interrupt in between may count a line too many, never one too few.
                names.meet(released.user)
                answered(released, line)
                click.echo(line)
                sys.stdout.flush()
    bad = lines.set_aside.total()
    console.say([("", f"{stream.released} releases of {len(stream.sessions)} subjects, {bad} lines set aside")])
    name_counts(counts, given, console)
    return SET_ASIDE if bad else 0


def _counts(stream: Stream, set_aside: Mapping[str, int]) -> dict[str, Any]:
    """What only the data owner may know of this run."""
    from dphmm.cli.owner_view import owner_counts

    return owner_counts(stream.released, stream.outside, stream.released, stream.drifted, set_aside)


def _check(given: Mapping[str, Any]) -> None:
    from dphmm.cli.owner_view import owner_path
    from dphmm.storage.inputs import checked_output

    if given["output"] not in (None, "-"):
        raise InvalidInput("-o", given["output"], "nothing: the lines of - are answered on standard output")
    if given["ledger"] is None:
        raise InvalidInput("--ledger", "nothing", "the file that keeps what was released and spent")
    if given["dry_run"] or given["as_json"]:
        raise InvalidInput("TRAJ", "- with --dry-run or --json", "a file, or - without them")
    check_statement(given)
    checked_output(owner_path(given["ledger"]), [given["model"], given["policy"], given["ledger"]], "--ledger")


def _lines() -> Iterator[tuple[int, bytes]]:
    """Lines with something on them, with their numbers from 1; of a very long one only its beginning."""
    stdin = sys.stdin.buffer
    for number in count(1):
        text = stdin.readline(_LONGEST_LINE)
        rest = text
        while rest and not rest.endswith(b"\n"):
            rest = stdin.readline(_LONGEST_LINE)
        if not text:
            return
        if text.strip():
            yield number, text


@contextmanager
def _kept(stream: Stream, given: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Interrupted(
            f"interrupted: {stream.released} releases are stored in {Path(given['ledger']).name} and paid "
            "for; the same command with --resume continues after them",
            stop,
        ) from None
