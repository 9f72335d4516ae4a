"""dphmm check: the figures of a table for its owner, before anything is spent, and why a release would stop."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import redirect_stderr
from csv import DictReader
from dataclasses import asdict, dataclass, fields, replace
from io import StringIO
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dphmm.accounting.ledger import MemoryLedger
from dphmm.accounting.promise import Schedule
from dphmm.cli.console import BAD_INPUT, REJECTED, Console, options_called, print_json, reworded
from dphmm.cli.fit import fit
from dphmm.cli.fit_data import public_space, times
from dphmm.cli.init import first_of, header
from dphmm.cli.options import PlanOptions, argument, command, loaded_model, option, options_of, spelling_of
from dphmm.cli.pipeline import LEDGER, MODEL, PEOPLE, STAGES, Pipeline, run_stage
from dphmm.cli.plan import plan
from dphmm.cli.release import read_rows
from dphmm.cli.release_job import Job, ReleaseOptions, TableOptions, check_asked
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.setup.releasing import kept_ledger
from dphmm.storage.inputs import checked_input
from dphmm.storage.models import save_model
from dphmm.storage.private_tables import rejected_path
from dphmm.storage.release_folder import ReleaseFolder

if TYPE_CHECKING:
    from dphmm.evaluation.table_check import TableCheck

#: Stages that ask people, or read what was answered.
_AFTER = ("release", "estimates", "population", "synthesize", "report")
#: Options of a release, which its own help tells of.
_OF_RELEASE = [option.name for option in fields(TableOptions) if option.name not in ("as_json", "quiet")]


@dataclass(frozen=True, kw_only=True)
class CheckOptions(TableOptions):
    """The options of dphmm check."""

    trajectories: str | None = argument("TRAJ", required=False)
    model: str | None = option("The model, as dphmm fit writes it.", "M")
    policy: str | None = option("The policy, if it merges lonely states.", "P")
    setup: str | None = option("A pipeline, in place of all others: check what dphmm run would release.", "FILE")
    about: int | None = option("With --setup: about how many people are fitted on, or in a query.", "N")


@command("check", CheckOptions, hidden=_OF_RELEASE)
def check(options: CheckOptions) -> int:
    """Look at a table as a release sees it, before anything is spent. For its owner alone.

    TRAJ and options are those of dphmm release, of which only --model is needed; with --ledger it says what is left for
    these people. Nothing is drawn, spent, written or published; figures are coarse, and no option is to be fitted to
    them. The exit code is 2 where the release would stop.

    With --setup the rows of a pipeline are read, of everybody also after a split, and a model, a policy and a plan are
    made, in a folder that is removed. A private fit is not drawn: until dphmm run has done it, no moves are looked at,
    and in place of the steps of its plan all that it may ask. What its noise would be is told, and that of
    a query, also beside --about N people.
    """
    about, setup = options.about, options.setup
    if setup is None:
        if about is not None:
            raise InvalidInput("--about", about, "--setup with it")
        if options.trajectories is not None and options.trajectories.endswith(".toml"):
            got, expected = f"{options.trajectories}, a pipeline", f"dphmm check --setup {quote(options.trajectories)}"
            raise InvalidInput("TRAJ", got, expected)
        of_table = {each.name: getattr(options, each.name) for each in fields(TableOptions)}
        for name, typed in (("TRAJ", options.trajectories), ("--model", options.model)):
            if typed is None:
                raise InvalidInput(name, "nothing", "the rows and the model of a release; or --setup, a pipeline")
        public: Any = {"trajectories": options.trajectories, "model": options.model, "policy": options.policy}
        return _tell(_figures(ReleaseOptions(**public, **of_table)), options.as_json)
    if options != CheckOptions(setup=setup, about=about, as_json=options.as_json, quiet=options.quiet):
        raise InvalidInput("--setup", f"{setup}, and other options", "it alone: the pipeline has the options")
    pipeline = Pipeline.read(checked_input(setup, "--setup"))
    pipeline.check()
    # Rows are private: whatever a crash leaves of them lies beside the owner's own.
    with TemporaryDirectory(prefix=".check-", dir=pipeline.beside) as folder:
        scratch = replace(pipeline, place=ReleaseFolder(Path(folder) / "out"), ledger=Path(folder) / LEDGER)
        scratch.folder.mkdir()
        scratch.place.path.mkdir()
        return _of_pipeline(pipeline, scratch, about, options.as_json, Console(options.quiet or options.as_json))


def _of_pipeline(pipeline: Pipeline, scratch: Pipeline, about: int | None, as_json: bool, console: Console) -> int:
    """Look at the rows of a pipeline, with its public stages run in a folder from scratch."""
    drawn = "fit" in pipeline.stages and pipeline.is_drawn("fit")
    stand_in, allowed, noise = drawn and not (pipeline.folder / MODEL).exists(), None, list[str]()
    if about is not None and not (stand_in or "query" in scratch.stages):
        raise InvalidInput("--about", about, "a pipeline with a query, or a private fit that is not drawn yet")
    for name in [name for name in STAGES if name in scratch.stages and (name not in _AFTER)]:
        words = scratch.command(name, 1).words
        with options_called(pipeline.members(name)):
            dry = name == "query" or (name == "fit" and stand_in)
            if name == "fit" and drawn and not dry:
                shutil.copyfile(pipeline.folder / MODEL, scratch.folder / MODEL)
            elif name == "plan" and stand_in:
                allowed = _allowed(options_of(plan, PlanOptions, words))
            else:
                beside = ["--ledger", str(scratch.ledger), "--id", name]
                beside += [] if about is None else ["--about", str(about)]
                if name == "plan":
                    console.say([("", "a plan is made first, as dphmm run makes it")])
                with redirect_stderr(StringIO()) as said:
                    ended = run_stage([*words, *(["--dry-run", *beside] if dry else ["--quiet"])])
                if ended not in (0, REJECTED):
                    click.echo(said.getvalue(), err=True, nl=False)
                    return ended
                if dry and name == "fit":
                    _write_stand_in(fit.make_context("fit", list(words[1:])).params, scratch.folder / MODEL)
                if dry:
                    labelled = [line.partition(" ") for line in said.getvalue().splitlines()]
                    noise += [
                        f"{name}: {part.strip()}"
                        for label, _, part in labelled
                        if label == "noise" and "expected error" in part
                    ]
    people = str(scratch.folder / PEOPLE)
    options = replace(scratch.release_options(1), trajectories=people, ledger=str(pipeline.ledger))
    with options_called(pipeline.members("release")):
        check_asked(options)
        figures = _figures(replace(options, plan=None) if stand_in else options, allowed)
        if figures.is_doubtful:
            # An import keeps no other columns; their names are in the source.
            figures = replace(figures, other_people=_other_people(pipeline))
        rejected, listed = Counter(figures.rejected), rejected_path(people)
        if listed.exists():
            with listed.open(encoding="utf-8", newline="") as lines:
                rejected.update(line["reason"] for line in DictReader(lines))
        rows = figures.rows + rejected.total() - sum(figures.rejected.values())
        steps = "" if allowed is None else ", and which of these steps its plan asks"
        unseen = f"moves{steps}: the private fit is not drawn yet" if stand_in else None
        share = pipeline.stages["split"].get("share", "0.5") if "split" in pipeline.stages else None
        figures = replace(figures, rows=rows, rejected=dict(rejected), unseen=unseen, noise=noise, fitted_on=share)
        return _tell(figures, as_json)


def _other_people(pipeline: Pipeline) -> list[str]:
    """The columns of the data that sound like people and that the pipeline does not read, by their names alone."""
    from dphmm.evaluation.table_check import OF_PEOPLE

    data = pipeline.stages["data"]
    try:
        columns, _ = header(first_of(pipeline.beside / data["file"]))
    except InvalidInput:
        # What is no table has no columns before it is imported.
        return []
    return [name for name in columns if OF_PEOPLE.search(name) and name not in data.values()]


def _write_stand_in(given: Mapping[str, Any], path: Path) -> None:
    """A model of the public states and steps of a private fit, in which nobody moves."""
    from scipy.sparse import identity

    space = public_space(given, given["trajectories"])
    alike = np.full(space.n_states, 1 / space.n_states)
    save_model(MarkovModel(alike, identity(space.n_states, format="csr"), space=space, step=times(given)["step"]), path)


def _allowed(options: PlanOptions) -> Schedule:
    """A schedule that may ask wherever a plan of these options may, whatever its model is: that is public."""
    from dphmm.choose.planning import allowed_steps

    promise = options.promise
    assert promise is not None
    epsilon = promise.exact if options.epsilon is None else options.epsilon
    at = allowed_steps(promise, loaded_model(options.model)[0].step, options.hours)
    return Schedule(promise, epsilon, at.tolist(), spreads=(0.0,))


def _figures(options: ReleaseOptions, allowed: Schedule | None = None) -> TableCheck:
    """The figures of the rows of a release; ``allowed``: the steps of a plan that cannot be made yet."""
    from dphmm.evaluation.table_check import Unplaced, table_check

    asked = any(each is not None for each in (options.epsilon, options.path_epsilon, options.plan))
    # What is said of people changes nothing of a table; a model that cannot have it is told by the release.
    options = replace(options, new=False, quiet=True, although=False, check=True, case_names=None, length=None)
    job = Job.of(options if asked else replace(options, epsilon="1"), any_mechanism=True).scheduled(options)
    if allowed is not None:
        job = replace(job, epsilon=None, choices={**job.choices, "schedule": allowed})
    seen = Unplaced(job.space)
    loaded, _ = read_rows(job, options, seen.add)
    with kept_ledger(options.ledger, options.spelling) as ledger:
        batch = job.batch(ledger or MemoryLedger(spelling_of(options.spelling, options.ledger)))
        figures = table_check(batch, loaded, seen, options.trajectories, budget=asked or allowed is not None)
    return replace(figures, noun=options.noun)


def _tell(figures: TableCheck, as_json: bool) -> int:
    """Print them; returns the exit code."""
    if as_json:
        print_json(asdict(figures))
    else:
        click.echo("\n".join(map(reworded, figures.lines())))
    return BAD_INPUT if figures.stops else 0
