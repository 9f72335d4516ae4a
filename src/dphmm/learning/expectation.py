"""The E-step over all people of a release, in a fixed order: equal files give equal bytes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dphmm import _kernels
from dphmm.learning.sequences import Stretch, slots_of
from dphmm.markov.model import MarkovModel
from dphmm.markov.slots import Slots
from dphmm.markov.stochastic import fixed
from dphmm.types import FloatArray, IntArray

#: People side by side, and numbers of them together.
_MOST, _KEPT = 64, 2**24
_DAY = 86_400


class SlotChain(NamedTuple):
    """The learned parameters: the matrices (K, m) of the slots, and the law (N,) of step 1."""

    matrices: FloatArray
    initial: FloatArray


class ExpectedMoves(NamedTuple):
    """ExpectedMoves moves (K, m), the sum (N,) of the laws of step 1 of those who begin there, and log-likelihoods."""

    counts: FloatArray
    starts: FloatArray
    logs: FloatArray


@dataclass(frozen=True, eq=False)
class _Group:
    """Stretches side by side, in step with each other: by their time of day, padded at their ends.

    Copies of the last one, of which nothing is seen, fill the loops of the kernels.
    """

    stretches: list[Stretch]
    slots: IntArray
    table: FloatArray
    which: IntArray
    ends: IntArray


class Sample:
    """The stretches of some people, grouped for the E-step. ``base`` has the jump, and the structure of matrices."""

    def __init__(self, base: MarkovModel, slots: Slots | None, stretches: Sequence[Stretch], people: int) -> None:
        self._base, self.people, self._groups = base, people, list[_Group]()
        first, longest_first = 0, sorted(stretches, key=lambda stretch: -len(stretch.which))
        while first < len(longest_first):
            size = min(_MOST, max(1, _KEPT // (base.n_states * len(longest_first[first].which))))
            self._groups.append(_grouped(longest_first[first : first + size], slots, base))
            first += size
        matrix = base.matrix
        order = np.argsort(matrix.indices, kind="stable")
        rows = np.repeat(np.arange(base.n_states), np.diff(matrix.indptr))
        columns = np.append(0, np.cumsum(np.bincount(matrix.indices, minlength=base.n_states)))
        arrays = matrix.indptr, matrix.indices, columns, rows[order], order
        self._structure = tuple(fixed(array.astype(np.int64)) for array in arrays)

    def expected(self, chain: SlotChain) -> ExpectedMoves:
        """The E-step under a chain."""
        counts, starts = np.zeros_like(chain.matrices), np.zeros(self._base.n_states)
        logs = np.zeros(self.people)
        for group, moves, alpha, sums in self._filtered(chain, logs):
            first = np.zeros(alpha.shape[1:])
            _kernels.learning.backward(
                moves, group.slots, group.table, group.which, group.ends, alpha, sums, counts, first
            )
            for k, stretch in enumerate(group.stretches):
                if stretch.prior is None:
                    starts += first[:, k]
        return ExpectedMoves(counts, starts, logs)

    def log_likelihoods(self, chain: SlotChain) -> FloatArray:
        """The log-likelihood (people,) of each person's answers, up to factors of the answers."""
        logs = np.zeros(self.people)
        for _ in self._filtered(chain, logs):
            pass
        return logs

    def _filtered(self, chain: SlotChain, logs: FloatArray) -> Iterator[tuple[_Group, Any, FloatArray, FloatArray]]:
        """Each group with its beliefs, which are filtered; the log-likelihoods are added to ``logs`` (people,)."""
        jump = self._base.jump
        assert jump is not None
        indptr, indices, columns, rows, order = self._structure
        back = np.ascontiguousarray(chain.matrices[:, order])
        moves = _kernels.learning.SlotMoves(
            indptr, indices, chain.matrices, columns, rows, back, jump.stays, fixed(np.array(jump.share))
        )
        for group in self._groups:
            alpha = np.empty((*group.which.shape[:1], self._base.n_states, group.which.shape[1]))
            alpha[0] = 1 / self._base.n_states
            for k, stretch in enumerate(group.stretches):
                alpha[0, :, k] = chain.initial if stretch.prior is None else stretch.prior
            sums = np.empty(group.which.shape)
            _kernels.learning.forward(moves, group.slots, group.table, group.which, alpha, sums)
            log_sums = np.log(sums)
            for k, stretch in enumerate(group.stretches):
                logs[stretch.person] += log_sums[: len(stretch.which), k].sum()
            yield group, moves, alpha, sums


def _grouped(stretches: list[Stretch], slots: Slots | None, base: MarkovModel) -> _Group:
    longest, beside = len(stretches[0].which), _kernels.learning.BESIDE
    if slots is not None and base.step is not None:
        day = _DAY // base.step
        stretches = sorted(stretches, key=lambda stretch: stretch.phase % day)
    width = -(-len(stretches) // beside) * beside
    tables, count = [], 0
    which, ends = np.full((longest, width), -1), np.full(width, -1)
    matrices = np.empty((longest - 1, width), dtype=np.int64)
    for k, stretch in enumerate(stretches):
        which[: len(stretch.which), k] = np.where(stretch.which < 0, -1, stretch.which + count)
        matrices[:, k:] = slots_of(slots, stretch.phase, longest - 1, base.step)[:, None]
        ends[k] = len(stretch.which) - 1
        tables.append(stretch.table)
        count += len(stretch.table)
    which[which < 0] = count
    table = np.concatenate([*tables, np.ones((1, base.n_states))])
    return _Group(stretches, matrices, table, which, ends)
