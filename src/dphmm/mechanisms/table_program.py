"""The linear program behind ``optimal-table``: the best mechanism for one prior and one policy.

It is over all mechanisms that name an answer of a set.

Unknown are the probabilities P(z | s) of naming z where the truth is s. A mechanism with other outputs, and an estimate
made of them, is one of these; so none that keeps ε, followed by any choice of an answer, has a smaller mean cost.
Motions of the lattice that leave answers, prior, costs and policy as they are tie unknowns together: the mean of an
optimum over them is an optimum. The result is floats: a proposal, nothing more.

This is the linear program of Bordenabe, Chatzikokolakis and Palamidessi (CCS 2014) with the edges of a policy instead
of all pairs of places.

The inputs of a table are checked before memory or minutes are spent on it.

Solved by columns, the program has room for more answers.
A column is what one answer weighs where each answer is true. The rows of a table never join two columns but by
their sums, so a table is a mixture of columns that keep ε by themselves (Dantzig and Wolfe), and the program that mixes
the columns known so far has one row for each answer. Its multipliers say what every column would have to cost to be of
use. For each answer a small program then finds a column that costs less, or shows that there is none; the multipliers
are lowered by no more than what such programs ask for, and then their sum is a bound for all mechanisms.

Mechanisms as mixtures of extreme columns are those of Kairouz, Oh and Viswanath (NIPS 2014); what comes out are floats:
a proposal, nothing more (`answer_table` mends and certifies it).

Proofs: docs/proofs/optimal-table.md, docs/proofs/optimal-columns.md.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm._cached import cached_property
from dphmm.errors import InvalidInput
from dphmm.mechanisms.base import Uncertified
from dphmm.types import BoolArray, FloatArray, IntArray

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
    pairs = np.asarray(edges)
    if not pairs.size:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise InvalidInput("edges", f"shape {pairs.shape} of {pairs.dtype}", "(m, 2) integers")
    if int(pairs.min()) < 0 or int(pairs.max()) >= n:
        raise InvalidInput("edges", "a row that is not there", f"numbers from 0 to {n - 1}")
    if (pairs[:, 0] == pairs[:, 1]).any():
        raise InvalidInput("edges", "an edge from an answer to itself", "pairs of two answers")
    return pairs.astype(np.int64)


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
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(field, type(values).__name__, "numbers") from None
    if numbers.shape != shape:
        raise InvalidInput(field, f"shape {numbers.shape}", f"{shape}: one for each answer")
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        raise InvalidInput(field, "NaN, an infinity or a negative number", "finite numbers, 0 or more")
    return numbers


def require_checkable(n: int, edges: int) -> None:
    """Raise InvalidInput where a certificate of n answers and so many edges would take minutes."""
    if n * edges > MOST_QUOTIENTS:
        expected = f"answers times edges up to {MOST_QUOTIENTS} for the optimal table: {_SMALLER}"
        raise InvalidInput("answers", f"{n} answers and {edges} edges", expected)


def has_room(n: int, edges: int, symmetries: Callable[[], int]) -> bool:
    """True if the program of n answers and so many edges is small enough, by symmetry if need be."""
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
        motions = []
        for matrix in _signed_permutations(self.points.shape[1]):
            there = [numbers.get(tuple(point)) for point in (centred @ matrix.T).tolist()]
            if None not in there and self._kept(images := np.array(there, dtype=np.int64)):
                motions.append(images)
        return motions

    def _kept(self, images: IntArray) -> bool:
        for now, then in ((self.prior, self.prior[images]), (self.costs, self.costs[np.ix_(images, images)])):
            if np.abs(now - then).max() > _SAME * np.abs(now).max():
                return False
        return bool(np.isin(self._keys(images[self.edges]), self._keys(self.edges)).all())

    def _keys(self, edges: IntArray) -> IntArray:
        return np.asarray(edges.min(axis=1) * len(self.points) + edges.max(axis=1))


def _signed_permutations(d: int) -> list[IntArray]:
    identity = np.eye(d, dtype=np.int64)
    if d > _MOST_AXES:
        return [identity]
    orders, signs = itertools.permutations(range(d)), itertools.product((1, -1), repeat=d)
    return [identity[list(order)] * np.array(sign)[:, None] for order, sign in itertools.product(orders, list(signs))]


@dataclass(frozen=True, eq=False)
class Optimum:
    """``value``: the least mean cost. ``bound``: one that no mechanism is below, from the dual. ``law`` (n, n):
    P(z | s) of a best mechanism. ``unknowns``: their number in the program, or the columns of the last one.
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
    distinct = np.unique(unknown.diagonal(), return_index=True)[1]
    tried: list[Optimum] = []
    for method in _METHODS:
        solution = linprog(
            prices / unit,
            A_ub=ratios,
            b_ub=np.zeros(len(pairs)),
            A_eq=sums[distinct],
            b_eq=np.ones(len(distinct)),
            bounds=(0, None),
            method=method,
            options={"primal_feasibility_tolerance": _TOLERANCE, "dual_feasibility_tolerance": _TOLERANCE},
        )
        if solution.x is not None:
            bound = _dual_bound(prices / unit, loosest, sums[distinct], solution)
            tried.append(Optimum(unit * float(solution.fun), unit * bound, solution.x[unknown], count))
            if solution.fun - bound <= _GAP * solution.fun + _TOLERANCE**2:
                return tried[-1]
    if not tried:
        raise Uncertified(f"the linear program was not solved: {solution.message}")
    return min(tried, key=lambda each: each.value)


def _dual_bound(prices: FloatArray, ratios: object, sums: object, found: object) -> float:
    """A lower bound that holds whatever the solver's tolerances were, from its multipliers made feasible."""
    multipliers = np.maximum(0.0, -np.asarray(found.ineqlin.marginals))  # type: ignore[attr-defined]
    levels = np.asarray(found.eqlin.marginals)  # type: ignore[attr-defined]
    slack = prices + ratios.T @ multipliers - sums.T @ levels  # type: ignore[attr-defined]
    # The unknowns of a state sum to 1, as often as each of them is there: what is missing is paid once for the worst.
    rows = sums.tocsr()  # type: ignore[attr-defined]
    missing = slack[rows.indices] / rows.data
    worst = np.minimum.reduceat(np.minimum(missing, 0.0), rows.indptr[:-1])
    return float(levels.sum() + worst.sum())


def hops(n: int, edges: IntArray) -> NDArray[np.int64]:
    """The least numbers (n, n) of edges from one answer to another; n where there is no way."""
    from scipy import sparse
    from scipy.sparse.csgraph import shortest_path

    graph = sparse.csr_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    lengths = shortest_path(graph, directed=False, unweighted=True)
    return np.where(np.isinf(lengths), n, lengths).astype(np.int64)


#: Columns to begin with: e^-ε for every edge away from so many answers that cost least, for each answer.
_NEAREST = (1, 5, 9, 13, 21, 29, 37)
#: How far the multipliers of a round are from the best ones so far, towards those of the mixture.
_TOWARDS = 0.25
#: A window holds what is less than this over ε edges away, and one edge more: beyond it columns weigh below e^-this.
_REACH = 8.0
#: Columns that are kept though they are of no use now, times the number of answers.
_SPARE = 3
_MOST_ROUNDS = 80
#: Rounds that are looked back on, and how much of what is open between value and bound they must have closed.
_LOOKED_BACK, _CLOSED = 6, 0.02
#: Weights below this are left out of the mixture's program, and what is found is taken for 0 below the next.
_NOTHING, _NO_GAIN = 1e-9, 1e-8
#: Above so many columns the interior-point method mixes them faster.
_MANY = 1200
#: What the bound is lowered by, relative: more than the rounding of floats.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Round:
    """The progress of a solution: its mean cost, the bound on all mechanisms, columns, and seconds so far."""

    number: int
    value: float
    bound: float
    columns: int
    seconds: float


def optimum_by_columns(
    problem: Problem, epsilon: float, *, gap: float = 1.01, told: Callable[[Round], None] | None = None
) -> Optimum:
    """A table whose mean cost is within ``gap`` of the bound, or as near as rounds bring it.

    ``told`` is called after every round. Raises Uncertified where the solver finds no mixture.
    """
    return _Search(problem, epsilon).solved(gap, told)


class _Mixture(NamedTuple):
    value: float
    shares: FloatArray
    multipliers: FloatArray


class _Search:
    """The columns (k, n) known so far, and the best multipliers: the most that each answer costs in any mechanism."""

    def __init__(self, problem: Problem, epsilon: float) -> None:
        self._epsilon = epsilon
        self._edges = problem.edges
        n = self._n = len(problem.points)
        weighted = problem.prior[:, None] * problem.costs
        # Solvers' tolerances are absolute: the best answer for nobody in particular costs 1.
        self._unit = float(weighted.sum(axis=0).min()) or 1.0
        self._prices = weighted / self._unit
        self._ways = hops(n, problem.edges)
        self._near = problem.costs
        self._reach = math.ceil(_REACH / epsilon) + 1
        self._windows: dict[int, _Window] = {}
        self._columns = self._first()
        self._costs = self._cost(self._columns)
        self._best: FloatArray | None = None
        self._towards = _TOWARDS

    def solved(self, gap: float, told: Callable[[Round], None] | None) -> Optimum:
        """Rounds until the gap is closed, or no longer closes."""
        began, open_before = time.monotonic(), [math.inf] * _LOOKED_BACK
        for number in range(1, _MOST_ROUNDS + 1):
            mixture = self._mixed()
            bound, columns = self._lowered(mixture.multipliers)
            if told is not None:
                seconds = time.monotonic() - began
                told(Round(number, mixture.value * self._unit, bound * self._unit, len(self._columns), seconds))
            still_open = mixture.value - bound
            stalled = still_open > (1 - _CLOSED) * open_before[-_LOOKED_BACK]
            if mixture.value <= gap * bound or stalled or (not len(columns) and self._towards == 1):
                break
            # Where multipliers between the two are too low for any column, those of the mixture may be, too.
            self._towards = _TOWARDS if len(columns) else 1.0
            open_before.append(still_open)
            if number < _MOST_ROUNDS:
                self._add(columns, mixture)
        law = self._law(mixture)
        value = float((law * self._prices).sum())
        return Optimum(value * self._unit, bound * self._unit, law, len(self._columns))

    def _first(self) -> FloatArray:
        """e^(-ε·edges) away from the answers that cost least where each one is named, a few of them or more.

        And for each component of the policy the column that says nothing within it: some mixture of those is a table.
        """
        columns = list((self._ways < self._n).astype(np.float64))
        for y in range(self._n):
            levels = np.sort(self._near[:, y])
            for size in _NEAREST:
                if size <= self._n:
                    near = np.flatnonzero(self._near[:, y] <= levels[size - 1])
                    columns.append(self._falling(self._ways[:, near].min(axis=1)))
        return np.asarray(np.unique(np.round(columns, 14), axis=0))

    def _falling(self, ways: IntArray) -> FloatArray:
        """e^(-ε·edges), and 0 where no way leads: where there is none, nothing need be kept."""
        return np.where(ways < self._n, np.exp(-self._epsilon * ways), 0.0)

    def _cost(self, columns: FloatArray) -> FloatArray:
        """The cost of columns (k, n), each with its best answer."""
        return np.asarray((columns @ self._prices).min(axis=1))

    def _mixed(self) -> _Mixture:
        """The cheapest mixture of the columns in which every row sums to 1."""
        from scipy import sparse
        from scipy.optimize import linprog

        rows = sparse.csr_matrix(np.where(self._columns < _NOTHING, 0.0, self._columns).T)
        for method in ("highs-ipm", "highs-ds") if len(self._columns) > _MANY else ("highs-ds", "highs-ipm"):
            solution = linprog(self._costs, A_eq=rows, b_eq=np.ones(self._n), bounds=(0, None), method=method)
            if solution.x is not None:
                return _Mixture(float(solution.fun), np.asarray(solution.x), np.asarray(solution.eqlin.marginals))
        raise Uncertified(f"the columns were not mixed: {solution.message}")

    def _lowered(self, multipliers: FloatArray) -> tuple[float, FloatArray]:
        """A bound for all mechanisms (in units), and columns (k, n) that cost less than the multipliers allow.

        The multipliers, or what lies between them and the best ones so far, are lowered for one answer after the
        other, until no column of any answer costs less than they allow.
        """
        lowered = multipliers.copy()
        if self._best is not None:
            lowered = self._towards * multipliers + (1 - self._towards) * self._best
        columns = []
        for y in range(self._n):
            costs = self._prices[:, y] - lowered
            if (costs >= 0).all():
                continue
            window = self._window(y, costs < 0)
            too_much, column = window.priced(costs)
            lowered[window.states] -= too_much
            if float(too_much.sum()) > _NO_GAIN and column.max() > _NOTHING:
                columns.append(self._extended(window, column))
        if self._best is None or lowered.sum() > self._best.sum():
            self._best = lowered
        bound = float(self._best.sum())
        return max(0.0, bound - _ROUNDING * float(np.abs(self._best).sum())), np.array(columns).reshape(-1, self._n)

    def _window(self, y: int, wanted: BoolArray) -> _Window:
        """The answers near y and all that are wanted: the search space for a column of y."""
        inside = wanted | (self._ways[:, y] < self._reach)
        known = self._windows.get(y)
        if known is None or not np.array_equal(known.inside, inside):
            known = self._windows[y] = _Window.of(inside, self._edges, self._ways, self._falling, self._epsilon)
        return known

    def _extended(self, window: _Window, column: FloatArray) -> FloatArray:
        """The least column of all answers that is a window's, and falls by e^-ε for an edge outside (McShane)."""
        whole = np.zeros(self._n)
        for state, weight in zip(window.states.tolist(), column.tolist(), strict=True):
            if weight > 0:
                np.maximum(whole, weight * self._falling(self._ways[state]), out=whole)
        return np.asarray(whole / whole.max())

    def _add(self, columns: FloatArray, mixture: _Mixture) -> None:
        """Take new columns, and leave out those that are least of use."""
        dear = self._costs - self._columns @ mixture.multipliers
        spare = min(len(dear), _SPARE * self._n) - 1
        useful = (mixture.shares > _NOTHING) | (dear <= np.partition(dear, spare)[spare])
        self._columns = np.concatenate([self._columns[useful], columns])
        self._costs = np.concatenate([self._costs[useful], self._cost(columns)])

    def _law(self, mixture: _Mixture) -> FloatArray:
        """The table (n, n) of a mixture: columns that name the same answer are added up, and every row sums to 1."""
        used = np.flatnonzero(mixture.shares > 0)
        named = (self._columns[used] @ self._prices).argmin(axis=1)
        law = np.zeros((self._n, self._n))
        np.add.at(law.T, named, mixture.shares[used][:, None] * self._columns[used])
        return np.asarray(law / law.sum(axis=1, keepdims=True))


@dataclass(frozen=True, eq=False)
class _Window:
    """Some of the answers; each other one is at least ``share`` of what ``stands_for`` it weighs in any column.

    ``inside`` (n,); ``states`` (m,) are those inside; ``edges`` (k, 2) pairs of them, by their place, both ways.
    """

    inside: BoolArray
    states: IntArray
    stands_for: IntArray
    share: FloatArray
    edges: IntArray
    epsilon: float

    @classmethod
    def of(
        cls,
        inside: BoolArray,
        edges: IntArray,
        ways: IntArray,
        falling: Callable[[IntArray], FloatArray],
        epsilon: float,
    ) -> _Window:
        """The window of the answers (n,) inside; each outside is stood for by the nearest one by edges."""
        states = np.flatnonzero(inside)
        place = np.full(len(inside), -1, dtype=np.int64)
        place[states] = np.arange(len(states))
        stands_for, share = place.copy(), np.ones(len(inside))
        outside = np.flatnonzero(~inside)
        if len(outside):
            to_states = ways[np.ix_(outside, states)]
            stands_for[outside] = to_states.argmin(axis=1)
            share[outside] = falling(to_states.min(axis=1))
        inner = place[edges[inside[edges].all(axis=1)]]
        return cls(inside, states, stands_for, share, np.concatenate([inner, inner[:, ::-1]]), epsilon)

    @cached_property
    def _rows(self) -> Any:
        """The matrix (m, k + m) that adds up multipliers of edges (k,) and of single answers (m,) for each answer."""
        from scipy import sparse

        m, k = len(self.states), len(self.edges)
        ones, steps = np.ones(k), np.arange(k)
        each = np.concatenate([self.edges[:, 0], self.edges[:, 1]])
        shares = np.concatenate([-ones, np.exp(self.epsilon) * ones])
        edges = sparse.csr_matrix((shares, (each, np.concatenate([steps, steps]))), (m, k))
        return sparse.hstack([edges, -sparse.identity(m)]).tocsr()

    def priced(self, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A reduction (m,) of the multipliers after which no column of the window costs less than zero.

        Also the cheapest column (m,) of those below 1. ``costs`` (n,): prices less multipliers, none of them
        negative outside.
        """
        from scipy.optimize import linprog

        m, k = len(self.states), len(self.edges)
        per_state = np.bincount(self.stands_for, weights=costs * self.share, minlength=m)
        unit = float(np.abs(per_state).max()) or 1.0
        asked = np.concatenate([np.zeros(k), np.ones(m)])
        solution = linprog(asked, A_ub=self._rows, b_ub=per_state / unit, bounds=(0, None), method="highs-ds")
        if solution.x is None:
            return np.maximum(0.0, -per_state), np.zeros(m)
        edges = np.maximum(0.0, solution.x[:k])
        # Whatever the solver's tolerances were: with these multipliers of edges, no less than this is enough.
        lacking = np.maximum(0.0, self._rows[:, :k] @ edges - per_state / unit) * unit
        return lacking, np.maximum(0.0, -np.asarray(solution.ineqlin.marginals))
