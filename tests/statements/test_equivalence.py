"""Theorems 4.1, 4.2 and 11.4 of the DPHMM paper, and Theorem 3.1 of the location-sets paper: which definitions agree.

Every mechanism of a small world is tried: each state's law over the outputs is a row of multiples of 1/4, so all ratios
are exact. The bound e^ε is 2 throughout. Definition 4.4 is read with erratum 11: another state, one for all outputs.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import dphmm

BOUND = 2
PRIOR = [Fraction(4, 10), Fraction(3, 10), Fraction(2, 10), Fraction(1, 10)]


def rows(outputs):
    """All laws over so many outputs, in quarters: the numerators."""
    return [row for row in itertools.product(range(5), repeat=outputs) if sum(row) == 4]


def mechanisms(states, outputs):
    return itertools.product(rows(outputs), repeat=states)


def graphs(states):
    pairs = list(itertools.combinations(states, 2))
    return [set(chosen) for size in range(len(pairs) + 1) for chosen in itertools.combinations(pairs, size)]


def alike(p, q):
    """Definition 3.1 of two laws: every output within the bound, both ways."""
    return all(a <= BOUND * b and b <= BOUND * a for a, b in zip(p, q, strict=True))


def alone(edges, states):
    return [s for s in states if not any(s in edge for edge in edges)]


def keeps_dphmm(law, edges, states):
    """Definition 4.4 for a graph that lies within the possible states."""
    return all(alike(law[a], law[b]) for a, b in edges) and all(
        any(alike(law[s], law[o]) for o in states if o != s) for s in alone(edges, states)
    )


def keeps_dphmm_output_by_output(law, edges, states):
    """Definition 4.4 in the printed order: for every output there is a partner."""
    return all(alike(law[a], law[b]) for a, b in edges) and all(
        any(alike((x,), (law[o][z],)) for o in states if o != s)
        for s in alone(edges, states)
        for z, x in enumerate(law[s])
    )


def keeps_blowfish(law, edges):
    """Bounded Blowfish over tables of one tuple whose value is a possible state."""
    return all(alike(law[a], law[b]) for a, b in edges)


def keeps_some_blowfish(law, edges, states):
    """Blowfish under one of the graphs that Theorem 4.2 calls G_t: at least these edges, and nobody alone."""
    return any(edges <= graph and not alone(graph, states) and keeps_blowfish(law, graph) for graph in graphs(states))


@pytest.mark.parametrize("delta", ["0", "0.1", "0.3"])
def test_theorem_4_1_location_sets_are_the_complete_policy_on_them(delta):
    chosen = dphmm.policy.delta_states([float(p) for p in PRIOR], None, delta)
    states = np.flatnonzero(chosen).tolist()
    # Definition 3.1 of the location-sets paper: the fewest states that hold 1 - δ.
    enough = [c for n in range(5) for c in itertools.combinations(range(4), n)]
    fewest = min(len(c) for c in enough if sum(PRIOR[s] for s in c) >= 1 - Fraction(delta))
    assert len(states) == fewest and sum(PRIOR[s] for s in states) >= 1 - Fraction(delta)
    policy = {(int(a), int(b)) for a, b in dphmm.policy.complete(4).edges() if chosen[a] and chosen[b]}
    told = set()
    for law in mechanisms(4, 2):
        on_the_set = all(alike(law[a], law[b]) for a in states for b in states)
        assert on_the_set == keeps_dphmm(law, policy, states)
        told.add(on_the_set)
    assert told == {True, False}


def test_theorem_4_1_a_set_of_one_state():
    """Differential privacy on it asks for nothing; Definition 4.4 asks for another state, and there is none."""
    law = ((4, 0), (0, 4))
    assert all(alike(law[a], law[b]) for a in (0,) for b in (0,))
    assert not keeps_dphmm(law, set(), [0])


def test_theorem_4_1_a_release_hides_the_whole_set_and_no_more_is_asked():
    space = dphmm.StateSpace([(0, 0), (1, 0), (2, 1), (9, 9)])
    model = dphmm.MarkovModel([0.4, 0.3, 0.25, 0.05], np.eye(4))
    session = dphmm.ReleaseSession(
        model, dphmm.policy.complete(4), space, epsilon=1, constraint="delta=0.1", mechanism="discrete-knorm"
    )
    plan, answers = session.plan, space.lattice[session.plan.constraint.surrogate]
    assert np.flatnonzero(plan.constraint.plan).tolist() == [0, 1, 2]
    losses = [plan.mechanism.loss(answers[a] - answers[b]) for a, b in itertools.combinations(range(3), 2)]
    assert max(losses) == 1 and min(losses) > 0
    # The state that is left out is answered as its surrogate, so it loses what that one does.
    assert answers[3].tolist() == answers[2].tolist()


@pytest.mark.parametrize("outputs", [2, 3])
def test_theorem_4_2_is_blowfish_under_a_graph_without_lonely_states(outputs):
    states, told = [0, 1, 2], set()
    for law in mechanisms(3, outputs):
        for edges in graphs(states):
            ours = keeps_dphmm(law, edges, states)
            assert ours == keeps_some_blowfish(law, edges, states)
            told.add((ours, bool(alone(edges, states))))
    assert told == {(True, True), (True, False), (False, True), (False, False)}


def test_theorem_4_2_fails_where_partners_change_with_the_output():
    """In the printed order of "for any z" and "there is s_k" DPHMM is weaker than Blowfish under any such graph."""
    law, edges, states = ((4, 4, 8), (1, 2, 13), (2, 1, 13)), {(1, 2)}, [0, 1, 2]
    assert keeps_dphmm_output_by_output(law, edges, states)
    assert not keeps_dphmm(law, edges, states) and not keeps_some_blowfish(law, edges, states)


def test_theorem_4_2_one_graph_is_not_enough():
    """A mechanism may keep DPHMM through another partner than that of Algorithm 1."""
    law = ((4, 0), (0, 4), (4, 0))
    assert keeps_dphmm(law, {(0, 2)}, [0, 2]) and not keeps_blowfish(law, {(0, 1)})


def posterior_over_prior(law, prior, state, z):
    return Fraction(law[state][z]) / sum(p * law[s][z] for s, p in prior.items())


def keeps_adversarial(law, states, priors):
    """Definitions 3.4 and 11.2, for these priors over the states."""
    return all(
        posterior_over_prior(law, prior, state, z) <= BOUND
        for prior in priors
        for state in states
        for z in range(len(law[0]))
        if sum(p * law[s][z] for s, p in prior.items())
    )


def test_theorems_3_1_and_11_4_adversarial_privacy_for_every_prior_is_differential_privacy():
    """Of two priors nearly on one state each, one shows a pair that loses more; under no prior does another."""
    states = [0, 1, 2]
    little = Fraction(1, 1000)
    steep = [{s: (1 - 2 * little if s == most else little) for s in states} for most in states]
    grid = [dict(enumerate(Fraction(x, 5) for x in c)) for c in itertools.product(range(1, 5), repeat=3) if sum(c) == 5]
    told = set()
    for law in mechanisms(3, 2):
        private = all(alike(law[a], law[b]) for a in states for b in states)
        assert private == keeps_adversarial(law, states, steep + grid)
        told.add(private)
    assert told == {True, False}
