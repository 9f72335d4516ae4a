"""Choose the cases, measure them, print the table."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from benchmarks.speed.cases import CASES
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, table
from benchmarks.speed.machine import described, load, sentence


def main() -> None:
    """Measure; progress is on standard error, the table on standard output."""
    given = _arguments()
    about = described()
    figures = measured(given.only, Effort(given.quick, given.diffprivlib_python, given.long))
    about["load_after"] = load()
    print(f"{'Quick run. ' if given.quick else ''}{sentence(about)}\n\n{table(figures)}")
    if given.json is not None:
        document = {"about": about, "quick": given.quick, "figures": [figure.document() for figure in figures]}
        given.json.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def measured(names: list[str], effort: Effort) -> list[Figure]:
    """All figures of some cases, each shown as soon as it is there."""
    found = []
    for name in names:
        began = time.perf_counter()
        for figure in CASES[name](effort):
            found.append(figure)
            _say(table([figure]).splitlines()[-1])
        _say(f"({name}: {time.perf_counter() - began:.0f} s)")
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer repeats and smaller sizes: a minute or two")
    parser.add_argument(
        "--long", action="store_true", help="larger sizes and real data too: half an hour for each case"
    )
    parser.add_argument("--only", default=list(CASES), type=_names, help=f"by commas: {', '.join(CASES)}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument(
        "--diffprivlib-python", metavar="PYTHON", help="a Python of another environment with diffprivlib"
    )
    return parser.parse_args()


def _names(text: str) -> list[str]:
    names = text.split(",")
    if unknown := sorted(set(names) - set(CASES)):
        raise argparse.ArgumentTypeError(f"{unknown[0]}: one of {', '.join(CASES)}")
    return names


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
