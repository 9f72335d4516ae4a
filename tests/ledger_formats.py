"""Sessions whose ledger files are kept in the tree, and what such a file says: files of every format are held to them.

`begin` was run with the code of each released format; its file is ``data/FORMAT.sql``, as the statements that make it,
and what it said is ``data/FORMAT.json``. Everything is made up. A format that is written once is read for ever.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

import dphmm

#: session: (subject, query, whether its answers are those of the second space, choices)
SESSIONS: dict[str, tuple[str, str, bool, dict[str, Any]]] = {
    "support": ("ann", "state", False, {"cap_epsilon": "20"}),
    "partners": ("ann", "work", True, {}),
    "delta": ("bob", "state", False, {"constraint": "delta=0.2"}),
    "flat": ('c\n"id" é', "state", True, {"flat": "allow", "scope": "component"}),
    "staircase": ("dora", "state", False, {"mechanism": "staircase", "origin": "480000"}),
}
#: Steps before the file was closed, and after: a state that is released, or minus a number of steps skipped.
BEFORE, AFTER = (0, 2, -3, 5, 1, 4), (3, -2, 0, 5)
EPSILON = Fraction(2, 3)


def _world(second: bool) -> tuple[Any, Any, Any]:
    moves = np.array([[4 if i == j else 2 if abs(i - j) == 1 else 0 for j in range(6)] for i in range(6)], dtype=float)
    model = dphmm.MarkovModel(np.ones(6) / 6, moves / moves.sum(axis=1, keepdims=True))
    policy = dphmm.policy.from_edges([(0, 1), (1, 2), (3, 4)], 6)
    answers = [[0, 0], [1, 0], [1, 1], [5, 5], [5, 6], [9, 0]]
    if second:
        answers = [[0], [0], [3], [1], [7], [2]]
    return model, policy, dphmm.StateSpace(answers)


def begin(ledger: Any) -> None:
    """Some releases and skips of every session, and one that was opened and never released anything."""
    from dphmm.accounting import SessionHeader

    for number, (subject, query, second, choices) in enumerate(SESSIONS.values()):
        names = {"subject": subject, "query": query, "ledger": ledger, "bits": dphmm.ReplayBits(number)}
        # The default when these files were written.
        given = {"protection": "nearest", **choices}
        _walk(dphmm.ReleaseSession(*_world(second), EPSILON, **names, **given), BEFORE)
    with ledger.transaction() as transaction:
        transaction.open_session(SessionHeader("eve", "state", {"epsilon": "1"}))


def proceed(ledger: Any) -> dict[str, list[list[int] | None]]:
    """Resume every session under given words: its further answers on the lattice, None for a skip."""
    return {name: _proceed(ledger, number, name) for number, name in enumerate(SESSIONS)}


def _proceed(ledger: Any, number: int, name: str) -> list[list[int] | None]:
    subject, query, second, choices = SESSIONS[name]
    caps = {key: value for key, value in choices.items() if key.startswith("cap_")}
    bits = dphmm.ReplayBits(100 + number)
    return _walk(dphmm.ReleaseSession.resume(ledger, subject, *_world(second), query=query, bits=bits, **caps), AFTER)


def _walk(session: Any, steps: tuple[int, ...]) -> list[list[int] | None]:
    answers: list[list[int] | None] = []
    for step in steps:
        if step < 0:
            session.skip(-step)
            answers.append(None)
        else:
            answers.append(session.release(step).z_lattice.tolist())
    return answers


def contents(ledger: Any) -> dict[str, Any]:
    """All that a ledger says: headers, entries, plans and totals, as JSON has it."""
    found: dict[str, Any] = {"sessions": [], "plans": {}, "spent": {}}
    for subject, query in ledger.sessions():
        entries = ledger.entries(subject, query)
        found["sessions"].append(
            {
                "subject": subject,
                "query": query,
                "options": dict(ledger.header(subject, query).options),
                "entries": [_written(entry) for entry in entries],
            }
        )
        for entry in entries:
            if entry.plan_hash is not None:
                plan = ledger.plan(entry.plan_hash)
                found["plans"][plan.hash] = [plan.plan_states.hex(), plan.n_states, plan.description]
        spent = ledger.spent(subject)
        found["spent"][subject] = [str(spent.epsilon), str(spent.cost)]
    return found


def _written(entry: Any) -> list[Any]:
    z = None if entry.z is None else list(entry.z)
    numbers = [None if value is None else str(value) for value in (entry.epsilon, entry.cost)]
    return [entry.t, entry.steps, entry.kind, z, *numbers, entry.plan_hash, entry.secure, entry.constant]
