"""Exact integer linear algebra."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dphmm.sensitivity import integers

rows = st.integers(1, 4).flatmap(
    lambda d: st.tuples(st.just(d), st.lists(st.lists(st.integers(-20, 20), min_size=d, max_size=d), max_size=4))
)


@given(rows)
def test_column_hermite_is_unimodular_and_reveals_the_rank(case):
    d, matrix = case
    u, inverse, rank = integers.column_hermite(matrix, d)
    assert np.array_equal(np.array(u, dtype=object) @ np.array(inverse, dtype=object), np.eye(d, dtype=object))
    if matrix:
        product = np.array(matrix, dtype=object) @ np.array(u, dtype=object)
        assert not product[:, rank:].any()
        assert np.linalg.matrix_rank(np.array(matrix, dtype=float)) == rank


@given(rows)
def test_span_lattice_is_primitive(case):
    """basis·(left inverse·x) = x for every integer x that the equations allow."""
    d, equations = case
    basis, coordinates = integers.span_lattice(equations, d)
    assert np.array_equal(coordinates @ basis, np.eye(basis.shape[1], dtype=int))
    for x in integers.null_lattice(equations, d):
        assert np.array_equal(basis @ (coordinates @ np.array(x)), x)


@given(
    st.integers(1, 4).flatmap(
        lambda k: st.lists(st.lists(st.integers(-9, 9), min_size=k, max_size=k), min_size=k, max_size=k)
    )
)
def test_determinant_and_solve(matrix):
    k = len(matrix)
    value = integers.determinant(matrix)
    assert abs(value - np.linalg.det(np.array(matrix, dtype=float))) < 1e-6 * max(1, abs(value))
    target = list(range(1, k + 1))
    x = integers.solve(matrix, target)
    assert (x is None) == (value == 0)
    if x is not None:
        for i in range(k):
            assert sum((x[j] * matrix[j][i] for j in range(k)), Fraction(0)) == target[i]
