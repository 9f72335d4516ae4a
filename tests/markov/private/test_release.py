"""The door from counts to noisy tables keeps every sum in range and picks its grid from the noise alone."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dphmm.errors import InvalidInput
from dphmm.markov.private import release as door
from dphmm.markov.private.release import FINEST_GRID, grid_bits, noise_for, release
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
    monkeypatch.setattr(door, "DiscreteLaplace", lambda scale: asked.append(scale) or RuntimeError)
    with pytest.raises(AttributeError):
        release(np.zeros(2, np.int64), noise_for("counts", "laplace", Fraction(7), Fraction(1, 3)), 4, ReplayBits(1))
    assert asked == [21 * 16]
