"""From a released file and what it was made with to a report: which subjects, their plans, their stored history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dphmm.accounting.ledger import Entry, Ledger
from dphmm.audit.released_file import ReleasedFile
from dphmm.audit.replay import Answer
from dphmm.batch import Progress
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.policy.graph import PolicyGraph
from dphmm.report.content import ReleaseReport
from dphmm.report.timeline import Timeline, Told, remade
from dphmm.session.options import Options
from dphmm.session.plan import Plan
from dphmm.session.subjects import Subjects
from dphmm.states.space import StateSpace
from dphmm.storage.statement_types import ReleaseStatement

#: Rows that a page carries step by step, all subjects together: a few megabytes.
MOST_ROWS = 15_000
#: A page is drawn around the estimates.
_WITH_ESTIMATES = (
    "estimates beside them: the release resumed with estimates writes them and spends nothing; dphmm smooth needs none"
)
#: Pages draw whom a state hides among as a hull.
_TABLES = (
    "The answers are those of tables, which have no hull: their plans are neither made again nor drawn on this page; "
    "dphmm audit checks them."
)


@dataclass(frozen=True, eq=False)
class Made:
    """What a release was made with; without a policy no plans can be made again, and none are shown."""

    model: MarkovModel
    space: StateSpace
    statement: ReleaseStatement
    subjects: Subjects | None = None

    @property
    def policy(self) -> PolicyGraph | None:
        """The policy, where it is known."""
        return None if self.subjects is None else self.subjects.setting.policy

    @property
    def options(self) -> Options | None:
        """The options, where the policy is known."""
        return None if self.subjects is None else self.subjects.setting.options


def release_report(
    title: str,
    file: ReleasedFile,
    made: Made,
    *,
    users: Sequence[str] = (),
    ledger: Ledger | None = None,
    progress: Progress | None = None,
    **parts: Any,
) -> tuple[ReleaseReport, list[Plan]]:
    """The report of a released file, and the plans of its first explored subject: none of tables, or without a policy.

    ``users``: whom to look at step by step, in this order; by default the first ones, as many as fit. ``ledger``: where
    the releases were stored; each explored row must be in it. ``parts``: truth, smoothed, notes and whatever else a
    ReleaseReport has.

    Raises InvalidInput for a file without estimates, an unknown user, more rows than fit on a page, an answer that was
    drawn under another plan than these public data make, and a ledger that does not hold it.
    """
    if file.estimate is None:
        raise InvalidInput("released", "answers z without estimates", _WITH_ESTIMATES)
    chosen, note = _chosen(file, users)
    tables = made.options is not None and made.options.made_from == "answers"
    told = [_told(user, rows, file, ledger, made) for user, rows in chosen]
    timeline, plans = None, list[Plan]()
    if made.subjects is not None and not tables:
        timeline, plans = remade(told, made.subjects, ledger, progress)
        _require_spent(file, timeline)
    report = ReleaseReport(
        title,
        released=_table(file),
        space=made.space,
        statement=made.statement,
        policy=made.policy,
        hull=plans[-1].hulls[0] if plans else None,
        weights=made.model.initial,
        explored=[subject.rows for subject in told],
        timeline=timeline,
        **parts,
    )
    told_apart = [one for one in (note, _TABLES if tables else "") if one]
    return replace(report, notes=[*report.notes, *told_apart]), plans


def _require_spent(file: ReleasedFile, timeline: Timeline) -> None:
    """Epsilon and cost of every row whose plan was made again, of whatever subject, are the plan's."""
    due = {plan.hash: plan.spent for plan in timeline.plans}
    for row, (plan, *told) in enumerate(zip(file.plans, file.epsilon.tolist(), file.cost.tolist(), strict=True)):
        if tuple(told) != due.get(plan, tuple(told)):
            came = f"an epsilon or a cost that is not its plan's, of {file.where(row)}"
            raise InvalidInput("released", came, "the numbers that dphmm release wrote")


def _chosen(file: ReleasedFile, users: Sequence[str]) -> tuple[list[tuple[str, list[int]]], str]:
    """Users with their rows by step, and what a reader must know of the choice."""
    by_user = file.by_user()
    unknown = next((user for user in users if user not in by_user), None)
    if unknown is not None:
        raise InvalidInput("user", repr(unknown), f"a user of the released file, such as {next(iter(by_user))!r}")
    # Users in the order of the file, not of their first step.
    wanted = list(dict.fromkeys(users or file.users))
    fitting, rows = list[tuple[str, list[int]]](), 0
    for user in wanted:
        rows += len(by_user[user])
        if fitting and rows > MOST_ROWS:
            break
        fitting.append((user, by_user[user][:MOST_ROWS]))
    if users and len(fitting) < len(wanted):
        came = f"{len(wanted)} users with more than {MOST_ROWS:,} rows together"
        raise InvalidInput("user", came, "fewer on one page")
    return fitting, _note(fitting, by_user)


def _note(fitting: list[tuple[str, list[int]]], by_user: dict[str, list[int]]) -> str:
    said = []
    if len(fitting) < len(by_user):
        said.append(f"{len(fitting):,} of {len(by_user):,} subjects can be looked at step by step; tables are of all.")
    if len(fitting[0][1]) < len(by_user[fitting[0][0]]):
        said.append(f"Of this subject the first {MOST_ROWS:,} steps can be looked at here.")
    return " ".join(said)


def _told(user: str, rows: list[int], file: ReleasedFile, ledger: Ledger | None, made: Made) -> Told:
    query, replayable = made.statement.query, bool(made.statement.randomness.replayable_rows)
    numbers = np.array(rows, dtype=np.int64)
    steps = file.step[numbers]
    if ledger is None:
        history = file.answers(rows)
    else:
        history = _stored(user, rows, file, ledger.entries(user, query), replayable)
    return Told(user, numbers, steps, history)


def _stored(user: str, rows: list[int], file: ReleasedFile, entries: Sequence[Entry], replayable: bool) -> list[Answer]:
    """All of a user's releases in a ledger, which must be those of the file where the file has them."""
    stored = {entry.t: entry for entry in entries if entry.z is not None}
    for row in rows:
        entry = stored.get(int(file.step[row]))
        if entry is None or entry.z != tuple(file.lattice[row].tolist()) or entry.plan_hash != file.plans[row]:
            came = f"one that does not hold the release of {file.where(row)}"
            raise InvalidInput("ledger", came, "the ledger of this release")
        if not entry.secure and not replayable:
            came = f"replayable bits of {file.where(row)}, of which the privacy statement says nothing"
            raise InvalidInput("ledger", came, "the statement of this release")
    return [Answer.of(stored[t], file.lattice.shape[1]) for t in sorted(stored)]


def _table(file: ReleasedFile) -> Any:
    """The columns that a report reads."""
    import pyarrow as pa

    columns: dict[str, Any] = {"user": pa.array(file.users, pa.string())}
    if file.times is not None:
        columns["t"] = pa.array(file.times, pa.timestamp("us", tz="UTC"))
    columns["step"] = file.step
    assert file.estimate is not None
    for name, answers in (("z", file.z), ("estimate", file.estimate)):
        columns |= {f"{name}_{j}": answers[:, j] for j in range(answers.shape[1])}
    columns["estimate"] = pa.array(file.estimate_name, pa.string())
    columns |= {"epsilon": file.epsilon, "cost": file.cost}
    return pa.table(columns)
