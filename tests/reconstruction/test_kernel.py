"""A reader of answers weighed by time: near where people do the same every day, and its guesses entry by entry.

It would fail for weights of another time of day, for days that are not added, and for a width that is not the best.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dphmm.reconstruction import kernel
from dphmm.reconstruction.kernel import Timed, guesses, least_error


def far(one, other):
    return np.linalg.norm(one - other, axis=1)


def test_each_guess_is_a_weighed_mean():
    one = Timed(np.array([1.0, 25.5]), np.zeros((2, 1)), np.array([0.0, 3.0, 26.0]), np.array([[1.0], [5.0], [2.0]]))
    got = guesses(one, 2.0, 0.5)
    for row, now in enumerate(one.hours):
        total = mean = 0.0
        for then, (answer,) in zip(one.asked, one.z, strict=True):
            apart = abs(now - then)
            weight = math.exp(-((apart / 2) ** 2) / 2)
            if apart > 12:
                weight += 0.5 * math.exp(-((min(apart % 24, 24 - apart % 24) / 2) ** 2) / 2)
            weight += 1e-12 * math.exp(-apart / 24)
            total, mean = total + weight, mean + weight * answer
        assert got[row, 0] == pytest.approx(mean / total, rel=1e-12)


def test_days_help_where_people_repeat_them_and_the_best_width_is_taken(monkeypatch):
    """At home until noon and at work after it, four days: other days are better company than this day alone."""
    rng = np.random.default_rng(3)
    hours = np.arange(0, 96, 0.5)
    places = np.where(hours % 24 < 12, 0.0, 100.0)[:, None] * [[1.0, 0.0]]
    asked = np.arange(1, 96, 4.0)
    at = np.searchsorted(hours, asked)
    people = [Timed(hours, places, asked, places[at] + rng.normal(0, 60, (len(at), 2))) for _ in range(20)]
    both = least_error(people, far)
    tried = [np.concatenate([far(guesses(one, w, o), places) for one in people]).mean()
             for w in kernel.WIDTHS for o in kernel.OTHER_DAYS]  # fmt: skip
    assert both == pytest.approx(min(tried), rel=1e-12)
    monkeypatch.setattr(kernel, "OTHER_DAYS", (0.0,))
    assert both < 0.8 * least_error(people, far)


def test_without_answers_and_of_too_many_rows_nothing_is_told(monkeypatch):
    none = Timed(np.zeros(3), np.zeros((3, 2)), np.zeros(0), np.zeros((0, 2)))
    some = Timed(np.zeros(3), np.zeros((3, 2)), np.zeros(2), np.ones((2, 2)))
    outside = Timed(np.zeros(0), np.zeros((0, 2)), np.zeros(2), np.ones((2, 2)))
    assert least_error([none], far) is None and least_error([outside], far) is None
    assert least_error([none, some], far) == pytest.approx(math.sqrt(2))
    monkeypatch.setattr(kernel, "MOST_PAIRS", 5)
    assert least_error([some], far) is None
