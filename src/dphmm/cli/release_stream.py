"""dphmm release -: lines of standard input, each answered on standard output after it has been stored.

The privacy statement is written when the stream ends, however it ends.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dphmm.cli.console import REJECTED, Console, Interrupted, Row
from dphmm.cli.guarantees import coming_rows, covered_rows, whom_warning
from dphmm.cli.release_job import Job, fitted_on, name_counts, note_no_ledger
from dphmm.errors import InvalidInput
from dphmm.storage.inputs import checked_output
from dphmm.storage.ledger import COMMANDS, open_ledger
from dphmm.storage.private_tables import owner_counts, owner_path, write_counts

if TYPE_CHECKING:
    from dphmm.batch import Batch, Released
    from dphmm.states.space import StateSpace
    from dphmm.storage.learned import Whom
    from dphmm.stream import BadLine, Line, Stream


def check_statement(given: Mapping[str, Any]) -> None:
    """--statement names a new file that can be written, if it names one."""
    path = given["statement"]
    if path is None:
        return
    inputs = [given["model"], given["policy"], given["ledger"]]
    if checked_output(path, inputs, "--statement").exists():
        raise InvalidInput("--statement", f"{path}, which exists", "a new file: a statement is about one run")


class Names:
    """The user names of a stream, held against those that the model was fitted on; warns of the first that is one."""

    def __init__(self, job: Job, given: Mapping[str, Any], console: Console) -> None:
        from dphmm.storage.models import people_path

        self._model, self._declared, self._console = job.model, given["model_people"], console
        self._people = fitted_on(job, given, console)
        self._among: bool | None = None
        if self._people is None or self._declared is not None:
            self._warn()
        else:
            console.note(f"whom the model was fitted on is told by the user names of the lines, with "
                         f"{people_path(given['model']).name}")  # fmt: skip

    @property
    def whom(self) -> Whom:
        """Whom the model was fitted on, seen from the users met so far."""
        from dphmm.storage.learned import whom, whom_of

        return whom_of(self._model.provenance, whom(self._declared, self._among))

    def meet(self, user: str) -> None:
        """Compare the name of a user who has been answered."""
        if self._people is None or self._among:
            return
        self._among = self._people.has_one_of([user])
        if self._among:
            self._warn()

    def _warn(self) -> None:
        whom_warning(self._model, self.whom, self._console)


@contextmanager
def stated(batch: Batch, given: Mapping[str, Any], names: Names) -> Iterator[Callable[[Released, str], None]]:
    """A function to call with every release and the line it was answered by; writes the statement at the end.

    The end may be an interrupt or an error: what was answered before was published.
    """
    if given["statement"] is None:
        yield lambda released, line: None
        return
    from dphmm.stream import StreamStatement

    statement = StreamStatement(batch)
    try:
        yield statement.add
    finally:
        statement.save(given["statement"], names.whom)


_LONGEST_LINE = 65536


@dataclass
class _Lines:
    """The lines of standard input that can be read; the others are answered by number and reason, and counted."""

    space: StateSpace
    timed: bool
    number: int = 0
    rejected: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Line]:
        from dphmm.stream import BadLine, checked_line, parse_line

        for self.number, text in _lines():
            try:
                yield checked_line(parse_line(text, self.space.on_map), self.space, self.timed)
            except BadLine as error:
                self.refuse(error)

    def refuse(self, error: BadLine) -> None:
        """Answer the line that was read last."""
        self.rejected[error.reason] += 1
        click.echo(f"line {self.number}: {error.reason}", err=True)


def release_stream(job: Job, given: Mapping[str, Any], console: Console) -> int:
    """Answer lines of standard input until it ends; returns the exit code."""
    from dphmm.storage.promises import covered_by_all
    from dphmm.storage.release_words import release_warnings
    from dphmm.stream import Stream, answered_line

    _check(given)
    note_no_ledger(given, console)
    lines = _Lines(job.space, job.model.step is not None)
    readable = iter(lines)
    # Nothing that can be read leaves no ledger behind.
    first = next(readable, None)
    if first is None and lines.rejected:
        raise InvalidInput("TRAJ", f"{lines.rejected.total()} lines, none of which can be read", "lines of its model")
    counts = owner_path(given["ledger"])
    with open_ledger(given["ledger"]) as ledger, ledger.lease(COMMANDS):
        stream = Stream(job.batch(ledger), given["resume"])
        names = Names(job, given, console)
        subjects = stream.batch.subjects
        console.say(covered_rows(covered_by_all(subjects.policies, job.space), subjects.epsilons[1]))
        if coming := coming_rows(job.model, given["model_people"] or "unknown"):
            console.say(coming)
        for warning in release_warnings(stream.batch.setting):
            console.warn(warning)
        console.say(_waiting_rows(stream))
        if stream.batch.caps.promise is not None:
            console.say([("over paths", stream.batch.caps.promise.sentence())])
        if stream.batch.setting.schedule is not None:
            told = f"{stream.batch.setting.schedule}; lines of other steps have an estimate alone"
            console.say([("schedule", told)])
        printed = 0
        with ExitStack() as at_end:
            at_end.callback(lambda: write_counts(counts, _counts(stream, lines.rejected)))
            answered = at_end.enter_context(stated(stream.batch, given, names))
            at_end.enter_context(_kept(stream, given))
            for released in _answers(stream, chain([] if first is None else [first], readable), lines):
                line = answered_line(released, job.space)
                # Before it is printed: an interrupt in between may count a line too many, never one too few.
                names.meet(released.user)
                answered(released, line)
                click.echo(line)
                sys.stdout.flush()
                printed += 1
    bad = lines.rejected.total()
    said = [f"{stream.released} releases of {len(stream.sessions)} subjects", f"{bad} lines set aside"]
    if stream.not_asked:
        said.append(f"{stream.not_asked} lines not asked by the schedule")
    if printed > stream.released + stream.not_asked:
        said.append(f"{printed - stream.released - stream.not_asked} lines given stored answers")
    if stream.same_step:
        said.append(f"{stream.same_step} lines not answered: one answer per subject and step")
    console.say([("", ", ".join(said))])
    name_counts(counts, given, console)
    return REJECTED if bad else 0


def _answers(stream: Stream, asked: Iterable[Line], lines: _Lines) -> Iterator[Released]:
    """What lines make due, and at the end of input the bin that is still open."""
    from dphmm.stream import BadLine

    for line in asked:
        try:
            yield from stream.take(line)
        except BadLine as error:
            lines.refuse(error)
    yield from stream.end()


def _waiting_rows(stream: Stream) -> list[Row]:
    """Why nothing is printed yet, where lines wait for their bin to close."""
    if not stream.binned:
        return []
    bins = f"time bins of {stream.batch.setting.model.step} s"
    told = f"the last line of each subject, in {bins}: when a line of a later bin or the end of input closes a bin"
    return [("answers", f"{told}; --answer first answers at once")]


def _counts(stream: Stream, rejected: Mapping[str, int]) -> dict[str, Any]:
    """What only the data owner may know of this run."""
    return owner_counts(stream.released, stream.outside, stream.released, stream.drifted, rejected)


def _check(given: Mapping[str, Any]) -> None:
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
        told = f"interrupted: {stream.released} releases are stored in {Path(given['ledger']).name} and paid for"
        go_on = "the same command with --resume continues after them"
        if stream.held:
            told += f", and lines of {stream.held} subjects in the open time bin have no answer"
            go_on += ", with the lines of that bin again"
        raise Interrupted(f"{told}; {go_on}", stop) from None
