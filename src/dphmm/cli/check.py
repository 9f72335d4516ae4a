"""dphmm check: the figures of a table for its owner, before anything is spent, and why a release would stop."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import redirect_stderr
from copy import copy
from csv import DictReader
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dphmm.accounting.ledger import MemoryLedger
from dphmm.accounting.promise import Schedule
from dphmm.cli.console import BAD_INPUT, REJECTED, options_called, print_json, reworded
from dphmm.cli.fit import fit
from dphmm.cli.fit_data import public_space, times
from dphmm.cli.help import CONTEXT, Command
from dphmm.cli.init import first_of, header
from dphmm.cli.options import loaded_model, messages, spelling_of
from dphmm.cli.pipeline import LEDGER, MODEL, PEOPLE, STAGES, Pipeline, run_stage
from dphmm.cli.plan import plan
from dphmm.cli.release import read_rows, release
from dphmm.cli.release_job import Job, asked_promise, check_asked
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
#: Options of a release that are no part of a question, or change nothing of a table.
_OTHERS = (
    "trajectories", "model", "policy", "output", "format", "new", "dry_run", "although", "check", "yes", "noun",
    "case_names", "times", "length", "model_people", "quiet", "as_json", "help_all",
)  # fmt: skip


def _of_release(option: click.Parameter) -> click.Parameter:
    """An option of a release, which its own help tells of."""
    option = copy(option)
    if isinstance(option, click.Option):
        option.hidden = True
    return option


@click.command(
    "check",
    cls=Command,
    context_settings=CONTEXT,
    params=[_of_release(option) for option in release.params if option.name not in _OTHERS],
)
@click.argument("trajectories", metavar="TRAJ", required=False)
@click.option("--model", metavar="M", help="The model, as dphmm fit writes it.")
@click.option("--policy", metavar="P", help="The policy, where lonely states are merged by it.")
@click.option("--setup", metavar="FILE", help="In place of all others: a pipeline, of what dphmm run would release.")
@click.option(
    "--about", type=int, metavar="N", help="With --setup: about how many people are fitted on, or in a query."
)
@messages
def check(setup: str | None, about: int | None, quiet: bool, as_json: bool, **given: Any) -> int:
    """Look at a table before anything is spent: what would it be to a release? For its owner alone.

    TRAJ and options are those of dphmm release, of which only --model is needed; with --ledger it says what is left for
    these people. Nothing is drawn, spent, written or published; figures are coarse, and no option is to be fitted to
    them. The exit code is 2 where the release would stop.

    With --setup the rows of a pipeline are read, of everybody also after a split, and a model, a policy and a plan are
    made, in a folder that is removed. A private fit is not drawn: until dphmm run has done it, no moves are looked at,
    and in place of the steps of its plan all that it may ask. What its noise would be is told, and that of
    a query, also beside --about N people.
    """
    if setup is None:
        if about is not None:
            raise InvalidInput("--about", about, "--setup with it")
        for name, missing in (("TRAJ", given["trajectories"]), ("--model", given["model"])):
            if missing is None:
                raise InvalidInput(name, "nothing", "the rows and the model of a release; or --setup, a pipeline")
        return _tell(_figures(given), as_json)
    context = click.get_current_context()
    if any(context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE for name in given):
        raise InvalidInput("--setup", f"{setup}, and other options", "it alone: the pipeline has the options")
    pipeline = Pipeline.read(checked_input(setup, "--setup"))
    pipeline.check()
    # Rows are private: whatever a crash leaves of them lies beside the owner's own.
    with TemporaryDirectory(prefix=".check-", dir=pipeline.beside) as folder:
        scratch = replace(pipeline, place=ReleaseFolder(Path(folder) / "out"), ledger=Path(folder) / LEDGER)
        scratch.folder.mkdir()
        scratch.place.path.mkdir()
        return _of_pipeline(pipeline, scratch, about, as_json)


def _of_pipeline(pipeline: Pipeline, scratch: Pipeline, about: int | None, as_json: bool) -> int:
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
                allowed = _allowed(plan.make_context("plan", list(words[1:])).params)
            else:
                beside = ["--ledger", str(scratch.ledger), "--id", name]
                beside += [] if about is None else ["--about", str(about)]
                with redirect_stderr(StringIO()) as said:
                    ended = run_stage([*words, *(["--dry-run", *beside] if dry else ["--quiet"])])
                if ended not in (0, REJECTED):
                    click.echo(said.getvalue(), err=True, nl=False)
                    return ended
                if dry and name == "fit":
                    _write_stand_in(fit.make_context("fit", list(words[1:])).params, scratch.folder / MODEL)
                if dry:
                    told = [line.partition(" ") for line in said.getvalue().splitlines()]
                    noise += [
                        f"{name}: {part.strip()}"
                        for label, _, part in told
                        if label == "noise" and "expected error" in part
                    ]
    given = release.make_context("release", list(scratch.command("release", 1).words[1:])).params
    given |= {"trajectories": str(scratch.folder / PEOPLE), "ledger": str(pipeline.ledger)}
    with options_called(pipeline.members("release")):
        check_asked(given)
        figures = _figures(given | ({"plan": None} if stand_in else {}), allowed)
        if figures.is_doubtful:
            # An import keeps no other columns; their names are in the source.
            figures = replace(figures, other_people=_other_people(pipeline))
        rejected, listed = Counter(figures.rejected), rejected_path(str(scratch.folder / PEOPLE))
        if listed.exists():
            with listed.open(encoding="utf-8", newline="") as lines:
                rejected.update(line["reason"] for line in DictReader(lines))
        rows = figures.rows + rejected.total() - sum(figures.rejected.values())
        steps = "" if allowed is None else ", and which of these steps its plan asks"
        unseen = f"moves{steps}: the private fit is not drawn yet" if stand_in else None
        return _tell(replace(figures, rows=rows, rejected=dict(rejected), unseen=unseen, noise=noise), as_json)


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


def _allowed(given: Mapping[str, Any]) -> Schedule:
    """A schedule that may ask wherever a plan of these options may, whatever its model is: that is public."""
    from dphmm.choose.planning import allowed_steps

    promise = asked_promise(given)
    assert promise is not None
    epsilon = promise.exact if given["epsilon"] is None else given["epsilon"]
    at = allowed_steps(promise, loaded_model(given["model"])[0].step, given["hours"])
    return Schedule(promise, epsilon, at.tolist(), spreads=(0.0,))


def _figures(given: Mapping[str, Any], allowed: Schedule | None = None) -> TableCheck:
    """The figures of the rows of a release; ``allowed``: the steps of a plan that cannot be made yet."""
    from dphmm.evaluation.table_check import Unplaced, table_check

    asked = any(given[name] is not None for name in ("epsilon", "path_epsilon", "plan"))
    unasked = dict.fromkeys(("check", "although", "noun", "case_names", "times", "length"))
    options = {**given, "new": False, "quiet": True, **unasked}
    job = Job.of(options if asked else {**options, "epsilon": "1"}, any_mechanism=True).scheduled(options)
    if allowed is not None:
        job = replace(job, epsilon=None, choices={**job.choices, "schedule": allowed})
    seen = Unplaced(job.space)
    loaded, _ = read_rows(job, given, seen.add)
    with kept_ledger(given["ledger"], given["spelling"]) as ledger:
        batch = job.batch(ledger or MemoryLedger(spelling_of(given)))
        return table_check(batch, loaded, seen, given["trajectories"], budget=asked or allowed is not None)


def _tell(figures: TableCheck, as_json: bool) -> int:
    """Print them; returns the exit code."""
    if as_json:
        print_json(asdict(figures))
    else:
        click.echo("\n".join(map(reworded, figures.lines())))
    return BAD_INPUT if figures.stops else 0
