"""What Spark's event log counts of a counting: nothing that one person changes, but for numbers that are documented.

Spark's web pages show what is in it. Two tables have the same number of rows, and one person does something else in
them. It could fail where a task gives back rows, or Spark moves rows, as many as something private is.
"""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from spark.driver import CAP, NEIGHBOURS
from spark.test_faults import PLAIN, ROOT, drive

#: Measures in the log that are times and memory, and bytes of what is compressed or encoded.
_MEASURED = re.compile(r"time|duration|memory|GC|delay|bytes|CPU|size|spill|RunTime", re.IGNORECASE)


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """{description of a counting: {(operator, measure): sum over its tasks}}."""
    folder = tmp_path_factory.mktemp("neighbours")
    (folder / "events").mkdir()
    _, out = drive(folder, ("local[2,4]", {**PLAIN, "spark.eventLog.dir": f"file://{folder / 'events'}"}, "neighbours"))
    files = sorted(path for path in (folder / "events").rglob("*") if path.is_file() and "events_" in path.name)
    files = files or [path for path in (folder / "events").rglob("*") if path.is_file()]
    assert files, out[-2000:]
    return counters([json.loads(line) for path in files for line in path.read_text().splitlines()])


def nodes(plan):
    """All operators of a plan."""
    yield plan
    for child in plan["children"]:
        yield from nodes(child)


def counters(events):
    """What the tasks of each execution counted, by operator and measure; what is of no operator under a task's name."""
    described, named, stages, found = {}, {}, {}, {}
    for event in events:
        kind = event["Event"].rpartition(".")[2]
        if kind == "SparkListenerSQLExecutionStart":
            described[str(event["executionId"])] = event["description"]
        if kind in ("SparkListenerSQLExecutionStart", "SparkListenerSQLAdaptiveExecutionUpdate"):
            for node in nodes(event["sparkPlanInfo"]):
                # Numbers of columns and plans differ.
                name = re.sub(r"[#(\[].*", "", node["nodeName"]).strip()
                for metric in node["metrics"]:
                    named[metric["accumulatorId"]] = (name, metric["name"])
        if kind == "SparkListenerJobStart":
            execution = event["Properties"].get("spark.sql.execution.id")
            for stage in event["Stage IDs"]:
                stages[stage] = described.get(execution)
        if kind == "SparkListenerTaskEnd":
            own = found.setdefault(stages[event["Stage ID"]], Counter())
            own["task", "tasks"] += 1
            for one in event["Task Info"]["Accumulables"]:
                if str(one.get("Update", "")).isdigit():
                    name = named.get(one["ID"], ("task", one["Name"]))
                    own[name] += int(one["Update"])
    return found


def differ(logged, what):
    """Which numbers are others, by measure; measures of times and bytes left out."""
    one, other = (logged[f"{there} {what}"] for there in (0, 1))
    return {name: (one[name], other[name]) for name in one.keys() | other.keys() if one[name] != other[name]}


def counted(found):
    return {name: pair for name, pair in found.items() if not _MEASURED.search(name[1])}


@pytest.mark.parametrize("what", ["transitions", "histogram"])
def test_no_number_of_rows_tells_what_a_person_did(logged, what):
    assert ("MapInArrow", "number of output rows") in logged[f"0 {what}"]
    assert counted(differ(logged, what)) == {}


#: What one person changes in the log of `degrees`: operators and measures that follow from numbers of edges and people.
_ROWS = "number of output rows"
_OF_EDGES = {
    ("MapInArrow", _ROWS),
    ("MapInArrow", "data sent to Python workers"),
    ("MapInArrow", "data returned from Python workers"),
    ("HashAggregate", _ROWS),
    ("Generate", _ROWS),
    ("Exchange", "shuffle records written"),
    ("Exchange", "records read"),
    ("Exchange", "local blocks read"),
    ("task", "internal.metrics.shuffle.write.recordsWritten"),
    ("task", "internal.metrics.shuffle.read.recordsRead"),
    ("task", "internal.metrics.shuffle.read.localBlocksFetched"),
}
#: Where edges wait for their turn, too: how many do, and whether any does.
_OF_WAITING = _OF_EDGES | {
    ("BroadcastHashJoin", _ROWS),
    ("Filter", _ROWS),
    ("Union", _ROWS),
    ("task", "tasks"),
}


@pytest.mark.parametrize(("level", "shown"), [("edge", _OF_EDGES), ("node", _OF_WAITING)])
def test_degrees_show_numbers_of_edges_and_people_and_no_more(logged, level, shown):
    """A measure that is not listed here shows more than docs/spark.md says."""
    found = counted(differ(logged, f"degrees {level}"))
    assert set(found) <= shown
    people = set(range(100))
    rows = [[pair for pair in table if pair[0] != pair[1] and set(pair) <= people] for table in NEIGHBOURS["degrees"]]
    different = [len({frozenset(pair) for pair in table}) for table in rows]
    assert [different[1] - different[0], len(rows[1]) - len(rows[0])] == [3, 4]
    if level == "edge":
        assert found["MapInArrow", _ROWS] == tuple(map(len, rows))
        # Both ends of every different edge.
        assert found["Generate", _ROWS] == tuple(2 * number for number in different)
    else:
        # Nobody, then somebody, has more edges than the cap.
        assert found["BroadcastHashJoin", _ROWS][0] == 0 < found["BroadcastHashJoin", _ROWS][1]
        degree = [[sum(person in edge for edge in set(map(frozenset, table))) for person in people] for table in rows]
        assert [max(each) for each in degree] == [CAP, CAP + 1]
    told = (
        "Of `degrees` numbers of rows say, without noise, how many rows are edges, how many different edges there are,"
    )
    assert told in (ROOT / "docs" / "spark.md").read_text()
