"""A Markov chain of tuples: one person's states over time, with its start, homogeneous or not.

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, TypeGuard

import numpy as np
from scipy import sparse
from scipy.sparse import csgraph

from dphmm.dependent._kernel import LEAST, Kernel, equal_rows, law, stochastic, too_rare
from dphmm.dependent._lags import LagCurves
from dphmm.dependent._reversals import Reversals
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.types import BoolArray, FloatArray

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
        """How many tuples depend on each other."""
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
        """Which values D_i can have, by structure and not by floats."""
        at: BoolArray = self._supports[0 if self.stationary else i]
        return at

    def kernel(self, i: int, j: int) -> Kernel:
        """The law of D_j given D_i, for j next to i."""
        if j == i + 1:
            return self._onward(i)
        if j != i - 1:
            raise InvalidInput("j", j, f"a neighbour of tuple {i}")
        return self._reversed(j)

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
        """What later and earlier tuples say about one, of a stationary chain."""
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

    def _reversed(self, t: int) -> Kernel:
        """From D_{t+1} back to D_t."""
        if not self._backward:
            self._backward = self._all_reversed()
        return self._backward[0 if self.stationary else t]

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
        """For how many tuples after ``since`` the marginals that a reversed kernel is made of stay as they are."""
        found, at_once = 0, 1
        while since + found + 1 < steps:
            end = min(since + found + 1 + at_once, steps)
            moved = self._moved(since, since + found + 1, end)
            if moved.any():
                return found + int(np.argmax(moved))
            found, at_once = found + len(moved), 2 * at_once
        return found

    def _moved(self, since: int, first: int, end: int) -> BoolArray:
        """Where a marginal from ``first`` to before ``end``, or the one after it, is not that of ``since`` any more."""
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
        """The law of D_1, which values it can have, and whether all tuples have that law."""
        if start is None and isinstance(transition, MarkovModel):
            own = transition.initial
            if transition.start == "before":
                return own @ self._matrices[0], np.asarray((self._matrices[0][own > 0] > 0).any(axis=0)), False
            return own, own > 0, False
        if start is None or (isinstance(start, str) and start == "stationary"):
            if not self.homogeneous:
                raise InvalidInput("start", start, "the law of the first tuple: there are several matrices")
            return stationary_law(self._matrices[0]), closed_class(self._matrices[0]), True
        if isinstance(start, str):
            raise InvalidInput("start", start, '"stationary", or a probability for each value')
        given = law(start, self.n_values, "start")
        return given, given > 0, False

    def _walk(self, first: FloatArray, possible: BoolArray) -> tuple[FloatArray, BoolArray]:
        steps = 1 if self.stationary else self.n
        if steps * self.n_values > LARGEST:
            came = f"{steps} tuples of {self.n_values} values"
            raise InvalidInput("length", came, f"a stationary start, or at most {LARGEST} probabilities in all")
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
    found = np.zeros(len(matrix))
    found[states] = _eliminated(matrix[np.ix_(states, states)].copy())
    if not np.isfinite(found).all():
        raise InvalidInput("start", "stationary", "a law that floats can hold: say the law of the first tuple")
    return found


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
