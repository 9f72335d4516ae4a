"""The door from counts to noisy tables keeps every sum in range and picks its grid from the noise alone.

Noisy counts become probabilities: the nearest point of the simplex, by its definition, on noisy values alone.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from dphmm.errors import InvalidInput
from dphmm.markov.private import release as door
from dphmm.markov.private.release import (
    FINEST_GRID,
    grid_bits,
    nearest_counts,
    noise_for,
    probabilities,
    release,
    row_totals,
)
from dphmm.samplers.entropy import ReplayBits


def test_sums_out_of_range_are_kept_in_it_before_the_noise():
    """So that keeping the noise within 2**62 changes no published number; values are compared with the same noise."""
    part = noise_for("counts", "laplace", Fraction(10), Fraction(1))
    far = release(np.array([-(2**60), 2**60, 5]), part, 0, ReplayBits(1))
    near = release(np.array([0, 2**53, 5]), part, 0, ReplayBits(1))
    np.testing.assert_array_equal(far.values, near.values)
    assert np.abs(far.values - [0, 2**53, 5]).max() < 1000


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_the_grid_is_as_fine_as_the_noise_allows(noise):
    narrow = noise_for("counts", noise, Fraction(10), Fraction(1))
    assert grid_bits(narrow) == FINEST_GRID
    budget = Fraction(1, 2**25) if noise == "laplace" else Fraction(1, 2**70)
    wide = noise_for("counts", noise, Fraction(2**15), budget)
    assert 0 <= grid_bits(wide) < FINEST_GRID
    release(np.zeros(3, np.int64), wide, grid_bits(wide), ReplayBits(1))
    with pytest.raises(InvalidInput, match="epsilon: got noise of more than"):
        noise_for("counts", noise, Fraction(2**40), Fraction(1, 2**90))


def test_the_law_is_made_from_the_part(monkeypatch):
    asked = []
    monkeypatch.setattr(door, "LaplaceSampler", lambda scale: asked.append(scale) or RuntimeError)
    with pytest.raises(AttributeError):
        release(np.zeros(2, np.int64), noise_for("counts", "laplace", Fraction(7), Fraction(1, 3)), 4, ReplayBits(1))
    assert asked == [21 * 16]


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


@settings(max_examples=200)
@given(ROWS)
def test_each_row_is_the_nearest_of_its_total(rows):
    values, indptr = laid_flat(rows)
    found = nearest_counts(values, indptr)
    expected = [nearest_plainly(row) for row in rows]
    np.testing.assert_allclose(found, np.concatenate([*expected, []]), atol=1e-9)
    assert (found >= 0).all()


@given(ROWS, st.floats(0, 10), st.floats(0, 10), st.floats(0, 0.5))
def test_rows_sum_to_one_and_stay_above_the_floor(rows, prior, least, floor):
    values, indptr = laid_flat(rows)
    even = 1.0 / np.repeat(np.maximum(np.diff(indptr), 1), np.diff(indptr))
    for projection in ("simplex", "clamp"):
        counts = nearest_counts(values, indptr, projection)
        found = probabilities(counts, indptr, even, prior=prior, least=least, floor=floor)
        sizes = np.diff(indptr)
        np.testing.assert_allclose(row_totals(found, indptr)[sizes > 0], 1.0)
        assert (found >= floor / np.repeat(np.maximum(sizes, 1), sizes) - 1e-15).all()


def test_rows_of_too_little_noisy_mass_fall_back():
    indptr = np.array([0, 2, 4, 6])
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
    np.testing.assert_allclose(nearest_counts(counts, np.array([0, 2, 4]), projection), counts)
