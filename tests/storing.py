"""Both phases of a ledger transaction with a draw between them, as a session does it, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Callable

from dphmm.accounting import Caps, Entry, Request, Requests, StoredMany, Transaction
from dphmm.types import IntArray


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
