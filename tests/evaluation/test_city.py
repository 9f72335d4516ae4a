"""The simulated city: the same for the same seed, dry feet, and two groups of different people."""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.errors import InvalidInput
from dphmm.evaluation import City, simulate_city
from dphmm.evaluation.city import CELL, STEP, _is_west, _midstream

_DAY_ROWS = 86_400 // STEP


@pytest.fixture(scope="module")
def city() -> City:
    return simulate_city(people=20, days=2)


def _metres(city: City) -> np.ndarray:
    both = (city.model_people, city.released_people)
    return np.concatenate([city.grid.projection.to_metres(people.lat, people.lon) for people in both])


def test_a_seed_gives_the_same_people_and_another_seed_others(city: City) -> None:
    again = simulate_city(seed=1, people=20, days=2)
    assert np.array_equal(again.released_people.lat, city.released_people.lat)
    assert np.array_equal(again.model_people.lon, city.model_people.lon)
    assert not np.array_equal(simulate_city(seed=2, people=20, days=2).released_people.lat, city.released_people.lat)


def test_the_people_released_are_not_those_of_the_model(city: City) -> None:
    assert not set(city.model_people.users) & set(city.released_people.users)
    assert city.model_people.n_users == city.released_people.n_users == 10


def test_everybody_has_a_row_every_ten_minutes(city: City) -> None:
    people = city.released_people
    assert np.array_equal(np.bincount(people.user), np.full(10, 2 * _DAY_ROWS))
    for user in range(10):
        assert np.all(np.diff(people.time[people.user == user]) == STEP * 1_000_000)


def test_the_grid_is_twenty_by_twenty_cells_and_holds_everybody(city: City) -> None:
    assert (city.grid.columns, city.grid.rows, city.grid.cell) == (20, 20, CELL)
    for people in (city.model_people, city.released_people):
        assert np.all(city.grid.locate(people.lat, people.lon) >= 0)


def test_nobody_is_in_the_river_but_on_a_bridge(city: City) -> None:
    points = _metres(city)
    wet = np.array([abs(east - _midstream(north)) < 100.0 for east, north in points])
    heights = city.bridges[:, 0, 1]
    on_bridge = np.min(np.abs(points[:, 1][:, None] - heights[None]), axis=1) < 100.0
    assert wet.any(), "nobody crosses: the test sees nothing"
    assert np.all(on_bridge[wet])


def test_people_sleep_at_home_and_most_work_elsewhere(city: City) -> None:
    people = city.released_people
    points = city.grid.projection.to_metres(people.lat, people.lon).reshape(10, 2, _DAY_ROWS, 2)
    nights = np.linalg.norm(points[:, 0, 3] - points[:, 1, 3], axis=1)
    assert np.all(nights < 100.0)
    commute = np.linalg.norm(points[:, :, 3] - points[:, :, 72], axis=2)
    assert np.median(commute) > 1000.0


def test_some_commuters_cross_the_river(city: City) -> None:
    people = city.released_people
    points = city.grid.projection.to_metres(people.lat, people.lon).reshape(10, -1, 2)
    sides = [{_is_west(point) for point in path} for path in points]
    assert sum(len(side) == 2 for side in sides) >= 3


@pytest.mark.parametrize(
    ("options", "field"),
    [({"people": 1}, "people"), ({"days": 0}, "days"), ({"seed": -1}, "seed"), ({"people": 2.5}, "people")],
)
def test_bad_numbers_are_named(options: dict[str, float], field: str) -> None:
    with pytest.raises(InvalidInput, match=f"^{field}:"):
        simulate_city(**options)


def test_every_quarter_has_a_name_and_lies_dry_on_the_map(city: City) -> None:
    assert len({name for name, _, _ in city.quarters}) == len(city.quarters) == 9
    for _, east, north in city.quarters:
        assert 0 < east < 20 * CELL and 0 < north < 20 * CELL
        assert abs(east - _midstream(north)) > 200.0
