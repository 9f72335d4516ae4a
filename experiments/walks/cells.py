"""Cells of the two experiments on walks: a release by given choices, and the rows of measures that it leaves.

Every measure stands with its interval over walks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm.evaluation import Interval, density_error, flow_error, gyration_error, of_distances, visit_length_error

# `nearest_places_error` searches anew for every k; here one search serves all.
from dphmm.evaluation.measures import hits, nearest
from dphmm.types import FloatArray, IntArray
from experiments.experiment import Cell, Row, Settings, bits_of
from experiments.walks.releases import COMPLETE, TRANS, UTIL, Choices, Released, release
from experiments.walks.studies import EVERYBODY, OTHERS, Study, left_out, radii, study, there

#: The paper's δ.
DELTA = "0.01"
#: What a release is called that hides among all states of a δ-location set (CCS 2015).
DPLS = "DPLS"


def studied(settings: Settings, choices: Callable[[str], Iterable[Choices]]) -> Iterator[Cell]:
    """A cell for every data set and every choice, and cells that say what is left out."""
    yield from left_out(settings)
    for data in there(settings):
        for one in choices(data):
            yield {"part": "release", "data": data, **asdict(one)}


def released(settings: Settings, cell: Cell, seed: np.random.SeedSequence) -> tuple[Study, Choices, Released]:
    """The release of a cell, by noise of the cell and the walk's number alone."""
    given: dict[str, Any] = {field.name: cell[field.name] for field in fields(Choices)}
    choices, of = Choices(**given), study(settings, str(cell["data"]))
    return of, choices, release(of, choices, [bits_of(seed, number) for number in range(len(of.walks))])


def labelled(rows: Iterable[Row], choices: Choices) -> list[Row]:
    """Rows with the method's name."""
    return [{"method": name_of(choices), **row} for row in rows]


def name_of(choices: Choices) -> str:
    """What the papers call it, and what is not as in the papers."""
    if choices.policy == COMPLETE and choices.delta == DELTA:
        name = DPLS
    elif choices.policy == COMPLETE:
        name = "all possible states" if choices.delta is None else f"DPLS, δ = {choices.delta}"
    else:
        name = choices.policy if choices.delta is None else f"{choices.policy}, δ = {choices.delta}"
    return name + (", fitted to everybody" if choices.fit == EVERYBODY else "")


def policies(data: str, mechanism: str, fit: str = OTHERS) -> tuple[Choices, Choices, Choices]:
    """The DPHMM paper's three: Gutil, Gtrs, and DPLS on δ-location sets."""
    util = Choices(UTIL, mechanism, radius=radii(data)[0], fit=fit)
    return util, Choices(TRANS, mechanism, fit=fit), Choices(COMPLETE, mechanism, delta=DELTA, fit=fit)


#: What is published or computed from it: the answer, the estimate at the time, the smoothed estimate.
READINGS = ("z", "estimate", "smoothed")
#: What is known without any release.
BLIND = "blind"
#: Steps before and after that a step is averaged with, as the DPHMM paper's Figure 11 is smoothed.
AROUND = 2
#: Wanted places, and how many are returned for each of them.
WANTED, RETURNED = (1, 5, 10), (1, 2, 5)
_KM = 1000.0
#: Regions between which moves are counted, cells a side.
_REGION = 5


def overall(released: Released) -> Row:
    """Means over all steps of all walks: errors in km, degrees, sizes, shares."""
    row: Row = {"kind": "overall", "steps": len(released.t)}
    for reading in (*READINGS, BLIND):
        found = of_distances(distances(released, reading), released.walk)
        row |= _named(f"error_{reading}", found.mean) | {f"rms_{reading}": found.rms.value}
    hidden = released.degree[~released.constant]
    for name, values in _counted(released).items():
        row |= _named(name, mean(values, released.walk))
    cost = float(released.cost.mean())
    return row | {
        "least_degree": int(hidden.min()) if len(hidden) else None,
        "constant": float(released.constant.mean()),
        "cost": cost if np.isfinite(cost) else None,
    }


def over_time(released: Released) -> Iterator[Row]:
    """The same step by step, each with two steps before and after it."""
    errors = {reading: distances(released, reading) for reading in (*READINGS, BLIND)}
    for t in range(1, int(released.t.max()) + 1):
        near = np.abs(released.t - t) <= AROUND
        row: Row = {"kind": "step", "t": t}
        for reading in errors:
            row |= _named(f"error_{reading}", mean(errors[reading][near], released.walk[near]))
        for name, values in _counted(released).items():
            row |= _named(name, mean(values[near], released.walk[near]))
        yield row


def analytics(study: Study, released: Released) -> Iterator[Row]:
    """What a release says of all walks together: densities, flows between regions, lengths of visits, radii."""
    grid, who, n = study.rules.grid, released.walk, study.rules.grid.n_states
    row, column = grid.lattice[:, 1] // _REGION, grid.lattice[:, 0] // _REGION
    regions = row * (1 + int(column.max())) + column
    snapped = nearest(released.z, grid.answers, 1)[:, 0]
    readings = {
        "z": (snapped, released.z),
        "estimate": (released.estimate_cell, released.estimate),
        "smoothed": (released.smoothed_cell, released.smoothed),
        "path": (released.path_cell, grid.answers[released.path_cell]),
    }
    for reading, (cells, places) in readings.items():
        told: Row = {"kind": "analytics", "reading": reading}
        told |= _named("density", density_error(released.cell, cells, n, who))
        told |= _named("flows", flow_error(released.cell, cells, n, who, regions=regions))
        told |= _named("ends", flow_error(released.cell, cells, n, who, regions=regions, between="ends"))
        told |= _named("visits", visit_length_error(released.cell, cells, who))
        yield told | _named("gyration", scaled(gyration_error(released.truth, places, who), 1 / _KM))


def places(study: Study, released: Released) -> Iterator[Row]:
    """Precision and recall of queries for the nearest places."""
    most = max(WANTED) * max(RETURNED)
    if len(study.places) < most:
        return
    true = nearest(released.truth, study.places, max(WANTED))
    for reading in READINGS:
        found = nearest(getattr(released, reading), study.places, most)
        for k in WANTED:
            for times in RETURNED:
                both = mean(hits(true[:, :k], found[:, : k * times]), released.walk)
                told: Row = {"kind": "places", "reading": reading, "k": k, "returned": k * times}
                told |= _named("precision", scaled(both, 1 / (k * times)))
                yield told | _named("recall", scaled(both, 1 / k))


def distances(released: Released, reading: str) -> FloatArray:
    """Distances (n,) in km of a reading from the true cells' middles."""
    found: FloatArray = np.linalg.norm(getattr(released, reading) - released.truth, axis=1) / _KM
    return found


def mean(values: ArrayLike, walk: IntArray) -> Interval:
    """The mean over steps, with its interval over walks."""
    return of_distances(np.asarray(values, dtype=np.float64), walk).mean


def scaled(found: Interval, factor: float) -> Interval:
    """The same in another unit."""
    return Interval(*(factor * value for value in found))


def _counted(released: Released) -> dict[str, NDArray[Any]]:
    return {
        "degree": released.degree,
        "degree_possible": released.degree_possible,
        "plan_size": released.plan_size,
        "support_size": released.support_size,
        "drift": released.drift,
    }


def _named(name: str, found: Interval) -> Row:
    # A single walk has no interval: JSON knows no NaN.
    values = [float(value) if np.isfinite(value) else None for value in found]
    return {name: values[0], f"{name}_low": values[1], f"{name}_high": values[2]}
