"""Choices for single steps: the plan of the step, what is recorded, what is refused, and who continues."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger, PlanRecord
from dphmm.errors import BudgetExceeded, InvalidInput
from dphmm.session.plan import chosen_of, recorded_joins

N = 6
SPACE = dphmm.StateSpace(np.array([0, 1, 2, 4, 7, 11])[:, None], names=list("abcdef"))
WALK = 0.6 * np.eye(N) + 0.2 * np.eye(N, k=1) + 0.2 * np.eye(N, k=-1)
MODEL = dphmm.MarkovModel(np.full(N, 1 / N), WALK / WALK.sum(axis=1, keepdims=True))
POLICY, WIDE = dphmm.policy.from_edges([(0, 1), (2, 3)], N), dphmm.policy.complete(N)
EVERYTHING = ("epsilon", "policy", "partners", "protection")
RULES = ["support", dphmm.policy.DeltaSet("0.2")]
#: What is chosen at steps 1 to 3.
STEPS = [{"epsilon": 2}, {}, {"policy": WIDE, "epsilon": "0.5"}]


def session(policy=POLICY, epsilon=1, seed=1, **choices):
    choices = {"subject": "x", "varies": EVERYTHING, **choices}
    return dphmm.ReleaseSession(MODEL, policy, SPACE, epsilon, bits=dphmm.ReplayBits(seed), **choices)


def farthest(state, others):
    return int(max(others, key=lambda other: abs(int(SPACE.own_answers[other, 0] - SPACE.own_answers[state, 0]))))


@pytest.mark.parametrize("constraint", RULES, ids=str)
@pytest.mark.parametrize(
    ("choice", "policy", "epsilon"),
    [({"epsilon": "0.3"}, POLICY, "0.3"), ({"policy": WIDE}, WIDE, 1), ({"policy": WIDE, "epsilon": 3}, WIDE, 3)],
    ids=["epsilon", "policy", "both"],
)
def test_a_step_is_that_of_a_session_made_with_what_was_chosen(constraint, choice, policy, epsilon):
    one, other = session(constraint=constraint), session(policy, epsilon, varies=(), constraint=constraint)
    chosen, plain = one.release(2, **choice), other.release(2)
    assert chosen.z.tolist() == plain.z.tolist() and str(one.estimate()) == str(other.estimate())
    assert (chosen.epsilon, chosen.cost, chosen.mechanism) == (plain.epsilon, plain.cost, plain.mechanism)
    # Another session's plan is another plan: what was chosen is part of its hash.
    assert chosen.plan_hash != plain.plan_hash


@pytest.mark.parametrize("constraint", RULES, ids=str)
def test_a_choice_of_what_the_session_has_is_none(constraint):
    one, other = session(constraint=constraint), session(constraint=constraint)
    chosen = one.release(2, epsilon=1, policy=POLICY, partners={}, protection="auto")
    assert chosen.plan_hash == other.release(2).plan_hash


def released(ledger, **choices):
    """Five steps; a delta-set is looked at before a partner is named."""
    made = session(ledger=ledger, **choices)
    found = [made.release(2, **step) for step in STEPS]
    found.append(made.release(2, partners={"e": int(made.plan.constraint.plan_states[0])}))
    return made, [*found, made.release(3, protection=farthest)]


@pytest.mark.parametrize("kind", [MemoryLedger, None], ids=["memory", "file"])
@pytest.mark.parametrize("constraint", RULES, ids=str)
def test_a_history_is_resumed_as_it_was(tmp_path, constraint, kind):
    ledger = kind() if kind else dphmm.open_ledger(tmp_path / "ledger.db")
    with ledger:
        made, before = released(ledger, constraint=constraint)
        assert [release.epsilon for release in before] == [2, 1, Fraction(1, 2), 1, 1]
        assert ledger.spent("x").epsilon == Fraction("5.5")
        # Nobody is asked again for a partner: joins are recorded.
        again = dphmm.ReleaseSession.resume(
            ledger, "x", MODEL, POLICY, SPACE, policies=[WIDE], bits=dphmm.ReplayBits(9)
        )
        assert again.setting.varies == tuple(sorted(EVERYTHING))
        assert np.array_equal(again.prior.probability, made.prior.probability)
        made_again = [again.released(t) for t in range(1, 6)]
        assert [(r.z.tolist(), r.plan_hash, r.epsilon) for r in made_again] == [
            (r.z.tolist(), r.plan_hash, r.epsilon) for r in before
        ]
        again.release(3, epsilon="0.25")
        assert ledger.spent("x").epsilon == Fraction("5.75")


@pytest.mark.parametrize("constraint", RULES, ids=str)
def test_a_policy_that_is_not_given_again_is_named(constraint):
    ledger = MemoryLedger()
    released(ledger, constraint=constraint)
    with pytest.raises(InvalidInput, match=rf"policies: got none of digest {WIDE.digest[:12]}; expected all policies"):
        resumed = dphmm.ReleaseSession.resume(ledger, "x", MODEL, POLICY, SPACE)
        assert resumed.releases


@pytest.mark.parametrize("constraint", RULES, ids=str)
def test_plans_do_not_depend_on_the_truth(constraint):
    """The same answers, forced, whatever is true: the same plans."""
    found = []
    for truth in range(N):
        ledger = MemoryLedger()
        made = session(ledger=ledger, constraint=constraint)
        # All that is chosen is public, so the first plan does not know the state.
        first = made.release(truth, policy=WIDE, partners={4: 0}, protection=farthest)
        found.append(first.plan_hash)
    assert len(set(found)) == 1


def test_the_answer_of_a_callable_is_looked_at_with_public_data_alone():
    asked = []

    def last(state, others):
        asked.append((state, others.tolist()))
        return int(others[-1])

    made = session()
    made.release(0, protection=last)
    other = session()
    other.release(5, protection=last)
    assert asked[: len(asked) // 2] == asked[len(asked) // 2 :] and asked


@pytest.mark.parametrize(
    ("field", "choice"),
    [
        ("epsilon: got 0", {"epsilon": 0}),
        ("policy: got str", {"policy": "wide"}),
        ("policy: got 5 states; expected the 6", {"policy": dphmm.policy.complete(5)}),
        ("partners: got list", {"partners": [(4, 0)]}),
        ("partners: got nowhere; expected a state", {"partners": {"e": "nowhere"}}),
        ("partners: got 6; expected a state", {"partners": {6: 0}}),
        ("partners: got a state twice", {"partners": {4: 0, "e": "b"}}),
        ("partners: got state 4 for state 4; expected another state", {"partners": {4: 4}}),
        ("protection: got best", {"protection": "best"}),
        ("method: got partner 4 for state 4", {"protection": lambda state, others: state}),
    ],
)
def test_bad_choices_are_refused_by_name_and_nothing_is_spent(field, choice):
    ledger = MemoryLedger()
    with pytest.raises(InvalidInput, match=field) as caught:
        session(ledger=ledger).release(0, **choice)
    assert "\n" not in str(caught.value)
    assert ledger.spent("x").epsilon == 0 and ledger.entries("x", "state") == []


@pytest.mark.parametrize("name", EVERYTHING)
def test_what_was_not_announced_is_refused(name):
    choice = {"epsilon": 2, "policy": WIDE, "partners": {4: 0}, "protection": "min-error"}[name]
    ledger = MemoryLedger()
    made = session(ledger=ledger, varies=[other for other in EVERYTHING if other != name])
    with pytest.raises(InvalidInput, match=rf'{name}: got a choice for one step; .*varies=\("{name}",\)'):
        made.release(0, **{name: choice})
    assert ledger.sessions() == []


def test_a_partner_on_which_a_delta_set_does_not_plan_is_refused():
    made = session(constraint=dphmm.policy.DeltaSet("0.7"))
    plan = made.plan.constraint
    outside, inside = (int(np.flatnonzero(mask)[0]) for mask in (~plan.plan, plan.plan))
    with pytest.raises(InvalidInput, match=r"partners: .* one on which the step plans"):
        made.release(inside, policy=dphmm.policy.from_edges([], N), partners={inside: outside})


def test_a_history_that_varies_in_less_or_more_is_another():
    ledger = MemoryLedger()
    session(ledger=ledger, varies="epsilon").release(0)
    with pytest.raises(InvalidInput, match="varies"):
        session(ledger=ledger, varies=("epsilon", "policy")).release(0, t=1)
    with pytest.raises(InvalidInput, match="varies"):
        session(ledger=ledger, varies=()).release(0, t=1)


def test_epsilon_is_the_schedules():
    promise = dphmm.SequencePromise(2, steps=4)
    schedule = dphmm.accounting.Schedule(promise, 1, [1, 3])
    made = session(epsilon=None, schedule=schedule)
    with pytest.raises(InvalidInput, match="epsilon: got 2; expected nothing beside the schedule"):
        made.release(0, epsilon=2)
    assert made.release(0, policy=WIDE).epsilon == 1


def test_a_promise_counts_what_was_chosen():
    ledger = MemoryLedger()
    made = session(epsilon=None, promise=dphmm.SequencePromise(2, steps=4), ledger=ledger)
    assert made.release(0).epsilon == Fraction(1, 2)
    made.release(0, epsilon="1.25")
    with pytest.raises(BudgetExceeded):
        made.release(0)
    made.release(0, epsilon="0.25")
    assert ledger.spent("x").epsilon == 2


def test_a_stored_step_is_not_asked_again_with_another_choice():
    ledger = MemoryLedger()
    made = session(ledger=ledger)
    first = made.release(0, epsilon=2, policy=WIDE)
    assert made.release(0, t=1, epsilon=2, policy=WIDE).z.tolist() == first.z.tolist()
    assert made.release(0, t=1).z.tolist() == first.z.tolist()
    with pytest.raises(InvalidInput, match=r"epsilon: got 3; expected 2, with which step 1 was released"):
        made.release(0, t=1, epsilon=3)
    with pytest.raises(InvalidInput, match=r"policy: .* under which step 1 was released"):
        made.release(0, t=1, policy=POLICY)
    behind = session(ledger=ledger)
    with pytest.raises(InvalidInput, match=r"epsilon: got 3; expected 2"):
        behind.release(0, t=1, epsilon=3, policy=WIDE)
    assert ledger.spent("x").epsilon == 2


def test_two_queries_have_one_policy_at_a_step():
    ledger = MemoryLedger()
    first, second = session(ledger=ledger, query="f1"), session(ledger=ledger, query="f2", varies=())
    first.release(0, policy=WIDE)
    with pytest.raises(InvalidInput, match=r"policy: .* that of another query of this subject at step 1"):
        second.release(0)
    assert ledger.entries("x", "f2") == []
    third = session(ledger=ledger, query="f3")
    third.release(0, policy=WIDE, epsilon=2)
    second.skip()
    first.release(0)
    second.release(0)
    with pytest.raises(InvalidInput, match=r"policy: .* at step 2"):
        third.release(0, policy=WIDE)


def test_a_constant_with_a_choice_is_made_again():
    space, ledger = dphmm.StateSpace(np.zeros((N, 1), dtype=int)), MemoryLedger()
    made = dphmm.ReleaseSession(MODEL, POLICY, space, 1, varies="epsilon", subject="x", ledger=ledger)
    assert made.release(0, epsilon=3).epsilon == 0
    again = dphmm.ReleaseSession.resume(ledger, "x", MODEL, POLICY, space)
    assert again.released(1).plan_hash == made.released(1).plan_hash


def test_what_was_chosen_is_recorded():
    ledger = MemoryLedger()
    made, _ = released(ledger)
    chosen = [dict(chosen_of(ledger.plan(entry.plan_hash))) for entry in ledger.entries("x", "state")]
    assert chosen == [
        {"epsilon": "2"},
        {},
        {"epsilon": "1/2", "policy": WIDE.digest},
        {"joins": "given"},
        {"joins": "given"},
    ]
    assert ledger.header("x", "state").options["varies"] == "epsilon,partners,policy,protection"
    assert "varies" not in session(varies=()).setting.header("x", "").options
    assert made.t == 6


@pytest.mark.parametrize(("varies", "own"), [(("epsilon", "policy"), True), (("epsilon",), False), ((), False)])
def test_an_account_says_where_steps_have_policies_of_their_own(varies, own):
    ledger = MemoryLedger()
    session(ledger=ledger, varies=varies).release(0)
    (summary,) = dphmm.accounting.summarise_ledger(ledger)
    for told in (summary.epsilon, summary.queries[0].epsilon):
        assert ("edges of a step are those of its own policy" in told.statement) is own
        assert told.citation == ("docs/proofs/choices.md" if own else "docs/proofs/paths.md")


def test_a_record_with_a_choice_that_the_header_does_not_name_is_refused():
    ledger = MemoryLedger()
    session(ledger=ledger, varies="epsilon").release(0, epsilon=2)
    record = ledger.plan(ledger.entries("x", "state")[0].plan_hash)
    plain = session(varies=()).setting
    with pytest.raises(InvalidInput, match="ledger: got a step with its own epsilon"):
        plain.made_again(np.ones(N, dtype=bool), record)


def test_variants_of_a_setting_are_bounded():
    made = session()
    for k in range(1, 80):
        made.release(0, epsilon=Fraction(k, 100))
    assert len(made.setting._variants) <= 64
    assert made.released(1).epsilon == Fraction(1, 100)


@pytest.mark.parametrize("joins", ["[[1, 4]]", "[[-1, 2]]"])
def test_a_record_that_joins_what_is_no_state_is_damaged(joins):
    record = PlanRecord("0" * 64, bytes([0xF0]), 4, f'{{"chosen": {{"joins": "given"}}, "joins": {joins}}}')
    with pytest.raises(InvalidInput, match=r"ledger: got a damaged description of plan 000000000000"):
        recorded_joins(record)
