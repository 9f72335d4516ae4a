"""CPU time of importing a CSV file beside reading, sorting and writing it with pyarrow alone, in the same run.

    python benchmarks/importing.py [--rows 1e6] [--users 1000] [--repeats 3] [--most 1.5]

The file has rows of user, t (ISO 8601), lat, lon in no order. Both sides make a Parquet file sorted by user and time.
pyarrow infers the types of whole columns, checks no cell, and refuses the file for one bad row; `dphmm import csv`
judges every cell by itself. CPU time is that of all threads. The last line is the least ratio of the repeats; the exit
code is 1 where it is above ``--most``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import csv

from dphmm.storage.importers import IMPORTERS
from dphmm.storage.trajectories import save_trajectories


def write_rows(path: Path, rows: int, users: int, seed: int = 1) -> None:
    """A CSV file of rows in no order."""
    generator = np.random.default_rng(seed)
    times = generator.integers(1_700_000_000, 1_730_000_000, rows) * 1_000_000
    table = {
        "user": pa.array(np.char.add("user", generator.integers(0, users, rows).astype(str))),
        "t": pa.array(times).cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("s", "UTC")),
        "lat": generator.uniform(39.8, 40.0, rows).round(6),
        "lon": generator.uniform(116.2, 116.5, rows).round(6),
    }
    csv.write_csv(pa.table(table), path)


def with_pyarrow(source: Path, out: Path) -> None:
    """Read with the types that pyarrow infers, sort by user and time, write."""
    table = csv.read_csv(source)
    pq.write_table(table.sort_by([("user", "ascending"), ("t", "ascending")]), out, compression="zstd")


def with_dphmm(source: Path, out: Path) -> None:
    """As `dphmm import csv` does."""
    save_trajectories(out, IMPORTERS["csv"](source).trajectories)


def cpu(work: object, source: Path, out: Path) -> float:
    """CPU seconds of one run."""
    before = time.process_time()
    work(source, out)  # type: ignore[operator]
    return time.process_time() - before


def main() -> int:
    """Print each repeat and the least ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=float, default=1e6)
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--most", type=float, default=1.5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "rows.csv", Path(folder) / "out.parquet"
        write_rows(source, int(given.rows), given.users)
        ratios = []
        for _ in range(given.repeats):
            plain, ours = cpu(with_pyarrow, source, out), cpu(with_dphmm, source, out)
            ratios.append(ours / plain)
            print(f"pyarrow {plain:.2f} s, dphmm import {ours:.2f} s of CPU, ratio {ratios[-1]:.2f}")
    print(f"{int(given.rows):,} rows: ratio {min(ratios):.2f} (at most {given.most:g})")
    return int(min(ratios) > given.most)


if __name__ == "__main__":
    raise SystemExit(main())
