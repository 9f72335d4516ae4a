"""`dphmm.read`: what somebody with a file and no model may conclude is what the mechanism's own law says.

Claims: likelihoods are those of the plan's mechanism, for every law that is computed, with surrogates and merges; the
posterior is Bayes' rule and the region the fewest states with the coverage; over states drawn from the prior, regions
hold the truth at least as often as they say, wherever they are given: all answers of two steps of a small world are
enumerated; people, times and promises are those of file and statement; frames of all kinds are read alike; a changed
file is noticed; what is missing or another release's is refused by name.
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
from dphmm.session.plan import spread
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
        held = [SPACE.index_of(name) for name in row["region"]]
        assert row["likeliest"] == SPACE.names[int(np.argmax(p))] and row["probability"] == pytest.approx(p.max())
        assert row["region_probability"] == pytest.approx(p[held].sum()) and p[held].sum() >= 0.8 - 1e-9
        assert p[held].sum() - p[held].min() < 0.8
    assert found.to_pandas(True)[f"likelihood {SPACE.names[2]}"].tolist() == found.likelihoods[:, 2].tolist()


def test_a_prior_may_be_weights_of_any_size(released, plans):
    even = dphmm.read(released, plans=plans, states=SPACE, prior=[1.0] * SPACE.n_states)
    for weight in (1e308, 5e-324):
        found = dphmm.read(released, plans=plans, states=SPACE, prior=[weight] * SPACE.n_states)
        assert np.array_equal(found.posteriors, even.posteriors)


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


COVERAGE = 0.9
#: Six states on a line, and four of which one is likely: priors, moves of chains that keep them at every step, and
#: how far the policy hides a state.
EVEN = np.full(6, 1 / 6), np.eye(6) + (np.eye(6, k=1) + np.eye(6, k=-1) - np.diag([1, 2, 2, 2, 2, 1])) / 8, 1
RARE = np.array([0.85, 0.05, 0.05, 0.05]), 0.9 * np.eye(4) + 0.1 * np.array([0.85, 0.05, 0.05, 0.05]), 3


def _line(prior):
    return dphmm.StateSpace([[s] for s in range(len(prior))])


def _setting(world, constraint):
    prior, moves, radius = world
    space, model = _line(prior), dphmm.MarkovModel(prior, moves)
    return Setting.of(model, dphmm.policy.radius(space, radius), space, 2, constraint=constraint, start="at")


def _shares(plan, zs):
    """Pr(z | state) (n, N), but for the mass beyond ``zs``, which is below 1e-8."""
    logs = np.array([plan.log_likelihood(np.array([z])) for z in zs])
    return np.exp(logs) / np.exp(logs).sum(axis=0)


def _second_answers(world, constraint="support", least_spread=0.0):
    """All second answers of one person: rows of a released file, Pr(both answers and the state) (n, N), the plans.

    A second answer is asked for where the belief's spread reaches ``least_spread``, as a paced schedule does.
    """
    (prior, moves, _), setting, rows, shares, plans = world, _setting(world, constraint), [], [], {}
    first, zs = setting.first_plan(), range(-30, 36)
    for z, seen in zip(zs, _shares(first, zs), strict=True):
        position = setting.first().predict(setting.model, setting.first().posterior(first, np.array([z])))
        if spread(position.prior, setting.space.answers) < least_spread:
            continue
        plan = setting.plan(position)
        plans[plan.hash] = plan, setting.planner
        rows += [{"user": "a", "step": 2, "epsilon": 2, "cost": 2, "plan": plan.hash, "z_0": other} for other in zs]
        shares += list((prior * seen) @ moves * _shares(plan, zs))
    return pd.DataFrame(rows), np.array(shares), json.loads(json.dumps(plain_plans(plans.values())))


def _covered(rows, shares, plans, prior):
    """The share of second answers whose region holds the state: regions as likelihoods and a prior alone make them."""
    posterior = dphmm.read(rows, plans=plans, states=_line(prior)).likelihoods * prior
    posterior /= posterior.sum(axis=1, keepdims=True)
    held = [share[region(p, COVERAGE)[0]].sum() for share, p in zip(shares, posterior, strict=True)]
    return sum(held) / shares.sum()


@pytest.mark.parametrize("world", [EVEN, RARE], ids=["even", "rare"])
def test_where_no_answer_chooses_plans_regions_hold_what_they_say_of_all_answers(world):
    rows, shares, plans = _second_answers(world)
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    found = dphmm.read(rows, plans=plans, states=_line(world[0]), prior=world[0], coverage=COVERAGE)
    held = [share[list(map(int, row["region"]))].sum() for share, row in zip(shares, found.records(), strict=True)]
    assert sum(held) >= COVERAGE and sum(held) == pytest.approx(_covered(rows, shares, plans, world[0]))


def test_a_plan_that_an_answer_chose_has_no_region():
    """By likelihood and prior alone fewer regions hold the state than they say, of all answers that there are."""
    rows, shares, plans = _second_answers(EVEN, "delta=0.1")
    assert len(plans["plans"]) > 1 and shares.sum() == pytest.approx(1, abs=1e-12)
    assert _covered(rows, shares, plans, EVEN[0]) < COVERAGE - 0.01
    with pytest.raises(InvalidInput, match=r"prior: got one for a file where plans follow .* \(constraint delta=0.1"):
        dphmm.read(rows, plans=plans, states=_line(EVEN[0]), prior=EVEN[0], coverage=COVERAGE)
    told = dphmm.read(rows, plans=plans, states=_line(EVEN[0]))
    assert told.likelihoods.shape == (len(rows), 6) and "what earlier answers chose" in told.not_concluded[0]


def test_where_answers_decide_when_to_ask_there_is_no_region():
    """The same of a paced schedule: the plan is one and the same, and that somebody is asked tells of the state."""
    rows, shares, plans = _second_answers(RARE, least_spread=0.8)
    assert len(plans["plans"]) == 1 and 0.1 < shares.sum() < 0.3
    assert _covered(rows, shares, plans, RARE[0]) < COVERAGE - 0.01
    given = {"plans": plans, "states": _line(RARE[0]), "prior": RARE[0]}
    with pytest.raises(InvalidInput, match="prior: got one for a file where some rows have no answer"):
        dphmm.read(pd.concat([rows, rows[:1].assign(user="b", plan="", z_0=np.nan)]), **given)
    # Without a statement, and without such rows, it is said what the region rests on.
    [line] = [line for line in dphmm.read(rows, **given).concluded if "region" in line]
    assert "if it was drawn from your prior, and no earlier answer decided when to ask;" in line


@pytest.mark.parametrize(
    ("part", "reason"), [({"flat": "allow"}, r"\(flat allow\)"), ({"given": [[0, 1]]}, "edges of another query")]
)
def test_other_plans_that_may_follow_from_answers_have_no_region(released, plans, part, reason):
    other = json.loads(json.dumps(plans))
    for plan in other["plans"]:
        inputs = json.loads(plan["inputs"])
        inputs["options"] |= {name: text for name, text in part.items() if name == "flat"}
        plan |= {"inputs": json.dumps(inputs), "given": part.get("given", [])}
    with pytest.raises(InvalidInput, match=reason):
        dphmm.read(released, plans=other, states=SPACE, prior=np.ones(6))


def test_a_public_constant_says_the_same_of_all_states():
    """A delta-set of one state answers everybody alike: the body has no axis."""
    setting = _setting(RARE, "delta=0.2")
    plan = setting.first_plan()
    assert plan.constant
    rows = pd.DataFrame([{"user": "a", "step": 1, "epsilon": 0, "cost": 0, "plan": plan.hash, "z_0": 0}])
    document = json.loads(json.dumps(plain_plans([(plan, setting.planner)])))
    assert dphmm.read(rows, plans=document, states=_line(RARE[0])).likelihoods.tolist() == [[1, 1, 1, 1]]


def test_a_region_of_any_names_is_a_list_of_them():
    space = dphmm.StateSpace([[0], [1], [2]], names=["a", "a b", '"b", =1'])
    setting = Setting.of(dphmm.MarkovModel([1 / 3] * 3, np.full((3, 3), 1 / 3)), dphmm.policy.complete(3), space, 1)
    plan = setting.first_plan()
    rows = pd.DataFrame([{"user": "a", "step": 1, "epsilon": 1, "cost": 1, "plan": plan.hash, "z_0": 1}])
    document = json.loads(json.dumps(plain_plans([(plan, setting.planner)])))
    found = dphmm.read(rows, plans=document, states=space, prior=[0.2, 0.5, 0.3], coverage=0.999)
    assert found.to_arrow().column("region").to_pylist() == [["a b", '"b", =1', "a"]]


@pytest.mark.parametrize("coverage", [0.999, 0.9999, 0.5])
def test_a_coverage_is_told_as_it_was_given(released, plans, coverage):
    found = dphmm.read(released, plans=plans, states=SPACE, prior=np.ones(6), coverage=coverage)
    assert any(f"with a probability of at least {coverage}, if" in line for line in found.concluded)


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
