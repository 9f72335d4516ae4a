"""A hidden Markov model from a noisy histogram of words: the most probable one, given a public prior.

The true count of word w is near ``total * P(w)``, with the variance of a Poisson count; the noise is discrete Laplace
with a known scale. Their sum has a density in closed form. The prior are pseudo-counts for every row: of moves at the
public start, of emissions in part at the start and in part at independent symbols. The law of the state where a word
begins is estimated like the others: words begin anywhere in a sequence, which need not be stationary. ``total`` is a
parameter, too: the number of people is never used.

Proof: docs/proofs/noisy-tables.md.
"""

from __future__ import annotations

from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import log_ndtr

from dphmm.errors import InvalidInput
from dphmm.markov.hidden.parameters import Parameters
from dphmm.markov.private.descent import minimised
from dphmm.markov.private.sensitivity import Kept
from dphmm.types import FloatArray, IntArray

#: Most cells V**o that are noised and held.
MOST_CELLS = 2**22
#: Pseudo-counts of every row.
PSEUDO_COUNTS = 20.0
#: The share of a public row in the prior; the rest is even, of moves as likely to stay as not.
TRUST = 1 / 3
#: How surely a state shows its symbol, and stays, where a climb begins apart.
APART = 0.9
#: Words of two symbols are worth their noise where so many people, times epsilon, are there for each symbol; longer
#: words where so many are there for each cell.
PEOPLE_PER_SYMBOL, PEOPLE_PER_CELL = 30, 10
#: What an event calls the histogram of symbols that stay and leave.
_STAYS = "symbols that stay and leave"
#: Logs of the total are kept below this.
HIGHEST = 40.0
#: Logs are taken of at least this.
LEAST = 1e-300


Numbers = TypeVar("Numbers", IntArray, FloatArray)


class WordTable(NamedTuple):
    """All words of ``order`` symbols; with ``stays`` how often each symbol is followed by another one, and by itself.

    Its cells are sums of those of words, which have the last symbol fastest: no sensitivity becomes larger.
    """

    n_symbols: int
    order: int
    stays: bool = False

    @property
    def name(self) -> str:
        """The name in an event."""
        return _STAYS if self.stays else f"{self.order}-grams"

    @classmethod
    def named(cls, name: str, n_symbols: int) -> WordTable:
        """The one that an event calls so. Raises InvalidInput for another name."""
        order, words, _ = name.partition("-grams")
        if name != _STAYS and not words:
            raise InvalidInput("event", name, "that of words, or of known states")
        return cls(n_symbols, 2, True) if name == _STAYS else cls(n_symbols, int(order))

    @property
    def n_cells(self) -> int:
        """The number of cells that get noise."""
        return 2 * self.n_symbols if self.stays else self.n_symbols**self.order

    def of_words(self, values: Numbers) -> Numbers:
        """Sums (cells,) of numbers (V**order,) of words."""
        if not self.stays:
            return values
        table = values.reshape(self.n_symbols, self.n_symbols)
        stays = table.diagonal()
        return np.stack([table.sum(axis=1) - stays, stays], axis=1).ravel()

    def to_words(self, values: FloatArray) -> FloatArray:
        """For each word (V**order,) the number of its cell."""
        if not self.stays:
            return values
        leaves, stays = values.reshape(self.n_symbols, 2).T
        return np.where(np.eye(self.n_symbols, dtype=np.bool_), stays[:, None], leaves[:, None]).ravel()


class Climb(NamedTuple):
    """The end of a climb to the most probable parameters.

    total : the number of words. history : the log of the posterior density at each step, but for a constant.
    """

    parameters: Parameters
    total: float
    history: list[float]
    converged: bool


def check_cells(histogram: WordTable) -> None:
    """Refuse, from public numbers, words that are too many."""
    v, order = histogram.n_symbols, histogram.order
    if v**order > MOST_CELLS:
        raise InvalidInput("order", order, f"an order with at most {MOST_CELLS} cells: {v} symbols make {v}**{order}")


def histogram_for(
    n_states: int, n_symbols: int, max_length: int, epsilon: float, about: int | None, public: bool
) -> WordTable:
    """The histogram, of words of at most 4 symbols, from public numbers alone.

    With ``about`` people, as their owner states: the longest words that enough of them are there for. Where that is
    none: single symbols, of which no move is learned, if a ``public`` start says something of the moves, and else the
    symbols that stay and leave. Without ``about``: the shortest words from 2 on whose histogram has as many free cells
    as the model has parameters.
    """
    if about is None:
        free = n_states * (n_states - 1) + n_states * (n_symbols - 1)
        order = next((o for o in (2, 3) if n_symbols ** (o - 1) * (n_symbols - 1) >= free), 4)
        return WordTable(n_symbols, max(2, min(order, max_length)))
    needed = {4: PEOPLE_PER_CELL * n_symbols**4, 3: PEOPLE_PER_CELL * n_symbols**3, 2: PEOPLE_PER_SYMBOL * n_symbols}
    order = next((o for o, people in needed.items() if people <= about * epsilon), 1)
    if order == 1 and not public and max_length > 1:
        return WordTable(n_symbols, 2, stays=True)
    return WordTable(n_symbols, max(1, min(order, max_length)))


def count_ngrams(kept: Kept, n_symbols: int, order: int) -> IntArray:
    """The count of each word of ``order`` symbols inside a sequence: (V**order,), the last symbol fastest."""
    n_words = max(len(kept.symbols) - order + 1, 0)
    words = np.zeros(n_words, dtype=np.int64)
    for place in range(order):
        words = words * n_symbols + kept.symbols[place : place + n_words]
    inside = np.ones(n_words, dtype=np.bool_)
    # A word that begins in the last order - 1 places of a sequence reaches into the next one.
    for back in range(1, order):
        late = kept.bounds[1:] - back
        inside[late[(late >= 0) & (late < n_words)]] = False
    return np.bincount(words[inside], minlength=n_symbols**order).astype(np.int64)


def likeliest(
    values: FloatArray,
    start: Parameters,
    public: str,
    letters: str,
    histogram: WordTable,
    scale: float,
    n_iter: int,
    tol: float,
) -> Climb:
    """The most probable parameters given noisy counts ``values`` (cells,) of a histogram.

    start : public parameters, where the climb begins; a zero stays zero.
    public : letters of the parameters that the prior holds on to; the others were drawn, and only begin there.
    letters : of "s", "t" and "e" those that are learned; the others stay.
    scale : of the discrete Laplace noise, in counts.
    n_iter, tol : at most so many evaluations; a step that gains less per word ends it.
    """
    blocks = dict(zip("ste", prior_rows(start, public), strict=True))
    tables = {letter: np.atleast_2d(table) for letter, table in zip("ste", _tables(start), strict=True)}
    for letter in public:
        if letter in letters:
            tables[letter] = blocks[letter]
    places = {letter: np.nonzero(tables[letter]) for letter in "ste" if letter in letters}
    ends = np.cumsum([len(place[0]) for place in places.values()])

    def unpacked(point: FloatArray) -> dict[str, FloatArray]:
        by_letter = dict(tables)
        for (letter, place), logs in zip(places.items(), np.split(point[1:], ends[:-1]), strict=True):
            rows = np.full(tables[letter].shape, -np.inf)
            rows[place] = logs
            by_letter[letter] = shares(rows)
        return by_letter

    def cost(point: FloatArray) -> tuple[float, FloatArray]:
        now, total = unpacked(point), float(np.exp(min(point[0], HIGHEST)))
        forward, backward = _passes(now["s"][0], now["t"], now["e"], histogram.order)
        chance = histogram.of_words(forward[-1].sum(axis=1))
        logs, slopes = log_density(values, total * chance, scale)
        weights = histogram.to_words(total * slopes)
        moves = dict(zip("ste", _slopes(weights, forward, backward, now["t"], now["e"]), strict=True))
        value, gradient = float(logs.sum()), [np.array([total * float((slopes * chance).sum())])]
        for letter, place in places.items():
            # Of log-probabilities, each row of which is divided by its sum.
            counts = moves[letter] + PSEUDO_COUNTS * blocks[letter]
            value += PSEUDO_COUNTS * float(
                (blocks[letter][place] * np.log(np.maximum(now[letter][place], LEAST))).sum()
            )
            gradient.append((counts - now[letter] * counts.sum(axis=1, keepdims=True))[place])
        return -value, -np.concatenate(gradient)

    guess = np.log(max(float(values.sum()), scale * len(values) / 3))
    begin = np.concatenate([[guess], *(np.log(tables[letter][place]) for letter, place in places.items())])
    minimum = minimised(cost, begin, n_iter, tol)
    last, total = unpacked(minimum.point), float(np.exp(min(minimum.point[0], HIGHEST)))
    learned = Parameters(last["s"][0], last["t"], last["e"])
    return Climb(learned, total, [-value for value in minimum.values], minimum.settled)


def of_symbols(values: FloatArray, start: Parameters, public: str) -> Parameters:
    """A second start of a climb if emissions were drawn: each state shows one of the commonest symbols of the table.

    From drawn rows a climb often ends at states that are all alike, however informative the table.
    """
    n, v = start.emission.shape
    commonest = np.argsort(-values.reshape(v, -1).sum(axis=1), kind="stable")[np.arange(n) % v]
    moves = start.transition if "t" in public else APART * np.eye(n) + (1.0 - APART) / n
    return Parameters(start.initial, moves, APART * np.eye(v)[commonest] + (1.0 - APART) / v)


def shares(logs: FloatArray) -> FloatArray:
    """Rows that sum to 1, from their logs but for a constant each."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _tables(parameters: Parameters) -> tuple[FloatArray, FloatArray, FloatArray]:
    return parameters.initial, parameters.transition, parameters.emission


def prior_rows(start: Parameters, public: str) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The rows that the pseudo-counts are of: even or sticky where nothing is public."""
    initial, transition, emission = (np.atleast_2d(table) for table in _tables(start))
    even = [(table > 0) / (table > 0).sum(axis=1, keepdims=True) for table in (initial, transition, emission)]
    sticky = even[1] + np.diag(np.diag(transition) > 0)
    even[1] = sticky / sticky.sum(axis=1, keepdims=True)
    held = (("s", initial, even[0]), ("t", transition, even[1]), ("e", emission, even[2]))
    first, moves, seen = (TRUST * table + (1.0 - TRUST) * plain if a in public else plain for a, table, plain in held)
    return first, moves, seen


def chances(parameters: Parameters, order: int) -> FloatArray:
    """P(word) of all words (V**order,), the last symbol fastest."""
    forward, _ = _passes(parameters.initial, parameters.transition, parameters.emission, order)
    return np.asarray(forward[-1].sum(axis=1))


def log_density(values: FloatArray, means: FloatArray, scale: float) -> tuple[FloatArray, FloatArray]:
    """The log-density of noisy counts (m,) around means (m,), and its slope in the mean.

    A normal law with the mean as its variance, at least 1, plus Laplace noise.
    """
    variance = np.maximum(means, 1.0)
    deviation = np.sqrt(variance)
    away, wide = (values - means) / deviation, deviation / scale
    above, below = away * wide + log_ndtr(-away - wide), -away * wide + log_ndtr(away - wide)
    logs = np.logaddexp(above, below) + 0.5 * wide * wide - np.log(2.0 * scale)
    by_mean = np.tanh(0.5 * (below - above)) / scale
    # The density f of the sum solves the heat equation in the variance, and f - scale**2 f'' is the normal density.
    normal = np.exp(-0.5 * away * away - 0.5 * np.log(2.0 * np.pi * variance) - logs)
    return logs, by_mean + np.where(means > 1.0, (1.0 - normal) / (2.0 * scale * scale), 0.0)


def _passes(
    initial: FloatArray, transition: FloatArray, emission: FloatArray, order: int
) -> tuple[list[FloatArray], list[FloatArray]]:
    """forward[t] (V**(t+1), S): a row for each word of t + 1 symbols; backward[t] (V**t, S) for what follows."""
    n = len(initial)
    forward, backward = [emission.T * initial], [np.ones((1, n))]
    for _ in range(order - 1):
        forward.append(((forward[-1] @ transition)[:, None, :] * emission.T[None]).reshape(-1, n))
        seen = emission.T[:, None, :] * backward[-1][None]
        backward.append(seen.reshape(-1, n) @ transition.T)
    return forward, backward


def _slopes(
    weights: FloatArray,
    forward: list[FloatArray],
    backward: list[FloatArray],
    transition: FloatArray,
    emission: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Slopes of ``weights @ chance`` in the logs of the parameters: starts (1, S), moves (S, S), emissions (S, V)."""
    n, v = emission.shape
    order = len(forward)
    moves, emissions = np.zeros((n, n)), np.zeros((v, n))
    for t in range(order):
        before, after = forward[t], backward[order - 1 - t]
        here = before * (weights.reshape(len(before), len(after)) @ after)
        emissions += here.reshape(-1, v, n).sum(axis=0)
        if t == 0:
            starts = here.sum(axis=0)
        if t + 1 < order:
            follows = emission.T[:, None, :] * backward[order - 2 - t][None]
            moves += before.T @ (weights.reshape(len(before), -1) @ follows.reshape(-1, n))
    return starts[None], moves * transition, emissions.T
