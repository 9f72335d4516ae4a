"""A cluster on which tasks, executors and drivers die: what can be read has one answer for each key, or nothing.

Each test runs a driver of its own. What attempts wrote is compared by its bytes: equal, whichever of them is taken.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

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
EXPECTED = len(rows(1, people(60), 1, 6))


def drive(folder, what, master="local[2,4]", settings=None):
    """How a driver of its own ended: what it told (None where it died), and all that it printed."""
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
        "DPHMM_MASTER": master,
        "DPHMM_SETTINGS": json.dumps({**(settings or {}), "spark.sql.warehouse.dir": str(folder / "warehouse")}),
    }
    done = subprocess.run(
        [sys.executable, "-m", "spark.driver", str(folder), what],
        env=environment,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
    )
    told = [line.removeprefix("TOLD ") for line in done.stdout.splitlines() if line.startswith("TOLD ")]
    return json.loads(told[0]) if told else None, done.stdout


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
def test_a_task_that_dies_after_it_drew_draws_the_same_again(tmp_path, what):
    told, _ = drive(tmp_path, what)
    assert told == {"rows": EXPECTED, "entry": 2}
    made = attempts(tmp_path)
    assert len(made) == 8 and all(len(each) == 2 and len(set(each)) == 1 for each in made)
    one_answer_for_each_key(tmp_path)


def test_an_executor_that_dies_takes_its_shuffle_files_and_changes_nothing(tmp_path):
    told, out = drive(tmp_path, "executor", master="local-cluster[2,1,1024]", settings=SAFE)
    assert told == {"rows": EXPECTED, "entry": 2}, out[-2000:]
    made = attempts(tmp_path)
    assert len(made) == 8 and all(len(set(each)) == 1 for each in made)
    assert sum(len(each) > 1 for each in made) >= 2
    one_answer_for_each_key(tmp_path)


def test_a_frame_that_gives_other_rows_at_another_attempt_fails_the_job(tmp_path):
    told, _ = drive(tmp_path, "changed")
    assert told["refused"].startswith("frame: got other rows at another attempt; nothing was committed")
    assert all(len(set(each)) == 2 for each in attempts(tmp_path))
    table = ReleaseTable.open(tmp_path / "table")
    assert [type(entry).__name__ for entry in table.entries()] == ["Begun", "Abandoned"]
    assert list(table.data.iterdir()) == []


def test_a_driver_that_dies_before_the_commit_leaves_nothing_to_be_read(tmp_path):
    told, _ = drive(tmp_path, "before commit")
    table = ReleaseTable.open(tmp_path / "table")
    assert told is None and table.read().num_rows == 0 and len(list(table.data.iterdir())) == 8
    told, _ = drive(tmp_path, "nothing")
    assert told["refused"].startswith("table: got turn 1, which ")
    table.abandon_open(force=True)
    told, _ = drive(tmp_path, "nothing")
    assert told == {"rows": EXPECTED, "entry": 4}
    one_answer_for_each_key(tmp_path)


def test_a_driver_that_dies_after_the_commit_has_committed(tmp_path):
    told, _ = drive(tmp_path, "before clean")
    table = ReleaseTable.open(tmp_path / "table")
    assert told is None and table.read().num_rows == EXPECTED
    assert len(list(table.attempts.iterdir())) == 8
    table.clean()
    one_answer_for_each_key(tmp_path)


def test_unsafe_settings_of_a_cluster_are_refused_before_the_table_is_touched(tmp_path):
    told, _ = drive(tmp_path, "nothing", master="local-cluster[1,1,1024]")
    assert told["refused"].startswith("spark: got spark.authenticate is false: anybody in the network can ask for")
    assert not (tmp_path / "table").exists()


#: Shuffle files as they are, where they are not encrypted.
PLAIN = {"spark.shuffle.compress": "false", "spark.eventLog.compress": "false", "spark.eventLog.enabled": "true"}


def marked(folder, master, settings):
    """Release states and users that nobody else names; where their names, or the key, were written down."""
    marks = [secrets.token_hex(8) for _ in range(6)]
    (folder / "marks.json").write_text(json.dumps(marks))
    (folder / "events").mkdir()
    settings = {**PLAIN, **settings, "spark.eventLog.dir": f"file://{folder / 'events'}"}
    told, out = drive(folder, "marked", master=master, settings=settings)
    assert told == {"rows": EXPECTED, "entry": 2}, out[-2000:]
    key = json.loads((folder / "key.json").read_text())
    written = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name not in ("marks.json", "key.json")
    }
    written["output"] = out.encode()
    sought = [text.encode() for text in (*marks, *key)] + [bytes.fromhex(key[0])]
    assert any(name.startswith("events/") for name in written) and any("shuffle" in name for name in written)
    return {name for name, content in written.items() if any(mark in content for mark in sought)}


def test_nothing_that_is_written_down_shows_a_state_or_the_key(tmp_path):
    """Sought in logs, the event log and Spark's folders; estimates, which are public, are names of states, too."""
    found = marked(tmp_path, "local-cluster[2,1,1024]", SAFE)
    assert found and all(name.startswith("table/data/") for name in found), sorted(found)


def test_the_search_finds_what_is_not_encrypted(tmp_path):
    found = marked(tmp_path, "local[2]", {})
    assert any("shuffle" in name for name in found)
    assert not any(name.startswith("events/") or name == "output" for name in found)
