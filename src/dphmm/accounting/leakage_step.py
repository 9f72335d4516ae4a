"""One step of a Markov chain: its marginals, its matrices forward and backward, and L(a), the growth of a loss over it.

L(α) = sup log (q·x / d·x) over ordered pairs of rows q, d of a matrix and weights x > 0 with |log x_j − log x_k| ≤ α is
the largest loss that one move makes of a loss α (Cao, Yoshikawa, Xiao and Xiong, ICDE 2017).

`LeakageStep` computes L for large sparse matrices and few α. `LeakageCurve` is for many α: for two rows the best
weights are e^α on a prefix of the values sorted by falling q/d, so L(α) is the largest log [(1 + q E) / (1 + d E)],
E = e^α − 1, over the points (d, q) of all prefixes. The lines on which that is constant all pass through (−1/E, −1/E):
for every α the maximum is at a corner of the upper left hull of the points. The hull is computed once; an evaluation
looks at its corners.

Proofs: docs/proofs/temporal-leakage.md, docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dphmm import _kernels
from dphmm._checks import state_mask
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, IntArray, MarkovChain, Predecessors, States

#: What to do about a chain with a jump where rows of N entries would have to be compared.
NO_LEAKAGE = "a model made with --jump 0, or a promise over paths (--path-epsilon), which needs no leakage"
#: The smallest positive float: what is possible stays possible.
_LEAST = 5e-324
#: Sums of rows that are further from 1 are divided out.
_ROUNDING = 2.0**-44


@dataclass(frozen=True, eq=False)
class Marginal:
    """The law of a chain's state at one time: ``support`` (N,), and the log of each state's probability (N,)."""

    log_probability: FloatArray
    support: BoolArray

    def moved(self, columns: Predecessors) -> Marginal:
        """The marginal one move later."""
        logs = _kernels.filter.predict_logs(columns, self.log_probability)
        return Marginal(logs, logs > -np.inf)


def marginal_of(probabilities: FloatArray) -> Marginal:
    """The marginal with these probabilities (N,)."""
    with np.errstate(divide="ignore"):
        return Marginal(np.log(probabilities), np.asarray(probabilities) > 0)


class MarginalSequence:
    """The marginals of the steps t = 1, 2, ... of a chain, and the moves between them in both directions.

    beside_jump : take a chain with a jump, too. Marginals are of the whole chain then, and ``forward`` and ``backward``
        of its moves given that they are no jumps; ``jumped`` gives the share that jumped.

    Raises InvalidInput for an invalid chain, and for one with a jump without ``beside_jump``.
    """

    def __init__(self, chain: MarkovChain, *, beside_jump: bool = False) -> None:
        if not all(hasattr(chain, name) for name in ("initial", "start", "transition_at", "time_homogeneous")):
            raise InvalidInput("model", type(chain).__name__, "a Markov model: the past needs its initial distribution")
        self._jump = getattr(chain, "jump", None)
        if self._jump is not None and not beside_jump:
            raise InvalidInput("model", f"a jump of {self._jump.rate:g}, for which leakage is not computed", NO_LEAKAGE)
        #: Slots that go by a clock are those of who begins on a Monday, unless the model is counted from an origin.
        self._chain: MarkovChain = chain.counted_from() if hasattr(chain, "counted_from") else chain
        self._share: FloatArray = np.zeros(0) if self._jump is None else self._jump.share
        self._share.setflags(write=False)
        self._columns: Any = None

    @property
    def n_states(self) -> int:
        return len(self._chain.initial)

    @property
    def is_homogeneous(self) -> bool:
        """True if every move has the same matrix."""
        return bool(self._chain.time_homogeneous)

    def structure(self, steps: int) -> Any:
        """A csr matrix with an entry wherever some move between the first ``steps`` steps has one."""
        if self._chain.time_homogeneous or steps < 2:
            return self.forward(2)
        return sparse.csr_array(sum(self.forward(t) for t in range(2, steps + 1)))

    def marginals(self, steps: int) -> Iterator[Marginal]:
        """The marginals of t = 1 .. steps."""
        now = marginal_of(self._chain.initial)
        if self._chain.start == "before":
            now = self._after(now, 1)
        for t in range(1, steps + 1):
            if t > 1:
                now = self._after(now, t)
            yield now

    def forward(self, t: int) -> Any:
        """The csr matrix of the move from t - 1 to t."""
        if self._jump is not None:
            return self._chain.matrix_at(t)  # type: ignore[attr-defined]
        return self._chain.transition_at(t)

    def jumped(self, now: Marginal) -> FloatArray | None:
        """The chance that each state (N,) was jumped into, at a step with this marginal; None without a jump."""
        if self._jump is None:
            return None
        with np.errstate(over="ignore"):
            return np.minimum(1.0, np.exp(np.log(self._share) - now.log_probability))

    def backward(self, before: Marginal, t: int) -> Any:
        """Pr(s_{t-1} = b | s_t = a) as a csr matrix (a, b), from the marginal of t - 1; impossible a have no row."""
        return reversed_columns(self._columns_at(t), before)

    def is_unmixed(self, before: BoolArray, now: BoolArray, t: int) -> bool:
        """True if two of the states ``now`` (N,) are known to come from different ones of those ``before`` (N,).

        Then the backward matrix of the move to step t has rows that share no column. False says nothing.
        """
        columns = self._columns_at(t)
        return shares_nothing(columns.indptr, columns.indices, np.flatnonzero(now), before)

    def _after(self, now: Marginal, t: int) -> Marginal:
        columns = self._columns_at(t)
        if self._jump is not None:
            columns = columns * self._jump.stays
        return now.moved(Predecessors(columns.indptr, columns.indices, columns.data, self._share))

    def _columns_at(self, t: int) -> Any:
        if self._columns is None or not self._chain.time_homogeneous:
            self._columns = self.forward(t).tocsc()
        return self._columns


def compressed(transition: Any) -> Any:
    """A transition matrix, or a model's, as a csr_array of positive float64 entries; rows sum to 1, or are empty."""
    entries = getattr(transition, "transition", transition)
    if not sparse.issparse(entries):
        try:
            entries = np.asarray(entries, dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidInput("transition", type(transition).__name__, "a matrix of probabilities") from None
        if entries.ndim != 2:
            raise InvalidInput("transition", f"an array of shape {entries.shape}", "a matrix")
    matrix = sparse.csr_array(entries, dtype=np.float64)
    if not matrix.has_canonical_format or not matrix.data.all():
        matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    if not (np.isfinite(matrix.data).all() and (matrix.data > 0).all()):
        raise InvalidInput("transition", "a negative, infinite or missing entry", "probabilities")
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    wrong = (sums > 0) & (np.abs(sums - 1) > 1e-9)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInput("transition", f"row {row} with sum {sums[row]:.12g}", "rows that sum to 1 within 1e-9")
    if (np.abs(sums[sums > 0] - 1) > _ROUNDING).any():
        data = matrix.data / np.repeat(sums, np.diff(matrix.indptr))
        matrix = sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
    return matrix


def reversed_transition(transition: Any, marginal: FloatArray) -> Any:
    """Pr(s_{t-1} = b | s_t = a) = marginal[b] M[b, a] / (marginal M)[a] as a csr matrix (a, b).

    ``marginal`` (N,): the law of s_{t-1}. Rows of states that s_t cannot be are empty. The same for every t only if
    ``marginal`` is stationary.
    """
    matrix = compressed(transition)
    law = np.asarray(marginal, dtype=np.float64)
    if law.shape != (matrix.shape[0],) or not (law >= 0).all() or abs(float(law.sum()) - 1) > 1e-9:
        expected = f"{matrix.shape[0]} probabilities with sum 1"
        raise InvalidInput("marginal", f"an array of shape {law.shape}", expected)
    return reversed_columns(matrix.tocsc(), marginal_of(law))


def reversed_columns(columns: Any, before: Marginal) -> Any:
    """`reversed_transition` from compressed columns. In logs: a state may be rarer than any float."""
    n = columns.shape[1]
    known = before.support[columns.indices]
    arrived = np.repeat(np.arange(n), np.diff(columns.indptr))[known]
    left = columns.indices[known]
    weights = before.log_probability[left] + np.log(columns.data[known])
    counts = np.bincount(arrived, minlength=n)
    starts = np.concatenate([[0], np.cumsum(counts)])
    present = np.flatnonzero(counts)
    if len(present):
        weights -= np.repeat(np.maximum.reduceat(weights, starts[present]), counts[present])
        shares = np.maximum(np.exp(weights), _LEAST)
        shares = np.maximum(shares / np.repeat(np.add.reduceat(shares, starts[present]), counts[present]), _LEAST)
    else:
        shares = weights
    matrix = sparse.csr_array((shares, left, starts), shape=(n, columns.shape[0]))
    matrix.sort_indices()
    matrix.has_canonical_format = True
    return matrix


#: Beyond this a: L(a) <= min(L(FAR) + a - FAR, L(inf)), as L rises by no more than a does.
FAR = 600.0
#: Entries below this are taken as too small for floats.
SMALLEST = 1e-300
#: Memory for what is known of pairs of rows from one call to the next, in numbers.
MOST_BOUNDS = 2**23
_UNIT = 2.0**-53
#: One corner of what all pairs of rows can do together: (q_H - d_H, d_H).
_Corner = tuple[float, float]


class Corners:
    """The corners that were found to be the best of a matrix, each with the rho from and to which that is known."""

    def __init__(self) -> None:
        self._best: dict[_Corner, tuple[float, float]] = {}

    def best(self, s: float, e: float) -> tuple[float, _Corner, bool]:
        """The (rho, corner) of the best of them, and True if no other of the matrix is better."""
        rho, corner = max(((_ratio(corner, s, e), corner) for corner in self._best), default=(0.0, (0.0, 0.0)))
        low, high = self._best.get(corner, (math.inf, 0.0))
        return rho, corner, low <= rho <= high

    def learn(self, rho: float, corner: _Corner) -> None:
        """No corner is better where this one reaches ``rho``."""
        if rho < math.inf:
            low, high = self._best.get(corner, (rho, rho))
            self._best[corner] = (min(low, rho), max(high, rho))


class LeakageStep:
    """L(a) = max log (q·x / d·x) over ordered pairs q, d of rows and x with e^-a <= x_j/x_k <= e^a, rounded up.

    Parameters
    ----------
    transition : (N, M) matrix of rows that sum to 1, dense or scipy.sparse, or a model with one. Empty rows are no
        distributions and are left out.
    rows : the rows that count, as a mask or row numbers; None for all. Leave out states of prior probability 0.
    """

    def __init__(self, transition: Any, rows: States = None) -> None:
        matrix = compressed(transition)
        self._indptr, self._columns, self._data = matrix.indptr, matrix.indices, matrix.data
        self._width = int(matrix.shape[1])
        mask = state_mask(rows, int(matrix.shape[0]), "rows") & (np.diff(matrix.indptr) > 0)
        self._rows: IntArray = np.flatnonzero(mask)
        # Smaller entries may stand for others that no float can say: nothing is then concluded from their quotients.
        self._whole = float(matrix.data.min(initial=1.0)) >= SMALLEST
        # Sums of n terms that are all positive, a quotient, products, a logarithm.
        self._slack = (4 * int(np.diff(matrix.indptr).max(initial=0)) + 64) * _UNIT
        self._corners = Corners()
        # From some rho on, no pair of rows can exceed its bound.
        self._levels: list[tuple[float, FloatArray]] = []
        self._unmixed = shares_nothing(self._indptr, self._columns, self._rows)

    def __call__(self, alpha: float) -> float:
        """L(alpha), rounded up by a few units in the last place per column, and never more than alpha."""
        a = loss(alpha, "alpha")
        if a == 0 or self._unmixed:
            return a
        if a > FAR and not self._whole:
            return min(a, self(FAR) + (a - FAR))
        if FAR < a < math.inf:
            return min(a, self(FAR) + (a - FAR), self(math.inf))
        rho, _ = self._worst(a)
        return min(a, math.log1p(rho) * (1 + self._slack))

    def supremum(self, epsilon: float) -> float:
        """The limit of a = epsilon, L(a) + epsilon, L(L(a) + epsilon) + epsilon, ...: rounded up, or ``math.inf``."""
        step = loss(epsilon, "epsilon")
        if self._unmixed:
            return math.inf if step else 0.0
        a = step
        while 0 < a <= FAR:
            _, (gain, below) = self._worst(a)
            further = _fixed_point(gain + below, below, step)
            if not further > a * (1 + self._slack):
                return self._verified(max(a, further), step)
            a = further
        return 0.0 if a == 0 else self._verified(self(math.inf) + step, step)

    def _worst(self, alpha: float) -> tuple[float, _Corner]:
        """(rho, corner) with e^L(alpha) = 1 + rho; alpha at most FAR, or infinite."""
        s, e = -math.expm1(-alpha), math.exp(-alpha)
        rho, corner, sure = self._corners.best(s, e)
        if sure:
            return rho, corner
        bounds = self._bounds(rho)
        worst = _kernels.leakage.worst_pair(
            self._indptr, self._columns, self._data, self._rows, s, e, (rho, *corner), bounds, np.zeros(self._width)
        )
        rho, corner = float(worst[0]), (float(worst[1]), float(worst[2]))
        self._corners.learn(rho, corner)
        self._keep(rho, bounds)
        return rho, corner

    def _bounds(self, rho: float) -> FloatArray:
        """The best bounds known for rho and above."""
        n = len(self._rows)
        if n * n > MOST_BOUNDS:
            return np.empty((0, 0))
        usable = [level for level in self._levels if level[0] <= rho]
        return max(usable, key=lambda level: level[0])[1].copy() if usable else np.full((n, n), np.inf)

    def _keep(self, rho: float, bounds: FloatArray) -> None:
        if len(bounds) and rho < math.inf:
            self._levels.append((rho, bounds))
            if len(self._levels) * bounds.size > MOST_BOUNDS:
                del self._levels[len(self._levels) // 2]

    def _verified(self, a: float, step: float) -> float:
        """The first a' >= a, in growing steps, with L(a') + step <= a': nothing that starts below gets past it."""
        widening = self._slack
        while a < math.inf and self(a) + step > a:
            a += widening * max(a, 1.0)
            widening *= 2
        return a


class Unmixed:
    """L(a) = a, of every matrix two of whose rows share no column: nothing that was lost is mixed away."""

    def __call__(self, alpha: float) -> float:
        """``alpha``."""
        return alpha

    def supremum(self, epsilon: float) -> float:
        """The limit of the loss: infinity, but 0 if nothing is lost."""
        return math.inf if epsilon else 0.0


def shares_nothing(indptr: IntArray, columns: IntArray, rows: IntArray, within: BoolArray | None = None) -> bool:
    """True if one of two rows of a compressed matrix shares no column with some other of the ``rows`` (k,).

    Then L(a) = a (docs/proofs/temporal-leakage.md). Two of the rows are looked at, the first and the shortest: False
    says nothing. ``within``: of the columns only these, as a mask; rows without any of them do not count.
    """
    if len(rows) < 2:
        return False
    allowed = np.ones(int(columns.max(initial=-1)) + 1, dtype=np.bool_) if within is None else within
    counts = _sums(allowed[columns], indptr)[rows]
    rows = rows[counts > 0]
    if len(rows) < 2:
        return False
    for row in (rows[0], rows[int(np.argmin(counts[counts > 0]))]):
        marked = np.zeros_like(allowed)
        marked[columns[indptr[row] : indptr[row + 1]]] = True
        if (_sums((marked & allowed)[columns], indptr)[rows] == 0).any():
            return True
    return False


def _sums(marked: BoolArray, indptr: IntArray) -> IntArray:
    """The number of marked entries in each row."""
    before = np.concatenate([[0], np.cumsum(marked)])
    sums: IntArray = before[indptr[1:]] - before[indptr[:-1]]
    return sums


def leakage_step(transition: Any, alpha: float, rows: States = None) -> float:
    """L(alpha) of :class:`LeakageStep`, once: the largest loss that one move makes of a loss ``alpha``.

    ``alpha`` >= 0, or ``math.inf``. Rounded up.
    """
    return LeakageStep(transition, rows)(alpha)


def loss(value: object, field: str) -> float:
    """A loss as a float: a number of at least 0, ``math.inf`` included; no NaN."""
    if not isinstance(value, (bool, np.bool_, str)):
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            number = math.nan
        if number >= 0:
            return number
    raise InvalidInput(field, value, "a number of at least 0")


def _ratio(corner: _Corner, s: float, e: float) -> float:
    bottom = s * corner[1] + e
    return s * corner[0] / bottom if bottom > 0 else math.inf


def _fixed_point(q: float, d: float, step: float) -> float:
    """The a with log [(q (e^a - 1) + 1) / (d (e^a - 1) + 1)] + step = a; infinite where there is none."""
    if step > FAR:
        return math.inf
    growth = math.exp(step)
    linear = d + q * growth - 1
    root = math.sqrt(linear * linear + 4 * d * growth * max(0.0, 1 - q))
    if linear < 0:
        return math.log(2 * growth * max(0.0, 1 - q) / (root - linear)) if q < 1 else math.inf
    return math.log((linear + root) / (2 * d)) if d > 0 else math.inf


@dataclass(frozen=True, eq=False)
class LeakageCurve:
    """L of one kernel. ``shares`` (2, h): d and q − d of the corners; ``error`` bounds relative errors of d and q."""

    shares: FloatArray
    error: float

    @classmethod
    def of(cls, kernel: FloatArray, possible: BoolArray | None = None, error: float = 0.0) -> LeakageCurve:
        """The curve of a kernel (k, m), rows outside ``possible`` left out; ``error``: relative, of its entries."""
        rows = np.unique(kernel if possible is None else kernel[possible], axis=0)
        if len(rows) < 2:
            return cls(np.zeros((2, 1)), error)
        points = np.zeros((1, 2))
        for row in rows:
            if len(points) == 1 and points[0, 1] == 1.0:
                break
            points = _front(np.concatenate([points, _prefixes(row, rows)]))
        corners, excess = _hull(points)
        summed = (kernel.shape[1] + 2) * _UNIT
        return cls(np.array([corners[:, 0], corners[:, 1] - corners[:, 0]]), summed + 2 * error + excess)

    def __call__(self, alpha: float) -> float:
        """L(alpha), as computed; alpha may be infinite."""
        d, more = self.shares
        return float(_kernels.leakage.increase(d, more, alpha))

    def above(self, alpha: float) -> float:
        """A number that is not below L(alpha), rounding and the error of the kernel included; at most alpha."""
        d, more = self.shares
        return float(_kernels.leakage.increase_above(d, more, self.error, alpha))


class Scan:
    """The same for a kernel that is asked a few times only: all pairs of rows are looked at each time."""

    def __init__(self, kernel: FloatArray, possible: BoolArray, error: float) -> None:
        rows = kernel[possible]
        self._same = bool((rows == rows[0]).all())
        self._increase = LeakageStep(rows)
        self._error = error

    def above(self, alpha: float) -> float:
        """A number that is not below L(alpha), as of a `LeakageCurve`."""
        if alpha <= 0.0:
            return 0.0
        increase = 0.0 if self._same else self._increase(alpha)
        return min(alpha, increase + _kernels.leakage.moved_by(self._error, alpha))


def _prefixes(row: FloatArray, others: FloatArray) -> FloatArray:
    """Points (d, q) of all prefixes of ``row`` against each of ``others``, sorted by falling quotient."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        quotients = np.where(row > 0.0, row / others, -1.0)
    order = np.argsort(-quotients, axis=1)
    q = np.cumsum(row[order], axis=1)
    d = np.cumsum(np.take_along_axis(others, order, axis=1), axis=1)
    return np.stack([np.minimum(d, 1.0).ravel(), np.minimum(q, 1.0).ravel()], axis=1)


def _front(points: FloatArray) -> FloatArray:
    """Points that no other beats in both coordinates, by rising d and rising q."""
    points = points[np.lexsort((-points[:, 1], points[:, 0]))]
    best = np.maximum.accumulate(points[:, 1])
    unbeaten = np.r_[True, points[1:, 1] > best[:-1]]
    front: FloatArray = points[unbeaten]
    return front


def _hull(front: FloatArray) -> tuple[FloatArray, float]:
    """Corners of the least concave curve over a front, and its relative gap to points that rounding left above it."""
    corners: list[tuple[float, float]] = []
    for d, q in front.tolist():
        while len(corners) > 1 and _under(corners[-2], corners[-1], (d, q)):
            corners.pop()
        corners.append((d, q))
    hull = np.array(corners)
    over = np.interp(front[:, 0], hull[:, 0], hull[:, 1])
    with np.errstate(divide="ignore", invalid="ignore"):
        excess = np.where(front[:, 1] > over, front[:, 1] / over - 1.0, 0.0)
    return hull, float(excess.max()) + 8 * _UNIT


def _under(first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]) -> bool:
    across = (middle[0] - first[0]) / (last[0] - first[0])
    return middle[1] <= first[1] + (last[1] - first[1]) * across
