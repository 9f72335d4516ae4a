"""`check_released`: whether a finished release is what its ledger, its statement and public data say it is.

Every row must be a stored fact of the ledger, drawn under a plan that anybody can make again; every plan must keep its
promise; every other number of the row must follow from the answers; and nothing else may be there.

Proof: docs/proofs/ledger.md, docs/proofs/promise.md.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dphmm._notebook import html_lines
from dphmm.accounting.ledger import Ledger
from dphmm.accounting.promise import Schedule
from dphmm.accounting.records import in_short
from dphmm.audit.findings import Findings
from dphmm.audit.plain_plans import plain_plans
from dphmm.audit.released_file import ReleasedFile
from dphmm.audit.released_rows import RowsAudit, rows_held, stored_answers, stored_promises
from dphmm.audit.released_statement import check_statement, check_words
from dphmm.audit.replay import Replay
from dphmm.audit.verify import Verdict
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.session.plan import Plan
from dphmm.session.planner import Planner
from dphmm.session.setting import Setting, StepChoices, Subjects, checked_steps, names_chosen
from dphmm.states.space import StateSpace
from dphmm.storage.inputs import checked_input
from dphmm.storage.statement import read_statement, schedule_of_statement, statement_path
from dphmm.storage.statement_types import earlier_answers_of
from dphmm.types import Exact


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
    _made: tuple[tuple[Plan, Planner], ...] = field(default=(), repr=False)

    def plain_plans(self) -> dict[str, Any]:
        """The verified plans in plain form, for `verify_release.py`: public data, ready for JSON.

        Source: docs/files.md.
        """
        return plain_plans(self._made)

    @property
    def convicted(self) -> bool:
        """Whether something is wrong with the file or with a plan it was drawn under."""
        return bool(self.findings) or any(verdict.convicted for verdict in self.verdicts)

    @property
    def lines(self) -> list[str]:
        """The verdict in prose."""
        word = "CONVICTED" if self.convicted else "nothing is wrong"
        plans = "1 plan" if self.plans == 1 else f"{self.plans:,} plans"
        said = [f"released: {self.rows:,} rows of {self.users:,} users under {plans}: {word}"]
        said += [f"  {finding}" for finding in self.findings]
        said += [f"  not looked at: {note}" for note in self.notes]
        wrong = [verdict for verdict in self.verdicts if verdict.convicted]
        said.append(f"  {len(self.verdicts)} of {plans} verified, {len(wrong)} of them convicted")
        worst = max(self.verdicts, key=lambda verdict: verdict.loss, default=None)
        if worst is not None and worst.worst is not None:
            said.append(f"  over all of them the worst required pair loses {in_short(worst.loss)}")
        for verdict in wrong[:3]:
            said += verdict.lines
        return said

    def _repr_html_(self) -> str:
        return html_lines(self.lines)

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
    schedule: Schedule | None = None,
    statement: str | os.PathLike[str] | None = None,
    most_plans: int = 1000,
    initials: Mapping[str, Any] | None = None,
    step_choices: StepChoices | None = None,
    varies: Sequence[str] = (),
    **choices: Any,
) -> ReleasedVerdict:
    """Audit a finished release.

    Parameters
    ----------
    released : a file, whose privacy statement is looked for beside it, or a table. A file may be the lines of a stream
        (.jsonl, .ndjson).
    model, policy, space, epsilon, choices : what it is said to have been released under; the choices are those of
        `ReleaseSession` (constraint, mechanism, protection).
    schedule : at which steps subjects were asked; by default as the privacy statement says, which the ledger has to
        confirm.
    ledger : where its releases were stored; without one rows are checked against each other and the model only. One
        that does not hold half of the rows is another file's: that is the finding, and nothing else is taken from it.
    statement : where the privacy statement is, if not beside the file. Of a table its rows, people, plans, totals and
        choices are compared; only a file's bytes can show that the answers are the file's, and ``notes`` say so.
    most_plans : verify so many of the distinct plans.
    initials, step_choices, varies : those of the release, as `release_many` takes them. Each row is held against what
        was chosen for its step, where a ledger or times tell its number.

    Raises InvalidInput for a table that is no released table of this space.
    """
    beside = checked_input(statement, "statement") if statement is not None else _beside(released)
    stated, earlier = _stated(beside)
    schedule = stated if schedule is None else schedule
    named = {"query": query, "schedule": schedule, "start": start, **choices}
    own = tuple(varies) or names_chosen(checked_steps(step_choices or {}))
    setting = Setting.of(model, policy, space, epsilon, varies=own, **named)
    subjects = Subjects(setting, initials, step_choices)
    findings, notes = Findings(), []
    file = ReleasedFile.read(released, space, findings)
    ledger = _own(ledger, query, file, findings)
    replay = Replay(subjects, ledger, findings, most_plans)
    audit = RowsAudit(file, subjects, ledger, replay, findings, earlier)
    for user, rows in file.by_user().items():
        audit.user(user, rows)
    notes += audit.notes()
    if file.streamed:
        notes.append("the order of the lines, and which steps were asked for again: a stream has those of its input")
    if beside is not None:
        answers = stored_answers(ledger, query, file)
        kept = stored_promises(ledger, query, file)
        path = Path(released) if isinstance(released, (str, os.PathLike)) else None
        notes += check_statement(path, beside, audit.counted, subjects, findings, answers, kept)
        notes += check_words(file, beside, subjects, findings)
        if ledger is None and beside.exists():
            notes.append("where the noise came from, and what was promised and scheduled: only the statement says so")
    else:
        notes.append("the privacy statement, which lies beside a file: give it with a table as statement=")
    if len(replay.met) > len(replay.verdicts):
        notes.append(f"{len(replay.met) - len(replay.verdicts)} plans: only the first {most_plans} were verified")
    return ReleasedVerdict(
        rows=len(file),
        users=len(audit.counted.accounts),
        plans=len(set(file.plans) - {""}),
        verdicts=tuple(replay.verdicts.values()),
        findings=findings.sentences,
        notes=tuple(notes),
        _made=tuple(replay.plans_made.values()),
    )


def _beside(released: Any) -> Path | None:
    """Where the privacy statement of a released file lies."""
    return statement_path(released) if isinstance(released, (str, os.PathLike)) else None


def _stated(beside: Path | None) -> tuple[Schedule | None, int]:
    """The schedule that a statement tells, and from how many answers of other files estimates follow.

    What it tells wrongly is a finding of `check_statement`.
    """
    try:
        if beside is not None and beside.exists():
            statement = read_statement(beside)
            return schedule_of_statement(statement), earlier_answers_of(statement)
    except InvalidInput:
        pass
    return None, 0


def _own(ledger: Ledger | None, query: str, file: ReleasedFile, findings: Findings) -> Ledger | None:
    """The ledger, if it is the file's; totals and plans of another one would be about other releases."""
    held = len(file) if ledger is None else rows_held(ledger, query, file)
    holds = f"of {len(file)} rows of query {query!r} it holds {held} with the same answer and plan"
    own = findings.require(2 * held >= len(file), f"the ledger does not belong to this file: {holds}")
    return ledger if own else None
