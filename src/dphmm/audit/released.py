"""`check_released`: whether a finished release is what its ledger, its statement and public data say it is.

Every row must be a stored fact of the ledger, drawn under a plan that anybody can make again; every plan must keep its
promise; every other number of the row must follow from the answers; and nothing else may be there.

Proof: docs/proofs/ledger.md, docs/proofs/promise.md.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from dphmm.accounting.ledger import Entry, Ledger
from dphmm.audit.findings import Findings
from dphmm.audit.released_file import ReleasedFile
from dphmm.audit.released_statement import check_statement
from dphmm.audit.replay import Answer, Followed, Replay
from dphmm.audit.verdict import Verdict
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.session.header import session_header
from dphmm.session.options import Options
from dphmm.session.planner import Planner, check_same_states
from dphmm.states.space import StateSpace
from dphmm.types import Exact

#: Estimates are sums of floats in an order that a kernel chooses.
_RELATIVE = 1e-7
_NANO = 10**9


@dataclass(frozen=True, eq=False)
class ReleasedVerdict:
    """What the audit of a released file says. ``findings`` convict; ``notes`` say what could not be looked at.

    ``verdicts`` are the exact audits of its plans; of ``plans`` distinct ones there may be more than were verified.
    """

    rows: int
    users: int
    plans: int
    verdicts: tuple[Verdict, ...]
    findings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def convicted(self) -> bool:
        """Whether something is wrong with the file or with a plan it was drawn under."""
        return bool(self.findings) or any(verdict.convicted for verdict in self.verdicts)

    @property
    def lines(self) -> list[str]:
        """The verdict in prose."""
        word = "CONVICTED" if self.convicted else "nothing is wrong"
        said = [f"released: {self.rows} rows of {self.users} users under {self.plans} plans: {word}"]
        said += [f"  {finding}" for finding in self.findings]
        said += [f"  not looked at: {note}" for note in self.notes]
        wrong = [verdict for verdict in self.verdicts if verdict.convicted]
        said.append(f"  {len(self.verdicts)} of {self.plans} plans verified, {len(wrong)} of them convicted")
        worst = max(self.verdicts, key=lambda verdict: verdict.loss, default=None)
        if worst is not None and worst.worst is not None:
            said.append(f"  over all of them the worst required pair loses {worst.loss}")
        for verdict in wrong[:3]:
            said += verdict.lines
        return said

    def document(self) -> dict[str, Any]:
        """The verdict for machines."""
        return {
            "convicted": self.convicted,
            "rows": self.rows,
            "users": self.users,
            "plans": self.plans,
            "plans_verified": len(self.verdicts),
            "plans_convicted": [verdict.document() for verdict in self.verdicts if verdict.convicted],
            "findings": list(self.findings),
            "notes": list(self.notes),
        }


def check_released(
    released: Any,
    model: MarkovModel,
    policy: PolicyGraph,
    space: StateSpace,
    epsilon: Exact,
    *,
    ledger: Ledger | None = None,
    query: str = "state",
    start: str | None = None,
    most_plans: int = 1000,
    **choices: Any,
) -> ReleasedVerdict:
    """Audit a finished release.

    Parameters
    ----------
    released : a file, whose privacy statement is looked for beside it, or a table.
    model, policy, space, epsilon, choices : what it is said to have been released under; the choices are those of
        `ReleaseSession` (constraint, mechanism, scope, flat, thickness, protection).
    ledger : where its releases were stored; without one rows are checked against each other and the model only.
    most_plans : verify so many of the distinct plans.

    Raises InvalidInput for a table that is no released table of this space.
    """
    check_same_states(model, policy, space)
    options = Options.checked(
        epsilon, dimension=space.dimension, start=model.start if start is None else start, **choices
    )
    findings, notes = Findings(), []
    file = ReleasedFile.read(released, space, findings)
    planner = Planner(policy, space, options)
    replay = Replay(model, planner, ledger, findings, most_plans)
    audit = _Audit(file, model, planner, ledger, query, replay, findings)
    for user, rows in file.by_user().items():
        audit.user(user, rows)
    notes += audit.notes()
    if isinstance(released, (str, os.PathLike)):
        notes += check_statement(Path(released), audit.counted, model, planner, query, findings)
    else:
        notes.append("the privacy statement, which lies beside a file")
    if len(replay.met) > len(replay.verdicts):
        notes.append(f"{len(replay.met) - len(replay.verdicts)} plans: only the first {most_plans} were verified")
    return ReleasedVerdict(
        rows=len(file),
        users=len(audit.counted.accounts),
        plans=len(set(file.plans)),
        verdicts=tuple(replay.verdicts.values()),
        findings=findings.sentences,
        notes=tuple(notes),
    )


class Counted:
    """What the rows add up to, subject by subject: an exact sum of epsilons, and of costs in 1e-9, each rounded up."""

    def __init__(self) -> None:
        self.rows = self.constants = self.replayable = 0
        self.plans: set[str] = set()
        self.accounts: dict[str, tuple[Fraction, Fraction | float]] = {}

    def add(self, user: str, followed: Followed) -> None:
        """One more row."""
        epsilon, cost = self.accounts.get(user, (Fraction(0), Fraction(0)))
        plan = followed.plan
        self.accounts[user] = (epsilon + plan.promised, cost + rounded_up(plan.cost))
        self.constants += plan.constant


def rounded_up(cost: Fraction | float) -> Fraction | float:
    """A cost as a ledger adds it up: in 1e-9, never less than it is."""
    return cost if isinstance(cost, float) else Fraction(math.ceil(cost * _NANO), _NANO)


@dataclass(eq=False)
class _Audit:
    file: ReleasedFile
    model: MarkovModel
    planner: Planner
    ledger: Ledger | None
    query: str
    replay: Replay
    findings: Findings

    def __post_init__(self) -> None:
        self.counted = Counted()
        self._elsewhere = 0
        self._queries: dict[str, list[str]] = {}
        for subject, query in [] if self.ledger is None else self.ledger.sessions():
            self._queries.setdefault(subject, []).append(query)

    def user(self, user: str, rows: list[int]) -> None:
        """One user's rows, by step."""
        self.counted.accounts.setdefault(user, (Fraction(0), Fraction(0)))
        self.counted.rows += len(rows)
        self.counted.plans |= {self.file.plans[row] for row in rows}
        stored = self._stored(user, rows)
        self._times(user, rows)
        history = [Answer(entry.t, np.array(entry.z, dtype=np.int64), str(entry.plan_hash)) for entry in stored]
        if self.ledger is None:
            history = [Answer(int(self.file.step[row]), self.file.lattice[row], self.file.plans[row]) for row in rows]
        followed = self.replay.follow(user, history)
        if followed is None:
            return
        self._entries(user, stored, followed)
        by_step = {answer.t: found for answer, found in zip(history, followed, strict=True)}
        for row in rows:
            found = by_step.get(int(self.file.step[row]))
            if found is not None:
                self.counted.add(user, found)
                self._row(row, found)

    def notes(self) -> list[str]:
        """What there was no way to look at."""
        if self.ledger is None:
            return ["the ledger: rows may be there that were never stored or paid for, or missing"]
        if self._elsewhere:
            return [f"{self._elsewhere} releases of these users that the ledger holds and this file does not show"]
        return []

    def _stored(self, user: str, rows: list[int]) -> list[Entry]:
        """The ledger's releases of a user, each row compared with its own."""
        if self.ledger is None:
            return []
        header = self.ledger.header(user, self.query)
        if not self.findings.require(header is not None, "a user whom the ledger does not know", f"user {user!r}"):
            return []
        assert header is not None
        own = session_header(self.model, self.planner, user, self.query, header.options.get("origin", ""))
        for name, value in own.options.items():
            kept = header.options.get(name)
            self.findings.require(kept == value, f"the {name} of the ledger is {kept}, not {value}", f"user {user!r}")
        entries = {entry.t: entry for entry in self.ledger.entries(user, self.query) if entry.kind == "release"}
        for row in rows:
            entry = entries.get(int(self.file.step[row]))
            where = self.file.where(row)
            if self.findings.require(entry is not None, "a row that the ledger does not hold", where):
                assert entry is not None and entry.z is not None
                same = entry.z == tuple(self.file.lattice[row].tolist())
                self.findings.require(same, "an answer that is not the one in the ledger", where)
                same = str(entry.plan_hash) == self.file.plans[row]
                self.findings.require(same, "a plan that is not the one in the ledger", where)
                self.counted.replayable += not entry.secure
                self.findings.require(entry.secure, "rows from replayable bits, which promise nothing", where)
        self._elsewhere += len(entries) - len({int(self.file.step[row]) for row in rows} & set(entries))
        self._account(user)
        return [entries[t] for t in sorted(entries)]

    def _account(self, user: str) -> None:
        """The subject's account against its entries, over all queries."""
        assert self.ledger is not None
        epsilon, cost = Fraction(0), Fraction(0)
        total: Fraction | float = cost
        for query in self._queries.get(user, []):
            for entry in self.ledger.entries(user, query):
                if entry.kind == "release" and entry.epsilon is not None and entry.cost is not None:
                    epsilon, total = epsilon + entry.epsilon, total + rounded_up(entry.cost)
        spent = self.ledger.spent(user)
        right = (spent.epsilon, spent.cost) == (epsilon, total)
        self.findings.require(right, "an account that is not that of its releases", f"user {user!r}")

    def _entries(self, user: str, stored: list[Entry], followed: list[Followed]) -> None:
        """What the ledger charged, against the plan."""
        for entry, found in zip(stored, followed, strict=False):
            plan, where = found.plan, f"user {user!r}, step {entry.t}"
            paid = (entry.epsilon, entry.cost, entry.constant)
            due = (plan.promised, plan.cost, plan.constant)
            self.findings.require(paid == due, "a release that the ledger charged otherwise than its plan", where)

    def _row(self, row: int, found: Followed) -> None:
        """Every number of a row but z follows from public data."""
        file, plan, where = self.file, found.plan, self.file.where(row)
        told = (float(file.epsilon[row]), float(file.cost[row]))
        cost = float(plan.cost)
        exact = isinstance(plan.cost, float) or Fraction(cost) >= plan.cost
        cost = cost if exact else math.nextafter(cost, math.inf)
        self.findings.require(told == (float(plan.promised), cost), "epsilon or cost other than the plan's", where)
        guess = np.array(found.guess.answer)
        scale = np.abs(self.planner.space.answers).max() + 1
        near = np.abs(file.estimate[row] - guess).max() <= _RELATIVE * scale
        self.findings.require(bool(near), "an estimate that does not follow from the answers", where)
        name = self.planner.space.names[found.guess.state]
        self.findings.require(file.estimate_name[row] == name, "a likeliest state that does not follow", where)

    def _times(self, user: str, rows: list[int]) -> None:
        """Where the model has a time step, a row's time is that of its step and of nothing else."""
        step, times = self.model.step, self.file.times
        if step is None or times is None:
            return
        begins = times[rows] - (self.file.step[rows] - 1) * step * 1_000_000
        header = None if self.ledger is None else self.ledger.header(user, self.query)
        origin = "" if header is None else header.options.get("origin", "")
        first = int(origin) * step * 1_000_000 if origin.lstrip("-").isdecimal() else int(begins[0])
        right = bool((begins == first).all())
        self.findings.require(right, "times that are not those of the steps", f"user {user!r}")


def opened(path: str) -> Any:
    """A ledger file that exists, opened; opening another name would make one."""
    from dphmm.storage.ledger import open_ledger

    if not Path(path).is_file() or Path(path).stat().st_size == 0:
        raise InvalidInput("ledger", path, "an existing ledger file")
    return open_ledger(path)
