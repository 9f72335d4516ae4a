"""Several processes on one ledger, stops, forks and clocks: one answer per step, and no cap passed together.

What fails if a transaction could be taken over from a process that only sleeps, if processes that share a cap could
together pass it, if a fork repeated noise, or if anything in a ledger depended on the time of day.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import sys
import time
from collections import defaultdict
from fractions import Fraction

import pytest

from crashes import autopsy, work
from crashes.acquittal import acquitted, run_of
from crashes.checker import Run
from crashes.death import Death
from crashes.trials import COMMANDS, SESSIONS

pytestmark = pytest.mark.slow

KEYED = SESSIONS["session, delta-set, keyed"]
FILE, STREAM = COMMANDS["dphmm release"], COMMANDS["dphmm release -"]
EPSILON = Fraction(work.EPSILON)


@pytest.mark.parametrize("round_", range(2))
@pytest.mark.parametrize("queries", [["state"] * 8, [f"q{k}" for k in range(8)]], ids=["one key", "eight keys"])
def test_eight_processes_never_pass_a_shared_cap(arena, folder, queries, round_):
    """Exactly floor(cap / epsilon) releases in total; two of the eight are killed on the way and started again."""
    cap = Fraction("1.05") + round_ * EPSILON
    rng = random.Random(round_)
    args = [{"folder": folder, "query": query, "cap": str(float(cap)), "again": 20} for query in queries]
    fates = [Death("delay", seconds=rng.uniform(0, 0.1)) if k < 2 else Death() for k in range(8)]
    children = [arena.start("session", fate, **args[k]) for k, fate in enumerate(fates)]
    runs = [run_of(child.finish()) for child in children]
    runs += [run_of(arena.run("session", **args[k])) for k in range(2)]
    assert {run.end for run in runs} <= {"3", "-9"}
    acquitted(runs, folder, {"ann": cap})
    view = autopsy.ledger_view(folder)
    assert sum(row.z is not None for row in view.rows.values()) == cap // EPSILON
    assert view.spent["ann"][0] == cap // EPSILON * EPSILON


@pytest.mark.skipif(sys.platform != "linux", reason="whether a process is stopped is read from /proc")
def test_a_holder_that_is_stopped_and_goes_on(arena, folder):
    """A transaction is a lock, not a lease: nobody takes it over from a stopped process, and its commit counts."""
    holder = arena.start("session", Death("point", n=6, name="COMMIT", signal=signal.SIGSTOP), folder=folder)
    before = holder.wait_for(2)
    holder.wait_until(holder.is_stopped)
    busy = arena.run("session", folder=folder, again=30, timeout=1.0)
    assert busy.code == 4, (busy.code, busy.errors)
    waiting = arena.start("session", folder=folder, again=30)
    time.sleep(1.0)
    holder.send(signal.SIGCONT)
    runs = [run_of(child.finish()) for child in (holder, waiting)]
    assert [run.end for run in runs] == ["0", "0"]
    assert len(runs[0].escapes) > len(before)
    acquitted([run_of(busy), *runs], folder)


def by_process(lines):
    """Runs of a work that forked: its lines by the process that wrote them."""
    lines_of = defaultdict(list)
    for line in lines:
        lines_of[line.partition('"by": ')[2]].append(line)
    return [Run(autopsy.escapes_of(own), "0") for own in lines_of.values()]


def answers_of(view, subject):
    """The answers of a subject after the fork."""
    return [row.z for (who, t, _), row in sorted(view.rows.items()) if who == subject and t > 3]


def test_a_fork_inside_open_sessions(arena, folder):
    """Both processes go on with the same key and get the same answers; their own subjects get noise of their own."""
    ended = arena.run("forked", folder=folder)
    assert ended.code == 0, ended.errors
    runs = by_process(ended.lines)
    assert len(runs) == 2
    acquitted(runs, folder)
    view = autopsy.ledger_view(folder)
    assert len(answers_of(view, "cid")) == 10
    assert answers_of(view, "ann") != answers_of(view, "bob")


def test_words_that_do_not_notice_a_fork_are_found_out(arena, folder):
    """The comparison above can fail: with a plain stream of words both processes draw the same noise."""
    assert arena.run("forked", folder=folder, shared=True).code == 0
    view = autopsy.ledger_view(folder)
    assert answers_of(view, "ann") == answers_of(view, "bob")


def test_the_clock_decides_nothing(arena, tmp_path):
    """Two keyed runs, one under a clock that runs backwards by days: the same bytes of SQL."""
    dumps = []
    for name, limits in (("now", {}), ("then", {"clock": 946_684_800})):
        (tmp_path / name).mkdir()
        ended = arena.run("session", folder=tmp_path / name, limits=limits, **KEYED.args)
        assert ended.code == 0, ended.errors
        connection = sqlite3.connect(tmp_path / name / "ledger.db")
        # A new ledger draws its id from the system, by no clock.
        dumps.append([line for line in connection.iterdump() if "VALUES('id'," not in line])
        connection.close()
    assert dumps[0] == dumps[1]


def test_a_held_ledger_is_exit_4(arena, folder):
    reading, writing = os.pipe()
    holder = arena.start("hold", stdin=reading, folder=folder)
    assert holder.wait_for(1) == ["held"]
    began = time.monotonic()
    for trial in (FILE, STREAM):
        refused = trial.start(arena, folder, Death()).finish()
        assert (refused.code, refused.lines, refused.errors.count("\n")) == (4, [], 1)
    assert time.monotonic() - began < 10
    os.close(writing)
    os.close(reading)
    assert holder.finish().code == 0
    assert FILE.start(arena, folder, Death()).finish().code == 0


def test_a_session_of_a_library_user_beside_a_command(arena, folder):
    """The command's lock is for commands; a session of a program takes turns with them, transaction by transaction."""
    sessions = [arena.start("session", folder=folder, subject=f"s{k}", steps=60) for k in range(2)]
    command = FILE.start(arena, folder, Death())
    ends = [child.finish() for child in (*sessions, command)]
    assert [ended.code for ended in ends] == [0, 0, 0], [ended.errors for ended in ends]
    runs = [run_of(ended) for ended in ends[:2]]
    runs += [Run(rows, "0") for rows in autopsy.escapes_in_files(folder).values()]
    acquitted(runs, folder)
