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


def test_nothing_that_is_written_down_shows_a_state_or_the_key(tmp_path):
    """Names of states and users that nobody else writes, sought in logs, the event log and Spark's folders."""
    marks = [secrets.token_hex(8) for _ in range(6)]
    (tmp_path / "marks.json").write_text(json.dumps(marks))
    (tmp_path / "events").mkdir()
    settings = {
        **SAFE,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": f"file://{tmp_path / 'events'}",
        "spark.eventLog.compress": "false",
    }
    told, out = drive(tmp_path, "marked", master="local-cluster[2,1,1024]", settings=settings)
    assert told == {"rows": EXPECTED, "entry": 2}, out[-2000:]
    assert any((tmp_path / "events").iterdir())
    key = json.loads((tmp_path / "key.json").read_text())
    sought = [text.encode() for text in (*marks, *key)] + [bytes.fromhex(key[0])]
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path.name not in ("marks.json", "key.json")]
    places = [path for path in kept if "table/data" not in str(path)]
    assert len(places) > 3
    for mark in sought:
        assert mark not in out.encode()
        assert [str(path) for path in places if mark in path.read_bytes()] == []
