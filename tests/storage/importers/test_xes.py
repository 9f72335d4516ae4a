"""Event logs in XES: an event is a row of its trace, and its attributes alone are columns."""

from __future__ import annotations

import gzip

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.importers import IMPORTERS

TWO = b"""<?xml version="1.0" encoding="UTF-8"?>
<log xes.version="1.0">
<trace><string key="concept:name" value="c1"/>
<event><string key="concept:name" value="register"/><date key="time:timestamp" value="2011-01-01T10:00:00.000+01:00"/></event>
<event><string key="concept:name" value="check"/><date key="time:timestamp" value="2011-01-01T11:00:00.000+01:00"/></event></trace>
<trace><string key="concept:name" value="c2"/>
<event><string key="concept:name" value="register"/><date key="time:timestamp" value="2011-01-02T10:00:00.000+01:00"/></event></trace>
</log>
"""  # noqa: E501 (as it is published)


def event(name=None, time="2011-01-01T10:00:00Z", more=""):
    given = "" if name is None else f'<string key="concept:name" value="{name}"/>'
    return f'<event>{given}<date key="time:timestamp" value="{time}"/>{more}</event>'


def trace(name, *events):
    given = "" if name is None else f'<string key="concept:name" value="{name}"/>'
    return f"<trace>{given}{''.join(events)}</trace>"


def read(tmp_path, text, name="x.xes", **options):
    """(user, state, clock if any) of the rows, and what is rejected."""
    data = text if isinstance(text, bytes) else f"<log>{text}</log>".encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    imported = IMPORTERS["xes"](tmp_path / name, **options)
    rows = [
        (row["user"], row["state"], row["t"].strftime("%dT%H") if "t" in row else None)
        for row in imported.trajectories.placed.to_arrow().to_pylist()
    ]
    return rows, [(row["row"], row["reason"]) for row in imported.rejected.to_pylist()]


@pytest.mark.parametrize("name", ["two.xes", "two.xes.gz", "two.log"])
def test_an_event_is_a_row_of_its_trace(tmp_path, name):
    rows, rejected = read(tmp_path, TWO, name)
    assert rows == [("c1", "register", "01T09"), ("c1", "check", "01T10"), ("c2", "register", "02T09")]
    assert rejected == []


def test_rows_that_lack_something_are_set_aside_one_by_one(tmp_path):
    text = (
        trace("a", event(), event("x", "2011-01-01T10:00:00"), event("x", "soon"), event("x"))
        + trace(None, event("x"), event("y"))
        + trace("b", "<event/>", event("", ""), event("y"))
    )
    rows, rejected = read(tmp_path, text)
    assert rows == [("a", "x", "01T10"), ("b", "y", "01T10")]
    assert rejected == [
        (1, "missing_state"), (2, "time_without_zone"), (3, "invalid_time"), (5, "missing_user"), (6, "missing_user"),
        (7, "invalid_time"), (8, "invalid_time"),
    ]  # fmt: skip
    assert read(tmp_path, text, timezone="Asia/Tokyo")[0][0] == ("a", "x", "01T01")


def test_attributes_inside_others_are_not_those_of_the_event(tmp_path):
    nested = '<list key="l"><values><string key="concept:name" value="in a list"/></values></list>'
    deep = '<string key="k" value="v"><string key="concept:name" value="deep"/></string>'
    inner = '<event><string key="concept:name" value="inner"/></event>'
    rows, rejected = read(tmp_path, trace("a", event(None, more=nested), event("x", more=deep + inner + nested)))
    assert rows == [("a", "x", "01T10")] and rejected == [(1, "missing_state")]
    # Of a key twice the first one counts, and a trace's name may follow its events.
    twice = event("x", more='<string key="concept:name" value="y"/>')
    rows, rejected = read(tmp_path, f'<trace>{twice}<string key="concept:name" value="late"/></trace>')
    assert rows == [("late", "x", "01T10")] and rejected == []


def test_other_keys_are_named(tmp_path):
    resource = '<string key="org:resource" value="Mia"/><int key="n" value="{}"/>'
    text = trace("a", event("x", more=resource.format(2)), event("y", more=resource.format(1)))
    assert read(tmp_path, text, state_column="org:resource")[0] == [("a", "Mia", "01T10")] * 2
    assert read(tmp_path, text, user_column="org:resource")[0][0] == ("Mia", "x", "01T10")
    assert read(tmp_path, text, user="ann")[0][0] == ("ann", "x", "01T10")
    assert read(tmp_path, text, order_column="n")[0] == [("a", "y", None), ("a", "x", None)]
    assert read(tmp_path, text, no_times=True)[0] == [("a", "x", None), ("a", "y", None)]
    told = "state_column: got nope; expected one of case:concept:name, concept:name, time:timestamp, org:resource, n"
    with pytest.raises(InvalidInput, match=told):
        read(tmp_path, text, state_column="nope")


def test_a_log_without_events_is_refused(tmp_path):
    for text in ("", trace("a"), "<event/>", '<string key="concept:name" value="x"/>'):
        with pytest.raises(InvalidInput, match=r"x.xes, without a row that can be read; expected rows in it: \*.xes"):
            read(tmp_path, text)
    with pytest.raises(InvalidInput, match="user_column: got case:concept:name; expected one of concept:name, time:"):
        read(tmp_path, trace(None, event("x")))
    with pytest.raises(InvalidInput, match=r"of 2; expected rows \(2 missing_user\)"):
        read(tmp_path, trace("", event("x"), event("y")))


def test_logs_of_a_folder_are_read_one_by_one(tmp_path):
    (tmp_path / "logs").mkdir()
    for name, data in (("a.xes", TWO), ("b.xes.gz", gzip.compress(TWO)), ("c.xes", TWO[:-9]), ("d.xml", TWO)):
        (tmp_path / "logs" / name).write_bytes(data)
    imported = IMPORTERS["xes"](tmp_path / "logs", user_from="file-name")
    assert imported.trajectories.users == ("a", "b") and imported.report.kept == 6
    assert imported.rejected.to_pylist() == [{"file": "logs/c.xes", "row": 1, "reason": "unreadable_file"}]


def test_a_published_log_is_read_whole(data_folder):
    imported = IMPORTERS["xes"](data_folder / "events" / "running-example.xes")
    rows = imported.trajectories
    assert (len(rows), rows.users, len(imported.rejected)) == (42, tuple("123456"), 0)
    assert rows.state.tolist().count("register request") == 6
