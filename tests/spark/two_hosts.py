"""A slow task and its copy on two hosts: ``PYTHONPATH=src:tests .venv-spark/bin/python -m spark.two_hosts``.

A standalone cluster has a worker on 127.0.0.1 and one on 127.0.0.2: Spark runs a second attempt at a task on another
host only. The first attempt at one bucket draws, writes its file and goes to sleep. The second one must write the same
bytes, and the table must have one answer for each key.

Exit 1 where something else came out. It takes one to four minutes.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from spark.test_faults import RELEASED, ROOT, SAFE, drive, one_answer_for_each_key

HOSTS = ("127.0.0.1", "127.0.0.2")
SPECULATIVE = {
    "spark.speculation": "true",
    "spark.speculation.interval": "100ms",
    "spark.speculation.minTaskRuntime": "100ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.5",
    "spark.executor.memory": "512m",
    "spark.driver.host": HOSTS[0],
}


def free_port() -> int:
    """A port of the first host that nobody has."""
    with socket.socket() as found:
        found.bind((HOSTS[0], 0))
        return int(found.getsockname()[1])


def started(folder: Path, name: str, *call: str) -> subprocess.Popen[bytes]:
    """A part of the cluster, which logs to a file of its name."""
    import pyspark

    home = Path(pyspark.__file__).parent
    environment = {
        **os.environ,
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")]),
        "SPARK_LOCAL_DIRS": str(folder / "spill"),
    }
    environment.pop("SPARK_LOCAL_IP", None)
    with (folder / f"{name}.log").open("w") as log:
        settings = ["--properties-file", str(folder / "spark.conf"), "--webui-port", "0"]
        whole = [str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{call[0]}", *settings, *call[1:]]
        return subprocess.Popen(whole, env=environment, stdout=log, stderr=log)


def campaign(folder: Path) -> None:
    """Release once. Raises AssertionError for attempts that differ, and for a table without one answer for each key."""
    (folder / "spark.conf").write_text("".join(f"{name} {value}\n" for name, value in SAFE.items()))
    (whole := folder / "job").mkdir()
    job = whole / "one slow"
    port = free_port()
    parts = [started(folder, "master", "master.Master", "--host", HOSTS[0], "--port", str(port))]
    try:
        master = f"spark://{HOSTS[0]}:{port}"
        for host in HOSTS:
            options = ("--host", host, "--cores", "2", "--memory", "1g", "--work-dir", str(folder / host))
            parts.append(started(folder, host, "worker.Worker", *options, master))
        told, out = drive(whole, (master, {**SAFE, **SPECULATIVE}, "one slow"))
    finally:
        for part in reversed(parts):
            part.terminate()
        for part in parts:
            part.wait(30)
    assert told == {"one slow": RELEASED}, out[-2000:]
    assert all(list((folder / host).glob("app-*/*/stderr")) for host in HOSTS), "one host had no executor"
    made = {place.stem: place.read_text().split() for place in (job / "side").glob("*.attempts")}
    assert len(made["0"]) == 2, "there was no second attempt"
    assert len(made) == 8 and all(len(set(each)) == 1 for each in made.values()), "attempts wrote different files"
    # What an attempt that was killed left is deleted by the commit, or by whoever cleans next.
    one_answer_for_each_key(job)


def main() -> None:
    """Run it and print how long it took."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        campaign(Path(folder))
        print(f"two attempts on two hosts, equal bytes, one answer for each key, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
