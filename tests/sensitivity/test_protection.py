"""Degrees of protection and Algorithms 1 and 3 against brute force; what min-error is for.

Lonely states merged into a nearest state, against a brute force on small random worlds.

Nothing of the sensitivity package decides here: hulls are unions of triangles in integers. Fails where an edge of the
policy loses its place in the hull, where a merged state and its partner are answered differently, where another state
becomes exposed, where a partner is not the nearest state that stays, and where a merge is made that publishes answers.

Degrees of protection against a twin in Python integers: random bodies, large and thin, points far from the origin
and from each other, states asked for that are not counted and counted twice.

It would fail for rows of a body that are cut off at the picture's border, and for 64 bits that do not suffice.
"""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dphmm
import naive
from dphmm.accounting.ledger import MemoryLedger
from dphmm.audit import verify
from dphmm.errors import InvalidInput, Unprotectable
from dphmm.markov.model import MarkovModel
from dphmm.policy import categorical, from_edges, radius, transition
from dphmm.policy.constraint import Constraint
from dphmm.samplers.entropy import ReplayBits
from dphmm.sensitivity import exposed_states, lonely_pairs, lonely_states, merge_lonely
from dphmm.sensitivity.protection import degree_among
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from dphmm.session.session import ReleaseSession
from dphmm.states.space import StateSpace
from naive_mechanisms import hull_of_points
from random_seeds import seeds


@st.composite
def instances(draw, span=5):
    n = draw(st.integers(2, 9))
    answers = np.array(draw(st.lists(st.tuples(*[st.integers(-span, span)] * 2), min_size=n, max_size=n)))
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=8, unique=True))
    states = sorted(draw(st.sets(st.integers(0, n - 1), min_size=2)))
    return answers, edges, states


@given(instances())
@settings(max_examples=120)
def test_degree_equals_the_definition(instance):
    answers, edges, states = instance
    within = [(a, b) for a, b in edges if a in states and b in states]
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges(edges, len(answers)), answers, states)
    found = dphmm.sensitivity.degree_of_protection(hull, answers, states)
    assert found.tolist() == naive.degree(naive.differences(within, answers), answers, states)


@given(instances(), st.booleans())
@settings(max_examples=120)
def test_algorithm_1(instance, recheck):
    answers, edges, states = instance
    policy = dphmm.policy.from_edges(edges, len(answers))
    joined = dphmm.sensitivity.protectable_graph(policy, answers, states, recheck=recheck)
    expected = naive.algorithm_1(edges, answers, states, recheck)
    within = {(a, b) for a, b in edges if a in states and b in states}
    wanted = within | {(min(p), max(p)) for p in expected}
    assert set(map(tuple, joined.edges(states).tolist())) == wanted
    assert len(dphmm.sensitivity.exposed_states(joined, answers, states)) == 0


@given(instances(span=4))
@settings(max_examples=80)
def test_algorithm_3(instance):
    answers, edges, states = instance
    policy = dphmm.policy.from_edges(edges, len(answers))
    joined = dphmm.sensitivity.protectable_graph(policy, answers, states, method="min-volume")
    within = {(a, b) for a, b in edges if a in states and b in states}
    expected = within | {(min(p), max(p)) for p in naive.algorithm_3(edges, answers, states)}
    assert set(map(tuple, joined.edges(states).tolist())) == expected


@seeds(40)
def test_min_error_of_a_single_exposed_state_is_the_least(seed):
    """A clique and one far state: whatever its partner, the hull is planar, and the least exact error wins."""
    rng = np.random.default_rng(seed)
    answers = np.vstack([[0, 0], [2, 0], [0, 2], rng.integers(-3, 4, size=(3, 2)), rng.integers(9, 14, size=(1, 2))])
    clique = [(i, j) for i in range(6) for j in range(i + 1, 6)]
    policy = dphmm.policy.from_edges(clique, 7)
    error = {o: naive.second_moment(naive.differences([*clique, (6, o)], answers)) for o in range(6)}
    joined = dphmm.sensitivity.protectable_graph(policy, answers, method="min-error")
    assert dphmm.sensitivity.exposed_states(policy, answers).tolist() == [6]
    assert joined.neighbors(6).tolist() == [min(error, key=lambda o: (error[o], o))]


def test_dense_and_pairwise_degrees_agree_on_a_grid():
    rng = np.random.default_rng(3)
    x, y = np.meshgrid(np.arange(25), np.arange(20))
    answers = np.column_stack([x.ravel(), y.ravel()])
    states = np.flatnonzero(rng.random(500) < 0.6)
    space = dphmm.StateSpace(answers)
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.radius(space, 4), space, states)
    dense = dphmm.sensitivity.degree_of_protection(hull, space, states)
    points = answers[states]
    plain = [int(hull.contains_lattice(points - p).sum()) for p in points]
    assert dense.tolist() == plain


def test_degree_on_far_scattered_answers():
    answers = np.array([[0, 0], [10**8, 0], [10**8 + 1, 0], [0, 10**8]])
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.from_edges([(1, 2), (0, 3)], 4), answers)
    assert degree_among(hull, answers, np.arange(4), np.arange(4)).tolist() == [2, 2, 2, 2]


def test_twins_are_never_exposed():
    """Theory (c): equal answers hide each other although the hull is a point."""
    answers = np.array([[0, 0], [0, 0], [5, 5], [5, 5]])
    policy = dphmm.policy.from_edges([], 4)
    hull = dphmm.sensitivity.sensitivity_hull(policy, answers)
    assert dphmm.sensitivity.degree_of_protection(hull, answers, None).tolist() == [2, 2, 2, 2]
    assert dphmm.sensitivity.exposed_states(policy, answers).tolist() == []
    assert len(dphmm.sensitivity.protectable_graph(policy, answers).edges()) == 0


def test_states_of_the_support_count_through_their_surrogate():
    space = dphmm.StateSpace(np.array([[0], [1], [9]]))
    policy = dphmm.policy.from_edges([], 3)
    within = Constraint.surrogated(np.array([True, True, True]), np.array([True, False, True]), space)
    hull = dphmm.sensitivity.sensitivity_hull(policy, space, within)
    assert dphmm.sensitivity.degree_of_protection(hull, space, within).tolist() == [2, 2, 1]
    assert dphmm.sensitivity.exposed_states(policy, space, within).tolist() == [2]


def test_empty_policy_joins_everybody():
    answers = np.array([[0, 0], [3, 0], [0, 4], [9, 9]])
    joined = dphmm.sensitivity.protectable_graph(dphmm.policy.from_edges([], 4), answers)
    assert len(dphmm.sensitivity.exposed_states(joined, answers)) == 0


def test_a_single_state_cannot_be_protected():
    with pytest.raises(Unprotectable, match="constraint"):
        dphmm.sensitivity.protectable_graph(dphmm.policy.complete(3), np.array([[0], [1], [2]]), [1])


def test_ties_go_to_the_lowest_number():
    answers = np.array([[0, 0], [2, 0], [0, 2], [-2, 0]])
    joined = dphmm.sensitivity.protectable_graph(dphmm.policy.from_edges([], 4), answers, [0, 1, 2])
    assert [0, 1] in joined.edges([0, 1, 2]).tolist()


def test_nearest_is_in_answer_units():
    """A step of 1 on a coarse axis is farther than 3 on a fine one."""
    space = dphmm.StateSpace([[0.0, 0.0], [10.0, 0.0], [0.0, 3.0]], pitch=[10.0, 1.0])
    joined = dphmm.sensitivity.protectable_graph(dphmm.policy.from_edges([], 3), space)
    assert [0, 2] in joined.edges().tolist()


def test_a_callable_may_not_choose_the_state_itself():
    with pytest.raises(InvalidInput, match="partner"):
        dphmm.sensitivity.protectable_graph(
            dphmm.policy.from_edges([], 2), np.array([[0], [4]]), method=lambda state, others: state
        )


def test_unknown_method_lists_the_known():
    with pytest.raises(InvalidInput, match="nearest, min-volume, min-error"):
        dphmm.sensitivity.protectable_graph(dphmm.policy.complete(2), np.array([[0], [4]]), method="best")


def cross(u, v):
    return u[0] * v[1] - u[1] * v[0]


def within(v, differences):
    """Whether v is in the convex hull of ± the differences: in 0, on a segment from 0, or in a triangle with 0."""
    v = (*v, 0)[:2]
    points = [(*d, 0)[:2] for d in differences] + [tuple(-x for x in (*d, 0)[:2]) for d in differences]
    if v == (0, 0):
        return True
    for u in points:
        dot, square = u[0] * v[0] + u[1] * v[1], u[0] ** 2 + u[1] ** 2
        if cross(u, v) == 0 and 0 <= dot <= square and square:
            return True
        for w in points:
            whole = cross(u, w)
            if whole > 0 and cross(v, w) >= 0 and cross(u, v) >= 0 and cross(v, w) + cross(u, v) <= whole:
                return True
    return False


def differences(edges, answers):
    return [tuple(int(x) for x in answers[b] - answers[a]) for a, b in edges]


def hidden_with(answers, hull):
    """For every state the set of other states whose answers lie within the hull of its own."""
    n = len(answers)
    near = [[within(tuple(int(x) for x in answers[b] - answers[a]), hull) for b in range(n)] for a in range(n)]
    return [{b for b in range(n) if b != a and near[a][b]} for a in range(n)]


def nearest(answers, pitch, state, others):
    def square(other):
        return sum((int(x) * p) ** 2 for x, p in zip(answers[other] - answers[state], pitch, strict=True))

    return min(others, key=lambda other: (square(other), other))


def worlds(seed, how_many):
    """Answers (n, d) in lattice steps, edges, pitches: dense enough for ties, mutual pairs and shared partners."""
    rng = np.random.default_rng(seed)
    for _ in range(how_many):
        n, d = int(rng.integers(2, 8)), int(rng.integers(1, 3))
        answers = rng.integers(0, int(rng.choice([3, 8])), (n, d))
        pairs = [(a, b) for a in range(n) for b in range(a)]
        chosen = rng.permutation(len(pairs))[: int(rng.integers(0, 4))]
        pitch = [Fraction(1), Fraction(1)] if rng.random() < 0.5 else [Fraction(1, 2), Fraction(3)]
        yield answers, sorted(pairs[k] for k in chosen), pitch[:d]


def space_of(answers, pitch):
    return StateSpace(answers * np.array([float(p) for p in pitch]), pitch=[float(p) for p in pitch])


def merged_worlds(seed, how_many):
    """The worlds in which a state is merged: answers, edges, and what merging makes of their policy and space."""
    for answers, edges, pitch in worlds(seed, how_many):
        space, policy = space_of(answers, pitch), from_edges(np.array(edges).reshape(-1, 2), len(answers))
        try:
            merged = merge_lonely(policy, space)
        except Unprotectable:
            continue
        if len(merged.pairs):
            yield answers, edges, merged


def test_thousands_of_small_worlds_keep_their_edges_and_expose_nobody():
    """(i), (ii) and (iii) of docs/proofs/merging.md, and which states are merged into which."""
    seen = {"merged": 0, "refused": 0, "mutual": 0, "shared": 0, "tied": 0, "lonely_next_to_lonely": 0, "kept": 0}
    for answers, edges, pitch in worlds(11, 3000):
        n = len(answers)
        space, policy = space_of(answers, pitch), from_edges(np.array(edges).reshape(-1, 2), n)
        assert np.array_equal(space.lattice - space.lattice[0], answers - answers[0])
        hull = differences(edges, answers)
        before = hidden_with(answers, hull)
        exposed = [s for s in range(n) if not before[s]]
        assert lonely_states(policy, space).tolist() == exposed
        staying = [s for s in range(n) if s not in exposed]
        if exposed and all(not any(step) for step in hull):
            with pytest.raises(Unprotectable, match="merging"):
                merge_lonely(policy, space)
            seen["refused"] += 1
            continue
        merged = merge_lonely(policy, space)
        expected = [[s, nearest(answers, pitch, s, staying)] for s in exposed]
        assert merged.pairs.tolist() == expected
        if not exposed:
            assert merged.policy is policy and merged.space is space
            seen["kept"] += 1
            continue
        after = merged.space.lattice - space.lattice[0] + answers[0]
        # (i) every edge, old or new, is in the hull of the old edges; and no old one moved.
        new = merged.policy.edges().tolist()
        assert {tuple(sorted(edge)) for edge in edges} <= set(map(tuple, new))
        assert all(np.array_equal(after[b] - after[a], answers[b] - answers[a]) for a, b in edges)
        assert all(within(step, hull) for step in differences(new, after))
        # (ii) one answer, and an edge that says so.
        assert all(np.array_equal(after[x], after[p]) and sorted((x, p)) in new for x, p in expected)
        # (iii) whoever hid among others hides among at least those; whoever did not, does now.
        now = hidden_with(after, hull)
        assert all(before[s] - set(exposed) <= now[s] and now[s] for s in range(n))
        assert len(exposed_states(merged.policy, merged.space)) == 0
        everyone = set(range(n))
        seen["merged"] += 1
        seen["mutual"] += any(nearest(answers, pitch, p, everyone - {p}) == x for x, p in expected)
        seen["shared"] += len({p for _, p in expected}) < len(expected)
        seen["lonely_next_to_lonely"] += any(nearest(answers, pitch, x, everyone - {x}) in exposed for x in exposed)
        flipped = answers[::-1]
        last = [n - 1 - nearest(flipped, pitch, n - 1 - x, [n - 1 - s for s in staying]) for x in exposed]
        seen["tied"] += last != [p for _, p in expected]
    assert min(seen.values()) >= 50, seen


@pytest.mark.parametrize("delta", [False, True])
def test_plans_of_merged_worlds_join_nobody_and_answer_pairs_alike(delta):
    """Any support and plan set: a merged state and its partner have one image; the body holds every edge.

    Where everything is possible and planned nobody is joined.
    """
    rng = np.random.default_rng(5 + delta)
    checked = 0
    for answers, edges, merged in merged_worlds(23, 500):
        n = len(answers)
        support = np.ones(n, dtype=bool)
        plan_set = support.copy()
        if delta:
            support = rng.random(n) < 0.8
            plan_set = support & (rng.random(n) < 0.7)
        if plan_set.sum() < 2:
            continue
        options = Options.checked("1")
        plan = Planner(merged.policy, merged.space, options).plan(support, plan_set)
        assert delta or len(plan.joins) == 0
        for x, p in merged.pairs.tolist():
            if support[x] and support[p]:
                assert np.array_equal(plan.image[x], plan.image[p])
        possible = {s for s in range(n) if support[s]}
        for a, b in edges:
            if {a, b} <= possible and not plan.constant:
                step = plan.image[b] - plan.image[a]
                assert plan.hull.contains_lattice(step[None])[0]
        assert not verify(plan, merged.policy, merged.space, support=support).convicted
        checked += 1
    assert checked >= 40


def test_every_required_pair_keeps_epsilon_in_the_law_itself():
    """Losses of all pairs from the exact law of the noise: an edge at most epsilon, a merged pair exactly 0."""
    for answers, edges, merged in merged_worlds(31, 400):
        options = Options.checked("0.5")
        everyone = np.ones(len(answers), dtype=bool)
        plan = Planner(merged.policy, merged.space, options).plan(everyone, everyone)
        dimension = answers.shape[1]
        grid = np.indices((41,) * dimension).reshape(dimension, -1).T - 16
        logs = np.array([plan.log_likelihood(z + plan.image[0]) for z in grid])
        finite = np.isfinite(logs).all(axis=1)
        assert finite.any()
        for a, b in edges:
            assert np.abs(logs[finite, a] - logs[finite, b]).max() <= 0.5 + 1e-9
        for x, p in merged.pairs.tolist():
            assert np.array_equal(logs[:, x], logs[:, p])


def test_exposed_is_needed_isolated_is_not_enough():
    """States 0 and 1 hide each other; merging isolated ones alone would expose one of them."""
    space = StateSpace(np.array([[5, 2], [4, 7], [6, 0], [5, 5]]))
    policy = from_edges([(2, 3)], 4)
    assert lonely_pairs(policy, space).tolist() == []
    assert lonely_pairs(policy, space, isolated=True).tolist() == [[0, 2], [1, 3]]
    one = space.merged({0: 2})
    assert exposed_states(policy, space).tolist() == [] and exposed_states(policy, one).tolist() == [1]


def test_mutual_shared_and_tied_partners():
    # 0 and 1 are lonely and each other's nearest; both go to 2, which is as far from 1 as 4 and has the lower number.
    answers = np.array([[0, 0], [0, 4], [10, 0], [10, 1], [-10, 0], [-10, 1]])
    assert lonely_pairs(from_edges([(2, 3), (4, 5)], 6), StateSpace(answers)).tolist() == [[0, 2], [1, 3]]
    assert lonely_pairs(from_edges([(2, 3), (4, 5)], 6), StateSpace(answers * [2, 1])).tolist() == [[0, 2], [1, 3]]
    # The partner's nearest state is the lonely one itself.
    assert lonely_pairs(from_edges([(1, 2)], 3), StateSpace(np.array([0, 5, 7]))).tolist() == [[0, 1]]


def test_too_little_left_is_refused_and_says_so():
    space = StateSpace(np.array([0, 10, 20]))
    with pytest.raises(Unprotectable, match="3 of 3 states are lonely"):
        lonely_pairs(from_edges(np.zeros((0, 2), dtype=np.int64), 3), space)
    # An edge between equal answers: the hull of the rest is {0}, and a merge would publish the pair.
    level = StateSpace(np.array([0, 0, 20]))
    with pytest.raises(Unprotectable, match="hides no two answers"):
        lonely_pairs(from_edges([(0, 1)], 3), level)
    # For tables: the partner's component has one answer, another component has not.
    mixed, policy = StateSpace(np.array([0, 0, 4, 50, 51])), from_edges([(0, 1), (3, 4)], 5)
    assert lonely_pairs(policy, mixed).tolist() == [[2, 0]]
    with pytest.raises(Unprotectable, match="state 0 would be a partner"):
        lonely_pairs(policy, mixed, isolated=True)


def test_policies_of_every_kind_put_a_merged_state_beside_its_partner():
    """A merged state has its partner as a neighbour, its partner's neighbours, and those merged into it."""
    space = StateSpace(np.array([[0, 0], [1, 0], [2, 0], [9, 0], [30, 0], [13, 0]]))
    moves = np.eye(6)
    moves[1] = [0, 0.5, 0.5, 0, 0, 0]
    kinds = {
        "radius": radius(space, 1),
        "categorical": categorical(["a", "a", "a", "b", "c", "d"]),
        "transition": transition(MarkovModel(np.full(6, 1 / 6), moves)),
        "edges": from_edges([(0, 1), (1, 2)], 6),
    }
    kinds["union"] = radius(space, 1).union(from_edges([(0, 1)], 6))
    for name, policy in kinds.items():
        merged = merge_lonely(policy, space)
        assert merged.pairs.tolist() == [[3, 2], [4, 2], [5, 2]], name
        around = set(policy.neighbors(2).tolist())
        for x in (3, 4, 5):
            assert set(merged.policy.neighbors(x).tolist()) == around | ({2, 3, 4, 5} - {x}), name
        old = {tuple(edge) for edge in policy.edges().tolist()}
        assert old <= {tuple(edge) for edge in merged.policy.edges().tolist()}, name
    # A radius policy of other answers than the space's is not made again from these.
    elsewhere = radius(np.array([0, 1, 2, 13, 40, 50]), 1)
    assert {(0, 1), (1, 2)} <= {tuple(edge) for edge in merge_lonely(elsewhere, space).policy.edges().tolist()}


def test_states_that_a_space_has_merged_are_left_as_they_are():
    space = StateSpace(np.array([0, 1, 10, 30])).merged({2: 3})
    policy = from_edges([(0, 1)], 4)
    assert exposed_states(policy, space).tolist() == [] and lonely_states(policy, space, isolated=True).tolist() == []
    wider = StateSpace(np.array([0, 1, 10, 30, 90])).merged({2: 3})
    assert merge_lonely(from_edges([(0, 1)], 5), wider).space.merges.tolist() == [[2, 3], [4, 3]]


def test_without_lonely_states_nothing_changes():
    """The default is to join: a plan of a space without merges has the hash that it had."""
    space = StateSpace(np.array([[0, 0], [1, 0], [0, 1], [5, 5]]))
    policy = from_edges([(0, 1), (0, 2)], 4)
    options = Options.checked("1", protection="nearest")
    everyone = np.ones(4, dtype=bool)
    plan = Planner(policy, space, options).plan(everyone, everyone)
    assert space.merged({}) is space and space.unmerged is space and space.own_answers is space.answers
    assert plan.joins.tolist() == [[3, 1]]
    assert plan.hash == "946a73f440e7fb621111a91986a9eadde30926f660b34cce9aad727c6743d00f"
    assert Planner(policy, space.merged({3: 1}), options).plan(everyone, everyone).hash != plan.hash


def test_sessions_estimate_where_a_state_is_and_not_where_it_is_answered():
    space = StateSpace(np.array([0, 1, 100]))
    merged = merge_lonely(from_edges([(0, 1)], 3), space)
    model = MarkovModel([0.0, 0.0, 1.0], np.eye(3))
    session = ReleaseSession(model, merged.policy, merged.space, epsilon=1, bits=ReplayBits(1))
    released = session.release(2)
    assert released.constant and released.z.tolist() == [1.0] and session.estimate().answer.tolist() == [100.0]
    constraint = Constraint.surrogated(np.array([True, True, True]), np.array([True, False, True]), merged.space)
    assert constraint.surrogate.tolist() == [0, 2, 2]


def test_a_history_goes_on_with_the_same_merges_alone():
    """The same policy and model, only the merges differ: the space's hash tells, and nothing is drawn."""
    space = StateSpace(np.array([0, 1, 2, 40]))
    merged = merge_lonely(from_edges([(0, 1), (1, 2)], 4), space)
    model = MarkovModel(np.full(4, 0.25), np.full((4, 4), 0.25))
    ledger = MemoryLedger()
    choices = {"epsilon": 1, "ledger": ledger, "subject": "a", "bits": ReplayBits(1)}
    session = ReleaseSession(model, merged.policy, merged.space, **choices)
    first = session.release(3)
    for other in (space, space.merged({3: 0})):
        with pytest.raises(InvalidInput, match="the space of the history"):
            ReleaseSession.resume(ledger, "a", model, merged.policy, other)
    again = ReleaseSession.resume(ledger, "a", model, merged.policy, space.merged(merged.pairs))
    assert again.t == 2 and again.release(0, t=1).z.tolist() == first.z.tolist()


def inside(hull, v):
    if any(sum(a * c for a, c in zip(row, v, strict=True)) for row in hull.equations.tolist()):
        return False
    y = [sum(a * c for a, c in zip(row, v, strict=True)) for row in hull.coordinates.tolist()]
    facets = zip(hull.normals.tolist(), hull.offsets.tolist(), strict=True)
    return all(abs(sum(a * c for a, c in zip(n, y, strict=True))) <= b for n, b in facets)


def test_degrees_are_those_of_every_pair():
    """300 bodies of up to 2**30 steps with up to 80 points, as far out as 2**61."""
    rng = random.Random(8)
    for _ in range(300):
        m = rng.choice([1, 3, 10, 60, 10**4, 10**9, 2**30])
        hull = hull_of_points([(rng.randint(-m, m), rng.randint(-m, m)) for _ in range(rng.randint(2, 5))])
        far, wide, high = rng.choice([0, 10**6, -(2**40), -(2**61)]), rng.choice([1, 5, 60]), rng.choice([1, 60])
        image = np.array([[far + rng.randint(0, wide), -far + rng.randint(0, high)] for _ in range(rng.randint(1, 80))])
        if rng.random() < 0.2:
            image[rng.randrange(len(image))] += rng.choice([1000, -5000, 2**50])
        states = range(len(image))
        targets = np.array(sorted(rng.sample(states, rng.randint(0, len(image)))), dtype=np.int64)
        among = np.array(sorted(rng.choices(states, k=rng.randint(0, len(image)))), dtype=np.int64)
        points = image.tolist()
        expected = [
            sum(inside(hull, [b - a for a, b in zip(points[i], points[j], strict=True)]) for j in among.tolist())
            for i in targets.tolist()
        ]
        assert degree_among(hull, image, targets, among).tolist() == expected
