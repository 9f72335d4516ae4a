"""What would help: each cause is told where it holds, and the figure beside its remedy is that of the setting it names.

Claims: a remedy's error is the expected error of the release that its words describe, worked out here from the setting
itself; causes that do not hold are not told; a coarser model has the occupancy of the finer one. It would fail for a
figure of another setting, a remedy that promises less without saying so, or one that is told though it does not help.
"""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

import dphmm
from dphmm.choose.lonely import expected_error, off_within
from dphmm.choose.remedies import coarser, remedies
from dphmm.errors import DphmmError
from dphmm.session.setting import Setting


def told(model, policy, space, epsilon, **choices):
    setting = Setting.of(model, policy, space, epsilon, **choices)
    try:
        plan = setting.first_plan()
    except DphmmError:
        plan = None
    return remedies(model, policy, space, setting.options, plan)


def error_of(model, policy, space, epsilon, **choices):
    return expected_error(Setting.of(model, policy, space, epsilon, **choices).first_plan(), space, model)


def only(found, word):
    (one,) = [remedy for remedy in found if word in remedy.remedy]
    return one


def even(space, stay=0.0):
    n = space.n_states
    return dphmm.MarkovModel(np.full(n, 1 / n), stay * np.eye(n) + (1 - stay) / n, space=space)


MAP = dphmm.Grid(-74, 40, -73.93, 40.05, 250)
STRONG = "one answer leaves less than 1 in 20 doubt"
CELL = "it tells where somebody is, to the cell"


def test_a_larger_epsilon_and_a_smaller_radius_where_an_answer_tells_nothing():
    model, policy = even(MAP), dphmm.policy.radius(MAP, 1500)
    found = told(model, policy, MAP, 1)
    larger, nearer = only(found, "--epsilon 4"), only(found, "a radius of 750 m")
    guess = math.sqrt(np.square(MAP.answers - MAP.answers.mean(axis=0)).sum(axis=1).mean())
    assert larger.before == pytest.approx(error_of(model, policy, MAP, 1)) and larger.before > guess
    assert f"{guess:.6g} m off without any" in larger.cause
    assert larger.after == pytest.approx(error_of(model, policy, MAP, 4)) and larger.after <= guess / 2
    assert error_of(model, policy, MAP, 2) > guess / 2, "the least that is enough"
    assert nearer.after == pytest.approx(error_of(model, dphmm.policy.radius(MAP, 750), MAP, 1))
    assert [one for one in (larger, nearer) if "promises less" not in one.remedy] == []
    assert told(model, policy, MAP, 8) == []
    assert larger.not_advised == (STRONG,) and nearer.not_advised == ()
    assert found.index(nearer) < found.index(larger), "what is advised comes first"


def test_what_tells_the_cell_is_no_advice():
    """An answer that hides nobody beyond the own cell errs by that cell."""
    cells = dphmm.Grid(-74, 40, -73.6, 40.3, 5000)
    model, policy = even(cells), dphmm.policy.complete(cells.n_states)
    marked = [one for one in told(model, policy, cells, 1) if one.not_advised]
    inside = off_within(cells)
    assert marked and all(
        (CELL in one.not_advised) == (math.hypot(one.after, inside) <= 1.1 * inside) for one in marked
    )


def test_a_wider_radius_where_nobody_has_a_neighbour():
    model, policy = even(MAP), dphmm.policy.radius(MAP, 100)
    found = told(model, policy, MAP, 1)
    wider = [one for one in found if "reaches most of them, and promises more" in one.remedy]
    for one in wider:
        length = float(re.search(r"a radius of ([0-9.]+) m", one.remedy)[1])
        assert one.after == pytest.approx(error_of(model, dphmm.policy.radius(MAP, length), MAP, 1))


def test_answering_lonely_states_as_their_nearest():
    rng = np.random.default_rng(1)
    space = dphmm.StateSpace(np.unique(rng.integers(0, 30, (80, 2)), axis=0))
    model, policy = even(space), dphmm.policy.radius(space, 3)
    one = only(told(model, policy, space, 1, protection="nearest"), "--protection auto")
    assert one.cause.startswith(f"{int((~policy.has_neighbor(None)).sum())} states without a neighbour are joined")
    assert one.before == pytest.approx(error_of(model, policy, space, 1, protection="nearest"))
    assert one.after == pytest.approx(error_of(model, policy, space, 1)) and one.after <= 0.9 * one.before
    assert not [one for one in told(model, policy, space, 1) if "--protection" in one.remedy]


def test_labels_for_names_that_are_answered_as_numbers():
    names = [f"activity {number}" for number in range(9)]
    space = dphmm.StateSpace(np.arange(9), names=names)
    model, policy = even(space), dphmm.policy.complete(9)
    one = only(told(model, policy, space, 1), "--answers labels")
    assert one.after == pytest.approx(1 - math.e / (math.e + 8), abs=1e-9)
    setting = Setting.of(model, policy, space, 1)
    plan, wrong = setting.first_plan(), 0
    draws = plan.mechanism.answer(np.repeat(plan.image, 4000, axis=0), dphmm.ReplayBits(3))[:, 0]
    named = np.clip(draws, 0, 8).reshape(9, 4000)
    wrong = float((named != np.arange(9)[:, None]).mean())
    # 36,000 draws: five standard errors are below .01.
    assert one.before == pytest.approx(wrong, abs=0.01)
    numbers = dphmm.StateSpace(np.arange(9), names=[str(number) for number in range(9)])
    assert not [one for one in told(even(numbers), policy, numbers, 1) if "labels" in one.remedy]
    labels = dphmm.StateSpace.labels(names)
    assert not [one for one in told(even(labels), policy, labels, 1) if "--answers" in one.remedy]


def test_fewer_and_stronger_answers_where_people_stay():
    space = dphmm.StateSpace(np.arange(60))
    policy = dphmm.policy.radius(space, 5)
    one = only(told(even(space, 0.9), policy, space, "0.5"), "one answer in")
    assert one.cause == "people stay for 10 steps on average"
    assert one.remedy.startswith("one answer in 5 steps at epsilon 2.5, the same total") and one.not_advised == ()
    assert one.after == pytest.approx(error_of(even(space, 0.9), policy, space, "2.5"))
    # Stronger answers than are advised are not advised here either.
    less = only(told(even(space, 0.9), policy, space, 1), "one answer in")
    assert less.remedy.startswith("one answer in 2 steps at epsilon 2, the same total") and less.not_advised == ()
    assert only(told(even(space, 0.9), policy, space, 2), "one answer in 2").not_advised == (STRONG,)
    assert not [one for one in told(even(space, 0.3), policy, space, 1) if "one answer in" in one.remedy]


def test_a_made_table_where_answers_are_few():
    block = dphmm.StateSpace([(x, y) for x in range(6) for y in range(6)])
    model, policy = even(block), dphmm.policy.radius(block, 1.5)
    one = only(told(model, policy, block, 1), "dphmm optimize")
    table = dphmm.optimize(model, policy, block, 1)
    assert one.after == pytest.approx(error_of(model, policy, block, 1, mechanism=table))


def test_all_cells_where_visited_ones_stand_alone():
    rng = np.random.default_rng(4)
    kept = np.union1d(np.arange(0, 60), rng.choice(np.arange(100, MAP.n_states), 25, replace=False))
    part = MAP.subset(kept)
    weights = np.where(kept < 60, 1.0, 0.01)
    n = part.n_states
    told_model = {"initial": "occupancy"}
    model = dphmm.MarkovModel(weights / weights.sum(), np.full((n, n), 1 / n), space=part, provenance=told_model)
    policy = dphmm.policy.radius(part, 260)
    one = only(told(model, policy, part, 1, protection="nearest"), "--all-cells")
    assert one.remedy == f"fit --all-cells: {MAP.n_states} states instead of {n}"
    everybody = np.full(MAP.n_states, 1e-6 / MAP.n_states)
    everybody[kept] += model.initial
    whole = dphmm.MarkovModel(
        everybody / everybody.sum(), np.eye(MAP.n_states), space=MAP, provenance=told_model, start="at"
    )
    again = dphmm.policy.radius(MAP, 260)
    assert one.after == pytest.approx(error_of(whole, again, MAP, 1, protection="nearest"), rel=1e-5)
    assert one.before == pytest.approx(error_of(model, policy, part, 1, protection="nearest"))


def test_a_coarser_grid_keeps_the_covered_distance_and_is_no_worse():
    """Single cells all over the map, which a fine grid leaves without neighbours: a coarse one has none such."""
    rng = np.random.default_rng(2)
    part = dphmm.Grid(-74, 40, -73.93, 40.05, 100).subset(np.sort(rng.choice(3300, 330, replace=False)))
    model, policy = even(part), dphmm.policy.radius(part, 300)
    found = [one for one in told(model, policy, part, "0.5") if "--grid" in one.remedy]
    for one in found:
        times = int(float(re.search(r"--grid ([0-9.]+)m", one.remedy)[1]) / 100)
        lumped, away = coarser(model, part, times)
        covers = float(re.search(r"--covers ([0-9.]+)m", one.remedy)[1])
        again = dphmm.policy.radius(lumped.space, covers=covers)
        assert one.after == pytest.approx(math.hypot(error_of(lumped, again, lumped.space, "0.5"), away))
        assert one.after <= 1.02 * one.before
    assert found, "this world is made for it"


def test_a_coarser_model_has_the_same_people():
    part = MAP.subset(np.arange(0, MAP.n_states, 3))
    n = part.n_states
    rng = np.random.default_rng(3)
    moves = rng.random((n, n)) * (rng.random((n, n)) < 0.05) + np.eye(n)
    moves /= moves.sum(axis=1, keepdims=True)
    occupancy = rng.random(n)
    occupancy[:5] = 0
    occupancy /= occupancy.sum()
    model = dphmm.MarkovModel(occupancy, moves, space=part, provenance={"initial": "occupancy"})
    lumped, away = coarser(model, part, 3)
    number = [lumped.space.index_of(f"x{x // 3}y{y // 3}") for x, y in part.lattice.tolist()]
    assert min(number) >= 0 and lumped.space.cell == 750
    assert lumped.initial == pytest.approx(np.bincount(number, weights=occupancy))
    flows = np.zeros((lumped.n_states, lumped.n_states))
    np.add.at(flows, (np.repeat(number, n), np.tile(number, n)), (occupancy[:, None] * moves).ravel())
    share = np.bincount(number, weights=occupancy)
    known = share > 1e-6
    assert lumped.matrix.toarray()[known] == pytest.approx(flows[known] / share[known, None], abs=1e-6)
    distance = np.square(part.answers - lumped.space.answers[number]).sum(axis=1)
    assert away == pytest.approx(math.sqrt(occupancy @ distance), rel=1e-6)


def test_nothing_helps_a_public_constant():
    space = dphmm.StateSpace([5, 5, 5])
    assert told(even(space), dphmm.policy.complete(3), space, 1) == []
