"""States that are answered as another one: merged states and their partners.

Proof: docs/proofs/merging.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from dphmm.errors import InvalidInput
from dphmm.states.lattice import Lattice
from dphmm.types import IntArray

NO_MERGES: IntArray = np.zeros((0, 2), dtype=np.int64)
NO_MERGES.setflags(write=False)
# Distances in floats make a shortlist this much too long; integers decide.
_SLACK = 1e-9


def checked_merges(merges: Mapping[int, int] | ArrayLike, n_states: int) -> IntArray:
    """Pairs (m, 2) of a merged state and its partner, by merged state, each once.

    ``merges`` : a mapping merged state -> partner, or pairs (m, 2). Raises InvalidInput for what is no state, for a
    state with two partners or with itself, and for a partner that is merged: its answer would not be its own.
    """
    pairs = _numbers(list(merges.items()) if isinstance(merges, Mapping) else merges)
    if pairs.size and not 0 <= pairs.min() <= pairs.max() < n_states:
        raise InvalidInput("merges", "a number that no state has", f"states from 0 to {n_states - 1}")
    pairs = np.unique(pairs, axis=0)
    again = np.flatnonzero(pairs[1:, 0] == pairs[:-1, 0])
    if len(again):
        raise InvalidInput("merges", f"two partners of state {pairs[again[0], 0]}", "one partner for each merged state")
    wrong = pairs[np.isin(pairs[:, 1], pairs[:, 0])]
    if len(wrong):
        came = f"state {wrong[0, 0]} merged into state {wrong[0, 1]}, which is merged itself"
        raise InvalidInput("merges", came, "a partner that keeps its own answer")
    pairs.setflags(write=False)
    return pairs


def _numbers(merges: ArrayLike) -> IntArray:
    expected = "state numbers (m, 2): merged state, partner"
    try:
        raw = np.asarray(merges)
    except ValueError:
        raise InvalidInput("merges", "rows of different lengths", expected) from None
    if raw.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if raw.dtype.kind not in "iu" or raw.ndim != 2 or raw.shape[1] != 2:
        raise InvalidInput("merges", f"{raw.dtype} {raw.shape}", expected)
    return raw.astype(np.int64)


def nearest_among(lattice: IntArray, frame: Lattice, states: IntArray, others: IntArray) -> IntArray:
    """For each of ``states`` the nearest of ``others`` in answer units, decided exactly; ties to the lowest number."""
    from scipy.spatial import cKDTree

    centred = lattice - lattice.min(axis=0)
    points = centred * frame.pitch
    tree = cKDTree(points[others])
    distance = tree.query(points[states])[0]
    slack = float(np.abs(points).max(initial=0.0)) * _SLACK
    near = tree.query_ball_point(points[states], distance * (1 + _SLACK) + slack)
    squares = [pitch**2 for pitch in frame.exact_pitch]

    def closest(state: int, candidates: list[int]) -> int:
        def order(other: int) -> tuple[Fraction, int]:
            steps = (int(x) for x in centred[other] - centred[state])
            return sum((step**2 * square for step, square in zip(steps, squares, strict=True)), Fraction(0)), other

        return int(min(others[candidates].tolist(), key=order))

    found = [closest(state, tied) for state, tied in zip(states.tolist(), near, strict=True)]
    return np.array(found, dtype=np.int64)
