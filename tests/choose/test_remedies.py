"""What would help: each cause is told where it holds, and the figure beside its remedy is that of the setting it names.

Claims: a remedy's error is the expected error of the release that its words describe, worked out here from the setting
itself; causes that do not hold are not told. It would fail for a
figure of another setting, or one that is told though it does not help.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import dphmm
from dphmm.choose.lonely import expected_error, off_within
from dphmm.choose.remedies import remedies
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


def test_what_tells_the_cell_is_no_advice():
    """Where nearly everybody is in one cell, a table that is made for them names it."""
    cells = dphmm.Grid(-74, 40, -73.7, 40.2, 5000)
    law = np.full(cells.n_states, 1e-5)
    law[7] += 1 - law.sum()
    moves = np.full((cells.n_states, cells.n_states), 1 / cells.n_states)
    model = dphmm.MarkovModel(law, moves, space=cells, provenance={"initial": "occupancy"})
    (one,) = told(model, dphmm.policy.radius(cells, 5001), cells, 1)
    inside = off_within(cells)
    assert math.hypot(one.after, inside) <= 1.1 * inside and one.not_advised == (CELL,)
    (strong,) = told(even(cells), dphmm.policy.radius(cells, 5001), cells, 3)
    assert strong.not_advised == (STRONG,)


def test_answering_lonely_states_as_their_nearest():
    rng = np.random.default_rng(1)
    space = dphmm.StateSpace(np.unique(rng.integers(0, 30, (80, 2)), axis=0))
    model, policy = even(space), dphmm.policy.radius(space, 3)
    one = only(told(model, policy, space, 1, protection="nearest"), "dphmm policy ... --setting protection auto")
    assert one.cause.startswith(f"{int((~policy.has_neighbor(None)).sum())} states without a neighbour are joined")
    assert one.before == pytest.approx(error_of(model, policy, space, 1, protection="nearest"))
    assert one.after == pytest.approx(error_of(model, policy, space, 1)) and one.after <= 0.9 * one.before
    assert not [one for one in told(model, policy, space, 1) if "protection" in one.remedy]


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


def test_a_made_table_where_answers_are_few():
    block = dphmm.StateSpace([(x, y) for x in range(6) for y in range(6)])
    model, policy = even(block), dphmm.policy.radius(block, 1.5)
    one = only(told(model, policy, block, 1), "dphmm optimize")
    table = dphmm.choose.optimize(model, policy, block, 1)
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


def test_nothing_helps_a_public_constant():
    space = dphmm.StateSpace([5, 5, 5])
    assert told(even(space), dphmm.policy.complete(3), space, 1) == []
