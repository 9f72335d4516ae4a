"""dphmm plan --details: public facts, for people and for machines."""

from __future__ import annotations

import re

import pytest

import dphmm
from dphmm.reconstruction.aggregates import expected_errors
from dphmm.storage.models import load_model

HELP = "what would help, tried on the first step"


def test_a_model_alone(town, run, one_json):
    facts = one_json(run("plan", "--details", town / "model.npz", "--json"))
    assert set(facts) == {"space", "model"}
    assert facts["space"]["dimension"] == 2
    assert facts["space"]["pitch"] == [1000.0, 1000.0]
    assert facts["model"]["private"] is False
    assert facts["model"]["closed_classes"] == 1


def test_the_numbers_of_the_worked_example(tmp_path, run, one_json):
    # Example 5.1 of the DPHMM paper: area 11, errors 472/11 and 100, degrees 4,6,3,5,4,4, factor 2.
    from dphmm.markov.model import MarkovModel
    from dphmm.policy import from_edges
    from dphmm.states.space import StateSpace
    from dphmm.storage.models import save_model
    from dphmm.storage.policies import save_policy

    names = [f"s{i}" for i in range(1, 7)]
    space = StateSpace([[1, 0], [2, 1], [3, 0], [0, 1], [4, 2], [1, 2]], names)
    model = MarkovModel([1 / 6] * 6, [[1 / 6] * 6] * 6, space=space)
    save_model(model, tmp_path / "m.npz")
    save_policy(from_edges([[1, 2], [3, 4], [3, 5], [4, 5]], 6), tmp_path / "p.json", space)
    facts = one_json(run("plan", "--details", tmp_path / "m.npz", "--policy", tmp_path / "p.json", "--json"))
    release = facts["release"]
    assert release["volume"] == 11
    assert len(release["vertices"]) == 6
    assert release["degree_of_protection"] == {"least": 3, "median": 4.0, "most": 6}
    assert release["cost"] == 2
    assert list(release["expected_errors"]) == ["discrete-knorm", "staircase", "discrete-laplace"]
    assert release["expected_error"] == min(release["expected_errors"].values())
    assert facts["first_step"]["exposed_states"] == 0


def test_every_number_comes_with_what_it_means(town, run):
    text = run("plan", "--details", town / "model.npz", "--policy", town / "radius.json", "--epsilon", "0.5").stdout
    assert "exp(0.5)" in text
    assert "Theorem 6.3" in text
    assert "One noise distribution for all states" in text


def test_errors_come_with_what_they_are_and_their_unit(town, site, run, one_json):
    text = run("plan", "--details", town / "model.npz", "--policy", town / "radius.json").stdout
    error = one_json(run("plan", "--details", town / "model.npz", "--policy", town / "radius.json", "--json"))
    assert error["space"]["answer_unit"] == "m"
    lines = {line.split("  ")[1]: line for line in text.splitlines() if "root mean square" in line}
    assert lines["root mean square error"].endswith(f" {error['release']['expected_error']:.6g} m")
    each = lines["root mean square error of each"]
    assert each.count(" m,") + each.endswith(" m") == sum(
        error is not None for error in error["release"]["expected_errors"].values()
    )
    pages = run("plan", "--details", site / "model.npz", "--policy", site / "complete.json").stdout
    assert re.search(r"root mean square error +[0-9.]+ answer units\n", pages)
    assert "expected error" not in text + pages


def test_a_dry_run_says_the_same_of_errors(town, tmp_path, run, release_of):
    assert re.search(
        r"root mean square error [0-9.]+ m, epsilon 1", run(*release_of(town, tmp_path), "--dry-run").stdout
    )


def test_a_flat_policy_is_warned_of(town, tmp_path, run, one_json):
    space = load_model(town / "model.npz").space
    row = space.lattice[:, 1]
    rows = [f"{space.names[i]},{space.names[j]}" for i in range(16) for j in range(i) if row[i] == row[j]]
    (tmp_path / "g.csv").write_text("\n".join(rows) + "\n")
    policy = tmp_path / "flat.json"
    run("policy", "edges", town / "model.npz", "-o", policy, "--graph", tmp_path / "g.csv")
    facts = one_json(run("plan", "--details", town / "model.npz", "--policy", policy, "--json"))
    assert "flat" in facts["warnings"][0]
    assert facts["release"]["rank"] == 2


def test_options_about_a_policy_need_one(town, run):
    for option in (("--steps", 3), ("--by", "blocks", 30)):
        run("plan", "--details", town / "model.npz", *option, code=2)


def test_how_far_off_shares_will_be_is_known_before_a_release(town, run, one_json):
    """As `expected_errors` has it; of a thousand times the people a thirtieth."""
    asked = ("plan", "--details", town / "model.npz", "--policy", town / "radius.json", "--epsilon", 2)
    model = dphmm.storage.load_model(town / "model.npz")
    policy = dphmm.storage.load_policy(town / "radius.json", model.space)
    expected = expected_errors(model, policy, model.space, 2, 30)
    found = one_json(run(*asked, "--by", "blocks", 30, "--json"))["shares"]
    assert [one["off"] for one in found] == [one.standard_error for one in expected]
    (town / "half.csv").write_text("state,region\n" + "".join(f"{name},west\n" for name in model.space.names[:8]))
    few, many = (
        one_json(run(*asked, "--by", town / "half.csv", n, "--json"))["shares"][0]["off"] for n in (30, 30_000)
    )
    assert many == pytest.approx(few / 1000**0.5, rel=1e-6)
    told = run(*asked, "--by", town / "half.csv", 30).stdout
    assert "standard errors of shares, from one answer of each person\n" in told and f"west +- {few:.2%}" in " ".join(
        told.split()
    )


@pytest.mark.parametrize("json", [[], ["--json"]])
@pytest.mark.parametrize("constraint", ["support", "delta=0.3"])
def test_states_that_a_policy_leaves_exposed(town, tmp_path, run, constraint, json):
    policy = tmp_path / "tiny.json"
    setting = ("--setting", "constraint", constraint)
    run("policy", "radius", town / "model.npz", "-o", policy, "--radius", "10m", *setting)
    told = run("plan", "--details", town / "model.npz", "--policy", policy, *json)
    assert "exposed by the policy at the first step" in told.stderr
    assert ("exposed by the policy" in told.stdout) == bool(json)


def test_nothing_amiss_is_no_warning(town, run, one_json):
    result = run("plan", "--details", town / "model.npz", "--policy", town / "complete.json", "--json")
    assert one_json(result)["warnings"] == []
    assert result.stderr == ""


def test_what_is_no_advice_is_marked_and_nothing_helps_without_a_limit(town, run, one_json):
    asked = ("plan", "--details", town / "model.npz", "--policy", town / "radius.json")
    strong = "not advised: one answer leaves less than 1 in 20 doubt"
    weak = run(*asked, "--epsilon", 1)
    first, limit, search = weak.stdout.splitlines()[weak.stdout.splitlines().index(HELP) + 1 :]
    assert "dphmm optimize" in first and strong not in first
    assert search == "  other distances, cells, totals and numbers of answers: dphmm plan --target-error LENGTH"
    assert limit.startswith("  nothing limits the sum of all answers with any of it: dphmm plan") and weak.stderr == ""
    given = run(*asked, "--epsilon", 5)
    assert given.stderr == f"warning: {strong}\n" and "  none of it is advised; a smaller epsilon is" in given.stdout
    facts = one_json(run(*asked, "--epsilon", 5, "--json"))
    assert facts["warnings"] == [strong] and all(one["not_advised"] for one in facts["remedies"])


def test_every_state_by_number_name_answer_and_place(town, run, one_json):

    space = load_model(town / "model.npz").space
    states = one_json(run("plan", "--details", town / "model.npz", "--states", "--json"))["states"]
    assert [state["number"] for state in states] == list(range(space.n_states))
    assert [state["name"] for state in states] == list(space.names)
    assert [state["answer"] for state in states] == space.answers.tolist()
    assert [space.locate(state["lat"], state["lon"]) for state in states] == list(range(space.n_states))
    text = run("plan", "--details", town / "model.npz", "--states").stdout
    assert len([line for line in text.splitlines() if ", at 50.0" in line]) == space.n_states
    assert "states" not in one_json(run("plan", "--details", town / "model.npz", "--json"))


def test_absorbing_states_are_named(tmp_path, run, one_json):
    (tmp_path / "rows.csv").write_text("user,state\na,work\na,home\na,work\na,end\nb,home\nb,end\n")
    told = run("fit", tmp_path / "rows.csv", "-o", tmp_path / "m.npz", "--state-column", "state").stderr
    assert "1 absorbing state (end)" in told
    facts = one_json(run("plan", "--details", tmp_path / "m.npz", "--states", "--json"))
    assert any("1 absorbing state (end)" in note for note in facts["model"]["notes"])
    assert [(state["name"], state["absorbing"]) for state in facts["states"]] == [
        ("end", True),
        ("home", False),
        ("work", False),
    ]
    assert [state for state in facts["states"] if "lat" in state] == []
    assert "0 end" in run("plan", "--details", tmp_path / "m.npz", "--states").stdout


@pytest.mark.slow
def test_details_of_a_plan_are_those_of_its_epsilon_and_what_was_tried(town, run, one_json):
    asked = ("plan", town / "model.npz", "--policy", town / "radius.json")
    planned = (*asked, "--path-epsilon", 6, "--steps", 12, "--epsilon", 2, "--people", 4, "--details")
    document = one_json(run(*planned, "--json"))
    alone = one_json(run(*asked, "--details", "--epsilon", 2, "--json"))
    assert document["details"] == alone and document["plan"]["schedule"]["epsilon"] == "2"
    lines = run(*planned).stdout.splitlines()
    assert "tried for this total" in lines and any("3 x 2 (chosen)" in line and "4 people" in line for line in lines)
    # The total limits the sum of all answers.
    assert HELP in lines and not any("nothing limits" in line for line in lines)


@pytest.mark.parametrize("more", [("--per", "1d"), ("-o", "plan.json"), ("--window", 5), ("--hours", "7-21")])
def test_without_a_total_nothing_is_planned(town, run, more):
    told = run("plan", town / "model.npz", "--details", *more, code=2).stderr
    assert told.startswith(f"error: --path-epsilon: got nothing, beside {more[0] if more[0] != '-o' else '--output'}")
    told = run("plan", town / "model.npz", "--policy", town / "radius.json", code=2).stderr
    assert "--path-epsilon: got nothing; expected the total to plan for; or --details" in told
