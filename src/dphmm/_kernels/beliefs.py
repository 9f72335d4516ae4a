"""The measures of a belief: its distance from the truth, and the place of least mean distance under it.

That place is found on a line exactly, elsewhere step by step: the mean distance is convex in the place, and
Weiszfeld's iteration, as Vardi and Zhang corrected it for places at points, makes it smaller with every step.

Source: Y. Vardi, C.-H. Zhang, The multivariate L1-median and associated data depth, PNAS 97 (2000).
"""

from __future__ import annotations

import math

import numpy as np

from dphmm._kernels.compiled import kernel
from dphmm.types import FloatArray, IntArray

#: A step of the iteration is half of Newton's where a belief spreads evenly over a plane; any below twice its length
#: comes nearer.
_LONGER = 1.6


@kernel
def medians(
    weights: FloatArray,
    points: FloatArray,
    widths: FloatArray,
    order: IntArray,
    rarest: float,
    unseen: float,
    tolerance: float,
    rounds: int,
    places: FloatArray,
    distances: FloatArray,
) -> None:
    """Fill ``places`` (n, d) and their mean ``distances`` (n,) from points (N, d) under each row of weights (n, N).

    A place is sought whose mean of sqrt(distance² + width²) is least; ``widths`` (N,) say how far around each point
    its people are. ``order`` (d, N): the points in the order of each coordinate. Points whose weights are below
    ``rarest`` times the largest of a row move no place, if they have at most a share ``unseen`` of it together.
    Iterations end after ``rounds`` or where the slope of the mean is below ``tolerance``.
    """
    states, d = points.shape
    near, shares, widened = np.empty((d, states)), np.empty(states), np.empty(states)
    for row in range(weights.shape[0]):
        belief, place = weights[row], places[row]
        floor, rare, total = rarest * belief.max(), 0.0, 0.0
        for state in range(states):
            total += belief[state]
            if belief[state] < floor:
                rare += belief[state]
        if rare > unseen * total:
            floor = 0.0
        count, seen = 0, 0.0
        for state in range(states):
            if belief[state] > floor:
                shares[count], widened[count] = belief[state], widths[state] ** 2
                for axis in range(d):
                    near[axis, count] = points[state, axis]
                seen += belief[state]
                count += 1
        for axis in range(d):
            below = 0.0
            for state in order[axis]:
                if belief[state] > floor:
                    below += belief[state]
                    place[axis] = points[state, axis]
                    if below >= seen / 2:
                        break
        if d > 1:
            _settle(shares, near, widened, count, seen, tolerance, rounds, place)
        off = 0.0
        for state in range(states):
            if belief[state] > 0.0:
                apart = 0.0
                for axis in range(d):
                    apart += (points[state, axis] - place[axis]) ** 2
                off += belief[state] * np.sqrt(apart)
        distances[row] = off / total


@kernel
def _add_squares(near: FloatArray, place: FloatArray, count: int, square: FloatArray) -> None:
    """Add the squared distances of points (d, count) from a place (d,)."""
    for axis in range(place.size):
        for i in range(count):
            square[i] += (near[axis, i] - place[axis]) ** 2


@kernel
def _settle(
    own: FloatArray,
    near: FloatArray,
    widened: FloatArray,
    count: int,
    total: float,
    tolerance: float,
    rounds: int,
    place: FloatArray,
) -> None:
    """Move a place (d,) to where the mean distance from weighted points (d, count) is nearly least.

    Until its slope is below ``tolerance``: then it is at most that times the way to the best place above the least.
    """
    square, shift, last, way = np.empty(count), np.empty(place.size), place.copy(), np.zeros(place.size)
    best, nearest = place.copy(), np.inf
    least, steep, stretch = np.inf, np.inf, 1.0
    for _ in range(rounds):
        square[:] = widened[:count]
        _add_squares(near, place, count, square)
        here, pull, mean = 0.0, 0.0, 0.0
        for i in range(count):
            apart = np.sqrt(square[i])
            mean += own[i] * apart
            # What pulls from there; what is here holds.
            square[i] = own[i] / apart if apart > 0.0 else 0.0
            pull += square[i]
            if apart == 0.0:
                here += own[i]
        if mean < nearest:
            best[:], nearest = place, mean
        if mean > least:
            # A stretched step went too far.
            place[:], stretch = last + way, 1.0
            least = np.inf
            continue
        force = 0.0
        for axis in range(place.size):
            shift[axis] = 0.0
            for i in range(count):
                shift[axis] += square[i] * (near[axis, i] - place[axis])
            force += shift[axis] ** 2
        force = np.sqrt(force)
        if force - here <= tolerance * total or pull == 0.0:
            break
        # Near a point that holds nobody back steps are short: they get longer where the slope stays.
        stretch = 4.0 * stretch if force - here > steep / 2 else 1.0
        least, steep = mean, force - here
        last[:], way[:] = place, _LONGER * (1.0 - here / force) / pull * shift
        place[:] = last + stretch * way
    place[:] = best


@kernel
def measured(
    belief: FloatArray, answers: FloatArray, distances: FloatArray, truth: int
) -> tuple[float, float, float, float, FloatArray]:
    """Mean distance to the truth, success of the likeliest state, the true state's share, bits, and the mean answer.

    ``belief`` (N,) sums to 1, ``answers`` (N, d), ``distances`` (N,) of each state's answer to the truth; ``truth`` is
    the true state, -1 where it is none. Of equally likely states the lowest number is guessed.
    """
    n, d = answers.shape
    mean = np.zeros(d)
    error, entropy, likeliest = 0.0, 0.0, 0
    for state in range(n):
        p = belief[state]
        if p <= 0.0:
            continue
        for axis in range(d):
            mean[axis] += p * answers[state, axis]
        error += p * distances[state]
        entropy -= p * math.log2(p)
        if p > belief[likeliest]:
            likeliest = state
    success = 1.0 if likeliest == truth else 0.0
    share = belief[truth] if truth >= 0 else 0.0
    return error, success, share, max(entropy, 0.0), mean
