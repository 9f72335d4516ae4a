"""Expected errors of plans, and what lonely states cost, against sums over all outputs.

It could fail by leaving out how far a state is from what it is answered as, by weights of impossible states, by
counting a state that hides with others, or by the cost of another protection than the one it names.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import logsumexp

import dphmm
from dphmm.choose.lonely import (
    cells_alone,
    expected_error,
    lonely_cost,
    moved_states,
    only_merged,
    shown_error,
    wrong_labels,
)
from dphmm.session import Options, Setting
from dphmm.states import Labels

PLACES = np.array([[0], [1], [2], [3], [9]])
MOVES = np.full((5, 5), 0.2)
OCCUPANCY = np.array([0.4, 0.2, 0.2, 0.1, 0.1])
SPACE = dphmm.StateSpace(PLACES)
MODEL = dphmm.MarkovModel(OCCUPANCY, MOVES, space=SPACE, provenance={"initial": "occupancy"})
NEAR = dphmm.policy.radius(SPACE, 1)
MERGED = dphmm.sensitivity.merge_lonely(NEAR, SPACE)


def by_outputs(plan, space, weights):
    """The root mean square distance of all outputs from the states themselves."""
    outputs = np.arange(-300, 301)
    logs = np.array([plan.log_likelihood(np.array([z])) for z in outputs])
    chances = np.exp(logs - logsumexp(logs, axis=0))
    squares = (space.frame.to_answers(outputs[:, None]) - space.own_answers[:, 0]) ** 2
    return math.sqrt(float((chances * squares).sum(axis=0) @ weights / weights.sum()))


@pytest.mark.parametrize("mechanism", ["discrete-knorm", "staircase"])
def test_the_expected_error_is_that_of_all_outputs(mechanism):
    joined = Setting.of(MODEL, NEAR, SPACE, 1, mechanism=mechanism, protection="nearest").first_plan()
    assert expected_error(joined, SPACE, MODEL) == pytest.approx(by_outputs(joined, SPACE, OCCUPANCY), rel=1e-9)
    assert shown_error(joined, SPACE, MODEL) == math.sqrt(joined.expected_error)
    merged = Setting.of(MODEL, MERGED.policy, MERGED.space, 1, mechanism=mechanism).first_plan()
    found = expected_error(merged, MERGED.space, MODEL)
    assert found == pytest.approx(by_outputs(merged, MERGED.space, OCCUPANCY), rel=1e-9)
    assert shown_error(merged, MERGED.space, MODEL) == found > math.sqrt(merged.expected_error)


def test_without_an_occupancy_states_count_alike():
    plain = dphmm.MarkovModel(OCCUPANCY, MOVES, space=SPACE)
    plan = Setting.of(plain, MERGED.policy, MERGED.space, 1).first_plan()
    assert expected_error(plan, MERGED.space, plain) == pytest.approx(
        by_outputs(plan, MERGED.space, np.ones(5)), rel=1e-9
    )
    assert moved_states(MERGED.space, MERGED.pairs, plain).share is None


def test_the_cost_is_that_of_joining_and_that_of_merging():
    options = Options.checked(1, mechanism="discrete-knorm")
    cost = lonely_cost(MODEL, NEAR, SPACE, options)
    assert cost.moved == moved_states(MERGED.space, MERGED.pairs, MODEL)
    assert (cost.moved.states, cost.moved.nearest, cost.moved.farthest) == (1, 6.0, 6.0)
    assert cost.moved.share == pytest.approx(0.1)
    joined = Setting.of(MODEL, NEAR, SPACE, 1, mechanism="discrete-knorm", protection="nearest").first_plan()
    merged = Setting.of(MODEL, MERGED.policy, MERGED.space, 1, mechanism="discrete-knorm").first_plan()
    assert cost.joined == pytest.approx(by_outputs(joined, SPACE, OCCUPANCY), rel=1e-9)
    assert cost.merged == pytest.approx(by_outputs(merged, MERGED.space, OCCUPANCY), rel=1e-9)
    assert cost.helps and cost.merged < cost.joined
    assert lonely_cost(MODEL, dphmm.policy.radius(SPACE, 6), SPACE, options) is None
    alone = dphmm.policy.from_edges([], 5)
    assert lonely_cost(MODEL, alone, SPACE, options) is None


def test_states_that_hide_with_nothing_but_their_own_merged_answer():
    """State 4 is answered as 3. With the edge from 2 to 3 gone, both hide with each other alone."""
    plan = Setting.of(MODEL, MERGED.policy, MERGED.space, 1).first_plan()
    assert only_merged(plan, MERGED.space) == 0
    policy = dphmm.policy.from_edges([(0, 1), (1, 2), (3, 4)], 5)
    cut = Setting.of(MODEL, policy, MERGED.space, 1, mechanism="optimal-table").first_plan()
    assert only_merged(cut, MERGED.space) == 2


def test_a_wrong_label_is_one_minus_its_own_chance():
    labels = Labels(["a", "b", "c"])
    model = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), space=labels)
    plan = Setting.of(model, dphmm.policy.complete(3), labels, math.log(2)).first_plan()
    wrong = wrong_labels(plan)
    assert wrong == pytest.approx(np.full(3, 0.5), abs=1e-3)
    assert expected_error(plan, labels, model) == pytest.approx(float(wrong.mean()))


def test_cells_without_a_neighbour():
    grid = dphmm.Grid.from_bounds(0.0, 0.0, 0.009, 0.009, cell=100)
    whole = grid.n_states
    assert len(cells_alone(grid)) == 0 and whole == grid.columns * grid.rows
    assert len(cells_alone(SPACE)) == 0, "states that are no cells"
    some = grid.subset(np.array([0, 1, whole - 1]))
    assert cells_alone(some).tolist() == [2]
