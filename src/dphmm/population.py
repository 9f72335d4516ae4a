"""Shares of a population from released answers, corrected for the noise: post-processing, which costs no privacy.

The linear estimate of least variance among the unbiased ones. It is unbiased row by row, whatever chose the row's plan.

Source: McKenna, Maity, Mazumdar and Miklau, "A workload-adaptive mechanism for linear queries under local differential
privacy" (PVLDB 2020), the reconstruction of least variance.

Proof: docs/proofs/population-shares.md.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dphmm.errors import InvalidInput
from dphmm.types import FloatArray, IntArray

#: How often an interval may miss the share, at most.
MISSES = 0.1
#: How far from unbiased rounding may leave an estimate.
_UNBIASED = 1e-8


class Shares(NamedTuple):
    """Estimated shares (k,), which may lie outside 0 to 1, with 90 % intervals inside it.

    Each interval holds the share, of these people or of the population that they were drawn from, with a probability of
    at least 0.9, however few people there are. All of several intervals together hold less often.
    """

    share: FloatArray
    low: FloatArray
    high: FloatArray


def linear_estimates(table: FloatArray, regions: FloatArray, guess: FloatArray | None = None) -> FloatArray:
    """What each outcome counts for each region (Z, k), so that its mean over people is the region's share.

    table : the probability (N, Z) of each outcome from each state; rows add up to 1.
    regions : (N, k), 1 for the states of a region.
    guess : public guess (N,) of the shares of the states, under which the variance is least; even by default.

    Raises InvalidInput naming the region that splits states which no outcome tells apart.

    Examples
    --------
    >>> import numpy as np
    >>> from dphmm.population import linear_estimates
    >>> table = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> linear_estimates(table, np.eye(2)).round(6)
    array([[ 1.5, -0.5],
           [-0.5,  1.5]])
    """
    n = len(table)
    share = np.full(n, 1.0 / n) if guess is None else np.asarray(guess, dtype=np.float64) / np.sum(guess)
    chance = share @ table
    seen = chance > 0
    weighted = table[:, seen] / chance[seen]
    # Of the least norm where outcomes do not tell all states apart.
    solved = np.linalg.lstsq(weighted @ table[:, seen].T, regions, rcond=1e-12)[0]
    found = np.zeros((table.shape[1], regions.shape[1]))
    found[seen] = weighted.T @ solved
    wrong = np.abs(table @ found - regions).max(axis=0)
    if (wrong > _UNBIASED).any():
        region = int(np.argmax(wrong > _UNBIASED))
        came = f"region {region}, which splits states that no outcome tells apart"
        raise InvalidInput("regions", came, "regions with all of such states, or none")
    return found


def shares(counts_for: FloatArray, least: FloatArray, most: FloatArray) -> Shares:
    """The shares of what each person counts for each region (people, k), with 90 % intervals cut to 0 to 1.

    least, most : what an outcome counts for each region (k,) at least and at most, whichever outcome it is.

    Raises InvalidInput for no person, and for a person who counts less or more than an outcome can.

    Source: Hoeffding, "Probability inequalities for sums of bounded random variables" (JASA 1963), Theorem 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dphmm.population import shares
    >>> found = shares(np.array([[1.5], [-0.5], [1.5], [1.5]]), np.array([-0.5]), np.array([1.5]))
    >>> found.share, found.low.round(2), found.high
    (array([1.]), array([0.]), array([1.]))
    """
    people = len(counts_for)
    if not people or (counts_for < least).any() or (counts_for > most).any():
        came = "nobody" if not people else "a person who counts less or more than any outcome"
        raise InvalidInput("counts_for", came, "what the outcomes of one or more people count for")
    mean = counts_for.mean(axis=0)
    half = (most - least) * np.sqrt(np.log(2 / MISSES) / (2 * people)) + _UNBIASED
    return Shares(mean, np.clip(mean - half, 0.0, 1.0), np.clip(mean + half, 0.0, 1.0))


def shares_of_outcomes(table: FloatArray, outcomes: IntArray, guess: FloatArray | None = None) -> Shares:
    """The share of each state (N,) among people whose outcomes (people,) were drawn from one table (N, Z)."""
    found = linear_estimates(table, np.eye(len(table)), guess)
    return shares(found[outcomes], found.min(axis=0), found.max(axis=0))
