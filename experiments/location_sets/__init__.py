"""Experiment "location-sets": what the CCS 2015 paper measures, and what its Section 3 says of δ-location sets.

Every answer hides the true cell among all cells of a δ-location set of the public belief. Measured are sizes of these
sets, drift, errors of the answer and of what the same answer tells, over time, by ε and by δ, and how good
nearest-places queries come out. Walks and models are those of the experiment "dphmm".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from experiments.experiment import Cell, Experiment, Own, Row, Settings
from experiments.location_sets import tables
from experiments.walks import cells as walks
from experiments.walks.releases import COMPLETE, Choices
from experiments.walks.studies import FILES
from experiments.walks.tables import with_interval

EPSILONS, DELTAS = ("0.1", "0.2", "0.5", "1", "1.5", "2"), (None, "0.001", "0.01", "0.05", "0.1", "0.2")
_FEW_EPSILONS, _FEW_DELTAS = ("0.5", "1", "2"), (None, "0.01", "0.1")
#: The paper's mechanism, the one it is compared with, geo-indistinguishability at the same guarantee, and ours.
PAPERS, LAPLACE, OURS = "planar-isotropic", "laplace", "auto"
MECHANISMS = (PAPERS, LAPLACE, "planar-laplace", OURS)


def cells(settings: Settings) -> list[Cell]:
    """Every release."""
    return list(walks.studied(settings, _few if settings.quick else _all))


def _all(data: str) -> Iterator[Choices]:
    sets = Choices(COMPLETE, OURS, delta=walks.DELTA)
    for epsilon in EPSILONS:
        yield from (replace(sets, mechanism=name, epsilon=epsilon) for name in MECHANISMS)
    for delta in DELTAS:
        if delta != walks.DELTA:
            yield from (replace(sets, mechanism=name, delta=delta) for name in (PAPERS, OURS))
    # What a policy of near cells makes of the same queries.
    for epsilon in EPSILONS[3:]:
        yield from (replace(walks.policies(data, name)[0], epsilon=epsilon) for name in (PAPERS, OURS))


def _few(data: str) -> Iterator[Choices]:
    sets = Choices(COMPLETE, PAPERS, delta=walks.DELTA)
    for epsilon in _FEW_EPSILONS:
        yield from (replace(sets, mechanism=name, epsilon=epsilon) for name in (PAPERS, LAPLACE, OURS))
    yield from (replace(sets, delta=delta) for delta in _FEW_DELTAS if delta != walks.DELTA)
    yield walks.policies(data, PAPERS)[0]


def measure(settings: Settings, cell: Cell, seed: np.random.SeedSequence) -> list[Row]:
    """The rows of a cell: over all steps, queries for places, and at epsilon 1 step by step."""
    if cell["part"] == "skipped":
        return [{"method": "skipped"}]
    study, choices, steps = walks.released(settings, cell, seed)
    rows = [walks.overall(steps), *walks.places(study, steps)]
    if choices.epsilon == "1":
        rows += walks.over_time(steps)
    return walks.labelled(rows, choices)


_figure = partial(with_interval, by="mechanism")
_T, _EPSILON, _DELTA, _K = ("t", "timestamp"), ("epsilon", "ε"), ("delta_", "δ"), ("returned", "places returned")
_KM, _SIZE, _DRIFT = "error, km", "cells in the δ-location set", "share of true cells outside the set"

EXPERIMENT = Experiment(
    name="location-sets",
    title="Differential privacy on δ-location sets",
    source="Protecting Locations with Differential Privacy under Temporal Correlations (CCS 2015), Sections 2.4 and 3",
    cells=cells,
    measure=measure,
    tables=tables.tables,
    printed=tables.printed,
    setting="The first cell of every walk is known",
    files=tuple(FILES.values()),
    takes_own=Own,
    figures=(
        _figure("size-over-time", "Sizes, δ = 0.01, ε = 1", "over-time", _T, "plan_size", _SIZE),
        _figure("drift-over-time", "Drift, δ = 0.01, ε = 1", "over-time", _T, "drift", _DRIFT),
        _figure("error-over-time", "Errors of the answers, δ = 0.01, ε = 1", "over-time", _T, "error_z", _KM),
        _figure("estimate-over-time", "Errors of estimates, δ = 0.01, ε = 1", "over-time", _T, "error_estimate", _KM),
        _figure("error-by-epsilon", "Errors by ε, δ = 0.01", "epsilon", _EPSILON, "error_z", _KM, log_y=True),
        _figure(
            "estimate-by-epsilon", "Errors of estimates by ε, δ = 0.01", "epsilon", _EPSILON, "error_estimate", _KM
        ),
        _figure("size-by-epsilon", "Sizes by ε, δ = 0.01", "epsilon", _EPSILON, "plan_size", _SIZE),
        _figure("size-by-delta", "Sizes by δ, ε = 1", "delta", _DELTA, "plan_size", _SIZE),
        _figure("drift-by-delta", "Drift by δ, ε = 1", "delta", _DELTA, "drift", _DRIFT),
        _figure("error-by-delta", "Errors by δ, ε = 1", "delta", _DELTA, "error_z", _KM),
        _figure(
            "precision", "The 10 nearest places, ε = 1: precision", "ten-places", _K, "precision", "precision", by="who"
        ),
        _figure("recall", "The 10 nearest places, ε = 1: recall", "ten-places", _K, "recall", "recall", by="who"),
    ),
)
