"""From a file of trajectories to a released file: stored in the ledger first, the file appears at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dphmm.cli.console import Console, Row, print_json
from dphmm.cli.outcomes import SET_ASIDE, Interrupted
from dphmm.cli.release_job import Job, check_outputs, check_resumed, note_no_ledger, people

if TYPE_CHECKING:
    from dphmm.batch import Batch
    from dphmm.session.subjects import Subjects
    from dphmm.states.visit_table import VisitTable
    from dphmm.storage.release_words import Story
    from dphmm.storage.statement import Published
    from dphmm.storage.statement_types import ReleaseStatement
    from dphmm.storage.trajectories import LoadedVisits

#: From so many steps on a release can take longer than a few seconds.
_LONG = 100_000
#: What is told of what a reader finds, where no plan has expected anything.
_NOT_EXPECTED = "no plan has computed it; dphmm report (next) does, from public data alone"


def release_file(job: Job, given: Mapping[str, Any], console: Console) -> int:
    """Release every row of a file; returns the exit code."""
    from dphmm.cli.owner_view import (
        by_reason,
        name_counts,
        owner_counts,
        owner_path,
        rejected_path,
        write_counts,
        write_rejected,
    )
    from dphmm.cli.public_warnings import both_rows, first_step_warnings, whom_warning
    from dphmm.cli.release_total import budget_plan_rows, check_before_search, check_total, with_budget_plan
    from dphmm.storage.ledger import COMMANDS, open_ledger
    from dphmm.storage.statement import Published, privacy_statement, write_statement

    check_outputs(given)
    note_no_ledger(given, console)
    loaded, sha256 = read_rows(job, given)
    rows = loaded.visits
    check_before_search(job, rows, given)
    job = with_budget_plan(job, console)
    published = Published()
    owners = people(job, rows, sha256, given, console)
    with open_ledger(given["ledger"]) as ledger, ledger.lease(COMMANDS):
        batch = job.batch(ledger)
        check_resumed(given["output"], ledger, batch.setting)
        batch.check_choices(rows.users)
        check_total(job, rows, batch.setting.query, ledger)
        whom_warning(job.model, owners, console)
        for warning in [*first_step_warnings(batch), *unmatched(batch.subjects, rows)]:
            console.warn(warning)
        console.say(work_ahead(rows))
        with _kept(batch, given), console.progress("release") as progress:
            _write(batch, rows, given, published, progress)
    statement = privacy_statement(
        published,
        model=job.model,
        policy=job.policy,
        space=job.space,
        options=batch.setting.options,
        query=batch.setting.query,
        answer=batch.answer,
        model_people=owners.people,
        known_by=owners.known_by,
        horizon=None if job.budget_plan is None else job.budget_plan.document(),
        sequence=batch.caps.promise,
        schedule=batch.setting.schedule,
        subjects=batch.subjects,
    )
    with _kept(batch, given):
        write_statement(given["output"], statement)
        write_rejected(rejected_path(given["output"]), loaded.rejected, given["trajectories"])
        report, set_aside = batch.report, by_reason(loaded.rejected)
        fresh = published.rows - published.not_asked - report.replayed
        counts = owner_counts(rows.in_steps, report.outside, fresh, report.drifted, set_aside)
        write_counts(owner_path(given["output"]), counts)
    told = _told(job, batch, statement)
    document = _document(batch, published, statement, set_aside, len(loaded.rejected)) | told.document()
    if given["as_json"]:
        print_json({**document, "output": given["output"], "owner_counts": str(owner_path(given["output"]))})
    console.say(
        [
            *told.rows(_NOT_EXPECTED),
            *_summary(document, given),
            *both_rows(document["learning"]),
            *budget_plan_rows(job),
        ]
    )
    if statement.totals.cost_unbounded_because:
        # A later step may be the first whose cost has no bound.
        console.warn(f"the cost is unbounded: {statement.totals.cost_unbounded_because}")
    name_counts(owner_path(given["output"]), given, console)
    return SET_ASIDE if set_aside else 0


def read_rows(job: Job, given: Mapping[str, Any]) -> tuple[LoadedVisits, str]:
    """The rows to release and those that were set aside, and the file's SHA-256."""
    from dphmm.storage.inputs import checked_input, steady
    from dphmm.storage.tables import column_names
    from dphmm.storage.trajectories import load_visits

    path = checked_input(given["trajectories"], "TRAJ")
    with steady(path) as sha256:
        loaded = load_visits(path, job.space, job.model.step, given["answer"], state_column=given["state_column"])
        job.check_times(loaded.visits, column_names(path))
        return loaded, sha256


def unmatched(subjects: Subjects, rows: VisitTable) -> list[str]:
    """What public tables choose for steps and users that no row has: a wrong year, another spelling of a name."""
    said, chosen, begun = [], subjects.chosen.keys(), subjects.initials.keys()
    if chosen:
        alone = set(chosen).difference(*(rows.steps_of(*part).tolist() for part in rows.parts()))
        if alone:
            said.append(f"--choices: {len(alone)} of its {len(chosen)} steps have no row, {min(alone)} among them")
    strange = begun - set(rows.users)
    if strange:
        said.append(f"--initials: {len(strange)} of its {len(begun)} users have no row, {min(strange)!r} among them")
    return said


def work_ahead(rows: VisitTable) -> list[Row]:
    """How much there is to do, where that takes long: from who has rows at which steps, which is public.

    With --resume some of it is done already.
    """
    first, last = rows.ends
    # In Python's integers, which do not overflow.
    releases, through = rows.n_visits, sum((last - first + 1).tolist())
    if through < _LONG:
        return []
    skipped = f", and {through - releases:,} steps without a row to predict through" if through > releases else ""
    return [("", f"ahead: {releases:,} rows of {len(rows):,} subjects{skipped}; this can take minutes")]


def _write(batch: Batch, rows: VisitTable, given: Mapping[str, Any], published: Published, progress: Any) -> None:
    from dphmm.storage.released import released_table
    from dphmm.storage.tables import table_writer

    write = None
    with ExitStack() as stack:
        for chunk in batch.run(rows, resume=given["resume"], raised=given["raise_cap"], progress=progress):
            if not chunk:
                continue
            published.add(chunk)
            table = released_table(chunk, batch.setting.space)
            if write is None:
                write = stack.enter_context(table_writer(given["output"], table.schema))
            write(table)


@contextmanager
def _kept(batch: Batch, given: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Interrupted(
            f"interrupted: at least {batch.report.released} releases are stored in {Path(given['ledger']).name} and "
            f"paid for; --resume continues after them, and writes {Path(given['output']).name} and its statement",
            stop,
        ) from None


def _document(
    batch: Batch, published: Published, statement: ReleaseStatement, set_aside: dict[str, int], rejected: int
) -> dict[str, Any]:
    from dphmm.storage import statement_types

    report, totals, told = batch.report, statement.totals, statement_types.document(statement)
    return {
        "rows": report.rows + rejected,
        "set_aside": set_aside,
        "same_step": report.same_step,
        "answer": batch.answer,
        "late": report.late,
        "released": published.rows - published.not_asked,
        "not_asked": published.not_asked,
        "stored_before": report.replayed,
        "subjects": published.subjects,
        "skipped_steps": report.skipped_steps,
        "plans": len(published.plans),
        "mechanisms": dict(published.mechanisms),
        "epsilon_per_release": statement.epsilon,
        "varied": told.get("varied"),
        "beginnings": told.get("beginnings"),
        "sequence": told.get("sequence"),
        "covered_distance": told["covered_distance"],
        "largest_epsilon_sum": totals.epsilon_sum,
        "epsilon_sum_meaning": totals.epsilon_sum_meaning,
        "largest_cost_sum": totals.cost_sum,
        "cost_sum_meaning": totals.cost_sum_meaning,
        "secure": statement.randomness.secure,
        "model_people": statement.model.people,
        "model_people_known_by": statement.model.people_known_by,
        "private": statement.private,
        "not_private_because": statement.not_private_because,
        "unknown_because": statement.unknown_because,
        "learning": told["learning"],
    }


def _told(job: Job, batch: Batch, statement: ReleaseStatement) -> Story:
    """The five answers about a release: nothing of them follows from where people are."""
    from dphmm.storage.release_words import story

    found = None if job.planned is None else job.planned.found
    return story(statement, batch.caps.promise, batch.setting.schedule, found, batch.caps.epsilon)


def _summary(document: Mapping[str, Any], given: Mapping[str, Any]) -> list[Row]:
    """What else is to be known of the rows and totals, and where everything lies."""
    from dphmm.accounting.records import in_short
    from dphmm.cli.owner_view import in_words

    output = given["output"]
    name, cost = Path(output).name, in_short(document["largest_cost_sum"])
    rows = [
        ("stored before", f"{document['stored_before']} answers, which stay as they were"),
        ("same step", f"{document['same_step']} rows not released: the {document['answer']} of a step is answered"),
        ("late", f"{document['late']} rows not released: an earlier run has passed over their steps"),
        ("skipped steps", f"{document['skipped_steps']} without a row: predicted through, and recorded"),
        ("set aside", f"{in_words(document['set_aside'])}; listed in {name}.rejected.csv"),
        ("epsilon sum", f"{document['epsilon_sum_meaning']}"),
        ("cost sum", f"at most {cost} per subject: {document['cost_sum_meaning']}"),
        ("written", f"{output} and its privacy statement {name}.privacy.json"),
        ("next", f"dphmm report {output} --model {given['model']}{_tables(given)} -o report.html"),
    ]
    # What did not happen is not mentioned; sums over all time matter where nothing bounds a day.
    counted = {
        "stored before": "stored_before",
        "same step": "same_step",
        "late": "late",
        "skipped steps": "skipped_steps",
        "set aside": "set_aside",
    }
    kept = [row for row in rows if row[0] not in counted or document[counted[row[0]]]]
    return kept if document["sequence"] is None else [row for row in kept if not row[0].endswith(" sum")]


def _tables(given: Mapping[str, Any]) -> str:
    """The options of the public tables: whoever reads the release again needs them, and the policy."""
    found = [f" --{name} {given[name]}" for name in ("choices", "initials") if given[name] is not None]
    return f" --policy {given['policy']}{''.join(found)}" if found else ""
