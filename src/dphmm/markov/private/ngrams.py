"""One noisy histogram of o-grams, then any number of EM steps on it: the default for hidden Markov models.

The histogram of all V**o words of o symbols is published once, with noise in every cell. Everything after that, the
starts, the stopping and the choice among several starts, is computed from the noisy histogram alone: it has no other
argument. A word seen anywhere in a long sequence begins in the chain's stationary distribution, so that is where EM
lets it begin.

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private.release import NoisyTable, nearest_counts
from dphmm.markov.private.sensitivity import Kept
from dphmm.types import FloatArray, IntArray

#: Most cells V**o that are noised and held.
MOST_CELLS = 2**22
#: Share of every row that is spread evenly over what was possible at the start, at the end.
FLOOR = 1e-6
#: A word less likely than this is passed over: its count divided by its chance could be beyond floats.
_LEAST_CHANCE = 1e-280


@dataclass(frozen=True)
class Climb:
    """What EM did: the log-likelihood of the noisy histogram before each step, and whether it settled."""

    parameters: Parameters
    history: tuple[float, ...]
    converged: bool


def check_cells(n_symbols: int, order: int) -> None:
    """Refuse, from public numbers, a histogram that is too large."""
    if n_symbols**order > MOST_CELLS:
        raise InvalidInput(
            "order", order, f"an order with at most {MOST_CELLS} cells: {n_symbols} symbols make {n_symbols}**{order}"
        )


def count_ngrams(kept: Kept, n_symbols: int, order: int) -> IntArray:
    """How often each word of ``order`` symbols occurs inside a sequence: (V**order,), the last symbol fastest."""
    n_words = max(len(kept.symbols) - order + 1, 0)
    words = np.zeros(n_words, dtype=np.int64)
    for place in range(order):
        words = words * n_symbols + kept.symbols[place : place + n_words]
    inside = np.ones(n_words, dtype=np.bool_)
    # A word that begins in the last order - 1 places of a sequence reaches into the next one.
    for back in range(1, order):
        late = kept.bounds[1:] - back
        inside[late[(late >= 0) & (late < n_words)]] = False
    return np.bincount(words[inside], minlength=n_symbols**order).astype(np.int64)


def weights_of(table: NoisyTable, n_symbols: int, order: int, projection: str) -> FloatArray:
    """The noisy histogram without negative counts, (V,)·order; all zeros if there is no mass above the noise."""
    shape = (n_symbols,) * order
    whole = np.array([0, len(table.values)])
    counts = nearest_counts(table.values, whole, projection)
    return counts.reshape(shape)


def climb(weights: FloatArray, start: Parameters, letters: str, n_iter: int, tol: float) -> Climb:
    """EM on weighted words from one start; letters left out ("t", "e") stay as they are.

    Stops when a step gains less than ``tol`` per word; all of it is post-processing of ``weights``.
    """
    total = float(weights.sum())
    parameters = _at_rest(start.transition, start.emission)
    history: list[float] = []
    if total <= 0.0:
        return Climb(parameters, (), False)
    for _ in range(n_iter):
        loglik, moves, emissions = expected(weights, parameters)
        history.append(loglik)
        if len(history) > 1 and history[-1] - history[-2] < tol * total:
            return Climb(parameters, tuple(history), True)
        transition = _rows(moves, parameters.transition) if "t" in letters else parameters.transition
        emission = _rows(emissions, parameters.emission) if "e" in letters else parameters.emission
        parameters = _at_rest(transition, emission)
    return Climb(parameters, tuple(history), False)


def expected(weights: FloatArray, parameters: Parameters) -> tuple[float, FloatArray, FloatArray]:
    """(log-likelihood, expected transitions (S, S), expected emissions (S, V)) of weighted words, all at once.

    forward[t] (V**t, S) has a row for each word of t symbols, backward[t] for what follows the t-th symbol.
    """
    order, v = weights.ndim, weights.shape[0]
    initial, transition, emission = parameters.initial, parameters.transition, parameters.emission
    n = len(initial)
    forward = [emission.T * initial]
    backward = [np.ones((1, n))]
    for _ in range(order - 1):
        forward.append(((forward[-1] @ transition)[:, None, :] * emission.T[None]).reshape(-1, n))
        seen = emission.T[:, None, :] * backward[-1][None]
        backward.append(seen.reshape(-1, n) @ transition.T)
    chance = forward[-1].sum(axis=1)
    heavy = weights.ravel() > 0.0
    possible = heavy & (chance > _LEAST_CHANCE)
    loglik = float(np.dot(weights.ravel()[possible], np.log(chance[possible])))
    ratio = np.zeros(v**order)
    ratio[possible] = weights.ravel()[possible] / chance[possible]
    moves, emissions = np.zeros((n, n)), np.zeros((v, n))
    for t in range(order):
        before, after = forward[t], backward[order - 1 - t]
        here = before * (ratio.reshape(len(before), len(after)) @ after)
        emissions += here.reshape(-1, v, n).sum(axis=0)
        if t + 1 < order:
            follows = emission.T[:, None, :] * backward[order - 2 - t][None]
            moves += before.T @ (ratio.reshape(len(before), -1) @ follows.reshape(-1, n))
    return loglik, moves * transition, emissions.T


def _at_rest(transition: FloatArray, emission: FloatArray) -> Parameters:
    """The parameters that begin in their stationary distribution."""
    unstarted = Parameters(np.full(len(transition), 1.0 / len(transition)), transition, emission)
    return Parameters(unstarted.stationary, transition, emission)


def _rows(counts: FloatArray, before: FloatArray) -> FloatArray:
    """Rows that sum to 1; a row without counts stays. A little of every possible entry is kept."""
    totals = counts.sum(axis=1, keepdims=True)
    rows = np.where(totals > 0.0, counts / np.where(totals > 0.0, totals, 1.0), before)
    possible = before > 0.0
    return np.asarray((1.0 - FLOOR) * rows + FLOOR * possible / possible.sum(axis=1, keepdims=True))
