"""States that nothing hides in one plan, answered as their nearest plan state: by enumeration and by hand."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.audit.law import Law
from dphmm.errors import InvalidInput
from dphmm.policy import from_edges
from dphmm.policy.constraint import Constraint
from dphmm.samplers.entropy import ReplayBits
from dphmm.sensitivity.protection import plan_merges
from dphmm.session.options import Options, StepChoice
from dphmm.session.planner import Planner

NOBODY = np.zeros((0, 2), dtype=np.int64)


def merges(answers, edges, plan=None, support=None, isolated=False, given=NOBODY):
    space, n = dphmm.StateSpace(answers), len(answers)
    whole = np.ones(n, dtype=bool)
    support = whole if support is None else np.isin(np.arange(n), support)
    plan = support if plan is None else np.isin(np.arange(n), plan)
    policy = from_edges([*edges, *given], n)
    constraint = Constraint.surrogated(support, plan, space)
    found = plan_merges(policy, space.lattice, space.frame, constraint, isolated, np.array(given).reshape(-1, 2))
    return found.tolist()


def test_exposed_is_needed_and_isolated_is_not_enough():
    """1 and 2 hide each other: merged into 3, its nearest, 1 would leave 2 alone."""
    answers = [[5, 2], [4, 7], [6, 0], [5, 5]]
    assert merges(answers, [(2, 3)]) == []
    assert merges(answers, [(2, 3)], isolated=True) == [[0, 2], [1, 3]]


def test_a_state_alone_in_its_plan_set_is_merged_there():
    """On the whole line everybody has a neighbour; on this plan set state 5 has none."""
    line, edges = np.arange(6) * 2, [(k, k + 1) for k in range(5)]
    assert merges(line, edges) == []
    assert merges(line, edges, support=[0, 1, 5]) == [[5, 1]]
    # A possible state that it answers for hides with it, and so it is not exposed.
    assert merges(line, edges, support=[0, 1, 4, 5], plan=[0, 1, 5]) == []


def test_too_little_left_is_joined():
    assert merges([0, 5], []) == []
    assert merges([0, 0, 9], [(0, 1)]) == []
    # Of components one would answer its partner without noise.
    assert merges([0, 0, 9, 10, 3], [(0, 1), (2, 3)], isolated=True) == []


def test_of_a_mutual_pair_one_is_merged():
    """0 and 1 have recorded each other: both taken out they would be swapped, and keep nothing."""
    answers, edges = [0, 1, 10, 11], [(2, 3)]
    assert merges(answers, edges, given=[(0, 1), (1, 0)]) == [[0, 1]]
    # A recorded partner that is somebody's partner too has an edge to that one, and stays.
    assert merges([0, 1, 2, 10, 11], [(3, 4)], given=[(0, 1), (1, 2), (2, 1)]) == [[0, 1], [2, 1]]
    # One with another edge is not taken out.
    assert merges([0, 1, 10, 11], [(2, 3), (0, 2)], given=[(0, 1)]) == []


def planner(protection, answers, edges, weights=None, epsilon=1, **choices):
    space = dphmm.StateSpace(answers)
    options = Options.checked(epsilon, protection=protection, **choices)
    return Planner(from_edges(edges, len(answers)), space, options, weights=weights)


def everywhere(n):
    return np.ones(n, dtype=bool)


FAR = [0, 1, 2, 3, 60]
PATH = [(0, 1), (1, 2), (2, 3)]


def test_auto_takes_the_smaller_error():
    """A lonely state far away is merged while few people are there, and joined where everybody is."""
    few = np.array([2**30, 2**30, 2**30, 2**30, 2**10])
    many = np.array([1, 1, 1, 1, 2**32])
    rare = planner("auto", FAR, PATH, few, epsilon="0.01")
    # At a small epsilon a wide hull costs more than the way of 57 does.
    assert rare.plan(everywhere(5), everywhere(5)).merged.tolist() == [[4, 3]]
    tight = planner("auto", FAR, PATH, many, epsilon=100)
    assert tight.plan(everywhere(5), everywhere(5)).merged.tolist() == []
    own = {name: planner(name, FAR, PATH).plan(everywhere(5), everywhere(5)) for name in ("merge", "nearest")}
    assert own["merge"].merged.tolist() == [[4, 3]] and own["nearest"].joins.tolist() == [[4, 3]]


def test_the_error_that_auto_weighs_is_that_of_its_definition():
    """Noise, and the square of the way, over the possible states by weight: against a plain sum."""
    generator = np.random.default_rng(3)
    for _ in range(60):
        n = int(generator.integers(4, 8))
        answers = generator.integers(0, 30, (n, 2))
        edges = [tuple(pair) for pair in generator.integers(0, n, (2, 2)).tolist() if pair[0] != pair[1]]
        weights = generator.integers(0, 2**20, n)
        support = generator.random(n) < 0.9
        if not edges or not support.any():
            continue
        errors = {}
        for name in ("nearest", "merge", "auto"):
            try:
                plan = planner(name, answers, edges, weights).plan(support, support)
            except dphmm.errors.DphmmError:
                errors[name] = None
                continue
            share = np.where(support, weights, 0) if weights[support].any() else support
            noise = plan.mechanism.expected_error
            off = ((answers[plan.constraint.surrogate] - answers) ** 2).sum(axis=1)
            errors[name] = float(share @ (noise + off) / share.sum()), len(plan.merged)
        known = [errors[name][0] for name in ("nearest", "merge") if errors[name] is not None]
        if known:
            assert errors["auto"][0] <= min(known) * 1.0101


def test_weights_are_part_of_the_hash_of_auto_alone():
    few, many = np.array([5, 5, 5, 5, 1]), np.array([5, 5, 5, 5, 2])
    for name, differs in (("auto", True), ("nearest", False), ("merge", False)):
        hashes = {planner(name, FAR, PATH, weights).plan(everywhere(5), everywhere(5)).hash for weights in (few, many)}
        assert len(hashes) == 1 + differs


def test_the_recorded_split_is_taken():
    """What another machine decided is made again, whatever floats say here; an unasked split changes nothing."""
    for protection in ("auto", "nearest"):
        made = planner(protection, FAR, PATH)
        own = made.plan(everywhere(5), everywhere(5))
        merged = made.plan(everywhere(5), everywhere(5), choice=StepChoice(split="merge"))
        joined = made.plan(everywhere(5), everywhere(5), choice=StepChoice(split="join"))
        assert merged.merged.tolist() == [[4, 3]] and joined.joins.tolist() == [[4, 3]]
        assert own.hash in (merged.hash, joined.hash) and merged.hash != joined.hash
    lonely_nowhere = planner("auto", [0, 1, 2], [(0, 1), (1, 2)])
    plans = {
        lonely_nowhere.plan(everywhere(3), everywhere(3), choice=choice).hash
        for choice in (None, StepChoice(split="merge"), StepChoice(split="join"))
    }
    assert len(plans) == 1


def test_a_protection_that_there_is_not_is_refused():
    answers, edges = [[0, 0], [1, 0], [2, 0], [1, 5]], [(0, 1), (1, 2)]
    with pytest.raises(InvalidInput, match=r"protection: got best; expected one of auto, merge, nearest"):
        planner("best", answers, edges)


def test_states_merged_in_a_plan_are_no_drift_and_have_one_law():
    model = dphmm.MarkovModel(np.full(5, 0.2), np.full((5, 5), 0.2))
    space, policy = dphmm.StateSpace(FAR), from_edges(PATH, 5)
    session = dphmm.ReleaseSession(model, policy, space, 1, protection="merge", bits=ReplayBits(b"drift"))
    plan = session.plan
    assert plan.merged.tolist() == [[4, 3]] and plan.plan_set.all() and not plan.constraint.plan[4]
    for state in (4, 3, 0):
        session.release(state)
    assert session.drifted == 0
    assert plan.log_likelihood(np.array([7]))[4] == plan.log_likelihood(np.array([7]))[3]
    assert not dphmm.audit.verify(plan, policy, space).convicted


@pytest.mark.parametrize("constraint", ["support", "delta=0.3"])
def test_a_history_of_merged_states_is_resumed(constraint):
    moves = 0.7 * np.eye(5) + 0.3 * np.full((5, 5), 0.2)
    model, space = dphmm.MarkovModel(np.full(5, 0.2), moves), dphmm.StateSpace(FAR)
    ledger, given = MemoryLedger(), {"subject": "a", "protection": "auto", "constraint": constraint}
    policy = from_edges(PATH, 5)
    session = dphmm.ReleaseSession(model, policy, space, "0.1", ledger=ledger, bits=ReplayBits(b"merged"), **given)
    before = [session.release(state) for state in (4, 4, 3, 0)]
    records = [ledger.plan(release.plan_hash).description for release in before]
    assert any('"merged": [[4, 3]]' in record for record in records)
    again = dphmm.ReleaseSession.resume(ledger, "a", model, policy, space)
    assert [release.z.tolist() for release in again.releases] == [r.z.tolist() for r in before]
    assert again.plan.hash == session.plan.hash and str(again.estimate()) == str(session.estimate())
    assert not dphmm.audit.verify(again).convicted


def worst(plans, a, b):
    """The joint loss of two states over the queries of a step, exactly: laws are independent given the state."""
    total = Fraction(0)
    for plan in plans:
        law = Law.of(plan.mechanism)
        own = law.between(plan.image[a], plan.image[b])
        total = total + own
    return total


def test_three_queries_of_one_step_keep_every_pair():
    """Every policy edge, and every state with one other, loses at most the sum over all queries; in drawn worlds."""
    generator, met = np.random.default_rng(11), 0
    for number in range(150):
        n = int(generator.integers(3, 7))
        edges = [
            tuple(p) for p in generator.integers(0, n, (int(generator.integers(1, 4)), 2)).tolist() if p[0] != p[1]
        ]
        if not edges:
            continue
        policy, initial = from_edges(edges, n), np.full(n, 1 / n)
        model = dphmm.MarkovModel(initial, np.full((n, n), 1 / n))
        ledger, plans = MemoryLedger(), []
        for query in range(3):
            space = dphmm.StateSpace(generator.integers(0, 12, (n, 2)))
            protection = str(generator.choice(["auto", "merge"]))
            session = dphmm.ReleaseSession(
                *(model, policy, space, 1), ledger=ledger, subject="a", query=str(query),
                mechanism="discrete-knorm", protection=protection, bits=ReplayBits(number),
            )  # fmt: skip
            plan = session.plan
            try:
                session.release(0)
            except dphmm.errors.DphmmError:
                break
            plans.append(plan)
        if len(plans) < 3 or any(plan.constant for plan in plans):
            continue
        met += any(len(plan.merged) for plan in plans[1:])
        for a, b in policy.edges().tolist():
            assert worst(plans, a, b) <= 3, (number, a, b)
        for state in range(n):
            others = [worst(plans, state, other) for other in range(n) if other != state]
            assert min(others) <= 3, (number, state)
        for (a, b), plan in itertools.product(
            np.unique(np.vstack([p.partners for p in plans]), axis=0).tolist(), plans
        ):
            assert worst([plan], a, b) <= 1, (number, a, b)
    assert met >= 5
