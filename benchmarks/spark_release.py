"""A release of a million rows: on Spark beside `release_many`, from the same Parquet file, warm.

    python -m benchmarks.spark_release [--rows 1000000] [--side 20] [--users 10000] [--repeats 3] [--no-estimates]

It needs pyspark and a Java runtime. Each line has the wall time and the CPU time of all processes (this one, Java and
the Python workers), in seconds; sides are run in turn, after a warm-up each. "one process" reads the file, releases it
with a ledger in memory, and writes a Parquet file. Spark runs on two cores and on one (pinned to it), each in a process
of its own. "rows moved" reads, hashes and shuffles the same rows on Spark and brings them to a Python function that
does nothing: what of the whole is Spark's own. A job of 100 rows tells what a job and its commit cost.
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


def measured(side: Callable[[int], None], repeats: int) -> list[tuple[float, float]]:
    """Wall and CPU seconds of every run after the first."""
    seen = []
    for turn in range(repeats + 1):
        wall, cpu = time.perf_counter(), cpu_of_all()
        side(turn)
        if turn:
            seen.append((time.perf_counter() - wall, cpu_of_all() - cpu))
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


def main() -> None:
    """Print medians of every side, and ratios of one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 10**6), ("side", 20), ("users", 10**4), ("repeats", 3), ("cores", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--no-estimates", action="store_true")
    parser.add_argument("--file", type=Path)
    given = parser.parse_args()
    parts, choices = world(given.side), {"estimates": not given.no_estimates}
    with tempfile.TemporaryDirectory() as folder:
        if given.cores:
            if given.cores == 1 and hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
            session = session_of(given.cores, folder)
            seen = measured(
                lambda turn: on_spark(session, given.file, Path(folder) / f"table {turn}", parts, choices),
                given.repeats,
            )
            alone = measured(lambda _: moved(session, given.file), given.repeats)
            few = given.file.with_name("few.parquet")
            small = measured(
                lambda turn: on_spark(session, few, Path(folder) / f"few {turn}", parts, choices), given.repeats
            )
            print(json.dumps([seen, alone, small]))
            session.stop()
            return
        path = Path(folder) / "walks.parquet"
        made(path, given.rows, parts[2].n_states, given.users)
        made(path.with_name("few.parquet"), 100, parts[2].n_states, 100)
        found = {
            "one process": measured(lambda _: one_process(path, Path(folder) / "out", parts, choices), given.repeats)
        }
        for cores in (2, 1):
            own = [f"--{name}={getattr(given, name)}" for name in ("side", "repeats")]
            own += ["--no-estimates"] * given.no_estimates
            call = [sys.executable, "-m", "benchmarks.spark_release", f"--cores={cores}", f"--file={path}", *own]
            out = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True).stdout
            names = (f"Spark, {cores} cores", f"rows moved, {cores}", f"100 rows, {cores}")
            found |= dict(zip(names, json.loads(out.splitlines()[-1]), strict=True))
        medians = {name: [statistics.median(c) for c in zip(*seen, strict=True)] for name, seen in found.items()}
        for name, (wall, cpu) in medians.items():
            row = "" if name.startswith("100") else f"   {1e6 * cpu / given.rows:6.2f} µs of CPU a row"
            print(f"{name:16} wall {wall:7.2f} s   CPU of all processes {cpu:7.2f} s{row}")
        plain, two, only, _, one, *_ = medians.values()
        print(f"Spark on two cores / one process   CPU {two[1] / plain[1]:5.2f}   wall {two[0] / plain[0]:5.2f}")
        print(
            f"rows moved on two cores / one process      CPU {only[1] / plain[1]:5.2f}   wall {only[0] / plain[0]:5.2f}"
        )
        print(f"Spark: one core / two cores        wall {one[0] / two[0]:5.2f}")


if __name__ == "__main__":
    main()
