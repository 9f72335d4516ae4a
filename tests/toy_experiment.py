"""An experiment for tests: a line for each n and method, and a plan to be interrupted."""

from __future__ import annotations

import pandas as pd

from dphmm.evaluation import bootstrap_mean
from experiments.drawing import Figure
from experiments.experiment import Experiment, Settings

STOP_AT: list[int] = []


def cells(settings: Settings):
    return [{"method": method, "n": n} for method in ("a", "b") for n in (1, 2, 3)[: 2 if settings.quick else 3]]


def measure(settings: Settings, cell, seed):
    if cell["n"] in STOP_AT:
        raise KeyboardInterrupt
    import numpy as np

    draws = np.random.default_rng(seed).normal(size=4) + cell["n"]
    return [{"draw": number, "value": float(value)} for number, value in enumerate(draws)]


def tables(rows: pd.DataFrame):
    found = []
    for (method, n), part in rows.groupby(["method", "n"], sort=False):
        mean, low, high = bootstrap_mean(part["value"])
        found.append({"method": method, "n": n, "mean": mean, "low": low, "high": high})
    return {"means": pd.DataFrame(found)}


EXPERIMENT = Experiment(
    name="toy",
    title="A toy",
    source="Nobody 2020, Figure 1",
    cells=cells,
    measure=measure,
    tables=tables,
    figures=(
        Figure(
            "means", "Means", "means", x="n", y="mean", by="method", x_label="n", y_label="mean", low="low", high="high"
        ),
    ),
)
