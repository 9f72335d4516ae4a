"""The degree distribution of a graph, private for edges or for people.

*Edge* level: one edge is there or not. Two people's degrees change by 1, so four numbers of the histogram by 1.
*Node* level: all edges of one person change. Degrees are first capped: edges are taken in an order that is fixed by the
ends' numbers alone, and one is left out if an end already has ``cap`` of them. Then one person's edges change the
histogram by at most 4·cap + 2 (the proof is on the page; the order is that of Day, Li and Lyu, SIGMOD 2016).

Proof: docs/proofs/dependent-markov.md.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dphmm._checks import one_of, whole
from dphmm.dependent._budget import Budget, add_integer_noise
from dphmm.dependent._contributions import whole_numbers
from dphmm.dependent._counts import Answered, with_total
from dphmm.errors import InvalidInput
from dphmm.samplers.entropy import default_bits
from dphmm.types import Bits, Exact, IntArray

LEVELS = {"edge": "one edge", "node": "all edges of one person"}


def degree_distribution(
    edges: Any,
    n: int,
    dependence: Any,
    epsilon: Exact,
    *,
    level: str,
    cap: int,
    mechanism: str | None = None,
    consistent: bool = True,
    accept_unproved: bool = False,
    bits: Bits | None = None,
) -> Answered:
    """How many of ``n`` people (a public number) have 0, 1, …, ``cap`` friends: columns degree, count.

    ``level``: "edge" or "node", which must be said: they protect very different things. ``cap``: public. At edge level
    the last number counts everybody with ``cap`` friends or more; at node level edges beyond the cap are left out.
    ``dependence``: at node level a model of the n people, "independent" or ("group", k); at edge level one of the two
    last. ``consistent``: no counts below 0 and n people in all (post-processing). A row of ``edges`` that does not join
    two different people from 0 to n − 1 is no edge.
    """
    import pandas as pd

    one_of(level, tuple(LEVELS), "level")
    people, most = whole(n, "n", 1), whole(cap, "cap", 1)
    if not isinstance(dependence, (str, tuple)):
        if level == "edge":
            raise InvalidInput("dependence", repr(dependence), '"independent" or ("group", k) at edge level')
        if dependence.n_tuples != people:
            raise InvalidInput("dependence", repr(dependence), f"one of the {people} people")
    pairs = simple_edges(edges, people)
    budget = Budget.of(dependence, epsilon, mechanism, accept_unproved)
    source = default_bits(bits)
    counts = histogram_of_degrees(pairs, people, most, level)
    sensitivity = Fraction(4 if level == "edge" else 4 * most + 2)
    noisy, part = add_integer_noise(counts, sensitivity, budget.per_record, f"degrees ({level} level)", source)
    if consistent:
        noisy = with_total(noisy, people)
    frame = pd.DataFrame({"degree": np.arange(most + 1), "count": noisy})
    return Answered(frame, budget.event(f"degree distribution, {level} level", LEVELS[level], (part,), source))


def histogram_of_degrees(pairs: IntArray, n: int, cap: int, level: str) -> IntArray:
    """Numbers of people (cap + 1,) by degree, capped as the level asks."""
    degrees = np.bincount(pairs[:, 0], minlength=n) + np.bincount(pairs[:, 1], minlength=n)
    if level == "node" and len(pairs) and degrees.max() > cap:
        from dphmm._kernels.degrees import capped_degrees

        degrees = np.empty(n, dtype=np.int64)
        first, second = np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])
        capped_degrees(first, second, _fixed_order(first, second), n, cap, degrees)
    found: IntArray = np.bincount(np.minimum(degrees, cap), minlength=cap + 1)
    return found


def simple_edges(edges: Any, n: int) -> IntArray:
    """Pairs (m, 2) of different people, each once, smaller number first; other rows are passed over."""
    given = np.asarray(edges)
    if given.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if given.ndim != 2 or given.shape[1] != 2 or given.dtype.kind not in "iufO":
        raise InvalidInput("edges", f"shape {given.shape}, {given.dtype}", "pairs of people (m, 2)")
    ends, numbers = whole_numbers(given, "edges")
    joined = (numbers & (ends >= 0) & (ends < n)).all(axis=1) & (ends[:, 0] != ends[:, 1])
    one, other = np.ascontiguousarray(ends[joined, 0]), np.ascontiguousarray(ends[joined, 1])
    keys = np.minimum(one, other) * n + np.maximum(one, other)
    keys.sort()
    keys = keys[np.r_[True, keys[1:] != keys[:-1]][: len(keys)]]
    first = keys // n
    return np.array([first, keys - first * n]).T


def _fixed_order(first: IntArray, second: IntArray) -> IntArray:
    """An order of pairs that looks random and depends on nothing but the two numbers of each (splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = first.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + second.astype(np.uint64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    order: IntArray = np.argsort(mixed, kind="stable")
    return order
