"""A Markov chain of tuples, and kernels: the distribution of one tuple given the value of a neighbour.

A `Kernel` is a matrix, the rows that are possible, and a bound on the error of its entries; trees have kernels too.
`Reversals` holds the backward kernels of a homogeneous chain whose marginals move: one kernel for each tuple.
`LagCurves` are the leakage curves of a stationary chain, one for each distance in time between two tuples.

Proofs: docs/proofs/dependent-markov.md, docs/proofs/dependent-reversals.md, docs/proofs/dependent-dpm.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, groupby, pairwise
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse import csgraph

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.accounting.leakage_step import FAR, Corners, LeakageCurve, Scan
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.markov.stochastic import refuse_secrets
from dphmm.types import BoolArray, FloatArray

_TOLERANCE = 1e-9
#: Probabilities below this are too near to underflow for their quotients to mean anything.
LEAST = 1e-280


@dataclass(frozen=True, eq=False)
class Kernel:
    """``matrix`` (k, m): rows are laws given the k values; ``possible`` (k,): values of positive probability.

    ``error`` bounds the relative error of the entries in possible rows. A ``stand_in`` is not the law itself, which
    floats cannot hold, but loses at least as much. ``often``: True if its curve is asked for more than a few times.
    """

    matrix: FloatArray
    possible: BoolArray
    error: float = 0.0
    stand_in: bool = False
    often: bool = True

    @property
    def law(self) -> FloatArray:
        """The matrix (k, m) of the law itself: a stand-in bounds losses of all values, not those that a query sees."""
        if self.stand_in:
            raise InvalidInput("model", "chances below 1e-280", "a model whose chances floats can hold")
        return self.matrix

    @cached_property
    def curve(self) -> LeakageCurve | Scan:
        """The growth of a loss along this dependence."""
        if self.often:
            return LeakageCurve.of(self.matrix, self.possible, self.error)
        return Scan(self.matrix, self.possible, self.error)


def too_rare(together: FloatArray, kernel: FloatArray, before: BoolArray, after: FloatArray) -> bool:
    """True if a reversed kernel would be made of numbers near underflow.

    ``together`` (k, m): P(D_i, D_j), of a ``kernel`` and a law with values possible as in ``before`` (k,). ``after``:
    the probabilities of what is possible for D_j.
    """
    happens = before[:, None] & (kernel > 0)
    return bool(min(together[happens].min(), after.min()) < LEAST)


def equal_rows(rows: FloatArray) -> bool:
    """True if all rows (k, m) are the same: the next value does not depend on the last."""
    return bool((rows == rows[0]).all())


def stochastic(kernel: Any, field_name: str) -> FloatArray:
    """A dense matrix of laws (k, m), rows summing to 1 within 1e-9 and divided by their sum once."""
    if hasattr(kernel, "toarray"):
        kernel = kernel.toarray()
    try:
        matrix = np.array(kernel, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(field_name, type(kernel).__name__, "a matrix of probabilities") from None
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InvalidInput(field_name, f"shape {matrix.shape}", "a matrix of probabilities, one row per value")
    wrong = ~np.isfinite(matrix) | (matrix < 0) | (matrix > 1 + _TOLERANCE)
    if wrong.any():
        i, j = np.argwhere(wrong)[0]
        raise InvalidInput(f"{field_name}[{i}, {j}]", matrix[i, j].item(), "a probability from 0 to 1")
    sums = matrix.sum(axis=1)
    off = np.abs(sums - 1.0) > _TOLERANCE
    if off.any():
        row = int(np.argmax(off))
        raise InvalidInput(f"{field_name}[{row}]", f"row sum {sums[row].item()!r}", "a sum of 1 (within 1e-9)")
    divided: FloatArray = matrix / sums[:, None]
    divided.setflags(write=False)
    return divided


def law(given: Any, k: int, field_name: str) -> FloatArray:
    """One distribution over k values."""
    try:
        values = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(field_name, type(given).__name__, f"{k} probabilities") from None
    if values.shape != (k,):
        raise InvalidInput(field_name, f"shape {values.shape}", f"({k},): one probability per value")
    settled: FloatArray = stochastic(values[None], field_name)[0]
    return settled


@dataclass(frozen=True, eq=False)
class Reversals:
    """The laws of every tuple given the one after it, not as matrices but as the parts that make them.

    ``columns``: the transition matrix (n, n), by columns. ``laws``, ``possible`` (T, n): of the tuples. ``kinds``,
    ``falls``, ``errors`` (T − 1,): of the reversed kernels, see the kernel `carry_back`.
    """

    columns: sparse.csc_array
    laws: FloatArray
    possible: BoolArray
    kinds: NDArray[np.int8]
    falls: FloatArray
    errors: FloatArray

    @classmethod
    def of(cls, matrix: FloatArray, laws: FloatArray, possible: BoolArray, drift: float) -> Reversals:
        """``drift``: a bound on the relative error that one step adds to the ``laws``."""
        least = np.where(matrix > 0, matrix, np.inf).min(axis=1)
        kinds, falls = _kernels.leakage.movements(laws, possible, least, LEAST)
        kinds[(kinds == _kernels.leakage.SCANNED) & _telling_nothing(matrix, possible[:-1])] = _kernels.leakage.NOTHING
        errors = drift * np.arange(1.0, len(laws))
        return cls(sparse.csc_array(matrix), laws, possible, kinds, falls, errors)

    def carried(self, single: FloatArray) -> FloatArray:
        """The largest loss of each tuple (T,) through the one before it, from losses ``single`` (T,) of one alone."""
        carried = np.zeros(len(self.laws))
        by = self.columns
        _kernels.leakage.carry_back(
            by.indptr, by.indices, by.data, self.laws, self.possible, self.kinds, self.falls, self.errors,
            single, carried,
        )  # fmt: skip
        return carried


def _telling_nothing(matrix: FloatArray, possible: BoolArray) -> BoolArray:
    """True where a tuple (T − 1,) has a next one with the same distribution after every possible value."""
    same = np.zeros(len(possible), dtype=np.bool_)
    changes = np.r_[0, 1 + np.flatnonzero((possible[1:] != possible[:-1]).any(axis=1)), len(possible)]
    of: dict[bytes, bool] = {}
    for first, end in pairwise(changes):
        key = possible[first].tobytes()
        if key not in of:
            of[key] = equal_rows(matrix[possible[first]])
        same[first:end] = of[key]
    return same


def laws_by_lag(matrix: FloatArray, possible: BoolArray, start: FloatArray) -> Iterator[FloatArray]:
    """Means (k, m) of ``start`` (n, m) after 1, 2, … moves by ``matrix`` (n, n), given each possible value."""
    rows = start
    while True:
        rows = matrix @ rows
        yield rows[possible]


class LagCurves:
    """L(α) of the laws after 1, 2, … moves by ``matrix`` (n, n), given each ``possible`` value.

    Of each law is kept what settles the next α, and not the law itself.
    """

    def __init__(self, matrix: FloatArray, possible: BoolArray) -> None:
        self._matrix, self._possible = matrix, possible
        self._corners: list[Corners] = []
        self._laws, self._rows = self._anew(), (0, matrix)

    def __call__(self, alpha: float) -> Iterator[float]:
        """L(alpha) at every lag from 1 on."""
        return (self.at(lag, alpha) for lag in count(1))

    def at(self, lag: int, alpha: float) -> float:
        """L(alpha) of the law after ``lag`` moves, as computed; alpha may be infinite."""
        if alpha <= 0:
            return 0.0
        if FAR < alpha < math.inf:
            return min(alpha, self.at(lag, FAR) + (alpha - FAR), self.at(lag, math.inf))
        while len(self._corners) < lag:
            self._corners.append(Corners())
        corners, s, e = self._corners[lag - 1], -math.expm1(-alpha), math.exp(-alpha)
        rho, corner, sure = corners.best(s, e)
        if not sure:
            rho, corner = self._scanned(lag, s, e, (rho, *corner))
            corners.learn(rho, corner)
        return min(alpha, math.log1p(rho))

    def _scanned(
        self, lag: int, s: float, e: float, known: tuple[float, float, float]
    ) -> tuple[float, tuple[float, float]]:
        rows = self._law(lag)
        rho, gain, below = _kernels.leakage.worst_of_all(rows, rows.T.copy(), s, e, known)
        return float(rho), (float(gain), float(below))

    def _law(self, lag: int) -> FloatArray:
        if self._rows[0] > lag:
            self._laws, self._rows = self._anew(), (0, self._matrix)
        while self._rows[0] < lag:
            self._rows = self._rows[0] + 1, next(self._laws)
        return self._rows[1]

    def _anew(self) -> Iterator[FloatArray]:
        return laws_by_lag(self._matrix, self._possible, np.eye(len(self._matrix)))


_UNIT = 2.0**-53
#: A reversed kernel is used again while the marginals it is made of move by less than this (its error is counted).
_SETTLED = 1e-10
#: Probabilities that the laws of all tuples may have together: a gigabyte.
LARGEST = 2**27


class Chain:
    """D_1 → D_2 → … → D_n, each from the one before.

    ``transition``: a MarkovModel, one matrix, or a list of n − 1 matrices, the t-th of them from D_t to D_{t+1}.
    ``length``: n (known from a list). ``start``: the law of D_1 (k,), or "stationary", or None: a model's own
    (after its first move, where the model starts "before"), and the stationary law of a matrix.

    The chain with its start is taken as public, and as all that an adversary knows about the tuples.
    """

    def __init__(self, transition: Any, length: int | None = None, *, start: Any = None) -> None:
        self._matrices, self.n = _matrices(transition, length)
        self.n_values = len(self._matrices[0])
        self.homogeneous = len(self._matrices) == 1
        first, possible, self.stationary = self._first(transition, start)
        self._marginals, self._supports = self._walk(first, possible)
        self._forward: dict[tuple[int, bytes], Kernel] = {}
        self._backward: list[Kernel] = []
        self._stretches: dict[int, list[tuple[Kernel, int, int]]] = {}

    @property
    def n_tuples(self) -> int:
        """The number of tuples that depend on each other."""
        return self.n

    @property
    def is_forest(self) -> bool:
        """A chain has no loops."""
        return True

    def neighbours(self, i: int) -> list[int]:
        """The tuples next to i: given D_i, what lies behind one of them depends on no other."""
        return [j for j in (i - 1, i + 1) if 0 <= j < self.n]

    def marginal(self, i: int) -> FloatArray:
        """The law of D_i."""
        at: FloatArray = self._marginals[0 if self.stationary else i]
        return at

    def possible(self, i: int) -> BoolArray:
        """True where D_i can have the value, by structure and not by floats."""
        at: BoolArray = self._supports[0 if self.stationary else i]
        return at

    def kernel(self, i: int, j: int) -> Kernel:
        """The law of D_j given D_i, for j next to i."""
        if j == i + 1:
            return self._onward(i)
        if j != i - 1:
            raise InvalidInput("j", j, f"a neighbour of tuple {i}")
        if not self._backward:
            self._backward = self._all_reversed()
        return self._backward[0 if self.stationary else j]

    def stretches(self, step: int) -> list[tuple[Kernel, int, int]]:
        """Runs (kernel, first, last) of tuples that depend through one kernel on the tuple before them.

        Tuples are taken in order, ``step`` 1 or -1, all but the first.
        """
        if step not in self._stretches:
            order = range(1, self.n) if step > 0 else range(self.n - 2, -1, -1)
            kernels = ((i, self.kernel(i, i - step)) for i in order)
            runs = [[*run] for _, run in groupby(kernels, key=lambda one: id(one[1]))]
            self._stretches[step] = [(run[0][1], run[0][0], run[-1][0]) for run in runs]
        return self._stretches[step]

    @cached_property
    def reversals(self) -> Reversals | None:
        """All reversed kernels at once, where each tuple may have its own.

        None where one reversed kernel serves all (a stationary chain), and where the moves have several matrices.
        """
        if self.stationary or not self.homogeneous or self.n < 2:
            return None
        return Reversals.of(self._matrices[0], self._marginals, self._supports, self._drift())

    @property
    def moves(self) -> tuple[FloatArray, FloatArray]:
        """The laws of the next and of the previous tuple given one (k, k), of a stationary chain."""
        onward = np.where(self.possible(0)[:, None], self.matrix(0), 0.0)
        return onward, self.kernel(1, 0).law if self.n > 1 else onward

    @cached_property
    def lags(self) -> tuple[LagCurves, LagCurves]:
        """The curves of later and earlier tuples about one, by their lag, of a stationary chain."""
        onward, back = self.moves
        return LagCurves(onward, self.possible(0)), LagCurves(back, self.possible(0))

    def matrix(self, t: int) -> FloatArray:
        """The matrix from D_t to D_{t+1}, t from 0."""
        return self._matrices[0 if self.homogeneous else t]

    def __repr__(self) -> str:
        kind = "stationary " if self.stationary else "" if self.homogeneous else "time-inhomogeneous "
        return f"{kind}Markov chain of {self.n} tuples with {self.n_values} values"

    def _onward(self, t: int) -> Kernel:
        possible = self.possible(t)
        key = (0 if self.homogeneous else t, possible.tobytes())
        if key not in self._forward:
            self._forward[key] = Kernel(self.matrix(t), possible, often=self.homogeneous)
        return self._forward[key]

    def _all_reversed(self) -> list[Kernel]:
        made: list[Kernel] = []
        drift = self._drift()
        steps = 1 if self.stationary else self.n - 1
        while len(made) < steps:
            t = len(made)
            # A kernel of a homogeneous chain may be used again, as late as the last step.
            kernel = self._one_reversed(t, drift * (self.n if self.homogeneous else t + 1))
            made += [kernel] * (1 + (self._settled_after(t, steps) if self.homogeneous else 0))
        return made

    def _one_reversed(self, t: int, error: float) -> Kernel:
        before, after = self.marginal(t), self.marginal(min(t + 1, self.n - 1))
        possible = self.possible(min(t + 1, self.n - 1))
        together = before[:, None] * self.matrix(t)
        if too_rare(together, self.matrix(t), self.possible(t), after[possible]):
            # Nothing can be said of such quotients, so nothing is: disjoint rows let a loss pass whole.
            return Kernel(np.eye(self.n_values), possible, stand_in=True)
        if equal_rows(self.matrix(t)[self.possible(t)]):
            return Kernel(np.tile(before, (self.n_values, 1)), possible)
        back = np.zeros((self.n_values, self.n_values))
        back[possible] = together.T[possible] / after[possible, None]
        moved = 4 * _SETTLED * self.homogeneous * (not self.stationary)
        return Kernel(back, possible, error + moved, often=self.stationary)

    def _drift(self) -> float:
        """A bound on the relative error that one step adds to the marginals."""
        if not self.stationary:
            return 2 * (self.n_values + 2) * _UNIT
        here = self.marginal(0)
        there = here @ self.matrix(0)
        used = here > 0
        return float(np.abs(there[used] / here[used] - 1.0).max()) + 2 * (self.n_values + 2) * _UNIT

    def _settled_after(self, since: int, steps: int) -> int:
        """The number of tuples after ``since`` for which the marginals of a reversed kernel stay as they are."""
        settled, at_once = 0, 1
        while since + settled + 1 < steps:
            end = min(since + settled + 1 + at_once, steps)
            moved = self._moved(since, since + settled + 1, end)
            if moved.any():
                return settled + int(np.argmax(moved))
            settled, at_once = settled + len(moved), 2 * at_once
        return settled

    def _moved(self, since: int, first: int, end: int) -> BoolArray:
        """True where a marginal from ``first`` to before ``end``, or the next, is not that of ``since`` any more."""
        moved = np.zeros(end - first, dtype=np.bool_)
        for after in (0, 1):
            used, law = self.possible(since + after), self.marginal(since + after)
            there = slice(first + after, end + after)
            laws = self._marginals[there][:, used]
            moved |= (self._supports[there] != used).any(axis=1)
            moved |= (laws < LEAST).any(axis=1) | bool((law[used] < LEAST).any())
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                moved |= ~(np.abs(laws / law[used] - 1.0) <= _SETTLED).all(axis=1)
        return moved

    def _first(self, transition: Any, start: Any) -> tuple[FloatArray, BoolArray, bool]:
        """The law of D_1, the mask of its possible values, and True if all tuples have that law."""
        if start is None and isinstance(transition, MarkovModel):
            initial = transition.initial
            if transition.start == "before":
                return initial @ self._matrices[0], np.asarray((self._matrices[0][initial > 0] > 0).any(axis=0)), False
            return initial, initial > 0, False
        if start is None or (isinstance(start, str) and start == "stationary"):
            if not self.homogeneous:
                raise InvalidInput("start", start, "the law of the first tuple: there are several matrices")
            return stationary_law(self._matrices[0]), closed_class(self._matrices[0]), True
        if isinstance(start, str):
            raise InvalidInput("start", start, '"stationary", or a probability for each value')
        start_law = law(start, self.n_values, "start")
        return start_law, start_law > 0, False

    def _walk(self, first: FloatArray, possible: BoolArray) -> tuple[FloatArray, BoolArray]:
        steps = 1 if self.stationary else self.n
        if steps * self.n_values > LARGEST:
            got = f"{steps} tuples of {self.n_values} values"
            raise InvalidInput("length", got, f"a stationary start, or at most {LARGEST} probabilities in all")
        marginals = np.empty((steps, self.n_values))
        supports = np.empty((steps, self.n_values), dtype=np.bool_)
        marginals[0], supports[0] = first, possible
        for t in range(1, steps):
            marginals[t] = marginals[t - 1] @ self.matrix(t - 1)
            stays = self.homogeneous and t > 1 and np.array_equal(supports[t - 1], supports[t - 2])
            supports[t] = supports[t - 1] if stays else (self.matrix(t - 1)[supports[t - 1]] > 0).any(axis=0)
        return marginals, supports


def stationary_law(matrix: FloatArray) -> FloatArray:
    """The one stationary law, by the elimination of Grassmann, Taksar and Heyman: no subtractions, exact entrywise.

    Raises InvalidInput where there are several. What is too rare for floats is 0 here, and in `closed_class` all the
    same.
    """
    states = np.flatnonzero(closed_class(matrix))
    stationary = np.zeros(len(matrix))
    stationary[states] = _eliminated(matrix[np.ix_(states, states)].copy())
    if not np.isfinite(stationary).all():
        raise InvalidInput("start", "stationary", "a law that floats can hold: say the law of the first tuple")
    return stationary


def closed_class(matrix: FloatArray) -> BoolArray:
    """The values that a stationary chain can have (k,): those of the one class that no move leaves."""
    structure = sparse.csr_array(matrix > 0)
    _, component = csgraph.connected_components(structure, directed=True, connection="strong")
    leaves = {int(component[i]) for i, j in zip(*structure.nonzero(), strict=True) if component[i] != component[j]}
    closed = sorted(set(component.tolist()) - leaves)
    if len(closed) != 1:
        raise InvalidInput("start", "stationary", f"a law: the chain has {len(closed)} closed classes")
    return np.asarray(component == closed[0])


def _eliminated(block: FloatArray) -> FloatArray:
    n = len(block)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        for k in range(n - 1, 0, -1):
            block[:k, k] /= block[k, :k].sum()
            block[:k, :k] += np.outer(block[:k, k], block[k, :k])
        weights = np.zeros(n)
        weights[0] = 1.0
        for k in range(1, n):
            weights[k] = weights[:k] @ block[:k, k]
        settled: FloatArray = weights / weights.sum()
    return settled


def _matrices(transition: Any, length: int | None) -> tuple[list[FloatArray], int]:
    if isinstance(transition, MarkovModel):
        refuse_secrets(transition, "a chain of tuples")
        transition = transition.transition
    if _is_list(transition):
        matrices = [stochastic(matrix, f"transition[{t}]") for t, matrix in enumerate(transition)]
        n = len(matrices) + 1
        if length not in (None, n):
            raise InvalidInput("length", length, f"{n} tuples: one more than there are matrices")
    else:
        matrices, n = [stochastic(transition, "transition")], _length(length)
    for t, matrix in enumerate(matrices):
        if matrix.shape != matrices[0].shape or matrix.shape[0] != matrix.shape[1]:
            raise InvalidInput(f"transition[{t}]", f"shape {matrix.shape}", "square matrices of one size")
    return matrices, n


def _is_list(transition: Any) -> TypeGuard[Sequence[Any]]:
    if isinstance(transition, np.ndarray):
        return transition.ndim == 3
    if not isinstance(transition, (list, tuple)) or not transition:
        return False
    return hasattr(transition[0], "toarray") or np.ndim(transition[0]) == 2


def _length(length: int | None) -> int:
    if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or length < 1:
        raise InvalidInput("length", length, "how many tuples there are, at least 1")
    return int(length)
