"""What a policy protects at the first step: of the plan that a release makes, and why there is none."""

from __future__ import annotations

import numpy as np
import pytest

import dphmm
from dphmm.choose.details import length_words, protection_facts
from dphmm.errors import InvalidInput, Unprotectable
from dphmm.session.planner import Planner
from dphmm.session.setting import Setting


def line(points):
    space = dphmm.StateSpace(np.array(points, dtype=float))
    n = len(points)
    return dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n), space=space), space


def test_figures_are_those_of_the_plan_that_is_made():
    model, space = line([[0], [1], [2], [3]])
    policy = dphmm.policy.radius(space, 1)
    told = protection_facts(model, policy, space, "0.5", mechanism="staircase")
    plan = Setting.of(model, policy, space, "0.5", mechanism="staircase").first_plan()
    assert told["release"]["plan"] == plan.hash and told["release"]["mechanism"] == "staircase"
    assert told["release"]["cost"] == float(plan.cost) and told["release"]["epsilon"] == "1/2"
    assert told["release"]["degree_of_protection"]["least"] == plan.degrees().min()
    assert told["policy"]["states_without_neighbour"] == 0 and "lonely_states" not in told


def test_a_refused_release_is_a_warning_and_has_no_figures(monkeypatch):
    def refused(*_):
        raise Unprotectable("protection: nothing hides a state")

    model, space = line([[0, 0], [1, 0], [2, 0]])
    with monkeypatch.context() as patched:
        patched.setattr(Planner, "plan", refused)
        told = protection_facts(model, dphmm.policy.complete(3), space, 1)
    assert "release" not in told and "promise" not in told
    assert any(warning.startswith("refused: ") for warning in told["warnings"])
    with pytest.raises(InvalidInput, match="mechanism"):
        protection_facts(model, dphmm.policy.complete(3), space, 1, mechanism="none")


def test_a_state_far_from_all_others_is_told_with_what_it_costs():
    model, space = line([[0], [1], [2], [50]])
    told = protection_facts(model, dphmm.policy.radius(space, 1), space, 1)
    assert told["policy"]["states_without_neighbour"] == 1
    lonely = told["lonely_states"]
    assert lonely["states"] == 1 and lonely["error_joined"] > lonely["error_merged"] > 0
    assert any("1 state without a neighbour" in warning for warning in told["warnings"])


def test_lengths_are_in_metres_on_a_map_alone():
    _, space = line([[0], [1]])
    grid = dphmm.Grid.from_bounds(10, 50, 10.05, 50.03, cell=1000)
    assert length_words(1499.6, space) == "1.5e+03"
    assert (length_words(1499.6, grid), length_words(340, grid)) == ("1.5 km", "340 m")
