"""Released rows as a table and back, and the sums that their statement says.

It would fail where a row that was not asked gets an answer, where an answer comes back changed, where a cost is rounded
down, and where parts of a file that were counted apart add up to other sums than the file.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dphmm
from dphmm.errors import InvalidInput
from dphmm.release.batch import Batch
from dphmm.states import Trajectories
from dphmm.storage.released import FileSums, read_answers, released_rows, released_table, run_starts

#: Batches draw here: each test replays words of its own.
pytestmark = pytest.mark.replayed_words

SPACE = dphmm.StateSpace(np.array([[0, 0], [1, 0], [2, 0], [0, 9], [2, 9], [4, 9]]))
LABELS = dphmm.StateSpace.categories(("home", "work", "=shop", "else"))


def rows_of(space, policy, users=("ann", "bob", "cid"), steps=3, **choices):
    n = space.n_states
    model = dphmm.MarkovModel(np.full(n, 1 / n), np.full((n, n), 1 / n))
    batch = Batch(model, policy, space, Fraction(1, 3), **choices)
    state = np.array([space.names[k % n] for k in range(len(users) * steps)], dtype=object)
    rows = Trajectories.from_labels(
        [user for user in users for _ in range(steps)], step=np.tile(np.arange(steps), len(users)), state=state
    )
    return [row for chunk in batch.run(rows) for row in chunk]


def test_rows_begin_where_any_column_changes():
    users = np.array(["a", "a", "b", "b", "b", "a"], dtype=object)
    assert run_starts(users).tolist() == [0, 2, 5]
    assert run_starts(users, np.array([0, 1, 1, 1, 2, 2])).tolist() == [0, 1, 2, 4, 5]
    assert run_starts(users[:1]).tolist() == [0] and run_starts(users[:0]).tolist() == []


@pytest.mark.parametrize(("space", "policy"), [(SPACE, dphmm.policy.complete(6)), (LABELS, dphmm.policy.complete(4))])
def test_released_rows_come_back_as_they_were(space, policy):
    rows = rows_of(space, policy)
    table = released_table(rows, space)
    back = released_rows(table, space)
    assert back.users == [row.user for row in rows] and back.step.tolist() == [row.release.t for row in rows]
    assert back.z.tolist() == [list(row.release.z_lattice) for row in rows]
    assert back.plans == [row.release.plan_hash for row in rows] and set(back.epsilon) == {float(Fraction(1, 3))}
    assert all(cost >= row.release.cost for cost, row in zip(table["cost"].to_pylist(), rows, strict=True))
    assert [(user, own.tolist()) for user, own in back.by_user()] == [
        ("ann", [0, 1, 2]), ("bob", [3, 4, 5]), ("cid", [6, 7, 8]),
    ]  # fmt: skip


def test_a_row_that_was_not_asked_has_no_answer():
    table = pa.table({"z_0": [3.0, None], "z_1": [0.0, None]})
    asked = np.array([True, False])
    assert read_answers(table, SPACE, asked).tolist() == [[3, 0], [0, 0]]
    for wrong, came in ((~asked, "cells that cannot be read"), (np.zeros(2, bool), "answers in rows without a plan")):
        with pytest.raises(InvalidInput, match=came):
            read_answers(table, SPACE, wrong)
    with pytest.raises(InvalidInput, match="off the lattice"):
        read_answers(pa.table({"z_0": [0.5], "z_1": [0.0]}), SPACE, asked[:1])


def test_parts_that_are_counted_apart_add_up_to_the_whole():
    rows = rows_of(SPACE, dphmm.policy.complete(6))
    whole, split = FileSums(rows), FileSums()
    for row in rows:
        split.add([row])
    parts = [FileSums([row for row in rows if row.user == user]).counted() for user in ("ann", "bob", "cid")]
    assert whole.counted() == split.counted() == FileSums.of_parts(parts).counted()
    assert whole.largest.epsilon == 1 and whole.subjects == 3 and whole.rows == 9
