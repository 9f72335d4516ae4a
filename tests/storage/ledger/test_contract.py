"""What every ledger promises, over the ledger in memory and the ledger file alike."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dphmm.accounting import Caps, Ledger, Looked, MemoryLedger, PlanRecord, Request, Requests, SessionHeader, Spent
from dphmm.accounting.budget import EMPTY, Account
from dphmm.accounting.promise import SequencePromise
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.storage.ledger import SqliteLedger
from dphmm.types import IntArray
from storing import FREE, OPTIONS, PLAN, never, open_all, release, store, store_many
from zone_tables import town_with_the_clocks_of

#: Epsilon and cost of one such release.
SPENT_ONCE = (Fraction(1, 2), Fraction(4, 3))


def skip(t: int) -> Request:
    return Request("ann", "state", t, "skip", None, None, None, True, False)


def test_a_stored_step_is_returned_whatever_would_be_drawn(ledger: Ledger) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        first = store(transaction, release(1), lambda: (3, -4), FREE)
    assert first.z == (3, -4)
    for _ in range(2):
        with ledger.transaction() as transaction:
            assert store(transaction, release(1), never, Caps(epsilon=Fraction(0))) == first
            assert store(transaction, release(1), never, FREE) == first
    assert ledger.entries("ann", "state") == [first]
    assert ledger.spent("ann") == Spent(Fraction(1, 2), Fraction(1_333_333_334, 10**9))


def test_what_is_stored_comes_back_equal(ledger: Ledger) -> None:
    open_all(ledger)
    odd = replace(release(3), cost=Fraction(10**9, 7), secure=False)
    constant = replace(release(4), cost=Fraction(0), constant=True)
    huge = (2**80, -(10**300), 0)
    with ledger.transaction() as transaction:
        stored = [
            store(transaction, release(1), lambda: huge, FREE),
            store(transaction, skip(2), never, FREE),
            store(transaction, odd, lambda: (7,), FREE),
            store(transaction, constant, lambda: (7,), FREE),
        ]
        assert [transaction.entry("ann", "state", t) for t in (1, 2, 3, 4)] == stored
        assert transaction.last_step("ann", "state") == 4
    assert ledger.entries("ann", "state") == stored
    assert stored[0].z == huge
    assert (stored[1].kind, stored[1].z, stored[1].plan_hash) == ("skip", None, None)
    assert (stored[2].cost, stored[2].secure, stored[2].plan_hash) == (Fraction(10**9, 7), False, "p1")
    assert (stored[3].constant, stored[3].cost) == (True, 0)
    assert ledger.plan("p1") == PLAN
    assert ledger.spent("ann") == Spent(Fraction(3, 2), Fraction(1_333_333_334 + 142_857_142_857_142_858, 10**9))


def test_bits_cost_and_constancy_are_not_compared(ledger: Ledger) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        first = store(transaction, release(1), lambda: (1,), FREE)
        again = replace(release(1), secure=False, cost=Fraction(5), constant=True)
        assert store(transaction, again, never, FREE) == first


@pytest.mark.parametrize("t", [2, 5, 2**70])
def test_steps_come_in_order(ledger: Ledger, t: int) -> None:
    open_all(ledger)
    with (
        pytest.raises(InvalidInput, match=r"^t: got .* expected 1, the next step"),
        ledger.transaction() as tx,
    ):
        store(tx, release(t), never, FREE)


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("epsilon", {"epsilon": "1", "start": "before"}),
        ("start", {"epsilon": "1/2", "start": "before"}),
        ("start", {"epsilon": "1/2"}),
        ("mechanism", OPTIONS | {"mechanism": "auto"}),
    ],
)
def test_a_session_keeps_its_options(ledger: Ledger, field: str, options: dict[str, str]) -> None:
    open_all(ledger)
    open_all(ledger)
    with pytest.raises(InvalidInput) as caught, ledger.transaction() as transaction:
        transaction.open_session(SessionHeader("ann", "state", options))
    assert caught.value.field == field
    for value in (OPTIONS.get(field, "nothing"), options.get(field, "nothing")):
        assert value in str(caught.value)
    assert ledger.header("ann", "state") == SessionHeader("ann", "state", OPTIONS)


@pytest.mark.parametrize("other", ["Ann", " ann ", "\uff41nn", "a\u200bnn"])
def test_a_person_has_one_account(ledger: Ledger, other: str) -> None:
    """Another spelling opens nothing, and `names_of` says what somebody is called here."""
    open_all(ledger)
    with ledger.transaction() as transaction:
        store(transaction, release(1), lambda: (1,), FREE)
    assert ledger.names_of([other, "bob", "ann"]) == ["ann", "bob", "ann"]
    for query in ("state", "work"):
        header = SessionHeader(other, query, OPTIONS)
        with (
            pytest.raises(InvalidInput, match=r"expected \"ann\", as this") as caught,
            ledger.transaction() as transaction,
        ):
            transaction.open_session(header)
        assert caught.value.field == "subject"
    assert ledger.sessions() == [("ann", "state")]


def test_two_spellings_in_one_transaction_are_one_person(ledger: Ledger) -> None:
    with ledger.transaction() as transaction:
        transaction.open_session(SessionHeader("Ann", "state", OPTIONS))
        with pytest.raises(InvalidInput, match=r"^subject: got \"ann\"; expected \"Ann\""):
            transaction.open_session(SessionHeader("ann", "state", OPTIONS))
    assert ledger.sessions() == [("Ann", "state")]
    assert ledger.names_of(["ann"]) == ["Ann"]


def test_a_name_without_a_key_has_no_account(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match="user"), ledger.transaction() as transaction:
        transaction.open_session(SessionHeader("a\u0378", "state", OPTIONS))
    assert ledger.sessions() == []


def test_caps_hold_over_all_queries_of_a_subject(ledger: Ledger) -> None:
    open_all(ledger, ("ann", "state"), ("ann", "work"), ("bob", "state"))
    caps = Caps(epsilon=Fraction(1))
    with ledger.transaction() as transaction:
        store(transaction, release(1), lambda: (1,), caps)
        store(transaction, release(1, query="work"), lambda: (2,), caps)
        store(transaction, release(1, subject="bob"), lambda: (3,), caps)
        with pytest.raises(BudgetExceeded, match=r"requested 0\.5; spent 1, remaining 0, cap 1"):
            store(transaction, release(2), never, caps)
        # A refusal leaves the transaction and its other stores whole; a skip is always free.
        store(transaction, skip(2), never, caps)
    assert ledger.spent("ann").epsilon == 1
    assert ledger.spent("bob").epsilon == Fraction(1, 2)
    assert [e.kind for e in ledger.entries("ann", "state")] == ["release", "skip"]


def test_an_exception_undoes_the_whole_transaction(ledger: Ledger) -> None:
    with pytest.raises(KeyboardInterrupt), ledger.transaction() as transaction:
        transaction.open_session(SessionHeader("ann", "state", OPTIONS))
        store(transaction, release(1), lambda: (1,), FREE)
        raise KeyboardInterrupt
    assert ledger.sessions() == []
    assert ledger.entries("ann", "state") == []
    assert ledger.spent("ann") == Spent(Fraction(0), Fraction(0))
    with pytest.raises(InvalidInput, match="plan"):
        ledger.plan("p1")
    open_all(ledger)
    with ledger.transaction() as transaction:
        assert store(transaction, release(1), lambda: (2,), FREE).z == (2,)


def test_a_draw_that_fails_leaves_nothing(ledger: Ledger) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        for wrong in ((), (1.5,)):
            with pytest.raises(InvalidInput, match="draw"):
                store(transaction, release(1), lambda wrong=wrong: wrong, FREE)  # type: ignore[misc]
        assert transaction.last_step("ann", "state") == 0
        assert transaction.spent("ann").epsilon == 0
        store(transaction, release(1), lambda: (1,), FREE)
    assert ledger.spent("ann").epsilon == Fraction(1, 2)


def test_a_draw_that_stores_its_own_step_is_not_recorded(ledger: Ledger) -> None:
    """The step would have two answers, or the second one would be stored as another step."""
    open_all(ledger)

    def draw_again() -> tuple[int, ...]:
        entry = store(transaction, release(1), lambda: (9,), FREE)
        assert entry.z is not None
        return entry.z

    with pytest.raises(InvalidInput, match="admitted"), ledger.transaction() as transaction:
        store(transaction, release(1), draw_again, FREE)
    assert ledger.entries("ann", "state") == []


def test_an_admission_is_recorded_once_and_only_where_it_was_admitted(ledger: Ledger) -> None:
    """It would fail for an answer stored twice, or one stored on totals that have moved since it was admitted."""
    open_all(ledger, ("ann", "state"), ("bob", "state"))
    with ledger.transaction() as transaction:
        first = transaction.admit(release(1), FREE)
        entry = transaction.add(first, (3, 4))
        late = transaction.admit(release(2), FREE)
        many = transaction.admit_many(columns([(1, 0, 1, 1)]), FREE)
        for used_up in (first, late, transaction.admit(release(1), FREE)):
            with pytest.raises(InvalidInput, match=r"^admitted: .*each admission recorded once"):
                transaction.add(used_up, (5, 6))
        transaction.add_many(many, np.array([[7, 8]]))
        with pytest.raises(InvalidInput, match=r"^admitted"):
            transaction.add_many(many, np.array([[7, 8]]))
        kept = transaction.admit(release(2), FREE)
    with ledger.transaction() as transaction:
        transaction.admit(release(2), FREE)
        with pytest.raises(InvalidInput, match=r"^admitted"):
            transaction.add(kept, (5, 6))
    assert ledger.entries("ann", "state") == [entry] and entry.z == (3, 4)
    assert [one.z for one in ledger.entries("bob", "state")] == [(7, 8)]
    assert ledger.spent("ann").epsilon == Fraction(1, 2)


def test_an_admission_without_an_answer_stores_nothing(ledger: Ledger) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        assert transaction.admit(release(1), FREE).stored is None
        assert transaction.admit_many(columns([(0, 0, 1, 1)], ("ann",)), FREE).wanted.tolist() == [0]
    assert ledger.entries("ann", "state") == [] and ledger.spent("ann").epsilon == 0
    for wrong in ((), (0.5,), None):
        with pytest.raises(InvalidInput, match=r"^draw"), ledger.transaction() as transaction:
            transaction.add(transaction.admit(release(1), FREE), wrong)  # type: ignore[arg-type]


def test_reads_show_only_what_has_committed(ledger: Ledger) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        store(transaction, release(1), lambda: (1,), FREE)
        assert ledger.entries("ann", "state") == []
        assert ledger.spent("ann").epsilon == 0
        assert transaction.spent("ann").epsilon == Fraction(1, 2)
    assert len(ledger.entries("ann", "state")) == 1


def test_transactions_do_not_nest_and_end(ledger: Ledger) -> None:
    with ledger.transaction() as transaction:
        with pytest.raises(InvalidInput, match="one inside another"), ledger.transaction():
            raise AssertionError
        transaction.open_session(SessionHeader("ann", "state", OPTIONS))
    uses: list[Callable[[], object]] = [
        lambda: store(transaction, release(1), never, FREE),
        lambda: store_many(transaction, columns([(0, 0, 1, 1)]), never, FREE),
        lambda: transaction.admit(release(1), FREE),
        lambda: transaction.admit_many(columns([(0, 0, 1, 1)]), FREE),
        lambda: transaction.open_session(SessionHeader("bob", "state", OPTIONS)),
        lambda: transaction.look(["ann"], "state"),
        lambda: transaction.entry("ann", "state", 1),
        lambda: transaction.spent("ann"),
        lambda: transaction.last_step("ann", "state"),
        lambda: transaction.plans_at("ann", 1, "work"),
    ]
    for use in uses:
        with pytest.raises(InvalidInput, match="ended"):
            use()
    assert ledger.sessions() == [("ann", "state")]


def test_one_hash_is_one_plan(ledger: Ledger) -> None:
    open_all(ledger)
    first = replace(PLAN, plan_states=b"\x0f")
    with ledger.transaction() as transaction:
        store(transaction, release(1, plan=first), lambda: (1, 1), FREE)
        store(transaction, release(2, plan=replace(first)), lambda: (1, 1), FREE)
    for _ in range(2):
        with pytest.raises(InvalidInput, match=r"^plan: .*another"), ledger.transaction() as transaction:
            store(transaction, release(3), lambda: (1, 1), FREE)
    with pytest.raises(InvalidInput, match=r"^plan: .*another"), ledger.transaction() as transaction:
        store_many(transaction, columns([(0, 0, 3, 1)]), numbered, FREE)
    assert ledger.plan("p1") == first and len(ledger.entries("ann", "state")) == 2


def test_many_plans_in_one_transaction(ledger: Ledger) -> None:
    open_all(ledger)
    plans = [PlanRecord(f"h{k}", k.to_bytes(2), 16, f"[{k}]") for k in range(1, 301)]
    with ledger.transaction() as transaction:
        for t, plan in enumerate(plans + plans, start=1):
            store(transaction, release(t, plan=plan), lambda: (1,), FREE)
    assert [ledger.plan(plan.hash) for plan in plans] == plans
    assert [e.plan_hash for e in ledger.entries("ann", "state")] == [plan.hash for plan in plans + plans]


def test_the_plans_of_the_other_queries_of_a_step(ledger: Ledger) -> None:
    work, home = replace(PLAN, hash="w"), replace(PLAN, hash="h")
    open_all(ledger, ("ann", "state"), ("ann", "work"), ("ann", "home"), ("bob", "work"))
    with ledger.transaction() as transaction:
        store(transaction, release(1, query="work", plan=work), lambda: (1,), FREE)
        store(transaction, release(1, query="home", plan=home), lambda: (1,), FREE)
        store(transaction, release(1, subject="bob", query="work"), lambda: (1,), FREE)
        assert transaction.plans_at("ann", 1, "state") == [home, work]
        assert transaction.plans_at("ann", 1, "work") == [home]
        assert ledger.plans_at("ann", 1, "state") == []  # not committed yet
    with ledger.transaction() as transaction:
        store(transaction, skip(1), never, FREE)
        assert transaction.plans_at("ann", 1, "work") == [home]  # a skip has no plan
        assert transaction.plans_at("ann", 2, "state") == []
    assert ledger.plans_at("ann", 1, "state") == [home, work]
    assert ledger.plans_at("bob", 1, "work") == ledger.plans_at("eve", 1, "work") == []


def test_names_of_any_kind(ledger: Ledger) -> None:
    names = ["", "a\nb", "nul\0byte", "=cmd", "é", "e", "🛰", "x" * 10_000, "a'; DROP TABLE release;--"]
    open_all(ledger, *[(name, "state") for name in names])
    with ledger.transaction() as transaction:
        for k, name in enumerate(names):
            store(transaction, release(1, subject=name), lambda k=k: (k,), FREE)  # type: ignore[misc]
    assert ledger.sessions() == sorted((name, "state") for name in names)
    assert [ledger.entries(name, "state")[0].z for name in names] == [(k,) for k in range(len(names))]
    with pytest.raises(BudgetExceeded) as caught, ledger.transaction() as transaction:
        store(transaction, release(2, subject="a\nb"), never, Caps(epsilon=Fraction(0)))
    assert "\n" not in str(caught.value)


def test_what_is_unknown(ledger: Ledger) -> None:
    assert ledger.header("ann", "state") is None
    assert ledger.entries("ann", "state") == []
    with ledger.transaction() as transaction:
        assert transaction.entry("ann", "state", 1) is None
        assert transaction.last_step("ann", "state") == 0
        nothing = store_many(transaction, columns([]), never, FREE)
        assert len(nothing.z) == len(nothing.fresh) == 0
        transaction.open_session(SessionHeader("ann", "state", OPTIONS))
        assert [transaction.entry("ann", "state", t) for t in (-1, 0, 1)] == [None] * 3


def test_a_closed_ledger_refuses_use(ledger: Ledger) -> None:
    ledger.close()
    for use in (ledger.sessions, lambda: ledger.spent("ann"), lambda: ledger.transaction().__enter__()):
        with pytest.raises(InvalidInput, match="closed"):
            use()


def test_threads_get_one_answer(ledger: Ledger) -> None:
    open_all(ledger)
    drawn, got = [], []

    def ask(k: int) -> None:
        with ledger.transaction() as transaction:
            entry = store(transaction, release(1), lambda: drawn.append(k) or (k,), FREE)  # type: ignore[func-returns-value]
        got.append(entry.z)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 1
    assert got == [(drawn[0],)] * 8
    assert ledger.spent("ann").epsilon == Fraction(1, 2)


def test_another_thread_waits_for_its_turn(ledger: Ledger) -> None:
    open_all(ledger)
    got: list[tuple[int, ...] | None] = []

    def ask() -> None:
        with ledger.transaction() as transaction:
            got.append(store(transaction, release(1), never, FREE).z)

    with ledger.transaction() as transaction:
        other = threading.Thread(target=ask)
        other.start()
        other.join(0.1)
        assert other.is_alive()
        store(transaction, release(1), lambda: (4,), FREE)
    other.join()
    assert got == [(4,)]


def test_the_parameters_of_all_queries_of_a_subject(ledger: Ledger) -> None:
    """What a new query is compared with: all that were stored before and all of this transaction, and nobody else's."""
    open_all(ledger, ("ann", "work"), ("bob", "state"))
    work, state = (SessionHeader("ann", query, OPTIONS) for query in ("work", "state"))
    with ledger.transaction() as transaction:
        assert transaction.headers("ann") == [work]
        transaction.open_session(state)
        assert transaction.headers("ann") == [state, work]
        assert transaction.headers("eve") == []
    with pytest.raises(InvalidInput, match="ended"):
        transaction.headers("ann")


def test_a_look_finds_all_that_is_stored_about_each_subject(ledger: Ledger) -> None:
    """Before and in this transaction, in the order asked; nothing of anybody else."""
    open_all(ledger, ("ann", "home"), ("ann", "state"), ("ann", "work"), ("bob", "work"), ("cid", "state"))
    with ledger.transaction() as transaction:
        store(transaction, release(1), lambda: (1,), FREE)
        store(transaction, replace(skip(2), steps=7), never, FREE)
        store(transaction, replace(release(1, query="work"), cost=Fraction(5)), lambda: (1,), FREE)
        store(transaction, release(1, subject="bob", query="work"), lambda: (1,), FREE)

    def header(subject: str, query: str) -> SessionHeader:
        return SessionHeader(subject, query, OPTIONS)

    half = Account(Fraction(1, 2), 1_333_333_334)
    both = half.plus(Fraction(1, 2), Fraction(5))
    ann = Looked(header("ann", "state"), 8, (header("ann", "home"), header("ann", "work")), both, 3 + 3)
    bob = Looked(None, 0, (header("bob", "work"),), half, 1 + 1)
    cid, eve = Looked(header("cid", "state"), 0, (), EMPTY, 1), Looked(None, 0, (), EMPTY, 0)
    with ledger.transaction() as transaction:
        assert transaction.look(["eve", "bob", "ann", "cid"], "state") == [eve, bob, ann, cid]
        assert transaction.look(["ann", "ann"], "home")[1] == ann._replace(
            header=header("ann", "home"), last=0, others=(header("ann", "state"), header("ann", "work"))
        )
        transaction.open_session(header("bob", "state"))
        store(transaction, release(1, subject="bob"), lambda: (2,), FREE)
        store(transaction, skip(9), never, FREE)
        seen = transaction.look(["ann", "bob"], "state")
        twice = Looked(header("bob", "state"), 1, bob.others, half.plus(*SPENT_ONCE), 2 + 2)
        assert seen == [ann._replace(last=9, version=7), twice]
        assert transaction.look([], "state") == []
        # What the look keeps in mind serves what follows it.
        store(transaction, release(10), lambda: (3,), FREE)
        assert transaction.look(["ann"], "state")[0].last == transaction.last_step("ann", "state") == 10
    with pytest.raises(InvalidInput, match="ended"):
        transaction.look(["ann"], "state")
    assert ledger.spent("ann") == both.plus(*SPENT_ONCE).spent


def test_every_stored_fact_raises_the_version_of_its_subject_by_one(ledger: Ledger) -> None:
    """What was planned on an older version must be seen to be old; nothing else may make it so."""

    def version(subject: str) -> int:
        with ledger.transaction() as transaction:
            return transaction.look([subject], "state")[0].version

    assert version("ann") == 0
    open_all(ledger, ("ann", "state"), ("bob", "state"))
    open_all(ledger)
    assert version("ann") == version("bob") == 1
    with ledger.transaction() as transaction:
        store(transaction, release(1), lambda: (1, 1), FREE)
        store(transaction, replace(skip(2), steps=50), never, FREE)
        store(transaction, release(1), never, FREE)
        transaction.put_snapshot("ann", "state", 1, b"belief")
        with pytest.raises(BudgetExceeded):
            store(transaction, release(52), never, Caps(epsilon=Fraction(1, 2)))
    assert (version("ann"), version("bob")) == (3, 1)
    with pytest.raises(ZeroDivisionError), ledger.transaction() as transaction:
        store(transaction, release(52), lambda: (1, 1), FREE)
        raise ZeroDivisionError
    assert version("ann") == 3
    with ledger.transaction() as transaction:
        store_many(transaction, columns([(0, 0, 52, 1), (0, 2, 53, 9), (1, 0, 1, 1)]), numbered, FREE)
        assert [one.version for one in transaction.look(["ann", "bob"], "state")] == [5, 2]
    assert (version("ann"), version("bob")) == (5, 2)


class SlowLedger(Ledger):
    """A ledger that knows no better than one subject at a time; the rest is another's."""

    def __init__(self, other: Ledger) -> None:
        self.sessions, self.header, self.spent = other.sessions, other.header, other.spent  # type: ignore[method-assign]
        self.entries = other.entries  # type: ignore[method-assign]


@pytest.mark.parametrize("kind", ["its own", "one at a time"])
def test_reads_of_many_subjects(ledger: Ledger, kind: str) -> None:
    names = [f"user {k}" for k in range(1203)]
    open_all(ledger, *[(name, "state") for name in names], ("user 2", "work"), ("user 10", "home"))
    with ledger.transaction() as transaction:
        store(transaction, release(1, subject="user 2"), lambda: (1,), FREE)
        store(transaction, release(1, subject="user 2", query="work"), lambda: (1,), FREE)
    read = ledger if kind == "its own" else SlowLedger(ledger)
    asked = ["user 2", "nobody", "user 10", "user 2"]
    keys = [("user 10", "home"), ("user 10", "state"), ("user 2", "state"), ("user 2", "work")]
    assert read.sessions_of(asked) == keys
    assert read.headers_of(asked) == [SessionHeader(*key, OPTIONS) for key in keys]
    nothing = Spent(Fraction(0), Fraction(0))
    twice = Spent(Fraction(1), Fraction(2 * 1_333_333_334, 10**9))
    assert read.spent_of(asked) == [twice, nothing, nothing, twice]
    assert read.sessions_of(names[3:]) == [key for key in ledger.sessions() if key[0] in names[3:]]
    assert read.spent_of(names) == [ledger.spent(name) for name in names]
    first = ledger.entries("user 2", "state") + ledger.entries("user 2", "work")
    assert read.entries_of(asked) == read.entries_of(names) == first and len(first) == 2
    assert read.sessions_of([]) == read.headers_of([]) == read.spent_of([]) == read.entries_of([]) == []


def test_the_last_snapshot_of_a_session_is_kept(ledger: Ledger) -> None:
    open_all(ledger, ("ann", "state"), ("ann", "work"))
    with ledger.transaction() as transaction:
        store(transaction, release(1), lambda: (1,), FREE)
        store(transaction, replace(skip(2), steps=8), never, FREE)
        for t, belief in ((0, b""), (7, b"\0belief"), (9, bytes(range(256)))):
            transaction.put_snapshot("ann", "state", t, belief)
        assert ledger.snapshot("ann", "state") is None  # not committed yet
    assert ledger.snapshot("ann", "state") == (9, bytes(range(256)))
    assert ledger.snapshot("ann", "work") is None and ledger.snapshot("eve", "state") is None
    with ledger.transaction() as transaction:
        transaction.put_snapshot("ann", "state", 3, b"older")
        for query, t, belief, field in (
            ("state", 10, b"", "t"),
            ("state", -1, b"", "t"),
            ("state", True, b"", "t"),
            ("state", 1, "text", "belief"),
            ("home", 0, b"", "query"),
        ):
            with pytest.raises(InvalidInput) as caught:
                transaction.put_snapshot("ann", query, t, belief)  # type: ignore[arg-type]
            assert caught.value.field == field
    assert ledger.snapshot("ann", "state") == (3, b"older")
    with pytest.raises(ZeroDivisionError), ledger.transaction() as transaction:
        transaction.put_snapshot("ann", "state", 4, b"undone")
        raise ZeroDivisionError
    assert ledger.snapshot("ann", "state") == (3, b"older")
    with pytest.raises(InvalidInput, match="ended"):
        transaction.put_snapshot("ann", "state", 4, b"late")


def test_a_look_at_very_many_subjects(ledger: Ledger) -> None:
    """More than one statement asks for."""
    names = [f"user {k}" for k in range(1203)]
    open_all(ledger, *[(name, "state") for name in names[::2]])
    with ledger.transaction() as transaction:
        store(transaction, release(1, subject="user 1202"), lambda: (1,), FREE)
        looked = transaction.look(names, "state")
    assert [one.header is not None for one in looked] == [k % 2 == 0 for k in range(1203)]
    assert [one.header.subject for one in looked if one.header] == names[::2]
    assert [one.last for one in looked] == [0] * 1202 + [1]
    assert [one.account.epsilon for one in looked] == [0] * 1202 + [Fraction(1, 2)]


def test_one_skip_may_pass_over_many_steps(ledger: Ledger) -> None:
    open_all(ledger)
    gap = replace(skip(2), steps=1000)
    with ledger.transaction() as transaction:
        store(transaction, release(1), lambda: (0,), FREE)
        stored = store(transaction, gap, never, FREE)
        assert transaction.last_step("ann", "state") == 1001
        after = store(transaction, release(1002), lambda: (5,), FREE)
    assert (stored.t, stored.through) == (2, 1001)
    with ledger.transaction() as transaction:
        assert transaction.entry("ann", "state", 700) == stored
        assert store(transaction, gap, never, FREE) == stored
        for inside in (release(700), replace(skip(2), steps=9), skip(3)):
            with pytest.raises(InvalidInput):
                store(transaction, inside, never, FREE)
    assert [entry.t for entry in ledger.entries("ann", "state")] == [1, 2, 1002]
    assert ledger.entries("ann", "state")[-1] == after


@pytest.mark.parametrize("steps", [0, -1, True, 1.0])
def test_a_skip_is_of_one_step_or_more(steps: int) -> None:
    with pytest.raises(InvalidInput, match="steps"):
        replace(skip(2), steps=steps)
    with pytest.raises(InvalidInput, match="steps"):
        replace(release(2), steps=2)


# --- blocks of local days


def answered(ledger: Ledger, t: int, query: str = "state") -> bool:
    """Whether a step is stored, under whatever the account was promised."""
    try:
        with ledger.transaction(["ann"]) as transaction:
            last = transaction.last_step("ann", query)
            if t > last + 1:
                store(transaction, replace(skip(last + 1), query=query, steps=t - last - 1), never, FREE)
            store(transaction, release(t, query=query), lambda: (t,), FREE)
        return True
    except BudgetExceeded:
        return False


def test_no_newer_zone_table_moves_a_stored_step_into_another_block(ledger: Ledger, tmp_path: Path) -> None:
    """Hours of May 6th, 2024, from 0:00 UTC, under 1 a day, by the clocks of Berlin first, and then of Lisbon."""
    begins = 1_714_953_600 // 3600
    keys = [("ann", query) for query in ("state", "work", "late")]
    open_all(ledger, *keys)
    with town_with_the_clocks_of(tmp_path, "Europe/Berlin") as town:
        promise = SequencePromise(1, per="1d", zone=town).in_steps(3600, begins)
        with ledger.transaction(["ann"]) as transaction:
            transaction.bind("ann", Caps(promise=promise))
            assert transaction.blocks("ann") == []
        # Midnight is at 22:00 UTC: step 23 is the first of the next day.
        assert [answered(ledger, t) for t in (21, 22)] == [True, True]
        first = [(begins - 2, begins + 22)]
        assert ledger.blocks("ann") == first
        assert not answered(ledger, 20, "work")
    with town_with_the_clocks_of(tmp_path, "Europe/Lisbon"):
        # By the newer table the day ends an hour later. Step 22 was the last of its day, and stays it.
        assert not answered(ledger, 22, "work")
        assert answered(ledger, 23, "work") and answered(ledger, 23)
        assert ledger.blocks("ann") == [*first, (begins + 22, begins + 23)]
        assert not answered(ledger, 23, "late")
        assert answered(ledger, 24, "late") and answered(ledger, 24)
        assert ledger.blocks("ann")[2:] == [(begins + 23, begins + 47)]
        with ledger.transaction(["ann"]) as transaction:
            assert transaction.room("ann", 24) == 0 and transaction.room("ann", 48) == 1
            assert transaction.blocks("ann") == ledger.blocks("ann")
        if isinstance(ledger, SqliteLedger):
            ledger.check()


def test_blocks_are_stored_with_the_answers_and_not_without_them(ledger: Ledger) -> None:
    """Of many at once, of those before a promise was given, and of nothing that was rolled back."""
    open_all(ledger, ("ann", "state"), ("bob", "state"))
    promise = SequencePromise(9, per="1d", zone="Europe/Berlin").in_steps(7200, 0)
    caps = Caps(promise=promise)
    with ledger.transaction(["ann", "bob"]) as transaction:
        store_many(transaction, columns(MANY), numbered, FREE)
        assert transaction.blocks("ann") == []
        transaction.bind("ann", caps)
        transaction.bind("bob", caps)
        assert transaction.blocks("ann") == transaction.blocks("bob") == [(0, 12)]
    with pytest.raises(KeyboardInterrupt), ledger.transaction(["ann"]) as transaction:
        store(transaction, replace(skip(7), steps=20), never, FREE)
        store(transaction, release(27), lambda: (1,), FREE)
        assert len(transaction.blocks("ann")) == 2
        raise KeyboardInterrupt
    assert ledger.blocks("ann") == [(0, 12)] and ledger.blocks("zoe") == []
    with ledger.transaction(["ann", "bob"]) as transaction:
        rows = [(0, 2, 7, 20), (0, 0, 27, 1), (0, 1, 28, 1), (1, 2, 3, 50), (1, 0, 53, 1)]
        store_many(transaction, columns(rows), numbered, FREE)
    # Berlin was an hour ahead: days begin in the bin from 0:00 UTC on, the first at or after 23:00.
    assert ledger.blocks("ann") == [(0, 12), (24, 36)] and ledger.blocks("bob") == [(0, 12), (48, 60)]


def test_blocks_of_another_ledger_are_taken_as_they_are(ledger: Ledger) -> None:
    open_all(ledger, ("ann", "state"), ("bob", "state"))
    promise = SequencePromise(1, per="1d", zone="Europe/Berlin").in_steps(3600, 0)
    with ledger.transaction(["ann", "bob"]) as transaction:
        transaction.bind("ann", Caps(promise=promise), [(5, 9)])
        assert transaction.blocks("ann") == [(5, 9)]
        for wrong in ([(5, 9), (8, 10)], [(5, 5)]):
            with pytest.raises(InvalidInput, match="blocks of local days that do not overlap"):
                transaction.bind("bob", Caps(promise=promise), wrong)
        with pytest.raises(InvalidInput, match="blocks of local days"):
            transaction.bind("bob", Caps(promise=SequencePromise(1, per=4)), [(5, 9)])
    assert ledger.blocks("ann") == [(5, 9)]


# --- many at once


def columns(rows: list[tuple[int, int, int, int]], subjects: tuple[str, ...] = ("ann", "bob")) -> Requests:
    """Requests of (subject, term, t, steps): terms are a release under PLAN, one under another plan, a skip."""
    terms = [release(1), replace(release(1), epsilon=Fraction(1, 3), plan=replace(PLAN, hash="p2")), skip(1)]
    subject, term, t, steps = np.array(rows, dtype=np.int64).reshape(-1, 4).T
    return Requests("state", subjects, terms, subject, term, t, steps)


def numbered(wanted: IntArray) -> IntArray:
    return np.stack([wanted, -wanted], axis=1)


MANY = [(0, 0, 1, 1), (0, 2, 2, 4), (0, 1, 6, 1), (1, 1, 1, 1), (1, 0, 2, 1)]


def test_many_are_stored_as_one_by_one(ledger: Ledger) -> None:
    single = MemoryLedger()
    for each in (ledger, single):
        open_all(each, ("ann", "state"), ("bob", "state"))
    many = columns(MANY)
    with ledger.transaction() as transaction:
        stored = store_many(transaction, many, numbered, FREE)
        assert transaction.last_step("ann", "state") == 6
        assert transaction.spent("bob").epsilon == Fraction(5, 6)
        assert ledger.sessions() and not ledger.entries("ann", "state")  # not committed yet
    with single.transaction() as transaction:
        for row in range(len(many)):
            store(transaction, many[row], lambda row=row: (row, -row), FREE)  # type: ignore[misc]
    for subject in ("ann", "bob"):
        assert ledger.entries(subject, "state") == single.entries(subject, "state")
        assert ledger.spent(subject) == single.spent(subject)
    assert stored.z.tolist() == [[0, 0], [0, 0], [2, -2], [3, -3], [4, -4]]
    assert stored.fresh.all()
    assert ledger.plan("p2").hash == "p2"


def test_many_draw_once_and_only_for_what_is_new(ledger: Ledger) -> None:
    open_all(ledger, ("ann", "state"), ("bob", "state"))
    asked: list[list[int]] = []

    def draw(wanted: IntArray) -> IntArray:
        asked.append(wanted.tolist())
        return numbered(wanted) + 100

    with ledger.transaction() as transaction:
        store_many(transaction, columns(MANY[:2]), numbered, FREE)
    with ledger.transaction() as transaction:
        stored = store_many(transaction, columns(MANY), draw, FREE)
        again = store_many(transaction, columns(MANY), never, Caps(epsilon=Fraction(0)))
    assert asked == [[2, 3, 4]]
    assert stored.fresh.tolist() == [False, False, True, True, True]
    assert not again.fresh.any()
    assert stored.z.tolist() == again.z.tolist() == [[0, 0], [0, 0], [102, 98], [103, 97], [104, 96]]


@pytest.mark.parametrize("rows", [[(0, 0, 2, 1)], [(0, 0, 1, 1), (1, 0, 2, 1)]])
def test_what_refuses_one_of_many_refuses_all(ledger: Ledger, rows: list[tuple[int, int, int, int]]) -> None:
    open_all(ledger, ("ann", "state"), ("bob", "state"))
    with ledger.transaction() as transaction:
        with pytest.raises(InvalidInput, match=r"^t: got 2; expected 1, the next step"):
            store_many(transaction, columns(rows), never, FREE)
        with pytest.raises(InvalidInput, match="opened"):
            store_many(transaction, columns([(0, 0, 1, 1)], ("eve",)), never, FREE)
        store(transaction, release(1), lambda: (3,), FREE)
    assert [entry.z for entry in ledger.entries("ann", "state")] == [(3,)]
    assert ledger.entries("bob", "state") == []


@pytest.mark.parametrize(("field", "term"), [("epsilon", 1), ("kind", 2)])
def test_many_compare_public_parameters_of_stored_steps(ledger: Ledger, field: str, term: int) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        store(transaction, release(1), lambda: (12345, 1), FREE)
    with pytest.raises(InvalidInput, match="as step 1 was stored") as caught, ledger.transaction() as transaction:
        store_many(transaction, columns([(0, term, 1, 1), (0, 0, 2, 1)]), never, FREE)
    assert caught.value.field == field
    assert "12345" not in str(caught.value)


def test_caps_of_many_hold_for_each_subject_and_all_before_the_draw(ledger: Ledger) -> None:
    open_all(ledger, ("ann", "state"), ("bob", "state"), ("bob", "work"))
    caps = Caps(epsilon=Fraction(1))
    with ledger.transaction() as transaction:
        store(transaction, release(1, subject="bob", query="work"), lambda: (1,), caps)
    rows = [(0, 0, 1, 1), (0, 0, 2, 1), (1, 0, 1, 1), (1, 0, 2, 1), (1, 0, 3, 1)]
    one_by_one = r'step 2 of query "state" for subject "bob" requested 0\.5; spent 1, remaining 0, cap 1'
    with ledger.transaction() as transaction:
        with pytest.raises(BudgetExceeded, match=one_by_one):
            store_many(transaction, columns(rows), never, caps)
        assert transaction.spent("ann").epsilon == 0
        store_many(transaction, columns(rows[:3]), numbered, caps)
    assert ledger.spent("ann").epsilon == ledger.spent("bob").epsilon == 1


@pytest.mark.parametrize(
    "wrong", [np.zeros((1, 2)), np.zeros((2, 2), np.int64), np.zeros((1, 0), np.int64), np.zeros(1, np.int64)]
)
def test_a_draw_of_many_that_fails_leaves_nothing(ledger: Ledger, wrong: IntArray) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        with pytest.raises(InvalidInput, match="draw"):
            store_many(transaction, columns([(0, 0, 1, 1)]), lambda _: wrong, FREE)
        with pytest.raises(InvalidInput, match="draw"):
            store_many(transaction, columns([(0, 0, 1, 1)]), lambda _: transaction.spent("ann"), FREE)  # type: ignore[arg-type, return-value]
        assert transaction.last_step("ann", "state") == 0
    assert ledger.entries("ann", "state") == []
    assert ledger.spent("ann").epsilon == 0


@pytest.mark.parametrize("kept", [(2**63, 1), (1, 2, 3)])
def test_a_stored_answer_that_columns_cannot_hold_refuses_all(ledger: Ledger, kept: tuple[int, ...]) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        store(transaction, release(1), lambda: kept, FREE)
    with ledger.transaction() as transaction:
        with pytest.raises(InvalidInput, match=r"^ledger: .*2 coordinates of 64 bits"):
            store_many(transaction, columns([(0, 0, 1, 1), (0, 0, 2, 1)]), numbered, FREE)
        assert transaction.last_step("ann", "state") == 1
    assert ledger.spent("ann").epsilon == Fraction(1, 2)


@pytest.mark.parametrize(
    ("rows", "field"),
    [
        ([(0, 0, 0, 1)], "t"),
        ([(0, 0, 1, 2)], "steps"),
        ([(0, 2, 1, 0)], "steps"),
        ([(0, 0, 1, 1), (0, 0, 3, 1)], "t"),
        ([(1, 0, 1, 1), (0, 0, 1, 1)], "t"),
        ([(2, 0, 1, 1)], "requests"),
        ([(0, 3, 1, 1)], "requests"),
    ],
)
def test_columns_that_cannot_be_meant(rows: list[tuple[int, int, int, int]], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        columns(rows)
    assert caught.value.field == field
    with pytest.raises(InvalidInput, match="subject"):
        columns([], ("ann", "ann"))
