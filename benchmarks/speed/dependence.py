"""Queries over dependent records: scales of long chains, leakage over time, degrees of a graph.

The plain L(alpha) sorts the columns for every pair of rows at every call; ours is one call on the same matrix. The
degrees of a graph are counted in a process of its own, because its memory is a figure too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, at_least, below, seconds
from benchmarks.speed.timing import Spread, timed
from benchmarks.speed.worlds import moves
from dphmm import dependent
from dphmm.accounting import policy_leakage, temporal_leakage
from dphmm.accounting.leakage_step import LeakageStep
from dphmm.types import FloatArray

CORRECTED, PAPERS = below(1.0), below(30.0)
LEAKAGE = at_least(1.0)
DEGREES, DEGREES_MEMORY = below(10.0), below(4.0)
STATES, STEPS = 100, 10_000
_LEAKING = 300
_ROOT = Path(__file__).parents[2]


def figures(effort: Effort) -> Iterator[Figure]:
    """Scales, leakage, degrees."""
    yield from _scales(effort)
    yield from _temporal(effort)
    yield from _policy(effort)
    yield from _degrees(effort.pick(10**6, 10**7))


def _scales(effort: Effort) -> Iterator[Figure]:
    dense = _mixing(STATES)
    slow = 0.999 * np.eye(STATES) + 0.001 * dense
    chains = {"mixing": dense, "slow, on a line": _line(STATES), "slow, to anywhere": slow}
    for (kind, matrix), start in ((pair, start) for pair in chains.items() for start in ("stationary", "from one end")):
        first = "stationary" if start == "stationary" else np.eye(STATES)[0]
        # The paper's mechanism looks at all pairs of tuples unless the chain is stationary, and refuses 10,000 of them.
        for mechanism, target in (("markov", CORRECTED), ("dpm", PAPERS))[: 1 + (start == "stationary")]:

            def calibrated(matrix: FloatArray = matrix, first: object = first, mechanism: str = mechanism) -> object:
                chain = dependent.Chain(matrix, STEPS, start=first)
                return dependent.calibrate(chain, dependent.Sum(np.arange(STATES)), 1, mechanism, exact=False)

            taken = timed(calibrated, effort.pick(1, 3))
            name = f'"{mechanism}" scale, {STATES} states, {STEPS:,} steps, {kind}, {start}'
            yield Figure("dependence", name, taken, "s", target)
    for kind, matrix in chains.items():

        def of_any(matrix: FloatArray = matrix) -> object:
            chain = dependent.Chain(matrix, STEPS, start="stationary")
            return dependent.calibrate(chain, dependent.AnyQuery(2), 1, "dpm", exact=False)

        name = f'"dpm" scale of any query, {STATES} states, {STEPS:,} steps, {kind}, stationary'
        yield Figure("dependence", name, timed(of_any, 1, warmups=0), "s", PAPERS)


def _mixing(n: int) -> FloatArray:
    return np.random.default_rng(1).dirichlet(np.ones(n), n)


def _line(n: int) -> FloatArray:
    """Stay, or go to the next place on a line, rather up than down."""
    matrix = 0.5 * np.eye(n) + 0.3 * np.eye(n, k=1) + 0.2 * np.eye(n, k=-1)
    return matrix / matrix.sum(axis=1, keepdims=True)


def _temporal(effort: Effort) -> Iterator[Figure]:
    matrix = np.random.default_rng(0).dirichlet(np.ones(_LEAKING), _LEAKING)
    ours = timed(lambda: LeakageStep(matrix)(1.0), effort.pick(2, 9))
    plain = timed(lambda: plain_increase(matrix, 1.0), 1, warmups=0)
    note = f"ours {seconds(ours.median)}, plain {seconds(plain.median)}"
    yield Figure("dependence", f"L(1) of {_LEAKING} states: plain / ours", plain.times(ours), "×", LEAKAGE, note)
    model = dphmm.MarkovModel(np.full(_LEAKING, 1 / _LEAKING), matrix)
    whole = timed(lambda: temporal_leakage(model, [0.2] * 100), effort.pick(1, 5))
    yield Figure("dependence", f"temporal leakage of 100 steps, {_LEAKING} states", whole, "s")


def plain_increase(matrix: FloatArray, alpha: float) -> float:
    """L(alpha) pair by pair: sort the columns, try every prefix."""
    best, share, rest = 0.0, -np.expm1(-alpha), np.exp(-alpha)
    for q in matrix:
        for d in matrix:
            order = np.argsort(-(q / d))
            quotients = (share * np.cumsum(q[order]) + rest) / (share * np.cumsum(d[order]) + rest)
            best = max(best, float(quotients.max()))
    return float(np.log(best))


def _policy(effort: Effort) -> Iterator[Figure]:
    """Fixed unequal moves on a square grid, a release at each step that loses .1 per cell apart."""
    side, steps = effort.pick(8, 20), effort.pick(10, 100)
    y, x = np.divmod(np.arange(side**2), side)
    apart = np.maximum(abs(x[:, None] - x), abs(y[:, None] - y))
    edges = np.argwhere(np.triu(apart == 1))
    model = dphmm.MarkovModel(np.full(side**2, 1 / side**2), moves(side))
    leaks: list[float] = []

    def run() -> None:
        leaks.append(policy_leakage(model, [0.1 * apart] * steps, edges).worst)

    taken = timed(run, 1, warmups=0)
    note = f"worst edge {leaks[0]:.3g}; the epsilons add up to {0.1 * steps:g}"
    yield Figure("dependence", f"policy leakage, {side} × {side} cells, {steps} steps", taken, "s", None, note)


def _degrees(count: int) -> Iterator[Figure]:
    for level in ("edge", "node"):
        command = [sys.executable, "-m", "benchmarks.speed.dependence_child", level, str(count)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=_ROOT)
        if done.returncode:
            raise SystemExit(f"the degrees failed ({done.returncode}): {done.stderr.strip()[-400:]}")
        found = json.loads(done.stdout)
        name = f"degree distribution, {count:,} edges, {level} level"
        yield Figure("dependence", name, Spread.of([found["seconds"]]), "s", DEGREES)
        note = f"{found['before_gib']:.2f} GiB of it held before, the edges among them"
        yield Figure("dependence", f"{name}: memory", Spread.of([found["peak_gib"]]), "GiB", DEGREES_MEMORY, note)
