"""The plain algorithms that the benchmarks divide by compute what the library computes.

Claim: on small grids, under every kind of policy and whatever states are possible, `naive_release` and the library
have the same edges, hull, degrees of protection, exposed states and joins, and the same belief after the same answer.
A twin that did less or other work would make every ratio of speed worthless. The plain side is Qhull and floats, the
library's side integers, so areas, norms and beliefs are compared to 1e-9; everything else is equal. The last tests put
something wrong into the plain side and must see the comparison fail.
"""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
import naive_release as plain
from dphmm.markov.filtering import Belief
from dphmm.policy import graph as kinds
from dphmm.policy._cliques import Complete
from dphmm.policy.constraint import delta_states
from registered import left_out, policy_kinds

SIDE = 7
N = SIDE * SIDE
R = 2.3
K = 7
POINTS = np.stack(np.divmod(np.arange(N), SIDE)[::-1], axis=1)
LABELS = np.random.default_rng(5).integers(0, 6, N)


def _moves():
    chance = np.random.default_rng(6)
    near = np.abs(POINTS[:, None] - POINTS[None]).max(axis=2) <= 1
    weights = np.where(near & (chance.random((N, N)) < 0.5), chance.uniform(0.5, 1.5, (N, N)), 0.0)
    weights += np.eye(N)
    return weights / weights.sum(axis=1, keepdims=True)


def _among(edges):
    """Whether two states are one of some edges, by looking through all of them."""
    listed = {frozenset(edge) for edge in edges}
    return lambda a, b: np.array([frozenset(pair) in listed for pair in zip(a.tolist(), b.tolist(), strict=True)], bool)


MATRIX = _moves()
LISTED = [tuple(edge) for edge in np.random.default_rng(10).integers(0, N, (90, 2)).tolist() if edge[0] != edge[1]]
MODEL = dphmm.MarkovModel(np.full(N, 1 / N), MATRIX)
SPACE = dphmm.StateSpace(POINTS)
JOINED = {
    "complete": plain.complete(),
    "categorical": plain.categorical(LABELS),
    "radius": plain.radius(POINTS, R),
    "knn": plain.knn(POINTS, K),
    "transition": plain.transition(MATRIX),
    "edges": _among(LISTED),
    "union": lambda a, b: plain.radius(POINTS, 1.0)(a, b) | _among(LISTED)(a, b),
}
OURS = {
    "complete": dphmm.policy.complete(N),
    "categorical": dphmm.policy.categorical(LABELS),
    "radius": dphmm.policy.radius(SPACE, R),
    "knn": dphmm.policy.knn(SPACE, K),
    "transition": dphmm.policy.transition(MODEL),
    "edges": dphmm.policy.from_edges(LISTED, N),
    "union": dphmm.policy.radius(SPACE, 1.0).union(dphmm.policy.from_edges(LISTED, N)),
}
POLICIES = tuple(OURS)


def masks():
    """All states; a scattered half; a corner with one far state, which nothing hides where the policy is short."""
    corner = (POINTS < 3).all(axis=1)
    corner[-1] = True
    return {"all": np.ones(N, bool), "half": np.random.default_rng(7).random(N) < 0.5, "corner": corner}


MASKS = masks()
CASES = [pytest.param(policy, mask, id=f"{policy}-{mask}") for policy in POLICIES for mask in MASKS]


def disagreements(policy, mask, edges_among):
    """The names of what the two sides do not agree on."""
    possible = MASKS[mask]
    answers, states = POINTS.astype(float), np.flatnonzero(possible)
    theirs = plain.protected(edges_among(possible), answers, possible)
    before = plain.Hull.of(answers[theirs.edges[:, 1]] - answers[theirs.edges[:, 0]])
    graph = dphmm.sensitivity.protectable_graph(OURS[policy], SPACE, possible)
    hull = dphmm.sensitivity.sensitivity_hull(graph, SPACE, possible)
    edges = OURS[policy].edges(possible)
    added = sorted(set(map(tuple, graph.edges(possible).tolist())) - set(map(tuple, edges.tolist())))
    same = {
        "edges": np.array_equal(theirs.edges, edges),
        "area before": _near(before.volume, dphmm.sensitivity.sensitivity_hull(OURS[policy], SPACE, possible).volume),
        "area": _near(theirs.hull.volume, hull.volume),
        "norms": _near(theirs.hull.norm(answers), hull.norm(answers)),
        "degrees": np.array_equal(
            plain.degrees(theirs.hull, answers, states, states),
            dphmm.sensitivity.degree_of_protection(hull, SPACE, possible),
        ),
        "exposed": np.array_equal(theirs.exposed, dphmm.sensitivity.exposed_states(OURS[policy], SPACE, possible)),
        "joins": sorted(tuple(sorted(pair)) for pair in theirs.joins) == added,
    }
    return {name for name, agree in same.items() if not agree}


def _near(one, two):
    return np.allclose(one, two, rtol=1e-9, atol=1e-12)


_PLAIN = "its edges in plain NumPy to JOINED and the library's policy to OURS, in tests/test_naive_twin.py"


def test_every_registered_kind_of_policy_has_a_plain_twin(monkeypatch):
    assert left_out(policy_kinds(), JOINED, _PLAIN) == []
    assert {name: policy.describe()["kind"] for name, policy in OURS.items()} == {name: name for name in JOINED}
    monkeypatch.setitem(kinds.KINDS, "rings", Complete)
    assert left_out(policy_kinds(), JOINED, _PLAIN) == [f"rings is registered and not tried here: add {_PLAIN}"]


@pytest.mark.parametrize(("policy", "mask"), CASES)
def test_the_plain_graph_hull_and_degrees_are_the_librarys(policy, mask):
    assert disagreements(policy, mask, plain.enumerated(JOINED[policy])) == set()


@pytest.mark.parametrize("policy", POLICIES)
def test_edges_picked_from_a_list_are_those_enumerated(policy):
    every = plain.enumerated(JOINED[policy])(np.ones(N, bool))
    for mask in MASKS:
        assert disagreements(policy, mask, plain.listed(every)) == set()


def test_some_case_has_exposed_states_and_joins():
    """Otherwise Algorithm 1 would have been compared on nothing."""
    possible = MASKS["corner"]
    found = plain.protected(plain.enumerated(JOINED["radius"])(possible), POINTS.astype(float), possible)
    assert found.joins
    assert len(found.exposed) == len(found.joins)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_plain_step_moves_the_belief_as_a_session_does(policy):
    """Three releases: the plain side is handed what the session published, and must come to the same beliefs."""
    start = np.zeros(N)
    start[[N // 2, N // 2 + 1, 3]] = 1 / 3
    model = dphmm.MarkovModel(start, MATRIX)
    session = dphmm.ReleaseSession(model, OURS[policy], SPACE, 1, mechanism="discrete-knorm", bits=dphmm.ReplayBits(3))
    theirs = plain.Release(
        MATRIX, plain.enumerated(JOINED[policy]), POINTS.astype(float), 1.0, start, np.random.default_rng(0)
    )
    for state in (N // 2, N // 2, N // 2 + 1):
        prior = theirs.posterior @ MATRIX
        plan = theirs.plan(prior)
        assert np.array_equal(prior > 0, session.support)
        assert _near(prior, session.prior.probability)
        # A flat body is thickened by the library; the plain one has none (Qhull would have refused it).
        assert _near(plan.hull.volume, session.plan.hull.volume)
        released = session.release(state)
        theirs.posterior = theirs.conditioned(prior, plan, released.z)
        assert _near(theirs.posterior, session.posterior.probability)


def test_plain_noise_has_the_error_of_the_law():
    """E|noise|² = 12·E|u|²/ε² in the plane (docs/theory.md F3): mean of 20,000 draws within 5 standard errors.

    A sampler off by a factor of 1.1 in scale is off by 21 % here, some 15 standard errors.
    """
    hull = plain.Hull.of(np.array([[3.0, 1.0], [0.0, 2.0], [-1.0, 1.0]]))
    ours = dphmm.sensitivity.sensitivity_hull(
        dphmm.policy.from_edges([(0, 1), (0, 2), (0, 3)], 4), np.array([[0, 0], [3, 1], [0, 2], [-1, 1]])
    )
    expected = dphmm.mechanisms.KNorm(ours, 1).expected_error
    chance = np.random.default_rng(8)
    squares = np.array([(hull.sample(1.0, chance) ** 2).sum() for _ in range(20_000)])
    assert abs(squares.mean() - expected) < 5 * squares.std() / len(squares) ** 0.5
    assert abs(1.21 * squares.mean() - expected) > 5 * squares.std() / len(squares) ** 0.5


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5])
def test_the_plain_delta_set_is_the_librarys(delta):
    prior = np.random.default_rng(9).dirichlet(np.ones(N) / 4)
    support = prior > 0
    assert np.array_equal(plain.delta_set(prior, delta), delta_states(prior, support, delta))
    moved = Belief.initial(MODEL).predict(MODEL, t=1)
    assert np.array_equal(
        plain.delta_set(moved.probability, delta), delta_states(moved.probability, moved.support, delta)
    )


# -- the comparison can fail --------------------------------------------------------------------------------------


def test_an_edge_too_few_is_seen():
    every = plain.enumerated(JOINED["categorical"])
    assert "edges" in disagreements("categorical", "all", lambda mask: every(mask)[1:])


def test_another_radius_is_seen():
    wider = plain.enumerated(plain.radius(POINTS, R + 1))
    assert {"edges", "area before", "norms", "degrees"} <= disagreements("radius", "all", wider)


def test_a_looser_boundary_is_seen(monkeypatch):
    monkeypatch.setattr(plain, "_TOLERANCE", 0.6)
    assert "degrees" in disagreements("radius", "half", plain.enumerated(JOINED["radius"]))


def test_joining_the_farthest_is_seen(monkeypatch):
    def farthest(answers, state, others):
        return int(others[np.argmax(((answers[others] - answers[state]) ** 2).sum(axis=1))])

    monkeypatch.setattr(plain, "_nearest", farthest)
    assert "joins" in disagreements("radius", "corner", plain.enumerated(JOINED["radius"]))
