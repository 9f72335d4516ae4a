"""Own places: a model of each person's moves learned from that person's published answers alone.

With probability 1 - λ somebody moves as the public model says, with probability λ to one of a few own places: that is
the public model with a jump into a law π of the person's own. π has the prior Dirichlet(α q), q public, and is learned
by expectation maximisation on the person's answers; the jump has rank one, so that a pass takes no longer than without.
λ and α are the same for everybody. They are those under which answers that were left out are likeliest given the
others, no jump among the choices: never what fits true states, and never what fits the answers that were learned from.

All of it is computed from published answers and public models. Plans are made under the public model alone, and no
promise changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from dphmm.markov.filtering import Belief, Observations, Rows, log_likelihood, smooth
from dphmm.markov.model import MarkovModel
from dphmm.types import BoolArray, FloatArray, IntArray

#: How often somebody goes to an own place, and how many visits the prior law is worth, as they are tried.
RATES = (0.05, 0.15, 0.3, 0.5)
WEIGHTS = (0.5, 2.0, 8.0)
#: Rounds of learning a person's places; people whose answers decide between rates and weights; one answer in so many
#: is left out.
ROUNDS = 6
MOST_PEOPLE = 200
LEFT_OUT = 5


class OwnPlaces(NamedTuple):
    """How people visit places of their own: ``rate`` λ, ``weight`` α and ``base`` q (N,), every entry more than 0."""

    rate: float
    weight: float
    base: FloatArray


class Person(NamedTuple):
    """The answers of one person as observations of a chain, ``prior`` the belief before the first, at step ``t``."""

    name: str
    model: MarkovModel
    prior: Belief
    observations: Observations
    t: int
    #: Which observations are answers (T,).
    asked: BoolArray


def public_base(model: MarkovModel) -> FloatArray:
    """The public law (N,) of places: half even, half the occupancy of the model, where its start is one."""
    even, weights = np.full(model.n_states, 1.0 / model.n_states), model.occupancy_weights
    return even if weights is None else 0.5 * even + 0.5 * weights / weights.sum()


def person_model(person: Person, places: OwnPlaces, observations: Observations | None = None) -> MarkovModel:
    """The public model with a jump into the places that a person's answers tell of.

    observations : those to learn from in place of all of the person's. Raises InvalidInput as `smooth` does.
    """
    seen = person.observations if observations is None else observations
    law, model = places.base, person.model
    for _ in range(ROUNDS):
        model = _with_jump(person.model, places.rate, law)
        entered = np.zeros(len(law))
        smooth(model, person.prior, seen, _nothing, t=person.t, jumps=entered)
        own = entered * _share_of_own(person.model, places.rate, law)
        law = (own + places.weight * places.base) / (own.sum() + places.weight)
        # A state that nothing tells of keeps a probability that floats hold.
        law = np.maximum(law, 1e-12)
        law /= law.sum()
    return _with_jump(person.model, places.rate, law)


def deciding(answers: Mapping[str, int]) -> list[str]:
    """Who decides on rate and weight, by the number of everybody's answers: at most 200 people of five or more."""
    return sorted((name for name, count in answers.items() if count >= LEFT_OUT), key=_number)[:MOST_PEOPLE]


def chosen_places(people: Iterable[Person], base: FloatArray) -> OwnPlaces | None:
    """How people visit own places, told by answers that were left out of learning; None for not at all.

    One answer in five of each is left out. A choice is taken where the answers left out are likelier than without own
    places by more than one standard error over people, and then the likeliest one.
    """
    choices = [OwnPlaces(rate, weight, base) for rate in RATES for weight in WEIGHTS]
    told = []
    for one in people:
        rest = _Without(one.observations, _left_out(one))
        before = _told(one.model, one, rest)
        told.append([_told(person_model(one, places, rest), one, rest) - before for places in choices])
    if len(told) < 2:
        return None
    gains = np.array(told)
    best = int(np.argmax(gains.sum(axis=0)))
    error = float(np.std(gains[:, best], ddof=1) * np.sqrt(len(gains)))
    return choices[best] if gains[:, best].sum() > error else None


def _told(model: MarkovModel, one: Person, rest: Observations) -> float:
    """The log of how likely the answers left out are, given the others."""
    whole = log_likelihood(model, one.prior, one.observations, t=one.t)
    return whole - log_likelihood(model, one.prior, rest, t=one.t)


def _with_jump(model: MarkovModel, rate: float, law: FloatArray) -> MarkovModel:
    """The model with one more jump: of two, one follows the other, and both are one jump into a mixture."""
    if model.jump is None:
        return model.with_jump(rate, law)
    kept = (1.0 - rate) * model.jump.rate
    return model.with_jump(kept + rate, (kept * model.jump.into + rate * law) / (kept + rate))


def _share_of_own(model: MarkovModel, rate: float, law: FloatArray) -> FloatArray:
    """Which part (N,) of the jumps into each state is into own places, where the public model has a jump too."""
    if model.jump is None:
        return np.ones(len(law))
    own = rate * law
    return np.asarray(own / (own + (1.0 - rate) * model.jump.share))


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def _left_out(one: Person) -> BoolArray:
    """The answers (T,) of a person that are left out of learning: one in five, from a place that the name decides."""
    found, asked = np.zeros(len(one.asked), dtype=np.bool_), np.flatnonzero(one.asked)
    found[asked[_number(one.name) % LEFT_OUT :: LEFT_OUT]] = True
    return found


class _Without:
    """Observations of a chain without some of them, whose steps stay."""

    def __init__(self, observations: Observations, out: BoolArray) -> None:
        self._observations, self._out = observations, out

    @property
    def moves(self) -> IntArray:
        return self._observations.moves

    def rows(self, first: int, last: int) -> Rows:
        values, logged, which = self._observations.rows(first, last)
        return Rows(values, logged, np.where(self._out[first:last], -1, which))


def _nothing(first: int, part: FloatArray) -> None:
    """Marginals that nobody asks for."""
