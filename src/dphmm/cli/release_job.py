"""What a release is made from, loaded and checked before anything is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm.cli.options import loaded_model, loaded_policy
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.batch import Batch
    from dphmm.cli.console import Console
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.schedule_plan import SchedulePlan
    from dphmm.session.budget_plan import BudgetPlan
    from dphmm.session.setting import Setting
    from dphmm.states.space import StateSpace
    from dphmm.states.visit_table import VisitTable
    from dphmm.storage.learned import People, Whom
    from dphmm.types import Exact

#: Options of the command that are choices of the batch.
_CHOICES = (
    "constraint",
    "mechanism",
    "scope",
    "flat",
    "start",
    "protection",
    "cap_epsilon",
    "cap_cost",
    "query",
    "answer",
)


@dataclass(frozen=True)
class Job:
    """The public side of a release."""

    model: MarkovModel
    policy: PolicyGraph
    space: StateSpace
    epsilon: Exact | None
    choices: Mapping[str, Any]
    #: With a total: for how many steps it is. ``epsilon`` is the total until the plan is found.
    steps: int | None = None
    budget_plan: BudgetPlan | None = None
    #: What a schedule was chosen from, where it is at hand.
    planned: SchedulePlan | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Job:
        """The job of a command's options; InvalidInput for any that cannot be."""
        from dphmm._checks import stated_epsilon
        from dphmm.cli.release_total import (
            asked_groups,
            asked_promise,
            asked_schedule,
            asked_tables,
            check_asked,
            kept_protection,
        )
        from dphmm.storage.learned import learning_event

        check_asked(given)
        model, space = loaded_model(given["model"])
        policy, space = loaded_policy(given["policy"], model)
        choices = {name: given[name] for name in _CHOICES if given[name] is not None}
        choices |= kept_protection(given)
        choices["estimates"] = not given["no_estimates"]
        choices["promise"] = asked_promise(given)
        choices |= asked_groups(given)
        choices |= asked_tables(given, model, space)
        schedule, planned = asked_schedule(given, (model, policy, space), choices)
        choices |= schedule
        steps = None if given["total_epsilon"] is None else given["steps"]
        each = None if given["epsilon"] is None else stated_epsilon(given["epsilon"])
        job = cls(model, policy, space, each or given["total_epsilon"], choices, steps, planned=planned)
        setting = job._setting(given)
        # A record of learning that contradicts itself is refused now, not when the statement is written.
        learning_event(model.provenance, given["model"])
        if job.steps is not None:
            from dphmm.session.budget_plan import check_public

            check_public(setting)
        return job

    def batch(self, ledger: Ledger | None) -> Batch:
        """The releases of this job, kept in a ledger."""
        from dphmm.batch import Batch

        return Batch(
            self.model, self.policy, self.space, self.epsilon, ledger=ledger, horizon=self.steps, **self.choices
        )

    def _setting(self, given: Mapping[str, Any]) -> Setting:
        """The setting of the batch. Raises InvalidInput for choices that no batch takes."""
        try:
            return self.batch(None).setting
        except InvalidInput as error:
            if error.field != "estimates":
                raise
            if "schedule" in self.choices and self.choices["schedule"].kind == "paced":
                expected = "a planned schedule with it: a paced one is decided by estimates"
                raise InvalidInput("--no-estimates", "it with a paced schedule", expected) from None
            came = f"it with --constraint {given['constraint']} and --flat {given['flat']}"
            expected = "--constraint support and --flat thicken or refuse with it: other plans follow from beliefs"
            raise InvalidInput("--no-estimates", came, expected) from None

    def check_times(self, rows: VisitTable, columns: Sequence[str]) -> None:
        """InvalidInput for a table without times or a column of steps, where the model has time steps."""
        step = self.model.step
        if step is not None and rows.time is None and "step" not in columns:
            raise InvalidInput("t", "no times", f"times: the model has steps of {step} s; or a column step")


def fitted_on(job: Job, given: Mapping[str, Any], console: Console) -> People | None:
    """The people that the model was fitted on without privacy, where dphmm fit wrote them beside it."""
    from dphmm.storage.learned import load_people

    if job.model.provenance.get("private") is True:
        return None
    return load_people(given["model"], console.warn)


def people(job: Job, rows: VisitTable, sha256: str, given: Mapping[str, Any], console: Console) -> Whom:
    """Whom the model was fitted on, from what the owner says, the user names and the file's hash.

    InvalidInput, before anything is drawn, where the owner says others and the names or the hash say the same.
    """
    from dphmm.storage.learned import people_path, whom, whom_of

    known, declared = fitted_on(job, given, console), given["model_people"]
    same_file = job.model.provenance.get("source_sha256") == sha256
    among = None if known is None else known.has_one_of(rows.users)
    if declared == "others" and same_file:
        raise InvalidInput("--model-people", "others, of a model that was fitted on this very file", "same, or nothing")
    if declared == "others" and among:
        path = people_path(given["model"]).name
        came = "others, of a model that was fitted on somebody with the user name of one who is released"
        raise InvalidInput("--model-people", came, f"same, or nothing; if only the names are alike, remove {path}")
    return whom_of(job.model.provenance, whom(declared, among, same_file))


def check_resumed(output: str, ledger: Ledger, setting: Setting) -> None:
    """A released file that exists is rewritten only from a ledger that has the last answer of everybody in it."""
    if not Path(output).exists():
        return
    last = _last_rows(output, setting.space)
    with ledger.transaction([user for user, _, _ in last]) as transaction:
        stored = [transaction.entry(user, setting.query, step) for user, step, _ in last]
    others = [
        user
        for (user, _, z), entry in zip(last, stored, strict=True)
        if entry is None or entry.z is None or list(entry.z) != z
    ]
    if others:
        came = f"a ledger without the releases in {Path(output).name} of {len(others)} users, {others[0]!r} among them"
        expected = f"the ledger that they are in, query {setting.query!r}; or -o a new file"
        raise InvalidInput("--ledger", came, expected)


def _last_rows(released: str, space: StateSpace) -> list[tuple[str, int, list[int]]]:
    """The last step of every user of a released file that was asked, by name, and its lattice answer."""
    from dphmm.storage.smoothed import answer_columns
    from dphmm.storage.tables import column_names, read_batches

    axes = answer_columns(space)
    if not {"user", "step", "plan", *axes} <= set(column_names(released)):
        raise InvalidInput("-o", f"{released}, which is no released file", "the file to rewrite, or a new one")
    last: dict[str, tuple[int, list[int]]] = {}
    for table in read_batches(released, columns=["user", "step", "plan", *axes], text=("user", "plan")):
        for user, step, z in _last_of(table, space):
            if user not in last or step >= last[user][0]:
                last[user] = step, z
    return [(user, *last[user]) for user in sorted(last)]


def _last_of(table: Any, space: StateSpace) -> Iterator[tuple[str, int, list[int]]]:
    """The last of each user's asked rows in a part of a released table."""
    import pyarrow as pa

    from dphmm.storage.columns import as_text, integers
    from dphmm.storage.smoothed import read_answers

    plans = as_text(table.column("plan"), "plan").to_pylist()
    table = table.filter(pa.array([bool(plan) for plan in plans], pa.bool_()))
    steps, _ = integers(table.column("step"), "step")
    z = read_answers(table, space, np.ones(len(steps), dtype=np.bool_))
    rows = pa.table({"user": as_text(table.column("user"), "user"), "step": steps, "row": np.arange(len(steps))})
    rows = rows.sort_by([("user", "ascending"), ("step", "ascending")])
    users = rows.column("user").dictionary_encode().combine_chunks().indices.to_numpy(zero_copy_only=False)
    last = rows.take(np.flatnonzero(np.diff(users, append=-1)))
    for user, step, row in zip(*last.to_pydict().values(), strict=True):
        yield user, step, z[row].tolist()


def note_no_ledger(given: Mapping[str, Any], console: Console) -> None:
    """Whoever resumes has a ledger in mind: another name would answer everybody once more."""
    if given["resume"] and given["ledger"] is not None and not Path(given["ledger"]).exists():
        name = Path(given["ledger"]).name
        console.note(f"--resume: there is no ledger {name} yet, so nobody is continued: everybody is answered anew")


def check_outputs(given: Mapping[str, Any]) -> None:
    """The output does not exist yet (unless it is resumed), can be written, and is none of the inputs.

    A dry run writes nothing: it needs neither output nor ledger, and what is named is checked all the same.
    """
    from dphmm.cli.owner_view import owner_path, rejected_path
    from dphmm.storage.inputs import checked_output
    from dphmm.storage.ledger.connection import ledger_path
    from dphmm.storage.statement import statement_path
    from dphmm.storage.tables import table_format

    output, ledger = given["output"], given["ledger"]
    if output is None and not given["dry_run"]:
        raise InvalidInput("-o", "nothing", "the file to write")
    if ledger is None and not given["dry_run"]:
        raise InvalidInput("--ledger", "nothing", "the file that keeps what was released and spent")
    if ledger is not None:
        ledger_path(ledger)
    if output is None:
        return
    table_format(output, "-o")
    named = (ledger, given["choices"], given["initials"])
    inputs = [given["trajectories"], given["model"], given["policy"], *(path for path in named if path is not None)]
    for path in (Path(output), statement_path(output), rejected_path(output), owner_path(output)):
        checked_output(path, inputs, "-o")
    if not Path(output).exists():
        return
    if not given["resume"]:
        raise InvalidInput("-o", f"{output}, which exists", "a new file, or --resume to continue and rewrite it")
    if ledger is not None and not Path(ledger).exists():
        # Opening it would make one.
        expected = f"the ledger that the releases in {Path(output).name} are in; or -o a new file"
        raise InvalidInput("--ledger", f"{ledger}, which does not exist", expected)
