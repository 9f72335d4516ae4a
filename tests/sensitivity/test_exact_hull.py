"""What Qhull says is a proposal: it is never told to joggle, and a hull that was joggled all the same covers
everything.

Claims. No call of SciPy's hulls in the library passes options: `QJ` moves the input, and its hull then misses points
(in measurements by up to a fifth on nearly collinear ones). Beyond that, a body of three and more dimensions contains
every difference even when Qhull joggles behind its back, because each facet is placed by exact integers afterwards.

Exact integer linear algebra.
"""

from __future__ import annotations

import ast
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import scipy.spatial
from hypothesis import given
from hypothesis import strategies as st

import dphmm
from dphmm.sensitivity import exact_hull

SOURCE = Path(dphmm.__file__).parent
HULLS = {"ConvexHull", "HalfspaceIntersection", "Delaunay", "Voronoi"}


def calls_with_options(text: str) -> list[int]:
    """Lines that call a hull of SciPy with more than its points."""
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = [(call, getattr(call.func, "id", getattr(call.func, "attr", ""))) for call in calls]
    return [call.lineno for call, name in named if name in HULLS and (call.keywords or len(call.args) != 1)]


def test_qhull_is_never_told_to_joggle():
    sources = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in SOURCE.rglob("*.py")}
    assert {
        name for name, text in sources.items() if any(hull in text for hull in HULLS) and calls_with_options(text)
    } == set()
    assert {name for name, text in sources.items() if "ConvexHull(" in text} == {
        # Draws outlines, decides nothing.
        "plot/_bodies.py",
        "policy/_points.py",
        "sensitivity/exact_hull.py",
    }


@pytest.mark.parametrize("call", ['ConvexHull(x, qhull_options="QJ")', "scipy.spatial.ConvexHull(x, True)"])
def test_an_option_is_found(call):
    assert calls_with_options(call) == [1]


@pytest.mark.parametrize("d", [3, 4])
@pytest.mark.parametrize("seed", range(6))
def test_a_joggled_proposal_still_covers_every_difference(d, seed, monkeypatch):
    told = []
    plain = scipy.spatial.ConvexHull

    def joggled(points, **options):
        told.append(options)
        return plain(points, qhull_options="QJ")

    monkeypatch.setattr(scipy.spatial, "ConvexHull", joggled)
    rng = np.random.default_rng(seed)
    answers = rng.integers(-(10**6), 10**6, (9, 1)) * rng.integers(1, 5, d) + rng.integers(-1, 2, (9, d))
    hull = dphmm.sensitivity.sensitivity_hull(dphmm.policy.complete(9), answers)
    assert told
    assert hull.rank == d
    assert hull.certify((answers[:, None] - answers[None]).reshape(-1, d))


rows = st.integers(1, 4).flatmap(
    lambda d: st.tuples(st.just(d), st.lists(st.lists(st.integers(-20, 20), min_size=d, max_size=d), max_size=4))
)


@given(rows)
def test_column_hermite_is_unimodular_and_reveals_the_rank(case):
    d, matrix = case
    u, inverse, rank = exact_hull.column_hermite(matrix, d)
    assert np.array_equal(np.array(u, dtype=object) @ np.array(inverse, dtype=object), np.eye(d, dtype=object))
    if matrix:
        product = np.array(matrix, dtype=object) @ np.array(u, dtype=object)
        assert not product[:, rank:].any()
        assert np.linalg.matrix_rank(np.array(matrix, dtype=float)) == rank


@given(rows)
def test_span_lattice_is_primitive(case):
    """basis·(left inverse·x) = x for every integer x that the equations allow."""
    d, equations = case
    basis, coordinates = exact_hull.span_lattice(equations, d)
    assert np.array_equal(coordinates @ basis, np.eye(basis.shape[1], dtype=int))
    for x in exact_hull.null_lattice(equations, d):
        assert np.array_equal(basis @ (coordinates @ np.array(x)), x)


@given(
    st.integers(1, 4).flatmap(
        lambda k: st.lists(st.lists(st.integers(-9, 9), min_size=k, max_size=k), min_size=k, max_size=k)
    )
)
def test_determinant_and_solve(matrix):
    k = len(matrix)
    value = exact_hull.determinant(matrix)
    assert abs(value - np.linalg.det(np.array(matrix, dtype=float))) < 1e-6 * max(1, abs(value))
    target = list(range(1, k + 1))
    x = exact_hull.solve(matrix, target)
    assert (x is None) == (value == 0)
    if x is not None:
        for i in range(k):
            assert sum((x[j] * matrix[j][i] for j in range(k)), Fraction(0)) == target[i]


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("longest", [3, 10**3, 10**6, 10**9])
def test_many_determinants_are_each_by_itself(k, longest):
    """Rounded floats where their error is bounded, integers elsewhere: equal numbers, singular matrices among them."""
    rng = np.random.default_rng(k)
    matrices = rng.integers(-longest, longest + 1, (60, k, k))
    if k > 1:
        matrices[:20, 0] = matrices[:20, 1] * 2
        matrices[20:40, 0] = matrices[20:40, 1] + (rng.random((20, k)) < 0.5)
    assert exact_hull.determinants(matrices) == [exact_hull.determinant(matrix) for matrix in matrices.tolist()]
    assert exact_hull.determinants(matrices[:0]) == []
