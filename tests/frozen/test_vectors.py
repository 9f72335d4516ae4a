"""Claim: plans, answers under replayed words, and accounts are what every released version computed.

It would fail for a plan that is hashed otherwise, words that are read in another order, a cost that is rounded
otherwise, or a support that moves otherwise.
"""

from __future__ import annotations

import pytest

from frozen import vectors, worlds

KEPT = vectors.kept()


@pytest.mark.parametrize("number", range(len(KEPT)))
def test_a_world_says_what_it_always_said(number):
    kept = KEPT[number]
    assert vectors.vector(kept["family"], kept["seed"]) == kept


def test_there_are_fifty_worlds_with_answers_of_every_family():
    assert len(KEPT) == 50
    assert {vector["family"] for vector in KEPT} == {"sessions", "queries", "tables"}
    assert sum(len(vector["answers"]) for vector in KEPT) > 300


def test_a_difference_is_told_where_it_is():
    before = [["entry", 1, [3, 4]], ["spent", "2"]]
    assert list(worlds.differences(before, [["entry", 1, [3, 5]], ["spent", "2"]], 1e-12)) == ["[0][2][1]: 4, now 5"]
    assert list(worlds.differences([1.0], [1.0 + 1e-9], 1e-12))
    assert not list(worlds.differences([1.0, float("nan")], [1.0 + 1e-14, float("nan")], 1e-12))
    assert list(worlds.differences([1], [True], 1e-12)) and list(worlds.differences([1], [1, 2], 1e-12))


def test_hashes_of_two_versions_correspond_one_to_one():
    numbers = {}
    assert worlds.numbered_plans([["plan:a", 1], "plan:b", "b", "plan:a"], numbers) == [
        ["plan:0", 1], "plan:1", "b", "plan:0",
    ]  # fmt: skip
    assert worlds.numbered_plans("plan:b", numbers) == "plan:1"
    assert worlds.numbered_plans(["plan:a", "plan:a"], {}) != worlds.numbered_plans(["plan:c", "plan:d"], {})
