"""Full disks and failing writes: an error of the disk leaves no step half recorded, shows none, and a retry is safe.

What fails if a release were shown although its commit failed, or if a failed commit were charged without its row.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from crashes import autopsy
from crashes.acquittal import acquitted, ends_as_undisturbed, run_of
from crashes.campaign import learn
from crashes.death import Death
from crashes.syscalls import AVAILABLE
from crashes.trials import COMMANDS, SESSIONS

pytestmark = pytest.mark.slow

KEYED = SESSIONS["session, delta-set, keyed"]
FILE, STREAM = COMMANDS["dphmm release"], COMMANDS["dphmm release -"]
#: Long enough to need another page of the table of releases.
LONG = replace(KEYED, args={**KEYED.args, "steps": 400})
EIO, ENOSPC = 5, 28
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and traces of Linux")
traced = pytest.mark.skipif(not AVAILABLE, reason="system calls are traced on Linux, x86-64 only")


@linux
@pytest.mark.parametrize("limit", [{"pages": 23}, {"file_size": 97_000}, {"file_size": 127_000}])
def test_a_full_disk_stops_a_session_and_lets_nothing_out(arena, folder, limit):
    _, reference = learn(arena, LONG)
    ended = arena.run("session", folder=folder, limits=limit, tries=3, **LONG.args)
    assert ended.code == 1, (ended.code, ended.errors)
    assert ended.errors.startswith("ledger ledger.db: ")
    assert ended.errors.count("\n") == 1
    assert ended.lines
    acquitted([run_of(ended)], folder)
    ends_as_undisturbed(arena, LONG, folder, [run_of(ended)], reference)


@linux
@pytest.mark.parametrize("trial", [FILE, STREAM], ids=["file", "stream"])
def test_a_full_disk_stops_a_command_with_one_line(arena, folder, trial):
    _, reference = learn(arena, trial)
    source = None if trial.stdin is None else folder / trial.stdin
    ended = arena.run("command", stdin=source, folder=folder, limits={"file_size": 107_000}, **trial.args)
    assert (ended.code, ended.errors.count("\n")) == (1, 1), (ended.code, ended.errors)
    assert ended.errors.startswith("error: ")
    assert not (folder / "out" / "released.csv").exists()
    assert list(folder.rglob(".*")) == []
    acquitted([run_of(ended)], folder)
    ends_as_undisturbed(arena, trial, folder, [run_of(ended)], reference)


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 512 kB, where one may be mounted."""
    place = tmp_path / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)]
    if sys.platform != "linux" or os.geteuid() or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system can be mounted by root alone")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_file_system(arena, folder, small_disk):
    """The ledger is on a disk of its own that fills up; moved to a larger one, the work goes on."""
    ended = arena.run("session", folder=small_disk, steps=400, tries=2)
    assert ended.code == 1, (ended.code, ended.errors)
    acquitted([run_of(ended)], small_disk)
    assert len(ended.lines) > 20
    for file in small_disk.iterdir():
        shutil.copy(file, folder)
    again = arena.run("session", folder=folder, steps=400, again=400)
    assert again.code == 0, again.errors
    acquitted([run_of(ended), run_of(again)], folder)


@traced
@pytest.mark.parametrize("error", [EIO, ENOSPC])
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync"])
def test_a_write_that_fails_once(arena, tmp_path, error, call):
    """At any call: either nothing of the step was stored, or it is stored and never drawn again; a retry is safe.

    The session tries a failed step once more in the same process; where opening fails, another process goes on.
    """
    points, reference = learn(arena, KEYED)
    rng = random.Random(error)
    failed = 0
    for k in range(4):
        folder = tmp_path / str(k)
        folder.mkdir()
        death = Death("syscall", n=rng.randint(1, points.calls[call]), calls=(call,), error=error)
        ended = arena.run("session", death, folder=folder, tries=2 + k % 2, **KEYED.args)
        assert ended.code in (0, 1, 2), (death, ended.code, ended.errors)
        assert "Traceback" not in ended.errors
        failed += ended.code != 0
        acquitted([run_of(ended)], folder)
        ends_as_undisturbed(arena, KEYED, folder, [run_of(ended)], reference)
    assert failed < 4


@traced
def test_a_failed_write_is_an_error_when_it_is_not_tried_again(arena, tmp_path):
    """The injected failures do arrive: without a second try they end the session with one line."""
    points, reference = learn(arena, KEYED)
    for k, n in enumerate((points.calls["fdatasync"] // 2, points.calls["fdatasync"] - 5)):
        folder = tmp_path / str(k)
        folder.mkdir()
        ended = arena.run(
            "session", Death("syscall", n=n, calls=("fdatasync",), error=EIO), folder=folder, **KEYED.args
        )
        assert ended.code == 1, (ended.code, ended.errors)
        assert "the database failed" in ended.errors
        acquitted([run_of(ended)], folder)
        ends_as_undisturbed(arena, KEYED, folder, [run_of(ended)], reference)


@traced
@pytest.mark.parametrize("call", ["fsync", "rename", "write"])
def test_a_command_whose_output_cannot_be_written(arena, folder, call):
    """What was committed stays; no half file is left; the same command writes it."""
    _, reference = learn(arena, FILE)
    ended = FILE.start(arena, folder, Death("syscall", n=1, calls=(call,), error=EIO)).finish()
    assert (ended.code, ended.errors.count("\n")) == (1, 1), (ended.code, ended.errors)
    assert not (folder / "out" / "released.csv").exists()
    assert list(folder.rglob(".*")) == []
    ends_as_undisturbed(arena, FILE, folder, [], reference)
    assert not autopsy.judge_files(folder, len(autopsy.escapes_in_files(folder)["released.csv"]))
