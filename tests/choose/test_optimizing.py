"""Made tables: from `dphmm.choose.optimize` to a release, a ledger and back, by enumeration of their whole numbers.

Claims: every pair that a plan must hide (policy edges however they are answered, joins, partners, merged states) loses
at most ε in fractions of the rows that are drawn from; a table is used in no other space, at no other ε and for no edge
that it was not made for; a ledger is resumed with the same table alone; mean costs and bounds are those of the problem
that was asked. It would fail for a table that is taken by its name, an edge that is not looked for, costs that forget
who is answered as somebody else, or a bound that is one of another ε.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.audit import verify
from dphmm.errors import InvalidInput, Unprotectable
from dphmm.mechanisms import MadeTable, OptimalTable
from dphmm.mechanisms.answer_table import PREFIX, digits_for, known_table
from dphmm.mechanisms.base import Uncertified
from dphmm.session.setting import Setting
from naive_table import exp_below, ratio_of_states, required_of
from running_example import ANSWERS, EDGES_3B

N = 6
POLICY = dphmm.policy.from_edges(EDGES_3B, N)
SPACE = dphmm.StateSpace(ANSWERS)


def model_of(n, weights=None):
    """A model in which every move is possible, and where people are as often as the weights say."""
    initial = np.full(n, 1 / n) if weights is None else np.asarray(weights) / np.sum(weights)
    told = {} if weights is None else {"initial": "occupancy"}
    return dphmm.MarkovModel(initial, np.full((n, n), 1 / n), provenance=told)


UNIFORM = model_of(N)


def session(table, epsilon=2, policy=POLICY, space=SPACE, model=UNIFORM, **options):
    options = {"bits": dphmm.ReplayBits(1), "subject": "s", **options}
    return dphmm.ReleaseSession(model, policy, space, epsilon, mechanism=table, **options)


@pytest.fixture(scope="module")
def table():
    return dphmm.choose.optimize(UNIFORM, POLICY, SPACE, 2)


def worlds():
    """Equal answers, policies that leave states alone, flat answers, labels; skewed, even and missing weights."""
    rng = np.random.default_rng(7)
    for number in range(64):
        n = int(rng.integers(3, 9))
        if number % 4 == 3:
            space = dphmm.StateSpace.labels([f"label {i}" for i in range(n)])
        else:
            points = rng.integers(-2, 3, (n, 1 + number % 3))
            points[0] = 3
            space = dphmm.StateSpace(points)
        pairs = [tuple(p) for p in itertools.combinations(range(n), 2) if rng.random() < 0.3]
        cliques = [p for p in itertools.combinations(range(n), 2) if (p[0] < n // 2) == (p[1] < n // 2)]
        policy = (
            dphmm.policy.from_edges(pairs, n),
            dphmm.policy.complete(n),
            dphmm.policy.from_edges(cliques, n),
        )[number % 3]
        weights = None if number % 5 == 0 else rng.integers(0, 9, n) + (np.arange(n) == 1)
        protection = ("merge", "auto", "nearest")[number // 3 % 3]
        epsilon = Fraction(int(rng.integers(1, 9)), 2)
        yield model_of(n, weights), policy, space, epsilon, protection


def test_every_required_pair_of_random_worlds_keeps_epsilon():
    merged = joined = labels = compared = 0
    for model, policy, space, epsilon, protection in worlds():
        made = dphmm.choose.optimize(model, policy, space, epsilon, protection=protection)
        plan = Setting.of(model, policy, space, epsilon, mechanism=made, protection=protection).first_plan()
        assert plan.mechanism == made
        most = exp_below(epsilon)
        for a, b in required_of(policy, plan):
            assert ratio_of_states(plan, a, b) <= most
            compared += 1
        for state in range(space.n_states):
            assert any(ratio_of_states(plan, state, other) <= most for other in range(space.n_states) if other != state)
        assert not verify(plan, policy, space).convicted
        merged += len(plan.merged) > 0
        joined += len(plan.joins) > 0
        labels += space.has_labels
    assert compared > 200 and merged > 3 and joined > 3 and labels == 16


def naive_mean(made, model, space, plan, costs):
    """The mean cost state by state, in fractions of the rows."""
    law = made.law
    points = [tuple(p) for p in law.points.tolist()]
    weights = np.ones(space.n_states) if model.occupancy_weights is None else model.occupancy_weights
    total = 0.0
    for state in range(space.n_states):
        row = law.weights[points.index(tuple(plan.image[state].tolist()))].tolist()
        for point, weight in zip(points, row, strict=True):
            total += float(weights[state]) * (weight / sum(row)) * costs(state, np.array(point))
    return total / float(weights.sum())


@pytest.mark.parametrize("loss", ["squared", "distance"])
def test_mean_costs_count_everybody_where_they_are(loss):
    power = {"squared": 2, "distance": 1}[loss]
    apart = 0
    for model, policy, space, epsilon, protection in worlds():
        if space.has_labels:
            continue
        made = dphmm.choose.optimize(model, policy, space, epsilon, protection=protection, loss=loss)
        plan = Setting.of(model, policy, space, epsilon, mechanism=made, protection=protection).first_plan()

        def cost(state, point, space=space):
            there = space.frame.to_answers(point)
            return float(np.linalg.norm(space.own_answers[state] - there)) ** power

        assert made.making.cost == pytest.approx(naive_mean(made, model, space, plan, cost), rel=1e-9)
        assert made.making.certified_ratio is None or 1 <= made.making.certified_ratio * (1 + 1e-9) < 1.001
        apart += len(plan.merged) > 0
    assert apart > 2


def test_labels_are_right_as_often_as_any_mechanism_can_make_them():
    """Of k labels alike that are all joined that is randomised response: e^ε / (e^ε + k - 1)."""
    for k, epsilon in itertools.product((2, 5, 9), (1, 2)):
        space = dphmm.StateSpace.labels([f"l{i}" for i in range(k)])
        made = dphmm.choose.optimize(model_of(k), dphmm.policy.complete(k), space, epsilon)
        assert made.making.loss == "label"
        assert 1 - made.making.cost == pytest.approx(np.exp(epsilon) / (np.exp(epsilon) + k - 1), rel=1e-6)
    skewed = model_of(4, [7, 1, 1, 1])
    space = dphmm.StateSpace.labels(["a", "b", "c", "d"])
    made = dphmm.choose.optimize(skewed, dphmm.policy.complete(4), space, 1)
    assert 1 - made.making.cost == pytest.approx(0.7, abs=1e-6), "it names the likeliest label always"


def test_costs_of_ones_own_decide_what_is_named():
    costs = np.array([[0, 5, 5], [1, 0, 1], [5, 5, 0]])
    space = dphmm.StateSpace.labels(["a", "b", "c"])
    made = dphmm.choose.optimize(model_of(3), dphmm.policy.complete(3), space, Fraction(1, 4), loss=costs)
    own = OptimalTable(made.law.points, made.edges, Fraction(1, 4), costs=costs)
    assert made.making.loss == "custom" and made.law.digest == own.law.digest
    for wrong, told in ((np.ones((2, 2)), r"shape \(2, 2\)"), (-costs, "negative"), ("miles", "one of squared")):
        with pytest.raises(InvalidInput, match=rf"loss: .*{told}"):
            dphmm.choose.optimize(model_of(3), dphmm.policy.complete(3), space, 1, loss=wrong)
    with pytest.raises(InvalidInput, match=r"loss: got squared; expected label.*names have no distance"):
        dphmm.choose.optimize(model_of(3), dphmm.policy.complete(3), space, 1, loss="squared")
    with pytest.raises(InvalidInput, match=r"gap: got 0\.5; expected a ratio of at least 1"):
        dphmm.choose.optimize(model_of(3), dphmm.policy.complete(3), space, 1, gap=0.5)


def test_the_bound_is_for_epsilon_and_not_for_a_little_less():
    """A table made for much less than ε has no less cost than the bound for ε, and the bound falls with ε."""
    bounds = [dphmm.choose.optimize(UNIFORM, POLICY, SPACE, Fraction(e, 4)).making.bound for e in (2, 3, 4, 8)]
    assert bounds == sorted(bounds, reverse=True) and bounds[-1] > 0
    found = OptimalTable([[0], [1]], [[0, 1]], 1, costs=[[0, 1], [1, 0]])
    least = 1 / (np.e + 1)
    assert found.optimum.bound <= least * (1 + 1e-12)
    assert found.optimum.bound == pytest.approx(least, rel=1e-7)


def test_a_release_draws_from_the_rows_of_the_table(table):
    own = session(table)
    released = own.release(3)
    assert released.mechanism == PREFIX and not released.constant
    assert tuple(released.z_lattice) in {tuple(p) for p in table.law.points.tolist()}
    plan = Setting.of(UNIFORM, POLICY, SPACE, 2, mechanism=table).first_plan()
    points = [tuple(p) for p in table.law.points.tolist()]
    for z, point in enumerate(points):
        told = plan.log_likelihood(np.array(point))
        for state in range(N):
            row = table.law.weights[points.index(tuple(plan.image[state].tolist()))].tolist()
            assert told[state] == pytest.approx(np.log(row[z] / sum(row)), abs=1e-12)
    assert plan.cost == table.largest_loss


def test_the_same_table_always_and_no_other_makes_the_same_plan(table):
    again = dphmm.choose.optimize(UNIFORM, POLICY, SPACE, 2)
    other = dphmm.choose.optimize(UNIFORM, POLICY, SPACE, 2, loss="distance")
    assert (again.digest, again.reference) == (table.digest, f"{PREFIX}:{table.digest}")
    assert other.digest != table.digest
    plans = [Setting.of(UNIFORM, POLICY, SPACE, 2, mechanism=one).first_plan().hash for one in (table, again, other)]
    assert plans[0] == plans[1] != plans[2]
    by_name = Setting.of(UNIFORM, POLICY, SPACE, 2, mechanism=table.reference).first_plan()
    assert by_name.hash == plans[0]


def test_a_history_goes_on_with_its_table_alone(table):
    ledger = dphmm.accounting.MemoryLedger()
    first = session(table, ledger=ledger)
    for state in (1, 2):
        first.release(state)
    again = dphmm.ReleaseSession.resume(ledger, "s", UNIFORM, POLICY, SPACE, bits=dphmm.ReplayBits(2))
    assert np.array_equal(again.posterior.probability, first.posterior.probability)
    again.release(3)
    other = dphmm.choose.optimize(UNIFORM, POLICY, SPACE, 2, loss="distance")
    for mechanism in (other, "auto", "optimal-table"):
        with pytest.raises(InvalidInput, match=r"mechanism: got .*; expected .made-table:"):
            session(mechanism, ledger=ledger).release(1)
    header = ledger.header("s", "state")
    assert header.options["mechanism"] == table.reference


def test_a_table_that_was_not_read_is_asked_for():
    missing = f"{PREFIX}:{'0' * 64}"
    told = r"mechanism: got made table 000000000000, which has not been read; expected its file"
    with pytest.raises(InvalidInput, match=told):
        known_table(missing)
    with pytest.raises(InvalidInput, match=told):
        session(missing)


@pytest.mark.parametrize(
    ("changed", "error", "told"),
    [
        ({"epsilon": 1}, InvalidInput, r"mechanism: got table \w+, made for epsilon 2; expected epsilon 2"),
        ({"epsilon": 4}, InvalidInput, r"mechanism: got table \w+, made for epsilon 2; expected epsilon 2"),
        ({"space": dphmm.StateSpace(ANSWERS + 1)}, InvalidInput, r"mechanism: got table \w+, made for another space"),
        ({"policy": dphmm.policy.complete(N)}, Unprotectable, r"not made for \d+ of the 15 edges that the plan must"),
        ({"constraint": "delta=0.1"}, InvalidInput, r"constraint: got delta=0\.1; expected support with made-table"),
    ],
    ids=str,
)
def test_it_serves_nothing_that_it_was_not_made_for(table, changed, error, told):
    """And says so before anything is drawn."""
    ledger = dphmm.accounting.MemoryLedger()
    with pytest.raises(error, match=told):
        session(table, ledger=ledger, **changed).release(1)
    assert ledger.entries("s", "state") == []


def test_epsilon_does_not_vary_with_a_made_table(table):
    with pytest.raises(InvalidInput, match=r"varies: got epsilon; expected no other epsilon than 2: the table is for"):
        session(table, varies=("epsilon",))


def test_fewer_possible_states_are_served_where_their_edges_are_those_of_the_table(table):
    """And refused where a state is joined to another one than when the table was made."""
    served = refused = 0
    for states in itertools.chain.from_iterable(itertools.combinations(range(N), k) for k in (2, 3, 4, 5)):
        initial = np.zeros(N)
        initial[list(states)] = 1 / len(states)
        model = dphmm.MarkovModel(initial, np.full((N, N), 1 / N), start="at")
        setting = Setting.of(model, POLICY, SPACE, 2, mechanism=table)
        try:
            plan = setting.first_plan()
        except Unprotectable as why:
            assert "edges that the plan must keep" in str(why)
            refused += 1
            continue
        assert all(ratio_of_states(plan, a, b) <= exp_below(Fraction(2)) for a, b in required_of(POLICY, plan))
        served += 1
    assert served > 5 and refused > 2


def test_a_table_serves_beside_another_query_where_partners_are_its_edges(table):
    ledger = dphmm.accounting.MemoryLedger()
    first = session(table, ledger=ledger)
    first.release(2)
    other = dphmm.StateSpace(ANSWERS[:, ::-1].copy())
    second = dphmm.choose.optimize(UNIFORM, POLICY, other, 2)
    beside = dphmm.ReleaseSession(
        UNIFORM, POLICY, other, 2, mechanism=second, subject="s", query="other", ledger=ledger, bits=dphmm.ReplayBits(3)
    )
    plans = [Setting.of(UNIFORM, POLICY, space, 2, mechanism=one).first_plan() for space, one in
             ((SPACE, table), (other, second))]  # fmt: skip
    if {tuple(sorted(p)) for p in plans[0].partners.tolist()} <= {tuple(sorted(p)) for p in plans[1].joins.tolist()}:
        beside.release(2)
        assert len(ledger.entries("s", "other")) == 1
    else:
        with pytest.raises(Unprotectable, match="edges that the plan must keep"):
            beside.release(2)
        assert ledger.entries("s", "other") == []


def test_weights_that_lose_more_are_never_a_table(table):
    law = table.law
    for row, column in itertools.product(range(len(law.points)), repeat=2):
        for step in (-1, 1):
            weights = law.weights.copy()
            weights[row][column] += step * max(1, weights[row][column] >> 8)
            with pytest.raises(Uncertified):
                made_of(table, weights)


def test_what_decides_a_release_decides_the_name(table):
    """Not how it was made, nor how errors are told."""
    law = table.law
    same = made_of(table, law.weights, making=None, prior=None)
    assert same.digest == table.digest
    others = [
        made_of(table, law.weights, space="another"),
        made_of(table, law.weights, labels=True),
        MadeTable(law.points, table.edges[1:], 2, law.weights, space=table.space_digest),
        MadeTable(law.points + 1, table.edges, 2, law.weights, space=table.space_digest),
    ]
    assert len({table.digest, *(one.digest for one in others)}) == 5
    with pytest.raises(InvalidInput, match="lexicographic"):
        MadeTable(law.points[::-1], table.edges, 2, law.weights, space=table.space_digest)
    assert law.bits == digits_for(Fraction(2))


def made_of(table, weights, **changed):
    given = {"space": table.space_digest, "frame": table.frame, "prior": table.prior, "making": table.making, **changed}
    return MadeTable(table.law.points, table.edges, table.epsilon, weights, **given)


def test_answers_that_are_all_the_same_are_refused():
    space = dphmm.StateSpace([1, 1, 1])
    with pytest.raises(InvalidInput, match=r"space: got answers that are all the same"):
        dphmm.choose.optimize(model_of(3), dphmm.policy.complete(3), space, 1)


def test_a_ratio_that_nobody_knows_is_none(table):
    large = dphmm.choose.optimize(UNIFORM, POLICY, SPACE, 20)
    assert large.making.method == "truth" and large.making.certified_ratio is None
    assert replace(table.making, cost=0.0).certified_ratio == 1
