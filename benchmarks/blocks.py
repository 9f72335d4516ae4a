"""Tables of many subjects on δ-sets in compiled blocks, beside the planner row by row: a table.

    OMP_NUM_THREADS=1 python benchmarks/blocks.py [--pairs 5] [--subjects 200] [--steps 10] [--sides 20,60]
                                                  [--against OLD]

Subjects walk on a grid of side² cells under the radius policy, ε = 1, with a ledger in memory. A pair is a table with
blocks and one without, by the same words, one after the other, on one thread: the ratio is of rows per second of CPU
time. A second pair is a table on one thread and on two, by the clock. With ``--against``, a checkout of another
version, a process of its own releases by that one: the last columns are its rows per second of CPU time, and the ratio
of blocks to it. Ratios are medians over pairs. Where two tables differ the run ends.
"""

from __future__ import annotations

import argparse
import gc
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dphmm
from benchmarks.speed.worlds import GridWorld
from dphmm.accounting.ledger import MemoryLedger


class Table:
    """Walks on a grid, and ways to release them."""

    def __init__(self, side: int, subjects: int, steps: int, delta: str) -> None:
        self.world, self.delta = GridWorld(side), delta
        starts = np.random.default_rng(5).integers(side * side, size=subjects)
        walks = [self.world.walk(steps, int(start), seed) for seed, start in enumerate(starts)]
        users = np.repeat([f"u{number:05d}" for number in range(subjects)], steps)
        t = np.tile(np.arange(1, steps + 1), subjects)
        self.rows = pd.DataFrame({"user": users, "step": t, "state": np.concatenate(walks)})
        self.policy = self.world.policy("radius")

    def release(self, seed: int) -> Any:
        """The released table, by the words of a seed."""
        public = self.world.model, self.policy, self.world.space, 1
        given = {
            "constraint": dphmm.policy.DeltaSet(self.delta),
            "ledger": MemoryLedger(),
            "bits": dphmm.ReplayBits(seed),
        }
        return dphmm.release_many(self.rows, *public, progress=False, **given)

    def in_blocks(self, seed: int, threads: int = 1) -> Any:
        """On so many threads."""
        from dphmm.session import block

        with patch.object(block, "cores", lambda: threads):
            return self.release(seed)

    def one_by_one(self, seed: int) -> Any:
        """Every plan by the planner."""
        from dphmm.session import block

        with patch.object(block.Blocks, "of", lambda planner: None):
            return self.release(seed)


def timed(clock: Callable[[], float], work: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds of a clock, and what was made. What others left behind is collected before, not meanwhile."""
    gc.collect()
    began = clock()
    made = work()
    return clock() - began, made


def one_pair(table: Table, seed: int) -> tuple[float, float, float, float]:
    """Seconds of CPU time by the planner and in blocks; seconds by the clock on one thread and on two."""
    loop, before = timed(time.process_time, lambda: table.one_by_one(seed))
    own, now = timed(time.process_time, lambda: table.in_blocks(seed))
    if not before.equals(now):
        sys.exit(f"words {seed}: blocks released another table than the planner")
    one, _ = timed(time.perf_counter, lambda: table.in_blocks(-seed))
    two, _ = timed(time.perf_counter, lambda: table.in_blocks(-seed, threads=2))
    return loop, own, one, two


def of_other(root: Path, side: int, args: argparse.Namespace) -> float:
    """Rows per second of CPU time by another version, which its own process measures."""
    words = [sys.executable, __file__, "--worker", "--sides", str(side), "--pairs", str(args.pairs)]
    words += ["--subjects", str(args.subjects), "--steps", str(args.steps), "--delta", args.delta]
    env = {**os.environ, "PYTHONPATH": f"{root / 'src'}"}
    return float(subprocess.run(words, env=env, check=True, capture_output=True, text=True).stdout.split()[-1])


def work(args: argparse.Namespace) -> float:
    """What such a process measures."""
    table = Table(int(args.sides), args.subjects, args.steps, args.delta)
    table.release(0)
    times = [timed(time.process_time, lambda seed=seed: table.release(seed))[0] for seed in range(1, args.pairs + 1)]
    return len(table.rows) / statistics.median(times)


def measured(side: int, args: argparse.Namespace) -> str:
    """One row of the table."""
    table = Table(side, args.subjects, args.steps, args.delta)
    table.in_blocks(0), table.one_by_one(0)
    pairs = [one_pair(table, seed) for seed in range(1, args.pairs + 1)]
    loops, blocks, ones, twos = zip(*pairs, strict=True)
    rows = len(table.rows)
    of_loop, of_blocks = (rows / statistics.median(times) for times in (loops, blocks))
    gain = statistics.median(a / b for a, b in zip(loops, blocks, strict=True))
    of_two = statistics.median(a / b for a, b in zip(ones, twos, strict=True))
    other = ""
    if args.against is not None:
        rate = of_other(args.against, side, args)
        other = f" {rate:,.0f} | {of_blocks / rate:.2f} |"
    return f"| {side * side:,} | {of_loop:,.0f} | {of_blocks:,.0f} | {gain:.2f} | {of_two:.2f} |{other}"


def lines(args: argparse.Namespace) -> Iterator[str]:
    """The table, line by line."""
    more = args.against is not None
    yield "| N | planner, rows per CPU second | blocks | ratio | two threads over one, by the clock |" + (
        " the other version | ratio |" * more
    )
    yield "|---|---|---|---|---|" + "---|---|" * more
    for side in map(int, args.sides.split(",")):
        yield measured(side, args)


def main() -> None:
    """Read the options and print the table."""
    assert __doc__ is not None
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5, help="pairs of tables")
    parser.add_argument("--subjects", type=int, default=200)
    parser.add_argument("--steps", type=int, default=10, help="steps of each subject")
    parser.add_argument("--sides", default="20,60", help="cells along a side of each grid")
    parser.add_argument("--delta", default="0.05")
    parser.add_argument("--against", type=Path, help="a checkout of another version")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        print(work(args))
        return
    for line in lines(args):
        print(line, flush=True)


if __name__ == "__main__":
    main()
