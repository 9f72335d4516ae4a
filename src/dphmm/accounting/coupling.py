"""When a promise over paths is one over states: chains that couple along a policy.

Two states that an edge of the policy joins are two mixtures of paths. Where the paths of the one can be matched with
neighbouring paths of the other, what neighbouring paths lose bounds what the two states lose. For a Markov chain it is
enough to match one move at a time, forwards and backwards.

Proof: docs/proofs/couplings.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dphmm.accounting.marginals import Course, Marginal
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray, IntArray

#: Most states: the hops between all pairs of them are kept in memory.
MOST_STATES = 4_000
#: Marginals that differ by less, in logs, have one reversal.
_SETTLED = 1e-12
#: What rounding may leave of a row without a match: far more than its shares are wrong by, and no share of a real move.
_ROUNDING = 1e-11


@dataclass(frozen=True)
class Couplable:
    """How far the paths of the two ends of a policy edge have to be apart, at most.

    hops : the least number of policy hops within which every move of the two ends can be matched; 1 or less where the
        chain couples along the policy, ``math.inf`` where some need more than any number.
    edges : how many (edge, step, direction) were looked at. Equal ones count once.
    worst : (step, "forward" or "backward", one end, other end) of a pair that needs so many hops; None without a move.
    """

    hops: float
    edges: int
    worst: tuple[int, str, int, int] | None

    @property
    def holds(self) -> bool:
        """Whether the policy leakage of any sequence of releases is at most the sum of its epsilons."""
        return self.hops <= 1


def couplable(model: Any, policy: Any, steps: int) -> Couplable:
    """Whether a chain couples along a policy over ``steps`` steps, from its own start.

    Parameters
    ----------
    model : MarkovModel, its initial distribution included: the moves into a step depend on it. Jumps are matched with
        jumps: that is enough, but where a chain with a jump needs more hops so, another matching might need fewer.
    policy : a policy, or edges (m, 2). States that no edge joins have partners, which are not looked at: they depend on
        the plans.
    steps : how many steps are released, 1 or more.

    Rows are compared to rounding: what is said of the chain is exact of one whose moves, in either direction, differ
    from it by less than 1e-10 in total.

    Raises InvalidInput for edges or models that do not fit each other, and for over 4,000 states.

    Examples
    --------
    >>> import numpy as np, dphmm
    >>> walk = np.full((3, 3), 0.0) + [[2 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 3, 2 / 3]]
    >>> model = dphmm.MarkovModel(np.full(3, 1 / 3), walk)
    >>> dphmm.accounting.couplable(model, [[0, 1], [1, 2]], 10).holds
    True

    Source: docs/proofs/couplings.md (T2).
    """
    course = Course(model, beside_jump=True)
    n = course.n_states
    if n > MOST_STATES:
        raise InvalidInput("model", f"{n} states", f"at most {MOST_STATES} states: all pairs of them are looked at")
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise InvalidInput("steps", steps, "a number of steps, 1 or more")
    edges = _edges(policy, n)
    search = _Search(_hops(edges, n), edges)
    for t, direction, rows, now in _moves(course, int(steps)):
        search.look(t, direction, rows, now, course.jumped(now) if direction == "backward" else None)
    return Couplable(search.most, len(search.known), search.worst)


def _moves(course: Course, steps: int) -> Iterator[tuple[int, str, Any, Marginal]]:
    """(step, direction, rows, marginal of the step) of every move out of a step and into it; equal ones once."""
    before: Marginal | None = None
    reversed_from: Marginal | None = None
    left_from: set[bytes] = set()
    for t, now in enumerate(course.marginals(steps), start=1):
        support = now.support.tobytes()
        if t < steps and not (course.is_homogeneous and support in left_from):
            left_from.add(support)
            yield t, "forward", course.forward(t + 1), now
        if before is not None and not (course.is_homogeneous and _same(reversed_from, before)):
            reversed_from = before
            yield t, "backward", course.backward(before, t), now
        before = now


def _same(one: Marginal | None, other: Marginal) -> bool:
    if one is None or not np.array_equal(one.support, other.support):
        return False
    within = one.support
    return bool(np.abs(one.log_probability[within] - other.log_probability[within]).max(initial=0.0) <= _SETTLED)


class _Search:
    """The most hops that any pair of rows needs, and where; equal pairs are looked at once."""

    def __init__(self, hops: FloatArray, edges: IntArray) -> None:
        self._hops, self._edges = hops, edges
        self.known: dict[bytes, float] = {}
        self.most = 0.0
        self.worst: tuple[int, str, int, int] | None = None

    def look(self, t: int, direction: str, rows: Any, marginal: Marginal, jumped: FloatArray | None) -> None:
        """The edges whose two ends are possible at a step; of each end ``jumped`` (N,) may have been jumped into."""
        possible = marginal.support
        for k, m in self._edges[possible[self._edges].all(axis=1)].tolist():
            # A jump of the one that would have to be matched with a move of the other is not.
            apart = jumped is not None and abs(jumped[k] - jumped[m]) > _ROUNDING
            needed = math.inf if apart else self._needed(rows, k, m)
            if self.worst is None or needed > self.most:
                self.most, self.worst = needed, (t, direction, k, m)

    def _needed(self, rows: Any, k: int, m: int) -> float:
        """The hops that the rows k and m need."""
        from dphmm._kernels.couplings import fewest

        (one, q), (other, d) = _row(rows, k), _row(rows, m)
        states = np.union1d(one, other)
        if not len(states):
            # Nothing but jumps leads to either.
            return 0.0
        shares, others = np.zeros(len(states)), np.zeros(len(states))
        shares[np.searchsorted(states, one)], others[np.searchsorted(states, other)] = q, d
        limits = self._hops[np.ix_(states, states)]
        key = shares.tobytes() + others.tobytes() + limits.tobytes()
        if key not in self.known:
            self.known[key] = float(fewest(shares, others, limits, _ROUNDING))
        return self.known[key]


def _row(rows: Any, k: int) -> tuple[IntArray, FloatArray]:
    """The states that row k reaches, and its shares; they add up to 1 to rounding."""
    part = slice(rows.indptr[k], rows.indptr[k + 1])
    return rows.indices[part], rows.data[part] / rows.data[part].sum()


def _hops(edges: IntArray, n: int) -> FloatArray:
    """The least number of edges (n, n) between two states; infinite where no path of edges joins them."""
    from scipy import sparse
    from scipy.sparse.csgraph import shortest_path

    joined = sparse.csr_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    return np.asarray(shortest_path(joined, directed=False, unweighted=True))


def _edges(policy: Any, n: int) -> IntArray:
    found = np.asarray(policy.edges() if hasattr(policy, "edges") else policy)
    if found.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise InvalidInput("policy", f"an array of shape {found.shape}", "a policy, or edges (m, 2)")
    if found.min() < 0 or found.max() >= n:
        raise InvalidInput("policy", "an edge of no state", f"states 0 to {n - 1}, those of the model")
    return found.astype(np.int64)
