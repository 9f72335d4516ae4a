"""What each mechanism lets one record lose, for people of whose dependence only pairs are known.

Every query of these experiments is ordinary differential privacy at some ε₀ of one record; the mechanisms differ in
nothing but ε₀. Where friendships have loops no joint law is known, and of most mechanisms nothing is proved: what can
be said is in ``guarantee``.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import sparse

from dphmm.dependent import AnyQuery, Chain, Coefficients, Friendship, Tree, calibrate

# "dpm" with wrong coefficients: the package offers no mechanism that is wrong on purpose, only its parts.
from dphmm.dependent._calibration import largest_rate
from dphmm.dependent._coefficients import laplace_losses
from dphmm.types import FloatArray
from experiments.dependence.baselines import rate_of

INDEPENDENT, DPM, CORRELATED, MARKOV = "independent", "dpm", "correlated", "markov"
GROUP, EVERYBODY = "group", "group of all"
#: Coefficients are taken too small by somebody who does not know better.
UNDER = {"dpm, rho x 0.8": Fraction(4, 5), "dpm, rho x 0.9": Fraction(9, 10)}
OVER = {"dpm, rho x 1.1": Fraction(11, 10)}
KEPT, NONE, ON_THE_FOREST = "ε-DDP", "none", "ε-DDP if all dependence runs along a spanning forest"


@dataclass(frozen=True)
class Spending:
    """ε₀ of one record by a mechanism that is asked for ε, and what is proved of it."""

    mechanism: str
    epsilon: Fraction
    per_record: Fraction
    guarantee: str

    @property
    def multiplier(self) -> float:
        """How many times the noise of independent records it is."""
        return float(self.epsilon / self.per_record)

    def described(self) -> dict[str, Any]:
        """Columns of a row."""
        return {"mechanism": self.mechanism, "guarantee": self.guarantee, "noise": self.multiplier}


class People:
    """People, of whom those who are joined depend on each other; connected parts are independent.

    ``rho`` and ``theta`` (n, n): coefficients of "dpm" and of "correlated", in place of the coefficients of
    ``friends``, where there is no law of pairs.
    """

    def __init__(self, friends: Friendship | None, rho: Any, theta: Any) -> None:
        self.model: Friendship | Coefficients = friends or Coefficients(rho, parts_independent=True)
        self.theta = Coefficients(theta, parts_independent=True)
        self._forest = forest_of(friends) if friends is not None else None
        self._known: dict[tuple[str, Fraction], Spending] = {}

    @property
    def n(self) -> int:
        """How many people there are."""
        return self.model.n_tuples

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Those that have something to say."""
        own = (INDEPENDENT, CORRELATED, *UNDER, DPM)
        return (*own, *((MARKOV,) if self._forest is not None else ()), GROUP, EVERYBODY)

    def spending(self, mechanism: str, epsilon: str) -> Spending:
        """ε₀ of a mechanism."""
        key = (mechanism, Fraction(epsilon))
        if key not in self._known:
            self._known[key] = self._asked(*key)
        return self._known[key]

    def _asked(self, mechanism: str, epsilon: Fraction) -> Spending:
        if mechanism == EVERYBODY:
            return Spending(mechanism, epsilon, epsilon / self.n, KEPT)
        if mechanism in UNDER:
            rate = mistaken_rate(self.model, AnyQuery(1), epsilon, UNDER[mechanism])
            return Spending(mechanism, epsilon, rate, NONE)
        if mechanism == CORRELATED:
            return Spending(mechanism, epsilon, rate_of(mechanism, self.theta, AnyQuery(1), epsilon), NONE)
        if mechanism == MARKOV and self._forest is not None:
            found = calibrate(self._forest, AnyQuery(1), epsilon, mechanism, exact=False)
            return Spending(mechanism, epsilon, found.per_record, ON_THE_FOREST)
        found = calibrate(self.model, AnyQuery(1), epsilon, mechanism, exact=False)
        return Spending(mechanism, epsilon, found.per_record, KEPT if found.proved else NONE)


def mistaken_rate(model: Any, query: Any, epsilon: Fraction, factor: Fraction) -> Fraction:
    """The rate of "dpm" at its fixed point, with all coefficients of different records times ``factor``."""
    sensitivities = [float(value) for value in query.sensitivities(model.n_tuples)]
    own = np.array(sensitivities)

    def loss(rate: float) -> float:
        together = laplace_losses(model, query, rate)
        assert together is not None
        alone = own * rate
        return float((alone + float(factor) * (together - alone)).max())

    low = float(epsilon) / (sum(sensitivities) * max(1.0, float(factor)))
    return largest_rate(loss, epsilon, low * 0.999, float(epsilon) / max(sensitivities))


def forest_of(friends: Friendship) -> Tree:
    """A spanning forest of the friendships as a model: breadth first, from the person with most friends on."""
    degree = np.asarray((friends.graph != 0).sum(axis=1)).ravel()
    reached = np.zeros(friends.n, dtype=np.bool_)
    edges: list[tuple[int, int]] = []
    for start in np.argsort(-degree, kind="stable"):
        if not reached[start]:
            order, before = sparse.csgraph.breadth_first_order(friends.graph, start, directed=False)
            reached[order] = True
            edges += [(int(before[i]), int(i)) for i in order[1:]]
    joined = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return Friendship(friends.places, joined, friends.n).tree(int(np.argmax(degree)))


def affinity(profiles: FloatArray, least: float = 0.8) -> tuple[Any, Any]:
    """Cosines and linear correlations of rows whose cosine is above ``least``: two sparse matrices (n, n)."""
    lengths = np.linalg.norm(profiles, axis=1, keepdims=True)
    turned = (profiles / np.maximum(lengths, 1e-12)).astype(np.float32)
    centred = profiles - profiles.mean(axis=1, keepdims=True)
    spreads = np.linalg.norm(centred, axis=1, keepdims=True)
    centred = (centred / np.maximum(spreads, 1e-12)).astype(np.float32)
    cosines, correlations = [], []
    for first in range(0, len(profiles), 1024):
        block = turned[first : first + 1024] @ turned.T
        near = block > least
        near[np.arange(len(block)), np.arange(first, first + len(block))] = False
        row, column = np.nonzero(near)
        cosines.append(_rows(block[row, column], row, column, near.shape))
        linear = centred[first : first + 1024] @ centred.T
        correlations.append(_rows(np.abs(linear[row, column]), row, column, near.shape))
    return sparse.vstack(cosines, format="csr"), sparse.vstack(correlations, format="csr")


def _rows(values: Any, row: Any, column: Any, shape: tuple[int, ...]) -> Any:
    bounded = np.clip(values.astype(np.float64), 0.0, 1.0)
    return sparse.csr_array((bounded, (row, column)), shape=shape)


@lru_cache
def chain_of(up: float, down: float, length: int) -> Chain:
    """A stationary binary chain with chances of a change up and down."""
    return Chain(np.array([[1 - up, up], [down, 1 - down]]), length)
