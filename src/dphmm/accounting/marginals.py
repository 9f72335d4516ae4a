"""The chain that an adversary believes in, looked at from one time: where it can be, and where it came from.

Proof: docs/proofs/temporal-leakage.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, Chain, FloatArray

#: What to do about a chain with a jump where rows of N entries would have to be compared.
NO_LEAKAGE = "a model made with --jump 0, or a promise over paths (--path-epsilon), which needs no leakage"
#: The smallest positive float: what is possible stays possible.
_LEAST = 5e-324
#: Sums of rows that are further from 1 are divided out.
_ROUNDING = 2.0**-44


@dataclass(frozen=True, eq=False)
class Marginal:
    """Where a chain can be at one time: ``support`` (N,), and the log of each state's probability (N,)."""

    log_probability: FloatArray
    support: BoolArray

    def moved(self, columns: Any, share: FloatArray) -> Marginal:
        """One move later, by the matrix compressed by columns; ``share`` (N,) is that of a jump, (0,) where none is."""
        from dphmm._kernels.markov import predict

        matrix = (columns.indptr, columns.indices, columns.data)
        return Marginal(*predict(*matrix, share, self.log_probability, self.support))


def marginal_of(probabilities: FloatArray) -> Marginal:
    """The marginal with these probabilities (N,)."""
    with np.errstate(divide="ignore"):
        return Marginal(np.log(probabilities), np.asarray(probabilities) > 0)


class Course:
    """The marginals of the steps t = 1, 2, ... of a chain, and the moves between them in both directions.

    beside_jump : take a chain with a jump, too. Marginals are of the whole chain then, and ``forward`` and ``backward``
        of its moves given that they are no jumps; of what jumped, ``jumped`` says how much that is.

    Raises InvalidInput for what is no chain, and for one with a jump where that was not asked for.
    """

    def __init__(self, chain: Chain, *, beside_jump: bool = False) -> None:
        if not all(hasattr(chain, name) for name in ("initial", "start", "transition_at", "time_homogeneous")):
            raise InvalidInput("model", type(chain).__name__, "a Markov model: the past needs its initial distribution")
        self._jump = getattr(chain, "jump", None)
        if self._jump is not None and not beside_jump:
            raise InvalidInput("model", f"a jump of {self._jump.rate:g}, for which leakage is not computed", NO_LEAKAGE)
        self._chain = chain
        self._share: FloatArray = np.zeros(0) if self._jump is None else self._jump.share
        self._share.setflags(write=False)
        self._columns: Any = None

    @property
    def n_states(self) -> int:
        return len(self._chain.initial)

    @property
    def is_homogeneous(self) -> bool:
        """Whether every move has the same matrix."""
        return bool(self._chain.time_homogeneous)

    def structure(self, steps: int) -> Any:
        """A csr matrix with an entry wherever some move between the first ``steps`` steps has one."""
        if self._chain.time_homogeneous or steps < 2:
            return self.forward(2)
        return sparse.csr_array(sum(self.forward(t) for t in range(2, steps + 1)))

    def marginals(self, steps: int) -> Iterator[Marginal]:
        """Of t = 1 .. steps."""
        now = marginal_of(self._chain.initial)
        if self._chain.start == "before":
            now = self._after(now, 1)
        for t in range(1, steps + 1):
            if t > 1:
                now = self._after(now, t)
            yield now

    def forward(self, t: int) -> Any:
        """The csr matrix of the move from t - 1 to t."""
        if self._jump is not None:
            return self._chain.matrix_at(t)  # type: ignore[attr-defined]
        return self._chain.transition_at(t)

    def jumped(self, now: Marginal) -> FloatArray | None:
        """Of each state (N,), at a step with this marginal, the chance that it was jumped into; None without a jump."""
        if self._jump is None:
            return None
        with np.errstate(over="ignore"):
            return np.minimum(1.0, np.exp(np.log(self._share) - now.log_probability))

    def backward(self, before: Marginal, t: int) -> Any:
        """Pr(s_{t-1} = b | s_t = a) as a csr matrix (a, b), from the marginal of t - 1; impossible a have no row."""
        return reversed_columns(self._columns_at(t), before)

    def _after(self, now: Marginal, t: int) -> Marginal:
        columns = self._columns_at(t)
        if self._jump is not None:
            columns = columns * self._jump.stays
        return now.moved(columns, self._share)

    def _columns_at(self, t: int) -> Any:
        if self._columns is None or not self._chain.time_homogeneous:
            self._columns = self.forward(t).tocsc()
        return self._columns


def compressed(transition: Any) -> Any:
    """A transition matrix, or a model's, as a csr_array of positive float64 entries; rows sum to 1, or are empty."""
    given = getattr(transition, "transition", transition)
    if not sparse.issparse(given):
        try:
            given = np.asarray(given, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("transition", type(transition).__name__, "a matrix of probabilities") from None
        if given.ndim != 2:
            raise InvalidInput("transition", f"an array of shape {given.shape}", "a matrix")
    matrix = sparse.csr_array(given, dtype=np.float64)
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    if not (np.isfinite(matrix.data).all() and (matrix.data > 0).all()):
        raise InvalidInput("transition", "a negative, infinite or missing entry", "probabilities")
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    wrong = (sums > 0) & (np.abs(sums - 1) > 1e-9)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput("transition", f"row {row} with sum {sums[row]:.12g}", "rows that sum to 1 within 1e-9")
    if (np.abs(sums[sums > 0] - 1) > _ROUNDING).any():
        data = matrix.data / np.repeat(sums, np.diff(matrix.indptr))
        matrix = sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return matrix


def reversed_transition(transition: Any, marginal: FloatArray) -> Any:
    """Pr(s_{t-1} = b | s_t = a) = marginal[b] M[b, a] / (marginal M)[a] as a csr matrix (a, b).

    ``marginal`` (N,): the law of s_{t-1}. Rows of states that s_t cannot be are empty. The same for every t only if
    ``marginal`` is stationary.
    """
    matrix = compressed(transition)
    given = np.asarray(marginal, dtype=np.float64)
    if given.shape != (matrix.shape[0],) or not (given >= 0).all() or abs(float(given.sum()) - 1) > 1e-9:
        expected = f"{matrix.shape[0]} probabilities with sum 1"
        raise InvalidInput("marginal", f"an array of shape {given.shape}", expected)
    return reversed_columns(matrix.tocsc(), marginal_of(given))


def reversed_columns(columns: Any, before: Marginal) -> Any:
    """`reversed_transition` from compressed columns. In logs: a state may be far rarer than a float can say."""
    n = columns.shape[1]
    known = before.support[columns.indices]
    arrived = np.repeat(np.arange(n), np.diff(columns.indptr))[known]
    left = columns.indices[known]
    weights = before.log_probability[left] + np.log(columns.data[known])
    counts = np.bincount(arrived, minlength=n)
    starts = np.concatenate([[0], np.cumsum(counts)])
    present = np.flatnonzero(counts)
    if len(present):
        weights -= np.repeat(np.maximum.reduceat(weights, starts[present]), counts[present])
        shares = np.maximum(np.exp(weights), _LEAST)
        shares = np.maximum(shares / np.repeat(np.add.reduceat(shares, starts[present]), counts[present]), _LEAST)
    else:
        shares = weights
    matrix = sparse.csr_array((shares, left, starts), shape=(n, columns.shape[0]))
    matrix.sort_indices()
    matrix.has_canonical_format = True
    return matrix
