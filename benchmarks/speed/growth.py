"""How seconds and memory grow from a thousand to a million states, each measurement in a fresh process of its own."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, below, seconds, shown
from benchmarks.speed.operations import OPERATIONS, PLAIN
from benchmarks.speed.timing import Spread

#: Sides of the grid: 1,024, 10,000, 99,856 and 1,000,000 states.
SIDES = (32, 100, 316, 1000)
#: The plain step needs a dense matrix and all pairs, so it is not measured beyond these sizes.
PLAIN_SIDES = (32, 60, 100)
MILLION = 1_000_000
STEP_SECONDS = below(1.0)
STEP_MEMORY = below(2.0)
#: What a user waits for at a million states.
STEPS = tuple(name for name in OPERATIONS if "and release" in name)
_ROOT = Path(__file__).parents[2]


def figures(effort: Effort) -> Iterator[Figure]:
    """Every operation at every size, and the slope of its time over the sizes on logarithmic axes."""
    for operation in OPERATIONS:
        sides = effort.pick(SIDES[:2], SIDES)
        yield from _of_operation(operation, sides, effort.pick(3, 7))
    yield from _of_operation(PLAIN, effort.pick(PLAIN_SIDES[:2], PLAIN_SIDES), effort.pick(1, 3))


def _of_operation(operation: str, sides: Sequence[int], repeats: int) -> Iterator[Figure]:
    times = []
    for side in sides:
        found = _in_child(operation, side, repeats)
        taken = Spread.of(found["seconds"])
        is_step = operation in STEPS and side**2 == MILLION
        name = f"{operation}, N = {side**2:,}"
        memory = f"peak {shown(found['peak_gib'])} GiB, {shown(found['before_gib'])} GiB held before"
        note = f"{memory}; first call {seconds(found['first'])}"
        yield Figure("growth", f"{name}: later calls", taken, "s", STEP_SECONDS if is_step else None, note)
        if is_step:
            first = Spread.of([found["first"]])
            yield Figure("growth", f"{name}: first call in its process", first, "s", STEP_SECONDS)
            peak = Spread.of([found["peak_gib"]])
            yield Figure("growth", f"{name}: peak memory of the process", peak, "GiB", STEP_MEMORY)
        times.append(taken.median)
    yield _slope(operation, [side**2 for side in sides], times)


def _slope(operation: str, sizes: Sequence[float], times: Sequence[float]) -> Figure:
    note = f"between the two largest {fitted_slope(sizes[-2:], times[-2:]):.2f}"
    if operation == PLAIN:
        note += f"; not measured beyond N = {sizes[-1]:,}: at {SIDES[2] ** 2:,} its dense matrix alone takes 74 GiB"
    slope = Spread.of([fitted_slope(sizes, times)])
    return Figure("growth", f"{operation}: power of N, fitted over {len(sizes)} sizes", slope, "", None, note)


def fitted_slope(sizes: Sequence[float], times: Sequence[float]) -> float:
    """The least-squares slope of log time over log size: 1 is linear, 2 quadratic."""
    x, y = [math.log(size) for size in sizes], [math.log(time) for time in times]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return covariance / sum((a - mean_x) ** 2 for a in x)


def _in_child(operation: str, side: int, repeats: int) -> dict[str, Any]:
    """What `growth_child` says of an operation, in a fresh process."""
    command = [sys.executable, "-m", "benchmarks.speed.growth_child", operation, str(side), str(repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)
    if done.returncode:
        raise SystemExit(f"{operation} at side {side} failed ({done.returncode}): {done.stderr.strip()[-400:]}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found
