"""An event on which two samples differ, and what its counts say of ε with confidence.

The event is learned from draws of both samples, so that it can be judged on fresh ones. The draws of both are cut into
cells of about equal numbers, by medians along one feature after another; an event is a union of the cells in which the
first is commonest, the union whose bound on ε is largest on the training draws. Features are the coordinates, and, for
numbers that are not whole, how fine the last bit of each is: a float sum keeps bits of what was added
(docs/theory.md 5). Bounds are those of Clopper and Pearson: they assume independent draws and nothing else.

Proof: docs/proofs/black-box-audit.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dphmm.types import BoolArray, FloatArray, IntArray

#: Inverses of the beta function are trusted to this, and bounds moved outwards by it.
_RELATIVE = 1e-9
#: More draws than these nobody has.
MOST_SAMPLES = 2**50


def lowest(successes: ArrayLike, n: int, alpha: float) -> FloatArray:
    """Clopper-Pearson: a true probability lies below this with probability at most alpha, over the draws."""
    from scipy.special import betaincinv

    k = np.asarray(successes, dtype=np.float64)
    with np.errstate(invalid="ignore"):
        bound = np.where(k > 0, betaincinv(np.maximum(k, 1), n - np.maximum(k, 1) + 1, alpha), 0.0)
    return np.asarray(bound * (1 - _RELATIVE))


def highest(successes: ArrayLike, n: int, alpha: float) -> FloatArray:
    """Clopper-Pearson: a true probability lies above this with probability at most alpha, over the draws."""
    from scipy.special import betainccinv

    k = np.asarray(successes, dtype=np.float64)
    inner = np.minimum(k, n - 1)
    bound = np.where(k < n, betainccinv(inner + 1, n - inner, alpha), 1.0)
    return np.asarray(np.minimum(1.0, bound * (1 + _RELATIVE)))


def epsilon_below(k1: ArrayLike, n1: int, k0: ArrayLike, n0: int, alpha: float) -> FloatArray:
    """A lower bound on log Pr(E | first) / Pr(E | second), wrong with probability at most alpha.

    ``k1`` of ``n1`` draws of the first were in the event, ``k0`` of ``n0`` of the second. -inf where nothing is known.
    """
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(lowest(k1, n1, alpha / 2)) - np.log(highest(k0, n0, alpha / 2)))


def fewest_that_could_convict(epsilon: float, alpha: float) -> int:
    """Below so many draws a side the bound stays at most epsilon whatever comes out.

    The best outcome, all n of the one and none of the other, gives a^(1/n) / (1 - a^(1/n)) with a = alpha / 2. For an
    epsilon of 700 at most: e^epsilon is a float.
    """
    # log(1 + e^-x), small for a large epsilon.
    return math.floor(math.log(2 / alpha) / math.log1p(math.exp(-epsilon))) + 1


def samples_needed(epsilon: float, loss: float, probability: float, alpha: float, power: float = 0.99) -> int | None:
    """Draws a side at which an event of this probability, lost by ``loss`` > epsilon, convicts with this power.

    None where that takes more than MOST_SAMPLES.
    """
    # At least log(2/alpha)·e^epsilon draws, of which an exponential may be beyond all floats.
    if math.log(math.log(2 / alpha)) + epsilon > math.log(MOST_SAMPLES):
        return None
    low = fewest_that_could_convict(epsilon, alpha)
    high = low
    while not _convicts(high, epsilon, loss, probability, alpha, power):
        low, high = high, 2 * high
        if high > MOST_SAMPLES:
            return None
    while low < high - 1:
        middle = (low + high) // 2
        if _convicts(middle, epsilon, loss, probability, alpha, power):
            high = middle
        else:
            low = middle
    return high


def _convicts(n: int, epsilon: float, loss: float, probability: float, alpha: float, power: float) -> bool:
    """Whether even the unlucky counts, each exceeded with probability (1 - power)/2, pass the bound."""
    from scipy.stats import binom

    miss = (1 - power) / 2
    k1 = binom.ppf(miss, n, probability)
    k0 = binom.isf(miss, n, probability * math.exp(-loss))
    return bool(epsilon_below(k1, n, k0, n, alpha) > epsilon)


#: Draws of both together that a cell holds on average, levels of cutting, and draws that cells are made from.
_CELL = 48
_DEEPEST = 12
_MOST_TRAINED = 2**17
#: The exponent of the last bit of 0: coarser than any other.
_ZERO = 64.0


@dataclass(frozen=True, eq=False)
class Event:
    """A union of cells; ``thresholds`` and ``axes`` are of the inner nodes of a binary tree, level by level."""

    axes: IntArray
    thresholds: FloatArray
    depth: int
    chosen: BoolArray
    fine: bool

    def contains(self, draws: FloatArray) -> BoolArray:
        """Which draws (n, d) are in the event."""
        return np.asarray(self.chosen[_cells(features(draws, self.fine), self.axes, self.thresholds, self.depth)])


def learn(first: FloatArray, second: FloatArray, alpha: float) -> tuple[Event, Event]:
    """An event that the first makes commoner, and one that the second does.

    One half of the draws makes and orders the cells, the other says how many of them, and how fine, are best.
    """
    fine = not (_whole(first) and _whole(second))
    halves = [in_halves(draws) for draws in (first, second)]
    making = [features(half[:_MOST_TRAINED], fine) for half, _ in halves]
    depth = max(1, min(_DEEPEST, int(math.log2(max(2.0, sum(map(len, making)) / _CELL)))))
    axes, thresholds = _tree(np.vstack(making), depth)

    def counts(draws: FloatArray) -> IntArray:
        return np.bincount(_cells(features(draws, fine), axes, thresholds, depth), minlength=2**depth)

    (one, one_again), (other, other_again) = [(counts(half), counts(rest)) for half, rest in halves]
    ahead = _best((one, other), (one_again, other_again), depth, alpha)
    back = _best((other, one), (other_again, one_again), depth, alpha)
    return Event(axes, thresholds, depth, ahead, fine), Event(axes, thresholds, depth, back, fine)


def in_halves(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The draws in two parts, by their number and not by their value."""
    middle = len(draws) // 2
    return draws[:middle], draws[middle:]


def features(draws: FloatArray, fine: bool) -> FloatArray:
    """Coordinates (n, d), and for ``fine`` ones the exponents of their last bits too (n, 2d)."""
    return np.hstack([draws, last_bit(draws)]) if fine else draws


def last_bit(values: FloatArray) -> FloatArray:
    """The exponent of the largest power of two that divides each float."""
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = whole & -whole
    bits = np.log2(np.maximum(lowest, 1).astype(np.float64))
    return np.asarray(np.where(whole == 0, _ZERO, exponent - 53 + bits))


def _whole(draws: FloatArray) -> bool:
    return bool(np.array_equal(draws, np.rint(draws)))


def _tree(pooled: FloatArray, depth: int) -> tuple[IntArray, FloatArray]:
    """Medians, level by level: the features take turns, but for those that are far narrower than others in a node."""
    axes, thresholds = np.zeros(2**depth - 1, dtype=np.int64), np.full(2**depth - 1, np.inf)
    members: list[IntArray] = [np.arange(len(pooled))]
    scale = np.maximum(np.quantile(pooled, 0.9, axis=0) - np.quantile(pooled, 0.1, axis=0), 1e-300)
    for level in range(depth):
        below: list[IntArray] = []
        for place, own in enumerate(members):
            node = 2**level - 1 + place
            axis, threshold = _cut(pooled[own], scale, level)
            axes[node], thresholds[node] = axis, threshold
            beyond = pooled[own, axis] > threshold
            below += [own[~beyond], own[beyond]]
        members = below
    return axes, thresholds


def _cut(points: FloatArray, scale: FloatArray, level: int) -> tuple[int, float]:
    if len(points) < 2:
        return 0, math.inf
    order = np.roll(np.arange(points.shape[1]), -level)
    spread = [float(np.ptp(points[:, axis]) / scale[axis]) for axis in order]
    # Features take turns; one that is far narrower than another here is passed over.
    axis = int(next(a for a, s in zip(order, spread, strict=True) if s >= max(spread) / 4))
    column = points[:, axis]
    threshold = float(np.median(column))
    if threshold == column.max():
        under = column[column < threshold]
        threshold = float(under.max()) if len(under) else math.inf
    return axis, threshold


def _cells(values: FloatArray, axes: IntArray, thresholds: FloatArray, depth: int) -> IntArray:
    node = np.zeros(len(values), dtype=np.int64)
    rows = np.arange(len(values))
    for _ in range(depth):
        node = 2 * node + 1 + (values[rows, axes[node]] > thresholds[node])
    return np.asarray(node - (2**depth - 1))


Counts = tuple[IntArray, IntArray]


def _best(made: Counts, chosen_on: Counts, depth: int, alpha: float) -> BoolArray:
    """The union of cells, commonest for the first by the one pair of counts, whose bound is largest on the other."""
    best, largest = np.ones(2**depth, dtype=np.bool_), -math.inf
    for level in range(1, depth + 1):
        one, other, again, other_again = (c.reshape(2**level, -1).sum(axis=1) for c in (*made, *chosen_on))
        order = np.argsort(-(one + 0.5) / (other + 0.5), kind="stable")
        sums = np.cumsum(again[order]), np.cumsum(other_again[order])
        bounds = epsilon_below(sums[0], int(again.sum()), sums[1], int(other_again.sum()), alpha)
        at = int(np.argmax(bounds))
        if bounds[at] > largest:
            coarse = np.zeros(2**level, dtype=np.bool_)
            coarse[order[: at + 1]] = True
            best, largest = np.repeat(coarse, 2 ** (depth - level)), float(bounds[at])
    return best
