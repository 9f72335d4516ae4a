"""The commit log of a release table: what is torn, foreign or hostile is refused in one line and changes nothing."""

from __future__ import annotations

import hashlib
import json
import os
import shutil

import pytest

from dphmm.errors import InvalidInput
from dphmm.storage.commit_log import PosixStore
from dphmm.storage.release_table import ReleaseTable
from storage.test_release_table import begin, commit, names_in, one_line, shown

pytestmark = pytest.mark.replayed_words


@pytest.fixture
def path(tmp_path):
    return tmp_path / "table"


def test_a_link_that_is_repeated_by_the_network_is_ours(path):
    class Repeating(PosixStore):
        def _link(self, temporary, name):
            super()._link(temporary, name)
            super()._link(temporary, name)

    table = ReleaseTable.open(path, store=Repeating)
    commit(table, [1])
    assert shown(table) == [1] and [p.name for p in (path / "log").iterdir() if "part" in p.name] == []


def document(path, number, /, **changes):
    """An entry with other members, written as dphmm writes."""
    place = path / "log" / f"{number:08d}.json"
    found = json.loads(place.read_bytes()) | changes
    return (json.dumps(found, sort_keys=True, separators=(",", ":")) + "\n").encode()


def rewrite(number, /, **changes):
    def spoil(path):
        content = document(path, number, **changes)
        (path / "log" / f"{number:08d}.json").write_bytes(content)

    return spoil


def appended(number, /, *, of, **changes):
    def spoil(path):
        last = (path / "log" / f"{number - 1:08d}.json").read_bytes()
        content = document(path, of, **{"number": number, "previous": hashlib.sha256(last).hexdigest()} | changes)
        (path / "log" / f"{number:08d}.json").write_bytes(content)

    return spoil


def text(number, change):
    def spoil(path):
        place = path / "log" / f"{number:08d}.json"
        place.write_bytes(change(place.read_bytes()))

    return spoil


def hostile_name(name):
    def spoil(path):
        files = json.loads((path / "log" / "00000004.json").read_bytes())["files"]
        rewrite(4, files=[files[0] | {"name": files[0]["name"][:39] + name}])(path)

    return spoil


def in_place(number, make):
    def spoil(path):
        place = path / "log" / f"{number:08d}.json"
        place.rename(path / "log" / "moved")
        make(place)

    return spoil


TORN = "torn or foreign"


BEHIND = "does not follow"


SPOILED_LOGS = {
    "empty": (text(4, lambda c: b""), TORN),
    "zeros": (text(4, lambda c: bytes(len(c))), TORN),
    "one byte less": (text(4, lambda c: c[:-1]), TORN),
    "half": (text(4, lambda c: c[: len(c) // 2]), TORN),
    "twice": (text(4, lambda c: c + c), TORN),
    "a space": (text(4, lambda c: c.replace(b":", b": ", 1)), TORN),
    "a member twice": (text(4, lambda c: c.replace(b"{", b'{"number":4,', 1)), TORN),
    "not UTF-8": (text(4, lambda c: b"\xff" + c), TORN),
    "NaN": (text(3, lambda c: c.replace(b'"seconds":60.0', b'"seconds":NaN')), TORN),
    "deep": (text(4, lambda c: b"[" * 10**5), TORN),
    "a huge number": (text(4, lambda c: c.replace(b'"number":4', b'"number":' + b"9" * 5000)), TORN),
    "a list": (text(4, lambda c: b"[]\n"), TORN),
    "of nobody": (text(4, lambda c: b'{"format":1}\n'), TORN),
    "newer": (rewrite(4, format=2), "a newer format.*update dphmm"),
    "newer by much": (text(4, lambda c: b'{"format":99,"entirely":"other"}'), "a newer format"),
    "format of no number": (rewrite(4, format="1"), TORN),
    "format 0": (rewrite(4, format=0), TORN),
    "a member more": (rewrite(4, more=1), TORN),
    "another number": (rewrite(4, number=3), TORN),
    "another kind": (rewrite(4, kind="kept"), TORN),
    "a file without members": (rewrite(2, files=[{"name": "x"}]), TORN),
    "a path": (hostile_name("../../../../etc/passwd"), TORN),
    "a line end": (hostile_name("0" * 32 + ".parquet\n"), TORN),
    "an absolute path": (rewrite(4, files=[{"name": "/etc/passwd", "sha256": "0" * 64, "rows": 1, "bytes": 1}]), TORN),
    "its beginning changed": (rewrite(3, holder="another"), f"00000004.json, which {BEHIND}"),
    "its job changed": (rewrite(4, job="0" * 32, files=[]), BEHIND),
    "the first changed": (rewrite(1, previous="1" * 64), "00000001.json"),
    "an end more": (appended(5, of=4), BEHIND),
    "files of another job": (appended(5, of=2), BEHIND),
    "copied from before": (lambda p: shutil.copy(p / "log/00000003.json", p / "log/00000005.json"), TORN),
    "a gap": (lambda p: (p / "log/00000002.json").unlink(), "00000004.json without 00000002.json"),
    "without its first": (lambda p: (p / "log/00000001.json").unlink(), "without 00000001.json"),
    "beyond a gap": (lambda p: shutil.copy(p / "log/00000004.json", p / "log/00000006.json"), "without 00000005"),
    "a link": (in_place(4, lambda p: p.symlink_to("moved")), "plain file"),
    "a dangling link": (in_place(4, lambda p: p.symlink_to("nothing")), "plain file"),
    "a folder": (in_place(4, lambda p: p.mkdir()), "plain file"),
    "a pipe": (in_place(4, os.mkfifo), "plain file"),
    "too large": (in_place(4, lambda p: (p.touch(), os.truncate(p, 1 << 40))), "at most"),
}


def two_jobs(path):
    table = ReleaseTable.open(path)
    commit(table, [1])
    commit(table, [2, 3], [4])
    return table


@pytest.mark.parametrize("name", SPOILED_LOGS)
def test_a_log_that_dphmm_did_not_write_so_is_refused(path, name):
    table = two_jobs(path)
    spoil, told = SPOILED_LOGS[name]
    spoil(path)
    before = sorted(path.rglob("*"))
    for use in (table.entries, table.read, table.clean, lambda: begin(table), lambda: ReleaseTable.open(path)):
        with pytest.raises(InvalidInput, match=told) as error:
            use()
        assert one_line(error)
    assert sorted(path.rglob("*")) == before


def test_an_entry_cut_anywhere_is_torn(path):
    table = two_jobs(path)
    place = path / "log" / "00000004.json"
    whole = place.read_bytes()
    for end in range(0, len(whole), 7):
        place.write_bytes(whole[:end])
        with pytest.raises(InvalidInput, match=TORN):
            table.entries()
    place.write_bytes(whole)
    assert shown(table) == [1, 2, 3, 4]


def test_a_committed_entry_with_two_files_of_a_partition_or_of_another_job_is_refused(path):
    two_jobs(path)
    files = [json.loads((path / f"log/0000000{n}.json").read_bytes())["files"] for n in (2, 4)]
    for wrong in ([*files[1], files[1][0]], files[0]):
        rewrite(4, files=wrong)(path)
        with pytest.raises(InvalidInput, match=BEHIND):
            ReleaseTable.open(path)


def test_names_that_are_not_known_are_ignored(path):
    """Fault 46: what others leave in the folders is no part of the table, and is not deleted."""
    table = two_jobs(path)
    job = table.entries()[-1].job
    names = [
        "notes.txt",
        "00000000.json",
        "5.json",
        "000000005.json",
        "00000005.JSON",
        "٠٠٠٠٠٠٠٥.json",
        "00000005.json.part",
    ]
    for name in names:
        (path / "log" / name).write_text("{")
    others = [
        f"{'0' * 32}-00000-{'0' * 32}.parquet",
        f"{job}.parquet",
        "_SUCCESS",
        f".{job}-00000-{'0' * 32}.parquet.crc",
    ]
    for name in others:
        (table.data / name).write_text("x")
    assert shown(ReleaseTable.open(path)) == [1, 2, 3, 4]
    assert table.clean() == [] and begin(table).number == 5
    assert set(names) <= names_in(path / "log") and set(others) <= names_in(table.data)


def test_a_listing_that_comes_late_hides_nothing(path):
    """Fault 46: what is the last entry is asked by name; a listing only says what is there at least."""

    class Late(PosixStore):
        hidden: tuple[str, ...] = ()

        def list(self):
            return [name for name in super().list() if name not in Late.hidden]

    table = ReleaseTable.open(path, store=Late)
    commit(table, [1])
    commit(table, [2])
    for hidden in (["00000004.json"], ["00000002.json"], [f"0000000{n}.json" for n in range(1, 5)]):
        Late.hidden = tuple(hidden)
        assert shown(table) == [1, 2]
    assert begin(table).number == 5
