"""Random answer tables: the shapes on which geometry goes wrong."""

from __future__ import annotations

import numpy as np

#: The library takes at most 2**28 steps across an axis, and answers up to 2**53.
_FAR = 2**50
#: Spans at which a hull of generic points still fits 64 bits in that many dimensions.
_WIDEST = {1: 2**27, 2: 2**27, 3: 2**26, 4: 2**12}


def spread(rng, n, d):
    span = int(rng.choice([1, 2, 4, 9, 30, 200]))
    return rng.integers(-span, span + 1, size=(n, d))


def twins(rng, n, d):
    """Few distinct answers, each given by several states."""
    distinct = rng.integers(-6, 7, size=(int(rng.integers(1, max(2, n // 2) + 1)), d))
    return distinct[rng.integers(len(distinct), size=n)]


def flat(rng, n, d):
    """Answers on a line, plane or 3-space through Z^d."""
    k = int(rng.integers(1, d)) if d > 1 else 1
    directions = rng.integers(-4, 5, size=(k, d))
    return rng.integers(-5, 6, size=(n, k)) @ directions + rng.integers(-9, 10, size=d)


def several_cosets(rng, n, d):
    """Two or three parallel lines: flat hulls whose cosets tell states apart."""
    direction = rng.integers(-3, 4, size=d)
    starts = rng.integers(-8, 9, size=(3, d))
    return starts[rng.integers(3, size=n)] + rng.integers(-4, 5, size=(n, 1)) * direction


def near_collinear(rng, n, d):
    """A long slanted line, some answers one step beside it."""
    bits = 24 if d < 3 else 10
    direction = rng.integers(-(2**bits), 2**bits, size=d)
    table = rng.integers(-8, 9, size=(n, 1)) * direction
    return table + rng.integers(-1, 2, size=(n, d)) * (rng.random((n, 1)) < 0.5)


def huge(rng, n, d):
    """Coordinates up to 2**50 with spans up to what the dimension allows."""
    span = _WIDEST[d] >> int(rng.integers(0, 9))
    return rng.integers(-_FAR, _FAR, size=d) + rng.integers(-(span - 1), span, size=(n, d))


def grid(rng, n, d):
    side = max(2, round(n ** (1 / d)))
    numbers = np.arange(n)
    return np.stack([numbers // side**axis % side if axis < d - 1 else numbers // side**axis for axis in range(d)], 1)


def clusters(rng, n, d):
    """Small groups far from each other: hulls per component differ."""
    centres = rng.integers(-60, 61, size=(3, d))
    sizes = np.array([1, 3, 8])
    group = rng.integers(3, size=n)
    return centres[group] + rng.integers(-1, 2, size=(n, d)) * sizes[group][:, None]


def thin(rng, n, d):
    """Axes of very different length."""
    spans = 10 ** rng.integers(0, 4 if d < 4 else 3, size=d)
    return (rng.random((n, d)) * (2 * spans + 1)).astype(np.int64) - spans


SHAPES = {
    shape.__name__: (shape, weight)
    for shape, weight in (
        (spread, 6),
        (twins, 3),
        (flat, 3),
        (several_cosets, 2),
        (near_collinear, 2),
        (huge, 2),
        (grid, 2),
        (clusters, 2),
        (thin, 2),
    )
}


def table(rng, n, d):
    """(name of the shape, answers (n, d) int64)."""
    names = list(SHAPES)
    weights = np.array([SHAPES[name][1] for name in names], dtype=float)
    name = str(rng.choice(names, p=weights / weights.sum()))
    return name, np.asarray(SHAPES[name][0](rng, n, d), dtype=np.int64)
