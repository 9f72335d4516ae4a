from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.states import Grid
from dphmm.states.maps import metres_per_degree

BEIJING = (116.28, 39.85, 116.48, 39.99)


def locate_plainly(grid, lat, lon):
    """One place, one cell at a time."""
    east = lon - grid.west
    while east < 0:
        east += 360
    while east >= 360:
        east -= 360
    width = (grid.east - grid.west) % 360 or 360
    if not (grid.south <= lat <= grid.north and east <= width):
        return -1
    north_metres, east_metres = metres_per_degree((grid.south + grid.north) / 2)
    column = min(math.floor(east * (east_metres / grid.cell)), grid.columns - 1)
    row = min(math.floor((lat - grid.south) * (north_metres / grid.cell)), grid.rows - 1)
    return grid.index_of(f"x{column}y{row}")


@pytest.mark.parametrize(
    "box",
    [BEIJING, (179.9, -17.1, -179.9, -16.9), (-180, -0.1, 180, 0.1), (10, 84.0, 11, 84.2), (-1, -1, 1, 1)],
)
def test_locating_agrees_with_a_plain_loop(box):
    grid = Grid.from_bounds(*box, cell=max(1000.0, ((box[2] - box[0]) % 360 or 360) * 300))
    part = grid.subset(np.arange(grid.n_states) % 3 > 0)
    rng = np.random.default_rng(3)
    west, south, east, north = box
    width = (east - west) % 360 or 360
    lat = rng.uniform(south - 0.05, north + 0.05, 400)
    lon = west + rng.uniform(-0.1, width + 0.1, 400)
    lon = np.where(rng.random(400) < 0.5, lon, (lon + 180) % 360 - 180)
    corners = [(south, west), (south, east), (north, west), (north, east)]
    lat, lon = np.append(lat, [c[0] for c in corners]), np.append(lon, [c[1] for c in corners])
    for space in (grid, part):
        assert space.locate(lat, lon).tolist() == [locate_plainly(space, a, o) for a, o in zip(lat, lon, strict=True)]


@settings(max_examples=60)
@given(
    st.floats(-180, 180),
    st.floats(-89, 89),
    st.floats(0.0005, 0.02),
    st.floats(0.0005, 0.02),
    st.floats(20, 5000),
)
def test_every_cell_centre_lies_in_its_cell_anywhere_on_earth(west, south, height, width, cell):
    east = west + width if west + width <= 180 else west + width - 360
    grid = Grid.from_bounds(west, south, east, south + height, cell)
    lat, lon = grid.to_latlon(grid.answers)
    inside = (lat <= grid.north) & ((lon - grid.west) % 360 <= grid._width)
    states = grid.locate(lat, lon)
    assert np.array_equal(states[inside], np.flatnonzero(inside))
    assert (states[~inside] == -1).all()
    assert grid.columns == max(1, math.ceil(width * grid.projection.metres_east / cell - 1e-6))


def test_cells_are_row_major_from_the_south_west():
    grid = Grid.from_bounds(*BEIJING, cell="5km")
    assert (grid.columns, grid.rows) == (4, 4)
    assert grid.lattice[:5].tolist() == [[0, 0], [1, 0], [2, 0], [3, 0], [0, 1]]
    assert grid.answers[5].tolist() == [7500, 7500]
    assert grid.names[5] == "x1y1" and grid.index_of("x3y0") == 3
    assert grid.pitch.tolist() == [5000, 5000] and grid.frame.origin.tolist() == [2500, 2500]
    assert grid.is_lattice and not grid.snap_error.any()


def test_the_cells_of_the_paper():
    grid = Grid.from_bounds(*BEIJING, cell=340.0)
    assert (grid.columns, grid.rows) == (51, 46)
    assert grid.locate(39.85, 116.28) == 0
    assert isinstance(grid.locate(39.85, 116.28), int)
    assert grid.locate(39.99, 116.48) == grid.n_states - 1


def test_a_cell_is_as_long_as_it_says():
    # Known lengths of a degree at 45 degrees (WGS84): 111 132 m north, 78 847 m east.
    north, east = metres_per_degree(45.0)
    assert north == pytest.approx(111_132, abs=1) and east == pytest.approx(78_847, abs=1)
    assert metres_per_degree(0.0) == pytest.approx((110_574, 111_320), abs=1)


def test_nan_and_impossible_places_are_outside():
    grid = Grid.from_bounds(*BEIJING)
    assert grid.locate([np.nan, 39.9, np.inf, 95, 39.9], [116.3, np.nan, 116.3, 116.3, 1e300]).tolist() == [-1] * 5
    assert grid.locate(np.nan, 116.3) == -1
    assert grid.locate([], []).tolist() == []
    with pytest.raises(InvalidInput, match="as many"):
        grid.locate([1, 2], [1, 2, 3])
    with pytest.raises(InvalidInput, match="dtype"):
        grid.locate(["39.9"], ["116.3"])


def test_a_subset_knows_only_its_cells_and_the_nearest_of_them():
    grid = Grid.from_bounds(*BEIJING, cell=1000)
    part = grid.subset([0, 40, 200])
    lat, lon = grid.to_latlon(grid.answers)
    found = part.locate(lat, lon)
    assert found[[0, 40, 200]].tolist() == [0, 1, 2]
    assert (found >= 0).sum() == 3
    distance = ((grid.answers[:, None] - part.answers) ** 2).sum(axis=2)
    assert part.nearest(lat, lon).tolist() == distance.argmin(axis=1).tolist()
    assert part.nearest(0.0, 0.0) in (0, 1, 2)


def test_of_equally_near_states_the_lowest_wins():
    grid = Grid.from_bounds(*BEIJING, cell=1000)
    ring = [(1, 0), (0, 1), (2, 1), (1, 2)]
    part = grid.subset([grid.index_of(f"x{x}y{y}") for x, y in ring])
    lat, lon = grid.to_latlon(grid.answers[grid.index_of("x1y1")])
    assert part.nearest(float(lat), float(lon)) == 0
    with pytest.raises(InvalidInput, match="not finite"):
        part.nearest(np.nan, 0.0)


def test_a_box_across_the_antimeridian():
    grid = Grid.from_bounds(179.9, -17.1, -179.9, -16.9, cell=1000)
    assert grid.columns == 22
    west, east = grid.locate(-17.0, 179.95), grid.locate(-17.0, -179.95)
    assert 0 <= west < east and grid.lattice[east, 0] - grid.lattice[west, 0] in (10, 11)
    assert grid.locate(-17.0, 0.0) == -1
    _, lon = grid.to_latlon(grid.answers)
    assert ((lon >= 179.9) | (lon <= -179.89)).all()
    assert (np.abs(lon) <= 180).all()


def test_answers_far_outside_still_have_places():
    lat, lon = Grid.from_bounds(*BEIJING).to_latlon([[1e8, 1e8], [-1e9, -1e9]])
    assert (np.abs(lat) <= 90).all() and (np.abs(lon) <= 180).all()
    with pytest.raises(InvalidInput, match="shape"):
        Grid.from_bounds(*BEIJING).to_latlon([1.0, 2.0, 3.0])


@pytest.mark.parametrize(
    ("box", "cell", "words"),
    [
        ((39.85, 116.28, 39.99, 116.48), 340, "swapped"),
        ((116.28, 39.99, 116.48, 39.85), 340, "more than south"),
        ((116.28, 39.85, 116.28, 39.99), 340, "west"),
        ((116.28, 10, 116.48, 20), 340, "H3"),
        ((0, 89.85, 1, 89.95), 340, "89.9"),
        ((-181, 0, 1, 1), 340, "west"),
        ((0, 0, 400, 1), 340, "east"),
        ((0, "a", 1, 1), 340, "south"),
        (BEIJING, 0, "cell"),
        (BEIJING, "340ft", "cell"),
        (BEIJING, 1, r"10\*\*7"),
    ],
)
def test_bad_boxes_are_refused_in_one_line(box, cell, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        Grid.from_bounds(*box, cell=cell)
    assert "\n" not in str(refused.value)


def test_the_stretch_of_a_box_over_the_equator_is_measured_at_the_equator():
    Grid.from_bounds(0, -10, 1, 10, cell=10_000)
    with pytest.raises(InvalidInput, match="2 %"):
        Grid.from_bounds(0, -13, 1, 13, cell=10_000)
    with pytest.raises(InvalidInput, match="2 %"):
        Grid.from_bounds(0, -13, 1, 1, cell=10_000)
