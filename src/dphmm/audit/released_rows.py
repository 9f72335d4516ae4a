"""The rows of a released file, user by user: each against the ledger, its plan, and what public data make of it.

Proof: docs/proofs/ledger.md, docs/proofs/promise.md.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from dphmm.accounting.ledger import Entry, Ledger, SequencePromise, SessionHeader
from dphmm.accounting.records import Spending
from dphmm.audit.findings import Findings
from dphmm.audit.released_file import ReleasedFile
from dphmm.audit.replay import Answer, Replay, Replayed, number_of
from dphmm.errors import InvalidInput
from dphmm.session.releases import Earlier
from dphmm.session.rounds import schedule_of
from dphmm.session.setting import Setting, Subjects, as_kept, option_words

_NANO = 10**9
_MICROS = 1_000_000
_WHOLE = re.compile("-?[0-9]{1,18}")
_OFF_SCHEDULE = "a step that is asked, or not asked, other than the schedule says"
_NO_ESTIMATE = "an estimate that does not follow from the answers"
_NO_STATE = "a likeliest state that does not follow from the answers"
#: A release goes on from what its ledger holds, and so do its estimates: the statement says so.
_OTHER_FILES = " of this file, and the statement has no published.earlier_answers"
#: Characters of a ledger's text in a finding.
_LONGEST = 80


def rows_held(ledger: Ledger, query: str, file: ReleasedFile) -> int:
    """How many rows of a file a ledger holds with the same answer and plan."""
    held = 0
    for user, rows in file.by_user().items():
        stored = {entry.through: (entry.z, entry.plan_hash) for entry in ledger.entries(user, query)}
        for row in rows:
            answer = (tuple(file.lattice[row].tolist()), file.plans[row]) if file.plans[row] else (None, None)
            held += stored.get(int(file.step[row])) == answer
    return held


def stored_answers(ledger: Ledger | None, query: str, file: ReleasedFile) -> set[str]:
    """Which of several rows in one step was answered, as a ledger says of the users of a file."""
    return {header.options["answer"] for header in _headers(ledger, query, file) if "answer" in header.options}


def stored_promises(ledger: Ledger | None, query: str, file: ReleasedFile) -> list[tuple[str, SequencePromise | None]]:
    """The origin of the steps of each user of a file, and the promise over paths that a ledger keeps them to."""
    found = _headers(ledger, query, file)
    return [(h.options.get("origin", ""), ledger.caps(h.subject).promise) for h in found] if ledger is not None else []


def _headers(ledger: Ledger | None, query: str, file: ReleasedFile) -> list[SessionHeader]:
    """The sessions of the users of a file."""
    if ledger is None:
        return []
    headers = (ledger.header(user, query) for user in dict.fromkeys(file.users))
    return [header for header in headers if header is not None]


class Counted:
    """What the rows add up to, subject by subject: an exact sum of epsilons, and of costs in 1e-9, each rounded up."""

    def __init__(self) -> None:
        self.rows = self.replayed = self.not_asked = self.constants = self.replayable = 0
        self.plans: set[str] = set()
        self.mechanisms: Counter[str] = Counter()
        self.accounts: dict[str, tuple[Fraction, Fraction]] = {}
        #: What each user's rows spent at which steps, and what step 1 of a user stands for.
        self.spent: dict[str, list[Spending]] = {}
        self.origins: dict[str, str] = {}
        #: Answers of other files that estimates follow from, as a ledger has them; None where none was given.
        self.earlier: Earlier | None = None
        #: How many of these the statement tells of, where no ledger does.
        self.untold = 0

    def add(self, user: str, t: int, replayed: Replayed) -> None:
        """One more row."""
        epsilon, cost = self.accounts.get(user, (Fraction(0), Fraction(0)))
        self.replayed += 1
        plan = replayed.plan
        if plan is None:
            self.not_asked += 1
            return
        self.accounts[user] = (epsilon + plan.promised, cost + rounded_up(plan.cost))
        self.spent.setdefault(user, []).append((t, plan.promised))
        self.constants += plan.constant
        self.mechanisms[plan.mechanism_name] += 1

    @property
    def complete(self) -> bool:
        """Whether the plan of every row is known, so that sums are those of the file."""
        return self.replayed == self.rows

    @property
    def summed(self) -> bool:
        """Whether totals are known, too: those count the answers of other files that estimates follow from."""
        return self.complete and not self.untold

    @property
    def largest(self) -> tuple[Fraction, Fraction]:
        """The largest sum of epsilons, and of costs, of any one subject."""
        sums = list(self.accounts.values())
        for user, account in (self.earlier.accounts if self.earlier is not None else {}).items():
            epsilon, cost = self.accounts[user]
            spent = account.spent
            sums.append((epsilon + spent.epsilon, cost + spent.cost))
        return max((total for total, _ in sums), default=Fraction(0)), max((c for _, c in sums), default=Fraction(0))


def rounded_up(cost: Fraction) -> Fraction:
    """A cost as a ledger adds it up: in 1e-9, never less than it is."""
    return Fraction(math.ceil(cost * _NANO), _NANO)


@dataclass(eq=False)
class RowsAudit:
    """Looks at one user after another; ``counted`` is what their rows add up to.

    ``earlier``: from how many answers of other files the statement says that estimates follow, too.
    """

    file: ReleasedFile
    subjects: Subjects
    ledger: Ledger | None
    replay: Replay
    findings: Findings
    earlier: int = 0

    def __post_init__(self) -> None:
        self.setting: Setting = self.subjects.setting
        self.counted = Counted()
        self.counted.earlier = None if self.ledger is None else Earlier()
        self.counted.untold = self.earlier if self.ledger is None else 0
        self._not_followed = 0
        self._elsewhere = self._unscheduled = self._beside = self._unnumbered = 0
        self._queries: dict[str, list[str]] = {}
        for subject, query in [] if self.ledger is None else self.ledger.sessions():
            self._queries.setdefault(subject, []).append(query)

    def user(self, user: str, rows: list[int]) -> None:
        """One user's rows, by step."""
        self.counted.accounts.setdefault(user, (Fraction(0), Fraction(0)))
        self.counted.rows += len(rows)
        self.counted.plans |= {self.file.plans[row] for row in rows} - {""}
        stored = self._stored(user, rows)
        self._times(user, rows)
        # Without a ledger nobody has the answers of other files, which beliefs follow from.
        followed = self.ledger is not None or not self.earlier or not self.file.left_out[user]
        self._not_followed += not followed
        history = self._history(user, rows, stored)
        if history is None or not (followed or self.setting.has_public_plans):
            return
        self.counted.origins[user] = self._origin(user, rows)
        self._unnumbered += bool(self.subjects.chosen) and number_of(self.counted.origins[user], 1) is None
        replayed = self.replay.follow(user, history, self.counted.origins[user])
        if replayed is None:
            return
        self._entries(user, stored, replayed)
        if followed or not self.setting.paces:
            self._schedule(user, rows, list(zip(history, replayed, strict=True)))
        by_step = {answer.t: found for answer, found in zip(history, replayed, strict=True)}
        for row in rows:
            found = by_step.get(int(self.file.step[row]))
            if found is not None:
                self.counted.add(user, int(self.file.step[row]), found)
                self._row(row, found, followed)

    def notes(self) -> list[str]:
        """What there was no way to look at."""
        notes = []
        if self._not_followed:
            what = "estimates" if self.setting.has_public_plans else "plans and estimates"
            what = what if not self.setting.paces else f"{what}, and the steps that were asked,"
            why = f"they follow from {self.earlier:,} answers of other files, too, as the statement says: give --ledger"
            notes.append(f"the {what} of {self._not_followed} users: {why}")
        if self._unscheduled:
            notes.append(f"the steps that were asked, of {self._unscheduled} users: nothing says when their steps were")
        if self._unnumbered:
            told = (
                f"which steps have choices of their own, of {self._unnumbered} users: nothing says which step is theirs"
            )
            notes.append(f"{told} in the table, so a row may have what any step has")
        if self._beside:
            notes.append(f"the steps that were asked, of {self._beside} users with other queries on the same account")
        if self.ledger is None:
            return [*notes, "the ledger: rows may be there that were never stored or paid for, or missing"]
        if self._elsewhere:
            notes.append(f"{self._elsewhere} releases of these users that the ledger holds and this file does not show")
        return notes

    def _history(self, user: str, rows: list[int], stored: list[Entry]) -> list[Answer] | None:
        """What was published about a user: the ledger's releases, or without one the rows."""
        if self.ledger is None:
            return self.file.answers(rows)
        try:
            return [Answer.of(entry, self.setting.space.dimension) for entry in stored]
        except InvalidInput:
            self.findings.add("a release in the ledger whose answer this space does not have", f"user {user!r}")
            return None

    def _stored(self, user: str, rows: list[int]) -> list[Entry]:
        """The ledger's releases of a user, each row compared with its own."""
        if self.ledger is None:
            return []
        header = self.ledger.header(user, self.setting.query)
        if not self.findings.require(header is not None, "a user whom the ledger does not know", f"user {user!r}"):
            return []
        assert header is not None
        own = as_kept(self.subjects.of(user).header(user, header.options.get("origin", "")), header.options)
        for name in sorted({*own.options, *set(header.options) & {"initial", "schedule", "varies"}}):
            value, kept = own.options.get(name), header.options.get(name)
            told = option_words(name, kept)[:_LONGEST]
            shown = f"the {name} of the ledger is {told}, not {option_words(name, value)}: the audit must be given the "
            shown += f"{name} that was released with"
            self.findings.require(kept == value, shown, f"user {user!r}")
        known = self.ledger.entries(user, self.setting.query)
        entries = {entry.t: entry for entry in known if entry.kind == "release"}
        skips = {entry.through: entry for entry in known if entry.kind == "skip"}
        unasked = {}
        for row in rows:
            t, where = int(self.file.step[row]), self.file.where(row)
            if not self.file.plans[row]:
                if self.findings.require(t in skips, "a row without an answer that the ledger does not hold so", where):
                    unasked[t] = skips[t]
                continue
            entry = entries.get(t)
            if self.findings.require(entry is not None, "a row that the ledger does not hold", where):
                assert entry is not None and entry.z is not None
                same = entry.z == tuple(self.file.lattice[row].tolist())
                self.findings.require(same, "an answer that is not the one in the ledger", where)
                same = str(entry.plan_hash) == self.file.plans[row]
                self.findings.require(same, "a plan that is not the one in the ledger", where)
                self.counted.replayable += not entry.secure
                self.findings.require(entry.secure, "rows from replayable bits, which promise nothing", where)
        if self.counted.earlier is not None and self.file.estimate is not None:
            self.counted.earlier.add(user, entries.values(), set(self.file.step[rows].tolist()))
        self._elsewhere += len(entries) - len({int(self.file.step[row]) for row in rows} & set(entries))
        self._account(user)
        both = entries | unasked
        return [both[t] for t in sorted(both)]

    def _account(self, user: str) -> None:
        """The subject's account against its entries, over all queries."""
        assert self.ledger is not None
        epsilon, cost = Fraction(0), Fraction(0)
        total: Fraction | float = cost
        for query in self._queries.get(user, []):
            for entry in self.ledger.entries(user, query):
                if entry.kind == "release" and entry.epsilon is not None and entry.cost is not None:
                    epsilon, total = epsilon + entry.epsilon, total + rounded_up(entry.cost)
        spent = self.ledger.spent(user)
        right = (spent.epsilon, spent.cost) == (epsilon, total)
        self.findings.require(right, "an account that is not that of its releases", f"user {user!r}")

    def _entries(self, user: str, stored: list[Entry], replayed: list[Replayed]) -> None:
        """What the ledger charged, against the plan."""
        for entry, found in zip(stored, replayed, strict=False):
            plan, where = found.plan, f"user {user!r}, step {entry.t}"
            if plan is None:
                continue
            paid = (entry.epsilon, entry.cost, entry.constant)
            due = (plan.promised, plan.cost, plan.constant)
            self.findings.require(paid == due, "a release that the ledger charged otherwise than its plan", where)

    def _row(self, row: int, found: Replayed, followed: bool) -> None:
        """Every number of a row but z follows from public data; estimates where all answers before it are known."""
        file, plan, where = self.file, found.plan, self.file.where(row)
        told = (float(file.epsilon[row]), float(file.cost[row]))
        if plan is not None:
            cost = float(plan.cost)
            cost = cost if Fraction(cost) >= plan.cost else math.nextafter(cost, math.inf)
            self.findings.require(told == (float(plan.promised), cost), "epsilon or cost other than the plan's", where)
        if not followed:
            return
        guess, states = np.array(found.guess.answer)[None], np.array([found.guess.state])
        away, other = file.other_estimates([row], guess, states, self.setting.space)
        alone = _OTHER_FILES * (self.ledger is None)
        self.findings.require(not away[0], _NO_ESTIMATE + alone, where)
        self.findings.require(not other[0], _NO_STATE + alone, where)

    def _schedule(self, user: str, rows: list[int], replayed: list[tuple[Answer, Replayed]]) -> None:
        """Whether exactly the steps were asked that the schedule says."""
        asked_in_file = [bool(self.file.plans[row]) for row in rows]
        schedule = self.setting.schedule
        if schedule is None:
            kind = "a row without an answer, and no schedule that leaves rows out"
            self.findings.require(all(asked_in_file), kind, f"user {user!r}")
            return
        try:
            due = schedule_of(self.setting, self._origin(user, rows))
        except InvalidInput:
            self._unscheduled += 1
            return
        assert due is not None
        promise, spent = due.promise, list[Spending]()
        others = [query for query in self._queries.get(user, []) if query != self.setting.query]
        named = due.may_ask(np.array([answer.t for answer, _ in replayed], dtype=np.int64)).tolist()
        for (answer, found), may_ask in zip(replayed, named, strict=True):
            where, asked = f"user {user!r}, step {answer.t}", found.plan is not None
            if schedule.kind == "planned":
                right = asked == may_ask
                self.findings.require(right, _OFF_SCHEDULE, where)
            elif not others:
                # Other queries of a subject draw on the same account: then a step may be left out for them.
                room = promise.room(spent, answer.t)
                self.findings.require(asked in due.may_choose(answer.t, found.spread, room), _OFF_SCHEDULE, where)
            if asked:
                spent.append((answer.t, due.exact))
        self._beside += bool(others) and schedule.kind == "paced"

    def _origin(self, user: str, rows: list[int]) -> str:
        """What step 1 of a user stands for: as the ledger says, else by the time of a row."""
        header = None if self.ledger is None else self.ledger.header(user, self.setting.query)
        if header is not None:
            return header.options.get("origin", "")
        return self.file.origin(rows[0], self.setting.model.step)

    def _times(self, user: str, rows: list[int]) -> None:
        """Where the model has a time step, a row's time is that of its step and of nothing else."""
        step, times = self.setting.model.step, self.file.times
        if step is None:
            return
        partly = self.file.timed and times is None
        self.findings.require(not partly, "rows without a time, of a model that has a time step")
        if times is None:
            return
        begins = times[rows] - (self.file.step[rows] - 1) * step * _MICROS
        header = None if self.ledger is None else self.ledger.header(user, self.setting.query)
        origin = "" if header is None else header.options.get("origin", "")
        first = int(origin) * step * _MICROS if _WHOLE.fullmatch(origin) else int(begins[0])
        right = bool((begins == first).all())
        self.findings.require(right, "times that are not those of the steps", f"user {user!r}")
