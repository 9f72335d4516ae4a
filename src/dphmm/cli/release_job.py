"""The job of a release: the options of dphmm release, loaded and checked before anything is drawn; and a stream.

`release_stream` serves dphmm release -: lines of standard input, each answered on standard output after it has been
stored. The privacy statement of a stream is written when it ends, however it ends.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields, replace
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from dphmm._checks import stated_epsilon
from dphmm.accounting.event import learning_event
from dphmm.accounting.ledger import MemoryLedger
from dphmm.accounting.person import SPELLINGS
from dphmm.accounting.promise import Schedule
from dphmm.cli.console import REJECTED, Console, Interrupted, Row, fields_named, option_of, stage_of
from dphmm.cli.guarantees import coming_rows, covered_rows, model_warning
from dphmm.cli.options import (
    SPELLING,
    OneOf,
    PromiseOptions,
    argument,
    flag,
    loaded_model,
    loaded_policy,
    loaded_setting,
    option,
    spelling_of,
)
from dphmm.errors import InvalidInput
from dphmm.policy import complete
from dphmm.session.options import PLAN_CHOICES
from dphmm.setup.publishing import PublicSide, keep_plans
from dphmm.setup.releasing import kept_ledger, new_ledger_words
from dphmm.storage.ledger import COMMANDS, open_ledger
from dphmm.storage.ledger.connection import ledger_path
from dphmm.storage.private_tables import owner_counts, owner_path, write_counts
from dphmm.storage.release_folder import COUNTS, INDEX, ReleaseFolder
from dphmm.storage.tables import SUFFIXES

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.choose.schedule_plan import SchedulePlan
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.release.batch import Batch, ReleasedRow
    from dphmm.release.stream import BadLine, Line, Stream
    from dphmm.session.setting import Setting
    from dphmm.statement.origin import Whom
    from dphmm.states.space import StateSpace
    from dphmm.states.visit_table import VisitTable
    from dphmm.storage.models import People
    from dphmm.types import Exact


@dataclass(frozen=True, kw_only=True)
class TableOptions(PromiseOptions):
    """Options of dphmm release about the answers to a table, which dphmm check takes too."""

    epsilon: str | None = option(
        "The promise of each release given the past: 1, 0.5  [default: of a promise over paths each step's share]", "E"
    )
    hours: tuple[str, ...] = option(
        "With --per 1d: ask at these times of the clock alone, 08:00,20:00.", "HH:MM", default=()
    )
    schedule: Literal["every", "planned", "staggered", "paced"] = option(
        "With --path-epsilon: ask at every step; or at the steps, and as strongly, as dphmm plan would choose.",
        default="every",
    )
    plan: str | None = option(
        "A plan as dphmm plan writes it: its promise, schedule and epsilon, instead of those options.", "FILE"
    )
    ledger: str | None = option(
        "Where every release and its cost are stored before anyone sees it  [default: ledger.db beside OUT]", "FILE"
    )
    spelling: str | None = option(SPELLING, type=OneOf(SPELLINGS))
    query: str = option(
        "A name for what is asked; a subject has one answer per query and step.", "NAME", default="state"
    )
    answer: Literal["last", "first"] = option(
        "Of several rows of a subject in one time bin, or one step, the last in time is answered, or the first. A "
        "stream answers the last once its bin has closed, and the first at once.",
        default="last",
    )
    cap_epsilon: str | None = option("Refuse a release that brings a subject's sum of epsilons above this.", "E")
    cap_cost: str | None = option("Refuse a release that brings a subject's sum of costs above this.", "C")
    min_people: int = option("Stop a table of fewer.", "N", type=click.IntRange(1), default=1)
    state_column: str | None = option("The column of state names  [default: state]", "COL")


@dataclass(frozen=True, kw_only=True)
class ReleaseOptions(TableOptions):
    """The options of dphmm release."""

    trajectories: str = argument("TRAJ")
    model: str = option("The model, as dphmm fit writes it.", "M", required=True)
    policy: str | None = option("The policy, as dphmm policy writes it.", "P", required=True)
    output: str | None = option("The folder to write; of a stream a new one.", "OUT", "-o", "--output")
    format: Literal["csv", "parquet"] = option("Of the rows in OUT.", default="csv")
    new: bool = flag("Refuse people whom the ledger knows.")
    although: bool = flag("Release a table also if it looks like a mistake.")
    check: bool = flag("Do not check the table for mistakes.", default=True)
    yes: bool = flag("Go on without a limit on the total; the output still says what a reader can find.")
    dry_run: bool = flag("Print the plans of the first steps; draw, spend and write nothing.")
    noun: str = option(
        "The noun for a subject of the rows, on the page and in the statement: vessel, case, device.",
        "WORD",
        default="person",
    )
    case_names: Literal["random", "kept"] | None = option(
        "Rows are cases, called so by dphmm import events: the statement says what names, times and lengths tell."
    )
    times: Literal["none", "day", "exact"] = option("The published times of the events of cases.", default="none")
    length: int | None = option("Of cases that dphmm import events gave --length N.", "N")
    model_people: Literal["unknown", "others", "same"] | None = option(
        "Whom the model was fitted on, for the privacy statement: others than those released (or nobody)?  "
        "[default: what the user names in M.people tell, else unknown]"
    )
    #: The folder of the release and the table in it, once `in_folder` has checked them; of a dry run none.
    place: ReleaseFolder | None = None
    table: Path | None = None


#: Options of the command that are choices of the batch.
_CHOICES = (
    "cap_epsilon", "cap_cost", "query", "answer", "check", "although", "min_people", "noun", "case_names", "times",
    "length",
)  # fmt: skip


@dataclass(frozen=True)
class Job:
    """The public side of a release."""

    model: MarkovModel
    policy: PolicyGraph
    space: StateSpace
    epsilon: Exact | None
    choices: Mapping[str, Any]
    #: What a schedule was chosen from, where it is at hand.
    planned: SchedulePlan | None = None
    #: Whether the schedule is still to be planned, which can take minutes; until then the epsilon may be the total.
    open_schedule: bool = False

    @classmethod
    def of(cls, options: ReleaseOptions, any_mechanism: bool = False) -> Job:
        """The job of a command's options, whose schedule may be unplanned; InvalidInput for any that cannot be.

        ``any_mechanism``: leave that of the policy's file out, for a look at rows alone.
        """
        check_asked(options)
        model, space = loaded_model(options.model)
        policy: PolicyGraph = complete(space.n_states)
        if options.policy is not None:
            policy, space = loaded_policy(options.policy, model)
        setting = loaded_setting(options.policy, space)
        if any_mechanism:
            setting.pop("mechanism", None)
        choices: dict[str, Any] = {name: getattr(options, name) for name in _CHOICES}
        choices = {name: choice for name, choice in choices.items() if choice is not None} | setting
        if "protection" not in setting and (protection := _kept(options, "protection")) is not None:
            choices["protection"] = protection
        choices["promise"] = options.promise
        schedule, planned = asked_schedule(options, (model, policy, space), choices)
        choices |= schedule
        open_schedule = options.schedule != "every" and "schedule" not in schedule
        total = choices["promise"].exact if open_schedule else None
        epsilon = total if options.epsilon is None else stated_epsilon(options.epsilon)
        job = cls(model, policy, space, epsilon, choices, planned, open_schedule)
        # What no batch takes is refused now.
        job.batch(None)
        # A record of learning that contradicts itself is refused now, not when the statement is written.
        learning_event(model.provenance, options.model)
        return job

    def scheduled(self, options: ReleaseOptions) -> Job:
        """The job with its schedule, which is planned if it is open. Raises as `dphmm.choose.planning.plan`."""
        if not self.open_schedule:
            return self
        from dphmm.choose.planning import plan

        more: dict[str, Any] = {name: self.choices[name] for name in PLAN_CHOICES if name in self.choices}
        more |= {"schedule": options.schedule, "epsilon": options.epsilon}
        public = (self.model, self.policy, self.space, self.choices["promise"])
        with Console(options.quiet).progress("plans") as progress:
            planned = plan(*public, progress=progress or False, **more)
        choices = {**self.choices, "schedule": planned.schedule}
        epsilon = None if options.epsilon is None else self.epsilon
        return replace(self, epsilon=epsilon, choices=choices, planned=planned, open_schedule=False)

    def batch(self, ledger: Ledger | None) -> Batch:
        """The releases of this job, kept in a ledger."""
        from dphmm.release.batch import Batch

        public = (self.model, self.policy, self.space, self.epsilon)
        return Batch(*public, ledger=ledger, **self.choices)

    def check_times(self, rows: VisitTable, columns: Sequence[str]) -> None:
        """InvalidInput for a table without times or a column of steps, where the model has time steps."""
        step = self.model.step
        if step is not None and rows.time is None and "step" not in columns:
            raise InvalidInput(
                "t",
                "no times",
                f"times (dphmm import csv with --time-column): the model has steps of {step} s; or a column step",
            )


def fitted_on(job: Job, options: ReleaseOptions, console: Console) -> People | None:
    """The people that the model was fitted on without privacy, where dphmm fit wrote them beside it."""
    from dphmm.storage.models import load_people

    if job.model.provenance.get("private") is True:
        return None
    return load_people(options.model, console.warn)


def people(job: Job, rows: VisitTable, sha256: str, options: ReleaseOptions, console: Console) -> Whom:
    """The people that the model was fitted on, by the owner's word, the user names and the file's hash.

    Raises InvalidInput, before anything is drawn, if the owner says others and the names or the hash say the same.
    """
    from dphmm.statement.origin import whom, whom_of
    from dphmm.storage.models import people_path

    known, declared = fitted_on(job, options, console), options.model_people
    same_file = job.model.provenance.get("source_sha256") == sha256
    among = None if known is None else known.has_one_of(rows.users)
    if declared == "others" and same_file:
        raise InvalidInput("--model-people", "others, of a model that was fitted on this very file", "same, or nothing")
    if declared == "others" and among:
        path = people_path(options.model).name
        got = "others, of a model that was fitted on somebody with the user name of one who is released"
        raise InvalidInput("--model-people", got, f"same, or nothing; if only the names are alike, remove {path}")
    return whom_of(job.model.provenance, whom(declared, among, same_file))


@contextmanager
def told_if_interrupted(options: ReleaseOptions, before: int, continues: Callable[[], str]) -> Iterator[None]:
    """Answer Ctrl-C with what this run has stored, as the ledger counts it, and how to go on.

    ``before``: the releases of the query when the run began. A loop that is interrupted has not seen its last commit.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        with open_ledger(ledger_of(options), read_only=True) as ledger:
            stored = ledger.count_releases(options.query) - before
        releases = f"{stored:,} releases of this run are stored in {Path(ledger_of(options)).name} and paid for"
        raise Interrupted(f"interrupted: {releases}{continues()}", stop) from None


def checked_batch(job: Job, rows: VisitTable, options: ReleaseOptions, console: Console) -> Batch:
    """The batch of a job whose rows can be meant, or with --although a warning; the ledger is not written to.

    Raises InvalidInput for a table that cannot be meant.
    """
    with kept_ledger(options.ledger, options.spelling) as ledger:
        batch = job.batch(ledger or MemoryLedger(spelling_of(options.spelling, options.ledger)))
        with fields_named({"table": "TRAJ"}):
            stops = batch.check_meant(rows)
    for stop in stops:
        console.warn(f"TRAJ: {stop.came}; --although releases it as it is")
    return batch


def note_new_ledger(options: ReleaseOptions, console: Console) -> None:
    """Say that the ledger is new, if it is."""
    if (words := new_ledger_words(ledger_of(options))) is not None:
        console.note(words)


#: Options with which a total says over what it is.
_OF_PROMISE = ("steps", "window", "per", "zone")
#: What sets a limit.
_BUDGET = "--path-epsilon E --per 1d, or a plan (dphmm plan)"


def ledger_of(options: TableOptions) -> str:
    """The ledger of a release that draws, which `in_folder` has found."""
    assert options.ledger is not None
    return options.ledger


def names_limit(options: ReleaseOptions) -> bool:
    """True if options name a promise, a plan, which has one, or a cap; `Batch.limits` tells if it limits."""
    return any(
        limit is not None for limit in (options.path_epsilon, options.plan, options.cap_epsilon, options.cap_cost)
    )


def agree_to_no_limit(batch: Batch, options: ReleaseOptions, console: Console, users: Sequence[str] = ()) -> None:
    """Go on without a limit only if the owner agrees, who first gets the findings of a reader without one.

    That follows from the setting, which is public, and from no row. ``users``: nobody is asked if the ledger keeps a
    cap or a promise of every one of them. The owner agrees by --yes, or on a terminal, unless standard input has the
    lines of a stream; a dry run needs no agreement. Raises InvalidInput without it: nothing was drawn or written.
    """
    if batch.limited or _all_limited(batch, users, options):
        return
    goes_on = options.yes or options.dry_run
    if goes_on and console.quiet:
        return
    words = _without_limit(batch.setting, options.noun, console)
    if goes_on:
        console.say([("", words if options.yes else f"{words}; {_BUDGET} sets one")])
        return
    stream = options.trajectories == "-"
    agreed = None if stream else console.agrees(f"{words}; {_BUDGET} sets one", "go on without a limit?")
    if not agreed:
        raise no_limit_refused("" if agreed is False else words)


def no_limit_refused(words: str) -> InvalidInput:
    """The error if nobody agreed to go on without a limit; ``words``: a reader's findings, if not said yet."""
    expected = f"{_BUDGET}; or --yes, which goes on without a limit"
    return InvalidInput("--epsilon", "no limit with it", f"{expected}. {words}" if words else expected)


def _all_limited(batch: Batch, users: Sequence[str], options: ReleaseOptions) -> bool:
    """True if there are people, and the ledger keeps a limit of each."""
    with kept_ledger(options.ledger, options.spelling) as ledger:
        return ledger is not None and len(users) > 0 and all(batch.limits(ledger.caps(user)) for user in users)


def _without_limit(setting: Setting, noun: str, console: Console) -> str:
    """The findings of a reader without a limit, in words."""
    from dphmm.choose.planning import without_limit
    from dphmm.statement.warnings import no_limit

    with console.progress("no limit") as progress:
        stage_of(progress, "what a reader finds")
        findings = without_limit(setting)
    return no_limit(findings if isinstance(findings, str) else replace(findings, noun=noun))


def in_folder(options: ReleaseOptions) -> ReleaseOptions:
    """The options of a release with its folder (``place``), the ``table`` in it, and the ledger that counts it.

    The ledger is the one that the folder was released with, else that of --ledger, else ledger.db beside the folder. A
    dry run and a stream need no folder. Raises InvalidInput for a folder that cannot be one, before anything is made.
    """
    output, ledger, stream = options.output, options.ledger, options.trajectories == "-"
    if output is None:
        if not (options.dry_run or stream):
            raise InvalidInput("-o", "nothing", "the folder of the release, such as out")
        if stream and ledger is None:
            raise InvalidInput("--ledger", "nothing", "the file that keeps what was released and spent, or -o a folder")
        if ledger is not None:
            ledger_path(ledger)
        return options
    if Path(output).name.lower().endswith((*SUFFIXES, ".jsonl")):
        raise InvalidInput("-o", output, "the folder of the release, such as out: the rows lie in it")
    place = ReleaseFolder.of(output)
    if stream and (place.path / INDEX).exists():
        raise InvalidInput("-o", f"{output}, which exists", "a new folder: each run of a stream has its own")
    place.check()
    if not stream:
        place.check_source(options.trajectories)
    with fields_named({"ledger": "--ledger"}):
        path = place.ledger(ledger)
    ledger_path(path)
    table = place.path / "released.jsonl" if stream else place.table_or(f"released.{options.format}")
    return replace(options, ledger=str(path), place=place, table=table)


def check_asked(options: TableOptions) -> None:
    """An epsilon for each step, or a promise over paths."""
    if options.plan is not None:
        _check_plan_alone(options)
        return
    if options.hours and options.schedule != "every":
        raise InvalidInput("--hours", f"{options.hours[0]}, and --schedule", "one of the two: --hours is a schedule")
    if options.path_epsilon is not None:
        return
    total = "--path-epsilon with it: what all answers may lose together"
    if options.hours:
        raise InvalidInput("--hours", options.hours[0], total)
    if options.schedule != "every":
        raise InvalidInput("--schedule", options.schedule, total)
    for name in _OF_PROMISE:
        if (length := getattr(options, name)) is not None:
            raise InvalidInput(f"--{name}", length, "--path-epsilon with it: what may be lost there")
    if options.epsilon is None:
        others = "--path-epsilon and --steps, --window or --per"
        raise InvalidInput("--epsilon", "nothing", f"the promise of each release; or {others}")


def _check_plan_alone(options: TableOptions) -> None:
    """A plan has a promise and a schedule of its own."""
    for each in fields(TableOptions):
        value = getattr(options, each.name)
        if each.name in ("epsilon", "path_epsilon", *_OF_PROMISE, "schedule", "hours") and value != each.default:
            option = option_of(each.name)
            raise InvalidInput(option, f"{value}, and --plan", f"--plan without {option}: it has its own")


def asked_schedule(
    options: ReleaseOptions, public: tuple[MarkovModel, PolicyGraph, StateSpace], choices: Mapping[str, Any]
) -> tuple[dict[str, Any], SchedulePlan | None]:
    """The schedule of a release with the choices that it was planned with, and the plan it was chosen by.

    Nothing if every step is asked, or if it is still to be planned. For people who are continued the schedule
    is the one that the ledger's histories have, and its alternatives are not known.

    Raises InvalidInput for options other than the plan was made with.
    """
    if options.plan is not None:
        from dphmm.choose.schedule_plan import read_plan

        with fields_named({"path": "--plan", "plan": "--plan"}):
            planned = read_plan(options.plan, *public)
        # Those of the policy's file must be the same.
        for name, value in loaded_setting(options.policy, public[2]).items():
            if value != planned.options[name]:
                expected = f"{planned.options[name]}, which the plan was made with; or a plan that is made for {value}"
                raise InvalidInput(f"--setting {name}", f"{value} in the policy", expected)
        return {"schedule": planned.schedule} | {name: planned.options[name] for name in PLAN_CHOICES}, planned
    if options.hours:
        hours = [hour.strip() for several in options.hours for hour in several.split(",")]
        each = choices["promise"].exact / len(hours) if options.epsilon is None else options.epsilon
        schedule = Schedule(choices["promise"], each, hours=hours)
        # Times that the model's steps cannot tell apart are refused now.
        schedule.in_steps(public[0].step, 0)
        return {"schedule": schedule}, None
    if options.schedule == "every":
        return {}, None
    text = _kept(options, "schedule")
    stored = None if text is None else Schedule.read(text)
    same = stored is not None and (stored.promise, stored.kind) == (choices["promise"], options.schedule)
    return {"schedule": stored} if same else {}, None


def _kept(options: ReleaseOptions, option: str) -> str | None:
    """An option of the first history of the query in the ledger that a run goes on with; None without one."""
    with kept_ledger(None if options.new else options.ledger) as ledger:
        for subject, query in () if ledger is None else ledger.sessions():
            header = ledger.header(subject, query) if ledger is not None and query == options.query else None
            if header is not None:
                return header.options.get(option)
    return None


class Names:
    """The user names of a stream, held against those that the model was fitted on; warns of the first that is one."""

    def __init__(self, job: Job, options: ReleaseOptions, console: Console) -> None:
        from dphmm.storage.models import people_path

        self._model, self._declared, self._console = job.model, options.model_people, console
        self._people = fitted_on(job, options, console)
        self._among: bool | None = None
        if self._people is None or self._declared is not None:
            self._warn()
        else:
            console.note(f"whom the model was fitted on is told by the user names of the lines, with "
                         f"{people_path(options.model).name}")  # fmt: skip

    @property
    def whom(self) -> Whom:
        """The people that the model was fitted on, seen from the users met so far."""
        from dphmm.statement.origin import whom, whom_of

        return whom_of(self._model.provenance, whom(self._declared, self._among))

    def meet(self, user: str) -> None:
        """Compare the name of a user who has been answered."""
        if self._people is None or self._among:
            return
        self._among = self._people.has_one_of([user])
        if self._among:
            self._warn()

    def _warn(self) -> None:
        model_warning(self._model, self.whom, self._console, release=True)


@contextmanager
def stated(batch: Batch, options: ReleaseOptions, names: Names) -> Iterator[Callable[[ReleasedRow, str], None]]:
    """A function to call with every release and the line it was answered by; writes the statement at the end.

    The end may be an interrupt or an error: earlier answers were published.
    """
    if options.table is None or options.place is None:
        yield lambda released, line: None
        return
    from dphmm.release.stream import StreamStatement
    from dphmm.statement.files import statement_path

    statement, place, table = StreamStatement(batch), options.place, options.table
    with table.open("x", encoding="utf-8") as lines:

        def keep(released: ReleasedRow, line: str) -> None:
            statement.add(released, line)
            lines.write(line + "\n")
            lines.flush()

        try:
            yield keep
        finally:
            lines.close()
            statement.save(statement_path(table), names.whom)
            place.keep([table.name, statement_path(table).name])
            keep_plans(place, batch.setting, statement.plans)


_LONGEST_LINE = 65536


@dataclass
class _Lines:
    """The lines of standard input that can be read, or whose moment is a step; the others are answered and counted.

    The answer is their number and the reason.
    """

    space: StateSpace
    timed: bool
    number: int = 0
    rejected: Counter[str] = field(default_factory=Counter)

    def __iter__(self) -> Iterator[Line]:
        from dphmm.release.stream import BadLine, checked_line, parse_line

        for self.number, text in _lines():
            try:
                yield checked_line(parse_line(text, self.space.on_map), self.space, self.timed)
            except BadLine as error:
                moment = error.moment
                if self.timed or moment is None or moment.time is None or moment.step is not None:
                    self.refuse(error)
                else:
                    yield moment

    def refuse(self, error: BadLine) -> None:
        """Answer the line that was read last."""
        self.rejected[error.reason] += 1
        click.echo(f"line {self.number}: {error.reason}", err=True)


def release_stream(job: Job, options: ReleaseOptions, console: Console) -> int:
    """Answer lines of standard input until it ends; returns the exit code."""
    from dphmm.release.stream import Stream, answered_line
    from dphmm.statement.release import CoveredDistance
    from dphmm.statement.warnings import release_warnings

    _check(options)
    if options.case_names is not None:
        raise InvalidInput("--case-names", options.case_names, "a table of cases: lines of a stream are no whole cases")
    agree_to_no_limit(job.batch(None), options, console)
    lines = _Lines(job.space, job.model.step is not None)
    readable = iter(lines)
    # Nothing that can be read leaves no ledger behind.
    first = next(readable, None)
    if first is None and lines.rejected:
        raise InvalidInput("TRAJ", f"{lines.rejected.total()} lines, none of which can be read", "lines of its model")
    note_new_ledger(options, console)
    place, path = options.place, ledger_of(options)
    counts = owner_path(path) if place is None else place.owner / COUNTS
    if place is not None:
        place.create()
        PublicSide(job.model, job.policy, job.space, job.planned, job.batch(None).setting.options.mechanism).save(place)
    with open_ledger(path, spelling=options.spelling) as ledger, ledger.lease(COMMANDS):
        if place is not None:
            place.keep_ledger(path)
        before = ledger.count_releases(options.query)
        stream = Stream(job.batch(ledger), not options.new)
        names = Names(job, options, console)
        subjects = stream.batch.subjects
        console.say(covered_rows(CoveredDistance.of(subjects.policies, job.space), subjects.epsilons[1]))
        if coming := coming_rows(job.model, options.model_people or "unknown"):
            console.say(coming)
        for warning in release_warnings(stream.batch.setting):
            console.warn(warning)
        console.say(_waiting_rows(stream))
        if stream.batch.caps.promise is not None:
            console.say([("over paths", stream.batch.caps.promise.sentence())])
        if stream.batch.setting.schedule is not None:
            sentence = f"{stream.batch.setting.schedule}; lines of other steps have no answer"
            console.say([("schedule", sentence)])
        printed = 0
        with ExitStack() as at_end:
            at_end.callback(lambda: write_counts(counts, _counts(stream, lines.rejected)))
            answered = at_end.enter_context(stated(stream.batch, options, names))
            at_end.enter_context(told_if_interrupted(options, before, lambda: _continues(stream)))
            for released in _answers(stream, chain([] if first is None else [first], readable), lines):
                line = answered_line(released, job.space)
                # Before it is printed: an interrupt in between may count a line too many, never one too few.
                names.meet(released.user)
                answered(released, line)
                click.echo(line)
                sys.stdout.flush()
                printed += 1
    bad = lines.rejected.total()
    said = [f"{stream.released} releases of {len(stream.sessions)} subjects", f"{bad} lines set aside"]
    if stream.not_asked:
        said.append(f"{stream.not_asked} lines not asked by the schedule")
    if printed > stream.released + stream.not_asked:
        said.append(f"{printed - stream.released - stream.not_asked} lines given stored answers")
    if stream.same_step:
        said.append(f"{stream.same_step} lines not answered: one answer per subject and step")
    console.say([("", ", ".join(said))])
    console.say([("", f"counts for you alone, never to be published: {counts.name}")])
    return REJECTED if bad else 0


def _answers(stream: Stream, asked: Iterable[Line], lines: _Lines) -> Iterator[ReleasedRow]:
    """The answers that lines make due, and at the end of input those of the bin that is still open."""
    from dphmm.release.stream import BadLine

    for line in asked:
        try:
            yield from stream.take(line)
        except BadLine as error:
            lines.refuse(error)
    yield from stream.end()


def _waiting_rows(stream: Stream) -> list[Row]:
    """The reason why nothing is printed yet, if lines wait for their bin to close."""
    if not stream.binned:
        return []
    bins = f"time bins of {stream.batch.setting.model.step} s"
    waiting = f"the last line of each subject, in {bins}: when a line of a later bin or the end of input closes a bin"
    return [("answers", f"{waiting}; --answer first answers at once")]


def _counts(stream: Stream, rejected: Mapping[str, int]) -> dict[str, Any]:
    """The counts of this run that only the data owner may know."""
    return owner_counts(stream.released, stream.outside, stream.released, stream.drifted, rejected)


def _check(options: ReleaseOptions) -> None:
    if options.dry_run or options.as_json:
        raise InvalidInput("TRAJ", "- with --dry-run or --json", "a file, or - without them")


def _lines() -> Iterator[tuple[int, bytes]]:
    """Lines with something on them, with their numbers from 1; of a very long one only its beginning."""
    stdin = sys.stdin.buffer
    for number in count(1):
        text = stdin.readline(_LONGEST_LINE)
        rest = text
        while rest and not rest.endswith(b"\n"):
            rest = stdin.readline(_LONGEST_LINE)
        if not text:
            return
        if text.strip():
            yield number, text


def _continues(stream: Stream) -> str:
    """The lines that an interrupted stream leaves unanswered, and the way to go on, in words."""
    if not stream.held:
        return "; the same command continues after them"
    waiting = f", and lines of {stream.held} subjects in the open time bin have no answer"
    return f"{waiting}; the same command continues after them, with the lines of that bin again"
