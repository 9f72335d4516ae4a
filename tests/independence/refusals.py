"""Every way in which a release is refused or fails, each as a function of the truth that returns what was raised."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.errors import BudgetExceeded, DphmmError, InvalidInput, LedgerBusy, Unprotectable
from dphmm.session.session import ReleaseSession
from dphmm.storage.ledger import open_ledger
from independence.observing import CountedBits

N = 6
NAMES = [f"place {k}" for k in range(N)]
SPACE = dphmm.StateSpace([[0, 0], [1, 0], [2, 0], [3, 1], [4, 0], [2, 3]], names=NAMES)
#: From place 0 or 1 one step reaches places 0 to 3: 4 and 5 are drift at the first release.
MOVES = np.array([[1, 1, 1, 0, 0, 0], [1, 0, 1, 1, 0, 0], [0, 1, 1, 0, 1, 1], *np.eye(N)[3:]], dtype=float)
MODEL = dphmm.MarkovModel([0.5, 0.5, 0, 0, 0, 0], MOVES / MOVES.sum(axis=1, keepdims=True))
POLICY = dphmm.policy.from_edges([(0, 1), (1, 2), (4, 5)], N)
TRUTHS: list[int | str] = [0, 2, 3, 4, 5, "place 1", "place 5", "no such place", -1]

Refusal = Callable[[int | str, Path], None]


def session(ledger: Any = None, policy: Any = POLICY, epsilon: Any = 1, **choices: Any) -> ReleaseSession:
    """A session of subject "ann"; randomness replays."""
    choices = {"bits": CountedBits(3), "subject": "ann", **choices}
    return ReleaseSession(choices.pop("model", MODEL), policy, SPACE, epsilon, ledger=ledger, **choices)


def _refused(**choices: Any) -> Refusal:
    return lambda truth, path: use(session(**choices), truth)


def use(ongoing: ReleaseSession, *truths: int | str, t: int | None = None) -> None:
    """Release truths in turn."""
    for truth in truths:
        ongoing.release(truth, t)


def _after_a_first_release(**choices: Any) -> Refusal:
    """Another session of the same key, with other public choices."""

    def release(truth: int | str, path: Path) -> None:
        ledger = MemoryLedger()
        use(session(ledger), 0)
        use(session(ledger, **choices), truth)

    return release


def _broken(error: type[BaseException]) -> Refusal:
    """The randomness fails in the middle of a draw."""

    class Broken(CountedBits):
        def uint64(self, n: int) -> Any:
            raise error("no more words")

    return lambda truth, path: use(session(bits=Broken(1)), truth)


def _no_partner(truth: int | str, path: Path) -> None:
    # No policy reaches this refusal: a single possible answer is a public constant. So it is raised by hand.
    def protect(*_: Any, **__: Any) -> None:
        raise Unprotectable("constraint: a single possible state has no other state to hide among")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dphmm.session.planner.protect", protect)
        use(session(), truth)


def _other_step(t: int) -> Refusal:
    def release(truth: int | str, path: Path) -> None:
        ongoing = session()
        ongoing.skip(2)
        use(ongoing, truth, t=t)

    return release


def _closed(truth: int | str, path: Path) -> None:
    ledger = MemoryLedger()
    ongoing = session(ledger)
    ledger.close()
    use(ongoing, truth)


def _nested(truth: int | str, path: Path) -> None:
    ledger = MemoryLedger()
    with ledger.transaction():
        use(session(ledger), truth)


def _busy(truth: int | str, path: Path) -> None:
    with open_ledger(path, timeout=0.01) as ledger, contextlib.closing(sqlite3.connect(path)) as other:
        ongoing = session(ledger)
        other.execute("BEGIN IMMEDIATE")
        use(ongoing, truth)


def _full(truth: int | str, path: Path) -> None:
    """The disk is full before the answer is drawn."""
    with open_ledger(path) as ledger:
        connection = ledger._writer()
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        use(session(ledger, query="q" * 6000), truth)


def _damaged(truth: int | str, path: Path) -> None:
    with open_ledger(path) as ledger:
        use(session(ledger), 0)
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("UPDATE account SET epsilon = 'many'")
            other.commit()
        use(session(ledger, query="again"), truth)


def _failing_insert(truth: int | str, path: Path) -> None:
    """A constraint fails on the very row that holds the answer, after the draw."""
    with open_ledger(path) as ledger:
        ongoing = session(ledger)
        use(ongoing, 0)
        ledger._writer().execute("CREATE TRIGGER no BEFORE INSERT ON release BEGIN SELECT raise(ABORT, 'no'); END")
        use(ongoing, truth)


#: name: (the refusal, its type)
REFUSALS: dict[str, tuple[Refusal, type[BaseException]]] = {
    "cap_epsilon is closed": (_refused(cap_epsilon=0), BudgetExceeded),
    "cap_cost is closed": (_refused(cap_cost=0), BudgetExceeded),
    "cap_cost is passed": (_refused(cap_cost="0.5"), BudgetExceeded),
    "unprotectable": (_no_partner, Unprotectable),
    "another epsilon": (_after_a_first_release(epsilon=2), InvalidInput),
    "another policy": (_after_a_first_release(policy=dphmm.policy.complete(N)), InvalidInput),
    "another protection": (_after_a_first_release(protection="min-error"), InvalidInput),
    "a second query on a δ-set": (_after_a_first_release(query="work", constraint="delta=0.1"), InvalidInput),
    "a step to come": (_other_step(9), InvalidInput),
    "a step that was skipped": (_other_step(2), InvalidInput),
    "a closed ledger": (_closed, InvalidInput),
    "a transaction inside another": (_nested, InvalidInput),
    "a ledger in use": (_busy, LedgerBusy),
    "a full disk": (_full, DphmmError),
    "a damaged ledger": (_damaged, InvalidInput),
    "a failing insert": (_failing_insert, DphmmError),
    "broken randomness": (_broken(OSError), OSError),
    "Ctrl-C while drawing": (_broken(KeyboardInterrupt), KeyboardInterrupt),
}


@contextlib.contextmanager
def naming_the_truth() -> Iterator[None]:
    """Plant: refusals by a cap say which state was to be released."""
    from dphmm.accounting.transaction import BaseTransaction

    truly, known = BaseTransaction.admit, []

    def admit(self: Any, request: Any, caps: Any) -> Any:
        try:
            return truly(self, request, caps)
        except DphmmError as error:
            raise type(error)(f"{error} (releasing {known[-1]})") from None

    release = ReleaseSession.release

    def knowing(self: ReleaseSession, state: int | str, t: int | None = None) -> Any:
        known.append(state)
        return release(self, state, t)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseTransaction, "admit", admit)
        patch.setattr(ReleaseSession, "release", knowing)
        yield
