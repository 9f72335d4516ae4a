"""People's walks over the cells of a map, and models fitted to other people: what the papers' figures are about.

A study is a data set with what its papers say of it: one of the two data sets, or a simulated city that needs no data.
Walks are split into folds; the model of a fold is fitted to everybody but the people of that fold, so that the promise
to them stands. The papers fitted one model to everybody, the released people included; that way is there for
comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np

from dphmm import Grid, MarkovModel
from dphmm.errors import InvalidInput
from dphmm.evaluation import simulate_city

# What `dphmm fit` does with a table of rows: there is no public name for it.
from dphmm.markov.trajectories import fit_trajectories, state_sequences
from dphmm.states import Trajectories
from dphmm.storage import load_trajectories
from dphmm.types import FloatArray, IntArray
from experiments.experiment import Cell, Own, Settings, skipped

#: How models are fitted: to other people; as the papers did to all people and by counts alone; to one's own rows.
OTHERS, EVERYBODY, OWN = "others", "everybody", "own"
STEPS, WALKS = 100, 20


@dataclass(frozen=True, eq=False)
class Rules:
    """What a data set's walks are made by. Speeds are m/s, lengths metres, ``step`` seconds.

    ``hold``: so many steps without a row keep the state before. ``fitted_at_most``: the speed above which rows are not
    fitted to.
    """

    grid: Grid
    step: int | None = None
    hold: int = 0
    smoothing: float = 0.0
    fitted_at_most: float | None = None


@dataclass(frozen=True, eq=False)
class Fold:
    """A model, and how its states and the cells of the whole grid translate into each other."""

    model: MarkovModel
    #: The state (cells,) that answers for each cell of the grid: its own, or the nearest.
    state_of: IntArray
    #: The cell (N,) of each state.
    cell_of: IntArray

    @classmethod
    def fitted(cls, rows: Trajectories, rules: Rules, smoothing: float) -> Fold:
        """The fold of a model fitted to some people's rows."""
        model, _ = fit_trajectories(
            rows,
            rules.grid,
            step=rules.step,
            hold=rules.hold,
            max_speed=rules.fitted_at_most,
            smoothing=smoothing,
            smoothing_support="neighbours" if smoothing else None,
            initial="occupancy",
        )
        space, grid = model.space, rules.grid
        assert isinstance(space, Grid)
        cell_of = space.lattice[:, 1] * grid.columns + space.lattice[:, 0]
        return cls(model, space.nearest(*grid.to_latlon(grid.answers)), cell_of)

    @property
    def space(self) -> Grid:
        """The cells that are states."""
        assert isinstance(self.model.space, Grid)
        return self.model.space

    def known_start(self, cell: int) -> MarkovModel:
        """The model of somebody whose cell at t = 0 is known."""
        initial = np.zeros(self.model.n_states)
        initial[self.state_of[cell]] = 1.0
        return MarkovModel(initial, self.model.matrix, space=self.space, step=self.model.step, jump=self.model.jump)


@dataclass(frozen=True, eq=False)
class Walk:
    """The cells (T + 1,) of somebody at t = 0..T, and the numbers of all users who are this person."""

    cells: IntArray
    owners: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Study:
    """A data set: its people's rows, the walks to release, and places of interest (m, 2) in metres.

    ``n_folds`` 0: the rows are of other people than the walks.
    """

    name: str
    rules: Rules
    rows: Trajectories
    walks: tuple[Walk, ...]
    places: FloatArray
    n_folds: int = 2

    def fold_of(self, number: int, fit: str) -> int:
        """The fold of a walk by number."""
        return number if fit == OWN else number % max(1, self.n_folds) if fit == OTHERS else 0

    def fold(self, number: int, fit: str = OTHERS) -> Fold:
        """The model of a fold; fitted when it is first asked for."""
        key = (number, fit)
        if key not in self._folds:
            if fit == EVERYBODY:
                self._folds[key] = Fold.fitted(self.rows, self.rules, 0.0)
            else:
                rows = self._rows_of(self.walks[number].owners) if fit == OWN else self._others(number)
                self._folds[key] = Fold.fitted(rows, self.rules, self.rules.smoothing)
        return self._folds[key]

    def _rows_of(self, owners: tuple[int, ...]) -> Trajectories:
        return self.rows.take(np.flatnonzero(np.isin(self.rows.user, owners)))

    def _others(self, number: int) -> Trajectories:
        """The rows of everybody who is not released in this fold."""
        own = [walk.owners for k, walk in enumerate(self.walks) if self.n_folds and k % self.n_folds == number]
        released = np.array(sorted({user for owners in own for user in owners}), dtype=np.int64)
        return self.rows.take(np.flatnonzero(~np.isin(self.rows.user, released)))

    @cached_property
    def _folds(self) -> dict[tuple[int, str], Fold]:
        return {}

    def truth(self, walk: Walk) -> FloatArray:
        """The true answers (T, 2) of a walk, from t = 1."""
        answers: FloatArray = self.rules.grid.answers[walk.cells[1:]]
        return answers

    def cut(self, walks: int, steps: int) -> Study:
        """The same with fewer and shorter walks; models are fitted to everybody but these."""
        shorter = tuple(Walk(walk.cells[: steps + 1], walk.owners) for walk in self.walks[:walks])
        return replace(self, walks=shorter)


def first_walks(
    rows: Trajectories, rules: Rules, *, people: IntArray | None = None, walks: int = WALKS, steps: int = STEPS
) -> tuple[Walk, ...]:
    """The first ``steps`` + 1 states in a row of each person who has so many, of ``walks`` people evenly chosen.

    ``people`` (users,): the person that each user number is; each is one of its own without.
    """
    person = np.arange(rows.n_users, dtype=np.int64) if people is None else people
    _, sequences, _ = state_sequences(rows, rules.grid, step=rules.step, hold=rules.hold)
    first: dict[int, IntArray] = {}
    for cells, user in zip(sequences.sequences, sequences.owners.tolist(), strict=True):
        if len(cells) > steps:
            first.setdefault(int(person[user]), cells[: steps + 1])
    known = sorted(first)
    chosen = np.linspace(0, len(known) - 1, min(walks, len(known))).round().astype(np.int64)
    found = [known[k] for k in chosen.tolist()]
    return tuple(Walk(first[one], tuple(np.flatnonzero(person == one).tolist())) for one in found)


def popular_squares(rows: Trajectories, grid: Grid, side: float = 100.0, least: int = 10) -> FloatArray:
    """The middles (m, 2) of squares with at least ``least`` rows, for maps without known places. ``side``: metres."""
    metres = grid.projection.to_metres(*rows.places_for("places"))
    squares, counts = np.unique(np.floor(metres / side), axis=0, return_counts=True)
    middles: FloatArray = (squares[counts >= least] + 0.5) * side
    return middles


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


def radii(name: str) -> tuple[float, tuple[float, ...]]:
    """The radius of Gutil for some data, metres, and what it is varied over. Names of own data end with the first."""
    if name in RADII:
        return RADII[name]
    own = float(name.rpartition("r = ")[2].removesuffix(" m"))
    return own, tuple(own * times for times in (0.5, 1.0, 1.5, 2.0))


def there(settings: Settings) -> list[str]:
    """The studies that can be run: one's own rows, or the data sets that are there; the city without any data."""
    if isinstance(settings.own, Own):
        own_study(settings.own)
        return [settings.own.name]
    found = [name for name, file in FILES.items() if settings.missing(file) is None]
    return found if settings.data is not None else [CITY]


def left_out(settings: Settings) -> Iterator[Cell]:
    """A cell for each data set that is not there, saying why."""
    for name, file in FILES.items() if settings.own is None else ():
        if reason := settings.missing(file):
            yield skipped(name, reason)


def study(settings: Settings, name: str) -> Study:
    """A study by name; a quick one has few and short walks."""
    own, folder = settings.own, None if name == CITY else settings.data
    whole = own_study(own) if isinstance(own, Own) else _study(name, folder)
    return whole.cut(4, 20) if settings.quick else whole


@lru_cache(maxsize=4)
def _study(name: str, folder: Path | None) -> Study:
    if name == CITY:
        return _city()
    assert folder is not None
    return _geolife(folder / FILES[name]) if name == GEOLIFE else _gowalla(folder / FILES[name])


def paced(grid: Grid, step: int) -> Rules:
    """Rules for GPS rows with steps of so many seconds: holes of up to five minutes keep the cell before."""
    return Rules(grid, step=step, hold=max(0, 300 // step - 1), smoothing=1.0, fitted_at_most=_FASTEST)


@lru_cache(maxsize=4)
def own_study(own: Own) -> Study:
    """Somebody's own rows; places are where many rows are. Raises InvalidInput for fewer than two walks."""
    rows = load_trajectories(own.file).trajectories
    grid = Grid.from_bounds(*own.box, cell=own.cell)
    if rows.lat is None or rows.lon is None:
        raise InvalidInput("--trajectories", f"{own.file}, which has no lat and lon", "rows with user, t, lat and lon")
    if rows.time is None:
        raise InvalidInput("--trajectories", f"{own.file}, which has no times", "rows with user, t, lat and lon")
    rules = paced(grid, own.step)
    walks = first_walks(rows, rules, steps=own.length) if (grid.locate(rows.lat, rows.lon) >= 0).any() else ()
    if len(walks) < 2:
        came = f"{own.file}: {len(walks)} people with {own.length + 1} steps of {own.step} s in a row inside the box"
        raise InvalidInput("--trajectories", came, "at least 2; a larger --bbox, a longer --step or a smaller --length")
    return Study(own.name, rules, rows, walks, popular_squares(rows, grid))


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
    rows = load_trajectories(path).trajectories
    grid = Grid.from_bounds(*THIRD_RING, cell=340)
    rules = paced(grid, 60)
    return Study(GEOLIFE, rules, rows, first_walks(rows, rules), popular_squares(rows, grid), n_folds=2)


def _gowalla(path: Path) -> Study:
    """Every check-in is a step, cells of 890 m; places are those where anybody checked in."""
    import pyarrow.parquet as pq

    rows = load_trajectories(path, user_column="block", order_column="k").trajectories
    grid = Grid.from_bounds(*LOS_ANGELES, cell=890)
    rules = Rules(grid)
    places = np.unique(np.stack(rows.places_for("places"), axis=1), axis=0)
    metres = grid.projection.to_metres(places[:, 0], places[:, 1])
    table = pq.read_table(path, columns=["block", "user"])
    walks = first_walks(rows, rules, people=_people(rows, table["block"].to_pylist(), table["user"].to_pylist()))
    return Study(GOWALLA, rules, rows, walks, metres, n_folds=1)


def _people(rows: Trajectories, blocks: list[int], users: list[int | None]) -> IntArray:
    """The person (users,) that each block is of; of a block whose person is not known, itself."""
    known = {str(block): user for block, user in zip(blocks, users, strict=True)}
    number = {user: k for k, user in enumerate(dict.fromkeys(user for user in users if user is not None))}
    people = [known[block] for block in rows.users]
    return np.array([number[p] if p is not None else len(number) + k for k, p in enumerate(people)], dtype=np.int64)
