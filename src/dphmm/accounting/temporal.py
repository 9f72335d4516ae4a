"""Temporal leakage: the loss of a whole sequence of releases between any two values of one step.

Cao, Yoshikawa, Xiao and Xiong (ICDE 2017). Each release has one loss e_t for all pairs of values. It also leaks about
other steps: backward BPL_t = L_B(BPL_{t-1}) + e_t, forward FPL_t = L_F(FPL_{t+1}) + e_t. The whole sequence loses at
most TPL_t = BPL_t + FPL_t - e_t between any two values of step t. Everything is rounded up.

Proof: docs/proofs/temporal-leakage.md.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import repeat
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dphmm._cached import cached_property
from dphmm._checks import state_mask
from dphmm.accounting.budget import float_above, sum_above
from dphmm.accounting.leakage_step import LeakageStep, MarginalSequence, Unmixed, loss
from dphmm.accounting.records import Entry
from dphmm.errors import InvalidInput
from dphmm.types import BoolArray, FloatArray, States


@dataclass(frozen=True, eq=False)
class Leakage:
    """The leakage of a sequence, per step (T,): ``backward`` (BPL), ``forward`` (FPL), and in ``total`` (TPL)."""

    backward: FloatArray
    forward: FloatArray
    total: FloatArray
    _limit: Callable[[], float] = field(repr=False)

    @property
    def worst(self) -> float:
        """The largest total of any step."""
        return float(self.total.max(initial=0.0))

    @cached_property
    def supremum(self) -> float:
        """The bound of all totals if releases at the largest of the losses go on for ever.

        ``math.inf`` where there is no limit, NaN where the chain's marginals do not settle.
        """
        return max(self._limit(), self.worst)


def temporal_leakage(model: Any, epsilons: ArrayLike, *, backward: Any = None, rows: States = None) -> Leakage:
    """Backward, forward and total temporal leakage of releases that lose ``epsilons`` (T,) between any two values.

    For releases under a policy the loss between any two values is the *cost* of a step, not its epsilon
    (`losses_per_step`); 0 where nothing is released, ``math.inf`` where there is no bound.

    Parameters
    ----------
    model : MarkovModel; or a matrix, with ``backward``.
    backward : the matrix of Pr(s_{t-1} | s_t), for every t, where it is known; None to compute it from the model's own
        marginals.
    rows : states that the adversary thinks possible, if fewer than those the model gives positive probability.

    Raises InvalidInput for a matrix without ``backward``, negative losses, rows that do not fit.
    """
    losses = _losses(epsilons)
    moves = LeakageSteps.of(model, backward, rows)
    past = _carried(losses, moves.backward(len(losses)))
    future = _carried(losses[::-1], list(moves.forward(len(losses)))[::-1])[::-1]
    largest = float(losses.max(initial=0.0))
    return Leakage(
        sum_above(past, losses),
        sum_above(future, losses),
        sum_above(sum_above(past, losses), future),
        lambda: _limit(moves, largest),
    )


def supremum(transition: Any, epsilon: float, rows: States = None) -> float:
    """The limit of BPL (or FPL) at ``epsilon`` per step under one kernel; ``math.inf`` where there is none."""
    return LeakageStep(transition, rows).supremum(epsilon)


def temporal_allocation(
    model: Any, target: float, steps: int | None = None, *, backward: Any = None, rows: States = None
) -> Any:
    """Losses per step that keep the total temporal leakage of every step at ``target`` or below.

    steps=None: one loss (float) for every step of a sequence of any length. A number: losses (T,) for exactly that
    many steps, more in the first and last. Other parameters as in `temporal_leakage`. Rounded down; 0 where no positive
    loss keeps the target.
    """
    most = loss(target, "target")
    if not math.isfinite(most):
        raise InvalidInput("target", target, "a finite number of at least 0")
    moves = LeakageSteps.of(model, backward, rows)
    if steps is None:
        past, future = moves.settled()
        return _largest(lambda e: _both(past, future, e), most)
    if isinstance(steps, (bool, np.bool_)) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise InvalidInput("steps", steps, "a number of steps, 1 or more")
    past, future = moves.worst(int(steps))
    return _for_horizon(past, future, most, int(steps))


def losses_per_step(entries: Iterable[Entry]) -> FloatArray:
    """The loss of one subject's stored releases between any two states, per step (T,): `temporal_leakage` takes it.

    The cost of a release bounds every pair of states (Theorem 6.3); its epsilon bounds policy edges only. Costs of
    several queries about one step add up; skipped steps lose 0.
    """
    costs: dict[int, Fraction] = {}
    last, subjects = 0, set()
    for entry in entries:
        subjects.add(entry.subject)
        last = max(last, entry.through)
        if entry.cost is not None:
            costs[entry.t] = costs.get(entry.t, Fraction(0)) + entry.cost
    if len(subjects) > 1:
        raise InvalidInput("entries", f"{len(subjects)} subjects", "entries of one subject")
    return np.array([float_above(costs.get(t, Fraction(0))) for t in range(1, last + 1)], dtype=np.float64)


def _losses(epsilons: ArrayLike) -> FloatArray:
    try:
        losses = np.array(epsilons, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidInput("epsilons", type(epsilons).__name__, "numbers of at least 0, one per step") from None
    if losses.ndim != 1 or not (losses >= 0).all():
        raise InvalidInput("epsilons", f"an array of shape {losses.shape}", "numbers of at least 0, one per step")
    return losses


def _carried(losses: FloatArray, growths: Iterable[LossGrowth]) -> FloatArray:
    """The loss (T,) that every step inherits from the steps before it."""
    carried = np.zeros(len(losses))
    for t, growth in enumerate(growths, start=1):
        carried[t] = growth(float(sum_above(carried[t - 1], losses[t - 1])))
    return carried


def _limit(moves: LeakageSteps, epsilon: float) -> float:
    try:
        past, future = moves.settled()
    except InvalidInput:
        return math.nan
    return _both(past, future, epsilon)


def _both(past: LossGrowth, future: LossGrowth, epsilon: float) -> float:
    """The limit of TPL."""
    if not math.isfinite(epsilon):
        return math.inf
    inherited = future.supremum(epsilon) - epsilon
    return float(sum_above(past.supremum(epsilon), math.nextafter(inherited, math.inf) if inherited > 0 else 0.0))


def _largest(lost: Callable[[float], float], most: float) -> float:
    """The largest x in [0, most], to a relative 1e-15 or so, with lost(x) <= most; lost must not fall."""
    if lost(most) <= most:
        return most
    low, high = 0.0, most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if lost(middle) <= most else (low, middle)
    return low


def _for_horizon(past: LossGrowth, future: LossGrowth, most: float, steps: int) -> FloatArray:
    """The losses (T,): first x, then x - L_B(x) each, the rest at the end; the total is the target at every step."""
    if steps == 1:
        return np.array([most])
    first = _largest(lambda x: x + future(max(0.0, most - past(x))), most)
    inherited = past(first)
    losses = np.array([first, *[first - inherited] * (steps - 2), most - inherited])
    shrink = 1.0
    while _worst(losses * shrink, past, future) > most:
        shrink = 1 - 2 * max(1 - shrink, 2.0**-50)
    return losses * shrink


def _worst(losses: FloatArray, past: LossGrowth, future: LossGrowth) -> float:
    moves = len(losses) - 1
    ahead = _carried(losses[::-1], [future] * moves)[::-1]
    return float(sum_above(sum_above(_carried(losses, [past] * moves), losses), ahead).max())


#: Reversed kernels whose entries differ by no more than this (in logs) count as one; the difference is added.
ALIKE = 1e-13


#: How long a chain may take to become stationary before its limit counts as unknown.
MOST_STEPS = 1_000


class LossGrowth(Protocol):
    """L(a) of one move, and the limit of a, L(a) + epsilon, ... over many moves."""

    def __call__(self, alpha: float) -> float: ...

    def supremum(self, epsilon: float) -> float: ...


class LeakageSteps(ABC):
    """L(a) of every move of a sequence, forward and backward in time."""

    @staticmethod
    def of(model: Any, backward: Any, rows: States) -> LeakageSteps:
        """The steps of a model and its marginals, or of two matrices."""
        if backward is not None:
            return _Fixed(LeakageStep(model, rows), LeakageStep(backward, rows))
        return _Own(model, rows)

    @abstractmethod
    def backward(self, steps: int) -> Iterator[LossGrowth]:
        """L_B from t - 1 to t, for t = 2 .. steps."""

    @abstractmethod
    def forward(self, steps: int) -> Iterator[LossGrowth]:
        """L_F from t + 1 to t, for t = 1 .. steps - 1."""

    @abstractmethod
    def settled(self) -> tuple[LossGrowth, LossGrowth]:
        """The worst L_B and L_F of sequences of any length. Raises InvalidInput if the marginals do not settle."""

    def worst(self, steps: int) -> tuple[LossGrowth, LossGrowth]:
        """The worst L_B and L_F of any move of a sequence."""
        return _Worst.of(self.backward(steps)), _Worst.of(self.forward(steps))


@dataclass(frozen=True)
class _Fixed(LeakageSteps):
    to_later: LeakageStep
    to_earlier: LeakageStep

    def backward(self, steps: int) -> Iterator[LossGrowth]:
        return (self.to_earlier for _ in range(steps - 1))

    def forward(self, steps: int) -> Iterator[LossGrowth]:
        return (self.to_later for _ in range(steps - 1))

    def settled(self) -> tuple[LossGrowth, LossGrowth]:
        return self.to_earlier, self.to_later


class _Own(LeakageSteps):
    """The moves of a model, with its own marginals."""

    def __init__(self, model: Any, rows: States) -> None:
        self._sequence = MarginalSequence(model)
        self._homogeneous = bool(model.time_homogeneous)
        self._rows = state_mask(rows, len(model.initial), "rows")
        self._forward: dict[bytes, LeakageStep] = {}

    def backward(self, steps: int) -> Iterator[LossGrowth]:
        return (growth for growth, _ in self._backward(steps))

    def forward(self, steps: int) -> Iterator[LossGrowth]:
        last: BoolArray | None = None
        for t, now in enumerate(self._sequence.marginals(steps - 1), start=1):
            growth = self._ahead(t, now.support & self._rows)
            if self._homogeneous and last is not None and np.array_equal(last, now.support):
                # The states of one step decide those of the next: they stay.
                yield from repeat(growth, steps - t)
                return
            yield growth
            last = now.support

    def settled(self) -> tuple[LossGrowth, LossGrowth]:
        kernels: list[LossGrowth] = []
        supports: list[BoolArray] = []
        for growth, support in self._backward(MOST_STEPS) if self._homogeneous else ():
            if kernels and _same(growth, kernels[-1]) and np.array_equal(support, supports[-1]):
                return _Worst.of(kernels), self._ahead(1, np.logical_or.reduce(supports) & self._rows)
            kernels.append(growth)
            supports.append(support)
        fault = f"a chain that does not become stationary within {MOST_STEPS} steps"
        raise InvalidInput("model", fault, "one that does, or a number of steps")

    def _backward(self, steps: int) -> Iterator[tuple[LossGrowth, BoolArray]]:
        """L_B and the states possible before, for t = 2 .. steps; one object for as long as the kernel is the same."""
        before, kernel, growth = None, None, None
        for t, now in enumerate(self._sequence.marginals(steps), start=1):
            if before is not None and self._sequence.is_unmixed(before.support, now.support & self._rows, t):
                yield _UNMIXED, before.support
                if self._homogeneous and np.array_equal(before.support, now.support):
                    yield from repeat((_UNMIXED, before.support), steps - t)
                    return
                kernel, growth = None, None
            elif before is not None:
                matrix = self._sequence.backward(before, t)
                apart = difference(kernel, matrix)
                if growth is None or apart > ALIKE:
                    kernel, growth, apart = matrix, LeakageStep(matrix, now.support & self._rows), 0.0
                yield (growth if apart == 0 else _Near(growth, apart)), before.support
            before = now

    def _ahead(self, t: int, rows: BoolArray) -> LeakageStep:
        if not self._homogeneous:
            return LeakageStep(self._sequence.forward(t + 1), rows)
        key = np.packbits(rows).tobytes()
        if key not in self._forward:
            self._forward[key] = LeakageStep(self._sequence.forward(t + 1), rows)
        return self._forward[key]


_UNMIXED = Unmixed()


@dataclass(frozen=True)
class _Near:
    """A kernel whose entries differ from a known one by a factor of at most e^apart: L differs by 2 apart."""

    known: LeakageStep
    apart: float

    def __call__(self, alpha: float) -> float:
        return min(alpha, self.known(alpha) + 2 * self.apart)

    def supremum(self, epsilon: float) -> float:
        return self.known.supremum(epsilon + 2 * self.apart)


@dataclass(frozen=True)
class _Worst:
    """The largest of several."""

    growths: tuple[LossGrowth, ...]

    @classmethod
    def of(cls, growths: Iterator[LossGrowth] | Sequence[LossGrowth]) -> _Worst:
        return cls(tuple(dict.fromkeys(growths)))

    def __call__(self, alpha: float) -> float:
        return max((growth(alpha) for growth in self.growths), default=0.0)

    def supremum(self, epsilon: float) -> float:
        return max((growth.supremum(epsilon) for growth in self.growths), default=epsilon)


def difference(known: Any, found: Any) -> float:
    """The largest |log| of a quotient of entries of two csr matrices; infinite where one has an entry alone."""
    if known is None or len(known.data) != len(found.data):
        return math.inf
    if not (np.array_equal(known.indptr, found.indptr) and np.array_equal(known.indices, found.indices)):
        return math.inf
    return float(np.abs(np.log(known.data) - np.log(found.data)).max(initial=0.0))


def _same(one: LossGrowth, other: LossGrowth) -> bool:
    kernels = [near.known if isinstance(near, _Near) else near for near in (one, other)]
    return kernels[0] is kernels[1]
