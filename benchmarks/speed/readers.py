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
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dphmm
from benchmarks.speed.effort import Effort
from benchmarks.speed.figures import Figure, below
from benchmarks.speed.timing import Spread
from dphmm.evaluation.city import simulate_city

_FIRST_SEED = 11
_DAY = 86_400
#: Widths of the kernel in hours, and what an answer of another day counts.
_WIDTHS, _OTHER_DAYS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0), (0.0, 0.3, 0.6, 1.0)
#: People of the city with how many seeds, and what the learned reader is to reach of public, lines and kernel.
_CITIES = ((30, 5, (0.78, 0.78, 0.95)), (100, 2, (0.70, 0.70, 0.90)), (300, 1, (0.70, 0.69, 0.90)))
_GEOLIFE = ((1, (0.68, None, 0.80)), (2, (0.48, None, 0.55)))


@dataclass(frozen=True, eq=False)
class World:
    """Rows of people (user, t), where they were (n, 2) in metres, and what is public."""

    table: Any
    places: np.ndarray
    model: dphmm.MarkovModel
    policy: Any
    covers: float
    epsilon: float
    schedule: dphmm.accounting.Schedule | None = None


def figures(effort: Effort) -> Iterator[Figure]:
    """The city by numbers of people, and Geolife where there is the data."""
    for people, seeds, targets in effort.pick(_CITIES[:1], _CITIES):
        yield from _compared(f"city, {people} people", lambda seed, n=people: city(seed, n), seeds, targets)
    path = Path(os.environ.get("DPHMM_DATA", "../shared/data")) / "geolife_beijing.parquet"
    for epsilon, targets in _GEOLIFE:
        name = f"Geolife, every step, epsilon {epsilon}"
        if path.exists():
            yield from _compared(name, lambda seed, e=epsilon: geolife(path, e), effort.pick(1, 3), targets)
        else:
            yield Figure("learning", name, None, "m", note="no Geolife in DPHMM_DATA")


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


def city(seed: int, people: int) -> World:
    """The demo: three days, six answers of epsilon 2 a day, places up to 680 m apart hidden from each other."""
    town = simulate_city(seed=seed, people=2 * people, days=3)
    model = dphmm.MarkovModel.from_geometry(town.grid, town.step, "20km/h")
    policy = dphmm.policy.radius(town.grid, covers="680m")
    schedule = dphmm.accounting.Schedule(dphmm.SequencePromise(12, per=144), 2, at=range(12, 144, 24))
    seen = town.released_people
    return _world(np.array(seen.users)[seen.user], seen.time, seen.lat, seen.lon, model, policy, 680, 2, schedule)


def geolife(path: Path, epsilon: float) -> World:
    """Stretches of 36 steps of 5 minutes without a gap, at most five of a person, on 680 m cells of Beijing."""
    rows = pd.read_parquet(path, columns=["user", "t", "lat", "lon"])
    seconds = rows.t.astype("datetime64[s, UTC]").astype("int64")
    rows = rows.assign(bin=seconds // 300).drop_duplicates(["user", "bin"], keep="first")
    grid = dphmm.Grid.from_bounds(116.28, 39.85, 116.48, 39.99, 680)
    rows = rows[grid.locate(rows.lat.to_numpy(), rows.lon.to_numpy()) >= 0].sort_values(["user", "bin"])
    run = ((rows.bin.diff() != 1) | (rows.user != rows.user.shift())).cumsum()
    place = rows.groupby(run).cumcount()
    whole = place < rows.groupby(run).bin.transform("size") // 36 * 36
    rows = rows[whole].assign(stretch=run[whole].astype(str) + "-" + (place[whole] // 36).astype(str))
    number = rows.groupby("user").stretch.transform(lambda own: pd.factorize(own)[0])
    rows = rows[number < 5]
    model = dphmm.MarkovModel.from_geometry(grid, 300, "60km/h")
    policy = dphmm.policy.radius(grid, covers="680m")
    micros = rows.bin.to_numpy() * 300 * 1_000_000
    return _world(rows.user.astype(str), micros, rows.lat, rows.lon, model, policy, 680, epsilon, None)


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


def errors(world: World, seed: int) -> dict[str, float]:
    """The mean distance in metres of each reader from the truth, over all rows."""
    space, bits = world.model.space, dphmm.ReplayBits(seed)
    public = world.model, world.policy, space
    given: dict[str, Any] = {} if world.schedule is None else {"schedule": world.schedule}
    epsilon = world.epsilon if world.schedule is None else None
    released = dphmm.release_many(world.table, *public, epsilon, bits=bits, progress=False, **given)
    learned = dphmm.reconstruction.learn(released, *public, world.epsilon, progress=False, **given)
    found = {}
    for name, believe in (("public model", None), ("learned", learned.model)):
        read = dphmm.reconstruction.smooth(released, *public, world.epsilon, believe=believe, progress=False, **given)
        guess = read[["smoothed_0", "smoothed_1"]].to_numpy()
        found[name] = float(np.linalg.norm(guess - world.places, axis=1).mean())
    asked = released.plan.notna().to_numpy() & (released.plan != "").to_numpy()
    rng = np.random.default_rng(seed)
    angle, radius = rng.uniform(0, 2 * np.pi, len(asked)), rng.gamma(2, world.covers / world.epsilon, len(asked))
    noisy = world.places + radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    hours = world.table.t.astype("int64").to_numpy() / {"ns": 1e9, "us": 1e6}[world.table.t.dt.unit] / 3600
    people = [np.flatnonzero(world.table.user == user) for user in world.table.user.unique()]
    found["Laplace, lines"] = _mean(world, people, lambda own, at: _lines(hours, noisy, own, at), asked)
    found["Laplace, kernel"] = min(
        _mean(world, people, lambda own, at, w=width, o=other: _kernel(hours, noisy, own, at, w, o), asked)
        for width, other in product(_WIDTHS, _OTHER_DAYS)
    )
    return found


def _mean(world: World, people: list[np.ndarray], read: Callable[..., np.ndarray], asked: np.ndarray) -> float:
    off = [np.linalg.norm(read(own, own[asked[own]]) - world.places[own], axis=1) for own in people]
    return float(np.concatenate(off).mean())


def _lines(hours: np.ndarray, noisy: np.ndarray, own: np.ndarray, at: np.ndarray) -> np.ndarray:
    return np.stack([np.interp(hours[own], hours[at], noisy[at, axis]) for axis in (0, 1)], axis=1)


def _kernel(
    hours: np.ndarray, noisy: np.ndarray, own: np.ndarray, at: np.ndarray, width: float, other: float
) -> np.ndarray:
    apart = hours[own][:, None] - hours[at]
    clock = np.abs((apart + 12) % 24 - 12)
    weights = np.exp(-((apart / width) ** 2) / 2) + other * (np.abs(apart) > 12) * np.exp(-((clock / width) ** 2) / 2)
    weights += 1e-12 * np.exp(-np.abs(apart) / 24)
    return np.asarray(weights @ noisy[at] / weights.sum(axis=1, keepdims=True))
