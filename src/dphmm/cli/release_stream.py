"""dphmm release -: a JSON line in, a JSON line out, each stored before it is printed.

A line is {"user", "t", "lat", "lon"} or {"user", "t", "state"}, on a map the first or the name of a cell; t is needed
where the model has a time step.
Then a line belongs to the time bin of its t, and a second line of a bin gets the stored answer; without a
step every line is a step.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
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
    from dphmm.batch import Batch, Released
    from dphmm.session.session import ReleaseSession
    from dphmm.states.space import StateSpace

_LONGEST_LINE = 65536
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS = {"user", "t", "lat", "lon", "state"}


class BadLine(Exception):
    """A line that cannot be released; the reason is a code, never what the line said."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, repr=False)
class Line:
    """One line: who, when (microseconds since 1970 UTC, or None), and the row of the state."""

    user: str
    time: int | None
    place: tuple[float, float] | None
    state: str | None


@dataclass
class _Stream:
    batch: Batch
    resume: bool
    sessions: dict[str, ReleaseSession] = field(default_factory=dict)
    released: int = 0
    outside: int = 0

    def answer(self, line: Line) -> Released:
        """The release of a line, committed."""
        from dphmm.batch import Released

        number = self._number(line)
        session = self._session(line.user, number)
        t = session.t if number is None else number - int(session.origin) + 1
        if t < 1:
            raise BadLine("before_first_step")
        if t < session.t:
            return Released(line.user, self._public_time(line), self._stored(session, t))
        if t > session.t:
            session.skip(t - session.t)
        release = session.release(self._state(line))
        self.released += 1
        return Released(line.user, self._public_time(line), release)

    def _stored(self, session: ReleaseSession, t: int) -> Any:
        try:
            return session.released(t)
        except InvalidInput:
            raise BadLine("step_has_passed") from None

    def _number(self, line: Line) -> int | None:
        """The time bin of a line; None where every line is a step."""
        step = self.batch.setting.model.step
        return None if step is None or line.time is None else line.time // (step * 1_000_000)

    def _public_time(self, line: Line) -> int | None:
        number = self._number(line)
        return line.time if number is None else number * int(self.batch.setting.model.step or 0) * 1_000_000

    def _session(self, user: str, number: int | None) -> ReleaseSession:
        if user not in self.sessions:
            self.sessions[user] = self._opened(user, number)
        return self.sessions[user]

    def _opened(self, user: str, number: int | None) -> ReleaseSession:
        if self.batch.ledger.header(user, self.batch.setting.query) is None:
            return self.batch.session(user, origin=str(number or 0))
        if not self.resume:
            raise InvalidInput("--ledger", f"one with releases of user {user!r} already", "--resume to continue them")
        return self.batch.resumed(user)

    def _state(self, line: Line) -> int:
        from dphmm.states.observed import true_states
        from dphmm.states.trajectory import Trajectories

        lat, lon = line.place or (None, None)
        row = Trajectories.from_labels(
            [line.user],
            lat=None if lat is None else [lat],
            lon=None if lon is None else [lon],
            state=None if line.state is None else [line.state],
        )
        states, outside = true_states(row, self.batch.setting.space)
        self.outside += int(outside.sum())
        return int(states[0])

    def counts(self, set_aside: Mapping[str, int]) -> dict[str, Any]:
        """What only the data owner may know of this run."""
        from dphmm.cli.owner_view import owner_counts

        drifted = sum(session.owner_view()["drifted"] for session in self.sessions.values())
        return owner_counts(self.released, self.outside, self.released, drifted, set_aside)


@dataclass
class _Lines:
    """The lines of standard input that can be read; the others are answered by number and reason, and counted."""

    space: StateSpace
    timed: bool
    number: int = 0
    set_aside: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Line]:
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

    _check(given)
    lines = _Lines(job.space, job.model.step is not None)
    readable = iter(lines)
    # Nothing that can be read leaves no ledger behind.
    first = next(readable, None)
    if first is None and lines.set_aside:
        raise InvalidInput("TRAJ", f"{lines.set_aside.total()} lines, none of which can be read", "lines of its model")
    counts = owner_path(given["ledger"])
    with open_ledger(given["ledger"]) as ledger, ledger.exclusive():
        stream = _Stream(job.batch(ledger), given["resume"])
        names = Names(job, given, console)
        console.say(covered_rows(covered_facts(job.policy, job.space), stream.batch.setting.options.epsilon))
        if coming := coming_rows(job.model, given["model_people"] or "unknown"):
            console.say(coming)
        for warning in first_step_warnings(stream.batch):
            console.warn(warning)
        with ExitStack() as at_end:
            at_end.callback(lambda: write_counts(counts, stream.counts(lines.set_aside)))
            answered = at_end.enter_context(stated(stream.batch, given, names))
            at_end.enter_context(_kept(stream, given))
            for asked in chain([] if first is None else [first], readable):
                try:
                    released = stream.answer(asked)
                except BadLine as error:
                    lines.refuse(error)
                    continue
                line = _line(released, stream)
                # Before it is printed: an interrupt in between may count a line too many, never one too few.
                names.meet(released.user)
                answered(released, line)
                click.echo(line)
                sys.stdout.flush()
    bad = lines.set_aside.total()
    console.say([("", f"{stream.released} releases of {len(stream.sessions)} subjects, {bad} lines set aside")])
    name_counts(counts, given, console)
    return SET_ASIDE if bad else 0


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


def parse_line(text: bytes, on_map: bool) -> Line:
    """A line of JSON. Raises BadLine with a reason code for anything that is not one."""
    try:
        given = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise BadLine("invalid_json") from None
    if not isinstance(given, dict):
        raise BadLine("invalid_json")
    if not given.keys() <= _FIELDS:
        raise BadLine("unknown_field")
    user = _name(given.get("user"), "missing_user")
    time = None if given.get("t") is None else _time(given["t"])
    if on_map and ("state" not in given or {"lat", "lon"} & given.keys()):
        return Line(user, time, (_degrees(given.get("lat"), -90, 90), _degrees(given.get("lon"), -180, 360)), None)
    return Line(user, time, None, _name(given.get("state"), "missing_state"))


def checked_line(line: Line, space: StateSpace, timed: bool) -> Line:
    """The line, if it has a time where the model is ``timed`` and its state a name of the right form; else BadLine."""
    if timed and line.time is None:
        raise BadLine("missing_time")
    if line.state is not None and not space.well_formed(line.state):
        raise BadLine("invalid_state")
    return line


def _name(value: object, reason: str) -> str:
    from dphmm.states.naming import check_names

    # A file's whole numbers are names too.
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        raise BadLine(reason)
    try:
        return check_names([text], 1)[0]
    except InvalidInput:
        raise BadLine(reason) from None


def _time(value: object) -> int:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        raise BadLine("invalid_time") from None
    if moment.tzinfo is None or not isinstance(value, str) or not 1678 <= moment.year < 2262:
        raise BadLine("invalid_time")
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _degrees(value: object, least: int, most: int) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise BadLine("invalid_place")
    return float(value) - 360.0 if value > 180 else float(value)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(name)


def _line(released: Released, stream: _Stream) -> str:
    """The answer as a line."""
    from dphmm.storage.released import released_table

    (row,) = released_table([released], stream.batch.setting.space).to_pylist()
    return json.dumps({name: _plain(value) for name, value in row.items()}, allow_nan=False, ensure_ascii=True)


def _plain(value: Any) -> Any:
    """Times as text, an unbounded cost as null."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return None if isinstance(value, float) and math.isinf(value) else value


@contextmanager
def _kept(stream: _Stream, given: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Interrupted(
            f"interrupted: {stream.released} releases are stored in {Path(given['ledger']).name} and paid "
            "for; the same command with --resume continues after them",
            stop,
        ) from None
