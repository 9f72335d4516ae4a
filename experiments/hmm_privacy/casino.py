"""One data set of the casino: models learned with and without privacy, compared on sequences that none has seen.

The paper does not name its data. Its table of emissions is that of the occasionally dishonest casino of Durbin, Eddy,
Krogh and Mitchison (Biological Sequence Analysis, 3.2), so that is used; with three states there is a second loaded
die, which favours the one.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np

from dphmm.markov import CategoricalHMM
from dphmm.markov.hidden import Parameters, expected_counts, observations
from dphmm.types import FloatArray, IntArray
from experiments.experiment import Cell, Row, bits_of
from experiments.hmm_privacy.methods import (
    BETTER,
    CHAIN,
    EVEN,
    EVERY,
    INDEPENDENT,
    ITERATIONS,
    LAST,
    NO_DATA,
    NORMAL,
    NOT_PRIVATE,
    TRUTH,
    Method,
    Start,
    chain_of_symbols,
    described,
    even_symbols,
    event_of,
    independent_symbols,
    normally,
    number,
    privately,
    true_total,
)

SYMBOLS = 6
HELD_OUT = 100

_FAIR, _SIXES, _ONES = [1 / 6] * 6, [0.1] * 5 + [0.5], [0.5] + [0.1] * 5
_MOVES = {
    2: [[0.95, 0.05], [0.1, 0.9]],
    3: [[0.9, 0.05, 0.05], [0.1, 0.85, 0.05], [0.1, 0.05, 0.85]],
}


def casino(states: int) -> Start:
    """The casino with one loaded die, or with two; its nights begin in its stationary distribution."""
    transition = np.array(_MOVES[states])
    emission = np.array([_FAIR, _SIXES, _ONES][:states])
    rest = Parameters(np.full(states, 1 / states), transition, emission)
    return Start(rest.stationary, transition, emission)


def rolled(truth: Start, n: int, length: int, random: np.random.Generator) -> IntArray:
    """Sequences (n, length) of symbols."""
    states = _picked(np.broadcast_to(truth.initial, (n, len(truth.initial))), random)
    symbols = np.empty((n, length), dtype=np.int64)
    for position in range(length):
        if position:
            states = _picked(truth.transition[states], random)
        symbols[:, position] = _picked(truth.emission[states], random)
    return symbols


def half_right(truth: Start, random: np.random.Generator) -> Start:
    """A public start: half the truth, half rows drawn at random."""
    n, v = truth.emission.shape
    transition = (truth.transition + random.dirichlet(np.ones(n), n)) / 2
    emission = (truth.emission + random.dirichlet(np.ones(v), n)) / 2
    return Start(truth.initial, transition, emission)


def measure(cell: Cell, epsilons: tuple[str, ...], seed: np.random.SeedSequence) -> list[Row]:
    """Rows of one data set: normal training, no data at all, every method at every epsilon, and what "last" loses."""
    states, length, n = number(cell, "states"), number(cell, "length"), number(cell, "sequences")
    draws, removals = number(cell, "draws"), number(cell, "removals")
    random = np.random.default_rng(seed)
    truth = casino(states)
    sequences, held_out = rolled(truth, n, length, random), rolled(truth, HELD_OUT, length, random)
    start = half_right(truth, random)
    judge = Judge(normally(start, sequences), held_out)
    rows: list[Row] = [{"method": NORMAL, **judge(judge.normal)}, {"method": TRUTH, **judge(truth.model())}]
    unlearned = judge(start.model())
    for epsilon in epsilons:
        free: Row = {"method": NO_DATA, "guarantee": "pure", "epsilon": float(epsilon), "true_epsilon": 0.0}
        rows.append({**free, "delta": 0.0, **unlearned})
        rows.append({**free, "delta": 0.0, "method": EVEN, **judge.as_likely(even_symbols(SYMBOLS))})
        for draw in range(draws):
            spent = true_total(Fraction(epsilon), length)
            given = (list(sequences), SYMBOLS, spent, length)
            alone = independent_symbols(*given, bits_of(seed, INDEPENDENT, epsilon, draw))
            chained, event = chain_of_symbols(*given, bits_of(seed, CHAIN, epsilon, draw))
            for name, learned, cost in ((INDEPENDENT, alone, event_of(alone)), (CHAIN, chained, event)):
                drawn: Row = {"method": name, "epsilon": float(epsilon), "draw": draw}
                rows.append({**drawn, **described(cost), **judge.as_likely(learned)})
        for method in _methods(cell):
            for draw in range(draws):
                bits = bits_of(seed, method.name, epsilon, draw)
                spent = Fraction(epsilon) if method.is_the_papers else true_total(Fraction(epsilon), length)
                learned = privately(method, start, sequences, spent, bits)
                named: Row = {"method": method.name, "epsilon": float(epsilon), "draw": draw}
                rows.append({**named, **described(event_of(learned)), **judge(learned)})
    for removed in random.choice(n, removals, replace=False):
        rows.append({"method": LAST.name, "guarantee": NOT_PRIVATE, "loss": loss(start, sequences, int(removed))})
    return rows


class Judge:
    """Compares models with the normally trained one on held-out sequences (n, L)."""

    def __init__(self, normal: CategoricalHMM, held_out: IntArray) -> None:
        self.normal = normal
        self._shape = held_out.shape
        self._flat, self._lengths = held_out.ravel(), [held_out.shape[1]] * len(held_out)
        self._path = normal.predict(self._flat, self._lengths)
        self._loglik = normal.score(self._flat, self._lengths) / held_out.size

    def as_likely(self, model: CategoricalHMM) -> Row:
        """Of a model of other states the log-likelihoods alone: there is no path to compare."""
        loglik = model.score(self._flat, self._lengths) / self._flat.size
        return {"similarity": None, "paths": None, "loglik": loglik, "change": loglik - self._loglik}

    def __call__(self, model: CategoricalHMM) -> Row:
        """Shares of equal positions and of wholly equal paths, and log-likelihoods per symbol."""
        path = model.predict(self._flat, self._lengths)
        equal = (aligned(path, self._path, len(model.startprob_)) == self._path).reshape(self._shape)
        loglik = model.score(self._flat, self._lengths) / self._flat.size
        return {
            "similarity": float(equal.mean()),
            "paths": float(equal.all(axis=1).mean()),
            "loglik": loglik,
            "change": loglik - self._loglik,
        }


def aligned(path: IntArray, other: IntArray, states: int) -> IntArray:
    """``path`` with its states renamed so that it agrees with ``other`` as often as possible: names mean nothing."""
    together = np.bincount(path * states + other, minlength=states * states).reshape(states, states)
    own = np.arange(states)
    best = max(permutations(range(states)), key=lambda names: int(together[own, list(names)].sum()))
    return np.array(best, dtype=np.int64)[path]


def loss(start: Start, sequences: IntArray, removed: int) -> float:
    """What "last" loses when one sequence is removed, in multiples of its nominal epsilon.

    Laplace noise of scale L/epsilon on counts that differ by d in L1 loses, at its worst output, epsilon·d/L.
    """
    with_it = _last_counts(start, sequences)
    without = _last_counts(start, np.delete(sequences, removed, axis=0))
    return float(np.abs(with_it - without).sum() / sequences.shape[1])


def _last_counts(start: Start, sequences: IntArray) -> FloatArray:
    """The expected transitions and emissions of the last iteration, before its noise."""
    flat, lengths = sequences.ravel(), [sequences.shape[1]] * len(sequences)
    learned = start.model(n_iter=ITERATIONS - 1, tol=-np.inf).fit(flat, lengths)
    counts = expected_counts(learned.parameters, observations(flat, lengths, SYMBOLS))
    return np.concatenate([np.ravel(counts.transition), np.ravel(counts.emission)])


def _methods(cell: Cell) -> tuple[Method, ...]:
    """The paper's invalid experiment is not repeated for many people: it says nothing new there, and takes long."""
    return (LAST, EVERY, *BETTER) if cell["removals"] else (EVERY, *BETTER)


def _picked(rows: FloatArray, random: np.random.Generator) -> IntArray:
    """One column for each row of probabilities (n, k)."""
    passed = random.random(len(rows))[:, None] >= np.cumsum(rows, axis=1)
    return np.asarray(np.minimum(passed.sum(axis=1), rows.shape[1] - 1))
