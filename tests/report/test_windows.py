"""A promise over any window is told as one: nothing on a page says that it bounds the whole time.

Claim: the cap, what was spent of it and the guarantee are of windows. It would fail for a page that compares the sum of
everything with the cap, or that takes two ways which differ all the time.
"""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

import dphmm
from dphmm.report import page, read_report, words
from dphmm.report.page import Content
from report.worlds import WORLDS, released, table, walks


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Twelve answers of one person at epsilon 1, at most 4 in any 4 steps."""
    folder = WORLDS["planned"](tmp_path_factory.mktemp("window"))
    for old in [*folder.glob("released*"), *folder.glob("smoothed*"), *folder.glob("ledger*")]:
        old.unlink()
    table(folder / "walks.csv", ["user", "t", "lat", "lon"], walks(["u1"], 12, 7))
    released(folder, "--path-epsilon", "4", "--window", "4")
    model = dphmm.load_model(folder / "model.npz")
    return read_report(folder / "released.parquet", model, dphmm.load_policy(folder / "policy.json", model=model))


def test_what_was_spent_is_that_of_a_window(report):
    assert report.largest_of == {"u1": Fraction(4)}
    assert [total for _, blocks in report.spent for _, _, total in blocks] == [12]
    told = words.spent(report)
    assert told.big == "4 of 4 in any 4 steps" and "All together: 12." in told.words
    content = Content(report)
    assert content.budget_figure.heading == "One person spent 4 of 4 in any 4 steps"
    assert max(total for _, points in content.blocks() for _, total in points) == 4


def test_the_sums_of_windows_are_those_of_brute_force(report):
    spending = report.spending("u1")
    own = [sum(e for _, other, _, e in spending if step - 4 < other <= step) for _, step, _, _ in spending]
    assert report.running("u1") == own and len(own) == 12


def test_ways_that_differ_for_longer_than_a_window_are_not_promised(report):
    first, moment, second = words.block_words(report)
    assert "two states of one step can lose more" in moment
    assert "that differ within 4 steps in a row only, and" in first
    assert second.startswith("Ways that differ for longer lose more") and second.endswith(
        "Nothing bounds what all answers tell together."
    )
    told = words.guarantee(report)
    assert told.long_bars[-1][0] == "any 4 steps" and told.bars[-1][0] == "any 4 steps"
    said = " ".join(re.sub(r"<[^>]*>", " ", page(report)).split())
    assert "12 of 4" not in said and "4 in all" not in said and "all 4:" not in said
