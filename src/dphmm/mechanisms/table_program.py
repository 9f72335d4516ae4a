"""The best mechanism there is for one prior and one policy, as a linear program.

It is over all mechanisms that name an answer of a set.

Unknown are the probabilities P(z | s) of naming z where the truth is s. A mechanism with other outputs, and an estimate
made of them, is one of these; so none that keeps ε, followed by any choice of an answer, has a smaller mean cost.
Motions of the lattice that leave answers, prior, costs and policy as they are tie unknowns together: the mean of an
optimum over them is an optimum. What comes out are floats: a proposal, nothing more.

This is the linear program of Bordenabe, Chatzikokolakis and Palamidessi (CCS 2014) with the edges of a policy instead
of all pairs of places.

What a table is made from is checked before memory or minutes are spent on it.

Proof: docs/proofs/optimal-table.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm._cached import cached_property
from dphmm.errors import InvalidInput
from dphmm.mechanisms.additive_law import Uncertified
from dphmm.types import FloatArray, IntArray

#: Answers: there is a whole number of some hundred digits for every two of them.
MOST_ANSWERS = 400
#: Rows of the program, two for each edge and answer, and its unknowns: up to about half a minute of one core, most for
#: long paths. Symmetries divide both.
MOST_ROWS = 120_000
MOST_UNKNOWNS = 20_000
#: Quotients that the certificate looks at where no program is solved: some seconds.
MOST_QUOTIENTS = 4_000_000
_SMALLER = "fewer states, fewer edges, or another mechanism"


def checked_points(answers: ArrayLike) -> IntArray:
    """Distinct lattice points (n, d), at most `MOST_ANSWERS`."""
    points = np.asarray(answers)
    if points.ndim != 2 or not points.size:
        raise InvalidInput("answers", f"shape {points.shape}", "(n, d), at least one answer")
    if not np.issubdtype(points.dtype, np.integer):
        raise InvalidInput("answers", f"dtype {points.dtype}", "integers: lattice points")
    if len(points) > MOST_ANSWERS:
        expected = f"at most {MOST_ANSWERS} for the optimal table: fewer states, or another mechanism"
        raise InvalidInput("answers", f"{len(points)} answers", expected)
    if int(np.abs(points.astype(object)).max()) > 2**53:
        raise InvalidInput("answers", "a point too far away", "at most 2**53 steps")
    if len(np.unique(points, axis=0)) < len(points):
        raise InvalidInput(
            "answers", "the same answer twice", "distinct answers: OptimalTable.for_policy joins equal ones"
        )
    return points.astype(np.int64)


def checked_edges(edges: ArrayLike, n: int) -> IntArray:
    """Pairs (m, 2) of two different numbers from 0 to n - 1."""
    given = np.asarray(edges)
    if not given.size:
        return np.zeros((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or not np.issubdtype(given.dtype, np.integer):
        raise InvalidInput("edges", f"shape {given.shape} of {given.dtype}", "(m, 2) integers")
    if int(given.min()) < 0 or int(given.max()) >= n:
        raise InvalidInput("edges", "a row that is not there", f"numbers from 0 to {n - 1}")
    if (given[:, 0] == given[:, 1]).any():
        raise InvalidInput("edges", "an edge from an answer to itself", "pairs of two answers")
    return given.astype(np.int64)


def checked_prior(prior: ArrayLike | None, n: int) -> FloatArray:
    """Weights (n,) that sum to 1; all alike for None."""
    if prior is None:
        return np.full(n, 1.0 / n)
    weights = _floats(prior, "prior", (n,))
    total = float(weights.sum())
    if not 0 < total < np.inf:
        raise InvalidInput("prior", f"weights with the sum {total:g}", "a sum greater than 0")
    return np.asarray(weights / total)


def checked_costs(costs: ArrayLike, n: int) -> FloatArray:
    """Costs (n, n), 0 or more."""
    return _floats(costs, "costs", (n, n))


def _floats(values: ArrayLike, field: str, shape: tuple[int, ...]) -> FloatArray:
    try:
        given = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(field, type(values).__name__, "numbers") from None
    if given.shape != shape:
        raise InvalidInput(field, f"shape {given.shape}", f"{shape}: one for each answer")
    if not np.isfinite(given).all() or (given < 0).any():
        raise InvalidInput(field, "NaN, an infinity or a negative number", "finite numbers, 0 or more")
    return given


def require_checkable(n: int, edges: int) -> None:
    """Raise InvalidInput where a certificate of n answers and so many edges would take minutes."""
    if n * edges > MOST_QUOTIENTS:
        expected = f"answers times edges up to {MOST_QUOTIENTS} for the optimal table: {_SMALLER}"
        raise InvalidInput("answers", f"{n} answers and {edges} edges", expected)


def has_room(n: int, edges: int, symmetries: Callable[[], int]) -> bool:
    """Whether the program of n answers and so many edges is small enough, by symmetry if need be."""
    size = max(Fraction(2 * n * edges, MOST_ROWS), Fraction(n * n, MOST_UNKNOWNS))
    return size <= 1 or size <= symmetries()


def require_room(n: int, edges: int, symmetries: Callable[[], int]) -> None:
    """Raise InvalidInput unless the program of n answers and so many edges is small enough, by symmetry if need be."""
    if not has_room(n, edges, symmetries):
        expected = (
            f"a program of {MOST_ROWS} rows and {MOST_UNKNOWNS} unknowns at most for the optimal table: {_SMALLER}"
        )
        raise InvalidInput("answers", f"{n} answers and {edges} edges", expected)


#: Priors and costs that differ by less, relative to the largest, are the same.
_SAME = 1e-12
#: How far a solution may be outside its constraints.
_TOLERANCE = 1e-9
#: The second is asked where the first gives up, or is off by more than this share of what its multipliers show.
_METHODS = ("highs-ipm", "highs-ds")
_GAP = 1e-6
#: Most axes whose motions are tried: there are 2**d·d! of them.
_MOST_AXES = 3


@dataclass(frozen=True, eq=False)
class Problem:
    """``points`` (n, d): distinct lattice answers. ``costs`` (n, n) of naming z where s is true. ``prior`` (n,).
    ``edges`` (m, 2): the pairs to be kept, each once.
    """

    points: IntArray
    costs: FloatArray
    prior: FloatArray
    edges: IntArray

    @cached_property
    def unknowns(self) -> IntArray:
        """Numbers (n, n) of the unknowns P(z | s): pairs that a motion maps onto each other have the same."""
        n = len(self.points)
        pair = np.arange(n * n).reshape(n, n)
        least = pair.copy()
        for images in self.motions:
            np.minimum(least, pair[np.ix_(images, images)], out=least)
        return np.asarray(np.unique(least, return_inverse=True)[1].reshape(n, n))

    @cached_property
    def motions(self) -> list[IntArray]:
        """Permutations (n,) of the answers by motions of the lattice that leave the problem as it is."""
        centred = 2 * self.points - self.points.min(axis=0) - self.points.max(axis=0)
        numbers = {tuple(point): i for i, point in enumerate(centred.tolist())}
        found = []
        for matrix in _signed_permutations(self.points.shape[1]):
            there = [numbers.get(tuple(point)) for point in (centred @ matrix.T).tolist()]
            if None not in there and self._kept(images := np.array(there, dtype=np.int64)):
                found.append(images)
        return found

    def _kept(self, images: IntArray) -> bool:
        for now, then in ((self.prior, self.prior[images]), (self.costs, self.costs[np.ix_(images, images)])):
            if np.abs(now - then).max() > _SAME * np.abs(now).max():
                return False
        return bool(np.isin(self._keys(images[self.edges]), self._keys(self.edges)).all())

    def _keys(self, edges: IntArray) -> IntArray:
        return np.asarray(edges.min(axis=1) * len(self.points) + edges.max(axis=1))


def _signed_permutations(d: int) -> list[IntArray]:
    one = np.eye(d, dtype=np.int64)
    if d > _MOST_AXES:
        return [one]
    orders, signs = itertools.permutations(range(d)), itertools.product((1, -1), repeat=d)
    return [one[list(order)] * np.array(sign)[:, None] for order, sign in itertools.product(orders, list(signs))]


@dataclass(frozen=True, eq=False)
class Optimum:
    """``value``: the least mean cost. ``bound``: one that no mechanism is below, from the dual. ``law`` (n, n):
    P(z | s) of a best mechanism. ``unknowns``: of the program, or the columns of the last one.
    """

    value: float
    bound: float
    law: FloatArray
    unknowns: int


def optimum(problem: Problem, epsilon: float, bounded_at: float | None = None) -> Optimum:
    """The optimum. Raises Uncertified where the solver finds none.

    ``bounded_at``: the ε of the mechanisms that the bound is for, where it is not that of the program.
    """
    from scipy import sparse
    from scipy.optimize import linprog

    n, unknown = len(problem.points), problem.unknowns
    count = int(unknown.max()) + 1
    weights = (problem.prior[:, None] * problem.costs).ravel()
    prices = np.bincount(unknown.ravel(), weights=weights, minlength=count).astype(np.float64)
    # Solvers' tolerances are absolute: costs may be of any unit.
    unit = float(prices.max()) or 1.0
    both = np.concatenate([problem.edges, problem.edges[:, ::-1]])
    pairs = np.unique(np.stack([unknown[both[:, 0]].ravel(), unknown[both[:, 1]].ravel()], axis=1), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    rows = np.arange(len(pairs))
    shape = (len(pairs), count)
    here, there = (sparse.csr_matrix((np.ones(len(pairs)), (rows, end)), shape) for end in pairs.T)
    ratios = here - np.exp(epsilon) * there
    loosest = ratios if bounded_at is None else here - np.exp(bounded_at) * there
    sums = sparse.csr_matrix((np.ones(n * n), (np.repeat(np.arange(n), n), unknown.ravel())), (n, count))
    own = np.unique(unknown.diagonal(), return_index=True)[1]
    tried: list[Optimum] = []
    for method in _METHODS:
        found = linprog(
            prices / unit,
            A_ub=ratios,
            b_ub=np.zeros(len(pairs)),
            A_eq=sums[own],
            b_eq=np.ones(len(own)),
            bounds=(0, None),
            method=method,
            options={"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE},
        )
        if found.x is not None:
            bound = _dual_bound(prices / unit, loosest, sums[own], found)
            tried.append(Optimum(unit * float(found.fun), unit * bound, found.x[unknown], count))
            if found.fun - bound <= _GAP * found.fun + _TOLERANCE**2:
                return tried[-1]
    if not tried:
        raise Uncertified(f"the linear program was not solved: {found.message}")
    return min(tried, key=lambda each: each.value)


def _dual_bound(prices: FloatArray, ratios: object, sums: object, found: object) -> float:
    """A lower bound that holds whatever the solver's tolerances were, from its multipliers made feasible."""
    multipliers = np.maximum(0.0, -np.asarray(found.ineqlin.marginals))  # type: ignore[attr-defined]
    levels = np.asarray(found.eqlin.marginals)  # type: ignore[attr-defined]
    slack = prices + ratios.T @ multipliers - sums.T @ levels  # type: ignore[attr-defined]
    # The unknowns of a state sum to 1, as often as each of them is there: what is missing is paid once for the worst.
    own = sums.tocsr()  # type: ignore[attr-defined]
    missing = slack[own.indices] / own.data
    worst = np.minimum.reduceat(np.minimum(missing, 0.0), own.indptr[:-1])
    return float(levels.sum() + worst.sum())


def hops(n: int, edges: IntArray) -> NDArray[np.int64]:
    """The least numbers (n, n) of edges from one answer to another; n where there is no way."""
    from scipy import sparse
    from scipy.sparse.csgraph import shortest_path

    graph = sparse.csr_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    found = shortest_path(graph, directed=False, unweighted=True)
    return np.where(np.isinf(found), n, found).astype(np.int64)
