"""Times of temporal and policy leakage: ``python -m benchmarks.leakage [temporal] [grid] [--steps T]``.

temporal: one L(a) and a hundred steps, beside the plain version that sorts every pair of rows at every call.
grid: 20 x 20 cells, moves to the nine cells around, a hundred steps: at equal rates, and at random ones, where hardly
any two couplings are equal. CPU seconds, after a first run that compiles.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm import MarkovModel
from dphmm.accounting import policy_leakage, temporal_leakage
from dphmm.accounting.leakage_step import LeakageStep, leakage_step


def plainly(matrix: NDArray[np.float64], alpha: float) -> float:
    """L(alpha) pair by pair: sort the columns, try every prefix."""
    best = 0.0
    s, e = -math.expm1(-alpha), math.exp(-alpha)
    for q in matrix:
        for d in matrix:
            order = np.argsort(-(q / d))
            best = max(best, float(((s * np.cumsum(q[order]) + e) / (s * np.cumsum(d[order]) + e)).max()))
    return math.log(best)


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def temporal(steps: int) -> None:
    rng = np.random.default_rng(0)
    leakage_step(np.eye(2), 1.0)
    for n in (100, 300, 500):
        moves = rng.dirichlet(np.ones(n), n)
        once, value = timed(lambda moves=moves: LeakageStep(moves)(1.0))
        model = MarkovModel(np.full(n, 1 / n), moves)
        whole, leak = timed(lambda model=model: temporal_leakage(model, [0.2] * steps))
        line = f"{n} states: L(1) {once:.3f} s; {steps} steps {whole:.2f} s, worst {leak.worst:.4f}"
        if n <= 300:
            plain, twin = timed(lambda moves=moves: plainly(moves, 1.0))
            line += f"; plain L(1) {plain:.2f} s, {plain / once:.0f} times as long, apart by {abs(twin - value):.1e}"
        print(line)


def grid(steps: int, width: int = 20) -> None:
    cells = np.array([(x, y) for y in range(width) for x in range(width)])
    apart = np.abs(cells[:, None] - cells[None]).max(axis=2)
    edges = np.argwhere(np.triu(apart == 1))
    policy_leakage(MarkovModel([0.5, 0.5], np.eye(2)), [1 - np.eye(2)] * 2, [(0, 1)])
    for name, rates in (
        ("equal rates", np.ones(apart.shape)),
        ("random rates", np.random.default_rng(0).gamma(1.0, 1.0, apart.shape)),
    ):
        moves = (apart <= 1) * rates
        moves /= moves.sum(axis=1, keepdims=True)
        law = np.full(width**2, 1 / width**2) @ np.linalg.matrix_power(moves, 5000)
        model = MarkovModel(law / law.sum(), moves, start="at")
        took, leak = timed(lambda model=model: policy_leakage(model, [0.1 * apart] * steps, edges))
        sums = f"epsilons {0.1 * steps:g}, costs {0.1 * (width - 1) * steps:g}"
        print(
            f"{width} x {width}, {steps} steps, {name}: {took:.1f} s, {leak.couplings} couplings, "
            f"worst edge {leak.worst:.3f}, median {np.median(leak.total.max(axis=0)):.3f} ({sums})",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", default=["temporal", "grid"], choices=["temporal", "grid"])
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    for part in arguments.parts:
        {"temporal": temporal, "grid": grid}[part](arguments.steps)


if __name__ == "__main__":
    main()
