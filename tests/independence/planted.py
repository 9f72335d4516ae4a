"""Leaks, planted one at a time: each would break the promise, and each must be caught by the field it is planted in.

They are what a hurried edit of the release path could bring in: a debug line, a warning about drift, a hull around
the true state, a cost that looks at it, an error that names it, one more query, a repr, a second draw.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dphmm.accounting.transaction import BaseTransaction
from dphmm.errors import BudgetExceeded
from dphmm.session import answer
from dphmm.session.plan import StepPlan
from dphmm.session.planner import Planner
from dphmm.session.session import ReleaseSession
from dphmm.storage.ledger.transaction import SqliteTransaction

Plant = Callable[[pytest.MonkeyPatch], None]


def _around_draw(before: Callable[[StepPlan, int, Any], None]) -> Plant:
    """Do something with the true state just before the draw."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        truly = answer.answer_under

        def answer_under(plan: StepPlan, states: Any, bits: Any) -> Any:
            for state in states.tolist():
                before(plan, state if state >= 0 else int(np.argmax(plan.constraint.plan)), bits)
            return truly(plan, states, bits)

        patch.setattr(answer, "answer_under", answer_under)

    return plant


def _log(plan: StepPlan, state: int, bits: Any) -> None:
    logging.getLogger("dphmm").debug("drawing for state %d", state)


def _print(plan: StepPlan, state: int, bits: Any) -> None:
    print("." * (state + 1), file=sys.stderr)


def _warn_of_drift(plan: StepPlan, state: int, bits: Any) -> None:
    if not plan.constraint.plan[state]:
        warnings.warn("a state outside the plan set", stacklevel=1)


def _draw_twice_for_drift(plan: StepPlan, state: int, bits: Any) -> None:
    if not plan.constraint.plan[state]:
        plan.mechanism.noise(1, bits)


def _refuse_drift(plan: StepPlan, state: int, bits: Any) -> None:
    if not plan.constraint.plan[state]:
        raise BudgetExceeded(f"state {state} is outside the plan set")


def _branch(plan: StepPlan, state: int, bits: Any) -> None:
    # One table look-up more for drift, in a file of the package: nothing but the trace can show it.
    if not plan.constraint.plan[state]:
        repr(plan.constraint)


def _knowing_the_truth(patch: pytest.MonkeyPatch) -> list[int]:
    """A list that holds the number of the state being released."""
    known, truly = [0], ReleaseSession.release

    def release(self: ReleaseSession, state: int | str, t: int | None = None) -> Any:
        known[0] = self.setting.space.index_of(state) if isinstance(state, str) else state
        return truly(self, state, t)

    patch.setattr(ReleaseSession, "release", release)
    return known


def _local_plan(patch: pytest.MonkeyPatch) -> None:
    """The plan set loses its last state unless the truth is among the first two."""
    known, truly = _knowing_the_truth(patch), Planner.plan

    def plan(self: Planner, support: Any, plan_set: Any, *partners: Any) -> StepPlan:
        chosen = plan_set.copy()
        if known[0] > 1 and chosen.sum() > 2:
            chosen[np.flatnonzero(chosen)[-1]] = False
        return truly(self, support, chosen, *partners)

    patch.setattr(Planner, "plan", plan)


def _cheaper_drift(patch: pytest.MonkeyPatch) -> None:
    known, truly = _knowing_the_truth(patch), BaseTransaction.admit

    def admit(self: Any, request: Any, caps: Any) -> Any:
        free = request.kind == "release" and known[0] < 0
        return truly(self, replace(request, cost=request.cost / 2) if free else request, caps)

    for kind in (BaseTransaction, SqliteTransaction):
        patch.setattr(kind, "admit", admit)


def _tighter_noise(patch: pytest.MonkeyPatch) -> None:
    truly = answer.answer_under

    def answer_under(plan: StepPlan, states: Any, bits: Any) -> Any:
        z, drifted = truly(plan, states, bits)
        return z - (z - plan.image[states]) // np.where(states == 1, 2, 10**9)[:, None], drifted

    patch.setattr(answer, "answer_under", answer_under)


def _telling_repr(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ReleaseSession, "__repr__", lambda self: f"ReleaseSession(drifted={self._drifted})")


def _belief_from_the_truth(patch: pytest.MonkeyPatch) -> None:
    from dphmm.session.plan import Position

    known, truly = _knowing_the_truth(patch), Position.condition

    def condition(self: Position, plan: StepPlan, z: Any) -> Any:
        return truly(self, plan, plan.image[max(known[0], 0)])

    patch.setattr(Position, "condition", condition)


def _one_query_more(patch: pytest.MonkeyPatch) -> None:
    known, truly = _knowing_the_truth(patch), SqliteTransaction._add

    def add(self: Any, request: Any, z: Any, account: Any) -> Any:
        if known[0] == 2:
            self._connection.execute("SELECT count(*) FROM plan").fetchone()
        return truly(self, request, z, account)

    patch.setattr(SqliteTransaction, "_add", add)


def _one_row_more(patch: pytest.MonkeyPatch) -> None:
    known, truly = _knowing_the_truth(patch), SqliteTransaction._add

    def add(self: Any, request: Any, z: Any, account: Any) -> Any:
        note = "x" * 5000 * known[0]
        self._connection.execute("INSERT INTO meta VALUES (?, ?)", (f"note {request.t}", note))
        return truly(self, request, z, account)

    patch.setattr(SqliteTransaction, "_add", add)


#: name: (how it is planted, the field that must differ)
LEAKS: dict[str, tuple[Plant, str]] = {
    "a debug line": (_around_draw(_log), "logged"),
    "a printed line": (_around_draw(_print), "printed"),
    "a warning of drift": (_around_draw(_warn_of_drift), "warnings"),
    "a second draw for drift": (_around_draw(_draw_twice_for_drift), "words"),
    "drift is refused": (_around_draw(_refuse_drift), "refusals"),
    "a plan around the truth": (_local_plan, "releases"),
    "drift is cheaper": (_cheaper_drift, "totals"),
    "tighter noise for one state": (_tighter_noise, "noise"),
    "a repr that counts drift": (_telling_repr, "shown"),
    "a belief from the truth": (_belief_from_the_truth, "beliefs"),
}
#: The same for leaks into the file of a ledger.
LEDGER_LEAKS: dict[str, tuple[Plant, str]] = {
    "a query more": (_one_query_more, "statements"),
    "a row more": (_one_row_more, "rows"),
    "a page more": (_one_row_more, "bytes"),
    "drift is cheaper": (_cheaper_drift, "rows"),
    "a longer transaction": (_one_row_more, "log"),
}
#: Seen by nothing but the lines that ran.
BRANCH_LEAK = _around_draw(_branch)


@contextlib.contextmanager
def planted(plant: Plant) -> Iterator[None]:
    """The leak, inside the block."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        yield
