"""The ways to learn a hidden Markov model that the experiment compares, from one public start."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from dphmm import MarkovModel, ReplayBits
from dphmm.accounting import LearningEvent
from dphmm.markov import CategoricalHMM
from dphmm.markov.private import fit_chain
from dphmm.types import Bits, FloatArray, IntArray
from experiments.experiment import Cell, Row

DELTA = "0.000001"
NOT_PRIVATE = "NOT PRIVATE"
NO_DATA = "start, no data"
EVEN, INDEPENDENT, CHAIN = "uniform, no data", "independent symbols", "chain"
NORMAL, TRUTH = "normal training", "the true model"
#: The paper's: at most 80 iterations, until less than 1e-5 changes; it does not say of what.
ITERATIONS, THRESHOLD = 80, 1e-5


@dataclass(frozen=True)
class Method:
    """A way to learn privately; ``options`` are `fit_private`'s. Words without an ``order`` have the length by rule."""

    name: str
    options: dict[str, Any] = field(hash=False)

    def given(self, people: int) -> dict[str, Any]:
        """The options where the owner states a number of people."""
        by_rule = self.options["method"] == "ngrams" and "order" not in self.options
        return {**self.options, "about": people} if by_rule else self.options

    @property
    def is_the_papers(self) -> bool:
        """Whether its epsilon is nominal, the paper's own, and not the true total."""
        return str(self.options["method"]).startswith("paper-")


LAST = Method("paper: last iteration, NOT PRIVATE", {"method": "paper-last-iteration-not-private"})
EVERY = Method("paper: every iteration", {"method": "paper-every-iteration"})
BETTER = (
    Method("n-grams", {"method": "ngrams"}),
    Method("2-grams", {"method": "ngrams", "order": 2}),
    Method("3-grams", {"method": "ngrams", "order": 3}),
    Method("5 iterations, Laplace", {"method": "every-iteration", "iterations": 5}),
    Method(
        "10 iterations, Gaussian",
        {"method": "every-iteration", "iterations": 10, "noise": "gaussian", "delta": DELTA},
    ),
)


@dataclass(frozen=True, eq=False)
class Start:
    """Public parameters: initial (S,), transition (S, S), emission (S, V). The initial ones are kept as they are."""

    initial: FloatArray
    transition: FloatArray
    emission: FloatArray

    def model(self, **options: Any) -> CategoricalHMM:
        """A model that stands at the start; the paper's has transitions and emissions, and learns those."""
        n, v = self.emission.shape
        hmm = CategoricalHMM(n, n_features=v, params="te", init_params="", **options)
        hmm.startprob_, hmm.transmat_, hmm.emissionprob_ = self.initial, self.transition, self.emission
        return hmm


def normally(start: Start, sequences: IntArray) -> CategoricalHMM:
    """Baum-Welch without noise on sequences (n, L)."""
    return start.model(n_iter=ITERATIONS, tol=THRESHOLD).fit(sequences.ravel(), _lengths(sequences))


def privately(method: Method, start: Start, sequences: IntArray, epsilon: Fraction, bits: ReplayBits) -> CategoricalHMM:
    """A fit to sequences (n, L), which sets ``privacy_``."""
    given = {"epsilon": epsilon, "max_length": sequences.shape[1], "bits": bits, **method.given(len(sequences))}
    return quietly(start.model(), sequences.ravel(), _lengths(sequences), **given)


def quietly(hmm: CategoricalHMM, X: Any, lengths: Any = None, **options: Any) -> CategoricalHMM:
    """`fit_private` without the warning of the paper's last-iteration baseline: its rows say that it is not private."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NOT_PRIVATE, category=UserWarning)
        return hmm.fit_private(X, lengths, **options)


def even_symbols(symbols: int) -> CategoricalHMM:
    """All symbols alike: one state, no data."""
    hmm = CategoricalHMM(1, n_features=symbols, params="e", init_params="e")
    hmm.startprob_, hmm.transmat_, hmm.emissionprob_ = np.ones(1), np.ones((1, 1)), np.full((1, symbols), 1 / symbols)
    return hmm


def independent_symbols(
    sequences: Sequence[IntArray], symbols: int, epsilon: Fraction, length: int, bits: Bits
) -> CategoricalHMM:
    """One state, whose symbols are counted privately."""
    paths = [np.zeros(len(sequence), dtype=np.int64) for sequence in sequences]
    hmm = CategoricalHMM(1, n_features=symbols, params="e", init_params="e")
    hmm.startprob_, hmm.transmat_ = np.ones(1), np.ones((1, 1))
    return hmm.fit_private(list(sequences), states=paths, epsilon=epsilon, max_length=length, bits=bits)


def chain_of_symbols(
    sequences: Sequence[IntArray], symbols: int, epsilon: Fraction, length: int, bits: Bits
) -> tuple[CategoricalHMM, LearningEvent]:
    """A private Markov chain of the symbols themselves, as a model whose states can be seen."""
    model, event = fit_chain(list(sequences), symbols, epsilon, length, initial="occupancy", bits=bits)
    return seen(model), event


def seen(model: MarkovModel) -> CategoricalHMM:
    """A chain as a hidden Markov model that emits its states."""
    hmm = CategoricalHMM(model.n_states, n_features=model.n_states)
    hmm.startprob_, hmm.emissionprob_, hmm.transmat_ = model.initial, np.eye(model.n_states), model.transition
    return hmm


def true_total(nominal: Fraction, length: int) -> Fraction:
    """What the paper's noise really gives when records are added or removed: (2 - 1/L) epsilon."""
    return (2 - Fraction(1, length)) * nominal


def event_of(hmm: CategoricalHMM) -> object:
    """What a private fit cost."""
    return hmm.privacy_


def described(event: object) -> Row:
    """The true guarantee of an event of learning."""
    if not isinstance(event, LearningEvent):
        return {"guarantee": NOT_PRIVATE, "true_epsilon": None, "delta": None}
    guarantee = "pure" if event.pure else f"delta {float(event.delta):g}"
    return {"guarantee": guarantee, "true_epsilon": float(event.epsilon), "delta": float(event.delta)}


def number(cell: Cell, name: str) -> int:
    """A whole number of a cell."""
    value = cell[name]
    if not isinstance(value, int):
        raise TypeError(f"{name} of the cell is no whole number")
    return value


def _lengths(sequences: IntArray) -> list[int]:
    return [sequences.shape[1]] * len(sequences)
