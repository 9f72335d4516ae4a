"""What Spark's event log counts of a counting: nothing that one person changes, but for bytes that are documented.

Spark's web pages show what is in it. Two tables have the same number of rows, and one person does something else in
them. It could fail where a task gives back rows, or Spark moves rows, as many as something private is.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict

import pytest

from spark.driver import CAP, NEIGHBOURS
from spark.test_faults import PLAIN, ROOT, drive

PAGE = (ROOT / "docs" / "clusters.md").read_text()

#: Measures in the log that are times and memory, and bytes of what is compressed or encoded.
_MEASURED = re.compile(r"time|duration|memory|GC|delay|bytes|CPU|size|spill|RunTime", re.IGNORECASE)


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """{description of a counting: {(operator, measure): numbers of its tasks}}."""
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
            own = found.setdefault(stages[event["Stage ID"]], defaultdict(list))
            own["task", "tasks"].append(1)
            for one in event["Task Info"]["Accumulables"]:
                if str(one.get("Update", "")).isdigit():
                    name = named.get(one["ID"], ("task", one["Name"]))
                    own[name].append(int(one["Update"]))
    return found


def differ(logged, what, of=sum):
    """Which numbers are others, by measure, where ``of`` a measure are the numbers of its tasks."""
    one, other = (logged[f"{there} {what}"] for there in (0, 1))
    pairs = {name: (of(one.get(name, [])), of(other.get(name, []))) for name in one.keys() | other.keys()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def counted(found):
    """Without measures of times and bytes."""
    return {name: pair for name, pair in found.items() if not _MEASURED.search(name[1])}


_SENT, _RETURNED = (("MapInArrow", f"data {way} Python workers") for way in ("sent to", "returned from"))


@pytest.mark.parametrize("what", ["transitions", "histogram", "degrees edge", "degrees node"])
def test_no_number_of_rows_tells_what_a_person_did(logged, what):
    assert sum(logged[f"0 {what}"]["MapInArrow", "number of output rows"]) > 1024
    assert counted(differ(logged, what)) == {}


#: Text of another length is other bytes, where the frame is read.
@pytest.mark.parametrize("level", ["edge", "node"])
def test_of_names_of_people_the_bytes_that_tasks_read_add_up_and_no_row_is_counted(logged, level):
    assert counted(differ(logged, f"names {level}")).keys() == {_SENT}
    assert "add up the lengths of the names at the ends" in PAGE


@pytest.mark.parametrize("what", ["transitions", "histogram"])
def test_no_task_counts_what_a_person_did(logged, what):
    assert counted(differ(logged, what, sorted)) == {}


@pytest.mark.parametrize("what", ["degrees edge", "degrees node", "names edge", "names node"])
def test_which_edges_there_are_changes_the_bytes_of_single_tasks_and_no_number_of_rows(logged, what):
    """A measure that is not listed here shows more than docs/clusters.md says."""
    assert counted(differ(logged, what, sorted)).keys() == {_SENT, _RETURNED}
    assert "how many bytes each task of `degrees` gets and gives" in PAGE


@pytest.mark.parametrize("what", ["degrees edge", "degrees node"])
def test_all_bytes_of_edges_are_as_many_whichever_edges_there_are(logged, what):
    """Of people who are numbers, before anything is compressed; what a task sends to the driver has times in it."""
    sizes = re.compile("data|bytes|size", re.IGNORECASE)
    sized = {name for name in logged[f"0 {what}"] if sizes.search(name[1]) and not name[1].endswith("resultSize")}
    assert {_SENT, _RETURNED, ("Exchange", "data size"), ("Exchange", "shuffle bytes written")} <= sized
    memory = re.compile("memory|spill|peak", re.IGNORECASE)
    assert {name for name in differ(logged, what) if name in sized and not memory.search(name[1])} == set()


def test_the_two_tables_of_edges_differ_in_all_that_rows_could_show():
    """Else the tests above could not fail: rows that are edges, different ones, people with any, and above the cap."""
    people = set(range(100))
    rows = [[pair for pair in table if pair[0] != pair[1] and set(pair) <= people] for table in NEIGHBOURS["degrees"]]
    edges = [{frozenset(pair) for pair in table} for table in rows]
    degree = [[sum(person in edge for edge in table) for person in people] for table in edges]
    told = [
        (len(table), len(each), sum(map(bool, own)), sum(number > CAP for number in own))
        for table, each, own in zip(rows, edges, degree, strict=True)
    ]
    assert all(one < other for one, other in zip(*told, strict=True)), told
    assert len(NEIGHBOURS["degrees"][0]) == len(NEIGHBOURS["degrees"][1])
