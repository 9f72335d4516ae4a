"""A reader who draws straight lines between answers, and knows no model of how people move.

That reader's error follows from published answers alone. Each answer but the first and the last of a person is held
out, and compared with the line between its neighbours: its squared distance from the line is that of the motion between
them, and known noise. Motion about a line is taken as a Brownian bridge: its variance is the motion a step, times the
time before and the time after over the time between the neighbours. Mean distances are those of normal errors.

Source: docs/report.md (What the figures are).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dphmm.types import FloatArray, IntArray

#: Answers of one person of which one can be held out between two others.
_FEWEST = 3
#: By how many standard errors over people a reader must be nearer on held-out answers.
_NEARER = 1.0


@dataclass(frozen=True, eq=False)
class PersonAnswers:
    """The answers of one person.

    ``at`` (k,): the ascending times, in steps; ``z`` (k, d): the answers; ``noise`` (k,): their expected squared noise.
    ``guessed`` (k, d): the guesses of another reader by all other answers. ``rows`` (n,): the steps of all rows.
    """

    at: FloatArray
    z: FloatArray
    noise: FloatArray
    guessed: FloatArray
    rows: IntArray


def nearer_than_guesses(
    people: Sequence[PersonAnswers], distance: Callable[[FloatArray, FloatArray], FloatArray], inside: float
) -> float | None:
    """The mean distance of straight lines from people at all their rows; None where the guesses are as near.

    Lines are nearer where held-out answers are nearer to them than to the guesses, in the mean over people by more than
    its standard error. ``distance``: between places (n, d). ``inside``: the mean squared distance of a person from the
    middle of their state.
    """
    held = [walk for walk in people if len(walk.at) >= _FEWEST]
    if len(held) < 2:
        return None
    gained = np.array([_gain(walk, distance) for walk in held])
    if not gained.mean() > _NEARER * gained.std(ddof=1) / math.sqrt(len(gained)):
        return None
    motion = motion_of(held)
    off = [mean_distance(expected_squares(walk, motion) + inside, walk.z.shape[1]) for walk in people if len(walk.at)]
    return float(np.concatenate(off).mean())


def _gain(one: PersonAnswers, distance: Callable[[FloatArray, FloatArray], FloatArray]) -> float:
    """The mean distance by which held-out answers are nearer to the line than to the guess."""
    line, _, _ = line_between(one)
    return float((distance(one.guessed[1:-1], one.z[1:-1]) - distance(line, one.z[1:-1])).mean())


def line_between(one: PersonAnswers) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The line at each answer but the ends (k - 2, d), the later neighbour's share in it, and the bridge there."""
    before, after = one.at[1:-1] - one.at[:-2], one.at[2:] - one.at[1:-1]
    share = before / (before + after)
    line = (1 - share)[:, None] * one.z[:-2] + share[:, None] * one.z[2:]
    return line, share, before * after / (before + after)


def motion_of(people: Sequence[PersonAnswers]) -> float:
    """The mean squared motion in one step, from what held-out answers are off beyond their noise; at least 0."""
    off = bridges = 0.0
    for walk in people:
        line, share, bridge = line_between(walk)
        noise = walk.noise[1:-1] + (1 - share) ** 2 * walk.noise[:-2] + share**2 * walk.noise[2:]
        off += float((((line - walk.z[1:-1]) ** 2).sum(axis=1) - noise).sum())
        bridges += float(bridge.sum())
    return max(0.0, off / bridges) if bridges > 0 else 0.0


def expected_squares(one: PersonAnswers, motion: float) -> FloatArray:
    """The expected squared distance (n,) of a line from the person at each row; before and after all answers the end's.

    >>> import numpy as np
    >>> z, noise = np.zeros((2, 2)), np.array([4.0, 4.0])
    >>> one = PersonAnswers(np.array([0.0, 4.0]), z, noise, z, np.array([0, 2, 4, 5]))
    >>> expected_squares(one, 3.0).tolist()
    [4.0, 5.0, 4.0, 7.0]
    """
    rows = one.rows.astype(np.float64)
    later = (
        np.searchsorted(one.at, rows).clip(1, max(1, len(one.at) - 1)) if len(one.at) > 1 else np.zeros(len(rows), int)
    )
    earlier = np.maximum(later - 1, 0)
    start, end = one.at[earlier], one.at[later]
    share = np.divide(rows - start, end - start, out=np.zeros(len(rows)), where=end > start).clip(0, 1)
    beyond = np.maximum(start - rows, 0) + np.maximum(rows - end, 0)
    bridge = share * (1 - share) * (end - start) + beyond
    return np.asarray((1 - share) ** 2 * one.noise[earlier] + share**2 * one.noise[later] + motion * bridge)


def mean_distance(squares: FloatArray, dimension: int) -> FloatArray:
    """The mean distance (n,) of normal errors of these mean squares (n,), alike in each of one or two dimensions."""
    return np.asarray(np.sqrt(squares) * (math.sqrt(2 / math.pi) if dimension == 1 else math.sqrt(math.pi) / 2))
