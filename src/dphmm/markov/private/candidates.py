"""Candidates for one noisy histogram, and the choice among them: a function of the histogram and of public numbers.

Hidden models climb from several starts; the most probable one stays. If every parameter was drawn, a chain of the
symbols themselves is a candidate, too: its states are the symbols. The one under which the histogram is more probable
is taken, each with its prior. A public start gives its states a meaning, so no chain takes its place.

Proof: docs/proofs/noisy-tables.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private.ngrams import (
    PSEUDO_COUNTS,
    Climb,
    WordTable,
    chances,
    likeliest,
    log_density,
    of_symbols,
    prior_rows,
)
from dphmm.markov.private.noisy_table import posterior
from dphmm.types import FloatArray


class Chain(NamedTuple):
    """A chain of the symbols as a hidden model that shows its states, and the log-probability of its table."""

    parameters: Parameters
    evidence: float


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
    seen = chain_of(table, histogram.stays, wide)
    if seen.evidence <= evidence_of(climbs[best], table, histogram, wide, prior_rows(begins[best], public)):
        return climbs[best]
    return Climb(seen.parameters, float(table.sum()), [seen.evidence], True)


def of_pairs(values: FloatArray, histogram: WordTable, scale: float) -> tuple[FloatArray, float]:
    """The table of symbols that leave and stay (V, 2), or of pairs (V, V), and the scale of its noise.

    Pairs are sums of words: the scale is that of Laplace noise of their variance.
    """
    v = histogram.n_symbols
    if histogram.stays:
        return values.reshape(v, 2), scale
    cells = values.reshape(v, v, -1)
    return cells.sum(axis=2), scale * cells.shape[2] ** 0.5


def chain_of(table: FloatArray, stays: bool, scale: float) -> Chain:
    """The chain of the symbols by the rates of `noisy_table`.

    Of symbols that leave and stay: from each of them to another one as often as that one is left, but for a factor.
    """
    n = len(table)
    rows, columns = np.repeat(np.arange(n), table.shape[1]), np.tile(np.arange(n), n)
    if stays:
        # Leaving goes to one more state, elsewhere.
        fitted = posterior(table.ravel(), np.zeros(2 * n), rows, np.tile([n, n + 1], n), n + 1, scale)
        leaving, staying = fitted.rates.reshape(n, 2).T
        others = np.where(np.eye(n, dtype=np.bool_), 0.0, leaving)
        rates = others * (leaving / others.sum(axis=1))[:, None] + np.diag(staying)
    else:
        fitted = posterior(table.ravel(), np.zeros(n * n), rows, np.where(rows == columns, n, columns), n, scale)
        rates = fitted.rates.reshape(n, n)
    totals = rates.sum(axis=1)
    return Chain(Parameters(totals / totals.sum(), rates / totals[:, None], np.eye(n)), fitted.evidence)


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
