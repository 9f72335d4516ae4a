"""Own places: expected visits by enumeration, a likelihood that never falls, and no own places where there are none.

Fails for a visit that is counted to the wrong state or step, for places that are chosen though people move as the model
says, for people who stay at places of their own and are smoothed no better, and for answers left out that are learned
from.
"""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

import dphmm
from dphmm.markov import smoothing
from dphmm.markov.filtering import Belief, ObservationTable
from dphmm.markov.smoothing import Observed, smooth
from dphmm.session import own_places as module
from dphmm.session.own_places import OwnPlaces, PersonObservations, chosen_places, own_jumps, public_base

MOVES = np.array([[0.7, 0.3, 0.0], [0.2, 0.5, 0.3], [0.0, 0.4, 0.6]])
START = np.array([0.5, 0.3, 0.2])


def observed(t, seed):
    rows = np.random.default_rng(seed).dirichlet(np.ones(3), t)
    return rows, ObservationTable.of(rows, np.arange(t))


def person(rows, model, name="anna"):
    n = len(rows)
    return PersonObservations(
        name, model, Observed(Belief.initial(model), ObservationTable.of(rows)), np.ones(n, dtype=np.bool_)
    )


def told(model, one, block=None):
    """The log-likelihood of what is observed, and the expected visits."""
    (found,) = smooth(model, [one], np.empty((model.n_states, 0)), entered=True, block=block)
    return found.log_likelihood, found.entered


@pytest.mark.parametrize("doubt", [smoothing.DOUBT, 0.0])
@pytest.mark.parametrize("jump", [None, 0.2])
def test_likelihood_and_visits_are_sums_over_all_paths(jump, doubt, monkeypatch):
    """Every path of 4 steps, and at every move whether it was a jump; in floats, and in logs."""
    monkeypatch.setattr(smoothing, "DOUBT", doubt)
    law, rate = np.array([0.1, 0.2, 0.7]), 0.3
    base = dphmm.MarkovModel(START, MOVES, start="at", jump=jump)
    rows, seen = observed(4, 1)
    one = Observed(Belief.initial(base), seen, jump=module.jump_beside(base, rate, law))
    first = 0.0 if jump is None else (1 - rate) * jump
    stays = MOVES * (1 - rate) * (1 if jump is None else 1 - jump)
    total, entered = 0.0, np.zeros(3)
    for path in product(range(3), repeat=4):
        # 0: by the matrix, 1: by the public jump, 2: to an own place.
        for ways in product(range(3), repeat=3):
            chance = START[path[0]] * rows[0, path[0]]
            for (a, b), way, row in zip(pairwise(path), ways, rows[1:], strict=True):
                chance *= (stays[a, b], first / 3, rate * law[b])[way] * row[b]
            total += chance
            for state, way in zip(path[1:], ways, strict=True):
                entered[state] += chance * (way == 2)
    log, found = told(base, one)
    assert log == pytest.approx(np.log(total))
    assert found * module._share_of_own(base, rate, law) == pytest.approx(entered / total)


def test_the_likelihood_with_its_prior_never_falls(monkeypatch):
    one = person(observed(12, 3)[0], dphmm.MarkovModel(START, MOVES, start="at"))
    places, logs = OwnPlaces(0.4, 0.5, np.full(3, 1 / 3)), []
    for rounds in range(12):
        monkeypatch.setattr(module, "ROUNDS", rounds)
        (jump,) = own_jumps(one.model, [(one.observed, places)])
        prior = places.weight * places.base @ np.log(jump.into)
        logs.append(told(one.model, one.observed._replace(jump=jump))[0] + prior)
    assert (np.diff(logs) > -1e-12).all() and logs[-1] > logs[0]


def crowd(people, steps, places, seed):
    """People on a ring of 12 cells, their answers as likelihoods, and where they were."""
    n, rng = 12, np.random.default_rng(seed)
    ring = 0.5 * np.eye(n) + 0.25 * (np.roll(np.eye(n), 1, axis=1) + np.roll(np.eye(n), -1, axis=1))
    model, found, truth = dphmm.MarkovModel(np.full(n, 1 / n), ring, start="at"), [], []
    near = np.exp(-np.abs((np.arange(n)[:, None] - np.arange(n) + n // 2) % n - n // 2))
    near /= near.sum(axis=1, keepdims=True)
    for number in range(people):
        own = rng.choice(n, 2, replace=False)
        states = [int(rng.integers(n))]
        for _ in range(steps - 1):
            at_home = places and rng.random() < 0.4
            states.append(int(rng.choice(own) if at_home else rng.choice(n, p=ring[states[-1]])))
        z = [rng.choice(n, p=near[state]) for state in states]
        found.append(person(near[:, z].T, model, f"p{number}"))
        truth.append(np.array(states))
    return model, found, truth


def test_people_with_places_are_smoothed_better():
    model, people, truth = crowd(25, 60, places=True, seed=4)
    places = chosen_places(people, public_base(model))
    assert places is not None and places.rate >= 0.15
    some = [one.observed for one in people]
    jumps = own_jumps(model, [(one, places) for one in some])
    own = [one._replace(jump=jump) for one, jump in zip(some, jumps, strict=True)]
    before, after = (smooth(model, each, np.empty((12, 0)), marginals=True) for each in (some, own))
    right = [
        sum(found.marginals[np.arange(60), t].sum() for found, t in zip(each, truth, strict=True))
        for each in (before, after)
    ]
    assert right[1] > 1.05 * right[0]


def test_people_who_move_as_the_model_says_have_none():
    model, people, _ = crowd(25, 60, places=False, seed=5)
    assert chosen_places(people, public_base(model)) is None


def test_too_few_answers_choose_nothing():
    assert module.deciding({"a": 4, "b": 5, "c": 6}) in (["b", "c"], ["c", "b"])
    assert len(module.deciding({f"p{number}": 9 for number in range(500)})) == module.MOST_PEOPLE
    model, people, _ = crowd(1, 60, places=True, seed=6)
    assert chosen_places(people, public_base(model)) is None


def test_answers_left_out_are_not_learned_from():
    """Other answers in their place change nothing of the person's model."""
    model, (one,), _ = crowd(1, 40, places=True, seed=7)
    out = module._left_out(one)
    assert out.sum() == 8
    rows = one.observed.observations.values.copy()
    rows[out] = 1 / 12
    other = one._replace(observed=one.observed._replace(observations=ObservationTable.of(rows)))
    places = OwnPlaces(0.3, 1.0, public_base(model))
    rest = [(each.observed._replace(left_out=out), places) for each in (one, other)]
    jumps = own_jumps(model, [*rest, (one.observed, places)])
    assert jumps[0].into.tobytes() == jumps[1].into.tobytes() != jumps[2].into.tobytes()
