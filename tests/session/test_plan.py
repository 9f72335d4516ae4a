"""What a plan's hash and a ledger's record of it are made of, by a twin that builds both from the plan's parts.

Claims. The record is canonical JSON of what was chosen, for every mechanism, for joined states and partners.
The hash covers version, space, policy, options, support, plan set, surrogates and given partners, the bodies and
the record. A ledger of another version of the algorithm is not continued, and the refusal says so. It could fail for
a text that only looks like JSON, for a part that is left out (two plans under one hash), and for numbers of states
that are written too narrowly to be told apart.

The likelihood in floats is the mechanism's own: the very same steps of a staircase, norms up to rounding.

It could fail where a ratio lies at or next to an integer (a state on the edge of a shell), for offsets that divide
nothing, for steps beyond the table, and for numbers that floats no longer hold, which must be refused.
"""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dphmm
from dphmm._kernels.filter import TABLE, UP
from dphmm._kernels.lattice import STEPS
from dphmm.errors import InvalidInput
from dphmm.markov.filtering import Belief
from dphmm.mechanisms import MECHANISM_CHOICES
from dphmm.session import planner as planner_module
from dphmm.session.options import Options
from dphmm.session.plan import ALGORITHM_VERSION, Likelihood, likelihood_of, updated
from dphmm.session.planner import Planner, narrowest
from running_example import ANSWERS, EDGES_3B


def made(plan_states, partners=(), **chosen):
    """A planner and its plan of some states of the running example, which has states without an edge."""
    policy, space = dphmm.policy.from_edges(EDGES_3B, 6), dphmm.StateSpace(ANSWERS)
    planner = Planner(policy, space, Options.checked("0.5", **{"protection": "nearest", **chosen}))
    planned = np.isin(np.arange(6), list(plan_states))
    return planner, planner.plan(np.ones(6, dtype=np.bool_), planned, np.array(partners, np.int64).reshape(-1, 2))


def description_of(plan):
    return {
        "mechanisms": [plan.mechanism.describe()],
        "joins": plan.joins.tolist(),
        "partners": plan.partners.tolist(),
        "given_partners": plan.joint_edges.tolist(),
        "cost": str(plan.cost),
    }


def hash_of(planner, plan):
    shared = {
        "version": ALGORITHM_VERSION,
        "space": planner.space.digest,
        "policy": planner.policy.digest,
        "options": planner.options.written(),
    }
    parts = [json.dumps(shared, sort_keys=True).encode(), b"\n"]
    parts += [np.packbits(plan.constraint.support).tobytes(), np.packbits(plan.constraint.plan).tobytes()]
    parts += [b"".join(int(state).to_bytes(2, "little", signed=True) for state in plan.constraint.surrogate)]
    parts += [int(state).to_bytes(8, "little", signed=True) for state in plan.joint_edges.ravel()]
    inputs = hashlib.sha256(b"".join(parts)).digest()
    chosen = plan.hull.digest + json.dumps(description_of(plan), sort_keys=True)
    return hashlib.sha256(inputs + chosen.encode()).hexdigest()


CASES = [
    *({"mechanism": mechanism} for mechanism in MECHANISM_CHOICES),
    {"protection": "min-error"},
]


@pytest.mark.parametrize("chosen", CASES, ids=str)
@pytest.mark.parametrize("states", [range(6), (0, 2, 3, 5), (1, 4), (2,)], ids=str)
@pytest.mark.parametrize("partners", [(), [(0, 4)]], ids=["alone", "beside"])
def test_record_and_hash_are_those_of_the_twin(chosen, states, partners):
    planner, plan = made(states, partners, **chosen)
    text = json.dumps(description_of(plan), sort_keys=True)
    assert plan.record.description == text
    assert plan.record.plan_states == np.packbits(plan.constraint.plan).tobytes()
    assert plan.record.n_states == 6
    assert plan.hash == plan.record.hash == hash_of(planner, plan)


def test_the_cases_hold_what_they_are_for():
    plans = [made(range(6), **chosen)[1] for chosen in CASES]
    assert any(len(plan.joins) for plan in plans)
    assert any(len(plan.partners) for plan in plans)
    assert any(plan.constant for plan in [made((2,), **chosen)[1] for chosen in CASES])


def test_states_are_written_in_the_narrowest_type_that_holds_their_numbers():
    for size, most in ((2, 2**15), (4, 2**31)):
        narrow = narrowest(most)
        assert narrow == np.dtype(f"<i{size}")
        assert np.array([-1, most - 1]).astype(narrow).tolist() == [-1, most - 1]
        assert narrowest(most + 1).itemsize == 2 * size


def test_a_ledger_of_another_version_is_not_continued(monkeypatch):
    """And says why; its rows stay readable."""
    model = dphmm.MarkovModel(np.full(6, 1 / 6), np.full((6, 6), 1 / 6))
    parts = (model, dphmm.policy.from_edges(EDGES_3B, 6), dphmm.StateSpace(ANSWERS))
    ledger = dphmm.accounting.MemoryLedger()
    with monkeypatch.context() as earlier:
        earlier.setattr(planner_module, "ALGORITHM_VERSION", ALGORITHM_VERSION - 1)
        dphmm.ReleaseSession(*parts, 1, subject="s", ledger=ledger, bits=dphmm.ReplayBits(1)).release(3)
    refused = f"made from the record by version {ALGORITHM_VERSION} of the algorithm"
    with pytest.raises(InvalidInput, match=refused):
        dphmm.ReleaseSession.resume(ledger, "s", *parts)
    with pytest.raises(InvalidInput, match=refused):
        dphmm.ReleaseSession(*parts, 1, subject="s", ledger=ledger).release(3, t=1)
    assert len(ledger.entries("s", "state")) == 1


def plan_of(points, epsilon, radius, plan_set=None, **choices):
    space = dphmm.StateSpace(points)
    options = Options.checked(epsilon, **choices)
    everywhere = np.ones(len(points), dtype=np.bool_)
    return Planner(dphmm.policy.radius(space, radius), space, options).plan(
        everywhere, everywhere if plan_set is None else plan_set
    )


def steps_of(plan, z):
    return np.rint(plan.log_likelihood(z) / -float(plan.epsilon)).astype(np.int64)


@st.composite
def plans(draw, mechanism):
    d = draw(st.integers(1, 3))
    scale = draw(st.sampled_from([1, 1, 7, 1000]))
    rows = st.lists(st.integers(-6, 6), min_size=d, max_size=d)
    points = np.array(draw(st.lists(rows, min_size=3, max_size=9)), dtype=np.int64) * scale
    if (points == points[0]).all():
        points[0] += scale
    epsilon = draw(st.sampled_from(["0.5", "1", "3"]))
    plan = plan_of(points, epsilon, draw(st.integers(1, 5)) * scale, mechanism=mechanism)
    z = np.array(draw(st.lists(st.integers(-40, 40), min_size=d, max_size=d)), dtype=np.int64) * scale
    return plan, z


@settings(max_examples=150)
@given(plans("staircase"))
def test_steps_of_a_staircase_are_exact(case):
    plan, z = case
    law = likelihood_of(plan)
    assume(law is not None and law.holds(np.stack([z, *plan.image])))
    for answer in (z, *plan.image):
        expected = law.facets.table[np.minimum(steps_of(plan, answer), len(law.facets.table) - 1)]
        assert law.at(answer).tolist() == expected.tolist()


@pytest.mark.parametrize("mechanism", ["staircase", "discrete-knorm"])
@pytest.mark.parametrize("plan_set", [None, np.array([1, 1, 0, 1, 1, 0, 1], dtype=bool)], ids=["support", "delta-set"])
def test_several_answers_are_each_of_them(mechanism, plan_set):
    """On all states, and where states are released as others; one that is too far away is for logs, and so all are."""
    points = np.array([[0, 0], [3, 1], [4, 4], [1, 3], [6, 0], [6, 6], [2, 7]])
    law = likelihood_of(plan_of(points, 1, 4, plan_set, mechanism=mechanism))
    assert (law.contracted is None) == (plan_set is None)
    answers = np.array([[0, 0], [40, -3], [2, 5], [2, 5], [-9, 9]])
    assert law.of_answers(answers).tolist() == [law.at(answer).tolist() for answer in answers]
    assert law.of_answers(np.concatenate([answers, [[2**60, 0]]])) is None


@settings(max_examples=80)
@given(plans("discrete-knorm"))
def test_norms_are_right_to_rounding(case):
    plan, z = case
    law = likelihood_of(plan)
    assume(law is not None and law.holds(z))
    assert law.at(z) == pytest.approx(np.exp(plan.log_likelihood(z)), rel=1e-12, abs=1e-300)


@pytest.mark.parametrize("offset", [3, 7, 49, 10**6 + 3, 2**21 + 1])
def test_at_the_edges_of_shells(offset):
    """k·offset and its neighbours, for every k of a row: where a quotient is an integer, or just is not."""
    ks = np.array([1, 2, 3, 5, 10, 41, 100])
    points = np.concatenate([ks * offset + delta for delta in (-1, 0, 1)])[:, None]
    plan = plan_of(np.concatenate([[[0]], [[offset]], points]), 1, offset, mechanism="staircase")
    law = likelihood_of(plan)
    assert law is not None
    assert law.facets.kind == TABLE
    zero = np.zeros(1, dtype=np.int64)
    table = law.facets.table
    assert law.at(zero).tolist() == table[np.minimum(steps_of(plan, zero), len(table) - 1)].tolist()


def test_a_floor_without_its_margin_is_wrong_somewhere():
    """So the tests above can see what the margin is for."""
    offsets = np.arange(3, 4000)
    ratios = np.array([49.0]) * offsets * (1.0 / offsets)
    assert (np.floor(ratios) != 49).any()
    assert (np.floor(ratios * UP) == 49).all()


def test_small_epsilons_have_no_table():
    plan = plan_of(np.arange(5)[:, None], "0.01", 1, mechanism="staircase")
    law = likelihood_of(plan)
    assert law is not None
    assert law.facets.kind == STEPS
    z = np.array([1000])
    assert np.log(law.at(z)) == pytest.approx(plan.log_likelihood(z), rel=1e-13)


def test_what_floats_do_not_hold_is_refused(monkeypatch):
    near, far = np.array([5, 5]), np.array([2**60, 0])
    points = np.stack(np.divmod(np.arange(9), 3), axis=1)
    law = likelihood_of(plan_of(points, 1, 1))
    assert law.at(near) is not None
    assert law.at(far) is None
    monkeypatch.setattr("dphmm.session.plan._ROOM", 2.0)
    assert Likelihood.of(plan_of(points, 1, 1)) is None


def beliefs(rng, support):
    weights = np.where(support, rng.random(len(support)) + 0.01, 0.0)
    return Belief.of_row(weights / weights.sum(), support)


@pytest.mark.parametrize("mechanism", ["staircase", "discrete-knorm"])
@pytest.mark.parametrize("epsilon", ["0.01", "1"])
def test_a_belief_moves_in_one_loop_as_in_two(mechanism, epsilon):
    """To the last bit, with and without states that are released as others, and on a support that is not everything."""
    rng = np.random.default_rng(3)
    points = rng.integers(-6, 7, (30, 2))
    space = dphmm.StateSpace(points)
    options = Options.checked(epsilon, mechanism=mechanism)
    planner = Planner(dphmm.policy.radius(space, 3), space, options)
    everywhere, most = np.ones(30, dtype=np.bool_), rng.random(30) < 0.8
    for support, planned in (
        (everywhere, everywhere),
        (everywhere, most),
        (most, most),
        (most, most & (rng.random(30) < 0.5)),
    ):
        plan, prior = planner.plan(support, planned), beliefs(rng, support)
        for z in (points[4], np.array([9, -14])):
            once, twice = updated(prior, plan, z), prior.weighted(likelihood_of(plan).at(z), support)
            assert once.support.tolist() == twice.support.tolist() == support.tolist()
            assert once.row.tolist() == twice.row.tolist()
            slowly = prior.condition(plan.log_likelihood(z), plan.still_possible(z))
            assert once.row == pytest.approx(slowly.probability, rel=1e-9)


def test_what_floats_do_not_hold_is_left_to_logs(monkeypatch):
    """Far answers, beliefs in logs, products that are too small, too large numbers."""
    points = np.stack(np.divmod(np.arange(9), 3), axis=1)
    plan, prior = plan_of(points, 1, 1), beliefs(np.random.default_rng(1), np.ones(9, dtype=np.bool_))
    near, far = np.array([1, 2]), np.array([2**60, 0])
    assert updated(prior, plan, near) is not None
    assert updated(prior, plan, far) is None
    assert updated(prior, plan_of(points, 1000, 1), np.array([40, 40])) is None
    tail = Belief(np.append(np.full(8, -np.log(8)), -800.0), np.ones(9, dtype=np.bool_))
    assert updated(tail, plan, near) is None
    monkeypatch.setattr("dphmm.session.plan._ROOM", 2.0)
    assert updated(prior, plan, near) is None
