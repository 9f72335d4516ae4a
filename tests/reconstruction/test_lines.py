"""A reader of straight lines: its figure follows from published answers, and is the distance that is measured.

It would fail for a bridge of another variance, noise that is counted once too often, a reader who is chosen by truth,
and lines that win by chance.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.reconstruction.lines import PersonAnswers, expected_squares, motion_of, nearer_than_guesses

NOISE, MOTION = 9.0, 2.0


def far(one, other):
    return np.linalg.norm(one - other, axis=1)


def walkers(count, seed, steps=61, every=6):
    """People who walk at random in the plane, answered at every sixth step; where a poor reader puts them."""
    rng = np.random.default_rng(seed)
    found, truth = [], []
    for _ in range(count):
        moved = rng.normal(0, np.sqrt(MOTION / 2), (steps, 2))
        path = np.cumsum(moved, axis=0)
        at = np.arange(0, steps, every)
        z = path[at] + rng.normal(0, np.sqrt(NOISE / 2), (len(at), 2))
        guessed = path[at] + rng.normal(0, 40, (len(at), 2))
        found.append(PersonAnswers(at.astype(float), z, np.full(len(at), NOISE), guessed, np.arange(steps)))
        truth.append(path)
    return found, truth


def lines_of(one):
    """The place of the line at every row, by interpolation."""
    return np.stack([np.interp(one.rows, one.at, one.z[:, axis]) for axis in range(2)], axis=1)


def test_the_motion_is_that_of_the_walks():
    people, _ = walkers(400, 1)
    # 400 people of 9 held-out answers each: squared normal errors vary by about their mean.
    assert motion_of(people) == pytest.approx(MOTION, rel=0.12)


def test_the_expected_distance_is_the_one_that_is_measured():
    people, truth = walkers(400, 2)
    measured = np.mean([far(lines_of(one), path).mean() for one, path in zip(people, truth, strict=True)])
    assert nearer_than_guesses(people, far, 0.0) == pytest.approx(measured, rel=0.03)
    squares = np.mean(
        [((lines_of(one) - path) ** 2).sum(axis=1) for one, path in zip(people, truth, strict=True)], axis=0
    )
    assert np.mean([expected_squares(one, MOTION) for one in people], axis=0) == pytest.approx(squares, rel=0.25)


def test_a_reader_who_is_as_near_is_kept():
    """The guesses of a reader who knows the paths are nearer than any line: no figure of lines is told."""
    people, truth = walkers(50, 3)
    knows = [
        PersonAnswers(one.at, one.z, one.noise, path[one.at.astype(int)], one.rows)
        for one, path in zip(people, truth, strict=True)
    ]
    assert nearer_than_guesses(knows, far, 0.0) is None
    alike = [
        PersonAnswers(one.at, one.z, one.noise, lines_of(one)[one.at.astype(int)] * 0 + _held(one), one.rows)
        for one in people
    ]
    assert nearer_than_guesses(alike, far, 0.0) is None, "no nearer than the same line"


def _held(one):
    """The line between the neighbours of each answer, at the ends the answer."""
    middle = (one.z[:-2] + one.z[2:]) / 2
    return np.concatenate([one.z[:1], middle, one.z[-1:]])


def test_one_person_or_two_answers_say_nothing():
    people, _ = walkers(2, 4)
    assert nearer_than_guesses(people[:1], far, 0.0) is None
    short = [PersonAnswers(one.at[:2], one.z[:2], one.noise[:2], one.guessed[:2], one.rows) for one in people]
    assert nearer_than_guesses(short, far, 0.0) is None


def test_one_answer_alone_is_the_end_of_every_line():
    one = PersonAnswers(np.array([3.0]), np.zeros((1, 2)), np.array([4.0]), np.zeros((1, 2)), np.array([1, 3, 7]))
    assert expected_squares(one, 0.5).tolist() == [5.0, 4.0, 6.0]
