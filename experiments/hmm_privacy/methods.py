"""The ways to learn a hidden Markov model that the experiment compares, from one public start."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from dphmm import ReplayBits
from dphmm.accounting import LearningEvent
from dphmm.markov import CategoricalHMM
from dphmm.types import FloatArray, IntArray
from experiments.experiment import Cell, Row

DELTA = "0.000001"
NOT_PRIVATE = "NOT PRIVATE"
NO_DATA = "start, no data"
NORMAL, TRUTH = "normal training", "the true model"
#: The paper's: at most 80 iterations, until less than 1e-5 changes; it does not say of what.
ITERATIONS, THRESHOLD = 80, 1e-5


@dataclass(frozen=True)
class Method:
    """A way to learn privately; ``options`` are `fit_private`'s."""

    name: str
    options: dict[str, Any] = field(hash=False)

    @property
    def is_the_papers(self) -> bool:
        """Whether its epsilon is nominal, the paper's own, and not the true total."""
        return str(self.options["method"]).startswith("paper-")


LAST = Method("paper: last iteration, NOT PRIVATE", {"method": "paper-last-iteration-not-private"})
EVERY = Method("paper: every iteration", {"method": "paper-every-iteration"})
BETTER = (
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
    given = {"epsilon": epsilon, "max_length": sequences.shape[1], "bits": bits, **method.options}
    return quietly(start.model(), sequences.ravel(), _lengths(sequences), **given)


def quietly(hmm: CategoricalHMM, X: Any, lengths: Any = None, **options: Any) -> CategoricalHMM:
    """`fit_private` without the warning of the paper's last-iteration baseline: its rows say that it is not private."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=NOT_PRIVATE, category=UserWarning)
        return hmm.fit_private(X, lengths, **options)


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
