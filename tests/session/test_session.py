"""A session: order, replay, resume, skips, caps, drift, constants, several queries."""

from __future__ import annotations

import threading
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.errors import BudgetExceeded, InvalidInput
from running_example import ANSWERS, EDGES_3B, TRANSITION


@pytest.fixture
def parts():
    return (
        dphmm.MarkovModel(np.eye(6)[0], TRANSITION),
        dphmm.policy.from_edges(EDGES_3B, 6),
        dphmm.StateSpace(ANSWERS, names=["s1", "s2", "s3", "s4", "s5", "s6"]),
    )


def session(parts, seed=1, epsilon=1, **choices):
    bits = choices.pop("bits", dphmm.ReplayBits(seed))
    return dphmm.ReleaseSession(*parts, epsilon, bits=bits, **choices)


def same(a, b):
    return a.t == b.t and np.array_equal(a.z_lattice, b.z_lattice) and a.plan_hash == b.plan_hash and a.cost == b.cost


def test_a_release_has_the_contract_s_fields(parts):
    ongoing = session(parts)
    release = ongoing.release(1)
    assert release.t == 1
    assert release.z.shape == release.z_lattice.shape == ongoing.estimate().answer.shape == (2,)
    assert np.array_equal(release.z, release.z_lattice)
    assert 0 <= ongoing.estimate().state < 6
    assert release.epsilon == Fraction(1)
    assert isinstance(release.cost, Fraction)
    assert len(release.plan_hash) == 64
    assert release.secure is False


def test_asking_again_gives_the_stored_answer_whatever_the_state(parts):
    ongoing = session(parts)
    first = ongoing.release(1)
    ongoing.release(4)
    for state in range(6):
        assert ongoing.release(state, t=1) is first
    assert ongoing.spent.epsilon == 2


def test_two_sessions_of_one_key_share_the_history(parts):
    ledger = MemoryLedger()
    first = session(parts, 1, ledger=ledger, subject="a").release(1)
    behind = session(parts, 99, ledger=ledger, subject="a")
    assert same(first, behind.release(3, t=1))
    assert behind.t == 2
    assert ledger.spent("a").epsilon == 1


@pytest.mark.parametrize("constraint", ["support", "delta=0.2"])
def test_a_session_that_was_overtaken_answers_no_older_step_as_the_coming_one(parts, constraint):
    """Another session of the key went on: what it stored comes back where the step is named, and not otherwise."""
    ledger = MemoryLedger()
    behind, ahead = (session(parts, seed, ledger=ledger, subject="a", constraint=constraint) for seed in (1, 2))
    stored = [ahead.release(state) for state in (1, 4)]
    ahead.skip(2)
    for _ in range(2):
        with pytest.raises(InvalidInput, match=r"t: got no step, while the ledger has moved on to step 4; expected"):
            behind.release(3)
        with pytest.raises(InvalidInput, match="moved on to step 4"):
            behind.skip()
    assert [behind.release(0, t=t).z.tolist() for t in (1, 2)] == [release.z.tolist() for release in stored]
    with pytest.raises(InvalidInput, match="skipped"):
        behind.release(0, t=3)
    assert behind.t == 5 and ledger.spent("a").epsilon == 2
    assert behind.release(1).t == 5


def test_other_public_parameters_for_a_stored_step_are_refused(parts):
    ledger = MemoryLedger()
    session(parts, ledger=ledger, subject="a").release(1)
    with pytest.raises(InvalidInput, match="epsilon"):
        session(parts, epsilon=2, ledger=ledger, subject="a").release(1)
    assert ledger.spent("a").epsilon == 1


def test_resume_of_a_delta_set_uses_the_recorded_set(parts):
    ledger, bits = MemoryLedger(), dphmm.ReplayBits(5)
    before = session(parts, ledger=ledger, subject="a", bits=bits, constraint=dphmm.policy.DeltaSet(0.2))
    for state in (1, 4, 5, 4):
        before.release(state)
    after = dphmm.ReleaseSession.resume(ledger, "a", *parts, bits=bits)
    assert np.array_equal(after.prior.log_probability, before.prior.log_probability)
    assert np.array_equal(after.plan.constraint.plan, before.plan.constraint.plan)


def test_resume_refuses_another_model(parts):
    ledger = MemoryLedger()
    session(parts, ledger=ledger, subject="a").release(1)
    other = dphmm.MarkovModel(np.eye(6)[1], TRANSITION)
    with pytest.raises(InvalidInput, match="model"):
        dphmm.ReleaseSession.resume(ledger, "a", other, *parts[1:])
    with pytest.raises(InvalidInput, match="subject"):
        dphmm.ReleaseSession.resume(ledger, "b", *parts)


def test_skips_are_recorded_and_move_the_support(parts):
    ledger = MemoryLedger()
    ongoing = session(parts, ledger=ledger, subject="a")
    ongoing.release(1)
    ongoing.skip()
    ongoing.skip(3)
    assert ongoing.t == 6
    assert ongoing.spent.epsilon == 1
    after = dphmm.ReleaseSession.resume(ledger, "a", *parts)
    assert after.t == 6
    assert np.array_equal(after.prior.log_probability, ongoing.prior.log_probability)
    with pytest.raises(InvalidInput, match="skipped"):
        ongoing.release(0, t=3)
    with pytest.raises(InvalidInput, match="skip"):
        ongoing.release(0, t=9)


def test_support_moves_one_transition_before_the_first_release(parts):
    assert np.flatnonzero(session(parts).support).tolist() == [1, 3]
    assert np.flatnonzero(session(parts, start="at").support).tolist() == [0]


def test_caps_stop_before_anything_is_drawn(parts):
    ongoing = session(parts, epsilon="0.1", cap_epsilon="0.3")
    for state in (1, 4, 3):
        ongoing.release(state)
    prior = ongoing.prior
    with pytest.raises(BudgetExceeded):
        ongoing.release(1)
    assert ongoing.t == 4 and ongoing.prior is prior
    assert ongoing.spent.epsilon == Fraction(3, 10)


def test_drift_is_released_and_only_the_owner_can_count_it(parts):
    ongoing = session(parts)
    release = ongoing.release(5)
    assert release.t == 1
    assert ongoing.owner_view() == {"releases": 1, "drifted": 1}
    unknown = session(parts)
    lowest = session(parts)
    assert same(unknown.release("nowhere"), lowest.release("s2"))
    assert same(session(parts).release(-1), session(parts).release("s2"))


def test_a_single_possible_state_is_a_public_constant(parts):
    ongoing = session(parts, start="at")
    for state in (0, 3):
        fresh = session(parts, start="at")
        release = fresh.release(state)
        assert release.constant
        assert release.z.tolist() == [1.0, 0.0]
        assert release.cost == 0
    assert ongoing.plan.constant


def test_names_are_states(parts):
    assert same(session(parts).release("s2"), session(parts).release(1))


@pytest.mark.parametrize("state", [-2, 6, 1.5, None, True, 10**30])
def test_an_impossible_argument_is_refused_without_being_repeated(parts, state):
    ongoing = session(parts)
    with pytest.raises(InvalidInput, match="state") as caught:
        ongoing.release(state)
    expected = "a number 0 to 5, a name, or -1 for elsewhere"
    assert str(caught.value) == f"state: got a value that is no state; expected {expected}"
    assert ongoing.t == 1
    assert ongoing.spent.epsilon == 0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("constraint", "everything"),
        ("mechanism", "laplace"),
        ("protection", "best"),
        ("start", "after"),
        ("cap_epsilon", -1),
        ("cap_cost", "much"),
    ],
)
def test_bad_choices_name_their_field(parts, field, value):
    choices = {"epsilon": 1, field: value}
    with pytest.raises(InvalidInput, match=field):
        dphmm.ReleaseSession(*parts, **choices)


def test_sizes_must_agree(parts):
    with pytest.raises(InvalidInput, match="5 in the policy"):
        dphmm.ReleaseSession(parts[0], dphmm.policy.complete(5), parts[2], 1)


def test_estimates_are_bayes(parts):
    """The posterior mean minimises squared error over the posterior; the median the mean distance."""
    ongoing = session(parts)
    with pytest.raises(InvalidInput, match="no step so far; expected an estimate after the first release"):
        ongoing.estimate()
    for state in (1, 4):
        ongoing.release(state)
    with pytest.raises(InvalidInput, match="loss: got cubic"):
        ongoing.estimate("cubic")
    p, f = ongoing.posterior.probability, np.asarray(parts[2].answers, dtype=float)
    mean, median, likeliest = (ongoing.estimate(loss) for loss in ("squared", "euclidean", "state"))
    assert mean.answer == pytest.approx(p @ f)
    assert mean.state == median.state == likeliest.state == np.argmax(p) and mean.probability == p.max()
    assert np.array_equal(likeliest.answer, f[likeliest.state])
    distance = lambda y: p @ np.linalg.norm(f - y, axis=1)  # noqa: E731
    assert distance(median.answer) <= distance(mean.answer) + 1e-9
    for _ in range(20):
        nudge = np.random.default_rng(0).normal(size=2) * 0.05
        assert distance(median.answer) <= distance(median.answer + nudge) + 1e-9


class TestSeveralQueries:
    """Corrected Theorem 7.1: a state without an edge has one partner in all queries of a timestamp."""

    N = 5
    # theory: edges kn, lm; a is protected by k in f1 and by l in f2, and nothing is exposed.
    EDGES = ((1, 4), (2, 3))
    F1 = (0, 1, 10, 11, 2)
    F2 = (0, 10, 1, 2, 11)

    def session(self, query, ledger, policy=None, **choices):
        """The query f1 or f2 of one subject."""
        answers = {"f1": self.F1, "f2": self.F2}[query]
        return dphmm.ReleaseSession(
            *self.parts(answers, policy),
            1,
            subject="x",
            query=query,
            ledger=ledger,
            bits=dphmm.ReplayBits(3),
            **choices,
        )

    def parts(self, answers, policy=None):
        model = dphmm.MarkovModel(np.full(self.N, 0.2), np.full((self.N, self.N), 0.2))
        policy = dphmm.policy.from_edges(list(self.EDGES), self.N) if policy is None else policy
        return model, policy, dphmm.StateSpace(np.array(answers)[:, None])

    def sessions(self, ledger):
        return [self.session(query, ledger) for query in ("f1", "f2")]

    def test_joint_loss_has_one_partner(self):
        ledger = MemoryLedger()
        first, second = self.sessions(ledger)
        plan_1 = first.plan
        first.release(0)
        plan_2 = second.plan
        second.release(0)
        losses = []
        for other in range(1, self.N):
            losses.append(
                sum(float(plan.mechanism.loss_lattice(plan.image[0] - plan.image[other])) for plan in (plan_1, plan_2))
            )
        assert min(losses) <= 2 + 1e-9
        assert first.spent.epsilon == 2

    def test_without_the_fix_no_partner_would_do(self):
        alone = [session.plan for session in self.sessions(None)]
        joint = [
            sum(float(plan.mechanism.loss_lattice(plan.image[0] - plan.image[o])) for plan in alone)
            for o in range(1, self.N)
        ]
        assert min(joint) > 2

    def test_resume_of_the_second_query(self):
        ledger = MemoryLedger()
        first, second = self.sessions(ledger)
        for _ in range(3):
            first.release(0)
            second.release(0)
        after = dphmm.ReleaseSession.resume(ledger, "x", *self.parts(self.F2), query="f2")
        assert after.t == 4
        assert np.array_equal(after.prior.log_probability, second.prior.log_probability)

    @pytest.mark.parametrize(
        ("field", "choices"),
        [
            ("origin", {"origin": "9"}),
            ("constraint", {"constraint": dphmm.policy.DeltaSet(0.05)}),
            ("start", {"start": "at"}),
        ],
    )
    @pytest.mark.parametrize("odd_first", [True, False])
    def test_queries_that_one_partner_cannot_serve_are_refused(self, field, choices, odd_first):
        """Different steps and δ-sets: each lets a lonely state lose more than the sum of ε."""
        ledger = MemoryLedger()
        first, second = (choices, {}) if odd_first else ({}, choices)
        self.session("f1", ledger, **first).release(0)
        with pytest.raises(InvalidInput, match=field):
            self.session("f2", ledger, **second).release(0)
        assert len(ledger.entries("x", "f2")) == 0

    def test_another_policy_is_refused(self):
        ledger = MemoryLedger()
        first, second = self.sessions(ledger)
        first.release(0)
        other = self.session("f2", ledger, dphmm.policy.complete(self.N))
        with pytest.raises(InvalidInput, match="policy"):
            other.release(0)
        second.release(0)


class SecondThread(MemoryLedger):
    """Lets another thread call ``meanwhile`` while the first transaction is about to begin."""

    def __init__(self, meanwhile):
        super().__init__()
        self.meanwhile, self.answers = meanwhile, []

    def transaction(self, subjects=()):
        if self.meanwhile is not None:
            called, self.meanwhile = self.meanwhile, None
            self.thread = threading.Thread(target=lambda: self.answers.append(called()))
            self.thread.start()
            # It has time to overtake, if nothing holds it.
            self.thread.join(0.3)
        return super().transaction(subjects)


@pytest.mark.parametrize("call", ["release", "skip"])
def test_calls_of_several_threads_take_turns(parts, call):
    """An answer is shown under the step that it was drawn for, whoever calls meanwhile."""
    ledger = SecondThread(lambda: ongoing.release(1) if call == "release" else ongoing.skip())
    ongoing = session(parts, ledger=ledger, subject="a")
    first = ongoing.release(1)
    ledger.thread.join()
    assert first.t == 1
    stored = {entry.t: entry for entry in ledger.entries("a", "state")}
    assert tuple(first.z_lattice) == stored[1].z
    if call == "release":
        (second,) = ledger.answers
        assert second.t == 2 and tuple(second.z_lattice) == stored[2].z
    assert ongoing.t == 3


def test_a_session_takes_the_account_of_a_person_however_spelt(parts):
    ledger = MemoryLedger()
    first = session(parts, ledger=ledger, subject="Zo\u00eb").release(1)
    again = session(parts, 99, ledger=ledger, subject=" zoe\u0308 ")
    assert same(first, again.release(3, t=1))
    assert ledger.sessions() == [("Zo\u00eb", "state")]
    assert ledger.spent("Zo\u00eb").epsilon == 1
    exact = MemoryLedger("exact")
    for name in ("Ann", "ann"):
        session(parts, ledger=exact, subject=name).release(1)
    assert exact.sessions() == [("Ann", "state"), ("ann", "state")]
