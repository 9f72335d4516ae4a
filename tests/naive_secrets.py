"""Chains over latent states with secrets, as definitions say it: every path is written out, sets are Python's sets.

A chain is (initial, matrix, secrets): lists over latent states. Step 1 follows one move after ``initial``.
"""

from __future__ import annotations

import itertools
import math


def possible(chain, steps):
    """The latent states that each step can be in."""
    initial, matrix, _ = chain
    now, found = {x for x, p in enumerate(initial) if p > 0}, []
    for _ in range(steps):
        now = {y for x in now for y, p in enumerate(matrix[x]) if p > 0}
        found.append(now)
    return found


def paths(chain, steps):
    """Every path of latent states from step 1 on that the chain can take, with its probability."""
    initial, matrix, _ = chain
    states = range(len(initial))
    for path in itertools.product(states, repeat=steps):
        first = math.fsum(initial[x] * matrix[x][path[0]] for x in states)
        chance = first * math.prod(matrix[x][y] for x, y in itertools.pairwise(path))
        if chance > 0:
            yield path, chance


def weighed(chain, steps, likelihoods):
    """Each path with its probability given answers: ``likelihoods[t][s]`` of secret s at the steps that were asked."""
    secrets = chain[2]
    found = [
        (path, chance * math.prod(one[secrets[x]] for x, one in zip(path, likelihoods, strict=False)))
        for path, chance in paths(chain, steps)
    ]
    total = math.fsum(chance for _, chance in found)
    return [(path, chance / total) for path, chance in found]


def masses(chain, step, steps, likelihoods):
    """How likely each secret is at a step (from 0) given answers."""
    secrets = chain[2]
    found = [0.0] * (max(secrets) + 1)
    for path, chance in weighed(chain, steps, likelihoods):
        found[secrets[path[step]]] += chance
    return found


def fewest(mass, delta):
    """The fewest secrets that hold 1 - delta; of equally likely ones those with low numbers."""
    chosen, held = set(), 0.0
    for secret in sorted(range(len(mass)), key=lambda s: (-mass[s], s)):
        if held >= 1 - delta - 1e-12:
            break
        chosen.add(secret)
        held += mass[secret]
    return chosen


def second_order(moves, first, base):
    """The latent pairs of a chain of second order, and its matrix, from {(a, b): {c: weight}} beside base rows."""
    pairs = sorted(first)
    matrix = [[0.0] * len(pairs) for _ in pairs]
    for i, (a, b) in enumerate(pairs):
        weights = {c: moves.get((a, b), {}).get(c, 0.0) + p for c, p in base[b].items()}
        total = math.fsum(weights.values())
        for c, weight in weights.items():
            matrix[i][pairs.index((b, c))] = weight / total
    return pairs, matrix


def followers(chain, order):
    """The pairs of secrets that one secret (order 1), or one latent state (2), can be followed by."""
    _, matrix, secrets = chain
    sources = {}
    for x, row in enumerate(matrix):
        key = secrets[x] if order == 1 else x
        sources.setdefault(key, set()).update(secrets[y] for y, p in enumerate(row) if p > 0)
    return {(a, b) for found in sources.values() for a in found for b in found if a < b}
