"""Errata of the DPHMM and location-sets papers about queries, time and adversaries (4, 8, 11, 16, 19, 20, 21, 25).

Losses are found by enumerating what can be released, never by the formula that is in question.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import dphmm
import naive
import naive_policy
from dphmm.policy.constraint import delta_states
from running_example import ANSWERS, EDGES_3B, MOVES

S1, S2, S3, S4, S5, S6 = range(6)


def interval_loss(a, b, window=40):
    """max over integers z of |z - b| - |z - a|: what the K-norm mechanism of [-1, 1] loses, by enumeration."""
    return max(abs(z - b) - abs(z - a) for z in range(-window, window))


def test_erratum_04_two_queries_hide_one_state_with_two_partners():
    names = "aklmn"
    first = dict(zip(names, (0, 1, 10, 11, 2), strict=True))
    second = dict(zip(names, (0, 10, 1, 2, 11), strict=True))
    for answers in (first, second):
        # Edges kn and lm give [-1, 1], and a hides with someone: nothing is exposed.
        assert {abs(answers[x] - answers[y]) for x, y in ("kn", "lm")} == {1}
        assert any(abs(answers["a"] - answers[x]) <= 1 for x in "klmn")
    joint = [interval_loss(first["a"], first[x]) + interval_loss(second["a"], second[x]) for x in "klmn"]
    assert joint == [11, 11, 13, 13]
    for x, y in ("kn", "lm"):
        assert interval_loss(first[x], first[y]) + interval_loss(second[x], second[y]) == 2
    # One partner for both queries: k in both makes the second hull reach 10, and the pair loses 2.
    assert abs(first["a"] - first["k"]) <= 1 and Fraction(abs(second["a"] - second["k"]), 10) <= 1


def on_line(through, direction, z):
    x, y = np.asarray(z) - ANSWERS[through]
    return x * direction[1] == y * direction[0]


def test_erratum_08_local_hulls_tell_the_state():
    def local(state, edges):
        return naive.differences([edge for edge in edges if state in edge], ANSWERS)

    path = [(S4, S6), (S5, S6)]
    assert [naive.rank(sorted(local(s, path))) for s in (S4, S5, S6)] == [1, 1, 2]
    # What the printed hull ±(1, 1) of s4 spans is the line through f(s4) and f(s6), not f(s5).
    assert local(S4, path) == {(1, 1), (-1, -1)}
    assert on_line(S4, (1, 1), ANSWERS[S6]) and not on_line(S4, (1, 1), ANSWERS[S5])
    # s5 stays on f(s5)f(s6); the two lines meet in f(s6) alone, so every other z names its state.
    assert on_line(S5, (3, 0), ANSWERS[S6])
    both = [z for z in itertools.product(range(-20, 20), repeat=2) if on_line(S4, (1, 1), z) and on_line(S5, (3, 0), z)]
    assert both == [tuple(ANSWERS[S6])]
    # Under Fig. 3b the neighbourhoods of the three states are one clique: one hull, and no attack.
    around = {s: {s, *(x for edge in EDGES_3B if s in edge for x in edge)} for s in (S4, S5, S6)}
    assert set(map(frozenset, around.values())) == {frozenset({S4, S5, S6})}


def test_erratum_11_the_state_itself_is_no_partner():
    # s1 has no edge in Fig. 3b. Its exact answer names it, and yet s_k = s1 would meet the printed definition.
    exact_release = {s: tuple(ANSWERS[s]) for s in range(6)}
    outputs = set(exact_release.values())

    def loss(a, b):
        return max(0 if (exact_release[a] == z) == (exact_release[b] == z) else math.inf for z in outputs)

    assert loss(S1, S1) == 0
    assert all(loss(S1, s) == math.inf for s in range(1, 6))


@pytest.mark.parametrize("seed", range(20))
def test_erratum_11_one_partner_serves_for_every_answer(seed):
    """'For any z there is s_k' is no weaker than 'there is s_k for any z': at z = f(s_j) all partners fail together."""
    rng = np.random.default_rng(seed)
    own, *others = rng.integers(-6, 7, 4).tolist()
    reach = int(rng.integers(1, 6))
    z = np.arange(-30, 31)
    keeps = np.array([np.abs(np.abs(z - o) - np.abs(z - own)) <= reach for o in others])
    assert keeps.any(axis=0).all() == keeps.all(axis=1).any() == keeps[:, own + 30].any()


def test_erratum_16_at_most_and_less_than_are_two_policies():
    def difference(r):
        closed = naive_policy.radius_edges(ANSWERS, [1, 1], r, closed=True)
        return closed - naive_policy.radius_edges(ANSWERS, [1, 1], r, closed=False)

    assert difference(2) == {(S1, S3), (S1, S6), (S2, S4)}
    assert difference(3) == {(S5, S6)}
    for r, closed in itertools.product((2, 3), (True, False)):
        listed = dphmm.policy.radius(ANSWERS, r, closed=closed).edges()
        assert set(map(tuple, listed.tolist())) == naive_policy.radius_edges(ANSWERS, [1, 1], r, closed)


def test_erratum_19_a_protectable_graph_with_an_infinite_factor():
    states = [S1, S2, S3, S4]
    edges = [(S2, S3)]
    points = naive.differences(edges, ANSWERS)
    assert naive.degree(points, ANSWERS, states) == [2, 2, 2, 2]
    infinite = {
        (a, b)
        for a, b in itertools.combinations(states, 2)
        if naive.gauge(points, tuple(ANSWERS[b] - ANSWERS[a])) is None
    }
    assert infinite == {(S1, S2), (S1, S3), (S2, S4), (S3, S4)}
    space, policy = dphmm.StateSpace(ANSWERS[:4]), dphmm.policy.from_edges([(1, 2)], 4)
    flat = dphmm.mechanisms.DiscreteKNorm(dphmm.sensitivity.sensitivity_hull(policy, space), 1)
    assert flat.largest_loss_among(space.lattice) == math.inf
    # A release widens the body, and its factor is finite.
    model = dphmm.MarkovModel(np.full(4, 0.25), np.full((4, 4), 0.25))
    assert dphmm.ReleaseSession(model, policy, space, 1).plan.cost < math.inf


def test_erratum_20_one_prior_is_not_all_priors():
    def posterior_over_prior(prior):
        # The exact answer: the posterior of the true state is 1.
        return max(1 / p for p in prior)

    assert math.log(posterior_over_prior([0.5, 0.5])) == pytest.approx(math.log(2))
    # Loss between the two states is infinite; the ratio is without bound once the prior may be any.
    assert posterior_over_prior([1e-9, 1 - 1e-9]) > 1e8


def test_erratum_21_delta_sets_and_their_emission():
    prior = np.array([0.3, 0.4, 0.05, 0.2, 0.03, 0.02])
    chosen = delta_states(prior, None, "0.15")
    assert np.flatnonzero(chosen).tolist() == [S1, S2, S4]
    assert prior[~chosen].sum() == pytest.approx(0.1) and prior[~chosen].sum() < 0.15
    assert 0.4 + 0.3 + 0.2 < 0.9  # in doubles: a plain loop would take a fourth state
    assert np.flatnonzero(delta_states(prior, None, "0.1")).tolist() == [S1, S2, S4]
    assert delta_states([0.25] * 4, None, "0.5").tolist() == [True, True, False, False]
    # s3 is answered from s2. Its own answer's likelihood gives another posterior than what was done.
    z, epsilon = ANSWERS[S3].astype(float), 1.0
    points = [(1, 1), (-1, -1), (2, -1), (-2, 1)]

    def posterior(answers):
        logs = [-epsilon * float(naive.gauge(points, tuple((z - f).astype(int)))) for f in answers]
        joint = prior * np.exp(logs)
        return joint / joint.sum()

    done = ANSWERS[[S1, S2, S2, S4, S2, S2]]
    assert not np.allclose(posterior(done), posterior(ANSWERS), rtol=0.5)
    # Given what was done, s3 and s2 keep the odds they had: they cannot be told apart.
    assert posterior(done)[S3] / posterior(done)[S2] == pytest.approx(prior[S3] / prior[S2])


def test_erratum_25_the_text_does_not_fix_the_transition_matrix():
    other = dict(MOVES) | {S2: (S2, S3, S5), S4: (S5,)}
    for moves in (MOVES, other):
        assert {S2, S4} <= set(moves[S1]) and {S3, S5} <= set(moves[S2]) and S5 in moves[S4]
        assert set(moves[S2]) | set(moves[S4]) == {S2, S3, S5}
    policies = []
    for moves in (MOVES, other):
        matrix = [[Fraction(int(j in moves[i]), len(moves[i])) for j in range(6)] for i in range(6)]
        policies.append(naive_policy.transition_edges(matrix))
    assert policies[0] == {(0, 1), (1, 3), (1, 4), (2, 4), (3, 5), (4, 5)}
    areas = [naive.area(naive.differences(edges, ANSWERS)) for edges in policies]
    assert areas[0] == 12 and policies[0] != policies[1]
