"""A cluster on which tasks, executors and drivers die: what can be read has one answer for each key, or nothing.

Three drivers do what is to be seen: a driver that dies takes no part in what comes after it, and a cluster has a driver
of its own. What attempts wrote is compared by its bytes: equal, whichever of them is taken.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dphmm.storage.release_table import ReleaseTable
from spark.conftest import NONE
from spark.worlds import people, rows

pytestmark = pytest.mark.replayed_words

ROOT = Path(__file__).parents[2]
#: What `check` wants where executors are processes of their own.
SAFE = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "a secret of tests",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}
#: Files as they are, where they are not encrypted.
PLAIN = {
    "spark.shuffle.compress": "false",
    "spark.rdd.compress": "false",
    "spark.checkpoint.compress": "false",
    "spark.eventLog.compress": "false",
    "spark.eventLog.enabled": "true",
}
EXPECTED = len(rows(1, people(60), 1, 6))
RELEASED = {"rows": EXPECTED, "entry": 2}
CLUSTER = "local-cluster[2,1,1024]"


def drive(folder, *sessions, ends=0):
    """What a driver of its own told of each job (nothing of that in which it died), and all that it printed.

    Where it ends otherwise than with ``ends``, what it printed last says why.
    """
    try:
        import pyspark  # noqa: F401
    except ImportError:
        pytest.skip(NONE)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "spill"),
    }
    own = {"spark.sql.warehouse.dir": str(folder / "warehouse")}
    sessions = [(master, {**settings, **own}, what) for master, settings, *what in sessions]
    done = subprocess.run(
        [sys.executable, "-m", "spark.driver", str(folder), json.dumps(sessions)],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=1500,
    )
    assert done.returncode == ends, done.stdout[-8000:]
    lines = [json.loads(line.removeprefix("TOLD ")) for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    return {line.pop("what"): line for line in lines}, done.stdout


class Drivers(NamedTuple):
    """What drivers told, in which folder; ``died``: what could be read of the first one's table before the second."""

    folder: Path
    told: dict[str, Any]
    out: str
    died: tuple[int, int]


@pytest.fixture(scope="module")
def drivers(tmp_path_factory):
    """A driver that dies before it commits, one that does the rest and dies in the end, and one of a cluster."""
    folder = tmp_path_factory.mktemp("drivers")
    first, out = drive(folder, ("local[2,4]", {}, "before commit"), ends=-signal.SIGKILL)
    assert first == {}, out[-2000:]
    left = ReleaseTable.open(folder / "before commit" / "table")
    died = (left.read().num_rows, len(list(left.data.iterdir())))
    for what in ("marked", "marked otherwise", "marked on a cluster"):
        (folder / what).mkdir()
        if what != "marked otherwise":
            # What nobody else names.
            names = {
                name: [secrets.token_hex(8) for _ in range(count)] for name, count in (("states", 6), ("users", 60))
            }
            marks = json.dumps({**names, "step": 10**14 + secrets.randbelow(10**14)})
        (folder / what / "marks.json").write_text(marks)
    (folder / "events").mkdir()
    logged = {**PLAIN, "spark.eventLog.dir": f"file://{folder / 'events'}"}
    shown = {**logged, "spark.ui.enabled": "true", "spark.ui.port": "0"}
    told, out = drive(
        folder,
        ("local[2,4]", shown, "marked"),
        # A session takes seconds until its workers have loaded all: what no page is compared after shares one.
        ("local[2,4]", shown, "marked otherwise", "once more", "raise", "worker", "changed"),
        ("local-cluster[0,1,1024]", {}, "unsafe"),
        ("local[2,4]", {}, "before clean"),
        ends=-signal.SIGKILL,
    )
    on_a_cluster, more = drive(folder, (CLUSTER, {**shown, **SAFE}, "marked on a cluster", "executor"))
    return Drivers(folder, told | on_a_cluster, out + more, died)


def attempts(folder):
    """The digests of what the attempts at each bucket wrote."""
    return [place.read_text().split() for place in (folder / "side").glob("*.attempts")]


def one_answer_for_each_key(folder):
    table = ReleaseTable.open(folder / "table")
    found = table.read(["user", "step"], verify=True).to_pandas()
    assert len(found) == EXPECTED == len(found.drop_duplicates())
    assert {path.name for path in table.data.iterdir()} == {file.name for file in table.committed()}
    assert list(table.attempts.iterdir()) == []


@pytest.mark.parametrize("what", ["raise", "worker"])
def test_a_task_that_dies_after_it_drew_draws_the_same_again(drivers, what):
    assert drivers.told[what] == RELEASED, drivers.out[-2000:]
    made = attempts(drivers.folder / what)
    assert len(made) == 8 and all(len(each) == 2 and len(set(each)) == 1 for each in made)
    one_answer_for_each_key(drivers.folder / what)


def test_an_executor_that_dies_takes_its_shuffle_files_and_changes_nothing(drivers):
    assert drivers.told["executor"] == RELEASED, drivers.out[-2000:]
    made = attempts(drivers.folder / "executor")
    assert len(made) == 8 and all(len(set(each)) == 1 for each in made)
    assert sum(len(each) > 1 for each in made) >= 2
    # A worker outlives its executor, and may write an attempt that nobody reads after the job has cleaned up.
    ReleaseTable.open(drivers.folder / "executor" / "table").clean()
    one_answer_for_each_key(drivers.folder / "executor")


def test_a_frame_that_gives_other_rows_at_another_attempt_fails_the_job(drivers):
    refused = drivers.told["changed"]["refused"]
    assert refused.startswith("frame: got other rows at another attempt; nothing was committed")
    made = attempts(drivers.folder / "changed")
    assert len(made) == 8 and all(len(set(each)) == 2 for each in made)
    table = ReleaseTable.open(drivers.folder / "changed" / "table")
    assert [type(entry).__name__ for entry in table.entries()] == ["Begun", "Abandoned"]
    assert list(table.data.iterdir()) == []


def test_a_driver_that_dies_before_the_commit_leaves_nothing_to_be_read(drivers):
    assert drivers.died == (0, 8)
    assert drivers.told["once more"]["refused"].startswith("table: got turn 1, which ")
    assert drivers.told["abandoned"] == {"rows": EXPECTED, "entry": 4}
    one_answer_for_each_key(drivers.folder / "before commit")


def test_a_driver_that_dies_after_the_commit_has_committed(drivers):
    table = ReleaseTable.open(drivers.folder / "before clean" / "table")
    assert "before clean" not in drivers.told and table.read().num_rows == EXPECTED, drivers.out[-2000:]
    assert len(list(table.attempts.iterdir())) == 8
    table.clean()
    one_answer_for_each_key(drivers.folder / "before clean")


def test_unsafe_settings_of_a_cluster_are_refused_before_the_table_is_touched(drivers):
    refused = drivers.told["unsafe"]["refused"]
    assert refused.startswith("spark: got spark.authenticate is false: anybody in the network can ask for")
    assert not (drivers.folder / "unsafe" / "table").exists()


def shown(drivers, what):
    """Which of all that the drivers wrote down has a user, a step or a state of a job, or its key."""
    assert drivers.told[what] == RELEASED, drivers.out[-2000:]
    folder = drivers.folder
    marks = json.loads((folder / what / "marks.json").read_text())
    key = json.loads((folder / what / "key.json").read_text())
    written = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("marks.json", "key.json")
    }
    written["output"] = drivers.out.encode()
    sought = [text.encode() for text in (*marks["states"], *marks["users"], *key)] + [bytes.fromhex(key[0])]
    for step in range(marks["step"] + 1, marks["step"] + 7):
        sought += [str(step).encode(), *(struct.pack(f"{end}q", step) for end in "<>")]
    assert any(name.startswith("events/") for name in written)
    assert any(name.startswith("executors/") and name.endswith("/stderr") for name in written)
    for place in ("kept/", "checkpoints/", "pages.json"):
        assert any(name.startswith(f"{what}/{place}") for name in written)
    return {name for name, content in written.items() if any(mark in content for mark in sought)}


#: Files with rows of a job, by where they are.
RELEASED_ROWS, CHECKPOINTS = re.compile("[^/]*/table/data/"), re.compile("[^/]*/checkpoints/")
SHUFFLE, LOCAL = re.compile("[^/]*/kept/.*/shuffle_"), re.compile("[^/]*/kept/.*/rdd_")


def test_nothing_that_is_written_down_shows_a_row_or_the_key(drivers):
    """Sought in logs, the event log, Spark's folders and all pages of its web server.

    Users and steps are published. A folder of checkpoints has rows in
    clear, whatever is set: the page says so, and dphmm puts nothing there.
    """
    found = shown(drivers, "marked on a cluster")
    assert any(map(RELEASED_ROWS.match, found))
    left = {name for name in found if not RELEASED_ROWS.match(name) and not CHECKPOINTS.match(name)}
    assert left == set()


def test_the_search_finds_what_is_not_encrypted(drivers):
    found = shown(drivers, "marked")
    for place in (SHUFFLE, LOCAL, CHECKPOINTS):
        assert any(map(place.match, found)), place.pattern
    assert all(re.match("[^/]*/(table/data|kept|checkpoints)/", name) for name in found), sorted(found)


def test_a_folder_of_checkpoints_is_in_clear_and_dphmm_puts_nothing_there(drivers):
    """Encryption does not reach it: docs/clusters.md must go on saying so."""
    for what in ("marked", "marked on a cluster"):
        assert any(map(CHECKPOINTS.match, shown(drivers, what)))
        assert json.loads((drivers.folder / what / "checkpoints of dphmm").read_text()) == []
    assert "`setCheckpointDir`" in (ROOT / "docs" / "clusters.md").read_text()


#: What a server measures, and what it calls things: times, memory, bytes, addresses.
MEASURED = re.compile(
    r"time|duration|epoch|updated|memory|gc|delay|bytes|port|id$|ids$|jobTags|totalShuffle|resultSize|metrics.\*.value",
    re.IGNORECASE,
)
#: Numbers that Spark gives to columns and plans, and names of the application, of folders and of files.
NUMBERED = re.compile(
    r"#\d+|(plan_id|id)=\d+|local-\d+|marked( otherwise)?/|/data/[\w.-]+"
    r"|\d+(\.\d+)?e?\d* ?(K|M)?i?B\b|:\d{4,5}\b|^\d{5,}$"
    # Folders are cut where a text is long enough, and the two runs' folders differ in length.
    r"|(?<=InMemoryFileIndex).*?(?=, PartitionFilters)"
)


def leaves(value, path=""):
    """The texts and numbers of JSON, each with the names that lead to it."""
    if isinstance(value, dict):
        for name, own in value.items():
            yield from leaves(own, f"{path}.{name}")
    elif isinstance(value, list):
        for own in value:
            yield from leaves(own, f"{path}.*")
    else:
        yield path, value


def rest_of(folder, pages="pages.json"):
    """What the REST interface said of a run, without measures: a list of (address, names, value)."""
    found = []
    for page, content in json.loads((folder / pages).read_text()).items():
        if page.startswith("/api/v1/applications/") and not page.endswith("/threads"):
            for names, value in leaves(json.loads(content)):
                if not MEASURED.search(names):
                    address = re.sub(r"local-\d+|/sql/\d+", "", page)
                    found.append((address, re.sub(r"\.\d+\.", ".", names), NUMBERED.sub("", str(value))))
    return sorted(found)


#: What SQL pages measure that counts rows, or the bytes of rows before they are compressed.
COUNTED = re.compile("number of|records|rows|^data size|data (sent to|returned from) Python", re.IGNORECASE)


def measured(folder, pages):
    """What the SQL pages measured of each operator, of rows alone: a list of (operator, measure, value)."""
    return [
        (node["nodeName"], measure["name"], re.sub(r" ?\(stage [^)]*\)", "", measure["value"]))
        for page, content in json.loads((folder / pages).read_text()).items()
        if re.search(r"/sql/\d+\?", page)
        for node in sorted(json.loads(content)["nodes"], key=lambda node: node["nodeId"])
        for measure in node["metrics"]
        if COUNTED.search(measure["name"])
    ]


@pytest.mark.parametrize(
    ("pages", "operator"),
    [("pages.json", "MapInArrow ReleaseBuckets"), ("pages of counts.json", "MapInArrow WithoutValues")],
)
def test_what_the_web_server_says_is_the_same_for_other_states(drivers, pages, operator):
    """Plans, names of stages, settings, numbers of rows and tasks; not times, memory, and compressed sizes."""
    one, other = (rest_of(drivers.folder / what, pages) for what in ("marked", "marked otherwise"))
    assert len(one) > 1000 and any(operator in value for _, _, value in one)
    assert any(names.endswith("shuffleWriteMetrics.recordsWritten") for _, names, _ in one)
    assert one == other
    one, other = (measured(drivers.folder / what, pages) for what in ("marked", "marked otherwise"))
    assert any(name == "number of output rows" for _, name, _ in one)
    assert one == other
