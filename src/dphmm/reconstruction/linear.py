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
from dphmm.types import BoolArray, FloatArray, IntArray

#: How often an interval may miss the share, at most.
MISSES = 0.1
#: Shares of these misses: of each end of `interval`, and of each of its two largest mean squares, given those seen.
_END, _SQUARE = 0.45, 0.05
#: Standard errors to both sides of a share whose estimate is normal; of fewer people no estimate is taken to be.
_NORMAL = 1.6448536269514722
FEWEST = 30
#: Factors in exponents that are tried for the ends of `interval`, and the largest, for terms that span 1.
_FACTORS, _LARGEST_FACTOR = 32, 40.0
#: Factors times regions that are looked at together.
_TOGETHER = 2**18
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


def linear_estimates(table: FloatArray, regions: FloatArray, guess: FloatArray | None = None) -> FloatArray:
    """The terms (Z, k) of outcomes for regions: a region's mean term over people is its share.

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
    terms = np.zeros((table.shape[1], regions.shape[1]))
    root = np.sqrt(chance[seen])
    terms[seen] = _least_norm(table[:, seen] / root, regions) / root[:, None]
    wrong = np.abs(table @ terms - regions).max(axis=0)
    if (wrong > _UNBIASED).any():
        region = int(np.argmax(wrong > _UNBIASED))
        fault = f"region {region}, which splits states that no outcome tells apart"
        raise InvalidInput("regions", fault, "regions with all of such states, or none")
    return terms


def _least_norm(matrix: FloatArray, regions: FloatArray) -> FloatArray:
    """The least x (Z, k) with matrix (N, Z) times x equal to regions (N, k), or nearest to them where there is none."""
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    try:
        factor = cho_factor(matrix @ matrix.T, lower=True)
    except LinAlgError:
        factor = None
    if factor is not None and np.diag(factor[0]).min() > _RANK * np.diag(factor[0]).max():
        x = matrix.T @ cho_solve(factor, regions)
        # Further rounds take off what the squared condition added to the rounding.
        for _ in range(3):
            wrong = regions - matrix @ x
            if np.abs(wrong).max(initial=0.0) <= _PRECISE:
                return np.asarray(x)
            x += matrix.T @ cho_solve(factor, wrong)
    # Of the least norm where outcomes do not tell all states apart.
    return np.asarray(np.linalg.lstsq(matrix, regions, rcond=_RANK)[0])


def shares(counts_for: FloatArray, least: FloatArray, most: FloatArray, misses: float = MISSES) -> Shares:
    """The shares from each person's terms for the regions (people, k), with 90 % intervals cut to 0 to 1.

    least, most : the least and the largest term of any outcome, by region (k,). misses : how often an interval misses.

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
        fault = "nobody" if not people else "a person who counts less or more than any outcome"
        raise InvalidInput("counts_for", fault, "what the outcomes of one or more people count for")
    mean = counts_for.mean(axis=0)
    half = (most - least) * np.sqrt(np.log(2 / misses) / (2 * people)) + _UNBIASED
    return Shares(mean, np.clip(mean - half, 0.0, 1.0), np.clip(mean + half, 0.0, 1.0))


class TermBounds(NamedTuple):
    """The bounds on the terms of persons, whatever they answered, for k regions, each (k,).

    least, most : of a term. inside, outside : of the expected square of a term of somebody who is always in the region,
    and of somebody who never is.
    """

    least: FloatArray
    most: FloatArray
    inside: FloatArray
    outside: FloatArray

    def of_others(self) -> TermBounds:
        """The same of 1 less each term: of the states that are not in a region."""
        return TermBounds(1.0 - self.most, 1.0 - self.least, self.outside + 1.0, np.maximum(self.inside - 1.0, 0.0))


class TermMoments(NamedTuple):
    """The mean (k,) of the terms of persons, and the means of their squares and of those of each less 1."""

    mean: FloatArray
    square: FloatArray
    square_less_1: FloatArray

    def of_others(self) -> TermMoments:
        """The same of 1 less each term."""
        return TermMoments(1.0 - self.mean, self.square_less_1, self.square)


def interval(
    seen: TermMoments, people: int, terms: TermBounds, misses: float = MISSES
) -> tuple[FloatArray, FloatArray]:
    """The ends (k,) of 90 % intervals around the means of one term of each person, cut to 0 to 1.

    Each holds the mean of the expected terms with a probability of at least 1 - ``misses``, however few people there
    are, whatever the shares are. Terms of persons are independent, and their expected values are shares.

    Source: Hoeffding, "Probability inequalities for sums of bounded random variables" (JASA 1963), Theorem 1; Bennett,
    "Probability inequalities for the sum of independent random variables" (JASA 1962); for squares that were measured,
    Maurer and Pontil, "Empirical Bernstein bounds and sample variance penalization" (COLT 2009).

    Proof: docs/proofs/population-shares.md.

    Examples
    --------
    >>> import numpy as np
    >>> from dphmm.reconstruction.linear import TermMoments, TermBounds, interval
    >>> terms = TermBounds(*(np.array([bound]) for bound in (-0.5, 1.5, 1.75, 0.75)))
    >>> low, high = interval(TermMoments(np.array([0.5]), np.array([1.0]), np.array([1.0])), 1000, terms)
    >>> low.round(3), high.round(3)
    (array([0.425]), array([0.575]))
    """
    low = _low(seen, people, terms, misses) - _UNBIASED
    high = 1.0 - _low(seen.of_others(), people, terms.of_others(), misses) + _UNBIASED
    # What every outcome counts alike is known without noise: a region of all states.
    alike = terms.most - terms.least <= _UNBIASED
    low, high = np.where(alike, seen.mean - _UNBIASED, low), np.where(alike, seen.mean + _UNBIASED, high)
    return np.clip(low, 0.0, 1.0), np.clip(high, 0.0, 1.0)


def _low(seen: TermMoments, people: int, terms: TermBounds, misses: float) -> FloatArray:
    """Lower ends (k,), which may lie below 0: the largest share below all that are refuted.

    For every factor the expected exponential of a term is at most a line in the share, and a mean that is too large for
    the line refutes the share. The factors hang on no answer.
    """
    least, most = np.minimum(terms.least, 0.0), np.maximum(terms.most, 1.0)
    squares = [
        (about, _largest_mean(square, np.maximum(np.abs(least - about), np.abs(most - about)), people, misses))
        for about, square in ((0.0, seen.square), (1.0, seen.square_less_1))
    ]
    chance = np.log(_END * misses) / people
    factors = np.geomspace(min(1.0, np.sqrt(-2.0 * chance)), _LARGEST_FACTOR, _FACTORS)[:, None]
    low, together = np.full(len(seen.mean), -np.inf), max(1, _TOGETHER // max(1, len(seen.mean)))
    for first in range(0, _FACTORS, together):
        factor = factors[first : first + together] / (most - least)
        level = np.exp(factor * seen.mean + chance)
        ends = [_crossing(level, np.exp(factor * least), np.exp(factor * most), least, most)]
        inside = np.exp(factor) * (1.0 + np.maximum(terms.inside - 1.0, 0.0) * _beyond(factor, most - 1.0))
        outside = 1.0 + terms.outside * _beyond(factor, most)
        ends.append(_crossing(level, outside, inside, np.zeros_like(low), np.ones_like(low)))
        for about, largest in squares:
            rest = 1.0 + largest * _beyond(factor, most - about)
            ends.append(about + (level * np.exp(-factor * about) - rest) / factor)
        low = np.maximum(low, np.max(ends, axis=(0, 1)))
    return low


def _crossing(
    told: FloatArray, at_low: FloatArray, at_high: FloatArray, low: FloatArray, high: FloatArray
) -> FloatArray:
    """The points where lines from a value at ``low`` to a larger one at ``high`` reach ``told``; of others nowhere."""
    rises = at_high - at_low
    share = np.full(told.shape, -np.inf)
    np.divide(told - at_low, rises, out=share, where=rises > 0)
    return np.asarray(low + (high - low) * share)


def _beyond(factor: FloatArray, most: FloatArray) -> FloatArray:
    """(e^x - 1 - x) / most² for x = factor · most: the most that a square of 1 adds to an expected exponential."""
    x = factor * most
    series = 0.5 + x / 6.0 + x**2 / 24.0 + x**3 / 120.0
    ratio = np.divide(np.expm1(x) - x, x**2, out=np.zeros_like(x), where=x > 0)
    return np.asarray(factor**2 * np.where(x < 1e-3, series, ratio))


def _largest_mean(square: FloatArray, far: FloatArray, people: int, misses: float) -> FloatArray:
    """The largest expected mean (k,) of squares of terms at most ``far`` from 0, given the mean that was seen."""
    half = far**2 * -np.log(_SQUARE * misses) / (2.0 * people)
    return np.asarray(np.minimum((np.sqrt(half) + np.sqrt(half + square)) ** 2, far**2))


def interval_of_rows(
    seen: TermMoments, people: int, terms: TermBounds, factor: float, misses: float = MISSES
) -> tuple[FloatArray, FloatArray]:
    """The ends (k,) of intervals around means over rows of persons who have more of them or fewer, cut to 0 to 1.

    factor : people times the most rows of a person, over all rows. A person's rows are filled up with rows in no region
        that count 0, which need no answer: then persons count alike, and the share is smaller by this factor.
    seen, terms : of the rows; the term of a person is the mean of the rows that it is filled up to.

    Examples
    --------
    >>> import numpy as np
    >>> from dphmm.reconstruction.linear import TermMoments, TermBounds, interval_of_rows
    >>> terms = TermBounds(*(np.array([bound]) for bound in (-0.5, 1.5, 1.75, 0.75)))
    >>> seen = TermMoments(np.array([0.5]), np.array([1.0]), np.array([1.0]))
    >>> [end.round(3).tolist() for end in interval_of_rows(seen, 1000, terms, 1.2)]
    [[0.51], [0.69]]

    Proof: docs/proofs/population-shares.md.
    """
    low, high = interval(seen, people, terms, misses)
    return np.clip(low * factor, 0.0, 1.0), np.clip(high * factor, 0.0, 1.0)


def of_those_that_go_on(
    ends: tuple[FloatArray, FloatArray], ended: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """The ends (k,) of intervals of shares among what has not ended, from those among all and that of what has ended.

    The interval holds the share where both of the others hold theirs.

    Proof: docs/proofs/population-shares.md.

    >>> [end.tolist() for end in of_those_that_go_on((np.array([0.2]), np.array([0.3])), (0.2, 0.4))]
    [[0.25], [0.5]]
    """
    least, most = (1.0 - end for end in reversed(ended))
    high = np.divide(ends[1], least, out=np.ones_like(ends[1]), where=least > 0)
    return ends[0] / most if most > 0 else 0.0 * ends[0], np.minimum(high, 1.0)


def among_those_that_go_on(found: Shares, end: int, others: BoolArray) -> Shares:
    """The shares of ``others`` (k,) among what has not ended, from those among all; ``end``: the number of `END`."""
    left = 1.0 - found.share[end]
    low, high = of_those_that_go_on((found.low, found.high), (float(found.low[end]), float(found.high[end])))
    share = np.where(others, found.share / left if left > 0 else 0.0, found.share)
    return Shares(share, np.where(others, low, found.low), np.where(others, high, found.high))


def normal_interval(share: FloatArray, standard_error: FloatArray, people: int) -> tuple[FloatArray, FloatArray]:
    """The ends (k,) of intervals by the normal approximation, which hold a share about nine times in ten.

    For estimates that are ratios, where the number of somebody's answers hangs on the answers. Each is at least
    2.303 / people wide to both sides, for a share that nobody of these people shows; of fewer than 30 people it is 0 to
    1.

    Examples
    --------
    >>> import numpy as np
    >>> from dphmm.reconstruction.linear import normal_interval
    >>> low, high = normal_interval(np.array([0.5]), np.array([0.01]), 1000)
    >>> low.round(4), high.round(4)
    (array([0.4836]), array([0.5164]))

    Source: docs/proofs/population-shares.md.
    """
    half = np.full(len(share), np.inf)
    if people >= FEWEST:
        half = np.maximum(_NORMAL * standard_error, -np.log(MISSES) / people) + _UNBIASED
    return np.clip(share - half, 0.0, 1.0), np.clip(share + half, 0.0, 1.0)


def shares_of_outcomes(
    table: FloatArray, outcomes: IntArray, guess: FloatArray | None = None, end: int | None = None
) -> Shares:
    """The share of each state (N,) among people whose outcomes (people,) were drawn from one table (N, Z).

    ``end``: the state `END`, where there is one; then shares of the others are among those that have not ended.
    """
    terms = linear_estimates(table, np.eye(len(table)), guess)
    misses = MISSES if end is None else MISSES / 2
    among_all = shares(terms[outcomes], terms.min(axis=0), terms.max(axis=0), misses)
    return among_all if end is None else among_those_that_go_on(among_all, end, np.arange(len(table)) != end)
