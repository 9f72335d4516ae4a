"""Releases with the optimal table: the whole way from a policy to a ledger, an audit and a command.

Claims: every required pair of a plan (policy edges between possible states however they are answered, joins, partners)
loses at most ε by enumeration in fractions of the rows that are drawn from, and every plan state has such a pair; what
comes out is an answer of the plan, and beliefs are Bayes' rule on its integers; the stated cost bounds every two
states; plans are hashed over the weights and resumed under them alone; an audit that reads the integers for itself
acquits, and convicts a doctored table. It would fail for a table that forgets surrogates or joins, a belief of another
law, a hash of ε and name alone.

Mechanisms whose weights come from a float solver: a session is resumed under its own weights or not at all.

It would fail for a plan whose hash is of ε and name alone: on a machine that solves otherwise, old answers would be
followed by weights that they were not drawn from.
"""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.accounting.edge_leakage import losses_between
from dphmm.audit import sample_plan, sequence_loss, verify
from dphmm.errors import InvalidInput, Unprotectable
from dphmm.mechanisms import OptimalTable, table
from dphmm.release.batch import Batch
from dphmm.session.answer import answer_under
from dphmm.session.options import Options
from dphmm.session.planner import Planner
from dphmm.states.trajectory import Trajectories
from naive_table import exp_below, ratio_of_states, required_of
from running_example import ANSWERS, EDGES_3B
from single_answers import answered

UNIFORM = dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6))
POLICY = dphmm.policy.from_edges(EDGES_3B, 6)
SPACE = dphmm.StateSpace(ANSWERS)
NAME = OptimalTable.name


def session(epsilon=2, policy=POLICY, space=SPACE, model=UNIFORM, **options):
    options = {"bits": dphmm.ReplayBits(1), "subject": "s", "mechanism": NAME, **options}
    return dphmm.ReleaseSession(model, policy, space, epsilon, **options)


def worlds():
    """Spaces with equal answers, policies that leave states alone, δ-sets, partners of other queries, flat answers."""
    rng = np.random.default_rng(5)
    for number in range(48):
        n = int(rng.integers(3, 10))
        points = rng.integers(-2, 3, (n, 1 + number % 3))
        if number % 4 == 3:
            points[:, 1:] = 0
        space = dphmm.StateSpace(points)
        pairs = [tuple(p) for p in itertools.combinations(range(n), 2) if rng.random() < 0.3]
        policies = [dphmm.policy.from_edges(pairs, n), dphmm.policy.radius(space, 1), dphmm.policy.complete(n)]
        policy = policies[number % 3]
        support = rng.random(n) < 0.8
        support[:2] = True
        chosen = support & (rng.random(n) < 0.7)
        chosen[0] = True
        partners = np.array([[0, 1]]) if number % 5 == 0 else np.zeros((0, 2), dtype=np.int64)
        epsilon = Fraction([1, 2, 5, 15][number % 4])
        yield policy, space, epsilon, support, chosen if number % 2 else support, partners


def planned():
    for policy, space, epsilon, support, chosen, partners in worlds():
        try:
            plan = Planner(policy, space, Options.checked(epsilon, mechanism=NAME)).plan(support, chosen, partners)
        except Unprotectable:
            continue
        if not plan.constant:
            yield policy, space, plan


def test_every_required_pair_of_random_plans_keeps_epsilon_and_everybody_has_one():
    seen = 0
    for policy, _, plan in planned():
        most = exp_below(plan.epsilon)
        pairs = list(required_of(policy, plan))
        assert all(ratio_of_states(plan, a, b) <= most for a, b in pairs)
        support = plan.constraint.support
        hidden = {a for pair in pairs for a in pair}
        assert set(np.flatnonzero(support).tolist()) <= hidden
        for a, b in itertools.combinations(np.flatnonzero(support).tolist(), 2):
            assert ratio_of_states(plan, a, b) <= exp_below(plan.cost)
        seen += len(pairs)
    assert seen > 200


def test_the_audit_acquits_random_plans_and_finds_their_degrees():
    for policy, space, plan in planned():
        found = verify(plan, policy, space)
        assert found.findings == () and found.loss <= plan.epsilon and found.cost <= plan.cost
        most, support = exp_below(plan.epsilon), np.flatnonzero(plan.constraint.support).tolist()
        degrees = [sum(ratio_of_states(plan, a, b) <= most for b in support) for a in support]
        assert found.degrees[support].tolist() == degrees == plan.degrees()[support].tolist()
        assert min(degrees) >= 2


def doctored(plan, change):
    """The plan with a table that was changed after it had been certified."""
    own = plan.mechanism
    weights = own.law.weights.copy()
    change(weights)
    other = OptimalTable.__new__(OptimalTable)
    other.__dict__.update({k: v for k, v in own.__dict__.items() if k not in ("_sampler", "_losses")})
    other._law = replace(own.law, weights=weights)
    return replace(plan, mechanism=other)


def moved(row, start, end, share):
    def change(weights):
        part = int(weights[row][start] * share)
        weights[row][start] -= part
        weights[row][end] += part

    return change


def lost_row(weights):
    weights[2] = weights[2] * 2


def lost_answer(weights):
    weights[:, 4] += weights[:, 0]
    weights[:, 0] = 0


@pytest.mark.parametrize(
    "change", [moved(1, 1, 0, Fraction(9, 10)), moved(4, 4, 5, Fraction(1, 2)), lost_row, lost_answer]
)
def test_the_audit_convicts_a_table_that_was_changed(change):
    plan = session().plan
    assert not verify(plan, POLICY, SPACE).convicted
    assert verify(doctored(plan, change), POLICY, SPACE).convicted


def test_the_audit_convicts_a_cost_below_what_two_states_lose():
    plan = session().plan
    assert not verify(replace(plan, cost=plan.cost), POLICY, SPACE).convicted
    assert verify(replace(plan, cost=plan.cost - Fraction(1, 2**38)), POLICY, SPACE).convicted


def test_the_audit_convicts_an_edge_that_the_table_does_not_keep():
    """The plan was made for another policy than the one it is judged by."""
    found = verify(session().plan, POLICY.union(dphmm.policy.from_edges([(0, 5)], 6)), SPACE)
    assert found.convicted and found.worst.kind == "policy" and {found.worst.a, found.worst.b} == {0, 5}


def test_black_box_samples_acquit():
    assert not sample_plan(session().plan, POLICY, SPACE, draws=20_000, bits=dphmm.ReplayBits(3)).convicted


def test_it_is_chosen_by_name_and_never_by_auto():
    plan = session().plan
    assert plan.mechanism_name == NAME and plan.mechanism.epsilon == 2
    assert session(mechanism="auto").plan.mechanism_name != NAME
    assert "optimal-table" in repr(plan)


def test_only_answers_of_the_plan_come_out_and_beliefs_are_bayes_rule():
    own = session()
    plan = own.plan
    law = plan.mechanism.law
    release = own.release(3)
    z = tuple(release.z_lattice.tolist())
    assert z in {tuple(p) for p in plan.image.tolist()} and release.mechanism == NAME
    points = [tuple(p) for p in law.points.tolist()]
    likelihood = [law.weights[points.index(tuple(f))][points.index(z)] for f in plan.image.tolist()]
    exact = [float(Fraction(w, sum(likelihood))) for w in likelihood]
    np.testing.assert_allclose(own.posterior.probability, exact, rtol=1e-9)
    assert own.posterior.support.all() and np.isfinite(own.estimate().answer).all()


def test_many_draws_are_as_many_single_ones():
    plan = session().plan
    states = np.array([0, 5, 2, -1, 3, 3, 1, -1, 4] * 5)
    one, many = dphmm.ReplayBits(4), dphmm.ReplayBits(4)
    lowest = int(np.argmax(plan.constraint.plan))
    singly = [answered(plan, s if s >= 0 else lowest, one) for s in states.tolist()]
    assert list(map(tuple, answer_under(plan, states, many)[0].tolist())) == singly
    assert one.uint64(3).tolist() == many.uint64(3).tolist()


@pytest.mark.parametrize("constraint", ["support", "delta=0.1"])
def test_a_batch_writes_what_a_session_writes(constraint):
    names = np.array([SPACE.names[s] for s in (0, 1, 2, 5)], dtype=object)
    made = Batch(UNIFORM, POLICY, SPACE, 2, mechanism=NAME, constraint=constraint, bits=dphmm.ReplayBits(1))
    released = [row for chunk in made.run(Trajectories.from_labels(["a"] * 4, state=names)) for row in chunk]
    own = session(subject="a", constraint=constraint)
    singly = [own.release(state) for state in (0, 1, 2, 5)]
    for row, alone in zip(released, singly, strict=True):
        assert row.release.z.tolist() == alone.z.tolist() and row.release.mechanism == NAME


def test_a_belief_follows_flat_answers_without_excluding_anybody():
    """A table has no direction, and every state stays possible."""
    space = dphmm.StateSpace(np.array([[0, 0], [1, 0], [2, 0], [0, 1], [1, 1], [2, 1]]))
    policy = dphmm.policy.from_edges([(0, 1), (1, 2), (3, 4), (4, 5)], 6)
    own = session(space=space, policy=policy)
    assert own.plan.hull.rank == 1
    for state in (0, 1, 5):
        own.release(state)
        assert own.posterior.support.all()
    assert not verify(own).convicted


def test_an_answer_that_is_none_of_the_table_s_is_refused_in_one_line():
    own = session()
    assert not own.plan.still_possible(np.array([77, 0])).any()
    with pytest.raises(InvalidInput, match="excludes every possible state"):
        own._position.condition(own.plan, np.array([77, 0]))


def test_two_queries_of_a_subject_keep_each_other_s_partners():
    other = dphmm.StateSpace(ANSWERS[:, :1])
    ledger = dphmm.accounting.MemoryLedger()
    first = session(ledger=ledger, query="place")
    first.release(0)
    second = session(ledger=ledger, query="east", space=other)
    plan = second.plan
    assert plan.joint_edges.tolist() == [[0, 1]]
    assert ratio_of_states(plan, 0, 1) <= exp_below(2)
    second.release(0)


def test_delta_sets_take_it_too():
    made = session(constraint="delta=0.4")
    assert int(made.plan.constraint.plan.sum()) < 6
    made.release(3)
    assert not verify(made).convicted


def test_histories_lose_what_is_charged_at_most():
    found = sequence_loss(UNIFORM, POLICY, SPACE, 2, 3, mechanism=NAME)
    assert not found.convicted and found.worst == found.charged


def test_what_accounting_takes_pairs_to_lose_is_not_below_what_they_lose():
    for policy, _, plan in itertools.islice(planned(), 12):
        n = len(plan.image)
        i, j = (a.ravel() for a in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
        stated = losses_between(plan, i, j, n)
        for a, b, loss in zip(i.tolist(), j.tolist(), stated.tolist(), strict=True):
            assert loss == 0 if a == b else ratio_of_states(plan, a, b) <= exp_below(Fraction(loss))
            assert a == b or loss <= math.log(ratio_of_states(plan, a, b)) + 1e-8
        pairs = np.array(list(required_of(policy, plan)))
        assert (losses_between(plan, pairs[:, 0], pairs[:, 1], n) <= float(plan.epsilon)).all()


def test_a_session_is_resumed_under_its_own_weights_or_not_at_all(tmp_path, monkeypatch):
    path, options = tmp_path / "ledger.db", {"subject": "s", "mechanism": "optimal-table", "bits": dphmm.ReplayBits(1)}
    with dphmm.open_ledger(path) as ledger:
        own = dphmm.ReleaseSession(*(UNIFORM, POLICY, SPACE), 2, ledger=ledger, **options)
        kept = [own.release(state).z_lattice.tolist() for state in (3, 1)]
        record = json.loads(ledger.plan(own.release(0, t=2).plan_hash).description)
        assert record["mechanisms"][0]["weights"] == own.plan.mechanism.law.digest
    table._cache.clear()
    with dphmm.open_ledger(path) as ledger:
        resumed = dphmm.ReleaseSession.resume(ledger, "s", *(UNIFORM, POLICY, SPACE))
        assert resumed.t == 3 and resumed.release(0, t=1).z_lattice.tolist() == kept[0]
        before = resumed.plan.hash
    solve = table.optimum

    def solved_elsewhere(problem, epsilon, bounded_at):
        """As well, and with another solution."""
        found = solve(problem, epsilon, bounded_at)
        return replace(found, law=0.9 * found.law + 0.1 / len(found.law))

    try:
        table._cache.clear()
        monkeypatch.setattr(table, "optimum", solved_elsewhere)
        assert dphmm.ReleaseSession(*(UNIFORM, POLICY, SPACE), 2, **options).plan.hash != before
        with dphmm.open_ledger(path) as ledger:
            with pytest.raises(InvalidInput, match="made from the record"):
                dphmm.ReleaseSession.resume(ledger, "s", *(UNIFORM, POLICY, SPACE))
            assert len(ledger.entries("s", "state")) == 2
    finally:
        table._cache.clear()
