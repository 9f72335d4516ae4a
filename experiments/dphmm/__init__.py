"""Experiment "dphmm": Figures 10 to 13 of the DPHMM paper, with other mechanisms, estimates and smoothing beside them.

Twenty walks of a hundred steps, the first cell known to everybody. Gutil joins cells within a radius, Gtrs cells that
one cell may lead to; both are planned on all possible states. DPLS hides among a δ-location set. What the paper does
not say is chosen so: errors are from the middles of true cells, degrees are counted on the hull that is released with,
and models are fitted to people who are not released.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from experiments.dphmm import runtime, tables
from experiments.drawing import Figure
from experiments.experiment import Cell, Experiment, Own, Row, Settings
from experiments.walks import cells as walks
from experiments.walks.releases import Choices
from experiments.walks.studies import EVERYBODY, FILES, radii, there
from experiments.walks.tables import with_interval

EPSILONS = ("0.1", "0.2", "0.5", "1", "1.5", "2")
_FEW = ("0.5", "1", "2")
#: Of every epsilon: the paper's mechanism, ours, and geo-indistinguishability at the same guarantee.
PAPERS, OURS, PLANAR_LAPLACE = "planar-isotropic", "auto", "planar-laplace"
MECHANISMS = (PAPERS, OURS, PLANAR_LAPLACE)
#: At epsilon 1 also.
OTHERS = ("knorm", "laplace", "discrete-knorm", "staircase")


def cells(settings: Settings) -> list[Cell]:
    """Every release, and the times that releases take."""
    found = list(walks.studied(settings, _few if settings.quick else _all))
    return found + [cell for data in there(settings) for cell in runtime.cells(data, settings.quick)]


def _all(data: str) -> Iterator[Choices]:
    for policy in walks.policies(data, OURS):
        for epsilon in EPSILONS:
            yield from (replace(policy, mechanism=name, epsilon=epsilon) for name in MECHANISMS)
        yield from (replace(policy, mechanism=name) for name in OTHERS)
        yield from (replace(policy, mechanism=name, fit=EVERYBODY) for name in (PAPERS, OURS))
    util, trans, _ = walks.policies(data, OURS)
    yield from (replace(util, mechanism=name, radius=r) for r in _other_radii(data) for name in MECHANISMS)
    for policy in (util, trans):
        yield from (replace(policy, mechanism=name, delta=walks.DELTA) for name in (PAPERS, OURS))


def _few(data: str) -> Iterator[Choices]:
    for policy in walks.policies(data, OURS):
        for epsilon in _FEW:
            yield from (replace(policy, mechanism=name, epsilon=epsilon) for name in (PAPERS, OURS))
    yield from (replace(walks.policies(data, PAPERS)[0], radius=r) for r in _other_radii(data))


def _other_radii(data: str) -> list[float]:
    default, varied = radii(data)
    return [r for r in varied if r != default]


def measure(settings: Settings, cell: Cell, seed: np.random.SeedSequence) -> list[Row]:
    """The rows of a cell: over all steps; at epsilon 1 step by step and of all walks together, too."""
    if cell["part"] == "skipped":
        return [{"method": "skipped"}]
    if cell["part"] == "runtime":
        return runtime.measure(settings, cell)
    study, choices, steps = walks.released(settings, cell, seed)
    rows = [walks.overall(steps)]
    if choices.epsilon == "1" and choices.radius in (None, radii(study.name)[0]):
        rows += [*walks.over_time(steps), *walks.analytics(study, steps)]
    return walks.labelled(rows, choices)


_figure = partial(with_interval, by="method", log_y=True)
_T, _EPSILON, _RADIUS = ("t", "timestamp"), ("epsilon", "ε"), ("radius_km", "radius of Gutil, km")
_DEGREE, _ERROR = "degree of protection of the true state", "error, km"

EXPERIMENT = Experiment(
    name="dphmm",
    title="Releases under policy graphs: the DPHMM paper's figures",
    source="DPHMM: Customizable Data Release with Differential Privacy via Hidden Markov Model (2016), Figures 10-13",
    cells=cells,
    measure=measure,
    tables=tables.tables,
    printed=tables.printed,
    setting="The first cell of every walk is known",
    files=tuple(FILES.values()),
    takes_own=Own,
    figures=(
        Figure(
            "figure-10-runtime",
            "Figure 10: seconds to plan a step anew, and to release it",
            "runtime",
            x="t",
            y="seconds",
            by="what",
            x_label="timestamp",
            y_label="seconds",
            panels="data",
            log_y=True,
        ),
        _figure(
            "figure-11-degree", "Figure 11, left: the paper's mechanism, ε = 1", "over-time", _T, "degree", _DEGREE
        ),
        _figure(
            "figure-11-error", "Figure 11, right: the paper's mechanism, ε = 1", "over-time", _T, "error_z", _ERROR
        ),
        _figure(
            "figure-11-estimate", "Estimates from the same releases, ε = 1", "over-time", _T, "error_estimate", _ERROR
        ),
        _figure("figure-12-degree", "Figure 12, left", "epsilon", _EPSILON, "degree", _DEGREE),
        _figure("figure-12-error", "Figure 12, right: the paper's mechanism", "epsilon", _EPSILON, "error_z", _ERROR),
        _figure("figure-13-degree", "Figure 13, left, ε = 1", "radius", _RADIUS, "degree", _DEGREE),
        _figure("figure-13-error", "Figure 13, right, ε = 1", "radius", _RADIUS, "error_z", _ERROR),
        with_interval(
            "mechanisms",
            "Mechanisms and what is read of them, by policy and ε",
            "mechanisms",
            _EPSILON,
            "error",
            _ERROR,
            by="reading",
            panels="panel",
            log_y=True,
        ),
    ),
)
