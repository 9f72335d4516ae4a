"""dphmm release, of files and of streams, killed and stopped anywhere: ledger, output file and statement agree.

What fails if the output file could hold a row that the ledger does not, if a file or a statement could be seen half
written, or if the same command did not end where an undisturbed one does.
"""

from __future__ import annotations

import random
import signal
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import replace
from itertools import count

import pytest

from crashes import autopsy, world
from crashes.autopsy import judge_files, statement_is_of
from crashes.campaign import KINDS, campaign, die_once, learn, releases
from crashes.checker import Run, judge, judge_final
from crashes.death import Death
from crashes.syscalls import AVAILABLE
from crashes.trials import COMMANDS

pytestmark = pytest.mark.slow

KILLS = 6
ROWS = sum(len(world.observed(user)) for user in world.USERS)
FILE = COMMANDS["dphmm release"]
linux = pytest.mark.skipif(sys.platform != "linux", reason="whether a process is stopped is read from /proc")
traced = pytest.mark.skipif(not AVAILABLE, reason="system calls are traced on Linux, x86-64 only")


@pytest.mark.parametrize("name", COMMANDS)
def test_killed_at_random_and_resumed(arena, name):
    verdict = campaign(arena, COMMANDS[name], KILLS, seed=31)
    assert not verdict.findings, verdict.findings
    assert verdict.kills >= KILLS
    assert verdict.keys > 0
    assert set(verdict.by_kind) == set(KINDS)


@traced
def test_killed_around_the_appearance_of_each_file(arena):
    """Before and after each rename, and at what is written, synchronised and unlinked on the way to it."""
    points, reference = learn(arena, FILE)
    # The released rows, their statement, the counts for the owner; model, policy and record of the ledger before them;
    # the distinct plans after them; the index where the folder is made, and where the public side, the rows and the
    # plans are in it.
    assert points.calls["rename"] == 11
    for name in ("rename", "chmod", "fsync", "unlink", "write"):
        for n in range(1, points.calls[name] + 1, 4 if name in ("write", "unlink") else 1):
            die_once(arena, FILE, Death("syscall", n=n, calls=(name,)), reference)


@traced
def test_between_file_and_statement_a_reader_can_tell(arena, folder):
    """The file appears before its statement. Killed between them after new rows came, the old statement is left: it
    names the hash of another file, and the next run replaces it.
    """
    walks = folder / "walks.csv"
    whole = walks.read_text()
    walks.write_text(whole.rpartition("cid,")[0])
    assert FILE.start(arena, folder, Death()).finish().code == 0
    assert statement_is_of(folder / "out" / "released.csv")
    walks.write_text(whole)
    # After the index of the public side, the record of the ledger and the rows.
    died = FILE.start(arena, folder, Death("syscall", n=4, calls=("rename",))).finish()
    assert died.code == -9
    assert not statement_is_of(folder / "out" / "released.csv")
    assert judge_files(folder, ROWS).count("file") == 1
    assert FILE.start(arena, folder, Death()).finish().code == 0
    assert not judge_files(folder, ROWS)


def stopped(arena, folder, trial, number, seconds):
    """A command that gets a signal some time after it has opened its ledger."""
    log = folder / "ledger.db-wal"
    if log.exists():
        # Killed like any process after its work was done, the one before has left its log to whoever opens the ledger.
        with closing(sqlite3.connect(folder / "ledger.db")) as ledger:
            ledger.execute("SELECT count(*) FROM sqlite_master").fetchone()
    assert not log.exists()
    child = trial.start(arena, folder, Death())
    child.wait_until(log.exists)
    child.read(time.monotonic() + seconds)
    child.send(number)
    return child.finish()


def runs_to_its_end(trial, folder, ended):
    """Whether everything that it publishes is there."""
    if trial.files:
        return (folder / "out" / "released.csv.privacy.json").exists()
    return len(ended.lines) == ROWS


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stopped_at_random(arena, folder, name, number, code):
    """One line says what was kept; nothing half done is left; the same command goes on."""
    trial = COMMANDS[name]
    points, reference = learn(arena, trial)
    rng = random.Random(int(number))
    runs, codes = [], []
    for _ in range(4):
        ended = stopped(arena, folder, trial, number, rng.uniform(0, points.seconds / 2))
        done = runs_to_its_end(trial, folder, ended)
        # Once it is done, its handlers are gone, and a signal finds an ordinary Python process.
        assert ended.code in ({code, 0, -number, 70} if done else {code}), (ended.code, ended.errors)
        codes.append(ended.code)
        runs.append(Run(autopsy.escapes_of(ended.lines), str(ended.code)))
        if ended.code == code:
            assert ended.errors.count("\n") == 1, ended.errors
            assert ended.errors.startswith("interrupted"), ended.errors
            assert not (folder / "ledger.db-wal").exists(), "who stops in order closes the ledger"
        assert list(folder.rglob(".*")) == []
        assert not judge(runs, autopsy.ledger_view(folder))
        assert not judge_files(folder, ROWS)
    assert code in codes
    ended = trial.start(arena, folder, Death()).finish()
    assert ended.code == 0, ended.errors
    assert not judge_final(autopsy.ledger_view(folder), reference, answers=False)
    assert len(releases(reference)) == ROWS


OPENING = ["connection.py:watch", "connection.py:connect", "sqlite.py:_make_ready", "sqlite.py:__enter__"]
CLOSING = ["sqlite.py:__exit__", "sqlite.py:close", "sqlite.py:_drop_connections"]


@pytest.mark.parametrize("function", [*OPENING, *CLOSING])
def test_stopped_while_the_ledger_opens_or_closes(arena, folder, function):
    """At every place there where Python looks for signals: no log is left to whoever comes next."""
    for n in count(1):
        death = Death("call", n=n, name=f"ledger/{function}", signal=signal.SIGINT)
        ended = FILE.start(arena, folder, death).finish()
        if ended.code == 0:
            break
        assert (ended.code, ended.errors.count("\n")) == (130, 1), ended.errors
        assert not (folder / "ledger.db-wal").exists(), (function, n)
    assert n > 1, "nothing was stopped there"


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stopped_at_any_call(arena, tmp_path, name, number, code):
    """Wherever Python may look for signals: the answer is that it was interrupted, and never another error."""
    rng = random.Random(int(number))
    stops = 0
    for n in (rng.randrange(1000, 60_000) for _ in range(20)):
        folder = tmp_path / str(n)
        folder.mkdir()
        world.write_files(folder)
        ended = COMMANDS[name].start(arena, folder, Death("call", n=n, signal=number)).finish()
        if runs_to_its_end(COMMANDS[name], folder, ended):
            continue
        stops += 1
        assert (ended.code, ended.errors.count("\n")) == (code, 1), (n, ended.errors)
        assert not (folder / "ledger.db-wal").exists(), n
        assert not judge_files(folder, ROWS)
    assert stops >= 8


@traced
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_stopped_at_random_system_calls(arena, number, code):
    points, reference = learn(arena, FILE)
    rng = random.Random(7)
    for _ in range(3):
        death = replace(points.draw("syscall", rng), signal=number)
        die_once(arena, FILE, death, reference, codes=(code,))


@traced
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_file_is_written_whole_or_not_at_all(arena, folder, number):
    """At every system call of the writing of two files. Only a killed process may leave its temporary file behind."""
    seen = folder / "seen.txt"
    calls = ("openat", "write", "fsync", "chmod", "rename", "unlink")
    assert arena.run("save", Death("syscall", calls=calls, seen=str(seen)), folder=folder).code == 0
    files = {path: path.read_bytes() for path in (folder / "model.npz", folder / "policy.json")}
    for n in range(1, len(seen.read_text().split()) + 1):
        ended = arena.run("save", Death("syscall", n=n, calls=calls, signal=number), folder=folder)
        assert ended.code == (-9 if number == signal.SIGKILL else 70), (n, ended.errors)
        assert {path: path.read_bytes() for path in files} == files
        left = list(folder.rglob(".*"))
        assert number == signal.SIGKILL or left == [], n
        for path in left:
            path.unlink()


@traced
@pytest.mark.long
def test_terminated_at_each_opening_of_a_file(arena, folder, tmp_path_factory):
    """A temporary file that was just made is taken away too."""
    seen = folder / "seen.txt"
    FILE.start(arena, folder, Death("syscall", calls=("openat",), seen=str(seen))).finish()
    for n in range(1, len(seen.read_text().split()) + 1):
        place = tmp_path_factory.mktemp("terminated")
        FILE.prepare(place)
        ended = FILE.start(arena, place, Death("syscall", n=n, calls=("openat",), signal=signal.SIGTERM)).finish()
        assert ended.code == 143, (n, ended.errors)
        assert list(place.rglob(".*")) == [], n


@linux
def test_the_second_command_of_a_batch_is_told_to_wait(arena, folder):
    """Exit 4 at once, as long as the first one lives; a killed one holds nothing."""
    holder = arena.start("command", Death("point", n=3, name="COMMIT", signal=signal.SIGSTOP), folder=folder,
                         **FILE.args)  # fmt: skip
    holder.wait_until(holder.is_stopped)
    for _ in range(2):
        second = FILE.start(arena, folder, Death()).finish()
        assert second.code == 4
        assert second.errors.count("\n") == 1
        assert "ledger.db" in second.errors
        assert not (folder / "out" / "released.csv").exists()
    holder.send(signal.SIGKILL)
    assert holder.finish().code == -9
    assert FILE.start(arena, folder, Death()).finish().code == 0
    assert not judge_files(folder, ROWS)
