"""`release_many`: a table of many subjects in, a table of releases out, with its ledger."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, at_least
from benchmarks.speed.ledgers import LEDGERS, STEPS
from benchmarks.speed.timing import wall_and_cpu
from benchmarks.speed.worlds import GridWorld
from dphmm.accounting.ledger import Ledger

SIDES = (10, 20, 60)
TARGET = at_least(50_000)


def figures(effort: Effort) -> Iterator[Figure]:
    """Radius policy on the support, 100 steps to a subject, at three sizes with both ledgers."""
    for side in SIDES:
        world = GridWorld(side)
        parts = (world.model, world.policy("radius"), world.space)
        table = subjects(world, effort.pick(30, 200))
        for name in LEDGERS:
            yield from _figures(name, parts, table, effort)


def _figures(name: str, parts: Any, table: pd.DataFrame, effort: Effort) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        numbers = iter(range(1000))

        def empty() -> Ledger:
            place = Path(folder) / str(next(numbers))
            place.mkdir()
            return LEDGERS[name](place)

        def run(ledger: Ledger) -> None:
            released = dphmm.release_many(table, *parts, 1, ledger=ledger, progress=False)
            assert len(released) == len(table)
            ledger.close()

        wall, cpu = wall_and_cpu(run, effort.pick(1, 5), prepare=empty)
    label = f"{parts[0].n_states:,} states, ledger in {'a ' if 'file' in name else ''}{name}: releases"
    note = f"{len(table):,} rows of {table.user.nunique()} subjects, beliefs moved on all cores"
    yield Figure("many", label, wall.per_second(len(table)), "/s", TARGET, note)
    yield Figure("many", f"{label} per second of processor time", cpu.per_second(len(table)), "/s")


def subjects(world: GridWorld, count: int) -> pd.DataFrame:
    """The table of ``count`` subjects who walk the grid."""
    paths = [world.walk(STEPS, start=seed * 7919 % world.n_states, seed=seed) for seed in range(count)]
    rows = [(f"user{number}", str(state)) for number, path in enumerate(paths) for state in path]
    return pd.DataFrame(rows, columns=["user", "state"])
