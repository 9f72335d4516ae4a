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

#: Half the width of a 90 % interval, in standard errors.
NINETY = 1.6448536269514722
#: How far from unbiased rounding may leave an estimate.
_UNBIASED = 1e-8


class Shares(NamedTuple):
    """Estimated shares (k,) with their 90 % intervals, of the population that the people were drawn from."""

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


def shares(counts_for: FloatArray) -> Shares:
    """The shares of what each person counts for each region (people, k), with 90 % intervals.

    The intervals are for the population that the people were drawn from; for their own share they are wider than
    needed. Infinite for a single person.
    """
    people = len(counts_for)
    mean = counts_for.mean(axis=0)
    if people < 2:
        endless = np.full(len(mean), np.inf)
        return Shares(mean, -endless, endless)
    half = NINETY * counts_for.std(axis=0, ddof=1) / np.sqrt(people)
    return Shares(mean, mean - half, mean + half)


def shares_of_outcomes(table: FloatArray, outcomes: IntArray, guess: FloatArray | None = None) -> Shares:
    """The share of each state (N,) among people whose outcomes (people,) were drawn from one table (N, Z)."""
    return shares(linear_estimates(table, np.eye(len(table)), guess)[outcomes])
