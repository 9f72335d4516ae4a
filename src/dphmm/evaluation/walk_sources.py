"""Where walks come from: the two data sets of the papers, and a simulated city that needs no data."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import numpy as np

from dphmm.evaluation.city import simulate_city
from dphmm.evaluation.experiment import Cell, Settings
from dphmm.evaluation.walk_studies import Rules, Study, first_walks, popular_squares
from dphmm.states.grid import Grid
from dphmm.states.trajectory import Trajectories
from dphmm.types import IntArray

CITY, GEOLIFE, GOWALLA = "city", "geolife", "gowalla"
FILES = {GEOLIFE: "geolife_beijing.parquet", GOWALLA: "gowalla_la_sequence.parquet"}
#: Beijing's third ring road, Los Angeles: public boxes (west, south, east, north).
THIRD_RING, LOS_ANGELES = (116.28, 39.85, 116.48, 39.99), (-118.58, 33.70, -118.19, 34.32)
#: The radius of Gutil, metres, and what it is varied over.
RADII = {
    CITY: (1000.0, (500.0, 1000.0, 1500.0, 2000.0)),
    GEOLIFE: (1000.0, (500.0, 1000.0, 1500.0, 2000.0)),
    GOWALLA: (2000.0, (1000.0, 2000.0, 3000.0, 4000.0)),
}
#: m/s: 150 km/h. Faster points are glitches of a receiver, and would widen every release.
_FASTEST = 150 / 3.6
#: Of every day the city's walks begin at six in the morning.
_MORNING = 36
_CITY_SEED = 1


def there(settings: Settings) -> list[str]:
    """The studies that can be run: the data sets that are there, and the city in place of those that are not."""
    found = [name for name, file in FILES.items() if settings.data is not None and (settings.data / file).is_file()]
    return found if len(found) == len(FILES) else [*found, CITY]


def skipped(settings: Settings) -> Iterator[Cell]:
    """A cell for each data set that is not there, saying why."""
    for name, file in FILES.items():
        if settings.data is None:
            yield {"part": "skipped", "data": name, "reason": "no folder of data: --data or DPHMM_DATA"}
        elif not (settings.data / file).is_file():
            yield {"part": "skipped", "data": name, "reason": f"no {file} in the folder of data"}


def study(settings: Settings, name: str) -> Study:
    """A study by name; a quick one has few and short walks."""
    whole = _study(name, None if name == CITY else settings.data)
    return whole.cut(4, 20) if settings.quick else whole


@lru_cache(maxsize=4)
def _study(name: str, folder: Path | None) -> Study:
    if name == CITY:
        return _city()
    assert folder is not None
    return _geolife(folder / FILES[name]) if name == GEOLIFE else _gowalla(folder / FILES[name])


def _city() -> Study:
    """People of Port Markov, seen every ten minutes; the model is of other people than those released."""
    city = simulate_city(_CITY_SEED)
    rules = Rules(city.grid, step=city.step, smoothing=1.0)
    stepped, _ = city.released_people.resample(city.step)
    day = 86_400 // city.step
    steps = stepped.steps()
    morning = stepped.take(np.flatnonzero(steps - steps.min() >= day + _MORNING))
    places = popular_squares(city.model_people, city.grid)
    return Study(CITY, rules, city.model_people, first_walks(morning, rules), places, n_folds=0)


def _geolife(path: Path) -> Study:
    """Steps of a minute, cells of 340 m; holes of up to five minutes keep the cell before."""
    from dphmm.storage.importers.imported import import_csv

    rows = import_csv(path).trajectories
    grid = Grid.from_bounds(*THIRD_RING, cell=340)
    rules = Rules(grid, step=60, hold=4, smoothing=1.0, fitted_at_most=_FASTEST)
    return Study(GEOLIFE, rules, rows, first_walks(rows, rules), popular_squares(rows, grid), n_folds=2)


def _gowalla(path: Path) -> Study:
    """Every check-in is a step, cells of 890 m; places are those where anybody checked in."""
    from dphmm.storage.importers.imported import import_csv
    from dphmm.storage.tables import read_table

    rows = import_csv(path, user_column="block", order_column="k").trajectories
    grid = Grid.from_bounds(*LOS_ANGELES, cell=890)
    rules = Rules(grid)
    places = np.unique(np.stack(rows.places_for("places"), axis=1), axis=0)
    metres = grid.projection.to_metres(places[:, 0], places[:, 1])
    table = read_table(path)
    walks = first_walks(rows, rules, people=_people(rows, table["block"].to_pylist(), table["user"].to_pylist()))
    return Study(GOWALLA, rules, rows, walks, metres, n_folds=1)


def _people(rows: Trajectories, blocks: list[int], users: list[int | None]) -> IntArray:
    """The person (users,) that each block is of; of a block whose person is not known, itself."""
    known = {str(block): user for block, user in zip(blocks, users, strict=True)}
    number = {user: k for k, user in enumerate(dict.fromkeys(user for user in users if user is not None))}
    people = [known[block] for block in rows.users]
    return np.array([number[p] if p is not None else len(number) + k for k, p in enumerate(people)], dtype=np.int64)
