"""What every ledger promises, over the ledger in memory and the ledger file alike."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from dphmm.accounting import Caps, Ledger, MemoryLedger, PlanRecord, Request, SessionHeader, Spent
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.storage.ledger import open_ledger

FREE = Caps()
PLAN = PlanRecord("p1", b"\xf0", 5, '{"epsilon":"1/2"}')
OPTIONS = {"epsilon": "1/2", "scope": "global"}


def release(t: int, *, subject: str = "ann", query: str = "state", plan: PlanRecord = PLAN) -> Request:
    return Request(subject, query, t, "release", Fraction(1, 2), Fraction(4, 3), plan, True, False)


def skip(t: int) -> Request:
    return Request("ann", "state", t, "skip", None, None, None, True, False)


def never() -> tuple[int, ...]:
    raise AssertionError("drew although it must not")


def open_all(ledger: Ledger, *keys: tuple[str, str]) -> None:
    with ledger.transaction() as transaction:
        for subject, query in keys or [("ann", "state")]:
            transaction.open_session(SessionHeader(subject, query, OPTIONS))


@pytest.fixture(params=["memory", "file"])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    made: Ledger = MemoryLedger() if request.param == "memory" else open_ledger(tmp_path / "ledger.db", timeout=5)
    yield made
    made.close()


def test_a_stored_step_is_returned_whatever_would_be_drawn(ledger: Ledger) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        first = transaction.store(release(1), lambda: (3, -4), FREE)
    assert first.z == (3, -4)
    for _ in range(2):
        with ledger.transaction() as transaction:
            assert transaction.store(release(1), never, Caps(epsilon=Fraction(0))) == first
            assert transaction.store(release(1), never, FREE) == first
    assert ledger.entries("ann", "state") == [first]
    assert ledger.spent("ann") == Spent(Fraction(1, 2), Fraction(1_333_333_334, 10**9))


def test_what_is_stored_comes_back_equal(ledger: Ledger) -> None:
    open_all(ledger)
    odd = replace(release(3), cost=math.inf, secure=False)
    constant = replace(release(4), cost=Fraction(0), constant=True)
    huge = (2**80, -(10**300), 0)
    with ledger.transaction() as transaction:
        stored = [
            transaction.store(release(1), lambda: huge, FREE),
            transaction.store(skip(2), never, FREE),
            transaction.store(odd, lambda: (7,), FREE),
            transaction.store(constant, lambda: (7,), FREE),
        ]
        assert [transaction.entry("ann", "state", t) for t in (1, 2, 3, 4)] == stored
        assert transaction.last_step("ann", "state") == 4
    assert ledger.entries("ann", "state") == stored
    assert stored[0].z == huge
    assert (stored[1].kind, stored[1].z, stored[1].plan_hash) == ("skip", None, None)
    assert (stored[2].cost, stored[2].secure, stored[2].plan_hash) == (math.inf, False, "p1")
    assert (stored[3].constant, stored[3].cost) == (True, 0)
    assert ledger.plan("p1") == PLAN
    assert ledger.spent("ann") == Spent(Fraction(3, 2), math.inf)


@pytest.mark.parametrize(
    ("field", "other"),
    [
        ("kind", skip(1)),
        ("epsilon", replace(release(1), epsilon=Fraction(1))),
        ("plan", release(1, plan=replace(PLAN, hash="p2"))),
    ],
)
def test_a_stored_step_asked_with_other_public_parameters_is_refused(
    ledger: Ledger, field: str, other: Request
) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        transaction.store(release(1), lambda: (12345,), FREE)
    with (
        pytest.raises(InvalidInput, match="as step 1 was stored") as caught,
        ledger.transaction() as transaction,
    ):
        transaction.store(other, never, FREE)
    assert caught.value.field == field
    assert "12345" not in str(caught.value)


def test_bits_cost_and_constancy_are_not_compared(ledger: Ledger) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        first = transaction.store(release(1), lambda: (1,), FREE)
        again = replace(release(1), secure=False, cost=math.inf, constant=True)
        assert transaction.store(again, never, FREE) == first


@pytest.mark.parametrize("t", [2, 5, 2**70])
def test_steps_come_in_order(ledger: Ledger, t: int) -> None:
    open_all(ledger)
    with (
        pytest.raises(InvalidInput, match=r"^t: got .* expected 1, the next step"),
        ledger.transaction() as tx,
    ):
        tx.store(release(t), never, FREE)


def test_a_release_needs_its_session(ledger: Ledger) -> None:
    with pytest.raises(InvalidInput, match=r"^query: .*opened"), ledger.transaction() as transaction:
        transaction.store(release(1), never, FREE)


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("epsilon", {"epsilon": "1", "scope": "component"}),
        ("scope", {"epsilon": "1/2", "scope": "component"}),
        ("scope", {"epsilon": "1/2"}),
        ("flat", OPTIONS | {"flat": "allow"}),
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


def test_caps_hold_over_all_queries_of_a_subject(ledger: Ledger) -> None:
    open_all(ledger, ("ann", "state"), ("ann", "work"), ("bob", "state"))
    caps = Caps(epsilon=Fraction(1))
    with ledger.transaction() as transaction:
        transaction.store(release(1), lambda: (1,), caps)
        transaction.store(release(1, query="work"), lambda: (2,), caps)
        transaction.store(release(1, subject="bob"), lambda: (3,), caps)
        with pytest.raises(BudgetExceeded, match=r"requested 0\.5; spent 1, remaining 0, cap 1"):
            transaction.store(release(2), never, caps)
        # A refusal leaves the transaction and its other stores whole; a skip is always free.
        transaction.store(skip(2), never, caps)
    assert ledger.spent("ann").epsilon == 1
    assert ledger.spent("bob").epsilon == Fraction(1, 2)
    assert [e.kind for e in ledger.entries("ann", "state")] == ["release", "skip"]


def test_caps_are_exact(ledger: Ledger) -> None:
    open_all(ledger)
    tenth = replace(release(1), epsilon=Fraction(1, 10), cost=Fraction(1, 10))
    caps = Caps(epsilon=Fraction(3, 10), cost=Fraction(3, 10))
    for t in (1, 2, 3):
        with ledger.transaction() as transaction:
            transaction.store(replace(tenth, t=t), lambda: (1,), caps)
    with pytest.raises(BudgetExceeded), ledger.transaction() as transaction:
        transaction.store(replace(tenth, t=4), never, caps)
    assert ledger.spent("ann") == Spent(Fraction(3, 10), Fraction(3, 10))


def test_an_exception_undoes_the_whole_transaction(ledger: Ledger) -> None:
    with pytest.raises(KeyboardInterrupt), ledger.transaction() as transaction:
        transaction.open_session(SessionHeader("ann", "state", OPTIONS))
        transaction.store(release(1), lambda: (1,), FREE)
        raise KeyboardInterrupt
    assert ledger.sessions() == []
    assert ledger.entries("ann", "state") == []
    assert ledger.spent("ann") == Spent(Fraction(0), Fraction(0))
    with pytest.raises(InvalidInput, match="plan"):
        ledger.plan("p1")
    open_all(ledger)
    with ledger.transaction() as transaction:
        assert transaction.store(release(1), lambda: (2,), FREE).z == (2,)


def test_a_draw_that_fails_leaves_nothing(ledger: Ledger) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        for wrong in ((), (1.5,)):
            with pytest.raises(InvalidInput, match="draw"):
                transaction.store(release(1), lambda wrong=wrong: wrong, FREE)  # type: ignore[misc]
        assert transaction.last_step("ann", "state") == 0
        assert transaction.spent("ann").epsilon == 0
        transaction.store(release(1), lambda: (1,), FREE)
    assert ledger.spent("ann").epsilon == Fraction(1, 2)


def test_a_draw_must_leave_the_ledger_alone(ledger: Ledger) -> None:
    open_all(ledger)

    def draw_again() -> tuple[int, ...]:
        entry = transaction.store(release(1), lambda: (9,), FREE)
        assert entry.z is not None
        return entry.z

    with pytest.raises(InvalidInput, match="draw"), ledger.transaction() as transaction:
        transaction.store(release(1), draw_again, FREE)
    assert ledger.entries("ann", "state") == []


def test_reads_show_only_what_has_committed(ledger: Ledger) -> None:
    open_all(ledger)
    with ledger.transaction() as transaction:
        transaction.store(release(1), lambda: (1,), FREE)
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
        lambda: transaction.store(release(1), never, FREE),
        lambda: transaction.open_session(SessionHeader("bob", "state", OPTIONS)),
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
    other = replace(PLAN, plan_states=b"\x0f")
    with ledger.transaction() as transaction:
        transaction.store(release(1), lambda: (1,), FREE)
        transaction.store(release(2, plan=replace(PLAN)), lambda: (1,), FREE)
    for _ in range(2):
        with pytest.raises(InvalidInput, match=r"^plan: .*another"), ledger.transaction() as transaction:
            transaction.store(release(3, plan=other), lambda: (1,), FREE)
    assert ledger.plan("p1") == PLAN


def test_many_plans_in_one_transaction(ledger: Ledger) -> None:
    open_all(ledger)
    plans = [PlanRecord(f"h{k}", k.to_bytes(2), 16, f"[{k}]") for k in range(1, 301)]
    with ledger.transaction() as transaction:
        for t, plan in enumerate(plans + plans, start=1):
            transaction.store(release(t, plan=plan), lambda: (1,), FREE)
    assert [ledger.plan(plan.hash) for plan in plans] == plans
    assert [e.plan_hash for e in ledger.entries("ann", "state")] == [plan.hash for plan in plans + plans]


def test_the_plans_of_the_other_queries_of_a_step(ledger: Ledger) -> None:
    work, home = replace(PLAN, hash="w"), replace(PLAN, hash="h")
    open_all(ledger, ("ann", "state"), ("ann", "work"), ("ann", "home"), ("bob", "work"))
    with ledger.transaction() as transaction:
        transaction.store(release(1, query="work", plan=work), lambda: (1,), FREE)
        transaction.store(release(1, query="home", plan=home), lambda: (1,), FREE)
        transaction.store(release(1, subject="bob", query="work"), lambda: (1,), FREE)
        assert transaction.plans_at("ann", 1, "state") == [home, work]
        assert transaction.plans_at("ann", 1, "work") == [home]
        assert ledger.plans_at("ann", 1, "state") == []  # not committed yet
    with ledger.transaction() as transaction:
        transaction.store(skip(1), never, FREE)
        assert transaction.plans_at("ann", 1, "work") == [home]  # a skip has no plan
        assert transaction.plans_at("ann", 2, "state") == []
    assert ledger.plans_at("ann", 1, "state") == [home, work]
    assert ledger.plans_at("bob", 1, "work") == ledger.plans_at("eve", 1, "work") == []


def test_names_of_any_kind(ledger: Ledger) -> None:
    names = ["", "a\nb", "nul\0byte", "=cmd", "é", "e\u0301", "🛰", "x" * 10_000, "a'; DROP TABLE release;--"]
    open_all(ledger, *[(name, "state") for name in names])
    with ledger.transaction() as transaction:
        for k, name in enumerate(names):
            transaction.store(release(1, subject=name), lambda k=k: (k,), FREE)  # type: ignore[misc]
    assert ledger.sessions() == sorted((name, "state") for name in names)
    assert [ledger.entries(name, "state")[0].z for name in names] == [(k,) for k in range(len(names))]
    with pytest.raises(BudgetExceeded) as caught, ledger.transaction() as transaction:
        transaction.store(release(2, subject="a\nb"), never, Caps(epsilon=Fraction(0)))
    assert "\n" not in str(caught.value)


def test_what_is_unknown(ledger: Ledger) -> None:
    assert ledger.header("ann", "state") is None
    assert ledger.entries("ann", "state") == []
    with ledger.transaction() as transaction:
        assert transaction.entry("ann", "state", 1) is None
        assert transaction.last_step("ann", "state") == 0
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
            entry = transaction.store(release(1), lambda: drawn.append(k) or (k,), FREE)  # type: ignore[func-returns-value]
        got.append(entry.z)

    threads = [threading.Thread(target=ask, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(drawn) == 1
    assert got == [(drawn[0],)] * 8
    assert ledger.spent("ann").epsilon == Fraction(1, 2)


def test_one_skip_may_pass_over_many_steps(ledger: Ledger) -> None:
    open_all(ledger)
    gap = replace(skip(2), steps=1000)
    with ledger.transaction() as transaction:
        transaction.store(release(1), lambda: (0,), FREE)
        stored = transaction.store(gap, never, FREE)
        assert transaction.last_step("ann", "state") == 1001
        after = transaction.store(release(1002), lambda: (5,), FREE)
    assert (stored.t, stored.through) == (2, 1001)
    with ledger.transaction() as transaction:
        assert transaction.entry("ann", "state", 700) == stored
        assert transaction.store(gap, never, FREE) == stored
        for inside in (release(700), replace(skip(2), steps=9), skip(3)):
            with pytest.raises(InvalidInput):
                transaction.store(inside, never, FREE)
    assert [entry.t for entry in ledger.entries("ann", "state")] == [1, 2, 1002]
    assert ledger.entries("ann", "state")[-1] == after


@pytest.mark.parametrize("steps", [0, -1, True, 1.0])
def test_a_skip_is_of_one_step_or_more(steps: int) -> None:
    with pytest.raises(InvalidInput, match="steps"):
        replace(skip(2), steps=steps)
    with pytest.raises(InvalidInput, match="steps"):
        replace(release(2), steps=2)
