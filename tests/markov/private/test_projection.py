"""Noisy counts become probabilities: the nearest point of the simplex, by its definition, on noisy values alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from dphmm.markov.private.projection import dense_rows, nearest_counts, probabilities, row_totals, uniform_rows

ROWS = st.lists(st.lists(st.floats(-50, 50), max_size=6), min_size=1, max_size=5)


def laid_flat(rows):
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return np.array([v for row in rows for v in row]), indptr


def nearest_plainly(row):
    """{max(v - c, 0)} with the c that keeps the sum, found by root finding."""
    row = np.array(row)
    if len(row) == 0 or row.sum() <= 0:
        return np.zeros(len(row))
    c = brentq(lambda c: np.maximum(row - c, 0).sum() - row.sum(), row.min() - row.sum() - 1, row.max(), xtol=1e-13)
    return np.maximum(row - c, 0)


@settings(max_examples=200, deadline=None)
@given(ROWS)
def test_each_row_is_the_nearest_of_its_total(rows):
    values, indptr = laid_flat(rows)
    found = nearest_counts(values, indptr)
    expected = [nearest_plainly(row) for row in rows]
    np.testing.assert_allclose(found, np.concatenate([*expected, []]), atol=1e-9)
    assert (found >= 0).all()


@settings(max_examples=100, deadline=None)
@given(ROWS, st.floats(0, 10), st.floats(0, 10), st.floats(0, 0.5))
def test_rows_sum_to_one_and_stay_above_the_floor(rows, prior, least, floor):
    values, indptr = laid_flat(rows)
    for projection in ("simplex", "clamp"):
        counts = nearest_counts(values, indptr, projection)
        found = probabilities(counts, indptr, uniform_rows(indptr), prior=prior, least=least, floor=floor)
        sizes = np.diff(indptr)
        np.testing.assert_allclose(row_totals(found, indptr)[sizes > 0], 1.0)
        assert (found >= floor / np.repeat(np.maximum(sizes, 1), sizes) - 1e-15).all()


def test_rows_of_too_little_noisy_mass_fall_back():
    indptr = dense_rows(3, 2)
    fallback = np.array([0.9, 0.1] * 3)
    counts = np.array([5.0, 5.0, 0.5, 0.5, 0.0, 0.0])
    found = probabilities(counts, indptr, fallback, least=2.0).reshape(3, 2)
    np.testing.assert_allclose(found, [[0.5, 0.5], [0.9, 0.1], [0.9, 0.1]])


def test_the_prior_weighs_as_many_counts():
    found = probabilities(np.array([6.0, 0.0]), np.array([0, 2]), np.array([0.5, 0.5]), prior=2.0)
    np.testing.assert_allclose(found, [7 / 8, 1 / 8])


@pytest.mark.parametrize("projection", ["simplex", "clamp"])
def test_exact_counts_stay(projection):
    counts = np.array([3.0, 0.0, 1.0, 2.0])
    np.testing.assert_allclose(nearest_counts(counts, dense_rows(2, 2), projection), counts)
