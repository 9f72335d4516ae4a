"""Lattice samplers of random bodies, ranks 1 to 4: round, thin, slanted, wide up to where 64 bits end, at any ε.

Bounds on half-widths come from an exact inverse, so a body is right by arithmetic of its own.
"""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np

from dphmm.samplers.body import LatticeBody, LatticeSampler

KINDS = ("round", "thin", "wide", "edge of 64 bits")


def inverse(rows):
    """The exact inverse of a square integer matrix, as fractions; None where there is none."""
    k = len(rows)
    work = [[Fraction(c) for c in row] + [Fraction(int(i == j)) for j in range(k)] for i, row in enumerate(rows)]
    for at in range(k):
        pivot = next((i for i in range(at, k) if work[i][at]), None)
        if pivot is None:
            return None
        work[at], work[pivot] = work[pivot], work[at]
        work[at] = [c / work[at][at] for c in work[at]]
        for i in range(k):
            if i != at:
                work[i] = [c - work[i][at] * p for c, p in zip(work[i], work[at], strict=True)]
    return [row[k:] for row in work]


def facets(chance, k, kind):
    """k independent normals, then some more, and offsets."""
    reach = {"round": 3, "thin": 1, "wide": 5, "edge of 64 bits": 2}[kind]
    while True:
        normals = [[chance.randint(-reach, reach) for _ in range(k)] for _ in range(k)]
        if inverse(normals) is not None:
            break
    largest = {"round": 12, "thin": 300, "wide": 2**28, "edge of 64 bits": 2 ** chance.randint(44, 60)}[kind]
    offsets = [chance.randint(1, largest) for _ in range(k)]
    if kind == "thin" and k > 1:
        # Slanted: the second normal follows a multiple of the first, with an offset of its own scale.
        normals[1] = [chance.randint(50, 5000) * a + b for a, b in zip(normals[0], normals[1], strict=True)]
        offsets[0] = chance.randint(1, 3)
    for _ in range(chance.randint(0, 2)):
        # A cut that takes a corner off: a sum of facets at some share of the sum of their offsets.
        i, j = chance.randrange(k), chance.randrange(k)
        normals.append([a + b for a, b in zip(normals[i], normals[j], strict=True)])
        offsets.append(max(1, (offsets[i] + offsets[j]) * chance.randint(5, 9) // 10))
    kept = [i for i, row in enumerate(normals) if any(row)]
    return [normals[i] for i in kept], [offsets[i] for i in kept]


def body(chance, k, kind):
    while True:
        normals, offsets = facets(chance, k, kind)
        back = inverse(normals[:k])
        if back is not None:
            break

    def half_width(row):
        """|row·y| <= sum |row·A⁻¹|_j b_j over the first k facets A."""
        lines = [sum(int(r) * back[i][j] for i, r in enumerate(row)) for j in range(k)]
        return sum((abs(line) * b for line, b in zip(lines, offsets[:k], strict=True)), start=Fraction(0))

    d = k + chance.randint(0, 1)
    basis = [[int(i == j) if i < k else chance.randint(-4, 4) for j in range(k)] for i in range(d)]
    return LatticeBody.of(np.array(normals), np.array(offsets), None, half_width, np.array(basis))


def epsilon(chance):
    """From 2⁻²⁰ to 2¹⁰, evenly in the logarithm, as a fraction without a pattern."""
    return max(Fraction(1, 2**20), min(Fraction(2**10), Fraction(round(2 ** chance.uniform(-20, 10) * 2**40), 2**40)))


def samplers(seed):
    """A K-norm and a staircase sampler of a random body; their ranks and kinds follow the seed."""
    chance = random.Random(seed)
    k, kind = 1 + seed % 4, KINDS[seed // 4 % len(KINDS)]
    shape = body(chance, k, kind)
    offset = Fraction(chance.randint(0, 999), 1000) if chance.random() < 0.8 else Fraction(0)
    yield LatticeSampler.knorm(shape, epsilon(chance))
    yield LatticeSampler.staircase(shape, epsilon(chance), offset)
