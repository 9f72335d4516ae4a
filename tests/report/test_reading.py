"""`dphmm.read`: what somebody with a file and no model may conclude is what the mechanism's own law says.

Claims: likelihoods are those of the plan's mechanism, for every law that is computed, with surrogates and merges; the
posterior is Bayes' rule and the region the fewest states with the coverage; over states drawn from the prior, regions
hold the truth at least as often as they say; people, times and promises are those of file and statement; frames of all
kinds are read alike; what is missing or another release's is refused by name.
"""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dphmm
from audit.small import MODEL, POLICY, SPACE
from dphmm.audit import check_released
from dphmm.audit.plain_plans import PlainLaw, plain_plans
from dphmm.errors import InvalidInput
from dphmm.report.reading import region
from dphmm.session.setting import Setting
from dphmm.storage.tables import to_arrow

TABLE = pd.DataFrame(
    {"user": ["a"] * 4 + ["b"] * 4, "step": [0, 1, 2, 3] * 2, "state": [str(s) for s in (0, 2, 3, 1, 5, 4, 2, 0)]}
)
STATES = pd.DataFrame({"state": SPACE.names, "z_0": SPACE.answers[:, 0], "z_1": SPACE.answers[:, 1]})


@pytest.fixture(scope="module")
def released():
    return dphmm.release_many(TABLE, MODEL, POLICY, SPACE, 1, bits=dphmm.ReplayBits(3))


@pytest.fixture(scope="module")
def plans(released):
    return json.loads(json.dumps(check_released(released, MODEL, POLICY, SPACE, 1).plain_plans()))


@pytest.mark.parametrize("merged", [[], [[0, 1]]], ids=["whole", "merged"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mechanism": "discrete-knorm"},
        {"mechanism": "staircase"},
        {"mechanism": "discrete-laplace"},
        {"protection": "nearest"},
        {"constraint": "delta=0.2"},
    ],
    ids=str,
)
def test_a_plain_law_is_that_of_the_mechanism(options, merged):
    space = SPACE.merged(merged) if merged else SPACE
    setting = Setting.of(MODEL, POLICY, space, Fraction(3, 2), **options)
    for support, chosen in ((np.ones(6, bool), np.arange(6) > 2), (np.arange(6) != 3, np.arange(6) != 3)):
        plan = setting.planner.plan(support, support & chosen)
        [law] = PlainLaw.read_all(json.loads(json.dumps(plain_plans([(plan, setting.planner)])))).values()
        for z in ([0, 0], [3, -2], [-7, 5]):
            told = law.log_likelihood(space.frame.to_answers(np.array(z)), space.answers, space.digest)
            right = plan.log_likelihood(np.array(z))
            assert np.allclose(told - told[0], right - right[0], rtol=1e-12, atol=1e-12)


def test_posteriors_and_regions_follow_by_bayes(released, plans):
    prior = np.array([0.1, 0.3, 0.2, 0.2, 0.15, 0.05])
    found = dphmm.read(released, plans=plans, states=SPACE, prior=prior, coverage="0.8")
    assert found.likelihoods.shape == (8, 6) and (found.likelihoods.max(axis=1) == 1).all()
    by_hand = found.likelihoods * prior
    by_hand /= by_hand.sum(axis=1, keepdims=True)
    assert np.allclose(found.posteriors, by_hand, rtol=1e-12)
    for row, p in zip(found.records(), by_hand, strict=True):
        held = [SPACE.index_of(name) for name in row["region"].split(" ")]
        assert row["likeliest"] == SPACE.names[int(np.argmax(p))] and row["probability"] == pytest.approx(p.max())
        assert row["region_probability"] == pytest.approx(p[held].sum()) and p[held].sum() >= 0.8 - 1e-9
        assert p[held].sum() - p[held].min() < 0.8
    assert found.to_pandas(True)[f"likelihood {SPACE.names[2]}"].tolist() == found.likelihoods[:, 2].tolist()


def test_regions_hold_the_truth_as_often_as_they_say(plans):
    """4,000 answers of states drawn from the prior: fewer than 1 in 10^6 such tests would fail at the bound below."""
    prior, rng = np.array([0.1, 0.3, 0.2, 0.2, 0.15, 0.05]), np.random.default_rng(5)
    setting = Setting.of(MODEL, POLICY, SPACE, 1)
    plan = setting.first_plan()
    law = PlainLaw.read_all(json.loads(json.dumps(plain_plans([(plan, setting.planner)]))))[plan.hash]
    truth = rng.choice(6, size=4000, p=prior)
    z = plan.mechanisms[0].answer(plan.image[truth], dphmm.ReplayBits(6))
    held = 0
    for state, answer in zip(truth.tolist(), z, strict=True):
        p = prior * np.exp(law.log_likelihood(SPACE.frame.to_answers(answer), SPACE.answers))
        held += state in region(p / p.sum(), 0.8)[0].tolist()
    assert held / 4000 >= 0.8 - 4.9 * np.sqrt(0.8 * 0.2 / 4000)


def test_the_fewest_states_are_a_region_of_any_prior():
    rng = np.random.default_rng(2)
    for _ in range(50):
        p = rng.dirichlet(np.full(7, 0.5))
        order, held = region(p, 0.9)
        assert held == pytest.approx(p[order].sum()) and held >= 0.9 - 1e-9
        assert held - p[order].min() < 0.9 and (np.delete(p, order) <= p[order].min()).all()
    assert region(np.array([1.0, 0.0]), 0.9)[0].tolist() == [0]


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_of_all_kinds_are_read_alike(released, plans, kind):
    def made(frame):
        if kind == "polars":
            return pytest.importorskip("polars", reason="polars is not installed").from_pandas(frame)
        return frame if kind == "pandas" else to_arrow(frame)

    prior = pd.DataFrame({"state": ["0", "1"], "probability": [0.5, 1.5]})
    found = dphmm.read(made(released), plans=plans, states=made(STATES), prior=made(prior))
    same = dphmm.read(released, plans=plans, states=SPACE, prior={"0": 0.25, "1": 0.75})
    assert found.records() == same.records() and found.document() == same.document()


def test_without_plans_it_tells_what_the_file_has(released):
    found = dphmm.read(released)
    assert (found.people, found.rows, found.answers, found.steps) == (2, 8, 8, (1, 4))
    assert found.likelihoods is None and found.posteriors is None and found.records() == []
    assert "published: 8 answers of 2 people, steps 1 to 4" in found.lines
    assert any("nothing says under which promise" in line for line in found.lines)
    assert found.lines[0] in found._repr_html_()
    with pytest.raises(InvalidInput, match="plans: got none"):
        found.to_arrow()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"plans": None}, "plans: got nothing"),
        ({"states": None}, "states: got nothing"),
        ({"plans": {"format": 1}}, "plans: got another document"),
        ({"plans": {"format": 1, "kind": "plans of a dphmm release", "plans": []}}, "plans: got no plan"),
        ({"plans": {"format": 1, "kind": "plans of a dphmm release", "plans": [{}]}}, "plans: got a plan without"),
        ({"states": SPACE.merged([[0, 1]])}, "states: got those with hash"),
        ({"states": STATES.iloc[:4]}, "states: got 4 states"),
        ({"states": STATES.assign(z_0=0.25)}, "states: got answers that are not on the lattice"),
        ({"states": STATES[["state"]]}, "states: got a table without its columns"),
        ({"states": 7}, "states: got int"),
        ({"prior": [1.0]}, "prior: got an array of shape"),
        ({"prior": {"nowhere": 1.0}}, "prior: got state 'nowhere'"),
        ({"prior": [-1.0, 1, 1, 1, 1, 1]}, "prior: got a negative"),
        ({"prior": ...}, "prior: got ellipsis"),
        ({"coverage": 1}, "coverage: got 1"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_named(released, plans, given, message):
    with pytest.raises(InvalidInput, match=message) as error:
        dphmm.read(released, **{"plans": plans, "states": SPACE, "prior": None, **given})
    assert "\n" not in str(error.value)


def test_laws_that_are_not_of_one_body_are_refused():
    labels = dphmm.StateSpace.labels(["a", "b", "c"])
    model = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3))
    setting = Setting.of(model, dphmm.policy.complete(3), labels, Fraction(1))
    document = json.loads(json.dumps(plain_plans([(setting.first_plan(), setting.planner)])))
    with pytest.raises(InvalidInput, match="plans: got the law hops"):
        PlainLaw.read_all(document)
