"""One committed result for each job of a release table, whatever drivers, crashes, clocks and files do.

Claims: every interleaving of two drivers keeps the rules of `table_stage.World.check`, so do random schedules of three
with deaths and clock steps; op by op the table does what a reference of twenty lines says; a process killed at a named
point leaves nothing, an open turn or a commit; what is torn, foreign, moved or linked is refused in one line.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from dphmm.errors import InvalidInput, LedgerBusy
from dphmm.storage.commit_log import Abandoned, Begun, Committed, PosixStore
from dphmm.storage.release_table import GRACE, ReleaseTable, TableFile, entry_name, table_file, write_rows
from table_stage import Died, World, schedules

pytestmark = pytest.mark.replayed_words
JOB = {"model": "0" * 64, "input": "7"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table"


@pytest.fixture
def unsynced(monkeypatch):
    """No waiting for the disk where nobody cuts the power."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


class Clock:
    """Wall time that a test sets."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def rows(*values):
    return pa.table({"z": list(values)})


def begin(table, seconds=60):
    return table.begin(JOB, holder="driver 1", seconds=seconds)


def commit(table, *parts):
    """A job that commits these rows, a partition each."""
    turn = begin(table)
    files = [write_rows(rows(*part), turn.entry_path(at)) for at, part in enumerate(parts)]
    return turn.commit(files, {"epsilon": "1"}, rows=sum(map(len, parts)))


def shown(table):
    read = table.read(verify=True)
    return read["z"].to_pylist() if read.num_columns else []


def kinds(table):
    return [type(entry).__name__ for entry in table.entries()]


def names_in(folder):
    return {place.name for place in folder.iterdir()}


def one_line(error):
    return "\n" not in str(error.value) and len(str(error.value)) < 1200


# What a table does


def test_what_is_committed_is_shown_in_order_and_nothing_else(path):
    table = ReleaseTable.open(path)
    assert table.entries() == [] and shown(table) == [] and table.paths() == []
    first = commit(table, [1, 2], [3])
    turn = begin(table)
    write_rows(rows(9), turn.entry_path(0))
    assert shown(table) == [1, 2, 3]
    turn.abandon()
    commit(table, [4])
    assert shown(ReleaseTable.open(path)) == [1, 2, 3, 4]
    assert kinds(table) == ["Begun", "Committed", "Begun", "Abandoned", "Begun", "Committed"]
    assert table.committed()[:2] == first.files and [file.partition for file in table.committed()] == [0, 1, 0]
    assert [path.name for path in table.paths()] == [file.name for file in table.committed()]
    assert table.entries()[0].document == JOB and table.entries()[1].document == {"epsilon": "1"}
    assert turn.number == 3 and turn.position == 2


def test_columns_may_be_chosen_and_may_come_later(path):
    table = ReleaseTable.open(path)
    commit(table, [1])
    turn = begin(table)
    turn.commit([write_rows(pa.table({"z": [2], "estimate": [0.5]}), turn.entry_path(0))], {})
    assert table.read().to_pylist() == [{"z": 1, "estimate": None}, {"z": 2, "estimate": 0.5}]
    assert table.read(["estimate", "z"]).column_names == ["estimate", "z"]
    with pytest.raises(InvalidInput, match="columns: got y") as error:
        table.read(["y"])
    assert one_line(error)


def test_columns_of_two_types_are_refused_in_one_line(path):
    table = ReleaseTable.open(path)
    commit(table, [1])
    turn = begin(table)
    turn.commit([write_rows(pa.table({"z": ["a"]}), turn.entry_path(0))], {})
    with pytest.raises(InvalidInput, match="columns of two types") as error:
        table.read()
    assert one_line(error) and len(table.paths(verify=True)) == 2


def test_no_name_is_used_twice(path):
    turn = begin(ReleaseTable.open(path))
    names = {turn.entry_path(partition).name for partition in range(3) for _ in range(50)}
    assert len(names) == 150 and all(name.startswith(turn.job) for name in names)
    written = turn.entry_path(0, "a" * 32)
    write_rows(rows(1), written)
    with pytest.raises(FileExistsError):
        write_rows(rows(2), written)


@pytest.mark.parametrize("attempt", ["", "../x", "A" * 32, "0" * 31, "0" * 33, "0" * 32 + "\n"])
def test_an_attempt_is_named_by_hex_digits(attempt):
    with pytest.raises(InvalidInput):
        entry_name("0" * 32, 0, attempt)
    for job, partition in [("../../x", 0), ("0" * 32, -1), ("0" * 32, 10**9), ("0" * 32, True)]:
        with pytest.raises(InvalidInput):
            entry_name(job, partition, "0" * 32)


# Turns, leases, clocks


def test_a_second_job_is_told_who_has_the_turn_for_how_long_and_what_to_do(path):
    clock = Clock()
    table = ReleaseTable.open(path, clock=clock)
    turn = begin(table, seconds=100)
    clock.now += 30
    with pytest.raises(LedgerBusy, match=rf"'driver 1' has for {100 + GRACE - 30:.0f} s more.*abandon_open") as error:
        begin(table)
    assert one_line(error)
    turn.renew()
    clock.now += 100
    assert not table.stale()
    with pytest.raises(LedgerBusy, match=rf"for {GRACE:.0f} s more"):
        table.abandon_open()
    clock.now += GRACE + 1
    assert table.stale() and kinds(table) == ["Begun"]
    assert begin(table).number == 3
    assert kinds(table) == ["Begun", "Abandoned", "Begun"]


def test_an_abandoned_job_cannot_commit_or_renew(path):
    """Fault 44: a driver that was only slow wakes up."""
    table = ReleaseTable.open(path)
    turn = begin(table)
    file = write_rows(rows(1), turn.entry_path(0))
    assert table.abandon_open(force=True) and not table.abandon_open(force=True)
    for ended in (lambda: turn.commit([file], {}), turn.renew):
        with pytest.raises(LedgerBusy, match="turn: got 1, which was abandoned already") as error:
            ended()
        assert one_line(error)
    turn.abandon()
    other = begin(table)
    with pytest.raises(LedgerBusy, match="abandoned"):
        turn.commit([file], {})
    assert shown(table) == [] and table.clean() == [file.name]
    other.commit([], {})


def test_a_committed_job_is_not_abandoned(path):
    table = ReleaseTable.open(path)
    turn = begin(table)
    turn.commit([], {})
    assert not table.abandon_open(force=True) and not table.stale() and table.open_turn() is None
    for ended in (turn.abandon, turn.renew, lambda: turn.commit([], {"other": 1})):
        with pytest.raises(LedgerBusy, match="which was committed already"):
            ended()
    assert kinds(table) == ["Begun", "Committed"]


def test_a_commit_whose_answer_was_lost_may_be_repeated(path):
    """After an error of the folder's sync nobody knows whether the entry is there: the same call tells."""

    class Failing(PosixStore):
        fails = False

        def _sync(self):
            if Failing.fails:
                raise OSError(5, "Input/output error")
            super()._sync()

    table = ReleaseTable.open(path, store=Failing)
    turn = begin(table)
    file = write_rows(rows(1), turn.entry_path(0))
    Failing.fails = True
    with pytest.raises(OSError, match="Input/output"):
        turn.commit([file], {})
    Failing.fails = False
    assert turn.commit([file], {}) == table.entries()[-1]
    assert shown(table) == [1] and kinds(table) == ["Begun", "Committed"]


@pytest.mark.parametrize("lease", [None, b"", b"{", b"NaN", b"1e999", b'"x"', b"[" * 10**5, b"-5", "link"])
def test_a_lease_that_cannot_be_read_is_that_of_the_beginning(path, lease):
    clock = Clock()
    table = ReleaseTable.open(path, clock=clock)
    turn = begin(table, seconds=10)
    place = path / "leases" / f"{turn.job}.json"
    if lease == "link":
        place.symlink_to("/dev/zero")
    elif lease is not None:
        place.write_bytes(lease)
    clock.now += 10 + GRACE
    assert not table.stale()
    clock.now += 1
    assert table.stale()


def test_the_lease_is_renewed_by_a_thread_of_its_own(path):
    """However long a draw takes, and it stops by itself once the turn is lost."""
    table = ReleaseTable.open(path)
    turn = begin(table, seconds=0.01)
    lease = path / "leases" / f"{turn.job}.json"
    with turn.renewing():
        while not lease.exists():
            pass
        table.abandon_open(force=True)
    assert kinds(table) == ["Begun", "Abandoned"]


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"job": {"x": float("nan")}}, "job"),
        ({"job": {"x": object()}}, "job"),
        ({"job": [("a", 1, 2)]}, "job"),
        ({"job": {"x": "y" * ((1 << 27) + 1)}}, "job"),
        ({"job": {"x": eval("[" * 70 + "]" * 70)}}, "job"),
        ({"holder": ""}, "holder"),
        ({"holder": "a\nb"}, "holder"),
        ({"holder": 7}, "holder"),
        ({"seconds": 0}, "seconds"),
        ({"seconds": "soon"}, "seconds"),
    ],
)
def test_a_job_is_described_in_plain_json(path, wrong, field):
    table = ReleaseTable.open(path)
    with pytest.raises(InvalidInput, match=f"^{field}: ") as error:
        table.begin(**{"job": {}, "holder": "driver", "seconds": 1} | wrong)
    assert one_line(error) and table.entries() == []


def test_documents_come_back_as_they_were(path):
    document = {"π": "\ud800 \n", "n": 10**40, "x": -0.1, "deep": [[{"": None}]], "b": True}
    table = ReleaseTable.open(path)
    turn = table.begin(document, holder="π", seconds=1)
    turn.commit([], document)
    assert [entry.document for entry in ReleaseTable.open(path).entries()] == [document, document]


# Commit is judged by content


def other_bytes(file, path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def replaced(**fields):
    return lambda file, path: [
        TableFile(**{name: getattr(file, name) for name in TableFile.__struct_fields__} | fields)
    ]


def become_link(file, path):
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def become_folder(file, path):
    path.unlink()
    path.mkdir()


def become_pipe(file, path):
    path.unlink()
    os.mkfifo(path)


def become_socket(file, path):
    path.unlink()
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


def become_text(file, path):
    path.write_bytes(b"PAR1 no parquet PAR1")
    content = path.read_bytes()
    return replaced(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))(file, path)


SPOILED_FILES = {
    "missing": (lambda file, path: path.unlink(), "a file that exists"),
    "torn": (lambda file, path: os.truncate(path, file.bytes - 1), "of another size"),
    "longer": (lambda file, path: os.truncate(path, file.bytes + 1), "of another size"),
    "other bytes": (other_bytes, "with other bytes"),
    "a link": (become_link, "plain file"),
    "a folder": (become_folder, "plain file"),
    "a pipe": (become_pipe, "plain file"),
    "a socket": (become_socket, "plain file"),
}
SPOILED_LISTS = {
    "told another digest": (replaced(sha256="0" * 64), "with other bytes"),
    "told other rows": (replaced(rows=2), "rows"),
    "told other bytes": (replaced(bytes=5), "of another size"),
    "no parquet": (become_text, "a whole Parquet file"),
    "outside": (replaced(name="../" + "0" * 32 + "-00000-" + "0" * 32 + ".parquet"), "a file of another job"),
    "outside behind its job": (lambda f, p: replaced(name=f.job + "-00000-/../../x")(f, p), "a file of another job"),
    "a line more": (lambda f, p: replaced(name=f.name + "\n")(f, p), "a file of another job"),
    "of another job": (replaced(name=f"{'0' * 32}-00000-{'0' * 32}.parquet"), "a file of another job"),
    "twice": (lambda f, p: [f, f], "two of a partition"),
    "two attempts": (
        lambda f, p: [f, write_rows(rows(1), p.with_name(entry_name(f.job, f.partition)))],
        "two of a partition",
    ),
    "less rows": (lambda f, p: [], "got 0 rows; expected 1 rows"),
    "other columns": (
        lambda f, p: [f, write_rows(pa.table({"y": pa.array([], "int8")}), p.with_name(entry_name(f.job, 1)))],
        "the same columns",
    ),
}


@pytest.mark.parametrize("name", [*SPOILED_FILES, *SPOILED_LISTS])
def test_nothing_is_committed_where_a_file_is_not_as_told(path, name, monkeypatch):
    table = ReleaseTable.open(path)
    commit(table, [7])
    turn = begin(table)
    file = write_rows(rows(1), turn.entry_path(0))
    spoil, told = (SPOILED_FILES | SPOILED_LISTS)[name]
    monkeypatch.chdir(table.data)  # names of sockets are short
    files = spoil(file, table.data / file.name)
    files = [file] if files is None else files
    with pytest.raises(InvalidInput, match=told) as error:
        turn.commit(files, {}, rows=sum(file.rows for file in files) or 1)
    assert one_line(error)
    assert shown(table) == [7] and kinds(table) == ["Begun", "Committed", "Begun"]
    again = write_rows(rows(2), turn.entry_path(0))
    turn.commit([again], {}, rows=1)
    assert shown(table) == [7, 2]


@pytest.mark.parametrize("name", SPOILED_FILES)
def test_a_committed_file_that_changed_is_refused(path, name, monkeypatch):
    table = ReleaseTable.open(path)
    commit(table, [1, 2], [3])
    file = table.committed()[1]
    monkeypatch.chdir(table.data)
    SPOILED_FILES[name][0](file, table.data / file.name)
    with pytest.raises(InvalidInput, match=SPOILED_FILES[name][1]) as error:
        table.read(verify=True)
    assert one_line(error)
    if name != "other bytes":
        with pytest.raises(InvalidInput):
            table.paths()


def test_a_file_is_described_as_it_is(path):
    turn = begin(ReleaseTable.open(path))
    file = write_rows(rows(1, 2, 3), turn.entry_path(4))
    content = (path / "data" / file.name).read_bytes()
    assert (file.rows, file.bytes, file.sha256) == (3, len(content), hashlib.sha256(content).hexdigest())
    assert file == table_file(path / "data" / file.name) and (file.partition, file.job) == (4, turn.job)
    torn = turn.entry_path(0)
    torn.write_bytes(content[:-1])
    for wrong in (torn, path / "data" / "x.parquet"):
        with pytest.raises(InvalidInput):
            table_file(wrong)


# Where a table may be


def strange_folders(path):
    def made(name, content=""):
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content)

    def linked():
        (path.parent / "elsewhere").mkdir()
        path.mkdir()
        (path / "log").symlink_to("../elsewhere")

    return {
        "a file": lambda: path.write_text(""),
        "other things": lambda: made("photo.jpg"),
        "a log that is a file": lambda: made("log"),
        "another log": lambda: made("log/app.log"),
        "data without a log": lambda: made("data/x.parquet"),
        "other data": lambda: ((path / "log").mkdir(parents=True), made("data/x.parquet")),
        "more beside it": lambda: ((path / "log").mkdir(parents=True), made("more/x")),
        "a log that is a link": linked,
    }


@pytest.mark.parametrize("name", strange_folders(Path()))
def test_a_folder_of_something_else_is_refused(path, name):
    strange_folders(path)[name]()
    with pytest.raises(InvalidInput, match=r"^table: ") as error:
        ReleaseTable.open(path)
    assert one_line(error)


def test_a_table_is_in_a_folder_that_exists(path):
    for wrong in (path / "deeper" / "table", f"{path}\0"):
        with pytest.raises(InvalidInput, match=r"^table: "):
            ReleaseTable.open(wrong)
    ReleaseTable.open(path)
    path.parent.joinpath("link").symlink_to(path)
    commit(ReleaseTable.open(path.parent / "link"), [1])
    assert shown(ReleaseTable.open(path)) == [1]


@pytest.mark.parametrize("made", [[], ["log"], ["log", "data"]])
def test_a_table_that_was_half_made_is_made(path, made):
    path.mkdir()
    for name in made:
        (path / name).mkdir()
    commit(ReleaseTable.open(path), [1])
    assert shown(ReleaseTable.open(path)) == [1]


class Overwriting(PosixStore):
    """A store whose put-if-absent is none, and does not know it."""

    def put_if_absent(self, name, content):
        self.put(name, content)
        return True


class Boasting(PosixStore):
    """It says that it was second, after it has overwritten."""

    def put_if_absent(self, name, content):
        there = self.read(name) is not None
        self.put(name, content)
        return not there


class Linkless(PosixStore):
    """A file system without hard links."""

    def _link(self, temporary, name):
        raise PermissionError(1, "Operation not permitted", str(temporary))


class Losing(PosixStore):
    """It accepts and keeps nothing."""

    def put_if_absent(self, name, content):
        return True


@pytest.mark.parametrize("store", [Overwriting, Boasting, Linkless, Losing])
def test_a_store_without_put_if_absent_is_refused(path, store):
    """Fault 53."""
    table = ReleaseTable.open(path, store=store)
    for use in (table.probe, lambda: begin(table)):
        with pytest.raises(InvalidInput, match="put-if-absent") as error:
            use()
        assert one_line(error)
    assert ReleaseTable.open(path).entries() == []
    ReleaseTable.open(path).probe()


def opened(path, descriptor):
    """The name of an open file or folder of a table."""
    number = os.fstat(descriptor).st_ino
    return next(place.name for place in path.rglob("*") if place.stat().st_ino == number)


def test_what_is_shown_survives_a_power_cut(path, monkeypatch):
    """Rows and the names of their files are on the disk before the entry, the entry before its name, its name before
    anybody reads it."""
    table = ReleaseTable.open(path)
    turn = begin(table)
    file = write_rows(rows(1), turn.entry_path(0))
    calls = []
    sync, link = os.fsync, os.link

    def watched(descriptor):
        calls.append(f"sync {opened(path, descriptor)}")
        sync(descriptor)

    def linked(source, target):
        calls.append(f"link {Path(target).name}")
        link(source, target)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(os, "link", linked)
    turn.commit([file], {})
    assert calls[0] == f"sync {file.name}" and calls[2].startswith("sync .00000002.json.")
    assert calls[1:2] + calls[3:] == ["sync data", "link 00000002.json", "sync log"]
    calls.clear()
    table.committed()
    assert calls == ["sync log"]


def test_a_full_disk_commits_nothing_and_leaves_nothing(path, monkeypatch):
    table = ReleaseTable.open(path)
    turn = begin(table)
    file = write_rows(rows(1), turn.entry_path(0))
    sync = os.fsync

    def failing(descriptor):
        if opened(path, descriptor).startswith(".00000002"):
            raise OSError(28, "No space left on device")
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", failing)
        with pytest.raises(OSError, match="No space"):
            turn.commit([file], {})
    assert names_in(path / "log") == {"00000001.json"}
    turn.commit([file], {})
    assert shown(table) == [1]


# Every interleaving of two drivers, random ones of three


PAIRS = {
    "a slow driver and an impatient one": (["begin", "write 0", "commit"], ["take", "begin", "write 1", "commit"]),
    "two that begin, and clean": (["begin", "write 0", "commit", "clean"], ["begin", "write 1", "commit"]),
    "one that cleans beside another": (["begin", "write 0", "write 0", "commit"], ["clean"]),
    "one that takes and cleans": (["begin", "write 0", "write 0", "commit"], ["take", "clean"]),
    "one that gives up": (["begin", "write 0", "abandon", "clean"], ["begin", "write 1"]),
}


@pytest.mark.parametrize("name", PAIRS)
def test_every_interleaving_of_two_drivers(tmp_path, unsynced, name):
    number, ends = itertools.count(), set()

    def run(choose):
        world = World(tmp_path / str(next(number)), PAIRS[name], choose)
        world.play()
        ends.add(tuple(entry["kind"] for entry in world.documents()))

    seen = {tuple(schedule) for schedule in schedules(run)}
    assert len(seen) == next(number) > 50
    assert ends == ENDS[name]


B, C, A = "begun", "committed", "abandoned"
#: How the log may end, and does in some schedule.
ENDS = {
    "a slow driver and an impatient one": {(B, C), (B, A, B, C), (B, C, B, C)},
    "two that begin, and clean": {(B, C), (B, C, B, C)},
    "one that cleans beside another": {(B, C)},
    "one that takes and cleans": {(B, C), (B, A)},
    "one that gives up": {(B,), (B, A), (B, A, B)},
}


@pytest.mark.parametrize("steps", range(1, 5))
def test_every_interleaving_with_a_driver_that_dies(tmp_path, unsynced, steps):
    """It is killed before its step of this number; the other takes the table over and ends with its own rows."""
    number = itertools.count()

    def run(choose):
        left = [steps]

        def killing(alive):
            chosen = choose(alive)
            left[0] -= chosen == 0
            return -1 if chosen == 0 and left[0] == 0 else chosen

        programs = ["begin", "write 0", "commit"], ["take", "begin", "write 1", "commit"]
        world = World(tmp_path / str(next(number)), programs, killing)
        world.play()
        table = world.table(0)
        table.abandon_open(force=True)
        table.clean()
        files = {file.name for file in table.committed()}
        assert {place.name for place in table.data.iterdir()} == files

    assert sum(1 for _ in schedules(run)) >= 6


WORDS = ["begin", "write 0", "write 1", "write 2", "renew", "commit", "clean", "abandon", "take", "take stale"]


@pytest.mark.slow
def test_random_schedules_of_three_drivers_that_die_and_whose_clocks_jump(tmp_path, unsynced):
    """A fence does not depend on clocks: they are wrong by more than any lease, and go back."""
    kinds_seen, committed = set(), 0
    for seed in range(250):
        chance = random.Random(seed)
        programs = [
            [
                word
                for _ in range(3)
                for word in ("begin", *chance.choices(WORDS, k=3), chance.choice(["commit", "clean"]))
            ]
            for _ in range(3)
        ]

        def choose(alive, chance=chance):
            driver = chance.choice(alive)
            return -driver - 1 if chance.random() < 0.02 else driver

        def clock(driver, chance=chance):
            return chance.choice([-1e6, 0.0, 1.0, 1e6])

        world = World(tmp_path / str(seed), programs, choose, clock)
        world.play()
        found = [entry["kind"] for entry in world.documents()]
        kinds_seen |= set(found)
        committed += found.count("committed")
    assert kinds_seen == {"begun", "committed", "abandoned"} and committed > 100


# Against a reference, with deaths at every named step of the store


class Mortal(PosixStore):
    """A store whose process dies at a named step of the next entry: ``written``, ``linked``; or ``deleting``."""

    at = ""

    def _link(self, temporary, name):
        entry = not name.startswith(".")
        self._die("written" if entry else "")
        super()._link(temporary, name)
        self._die("linked" if entry else "")

    def delete(self, name):
        self._die("deleting" if self.folder.name == "data" else "")
        super().delete(name)

    def _die(self, step):
        if step and Mortal.at == step:
            Mortal.at = ""
            raise Died


class Reference:
    """The rules of a table, as plainly as they can be."""

    def __init__(self):
        self.log, self.files = [], {}

    def open(self):
        return self.log[-1][1] if self.log and self.log[-1][0] == "begun" else None

    def begin(self, job, stale):
        if self.open() and stale:
            self.log.append(("abandoned", self.open(), ()))
        if self.open():
            return False
        self.log.append(("begun", job, ()))
        return True

    def end(self, kind, job, files=()):
        if (kind, job, files) == (self.log[-1] if self.log[-1][1] == job else self.last_of(job)):
            return True  # a repeat
        if self.open() != job:
            return False
        self.log.append((kind, job, files))
        return True

    def last_of(self, job):
        return next(entry for entry in reversed(self.log) if entry[1] == job)

    def committed(self):
        return [name for _, _, files in self.log for name in files]

    def garbage(self):
        ended = {job for kind, job, _ in self.log if kind != "begun"}
        return {name for name, job in self.files.items() if job in ended} - set(self.committed())


class TableMachine(RuleBasedStateMachine):
    """Three drivers and an operator, one call at a time."""

    drivers = st.integers(0, 2)
    deaths = st.sampled_from(["", "", "", "written", "linked"])

    def __init__(self):
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(os, "fsync", lambda _: None)
        self.folder = tempfile.TemporaryDirectory()
        self.clock = Clock()
        self.table = ReleaseTable.open(self.folder.name, store=Mortal, clock=self.clock)
        self.reference = Reference()
        self.turns, self.parts, self.renewed = {}, {}, {}

    def teardown(self):
        self.patch.undo()
        self.folder.cleanup()

    def stale(self):
        job = self.reference.open()
        return job is not None and self.clock.now > self.renewed[job] + 10 + GRACE

    def turn(self, data):
        return self.turns[data.draw(st.sampled_from(sorted(self.turns)))]

    def outcome(self, call, death):
        """What a call returns, "busy" or "died"."""
        Mortal.at = death
        try:
            return call()
        except LedgerBusy:
            return "busy"
        except Died:
            return "died"
        finally:
            Mortal.at = ""

    @rule(driver=drivers, death=deaths)
    def begin(self, driver, death):
        stale, busy = self.stale(), self.reference.open() and not self.stale()
        got = self.outcome(lambda: self.table.begin({}, holder="driver", seconds=10), death)
        if got == "died":
            self.turns.pop(driver, None)
            assert not busy
            if stale:  # it died at the entry that ends the other's turn
                if death == "linked":
                    assert self.reference.end("abandoned", self.reference.open())
            elif death == "linked":
                job = json.loads(sorted((self.table.path / "log").glob("0*"))[-1].read_bytes())["job"]
                assert self.reference.begin(job, False)
                self.renewed[job] = self.clock.now
        elif got == "busy":
            assert not self.reference.begin("", stale)
            self.turns.pop(driver, None)
        else:
            assert self.reference.begin(got.job, stale)
            self.turns[driver], self.parts[got.job], self.renewed[got.job] = got, {}, self.clock.now

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), partition=st.integers(0, 2))
    def write(self, data, partition):
        self.written(self.turn(data), partition)

    def written(self, turn, partition):
        file = write_rows(rows(partition), turn.entry_path(partition))
        self.parts[turn.job][partition] = file
        self.reference.files[file.name] = turn.job

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def renew(self, data):
        turn = self.turn(data)
        alive = self.reference.open() == turn.job
        assert self.outcome(turn.renew, "") == (None if alive else "busy")
        if alive:
            self.renewed[turn.job] = max(self.clock.now, self.renewed[turn.job])

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), death=deaths)
    def commit(self, data, death):
        self.ended(self.turn(data), death)

    def ended(self, turn, death):
        files = sorted(self.parts[turn.job].values(), key=lambda file: file.name)
        names = tuple(file.name for file in files)
        got = self.outcome(lambda: turn.commit(reversed(files), {}, rows=len(files)), death)
        if got != "died":
            assert (got != "busy") == self.reference.end("committed", turn.job, names)
        elif death == "linked":
            # A link that was made says that the turn was open; before the link nothing happened.
            assert self.reference.end("committed", turn.job, names)

    @precondition(lambda self: self.turns)
    @rule(data=st.data())
    def abandon(self, data):
        turn = self.turn(data)
        got = self.outcome(turn.abandon, "")
        assert (got is None) == self.reference.end("abandoned", turn.job)

    @precondition(lambda self: self.reference.open() is None)
    @rule(driver=drivers, attempts=st.lists(st.integers(0, 2), min_size=1, max_size=3), death=deaths)
    def whole_job(self, driver, attempts, death):
        """Attempts of some partitions, the last of each is committed."""
        self.begin(driver, "")
        for partition in attempts:
            self.written(self.turns[driver], partition)
        self.ended(self.turns[driver], death)

    @rule(force=st.booleans())
    def take(self, force):
        job, stale = self.reference.open(), self.stale()
        got = self.outcome(lambda: self.table.abandon_open(force=force), "")
        if job is None:
            assert got is False
        else:
            assert (got is True) == (force or stale)
            if got is True:
                assert self.reference.end("abandoned", job)

    @rule(death=st.sampled_from(["", "", "deleting"]))
    def clean(self, death):
        garbage = self.reference.garbage()
        got = self.outcome(self.table.clean, death)
        if got == "died":
            assert garbage
        else:
            assert set(got) == garbage
            for name in garbage:
                del self.reference.files[name]

    @rule(seconds=st.sampled_from([1, 15, 30, -20]))
    def pass_time(self, seconds):
        self.clock.now += seconds

    @invariant()
    def as_the_reference_says(self):
        found = self.table.entries()
        kind = {Begun: "begun", Committed: "committed", Abandoned: "abandoned"}
        assert [(kind[type(entry)], entry.job) for entry in found] == [(k, job) for k, job, _ in self.reference.log]
        assert [path.name for path in self.table.paths(verify=True)] == self.reference.committed()
        assert {path.name for path in self.table.data.iterdir()} == set(self.reference.files)
        assert self.table.stale() == self.stale()


@pytest.mark.slow
class TestTableMachine(TableMachine.TestCase):
    settings = settings(max_examples=100, stateful_step_count=30, deadline=None)


# Real processes


DYING = """
import os, signal, sys
import pyarrow
from dphmm.errors import LedgerBusy
from dphmm.storage.release_table import ReleaseTable, write_rows
from dphmm.storage.commit_log import PosixStore

def die():
    os.kill(os.getpid(), signal.SIGKILL)

class Dying(PosixStore):
    at = step = None
    def _check(self, step, name):
        if (Dying.at, Dying.step) == (name, step):
            die()
    def _write(self, name, content):
        written = super()._write(name, content)
        self._check("written", name)
        return written
    def _link(self, temporary, name):
        super()._link(temporary, name)
        self._check("linked", name)
    def delete(self, name):
        super().delete(name)
        if Dying.step == "deleted" and self.folder.name == "data":
            die()

def job(path, step):
    Dying.step, _, Dying.at = step.partition(" ")
    table = ReleaseTable.open(path, store=Dying)
    turn = table.begin({}, holder="driver", seconds=60)
    attempts = [write_rows(pyarrow.table({"z": [1]}), turn.entry_path(0)) for _ in range(3)]
    if step == "files":
        die()
    turn.commit(attempts[:1], {}, rows=1)
    table.clean()
    die()

def race(path, start):
    table = ReleaseTable.open(path)
    start.read(1)
    try:
        turn = table.begin({}, holder=f"driver {os.getpid()}", seconds=60)
    except LedgerBusy:
        os._exit(1)
    turn.commit([write_rows(pyarrow.table({"z": [os.getpid()]}), turn.entry_path(0))], {}, rows=1)
    os._exit(0)
"""
MANY_DYING = """
for step in sys.argv[2:]:
    if (child := os.fork()) == 0:
        job(f"{sys.argv[1]}/{step}", step)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL, step
"""
MANY_RACING = """
read, write = os.pipe()
children = []
for _ in range(8):
    if (child := os.fork()) == 0:
        os.close(write)
        race(sys.argv[1], os.fdopen(read, "rb", buffering=0))
    children.append(child)
os.write(write, b"x" * 8)
print(*(child for child in children if os.waitpid(child, 0)[1] == 0))
"""


def run_python(code, *arguments):
    paths = [str(Path(__file__).parents[1]), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    done = subprocess.run(
        [sys.executable, "-c", DYING + code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


#: What is left by a driver that is killed there: entries, names in the log that are none, files of rows.
LEFT = {
    "written 00000001.json": ([], 1, 0),
    "linked 00000001.json": (["Begun"], 1, 0),
    "files": (["Begun"], 0, 3),
    "written 00000002.json": (["Begun"], 1, 3),
    "linked 00000002.json": (["Begun", "Committed"], 1, 3),
    "deleted": (["Begun", "Committed"], 0, 2),
    "end": (["Begun", "Committed"], 0, 1),
}


@pytest.mark.slow
def test_a_driver_killed_at_a_named_point_leaves_nothing_an_open_turn_or_a_commit(tmp_path):
    """Faults 41, 42 and 45: and the next job takes over, cleans and commits."""
    run_python(MANY_DYING, tmp_path, *LEFT)
    for step, (entries, parts, files) in LEFT.items():
        table = ReleaseTable.open(tmp_path / step)
        assert kinds(table) == entries, step
        assert len(names_in(tmp_path / step / "log")) == len(entries) + parts, step
        assert len(names_in(table.data)) == files, step
        committed = "Committed" in entries
        assert shown(table) == [1] * committed, step
        if entries == ["Begun"]:
            with pytest.raises(LedgerBusy, match="'driver' has for"):
                begin(table)
        assert table.abandon_open(force=True) == (entries == ["Begun"]), step
        assert len(table.clean()) == files - committed, step
        commit(table, [2])
        table.clean()
        assert shown(table) == [1] * committed + [2], step
        assert len(names_in(table.data)) == 1 + committed, step
        left = names_in(tmp_path / step / "log") - {f"{n:08d}.json" for n in range(1, len(table.entries()) + 1)}
        assert left == set(), step


def test_of_eight_processes_that_begin_at_once_each_commit_is_of_one(tmp_path):
    """Fault 43."""
    winners = run_python(MANY_RACING, tmp_path / "table").split()
    table = ReleaseTable.open(tmp_path / "table")
    assert winners and sorted(map(str, shown(table))) == sorted(winners)
    assert kinds(table) == ["Begun", "Committed"] * len(winners)
