"""Releases line by line: a JSON line in, a JSON line out, each stored before anybody sees it.

A line is {"user", "t", "lat", "lon"} or {"user", "t", "state"}, on a map the first or the name of a cell. It says what
moment it is of: where the model has a time step, the time bin of its t; else its time t, or in place of t a number
"step" that the sender counts. The same moment is the same answer, however often a line comes. Without a time step a
line is answered at once, and a line that comes after a later one of its user is not answered any more.

Bins have one answer for each user. Under "last", a bin is open from its first line until one of a later bin comes, from
anybody, or until the input ends: each user's last line in time is held, one for each user, and then answered. Under
"first" a bin's first line to come is answered at once, and a later one gets the stored answer. When a bin closes, and
which lines have answers, is decided by users and times alone.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from dphmm.accounting.ledger import SessionHeader
from dphmm.accounting.moments import TIMES, first_number, has_moments
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch, ReleasedRow, already_released
from dphmm.session.session import ReleaseSession
from dphmm.session.setting import check_header
from dphmm.statement.files import save_statement
from dphmm.statement.origin import Whom
from dphmm.states.space import StateSpace, check_names
from dphmm.states.trajectory import Trajectories, true_states
from dphmm.storage.inputs import PathLike
from dphmm.storage.json_lines import strict_json
from dphmm.storage.released import FileSums, released_table

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIELDS = {"user", "t", "step", "lat", "lon", "state"}


class BadLine(Exception):
    """A line that cannot be released; the reason is a code, never what the line said.

    ``moment`` : the line without its place or state, where these alone cannot be read.
    """

    def __init__(self, reason: str, moment: Line | None = None) -> None:
        super().__init__(reason)
        self.reason, self.moment = reason, moment


@dataclass(frozen=True, repr=False)
class Line:
    """One line: its user, its moment, and the row of the state.

    ``time``: microseconds since 1970 UTC; in its place ``step`` may be the sender's number of a step. ``unreadable``:
    why there is neither place nor state; then the line is a step without an answer, where steps are ranks of times.
    """

    user: str
    time: int | None
    place: tuple[float, float] | None
    state: str | None
    step: int | None = None
    unreadable: str | None = None


@dataclass
class Stream:
    """Sessions of one batch, answered line by line under its rule; ``released`` counts those that were drawn now.

    ``not_asked`` counts lines that a schedule left out now: their answer has no z.
    ``same_step`` counts lines that another line of their user and bin replaced. ``outside`` is for the data owner
    alone: lines answered now whose place or name is in no state.

    One thread at a time may use a stream, and take lines in their order.
    """

    batch: Batch
    resume: bool
    sessions: dict[str, ReleaseSession] = field(default_factory=dict)
    released: int = 0
    not_asked: int = 0
    same_step: int = 0
    outside: int = 0
    #: What the steps of users stand for, where they are ranks of times.
    _moments: dict[str, list[int]] = field(default_factory=dict, init=False, repr=False)
    _open: int = field(default=-(2**63), init=False)
    _held: dict[str, Line] = field(default_factory=dict, init=False, repr=False)

    def take(self, line: Line) -> Iterator[ReleasedRow]:
        """The releases that a line makes due, each committed: those of the bin that it closes, then what it gets.

        Raises BadLine, after the others, where the line gets no answer. All must be taken.
        """
        try:
            line = replace(line, user=self.batch.names_of([line.user])[0])
        except InvalidInput:
            raise BadLine("invalid_user") from None
        number = self._number(line)
        if line.unreadable is not None:
            self._pass(line, number)
            raise BadLine(line.unreadable)
        if not self.binned:
            yield self._answer(line, number, closed=False)
            return
        if number > self._open:
            yield from self.end()
            self._open = number
        closed = number < self._open
        if closed and line.user not in self.sessions and self._header(line.user) is None:
            raise BadLine("bin_has_closed")
        session, t = self._step(line, number)
        if closed or t < session.t:
            yield self._answer(line, number, closed)
        else:
            self._hold(line)

    def end(self) -> Iterator[ReleasedRow]:
        """The releases of the open bin, each committed, in the order in which its users came."""
        while self._held:
            user = next(iter(self._held))
            released = self._answer(self._held[user], self._open, closed=False)
            del self._held[user]
            yield released

    @property
    def binned(self) -> bool:
        """True if lines wait until their time bin closes."""
        return self.batch.setting.model.step is not None and self.batch.answer == "last"

    @property
    def held(self) -> int:
        """The number of users with an unanswered line in the open bin."""
        return len(self._held)

    def _hold(self, line: Line) -> None:
        """Keep the line that is last in time of its user in the open bin, and of the same time the one that came last.

        The user keeps the place in which their first line came.
        """
        held = self._held.get(line.user)
        self.same_step += held is not None
        if held is None or _time_of(held) <= _time_of(line):
            self._held[line.user] = line

    def _answer(self, line: Line, number: int, closed: bool) -> ReleasedRow:
        """The release of a line, stored before or now; now only where its bin is not closed."""
        session, t = self._step(line, number)
        if t < session.t:
            return ReleasedRow(line.user, self._public_time(line), self._stored(session, t))
        if closed:
            raise BadLine("bin_has_closed")
        if t > session.t:
            session.skip(t - session.t)
        chosen = self.batch.subjects.given.get((first_number(session.origin) or 0) + t - 1, {})
        moments = self._moments.get(line.user)
        release = session.release(self._state(line), **chosen, moment=None if moments is None else number)
        if moments is not None and t > len(moments):
            moments.append(number)
        self.released += release.asked
        self.not_asked += not release.asked
        return ReleasedRow(line.user, self._public_time(line), release)

    def _pass(self, line: Line, number: int) -> None:
        """Give a moment its step without an answer, as a table does where steps are ranks of times."""
        session, t = self._step(line, number)
        if t == session.t and line.user in self._moments:
            session.skip(moment=number)
            self._moments[line.user].append(number)

    def _step(self, line: Line, number: int) -> tuple[ReleaseSession, int]:
        """The session of a line's user, and which of its steps a moment is."""
        session = self._session(line, number)
        if line.user in self._moments:
            moments = self._moments[line.user]
            t = bisect_left(moments, number) + 1
            if t <= len(moments) and moments[t - 1] != number:
                raise BadLine("step_has_passed")
        else:
            t = number - (first_number(session.origin) or 0) + 1
        if t < 1:
            raise BadLine("before_first_step")
        return session, t

    def _stored(self, session: ReleaseSession, t: int) -> Any:
        try:
            return session.released(t)
        except InvalidInput:
            raise BadLine("step_has_passed") from None

    def _number(self, line: Line) -> int:
        """The moment of a line: its time bin, its time, or the number that its sender gives it.

        Raises BadLine for a line that says none.
        """
        step = self.batch.setting.model.step
        if line.time is None:
            if line.step is None or step is not None:
                raise BadLine("missing_time")
            return line.step
        return line.time if step is None else line.time // (step * 1_000_000)

    def _public_time(self, line: Line) -> int | None:
        step = self.batch.setting.model.step
        return line.time if step is None else self._number(line) * step * 1_000_000

    def _session(self, line: Line, number: int) -> ReleaseSession:
        user = line.user
        if user not in self.sessions:
            self.sessions[user] = self._opened(line, number)
            if has_moments(self.sessions[user].origin):
                self._moments[user] = self.batch.ledger.moments_of([user])[0].tolist()
        return self.sessions[user]

    def _opened(self, line: Line, number: int) -> ReleaseSession:
        user, clock = line.user, None
        header = self._header(user)
        if self.batch.setting.model.step is None and line.time is not None:
            clock = TIMES
        origin = self.batch.origin_of(user, clock, number)
        if header is None:
            return self.batch.session(user, origin=origin)
        if not self.resume:
            raise already_released(f"user {user!r} already")
        check_header(self.batch.subjects.of(user).header(user, origin), header)
        self.batch.check_choices([user])
        return self.batch.resumed(user)

    def _header(self, user: str) -> SessionHeader | None:
        return self.batch.ledger.header(user, self.batch.setting.query)

    def _state(self, line: Line) -> int:
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

    @property
    def drifted(self) -> int:
        """For the data owner alone: the number of lines answered now that were outside the plan set of their step."""
        return sum(session.drifted for session in self.sessions.values())


class StreamStatement:
    """The answers of a stream for its privacy statement: every release once, and the hash of the lines.

    The statement is written however the stream ends: its answers are published by then.
    """

    def __init__(self, batch: Batch) -> None:
        self._batch, self._published, self._lines = batch, FileSums(), sha256()
        self._told: set[tuple[str, int]] = set()

    def add(self, released: ReleasedRow, line: str) -> None:
        """A release, and the line it was answered by. The same step asked again is the same release."""
        self._lines.update(line.encode() + b"\n")
        if (released.user, released.release.t) not in self._told:
            self._told.add((released.user, released.release.t))
            self._published.add([released])

    @property
    def plans(self) -> set[str]:
        """The hashes of the plans of what was added."""
        return self._published.plans

    def save(self, path: PathLike, whom: Whom) -> None:
        """Write the statement of all releases so far. ``whom``: the people that the model was fitted on."""
        statement = self._batch.statement(self._published, whom.people, known_by=whom.known_by)
        save_statement(Path(path), statement, "-", self._lines.hexdigest())


def _time_of(line: Line) -> int:
    assert line.time is not None
    return line.time


def parse_line(text: bytes, on_map: bool) -> Line:
    """A line of JSON. Raises BadLine with a reason code for anything that is not one."""
    try:
        fields = strict_json(text)
    except (ValueError, RecursionError):
        raise BadLine("invalid_json") from None
    if not isinstance(fields, dict):
        raise BadLine("invalid_json")
    if not fields.keys() <= _FIELDS:
        raise BadLine("unknown_field")
    user = _name(fields.get("user"), "missing_user")
    time = None if fields.get("t") is None else _time(fields["t"])
    step = None if fields.get("step") is None else _step(fields["step"])
    try:
        if on_map and ("state" not in fields or {"lat", "lon"} & fields.keys()):
            place = (_degrees(fields.get("lat"), -90, 90), _degrees(fields.get("lon"), -180, 360))
            return Line(user, time, place, None, step)
        return Line(user, time, None, _name(fields.get("state"), "missing_state"), step)
    except BadLine as error:
        raise BadLine(error.reason, Line(user, time, None, None, step, error.reason)) from None


def checked_line(line: Line, space: StateSpace, timed: bool) -> Line:
    """The line, if it says what moment it is of and its state is a name of the right form; else BadLine.

    If the model is ``timed`` the moment is a time, else a time or the sender's number of a step, not both.
    """
    if line.time is None and (timed or line.step is None):
        raise BadLine("missing_time")
    if line.time is not None and line.step is not None:
        raise BadLine("time_and_step")
    if line.state is not None and not space.well_formed(line.state):
        raise BadLine("invalid_state", replace(line, state=None, unreadable="invalid_state"))
    return line


def _name(value: object, reason: str) -> str:
    # A file's whole numbers are names too.
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str):
        raise BadLine(reason)
    try:
        return check_names([text], 1)[0]
    except InvalidInput:
        raise BadLine(reason) from None


def _step(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**53:
        raise BadLine("invalid_step")
    return value


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


def answered_line(released: ReleasedRow, space: StateSpace) -> str:
    """The answer as a line of JSON."""
    (row,) = released_table([released], space).to_pylist()
    return json.dumps({name: _plain(value) for name, value in row.items()}, allow_nan=False, ensure_ascii=True)


def _plain(value: Any) -> Any:
    """Times as text."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value
