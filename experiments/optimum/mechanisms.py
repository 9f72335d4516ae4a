"""The mechanisms that are compared with the optimum, each as noise and the mean distances that it gives."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from dphmm import SensitivityHull
from dphmm.mechanisms import DiscreteKNorm, LatticeMechanism, OptimalAdditive, OptimalTable, Staircase, choose

# The offset of a staircase is chosen inside `Staircase`, for the mean square; here it is chosen for the distance.
from dphmm.mechanisms.optimal import best_offset, facets_of
from dphmm.types import FloatArray, IntArray
from experiments.optimum.risk import Naming, Noise, World, named

KNORM, PLANAR = "paper: K-norm", "paper: planar Laplace"
DISCRETE, STAIRCASE, AUTO = "discrete-knorm", "staircase", "auto"
DISTANCE_STAIRCASE = "staircase, offset for distance"
OPTIMAL, DISTANCE_OPTIMAL = "optimal-additive", "optimal-additive, for distance"
FITTED = "optimal-additive, fitted to prior and estimate"
#: No noise: a law over the cells for each cell. One is solved for a uniform prior, one for the prior of the place.
TABLE, OWN_TABLE = "optimal-table, uniform prior", "optimal-table, own prior"
TABLES = (TABLE, OWN_TABLE)
METHODS = (KNORM, PLANAR, DISCRETE, STAIRCASE, DISTANCE_STAIRCASE, AUTO, OPTIMAL, DISTANCE_OPTIMAL, FITTED, *TABLES)
#: Ours that add noise; and all of ours.
NOISES, OWN = METHODS[2:-2], METHODS[2:]

#: Below, the programs of fitted noise are large, and there is nothing left to gain.
_LEAST_FITTED = 2.0
#: Fitting starts from what is named after these, too: K-norm noise at a share of ε.
_STARTS = (Fraction(1, 2), Fraction(7, 10))
_MOST_FITS = 8
_GAIN = 1e-6


def measured(
    hull: SensitivityHull, radius: float, epsilon: Fraction, world: World
) -> Iterator[tuple[str, float, float]]:
    """(method, E|noise|, mean distance after naming the best cell) of every method."""
    for name, noise in _continuous(hull, radius, float(epsilon)):
        yield name, noise.raw, named(noise, world)
    known: dict[str, float] = {}
    for name, mechanism in _on_lattice(hull, epsilon):
        noise, told = Noise.on_lattice(mechanism, hull), str(mechanism.describe())
        known[told] = known[told] if told in known else named(noise, world)
        yield name, noise.raw, known[told]
    if epsilon >= _LEAST_FITTED:
        noise, value = fitted(hull, epsilon, world)
        yield FITTED, noise.raw, value


def tables_of(edges: IntArray, epsilon: Fraction, world: World) -> tuple[OptimalTable, OptimalTable]:
    """The best tables for a uniform prior and for the world's own."""
    cells = world.cells
    even = OptimalTable(cells, edges, epsilon, "euclidean")
    return even, OptimalTable(cells, edges, epsilon, "euclidean", prior=world.prior)


def tabled(table: OptimalTable, world: World) -> tuple[float, float]:
    """The mean distances of a table: of its outputs, and after naming the best cell."""
    logs = [table.log_likelihood_lattice(cell, world.cells) for cell in world.cells]
    joint, lengths = world.prior * np.exp(logs), world.lengths
    return float((joint * lengths).sum()), float((joint @ lengths).min(axis=1).sum())


def _continuous(hull: SensitivityHull, radius: float, epsilon: float) -> Iterator[tuple[str, Noise]]:
    """The papers' densities; planar Laplace with ε over the radius keeps ε for all pairs of the policy."""

    def knorm(v: FloatArray) -> FloatArray:
        return np.asarray(-epsilon * np.abs(v @ hull.normals.T / hull.offsets).max(axis=1))

    def planar(v: FloatArray) -> FloatArray:
        return np.asarray(-epsilon / radius * np.linalg.norm(v, axis=1))

    yield KNORM, Noise.continuous(knorm, hull, epsilon)
    yield PLANAR, Noise.continuous(planar, hull, epsilon)


def _on_lattice(hull: SensitivityHull, epsilon: Fraction) -> Iterator[tuple[str, LatticeMechanism]]:
    yield DISCRETE, DiscreteKNorm(hull, epsilon)
    yield STAIRCASE, Staircase(hull, epsilon)
    yield DISTANCE_STAIRCASE, Staircase(hull, epsilon, offset_for_distance(hull, epsilon))
    yield AUTO, choose(hull, epsilon)
    yield OPTIMAL, OptimalAdditive(hull, epsilon)
    yield DISTANCE_OPTIMAL, OptimalAdditive(hull, epsilon, "euclidean")


def offset_for_distance(hull: SensitivityHull, epsilon: Fraction) -> Fraction:
    """The offset of the staircase of least mean distance."""
    facets = facets_of(hull)
    points = facets.within(2 + Fraction(24) / epsilon).points(2)
    return best_offset(facets, epsilon, points, np.linalg.norm(points, axis=1))


def fitted(hull: SensitivityHull, epsilon: Fraction, world: World) -> tuple[Noise, float]:
    """Noise of least mean distance *after* naming, as far as taking turns finds it.

    In turns the best noise for a naming and the best naming for the noise, from a few starts.
    """
    starts: list[LatticeMechanism] = [OptimalAdditive(hull, epsilon, "euclidean")]
    starts += [DiscreteKNorm(hull, epsilon * share) for share in _STARTS]
    ends = [_in_turns(hull, epsilon, world, Naming.best(Noise.on_lattice(m, hull), world)) for m in starts]
    return min(ends, key=lambda end: end[1])


def _in_turns(hull: SensitivityHull, epsilon: Fraction, world: World, naming: Naming) -> tuple[Noise, float]:
    best: tuple[Noise, float] | None = None
    for _ in range(_MOST_FITS):

        def costs(v: IntArray, naming: Naming = naming) -> FloatArray:
            return naming.costs(v, world)

        noise = Noise.on_lattice(OptimalAdditive(hull, epsilon, costs=costs), hull)
        naming = Naming.best(noise, world)
        value = float(noise.weights @ naming.costs(noise.steps, world))
        if best is not None and value > best[1] - _GAIN:
            break
        best = noise, value
    assert best is not None
    return best
