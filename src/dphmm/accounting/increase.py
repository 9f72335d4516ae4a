"""L(a): the largest loss that one move of a Markov chain makes of a loss a (Cao et al., ICDE 2017).

`Directions` are the two ways from one time to the next: how a loss grows on the way to later values, and to earlier
ones.

Proof: docs/proofs/temporal-leakage.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from dphmm._checks import state_mask
from dphmm.accounting.marginals import Course, compressed
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, IntArray, States

#: Reversed kernels whose entries differ by no more than this (in logs) count as one; the difference is added.
ALIKE = 1e-13
#: How long a chain may take to become stationary before its limit counts as unknown.
MOST_STEPS = 1_000


class Increasing(Protocol):
    """How a loss grows over one move, and the limit of growing over and over."""

    def __call__(self, alpha: float) -> float: ...

    def supremum(self, epsilon: float) -> float: ...


class Directions(ABC):
    """The moves of a sequence in both directions of time."""

    @staticmethod
    def of(model: Any, backward: Any, rows: States) -> Directions:
        """From a model and its marginals, or from two matrices."""
        if backward is not None:
            return _Fixed(Increase(model, rows), Increase(backward, rows))
        return _Own(model, rows)

    @abstractmethod
    def past(self, steps: int) -> Iterator[Increasing]:
        """L_B from t - 1 to t, for t = 2 .. steps."""

    @abstractmethod
    def future(self, steps: int) -> Iterator[Increasing]:
        """L_F from t + 1 to t, for t = 1 .. steps - 1."""

    @abstractmethod
    def settled(self) -> tuple[Increasing, Increasing]:
        """The worst L_B and L_F of sequences of any length. Raises InvalidInput if the marginals do not settle."""

    def worst(self, steps: int) -> tuple[Increasing, Increasing]:
        """The worst L_B and L_F of any move of a sequence."""
        return _Worst.of(self.past(steps)), _Worst.of(self.future(steps))


@dataclass(frozen=True)
class _Fixed(Directions):
    forward: Increase
    backward: Increase

    def past(self, steps: int) -> Iterator[Increasing]:
        return (self.backward for _ in range(steps - 1))

    def future(self, steps: int) -> Iterator[Increasing]:
        return (self.forward for _ in range(steps - 1))

    def settled(self) -> tuple[Increasing, Increasing]:
        return self.backward, self.forward


class _Own(Directions):
    """The moves of a model, with its own marginals."""

    def __init__(self, model: Any, rows: States) -> None:
        self._course = Course(model)
        self._homogeneous = bool(model.time_homogeneous)
        self._rows = state_mask(rows, len(model.initial), "rows")
        self._forward: dict[bytes, Increase] = {}

    def past(self, steps: int) -> Iterator[Increasing]:
        return (increase for increase, _ in self._past(steps))

    def future(self, steps: int) -> Iterator[Increasing]:
        for t, now in enumerate(self._course.marginals(steps - 1), start=1):
            yield self._ahead(t, now.support & self._rows)

    def settled(self) -> tuple[Increasing, Increasing]:
        kernels: list[Increasing] = []
        supports: list[BoolArray] = []
        for increase, support in self._past(MOST_STEPS) if self._homogeneous else ():
            if kernels and _same(increase, kernels[-1]) and np.array_equal(support, supports[-1]):
                return _Worst.of(kernels), self._ahead(1, np.logical_or.reduce(supports) & self._rows)
            kernels.append(increase)
            supports.append(support)
        came = f"a chain that does not become stationary within {MOST_STEPS} steps"
        raise InvalidInput("model", came, "one that does, or a number of steps")

    def _past(self, steps: int) -> Iterator[tuple[Increasing, BoolArray]]:
        """L_B and the states possible before, for t = 2 .. steps; one object for as long as the kernel is the same."""
        before, kernel, increase = None, None, None
        for t, now in enumerate(self._course.marginals(steps), start=1):
            if before is not None:
                found = self._course.backward(before, t)
                apart = difference(kernel, found)
                if increase is None or apart > ALIKE:
                    kernel, increase, apart = found, Increase(found, now.support & self._rows), 0.0
                yield (increase if apart == 0 else _Near(increase, apart)), before.support
            before = now

    def _ahead(self, t: int, rows: BoolArray) -> Increase:
        if not self._homogeneous:
            return Increase(self._course.forward(t + 1), rows)
        key = np.packbits(rows).tobytes()
        if key not in self._forward:
            self._forward[key] = Increase(self._course.forward(t + 1), rows)
        return self._forward[key]


@dataclass(frozen=True)
class _Near:
    """A kernel whose entries differ from a known one by a factor of at most e^apart: L differs by 2 apart."""

    known: Increase
    apart: float

    def __call__(self, alpha: float) -> float:
        return min(alpha, self.known(alpha) + 2 * self.apart)

    def supremum(self, epsilon: float) -> float:
        return self.known.supremum(epsilon + 2 * self.apart)


@dataclass(frozen=True)
class _Worst:
    """The largest of several."""

    increases: tuple[Increasing, ...]

    @classmethod
    def of(cls, increases: Iterator[Increasing] | Sequence[Increasing]) -> _Worst:
        return cls(tuple(dict.fromkeys(increases)))

    def __call__(self, alpha: float) -> float:
        return max((increase(alpha) for increase in self.increases), default=0.0)

    def supremum(self, epsilon: float) -> float:
        return max((increase.supremum(epsilon) for increase in self.increases), default=epsilon)


def difference(known: Any, found: Any) -> float:
    """The largest |log| of a quotient of entries of two csr matrices; infinite where one has an entry alone."""
    if known is None or len(known.data) != len(found.data):
        return math.inf
    if not (np.array_equal(known.indptr, found.indptr) and np.array_equal(known.indices, found.indices)):
        return math.inf
    return float(np.abs(np.log(known.data) - np.log(found.data)).max(initial=0.0))


def _same(one: Increasing, other: Increasing) -> bool:
    kernels = [near.known if isinstance(near, _Near) else near for near in (one, other)]
    return kernels[0] is kernels[1]


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
        """(rho, corner) of the best of them, and whether no other of the matrix is better."""
        rho, corner = max(((_ratio(corner, s, e), corner) for corner in self._best), default=(0.0, (0.0, 0.0)))
        low, high = self._best.get(corner, (math.inf, 0.0))
        return rho, corner, low <= rho <= high

    def learn(self, rho: float, corner: _Corner) -> None:
        """No corner is better where this one reaches ``rho``."""
        if rho < math.inf:
            low, high = self._best.get(corner, (rho, rho))
            self._best[corner] = (min(low, rho), max(high, rho))


class Increase:
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

    def __call__(self, alpha: float) -> float:
        """L(alpha), rounded up by a few units in the last place per column, and never more than alpha."""
        a = loss(alpha, "alpha")
        if a == 0:
            return 0.0
        if a > FAR and not self._whole:
            return min(a, self(FAR) + (a - FAR))
        if FAR < a < math.inf:
            return min(a, self(FAR) + (a - FAR), self(math.inf))
        rho, _ = self._worst(a)
        return min(a, math.log1p(rho) * (1 + self._slack))

    def supremum(self, epsilon: float) -> float:
        """The limit of a = epsilon, L(a) + epsilon, L(L(a) + epsilon) + epsilon, ...: rounded up, or ``math.inf``."""
        step = loss(epsilon, "epsilon")
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
        from dphmm._kernels.leakage import worst_pair

        s, e = -math.expm1(-alpha), math.exp(-alpha)
        rho, corner, sure = self._corners.best(s, e)
        if sure:
            return rho, corner
        bounds = self._bounds(rho)
        found = worst_pair(
            self._indptr, self._columns, self._data, self._rows, s, e, (rho, *corner), bounds, np.zeros(self._width)
        )
        rho, corner = float(found[0]), (float(found[1]), float(found[2]))
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


def largest_increase(transition: Any, alpha: float, rows: States = None) -> float:
    """L(alpha) of :class:`Increase`, once: the largest loss that one move makes of a loss ``alpha``.

    ``alpha`` >= 0, or ``math.inf``. Rounded up.
    """
    return Increase(transition, rows)(alpha)


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
