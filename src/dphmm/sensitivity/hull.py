"""The sensitivity hull: the convex hull of ± the answer differences along policy edges (Def. 5.1, DPHMM paper).

The body that carries a guarantee is a list of integer facets (a, b) with |a·Δ| <= b for every required difference Δ.
It lives in k lattice coordinates y of its span (x = basis·y), so flat hulls are ordinary bodies of a lower dimension.

A flat hull's noise stays on a line or plane through the true answer, and z then tells which one (docs/theory.md (b)).
`thicken` gives it a little width in every direction, so that no release excludes a state for certain. The thickened
body contains the flat one, so every required difference keeps its ε.

The l1 sensitivity measures the distance of answers, and so does the largest norm between two of them (cost).

Proofs: docs/proofs/hull.md, docs/proofs/thickening.md, docs/proofs/composition.md (cost), docs/proofs/laplace.md.
"""

from __future__ import annotations

import hashlib
import itertools
import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm._checks import state_mask
from dphmm.errors import InvalidInput
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.sensitivity import exact_hull
from dphmm.sensitivity.exact_hull import (
    Body,
    Differences,
    PolicyDifferences,
    certified_width,
    dot,
    independent,
    null_lattice,
    polygon_of,
    span_lattice,
    spatial_body,
    symmetric_polygon,
)
from dphmm.states.lattice import Lattice
from dphmm.states.space import StateSpace, lattice_answers
from dphmm.types import BoolArray, FloatArray, IntArray, Loss, States


@dataclass(frozen=True, eq=False)
class SensitivityHull:
    """A symmetric convex body K on the answer lattice.

    Integer side: ``basis`` (d, k) and ``coordinates`` (k, d) (its integer left inverse) span the body's coset lattice,
    ``equations`` (d-k, d) vanish on the span, ``normals`` (m, k) and ``offsets`` (m,) are one of each ± pair of facets,
    ``hull_vertices`` (v, k) are the corners (counter-clockwise for k = 2), None for a body given by facets alone.
    Answer units (as the answers were given): ``vertices``, ``facets``, ``norm``, ``contains``, ``volume``,
    ``second_moment``. Containment is closed: the boundary counts.
    """

    frame: Lattice
    basis: IntArray
    coordinates: IntArray
    equations: IntArray
    body: Body

    @property
    def dimension(self) -> int:
        """d, the number of coordinates of an answer."""
        return int(self.basis.shape[0])

    @property
    def rank(self) -> int:
        """k, the dimension of the span; below d the hull is flat, and 0 means K = {0}."""
        return int(self.basis.shape[1])

    @property
    def normals(self) -> IntArray:
        """Integer facet normals (m, k) in the coordinates of the span; one of each ± pair."""
        return self.body.normals

    @property
    def offsets(self) -> IntArray:
        """Integer facet offsets (m,): |normals·y| <= offsets."""
        return self.body.offsets

    @property
    def hull_vertices(self) -> IntArray | None:
        """Corners (v, k) in the coordinates of the span; None for a body given by facets alone."""
        return self.body.vertices

    @property
    def exact(self) -> bool:
        """True if the body is the convex hull itself, not a certified body around it (d >= 3 only)."""
        return self.body.exact

    def norm_fraction(self, v: ArrayLike) -> Loss:
        """‖v‖_K of one lattice vector (d,), exactly; ``math.inf`` off the span."""
        vector = np.asarray(v, dtype=np.int64)
        if np.any(dot(self.equations, vector) != 0):
            return math.inf
        values = dot(self.normals, self.coordinates_of(vector[None])[0])
        ratios = [Fraction(abs(int(a)), int(b)) for a, b in zip(values, self.offsets, strict=True)]
        return max(ratios, default=Fraction(0))

    def norm(self, v: ArrayLike) -> Any:
        """‖v‖_K = inf{r : v in rK} of differences (..., d) in answer units; infinite off the span."""
        steps = self.frame.steps(self._differences(v))
        off_span = np.any(np.abs(steps @ self.equations.T) > 1e-9, axis=-1)
        values = np.abs(steps @ self.coordinates.T @ self.normals.T) / self.offsets
        norms = np.where(off_span, np.inf, values.max(axis=-1, initial=0.0))
        return float(norms) if norms.ndim == 0 else norms

    def contains(self, v: ArrayLike) -> Any:
        """True where differences (..., d) in answer units lie in K: exact for lattice vectors, else by the norm."""
        differences = self._differences(v)
        rows = differences.reshape(-1, self.dimension)
        steps = self.frame.steps(rows)
        inside = np.asarray(self.norm(rows)) <= 1.0
        on_lattice = np.all((steps == np.rint(steps)) & (np.abs(steps) < 2.0**53), axis=1)
        inside[on_lattice] = self.contains_lattice(steps[on_lattice].astype(np.int64))
        return bool(inside[0]) if differences.ndim == 1 else inside.reshape(differences.shape[:-1])

    def contains_lattice(self, v: IntArray) -> BoolArray:
        """True where lattice vectors (n, d) lie in K, exactly."""
        inside = np.ones(len(v), dtype=np.bool_)
        for equation in self.equations:
            inside &= dot(v, equation) == 0
        y = self.coordinates_of(v)
        for normal, offset in zip(self.normals, self.offsets, strict=True):
            inside &= np.abs(dot(y, normal)) <= offset
        return inside

    def certify(self, differences: ArrayLike) -> bool:
        """True if every difference (m, d), in answer units, lies in K: a check independent of the construction of K."""
        vectors = self._differences(differences).reshape(-1, self.dimension)
        return bool(np.all(self.contains(vectors))) if len(vectors) else True

    def half_width(self, direction: ArrayLike) -> Fraction:
        """A certified bound on |direction·y| over K, in the coordinates y of its span; attained when K is exact."""
        return certified_width(self.body, np.asarray(direction).tolist())

    @cached_property
    def widths(self) -> tuple[Fraction, ...]:
        """Half-widths of K along each coordinate of its span."""
        return tuple(self.half_width(row) for row in np.eye(self.rank, dtype=np.int64))

    @cached_property
    def axis_half_widths(self) -> FloatArray:
        """Half-widths (d,) of K along the answer axes, in answer units."""
        steps = [float(self.half_width(row)) for row in self.basis]
        return np.array(steps) * self.frame.pitch

    @cached_property
    def vertices(self) -> FloatArray:
        """Corners (v, d) in answer units. A body of few facets (most of d > 6) has none listed: InvalidInput."""
        if self.body.vertices is None:
            raise InvalidInput("vertices", f"a hull of rank {self.rank}", "rank 6 or less; use facets")
        return np.asarray((self.body.vertices @ self.basis.T) * self.frame.pitch, dtype=np.float64)

    @cached_property
    def facets(self) -> tuple[NDArray[Any], IntArray]:
        """(a, b), both of each ± pair: a·v <= b for v in answer units (integers where the pitch is 1). On the span."""
        ambient = self.normals @ self.coordinates
        a = ambient if np.all(self.frame.pitch == 1.0) else ambient / self.frame.pitch
        return np.vstack([a, -a]), np.concatenate([self.offsets, self.offsets])

    @cached_property
    def volume(self) -> float:
        """d-dimensional volume in answer units; 0 for a flat hull. If ``exact`` is False, that of the hull inside."""
        return float(self.lattice_volume) * float(np.prod(self.frame.pitch))

    @cached_property
    def lattice_volume(self) -> Fraction:
        """d-dimensional volume in lattice units, exactly; 0 for a flat hull."""
        return self.span_volume if self.rank == self.dimension else Fraction(0)

    @cached_property
    def span_volume(self) -> Fraction:
        """k-dimensional volume in the lattice coordinates of the span, exactly."""
        return exact_hull.volume(self.body)

    @cached_property
    def second_moment(self) -> FloatArray:
        """E[u uᵀ] (d, d) of u uniform on K, in answer units squared (exact rationals, rounded once at the end)."""
        exact = exact_hull.second_moment(self.body)
        ambient = exact if self.rank == self.dimension else self._ambient(exact)
        steps = np.array([[float(x) for x in row] for row in ambient])
        return np.asarray(steps * np.outer(self.frame.pitch, self.frame.pitch))

    @cached_property
    def mean_square(self) -> float:
        """tr E[u uᵀ] of u uniform on K, in answer units squared: the factor of expected errors."""
        if self.rank == self.dimension == 2 and (planar := exact_hull.planar_sums(self.body)) is not None:
            (xx, _, yy), weight = planar
            a, b = self.frame.pitch.tolist()
            return float((xx * a * a + yy * b * b) / (12 * weight))
        return float(np.trace(self.second_moment))

    @cached_property
    def squared_size(self) -> Fraction:
        """tr E[u uᵀ] in answer units squared, exactly: the criterion of "min-error" protection."""
        exact, basis = exact_hull.second_moment(self.body), self.basis.tolist()
        k = range(self.rank)
        per_axis = [sum((row[p] * exact[p][q] * row[q] for p in k for q in k), Fraction(0)) for row in basis]
        pitches = self.frame.exact_pitch
        return sum((m * p * p for m, p in zip(per_axis, pitches, strict=True)), Fraction(0))

    @cached_property
    def digest(self) -> str:
        """sha256 of everything that decides the body and its units."""
        return digest_of(self.frame.pitch, self.basis, self.coordinates, self.normals, self.offsets)

    def coordinates_of(self, v: IntArray) -> IntArray:
        """Lattice vectors (n, d) of the span in its coordinates (n, k)."""
        if self.rank == self.dimension:
            return v
        columns = [dot(v, row) for row in self.coordinates]
        return np.stack(columns, axis=-1) if columns else np.zeros((len(v), 0), dtype=np.int64)

    def _ambient(self, exact: exact_hull.Moments) -> exact_hull.Moments:
        """Second moments (k, k) of the span as those (d, d) of the lattice around it."""
        basis, k = self.basis.tolist(), range(self.rank)
        return [[sum((a[p] * exact[p][q] * b[q] for p in k for q in k), Fraction(0)) for b in basis] for a in basis]

    def _differences(self, v: ArrayLike) -> FloatArray:
        values = np.asarray(v, dtype=np.float64)
        if values.ndim == 0 and self.dimension == 1:
            values = values[None]
        if values.ndim == 0 or values.shape[-1] != self.dimension:
            raise InvalidInput("v", f"shape {values.shape}", f"(..., {self.dimension})")
        return values

    def __repr__(self) -> str:
        return f"SensitivityHull(d={self.dimension}, rank={self.rank}, facets={2 * len(self.normals)})"


def digest_of(pitch: FloatArray, basis: IntArray, coordinates: IntArray, normals: IntArray, offsets: IntArray) -> str:
    """The SHA-256 (hex) of a hull: pitch (d,), basis (d, k), coordinates (k, d), normals (m, k), offsets (m,)."""
    before = written_span(pitch, basis, coordinates, len(normals))
    return hashlib.sha256(b"".join((before, _written(normals), _written(offsets)))).hexdigest()


def written_span(pitch: FloatArray, basis: IntArray, coordinates: IntArray, facets: int) -> bytes:
    """The first bytes of a hull's digest, before its normals and offsets: sizes, units and span."""
    sizes = f"{basis.shape[0]},{basis.shape[1]},{facets}".encode()
    return b"".join((sizes, _bytes(pitch), _written(basis), _written(coordinates)))


def _written(part: IntArray) -> bytes:
    return _bytes(part) if part.dtype == np.int64 else repr(part.tolist()).encode()


def _bytes(numbers: NDArray[Any]) -> bytes:
    """The same on every machine: the least byte of a number first."""
    return (numbers if sys.byteorder == "little" else numbers.byteswap()).tobytes()


def sensitivity_hull(
    policy: PolicyGraph, answers: StateSpace | ArrayLike, constraint: States | Constraint = None
) -> SensitivityHull:
    """K(G, f): the hull of ± f(s_j) - f(s_k) over the policy edges inside a constraint (Def. 5.1).

    Parameters
    ----------
    policy : PolicyGraph over N states.
    answers : StateSpace, or integers (N, d). Other floats are refused: snap them in a StateSpace first.
    constraint : mask (N,), state numbers, or a Constraint, along whose surrogate map the policy is contracted.

    Raises
    ------
    InvalidInput : answers that are not on a lattice, or of another number of states.
    """
    lattice, frame = lattice_answers(answers)
    check_sizes(policy, lattice)
    within = as_constraint(constraint, policy.n_states)
    return hull_of(PolicyDifferences.of(policy, lattice, within), frame)


def as_constraint(constraint: States | Constraint, n_states: int) -> Constraint:
    """A Constraint as it is; a mask, state numbers or None as one without surrogates."""
    if isinstance(constraint, Constraint):
        return constraint
    return Constraint.of(state_mask(constraint, n_states), n_states)


def check_sizes(policy: PolicyGraph, lattice: IntArray) -> None:
    """The policy and the answers must speak of the same states."""
    if policy.n_states != len(lattice):
        raise InvalidInput("answers", f"{len(lattice)} states", f"the policy's {policy.n_states}")


def hull_of(source: Differences, frame: Lattice) -> SensitivityHull:
    """The hull of any set of differences that can say how far it reaches in a direction.

    Raises InvalidInput where a basis of the span, or a facet, has numbers beyond 64 bits: wide answers in many
    dimensions.
    """
    try:
        return _hull_within_64_bits(source, frame)
    except OverflowError:
        got = f"a hull in {source.dimension} dimensions with numbers beyond 64 bits"
        raise InvalidInput("answers", got, "fewer dimensions, or a coarser pitch") from None


def _hull_within_64_bits(source: Differences, frame: Lattice) -> SensitivityHull:
    d = source.dimension
    polygon = polygon_of(source.few()) if d == 2 else None
    if polygon is not None:
        return SensitivityHull(frame, *whole_span(2), _no_equations(2), Body(*polygon, None, exact=True))
    equations = null_lattice(independent(source), d)
    basis, coordinates = span_lattice(equations, d) if equations else whole_span(d)
    body = _body(source if len(equations) == 0 else _Projected(source, coordinates))
    return SensitivityHull(frame, basis, coordinates, np.array(equations, dtype=np.int64).reshape(-1, d), body)


@cache
def whole_span(d: int) -> tuple[IntArray, IntArray]:
    """Basis and coordinates of a body of full dimension, shared by all of them."""
    identity = np.eye(d, dtype=np.int64)
    identity.setflags(write=False)
    return identity, identity


@cache
def _no_equations(d: int) -> IntArray:
    return np.zeros((0, d), dtype=np.int64)


@dataclass(frozen=True)
class _Projected:
    """A flat set of differences seen in the coordinates of its span."""

    source: Differences
    coordinates: IntArray

    @property
    def dimension(self) -> int:
        return int(self.coordinates.shape[0])

    def extreme(self, direction: IntArray) -> tuple[int, IntArray]:
        value, point = self.source.extreme(dot(self.coordinates.T, direction))
        return value, np.array([int(x) for x in dot(self.coordinates, point)], dtype=np.int64)

    def few(self) -> IntArray | None:
        return None


def _body(source: Differences) -> Body:
    k = source.dimension
    if k == 0:
        return Body(np.zeros((0, 0), np.int64), np.zeros(0, np.int64), np.zeros((1, 0), np.int64), None, exact=True)
    if k == 1:
        width = source.extreme(np.array([1], dtype=np.int64))[0]
        return Body(np.array([[1]]), np.array([width]), np.array([[width], [-width]]), None, exact=True)
    if k == 2:
        return _planar_body(source)
    return spatial_body(source)


def _planar_body(source: Differences) -> Body:
    def support(direction: tuple[int, int]) -> tuple[int, tuple[int, int]]:
        value, point = source.extreme(np.array(direction, dtype=np.int64))
        return value, (int(point[0]), int(point[1]))

    corners, facets = symmetric_polygon(support)
    half = np.array(corners, dtype=np.int64)
    normals = np.array([normal for normal, _ in facets], dtype=np.int64)
    offsets = np.array([offset for _, offset in facets], dtype=np.int64)
    return Body(normals, offsets, np.vstack([half, -half]), None, exact=True)


#: A thickened body is at least this fraction of its largest half-width wide on every axis.
LEAST_RELATIVE_THICKNESS = Fraction(1, 20)


def thicken(source: PolicyDifferences, flat: SensitivityHull) -> SensitivityHull:
    """The hull of the same differences, and of a thickness to both sides along each axis.

    The thickness is the pitch, and at least 5 % of the flat hull's largest half-width.
    """
    pitches = flat.frame.exact_pitch
    widest = max(flat.half_width(row) * pitch for row, pitch in zip(flat.basis, pitches, strict=True))
    least = widest * LEAST_RELATIVE_THICKNESS
    steps = np.array([max(1, ceil(least / pitch)) for pitch in pitches], dtype=np.int64)
    return hull_of(source.with_points(np.diag(steps)), flat.frame)


def l1_sensitivity(
    policy: PolicyGraph, answers: StateSpace | ArrayLike, constraint: States | Constraint = None
) -> float:
    """S_f = max ‖f(s_j) - f(s_k)‖₁ over the policy edges in a constraint (Def. 3.2), in answer units.

    Exact where the pitches are multiples of a common unit (up to 2**24 of it), otherwise above it by a share of at most
    6e-8 times the largest pitch over the least; 0.0 without edges.
    """
    lattice, frame = lattice_answers(answers)
    check_sizes(policy, lattice)
    source = PolicyDifferences.of(policy, lattice, as_constraint(constraint, policy.n_states))
    unit, weights = _integer_weights(frame.exact_pitch)
    signs = itertools.product((1, -1), repeat=len(weights) - 1)
    directions = [np.array([s * w for s, w in zip((1, *sign), weights, strict=True)], dtype=np.int64) for sign in signs]
    return float(unit * max(source.extreme(direction)[0] for direction in directions))


#: Weights up to here fit a 64-bit product with any difference of answers.
_LARGEST_WEIGHT = 2**24


def _integer_weights(pitches: tuple[Fraction, ...]) -> tuple[Fraction, list[int]]:
    """A unit and whole numbers of it for each pitch; rounded up, never down, where no short ones exist."""
    common = math.lcm(*(p.denominator for p in pitches))
    divisor = math.gcd(*(int(p * common) for p in pitches))
    unit = max(Fraction(divisor, common), max(pitches) / _LARGEST_WEIGHT)
    return unit, [math.ceil(p / unit) for p in pitches]


def largest_norm(hull: SensitivityHull, points: IntArray) -> Loss:
    """max ‖p - q‖_K over pairs of lattice points (n, d), exactly: the factor of Theorem 6.3; inf across cosets."""
    if len(hull.equations) and any(_extent(dot(points, equation)) for equation in hull.equations):
        return math.inf
    extents = _extents(hull.coordinates_of(points), hull.normals)
    largest = (0, 1)
    for extent, offset in zip(extents, hull.offsets.tolist(), strict=True):
        if extent * largest[1] > largest[0] * offset:
            largest = (extent, offset)
    return Fraction(*largest)


def _extents(points: IntArray, directions: IntArray) -> list[int]:
    """Largest minus smallest of points·direction for each direction (m, d), exactly."""
    # Coordinates that came from beyond 64 bits are Python integers.
    if points.dtype == np.int64:
        extents: list[int] = _kernels.points.outer_extents(points, directions).tolist()
        if len(extents) == len(directions):
            return extents
    return [_extent(dot(points, direction)) for direction in directions]


def _extent(values: IntArray) -> int:
    """Largest minus smallest, in Python integers: ``np.ptp`` takes none beyond 64 bits."""
    return int(values.max()) - int(values.min())
