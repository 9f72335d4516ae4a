"""Many requests of one query as columns, so that what they share is written and checked once.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dphmm.accounting.budget import Account, admit
from dphmm.accounting.promise import Caps, Spending
from dphmm.accounting.records import Entry, Request, SessionHeader
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Requests:
    """Row i asks for step ``t[i]`` of ``subjects[subject[i]]`` under ``terms[term[i]]``; a skip passes ``steps[i]``.

    ``terms`` are requests whose subject, t and steps stand for nothing. The rows of a subject stand together, in the
    order of ``subjects``, each beginning where the one before it ended. Raises InvalidInput where that is not so.
    """

    query: str
    subjects: Sequence[str]
    terms: Sequence[Request]
    subject: IntArray
    term: IntArray
    t: IntArray
    steps: IntArray

    def __post_init__(self) -> None:
        columns = (self.subject, self.term, self.t, self.steps)
        if any(column.dtype != np.int64 or column.shape != self.t.shape or column.ndim != 1 for column in columns):
            raise InvalidInput("requests", "columns of other types or lengths", "integers (m,) in each")
        if len(set(self.subjects)) != len(self.subjects):
            raise InvalidInput("subject", "one name twice", "each subject once")
        if not len(self.t):
            return
        for column, names in ((self.subject, self.subjects), (self.term, self.terms)):
            if column.min() < 0 or column.max() >= len(names):
                raise InvalidInput("requests", "a number of no subject or term", "numbers of those given")
        if self.t.min() < 1:
            raise InvalidInput("t", int(self.t.min()), "a step number, counted from 1")
        if self.steps.min() < 1 or np.any(self.steps[self.releases] != 1):
            raise InvalidInput("steps", "less than 1, or a release of many", "1 for a release, 1 or more for a skip")
        moves, same = np.diff(self.subject), np.diff(self.subject) == 0
        if np.any(moves < 0) or np.any((self.t[1:] != self.t[:-1] + self.steps[:-1])[same]):
            raise InvalidInput("t", "steps out of order", "each subject's steps one after another")

    def __len__(self) -> int:
        return len(self.t)

    def __getitem__(self, row: int) -> Request:
        """One row as a request of its own."""
        term, subject = self.terms[self.term[row]], self.subjects[self.subject[row]]
        place = {"subject": subject, "query": self.query, "t": int(self.t[row]), "steps": int(self.steps[row])}
        return Request(**{**vars(term), **place})

    @property
    def releases(self) -> BoolArray:
        """Which rows (m,) are releases."""
        kinds = np.array([term.kind == "release" for term in self.terms], dtype=np.bool_)
        return kinds[self.term] if len(kinds) else np.zeros(0, dtype=np.bool_)

    def epsilons(self, first: int, end: int) -> Iterator[Spending]:
        """(step, epsilon) of the releases among the rows first..end."""
        for number, t in zip(self.term[first:end].tolist(), self.t[first:end].tolist(), strict=True):
            epsilon = self.terms[number].epsilon
            if epsilon is not None:
                yield t, epsilon

    def parts(self) -> list[tuple[str, int, int]]:
        """(subject, first row, end row) of every subject that has rows."""
        starts = np.flatnonzero(np.diff(self.subject, prepend=-1)).tolist()
        ends = [*starts[1:], len(self)][: len(starts)]
        return [(self.subjects[self.subject[a]], a, b) for a, b in zip(starts, ends, strict=True)]


class Looked(NamedTuple):
    """What is stored about one subject, for one query: its session, the last step, and what the other queries share.

    ``header`` is None and ``last`` 0 where the query has no session; ``others`` are the subject's other sessions, by
    name of the query; ``account`` is that of all queries. ``version`` counts what was stored about the subject: every
    session, release, skip and promise raises it by 1.
    """

    header: SessionHeader | None
    last: int
    others: tuple[SessionHeader, ...]
    account: Account
    version: int


class Admitted(NamedTuple):
    """A request that nothing refuses: the entry of its step where that is ``stored``, else the account after it."""

    request: Request
    stored: Entry | None
    account: Account | None


@dataclass(frozen=True, eq=False)
class AdmittedMany:
    """Requests that nothing refuses: which are not stored yet (m,), which rows of those need an answer (k,).

    ``stored`` are the entries of all others, ``accounts`` those of the subjects after it.
    """

    requests: Requests
    fresh: BoolArray
    wanted: IntArray
    stored: dict[int, Entry]
    accounts: dict[str, Account]


class StoredMany(NamedTuple):
    """``z`` (m, d) as the ledger holds them, zeros for skips; ``fresh`` and ``secure`` (m,): drawn now, and how."""

    z: IntArray
    fresh: BoolArray
    secure: BoolArray


def admit_many(account: Account, requests: Requests, first: int, end: int, caps: Caps) -> Account:
    """The account after the rows first..end of one subject, or what `admit` says of the first that passes a cap.

    Totals only grow, so where all of them together fit, each does.
    """
    counts = Counter(requests.term[first:end].tolist())
    after = account
    for number, count in counts.items():
        after = after.plus_times(requests.terms[number].epsilon, requests.terms[number].cost, count)
    if after.within(caps):
        return after
    for row in range(first, end):
        if requests.terms[requests.term[row]].kind == "release":
            account = admit(account, requests[row], caps)
    return account


def checked_answers(drawn: IntArray | None, rows: int) -> IntArray:
    """What a draw of many returned; a message about it never contains it."""
    answers = np.asarray(drawn)
    if answers.dtype != np.int64 or answers.ndim != 2 or len(answers) != rows or not answers.shape[1]:
        raise InvalidInput("draw", "something else", f"64-bit integers ({rows}, d)")
    return answers


def stored_many(
    requests: Requests, fresh: BoolArray, wanted: IntArray, drawn: IntArray | None, stored: dict[int, Entry]
) -> StoredMany:
    """What was drawn for the rows ``wanted``, beside what had been ``stored`` before."""
    known = {row: entry.z for row, entry in stored.items() if entry.z is not None}
    dimension = drawn.shape[1] if drawn is not None else len(next(iter(known.values()), (0,)))
    z = np.zeros((len(requests), dimension), dtype=np.int64)
    secure = np.array([term.secure for term in requests.terms], dtype=np.bool_)[requests.term]
    if drawn is not None:
        z[wanted] = drawn
    for row, answer in known.items():
        if len(answer) != dimension or max(map(abs, answer)).bit_length() > 63:
            raise InvalidInput("ledger", "an answer of another space", f"{dimension} coordinates of 64 bits")
        z[row], secure[row] = answer, stored[row].secure
    return StoredMany(z, fresh, secure)
