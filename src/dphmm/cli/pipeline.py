"""dphmm run: every command from a data file to a report, as one file says. dphmm init writes one to begin with.

A pipeline is a TOML file with a table for each stage. The members of a table are options of its command, by name; the
inputs from other stages are filled in. A stage runs again when its options or its inputs changed, and is passed over
otherwise. Noise is never drawn again by itself: people are split once for a folder; a private fit
is a publication of the ledger that its release has, which gives the model again whatever the rows are then, and so is
the answer of [query]; a fit, a query or a release that changed in anything but its rows is a new question about the
same people. It is asked with --spend-again only, in a folder of its own beside what was published, with the same
ledger. So is a split of other rows after a private fit, as long as nobody was released: the ledger keeps that fit, for
everybody, and a second one adds. Private stages that are no release run first, whatever a check of the rows finds.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from importlib.metadata import version
from math import ceil, inf
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from dphmm._checks import exact_epsilon, exact_number
from dphmm.accounting.person import checked_noun
from dphmm.accounting.records import in_short
from dphmm.cli.console import BAD_INPUT, REJECTED, Console, options_called, print_json
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.meant import meant
from dphmm.cli.options import ONE_OF_MANY, PlanOptions, duration, messages, options_of
from dphmm.errors import InvalidInput
from dphmm.session.options import PLAN_CHOICES
from dphmm.statement.events import check_has_end
from dphmm.statement.files import statement_path
from dphmm.storage.case_names import names_of_cases, names_path
from dphmm.storage.inputs import checked_input, file_digest
from dphmm.storage.ledger import open_ledger
from dphmm.storage.ledger.connection import held
from dphmm.storage.private_tables import write_counts
from dphmm.storage.release_folder import ReleaseFolder
from dphmm.storage.tables import read_table

if TYPE_CHECKING:
    from dphmm.accounting.ledger import Ledger
    from dphmm.accounting.publication import Publication
    from dphmm.cli.release_job import Job, ReleaseOptions
    from dphmm.states.visit_table import VisitTable

#: What ran, with which options and inputs: for the owner alone, since it has hashes of private files.
RECORD = "run.json"
_FORMAT = 4
_LARGEST = 10**6

PEOPLE, MODEL_PEOPLE, RELEASED_PEOPLE = "people.parquet", "model-people.parquet", "released-people.parquet"
MODEL, POLICY, PLAN, LEDGER = "model.npz", "policy.json", "plan.json", "ledger.db"
RELEASED, ESTIMATES, POPULATION, REPORT = "released.parquet", "estimates.parquet", "population.csv", "report.html"
SYNTHETIC, ANSWERED = "synthetic.parquet", "query.csv"


@dataclass(frozen=True)
class Stage:
    """A table of a pipeline: the command that it runs, the files that it reads of earlier stages, and what it writes.

    ``words``: the command, in which {kind} is the member ``kind`` of the table. ``reads``: (option or "", file) of
    earlier stages, of those files that there are; an option "" is an argument. ``writes``: the files of -o. ``file``:
    whether the member ``file`` is its argument, in place of one that it reads. ``takes``: the options that are members
    of the table, by default all but those that it ``leaves``: a pipeline fills them in, or has no use for them.
    """

    words: tuple[str, ...]
    reads: tuple[tuple[str, str], ...]
    writes: tuple[str, ...]
    kind: str = ""
    file: bool = False
    takes: tuple[str, ...] = ()
    leaves: tuple[str, ...] = ()

    def members(self, options: Iterable[str]) -> list[str]:
        """Those of the options of its command that are members of its table."""
        taken = self.takes or [option for option in options if option not in (*_OWN, *self.leaves)]
        return [option for option in options if option in taken]


#: Options that a pipeline fills in or decides.
_OWN = ("output", "ledger", "id", "force", "new", "format", "help-all", "json", "quiet", "dry-run", "about", "out")
#: By name, in the order in which they run.
STAGES: Mapping[str, Stage] = {
    "data": Stage(("import", "{kind}"), (), (PEOPLE,), kind="csv", file=True, leaves=("fold",)),
    "split": Stage(("split",), (("", PEOPLE),), (MODEL_PEOPLE, RELEASED_PEOPLE), takes=("share", "user-column")),
    "model": Stage(("model", "{kind}"), (), (MODEL,), kind="grid", file=True),
    "fit": Stage(
        ("fit",), (("", MODEL_PEOPLE),), (MODEL,), file=True,
        # No release is made with a hidden model, and nothing that is published by a seeded fit.
        leaves=("states", "symbols", "symbols-file", "starts", "iterations", "method", "noise", "delta", "order",
                "seed", "spelling", "neighbours", "moves", "jump", "min-count", "merge-rare", "initial", "all-cells"),
    ),
    "query": Stage(
        ("query", "{kind}"), (("", PEOPLE), ("--states", MODEL)), (ANSWERED,), kind="histogram", file=True,
        takes=(
            "epsilon", "dependence", "states", "times", "step", "from", "windows", "neighbours", "consistent", "ends",
        ),
    ),
    "policy": Stage(("policy", "{kind}"), (("", MODEL),), (POLICY,), kind="radius", leaves=("setting",)),
    "plan": Stage(
        ("plan",), (("", MODEL), ("--policy", POLICY)), (PLAN,),
        leaves=("policy", "details", "states", "plot", "target-error", "target-doubt", "target-stay"),
    ),
    "release": Stage(
        ("release",), (("", RELEASED_PEOPLE), ("--model", MODEL), ("--policy", POLICY), ("--plan", PLAN)), (RELEASED,),
        leaves=(
            "model", "policy", "plan", "schedule", "state-column", "spelling", "cap-cost", "case-names", "length",
        ),
    ),
    "estimates": Stage(
        ("read", "--estimates"), (("", RELEASED),), (ESTIMATES,), takes=("own-places", "path", "marginals")
    ),
    "population": Stage(("read",), (("", RELEASED),), (POPULATION,), takes=("by", "per", "zone")),
    "synthesize": Stage(("synthesize",), (("", RELEASED),), (SYNTHETIC,), takes=("people", "steps", "begin")),
    "report": Stage(("report",), (("", RELEASED),), (REPORT,), takes=("backdrop", "title")),
}  # fmt: skip
_NEEDED = ("data", "policy", "release")
#: Where the file is among the words of an import.
_FILE = 2
#: Of all questions of a pipeline.
_SHARED = (PEOPLE, MODEL_PEOPLE, RELEASED_PEOPLE)
#: What may be published; all else that stages write is the owner's, who has it in the folder beside.
_PUBLIC = (RELEASED, ESTIMATES, POPULATION, SYNTHETIC, REPORT, ANSWERED)
#: What makes a release another question about the same people.
_QUESTION = ("model", "fit", "policy", "plan", "release")
#: What the ledger keeps as a publication, and what it is called.
_PUBLISHED = {"fit": "the private fit", "query": "the query"}
#: What reads names of people, by the rule of spelling of the data.
_OF_PEOPLE = ("split", "fit", "query", "release")
#: Options of a release that ask nobody anything, and how many values follow: what is said of people, which files are
#: written of the stored answers, and whether a table that cannot be meant, or that no limit is set, stops it. The
#: setting of a policy is looked at by itself.
_TELLS = {
    "--model-people": 1, "--although": 0, "--no-check": 0, "--min-people": 1,
    "--noun": 1, "--yes": 0, "--case-names": 1, "--times": 1, "--length": 1, "--setting": 2,
}  # fmt: skip
#: What draws nothing and may be remade by a newer dphmm.
_REMADE = ("estimates", "population", "synthesize", "report")
#: What options that name files have in their help, beside FILE.
_FILES = ("M", "P", "T", "TRAJ", "S")
#: What dphmm init leaves open, by member; of a member that names a column `COLUMN`.
QUESTIONS = {"user": "NAME", "bbox": "WEST,SOUTH,EAST,NORTH", "step": "STEP", "steps": "STEPS"}
COLUMN = "COLUMN"
#: An option in a sentence, and the command that it is said to be of.
_SETTING = re.compile(rf"(?:dphmm policy \.\.\. )?--setting ({'|'.join(PLAN_CHOICES)})")
_OPTION = re.compile(r"(?:\bdphmm (?P<command>[a-z]+)(?: [a-z]+)?? (?:with )?)?(?<![\w-])--(?P<option>[a-z][a-z0-9-]*)")


@click.command("run", cls=Command, context_settings=CONTEXT)
@click.argument("file", metavar="FILE")
@click.option(
    "--spend-again",
    is_flag=True,
    help="Where the plan or options changed: release anew, or before anybody is released fit anew, then also on other "
    "rows, and spend that beside what was spent.",
)
@click.option("--yes", is_flag=True, help="Go on without a limit, as --yes of dphmm release does.")
@messages
def run(file: str, spend_again: bool, yes: bool, quiet: bool, as_json: bool) -> int:
    """Run a pipeline: from a data file to a report, as FILE (release.toml) says.

    A stage whose options and inputs are those of the last run is passed over. Interrupted, the same command goes on
    where it stopped; people who were released stay as they were. dphmm init writes a file to begin with.
    """
    pipeline = Pipeline.read(checked_input(file, "FILE"))
    pipeline.check()
    pipeline.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Two runs at once would split people and fit on them twice, and the record would know of one of them.
    with held(pipeline.folder / RECORD, whose="pipeline"):
        return _run(pipeline, spend_again, yes, quiet, as_json)


def _run(pipeline: Pipeline, spend_again: bool, yes: bool, quiet: bool, as_json: bool) -> int:
    """Run every stage that is not done; its exit code is the largest of theirs."""
    console, record = Console(quiet or as_json), Record.read(pipeline)
    # Another ledger would know nobody who was asked, and people would be split and fitted on anew.
    pipeline.place.ledger(pipeline.ledger)
    _check_names(pipeline, record)
    if (changed := _changed(pipeline, record)) is not None:
        _check_consent(changed, pipeline, record, spend_again)
        record.ask_anew(pipeline, split=changed == "split")
    if "query" in pipeline.stages:
        _query_number(pipeline, record, spend_again, made=False)
    outcomes, code, seen = {}, 0, False
    if any(pipeline.is_drawn(name) and record.id_of(name) not in record.published(name) for name in _PUBLISHED):
        console.say([("", f"dphmm check --setup {quote(pipeline.source)} looks at the rows before anything is spent")])
        if not yes:
            _check_limit(pipeline, console)
    for name in pipeline.stages:
        number = _query_number(pipeline, record, spend_again, made=True) if name == "query" else record.number
        stage, before = pipeline.command(name, number), record.kept(name)
        if record.is_done(name, stage):
            outcomes[name] = "as it was"
            continue
        if (cause := _splits_anew(pipeline, record, name)) is not None:
            raise InvalidInput("[split]", cause, _SPLIT_ONCE)
        if name in ("policy", "plan") and not seen:
            seen = True
            try:
                _check_before_a_plan(pipeline, record, console)
            except InvalidInput:
                _tell_of_the_spent(record, console)
                raise
        if name == "fit" and not (pipeline.is_drawn(name) and record.id_of(name) in record.published(name)):
            _check_not_asked(pipeline, record)
        console.say([("", f"{name}: dphmm {stage.words[0]}")])
        words = list(stage.words)
        # A release keeps what is there by itself: it goes on, or refuses.
        words += ["--force"] * (name != "release")
        words += ["--yes"] * (name == "release" and yes)
        # Whoever was fitted on stays; new rows and new people are released.
        words += ["--grow"] * (name == "split" and bool(record.queries))
        if pipeline.is_drawn(name):
            # Known before anybody can have seen it.
            record.keep(name, stage, pipeline)
        if name in _PUBLISHED and pipeline.is_drawn(name):
            words += ["--ledger", str(pipeline.ledger), "--id", record.id_of(name)]
        if name == "query":
            stage.place.create()
        with options_called(pipeline.members(name)):
            ended = run_stage([*words, *["--quiet"] * (quiet or as_json)])
        if ended not in (0, REJECTED):
            if not any(path.exists() for path in stage.outputs.values()):
                record.forget(name, before)
            if name == "release" and ended == BAD_INPUT:
                _tell_of_the_spent(record, console)
            return ended
        if name != "release" and any(file in _PUBLIC for file in stage.outputs):
            beside = [statement_path(path).name for path in stage.outputs.values() if statement_path(path).exists()]
            stage.place.keep([*stage.outputs, *beside])
        for file, path in stage.outputs.items():
            if file in _SHARED and path.exists():
                # Rows of people are for the owner alone, in a folder from which the release is published.
                path.chmod(0o600)
        code, outcomes[name] = max(code, ended), "done"
        record.keep(name, stage, pipeline)
    place = pipeline.of_question(record.number)
    report = str(place.path / REPORT) if (place.path / REPORT).exists() else None
    if as_json:
        print_json({"stages": outcomes, "folder": str(place.path), "report": report})
    else:
        console.say([*outcomes.items(), *record.spent_again()])
        if report is not None:
            click.echo(report)
    return code


def _check_limit(pipeline: Pipeline, console: Console) -> None:
    """Refuse now what the release would refuse for want of a limit, with a private fit spent before it."""
    from dphmm.cli.release_job import names_limit, no_limit_refused

    options = pipeline.release_options(1)
    if not (options.yes or names_limit(options) or console.can_ask):
        with options_called(pipeline.members("release")):
            raise no_limit_refused("No limit is set")


def _check_before_a_plan(pipeline: Pipeline, record: Record, console: Console) -> None:
    """Look at the rows of the release before a policy and a plan are made for them, which can take minutes."""
    from dphmm.cli.release import read_rows
    from dphmm.cli.release_job import Job, checked_batch

    options, spends = pipeline.release_options(record.number), record.number > 1 and "plan" in pipeline.stages
    if spends or not options.although:
        with options_called(pipeline.members("release")):
            # The steps that are asked are not known yet.
            promise: Any = dict.fromkeys(("path_epsilon", "steps", "window", "per", "zone", "plan", "policy"))
            job = Job.of(replace(options, **promise, epsilon="1", hours=(), schedule="every"))
            rows = read_rows(job, options)[0].visits
            if not options.although:
                checked_batch(job, rows, options, console)
            if spends:
                _check_room(pipeline, record, job, rows)


def _check_room(pipeline: Pipeline, record: Record, job: Job, rows: VisitTable) -> None:
    """Refuse another question before its plan is made where a total has less left than the plan would spend."""
    from dphmm.cli.plan import plan

    options = options_of(plan, PlanOptions, pipeline.command("plan", record.number).words)
    promise = options.promise
    if promise is None or not pipeline.ledger.exists():
        return
    with open_ledger(pipeline.ledger, read_only=True) as ledger:
        batch = replace(job, choices={**job.choices, "promise": promise}).batch(ledger)
        left = batch.left(batch.visits(rows), Fraction(0), planned=True)
        least = min((each.before for each in left if each.limit == str(promise)), default=promise.exact)
    if least < promise.exact * (1 - exact_number(options.reserve, "[plan] reserve")):
        got = f"{promise}, of which {in_short(least, down=True)} is left to whoever has least"
        share = ceil(100 * (1 - least / promise.exact)) / 100
        remedy = f"[plan] reserve = {share:g}, or rows of other days" if share < 1 else "rows of other days"
        raise InvalidInput("[plan] path-epsilon", got, remedy)


def _check_not_asked(pipeline: Pipeline, record: Record) -> None:
    """Refuse a private fit if the release would refuse its model: people keep the model of their first answers.

    And a fit without privacy on people who were asked: its moves can show theirs.
    """
    drawn = pipeline.is_drawn("fit")
    if not pipeline.ledger.exists() or not (drawn or "split" in pipeline.stages):
        return
    people = pipeline.release_options(record.number).trajectories if drawn else pipeline.folder / MODEL_PEOPLE
    with open_ledger(pipeline.ledger, read_only=True) as ledger:
        asked = {user for user, _ in ledger.sessions_of(_users(people))}
    if asked:
        got = f"{len(asked):,} of these people in {pipeline.ledger}, who have answers under another model"
        expected = "that model in its place ([model] file), or another ledger"
        if not drawn:
            got = f"{len(asked):,} people to fit on in {pipeline.ledger}, who have answers there"
            expected = "people who were never asked, or epsilon in [fit]"
        raise InvalidInput("[fit]", got, expected)


def _users(people: str | Path) -> list[str]:
    column = read_table(people, columns=["user"], text=["user"]).column("user")
    return [str(user) for user in column.unique().to_pylist()]


def _check_names(pipeline: Pipeline, record: Record) -> None:
    """Refuse cases whose random names were lost, once some were asked: all would be asked anew, as others."""
    data, split = pipeline.stages["data"], "split" in pipeline.stages
    people = pipeline.folder / (MODEL_PEOPLE if split else PEOPLE)
    if data.get("kind") != "events" or data.get("case-names") == "kept" or not record.queries:
        return
    words = pipeline.command("data", record.number).words
    path = Path(words[words.index("--names-file") + 1])
    known = set(names_of_cases(path).values()) if path.exists() else set()
    if not known or (people.exists() and not known.issuperset(_users(people))):
        got = f"{path}, without the names that cases were asked under"
        raise InvalidInput("[data] names-file", got, "the table that was there; or another folder and ledger")


def _tell_of_the_spent(record: Record, console: Console) -> None:
    """Say of a release that is not begun what was spent before it."""
    for name, called in _PUBLISHED.items():
        if not record.begun and (key := record.id_of(name)) in (stored := record.published(name)):
            lost = stored[key]
            spent = "no epsilon bounds it" if lost is None else f"its epsilon {in_short(lost)} is spent"
            console.warn(f"{called} is done, and {spent}: nobody was released")


def _query_number(pipeline: Pipeline, record: Record, spend_again: bool, *, made: bool) -> int:
    """The number of the answer that [query] asks for: the present one; with consent the next one for a new question.

    ``made``: True if the files of stages before it are those of this run. Raises InvalidInput without consent.
    """
    key, stored = record.id_of("query"), record.published("query")
    number = next(n for n in itertools.count(1) if pipeline.publication_id("query", n) == key)
    stage = pipeline.command("query", number)
    # It reads its rows first; whatever they are now, the ledger gives the answer that was drawn.
    read = [each for each in list(stage.inputs)[1:] if made or each != MODEL]
    if key not in stored or record.is_same("query", stage, read=read):
        return number
    if not spend_again:
        raise InvalidInput("[query]", *_NEW_QUESTION)
    return next(n for n in itertools.count(1) if pipeline.publication_id("query", n) not in stored)


@dataclass(frozen=True)
class Pipeline:
    """The stages of a file, in the order in which they run, and the folder of the release that they make.

    ``place``: of the first question. Rows of people, and what else is the owner's, are in its owner's ``folder``.
    ``ledger``: of all questions, by default beside the folder, where it may count other folders too.
    """

    source: str
    place: ReleaseFolder
    beside: Path
    stages: Mapping[str, Mapping[str, Any]]
    ledger: Path
    setting: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Pipeline:
        """A pipeline of a TOML file; numbers stay as they are written.

        Raises InvalidInput for what is no TOML, for tables that there are not, and for tables that are missing.
        """
        if path.stat().st_size > _LARGEST:
            raise InvalidInput("FILE", f"{path.name}, of more than a megabyte", "a pipeline as dphmm init writes it")
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=str)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            got = f"{path.name}, which is no TOML: {error}"
            raise InvalidInput("FILE", got, "a pipeline as dphmm init writes it") from None
        folder = tables.pop("folder", "out")
        if not isinstance(folder, str) or not folder or "\0" in folder:
            raise InvalidInput("folder", repr(folder), "the name of a folder")
        ledger = tables.pop("ledger", None)
        if ledger is not None and (not isinstance(ledger, str) or not ledger or "\0" in ledger):
            raise InvalidInput("ledger", repr(ledger), "the name of a file")
        setting = tables.pop("setting", {})
        if not isinstance(setting, dict):
            raise InvalidInput("setting", repr(setting), "a table [setting]")
        for member, value in setting.items():
            if member not in PLAN_CHOICES:
                raise InvalidInput(f"[setting] {member}", "an unknown option", _near(member, PLAN_CHOICES))
            if not isinstance(value, str):
                raise InvalidInput(f"[setting] {member}", repr(value), "a text")
        for name, table in tables.items():
            if name not in STAGES or not isinstance(table, dict):
                raise InvalidInput(f"[{name}]", "an unknown table", _near(name, [*STAGES, "setting"]))
        for name in _NEEDED:
            if name not in tables:
                raise InvalidInput("FILE", f"{path.name}, without a table [{name}]", f"[{name}] and its options")
        if ("model" in tables) == ("fit" in tables):
            got = "both [model] and [fit]" if "fit" in tables else "neither [model] nor [fit]"
            raise InvalidInput(
                "FILE", f"{path.name}, with {got}", "one: a model made from a map, or one fitted to people"
            )
        if "fit" in tables and "split" not in tables and "file" not in tables["fit"]:
            expected = "[split], which keeps people to fit on apart, or file, a table of other people"
            raise InvalidInput("[fit]", "no people", expected)
        beside = path.resolve().parent
        place, stages = ReleaseFolder.of(beside / folder), {name: tables[name] for name in STAGES if name in tables}
        counted = place.default_ledger if ledger is None else beside / ledger
        return cls(str(path), place, beside, stages, counted, setting)

    @property
    def folder(self) -> Path:
        """The owner's folder, for all questions."""
        return self.place.owner

    def check(self) -> None:
        """Raise InvalidInput for an open question, what is no option of its command, and a folder of other files.

        Before anything runs.
        """
        self.place.check()
        members = [(name, *each) for name, table in self.stages.items() for each in table.items()]
        left = [(f"[{name}] {member}", each) for name, member, each in members if each == QUESTIONS.get(member, COLUMN)]
        if left:
            fields, questions = (" and ".join(words) for words in zip(*left, strict=True))
            expected = f"answers in {Path(self.source).name} to what dphmm init left open: its comments say how"
            raise InvalidInput(fields, questions, expected)
        for name, table in self.stages.items():
            known = STAGES[name].members(_options(name, self._words(name, table)))
            for member, value in table.items():
                if member in ("kind", "file"):
                    if not isinstance(value, str) or not value or not getattr(STAGES[name], member):
                        raise InvalidInput(f"[{name}] {member}", repr(value), "a text, in a table that has it")
                    continue
                if member not in known:
                    got = "an option of [setting]" if member in PLAN_CHOICES else "an unknown option"
                    raise InvalidInput(f"[{name}] {member}", got, _near(member, known))
                _written(value, f"[{name}] {member}")
            if name in _PUBLISHED and self.is_drawn(name):
                exact_epsilon(table.get("epsilon", "nothing"), f"[{name}] epsilon")
        checked_noun(self.stages["release"].get("noun", "person"), "[release] noun")
        if any(map(self.is_drawn, _PUBLISHED)):
            self._check_promise()

    def _check_promise(self) -> None:
        """Raise InvalidInput for what a plan or a release would refuse after a fit or a query is spent."""
        from dphmm.cli.fit import fit
        from dphmm.cli.fit_data import public_space, times
        from dphmm.cli.plan import plan
        from dphmm.cli.release_job import check_asked

        written = self.stages.get("model", {}).get("step")
        step = None if written is None else duration(str(written), "[model] step")
        for name in [name for name in ("fit", "plan", "release") if name in self.stages]:
            with options_called(self.members(name)):
                words, promise = self.command(name, 1).words, None
                if name == "fit":
                    asked = fit.make_context(name, list(words[1:])).params
                    step = times(asked)["step"]
                    if "length" in self.stages["data"] and self.is_drawn(name):
                        check_has_end(public_space(asked, asked["trajectories"]), self.stages["data"]["length"])
                elif name == "plan":
                    promise = options_of(plan, PlanOptions, words).promise
                else:
                    options = self.release_options(1)
                    check_asked(options)
                    promise = options.promise
                if promise is not None:
                    promise.in_steps(step, 0)

    def release_options(self, number: int) -> ReleaseOptions:
        """The options of the release of a question. Raises as the command line does."""
        from dphmm.cli.release import release
        from dphmm.cli.release_job import ReleaseOptions

        with options_called(self.members("release")):
            return options_of(release, ReleaseOptions, self.command("release", number).words)

    def _words(self, name: str, table: Mapping[str, Any]) -> list[str]:
        return [word.format(kind=table.get("kind", STAGES[name].kind)) for word in STAGES[name].words]

    def command(self, name: str, number: int) -> StageCommand:
        """The command of a stage for a question. Raises InvalidInput for a file beside the pipeline that is missing."""
        stage, table, place = STAGES[name], self.stages[name], self.of_question(number)
        words: list[str | Path] = list(self._words(name, table))
        inputs: list[Path] = []
        if "file" in table:
            inputs.append(self._beside(table["file"], f"[{name}] file"))
            words.append(inputs[0])
        if name == "population" and "by" not in table:
            words += ["--by", "blocks"]
        for option, file in stage.reads:
            if (file == PLAN and "plan" not in self.stages) or ("file" in table and not option) or option[2:] in table:
                continue
            if option == "--states" and str(table.get("dependence")).startswith("markov:"):
                continue
            inputs.append(self._path(self._of(file), place))
            words += [*([option] if option else []), inputs[-1]]
            if file == RELEASED:
                # What is said of the release may change while its answers stay.
                inputs.append(statement_path(inputs[-1]))
        words += ["-o", *([place.path] if name == "release" else [self._path(file, place) for file in stage.writes])]
        if name in _OF_PEOPLE and "spelling" not in table:
            # Where none is named the import has asked, if names made it likely that it matters.
            words += ["--spelling", str(self.stages["data"].get("spelling", "same"))]
        if name == "fit" and "epsilon" in table and "max-length" not in table:
            # Later rows than those that are asked say little of these, and would add noise.
            words += (
                ["--max-length", str(self.stages["plan"]["steps"])] if "steps" in self.stages.get("plan", {}) else []
            )
        events = self.stages["data"].get("kind") == "events"
        if name == "data" and events and "names-file" not in table:
            # Folders that share a ledger share the names: a case has one account.
            words += ["--names-file", names_path(self.ledger)]
        if name == "query" and {"fit", "split"} <= self.stages.keys() and "epsilon" not in self.stages["fit"]:
            # The states, or the chain, are those of people who are counted too.
            with_model = "--states" in words or str(table.get("dependence")).startswith("markov:")
            words += ["--model-people", "same"] * with_model
        if name == "release" and events:
            words += ["--case-names", str(self.stages["data"].get("case-names", "random"))]
            words += [
                word for n in [self.stages["data"].get("length")] if n is not None for word in ("--length", str(n))
            ]
        if name == "release":
            words += ["--format", "parquet", "--ledger", self.ledger, "--query", self.query(number)]
        known = _options(name, self._words(name, table))
        for member, value in self.setting.items() if name == "policy" else ():
            # What else decides plans is kept in the policy's file.
            made = self.beside / value
            words += ["--setting", member, made if made.is_file() else value]
            inputs += [made] * made.is_file()
        for member, value in table.items():
            if member in ("kind", "file", "query"):
                continue
            for text in _written(value, f"[{name}] {member}"):
                words.append(f"--{member}")
                if text is not None:
                    named = self.beside / text
                    is_file = known[member] and named.is_file()
                    words.append(named if is_file else text)
                    inputs += [named] * is_file
        names = {path: self._name(path, place) for path in (*inputs, *words) if isinstance(path, Path)}
        return StageCommand(
            place,
            tuple(str(word) for word in words),
            [names[word] if isinstance(word, Path) else word for word in words],
            {names[path]: path for path in inputs},
            {file: self._path(file, place) for file in stage.writes},
        )

    def members(self, name: str) -> Callable[[str], str]:
        """Say in a sentence of a stage which member of the file an option is: [data] state-column for --state-column.

        Of several tables it is that of the stage, else the one that has the member.
        Options that the pipeline fills in stay.
        """

        def member(found: re.Match[str]) -> str:
            option, tables = found["option"], []
            for table, stage in STAGES.items():
                known = _options(table, self._words(table, self.stages.get(table, {})))
                filled = option in _OWN or f"--{option}" in dict(stage.reads)
                if found["command"] in (None, stage.words[0]) and option in known and not filled:
                    tables.append((table != name, option not in self.stages.get(table, ()), f"[{table}] {option}"))
            return min(tables)[2] if tables else found[0]

        return lambda text: "[data] file" if text == "SRC" else _OPTION.sub(member, _SETTING.sub(r"[setting] \1", text))

    def of_question(self, number: int) -> ReleaseFolder:
        """The folder of a question: out, out-2."""
        path = self.place.path
        return self.place if number == 1 else ReleaseFolder(path.with_name(f"{path.name}-{number}"))

    def publication_id(self, name: str, number: int) -> str:
        """The id in the ledger of a private fit, or of a query: the ledger may count other folders too."""
        return f"{name} of {self.of_question(number).path.name}"

    def query(self, number: int) -> str:
        """The name in the ledger of what a question asks."""
        name = str(self.stages["release"].get("query", "state"))
        return name if number == 1 else f"{name}-{number}"

    def promise(self, number: int) -> dict[str, str]:
        """The options of a promise over sequences, as the plan and the release get them."""
        options = [self.command(name, number).named for name in ("plan", "release") if name in self.stages]
        return _promised(options)

    def is_drawn(self, name: str) -> bool:
        """True if a stage of a question draws noise for its results about people."""
        private_fit = name == "fit" and "epsilon" in self.stages.get(name, {})
        return private_fit or (name in ("query", "release") and name in self.stages)

    def _path(self, file: str, place: ReleaseFolder) -> Path:
        if file == LEDGER:
            return self.ledger
        return (self.folder if file in _SHARED else place.path if file in _PUBLIC else place.owner) / file

    def _name(self, path: Path, place: ReleaseFolder) -> str:
        """A name of a file that does not change with the folder that a command is called from, or with the question."""
        if path == place.path:
            return "."
        if path.parent in (self.folder, place.owner, place.path) or path == self.ledger:
            return path.name
        return Path(os.path.relpath(path, self.beside)).as_posix()

    def _of(self, file: str) -> str:
        """Without a split everybody of the data is released."""
        return PEOPLE if file == RELEASED_PEOPLE and "split" not in self.stages else file

    def _beside(self, text: str, field: str) -> Path:
        path = self.beside / text
        if not path.exists():
            raise InvalidInput(field, text, f"a file that exists, beside {Path(self.source).name}")
        return path


def _written(value: Any, field: str) -> list[str | None]:
    """An option's values as words; None for a flag that is set."""
    if isinstance(value, bool):
        return [None] if value else []
    if isinstance(value, list):
        return [text for element in value for text in _written(element, field)]
    if isinstance(value, (str, int)):
        return [str(value)]
    raise InvalidInput(field, repr(value), "a text, a number, true or false, or a list of these")


def _options(table: str, words: Sequence[str]) -> dict[str, bool]:
    """The options of a table's command, without dashes, and whether each names a file."""
    from dphmm.cli.app import app

    context = click.Context(app)
    command: click.Command = app
    for word in words:
        if word.startswith("--"):
            break
        assert isinstance(command, click.Group)
        kind = command.get_command(context, word)
        if kind is None:
            kinds = ", ".join(command.list_commands(context))
            raise InvalidInput(f"[{table}] kind", repr(word), f"one of {kinds}")
        command = kind
    return {
        name[2:]: "FILE" in (option.metavar or "") or option.metavar in _FILES
        for option in command.params for name in option.opts if name.startswith("--")
    }  # fmt: skip


def _near(came: str, known: Sequence[str]) -> str:
    near = meant(f"--{came}", [f"--{name}" for name in known]).removeprefix("--")
    return (
        f"{near}, the nearest name" if near else f"one of {', '.join(known)}" if known else "none, as it has no options"
    )


def run_stage(words: Sequence[str]) -> int:
    """Run a command; its standard output goes to standard error. Its exit code."""
    from dphmm.cli.app import app

    with redirect_stdout(sys.stderr):
        try:
            app.main(list(words), obj=ONE_OF_MANY)
        except SystemExit as end:
            return int(end.code or 0)


def _digest(path: Path) -> str | None:
    """SHA-256 of a file; of a folder that of its names, sizes and times; None where there is none yet."""
    if path.is_dir():
        listed = sorted(
            (str(entry.relative_to(path)), entry.stat().st_size, entry.stat().st_mtime_ns) for entry in path.rglob("*")
        )
        return hashlib.sha256(json.dumps(listed).encode()).hexdigest()
    return _digest_of(path, path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else None


@lru_cache(maxsize=256)
def _digest_of(path: Path, written: int, size: int) -> str:
    """The hash of a file that was written then: a large one is read once for all stages that read it."""
    return file_digest(path)


@dataclass(frozen=True)
class StageCommand:
    """The command of a stage for a question: its words, the same with names of files, its inputs and outputs."""

    place: ReleaseFolder
    words: tuple[str, ...]
    named: Sequence[str]
    inputs: Mapping[str, Path]
    outputs: Mapping[str, Path]


class Record:
    """The record of a folder's runs, by question and stage; the last question is the one that is answered.

    For a stage: its words (by names of files), the SHA-256 of its inputs and outputs, dphmm's version; for a release
    its query, for a private fit its id in the ledger. It is for the owner alone: hashes of private files are in it.
    """

    def __init__(self, pipeline: Pipeline, questions: list[dict[str, Any]]) -> None:
        self.pipeline, self.ledger, self.questions = pipeline, pipeline.ledger, questions

    @classmethod
    def read(cls, pipeline: Pipeline) -> Record:
        """The record of a pipeline. Raises InvalidInput for a file that is none, and where one is missing."""
        path, ledger = pipeline.folder / RECORD, pipeline.ledger
        expected = "the record that dphmm run wrote there, or another folder: without it people could be asked twice"
        if not path.exists():
            if (pipeline.place.path / RELEASED).exists():
                raise InvalidInput(str(path), "no such file, though something was released there", expected)
            return cls(pipeline, [{}])
        try:
            document = json.loads(checked_input(path, RECORD).read_text(encoding="utf-8"))
            questions = document["questions"]
            sound = document["format"] == _FORMAT and bool(questions) and all(
                isinstance(stage["words"], list) and isinstance(stage["inputs"], dict)
                and isinstance(stage["outputs"], dict) and {"dphmm", "query", "id"} <= stage.keys() and name in STAGES
                for stages in questions for name, stage in stages.items()
            )  # fmt: skip
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            sound = False
        if not sound:
            raise InvalidInput(str(path), "no record of a run", expected)
        record = cls(pipeline, questions)
        stages = [stage for stages in questions for stage in stages.values()]
        stored = any(stage["outputs"] and (stage["query"] or stage["id"]) for stage in stages)
        if stored and not ledger.exists():
            got = f"no such file, though {RECORD} knows of a release or a private fit"
            raise InvalidInput(str(ledger), got, "the ledger that was there, or another folder")
        # What was agreed to and never asked is to be agreed to again.
        while record.number > 1 and not record.begun:
            if pipeline.publication_id("fit", record.number) in record.published("fit"):
                break
            record.questions.pop()
        return record

    @property
    def number(self) -> int:
        """The number of the question that is answered, from 1."""
        return len(self.questions)

    @property
    def queries(self) -> set[str]:
        """The queries of all questions that somebody has been asked."""
        stored = self._stored(lambda ledger: dict.fromkeys(query for _, query in ledger.sessions()), "release", "query")
        # Others in the ledger are of other folders.
        return {question["release"]["query"] for question in self.questions if "release" in question} & set(stored)

    def published(self, name: str) -> dict[str, Fraction | None]:
        """The private fits, or the queries, of all questions that the ledger holds, and what a person loses in each."""

        def lost(a: Publication) -> Fraction | None:
            return None if a.epsilon is None or a.units is None else a.epsilon * a.units

        stored = self._stored(lambda ledger: {a.name: lost(a) for a in ledger.publications()}, name, "id")
        ids = [self.pipeline.publication_id(name, n + 1) for n in range(self.number + len(stored))]
        return {key: stored[key] for key in ids if key in stored}

    def _stored(self, read: Callable[[Ledger], dict[str, Any]], stage: str, member: str) -> dict[str, Any]:
        """The result of reading the ledger; for an unreadable one, as if every question of a stage were in it."""
        if not self.ledger.is_file():
            return {}
        try:
            with open_ledger(self.ledger, read_only=True) as ledger:
                return read(ledger)
        except InvalidInput:
            return {str(question.get(stage, {}).get(member)): None for question in self.questions}

    def id_of(self, name: str) -> str:
        """The id of this question's private fit, which it may have from an earlier question, or of the last query."""
        number = 1 if name == "query" else self.number
        return str(self.kept(name).get("id") or self.pipeline.publication_id(name, number))

    @property
    def begun(self) -> bool:
        """True if somebody has been asked this question."""
        return self.kept("release").get("query") in self.queries

    @property
    def promise(self) -> dict[str, str]:
        """The promise that people were told, as `Pipeline.promise` has it."""
        return _promised([known["words"] for name in ("plan", "release") if (known := self.kept(name))])

    def kept(self, name: str) -> Mapping[str, Any]:
        """The record of a stage of this question; empty if it was not asked."""
        return self._known(name).get(name) or {}

    def _known(self, name: str) -> dict[str, Any]:
        """The question that a stage is kept with: a query is of the people, whatever is released of them."""
        return self.questions[0 if name == "query" else -1]

    def is_same(self, name: str, stage: StageCommand, *, read: Sequence[str], question: bool = False) -> bool:
        """True if a stage was asked with these words, and with these of the files that it reads.

        ``question``: words that ask nobody anything may differ.
        """
        before = self.kept(name)
        if not before:
            return False
        words = before["words"], list(stage.named)
        if words[0] != words[1] and not (question and _question(words[0]) == _question(words[1])):
            return False
        return all(before["inputs"].get(each) == _digest(stage.inputs[each]) for each in read)

    def reads_alike(self, pipeline: Pipeline) -> bool:
        """True if the data are read by the options of this question: they decide the person and the time of a row."""
        words = [list(self.kept("data").get("words", ())), list(pipeline.command("data", self.number).named)]
        for each in words:
            # Of the file's name nothing follows; and spellings are one person where no rule is named.
            del each[_FILE : _FILE + 1]
            each += [] if "--spelling" in each else ["--spelling", "same"]
        return words[0] == words[1]

    def is_done(self, name: str, stage: StageCommand) -> bool:
        """True if a stage has run, and its outputs are there."""
        if not self.is_same(name, stage, read=list(stage.inputs)):
            return False
        if name in _REMADE and self.kept(name)["dphmm"] != version("dphmm"):
            return False
        return self.is_there(name, stage)

    def is_there(self, name: str, stage: StageCommand, only: str | None = None) -> bool:
        """True if the outputs of a stage are there, as they were written; ``only`` that one of them."""
        outputs: Mapping[str, str] = self.kept(name).get("outputs", {})
        written = {file: sha for file, sha in outputs.items() if only in (None, file)}
        return bool(written) and all(_digest(stage.outputs[file]) == sha for file, sha in written.items())

    def keep(self, name: str, stage: StageCommand, pipeline: Pipeline) -> None:
        """Write down what a stage is asked, and what it wrote if it did."""
        key = f"query of {stage.place.path.name}" if name == "query" else self.id_of(name)
        self._known(name)[name] = {
            "dphmm": version("dphmm"),
            "words": list(stage.named),
            "inputs": {each: _digest(path) for each, path in stage.inputs.items()},
            "outputs": {file: _digest(path) for file, path in stage.outputs.items() if path.exists()},
            "query": pipeline.query(self.number) if name == "release" else None,
            "id": key if name in _PUBLISHED and pipeline.is_drawn(name) else None,
        }
        self._write()

    def forget(self, name: str, before: Mapping[str, Any]) -> None:
        """Restore the record ``before`` of a fit or a query that stored nothing.

        A release stays: its answers may be in the ledger.
        """
        if name in _PUBLISHED and self.kept(name) and self.id_of(name) not in self.published(name):
            self._known(name)[name] = dict(before)
            if not before:
                del self._known(name)[name]
            self._write()

    def ask_anew(self, pipeline: Pipeline, *, split: bool) -> None:
        """Begin another question, in a folder of its own; stages before the first that changed are taken over.

        ``split``: people are split anew, and everything is made of the new rows.
        """
        last, questions, place = self.number, self.questions[-1], pipeline.of_question(self.number + 1)
        if (place.owner / RECORD).exists():
            got = (
                f"{pipeline.place.path.name}, whose next question is {place.path.name}, the folder of another pipeline"
            )
            raise InvalidInput("folder", got, "that folder under another name")
        shared = ("data", "split") if self.reads_alike(pipeline) and not split else ()
        taken = {}
        for name in [name for name in pipeline.stages if name in _QUESTION and name != "release" and not split]:
            before, after = pipeline.command(name, last), pipeline.command(name, last + 1)
            if not self.is_done(name, before):
                break
            after.place.owner.mkdir(mode=0o700, exist_ok=True)
            for file, path in before.outputs.items():
                shutil.copyfile(path, after.outputs[file])
            taken[name] = questions[name]
        self.questions.append({name: questions[name] for name in shared if name in questions} | taken)
        pipeline.of_question(self.number).owner.mkdir(mode=0o700, exist_ok=True)
        self._write()

    def spent_again(self) -> list[tuple[str, str]]:
        """The sums spent on fits, and on queries, if there was more than one."""
        rows = []
        for name, called in (("fit", "private fits"), ("query", "queries")):
            if len(stored := self.published(name)) > 1:
                bounded = [epsilon for epsilon in stored.values() if epsilon is not None]
                total = in_short(sum(bounded, Fraction(0))) if len(bounded) == len(stored) else "without a bound"
                rows.append(("spent before", f"epsilon {total} in all, by {len(stored)} {called} of this folder"))
        return rows

    def _write(self) -> None:
        write_counts(self.pipeline.folder / RECORD, {"format": _FORMAT, "questions": self.questions})


#: What came and what was expected where people would be asked anew without consent.
_NEW_QUESTION = (
    "a new question to people who were asked",
    "what was asked before, or --spend-again: it is spent beside what was spent on the same people",
)
#: What is expected where people would be split anew after some were released.
_SPLIT_ONCE = (
    "what was there; or another folder and ledger: split anew, people who were released could be among those fitted "
    "on; what was spent here adds"
)


def _splits_anew(pipeline: Pipeline, record: Record, name: str) -> str | None:
    """Why a stage would split people anew after a private fit of this question, or after somebody was released.

    None where it does not: after an answer whoever was fitted on stays, and other rows change only who is released.
    """
    if "split" not in pipeline.stages or name not in ("data", "split"):
        return None
    data, split = (pipeline.command(stage, record.number) for stage in ("data", "split"))
    if record.queries:
        if not record.reads_alike(pipeline):
            return "[data] that says otherwise whose a row is or when, after people were asked"
        if not record.is_same("split", split, read=[]):
            return "other options, after people were asked"
        as_written = record.is_there("split", split, only=MODEL_PEOPLE)
        return None if as_written else f"{MODEL_PEOPLE} lost or changed, after people were asked"
    same = record.is_same("data", data, read=[each for each in data.inputs if each != PEOPLE])
    same = same and record.is_same("split", split, read=[PEOPLE] * (name == "split"))
    if (same and record.is_there("split", split)) or record.id_of("fit") not in record.published("fit"):
        return None
    return "other rows, other options or lost files, after a private fit"


def _promised(commands: Sequence[Sequence[str]]) -> dict[str, str]:
    return {
        option: value
        for words in commands
        for option, value in itertools.pairwise(words)
        if option in ("--path-epsilon", "--per", "--steps", "--window", "--zone")
    }


def _in_words(promise: Mapping[str, str]) -> str:
    return " and ".join(f"{option.removeprefix('--')} {value}" for option, value in promise.items()) or "none"


def _settings(words: Sequence[str]) -> list[Sequence[str]]:
    """Each --setting of a policy's words, with its name and its value."""
    return [words[at : at + 3] for at, word in enumerate(words) if word == "--setting"]


def _question(words: Sequence[str]) -> list[str]:
    """The words of a command without those that ask nobody anything; of a policy without its setting."""
    asking, left_out = list[str](), 0
    for word in words:
        if left_out or word in _TELLS:
            left_out = left_out - 1 if left_out else _TELLS[word]
        else:
            asking.append(word)
    return asking


def _check_consent(changed: str, pipeline: Pipeline, record: Record, spend_again: bool) -> None:
    """Refuse a new question that is not wanted, and one that no ledger holds beside the first."""
    got = None
    if changed == "split" and record.queries:
        raise InvalidInput("[split]", _splits_anew(pipeline, record, "data"), _SPLIT_ONCE)
    if changed in ("model", "fit", "policy") and record.queries:
        got = "another model or policy than people were asked under, or a lost one"
    elif record.queries and (promise := pipeline.promise(record.number)) != record.promise:
        got = f"another promise than people were given: {_in_words(promise)} in place of {_in_words(record.promise)}"
    if got is not None:
        expected = "the same; or another folder and ledger, which does not know what was spent here: that adds"
        raise InvalidInput(f"[{changed}]", got, expected)
    if spend_again:
        return
    got, expected = _NEW_QUESTION
    if changed == "split":
        spent = in_short(record.published("fit")[record.id_of("fit")] or inf)
        got = f"other rows, other options or lost files, after a private fit of epsilon {spent}"
        expected = "what was there, or --spend-again: the ledger keeps that epsilon, and a second fit adds"
    raise InvalidInput(f"[{changed}]", got, expected)


def _changed(pipeline: Pipeline, record: Record) -> str | None:
    """The first stage that would ask people something else, or other people, than before; None where there is none."""
    if _splits_anew(pipeline, record, "data") is not None:
        return "split"
    written = {file for stage in STAGES.values() for file in (*stage.writes, LEDGER)}
    # Who and when a row is of follows from the options of the data; rows may be added.
    if record.begun and not record.reads_alike(pipeline):
        return "data"
    for name in [name for name in pipeline.stages if name in _QUESTION]:
        stage = pipeline.command(name, record.number)
        drawn = name == "fit" and pipeline.is_drawn(name)
        # A private fit reads its rows first; whatever they are now, the ledger gives the model that was drawn.
        read = [each for each in list(stage.inputs)[int(drawn) :] if each not in written]
        if name == "policy" and record.begun:
            settings = [_settings(words) for words in (stage.named, record.kept(name)["words"])]
            tables = [each for each in read if each in itertools.chain(*settings[0])]
            read = [each for each in read if each not in tables]
            if record.is_same(name, stage, read=read, question=True) and not record.is_same(name, stage, read=tables):
                return "setting"
        same = record.is_same(name, stage, read=read, question=name == "release")
        if not same and (record.begun or (drawn and record.id_of("fit") in record.published("fit"))):
            return name
    return None
