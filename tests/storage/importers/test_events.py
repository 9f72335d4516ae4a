"""Cases: steps are positions, names are random, nothing of other cases changes with one case.

It would fail for ties in another order than that of the source, a time or a length that shows where none is to, a
random name that follows from a row, and a case that changes the rows of another one.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import dphmm
from dphmm.accounting.moments import TIES
from dphmm.errors import InvalidInput
from dphmm.statement.files import statement_path
from dphmm.states.space import END
from dphmm.storage.importers import import_trajectories
from storage.importers.test_xes import event, trace

pytestmark = pytest.mark.replayed_words

HEADER = "case:concept:name,concept:name,time:timestamp\n"
#: By case its activities and the minutes of a day at which they were.
LOG = {"c1": [("a", 5), ("b", 3), ("c", 5)], "c2": [("b", 0)], "c3": [("a", 1), ("a", 1), ("b", 1), ("c", 9)]}
#: By position, of each case.
RANKED = {"c1": ["b", "a", "c"], "c2": ["b"], "c3": ["a", "a", "b", "c"]}


def at(minute):
    return f"2024-03-01T00:{minute:02}:00Z"


def csv_of(log):
    return HEADER + "".join(f"{case},{name},{at(minute)}\n" for case, rows in log.items() for name, minute in rows)


def xes_of(log):
    cases = (trace(case, *(event(name, at(minute)) for name, minute in rows)) for case, rows in log.items())
    return f"<log>{''.join(cases)}</log>"


FORMATS = {"log.csv": csv_of, "log.xes": xes_of}


def read(tmp_path, log, name="log.csv", **options):
    """The imported rows of a log, as (case, states, order) by the true name of the case, in the order of the table."""
    (tmp_path / name).write_text(FORMATS[name](log) if isinstance(log, dict) else log)
    chosen = {"names_file": tmp_path / "names.csv", "bits": dphmm.ReplayBits(1), **options}
    rows = import_trajectories(tmp_path / name, "events", **chosen).trajectories
    table = tmp_path / "names.csv"
    true = dict(line.split(",")[::-1] for line in table.read_text().splitlines()) if table.exists() else {}
    mine = [np.flatnonzero(rows.user == number) for number in range(rows.n_users)]
    return [
        (true.get(user, user), rows.state[own].tolist(), rows.order[own].tolist())
        for user, own in zip(rows.users, mine, strict=True)
    ], rows


#: Of c1 the end of each activity follows its start; c2 is at work; c3 has another system's words.
CYCLES = {
    "c1": [("a", 1, "start"), ("b", 2, "Start"), ("b", 3, "complete"), ("a", 4, " COMPLETE ")],
    "c2": [("a", 1, "start")],
    "c3": [("c", 1, None), ("a", 2, "suspend"), ("b", 3, "completed"), ("c", 4, "complete")],
}


def cycles_csv(log):
    rows = (f"{case},{name},{at(minute)},{word or ''}\n" for case, rows in log.items() for name, minute, word in rows)
    return f"{HEADER.strip()},lifecycle:transition\n{''.join(rows)}"


def cycles_xes(log):
    def word(text):
        return "" if text is None else f'<string key="lifecycle:transition" value="{text}"/>'

    cases = ((case, (event(name, at(minute), word(text)) for name, minute, text in rows)) for case, rows in log.items())
    return f"<log>{''.join(trace(case, *rows) for case, rows in cases)}</log>"


@pytest.mark.parametrize(("name", "written"), [("log.csv", cycles_csv), ("log.xes", cycles_xes)])
def test_one_transition_of_an_activity_is_read_and_each_event_is_judged_by_itself(tmp_path, name, written):
    """Whatever transitions one case more has: every other case has the rows that it had."""
    due = {
        "complete": {"c1": ["b", "a"], "c3": ["c", "c"]},
        "start": {"c1": ["a", "b"], "c2": ["a"]},
        "all": {"c1": ["a", "b", "b", "a"], "c2": ["a"], "c3": ["c", "a", "b", "c"]},
    }
    for lifecycle, states in due.items():
        chosen = {"lifecycle": lifecycle, "case_names": "kept", "names_file": None}
        base, rows = read(tmp_path, written(CYCLES), name, **chosen)
        assert {case: states for case, states, _ in base} == states and rows.columns == ("user", "state", "order")
        for words in product(["start", "complete", None, "x"], repeat=2):
            one = [("c", minute, word) for minute, word in enumerate(words)]
            for log in ({"b": one, **CYCLES}, {**CYCLES, "d": one}):
                assert [case for case in read(tmp_path, written(log), name, **chosen)[0] if case[0] in CYCLES] == base
    (tmp_path / name).write_text(written(CYCLES))
    report = import_trajectories(tmp_path / name, "events", case_names="kept").report
    assert "left out: 5 rows of another lifecycle:transition than complete; lifecycle=all keeps them" in report.notes
    assert (report.rows, report.kept, dict(report.dropped)) == (9, 4, {})
    (tmp_path / name).write_text(written({"c2": CYCLES["c2"]}))
    with pytest.raises(InvalidInput, match=r"1 other_transition.*than complete; lifecycle=all keeps them"):
        import_trajectories(tmp_path / name, "events", case_names="kept")


def test_a_transition_to_read_needs_a_column_that_has_it(tmp_path):
    with pytest.raises(
        InvalidInput, match=r"lifecycle: got start of columns .*; expected a column lifecycle:transition"
    ):
        read(tmp_path, LOG, lifecycle="start")
    with pytest.raises(InvalidInput, match="lifecycle: got end; expected one of complete, start, all"):
        read(tmp_path, LOG, lifecycle="end")


@pytest.mark.parametrize("name", FORMATS)
def test_rows_are_positions_by_time_and_ties_by_their_place(tmp_path, name):
    found, rows = read(tmp_path, LOG, name)
    assert {case: states for case, states, _ in found} == RANKED
    assert rows.columns == ("user", "state", "order") and rows.users == tuple(sorted(rows.users))
    assert not set(rows.users) & LOG.keys()
    [moments] = [order for case, _, order in found if case == "c3"]
    assert np.diff(moments).tolist() == [1, 1, 8 * 60 * 1000 * TIES - 2]


def test_a_known_case_keeps_its_name_and_kept_names_stay(tmp_path):
    before = read(tmp_path, LOG)[1].users
    _, after = read(tmp_path, {"new": [("a", 1)], **LOG}, bits=dphmm.ReplayBits(9))
    assert set(before) < set(after.users)
    assert read(tmp_path, LOG, case_names="kept", names_file=None)[1].users == ("c1", "c2", "c3")
    with pytest.raises(InvalidInput, match="names_file: got nothing; expected where random names are kept"):
        read(tmp_path, LOG, names_file=None)


@pytest.mark.parametrize("name", FORMATS)
def test_every_case_has_as_many_rows_as_the_length_says(tmp_path, name):
    for length in (1, 2, 5):
        found, _ = read(tmp_path, LOG, name, length=length)
        assert {case: states for case, states, _ in found} == {
            case: [*states, *[END] * length][:length] for case, states in RANKED.items()
        }
        assert all(order == list(range(1, length + 1)) for _, _, order in found)
    for length in (0, "x", 2.5):
        with pytest.raises(InvalidInput, match="length"):
            read(tmp_path, LOG, name, length=length)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("length", [None, 3])
def test_neighbouring_files_differ_in_the_rows_of_one_case(tmp_path, name, length):
    """One case more, or another one in its place, of any length: every other case has the rows that it had."""
    base, _ = read(tmp_path, LOG, name, length=length)
    read(tmp_path, {**LOG, "one": [("a", 1)]}, name)
    for size, first in product(range(1, 5), "abc"):
        one = [(first, 7), *[("c", 8)] * (size - 1)]
        added, rows = read(tmp_path, {**LOG, "one": one}, name, length=length)
        assert [case for case in added if case[0] != "one"] == base
        replaced, _ = read(tmp_path, {"c1": LOG["c1"], "one": one, "c3": LOG["c3"]}, name, length=length)
        assert [case for case in replaced if case[0] != "one"] == [case for case in base if case[0] != "c2"]
        if length is not None:
            assert len(rows) == length * 4


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("length", [None, 4])
def test_other_times_of_the_same_order_are_released_to_the_same_bytes(tmp_path, name, length):
    setup = dphmm.Setup.labels(["a", "b", "c", END], noun="case")
    plan = setup.plan(2, steps=4, schedule="every")
    files = []
    for number, scale in enumerate((1, 6)):
        folder = tmp_path / str(number)
        folder.mkdir()
        log = {case: [(state, scale * minute) for state, minute in rows] for case, rows in LOG.items()}
        _, rows = read(folder, log, name, length=length)
        bits = dphmm.ReplayBits(3)
        chosen = {"case_names": "random", "length": length, "check": False, "progress": False}
        released = plan.release(rows, folder / "out", bits=bits, **chosen)
        table = released.folder.table
        files.append((table.read_bytes(), statement_path(table).read_bytes()))
        assert b"2024" not in files[-1][0]
    assert files[0] == files[1]
    stated = released.statement.events
    assert (stated.times, stated.length, stated.length_hidden) == ("none", length, length is not None)


@pytest.mark.parametrize(("times", "due"), [("exact", {0, 1, 3, 5, 9}), ("day", {0})])
def test_times_are_published_where_they_are_asked_for(tmp_path, times, due):
    _, rows = read(tmp_path, LOG)
    plan = dphmm.Setup.labels(["a", "b", "c"]).plan(2, steps=4, schedule="every")
    chosen = {"case_names": "random", "check": False, "progress": False}
    out = plan.release(rows, tmp_path / "out", times=times, bits=dphmm.ReplayBits(3), **chosen)
    minutes = {int(t.timestamp() // 60 % 1440) for t in out.rows.t}
    assert minutes == due and out.statement.events.times == times and len(out.rows) == 8
    _, positions = read(tmp_path, LOG, length=3)
    with pytest.raises(InvalidInput, match=f"times: got {times}, of rows whose order are positions"):
        plan.release(positions, tmp_path / "other", times=times, bits=dphmm.ReplayBits(3), **chosen)


def test_events_that_cannot_be_told_apart_are_counted(tmp_path):
    many = {"c1": [("a", 1)] * (TIES + 3)}
    (tmp_path / "log.csv").write_text(csv_of(many))
    found = import_trajectories(tmp_path / "log.csv", "events", case_names="kept")
    assert (len(found.trajectories), dict(found.report.dropped)) == (TIES, {"same_moment": 3})


def test_events_without_an_activity_take_no_position(tmp_path):
    text = csv_of(LOG) + f"c1,,{at(4)}\nc4,,{at(4)}\n"
    found, rows = read(tmp_path, text)
    assert {case: states for case, states, _ in found} == RANKED and rows.n_users == 3


def test_an_order_column_orders_in_place_of_times(tmp_path):
    text = "case:concept:name,concept:name,time:timestamp,n\nc1,a,,2\nc1,b,soon,1\nc1,c,,2\n"
    found, _ = read(tmp_path, text, order_column="n")
    assert found == [("c1", ["b", "a", "c"], [TIES, 2 * TIES, 2 * TIES + 1])]


def test_a_wide_table_has_a_case_a_row(tmp_path):
    found, _ = read(tmp_path, "id,t1,t2,t3\nx,a,,b\ny,b,b,a\n", columns="t1:t3", user_column="id", length=3)
    with pytest.raises(InvalidInput, match="lifecycle: got an option beside columns; expected user_column= alone"):
        read(tmp_path, "id,t1,t2\n", columns="t1:t2", user_column="id", lifecycle="all")
    assert {case: states for case, states, _ in found} == {"x": ["a", "b", END], "y": ["b", "b", "a"]}


@pytest.mark.parametrize(
    "declared", ['<!ENTITY a "b">', '<!ENTITY % a "b">', '<!ENTITY a SYSTEM "file:///etc/passwd">']
)
def test_entities_are_refused(tmp_path, declared):
    text = f"<!DOCTYPE log [{declared}]>{xes_of(LOG)}"
    with pytest.raises(InvalidInput, match="entit"):
        read(tmp_path, text, "log.xes")
    assert not (tmp_path / "names.csv").exists()
