"""A private fit of ten million transitions: on Spark beside one process, from the same Parquet file.

    python -m benchmarks.spark_counting [--rows 10000000] [--states 400] [--owners 100000] [--repeats 3]

It needs pyspark and a Java runtime. Each line has the wall time and the CPU time of all processes (this one, Java and
the Python workers), in seconds; sides are run in turn, after one warm-up each. "in process" reads the file, makes
sequences and fits, as ``dphmm fit --epsilon`` does; "sequences in memory" is the fit of ready sequences alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

LENGTH = 120


def made(path: Path, rows: int, states: int, owners: int) -> None:
    """A table of walks, shuffled: user, step, state by number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    source = np.random.default_rng(1)
    user = np.repeat(np.arange(owners), -(-rows // owners))[:rows]
    step = np.arange(rows) - np.repeat(np.flatnonzero(np.diff(user, prepend=-1)), np.bincount(user))
    state = (np.cumsum(source.integers(-1, 2, rows)) % states).astype(np.int32)
    order = source.permutation(rows)
    columns = {"user": user[order], "step": step[order], "state": state[order]}
    pq.write_table(pa.table(columns), path, row_group_size=2**20)


def cpu_of_all() -> float:
    """CPU seconds of this process and of everything below it, living and ended."""
    ticks, total = os.sysconf("SC_CLK_TCK"), 0
    fields = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                fields[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
    below, found = {os.getpid()}, True
    while found:
        found = {pid for pid, given in fields.items() if int(given[1]) in below} - below
        below |= found
    for pid in below & fields.keys():
        total += sum(int(value) for value in fields[pid][11:15])
    return total / ticks


def in_process(path: Path, space: Any) -> Any:
    """What one process does with the file: sorted rows, sequences, counts, noise."""
    import pyarrow.parquet as pq

    import dphmm
    from dphmm.states.trajectory import Trajectories

    table = pq.read_table(path)
    names, user = np.unique(table["user"].to_numpy(), return_inverse=True)
    rows = Trajectories(tuple(map(str, names.tolist())), user.astype(np.int32), step=table["step"].to_numpy())
    found = rows.sequences(table["state"].to_numpy())
    return dphmm.MarkovModel.fit_private(
        found.sequences, space.n_states, 1, LENGTH, owners=found.owners.tolist(), space=space
    )


def ready(sequences: list[Any], space: Any) -> Any:
    """The fit of sequences in memory."""
    import dphmm

    return dphmm.MarkovModel.fit_private(sequences, space.n_states, 1, LENGTH, owners=range(len(sequences)))


def on_spark(session: Any, path: Path, space: Any) -> Any:
    """The fit of the file on executors, into a ledger in memory."""
    import dphmm.spark
    from dphmm.accounting import MemoryLedger

    frame = session.read.parquet(str(path))
    return dphmm.spark.fit_private(frame, space, 1, LENGTH, ledger=MemoryLedger(), event_id="walks")[0]


def session_of(cores: int, folder: str) -> Any:
    """Spark on this machine."""
    import pyspark.sql

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(4 * cores),
        "spark.driver.memory": "4g",
        "spark.local.dir": folder,
        "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
        "spark.sql.execution.pyspark.udf.hideTraceback.enabled": "true",
    }
    builder = pyspark.sql.SparkSession.builder.master(f"local[{cores}]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def main() -> None:
    """Print medians of every side, and ratios of one run."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (("rows", 10**7), ("states", 400), ("owners", 10**5), ("repeats", 3), ("cores", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    given = parser.parse_args()
    from dphmm import StateSpace

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "walks.parquet"
        made(path, given.rows, given.states, given.owners)
        space = StateSpace.categories([f"s{k}" for k in range(given.states)])
        source = np.random.default_rng(2)
        sequences = list(source.integers(0, given.states, (given.owners, given.rows // given.owners)))
        session = session_of(given.cores, folder)
        sides: dict[str, Callable[[], Any]] = {
            "in process": lambda: in_process(path, space),
            "sequences in memory": lambda: ready(sequences, space),
            "on Spark": lambda: on_spark(session, path, space),
        }
        seen: dict[str, list[tuple[float, float]]] = {name: [] for name in sides}
        for turn in range(given.repeats + 1):
            for name, side in sides.items():
                wall, cpu = time.perf_counter(), cpu_of_all()
                side()
                if turn:
                    seen[name].append((time.perf_counter() - wall, cpu_of_all() - cpu))
        for name, figures in seen.items():
            wall, cpu = (statistics.median(column) for column in zip(*figures, strict=True))
            print(f"{name:20} wall {wall:7.2f} s   CPU of all processes {cpu:7.2f} s")
        for name in ("in process", "sequences in memory"):
            walls, cpus = ([f[k] / g[k] for f, g in zip(seen["on Spark"], seen[name], strict=True)] for k in (0, 1))
            print(f"on Spark / {name:20} wall {statistics.median(walls):5.2f}   CPU {statistics.median(cpus):5.2f}")
        session.stop()


if __name__ == "__main__":
    main()
