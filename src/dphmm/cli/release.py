"""dphmm release: the releases of many people's trajectories, and --dry-run, the plans of their first steps.

Every answer is stored in the ledger first; the released file appears at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from dphmm.accounting.ledger import MemoryLedger
from dphmm.accounting.records import in_short
from dphmm.cli.console import BAD_INPUT, REJECTED, Console, Row, aligned, fields_named, print_json, reworded
from dphmm.cli.guarantees import both_rows, coming_rows, covered_rows, model_warning
from dphmm.cli.options import ONE_OF_MANY, command, spelling_of
from dphmm.cli.release_job import (
    Job,
    ReleaseOptions,
    agree_to_no_limit,
    checked_batch,
    in_folder,
    ledger_of,
    note_new_ledger,
    people,
    release_stream,
    told_if_interrupted,
)
from dphmm.setup.releasing import FolderRelease, check_spelling
from dphmm.statement.parts import document
from dphmm.states.space import LABELS_WRONG
from dphmm.storage.inputs import checked_input, steady
from dphmm.storage.private_tables import in_words
from dphmm.storage.release_folder import COUNTS
from dphmm.storage.release_folder import REJECTED as UNREADABLE
from dphmm.storage.tables import column_names
from dphmm.storage.trajectories import by_reason, load_visits

if TYPE_CHECKING:
    from dphmm.cli.console import Work
    from dphmm.release.batch import Batch
    from dphmm.statement.release import ReleaseStatement
    from dphmm.states.visit_table import VisitTable
    from dphmm.storage.ledger import SqliteLedger
    from dphmm.storage.released import FileSums
    from dphmm.storage.trajectories import LoadedVisits, Watch


@command("release", ReleaseOptions)
def release(options: ReleaseOptions) -> int:
    """Release trajectories step by step into a folder: one noisy answer per person and time step.

    Everything is checked first. Each answer is stored in the ledger with its cost before it can be seen; the rows and
    their privacy statement appear in OUT at the end. OUT may be published as it is, OUT.owner is for you alone.
    Interrupted, the same command continues; people whom the ledger knows are continued, and their answers stay.

    A place or name that is no state is released like any other row; rows that cannot be read are listed in
    OUT.owner/rejected.csv (exit 3). People whom a schedule leaves without any answer are counted aloud (exit 3). A
    table that cannot be meant is not begun (exit 2): with less than 5 % of its rows in states of the model, without a
    row at a step that is asked, or of fewer people than --min-people; dphmm check says more. Lines of - are not checked
    so. Where neither a promise nor a cap limits what all answers say together, it is said what a reader then finds, and
    asked whether to go on; without a terminal, and for -, --yes does (exit 2). How many rows were in no state, and how
    often a true state was not in the plan set, is in OUT.owner/counts.json.

    TRAJ may be - for JSON lines: {"user": "a", "t": "2024-01-01T08:00:00Z", "lat": 1.0, "lon": 2.0} or with
    "state"; answers are JSON lines, each stored before it is printed. With a model that has a time step, a time bin
    is answered once it has closed: when a line of a later bin comes, from anybody, or the input ends. Until then
    nothing is printed; --answer first answers the first line of a bin at once.
    """
    console = Console(options.quiet)
    with fields_named({"folder": "-o"}):
        options = in_folder(options)
        job = Job.of(options)
        if options.trajectories == "-":
            return release_stream(job.scheduled(options), options, console)
        if options.dry_run:
            return preview(job.scheduled(options), options, console)
        return release_file(job, options, console)


#: From so many steps on a release can take longer than a few seconds.
_LONG = 100_000
#: Seconds of learning that are told ahead.
_LONG_LEARNING = 10
#: What gives people whom a schedule leaves out an answer; the first if steps are times.
_MORE_ROWS = (
    "dphmm plan --hours asks in the hours that have rows, a model with a longer --step has more rows at each step"
)
_MORE_ANSWERS = "more answers of less epsilon each ask at more steps (dphmm plan --epsilon)"


def release_file(job: Job, options: ReleaseOptions, console: Console) -> int:
    """Release every row of a file; returns the exit code."""
    from dphmm.statement.story import after_sequence_words
    from dphmm.statement.warnings import release_warnings

    loaded, sha256 = read_rows(job, options)
    rows = loaded.visits
    check_spelling(options.spelling, options.ledger, rows.users, loaded.alike)
    if job.open_schedule and not options.although:
        checked_batch(job, rows, options, console)
    job = job.scheduled(options)
    batch = checked_batch(job, rows, options, console)
    owners = people(job, rows, sha256, options, console)
    agree_to_no_limit(batch, options, console, rows.users)
    note_new_ledger(options, console)

    @contextmanager
    def during(ledger: SqliteLedger) -> Iterator[Work | None]:
        before = ledger.count_releases(options.query)
        model_warning(job.model, owners, console, release=True)
        for warning in release_warnings(batch.setting):
            console.warn(warning)
        console.say(work_ahead(rows))
        go_on = "; the same command continues after them"
        with told_if_interrupted(options, before, lambda: go_on), console.progress("release") as progress:
            yield progress

    place, table = options.place, options.table
    assert place is not None and table is not None
    output = place, table, Path(ledger_of(options))
    done = FolderRelease(batch, job.planned, *output, options.spelling, options.new).write(
        loaded, owners, options.trajectories, during
    )
    published, statement = done.published, done.statement
    if done.unanswered is not None:
        remedy = _MORE_ANSWERS if job.model.step is None else f"{_MORE_ROWS}, and {_MORE_ANSWERS}"
        console.warn(f"{done.unanswered}; {remedy}")
    if done.after and statement.promise is not None and statement.promise.steps is not None:
        console.note(after_sequence_words(done.after, published.rows, statement.promise.steps))
    if (seconds := done.released.drawn.seconds) > _LONG_LEARNING:
        console.say([("", f"learning how people move from the answers: at most about {seconds:.0f} s")])
    with console.progress("learn") as learning:
        learned = done.released.learn(keep=True, progress=learning or False)
    story = done.released.story
    document = _document(done.batch, published, statement, loaded) | story.document() | {"learned": learned.document()}
    if options.as_json:
        counts = Path(str(options.output)).with_name(place.owner.name) / COUNTS
        print_json({**document, "output": options.output, "owner_counts": str(counts)})
    summary = [*_summary(document, statement, str(options.output), place.owner.name), ("learned", learned.words)]
    console.say([*story.rows(), *summary, *both_rows(statement.learning)])
    return REJECTED if done.rejected or done.unanswered is not None else 0


def read_rows(job: Job, options: ReleaseOptions, watch: Watch | None = None) -> tuple[LoadedVisits, str]:
    """The rows to release and those that were set aside, and the file's SHA-256; ``watch`` as `load_visits`."""
    path = checked_input(options.trajectories, "TRAJ")
    with steady(path) as sha256:
        loaded = load_visits(
            path,
            job.space,
            job.model.step,
            options.answer,
            state_column=options.state_column,
            spelling=spelling_of(options.spelling, options.ledger),
            watch=watch,
        )
        job.check_times(loaded.visits, column_names(path))
        return loaded, sha256


def work_ahead(rows: VisitTable) -> list[Row]:
    """The amount of work, if it takes long: from the people and the steps of rows, which are public.

    For people who are continued, some of it is done already.
    """
    first, last = rows.ends
    # In Python's integers, which do not overflow.
    releases, through = rows.n_visits, sum((last - first + 1).tolist())
    if through < _LONG:
        return []
    skipped = f", and {through - releases:,} steps without a row to predict through" if through > releases else ""
    return [("", f"ahead: {releases:,} rows of {len(rows):,} subjects{skipped}; this can take minutes")]


def _document(batch: Batch, published: FileSums, statement: ReleaseStatement, loaded: LoadedVisits) -> dict[str, Any]:
    report, totals, facts = batch.report, statement.totals, document(statement)
    return {
        "rows": report.rows + len(loaded.rejected) + loaded.without_place,
        "rejected": by_reason(loaded.rejected),
        "without_place": loaded.without_place,
        "same_step": report.same_step,
        "answer": batch.answer,
        "late": report.late,
        "released": published.rows - published.not_asked,
        "not_asked": published.not_asked,
        "people_without_an_answer": 0 if published.constants else published.unanswered,
        "stored_before": report.replayed,
        "subjects": published.subjects,
        "skipped_steps": report.skipped_steps,
        "plans": len(published.plans),
        "mechanisms": dict(published.mechanisms),
        "epsilon_per_release": statement.epsilon,
        "varied": facts.get("varied"),
        "beginnings": facts.get("beginnings"),
        "sequence": facts.get("sequence"),
        "covered_distance": facts["covered_distance"],
        "largest_epsilon_sum": totals.epsilon_sum,
        "largest_cost_sum": totals.cost_sum,
        "secure": statement.randomness.secure,
        "model_people": statement.model.people,
        "model_people_known_by": statement.model.people_known_by,
        "private": statement.private,
        "reasons": statement.reasons,
        "learning": facts["learning"],
    }


def _summary(document: Mapping[str, Any], statement: ReleaseStatement, output: str, owner: str) -> list[Row]:
    """The other facts about the rows and totals, and the places of all files."""
    from dphmm.statement.sentences import plural, wrapped_row

    # What did not happen is not mentioned.
    listed = f"{in_words(document['rejected'])}; listed in {owner}/{UNREADABLE}"
    people = statement.subjects.words["people"]
    stored, same, late = document["stored_before"], document["same_step"], document["late"]
    skipped, answer, nowhere = document["skipped_steps"], document["answer"], document["without_place"]
    rows = [
        (stored, "stored before", f"{stored:,} answers, which stay as they were"),
        (same, "left out", f"{plural(same, 'row')}: one answer per time step, the {answer} row counts"),
        (late, "late", f"{late:,} rows not released: later rows of their {people} came before them"),
        (skipped, "skipped steps", f"{skipped:,} without a row: nothing is asked there"),
        (document["rejected"], "set aside", listed),
        (nowhere, "without place", f"{nowhere:,} rows with empty cells there: they have no answer"),
        (True, "written", f"{output}, which may be published as it is; {owner} is for you alone"),
    ]
    shown = [(label, text) for mentioned, label, text in rows if mentioned]
    if click.get_current_context().obj != ONE_OF_MANY:
        shown.append(("next", f"dphmm report {quote(output)}"))
    # A command is one line, to be copied.
    return [row for pair in shown for row in ([pair] if pair[0] == "next" else wrapped_row(*pair))]


def preview(job: Job, options: ReleaseOptions, console: Console) -> int:
    """Print what a release would do; returns the exit code."""
    from dphmm.choose.details import release_preview
    from dphmm.evaluation.table_check import Unplaced, table_check
    from dphmm.statement.release import CoveredDistance
    from dphmm.statement.warnings import release_warnings

    seen = Unplaced(job.space)
    loaded, sha256 = read_rows(job, options, seen.add)
    rows = loaded.visits
    owners = people(job, rows, sha256, options, console)
    batch = job.batch(MemoryLedger(spelling_of(options.spelling, options.ledger)))
    check = table_check(batch, loaded, seen, options.trajectories, budget=False) if options.check else None
    agree_to_no_limit(batch, options, console)
    rejected = by_reason(loaded.rejected)
    facts = release_preview(batch, rows)
    counted = {"rejected": rejected, "without_place": loaded.without_place}
    document: dict[str, Any] = {"rows": rows.n_rows + sum(rejected.values()) + loaded.without_place, **counted, **facts}
    document |= {} if check is None else {"check": asdict(check)}
    schedule = batch.setting.schedule
    most = "" if schedule is None or schedule.kind != "paced" else "at most "
    least_each, most_each = batch.subjects.epsilons
    if options.as_json:
        print_json(document)
    else:
        lines: list[Row] = [
            ("rows in", f"{document['rows']} of {len(rows)} subjects"),
            ("would release", f"{most}{document['would_release']} rows"),
            ("set aside", in_words(rejected) or "none"),
        ]
        if schedule is not None:
            lines.append(("not asked", f"{'' if not most else 'at least '}{document['not_asked']} rows: {schedule}"))
        for plan in document["plans"]:
            lines.append((f"plan of step {plan['step']}", plan_words(plan, document["answer_unit"])))
        sums = most if least_each == most_each else "at most "
        lines += covered_rows(CoveredDistance.of(batch.subjects.policies, batch.setting.space), most_each)
        largest = in_short(document["largest_epsilon_sum"])
        lines.append(("epsilon sum", f"{sums}{largest} for the subject with most rows"))
        if document["sequence"] is not None:
            lines.append(("over paths", document["sequence"]))
        lines += coming_rows(job.model, owners.people)
        click.echo("\n".join([*aligned(lines), *([] if check is None else ["", *map(reworded, check.lines())])]))
    model_warning(job.model, owners, console, release=True)
    for warning in release_warnings(batch.setting):
        console.warn(warning)
    console.say([("", "dry run: nothing was drawn, nothing was spent, nothing was written")])
    if check is not None and check.stops and not options.although:
        return BAD_INPUT
    return REJECTED if rejected else 0


def plan_words(plan: Mapping[str, Any], unit: str) -> str:
    """A plan for people."""
    if plan["constant"]:
        return "a public constant: every possible state has the same answer; cost 0"
    error = f"root mean square error {plan['expected_error']:.4g} {unit}"
    if unit == LABELS_WRONG:
        error = f"{plan['expected_error']:.1%} {unit}"
    return (
        f"{plan['plan_states']} of {plan['possible_states']} possible states, {plan['mechanism']}, "
        f"{error}, epsilon {in_short(plan['epsilon'])}, cost {in_short(plan['cost'])}"
    )
