"""Released cases as event logs: what is written is read again, invented times say so, and nothing follows an end.

It would fail for a name that is not escaped, a day out of order, and an event after END.
"""

from __future__ import annotations

import numpy as np
import pytest

from dphmm.errors import InvalidInput
from dphmm.states.space import END
from dphmm.storage.importers import import_trajectories
from dphmm.storage.xes_files import write_xes

ODD = "a<b> & 'c' \"d\""
USERS, STEPS = ["x", "y", "x", "x", "y", "y"], np.array([3, 1, 1, 2, 2, 3])


def test_a_log_is_read_again_as_it_was_written(tmp_path):
    path = tmp_path / "log.xes"
    assert write_xes(path, USERS, STEPS, ["c", ODD, "a", None, END, "a"], None, "answers") == 3
    rows = import_trajectories(path, "xes").trajectories
    assert [(rows.users[user], name) for user, name in zip(rows.user, rows.state, strict=True)] == [
        ("x", "a"), ("x", "c"), ("y", ODD),
    ]  # fmt: skip
    assert (rows.time // (86_400 * 10**6)).tolist() == [0, 2, 0]
    text = path.read_text()
    assert text.count("dphmm:times") == 4 and text.count("invented") == 4 and 'value="answers"' in text


def test_published_times_are_written_and_nothing_is_invented(tmp_path):
    path = tmp_path / "log.xes"
    times = np.array([30, 10, 10, 20, 20, 30]) * 10**6
    assert write_xes(path, USERS, STEPS, list("cbabcd"), times, "answers") == 6
    rows = import_trajectories(path, "xes").trajectories
    assert rows.time.tolist() == [10**7, 2 * 10**7, 3 * 10**7] * 2 and "invented" not in path.read_text()


def test_a_name_that_xml_cannot_hold_is_refused_and_leaves_no_file(tmp_path):
    with pytest.raises(InvalidInput, match="output: got a name with a character that XML cannot hold"):
        write_xes(tmp_path / "log.xes", ["x"], np.array([1]), ["a\x01"], None, "answers")
    assert not list(tmp_path.iterdir())
