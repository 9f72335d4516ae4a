"""Hidden Markov models learned with differential privacy: the methods, their options, budgets and public starts.

Every public check is made before the data are looked at, and nothing of the data but what was noised reaches the model.
The noise of each iteration is decided from public numbers; learning starts from public parameters.

The default method, "ngrams": the histogram of all V**o words of o symbols is published once, with noise in every cell.
Everything after that, the starts, the stopping and the choice among several starts, is computed from the noisy
histogram alone (`dphmm.markov.private.ngrams`).

Proof: docs/proofs/learning.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple, TypedDict, Unpack

import numpy as np
from scipy import sparse

from dphmm._checks import exact_epsilon, exact_number, finite_number, one_of, whole
from dphmm.accounting.event import NOISES, LearningEvent, NoisyCounts, NotPrivateEvent, check_delta, rho_for
from dphmm.errors import InvalidInput
from dphmm.markov.hidden.baum_welch import Monitor
from dphmm.markov.hidden.parameters import (
    ATTRIBUTES,
    Parameters,
    drawn,
    event_of,
    is_learned,
    letters,
    random_generator,
    remember,
    was_fitted,
)
from dphmm.markov.private import sensitivity
from dphmm.markov.private.candidates import most_probable
from dphmm.markov.private.iterations import (
    EVERY,
    LAST,
    NOT_PRIVATE,
    PAPER_ITERATIONS,
    FlatLayout,
    NoisyAnswers,
    PaperAnswers,
    improve,
    paper_every,
    paper_last_not_private,
    paper_parts,
)
from dphmm.markov.private.labelled import count_labelled, learned_rows, open_cells
from dphmm.markov.private.ngrams import WordTable, check_cells, count_ngrams, histogram_for
from dphmm.markov.private.release import PROJECTIONS, noise_for, release
from dphmm.markov.private.sensitivity import (
    Kept,
    RecordBounds,
    expected_counts,
    kept_records,
    l1,
    l2_squared,
    split_sequences,
    unit_of,
)
from dphmm.samplers.entropy import default_bits, is_secure
from dphmm.types import Bits, Exact, IntArray

Event = LearningEvent | NotPrivateEvent
N_STARTS = 10
N_ITER = 200
TOL = 1e-4


class LearnedParameters(NamedTuple):
    """Learned parameters, and what learning them cost. The monitor, if any, is of noisy counts."""

    parameters: Parameters
    event: Event
    monitor: Monitor | None = None


@dataclass(frozen=True)
class Settings:
    """The public options of a fit, checked."""

    epsilon: Fraction
    delta: Fraction
    caps: RecordBounds
    letters: str
    noise: str
    projection: str
    order: int | None
    about: int | None
    iterations: int | None
    shares: tuple[Any, ...] | None
    n_starts: int
    n_iter: int
    tol: float
    bits: Bits
    unit: str

    def event(self, parts: tuple[Any, ...]) -> LearningEvent:
        """The event of these parts."""
        caps = self.caps
        words = is_secure(self.bits)
        return LearningEvent(
            parts, caps.neighbours, caps.max_length, caps.max_sequences, words, self.delta, unit=self.unit
        )


def fit_private(
    hmm: Any,
    X: Any,
    lengths: Any = None,
    *,
    epsilon: Exact,
    max_length: int,
    states: Any = None,
    delta: Exact = 0,
    method: str = "ngrams",
    neighbours: str = "add-remove",
    owners: Any = None,
    max_sequences: int = 1,
    order: int | None = None,
    about: int | None = None,
    iterations: int | None = None,
    noise: str = "laplace",
    budgets: Iterable[Any] | None = None,
    projection: str = "simplex",
    n_starts: int = N_STARTS,
    n_iter: int = N_ITER,
    tol: float = TOL,
    bits: Bits | None = None,
    admit: Callable[[Event], None] | None = None,
) -> Any:
    """Learn ``hmm``'s parameters with differential privacy, and set ``privacy_``; returns ``hmm``.

    A record is all sequences of one owner. Public, and to be chosen without a look at the data: every option, the
    numbers of states and symbols (``n_features``), and the start.

    Parameters
    ----------
    X, lengths : sequences of symbols: an array (m,) or (m, 1) with the lengths of its sequences, or a list (of any
        length, even 0) of sequences. A list of lists is always a list of sequences.
    epsilon, delta : the whole budget; delta only for Gaussian noise.
    max_length : each sequence is cut to its first positions.
    states : the hidden states, in the shape of X, where they are known: then counts are published, by no ``method``.
    method : "ngrams", one noisy histogram of words, then the most probable model given it and the public start. Where
        all is drawn and no ``order`` is given, a chain of the symbols may be far more probable: then
        ``n_states`` becomes their number, and each state shows its own;
        "every-iteration", a fixed number of iterations on noisy expected counts;
        "paper-every-iteration", the paper's, with its nominal epsilon (``privacy_`` has the true total);
        "paper-last-iteration-not-private", the paper's other experiment, which is NOT PRIVATE.
    neighbours, owners, max_sequences : as in ``MarkovModel.fit_private``.
    order : length of the words; by default the shortest whose histogram has as many free cells as the model has, or
        with ``about`` the longest that enough people are there for, or symbols that stay and leave (`histogram_for`).
    about : the number of people, on the owner's word; never counted.
    iterations, noise, budgets : their number, "laplace" or "gaussian", and the share of each (rising by default).
    n_starts, n_iter, tol : of the climbs on the noisy histogram, where they cost nothing; more than one start is
        tried only where something is drawn.
    admit : called with the event before the data are read; its exceptions end the fit (`dphmm.storage.fit_once`).

    Raises InvalidInput for public options and for malformed sequences.
    """
    one_of(method, tuple(METHODS), "method")
    caps = RecordBounds(max_length, max_sequences, neighbours)
    settings = Settings(
        epsilon=exact_epsilon(epsilon),
        delta=exact_number(delta, "delta"),
        caps=caps,
        letters=_letters(hmm.params),
        noise=one_of(noise, NOISES, "noise"),
        projection=one_of(projection, PROJECTIONS, "projection"),
        order=order,
        about=None if about is None else whole(about, "about", 1),
        iterations=iterations,
        shares=None if budgets is None else tuple(budgets),
        n_starts=whole(n_starts, "n_starts", 1, 10_000),
        n_iter=whole(n_iter, "n_iter", 1, 10**6),
        tol=finite_number(tol, "tol"),
        bits=default_bits(bits),
        unit=unit_of(owners),
    )
    _only_for(method, settings)
    if states is not None and (method, order, about) != ("ngrams", None, None):
        raise InvalidInput("states", "known states", f"none for {method}, order or about: known states are counted")

    def read(given: Any, n: int, field: str) -> Kept:
        return kept_records(split_sequences(given, lengths), n, caps, owners, field)

    if states is None:
        event, fit = METHODS[method](hmm, settings)
    else:
        event, n, v, _, learn = _labelled(hmm, settings)

        def fit(read_symbols: Callable[[int], Kept]) -> LearnedParameters:
            return learn(count_labelled(read(states, n, "states"), read_symbols(v), n, v))

    if admit is not None:
        admit(event)
    _assign(hmm, fit(lambda n_symbols: read(X, n_symbols, "X")))
    return hmm


#: Given how to read the capped data (of so many symbols), fit. Built from public numbers, before the data are read.
Fit = Callable[[Callable[[int], Kept]], LearnedParameters]


class OneTable(NamedTuple):
    """A fit by one noisy table.

    order : the length of the words that are counted; 0 for known states.
    learn : the fit to exact counts: (V**order,) of words, or of starts, moves and emissions.
    """

    event: LearningEvent
    n_states: int
    n_symbols: int
    order: int
    learn: Callable[[IntArray], LearnedParameters]


class HiddenOptions(TypedDict, total=False):
    """Options of `PlannedHidden`, as those of `fit_private`."""

    neighbours: str
    max_sequences: int
    order: int | None
    about: int | None
    n_starts: int
    bits: Bits | None


class PlannedHidden:
    """`fit_private` in two steps, for counts that are made elsewhere; options as there. It draws once.

    hmm : the model before its fit, which stays as it is.
    known : True if states are known.

    Raises InvalidInput for public options.
    """

    def __init__(
        self, hmm: Any, epsilon: Exact, max_length: int, known: bool = False, **options: Unpack[HiddenOptions]
    ) -> None:
        self.caps = RecordBounds(max_length, options.get("max_sequences", 1), options.get("neighbours", "add-remove"))
        order, about = options.get("order"), options.get("about")
        if known and (order, about) != (None, None):
            raise InvalidInput("states", "known states", "none for order or about: known states are counted")
        people = None if about is None else whole(about, "about", 1)
        starts = whole(options.get("n_starts", N_STARTS), "n_starts", 1, 10_000)
        self._hmm, words = copy(hmm), default_bits(options.get("bits"))
        settings = Settings(
            exact_epsilon(epsilon),
            Fraction(0),
            self.caps,
            _letters(hmm.params),
            "laplace",
            "simplex",
            order,
            people,
            None,
            None,
            starts,
            N_ITER,
            TOL,
            words,
            "owner",
        )
        plan = _labelled(hmm, settings) if known else _by_words(hmm, settings)
        self.event, self.n_states, self.n_symbols, self.order, learn = plan
        self._learn = [learn]
        tables = {name: getattr(hmm, name) for letter, name in ATTRIBUTES.items() if letter not in hmm.init_params}
        public = {name: value.toarray() if sparse.issparse(value) else value for name, value in tables.items()}
        #: What is public about the fit and is not in the event: another value is another fit. For JSON.
        self.settings: dict[str, Any] = {
            "method": "counts of known states" if known else "ngrams",
            **{name: getattr(hmm, name) for name in ("n_states", "n_features", "params", "init_params")},
            "random_state": hmm.random_state if isinstance(hmm.random_state, int) else None,
            "order": order,
            "about": people,
            "n_starts": starts,
            **{name: np.asarray(value).tolist() for name, value in public.items()},
        }

    def learned(self, counts: IntArray) -> Any:
        """The model of these exact counts: the noise is drawn now, and no second time."""
        if not self._learn:
            raise RuntimeError("the noise of this fit has been drawn")
        _assign(self._hmm, self._learn.pop()(counts))
        return self._hmm

    def __repr__(self) -> str:
        return f"PlannedHidden(epsilon={self.event.epsilon})"


def _by_ngrams(hmm: Any, settings: Settings) -> tuple[Event, Fit]:
    event, _, v, order, learn = _by_words(hmm, settings)
    return event, lambda read: learn(count_ngrams(read(v), v, order))


def _by_words(hmm: Any, settings: Settings) -> OneTable:
    starts = public_starts(hmm, settings.n_starts)
    n, v = starts[0].emission.shape
    public = "".join(letter for letter in "ste" if letter not in hmm.init_params)
    # An order that is asked for is of hidden models alone.
    ruled = settings.order is None and public == "" and settings.letters == "ste" and v > 1
    if settings.order is None:
        epsilon, longest = float(settings.epsilon), settings.caps.max_length
        histogram = histogram_for(n, v, longest, epsilon, settings.about, not ruled)
    else:
        histogram = WordTable(v, whole(settings.order, "order", 1, 10))
    check_cells(histogram)
    size = sensitivity.l1(sensitivity.ngrams(settings.caps, histogram.order), settings.caps)
    part = noise_for(histogram.name, "laplace", size, settings.epsilon)
    event = settings.event((part,))

    def learn(words: IntArray) -> LearnedParameters:
        table = release(histogram.of_words(words), part, 0, settings.bits)
        best = most_probable(
            table.values,
            starts,
            public,
            settings.letters,
            histogram,
            float(part.scale),
            settings.n_iter,
            settings.tol,
            chain=ruled and histogram.order > 1,
        )
        return LearnedParameters(best.parameters, event, Monitor(settings.tol, settings.n_iter, history=best.history))

    return OneTable(event, n, v, histogram.order, learn)


def _labelled(hmm: Any, settings: Settings) -> OneTable:
    (start,) = public_starts(hmm, 1)
    n, v = start.emission.shape
    cells = open_cells(start, settings.letters)
    size = sensitivity.l1(expected_counts(settings.caps, settings.letters), settings.caps)
    part = noise_for("counts of known states", "laplace", size, settings.epsilon)
    event = settings.event((part,))

    def learn(exact: IntArray) -> LearnedParameters:
        table = release(exact[cells], part, 0, settings.bits)
        return LearnedParameters(learned_rows(table.values, cells, start, float(part.scale)), event)

    return OneTable(event, n, v, 0, learn)


def _by_iterations(hmm: Any, settings: Settings) -> tuple[Event, Fit]:
    (start,) = public_starts(hmm, 1)
    layout = FlatLayout.of(start, settings.letters)
    parts = planned_parts(
        settings.caps,
        settings.letters,
        settings.noise,
        settings.epsilon,
        settings.delta,
        settings.iterations,
        settings.shares,
    )
    event = settings.event(parts)

    def fit(read: Callable[[int], Kept]) -> LearnedParameters:
        ask = NoisyAnswers(read(layout.n_symbols), layout, parts, settings.caps.max_length, settings.bits)
        return LearnedParameters(improve(ask, start, layout, len(parts), settings.projection), event)

    return event, fit


def _paper_every(hmm: Any, settings: Settings) -> tuple[Event, Fit]:
    (start,) = public_starts(hmm, 1)
    layout = FlatLayout.of(start, "te")
    iterations = _paper_iterations(settings)
    parts = paper_parts(settings.caps, settings.epsilon, iterations)
    event = settings.event(parts)

    def fit(read: Callable[[int], Kept]) -> LearnedParameters:
        ask = PaperAnswers(read(layout.n_symbols), layout, parts, settings.caps.max_length, settings.bits)
        return LearnedParameters(paper_every(ask, start, layout, iterations), event)

    return event, fit


def _paper_last_not_private(hmm: Any, settings: Settings) -> tuple[Event, Fit]:
    warnings.warn(NOT_PRIVATE, UserWarning, stacklevel=4)
    (start,) = public_starts(hmm, 1)
    layout = FlatLayout.of(start, "te")
    parts = paper_parts(settings.caps, settings.epsilon, 1)
    iterations = _paper_iterations(settings)
    event = NotPrivateEvent(NOT_PRIVATE)

    def fit(read: Callable[[int], Kept]) -> LearnedParameters:
        records = read(layout.n_symbols)
        learned = paper_last_not_private(records, start, layout, parts, settings.caps, iterations, settings.bits)
        return LearnedParameters(learned, event)

    return event, fit


METHODS: dict[str, Callable[[Any, Settings], tuple[Event, Fit]]] = {
    "ngrams": _by_ngrams,
    "every-iteration": _by_iterations,
    EVERY: _paper_every,
    LAST: _paper_last_not_private,
}


def _only_for(method: str, settings: Settings) -> None:
    """Refuse options that the method would not heed."""
    if settings.order is not None and method != "ngrams":
        raise InvalidInput("order", settings.order, f"none for {method}")
    if settings.about is not None and method != "ngrams":
        raise InvalidInput("about", settings.about, f"none for {method}")
    if settings.iterations is not None and method == "ngrams":
        raise InvalidInput("iterations", settings.iterations, "none for ngrams: n_iter is for climbs on the histogram")
    if settings.shares is not None and method != "every-iteration":
        raise InvalidInput("budgets", "shares", f"none for {method}")
    if settings.noise != "laplace" and method != "every-iteration":
        raise InvalidInput("noise", settings.noise, f"laplace for {method}")
    if settings.noise == "laplace" and settings.delta != 0:
        raise InvalidInput("delta", settings.delta, "0: Laplace noise needs none")


def _letters(params: object) -> str:
    letters = "".join(letter for letter in "ste" if isinstance(params, str) and letter in params)
    if not letters:
        raise InvalidInput("params", params, 'letters of "ste": what is to be learned')
    return letters


def _paper_iterations(settings: Settings) -> int:
    count = PAPER_ITERATIONS if settings.iterations is None else settings.iterations
    return whole(count, "iterations", 1, MOST_ITERATIONS)


def _assign(hmm: Any, outcome: LearnedParameters) -> None:
    """Set what was learned, and leave nothing of an earlier fit beside it: its monitor knows the data.

    Names of symbols stay if they were given, or came with a private model: others may be what a data set showed.
    """
    if was_fitted(hmm) and not isinstance(event_of(hmm), LearningEvent):
        hmm.__dict__.pop("symbols_", None)
    learned = outcome.parameters
    hmm.n_states = learned.n_states
    was_sparse = sparse.issparse(getattr(hmm, "transmat_", None)) and "t" not in hmm.init_params
    hmm.startprob_, hmm.emissionprob_ = learned.initial, learned.emission
    hmm.transmat_ = sparse.csr_array(learned.transition) if was_sparse else learned.transition
    for name in ("monitor_", "provenance_"):
        hmm.__dict__.pop(name, None)
    if outcome.monitor is not None:
        hmm.monitor_ = outcome.monitor
    remember(hmm, hmm.params, outcome.event)


#: Each iteration gets so many times the budget (rho; for Laplace its root, as an epsilon) of the one before: the last
#: iterations are what is kept of all.
GROWTH = 1.35
MOST_ITERATIONS = 1_000
ITERATIONS = {"laplace": 5, "gaussian": 10}


def planned_parts(
    caps: RecordBounds,
    letters: str,
    noise: str,
    epsilon: Fraction,
    delta: Fraction,
    iterations: int | None,
    budgets: Iterable[Any] | None,
) -> tuple[NoisyCounts, ...]:
    """One part per iteration, which together lose ``epsilon`` (at ``delta``)."""
    shares = _shares(noise, iterations, budgets)
    blocks = expected_counts(caps, letters)
    if noise == "laplace":
        total, sensitivity = epsilon, l1(blocks, caps)
    else:
        total, sensitivity = rho_for(epsilon, check_delta(delta)), l2_squared(blocks, caps)
    return tuple(
        noise_for(f"expected counts, iteration {k + 1}", noise, sensitivity, total * share)
        for k, share in enumerate(shares)
    )


def _shares(noise: str, iterations: int | None, budgets: Iterable[Any] | None) -> list[Fraction]:
    """Shares of the total that sum to 1."""
    if budgets is None:
        n = ITERATIONS[noise] if iterations is None else whole(iterations, "iterations", 1, MOST_ITERATIONS)
        growth = GROWTH if noise == "gaussian" else GROWTH**0.5
        # Relative to the last, and never so small that an iteration would be nothing but noise of 2**50 counts.
        weights = [Fraction(max(1, round(1000 * growth ** (k + 1 - n)))) for k in range(n)]
    else:
        weights = [exact_number(share, f"budgets[{k}]") for k, share in enumerate(budgets)]
        for k, weight in enumerate(weights):
            if weight <= 0:
                raise InvalidInput(f"budgets[{k}]", weight, "a share greater than 0")
        if not weights or (iterations is not None and iterations != len(weights)):
            raise InvalidInput("budgets", f"{len(weights)} shares", "one share of the total for each iteration")
    return [weight / sum(weights) for weight in weights]


MOST_STATES = 2**10
MOST_SYMBOLS = 2**20
#: Most entries of the emission probabilities.
MOST_EMISSIONS = 2**24


def public_starts(hmm: Any, count: int) -> list[Parameters]:
    """``count`` starts: random rows for the letters of ``init_params``, the model's own parameters for the others.

    Number of symbols: ``n_features``, or the width of a given ``emissionprob_``; never that of the data. Parameters
    that a fit has learned are refused: without privacy they tell about its data, and with it they have cost something
    that the event of another fit would not count.
    """
    redrawn = letters(hmm.init_params, "init_params")
    n, v = whole(hmm.n_states, "n_states", 1, MOST_STATES), _n_symbols(hmm, redrawn)
    if n * v > MOST_EMISSIONS:
        raise InvalidInput("n_features", v, f"at most {MOST_EMISSIONS // n} symbols for {n} states")
    random = random_generator(hmm.random_state)
    starting = {letter: _set(hmm, name) for letter, name in ATTRIBUTES.items() if letter not in redrawn}
    return [_dense(drawn(starting, n, v, random)) for _ in range(count if redrawn else 1)]


def _n_symbols(hmm: Any, redrawn: str) -> int:
    if hmm.n_features is not None:
        return whole(hmm.n_features, "n_features", 1, MOST_SYMBOLS)
    if "e" not in redrawn:
        return int(np.shape(_set(hmm, "emissionprob_"))[-1])
    expected = "the public number of symbols: private learning does not count those of the data"
    raise InvalidInput("n_features", None, expected)


def _set(hmm: Any, name: str) -> Any:
    table = getattr(hmm, name, None)
    if table is None:
        raise InvalidInput(name, "not set", "public start values, or its letter in init_params")
    if is_learned(hmm, name):
        raise InvalidInput(name, "what a fit has learned", "public start values")
    return table


def _dense(start: Parameters) -> Parameters:
    moves = start.transition.toarray() if start.is_sparse else start.transition
    return Parameters(start.initial, moves, start.emission)
