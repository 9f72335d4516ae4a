"""The mechanisms of Song, Wang and Chaudhuri (SIGMOD 2017): Wasserstein for small cases, Markov quilts for chains.

Proof: docs/proofs/dependent-dpm.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dphmm.dependent._chain import Chain
from dphmm.dependent._exact import Laws, sum_laws
from dphmm.types import FloatArray

#: Room for rounding in sums of probabilities: a shift is only called enough where it is so by this much.
_MARGIN = 1e-11
#: How far the two sides of a quilt may be from the tuple; fewer quilts are still quilts.
_FARTHEST = 400


def wasserstein_distance(model: Any, query: Any) -> int | None:
    """The largest W_∞ between laws of the sum given two values of one tuple; None where laws are not computed."""
    laws: Laws | None = sum_laws(model, query)
    if laws is None:
        return None
    worst = 0
    for law in laws:
        for one in range(len(law)):
            for other in range(len(law)):
                worst = max(worst, _shift(law[one], law[other], worst))
    return worst


def _shift(one: FloatArray, other: FloatArray, least: int) -> int:
    """The least k >= ``least`` with P(other <= s + k) >= P(one <= s) for all s.

    Each s is decided on the smaller tail, which is the more exact, and only by more than rounding can hide.
    """
    below, other_below = np.cumsum(one), np.cumsum(other)
    above, other_above = _beyond(one), _beyond(other)
    for k in range(least, len(one)):
        kept = len(one) - k
        low = (other_below[k:] >= below[:kept] * (1 + _MARGIN)) | (below[:kept] == 0.0)
        high = (other_above[k:] * (1 + _MARGIN) <= above[:kept]) | (other_above[k:] == 0.0)
        if np.where(below[:kept] < 0.5, low, high).all():
            return k
    return len(one)


def _beyond(law: FloatArray) -> FloatArray:
    tails: FloatArray = np.append(np.cumsum(law[::-1])[::-1][1:], 0.0)
    return tails


def quilt_scale(chain: Chain, epsilon: float) -> float:
    """Noise for an answer that moves by 1 with each tuple: the best quilt of every tuple, the worst tuple's.

    A quilt {i − a, i + b} leaves a + b − 1 tuples near i and costs the largest log-ratio e of its law given two values
    of tuple i; the tuples beyond it add nothing. Noise: near / (ε − e). Without a quilt, n / ε.
    """
    worst = 0.0
    for i in range(chain.n):
        worst = max(worst, _best_quilt(chain, i, epsilon))
    return worst


def _best_quilt(chain: Chain, i: int, epsilon: float) -> float:
    left = _influence(chain, i, -1)
    right = _influence(chain, i, 1)
    near_left = np.r_[np.arange(1, len(left)), i + 1]
    near_right = np.r_[np.arange(1, len(right)), chain.n - i]
    best = chain.n / epsilon
    for a, reach in enumerate(near_left):
        spent = (left[a] + right).max(axis=(1, 2))
        near = reach + near_right - 1
        fits = spent < epsilon
        if fits.any():
            best = min(best, float((near[fits] / (epsilon - spent[fits])).min()))
    return best


def _influence(chain: Chain, i: int, step: int) -> FloatArray:
    """For quilts at distance 1, 2, … and for none: the largest log-ratio for each pair of values of tuple i."""
    here = np.eye(chain.n_values)
    possible = chain.possible(i)
    k = int(possible.sum())
    found: list[FloatArray] = []
    at, error = i, 0.0
    while 0 <= at + step < chain.n and len(found) < _FARTHEST:
        kernel = chain.kernel(at, at + step)
        if kernel.stand_in:
            # What is behind it is not known: quilts end here.
            break
        here = here @ kernel.matrix
        error += 2 * kernel.error + (chain.n_values + 2) * 2.0**-52
        at += step
        found.append(_log_ratios(here[possible]) + error)
    return np.array([*found, np.zeros((k, k))])


def _log_ratios(rows: FloatArray) -> FloatArray:
    """The largest log p/q over columns, for each ordered pair of rows."""
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.log(rows)
        apart = logs[:, None] - logs[None]
    apart[np.isnan(apart)] = -np.inf
    found: FloatArray = apart.max(axis=2)
    return found
