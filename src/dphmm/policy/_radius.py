"""The policy of distance: states whose answers, as they were given, lie within r of each other (Gutil, Section 4.2).

The paper says "at most r" there and "less than r" in Section 8 (errata 16): ``closed`` chooses. On lattice
points the edges are decided in integers and the graph is a list of offsets; elsewhere distances are floats
and edges are stored.

Proof: docs/proofs/hull.md.
"""

from __future__ import annotations

import hashlib
import math
import re
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dphmm._checks import exact_number
from dphmm.errors import InvalidInput
from dphmm.policy._cliques import Complete, array_hash, complete
from dphmm.policy._edges import Listed
from dphmm.policy._offsets import Offsets
from dphmm.policy._points import LatticeDistance, indexable
from dphmm.policy.graph import PolicyGraph, read_only, refuse_too_many
from dphmm.types import FloatArray, IntArray

#: Distances of answers that are no lattice points are compared with this relative tolerance.
DISTANCE_TOLERANCE = 1e-12
#: Offsets are used while there are at most this many, or this many per state; else a tree finds the pairs.
_OFFSETS = 2**14
_OFFSETS_PER_STATE = 8
_SLACK = 1e-9
_FRACTION = re.compile(r"[0-9]{1,400}(/[0-9]{1,400})?", re.ASCII)


class Radius(PolicyGraph):
    """What every radius policy knows: r (a Fraction), whether the boundary counts, and a hash of the answers."""

    kind: ClassVar[str] = "radius"

    def __init__(self, n_states: int, r: Fraction, closed: bool, answers_hash: str) -> None:
        super().__init__(n_states)
        self.r = r
        self.closed = closed
        self.answers_hash = answers_hash

    def describe(self) -> dict[str, Any]:
        # The answers are the space's to keep; their hash says whether a space has the same.
        return {
            "kind": self.kind,
            "n_states": self.n_states,
            "r": str(self.r),
            "closed": self.closed,
            "answers": self.answers_hash,
        }

    @classmethod
    def from_description(cls, description: dict[str, Any], space: Any, model: Any) -> PolicyGraph:
        if space is None:
            raise InvalidInput("space", None, "the space of the radius policy")
        if not _FRACTION.fullmatch(description["r"]):
            raise InvalidInput("r", description["r"], "a number written as 3 or 7/2")
        built = radius(space, Fraction(description["r"]), closed=description["closed"])
        if built.describe() != description:
            found = str(built.describe().get("answers"))[:16]
            raise InvalidInput("space", f"answers with hash {found}", f"{str(description.get('answers'))[:16]}")
        return built


class LatticeRadius(Offsets, Radius):
    """A radius policy on lattice points, as offsets."""

    def __init__(self, points: IntArray, offsets: IntArray, r: Fraction, closed: bool, answers_hash: str) -> None:
        Radius.__init__(self, len(points), r, closed, answers_hash)
        self.lay_out(points, offsets)


class ListedRadius(Listed, Radius):
    """A radius policy on answers anywhere, as edges."""

    def __init__(self, n_states: int, listed: IntArray, r: Fraction, closed: bool, answers_hash: str) -> None:
        Radius.__init__(self, n_states, r, closed, answers_hash)
        self.listed = read_only(listed)


def radius(space: Any, r: Any = None, closed: bool = True, *, covers: Any = None) -> Radius | Complete:
    """The policy in which states are neighbours iff their answers lie within ``r`` of each other, in answer units.

    Answers of cells are their centres, and people are at places: on a map say with ``covers``, in metres or as "1km",
    up to which distance any two places in cells are to be hidden from each other, wherever they lie in their cells. The
    policy is then the one of the smallest radius that does so, as `covered_distance` measures. Exactly one of both.

    ``space`` : a StateSpace, whose answers count as they were given, or integers (N, d). States with equal
    answers are neighbours. ``closed=False`` leaves out pairs at distance exactly r. Lattice points are
    compared exactly, r and pitch meaning the decimals they print as; other answers in floats, with relative
    tolerance 1e-12 at the boundary (inside when closed, outside when not). ``r = math.inf`` is the complete
    policy.

    >>> from dphmm import Grid, policy
    >>> grid = Grid.from_bounds(13.30, 52.48, 13.40, 52.54, cell=340)
    >>> policy.radius(grid, covers="680m").r
    Fraction(1000, 1)

    Raises InvalidInput for r that is NaN, zero, negative or outside 1e-300 .. 1e300, and for more than
    50,000,000 pairs of neighbours where pairs have to be listed.
    """
    from dphmm.policy._covered import least_radius
    from dphmm.states.space import StateSpace, lattice_answers
    from dphmm.states.units import parse_length

    if isinstance(space, StateSpace) and space.has_labels:
        raise InvalidInput("space", "labels, which have no distances", "policy.complete, .categorical or .from_edges")
    if not isinstance(closed, (bool, np.bool_)):
        raise InvalidInput("closed", closed, "True or False")
    if (r is None) == (covers is None):
        raise InvalidInput("r", "neither r nor covers" if r is None else "both r and covers", "one of them")
    if covers is not None:
        r = math.inf if covers == math.inf else least_radius(space, float(parse_length(covers, "covers")))
    if isinstance(r, (float, np.floating)) and r == math.inf:
        return complete(len(lattice_answers(space)[0]))
    bound = exact_number(r, "r")
    if bound <= 0:
        raise InvalidInput("r", r, "a number greater than 0")
    if not Fraction(10) ** -300 <= bound <= 10**300:
        raise InvalidInput("r", r, "a number from 1e-300 to 1e300, or math.inf")
    if isinstance(space, StateSpace) and not space.is_lattice:
        return _of_floats(space.raw_answers, bound, bool(closed))
    points, frame = lattice_answers(space)
    return _of_lattice(points, frame.exact_pitch, bound, bool(closed))


def _of_lattice(points: IntArray, pitch: tuple[Fraction, ...], r: Fraction, closed: bool) -> Radius:
    metric = LatticeDistance.of(pitch)
    span = np.ptp(points, axis=0)
    largest = min(metric.largest_square(r, closed), metric.squared(span))
    content = lattice_hash(points, pitch)
    reach = np.array(
        [min(int(s), math.isqrt(max(largest, 0)) // w) for s, w in zip(span, metric.weights, strict=True)],
        dtype=np.int64,
    )
    box = math.prod(2 * int(m) + 1 for m in reach)
    if box <= max(_OFFSETS, _OFFSETS_PER_STATE * len(points)) and indexable(points, reach):
        offsets = _half_box(reach)
        return LatticeRadius(points, offsets[metric.within(offsets, largest)], r, closed, content)
    scaled = (points - points.min(axis=0)) * np.array([float(w) for w in metric.weights])
    # Coordinates are rounded relative to the whole span, distances only to themselves.
    slack = float(scaled.max(initial=0.0)) * 2.0**-48
    pairs = _close_pairs(scaled, math.sqrt(largest) * (1 + _SLACK) + slack)
    kept = pairs[metric.within(points[pairs[:, 1]] - points[pairs[:, 0]], largest)]
    return ListedRadius(len(points), kept, r, closed, content)


def _of_floats(answers: FloatArray, r: Fraction, closed: bool) -> Radius:
    bound = float(r)
    pairs = _close_pairs(answers, bound * (1 + _SLACK))
    distance = np.sqrt((((answers[pairs[:, 1]] - answers[pairs[:, 0]]) / bound) ** 2).sum(axis=1))
    near = distance <= 1 + DISTANCE_TOLERANCE if closed else distance < 1 - DISTANCE_TOLERANCE
    return ListedRadius(len(answers), pairs[near], r, closed, floats_hash(answers))


def lattice_hash(points: IntArray, pitch: tuple[Fraction, ...]) -> str:
    """SHA-256 (hex) of the differences of lattice answers (N, d) and their units."""
    units = ",".join(map(str, pitch))
    return hashlib.sha256(f"{units} {array_hash(points - points.min(axis=0))}".encode()).hexdigest()


def floats_hash(answers: FloatArray) -> str:
    """SHA-256 (hex) of answers (N, d) that are no lattice points."""
    return hashlib.sha256(np.ascontiguousarray(answers, dtype="<f8").tobytes()).hexdigest()


def _half_box(reach: IntArray) -> IntArray:
    """All integer vectors with \\|v_j\\| <= reach_j, one of each ± pair and without zero."""
    grid: NDArray[Any] = np.indices(tuple(2 * reach + 1), dtype=np.int64).reshape(len(reach), -1).T - reach
    # In lexicographic order the box is symmetric about its middle, which is zero.
    return np.ascontiguousarray(grid[len(grid) // 2 + 1 :])


def _close_pairs(points: FloatArray, distance: float) -> IntArray:
    """Pairs (m, 2), i < j, sorted, at most ``distance`` apart."""
    from scipy.spatial import KDTree

    tree = KDTree(points)
    count = (int(tree.count_neighbors(tree, distance)) - len(points)) // 2
    refuse_too_many(count, "r", "a smaller radius, or the complete policy")
    pairs = tree.query_pairs(distance, output_type="ndarray").astype(np.int64)
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    ranked: IntArray = pairs[order]
    return ranked
