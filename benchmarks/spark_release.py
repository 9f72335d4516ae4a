"""A release of a million rows: on Spark beside `release_many`, from the same Parquet file, warm.

    python -m benchmarks.spark_release [--rows 1000000] [--side 20] [--users 10000] [--warm 10] [--repeats 3]
        [--constraint delta=0.05]

It needs pyspark and a Java runtime. Each line has the wall time and the CPU time of all processes (this one, Java and
the Python workers), in seconds. "one process" reads the file, releases it with a ledger in memory, and writes a Parquet
file. Spark runs on two cores and on one (pinned to it), each in a process of its own; "one process" takes turns with
Spark on two cores, so that both have the same machine. "rows moved" reads, hashes and shuffles the same rows on Spark
and brings them to a Python function that does nothing: what of the whole is Spark's own. A job of 100 rows tells what a
job and its commit cost.

What is warm: "one process" after one run. Java goes on compiling: on the machine where this was written its part of a
job was 17.6, 4.5, 3.4, 3.0, 3.0, 2.7, 2.7, 3.5, 3.3, 2.7, 2.5, 2.2, 2.2 and 2.4 s of CPU time in the first 14 jobs,
1.3 to 1.7 s of it in tasks. So what comes after ``--warm`` jobs is measured, and each of these is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.spark_counting import cpu_of_all, session_of
from benchmarks.speed.worlds import GridWorld


def world(side: int) -> tuple[Any, Any, Any]:
    """Model, policy and space of a grid of side x side cells under the radius policy."""
    own = GridWorld(side)
    return own.model, own.policy("radius"), own.space


def made(path: Path, rows: int, n_states: int, users: int) -> None:
    """A table of walks, shuffled: user, step, state by number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = np.random.default_rng(1)
    user = np.repeat(np.arange(users), -(-rows // users))[:rows]
    step = np.arange(rows) - np.repeat(np.flatnonzero(np.diff(user, prepend=-1)), np.bincount(user)) + 1
    # By number: `release_many` reads names or numbers.
    state = (np.cumsum(source.integers(-1, 2, rows)) % n_states).astype(np.int64)
    order = source.permutation(rows)
    names = pa.array([f"user {number}" for number in range(users)]).take(pa.array(user[order]))
    pq.write_table(pa.table({"user": names, "step": step[order], "state": state[order]}), path, row_group_size=2**17)


def one_process(path: Path, out: Path, parts: tuple[Any, Any, Any], choices: dict[str, Any]) -> None:
    """Read, release, write."""
    import pyarrow.parquet as pq

    import dphmm
    from dphmm.accounting import MemoryLedger

    found = dphmm.release_many(pq.read_table(path), *parts, 1, ledger=MemoryLedger(), progress=False, **choices)
    pq.write_table(found, out)


def on_spark(session: Any, path: Path, into: Path, parts: tuple[Any, Any, Any], choices: dict[str, Any]) -> None:
    """The same on executors, into a release table."""
    import dphmm.spark

    dphmm.spark.release(session.read.parquet(str(path)), *parts, 1, into=into, **choices)


Figures = list[tuple[float, float]]


def measured(sides: dict[str, Callable[[int], None]], turns: int, begins: dict[str, int]) -> dict[str, Figures]:
    """Wall and CPU seconds of every run of sides that take turns, each from turn ``begins`` on."""
    seen: dict[str, Figures] = {name: [] for name in sides}
    for turn in range(turns):
        for name, side in sides.items():
            if turn >= begins.get(name, 0):
                wall, cpu = time.perf_counter(), cpu_of_all()
                side(turn)
                seen[name].append((time.perf_counter() - wall, cpu_of_all() - cpu))
    return seen


def moved(session: Any, path: Path) -> None:
    """The rows on their way to the tasks that would release them, and no further."""
    import dphmm.spark.batch as batch

    rows = batch._columns(session.read.parquet(str(path)), None)
    batch._placed(rows, batch.BUCKETS).mapInArrow(_counted, "rows long").collect()


def _counted(batches: Any) -> Any:
    import pyarrow as pa

    table = pa.Table.from_batches(list(batches)) if batches else None
    yield pa.record_batch({"rows": [0 if table is None else len(table)]})


def of_cores(given: argparse.Namespace, parts: tuple[Any, Any, Any], folder: str) -> dict[str, Figures]:
    """All that runs beside Spark on so many cores, and Spark itself."""
    if given.cores == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    session = session_of(given.cores, folder)
    choices = {"constraint": given.constraint}
    few, out = given.file.with_name("few.parquet"), Path(folder) / "out"
    sides: dict[str, Callable[[int], None]] = {
        f"Spark, {given.cores}": lambda turn: on_spark(session, given.file, out / f"all {turn}", parts, choices),
        f"rows moved, {given.cores}": lambda _: moved(session, given.file),
        f"100 rows, {given.cores}": lambda turn: on_spark(session, few, out / f"few {turn}", parts, choices),
    }
    out.mkdir()
    if given.cores == 2:
        sides = {"one process": lambda _: one_process(given.file, out / "one", parts, choices), **sides}
    seen = measured(sides, given.warm + given.repeats, {"one process": given.warm - 1})
    session.stop()
    return seen


def main() -> None:
    """Print medians of every side, and ratios of one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 10**6), ("side", 20), ("users", 10**4), ("warm", 10), ("repeats", 3), ("cores", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--constraint", default="support")
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    if given.warm < 1 or given.repeats < 1:
        parser.error("--warm and --repeats are 1 or more")
    parts = world(given.side)
    with tempfile.TemporaryDirectory() as folder:
        if given.cores:
            print(json.dumps(of_cores(given, parts, folder)))
            return
        path = Path(folder) / "walks.parquet"
        made(path, given.rows, parts[2].n_states, given.users)
        made(path.with_name("few.parquet"), 100, parts[2].n_states, 100)
        found: dict[str, Figures] = {}
        for cores in (2, 1):
            own = [f"--{name}={getattr(given, name)}" for name in ("side", "warm", "repeats")]
            own += [f"--constraint={given.constraint}"]
            call = [sys.executable, "-m", "benchmarks.spark_release", f"--cores={cores}", f"--file={path}", *own]
            out = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout
            found |= json.loads(out.splitlines()[-1])
    for name, seen in found.items():
        jobs = " ".join(f"{cpu:.1f}" for _, cpu in seen[: -given.repeats])
        print(f"{name:14} warm-up, CPU of all processes by run: {jobs} s")
    medians = {
        name: [statistics.median(c) for c in zip(*seen[-given.repeats :], strict=True)] for name, seen in found.items()
    }
    for name, (wall, cpu) in medians.items():
        row = "" if name.startswith("100") else f"   {1e6 * cpu / given.rows:6.2f} µs of CPU a row"
        print(f"{name:14} wall {wall:7.2f} s   CPU of all processes {cpu:7.2f} s{row}")
    plain, two, only, _, one, *_ = medians.values()
    for name, side in (("Spark", two), ("rows moved", only)):
        print(f"{name:10} on two cores / one process   CPU {side[1] / plain[1]:5.2f}   wall {side[0] / plain[0]:5.2f}")
    print(f"Spark: one core / two cores        wall {one[0] / two[0]:5.2f}")


if __name__ == "__main__":
    main()
