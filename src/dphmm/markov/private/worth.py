"""The worth of a private fit, predicted before it: from public numbers and simulated people, never from data.

A truth is drawn from a public law, sticky chains and rows of symbols of any kind, or is the public start with as much
at random; the tables that people of this number and length would give get the noise of the fit, and held-out sequences
of the same truth judge what is learned. The truth of the data may be of another kind: the figures compare methods.

Proof: docs/proofs/noisy-tables.md.
"""

from __future__ import annotations

import numpy as np

from dphmm._checks import whole
from dphmm.markov.hidden.hmm import CategoricalHMM
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private.candidates import most_probable
from dphmm.markov.private.ngrams import WordTable, chances, histogram_for
from dphmm.markov.private.noisy_table import invented, rates_of
from dphmm.types import FloatArray

EVEN, INDEPENDENT, CHAIN, START, HIDDEN = "even symbols", "independent symbols", "chain", "public start", "hidden model"
#: Truths that are drawn; sequences that judge each, and their greatest length.
_TRUTHS, _JUDGES, _LONGEST = 8, 100, 30
_SEED, _STARTS, _STEPS = 57, 3, 200


def expected_worth(
    n_symbols: int,
    epsilon: float,
    max_length: int,
    about: int,
    n_states: int | None = None,
    start: Parameters | None = None,
) -> dict[str, float]:
    """The mean log-likelihood per symbol of held-out invented sequences under what each method learns.

    Parameters
    ----------
    n_symbols : the number of symbols, or of states that can be seen.
    epsilon, max_length : of the fit, for people of one sequence that are added or removed.
    about : the number of people, on the owner's word.
    n_states : hidden states; None for a chain of what is seen.
    start : the public start of a hidden model, if it has one.

    Raises InvalidInput for an ``about`` that is not a whole number from 1 on.

    Examples
    --------
    >>> found = expected_worth(3, 1.0, 10, 200)
    >>> sorted(found), found["chain"] > found["independent symbols"] > found["even symbols"]
    (['chain', 'even symbols', 'independent symbols'], True)
    """
    people, random = whole(about, "about", 1), np.random.default_rng(_SEED)
    methods = [EVEN, INDEPENDENT, CHAIN, *([START] if start is not None else []), *([HIDDEN] if n_states else [])]
    worths: dict[str, list[float]] = {method: [] for method in methods}

    def noisy(truth: Parameters, histogram: WordTable) -> tuple[FloatArray, float]:
        words = max_length - histogram.order + 1
        means = people * words * histogram.of_words(chances(truth, histogram.order))
        return invented(means, words / epsilon, random), words / epsilon

    for _ in range(_TRUTHS):
        truth = _invented(n_symbols, n_states, start, random)
        held_out = _model(truth)
        judges = [held_out.sample(min(max_length, _LONGEST), random_state=random)[0].ravel() for _ in range(_JUDGES)]
        learned = {EVEN: _alone(np.full(n_symbols, 1.0 / n_symbols))}
        values, scale = noisy(truth, WordTable(n_symbols, 1))
        symbols = np.arange(n_symbols)
        (rates,) = rates_of(values[None], np.full(n_symbols, n_symbols), symbols, n_symbols, scale)
        learned[INDEPENDENT] = _alone(rates / rates.sum())
        values, scale = noisy(truth, WordTable(n_symbols, 2))
        (rates,) = rates_of(values[None], np.repeat(symbols, n_symbols), np.tile(symbols, n_symbols), n_symbols, scale)
        table = rates.reshape(n_symbols, n_symbols)
        moves, first = table / table.sum(axis=1, keepdims=True), table.sum(axis=1) / table.sum()
        learned[CHAIN] = Parameters(first, moves, np.eye(n_symbols))
        if start is not None:
            learned[START] = start
        if n_states is not None:
            drawn, public = start is None and n_symbols > 1, "" if start is None else "ste"
            histogram = histogram_for(n_states, n_symbols, max_length, epsilon, people, not drawn)
            values, scale = noisy(truth, histogram)
            begins = [start] if start is not None else [_drawn(n_states, n_symbols, random) for _ in range(_STARTS)]
            asked = histogram, scale, _STEPS, 1e-3, drawn and histogram.order > 1
            learned[HIDDEN] = most_probable(values, begins, public, "ste", *asked).parameters
        for method, parameters in learned.items():
            worths[method].append(_model(parameters).score(judges) / sum(map(len, judges)))
    return {method: float(np.mean(values)) for method, values in worths.items()}


def _invented(
    n_symbols: int, n_states: int | None, start: Parameters | None, random: np.random.Generator
) -> Parameters:
    if start is not None:
        n, v = start.emission.shape
        moves = (start.transition + random.dirichlet(np.ones(n), n)) / 2
        truth = Parameters(start.initial, moves, (start.emission + random.dirichlet(np.ones(v), n)) / 2)
    else:
        n = n_symbols if n_states is None else n_states
        stay = random.uniform(0.3, 0.95, n)
        moves = np.diag(stay) + (1 - stay)[:, None] * random.dirichlet(np.ones(n), n)
        seen = np.eye(n) if n_states is None else random.dirichlet(np.full(n_symbols, 0.5), n)
        truth = Parameters(np.full(n, 1.0 / n), moves, seen)
    return Parameters(truth.stationary, truth.transition, truth.emission)


def _drawn(n: int, v: int, random: np.random.Generator) -> Parameters:
    rows = (random.dirichlet(np.ones(size), count) for count, size in ((1, n), (n, n), (n, v)))
    initial, moves, seen = rows
    return Parameters(initial[0], moves, seen)


def _alone(symbols: FloatArray) -> Parameters:
    return Parameters(np.ones(1), np.ones((1, 1)), symbols[None])


def _model(parameters: Parameters) -> CategoricalHMM:
    hmm = CategoricalHMM(parameters.n_states, n_features=parameters.n_symbols)
    hmm.startprob_, hmm.transmat_, hmm.emissionprob_ = parameters.initial, parameters.transition, parameters.emission
    return hmm


def worth_words(worths: dict[str, float]) -> str:
    """The figures in one line, the best first, and what to fit instead where something else is better."""
    ranked = sorted(worths, key=lambda method: -worths[method])
    figures = ", ".join(f"{method} {worths[method]:.3f}" for method in ranked)
    asked = HIDDEN if HIDDEN in worths else CHAIN
    better = ranked[0] != asked and worths[ranked[0]] > worths[asked] + 0.005
    remedy = f"; {ranked[0]} is better here than the {asked}" if better else ""
    return f"of invented people, log-likelihood of a symbol: {figures}{remedy}"
