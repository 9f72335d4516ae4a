"""How much less a schedule errs than the same budget spread over every step: on people it has never seen, a table.

    python benchmarks/schedules.py [--data FOLDER] [--replays 20]

In each replay the model is fitted to one half of the people, or made from the map alone (``--model geometry``), a
schedule is chosen from the model alone, and the other half is released under it and at every step with an equal share,
both keeping the same promise. Errors are mean
distances from true places, in metres. The figure is the error of the schedule as a share of that of every step: the
mean over replays, and the upper end of its 90 % interval. In the city a replay is another city; of Geolife it is
another way to halve the people, so that its replays share their people. Nothing here is a private release.
"""

from __future__ import annotations

import argparse
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

import dphmm
from dphmm.accounting.promise import Schedule
from dphmm.choose.planning import World
from dphmm.choose.simulated import Errors, Guesses, Moves, SimulatedReleases
from dphmm.evaluation.city import STEP, simulate_city
from dphmm.markov.trajectories import fit

CELL = 340.0
BEIJING = (116.28, 39.85, 116.48, 39.99)
#: Nobody moves faster between cells, says the model that is made from the map alone: the speed limit of a city.
MAX_SPEED = "60km/h"
#: Seconds of a step, and steps of a stretch of three hours.
GEOLIFE_STEP, STRETCH = 300, 36
#: At most so many stretches of one person and of one replay.
OF_ONE, OF_ALL = 3, 40
DAY = 86_400 // STEP


class People(NamedTuple):
    """Who is released: their states and places, and the model of others."""

    model: dphmm.MarkovModel
    states: np.ndarray
    places: np.ndarray


def city(seed: int) -> People:
    """Thirty people of a city on three days, and a model of thirty others."""
    made = simulate_city(seed=seed)
    grid = made.grid

    def states(people: dphmm.states.Trajectories) -> tuple[np.ndarray, np.ndarray]:
        x = grid.projection.to_metres(people.lat, people.lon)
        cells = grid.locate(people.lat, people.lon)
        return cells.reshape(people.n_users, -1), x.reshape(people.n_users, -1, 2)

    own, _ = states(made.model_people)
    model, _ = fit(own, grid.n_states, smoothing=0.01, smoothing_support="neighbours", space=grid, step=STEP)
    return People(model, *states(made.released_people))


def geolife(folder: Path) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Of each stretch of steps without a gap: the person, the times of its bins, and the last place in each."""
    import pandas as pd

    rows = pd.read_parquet(folder / "geolife_beijing.parquet").sort_values(["user", "t"], kind="stable")
    rows["bin"] = rows.t.astype("int64") // (10**9 * GEOLIFE_STEP) if rows.t.dtype == "datetime64[ns, UTC]" else (
        rows.t.dt.as_unit("s").astype("int64") // GEOLIFE_STEP)  # fmt: skip
    rows = rows.groupby(["user", "bin"], as_index=False).last()
    new = (rows.user != rows.user.shift()) | (rows.bin != rows.bin.shift() + 1)
    places = rows[["lat", "lon"]].to_numpy()
    return [
        (str(rows.user[part.index[0]]), part.bin.to_numpy(), places[part.index])
        for _, part in rows.groupby(new.cumsum())
    ]


def halves(stretches: list[tuple[str, np.ndarray, np.ndarray]], seed: int) -> People:
    """A model of one half of the people, and stretches of three hours of the other half."""
    grid = dphmm.Grid.from_bounds(*BEIJING, cell=CELL)
    chance = np.random.default_rng(seed)
    names = sorted({name for name, _, _ in stretches})
    half = set(chance.permutation(names)[: len(names) // 2].tolist())
    learned = [grid.locate(*places.T) for name, _, places in stretches if name in half]
    whole = [row for cells in learned for row in np.split(cells, np.flatnonzero(cells < 0)) if (row[-1:] >= 0).all()]
    sequences = [row[row >= 0] for row in whole if (row >= 0).sum() > 1]
    model, _ = fit(sequences, grid.n_states, smoothing=1, smoothing_support="neighbours", space=grid, step=GEOLIFE_STEP)
    taken: list[np.ndarray] = []
    of_one: dict[str, int] = {}
    for number in chance.permutation(len(stretches)).tolist():
        name, _, places = stretches[number]
        for first in range(0, len(places) - STRETCH + 1, STRETCH):
            part = places[first : first + STRETCH]
            if name in half or of_one.get(name, 0) == OF_ONE or (grid.locate(*part.T) < 0).any():
                continue
            of_one[name] = of_one.get(name, 0) + 1
            taken.append(part)
    kept = np.array(taken[:OF_ALL])
    cells = grid.locate(*kept.reshape(-1, 2).T).reshape(len(kept), STRETCH)
    return People(model, cells, grid.projection.to_metres(*kept.reshape(-1, 2).T).reshape(*kept.shape))


def from_geometry(people: People) -> People:
    """The same people, and a model that nobody's data is in."""
    space, step = people.model.space, people.model.step
    return people._replace(model=dphmm.MarkovModel.from_geometry(space, step, MAX_SPEED))


def compared(people: People, promise: dphmm.SequencePromise, kind: str, seed: int) -> tuple[Schedule, Errors, Errors]:
    """The schedule that the model alone chooses; its errors on people, and those of every step."""
    space = people.model.space
    assert space is not None
    policy = dphmm.policy.radius(space, covers="680m")
    world = World(people.model, policy, space, promise, kind)
    chosen, _ = world.choose(promise.exact)
    length = promise.steps or DAY
    every = Schedule(promise, promise.exact / length, range(1, length + 1))
    setting, moves, found = world.setting, Moves(people.model), []
    for schedule in (chosen, every):
        at, asked = setting.with_epsilon(schedule.exact), world.in_steps(schedule)
        alike, guesses = np.ones(len(people.states)), Guesses(space)
        followed = SimulatedReleases(at, asked, people.states, people.places, moves, 1000 + seed, alike, guesses)
        found.append(followed.errors())
    return chosen, found[0], found[1]


def line(
    what: str,
    promise: dphmm.SequencePromise,
    kind: str,
    replays: list[tuple[Schedule, Errors, Errors]],
    target: float | None,
) -> str:
    """One row of the table."""
    name = "smoothed" if kind == "planned" else "online"
    own, every = (np.array([getattr(errors[side], name) for errors in replays]) for side in (1, 2))
    shares = own / every
    half = stats.t.ppf(0.95, len(shares) - 1) * shares.std(ddof=1) / np.sqrt(len(shares))
    releases = sorted(schedule.releases for schedule, _, _ in replays)
    counts = f"{releases[0]} to {releases[-1]}" if releases[0] < releases[-1] else str(releases[0])
    high = shares.mean() + half
    met = ["", ""] if target is None else [f"{target:.2f}", "yes" if high <= target else "NO"]
    return (
        f"| {what} | {promise} | {kind}, {name} | {counts} | {own.mean():,.0f} m | {every.mean():,.0f} m | "
        f"{shares.mean():.2f} | {high:.2f} | {met[0]} | {met[1]} |"
    )


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder of real data; without it the city alone")
    parser.add_argument("--replays", type=int, default=20)
    parser.add_argument("--totals", default="6,12,24")
    parser.add_argument("--kinds", default="planned,paced")
    parser.add_argument("--only", default="city,geolife")
    parser.add_argument("--model", choices=("fitted", "geometry"), default="fitted")
    given = parser.parse_args()
    print("| people | promise | schedule, error | releases | with it | every step | share | at most | target | met |")
    print("|---" * 10 + "|")
    only, replays = given.only.split(","), range(given.replays)
    if "city" in only:
        towns = [city(seed + 1) for seed in replays]
        measured("city, a day", towns, {"per": "1d"}, {"planned": 0.6, "paced": 0.75}, given)
    if "geolife" in only and given.data is not None:
        stretches = geolife(given.data)
        split = [halves(stretches, seed) for seed in replays]
        measured("Geolife, three hours", split, {"steps": STRETCH}, {"planned": 0.75, "paced": None}, given)


def measured(
    what: str,
    replays: list[People],
    length: dict[str, Any],
    targets: dict[str, float | None],
    given: argparse.Namespace,
) -> None:
    """Print a row for each kind of schedule and total."""
    for kind in given.kinds.split(","):
        for total in given.totals.split(","):
            promise = dphmm.SequencePromise(Fraction(total), **length)
            rows = []
            for seed, fitted in enumerate(replays):
                people = from_geometry(fitted) if given.model == "geometry" else fitted
                print(f"{what}, {kind}, {total}: {seed + 1} of {len(replays)}", file=sys.stderr, flush=True)
                rows.append(compared(people, promise, kind, seed))
            print(line(what, promise, kind, rows, targets[kind]), flush=True)


if __name__ == "__main__":
    main()
