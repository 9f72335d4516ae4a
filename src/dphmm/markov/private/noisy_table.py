"""Rates of a noisy table of moves, by empirical Bayes: public numbers and the noisy counts, and nothing else.

The prior is independence plus a diagonal: the expected count of a move from i to j is level * left_i * right_j, that of
a stay level * left_i * stay, of a beginning level * begin * right_j. Around it a true rate is exponential, its count
Poisson, the noise discrete Laplace with a known scale. Where few moves are possible, most rates are far below that mean
and few far above, which an exponential law takes for noise: there the mean is a multiple of it, drawn for each cell. Of
both priors the one is taken under which the noisy table is likelier. The factors maximise the likelihood of the noisy
table times their own prior, which draws them towards equal ones; the rates are the posterior means. The level is a
factor like the others: the number of people is never used.

Proof: docs/proofs/noisy-tables.md.
"""

from __future__ import annotations

from operator import attrgetter
from typing import NamedTuple

import numpy as np

from dphmm._kernels.noisy_counts import rates_given
from dphmm.markov.private.descent import minimised
from dphmm.types import FloatArray, IntArray

#: The estimator's name in the provenance of a model.
ESTIMATOR = "empirical Bayes"
#: Standard deviations of the logs of the factors; of the difference between going from a state and coming to it.
SPREAD, BALANCE = 1.0, 0.5
#: The same of the diagonal and of the beginning, of which little is known.
LOOSE = 3.0
#: The mean of a cell is that of its factors, or one of these multiples of it: their logs, and those of their chances.
ALIKE = (np.zeros(1), np.zeros(1))
_FAR = np.arange(-2.0, 3.0)
APART = (np.log(16.0) * _FAR, -np.abs(_FAR) - np.log(np.exp(-np.abs(_FAR)).sum()))
#: Evaluations of the likelihood end after so many cells.
MOST_CELLS = 3 * 10**7
MOST_STEPS = 200
#: A step that gains less log-likelihood is the last one.
TOLERANCE = 1e-2


def rates_of(values: FloatArray, rows: IntArray, columns: IntArray, n_states: int, scale: float) -> FloatArray:
    """The true rates (K, m) behind K noisy tables (K, m) of one noise scale, all greater than 0.

    rows : (m,) the state that a cell leaves; ``n_states`` for a beginning.
    columns : (m,) the state that it comes to.
    scale : of the discrete Laplace noise, in counts.

    Of several tables each is drawn towards the sum of the others.

    Examples
    --------
    >>> import numpy as np
    >>> rows, columns = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    >>> rates_of(np.array([[80.0, -9.0, 12.0, 40.0]]), rows, columns, 2, 8.0).round().tolist()
    [[77.0, 3.0, 7.0, 38.0]]
    """
    places = np.where(rows == columns, n_states, columns)
    even = np.zeros(len(rows))
    if len(values) == 1:
        return posterior(values[0], even, rows, places, n_states, scale).rates[None]
    # The noise of the others is taken as Laplace of its variance: it only says where a table is drawn to, and no noise
    # counts twice.
    wide = scale * (len(values) - 1) ** 0.5
    others = [posterior(values.sum(axis=0) - table, even, rows, places, n_states, wide).rates for table in values]
    bases = zip(values, map(np.log, others), strict=True)
    return np.stack([posterior(table, base, rows, places, n_states, scale).rates for table, base in bases])


def at_most(rates: FloatArray, total: float) -> FloatArray:
    """Rates (m,) whose sum is a total or less: about r - c of a large rate r, r**2 / c of a small one.

    Thousands of cells that hold nothing but noise can together be worth more than all others.

    Examples
    --------
    >>> import numpy as np
    >>> at_most(np.array([50.0, 2.0, 2.0]), 51.0).round(2).tolist()
    [48.64, 1.18, 1.18]
    """
    shift = 0.0
    # The sum is convex in the shift, so that no step of Newton's passes the root.
    while (over := (rates * (rates / (rates + shift))).sum() - total) > 1e-9 * total:
        shift += over / ((rates / (rates + shift)) ** 2).sum()
    return np.asarray(rates * (rates / (rates + shift)))


def invented(means: FloatArray, scale: float, random: np.random.Generator) -> FloatArray:
    """A noisy table as invented people would give it: Poisson counts of these means, and the noise."""
    fall = -np.expm1(-1.0 / scale)
    noise = random.geometric(fall, len(means)) - random.geometric(fall, len(means))
    return np.asarray(random.poisson(means) + noise, dtype=np.float64)


class Posterior(NamedTuple):
    """Posterior means (m,), and the log-probability of the table at the likeliest factors, but for a constant."""

    rates: FloatArray
    evidence: float


def posterior(
    values: FloatArray, base: FloatArray, rows: IntArray, columns: IntArray, n: int, scale: float
) -> Posterior:
    """The rates behind a noisy table (m,), at the likeliest factors of the likelier of the priors `ALIKE` and `APART`.

    base : (m,) logs of how often each cell is expected beside the others of its row and column.
    columns : as in `rates_of`, and ``n`` for the diagonal.
    """
    by_prior = (_under(prior, values, base, rows, columns, n, scale) for prior in (ALIKE, APART))
    return max(by_prior, key=attrgetter("evidence"))


def _under(
    prior: tuple[FloatArray, FloatArray],
    values: FloatArray,
    base: FloatArray,
    rows: IntArray,
    columns: IntArray,
    n: int,
    scale: float,
) -> Posterior:
    """The rates at the likeliest factors under one prior."""
    rates = np.empty(len(values))
    # The level, left of each state and of the beginning, right of each state and of the diagonal.
    width = np.concatenate([np.full(n, SPREAD), [LOOSE], np.full(n, SPREAD), [LOOSE]])
    expected = max(float(values.sum()), 0.1 * len(values) * scale)
    # In these units all factors are about as steep: a cell says little where noise is beyond its mean.
    signal = (expected / (expected + len(values) * scale)) ** 2
    cells = [np.array([len(values)]), np.bincount(rows, minlength=n + 1), np.bincount(columns, minlength=n + 1)]
    unit = 1.0 / np.sqrt(signal * np.concatenate(cells) + np.concatenate([[0.0], 1.0 / width**2]))

    def cost(scaled: FloatArray) -> tuple[float, FloatArray]:
        factors, slopes = scaled * unit, np.zeros(len(scaled))
        left, right = factors[1 : n + 2], factors[n + 2 :]
        of_cells = values, base, rows, columns, factors[0], left, right, 1.0 / scale
        loglik = rates_given(*of_cells, *prior, slopes, rates)
        drawn, apart = factors[1:] / width, (left[:n] - right[:n]) / BALANCE
        slopes[1:] -= drawn / width
        slopes[1 : n + 1] -= apart / BALANCE
        slopes[n + 2 : 2 * n + 2] += apart / BALANCE
        return 0.5 * float((drawn * drawn).sum() + (apart * apart).sum()) - loglik, -slopes * unit

    start = np.zeros(2 * n + 3)
    start[0] = np.log(expected / np.exp(base).sum())
    steps = min(MOST_STEPS, max(10, MOST_CELLS // (len(values) * len(prior[0]))))
    least, _ = cost(minimised(cost, start / unit, steps, TOLERANCE).point)
    return Posterior(rates, -least)
