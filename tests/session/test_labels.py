"""Labels: z is a name. Laws by enumeration, beliefs against sums over all paths, tables, refusals, audits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import dphmm
from dphmm.accounting.ledger import MemoryLedger
from dphmm.audit import check_release, verify
from dphmm.errors import InvalidInput
from dphmm.mechanisms import Constant
from dphmm.policy import categorical, complete, from_edges
from dphmm.samplers.entropy import ReplayBits
from dphmm.session.setting import Setting

NAMES = ("news", "shop", "sport", "mail")
POLICIES = {
    "complete": complete(4),
    "categories": categorical([0, 0, 1, 1]),
    "line": from_edges([(0, 1), (1, 2), (2, 3)], 4),
    "one alone": from_edges([(0, 1), (1, 2)], 4),
}
MATRIX = np.array([[0.6, 0.2, 0.1, 0.1], [0.1, 0.7, 0.2, 0], [0.3, 0, 0.4, 0.3], [0.05, 0.05, 0.3, 0.6]])
START = np.array([0.4, 0.3, 0.2, 0.1])


def world(policy="complete", names=NAMES):
    space = dphmm.StateSpace.labels(names)
    return dphmm.MarkovModel(START, MATRIX, space=space, start="at"), POLICIES[policy], space


def e_above(x):
    """A fraction that is not below e^x, nor much above it."""
    x = Fraction(x)
    total, term = Fraction(1), Fraction(1)
    for k in range(1, 60):
        term *= x / k
        total += term
    return total + 2 * term


def law_of(plan, state):
    """Pr(z | state) of a plan as fractions, by number of the label."""
    mechanism, image = plan.mechanism, plan.image[state]
    if isinstance(mechanism, Constant):
        return {int(image[0]): Fraction(1)}
    law = mechanism.law
    row = law.weights[int(law.numbers(image[None])[0])]
    return {int(point[0]): Fraction(int(weight), 1 << law.bits) for point, weight in zip(law.points, row, strict=True)}


def histories(setting, position, steps):
    """Every sequence of answers with the plan of each of its steps."""
    if not steps:
        yield ()
        return
    plan = setting.plan(position)
    possible = {z for state in plan.constraint.plan_states.tolist() for z in law_of(plan, state)}
    for z in sorted(possible):
        answer = np.array([z])
        if not (plan.still_possible(answer) & position.prior.support).any():
            continue
        after = position.predict(setting.model, position.condition(plan, answer))
        for rest in histories(setting, after, steps - 1):
            yield ((plan, z), *rest)


def probability(path, history):
    return math.prod(law_of(plan, state).get(z, Fraction(0)) for state, (plan, z) in zip(path, history, strict=True))


def neighbours(policy, a, b):
    return a == b or b in policy.neighbors(a).tolist()


@pytest.mark.parametrize("constraint", ["support", "delta=0.25"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("epsilon", ["1/2", "2"])
def test_all_paths_that_the_policy_joins_keep_the_sum_whatever_is_named(policy, constraint, epsilon):
    """Two steps; the plans of the second hang on the answer of the first."""
    model, graph, space = world(policy)
    setting = Setting.of(model, graph, space, Fraction(epsilon), constraint=constraint)
    paths = [
        path for path in itertools.product(range(4), repeat=2) if START[path[0]] > 0 and MATRIX[path[0], path[1]] > 0
    ]
    found = list(histories(setting, setting.first(), 2))
    laws = {path: [probability(path, history) for history in found] for path in paths}
    assert [law for law in laws.values() if sum(law) != 1] == []
    for one, other in itertools.combinations(paths, 2):
        if all(neighbours(graph, a, b) for a, b in zip(one, other, strict=True)):
            apart = sum(a != b for a, b in zip(one, other, strict=True))
            bound = e_above(apart * Fraction(epsilon))
            assert all(p <= bound * q and q <= bound * p for p, q in zip(laws[one], laws[other], strict=True)), (
                one,
                other,
            )


@pytest.mark.parametrize("policy", POLICIES)
def test_every_label_can_be_named_whatever_is_true(policy):
    model, graph, space = world(policy)
    plan = Setting.of(model, graph, space, 1).first_plan()
    assert all(set(law_of(plan, state)) == {0, 1, 2, 3} and min(law_of(plan, state).values()) > 0 for state in range(4))
    assert plan.cost < math.inf
    assert not verify(plan, graph, space).convicted


def test_categories_are_not_told():
    model, graph, space = world("categories")
    whole = Setting.of(model, graph, space, 1).first_plan()
    everyone = Setting.of(model, complete(4), space, 1).first_plan()
    assert [law_of(whole, s) for s in range(4)] == [law_of(everyone, s) for s in range(4)]


def test_two_queries_of_a_step_lose_the_sum():
    """A label that no edge hides has one partner in both."""
    model, graph, space = world("one alone")
    ledger, bits = MemoryLedger(), ReplayBits(b"two queries")
    plans = []
    for query in ("first", "second"):
        session = dphmm.ReleaseSession(model, graph, space, 1, ledger=ledger, subject="a", query=query, bits=bits)
        plans.append(session.plan)
        session.release(3, t=1)
    assert [plan.partners.tolist() for plan in plans] == [[[3, 0]], []]
    assert plans[1].joint_edges.tolist() == [[3, 0]]
    bound = e_above(2)
    for z in itertools.product(range(4), repeat=2):
        for a, b in [(0, 1), (1, 2), (0, 3)]:
            p, q = (math.prod(law_of(plan, s)[one] for plan, one in zip(plans, z, strict=True)) for s in (a, b))
            assert p <= bound * q and q <= bound * p


@pytest.mark.parametrize(
    ("policy", "planned", "expected"),
    [
        ("line", [0, 3], [0, 0, 3, 3]),
        ("line", [1], [1, 1, 1, 1]),
        ("complete", [1, 3], [1, 1, 1, 3]),
        ("one alone", [1, 2], [1, 1, 2, 1]),
        ("categories", [1, 3], [1, 1, 3, 3]),
    ],
)
def test_surrogates_are_nearest_by_edges_and_not_by_number(policy, planned, expected):
    model, graph, space = world(policy)
    planner = Setting.of(model, graph, space, 1, constraint="delta=0.25").planner
    plan_set = np.isin(np.arange(4), planned)
    plan = planner.plan(np.ones(4, dtype=np.bool_), plan_set)
    assert plan.constraint.surrogate.tolist() == expected


def released(policy="complete", users=3, steps=4, **choices):
    model, graph, space = world(policy)
    generator = np.random.default_rng(7)
    rows = [(f"u{user}", step, NAMES[generator.integers(4)]) for user in range(users) for step in range(1, steps + 1)]
    table = pd.DataFrame(rows, columns=["user", "step", "state"])
    bits = ReplayBits(b"labels released")
    return dphmm.release_many(table, model, graph, space, 1, bits=bits, progress=False, **choices), (
        model,
        graph,
        space,
    )


def weights_of(table, setting, user):
    """Pr(answers, path) of every path of a user's steps, from the laws of plans on the support."""
    rows = table[table.user == user].sort_values("step")
    plan = setting.first_plan()
    laws = np.array([[float(law_of(plan, s)[z]) for z in range(4)] for s in range(4)])
    z = [NAMES.index(label) for label in rows.z]
    found = {}
    for path in itertools.product(range(4), repeat=len(z)):
        p = START[path[0]] * math.prod(MATRIX[a, b] for a, b in itertools.pairwise(path))
        found[path] = p * math.prod(laws[s, label] for s, label in zip(path, z, strict=True))
    return rows, found


@pytest.mark.parametrize("policy", ["complete", "line"])
def test_smoothing_is_sums_over_all_paths(policy):
    table, public = released(policy)
    assert list(table.columns) == ["user", "step", "z", "epsilon", "cost", "plan"]
    setting = Setting.of(*public, 1)
    smoothed = dphmm.reconstruction.smooth(table, *public, path=True, progress=False)
    assert list(smoothed.columns) == ["user", "step", "smoothed", "probability", "path"]
    for user in ("u0", "u1", "u2"):
        rows, weights = weights_of(table, setting, user)
        later = smoothed[smoothed.user == user]
        total = sum(weights.values())
        likeliest = max(weights, key=weights.get)
        for step, (_, after) in enumerate(zip(rows.itertuples(), later.itertuples(), strict=True)):
            then = np.zeros(4)
            for path, weight in weights.items():
                then[path[step]] += weight / total
            assert NAMES[int(then.argmax())] == after.smoothed
            assert after.probability == pytest.approx(then.max(), rel=1e-9)
            assert NAMES[likeliest[step]] == after.path


def test_a_session_says_names_and_how_sure():
    model, graph, space = world()
    ledger = MemoryLedger()
    session = dphmm.ReleaseSession(model, graph, space, 1, ledger=ledger, subject="a", bits=ReplayBits(b"a session"))
    release = session.release("sport")
    guess = session.estimate("euclidean")
    assert release.z in NAMES and guess.answer in NAMES and release.z_lattice.tolist() == [NAMES.index(release.z)]
    assert guess.answer == NAMES[guess.state] and 0.25 < guess.probability <= 1
    assert guess.probability == pytest.approx(session.posterior.probability.max(), rel=1e-12)
    again = dphmm.ReleaseSession.resume(ledger, "a", model, graph, space)
    assert again.releases[0].z == release.z and again.estimate() == guess


def test_rows_that_were_not_asked_have_no_label():
    promise = dphmm.SequencePromise(2, steps=4)
    schedule = dphmm.accounting.Schedule(promise, "1", (1, 3))
    model, graph, space = world()
    rows = pd.DataFrame([("a", step, "news") for step in range(1, 5)], columns=["user", "step", "state"])
    bits = ReplayBits(b"schedule")
    table = dphmm.release_many(rows, model, graph, space, schedule=schedule, bits=bits, progress=False)
    assert table.z.notna().tolist() == [True, False, True, False]
    assert table.plan.notna().tolist() == [True, False, True, False]
    told = dphmm.reconstruction.smooth(table, model, graph, space, progress=False)
    assert told.smoothed.isin(NAMES).all()


@pytest.mark.parametrize("mechanism", ["staircase", "discrete-knorm", "optimal-table"])
def test_no_noise_is_added_to_names(mechanism):
    with pytest.raises(InvalidInput, match=f"mechanism: got {mechanism}; expected auto or hops: the answers are names"):
        dphmm.ReleaseSession(*world(), 1, mechanism=mechanism)


def test_policies_of_distances_are_refused():
    _, _, space = world()
    for make in (lambda: dphmm.policy.radius(space, 1), lambda: dphmm.policy.knn(space, 1)):
        with pytest.raises(InvalidInput, match=r"space: got labels, which have no distances; expected policy.complete"):
            make()


def test_an_audit_passes_what_was_released_and_convicts_what_was_changed():
    ledger = MemoryLedger()
    table, (model, graph, space) = released(ledger=ledger)
    given = {"ledger": ledger}

    def kinds(changed):
        found = check_release(changed, model, graph, space, 1, **given)
        return set(found.findings)

    assert kinds(table) == set()

    def with_cell(column, value):
        changed = table.copy()
        changed.loc[1, column] = value
        return kinds(changed)

    other = next(name for name in NAMES if name != table.z[1])
    assert "ledger: not those of" in str(with_cell("z", other))
    assert "columns that no release has" in str(with_cell("estimate", NAMES[0]))
    assert "answers: not one of the labels" in str(with_cell("z", "home"))


def test_smoothing_refuses_what_is_no_label():
    table, public = released()
    table.loc[0, "z"] = "home"
    with pytest.raises(InvalidInput, match=r"z: got 1 cells that cannot be read"):
        dphmm.reconstruction.smooth(table, *public, progress=False)


def test_errors_are_shares_of_wrong_labels():
    _, _, space = world()
    assert space.distances([[0.0], [1.0], [2.0]], [[0.0], [2.0], [2.0]]).tolist() == [0.0, 1.0, 0.0]
    plan = Setting.of(*world(), 1).first_plan()
    assert plan.expected_error == pytest.approx(3 / (math.e + 3), abs=1e-8)


def test_a_partner_of_a_lonely_label_may_be_named():
    model, graph, space = world("one alone")
    session = dphmm.ReleaseSession(model, graph, space, 1, varies=["partners"], bits=ReplayBits(b"partner"))
    session.release("mail", partners={"mail": "sport"})
    assert session.setting.plan(session.setting.first()).joins.tolist() == [[3, 0]]
