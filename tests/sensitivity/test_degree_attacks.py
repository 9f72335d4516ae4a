"""Degrees of protection against a twin in Python integers: random bodies, large and thin, points far from the origin
and from each other, states asked for that are not counted and counted twice.

It would fail for rows of a body that are cut off at the picture's border, and for 64 bits that do not suffice.
"""

from __future__ import annotations

import random

import numpy as np

from dphmm.sensitivity.protection import degree_among
from naive_mechanisms import hull_of_points


def inside(hull, v):
    if any(sum(a * c for a, c in zip(row, v, strict=True)) for row in hull.equations.tolist()):
        return False
    y = [sum(a * c for a, c in zip(row, v, strict=True)) for row in hull.coordinates.tolist()]
    facets = zip(hull.normals.tolist(), hull.offsets.tolist(), strict=True)
    return all(abs(sum(a * c for a, c in zip(n, y, strict=True))) <= b for n, b in facets)


def test_degrees_are_those_of_every_pair():
    """300 bodies of up to 2**30 steps with up to 80 points, as far out as 2**61."""
    rng = random.Random(8)
    for _ in range(300):
        m = rng.choice([1, 3, 10, 60, 10**4, 10**9, 2**30])
        hull = hull_of_points([(rng.randint(-m, m), rng.randint(-m, m)) for _ in range(rng.randint(2, 5))])
        far, wide, high = rng.choice([0, 10**6, -(2**40), -(2**61)]), rng.choice([1, 5, 60]), rng.choice([1, 60])
        image = np.array([[far + rng.randint(0, wide), -far + rng.randint(0, high)] for _ in range(rng.randint(1, 80))])
        if rng.random() < 0.2:
            image[rng.randrange(len(image))] += rng.choice([1000, -5000, 2**50])
        states = range(len(image))
        targets = np.array(sorted(rng.sample(states, rng.randint(0, len(image)))), dtype=np.int64)
        among = np.array(sorted(rng.choices(states, k=rng.randint(0, len(image)))), dtype=np.int64)
        points = image.tolist()
        expected = [
            sum(inside(hull, [b - a for a, b in zip(points[i], points[j], strict=True)]) for j in among.tolist())
            for i in targets.tolist()
        ]
        assert degree_among(hull, image, targets, among).tolist() == expected
