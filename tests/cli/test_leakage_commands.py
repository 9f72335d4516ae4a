"""Leakage of whole sequences on the command line: account --temporal, plan --details --steps.

Claims: `account` prints what the library computes from the costs, the skips, the queries and the plans of the very
releases that a ledger holds, also where plans hang on answers; `plan --details` does so for plans to come, and
refuses where these hang on answers. Fails where a skip, a query, the start of the model or a plan is another one than
was released.
"""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from commands import set_in
from dphmm.accounting import losses_per_step, policy_leakage, temporal_leakage


@pytest.fixture(scope="module")
def parts(town):
    """Model, policy, space."""
    model = dphmm.storage.load_model(town / "model.npz")
    return model, dphmm.storage.load_policy(town / "radius.json", model=model), model.space


def released(parts, path, subject="ann", states=(0, 1, None, 5, 6), query="state", **choices):
    """Releases of one subject in a ledger file, None for a skipped step; their plans, None for a skip."""
    with dphmm.open_ledger(path) as ledger:
        session = dphmm.ReleaseSession(*parts, epsilon=0.5, subject=subject, query=query, ledger=ledger, **choices)
        plans = []
        for state in states:
            plans.append(None if state is None else session.plan)
            session.skip() if state is None else session.release(state)
    return plans


def told(run, town, path, *more, model="model.npz"):
    command = ("account", path, "--temporal", "--model", town / model, "--json", *more)
    return json.loads(run(*command).stdout)["leakage"]["subjects"]


@pytest.mark.parametrize("choices", [{}, {"start": "at"}, {"constraint": "delta=0.2"}], ids=str)
def test_account_tells_what_the_library_computes_of_the_same_releases(parts, town, tmp_path, run, choices):
    path = tmp_path / "ledger.db"
    plans = released(parts, path, **choices)
    (found,) = told(run, town, path, "--policy", town / "radius.json")
    model, policy, _ = parts
    model = dphmm.MarkovModel(model.initial, model.transition, start=choices.get("start", model.start))
    with dphmm.open_ledger(path) as ledger:
        losses = losses_per_step(ledger.entries("ann", "state"))
    assert losses[2] == 0 and (losses[[0, 1, 3, 4]] > 0).all()
    expected = temporal_leakage(model, losses)
    for name in ("backward", "forward", "total"):
        assert found["temporal"][name] == getattr(expected, name).tolist()
    assert found["temporal"]["supremum"] == (expected.supremum if np.isfinite(expected.supremum) else None)
    edges = policy_leakage(model, plans, policy)
    assert found["policy"]["worst"] == edges.worst
    assert found["policy"]["total"] == [float(np.nanmax(total)) for total in edges.total]
    pairs = dphmm.accounting.couplable(model, policy, 5)
    expected = (pairs.holds, pairs.hops if np.isfinite(pairs.hops) else None)
    assert (found["couplable"]["holds"], found["couplable"]["hops"]) == expected


@pytest.mark.parametrize(
    ("most", "said"),
    [(1, "so the policy leakage is at most the sum"), (3, "the sum of epsilons is no bound for states")],
)
def test_account_says_whether_the_sum_of_epsilons_bounds_states_too(tmp_path, run, most, said):
    n = 9
    moves = np.zeros((n, n))
    for at in range(n):
        for move in (-most, 0, most):
            moves[at, at + move if 0 <= at + move < n else at] += 1 / 3
    space = dphmm.StateSpace(np.arange(n).reshape(-1, 1))
    model = dphmm.MarkovModel(np.full(n, 1 / n), moves, space=space, start="at")
    dphmm.storage.save_model(model, tmp_path / "m.npz")
    dphmm.storage.save_policy(dphmm.policy.radius(space, 1), tmp_path / "p.json", space)
    released((model, dphmm.policy.radius(space, 1), space), tmp_path / "l.db", states=(0, 1, 2))
    given = ("--temporal", "--model", tmp_path / "m.npz", "--policy", tmp_path / "p.json")
    text = run("account", tmp_path / "l.db", *given).stdout
    assert said in text and "docs/proofs/couplings.md" in text
    (found,) = told(run, tmp_path, tmp_path / "l.db", "--policy", tmp_path / "p.json", model="m.npz")
    assert found["couplable"] == {"holds": most == 1, "hops": {1: 1.0, 3: 2.0}[most]}
    assert (found["policy"]["worst"] <= 3 * 0.5 + 1e-9) is (most == 1)


def test_several_queries_of_a_step_add_up(parts, town, tmp_path, run):
    path = tmp_path / "ledger.db"
    once = tmp_path / "once.db"
    for query in ("state", "again"):
        released(parts, path, states=(0, 1, 2), query=query)
    plans = released(parts, once, states=(0, 1, 2))
    (found,) = told(run, town, path, "--policy", town / "radius.json")
    with dphmm.open_ledger(once) as ledger:
        losses = losses_per_step(ledger.entries("ann", "state"))
    assert found["temporal"]["cost"] == pytest.approx(2 * losses, rel=1e-12)
    n = parts[0].n_states
    i, j = np.divmod(np.arange(n * n), n)
    from dphmm.accounting.edge_leakage import losses_between

    doubled = [2 * losses_between(plan, i, j, n).reshape(n, n) for plan in plans]
    assert found["policy"]["worst"] == pytest.approx(policy_leakage(parts[0], doubled, parts[1]).worst, rel=1e-9)


def test_account_for_people_has_a_line_for_every_step_and_says_what_it_is(parts, town, tmp_path, run):
    path = tmp_path / "ledger.db"
    released(parts, path)
    released(parts, path, subject="bob", states=(3,))
    command = ("account", path, "--temporal", "--model", town / "model.npz", "--policy", town / "radius.json")
    totals = run(*command).stdout
    assert "step 5" not in totals and "at any step of any of 2 subjects" in totals
    assert totals.index("2 subjects, 5 releases") < totals.index("of any of 2 subjects")
    text = run(*command, "--subject", "ann").stdout
    for word in ("step 5", "backward", "forward", "total", "however long it goes on", "policy edges", "docs/proofs/"):
        assert word in text
    one = run("account", path, "--temporal", "--model", town / "model.npz", "--subject", "bob").stdout
    assert "step 2" not in one and "policy edges" not in one


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["l.db", "--temporal"], "--temporal: got no ledger, or no --model"),
        (["--temporal", "--model", "model.npz"], "--temporal: got no ledger"),
        (["l.db", "--model", "model.npz", "--policy", "radius.json"], "--temporal with it"),
        (["l.db", "--temporal", "--model", "other.npz"], "--model: got another model"),
        (["l.db", "--temporal", "--model", "model.npz", "--policy", "complete.json"], "--policy: got another policy"),
    ],
)
def test_account_refuses_what_the_releases_were_not_made_with(parts, town, tmp_path, run, options, expected):
    released(parts, tmp_path / "l.db", states=(0,))
    model = dphmm.MarkovModel(parts[0].initial, np.eye(parts[0].n_states), space=parts[2])
    dphmm.storage.save_model(model, tmp_path / "other.npz")
    places = {"l.db": tmp_path, "other.npz": tmp_path}
    words = [str(places.get(word, town) / word) if "." in word else word for word in options]
    told = run("account", *words, code=2)
    assert told.stderr.count("\n") == 1 and told.stdout == ""
    assert expected in told.stderr


def test_details_tell_what_releases_to_come_lose(parts, town, run):
    command = (
        "plan",
        "--details",
        town / "model.npz",
        "--policy",
        town / "radius.json",
        "--epsilon",
        "0.5",
        "--steps",
        "4",
    )
    found = json.loads(run(*command, "--json").stdout)["over_time"]
    model, policy, space = parts
    plans, session = [], dphmm.ReleaseSession(model, policy, space, epsilon=0.5)
    for _ in range(4):
        plans.append(session.plan)
        session.skip()
    assert found["policy_leakage"] == policy_leakage(model, plans, policy).worst
    assert Fraction(found["epsilon_sum"]) == 2
    assert found["cost_sum"] == float(sum(plan.cost for plan in plans))
    text = run(*command).stdout
    assert "over time" in text and "policy leakage" in text


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--policy", "radius.json", "--steps", "0"], "--steps: got 0"),
        (["--steps", "3"], "--policy: got nothing"),
    ],
)
def test_details_refuse_what_is_not_known_yet(town, run, options, expected):
    words = [town / word if word.endswith(".json") else word for word in options]
    told = run("plan", "--details", town / "model.npz", *words, code=2)
    assert told.stderr.count("\n") == 1
    assert expected in told.stderr


def test_losses_over_time_need_plans_that_do_not_depend_on_answers(town, run):
    asked = ("plan", "--details", town / "model.npz", "--policy", town / "radius.json", "--steps", 3)
    told = run(*set_in(asked, constraint="delta=0.1"), code=2).stderr
    assert told.count("\n") == 1 and "plans that do not depend on answers" in told
