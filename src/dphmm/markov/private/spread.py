"""The spread of a private fit by a parametric bootstrap: fits to invented tables of what was fitted.

It is a spread and no interval: it shows how far noise and sampling scatter such a fit, and nothing of its bias, which
the prior has where the noise is wide. Nothing of the data but the model enters, so it costs no privacy.

Proof: docs/proofs/noisy-tables.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dphmm._checks import whole
from dphmm.accounting.event import LearningEvent
from dphmm.errors import InvalidInput
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.model import MarkovModel
from dphmm.markov.private.candidates import chain_of, of_pairs
from dphmm.markov.private.hidden import N_ITER, TOL, public_starts
from dphmm.markov.private.labelled import learned_rows, open_cells
from dphmm.markov.private.ngrams import WordTable, chances, likeliest
from dphmm.markov.private.noisy_table import invented, rates_of
from dphmm.types import FloatArray

#: What an invented table is drawn from, and the numbers that are learned of one.
Fit = tuple[FloatArray, Callable[[FloatArray], FloatArray]]


def spread(model: Any, event: LearningEvent, about: int, draws: int = 20, seed: int = 0, start: Any = None) -> Any:
    """The standard deviation of every probability that a private fit has learned.

    For a chain (moves,), in the order of ``model.transition.data``; for a hidden model `Parameters`, whose arrays
    initial (S,), transition (S, S) and emission (S, V) are standard deviations.

    Parameters
    ----------
    model, event : of a private fit: a `MarkovModel`, or a `CategoricalHMM` from words or from known states.
    about : the number of people, on the owner's word; each is taken to have as many positions as may count.
    draws, seed : the number of simulated tables, and the seed of their numbers: public.
    start : the hidden model before its fit, with its public start. Without it climbs begin at the model itself.

    Raises InvalidInput for an event of another fit, and for numbers that are none.

    Examples
    --------
    >>> import dphmm
    >>> from dphmm.markov.private import fit_chain, spread
    >>> model, event = fit_chain([[0, 1, 1]] * 40, 2, 1, 3, bits=dphmm.ReplayBits(1))
    >>> spread(model, event, 40).shape
    (4,)
    """
    people, times = whole(about, "about", 1), whole(draws, "draws", 2, 10_000)
    random, scale = np.random.default_rng(whole(seed, "seed", 0)), float(event.parts[0].scale)
    if chain := isinstance(model, MarkovModel):
        means, learned = _of_chain(model, event, scale)
    else:
        means, learned = _of_hidden(model, event, model if start is None else start, scale)
    tables = [invented(people * means, scale, random) for _ in range(times)]
    deviations = np.asarray(np.std([learned(table) for table in tables], axis=0, ddof=1))
    if chain:
        return deviations
    n, v = model.parameters.emission.shape
    initial, moves, seen = np.split(deviations, [n, n + n * n])
    return Parameters(initial, moves.reshape(n, n), seen.reshape(n, v))


def _of_chain(model: MarkovModel, event: LearningEvent, scale: float) -> Fit:
    part, moves, n = event.parts[0], model.transition, model.n_states
    if len(event.parts) != 1 or not part.name.startswith("transitions") or event.max_length < 2:
        raise InvalidInput("event", part.name, "that of a private fit of a chain")
    rows, columns = np.repeat(np.arange(n), np.diff(moves.indptr)), moves.indices.astype(np.int64)
    # The move of an end to itself is public.
    drawn = rows != model.provenance.get("end", n)
    resting = Parameters(model.initial, moves, np.eye(n)).stationary
    if not drawn.all():
        resting = _visits(model, event.max_length) / event.max_length
    means = (event.max_length - 1) * (resting[rows] * moves.data)[drawn]

    def learned(values: FloatArray) -> FloatArray:
        rates = np.ones(len(rows))
        (rates[drawn],) = rates_of(values[None], rows[drawn], columns[drawn], n, scale)
        return np.asarray(rates / np.bincount(rows, weights=rates, minlength=n)[rows])

    return means, learned


def _visits(model: MarkovModel, length: int) -> FloatArray:
    """The expected visits of each state (N,) by a sequence of at most so many positions, before its end."""
    law, total = model.initial, np.zeros(model.n_states)
    for _ in range(length):
        total += law
        law = law @ model.transition
    return total


def _of_hidden(model: Any, event: LearningEvent, start: Any, scale: float) -> Fit:
    name, fitted, positions = event.parts[0].name, model.parameters, event.max_length
    begin = fitted if start is model else public_starts(start, 1)[0]
    if name == "counts of known states":
        cells, rest = open_cells(begin, model.params), fitted.stationary[:, None]
        blocks = (fitted.initial, (positions - 1) * rest * fitted.transition, positions * rest * fitted.emission)
        return np.concatenate([np.ravel(block) for block in blocks])[cells], lambda values: _flat(
            learned_rows(values, cells, begin, scale)
        )
    histogram = WordTable.named(name if len(event.parts) == 1 else "several", fitted.n_symbols)
    means = (positions - histogram.order + 1) * histogram.of_words(chances(fitted, histogram.order))
    # Drawn emissions never come to this by a climb.
    if set("ste") <= set(model.init_params) and np.array_equal(fitted.emission, np.eye(fitted.n_symbols)):

        def of_chain(values: FloatArray) -> FloatArray:
            table, wide = of_pairs(values, histogram, scale)
            return _flat(chain_of(table, histogram.stays, wide))

        return means, of_chain
    public = "" if start is model else "".join(letter for letter in "ste" if letter not in start.init_params)
    climb = begin, public, model.params, histogram, scale, N_ITER, TOL
    return means, lambda values: _flat(likeliest(values, *climb).parameters)


def _flat(parameters: Parameters) -> FloatArray:
    return np.concatenate([parameters.initial, np.ravel(parameters.transition), parameters.emission.ravel()])
