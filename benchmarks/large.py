"""What a row of `dphmm release` takes: bytes of peak memory that each further row adds, and CPU time.

    python benchmarks/large.py [--rows 1e6 3e6] [--format parquet csv] [--order time user] [--place]
                               [--each 1000] [--alone] [--against OLD/src]

A made-up table of people, a step of five minutes, and states of a name or places on a map, is released in a process of
its own at each size. "plain" is the same command with all of the file read first, as arrays; with ``--against`` also
another version of the package. What a row adds is told between every size and the next; from 10^6 on, since a process
takes some 300 MB before and blocks of text are read ahead. Ten million rows take about a minute for each version.
"""

from __future__ import annotations

import argparse
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
STEP = 300
PART = 2**20


class Cost(NamedTuple):
    """What a process took: bytes at its peak, and seconds of CPU time."""

    peak: int
    seconds: float


def table(path: Path, rows: int, each: int, order: str, place: bool) -> None:
    """Rows of ``rows / each`` people, by time (as they come) or by user."""
    import pyarrow as pa

    from dphmm.storage.tables import table_writer

    rng, people = np.random.default_rng(1), max(1, rows // each)
    names = pa.array([f"user{number}" for number in range(people)])
    states = pa.array([f"s{number}" for number in range(16)])

    def part(first: int) -> pa.Table:
        row = np.arange(first, min(first + PART, rows))
        user, step = (row % people, row // people) if order == "time" else (row // each, row % each)
        times = 1_700_000_000_000_000 + step * STEP * 1_000_000
        columns = {
            "user": pa.DictionaryArray.from_arrays(pa.array(np.minimum(user, people - 1)), names).cast(pa.string()),
            "t": pa.array(times, pa.timestamp("us", "UTC")),
        }
        if place:
            columns["lat"], columns["lon"] = (pa.array(low + rng.random(len(row)) * 0.18) for low in (48.0, 2.0))
        else:
            drawn = pa.array(rng.integers(0, 16, len(row)))
            columns["state"] = pa.DictionaryArray.from_arrays(drawn, states).cast(pa.string())
        return pa.table(columns)

    with table_writer(path, part(0).schema) as write:
        for first in range(0, rows, PART):
            write(part(first))


def world(folder: Path, place: bool) -> None:
    """A model and a policy."""
    import dphmm
    from dphmm.states.grid import Grid
    from dphmm.storage.policies import save_policy

    space = Grid.from_bounds(2.0, 48.0, 2.18, 48.18, cell=1000) if place else None
    space = space or dphmm.StateSpace.categories([f"s{number}" for number in range(16)])
    n = space.n_states
    model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), space=space, step=STEP)
    dphmm.storage.save_model(model, folder / "model.npz")
    save_policy(dphmm.policy.radius(space, 1500 if place else 2), folder / "policy.json", model=model)


def released(folder: Path, rows: Path, sources: Path, plain: bool) -> Cost:
    """One release by the package of a folder of sources."""
    for old in (*folder.glob("out"), *folder.glob("out.owner"), *folder.glob("l.db*")):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    words = [
        "release",
        str(rows),
        "--model",
        "model.npz",
        "--policy",
        "policy.json",
        "--epsilon",
        "1",
        "-q",
        "--model-people",
        "others",
    ]
    words += ["-o", "out", "--format", "parquet", "--ledger", "l.db"]
    # Other versions may ask nothing where no limit is set.
    words += ["--yes"] * ('"--yes"' in (sources / "dphmm" / "cli" / "release.py").read_text())
    begin = [sys.executable, __file__, "--worker"] if plain else [sys.executable, "-m", "dphmm"]
    env = {**os.environ, "PYTHONPATH": str(sources), "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([*begin, *words], cwd=folder, env=env)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit("a release failed; its message is above")
    return Cost(used.ru_maxrss * 1024, used.ru_utime + used.ru_stime)


def read_whole(words: list[str]) -> None:
    """The command, but with the whole file read before a row is looked at."""
    from dphmm.__main__ import main
    from dphmm.states.visit_table import VisitTable
    from dphmm.storage import trajectories
    from dphmm.storage.trajectories import load_trajectories

    def whole(path, space, seconds=None, answer="last", *, state_column=None):
        loaded = load_trajectories(path, state_column=state_column, bins=seconds, space=space)
        return trajectories.LoadedVisits(VisitTable.of(loaded.trajectories, space, seconds, answer), loaded.rejected)

    trajectories.load_visits = whole
    sys.argv[1:] = words
    main()


def lines(asked: argparse.Namespace, folder: Path) -> Iterator[str]:
    """A line for each version and size, as they come."""
    world(folder, asked.place)
    versions = {"here": (ROOT / "src", False)} | ({} if asked.alone else {"plain": (ROOT / "src", True)})
    if asked.against:
        versions["against"] = (asked.against.resolve(), False)
    sizes = sorted({int(float(size)) for size in asked.rows})
    heads = ("bytes a row", 12), ("CPU s", 7), ("µs a row", 9), ("CPU / plain", 11)
    yield " ".join([f"{'file':18} {'version':8} {'rows':>12} {'peak MB':>8}", *(f"{head:>{n}}" for head, n in heads)])
    for form, order in itertools.product(asked.format, asked.order):
        before: dict[str, tuple[int, Cost]] = {}
        for size in sizes:
            rows = folder / f"rows.{form}"
            table(rows, size, asked.each, order, asked.place)
            costs = {name: released(folder, rows, *version) for name, version in versions.items()}
            for name, cost in costs.items():
                n, last = before.get(name, (0, cost))
                added = f"{(cost.peak - last.peak) / (size - n):.1f}" if n else ""
                share = "" if asked.alone else f"{cost.seconds / costs['plain'].seconds:.2f}"
                yield (
                    f"{f'{form} by {order}':18} {name:8} {size:12,} {cost.peak / 1e6:8.0f} {added:>12} "
                    f"{cost.seconds:7.1f} {cost.seconds / size * 1e6:9.2f} {share:>11}"
                )
                before[name] = (size, cost)


def main() -> None:
    """Print the table, or be the plain release."""
    if sys.argv[1:2] == ["--worker"]:
        read_whole(sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", default=["1e6", "3e6"])
    parser.add_argument("--format", nargs="*", default=["parquet"], choices=["parquet", "csv", "csv.gz"])
    parser.add_argument("--order", nargs="*", default=["time"], choices=["time", "user"])
    parser.add_argument("--each", type=int, default=1000, help="rows of each person")
    parser.add_argument("--place", action="store_true", help="places on a map, not names")
    parser.add_argument("--alone", action="store_true", help="without plain, which may not fit in memory")
    parser.add_argument("--against", type=Path, help="the folder of sources of another version")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in lines(asked, Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()
