"""Why hidden models have a forward pass of their own: beside the filter's `predict`, one row at a time, in one run.

    python benchmarks/forward.py

Prints milliseconds of CPU of both and their ratio, the best of seven turns each. Where the ratio is at most 1.3, the
batched pass of `dphmm._kernels.hmm` has no reason to be.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

from dphmm._kernels.compiled import kernel
from dphmm._kernels.filter import predict, total
from dphmm.markov.hidden.inference import Pass, Workspace, batches
from dphmm.markov.hidden.parameters import Observations, Parameters
from dphmm.types import FloatArray, IntArray, Predecessors


@kernel
def one_by_one(
    matrix: Predecessors, likelihood: FloatArray, initial: FloatArray, symbols: IntArray, ends: IntArray, out: Any
) -> None:
    """The forward rows of all sequences, each row by the filter's `predict`."""
    n = len(initial)
    support, reached, moved = np.ones(n, dtype=np.bool_), np.ones(n, dtype=np.bool_), np.empty(n)
    for k in range(len(ends) - 1):
        row = initial.copy()
        for t in range(ends[k], ends[k + 1]):
            if t > ends[k]:
                predict(matrix, row, support, moved, reached)
                row[:] = moved
            row *= likelihood[symbols[t]]
            row /= total(row)
            out[t] = row


def least(work: Callable[..., object], *given: Any) -> float:
    """Milliseconds of CPU of the best of seven turns, after one that nobody times."""
    turns = []
    for _ in range(8):
        began = time.process_time()
        work(*given)
        turns.append(1000 * (time.process_time() - began))
    return min(turns[1:])


def main() -> None:
    """A few sizes, dense and sparse."""
    rng = np.random.default_rng(0)
    for states, symbols, people, length, moves in (
        (2, 6, 300, 100, 2),
        (12, 20, 300, 100, 12),
        (60, 30, 200, 100, 60),
        (400, 30, 60, 50, 9),
    ):
        matrix = np.zeros((states, states))
        for row in matrix:
            row[rng.choice(states, moves, replace=False)] = rng.dirichlet(np.ones(moves))
        start = np.full(states, 1 / states)
        emission = rng.dirichlet(np.ones(symbols), states)
        parameters = Parameters(start, matrix if moves == states else sparse.csr_array(matrix), emission)
        observed = Observations(rng.integers(0, symbols, people * length), length * np.arange(people + 1))
        columns, space = sparse.csc_array(matrix), Workspace()
        own = Predecessors(columns.indptr, columns.indices, columns.data, np.zeros(0))
        rows = np.empty((people * length, states))
        alone = (own, parameters.likelihood, start, observed.symbols, observed.ends, rows)
        batched, single = least(all_batches, parameters, observed, space), least(one_by_one, *alone)
        told = f"{batched:.2f} ms, one by one {single:.2f}: {single / batched:.1f} times"
        print(f"{states} states, {moves} moves each: {told}")


def all_batches(parameters: Parameters, observed: Observations, space: Workspace) -> None:
    """The batched pass."""
    for one in batches(observed, parameters.n_states):
        Pass(parameters, parameters.initial, one, False, space=space)


if __name__ == "__main__":
    main()
