"""lengths.md by enumeration: all pairs of lengths of small worlds, under policies with and without END joined.

The supports are computed here: a state is possible where a sequence of moves leads to it and no earlier answer has
excluded it. Two padded sequences lose at most the sum of the epsilons where `hides_lengths` says so.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import dphmm
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from dphmm.statement.events import hides_lengths
from dphmm.states.space import END

SPACE = dphmm.StateSpace.labels(["a", "b", "c", END])
N, LAST, LENGTH, EPSILON = 4, 3, 3, 1.0
FULL = np.array([[4, 2, 1, 3], [1, 4, 2, 3], [2, 1, 4, 3], [0, 0, 0, 10]]) / 10
#: From c no sequence ends.
NEVER = np.array([[4, 2, 1, 3], [1, 4, 2, 3], [2, 4, 4, 0], [0, 0, 0, 10]]) / 10
PAIRS = dphmm.policy.categorical([0, 0, 1, 2])
POLICIES = {
    "complete": dphmm.policy.complete(N),
    "categories": PAIRS,
    "categories and END": dphmm.policy.with_end(PAIRS, SPACE),
    "END of some": PAIRS.union(dphmm.policy.from_edges([(0, LAST), (1, LAST)], N)),
}
MODELS = {"full": FULL, "c never ends": NEVER}


def model_of(matrix, slots=None):
    """One matrix, or one of position 1 and another of all others."""
    moves = matrix if slots is None else [(matrix > 0) * 1.0 / (matrix > 0).sum(axis=1, keepdims=True), matrix]
    return dphmm.MarkovModel([0.5, 0.3, 0.2, 0], moves, space=SPACE, start="at", slots=slots)


def sequences():
    """All padded sequences: of each length from 1 on, of all labels."""
    for length in range(1, LENGTH + 1):
        for labels in product(range(N - 1), repeat=length):
            yield (*labels, *[LAST] * (LENGTH - length))


def likelihoods(policy, matrix, mechanism):
    """The log-likelihood (LENGTH, N) of each outcome, by the possible states after each beginning of it."""
    planner = Planner(policy, SPACE, Options.checked(EPSILON, mechanism=mechanism))
    moves = matrix > 0

    def follow(possible, found):
        if len(found) == LENGTH:
            yield np.array(found)
            return
        plan = planner.plan(possible, possible)
        for z in range(N):
            law = plan.log_likelihood(np.array([z]))
            left = possible & (law > -np.inf)
            if left.any():
                yield from follow(moves[left].any(axis=0), [*found, np.where(possible, law, np.nan)])

    yield from follow(np.array([True, True, True, False]), [])


def loss_of_lengths(policy, matrix, mechanism="auto"):
    """The largest loss of two sequences that are one but for where END begins, and whether a state is impossible."""
    padded = list(sequences())
    pairs = [
        (one, other)
        for one, other in product(padded, repeat=2)
        if one < other and all(a == b or LAST in (a, b) for a, b in zip(one, other, strict=True))
    ]
    one, other, steps = *np.swapaxes(np.array(pairs), 0, 1), np.arange(LENGTH)
    worst, impossible = 0.0, False
    for law in likelihoods(policy, matrix, mechanism):
        first, second = law[steps, one], law[steps, other]
        impossible |= bool(np.isnan(first).any() or np.isnan(second).any())
        both = ~(np.isneginf(first) & np.isneginf(second)) & ~np.isnan(first) & ~np.isnan(second)
        lost = np.abs(np.subtract(first, second, where=both, out=np.zeros_like(first)).sum(axis=1))
        worst = max(worst, float(lost.max()))
    return worst, impossible


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mechanism", ["auto", "hops"])
def test_lengths_hide_each_other_where_it_is_said(policy, model, mechanism):
    """Two lengths that differ by d lose at most d epsilon; elsewhere more is lost, or the model shows what was."""
    hidden = hides_lengths(model_of(MODELS[model]), POLICIES[policy], SPACE, LENGTH)
    # Supports, and so all that is enumerated, hang on which moves there are: they are the same at all positions.
    positions = dphmm.markov.Slots(positions="1, 2+")
    assert hides_lengths(model_of(MODELS[model], positions), POLICIES[policy], SPACE, LENGTH) == hidden
    assert hidden == (policy == "complete" or (model == "full" and policy == "categories and END"))
    worst, impossible = loss_of_lengths(POLICIES[policy], MODELS[model], mechanism)
    if hidden:
        assert worst <= (LENGTH - 1) * EPSILON + 1e-9 and not impossible
        # It is reached: the steps at which two lengths differ are all but the first.
        assert worst >= (LENGTH - 1) * EPSILON - 1e-6
    elif policy == "categories" or (mechanism == "hops" and policy == "END of some"):
        assert worst > (LENGTH - 1) * EPSILON + 0.1


def test_a_model_that_does_not_begin_with_a_label_or_leaves_one_impossible_hides_no_length():
    complete = dphmm.policy.complete(N)
    ended = dphmm.MarkovModel([0, 0, 0, 1], FULL, space=SPACE, start="at")
    assert not hides_lengths(ended, complete, SPACE, LENGTH)
    # Two steps that take turns: at the second one nobody ends.
    turns = np.array([[0, 5, 5, 0], [5, 0, 0, 5], [5, 0, 0, 5], [0, 0, 0, 10]]) / 10
    assert not hides_lengths(dphmm.MarkovModel([1, 0, 0, 0], turns, space=SPACE, start="at"), complete, SPACE, 2)
    assert hides_lengths(model_of(FULL), complete, SPACE, 10**6) and hides_lengths(model_of(turns), complete, SPACE, 1)
    never_b = np.array([[7, 0, 0, 3], [7, 0, 0, 3], [7, 0, 0, 3], [0, 0, 0, 10]]) / 10
    assert not hides_lengths(model_of(never_b), complete, SPACE, LENGTH)
    assert hides_lengths(model_of(never_b).with_jump(0.01), complete, SPACE, LENGTH)
    without = dphmm.StateSpace.labels(["a", "b", "c", "d"])
    other = dphmm.MarkovModel([1, 0, 0, 0], FULL, space=without, start="at")
    assert not hides_lengths(other, complete, without, LENGTH)


def test_secrets_are_asked_in_place_of_latent_states():
    """Every latent state of a label has to lead to all labels: what it was after earlier answers is not known here."""
    moves = np.full((5, 5), 0.2)
    secrets = [0, 1, 2, 3, 0]
    model = dphmm.MarkovModel([0.25, 0.25, 0.25, 0, 0.25], moves, space=SPACE, start="at", secrets=secrets)
    assert hides_lengths(model, POLICIES["categories and END"], SPACE, LENGTH)
    moves[4] = [0.5, 0, 0, 0, 0.5]
    model = dphmm.MarkovModel([0.25, 0.25, 0.25, 0, 0.25], moves, space=SPACE, start="at", secrets=secrets)
    assert not hides_lengths(model, POLICIES["categories and END"], SPACE, LENGTH)


def test_end_joined_makes_any_two_labels_two_edges_apart():
    joined = dphmm.policy.with_end(PAIRS, SPACE)
    assert joined.edges().tolist() == [[0, 1], [0, 3], [1, 3], [2, 3]]
    assert dphmm.policy.with_end(joined, SPACE) is joined
    assert dphmm.policy.with_end(PAIRS, dphmm.StateSpace.labels(list("wxyz"))) is PAIRS
    planner = Planner(joined, SPACE, Options.checked(EPSILON))
    plan = planner.plan(np.ones(N, dtype=bool), np.ones(N, dtype=bool))
    law = np.array([plan.log_likelihood(np.array([z])) for z in range(N)])
    assert np.abs(law[:, 0] - law[:, 2]).max() <= 2 * EPSILON + 1e-9
