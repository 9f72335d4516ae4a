"""One transaction at a time within a process.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dphmm.errors import InvalidInput, LedgerBusy


class Turn:
    """A lock that other threads wait for and that its own thread may not take twice."""

    def __init__(self, timeout: float | None = None) -> None:
        # One that knows its thread: an interrupt just after it was taken must not leave it taken for ever.
        self._lock = threading.RLock()
        self._owner: int | None = None
        self._timeout = timeout

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Wait for the turn. Raises InvalidInput when nested, LedgerBusy after the timeout (seconds)."""
        self.refuse_nested()
        try:
            if not self.take():
                raise LedgerBusy(
                    f"ledger: another thread held it for over {self._timeout:g} s; nothing was drawn or spent"
                )
            yield
        finally:
            self.give_back()

    def take(self) -> bool:
        """Take the turn, which this thread must not have, or False after the timeout."""
        if not self._lock.acquire(timeout=-1 if self._timeout is None else self._timeout):
            return False
        self._owner = threading.get_ident()
        return True

    def give_back(self) -> None:
        """End the turn of this thread, if it is its turn."""
        if self.mine:
            self._owner = None
        with suppress(RuntimeError):
            self._lock.release()

    @property
    def mine(self) -> bool:
        """Whether this thread has the turn."""
        return self._owner == threading.get_ident()

    def refuse_nested(self) -> None:
        """Raises InvalidInput if this thread has the turn."""
        if self.mine:
            raise InvalidInput("transaction", "one inside another", "one at a time: leave the first before the next")
