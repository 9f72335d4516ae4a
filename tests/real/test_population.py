"""Densities of real people: the targets of the method, on check-ins of others than the model was fitted on.

Fails where the likeliest density is farther from that of the people than it was measured to be, where ranges err more,
and where intervals do not hold the people's shares.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def measured(data_folder):
    """benchmarks/population.py on 60,000 people at epsilon 1."""
    sys.path.append(str(ROOT))
    try:
        module = importlib.import_module("benchmarks.population")
    finally:
        sys.path.remove(str(ROOT))
    return module.measured(module.town(data_folder), 60_000, "1")


@pytest.mark.long
def test_the_likeliest_density_is_near_to_that_of_the_people(measured):
    off, ranges = measured.chosen
    assert off <= 0.16 and ranges <= 0.08
    assert off < measured.as_they_are[0] / 2 and ranges < measured.as_they_are[1] / 4


@pytest.mark.long
def test_an_even_start_is_enough_for_ranges(measured):
    off, ranges = measured.even
    assert off < measured.as_they_are[0] / 2 and ranges <= 0.08


@pytest.mark.long
def test_intervals_hold_most_shares_of_the_people(measured):
    both = list(zip(measured.shares, measured.truth, strict=True))
    assert len(both) > 10 and all(share.why == "" for share, _ in both)
    assert sum(share.low <= truth <= share.high for share, truth in both) >= 0.7 * len(both)
