"""`PYTHONPATH=tests python -m mutants --jobs 2` plants every seeded bug: exit 1 unless each is killed.

`--only S1 H10` plants these, `--why` tells the last words of what killed them. Each runs in a copy
of the project, with the tests named beside it and no others.
"""

from __future__ import annotations

import argparse
import sys
import time

from mutants.catalogue import ROOT, catalogue
from mutants.seeding import Verdict, summary, verdicts


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    chosen = [mutant for mutant in catalogue() if not given.only or mutant.number in given.only]
    if given.list:
        for mutant in chosen:
            print(f"{mutant.number:4} {mutant.bug}")
        return 0
    started = time.monotonic()
    found = verdicts(chosen, ROOT, given.jobs, lambda verdict: _show(verdict, given.why))
    print(f"{summary(found)}, in {time.monotonic() - started:.0f} s")
    return int(not chosen or any(not verdict.good for verdict in found))


def _show(verdict: Verdict, why: bool) -> None:
    mutant = verdict.mutant
    print(f"{mutant.number:4} {verdict.outcome:16} {mutant.bug}", flush=True)
    if why or not verdict.good or verdict.outcome == "absent":
        print(f"     {verdict.told}", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", nargs="+", metavar="NUMBER")
    parser.add_argument("--list", action="store_true", help="what is planted, without planting it")
    parser.add_argument("--why", action="store_true", help="the last words of the first test that failed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
