"""Crashes, forks and other processes: one answer per step, none unspent, no cap passed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

from dphmm.accounting import Caps
from dphmm.errors import LedgerBusy
from dphmm.storage.ledger import open_ledger
from storing import open_all, release, store

PRELUDE = """
import os, random, signal, sys
from fractions import Fraction
from dphmm.accounting import Caps, PlanRecord, Request, SessionHeader
from dphmm.errors import BudgetExceeded, DphmmError, LedgerBusy
from dphmm.storage.ledger import open_ledger
from storing import release, store, store_many
path = sys.argv[1]
def die():
    os.kill(os.getpid(), signal.SIGKILL)
"""


def _paths() -> list[str]:
    """Where a copy of the tree that is being tried has its modules."""
    return os.environ["PYTHONPATH"].split(os.pathsep) if "PYTHONPATH" in os.environ else []


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + code, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *_paths()])},
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.db"


DYING = """
import numpy as np
from dphmm.accounting import Requests
point, t, count = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
starts = {"insert": "INSERT INTO release", "account": "UPDATE account", "commit": "COMMIT"}
ledger = open_ledger(path)
inserts = [0]
def watch(statement):
    inserts[0] += statement.startswith("INSERT INTO release")
    if point in starts and statement.startswith(starts[point]) and (point != "insert" or inserts[0] == min(count, 37)):
        die()
ledger._writer().set_trace_callback(watch)
def draw(*wanted):
    if point == "draw":
        die()
    return np.random.default_rng().integers(0, 10**9, (len(wanted[0]), 1)) if wanted else (random.randrange(10**9),)
steps = np.arange(1, count + 1)
many = Requests("state", ["ann"], [release(1)], steps * 0, steps * 0, steps, steps * 0 + 1)
with ledger.transaction() as transaction:
    if count > 1:
        z = store_many(transaction, many, draw, Caps()).z[:, 0].tolist()
    else:
        z = store(transaction, release(t), draw, Caps()).z
if point == "committed":
    die()
print(*z, flush=True)
die()
"""


@pytest.mark.slow
def test_killed_at_named_points_a_step_has_one_answer_and_is_spent(path: Path) -> None:
    """What escaped the pipe is what was shown: it must be stored, spent, and what a retry returns."""
    points = ["draw", "insert", "account", "commit", "committed", "shown"]
    with open_ledger(path) as ledger:
        open_all(ledger)
    for t, point in enumerate(points * 2, start=1):
        killed = start(DYING, path, point, t, 1)
        shown, errors = killed.communicate()
        assert killed.returncode == -9, errors
        with open_ledger(path) as ledger:
            ledger.check()
            stored = ledger.entries("ann", "state")
            assert len(stored) == (t if point in ("committed", "shown") else t - 1)
            assert bool(shown) == (point == "shown")
            with ledger.transaction() as transaction:
                entry = store(transaction, release(t), lambda: (-1,), Caps())
            assert entry.z is not None
            if shown:
                assert entry.z == (int(shown),)
            assert (entry.z == (-1,)) == (point not in ("committed", "shown"))
            assert ledger.spent("ann").epsilon == Fraction(t, 2)


@pytest.mark.slow
@pytest.mark.replayed_words
def test_killed_at_named_points_many_are_stored_all_or_none(path: Path) -> None:
    with open_ledger(path) as ledger:
        open_all(ledger)
    for point in ("draw", "insert", "account", "commit", "committed", "shown", "shown"):
        killed = start(DYING, path, point, 1, 100)
        shown, errors = killed.communicate()
        assert killed.returncode == -9, errors
        with open_ledger(path) as ledger:
            ledger.check()
            stored = ledger.entries("ann", "state")
            assert len(stored) == (100 if point in ("committed", "shown") else 0)
            assert bool(shown) == (point == "shown")
            if shown:
                assert [entry.z for entry in stored] == [(int(z),) for z in shown.split()]
            assert ledger.spent("ann").epsilon == Fraction(len(stored), 2)


FORKING = """
import gc, threading
ledger = open_ledger(path, timeout=5)
def step(query, t):
    with ledger.transaction() as transaction:
        transaction.open_session(SessionHeader("ann", query, {}))
        return store(transaction, release(t, query=query), lambda: (t,), Caps())
step("parent", 1)
ledger.sessions()
def child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
            gc.collect()
        except BaseException as error:
            print(type(error).__name__, error, flush=True)
            os._exit(1)
        os._exit(0)
    return pid
def inside():
    assert ledger._write is None and ledger._read is None
    for t in range(1, 31):
        step("child", t)
    assert len(ledger.entries("ann", "child")) == 30
pid = child(inside)
for t in range(2, 32):
    step("parent", t)
assert os.waitpid(pid, 0)[1] == 0
ledger.check()
assert len(ledger.entries("ann", "parent")) == 31 and len(ledger.entries("ann", "child")) == 30

# A fork inside a transaction: the child may neither use nor commit nor harm it.
def astray():
    for use in (lambda: step("astray", 1), ledger.sessions, lambda: open_ledger(path)):
        try:
            use()
        except LedgerBusy as error:
            assert "inherited" in str(error), error
        else:
            raise AssertionError("used an inherited connection")
with ledger.transaction() as transaction:
    store(transaction, release(32, query="parent"), lambda: (32,), Caps())
    assert os.waitpid(child(astray), 0)[1] == 0
ledger.check()
# Large enough that SQLite has begun to write it: what the child must not undo in the shared log.
try:
    with ledger.transaction() as transaction:
        for t in range(33, 1233):
            plan = PlanRecord(f"p{t}", random.Random(t).randbytes(4000), 32_000, "{}")
            request = Request("ann", "parent", t, "release", Fraction(1), Fraction(1), plan, True, False)
            store(transaction, request, lambda: (t,), Caps())
        pid = os.fork()
        if pid:
            assert os.waitpid(pid, 0)[1] == 0
    if pid == 0:
        print("the child committed", flush=True)
        os._exit(1)
except DphmmError as error:
    assert "belongs to the process" in str(error)
    sys.exit(0)  # the child ends as programs do, with all its destructors
assert len(ledger.entries("ann", "parent")) == 1232
ledger.check()

# A fork while another thread is in a transaction waits for its end.
entered, forked = threading.Event(), threading.Event()
def slow():
    with ledger.transaction() as transaction:
        entered.set()
        forked.wait(0.2)
        store(transaction, release(1233, query="parent"), lambda: (34,), Caps())
thread = threading.Thread(target=slow)
thread.start()
entered.wait()
pid = child(lambda: step("child", 31))
forked.set()
thread.join()
assert os.waitpid(pid, 0)[1] == 0
ledger.check()
assert len(ledger.entries("ann", "parent")) == 1233 and len(ledger.entries("ann", "child")) == 31
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_fork_does_not_share_a_connection(path: Path) -> None:
    out, errors = (child := start(FORKING, path)).communicate()
    assert (out, child.returncode) == ("done\n", 0), (out, errors)


FILE_LIMIT = """
import resource
ledger = open_ledger(path)
with ledger.transaction() as transaction:
    transaction.open_session(SessionHeader("ann", "state", {}))
size = os.path.getsize(path + "-wal")
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 20_000, resource.RLIM_INFINITY))
def work():
    with ledger.transaction() as transaction:
        for t in range(1, 201):
            plan = PlanRecord(f"p{t}", random.Random(t).randbytes(4000), 32_000, "{}")
            request = Request("ann", "state", t, "release", Fraction(1), Fraction(1), plan, True, False)
            store(transaction, request, lambda: (t,), Caps())
    print("shown")
try:
    work()
except DphmmError as error:
    print(error)
print(len(ledger.entries("ann", "state")), ledger.spent("ann").epsilon)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
work()
ledger.check()
print(len(ledger.entries("ann", "state")), ledger.spent("ann").epsilon)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on file sizes there")
def test_a_write_that_fails_at_commit_lets_nothing_out(path: Path) -> None:
    out, errors = start(FILE_LIMIT, path).communicate()
    lines = out.splitlines()
    assert len(lines) == 4, (out, errors)
    assert lines[0].startswith("ledger ledger.db: ")
    assert lines[1:] == ["0 0", "shown", "200 200"]


HOLDING = """
with open_ledger(path) as ledger, ledger.lease("commands"):
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_the_lock_of_a_killed_command_is_free(path: Path) -> None:
    holder = start(HOLDING, path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with open_ledger(path) as ledger:
        began = time.monotonic()
        with pytest.raises(LedgerBusy) as caught, ledger.lease("commands"):
            raise AssertionError
        assert time.monotonic() - began < 1
        assert caught.value.exit_code == 4
        holder.kill()
        holder.communicate()
        with ledger.lease("commands"):
            pass
