"""What a preview says is what the release does then; where people are changes nothing of it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import dphmm
from dphmm.accounting import MemoryLedger
from dphmm.choose.details import first_plans, release_preview
from dphmm.release.batch import Batch
from dphmm.session.setting import Setting

SPACE = dphmm.StateSpace(np.array([[0.0], [1.0], [2.0]]), names=["a", "b", "c"])
MODEL = dphmm.MarkovModel(np.full(3, 1 / 3), np.full((3, 3), 1 / 3), space=SPACE)
POLICY = dphmm.policy.radius(SPACE, 1)


def rows(states):
    return dphmm.states.Trajectories.from_labels(["ann", "ann", "ann", "ben"], state=list(states))


def batch(**choices):
    return Batch(MODEL, POLICY, SPACE, "0.5", ledger=MemoryLedger(), bits=dphmm.ReplayBits(1), **choices)


def test_it_says_what_the_release_does():
    told = release_preview(batch(), rows("abca"))
    released = [row for part in batch().run(rows("abca")) for row in part]
    assert told["would_release"] == len(released) == 4 and told["subjects"] == 2
    assert Fraction(told["largest_epsilon_sum"]) == sum(row.release.epsilon for row in released if row.user == "ann")
    first = next(row.release for row in released if row.release.t == 1)
    assert told["plans"][0]["hash"] == first.plan_hash and Fraction(told["plans"][0]["cost"]) == first.cost
    assert told["not_asked"] is None and told["sequence"] is None


def test_where_people_are_changes_nothing():
    assert release_preview(batch(), rows("abca")) == release_preview(batch(), rows("cccc"))


@pytest.mark.parametrize(("choices", "plans"), [({}, 3), ({"constraint": "delta=0.1"}, 1)])
def test_plans_are_told_as_far_as_they_are_public(choices, plans):
    assert len(first_plans(Setting.of(MODEL, POLICY, SPACE, 1, **choices))) == plans
