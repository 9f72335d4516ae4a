"""Long sessions on δ-sets, where nearly every step needs a plan of its own: releases per second on one core."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, at_least
from benchmarks.speed.timing import Spread
from benchmarks.speed.worlds import POLICIES, GridWorld

DELTA = 0.01
SIDE = 60
TARGET = at_least(2000)


@dataclass(frozen=True)
class Run:
    """One session from its first step: seconds in all, of processor time and in planning; its different plans."""

    seconds: float
    cpu: float
    planning: float
    plans: int
    plan_states: float
    steps: int


def figures(effort: Effort) -> Iterator[Figure]:
    """The grid under every policy, and a simulated city under the radius policy."""
    world = GridWorld(SIDE)
    path = world.walk(effort.pick(100, 500))
    for name in POLICIES:
        yield from _session_figures(name, (world.model, world.policy(name), world.space), [path], effort)
    parts, paths = simulated_city(effort.pick(2, 8))
    yield from _session_figures(f"city of {parts[0].n_states} cells, radius 1 km", parts, paths, effort)


def _session_figures(name: str, parts: Any, paths: Sequence[Sequence[int]], effort: Effort) -> Iterator[Figure]:
    _run(parts, paths[0][:20], split=False)
    with tempfile.TemporaryDirectory() as folder:
        stored = [_all(parts, paths, file=Path(folder) / f"{i}.db") for i in range(effort.pick(1, 3))]
    split = _all(parts, paths, split=True)
    whole = [_all(parts, paths, split=False) for _ in range(effort.pick(1, 3))]
    rates = Spread.of(run.steps / run.seconds for run in whole)
    note = f"{split.steps} releases, {split.plan_states:.0f} plan states on average"
    yield Figure("delta", f"{name}: δ = {DELTA}, releases, ledger in memory", rates, "/s", TARGET, note)
    filed = Spread.of(run.steps / run.seconds for run in stored)
    yield Figure("delta", f"{name}: δ = {DELTA}, releases, ledger in a SQLite file", filed, "/s")
    in_memory, in_file = (Spread.of(run.cpu for run in runs) for runs in (whole, stored))
    yield Figure("delta", f"{name}: processor time with a file, against memory", in_file.times(in_memory), "×")
    yield _single(f"{name}: plans for each release", split.plans / split.steps, "")
    yield _single(f"{name}: share of time in planning", 100 * split.planning / split.seconds, "%")


def _single(name: str, value: float, unit: str) -> Figure:
    return Figure("delta", name, Spread.of([value]), unit)


def _all(parts: Any, paths: Sequence[Sequence[int]], *, split: bool = False, file: Path | None = None) -> Run:
    runs = [_run(parts, path, split=split, file=file, subject=str(i)) for i, path in enumerate(paths)]
    steps = sum(run.steps for run in runs)
    return Run(
        sum(run.seconds for run in runs),
        sum(run.cpu for run in runs),
        sum(run.planning for run in runs),
        sum(run.plans for run in runs),
        sum(run.plan_states * run.steps for run in runs) / steps,
        steps,
    )


def _run(parts: Any, path: Sequence[int], *, split: bool, file: Path | None = None, subject: str = "") -> Run:
    """Release a path, with a ledger in memory or in a file.

    ``split`` asks for each plan first, to time planning apart: the release finds it kept.
    """
    if file is None:
        return _walk(parts, path, split, {})
    with dphmm.open_ledger(file) as ledger:
        return _walk(parts, path, split, {"ledger": ledger, "subject": subject})


def _walk(parts: Any, path: Sequence[int], split: bool, stored: dict[str, Any]) -> Run:
    model, policy, space = parts
    session = dphmm.ReleaseSession(model, policy, space, 1, constraint=dphmm.policy.DeltaSet(DELTA), **stored)
    planning, sizes = 0.0, []
    began, spent = time.perf_counter(), time.process_time()
    for state in path:
        if split:
            asked = time.perf_counter()
            plan = session.plan
            planning += time.perf_counter() - asked
            sizes.append(int(plan.constraint.plan.sum()))
        session.release(state)
    seconds, cpu = time.perf_counter() - began, time.process_time() - spent
    plans = len({release.plan_hash for release in session.releases})
    mean = sum(sizes) / len(sizes) if sizes else float("nan")
    return Run(seconds, cpu, planning, plans, mean, len(path))


def simulated_city(people: int) -> tuple[Any, list[list[int]]]:
    """Model, radius policy and grid of the simulated city, and the paths of some of its people."""
    from dphmm.evaluation.city import simulate_city
    from dphmm.markov.trajectories import fit

    city = simulate_city(seed=1, people=60)
    grid = city.grid
    model, _ = fit(
        _states(grid, city.model_people, city.step),
        grid.n_states,
        smoothing=0.01,
        smoothing_support="neighbours",
        space=grid,
        step=city.step,
    )
    released = _states(grid, city.released_people, city.step)
    return (model, dphmm.policy.radius(grid, 1000), grid), [list(map(int, path)) for path in released[:people]]


def _states(grid: Any, people: Any, step: int) -> list[Any]:
    stepped, _ = people.resample(step)
    return list(stepped.sequences(grid.locate(stepped.lat, stepped.lon)).sequences)
