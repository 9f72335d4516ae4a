"""A reader who weighs a person's answers by their time, on other days too, and knows no model of how people move.

The guess of a place is the mean of all answers, each with the weight exp(-(d / w)² / 2), d the hours between; an answer
of another day has a share of the same weight for the times of day. Width and share are those that fit the truth best,
so the error flatters this reader, and is the owner's to see.

Source: docs/learning-from-answers.md (Baselines).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from dphmm.types import FloatArray

#: Widths in hours, and the share of an answer's weight on other days.
WIDTHS, OTHER_DAYS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0), (0.0, 0.3, 0.6, 1.0)
#: Rows times answers of each person, summed: more are not weighed, which would take some ten seconds.
MOST_PAIRS = 10**7


class Timed(NamedTuple):
    """One person: the hours (n,) and true places (n, d) of all rows, the hours (k,) and answers (k, d)."""

    hours: FloatArray
    places: FloatArray
    asked: FloatArray
    z: FloatArray


def least_error(people: Sequence[Timed], distance: Callable[[FloatArray, FloatArray], FloatArray]) -> float | None:
    """The least mean distance of this reader from people with rows and answers, over widths and shares.

    ``distance``: between places (n, d). None without any answer, and of more than `MOST_PAIRS`.
    """
    people = [person for person in people if len(person.asked) and len(person.hours)]
    if not people or sum(len(person.hours) * len(person.asked) for person in people) > MOST_PAIRS:
        return None
    return min(
        float(np.concatenate([distance(guesses(person, width, other), person.places) for person in people]).mean())
        for width, other in product(WIDTHS, OTHER_DAYS)
    )


def guesses(person: Timed, width: float, other: float) -> FloatArray:
    """The guesses (n, d), of a width in hours and a share of other days; where no answer is near, the nearest ones'.

    >>> import numpy as np
    >>> ann = Timed(np.array([8.0, 32.0]), np.zeros((2, 1)), np.array([8.0, 20.0]), np.array([[4.0], [9.0]]))
    >>> guesses(ann, 1.0, 1.0).round(3).tolist()
    [[4.0], [4.0]]
    """
    apart = person.hours[:, None] - person.asked
    clock = np.abs((apart + 12) % 24 - 12)
    weights = np.exp(-((apart / width) ** 2) / 2)
    weights += other * (np.abs(apart) > 12) * np.exp(-((clock / width) ** 2) / 2) + 1e-12 * np.exp(-np.abs(apart) / 24)
    return np.asarray(weights @ person.z / weights.sum(axis=1, keepdims=True))
