"""Inference about hidden states from observations: log-likelihoods, posteriors, the likeliest path, random paths.

Everything takes `Parameters` and `Observations` and raises InvalidInput, naming sequence and position, where a symbol
is impossible under the model. Memory is linear in symbols × states, less with ``checkpoint``.

Forward and backward passes go over batches of sequences in floats, and over one sequence where floats do not hold it.
A batch has its sequences side by side in order of falling length, and is worked on block by block. Where it is
checkpointed, only the distribution before each block is kept, and the block's forward rows are computed again on the
way back: about a third more time, and memory for one block instead of all. A sequence that underflows is worked on in
logs: slower, and what is possible stays possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._kernels.hmm import (
    Matrix,
    backward_records,
    best_path_each,
    forward_records,
    smooth_record,
    times,
)
from dphmm._kernels.hmm import draw_paths as draw_block
from dphmm._kernels.process import on_one_thread
from dphmm._kernels.smoothing import JumpChain, Stops, forward_logs
from dphmm.errors import InvalidInput
from dphmm.markov.hidden.parameters import Observations, Parameters, place
from dphmm.types import FloatArray, IntArray

#: Numbers in the forward rows of a batch (8 MB), and of a block (1 MB): they stay in a processor's cache.
BATCH_NUMBERS = 2**20
BLOCK_NUMBERS = 2**17
#: Forward rows of more bytes than this are not kept where checkpointing is "auto".
KEPT_BYTES = 2**28


@dataclass(frozen=True)
class PositionBlock:
    """Positions ``first`` up to ``last`` of all sequences, which are rows ``start`` up to ``stop`` of the batch."""

    first: int
    last: int
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class SequenceBatch:
    """Sequences ``which`` (k,), longest first. Row r is symbol ``rows[r]`` of the observations.

    ``widths`` (T,): how many of them have a symbol at each position. ``symbols`` (rows,) are those of the rows.
    """

    which: IntArray
    widths: IntArray
    rows: IntArray
    symbols: IntArray

    def blocks(self, n_states: int) -> list[PositionBlock]:
        """The whole batch in pieces of about BLOCK_NUMBERS numbers, at least one position each."""
        most = max(BLOCK_NUMBERS // n_states, 1)
        begins = np.concatenate(([0], np.cumsum(self.widths)))
        blocks, first = [], 0
        while first < len(self.widths):
            last = max(int(np.searchsorted(begins, begins[first] + most, side="right")) - 1, first + 1)
            blocks.append(PositionBlock(first, last, int(begins[first]), int(begins[last])))
            first = last
        return blocks


def batches(observed: Observations, n_states: int, which: IntArray | None = None) -> Iterator[SequenceBatch]:
    """All sequences, or those of ``which``, in batches of about BATCH_NUMBERS numbers, a longer one by itself."""
    numbers = np.arange(observed.n_sequences) if which is None else which
    lengths = observed.lengths[numbers]
    falling = np.argsort(-lengths, kind="stable")
    order, sizes = numbers[falling], np.cumsum(lengths[falling])
    most = max(BATCH_NUMBERS // n_states, 1)
    first = 0
    while first < len(order):
        before = sizes[first - 1] if first else 0
        last = max(int(np.searchsorted(sizes, before + most, side="right")), first + 1)
        yield batch(observed, order[first:last])
        first = last


def batch(observed: Observations, which: IntArray) -> SequenceBatch:
    """Some sequences, given longest first, as a batch."""
    lengths = observed.lengths[which]
    # Sequence k has a symbol at positions below lengths[k]: counts of lengths, summed from the longest.
    widths = np.cumsum(np.bincount(lengths, minlength=int(lengths[0]) + 1)[::-1])[::-1][1:]
    begins = np.cumsum(widths) - widths
    sequence = np.arange(int(widths.sum())) - np.repeat(begins, widths)
    rows = observed.ends[which][sequence] + np.repeat(np.arange(len(widths)), widths)
    return SequenceBatch(which, np.ascontiguousarray(widths), rows, observed.symbols[rows])


class Underflow(ArithmeticError):
    """Floats do not serve some sequence of a batch: it is impossible, or logs are needed."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """One block on the way back: its rows of alpha, beta, and what comes ``after`` each (see `backward_records`)."""

    block: PositionBlock
    alpha: FloatArray
    beta: FloatArray
    after: FloatArray


class Workspace:
    """Arrays that one pass after another fills: touching new memory would take as long as the work on few states."""

    def __init__(self) -> None:
        self._arrays: dict[str, FloatArray] = {}

    def rows(self, name: str, n_rows: int, n: int) -> FloatArray:
        """An array (n_rows, n), not cleared, that shares memory with the last of this name."""
        size = n_rows * n
        if name not in self._arrays or len(self._arrays[name]) < size:
            self._arrays[name] = np.empty(size)
        return self._arrays[name][:size].reshape(n_rows, n)


class Pass:
    """The forward pass of a batch, made on construction: ``logs`` (k,) are log-likelihoods. May raise Underflow."""

    def __init__(
        self,
        parameters: Parameters,
        initial: FloatArray,
        batch: SequenceBatch,
        checkpoint: bool | str,
        *,
        rows: bool = True,
        space: Workspace | None = None,
    ) -> None:
        self._parameters, self._batch = parameters, batch
        self._space = Workspace() if space is None else space
        self.blocks = batch.blocks(parameters.n_states)
        self.logs = np.zeros(len(batch.which))
        n_rows, n = len(batch.symbols), parameters.n_states
        dropped = not rows or checkpoint is True or (checkpoint == "auto" and 8 * n_rows * n > KEPT_BYTES)
        self._kept = not dropped
        longest = max(block.stop - block.start for block in self.blocks)
        self._alpha = self._space.rows("alpha", longest if dropped else n_rows, n)
        self._scales = self._space.rows("scales", 1, n_rows)[0]
        self._before: list[FloatArray] = []
        predicted = np.tile(initial, (len(batch.which), 1))
        for block in self.blocks:
            self._before.append(predicted if dropped and rows else predicted[:0])
            alpha = self._forward(block, predicted, self.logs)
            if block.last < len(batch.widths):
                width, last_row = int(batch.widths[block.last]), len(alpha) - int(batch.widths[block.last - 1])
                predicted = np.empty((width, n))
                times(alpha, last_row, width, parameters.forward, predicted, 0)
        self._filled: PositionBlock | None = self.blocks[-1]

    def forward_rows(self) -> Iterator[tuple[PositionBlock, FloatArray]]:
        """Blocks and their rows of alpha, the last block first."""
        for number in range(len(self.blocks) - 1, -1, -1):
            block = self.blocks[number]
            if self._kept:
                yield block, self._alpha[block.start : block.stop]
            elif self._filled is block:
                yield block, self._alpha[: block.stop - block.start]
            else:
                self._filled = block
                yield block, self._forward(block, self._before[number], np.zeros(len(self.logs)))

    def backward(self, weights: FloatArray) -> Iterator[Smoothed]:
        """Blocks with their forward and backward rows, the last first; counts are ``weights`` (k,) times each's."""
        parameters, batch = self._parameters, self._batch
        n = parameters.n_states
        longest = max(block.stop - block.start for block in self.blocks)
        beta, after = self._space.rows("beta", longest, n), self._space.rows("after", longest, n)
        follows, n_follow = np.zeros((len(weights), n)), 0
        for block, alpha in self.forward_rows():
            size = block.stop - block.start
            held = backward_records(
                parameters.backward,
                parameters.likelihood,
                batch.symbols[block.start : block.stop],
                batch.widths[block.first : block.last],
                self._scales[block.start : block.stop],
                weights,
                follows,
                n_follow,
                beta[:size],
                after[:size],
            )
            if not held:
                raise Underflow
            n_follow = int(batch.widths[block.first])
            yield Smoothed(block, alpha, beta[:size], after[:size])

    def _forward(self, block: PositionBlock, predicted: FloatArray, logs: FloatArray) -> FloatArray:
        batch, parameters = self._batch, self._parameters
        start = block.start if self._kept else 0
        alpha = self._alpha[start : start + block.stop - block.start]
        possible = forward_records(
            predicted,
            parameters.forward,
            parameters.likelihood,
            batch.symbols[block.start : block.stop],
            batch.widths[block.first : block.last],
            alpha,
            self._scales[block.start : block.stop],
            logs,
        )
        if not possible:
            raise Underflow
        return alpha


@dataclass(frozen=True, eq=False)
class SinglePass:
    """The forward pass of one sequence: ``alpha`` (T, S), in logs, and its log-likelihood ``logs`` (1,)."""

    symbols: IntArray
    alpha: FloatArray
    logs: FloatArray

    def forward_rows(self) -> Iterator[tuple[PositionBlock, FloatArray]]:
        """As of `Pass`: one block."""
        yield PositionBlock(0, len(self.alpha), 0, len(self.alpha)), self.alpha


def single_pass(parameters: Parameters, initial: FloatArray, observed: Observations, k: int) -> SinglePass:
    """The forward pass of sequence k. Raises InvalidInput with its place if a symbol is impossible there."""
    symbols, columns = observed.sequence(k), parameters.compressed_columns
    alpha, sums = np.empty((len(symbols), parameters.n_states, 1)), np.empty((len(symbols), 1))
    chain = JumpChain(columns.indptr, columns.indices, columns.data, np.ones(1), np.zeros((0, 1)), 0.0)
    stops = Stops(logs(parameters.likelihood), symbols[:, None], np.minimum(np.arange(len(symbols)), 1))
    refused = forward_logs(chain, stops, (0, len(symbols)), logs(initial)[:, None], alpha, sums)
    if refused >= 0:
        raise impossible(observed.ends, int(observed.ends[k]) + refused)
    return SinglePass(symbols, alpha[:, :, 0], sums.sum(axis=0))


def smoothed(parameters: Parameters, passed: SinglePass) -> tuple[FloatArray, FloatArray]:
    """Posteriors (T, S), and expected transitions for each entry of ``parameters.compressed_rows``."""
    rows = parameters.compressed_rows
    posteriors, expected = np.empty_like(passed.alpha), np.zeros(len(rows.data))
    smooth_record(rows, logs(parameters.likelihood), passed.symbols, passed.alpha, posteriors, expected)
    return posteriors, expected


def impossible(ends: IntArray, at: int) -> InvalidInput:
    """The error for a symbol that no state can have emitted where it stands."""
    fault = "a symbol that is impossible there under the model"
    return InvalidInput(place(ends, at), fault, "a sequence the model can emit")


def logs(values: FloatArray) -> FloatArray:
    """Logarithms; -inf of 0."""
    with np.errstate(divide="ignore"):
        return np.log(values)


def log_matrix(matrix: Matrix) -> Matrix:
    """The same matrix with logs in place of its numbers."""
    return Matrix(logs(matrix.dense), matrix.indptr, matrix.indices, logs(matrix.data))


def in_floats_or_logs(
    parameters: Parameters,
    initial: FloatArray,
    observed: Observations,
    waiting: list[SequenceBatch],
    work: Callable[[SequenceBatch, SinglePass | None], None],
) -> None:
    """Work on batches, the last one first, in floats; on a sequence that floats do not serve, with its pass in logs."""
    while waiting:
        whole = waiting.pop()
        try:
            work(whole, None)
        except Underflow:
            middle = len(whole.which) // 2
            if middle == 0:
                work(whole, single_pass(parameters, initial, observed, int(whole.which[0])))
            else:
                waiting += [batch(observed, whole.which[:middle]), batch(observed, whole.which[middle:])]


@on_one_thread
def log_likelihoods(parameters: Parameters, observed: Observations) -> FloatArray:
    """log P(symbols) of every sequence (n,)."""
    likelihoods, initial, space = np.empty(observed.n_sequences), parameters.initial, Workspace()

    def work(batch: SequenceBatch, alone: SinglePass | None) -> None:
        passed = alone or Pass(parameters, initial, batch, False, rows=False, space=space)
        likelihoods[batch.which] = passed.logs

    in_floats_or_logs(parameters, initial, observed, list(batches(observed, parameters.n_states)), work)
    return likelihoods


@on_one_thread
def posteriors(
    parameters: Parameters, observed: Observations, *, checkpoint: bool | str = "auto"
) -> tuple[FloatArray, FloatArray]:
    """P(state | all symbols of its sequence) for every symbol (m, S), and log P(symbols) of every sequence (n,)."""
    marginals, initial = np.empty((len(observed.symbols), parameters.n_states)), parameters.initial
    logs = np.empty(observed.n_sequences)

    def work(batch: SequenceBatch, alone: SinglePass | None) -> None:
        if alone is not None:
            marginals[batch.rows], logs[batch.which] = smoothed(parameters, alone)[0], alone.logs
            return
        passed = Pass(parameters, initial, batch, checkpoint)
        for part in passed.backward(np.ones(len(batch.which))):
            product = part.alpha * part.beta
            marginals[batch.rows[part.block.start : part.block.stop]] = product / product.sum(axis=1, keepdims=True)
        logs[batch.which] = passed.logs

    in_floats_or_logs(parameters, initial, observed, list(batches(observed, parameters.n_states)), work)
    return marginals, logs


def viterbi(parameters: Parameters, observed: Observations) -> tuple[IntArray, FloatArray]:
    """The likeliest path (m,) of every sequence, and log P(path and symbols) of each (n,).

    Where several are equally likely, states are the lowest possible, from the last to the first.
    """
    path, scores = np.empty(len(observed.symbols), dtype=np.int64), np.empty(observed.n_sequences)
    moves = log_matrix(parameters.compressed_rows if parameters.is_sparse else parameters.forward)
    initial, likelihood = logs(parameters.initial), logs(parameters.likelihood)
    longest, n = int(observed.lengths.max()), parameters.n_states
    # Pieces so long that pointers, and the rows before each, take little.
    piece = min(longest, max(8 * BLOCK_NUMBERS // n, int(np.sqrt(longest)), 1))
    pointers = np.zeros((piece, n), dtype=np.min_scalar_type(n - 1))
    refused = best_path_each(initial, moves, likelihood, observed.symbols, observed.ends, pointers, path, scores)
    if refused >= 0:
        raise impossible(observed.ends, refused)
    return path, scores


@on_one_thread
def draw_paths(
    parameters: Parameters, observed: Observations, n_paths: int, random: Any, checkpoint: bool | str = "auto"
) -> NDArray[np.int64]:
    """Hidden paths (n_paths, m) drawn from the posterior given the symbols, each sequence's independently."""
    paths, initial = np.empty((n_paths, len(observed.symbols)), dtype=np.int64), parameters.initial

    def work(batch: SequenceBatch, alone: SinglePass | None) -> None:
        columns, logged = parameters.compressed_columns, alone is not None
        entries = log_matrix(columns) if logged else columns
        passed = alone or Pass(parameters, initial, batch, checkpoint)
        last, n_follow = np.zeros((n_paths, len(batch.which)), dtype=np.int64), 0
        for block, alpha in passed.forward_rows():
            widths = batch.widths[block.first : block.last]
            states = np.empty(len(alpha), dtype=np.int64)
            for number, path in enumerate(paths):
                draw_block(entries, alpha, logged, widths, n_follow, random.random(len(alpha)), last[number], states)
                path[batch.rows[block.start : block.stop]] = states
            n_follow = int(widths[0])

    in_floats_or_logs(parameters, initial, observed, list(batches(observed, parameters.n_states)), work)
    return paths
