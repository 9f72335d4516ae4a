"""The users of a batch, met one after another: each in the crowd where plans are public in advance, else in a session.

A user with other queries beside this one needs their partners, and a history under other plans needs those: sessions
know how.

Proof: docs/proofs/joint-queries.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from dphmm.accounting.ledger import Ledger, SessionHeader, Transaction
from dphmm.errors import InvalidInput
from dphmm.session.crowd import Answered, Crowd, Member, Part
from dphmm.session.history import History
from dphmm.session.releases import Released, Releases
from dphmm.session.session import ReleaseSession
from dphmm.states.sequences import Visit
from dphmm.types import IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Truth:
    """The private rows: step numbers, published times, true states (-1 for one that the space does not have)."""

    steps: IntArray
    times: IntArray | None
    states: IntArray
    ranked: bool

    def begins(self, visit: Visit) -> str:
        """What step 1 of a user stands for: a step number, and its time where steps are but ranks of rows."""
        first = visit.rows[0]
        number = str(int(self.steps[first]))
        return f"{number}@{int(self.times[first])}" if self.ranked and self.times is not None else number


class Slice(NamedTuple):
    """The rows first..end of a user."""

    visit: Visit
    first: int
    end: int

    @property
    def rows(self) -> IntArray:
        """Their numbers."""
        return self.visit.rows[self.first : self.end]


def slices(visits: Iterable[Visit], size: int) -> Iterator[list[Slice]]:
    """All rows by user and step, so many at a time."""
    taken: list[Slice] = []
    left = size
    for visit in visits:
        first = 0
        while first < len(visit.rows):
            end = min(first + left, len(visit.rows))
            taken.append(Slice(visit, first, end))
            left -= end - first
            first = end
            if not left:
                yield taken
                taken, left = [], size
    if taken:
        yield taken


@dataclass
class Done:
    """What one transaction made of its rows; to be shown when it has been committed."""

    parts: list[Releases] = field(default_factory=list)
    replayed: int = 0
    late: int = 0
    skipped_steps: int = 0
    drifted: int = 0
    plans: set[str] = field(default_factory=set)


@dataclass(eq=False)
class _Person:
    """Who a slice is of: a member of the crowd or a session, and the step number before step 1."""

    origin: int
    member: Member | None = None
    session: ReleaseSession | None = None


@dataclass(eq=False)
class Roster:
    """Gives each user a place and releases slices; ``crowd`` is None where plans depend on answers.

    ``begun`` and ``resumed`` make a user's session, from its first step or from its history. ``known`` are the
    sessions that the ledger held at the beginning.
    """

    ledger: Ledger
    query: str
    truth: Truth
    crowd: Crowd | None
    begun: Callable[[str, str], ReleaseSession]
    resumed: Callable[[str], ReleaseSession]
    known: Sequence[tuple[str, str]]
    _present: tuple[str, _Person] | None = None
    _histories: dict[str, History | None] = field(default_factory=dict)
    _subjects: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self._subjects = {subject for subject, query in self.known if query == self.query}

    def releases_of(self, user: str) -> int:
        """How many releases of a user the ledger holds; they are read once and kept until the user's turn."""
        if user not in self._subjects:
            return 0
        history = self._histories[user] = self._history(user)
        if history is None:
            return sum(entry.kind == "release" for entry in self.ledger.entries(user, self.query))
        return int((history.skipped == 0).sum())

    def release(self, transaction: Transaction, taken: Sequence[Slice]) -> Done:
        """Release slices, in order, in a transaction of the caller's."""
        done = Done()
        together: list[tuple[Slice, Part]] = []
        for part in taken:
            person = self._person(part.visit, transaction)
            t = self.truth.steps[part.rows] - person.origin + 1
            if person.member is not None:
                together.append((part, Part(person.member, t, self.truth.states[part.rows])))
                continue
            self._together(transaction, together, done)
            together = []
            assert person.session is not None
            self._one_by_one(transaction, person.session, part, t, done)
        self._together(transaction, together, done)
        return done

    def _person(self, visit: Visit, transaction: Transaction) -> _Person:
        """The user of a slice, as it was or met for the first time."""
        user = visit.user
        if self._present is None or self._present[0] != user:
            self._present = (user, self._met(visit))
        person = self._present[1]
        others = [header for header in transaction.headers(user) if header.query != self.query]
        if person.member is not None and others:
            # Another query came in between: its partners count, and a session asks for them.
            begun = person.member.through > 0
            person.session = self.resumed(user) if begun else self.begun(user, person.member.header.options["origin"])
            person.member = None
        return person

    def _met(self, visit: Visit) -> _Person:
        user, begins = visit.user, self.truth.begins(visit)
        if user not in self._subjects:
            origin = int(self.truth.steps[visit.rows[0]])
            if self.crowd is None:
                return _Person(origin, session=self.begun(user, begins))
            return _Person(origin, member=Member(self._header(self.crowd, user, begins)))
        member = None if self.crowd is None else self._known_member(self.crowd, user)
        if member is not None:
            return _Person(_origin(member.header.options["origin"], begins, user), member=member)
        session = self.resumed(user)
        return _Person(_origin(session.origin, begins, user), session=session)

    def _known_member(self, crowd: Crowd, user: str) -> Member | None:
        """A user with a history that the crowd would have written; None for any other."""
        kept = self.ledger.header(user, self.query)
        history = self._histories.pop(user) if user in self._histories else self._history(user)
        if kept is None or history is None:
            return None
        header = self._header(crowd, user, kept.options.get("origin", ""))
        if header.options != kept.options or not crowd.continues(history):
            return None
        return Member(header, history, history.through)

    def _history(self, user: str) -> History | None:
        if self.crowd is None:
            return None
        return History.of(self.ledger.entries(user, self.query), self.crowd.setting.space.dimension)

    def _header(self, crowd: Crowd, user: str, origin: str) -> SessionHeader:
        return crowd.setting.header(user, origin)

    def _together(self, transaction: Transaction, chosen: Sequence[tuple[Slice, Part]], done: Done) -> None:
        if not chosen or self.crowd is None:
            return
        answered = self.crowd.release(transaction, [part for _, part in chosen])
        rows = np.concatenate([part.rows for part, _ in chosen])
        users = [part.visit.user for part, _ in chosen for _ in range(part.end - part.first)]
        if len(answered.rows) < len(rows):
            users = [users[row] for row in answered.rows.tolist()]
        done.late += len(rows) - len(answered.rows)
        done.replayed += int((~answered.fresh).sum())
        done.skipped_steps += answered.skipped
        done.drifted += answered.drifted
        done.plans |= {answered.terms[number].plan_hash for number in np.unique(answered.term[answered.fresh]).tolist()}
        t = np.concatenate([part.t for _, part in chosen])[answered.rows]
        done.parts.append(self._columns(self.crowd, users, rows[answered.rows], t, answered))

    def _columns(self, crowd: Crowd, users: list[str], rows: IntArray, t: IntArray, answered: Answered) -> Releases:
        return Releases(
            users=users,
            times=None if self.truth.times is None else self.truth.times[rows],
            t=t,
            z=crowd.setting.space.frame.to_answers(answered.z),
            z_lattice=answered.z,
            estimate=answered.estimates,
            estimate_state=answered.states,
            secure=answered.secure,
            terms=answered.terms,
            term=answered.term,
        )

    def _one_by_one(
        self, transaction: Transaction, session: ReleaseSession, part: Slice, numbers: IntArray, done: Done
    ) -> None:
        before = session.owner_view()["drifted"]
        published: list[Released] = []
        for t, row in zip(numbers.tolist(), part.rows.tolist(), strict=True):
            if t >= session.t:
                done.skipped_steps += t - session.t
                release_one(session, transaction, t, int(self.truth.states[row]))
                done.plans.add(session.released(t).plan_hash)
            elif session.has_released(t):
                done.replayed += 1
            else:
                done.late += 1
                continue
            time = None if self.truth.times is None else int(self.truth.times[row])
            published.append(Released(part.visit.user, time, session.released(t)))
        done.drifted += session.owner_view()["drifted"] - before
        if published:
            done.parts.append(Releases.of(published))


def release_one(session: ReleaseSession, transaction: Transaction, t: int, state: int) -> None:
    """The release of step t, after a skip of the steps before it."""
    if t > session.t:
        session.accept(session.skip_within(transaction, t - session.t))
    session.accept(session.release_within(transaction, state))


def _origin(origin: str, begins: str, user: str) -> int:
    number, separator, _ = origin.partition("@")
    if separator and origin != begins:
        came = f"rows of user {user!r} that begin at another time than the history in the ledger"
        raise InvalidInput("t", came, "all rows from the first one on: without a time step they are counted from it")
    if not number.lstrip("-").isdecimal():
        raise InvalidInput("ledger", f"a history whose step 1 is {origin!r}", "one that a batch has written")
    return int(number)
