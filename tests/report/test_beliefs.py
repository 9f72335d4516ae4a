"""What a reader believes, as sets of cells: against sets found by brute force, and an encoding that comes back.

Fails for a set that holds too little, or more cells than it needs; for a run that is read as another one; for a side
of the outline that two cells share.
"""

from __future__ import annotations

import re
from itertools import combinations

import numpy as np
import pytest

import dphmm
from dphmm.choose.planning import error_of_known_states
from dphmm.choose.simulated import Guesses, places_of_states
from dphmm.report.beliefs import MOST_CELLS, SHARES, DrawnCells, bands, levels, spreads, written

GRID = dphmm.Grid.from_bounds(0.0, 0.0, 0.02, 0.02, cell=300.0)


@pytest.mark.parametrize("seed", range(6))
def test_sets_are_the_smallest_that_hold_their_share(seed):
    weights = np.random.default_rng(seed).dirichlet(np.full(7, 0.5))
    found = levels(weights[None])[0]
    for level, share in enumerate(SHARES, start=1):
        inside = np.flatnonzero(found >= level)
        assert weights[inside].sum() >= share - 1e-8
        for smaller in combinations(range(7), len(inside) - 1):
            assert weights[list(smaller)].sum() < share


def test_a_certain_belief_is_one_cell_and_an_even_one_goes_by_number():
    assert levels(np.eye(4)[[2]]).tolist() == [[0, 0, 3, 0]]
    assert levels(np.full((1, 4), 0.25)).tolist() == [[3, 3, 2, 2]]


def read(text, n):
    """The levels of n cells, from runs as `written` has them."""
    runs = re.findall(r"([.\-+=])([0-9a-z]*)", text)
    found = [level for mark, length in runs for level in [".-+=".index(mark)] * int(length or "1", 36)]
    return np.array(found + [0] * (n - len(found)))


def test_levels_are_written_and_read():
    rng = np.random.default_rng(3)
    for _ in range(50):
        row = np.repeat(rng.integers(0, 4, 30), rng.integers(1, 80, 30)).astype(np.uint8)
        text = written(row)
        assert read(text, len(row)).tolist() == row.tolist()
        assert set(text) <= set(".-+=0123456789abcdefghijklmnopqrstuvwxyz")
    assert (
        written(np.zeros(9, dtype=np.uint8)) == "" and written(np.array([0, 0, 1, 1, 1, 3], dtype=np.uint8)) == ".2-3="
    )


def test_cells_of_a_grid_are_its_own_and_are_joined_where_there_are_too_many():
    cells = DrawnCells.of_space(GRID)
    assert len(cells) == GRID.n_states and cells.joined == 1
    for state in range(GRID.n_states):
        assert cells.rings[cells.of[state]].mean(axis=0) == pytest.approx(GRID.answers[state])
    fine = dphmm.Grid.from_bounds(0.0, 0.0, 0.02, 0.02, cell=30.0)
    joined = DrawnCells.of_space(fine)
    assert fine.n_states > MOST_CELLS >= len(joined) and joined.joined == 2 and joined.side == 60.0
    weights = np.random.default_rng(1).dirichlet(np.ones(fine.n_states), 2)
    whole = joined.gathered(weights)
    assert whole.sum(axis=1) == pytest.approx([1, 1])
    by_hand = np.zeros(len(joined))
    for state, weight in enumerate(weights[0]):
        by_hand[joined.of[state]] += weight
    assert whole[0] == pytest.approx(by_hand)
    # Four small cells lie in the large one that has their numbers.
    for state in (0, fine.n_states // 2, fine.n_states - 1):
        corners = joined.rings[joined.of[state]]
        assert (corners.min(axis=0) < fine.answers[state]).all() and (fine.answers[state] < corners.max(axis=0)).all()


def test_the_outline_has_the_sides_of_one_cell_alone():
    cells = DrawnCells.of_space(GRID)
    across = cells.columns
    square = np.array([0, 1, across, across + 1])
    sides = cells.outline(square)
    assert len(sides) == 8 and sum(float(np.linalg.norm(a - b)) for a, b in sides) == pytest.approx(8 * 300)
    assert len(cells.outline(np.array([0, across + 1]))) == 8
    assert cells.outline(np.array([], dtype=np.int64)) == []


def test_hexagons_share_sides_too():
    space = dphmm.states.H3.covering(*np.meshgrid(np.linspace(50, 50.03, 8), np.linspace(10, 10.05, 8)), resolution=8)
    cells = DrawnCells.of_space(space)
    whole = cells.outline(np.arange(len(cells)))
    alone = sum(len(cells.outline(np.array([cell]))) for cell in range(len(cells)))
    assert len(cells) > 6 and len(whole) < alone - 2 * len(cells)


def test_zones_are_drawn_with_their_outlines():
    """A ring, what lies within it, two islands, and a coast of 60,000 corners."""
    shapely = pytest.importorskip("shapely")
    whole, middle = shapely.box(10, 50, 10.1, 50.1), shapely.box(10.04, 50.04, 10.06, 50.06)
    islands = shapely.MultiPolygon([shapely.box(10.2, 50, 10.22, 50.02), shapely.box(10.2, 50.05, 10.21, 50.06)])
    turn = np.linspace(0, 2 * np.pi, 60_000, endpoint=False)
    coast = shapely.Polygon(np.column_stack([10.4 + 0.05 * np.cos(turn), 50.05 + 0.05 * np.sin(turn)]))
    zones = dphmm.states.Zones(
        ["ring", "middle", "islands", "coast"], [whole.difference(middle), middle, islands, coast]
    )
    cells = DrawnCells.of_space(zones)
    assert sum(map(len, cells.rings)) < 1_000
    there = zones.draw(np.repeat(np.arange(4), 300), np.random.default_rng(2)).reshape(4, 300, 2)
    for state, ring in enumerate(cells.rings):
        # By the even-odd rule, as lines of no width leave nothing inside.
        inside = [
            [shapely.Polygon(ring).buffer(0).contains(shapely.Point(place)) for place in places] for places in there
        ]
        for other, share in enumerate(np.mean(inside, axis=1)):
            assert share > 0.98 if other == state else share < 0.02, (state, other)
    sides = cells.outline(np.array([0]))
    assert sum(float(np.hypot(*(a - b))) > 1 for a, b in sides) == 8
    assert cells.outline(np.array([2]))[0][0].shape == (2,)


def test_more_islands_than_corners_are_drawn_all_the_same(monkeypatch):
    """Every ring keeps some corners, however coarse the outline is."""
    shapely = pytest.importorskip("shapely")
    monkeypatch.setattr("dphmm.states.zones._MOST_CORNERS", 10)
    islands = shapely.MultiPolygon([shapely.box(10 + k, 50, 10.5 + k, 50.5) for k in range(8)])
    zones = dphmm.states.Zones(["islands", "other"], [islands, shapely.box(10, 51, 11, 52)])
    assert len(DrawnCells.of_space(zones).outline(np.array([0]))) >= 8 * 3


@pytest.mark.slow
def test_the_spread_is_the_expected_distance():
    weights = np.random.default_rng(2).dirichlet(np.ones(GRID.n_states), 3)
    means, there = weights @ GRID.answers, places_of_states(GRID)
    for row, found in enumerate(spreads(GRID, there, weights, means)):
        apart = [np.mean([float(GRID.distances(place, means[row])) for place in cell]) for cell in there]
        # Middles and widths stand for cells that are far off, and one scale of the map for near ones.
        assert found == pytest.approx(float(weights[row] @ apart), rel=2e-4)


def test_who_knows_the_cell_does_not_know_the_place_in_it():
    known = np.eye(GRID.n_states)
    found = spreads(GRID, places_of_states(GRID), known, Guesses(GRID).points)
    # A square's mean distance from its centre is 0.3826 of its side; cells at the edge reach beyond the box.
    inside = np.arange(GRID.n_states).reshape(GRID.rows, GRID.columns)[1:-1, 1:-1].ravel()
    assert found[inside].mean() == pytest.approx(0.3826 * GRID.cell, rel=0.02)
    assert error_of_known_states(GRID) == pytest.approx(found.mean(), rel=0.02)


def test_labels_have_no_places():
    assert places_of_states(dphmm.StateSpace.labels(["a", "b"])).shape == (2, 1, 1)


def test_bands_reach_from_the_least_to_the_largest_answer_of_a_set():
    answers = np.array([5.0, 1.0, 3.0, 9.0])
    found = bands(answers, np.array([[1, 3, 2, 0], [3, 3, 3, 3]], dtype=np.uint8))
    assert found.tolist() == [[[1, 5], [1, 3], [1, 1]], [[1, 9], [1, 9], [1, 9]]]


def test_all_zones_are_under_every_map(tmp_path):
    """Also those in which nobody is believed to be; lines that join the parts of a zone are not drawn."""
    shapely = pytest.importorskip("shapely")
    from commands import write_rows
    from dphmm.report import maps
    from dphmm.report.page import page
    from report.worlds import released

    ring = shapely.box(10, 50, 10.03, 50.03).difference(shapely.box(10.01, 50.01, 10.02, 50.02))
    zones = dphmm.states.Zones(["ring", "far"], [ring, shapely.box(10.2, 50, 10.21, 50.01)])
    model = dphmm.MarkovModel([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], space=zones)
    dphmm.storage.save_model(model, tmp_path / "model.npz")
    policy = dphmm.policy.complete(2)
    dphmm.storage.save_policy(policy, tmp_path / "policy.json", zones)
    write_rows(tmp_path / "walks.csv", ["user", "step", "state"], [["ann", 1, "ring"], ["ann", 2, "ring"]])
    released(tmp_path, smoothed=False)
    found = dphmm.report.read_report(tmp_path / "released" / "released.parquet", model, policy)
    assert found.cells.rings == zones.rings
    drawn = str(maps.shapes_below(found))
    assert drawn.count('class="zone"') == 2 and drawn.count("M") == 8 + 4
    assert page(found).count('href="#backdrop"') >= 1
    # Half of those who stay are in the large zone: both means are of places in zones.
    there = np.concatenate([zones.draw(np.full(4_000, state), np.random.default_rng(state)) for state in (0, 1)])
    middles = there.reshape(2, 4_000, 2).mean(axis=1)
    apart = zones.distances(np.repeat(middles, 4_000, axis=0), there)
    assert found.found.known == pytest.approx(apart.mean(), rel=0.03) and found.found.state == "zone"


def test_where_the_model_has_some_cells_of_a_grid_their_outline_is_drawn():
    """Of three cells around a corner: eight sides. Of all cells of a box, none: it has a frame."""
    from dphmm.report.maps import _edge

    grid = dphmm.Grid(10.0, 50.0, 10.1, 50.06, 1000)
    assert grid.columns == 8
    some = DrawnCells.of_space(grid.subset(np.array([0, 1, 9])))
    assert len(_edge(some)) == 8 and _edge(DrawnCells.of_space(grid)) == []
    sides = {
        frozenset(map(tuple, np.round((np.array(side) - some.low) / some.side).astype(int))) for side in _edge(some)
    }
    assert frozenset([(1, 0), (1, 1)]) not in sides and frozenset([(1, 1), (1, 2)]) in sides
    # An outline of too many sides hides the map.
    every_second = grid.subset(np.arange(0, grid.n_states, 2))
    fine = dphmm.Grid(10.0, 50.0, 10.4, 50.3, 1000)
    assert _edge(DrawnCells.of_space(every_second)) and not _edge(
        DrawnCells.of_space(fine.subset(np.arange(0, fine.n_states, 2)))
    )
