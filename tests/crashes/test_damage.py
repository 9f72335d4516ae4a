"""Ledgers that may not be written, are damaged, older than they were, or gone.

What fails if a damaged file were believed. What a ledger cannot notice (an older copy put back, a file that was lost)
is pinned here too, so that nobody takes it for protected.
"""

from __future__ import annotations

import random
import shutil
import sys

import pytest

import dphmm
from crashes import autopsy
from crashes.acquittal import acquitted, run_of
from crashes.checker import judge
from crashes.trials import COMMANDS

FILE = COMMANDS["dphmm release"]
linux = pytest.mark.skipif(sys.platform != "linux", reason="limits and traces of Linux")


@linux
@pytest.mark.parametrize("readonly", ["ledger.db", "."])
def test_a_ledger_that_may_not_be_written(arena, folder, readonly):
    assert arena.run("session", folder=folder, steps=5).code == 0
    before = (folder / "ledger.db").read_bytes()
    place = folder / readonly
    mode = place.stat().st_mode
    place.chmod(0o555 if place.is_dir() else 0o444)
    try:
        for name, args in (("session", {}), ("command", FILE.args)):
            ended = arena.run(name, folder=folder, limits={"powerless": 1}, **args)
            assert ended.code == 2, (ended.code, ended.errors)
            assert ended.errors.count("\n") == 1
            assert ended.lines == []
    finally:
        place.chmod(mode)
    assert (folder / "ledger.db").read_bytes() == before
    assert arena.run("session", folder=folder).code == 0


def test_a_damaged_page_or_a_truncated_file_is_refused_or_harmless(arena, folder, tmp_path):
    """Each page overwritten, and the file cut at many lengths: refused when it is opened, or every row reads as before.

    A file cut to nothing is the one exception: it is a new ledger, see below.
    """
    assert arena.run("session", folder=folder).code == 0
    whole = (folder / "ledger.db").read_bytes()
    before = autopsy.ledger_view(folder)
    damaged = tmp_path / "damaged"
    damaged.mkdir()
    rng = random.Random(8)
    size = 4096
    refused = 0
    spoiled = [
        whole[:start] + filling + whole[start + size :]
        for start in range(0, len(whole), size)
        for filling in (bytes(size), rng.randbytes(size))
    ]
    # The last page is an empty index: a file that ends in its midst has lost nothing.
    spoiled += [whole[: rng.randrange(1, len(whole) - size)] for _ in range(10)] + [whole[:-size], whole[: size // 2]]
    for content in spoiled:
        (damaged / "ledger.db").write_bytes(content)
        try:
            assert autopsy.ledger_view(damaged) == before
        except dphmm.errors.InvalidInput as refusal:
            refused += 1
            assert refusal.exit_code == 2
    assert refused == len(spoiled)


def test_a_damaged_ledger_stops_a_command_before_anything_is_drawn(arena, folder):
    assert arena.run("session", folder=folder).code == 0
    whole = (folder / "ledger.db").read_bytes()
    (folder / "ledger.db").write_bytes(whole[:8192] + bytes(4096) + whole[12288:])
    for name, args in (("session", {}), ("command", FILE.args)):
        ended = arena.run(name, folder=folder, **args)
        assert (ended.code, ended.errors.count("\n"), ended.lines) == (2, 1, []), ended.errors
        assert "restore its latest copy" in ended.errors
    assert not (folder / "out" / "released.csv").exists()


def test_an_older_copy_put_back_is_not_noticed(arena, folder, tmp_path):
    """Not protected: the ledger is the only memory. Put back as it was after ten steps, it draws the others again."""
    first = arena.run("session", folder=folder, steps=10)
    shutil.copy(folder / "ledger.db", tmp_path / "older.db")
    second = arena.run("session", folder=folder, steps=20)
    runs = [run_of(first), run_of(second)]
    acquitted(runs, folder)
    for suffix in ("-wal", "-shm"):
        (folder / f"ledger.db{suffix}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "older.db", folder / "ledger.db")
    third = arena.run("session", folder=folder, steps=20)
    assert third.code == 0
    found = judge([*runs, run_of(third)], autopsy.ledger_view(folder))
    assert found.count("double") >= 5


@pytest.mark.parametrize("content", [None, b""])
def test_a_lost_ledger_is_not_noticed(arena, folder, content):
    """Not protected: a ledger that was deleted, or cut to nothing, is a new one."""
    first = arena.run("session", folder=folder, steps=10)
    (folder / "ledger.db").unlink()
    if content is not None:
        (folder / "ledger.db").write_bytes(content)
    second = arena.run("session", folder=folder, steps=10)
    assert judge([run_of(first), run_of(second)], autopsy.ledger_view(folder)).count("double") >= 5
