"""Policy leakage: what the two ends of a policy edge lose over a whole sequence of releases.

The sum of epsilons bounds the loss of two neighbouring paths, but not that of two states of one step. The sum of costs
bounds the loss of any two histories, which is far too much for an edge. Between them: c_t(i, j) of the step itself, F_t
of what comes later, B_t of what was before, each from small programs over the states that i and j can come from or go
to. Everything is an upper bound; `PolicyLeakage.exact` says whether every program was solved.

Proof: docs/proofs/policy-leakage.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dphmm._checks import EPSILON_MIN
from dphmm.accounting.increase import FAR, SMALLEST, loss
from dphmm.accounting.marginals import Course, Marginal
from dphmm.accounting.pairs import NEVER, largest_loss, levels, losses_between
from dphmm.accounting.rounding import sum_above
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, IntArray

#: Programs of more states than this are bounded by a coupling.
MOST_PROGRAM_STATES = 96
#: Programs solved at most, about: pairs that only later moves need are then bounded by way of nearer ones.
MOST_PROGRAMS = 10_000_000
#: Most states: all pairs of them are kept in memory.
MOST_STATES = 4_000
#: Numbers of pair losses that are kept from one direction to the other.
_KEPT = 2**25


@dataclass(frozen=True, eq=False)
class PolicyLeakage:
    """What edges lose, per step and edge (T, m): ``present`` c, ``forward`` F, ``backward`` B, and ``total``.

    F and B are the larger of their two directions, ``total`` is c plus the larger sum of a direction. NaN where an end
    of the edge is impossible at the step. ``edges`` (m, 2). ``programs``: how many different ones were solved.
    ``exact``: none was bounded instead.
    """

    edges: IntArray
    present: FloatArray
    forward: FloatArray
    backward: FloatArray
    total: FloatArray
    programs: int
    exact: bool

    @property
    def worst(self) -> float:
        """The largest total of any edge at any step; 0 if no edge is possible."""
        return float(np.max(self.total, initial=0.0, where=~np.isnan(self.total)))


def policy_leakage(
    model: Any,
    plans_or_losses: Sequence[Any],
    edges: Any,
    *,
    most_states: int = MOST_PROGRAM_STATES,
    most_programs: int = MOST_PROGRAMS,
) -> PolicyLeakage:
    """Bound what each edge loses over a sequence: log Pr(z_1 .. z_T | s_t = i) / Pr(z_1 .. z_T | s_t = j).

    Parameters
    ----------
    model : MarkovModel, as the adversary believes it, its initial distribution included.
    plans_or_losses : one for each step t = 1 .. T: the Plan of its release, a symmetric matrix (N, N) of pair losses,
        anything with ``loss_between(i, j)``, or None where nothing is released.
    edges : (m, 2) states, or a policy.
    most_states, most_programs : sizes from which programs are bounded instead of solved.

    Raises InvalidInput for edges, losses or models that do not fit each other.
    """
    course = Course(model)
    n = len(model.initial)
    if n > MOST_STATES:
        raise InvalidInput("model", f"{n} states", f"at most {MOST_STATES} states: all pairs of them are looked at")
    pairs = _edges(edges, n)
    steps = list(plans_or_losses)
    sweep = _Sweep(course, list(course.marginals(len(steps))), steps, pairs, most_states, most_programs)
    return sweep.leakage()


def policy_allocation(
    model: Any, plans_of: Callable[[Fraction], Sequence[Any]], edges: Any, target: float, **sizes: int
) -> Fraction | None:
    """The largest epsilon of three digits found, at most ``target``, with a policy leakage of at most ``target``.

    ``plans_of(epsilon)``: the plans or losses of all steps, which must not depend on any answer. What is returned has
    been checked; if losses jump with epsilon a larger one may do as well. None where not even 2**-20 does.
    """
    most = loss(target, "target")

    def kept(epsilon: Fraction) -> bool:
        return policy_leakage(model, plans_of(epsilon), edges, **sizes).worst <= most

    scale = Fraction(1)
    while scale > most:
        scale /= 10
    while scale * 10 <= most:
        scale *= 10
    while scale * 10 >= EPSILON_MIN:
        digits = [Fraction(k, 100) * scale for k in range(100, 1000) if EPSILON_MIN <= Fraction(k, 100) * scale <= most]
        if digits and kept(digits[0]):
            low, high = 0, len(digits)
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if kept(digits[middle]) else (low, middle)
            return digits[low]
        scale /= 10
    return None


class _Sweep:
    """F from the last step to the first, B from the first to the last, over the pairs that edges need."""

    def __init__(
        self,
        course: Course,
        marginals: list[Marginal],
        steps: list[Any],
        edges: IntArray,
        most_states: int,
        most_programs: int,
    ) -> None:
        self._course, self._marginals, self._steps, self._edges = course, marginals, steps, edges
        self._n = course.n_states
        self._most_states = most_states
        reach = course.structure(len(steps))
        # Two directions of time, two of each pair.
        enough = most_programs // (4 * max(1, len(steps)))
        self._later = levels(reach, edges, len(steps) - 1, enough)
        self._earlier = levels(reach.T.tocsr(), edges, len(steps) - 1, enough)
        self._needed = np.nonzero(np.triu((self._later[0] < NEVER) | (self._earlier[0] < NEVER)))
        self._kept: dict[int, FloatArray] = {}
        self._solved = self._bounded = 0

    def leakage(self) -> PolicyLeakage:
        """Both sweeps, put together at the edges."""
        shape = (len(self._steps), len(self._edges))
        i, j = self._edges.T
        present, there, back = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
        total = np.full(shape, -np.inf)
        forward = {t: (F[i, j], F[j, i]) for t, F in self._forward()}
        for t, B in self._backward():
            backward = B[i, j], B[j, i]
            present[t] = losses_between(self._steps[t], i, j, self._n)
            there[t], back[t] = np.maximum(*forward[t]), np.maximum(*backward)
            for ahead, past in zip(forward[t], backward, strict=True):
                total[t] = np.maximum(total[t], sum_above(sum_above(ahead, past), present[t]))
            possible = self._marginals[t].support
            for values in (present, there, back, total):
                values[t, ~(possible[i] & possible[j])] = np.nan
        return PolicyLeakage(self._edges, present, there, back, total, self._solved, self._bounded == 0)

    def _forward(self) -> Iterator[tuple[int, FloatArray]]:
        """(t, F_t), steps numbered from 0, from the last to the first."""
        last = len(self._steps) - 1
        F, cost = np.zeros((self._n, self._n)), 0.0
        for t in range(last, -1, -1):
            if t < last:
                cost = float(sum_above(cost, largest_loss(self._steps[t + 1])))
                limits = sum_above(self._losses(t + 1), F)
                F = self._onward(self._course.forward(t + 2), limits, *self._later, t, t, cost)
            yield t, F

    def _backward(self) -> Iterator[tuple[int, FloatArray]]:
        """(t, B_t), steps numbered from 0, from the first to the last."""
        last = len(self._steps) - 1
        B, cost = np.zeros((self._n, self._n)), 0.0
        for t in range(last + 1):
            if t > 0:
                cost = float(sum_above(cost, largest_loss(self._steps[t - 1])))
                limits = sum_above(self._losses(t - 1), B)
                kernel = self._course.backward(self._marginals[t - 1], t + 1)
                B = self._onward(kernel, limits, *self._earlier, last - t, t, cost)
            yield t, B

    def _onward(
        self, kernel: Any, limits: FloatArray, level: NDArray[np.int32], exact: int, needed: int, t: int, cost: float
    ) -> FloatArray:
        """The next F or B, up to level ``needed``: solved up to level ``exact``, bounded by way of those beyond it."""
        from dphmm._kernels.programs import onward

        possible = self._marginals[t].support
        wanted = np.outer(possible, possible)
        near = wanted & (level <= min(needed, exact))
        result = np.full((self._n, self._n), np.inf)
        np.fill_diagonal(result, 0.0)
        finite, beyond = _without_infinities(limits)
        first, second = np.nonzero(near)
        indptr, columns, logs = kernel.indptr, kernel.indices, np.log(kernel.data)
        metric = needed < exact
        solved, coupled = onward(indptr, columns, logs, finite, first, second, self._most_states, metric, result)
        result[near & (result > beyond / 2)] = np.inf
        if float(kernel.data.min(initial=1.0)) < SMALLEST and limits[level <= needed + 1].max(initial=0.0) > FAR:
            # Entries that are too small for floats may matter beyond such limits.
            result[near & (result > 0.0)] = np.inf
            self._bounded += 1
        np.minimum(result, cost, out=result, where=near)
        if needed > exact:
            self._by_way(result, near, wanted & (level == exact + 1), cost)
        self._solved += solved
        self._bounded += coupled
        return result

    def _by_way(self, result: FloatArray, near: BoolArray, far: BoolArray, cost: float) -> None:
        from dphmm._kernels.pairs import by_way_of

        first, second = np.nonzero(far)
        start = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
        found = by_way_of(result, start, np.nonzero(near)[1], first, second, cost)
        result[first, second] = np.where(found < cost, np.nextafter(found, np.inf), found)
        self._bounded += len(first)

    def _losses(self, t: int) -> FloatArray:
        """Pair losses (n, n) of a step where some level needs them; 0 elsewhere, where nothing reads them."""
        step = self._steps[t]
        if id(step) not in self._kept:
            losses = np.zeros((self._n, self._n))
            first, second = self._needed
            losses[first, second] = losses_between(step, first, second, self._n)
            while self._kept and (len(self._kept) + 1) * losses.size > _KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[id(step)] = np.maximum(losses, losses.T)
        return self._kept[id(step)]


def _without_infinities(limits: FloatArray) -> tuple[FloatArray, float]:
    """Limits with a number for infinity: so large that what it costs to pass it is either nothing or more than half."""
    known = limits[np.isfinite(limits)]
    beyond = 4 * (float(known.max(initial=0.0)) + 800)
    return np.where(np.isfinite(limits), limits, beyond), beyond


def _edges(edges: Any, n: int) -> IntArray:
    if callable(getattr(edges, "edges", None)):
        edges = edges.edges()
    found = np.asarray(edges)
    if found.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if found.ndim != 2 or found.shape[1] != 2 or not np.issubdtype(found.dtype, np.integer):
        raise InvalidInput("edges", f"an array of shape {found.shape} and type {found.dtype}", "pairs of states (m, 2)")
    if found.min() < 0 or found.max() >= n or (found[:, 0] == found[:, 1]).any():
        raise InvalidInput("edges", "a state out of range, or joined to itself", f"pairs of states from 0 to {n - 1}")
    return found.astype(np.int64)
