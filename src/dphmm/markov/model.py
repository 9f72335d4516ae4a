"""The Markov model: where a subject can be, and where it can go next.

A model is an initial distribution p (N,) and a transition matrix M (N, N) whose entry M[i, j] is the
probability of going from state i to state j in one step. Its *structure*, the stored entries of M, matters as
much as its values: a release hides a state only among those that the public history does not exclude, and
exclusion is decided by structure. So a zero is never stored, and anything stored is possible, however small.

A model may have a *jump* (`dphmm.markov.stochastic`) beside M: then every move is possible, and only what says so
reads M by itself.

A model may have *secrets*: then its states are latent, and what is answered and hidden of latent state x is its secret
``secrets[x]``. The chain moves over latent states; releases are planned on secrets. A chain of second order has pairs
of places as latent states, and the later place as their secret. Source: docs/proofs/secrets.md.

A model may have *slots*: K matrices, of which the slot of the step that a move leaves says which one moves it
(`dphmm.markov.slots`). All have the same stored moves, unless there is a jump, so which states are possible does not
depend on slots. Times of such a model are numbers of steps: time bins since 1970, or positions from 1.

State i is *absorbing* if M[i, i] = 1. A *closed class* is a set of states that can all reach each other and
that no move leaves: with several of them, the class a subject ends in is for ever told apart from the others
by the support.

`MarkovModel.from_geometry` makes a model from geometry alone: the same law of displacements from every cell of a map,
and nobody's data. From each cell a subject stays with a public probability. Otherwise it moves to another cell within
reach, the largest speed times the step, with weights that fall with the distance d between the centres:
exp(-3 d / reach). The law is the same everywhere. On a grid a move that would leave the box does not happen, axis by
axis: a subject at the east wall that would go north-east goes north. On a cover of H3 cells a move to a cell that is no
state does not happen at all. Of zones d is between their answers, and the zone with the most others near is the one
that moves as often as the law says; the others stay more. So the matrix is symmetric and the uniform distribution, in
which the model starts, stays as it is. Source: the falling weights are a displacement kernel's, docs/commands.md;
walls as in docs/proofs/couplings.md.

`notes` are remarks about a model that is valid but may surprise: printed by whoever loads it, never raised.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm._checks import finite_number, one_of, state_mask
from dphmm.accounting.moments import first_number
from dphmm.errors import InvalidInput
from dphmm.markov.slots import Slots
from dphmm.markov.stochastic import (
    NO_SHARE,
    Jump,
    ModelParts,
    Stochastic,
    canonical,
    check_space,
    checked_step,
    distribution,
    fixed,
    many,
    refuse_slots,
    some,
    stochastic_matrix,
)
from dphmm.states.grid import Grid
from dphmm.states.hexes import H3
from dphmm.states.maps import parse_duration, parse_speed
from dphmm.states.zones import Zones
from dphmm.types import BoolArray, Exact, FloatArray, IntArray, Predecessors, States

if TYPE_CHECKING:
    from dphmm.policy.graph import PolicyGraph
    from dphmm.states.space import StateSpace


#: What the provenance of a model from geometry alone calls its origin.
GEOMETRY = "geometry"
#: The same of a model learned from released answers.
ANSWERS = "released answers"
#: Most entries of the matrix: states times the cells within reach of one.
MOST_MOVES = 2 * 10**7
#: Weights fall by this power of e from no distance to the reach.
_FALLS = 3.0
#: Chances that are guesses, as all of a model from geometry: of staying for a step, and of a jump.
STAY = 0.9
JUMP = 0.001
#: Slots are looked up for so many moves at a time.
_RUN = 2**16
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
    """The parts of a model with these moves and a uniform start; ``jump``: a probability as typed, 0 for none."""
    rate = 0.0 if jump is None else finite_number(jump, "jump")
    initial = np.full(space.n_states, 1.0 / space.n_states)
    return ModelParts(initial, matrix, space, step, provenance, rate or None)


def couples_along_radius(model: MarkovModel) -> bool | None:
    """True if a model is known to couple along every radius policy; None if a policy has to be looked at.

    It does if it starts anywhere alike, on a whole grid of five cells or more on each side, and draws the same move
    everywhere, of at most two cells on an axis and symmetric on each; a uniform jump changes nothing of that. All of it
    is looked at here. Else `dphmm.accounting.couplable` decides it, for a policy.

    Source: docs/proofs/couplings.md.
    """
    space, jump = model.space, model.jump
    if (
        model.slots is not None
        or model.secrets is not None
        or not isinstance(space, Grid)
        or min(space.columns, space.rows) < 5
    ):
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
    even = all(abs(each - chance.get(to, 0.0)) <= _ALIKE * each for each, to in turned)
    stay = chance.pop((0, 0), 0.0)
    steps = np.array([*chance]).reshape(-1, 2)
    everywhere = _walled(space, steps[:, 0], steps[:, 1], np.array([*chance.values()]), stay)
    # A move is compared relative to itself: a rare one that is not the walk's tells of it as well.
    apart = abs(everywhere - model.matrix) - _ALIKE * everywhere.maximum(model.matrix)
    return True if even and apart.max() <= 0 else None


def couples_along(model: MarkovModel, policy: PolicyGraph) -> bool | None:
    """True if a model is known to couple along a policy; else None. Quick: for statements."""
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
    """The matrix of one law of moves (m,) from every cell: a move out of the box is not made, axis by axis."""
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
    """The weights of moves by their shares of the reach."""
    return np.asarray(np.exp(-_FALLS * share), dtype=np.float64)


def _stuck(reach: Fraction, cell: float) -> InvalidInput:
    fault = f"{float(reach):.6g} metres in a step, less than the {cell:.6g} metres to the next cell: nobody would move"
    return InvalidInput("max_speed", fault, "a higher speed, a longer step or smaller cells")


def _too_many(states: int, moves: int) -> InvalidInput:
    fault = f"{states} cells with {moves} others within reach of each, {states * moves:,} moves"
    return InvalidInput("max_speed", fault, f"at most {MOST_MOVES:,}: larger cells, a lower speed, or a shorter step")


class MarkovModel:
    """A Markov chain on states 0..N-1, immutable.

    Parameters
    ----------
    initial : (N,) probabilities, summing to 1 within 1e-9.
    transition : (N, N) probabilities, dense (up to 20,000 states) or scipy.sparse; rows sum to 1 within 1e-9
        (1e-6 in float32) and are divided by their sum once. A zero is no possible move, even a stored one;
        5e-324 is. With slots a list of such matrices, one for each.
    space : the states' names and answers, if they have any.
    step : seconds between two times, or None where time is only counted.
    start : "before": ``initial`` describes t = 0, and the first release, t = 1, follows one transition.
        "at": it describes t = 1.
    provenance : JSON-able record of where the model is from. ``{"method": "given"}`` by default.
    jump : a probability, or a `Jump`: at each step the chain jumps with it to any state alike (or by the law of the
        `Jump`), whatever ``transition`` says. Then no move is impossible. 0 or None for none.
    secrets : (N,) the secret of each latent state, numbers 0..S-1 that all occur; ``space`` has the secrets then. None
        where each state is its own secret. Only secrets are hidden, not what else a latent state says.
    slots : `Slots`, which say which of the matrices moves a step; None for one matrix.

    Raises InvalidInput, naming row and value.

    >>> model = MarkovModel([1, 0, 0], [[0, 1, 0], [0, 0, 1], [0, 0, 1]], jump=0.001)
    >>> model.reach(model.support_at_start).tolist()
    [True, True, True]
    """

    def __init__(
        self,
        initial: Any,
        transition: Any,
        *,
        space: StateSpace | None = None,
        step: int | None = None,
        start: str = "before",
        provenance: dict[str, Any] | None = None,
        jump: Jump | float | str | None = None,
        secrets: Any = None,
        slots: Slots | None = None,
    ) -> None:
        checked = _matrices(transition, slots)
        self.n_states: int = checked[0].matrix.shape[0]
        self.initial: FloatArray = distribution(initial, self.n_states)
        self.start = one_of(start, ("before", "at"), "start")
        self.step = checked_step(step)
        self.secrets = _secrets(secrets, self.n_states)
        #: S, the number of secrets: of states where each is its own.
        self.n_secrets: int = self.n_states if self.secrets is None else int(self.secrets.max()) + 1
        check_space(space, self.n_secrets)
        self.space = space
        self._provenance = _json({"method": "given"} if provenance is None else provenance)
        self.jump = _jump(jump, self.n_states)
        #: None where every move has the one matrix, as with a single slot.
        self.slots = slots if len(checked) > 1 else None
        if self.slots is not None and self.slots.by_clock and self.step is None:
            raise InvalidInput("step", "none", "seconds between two steps: slots go by the clock")
        #: How far numbers of steps are ahead of times, where these are counted from an origin.
        self._ahead: int | None = None
        self._rescaled = (sum(slot.n_rescaled for slot in checked), max(slot.worst for slot in checked))
        self._rows = _sharing_moves([slot.matrix for slot in checked], may_differ=self.jump is not None)
        self.initial.setflags(write=False)

    @cached_property
    def occupancy_weights(self) -> IntArray | None:
        """The time in each secret (S,), of all 2**32 times: its initial distribution if that is one of occupancy.

        None otherwise: a long-run law is no substitute, for a few absorbing states may own all of it.
        """
        if self.provenance.get("initial") != "occupancy":
            return None
        return np.rint(self.summed(self.initial) * 2.0**32).astype(np.int64)

    def secrets_among(self, possible: BoolArray) -> BoolArray:
        """The secrets (S,) of the latent states of a mask (N,)."""
        if self.secrets is None:
            return possible
        mask = np.zeros(self.n_secrets, dtype=np.bool_)
        mask[self.secrets[possible]] = True
        return mask

    def lifted(self, values: FloatArray) -> FloatArray:
        """Values (S, ...) of secrets as those of latent states (N, ...)."""
        return values if self.secrets is None else values[self.secrets]

    def summed(self, weights: FloatArray) -> FloatArray:
        """The sums (S, ...) over the latent states of each secret, in their order, of weights (N, ...)."""
        if self.secrets is None:
            return weights
        if weights.ndim == 1:
            return np.asarray(np.bincount(self.secrets, weights=weights), dtype=np.float64)
        members = sparse.csr_array((np.ones(self.n_states), (self.secrets, np.arange(self.n_states))))
        sums: FloatArray = members @ weights.reshape(self.n_states, -1)
        return sums.reshape(-1, *weights.shape[1:])

    @classmethod
    def fit(cls, sequences: Any, n_states: int, **options: Any) -> MarkovModel:
        """The maximum-likelihood model of integer sequences; options as in :func:`dphmm.markov.fit`."""
        from dphmm.markov.estimate import estimate

        return cls(**estimate(sequences, n_states, **options)[0]._asdict())

    @classmethod
    def fit_private(cls, sequences: Any, n_states: int, epsilon: Exact, max_length: int, **options: Any) -> MarkovModel:
        """A model learned with differential privacy: whoever is in the data or not, the model tells little of it.

        Parameters
        ----------
        sequences : arrays of state numbers, one a trip; or one array (U, T), -1 for none.
        n_states : the number of states; public.
        epsilon : the privacy loss of the whole fit.
        max_length : the number of steps of a person that count; public.
        options : as in :func:`dphmm.markov.private.fit_chain`, such as ``owners``, whose trips are whose.

        Raises InvalidInput as that function does.

        Examples
        --------
        >>> import dphmm
        >>> walks = [[0, 1, 1, 0], [1, 1, 0]]
        >>> model = dphmm.MarkovModel.fit_private(walks, 2, 1, 4, bits=dphmm.ReplayBits(1))
        >>> model.n_states
        2

        Source: docs/learning.md, docs/proofs/learning.md.
        """
        from dphmm.markov.private.planned import learn

        return cls(**learn(sequences, n_states, epsilon, max_length, **options)[0]._asdict())

    @classmethod
    def second_order(
        cls,
        base: MarkovModel,
        sequences: Any = None,
        *,
        weight: float | None = None,
        epsilon: Exact | None = None,
        max_length: int | None = None,
        **options: Any,
    ) -> MarkovModel:
        """A chain whose next place depends on the place before, too: its states are pairs of places, which are secrets.

        Parameters
        ----------
        base : a model of the places, whose moves are the pairs that may occur: from geometry, or fitted.
        sequences : arrays of state numbers of the base, to count from; None for a chain that moves as the base does.
        weight : the number of moves that the base's row is worth beside the counts; 5. Not with epsilon.
        epsilon, max_length, options : for a fit with differential privacy, as in
            :func:`dphmm.markov.private.fit_second_order`.

        Releases hide where somebody is, not where they were before. Raises InvalidInput for a base with secrets.

        Examples
        --------
        >>> import dphmm
        >>> base = dphmm.MarkovModel([1 / 3] * 3, [[0.5, 0.5, 0], [0.3, 0.4, 0.3], [0, 0.5, 0.5]])
        >>> model = dphmm.MarkovModel.second_order(base, [[0, 1, 2, 1, 0, 1, 2]], weight=1)
        >>> model.n_states, model.n_secrets, model.secrets.tolist()
        (7, 3, [0, 1, 0, 1, 2, 1, 2])

        Source: docs/learning.md, docs/proofs/secrets.md.
        """
        if not isinstance(base, MarkovModel):
            raise InvalidInput("base", type(base).__name__, "a MarkovModel, such as MarkovModel.from_geometry gives")
        if epsilon is not None:
            from dphmm.markov.private.second_order import learn

            if weight is not None:
                raise InvalidInput("weight", weight, "none with epsilon: how much is believed follows from the noise")
            paths = [] if sequences is None else sequences
            return cls(**learn(paths, base, epsilon, max_length, **options)[0]._asdict())
        if max_length is not None or options:
            raise InvalidInput(min([*options, "max_length"]), "a choice of a private fit", "epsilon beside it")
        from dphmm.markov.second_order import second_order

        return cls(**second_order(base, sequences, weight)._asdict())

    @classmethod
    def from_geometry(
        cls, space: StateSpace, step: object, max_speed: object, *, stay: object = 0.9, jump: object = 0.001
    ) -> MarkovModel:
        """A model of a `Grid` or of `H3` cells without anybody's data: stay, or move within reach, the same everywhere.

        Parameters
        ----------
        space : all cells of a map, which has to be public.
        step : seconds between two times, or "10min".
        max_speed : metres per second, or "60km/h": nobody moves farther in a step than at this speed, but by a jump.
        stay : the probability of staying in a cell for a step; a guess, as all of this model is.
        jump : the probability of a jump to any cell alike, with which no path is impossible; 0 for none.

        Every other move, by d between centres, has a weight of exp(-3 d / reach), reach = max_speed * step; moves that
        would leave the map do not happen. Whether these guesses fit decides errors, and no promise.

        Raises InvalidInput for other spaces, a reach shorter than the way to the next cell, and over 2 * 10**7 moves.

        >>> import dphmm
        >>> grid = dphmm.Grid.from_bounds(13.3, 52.5, 13.4, 52.55, "500m")
        >>> model = dphmm.MarkovModel.from_geometry(grid, "10min", "6km/h")
        >>> model.n_states, model.step, model.jump.rate
        (168, 600, 0.001)

        Source: docs/commands.md, model.
        """
        return cls(**parts_from_geometry(space, step, max_speed, stay, jump)._asdict())

    @property
    def transition(self) -> Any:
        """M as a canonical csr_array over read-only arrays, no zeros stored.

        Raises InvalidInput for a model with a jump, whose moves are not these alone: see `without_jump`.
        """
        if self.jump is not None:
            fault = f"a jump of {self.jump.rate:g}: every move is possible, and no sparse matrix holds them all"
            raise InvalidInput("model", fault, "a model without one: its without_jump(), or one made with --jump 0")
        return self.matrix

    @property
    def matrix(self) -> Any:
        """M beside the jump, if there is one: a csr_array as ``transition``.

        Raises InvalidInput for a model with slots: see ``matrices``.
        """
        refuse_slots(self, "this")
        return self.matrices[0]

    @property
    def matrices(self) -> tuple[Any, ...]:
        """The matrices (K) of the slots beside the jump, each a csr_array as ``transition``."""
        # New wrappers each time: scipy replaces the arrays of a matrix that is pruned or assigned to.
        return tuple(self._matrix(slot) for slot in range(len(self._rows)))

    def _matrix(self, slot: int) -> Any:
        rows, shape = self._rows[slot], (self.n_states, self.n_states)
        matrix = sparse.csr_array((rows.data, rows.indices, rows.indptr), shape=shape)
        matrix.has_canonical_format = True
        return matrix

    @cached_property
    def moves(self) -> Any:
        """The stored moves of all slots as a csr_array (N, N), with the mean of the slots' probabilities."""
        matrices = self.matrices
        return matrices[0] if self.slots is None else canonical(sum(matrices[1:], matrices[0]) / len(matrices))

    @property
    def n_transitions(self) -> int:
        """The number of possible moves, in some slot; with a jump, those of the matrices beside it."""
        return len(self._rows[0].data) if self.slots is None else int(self.moves.nnz)

    def with_jump(self, rate: Any, into: Any = None) -> MarkovModel:
        """The same model with a jump of this rate into every state alike, or by a law ``into`` (N,).

        ``into`` is public, as all of a model is. Raises InvalidInput for a rate that is no probability between 0 and 1.

        >>> MarkovModel([1, 0], [[1, 0], [0, 1]]).with_jump(0.001).jump.rate
        0.001
        """
        provenance = self.provenance if into is None else {**self.provenance, "jump_into": "given"}
        return self._with(Jump.of(rate, self.n_states, into), provenance)

    def without_jump(self) -> MarkovModel:
        """The same model with its matrix alone: of what it calls impossible, the model with the jump does not."""
        return self._with(None, self.provenance)

    def with_origin(self, provenance: dict[str, Any]) -> MarkovModel:
        """The same model with another record of where it is from."""
        return self._with(self.jump, provenance)

    def starting(self, start: str) -> MarkovModel:
        """The model with its initial distribution taken as of "before", or "at", the first step; no space, no step."""
        if self.start == start:
            return self
        facts: dict[str, Any] = {"jump": self.jump, "secrets": self.secrets, "slots": self.slots}
        made = MarkovModel(self.initial, self._given, start=start, step=self.step if self.slots else None, **facts)
        made._ahead = self._ahead
        return made

    def beginning(self, initial: Any, field: str = "initial") -> MarkovModel:
        """The same model of somebody who is known to begin elsewhere: at a state, or with probabilities (N,).

        For a model with secrets the number is that of a secret: the latent states of it are then as likely as the model
        has them at the start, all alike where it has none there. Probabilities are those of latent states.

        What is known is public, as all of a model is; ``start`` says whether it is of the first step or the one before.
        Raises InvalidInput naming ``field`` for a state that there is not, and for what is no distribution.

        >>> MarkovModel([0.5, 0.5], [[1, 0], [0, 1]]).beginning(1).initial.tolist()
        [0.0, 1.0]
        """
        law = initial
        if isinstance(law, (int, np.integer)) and not isinstance(law, bool):
            if not 0 <= law < self.n_secrets:
                raise InvalidInput(field, int(law), f"a state, 0 to {self.n_secrets - 1}, or probabilities")
            law = self._at(int(law))
        # What follows from the matrix alone is shared.
        _ = self._predecessors
        other = copy.copy(self)
        for name in ("support_at_start", "digest", "notes"):
            vars(other).pop(name, None)
        other.initial = distribution(law, self.n_states, field)
        other.initial.setflags(write=False)
        return other

    def _at(self, secret: int) -> FloatArray:
        """The law (N,) of who is known to be at a secret."""
        if self.secrets is None:
            return np.asarray(np.eye(1, self.n_states, secret)[0])
        alike = (self.secrets == secret).astype(np.float64)
        law = self.initial * alike if (self.initial * alike).any() else alike
        return np.asarray(law / law.sum())

    def _with(self, jump: Jump | None, provenance: dict[str, Any]) -> MarkovModel:
        facts: dict[str, Any] = {"space": self.space, "step": self.step, "start": self.start, "secrets": self.secrets}
        return MarkovModel(self.initial, self._given, **facts, provenance=provenance, jump=jump, slots=self.slots)

    @property
    def _given(self) -> Any:
        """The argument that a model of the same matrices is made from."""
        return self.matrices[0] if self.slots is None else list(self.matrices)

    @property
    def provenance(self) -> dict[str, Any]:
        """The provenance of the model, as a copy."""
        return dict(json.loads(self._provenance))

    @cached_property
    def support_at_start(self) -> BoolArray:
        """States the initial distribution allows (N,)."""
        mask: BoolArray = self.initial > 0
        mask.setflags(write=False)
        return mask

    @property
    def time_homogeneous(self) -> bool:
        """True if every move has the same matrix: then a belief that a move leaves as it was has settled."""
        return self.slots is None

    def number_of_first(self, origin: str) -> int:
        """The number of a history's step 1, by which slots go, from the ``origin`` in its header; 1 without a clock.

        Raises InvalidInput where slots go by a clock and the origin is no number of a time bin since 1970.

        >>> MarkovModel([1, 0], [[0.5, 0.5], [0.5, 0.5]]).number_of_first("360402")
        1
        """
        if self.slots is None or not self.slots.by_clock or (self._ahead is not None and not origin):
            return 1
        if self._ahead is not None:
            raise InvalidInput("model", "one whose steps are counted from an origin already", "the model itself")
        number = first_number(origin)
        if number is None or "@" in origin:
            expected = "the number of step 1's time bin since 1970: slots of the model go by the clock"
            raise InvalidInput("origin", origin or "nothing", expected)
        return number

    @cached_property
    def example_origin(self) -> str:
        """The origin of an invented person: the first step of a Monday where slots go by a clock, else nothing."""
        if self.slots is None or self.step is None or not self.slots.by_clock or self._ahead is not None:
            return ""
        return str(self.slots.monday(self.step))

    def counted_from(self, origin: str | None = None) -> MarkovModel:
        """The same model with steps counted from 1 for who begins at this ``origin``, an invented person's by default.

        For leakage, adversaries and walks, which know no clock. Raises InvalidInput as `number_of_first` does.

        >>> walks = [[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]]
        >>> model = MarkovModel([1, 0], walks, slots=Slots(period="1d", width="12h"), step=3600)
        >>> model.counted_from().slots_of(np.array([1, 12, 13])).tolist()
        [0, 0, 1]
        """
        number = self.number_of_first(self.example_origin if origin is None else origin)
        if self.slots is None or not self.slots.by_clock or self._ahead is not None:
            return self
        counted = copy.copy(self)
        vars(counted).pop("example_origin", None)
        counted._ahead = number - 1
        return counted

    def slots_of(self, steps: IntArray) -> IntArray:
        """The slot (n,) of each step, by its number (n,): of the move that leaves it. 0 of a model of one matrix.

        A number is that of a time bin since 1970 where slots go by a clock, else the position from 1.

        >>> walks = [[[0.9, 0.1], [0.1, 0.9]], [[0.5, 0.5], [0.5, 0.5]]]
        >>> model = MarkovModel([1, 0], walks, slots=Slots(period="1d", width="12h"), step=3600)
        >>> model.slots_of(np.array([0, 11, 12, 24])).tolist()
        [0, 0, 1, 0]
        """
        if self.slots is None:
            return np.zeros(len(steps), dtype=np.int64)
        return self.slots.of_steps(steps + (self._ahead or 0), self.step)

    def slot_runs(self, t: int, steps: int) -> Iterator[tuple[int, int]]:
        """The moves to times t to t + steps - 1 as runs of one matrix each: the first time, and how many."""
        if self.slots is None:
            yield t, steps
            return
        for first in range(t, t + steps, _RUN):
            slots = self.slots_of(np.arange(first, min(first + _RUN, t + steps)) - 1)
            cuts = [0, *(np.flatnonzero(np.diff(slots)) + 1).tolist(), len(slots)]
            yield from ((first + a, b - a) for a, b in pairwise(cuts))

    def _slot(self, t: int) -> int:
        """The slot of the move from t - 1 to t: that of the step it leaves."""
        _check_time(t)
        return 0 if self.slots is None else self.slots.of_step(int(t) - 1 + (self._ahead or 0), self.step)

    def transition_at(self, t: int) -> Any:
        """The matrix of the move from t - 1 to t, numbers of steps where the model has slots.

        Raises InvalidInput for a model with a jump.
        """
        matrix = self.matrix_at(t)
        return matrix if self.jump is None else self.transition

    def matrix_at(self, t: int) -> Any:
        """The matrix beside the jump of the move from t - 1 to t."""
        return self._matrix(self._slot(t))

    def predecessors_at(self, t: int) -> Predecessors:
        """The columns of ``matrix_at(t)`` and the jump, built once for each slot."""
        return self._predecessors[self._slot(t)]

    def reach(self, mask: States, t: int = 1) -> BoolArray:
        """States (N,) that some state of ``mask`` can move to from t - 1 to t: by structure, no floats.

        The same in every slot: their matrices have the same stored moves.
        """
        _check_time(t)
        possible = state_mask(mask, self.n_states, "mask")
        if self.jump is not None:
            return np.full(self.n_states, possible.any())
        rows = self._rows[0]
        return _kernels.filter.successors(_unsigned(rows.indptr), _unsigned(rows.indices), possible)

    @cached_property
    def digest(self) -> str:
        """SHA-256 (hex) of initial, structure, values, jump, secrets, slots, start and step; the space has its own."""
        header: dict[str, Any] = {
            "model": 1,
            "n": self.n_states,
            "nnz": self.n_transitions,
            "start": self.start,
            "step": self.step,
        }
        if self.jump is not None:
            header["jump"] = self.jump.rate
        if self.secrets is not None:
            header["secrets"] = self.n_secrets
        if self.slots is not None:
            header["slots"] = self.slots.digest.hex()
        digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
        digest.update(np.ascontiguousarray(self.initial, dtype="<f8").tobytes())
        for rows in self._rows:
            for array, kind in ((rows.indptr, "<i8"), (rows.indices, "<i8"), (rows.data, "<f8")):
                digest.update(np.ascontiguousarray(array, dtype=kind).tobytes())
        if self.jump is not None:
            digest.update(np.ascontiguousarray(self.jump.into, dtype="<f8").tobytes())
        if self.secrets is not None:
            digest.update(self.secrets.astype("<i8").tobytes())
        return digest.hexdigest()

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a careful reader: absorbing, closed, unreachable, rescaled, not private, not hidden."""
        if self.jump is not None or self.secrets is not None:
            # States that a remark names are secrets, and these remarks are about latent states.
            closed = "" if self.jump is not None else _closed(self.moves)
            hidden = "" if self.secrets is None else _secrets_alone(self.n_states, self.n_secrets)
            every = (_rescaled(*self._rescaled), closed, _not_private(self.provenance), hidden)
            return tuple(said for said in every if said)
        return remarks(self.moves, self.support_at_start, self._rescaled, self.provenance)

    def __repr__(self) -> str:
        step = "" if self.step is None else f", step={self.step} s"
        jump = "" if self.jump is None else f" and a jump of {self.jump.rate:g}"
        states = f"{self.n_states} states"
        if self.secrets is not None:
            states = f"{self.n_states} latent states of {self.n_secrets} secrets"
        slots = "" if self.slots is None else f" in each of {self.slots.n} slots"
        size = f"{states}, {self.n_transitions} transitions{slots}{jump}"
        return f"MarkovModel({size}, start={self.start!r}{step})"

    @cached_property
    def _predecessors(self) -> list[Predecessors]:
        predecessors, share = list[Predecessors](), NO_SHARE
        for matrix in self.matrices:
            columns = matrix.tocsc()
            data = columns.data
            if self.jump is not None:
                data, share = self.jump.stays * data, self.jump.share
            for array in (columns.indptr, columns.indices, data):
                array.setflags(write=False)
            predecessors.append(Predecessors(_unsigned(columns.indptr), _unsigned(columns.indices), data, share))
        return predecessors


class _SlotRows(NamedTuple):
    """The compressed rows of one slot's matrix."""

    indptr: NDArray[Any]
    indices: NDArray[Any]
    data: FloatArray


def _matrices(given: Any, slots: Slots | None) -> list[Stochastic]:
    """The checked matrix of each slot. Raises InvalidInput for another number of them than there are slots."""
    if slots is None:
        return [stochastic_matrix(given)]
    if not isinstance(slots, Slots):
        raise InvalidInput("slots", type(slots).__name__, "a dphmm.markov.Slots")
    several = list(given) if isinstance(given, (list, tuple)) or getattr(given, "ndim", 2) == 3 else [given]
    if len(several) != slots.n:
        raise InvalidInput("transition", f"{len(several)} matrices", f"a list of {slots.n}, one for each slot")
    checked = [stochastic_matrix(each) for each in several]
    sizes = {slot.matrix.shape[0] for slot in checked}
    if len(sizes) > 1:
        raise InvalidInput("transition", f"matrices of {min(sizes)} and {max(sizes)} states", "the same states in all")
    return checked


def _sharing_moves(matrices: list[Any], may_differ: bool) -> list[_SlotRows]:
    """The rows of matrices, with the index arrays of the first where these are equal.

    Raises InvalidInput where a slot stores other moves than the first, unless they ``may_differ``, as with a jump: a
    support moves by the stored moves, and must be the same set whichever slot moves it.
    """
    first, rows = matrices[0], list[_SlotRows]()
    for slot, matrix in enumerate(matrices):
        same = np.array_equal(matrix.indptr, first.indptr) and np.array_equal(matrix.indices, first.indices)
        if not same and not may_differ:
            i, j = (int(places[0]) for places in ((matrix != 0) != (first != 0)).nonzero())
            fault = f"a move from {i} to {j} in it or in transition[0] alone"
            expected = "the same moves in every slot, a rare one with a chance of 1e-12; or a jump"
            raise InvalidInput(f"transition[{slot}]", fault, expected)
        indptr, indices = (first.indptr, first.indices) if same else (matrix.indptr, matrix.indices)
        rows.append(_SlotRows(fixed(indptr), fixed(indices), fixed(matrix.data)))
    return rows


def _unsigned(index: NDArray[Any]) -> NDArray[Any]:
    return index.view(np.uint32 if index.dtype.itemsize == 4 else np.uint64)


def _jump(given: Jump | float | str | None, n_states: int) -> Jump | None:
    if isinstance(given, Jump):
        if given.into.shape != (n_states,):
            raise InvalidInput("jump", f"one among {len(given.into)} states", f"the model's {n_states}")
        return given
    if given is None or (not isinstance(given, bool) and given in (0, "0")):
        return None
    return Jump.of(given, n_states)


def _secrets(given: Any, n_states: int) -> IntArray | None:
    """The secrets (N,) of latent states; None where each is its own. Raises InvalidInput for what is no such map."""
    if given is None:
        return None
    secrets = np.asarray(given)
    if secrets.shape != (n_states,) or secrets.dtype.kind not in "iu":
        fault = f"an array of shape {secrets.shape} and type {secrets.dtype}"
        raise InvalidInput("secrets", fault, f"({n_states},) whole numbers, one per state")
    if int(secrets.min()) < 0:
        raise InvalidInput("secrets", int(secrets.min()), "numbers from 0")
    different = np.unique(secrets)
    if len(different) <= int(different[-1]):
        missing = int(np.setdiff1d(np.arange(len(different) + 1), different)[0])
        raise InvalidInput("secrets", f"none of {missing}", "each number from 0 to the largest at least once")
    numbers = secrets.astype(np.int64)
    numbers.setflags(write=False)
    return None if np.array_equal(numbers, np.arange(n_states)) else numbers


def _check_time(t: int) -> None:
    if isinstance(t, (bool, np.bool_)) or not isinstance(t, (int, np.integer)) or t < 1:
        raise InvalidInput("t", t, "a time from 1: moves are numbered by the time they lead to")


def _json(provenance: dict[str, Any]) -> str:
    if not isinstance(provenance, dict):
        raise InvalidInput("provenance", type(provenance).__name__, "a dict")
    try:
        return json.dumps(provenance, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput("provenance", str(error), "a dict that JSON can hold") from None


#: Row sums further than this from 1 are worth a remark; closer is the rounding of an ordinary division.
_REMARKABLE = 1e-13

_STAYS = "since the model has no move out of them: who is known to be there is known to stay"


def remarks(
    transition: Any, start: BoolArray, rescaled: tuple[int, float], provenance: dict[str, Any]
) -> tuple[str, ...]:
    """One sentence per fact, from public data."""
    sentences = [
        _rescaled(*rescaled),
        _absorbing(transition),
        _closed(transition),
        _unreachable(transition, start),
        _not_private(provenance),
    ]
    return tuple(sentence for sentence in sentences if sentence)


def absorbing_states(transition: Any) -> IntArray:
    """States whose only move is to themselves, increasing."""
    single = np.flatnonzero(np.diff(transition.indptr) == 1)
    absorbing: IntArray = single[transition.indices[transition.indptr[single]] == single]
    return absorbing.astype(np.int64)


def absorbing_secrets(model: MarkovModel) -> IntArray:
    """States whose only moves are to themselves, increasing; secrets that no move leaves."""
    if model.secrets is None:
        return absorbing_states(model.moves)
    matrix, left = model.moves, np.zeros(model.n_secrets, dtype=np.bool_)
    before = np.repeat(model.secrets, np.diff(matrix.indptr))
    left[before[before != model.secrets[matrix.indices]]] = True
    return np.flatnonzero(~left)


def closed_classes(transition: Any) -> IntArray:
    """Class number (0.., by lowest member) of each state of a closed class, -1 for all other states."""
    from scipy.sparse.csgraph import connected_components

    structure = sparse.csr_array(
        (np.ones(transition.nnz), transition.indices.copy(), transition.indptr.copy()), shape=transition.shape
    )
    count, label = connected_components(structure, directed=True, connection="strong")
    source = np.repeat(label, np.diff(transition.indptr))
    leaves = np.zeros(count, dtype=np.bool_)
    leaves[source[source != label[transition.indices]]] = True
    number = np.full(count, -1, dtype=np.int64)
    closed, first = np.unique(label[~leaves[label]], return_index=True)
    number[closed[np.argsort(first)]] = np.arange(len(closed))
    classes: IntArray = number[label]
    return classes


def _rescaled(count: int, worst: float) -> str:
    if worst <= _REMARKABLE:
        return ""
    return f"{many(count, 'row')} of the transition matrix rescaled to sum to 1 (off by at most {worst:.2g})"


def _absorbing(transition: Any) -> str:
    states = absorbing_states(transition)
    if len(states) == 0:
        return ""
    if len(states) == transition.shape[0]:
        return "every state is absorbing: no move is possible, a known start stays known"
    return f"{many(len(states), 'absorbing state')} ({some(states)}): a support inside them never grows again, {_STAYS}"


def _closed(transition: Any) -> str:
    classes = int(closed_classes(transition).max()) + 1
    return "" if classes == 1 else f"{classes} closed classes: no move leads from one to another"


def _unreachable(transition: Any, start: BoolArray) -> str:
    never = np.flatnonzero(~_kernels.filter.reachable(transition.indptr, transition.indices, start.copy()))
    if len(never) == 0:
        return ""
    return f"{many(len(never), 'state')} ({some(never)}) that no path from the initial distribution reaches"


def _secrets_alone(states: int, secrets: int) -> str:
    return (
        f"{states} latent states of {secrets} secrets: releases hide secrets alone, not what else a latent state says, "
        "such as the place before"
    )


def _not_private(provenance: dict[str, Any]) -> str:
    if provenance.get("private") is not False:
        return ""
    return "fitted without privacy: no bound holds for releases about the people it was fitted on"
