"""Random kills while jobs release into one table: ``PYTHONPATH=src:tests .venv-spark/bin/python -m spark.kills``.

A driver on a local cluster releases more and more steps of some users into one table, job after job. At random moments
a Python worker, an executor or the driver is killed; a driver that died is followed by another one. Two of three kills
wait until a job has committed since the last one: otherwise no job would come so far. Whenever the
table is read, every key that it ever showed must have the answer that it had, no key two of them, and the ledger of
its rows must be whole. The kills are random by ``--seed``, their moments are not.

Exit 1 where something else came out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

from dphmm.storage.release_table import ReleaseTable
from dphmm.storage.table_ledger import ledger_of
from spark.test_faults import CLUSTER, ROOT, SAFE
from spark.worlds import people

USERS = people(40)
#: Spark gives up after so many failures, which here are ours.
PATIENT = {
    "spark.task.maxFailures": "50",
    "spark.stage.maxConsecutiveAttempts": "50",
    "spark.deploy.maxExecutorRetries": "-1",
}


def started(folder: Path) -> subprocess.Popen[bytes]:
    """A driver that releases until it is killed."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")]),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder / "spill"),
    }
    settings = {**SAFE, **PATIENT, "spark.sql.warehouse.dir": str(folder / "warehouse")}
    sessions = json.dumps([(CLUSTER, settings, ["on and on"])])
    call = [sys.executable, "-m", "spark.driver", str(folder), sessions]
    with (folder / "told").open("a") as told:
        return subprocess.Popen(
            call, env=environment, cwd=ROOT, stdout=told, stderr=subprocess.DEVNULL, start_new_session=True
        )


def committed(folder: Path) -> int:
    """How many jobs have told their entry in the log."""
    return (folder / "told").read_text().count('"entry"')


def below(pid: int) -> dict[str, list[int]]:
    """The processes of a driver by what they are."""
    parents, lines = {}, {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            try:
                parents[int(place.name)] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
                lines[int(place.name)] = (place / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
    mine, found = {pid}, True
    while found:
        found = {child for child, parent in parents.items() if parent in mine} - mine
        mine |= found
    executors = [one for one in mine if "CoarseGrainedExecutorBackend" in lines.get(one, "")]
    workers = [one for one in mine if "pyspark.daemon" in lines.get(one, "") and parents[one] not in executors]
    return {"executor": executors, "worker": workers, "driver": [pid]}


class Checker:
    """What the table has shown so far."""

    def __init__(self, folder: Path) -> None:
        self.path, self.seen = folder / "table", dict[tuple[str, int], tuple[float, ...]]()

    def look(self) -> None:
        """Read the table. Raises AssertionError for a second answer, a lost one, or a ledger that is not whole."""
        table = ReleaseTable.open(self.path)
        # Once: a job may commit between two looks.
        parts = [("state", pq.read_table(path)) for path in table.paths(verify=True)]
        rows = [row for _, part in parts for row in part.select(["user", "step", "z_0"]).to_pylist()]
        found = {(row["user"], row["step"]): (row["z_0"],) for row in rows}
        assert len(found) == len(rows), "two answers of one key"
        assert [(key, z) for key, z in self.seen.items() if found.get(key) != z] == [], "an answer changed, or is gone"
        self.seen = found
        ledger = ledger_of(parts, USERS)
        stored = [
            (key[0], entry.t) for key in ledger.sessions() for entry in ledger.entries(*key) if entry.z is not None
        ]
        assert sorted(stored) == sorted(found), "the ledger has other answered steps"


def _wait_for_a_job(folder: Path) -> None:
    """Until another job has committed, or a minute has gone."""
    before, began = committed(folder), time.monotonic()
    while committed(folder) == before and time.monotonic() - began < 60:
        time.sleep(0.1)


def campaign(folder: Path, times: int, seed: int) -> Counter[str]:
    """Kill so many times; how often what was killed."""
    chance, checker, killed = random.Random(seed), Checker(folder), Counter[str]()
    driver = started(folder)
    try:
        while sum(killed.values()) < times:
            if chance.random() < 2 / 3:
                _wait_for_a_job(folder)
            time.sleep(chance.uniform(0.1, 4.0))
            kind = chance.choices(["worker", "executor", "driver"], [5, 3, 1])[0]
            kinds = below(driver.pid)
            if not kinds["executor"] or not kinds[kind]:
                assert driver.poll() is None, "the driver ended by itself"
                continue
            if kind == "driver":
                # It and its Java process; executors see that it is gone.
                os.killpg(driver.pid, signal.SIGKILL)
            else:
                os.kill(chance.choice(kinds[kind]), signal.SIGKILL)
            killed[kind] += 1
            if (folder / "table" / "log").exists():
                checker.look()
            print(
                f"{sum(killed.values()):3}: {kind}, {committed(folder)} jobs, {len(checker.seen)} answers", flush=True
            )
            if kind == "driver":
                driver.wait()
                ReleaseTable.open(folder / "table").abandon_open(force=True)
                driver = started(folder)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    checker.look()
    jobs = committed(folder)
    assert jobs >= times / 4, f"{jobs} jobs committed: too few to say anything"
    print(f"{jobs} jobs committed, {len(checker.seen)} answers were shown")
    return killed


def main() -> None:
    """Run a campaign and print what was killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        killed = campaign(Path(folder), given.times, given.seed)
        print(f"{given.times} kills ({dict(killed)}), 0 violations, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
