"""The policy in which every state is joined to its nearest others, however far away they are.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dphmm._checks import whole
from dphmm.errors import InvalidInput
from dphmm.policy._edges import Listed
from dphmm.policy._points import LatticeDistance
from dphmm.policy._radius import DISTANCE_TOLERANCE, floats_hash, lattice_hash
from dphmm.policy.graph import PolicyGraph, read_only, refuse_too_many, registered, sorted_edges
from dphmm.states.space import StateSpace, lattice_answers
from dphmm.types import FloatArray, IntArray

#: Squared distances of pairs of states (m,), (m,): integers, or floats.
_Squares: TypeAlias = Callable[[IntArray, IntArray], NDArray[Any]]
#: A tree's float distances are taken to be wrong by at most this share, and this share of the whole span.
_SLACK = 1e-9
_SLACK_OF_SPAN = 2.0**-48
_CANDIDATES_AT_ONCE = 2**20


@registered
class Knn(Listed):
    """Every state and its k nearest others: k, and a hash of the answers."""

    kind: ClassVar[str] = "knn"

    def __init__(self, listed: IntArray, n_states: int, k: int, answers_hash: str) -> None:
        super().__init__(n_states)
        self.listed = read_only(listed)
        self.k = k
        self.answers_hash = answers_hash

    def describe(self) -> dict[str, Any]:
        # The answers are the space's to keep; their hash says whether a space has the same.
        return {"kind": self.kind, "n_states": self.n_states, "k": self.k, "answers": self.answers_hash}

    @classmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> PolicyGraph:
        if space is None:
            raise InvalidInput("space", None, "the space of the knn policy")
        built = knn(space, description["k"])
        if built.describe() != description:
            found, expected = built.answers_hash, str(description.get("answers"))
            raise InvalidInput("space", f"answers with hash {found[:16]}", expected[:16])
        return built


def knn(space: Any, k: int) -> Knn:
    """The policy in which every state is a neighbour of its ``k`` nearest other states, by distance of answers.

    All states as near as the k-th are neighbours too, so the order of states decides nothing. Two states are neighbours
    where either is near the other: a lonely state is the neighbour of states that have k nearer ones.

    ``space`` : a StateSpace, whose answers count as they were given, or integers (N, d). States with equal answers are
    at distance 0. Lattice points are compared exactly, the pitch meaning the decimals it prints as; other answers in
    floats, where distances that differ by a share of 1e-12 are equal.

    >>> from dphmm import policy
    >>> policy.knn([0, 1, 3, 9], 1).edges().tolist()
    [[0, 1], [1, 2], [2, 3]]

    Raises InvalidInput for k that is no whole number from 1 to N - 1, and for more than 50,000,000 pairs.
    """

    if isinstance(space, StateSpace) and space.has_labels:
        raise InvalidInput("space", "labels, which have no distances", "policy.complete, .categorical or .from_edges")
    if isinstance(space, StateSpace) and not space.is_lattice:
        answers = space.raw_answers
        return _built(k, answers, _float_squares(answers), floats_hash(answers))
    points, frame = lattice_answers(space)
    metric = LatticeDistance.of(frame.exact_pitch)
    near_origin = points - points.min(axis=0)
    scaled = near_origin * np.array([float(w) for w in metric.weights])

    def squares(a: IntArray, b: IntArray) -> NDArray[Any]:
        return np.asarray(metric.squares(points[b] - points[a]))

    return _built(k, scaled, squares, lattice_hash(points, frame.exact_pitch))


def _built(k: int, coordinates: FloatArray, squares: _Squares, answers_hash: str) -> Knn:
    """The policy of points (N, d) whose distances are nearly those of ``coordinates``, and exactly ``squares``."""
    n = len(coordinates)
    if n == 1:
        raise InvalidInput("space", "one state", "two or more: every state has a nearest other one")
    k = whole(k, "k", 1, n - 1)
    none = np.zeros(0, dtype=np.int64)
    kept = [_nearest(own, other, squares(own, other), k) for own, other in _candidates(coordinates, k)]
    a, b = (np.concatenate([none, *ends]) for ends in zip(*kept, strict=True))
    return Knn(sorted_edges(a, b), n, k, answers_hash)


def _candidates(coordinates: FloatArray, k: int) -> Iterator[tuple[IntArray, IntArray]]:
    """Pairs (state, other), the state itself included: at least all as near as the k-th other, state by state."""
    from scipy.spatial import KDTree

    placed = _scaled(coordinates)
    tree = KDTree(placed)
    # Of all states, itself among them at distance 0, the k-th other is the last of k + 1.
    farthest = np.atleast_2d(tree.query(placed, k=[k + 1])[0]).reshape(-1)
    reach = farthest * (1 + _SLACK) + float(placed.max()) * _SLACK_OF_SPAN
    counts = tree.query_ball_point(placed, reach, return_length=True)
    refuse_too_many(int(counts.sum()) - len(placed), "k", "a smaller k, or states with fewer equal distances")
    for states in _runs(counts):
        near = tree.query_ball_point(placed[states], reach[states])
        lengths = np.array([len(row) for row in near], dtype=np.int64)
        others = np.fromiter(chain.from_iterable(near), dtype=np.int64, count=int(lengths.sum()))
        yield np.repeat(states, lengths), others


def _runs(counts: IntArray) -> Iterator[IntArray]:
    """All states in order, in runs of not too many candidates together."""
    run = np.cumsum(counts) // _CANDIDATES_AT_ONCE
    starts = np.flatnonzero(np.diff(run, prepend=-1))
    yield from np.split(np.arange(len(counts), dtype=np.int64), starts[1:])


def _nearest(own: IntArray, other: IntArray, squares: NDArray[Any], k: int) -> tuple[IntArray, IntArray]:
    """Of candidates, those as near as the k-th other of their state."""
    # Integers beyond 64 bits are compared by their ranks.
    values = np.unique(squares, return_inverse=True)[1] if squares.dtype == object else squares
    order = np.lexsort((values, own))
    starts = np.searchsorted(own, own)
    limits = values[order][starts + k]
    if values.dtype.kind == "f":
        limits = limits * (1 + DISTANCE_TOLERANCE) ** 2
    near = values <= limits
    return own[near], other[near]


def _scaled(coordinates: FloatArray) -> FloatArray:
    """The points from their least corner, by a power of two within 0..1, so that no square overflows."""
    placed = coordinates - coordinates.min(axis=0)
    _, exponent = math.frexp(float(placed.max()))
    return np.asarray(np.ldexp(placed, -exponent), dtype=np.float64)


def _float_squares(answers: FloatArray) -> _Squares:
    placed = _scaled(answers)

    def squares(a: IntArray, b: IntArray) -> NDArray[Any]:
        return np.asarray(((placed[b] - placed[a]) ** 2).sum(axis=1))

    return squares
