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
from scipy import sparse

from dphmm._checks import one_of
from dphmm._kernels.hmm import Matrix, add_emissions, add_transitions
from dphmm._kernels.process import on_one_thread
from dphmm.errors import InvalidInput
from dphmm.markov.hidden.inference import (
    Pass,
    SequenceBatch,
    SinglePass,
    Workspace,
    batches,
    in_floats_or_logs,
    smoothed,
)
from dphmm.markov.hidden.parameters import Observations, Parameters
from dphmm.types import FloatArray

#: How the initial distribution is come by: learned like the rest, or always the stationary one of the transitions.
STARTS = ("free", "stationary")
#: Largest weight of a sequence: far from where weighted rows overflow.
_MOST_WEIGHT = 1e15


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
        """True if the last iteration gained less than ``tol``, or all ``n_iter`` are made."""
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
) -> ExpectedCounts:
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


def updated(parameters: Parameters, counts: ExpectedCounts, params: str, priors: Priors) -> Parameters:
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


def _transition(parameters: Parameters, counts: ExpectedCounts, prior: Any) -> Any:
    old = parameters.transition
    if not parameters.is_sparse:
        return _rows(np.where(old == 0, 0.0, _with_prior(counts.transition, prior, "transmat_prior")), old)
    entries = parameters.compressed_rows
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


@dataclass(frozen=True, eq=False)
class ExpectedCounts:
    """Weighted sums over sequences, given the observations and the parameters.

    ``initial`` (S,), ``transition`` (S, S) dense, or a csr_array on the structure of a sparse one, ``emission`` (S, V),
    and ``log_likelihood``, the weighted sum of those of the sequences.
    """

    log_likelihood: float
    initial: FloatArray
    transition: Any
    emission: FloatArray


@dataclass(eq=False)
class Sums:
    """Counts while they are being summed; ``pairs`` lack the factor of the transition probabilities."""

    log: float
    starts: FloatArray
    pairs: FloatArray
    moves: FloatArray
    emissions: FloatArray

    @classmethod
    def zero(cls, parameters: Parameters) -> Sums:
        n = parameters.n_states
        entries = np.zeros(len(parameters.compressed_rows.data)) if parameters.is_sparse else np.zeros((n, n))
        return cls(0.0, np.zeros(n), entries, np.zeros_like(entries), np.zeros((parameters.n_symbols, n)))

    def add(self, other: Sums) -> None:
        self.log += other.log
        self.starts += other.starts
        self.pairs += other.pairs
        self.moves += other.moves
        self.emissions += other.emissions


class Counter:
    """Counts the same sequences under one model after another; their layout is made once.

    ``weights`` (n,) say how often each sequence was seen, once by default; those of weight 0 are left out.
    """

    def __init__(
        self, observed: Observations, n_states: int, weights: Any = None, checkpoint: bool | str = "auto"
    ) -> None:
        self._observed, self._checkpoint, self._space = observed, checkpoint, Workspace()
        self._weights = np.ones(observed.n_sequences) if weights is None else _weights(weights, observed.n_sequences)
        self._batches = list(batches(observed, n_states, np.flatnonzero(self._weights)))

    def count(self, parameters: Parameters, initial: FloatArray) -> ExpectedCounts:
        """The expected counts under the model, started from ``initial``; InvalidInput for an impossible symbol."""
        sums = Sums.zero(parameters)

        def work(batch: SequenceBatch, alone: SinglePass | None) -> None:
            if alone is None:
                sums.add(self._in_floats(parameters, initial, batch))
            else:
                sums.add(self._in_logs(parameters, batch, alone))

        in_floats_or_logs(parameters, initial, self._observed, self._batches[::-1], work)
        return _counts(parameters, sums)

    def _in_floats(self, parameters: Parameters, initial: FloatArray, batch: SequenceBatch) -> Sums:
        sums = Sums.zero(parameters)
        weights = self._weights[batch.which]
        passed = Pass(parameters, initial, batch, self._checkpoint, space=self._space)
        sums.log = float(weights @ passed.logs)
        for part in passed.backward(weights):
            if parameters.is_sparse:
                add_transitions(parameters.backward, part.alpha, part.after, sums.pairs)
            else:
                sums.pairs += part.alpha.T @ part.after
            symbols = batch.symbols[part.block.start : part.block.stop]
            add_emissions(symbols, part.alpha, part.beta, sums.emissions)
            if part.block.first == 0:
                width = len(batch.which)
                sums.starts += (part.alpha[:width] * part.beta[:width]).sum(axis=0)
        return sums

    def _in_logs(self, parameters: Parameters, batch: SequenceBatch, passed: SinglePass) -> Sums:
        sums, weight = Sums.zero(parameters), float(self._weights[batch.which[0]])
        posteriors, moves = smoothed(parameters, passed)
        sums.log = weight * float(passed.logs[0])
        sums.starts += weight * posteriors[0]
        if parameters.is_sparse:
            sums.moves += weight * moves
        else:
            rows = parameters.compressed_rows
            sums.moves += weight * csr(rows, moves, parameters.n_states).toarray()
        np.add.at(sums.emissions, passed.symbols, weight * posteriors)
        return sums


def csr(entries: Matrix, data: FloatArray, n: int) -> Any:
    """Numbers at the stored entries of a matrix, as a csr_array."""
    return sparse.csr_array((data, entries.indices, entries.indptr), shape=(n, n))


def _counts(parameters: Parameters, sums: Sums) -> ExpectedCounts:
    if parameters.is_sparse:
        entries = parameters.compressed_rows
        moves = csr(entries, sums.pairs * entries.data + sums.moves, parameters.n_states)
    else:
        moves = sums.pairs * parameters.transition + sums.moves
    return ExpectedCounts(sums.log, sums.starts, moves, np.ascontiguousarray(sums.emissions.T))


def _weights(given: Any, n: int) -> FloatArray:
    try:
        values = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("weights", type(given).__name__, f"{n} numbers, one for each sequence") from None
    if values.shape != (n,):
        raise InvalidInput("weights", f"shape {values.shape}", f"shape ({n},), one for each sequence")
    wrong = ~((values >= 0) & (values <= _MOST_WEIGHT))
    if wrong.any():
        raise InvalidInput(f"weights[{int(np.argmax(wrong))}]", "a wrong weight", f"from 0 to {_MOST_WEIGHT:g}")
    if not (values > 0).any():
        raise InvalidInput("weights", "only zeros", "a sequence that counts")
    return values
