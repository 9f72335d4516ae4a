"""`dphmm.audit.read`: what somebody with a file and no model may conclude is what the mechanism's own law says.

Claims: likelihoods are those of the plan's mechanism, for every law that is computed, with surrogates and merges; the
posterior is Bayes' rule and the region the fewest states with the coverage; over states drawn from the prior, regions
hold the truth at least as often as they say, wherever they are given: all answers of two steps of a small world are
enumerated; people, times and promises are those of file and statement; frames of all kinds are read alike; a changed
file is noticed; what is missing or another release's is refused by name, and so are plans whose parts are not those of
their hash. Statements of every kind of release are read with their numbers, beside a part of their rows too; an edited
member that rows or other members contradict is refused, and sentences that are not those of the choices are told as
such and never repeated.
"""

from __future__ import annotations

import copy
import json
import time
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from msgspec import UNSET

import dphmm
from audit.small import MODEL, POLICY, SPACE
from crafted_bits import keyed_system_bits
from dphmm.audit import check_release
from dphmm.audit.plain_plans import PlainLaw, plain_hash, plain_plans
from dphmm.audit.reading import _require_choices, region
from dphmm.errors import InvalidInput
from dphmm.mechanisms.answer_table import PREFIX
from dphmm.release.batch import Batch
from dphmm.session.plan import spread
from dphmm.session.setting import Setting
from dphmm.statement.files import read_statement, statement_path, write_statement
from dphmm.statement.origin import Whom, reasons, verdict
from dphmm.statement.release import unprotected
from dphmm.storage.released import FileSums, released_table
from dphmm.storage.tables import to_arrow, write_table
from dphmm.storage.trajectories import load_trajectories
from report.worlds import put

TABLE = pd.DataFrame(
    {"user": ["a"] * 4 + ["b"] * 4, "step": [0, 1, 2, 3] * 2, "state": [str(s) for s in (0, 2, 3, 1, 5, 4, 2, 0)]}
)
STATES = pd.DataFrame({"state": SPACE.names, "z_0": SPACE.answers[:, 0], "z_1": SPACE.answers[:, 1]})


@pytest.fixture(scope="module")
def released():
    return dphmm.release_many(TABLE, MODEL, POLICY, SPACE, 1, bits=dphmm.ReplayBits(3))


@pytest.fixture(scope="module")
def plans(released):
    return json.loads(json.dumps(check_release(released, MODEL, POLICY, SPACE, 1).plain_plans()))


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
    found = dphmm.audit.read(released, plans=plans, states=SPACE, prior=prior, coverage="0.8")
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
    even = dphmm.audit.read(released, plans=plans, states=SPACE, prior=[1.0] * SPACE.n_states)
    for weight in (1e308, 5e-324):
        found = dphmm.audit.read(released, plans=plans, states=SPACE, prior=[weight] * SPACE.n_states)
        assert np.array_equal(found.posteriors, even.posteriors)


def test_regions_hold_the_truth_as_often_as_they_say(plans):
    """4,000 answers of states drawn from the prior: fewer than 1 in 10^6 such tests would fail at the bound below."""
    prior, rng = np.array([0.1, 0.3, 0.2, 0.2, 0.15, 0.05]), np.random.default_rng(5)
    setting = Setting.of(MODEL, POLICY, SPACE, 1)
    plan = setting.first_plan()
    law = PlainLaw.read_all(json.loads(json.dumps(plain_plans([(plan, setting.planner)]))))[plan.hash]
    truth = rng.choice(6, size=4000, p=prior)
    z = plan.mechanism.answer(plan.image[truth], dphmm.ReplayBits(6))
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
        position = setting.first().predict(setting.model, setting.first().condition(first, np.array([z])))
        if spread(position.prior, setting.space) < least_spread:
            continue
        plan = setting.plan(position)
        plans[plan.hash] = plan, setting.planner
        rows += [{"user": "a", "step": 2, "epsilon": 2, "cost": 2, "plan": plan.hash, "z_0": other} for other in zs]
        shares += list((prior * seen) @ moves * _shares(plan, zs))
    return pd.DataFrame(rows), np.array(shares), json.loads(json.dumps(plain_plans(plans.values())))


def _covered(rows, shares, plans, prior):
    """The share of second answers whose region holds the state: regions as likelihoods and a prior alone make them."""
    posterior = dphmm.audit.read(rows, plans=plans, states=_line(prior)).likelihoods * prior
    posterior /= posterior.sum(axis=1, keepdims=True)
    held = [share[region(p, COVERAGE)[0]].sum() for share, p in zip(shares, posterior, strict=True)]
    return sum(held) / shares.sum()


@pytest.mark.parametrize("world", [EVEN, RARE], ids=["even", "rare"])
def test_where_no_answer_chooses_plans_regions_hold_what_they_say_of_all_answers(world):
    rows, shares, plans = _second_answers(world)
    assert shares.sum() == pytest.approx(1, abs=1e-12)
    found = dphmm.audit.read(rows, plans=plans, states=_line(world[0]), prior=world[0], coverage=COVERAGE)
    held = [share[list(map(int, row["region"]))].sum() for share, row in zip(shares, found.records(), strict=True)]
    assert sum(held) >= COVERAGE and sum(held) == pytest.approx(_covered(rows, shares, plans, world[0]))


def test_a_plan_that_an_answer_chose_has_no_region():
    """By likelihood and prior alone fewer regions hold the state than they say, of all answers that there are."""
    rows, shares, plans = _second_answers(EVEN, "delta=0.1")
    assert len(plans["plans"]) > 1 and shares.sum() == pytest.approx(1, abs=1e-12)
    assert _covered(rows, shares, plans, EVEN[0]) < COVERAGE - 0.01
    with pytest.raises(InvalidInput, match=r"prior: got one for a file where plans follow .* \(constraint delta=0.1"):
        dphmm.audit.read(rows, plans=plans, states=_line(EVEN[0]), prior=EVEN[0], coverage=COVERAGE)
    told = dphmm.audit.read(rows, plans=plans, states=_line(EVEN[0]))
    assert told.likelihoods.shape == (len(rows), 6) and "what earlier answers chose" in told.not_concluded[0]


def test_where_answers_decide_when_to_ask_there_is_no_region():
    """The same of a paced schedule: the plan is one and the same, and that somebody is asked tells of the state."""
    rows, shares, plans = _second_answers(RARE, least_spread=0.8)
    assert len(plans["plans"]) == 1 and 0.1 < shares.sum() < 0.3
    assert _covered(rows, shares, plans, RARE[0]) < COVERAGE - 0.01
    given = {"plans": plans, "states": _line(RARE[0]), "prior": RARE[0]}
    with pytest.raises(InvalidInput, match="prior: got one for a file where some rows have no answer"):
        dphmm.audit.read(pd.concat([rows, rows[:1].assign(user="b", plan="", z_0=np.nan)]), **given)
    # Without a statement, and without such rows, it is said what the region rests on.
    [line] = [line for line in dphmm.audit.read(rows, **given).concluded if "region" in line]
    assert "if it was drawn from your prior, and no earlier answer decided when to ask;" in line


def test_other_plans_that_may_follow_from_answers_have_no_region(released, plans):
    given = [[0, 1]]
    rows, other = with_other_plans(released, plans, description={"given_partners": given}, members={"given": given})
    with pytest.raises(InvalidInput, match="edges of another query"):
        dphmm.audit.read(rows, plans=other, states=SPACE, prior=np.ones(6))


def with_other_plans(released, plans, options=(), description=(), members=()):
    """Rows and plans of which some parts are others, and the hashes those of the parts."""
    other, called = json.loads(json.dumps(plans)), {}
    for plan in other["plans"]:
        inputs, chosen = json.loads(plan["inputs"]), json.loads(plan["description"])
        inputs["options"] |= dict(options)
        chosen |= dict(description)
        plan |= {"inputs": json.dumps(inputs), "description": json.dumps(chosen), **dict(members)}
        called[plan["hash"]] = plan["hash"] = plain_hash(plan)
    return released.assign(plan=released["plan"].map(called)), other


EDITED_PARTS = {
    "epsilon of the law": ("description", '"epsilon": "1"', '"epsilon": "1/2"'),
    "epsilon of the options": ("inputs", '"epsilon": "1"', '"epsilon": "1/2"'),
    "states and policy": ("inputs", '"policy": "', '"policy": "0'),
    "support": ("support", "f", "e"),
    "plan set": ("plan_set", "f", "e"),
}


@pytest.mark.parametrize("edit", EDITED_PARTS)
def test_a_plan_whose_parts_are_not_those_of_its_hash_is_refused(released, plans, edit):
    """Whoever lowers the epsilon of rows, statement and one line of the plans leaves their hash."""
    other, (member, right, wrong) = json.loads(json.dumps(plans)), EDITED_PARTS[edit]
    for plan in other["plans"]:
        assert right in plan[member]
        plan[member] = plan[member].replace(right, wrong, 1)
    own = plans["plans"][0]["hash"][:12]
    message = rf"^plans: got plan {own} with parts whose hash is [0-9a-f]{{12}}; expected plans as dphmm check-release"
    for rows in (released, released.assign(epsilon=0.5, cost=released.cost / 2)):
        with pytest.raises(InvalidInput, match=message) as error:
            dphmm.audit.read(rows, plans=other, states=SPACE)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("surrogate", [0, 1, 2, 3, 4, 4]),
        ("bodies", "offsets"),
        ("given", [[0, 1]]),
        ("hash", "0" * 64),
    ],
)
def test_every_part_of_a_plan_is_in_its_hash(plans, member, value):
    other = json.loads(json.dumps(plans))
    plan = other["plans"][0]
    if member == "bodies":
        plan["bodies"][0][value][0] += 1
    else:
        plan[member] = value
    with pytest.raises(InvalidInput, match=f"plans: got plan {plan['hash'][:12]} with parts whose hash is"):
        PlainLaw.read_all(other)


@pytest.mark.parametrize(
    ("part", "what"),
    [
        ({"options": {"epsilon": "1/2"}}, "epsilon"),
        ({"options": {"mechanism": "discrete-laplace"}}, "mechanism"),
        ({"members": {"given": [[0, 1]]}}, "given partners"),
    ],
    ids=str,
)
def test_a_plan_whose_description_contradicts_its_inputs_is_refused(released, plans, part, what):
    """Also where somebody made the hash of both, and put it in the rows."""
    rows, other = with_other_plans(released, plans, **part)
    own = other["plans"][0]["hash"][:12]
    message = f"^plans: got plan {own} whose inputs and description have another {what}; expected"
    with pytest.raises(InvalidInput, match=message) as error:
        dphmm.audit.read(rows, plans=other, states=SPACE)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "members",
    [
        {"states": 10**15},
        {"states": -6},
        {"surrogate": [0, 1, 2, 3, 4, 65541]},
        {"surrogate": [0]},
        {"hash": 7},
        {"hash": "x\ny"},
        {"support": ""},
    ],
    ids=str,
)
def test_parts_that_no_plan_has_are_refused(plans, members):
    """A hostile number of states takes neither memory nor time, and a state that is none is never looked up."""
    other = json.loads(json.dumps(plans))
    other["plans"][0] |= members
    with pytest.raises(InvalidInput, match="plans: got a plan without its parts") as error:
        PlainLaw.read_all(other)
    assert "\n" not in str(error.value)


def test_a_public_constant_says_the_same_of_all_states():
    """A delta-set of one state answers everybody alike: the body has no axis."""
    setting = _setting(RARE, "delta=0.2")
    plan = setting.first_plan()
    assert plan.constant
    rows = pd.DataFrame([{"user": "a", "step": 1, "epsilon": 0, "cost": 0, "plan": plan.hash, "z_0": 0}])
    document = json.loads(json.dumps(plain_plans([(plan, setting.planner)])))
    assert dphmm.audit.read(rows, plans=document, states=_line(RARE[0])).likelihoods.tolist() == [[1, 1, 1, 1]]


def test_a_region_of_any_names_is_a_list_of_them():
    space = dphmm.StateSpace([[0], [1], [2]], names=["a", "a b", '"b", =1'])
    setting = Setting.of(dphmm.MarkovModel([1 / 3] * 3, np.full((3, 3), 1 / 3)), dphmm.policy.complete(3), space, 1)
    plan = setting.first_plan()
    rows = pd.DataFrame([{"user": "a", "step": 1, "epsilon": 1, "cost": 1, "plan": plan.hash, "z_0": 1}])
    document = json.loads(json.dumps(plain_plans([(plan, setting.planner)])))
    found = dphmm.audit.read(rows, plans=document, states=space, prior=[0.2, 0.5, 0.3], coverage=0.999)
    assert found.to_arrow().column("region").to_pylist() == [["a b", '"b", =1', "a"]]


@pytest.mark.parametrize("coverage", [0.999, 0.9999, 0.5])
def test_a_coverage_is_told_as_it_was_given(released, plans, coverage):
    found = dphmm.audit.read(released, plans=plans, states=SPACE, prior=np.ones(6), coverage=coverage)
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
    found = dphmm.audit.read(made(released), plans=plans, states=made(STATES), prior=made(prior))
    same = dphmm.audit.read(released, plans=plans, states=SPACE, prior={"0": 0.25, "1": 0.75})
    assert found.records() == same.records() and found.document() == same.document()


def test_without_plans_it_tells_what_the_file_has(released):
    found = dphmm.audit.read(released)
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
        dphmm.audit.read(released, **{"plans": plans, "states": SPACE, "prior": None, **given})
    assert "\n" not in str(error.value)


def test_a_true_state_beside_answers_is_not_handed_on(released, plans):
    """A table has no statement, by which a file with another column is refused."""
    left = released.assign(state="CANARY", lat=51.25)
    records = dphmm.audit.read(left, plans=plans, states=SPACE).records()
    assert "CANARY" not in str(records) and "51.25" not in str(records) and len(records) == 8


def test_rows_have_the_epsilon_of_their_plans(released, plans):
    """Whoever lowers the epsilon of rows and statement alike leaves that of the plans, whose hashes are in the rows."""
    quarter = released.assign(epsilon=0.25, cost=0.25)
    with pytest.raises(InvalidInput, match=r"released: got the epsilon 0\.25 of rows whose plan [0-9a-f]{12} has 1"):
        dphmm.audit.read(quarter, plans=plans, states=SPACE)


def test_a_statement_has_the_choices_of_the_plans(plans):
    law = next(iter(PlainLaw.read_all(plans).values()))
    told = SimpleNamespace(
        varied=UNSET, constraint="support",
        space=SimpleNamespace(sha256=law.space), policy=SimpleNamespace(sha256=law.policy),
    )  # fmt: skip
    _require_choices(told, [law])
    told.policy.sha256 = "0" * 64
    with pytest.raises(InvalidInput, match="statement: got one with another policy, 0000"):
        _require_choices(told, [law])
    told.policy.sha256 = law.policy


def test_laws_that_are_not_of_one_body_are_refused():
    labels = dphmm.StateSpace.labels(["a", "b", "c"])
    model = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3))
    setting = Setting.of(model, dphmm.policy.complete(3), labels, Fraction(1))
    document = json.loads(json.dumps(plain_plans([(setting.first_plan(), setting.planner)])))
    with pytest.raises(InvalidInput, match="plans: got the law hops"):
        PlainLaw.read_all(document)


# -- statements against rows, and against themselves --------------------------------------------------------------

HOURLY = dphmm.MarkovModel(MODEL.initial, MODEL.transition, step=3600)
NAMES = dphmm.StateSpace.labels(list("abcdef"))
DAY = dphmm.SequencePromise(4, per="1d", zone="+02:00")
BLOCK = dphmm.SequencePromise(2, per=4)
HOURS = {"days", "days without t", "planned days", "planned days without t", "varied hours"}
#: An hour of the releases, as bins of time since 1970.
NOON = 1715083200 // 3600
KINDS = {
    "no promise": {"epsilon": 1},
    "paths": {"epsilon": 1, "promise": dphmm.SequencePromise(30, steps=30)},
    "windows": {"epsilon": Fraction(1, 3), "promise": dphmm.SequencePromise(1, window=3)},
    "blocks": {"epsilon": Fraction(1, 2), "promise": BLOCK},
    "days": {"epsilon": Fraction(1, 6), "promise": DAY},
    "days without t": {"epsilon": Fraction(1, 6), "promise": DAY},
    "planned": {"schedule": dphmm.accounting.Schedule(BLOCK, 1, [2, 4])},
    "planned days": {"schedule": dphmm.accounting.Schedule(DAY, 2, [3, 17])},
    "planned days without t": {"schedule": dphmm.accounting.Schedule(DAY, 2, [3, 17])},
    "paced": {
        "schedule": dphmm.accounting.Schedule(dphmm.SequencePromise(5, steps=30), 1, range(1, 31), (0.5, 1.0, 1.5))
    },
    "varied": {"epsilon": 1, "step_choices": {3: {"epsilon": 2}, 5: {"epsilon": Fraction(1, 3)}}},
    "varied hours": {"epsilon": 1, "step_choices": {NOON: {"epsilon": 2}, NOON + 1: {"epsilon": 2}}},
    "delta-set": {"epsilon": 1, "constraint": "delta=0.2"},
    "labels": {"epsilon": 1},
    "replayable": {"epsilon": 1},
}


def published(folder, kind):
    """A release of 3 people and 28 steps with its statement; of one kind in a second file, after other answers."""
    choices = {"bits": keyed_system_bits(3), **KINDS.get(kind, {"epsilon": Fraction(1, 3)})}
    choices |= {"bits": dphmm.ReplayBits(3)} if kind == "replayable" else {}
    space, rng = NAMES if kind == "labels" else SPACE, np.random.default_rng(4)
    batch = Batch(HOURLY if kind in HOURS else MODEL, POLICY, space, **choices)
    rows = pd.DataFrame({"user": np.repeat(["a", "b", "c"], 28), "step": np.tile(np.arange(28), 3)})
    if kind in HOURS:
        begin = pd.to_datetime(
            rows.user.map({"a": "2024-05-06T21:00Z", "b": "2024-05-07T05:00Z", "c": "2024-05-07T00:00Z"})
        )
        rows["t"] = begin + pd.to_timedelta(rows.pop("step"), unit="h")
    rows["state"] = np.array(space.names)[rng.integers(6, size=len(rows))]
    earlier = rows.groupby("user").cumcount() < (5 if kind == "resumed" else 0)
    told = FileSums()
    for some in [rows[earlier], rows[~earlier]][not earlier.any() :]:
        told, found = FileSums(), []
        for chunk in batch.run(load_trajectories(some).trajectories, resume=not some.equals(rows)):
            told.add(chunk)
            found += list(chunk)
    table = released_table(found, space)
    write_table(folder / "r.parquet", table.drop_columns(["t"]) if kind.endswith("without t") else table)
    write_statement(folder / "r.parquet", batch.statement(told, "others"))
    return folder / "r.parquet"


@pytest.mark.parametrize("kind", [*KINDS, "resumed"])
def test_statements_of_every_kind_are_read_with_a_file_a_table_and_parts_of_it(kind, tmp_path):
    file = published(tmp_path, kind)
    stated = json.loads(statement_path(file).read_text())
    assert stated["private"] is (kind != "replayable")
    found, frame = dphmm.audit.read(file), pd.read_parquet(file)
    statement = read_statement(statement_path(file))
    assert found.changed is None and set(statement.hides_not) <= set(found.not_hidden)
    assert set(statement.promised) <= set(found.promised) or kind == "replayable"
    beside = {"statement": statement_path(file)}
    assert (
        dphmm.audit.read(frame, **beside).promised == found.promised
        and dphmm.audit.read(frame, **beside).changed is None
    )
    if "t" in frame:
        assert dphmm.audit.read(frame.assign(t=frame.t.astype(str)), **beside).promised == found.promised
    for part in (frame[frame.user != "a"], frame[frame.step % 3 > 0], frame[frame.plan.notna()][:1]):
        assert "the statement is about another table" in dphmm.audit.read(part, **beside).changed


def edited(file, change):
    """What is read of a file whose statement was changed."""
    told = json.loads(statement_path(file).read_text())
    kept = copy.deepcopy(told)
    change(told)
    assert told != kept
    statement_path(file).write_text(json.dumps(told))
    try:
        return dphmm.audit.read(file)
    finally:
        statement_path(file).write_text(json.dumps(kept))


def _to(path, value):
    return lambda told: put(told, path, value)


_OTHER = {"epsilon": "2", "policy": None, "protection": None, "partners": None}
#: Edits of one member each, by the kind of a release, which its rows or another member contradict.
CONTRADICTED = {
    "days": [("sequence.total", "1/100"), ("sequence.total", "7/2"), ("model.step_seconds", 1800),
             ("model.step_seconds", None), ("model.step_seconds", 0), ("model.step_seconds", 10**30),
             ("model.step_seconds", 2**40), ("sequence.zone", "-99:00"),
             ("sequence.per", "7d"), ("sequence.per", "1min"), ("sequence.total", "8/2")],
    "days without t": [("sequence.total", "1/100"), ("sequence.per", 60),
                       ("sequence.per", "1min"), ("model.step_seconds", None)],
    "planned days": [("sequence.total", "2"), ("schedule.at", "3,18"), ("sequence.zone", "+03:00")],
    "planned days without t": [("sequence.total", "7/2"), ("sequence.per", "1min")],
    "planned": [("sequence.total", "1"), ("sequence.total", "3/2"), ("sequence.per", 8), ("schedule.at", "1,2"),
                ("schedule.not_asked", 0), ("schedule.name", "every")],
    "paced": [("sequence.total", "4"), ("schedule.at", "1-3"), ("schedule.name", "planned")],
    "windows": [("sequence.total", "1/100"), ("sequence.window", 4), ("sequence.total", "2/3")],
    "paths": [("sequence.total", "27"), ("sequence.steps", 27), ("epsilon", "1/100"), ("epsilon", "1/1 "),
              ("epsilon", "1.0"), ("epsilon", "1/0"), ("epsilon", "9" * 400), ("totals.epsilon_sum", "27"),
              ("totals.epsilon_sum", "x"), ("totals.cost_sum", "1/4"), ("totals.cost_sum", "unbounded"),
              ("published.rows", 1), ("published.subjects", 16), ("published.public_constants", 1),
              ("plans.count", 7), ("plans.sha256", "0" * 64), ("plans.hashes", []),
              ("mechanism.chosen", {"staircase": 83}), ("mechanism.chosen", {"perfect": 84}),
              ("randomness.replayable_rows", 84), ("private", False), ("private", "yes"), ("reasons", ["x"]),
              ("reasons", ["replayable bits"]), ("reasons", ["unknown origin"]),
              ("not_protected", []), ("not_protected", ["presence"] * 5), ("not_protected", ["Nothing."] * 5),
              ("definition", "differential privacy"), ("randomness.words", "a seed"),
              ("mechanism.asked", "x"), ("constraint", "delta=x"),
              ("model.people", "nobody"), ("model.people_known_by", "model")],
    "varied hours": [("varied.chosen", [dict(_OTHER, steps=runs)])
                     for runs in ([[NOON, NOON]], [[NOON + 5, NOON + 6]], [[NOON + 1, NOON]], [[NOON, NOON + 2]])],
    "varied": [("varied.names", ["policy"]), ("varied.names", []), ("epsilon", "3"), ("varied.chosen", [])],
    "resumed": [("totals.epsilon_sum", "7"), ("totals.cost_sum", "7")],
    "replayable": [("randomness.replayable_rows", 0), ("private", True), ("reasons", [])],
}  # fmt: skip


@pytest.mark.parametrize("kind", CONTRADICTED)
def test_a_member_that_rows_or_other_members_contradict_is_refused(kind, tmp_path):
    file = published(tmp_path, kind)
    for path, value in CONTRADICTED[kind]:
        with pytest.raises(InvalidInput) as error:
            edited(file, _to(path, value))
        assert str(error.value).startswith("statement: got ") and "\n" not in str(error.value)
    assert dphmm.audit.read(file).changed is None


def test_what_a_statement_says_of_its_model_decides_what_is_promised(tmp_path):
    """A page does the same with the model: a statement cannot call private what is of the people released."""
    file = published(tmp_path, "windows")
    for people, known_by, private, said in (
        ("same", "names", False, "nothing: the model was fitted without privacy on people released here"),
        ("same", "owner", None, "it is not known whether anything is promised: the model was made from data of people"),
        ("unknown", None, None, "it is not known whether anything is promised: nothing says whose data"),
    ):
        model = {"people": people, "people_known_by": known_by, "private": private}
        due = reasons({"method": "counts", "private": private}, Whom(people, known_by))
        with pytest.raises(InvalidInput, match="private is"):
            edited(file, lambda told, model=model: told["model"].update(model))

        def change(told, model=model, due=due):
            told["model"].update(model)
            told.update(private=verdict(due), reasons=due)
            told["not_protected"] = list(dict.fromkeys([*told["not_protected"], "people of the model"]))

        found = edited(file, change)
        assert found.promised[0].startswith(said) and len(found.promised) == 1
        assert [line for line in found.concluded if "changes the odds" in line] == [] and found.epsilon is None


def test_of_a_made_table_that_was_not_read_sentences_are_written_too(tmp_path):
    file = published(tmp_path, "paths")
    mechanism = f"{PREFIX}:{'0' * 64}"

    def change(told):
        told["mechanism"]["asked"] = mechanism
        told["not_protected"] = unprotected(mechanism, {}, Whom("others", "owner"))

    found = edited(file, change)
    assert found.promised and set(read_statement(statement_path(file)).hides_not[:5]) <= set(found.not_hidden)


def test_a_changed_file_that_keeps_the_promise_is_told_and_one_that_does_not_is_refused(tmp_path):
    file = published(tmp_path, "days")
    frame = pd.read_parquet(file)
    write_table(file, to_arrow(frame[frame.user != "c"]))
    assert "was changed since" in dphmm.audit.read(file).changed
    write_table(file, to_arrow(frame.assign(t=frame.t.dt.floor("1D"), step=frame.step)))
    with pytest.raises(InvalidInput, match="times: other ones"):
        dphmm.audit.read(file)


@pytest.mark.parametrize(("at", "per"), [("1-86400", "1d"), ("1-604800", "7d"), ("1-9007199254740991", "9999d")])
def test_a_hostile_statement_of_many_named_steps_is_read_at_once(at, per, tmp_path):
    """Rows without times may begin anywhere in a block: that is told, and nothing is searched for."""
    file, begun = published(tmp_path, "planned days without t"), time.process_time()

    def change(told):
        told["schedule"] |= {"name": "paced", "spreads": [1.0], "at": at}
        told["sequence"]["per"], told["model"]["step_seconds"] = per, 1

    assert "not all could be compared" in " ".join(edited(file, change).not_concluded)
    assert time.process_time() - begun < 5


def test_what_is_not_compared_is_told(tmp_path):
    file = published(tmp_path, "planned days without t")
    [said] = [line for line in dphmm.audit.read(file).not_concluded if "not all could be compared" in line]
    assert "promise: blocks are of a time, and rows have no times" in said and "where the model is from" in said


@pytest.mark.parametrize("runs", [[[4, 3]], [[3, 4], [4, 5]], [[3]], [[3, 4, 5]]])
def test_choices_at_runs_that_are_none_are_refused(runs, tmp_path):
    file = published(tmp_path, "varied")
    assert dphmm.audit.read(file).changed is None

    def change(told):
        [one] = [one for one in told["varied"]["chosen"] if one["epsilon"] == "2"]
        one["steps"] = runs

    with pytest.raises(InvalidInput, match="chosen steps"):
        edited(file, change)
