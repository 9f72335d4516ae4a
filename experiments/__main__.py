"""Run an experiment and write its tables and figures; without NAME, list the experiments.

Nothing here is a private release: experiments use replayable noise, and look at true states to measure errors.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dphmm import DphmmError, InvalidInput

# The bar of the commands: an experiment takes minutes.
from dphmm._progress import shown
from dphmm.plot.figures import can_draw
from experiments import NAMES, experiment
from experiments.experiment import Settings
from experiments.running import run, write_results


def main(words: Sequence[str] | None = None) -> int:
    """Run the experiment that the words name; returns the exit code."""
    parser = argparse.ArgumentParser("python -m experiments", description=__doc__)
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder for results; one of an earlier run goes on there")
    parser.add_argument("--data", metavar="DIR", help="folder of the real data sets (default: $DPHMM_DATA)")
    parser.add_argument("--seed", type=int, default=1, help="results are the same for the same seed (default: 1)")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the work (default: 1)")
    parser.add_argument("--quick", action="store_true", help="a smaller experiment, to see how it works")
    given = parser.parse_args(words)
    try:
        return _run(given)
    except DphmmError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"interrupted: {given.output} keeps what was measured; the same command goes on", file=sys.stderr)
        return 130


def _run(given: argparse.Namespace) -> int:
    if given.name is None:
        if given.output is not None:
            raise InvalidInput("NAME", "nothing", f"one of {', '.join(NAMES)}; without -o they are listed")
        for name in NAMES:
            print(f"{name}  {experiment(name).title}")
        return 0
    chosen = experiment(given.name)
    if given.output is None:
        raise InvalidInput("-o", "nothing", "a folder for the results")
    if given.jobs < 1:
        raise InvalidInput("--jobs", given.jobs, "a number of processes, 1 or more")
    folder, settings = Path(given.output), Settings(seed=given.seed, data=_data(given.data), quick=given.quick)
    with shown(True, given.name) as progress:
        results = run(chosen, settings, folder, jobs=given.jobs, progress=progress)
    write_results(chosen, settings, results, folder)
    print(f"{len(results.rows)} rows measured in {results.seconds:.0f} s of one core", file=sys.stderr)
    if settings.data is not None:
        _warn_of_skipped(results.tables.get("skipped"))
    if chosen.figures and not can_draw():
        print("no figures: pip install 'dphmm[plot]' for them", file=sys.stderr)
    print(folder / "results.md")
    return 0


def _warn_of_skipped(skipped: Any) -> None:
    """Name the data sets that the folder of data lacks."""
    if skipped is not None and len(skipped):
        names = "; ".join(f"{name} ({reason})" for name, reason in zip(skipped["data"], skipped["reason"], strict=True))
        print(f"warning: left out: {names}", file=sys.stderr)


def _data(given: str | None) -> Path | None:
    """The folder that was named, or that the environment names; None where there is none."""
    folder = given or os.environ.get("DPHMM_DATA")
    if not folder:
        return None
    if not Path(folder).is_dir():
        field = "--data" if given else "DPHMM_DATA"
        raise InvalidInput(field, folder, "the folder of the data sets")
    return Path(folder)


if __name__ == "__main__":
    sys.exit(main())
