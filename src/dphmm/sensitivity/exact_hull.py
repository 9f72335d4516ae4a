"""The exact hull of a symmetric set of integer differences, its volume and moments, and the integer algebra for both.

A hull needs nothing of a policy but the largest difference of answers in a direction, exactly. So no policy is ever
expanded into edges (docs/theory.md (h): conv(A - A) = conv A - conv A).

A planar one comes from a few points, or from its support function alone. Asked, each edge of the polygon is confirmed
by asking for the largest difference along its own outward normal; a larger one becomes a vertex and splits the edge. So
every facet that comes out has been certified against all differences.

In three and more dimensions Qhull proposes directions, and exact integers decide. A facet is an integer normal and the
exact largest difference along it, so the body always contains every difference, whatever Qhull did (on nearly flat
input its own hull missed points by up to 4 %, the joggled one by up to 22 %). Above six dimensions a hull with many
facets is replaced by a body with few that is larger, never smaller.

Volume and second moment of a body, exactly, and how far it reaches.

Sums over the simplices that its corners make with the centre. Over a simplex (0, v_1..v_k): E[u uᵀ] = (sum v_i v_iᵀ + t
tᵀ) / ((k+1)(k+2)), t = sum v_i, with weight |det| / k! (docs/theory.md F3; equal to the planar fan formula for k = 2).

The reach of a body in a direction is a bound that is proved and not computed in floats.

Proofs: docs/proofs/hull.md, docs/proofs/protection.md, docs/proofs/sampling.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import factorial, gcd, prod
from operator import mul
from typing import Any, Protocol

import numpy as np

from dphmm import _kernels
from dphmm._cached import cached_property
from dphmm.errors import InvalidInput
from dphmm.policy._points import CHAIN_SPAN
from dphmm.policy.constraint import Constraint
from dphmm.policy.graph import PolicyGraph
from dphmm.types import FloatArray, IntArray

Matrix = list[list[int]]


def identity(d: int) -> Matrix:
    return [[int(i == j) for j in range(d)] for i in range(d)]


def column_hermite(rows: Sequence[Sequence[int]], d: int) -> tuple[Matrix, Matrix, int]:
    """Unimodular U (d, d), its inverse, and the rank r, such that only the first r columns of rows·U are non-zero."""
    work = [list(map(int, row)) for row in rows]
    u, inverse, rank = identity(d), identity(d), 0
    for row in work:
        while True:
            nonzero = [j for j in range(rank, d) if row[j]]
            if len(nonzero) <= 1:
                break
            pivot = min(nonzero, key=lambda j: abs(row[j]))
            for j in nonzero:
                if j != pivot:
                    _add_column(work, u, inverse, j, pivot, -(row[j] // row[pivot]))
        if nonzero:
            _swap_columns(work, u, inverse, rank, nonzero[0])
            rank += 1
    return u, inverse, rank


def _add_column(work: Matrix, u: Matrix, inverse: Matrix, j: int, pivot: int, q: int) -> None:
    for matrix in (work, u):
        for row in matrix:
            row[j] += q * row[pivot]
    inverse[pivot] = [a - q * b for a, b in zip(inverse[pivot], inverse[j], strict=True)]


def _swap_columns(work: Matrix, u: Matrix, inverse: Matrix, i: int, j: int) -> None:
    for matrix in (work, u):
        for row in matrix:
            row[i], row[j] = row[j], row[i]
    inverse[i], inverse[j] = inverse[j], inverse[i]


def null_lattice(rows: Sequence[Sequence[int]], d: int) -> Matrix:
    """A basis, as rows, of the integer vectors orthogonal to all ``rows``."""
    u, _, rank = column_hermite(rows, d)
    return [[u[i][j] for i in range(d)] for j in range(rank, d)]


def span_lattice(equations: Sequence[Sequence[int]], d: int) -> tuple[IntArray, IntArray]:
    """A primitive basis (d, k) of {x in Z^d : equations·x = 0}, and an integer left inverse (k, d) of it."""
    u, inverse, rank = column_hermite(equations, d)
    basis = np.array([row[rank:] for row in u], dtype=np.int64).reshape(d, d - rank)
    return basis, np.array(inverse[rank:], dtype=np.int64).reshape(d - rank, d)


def solve(columns: Sequence[Sequence[int]], target: Sequence[int]) -> list[Fraction] | None:
    """The exact x with sum x_i columns_i = target for a square system, or None when it is singular."""
    k = len(target)
    work = [[Fraction(int(c[i])) for c in columns] + [Fraction(int(target[i]))] for i in range(k)]
    for i in range(k):
        pivot = next((r for r in range(i, k) if work[r][i]), None)
        if pivot is None:
            return None
        work[i], work[pivot] = work[pivot], work[i]
        lead = work[i][i]
        work[i] = [x / lead for x in work[i]]
        for r in range(k):
            if r != i and work[r][i]:
                factor = work[r][i]
                work[r] = [a - factor * b for a, b in zip(work[r], work[i], strict=True)]
    return [row[k] for row in work]


def determinant(rows: Sequence[Sequence[int]]) -> int:
    """The determinant of a square integer matrix (Bareiss: every division is exact)."""
    work, sign, previous = [list(map(int, row)) for row in rows], 1, 1
    n = len(work)
    for i in range(n - 1):
        pivot = next((r for r in range(i, n) if work[r][i]), None)
        if pivot is None:
            return 0
        if pivot != i:
            work[i], work[pivot], sign = work[pivot], work[i], -sign
        for r in range(i + 1, n):
            for c in range(i + 1, n):
                work[r][c] = (work[r][c] * work[i][i] - work[r][i] * work[i][c]) // previous
        previous = work[i][i]
    return sign * work[-1][-1] if n else 1


def determinants(matrices: IntArray) -> list[int]:
    """The determinants of square integer matrices (n, k, k): rounded floats where these are surely right.

    Gaussian elimination with partial pivots is exact for a matrix that differs by at most k u 2^(k-1) R in each of k
    entries of a row, R the longest row and u = 2**-53 (Wilkinson). That moves a determinant by less than 1/4 here.
    """
    k = matrices.shape[-1]
    longest = float(np.linalg.norm(matrices.astype(np.float64), axis=2).max(initial=1.0))
    if k**3.5 * 2.0 ** (k - 1) * 2.0**-53 * longest**k < 0.25:
        return [int(x) for x in np.rint(np.linalg.det(matrices.astype(np.float64)))]
    return [determinant(matrix) for matrix in matrices.tolist()]


def primitive(vector: Sequence[int]) -> list[int]:
    """The shortest integer vector in the same direction."""
    divisor = gcd(*map(int, vector))
    return [int(x) // divisor for x in vector] if divisor else [0] * len(vector)


class Differences(Protocol):
    """A finite symmetric set of integer difference vectors, known by its support function."""

    @property
    def dimension(self) -> int: ...

    def extreme(self, direction: IntArray) -> tuple[int, IntArray]:
        """The largest ``direction``·difference and a difference that attains it; (0, zeros) for the empty set."""
        ...

    def few(self) -> IntArray | None:
        """Rows (m, d) with the same hull as the whole set, one of each ± pair, where they are known."""
        ...


@dataclass(frozen=True)
class PointDifferences:
    """± the rows of ``points`` (m, d)."""

    points: IntArray

    @property
    def dimension(self) -> int:
        return int(self.points.shape[1])

    def extreme(self, direction: IntArray) -> tuple[int, IntArray]:
        if len(self.points) == 0:
            return 0, np.zeros(self.dimension, dtype=np.int64)
        values = dot(self.points, direction)
        at = int(np.argmax(np.abs(values)))
        value = int(values[at])
        return abs(value), self.points[at] if value >= 0 else -self.points[at]

    def few(self) -> IntArray | None:
        return self.points


@dataclass(frozen=True)
class _Edges:
    """± the answer differences along the edges of a policy in force under a constraint.

    ``lattice`` (N, d) holds the answers in lattice steps; only their differences count.
    """

    policy: PolicyGraph
    lattice: IntArray
    constraint: Constraint

    def extreme(self, direction: IntArray) -> tuple[int, IntArray]:
        if self.few is not None:
            return self.few.extreme(direction)
        return self.policy.extreme_difference(direction, self._centred, self.constraint)

    @cached_property
    def _centred(self) -> IntArray:
        return self.lattice - _kernels.points.bounds(self.lattice)[0]

    @cached_property
    def few(self) -> PointDifferences | None:
        """A few of them with the same hull, where the policy can tell."""
        rows = self.policy.hull_candidates(self.lattice, self.constraint)
        return None if rows is None else PointDifferences(rows)


@dataclass(frozen=True)
class PolicyDifferences:
    """± the answer differences along the edges of a policy in force under a constraint, and extra differences."""

    edges: _Edges
    extra: PointDifferences

    @classmethod
    def of(cls, policy: PolicyGraph, lattice: IntArray, constraint: Constraint) -> PolicyDifferences:
        none = np.zeros((0, lattice.shape[1]), dtype=np.int64)
        return cls(_Edges(policy, lattice, constraint), PointDifferences(none))

    @property
    def dimension(self) -> int:
        return int(self.edges.lattice.shape[1])

    def extreme(self, direction: IntArray) -> tuple[int, IntArray]:
        of_policy = self.edges.extreme(direction)
        of_extra = self.extra.extreme(direction)
        return of_policy if of_policy[0] >= of_extra[0] else of_extra

    def few(self) -> IntArray | None:
        """Rows (m, d) with the same hull as the whole set, one of each ± pair, where they are known."""
        few = self.edges.few
        if few is None or len(self.extra.points) == 0:
            return None if few is None else few.points
        return np.vstack([few.points, self.extra.points])

    def with_points(self, points: IntArray) -> PolicyDifferences:
        """The same set and ± more rows."""
        return replace(self, extra=PointDifferences(np.vstack([self.extra.points, points])))


def independent(source: Differences) -> list[list[int]]:
    """As many independent differences as the set has: found by asking, so the rank is never a matter of tolerance."""
    basis: list[list[int]] = []
    while True:
        for orthogonal in null_lattice(basis, source.dimension):
            value, point = source.extreme(np.array(orthogonal, dtype=np.int64))
            if value:
                basis.append([int(x) for x in point])
                break
        else:
            return basis


def dot(points: IntArray, direction: IntArray | Sequence[int]) -> IntArray:
    """points·direction, exactly: in 64 bits where they suffice, in Python integers where not."""
    if len(points) == 0:
        return np.zeros(0, dtype=np.int64)
    bound = int(np.abs(points).max()) * sum(abs(int(x)) for x in direction)
    if bound < 2**62:
        return points @ direction
    exact: IntArray = points.astype(object) @ np.array([int(x) for x in direction], dtype=object)
    return exact


#: Support function in plane coordinates: direction -> (value, a point attaining it).
PlaneSupport = Callable[[tuple[int, int]], tuple[int, tuple[int, int]]]
Point = tuple[int, int]


def polygon_of(points: IntArray | None) -> tuple[IntArray, IntArray, IntArray] | None:
    """Normals and offsets of half the facets, and all vertices (counter-clockwise), of the hull of ± points (m, 2).

    None where there are no points, where they lie on a line, or where products would pass 64 bits.
    """
    if points is None or len(points) < 2:
        return None
    normals, offsets, vertices = _kernels.points.polygon_around(points, CHAIN_SPAN // 2)
    return (normals, offsets, vertices) if len(normals) else None


def symmetric_polygon(support: PlaneSupport) -> tuple[list[Point], list[tuple[Point, int]]]:
    """Vertices of half the boundary (counter-clockwise, without their negatives) and its facets (normal, offset).

    The set must span the plane. A facet says normal·y <= offset; its mirror image is implied.
    """
    right = support((1, 0))[1]
    corners = [right, *_between(right, (-right[0], -right[1]), support)]
    corners = _without_flat_corners(corners)
    facets = []
    for i, corner in enumerate(corners):
        following = corners[i + 1] if i + 1 < len(corners) else (-corners[0][0], -corners[0][1])
        normal = _outward(corner, following)
        facets.append((normal, normal[0] * corner[0] + normal[1] * corner[1]))
    return corners, facets


def _between(start: Point, end: Point, support: PlaneSupport) -> list[Point]:
    """The corners strictly between two boundary points, counter-clockwise."""
    corners: list[Point] = []
    pending = [(start, end)]
    while pending:
        p, q = pending.pop()
        normal = _outward(p, q)
        value, point = support(normal)
        if value == normal[0] * p[0] + normal[1] * p[1]:
            if q != end:
                corners.append(q)
            continue
        pending.append((point, q))
        pending.append((p, point))
    return corners


def _outward(p: Point, q: Point) -> Point:
    x, y = q[1] - p[1], p[0] - q[0]
    divisor = gcd(x, y)
    return x // divisor, y // divisor


def _without_flat_corners(corners: list[Point]) -> list[Point]:
    """Drop points inside an edge; the half boundary is closed by the negative of its first corner."""
    sharp = []
    n = len(corners)
    for i, corner in enumerate(corners):
        before = corners[i - 1] if i else (-corners[-1][0], -corners[-1][1])
        after = corners[i + 1] if i + 1 < n else (-corners[0][0], -corners[0][1])
        turn = (corner[0] - before[0]) * (after[1] - corner[1]) - (corner[1] - before[1]) * (after[0] - corner[0])
        if turn != 0:
            sharp.append(corner)
    return sharp


MOST_DIMENSIONS_OF_A_HULL = 6
#: In more dimensions Qhull is asked about so many points, and a hull is used if it has at most so many pairs of facets.
_MOST_POINTS, _MOST_FACETS = {7: 80, 8: 72}, 1_500
#: Cofactors up to here stay exact normals; longer ones are rounded to this length.
_LONGEST_NORMAL = 2**26
_MOST_ROUNDS = 40


@dataclass(frozen=True)
class Body:
    """{y : |normals·y| <= offsets} in k coordinates, with the vertices and boundary simplices of the hull inside it.

    ``exact`` says that the two are the same; ``vertices`` is None for a body of few facets.
    """

    normals: IntArray
    offsets: IntArray
    vertices: IntArray | None
    simplices: IntArray | None
    exact: bool


def spatial_body(source: Differences) -> Body:
    """The certified body of a symmetric set of differences that spans its k >= 3 dimensions."""
    from scipy.spatial import QhullError

    try:
        return _qhull_body(source) or _few_facets(source)
    except QhullError:
        return _few_facets(source)


def _few_facets(source: Differences) -> Body:
    directions = _template(source.dimension)
    offsets = [source.extreme(direction)[0] for direction in directions]
    return Body(directions, np.array(offsets, dtype=np.int64), None, None, exact=False)


def _template(k: int) -> IntArray:
    """Axes and diagonals of two axes; one of each ± pair."""
    rows = [np.eye(k, dtype=np.int64)[i] for i in range(k)]
    for i, j in itertools.combinations(range(k), 2):
        for sign in (1, -1):
            row = np.zeros(k, dtype=np.int64)
            row[i], row[j] = 1, sign
            rows.append(row)
    return np.array(rows)


def _qhull_body(source: Differences) -> Body | None:
    """The body that Qhull proposes; None where its facets do not span the space, or would be too many."""
    from scipy.spatial import ConvexHull

    many = source.dimension > MOST_DIMENSIONS_OF_A_HULL
    points = {tuple(map(int, source.extreme(direction)[1])) for direction in _template(source.dimension)}
    points |= {tuple(point) for point in independent(source)}
    facets: dict[tuple[int, ...], int] = {}
    for _ in range(_MOST_ROUNDS):
        cloud = _symmetric(points)
        if many and len(cloud) > _MOST_POINTS.get(source.dimension, 0):
            return None
        hull = ConvexHull(cloud)
        if many and len(np.unique(hull.equations, axis=0)) > 2 * _MOST_FACETS:
            return None
        proposed, exact = _proposals(hull, cloud)
        extremes: set[tuple[int, ...]] = set()
        for normal in proposed - facets.keys():
            value, point = source.extreme(np.array(normal, dtype=np.int64))
            facets[normal] = value
            extremes.add(tuple(map(int, point)))
        fresh = {p for p in extremes if p not in points and tuple(-x for x in p) not in points}
        if not fresh:
            break
        points |= fresh
    normals = np.array(sorted(proposed), dtype=np.int64)
    offsets = np.array([facets[tuple(map(int, row))] for row in normals], dtype=np.int64)
    if np.linalg.matrix_rank(normals) < source.dimension:
        return None
    tight = exact and bool(np.all(_reached(cloud, normals) == offsets))
    corners = np.unique(hull.simplices)
    renumber = np.full(len(cloud), -1, dtype=np.int64)
    renumber[corners] = np.arange(len(corners))
    return Body(normals, offsets, cloud[corners], renumber[hull.simplices], exact=tight)


def _symmetric(points: set[tuple[int, ...]]) -> IntArray:
    half = np.array(sorted(points), dtype=np.int64)
    return np.unique(np.vstack([half, -half]), axis=0)


def _reached(cloud: IntArray, normals: IntArray) -> IntArray:
    exact = cloud.astype(object) @ normals.T.astype(object)
    reached: IntArray = exact.max(axis=0).astype(np.int64)
    return reached


def _proposals(hull: Any, cloud: IntArray) -> tuple[set[tuple[int, ...]], bool]:
    """Integer normals (one of each ± pair) of a float hull of ``cloud``, and whether all are exact.

    Simplices of one float plane are one facet if one exact normal is constant on all their corners. Flat simplices,
    into which Qhull cuts a facet of more than k corners, then need no normal of their own.
    """
    exact = _cofactor_normals(cloud, hull.simplices)
    planes = _planes(hull.equations)
    normals = [next((exact[i] for i in members if exact[i] is not None), None) for members in planes]
    if all(
        normal is not None and len(set(dot(cloud[np.unique(hull.simplices[members])], normal).tolist())) == 1
        for normal, members in zip(normals, planes, strict=True)
    ):
        return {normal for normal in normals if normal is not None}, True
    rounded = ([round(float(x) * _LONGEST_NORMAL) for x in equation[:-1]] for equation in hull.equations)
    return {a or _leading_positive(primitive(b)) for a, b in zip(exact, rounded, strict=True)}, None not in exact


def _planes(equations: FloatArray) -> list[IntArray]:
    """The simplices of each plane."""
    _, plane = np.unique(equations, axis=0, return_inverse=True)
    order = np.argsort(plane, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(plane[order])) + 1)


def _cofactor_normals(cloud: IntArray, simplices: IntArray) -> list[tuple[int, ...] | None]:
    """The exact normal through the k corners of each simplex; None where they are dependent or the normal is long."""
    edges = cloud[simplices[:, 1:]] - cloud[simplices[:, :1]]
    k = cloud.shape[1]
    minors = [determinants(np.delete(edges, j, axis=2)) for j in range(k)]
    normals = (primitive([(-1) ** j * minor for j, minor in enumerate(row)]) for row in zip(*minors, strict=True))
    return [_leading_positive(n) if 0 < max(map(abs, n)) <= _LONGEST_NORMAL else None for n in normals]


def _leading_positive(vector: list[int]) -> tuple[int, ...]:
    first = next(x for x in vector if x)
    return tuple(vector) if first > 0 else tuple(-x for x in vector)


Moments = list[list[Fraction]]
#: Corners nearer than this have every sum of a planar body within 2**62.
PLANAR_SPAN = 2**14


def volume(body: Body) -> Fraction:
    """k-dimensional volume in lattice units of the span; for a body known by facets, that of the box around it."""
    k = body.normals.shape[1]
    if body.vertices is None:
        return Fraction(prod(2 * w for w in _box_widths(body)))
    if k == 2 and (planar := planar_sums(body)) is not None:
        return Fraction(planar[1], 2)
    total = sum(map(abs, determinants(_fan(body))))
    return Fraction(total, factorial(k))


def second_moment(body: Body) -> Moments:
    """E[u uᵀ] (k, k) of u uniform on the hull of the corners; on the box around a body known by facets alone."""
    k = body.normals.shape[1]
    if body.vertices is None:
        widths = _box_widths(body)
        return [[Fraction(w * w, 3) if i == j else Fraction(0) for j in range(k)] for i, w in enumerate(widths)]
    planar = planar_sums(body) if k == 2 else None
    if planar is not None:
        (xx, xy, yy), weight = planar
        total = [[xx, xy], [xy, yy]]
    else:
        total, weight = _sums(body)
    if weight == 0:
        return [[Fraction(0)] * k for _ in range(k)]
    return [[Fraction(x, (k + 1) * (k + 2) * weight) for x in row] for row in total]


def planar_sums(body: Body) -> tuple[tuple[int, int, int], int] | None:
    """For a planar body: sum w·(a aᵀ + b bᵀ + t tᵀ) as xx, xy, yy, and sum w = twice its area; None beyond 64 bits."""
    if body.vertices is None or body.vertices.dtype != np.int64:
        return None
    weight, xx, xy, yy = _kernels.points.fan_sums(body.vertices, PLANAR_SPAN)
    return None if weight < 0 else ((xx, xy, yy), weight)


def _sums(body: Body) -> tuple[list[list[int]], int]:
    """Over the simplices, sum w·(sum v_i v_iᵀ + t tᵀ) and sum w, w = |det|."""
    fan, k = _fan(body), body.normals.shape[1]
    weights = np.array([abs(w) for w in determinants(fan)], dtype=object)
    rows = fan.astype(object)
    rows = np.concatenate([rows, rows.sum(axis=1, keepdims=True)], axis=1)
    total = (rows * weights[:, None, None]).reshape(-1, k).T @ rows.reshape(-1, k)
    return [[int(x) for x in row] for row in total], int(weights.sum())


def _fan(body: Body) -> IntArray:
    """The boundary simplices (n, k, k), each as k corners; with the centre they fill the body."""
    k, vertices = body.normals.shape[1], np.asarray(body.vertices)
    if k == 0:
        return np.zeros((0, 0, 0), dtype=np.int64)
    if k == 1:
        return vertices.reshape(2, 1, 1)
    if k == 2:
        return np.stack([vertices, np.roll(vertices, -1, axis=0)], axis=1)
    if body.simplices is None:
        raise InvalidInput("body", "corners without simplices", "both")
    fan: IntArray = vertices[body.simplices]
    return fan


def _box_widths(body: Body) -> list[int]:
    axes = np.abs(body.normals).sum(axis=1) == 1
    order = np.argmax(np.abs(body.normals[axes]), axis=1)
    return [int(b) for b in body.offsets[axes][np.argsort(order)]]


def certified_width(body: Body, direction: list[int]) -> Fraction:
    """max |c·y| over the body, or a bound just above it.

    In one and two dimensions the corners decide. In more, c is written exactly as a sum of k facet normals
    λ_i n_i; then |c·y| <= sum |λ_i| b_i for every y of the body, whatever choice of facets a float program suggested.
    """
    k = len(direction)
    if not any(direction):
        return Fraction(0)
    if k == 2 and body.vertices is not None:
        a, b = direction
        return Fraction(max([abs(a * x + b * y) for x, y in body.vertices.tolist()]))
    if k == 1 and body.vertices is not None:
        return Fraction(max(abs(sum(map(mul, direction, corner))) for corner in body.vertices.tolist()))
    bounds = []
    for facets in _suggestions(body, np.array(direction, dtype=np.float64)):
        weights = solve([body.normals[i].tolist() for i in facets], direction)
        if weights is not None:
            terms = [abs(w) * int(body.offsets[i]) for w, i in zip(weights, facets, strict=True)]
            bounds.append(sum(terms, Fraction(0)))
    return min(bounds)


def _suggestions(body: Body, direction: FloatArray) -> list[tuple[int, ...]]:
    """Sets of k facets, best first: those active at a float optimum, then any independent ones."""
    from scipy.optimize import linprog

    k = len(direction)
    # In coordinates where the facets are round: HiGHS gives up on thin and slanted bodies (rank 3 and more).
    scaled, change = np.linalg.qr(body.normals / body.offsets[:, None])
    objective = np.linalg.solve(change.T, direction)
    objective /= np.abs(objective).max()
    sides, limits = np.vstack([scaled, -scaled]), np.full(2 * len(scaled), np.abs(scaled).max())
    optimum = linprog(-objective, A_ub=sides, b_ub=limits, bounds=[(None, None)] * k, method="highs")
    order = np.argsort(optimum.ineqlin.marginals + 1e-12 * optimum.ineqlin.residual, kind="stable")
    ranked = list(dict.fromkeys(int(i) % len(scaled) for i in order))
    active = list(itertools.islice(itertools.combinations(ranked[: k + 3], k), 40))
    return [*active, _independent(body, ranked)]


def _independent(body: Body, ranked: list[int]) -> tuple[int, ...]:
    """The first k facets in the given order whose normals are linearly independent, decided exactly."""
    from dphmm.sensitivity.exact_hull import column_hermite

    chosen: list[int] = []
    rows: list[list[int]] = []
    k = body.normals.shape[1]
    for i in ranked:
        candidate = [*rows, body.normals[i].tolist()]
        if column_hermite(candidate, k)[2] > len(rows):
            rows, chosen = candidate, [*chosen, i]
        if len(chosen) == k:
            break
    return tuple(chosen)
