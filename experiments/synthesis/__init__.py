"""Experiment "synthesis": how far people whom a model invents are from held-out people.

Real people are few here; of the simulated city there are as many as wanted. Half of the people are learned from, the
others judge. Models are counted (not private), learned with privacy, made from geometry alone ("uniform": moves within
reach, the same everywhere), or forget the step before ("independent": every row drawn anew from the counted shares of
cells, not private). Of 1,000 invented people of each four measures are taken, all against the held-out people: how far
the shares of cells are apart, and those of pairs of first and last cell of a stretch, as Jensen-Shannon divergences in
bits (0 to 1); the relative error of the mean length of a stretch; and the share of the ten cells with most people that
are found. A private fit counts one stretch of each person, the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dphmm import Grid, MarkovModel
from dphmm.errors import InvalidInput
from dphmm.evaluation import simulate_city, synthesize
from dphmm.markov.private import fit_chain

# The true cells of rows are for whoever has them: no public name gives them.
from dphmm.states.trajectory import true_states
from dphmm.storage import load_trajectories
from dphmm.types import FloatArray, IntArray
from experiments.experiment import Cell, Experiment, Own, Row, Settings, bits_of, groups, skipped
from experiments.printed import Printed, listed, of

if TYPE_CHECKING:
    import pandas as pd

    from dphmm.states import Trajectories

Box: TypeAlias = tuple[float, float, float, float]
EPSILONS = ("0.5", "1", "2")
PEOPLE, TOP = 1000, 10
#: Public numbers of each data set: file, box (west, south, east, north), cell in metres, step in seconds, steps of a
#: stretch at most, and top speed.
DATA_SETS: dict[str, tuple[str, Box, float, int, int, str]] = {
    "geolife": ("geolife_beijing.parquet", (116.28, 39.85, 116.48, 39.99), 1000.0, 600, 36, "60km/h"),
    "gowalla": ("gowalla_la.parquet", (-118.45, 33.95, -118.15, 34.15), 2000.0, 3600, 12, "60km/h"),
}
COUNTED, LEARNED, INDEPENDENT, UNIFORM = (
    "counted, NOT PRIVATE",
    "learned",
    "independent, NOT PRIVATE",
    "uniform, no data",
)
#: People of the simulated city, both halves together; and how fast nobody is there.
CITIES, CITY_CELL, CITY_LENGTH, CITY_SPEED = (400, 4000), 1020.0, 144, "20km/h"
MEASURES = ("density", "trips", "length", "hotspots")


def cells(settings: Settings) -> list[Cell]:
    """A cell for each split of each data set that is there, and one that says what is not."""
    splits = range(1 if settings.quick else 5)
    if settings.own is not None:
        _stretches(*_public(settings, settings.own.name)[:5])
        return [{"part": "real", "data": settings.own.name, "split": split} for split in splits]
    found: list[Cell] = [
        {"part": "city", "data": f"city of {n // 2:,}", "people": n, "split": 0}
        for n in CITIES[: 1 if settings.quick else 2]
    ]
    for name, (file, *_) in DATA_SETS.items():
        if reason := settings.missing(file):
            found.append(skipped(name, reason))
        else:
            found += [{"part": "real", "data": name, "split": split} for split in splits]
    return found


def measure(settings: Settings, cell: Cell, seed: np.random.SeedSequence) -> list[Row]:
    """The rows of one split: a row of measures for each model."""
    random = np.random.default_rng(seed)
    if cell["part"] == "skipped":
        return [{"method": "skipped"}]
    if cell["part"] == "city":
        city = simulate_city(people=int(str(cell["people"])), days=1)
        grid, step, length, speed = _coarser(city.grid), city.step, CITY_LENGTH, CITY_SPEED
        known, whose = _cut(city.model_people, grid, step, length, 3600)
        held_out, _ = _cut(city.released_people, grid, step, length, 3600)
    else:
        file, box, side, step, length, speed = _public(settings, str(cell["data"]))
        grid, stretches, owners = _stretches(file, box, side, step, length)
        chosen = np.isin(owners, random.permutation(np.unique(owners))[: len(np.unique(owners)) // 2])
        known = [stretch for stretch, theirs in zip(stretches, chosen, strict=True) if theirs]
        held_out = [stretch for stretch, theirs in zip(stretches, chosen, strict=True) if not theirs]
        whose = owners[chosen]
    counted = MarkovModel.fit(known, grid.n_states, space=grid, smoothing=0.01, step=step)
    shares = _shares(known, grid.n_states)
    lengths = [len(stretch) for stretch in held_out]
    rows: list[Row] = []
    for epsilon in EPSILONS:
        private, _ = fit_chain(
            known, grid.n_states, epsilon, length, owners=whose, mask="neighbours",
            space=grid, step=step, bits=bits_of(seed, epsilon),
        )  # fmt: skip
        rows.append(
            {"method": LEARNED, "epsilon": float(epsilon), **measures(_drawn(private, random, lengths), held_out, grid)}
        )
    uniform = MarkovModel.from_geometry(grid, step, speed)
    anew = [random.choice(grid.n_states, size=size, p=shares) for size in random.choice(lengths, PEOPLE)]
    others = (
        (COUNTED, _drawn(counted, random, lengths)),
        (INDEPENDENT, anew),
        (UNIFORM, _drawn(uniform, random, lengths)),
    )
    return [*rows, *({"method": method, "epsilon": None, **measures(made, held_out, grid)} for method, made in others)]


def _drawn(model: MarkovModel, random: np.random.Generator, lengths: Sequence[int]) -> list[IntArray]:
    """Stretches of invented people, as long as held-out ones: their lengths are taken to be public."""
    found = synthesize(model, PEOPLE, max(lengths), seed=int(random.integers(2**31)))
    assert model.space is not None and found.state is not None
    numbers = {name: number for number, name in enumerate(model.space.names)}
    states = np.array([numbers[name] for name in found.state]).reshape(PEOPLE, -1)
    return [row[:size] for row, size in zip(states, random.choice(lengths, PEOPLE), strict=True)]


def _public(settings: Settings, name: str) -> tuple[Path, Box, float, int, int, str]:
    """File, box, cell in metres, step in seconds, steps of a stretch at most, and top speed."""
    if isinstance(own := settings.own, Own):
        return own.file, own.box, own.cell, own.step, own.length, "60km/h"
    assert settings.data is not None
    file, box, cell, step, length, speed = DATA_SETS[name]
    return settings.data / file, box, cell, step, length, speed


@lru_cache(maxsize=2)
def _stretches(file: Path, box: Box, cell: float, step: int, length: int) -> tuple[Grid, list[IntArray], IntArray]:
    """The grid, the stretches of so many steps without a long gap, and whose each is."""
    grid = Grid.from_bounds(*box, cell)
    rows = load_trajectories(file).trajectories
    # A check-in is followed by the next within a day, a GPS fix within the hour.
    stretches, owners = _cut(rows, grid, step, length, 86_400 if step >= 3600 else 3600)
    if len(np.unique(owners)) < 4:
        came = f"{file}: {len(np.unique(owners))} people with two steps of {step} s in a row inside the box"
        raise InvalidInput("--trajectories", came, "at least 4: half are learned from, half judge")
    return grid, stretches, owners


def _coarser(grid: Grid) -> Grid:
    """Cells of a kilometre over the box of the city's."""
    lat, lon = grid.to_latlon(np.array([[0.0, 0.0], grid.answers.max(axis=0) + grid.cell / 2]))
    return Grid.from_bounds(lon[0], lat[0], lon[1], lat[1], CITY_CELL)


def _cut(rows: Trajectories, grid: Grid, step: int, length: int, gap: int) -> tuple[list[IntArray], IntArray]:
    """Stretches of 2 to ``length`` steps inside the grid, without a longer gap, and whose each is."""
    rows = rows.resample(step)[0]
    states, outside = true_states(rows, grid)
    found = rows.take(~outside).sequences(states[~outside], gap=gap)
    kept = [(part[:length], owner) for part, owner in zip(found.sequences, found.owners, strict=True) if len(part) > 1]
    return [part for part, _ in kept], np.array([owner for _, owner in kept])


def measures(made: Sequence[IntArray], held_out: Sequence[IntArray], grid: Grid) -> dict[str, float]:
    """The four measures of invented stretches against held-out ones."""
    n = grid.n_states
    own, real = _shares(made, n), _shares(held_out, n)
    top = set(np.argsort(-real, kind="stable")[:TOP].tolist())
    found = set(np.argsort(-own, kind="stable")[:TOP].tolist())
    length, true_length = (np.mean([_length(stretch, grid) for stretch in one]) for one in (made, held_out))
    return {
        "density": divergence(own, real),
        "trips": divergence(*(_trips(one, n) for one in (made, held_out))),
        "length": float(abs(length - true_length) / true_length),
        "hotspots": len(top & found) / TOP,
    }


def _shares(stretches: Sequence[IntArray], n: int) -> FloatArray:
    counts = np.bincount(np.concatenate(stretches), minlength=n).astype(np.float64)
    return np.asarray(counts / counts.sum())


def _trips(stretches: Sequence[IntArray], n: int) -> FloatArray:
    """Shares (n * n,) of first and last cell."""
    counts = np.bincount([int(s[0]) * n + int(s[-1]) for s in stretches], minlength=n * n).astype(np.float64)
    return np.asarray(counts / counts.sum())


def _length(stretch: IntArray, grid: Grid) -> float:
    """Metres between the centres of the cells, one after another."""
    at = grid.answers[stretch]
    return float(sum(np.linalg.norm(b - a) for a, b in pairwise(at)))


def divergence(p: FloatArray, q: FloatArray) -> float:
    """The Jensen-Shannon divergence of two laws, in bits: 0 where they are equal, 1 where they share nothing."""
    middle = (p + q) / 2

    def from_middle(one: FloatArray) -> float:
        some = one > 0
        return float((one[some] * np.log2(one[some] / middle[some])).sum())

    return (from_middle(p) + from_middle(q)) / 2


def tables(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Means over the splits, a line for each data set, model and epsilon."""
    import pandas as pd

    if "density" not in rows:
        return {"models": pd.DataFrame({"data": rows["data"], "reason": rows["reason"]})}
    measured = rows[rows["method"] != "skipped"]
    found = list(_lines(measured.assign(epsilon=measured["epsilon"].fillna(0))))
    return {"models": pd.DataFrame(found)}


def _lines(rows: pd.DataFrame) -> Iterator[dict[str, object]]:
    for (data, method, epsilon), part in groups(rows, ["data", "method", "epsilon"]):
        told = {name: round(float(part[name].mean()), 3) for name in MEASURES}
        yield {"data": data, "method": method, "epsilon": epsilon or float("nan"), "splits": len(part), **told}


def printed(tables: dict[str, pd.DataFrame]) -> dict[str, Printed]:
    """The table of the page."""
    models = tables["models"]
    if "method" not in models:
        return {}
    titles: dict[str, Callable[[pd.Series[Any]], str]] = {
        "model": lambda row: row["method"] + (f", ε = {row['epsilon']:g}" if row["epsilon"] > 0 else ""),
        "cells": of("density", 2),
        "trips": of("trips", 2),
        "length": of("length", 2),
        "top ten": of("hotspots", 2),
    }
    return {"models": listed(models, "people", "data", titles)}


EXPERIMENT = Experiment(
    name="synthesis",
    title="People whom a model invents, beside held-out people",
    source="Gursoy, Liu, Truex and Yu, publication of trajectory data, IEEE TMC 2019 (measures)",
    cells=cells,
    measure=measure,
    tables=tables,
    printed=printed,
    files=tuple(file for file, *_ in DATA_SETS.values()),
    takes_own=Own,
    figures=(),
)
