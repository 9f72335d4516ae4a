"""A driver of its own, whose tasks or which itself dies on purpose: ``python -m spark.driver FOLDER SESSIONS``.

SESSIONS is a JSON list of [master, settings, what]: one session after the other does what is listed, in one process,
as a Java machine takes long to start. WHAT has FOLDER/WHAT for its own: its release table is table in it. Every attempt
of a task leaves side/BUCKET.attempts: a line for each attempt with the SHA-256 of the file that it wrote. What escapes
is one line of JSON a job: what it was, and how it ended. Jobs that are "marked" have users, steps and states that
nobody else names (FOLDER/WHAT/marks.json). They leave what Spark's web server showed in pages.json, after countings in
pages of counts.json; what its folders held in kept, and what its checkpoints did in checkpoints.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
import os
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dphmm
import dphmm.spark.batch
from dphmm.accounting import MemoryLedger
from dphmm.errors import DphmmError
from dphmm.samplers.entropy import JobKey, _secret_of
from dphmm.spark.bucket import ReleaseBuckets
from dphmm.storage.commit_log import Committed
from dphmm.storage.release_table import ReleaseTable
from spark.web_pages import everything
from spark.worlds import WORLD, people, rows


@dataclass(frozen=True)
class DiesOnce:
    """A task that dies in its first attempt, after it has drawn and written its file."""

    inner: ReleaseBuckets
    folder: str
    how: str

    def __call__(self, batches: Any) -> Any:
        import pyarrow as pa

        table = list(batches)
        if not table:
            return
        number = table[0].column("bucket").to_pylist()[0]
        place = Path(self.folder) / "side" / f"{number}.attempts"
        first = not place.exists()
        if self.how == "changed" and not first:
            column = pa.array(["a"] * len(table[0]))
            at = table[0].schema.names.index("state")
            table[0] = pa.RecordBatch.from_arrays(
                [column if j == at else own for j, own in enumerate(table[0].columns)], names=table[0].schema.names
            )
        found = list(self.inner(table))
        told = json.loads(found[0].column("outcome").to_pylist()[0])
        file = Path(self.folder) / "table" / "data" / told["file"]["name"]
        with place.open("a") as side:
            side.write(hashlib.sha256(file.read_bytes()).hexdigest() + "\n")
        if first:
            self._die(number)
        yield from found

    def _die(self, number: int) -> None:
        if self.how in ("raise", "changed"):
            raise OSError(28, "no space left on device")
        if self.how == "worker":
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "executor" and number % 4 == 0:
            # The parent of this worker is Python's daemon, and its parent the executor.
            os.kill(_parent(os.getppid()), signal.SIGKILL)
        if self.how == "slow" or (self.how == "one slow" and number == 0):
            time.sleep(600)


def _parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def _dies(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _marked(folder: Path, what: str, table: Any) -> tuple[Any, Any, JobKey]:
    """The same with users, steps and states that are sought afterwards, and a key that is written down to be sought."""
    marks = json.loads((folder / "marks.json").read_text())
    space = dphmm.StateSpace(np.arange(len(marks["states"]))[:, None], names=marks["states"])
    key = JobKey.new()
    own = _secret_of(key).copied()
    (folder / "key.json").write_text(json.dumps([own.hex(), base64.b64encode(own).decode()]))
    states = ["abcdef".index(each) for each in table["state"]]
    if what == "marked otherwise":
        states = [(state * row + row) % len(marks["states"]) for row, state in enumerate(states)]
    named = {user: marks["users"][number] for number, user in enumerate(people(60))}
    table = table.assign(
        user=[named[user] for user in table["user"]],
        step=table["step"] + marks["step"],
        state=[marks["states"][state] for state in states],
    )
    return table, (*WORLD[:2], space), key


def _shown_elsewhere(spark: Any, folder: Path, frame: Any, space: Any) -> None:
    """Keep pages of the web server, of a release and of countings, and what Spark wrote of blocks and checkpoints."""
    from pyspark import StorageLevel

    (folder / "pages.json").write_text(json.dumps(everything(spark)))
    dphmm.spark.count_transitions(frame, space, max_length=6)
    answer = {"states": ",".join(space.names), "times": 9, "ledger": MemoryLedger(), "event_id": "one"}
    dphmm.spark.histogram(frame, "independent", 1, **answer)
    (folder / "pages of counts.json").write_text(json.dumps(everything(spark)))
    # What Spark keeps of frames because somebody says so: the caller, never dphmm.
    spark.sparkContext.setCheckpointDir(str(folder / "checkpoints"))
    dphmm.spark.count_transitions(frame, space, max_length=6)
    made = [path for path in (folder / "checkpoints").rglob("*") if path.is_file()]
    (folder / "checkpoints of dphmm").write_text(json.dumps([str(path) for path in made]))
    local = frame.localCheckpoint(True, StorageLevel.DISK_ONLY)
    frame.checkpoint()
    # Spark deletes its folders when it stops.
    _copy(folder.parent / "spill", folder / "kept")
    assert local.count() == frame.count()


def _copy(there: Path, to: Path) -> None:
    """Copy the files of a folder. Spark goes on deleting what it no longer needs: what is gone by now is left out."""
    for place, _, names in os.walk(there):
        own = to / Path(place).relative_to(there)
        own.mkdir(parents=True)
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(Path(place) / name, own / name)


#: Two tables each, which differ in what one person does, and not in how many rows there are.
EDGES = [(a, b) for a in range(9) for b in range(a)] + [(a, a + 10) for a in range(30)]
NEIGHBOURS = {
    "degrees": [EDGES + [(70, other if there else 70) for other in (0, 1, 1, 39)] for there in (False, True)],
    "rows": [
        [(user, step, "a" if there or user else "z") for user in range(9) for step in range(5)] for there in (0, 1)
    ],
}
CAP = 9


def _neighbours(spark: Any) -> None:
    """Count both tables of each kind, each counting under a description of its own."""
    space = dphmm.StateSpace.categories(["a", "b"])
    for there in (0, 1):
        edges = spark.createDataFrame(NEIGHBOURS["degrees"][there], "a long, b long").repartition(2)
        named = edges.selectExpr("concat('ann', a) AS a", "concat('ann', b) AS b")
        table = spark.createDataFrame(NEIGHBOURS["rows"][there], "user long, step long, state string").repartition(2)
        for level in ("edge", "node"):
            spark.sparkContext.setJobDescription(f"{there} degrees {level}")
            told = {"event_id": "one", "level": level, "cap": CAP}
            dphmm.spark.degrees(edges, "independent", 1, ledger=MemoryLedger(), people=100, **told)
            spark.sparkContext.setJobDescription(f"{there} names {level}")
            people = [f"ann{k}" for k in range(100)]
            dphmm.spark.degrees(named, "independent", 1, ledger=MemoryLedger(), people=people, **told)
        spark.sparkContext.setJobDescription(f"{there} transitions")
        dphmm.spark.count_transitions(table, space, max_length=6)
        spark.sparkContext.setJobDescription(f"{there} histogram")
        told = {"states": "a,b", "times": 9, "ledger": MemoryLedger(), "event_id": "one"}
        dphmm.spark.histogram(table, "independent", 1, **told)


def _on_and_on(spark: Any, folder: Path) -> None:
    """Release more and more steps, until somebody ends it."""
    last = 0
    while True:
        last += 1
        frame = spark.createDataFrame(rows(last, people(40), 1, last)).repartition(3)
        _released(folder, "on and on", frame, WORLD, resume=True)


def _released(folder: Path, what: str, frame: Any, world: Any, **options: Any) -> None:
    """Release a frame, and tell how it ended."""
    try:
        found = dphmm.spark.release(frame, *world, 1, into=folder / "table", buckets=8, **options)
        # Spark packs files that it reads by their size, which follows from the published answers. Read elsewhere, that
        # is no part of what a marked job shows.
        rows = _rows_of(folder / "table") if what.startswith("marked") else found.table().count()
        told = {"rows": rows, "entry": found.entry}
    except DphmmError as error:
        told = {"refused": str(error)}
    except Exception as error:
        told = {"failed": type(error).__name__}
    print("TOLD " + json.dumps({"what": what, **told}), flush=True)


def _rows_of(table: Path) -> int:
    """How many rows the files have that a table commits."""
    import pyarrow.parquet as pq

    jobs = [entry for entry in ReleaseTable.open(table).entries() if isinstance(entry, Committed)]
    names = [file.name for job in jobs for file in job.files]
    return sum(pq.read_metadata(table / "data" / name).num_rows for name in names)


def session(master: str, settings: dict[str, str]) -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.liveUpdate.period", "0")
        .config("spark.sql.shuffle.partitions", "4")
        # No second compilation of Java that is soon done.
        .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.executor.extraJavaOptions", "-XX:TieredStopAtLevel=1")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.execution.pyspark.udf.hideTraceback.enabled", "true")
    )
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _does(spark: Any, folder: Path, what: str) -> None:
    """One job. What it replaces stays so where this process dies of it, and is put back elsewhere."""
    (folder / "side").mkdir(parents=True, exist_ok=True)
    plain = dphmm.spark.batch.ReleaseBuckets
    if what in ("raise", "worker", "executor", "changed", "slow", "one slow"):
        dphmm.spark.batch.ReleaseBuckets = lambda job, key: DiesOnce(plain(job, key), str(folder), what)
    if what == "before commit":
        dphmm.spark.batch._commit = _dies
    if what == "before clean":
        dphmm.spark.batch.ReleaseTable.clean = _dies
    table, world, key = rows(1, people(60), 1, 6), WORLD, None
    if what.startswith("marked"):
        table, world, key = _marked(folder, what, table)
    frame = spark.createDataFrame(table).repartition(3)
    try:
        _released(folder, what, frame, world, key=key)
        if what == "once more":
            ReleaseTable.open(folder / "table").abandon_open(force=True)
            _released(folder, "abandoned", frame, world)
    finally:
        dphmm.spark.batch.ReleaseBuckets = plain
    if what.startswith("marked"):
        _shown_elsewhere(spark, folder, frame, world[2])


def _logs_of_executors(spark: Any, folder: Path) -> None:
    """Move what executors on a local cluster wrote down from where Spark is installed."""
    import pyspark

    own = Path(pyspark.__file__).parent / "work" / spark.sparkContext.applicationId
    if own.exists():
        shutil.move(own, folder / "executors")


def main(folder: Path, sessions: list[Any]) -> None:
    for master, settings, whats in sessions:
        spark = session(master, settings)
        for what in whats:
            if what == "on and on":
                _on_and_on(spark, folder)
            if what == "neighbours":
                _neighbours(spark)
                continue
            # A driver that died has left a table, which another one finds.
            _does(spark, folder / ("before commit" if what == "once more" else what), what)
        _logs_of_executors(spark, folder)
        spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
