"""A search recommends what reaches its targets, of settings that were tried as plans are.

Claims: the figures of a setting are those of the plan that it names; what is recommended reaches every target and
nothing that reaches them comes before it in the printed rule; no advice is recommended; of a miss the nearest is told.
Twins: the plan of each setting by itself, and a search over all rows for the rule.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.choose.planning import World
from dphmm.choose.search import Search, Targets, Tried, _coarser, candidates, tries, usual_radii
from dphmm.errors import InvalidInput


def search(settings, promise, targets, **options):
    return Search(targets, tuple(tries(settings, promise, targets, **options)))


MAP = dphmm.Grid(-74, 40, -73.93, 40.05, 250)
CITY = dphmm.Grid.from_bounds(13.30, 52.48, 13.36, 52.51, cell=500)
MODEL = dphmm.MarkovModel.from_geometry(CITY, "1h", "3km/h")
DAY = dphmm.SequencePromise(8, per="1d")
LABELS = dphmm.StateSpace.labels(["a", "b", "c", "d"])


def test_usual_radii_reach_neighbours_and_leave_somebody_out():
    grid = dphmm.Grid.from_bounds(10, 50, 10.1, 50.05, cell=340.0)
    radii = usual_radii(grid)
    first = dphmm.policy.radius(grid, radii[0])
    assert first.has_neighbor(None).all()
    assert radii[0] < 340 * math.sqrt(2)
    far = np.linalg.norm(np.ptp(grid.answers, axis=0))
    assert list(radii) == sorted(radii) and radii[-1] < far


def test_what_is_tried_are_distances_cells_and_the_policy_that_is_given():
    own = dphmm.policy.radius(CITY, covers="700m")
    tried = list(candidates(MODEL, CITY, own))
    assert tried[0].name == "the policy given" and tried[0].distance == dphmm.policy.covered_distance(own, CITY)
    distances = usual_radii(CITY)
    fine = [one for one in tried[1:] if one.cell is None]
    assert [one.distance for one in fine] == list(distances)
    wide = [one for one in tried if one.cell is not None]
    assert {one.cell for one in wide} == {1000.0}
    assert [one.distance for one in wide] == [each for each in distances if each >= 1000]
    for one in tried[1:]:
        covers = dphmm.policy.covered_distance(one.policy, one.space)
        assert covers >= one.distance and one.name == f"covers {one.distance:g}m"
        assert one.model.step == 3600 and one.model.jump.rate == MODEL.jump.rate
    # The policy that is given is not tried twice.
    twin = dphmm.policy.radius(CITY, covers=distances[0])
    assert len(list(candidates(MODEL, CITY, twin))) == len(tried) - 1
    chain = dphmm.MarkovModel(np.full(4, 0.25), np.full((4, 4), 0.25), space=LABELS)
    assert [one.name for one in candidates(chain, LABELS)] == ["complete"]


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
    lumped = _coarser(model, part, 3)
    number = [lumped.space.index_of(f"x{x // 3}y{y // 3}") for x, y in part.lattice.tolist()]
    assert min(number) >= 0 and lumped.space.cell == 750
    assert lumped.initial == pytest.approx(np.bincount(number, weights=occupancy))
    flows = np.zeros((lumped.n_states, lumped.n_states))
    np.add.at(flows, (np.repeat(number, n), np.tile(number, n)), (occupancy[:, None] * moves).ravel())
    share = np.bincount(number, weights=occupancy)
    known = share > 1e-6
    assert lumped.matrix.toarray()[known] == pytest.approx(flows[known] / share[known, None], abs=1e-6)


@pytest.fixture(scope="module")
def made():
    settings = [one for one in candidates(MODEL, CITY) if one.distance < 2000]
    return settings, search(settings, DAY, Targets(error=1200, stay=400), people=8)


def test_a_setting_has_the_figures_of_its_plan(made):
    settings, found = made
    assert len(found.tried) == 4 * len(settings)
    assert {tried.total for tried in found.tried} == {2, 4, 8, 16}
    for setting in settings:
        world = World(setting.model, setting.policy, setting.space, DAY, people=8)
        (tried,) = [t for t in found.tried if (t.policy, t.cell, t.total) == (setting.name, setting.cell, 8)]
        plan = world.plan(8)
        assert (tried.error, tried.epsilon, tried.releases) == (
            plan.expected_error,
            plan.schedule.exact,
            plan.schedule.releases,
        )
        assert tried.at_most == pytest.approx(plan.expected_error * (1 + plan.chance))
        assert tried.stay == next(stay.error for stay in plan.stays.found if stay.after == 7)
        assert tried.not_advised == world.not_advised(plan)


def test_answers_leave_the_doubt_that_is_asked_for(made):
    settings, _ = made
    found = search(settings[:1], DAY, Targets(doubt=4), people=4)
    # At least 1 in 4 doubt is an epsilon of at most log 3.
    assert found.best is not None and all(tried.epsilon <= math.log(3) for tried in found.tried)
    assert max(tried.epsilon for tried in search(settings[:1], DAY, Targets(error=1), people=4).tried) > math.log(3)


ROWS = [
    Tried(
        f"covers {distance}m", distance, None, Fraction(total), 4, Fraction(total, 4), error, error + 10, stay, reasons
    )
    for distance, total, error, stay, reasons in [
        (500, 4, 800.0, 300.0, ()),
        (1000, 8, 900.0, 500.0, ()),
        (1000, 4, 950.0, 600.0, ()),
        (1000, 2, 1200.0, 800.0, ()),
        (2000, 8, 700.0, 50.0, ("it tells where somebody is, to the cell",)),
        (2000, 16, 990.0, None, ()),
    ]
]


@pytest.mark.parametrize(
    ("targets", "chosen"),
    [
        (Targets(error=960), (1000, 4)),
        # The end of the interval must reach it.
        (Targets(error=955), (1000, 8)),
        (Targets(error=1000), (2000, 16)),
        (Targets(stay=550), (1000, 2)),
        (Targets(error=1000, stay=550), (1000, 4)),
        (Targets(doubt=3), (1000, 2)),
        (Targets(error=850), (500, 4)),
    ],
)
def test_the_rule_decides(targets, chosen):
    best = Search(targets, tuple(ROWS)).best
    assert (best.distance, best.total) == chosen
    for other in ROWS:
        reaches = not other.not_advised and targets.missed(other) == 0
        assert not reaches or (-best.distance, best.total) <= (-other.distance, other.total)


def test_out_of_reach_the_nearest_is_told():
    far = Search(Targets(error=100), tuple(ROWS))
    assert far.best is None and (far.nearest.distance, far.nearest.total) == (500, 4)
    assert Search(Targets(stay=10_000), tuple(ROWS)).nearest.stay == 800
    none = Search(Targets(error=1), tuple(replace(row, not_advised=("a reason",)) for row in ROWS))
    assert none.best is None and none.nearest.error == 700


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({}, "targets: got none"),
        ({"error": 0}, "target_error: got 0"),
        ({"stay": -3.0}, "target_stay: got -3.0"),
        ({"error": math.nan}, "target_error: got nan"),
        ({"doubt": 2}, "target_doubt: got 2; expected 3 to 1,000"),
    ],
)
def test_malformed_targets_are_one_line(wrong, told):
    with pytest.raises(InvalidInput, match=f"^{told}"):
        Targets(**wrong)


def test_a_policy_that_is_refused_is_left_out_and_where_all_are_the_search_is():
    settings = list(candidates(MODEL, CITY))[:1]
    one = settings[0]
    alone = one._replace(policy=dphmm.policy.from_edges([[0, 1]], CITY.n_states))
    choices = {"protection": "min-error"}
    tried = search([alone, one], DAY, Targets(error=1), people=3, choices=choices).tried
    assert {t.policy for t in tried} >= {one.name}
