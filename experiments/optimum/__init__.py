"""Experiment "optimum": how far every mechanism is from the best that any mechanism could be.

On small grids the best mechanism for a prior and a policy is the solution of a linear program over all mechanisms
(`dphmm.mechanisms.table_program`). Beside it stand the mean distances of the papers' continuous mechanisms and of ours,
of what comes out and after naming the best cell (the Bayes estimate for distance). All is computed, nothing is drawn:
the seed has no part in it.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np

from dphmm.mechanisms import Staircase

# The linear program itself: `OptimalTable` rounds its solution to an exact mechanism.
from dphmm.mechanisms.table_program import Problem, optimum
from dphmm.policy import radius as within
from dphmm.sensitivity import sensitivity_hull
from experiments.drawing import Figure
from experiments.experiment import Cell, Experiment, Row, Settings
from experiments.optimum import tables
from experiments.optimum.mechanisms import (
    DISTANCE_STAIRCASE,
    TABLES,
    measured,
    offset_for_distance,
    tabled,
    tables_of,
)
from experiments.optimum.risk import PRIORS, Noise, named, world

EPSILONS = ("0.5", "1", "2", "3", "4")
#: Sides and radii, in cells.
GRIDS = ((6, "1.5"), (7, "2.3"), (8, "1.5"), (8, "2.3"), (8, "3.2"))
#: Sides on which the influence of the edge is measured, for one radius, prior and ε.
SIDES = (4, 6, 8, 10, 12, 14)
_EDGE = ("1.5", "uniform", "4")


def cells(settings: Settings) -> list[Cell]:
    """Every grid, prior and ε, noise and then tables; then grids of growing size."""
    if settings.quick:
        places = [(5, "1.5", prior, epsilon) for prior in PRIORS for epsilon in ("1", "3")]
        places += [(6, "1.5", "peak", epsilon) for epsilon in ("1", "2", "4")]
    else:
        places = [(*grid, prior, epsilon) for grid, prior, epsilon in product(GRIDS, PRIORS, EPSILONS)]
    found = [_cell(part, *place) for part in ("grid", "table") for place in places]
    return [*found, *(_cell("edge", side, *_EDGE) for side in SIDES[: 3 if settings.quick else None])]


def _cell(part: str, side: int, radius: str, prior: str, epsilon: str) -> Cell:
    return {"part": part, "side": side, "radius": radius, "prior": prior, "epsilon": epsilon}


def measure(settings: Settings, cell: Cell, seed: np.random.SeedSequence) -> list[Row]:
    """The optimum, and the mean distances of every mechanism."""
    side, radius, epsilon = int(cell["side"] or 0), float(str(cell["radius"])), Fraction(str(cell["epsilon"]))
    place = world(side, str(cell["prior"]))
    policy = within(place.cells, radius)
    edges, hull = policy.edges(None), sensitivity_hull(policy, place.cells)
    best = optimum(Problem(place.cells, place.lengths, place.prior, edges), float(epsilon))
    if cell["part"] == "edge":
        noise = Noise.on_lattice(Staircase(hull, epsilon, offset_for_distance(hull, epsilon)), hull)
        found = [(DISTANCE_STAIRCASE, noise.raw, named(noise, place))]
    elif cell["part"] == "table":
        found = [
            (name, *tabled(table, place)) for name, table in zip(TABLES, tables_of(edges, epsilon, place), strict=True)
        ]
    else:
        found = list(measured(hull, radius, epsilon, place))
    program: Row = {"optimum": best.value, "bound": best.bound, "unknowns": best.unknowns}
    return [{"method": method, "raw": raw, "estimate": value, **program} for method, raw, value in found]


EXPERIMENT = Experiment(
    name="optimum",
    title="Mechanisms beside the best that any linear program finds",
    source="no paper's: the question that their comparisons leave open",
    cells=cells,
    measure=measure,
    tables=tables.tables,
    figures=(
        Figure(
            "ratios",
            "Mean distance after the estimate over the optimum: the worst of all priors",
            "lines",
            x="epsilon",
            y="ratio",
            by="method",
            x_label="ε",
            y_label="distance over the optimum",
            panels="grid",
        ),
        Figure(
            "edge",
            "The edge of the grid: radius 1.5, uniform prior, ε = 4",
            "edge",
            x="side",
            y="ratio",
            by="method",
            x_label="cells on a side",
            y_label="distance over the optimum",
        ),
    ),
)
