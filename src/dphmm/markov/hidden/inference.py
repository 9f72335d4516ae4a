"""What observations say of hidden states: log-likelihoods, posteriors, the likeliest path, paths drawn at random.

Everything takes `Parameters` and `Observations` and raises InvalidInput, naming sequence and position, where a symbol
is impossible under the model. Memory is linear in symbols × states, less with ``checkpoint``.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.hmm import Matrix, best_path_each, best_paths, trace
from dphmm._kernels.hmm import draw_paths as draw_block
from dphmm._kernels.process import on_one_thread
from dphmm.markov.hidden.observations import Observations
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.hidden.passes import (
    BLOCK_NUMBERS,
    Batch,
    Block,
    Pass,
    Underflow,
    Workspace,
    batches,
    halves,
    impossible,
    log_matrix,
    logs,
    single_pass,
    smoothed,
)
from dphmm.types import FloatArray, IntArray


@on_one_thread
def log_likelihoods(parameters: Parameters, observed: Observations) -> FloatArray:
    """log P(symbols) of every sequence (n,)."""
    found = np.empty(observed.n_sequences)
    waiting, space = list(batches(observed, parameters.n_states)), Workspace()
    while waiting:
        batch = waiting.pop()
        try:
            found[batch.which] = Pass(parameters, parameters.initial, batch, False, rows=False, space=space).logs
        except Underflow:
            if len(batch.which) == 1:
                found[batch.which] = single_pass(parameters, parameters.initial, observed, int(batch.which[0])).log
            waiting += halves(observed, batch)
    return found


@on_one_thread
def posteriors(
    parameters: Parameters, observed: Observations, *, checkpoint: bool | str = "auto"
) -> tuple[FloatArray, FloatArray]:
    """P(state | all symbols of its sequence) for every symbol (m, S), and log P(symbols) of every sequence (n,)."""
    found = np.empty((len(observed.symbols), parameters.n_states))
    logs = np.empty(observed.n_sequences)
    waiting = list(batches(observed, parameters.n_states))
    while waiting:
        batch = waiting.pop()
        try:
            logs[batch.which] = _posteriors(parameters, batch, checkpoint, found)
        except Underflow:
            if len(batch.which) == 1:
                logs[batch.which] = _log_posteriors(parameters, observed, batch, found)
            waiting += halves(observed, batch)
    return found, logs


def viterbi(parameters: Parameters, observed: Observations) -> tuple[IntArray, FloatArray]:
    """The likeliest path (m,) of every sequence, and log P(path and symbols) of each (n,).

    Where several are equally likely, states are the lowest possible, from the last to the first.
    """
    path, found = np.empty(len(observed.symbols), dtype=np.int64), np.empty(observed.n_sequences)
    moves = log_matrix(parameters.compressed_rows if parameters.is_sparse else parameters.forward)
    likelihood = logs(parameters.likelihood)
    initial, longest = logs(parameters.initial), _piece(int(observed.lengths.max()), parameters.n_states)
    kind = np.min_scalar_type(parameters.n_states - 1)
    pointers = np.zeros((longest, parameters.n_states), dtype=kind)
    short = np.flatnonzero(observed.lengths <= longest)
    ends, symbols = observed.ends, observed.symbols
    refused = best_path_each(initial, moves, likelihood, symbols, ends, short, pointers, path, found)
    if refused >= 0:
        raise impossible(ends, refused)
    for k in np.flatnonzero(observed.lengths > longest).tolist():
        best, before = initial.copy(), []
        cuts = [*range(0, int(observed.lengths[k]), longest), int(observed.lengths[k])]
        pieces = [(first, observed.sequence(k)[first:last]) for first, last in pairwise(cuts)]
        for first, piece in pieces:
            before.append(best.copy())
            refused = best_paths(best, moves, likelihood, piece, int(first == 0), pointers)
            if refused >= 0:
                raise impossible(ends, int(ends[k]) + first + refused)
        state = int(np.argmax(best))
        found[k] = best[state]
        for (first, piece), row in zip(reversed(pieces), reversed(before), strict=True):
            # The last piece's pointers are there still, but one piece more is little beside all others.
            best_paths(row, moves, likelihood, piece, int(first == 0), pointers)
            state = trace(pointers, state, path[ends[k] + first :][: len(piece)])
    return path, found


@on_one_thread
def draw_paths(
    parameters: Parameters, observed: Observations, n_paths: int, random: Any, checkpoint: bool | str = "auto"
) -> NDArray[np.int64]:
    """Hidden paths (n_paths, m) drawn from the posterior given the symbols, each sequence's independently."""
    paths = np.empty((n_paths, len(observed.symbols)), dtype=np.int64)
    waiting = list(batches(observed, parameters.n_states))
    while waiting:
        batch = waiting.pop()
        try:
            passed = Pass(parameters, parameters.initial, batch, checkpoint)
        except Underflow:
            if len(batch.which) == 1:
                alone = single_pass(parameters, parameters.initial, observed, int(batch.which[0]))
                whole = Block(0, len(batch.widths), 0, len(batch.rows))
                _draw(log_matrix(parameters.compressed_columns), batch, [(whole, alone.log_alpha)], True, random, paths)
            waiting += halves(observed, batch)
        else:
            _draw(parameters.compressed_columns, batch, passed.forward_rows(), False, random, paths)
    return paths


def _draw(
    columns: Matrix,
    batch: Batch,
    forward: Iterable[tuple[Block, FloatArray]],
    logged: bool,
    random: Any,
    paths: IntArray,
) -> None:
    """Draw the paths of a batch from its blocks of forward rows, the last block first."""
    last, n_follow = np.zeros((len(paths), len(batch.which)), dtype=np.int64), 0
    for block, alpha in forward:
        widths = batch.widths[block.first : block.last]
        states = np.empty(len(alpha), dtype=np.int64)
        for number, path in enumerate(paths):
            draw_block(columns, alpha, logged, widths, n_follow, random.random(len(alpha)), last[number], states)
            path[batch.rows[block.start : block.stop]] = states
        n_follow = int(widths[0])


def _posteriors(parameters: Parameters, batch: Batch, checkpoint: bool | str, out: FloatArray) -> FloatArray:
    passed = Pass(parameters, parameters.initial, batch, checkpoint)
    for part in passed.backward(np.ones(len(batch.which))):
        product = part.alpha * part.beta
        out[batch.rows[part.block.start : part.block.stop]] = product / product.sum(axis=1, keepdims=True)
    return passed.logs


def _log_posteriors(parameters: Parameters, observed: Observations, batch: Batch, out: FloatArray) -> float:
    passed = single_pass(parameters, parameters.initial, observed, int(batch.which[0]))
    found, _ = smoothed(parameters, passed)
    out[batch.rows] = found / found.sum(axis=1, keepdims=True)
    return passed.log


def _piece(longest: int, n_states: int) -> int:
    """How long the pieces are that a sequence is cut into, so that pointers, and the rows before each, take little."""
    return min(longest, max(8 * BLOCK_NUMBERS // n_states, int(np.sqrt(longest)), 1))
