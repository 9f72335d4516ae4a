"""dphmm experiment: what the papers measured, measured again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dphmm.cli.console import Console, print_json
from dphmm.cli.options import CONTEXT, messages
from dphmm.cli.outcomes import Interrupted
from dphmm.errors import InvalidInput

if TYPE_CHECKING:
    from dphmm.evaluation.running import Results


@click.command("experiment", context_settings=CONTEXT)
@click.argument("name", required=False)
@click.option("-o", "--output", metavar="DIR", help="The folder for results; one of an earlier run goes on there.")
@click.option("--data", metavar="DIR", help="The folder of the real data sets  [default: $DPHMM_DATA]")
@click.option("--seed", type=int, default=1, show_default=True, help="Results are the same for the same seed.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Processes that share the work.")
@click.option("--quick", is_flag=True, help="A smaller experiment, to see how it works.")
@messages
def experiment(
    name: str | None,
    output: str | None,
    data: str | None,
    seed: int,
    jobs: int,
    quick: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run an experiment and write its tables and figures; without NAME, list the experiments.

    Nothing here is a private release: experiments use replayable noise, and look at true states to measure errors.
    """
    from dphmm.evaluation.experiments import NAMES
    from dphmm.evaluation.experiments import experiment as find

    console = Console(quiet=quiet or as_json)
    if name is None:
        if output is not None:
            raise InvalidInput("NAME", "nothing", f"one of {', '.join(NAMES)}; without -o they are listed")
        for known in NAMES:
            click.echo(f"{known}  {find(known).title}")
        return
    chosen = find(name)
    if output is None:
        raise InvalidInput("-o", "nothing", "a folder for the results")
    if jobs < 1:
        raise InvalidInput("--jobs", jobs, "a number of processes, 1 or more")

    from dphmm.evaluation.experiment import Settings
    from dphmm.evaluation.running import run
    from dphmm.report.figures import can_draw
    from dphmm.report.results import write_results

    folder, settings = Path(output), Settings(seed=seed, data=_data(data), quick=quick)
    try:
        with console.progress(name) as progress:
            results = run(chosen, settings, folder, jobs=jobs, progress=progress)
        paths = write_results(chosen, settings, results, folder)
    except KeyboardInterrupt as stop:
        raise Interrupted(f"interrupted: {folder} keeps what was measured; the same command goes on", stop) from None
    console.note(f"{len(results.rows)} rows measured in {results.seconds:.0f} s of one core")
    if settings.data is not None:
        _warn_of_skipped(results, console)
    if chosen.figures and not can_draw():
        console.note("no figures: pip install 'dphmm[plot]' for them")
    if as_json:
        print_json({"experiment": name, "rows": len(results.rows), "files": [str(path) for path in paths]})
        return
    click.echo(folder / "results.md")


def _warn_of_skipped(results: Results, console: Console) -> None:
    """There is a folder of data, but not with all of it."""
    skipped = results.tables.get("skipped")
    if skipped is not None and len(skipped):
        told = "; ".join(f"{name} ({reason})" for name, reason in zip(skipped["data"], skipped["reason"], strict=True))
        console.warn(f"left out: {told}")


def _data(given: str | None) -> Path | None:
    """The folder that was named, or that the environment names; None where there is none."""
    folder = given or os.environ.get("DPHMM_DATA")
    if not folder:
        return None
    if not Path(folder).is_dir():
        field = "--data" if given else "DPHMM_DATA"
        raise InvalidInput(field, folder, "the folder of the data sets")
    return Path(folder)
