"""`PYTHONPATH=tests python -m mutants.generic --sample 200 --seed 1`: small changes of any kind, a sample of them.

Each runs against the tests of its own part of the library, until the first that fails; survivors run against the tests
of the parts above it. Printed is the share that was killed, with an exact 95 % interval, and each survivor as a diff.
"""

from __future__ import annotations

import argparse
import difflib
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import Queue

from mutants.catalogue import ROOT
from mutants.operators import Change, changes
from mutants.workshop import Run, Workshop, workshops

#: Each part, the tests of its own, and those of the parts above that lean on it.
_LEDGER = ("tests/storage/test_ledger_contract.py", "tests/storage/test_ledger_file.py")
_LEDGER += ("tests/storage/test_ledger_machine.py", "tests/storage/test_ledger_facts.py")
_ABOVE = ("tests/session/test_promise.py", "tests/test_naive_twin.py", "tests/exactness/test_slice.py")
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "samplers": (("tests/samplers",), ("tests/mechanisms",)),
    "mechanisms": (("tests/mechanisms",), _ABOVE),
    "sensitivity": (("tests/sensitivity",), ("tests/mechanisms/test_loss.py", *_ABOVE)),
    "policy": (("tests/policy",), ("tests/sensitivity", *_ABOVE)),
    "accounting": (("tests/accounting", *_LEDGER), _ABOVE),
    "storage/ledger": (("tests/accounting", *_LEDGER), ("tests/storage/test_ledger_processes.py",)),
    "session": (("tests/session",), ("tests/independence/test_plan.py", *_ABOVE)),
}
#: Of session, the modules that decide what is released.
_SESSION_MODULES = {"planner.py", "plan.py", "step.py", "session.py", "likelihood.py", "drawing.py"}
LONGEST = 100.0


@dataclass(frozen=True)
class Planted:
    """A change of a file of one part."""

    part: str
    file: str
    change: Change

    def diff(self, root: Path) -> str:
        """The lines that differ."""
        before = (root / self.file).read_text()
        lines = difflib.unified_diff(before.splitlines(), self.change.applied(before).splitlines(), n=0, lineterm="")
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


def population(root: Path, parts: list[str]) -> list[Planted]:
    """Every change there is in these parts."""
    files = [(part, path) for part in parts for path in sorted((root / "src/dphmm" / part).glob("*.py"))]
    chosen = [(part, path) for part, path in files if part != "session" or path.name in _SESSION_MODULES]
    return [
        Planted(part, path.relative_to(root).as_posix(), change)
        for part, path in chosen
        for change in changes(path.read_text())
    ]


def killed_by(shop: Workshop, planted: Planted) -> str:
    """The first test that fails, or "" for a survivor. A change that hangs or cannot be imported is noticed too."""
    text = planted.change.applied((shop.copy / planted.file).read_text())
    with shop.changed({planted.file: text}):
        for tests in PARTS[planted.part]:
            run = shop.run(tests, LONGEST, "-x", "-m", "not long")
            if run.code != 0:
                return _told(run)
    return ""


def _told(run: Run) -> str:
    if run.code is None:
        return "took too long"
    return run.failures[0] if run.failures else "the tests did not start"


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    started, survivors = time.monotonic(), []
    with workshops(given.jobs, ROOT) as shops, ThreadPoolExecutor(given.jobs) as pool:
        root = shops[0].copy
        everything = population(root, given.parts)
        # Shuffled and not sampled: a run that is stopped has done a random sample too.
        random.Random(given.seed).shuffle(everything)
        sample = everything[given.skip : given.sample]
        diffs = {planted: planted.diff(root) for planted in sample}
        free: Queue[Workshop] = Queue()
        for shop in shops:
            free.put(shop)

        def judge(planted: Planted) -> None:
            shop = free.get()
            try:
                killer = killed_by(shop, planted)
            finally:
                free.put(shop)
            place = f"{planted.file}:{planted.change.line} {planted.change.what}"
            shown = f"killed   {place}  {killer}" if killer else f"SURVIVED {place}\n{diffs[planted]}"
            print(shown, flush=True)
            if not killer:
                survivors.append(planted)

        list(pool.map(judge, sample))
    print(
        f"{_score(len(sample) - len(survivors), len(sample))}, of {len(everything)}; {time.monotonic() - started:.0f} s"
    )
    return 0


def _score(killed: int, planted: int) -> str:
    from scipy.stats import binomtest

    interval = binomtest(killed, planted).proportion_ci(0.95, "exact")
    share = f"{100 * killed / planted:.1f} % [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    return f"{killed} of {planted} killed: {share}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mutants.generic", description=__doc__)
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skip", type=int, default=0, help="go on after so many of the sample")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    return parser


if __name__ == "__main__":
    sys.exit(main())
