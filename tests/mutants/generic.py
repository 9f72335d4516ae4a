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
_LEDGER = tuple(
    f"tests/storage/ledger/test_{name}.py" for name in ("contract", "sqlite", "schema", "transaction", "rows")
)
_ABOVE = ("tests/session/test_promise.py", "tests/test_naive_twin.py", "tests/exactness/test_slice.py")
PARTS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "samplers": (("tests/samplers",), ("tests/mechanisms",)),
    "mechanisms": (("tests/mechanisms",), _ABOVE),
    "sensitivity": (("tests/sensitivity",), ("tests/mechanisms/test_loss.py", *_ABOVE)),
    "policy": (("tests/policy",), ("tests/sensitivity", *_ABOVE)),
    "accounting": (("tests/accounting", *_LEDGER), _ABOVE),
    "storage/ledger": (("tests/accounting", *_LEDGER), ("tests/storage/ledger/test_processes.py",)),
    "session": (("tests/session",), ("tests/independence/test_plan.py", *_ABOVE)),
    "states": (("tests/states",), ("tests/storage/test_trajectories.py", "tests/cli/test_fit.py")),
    "storage": (
        ("tests/storage", "--ignore=tests/storage/ledger"),
        ("tests/cli/test_tables.py", "tests/cli/test_release.py", "tests/cli/test_query.py"),
    ),
    "storage/importers": (
        ("tests/storage/importers", "tests/storage/test_columns.py"),
        ("tests/cli/test_tables.py",),
    ),
    "batch": (("tests/release/test_batch.py",), ("tests/proofs/test_joint_batches.py", "tests/cli/test_release.py")),
    "cli": (
        ("tests/cli/test_app.py", "tests/cli/test_bad_input.py"),
        ("tests/cli/test_release.py", "tests/cli/test_fit.py"),
    ),
}
#: Of session, the modules that decide what is released.
_SESSION_MODULES = {"planner.py", "plan.py", "step.py", "session.py", "likelihood.py", "answer.py"}
#: In these folders of tests a module is tested first by the files that a word of its name begins, if there are any.
_NAMED = {"storage": "tests/storage", "cli": "tests/cli"}
#: Tests may take this many seconds, and three times as long as they take on unchanged code.
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
    files = [(part, path) for part in parts for path in _modules(root / "src/dphmm" / part)]
    chosen = [(part, path) for part, path in files if part != "session" or path.name in _SESSION_MODULES]
    return [
        Planted(part, path.relative_to(root).as_posix(), change)
        for part, path in chosen
        for change in changes(path.read_text())
    ]


def _modules(part: Path) -> list[Path]:
    """The files of a part, which is a folder or a single module."""
    return sorted(part.glob("*.py")) if part.is_dir() else [part.with_suffix(".py")]


def tests_of(root: Path, planted: Planted) -> tuple[tuple[str, ...], ...]:
    """The tests that a change of a file faces, one group after the other."""
    own, above = PARTS[planted.part]
    folder = _NAMED.get(planted.part)
    if folder is None:
        return own, above
    words = Path(planted.file).stem.strip("_").split("_")
    found = {path for word in words for path in (root / folder).glob(f"test_{word}*.py")}
    named = tuple(sorted(path.relative_to(root).as_posix() for path in found))
    return (named, (*own, *above)) if named else (own, above)


class Baseline:
    """How long groups of tests take on unchanged code; they must pass there, or no change could be told from none."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, ...], float] = {}

    def limit(self, shop: Workshop, tests: tuple[str, ...]) -> float:
        """How many seconds the tests are given. The first run of a group also compiles the kernels that it needs."""
        if tests not in self._seconds:
            started = time.monotonic()
            run = shop.run(tests, 3600.0, "-x", "-m", "not long")
            if run.code != 0:
                raise SystemExit(f"{' '.join(tests)} do not pass on unchanged code: {_told(run)}")
            self._seconds[tests] = time.monotonic() - started
        return LONGEST + 3 * self._seconds[tests]


def killed_by(shop: Workshop, planted: Planted, baseline: Baseline) -> str:
    """The first test that fails, or "" for a survivor. A change that hangs or cannot be imported is noticed too."""
    text = planted.change.applied((shop.copy / planted.file).read_text())
    for tests in tests_of(shop.copy, planted):
        limit = baseline.limit(shop, tests)
        with shop.changed({planted.file: text}):
            run = shop.run(tests, limit, "-x", "-m", "not long")
        if run.code != 0:
            return _told(run)
    return ""


def _told(run: Run) -> str:
    if run.code is None:
        return "took too long"
    return run.failures[0] if run.failures else "the tests did not start"


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    started, survivors, baseline = time.monotonic(), [], Baseline()
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
                killer = killed_by(shop, planted, baseline)
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
