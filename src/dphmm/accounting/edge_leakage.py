"""Policy leakage: the loss of a whole sequence of releases between the two ends of a policy edge at one step.

The sum of epsilons bounds the loss of two neighbouring paths, but not that of two states of one step. The sum of costs
bounds the loss of any two histories, which is far too much for an edge. `policy_leakage` computes a bound in between:
c_t(i, j) of the step itself, F_t of later steps, B_t of earlier steps. F and B come from couplings of the states that i
and j can move to or come from; the losses of their pairs are the limits. Every figure is an upper bound, and not exact.

`couplable` tells if the sum of epsilons is enough. The two ends of an edge are two mixtures of paths. If the paths of
one end can be matched with neighbouring paths of the other, the loss of neighbouring paths bounds the loss of the two
states. For a Markov chain it is enough to match one move at a time, forwards and backwards.

Proofs: docs/proofs/policy-leakage.md, docs/proofs/couplings.md.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dphmm import _kernels
from dphmm.accounting.budget import float_above, sum_above
from dphmm.accounting.leakage_step import FAR, SMALLEST, Marginal, MarginalSequence
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray, IntArray, LosesByAnswers, PairLosses, ReleasePlan

#: No level: the pair is never needed.
NEVER = np.iinfo(np.int32).max


def losses_between(step: Any, i: IntArray, j: IntArray, n: int) -> FloatArray:
    """The loss of one step for the pairs (i[k], j[k]): of a Plan, a matrix (n, n), `PairLosses`, or None for a skip."""
    if step is None:
        return np.zeros(len(i))
    if hasattr(step, "loss_between"):
        losses = np.asarray(cast(PairLosses, step).loss_between(i, j), dtype=np.float64)
    elif hasattr(step, "mechanism") and hasattr(step, "image"):
        losses = _of_plan(cast(ReleasePlan, step), i, j, n)
    else:
        losses = _of_matrix(step, n)[i, j]
    if losses.shape != i.shape or not (losses >= 0).all():
        raise InvalidInput("losses", f"shape {losses.shape}, or a negative or missing loss", "losses of at least 0")
    return np.where(i == j, 0.0, losses)


def largest_loss(step: Any) -> float:
    """The largest loss of any pair of states at one step, where it is known; else ``math.inf``."""
    if step is None:
        return 0.0
    cost = getattr(step, "cost", None)
    if cost is not None:
        return float_above(cost)
    if hasattr(step, "loss_between"):
        return math.inf
    return float(np.max(step, initial=0.0))


def levels(structure: Any, edges: IntArray, most: int, enough: int) -> tuple[NDArray[np.int32], int]:
    """The number of moves (n, n) after which a pair is first needed, NEVER if not; and the last level that is coupled.

    The edges are needed at once, then pairs of states that the ends of needed pairs can move to. Up to ``most`` moves;
    once more than ``enough`` pairs are needed, the level that made them too many is left out.
    """
    n = int(structure.shape[0])
    level = np.full((n, n), NEVER, dtype=np.int32)
    level[edges[:, 0], edges[:, 1]] = level[edges[:, 1], edges[:, 0]] = 0
    first, second = edges[:, 0].copy(), edges[:, 1].copy()
    total = len(first)
    for number in range(1, most + 1):
        first, second = _kernels.policy_leakage.next_pairs(
            structure.indptr, structure.indices, first, second, level, number
        )
        total += len(first)
        if len(first) == 0:
            break
        if total > enough:
            return level, number - 1
    return level, most


def _of_matrix(step: Any, n: int) -> FloatArray:
    try:
        matrix = np.asarray(step, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("losses", type(step).__name__, f"plans, or matrices ({n}, {n})") from None
    if matrix.shape != (n, n):
        raise InvalidInput("losses", f"shape {matrix.shape}", f"({n}, {n})")
    if not np.array_equal(matrix, matrix.T):
        raise InvalidInput("losses", "a matrix that is not symmetric", "the same loss for (i, j) and (j, i)")
    return matrix


def _of_plan(plan: ReleasePlan, i: IntArray, j: IntArray, n: int) -> FloatArray:
    """The losses of a plan: by the two answers, or by their difference alone."""
    image, mechanism = np.asarray(plan.image), plan.mechanism
    if len(image) != n:
        raise InvalidInput("losses", f"a plan of {len(image)} states", f"one of {n}")
    if isinstance(mechanism, LosesByAnswers):
        return mechanism.losses_between(image[i], image[j])
    differences, which = np.unique(image[i] - image[j], axis=0, return_inverse=True)
    losses = np.array([float_above(mechanism.loss_lattice(v)) for v in differences])
    of_pairs: FloatArray = losses[which.ravel()]
    return of_pairs


#: Couplings looked for at most, about: pairs that only later moves need are then bounded by way of nearer ones.
MOST_COUPLINGS = 10_000_000
#: Most states: all pairs of them are kept in memory.
MOST_STATES = 4_000
#: Numbers of pair losses that are kept from one direction to the other.
_KEPT = 2**25


@dataclass(frozen=True, eq=False)
class PolicyLeakage:
    """The leakage of edges, per step and edge (T, m): ``present`` c, ``forward`` F, ``backward`` B, and ``total``.

    F and B are the larger of their two directions, ``total`` is c plus the larger sum of a direction. For edges between
    secrets, F and B are those of the worst two latent states, and ``total`` is c plus the least sum within which all
    latent states of one end can be carried onto those of the other. NaN where an end of the edge is impossible at the
    step. ``edges`` (m, 2). ``couplings``: the number of different ones that were looked for.
    """

    edges: IntArray
    present: FloatArray
    forward: FloatArray
    backward: FloatArray
    total: FloatArray
    couplings: int

    @property
    def worst(self) -> float:
        """The largest total of any edge at any step; 0 if no edge is possible."""
        return float(np.max(self.total, initial=0.0, where=~np.isnan(self.total)))


def policy_leakage(
    model: Any,
    plans_or_losses: Sequence[Any],
    edges: Any,
    *,
    most_couplings: int = MOST_COUPLINGS,
    progress: Callable[[int, int], None] | None = None,
) -> PolicyLeakage:
    """Bound the loss of each edge over a sequence: log Pr(z_1 .. z_T | s_t = i) / Pr(z_1 .. z_T | s_t = j).

    Parameters
    ----------
    model : MarkovModel, as the adversary believes it, its initial distribution included.
    plans_or_losses : one for each step t = 1 .. T: the Plan of its release, a symmetric matrix (N, N) of pair losses,
        anything with ``loss_between(i, j)``, or None where nothing is released.
    edges : (m, 2) states, or a policy. For a model with secrets, edges, plans and losses are about secrets.
    most_couplings : from so many on, pairs that only later moves need are bounded by way of nearer ones.
    progress : called with the number of finished steps, which are passed in both directions, and their number in all.

    Raises InvalidInput for edges, losses or models that do not fit each other.
    """
    sequence = MarginalSequence(model)
    n = len(model.initial)
    if n > MOST_STATES:
        raise InvalidInput("model", f"{n} states", f"at most {MOST_STATES} states: all pairs of them are looked at")
    secrets = secrets_of(model)
    pairs = _edges(edges, int(secrets.max()) + 1)
    lifted, first = _lifted_edges(pairs, secrets)
    steps = list(plans_or_losses)
    sweep = _Sweep(sequence, list(sequence.marginals(len(steps))), steps, lifted, secrets, most_couplings)
    if getattr(model, "secrets", None) is None:
        return sweep.leakage(progress)
    carried = np.full((len(steps), len(pairs)), np.nan)
    leakage = sweep.leakage(progress, lambda t, sums: sweep.carry(t, sums, first, carried[t]))
    present, there, back = (
        np.fmax.reduceat(of, first, axis=1) for of in (leakage.present, leakage.forward, leakage.backward)
    )
    return PolicyLeakage(pairs, present, there, back, sum_above(carried, present), leakage.couplings)


def secrets_of(model: Any) -> IntArray:
    """The secret of each state (N,) of a chain: the state itself where it has none."""
    secrets: IntArray | None = getattr(model, "secrets", None)
    return np.arange(len(model.initial), dtype=np.int64) if secrets is None else secrets


def _lifted_edges(edges: IntArray, secrets: IntArray) -> tuple[IntArray, IntArray]:
    """All pairs (k, 2) of a latent state of one end and one of the other, edge by edge; and the first of each edge."""
    order = np.argsort(secrets, kind="stable")
    sizes = np.bincount(secrets)
    begins = np.cumsum(sizes) - sizes
    left, right = edges.T
    counts = sizes[left] * sizes[right]
    edge = np.repeat(np.arange(len(edges)), counts)
    first = np.cumsum(counts) - counts
    place = np.arange(len(edge)) - first[edge]
    of_left, of_right = place // sizes[right][edge], place % sizes[right][edge]
    pairs = order[begins[left][edge] + of_left], order[begins[right][edge] + of_right]
    return np.stack(pairs, axis=1), first


class _Sweep:
    """F from the last step to the first, B from the first to the last, over the pairs that edges need."""

    def __init__(
        self,
        sequence: MarginalSequence,
        marginals: list[Marginal],
        steps: list[Any],
        edges: IntArray,
        secrets: IntArray,
        most_couplings: int,
    ) -> None:
        self._sequence, self._marginals, self._steps, self._edges = sequence, marginals, steps, edges
        self._n, self._secrets, self._n_secrets = sequence.n_states, secrets, int(secrets.max()) + 1
        reach = sequence.structure(len(steps))
        # Two directions of time, two of each pair.
        enough = most_couplings // (4 * max(1, len(steps)))
        self._later = levels(reach, edges, len(steps) - 1, enough)
        self._earlier = levels(reach.T.tocsr(), edges, len(steps) - 1, enough)
        self._needed = np.nonzero(np.triu((self._later[0] < NEVER) | (self._earlier[0] < NEVER)))
        self._kept: dict[int, FloatArray] = {}
        self._couplings = 0

    def leakage(
        self,
        progress: Callable[[int, int], None] | None = None,
        together: Callable[[int, list[FloatArray]], None] | None = None,
    ) -> PolicyLeakage:
        """Both sweeps, put together at the edges; ``together`` takes F + B (m,) of each step, in both directions."""
        done, steps = itertools.count(1), 2 * len(self._steps)

        def counted(found: Iterator[tuple[int, FloatArray]]) -> Iterator[tuple[int, FloatArray]]:
            for step in found:
                if progress is not None:
                    progress(next(done), steps)
                yield step

        shape = (len(self._steps), len(self._edges))
        i, j = self._edges.T
        present, there, back = np.full(shape, np.nan), np.full(shape, np.nan), np.full(shape, np.nan)
        total = np.full(shape, -np.inf)
        forward = {t: (F[i, j], F[j, i]) for t, F in counted(self._forward())}
        for t, B in counted(self._backward()):
            backward = B[i, j], B[j, i]
            present[t] = losses_between(self._steps[t], self._secrets[i], self._secrets[j], self._n_secrets)
            there[t], back[t] = np.maximum(*forward[t]), np.maximum(*backward)
            sums = [np.asarray(sum_above(ahead, past)) for ahead, past in zip(forward[t], backward, strict=True)]
            for both in sums:
                total[t] = np.maximum(total[t], sum_above(both, present[t]))
            if together is not None:
                together(t, sums)
            possible = self._marginals[t].support
            for values in (present, there, back, total):
                values[t, ~(possible[i] & possible[j])] = np.nan
        return PolicyLeakage(self._edges, present, there, back, total, self._couplings)

    def carry(self, t: int, sums: Sequence[FloatArray], first: IntArray, most: FloatArray) -> None:
        """Fill ``most`` (m,): the largest distance that latent states of an edge's ends have to be carried.

        ``sums``: the losses of pairs of them beside the step itself, in both directions; those of an edge begin at
        ``first`` (m,). NaN stays where an end is impossible.
        """
        logs, possible = self._marginals[t].log_probability, self._marginals[t].support
        for edge, (begin, end) in enumerate(itertools.pairwise([*first.tolist(), len(self._edges)])):
            pairs = self._edges[begin:end]
            left, right = (np.unique(ends[possible[ends]]) for ends in pairs.T)
            within = possible[pairs].all(axis=1)
            if not within.any():
                continue
            shares = logs[left] - np.logaddexp.reduce(logs[left]), logs[right] - np.logaddexp.reduce(logs[right])
            block = [both[begin:end][within].reshape(len(left), len(right)) for both in sums]
            most[edge] = max(_carried(*shares, block[0]), _carried(*shares[::-1], block[1].T))

    def _forward(self) -> Iterator[tuple[int, FloatArray]]:
        """(t, F_t), steps numbered from 0, from the last to the first."""
        last = len(self._steps) - 1
        F, cost = np.zeros((self._n, self._n)), 0.0
        for t in range(last, -1, -1):
            if t < last:
                cost = float(sum_above(cost, largest_loss(self._steps[t + 1])))
                limits = sum_above(self._losses(t + 1), F)
                F = self._onward(self._sequence.forward(t + 2), limits, *self._later, t, t, cost)
            yield t, F

    def _backward(self) -> Iterator[tuple[int, FloatArray]]:
        """(t, B_t), steps numbered from 0, from the first to the last."""
        last = len(self._steps) - 1
        B, cost = np.zeros((self._n, self._n)), 0.0
        for t in range(last + 1):
            if t > 0:
                cost = float(sum_above(cost, largest_loss(self._steps[t - 1])))
                limits = sum_above(self._losses(t - 1), B)
                kernel = self._sequence.backward(self._marginals[t - 1], t + 1)
                B = self._onward(kernel, limits, *self._earlier, last - t, t, cost)
            yield t, B

    def _onward(
        self, kernel: Any, limits: FloatArray, level: NDArray[np.int32], coupled: int, needed: int, t: int, cost: float
    ) -> FloatArray:
        """The next F or B, up to level ``needed``: coupled up to level ``coupled``, and by way of those beyond it."""
        possible = self._marginals[t].support
        wanted = np.outer(possible, possible)
        near = wanted & (level <= min(needed, coupled))
        result = np.full((self._n, self._n), np.inf)
        np.fill_diagonal(result, 0.0)
        finite, beyond = _without_infinities(limits)
        first, second = np.nonzero(near)
        indptr, columns, logs = kernel.indptr, kernel.indices, np.log(kernel.data)
        metric = needed < coupled
        self._couplings += _kernels.policy_leakage.onward(indptr, columns, logs, finite, first, second, metric, result)
        result[near & (result > beyond / 2)] = np.inf
        if float(kernel.data.min(initial=1.0)) < SMALLEST and limits[level <= needed + 1].max(initial=0.0) > FAR:
            # Entries that are too small for floats may matter beyond such limits.
            result[near & (result > 0.0)] = np.inf
        np.minimum(result, cost, out=result, where=near)
        if needed > coupled:
            i, j = np.nonzero(wanted & (level == coupled + 1))
            start = np.concatenate([[0], np.cumsum(near.sum(axis=1))])
            costs = _kernels.policy_leakage.by_way_of(result, start, second, i, j, cost)
            result[i, j] = np.where(costs < cost, np.nextafter(costs, np.inf), costs)
        return result

    def _losses(self, t: int) -> FloatArray:
        """Pair losses (n, n) of a step where some level needs them; 0 elsewhere, where nothing reads them."""
        step = self._steps[t]
        if id(step) not in self._kept:
            losses = np.zeros((self._n, self._n))
            first, second = self._needed
            of_secrets = self._secrets[first], self._secrets[second]
            losses[first, second] = losses_between(step, *of_secrets, self._n_secrets)
            while self._kept and (len(self._kept) + 1) * losses.size > _KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[id(step)] = np.maximum(losses, losses.T)
        return self._kept[id(step)]


def _carried(log_q: FloatArray, log_d: FloatArray, limits: FloatArray) -> float:
    """The least r such that one law (k,) can be carried onto another (m,) over limits (k, m) of at most r."""
    if limits.size == 1:
        return float(limits[0, 0])
    k, n = len(log_q), len(log_q) + len(log_d)
    finite, beyond = _without_infinities(limits)
    laws, whole = np.full((2, n), -np.inf), np.full((n, n), beyond)
    laws[0, :k], laws[1, k:], whole[:k, k:] = log_q, log_d, finite
    least = float(_kernels.policy_leakage.bottleneck(laws[0], laws[1], whole))
    return math.inf if least > beyond / 2 else least


def _without_infinities(limits: FloatArray) -> tuple[FloatArray, float]:
    """Limits with a number for infinity: so large that the cost of passing it is either nothing or more than half."""
    known = limits[np.isfinite(limits)]
    beyond = 4 * (float(known.max(initial=0.0)) + 800)
    return np.where(np.isfinite(limits), limits, beyond), beyond


def _edges(edges: Any, n: int) -> IntArray:
    if callable(getattr(edges, "edges", None)):
        edges = edges.edges()
    pairs = np.asarray(edges)
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise InvalidInput("edges", f"an array of shape {pairs.shape} and type {pairs.dtype}", "pairs of states (m, 2)")
    if pairs.min() < 0 or pairs.max() >= n or (pairs[:, 0] == pairs[:, 1]).any():
        raise InvalidInput("edges", "a state out of range, or joined to itself", f"pairs of states from 0 to {n - 1}")
    return pairs.astype(np.int64)


#: Marginals that differ by less, in logs, have one reversal.
_SETTLED = 1e-12


@dataclass(frozen=True)
class Couplable:
    """The least number of policy hops within which a chain keeps the paths of an edge's two ends.

    hops : the least number of policy hops within which every move of the two ends can be matched; 1 or less where the
        chain couples along the policy, ``math.inf`` where some need more than any number.
    edges : the number of (edge, step, direction) that were looked at. Equal ones count once.
    worst : (step, "forward" or "backward", one end, other end) of a pair that needs so many hops; None without a move.
    """

    hops: float
    edges: int
    worst: tuple[int, str, int, int] | None

    @property
    def holds(self) -> bool:
        """True if the policy leakage of any sequence of releases is at most the sum of its epsilons."""
        return self.hops <= 1


def couplable(model: Any, policy: Any, steps: int) -> Couplable:
    """Check if a chain couples along a policy over ``steps`` steps, from its own start.

    Parameters
    ----------
    model : MarkovModel, its initial distribution included: the moves into a step depend on it. Jumps are matched with
        jumps: that is enough, but where a chain with a jump needs more hops so, another matching might need fewer.
    policy : a policy, or edges (m, 2). States that no edge joins have partners, which are not looked at: they depend on
        the plans. In a model with secrets they join secrets. Then its latent states are matched: two of one secret have
        to be as well as two of secrets that an edge joins.
    steps : the number of released steps, 1 or more.

    Rows are compared to rounding, relative to each share: a move has to be matched however rare it is. So the sequence
    loses at most the sum of epsilons, and 2**-33 more for each of its moves.

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
    sequence = MarginalSequence(model, beside_jump=True)
    n = sequence.n_states
    if n > MOST_STATES:
        raise InvalidInput("model", f"{n} states", f"at most {MOST_STATES} states: all pairs of them are looked at")
    if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise InvalidInput("steps", steps, "a number of steps, 1 or more")
    secrets = secrets_of(model)
    edges = _policy_edges(policy, int(secrets.max()) + 1)
    hops = _hops(edges, int(secrets.max()) + 1)
    if getattr(model, "secrets", None) is not None:
        # All pairs of states whose secrets are joined, or one.
        edges = np.stack(np.nonzero(np.triu((hops <= 1)[np.ix_(secrets, secrets)], 1)), axis=1)
    search = _HopSearch(hops, edges, secrets)
    for t, direction, rows, now in _moves(sequence, int(steps)):
        search.look(t, direction, rows, now, sequence.jumped(now) if direction == "backward" else None)
    return Couplable(search.most, len(search.known), search.worst)


def _moves(sequence: MarginalSequence, steps: int) -> Iterator[tuple[int, str, Any, Marginal]]:
    """(step, direction, rows, marginal of the step) of every move out of a step and into it; equal ones once."""
    before: Marginal | None = None
    reversed_from: Marginal | None = None
    left_from: set[bytes] = set()
    for t, now in enumerate(sequence.marginals(steps), start=1):
        support = now.support.tobytes()
        if t < steps and not (sequence.is_homogeneous and support in left_from):
            left_from.add(support)
            yield t, "forward", sequence.forward(t + 1), now
        if before is not None and not (sequence.is_homogeneous and _same(reversed_from, before)):
            reversed_from = before
            yield t, "backward", sequence.backward(before, t), now
        before = now


def _same(one: Marginal | None, other: Marginal) -> bool:
    if one is None or not np.array_equal(one.support, other.support):
        return False
    within = one.support
    return bool(np.abs(one.log_probability[within] - other.log_probability[within]).max(initial=0.0) <= _SETTLED)


class _HopSearch:
    """The most hops that any pair of rows needs, and where; equal pairs are looked at once."""

    def __init__(self, hops: FloatArray, edges: IntArray, secrets: IntArray) -> None:
        self._hops, self._edges, self._secrets = hops, edges, secrets
        self.known: dict[bytes, float] = {}
        self.most = 0.0
        self.worst: tuple[int, str, int, int] | None = None

    def look(self, t: int, direction: str, rows: Any, marginal: Marginal, jumped: FloatArray | None) -> None:
        """The edges whose two ends are possible at a step; of each end ``jumped`` (N,) may have been jumped into."""
        possible = marginal.support
        for k, m in self._edges[possible[self._edges].all(axis=1)].tolist():
            # A jump of the one that would have to be matched with a move of the other is not.
            apart = jumped is not None and not _alike(jumped[k], jumped[m])
            needed = math.inf if apart else self._needed(rows, k, m)
            if self.worst is None or needed > self.most:
                self.most, self.worst = needed, (t, direction, k, m)

    def _needed(self, rows: Any, k: int, m: int) -> float:
        """The hops that the rows k and m need."""
        (left, q), (right, d) = _row(rows, k), _row(rows, m)
        states = np.union1d(left, right)
        if not len(states):
            # Nothing but jumps leads to either.
            return 0.0
        shares, others = np.zeros(len(states)), np.zeros(len(states))
        shares[np.searchsorted(states, left)], others[np.searchsorted(states, right)] = q, d
        limits = self._hops[np.ix_(self._secrets[states], self._secrets[states])]
        key = shares.tobytes() + others.tobytes() + limits.tobytes()
        if key not in self.known:
            self.known[key] = float(_kernels.policy_leakage.fewest(shares, others, limits))
        return self.known[key]


def _alike(one: float, other: float) -> bool:
    """True where two chances, and their complements, agree within the room of `_kernels.policy_leakage`."""
    if one == other:
        return True
    if not (0 < one < 1 and 0 < other < 1):
        return False
    room = _kernels.policy_leakage.ROOM
    return abs(math.log(one) - math.log(other)) <= room and abs(math.log1p(-one) - math.log1p(-other)) <= room


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


def _policy_edges(policy: Any, n: int) -> IntArray:
    pairs = np.asarray(policy.edges() if hasattr(policy, "edges") else policy)
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidInput("policy", f"an array of shape {pairs.shape}", "a policy, or edges (m, 2)")
    if pairs.min() < 0 or pairs.max() >= n:
        raise InvalidInput("policy", "an edge of no state", f"states 0 to {n - 1}, those of the model")
    return pairs.astype(np.int64)
