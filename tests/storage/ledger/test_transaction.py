"""Both ledgers against a reference in plain Python, over random histories of refusals and rollbacks."""

from __future__ import annotations

import contextlib
import math
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from dphmm.accounting import Caps, Entry, Ledger, MemoryLedger, PlanRecord, Request, Requests, SessionHeader
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.storage.ledger import SqliteLedger, open_ledger
from dphmm.types import IntArray
from storing import store, store_many

SUBJECTS, QUERIES = ("ann", "bob"), ("state", "work")
PLANS = [PlanRecord(f"p{k}", bytes([k << 4]), 5, f"[{k}]") for k in range(3)]
COSTS = [Fraction(1, 3), Fraction(2), Fraction(0), Fraction(1, 10**12), Fraction(10**9, 7)]

subjects, queries = st.sampled_from(SUBJECTS), st.sampled_from(QUERIES)
epsilons = st.sampled_from([Fraction(1, 10), Fraction(1, 3), Fraction(2)])
caps = st.builds(
    Caps,
    epsilon=st.sampled_from([None, None, Fraction(1, 2), Fraction(4)]),
    cost=st.sampled_from([None, None, Fraction(1), Fraction(20, 3)]),
)
asks = st.tuples(
    subjects,
    queries,
    st.integers(-2, 1),
    st.booleans(),
    epsilons,
    st.sampled_from(COSTS),
    st.sampled_from(PLANS),
    st.integers(1, 3),
)


class Reference:
    """The rules of a ledger, written as plainly as they can be: every total is summed anew."""

    def __init__(self) -> None:
        self.options: dict[tuple[str, str], dict[str, str]] = {}
        self.entries: dict[tuple[str, str], list[Entry]] = {}

    def copy(self) -> Reference:
        other = Reference()
        other.options = dict(self.options)
        other.entries = {key: list(entries) for key, entries in self.entries.items()}
        return other

    def spent(self, subject: str) -> tuple[Fraction, Fraction]:
        mine = [e for (s, _), entries in self.entries.items() if s == subject for e in entries]
        epsilon = sum((e.epsilon for e in mine if e.epsilon is not None), Fraction(0))
        costs = [e.cost for e in mine if e.cost is not None]
        return epsilon, sum((Fraction(math.ceil(c * 10**9), 10**9) for c in costs), Fraction(0))

    def store(self, request: Request, z: tuple[int, ...], limits: Caps) -> Entry | str:
        key = (request.subject, request.query)
        if key not in self.options:
            return "query"
        entries = self.entries.setdefault(key, [])
        plan_hash = request.plan.hash if request.plan else None
        last = entries[-1].through if entries else 0
        if request.t <= last:
            old = next(entry for entry in entries if entry.t <= request.t <= entry.through)
            for field in ("kind", "epsilon"):
                if getattr(old, field) != getattr(request, field):
                    return field
            if (old.t, old.steps) != (request.t, request.steps):
                return "steps"
            return old if old.plan_hash == plan_hash else "plan"
        if request.t != last + 1:
            return "t"
        epsilon, cost = self.spent(request.subject)
        if request.epsilon is not None and request.cost is not None:
            if limits.epsilon is not None and epsilon + request.epsilon > limits.epsilon:
                return "BudgetExceeded"
            rounded = math.ceil(request.cost * 10**9)
            if limits.cost is not None and cost * 10**9 + rounded > math.floor(limits.cost * 10**9):
                return "BudgetExceeded"
        entry = Entry(
            *(*key, request.t, request.kind, z if request.kind == "release" else None),
            *(request.epsilon, request.cost, plan_hash, request.secure, request.constant, request.steps),
        )
        entries.append(entry)
        return entry


class LedgerMachine(RuleBasedStateMachine):
    """Rules act on the ledger and on the reference; invariants compare all that can be read."""

    def __init__(self) -> None:
        super().__init__()
        self.reference = Reference()
        self.ledger: Ledger = self.make()
        self.draws = 0

    def make(self) -> Ledger:
        return MemoryLedger()

    @rule(subject=subjects, query=queries, epsilon=st.sampled_from(["1", "1", "2"]))
    def open(self, subject: str, query: str, epsilon: str) -> None:
        header = SessionHeader(subject, query, {"epsilon": epsilon})
        known = self.reference.options.setdefault((subject, query), dict(header.options))
        try:
            with self.ledger.transaction() as transaction:
                transaction.open_session(header)
        except InvalidInput as refusal:
            assert refusal.field == "epsilon"
            assert known != header.options
        else:
            assert known == header.options

    @rule(work=st.lists(st.tuples(asks, caps), min_size=1, max_size=6), abort=st.booleans())
    def store(self, work: list[tuple[tuple[object, ...], Caps]], abort: bool) -> None:
        before = self.reference.copy()
        try:
            with self.ledger.transaction() as transaction:
                for ask, limits in work:
                    self.store_one(transaction, ask, limits)  # type: ignore[arg-type]
                if abort:
                    raise ZeroDivisionError
        except ZeroDivisionError:
            self.reference = before

    def store_one(self, transaction: object, ask: tuple[object, ...], limits: Caps) -> None:
        subject, query, ahead, is_release, epsilon, cost, plan, steps = ask
        entries = self.reference.entries.get((subject, query), [])  # type: ignore[arg-type]
        t = max(1, (entries[-1].through if entries else 0) + 1 + ahead)  # type: ignore[operator]
        paid = (epsilon, cost, plan) if is_release else (None, None, None)
        kind = "release" if is_release else "skip"
        passed = 1 if is_release else steps
        request = Request(subject, query, t, kind, *paid, True, False, passed)  # type: ignore[arg-type]
        self.draws += 1
        z = (self.draws, -(2**65))
        expected = self.reference.store(request, z, limits)
        got: Entry | str
        try:
            got = store(transaction, request, lambda: z, limits)  # type: ignore[attr-defined]
        except InvalidInput as refusal:
            got = refusal.field
        except BudgetExceeded:
            got = "BudgetExceeded"
        assert got == expected

    @rule(
        many=st.lists(
            st.tuples(
                subjects,
                st.integers(-1, 0),
                st.lists(st.tuples(epsilons, st.sampled_from(PLANS)), min_size=1, max_size=4),
            ),
            max_size=2,
            unique_by=lambda one: one[0],
        ),
        limits=caps,
        abort=st.booleans(),
    )
    def store_many(
        self, many: list[tuple[str, int, list[tuple[Fraction, PlanRecord]]]], limits: Caps, abort: bool
    ) -> None:
        """All at once is one by one, or nothing where one of them is refused."""
        before, terms, rows, single = self.reference.copy(), [], [], []
        for number, (subject, ahead, asked) in enumerate(many):
            entries = before.entries.get((subject, "state"), [])
            t = max(1, (entries[-1].through if entries else 0) + 1 + ahead)
            for epsilon, plan in asked:
                terms.append(Request("", "", 1, "release", epsilon, Fraction(1, 3), plan, True, False))
                rows.append((number, len(terms) - 1, t, 1))
                single.append(replace(terms[-1], subject=subject, query="state", t=t))
                t += 1
        self.draws += 1
        expected = [self.reference.store(request, (self.draws, row), limits) for row, request in enumerate(single)]
        refused = [entry for entry in expected if isinstance(entry, str)]
        # Answers of single stores are beyond the 64 bits that columns have.
        refused += ["ledger" for entry in expected if isinstance(entry, Entry) and entry.z and entry.z[1] < -(2**62)]
        if refused or abort:
            self.reference = before
        columns = np.array(rows, dtype=np.int64).reshape(-1, 4).T
        requests = Requests("state", [subject for subject, _, _ in many], terms, *columns)
        with contextlib.suppress(ZeroDivisionError), self.ledger.transaction() as transaction:
            try:
                stored = store_many(transaction, requests, self.answers, limits)
                assert [tuple(z) for z in stored.z.tolist()] == [e.z for e in expected if isinstance(e, Entry)]
            except (InvalidInput, BudgetExceeded) as refusal:
                assert getattr(refusal, "field", "BudgetExceeded") in refused
            else:
                assert not refused
            if abort:
                raise ZeroDivisionError

    def answers(self, wanted: IntArray) -> IntArray:
        return np.stack([np.full(len(wanted), self.draws), wanted], axis=1)

    @invariant()
    def equal(self) -> None:
        assert self.ledger.sessions() == sorted(self.reference.options)
        for key, options in self.reference.options.items():
            header = self.ledger.header(*key)
            assert header is not None and header.options == options
            assert self.ledger.entries(*key) == self.reference.entries.get(key, [])
        for subject in SUBJECTS:
            spent = self.ledger.spent(subject)
            assert (spent.epsilon, spent.cost) == self.reference.spent(subject)

    def teardown(self) -> None:
        self.ledger.close()


class FileMachine(LedgerMachine):
    """The same over a file that is sometimes closed and opened again."""

    def make(self) -> Ledger:
        self.folder = tempfile.TemporaryDirectory()
        return open_ledger(Path(self.folder.name) / "ledger.db")

    @rule()
    def reopen(self) -> None:
        assert isinstance(self.ledger, SqliteLedger)
        self.ledger.check()
        self.ledger.close()
        self.ledger = open_ledger(self.ledger.path)

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestMemoryLedger = LedgerMachine.TestCase
TestMemoryLedger.settings = settings(max_examples=40, stateful_step_count=15, deadline=None)
TestSqliteLedger = pytest.mark.slow(FileMachine.TestCase)
TestSqliteLedger.settings = settings(max_examples=30, stateful_step_count=12, deadline=None)
