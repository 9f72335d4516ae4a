"""Forward and backward passes over batches of lanes, block by block, with or without keeping all forward rows.

Where checkpointed, only the distribution before each block is kept, and the block's forward rows are computed again
on the way back: about a third more time, and memory for one block instead of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dphmm._kernels.hmm_lanes import backward_lanes, forward_lanes, times
from dphmm.markov.hidden.lanes import Batch, Block
from dphmm.markov.hidden.parameters import Parameters
from dphmm.types import FloatArray

#: Forward rows of more bytes than this are not kept where checkpointing is "auto".
KEPT_BYTES = 2**28


class Underflow(ArithmeticError):
    """Floats do not serve some sequence of a batch: it is impossible, or logs are needed."""


@dataclass(frozen=True, eq=False)
class Smoothed:
    """One block on the way back: its rows of alpha, beta, and what comes ``after`` each (see `backward_lanes`)."""

    block: Block
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
    """The forward pass of a batch, made on construction: ``logs`` (lanes,) are log-likelihoods. May raise Underflow."""

    def __init__(
        self,
        parameters: Parameters,
        initial: FloatArray,
        batch: Batch,
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
                times(alpha, last_row, width, parameters.rows, predicted, 0)
        self._filled: Block | None = self.blocks[-1]

    def forward_rows(self) -> Iterator[tuple[Block, FloatArray]]:
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
        """Blocks with their forward and backward rows, the last first; counts are ``weights`` (lanes,) times each's."""
        parameters, batch = self._parameters, self._batch
        n = parameters.n_states
        longest = max(block.stop - block.start for block in self.blocks)
        beta, after = self._space.rows("beta", longest, n), self._space.rows("after", longest, n)
        follows, n_follow = np.zeros((len(weights), n)), 0
        for block, alpha in self.forward_rows():
            size = block.stop - block.start
            held = backward_lanes(
                parameters.columns,
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

    def _forward(self, block: Block, predicted: FloatArray, logs: FloatArray) -> FloatArray:
        batch, parameters = self._batch, self._parameters
        start = block.start if self._kept else 0
        alpha = self._alpha[start : start + block.stop - block.start]
        possible = forward_lanes(
            predicted,
            parameters.rows,
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
