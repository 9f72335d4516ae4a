"""dphmm experiment: what the papers measured, measured again."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import click

import dphmm
from dphmm.cli.console import Console, Interrupted, print_json
from dphmm.cli.options import CONTEXT, messages
from dphmm.errors import InvalidInput

#: What the folder's first line says: many folders are called "experiments".
_FIRST_LINE = '"""Experiments: what the papers measured, measured again. `dphmm experiment` runs them.'


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

    Experiments are not installed: run this in a checkout of the source, whose folder experiments/ holds them.
    Nothing here is a private release: experiments use replayable noise, and look at true states to measure errors.
    """
    experiments = _experiments()
    console = Console(quiet=quiet or as_json)
    if name is None:
        if output is not None:
            raise InvalidInput("NAME", "nothing", f"one of {', '.join(experiments.NAMES)}; without -o they are listed")
        for known in experiments.NAMES:
            click.echo(f"{known}  {experiments.experiment(known).title}")
        return
    chosen = experiments.experiment(name)
    if output is None:
        raise InvalidInput("-o", "nothing", "a folder for the results")
    if jobs < 1:
        raise InvalidInput("--jobs", jobs, "a number of processes, 1 or more")
    running = import_module("experiments.running")
    folder, settings = Path(output), running.Settings(seed=seed, data=_data(data), quick=quick)
    try:
        with console.progress(name) as progress:
            results = running.run(chosen, settings, folder, jobs=jobs, progress=progress)
        paths = running.write_results(chosen, settings, results, folder)
    except KeyboardInterrupt as stop:
        raise Interrupted(f"interrupted: {folder} keeps what was measured; the same command goes on", stop) from None
    console.note(f"{len(results.rows)} rows measured in {results.seconds:.0f} s of one core")
    if settings.data is not None:
        _warn_of_skipped(results.tables.get("skipped"), console)
    if chosen.figures and not running.can_draw():
        console.note("no figures: pip install 'dphmm[plot]' for them")
    if as_json:
        print_json({"experiment": name, "rows": len(results.rows), "files": [str(path) for path in paths]})
        return
    click.echo(folder / "results.md")


def _experiments() -> Any:
    """The package of experiments: beside the package's source, or in the current directory.

    Raises InvalidInput where neither has it.
    """
    source = Path(dphmm.__file__).parent.parent
    for place in (source.parent, Path.cwd()):
        if _are_ours(place / "experiments"):
            # At the front, and by its path: processes that share the work import it by the same path.
            sys.path[:] = [str(place), *(entry for entry in sys.path if entry != str(place))]
            return import_module("experiments")
    expected = "to be run in a checkout of dphmm's source, as experiments are not installed with the package"
    raise InvalidInput("experiments", "no folder experiments/ of dphmm here", expected)


def _are_ours(folder: Path) -> bool:
    try:
        with (folder / "__init__.py").open(encoding="utf-8") as file:
            return file.readline().rstrip() == _FIRST_LINE
    except (OSError, UnicodeDecodeError):
        return False


def _warn_of_skipped(skipped: Any, console: Console) -> None:
    """There is a folder of data, but not with all of it."""
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
