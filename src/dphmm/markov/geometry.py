"""Models from geometry alone: the same law of displacements from every cell of a map, and nobody's data.

From each cell a subject stays with a public probability. Otherwise it moves to another cell within reach, the largest
speed times the step, with weights that fall with the distance d between the centres: exp(-3 d / reach). The law is the
same everywhere. On a grid a move that would leave the box does not happen, axis by axis: a subject at the east wall
that would go north-east goes north. On a cover of H3 cells a move to a cell that is no state does not happen at all.
Of zones d is between their answers, and the zone with the most others near is the one that moves as often as the law
says; the others stay more.
So the matrix is symmetric and the uniform distribution, in which the model starts, stays as it is.

Source: the falling weights are those of a displacement kernel, docs/guide.md; walls as in docs/proofs/couplings.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from dphmm._checks import finite_number
from dphmm.errors import InvalidInput
from dphmm.markov.stochastic import ModelParts
from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.maps import parse_duration, parse_speed
from dphmm.states.zones import Zones
from dphmm.types import FloatArray, IntArray

if TYPE_CHECKING:
    from dphmm.markov.model import MarkovModel
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace

#: What the provenance of a model from geometry alone calls its origin.
GEOMETRY = "geometry"
#: Most entries of the matrix: states times the cells within reach of one.
MOST_MOVES = 2 * 10**7
#: Weights fall by this power of e from no distance to the reach.
_FALLS = 3.0
#: Chances that are guesses, as all of a model from geometry: of staying for a step, and of a jump.
STAY = 0.9
JUMP = 0.001
#: Chances that differ by less are one: what a row gathers at a wall is a sum.
_ALIKE = 1e-12


def parts_from_geometry(
    space: StateSpace, step: object, max_speed: object, stay: object = STAY, jump: object = JUMP
) -> ModelParts:
    """See `dphmm.MarkovModel.from_geometry`."""
    if not isinstance(space, (Grid, H3, Zones)) or len(space.merges):
        raise InvalidInput("space", type(space).__name__, "a Grid, an H3 or Zones, without merged cells")
    if space.n_states < 2:
        raise InvalidInput("space", "one cell", "two or more: smaller cells, or a larger box")
    seconds, speed = parse_duration(step, "step"), parse_speed(max_speed, "max_speed")
    stays = finite_number(stay, "stay")
    if not 0 <= stays < 1:
        raise InvalidInput("stay", stay, "a probability, less than 1")
    reach = speed * seconds
    cells: int | None
    if isinstance(space, Grid):
        matrix, cells = _of_grid(space, reach, stays)
    elif isinstance(space, Zones):
        matrix, cells = _of_zones(space, float(reach), stays), None
    else:
        matrix, cells = _of_hexes(space, reach, stays)
    provenance = {
        "method": GEOMETRY,
        "kernel": f"stay {stays:g}, else exp(-{_FALLS:g} d / reach)",
        "max_speed": f"{float(speed):g} m/s",
        **({} if cells is None else {"reach_cells": cells}),
    }
    return uniform_parts(space, matrix, seconds, jump, provenance)


def uniform_parts(
    space: StateSpace, matrix: Any, step: int | None, jump: object, provenance: dict[str, Any]
) -> ModelParts:
    """Of a model of these moves that starts anywhere alike; ``jump``: a probability as it was typed, 0 for none."""
    rate = 0.0 if jump is None else finite_number(jump, "jump")
    initial = np.full(space.n_states, 1.0 / space.n_states)
    return ModelParts(initial, matrix, space, step, provenance, rate or None)


def couples_along_radius(model: MarkovModel) -> bool | None:
    """Whether a model couples along every radius policy; None where that is not known without a look at a policy.

    It does where it starts anywhere alike, on a whole grid of five cells or more on each side, and draws the same move
    everywhere, of at most two cells on an axis and symmetric on each; a uniform jump changes nothing of that. All of it
    is looked at here. Else `dphmm.accounting.couplable` decides it, for a policy.

    Source: docs/proofs/couplings.md.
    """
    space, jump = model.space, model.jump
    if not isinstance(space, Grid) or min(space.columns, space.rows) < 5:
        return None
    if space.n_states != space.columns * space.rows:
        return None
    if np.ptp(model.initial) > 0 or (jump is not None and np.ptp(jump.into) > 0):
        return None
    middle = int(space._states_of_cells[space.rows // 2, space.columns // 2])
    moves = model.matrix[[middle]].tocoo()
    dx, dy = (space.lattice[moves.coords[1]] - space.lattice[middle]).T
    chance = dict(zip(zip(dx.tolist(), dy.tolist(), strict=True), moves.data.tolist(), strict=True))
    if any(max(abs(x), abs(y)) > 2 for x, y in chance):
        return None
    turned = [(each, to) for (x, y), each in chance.items() for to in ((-x, y), (x, -y))]
    even = all(abs(each - chance.get(to, 0.0)) <= _ALIKE for each, to in turned)
    stay = chance.pop((0, 0), 0.0)
    steps = np.array([*chance]).reshape(-1, 2)
    everywhere = _walled(space, steps[:, 0], steps[:, 1], np.array([*chance.values()]), stay)
    return True if even and abs(everywhere - model.matrix).max() <= _ALIKE else None


def couples_along(model: MarkovModel, policy: PolicyGraph) -> bool | None:
    """Whether a model is known to couple along a policy; None where it is not. Quick: for statements."""
    return couples_along_radius(model) if policy.kind == "radius" else None


def _of_grid(grid: Grid, reach: Fraction, stay: float) -> tuple[Any, int]:
    """The matrix, and how many cells the longest move takes on an axis."""
    size = grid.frame.exact_pitch[0]
    most = int(reach / size)
    if most < 1:
        raise _stuck(reach, float(size))
    # Longer moves than the box is wide or high are none of the law.
    across, up = min(most, grid.columns - 1), min(most, grid.rows - 1)
    dx, dy = np.meshgrid(np.arange(-across, across + 1), np.arange(-up, up + 1))
    squares = dx**2 + dy**2
    near = (squares > 0) & (squares <= int((reach / size) ** 2))
    dx, dy, squares = dx[near], dy[near], squares[near]
    if len(dx) * grid.n_states > MOST_MOVES:
        raise _too_many(grid.n_states, len(dx))
    weights = _weights(np.sqrt(squares) * (float(size) / float(reach)))
    chance = (1.0 - stay) * weights / weights.sum()
    return _walled(grid, dx, dy, chance, stay), most


def _walled(grid: Grid, dx: IntArray, dy: IntArray, chance: FloatArray, stay: float) -> Any:
    """The matrix of one law of moves (m,) from every cell: what would leave the box is not made, axis by axis."""
    from scipy import sparse

    column, row = grid.lattice.T
    states = np.arange(grid.n_states)
    rows, columns, chances = [states], [states], [np.full(grid.n_states, stay)]
    for x, y, each in zip(dx.tolist(), dy.tolist(), chance.tolist(), strict=True):
        to_column = np.where((column + x >= 0) & (column + x < grid.columns), column + x, column)
        to_row = np.where((row + y >= 0) & (row + y < grid.rows), row + y, row)
        to = grid._states_of_cells[to_row, to_column]
        rows.append(states)
        columns.append(np.where(to >= 0, to, states))
        chances.append(np.full(grid.n_states, each))
    entries = (np.concatenate(chances), (np.concatenate(rows), np.concatenate(columns)))
    return sparse.coo_array(entries, shape=(grid.n_states, grid.n_states)).tocsr()


def _of_hexes(space: H3, reach: Fraction, stay: float) -> tuple[Any, int]:
    """The same of hexagons; distances are those of rings, each as far from the last as neighbours' centres are."""
    import h3.api.basic_int as h3
    from scipy import sparse

    apart = float(h3.average_hexagon_edge_length(space.resolution, unit="m")) * 3**0.5
    if reach < apart:
        raise _stuck(reach, apart)
    # No two cells are more rings apart than there are cells; limits below come first.
    most = min(int(float(reach) / apart), space.n_states - 1)
    rings = np.arange(1, most + 1)
    if 3 * most * (most + 1) * space.n_states > MOST_MOVES:
        raise _too_many(space.n_states, 3 * most * (most + 1))
    weights = _weights(rings * (apart / float(reach)))
    # As many cells as a ring of hexagons has; one around a pentagon has fewer, and what is left stays put.
    chance = (1.0 - stay) * weights / (6 * rings * weights).sum()
    state_of = {cell: state for state, cell in enumerate(space.cells.tolist())}
    rows: list[int] = []
    columns: list[int] = []
    chances: list[float] = []
    for state, cell in enumerate(space.cells.tolist()):
        seen, moved = {cell}, 0.0
        for ring in range(1, most + 1):
            reached = set(h3.grid_disk(cell, ring))
            to = [state_of[other] for other in reached - seen if other in state_of]
            seen = reached
            rows += [state] * len(to)
            columns += to
            chances += [float(chance[ring - 1])] * len(to)
            moved += float(chance[ring - 1]) * len(to)
        rows.append(state)
        columns.append(state)
        chances.append(max(0.0, 1.0 - moved))
    return sparse.coo_array((chances, (rows, columns)), shape=(space.n_states, space.n_states)).tocsr(), most


def _of_zones(space: Zones, reach: float, stay: float) -> Any:
    """The same of zones, by the distances of their answers on the ground; a zone with fewer others near stays more.

    Every zone moves to another one as often as that one to it, and the busiest stays with the given chance.
    """
    from scipy import sparse

    if space.n_states**2 > MOST_MOVES:
        raise _too_many(space.n_states, space.n_states)
    points = space.own_answers
    apart = space.distances(points[:, None], points[None])
    np.fill_diagonal(apart, np.inf)
    if apart.min() > reach:
        raise _stuck(Fraction(reach), float(apart.min()))
    weights = np.where(apart <= reach, _weights(np.minimum(apart, reach) / reach), 0.0)
    chance = (1.0 - stay) * (weights + weights.T) / 2
    chance /= weights.sum(axis=1).max()
    np.fill_diagonal(chance, np.maximum(0.0, 1.0 - chance.sum(axis=1)))
    return sparse.csr_array(chance)


def _weights(share: Any) -> FloatArray:
    """Of moves by these shares of the reach."""
    return np.asarray(np.exp(-_FALLS * share), dtype=np.float64)


def _stuck(reach: Fraction, cell: float) -> InvalidInput:
    came = f"{float(reach):.6g} metres in a step, less than the {cell:.6g} metres to the next cell: nobody would move"
    return InvalidInput("max_speed", came, "a higher speed, a longer step or smaller cells")


def _too_many(states: int, moves: int) -> InvalidInput:
    came = f"{states} cells with {moves} others within reach of each, {states * moves:,} moves"
    return InvalidInput("max_speed", came, f"at most {MOST_MOVES:,}: larger cells, a lower speed, or a shorter step")
