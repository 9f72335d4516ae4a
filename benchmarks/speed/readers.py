"""How near readers of one release come to the truth: the public model, a learned one, and planar Laplace without one.

Everybody reads as many answers of the same bound: two places as far apart as the policy covers lose at most epsilon by
an answer along an axis, so planar Laplace has epsilon over that distance. Its readers have no model: straight lines
between answers, and a kernel over time and over the person's own days, whose widths are found by looking at the truth.
Settings of learning were fixed on the city of seed 1; the seeds that are judged begin at 11.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dphmm
from benchmarks.labels import msnbc, mvad
from benchmarks.own_places import trips
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, below
from benchmarks.speed.timing import Spread
from dphmm.evaluation.city import simulate_city
from dphmm.reconstruction.kernel import Timed, least_error

_FIRST_SEED = 11
#: Steps of Geolife from one fix to the next, at most, and its box.
_GAP, _BEIJING = 3, (116.28, 39.85, 116.48, 39.99)
#: People of the city, with how many seeds, whether at staggered times, and what the learned reader is to reach of
#: public, lines and kernel. The first two are measured without ``--long`` too.
_CITIES = (
    (30, 5, False, (0.78, 0.78, 0.95)),
    (30, 5, True, (0.70, None, 0.85)),
    (100, 2, False, (None, 0.70, 0.90)),
    (300, 1, False, (None, 0.69, 0.90)),
    (100, 2, True, (None, 0.66, None)),
    (300, 1, True, (None, 0.64, None)),
)
#: Epsilon of an answer to Geolife at every step, and at 6 of 36 steps, with the same.
_EVERY = ((1, (0.68, None, 0.80)), (2, (0.48, None, 0.55)))
_SIX = ((1, (0.87, 0.86, 0.93)), (2, (0.87, 0.86, 0.90)))
#: Where the public model is good already: what learning costs in the mean, and in the worst of the draws.
_DRAWS, _MEAN, _WORST = 8, 1.005, 1.05


@dataclass(frozen=True, eq=False)
class World:
    """Rows of people (user, t), where they were (n, 2) in metres or their labels (n,), and what is public."""

    table: Any
    places: np.ndarray
    model: dphmm.MarkovModel
    policy: Any
    covers: float
    epsilon: float
    schedule: dphmm.accounting.Schedule | None = None


def figures(effort: Effort) -> Iterator[Figure]:
    """The city of 30 people; with ``--long`` of more, Geolife, and sets that should not be harmed."""
    for people, seeds, staggered, targets in _CITIES if effort.long else _CITIES[:2]:
        name = f"city, {people} people, {'staggered' if staggered else 'fixed'}"
        yield from _compared(name, lambda seed, n=people, own=staggered: city(seed, n, own), seeds, targets)
    if not effort.long:
        return
    folder = Path(os.environ.get("DPHMM_DATA", "../shared/data"))
    for words, settings, six in (("every step", _EVERY, False), ("6 of 36 steps", _SIX, True)):
        for epsilon, targets in settings:
            name = f"Geolife, {words}, epsilon {epsilon}"
            if (folder / "geolife_beijing.parquet").exists():
                yield from _compared(name, lambda seed, e=epsilon, s=six: geolife(folder, e, s), 3, targets)
            else:
                yield Figure("learning", name, None, "m", note="no Geolife in DPHMM_DATA")
    for people in (1, 2, 3):
        yield from _harm(f"city, {people} people", lambda seed, n=people: city(seed, n))
    for name, load in (("mvad", mvad), ("msnbc", msnbc)):
        if (folder / "mvad.csv.gz").exists():
            yield from _harm(name, lambda seed, own=load: labelled(*own(folder)))
    if (folder / "gowalla_la_sequence.parquet").exists():
        yield from _harm("Gowalla", lambda seed: gowalla(folder))


def _compared(
    name: str, world: Callable[[int], World], seeds: int, targets: tuple[float | None, ...]
) -> Iterator[Figure]:
    told = [errors(world(seed), seed) for seed in range(_FIRST_SEED, _FIRST_SEED + seeds)]
    for reader in told[0]:
        yield Figure("learning", f"{name}: {reader}", Spread.of(one[reader] for one in told), "m")
    for reader, target in zip(("public model", "Laplace, lines", "Laplace, kernel"), targets, strict=True):
        ratio = np.mean([one["learned"] for one in told]) / np.mean([one[reader] for one in told])
        each = [one["learned"] / one[reader] for one in told]
        spread = Spread(float(ratio), min(each), max(each), len(each))
        goal = None if target is None else below(target)
        yield Figure("learning", f"{name}: learned / {reader}", spread, "", goal, "ratio of means over seeds")


def _harm(name: str, world: Callable[[int], World]) -> Iterator[Figure]:
    """Errors of the learned model in those of the public one: the mean and the worst of the draws."""
    told = [errors(world(seed), seed, ("public model", "learned")) for seed in range(_FIRST_SEED, _FIRST_SEED + _DRAWS)]
    each = [one["learned"] / one["public model"] for one in told]
    spread = Spread(float(np.mean(each)), min(each), max(each), len(each))
    yield Figure("learning", f"{name}: learned / public model, mean", spread, "", below(_MEAN))
    worst = Spread(max(each), max(each), max(each), 1)
    few = "" if not name.startswith("city") else "below 50 sequences it is said, not promised"
    yield Figure("learning", f"{name}: learned / public model, worst", worst, "", None if few else below(_WORST), few)


def city(number: int, people: int, staggered: bool = False) -> World:
    """The demo: three days, six answers of epsilon 2 a day, places up to 680 m apart hidden from each other."""
    town = simulate_city(seed=number, people=2 * people, days=3)
    model = dphmm.MarkovModel.from_geometry(town.grid, town.step, "20km/h")
    policy = dphmm.policy.radius(town.grid, covers="680m")
    promise, seed = dphmm.SequencePromise(12, per=144), "1" * staggered
    schedule = dphmm.accounting.Schedule(promise, 2, at=range(12, 144, 24), seed=seed)
    seen = town.released_people
    return _world(np.array(seen.users)[seen.user], seen.time, seen.lat, seen.lon, model, policy, 680, 2, schedule)


def labelled(names: list[str], states: list[np.ndarray]) -> World:
    """Labels of the second half of the people, and a model that was counted on the first half."""
    half, space = len(states) // 2, dphmm.StateSpace.labels(names)
    model = dphmm.MarkovModel.fit(states[:half], len(names), smoothing=0.1, space=space)
    rows = [
        (str(number), step, names[state])
        for number, own in enumerate(states[half:])
        for step, state in enumerate(own, 1)
    ]
    table = pd.DataFrame(rows, columns=["user", "step", "state"])
    places = np.array([names.index(state) for state in table.state])
    return World(table, places, model, dphmm.policy.complete(len(names)), 1, 1)


def gowalla(folder: Path) -> World:
    """Check-ins of 120 people in Los Angeles on cells of 1 km, and a model that was counted on other people."""
    grid, known, others = trips(folder, "gowalla")
    model = dphmm.MarkovModel.fit(known, grid.n_states, smoothing=1, smoothing_support="neighbours", space=grid)
    chosen = [trip[:200] for trip in others if len(trip) >= 20][:120]
    states = np.concatenate(chosen)
    user = np.repeat([f"person {number:03}" for number in range(len(chosen))], [len(trip) for trip in chosen])
    table = pd.DataFrame({"user": user, "state": np.array(grid.names, dtype=object)[states]})
    return World(table, grid.own_answers[states], model, dphmm.policy.radius(grid, covers="1km"), 1000, 1)


@cache
def _stretches(folder: Path) -> Any:
    """Rows of Geolife in stretches of 36 steps of 5 minutes, at most eight of a person, on 680 m cells of Beijing.

    A step without a fix has the place before it, for at most 15 minutes: without any such step 35 stretches of 17
    people are left, too few to leave people out.
    """
    rows = pd.read_parquet(folder / "geolife_beijing.parquet", columns=["user", "t", "lat", "lon"])
    seconds = rows.t.astype("datetime64[s, UTC]").astype("int64")
    rows = rows.assign(bin=seconds // 300).drop_duplicates(["user", "bin"], keep="first")
    grid = dphmm.Grid.from_bounds(*_BEIJING, 680)
    rows = rows[grid.locate(rows.lat.to_numpy(), rows.lon.to_numpy()) >= 0].sort_values(["user", "bin"])
    run = ((rows.bin.diff() > _GAP) | (rows.user != rows.user.shift())).cumsum()
    parts = [own.set_index("bin") for _, own in rows.groupby(run)]
    whole = [own.reindex(range(own.index[0], own.index[-1] + 1), method="ffill") for own in parts]
    whole = [own.iloc[: len(own) // 36 * 36] for own in whole]
    rows = pd.concat(own.assign(run=number) for number, own in enumerate(whole)).reset_index()
    rows["stretch"] = rows.run.astype(str) + "-" + (rows.groupby("run").cumcount() // 36).astype(str)
    number = rows.groupby("user").stretch.transform(lambda own: pd.factorize(own)[0])
    return rows[number < 8]


def geolife(folder: Path, epsilon: float, six: bool) -> World:
    """Stretches of Geolife. Where 6 of 36 steps are asked each stretch counts as a person."""
    rows, grid = _stretches(folder), dphmm.Grid.from_bounds(*_BEIJING, 680)
    model = dphmm.MarkovModel.from_geometry(grid, 300, "60km/h")
    policy = dphmm.policy.radius(grid, covers="680m")
    micros = rows.bin.to_numpy() * 300 * 1_000_000
    users, schedule = rows.user.astype(str), None
    if six:
        users = users + "/" + rows.stretch
        schedule = dphmm.accounting.Schedule(dphmm.SequencePromise(6 * epsilon, steps=36), epsilon, at=range(3, 36, 6))
    return _world(users, micros, rows.lat, rows.lon, model, policy, 680, epsilon, schedule)


def _world(
    users: Any,
    micros: Any,
    lat: Any,
    lon: Any,
    model: dphmm.MarkovModel,
    policy: Any,
    covers: float,
    epsilon: float,
    schedule: dphmm.accounting.Schedule | None,
) -> World:
    table = pd.DataFrame({"user": np.asarray(users), "lat": np.asarray(lat), "lon": np.asarray(lon)})
    table["t"] = pd.to_datetime(np.asarray(micros), unit="us", utc=True)
    assert model.space is not None
    places = model.space.projection.to_metres(table.lat.to_numpy(), table.lon.to_numpy())
    return World(table, np.asarray(places), model, policy, covers, epsilon, schedule)


def errors(world: World, seed: int, readers: tuple[str, ...] = ()) -> dict[str, float]:
    """The mean distance in metres of each reader from the truth, over all rows; of labels the share that is wrong.

    ``readers``: only these, by default all of them.
    """
    space, bits = world.model.space, dphmm.ReplayBits(seed)
    public = world.model, world.policy, space
    given: dict[str, Any] = {} if world.schedule is None else {"schedule": world.schedule}
    epsilon = world.epsilon if world.schedule is None else None
    released = dphmm.release_many(world.table, *public, epsilon, bits=bits, progress=False, **given)
    learned = dphmm.reconstruction.learn(released, *public, world.epsilon, progress=False, **given)
    found = {}
    for name, believe in (("public model", None), ("learned", learned.model)):
        read = dphmm.reconstruction.smooth(released, *public, world.epsilon, believe=believe, progress=False, **given)
        if world.places.ndim == 1:
            found[name] = float((space.indices_of(read.smoothed.tolist()) != world.places).mean())
            continue
        guess = read[["smoothed_0", "smoothed_1"]].to_numpy()
        found[name] = float(np.linalg.norm(guess - world.places, axis=1).mean())
    if readers:
        return {name: found[name] for name in readers}
    asked = released.plan.notna().to_numpy() & (released.plan != "").to_numpy()
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, len(asked)), rng.gamma(2, world.covers / world.epsilon, len(asked))
    noisy = world.places + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    hours = world.table.t.astype("int64").to_numpy() / {"ns": 1e9, "us": 1e6}[world.table.t.dt.unit] / 3600
    people = [np.flatnonzero(world.table.user == user) for user in world.table.user.unique()]
    timed = [
        Timed(hours[own], world.places[own], hours[own[asked[own]]], noisy[own[asked[own]]])
        for own in people
        if asked[own].any()
    ]
    lines = [
        np.stack([np.interp(one.hours, one.asked, one.z[:, axis]) for axis in (0, 1)], axis=1) - one.places
        for one in timed
    ]
    found["Laplace, lines"] = float(np.linalg.norm(np.concatenate(lines), axis=1).mean())
    found["Laplace, kernel"] = least_error(timed, lambda one, other: np.linalg.norm(one - other, axis=1)) or np.nan
    return found
