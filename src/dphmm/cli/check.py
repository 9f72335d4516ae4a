"""dphmm check: the figures of a table for its owner, before anything is spent, and why a release would stop."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from contextlib import redirect_stderr
from csv import DictReader
from dataclasses import asdict, replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click
import numpy as np

from dphmm.accounting.ledger import MemoryLedger
from dphmm.cli.console import BAD_INPUT, REJECTED, print_json, reworded
from dphmm.cli.fit import fit
from dphmm.cli.fit_data import public_space, times
from dphmm.cli.options import CONTEXT, messages, spelling_of
from dphmm.cli.pipeline import LEDGER, MODEL, PEOPLE, Pipeline, run_stage
from dphmm.cli.release import read_rows, release
from dphmm.cli.release_job import Job, kept_ledger
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.storage.inputs import checked_input
from dphmm.storage.models import save_model
from dphmm.storage.private_tables import rejected_path

#: Options of a release that are no part of a question, or change nothing of a table.
_OTHERS = (
    "trajectories", "model", "policy", "output", "resume", "dry_run", "statement", "owner_view", "although", "check",
    "model_people", "mechanism", "quiet", "as_json",
)  # fmt: skip


@click.command(
    "check", context_settings=CONTEXT, params=[option for option in release.params if option.name not in _OTHERS]
)
@click.argument("trajectories", metavar="TRAJ", required=False)
@click.option("--model", metavar="M", help="The model, as dphmm fit writes it.")
@click.option("--policy", metavar="P", help="The policy, where lonely states are merged by it.")
@click.option("--setup", metavar="FILE", help="In place of all others: a pipeline, of what dphmm run would release.")
@messages
def check(setup: str | None, quiet: bool, as_json: bool, **given: Any) -> int:
    """Look at a table before anything is spent: what would it be to a release? For its owner alone.

    TRAJ and options are those of dphmm release, of which only --model is needed; with --ledger it says what is left for
    these people. Nothing is drawn, spent, written or published; figures are coarse, and no option is to be fitted to
    them. The exit code is 2 where the release would stop.

    With --setup the rows of a pipeline are read, of everybody also after a split, and a model, a policy and a plan are
    made, in a folder that is removed. A private fit is not drawn: until dphmm run has done it, the steps of its plan
    are not known.
    """
    if setup is None:
        for name, missing in (("TRAJ", given["trajectories"]), ("--model", given["model"])):
            if missing is None:
                raise InvalidInput(name, "nothing", "the rows and the model of a release; or --setup, a pipeline")
        return _look(given, as_json)
    context = click.get_current_context()
    if any(context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE for name in given):
        raise InvalidInput("--setup", f"{setup}, and other options", "it alone: the pipeline has the options")
    pipeline = Pipeline.read(checked_input(setup, "--setup"))
    pipeline.check()
    # Rows are private: whatever a crash leaves of them lies beside the owner's own.
    with TemporaryDirectory(prefix=".check-", dir=pipeline.beside) as folder:
        return _of_pipeline(pipeline, replace(pipeline, folder=Path(folder)), as_json)


def _of_pipeline(pipeline: Pipeline, scratch: Pipeline, as_json: bool) -> int:
    """Look at the rows of a pipeline, with its public stages run in a folder from scratch."""
    drawn, planned = "fit" in pipeline.stages and pipeline.is_drawn("fit"), True
    for name in ("data", "split", "model", "fit", "policy", "plan"):
        if name not in scratch.stages or (name == "plan" and not planned):
            continue
        words = scratch.command(name, 1).words
        if name == "fit" and drawn and (pipeline.folder / MODEL).exists():
            shutil.copyfile(pipeline.folder / MODEL, scratch.folder / MODEL)
        elif name == "fit" and drawn:
            planned = False
            _write_stand_in(fit.make_context("fit", list(words[1:])).params, scratch.folder / MODEL)
        else:
            with redirect_stderr(StringIO()) as said:
                ended = run_stage([*words, "--quiet"])
            if ended not in (0, REJECTED):
                click.echo(said.getvalue(), err=True, nl=False)
                return ended
    given = release.make_context("release", list(scratch.command("release", 1).words[1:])).params
    given |= {"trajectories": str(scratch.folder / PEOPLE), "ledger": str(pipeline.folder / LEDGER)}
    left_out, listed = Counter[str](), rejected_path(str(scratch.folder / PEOPLE))
    if listed.exists():
        with listed.open(encoding="utf-8", newline="") as rows:
            left_out.update(row["reason"] for row in DictReader(rows))
    return _look(given | ({} if planned else {"plan": None}), as_json, left_out)


def _write_stand_in(given: Mapping[str, Any], path: Path) -> None:
    """A model of the public states and steps of a private fit, in which nobody moves."""
    from scipy.sparse import identity

    space = public_space(given, given["trajectories"])
    alike = np.full(space.n_states, 1 / space.n_states)
    save_model(MarkovModel(alike, identity(space.n_states, format="csr"), space=space, step=times(given)["step"]), path)


def _look(given: Mapping[str, Any], as_json: bool, left_out: Counter[str] | None = None) -> int:
    """Print the figures of the rows of a release, with those that an import ``left_out``; returns the exit code."""
    from dphmm.evaluation.table_check import Unplaced, table_check

    asked = any(given[name] is not None for name in ("epsilon", "path_epsilon", "plan"))
    options = {**given, "resume": True, "quiet": True, "mechanism": None, "check": None, "although": None}
    job = Job.of(options if asked else {**options, "epsilon": "1"}).scheduled(options)
    seen = Unplaced(job.space)
    loaded, _ = read_rows(job, given, seen.add)
    with kept_ledger(given["ledger"], given["spelling"]) as ledger:
        batch = job.batch(ledger or MemoryLedger(spelling_of(given)))
        figures = table_check(batch, loaded, seen, given["trajectories"], budget=asked)
    if left_out:
        rejected = dict(left_out + Counter(figures.rejected))
        figures = replace(figures, rows=figures.rows + left_out.total(), rejected=rejected)
    if as_json:
        print_json(asdict(figures))
    else:
        click.echo("\n".join(map(reworded, figures.lines())))
    return BAD_INPUT if figures.stops else 0
