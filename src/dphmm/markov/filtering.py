"""What the public knows of a state: probabilities, and beside them the support as a set.

The two are kept apart on purpose (docs/theory.md (a)). The support moves by the structure of the
model and by what a release excludes, never by ``p > 0``: on a corridor of 1001 cells a float prior loses a
possible state within 60 steps and over 900 of them within 500, the true one possibly among them.

So probabilities are plain floats as long as none of a possible state is too small to be trusted, and
log-probabilities as soon as one is.

Proof: docs/proofs/support.md.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dphmm import _kernels
from dphmm._checks import state_mask
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.types import BoolArray, FloatArray, States

#: A prediction that moves no probability by more than this has settled; looked at once in so many steps.
SETTLED = 1e-10
_CHECK_EVERY = 8


class Belief:
    """A distribution over N states that never loses a possible one. Immutable.

    log_probability : (N,) natural logs, finite exactly on the support, -inf elsewhere.
    support : (N,) bool, not empty.

    Raises InvalidInput if the two disagree.
    """

    __slots__ = ("_logs", "_row", "_support")
    _logs: FloatArray | None
    _row: FloatArray | None
    _support: BoolArray

    def __init__(self, log_probability: FloatArray, support: BoolArray) -> None:
        logs = np.array(log_probability, dtype=np.float64)
        possible = np.array(support)
        if possible.dtype != np.bool_ or possible.ndim != 1 or logs.shape != possible.shape:
            came = f"{possible.dtype} {possible.shape} for logs {logs.shape}"
            raise InvalidInput("support", came, "booleans, one per state")
        if not possible.any():
            raise InvalidInput("support", "no state", "at least one possible state")
        if not ((np.isfinite(logs) == possible) & ((logs == -np.inf) | possible)).all():
            raise InvalidInput("log_probability", "logs that disagree with the support", "finite exactly on it")
        self._support = _frozen(possible)
        self._logs = _frozen(logs)
        self._row = _row_of(logs, possible)

    @classmethod
    def of_row(cls, row: FloatArray, support: BoolArray) -> Belief:
        """The belief of a row of floats (N,) as the kernels make it: 0 off the support, nowhere on it too small.

        The arrays become the belief's own.
        """
        row.setflags(write=False)
        support.setflags(write=False)
        belief = cls.__new__(cls)
        belief._row, belief._support, belief._logs = row, support, None
        return belief

    @classmethod
    def initial(cls, model: MarkovModel) -> Belief:
        """The model's initial distribution: of t = 0 if the model starts "before", of t = 1 if "at"."""
        support = model.support_at_start
        return cls(_logs_of(model.initial, support), support)

    @property
    def support(self) -> BoolArray:
        """The possible states (N,)."""
        return self._support

    @property
    def log_probability(self) -> FloatArray:
        """(N,) natural logs, -inf off the support."""
        if self._logs is None:
            assert self._row is not None
            self._logs = _frozen(_logs_of(self._row, self._support))
        return self._logs

    @property
    def row(self) -> FloatArray | None:
        """(N,) probabilities that floats hold in full; None where one of a possible state is too small for that."""
        return self._row

    @property
    def n_states(self) -> int:
        """N, the number of states."""
        return len(self._support)

    @property
    def probability(self) -> FloatArray:
        """(N,) probabilities; below about 1e-324 a possible state shows 0.0, so ask ``support`` instead."""
        return np.exp(self.log_probability) if self._row is None else self._row

    def predict(self, model: MarkovModel, t: int) -> Belief:
        """The belief about t from this one about t - 1: p M, on exactly what the support can reach."""
        n = self.n_states
        if model.n_states != n:
            raise InvalidInput("model", f"{model.n_states} states", f"the belief's {n}")
        matrix = model.predecessors_at(t).arrays
        if self._row is not None:
            row, reached = np.empty(n), np.empty(n, dtype=np.bool_)
            if _kernels.filter.predict(*matrix, self._row, self._support, row, reached):
                return Belief.of_row(row, reached)
        logs = _kernels.filter.predict_logs(*matrix, self.log_probability)
        return Belief(logs, logs > -np.inf)

    def predict_many(self, model: MarkovModel, t: int, steps: int) -> Belief:
        """The belief about t + steps - 1 from this one about t - 1: ``predict`` again and again.

        Where the matrix is always the same it stops once nothing moves: the support exactly, and no probability by
        more than SETTLED in a step. Only estimates and δ-sets can notice.
        """
        belief, done = self._moved(model, t, steps) if model.time_homogeneous else (self, 0)
        for passed in range(done, steps):
            following = belief.predict(model, t + passed)
            check = model.time_homogeneous and passed % _CHECK_EVERY == 0
            settled = check and _same_to(SETTLED, following, belief)
            belief = following
            if settled:
                break
        return belief

    def _moved(self, model: MarkovModel, t: int, steps: int) -> tuple[Belief, int]:
        """As far as floats go, and how many steps that is."""
        if self._row is None or steps < 1:
            return self, 0
        matrix = model.predecessors_at(t).arrays
        row, support = self._row.copy(), self._support.copy()
        spare = (np.empty_like(row), np.empty_like(support))
        done = _kernels.filter.predict_many(*matrix, row, support, steps, SETTLED, *spare)
        return Belief.of_row(row, support), done

    def condition(self, log_likelihood: Any, support: States = None) -> Belief:
        """The belief after an observation.

        Parameters
        ----------
        log_likelihood : (N,) log Pr(z | s) up to a constant; read on the remaining support only, finite there
        support : mask or state numbers that the observation does not exclude; None excludes nothing. Only
            this set excludes states: a likelihood of -inf may be a product that underflowed.

        Raises InvalidInput if nothing remains, or if a remaining state has no finite log-likelihood. Both
        follow from the published answer and the model, not from a true state.
        """
        likelihood = np.asarray(log_likelihood, dtype=np.float64)
        if likelihood.shape != self._support.shape:
            raise InvalidInput("log_likelihood", f"shape {likelihood.shape}", f"({self.n_states},)")
        remaining = self._support & state_mask(support, self.n_states, "support")
        if not remaining.any():
            raise InvalidInput("support", "a set that excludes every possible state", "one that leaves some")
        _check_likelihood(likelihood, remaining)
        joint = self.log_probability[remaining] + likelihood[remaining]
        logs = np.full(self.n_states, -np.inf)
        # Likelihoods may all be far below the smallest double: only their ratios matter.
        joint -= joint.max()
        logs[remaining] = joint - np.log(np.exp(joint).sum())
        return Belief(logs, remaining)

    def weighted(self, likelihood: FloatArray, support: BoolArray) -> Belief | None:
        """As ``condition``, with a likelihood (N,) in floats; None where floats cannot hold what comes out."""
        if self._row is None:
            return None
        posterior, remaining = np.empty(self.n_states), np.empty(self.n_states, dtype=np.bool_)
        if not _kernels.filter.condition(self._row, likelihood, self._support, support, posterior, remaining):
            return None
        return Belief.of_row(posterior, remaining)

    def __repr__(self) -> str:
        return f"Belief({int(self._support.sum())} of {self.n_states} states possible)"


def _frozen(array: Any) -> Any:
    array.setflags(write=False)
    return array


def _logs_of(row: FloatArray, support: BoolArray) -> FloatArray:
    logs = np.full(len(row), -np.inf)
    logs[support] = np.log(row[support])
    return logs


def _row_of(logs: FloatArray, support: BoolArray) -> FloatArray | None:
    """Probabilities as floats where they hold all of them, at any scale that a distribution can have."""
    possible = logs[support]
    fits = math.log(_kernels.filter.TRUSTED) < possible.min() and possible.max() <= 1.0
    return _frozen(np.exp(logs)) if fits else None


def _same_to(tolerance: float, one: Belief, other: Belief) -> bool:
    moved = np.max(np.abs(one.probability - other.probability))
    return bool(np.array_equal(one.support, other.support)) and float(moved) <= tolerance


def _check_likelihood(likelihood: FloatArray, remaining: BoolArray) -> None:
    wrong = remaining & ~np.isfinite(likelihood)
    if wrong[remaining].all():
        raise InvalidInput(
            "log_likelihood", "no finite value on the support", "the answer to be possible somewhere in it"
        )
    if wrong.any():
        state = int(np.argmax(wrong))
        expected = "a finite value on the support; what the answer excludes is named by `support`"
        raise InvalidInput(f"log_likelihood[{state}]", repr(likelihood[state].item()), expected)
