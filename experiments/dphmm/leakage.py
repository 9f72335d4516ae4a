"""Exact policy leakage of a small chain: every program of the recursion is solved, where the package couples rows.

    python -m experiments.dphmm.leakage [--cells 11] [--steps 4]

Prints what a walk of two cells to the left or to the right loses at an edge of neighbours, ε = 1: the sum of epsilons,
the exact figure of the recursion, and the bound of `dphmm.accounting.policy_leakage`. Programs have a row for each pair
of states and factors e^loss, so chains are small, and losses below some hundreds.

Proof: docs/proofs/policy-leakage.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from itertools import permutations, product

import numpy as np

from dphmm import MarkovModel
from dphmm.accounting import policy_leakage
from dphmm.types import FloatArray


def largest_ratio(q: FloatArray, d: FloatArray, limits: FloatArray) -> float:
    """The largest log (q·x / d·x) over x > 0 with log x_k - log x_m <= limits[k, m], by a linear program of HiGHS."""
    from scipy.optimize import linprog

    used = np.flatnonzero((q > 0) | (d > 0))
    q, d, limits = q[used], d[used], limits[np.ix_(used, used)]
    higher, lower = np.nonzero(np.isfinite(limits) & ~np.eye(len(used), dtype=bool))
    bounds = np.zeros((len(higher), len(used)))
    each = np.arange(len(higher))
    bounds[each, higher], bounds[each, lower] = 1.0, -np.exp(limits[higher, lower])
    found = linprog(-q, A_ub=bounds, b_ub=np.zeros(len(bounds)), A_eq=d[None], b_eq=[1.0], method="highs")
    return math.log(-found.fun) if found.status == 0 else math.inf


def exact_leakage(start: FloatArray, moves: FloatArray, losses: Sequence[FloatArray]) -> FloatArray:
    """c + F + B of every step and every pair of states (T, n, n); ``start``: the law of the state at step 1."""
    steps = len(losses)
    later, earlier = [np.zeros_like(losses[0])], [np.zeros_like(losses[0])]
    for t in range(steps - 1, 0, -1):
        later.insert(0, _onward(moves, losses[t] + later[0]))
    law = start
    for t in range(1, steps):
        coming = law @ moves
        with np.errstate(invalid="ignore", divide="ignore"):
            before = np.nan_to_num((law[:, None] * moves).T / coming[:, None])
        earlier.append(_onward(before, losses[t - 1] + earlier[-1]))
        law = coming
    return np.array([losses[t] + later[t] + earlier[t] for t in range(steps)])


def _onward(rows: FloatArray, limits: FloatArray) -> FloatArray:
    """The next F or B; 0 for a state that cannot be."""
    found = np.zeros_like(limits)
    for i, j in permutations(np.flatnonzero(rows.sum(axis=1) > 0), 2):
        found[i, j] = largest_ratio(rows[i], rows[j], limits)
    return found


def walk_of_two(n: int) -> tuple[FloatArray, FloatArray]:
    """Two cells left or right with equal chances, turned back at the walls; the law that it keeps, and its moves."""
    moves = np.zeros((n, n))
    for i, step in product(range(n), (-2, 2)):
        moves[i, i + step if 0 <= i + step < n else i - step] += 0.5
    law = np.full(n, 1 / n) @ np.linalg.matrix_power((moves + np.eye(n)) / 2, 20_000)
    return law / law.sum(), moves


def main() -> None:
    """Print a line for each number of releases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=11)
    parser.add_argument("--steps", type=int, default=4)
    given = parser.parse_args()
    n = given.cells
    law, moves = walk_of_two(n)
    model, loss = MarkovModel(law, moves, start="at"), np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    edges = np.array([(i, i + 1) for i in range(n - 1)])
    for steps in range(1, given.steps + 1):
        losses = [loss.astype(np.float64)] * steps
        exact = exact_leakage(law, moves, losses)
        worst = max(exact[:, i, j].max() for i, j in [*edges, *edges[:, ::-1]])
        bound = policy_leakage(model, losses, edges).worst
        print(f"{steps} releases: sum of epsilons {steps}, exact {worst:.3f}, bound {bound:.3f}")


if __name__ == "__main__":
    main()
