"""Flows: likelier with every iteration, the maximum of another solver, and nearer to the truth than no flows at all.

Fails for an iteration that lowers the likelihood, for origins and destinations that are exchanged, and for pairs of
two people.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import dphmm
from dphmm.errors import InvalidInput
from dphmm.reconstruction import flows as module
from dphmm.reconstruction.density import Likelihoods
from dphmm.reconstruction.flows import Pairs, first_guess, flows, improved


def pairs_of(answers):
    """The different pairs of answers of people with two answers each, with their likelihoods."""
    (plan,) = answers.plans
    z, first = np.unique(answers.z[::2], axis=0, return_inverse=True)
    then, second = np.unique(answers.z[1::2], axis=0, return_inverse=True)
    kinds, counts = np.unique(np.column_stack([first.ravel(), second.ravel()]), axis=0, return_counts=True)
    sides = [next(iter(Likelihoods(plan, some).blocks()))[1] for some in (z, then)]
    return *sides, Pairs(kinds[:, 0], kinds[:, 1], counts / counts.sum(), np.zeros(len(kinds)))


def moved(board, answers_from, side, n, epsilon, seed):
    space, model, policy = board(side)
    plan = dphmm.ReleaseSession(model, policy, space, epsilon=epsilon).plan
    rng = np.random.default_rng(seed)
    # Everybody goes one cell to the right, round and round.
    states = rng.choice(side * side, n)
    right = states - states % side + (states % side + 1) % side
    both = np.stack([states, right], axis=1).ravel()
    answers = answers_from([plan], both, seed, np.repeat(np.arange(n), 2))
    truth = np.zeros((side * side, side * side))
    np.add.at(truth, (states, right), 1 / n)
    return space, model, answers, truth


def test_the_likelihood_never_falls(board, answers_from):
    space, model, answers, _ = moved(board, answers_from, 3, 400, 2, 1)
    a, b, pairs = pairs_of(answers)
    flow, told = first_guess(np.full(9, 1 / 9), model, space), []
    for _ in range(100):
        flow, chance = improved(flow, a, b, pairs, pairs.weights)
        told.append(pairs.weights @ np.log(chance))
        assert flow.sum() == pytest.approx(1)
    assert (np.diff(told) >= -1e-14).all() and told[-1] > told[0] + 0.1


@pytest.mark.slow
def test_the_maximum_is_that_of_a_general_solver(board, answers_from):
    """Four cells in a square, 16 flows."""
    _space, _model, answers, _ = moved(board, answers_from, 2, 2000, 3, 2)
    a, b, pairs = pairs_of(answers)
    flow = np.full((4, 4), 1 / 16)
    for _ in range(20_000):
        flow, chance = improved(flow, a, b, pairs, pairs.weights)
    block = (a[pairs.first][:, :, None] * b[pairs.second][:, None]).reshape(-1, 16)
    best = minimize(
        lambda q: -pairs.weights @ np.log(block @ q),
        np.full(16, 1 / 16),
        jac=lambda q: -(pairs.weights / (block @ q)) @ block,
        bounds=[(0, 1)] * 16,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
        options={"ftol": 1e-15, "maxiter": 2000},
    )
    assert pairs.weights @ np.log(chance) == pytest.approx(-best.fun, abs=1e-6)


def test_pieces_give_what_the_whole_gives(board, answers_from, monkeypatch):
    space, model, answers, _ = moved(board, answers_from, 3, 300, 2, 3)
    a, b, pairs = pairs_of(answers)
    start = first_guess(np.full(9, 1 / 9), model, space)
    whole = improved(start, a, b, pairs, pairs.weights)
    monkeypatch.setattr(module, "_TOGETHER", 1)
    parts = improved(start, a, b, pairs, pairs.weights)
    for one, other in zip(whole, parts, strict=True):
        assert one == pytest.approx(other, abs=1e-14)


def test_flows_are_nearer_to_the_truth_than_the_product_of_densities(board, answers_from):
    space, model, answers, truth = moved(board, answers_from, 4, 6000, 2, 4)
    found = flows(answers.pairs(), np.full(16, 1 / 16), model, space)
    assert found.q.sum() == pytest.approx(1) and found.iterations > 3

    def off(flow):
        return np.abs(flow - truth).sum() / 2

    independent = truth.sum(axis=1)[:, None] * truth.sum(axis=0)
    assert off(found.q) < 0.6 * off(independent) < off(found.q.T)


def test_two_answers_of_two_people_are_no_pair(board, answers_from):
    space, model, policy = board(3)
    plan = dphmm.ReleaseSession(model, policy, space, epsilon=1).plan
    alone = answers_from([plan], np.zeros(5, dtype=np.int64), 1)
    assert flows(alone.pairs(), np.full(9, 1 / 9), model, space) is None
    assert answers_from([plan], np.zeros(4, dtype=np.int64), 1, [0, 0, 1, 1]).pairs()[0].row.tolist() == [0, 2]


def test_too_many_states_are_refused(board, answers_from, monkeypatch):
    space, model, policy = board(3)
    plan = dphmm.ReleaseSession(model, policy, space, epsilon=1).plan
    answers = answers_from([plan], np.zeros(2, dtype=np.int64), 1, [0, 0])
    for limit, words in (("MOST_STATES", "9 states"), ("_MOST_LIKELIHOODS", "different answers of 9 states")):
        with monkeypatch.context() as patched, pytest.raises(InvalidInput, match=words):
            patched.setattr(module, limit, 8)
            flows(answers.pairs(), np.full(9, 1 / 9), model, space)


def test_a_model_that_never_moves_has_a_first_guess():
    space = dphmm.StateSpace([0, 1, 5])
    guess = first_guess(np.full(3, 1 / 3), dphmm.MarkovModel(np.full(3, 1 / 3), np.eye(3)), space)
    assert guess.sum() == pytest.approx(1) and (guess > 0).all() and guess[0, 1] > guess[0, 2]
