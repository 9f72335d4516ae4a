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
from dphmm.markov.filtering import Belief, Table, log_likelihood, marginals, smooth
from dphmm.session import own_places as module
from dphmm.session.own_places import OwnPlaces, Person, chosen_places, person_model, public_base
from markov.test_filtering import Given

MOVES = np.array([[0.7, 0.3, 0.0], [0.2, 0.5, 0.3], [0.0, 0.4, 0.6]])
START = np.array([0.5, 0.3, 0.2])


def observed(t, seed):
    rows = np.random.default_rng(seed).dirichlet(np.ones(3), t)
    return rows, Table.of(rows, np.arange(t))


def person(rows, model, name="anna"):
    n = len(rows)
    return Person(name, model, Belief.initial(model), Table.of(rows, np.arange(n)), 1, np.ones(n, dtype=np.bool_))


@pytest.mark.parametrize("jump", [None, 0.2])
def test_likelihood_and_visits_are_sums_over_all_paths(jump):
    """Every path of 4 steps, and at every move whether it was a jump."""
    law, rate = np.array([0.1, 0.2, 0.7]), 0.3
    base = dphmm.MarkovModel(START, MOVES, start="at", jump=jump)
    rows, seen = observed(4, 1)
    model = module._with_jump(base, rate, law)
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
    assert log_likelihood(model, Belief.initial(model), seen) == pytest.approx(np.log(total))
    found = np.zeros(3)
    told = smooth(model, Belief.initial(model), seen, lambda first, part: None, jumps=found)
    assert told == pytest.approx(np.log(total))
    assert found * module._share_of_own(base, rate, law) == pytest.approx(entered / total)


def test_visits_do_not_hang_on_blocks_and_logs():
    model = dphmm.MarkovModel(START, MOVES, start="at").with_jump(0.3, [0.1, 0.2, 0.7])
    rows, seen = observed(30, 2)
    whole, parts, floats = np.zeros(3), np.zeros(3), np.zeros(3)
    for found, block, rows_seen in ((whole, None, seen), (parts, 4, seen), (floats, None, Given(rows, seen.moves))):
        smooth(model, Belief.initial(model), rows_seen, lambda first, part: None, block=block, jumps=found)
    assert parts == pytest.approx(whole) and floats == pytest.approx(whole)


def test_the_likelihood_with_its_prior_never_falls(monkeypatch):
    one = person(observed(12, 3)[0], dphmm.MarkovModel(START, MOVES, start="at"))
    places, told = OwnPlaces(0.4, 0.5, np.full(3, 1 / 3)), []
    for rounds in range(12):
        monkeypatch.setattr(module, "ROUNDS", rounds)
        model = person_model(one, places)
        prior = places.weight * places.base @ np.log(model.jump.into)
        told.append(log_likelihood(model, one.prior, one.observations) + prior)
    assert (np.diff(told) > -1e-12).all() and told[-1] > told[0]


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


@pytest.mark.slow
def test_people_with_places_are_smoothed_better():
    model, people, truth = crowd(25, 60, places=True, seed=4)
    places = chosen_places(people, public_base(model))
    assert places is not None and places.rate >= 0.15
    before = after = 0.0
    for one, states in zip(people, truth, strict=True):
        rows = np.arange(len(states))
        before += marginals(model, one.prior, one.observations)[rows, states].sum()
        after += marginals(person_model(one, places), one.prior, one.observations)[rows, states].sum()
    assert after > 1.05 * before


@pytest.mark.slow
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
    rows = one.observations.values.copy()
    rows[out] = 1 / 12
    other = one._replace(observations=Table.of(rows, np.arange(40)))
    places = OwnPlaces(0.3, 1.0, public_base(model))
    models = [person_model(each, places, module._Without(each.observations, out)) for each in (one, other)]
    assert models[0].jump.into.tobytes() == models[1].jump.into.tobytes()
    assert person_model(one, places).jump.into.tobytes() != models[0].jump.into.tobytes()
