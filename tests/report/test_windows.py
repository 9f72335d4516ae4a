"""A promise over any window is told as one: nothing on a page says that it bounds the whole time.

Claim: the cap, what was spent of it and the guarantee are of windows, and a whole window is of consecutive steps. It
would fail for a page that compares the sum of everything with the cap, that takes two ways which differ all the time,
or that tells of whole windows where nobody has two rows in one.
"""

from __future__ import annotations

import re
import shutil
from fractions import Fraction

import numpy as np
import pytest

import dphmm
from commands import walk_rows, write_rows
from dphmm.report import page, read_report
from dphmm.report.page import Content
from report.spoken import spoken
from report.worlds import WORLDS, read, released


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Twelve answers of one person at epsilon 1, at most 4 in any 4 steps."""
    folder = WORLDS["planned"](tmp_path_factory.mktemp("window"))
    for old in [*folder.glob("released*"), *folder.glob("smoothed*"), *folder.glob("ledger*")]:
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    write_rows(folder / "walks.csv", ["user", "t", "lat", "lon"], walk_rows(["u1"], 12, 7))
    released(folder, "--path-epsilon", "4", "--window", "4")
    return read(folder)


@pytest.mark.slow
def test_what_was_spent_is_that_of_a_window(report):
    assert report.largest_of == {"u1": Fraction(4)}
    assert [total for _, blocks in report.spent for _, _, total in blocks] == [12]
    assert spoken(report, "spent_figure") == ["4 of 4 in any 4 steps"]
    assert spoken(report, "spent_note") == ["At most, for each person; 12 in all, by this file."]
    assert "at most 4 of 4 in any 4 steps for each person, 12 in all, by this file" in report.story.words("spent")
    assert spoken(report, "spending")[0].startswith("One person spent 4 of 4 in any 4 steps by this file.")


def test_the_sums_of_windows_are_those_of_brute_force(report):
    spending = report.spending("u1")
    windows = [[row for row in spending if step - 4 < row[1] <= step] for _, step, _, _ in spending]
    own = [(sum(answers for _, _, answers, _ in rows), sum(e for _, _, _, e in rows)) for rows in windows]
    assert report.sums["u1"] == own and len(own) == 12


def test_ways_that_differ_for_longer_than_a_window_are_not_promised(report):
    first, moment, second = spoken(report, "guarantee_at_length")
    assert "two states of one step can lose more" in moment
    assert "that differ within 4 steps in a row only, and" in first
    assert second.startswith("Ways that differ for longer lose more") and second.endswith(
        "Nothing bounds what all answers tell together."
    )
    told = Content(report).bounds
    assert [(name, bound.epsilon) for name, bound in told] == [
        ("one answer", "1"), ("the four of any 4 steps", "4"), ("the whole file", "12"),
    ]  # fmt: skip
    said = " ".join(re.sub(r"<[^>]*>", " ", page(report)).split())
    assert "12 of 4" not in said and "4 in all" not in said and "all 4:" not in said


CHAIN = 0.6 * np.eye(4) + 0.2 * (np.eye(4, k=1) + np.eye(4, k=-1)) + np.diag([0.2, 0, 0, 0.2])


@pytest.mark.parametrize(
    ("promise", "steps", "some"),
    [
        (("--window", "4"), (1, 40, 80, 120), True),
        (("--window", "4"), (7, 8, 9, 10), True),
        (("--window", "4"), (7, 8, 9, 10, 11, 20), True),
        (("--window", "4"), (7, 8, 9, 11, 12, 13), True),
        (("--steps", "4"), (1, 2, 3, 4), True),
        (("--steps", "4"), (1, 2, 4), False),
        (("--per", "4"), (1, 40, 80, 120), True),
        (("--per", "4"), (5, 6, 7, 8), True),
        (None, (*range(3, 103),), False),
        (None, (*range(1, 100), 200), False),
    ],
)
def test_rows_that_are_scattered_in_time_are_no_whole_window(promise, steps, some, tmp_path):
    """Of files without times: windows, a sequence, blocks of steps. Without a promise nothing says what a block is."""
    space = dphmm.StateSpace(np.arange(4))
    model = dphmm.MarkovModel(np.full(4, 0.25), CHAIN, space=space)
    policy = dphmm.policy.radius(space, 1)
    dphmm.storage.save_model(model, tmp_path / "model.npz")
    dphmm.storage.save_policy(policy, tmp_path / "policy.json", space)
    write_rows(tmp_path / "walks.csv", ["user", "step", "state"], [["ann", step, 2] for step in steps])
    given = (None, ("--epsilon", "1")) if promise is None else (1, ("--path-epsilon", "4", *promise))
    released(tmp_path, *given[1], epsilon=given[0], smoothed=False)
    found = read_report(tmp_path / "released" / "released.parquet", model, policy)
    assert (found.found.own_stay is not None) == some
    assert found.found.people == "the rows of this file"
