"""Close open ledgers before the process forks, and let both sides open them again.

Proof: docs/proofs/ledger.md.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Something that must not be carried open across a fork."""

    def before_fork(self) -> bool: ...

    def after_fork_in_parent(self) -> None: ...

    def after_fork_in_child(self) -> None: ...


_WATCHED: WeakSet[Forkable] = WeakSet()
_CLOSED: list[Forkable] = []


def watch(ledger: Forkable) -> None:
    """Close ``ledger`` around every fork, as long as it lives."""
    _WATCHED.add(ledger)


def _before() -> None:
    _CLOSED[:] = [ledger for ledger in list(_WATCHED) if ledger.before_fork()]


def _in_parent() -> None:
    for ledger in _CLOSED:
        ledger.after_fork_in_parent()
    _CLOSED.clear()


def _in_child() -> None:
    _CLOSED.clear()
    for ledger in list(_WATCHED):
        ledger.after_fork_in_child()


# Windows does not fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
