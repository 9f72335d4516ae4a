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

# The bar of the commands: an experiment takes minutes.
from dphmm._progress import shown

# Boxes, lengths and durations as the commands spell them.
from dphmm.cli.options import duration, length, parse_box
from dphmm.errors import DphmmError, InvalidInput
from experiments import NAMES, experiment
from experiments.drawing import can_draw
from experiments.experiment import Own, OwnGraph, OwnRows, OwnSequences, Settings
from experiments.running import run, write_results

#: Options that rows of one's own need beside them, and an example of each.
_NEEDED: dict[type[OwnRows], dict[str, str]] = {
    Own: {"bbox": "116.28,39.85,116.48,39.99", "grid": "340m", "step": "5s", "radius": "1km"},
    OwnSequences: {"symbols": "17", "states": "5"},
    OwnGraph: {"coefficient": "0.5"},
}


def main(words: Sequence[str] | None = None) -> int:
    """Run the experiment that the words name; returns the exit code."""
    parser = argparse.ArgumentParser("python -m experiments", description=__doc__)
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("-o", "--output", metavar="DIR", help="folder for results; one of an earlier run goes on there")
    parser.add_argument("--data", metavar="DIR", help="folder of the real data sets (default: $DPHMM_DATA)")
    own = parser.add_argument_group(
        "your own rows, for dphmm, location-sets, steps, synthesis, hmm-privacy, dependence"
    )
    own.add_argument("--trajectories", metavar="FILE", help="rows of user, t, lat, lon; for hmm-privacy user, state")
    own.add_argument("--bbox", metavar="W,S,E,N", help="public box, degrees: west, south, east, north")
    own.add_argument("--grid", metavar="LENGTH", help="side of a cell: 340m")
    own.add_argument("--step", metavar="DURATION", help="length of a step: 5s, 1min")
    own.add_argument("--radius", metavar="LENGTH", help="radius of Gutil: 1km")
    own.add_argument("--symbols", metavar="N", type=int, help="hmm-privacy: so many symbols at most")
    own.add_argument("--states", metavar="N", type=int, help="hmm-privacy: hidden states")
    own.add_argument("--graph", metavar="FILE", help="dependence: pairs of people, in two columns")
    own.add_argument("--coefficient", metavar="R", type=float, help="dependence: of each pair, 0 to 1")
    own.add_argument("--length", metavar="N", type=int, default=100, help="steps of each walk (default: 100)")
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
    folder, own = Path(given.output), _own(given, chosen.takes_own)
    settings = Settings(given.seed, _data(given.data) if own is None else None, given.quick, own)
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


def _own(given: argparse.Namespace, takes: type[OwnRows] | None) -> OwnRows | None:
    """The rows that were named, with all that the papers' settings need."""
    needed = _NEEDED[takes or Own]
    rows, other = ("graph", "trajectories") if takes is OwnGraph else ("trajectories", "graph")
    if getattr(given, other) is not None:
        raise InvalidInput(f"--{other}", getattr(given, other), f"nothing: {given.name} has --{rows} FILE")
    file = getattr(given, rows)
    for option in (option for options in _NEEDED.values() for option in options):
        value = getattr(given, option)
        if value is not None and file is None:
            raise InvalidInput(f"--{option}", value, f"--{rows} FILE beside it")
        if value is not None and option not in needed:
            raise InvalidInput(f"--{option}", value, f"nothing: {given.name} does not have it")
        if value is None and file is not None and option in needed:
            example = " ".join(f"--{name} {text}" for name, text in needed.items())
            raise InvalidInput(f"--{option}", "nothing", f"a value beside --{rows}, as in {example}")
    if file is None:
        return None
    if given.data is not None:
        raise InvalidInput("--data", given.data, f"--data or --{rows}, not both")
    if given.length < 1:
        raise InvalidInput("--length", given.length, "a number of steps, 1 or more")
    if takes is OwnGraph:
        if not 0 <= given.coefficient <= 1:
            raise InvalidInput("--coefficient", given.coefficient, "a number from 0 to 1")
        return OwnGraph(Path(file), given.coefficient)
    if takes is OwnSequences:
        for option in needed:
            if getattr(given, option) < 2:
                raise InvalidInput(f"--{option}", getattr(given, option), "a number of them, 2 or more")
        return OwnSequences(Path(given.trajectories), given.symbols, given.states, given.length)
    box = parse_box(given.bbox)
    return Own(
        file=Path(given.trajectories),
        box=(box.west, box.south, box.east, box.north),
        cell=float(length(given.grid, "--grid")),
        step=duration(given.step, "--step"),
        radius=float(length(given.radius, "--radius")),
        length=given.length,
    )


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
