"""Release many subjects: a table of trajectories in, a table of releases out.

A subject is a user: everything one user does, over all trips, is one session, because an adversary does not forget
between trips. Many releases share a transaction, and nothing of it is shown before it has been committed.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import warnings
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Unpack

import numpy as np

from dphmm._cached import cached_property
from dphmm._checks import one_of, whole
from dphmm._progress import Progress, shown
from dphmm.accounting.budget import UNLIMITED, Caps, keep_promise, quoted
from dphmm.accounting.ledger import Ledger, SequencePromise, SessionHeader
from dphmm.accounting.moments import ORDER, ROWS, TIMES, Prefix, first_number, has_moments, steps_of
from dphmm.accounting.person import checked_noun, key_by
from dphmm.accounting.promise import Schedule
from dphmm.accounting.records import Entry, Spending, in_short
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.samplers.entropy import default_bits
from dphmm.session.block import Blocks
from dphmm.session.options import PlanChoices, checked_caps, checked_ledger, epsilon_of_step, promise_beside
from dphmm.session.plan import chosen_of
from dphmm.session.releases import NOT_ASKED, ReleasedRow, Releases, terms_of
from dphmm.session.rounds import AnsweredRows, Engine, StepRows, SubjectState, caps_of, schedule_of
from dphmm.session.session import ReleaseSession, engine_of
from dphmm.session.setting import (
    Setting,
    StepChoices,
    Subjects,
    check_header,
    check_same_states,
    checked_steps,
    names_chosen,
)
from dphmm.states.space import StateSpace
from dphmm.states.trajectory import ANSWERS, Trajectories
from dphmm.states.visit_table import UserRows, VisitTable
from dphmm.storage.inputs import PathLike, checked_output
from dphmm.storage.private_tables import owner_counts, owner_path, write_counts
from dphmm.storage.tables import column_list, read_whole, table_format, table_kind, table_writer, to_kind
from dphmm.storage.trajectories import load_trajectories
from dphmm.types import Bits, BoolArray, Exact, IntArray

if TYPE_CHECKING:
    from dphmm.statement.events import EventLog
    from dphmm.statement.origin import Whom
    from dphmm.statement.release import ReleaseStatement
    from dphmm.storage.released import FileSums

__all__ = ["Batch", "BatchReport", "ReleasedRow", "Releases", "release_many"]

#: Of each user what the steps go by, and the header of the query where the ledger has one.
Histories: TypeAlias = dict[str, tuple[str, SessionHeader | None]]

#: Releases that share one transaction: enough to make its commit cheap, few enough to lose little when stopped.
CHUNK = 2**14
#: Of those that the planner plans one by one, and of those on very many states, fewer take as long.
_CHUNK_STEPWISE = 2000
#: People whose stored steps are read together.
_LOOKED_UP = 500
_CHUNK_STATES = 2**26
_LARGEST_STEP = 2**53
#: Of so many beginnings the plans are at hand while a table is released.
_MOST_ENGINES = 64


@dataclass
class BatchReport:
    """The counts of a run's rows by outcome, its subjects and its plans.

    ``outside`` (rows whose place or name is in no state) and ``drifted`` are for the owner alone and never published.

    ``late`` rows are of moments that an earlier run passed over: nothing can be released for them any more.
    ``released`` rows have an answer, the ``replayed`` ones an earlier run's; those ``not_asked`` by the schedule have
    none.
    """

    rows: int = 0
    subjects: int = 0
    released: int = 0
    not_asked: int = 0
    replayed: int = 0
    same_step: int = 0
    skipped_steps: int = 0
    late: int = 0
    outside: int = field(default=0, repr=False)
    drifted: int = field(default=0, repr=False)
    plans: set[str] = field(default_factory=set)


class BatchChoices(PlanChoices, total=False):
    """The keywords of a `Batch`, see `release_many`."""

    promise: SequencePromise | None
    schedule: Schedule | None
    query: str
    answer: str
    ledger: Ledger | None
    cap_epsilon: Exact | None
    cap_cost: Exact | None
    bits: Bits | None
    initials: Mapping[str, Any] | None
    step_choices: StepChoices | None
    varies: Sequence[str]
    policies: Sequence[PolicyGraph]
    check: bool
    although: bool
    min_people: int
    noun: str
    case_names: str | None
    times: str
    length: int | None


class Batch:
    """The releases of many subjects under the same public choices; see `release_many` for the parameters.

    One thread at a time may use a batch, which counts what it did; batches of several threads may share a ledger.
    """

    def __init__(
        self,
        model: MarkovModel,
        policy: PolicyGraph,
        space: StateSpace,
        epsilon: Exact | None = None,
        *,
        promise: SequencePromise | None = None,
        schedule: Schedule | None = None,
        query: str = "state",
        answer: str = "last",
        ledger: Ledger | None = None,
        cap_epsilon: Exact | None = None,
        cap_cost: Exact | None = None,
        bits: Bits | None = None,
        initials: Mapping[str, Any] | None = None,
        step_choices: StepChoices | None = None,
        varies: Sequence[str] = (),
        policies: Sequence[PolicyGraph] = (),
        check: bool = True,
        although: bool = False,
        min_people: int = 1,
        noun: str = "person",
        case_names: str | None = None,
        times: str = "none",
        length: int | None = None,
        **choices: Unpack[PlanChoices],
    ) -> None:
        public = (model, policy, space, epsilon_of_step(epsilon, promise, model.step, schedule))
        rule = one_of(answer, ANSWERS, "answer")
        varies = varies or names_chosen(checked_steps(step_choices or {}))
        self.setting = Setting.of(*public, query=query, answer=rule, schedule=schedule, varies=varies, **choices)
        self.setting.policies.update({policy.digest: policy for policy in policies})
        self.subjects = Subjects(self.setting, initials, step_choices)
        self.ledger = checked_ledger(ledger)
        self.caps = checked_caps(cap_epsilon, cap_cost, promise_beside(promise, schedule))
        #: Whether the sum of every subject's answers has a limit: these caps, or what each account keeps.
        self.limited = self.limits(self.caps)
        self._bits = default_bits(bits)
        self._checks, self._although, self._min_people = check, although, whole(min_people, "min_people", 1)
        self.noun = checked_noun(noun)
        self._case_names, self._times = case_names, times
        self._length = None if length is None else whole(length, "length", 1)
        if length is not None and case_names is None:
            raise InvalidInput("length", length, "case_names, as a length is that of every case")
        #: What rows of cases tell beside their answers, once they are known; None of rows that are no cases.
        self.events: EventLog | None = None
        #: Whether a table that cannot be meant would have stopped the release, see `check_meant`.
        self.checked = False
        self.report = BatchReport()
        self._continues = False
        self._engines: dict[Setting, Engine] = {}
        self._names: dict[str, str] = {}

    def names_of(self, users: Sequence[str]) -> list[str]:
        """The stored name of each user; for a new user the first spelling seen here.

        Raises InvalidInput for a name without a key (`dphmm.accounting.person.person_key`).
        """
        keys = list(map(key_by(self.ledger.spelling), users))
        new = dict[str, str]()
        for key, user in zip(keys, users, strict=True):
            if key not in self._names:
                new.setdefault(key, user)
        self._names |= zip(new, self.ledger.names_of(list(new.values())), strict=True)
        return [self._names[key] for key in keys]

    def session(self, subject: str, origin: str) -> ReleaseSession:
        """A subject's session from its first step."""
        setting = self.subjects.of(subject)
        return ReleaseSession.of(
            setting, subject=subject, ledger=self.ledger, caps=self.caps, bits=self._bits, origin=origin
        )

    def limits(self, caps: Caps) -> bool:
        """True if caps limit the sum of answers of this epsilon."""
        return caps.limit(self.setting.options.epsilon, self.setting.model.step)

    @property
    def continues(self) -> bool:
        """True if some users have steps of earlier runs before their rows."""
        return self._continues

    def resumed(self, subject: str) -> ReleaseSession:
        """A subject's session from where its history in the ledger ends."""
        header = self.ledger.header(subject, self.setting.query)
        assert header is not None
        self._continues = True
        return ReleaseSession.resumed(self.ledger, header, self.subjects.of(subject), caps=self.caps, bits=self._bits)

    def check_choices(self, subjects: Iterable[str]) -> None:
        """Check that stored steps were released under the choices of today, as one statement covers all of them.

        Raises InvalidInput naming the first step that was not.
        """
        query, chosen = self.setting.query, self.subjects.chosen
        sessions = self.ledger.sessions_of(sorted(set(subjects))) if self.setting.varies else ()
        for subject in (subject for subject, other in sessions if other == query):
            begins = self._number_of(subject)
            for entry in self.ledger.entries(subject, query):
                if entry.plan_hash is None:
                    continue
                choice, step = chosen.get(entry.t + begins - 1), entry.t + begins - 1
                if chosen_of(self.ledger.plan(entry.plan_hash)) != ({} if choice is None else choice.told):
                    fault = f"another choice for step {step} than {quoted(subject)} was released under"
                    raise InvalidInput("step_choices", fault, "those of all steps that are stored, and more")

    def run(
        self,
        trajectories: Trajectories | VisitTable,
        *,
        resume: bool = False,
        progress: Progress | None = None,
    ) -> Iterator[Sequence[ReleasedRow]]:
        """Release every step at which a user has a row; yields what each committed transaction published.

        Raises
        ------
        InvalidInput : without ``resume``, when the ledger already holds one of the users; for rows without any mark
            that do not continue those that it holds, and for a table by another clock.
        BudgetExceeded : before anything is drawn where the epsilons of all rows together would pass a cap, or break the
            promise of an account.
        """
        visits = self.visits(trajectories)
        if self._case_names is not None:
            from dphmm.statement.events import EventLog

            self.events = EventLog.of(self._case_names, self._length, visits, self.setting)
        self.report.outside, self.report.same_step = visits.outside, visits.same_step
        self.report.rows, self.report.subjects = visits.n_rows, len(visits)
        histories, times = self._checked(visits, resume), visits.times
        met: dict[int, SubjectState] = {}
        count = 0
        for first, end in self._parts(visits):
            row, mine = range(first, end), visits.owners(first, end)
            numbers = range(int(mine[0]), int(mine[-1]) + 1)
            # Rows are by subject: of those met before, only the first can have rows left.
            before, met = met, {}
            for number in numbers:
                met[number] = before.get(number) or self._met(visits.users[number], *histories[visits.users[number]])
            subjects = list(met.values())
            setting = self.subjects.of(subjects[0].name)
            engine = self._engine(setting)
            begins = np.array([_number(subject.origin) for subject in subjects])[mine - mine[0]]
            with self.ledger.transaction([subject.name for subject in subjects]) as transaction:
                # Rows are numbered where nobody else can add a moment before them.
                t = self._steps(visits, row, mine, begins)
                # Late rows are never asked, and rows without a place only take their step.
                here, placed = np.flatnonzero(t > 0), visits.placed(first, end)
                n_placed, t, mine, begins, placed = int(placed.sum()), t[here], mine[here], begins[here], placed[here]
                asked = np.ones(len(t), dtype=np.bool_)
                if self.setting.schedule is not None:
                    # Rows are by subject.
                    parts = zip(subjects, np.split(t, np.searchsorted(mine, numbers[1:])), strict=True)
                    asked = np.concatenate([self._may_ask(subject, some) for subject, some in parts])
                asked &= placed
                chosen = self.subjects.chosen
                choices = [chosen.get(step) for step in (t + begins - 1).tolist()] if chosen else None
                moment = visits.time[first:end][here] if has_moments(visits.clock) and visits.time is not None else None
                rows = StepRows(mine - numbers[0], t, asked, choices, moment)
                stored = engine.release(transaction, subjects, rows, visits.states(first, end)[here])
                if visits.clock == ROWS:
                    self._keep_prefixes([visits[number] for number in numbers], subjects, visits)
            # A user whose first row is not step 1 has steps of an earlier run.
            first_here = np.flatnonzero(np.diff(mine, prepend=-1))
            self._continues |= any(
                step > 1
                for step, number in zip(t[first_here], mine[first_here].tolist(), strict=True)
                if number not in before
            )
            answered = engine.show(stored).among(placed)
            self.report.late += n_placed - len(answered.row)
            users = [visits.users[number] for number in mine[answered.row].tolist()]
            published = self._published(answered, users, t, None if times is None else times[row][here])
            count += end - first
            if progress is not None:
                progress(count, visits.n_visits)
            yield published
            if stored.refused is not None:
                raise stored.refused

    def check_rewritten(self, output: PathLike) -> None:
        """A released file that exists is rewritten only from a ledger that has the last answer of everybody in it.

        Raises InvalidInput where it has not, and for a file that is no released one.
        """
        from dphmm.storage.released import last_answers

        if not Path(output).exists():
            return
        last, query = last_answers(output, self.setting.space), self.setting.query
        with self.ledger.transaction([user for user, _, _ in last]) as transaction:
            stored = [transaction.entry(user, query, step) for user, step, _ in last]
        others = [
            user
            for (user, _, z), entry in zip(last, stored, strict=True)
            if entry is None or entry.z is None or list(entry.z) != z
        ]
        if others:
            name = Path(output).name
            fault = f"a ledger without the releases in {name} of {len(others)} users, {others[0]!r} among them"
            raise InvalidInput(
                "ledger",
                fault,
                f"the ledger that they are in, query {query!r}; a new output asks them again, and is paid for",
            )

    def written(
        self, chunks: Iterable[Sequence[ReleasedRow]], output: PathLike, published: FileSums
    ) -> Iterator[Sequence[ReleasedRow]]:
        """Yield the chunks of `run` unchanged, after counting each and writing it to a released file.

        The file appears when the last chunk is taken. An error leaves no file, or the earlier one.
        """
        from dphmm.storage.released import released_table

        write = None
        with ExitStack() as stack:
            for chunk in chunks:
                if chunk:
                    published.add(chunk)
                    table = released_table(chunk, self.setting.space)
                    if write is None:
                        write = stack.enter_context(table_writer(output, table.schema))
                    write(table)
                yield chunk

    def write_owner_counts(
        self, path: Path, visits: VisitTable, published: FileSums, rejected: Mapping[str, int]
    ) -> None:
        """Write the counts for the owner to a file, after `run` has released these rows.

        ``rejected``: the rows that could not be read, by reason.
        """
        fresh = published.rows - published.not_asked - self.report.replayed
        counts = owner_counts(visits.in_steps, self.report.outside, fresh, self.report.drifted, rejected)
        write_counts(path, counts)

    def check(self, trajectories: Trajectories | VisitTable, *, resume: bool = False) -> VisitTable:
        """Refuse now what `run` would refuse ahead; the rows as `run` takes them. Raises as `run`."""
        visits = self.visits(trajectories)
        self._checked(visits, resume)
        return visits

    def check_meant(self, rows: Trajectories | VisitTable) -> list[Stop]:
        """Stop the release of a table that cannot be meant; with ``although`` the reasons why it would have stopped.

        Raises InvalidInput, before anything is drawn. Without ``check`` nothing is looked at.
        """
        if not self._checks:
            return []
        stops = self.stops(rows)
        if stops and not self._although:
            more = "dphmm.evaluation.check_table() says more; although=True releases it as it is"
            raise InvalidInput("table", stops[0].came, f"{stops[0].expected}; {more}")
        self.checked = not self._although
        return stops

    def stops(self, rows: Trajectories | VisitTable) -> list[Stop]:
        """Find the reasons why rows cannot be meant: too few people, hardly a row in a state, none at a step asked.

        Two neighbouring paths have the same people, moments and rows in states, and so the same reasons: their words
        are fixed, and no more is looked at than they need. Late rows are at no step any more, whatever the schedule is.
        """
        visits, stops = self.visits(rows), list[Stop]()
        if len(visits) < self._min_people:
            stops.append(Stop(f"{len(visits)} people", f"at least {self._min_people}, as min_people says"))
        if _LEAST_IN_STATES * visits.in_states < visits.n_placed:
            stops.append(_OFF_THE_MAP if self.setting.space.on_map else _OTHER_NAMES)
        some = self.setting.schedule is not None
        if some and not any(not len(t) or may_ask.any() for _, t, may_ask in self.asked_steps(visits)):
            stops.append(_OTHER_STEPS)
        return stops

    def asked_steps(self, visits: VisitTable) -> Iterator[tuple[SubjectState, IntArray, BoolArray]]:
        """Yield each person, the steps (n,) of its rows to answer, and which of them the schedule may ask."""
        histories = self._histories(visits)
        for number, visit in enumerate(visits):
            subject = SubjectState(visit.user, histories[visit.user][0])
            t = self._all_steps(visits, number, subject.origin)
            yield subject, t, self._may_ask(subject, t)

    def left(self, visits: VisitTable, each: Fraction, *, planned: bool = False) -> Iterator[Left]:
        """Yield what each person has left: of the promise in every block in which a new step is asked, and of the cap.

        For a person without a new step: in every block in which a step is asked.

        each : the epsilon of a step that is asked.
        planned : True if this query gets a plan again: its own answers do not count.
        """
        people, query = self.asked_steps(visits), self.setting.query
        while some := list(islice(people, _LOOKED_UP)):
            stored = defaultdict[str, list[Entry]](list)
            for entry in self.ledger.entries_of([subject.name for subject, _, _ in some]):
                if not (planned and entry.query == query):
                    stored[entry.subject].append(entry)
            for subject, t, may_ask in some:
                name, asked = subject.name, t[may_ask].tolist()
                last = max((entry.through for entry in stored[name] if entry.query == query), default=0)
                more = [(step, each) for step in asked if step > last]
                before = [(entry.t, entry.epsilon) for entry in stored[name] if entry.epsilon is not None]
                caps = caps_of(self.caps, self.setting, subject.origin)
                caps = self.ledger.caps(name).joined(caps, quoted(name))
                if asked and (promise := caps.promise) is not None:
                    if promise.local is not None:
                        promise = promise.beside(self.ledger.blocks(name))
                    steps, limit = [step for step, _ in more] or asked, str(self.caps.promise or promise)
                    rooms = zip(promise.rooms(before, steps), promise.rooms([*before, *more], steps), strict=True)
                    yield from (Left(*room, limit) for room in rooms)
                if asked and caps.epsilon is not None:
                    limit = f"{in_short(caps.epsilon, down=True)} in all"
                    rest = caps.epsilon - sum(epsilon for _, epsilon in before)
                    yield Left(rest, max(Fraction(0), rest - each * len(more)), limit)

    def statement(
        self,
        published: FileSums,
        model_people: str = "unknown",
        *,
        known_by: str | None = None,
        words: Literal["system", "job key"] = "system",
    ) -> ReleaseStatement:
        """The privacy statement of what this batch has released, without a file.

        Parameters
        ----------
        published : has counted every row.
        model_people : "others" where the model was made without data of the people released, "same" where it was
            made from data of some of them; "unknown" keeps `private` from being true of a model that was not learned
            with differential privacy.
        known_by : the evidence for it, "owner" by default (`dphmm.statement.origin.whom`).
        words : the sources of the noise: the operating system for each row, or the key of one job.

        Raises
        ------
        InvalidInput : for another word, and for "same" of a model that was made without data.
        """
        from dphmm.statement.origin import Whom, whom_of
        from dphmm.statement.release import ReleaseStatement

        setting = self.setting
        return ReleaseStatement.of(
            published,
            model=setting.model,
            policy=setting.policy,
            space=setting.space,
            options=setting.options,
            whom=whom_of(setting.model.provenance, Whom.of(model_people, known_by)),
            query=setting.query,
            answer=self.answer,
            spelling=self.ledger.spelling,
            noun=self.noun,
            caps=self.caps,
            limited=self.limited,
            schedule=setting.schedule,
            subjects=self.subjects,
            words=words,
            checked=self.checked,
            events=self.events,
        )

    def over(self, ledger: Ledger, bits: Bits | None) -> Batch:
        """The same release with another ledger and other words, and a report of its own; plans are shared."""
        other = copy(self)
        other.ledger, other._bits, other.report = ledger, default_bits(bits), BatchReport()
        other._continues, other._engines, other._names = False, {}, {}
        return other

    def _checked(self, visits: VisitTable, resume: bool) -> Histories:
        """Refuse, before anything is drawn, a whole table as `run` does; return the ledger's histories of its users."""
        # Differences of step numbers, and what is counted from 1, must stay far from the ends of 64 bits.
        first, last = visits.ends
        if len(visits) and not -_LARGEST_STEP <= int(first.min()) <= int(last.max()) <= _LARGEST_STEP:
            raise InvalidInput("step", f"a number beyond {_LARGEST_STEP}", f"step numbers up to {_LARGEST_STEP}")
        sessions = self.ledger.sessions_of(visits.users)
        again = {subject for subject, query in sessions if query == self.setting.query}
        if again and not resume:
            raise already_released(f"{len(again)} of these users already, {min(again)!r} among them")
        histories = self._histories(visits)
        if visits.clock == ROWS:
            self._check_prefixes(visits)
        self._refuse_ahead(visits, histories, {subject for subject, _ in sessions})
        return histories

    def _histories(self, visits: VisitTable) -> Histories:
        """The origin of each user's steps, and the stored header of this query or None.

        All queries of a person have one numbering of steps. Raises InvalidInput if the table has another clock.
        """
        headers: dict[str, SessionHeader] = {}
        for header in self.ledger.headers_of(visits.users):
            if header.query == self.setting.query or header.subject not in headers:
                headers[header.subject] = header
        histories: Histories = {}
        for user, begins in zip(visits.users, visits.ends[0].tolist(), strict=True):
            stored = headers.get(user)
            if stored is None:
                histories[user] = visits.clock or str(begins), None
                continue
            origin = stored.options.get("origin", "")
            _check_clock(user, origin, visits.clock)
            histories[user] = origin, stored if stored.query == self.setting.query else None
        return histories

    def origin_of(self, user: str, clock: str | None, number: int) -> str:
        """The origin of a user's steps: the stored one, else ``clock``, else ``number`` as text if clock is None.

        Raises InvalidInput if the ledger has another clock.
        """
        headers = {header.query: header for header in self.ledger.headers_of([user])}
        if not headers:
            return clock or str(number)
        header = headers.get(self.setting.query) or headers[min(headers)]
        origin = header.options.get("origin", "")
        _check_clock(user, origin, clock)
        return origin

    def _steps(self, visits: VisitTable, rows: range, mine: IntArray, begins: IntArray) -> IntArray:
        """The step (n,) of each of the ``rows``, 0 for late ones: the ledger has a later moment, and not this one.

        mine, begins (n,) : the number of its user, and the number that is the user's step 1 where steps are numbers.
        """
        if not has_moments(visits.clock):
            # Ranks are counted from 0.
            t: IntArray = np.maximum(visits.steps[rows] + (visits.clock == ROWS) - begins + 1, 0)
            return t
        assert visits.time is not None
        moments, people = visits.time[rows.start : rows.stop], range(int(mine[0]), int(mine[-1]) + 1)
        parts = np.split(moments, np.searchsorted(mine, people[1:]))
        stored = self.ledger.moments_of([visits.users[number] for number in people])
        return np.concatenate([steps_of(*each) for each in zip(stored, parts, strict=True)])

    def _all_steps(self, visits: VisitTable, number: int, origin: str) -> IntArray:
        """The step of each row of one user that is to be answered: not late, and of a place or name."""
        rows = visits[number].rows
        t = self._steps(visits, rows, np.full(len(rows), number), np.full(len(rows), _number(origin)))
        return t[(t > 0) & visits.placed(rows.start, rows.stop)]

    def _check_prefixes(self, visits: VisitTable) -> None:
        """Refuse rows without any mark unless they begin with those that the ledger has, one for one."""
        for visit, stored in zip(visits, self.ledger.prefixes_of(visits.users), strict=True):
            if stored is not None and (
                stored.rows > len(visit.rows) or self._prefix(visits, visit, stored.rows) != stored
            ):
                raise _other_rows()

    def _keep_prefixes(self, users: list[UserRows], subjects: list[SubjectState], visits: VisitTable) -> None:
        """Keep what the rows are that have a step now; they continue those that had one before."""
        new: dict[str, Prefix] = {}
        before = self.ledger.prefixes_of([visit.user for visit in users])
        for visit, subject, stored in zip(users, subjects, before, strict=True):
            if stored is not None and self._prefix(visits, visit, min(stored.rows, len(visit.rows))) != stored:
                raise _other_rows()
            if stored is None or subject.last > stored.rows:
                new[visit.user] = self._prefix(visits, visit, subject.last)
        if new:
            self.ledger.keep_prefixes(new)

    def _prefix(self, visits: VisitTable, visit: UserRows, rows: int) -> Prefix:
        """The first ``rows`` of a user, as a ledger keeps them."""
        first = visit.rows.start
        return Prefix.of(self.ledger.owner_key(), visit.user, visits.states(first, first + rows))

    def _refuse_ahead(self, visits: VisitTable, histories: Histories, held: set[str]) -> None:
        """Refuse the whole table, before anything is drawn, where all its rows together would pass what was promised.

        ``held``: the users that the ledger has sessions of.
        """
        paces = self.setting.paces
        if self.caps.epsilon is not None and not paces:
            totals = self.ledger.spent_of(visits.users)
            for number, (visit, spent) in enumerate(zip(visits, totals, strict=True)):
                origin, header = histories[visit.user]
                subject = self._met(visit.user, origin, header)
                t = self._all_steps(visits, number, origin)
                asked = t[self._may_ask(subject, t)]
                self._keep_cap(self.caps.epsilon, subject, header is not None, asked, spent.epsilon)
        self.limited = self.limits(self.caps) or len(visits.users) > 0
        for number, visit in enumerate(visits):
            # Whoever names none is held to what the account has.
            stored = self.ledger.caps(visit.user) if visit.user in held else UNLIMITED
            self.limited &= self.limits(self.caps) or self.limits(stored)
            if stored == UNLIMITED == self.caps:
                continue
            origin, header = histories[visit.user]
            subject = self._met(visit.user, origin, header)
            caps = stored.joined(caps_of(self.caps, self.setting, subject.origin), quoted(visit.user))
            # A cap that is given now was looked at above.
            kept_cap = caps.epsilon if self.caps.epsilon is None else None
            if paces or (caps.promise is None and kept_cap is None):
                continue
            t = self._all_steps(visits, number, origin)
            asked = t[self._may_ask(subject, t)]
            if caps.promise is not None:
                self._keep_promise(caps.promise, visit.user, asked, _number(origin))
            if kept_cap is not None:
                spent = self.ledger.spent(visit.user)
                self._keep_cap(kept_cap, subject, header is not None, asked, spent.epsilon)

    def steps_of(self, trajectories: Trajectories | VisitTable) -> int:
        """At how many steps users have rows to answer, all users together. Raises InvalidInput as `run`."""
        return self.visits(trajectories).n_placed

    def most_asked(self, trajectories: Trajectories | VisitTable) -> list[int]:
        """The number of rows of each user that are asked at most; it is exact unless the schedule is paced.

        Earlier answers are not counted. Raises InvalidInput as `run` does.
        """
        visits, most = self.visits(trajectories), list[int]()
        for visit in visits:
            subject = SubjectState(visit.user, visits.clock or str(visit.begins))
            t = visits.steps[visit.rows] - visit.begins + 1
            t = t[visits.placed(visit.rows.start, visit.rows.stop)]
            schedule, named = schedule_of(self.setting, subject.origin), t[self._may_ask(subject, t)]
            if schedule is not None and len(named) and schedule.kind == "paced":
                promise = schedule.promise
                if promise.per is not None:
                    parts, counts = np.unique(promise.bounds(named)[0], return_counts=True)
                else:
                    parts, counts = np.unique((named - 1) // (promise.steps or promise.window or 1), return_counts=True)
                # Windows lie anywhere: as many as there are from the first step to the last hold all of them.
                parted = promise.window is None
                rooms = np.minimum(counts, schedule.releases) if parted else schedule.releases * (parts[-1] + 1)
                most.append(min(len(named), int(np.sum(rooms))))
            else:
                most.append(len(named))
        return most

    def visits(self, rows: Trajectories | VisitTable) -> VisitTable:
        """The rows to answer, of people as they are called in the ledger.

        Raises InvalidInput for a table that was made for another model or another rule, and where two users are one
        person.
        """
        setting = self.setting
        if isinstance(rows, VisitTable):
            rows.check_made_for(setting.space, setting.model.step, self.answer)
        else:
            rows = VisitTable.of(rows, setting.space, setting.model.step, self.answer)
        names = tuple(self.names_of(rows.users))
        if len(set(names)) < len(names):
            name, times = Counter(names).most_common(1)[0]
            fault = f"{times} users who are one person, {quoted(name)}"
            raise InvalidInput("users", fault, "rows numbered by person, or a ledger that compares names exactly")
        return (rows if names == rows.users else replace(rows, users=names)).showing(self._times)

    @property
    def answer(self) -> str:
        """The row that is answered if a subject has several in one step: "last" or "first"."""
        assert self.setting.answer is not None
        return self.setting.answer

    def _may_ask(self, subject: SubjectState, t: IntArray) -> BoolArray:
        """A mask (n,) of a subject's steps: True where the schedule may ask."""
        schedule = schedule_of(self.setting, subject.origin, self.ledger, subject.name)
        return np.ones(len(t), dtype=np.bool_) if schedule is None else schedule.may_ask(t)

    @property
    def _chunk(self) -> int:
        if not self.setting.needs_beliefs:
            return CHUNK
        fewer = max(1, _CHUNK_STATES // self.setting.model.n_states)
        return min(CHUNK, fewer, CHUNK if self._in_blocks else _CHUNK_STEPWISE)

    @cached_property
    def _in_blocks(self) -> bool:
        return Blocks.of(self.setting.planner) is not None

    def _engine(self, setting: Setting) -> Engine:
        if setting not in self._engines:
            if len(self._engines) == _MOST_ENGINES:
                self._engines.clear()
            self._engines[setting] = engine_of(setting, self.ledger, self.caps, self._bits)
        return self._engines[setting]

    def _parts(self, visits: VisitTable) -> Iterator[tuple[int, int]]:
        """The rows that share a transaction, first and end: a chunk at most, of subjects who begin alike."""
        alike = [visits.n_visits]
        if self.subjects.initials:
            settings = [self.subjects.of(user) for user in visits.users]
            changes = [number for number in range(1, len(visits)) if settings[number] is not settings[number - 1]]
            alike = [*visits.first[changes].tolist(), visits.n_visits]
        first = 0
        for end in alike:
            for chunk in range(first, end, self._chunk):
                yield chunk, min(chunk + self._chunk, end)
            first = end

    def _met(self, user: str, origin: str, header: SessionHeader | None) -> SubjectState:
        """A user as met for the first time, whose steps go by ``origin``. Raises as `check_header` does."""
        if header is not None:
            check_header(self.subjects.of(user).header(user, origin), header)
        return SubjectState(user, origin)

    def _published(
        self, answered: AnsweredRows, users: list[str], t: IntArray, times: IntArray | None
    ) -> Sequence[ReleasedRow]:
        report = self.report
        asked = answered.plan >= 0
        report.released += int(asked.sum())
        report.not_asked += int((~asked).sum())
        report.replayed += int((asked & ~answered.fresh).sum())
        report.skipped_steps += answered.skipped
        report.drifted += answered.drifted
        drawn = np.unique(answered.plan[answered.fresh & asked]).tolist()
        report.plans |= {answered.plans[number].hash for number in drawn}
        if not len(answered.row):
            return []
        space = self.setting.space
        return Releases(
            users=users,
            times=None if times is None else times[answered.row],
            t=t[answered.row],
            z=space.frame.to_answers(answered.z),
            z_lattice=answered.z,
            secure=answered.secure,
            terms=(*(terms_of(plan) for plan in answered.plans), NOT_ASKED),
            term=np.where(answered.plan < 0, len(answered.plans), answered.plan),
            labels=space.names if space.has_labels else None,
        )

    def _number_of(self, user: str) -> int:
        """The number that is a stored user's step 1."""
        header = self.ledger.header(user, self.setting.query)
        return 1 if header is None else _number(header.options.get("origin", "1"))

    def _keep_promise(self, promise: SequencePromise, user: str, t: IntArray, origin: int) -> None:
        """Refuse the whole table, before anything is drawn, for a user whose rows together would break the promise."""
        query, last = self.setting.query, 0
        promise = promise.beside(self.ledger.blocks(user)) if promise.local is not None else promise
        spent: list[Spending] = []
        for name, other in self.ledger.sessions_of([user]):
            entries = self.ledger.entries(name, other)
            spent += [(entry.t, entry.epsilon) for entry in entries if entry.epsilon is not None]
            last = entries[-1].through if other == query and entries else last
        asked = [(step, self.subjects.epsilon_at(step + origin - 1)) for step in t.tolist() if step > last]
        keep_promise(promise, spent, asked, user, query)

    def _keep_cap(self, cap: Fraction, subject: SubjectState, known: bool, asked: IntArray, spent: Fraction) -> None:
        """Refuse the whole batch when the epsilons of the steps ``asked`` of a subject pass its cap."""
        begins, most = _number(subject.origin), len(asked)
        epsilons = (
            [self.subjects.epsilon_at(step + begins - 1) for step in asked.tolist()]
            if self.subjects.chosen
            else [self.setting.options.epsilon * most]
        )
        needs = sum(epsilons, Fraction(0))
        if needs + spent > cap and known:
            # Rows that are stored already cost nothing: only here does it matter which they are.
            stored, steps = self.ledger.entries(subject.name, self.setting.query), set(asked.tolist())
            again = (entry.t for entry in stored if entry.kind == "release" and entry.t in steps)
            needs -= sum((self.subjects.epsilon_at(step + begins - 1) for step in again), Fraction(0))
        if needs + spent > cap:
            raise BudgetExceeded(
                f"cap_epsilon: user {subject.name!r} needs {float(needs):g} for {most} rows; spent "
                f"{float(spent):g} of {float(cap):g}, nothing was released; release fewer rows"
            )


#: What to do with users that the ledger holds: another ledger counts from nothing, and draws again.
_RESUME = (
    "resume to continue them: a new ledger would answer the same steps with new noise, which averages out, and would "
    "count none of what was spent"
)


def already_released(whose: str) -> InvalidInput:
    """The refusal of users that the ledger holds, where nobody asked to continue them."""
    return InvalidInput("ledger", f"releases of {whose}", _RESUME)


class Left(NamedTuple):
    """The epsilon that is left to a person before and after the rows of a table, and the limit of it, in words."""

    before: Fraction
    after: Fraction
    limit: str


class Stop(NamedTuple):
    """A reason why a table cannot be meant for a release: the facts of it, and the expectation."""

    came: str
    expected: str


#: Of so many rows at least one is in a state of the model, or the table cannot be meant for it.
_LEAST_IN_STATES = 20
_OFF_THE_MAP = Stop(
    "less than 5 % of its rows on the map of the model",
    "rows on it, with latitude and longitude not swapped in the table or in the box of the model",
)
_OTHER_NAMES = Stop(
    "less than 5 % of its rows in states of the model",
    "names as the model has them, to the letter and without blanks around them",
)
_OTHER_STEPS = Stop(
    "no row at a step that the schedule asks", "rows at such steps, by the zone of the data, or a plan of other steps"
)


#: What the steps of a table go by.
_CLOCKS = {None: "numbers or time bins", TIMES: "times", ORDER: "an order column", ROWS: "rows without times or order"}


def _check_clock(user: str, origin: str, clock: str | None) -> None:
    """Raises InvalidInput where a history goes by something else than a ``clock``, None for numbers."""
    if first_number(origin) is None:
        raise InvalidInput("ledger", f"a history whose step 1 is {origin!r}", "one that a batch has written")
    other = origin if "@" in origin else None
    if other != clock:
        fault = f"{_CLOCKS[clock]} of {quoted(user)}, whose history in the ledger goes by {_CLOCKS[other]}"
        raise InvalidInput("t", fault, "the column that the rows before went by")


def _number(origin: str) -> int:
    """The number that is step 1 of a history that a batch writes."""
    number = first_number(origin)
    assert number is not None
    return number


def _other_rows() -> InvalidInput:
    """One refusal for all rows without a mark that are not the ones before and more: it tells nothing of a row."""
    expected = "the rows of the run before, in their order, and later ones; or a column t of times or order of numbers"
    return InvalidInput("rows", "rows without times that do not continue those in the ledger", expected)


def release_many(
    table: Any,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact | None = None,
    *,
    resume: bool = False,
    output: PathLike | None = None,
    model_people: str | None = None,
    timezone: str | None = None,
    progress: bool | Progress = True,
    **choices: Unpack[BatchChoices],
) -> Any:
    """Release a table of trajectories: one subject per user.

    Parameters
    ----------
    table : pandas, polars or Arrow table, GeoDataFrame or `Trajectories` with ``user`` and ``lat``, ``lon`` or
        ``state``; ``t`` (timestamps with a time zone) where the model has a time step; optional ``step``. Never
        changed. Frames of scikit-mobility, trackintel and movingpandas go through `dphmm.storage.convert_frame` first.
    model, policy, space, epsilon and the other choices : as `ReleaseSession`.
    initials : {user: the publicly known beginning}, a state or N probabilities, in place of the model's
        initial distribution. Places that were taken from the table break the promise.
    step_choices : {number of a step: {"epsilon": ..., "policy": ..., "partners": ..., "protection": ...}}: the choices
        for single steps instead, as for `ReleaseSession.release`. Public: steps that were chosen by looking at
        the table break the promise. ``varies`` are the names that may come, also in later runs; by default those that
        do. ``policies`` : others that steps of stored histories had.
    answer : the row that is answered if a user has several in one time bin or step: "last" in time, or "first". The
        ledger keeps it: a history is not continued under the other rule.
    resume : continue users that the ledger already holds; their stored answers come back unchanged.
    output : a file (.parquet, .csv, .csv.gz) for the same rows, with the privacy statement beside it, as
        ``dphmm release`` writes them: `read_report`, `audit.check_release` and `read` take them. A file that exists is
        rewritten with ``resume`` alone. ``OUTPUT.owner.json``, for you alone, has the rows in no state of the model.
    model_people : for the statement, the people that the model was fitted on: "others", the "same" as released, or
        "unknown", the default. It is not needed if the model's file says it.
    check, although, min_people : a table that cannot be meant is refused, with nothing drawn or spent: with less than
        5 % of its rows in states of the model, without a row at a step of the schedule, or of fewer people than
        ``min_people``. ``although=True`` releases it, ``check=False`` does not look. `check_table` says more.
    noun : the noun for a subject of the rows, for the privacy statement and the page: vessel, case, device.
    cap_epsilon, cap_cost, promise : the limits on all answers about a user, over all queries. Without any of them
        ``dphmm release`` says what a reader finds, and asks unless ``--yes`` is given. Here the caller decides:
        `dphmm.choose.planning.without_limit` says the same.
    timezone : times without a zone are what its clocks showed: "UTC", "Europe/Berlin". Without it they are refused.
    progress : show a bar on a terminal, or call (done, total).

    Returns
    -------
    A table of the same kind: user, t, step, z_0.. (of labels z) and for maps z_lat, z_lon, then epsilon, cost, plan.
    Rows by user and step; one row per user and step. Rows that were not asked have no plan:
    ``released["user"][released["plan"].notna()].nunique()`` people have an answer. If a schedule leaves people
    without one, a UserWarning gives their number. `smooth` estimates people's states, given all their answers.

    Raises
    ------
    InvalidInput : rows that cannot be read (nothing is released), a table that cannot be meant, a ledger that holds
        these users without resume, or an output that cannot be written, or rewritten.
    BudgetExceeded, Unprotectable : as `ReleaseSession`; earlier commits stay stored. A
        promise that all rows together would break is refused before anything is drawn.

    Examples
    --------
    >>> import dphmm, pandas
    >>> space = dphmm.StateSpace.categories(["home", "work"])
    >>> model = dphmm.MarkovModel([0.5, 0.5], [[0.8, 0.2], [0.3, 0.7]], space=space)
    >>> rows = pandas.DataFrame({"user": ["ann", "ann"], "step": [1, 2], "state": ["home", "work"]})
    >>> released = dphmm.release_many(
    ...     rows, model, dphmm.policy.complete(2), space, epsilon=1, bits=dphmm.ReplayBits(1), progress=False
    ... )  # without bits the noise comes from the system, and is private
    >>> list(released.columns)
    ['user', 'step', 'z_0', 'epsilon', 'cost', 'plan']

    Source: docs/proofs/ledger.md.
    """
    from dphmm.statement.files import write_statement
    from dphmm.statement.sentences import noun_words
    from dphmm.storage.released import FileSums, released_table

    check_same_states(model, policy, space)
    table_kind(table)
    batch, published = Batch(model, policy, space, epsilon, **choices), FileSums()
    table = read_whole(table)
    loaded = load_trajectories(table, space=space, timezone=timezone, spelling=batch.ledger.spelling)
    if model.step is not None and not {"t", "step"} & set(column_list(table)):
        expected = f"a column t of times, because the model has steps of {model.step} s; or a column step"
        raise InvalidInput("t", "no times", expected)
    if len(loaded.rejected):
        fault = f"{len(loaded.rejected)} rows that cannot be read"
        raise InvalidInput("table", fault, "a user, a time and a place or state in every row")
    owners = _checked_output(batch, output, model_people, resume, loaded.trajectories)
    with shown(progress, "release") as report:
        visits = batch.visits(loaded.trajectories)
        batch.check_meant(visits)
        chunks: Iterable[Sequence[ReleasedRow]] = batch.run(visits, resume=resume, progress=report)
        if output is not None:
            chunks = batch.written(chunks, output, published)
        rows = Releases.joined(chunk for chunk in chunks if isinstance(chunk, Releases))
    if output is not None and rows is not None:
        write_statement(output, batch.statement(published, owners.people, known_by=owners.known_by))
        batch.write_owner_counts(owner_path(str(output)), visits, published, {})
    if rows is not None and (words := unanswered_words(*_people(rows), noun_words(batch.noun)["people"])) is not None:
        warnings.warn(words, UserWarning, stacklevel=2)
    released = to_kind(released_table([] if rows is None else rows, space), table)
    # Rows are in order of user and step, not of the input: its index would name other rows.
    return released.reset_index(drop=True) if hasattr(released, "reset_index") else released


def _checked_output(
    batch: Batch, output: PathLike | None, model_people: str | None, resume: bool, rows: Trajectories
) -> Whom:
    """Check that a released file can be written; return the people of the model as the statement names them.

    Raises InvalidInput, before anything is drawn.
    """
    from dphmm.statement.files import statement_path
    from dphmm.statement.origin import whom, whom_of

    if output is None:
        if model_people is not None:
            raise InvalidInput("model_people", model_people, "an output with it: it is said in the privacy statement")
        return whom(None, None)
    table_format(output, "output")
    for path in (Path(output), statement_path(output), owner_path(str(output))):
        checked_output(path)
    if Path(output).exists() and not resume:
        raise InvalidInput("output", f"{output}, which exists", "a new file, or resume=True to continue and rewrite it")
    batch.check_rewritten(output)
    batch.check_choices(set(rows.users))
    return whom_of(batch.setting.model.provenance, whom(model_people, None))


def _people(rows: Releases) -> tuple[int, int]:
    """The number of people in the rows, and the number of them without an answer."""
    people = set(rows.users)
    if rows.asked.all():
        return len(people), 0
    names = np.array(rows.users, dtype=np.object_)
    return len(people), len(people.difference(names[rows.asked].tolist()))


def unanswered_words(people: int, without: int, called: str = "people") -> str | None:
    """The message that ``without`` of so many people, named ``called``, have no answer under the schedule.

    None if all have an answer.

    >>> unanswered_words(3, 2)
    '2 of 3 people have no answer: none of their rows lies at a step that the schedule asks'
    """
    if not without:
        return None
    who = "no answer was published: no row"
    if without < people:
        who = f"{without:,} of {people:,} {called} have no answer: none of their rows"
    return f"{who} lies at a step that the schedule asks"
