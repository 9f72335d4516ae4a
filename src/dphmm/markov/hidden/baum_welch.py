"""Baum-Welch: expected counts under the present parameters, then the parameters that those counts make likeliest.

``params`` says what is learned: any of "s" (initial), "t" (transition), "e" (emission). Priors are Dirichlet: the
posterior's mode is found, so a prior of 1 changes nothing. An initial or transition probability of 0 stays 0; a row
that nothing is expected in stays as it was.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dphmm._checks import one_of
from dphmm.errors import InvalidInput
from dphmm.markov.hidden.counting import Counter, Counts, csr
from dphmm.markov.hidden.observations import Observations
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.hidden.threads import on_one_thread
from dphmm.types import FloatArray

#: How the initial distribution is come by: learned like the rest, or always the stationary one of the transitions.
STARTS = ("free", "stationary")


@dataclass(frozen=True, eq=False)
class Priors:
    """Dirichlet parameters, numbers or arrays of the shape of what they are a prior of; 1 is none."""

    initial: Any = 1.0
    transition: Any = 1.0
    emission: Any = 1.0


@dataclass(eq=False)
class Monitor:
    """Log-likelihoods of the data, ``history``, each before the update that its iteration ended with."""

    tol: float
    n_iter: int
    verbose: bool = False
    history: list[float] = field(default_factory=list)

    @property
    def iter(self) -> int:
        """Iterations made."""
        return len(self.history)

    @property
    def converged(self) -> bool:
        """Whether the last iteration gained less than ``tol``, or all ``n_iter`` are made."""
        return self.iter == self.n_iter or (self.iter >= 2 and self.history[-1] - self.history[-2] < self.tol)

    def report(self, log_likelihood: float) -> None:
        """Note the log-likelihood of one more iteration."""
        gain = f"{log_likelihood - self.history[-1]:>+16.8f}" if self.history else ""
        self.history.append(log_likelihood)
        if self.verbose:
            print(f"{self.iter:>10d} {log_likelihood:>16.8f} {gain}".rstrip(), file=sys.stderr)


@on_one_thread
def expected_counts(
    parameters: Parameters, observed: Observations, weights: Any = None, *, checkpoint: bool | str = "auto"
) -> Counts:
    """Expected counts of sequences, each ``weights`` (n,) times.

    Raises InvalidInput naming sequence and position where a symbol is impossible under the model.
    """
    return Counter(observed, parameters.n_states, weights, checkpoint).count(parameters, parameters.initial)


@on_one_thread
def em(
    parameters: Parameters,
    observed: Observations,
    weights: Any = None,
    *,
    n_iter: int,
    tol: float,
    params: str = "ste",
    priors: Priors | None = None,
    start: str = "free",
    verbose: bool = False,
    checkpoint: bool | str = "auto",
) -> tuple[Parameters, Monitor]:
    """At most ``n_iter`` iterations from ``parameters``, until one gains less than ``tol``.

    With ``start="stationary"`` every sequence begins in the stationary distribution of the present transition matrix,
    which is then the initial one of the result. The update of the transitions takes no account of that, so the
    log-likelihood may fall a little in the end.
    """
    one_of(start, STARTS, "start")
    priors, monitor = priors or Priors(), Monitor(tol, n_iter, verbose)
    counter = Counter(observed, parameters.n_states, weights, checkpoint)
    for _ in range(n_iter):
        stationary = start == "stationary"
        initial = parameters.stationary if stationary else parameters.initial
        counts = counter.count(parameters, initial)
        parameters = updated(parameters, counts, params.replace("s", "") if stationary else params, priors)
        monitor.report(counts.log_likelihood)
        if monitor.converged:
            break
    if start == "stationary":
        parameters = Parameters(parameters.stationary, parameters.transition, parameters.emission)
    return parameters, monitor


def updated(parameters: Parameters, counts: Counts, params: str, priors: Priors) -> Parameters:
    """The likeliest parameters for expected counts; those not in ``params`` stay."""
    initial, transition, emission = parameters.initial, parameters.transition, parameters.emission
    if "s" in params:
        pseudo = _with_prior(counts.initial, priors.initial, "startprob_prior")
        initial = _rows(np.where(initial == 0, 0.0, pseudo)[None, :], initial[None, :])[0]
    if "t" in params:
        transition = _transition(parameters, counts, priors.transition)
    if "e" in params:
        emission = _rows(_with_prior(counts.emission, priors.emission, "emissionprob_prior"), emission)
    return Parameters(initial, transition, emission)


def _transition(parameters: Parameters, counts: Counts, prior: Any) -> Any:
    old = parameters.transition
    if not parameters.is_sparse:
        return _rows(np.where(old == 0, 0.0, _with_prior(counts.transition, prior, "transmat_prior")), old)
    entries = parameters.rows
    of_row = np.repeat(np.arange(parameters.n_states), np.diff(entries.indptr))
    at_entries = prior if np.ndim(prior) == 0 else np.asarray(prior)[of_row, entries.indices]
    pseudo = _with_prior(counts.transition.data, at_entries, "transmat_prior")
    sums = np.bincount(of_row, pseudo, minlength=parameters.n_states)[of_row]
    data = np.where(sums > 0, pseudo / np.where(sums > 0, sums, 1.0), entries.data)
    return csr(entries, data, parameters.n_states)


def _with_prior(counts: FloatArray, prior: Any, name: str) -> FloatArray:
    try:
        pseudo = np.asarray(prior, dtype=np.float64) - 1.0 + counts
    except (TypeError, ValueError):
        raise InvalidInput(name, "numbers of another shape", f"a number, or shape {counts.shape}") from None
    if pseudo.shape != counts.shape or not np.isfinite(pseudo).all():
        raise InvalidInput(name, "numbers that do not fit", f"a finite number, or shape {counts.shape}")
    # Below 1 a prior can ask for less than nothing: then the mode is at 0.
    return np.maximum(pseudo, 0.0)


def _rows(pseudo: FloatArray, old: FloatArray) -> FloatArray:
    sums = pseudo.sum(axis=1, keepdims=True)
    return np.where(sums > 0, pseudo / np.where(sums > 0, sums, 1.0), old)
