"""`dphmm.audit.verify` convicts plans with one thing wrong, acquits right ones, and its numbers are right.

Claims: it says of random plans what the exact checker of tests/exactness says (worst loss, degrees, exposed states,
cost), which shares no code with it; it acquits all plans of the library that it is shown; it convicts twelve wrong
plans, each by the finding that names what is wrong, and bugs planted in the planner. It never draws, so it cannot have
looked at a true state. All of it is deterministic: no error rates.
"""

from __future__ import annotations

import ast
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

import dphmm
from audit import planted
from audit.small import MODEL, POLICY, SPACE, everywhere, session
from dphmm.audit import verify, verify_steps
from dphmm.audit.law import Law
from dphmm.errors import InvalidInput
from dphmm.mechanisms import DiscreteKNorm, Staircase, chosen_kind
from dphmm.session import answer
from exactness import mutants, support
from exactness.__main__ import SEED
from exactness.case import Case
from exactness.instances import Instance
from exactness.play import Play
from exactness.required_pairs import policy_edges
from registered import chosen_mechanisms
from running_example import ANSWERS, EDGES_3B

AUDIT = Path(dphmm.__file__).parent / "audit"
#: What decides in an exact audit of a plan.
EXACT = ("history", "law", "pairs", "verify")


def cases(numbers):
    """(plan, policy, space, case) of the plans that instances are played under."""
    for number in numbers:
        instance = Instance.numbered(SEED, number)
        try:
            play = Play.of(instance)
        except dphmm.errors.InvalidInput:
            continue
        edges = policy_edges(instance.policy, instance, play.spaces[instance.queries[0].name])
        possible = {query.name: support.at_first(instance, query) for query in instance.queries}
        reached = dict.fromkeys(possible, 1)
        try:
            for step in play.steps():
                name = step.query.name
                while reached[name] < step.t:
                    possible[name], reached[name] = support.reach(instance, possible[name]), reached[name] + 1
                case = Case(instance, step, edges, possible[name])
                yield step.plan, play.policy, step.space, case
                possible[name] = support.left_by(case)
        except (dphmm.errors.InvalidInput, dphmm.errors.Unprotectable):
            continue


def unbounded(loss):
    return math.inf if loss is None else loss


def quick(most):
    """Numbers of instances in one and two dimensions on few states."""
    made = ((number, Instance.numbered(SEED, number)) for number in range(10 * most))
    fit = (n for n, one in made if one.n <= 12 and all(query.answers.shape[1] <= 2 for query in one.queries))
    return list(itertools.islice(fit, most))


@pytest.mark.parametrize("most", [40, pytest.param(600, marks=pytest.mark.long)])
def test_the_numbers_are_those_of_the_exact_checker(most):
    seen = 0
    for plan, policy, space, case in cases(quick(most) if most < 100 else range(most)):
        verdict = verify(plan, policy, space, support=case.support)
        assert not verdict.convicted, (case.where, verdict.findings)
        assert verdict.loss == max((unbounded(case.worst(a, b)) for _, a, b in case.required), default=0), case.where
        among = {s: sum(unbounded(case.worst(s, o)) <= case.epsilon for o in case.possible) for s in case.possible}
        assert {s: int(verdict.degrees[s]) for s in case.possible} == among, case.where
        losses = [unbounded(case.worst(a, b)) for a, b in itertools.combinations(case.planned, 2)]
        assert verdict.cost == max(losses, default=0) == plan.cost, case.where
        seen += 1
    assert seen > most


# The loss of a table is below ε by rounding: tests/session/test_optimal_table.py.
@pytest.mark.parametrize("mechanism", [name for name in chosen_mechanisms() if chosen_kind(name).made_from == "hull"])
@pytest.mark.parametrize(
    "options",
    [{}, {"constraint": "delta=0.2"}, {"protection": "min-error"}],
    ids=str,
)
def test_sessions_are_acquitted_step_after_step(mechanism, options):
    one = session(mechanism=mechanism, **options)
    for t in range(4):
        verdict = verify(one)
        assert verdict.findings == ()
        assert verdict.loss == 1 or not verdict.pairs
        if t == 1:
            one.skip()
        one.release(t)


def test_the_running_example():
    """Example 5.1: degrees 4, 6, 3, 5, 4, 4; the largest norm of a pair is 2 (docs/theory.md 10)."""
    verdict = verify(session(model=everywhere(), mechanism="discrete-knorm"))
    assert verdict.degrees.tolist() == [4, 6, 3, 5, 4, 4]
    assert (verdict.factor, verdict.cost, verdict.loss) == (2, 2, 1)
    a, b = verdict.cost_pair
    assert verdict.body.facets == verdict.body.met == 3
    # Every loss of a required pair was found again by enumeration; s1 is hidden without an edge.
    assert verdict.enumerated >= 5 and verdict.exposed.size == 0
    assert (
        Law.of(session(model=everywhere(), mechanism="discrete-knorm").plan.mechanism).norm(ANSWERS[a] - ANSWERS[b])
        == 2
    )


@pytest.mark.parametrize(("wrong", "words"), planted.WRONG, ids=[wrong.__name__ for wrong, _ in planted.WRONG])
def test_a_wrong_plan_is_convicted_for_what_is_wrong(wrong, words):
    """Example 6.1's states: s3 has to be joined, so a stale hull is a smaller one."""
    support = np.array([False, False, True, True, True, True])
    within = np.where(support, 0.25, 0.0)
    model = dphmm.MarkovModel(within, np.tile(within, (6, 1)), start="at")
    one = session(model=model, mechanism="discrete-knorm")
    right = one.plan
    assert len(right.joins) and verify(right, POLICY, SPACE, support=support).findings == ()
    bad = wrong(right, POLICY, SPACE)
    if wrong is planted.another_epsilon:
        one.setting.planner._plans.clear()
        one.setting.planner._make = lambda *parts: bad
        verdict = verify(one)
    else:
        verdict = verify(bad, POLICY, SPACE, support=support)
    assert verdict.convicted
    assert any(words in finding for finding in verdict.findings), verdict.findings
    assert "CONVICTED" in verdict.lines[0]


BUGS = {
    mutants.stale_hull: "joined pair",
    mutants.one_sided_differences: "policy pair",
    mutants.surrogate_edges_dropped: "policy pair",
    mutants.offset_minus_one: "loses",
    mutants.self_connection: "exposed",
    mutants.nobody_exposed: "exposed",
    mutants.epsilon_charged_as_cost: "is charged",
    mutants.likelihood_of_another_epsilon: "another law",
}
_FIT = {plant: fit for plant, _, fit in mutants.MUTANTS}


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_a_bug_in_the_planner_is_convicted(plant, monkeypatch):
    numbers = [n for n in range(300) if _FIT[plant](Instance.numbered(SEED, n))]
    plant(monkeypatch)
    for number in numbers:
        for plan, policy, space, case in cases([number]):
            verdict = verify(plan, policy, space, support=case.support)
            if any(BUGS[plant] in finding for finding in verdict.findings):
                return
    pytest.fail(f"{plant.__name__} was not noticed")


def test_an_exposed_state_is_named():
    policy = dphmm.policy.from_edges([(0, 1)], 3)
    space = dphmm.StateSpace([[0], [1], [9]])
    plan = session(model=everywhere(3), policy=policy, space=space).plan
    bad = planted.stale_hull(plan, policy, space)
    verdict = verify(bad, policy, space)
    assert verdict.exposed.tolist() == [2] and verdict.degrees.tolist() == [2, 2, 1]
    assert any("states 2 are exposed" in finding for finding in verdict.findings)


def test_nothing_is_drawn(monkeypatch):
    one = session()
    one.release(2)
    before = one.releases

    def never(*parts):
        raise AssertionError("an audit of a plan draws nothing")

    monkeypatch.setattr(answer, "answer_under", never)
    monkeypatch.setattr(DiscreteKNorm, "noise", never)
    monkeypatch.setattr(Staircase, "noise", never)
    assert not verify(one).convicted
    assert one.releases == before and one.t == 2


@pytest.mark.parametrize("module", EXACT)
def test_it_shares_no_arithmetic_with_the_planner(module):
    """No module that decides imports sensitivity, the planner, or a private part of a policy."""
    tree = ast.parse((AUDIT / f"{module}.py").read_text())
    named = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    named += [alias.name for n in ast.walk(tree) if isinstance(n, ast.Import) for alias in n.names]
    forbidden = ("dphmm.sensitivity", "dphmm.session.planner", "dphmm.policy._", "dphmm.mechanisms", "exactness")
    assert not [name for name in named if name.startswith(forbidden)]


def test_steps_are_verified_until_they_repeat():
    found = verify_steps(MODEL, dphmm.policy.from_edges(EDGES_3B, 6), SPACE, 1, 50)
    assert [t for t, _, _ in found] == [1]
    corner = dphmm.MarkovModel(np.eye(6)[0], MODEL.transition.toarray())
    found = verify_steps(corner, POLICY, SPACE, 1, 50)
    assert len(found) > 2 and not any(verdict.convicted for _, _, verdict in found)
    assert len(verify_steps(corner, POLICY, SPACE, 1, 50, constraint="delta=0.1")) == 1


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda: verify(session().plan), "policy"),
        (lambda: verify(1), "session_or_plan"),
        (lambda: verify(session().plan, dphmm.policy.complete(5), SPACE), "the plan's 6"),
    ],
)
def test_one_line_of_refusal(what, words):
    with pytest.raises(InvalidInput, match=words):
        what()
