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
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dphmm.markov.model import MarkovModel
from dphmm.markov.smoothing import Observed, smooth
from dphmm.markov.stochastic import Jump, fixed
from dphmm.types import BoolArray, FloatArray

#: How often somebody goes to an own place, and how many visits the prior law is worth, as they are tried.
RATES = (0.05, 0.15, 0.3, 0.5)
WEIGHTS = (0.5, 2.0, 8.0)
#: Rounds of learning a person's places; people whose answers decide between rates and weights; one answer in so many
#: is left out.
ROUNDS = 6
MOST_PEOPLE = 200
LEFT_OUT = 5


class OwnPlaces(NamedTuple):
    """The parameters of visits to own places: ``rate`` λ, ``weight`` α and ``base`` q (S,), every entry more than 0."""

    rate: float
    weight: float
    base: FloatArray


class PersonObservations(NamedTuple):
    """The answers of one person as observations of a chain, and which of them (T,) are answers."""

    name: str
    model: MarkovModel
    observed: Observed
    asked: BoolArray


def public_base(model: MarkovModel) -> FloatArray:
    """The public law (S,) of places: half even, half the occupancy of the model, where its start is one.

    If a model has secrets, places are its secrets.
    """
    even, weights = np.full(model.n_secrets, 1.0 / model.n_secrets), model.occupancy_weights
    return even if weights is None else 0.5 * even + 0.5 * weights / weights.sum()


def own_jumps(model: MarkovModel, people: Sequence[tuple[Observed, OwnPlaces]]) -> list[Jump]:
    """The jump of each person's own model, into the places that the person's answers tell of.

    Raises InvalidInput as `dphmm.markov.smoothing.smooth` does.
    """
    laws = [places.base for _, places in people]
    jumps = [jump_beside(model, places.rate, places.base) for _, places in people]
    for _ in range(ROUNDS):
        jumping = [observed._replace(jump=jump) for (observed, _), jump in zip(people, jumps, strict=True)]
        for k, posterior in enumerate(smooth(model, jumping, np.empty((model.n_states, 0)), entered=True)):
            places = people[k][1]
            entered = model.summed(posterior.entered * _share_of_own(model, places.rate, laws[k]))
            law = (entered + places.weight * places.base) / (entered.sum() + places.weight)
            # A state that nothing tells of keeps a probability that floats hold.
            law = np.maximum(law, 1e-12)
            laws[k] = law / law.sum()
            jumps[k] = jump_beside(model, places.rate, laws[k])
    return jumps


def deciding(answers: Mapping[str, int]) -> list[str]:
    """The people whose answers decide on rate and weight: at most 200 of those with five answers or more."""
    return sorted((name for name, count in answers.items() if count >= LEFT_OUT), key=_number)[:MOST_PEOPLE]


def chosen_places(people: Iterable[PersonObservations], base: FloatArray) -> OwnPlaces | None:
    """The parameters of own places that best predict answers left out of learning; None if none do.

    One answer in five of each is left out. A choice is taken if the answers left out are likelier than without own
    places by more than one standard error over people, and then the likeliest one.
    """
    choices = [OwnPlaces(rate, weight, base) for rate in RATES for weight in WEIGHTS]
    differences = []
    for person in people:
        whole = person.observed
        rest = whole._replace(left_out=_left_out(person))
        jumps = [None, *own_jumps(person.model, [(rest, places) for places in choices])]
        both = [each._replace(jump=jump) for each in (whole, rest) for jump in jumps]
        logs = [said.log_likelihood for said in smooth(person.model, both, np.empty((person.model.n_states, 0)))]
        # How likely the answers left out are, given the others.
        held_out = np.subtract(logs[: len(jumps)], logs[len(jumps) :])
        differences.append(held_out[1:] - held_out[0])
    if len(differences) < 2:
        return None
    gains = np.array(differences)
    best = int(np.argmax(gains.sum(axis=0)))
    error = float(np.std(gains[:, best], ddof=1) * np.sqrt(len(gains)))
    return choices[best] if gains[:, best].sum() > error else None


def jump_beside(model: MarkovModel, rate: float, law: FloatArray) -> Jump:
    """The model's jump with one more, into a law of secrets (S,): both are one jump into a mixture."""
    law = _of_latent(model, law)
    if model.jump is None:
        return Jump(rate, fixed(law.copy()))
    model_rate = (1.0 - rate) * model.jump.rate
    return Jump(model_rate + rate, fixed((model_rate * model.jump.into + rate * law) / (model_rate + rate)))


def _share_of_own(model: MarkovModel, rate: float, law: FloatArray) -> FloatArray:
    """The share (N,) of the jumps into each state that are into own places, if the public model has a jump too."""
    if model.jump is None:
        return np.ones(model.n_states)
    personal = rate * _of_latent(model, law)
    return np.asarray(personal / (personal + (1.0 - rate) * model.jump.share))


def _of_latent(model: MarkovModel, law: FloatArray) -> FloatArray:
    """A law of places (S,) as one of the model's states (N,): the latent states of a secret alike."""
    return law if model.secrets is None else model.lifted(law / np.bincount(model.secrets))


def _number(name: str) -> int:
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")


def _left_out(person: PersonObservations) -> BoolArray:
    """The answers (T,) of a person that are left out of learning: one in five, from a place that the name decides."""
    mask, asked = np.zeros(len(person.asked), dtype=np.bool_), np.flatnonzero(person.asked)
    mask[asked[_number(person.name) % LEFT_OUT :: LEFT_OUT]] = True
    return mask
