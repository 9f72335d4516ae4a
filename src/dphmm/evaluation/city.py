"""A small simulated city with a river, two bridges and commuters: nobody's data, the same for the same seed.

Port Markov lies in the empty South Pacific. Its people sleep at home, cross a bridge to work, sometimes spend
the evening out, and go home again; the streets are straight and nobody is ever in the river but on a bridge.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dphmm._cached import cached_property
from dphmm._checks import exact_number
from dphmm.errors import InvalidInput
from dphmm.states.grid import Grid
from dphmm.states.maps import metres_per_degree
from dphmm.states.trajectory import MICROSECONDS, Trajectories
from dphmm.types import FloatArray

NAME = "Port Markov"
#: Seconds between two positions of a person.
STEP = 600
CELL = 340.0
_SIDE = 20 * CELL
_SOUTH, _WEST = -48.0, -125.0
_FIRST_DAY = 1_898_812_800  # Monday 2030-03-04, 00:00 UTC
_DAY = 86_400

_RIVER_WIDTH = 400.0
# How far from midstream the riverside paths run and the bridges end.
_BANK = _RIVER_WIDTH / 2 + 120.0
_BRIDGES = (1870.0, 4930.0)
# Centre east and north, spread (all metres), share of the people; by the quarter's name.
_HOMES = {
    "Northbank": (850.0, 5600.0, 350.0, 0.30),
    "Westfield": (1150.0, 3350.0, 350.0, 0.30),
    "Millside": (1000.0, 1000.0, 300.0, 0.20),
    "Hillcrest": (5900.0, 5900.0, 300.0, 0.20),
}
_WORKPLACES = {
    "Exchange": (4850.0, 3300.0, 250.0, 0.55),
    "Docks": (5700.0, 900.0, 250.0, 0.25),
    "College": (2050.0, 6150.0, 150.0, 0.20),
}
_EVENINGS = {"Theatre": (4300.0, 4950.0, 120.0, 0.5), "Market": (2050.0, 2350.0, 120.0, 0.5)}
_GPS_ERROR = 15.0


@dataclass(frozen=True, eq=False, repr=False)
class City:
    """A simulated city and its people.

    ``grid``: 20 x 20 cells of 340 m. ``model_people`` and ``released_people`` are different people: a model
    fitted on the first half says nothing about the second. ``river`` (n, 2) is a polygon, ``bridges`` (2, 2, 2) are
    segments, and ``quarters`` are names with their centres, in answer units: metres east and north of the grid's
    corner.
    """

    grid: Grid
    model_people: Trajectories
    released_people: Trajectories
    river: FloatArray
    bridges: FloatArray
    quarters: tuple[tuple[str, float, float], ...] = tuple(
        (name, east, north) for name, (east, north, _, _) in (_HOMES | _WORKPLACES | _EVENINGS).items()
    )
    name: str = NAME
    step: int = STEP


def simulate_city(seed: int = 1, people: int = 60, days: int = 3) -> City:
    """The city of a seed: ``people`` residents seen every 10 minutes for ``days`` whole days.

    Raises InvalidInput for fewer than 2 people, or for a number that is not whole.
    """
    residents = _whole(people, "people", 2)
    chance = np.random.default_rng(_whole(seed, "seed", 0))
    moments = np.arange(0, _whole(days, "days", 1) * _DAY, STEP, dtype=np.int64)
    paths = [_Resident.settle(chance).path(chance, moments) for _ in range(residents)]
    grid = _grid()
    half = residents // 2
    return City(
        grid=grid,
        model_people=_trajectories(grid, paths[:half], 1, moments),
        released_people=_trajectories(grid, paths[half:], half + 1, moments),
        river=_river(),
        bridges=np.array([_bridge(north) for north in _BRIDGES]),
    )


def _whole(value: object, name: str, least: int) -> int:
    number = exact_number(value, name)
    if number.denominator != 1 or number < least:
        raise InvalidInput(name, value, f"a whole number, {least} or more")
    return int(number)


def _grid() -> Grid:
    metres_north, _ = metres_per_degree(_SOUTH)
    # A centimetre short of 20 cells, so that no rounding makes it 21.
    north = round(_SOUTH + (_SIDE - 0.01) / metres_north, 9)
    _, metres_east = metres_per_degree((_SOUTH + north) / 2)
    return Grid.from_bounds(_WEST, _SOUTH, round(_WEST + (_SIDE - 0.01) / metres_east, 9), north, cell=CELL)


def _trajectories(grid: Grid, paths: list[FloatArray], first: int, moments: np.ndarray) -> Trajectories:
    lat, lon = grid.to_latlon(np.concatenate(paths))
    return Trajectories(
        users=tuple(f"resident-{number:02d}" for number in range(first, first + len(paths))),
        user=np.repeat(np.arange(len(paths), dtype=np.int32), len(moments)),
        time=np.tile((_FIRST_DAY + moments) * MICROSECONDS, len(paths)),
        lat=lat,
        lon=lon,
    )


@dataclass(frozen=True, eq=False)
class _Resident:
    """The home, workplace and evening place of one person (metres), and their speed of travel (m/s)."""

    home: FloatArray
    work: FloatArray
    out: FloatArray
    speed: float

    @classmethod
    def settle(cls, chance: np.random.Generator) -> _Resident:
        speed = chance.uniform(4.0, 6.0)
        return cls(_place(chance, _HOMES), _place(chance, _WORKPLACES), _place(chance, _EVENINGS), speed)

    def path(self, chance: np.random.Generator, moments: np.ndarray) -> FloatArray:
        """Positions (n, 2) at the moments, seconds from the first midnight."""
        diary = _Diary(self.home, self.speed)
        for midnight in range(0, int(moments[-1]) + 1, _DAY):
            leaves = midnight + chance.normal(7.6, 0.6) * 3600
            arrives = diary.go(self.work, leaves)
            finishes = max(arrives, leaves + chance.normal(9.0, 0.6) * 3600)
            if chance.random() < 0.4:
                arrives = diary.go(self.out, finishes)
                finishes = arrives + chance.uniform(1.0, 2.5) * 3600
            diary.go(self.home, finishes)
        path = np.stack([np.interp(moments, diary.times, axis) for axis in zip(*diary.points, strict=True)], axis=1)
        return np.clip(path + chance.normal(0.0, _GPS_ERROR, path.shape), 1.0, _SIDE - 1.0)


@dataclass(eq=False)
class _Diary:
    """Knots of a path: at ``times[i]`` the person is at ``points[i]``, and moves straight to the next."""

    home: FloatArray
    speed: float
    times: list[float] = field(default_factory=lambda: [0.0])

    @cached_property
    def points(self) -> list[FloatArray]:
        return [self.home]

    def go(self, to: FloatArray, leaves: float) -> float:
        """Stay until ``leaves``, then travel; the time of arrival."""
        here, now = self.points[-1], max(leaves, self.times[-1] + 1.0)
        self._knot(now, here)
        for corner in _route(here, to):
            now += 1.0 + float(np.linalg.norm(corner - self.points[-1])) / self.speed
            self._knot(now, corner)
        return now

    def _knot(self, time: float, point: FloatArray) -> None:
        self.times.append(time)
        self.points.append(point)


def _place(chance: np.random.Generator, quarters: dict[str, tuple[float, float, float, float]]) -> FloatArray:
    """A dry place in a quarter."""
    places = list(quarters.values())
    east, north, spread, _ = places[chance.choice(len(places), p=[share for *_, share in places])]
    while True:
        point = np.array([east, north]) + chance.normal(0.0, spread, 2)
        dry = abs(point[0] - _midstream(point[1])) > _BANK
        if dry and bool(np.all((point > 50.0) & (point < _SIDE - 50.0))):
            return point


def _midstream(north: float) -> float:
    """The middle of the river so many metres north, in metres east."""
    return float(3150.0 + 450.0 * np.sin(2.0 * np.pi * (north / _SIDE) + 0.7))


def _is_west(point: FloatArray) -> bool:
    return bool(point[0] < _midstream(point[1]))


def _bridge(north: float) -> FloatArray:
    """The west and the east end of a bridge (2, 2), on dry land."""
    return np.array([[_midstream(north) - _BANK, north], [_midstream(north) + _BANK, north]])


def _route(start: FloatArray, end: FloatArray) -> list[FloatArray]:
    """The corners after ``start``: along one bank, or over the bridge with the shorter way."""
    west = _is_west(start)
    if west == _is_west(end):
        return _along_bank(start, end, west)
    bridges = [_bridge(north) if west else _bridge(north)[::-1] for north in _BRIDGES]
    near, far = min(bridges, key=lambda ends: float(np.linalg.norm(ends[0] - start) + np.linalg.norm(end - ends[1])))
    return [*_along_bank(start, near, west), far, *_along_bank(far, end, not west)]


def _along_bank(start: FloatArray, end: FloatArray, west: bool) -> list[FloatArray]:
    """Straight to ``end``, but round a bend of the river."""
    corners = []
    for share in np.linspace(0.0, 1.0, 17)[1:-1]:
        east, north = start + share * (end - start)
        bank = _midstream(north) + (-_BANK if west else _BANK)
        corners.append(np.array([min(east, bank) if west else max(east, bank), north]))
    return [*corners, end]


def _river() -> FloatArray:
    """The outline of the water (n, 2)."""
    north = np.linspace(0.0, _SIDE, 69)
    middle = np.array([_midstream(y) for y in north])
    west, east = (np.stack([middle + shift, north], axis=1) for shift in (-_RIVER_WIDTH / 2, _RIVER_WIDTH / 2))
    return np.concatenate([west, east[::-1]])
