"""Intervals become a state per step by one rule, against a loop over every step and interval."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dphmm.errors import InvalidInput
from dphmm.states import Trajectories
from dphmm.storage.importers import IMPORTERS
from dphmm.storage.importers.intervals import in_steps

ORDONEZ = (
    "Start time             \tEnd time               \tActivity\n"
    "-------------------    \t-------------------    \t---------------\n"
    "2011-11-28 00:00:00\t\t2011-11-28 00:10:00\t\tSleeping\t\n"
    "2011-11-28 00:09:00\t\t2011-11-28 00:12:00\t\tShowering\t\n"
    "2011-11-28 00:20:00\t\t2011-11-28 00:15:00\t\tLeaving\n"
    "2011-11-28 00:21:00\t\t2011-11-28 00:26:00\t\tBreakfast\n"
)


def stepped(path, **options):
    imported = IMPORTERS["intervals"](path, **options)
    rows = imported.trajectories
    minutes = ((rows.time // 60_000_000) % 1440).tolist()
    return list(zip([rows.users[u] for u in rows.user], minutes, rows.state, strict=True)), imported


def test_an_activity_log_in_the_layout_of_ordonez(tmp_path):
    (tmp_path / "A_ADLs.txt").write_text(ORDONEZ)
    rows, imported = stepped(tmp_path / "A_ADLs.txt", step="5min", timezone="UTC", user_name="A")
    assert rows == [("A", 0, "Sleeping"), ("A", 5, "Sleeping"), ("A", 10, "Showering"), ("A", 25, "Breakfast")]
    assert imported.rejected.to_pylist() == [{"row": 3, "reason": "invalid_interval"}]
    gaps, _ = stepped(tmp_path / "A_ADLs.txt", step="5min", timezone="UTC", user_name="A", gap_label="other")
    assert gaps == [*rows[:3], ("A", 15, "other"), ("A", 20, "other"), rows[3]]


def test_a_table_of_careers_with_names_and_dates(tmp_path):
    (tmp_path / "x.csv").write_text(
        "person,from,until,status\na,01/02/2001,03/02/2001,work\nb,02/02/2001,03/02/2001,x\n"
    )
    options = {"time_format": "%d/%m/%Y", "timezone": "UTC", "user_column": "person"}
    rows, _ = stepped(tmp_path / "x.csv", step="1d", **options)
    assert [(user, state) for user, _, state in rows] == [("a", "work"), ("a", "work"), ("b", "x")]
    with pytest.raises(InvalidInput, match="state_column: got job; expected one of person, from"):
        stepped(tmp_path / "x.csv", step="1d", state_column="job", **options)
    with pytest.raises(InvalidInput, match="of which no interval covers a beginning"):
        stepped(tmp_path / "x.csv", step=31_000_000, **options)
    for step in (0, -1, "soon"):
        with pytest.raises(InvalidInput, match="step"):
            stepped(tmp_path / "x.csv", step=step, **options)


INTERVALS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(-9, 9), st.integers(0, 9), st.sampled_from("xyz")), min_size=1
)


@given(INTERVALS, st.integers(1, 4), st.booleans())
def test_steps_are_those_of_a_loop_over_intervals(intervals, width, gaps):
    owner, start, length, label = map(list, zip(*intervals, strict=True))
    ends = [a + b for a, b in zip(start, length, strict=True)]
    expected = {}
    for user in (0, 1):
        covered = {}
        for k in range(-30, 30):
            over = [(start[i], i) for i in range(len(owner)) if owner[i] == user and start[i] <= k * width < ends[i]]
            if over:
                covered[k] = label[max(over)[1]]
        for k in range(min(covered, default=0), max(covered, default=-1) + 1):
            if k in covered or gaps:
                expected[user, k] = covered.get(k, "gap")
    users = np.array(owner, np.int32)
    rows = Trajectories(("a", "b"), users, np.array(start), np.array(ends), state=np.array(label, object))
    if not expected:
        with pytest.raises(InvalidInput, match="covers a beginning"):
            in_steps(rows, width, "gap" if gaps else None)
        return
    found, _ = in_steps(rows, width, "gap" if gaps else None)
    names = [found.users[number] for number in found.user]
    got = dict(zip(zip(names, (found.time // width).tolist(), strict=True), found.state, strict=True))
    assert got == {("ab"[user], k): name for (user, k), name in expected.items()}


@pytest.mark.parametrize("label", [None, "none"])
@pytest.mark.parametrize("part", [1, 1000])
def test_a_person_s_steps_are_bounded_and_nobody_else_s(tmp_path, monkeypatch, label, part):
    """Against a loop over the lines: from where a person's sum is too large, that person's lines are set aside."""
    monkeypatch.setattr("dphmm.storage.importers.intervals.MOST_STEPS_OF_ONE", 10)
    monkeypatch.setattr("dphmm.storage.trajectories._ENOUGH", part)
    lengths = [("a", 4), ("b", 3), ("b", 9), ("a", 6), ("b", 1), ("", 50), ("a", 0), ("a", 1)]
    lines, kept, spent = ["user,start,end,label"], [], {"a": 0, "b": 0, "": 0}
    for number, (user, hours) in enumerate(lengths):
        lines.append(
            f"{user},2024-05-{number + 1:02}T00:00:00Z,2024-05-{number + 1 + hours // 24:02}T{hours % 24:02}:00:00Z,x"
        )
        spent[user] += hours
        if user and spent[user] <= 10:
            kept += [(user, hour * 60, "x") for hour in range(hours)]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
    rows, imported = stepped(tmp_path / "x.csv", step="1h", gap_label=label)
    assert sorted(row for row in rows if row[2] == "x") == sorted(kept)
    assert imported.rejected.to_pylist() == [
        {"row": 3, "reason": "too_many_steps"},
        {"row": 5, "reason": "too_many_steps"},
        {"row": 6, "reason": "missing_user"},
        {"row": 8, "reason": "too_many_steps"},
    ]


def test_gaps_of_one_person_are_bounded_and_all_steps_together(tmp_path, monkeypatch):
    lines = ["user,start,end,label"]
    lines += [
        f"{user},2024-05-06T{hour:02}:00:00Z,2024-05-06T{hour + 1:02}:00:00Z,x" for user in "ab" for hour in (0, 5, 12)
    ]
    lines += ["c,2024-05-06T00:00:00Z,2024-05-06T01:00:00Z,x", "c,2024-05-06T02:00:00Z,2024-05-06T03:00:00Z,x"]
    (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")

    def gaps():
        rows, _ = stepped(tmp_path / "x.csv", step="1h", gap_label="none")
        return {name: sum(row[0] == name and row[2] == "none" for row in rows) for name in "abc"}

    assert gaps() == {"a": 10, "b": 10, "c": 1}
    monkeypatch.setattr("dphmm.storage.importers.intervals.MOST_STEPS_OF_ONE", 9)
    assert gaps() == {"a": 4, "b": 4, "c": 1}
    monkeypatch.setattr("dphmm.storage.importers.intervals.MOST_STEPS_OF_ALL", 16)
    with pytest.raises(InvalidInput, match="step: got 17 steps in all; expected a longer one: at most 16"):
        gaps()
    monkeypatch.setattr("dphmm.storage.importers.intervals.MOST_STEPS_OF_ALL", 7)
    with pytest.raises(InvalidInput, match="step: got 8 steps in all"):
        gaps()
