"""Experiment "dependence": dependent differential privacy, what it costs, and what it keeps of what it promises.

The paper is Liu, Chakraborty and Mittal, "Dependence makes you vulnerable", NDSS 2016, Sections VI-D3 and VII, Figures
7 to 10. Every answer here is ordinary differential privacy at an ε₀ of one record, which is all that mechanisms differ
in; beside it stands the true ε under a model of dependence wherever that can be computed, and "none" where nothing is
proved. What the paper does not say, or what the text at hand lacks, is chosen so: one record is a person's median
place; k-means is DP-Lloyd with 5 clusters, 3 iterations and a public start, since noise on finished centroids is
not private; friends' places are among 30 public cells of Los Angeles; affinity's coefficients are cosines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.dependence import leakage, noise, real, tables
from experiments.drawing import Figure
from experiments.experiment import Cell, Experiment, OwnGraph, Row, Settings, skipped

EPSILONS = ("0.1", "0.3", "1", "3", "10", "30", "100", "300")
_FEW = ("1", "10")
SPLITS, DRAWS = 5, 20


def cells(settings: Settings) -> list[Cell]:
    """All cells; of data that is not there, one that says so."""
    epsilons = _FEW if settings.quick else EPSILONS
    levels: list[Cell] = [{"part": "degrees", "level": level, "epsilon": e} for level in real.CAP for e in epsilons]
    if isinstance(settings.own, OwnGraph):
        real.own_graph(settings.own)
        return levels
    at_gowalla = settings.missing(*real.GOWALLA_FILES) is None
    found: list[Cell] = [
        *noise.scale_cells(settings),
        *noise.accuracy_cells(settings, at_gowalla),
        *leakage.cells(settings),
    ]
    places: list[Cell] = [
        *({"part": "kmeans", "epsilon": epsilon} for epsilon in epsilons),
        *({**cell, "data": "Gowalla"} for cell in leakage.cells(settings)),
    ]
    learned = 3000 if settings.quick else 10_000
    chosen = range(1 if settings.quick else SPLITS)
    splits: list[Cell] = [{"part": "classifier", "split": split, "records": learned} for split in chosen]
    found += _of_data(settings, "Gowalla", real.GOWALLA_FILES, places)
    found += _of_data(settings, "Adult", (real.ADULT,), splits)
    found += _of_data(settings, "Facebook", real.GRAPH_FILES, levels)
    return found


def _of_data(settings: Settings, name: str, files: tuple[str, ...], cells: Iterable[Cell]) -> list[Cell]:
    reason = settings.missing(*files)
    return list(cells) if reason is None else [skipped(name, reason)]


def measure(settings: Settings, cell: Cell, seed: np.random.SeedSequence) -> list[Row]:
    """The rows of a cell."""
    if cell["part"] == "scales":
        return noise.measure_scales(cell)
    if cell["part"] == "accuracy":
        return list(noise.measure_accuracy(settings.data, cell, seed))
    if cell["part"] == "leak" and cell["data"] != "Gowalla":
        return leakage.measure(cell, seed)
    if isinstance(settings.own, OwnGraph):
        return list(real.degrees(real.own_graph(settings.own), cell, seed, _draws(settings)))
    if settings.data is None or cell["part"] == "skipped":
        return [{"mechanism": "skipped"}]
    return list(_WITH_DATA[str(cell["part"])](settings, settings.data, cell, seed))


_Measure = Callable[[Settings, Path, Cell, np.random.SeedSequence], Iterable[Row]]


def _draws(settings: Settings) -> int:
    return 3 if settings.quick else DRAWS


def _classifier(settings: Settings, folder: Path, cell: Cell, seed: np.random.SeedSequence) -> Iterable[Row]:
    few = settings.quick
    return real.classification(folder, cell, _FEW if few else EPSILONS, seed, 1 if few else 4)


_WITH_DATA: dict[str, _Measure] = {
    "kmeans": lambda settings, folder, cell, seed: real.clusters(folder, cell, seed, _draws(settings)),
    "leak": lambda settings, folder, cell, seed: real.leaks(folder, cell),
    "classifier": _classifier,
    "degrees": lambda settings, folder, cell, seed: real.degrees(real.graph(folder), cell, seed, _draws(settings)),
}


def _figure(name: str, title: str, y: str, y_label: str, **others: Any) -> Figure:
    given = {"x": "epsilon", "by": "mechanism", "x_label": "ε that is asked for", "log_x": True, **others}
    return Figure(name, title, given.pop("table", name), y=y, y_label=y_label, **given)


_RANGE = {"low": "low", "high": "high"}

EXPERIMENT = Experiment(
    name="dependence",
    title="Queries over dependent records",
    source="Liu, Chakraborty and Mittal, Dependence makes you vulnerable, NDSS 2016, Figures 7-10",
    cells=cells,
    measure=measure,
    tables=tables.tables,
    files=(*real.GOWALLA_FILES, real.ADULT, *real.GRAPH_FILES),
    takes_own=OwnGraph,
    figures=(
        _figure(
            "true-epsilon",
            "True ε over the ε that is asked for: above 1 the promise is broken",
            "ratio",
            "true ε / ε",
            table="scales",
            panels="model",
            log_y=True,
        ),
        _figure(
            "robust",
            "Coefficients taken too small or too large: true ε over ε",
            "ratio",
            "true ε / ε",
            table="robust",
            panels="model",
        ),
        _figure(
            "accuracy",
            "(α, β)-accuracy",
            "beta",
            "β: P(L1 error > α)",
            x="alpha",
            x_label="α",
            panels="panel",
        ),
        _figure("kmeans", "k-means, Gowalla in Los Angeles", "accuracy", "people who keep their cluster", **_RANGE),
        _figure("classifier", "Linear SVM, Adult", "accuracy", "test records classified rightly", **_RANGE),
        _figure("degrees", "Degree distribution", "accuracy", "accuracy", panels="level", **_RANGE),
        _figure("leak", "Leaked information, distance model", "leaked", "bits", panels="adversary"),
        _figure("leak-gowalla", "Leaked information, Gowalla", "leaked", "bits", panels="adversary"),
    ),
)
