"""Two models: plans are the plan model's whatever reads, and readings are sums over all paths of the belief model.

Claims: the marginals, the likelihood and the odds under a belief model equal brute force over its latent paths, with
likelihoods that the plans give at every secret; a belief model changes no plan, hash or answer; one of other states is
refused; no released answer is excluded. Fails where a likelihood is cut to the
support of a belief, where plans are made with the belief model, and where the jump is left out or lands elsewhere.
"""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.session.believing import DOUBT, SettingReader, believed_model
from dphmm.session.odds import EventWatch, PathEvent
from dphmm.session.own_places import public_base
from dphmm.session.setting import Setting
from dphmm.session.smoothing import Smoother
from session.test_smoothing import CHOICES, GAPS, N, model_of, parts_of, played, published_of

NAMES = ("support", "merged", "delta", "at")
#: Places of a belief model with two latent states of place 1.
SECRETS = np.array([0, 1, 1, 2, 3, 4])


def belief_model(kind, step=None):
    """Another model of the five places, which has moves that the plan model excludes."""
    n = len(SECRETS) if kind == "secrets" else N
    rng = np.random.default_rng(7)
    initial, matrix = rng.dirichlet(np.ones(n)), rng.dirichlet(np.full(n, 0.3), n)
    jump = 0.05 if kind == "jump" else None
    secrets = SECRETS if kind == "secrets" else None
    return dphmm.MarkovModel(initial, matrix, start="at", jump=jump, secrets=secrets, step=step)


def dense(model, law):
    """The matrix of a belief model as it is read with: its own moves, its own jump, and a rare jump into a law."""
    own = model.matrix.toarray()
    if model.jump is not None:
        own = (1 - model.jump.rate) * own + model.jump.rate * model.jump.into
    secrets = np.arange(N) if model.secrets is None else model.secrets
    into = law[secrets] / np.bincount(secrets)[secrets]
    return (1 - DOUBT) * own + DOUBT * into


def brute(model, law, session, rows, more=0):
    """The law of the secrets at each answered step, and the last of ``more``; the likelihood: every latent path."""
    secrets = np.arange(N) if model.secrets is None else model.secrets
    matrix, last = dense(model, law), int(rows.t[-1]) + more
    told = {int(t): likelihoods(session, row) for row, t in enumerate(rows.t.tolist())}
    found, total = np.zeros((last + 1, N)), 0.0
    for path in itertools.product(range(model.n_states), repeat=last):
        chance = model.initial[path[0]]
        for a, b in itertools.pairwise(path):
            chance *= matrix[a, b]
        for t, likely in told.items():
            chance *= likely[secrets[path[t - 1]]]
        total += chance
        for t in {*told, last}:
            found[t, secrets[path[t - 1]]] += chance
    return found[[*rows.t, *[last] * (more > 0)]] / total, total


def likelihoods(session, row):
    """Pr(z | s) of a released step, up to a constant, from every secret: the mechanism asked once for each."""
    plan = played.plans[row]
    z = session.releases[row].z_lattice
    logs = [plan.mechanism.log_likelihood_lattice(z, plan.image[[s]])[0] for s in range(N)]
    return np.exp(np.array(logs) - max(logs))


def recorded(name, gaps, monkeypatch, steps=3):
    """A session played, with the plans that it drew under."""
    plans = []
    release = dphmm.ReleaseSession.release

    def noticed(self, state):
        plans.append(self.plan)
        return release(self, state)

    monkeypatch.setattr(dphmm.ReleaseSession, "release", noticed)
    session, options, parts, _ = played(name, gaps, steps=steps)
    played.plans = plans
    return session, Setting(*parts, options)


def reader(setting, belief):
    return Smoother(setting, None, believed_model(setting, belief))


@pytest.mark.parametrize("kind", ["plain", "jump", "secrets"])
@pytest.mark.parametrize(("name", "gaps"), [*((name, "none") for name in NAMES), ("support", "some")])
def test_readings_are_sums_over_all_paths_of_the_belief_model(name, gaps, kind, monkeypatch):
    session, setting = recorded(name, GAPS[gaps], monkeypatch)
    model, rows = belief_model(kind), published_of(session)
    want, _ = brute(model, public_base(setting.model), session, rows)
    got = reader(setting, model).smooth(rows, marginals=True)
    assert np.allclose(got.marginals, want, rtol=0, atol=1e-12)
    # A session that goes on knows the same of its last step, and of the next what its moves make of it.
    assert session.estimate("state", model).probability == pytest.approx(want[-1].max(), abs=1e-12)
    session.skip()
    ahead = brute(model, public_base(setting.model), session, rows, 1)[0][-1]
    assert session.estimate("state", model).probability == pytest.approx(ahead.max(), abs=1e-12)
    # What the plan model holds impossible has a part of the belief.
    support = Smoother(setting).smooth(rows, marginals=True).marginals > 0
    assert (want[~support] > 0).all() and (~support).any() == (name == "at")


@pytest.mark.parametrize("name", NAMES)
def test_a_belief_model_changes_no_plan_and_no_hash(name, monkeypatch):
    session, setting = recorded(name, GAPS["some"], monkeypatch, steps=4)
    rows, plain = published_of(session), Smoother(setting)
    before = [plan.hash for _, plan in plain.steps(rows).plans]
    after = [plan.hash for _, plan in reader(setting, belief_model("plain")).steps(rows).plans]
    assert before == after == rows.plans


def test_odds_are_those_of_the_belief_model(monkeypatch):
    session, setting = recorded("support", GAPS["none"], monkeypatch)
    model, rows = belief_model("secrets"), published_of(session)
    event = PathEvent.of([1, 4], N, 2, 3)
    told = EventWatch(setting, event, None, believed_model(setting, model)).odds(rows)
    secrets, matrix = model.secrets, dense(model, public_base(setting.model))
    likely = [likelihoods(session, row) for row in range(3)]
    sums = np.zeros((2, 2))
    for path in itertools.product(range(model.n_states), repeat=3):
        prior = model.initial[path[0]] * matrix[path[0], path[1]] * matrix[path[1], path[2]]
        posterior = prior * np.prod([likely[t][secrets[s]] for t, s in enumerate(path)])
        happened = int(any(secrets[s] in (1, 4) for s in path[1:]))
        sums[happened] += prior, posterior
    prior, posterior = sums[1] / sums.sum(axis=0)
    assert told.prior.probability == pytest.approx(prior, abs=1e-12)
    assert told.posterior.probability == pytest.approx(posterior, abs=1e-12)
    assert abs(told.loss) <= float(told.cost) + 1e-9


def released_table(seed=3):
    space = dphmm.StateSpace.labels(["a", "b", "c"])
    model = dphmm.MarkovModel([0.4, 0.3, 0.3], np.full((3, 3), 1 / 3), space=space, start="at")
    policy = dphmm.policy.complete(3)
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame(
        [(f"u{u}", t, space.names[rng.integers(3)]) for u in range(4) for t in (1, 2, 3)],
        columns=["user", "step", "state"],
    )
    released = dphmm.release_many(rows, model, policy, space, 2, bits=dphmm.ReplayBits(seed), progress=False)
    return released, model, policy, space


@pytest.mark.parametrize("name", CHOICES)
def test_no_belief_model_excludes_a_released_answer(name, monkeypatch):
    """Each answer may come from every secret; with an identity for moves only the jump leads elsewhere."""
    session, setting = recorded(name, GAPS["some"], monkeypatch)
    rows = published_of(session)
    for plan, z in zip(played.plans, rows.z, strict=True):
        assert plan.mechanism.possible(z, plan.image).all()
    never = dphmm.MarkovModel(np.eye(N)[0], np.eye(N), start="at")
    got = reader(setting, never).smooth(rows, marginals=True)
    assert np.allclose(got.marginals.sum(axis=1), 1) and (got.marginals[rows.t > 1] > 0).all()


def test_the_plan_model_itself_reads_as_if_there_were_none():
    released, model, policy, space = released_table()
    plain = dphmm.reconstruction.smooth(released, model, policy, space, progress=False)
    same = dphmm.reconstruction.smooth(released, model, policy, space, believe=model, progress=False)
    other = dphmm.MarkovModel([0.1, 0.1, 0.8], 0.1 + 0.7 * np.eye(3), start="at", space=space)
    different = dphmm.reconstruction.smooth(released, model, policy, space, believe=other, progress=False)
    assert plain.equals(same) and not plain.equals(different)
    assert list(plain.columns) == list(different.columns)


def test_people_who_begin_elsewhere_begin_there_for_the_belief_model():
    setting = Setting.of(*parts_of("at"), 1, start="at").beginning(2)
    model = belief_model("secrets")
    first = SettingReader(setting, believed_model(setting, model)).first().prior
    assert first.probability.tolist() == [0, 0, 1, 0, 0]
    reader = SettingReader(setting.beginning([0, 1, 0, 0, 0]), believed_model(setting, model))
    both = reader.first().prior.latent.probability
    assert both[1:3] == pytest.approx(model.initial[1:3] / model.initial[1:3].sum())


@pytest.mark.parametrize(
    ("believe", "says"),
    [
        (np.eye(5), "a MarkovModel"),
        (model_of(n=6), "5"),
        (dphmm.MarkovModel(np.full(5, 0.2), np.eye(5), space=dphmm.StateSpace.labels(list("abcde"))), "space"),
        (dphmm.MarkovModel(np.full(5, 0.2), np.eye(5), step=60), "no time step"),
    ],
)
def test_models_of_other_states_are_refused(believe, says):
    setting = Setting.of(*parts_of("at"), 1)
    with pytest.raises(InvalidInput, match="believe") as refused:
        believed_model(setting, believe)
    assert says in str(refused.value)
