"""The mechanisms that are compared with the optimum, each as noise and the mean distances that it gives."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from dphmm.mechanisms import DiscreteKNorm, LatticeMechanism, OptimalTable, Staircase, choose

# `Staircase` takes the best of these offsets for the mean square; here it is the best for the distance.
from dphmm.mechanisms.knorm import Breakpoints, lattice_body
from dphmm.sensitivity import SensitivityHull
from dphmm.types import FloatArray, IntArray
from experiments.optimum.risk import Noise, World, named

KNORM, PLANAR = "paper: K-norm", "paper: planar Laplace"
DISCRETE, STAIRCASE, AUTO = "discrete-knorm", "staircase", "auto"
DISTANCE_STAIRCASE = "staircase, offset for distance"
#: No noise: a law over the cells for each cell. One is solved for a uniform prior, one for the prior of the place.
TABLE, OWN_TABLE = "optimal-table, uniform prior", "optimal-table, own prior"
TABLES = (TABLE, OWN_TABLE)
METHODS = (KNORM, PLANAR, DISCRETE, STAIRCASE, DISTANCE_STAIRCASE, AUTO, *TABLES)
#: Ours that add noise; and all of ours.
NOISES, OWN = METHODS[2:-2], METHODS[2:]


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


def offset_for_distance(hull: SensitivityHull, epsilon: Fraction) -> Fraction:
    """The offset of the staircase of least mean distance, the first of equals."""
    points = Breakpoints.of(hull, lattice_body(hull), epsilon)
    assert points is not None
    offsets = [points.fraction(number) for number in range(len(points.parts))]
    distances = [Noise.on_lattice(Staircase(hull, epsilon, offset), hull).raw for offset in offsets]
    return offsets[int(np.argmin(np.round(np.array(distances) / max(distances), 9)))]
