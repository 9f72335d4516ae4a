"""Candidates for one noisy histogram, and the choice among them: a function of the histogram and of public numbers.

Hidden models climb from several starts; the most probable one stays. If every parameter was drawn, a chain of the
symbols themselves is a candidate, too: its states are the symbols. It is taken where the histogram is far more probable
under it, each at its likeliest parameters and with the prior of the climbs. A public start gives its states a meaning,
so no chain takes its place.

Proof: docs/proofs/noisy-tables.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private.descent import minimised
from dphmm.markov.private.ngrams import (
    HIGHEST,
    LEAST,
    PSEUDO_COUNTS,
    Climb,
    WordTable,
    chances,
    likeliest,
    log_density,
    of_symbols,
    prior_rows,
    shares,
)
from dphmm.markov.private.noisy_table import posterior
from dphmm.types import FloatArray

#: The log of how many times as probable a table must be under a chain. Of little data a hidden model loses less.
#: Source: Kass and Raftery, Bayes factors, JASA 90 (1995): strong evidence begins at 20.
STRONG = float(np.log(20.0))


def most_probable(
    values: FloatArray,
    starts: Sequence[Parameters],
    public: str,
    letters: str,
    histogram: WordTable,
    scale: float,
    n_iter: int,
    tol: float,
    chain: bool,
) -> Climb:
    """The best candidate for noisy counts ``values`` (cells,); parameters as in `likeliest`.

    starts : the starts of climbs; if emissions were drawn, one more begins at the commonest symbols.
    chain : True if a chain of the symbols is a candidate. If it is taken, its history is its log-probability alone.
    """
    apart = [] if "e" in public else [of_symbols(values, starts[0], public)]
    begins = [*starts, *apart]
    climbs = [likeliest(values, begin, public, letters, histogram, scale, n_iter, tol) for begin in begins]
    best = max(range(len(begins)), key=lambda k: climbs[k].history[-1])
    if not chain:
        return climbs[best]
    table, wide = of_pairs(values, histogram, scale)
    seen = likeliest_chain(table, histogram.stays, wide, n_iter, tol)
    if seen <= STRONG + evidence_of(climbs[best], table, histogram, wide, prior_rows(begins[best], public)):
        return climbs[best]
    return Climb(chain_of(table, histogram.stays, wide), float(table.sum()), [seen], True)


def of_pairs(values: FloatArray, histogram: WordTable, scale: float) -> tuple[FloatArray, float]:
    """The table of symbols that leave and stay (V, 2), or of pairs (V, V), and the scale of its noise.

    Pairs are sums of words: the scale is that of Laplace noise of their variance.
    """
    v = histogram.n_symbols
    if histogram.stays:
        return values.reshape(v, 2), scale
    cells = values.reshape(v, v, -1)
    return cells.sum(axis=2), scale * cells.shape[2] ** 0.5


def chain_of(table: FloatArray, stays: bool, scale: float) -> Parameters:
    """The chain of the symbols by the rates of `noisy_table`.

    Of symbols that leave and stay: from each of them to another one as often as that one is left, but for a factor.
    """
    n = len(table)
    rows, columns = np.repeat(np.arange(n), table.shape[1]), np.tile(np.arange(n), n)
    if stays:
        # Leaving goes to one more state, elsewhere.
        rates = posterior(table.ravel(), np.zeros(2 * n), rows, np.tile([n, n + 1], n), n + 1, scale).rates
        leaving, staying = rates.reshape(n, 2).T
        others = np.where(np.eye(n, dtype=np.bool_), 0.0, leaving)
        rates = others * (leaving / others.sum(axis=1))[:, None] + np.diag(staying)
    else:
        places = np.where(rows == columns, n, columns)
        rates = posterior(table.ravel(), np.zeros(n * n), rows, places, n, scale).rates.reshape(n, n)
    totals = rates.sum(axis=1)
    return Parameters(totals / totals.sum(), rates / totals[:, None], np.eye(n))


def likeliest_chain(table: FloatArray, stays: bool, scale: float, n_iter: int, tol: float) -> float:
    """The log-probability of such a table under the likeliest chain of the symbols, its prior counted as 0 at its rows.

    The law and the prior are those of a hidden model with a state for each symbol. Of symbols that leave and stay, the
    moves from one to all others are one cell of a row. n_iter, tol : as in `likeliest`.
    """
    n = len(table)
    even = Parameters(np.full(n, 1.0 / n), np.full((n, n), 1.0 / n), np.eye(n))
    prior = WordTable(n, 2, stays).of_words(prior_rows(even, "")[1].ravel()).reshape(n, -1)

    def cost(point: FloatArray) -> tuple[float, FloatArray]:
        total, starts = float(np.exp(min(point[0], HIGHEST))), shares(point[None, 1 : n + 1])[0]
        rows = shares(point[n + 1 :].reshape(prior.shape))
        joint = (starts[:, None] * rows).ravel()
        logs, slopes = log_density(table.ravel(), total * joint, scale)
        counts = (total * slopes * joint).reshape(prior.shape)
        of_starts, of_rows = counts.sum(axis=1) + PSEUDO_COUNTS / n, counts + PSEUDO_COUNTS * prior
        by_rows = of_rows - rows * of_rows.sum(axis=1, keepdims=True)
        gradient = [counts.sum(keepdims=True).ravel(), of_starts - starts * of_starts.sum(), by_rows.ravel()]
        ratios = np.maximum(rows, LEAST) / prior
        apart = float(np.log(np.maximum(n * starts, LEAST)).mean() + (prior * np.log(ratios)).sum())
        return -float(logs.sum()) - PSEUDO_COUNTS * apart, -np.concatenate(gradient)

    begin = np.concatenate([np.zeros(n + 1), np.log(prior).ravel()])
    begin[0] = np.log(max(float(table.sum()), scale * table.size / 3))
    return -minimised(cost, begin, n_iter, tol).values[-1]


def evidence_of(
    climb: Climb, table: FloatArray, histogram: WordTable, scale: float, prior: tuple[FloatArray, ...]
) -> float:
    """The log-probability of such a table under a hidden model, and of its rows as 0 at those of the prior."""
    pairs = WordTable(histogram.n_symbols, 2, histogram.stays)
    logs, _ = log_density(table.ravel(), climb.total * pairs.of_words(chances(climb.parameters, 2)), scale)
    learned, apart = climb.parameters, 0.0
    for expected, rows in zip(prior, (learned.initial[None], learned.transition, learned.emission), strict=True):
        possible = expected > 0
        ratios = expected[possible] / np.maximum(rows[possible], 1e-300)
        apart += float((expected[possible] * np.log(ratios)).sum())
    return float(logs.sum()) - PSEUDO_COUNTS * apart
