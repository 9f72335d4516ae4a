"""The linear program of the best table, solved by columns: for more answers than the whole program has room for.

A column is what one answer weighs where each answer is true. The rows of a table never join two columns but by
their sums, so a table is a mixture of columns that keep ε by themselves (Dantzig and Wolfe), and the program that mixes
the columns known so far has one row for each answer. Its multipliers say what every column would have to cost to be of
use. For each answer a small program then finds a column that costs less, or shows that there is none; the multipliers
are lowered by no more than what such programs ask for, and then their sum is a bound for all mechanisms.

Mechanisms as mixtures of extreme columns are those of Kairouz, Oh and Viswanath (NIPS 2014); what comes out are floats:
a proposal, nothing more (`table_law` mends and certifies it).

Proof: docs/proofs/optimal-columns.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dphmm._cached import cached_property
from dphmm.mechanisms.additive_law import Uncertified
from dphmm.mechanisms.table_program import Optimum, Problem, hops
from dphmm.types import BoolArray, FloatArray, IntArray

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
    """How far a solution has come: its mean cost, what is proved of all mechanisms, columns, and seconds so far."""

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
    """The columns (k, n) known so far, and the best multipliers: what each answer may cost at most in any mechanism."""

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
            bound, found = self._lowered(mixture.multipliers)
            if told is not None:
                seconds = time.monotonic() - began
                told(Round(number, mixture.value * self._unit, bound * self._unit, len(self._columns), seconds))
            still_open = mixture.value - bound
            stalled = still_open > (1 - _CLOSED) * open_before[-_LOOKED_BACK]
            if mixture.value <= gap * bound or stalled or (not len(found) and self._towards == 1):
                break
            # Where multipliers between the two are too low for any column, those of the mixture may be, too.
            self._towards = _TOWARDS if len(found) else 1.0
            open_before.append(still_open)
            if number < _MOST_ROUNDS:
                self._add(found, mixture)
        law = self._law(mixture)
        value = float((law * self._prices).sum())
        return Optimum(value * self._unit, bound * self._unit, law, len(self._columns))

    def _first(self) -> FloatArray:
        """e^(-ε·edges) away from the answers that cost least where each one is named, a few of them or more.

        And for each component of the policy the column that says nothing within it: some mixture of those is a table.
        """
        found = list((self._ways < self._n).astype(np.float64))
        for y in range(self._n):
            levels = np.sort(self._near[:, y])
            for size in _NEAREST:
                if size <= self._n:
                    near = np.flatnonzero(self._near[:, y] <= levels[size - 1])
                    found.append(self._falling(self._ways[:, near].min(axis=1)))
        return np.asarray(np.unique(np.round(found, 14), axis=0))

    def _falling(self, ways: IntArray) -> FloatArray:
        """e^(-ε·edges), and 0 where no way leads: where there is none, nothing need be kept."""
        return np.where(ways < self._n, np.exp(-self._epsilon * ways), 0.0)

    def _cost(self, columns: FloatArray) -> FloatArray:
        """What columns (k, n) cost with the best answer for each."""
        return np.asarray((columns @ self._prices).min(axis=1))

    def _mixed(self) -> _Mixture:
        """The cheapest mixture of the columns in which every row sums to 1."""
        from scipy import sparse
        from scipy.optimize import linprog

        rows = sparse.csr_matrix(np.where(self._columns < _NOTHING, 0.0, self._columns).T)
        for method in ("highs-ipm", "highs-ds") if len(self._columns) > _MANY else ("highs-ds", "highs-ipm"):
            found = linprog(self._costs, A_eq=rows, b_eq=np.ones(self._n), bounds=(0, None), method=method)
            if found.x is not None:
                return _Mixture(float(found.fun), np.asarray(found.x), np.asarray(found.eqlin.marginals))
        raise Uncertified(f"the columns were not mixed: {found.message}")

    def _lowered(self, multipliers: FloatArray) -> tuple[float, FloatArray]:
        """A bound for all mechanisms (in units), and columns (k, n) that cost less than the multipliers allow.

        The multipliers, or what lies between them and the best ones so far, are lowered for one answer after the
        other, until no column of any answer costs less than they allow.
        """
        lowered = multipliers.copy()
        if self._best is not None:
            lowered = self._towards * multipliers + (1 - self._towards) * self._best
        found = []
        for y in range(self._n):
            costs = self._prices[:, y] - lowered
            if (costs >= 0).all():
                continue
            window = self._window(y, costs < 0)
            too_much, column = window.priced(costs)
            lowered[window.states] -= too_much
            if float(too_much.sum()) > _NO_GAIN and column.max() > _NOTHING:
                found.append(self._extended(window, column))
        if self._best is None or lowered.sum() > self._best.sum():
            self._best = lowered
        bound = float(self._best.sum())
        return max(0.0, bound - _ROUNDING * float(np.abs(self._best).sum())), np.array(found).reshape(-1, self._n)

    def _window(self, y: int, wanted: BoolArray) -> _Window:
        """The answers near y and all that are wanted: what a column of y is looked for on."""
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

    def _add(self, found: FloatArray, mixture: _Mixture) -> None:
        """Take new columns, and leave out those that are least of use."""
        dear = self._costs - self._columns @ mixture.multipliers
        spare = min(len(dear), _SPARE * self._n) - 1
        kept = (mixture.shares > _NOTHING) | (dear <= np.partition(dear, spare)[spare])
        self._columns = np.concatenate([self._columns[kept], found])
        self._costs = np.concatenate([self._costs[kept], self._cost(found)])

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
        own = place[edges[inside[edges].all(axis=1)]]
        return cls(inside, states, stands_for, share, np.concatenate([own, own[:, ::-1]]), epsilon)

    @cached_property
    def _rows(self) -> Any:
        """What multipliers of edges (k,) and of single answers (m,) add up to for each answer (m, k + m)."""
        from scipy import sparse

        m, k = len(self.states), len(self.edges)
        ones, steps = np.ones(k), np.arange(k)
        each = np.concatenate([self.edges[:, 0], self.edges[:, 1]])
        shares = np.concatenate([-ones, np.exp(self.epsilon) * ones])
        edges = sparse.csr_matrix((shares, (each, np.concatenate([steps, steps]))), (m, k))
        return sparse.hstack([edges, -sparse.identity(m)]).tocsr()

    def priced(self, costs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """What must be taken off the multipliers (m,) so that no column of the window costs less than nothing.

        And a column (m,) that costs least of those below 1. ``costs`` (n,): prices less multipliers, none of them
        negative outside.
        """
        from scipy.optimize import linprog

        m, k = len(self.states), len(self.edges)
        own = np.bincount(self.stands_for, weights=costs * self.share, minlength=m)
        unit = float(np.abs(own).max()) or 1.0
        asked = np.concatenate([np.zeros(k), np.ones(m)])
        found = linprog(asked, A_ub=self._rows, b_ub=own / unit, bounds=(0, None), method="highs-ds")
        if found.x is None:
            return np.maximum(0.0, -own), np.zeros(m)
        edges = np.maximum(0.0, found.x[:k])
        # Whatever the solver's tolerances were: with these multipliers of edges, no less than this is enough.
        lacking = np.maximum(0.0, self._rows[:, :k] @ edges - own / unit) * unit
        return lacking, np.maximum(0.0, -np.asarray(found.ineqlin.marginals))
