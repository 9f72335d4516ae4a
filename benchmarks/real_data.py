"""Real trajectories, web sessions and careers through the commands: errors, drift and cost, as a Markdown table.

    python benchmarks/real_data.py --data FOLDER --out DIR [--only NAME,...] [--users N]

Every step is a `dphmm` command; what a data owner does outside of it (splitting people into halves, and joining the
truth to the released file for measuring) is done here. Interrupted, the same command goes on: a finished cell of the
table lies in DIR as JSON and is not run again. Progress is on standard error, the table on standard output.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

# Run as a script, the folder of this file is on the path, not the one above it.
sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.real.errors import answers_of, blind_error, estimated, joined, mean_errors, stay_errors
from benchmarks.real.inputs import INPUTS
from benchmarks.real.matrix import Cell, cells, counts_of, release_arguments
from benchmarks.real.preparing import prepare
from benchmarks.real.running import command, drift_in, run_cell
from benchmarks.real.tables import stay_table, table

#: What the tests of real inputs use; the rest is run by `main`.
__all__ = [
    "INPUTS",
    "Cell",
    "answers_of",
    "cells",
    "counts_of",
    "drift_in",
    "estimated",
    "joined",
    "mean_errors",
    "prepare",
    "release_arguments",
]


def main() -> None:
    """Run the matrix."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of real data")
    parser.add_argument("--out", type=Path, required=True, help="where files and results go; finished cells are kept")
    parser.add_argument("--only", default=",".join(INPUTS), help="names of inputs, by commas")
    parser.add_argument("--users", type=int, help="how many people are released of each input")
    given = parser.parse_args()
    names = given.only.split(",")
    if unknown := set(names) - set(INPUTS):
        parser.error(f"--only {min(unknown)}: one of {', '.join(INPUTS)}")
    results, stays = [], []
    for name in names:
        users = given.users or INPUTS[name].users
        folder = given.out / f"{name}-{users}"
        prepared = folder / "prepared"
        if not prepared.exists():
            prepare(INPUTS[name], given.data, folder, users, command)
            prepared.touch()
        for cell in cells(name):
            print(cell.file, file=sys.stderr, flush=True)
            results.append((cell, {**run_cell(cell, folder), "blind": blind_error(cell, folder)}))
            if "--step" in INPUTS[name].fitting:
                stays.append((cell, stay_errors(cell, folder)))
    print(table(results))
    if stays:
        print(f"\nMedian errors of the estimate:\n\n{stay_table(stays)}")


if __name__ == "__main__":
    main()
