"""A driver of its own, whose tasks or which itself dies on purpose: ``python -m spark.driver FOLDER WHAT``.

FOLDER/table is the release table. Every attempt of a task leaves FOLDER/side/BUCKET.attempts: a line for each attempt
with the SHA-256 of the file that it wrote. What escapes is one line of JSON a job: how it ended.
"""

from __future__ import annotations

import base64
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
from dphmm.errors import DphmmError
from dphmm.samplers.keyed import JobKey, _secret_of
from dphmm.spark.bucket import ReleaseBuckets
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


def _marked(folder: Path, table: Any) -> tuple[Any, Any, JobKey]:
    """The same with names of states that are sought afterwards, and a key that is written down to be sought, too."""
    marks = json.loads((folder / "marks.json").read_text())
    space = dphmm.StateSpace(np.arange(len(marks))[:, None], names=marks)
    key = JobKey.new()
    own = _secret_of(key).copied()
    (folder / "key.json").write_text(json.dumps([own.hex(), base64.b64encode(own).decode()]))
    return table.assign(state=[marks["abcdef".index(each)] for each in table["state"]]), (*WORLD[:2], space), key


def _on_and_on(spark: Any, folder: Path) -> None:
    """Release more and more steps, until somebody ends it."""
    last = 0
    while True:
        last += 1
        frame = spark.createDataFrame(rows(last, people(40), 1, last)).repartition(3)
        try:
            found = dphmm.spark.release(frame, *WORLD, 1, into=folder / "table", buckets=8, resume=True)
            told = {"entry": found.entry}
        except DphmmError as error:
            told = {"refused": str(error)}
        except Exception as error:
            told = {"failed": type(error).__name__}
        print("TOLD " + json.dumps(told), flush=True)


def session() -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master(os.environ["DPHMM_MASTER"])
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "4")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.execution.pyspark.udf.hideTraceback.enabled", "true")
    )
    for name, value in json.loads(os.environ.get("DPHMM_SETTINGS", "{}")).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def main(folder: Path, what: str) -> None:
    (folder / "side").mkdir(exist_ok=True)
    spark, plain = session(), dphmm.spark.batch.ReleaseBuckets
    if what in ("raise", "worker", "executor", "changed", "slow", "one slow"):
        dphmm.spark.batch.ReleaseBuckets = lambda job, key: DiesOnce(plain(job, key), str(folder), what)
    if what == "before commit":
        dphmm.spark.batch._commit = _dies
    if what == "before clean":
        dphmm.spark.batch.ReleaseTable.clean = _dies
    if what == "on and on":
        _on_and_on(spark, folder)
    table, world, key = rows(1, people(60), 1, 6), WORLD, None
    if what == "marked":
        table, world, key = _marked(folder, table)
    frame = spark.createDataFrame(table).repartition(3)
    try:
        found = dphmm.spark.release(frame, *world, 1, into=folder / "table", buckets=8, key=key)
        told = {"rows": found.table().count(), "entry": found.entry}
    except DphmmError as error:
        told = {"refused": str(error)}
    except Exception as error:
        told = {"failed": type(error).__name__}
    if what == "marked":
        # Spark deletes its folders when it stops.
        shutil.copytree(folder / "spill", folder / "kept", ignore_dangling_symlinks=True)
    print("TOLD " + json.dumps(told), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
