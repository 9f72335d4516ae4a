"""Sessions, tables and simulated people of a model with secrets; doors that do not know secrets refuse them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dphmm
import naive_secrets
from dphmm.accounting import MemoryLedger
from dphmm.choose.simulated import ModelGuesses, laws_of_steps, walks
from dphmm.dependent import Chain
from dphmm.dependent._dependence import model_with_states
from dphmm.errors import InvalidInput
from dphmm.session.options import Options
from dphmm.session.setting import Setting

PLACES = 6
SPACE = dphmm.StateSpace(np.arange(PLACES)[:, None])
POLICY = dphmm.policy.radius(SPACE, 1)
CONSTRAINTS = pytest.mark.parametrize("constraint", ["support", "delta=0.2"])


def inert():
    """A chain over pairs of places in a row: who moved goes on in the same direction, more often than not."""
    pairs = [(a, b) for a in range(PLACES) for b in range(PLACES) if abs(a - b) <= 1]
    matrix = np.zeros((len(pairs), len(pairs)))
    for i, (a, b) in enumerate(pairs):
        for j, (b2, c) in enumerate(pairs):
            if b == b2:
                matrix[i, j] = 4.0 if c - b == b - a else 1.0
    matrix /= matrix.sum(axis=1, keepdims=True)
    secrets = [b for _, b in pairs]
    return dphmm.MarkovModel(np.full(len(pairs), 1 / len(pairs)), matrix, space=SPACE, secrets=secrets)


MODEL = inert()


def session(ledger, **options):
    given = {"subject": "a", "ledger": ledger, "bits": dphmm.ReplayBits(3), **options}
    return dphmm.ReleaseSession(MODEL, POLICY, SPACE, 1, **given)


@CONSTRAINTS
def test_a_resumed_session_stands_where_it_was_to_the_bit(constraint):
    """After more steps than lie between snapshots: the belief of latent states, and the plan of the next step."""
    ledger = MemoryLedger()
    whole = session(ledger, constraint=constraint)
    for t in range(130):
        whole.release(t % PLACES)
    again = dphmm.ReleaseSession.resume(ledger, "a", MODEL, POLICY, SPACE, bits=dphmm.ReplayBits(3))
    assert again.plan.hash == whole.plan.hash
    assert np.array_equal(again.prior.latent.probability, whole.prior.latent.probability)
    assert np.array_equal(again.prior.probability, whole.prior.probability)
    assert np.array_equal(again.estimate().answer, whole.estimate().answer)
    assert again.prior.n_states == PLACES and again.prior.latent.n_states == MODEL.n_states


@CONSTRAINTS
def test_tables_and_streams_release_under_the_plans_of_sessions(constraint):
    rows = [(user, step, str((step + ord(user)) % PLACES)) for user in "ab" for step in (1, 2, 3, 6, 7)]
    table = pd.DataFrame(rows, columns=["user", "step", "state"])
    ledger = MemoryLedger()
    released = dphmm.release_many(
        table, MODEL, POLICY, SPACE, 1, constraint=constraint, ledger=ledger, bits=dphmm.ReplayBits(5)
    )
    for user in "ab":
        alone = session(MemoryLedger(), subject=user, constraint=constraint)
        resumed = dphmm.ReleaseSession.resume(ledger, user, MODEL, POLICY, SPACE)
        assert resumed.t == 8
        if constraint == "support":
            for step in (1, 2, 3):
                assert alone.release(0).plan_hash == resumed.released(step).plan_hash
            alone.skip(2)
            assert alone.release(0).plan_hash == resumed.released(6).plan_hash
    smoothed = dphmm.reconstruction.smooth(released, MODEL, POLICY, SPACE, 1, constraint=constraint)
    assert len(smoothed) == len(rows)


def test_a_belief_in_logs_is_the_belief_in_floats():
    """Where floats do not hold a latent state its secret is summed in logs."""
    latent = dphmm.markov.Belief(np.full(MODEL.n_states, -np.log(MODEL.n_states)), np.ones(MODEL.n_states, dtype=bool))
    belief = session(MemoryLedger()).prior.of_latent(latent)
    logs = np.full(MODEL.n_states, -np.log(MODEL.n_states))
    logs[0] = -2000.0
    rare = belief.of_latent(dphmm.markov.Belief(logs - np.logaddexp.reduce(logs), np.ones(MODEL.n_states, dtype=bool)))
    assert rare.latent.row is None and belief.latent.row is not None
    assert np.allclose(belief.probability, np.bincount(MODEL.secrets) / MODEL.n_states, rtol=1e-14)
    kept = np.bincount(MODEL.secrets[1:], minlength=PLACES) / (MODEL.n_states - 1)
    assert np.allclose(rare.probability, kept, rtol=1e-12) and rare.support.all()
    weights = np.linspace(0.1, 0.9, PLACES)
    by_floats = belief.weighted(weights, np.ones(PLACES, dtype=bool))
    by_logs = belief.condition(np.log(weights))
    assert np.allclose(by_floats.latent.probability, by_logs.latent.probability, rtol=1e-12)


def test_who_is_known_to_begin_at_a_secret_may_be_in_each_of_its_latent_states():
    begun = MODEL.beginning(2)
    assert set(np.flatnonzero(begun.initial > 0)) == set(np.flatnonzero(MODEL.secrets == 2))
    given = session(MemoryLedger(), initial="2")
    assert given.support.tolist() == [False, True, True, True, False, False]
    nobody = dphmm.MarkovModel([1.0, 0, 0], np.full((3, 3), 1 / 3), secrets=[0, 1, 1]).beginning(1)
    assert nobody.initial.tolist() == [0.0, 0.5, 0.5]


def test_invented_people_are_at_secrets():
    """Walks of latent states by their secrets; laws of steps are the sums of the chain's own."""
    paths = walks(MODEL, 200, 5, np.random.default_rng(1))
    assert paths.shape == (200, 5) and paths.max() < PLACES
    assert (np.abs(np.diff(paths, axis=1)) <= 1).all()
    law = MODEL.initial.copy()
    for step, found in enumerate(laws_of_steps(MODEL, np.arange(1, 6)), 1):
        law = law @ MODEL.matrix.toarray()
        assert np.allclose(found, np.bincount(MODEL.secrets, weights=law), rtol=1e-12), step
    guesses, off = ModelGuesses(SPACE).at(MODEL, np.arange(1, 4))
    assert guesses.shape == (3, 1) and (off > 0).all()
    begun = walks(MODEL, 500, 1, np.random.default_rng(2), "at", first=np.arange(500) % PLACES)
    assert begun[:, 0].tolist() == (np.arange(500) % PLACES).tolist()
    invented = dphmm.evaluation.synthesize(MODEL, 3, 4, seed=1)
    assert set(invented.to_pandas()["state"]) <= set(SPACE.names)


def test_invented_people_keep_totals_of_secrets():
    """Totals of two steps: of many walks as many are at each secret, as nearly as chance has it."""
    totals = {2: np.array([5.0, 1, 0, 1, 2, 1]), 4: np.array([1.0, 1, 5, 1, 1, 1])}
    invented = dphmm.evaluation.synthesize(MODEL, 4000, 5, like=totals, seed=1).to_pandas()
    for step, wanted in totals.items():
        at = invented[invented.step == step].state.value_counts(normalize=True)
        shares = np.array([at.get(name, 0.0) for name in SPACE.names])
        assert np.abs(shares - wanted / wanted.sum()).max() < 0.03
    paths = invented.pivot(index="user", columns="step", values="state").astype(int).to_numpy()
    assert (np.abs(np.diff(paths, axis=1)) <= 1).all()


def test_a_session_takes_a_space_of_its_secrets():
    own = dphmm.StateSpace(np.arange(MODEL.n_states)[:, None])
    with pytest.raises(InvalidInput, match=f"{PLACES} secrets in the model"):
        Setting.of(MODEL, POLICY, own, 1)
    with pytest.raises(InvalidInput, match="the same number in all three"):
        Setting.of(MODEL, dphmm.policy.complete(MODEL.n_states), SPACE, 1)


@pytest.mark.parametrize("door", [lambda: Chain(MODEL, 3), lambda: model_with_states(MODEL, "states")])
def test_doors_that_do_not_know_secrets_refuse_them(door):
    """Questions over dependent records take a model's states for the values of records."""
    with pytest.raises(InvalidInput, match="16 latent states of 6 secrets; expected a model without secrets"):
        door()


@pytest.mark.parametrize(
    ("secrets", "told"),
    [
        ([0, 1], r"secrets: got an array of shape \(2,\)"),
        ([0.0, 1.0, 1.0], "secrets: got an array of shape .* and type float64"),
        ([-1, 0, 1], "secrets: got -1"),
        ([0, 2, 2], "secrets: got none of 1"),
        ([1, 1, 2], "secrets: got none of 0"),
    ],
)
def test_what_is_no_map_to_secrets_is_refused(secrets, told):
    with pytest.raises(InvalidInput, match=told):
        dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), secrets=secrets)


def test_a_model_with_secrets_is_saved_and_read_again(tmp_path):
    model = MODEL.with_jump(0.01)
    for one in (MODEL, model):
        dphmm.storage.save_model(one, tmp_path / "model.npz")
        again = dphmm.storage.load_model(tmp_path / "model.npz")
        assert again.digest == one.digest and np.array_equal(again.secrets, one.secrets)
        assert again.space is not None and again.space.n_states == PLACES
    assert model.without_jump().digest == MODEL.digest
    assert MODEL.starting("at").secrets is not None
    assert "16 latent states of 6 secrets" in MODEL.notes[-1] and "16 latent states of 6 secrets" in repr(MODEL)


@CONSTRAINTS
@pytest.mark.parametrize("mechanism", ["hops", "optimal-table"])
def test_tables_of_answers_keep_epsilon_between_secrets(mechanism, constraint):
    """Names, which hide by the edges between them, and places with a table for each plan."""
    labels = dphmm.StateSpace.labels([f"n{k}" for k in range(PLACES)])
    space = labels if mechanism == "hops" else SPACE
    model = dphmm.MarkovModel(MODEL.initial, MODEL.matrix, space=space, secrets=MODEL.secrets)
    policy = dphmm.policy.from_edges([(a, a + 1) for a in range(PLACES - 1)], PLACES)
    given = {"constraint": constraint, "mechanism": mechanism, "bits": dphmm.ReplayBits(1)}
    one = dphmm.ReleaseSession(model, policy, space, 1, **given)
    for t in range(6):
        plan = one.plan
        with np.errstate(invalid="ignore"):
            logs = np.array([plan.log_likelihood(np.array([z])) for z in range(PLACES)])
        support = plan.constraint.support
        for a in np.flatnonzero(support[1:] & support[:-1]).tolist():
            told = np.isfinite(logs[:, [a, a + 1]])
            assert (told[:, 0] == told[:, 1]).all() and told.any()
            assert np.abs(logs[told[:, 0], a] - logs[told[:, 0], a + 1]).max() <= 1 + 1e-9
        one.release(space.names[t % PLACES])
    assert one.prior.latent.n_states == MODEL.n_states


def test_answers_of_two_queries_weigh_latent_states_together():
    ledger, doubled = MemoryLedger(), dphmm.StateSpace(2 * np.arange(PLACES)[:, None])
    for query, space in (("one", SPACE), ("two", doubled)):
        given = {"query": query, "subject": "a", "ledger": ledger, "bits": dphmm.ReplayBits(2)}
        one = dphmm.ReleaseSession(MODEL, POLICY, space, 1, **given)
        for state in (1, 2, 3):
            one.release(state)
    both = dphmm.session.joint_belief(ledger, "a", MODEL, POLICY, {"one": SPACE, "two": doubled})
    likelihoods = []
    for t in (1, 2, 3):
        logs = np.zeros(PLACES)
        for query in ("one", "two"):
            entry = ledger.entries("a", query)[t - 1]
            setting = Setting.read(
                ledger.header("a", query).options, MODEL, POLICY, {"one": SPACE, "two": doubled}[query]
            )
            plan = setting.made_again(np.ones(PLACES, dtype=bool), ledger.plan(entry.plan_hash))
            logs = logs + plan.log_likelihood(np.array(entry.z))
        likelihoods.append(np.exp(logs - logs.max()))
    chain = MODEL.initial.tolist(), MODEL.matrix.toarray().tolist(), MODEL.secrets.tolist()
    assert np.allclose(both.probability, naive_secrets.masses(chain, 2, 3, likelihoods), rtol=1e-10, atol=1e-15)


def test_a_jump_leaves_every_secret_possible():
    setting = Setting.of(MODEL.beginning(0).with_jump(0.01), POLICY, SPACE, 1)
    assert setting.first().prior.support.all()
    assert setting.plan(setting.first()).constraint.support.all()


def test_options_of_a_release_have_no_word_of_secrets():
    """Plans of equal supports are equal, whatever chain made these: nothing of latent states is in what they hash."""
    plain = dphmm.MarkovModel(np.full(PLACES, 1 / PLACES), np.full((PLACES, PLACES), 1 / PLACES), space=SPACE)
    plans = [Setting.of(model, POLICY, SPACE, 1).first_plan() for model in (plain, MODEL)]
    assert plans[0].hash == plans[1].hash
    assert Options.checked(1).written().keys().isdisjoint({"secrets", "latent"})
