"""The minimum is found: of bowls by solving, of a curved valley, and the steps end where they should."""

from __future__ import annotations

import numpy as np

from dphmm.markov.private.descent import minimised


def test_a_bowl_has_the_minimum_of_its_equations():
    random = np.random.default_rng(1)
    for size in (1, 4, 12):
        half = random.normal(size=(size, size))
        bowl, side = half @ half.T + np.eye(size), random.normal(size=size)
        found, _, settled = minimised(
            lambda x, a=bowl, b=side: (float(x @ a @ x / 2 - b @ x), a @ x - b), np.zeros(size), 500, 1e-14
        )
        assert settled
        np.testing.assert_allclose(found, np.linalg.solve(bowl, side), atol=1e-5)


def valley(point):
    x, y = point
    return (1 - x) ** 2 + 100 * (y - x * x) ** 2, np.array([-2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)])


def test_a_curved_valley_is_followed_to_its_end():
    found, _, settled = minimised(valley, np.array([-1.2, 1.0]), 500, 1e-14)
    assert settled
    np.testing.assert_allclose(found, [1, 1], atol=1e-4)


def test_no_more_evaluations_than_asked():
    asked = []

    def counted(point):
        asked.append(point)
        return valley(point)

    _, values, settled = minimised(counted, np.array([-1.2, 1.0]), 7, 0.0)
    assert len(asked) == 7 and not settled
    assert (np.diff(values) < 0).all() and values[0] == valley(asked[0])[0]
