"""Both phases of a ledger transaction with a draw between them, as a session does it, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dphmm.accounting import Caps, Entry, Ledger, PlanRecord, Request, Requests, SessionHeader, StoredMany, Transaction
from dphmm.types import IntArray

FREE = Caps()
PLAN = PlanRecord("p1", b"\xf0", 5, '{"epsilon":"1/2"}')
OPTIONS = {"epsilon": "1/2", "start": "at"}


def release(t: int, *, subject: str = "ann", query: str = "state", plan: PlanRecord = PLAN) -> Request:
    return Request(subject, query, t, "release", Fraction(1, 2), Fraction(4, 3), plan, True, False)


def never(wanted: IntArray | None = None) -> tuple[int, ...]:
    raise AssertionError("drew although it must not")


def open_all(ledger: Ledger, *keys: tuple[str, str]) -> None:
    """Begin a session of each (subject, query), or of the state of ann alone."""
    with ledger.transaction() as transaction:
        for subject, query in keys or [("ann", "state")]:
            transaction.open_session(SessionHeader(subject, query, OPTIONS))


def store(transaction: Transaction, request: Request, draw: Callable[[], tuple[int, ...]], caps: Caps) -> Entry:
    """The stored entry of this step, or a new one made by one call of ``draw``."""
    admitted = transaction.admit(request, caps)
    if admitted.stored is not None:
        return admitted.stored
    return transaction.add(admitted, None if request.kind == "skip" else draw())


def store_many(
    transaction: Transaction, requests: Requests, draw: Callable[[IntArray], IntArray], caps: Caps
) -> StoredMany:
    """As `store` for every row, with one call of ``draw`` for all rows that are not stored yet."""
    admitted = transaction.admit_many(requests, caps)
    wanted = admitted.wanted
    return transaction.add_many(admitted, draw(wanted) if len(wanted) else None)
