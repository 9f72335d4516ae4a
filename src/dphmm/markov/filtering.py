"""What the public knows of a state: log-probabilities, and beside them the support as a set.

The two are kept apart on purpose (docs/theory.md (a)). The support moves by the structure of the
model and by what a release excludes, never by ``p > 0``: on a corridor of 1001 cells a float prior loses a
possible state within 60 steps and over 900 of them within 500, the true one possibly among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dphmm._checks import state_mask
from dphmm.errors import InvalidInput
from dphmm.markov.model import MarkovModel
from dphmm.types import BoolArray, FloatArray, States

#: A prediction that moves no probability by more than this has settled; looked at once in so many steps.
SETTLED = 1e-10
_CHECK_EVERY = 8


@dataclass(frozen=True, eq=False)
class Belief:
    """A distribution over N states that never loses a possible one.

    log_probability : (N,) natural logs, finite exactly on the support, -inf elsewhere.
    support : (N,) bool, not empty.

    Raises InvalidInput if the two disagree.
    """

    log_probability: FloatArray
    support: BoolArray

    def __post_init__(self) -> None:
        logs = np.array(self.log_probability, dtype=np.float64)
        support = np.array(self.support)
        if support.dtype != np.bool_ or support.ndim != 1 or logs.shape != support.shape:
            came = f"{support.dtype} {support.shape} for logs {logs.shape}"
            raise InvalidInput("support", came, "booleans, one per state")
        if not support.any():
            raise InvalidInput("support", "no state", "at least one possible state")
        if not ((np.isfinite(logs) == support) & ((logs == -np.inf) | support)).all():
            raise InvalidInput("log_probability", "logs that disagree with the support", "finite exactly on it")
        for name, array in (("log_probability", logs), ("support", support)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    @classmethod
    def initial(cls, model: MarkovModel) -> Belief:
        """The model's initial distribution: of t = 0 if the model starts "before", of t = 1 if "at"."""
        support = model.support_at_start
        logs = np.full(model.n_states, -np.inf)
        logs[support] = np.log(model.initial[support])
        return cls(logs, support)

    @property
    def n_states(self) -> int:
        """N, the number of states."""
        return len(self.support)

    @property
    def probability(self) -> FloatArray:
        """(N,) probabilities; below about 1e-324 a possible state shows 0.0, so ask ``support`` instead."""
        return np.exp(self.log_probability)

    def predict(self, model: MarkovModel, t: int) -> Belief:
        """The belief about t from this one about t - 1: log(p M), on exactly what the support can reach."""
        from dphmm._kernels.markov import predict

        if model.n_states != self.n_states:
            raise InvalidInput("model", f"{model.n_states} states", f"the belief's {self.n_states}")
        columns = model.predecessors_at(t)
        logs, reached = predict(columns.indptr, columns.indices, columns.data, self.log_probability, self.support)
        return Belief(logs, reached)

    def predict_many(self, model: MarkovModel, t: int, steps: int) -> Belief:
        """The belief about t + steps - 1 from this one about t - 1: ``predict`` again and again.

        Where the matrix is always the same it stops once nothing moves: the support exactly, and no probability by
        more than SETTLED in a step. Only estimates and δ-sets can notice.
        """
        from dphmm._kernels.markov import predict

        logs, support = self.log_probability, self.support
        for passed in range(steps):
            columns = model.predecessors_at(t + passed)
            following, reached = predict(columns.indptr, columns.indices, columns.data, logs, support)
            check = model.time_homogeneous and passed % _CHECK_EVERY == 0
            settled = check and bool(np.array_equal(reached, support)) and _largest_move(following, logs) <= SETTLED
            logs, support = following, reached
            if settled:
                break
        return Belief(logs, support)

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
        if likelihood.shape != self.support.shape:
            raise InvalidInput("log_likelihood", f"shape {likelihood.shape}", f"({self.n_states},)")
        remaining = self.support & state_mask(support, self.n_states, "support")
        if not remaining.any():
            raise InvalidInput("support", "a set that excludes every possible state", "one that leaves some")
        _check_likelihood(likelihood, remaining)
        joint = self.log_probability[remaining] + likelihood[remaining]
        logs = np.full(self.n_states, -np.inf)
        # Likelihoods may all be far below the smallest double: only their ratios matter.
        joint -= joint.max()
        logs[remaining] = joint - np.log(np.exp(joint).sum())
        return Belief(logs, remaining)


def _largest_move(logs: FloatArray, before: FloatArray) -> float:
    return float(np.max(np.abs(np.exp(logs) - np.exp(before))))


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
