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

from dphmm._kernels.hmm_lanes import Matrix
from dphmm._kernels.hmm_paths import best_path_each, best_paths, draw_lanes, trace
from dphmm.markov.hidden.in_logs import impossible, log_matrix, log_pass, log_smoothing, logs
from dphmm.markov.hidden.lanes import BLOCK_NUMBERS, Batch, Block, batches, halves
from dphmm.markov.hidden.observations import Observations
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.hidden.passes import Pass, Underflow, Workspace
from dphmm.markov.hidden.threads import on_one_thread
from dphmm.types import FloatArray, IntArray


@on_one_thread
def log_likelihoods(parameters: Parameters, observed: Observations) -> FloatArray:
    """log P(symbols) of every sequence (n,)."""
    found = np.empty(observed.n_sequences)
    waiting, space = list(batches(observed, parameters.n_states)), Workspace()
    while waiting:
        lanes = waiting.pop()
        try:
            found[lanes.which] = Pass(parameters, parameters.initial, lanes, False, rows=False, space=space).logs
        except Underflow:
            if len(lanes.which) == 1:
                found[lanes.which] = log_pass(parameters, parameters.initial, observed, int(lanes.which[0])).log
            waiting += halves(observed, lanes)
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
        lanes = waiting.pop()
        try:
            logs[lanes.which] = _posteriors(parameters, lanes, checkpoint, found)
        except Underflow:
            if len(lanes.which) == 1:
                logs[lanes.which] = _log_posteriors(parameters, observed, lanes, found)
            waiting += halves(observed, lanes)
    return found, logs


def viterbi(parameters: Parameters, observed: Observations) -> tuple[IntArray, FloatArray]:
    """The likeliest path (m,) of every sequence, and log P(path and symbols) of each (n,).

    Where several are equally likely, states are the lowest possible, from the last to the first.
    """
    path, found = np.empty(len(observed.symbols), dtype=np.int64), np.empty(observed.n_sequences)
    moves, likelihood = log_matrix(parameters.rows), logs(parameters.likelihood)
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
        lanes = waiting.pop()
        try:
            passed = Pass(parameters, parameters.initial, lanes, checkpoint)
        except Underflow:
            if len(lanes.which) == 1:
                alone = log_pass(parameters, parameters.initial, observed, int(lanes.which[0]))
                whole = Block(0, len(lanes.widths), 0, len(lanes.rows))
                _draw(log_matrix(parameters.compressed_columns), lanes, [(whole, alone.alpha)], True, random, paths)
            waiting += halves(observed, lanes)
        else:
            _draw(parameters.compressed_columns, lanes, passed.forward_rows(), False, random, paths)
    return paths


def _draw(
    columns: Matrix,
    lanes: Batch,
    forward: Iterable[tuple[Block, FloatArray]],
    logged: bool,
    random: Any,
    paths: IntArray,
) -> None:
    """Draw the paths of a batch from its blocks of forward rows, the last block first."""
    last, n_follow = np.zeros((len(paths), len(lanes.which)), dtype=np.int64), 0
    for block, alpha in forward:
        widths = lanes.widths[block.first : block.last]
        states = np.empty(len(alpha), dtype=np.int64)
        for number, path in enumerate(paths):
            draw_lanes(columns, alpha, logged, widths, n_follow, random.random(len(alpha)), last[number], states)
            path[lanes.rows[block.start : block.stop]] = states
        n_follow = int(widths[0])


def _posteriors(parameters: Parameters, lanes: Batch, checkpoint: bool | str, out: FloatArray) -> FloatArray:
    passed = Pass(parameters, parameters.initial, lanes, checkpoint)
    for part in passed.backward(np.ones(len(lanes.which))):
        product = part.alpha * part.beta
        out[lanes.rows[part.block.start : part.block.stop]] = product / product.sum(axis=1, keepdims=True)
    return passed.logs


def _log_posteriors(parameters: Parameters, observed: Observations, lanes: Batch, out: FloatArray) -> float:
    passed = log_pass(parameters, parameters.initial, observed, int(lanes.which[0]))
    found, _ = log_smoothing(parameters, passed)
    out[lanes.rows] = found / found.sum(axis=1, keepdims=True)
    return passed.log


def _piece(longest: int, n_states: int) -> int:
    """How long the pieces are that a sequence is cut into, so that pointers, and the rows before each, take little."""
    return min(longest, max(8 * BLOCK_NUMBERS // n_states, int(np.sqrt(longest)), 1))
