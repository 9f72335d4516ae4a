"""Temporal leakage: what releases with one loss for all pairs of values lose over a whole sequence.

Cao, Yoshikawa, Xiao and Xiong (ICDE 2017). A release that loses e_t between any two values of time t says something of
other times too: looking back BPL_t = L_B(BPL_{t-1}) + e_t, ahead FPL_t = L_F(FPL_{t+1}) + e_t, and the whole sequence
loses at most TPL_t = BPL_t + FPL_t - e_t between any two values of time t. Everything is rounded up.

Proof: docs/proofs/temporal-leakage.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dphmm.accounting.budget import float_above, sum_above
from dphmm.accounting.increase import Directions, Increase, Increasing, largest_increase, loss
from dphmm.accounting.marginals import reversed_transition
from dphmm.accounting.records import Entry
from dphmm.errors import InvalidInput
from dphmm.types import FloatArray, States

__all__ = [
    "Increase",
    "Leakage",
    "largest_increase",
    "losses_per_step",
    "reversed_transition",
    "supremum",
    "temporal_allocation",
    "temporal_leakage",
]


@dataclass(frozen=True, eq=False)
class Leakage:
    """What a sequence loses, per step (T,): looking ``backward`` (BPL), ``forward`` (FPL), and in ``total`` (TPL)."""

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
        """What no total exceeds if releases at the largest of the losses go on for ever.

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
    directions = Directions.of(model, backward, rows)
    past = _carried(losses, directions.past(len(losses)))
    future = _carried(losses[::-1], list(directions.future(len(losses)))[::-1])[::-1]
    largest = float(losses.max(initial=0.0))
    return Leakage(
        sum_above(past, losses),
        sum_above(future, losses),
        sum_above(sum_above(past, losses), future),
        lambda: _limit(directions, largest),
    )


def supremum(transition: Any, epsilon: float, rows: States = None) -> float:
    """The limit of BPL (or FPL) at ``epsilon`` per step under one kernel; ``math.inf`` where there is none."""
    return Increase(transition, rows).supremum(epsilon)


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
    directions = Directions.of(model, backward, rows)
    if steps is None:
        past, future = directions.settled()
        return _largest(lambda e: _both(past, future, e), most)
    if isinstance(steps, (bool, np.bool_)) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise InvalidInput("steps", steps, "a number of steps, 1 or more")
    past, future = directions.worst(int(steps))
    return _for_horizon(past, future, most, int(steps))


def losses_per_step(entries: Iterable[Entry]) -> FloatArray:
    """What the stored releases of one subject lose between any two states, per step (T,): `temporal_leakage` takes it.

    The cost of a release bounds every pair of states (Theorem 6.3); its epsilon bounds policy edges only. Costs of
    several queries about one step add up; skipped steps lose 0.
    """
    costs: dict[int, Fraction | float] = {}
    last, subjects = 0, set()
    for entry in entries:
        subjects.add(entry.subject)
        last = max(last, entry.through)
        if entry.cost is not None:
            known = costs.get(entry.t, Fraction(0))
            unbounded = isinstance(known, float) or isinstance(entry.cost, float)
            costs[entry.t] = math.inf if unbounded else known + entry.cost
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


def _carried(losses: FloatArray, increases: Iterable[Increasing]) -> FloatArray:
    """What every step inherits from the steps before it (T,)."""
    carried = np.zeros(len(losses))
    for t, increase in enumerate(increases, start=1):
        carried[t] = increase(float(sum_above(carried[t - 1], losses[t - 1])))
    return carried


def _limit(directions: Directions, epsilon: float) -> float:
    try:
        past, future = directions.settled()
    except InvalidInput:
        return math.nan
    return _both(past, future, epsilon)


def _both(past: Increasing, future: Increasing, epsilon: float) -> float:
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


def _for_horizon(past: Increasing, future: Increasing, most: float, steps: int) -> FloatArray:
    """First x, then x - L_B(x) each, at the end what is left: the total is the target at every step."""
    if steps == 1:
        return np.array([most])
    first = _largest(lambda x: x + future(max(0.0, most - past(x))), most)
    inherited = past(first)
    losses = np.array([first, *[first - inherited] * (steps - 2), most - inherited])
    shrink = 1.0
    while _worst(losses * shrink, past, future) > most:
        shrink = 1 - 2 * max(1 - shrink, 2.0**-50)
    return losses * shrink


def _worst(losses: FloatArray, past: Increasing, future: Increasing) -> float:
    moves: Sequence[Increasing] = [past] * (len(losses) - 1)
    ahead = _carried(losses[::-1], [future] * len(moves))[::-1]
    return float(sum_above(sum_above(_carried(losses, moves), losses), ahead).max())
