"""`dphmm release` of delta-sets on one core and on all: seconds by the clock, and how many times faster.

    python benchmarks/two_cores.py [--rows 800000] [--users 10000] [--side 20] [--pairs 3] [--delta 0.05]

People walk on a grid of side² cells under the radius policy, with a ledger file and estimates. One core is
``OMP_NUM_THREADS=1``, under which the command releases all rows in its own process. The two take turns, and the ratio
is the median over pairs. Seconds are those of the whole command, its start and the reading of its file included.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dphmm
from benchmarks.spark_release import made
from benchmarks.speed.worlds import GridWorld, moves
from dphmm.storage.policies import save_policy


def world(folder: Path, side: int) -> None:
    """Model and policy as files."""
    grid, n = GridWorld(side), side * side
    model = dphmm.MarkovModel(np.full(n, 1 / n), moves(side), space=grid.space)
    dphmm.save_model(model, folder / "model.npz")
    save_policy(grid.policy("radius"), folder / "policy.json", model=model)


def seconds(folder: Path, delta: str, cores: str | None) -> float:
    """Of one command, on so many cores or on all."""
    for old in (*folder.glob("out.parquet*"), *folder.glob("l.db*")):
        old.unlink()
    words = ["release", "rows.parquet", "--model", "model.npz", "--policy", "policy.json", "--epsilon", "1", "-q"]
    words += ["--constraint", f"delta={delta}", "--model-people", "others", "-o", "out.parquet", "--ledger", "l.db"]
    env = {name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"}
    env |= {} if cores is None else {"OMP_NUM_THREADS": cores}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "dphmm", *words], cwd=folder, env=env, check=True)
    return time.perf_counter() - began


def main() -> None:
    """Read the options and print a line for each pair, and the medians."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=800_000)
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--side", type=int, default=20)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--delta", default="0.05")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world(folder, given.side)
        made(folder / "rows.parquet", given.rows, given.side**2, given.users)
        ratios = []
        for _ in range(given.pairs):
            one, all_of_them = seconds(folder, given.delta, "1"), seconds(folder, given.delta, None)
            ratios.append(one / all_of_them)
            print(f"one core {one:.1f} s, all {all_of_them:.1f} s: {ratios[-1]:.2f}", flush=True)
        print(f"{given.rows:,} rows, {given.side**2} states: {statistics.median(ratios):.2f} times as fast")


if __name__ == "__main__":
    main()
