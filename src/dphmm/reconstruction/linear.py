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
#: Standard errors to both sides of a share whose estimate is normal; of fewer people no estimate is taken to be.
_NORMAL = 1.6448536269514722
FEWEST = 30
#: How far from unbiased rounding may leave an estimate.
_UNBIASED = 1e-8
#: Singular values below this share of the largest are none; an estimate this near to unbiased needs no further round.
_RANK = 1e-13
_PRECISE = 1e-12


class Shares(NamedTuple):
    """Estimated shares (k,), which may lie outside 0 to 1, with 90 % intervals inside it.

    Each interval holds the share, of these people or of the population that they were drawn from, with a probability of
    at least 0.9, however few people there are. All of several intervals together hold less often.
    """

    share: FloatArray
    low: FloatArray
    high: FloatArray


class Interval(NamedTuple):
    """Unbiased estimates (k,), which may lie outside 0 to 1, their standard errors, and 90 % intervals inside it."""

    share: FloatArray
    low: FloatArray
    high: FloatArray
    standard_error: FloatArray


def linear_estimates(table: FloatArray, regions: FloatArray, guess: FloatArray | None = None) -> FloatArray:
    """What each outcome counts for each region (Z, k), so that its mean over people is the region's share.

    table : the probability (N, Z) of each outcome from each state; rows add up to 1.
    regions : (N, k), 1 for the states of a region.
    guess : public guess (N,) of the shares of the states, under which the variance is least; even by default.

    Raises InvalidInput naming the region that splits states which no outcome tells apart.

    Examples
    --------
    >>> import numpy as np
    >>> from dphmm.reconstruction.linear import linear_estimates
    >>> table = np.array([[0.75, 0.25], [0.25, 0.75]])
    >>> linear_estimates(table, np.eye(2)).round(6)
    array([[ 1.5, -0.5],
           [-0.5,  1.5]])
    """
    n = len(table)
    share = np.full(n, 1.0 / n) if guess is None else np.asarray(guess, dtype=np.float64) / np.sum(guess)
    chance = share @ table
    seen = chance > 0
    found = np.zeros((table.shape[1], regions.shape[1]))
    root = np.sqrt(chance[seen])
    found[seen] = _least_norm(table[:, seen] / root, regions) / root[:, None]
    wrong = np.abs(table @ found - regions).max(axis=0)
    if (wrong > _UNBIASED).any():
        region = int(np.argmax(wrong > _UNBIASED))
        came = f"region {region}, which splits states that no outcome tells apart"
        raise InvalidInput("regions", came, "regions with all of such states, or none")
    return found


def _least_norm(matrix: FloatArray, regions: FloatArray) -> FloatArray:
    """The least x (Z, k) with matrix (N, Z) times x equal to regions (N, k), or nearest to them where there is none."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        factor = cho_factor(matrix @ matrix.T, lower=True)
    except LinAlgError:
        factor = None
    if factor is not None and np.diag(factor[0]).min() > _RANK * np.diag(factor[0]).max():
        found = matrix.T @ cho_solve(factor, regions)
        # Further rounds take off what the squared condition added to the rounding.
        for _ in range(3):
            wrong = regions - matrix @ found
            if np.abs(wrong).max(initial=0.0) <= _PRECISE:
                return np.asarray(found)
            found += matrix.T @ cho_solve(factor, wrong)
    # Of the least norm where outcomes do not tell all states apart.
    return np.asarray(np.linalg.lstsq(matrix, regions, rcond=_RANK)[0])


def shares(counts_for: FloatArray, least: FloatArray, most: FloatArray) -> Shares:
    """The shares of what each person counts for each region (people, k), with 90 % intervals cut to 0 to 1.

    least, most : what an outcome counts for each region (k,) at least and at most, whichever outcome it is.

    Raises InvalidInput for no person, and for a person who counts less or more than an outcome can.

    Source: Hoeffding, "Probability inequalities for sums of bounded random variables" (JASA 1963), Theorem 2.

    Examples
    --------
    >>> import numpy as np
    >>> from dphmm.reconstruction.linear import shares
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


def interval(
    share: FloatArray, standard_error: FloatArray, people: int, ends: tuple[FloatArray, FloatArray] | None
) -> Interval:
    """The 90 % intervals of estimated shares (k,): by the normal approximation, of 30 people or more.

    An approximation: of fewer than some 300 people, where few answers count for much, it misses more often. In the
    worst case that was found, 60 people and labels at epsilon 2, it held a share of 10 % in 57 of 100 cases.

    Each is at least 2.303 / people wide to both sides, for a share that nobody of these people shows. Of fewer people
    it is that of `shares`, by the least and the most (k,) that an answer counts, and 0 to 1 without these ``ends``.

    Examples
    --------
    >>> import numpy as np
    >>> from dphmm.reconstruction.linear import interval
    >>> found = interval(np.array([0.5]), np.array([0.01]), 1000, None)
    >>> found.low.round(4), found.high.round(4)
    (array([0.4836]), array([0.5164]))

    Source: docs/proofs/population-shares.md.
    """
    if people >= FEWEST:
        half = np.maximum(_NORMAL * standard_error, -np.log(MISSES) / people)
    elif ends is None:
        half = np.full(len(share), np.inf)
    else:
        half = (ends[1] - ends[0]) * np.sqrt(np.log(2 / MISSES) / (2 * people))
    half = half + _UNBIASED
    return Interval(share, np.clip(share - half, 0.0, 1.0), np.clip(share + half, 0.0, 1.0), standard_error)


def shares_of_outcomes(table: FloatArray, outcomes: IntArray, guess: FloatArray | None = None) -> Shares:
    """The share of each state (N,) among people whose outcomes (people,) were drawn from one table (N, Z)."""
    found = linear_estimates(table, np.eye(len(table)), guess)
    return shares(found[outcomes], found.min(axis=0), found.max(axis=0))
